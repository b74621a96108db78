/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that stand for many: what they are cut into, header by header, is
 * what a sender that cuts by itself would have made (IBA 9.2, 9.3), and they
 * count as many words as their segments.
 */
#include "fabric-test.h"

#define MAX_SEGS 16

struct segment {
	uint8_t opcode, flags, vl;
	uint32_t psn;			/* with the acknowledge request's bit */
	uint32_t ext_len, payload_len;
	uint8_t ext[32], payload[1024];
	uint16_t lrh_len;
	uint64_t words;
};

struct cut {
	unsigned int num, stop_at;
	struct segment segs[MAX_SEGS];
};

/* Length of the headers behind the BTH, by opcode, from table 38. */
static unsigned int ext_len(uint8_t opcode)
{
	static const uint8_t len[32] = {
		[0x03] = 4, [0x05] = 4, [0x06] = 16, [0x09] = 4, [0x0a] = 16, [0x0b] = 20,
		[0x0c] = 16, [0x0d] = 4, [0x0f] = 4, [0x10] = 4, [0x16] = 4, [0x17] = 4,
	};
	bool request = (opcode & 31) < 0xd || (opcode & 31) > 0x12;

	return len[opcode & 31] + (opcode >> 5 == 5 && request ? 4 : 0);
}

static int keep(void *priv, struct packet *pkt)
{
	struct cut *cut = priv;
	struct segment *seg = &cut->segs[cut->num++];
	const struct bth *bth = packet_bth(pkt);
	size_t at = (const uint8_t *)(bth + 1) - pkt->data;

	CHECK(cut->num <= MAX_SEGS);
	seg->opcode = bth->opcode;
	seg->flags = bth->flags;
	seg->psn = be32toh(bth->psn);
	seg->vl = pkt->vl;
	seg->ext_len = ext_len(bth->opcode);
	CHECK_EQ(packet_gather(pkt, at, seg->ext, seg->ext_len), seg->ext_len);
	seg->payload_len = packet_gather(pkt, at + seg->ext_len, seg->payload, 1024);
	seg->lrh_len = be16toh(packet_lrh(pkt)->len);
	seg->words = packet_words(pkt);
	CHECK_EQ(at + seg->ext_len + seg->payload_len, packet_size(pkt));
	CHECK_EQ(pkt->gso_segs, 0);
	return cut->num == cut->stop_at ? -ECANCELED : 0;
}

static uint8_t payload[4096];

/* A message of len bytes in segments of 256, some of it linear, the rest in pieces. */
static void make_message(struct packet *pkt, uint8_t opcode, uint32_t len)
{
	const uint32_t linear = 100, piece = 300;
	uint32_t at = linear;

	for (unsigned int i = 0; i < sizeof(payload); i++)
		payload[i] = i * 7 + i / 256;
	make_packet(pkt, 1, 2, opcode, ext_len(opcode), NULL, 0);
	for (unsigned int i = 0; i < ext_len(opcode); i++)
		pkt->data[sizeof(struct lrh) + sizeof(struct bth) + i] = 0xa0 + i;
	memcpy(packet_put(pkt, linear), payload, linear);
	for (; at < len; at += piece) {
		pkt->frags[pkt->nr_frags].base = payload + at;
		pkt->frags[pkt->nr_frags].len = len - at < piece ? len - at : piece;
		pkt->data_len += pkt->frags[pkt->nr_frags++].len;
	}
	packet_bth(pkt)->flags = BTH_SOLICITED | BTH_MIGRATED;
	packet_bth(pkt)->psn = htobe32(BTH_ACKREQ | 0xfffffe);
	pkt->vl = 3;
	pkt->gso_size = 256;
	pkt->gso_segs = (len + 255) / 256;
}

static void check_payload(const struct cut *cut, uint32_t len)
{
	uint32_t at = 0;

	for (unsigned int i = 0; i < cut->num; i++) {
		CHECK(!memcmp(cut->segs[i].payload, payload + at, cut->segs[i].payload_len));
		at += cut->segs[i].payload_len;
	}
	CHECK_EQ(at, len);
}

/* All messages that can be cut: 900 bytes become 256, 256, 256 and 132. */
static void test_opcodes(void)
{
	static const struct {
		uint8_t whole, first, middle, last;
	} table[] = {
		{ 0x04, 0x00, 0x01, 0x02 }, { 0x05, 0x00, 0x01, 0x03 },	/* SEND ONLY */
		{ 0x00, 0x00, 0x01, 0x01 }, { 0x01, 0x01, 0x01, 0x01 },
		{ 0x02, 0x01, 0x01, 0x02 }, { 0x03, 0x01, 0x01, 0x03 },
		{ 0x16, 0x01, 0x01, 0x16 }, { 0x17, 0x00, 0x01, 0x16 },
		{ 0x0a, 0x06, 0x07, 0x08 }, { 0x0b, 0x06, 0x07, 0x09 },	/* WRITE ONLY */
		{ 0x06, 0x06, 0x07, 0x07 }, { 0x07, 0x07, 0x07, 0x07 },
		{ 0x08, 0x07, 0x07, 0x08 }, { 0x09, 0x07, 0x07, 0x09 },
		{ 0x10, 0x0d, 0x0e, 0x0f }, { 0x0d, 0x0d, 0x0e, 0x0e },	/* READ RESPONSE */
		{ 0x0e, 0x0e, 0x0e, 0x0e }, { 0x0f, 0x0e, 0x0e, 0x0f },
	};
	static const uint8_t classes[] = { 0x00, 0x20, 0xa0 };	/* RC, UC, XRC */

	for (unsigned int i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		for (unsigned int j = 0; j < sizeof(classes); j++) {
			static struct cut cut;
			struct packet pkt;
			uint64_t words = 0;

			cut = (struct cut){ 0 };
			make_message(&pkt, classes[j] | table[i].whole, 900);
			CHECK_EQ(packet_cut(&pkt, keep, &cut), 0);
			CHECK_EQ(cut.num, 4);
			CHECK_EQ(cut.segs[0].opcode, (classes[j] | table[i].first));
			CHECK_EQ(cut.segs[1].opcode, (classes[j] | table[i].middle));
			CHECK_EQ(cut.segs[2].opcode, (classes[j] | table[i].middle));
			CHECK_EQ(cut.segs[3].opcode, (classes[j] | table[i].last));
			check_payload(&cut, 900);
			for (unsigned int n = 0; n < 4; n++)
				words += cut.segs[n].words;
			CHECK_EQ(packet_words(&pkt), words);
		}
}

static void test_headers(void)
{
	static struct cut cut;
	struct packet pkt;

	/* WRITE with immediate: RETH goes first, ImmDt last; PSNs wrap at 24 bits. */
	cut = (struct cut){ 0 };
	make_message(&pkt, 0x0b, 901);
	CHECK_EQ(packet_cut(&pkt, keep, &cut), 0);
	CHECK_EQ(cut.segs[0].ext_len, 16);
	CHECK_EQ(cut.segs[0].ext[0], 0xa0);
	CHECK_EQ(cut.segs[0].ext[15], 0xaf);
	CHECK_EQ(cut.segs[3].ext_len, 4);
	CHECK_EQ(cut.segs[3].ext[0], 0xb0);
	CHECK_EQ(cut.segs[0].psn, 0xfffffe);
	CHECK_EQ(cut.segs[1].psn, 0xffffff);
	CHECK_EQ(cut.segs[2].psn, 0);
	CHECK_EQ(cut.segs[3].psn, BTH_ACKREQ | 1);
	/* Only the last is acknowledged and wakes; the pad of 133 bytes is 3. */
	CHECK_EQ(cut.segs[0].flags, BTH_MIGRATED);
	CHECK_EQ(cut.segs[3].flags, BTH_SOLICITED | BTH_MIGRATED | 3 << BTH_PAD_SHIFT);
	CHECK_EQ(cut.segs[3].lrh_len, (8 + 12 + 4 + 136 + 4) / 4);
	CHECK_EQ(cut.segs[3].lrh_len, cut.segs[3].words);
	CHECK_EQ(cut.segs[2].vl, 3);

	/* XRC's header is in each request, with all of the rest behind it. */
	cut = (struct cut){ 0 };
	make_message(&pkt, 0xab, 900);
	CHECK_EQ(packet_cut(&pkt, keep, &cut), 0);
	for (unsigned int i = 0; i < 4; i++)
		CHECK_EQ(cut.segs[i].ext[0], 0xa0);
	CHECK_EQ(cut.segs[0].ext[4], 0xa4);
	CHECK_EQ(cut.segs[3].ext[4], 0xb4);
	CHECK_EQ(cut.segs[1].ext_len, 4);
	/* A read's response has an AETH at both ends. */
	cut = (struct cut){ 0 };
	make_message(&pkt, 0x10, 900);
	CHECK_EQ(packet_cut(&pkt, keep, &cut), 0);
	CHECK_EQ(cut.segs[0].ext[0], 0xa0);
	CHECK_EQ(cut.segs[3].ext[0], 0xa0);
}

static void add_grh(struct packet *pkt)
{
	struct lrh lrh = *packet_lrh(pkt);
	struct grh *grh;

	packet_pull(pkt, sizeof(lrh));
	grh = packet_push(pkt, sizeof(*grh));
	memset(grh, 0, sizeof(*grh));
	lrh.sl_lnh = LNH_GRH;
	memcpy(packet_push(pkt, sizeof(lrh)), &lrh, sizeof(lrh));
}

static int check_grh(void *priv, struct packet *pkt)
{
	const struct grh *grh = (const struct grh *)(packet_lrh(pkt) + 1);
	unsigned int *num = priv;
	unsigned int pad = *num == 3 ? 3 : 0;

	CHECK_EQ(be16toh(grh->paylen), packet_size(pkt) - 48 + pad + ICRC_SIZE);
	(*num)++;
	return 0;
}

static void test_global(void)
{
	struct packet pkt;
	unsigned int num = 0;

	make_message(&pkt, 0x04, 901);
	add_grh(&pkt);
	CHECK_EQ(packet_cut(&pkt, check_grh, &num), 0);
	CHECK_EQ(num, 4);
	/* Four times LRH, GRH, BTH and ICRC */
	CHECK_EQ(packet_words(&pkt), (4 * 64 + 904) / 4);
}

static void test_refused(void)
{
	static const uint8_t opcodes[] = { 0x0c, 0x11, 0x12, 0x13, 0x14, 0x15, 0x1f, 0x64, 0x44, 0x84 };
	static struct cut cut;
	struct packet pkt;

	for (unsigned int i = 0; i < sizeof(opcodes); i++) {
		make_message(&pkt, opcodes[i], 900);
		CHECK_EQ(packet_cut(&pkt, keep, &cut), -EINVAL);
	}
	make_message(&pkt, 4, 900);
	pkt.gso_segs = 5;
	CHECK_EQ(packet_cut(&pkt, keep, &cut), -EINVAL);
	make_message(&pkt, 4, 900);
	pkt.gso_size = 0;
	CHECK_EQ(packet_cut(&pkt, keep, &cut), -EINVAL);
	/* Headers that aren't all there. */
	make_packet(&pkt, 1, 2, 0x0b, 16, payload, 512);
	pkt.gso_size = 256;
	pkt.gso_segs = 2;
	CHECK_EQ(packet_cut(&pkt, keep, &cut), -EINVAL);
	CHECK_EQ(cut.num, 0);
	/* The receiver of segments may stop it. */
	cut.stop_at = 2;
	make_message(&pkt, 4, 900);
	CHECK_EQ(packet_cut(&pkt, keep, &cut), -ECANCELED);
	CHECK_EQ(cut.num, 2);
}

static void test_single(void)
{
	static struct cut cut;
	struct packet pkt;

	cut = (struct cut){ 0 };
	make_message(&pkt, 0x04, 200);
	pkt.gso_segs = 0;
	pkt.gso_size = 0;
	CHECK_EQ(packet_cut(&pkt, keep, &cut), 0);
	CHECK_EQ(cut.num, 1);
	CHECK_EQ(cut.segs[0].opcode, 4);
	check_payload(&cut, 200);
}

/* The packet as memory. */
static void test_packet(void)
{
	struct packet pkt, *copy;
	uint8_t buf[1024];

	packet_init(&pkt);
	CHECK(!packet_push(&pkt, PACKET_HEADROOM + 1));
	CHECK(!packet_put(&pkt, PACKET_LINEAR + 1));
	CHECK(packet_push(&pkt, PACKET_HEADROOM) == pkt.head);
	CHECK(packet_put(&pkt, PACKET_LINEAR));
	CHECK(!packet_put(&pkt, 1) && !packet_push(&pkt, 1));
	CHECK(!packet_pull(&pkt, sizeof(pkt.head) + 1));
	CHECK_EQ(packet_size(&pkt), sizeof(pkt.head));

	make_message(&pkt, 0x04, 900);
	copy = packet_copy(&pkt);
	CHECK(copy && copy->nr_frags == 1);
	memset(payload, 0, sizeof(payload));
	CHECK_EQ(packet_gather(copy, 120, buf, 8), 8);
	CHECK_EQ(buf[0], (100 * 7) & 0xff);
	CHECK_EQ(packet_gather(copy, packet_size(copy) - 3, buf, 8), 3);
	CHECK_EQ(buf[2], (899 * 7 + 3) & 0xff);
	CHECK_EQ(packet_gather(copy, packet_size(copy), buf, 8), 0);
	CHECK_EQ(packet_gather(copy, 0, buf, sizeof(buf)), 920);
	packet_free(copy);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "opcodes", test_opcodes },
		{ "headers", test_headers },
		{ "global", test_global },
		{ "refused", test_refused },
		{ "single", test_single },
		{ "packet", test_packet },
	};

	return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
