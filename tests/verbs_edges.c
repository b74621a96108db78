/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the transport's numbers end and objects go in the middle of something:
 * keys and numbers that are used again, packets that were doubled on their way,
 * timers of a queue that was idle, PSNs that many reads would use up.
 */
#include "hca/req.h"
#include "verbs_remote.h"

static struct side a, b;

static void turns(int n)
{
	while (n--)
		ev_run(t.ibfs.loop, EVRUN_NOWAIT);
}

/* A key that was given back stays shut for long, whatever else is registered. */
static void test_keys(void)
{
	static uint32_t seen[4000];
	const unsigned int num = sizeof(seen) / sizeof(seen[0]);
	unsigned int same = 0;
	uint32_t old;

	side_open(&a, "rxe0");
	for (unsigned int i = 0; i < num; i++) {
		struct ibfs_mr *mr = side_reg(&a, 0, 100, 0, ALL_ACCESS);

		seen[i] = mr_key(&a, mr);
		CHECK(seen[i] != a.key && !a.ops->dereg_mr(mr));
	}
	for (unsigned int i = 0; i < num; i++)
		for (unsigned int j = i < 1000 ? 0 : i - 1000; j < i; j++)
			same += seen[i] == seen[j];
	CHECK(!same);
	side_qp(&a);
	old = a.qpn;
	for (int i = 0; i < 150; i++) {
		CHECK(!a.ops->destroy_qp(a.qp, &a.client));
		side_qp(&a);
		same += a.qpn == old;
	}
	CHECK(!same);
	side_close(&a);
}

/*
 * An answer takes 40 ms of the 67 that the timer has. A request after some idle
 * time has all of them, not what is left of the last one's: no retry is allowed.
 */
static void test_idle_timer(void)
{
	struct fault_conf slow = { .delay = 0.01 }, none = { 0 };

	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	a.attr.retry_cnt = 0;
	side_qp(&a);
	side_qp(&b);
	connect_sides(&a, &b);
	CHECK(!link_set_faults(side_port(&a)->link, &slow));
	CHECK(!link_set_faults(side_port(&b)->link, &slow));
	for (int i = 0; i < 5; i++) {
		CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 8, 0, b.key));
		CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1));
		pass(0.015);
	}
	CHECK(!link_set_faults(side_port(&a)->link, &none));
	CHECK(!link_set_faults(side_port(&b)->link, &none));
	pair_close(&a, &b);
}

/* A RNR NAK that arrives twice counts once. */
static void test_double_rnr(void)
{
	struct fault_conf twice = { .duplicate = 1 }, none = { 0 };

	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	a.attr.rnr_retry = 2;
	b.attr.min_rnr_timer = 20;	/* 10 ms */
	side_qp(&a);
	side_qp(&b);
	connect_sides(&a, &b);
	CHECK(!link_set_faults(side_port(&b)->link, &twice));
	CHECK(!side_send(&a, IBFS_WR_SEND, 0, 8, 0, 0));
	pass(0.018);
	CHECK(a.qp->req.rnr_retries == 0 && side_state(&a) == IBV_QPS_RTS);
	CHECK(!side_recv(&b, 0, 8));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(!link_set_faults(side_port(&b)->link, &none));
	pair_close(&a, &b);
}

/* What a sends now is lost. */
static void send_lost(unsigned int opcode, unsigned int num)
{
	struct fault_conf all = { .drop = 1 }, none = { 0 };

	CHECK(!link_set_faults(side_port(&a)->link, &all));
	while (num--)
		CHECK(!side_send(&a, opcode, 0, 8, 0, b.key));
	turns(10);
	CHECK(!link_set_faults(side_port(&a)->link, &none));
}

/* A NAK that arrives twice is one retry, and one is allowed. */
static void test_double_nak(void)
{
	struct fault_conf twice = { .duplicate = 1 }, none = { 0 };

	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	a.attr.retry_cnt = 1;
	side_qp(&a);
	side_qp(&b);
	connect_sides(&a, &b);
	send_lost(IBFS_WR_RDMA_WRITE, 1);
	CHECK(!link_set_faults(side_port(&b)->link, &twice));
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 8, 0, b.key));
	for (int i = 0; i < 2; i++)
		CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(!link_set_faults(side_port(&b)->link, &none));
	pair_close(&a, &b);
}

/* Of messages that go again each is acknowledged: the last one may be lost once more. */
static void test_again_acked(void)
{
	uint64_t before;

	pair_open(&a, &b, IBV_QPT_RC);
	before = side_port(&b)->cnt.xmit_pkts;
	send_lost(IBFS_WR_RDMA_WRITE, 4);
	for (int i = 0; i < 4; i++)
		CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(side_port(&b)->cnt.xmit_pkts - before == 4);
	pair_close(&a, &b);
}

/* Four reads of a GiB in packets of 256 bytes have more PSNs than can be told apart. */
static void test_psn_window(void)
{
	const uint32_t gib = 1U << 30;
	struct ibfs_mr_init init = { .length = gib, .access = ALL_ACCESS };
	struct ibfs_mr *mr = NULL;
	struct ibv_sge sge;
	struct ibfs_wr wr;

	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	a.attr.path_mtu = b.attr.path_mtu = IBV_MTU_256;
	a.attr.sq_psn = 0xfffff0;
	a.attr.timeout = 0;
	side_qp(&a);
	side_qp(&b);
	connect_sides(&a, &b);
	init.mem = memory_own(gib);
	CHECK(init.mem && !a.ops->reg_mr(a.pd, &init, &mr));
	b.qp->state = IBV_QPS_RESET;	/* says nothing */
	for (int i = 0; i < 4; i++) {
		wr = wr_of(&a, IBFS_WR_RDMA_READ, &sge, 0, gib);
		sge.lkey = mr_key(&a, mr);
		CHECK(!a.ops->post_send(a.qp, &wr));
	}
	turns(10);
	CHECK(a.qp->req.rd_out == 1);
	CHECK(((a.qp->req.max_psn - a.qp->req.una) & PSN_MASK) == gib / 256);
	CHECK(!a.ops->destroy_qp(a.qp, &a.client));
	a.qp = NULL;
	CHECK(!a.ops->dereg_mr(mr));
	memory_put(init.mem);
	pair_close(&a, &b);
}

/*
 * The request of a read that was answered comes once more, and is answered once
 * more; the next read is no less welcome for that.
 */
static void test_read_again(void)
{
	struct tx tx = { .opcode = OP_RC | OP_READ_REQ, .psn = 0, .segs = 1, .pkey = 0xffff };
	struct packet pkt;

	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	a.attr.max_rd_atomic = b.attr.max_dest_rd_atomic = 1;
	side_qp(&a);
	side_qp(&b);
	connect_sides(&a, &b);
	remote_open(&b);
	fill(remote.mem, 1000, 1);
	CHECK(!side_send(&a, IBFS_WR_RDMA_READ, 0, 100, 0, b.key));
	CHECK(remote_wc(&a, IBV_WC_SUCCESS));
	tx.reth.rkey = htonl(b.key);
	tx.reth.len = htonl(100);
	packet_init(&pkt);
	CHECK(!net_xmit(a.qp, &pkt, &tx));
	turns(4);
	CHECK(remote.num == 1 && b.qp->resp.num_active == 1);
	CHECK(!side_send(&a, IBFS_WR_RDMA_READ, 500, 100, 500, b.key));
	CHECK(remote_wc(&a, IBV_WC_SUCCESS));
	CHECK(!memcmp(a.data + 500, remote.mem + 500, 100));
	CHECK(!b.qp->resp.num_active && remote.cancelled == 1);
	pair_close(&a, &b);
}

/* The responder's resources are made more or fewer while it has some to answer. */
static void test_fewer_resources(void)
{
	pair_open(&a, &b, IBV_QPT_RC);
	remote_open(&b);
	fill(remote.mem, 1000, 1);
	for (int i = 0; i < 3; i++)
		CHECK(!side_send(&a, IBFS_WR_RDMA_READ, 100 * i, 100, 100 * i, b.key));
	turns(6);
	CHECK(b.qp->resp.num_active == 3);
	CHECK(!side_to(&b, IBV_QPS_SQD, 0));
	b.attr.max_dest_rd_atomic = 9;
	CHECK(!side_to(&b, IBV_QPS_SQD, IBV_QP_MAX_DEST_RD_ATOMIC));
	b.attr.max_dest_rd_atomic = 3;
	CHECK(!side_to(&b, IBV_QPS_SQD, IBV_QP_MAX_DEST_RD_ATOMIC));
	CHECK(b.qp->resp.num_active == 3);
	for (int i = 0; i < 3; i++)
		CHECK(remote_wc(&a, IBV_WC_SUCCESS));
	CHECK(!memcmp(a.data, remote.mem, 300));
	b.attr.max_dest_rd_atomic = 0;
	CHECK(!side_to(&b, IBV_QPS_SQD, IBV_QP_MAX_DEST_RD_ATOMIC));
	CHECK(!b.qp->resp.num_active && !b.qp->resp.res_count);
	pair_close(&a, &b);
}

/* A datagram with a GRH to b, by hand: does it get there? */
static bool gets_there(uint8_t bth_flags, uint8_t version, uint8_t nxthdr, uint64_t prefix, uint64_t guid)
{
	struct port *from = side_port(&a), *to = side_port(&b);
	struct lrh lrh = { 0, LNH_GRH, htons(to->lid), 0, htons(from->lid) };
	struct grh grh = { .ver_tclass_flow = htonl((uint32_t)version << 28), .nxthdr = nxthdr };
	struct bth bth = { 0x64, bth_flags, htons(0xffff), htonl(b.qpn), 0 };
	struct deth deth = { htonl(0x1234), htonl(a.qpn) };
	__be64 gid[2] = { htobe64(prefix), htobe64(guid) };
	struct packet pkt;
	struct ibfs_wc wc;

	memcpy(grh.dgid, gid, 16);
	packet_init(&pkt);
	memcpy(packet_put(&pkt, sizeof(lrh)), &lrh, sizeof(lrh));
	memcpy(packet_put(&pkt, sizeof(grh)), &grh, sizeof(grh));
	memcpy(packet_put(&pkt, sizeof(bth)), &bth, sizeof(bth));
	memcpy(packet_put(&pkt, sizeof(deth)), &deth, sizeof(deth));
	CHECK(!side_recv(&b, 0, 100) && !port_xmit(from, &pkt));
	turns(2);
	return b.ops->poll_cq(b.cq, 1, &wc) == 1 && !wc.status && wc.wc_flags & IBV_WC_GRH;
}

static void test_headers(void)
{
	const uint64_t link_local = GID_PREFIX_DEFAULT, other = link_local + 1;
	uint64_t guid;

	pair_open(&a, &b, IBV_QPT_UD);
	guid = side_port(&b)->guid;
	CHECK(gets_there(0, GRH_VERSION, GRH_NXTHDR_IBA, link_local, guid));
	CHECK(!gets_there(1, GRH_VERSION, GRH_NXTHDR_IBA, link_local, guid));
	CHECK(!gets_there(0, 4, GRH_NXTHDR_IBA, link_local, guid));
	CHECK(!gets_there(0, GRH_VERSION, 17, link_local, guid));
	CHECK(!gets_there(0, GRH_VERSION, GRH_NXTHDR_IBA, link_local, guid + 1));
	CHECK(!gets_there(0, GRH_VERSION, GRH_NXTHDR_IBA, other, guid));
	/* The subnet's own prefix, and the default one beside it. */
	side_port(&b)->gid_prefix = other;
	CHECK(gets_there(0, GRH_VERSION, GRH_NXTHDR_IBA, other, guid));
	CHECK(gets_there(0, GRH_VERSION, GRH_NXTHDR_IBA, link_local, guid));
	side_port(&b)->gid_prefix = link_local;
	pair_close(&a, &b);
}

/* A packet of a message to an XRC SRQ, by hand. */
static void xrc_packet(unsigned int opcode, uint32_t psn, uint32_t srqn, void *data, uint32_t len)
{
	struct tx tx = { .opcode = OP_XRC | opcode, .psn = psn, .segs = 1, .pkey = 0xffff,
			 .xrc_srq = srqn };
	struct packet pkt;

	packet_init(&pkt);
	pkt.nr_frags = 1;
	pkt.frags[0] = (struct packet_frag){ data, len };
	pkt.data_len = len;
	CHECK(!net_xmit(a.qp, &pkt, &tx));
	turns(2);
}

/* The SRQ goes between two packets of a message; then its domain goes, too. */
static void xrc_cut(bool held)
{
	struct ibfs_srq_init init = { .attr = { .max_wr = 4, .max_sge = 1 }, .xrc = true };
	struct ibv_srq_attr attr;
	uint32_t num;

	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	CHECK(!b.ops->alloc_xrcd(b.dev, &b.init.xrcd));
	if (held)
		remote_open(&b);
	init.xrcd = b.init.xrcd;
	init.cq = b.cq;
	CHECK(!b.ops->create_srq(b.pd, &init, &b.client, &b.srq));
	b.ops->query_srq(b.srq, &attr, &num);
	a.init.type = IBV_QPT_XRC_SEND;
	b.init.type = IBV_QPT_XRC_RECV;
	side_qp(&a);
	side_qp(&b);
	connect_sides(&a, &b);
	CHECK(!side_recv(&b, 0, 10000));
	xrc_packet(OP_SEND_FIRST, 0, num, a.data, 1024);
	CHECK(b.qp->resp.has_wqe && remote.num == held);
	CHECK(!b.ops->destroy_srq(b.srq));
	b.srq = NULL;
	CHECK(!b.qp->resp.has_wqe && !remote.num);
	xrc_packet(OP_SEND_MIDDLE, 1, num, a.data, 1024);
	xrc_packet(OP_SEND_LAST, 2, num, a.data, 8);
	pass(0.01);
	CHECK(no_wc(&b) && side_state(&b) == (held ? IBV_QPS_RTS : IBV_QPS_ERR));
	CHECK(!b.ops->destroy_qp(b.qp, &b.client));
	b.qp = NULL;
	CHECK(!b.ops->dealloc_xrcd(b.init.xrcd));
	pair_close(&a, &b);
}

static void test_xrc_cut(void)
{
	xrc_cut(false);
	xrc_cut(true);
}

/* The check of IP checksums is told also when the memory takes its time. */
static void test_remote_csum(void)
{
	struct ibv_ah_attr attr;
	struct ibfs_ah *ah;
	struct ibv_sge sge;
	struct ibfs_wr wr;
	struct ibfs_wc wc = { 0 };

	pair_open(&a, &b, IBV_QPT_UD);
	remote_open(&b);
	attr = (struct ibv_ah_attr){ .dlid = side_port(&b)->lid, .port_num = 1 };
	CHECK(!a.ops->create_ah(a.pd, &attr, &ah));
	CHECK(!side_recv(&b, 0, 4096));
	/* IPoIB's header, and IPv4's of 28 bytes of UDP. */
	memset(a.data, 0, 100);
	memcpy(a.data, "\x08\x00\x00\x00\x45\x00\x00\x1c\x00\x00\x00\x00\x40\x11", 14);
	memcpy(a.data + 28, "\x00\x08", 2);
	wr = wr_of(&a, IBFS_WR_SEND, &sge, 0, 32);
	wr.send_flags |= IBV_SEND_IP_CSUM;
	wr.ud.ah = ah;
	wr.ud.remote_qpn = b.qpn;
	wr.ud.remote_qkey = 0x1234;
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	for (int i = 0; i < 100 && !b.ops->peek_cq(b.cq, 1); i++) {
		remote_work();
		tick(0.0001);
	}
	CHECK(b.ops->poll_cq(b.cq, 1, &wc) == 1 && !wc.status && wc.byte_len == 72);
	CHECK(wc.wc_flags & IBV_WC_IP_CSUM_OK);
	a.ops->destroy_ah(ah);
	pair_close(&a, &b);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "keys", test_keys }, { "idle_timer", test_idle_timer },
		{ "double_rnr", test_double_rnr }, { "double_nak", test_double_nak },
		{ "again_acked", test_again_acked }, { "psn_window", test_psn_window },
		{ "read_again", test_read_again }, { "fewer_resources", test_fewer_resources },
		{ "xrc_cut", test_xrc_cut }, { "remote_csum", test_remote_csum },
		{ "headers", test_headers }, { 0 },
	};

	return run_tests(tests, argc, argv);
}
