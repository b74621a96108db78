/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs that aren't for everybody: SMI and GSI beside the MAD agents, raw
 * packets of both kinds; and reads that invalidate.
 */
#include <infiniband/umad_sm.h>

#include "verbs_test.h"

static struct side a, b, c;

#define TO_INIT_MGMT	(IBV_QP_PKEY_INDEX | IBV_QP_QKEY)

static int make_special(struct side *s, unsigned int type, uint8_t port)
{
	s->init.type = type;
	s->init.port_num = port;
	return s->ops->create_qp(s->dev, &s->init, &s->client, &s->qp);
}

static void start_special(struct side *s)
{
	side_query_qpn(s);
	s->attr.qkey = s->init.type == IBFS_QPT_GSI ? QP1_QKEY : 0;
	CHECK(!side_to(s, IBV_QPS_INIT, TO_INIT_MGMT));
	CHECK(!side_to(s, IBV_QPS_RTR, 0));
	CHECK(!side_to(s, IBV_QPS_RTS, IBV_QP_SQ_PSN));
}

static void open_special(struct side *s, const char *dev, unsigned int type)
{
	side_open(s, dev);
	CHECK(!make_special(s, type, 1));
	start_special(s);
}

/* A MAD of 256 bytes at an offset of the side's memory. */
static struct umad_hdr *mad_at(struct side *s, uint32_t off, uint8_t class, uint8_t method,
			       uint16_t attr, uint64_t tid)
{
	struct umad_hdr *hdr = (struct umad_hdr *)(s->data + off);

	memset(hdr, 0, MAD_SIZE);
	*hdr = hdr_of(class, 1, method, attr, tid);
	return hdr;
}

static int mad_post(struct side *s, struct ibfs_ah *ah, uint32_t off, uint32_t qpn, uint32_t qkey)
{
	struct ibv_sge sge;
	struct ibfs_wr wr = wr_of(s, IBFS_WR_SEND, &sge, off, MAD_SIZE);

	wr.ud.ah = ah;
	wr.ud.remote_qpn = qpn;
	wr.ud.remote_qkey = qkey;
	return s->ops->post_send(s->qp, &wr);
}

/* The request went and its answer came, in either order. */
static bool answered(struct side *s)
{
	struct ibfs_wc first, second;

	return side_wc(s, &first) && side_wc(s, &second) && !first.status && !second.status &&
	       (first.opcode == IBFS_WC_RECV) != (second.opcode == IBFS_WC_RECV);
}

static struct ibfs_ah *ah_lid(struct side *s, uint16_t lid)
{
	struct ibv_ah_attr attr = { .dlid = lid, .port_num = 1 };
	struct ibfs_ah *ah = NULL;

	CHECK(!s->ops->create_ah(s->pd, &attr, &ah));
	return ah;
}

/* What a port's agents answer comes back to the QP that asked: here the PMA. */
static void test_gsi(void)
{
	const struct umad_hdr *got;
	struct ibfs_ah *ah;

	open_special(&a, "rxe0", IBFS_QPT_GSI);
	CHECK(a.qpn == 1);
	ah = ah_lid(&a, port_of("rxe1")->lid);
	mad_at(&a, 0, MAD_CLASS_PERF, UMAD_METHOD_GET, UMAD_ATTR_CLASS_PORT_INFO, 0x1234);
	CHECK(!side_recv(&a, 4096, 1000) && !mad_post(&a, ah, 0, 1, 1U << 31));
	CHECK(answered(&a));
	got = (const struct umad_hdr *)(a.data + 4096 + 40);
	CHECK(got->method == UMAD_METHOD_GET_RESP && got->tid == htobe64(0x1234) && !got->status);
	/* A Q_Key that isn't QP1's: the other end drops it. */
	CHECK(!side_recv(&a, 4096, 1000) && !mad_post(&a, ah, 0, 1, 5));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_SEND) && no_wc(&a));
	/* Its own port answers too, and what is too long for its request fails as of any datagram. */
	a.ops->destroy_ah(ah);
	ah = ah_lid(&a, port_of("rxe0")->lid);
	CHECK(!mad_post(&a, ah, 0, 1, QP1_QKEY) && answered(&a));
	CHECK(!side_recv(&a, 4096, 295) && !mad_post(&a, ah, 0, 1, QP1_QKEY));
	CHECK(expect_wc(&a, IBV_WC_LOC_LEN_ERR, IBFS_WC_RECV) && side_state(&a) == IBV_QPS_ERR);
	a.ops->destroy_ah(ah);
	side_close(&a);
}

/* Two GSI QPs talk; the port stays mute to what the QP could answer; agents see it as well. */
static void test_beside_agents(void)
{
	struct mad_reg reg = reg_of(1, CLASS_VENDOR, 1);
	struct client agent = { 0 };
	const struct umad_hdr *got;
	struct ibfs_ah *ah;
	struct ibfs_wc wc;
	uint8_t *oui;

	open_special(&a, "rxe0", IBFS_QPT_GSI);
	ah = ah_lid(&a, port_of("rxe1")->lid);
	oui = (uint8_t *)mad_at(&a, 0, CLASS_VENDOR, UMAD_METHOD_GET, 0x10, 7) + 37;
	memcpy(oui, reg.oui, 3);
	/* Nobody there: the port says so. */
	CHECK(!side_recv(&a, 4096, 1000) && !mad_post(&a, ah, 0, 1, QP1_QKEY));
	CHECK(answered(&a));
	got = (const struct umad_hdr *)(a.data + 4096 + 40);
	CHECK(got->method == UMAD_METHOD_GET_RESP && got->status);
	/* A QP there: it is asked, and has what is needed for an answer. */
	open_special(&b, "rxe1", IBFS_QPT_GSI);
	CHECK(!side_recv(&b, 0, 1000) && !mad_post(&a, ah, 0, 1, QP1_QKEY));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_SEND) && no_wc(&a));
	CHECK(side_wc(&b, &wc) && wc.opcode == IBFS_WC_RECV && wc.byte_len == 40 + MAD_SIZE);
	CHECK(wc.src_qp == 1 && wc.slid == port_of("rxe0")->lid && wc.port_num == 1 && !wc.pkey_index);
	CHECK(!memcmp(b.data + 40, a.data, MAD_SIZE));
	/* An agent and the QP: both. */
	reg_method(&reg, UMAD_METHOD_GET);
	CHECK(!client_open(&agent, "rxe1", &reg));
	CHECK(!side_recv(&b, 0, 1000) && !mad_post(&a, ah, 0, 1, QP1_QKEY));
	CHECK(expect_wc(&b, IBV_WC_SUCCESS, IBFS_WC_RECV) && wait_for(&agent.received, 1, 1));
	client_close(&agent);
	/* Not in a state that receives: the port speaks for it again. */
	CHECK(!side_to(&b, IBV_QPS_RESET, 0));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_SEND));
	CHECK(!side_recv(&a, 4096, 1000) && !mad_post(&a, ah, 0, 1, QP1_QKEY));
	CHECK(answered(&a));
	a.ops->destroy_ah(ah);
	pair_close(&a, &b);
}

/* SMPs by directed route: here, to the switch, to the other HCA. */
static void test_smi(void)
{
	struct umad_smp *smp;
	struct ibfs_ah *ah;

	open_special(&a, "rxe0", IBFS_QPT_SMI);
	CHECK(a.qpn == 0);
	ah = ah_lid(&a, LID_PERMISSIVE);
	for (int hops = 0; hops < 3; hops++) {
		const struct umad_smp *got = (const struct umad_smp *)(a.data + 4096 + 40);

		smp = (struct umad_smp *)mad_at(&a, 0, MAD_CLASS_SUBN_DR, UMAD_METHOD_GET,
						UMAD_SM_ATTR_NODE_INFO, 100 + hops);
		smp->hop_cnt = hops;
		smp->dr_slid = smp->dr_dlid = 0xffff;
		smp->initial_path[1] = 1;
		smp->initial_path[2] = port_of("rxe1")->peer->num;
		CHECK(!side_recv(&a, 4096, 1000) && !mad_post(&a, ah, 0, 0, 0));
		CHECK(answered(&a));
		CHECK(got->method == UMAD_METHOD_GET_RESP && got->tid == htobe64(100 + hops));
		CHECK(got->data[2] == (hops == 1 ? NODE_SWITCH : NODE_CA));
	}
	/* QP0 has no P_Key, no Q_Key of its own, and no other opcode than SEND. */
	CHECK(side_send(&a, IBFS_WR_SEND_WITH_IMM, 0, 8, 0, 0) == -EINVAL);
	a.ops->destroy_ah(ah);
	side_close(&a);
}

/* One of each a port; ports are named when it is made and stay. */
static void test_exclusive(void)
{
	static const unsigned int types[] = { IBFS_QPT_SMI, IBFS_QPT_GSI };

	side_open(&a, "rxe0");
	side_open(&b, "rxe0");
	for (int i = 0; i < 2; i++) {
		CHECK(make_special(&a, types[i], 0) == -EINVAL);
		CHECK(make_special(&a, types[i], 2) == -EINVAL);
		CHECK(!make_special(&a, types[i], 1) && make_special(&b, types[i], 1) == -EBUSY);
		CHECK(side_to(&a, IBV_QPS_INIT, TO_INIT_UD) == -EINVAL);
		start_special(&a);
		CHECK(!side_to(&a, IBV_QPS_RESET, 0) && a.qp->attr.port_num == 1);
		start_special(&a);
		CHECK(a.ops->attach_mcast(a.qp, &(union ibv_gid){ .raw = { 0xff } }, 0) == -EINVAL);
		CHECK(!a.ops->destroy_qp(a.qp, &a.client));
		a.qp = NULL;
	}
	/* A device goes with such a QP in it. */
	CHECK(!make_special(&a, IBFS_QPT_SMI, 1));
	CHECK(!a.ops->destroy_qp(a.qp, &a.client));
	a.qp = NULL;
	CHECK(make_special(&a, IBFS_QPT_RAW_IPV6, 0) == -EOPNOTSUPP);
	CHECK(make_special(&a, IBFS_QPT_RAW_ETHERTYPE, 0) == -EOPNOTSUPP);
	side_close(&a);
	side_close(&b);
}

static void open_raw(struct side *s, const char *dev)
{
	side_open(s, dev);
	s->init.type = IBV_QPT_RAW_PACKET;
	side_qp(s);
	CHECK(side_recv(s, 0, 1) == -EINVAL);
	CHECK(side_to(s, IBV_QPS_INIT, TO_INIT_UD) == -EINVAL);
	CHECK(!side_to(s, IBV_QPS_INIT, IBV_QP_PORT));
	CHECK(!side_to(s, IBV_QPS_RTR, 0));
	CHECK(!side_to(s, IBV_QPS_RTS, 0));
}

static struct lrh *lrh_at(struct side *s, uint8_t lnh, uint16_t dlid)
{
	struct lrh *lrh = (struct lrh *)s->data;

	*lrh = (struct lrh){ .sl_lnh = lnh, .dlid = htons(dlid), .slid = htons(side_port(s)->lid) };
	return lrh;
}

/* An EtherType's packet and an IPv6 one: whole, by the switch, to all raw QPs of the port. */
static void test_raw(void)
{
	struct ibfs_wc wc;
	struct lrh *lrh;

	open_raw(&a, "rxe0");
	open_raw(&b, "rxe1");
	open_raw(&c, "rxe1");
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t len = i ? 8 + 40 + 2048 : 8 + 4 + 100;

		fill(a.data, len, i);
		lrh = lrh_at(&a, i ? LNH_IPV6 : LNH_RAW, side_port(&b)->lid);
		CHECK(!side_recv(&b, 0, 5000) && !side_recv(&c, 0, 5000));
		CHECK(!side_send(&a, IBFS_WR_SEND, 0, len, 0, 0) && expect_wc(&a, IBV_WC_SUCCESS, -1));
		CHECK(side_wc(&b, &wc) && !wc.status && wc.byte_len == len && !wc.wc_flags);
		CHECK(wc.slid == side_port(&a)->lid && wc.sl == 0 && wc.opcode == IBFS_WC_RECV);
		/* The LRH tells how long it is, in words, without an ICRC. */
		lrh->len = htons(len / 4);
		CHECK(!memcmp(a.data, b.data, len) && expect_wc(&c, IBV_WC_SUCCESS, IBFS_WC_RECV));
		CHECK(!memcmp(a.data, c.data, len) && no_wc(&a));
	}
	/* To its own port; its data may be scattered; too small a request is its own error. */
	lrh_at(&a, LNH_RAW, side_port(&a)->lid);
	CHECK(!side_recv(&a, 8192, 500) && !side_send(&a, IBFS_WR_SEND, 0, 64, 0, 0));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_RECV) && expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_SEND));
	lrh_at(&a, LNH_RAW, side_port(&b)->lid);
	CHECK(!side_recv(&b, 0, 63) && !side_send(&a, IBFS_WR_SEND, 0, 64, 0, 0));
	CHECK(expect_wc(&b, IBV_WC_LOC_LEN_ERR, IBFS_WC_RECV) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	side_close(&c);
	pair_close(&a, &b);
}

/* What can't be a raw packet of this port never leaves; the send queue says so and can go on. */
static void test_raw_errors(void)
{
	static const struct {
		uint8_t lnh;
		uint32_t len;
		bool own_lid, dlid;
		unsigned int status;
	} cases[] = {
		{ LNH_RAW, 11, true, true, IBV_WC_LOC_LEN_ERR },
		{ LNH_RAW, 8, true, true, IBV_WC_LOC_LEN_ERR },
		{ LNH_IPV6, 44, true, true, IBV_WC_LOC_LEN_ERR },
		{ LNH_RAW, 13, true, true, IBV_WC_LOC_LEN_ERR },
		{ LNH_RAW, 6000, true, true, IBV_WC_LOC_LEN_ERR },
		{ LNH_RAW, 0, true, true, IBV_WC_LOC_LEN_ERR },
		{ LNH_BTH, 64, true, true, IBV_WC_LOC_QP_OP_ERR },
		{ LNH_GRH, 64, true, true, IBV_WC_LOC_QP_OP_ERR },
		{ LNH_RAW, 64, false, true, IBV_WC_LOC_QP_OP_ERR },
		{ LNH_RAW, 64, true, false, IBV_WC_LOC_QP_OP_ERR },
	};
	uint64_t sent;

	open_raw(&a, "rxe0");
	open_raw(&b, "rxe1");
	CHECK(!side_recv(&b, 0, 5000));
	sent = side_port(&a)->cnt.xmit_pkts;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct lrh *lrh = lrh_at(&a, cases[i].lnh, cases[i].dlid ? side_port(&b)->lid : 0);

		if (!cases[i].own_lid)
			lrh->slid = htons(side_port(&b)->lid);
		CHECK(!side_send(&a, IBFS_WR_SEND, 0, cases[i].len, 0, 0));
		CHECK(expect_wc(&a, cases[i].status, -1) && side_state(&a) == IBV_QPS_SQE);
		CHECK(!side_to(&a, IBV_QPS_RTS, 0));
	}
	CHECK(side_port(&a)->cnt.xmit_pkts == sent && no_wc(&b));
	CHECK(side_send(&a, IBFS_WR_RDMA_WRITE, 0, 8, 0, b.key) == -EINVAL);
	/* A transport packet is none of a raw QP's. */
	CHECK(!side_send(&a, IBFS_WR_SEND, 0, 64, 0, 0) && expect_wc(&a, IBV_WC_LOC_QP_OP_ERR, -1));
	pair_close(&a, &b);
}

/* A read whose sink is a fast registration of its own: gone with the read. */
static void test_read_inv(void)
{
	struct ibfs_mr_init init = { .access = IBV_ACCESS_LOCAL_WRITE, .max_pages = 1 };
	uint64_t page = 0x2000;
	struct ibfs_wr reg = { .opcode = IBFS_WR_FAST_REG_MR, .send_flags = IBV_SEND_SIGNALED };
	struct ibfs_mr_attr attr;
	struct ibfs_mr *mr;
	struct ibv_sge sge;
	struct ibfs_wr wr;

	pair_open(&a, &b, IBV_QPT_RC);
	init.mem = a.mem;
	init.length = SIDE_MEM;
	CHECK(!a.ops->reg_mr(a.pd, &init, &mr));
	reg.reg.mr_lkey = mr_key(&a, mr);
	reg.reg.rkey = reg.reg.mr_lkey ^ 0x11;
	reg.reg.length = 4096;
	reg.reg.pages = &page;
	reg.reg.num_pages = 1;
	reg.reg.page_shift = 12;
	reg.reg.access = IBV_ACCESS_LOCAL_WRITE;
	CHECK(!a.ops->post_send(a.qp, &reg) && expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_FAST_REG_MR));
	fill(b.data, 3000, 3);
	wr = wr_of(&a, IBFS_WR_RDMA_READ_WITH_INV, &sge, 0, 3000);
	sge.lkey = wr.ex.invalidate_rkey = reg.reg.rkey;
	wr.rdma.rkey = b.key;
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_RDMA_READ));
	CHECK(!memcmp(a.data + 0x2000, b.data, 3000));
	a.ops->query_mr(mr, &attr);
	CHECK(!attr.valid);
	/* What isn't to be invalidated so: the read arrived, the request failed. */
	wr = wr_of(&a, IBFS_WR_RDMA_READ_WITH_INV, &sge, 0, 3000);
	wr.ex.invalidate_rkey = a.key;
	wr.rdma.rkey = b.key;
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_MW_BIND_ERR, IBFS_WC_RDMA_READ));
	CHECK(side_state(&a) == IBV_QPS_ERR);
	CHECK(!a.ops->dereg_mr(mr));
	pair_close(&a, &b);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "gsi", test_gsi }, { "beside_agents", test_beside_agents }, { "smi", test_smi },
		{ "exclusive", test_exclusive }, { "raw", test_raw },
		{ "raw_errors", test_raw_errors }, { "read_inv", test_read_inv }, { 0 },
	};

	return run_tests(tests, argc, argv);
}
