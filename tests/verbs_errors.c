/* SPDX-License-Identifier: BSD-2-Clause */
/* Every completion status that needs no Reliable Datagram, each provoked; and what follows an error. */
#include "verbs_test.h"

static struct side a, b;

static void expect_error(unsigned int status)
{
	CHECK(expect_wc(&a, status, -1));
	CHECK(side_state(&a) == IBV_QPS_ERR);
}

/* Too long for the receive request: its own error here, an invalid request there. */
static void test_length(void)
{
	pair_open(&a, &b, IBV_QPT_RC);
	CHECK(!side_recv(&b, 0, 99) && !side_send(&a, IBFS_WR_SEND, 0, 100, 0, 0));
	CHECK(expect_wc(&b, IBV_WC_LOC_LEN_ERR, IBFS_WC_RECV));
	expect_error(IBV_WC_REM_INV_REQ_ERR);
	CHECK(side_state(&b) == IBV_QPS_ERR && b.events[IBV_EVENT_QP_REQ_ERR] == 1);
	pair_close(&a, &b);
	/* The same in the middle of a long message. */
	pair_open(&a, &b, IBV_QPT_RC);
	CHECK(!side_recv(&b, 0, 300000) && !side_send(&a, IBFS_WR_SEND, 0, 600000, 0, 0));
	CHECK(expect_wc(&b, IBV_WC_LOC_LEN_ERR, IBFS_WC_RECV));
	expect_error(IBV_WC_REM_INV_REQ_ERR);
	pair_close(&a, &b);
}

static void test_local_prot(void)
{
	struct ibv_sge sge;
	struct ibfs_wr wr;

	pair_open(&a, &b, IBV_QPT_RC);
	wr = wr_of(&a, IBFS_WR_SEND, &sge, 0, 8);
	CHECK(!side_recv(&b, 0, 100) && !a.ops->post_send(a.qp, &wr));
	CHECK(expect_wc(&b, IBV_WC_SUCCESS, -1) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	/* The one before completes well, the one after is flushed. */
	CHECK(!side_recv(&b, 0, 100) && !a.ops->post_send(a.qp, &wr));
	sge.lkey ^= 1;
	CHECK(!a.ops->post_send(a.qp, &wr));
	sge.lkey ^= 1;
	CHECK(!a.ops->post_send(a.qp, &wr));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(expect_wc(&a, IBV_WC_LOC_PROT_ERR, -1));
	CHECK(expect_wc(&a, IBV_WC_WR_FLUSH_ERR, -1) && no_wc(&a));
	pair_close(&a, &b);
}

/* A receive request with a bad key: here a protection error, there an operation error. */
static void test_remote_op(void)
{
	struct ibv_sge sge;
	struct ibfs_recv_wr recv = { .sg_list = &sge, .num_sge = 1 };

	pair_open(&a, &b, IBV_QPT_RC);
	sge = (struct ibv_sge){ 0, 100, b.key ^ 1 };
	CHECK(!b.ops->post_recv(b.qp, &recv) && !side_send(&a, IBFS_WR_SEND, 0, 100, 0, 0));
	CHECK(expect_wc(&b, IBV_WC_LOC_PROT_ERR, IBFS_WC_RECV));
	expect_error(IBV_WC_REM_OP_ERR);
	pair_close(&a, &b);
}

/* Keys, bounds, permissions and PDs, of writes, reads and atomics. Nothing is touched. */
static void test_access(void)
{
	static const struct {
		unsigned int opcode, access;
		uint64_t at;
		uint32_t flip;
		bool other_pd;
	} cases[] = {
		{ IBFS_WR_RDMA_WRITE, ALL_ACCESS, 0, 1, false },
		{ IBFS_WR_RDMA_WRITE, ALL_ACCESS, 0, 0x100, false },
		{ IBFS_WR_RDMA_WRITE, ALL_ACCESS, 4090, 0, false },
		{ IBFS_WR_RDMA_WRITE, ALL_ACCESS, -4ULL, 0, false },
		{ IBFS_WR_RDMA_WRITE, ALL_ACCESS & ~IBV_ACCESS_REMOTE_WRITE, 0, 0, false },
		{ IBFS_WR_RDMA_WRITE, ALL_ACCESS, 0, 0, true },
		{ IBFS_WR_RDMA_READ, ALL_ACCESS, 0, 1, false },
		{ IBFS_WR_RDMA_READ, ALL_ACCESS, 4089, 0, false },
		{ IBFS_WR_RDMA_READ, ALL_ACCESS & ~IBV_ACCESS_REMOTE_READ, 0, 0, false },
		{ IBFS_WR_RDMA_READ, ALL_ACCESS, 0, 0, true },
		{ IBFS_WR_ATOMIC_FETCH_AND_ADD, ALL_ACCESS, 4096, 0, false },
		{ IBFS_WR_ATOMIC_FETCH_AND_ADD, ALL_ACCESS & ~IBV_ACCESS_REMOTE_ATOMIC, 0, 0, false },
		{ IBFS_WR_ATOMIC_CMP_AND_SWP, ALL_ACCESS, 0, 1, false },
		{ IBFS_WR_ATOMIC_CMP_AND_SWP, ALL_ACCESS, 0, 0, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ibfs_pd *pd, *own;
		struct ibv_sge sge;
		struct ibfs_mr *mr;
		struct ibfs_wr wr;
		uint32_t key;

		pair_open(&a, &b, IBV_QPT_RC);
		CHECK(!b.ops->alloc_pd(b.dev, &pd));
		own = b.pd;
		b.pd = cases[i].other_pd ? pd : own;
		mr = side_reg(&b, 65536, 4096, 0, cases[i].access);
		b.pd = own;
		key = mr_key(&b, mr) ^ cases[i].flip;
		memset(a.data, 0x55, 4096);
		wr = wr_of(&a, cases[i].opcode, &sge, 0, 8);
		wr.rdma.remote_addr = cases[i].at;
		wr.rdma.rkey = key;
		if (cases[i].opcode >= IBFS_WR_ATOMIC_CMP_AND_SWP) {
			wr.atomic.compare_add = 0;
			wr.atomic.swap = 1;
			wr.atomic.rkey = key;
		}
		CHECK(!a.ops->post_send(a.qp, &wr));
		expect_error(IBV_WC_REM_ACCESS_ERR);
		CHECK(b.events[IBV_EVENT_QP_ACCESS_ERR] == 1 && side_state(&b) == IBV_QPS_ERR);
		for (int j = 0; j < SIDE_MEM; j++)
			if (b.data[j]) {
				CHECK(!"memory was touched");
				break;
			}
		CHECK(!b.ops->dereg_mr(mr) && !b.ops->dealloc_pd(pd));
		pair_close(&a, &b);
	}
}

/* Operations that the QP doesn't allow, misaligned atomics, more reads than resources. */
static void test_invalid(void)
{
	struct ibv_sge sge;
	struct ibfs_wr wr;

	for (int i = 0; i < 4; i++) {
		side_open(&a, "rxe0");
		side_open(&b, "rxe1");
		if (i < 3)
			b.attr.qp_access_flags = ALL_ACCESS & ~(IBV_ACCESS_REMOTE_WRITE << i);
		side_qp(&a);
		side_qp(&b);
		connect_sides(&a, &b);
		wr = wr_of(&a, i == 0 ? IBFS_WR_RDMA_WRITE : i == 1 ? IBFS_WR_RDMA_READ :
			   IBFS_WR_ATOMIC_FETCH_AND_ADD, &sge, 0, 8);
		wr.rdma.remote_addr = i == 3 ? 4 : 0;
		wr.rdma.rkey = b.key;
		if (i >= 2)
			wr.atomic.rkey = b.key;
		CHECK(!a.ops->post_send(a.qp, &wr));
		expect_error(IBV_WC_REM_INV_REQ_ERR);
		CHECK(b.events[IBV_EVENT_QP_REQ_ERR] == 1);
		pair_close(&a, &b);
	}
	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	b.attr.max_dest_rd_atomic = 0;
	side_qp(&a);
	side_qp(&b);
	connect_sides(&a, &b);
	CHECK(!side_send(&a, IBFS_WR_RDMA_READ, 0, 8, 0, b.key));
	expect_error(IBV_WC_REM_INV_REQ_ERR);
	pair_close(&a, &b);
	/* As initiator with none of its own. */
	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	a.attr.max_rd_atomic = 0;
	side_qp(&a);
	side_qp(&b);
	connect_sides(&a, &b);
	CHECK(!side_send(&a, IBFS_WR_RDMA_READ, 0, 8, 0, b.key));
	expect_error(IBV_WC_LOC_QP_OP_ERR);
	pair_close(&a, &b);
}

/* A write with immediate whose write isn't allowed: the receive request tells of it. */
static void test_local_access(void)
{
	pair_open(&a, &b, IBV_QPT_RC);
	CHECK(!side_recv(&b, 0, 100));
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE_WITH_IMM, 0, 8, 0, b.key ^ 1));
	CHECK(expect_wc(&b, IBV_WC_LOC_ACCESS_ERR, IBFS_WC_RECV_RDMA_WITH_IMM));
	expect_error(IBV_WC_REM_ACCESS_ERR);
	pair_close(&a, &b);
}

/* The peer is gone: retries, one after the other, then the error. */
static void test_retry_exceeded(void)
{
	struct port *port;
	uint64_t before;
	double start;

	pair_open(&a, &b, IBV_QPT_RC);
	port = side_port(&a);
	before = port->cnt.xmit_pkts;
	CHECK(!b.ops->destroy_qp(b.qp, &b.client));
	b.qp = NULL;
	start = now();
	CHECK(!side_send(&a, IBFS_WR_SEND, 0, 8, 0, 0) && !side_send(&a, IBFS_WR_SEND, 0, 8, 0, 0));
	expect_error(IBV_WC_RETRY_EXC_ERR);
	CHECK(expect_wc(&a, IBV_WC_WR_FLUSH_ERR, -1));
	/* 4.096 us * 2^14, four times. */
	CHECK(now() - start > 4 * 0.067 && now() - start < 8 * 0.067);
	CHECK(port->cnt.xmit_pkts - before == 8);
	pair_close(&a, &b);
}

static void test_rnr(void)
{
	struct ibfs_wc wc;
	double start;

	/* All timer codes: one RNR NAK, then success after no less than the time it says. */
	for (unsigned int code = 0; code < 32; code++) {
		static const double ms[] = {
			655.36, .01, .02, .03, .04, .06, .08, .12, .16, .24, .32, .48, .64, .96,
			1.28, 1.92, 2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96,
			61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
		};

		side_open(&a, "rxe0");
		side_open(&b, "rxe1");
		b.attr.min_rnr_timer = code;
		a.attr.rnr_retry = 1;
		side_qp(&a);
		side_qp(&b);
		connect_sides(&a, &b);
		CHECK(!side_send(&a, IBFS_WR_SEND, 0, 8, 0, 0));
		for (int i = 0; i < 4; i++)
			ev_run(t.ibfs.loop, EVRUN_NOWAIT);
		start = now();
		CHECK(!side_recv(&b, 0, 8));
		CHECK(side_wc(&a, &wc) && !wc.status);
		CHECK(now() - start >= ms[code] / 1e3 - 1e-6);
		CHECK(now() - start <= ms[code] / 1e3 + 0.002);
		pair_close(&a, &b);
	}
	pair_open(&a, &b, IBV_QPT_RC);
	CHECK(!side_send(&a, IBFS_WR_SEND, 0, 8, 0, 0));
	expect_error(IBV_WC_RNR_RETRY_EXC_ERR);
	pair_close(&a, &b);
	/* 7 is for ever. */
	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	a.attr.rnr_retry = 7;
	side_qp(&a);
	side_qp(&b);
	connect_sides(&a, &b);
	CHECK(!side_send(&a, IBFS_WR_SEND, 0, 8, 0, 0));
	CHECK(!side_wc_in(&a, &wc, 2));
	CHECK(!side_recv(&b, 0, 8) && side_wc(&a, &wc) && !wc.status);
	pair_close(&a, &b);
}

/* Flush in order, both queues, and what is posted afterwards. */
static void test_flush(void)
{
	struct ibfs_wc wc;

	pair_open(&a, &b, IBV_QPT_RC);
	for (int i = 0; i < 5; i++)
		CHECK(!side_recv(&a, 0, 8));
	CHECK(!side_to(&a, IBV_QPS_ERR, 0));
	for (int i = 0; i < 3; i++)
		CHECK(!side_send(&a, IBFS_WR_SEND, 0, 8, 0, 0));
	CHECK(!side_recv(&a, 0, 8));
	for (unsigned int i = 6; i <= 8; i++)
		CHECK(side_wc(&a, &wc) && wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == i);
	for (unsigned int i = 1; i <= 5; i++)
		CHECK(side_wc(&a, &wc) && wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == i);
	CHECK(side_wc(&a, &wc) && wc.wr_id == 9 && no_wc(&a));
	/* From RESET on it is as new. */
	CHECK(!side_to(&a, IBV_QPS_RESET, 0) && !side_to(&b, IBV_QPS_RESET, 0));
	connect_sides(&a, &b);
	CHECK(!side_recv(&b, 0, 8) && !side_send(&a, IBFS_WR_SEND, 0, 8, 0, 0));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1) && expect_wc(&b, IBV_WC_SUCCESS, -1));
	pair_close(&a, &b);
}

/* More completions than the CQ holds: it and its QPs go into error. */
static void test_overrun(void)
{
	struct ibfs_cq *small;
	struct ibfs_cq_attr attr;

	pair_open(&a, &b, IBV_QPT_RC);
	CHECK(!a.ops->create_cq(a.dev, 3, &a.client, &small));
	CHECK(!a.ops->destroy_qp(a.qp, &a.client));
	a.init.send_cq = small;
	side_qp(&a);
	CHECK(!side_to(&b, IBV_QPS_RESET, 0));
	connect_sides(&a, &b);
	for (int i = 0; i < 5; i++)
		CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 8, 0, b.key));
	pass(0.01);
	a.ops->query_cq(small, &attr);
	CHECK(attr.error && a.events[IBV_EVENT_CQ_ERR] == 1 && a.events[IBV_EVENT_QP_FATAL] == 1);
	CHECK(side_state(&a) == IBV_QPS_ERR && a.ops->peek_cq(small, 9) == 3);
	CHECK(!a.ops->destroy_qp(a.qp, &a.client));
	a.qp = NULL;
	CHECK(!a.ops->destroy_cq(small));
	pair_close(&a, &b);
}

/* A response that fits no request. */
static void test_bad_response(void)
{
	struct packet pkt;
	struct tx tx = { .opcode = OP_RC | OP_ATOMIC_ACK, .segs = 1, .pkey = 0xffff,
			 .aeth = AETH_NO_CREDITS << 24 };

	pair_open(&a, &b, IBV_QPT_RC);
	b.qp->state = IBV_QPS_RESET;	/* says nothing itself */
	CHECK(!side_send(&a, IBFS_WR_RDMA_READ, 0, 8, 0, b.key));
	for (int i = 0; i < 4; i++)
		ev_run(t.ibfs.loop, EVRUN_NOWAIT);
	packet_init(&pkt);
	CHECK(!net_xmit(b.qp, &pkt, &tx));
	expect_error(IBV_WC_BAD_RESP_ERR);
	pair_close(&a, &b);
}

/* On unreliable types an error stops the send queue only, which can go on. */
static void test_sqe(void)
{
	struct ibv_sge sge;
	struct ibfs_wr wr;

	pair_open(&a, &b, IBV_QPT_UC);
	wr = wr_of(&a, IBFS_WR_SEND, &sge, 0, 8);
	sge.lkey ^= 1;
	CHECK(!a.ops->post_send(a.qp, &wr));
	sge.lkey ^= 1;
	CHECK(!a.ops->post_send(a.qp, &wr));
	CHECK(expect_wc(&a, IBV_WC_LOC_PROT_ERR, -1) && expect_wc(&a, IBV_WC_WR_FLUSH_ERR, -1));
	CHECK(side_state(&a) == IBV_QPS_SQE);
	CHECK(!side_recv(&a, 0, 8) && !side_send(&b, IBFS_WR_SEND, 0, 8, 0, 0));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_RECV));
	CHECK(!side_to(&a, IBV_QPS_RTS, 0));
	CHECK(!side_recv(&b, 0, 8) && !a.ops->post_send(a.qp, &wr));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(expect_wc(&b, IBV_WC_SUCCESS, IBFS_WC_SEND) && expect_wc(&b, IBV_WC_SUCCESS, IBFS_WC_RECV));
	pair_close(&a, &b);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "length", test_length }, { "local_prot", test_local_prot },
		{ "remote_op", test_remote_op }, { "access", test_access },
		{ "invalid", test_invalid }, { "local_access", test_local_access },
		{ "retry_exceeded", test_retry_exceeded }, { "rnr", test_rnr },
		{ "flush", test_flush }, { "overrun", test_overrun },
		{ "bad_response", test_bad_response }, { "sqe", test_sqe }, { 0 },
	};

	return run_tests(tests, argc, argv);
}
