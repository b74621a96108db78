/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs share that test the verbs engine below the tree: two sides
 * with memory, a CQ and a QP each, on mad_test.h's fabric and clock.
 */
#ifndef VERBS_TEST_H
#define VERBS_TEST_H

#include <arpa/inet.h>

#include "mad_test.h"
#include "ibfs/memory.h"
#include "ibfs/verbs.h"
#include "hca/verbs.h"

#define SIDE_MEM	(1 << 20)
#define ALL_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
			 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

/* One end of a conversation. */
struct side {
	struct verbs_client client;	/* first */
	struct ibfs_device *dev;
	const struct verbs_ops *ops;
	struct ibfs_pd *pd;
	struct ibfs_cq *cq;
	struct ibfs_srq *srq;
	struct ibfs_qp *qp;
	uint32_t qpn;
	struct memory *mem;
	uint8_t *data;
	struct ibfs_mr *mr;
	uint32_t key;
	unsigned int events[32], comps;
	uint64_t next_id;
	/* What side_qp() and connect_rc() use; set before. */
	struct ibfs_qp_init init;
	struct ibv_qp_attr attr;
};

static inline void side_event(struct verbs_client *client, enum ibv_event_type event)
{
	((struct side *)client)->events[event]++;
}

static inline void side_comp(struct verbs_client *client)
{
	((struct side *)client)->comps++;
}

static inline struct ibfs_mr *side_reg(struct side *s, uint64_t off, uint64_t len, uint64_t iova,
				       unsigned int access)
{
	struct ibfs_mr_init init = { .mem = s->mem, .mem_off = off, .length = len, .iova = iova,
				     .access = access };
	struct ibfs_mr *mr = NULL;

	CHECK(!s->ops->reg_mr(s->pd, &init, &mr));
	return mr;
}

static inline uint32_t mr_key(struct side *s, struct ibfs_mr *mr)
{
	struct ibfs_mr_attr attr;

	s->ops->query_mr(mr, &attr);
	return attr.lkey;
}

static inline void side_open(struct side *s, const char *dev)
{
	memset(s, 0, sizeof(*s));
	s->client = (struct verbs_client){ .event = side_event, .comp = side_comp };
	s->dev = device(dev);
	s->ops = s->dev->ops->verbs;
	CHECK(!s->ops->alloc_pd(s->dev, &s->pd));
	CHECK(!s->ops->create_cq(s->dev, 1024, &s->client, &s->cq));
	s->mem = memory_own(SIDE_MEM);
	s->data = s->mem->base;
	s->mr = side_reg(s, 0, SIDE_MEM, 0, ALL_ACCESS);
	s->key = mr_key(s, s->mr);
	s->init = (struct ibfs_qp_init){
		.pd = s->pd, .send_cq = s->cq, .recv_cq = s->cq, .type = IBV_QPT_RC,
		.cap = { .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4,
			 .max_inline_data = 256 },
	};
	s->attr = (struct ibv_qp_attr){
		.port_num = 1, .qp_access_flags = ALL_ACCESS, .path_mtu = IBV_MTU_1024,
		.rq_psn = 0, .sq_psn = 0, .max_rd_atomic = 4, .max_dest_rd_atomic = 4,
		.min_rnr_timer = 1, .timeout = 14, .retry_cnt = 3, .rnr_retry = 3, .qkey = 0x1234,
	};
}

static inline void side_query_qpn(struct side *s)
{
	struct ibv_qp_attr attr;
	struct ibfs_qp_init init;

	s->ops->query_qp(s->qp, &attr, &init, &s->qpn);
}

static inline void side_qp(struct side *s)
{
	CHECK(!s->ops->create_qp(s->dev, &s->init, &s->client, &s->qp));
	side_query_qpn(s);
}

static inline enum ibv_qp_state side_state(struct side *s)
{
	struct ibv_qp_attr attr;
	struct ibfs_qp_init init;
	uint32_t qpn;

	s->ops->query_qp(s->qp, &attr, &init, &qpn);
	return attr.qp_state;
}

static inline int side_to(struct side *s, enum ibv_qp_state state, int mask)
{
	s->attr.qp_state = state;
	return s->ops->modify_qp(s->qp, &s->attr, IBV_QP_STATE | mask);
}

#define TO_INIT_RC	(IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define TO_INIT_UD	(IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define TO_RTR_UC	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define TO_RTR_RC	(TO_RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define TO_RTS_UC	IBV_QP_SQ_PSN
#define TO_RTS_INI	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
			 IBV_QP_MAX_QP_RD_ATOMIC)
#define TO_RTS_TGT	(IBV_QP_TIMEOUT | IBV_QP_SQ_PSN)

static inline struct port *side_port(struct side *s)
{
	return &hca_of(s->dev)->node->ports[s->attr.port_num];
}

/* To RTS, towards a peer; by the type's own masks. */
static inline void side_connect(struct side *s, struct side *peer)
{
	unsigned int type = s->init.type;
	bool target = type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;

	s->attr.dest_qp_num = peer->qpn;
	s->attr.ah_attr = (struct ibv_ah_attr){ .dlid = side_port(peer)->lid,
						.port_num = s->attr.port_num };
	CHECK(!side_to(s, IBV_QPS_INIT, TO_INIT_RC));
	CHECK(!side_to(s, IBV_QPS_RTR, target ? TO_RTR_RC : TO_RTR_UC));
	CHECK(!side_to(s, IBV_QPS_RTS, type == IBV_QPT_UC ? TO_RTS_UC :
		       type == IBV_QPT_XRC_RECV ? TO_RTS_TGT : TO_RTS_INI));
}

static inline void connect_sides(struct side *a, struct side *b)
{
	side_connect(a, b);
	side_connect(b, a);
}

static inline void side_ud(struct side *s)
{
	CHECK(!side_to(s, IBV_QPS_INIT, TO_INIT_UD));
	CHECK(!side_to(s, IBV_QPS_RTR, 0));
	CHECK(!side_to(s, IBV_QPS_RTS, IBV_QP_SQ_PSN));
}

/* Two sides with connected QPs of one type on the two HCAs. */
static inline void pair_open(struct side *a, struct side *b, unsigned int type)
{
	side_open(a, "rxe0");
	side_open(b, "rxe1");
	a->init.type = b->init.type = type;
	side_qp(a);
	side_qp(b);
	if (type == IBV_QPT_UD) {
		side_ud(a);
		side_ud(b);
	} else {
		connect_sides(a, b);
	}
}

static inline void side_close(struct side *s)
{
	if (s->qp)
		CHECK(!s->ops->destroy_qp(s->qp, &s->client));
	if (s->srq)
		CHECK(!s->ops->destroy_srq(s->srq));
	CHECK(!s->ops->destroy_cq(s->cq));
	CHECK(!s->ops->dereg_mr(s->mr));
	CHECK(!s->ops->dealloc_pd(s->pd));
	memory_put(s->mem);
}

static inline void pair_close(struct side *a, struct side *b)
{
	side_close(a);
	side_close(b);
}

/* A work request on the side's own memory; off and len are bytes. */
static inline struct ibfs_wr wr_of(struct side *s, unsigned int opcode, struct ibv_sge *sge,
				   uint32_t off, uint32_t len)
{
	*sge = (struct ibv_sge){ off, len, s->key };
	return (struct ibfs_wr){ .wr_id = ++s->next_id, .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED, .sg_list = sge, .num_sge = 1 };
}

static inline int side_send(struct side *s, unsigned int opcode, uint32_t off, uint32_t len,
			    uint64_t raddr, uint32_t rkey)
{
	struct ibv_sge sge;
	struct ibfs_wr wr = wr_of(s, opcode, &sge, off, len);

	wr.rdma.remote_addr = raddr;
	wr.rdma.rkey = rkey;
	wr.ex.imm_data = htonl(0xfeed0000 + s->next_id);
	return s->ops->post_send(s->qp, &wr);
}

static inline int side_recv(struct side *s, uint32_t off, uint32_t len)
{
	struct ibv_sge sge = { off, len, s->key };
	struct ibfs_recv_wr wr = { .wr_id = ++s->next_id, .sg_list = &sge, .num_sge = 1 };

	return s->srq ? s->ops->post_srq_recv(s->srq, &wr) : s->ops->post_recv(s->qp, &wr);
}

/* The next completion, waited for up to some seconds of the test's clock; false: none came. */
static inline bool side_wc_in(struct side *s, struct ibfs_wc *wc, double seconds)
{
	double end = now() + seconds;

	memset(wc, 0xff, sizeof(*wc));
	for (int i = 0; i < 20; i++) {
		if (s->ops->poll_cq(s->cq, 1, wc) == 1)
			return true;
		ev_run(t.ibfs.loop, EVRUN_NOWAIT);
	}
	while (now() < end) {
		tick(0.0005);
		if (s->ops->poll_cq(s->cq, 1, wc) == 1)
			return true;
	}
	return false;
}

static inline bool side_wc(struct side *s, struct ibfs_wc *wc)
{
	return side_wc_in(s, wc, 30);
}

/* The next completion has this status and opcode (-1: any). */
static inline bool expect_wc(struct side *s, unsigned int status, int opcode)
{
	struct ibfs_wc wc;

	if (!side_wc(s, &wc)) {
		printf("no completion, not %s\n", wc_status_name(status));
		return false;
	}
	if (wc.status == status && (opcode < 0 || (int)wc.opcode == opcode))
		return true;
	printf("completion %s of %s (wr_id %llu), not %s\n", wc_status_name(wc.status),
	       wc_opcode_name(wc.opcode), (unsigned long long)wc.wr_id, wc_status_name(status));
	return false;
}

static inline bool no_wc(struct side *s)
{
	struct ibfs_wc wc;

	if (!side_wc_in(s, &wc, 0.01))
		return true;
	printf("unexpected completion %s of %s\n", wc_status_name(wc.status),
	       wc_opcode_name(wc.opcode));
	return false;
}

static inline void fill(uint8_t *data, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		data[i] = seed >> 24;
	}
}

#endif
