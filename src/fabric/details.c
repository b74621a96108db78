/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a port counts beyond its counters: why packets were lost, and packets of
 * chosen opcodes. IBA 16.1.4.1 to 16.1.4.6. A sum sticks at its largest value.
 */
#include <errno.h>
#include <stdlib.h>

#include "fabric/fabric.h"
#include "fabric/link.h"
#include "fabric/packet.h"
#include "fabric/wire.h"

struct port_details *port_details(struct port *port)
{
	if (!port->details)
		port->details = calloc(1, sizeof(*port->details));
	return port->details;
}

static void add(uint32_t *counter, uint32_t num)
{
	*counter = num > UINT32_MAX - *counter ? UINT32_MAX : *counter + num;
}

void details_discard(struct port *port, unsigned int packets, int err)
{
	struct port_details *details = port_details(port);

	if (!details)
		return;
	switch (err) {
	case -ENETDOWN:
		add(&details->xmit_inactive, packets);
		break;
	case -EMSGSIZE:
		add(&details->xmit_mtu, packets);
		break;
	case -ELOOP:
		add(&details->xmit_lifetime, packets);
		break;
	}
}

void details_bad(struct port *port)
{
	struct port_details *details = port_details(port);

	if (details)
		add(&details->rcv_local_phys, 1);
}

void details_overrun(struct port *port)
{
	struct port_details *details = port_details(port);

	if (details)
		add(&details->rcv_overrun, 1);
}

void details_malformed(struct port *port, unsigned int packets)
{
	struct port_details *details = port_details(port);

	if (details)
		add(&details->rcv_malformed, packets);
}

void details_astray(struct port *port, unsigned int packets, enum astray why)
{
	struct port_details *details = port_details(port);

	if (!details)
		return;
	switch (why) {
	case ASTRAY_DLID:
		add(&details->rcv_dlid, packets);
		break;
	case ASTRAY_VL:
		add(&details->rcv_vl, packets);
		break;
	case ASTRAY_LOOP:
		add(&details->rcv_looping, packets);
		break;
	}
}

void details_recv(struct port_details *details, struct packet *pkt)
{
	const struct bth *bth = packet_bth(pkt);
	unsigned int segs = pkt->gso_segs ? pkt->gso_segs : 1, vl = pkt->vl & 0xf;

	if (!bth)
		return;
	if (bth->opcode == details->op) {
		add(&details->op_pkts, segs);
		add(&details->op_data, packet_words(pkt));
	}
	if (bth->opcode == details->vl_pkts_op)
		add(&details->vl_pkts[vl], segs);
	if (bth->opcode == details->vl_data_op)
		add(&details->vl_data[vl], packet_words(pkt));
}
