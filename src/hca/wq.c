/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work queues: private copies of what was posted, so that nobody can change a
 * request that was checked, and the posting of requests in any form but a ring
 * slot. IBA 11.4.1, 10.8.2.
 */
#include <errno.h>
#include <rdma/rdma_user_rxe.h>
#include <stdlib.h>
#include <string.h>

#include "hca/verbs.h"

static uint32_t pow2_up(uint32_t n)
{
	return n <= 1 ? 1 : 1U << (32 - __builtin_clz(n - 1));
}

static uint64_t sq_bytes(const struct requester *req, const struct ibv_qp_cap *cap, bool ud)
{
	return (uint64_t)req->size * (sizeof(*req->wqe) + cap->max_inline_data +
				      (cap->max_send_sge + 1) * sizeof(*req->sges) +
				      (ud ? sizeof(*req->avs) : 0));
}

int sq_init(struct requester *req, const struct ibv_qp_cap *cap, bool ud, struct bill *bill)
{
	int err;

	req->size = pow2_up(cap->max_send_wr);
	req->cost.bytes = sq_bytes(req, cap, ud);
	err = bill_take(bill, req->cost);
	if (err)
		return err;
	req->bill = bill;
	req->wqe = calloc(req->size, sizeof(*req->wqe));
	req->sges = calloc((size_t)req->size * (cap->max_send_sge + 1), sizeof(*req->sges));
	req->inl = cap->max_inline_data ? malloc((size_t)req->size * cap->max_inline_data) : NULL;
	req->avs = ud ? calloc(req->size, sizeof(*req->avs)) : NULL;
	req->ring.fd = -1;
	if (!req->wqe || !req->sges || (cap->max_inline_data && !req->inl) || (ud && !req->avs)) {
		sq_free(req);
		return -ENOMEM;
	}
	return 0;
}

void sq_free(struct requester *req)
{
	for (uint32_t i = 0; req->wqe && i < req->size; i++)
		sq_drop_extra(req, &req->wqe[i]);
	free(req->wqe);
	free(req->sges);
	free(req->inl);
	free(req->avs);
	if (req->ring.buf)
		ring_free(&req->ring);
	if (req->bill)
		bill_give(req->bill, req->cost);
	req->bill = NULL;
}

static int sum_length(const struct ibv_sge *sges, unsigned int num, uint32_t *length)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < num; i++)
		sum += sges[i].length;
	*length = sum;
	return sum > VERBS_MAX_MSG ? -EINVAL : 0;
}

/* What of a datagram has to be right before it is queued. */
static int sq_check_ud(const struct ibfs_qp *qp, const struct ibfs_wr *wr)
{
	if (!wr->ud.ah || wr->ud.ah->pd != qp->pd)
		return -EINVAL;
	if (wr->ud.remote_qpn & ~QPN_MASK)
		return -EINVAL;
	if (wr->opcode == IBFS_WR_LSO &&
	    (!wr->ud.mss || !wr->ud.hlen || wr->ud.hlen > 128 || !wr->ud.header))
		return -EINVAL;
	return 0;
}

/* EINVAL: a request that the QP's type or size has no room for. 10.8.2.1 */
int sq_check(const struct ibfs_qp *qp, const struct ibfs_wr *wr)
{
	const struct wr_info *info = wr_info(wr->opcode);
	uint32_t length;

	if (!info || !(info->types >> qp->type & 1))
		return -EINVAL;
	if (wr->send_flags & ~(unsigned int)(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED |
					     IBV_SEND_INLINE | IBV_SEND_IP_CSUM))
		return -EINVAL;
	if (info->kind == KIND_ATOMIC_WRITE && (wr->num_sge || wr->send_flags & IBV_SEND_INLINE))
		return -EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE) {
		if (wr->inline_len > qp->attr.cap.max_inline_data || info->local ||
		    info->kind == KIND_READ || info->kind == KIND_ATOMIC)
			return -EINVAL;
	} else if (wr->num_sge > qp->attr.cap.max_send_sge ||
		   sum_length(wr->sg_list, wr->num_sge, &length)) {
		return -EINVAL;
	}
	if (info->kind == KIND_ATOMIC && (sum_length(wr->sg_list, wr->num_sge, &length) || length != 8))
		return -EINVAL;
	if (wr->opcode == IBFS_WR_FAST_REG_MR &&
	    (!wr->reg.pages || !wr->reg.num_pages || wr->reg.num_pages > VERBS_MAX_PAGES))
		return -EINVAL;
	return qp->req.avs ? sq_check_ud(qp, wr) : 0;
}

/* What a request refers to beyond SGEs and inline bytes. */
static int sq_copy_extra(struct requester *req, struct swqe *wqe, const struct ibfs_wr *wr)
{
	const void *from = NULL;
	size_t len = 0;

	if (wr->opcode == IBFS_WR_FAST_REG_MR && wr->reg.pages) {
		from = wr->reg.pages;
		len = wr->reg.num_pages * sizeof(*wr->reg.pages);
	} else if (wr->opcode == IBFS_WR_LSO && wr->ud.header) {
		from = wr->ud.header;
		len = wr->ud.hlen;
	}
	if (!len)
		return 0;
	if (bill_take(req->bill, (struct verbs_cost){ .bytes = len }))
		return -ENOMEM;
	wqe->extra = malloc(len);
	if (!wqe->extra) {
		bill_give(req->bill, (struct verbs_cost){ .bytes = len });
		return -ENOMEM;
	}
	memcpy(wqe->extra, from, len);
	wqe->extra_len = len;
	return 0;
}

void sq_drop_extra(struct requester *req, struct swqe *wqe)
{
	if (!wqe->extra)
		return;
	bill_give(req->bill, (struct verbs_cost){ .bytes = wqe->extra_len });
	free(wqe->extra);
	wqe->extra = NULL;
}

/* Where its bytes are, or the bytes; a queue that takes none inline has no place for them. */
static void sq_copy_data(struct requester *req, const struct ibv_qp_cap *cap, uint32_t slot,
			 const struct ibfs_wr *wr)
{
	struct ibv_sge *sges = req->sges + (size_t)slot * (cap->max_send_sge + 1);
	struct swqe *wqe = &req->wqe[slot];
	uint8_t *data = NULL;

	if (wr->send_flags & IBV_SEND_INLINE) {
		if (wr->inline_len) {
			data = req->inl + (size_t)slot * cap->max_inline_data;
			memcpy(data, wr->inline_data, wr->inline_len);
		}
		wqe->wr.num_sge = 0;
		wqe->wr.inline_data = data;
		wqe->length = wr->inline_len;
		return;
	}
	sum_length(wr->sg_list, wr->num_sge, &wqe->length);
	if (wr->num_sge)
		memcpy(sges, wr->sg_list, wr->num_sge * sizeof(*sges));
	wqe->wr.sg_list = sges;
}

int sq_post(struct ibfs_qp *qp, const struct ibfs_wr *wr, bool from_ring)
{
	struct requester *req = &qp->req;
	uint32_t slot = req->tail & (req->size - 1);
	struct swqe *wqe = &req->wqe[slot];

	if (req->tail - req->head >= req->size)
		return -ENOMEM;
	wqe->extra = NULL;
	if (sq_copy_extra(req, wqe, wr))
		return -ENOMEM;
	wqe->wr = *wr;
	wqe->started = wqe->done = wqe->rd_counted = false;
	wqe->from_ring = from_ring;
	wqe->status = 0;
	sq_copy_data(req, &qp->attr.cap, slot, wr);
	wqe->av = NULL;
	if (req->avs && wr->ud.ah) {
		wqe->av = &req->avs[slot];
		*wqe->av = wr->ud.ah->attr;
	}
	req->tail++;
	return 0;
}

int rq_init(struct rq *rq, uint32_t max_wr, uint32_t max_sge, struct bill *bill)
{
	int err;

	rq->size = pow2_up(max_wr);
	rq->max_wr = max_wr;
	rq->max_sge = max_sge;
	rq->ring.fd = -1;
	rq->cost.bytes = (uint64_t)rq->size * (sizeof(*rq->wqe) + (max_sge + 1) * sizeof(*rq->sges));
	err = bill_take(bill, rq->cost);
	if (err)
		return err;
	rq->bill = bill;
	rq->wqe = calloc(rq->size, sizeof(*rq->wqe));
	rq->sges = calloc((size_t)rq->size * (max_sge + 1), sizeof(*rq->sges));
	if (rq->wqe && rq->sges)
		return 0;
	rq_free(rq);
	return -ENOMEM;
}

void rq_free(struct rq *rq)
{
	free(rq->wqe);
	free(rq->sges);
	rq->wqe = NULL;
	rq->sges = NULL;
	if (rq->ring.buf)
		ring_free(&rq->ring);
	if (rq->bill)
		bill_give(rq->bill, rq->cost);
	rq->bill = NULL;
}

int rq_post(struct rq *rq, const struct ibfs_recv_wr *wr)
{
	uint32_t slot = rq->tail & (rq->size - 1), length;

	if (wr->num_sge > rq->max_sge || sum_length(wr->sg_list, wr->num_sge, &length))
		return -EINVAL;
	if (rq->tail - rq->head >= rq->max_wr)
		return -ENOMEM;
	rq->wqe[slot].wr_id = wr->wr_id;
	rq->wqe[slot].wr_cqe = wr->wr_cqe;
	rq->wqe[slot].num_sge = wr->num_sge;
	if (wr->num_sge)
		memcpy(rq->sges + (size_t)slot * rq->max_sge, wr->sg_list,
		       wr->num_sge * sizeof(*rq->sges));
	rq->tail++;
	return 0;
}

void rq_drop(struct rq *rq)
{
	for (; rq->head != rq->tail; rq->head++)
		wr_dropped(rq->wqe[rq->head & (rq->size - 1)].wr_cqe);
	if (!rq->ring.buf)
		return;
	rq->ring.index += ring_used(&rq->ring, false);
	ring_publish(&rq->ring, false);
}

uint32_t rq_count(const struct rq *rq)
{
	return rq->tail - rq->head + (rq->ring.buf ? ring_used(&rq->ring, false) : 0);
}

/* What is in the old ring moves to the new one, slot by slot as it stands. */
static int ring_resize(struct rq *rq, struct rq *new)
{
	uint32_t used = ring_used(&rq->ring, false);
	struct ibfs_ring info;
	int err;

	if (used > new->max_wr)
		return -EINVAL;
	err = rq_share(new, &info);
	if (err)
		return err;
	for (uint32_t i = 0; i < used; i++)
		memcpy(ring_slot(&new->ring, i), ring_slot(&rq->ring, rq->ring.index + i),
		       new->ring.elem_size);
	new->ring.buf->producer_index = used;
	return 0;
}

int rq_resize(struct rq *rq, uint32_t max_wr)
{
	struct rq new = { 0 };
	int err;

	if (max_wr < rq->tail - rq->head)
		return -EINVAL;
	err = rq_init(&new, max_wr, rq->max_sge, rq->bill);
	if (!err && rq->ring.buf)
		err = ring_resize(rq, &new);
	if (err) {
		rq_free(&new);
		return err;
	}
	for (; rq->head != rq->tail; rq->head++, new.tail++) {
		uint32_t from = rq->head & (rq->size - 1);

		new.wqe[new.tail] = rq->wqe[from];
		memcpy(new.sges + (size_t)new.tail * rq->max_sge,
		       rq->sges + (size_t)from * rq->max_sge, rq->max_sge * sizeof(*rq->sges));
	}
	rq_free(rq);
	*rq = new;
	return 0;
}
