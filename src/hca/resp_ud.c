/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving side of datagrams: Q_Key, the 40 bytes where a GRH goes, and
 * the check of IP checksums. IBA 9.8.3, 10.2.5, 11.4.1.2.
 */
#include <errno.h>

#include "hca/csum.h"
#include "hca/mad.h"
#include "hca/verbs.h"

#define GRH_ROOM 40

static uint32_t grh_room(const struct rx *rx)
{
	return rx->raw ? 0 : GRH_ROOM;
}

static void ud_done(struct ibfs_qp *qp, struct rx *rx, int err)
{
	if (err) {
		recv_complete(qp, rx, memory_status(err));
		qp_error(qp);
		return;
	}
	rx->csum_ok = !rx->raw && csum_packet_ok(rx->pkt, rx->off, rx->len);
	qp->resp.off = grh_room(rx) + rx->len;
	recv_complete(qp, rx, IBV_WC_SUCCESS);
}

/* The payload is there; now its GRH, if it has one. */
static void ud_grh(struct ibfs_qp *qp, struct rx *rx, int err)
{
	struct rx grh = *rx;

	if (!err && rx->grh) {
		grh.off = (const uint8_t *)rx->grh - rx->pkt->data;
		grh.len = GRH_ROOM;
		qp->resp.off = 0;
		err = recv_scatter(qp, &grh, ud_done);
		if (err > 0)
			return;
	}
	ud_done(qp, rx, err);
}

static bool qkey_ok(const struct ibfs_qp *qp, const struct rx *rx)
{
	/* A raw packet has none, and a MAD's was looked at by the port. */
	if (rx->raw || qp_special(qp) || rx->qkey == qp->attr.qkey)
		return true;
	sma_bad_qkey(rx->port, rx->pkt);
	return false;
}

void resp_ud(struct ibfs_qp *qp, struct rx *rx)
{
	struct responder *r = &qp->resp;
	int err;

	if (rx->op->kind != KIND_SEND || rx->segs > 1 || !qkey_ok(qp, rx))
		return;
	err = recv_take(qp, qp->srq);
	if (err == -ENOENT)
		return;
	if (err || rx->len + grh_room(rx) > r->wqe.length) {
		recv_complete(qp, rx, err ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_LEN_ERR);
		qp_error(qp);
		return;
	}
	r->off = grh_room(rx);
	err = recv_scatter(qp, rx, ud_grh);
	if (err <= 0)
		ud_grh(qp, rx, err);
}
