/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capture: taps on ports, and a packet's bytes as a wire would carry them, with
 * both checksums. IBA 7.8.
 */
#include <endian.h>
#include <libdeflate.h>
#include <string.h>
#include <utlist.h>

#include "fabric/fabric.h"
#include "fabric/link.h"
#include "fabric/packet.h"
#include "fabric/wire.h"

void tap_attach(struct port *port, struct tap *tap)
{
	DL_APPEND(port->taps, tap);
}

void tap_detach(struct port *port, struct tap *tap)
{
	DL_DELETE(port->taps, tap);
}

/* Taps of a port, and which way the packet goes */
struct feed {
	struct port *port;
	bool out;
};

static int feed_one(void *priv, struct packet *pkt)
{
	const struct feed *feed = priv;
	struct tap *tap, *next;

	DL_FOREACH_SAFE(feed->port->taps, tap, next)
		tap->fn(tap, pkt, feed->out);
	return 0;
}

void taps_feed(struct port *port, const struct packet *pkt, bool out)
{
	struct feed feed = { .port = port, .out = out };

	packet_cut(pkt, feed_one, &feed);
}

/* The image as it grows: what fits is written, all of it is summed. */
struct image {
	uint8_t *buf;
	size_t size, len;
	uint32_t icrc;
	uint16_t vcrc;
};

/* 7.8.2: x^16 + x^12 + x^3 + x + 1, least significant bit first, by the half byte. */
static uint16_t vcrc_update(uint16_t crc, const uint8_t *data, size_t len)
{
	static const uint16_t table[] = {
		0x0000, 0x1a01, 0x3402, 0x2e03, 0x6804, 0x7205, 0x5c06, 0x4607,
		0xd008, 0xca09, 0xe40a, 0xfe0b, 0xb80c, 0xa20d, 0x8c0e, 0x960f,
	};

	for (size_t i = 0; i < len; i++) {
		crc ^= data[i];
		crc = crc >> 4 ^ table[crc & 0xf];
		crc = crc >> 4 ^ table[crc & 0xf];
	}
	return crc;
}

static void image_put(struct image *img, const void *data, size_t len)
{
	if (img->len < img->size) {
		size_t room = img->size - img->len;

		memcpy(img->buf + img->len, data, len < room ? len : room);
	}
	img->len += len;
	img->vcrc = vcrc_update(img->vcrc, data, len);
}

/* And sum it up for the ICRC, unmasked. */
static void image_put_payload(struct image *img, const void *data, size_t len)
{
	img->icrc = libdeflate_crc32(img->icrc, data, len);
	image_put(img, data, len);
}

/*
 * The headers for the ICRC, 7.8.1: what switches and routers may change counts
 * as ones. Within a subnet that is LRH:VL; with a GRH all of the LRH, and of
 * the GRH its traffic class, flow label and hop limit; BTH's reserved byte always.
 */
static uint32_t icrc_headers(const struct packet *pkt, const struct bth *bth)
{
	const size_t bth_at = (const uint8_t *)bth - pkt->data;
	uint8_t head[PACKET_HEADROOM + PACKET_LINEAR];

	memcpy(head, pkt->data, pkt->len);
	if (lrh_lnh(packet_lrh(pkt)) == LNH_GRH) {
		struct grh *grh = (struct grh *)(head + sizeof(struct lrh));

		memset(head, 0xff, sizeof(struct lrh));
		grh->ver_tclass_flow |= htobe32(0x0fffffff);
		grh->hoplmt = 0xff;
	} else {
		head[0] |= 0xf0;
	}
	head[bth_at + offsetof(struct bth, dqpn)] = 0xff;
	return libdeflate_crc32(0, head, pkt->len);
}

size_t packet_wire_image(const struct packet *pkt, void *buf, size_t size)
{
	static const uint8_t zeros[4];
	struct image img = { .buf = buf, .size = size, .vcrc = 0xffff };
	struct packet whole;
	const struct bth *bth;
	struct lrh *lrh;
	uint32_t pad;
	uint16_t vcrc;

	packet_share(&whole, pkt);
	lrh = packet_lrh(&whole);
	if (!lrh)
		return 0;
	lrh->vl_lver = whole.vl << 4 | (lrh->vl_lver & 0xf);
	pad = packet_set_lengths(&whole);
	bth = packet_bth(&whole);
	if (bth)
		img.icrc = icrc_headers(&whole, bth);
	image_put(&img, whole.data, whole.len);
	for (unsigned int i = 0; i < whole.nr_frags; i++)
		image_put_payload(&img, whole.frags[i].base, whole.frags[i].len);
	image_put_payload(&img, zeros, pad);
	if (bth) {
		uint32_t icrc = htole32(pkt->bad_crc ? ~img.icrc : img.icrc);

		image_put(&img, &icrc, sizeof(icrc));
	}
	vcrc = htole16(pkt->bad_crc ? img.vcrc : ~img.vcrc);
	image_put(&img, &vcrc, sizeof(vcrc));
	return img.len;
}
