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

struct bth;
struct lrh;

struct packet_frag {
	void *base;
	uint32_t len;
};

struct packet {			/* payload without pad bytes */
	uint8_t *data;		/* the LRH once it was pushed */
	uint32_t len;		/* linear bytes from data */
	uint32_t data_len;	/* bytes in frags, after the linear ones */
	uint32_t words;		/* packet_words(), once it is known; 0: not yet */
	uint32_t gso_size;	/* payload bytes a segment (the path MTU); 0: one packet */
	uint16_t gso_segs;	/* packets that this one stands for; 0 counts as 1 */
	uint8_t nr_frags;
	uint8_t hops;		/* links crossed */
	uint8_t vl;		/* 15 for SMPs; the LRH's own VL is filled in on the wire only */
	bool bad_crc;		/* a fault has hit it: the receiver drops it */
	struct packet_frag frags[PACKET_FRAGS];
	uint8_t head[PACKET_HEADROOM + PACKET_LINEAR];
};

/* An empty packet with all headroom in front. Does not clear the payload area. */
void packet_init(struct packet *pkt);
/* Make room in front of, or behind, the linear data: its address; NULL when there is none. */
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

/*
 * The local route header, and the base transport header wherever it is; NULL
 * when linear data ends before their end, or the packet is raw (LNH 0 and 1).
 */
struct lrh *packet_lrh(const struct packet *pkt);
struct bth *packet_bth(const struct packet *pkt);

/*
 * Fill in LRH:PktLen, GRH:PayLen and BTH:PadCnt from what the packet holds (an
 * LRH at least). Returns the pad: its bytes are not in the packet, they appear
 * on the wire only.
 */
uint32_t packet_set_lengths(struct packet *pkt);

/*
 * Cut a packet that stands for many, gso.c. It carries the headers of the whole
 * (RETH, ImmDt, IETH, AETH as its opcode has them) and the PSN of its first;
 * its payload holds no pad. By its opcode:
 *	ONLY	FIRST MIDDLE... LAST
 *	FIRST	FIRST MIDDLE...
 *	MIDDLE	MIDDLE...
 *	LAST	MIDDLE... LAST
 * fn gets each segment in order, as a packet that refers to pkt's payload and
 * is gone when fn returns; it may change its headers. Stops at the first result
 * of fn that isn't 0, and returns it. -EINVAL: headers that can't be cut.
 * A packet with fewer than two segments goes to fn as a copy of itself.
 */
int packet_cut(const struct packet *pkt, int (*fn)(void *priv, struct packet *seg), void *priv);
/*
 * 4-byte words from LRH to ICRC that the packet, or its segments together, have
 * on the wire. For a packet on its way, whose payload and opcode stay.
 */
uint32_t packet_words(struct packet *pkt);
/* A copy of headers and references in dst, linear data included; payload in fragments is shared. */
void packet_share(struct packet *dst, const struct packet *src);

#endif
