/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The QP state machine, exhaustively: every pair of states of every type, with
 * what the transition needs, without any one of it, and with each attribute
 * that it mustn't have; what is refused changes nothing.
 */
#include "verbs_test.h"

static struct side a;

/* Legal transitions, 11.2.5.2; SQE only by an error, of types that have it. */
static const bool legal[7][7] = {
	/* to:		RESET INIT RTR RTS SQD SQE ERR */
	[IBV_QPS_RESET] = { 1, 1, 0, 0, 0, 0, 0 },
	[IBV_QPS_INIT] =  { 1, 1, 1, 0, 0, 0, 1 },
	[IBV_QPS_RTR] =   { 1, 0, 0, 1, 0, 0, 1 },
	[IBV_QPS_RTS] =   { 1, 0, 0, 1, 1, 0, 1 },
	[IBV_QPS_SQD] =   { 1, 0, 0, 1, 1, 0, 1 },
	[IBV_QPS_SQE] =   { 1, 0, 0, 1, 0, 0, 1 },
	[IBV_QPS_ERR] =   { 1, 0, 0, 0, 0, 0, 1 },
};

static const unsigned int types[] = {
	IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, IBFS_QPT_SMI,
	IBFS_QPT_GSI, IBV_QPT_RAW_PACKET,
};
#define TYPES (sizeof(types) / sizeof(types[0]))

static int required(unsigned int type, unsigned int from, unsigned int to)
{
	bool mgmt = type == IBFS_QPT_SMI || type == IBFS_QPT_GSI;
	bool ud = type == IBV_QPT_UD || mgmt, raw = type == IBV_QPT_RAW_PACKET;

	if (raw)
		return from == IBV_QPS_RESET && to == IBV_QPS_INIT ? IBV_QP_PORT : 0;
	if (mgmt && from == IBV_QPS_RESET && to == IBV_QPS_INIT)
		return IBV_QP_PKEY_INDEX | IBV_QP_QKEY;
	if (from == IBV_QPS_RESET && to == IBV_QPS_INIT)
		return ud ? TO_INIT_UD : TO_INIT_RC;
	if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
		return ud ? 0 : type == IBV_QPT_UC || type == IBV_QPT_XRC_SEND ? TO_RTR_UC : TO_RTR_RC;
	if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
		return ud || type == IBV_QPT_UC ? TO_RTS_UC :
		       type == IBV_QPT_XRC_RECV ? TO_RTS_TGT : TO_RTS_INI;
	return 0;
}

static struct ibfs_xrcd *xrcd;

static void make_qp(unsigned int type)
{
	a.init.type = type;
	a.init.xrcd = type == IBV_QPT_XRC_RECV ? xrcd : NULL;
	a.init.port_num = 1;
	side_qp(&a);
	a.attr.ah_attr = (struct ibv_ah_attr){ .dlid = side_port(&a)->lid, .port_num = 1 };
	a.attr.alt_ah_attr = a.attr.ah_attr;
	a.attr.alt_port_num = 1;
	a.attr.dest_qp_num = a.qpn;
}

/* Bring the QP to a state by the straight way. */
static void go(unsigned int type, enum ibv_qp_state state)
{
	static const enum ibv_qp_state way[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	enum ibv_qp_state at = IBV_QPS_RESET;

	CHECK(!side_to(&a, IBV_QPS_RESET, 0));
	if (state == IBV_QPS_RESET)
		return;
	for (int i = 0; i < 3 && at != state; i++) {
		CHECK(!side_to(&a, way[i], required(type, at, way[i])));
		at = way[i];
	}
	if (state == IBV_QPS_SQD || state == IBV_QPS_ERR)
		CHECK(!side_to(&a, state, 0));
	if (state == IBV_QPS_SQE)
		a.qp->state = IBV_QPS_SQE;
	CHECK(side_state(&a) == state);
}

static void refused(int mask, enum ibv_qp_state to)
{
	struct ibv_qp_attr before, after;
	struct ibfs_qp_init init;
	uint32_t qpn;

	a.ops->query_qp(a.qp, &before, &init, &qpn);
	CHECK(side_to(&a, to, mask) == -EINVAL);
	a.ops->query_qp(a.qp, &after, &init, &qpn);
	CHECK(!memcmp(&before, &after, sizeof(before)));
}

static void test_pair(unsigned int type, unsigned int from, unsigned int to)
{
	int need = required(type, from, to);

	go(type, from);
	if (!legal[from][to]) {
		refused(need, to);
		for (int bit = 0; bit < 26; bit++)
			refused(1 << bit, to);
		return;
	}
	for (int bit = 0; bit < 26; bit++)
		if (need & 1 << bit)
			refused(need & ~(1 << bit), to);
	/* What belongs to no state machine at all. */
	refused(need | IBV_QP_CAP, to);
	CHECK(!side_to(&a, to, need));
	CHECK(side_state(&a) == to);
}

static void test_pairs(void)
{
	side_open(&a, "rxe0");
	CHECK(!a.ops->alloc_xrcd(a.dev, &xrcd));
	for (size_t i = 0; i < TYPES; i++) {
		make_qp(types[i]);
		for (unsigned int from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++)
			for (unsigned int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++)
				test_pair(types[i], from, to);
		CHECK(!a.ops->destroy_qp(a.qp, &a.client));
		a.qp = NULL;
	}
	CHECK(!a.ops->dealloc_xrcd(xrcd));
	side_close(&a);
}

/* Each optional attribute: taken where it may be, refused where not. Told by name. */
static void test_optional(void)
{
	static const struct {
		unsigned int type, from, to;
		int allowed;
	} cases[] = {
		{ IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, TO_INIT_RC },
		{ IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, TO_INIT_UD },
		{ IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
		  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX },
		{ IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
		{ IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_CUR_STATE | IBV_QP_ALT_PATH |
		  IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE },
		{ IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_CUR_STATE | IBV_QP_ALT_PATH |
		  IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE },
		{ IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_CUR_STATE | IBV_QP_QKEY },
		{ IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS |
		  IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_MIN_RNR_TIMER },
		{ IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY },
		{ IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_SQD, IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT |
		  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
		  IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE },
		{ IBV_QPT_UC, IBV_QPS_SQE, IBV_QPS_RTS, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS },
		{ IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_SQD, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
		{ IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RESET, 0 },
		{ IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_ERR, 0 },
		{ IBV_QPT_XRC_RECV, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS |
		  IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_MIN_RNR_TIMER },
	};

	side_open(&a, "rxe0");
	CHECK(!a.ops->alloc_xrcd(a.dev, &xrcd));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int need = required(cases[i].type, cases[i].from, cases[i].to);

		make_qp(cases[i].type);
		a.attr.path_mig_state = IBV_MIG_MIGRATED;
		a.attr.cur_qp_state = cases[i].from;
		for (int bit = 1; bit < 26; bit++) {
			bool ok = (need | cases[i].allowed) & 1 << bit;

			go(cases[i].type, cases[i].from);
			if (ok)
				CHECK(!side_to(&a, cases[i].to, need | 1 << bit));
			else
				refused(need | 1 << bit, cases[i].to);
		}
		go(cases[i].type, cases[i].from);
		CHECK(!side_to(&a, cases[i].to, need | cases[i].allowed));
		CHECK(!a.ops->destroy_qp(a.qp, &a.client));
		a.qp = NULL;
	}
	CHECK(!a.ops->dealloc_xrcd(xrcd));
	side_close(&a);
}

/* Values out of range, and that query gives back what modify took. */
static void test_values(void)
{
	struct ibv_qp_attr good, got;
	struct ibfs_qp_init init;
	uint32_t qpn;

	side_open(&a, "rxe0");
	make_qp(IBV_QPT_RC);
#define BAD(state, mask, field, value) do { \
		good = a.attr; a.attr.field = value; refused(mask, state); a.attr = good; \
	} while (0)
	BAD(IBV_QPS_INIT, TO_INIT_RC, port_num, 0);
	BAD(IBV_QPS_INIT, TO_INIT_RC, port_num, 2);
	BAD(IBV_QPS_INIT, TO_INIT_RC, pkey_index, 9999);
	BAD(IBV_QPS_INIT, TO_INIT_RC, qp_access_flags, 1 << 20);
	CHECK(!side_to(&a, IBV_QPS_INIT, TO_INIT_RC));
	BAD(IBV_QPS_RTR, TO_RTR_RC, path_mtu, 0);
	BAD(IBV_QPS_RTR, TO_RTR_RC, path_mtu, 6);
	BAD(IBV_QPS_RTR, TO_RTR_RC, rq_psn, 1 << 24);
	BAD(IBV_QPS_RTR, TO_RTR_RC, dest_qp_num, 1 << 24);
	BAD(IBV_QPS_RTR, TO_RTR_RC, max_dest_rd_atomic, 129);
	BAD(IBV_QPS_RTR, TO_RTR_RC, min_rnr_timer, 32);
	BAD(IBV_QPS_RTR, TO_RTR_RC, ah_attr.dlid, 0);
	BAD(IBV_QPS_RTR, TO_RTR_RC, ah_attr.dlid, 0xc000);
	BAD(IBV_QPS_RTR, TO_RTR_RC, ah_attr.sl, 16);
	a.attr.rq_psn = 0x123456;
	a.attr.min_rnr_timer = 17;
	CHECK(!side_to(&a, IBV_QPS_RTR, TO_RTR_RC));
	BAD(IBV_QPS_RTS, TO_RTS_INI, sq_psn, 1 << 24);
	BAD(IBV_QPS_RTS, TO_RTS_INI, timeout, 32);
	BAD(IBV_QPS_RTS, TO_RTS_INI, retry_cnt, 8);
	BAD(IBV_QPS_RTS, TO_RTS_INI, rnr_retry, 8);
	BAD(IBV_QPS_RTS, TO_RTS_INI, max_rd_atomic, 129);
	BAD(IBV_QPS_RTS, TO_RTS_INI | IBV_QP_CUR_STATE, cur_qp_state, IBV_QPS_INIT);
#undef BAD
	a.attr.sq_psn = 0x654321;
	CHECK(!side_to(&a, IBV_QPS_RTS, TO_RTS_INI));
	a.ops->query_qp(a.qp, &got, &init, &qpn);
	CHECK(got.qp_state == IBV_QPS_RTS && got.rq_psn == 0x123456 && got.sq_psn == 0x654321);
	CHECK(got.min_rnr_timer == 17 && got.timeout == 14 && got.retry_cnt == 3 && got.rnr_retry == 3);
	CHECK(got.path_mtu == IBV_MTU_1024 && got.dest_qp_num == a.qpn && got.max_rd_atomic == 4);
	CHECK(got.ah_attr.dlid == side_port(&a)->lid && got.port_num == 1);
	CHECK(got.path_mig_state == IBV_MIG_MIGRATED && got.cap.max_send_wr == 64);
	CHECK(init.type == IBV_QPT_RC && init.pd == a.pd && init.send_cq == a.cq && qpn == a.qpn);
	side_close(&a);
}

/* Where requests may be posted, and what creation refuses. */
static void test_limits(void)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR };
	struct ibv_device_attr_ex dev;
	struct ibfs_qp_init good;
	struct ibfs_qp *qp;
	struct ibfs_cq *cq;

	side_open(&a, "rxe0");
	CHECK(!a.dev->ops->query_device(a.dev, &dev));
	good = a.init;
#define BAD(field, value) do { \
		a.init.field = value; \
		CHECK(a.ops->create_qp(a.dev, &a.init, &a.client, &qp) < 0); a.init = good; \
	} while (0)
	BAD(cap.max_send_wr, dev.orig_attr.max_qp_wr + 1);
	BAD(cap.max_recv_wr, dev.orig_attr.max_qp_wr + 1);
	BAD(cap.max_send_sge, dev.orig_attr.max_sge + 1);
	BAD(cap.max_recv_sge, dev.orig_attr.max_sge + 1);
	BAD(cap.max_inline_data, 1 << 20);
	BAD(pd, NULL);
	BAD(send_cq, NULL);
	BAD(recv_cq, NULL);
	BAD(type, 77);
	BAD(type, 5);
	BAD(create_flags, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
#undef BAD
	CHECK(a.ops->create_cq(a.dev, 0, NULL, &cq) == -EINVAL);
	CHECK(a.ops->create_cq(a.dev, dev.orig_attr.max_cqe + 1, NULL, &cq) == -EINVAL);
	make_qp(IBV_QPT_RC);
	for (int i = 0; i < 3; i++) {
		go(IBV_QPT_RC, states[i]);
		CHECK(side_send(&a, IBFS_WR_SEND, 0, 1, 0, 0) == -EINVAL);
		CHECK(a.ops->doorbell(a.qp) == -EINVAL);
		CHECK(side_recv(&a, 0, 1) == (states[i] == IBV_QPS_RESET ? -EINVAL : 0));
	}
	CHECK(a.ops->dealloc_pd(a.pd) == -EBUSY && a.ops->destroy_cq(a.cq) == -EBUSY);
	side_close(&a);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "pairs", test_pairs }, { "optional", test_optional }, { "values", test_values },
		{ "limits", test_limits }, { 0 },
	};

	return run_tests(tests, argc, argv);
}
