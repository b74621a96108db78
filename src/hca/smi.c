/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP0: directed routes and what is done with a SMP at its end, IBA 14.2.2.
 * It touches a SMP's hop pointer and paths and a packet's LRH; attributes are
 * the SMA's.
 */
#include <endian.h>
#include <errno.h>

#include "fabric/fabric.h"
#include "fabric/packet.h"
#include "hca/mad.h"
#include "hca/smp.h"

#define LRH_VL15	0xf0

/* Where a directed-route SMP goes next. */
enum smi_next {
	SMI_DROP,
	SMI_LOCAL,	/* it has arrived */
	SMI_PORT,	/* out of the port that the path says */
	SMI_LID,	/* its directed part is over: by LID from here on */
};

static bool smp_returns(const struct smp *smp)
{
	return smp->status & htobe16(UMAD_SMP_DIRECTION);
}

/*
 * C14-9, D bit 0. first: the sender, or the switch where the directed part
 * begins after a part by LID. The hop pointer is moved on as the SMP leaves.
 */
static enum smi_next smi_outbound(const struct port *in, struct smp *smp, bool first,
				  unsigned int *out)
{
	bool is_switch = in->node->type == NODE_SWITCH;
	unsigned int ptr = smp->hop_ptr, cnt = smp->hop_cnt;

	if (cnt && !ptr) {				/* C14-9:1 */
		if (!first)
			return SMI_DROP;
		smp->hop_ptr = 1;
		*out = smp->initial_path[1];
		return SMI_PORT;
	}
	if (ptr && ptr < cnt) {				/* C14-9:2 */
		if (!is_switch)
			return SMI_DROP;
		smp->return_path[ptr] = in->num;
		smp->hop_ptr = ptr + 1;
		*out = smp->initial_path[ptr + 1];
		return SMI_PORT;
	}
	if (ptr == cnt) {				/* C14-9:3 */
		if (cnt)
			smp->return_path[ptr] = in->num;
		smp->hop_ptr = ptr + 1;
		if (smp->dr_dlid == htobe16(LID_PERMISSIVE))
			return SMI_LOCAL;
		return is_switch ? SMI_LID : SMI_DROP;
	}
	return ptr == cnt + 1 ? SMI_LOCAL : SMI_DROP;	/* C14-9:4, 5 */
}

/* C14-13, D bit 1. */
static enum smi_next smi_inbound(const struct port *in, struct smp *smp, unsigned int *out)
{
	bool is_switch = in->node->type == NODE_SWITCH;
	unsigned int ptr = smp->hop_ptr, cnt = smp->hop_cnt;

	if (cnt && ptr == cnt + 1) {			/* C14-13:1 */
		smp->hop_ptr = cnt;
		*out = smp->return_path[cnt];
		return SMI_PORT;
	}
	if (ptr >= 2 && ptr <= cnt) {			/* C14-13:2 */
		if (!is_switch)
			return SMI_DROP;
		smp->hop_ptr = ptr - 1;
		*out = smp->return_path[ptr - 1];
		return SMI_PORT;
	}
	if (ptr == 1) {					/* C14-13:3 */
		smp->hop_ptr = 0;
		if (smp->dr_slid == htobe16(LID_PERMISSIVE))
			return SMI_LOCAL;
		return is_switch ? SMI_LID : SMI_DROP;
	}
	return ptr ? SMI_DROP : SMI_LOCAL;		/* C14-13:4, 5 */
}

static enum smi_next smi_next(const struct port *in, struct smp *smp, bool first,
			      unsigned int *out)
{
	if (smp->hop_cnt >= UMAD_SMP_MAX_HOPS)
		return SMI_DROP;
	return smp_returns(smp) ? smi_inbound(in, smp, out) : smi_outbound(in, smp, first, out);
}

/* The port by which a path says to leave; a CA has only the one it is at. */
static struct port *smi_out_port(struct port *in, unsigned int num)
{
	if (in->node->type != NODE_SWITCH)
		return num == in->num ? in : NULL;
	return num && num <= in->node->num_ports ? &in->node->ports[num] : NULL;
}

static void smi_by_port(struct port *out, struct packet *pkt, const struct mad_view *view)
{
	view->lrh->vl_lver = LRH_VL15;
	view->lrh->dlid = htobe16(LID_PERMISSIVE);
	view->lrh->slid = htobe16(LID_PERMISSIVE);
	pkt->vl = 15;
	port_xmit(out, pkt);
}

/* From a switch where the directed part ended on to the LID that the SMP names. */
static void smi_by_lid(struct port *end, struct packet *pkt, const struct mad_view *view)
{
	const struct smp *smp = view->mad;

	view->lrh->dlid = smp_returns(smp) ? smp->dr_slid : smp->dr_dlid;
	view->lrh->slid = htobe16(end->lid);
	pkt->vl = 15;
	mad_xmit(end, pkt);
}

/* False: the node has no clients. */
static bool smi_deliver(struct port *end, struct packet *pkt, const struct mad_view *view)
{
	const struct port_agents *agents = end->agents;

	if (!agents || !agents->deliver)
		return false;
	agents->deliver(end, pkt, view);
	return true;
}

/* The answer, which stands in the packet now, starts on its way. */
static void smi_answer(struct port *in, struct packet *pkt, const struct mad_view *view)
{
	struct port *end = port_end(in), *port;
	struct smp *smp = view->mad;
	unsigned int out = 0;

	pkt->hops = 0;
	if (smp->mgmt_class == MAD_CLASS_SUBN_LID || smp->dr_dlid != htobe16(LID_PERMISSIVE)) {
		view->lrh->vl_lver = LRH_VL15;
		pkt->vl = 15;
		mad_reply(end, pkt, view);
		return;
	}
	switch (smi_inbound(in, smp, &out)) {
	case SMI_LOCAL:
		view->lrh->slid = smp->dr_slid;
		smi_deliver(end, pkt, view);
		break;
	case SMI_PORT:
		port = smi_out_port(in, out);
		if (port)
			smi_by_port(port, pkt, view);
		break;
	case SMI_LID:
		smi_by_lid(end, pkt, view);
		break;
	case SMI_DROP:
		break;
	}
}

static void smi_local(struct port *in, struct packet *pkt, const struct mad_view *view)
{
	switch (sma_process(in, view->mad, be16toh(view->lrh->slid))) {
	case MAD_ANSWER:
		smi_answer(in, pkt, view);
		break;
	case MAD_UNHANDLED:
		/* Of SMPs that the SMA leaves to clients SMInfo wants an answer. */
		if (!smi_deliver(port_end(in), pkt, view) && mad_unserved(view->mad))
			smi_answer(in, pkt, view);
		break;
	case MAD_CONSUMED:
		break;
	}
}

void smi_recv(struct port *in, struct packet *pkt)
{
	struct smp *smp;
	struct mad_view view;
	unsigned int out = 0;
	struct port *port;
	bool first;

	if (!mad_linear(pkt) || !mad_view(pkt, &view) || view.bth->dqpn & htobe32(0xffffff))
		return;
	smp = view.mad;
	if (smp->mgmt_class == MAD_CLASS_SUBN_LID) {
		smi_local(in, pkt, &view);
		return;
	}
	if (smp->mgmt_class != MAD_CLASS_SUBN_DR)
		return;
	/* Only what came by LID to a switch may begin its directed part here. */
	first = smp->dr_slid != htobe16(LID_PERMISSIVE) && in->node->type == NODE_SWITCH;
	switch (smi_next(in, smp, first, &out)) {
	case SMI_LOCAL:
		smi_local(in, pkt, &view);
		break;
	case SMI_PORT:
		port = smi_out_port(in, out);
		if (port)
			smi_by_port(port, pkt, &view);
		break;
	case SMI_LID:
		smi_by_lid(port_end(in), pkt, &view);
		break;
	case SMI_DROP:
		break;
	}
}

/* The part by LID comes first when the route's near end names a LID. */
static bool smi_starts_by_lid(const struct smp *smp)
{
	return (smp_returns(smp) ? smp->dr_dlid : smp->dr_slid) != htobe16(LID_PERMISSIVE);
}

int smi_send(struct port *end_port, struct packet *pkt)
{
	struct smp *smp;
	struct mad_view view;
	unsigned int out = 0;
	struct port *port;

	if (!mad_linear(pkt) || !mad_view(pkt, &view))
		return -EINVAL;
	smp = view.mad;
	view.lrh->vl_lver = LRH_VL15;
	pkt->vl = 15;
	if (smp->mgmt_class == MAD_CLASS_SUBN_LID || smi_starts_by_lid(smp)) {
		mad_xmit(end_port, pkt);
		return 0;
	}
	switch (smi_next(end_port, smp, true, &out)) {
	case SMI_LOCAL:
		view.lrh->slid = htobe16(LID_PERMISSIVE);
		view.lrh->dlid = htobe16(LID_PERMISSIVE);
		if (smp_returns(smp))
			smi_deliver(end_port, pkt, &view);
		else
			smi_local(end_port, pkt, &view);
		return 0;
	case SMI_PORT:
		port = smi_out_port(end_port, out);
		if (!port)
			return -EINVAL;
		smi_by_port(port, pkt, &view);
		return 0;
	case SMI_LID:
		smi_by_lid(end_port, pkt, &view);
		return 0;
	case SMI_DROP:
		break;
	}
	return -EINVAL;
}
