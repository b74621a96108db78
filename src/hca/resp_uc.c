/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder of unreliable connections: what is out of sequence or isn't
 * allowed is dropped, and nobody is told. IBA 9.8.2.
 */
#include <errno.h>

#include "hca/resp.h"

static void uc_next(struct ibfs_qp *qp, const struct rx *rx)
{
	if (rx->op->last) {
		qp->resp.msg = MSG_NONE;
		qp->resp.msn++;
	}
}

/* The rest of the message is dropped; its receive request serves the next one. */
static void uc_drop(struct ibfs_qp *qp, const struct rx *rx)
{
	qp->resp.msg = rx->op->last ? MSG_NONE : MSG_SKIP;
}

static void uc_fail(struct ibfs_qp *qp, const struct rx *rx, enum ibv_wc_status status)
{
	recv_complete(qp, rx, status);
	qp_error(qp);
}

static int uc_take(struct ibfs_qp *qp, const struct rx *rx)
{
	int err;

	qp->resp.off = 0;
	if (qp->resp.has_wqe)
		return 0;
	err = recv_take(qp, qp->srq);
	if (err == -ENOENT)
		uc_drop(qp, rx);
	else if (err)
		uc_fail(qp, rx, IBV_WC_LOC_QP_OP_ERR);
	return err;
}

static void uc_send_done(struct ibfs_qp *qp, struct rx *rx, int err)
{
	if (err) {
		uc_fail(qp, rx, memory_status(err));
		return;
	}
	qp->resp.off += rx->len;
	if (rx->op->last)
		recv_complete(qp, rx, IBV_WC_SUCCESS);
	uc_next(qp, rx);
}

static void uc_send(struct ibfs_qp *qp, struct rx *rx)
{
	struct responder *r = &qp->resp;
	int err;

	if (rx->op->first && uc_take(qp, rx))
		return;
	if (!rx_length_ok(qp, rx)) {
		uc_drop(qp, rx);
		return;
	}
	if (rx->len > r->wqe.length - r->off) {
		uc_fail(qp, rx, IBV_WC_LOC_LEN_ERR);
		return;
	}
	r->msg = MSG_SEND;
	err = recv_scatter(qp, rx, uc_send_done);
	if (err <= 0)
		uc_send_done(qp, rx, err);
}

static void uc_write_done(struct ibfs_qp *qp, struct rx *rx, int err)
{
	struct responder *r = &qp->resp;

	if (err) {
		uc_drop(qp, rx);
		return;
	}
	r->va += rx->len;
	r->resid -= rx->len;
	if (rx->op->needs_recv)
		recv_complete(qp, rx, IBV_WC_SUCCESS);
	uc_next(qp, rx);
}

static void uc_write(struct ibfs_qp *qp, struct rx *rx)
{
	struct responder *r = &qp->resp;
	int err;

	if (rx->op->first && (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) ||
			      !resp_reth(qp, rx))) {
		uc_drop(qp, rx);
		return;
	}
	if (!rx_length_ok(qp, rx) || rx->len > r->resid || (rx->op->last && rx->len != r->resid)) {
		uc_drop(qp, rx);
		return;
	}
	if (rx->op->needs_recv && uc_take(qp, rx))
		return;
	r->msg = MSG_WRITE;
	err = resp_write_payload(qp, rx, qp->pd, uc_write_done);
	if (err <= 0)
		uc_write_done(qp, rx, err);
}

void resp_uc(struct ibfs_qp *qp, struct rx *rx)
{
	struct responder *r = &qp->resp;
	bool in_order = rx->psn == r->epsn;

	r->epsn = (rx->psn + rx->segs) & PSN_MASK;
	if (rx->op->kind != KIND_SEND && rx->op->kind != KIND_WRITE)
		return;
	/* A message that lacks its end is given up for the one that begins. 9.8.2.2 */
	if (rx->op->first)
		r->msg = MSG_NONE;
	else if (!in_order || r->msg != (rx->op->kind == KIND_SEND ? MSG_SEND : MSG_WRITE)) {
		uc_drop(qp, rx);
		return;
	}
	if (rx->op->kind == KIND_SEND)
		uc_send(qp, rx);
	else
		uc_write(qp, rx);
}
