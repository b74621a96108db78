/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A MAD's packet: finding its headers, turning it round, and the way out of an
 * end port by LID; and what hca/ keeps for an end port. IBA 5.2, 10.9.3, 13.5.4.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"
#include "fabric/packet.h"
#include "hca/cca.h"
#include "hca/mad.h"
#include "hca/pma.h"
#include "hca/sma.h"

bool mad_view(struct packet *pkt, struct mad_view *view)
{
	uint32_t at = sizeof(struct lrh);

	if (pkt->data_len || pkt->len < at)
		return false;
	view->lrh = (struct lrh *)pkt->data;
	view->grh = NULL;
	switch (lrh_lnh(view->lrh)) {
	case LNH_BTH:
		break;
	case LNH_GRH:
		view->grh = (struct grh *)(pkt->data + at);
		at += sizeof(struct grh);
		break;
	default:
		return false;
	}
	if (pkt->len != at + sizeof(struct bth) + sizeof(struct deth) + MAD_SIZE)
		return false;
	if (view->grh && view->grh->nxthdr != GRH_NXTHDR_IBA)
		return false;
	view->bth = (struct bth *)(pkt->data + at);
	view->deth = (struct deth *)(view->bth + 1);
	view->mad = view->deth + 1;
	return view->bth->opcode == BTH_OPCODE_UD_SEND_ONLY;
}

bool mad_linear(struct packet *pkt)
{
	uint32_t len = pkt->data_len;

	if (!len)
		return true;
	if (len > MAD_SIZE || pkt->len > PACKET_HEADROOM)
		return false;
	/* Before packet_put() moves the end of the linear bytes. */
	uint8_t payload[MAD_SIZE];
	if (packet_gather(pkt, pkt->len, payload, len) != len)
		return false;
	pkt->data_len = 0;
	pkt->nr_frags = 0;
	memcpy(packet_put(pkt, len), payload, len);
	return true;
}

bool mad_unserved(void *mad)
{
	struct mad_hdr *hdr = mad;

	if (hdr->method != UMAD_METHOD_GET && hdr->method != UMAD_METHOD_SET)
		return false;
	hdr->method = UMAD_METHOD_GET_RESP;
	hdr->status = htobe16(MAD_BAD_ATTR);
	if (hdr->mgmt_class == MAD_CLASS_SUBN_DR)
		hdr->status |= htobe16(UMAD_SMP_DIRECTION);
	return true;
}

int mad_xmit(struct port *end_port, struct packet *pkt)
{
	const struct lrh *lrh = (const struct lrh *)pkt->data;
	struct node *node = end_port->node;

	if (port_has_lid(end_port, be16toh(lrh->dlid))) {
		node->ops->recv(end_port, pkt);
		return 0;
	}
	if (node->type == NODE_SWITCH) {
		switch_forward(node, end_port, pkt);
		return 0;
	}
	return port_xmit(end_port, pkt);
}

static void reverse_grh(const struct port *end, struct grh *grh)
{
	uint8_t own[16];

	memcpy(own, grh->dgid, sizeof(own));
	if (own[0] == 0xff) {		/* a multicast GID is nobody's address */
		const __be64 gid[2] = { htobe64(end->gid_prefix), htobe64(end->guid) };

		memcpy(own, gid, sizeof(own));
	}
	memcpy(grh->dgid, grh->sgid, sizeof(grh->dgid));
	memcpy(grh->sgid, own, sizeof(own));
	grh->hoplmt = 0xff;
}

void mad_reply(struct port *end_port, struct packet *pkt, const struct mad_view *view)
{
	uint16_t slid = be16toh(view->lrh->dlid);
	__be32 dqpn = view->bth->dqpn & htobe32(0xffffff);

	/* The path bits that the request was sent to are the ones to answer from. */
	if (!port_has_lid(end_port, slid))
		slid = end_port->lid;
	view->lrh->dlid = view->lrh->slid;
	view->lrh->slid = htobe16(slid);
	if (view->grh)
		reverse_grh(end_port, view->grh);
	if (dqpn) {
		int index = port_find_pkey(end_port, be16toh(view->bth->pkey));

		if (index >= 0)
			view->bth->pkey = htobe16(port_pkey(end_port, index));
	}
	view->bth->dqpn = view->deth->sqpn & htobe32(0xffffff);
	view->deth->sqpn = dqpn;
	view->deth->qkey = htobe32(dqpn ? QP1_QKEY : 0);
	pkt->hops = 0;
	if (pkt->vl != VL_MGMT) {
		pkt->vl = port_vl(NULL, end_port, lrh_sl(view->lrh));
		if (pkt->vl == VL_MGMT) {
			end_port->cnt.xmit_discards++;
			return;
		}
	}
	mad_xmit(end_port, pkt);
}

struct port_agents *port_agents(struct port *end_port)
{
	if (!end_port->agents)
		end_port->agents = calloc(1, sizeof(struct port_agents));
	return end_port->agents;
}

void port_agents_free(struct port *end_port)
{
	struct port_agents *agents = end_port->agents;

	if (!agents)
		return;
	sma_state_free(agents->sma);
	pma_state_free(agents->pma);
	cca_state_free(agents->cca);
	free(agents);
	end_port->agents = NULL;
}
