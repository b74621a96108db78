/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings of a system's device: the same that a soft device's queues have, which
 * a process maps. No driver's queues look alike, so the daemon takes requests
 * from these and posts them. It must be rung for each, also for receive
 * requests, since nobody looks at the rings by himself. What the driver's queue
 * has no room for waits for a completion.
 */
#include <errno.h>
#include <rdma/rdma_user_rxe.h>
#include <utlist.h>

#include "backend/verbs/rverbs.h"

static int fill(struct ring *ring, struct ibfs_ring *info)
{
	ring_want_doorbell(ring, true);
	*info = (struct ibfs_ring){ ring->fd, ring->size, ring->off };
	return 0;
}

static int share_send(struct rqp *qp, struct ibfs_ring *info)
{
	const struct ibv_qp_cap *cap = &qp->init.cap;
	size_t data = cap->max_send_sge * sizeof(struct rxe_sge);
	int err;

	if (data < cap->max_inline_data)
		data = cap->max_inline_data;
	if (!qp->sq.buf) {
		err = ring_init(&qp->sq, cap->max_send_wr, sizeof(struct rxe_send_wqe) + data,
				true, &qp->bill);
		if (err)
			return err;
	}
	return fill(&qp->sq, info);
}

/* The private part of it holds the one that the driver's queue had no room for. */
static int share_recv(struct rq *rq, uint32_t max_wr, uint32_t max_sge, struct bill *bill,
		      struct ibfs_ring *info)
{
	int err = rq->wqe ? 0 : rq_init(rq, max_wr, max_sge, bill);

	if (!err)
		err = rq_share(rq, info);
	return err ? err : fill(&rq->ring, info);
}

int rqp_ring(struct ibfs_qp *qp, bool send, struct ibfs_ring *ring)
{
	struct rqp *rqp = (struct rqp *)qp;
	const struct ibv_qp_cap *cap = &rqp->init.cap;

	if (send)
		return rqp->init.send_cq ? share_send(rqp, ring) : -EINVAL;
	if (rqp->init.srq || !rqp->init.recv_cq)
		return -EINVAL;
	return share_recv(&rqp->rq, cap->max_recv_wr, cap->max_recv_sge, &rqp->bill, ring);
}

int rsrq_ring(struct ibfs_srq *srq, struct ibfs_ring *ring)
{
	struct rsrq *rsrq = (struct rsrq *)srq;

	return share_recv(&rsrq->rq, rsrq->max_wr, rsrq->max_sge, &rsrq->bill, ring);
}

int rcq_ring(struct ibfs_cq *cq, struct ibfs_ring *ring)
{
	return cq_ring(((struct rcq *)cq)->soft, ring);
}

void rqp_rings_free(struct rqp *qp)
{
	if (qp->sq.buf)
		ring_free(&qp->sq);
	if (qp->rq.wqe)
		rq_free(&qp->rq);
}

/* A QP in RESET has nothing in its queues. */
void rqp_rings_reset(struct rqp *qp)
{
	rcqe_drop(qp);
	qp->waits = false;
	if (qp->sq.buf) {
		qp->sq.index += ring_used(&qp->sq, false);
		ring_publish(&qp->sq, false);
	}
	rq_drop(&qp->rq);
}

/* A ring has no other answer than a completion: as a soft device's request that can't be. */
static void complete_bad(struct rqp *qp, struct ibfs_cq *cq, uint64_t wr_id, unsigned int opcode)
{
	const struct ibfs_wc wc = {
		.wr_id = wr_id, .status = IBV_WC_LOC_QP_OP_ERR,
		.opcode = (enum ibfs_wc_opcode)opcode, .qp_num = qp->num,
	};

	rqp_error(qp);
	if (cq)
		rcq_push((struct rcq *)cq, &wc, true);
}

static enum ibv_qp_state state_of(struct rqp *qp)
{
	struct ibfs_qp_init init;
	struct ibv_qp_attr attr;
	uint32_t num;

	rqp_query((struct ibfs_qp *)qp, &attr, &init, &num);
	return attr.qp_state;
}

static unsigned int wc_opcode(unsigned int opcode)
{
	const struct wr_info *info = wr_info(opcode);

	return info ? info->wc : IBFS_WC_SEND;
}

static int post_one(struct rqp *qp)
{
	_Alignas(8) uint8_t copy[WQE_MAX_BYTES];
	const struct rxe_send_wqe *raw = (const struct rxe_send_wqe *)copy;
	size_t bytes = ring_copy(&qp->sq, qp->sq.index, copy, sizeof(copy));
	bool ud = qp->init.type == IBV_QPT_UD;
	struct ibfs_wr wr;
	int err;

	err = wr_from_wqe(&wr, raw, bytes - sizeof(*raw), ud);
	if (ud)
		wr.ud.ah = rah_by_num(qp->obj.rdev, raw->wr.wr.ud.ah_num);
	if (!err)
		err = wqe_can(wr.opcode) ? rqp_post_send((struct ibfs_qp *)qp, &wr) : -EINVAL;
	if (err == -ENOMEM || err == -EIO)
		return err;
	if (err && state_of(qp) < IBV_QPS_RTS)
		return -EINVAL;
	qp->sq.index++;
	ring_publish(&qp->sq, false);
	if (err)
		complete_bad(qp, qp->init.send_cq, wr.wr_id, wc_opcode(wr.opcode));
	return 0;
}

/* No more than there were: who goes on producing rings again. */
static int drain_send(struct rqp *qp)
{
	uint32_t n = qp->sq.buf ? ring_used(&qp->sq, false) : 0;
	int err = 0;

	while (n-- && !err)
		err = post_one(qp);
	return err;
}

/* One that the driver has no room for goes back, to be the next. */
static int recv_one(struct rq *rq, struct robj *obj, uint64_t *wr_id)
{
	struct ibv_sge sges[RPOST_SGE];
	struct rwqe wqe = { .sges = sges };
	struct ibfs_recv_wr wr;
	int err = rq->max_sge > RPOST_SGE ? -EINVAL : rq_take(rq, &wqe);

	*wr_id = wqe.wr_id;
	if (err != -ENOENT)
		rq_taken(rq, &wqe);
	if (err)
		return err;
	wr = (struct ibfs_recv_wr){ .wr_id = wqe.wr_id, .sg_list = sges, .num_sge = wqe.num_sge };
	err = obj->kind == ROBJ_QP ? rqp_post_recv((struct ibfs_qp *)obj, &wr) :
				     rsrq_post((struct ibfs_srq *)obj, &wr);
	if (err == -ENOMEM)
		rq_post(rq, &wr);
	return err;
}

static int drain_recv(struct rq *rq, struct robj *obj, uint64_t *wr_id)
{
	uint32_t n = rq->wqe ? rq_count(rq) : 0;
	int err = 0;

	while (n-- && !err)
		err = recv_one(rq, obj, wr_id);
	return err;
}

static int drain(struct rqp *qp)
{
	uint64_t wr_id;
	int err = drain_recv(&qp->rq, &qp->obj, &wr_id);

	qp->waits = err == -ENOMEM;
	if (err && err != -ENOMEM) {
		if (err == -EIO || state_of(qp) == IBV_QPS_RESET)
			return err;
		complete_bad(qp, qp->init.recv_cq, wr_id, IBFS_WC_RECV);
	}
	err = drain_send(qp);
	if (err != -ENOMEM)
		return err;
	qp->waits = true;
	return 0;
}

int rqp_doorbell(struct ibfs_qp *qp)
{
	return drain((struct rqp *)qp);
}

/* A request that can't be puts an SRQ into error; there is room again when one was taken. */
int rsrq_doorbell(struct ibfs_srq *srq)
{
	struct rsrq *rsrq = (struct rsrq *)srq;
	uint64_t wr_id;
	int err = drain_recv(&rsrq->rq, &rsrq->obj, &wr_id);

	rsrq->waits = err == -ENOMEM;
	if (err == -EINVAL && rsrq->client && rsrq->client->event)
		rsrq->client->event(rsrq->client, IBV_EVENT_SRQ_ERR);
	return err == -ENOMEM ? 0 : err;
}

void rrings_go_on(struct rdev *rdev)
{
	struct robj *obj;

	DL_FOREACH(rdev->objs[ROBJ_QP], obj)
		if (((struct rqp *)obj)->waits)
			drain((struct rqp *)obj);
	DL_FOREACH(rdev->objs[ROBJ_SRQ], obj)
		if (((struct rsrq *)obj)->waits)
			rsrq_doorbell((struct ibfs_srq *)obj);
}
