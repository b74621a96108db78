/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links: how two ports train, come up and go down together, and how a packet
 * leaves one and enters the other. IBA 14.2.5.6 (PortInfo), 7.2 (link states),
 * 16.1.3.5 (what is counted).
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/fabric.h"
#include "fabric/link.h"
#include "fabric/packet.h"
#include "fabric/wire.h"

/* What a packet may hold beside its payload: headers and ICRC, IBA 7.7.5. */
#define MTU_SLACK	124

/* Training */

static uint8_t best_width(unsigned int common)
{
	static const uint8_t order[] = { WIDTH_12X, WIDTH_8X, WIDTH_4X, WIDTH_2X, WIDTH_1X };

	for (unsigned int i = 0; i < sizeof(order); i++)
		if (common & order[i])
			return order[i];
	return 0;
}

static uint8_t highest_bit(unsigned int mask)
{
	while (mask & (mask - 1))
		mask &= mask - 1;
	return mask;
}

/* Does this end answer the other's training sequences? Polling or, woken by them, asleep. */
static bool can_train(const struct port *port)
{
	return port->phys_state == PHYS_POLLING || port->phys_state == PHYS_SLEEP;
}

static uint8_t min_u8(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static void port_rise(struct port *port, uint8_t width, uint8_t speed, uint8_t speed_ext)
{
	port->node->fabric->changes++;
	port->phys_state = PHYS_LINKUP;
	port->state = PORT_INIT;
	port->width_active = width;
	/* An extended speed is reported beside the fastest classic one. */
	port->speed_active = speed_ext ? SPEED_QDR : speed;
	port->speed_ext_active = speed_ext;
	port->neighbor_mtu = min_u8(port->mtu_cap, port->peer->mtu_cap);
	port->oper_vls = min_u8(port->vl_cap, port->peer->vl_cap);
}

/* Bring the link up, if both ends want to and have a width and speed in common. */
static void link_train(struct link *link)
{
	struct port *a = link->a, *b = link->b;
	uint8_t width = best_width(a->width_enabled & a->width_supported &
				   b->width_enabled & b->width_supported);
	uint8_t speed = highest_bit(a->speed_enabled & a->speed_supported &
				    b->speed_enabled & b->speed_supported);
	uint8_t ext = highest_bit(a->speed_ext_enabled & a->speed_ext_supported &
				  b->speed_ext_enabled & b->speed_ext_supported);

	if (link->down || !width || !(speed | ext) || !can_train(a) || !can_train(b) ||
	    (a->phys_state == PHYS_SLEEP && b->phys_state == PHYS_SLEEP))
		return;
	port_rise(a, width, speed, ext);
	port_rise(b, width, speed, ext);
	port_event(a, PORT_EV_STATE);
	port_event(b, PORT_EV_STATE);
}

/* True when that changed the port's state. */
static bool port_fall(struct port *port, enum phys_state phys)
{
	bool was_up = port->state != PORT_DOWN;

	if (port->phys_state == PHYS_LINKUP) {
		port->cnt.link_downed++;
		port->node->fabric->changes++;
	}
	port->phys_state = phys;
	port->state = PORT_DOWN;
	return was_up;
}

/* The link is lost: this port goes to a physical state, its peer to its default unless disabled. */
static void link_drop(struct port *port, enum phys_state phys)
{
	struct port *peer = port->peer;
	bool port_changed = port_fall(port, phys);
	bool peer_changed = false;

	if (peer) {
		faults_flush(port->link);
		peer_changed = port_fall(peer, peer->phys_state == PHYS_LINKUP ?
						       peer->link_down_default :
						       peer->phys_state);
	}
	if (port_changed)
		port_event(port, PORT_EV_STATE);
	if (peer_changed)
		port_event(peer, PORT_EV_STATE);
}

/* Down to the default of the port, unless it is disabled or down already. */
static void port_drop(struct port *port)
{
	if (port->phys_state == PHYS_LINKUP)
		link_drop(port, port->link_down_default);
}

/* Add a slot to the list of links, which grows by doubling. */
static int add_link(struct fabric *fabric, struct link *link)
{
	unsigned int num = fabric->num_links;

	if (!(num & (num - 1))) {
		size_t size = num ? 2 * num : 1;
		struct link **links = reallocarray(fabric->links, size, sizeof(struct link *));

		if (!links)
			return -ENOMEM;
		fabric->links = links;
	}
	link->index = num;
	fabric->links[num] = link;
	fabric->num_links++;
	fabric->live_links++;
	return 0;
}

struct link *link_new(struct port *a, struct port *b)
{
	struct link *link;

	if (a == b || !a->num || !b->num || a->node->fabric != b->node->fabric) {
		errno = EINVAL;
		return NULL;
	}
	if (a->link || b->link) {
		errno = EBUSY;
		return NULL;
	}
	link = calloc(1, sizeof(*link));
	if (!link || add_link(a->node->fabric, link)) {
		free(link);
		errno = ENOMEM;
		return NULL;
	}
	link->a = a;
	link->b = b;
	a->link = b->link = link;
	a->peer = b;
	b->peer = a;
	link_train(link);
	return link;
}

void link_remove(struct link *link)
{
	struct port *a = link->a, *b = link->b;

	port_drop(a);
	faults_free(link);
	a->link = b->link = NULL;
	a->peer = b->peer = NULL;
	a->node->fabric->links[link->index] = NULL;
	a->node->fabric->live_links--;
	free(link);
}

void link_set_down(struct link *link, bool down)
{
	if (link->down == down)
		return;
	link->down = down;
	if (down)
		port_drop(link->a);
	else
		link_train(link);
}

int link_name(const struct link *link, char *buf, size_t size)
{
	return snprintf(buf, size, "%s:%u-%s:%u", link->a->node->id, link->a->num,
			link->b->node->id, link->b->num);
}

/* State changes from above */

int port_set_state(struct port *port, enum port_state state)
{
	/* What may be set, by what the port is in; 14.2.5.6. INIT only comes by training. */
	static const bool allowed[][PORT_ACTIVE + 1] = {
		[PORT_DOWN] = { [PORT_DOWN] = true },
		[PORT_INIT] = { [PORT_DOWN] = true, [PORT_ARMED] = true },
		[PORT_ARMED] = { [PORT_DOWN] = true, [PORT_ARMED] = true, [PORT_ACTIVE] = true },
		[PORT_ACTIVE] = { [PORT_DOWN] = true, [PORT_ACTIVE] = true },
	};

	if (state == PORT_NOP)
		return 0;
	if (state > PORT_ACTIVE || state == PORT_INIT || (!port->num && state == PORT_DOWN))
		return -EINVAL;
	if (!port->num)
		return 0;
	if (!allowed[port->state][state])
		return -EINVAL;
	if (state == PORT_DOWN) {
		port_drop(port);
		if (port->link)
			link_train(port->link);
	} else if (state != port->state) {
		port->state = state;
		port_event(port, PORT_EV_STATE);
	}
	return 0;
}

int port_set_phys(struct port *port, enum phys_state phys)
{
	if (phys == PHYS_NOP)
		return 0;
	if (!port->num || phys > PHYS_DISABLED)
		return -EINVAL;
	link_drop(port, phys);
	if (port->link)
		link_train(port->link);
	return 0;
}

void port_retrain(struct port *port)
{
	port_drop(port);
	if (port->link)
		link_train(port->link);
}

/* Packets */

static bool is_multicast(const struct lrh *lrh)
{
	uint16_t dlid = be16toh(lrh->dlid);

	return dlid >= LID_MCAST_FIRST && dlid != LID_PERMISSIVE;
}

static unsigned int packet_segs(const struct packet *pkt)
{
	return pkt->gso_segs ? pkt->gso_segs : 1;
}

static int check_xmit(const struct port *port, const struct packet *pkt)
{
	uint32_t mtu = 128U << (port->neighbor_mtu & 0xf);

	if (pkt->len < sizeof(struct lrh))
		return -EINVAL;
	if (port->state != PORT_ACTIVE && (port->state < PORT_INIT || pkt->vl != VL_MGMT))
		return -ENETDOWN;
	if (pkt->gso_size ? pkt->gso_size > mtu :
			    packet_size(pkt) + ICRC_SIZE > mtu + MTU_SLACK)
		return -EMSGSIZE;
	if (pkt->hops >= PACKET_MAX_HOPS)
		return -ELOOP;
	return 0;
}

static void count_xmit(struct port *port, struct packet *pkt)
{
	unsigned int segs = packet_segs(pkt);

	port->cnt.xmit_data += packet_words(pkt);
	port->cnt.xmit_pkts += segs;
	if (is_multicast(packet_lrh(pkt)))
		port->cnt.multicast_xmit_pkts += segs;
	else
		port->cnt.unicast_xmit_pkts += segs;
}

static void count_recv(struct port *port, struct packet *pkt)
{
	unsigned int segs = packet_segs(pkt);

	port->cnt.rcv_data += packet_words(pkt);
	port->cnt.rcv_pkts += segs;
	if (is_multicast(packet_lrh(pkt)))
		port->cnt.multicast_rcv_pkts += segs;
	else
		port->cnt.unicast_rcv_pkts += segs;
	if (port->details && port->details->count_ops)
		details_recv(port->details, pkt);
}

int port_xmit(struct port *port, struct packet *pkt)
{
	int err = check_xmit(port, pkt);

	if (err) {
		port->cnt.xmit_discards += packet_segs(pkt);
		details_discard(port, packet_segs(pkt), err);
		return err;
	}
	pkt->hops++;
	count_xmit(port, pkt);
	if (port->taps)
		taps_feed(port, pkt, true);
	if (port->faults)
		faults_cross(port, pkt);
	else
		port_receive(port->peer, pkt);
	return 0;
}

/*
 * May the port take the packet in its state? Data that comes in ARMED makes it
 * ACTIVE (ActiveEnable, 7.2.7).
 */
static bool accepts(struct port *in, const struct packet *pkt)
{
	if (in->state == PORT_ACTIVE)
		return true;
	if (in->state < PORT_INIT)
		return false;
	if (pkt->vl == VL_MGMT)
		return true;
	if (in->state != PORT_ARMED)
		return false;
	in->state = PORT_ACTIVE;
	port_event(in, PORT_EV_STATE);
	return true;
}

/* An end port takes its own LIDs, all multicast (the QPs choose), and SMPs that need no LID. */
static bool is_for(const struct port *port, const struct packet *pkt)
{
	uint16_t dlid = be16toh(packet_lrh(pkt)->dlid);

	if (dlid >= LID_MCAST_FIRST)
		return dlid != LID_PERMISSIVE || pkt->vl == VL_MGMT;
	return port_has_lid(port, dlid);
}

/* A spoilt packet; too many of them for the good ones between are a matter for the SM (7.12.2). */
static void receive_bad(struct port *in)
{
	in->cnt.symbol_errors++;
	in->cnt.rcv_errors++;
	details_bad(in);
	if (in->phy_errors_now++ < in->phy_errors)
		return;
	in->phy_errors_now = 0;
	port_event(in, PORT_EV_INTEGRITY);
}

/* Of flow control there is nothing here but this: overruns in a row take as many of its periods. */
void port_overrun(struct port *in)
{
	in->cnt.rcv_errors++;
	details_overrun(in);
	if (in->overruns_now++ < in->overrun_errors)
		return;
	in->overruns_now = 0;
	port_event(in, PORT_EV_OVERRUN);
}

int link_stall(struct link *link)
{
	if (link->down || link->a->phys_state != PHYS_LINKUP)
		return -ENOLINK;
	port_event(link->a, PORT_EV_WATCHDOG);
	port_event(link->b, PORT_EV_WATCHDOG);
	return 0;
}

/* To a LID that isn't this port's. */
static void receive_stranger(struct port *in, const struct packet *pkt)
{
	in->cnt.rcv_errors += packet_segs(pkt);
	details_malformed(in, packet_segs(pkt));
}

void port_receive(struct port *in, struct packet *pkt)
{
	if (in->taps)
		taps_feed(in, pkt, false);
	count_recv(in, pkt);
	if (pkt->bad_crc) {
		receive_bad(in);
		return;
	}
	if (in->phy_errors_now)
		in->phy_errors_now--;
	in->overruns_now = 0;
	if (!accepts(in, pkt))
		return;
	if (in->node->sw)
		switch_recv(in, pkt);
	else if (is_for(in, pkt))
		in->node->ops->recv(in, pkt);
	else
		receive_stranger(in, pkt);
}
