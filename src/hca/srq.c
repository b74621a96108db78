/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues, basic and XRC: limit event, resize. IBA 10.2.9,
 * 11.2.3, A14.4.
 */
#include <errno.h>
#include <stdlib.h>

#include "hca/keep.h"

int srq_create(struct ibfs_pd *pd, const struct ibfs_srq_init *init, struct verbs_client *client,
	       struct ibfs_srq **out)
{
	struct verbs *verbs = pd->verbs;
	struct ibfs_srq *srq;
	int err;

	if (init->attr.max_wr < 1 || init->attr.max_wr > (uint32_t)verbs_limits.max_srq_wr ||
	    init->attr.max_sge > (uint32_t)verbs_limits.max_srq_sge)
		return -EINVAL;
	if (init->xrc && (!init->xrcd || !init->cq ||
			  !backend_own(init->xrcd->verbs == verbs && init->cq->verbs == verbs)))
		return -EINVAL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	srq->client = srq->bill.client = client;
	err = rq_init(&srq->rq, init->attr.max_wr, init->attr.max_sge, &srq->bill);
	if (err)
		goto free;
	err = table_add(&verbs->srqs, srq, &srq->num);
	if (err)
		goto rq;
	srq->verbs = verbs;
	srq->pd = pd;
	pd->refs++;
	if (init->xrc) {
		srq->xrc = true;
		srq->xrcd = init->xrcd;
		srq->cq = init->cq;
		srq->xrcd->refs++;
		srq->cq->refs++;
	}
	*out = srq;
	return 0;
rq:
	rq_free(&srq->rq);
free:
	free(srq);
	return err;
}

int srq_modify(struct ibfs_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	uint32_t max_wr = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->rq.max_wr;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return -EINVAL;
	if (max_wr < 1 || max_wr > (uint32_t)verbs_limits.max_srq_wr)
		return -EINVAL;
	if (mask & IBV_SRQ_LIMIT && attr->srq_limit > max_wr)
		return -EINVAL;
	if (!(mask & IBV_SRQ_LIMIT) && srq->limit > max_wr)
		return -EINVAL;
	if (mask & IBV_SRQ_MAX_WR) {
		int err = rq_resize(&srq->rq, max_wr);

		if (err)
			return err;
		if (srq->keep)
			srq_keep(srq);
	}
	if (mask & IBV_SRQ_LIMIT)
		srq->limit = attr->srq_limit;
	return 0;
}

void srq_query(struct ibfs_srq *srq, struct ibv_srq_attr *attr, uint32_t *num)
{
	*attr = (struct ibv_srq_attr){
		.max_wr = srq->rq.max_wr, .max_sge = srq->rq.max_sge, .srq_limit = srq->limit,
	};
	*num = srq->num;
}

/* An XRC target may be in the middle of a message for it, and no QP refers to it. */
static void xrc_forget(const struct ibfs_srq *srq)
{
	struct ibfs_qp *qp;

	for (uint32_t at = 0; (qp = ids_next(&srq->verbs->qps, &at));)
		if (qp->xrcd && qp->xrcd == srq->xrcd)
			recv_srq_gone(qp, srq);
}

int srq_destroy(struct ibfs_srq *srq)
{
	if (srq->refs)
		return -EBUSY;
	if (srq->xrc)
		xrc_forget(srq);
	table_del(&srq->verbs->srqs, srq->num);
	srq->pd->refs--;
	if (srq->xrc) {
		srq->xrcd->refs--;
		srq->cq->refs--;
	}
	srq_unkeep(srq);
	rq_free(&srq->rq);
	free(srq);
	return 0;
}

static const struct ibfs_qp *find_user(const struct ibfs_srq *srq)
{
	const struct ibfs_qp *qp;

	for (uint32_t at = 0; (qp = ids_next(&srq->verbs->qps, &at));)
		if (qp->srq == srq)
			return qp;
	return NULL;
}

void srq_lost(struct ibfs_srq *srq)
{
	const struct ibfs_qp *qp = srq->xrc ? NULL : find_user(srq);
	struct ibfs_cq *cq = qp ? qp->recv_cq : srq->cq;
	struct ibv_sge sges[VERBS_MAX_SGE];
	struct rwqe wqe = { .sges = sges };
	struct ibfs_wc wc = {
		.status = IBV_WC_FATAL_ERR, .opcode = IBFS_WC_RECV, .qp_num = qp ? qp->qpn : 0,
	};
	uint32_t left = rq_count(&srq->rq);

	srq->limit = 0;
	while (cq && left-- && !srq_take(srq, &wqe)) {
		rq_taken(&srq->rq, &wqe);
		wc.wr_id = wqe.wr_id;
		cq_push(cq, &wc, false);
	}
}

int srq_post(struct ibfs_srq *srq, const struct ibfs_recv_wr *wr)
{
	return srq->error || wr->wr_cqe ? -EINVAL : rq_post(&srq->rq, wr);
}

int srq_ring(struct ibfs_srq *srq, struct ibfs_ring *ring)
{
	int err = rq_share(&srq->rq, ring);

	if (!err)
		srq_keep(srq);
	return err;
}

/* A request that can't be right puts the SRQ into error; the event is told once. */
int srq_take(struct ibfs_srq *srq, struct rwqe *wqe)
{
	int err;

	if (srq->error)
		return -ENOENT;
	err = rq_take(&srq->rq, wqe);
	if (err == -EINVAL) {
		srq->error = true;
		if (srq->client && srq->client->event)
			srq->client->event(srq->client, IBV_EVENT_SRQ_ERR);
		return -ENOENT;
	}
	if (!err && srq->limit && rq_count(&srq->rq) < srq->limit) {
		srq->limit = 0;
		if (srq->client && srq->client->event)
			srq->client->event(srq->client, IBV_EVENT_SRQ_LIMIT_REACHED);
	}
	return err;
}
