/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that stand for many: how they are cut into what a wire would carry,
 * and how many words that would be. Opcodes and their headers: IBA 9.2.1 table
 * 38, XRC: annex A14. Touches nothing but packets.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "fabric/packet.h"
#include "fabric/wire.h"

/* Extended headers that follow the BTH (and XRCETH), in their order on the wire. */
enum { EXT_RETH, EXT_AETH, EXT_IMM, EXT_IETH, EXT_MAX };
static const uint8_t ext_size[EXT_MAX] = { 16, 4, 4, 4 };

enum {
	RETH = 1 << EXT_RETH,
	AETH = 1 << EXT_AETH,
	IMM = 1 << EXT_IMM,
	IETH = 1 << EXT_IETH,
};

#define OPCODE_MASK	0x1f
#define XRCETH_SIZE	4

/* An opcode's upper three bits */
enum { CLASS_SHIFT = 5, CLASS_RC = 0, CLASS_UC = 1, CLASS_XRC = 5 };

/*
 * By an opcode's low five bits: the headers that it has, and the opcodes of the
 * segments of a message packet that carries it. Those without a middle one are
 * never part of a longer message.
 */
static const struct opcode {
	uint8_t ext;
	uint8_t first, middle, last;
	bool can_cut, response;
} opcodes[OPCODE_MASK + 1] = {
	[0x00] = { 0, 0x00, 0x01, 0x01, true },			/* SEND FIRST */
	[0x01] = { 0, 0x01, 0x01, 0x01, true },			/* SEND MIDDLE */
	[0x02] = { 0, 0x01, 0x01, 0x02, true },			/* SEND LAST */
	[0x03] = { IMM, 0x01, 0x01, 0x03, true },		/* SEND LAST with immediate */
	[0x04] = { 0, 0x00, 0x01, 0x02, true },			/* SEND ONLY */
	[0x05] = { IMM, 0x00, 0x01, 0x03, true },		/* SEND ONLY with immediate */
	[0x06] = { RETH, 0x06, 0x07, 0x07, true },		/* WRITE FIRST */
	[0x07] = { 0, 0x07, 0x07, 0x07, true },			/* WRITE MIDDLE */
	[0x08] = { 0, 0x07, 0x07, 0x08, true },			/* WRITE LAST */
	[0x09] = { IMM, 0x07, 0x07, 0x09, true },		/* WRITE LAST with immediate */
	[0x0a] = { RETH, 0x06, 0x07, 0x08, true },		/* WRITE ONLY */
	[0x0b] = { RETH | IMM, 0x06, 0x07, 0x09, true },	/* WRITE ONLY with immediate */
	[0x0d] = { AETH, 0x0d, 0x0e, 0x0e, true, true },	/* READ RESPONSE FIRST */
	[0x0e] = { 0, 0x0e, 0x0e, 0x0e, true, true },		/* READ RESPONSE MIDDLE */
	[0x0f] = { AETH, 0x0e, 0x0e, 0x0f, true, true },	/* READ RESPONSE LAST */
	[0x10] = { AETH, 0x0d, 0x0e, 0x0f, true, true },	/* READ RESPONSE ONLY */
	[0x16] = { IETH, 0x01, 0x01, 0x16, true },		/* SEND LAST with invalidate */
	[0x17] = { IETH, 0x00, 0x01, 0x16, true },		/* SEND ONLY with invalidate */
};

/* A message packet taken apart; pointers are into the packet. */
struct layout {
	const struct opcode *opcode;
	uint32_t base_len;		/* LRH to BTH or XRCETH: in every segment */
	uint32_t bth_at;
	uint32_t header_len;		/* and its extended headers */
	uint32_t payload_len;
	const uint8_t *ext[EXT_MAX];
};

static uint32_t ext_len(unsigned int ext)
{
	uint32_t len = 0;

	for (; ext; ext &= ext - 1)
		len += ext_size[__builtin_ctz(ext)];
	return len;
}

static bool parse(const struct packet *pkt, struct layout *lay)
{
	const struct bth *bth = packet_bth(pkt);
	unsigned int class;
	uint32_t at;

	if (!bth)
		return false;
	class = bth->opcode >> CLASS_SHIFT;
	lay->opcode = &opcodes[bth->opcode & OPCODE_MASK];
	if (!lay->opcode->can_cut ||
	    (class != CLASS_RC && class != CLASS_UC && class != CLASS_XRC))
		return false;
	lay->bth_at = (const uint8_t *)bth - pkt->data;
	lay->base_len = lay->bth_at + sizeof(*bth);
	if (class == CLASS_XRC && !lay->opcode->response)
		lay->base_len += XRCETH_SIZE;
	lay->header_len = lay->base_len + ext_len(lay->opcode->ext);
	if (pkt->len < lay->header_len)
		return false;
	lay->payload_len = packet_size(pkt) - lay->header_len;
	at = lay->base_len;
	for (unsigned int i = 0; i < EXT_MAX; i++) {
		lay->ext[i] = pkt->data + at;
		if (lay->opcode->ext & 1U << i)
			at += ext_size[i];
	}
	return true;
}

static unsigned int segment_opcode(const struct opcode *opcode, unsigned int n, unsigned int segs)
{
	if (n == segs - 1)
		return opcode->last;
	return n ? opcode->middle : opcode->first;
}

static uint32_t count_words(const struct packet *pkt)
{
	const struct lrh *lrh = packet_lrh(pkt);
	struct layout lay;
	unsigned int segs = pkt->gso_segs;
	uint64_t size = packet_size(pkt);

	if (lrh && lrh_lnh(lrh) >= LNH_BTH)
		size += ICRC_SIZE;
	if (segs > 1 && parse(pkt, &lay)) {
		size += (uint64_t)(segs - 1) * (lay.base_len + ICRC_SIZE);
		size += ext_len(opcodes[lay.opcode->first].ext);
		size += (uint64_t)(segs - 2) * ext_len(opcodes[lay.opcode->middle].ext);
		size += ext_len(opcodes[lay.opcode->last].ext);
		size -= ext_len(lay.opcode->ext);
	}
	return (size + 3) / 4;
}

uint32_t packet_words(struct packet *pkt)
{
	if (!pkt->words)
		pkt->words = count_words(pkt);
	return pkt->words;
}

/* Where the cutting stands in the payload: linear rest first, then the fragments. */
struct cursor {
	const struct packet *pkt;
	uint32_t linear_at;
	unsigned int frag;
	uint32_t frag_at;
};

/* Give seg the next len bytes; false when its linear part has no room for their start. */
static bool take_payload(struct cursor *cur, struct packet *seg, uint32_t len)
{
	const struct packet *pkt = cur->pkt;
	uint32_t n = pkt->len - cur->linear_at;
	uint8_t *to;

	n = n < len ? n : len;
	to = packet_put(seg, n);
	if (!to)
		return false;
	memcpy(to, pkt->data + cur->linear_at, n);
	cur->linear_at += n;
	for (len -= n; len; len -= n) {
		const struct packet_frag *frag = &pkt->frags[cur->frag];

		n = frag->len - cur->frag_at;
		n = n < len ? n : len;
		seg->frags[seg->nr_frags++] = (struct packet_frag){
			.base = (uint8_t *)frag->base + cur->frag_at,
			.len = n,
		};
		seg->data_len += n;
		cur->frag_at += n;
		if (cur->frag_at == frag->len) {
			cur->frag++;
			cur->frag_at = 0;
		}
	}
	return true;
}

/* The headers of segment n of segs, into an empty packet. */
static void segment_headers(struct packet *seg, const struct packet *pkt,
			    const struct layout *lay, unsigned int n, unsigned int segs)
{
	unsigned int opcode = segment_opcode(lay->opcode, n, segs);
	unsigned int ext = opcodes[opcode].ext;
	struct bth *bth;
	uint8_t *to;
	uint32_t psn;

	packet_init(seg);
	seg->hops = pkt->hops;
	seg->vl = pkt->vl;
	seg->bad_crc = pkt->bad_crc;
	to = packet_push(seg, lay->base_len + ext_len(ext));
	memcpy(to, pkt->data, lay->base_len);
	bth = (struct bth *)(to + lay->bth_at);
	to += lay->base_len;
	for (unsigned int i = 0; i < EXT_MAX; i++) {
		if (!(ext & 1U << i))
			continue;
		memcpy(to, lay->ext[i], ext_size[i]);
		to += ext_size[i];
	}
	psn = be32toh(bth->psn);
	psn = (psn & ~BTH_PSN_MASK) | ((psn + n) & BTH_PSN_MASK);
	if (n != segs - 1) {
		psn &= ~BTH_ACKREQ;
		bth->flags &= ~BTH_SOLICITED;
	}
	bth->psn = htobe32(psn);
	bth->opcode = (bth->opcode & ~OPCODE_MASK) | opcode;
}

int packet_cut(const struct packet *pkt, int (*fn)(void *priv, struct packet *seg), void *priv)
{
	struct packet seg;
	struct layout lay;
	struct cursor cur = { .pkt = pkt };
	uint32_t left;
	int err = 0;

	if (pkt->gso_segs < 2) {
		packet_share(&seg, pkt);
		return fn(priv, &seg);
	}
	if (!pkt->gso_size || !parse(pkt, &lay) ||
	    (lay.payload_len + (uint64_t)pkt->gso_size - 1) / pkt->gso_size != pkt->gso_segs)
		return -EINVAL;
	left = lay.payload_len;
	cur.linear_at = lay.header_len;
	for (unsigned int n = 0; n < pkt->gso_segs && !err; n++) {
		uint32_t len = left < pkt->gso_size ? left : pkt->gso_size;

		segment_headers(&seg, pkt, &lay, n, pkt->gso_segs);
		if (!take_payload(&cur, &seg, len))
			return -EINVAL;
		left -= len;
		packet_set_lengths(&seg);
		err = fn(priv, &seg);
	}
	return err;
}
