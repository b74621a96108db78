/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packet: true wire headers in front of a payload by reference, shaped
 * after the kernel's sk_buff. IBA chapter 5; wire offsets are those of
 * DLT_INFINIBAND, starting at the LRH. Header structs are in wire.h.
 *
 * Who owns what: the sender owns a packet, usually on its stack. It and all
 * that its fragments refer to is valid until port_xmit() returns; whoever
 * keeps, delays or doubles it takes packet_copy(). A receiver may change
 * headers and linear data in place (a responder turns a request round).
 */
#ifndef IBFS_FABRIC_PACKET_H
#define IBFS_FABRIC_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_HEADROOM	192	/* LRH GRH BTH and the largest extended headers */
#define PACKET_LINEAR	256	/* a MAD, or an inline payload */
#define PACKET_FRAGS	34	/* a work request's SGEs, and slack */
#define PACKET_MAX_HOPS	64	/* beyond it, SwitchLifeTime has run out */

struct packet_frag {
	void *base;
	uint32_t len;
};

struct packet {
	uint8_t *data;		/* the LRH once it was pushed */
	uint32_t len;		/* linear bytes from data */
	uint32_t data_len;	/* bytes in frags, after the linear ones */
	uint32_t gso_size;	/* payload bytes a segment (the path MTU); 0: one packet */
	uint16_t gso_segs;	/* packets that this one stands for; 0 counts as 1 */
	uint8_t nr_frags;
	uint8_t hops;		/* links crossed */
	uint8_t vl;		/* 15 for SMPs */
	bool bad_crc;		/* a fault has hit it: the receiver drops it */
	struct packet_frag frags[PACKET_FRAGS];
	uint8_t head[PACKET_HEADROOM + PACKET_LINEAR];
};

/* An empty packet with all headroom in front. Does not clear the payload area. */
void packet_init(struct packet *pkt);
/* Make room in front of, or behind, the linear data: the new bytes' address. */
void *packet_push(struct packet *pkt, uint32_t len);
void *packet_put(struct packet *pkt, uint32_t len);
/* Take len bytes off the front; NULL when there are not as many linear bytes. */
void *packet_pull(struct packet *pkt, uint32_t len);
static inline uint32_t packet_size(const struct packet *pkt)
{
	return pkt->len + pkt->data_len;
}
/* A copy on the heap, payload included, for who keeps it; NULL without memory. */
struct packet *packet_copy(const struct packet *pkt);
void packet_free(struct packet *pkt);
/* Gather the bytes from offset on into buf; how many there were, at most len. */
size_t packet_gather(const struct packet *pkt, size_t offset, void *buf, size_t len);

#endif
