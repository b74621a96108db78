/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packet as memory: headroom, linear data, payload by reference. It looks
 * into the headers only to find where the next one starts. IBA chapter 5.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/packet.h"
#include "fabric/wire.h"

void packet_init(struct packet *pkt)
{
	pkt->data = pkt->head + PACKET_HEADROOM;
	pkt->len = 0;
	pkt->data_len = 0;
	pkt->words = 0;
	pkt->gso_size = 0;
	pkt->gso_segs = 0;
	pkt->nr_frags = 0;
	pkt->hops = 0;
	pkt->vl = 0;
	pkt->bad_crc = false;
}

void *packet_push(struct packet *pkt, uint32_t len)
{
	if ((size_t)(pkt->data - pkt->head) < len)
		return NULL;
	pkt->data -= len;
	pkt->len += len;
	pkt->words = 0;
	return pkt->data;
}

void *packet_put(struct packet *pkt, uint32_t len)
{
	uint8_t *tail = pkt->data + pkt->len;

	if ((size_t)(pkt->head + sizeof(pkt->head) - tail) < len)
		return NULL;
	pkt->len += len;
	pkt->words = 0;
	return tail;
}

void *packet_pull(struct packet *pkt, uint32_t len)
{
	if (pkt->len < len)
		return NULL;
	pkt->data += len;
	pkt->len -= len;
	pkt->words = 0;
	return pkt->data;
}

/* All but the fragments: fields, and the linear data at the place where it was. */
static void copy_linear(struct packet *dst, const struct packet *src)
{
	dst->data = dst->head + (src->data - src->head);
	dst->len = src->len;
	dst->words = src->words;
	dst->gso_size = src->gso_size;
	dst->gso_segs = src->gso_segs;
	dst->hops = src->hops;
	dst->vl = src->vl;
	dst->bad_crc = src->bad_crc;
	memcpy(dst->data, src->data, src->len);
}

void packet_share(struct packet *dst, const struct packet *src)
{
	copy_linear(dst, src);
	dst->data_len = src->data_len;
	dst->nr_frags = src->nr_frags;
	memcpy(dst->frags, src->frags, src->nr_frags * sizeof(src->frags[0]));
}

struct packet *packet_copy(const struct packet *pkt)
{
	struct packet *copy = malloc(sizeof(*copy) + pkt->data_len);

	if (!copy)
		return NULL;
	copy_linear(copy, pkt);
	copy->data_len = pkt->data_len;
	copy->nr_frags = pkt->data_len != 0;
	if (pkt->data_len) {
		copy->frags[0].base = copy + 1;
		copy->frags[0].len = pkt->data_len;
		packet_gather(pkt, pkt->len, copy + 1, pkt->data_len);
	}
	return copy;
}

void packet_free(struct packet *pkt)
{
	free(pkt);
}

/* What of a piece of size bytes lies from *offset on goes to buf; both move on. */
static size_t gather_piece(const void *base, size_t size, size_t *offset, void *buf, size_t room)
{
	size_t len;

	if (*offset >= size) {
		*offset -= size;
		return 0;
	}
	len = size - *offset < room ? size - *offset : room;
	if (len)
		memcpy(buf, (const uint8_t *)base + *offset, len);
	*offset = 0;
	return len;
}

size_t packet_gather(const struct packet *pkt, size_t offset, void *buf, size_t len)
{
	uint8_t *out = buf;
	size_t done = gather_piece(pkt->data, pkt->len, &offset, out, len);

	for (unsigned int i = 0; i < pkt->nr_frags && done < len; i++)
		done += gather_piece(pkt->frags[i].base, pkt->frags[i].len, &offset, out + done,
				     len - done);
	return done;
}

struct lrh *packet_lrh(const struct packet *pkt)
{
	return pkt->len < sizeof(struct lrh) ? NULL : (struct lrh *)pkt->data;
}

struct bth *packet_bth(const struct packet *pkt)
{
	static const uint8_t offset[] = {
		[LNH_BTH] = sizeof(struct lrh),
		[LNH_GRH] = sizeof(struct lrh) + sizeof(struct grh),
	};
	const struct lrh *lrh = packet_lrh(pkt);
	unsigned int at = lrh ? offset[lrh_lnh(lrh)] : 0;

	if (!at || pkt->len < at + sizeof(struct bth))
		return NULL;
	return (struct bth *)(pkt->data + at);
}

uint32_t packet_set_lengths(struct packet *pkt)
{
	struct lrh *lrh = packet_lrh(pkt);
	struct bth *bth = packet_bth(pkt);
	uint32_t pad = -packet_size(pkt) & 3;
	uint32_t size = packet_size(pkt) + pad + (bth ? ICRC_SIZE : 0);

	lrh->len = htobe16(size / 4);
	if (bth)
		bth->flags = (bth->flags & ~BTH_PAD_MASK) | pad << BTH_PAD_SHIFT;
	if (bth && lrh_lnh(lrh) == LNH_GRH) {
		struct grh *grh = (struct grh *)(lrh + 1);

		grh->paylen = htobe16(size - sizeof(*lrh) - sizeof(*grh));
	}
	return pad;
}
