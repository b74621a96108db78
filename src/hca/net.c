/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers on and off packets: LRH, GRH, BTH and the extended ones, and the way
 * out of a port. What only the wire needs (lengths, pad, ICRC) is filled in
 * there. IBA 7.7, 8.3, 9.2, 9.3.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "hca/verbs.h"


static void put_grh(uint8_t *at, const struct port *port, const struct ibv_global_route *route)
{
	struct grh *grh = (struct grh *)at;
	__be64 gid[2] = {
		htobe64(port->gid_prefix), htobe64(port_gid_guid(port, route->sgid_index)),
	};

	grh->ver_tclass_flow = htonl((uint32_t)GRH_VERSION << 28 | (uint32_t)route->traffic_class << 20 |
				     (route->flow_label & 0xfffff));
	grh->paylen = 0;
	grh->nxthdr = GRH_NXTHDR_IBA;
	grh->hoplmt = route->hop_limit;
	memcpy(grh->sgid, gid, 16);
	memcpy(grh->dgid, route->dgid.raw, 16);
}

static uint8_t *put32(uint8_t *at, __be32 value)
{
	memcpy(at, &value, 4);
	return at + 4;
}

static void put_ext(uint8_t *at, unsigned int headers, const struct tx *tx)
{
	if (headers & HDR_DETH) {
		at = put32(at, htonl(tx->qkey));
		at = put32(at, htonl(tx->sqpn));
	}
	if (headers & HDR_XRCETH)
		at = put32(at, htonl(tx->xrc_srq & QPN_MASK));
	if (headers & HDR_RETH) {
		memcpy(at, &tx->reth, sizeof(tx->reth));
		at += sizeof(tx->reth);
	}
	if (headers & HDR_ATOMIC) {
		size_t size = headers & HDR_MASKED ? sizeof(tx->atomic) : ATOMICETH_SIZE;

		memcpy(at, &tx->atomic, size);
		at += size;
	}
	if (headers & HDR_AETH)
		at = put32(at, htonl(tx->aeth));
	if (headers & HDR_ATOMICACK) {
		__be64 orig = htobe64(tx->atomic_orig);

		memcpy(at, &orig, 8);
		at += 8;
	}
	if (headers & HDR_IMM)
		at = put32(at, tx->imm);
	if (headers & HDR_IETH)
		put32(at, htonl(tx->ieth));
}

static void put_bth(uint8_t *at, const struct ibfs_qp *qp, const struct tx *tx)
{
	struct bth *bth = (struct bth *)at;
	bool connected = qp_connected(qp);

	bth->opcode = tx->opcode;
	bth->flags = tx->solicited ? BTH_SOLICITED : 0;
	if (!connected || qp->attr.path_mig_state == IBV_MIG_MIGRATED)
		bth->flags |= BTH_MIGRATED;
	bth->pkey = htons(tx->pkey);
	bth->dqpn = htonl(connected ? qp->attr.dest_qp_num : tx->dqpn);
	bth->psn = htonl((tx->psn & PSN_MASK) | (tx->ack_req ? BTH_ACKREQ : 0));
}

/* A port hears its own multicast packets only through this. 10.5.2 */
static void mcast_loop(struct ibfs_qp *qp, struct port *port, struct packet *pkt)
{
	const struct lrh *lrh = packet_lrh(pkt);

	if (lrh && lrh_lnh(lrh) == LNH_GRH &&
	    mcast_find(qp->verbs, ((const struct grh *)(lrh + 1))->dgid))
		net_recv(qp->verbs->hca, port, pkt);
}

static int net_route(struct ibfs_qp *qp, struct port *port, struct packet *pkt, uint16_t dlid)
{
	if (dlid >= LID_MCAST_FIRST && dlid != LID_PERMISSIVE) {
		if (port->state != PORT_ACTIVE)
			return -ENETDOWN;
		mcast_loop(qp, port, pkt);
		return port_xmit(port, pkt);
	}
	if (!port_has_lid(port, dlid))
		return port_xmit(port, pkt);
	if (port->state != PORT_ACTIVE)
		return -ENETDOWN;
	hca_recv(port, pkt);
	return 0;
}

static int net_out(struct ibfs_qp *qp, struct port *port, struct packet *pkt, uint16_t dlid,
		   unsigned int segs)
{
	int ret = net_route(qp, port, pkt, dlid);

	stat_add(qp->verbs, port->num, ret ? STAT_SEND_ERR : STAT_SENT_PKTS, segs);
	return ret;
}

int net_xmit(struct ibfs_qp *qp, struct packet *pkt, const struct tx *tx)
{
	const struct ibv_ah_attr *av = tx->av ? tx->av : &qp->attr.ah_attr;
	struct port *port = verbs_port(qp->verbs, tx->av ? av->port_num : qp->attr.port_num);
	unsigned int headers = opcode_info(tx->opcode)->headers;
	unsigned int grh = av->is_global ? sizeof(struct grh) : 0;
	struct lrh *lrh;
	uint8_t *at;

	if (!port)
		return -ENETDOWN;
	at = packet_push(pkt, sizeof(*lrh) + grh + sizeof(struct bth) + headers_size(headers));
	lrh = (struct lrh *)at;
	lrh->vl_lver = 0;
	lrh->sl_lnh = av->sl << 4 | (grh ? LNH_GRH : LNH_BTH);
	lrh->dlid = htons(av->dlid);
	lrh->len = 0;
	lrh->slid = htons(port->lid | (av->src_path_bits & ((1U << port->lmc) - 1)));
	at += sizeof(*lrh);
	if (grh)
		put_grh(at, port, &av->grh);
	put_bth(at + grh, qp, tx);
	put_ext(at + grh + sizeof(struct bth), headers, tx);
	pkt->gso_size = tx->segs > 1 ? qp->mtu : 0;
	pkt->gso_segs = tx->segs > 1 ? tx->segs : 0;
	if (qp->type == IBFS_QPT_SMI)
		return special_xmit(port, pkt);
	pkt->vl = port_vl(NULL, port, av->sl);
	return net_out(qp, port, pkt, av->dlid, tx->segs > 1 ? tx->segs : 1);
}

const void *rx_header(const struct rx *rx, unsigned int header)
{
	unsigned int before = rx->op->headers & (header - 1);

	return rx->op->headers & header ? rx->ext + headers_size(before) : NULL;
}

/* All headers have to be in linear data. */
bool rx_parse(struct rx *rx, struct port *port, struct packet *pkt)
{
	uint32_t at = sizeof(struct lrh);

	*rx = (struct rx){ .port = port, .pkt = pkt };
	if (pkt->bad_crc || pkt->len < at)
		return false;
	rx->lrh = (const struct lrh *)pkt->data;
	if (lrh_lnh(rx->lrh) < LNH_BTH)
		return raw_parse(rx);
	if (lrh_lnh(rx->lrh) == LNH_GRH) {
		rx->grh = (const struct grh *)(pkt->data + at);
		at += sizeof(struct grh);
	}
	if (pkt->len < at + sizeof(struct bth))
		return false;
	rx->bth = (const struct bth *)(pkt->data + at);
	rx->opcode = rx->bth->opcode;
	rx->op = opcode_info(rx->opcode);
	at += sizeof(struct bth);
	rx->ext = pkt->data + at;
	at += headers_size(rx->op->headers);
	if (pkt->len < at)
		return false;
	rx->off = at;
	rx->len = packet_size(pkt) - at;	/* the pad is on the wire only */
	rx->psn = ntohl(rx->bth->psn) & PSN_MASK;
	rx->dqpn = ntohl(rx->bth->dqpn) & QPN_MASK;
	rx->segs = pkt->gso_segs > 1 ? pkt->gso_segs : 1;
	rx->multicast = ntohs(rx->lrh->dlid) >= LID_MCAST_FIRST &&
			rx->lrh->dlid != htons(LID_PERMISSIVE);
	if (rx->op->headers & HDR_DETH) {
		const struct deth *deth = (const struct deth *)rx->ext;

		rx->qkey = ntohl(deth->qkey);
		rx->sqpn = ntohl(deth->sqpn) & QPN_MASK;
	}
	return true;
}

/* What is left begins later in its message: as if it had been cut there. */
void rx_trim(struct rx *rx, uint32_t segs)
{
	static const uint8_t later[32] = {
		[OP_SEND_FIRST] = OP_SEND_MIDDLE, [OP_SEND_MIDDLE] = OP_SEND_MIDDLE,
		[OP_SEND_LAST] = OP_SEND_LAST, [OP_SEND_LAST_IMM] = OP_SEND_LAST_IMM,
		[OP_SEND_ONLY] = OP_SEND_LAST, [OP_SEND_ONLY_IMM] = OP_SEND_LAST_IMM,
		[OP_SEND_LAST_INV] = OP_SEND_LAST_INV, [OP_SEND_ONLY_INV] = OP_SEND_LAST_INV,
		[OP_WRITE_FIRST] = OP_WRITE_MIDDLE, [OP_WRITE_MIDDLE] = OP_WRITE_MIDDLE,
		[OP_WRITE_LAST] = OP_WRITE_LAST, [OP_WRITE_LAST_IMM] = OP_WRITE_LAST_IMM,
		[OP_WRITE_ONLY] = OP_WRITE_LAST, [OP_WRITE_ONLY_IMM] = OP_WRITE_LAST_IMM,
	};
	const uint8_t *old = rx->ext;
	unsigned int had = rx->op->headers;
	uint32_t skip = segs * rx->pkt->gso_size;

	rx->opcode = (rx->opcode & 0xe0) | later[rx->opcode & 31];
	rx->op = opcode_info(rx->opcode);
	/* Headers that are no longer there (RETH) stood before those that still are, but XRCETH. */
	rx->ext = old + headers_size(had) - headers_size(rx->op->headers);
	if (had & HDR_XRCETH)
		memmove((uint8_t *)rx->ext, old, header_size(HDR_XRCETH));
	rx->psn = (rx->psn + segs) & PSN_MASK;
	rx->segs -= segs;
	rx->off += skip;
	rx->len -= skip;
}
