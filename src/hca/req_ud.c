/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending side of datagrams: one packet a message, or, with large send
 * offload, one for each part. IBA 9.8.3, 10.2.5; Q_Keys with the top bit set
 * stand for the QP's own (10.2.5).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/csum.h"
#include "hca/req.h"

static uint16_t ud_pkey(const struct ibfs_qp *qp, const struct swqe *wqe, const struct port *port)
{
	if (qp->type == IBFS_QPT_SMI)
		return PKEY_DEFAULT;
	return port_pkey(port, qp->type == IBFS_QPT_GSI ? wqe->wr.ud.pkey_index : qp->attr.pkey_index);
}

static void ud_tx(struct ibfs_qp *qp, const struct swqe *wqe, const struct port *port, struct tx *tx)
{
	bool imm = wqe->wr.opcode == IBFS_WR_SEND_WITH_IMM;

	*tx = (struct tx){
		.opcode = OP_UD | (imm ? OP_SEND_ONLY_IMM : OP_SEND_ONLY),
		.psn = qp->req.psn, .segs = 1, .av = wqe->av, .imm = wqe->wr.ex.imm_data,
		.dqpn = wqe->av->dlid >= LID_MCAST_FIRST && wqe->av->dlid != LID_PERMISSIVE ?
			QPN_MASK : wqe->wr.ud.remote_qpn,
		.qkey = wqe->wr.ud.remote_qkey >> 31 ? qp->attr.qkey : wqe->wr.ud.remote_qkey,
		.sqpn = qp->qpn, .pkey = ud_pkey(qp, wqe, port),
		.solicited = wqe->wr.send_flags & IBV_SEND_SOLICITED,
	};
	qp->req.psn = (qp->req.psn + 1) & PSN_MASK;
}

/* The payload in one piece, as offloads need it. */
static void flatten(struct packet *pkt, uint8_t *buf, uint32_t at)
{
	uint32_t len = packet_gather(pkt, 0, buf + at, pkt->data_len);

	pkt->nr_frags = 1;
	pkt->frags[0] = (struct packet_frag){ buf, at + len };
	pkt->data_len = at + len;
}

static void ud_send(struct ibfs_qp *qp, const struct swqe *wqe, const struct port *port,
		    struct packet *pkt)
{
	uint8_t buf[4096] __attribute__((aligned(4)));
	struct tx tx;

	if (wqe->wr.send_flags & IBV_SEND_IP_CSUM && pkt->data_len <= sizeof(buf)) {
		flatten(pkt, buf, 0);
		csum_fill(buf, pkt->data_len);
	}
	ud_tx(qp, wqe, port, &tx);
	net_xmit(qp, pkt, &tx);
}

/* One part of a large send: its headers made anew, its checksums always. */
static void lso_send(struct ibfs_qp *qp, const struct swqe *wqe, const struct port *port,
		     struct packet *pkt, uint32_t off, bool last)
{
	uint8_t buf[4096 + 128] __attribute__((aligned(4)));
	uint32_t hlen = wqe->wr.ud.hlen, len = pkt->data_len;
	struct tx tx;

	flatten(pkt, buf, hlen);
	memcpy(buf, wqe->extra, hlen);
	if (lso_header(buf, hlen, off / wqe->wr.ud.mss, off, len, last))
		csum_fill(buf, hlen + len);
	ud_tx(qp, wqe, port, &tx);
	net_xmit(qp, pkt, &tx);
}

void req_datagram_sent(struct ibfs_qp *qp, struct swqe *wqe, uint32_t len, uint32_t *budget)
{
	struct requester *req = &qp->req;

	*budget -= len < *budget ? len : *budget;
	if (req->xfer && req->xfer_ready) {
		xfer_free(req->xfer);
		req->xfer = NULL;
	}
	req->off += len;
	if (req->off < wqe->length)
		return;
	wqe->done = true;
	req->next++;
	req->off = 0;
	req_advance(qp);
}

enum step req_datagram(struct ibfs_qp *qp, struct swqe *wqe, uint32_t *budget)
{
	struct requester *req = &qp->req;
	bool lso = wqe->wr.opcode == IBFS_WR_LSO;
	const struct port *port = wqe->av ? verbs_port(qp->verbs, wqe->av->port_num) : NULL;
	uint32_t mtu = port ? 128U << port->neighbor_mtu : 0, len = wqe->length - req->off;
	void *bounce = NULL;
	struct packet pkt;
	int err;

	if (!port || port->num != qp->attr.port_num) {
		wqe->status = IBV_WC_LOC_QP_OP_ERR;
		return STEP_MORE;
	}
	if (lso ? wqe->wr.ud.mss + wqe->wr.ud.hlen > mtu : len > mtu) {
		wqe->status = IBV_WC_LOC_LEN_ERR;
		return STEP_MORE;
	}
	if (lso && len > wqe->wr.ud.mss)
		len = wqe->wr.ud.mss;
	packet_init(&pkt);
	err = req_payload(qp, wqe, &len, &pkt, &bounce);
	if (err > 0)
		return STEP_STALL;
	if (err) {
		wqe->status = memory_status(err);
		return STEP_MORE;
	}
	wqe->started = true;
	if (lso)
		lso_send(qp, wqe, port, &pkt, req->off, req->off + len == wqe->length);
	else
		ud_send(qp, wqe, port, &pkt);
	free(bounce);
	req_datagram_sent(qp, wqe, len, budget);
	return STEP_MORE;
}
