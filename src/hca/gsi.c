/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP1: a general management packet's checks (IBA 10.9.4, 13.5.3) and the
 * dispatch to the agents that every node has; and the ops of simulated nodes,
 * which are nothing but their agents.
 */
#include <endian.h>

#include "fabric/fabric.h"
#include "fabric/packet.h"
#include "hca/mad.h"
#include "hca/smp.h"

#define QPN_MASK	0xffffff

static enum mad_verdict gsi_process(struct port *end, struct mad_hdr *hdr)
{
	if (hdr->method & UMAD_METHOD_RESP_MASK)
		return MAD_UNHANDLED;
	switch (hdr->mgmt_class) {
	case MAD_CLASS_PERF:
		return pma_process(end, hdr);
	case MAD_CLASS_CC:
		return cca_process(end, hdr);
	case MAD_CLASS_VENDOR_MLX:
		return vendor_process(end, hdr);
	default:
		return MAD_UNHANDLED;
	}
}

static bool gsi_keys_ok(struct port *end, const struct packet *pkt, const struct mad_view *view)
{
	if (port_find_pkey(end, be16toh(view->bth->pkey)) < 0) {
		sma_bad_pkey(end, pkt);
		return false;
	}
	if (view->deth->qkey != htobe32(QP1_QKEY)) {
		sma_bad_qkey(end, pkt);
		return false;
	}
	return true;
}

void gsi_recv(struct port *end_port, struct packet *pkt)
{
	const struct port_agents *agents = end_port->agents;
	struct mad_view view;

	if (!mad_linear(pkt) || !mad_view(pkt, &view))
		return;
	if ((be32toh(view.bth->dqpn) & QPN_MASK) != 1 ||
	    be16toh(view.lrh->dlid) > LID_UCAST_LAST || !gsi_keys_ok(end_port, pkt, &view))
		return;
	switch (gsi_process(end_port, view.mad)) {
	case MAD_ANSWER:
		mad_reply(end_port, pkt, &view);
		break;
	case MAD_UNHANDLED:
		if (agents && agents->deliver)
			agents->deliver(end_port, pkt, &view);
		break;
	case MAD_CONSUMED:
		break;
	}
}

static void sim_recv(struct port *port, struct packet *pkt)
{
	const struct bth *bth = packet_bth(pkt);

	switch (bth ? be32toh(bth->dqpn) & QPN_MASK : QPN_MASK) {
	case 0:
		smi_recv(port, pkt);
		break;
	case 1:
		gsi_recv(port_end(port), pkt);
		break;
	}
}

static void sim_free(struct node *node)
{
	for (unsigned int i = 0; i <= node->num_ports; i++)
		port_agents_free(&node->ports[i]);
}

const struct node_ops sim_node_ops = {
	.recv = sim_recv,
	.port_event = sma_port_event,
	.bad_pkey = sma_bad_switch_pkey,
	.free = sim_free,
};
