/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues in the keeper's book: hca/keep.h. */
#include "hca/keep.h"

/* Who wants all rings in one file keeps that itself. */
static void ring_keep(struct ibfs *ibfs, struct ring *ring, struct keep_ring *entry)
{
	struct keep_ring now = { .mask = ring->mask, .elem_size = ring->elem_size, .off = ring->off };

	if (!ring->buf || ring->fd < 0)
		return;
	if (!ring->space && !ring->kept)
		ring->kept = keeper_file(ibfs, ring->fd, KEEP_RINGS);
	now.file = keeper_file_num(ring->space ? ring->space->kept : ring->kept);
	*entry = now;
}

static bool slot_make(struct ibfs *ibfs, struct keep_slot **slot)
{
	if (!*slot)
		*slot = keeper_slot(ibfs);
	return *slot;
}

static void slot_live(struct keep_slot *slot, enum keep_kind kind)
{
	atomic_store(&slot->kind, kind);
}

static void slot_drop(struct ibfs *ibfs, struct keep_slot **slot)
{
	keeper_slot_drop(ibfs, *slot);
	*slot = NULL;
}

void cq_keep(struct ibfs_cq *cq)
{
	struct ibfs *ibfs = cq->verbs->ibfs;

	if (!slot_make(ibfs, &cq->keep))
		return;
	ring_keep(ibfs, &cq->ring, &cq->keep->rings[0]);
	slot_live(cq->keep, KEEP_CQ);
}

/* A queue is named before it has a ring. */
static uint32_t cq_slot(struct ibfs_cq *cq)
{
	if (cq && !cq->keep)
		cq_keep(cq);
	return cq ? keeper_slot_num(cq->verbs->ibfs, cq->keep) : 0;
}

void srq_keep(struct ibfs_srq *srq)
{
	struct ibfs *ibfs = srq->verbs->ibfs;

	if (!slot_make(ibfs, &srq->keep))
		return;
	ring_keep(ibfs, &srq->rq.ring, &srq->keep->rings[0]);
	srq->keep->recv_cq = cq_slot(srq->cq);
	slot_live(srq->keep, KEEP_SRQ);
}

void qp_keep(struct ibfs_qp *qp)
{
	struct ibfs *ibfs = qp->verbs->ibfs;

	if (!slot_make(ibfs, &qp->keep))
		return;
	ring_keep(ibfs, &qp->req.ring, &qp->keep->rings[0]);
	ring_keep(ibfs, &qp->rq.ring, &qp->keep->rings[1]);
	if (qp->srq && !qp->srq->keep)
		srq_keep(qp->srq);
	qp->keep->qp_num = qp->qpn;
	qp->keep->send_cq = cq_slot(qp->send_cq);
	qp->keep->recv_cq = cq_slot(qp->recv_cq);
	qp->keep->srq = qp->srq ? keeper_slot_num(ibfs, qp->srq->keep) : 0;
	slot_live(qp->keep, KEEP_QP);
}

void cq_unkeep(struct ibfs_cq *cq)
{
	slot_drop(cq->verbs->ibfs, &cq->keep);
}

void srq_unkeep(struct ibfs_srq *srq)
{
	slot_drop(srq->verbs->ibfs, &srq->keep);
}

void qp_unkeep(struct ibfs_qp *qp)
{
	slot_drop(qp->verbs->ibfs, &qp->keep);
}
