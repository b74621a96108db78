/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What responders share: receive requests, and payload on its way into memory.
 * IBA 9.4.1, 10.7.3, 11.4.2.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/keep.h"

static bool recv_room(struct responder *r, uint32_t max_sge)
{
	struct ibv_sge *sges;

	if (r->wqe.sges && r->wqe_room >= max_sge)
		return true;
	sges = realloc(r->wqe.sges, (max_sge + 1) * sizeof(*sges));
	if (!sges)
		return false;
	r->wqe.sges = sges;
	r->wqe_room = max_sge;
	return true;
}

static void taken(struct ibfs_qp *qp, struct rq *rq)
{
	const struct rwqe *wqe = &qp->resp.wqe;

	if (!wqe->from_ring)
		return;
	keep_taking(qp, wqe->wr_id, rq->ring.index);
	rq_taken(rq, wqe);
	keep_taken(qp);
}

int recv_take(struct ibfs_qp *qp, struct ibfs_srq *srq)
{
	struct responder *r = &qp->resp;
	int err;

	if (!recv_room(r, srq ? srq->rq.max_sge : qp->rq.max_sge))
		return -ENOENT;
	err = srq ? srq_take(srq, &r->wqe) : rq_take(&qp->rq, &r->wqe);
	if (err == -ENOENT)
		return err;
	taken(qp, srq ? &srq->rq : &qp->rq);
	r->has_wqe = true;
	r->srq = srq;
	r->off = 0;
	return err;
}

/* The rest of a message that it was to take is out of sequence then; nobody is told. */
void recv_srq_gone(struct ibfs_qp *qp, const struct ibfs_srq *srq)
{
	struct responder *r = &qp->resp;

	for (unsigned int i = 0; i < r->num_res; i++)
		if (r->res[i].pd == srq->pd)
			r->res[i].pd = NULL;
	if (!r->has_wqe || r->srq != srq)
		return;
	qp_unhold(qp);
	r->has_wqe = false;
	r->msg = MSG_NONE;
	keep_received(qp);
}

static void wc_address(struct ibfs_wc *wc, const struct rx *rx)
{
	const struct port *port = rx->port;

	wc->slid = ntohs(rx->lrh->slid);
	wc->sl = lrh_sl(rx->lrh);
	wc->src_qp = rx->sqpn;
	wc->port_num = port->num;
	if (!rx->multicast)
		wc->dlid_path_bits = ntohs(rx->lrh->dlid) & ((1U << port->lmc) - 1);
	if (rx->grh)
		wc->wc_flags |= IBV_WC_GRH;
	if (rx->csum_ok)
		wc->wc_flags |= IBV_WC_IP_CSUM_OK;
	for (unsigned int i = 0; !rx->raw && i < port_num_pkeys(port); i++) {
		if (port_pkey(port, i) == ntohs(rx->bth->pkey)) {
			wc->pkey_index = i;
			break;
		}
	}
}

void recv_complete(struct ibfs_qp *qp, const struct rx *rx, enum ibv_wc_status status)
{
	struct responder *r = &qp->resp;
	struct ibfs_cq *cq = r->srq && r->srq->xrc ? r->srq->cq : qp->recv_cq;
	const void *imm, *ieth;
	struct ibfs_wc wc = {
		.wr_id = r->wqe.wr_id, .status = status, .opcode = IBFS_WC_RECV,
		.byte_len = r->off, .qp_num = qp->qpn, .port_num = qp->attr.port_num,
	};

	r->has_wqe = false;
	if (rx) {
		imm = rx_header(rx, HDR_IMM);
		ieth = rx_header(rx, HDR_IETH);
		if (rx->op->kind == KIND_WRITE) {
			wc.opcode = IBFS_WC_RECV_RDMA_WITH_IMM;
			wc.byte_len = r->length;
		}
		if (imm && status == IBV_WC_SUCCESS) {
			wc.wc_flags |= IBV_WC_WITH_IMM;
			memcpy(&wc.imm_data, imm, 4);
		} else if (ieth && status == IBV_WC_SUCCESS) {
			wc.wc_flags |= IBV_WC_WITH_INV;
			memcpy(&wc.invalidated_rkey, ieth, 4);
			wc.invalidated_rkey = ntohl(wc.invalidated_rkey);
		}
		if (!qp_connected(qp))
			wc_address(&wc, rx);
		else
			wc.src_qp = qp->attr.dest_qp_num;
	}
	if (status == IBV_WC_SUCCESS && wc.opcode == IBFS_WC_RECV)
		qp_count(qp, STAT_RDMA_RECVS);
	keep_completing(qp, cq->ring.index);
	if (r->wqe.wr_cqe) {
		r->wqe.wr_cqe->done(r->wqe.wr_cqe, &wc);
	} else if (cq_push(cq, &wc, rx && rx->bth->flags & BTH_SOLICITED) &&
		   qp->state != IBV_QPS_ERR) {
		qp_event(qp, IBV_EVENT_QP_FATAL);
		qp_error(qp);
	}
	keep_received(qp);
}

bool rx_length_ok(const struct ibfs_qp *qp, const struct rx *rx)
{
	uint32_t full = rx->segs * qp->mtu;

	if (rx->segs > 1 && rx->pkt->gso_size != qp->mtu)
		return false;
	if (!rx->op->last)
		return rx->len == full;
	return rx->len <= full && (rx->op->first ? rx->segs == 1 || rx->len > full - qp->mtu :
				   rx->len > full - qp->mtu);
}

int rx_write(struct ibfs_qp *qp, struct rx *rx, const struct mem_seg *segs, int num,
	     void (*then)(struct ibfs_qp *, struct rx *, int))
{
	struct xfer *xfer;

	if (!segs_remote(segs, num)) {
		segs_write(segs, num, rx->pkt, rx->off, rx->len);
		return 0;
	}
	xfer = xfer_new(segs, num, rx->len);
	if (!xfer)
		return -ENOMEM;
	xfer->write = true;
	packet_gather(rx->pkt, rx->off, xfer->buf, rx->len);
	return qp_hold(qp, rx, xfer, then);
}

/* A list that touches more places than fit is done part by part: such memory isn't remote. */
int rx_scatter(struct ibfs_qp *qp, struct rx *rx, const struct ibfs_pd *pd,
	       const struct ibv_sge *sges, unsigned int num_sge, uint32_t off,
	       void (*then)(struct ibfs_qp *, struct rx *, int))
{
	struct mem_seg segs[MEM_SEGS];
	struct rx part = *rx;
	uint32_t left = rx->len;

	while (left) {
		int num, err;

		part.len = left;
		do {
			num = sge_segments(qp->verbs, pd, sges, num_sge, off, part.len,
					   IBV_ACCESS_LOCAL_WRITE, segs);
			if (num == -E2BIG)
				part.len = (part.len + 1) / 2;
		} while (num == -E2BIG);
		if (num < 0)
			return -EFAULT;
		err = rx_write(qp, &part, segs, num, then);
		if (err)
			return err;
		part.off += part.len;
		off += part.len;
		left -= part.len;
	}
	return 0;
}

int recv_scatter(struct ibfs_qp *qp, struct rx *rx, void (*then)(struct ibfs_qp *, struct rx *, int))
{
	struct responder *r = &qp->resp;

	return rx_scatter(qp, rx, r->srq ? r->srq->pd : qp->pd, r->wqe.sges, r->wqe.num_sge,
			  r->off, then);
}
