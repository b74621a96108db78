/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Properties of the transport on links that drop, corrupt, duplicate, reorder
 * and delay: random work, replayable by its seed (verbs_faults TEST FIRST RUNS).
 * RC: every message arrives once, in order, intact, every read and atomic gives
 * what was there. UC and UD: what arrives is intact, and was sent.
 */
#include "verbs_test.h"

#define MESSAGES	40
#define SLOT		20000	/* bytes of b's memory for one receive */
#define RECVS		16
#define COUNTER		(SIDE_MEM - 64)
#define NUMBERS		(SIDE_MEM - 4096)	/* 8 bytes a message */
#define READ_AT		600000
#define READ_LEN	100000
#define WRITE_AT	(SLOT * RECVS)

static struct side a, b;
static uint64_t rng;
static uint32_t seed;
static bool in_disorder;

static uint32_t rnd(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return n ? (rng >> 11) % n : 0;
}

static void make_faults(void)
{
	struct fault_conf conf = { .seed = seed };
	const double scale = 0.5;

	conf.drop = scale * rnd(100) / 1000.0;
	conf.corrupt = scale * rnd(50) / 1000.0;
	conf.duplicate = rnd(2) ? scale * rnd(100) / 1000.0 : 0;
	conf.reorder = rnd(2) ? scale * rnd(100) / 1000.0 : 0;
	conf.delay = rnd(2) ? rnd(1000) * 1e-6 : 0;
	conf.jitter = rnd(2) ? rnd(1000) * 1e-6 : 0;
	in_disorder = conf.duplicate || conf.reorder;
	CHECK(!link_set_faults(side_port(&a)->link, &conf));
	conf.seed++;
	CHECK(!link_set_faults(side_port(&b)->link, &conf));
}

struct plan {
	unsigned int opcode;
	uint32_t len, off;
	uint64_t number;		/* of an atomic: what it has to find */
};

static bool takes_recv(unsigned int opcode)
{
	return opcode == IBFS_WR_SEND || opcode == IBFS_WR_SEND_WITH_IMM ||
	       opcode == IBFS_WR_RDMA_WRITE_WITH_IMM;
}

static void post_one(const struct plan *plan, unsigned int n)
{
	struct ibv_sge sge;
	struct ibfs_wr wr = wr_of(&a, plan->opcode, &sge, SLOT * (n % RECVS), plan->len);

	wr.wr_id = n;
	wr.ex.imm_data = htonl(n);
	if (!rnd(8))
		wr.send_flags |= IBV_SEND_FENCE;
	if (plan->opcode == IBFS_WR_ATOMIC_WRITE) {
		wr.num_sge = 0;
		wr.atomic.remote_addr = NUMBERS + 8 * n;
		wr.atomic.swap = seed + n;
		wr.atomic.rkey = b.key;
		CHECK(!a.ops->post_send(a.qp, &wr));
		return;
	}
	if (plan->opcode == IBFS_WR_RDMA_READ) {
		sge.addr = WRITE_AT + SLOT * (n % 8);
		wr.rdma.remote_addr = READ_AT + plan->off;
	} else if (plan->opcode == IBFS_WR_ATOMIC_FETCH_AND_ADD) {
		sge.addr = NUMBERS + 8 * n;
		wr.atomic.remote_addr = COUNTER;
		wr.atomic.compare_add = 1;
		wr.atomic.rkey = b.key;
		CHECK(!a.ops->post_send(a.qp, &wr));
		return;
	} else {
		fill(a.data + sge.addr, plan->len, seed + n);
		wr.rdma.remote_addr = WRITE_AT;
	}
	wr.rdma.rkey = b.key;
	CHECK(!a.ops->post_send(a.qp, &wr));
}

static bool intact(const uint8_t *data, uint32_t len, uint32_t s)
{
	uint8_t *want = malloc(len + 1);
	bool same;

	fill(want, len, s);
	same = !memcmp(want, data, len);
	free(want);
	return same;
}

static struct plan make_plan(uint64_t *atomics, unsigned int n)
{
	static const unsigned int ops[] = {
		IBFS_WR_SEND, IBFS_WR_SEND_WITH_IMM, IBFS_WR_RDMA_WRITE, IBFS_WR_RDMA_WRITE_WITH_IMM,
		IBFS_WR_RDMA_READ, IBFS_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct plan plan = { .opcode = ops[rnd(6)], .len = rnd(2) ? rnd(100) : rnd(SLOT) };

	if (plan.opcode == IBFS_WR_RDMA_READ)
		plan.off = rnd(READ_LEN - plan.len);
	if (plan.opcode == IBFS_WR_ATOMIC_FETCH_AND_ADD && n & 1)
		plan.opcode = IBFS_WR_ATOMIC_WRITE;
	if (plan.opcode == IBFS_WR_ATOMIC_FETCH_AND_ADD) {
		plan.len = 8;
		plan.number = (*atomics)++;
	}
	return plan;
}

/* The next message that b gets: the next planned one that takes a receive request. */
static void check_recv(const struct plan *plans, const struct ibfs_wc *wc, unsigned int *expect,
		       unsigned int recvs)
{
	const struct plan *plan;

	while (*expect < MESSAGES && !takes_recv(plans[*expect].opcode))
		(*expect)++;
	CHECK(*expect < MESSAGES && !wc->status);
	if (*expect == MESSAGES)
		return;
	plan = &plans[*expect];
	CHECK(wc->byte_len == plan->len && wc->wr_id == recvs);
	if (plan->opcode != IBFS_WR_SEND)
		CHECK(wc->imm_data == htonl(*expect));
	if (plan->opcode != IBFS_WR_RDMA_WRITE_WITH_IMM)
		CHECK(intact(b.data + SLOT * (recvs % RECVS), plan->len, seed + *expect));
	(*expect)++;
}

static void check_send(const struct plan *plans, const struct ibfs_wc *wc, unsigned int done)
{
	const struct plan *plan = &plans[done];

	CHECK(!wc->status && wc->wr_id == done);
	if (wc->status)
		printf("status %s\n", wc_status_name(wc->status));
	if (plan->opcode == IBFS_WR_ATOMIC_FETCH_AND_ADD)
		CHECK(*(uint64_t *)(a.data + NUMBERS + 8 * done) == plan->number);
	if (plan->opcode == IBFS_WR_ATOMIC_WRITE)
		CHECK(*(uint64_t *)(b.data + NUMBERS + 8 * done) == seed + done);
	if (plan->opcode == IBFS_WR_RDMA_READ)
		CHECK(!memcmp(a.data + WRITE_AT + SLOT * (done % 8), b.data + READ_AT + plan->off, plan->len));
}

static void post_recv_n(unsigned int n)
{
	struct ibv_sge sge = { SLOT * (n % RECVS), SLOT, b.key };
	struct ibfs_recv_wr wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1 };

	CHECK(!b.ops->post_recv(b.qp, &wr));
}

static void run_rc(void)
{
	unsigned int posted = 0, done = 0, recvs = 0, recv_posted = 0, expect = 0;
	struct plan plans[MESSAGES];
	uint64_t atomics = 0;
	struct ibfs_wc wc;
	double end;

	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	a.attr.path_mtu = b.attr.path_mtu = IBV_MTU_256 + rnd(5);
	a.attr.sq_psn = b.attr.rq_psn = 0xffffff - rnd(64);
	a.attr.rnr_retry = 7;
	a.attr.retry_cnt = 7;
	a.attr.timeout = 11 + rnd(4);
	a.attr.max_rd_atomic = 1 + rnd(4);
	side_qp(&a);
	side_qp(&b);
	connect_sides(&a, &b);
	for (unsigned int i = 0; i < MESSAGES; i++)
		plans[i] = make_plan(&atomics, i);
	fill(b.data + READ_AT, READ_LEN, seed);
	make_faults();
	end = now() + 600;
	while (done < MESSAGES && now() < end && !t.failed) {
		if (posted < MESSAGES && posted - done < RECVS / 2 && rnd(2)) {
			post_one(&plans[posted], posted);
			posted++;
		}
		if (recv_posted - recvs < RECVS - 1 && !rnd(4))
			post_recv_n(recv_posted++);
		tick(0.0002);
		while (b.ops->poll_cq(b.cq, 1, &wc) == 1)
			check_recv(plans, &wc, &expect, recvs++);
		while (a.ops->poll_cq(a.cq, 1, &wc) == 1)
			check_send(plans, &wc, done++);
	}
	CHECK(done == MESSAGES);
	while (expect < MESSAGES && !takes_recv(plans[expect].opcode))
		expect++;
	CHECK(expect == MESSAGES);
	CHECK(*(uint64_t *)(b.data + COUNTER) == atomics);
	pair_close(&a, &b);
}

/* UC: messages come whole, in the order sent, some not at all. UD: in any order, perhaps twice. */
static void run_lossy(unsigned int type)
{
	struct ibfs_ah *ah = NULL;
	struct ibv_ah_attr to;
	uint32_t last = 0, grh = type == IBV_QPT_UD ? 40 : 0;
	struct ibfs_wc wc;

	pair_open(&a, &b, type);
	to = (struct ibv_ah_attr){ .dlid = side_port(&b)->lid, .port_num = 1 };
	if (type == IBV_QPT_UD)
		CHECK(!a.ops->create_ah(a.pd, &to, &ah));
	make_faults();
	for (uint32_t i = 0; i < RECVS; i++)
		post_recv_n(i);
	for (uint32_t n = 1; n <= 100; n++) {
		uint32_t len = grh ? rnd(1024) : rnd(SLOT);
		struct ibv_sge sge;
		struct ibfs_wr wr = wr_of(&a, IBFS_WR_SEND_WITH_IMM, &sge, 0, len);

		fill(a.data, len, seed + n);
		wr.ex.imm_data = htonl(n << 16 | len);
		if (ah) {
			wr.ud.ah = ah;
			wr.ud.remote_qpn = b.qpn;
			wr.ud.remote_qkey = 0x1234;
		}
		CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_SEND));
		tick(0.0001);
		while (b.ops->poll_cq(b.cq, 1, &wc) == 1) {
			uint32_t imm = ntohl(wc.imm_data);

			CHECK(!wc.status && wc.byte_len == grh + (imm & 0xffff));
			/* A cable that repeats or reorders makes a UC message come again. */
			CHECK(type == IBV_QPT_UD || in_disorder || imm >> 16 > last);
			CHECK(imm >> 16 <= n);
			last = imm >> 16;
			CHECK(intact(b.data + SLOT * (wc.wr_id % RECVS) + grh, imm & 0xffff,
				     seed + last));
			post_recv_n(wc.wr_id + RECVS);
		}
	}
	if (ah)
		a.ops->destroy_ah(ah);
	pair_close(&a, &b);
}

int main(int argc, char **argv)
{
	unsigned int first = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	unsigned int runs = argc > 3 ? strtoul(argv[3], NULL, 0) : 1;
	const char *what = argc > 1 ? argv[1] : "rc";

	for (seed = first; seed < first + runs; seed++) {
		rng = seed * 0x9e3779b97f4a7c15ULL + 1;
		setup();
		if (!strcmp(what, "rc"))
			run_rc();
		else
			run_lossy(!strcmp(what, "uc") ? IBV_QPT_UC : IBV_QPT_UD);
		teardown();
		if (t.failed) {
			printf("verbs_faults %s %u: failed\n", what, seed);
			return 1;
		}
	}
	return 0;
}
