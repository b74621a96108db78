/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams: address handles, Q_Keys, P_Keys, GRH, multicast, offloads; and UC messages. */
#include <netinet/ip.h>
#include <netinet/tcp.h>

#include "verbs_test.h"

static struct side a, b, c;

static struct ibfs_ah *ah_to(struct side *from, struct side *to, bool grh)
{
	struct ibv_ah_attr attr = { .dlid = side_port(to)->lid, .port_num = 1, .sl = 3 };
	struct ibfs_ah *ah = NULL;

	if (grh) {
		attr.is_global = 1;
		attr.grh.hop_limit = 4;
		attr.grh.flow_label = 0x12345;
		attr.grh.traffic_class = 0x67;
		to->dev->ops->query_gid(to->dev, 1, 0, &attr.grh.dgid);
	}
	CHECK(!from->ops->create_ah(from->pd, &attr, &ah));
	return ah;
}

static int ud_send(struct side *s, struct ibfs_ah *ah, uint32_t qpn, uint32_t qkey, uint32_t len)
{
	struct ibv_sge sge;
	struct ibfs_wr wr = wr_of(s, IBFS_WR_SEND_WITH_IMM, &sge, 0, len);

	wr.ex.imm_data = htonl(len);
	wr.ud.ah = ah;
	wr.ud.remote_qpn = qpn;
	wr.ud.remote_qkey = qkey;
	return s->ops->post_send(s->qp, &wr);
}

static void test_send(void)
{
	struct ibv_ah_attr back;
	struct ibfs_wc wc;

	for (int grh = 0; grh < 2; grh++) {
		struct ibfs_ah *ah, *answer;

		pair_open(&a, &b, IBV_QPT_UD);
		ah = ah_to(&a, &b, grh);
		fill(a.data, 4096, 1);
		CHECK(!side_recv(&b, 0, 8192) && !ud_send(&a, ah, b.qpn, 0x1234, 4096));
		CHECK(expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_SEND));
		CHECK(side_wc(&b, &wc) && !wc.status && wc.byte_len == 4136 && wc.src_qp == a.qpn);
		CHECK(wc.slid == side_port(&a)->lid && wc.sl == 3 && wc.port_num == 1);
		CHECK(wc.imm_data == htonl(4096) && !!(wc.wc_flags & IBV_WC_GRH) == grh);
		CHECK(!memcmp(a.data, b.data + 40, 4096));
		CHECK(!b.ops->init_ah_from_wc(b.dev, 1, &wc, (struct ibv_grh *)b.data, &back));
		CHECK(back.dlid == side_port(&a)->lid && back.sl == 3 && back.is_global == grh);
		if (grh)
			CHECK(back.grh.flow_label == 0x12345 && back.grh.traffic_class == 0x67);
		/* The answer finds its way. */
		CHECK(!b.ops->create_ah(b.pd, &back, &answer) && !side_recv(&a, 8192, 100));
		CHECK(!ud_send(&b, answer, wc.src_qp, 0x1234, 10));
		CHECK(expect_wc(&b, IBV_WC_SUCCESS, IBFS_WC_SEND));
		CHECK(expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_RECV));
		a.ops->destroy_ah(ah);
		b.ops->destroy_ah(answer);
		pair_close(&a, &b);
	}
}

/* Wrong Q_Keys and P_Keys are dropped and counted; the QP's own Q_Key stands in for one with the top bit. */
static void test_keys(void)
{
	struct ibfs_ah *ah;
	struct port *port;

	pair_open(&a, &b, IBV_QPT_UD);
	ah = ah_to(&a, &b, false);
	port = side_port(&b);
	CHECK(!side_recv(&b, 0, 100));
	CHECK(!ud_send(&a, ah, b.qpn, 0x1235, 4) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(no_wc(&b) && port->qkey_violations == 1 && !port->pkey_violations);
	CHECK(!ud_send(&a, ah, b.qpn, 0x80000000, 4) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(expect_wc(&b, IBV_WC_SUCCESS, -1));
	CHECK(!port_set_pkey(port, 0, 0x8001) && !side_recv(&b, 0, 100));
	CHECK(!ud_send(&a, ah, b.qpn, 0x1234, 4) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(no_wc(&b) && port->pkey_violations == 1);
	/* Two limited members of a partition don't talk. */
	CHECK(!port_set_pkey(port, 0, 0x1) && !port_set_pkey(side_port(&a), 0, 0x1));
	CHECK(!ud_send(&a, ah, b.qpn, 0x1234, 4) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(no_wc(&b) && port->pkey_violations == 2);
	CHECK(!port_set_pkey(side_port(&a), 0, 0x8001));
	CHECK(!ud_send(&a, ah, b.qpn, 0x1234, 4) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(expect_wc(&b, IBV_WC_SUCCESS, -1));
	a.ops->destroy_ah(ah);
	pair_close(&a, &b);
}

static void test_errors(void)
{
	struct ibv_ah_attr bad = { .dlid = 1, .port_num = 9 };
	struct ibfs_ah *ah, *none;

	pair_open(&a, &b, IBV_QPT_UD);
	ah = ah_to(&a, &b, false);
	CHECK(a.ops->create_ah(a.pd, &bad, &none) == -EINVAL);
	bad = (struct ibv_ah_attr){ .dlid = 0xc001, .port_num = 1 };
	CHECK(a.ops->create_ah(a.pd, &bad, &none) == -EINVAL);
	CHECK(ud_send(&a, NULL, b.qpn, 0x1234, 4) == -EINVAL);
	/* Longer than the MTU */
	CHECK(!ud_send(&a, ah, b.qpn, 0x1234, 4097) && expect_wc(&a, IBV_WC_LOC_LEN_ERR, -1));
	CHECK(side_state(&a) == IBV_QPS_SQE && !side_to(&a, IBV_QPS_RTS, 0));
	/* No receive request: lost, and nobody knows. */
	CHECK(!ud_send(&a, ah, b.qpn, 0x1234, 4) && expect_wc(&a, IBV_WC_SUCCESS, -1) && no_wc(&b));
	/* No room for the GRH */
	CHECK(!side_recv(&b, 0, 43) && !ud_send(&a, ah, b.qpn, 0x1234, 4));
	CHECK(expect_wc(&b, IBV_WC_LOC_LEN_ERR, -1) && side_state(&b) == IBV_QPS_ERR);
	a.ops->destroy_ah(ah);
	pair_close(&a, &b);
}

/* One sender, itself and another of its HCA attached, and one across the switch. */
static void test_multicast(void)
{
	union ibv_gid mgid = { .raw = { 0xff, 0x12, 0xa0, 0x1b, 0xff, 0xff, [15] = 5 } };
	union ibv_gid not_mgid = { .raw = { 0xfe, 0x80 } };
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct ibfs_ah *ah;
	struct ibfs_wc wc;
	int mlid;

	side_open(&a, "rxe0");
	side_open(&b, "rxe0");
	side_open(&c, "rxe1");
	a.init.type = b.init.type = c.init.type = IBV_QPT_UD;
	a.init.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	side_qp(&a);
	side_qp(&b);
	side_qp(&c);
	/* Before it has a port it has the device's only one. */
	CHECK(!a.ops->attach_mcast(a.qp, &mgid, 0) && !a.ops->detach_mcast(a.qp, &mgid, 0));
	side_ud(&a);
	side_ud(&b);
	side_ud(&c);
	CHECK(a.ops->attach_mcast(a.qp, &not_mgid, 0) == -EINVAL);
	CHECK(a.ops->detach_mcast(a.qp, &mgid, 0) == -EINVAL);
	CHECK(!a.ops->attach_mcast(a.qp, &mgid, 0) && !a.ops->attach_mcast(a.qp, &mgid, 0));
	CHECK(!b.ops->attach_mcast(b.qp, &mgid, 0) && !c.ops->attach_mcast(c.qp, &mgid, 0));
	CHECK(a.ops->destroy_qp(a.qp, &a.client) == -EBUSY);
	mlid = static_mcast_mlid(t.ibfs.fabric, mgid.raw);
	CHECK(mlid >= 0xc000);
	attr.dlid = mlid;
	attr.grh.dgid = mgid;
	CHECK(!a.ops->create_ah(a.pd, &attr, &ah));
	for (int i = 0; i < 3; i++) {
		CHECK(!side_recv(&a, 4096, 1000) && !side_recv(&b, 0, 1000) && !side_recv(&c, 0, 1000));
		fill(a.data, 500, i);
		CHECK(!ud_send(&a, ah, 0, 0x1234, 500) && expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_SEND));
		CHECK(side_wc(&b, &wc) && wc.byte_len == 540 && wc.wc_flags & IBV_WC_GRH);
		CHECK(!memcmp(b.data + 40, a.data, 500) && !memcmp(b.data + 24, mgid.raw, 16));
		CHECK(side_wc(&c, &wc) && wc.byte_len == 540 && !memcmp(c.data + 40, a.data, 500));
		CHECK(no_wc(&a));
	}
	CHECK(!c.ops->detach_mcast(c.qp, &mgid, 0) && !side_recv(&c, 0, 1000));
	CHECK(!side_recv(&b, 0, 1000));
	CHECK(!ud_send(&a, ah, 0, 0x1234, 5) && expect_wc(&b, IBV_WC_SUCCESS, -1) && no_wc(&c));
	CHECK(!a.ops->detach_mcast(a.qp, &mgid, 0) && !b.ops->detach_mcast(b.qp, &mgid, 0));
	a.ops->destroy_ah(ah);
	side_close(&a);
	side_close(&b);
	side_close(&c);
}

#define HLEN (4 + 20 + 20)

static void tcp_headers(uint8_t *msg, uint32_t len)
{
	struct iphdr *ip = (struct iphdr *)(msg + 4);
	struct tcphdr *tcp = (struct tcphdr *)(ip + 1);

	memset(msg, 0, HLEN);
	msg[0] = 8;
	*ip = (struct iphdr){ .version = 4, .ihl = 5, .ttl = 64, .protocol = 6, .id = htons(7),
			      .tot_len = htons(40 + len), .saddr = htonl(0x0a000001),
			      .daddr = htonl(0x0a000002) };
	tcp->seq = htonl(1000);
	tcp->doff = 5;
	tcp->fin = tcp->psh = tcp->ack = 1;
}

/* Checksums are filled in and checked; large sends become many with right headers each. */
static void test_offload(void)
{
	uint8_t header[HLEN] __attribute__((aligned(4)));
	struct ibfs_ah *ah;
	struct ibv_sge sge;
	struct ibfs_wr wr;
	struct ibfs_wc wc;

	pair_open(&a, &b, IBV_QPT_UD);
	ah = ah_to(&a, &b, false);
	for (int i = 0; i < 8; i++)
		CHECK(!side_recv(&b, 4096 * i, 4096));
	tcp_headers(a.data, 100);
	fill(a.data + HLEN, 100, 3);
	CHECK(!ud_send(&a, ah, b.qpn, 0x1234, HLEN + 100) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(side_wc(&b, &wc) && !(wc.wc_flags & IBV_WC_IP_CSUM_OK));
	wr = wr_of(&a, IBFS_WR_SEND, &sge, 0, HLEN + 100);
	wr.send_flags |= IBV_SEND_IP_CSUM;
	wr.ud.ah = ah;
	wr.ud.remote_qpn = b.qpn;
	wr.ud.remote_qkey = 0x1234;
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(side_wc(&b, &wc) && wc.wc_flags & IBV_WC_IP_CSUM_OK);
	CHECK(!memcmp(b.data + 4096 + 40 + HLEN, a.data + HLEN, 100));
	fill(a.data, 2500, 9);
	tcp_headers(header, 2500);
	wr.opcode = IBFS_WR_LSO;
	wr.send_flags = IBV_SEND_SIGNALED;
	sge.length = 2500;
	wr.ud.header = header;
	wr.ud.hlen = HLEN;
	wr.ud.mss = 1000;
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_LSO));
	for (uint32_t i = 0; i < 3; i++) {
		uint8_t *at = b.data + 4096 * (2 + i) + 40;
		const struct iphdr *ip = (const struct iphdr *)(at + 4);
		const struct tcphdr *tcp = (const struct tcphdr *)(ip + 1);
		uint32_t len = i < 2 ? 1000 : 500;

		CHECK(side_wc(&b, &wc) && wc.byte_len == 40 + HLEN + len);
		CHECK(wc.wc_flags & IBV_WC_IP_CSUM_OK && !memcmp(at + HLEN, a.data + 1000 * i, len));
		CHECK(ntohs(ip->id) == 7 + i && ntohs(ip->tot_len) == 40 + len);
		CHECK(ntohl(tcp->seq) == 1000 + 1000 * i && tcp->fin == (i == 2) && tcp->ack);
	}
	wr.ud.mss = 5000;
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_LOC_LEN_ERR, -1));
	a.ops->destroy_ah(ah);
	pair_close(&a, &b);
}

static void test_uc(void)
{
	static const uint32_t sizes[] = { 0, 1, 1024, 5000, 300000 };
	struct ibfs_wc wc;

	pair_open(&a, &b, IBV_QPT_UC);
	CHECK(side_send(&a, IBFS_WR_RDMA_READ, 0, 8, 0, b.key) == -EINVAL);
	for (size_t i = 0; i < 5; i++) {
		fill(a.data, sizes[i], i);
		CHECK(!side_recv(&b, 0, SIDE_MEM) && !side_send(&a, IBFS_WR_SEND, 0, sizes[i], 0, 0));
		CHECK(side_wc(&b, &wc) && !wc.status && wc.byte_len == sizes[i]);
		CHECK(!memcmp(a.data, b.data, sizes[i]) && expect_wc(&a, IBV_WC_SUCCESS, -1));
		CHECK(!side_recv(&b, 0, 0));
		CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE_WITH_IMM, 0, sizes[i], 1, b.key));
		CHECK(side_wc(&b, &wc) && !wc.status && wc.byte_len == sizes[i]);
		CHECK(!memcmp(a.data, b.data + 1, sizes[i]) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	}
	/* Not allowed: dropped, and the next message is received. */
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 5000, 0, b.key ^ 1));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1) && no_wc(&b));
	CHECK(!side_recv(&b, 0, 10) && !side_send(&a, IBFS_WR_SEND, 0, 10, 0, 0));
	CHECK(expect_wc(&b, IBV_WC_SUCCESS, IBFS_WC_RECV));
	pair_close(&a, &b);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "send", test_send }, { "keys", test_keys }, { "errors", test_errors },
		{ "multicast", test_multicast }, { "offload", test_offload }, { "uc", test_uc }, { 0 },
	};

	return run_tests(tests, argc, argv);
}
