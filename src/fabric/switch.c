/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A switch: where a packet goes by the tables that a subnet manager wrote, and
 * those tables. What they send astray is lost and counted, as IBA 18.2.4 says.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"
#include "fabric/link.h"
#include "fabric/packet.h"
#include "fabric/wire.h"

#define LFT_NONE	255
#define LFT_BLOCK	64	/* entries that one attribute carries */
#define MFT_BLOCK	32
/* Copies of one multicast packet: more than the LID space has ports. Tables that loop end here. */
#define MAX_COPIES	(128 * 1024)

static unsigned int packets_of(const struct packet *pkt)
{
	return pkt->gso_segs ? pkt->gso_segs : 1;
}

static void count_astray(struct port *in, const struct packet *pkt, enum astray why)
{
	unsigned int packets = packets_of(pkt);

	in->cnt.rcv_switch_relay_errors += packets;
	details_astray(in, packets, why);
}

/*
 * Partition enforcement (18.2.4.2.1) for one direction: its two bits of
 * part_enforce, and where it counts what it refuses.
 */
static bool part_allows(struct port *port, const struct packet *pkt, uint8_t keys, uint8_t raw,
			uint32_t *refused)
{
	const struct bth *bth;

	if (!(port->part_enforce & (keys | raw)) || pkt->vl == VL_MGMT)
		return true;
	bth = packet_bth(pkt);
	if (!(port->part_enforce & (bth ? keys : raw)) ||
	    (bth && port_find_pkey(port, be16toh(bth->pkey)) >= 0))
		return true;
	*refused += packets_of(pkt);
	if (bth && port->node->ops->bad_pkey)
		port->node->ops->bad_pkey(port, pkt);
	return false;
}

/* Send it out of a port that the tables named. */
static void relay(struct port *in, struct port *out, struct packet *pkt)
{
	if (pkt->vl != VL_MGMT) {
		unsigned int vl = port_vl(in, out, lrh_sl(packet_lrh(pkt)));

		if (vl == VL_MGMT) {
			count_astray(in, pkt, ASTRAY_VL);
			return;
		}
		pkt->vl = vl;
	}
	if (part_allows(out, pkt, PART_ENFORCE_OUT, PART_FILTER_RAW_OUT,
			&out->cnt.xmit_constraint_errors))
		port_xmit(out, pkt);
}

static void forward_unicast(struct node *node, struct port *in, struct packet *pkt, uint16_t dlid)
{
	unsigned int out = dlid <= node->sw->lft_top ? switch_get_lft(node, dlid) : LFT_NONE;

	/* An SMP may turn round: between two LID-routed hops it need not know the way. */
	if (!out || out > node->num_ports || (out == in->num && pkt->vl != VL_MGMT)) {
		count_astray(in, pkt, out && out == in->num ? ASTRAY_LOOP : ASTRAY_DLID);
		return;
	}
	relay(in, &node->ports[out], pkt);
}

/* One of several: with its own headers, since who gets it may change them. */
static void replicate(struct port *in, struct port *out, const struct packet *pkt)
{
	struct fabric *fabric = in->node->fabric;
	struct packet copy;

	if (!fabric->copies) {
		out->cnt.xmit_discards++;
		return;
	}
	fabric->copies--;
	packet_share(&copy, pkt);
	if (out->num)
		relay(in, out, &copy);
	else
		out->node->ops->recv(out, &copy);
}

/* Where a multicast LID that has no place in the table goes, 18.2.4.3.3. */
static void forward_default(struct node *node, struct port *in, const struct packet *pkt)
{
	const struct switch_info *sw = node->sw;
	unsigned int out = in->num == sw->default_mcast_primary ? sw->default_mcast_not_primary :
								  sw->default_mcast_primary;

	if (out > node->num_ports || out == in->num)
		count_astray(in, pkt, ASTRAY_DLID);
	else
		replicate(in, &node->ports[out], pkt);
}

static bool in_mft(const struct switch_info *sw, uint16_t mlid)
{
	if (sw->mcast_top && mlid > sw->mcast_top)
		return false;
	return mlid - LID_MCAST_FIRST < sw->mft_cap;
}

static void forward_members(struct node *node, struct port *in, const struct packet *pkt,
			    uint16_t mlid)
{
	bool none = true;

	for (unsigned int word = 0; word < node->sw->mft_words; word++) {
		uint32_t mask = switch_get_mft(node, mlid, word);

		for (; mask; mask &= mask - 1) {
			unsigned int out = 32 * word + (unsigned int)__builtin_ctz(mask);

			none = false;
			if (out != in->num && out <= node->num_ports)
				replicate(in, &node->ports[out], pkt);
		}
	}
	if (none)
		count_astray(in, pkt, ASTRAY_DLID);
}

static void forward_multicast(struct node *node, struct port *in, const struct packet *pkt,
			      uint16_t mlid)
{
	struct fabric *fabric = node->fabric;

	if (!fabric->mcast_depth++)
		fabric->copies = MAX_COPIES;
	if (in_mft(node->sw, mlid))
		forward_members(node, in, pkt, mlid);
	else
		forward_default(node, in, pkt);
	fabric->mcast_depth--;
}

void switch_forward(struct node *node, struct port *in, struct packet *pkt)
{
	uint16_t dlid = be16toh(packet_lrh(pkt)->dlid);

	if (dlid == LID_PERMISSIVE)
		count_astray(in, pkt, ASTRAY_DLID);
	else if (dlid >= LID_MCAST_FIRST)
		forward_multicast(node, in, pkt, dlid);
	else if (port_has_lid(&node->ports[0], dlid))
		node->ops->recv(&node->ports[0], pkt);
	else
		forward_unicast(node, in, pkt, dlid);
}

void switch_recv(struct port *in, struct packet *pkt)
{
	const struct lrh *lrh = packet_lrh(pkt);
	struct node *node = in->node;

	if (pkt->vl == VL_MGMT && (lrh->dlid == htobe16(LID_PERMISSIVE) ||
				   lrh->slid == htobe16(LID_PERMISSIVE))) {
		node->ops->recv(in, pkt);
		return;
	}
	if (part_allows(in, pkt, PART_ENFORCE_IN, PART_FILTER_RAW_IN,
			&in->cnt.rcv_constraint_errors))
		switch_forward(node, in, pkt);
}

/* Make room for a LID, and at once for all up to the top that the SM announced. */
static int grow_lft(struct switch_info *sw, uint16_t lid)
{
	uint32_t need = (lid > sw->lft_top ? lid : sw->lft_top) + 1U;
	uint32_t size = sw->lft_size + sw->lft_size / 4;
	uint8_t *lft;

	if (size < need)
		size = need;
	size = (size + LFT_BLOCK - 1) / LFT_BLOCK * LFT_BLOCK;
	lft = realloc(sw->lft, size);
	if (!lft)
		return -ENOMEM;
	memset(lft + sw->lft_size, LFT_NONE, size - sw->lft_size);
	sw->lft = lft;
	sw->lft_size = size;
	return 0;
}

int switch_set_lft(struct node *node, uint16_t lid, uint8_t port)
{
	struct switch_info *sw = node->sw;

	if (lid >= sw->lft_cap || lid > LID_UCAST_LAST)
		return -ERANGE;
	if (lid >= sw->lft_size) {
		int err = port == LFT_NONE ? 0 : grow_lft(sw, lid);

		if (err || port == LFT_NONE)
			return err;
	}
	sw->lft[lid] = port;
	return 0;
}

uint8_t switch_get_lft(const struct node *node, uint16_t lid)
{
	return lid < node->sw->lft_size ? node->sw->lft[lid] : LFT_NONE;
}

static int grow_mft(struct switch_info *sw, unsigned int index)
{
	uint32_t size = (index + MFT_BLOCK) / MFT_BLOCK * MFT_BLOCK;
	size_t row = sw->mft_words * sizeof(sw->mft[0]);
	uint32_t *mft;

	if (size < sw->mft_size + sw->mft_size / 4)
		size = sw->mft_size + sw->mft_size / 4;
	mft = realloc(sw->mft, size * row);
	if (!mft)
		return -ENOMEM;
	memset(mft + (size_t)sw->mft_size * sw->mft_words, 0, (size - sw->mft_size) * row);
	sw->mft = mft;
	sw->mft_size = size;
	return 0;
}

int switch_set_mft(struct node *node, uint16_t mlid, unsigned int word, uint32_t mask)
{
	struct switch_info *sw = node->sw;
	unsigned int index = mlid - LID_MCAST_FIRST;

	if (mlid < LID_MCAST_FIRST || index >= sw->mft_cap || word >= sw->mft_words)
		return -ERANGE;
	if (index >= sw->mft_size) {
		int err = mask ? grow_mft(sw, index) : 0;

		if (err || !mask)
			return err;
	}
	sw->mft[index * sw->mft_words + word] = mask;
	return 0;
}

uint32_t switch_get_mft(const struct node *node, uint16_t mlid, unsigned int word)
{
	const struct switch_info *sw = node->sw;
	unsigned int index = mlid - LID_MCAST_FIRST;

	if (mlid < LID_MCAST_FIRST || index >= sw->mft_size || word >= sw->mft_words)
		return 0;
	return sw->mft[index * sw->mft_words + word];
}
