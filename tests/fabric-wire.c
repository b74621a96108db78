/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes as on the wire: both checksums against known packets, the lengths and
 * pads that only the wire has, and taps. `fabric-wire pcap` writes a capture of
 * all kinds of packets, spoilt ones not among them, for tshark to judge.
 */
#include <libdeflate.h>

#include "fabric-test.h"

static size_t unhex(const char *hex, uint8_t *buf)
{
	size_t len = strlen(hex) / 2;

	for (size_t i = 0; i < len; i++) {
		unsigned int byte;

		CHECK_EQ(sscanf(hex + 2 * i, "%2x", &byte), 1);
		buf[i] = byte;
	}
	return len;
}

/* A packet whose linear headers end after head_len bytes, from its bytes without ICRC. */
static void packet_of(struct packet *pkt, uint8_t *bytes, size_t len, size_t head_len)
{
	packet_init(pkt);
	memcpy(packet_push(pkt, head_len), bytes, head_len);
	pkt->vl = bytes[0] >> 4;
	pkt->frags[0] = (struct packet_frag){ .base = bytes + head_len, .len = len - head_len };
	pkt->nr_frags = 1;
	pkt->data_len = len - head_len;
}

/* 7.8.2 to the letter, bit by bit: shift register of 16, seed and complement of ones. */
static uint16_t vcrc_by_bits(const uint8_t *data, size_t len)
{
	uint16_t crc = 0xffff;

	for (size_t i = 0; i < len; i++)
		for (unsigned int bit = 0; bit < 8; bit++) {
			bool carry = (crc ^ data[i] >> bit) & 1;

			crc = crc >> 1 ^ (carry ? 0xd008 : 0);
		}
	return ~crc;
}

static void check_vcrc(const uint8_t *image, size_t len)
{
	CHECK_EQ(image[len - 2] | image[len - 1] << 8, vcrc_by_bits(image, len - VCRC_SIZE));
}

/* The local packet of 7.8's example, an RDMA WRITE of 14 bytes. */
static const char example[] =
	"7012375c000e17d20a2024870087b1b3000dec2a01710a1c015d400238f27a050000000e"
	"bb884d85fd5cfba4728bc0690ed40000";

static void test_example(void)
{
	uint8_t bytes[128], image[256], small[32];
	size_t len = unhex(example, bytes);
	struct packet pkt;

	packet_of(&pkt, bytes, len - 2, 36);
	CHECK_EQ(packet_wire_image(&pkt, image, sizeof(image)), len + ICRC_SIZE + VCRC_SIZE);
	CHECK(!memcmp(image, bytes, len));
	CHECK(!memcmp(image + len, "\x96\x25\xb7\x5a", ICRC_SIZE));
	check_vcrc(image, len + ICRC_SIZE + VCRC_SIZE);

	/* What only the wire has is filled in; the packet stays as it is. */
	packet_lrh(&pkt)->len = 0;
	packet_bth(&pkt)->flags = 0;
	pkt.vl = 9;
	CHECK_EQ(packet_wire_image(&pkt, image, sizeof(image)), len + ICRC_SIZE + VCRC_SIZE);
	CHECK_EQ(image[0], 0x90);
	CHECK(!memcmp(image + 1, bytes + 1, len - 1));
	/* The VL changes on the way: it isn't in the invariant sum. */
	CHECK(!memcmp(image + len, "\x96\x25\xb7\x5a", ICRC_SIZE));
	CHECK_EQ(packet_lrh(&pkt)->len, 0);

	/* Cut to what there is room for, the whole length told. */
	memset(small, 0xee, sizeof(small));
	CHECK_EQ(packet_wire_image(&pkt, small, 10), len + ICRC_SIZE + VCRC_SIZE);
	CHECK(!memcmp(small, image, 10));
	CHECK_EQ(small[10], 0xee);

	/* A packet that a cable spoilt has neither sum right. */
	pkt.bad_crc = true;
	packet_wire_image(&pkt, image, sizeof(image));
	CHECK(memcmp(image + len, "\x96\x25\xb7\x5a", ICRC_SIZE));
	CHECK(image[len + 4] != (vcrc_by_bits(image, len + 4) & 0xff));
}

static void push_grh(struct packet *pkt)
{
	struct lrh lrh = *packet_lrh(pkt);
	struct grh *grh;

	packet_pull(pkt, sizeof(lrh));
	grh = packet_push(pkt, sizeof(*grh));
	*grh = (struct grh){
		.ver_tclass_flow = htobe32(6U << 28), .nxthdr = 0x1b, .hoplmt = 64,
		.sgid = { 0xfe, 0x80, [15] = 1 }, .dgid = { 0xfe, 0x80, [15] = 2 },
	};
	lrh.sl_lnh |= LNH_GRH;
	memcpy(packet_push(pkt, sizeof(lrh)), &lrh, sizeof(lrh));
}

static uint32_t icrc_of(const struct packet *pkt)
{
	uint8_t image[512];
	size_t len = packet_wire_image(pkt, image, sizeof(image));

	CHECK(len <= sizeof(image));
	check_vcrc(image, len);
	return image[len - 6] | image[len - 5] << 8 | image[len - 4] << 16 |
	       (uint32_t)image[len - 3] << 24;
}

/* What routers and switches may change leaves a global packet's ICRC alone; nothing else does. */
static void test_global(void)
{
	struct packet pkt;
	struct grh *grh;
	uint8_t masked[256], image[256];
	uint32_t icrc;
	size_t len;

	make_datagram(&pkt, 1, 2);
	push_grh(&pkt);
	grh = (struct grh *)(packet_lrh(&pkt) + 1);
	icrc = icrc_of(&pkt);

	/* By hand: ones over LRH, class, flow label, hop limit and BTH's reserved byte. */
	len = packet_wire_image(&pkt, image, sizeof(image));
	memcpy(masked, image, len);
	memset(masked, 0xff, 8);
	masked[8] |= 0x0f;
	memset(masked + 9, 0xff, 3);
	masked[15] = 0xff;
	masked[52] = 0xff;
	CHECK_EQ(icrc, libdeflate_crc32(0, masked, len - ICRC_SIZE - VCRC_SIZE));
	CHECK_EQ(image[12] << 8 | image[13], len - 48 - VCRC_SIZE);

	pkt.vl = 3;
	packet_lrh(&pkt)->dlid = htobe16(77);
	packet_lrh(&pkt)->slid = htobe16(78);
	packet_lrh(&pkt)->sl_lnh |= 0xa0;
	grh->hoplmt = 3;
	grh->ver_tclass_flow = htobe32(0x6abcdef1);
	packet_bth(&pkt)->dqpn |= htobe32(0xc0000000);
	CHECK_EQ(icrc_of(&pkt), icrc);
	grh->dgid[15] = 9;
	CHECK(icrc_of(&pkt) != icrc);
	grh->dgid[15] = 2;
	packet_bth(&pkt)->dqpn |= htobe32(1);
	CHECK(icrc_of(&pkt) != icrc);
	/* Within a subnet the LIDs belong to it. */
	make_datagram(&pkt, 1, 2);
	icrc = icrc_of(&pkt);
	packet_lrh(&pkt)->dlid = htobe16(77);
	CHECK(icrc_of(&pkt) != icrc);
}

/* A raw packet has no BTH and no ICRC. */
static void test_raw(void)
{
	static uint8_t payload[] = "raw payload";
	struct packet pkt;
	uint8_t image[64];

	make_packet(&pkt, 1, 2, 0, 0, payload, 12);
	packet_lrh(&pkt)->sl_lnh = LNH_RAW;
	CHECK(!packet_bth(&pkt));
	CHECK_EQ(packet_words(&pkt), 8);
	CHECK_EQ(packet_wire_image(&pkt, image, sizeof(image)), 32 + VCRC_SIZE);
	CHECK_EQ(image[5], 8);
	check_vcrc(image, 32 + VCRC_SIZE);
}

/* Taps */

struct counter {
	struct tap tap;
	unsigned int in, out, bytes, bad;
};

static void count(struct tap *tap, const struct packet *pkt, bool out)
{
	struct counter *counter = (struct counter *)tap;

	counter->in += !out;
	counter->out += out;
	counter->bytes += packet_wire_image(pkt, NULL, 0);
	counter->bad += pkt->bad_crc;
}

static void test_taps(void)
{
	static uint8_t payload[1024];
	struct fabric *fabric = test_fabric();
	struct node *a = test_node(fabric, NODE_CA, "A", 1), *b = test_node(fabric, NODE_CA, "B", 1);
	struct counter at_a = { .tap.fn = count }, at_b = at_a, second = at_a;
	struct packet pkt;

	a->ports[1].lid = 1;
	b->ports[1].lid = 2;
	test_link(a, 1, b, 1);
	test_activate(fabric);
	tap_attach(&a->ports[1], &at_a.tap);
	tap_attach(&b->ports[1], &at_b.tap);
	tap_attach(&b->ports[1], &second.tap);
	make_packet(&pkt, 1, 2, 4, 0, payload, 1000);
	pkt.gso_size = 256;
	pkt.gso_segs = 4;
	CHECK_EQ(port_xmit(&a->ports[1], &pkt), 0);
	/* One whole packet for the node, four for who listens on the wire. */
	CHECK_EQ(seen_of(b)->num, 1);
	CHECK_EQ(at_a.out, 4);
	CHECK_EQ(at_a.in, 0);
	CHECK_EQ(at_b.in, 4);
	CHECK_EQ(second.in, 4);
	CHECK_EQ(at_b.bytes, 4 * (8 + 12 + 4 + 2) + 1000);
	/* A spoilt packet is seen where it arrives; a port without taps costs nothing. */
	tap_detach(&b->ports[1], &second.tap);
	CHECK_EQ(link_set_faults(a->ports[1].link, &(struct fault_conf){ .corrupt = 1 }), 0);
	make_datagram(&pkt, 1, 2);
	port_xmit(&a->ports[1], &pkt);
	CHECK_EQ(at_b.bad, 1);
	CHECK_EQ(at_a.bad, 0);
	CHECK_EQ(second.in, 4);
	tap_detach(&a->ports[1], &at_a.tap);
	tap_detach(&b->ports[1], &at_b.tap);
	CHECK(!a->ports[1].taps && !b->ports[1].taps);
	test_free(fabric);
}

/* A capture. tshark reads InfiniBand as records of Endace's (ERF type 21), from the LRH on. */

static void put32(uint32_t value)
{
	fwrite(&value, sizeof(value), 1, stdout);
}

static void put_be16(uint16_t value)
{
	value = htobe16(value);
	fwrite(&value, sizeof(value), 1, stdout);
}

static int write_record(void *priv, struct packet *pkt)
{
	uint8_t image[4096];
	size_t len = packet_wire_image(pkt, image, sizeof(image));

	(void)priv;
	put32(0);
	put32(0);
	put32(16 + len);
	put32(16 + len);
	put32(0);
	put32(0);
	put_be16(21 << 8);
	put_be16(16 + len);
	put_be16(0);
	put_be16(len);
	fwrite(image, len, 1, stdout);
	return 0;
}

/* Get(NodeInfo), LID-routed on QP 0; the same class on QP 1 with a GRH is PerfMgt's ClassPortInfo. */
static void write_mads(void)
{
	static const uint8_t smp[24] = { 1, 1, 1, 1, [15] = 7, [16] = 0, 0x11 };
	static const uint8_t perf[24] = { 1, 4, 1, 1, [15] = 8, [16] = 0, 0x01 };
	struct packet pkt;

	for (unsigned int qp = 0; qp < 2; qp++) {
		struct deth *deth;

		make_packet(&pkt, 1, 2, BTH_OPCODE_UD_SEND_ONLY, sizeof(struct deth), NULL, 0);
		deth = (struct deth *)(packet_bth(&pkt) + 1);
		deth->qkey = htobe32(qp ? QP1_QKEY : 0);
		deth->sqpn = htobe32(qp);
		packet_bth(&pkt)->dqpn = htobe32(qp);
		memset(packet_put(&pkt, 256), 0, 256);
		memcpy(pkt.data + 28, qp ? perf : smp, 24);
		pkt.vl = qp ? 0 : 15;
		if (qp)
			push_grh(&pkt);
		write_record(NULL, &pkt);
	}
}

static int write_capture(void)
{
	/* SEND ONLY with immediate, WRITE ONLY with immediate, READ RESPONSE ONLY, SEND with invalidate */
	static const struct {
		uint8_t opcode, ext;
	} messages[] = { { 0x05, 4 }, { 0x0b, 20 }, { 0x10, 4 }, { 0x17, 4 } };
	static uint8_t payload[1001];
	uint8_t bytes[128];
	struct packet pkt;

	put32(0xa1b2c3d4);
	put32(4 << 16 | 2);
	put32(0);
	put32(0);
	put32(65535);
	put32(197);
	packet_of(&pkt, bytes, unhex(example, bytes) - 2, 36);
	write_record(NULL, &pkt);
	write_mads();
	for (unsigned int i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		make_packet(&pkt, 1, 2, messages[i].opcode, messages[i].ext, payload, sizeof(payload));
		packet_bth(&pkt)->dqpn = htobe32(0x11);
		set_psn(&pkt, 0xfffffe);
		pkt.gso_size = 256;
		pkt.gso_segs = 4;
		CHECK_EQ(packet_cut(&pkt, write_record, NULL), 0);
	}
	return fflush(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "example", test_example },
		{ "global", test_global },
		{ "raw", test_raw },
		{ "taps", test_taps },
	};

	if (argc == 2 && !strcmp(argv[1], "pcap"))
		return write_capture();
	return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
