/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work queues in rings that a process maps: struct rxe_send_wqe and
 * rxe_recv_wqe (rdma/rdma_user_rxe.h) parsed into ours. A slot is copied once
 * and only the copy is looked at. Known quirks of the rxe provider are met:
 * dma.length isn't trusted, the lengths of the SGEs are summed instead. What it
 * has no use for, a request's reserved word, is the SRQ's number in XRC.
 */
#include <errno.h>
#include <rdma/rdma_user_rxe.h>
#include <string.h>

#include "hca/verbs.h"

#define RWQE_BYTES (sizeof(struct rxe_recv_wqe) + VERBS_MAX_SGE * sizeof(struct rxe_sge))
_Static_assert(sizeof(struct rxe_sge) == sizeof(struct ibv_sge), "one layout");
_Static_assert(VERBS_MAX_SGE * sizeof(struct rxe_sge) >= VERBS_MAX_INLINE, "inline fits");

static void wr_from_mw(struct ibfs_wr *wr, const struct rxe_send_wr *raw)
{
	wr->bind.mw_rkey = raw->wr.mw.mw_rkey;
	wr->bind.mr_lkey = raw->wr.mw.mr_lkey;
	wr->bind.rkey = raw->wr.mw.rkey;
	wr->bind.addr = raw->wr.mw.addr;
	wr->bind.length = raw->wr.mw.length;
	wr->bind.access = raw->wr.mw.access;
}

int wr_from_wqe(struct ibfs_wr *wr, const struct rxe_send_wqe *raw, size_t room, bool ud)
{
	const struct wr_info *info = wr_info(raw->wr.opcode);

	*wr = (struct ibfs_wr){
		.wr_id = raw->wr.wr_id, .opcode = raw->wr.opcode, .send_flags = raw->wr.send_flags,
		.ex.imm_data = raw->wr.ex.imm_data, .xrc_srq_num = raw->wr.reserved,
	};
	if (!info)
		return -EINVAL;
	if (ud) {
		wr->ud.remote_qpn = raw->wr.wr.ud.remote_qpn;
		wr->ud.remote_qkey = raw->wr.wr.ud.remote_qkey;
		wr->ud.pkey_index = raw->wr.wr.ud.pkey_index;
	} else if (raw->wr.opcode == IBFS_WR_BIND_MW) {
		wr_from_mw(wr, &raw->wr);
	} else if (info->kind == KIND_ATOMIC) {
		wr->atomic.remote_addr = raw->wr.wr.atomic.remote_addr;
		wr->atomic.compare_add = raw->wr.wr.atomic.compare_add;
		wr->atomic.swap = raw->wr.wr.atomic.swap;
		wr->atomic.rkey = raw->wr.wr.atomic.rkey;
	} else if (info->kind == KIND_ATOMIC_WRITE) {
		wr->atomic.remote_addr = raw->wr.wr.rdma.remote_addr;
		wr->atomic.rkey = raw->wr.wr.rdma.rkey;
	} else {
		wr->rdma.remote_addr = raw->wr.wr.rdma.remote_addr;
		wr->rdma.rkey = raw->wr.wr.rdma.rkey;
	}
	if (info->kind == KIND_ATOMIC_WRITE) {
		wr->send_flags &= ~(unsigned int)IBV_SEND_INLINE;
		memcpy(&wr->atomic.swap, raw->dma.inline_data, sizeof(wr->atomic.swap));
		return room < sizeof(wr->atomic.swap) ? -EINVAL : 0;
	}
	if (raw->wr.send_flags & IBV_SEND_INLINE) {
		wr->inline_data = raw->dma.inline_data;
		wr->inline_len = raw->dma.length;
		return raw->dma.length > room ? -EINVAL : 0;
	}
	wr->sg_list = (const struct ibv_sge *)raw->dma.sge;
	wr->num_sge = raw->dma.num_sge;
	return raw->dma.num_sge > room / sizeof(struct rxe_sge) ? -EINVAL : 0;
}

bool wqe_can(unsigned int opcode)
{
	return opcode != IBFS_WR_LSO && opcode != IBFS_WR_FAST_REG_MR &&
	       opcode != IBFS_WR_MASKED_ATOMIC_CMP_AND_SWP &&
	       opcode != IBFS_WR_MASKED_ATOMIC_FETCH_AND_ADD;
}

uint32_t sq_waiting(const struct requester *req)
{
	const struct ring *ring = &req->ring;

	if (!ring->buf || req->ring_fetched == ring->mask)
		return 0;
	return (ring_used(ring, false) - req->ring_fetched) & ring->mask;
}

uint32_t sq_fetch(struct ibfs_qp *qp, uint32_t max)
{
	struct requester *req = &qp->req;
	struct ring *ring = &req->ring;
	uint32_t n = 0;
	_Alignas(8) uint8_t copy[WQE_MAX_BYTES];

	while (n < max && req->tail - req->head < req->size && sq_waiting(req)) {
		size_t bytes = ring_copy(ring, ring->index + req->ring_fetched, copy, sizeof(copy));
		const struct rxe_send_wqe *raw = (const struct rxe_send_wqe *)copy;
		struct ibfs_wr wr;
		int err;

		err = wr_from_wqe(&wr, raw, bytes - sizeof(*raw), req->avs);
		if (req->avs)
			wr.ud.ah = table_get(&qp->verbs->ahs, raw->wr.wr.ud.ah_num);
		if (!err)
			err = wqe_can(wr.opcode) ? sq_check(qp, &wr) : -EINVAL;
		/* A bad one fails when its turn comes, as the ring has no other answer. */
		if (err)
			wr = (struct ibfs_wr){ .wr_id = wr.wr_id, .opcode = wr.opcode };
		if (sq_post(qp, &wr, true))
			break;
		if (err)
			sq_wqe(req, req->tail - 1)->status = IBV_WC_LOC_QP_OP_ERR;
		req->ring_fetched++;
		n++;
	}
	return n;
}

int rq_share(struct rq *rq, struct ibfs_ring *info)
{
	if (!rq->ring.buf) {
		size_t elem = sizeof(struct rxe_recv_wqe) + rq->max_sge * sizeof(struct rxe_sge);
		int err = ring_init(&rq->ring, rq->max_wr, elem, true, rq->bill);

		if (err)
			return err;
	}
	*info = (struct ibfs_ring){ rq->ring.fd, rq->ring.size, rq->ring.off };
	return 0;
}

int sq_share(struct ibfs_qp *qp, struct ibfs_ring *info)
{
	struct requester *req = &qp->req;

	if (!req->ring.buf) {
		size_t data = qp->attr.cap.max_send_sge * sizeof(struct rxe_sge);
		int err;

		if (data < qp->attr.cap.max_inline_data)
			data = qp->attr.cap.max_inline_data;
		err = ring_init(&req->ring, qp->attr.cap.max_send_wr,
				sizeof(struct rxe_send_wqe) + data, true, &qp->bill);
		if (err)
			return err;
		ring_want_doorbell(&req->ring, true);
	}
	*info = (struct ibfs_ring){ req->ring.fd, req->ring.size, req->ring.off };
	return 0;
}

static int rq_take_ring(struct rq *rq, struct rwqe *wqe)
{
	_Alignas(8) uint8_t copy[RWQE_BYTES];
	const struct rxe_recv_wqe *raw = (const struct rxe_recv_wqe *)copy;
	uint64_t sum = 0;

	if (!ring_used(&rq->ring, false))
		return -ENOENT;
	ring_copy(&rq->ring, rq->ring.index, copy, sizeof(copy));
	rq->ring.index++;
	wqe->from_ring = true;
	wqe->wr_id = raw->wr_id;
	wqe->wr_cqe = NULL;
	wqe->num_sge = raw->dma.num_sge;
	wqe->length = 0;
	if (wqe->num_sge > rq->max_sge)
		return -EINVAL;
	memcpy(wqe->sges, raw->dma.sge, wqe->num_sge * sizeof(*wqe->sges));
	for (unsigned int i = 0; i < wqe->num_sge; i++)
		sum += wqe->sges[i].length;
	if (sum > VERBS_MAX_MSG)
		return -EINVAL;
	wqe->length = sum;
	return 0;
}

int rq_take(struct rq *rq, struct rwqe *wqe)
{
	uint32_t slot = rq->head & (rq->size - 1);

	if (rq->head == rq->tail)
		return rq->ring.buf ? rq_take_ring(rq, wqe) : -ENOENT;
	wqe->from_ring = false;
	wqe->wr_id = rq->wqe[slot].wr_id;
	wqe->wr_cqe = rq->wqe[slot].wr_cqe;
	wqe->num_sge = rq->wqe[slot].num_sge;
	memcpy(wqe->sges, rq->sges + (size_t)slot * rq->max_sge, wqe->num_sge * sizeof(*wqe->sges));
	wqe->length = 0;
	for (unsigned int i = 0; i < wqe->num_sge; i++)
		wqe->length += wqe->sges[i].length;
	rq->head++;
	return 0;
}

void rq_taken(struct rq *rq, const struct rwqe *wqe)
{
	if (wqe->from_ring)
		ring_publish(&rq->ring, false);
}
