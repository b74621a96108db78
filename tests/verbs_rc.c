/* SPDX-License-Identifier: BSD-2-Clause */
/* Reliable connections on perfect links: every operation, every size that matters, both ways. */
#include "verbs_test.h"

static struct side a, b;

static const uint32_t sizes[] = { 0, 1, 3, 8, 255, 1023, 1024, 1025, 2048, 4096, 10000, 65536, 262144,
				  262145, 300000, 500000 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void test_send(void)
{
	struct ibfs_wc wc;

	pair_open(&a, &b, IBV_QPT_RC);
	for (size_t i = 0; i < SIZES; i++) {
		fill(a.data, sizes[i], i);
		memset(b.data, 0, SIDE_MEM);
		CHECK(!side_recv(&b, 64, SIDE_MEM - 64));
		CHECK(!side_send(&a, IBFS_WR_SEND, 0, sizes[i], 0, 0));
		CHECK(side_wc(&b, &wc) && wc.status == IBV_WC_SUCCESS && wc.opcode == IBFS_WC_RECV);
		CHECK(wc.byte_len == sizes[i] && wc.qp_num == b.qpn && wc.src_qp == a.qpn);
		CHECK(wc.wr_id == b.next_id && !wc.wc_flags);
		CHECK(!memcmp(a.data, b.data + 64, sizes[i]));
		CHECK(sizes[i] + 64 >= SIDE_MEM || !b.data[64 + sizes[i]]);
		CHECK(side_wc(&a, &wc) && wc.status == IBV_WC_SUCCESS && wc.opcode == IBFS_WC_SEND);
		CHECK(wc.wr_id == a.next_id && wc.qp_num == a.qpn);
	}
	pair_close(&a, &b);
}

static void test_imm(void)
{
	struct ibfs_wc wc;

	pair_open(&a, &b, IBV_QPT_RC);
	for (size_t i = 0; i < SIZES; i++) {
		CHECK(!side_recv(&b, 0, SIDE_MEM));
		CHECK(!side_send(&a, IBFS_WR_SEND_WITH_IMM, 0, sizes[i], 0, 0));
		CHECK(side_wc(&b, &wc) && wc.opcode == IBFS_WC_RECV && wc.byte_len == sizes[i]);
		CHECK(wc.wc_flags == IBV_WC_WITH_IMM);
		CHECK(wc.imm_data == htonl(0xfeed0000 + a.next_id));
		CHECK(expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_SEND));
		fill(a.data, sizes[i], i + 100);
		CHECK(!side_recv(&b, 0, 0));
		CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE_WITH_IMM, 0, sizes[i], 5, b.key));
		CHECK(side_wc(&b, &wc) && wc.opcode == IBFS_WC_RECV_RDMA_WITH_IMM);
		CHECK(wc.byte_len == sizes[i] && wc.wc_flags == IBV_WC_WITH_IMM);
		CHECK(!memcmp(a.data, b.data + 5, sizes[i]));
		CHECK(expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_RDMA_WRITE));
	}
	pair_close(&a, &b);
}

static void test_write_read(void)
{
	struct ibfs_wc wc;

	pair_open(&a, &b, IBV_QPT_RC);
	for (size_t i = 0; i < SIZES; i++) {
		fill(a.data, sizes[i], i + 7);
		memset(b.data, 0, SIDE_MEM);
		CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, sizes[i], 3, b.key));
		CHECK(expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_RDMA_WRITE));
		CHECK(!memcmp(a.data, b.data + 3, sizes[i]) && !b.data[3 + sizes[i]]);
		fill(b.data + 9, sizes[i], i + 70);
		CHECK(!side_send(&a, IBFS_WR_RDMA_READ, 1, sizes[i], 9, b.key));
		CHECK(side_wc(&a, &wc) && wc.status == IBV_WC_SUCCESS &&
		      wc.opcode == IBFS_WC_RDMA_READ && wc.byte_len == sizes[i]);
		CHECK(!memcmp(a.data + 1, b.data + 9, sizes[i]));
	}
	CHECK(no_wc(&b));
	pair_close(&a, &b);
}

/* Scatter and gather over elements of all sizes, zero ones too; inline. */
static void test_sge(void)
{
	struct ibv_sge from[4], to[4];
	struct ibfs_wr wr = { .opcode = IBFS_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
			      .sg_list = from, .num_sge = 4 };
	struct ibfs_recv_wr recv = { .sg_list = to, .num_sge = 4 };
	uint8_t flat[8192], got[8192];
	struct ibfs_wc wc;

	pair_open(&a, &b, IBV_QPT_RC);
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t len = 0, at = 0, room = 8192;

		for (int j = 0; j < 4; j++) {
			from[j] = (struct ibv_sge){ 10000 * j + i, i * 7 * j % 2000, a.key };
			fill(a.data + from[j].addr, from[j].length, i + j);
			memcpy(flat + len, a.data + from[j].addr, from[j].length);
			len += from[j].length;
			to[j] = (struct ibv_sge){ 20000 * j, j == 3 ? room : i * 13 % 1500, b.key };
			room -= to[j].length;
		}
		CHECK(!b.ops->post_recv(b.qp, &recv));
		CHECK(!a.ops->post_send(a.qp, &wr));
		CHECK(side_wc(&b, &wc) && wc.byte_len == len && !wc.status);
		for (int j = 0; j < 4 && at < len; j++) {
			uint32_t n = to[j].length < len - at ? to[j].length : len - at;

			memcpy(got + at, b.data + to[j].addr, n);
			at += n;
		}
		CHECK(at == len && !memcmp(flat, got, len));
		CHECK(expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_SEND));
	}
	wr.send_flags |= IBV_SEND_INLINE;
	wr.inline_data = "in the request itself";
	wr.inline_len = 22;
	CHECK(!b.ops->post_recv(b.qp, &recv) && !a.ops->post_send(a.qp, &wr));
	CHECK(side_wc(&b, &wc) && wc.byte_len == 22);
	wr.inline_len = 257;
	CHECK(a.ops->post_send(a.qp, &wr) == -EINVAL);
	pair_close(&a, &b);
}

/* Many requests at once complete in order; unsignaled ones don't show; a full queue says so. */
static void test_order(void)
{
	struct ibfs_wc wc;
	struct ibv_sge sge;
	unsigned int posted = 0;

	pair_open(&a, &b, IBV_QPT_RC);
	for (int i = 0; i < 64; i++)
		CHECK(!side_recv(&b, 1000 * i, 1000));
	CHECK(side_recv(&b, 0, 1) == -ENOMEM);
	for (;; posted++) {
		struct ibfs_wr wr = wr_of(&a, IBFS_WR_SEND, &sge, posted, 100 + posted);
		int err;

		if (posted % 3)
			wr.send_flags = 0;
		err = a.ops->post_send(a.qp, &wr);
		if (err) {
			CHECK(err == -ENOMEM);
			break;
		}
	}
	CHECK(posted == 64);
	for (unsigned int i = 0; i < 64; i++)
		CHECK(side_wc(&b, &wc) && wc.byte_len == 100 + i && wc.wr_id == i + 1);
	for (unsigned int i = 0; i < 64; i += 3)
		CHECK(side_wc(&a, &wc) && wc.wr_id == i + 1);
	CHECK(no_wc(&a) && no_wc(&b));
	pair_close(&a, &b);
}

/* What ACKs are sent: many messages that wait together need few. */
static void test_coalescing(void)
{
	struct port *port;
	uint64_t before;
	struct ibfs_wc wc;

	pair_open(&a, &b, IBV_QPT_RC);
	port = side_port(&b);
	before = port->cnt.xmit_pkts;
	for (int i = 0; i < 64; i++)
		CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 8, 0, b.key));
	for (int i = 0; i < 64; i++)
		CHECK(side_wc(&a, &wc) && !wc.status);
	CHECK(port->cnt.xmit_pkts - before <= 5);
	/* A packet of many segments counts as what it stands for. */
	before = port->cnt.rcv_pkts;
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 10 * 1024 + 1, 0, b.key));
	CHECK(side_wc(&a, &wc) && !wc.status);
	CHECK(port->cnt.rcv_pkts - before == 11);
	pair_close(&a, &b);
}

/* Two QPs of one HCA, and a QP with itself: the port doesn't send these away. */
static void test_loopback(void)
{
	struct ibfs_wc wc;

	side_open(&a, "rxe0");
	side_open(&b, "rxe0");
	side_qp(&a);
	side_qp(&b);
	connect_sides(&a, &b);
	fill(a.data, 5000, 1);
	CHECK(!side_recv(&b, 0, 5000) && !side_send(&a, IBFS_WR_SEND, 0, 5000, 0, 0));
	CHECK(side_wc(&b, &wc) && wc.byte_len == 5000 && !memcmp(a.data, b.data, 5000));
	CHECK(side_wc(&a, &wc) && !wc.status);
	CHECK(!side_send(&a, IBFS_WR_RDMA_READ, 0, 5000, 1, b.key));
	CHECK(side_wc(&a, &wc) && !wc.status && !memcmp(a.data, b.data + 1, 4999));
	pair_close(&a, &b);
}

/* Solicited events, notification, what was missed, N completions, moderation. */
static void test_notify(void)
{
	struct ibv_sge sge;
	struct ibfs_wr wr;
	struct ibfs_wc wc;

	pair_open(&a, &b, IBV_QPT_RC);
	for (int i = 0; i < 40; i++)
		CHECK(!side_recv(&b, 0, 100));
	CHECK(b.ops->req_notify_cq(b.cq, true, true) == 0);
	wr = wr_of(&a, IBFS_WR_SEND, &sge, 0, 10);
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(b.comps == 0 && b.ops->peek_cq(b.cq, 9) == 1);
	CHECK(b.ops->req_notify_cq(b.cq, true, true) == 1);
	wr.send_flags |= IBV_SEND_SOLICITED;
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(b.comps == 1);
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(b.comps == 1);
	CHECK(b.ops->peek_cq(b.cq, 2) == 2 && b.ops->peek_cq(b.cq, -1) == -EINVAL);
	CHECK(side_wc(&b, &wc) && side_wc(&b, &wc) && side_wc(&b, &wc) && no_wc(&b));
	wr.send_flags = IBV_SEND_SIGNALED;
	CHECK(b.ops->req_notify_cq(b.cq, false, false) == 0);
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(b.comps == 2 && side_wc(&b, &wc));
	CHECK(!b.ops->req_ncomp_notif(b.cq, 3));
	for (int i = 0; i < 3; i++) {
		CHECK(b.comps == 2);
		CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	}
	CHECK(b.comps == 3);
	/* After 4 of them, or 20 ms. */
	CHECK(!b.ops->modify_cq(b.cq, 4, 20000));
	CHECK(b.ops->req_notify_cq(b.cq, false, false) == 0);
	for (int i = 0; i < 4; i++) {
		CHECK(b.comps == 3);
		CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	}
	CHECK(b.comps == 4);
	CHECK(b.ops->req_notify_cq(b.cq, false, false) == 0);
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	pass(0.01);
	CHECK(b.comps == 4);
	pass(0.02);
	CHECK(b.comps == 5);
	pair_close(&a, &b);
}

/* A CQ keeps what it holds when it is resized, and can't become smaller than that. */
static void test_cq_resize(void)
{
	struct ibfs_cq_attr attr;
	struct ibfs_wc wc;

	pair_open(&a, &b, IBV_QPT_RC);
	CHECK(b.ops->resize_cq(b.cq, 0) == -EINVAL);
	for (int i = 0; i < 10; i++)
		CHECK(!side_recv(&b, 0, 100) && !side_send(&a, IBFS_WR_SEND, 0, i, 0, 0) &&
		      expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(b.ops->resize_cq(b.cq, 9) == -EINVAL);
	CHECK(!b.ops->resize_cq(b.cq, 10));
	b.ops->query_cq(b.cq, &attr);
	CHECK(attr.cqe == 10);
	CHECK(!b.ops->resize_cq(b.cq, 5000));
	for (unsigned int i = 0; i < 10; i++)
		CHECK(side_wc(&b, &wc) && wc.byte_len == i);
	pair_close(&a, &b);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "send", test_send }, { "imm", test_imm }, { "write_read", test_write_read },
		{ "sge", test_sge }, { "order", test_order }, { "coalescing", test_coalescing },
		{ "loopback", test_loopback }, { "notify", test_notify },
		{ "cq_resize", test_cq_resize }, { 0 },
	};

	return run_tests(tests, argc, argv);
}
