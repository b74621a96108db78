/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MADs to QP1: counters with their select bits, widths and sums, samples, the
 * congestion control agent and its key, the vendor class, and what a node
 * does with a bad P_Key, Q_Key or class.
 */
#include "chain.h"
#include "fabric/link.h"

#define PMA_DATA	64
#define ATTR_CPI	0x01
#define ATTR_CONTROL	0x10
#define ATTR_RESULT	0x11
#define ATTR_COUNTERS	0x12
#define ATTR_EXT	0x1d
#define ATTR_RESULT_EXT	0x1e

static uint8_t *answer = (uint8_t *)&t.got[0];

struct gmp {
	uint8_t mgmt_class, class_version, method;
	uint16_t attr, dlid, pkey;
	uint32_t mod, qkey;
	uint64_t key;
	const uint8_t *data;	/* 192 bytes, or NULL */
	bool grh;
};

static struct mad_hdr *gmp_fill(struct packet *pkt, const struct gmp *gmp)
{
	struct mad_hdr *hdr = packet_put(pkt, MAD_SIZE);
	struct deth *deth = packet_push(pkt, sizeof(*deth));
	struct bth *bth = packet_push(pkt, sizeof(*bth));

	memset(hdr, 0, MAD_SIZE);
	*deth = (struct deth){ htobe32(gmp->qkey ? gmp->qkey : QP1_QKEY), htobe32(1) };
	*bth = (struct bth){ .opcode = BTH_OPCODE_UD_SEND_ONLY, .dqpn = htobe32(1),
			     .pkey = htobe16(gmp->pkey ? gmp->pkey : PKEY_DEFAULT) };
	hdr->base_version = 1;
	hdr->mgmt_class = gmp->mgmt_class ? gmp->mgmt_class : MAD_CLASS_PERF;
	hdr->class_version = gmp->class_version ? gmp->class_version : 1;
	hdr->method = gmp->method ? gmp->method : UMAD_METHOD_GET;
	hdr->tid = htobe64(7);
	hdr->attr_id = htobe16(gmp->attr);
	hdr->attr_mod = htobe32(gmp->mod);
	return hdr;
}

/* Sends it from a by LID; how many answers came. */
static unsigned int send_gmp(const struct gmp *gmp)
{
	struct packet pkt;
	uint8_t *mad;
	struct grh *grh;
	struct lrh *lrh;
	__be64 key = htobe64(gmp->key);

	packet_init(&pkt);
	mad = (uint8_t *)gmp_fill(&pkt, gmp);
	if (gmp->mgmt_class == MAD_CLASS_CC)
		memcpy(mad + 24, &key, sizeof(key));
	if (gmp->data)
		memcpy(mad + PMA_DATA, gmp->data, MAD_SIZE - PMA_DATA);
	if (gmp->grh) {
		grh = packet_push(&pkt, sizeof(*grh));
		memset(grh, 0, sizeof(*grh));
		grh->nxthdr = 0x1b;
		memset(grh->sgid, 0xaa, sizeof(grh->sgid));
		memset(grh->dgid, 0xbb, sizeof(grh->dgid));
	}
	lrh = packet_push(&pkt, sizeof(*lrh));
	*lrh = (struct lrh){ .sl_lnh = gmp->grh ? LNH_GRH : LNH_BTH, .slid = htobe16(1),
			     .dlid = htobe16(gmp->dlid ? gmp->dlid : 5) };
	t.num_got = 0;
	mad_xmit(&t.a->ports[1], &pkt);
	return t.num_got;
}

static unsigned int pma(uint8_t method, uint16_t attr, uint16_t dlid, const uint8_t *data)
{
	struct gmp gmp = { .method = method, .attr = attr, .dlid = dlid, .data = data };

	if (send_gmp(&gmp) != 1)
		return 0xffff;
	CHECK_EQ(t.got[0].method, UMAD_METHOD_GET_RESP);
	CHECK_EQ(t.got_slid[0], dlid);
	return be16toh(t.got[0].status);
}

static unsigned int pma_get(uint16_t attr, uint16_t dlid, uint8_t port)
{
	uint8_t data[MAD_SIZE - PMA_DATA] = { 0, port };

	return pma(UMAD_METHOD_GET, attr, dlid, data);
}

/* Clear by CounterSelect, and CounterSelect2 at its place in the attribute. */
static unsigned int pma_clear(uint16_t attr, uint16_t dlid, uint8_t port, uint32_t select)
{
	uint8_t data[MAD_SIZE - PMA_DATA] = { 0, port, select >> 8, select };

	if (attr == ATTR_EXT) {
		data[6] = select >> 24;
		data[7] = select >> 16;
	} else {
		data[18] = select >> 16;
	}
	return pma(UMAD_METHOD_SET, attr, dlid, data);
}

static unsigned long long field(unsigned int byte, unsigned int bytes)
{
	unsigned long long value = 0;

	for (unsigned int i = 0; i < bytes; i++)
		value = value << 8 | answer[PMA_DATA + byte + i];
	return value;
}

/* A port's counters, each with a value of its own. */
static void fill(struct port_counters *cnt, uint32_t base)
{
	*cnt = (struct port_counters){
		.symbol_errors = base, .link_recovers = base + 1, .link_downed = base + 2,
		.rcv_errors = base + 3, .rcv_rem_phys_errors = base + 4,
		.rcv_switch_relay_errors = base + 5, .xmit_discards = base + 6,
		.xmit_constraint_errors = base + 7, .rcv_constraint_errors = base + 8,
		.local_link_integrity_errors = base + 9, .excess_overrun_errors = base + 10,
		.vl15_dropped = base + 11, .qp1_dropped = base + 12, .xmit_wait = base + 13,
		.xmit_data = base + 14, .rcv_data = base + 15, .xmit_pkts = base + 16,
		.rcv_pkts = base + 17, .unicast_xmit_pkts = base + 18,
		.unicast_rcv_pkts = base + 19, .multicast_xmit_pkts = base + 20,
		.multicast_rcv_pkts = base + 21,
	};
}

static const struct {
	uint8_t byte, bytes;
	uint8_t value;		/* of fill(), base 1 */
	uint8_t select;
} counters[] = {
	{ 4, 2, 1, 0 }, { 6, 1, 2, 1 }, { 7, 1, 3, 2 }, { 8, 2, 4, 3 }, { 10, 2, 5, 4 },
	{ 12, 2, 6, 5 }, { 14, 2, 7, 6 }, { 16, 1, 8, 7 }, { 17, 1, 9, 8 }, { 20, 2, 13, 17 },
	{ 22, 2, 12, 11 }, { 40, 4, 14, 16 },
};

static void test_counters(void)
{
	struct port_counters *cnt = &t.s[0]->ports[3].cnt;	/* nothing is plugged in there */

	for (unsigned int i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		fill(cnt, 1);
		CHECK_EQ(pma_get(ATTR_COUNTERS, 2, 3), MAD_OK);
		CHECK_EQ(field(counters[i].byte, counters[i].bytes), counters[i].value);
		CHECK_EQ(field(19, 1), 10 << 4 | 11);
		/* Clearing one leaves the others, and the answer shows that. */
		CHECK_EQ(pma_clear(ATTR_COUNTERS, 2, 3, 1U << counters[i].select), MAD_OK);
		for (unsigned int j = 0; j < sizeof(counters) / sizeof(counters[0]); j++)
			CHECK_EQ(field(counters[j].byte, counters[j].bytes),
				 i == j ? 0 : counters[j].value);
	}
	fill(cnt, 1);
	CHECK_EQ(field(24, 4), 15);
	CHECK_EQ(pma_clear(ATTR_COUNTERS, 2, 3, 0xf200), MAD_OK);
	CHECK_EQ(field(24, 4) | field(28, 4) | field(32, 4) | field(36, 4), 0);
	CHECK_EQ(field(19, 1), 11);
	CHECK_EQ(cnt->xmit_data, 0);
	CHECK_EQ(cnt->unicast_xmit_pkts, 19);
}

/* Each sticks at its field's largest value. */
static void test_saturation(void)
{
	struct port_counters *cnt = &t.s[0]->ports[3].cnt;

	fill(cnt, 0xfffffff0);
	cnt->xmit_data = cnt->rcv_data = cnt->xmit_pkts = cnt->rcv_pkts = 1ULL << 40;
	cnt->xmit_wait = UINT64_MAX;
	CHECK_EQ(pma_get(ATTR_COUNTERS, 2, 3), MAD_OK);
	for (unsigned int byte = 4; byte < 44; byte++)
		if (byte != 18)
			CHECK_EQ(field(byte, 1), 0xff);
	fill(cnt, 14);
	cnt->xmit_constraint_errors = 255;
	CHECK_EQ(pma_get(ATTR_COUNTERS, 2, 3), MAD_OK);
	CHECK_EQ(field(16, 1), 255);
	CHECK_EQ(field(19, 1), 0xff);		/* 23 and 24 in four bits */
	CHECK_EQ(field(4, 2), 14);
}

static void test_extended(void)
{
	struct port_counters *cnt = &t.s[0]->ports[3].cnt;

	fill(cnt, 1);
	cnt->xmit_data = 0x123456789abcdefULL;
	CHECK_EQ(pma_get(ATTR_EXT, 2, 3), MAD_OK);
	CHECK_EQ(field(8, 8), 0x123456789abcdefULL);
	CHECK_EQ(field(64, 8), 22);
	CHECK_EQ(field(72, 8), 1);
	CHECK_EQ(field(168, 8), 14);
	CHECK_EQ(field(176, 8), 13);
	CHECK_EQ(pma_clear(ATTR_EXT, 2, 3, 0x81), MAD_OK);
	CHECK_EQ(field(8, 8), 0);
	CHECK_EQ(field(16, 8), 16);
	CHECK_EQ(field(64, 8), 0);
	CHECK_EQ(pma_clear(ATTR_EXT, 2, 3, 0x30010000), MAD_OK);
	CHECK_EQ(field(72, 8) | field(168, 8) | field(176, 8), 0);
	CHECK_EQ(field(80, 8), 2);
}

static void test_all_ports(void)
{
	for (int i = 0; i <= 4; i++)
		fill(&t.s[0]->ports[i].cnt, 100);
	t.s[0]->ports[3].cnt.symbol_errors = 0xffffffff;
	CHECK_EQ(pma_get(ATTR_COUNTERS, 2, 255), MAD_OK);
	CHECK_EQ(field(4, 2), 0xffff);
	CHECK_EQ(field(8, 2), 5 * 103);
	CHECK_EQ(field(7, 1), 255);
	CHECK_EQ(pma_get(ATTR_EXT, 2, 255), MAD_OK);
	CHECK_EQ(field(72, 8), 0xffffffff);
	CHECK_EQ(pma_clear(ATTR_COUNTERS, 2, 255, 0x000f), MAD_OK);
	for (int i = 0; i <= 4; i++) {
		CHECK_EQ(t.s[0]->ports[i].cnt.symbol_errors, 0);
		CHECK_EQ(t.s[0]->ports[i].cnt.rcv_errors, 0);
		CHECK_EQ(t.s[0]->ports[i].cnt.rcv_rem_phys_errors, 104);
	}
}

static void test_pma_dispatch(void)
{
	static const uint8_t wrong[] = { 0x13, 0x14, 0x1f, 0x30, 0x36, 0xff };
	struct gmp gmp = { .attr = ATTR_COUNTERS, .class_version = 2 };

	CHECK_EQ(pma_get(ATTR_CPI, 5, 1), MAD_OK);
	CHECK_EQ(field(0, 4), 0x01019300);
	CHECK_EQ(pma(UMAD_METHOD_SET, ATTR_CPI, 5, NULL), MAD_BAD_ATTR);
	for (unsigned int i = 0; i < sizeof(wrong); i++)
		CHECK_EQ(pma_get(wrong[i], 5, 1), MAD_BAD_ATTR);
	CHECK_EQ(pma(0x12, ATTR_COUNTERS, 5, NULL), MAD_BAD_METHOD);
	CHECK_EQ(pma_get(ATTR_COUNTERS, 5, 0), MAD_BAD_VALUE);	/* a CA has no port 0 */
	CHECK_EQ(pma_get(ATTR_COUNTERS, 5, 2), MAD_BAD_VALUE);
	CHECK_EQ(pma_get(ATTR_COUNTERS, 2, 0), MAD_OK);
	CHECK_EQ(pma_get(ATTR_COUNTERS, 2, 5), MAD_BAD_VALUE);
	CHECK_EQ(pma_clear(ATTR_EXT, 2, 5, 0xffff), MAD_BAD_VALUE);
	CHECK_EQ(send_gmp(&gmp), 1);
	CHECK_EQ(be16toh(t.got[0].status), MAD_BAD_VERSION);
}

/* Packets that are lost for one reason and another, and told apart. */
static void test_details(void)
{
	struct gmp astray = { .attr = ATTR_CPI, .dlid = 60 };
	struct gmp loop = { .attr = ATTR_CPI, .dlid = 61 };

	CHECK_EQ(pma_get(0x15, 2, 1), MAD_OK);
	CHECK_EQ(field(4, 4) | field(8, 4) | field(12, 4), 0);
	CHECK_EQ(send_gmp(&astray), 0);
	CHECK_EQ(send_gmp(&astray), 0);
	switch_set_lft(t.s[0], 61, 1);
	CHECK_EQ(send_gmp(&loop), 0);
	t.s[0]->ports[1].phy_errors = 0;
	port_overrun(&t.s[0]->ports[1]);
	CHECK_EQ(pma_get(0x15, 2, 1), MAD_OK);
	CHECK_EQ(field(4, 2), 0);
	CHECK_EQ(field(8, 2), 1);		/* PortBufferOverrunErrors */
	CHECK_EQ(field(10, 2), 2);		/* PortDLIDMappingErrors */
	CHECK_EQ(field(12, 2), 0);
	CHECK_EQ(field(14, 2), 1);		/* PortLoopingErrors */
	CHECK_EQ(t.s[0]->ports[1].cnt.rcv_switch_relay_errors, 3);
	CHECK_EQ(pma_clear(0x15, 2, 1, 0x28), MAD_OK);
	CHECK_EQ(field(8, 2), 1);
	CHECK_EQ(field(10, 2) | field(14, 2), 0);
	/* A LID that nobody has reaches b and is not taken. */
	for (int i = 0; i < 3; i++)
		switch_set_lft(t.s[i], 62, 2);
	astray.dlid = 62;
	CHECK_EQ(send_gmp(&astray), 0);
	CHECK_EQ(pma_get(0x15, 5, 1), MAD_OK);
	CHECK_EQ(field(6, 2), 1);		/* PortMalformedPktErrors */
	CHECK_EQ(t.b->ports[1].cnt.rcv_errors, 1);
	/* Into a link that is down. */
	switch_set_lft(t.s[0], 63, 3);
	astray.dlid = 63;
	CHECK_EQ(send_gmp(&astray), 0);
	CHECK_EQ(pma_get(0x16, 2, 3), MAD_OK);
	CHECK_EQ(field(4, 4), 0x10000);		/* PortInactiveDiscards */
	CHECK_EQ(pma_get(0x16, 2, 255), MAD_OK);
	CHECK_EQ(field(4, 4), 0x10000);
	CHECK_EQ(pma_clear(0x16, 2, 255, 0xffff), MAD_OK);
	CHECK_EQ(field(4, 8), 0);
}

/* Two bits a VL, and what a topology file has put there. */
static void test_vl_errors(void)
{
	struct port_details *details = port_details(&t.s[0]->ports[3]);

	for (int vl = 0; vl < 16; vl++) {
		details->vl_update_errors[vl] = vl;
		details->vl_wait[vl] = 70000 + vl;
	}
	CHECK_EQ(pma_get(0x1b, 2, 3), MAD_OK);
	CHECK_EQ(field(4, 4), 0x1bffffff);	/* 0 1 2 3, and 3 is the most */
	CHECK_EQ(pma_clear(0x1b, 2, 3, 0x0a), MAD_OK);
	CHECK_EQ(field(4, 4), 0x08ffffff);
	CHECK_EQ(pma_get(0x1c, 2, 3), MAD_OK);
	CHECK_EQ(field(4, 8), UINT64_MAX);
	CHECK_EQ(pma_get(0x18, 2, 3), MAD_OK);
	CHECK_EQ(field(4, 8), 0);
}

static void test_opcodes(void)
{
	static const uint16_t attrs[] = { 0x17, 0x19, 0x1a };
	uint8_t data[MAD_SIZE - PMA_DATA] = { BTH_OPCODE_UD_SEND_ONLY, 1 };

	for (unsigned int i = 0; i < 3; i++) {
		CHECK_EQ(pma(UMAD_METHOD_SET, attrs[i], 2, data), MAD_OK);
		CHECK_EQ(field(0, 1), BTH_OPCODE_UD_SEND_ONLY);
		CHECK_EQ(field(4, 4), 0);
	}
	/* Since then: two requests of this loop, and each asking that follows, on VL 0. */
	CHECK_EQ(pma_get(0x17, 2, 1), MAD_OK);
	CHECK_EQ(field(4, 4), 3);
	CHECK_EQ(field(8, 4), 3 * 72);
	CHECK_EQ(pma_get(0x19, 2, 1), MAD_OK);
	CHECK_EQ(field(4, 4), 3 << 16);
	CHECK_EQ(pma_get(0x1a, 2, 1), MAD_OK);
	CHECK_EQ(field(4, 8), 3ULL * 72 << 32);
	/* Another opcode: from zero, and nothing of it comes. */
	data[0] = 4;
	CHECK_EQ(pma(UMAD_METHOD_SET, 0x17, 2, data), MAD_OK);
	CHECK_EQ(pma_get(0x17, 2, 1), MAD_OK);
	CHECK_EQ(field(0, 1), 4);
	CHECK_EQ(field(4, 8), 0);
}

/* Count what goes by s1's port 2 between two moments that the loop's clock sets. */
static void test_samples(void)
{
	uint8_t data[MAD_SIZE - PMA_DATA] = { 0, 2 };
	struct port_counters *cnt = &t.s[0]->ports[3].cnt;

	data[1] = 3;
	data[33] = 1;			/* SampleInterval 65536 ticks, 67 ms */
	data[37] = 0x55;		/* Tag */
	data[39] = 3;			/* CounterSelect0: PortXmitPkts */
	data[67] = 1;			/* CounterSelect14: PortXmitData */
	cnt->xmit_pkts = 1000;
	cnt->xmit_data = 0xfffffffff0ULL;
	CHECK_EQ(pma(UMAD_METHOD_SET, ATTR_CONTROL, 2, data), MAD_OK);
	CHECK_EQ(field(11, 1), 2);	/* running */
	CHECK_EQ(field(3, 1), 4);
	cnt->xmit_pkts += 7;
	cnt->xmit_data += 0x200000000ULL;
	/* Another Set while it runs changes nothing. */
	data[37] = 0x66;
	CHECK_EQ(pma(UMAD_METHOD_SET, ATTR_CONTROL, 2, data), MAD_OK);
	CHECK_EQ(field(36, 2), 0x55);
	ev_run(t.ibfs.loop, 0);		/* until the timer is done */
	cnt->xmit_pkts += 100;
	CHECK_EQ(pma_get(ATTR_RESULT, 2, 3), MAD_OK);
	CHECK_EQ(field(0, 4), 0x550000);
	CHECK_EQ(field(4, 4), 7);
	CHECK_EQ(field(60, 4), 0xffffffff);
	CHECK_EQ(pma_get(ATTR_RESULT_EXT, 2, 3), MAD_OK);
	CHECK_EQ(field(4, 4), 0x80000000);
	CHECK_EQ(field(8, 8), 7);
	CHECK_EQ(field(120, 8), 0x200000000ULL);
	/* With a SampleStart it waits first. */
	data[30] = 1;
	CHECK_EQ(pma(UMAD_METHOD_SET, ATTR_CONTROL, 2, data), MAD_OK);
	CHECK_EQ(field(11, 1), 1);
	cnt->xmit_pkts += 50;
	ev_run(t.ibfs.loop, EVRUN_ONCE);
	CHECK_EQ(pma_get(ATTR_CONTROL, 2, 3), MAD_OK);
	CHECK_EQ(field(11, 1), 2);
	cnt->xmit_pkts += 3;
	ev_run(t.ibfs.loop, 0);
	CHECK_EQ(pma_get(ATTR_RESULT, 2, 3), MAD_OK);
	CHECK_EQ(field(0, 4), 0x660000);
	CHECK_EQ(field(4, 4), 3);
}

static unsigned int cc(uint8_t method, uint16_t attr, uint32_t mod, uint16_t dlid,
		       const uint8_t *data, uint64_t key)
{
	struct gmp gmp = { .mgmt_class = MAD_CLASS_CC, .class_version = 2, .method = method,
			   .attr = attr, .mod = mod, .dlid = dlid, .data = data, .key = key };

	return send_gmp(&gmp) == 1 ? be16toh(t.got[0].status) : 0xffff;
}

static void test_congestion(void)
{
	uint8_t data[MAD_SIZE - PMA_DATA];
	const uint8_t get = UMAD_METHOD_GET, set = UMAD_METHOD_SET;

	memset(data, 0x21, sizeof(data));
	CHECK_EQ(cc(get, 0x01, 0, 5, NULL, 0), MAD_OK);
	CHECK_EQ(field(0, 2), 0x0102);
	CHECK_EQ(cc(get, 0x11, 0, 5, NULL, 0), MAD_OK);
	CHECK_EQ(field(2, 1), 2);
	CHECK_EQ(cc(get, 0x13, 0, 5, NULL, 0), MAD_OK);
	CHECK_EQ(answer[32], 2);
	CHECK_EQ(cc(get, 0x13, 0, 2, NULL, 0), MAD_OK);
	CHECK_EQ(answer[32], 1);
	CHECK_EQ(cc(get, 0x18, 0, 2, NULL, 0), MAD_OK);
	CHECK(field(0, 4));

	/* A switch's settings, a CA's, and not the other way round. */
	CHECK_EQ(cc(set, 0x14, 0, 2, data, 0), MAD_OK);
	CHECK_EQ(cc(set, 0x15, 0, 2, data, 0), MAD_OK);
	CHECK_EQ(cc(get, 0x14, 0, 2, NULL, 0), MAD_OK);
	CHECK_EQ(field(72, 4), 0x21212121);
	CHECK_EQ(field(76, 4), 0);
	CHECK_EQ(cc(get, 0x15, 0, 2, NULL, 0), MAD_OK);
	CHECK_EQ(field(188, 4), 0x21212121);
	CHECK_EQ(cc(get, 0x15, 1, 2, NULL, 0), MAD_BAD_VALUE);
	CHECK_EQ(cc(get, 0x16, 0, 2, NULL, 0), MAD_BAD_ATTR);
	CHECK_EQ(cc(get, 0x14, 0, 5, NULL, 0), MAD_BAD_ATTR);
	CHECK_EQ(cc(set, 0x16, 0, 5, data, 0), MAD_OK);
	CHECK_EQ(field(128, 4), 0x21212121);
	CHECK_EQ(cc(set, 0x17, 1, 5, data, 0), MAD_BAD_VALUE);	/* CCTI_Limit 0x2121 */
	data[0] = 0;
	data[1] = 127;
	CHECK_EQ(cc(set, 0x17, 1, 5, data, 0), MAD_OK);
	CHECK_EQ(cc(get, 0x17, 0, 5, NULL, 0), MAD_OK);
	CHECK_EQ(field(0, 2), 127);
	CHECK_EQ(field(4, 2), 0);
	CHECK_EQ(cc(get, 0x17, 2, 5, NULL, 0), MAD_BAD_VALUE);
	CHECK_EQ(cc(get, 0x99, 0, 5, NULL, 0), MAD_BAD_ATTR);
	CHECK_EQ(cc(set, 0x11, 0, 5, NULL, 0), MAD_BAD_ATTR);

	/* The key: first unprotected, then protected. */
	memset(data, 0, sizeof(data));
	data[7] = 9;
	CHECK_EQ(cc(set, 0x12, 0, 5, data, 0), MAD_OK);
	CHECK_EQ(cc(get, 0x12, 0, 5, NULL, 0), MAD_OK);
	CHECK_EQ(field(0, 8), 9);
	CHECK_EQ(cc(set, 0x16, 0, 5, data, 0), 0xffff);
	CHECK_EQ(cc(set, 0x16, 0, 5, data, 9), MAD_OK);
	data[8] = 0x80;
	data[13] = 1;			/* leaves the violations */
	CHECK_EQ(cc(set, 0x12, 0, 5, data, 9), MAD_OK);
	CHECK_EQ(cc(get, 0x12, 0, 5, NULL, 0), 0xffff);
	CHECK_EQ(cc(get, 0x12, 0, 5, NULL, 9), MAD_OK);
	CHECK_EQ(field(12, 2), 2);
}

static void test_vendor(void)
{
	struct gmp gmp = { .mgmt_class = MAD_CLASS_VENDOR_MLX, .attr = 0x17 };

	CHECK_EQ(send_gmp(&gmp), 0);
	t.b->vendor_id = 0x2c9;
	t.b->device_id = 0x1234;
	CHECK_EQ(send_gmp(&gmp), 1);
	CHECK_EQ(be16toh(t.got[0].status), MAD_OK);
	CHECK_EQ(answer[24 + 10] << 8 | answer[24 + 11], 0x1234);
	gmp.attr = 0x50;
	CHECK_EQ(send_gmp(&gmp), 1);
	CHECK_EQ(be16toh(t.got[0].status), MAD_BAD_ATTR);
}

static void test_keys(void)
{
	struct port *port = &t.b->ports[1];
	struct gmp gmp = { .attr = ATTR_CPI };
	const struct smp_notice *notice = (const struct smp_notice *)t.got[0].data;

	gmp.pkey = 0x7fff;		/* a limited member to a full one */
	CHECK_EQ(send_gmp(&gmp), 1);
	port_set_pkey(port, 0, 0x7fff);
	CHECK_EQ(send_gmp(&gmp), 0);	/* two limited members */
	CHECK_EQ(port->pkey_violations, 1);
	run_until(1);
	CHECK_EQ(be16toh(notice->trap), 257);
	CHECK_EQ(be32toh(notice->key.key), 0x7fff);
	CHECK_EQ(be16toh(notice->key.lid1), 1);
	CHECK_EQ(be16toh(notice->key.lid2), 5);
	gmp.pkey = 0xffff;
	gmp.qkey = 0x1234;
	CHECK_EQ(send_gmp(&gmp), 0);
	CHECK_EQ(port->qkey_violations, 1);
	run_until(1);
	CHECK_EQ(be16toh(notice->trap), 258);
	CHECK_EQ(be32toh(notice->key.key), 0x1234);
	gmp.qkey = 0;
	gmp.grh = true;
	CHECK_EQ(send_gmp(&gmp), 1);
	/* No agent of the class: no answer. A response: none either. */
	gmp.mgmt_class = UMAD_CLASS_SUBN_ADM;
	CHECK_EQ(send_gmp(&gmp), 0);
	gmp.mgmt_class = MAD_CLASS_PERF;
	gmp.method = UMAD_METHOD_GET_RESP;
	CHECK_EQ(send_gmp(&gmp), 0);
}

/* A request to the own LID stays inside, and its answer reaches the clients. */
static void test_loopback(void)
{
	CHECK_EQ(pma_get(ATTR_COUNTERS, 1, 1), MAD_OK);
	CHECK_EQ(t.a->ports[1].cnt.unicast_xmit_pkts, t.a->ports[1].cnt.unicast_rcv_pkts);
	CHECK_EQ(field(32, 4), t.a->ports[1].cnt.xmit_pkts);
}

static const struct test tests[] = {
	{ "PortCounters", test_counters, true },
	{ "saturation", test_saturation, true },
	{ "PortCountersExtended", test_extended, true },
	{ "all ports", test_all_ports, true },
	{ "error and discard details", test_details, true },
	{ "counters by VL", test_vl_errors, true },
	{ "opcodes", test_opcodes, true },
	{ "PMA dispatch", test_pma_dispatch, true },
	{ "samples", test_samples, true },
	{ "congestion control", test_congestion, true },
	{ "vendor class", test_vendor, true },
	{ "P_Key and Q_Key", test_keys, true },
	{ "own LID", test_loopback, true },
};

int main(void)
{
	return run_tests("pma.c", tests, sizeof(tests) / sizeof(tests[0]));
}
