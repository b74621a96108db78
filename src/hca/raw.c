/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw packet QPs: a message is a whole raw packet, from its LRH on, of either
 * kind (LNH 0: a raw header with an EtherType follows; LNH 1: an IPv6 header).
 * It has no transport, no P_Key and no ICRC. The engine fills in what the wire
 * needs (VL, length) and lets nobody send under another port's LID. All raw QPs
 * of a port get each raw packet that reaches it. IBA 5.2.5, 5.3, 9.8.4, 10.9.2.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "hca/req.h"

#define RWH_SIZE	4	/* the raw header: 16 bits reserved, EtherType */
#define RAW_MAX		(sizeof(struct lrh) + sizeof(struct grh) + 4096)
#define RAW_LINEAR	(sizeof(struct lrh) + sizeof(struct grh))

/* What it is for a responder: a message in one packet, with no headers to skip. */
static const struct opcode raw_opcode = {
	.kind = KIND_SEND, .first = true, .last = true, .needs_recv = true,
};
static const struct bth no_bth;

bool raw_parse(struct rx *rx)
{
	struct lrh *lrh = packet_lrh(rx->pkt);

	lrh->vl_lver = rx->pkt->vl << 4;
	packet_set_lengths(rx->pkt);
	rx->raw = true;
	rx->op = &raw_opcode;
	rx->bth = &no_bth;
	rx->len = packet_size(rx->pkt);
	rx->segs = 1;
	rx->multicast = ntohs(lrh->dlid) >= LID_MCAST_FIRST && lrh->dlid != htons(LID_PERMISSIVE);
	return true;
}

void raw_recv(struct verbs *verbs, struct rx *rx)
{
	struct ibfs_qp *qp, *tmp;

	DL_FOREACH_SAFE2(verbs->raws, qp, tmp, raw_next) {
		struct rx copy = *rx;

		qp_recv(qp, &copy);
	}
}

void raw_add(struct ibfs_qp *qp)
{
	DL_APPEND2(qp->verbs->raws, qp, raw_prev, raw_next);
}

void raw_del(struct ibfs_qp *qp)
{
	DL_DELETE2(qp->verbs->raws, qp, raw_prev, raw_next);
}

/* 0, or what its completion says. */
static enum ibv_wc_status raw_fault(const struct port *port, const struct lrh *lrh, uint32_t len)
{
	size_t header = lrh_lnh(lrh) == LNH_RAW ? RWH_SIZE : sizeof(struct grh);

	if (lrh_lnh(lrh) >= LNH_BTH || !port_has_lid(port, ntohs(lrh->slid)) || !lrh->dlid)
		return IBV_WC_LOC_QP_OP_ERR;
	if (len < sizeof(*lrh) + header ||
	    len - sizeof(*lrh) - header > 128U << port->neighbor_mtu)
		return IBV_WC_LOC_LEN_ERR;
	return IBV_WC_SUCCESS;
}

static void raw_xmit(struct port *port, const uint8_t *bytes, uint32_t len)
{
	uint32_t linear = len < RAW_LINEAR ? len : RAW_LINEAR;
	struct packet pkt;
	struct lrh *lrh;

	packet_init(&pkt);
	lrh = (struct lrh *)packet_put(&pkt, linear);
	memcpy(lrh, bytes, linear);
	lrh->sl_lnh &= 0xf3;
	if (len > linear) {
		pkt.nr_frags = 1;
		pkt.frags[0] = (struct packet_frag){ (uint8_t *)bytes + linear, len - linear };
		pkt.data_len = len - linear;
	}
	pkt.vl = port_vl(NULL, port, lrh_sl(lrh));
	if (port_has_lid(port, ntohs(lrh->dlid)) && port->state == PORT_ACTIVE)
		hca_recv(port, &pkt);
	else
		port_xmit(port, &pkt);
}

/* Words, as the LRH counts them: raw packets have no pad count. 7.7.5 */
static bool raw_length_ok(uint32_t len)
{
	return len >= sizeof(struct lrh) && len <= RAW_MAX && !(len & 3);
}

enum step req_raw(struct ibfs_qp *qp, struct swqe *wqe, uint32_t *budget)
{
	struct port *port = verbs_port(qp->verbs, qp->attr.port_num);
	uint8_t buf[RAW_MAX] __attribute__((aligned(8)));
	uint32_t len = wqe->length;
	void *bounce = NULL;
	struct packet pkt;
	int err;

	if (!port || !raw_length_ok(len)) {
		wqe->status = IBV_WC_LOC_LEN_ERR;
		return STEP_MORE;
	}
	packet_init(&pkt);
	err = req_payload(qp, wqe, &len, &pkt, &bounce);
	if (err > 0)
		return STEP_STALL;
	if (err || len != wqe->length) {
		free(bounce);
		wqe->status = memory_status(err);
		return STEP_MORE;
	}
	packet_gather(&pkt, 0, buf, len);
	free(bounce);
	wqe->status = raw_fault(port, (const struct lrh *)buf, len);
	if (wqe->status)
		return STEP_MORE;
	wqe->started = true;
	raw_xmit(port, buf, len);
	req_datagram_sent(qp, wqe, len, budget);
	return STEP_MORE;
}
