/* SPDX-License-Identifier: BSD-2-Clause */
/* MAD agents: registration, matching, TIDs, timeouts, loopback. facts/umad.md's rules 2 to 8. */
#include <infiniband/umad_sm.h>

#include "mad_test.h"

#define MAD_TID	0x1234


static unsigned int xmitted;

static void count_out(struct tap *tap, const struct packet *pkt, bool out)
{
	(void)tap;
	(void)pkt;
	xmitted += out;
}

static struct tap counting_tap = { .fn = count_out };

static void answer_get(struct client *client, const struct mad_addr *addr, const void *mad,
		       size_t len)
{
	struct umad_packet answer;

	if (mad_is_response(mad) || len != MAD_SIZE)
		return;
	memcpy(&answer, mad, sizeof(answer));
	answer.mad_hdr.method = UMAD_METHOD_GET_RESP;
	client_send(client, addr, &answer, sizeof(answer), 0, 0);
}

/* A client of rxe0 that asks, and one of rxe1 that answers Get of the same class. */
static void open_pair(struct client *a, struct client *b, uint8_t class, uint8_t version)
{
	struct mad_reg reg = reg_of(1, class, version);

	CHECK(!client_open(a, "rxe0", &reg));
	reg_method(&reg, UMAD_METHOD_GET);
	CHECK(!client_open(b, "rxe1", &reg));
	b->answer = answer_get;
}

static struct umad_vendor_packet vendor_mad(uint8_t method, uint64_t tid)
{
	struct umad_vendor_packet mad = {
		.mad_hdr = hdr_of(CLASS_VENDOR, 1, method, 0x10, tid),
		.oui = { 0x00, 0x14, 0x05 },
	};

	return mad;
}

static struct umad_smp dr_smp(uint16_t attr, uint64_t tid, unsigned int hops,
			      const uint8_t *path)
{
	struct umad_smp smp = {
		.base_version = 1, .mgmt_class = MAD_CLASS_SUBN_DR, .class_version = 1,
		.method = UMAD_METHOD_GET, .tid = htobe64(tid), .attr_id = htobe16(attr),
		.hop_cnt = hops, .dr_slid = 0xffff, .dr_dlid = 0xffff,
	};
	unsigned int i;

	for (i = 0; i < hops; i++)
		smp.initial_path[i + 1] = path[i];
	return smp;
}

static int try_reg(struct client *client, struct mad_reg reg)
{
	int rc = client_open(client, "rxe0", &reg);

	if (rc)
		client->agent = NULL;
	return rc;
}

static void test_register(void)
{
	static const struct {
		uint8_t qpn, class, version, rmpp, oui;
		int rc;
	} cases[] = {
		{ 0, 0x01, 1, 0, 0, 0 },	{ 0, 0x81, 1, 0, 0, 0 },
		{ 1, 0x01, 1, 0, 0, -EINVAL },	{ 1, 0x81, 1, 0, 0, -EINVAL },
		{ 0, 0x03, 2, 0, 0, -EINVAL },	{ 1, 0x03, 2, 1, 0, 0 },
		{ 2, 0x03, 2, 1, 0, -EINVAL },	{ 1, 0x03, 2, 2, 0, -EINVAL },
		{ 1, 0x04, 1, 0, 0, 0 },	{ 1, 0x04, 1, 1, 0, -EINVAL },
		{ 1, 0x06, 1, 1, 0, 0 },	{ 1, 0x10, 1, 1, 0, 0 },
		{ 1, 0x12, 1, 1, 0, 0 },	{ 1, 0x0a, 1, 1, 0, -EINVAL },
		{ 1, 0x30, 1, 1, 1, 0 },	{ 1, 0x4f, 1, 1, 1, 0 },
		{ 1, 0x30, 1, 0, 0, -EINVAL },	{ 1, 0x50, 1, 0, 0, -EINVAL },
		{ 1, 0x82, 1, 0, 0, -EINVAL },	{ 1, 0x04, 0x83, 0, 0, -EINVAL },
		{ 0, 0x00, 0, 0, 0, 0 },	{ 1, 0x00, 0, 1, 0, 0 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct client client = { 0 };
		struct mad_reg reg = reg_of(cases[i].qpn, cases[i].class, cases[i].version);
		int rc;

		reg.rmpp_version = cases[i].rmpp;
		reg.oui[2] = cases[i].oui;
		reg.oui[1] = 0;
		reg_method(&reg, UMAD_METHOD_SET);
		rc = try_reg(&client, reg);
		if (rc != cases[i].rc)
			printf("class 0x%x on QP%u, RMPP %u: %d\n", cases[i].class, cases[i].qpn,
			       cases[i].rmpp, rc);
		CHECK(rc == cases[i].rc);
		client_close(&client);
	}
}

static void test_overlap(void)
{
	struct client a = { 0 }, b = { 0 }, c = { 0 };
	struct mad_reg reg = reg_of(1, UMAD_CLASS_SUBN_ADM, 2);

	reg_method(&reg, UMAD_METHOD_GET);
	reg_method(&reg, 0x7f);
	CHECK(!try_reg(&a, reg));
	CHECK(try_reg(&b, reg) == -EINVAL);
	reg.methods[0] = 0;
	CHECK(try_reg(&b, reg) == -EINVAL);
	/* What a refused one asked for besides is not taken. */
	reg.methods[1] = 0;
	reg_method(&reg, UMAD_METHOD_GET);
	reg_method(&reg, UMAD_METHOD_SET);
	CHECK(try_reg(&b, reg) == -EINVAL);
	reg.methods[0] = 0;
	reg_method(&reg, UMAD_METHOD_SET);
	CHECK(!try_reg(&b, reg));
	/* Another version, and no method at all, overlap with nothing. */
	reg.methods[0] = ~0ULL;
	reg.class_version = 1;
	CHECK(!try_reg(&c, reg));
	client_close(&c);
	reg.class_version = 2;
	reg.methods[0] = 0;
	CHECK(!try_reg(&c, reg));
	client_close(&c);
	client_close(&a);
	reg.methods[0] = 0;
	reg_method(&reg, UMAD_METHOD_GET);
	CHECK(!try_reg(&a, reg));
	client_close(&a);
	client_close(&b);
}

static void test_vendor_oui(void)
{
	struct client a = { 0 }, b = { 0 }, c = { 0 }, asker = { 0 };
	struct mad_reg reg = reg_of(1, CLASS_VENDOR, 1);
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, 1);
	struct mad_addr to = addr_of("rxe0", 1);

	reg_method(&reg, UMAD_METHOD_GET);
	CHECK(!try_reg(&a, reg));
	CHECK(try_reg(&b, reg) == -EINVAL);
	reg.oui[0] = 1;
	CHECK(!try_reg(&b, reg));
	reg.mgmt_class++;
	CHECK(!try_reg(&c, reg));
	reg = reg_of(1, CLASS_VENDOR, 1);
	CHECK(!client_open(&asker, "rxe1", &reg));
	CHECK(!client_send(&asker, &to, &mad, sizeof(mad), 100, 0));
	CHECK(a.received == 1 && !b.received && !c.received);
	mad.oui[0] = 1;
	mad.mad_hdr.tid = htobe64(2);
	CHECK(!client_send(&asker, &to, &mad, sizeof(mad), 100, 0));
	CHECK(a.received == 1 && b.received == 1 && !c.received);
	client_close(&a);
	client_close(&b);
	client_close(&c);
	client_close(&asker);
}

static void test_tid(void)
{
	struct client a = { 0 }, b = { 0 }, c = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, 0xaaaabbbb00000007ULL);
	struct mad_addr to = addr_of("rxe1", 1);
	struct mad_reg none = { .qpn = 1 };
	uint64_t tid;

	open_pair(&a, &b, CLASS_VENDOR, 1);
	CHECK(!client_open(&c, "rxe0", &none));
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	CHECK(a.received == 1 && b.received == 1);
	tid = be64toh(client_hdr(&b)->tid);
	CHECK((uint32_t)tid == 7 && tid >> 32 != 0xaaaabbbb && tid >> 32);
	CHECK(client_hdr(&a)->tid == htobe64(tid));
	/* A response keeps its TID, so it finds the agent whose id stands there. */
	CHECK(!client_send(&c, &to, &mad, sizeof(mad), 100, 0));
	CHECK(c.received == 1);
	CHECK(be64toh(client_hdr(&c)->tid) >> 32 != tid >> 32);
	client_close(&a);
	client_close(&b);
	client_close(&c);
}

static void test_match(void)
{
	struct client a = { 0 }, b = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, 9);
	struct mad_addr to = addr_of("rxe1", 1), back = addr_of("rxe0", 1);

	open_pair(&a, &b, CLASS_VENDOR, 1);
	b.answer = NULL;
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 1000, 0));
	CHECK(b.received == 1);
	memcpy(&mad, b.mad, sizeof(mad));
	mad.mad_hdr.method = UMAD_METHOD_GET_RESP;
	/* Another class, TID or agent: not the response. */
	mad.mad_hdr.mgmt_class++;
	CHECK(!client_send(&b, &back, &mad, sizeof(mad), 0, 0));
	mad.mad_hdr.mgmt_class--;
	mad.mad_hdr.tid ^= htobe64(1);
	CHECK(!client_send(&b, &back, &mad, sizeof(mad), 0, 0));
	mad.mad_hdr.tid ^= htobe64(1);
	mad.mad_hdr.tid ^= htobe64(1ULL << 60);
	CHECK(!client_send(&b, &back, &mad, sizeof(mad), 0, 0));
	mad.mad_hdr.tid ^= htobe64(1ULL << 60);
	back.grh = true;
	memcpy(back.gid.raw + 8, &(uint64_t){ htobe64(port_of("rxe0")->guid) }, 8);
	CHECK(!client_send(&b, &back, &mad, sizeof(mad), 0, 0));
	back.grh = false;
	CHECK(!a.received);
	CHECK(!client_send(&b, &back, &mad, sizeof(mad), 0, 0));
	CHECK(a.received == 1);
	CHECK(!client_send(&b, &back, &mad, sizeof(mad), 0, 0));
	CHECK(a.received == 1);
	pass(3);
	CHECK(!a.timeouts);
	client_close(&a);
	client_close(&b);
}

static void test_path_bits(void)
{
	struct client a = { 0 }, b = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, 9);
	struct mad_addr to = addr_of("rxe1", 1), back;
	struct node *sw = fabric_find(t.ibfs.fabric, "switch");
	struct port *port = port_of("rxe0");
	unsigned int i;

	port->lid = 64;
	port->lmc = 2;
	for (i = 0; i < 4; i++)
		CHECK(!switch_set_lft(sw, 64 + i, port->peer->num));
	sw->sw->lft_top = 67;
	open_pair(&a, &b, CLASS_VENDOR, 1);
	b.answer = NULL;
	to.path_bits = 3;
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 1000, 0));
	CHECK(b.received == 1 && b.addr.lid == 67);
	memcpy(&mad, b.mad, sizeof(mad));
	mad.mad_hdr.method = UMAD_METHOD_GET_RESP;
	back = b.addr;
	back.lid = 66;
	CHECK(!client_send(&b, &back, &mad, sizeof(mad), 0, 0));
	CHECK(!a.received);
	CHECK(!client_send(&b, &b.addr, &mad, sizeof(mad), 0, 0));
	CHECK(a.received == 1 && a.addr.path_bits == 3);
	client_close(&a);
	client_close(&b);
}

static void test_timeout(void)
{
	struct client a = { 0 }, b = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, MAD_TID);
	struct mad_addr to = addr_of("rxe1", 1);
	struct port *port = port_of("rxe0");
	double start = now();

	open_pair(&a, &b, CLASS_VENDOR, 1);
	b.answer = NULL;
	to.user[0] = 0xdead;
	to.user[2] = 0xbeef;
	xmitted = 0;
	tap_attach(port, &counting_tap);
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 200, 3));
	CHECK(wait_for(&a.timeouts, 1, 5));
 	CHECK(now() - start >= 0.8 && now() - start < 0.85);
	CHECK(xmitted == 4 && b.received == 4);
	CHECK(a.len == 24 && (uint32_t)be64toh(client_hdr(&a)->tid) == MAD_TID);
	CHECK(client_hdr(&a)->mgmt_class == CLASS_VENDOR && a.addr.lid == to.lid);
	CHECK(a.addr.user[0] == 0xdead && a.addr.user[2] == 0xbeef);
	pass(5);
	CHECK(a.timeouts == 1 && !a.received);
	tap_detach(port, &counting_tap);
	client_close(&a);
	client_close(&b);
}

/* A response to a repeated request stops the repeating. */
static void test_retry(void)
{
	struct fault_conf all = { .drop = 1 }, none = { 0 };
	struct client a = { 0 }, b = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, MAD_TID);
	struct mad_addr to = addr_of("rxe1", 1);

	open_pair(&a, &b, CLASS_VENDOR, 1);
	CHECK(!link_set_faults(link_of("rxe1"), &all));
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 5));
	pass(0.25);
	CHECK(!link_set_faults(link_of("rxe1"), &none));
	pass(2);
 	CHECK(a.received == 1 && b.received == 1 && !a.timeouts);
	client_close(&a);
	client_close(&b);
}

static void test_no_timeout(void)
{
	struct client a = { 0 }, b = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, MAD_TID);
	struct mad_addr to = addr_of("rxe1", 1);

	open_pair(&a, &b, CLASS_VENDOR, 1);
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 0, 3));
	CHECK(b.received == 1);
	pass(3);
	CHECK(!a.received && !a.timeouts && b.received == 1);
	client_close(&a);
	client_close(&b);
}

static void test_duplicate(void)
{
	struct client a = { 0 }, b = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, MAD_TID);
	struct mad_addr to = addr_of("rxe1", 1);

	open_pair(&a, &b, CLASS_VENDOR, 1);
	b.answer = NULL;
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	CHECK(client_send(&a, &to, &mad, sizeof(mad), 100, 0) == -EINVAL);
	CHECK(client_send(&a, &to, &mad, sizeof(mad), 0, 0) == -EINVAL);
	/* The high half is not the client's to tell MADs apart by. */
	mad.mad_hdr.tid |= htobe64(1ULL << 40);
	CHECK(client_send(&a, &to, &mad, sizeof(mad), 100, 0) == -EINVAL);
	/* The same TID in another class is another MAD: answered, if only with a status. */
	mad.mad_hdr.mgmt_class++;
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	CHECK(a.received == 1);
	mad.mad_hdr.mgmt_class--;
	CHECK(wait_for(&a.timeouts, 1, 1));
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	client_close(&a);
	client_close(&b);
}

static void test_lengths(void)
{
	struct client a = { 0 }, b = { 0 };
	struct mad_addr to = addr_of("rxe1", 1);
	uint8_t big[MAD_SIZE + 1] = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, MAD_TID);
	static const uint8_t zeros[MAD_SIZE];

	open_pair(&a, &b, CLASS_VENDOR, 1);
	memcpy(big, &mad, sizeof(mad));
	CHECK(client_send(&a, &to, big, sizeof(big), 100, 0) == -EINVAL);
	CHECK(client_send(&a, &to, big, 35, 100, 0) == -EINVAL);
	memset(big + 50, 0xff, 100);
	CHECK(!client_send(&a, &to, big, 50, 100, 0));
	CHECK(a.received == 1 && a.len == MAD_SIZE && !memcmp(a.mad + 50, zeros, MAD_SIZE - 50));
	to.pkey_index = 1000;
	CHECK(client_send(&a, &to, big, MAD_SIZE, 100, 0) == -EINVAL);
	to.pkey_index = 0;
	to.grh = true;
	to.gid_index = 255;
	CHECK(client_send(&a, &to, big, MAD_SIZE, 100, 0) == -EINVAL);
	client_close(&a);
	client_close(&b);
}

static void test_unclaimed(void)
{
	static const struct {
		uint8_t method;
		bool answered;
	} cases[] = {
		{ UMAD_METHOD_GET, true },	{ UMAD_METHOD_SET, true },
		{ UMAD_METHOD_SEND, false },	{ UMAD_METHOD_TRAP, false },
		{ UMAD_METHOD_REPORT, false },	{ METHOD_GET_TABLE, false },
		{ UMAD_METHOD_GET_RESP, false },
	};
	struct client a = { 0 };
	struct mad_reg reg = { .qpn = 1 };
	struct mad_addr to = addr_of("rxe1", 1);
	unsigned int i, answers = 0;

	CHECK(!client_open(&a, "rxe0", &reg));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct umad_vendor_packet mad = vendor_mad(cases[i].method, i);

		CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
		answers += cases[i].answered;
		CHECK(a.received == answers);
		if (!cases[i].answered)
			continue;
		CHECK(client_hdr(&a)->status == htobe16(0x0c));
		CHECK(client_hdr(&a)->method == UMAD_METHOD_GET_RESP);
		CHECK(a.addr.lid == to.lid && a.addr.qpn == 1);
	}
	CHECK(wait_for(&a.timeouts, 4, 1));
	client_close(&a);
}

/* 8: what doesn't fit is dropped before anyone sees it. */
static void test_invalid(void)
{
	struct client a = { 0 }, b = { 0 }, cm = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, 1);
	struct mad_addr to = addr_of("rxe1", 1);
	struct mad_reg reg = reg_of(1, UMAD_CLASS_CM, 2);

	open_pair(&a, &b, CLASS_VENDOR, 1);
	reg.methods[0] = ~0ULL;
	CHECK(!client_open(&cm, "rxe1", &reg));
	mad.mad_hdr.base_version = 2;
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	mad.mad_hdr = hdr_of(MAD_CLASS_SUBN_LID, 1, UMAD_METHOD_GET, 0x11, 2);
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	mad.mad_hdr = hdr_of(UMAD_CLASS_CM, 2, UMAD_METHOD_GET, 0x10, 3);
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	CHECK(!b.received && !cm.received && !a.received);
	mad.mad_hdr = hdr_of(UMAD_CLASS_CM, 2, UMAD_METHOD_GET, 1, 4);
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	CHECK(cm.received == 1);
	mad.mad_hdr = hdr_of(UMAD_CLASS_CM, 2, UMAD_METHOD_SEND, 0x10, 5);
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 0, 0));
	CHECK(cm.received == 2);
	client_close(&a);
	client_close(&b);
	client_close(&cm);
}

static void test_trap(void)
{
	struct client a = { 0 }, b = { 0 };
	struct mad_reg reg = reg_of(0, MAD_CLASS_SUBN_LID, 1);
	struct mad_addr to = addr_of("rxe1", 0);
	struct umad_packet mad = {
		.mad_hdr = hdr_of(MAD_CLASS_SUBN_LID, 1, UMAD_METHOD_TRAP, 2, 7),
	};

	CHECK(!client_open(&a, "rxe0", &reg));
	reg_method(&reg, UMAD_METHOD_TRAP);
	CHECK(!client_open(&b, "rxe1", &reg));
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 1000, 0));
	CHECK(b.received == 1 && client_hdr(&b)->method == UMAD_METHOD_TRAP);
	/* TrapRepress is the response that the trap waits for. */
	memcpy(&mad, b.mad, sizeof(mad));
	mad.mad_hdr.method = UMAD_METHOD_TRAP_REPRESS;
	CHECK(!client_send(&b, &b.addr, &mad, sizeof(mad), 0, 0));
	CHECK(a.received == 1 && client_hdr(&a)->method == UMAD_METHOD_TRAP_REPRESS);
	client_close(&a);
	client_close(&b);
}

static void test_directed_route(void)
{
	struct client a = { 0 };
	struct mad_reg reg = reg_of(0, MAD_CLASS_SUBN_DR, 1);
	struct mad_addr to = { .lid = LID_PERMISSIVE };
	uint8_t path[2] = { 1, port_of("rxe1")->peer->num };
	unsigned int hops;
	const char *const ids[] = { "rxe0", "switch", "rxe1" };

	CHECK(!client_open(&a, "rxe0", &reg));
	for (hops = 0; hops < 3; hops++) {
		struct umad_smp smp = dr_smp(UMAD_SM_ATTR_NODE_INFO, hops, hops, path);
		uint64_t guid;

		CHECK(!client_send(&a, &to, &smp, sizeof(smp), 100, 0));
		CHECK(a.received == hops + 1);
		if (a.received != hops + 1)
			break;
		CHECK(a.addr.lid == LID_PERMISSIVE && a.addr.qpn == 0);
		CHECK(client_hdr(&a)->status == htobe16(UMAD_SMP_DIRECTION));
		/* NodeInfo:NodeGUID, 12 bytes into the SMP's data. */
		memcpy(&guid, a.mad + 64 + 12, sizeof(guid));
		CHECK(be64toh(guid) == fabric_find(t.ibfs.fabric, ids[hops])->guid);
	}
	/* A hop pointer that can't be. */
	{
		struct umad_smp smp = dr_smp(UMAD_SM_ATTR_NODE_INFO, 99, 2, path);

		smp.hop_ptr = 7;
		CHECK(client_send(&a, &to, &smp, sizeof(smp), 100, 0) == -EINVAL);
	}
	/* A route that leads nowhere is a timeout. */
	{
		struct umad_smp smp = dr_smp(UMAD_SM_ATTR_NODE_INFO, 98, 2, (uint8_t []){ 1, 36 });

		CHECK(!client_send(&a, &to, &smp, sizeof(smp), 100, 0));
		CHECK(wait_for(&a.timeouts, 1, 1));
	}
	client_close(&a);
}

static void answer_sminfo(struct client *client, const struct mad_addr *addr, const void *mad,
			  size_t len)
{
	struct umad_smp smp;

	if (mad_is_response(mad) || len != MAD_SIZE)
		return;
	memcpy(&smp, mad, sizeof(smp));
	smp.method = UMAD_METHOD_GET_RESP;
	smp.status = smp.mgmt_class == MAD_CLASS_SUBN_DR ? htobe16(UMAD_SMP_DIRECTION) : 0;
	CHECK(!client_send(client, addr, &smp, sizeof(smp), 0, 0));
}

/* SMInfo is a client's: one's own (OpenSM asks itself), and another's. */
static void test_sminfo(void)
{
	struct client asker = { 0 }, sm = { 0 };
	struct mad_reg reg = reg_of(0, MAD_CLASS_SUBN_DR, 1);
	struct mad_addr to = { .lid = LID_PERMISSIVE };
	uint8_t path[2] = { 1, port_of("rxe1")->peer->num };
	unsigned int far;

	for (far = 0; far < 2; far++) {
		struct umad_smp smp = dr_smp(UMAD_SM_ATTR_SM_INFO, 1, far ? 2 : 0, path);

		CHECK(!client_open(&asker, "rxe0", &reg));
		CHECK(!client_send(&asker, &to, &smp, sizeof(smp), 100, 0));
		CHECK(asker.received == 1);
		CHECK(client_hdr(&asker)->status == htobe16(UMAD_SMP_DIRECTION | 0x0c));
		reg_method(&reg, UMAD_METHOD_GET);
		CHECK(!client_open(&sm, far ? "rxe1" : "rxe0", &reg));
		reg.methods[0] = 0;
		sm.answer = answer_sminfo;
		smp.tid = htobe64(2);
		CHECK(!client_send(&asker, &to, &smp, sizeof(smp), 100, 0));
		CHECK(sm.received == 1 && asker.received == 2);
		CHECK(client_hdr(&asker)->status == htobe16(UMAD_SMP_DIRECTION));
		client_close(&asker);
		client_close(&sm);
	}
}

/* By LID: the own port's SMA and clients without a packet on the wire, and another's. */
static void test_own_lid(void)
{
	struct client a = { 0 }, b = { 0 };
	struct mad_reg reg = reg_of(0, MAD_CLASS_SUBN_LID, 1);
	struct umad_packet smp = {
		.mad_hdr = hdr_of(MAD_CLASS_SUBN_LID, 1, UMAD_METHOD_GET,
				  UMAD_SM_ATTR_NODE_INFO, 1),
	};
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, 2);
	struct mad_addr to = addr_of("rxe0", 0);
	struct port *port = port_of("rxe0");

	xmitted = 0;
	tap_attach(port, &counting_tap);
	CHECK(!client_open(&a, "rxe0", &reg));
	CHECK(!client_send(&a, &to, &smp, sizeof(smp), 100, 0));
	CHECK(a.received == 1 && a.addr.lid == to.lid);
	to.lid = port_of("rxe1")->lid;
	smp.mad_hdr.tid = htobe64(2);
	CHECK(!xmitted);
	CHECK(!client_send(&a, &to, &smp, sizeof(smp), 100, 0));
	CHECK(a.received == 2 && a.addr.lid == to.lid && xmitted == 1);
	client_close(&a);
	to = addr_of("rxe0", 1);
	reg = reg_of(1, CLASS_VENDOR, 1);
	CHECK(!client_open(&a, "rxe0", &reg));
	reg_method(&reg, UMAD_METHOD_GET);
	CHECK(!client_open(&b, "rxe0", &reg));
	b.answer = answer_get;
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	CHECK(a.received == 1 && b.received == 1 && xmitted == 1);
	tap_detach(port, &counting_tap);
	client_close(&a);
	client_close(&b);
}

static void test_grh(void)
{
	struct client a = { 0 }, b = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, 2);
	struct mad_addr to = addr_of("rxe1", 1);
	union ibv_gid gid;

	open_pair(&a, &b, CLASS_VENDOR, 1);
	CHECK(!b.dev->ops->query_gid(b.dev, 1, 0, &gid));
	to.grh = true;
	to.gid = gid;
	to.hop_limit = 3;
	to.traffic_class = 0xab;
	to.flow_label = 0x12345;
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	CHECK(a.received == 1 && b.received == 1);
	CHECK(b.addr.grh && b.addr.traffic_class == 0xab && b.addr.flow_label == 0x12345);
	CHECK(b.addr.hop_limit == 3 && b.addr.gid_index == 0);
	CHECK(a.addr.grh && !memcmp(&a.addr.gid, &gid, sizeof(gid)));
	CHECK(!a.dev->ops->query_gid(a.dev, 1, 0, &gid));
	CHECK(!memcmp(&b.addr.gid, &gid, sizeof(gid)));
	client_close(&a);
	client_close(&b);
}

static void test_pkey(void)
{
	struct client a = { 0 }, b = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, 1);
	struct mad_addr to = addr_of("rxe1", 1);
	struct port *port = port_of("rxe1");

	open_pair(&a, &b, CLASS_VENDOR, 1);
	CHECK(!port_set_pkey(port_of("rxe0"), 2, 0x8123));
	to.pkey_index = 2;
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	CHECK(!b.received && port->pkey_violations == 1);
	CHECK(wait_for(&a.timeouts, 1, 1));
	CHECK(!port_set_pkey(port, 5, 0x0123));
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	CHECK(b.received == 1 && b.addr.pkey_index == 5 && a.received == 1);
	CHECK(a.addr.pkey_index == 2 && port->pkey_violations == 1);
	client_close(&a);
	client_close(&b);
}

static void test_unregister(void)
{
	struct client a = { 0 }, b = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, 1);
	struct mad_addr to = addr_of("rxe1", 1);
	struct mad_agent *agent;

	open_pair(&a, &b, CLASS_VENDOR, 1);
	b.answer = NULL;
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 3));
	agent = a.agent;
	a.dev->ops->mad_unregister(agent);
	pass(2);
	CHECK(b.received == 1 && !a.timeouts && !a.received);
	a.agent = NULL;
	client_close(&a);
	client_close(&b);
}

static void close_in_recv(struct client *client, const struct mad_addr *addr, const void *mad,
			  size_t len)
{
	(void)addr;
	(void)mad;
	(void)len;
	client->dev->ops->mad_unregister(client->agent);
	client->agent = NULL;
}

/* A client may unregister from inside the call that brings it a MAD, its own send included. */
static void test_unregister_inside(void)
{
	struct client a = { 0 }, b = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, 1);
	struct mad_addr to = addr_of("rxe1", 1);

	open_pair(&a, &b, CLASS_VENDOR, 1);
	a.answer = close_in_recv;
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 3));
	CHECK(a.received == 1 && !a.agent);
	client_close(&a);
	client_close(&b);
	open_pair(&a, &b, CLASS_VENDOR, 1);
	b.answer = close_in_recv;
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	CHECK(b.received == 1 && !b.agent);
	CHECK(wait_for(&a.timeouts, 1, 1));
	client_close(&a);
	client_close(&b);
}

static void test_gone(void)
{
	struct client a = { 0 }, b = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, 1);
	struct mad_addr to = addr_of("rxe1", 1);
	struct ibfs_device *dev = device("rxe0");

	open_pair(&a, &b, CLASS_VENDOR, 1);
	b.answer = NULL;
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 3));
	dev->ops->remove(dev);
	CHECK(a.gone == 1 && !device("rxe0"));
	pass(2);
	CHECK(!a.timeouts && b.received == 1);
	/* The node is a simulated one again, and may become another device. */
	CHECK(!soft_device_add(&t.ibfs, "mthca0", "rxe0"));
	client_close(&a);
	client_close(&b);
}

#define MANY	10000

/* Each request is answered later, in the other order. */
static void test_outstanding(void)
{
	struct client a = { 0 }, b = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, 0);
	struct mad_addr to = addr_of("rxe1", 1);
	uint64_t high;
	unsigned int i;

	open_pair(&a, &b, CLASS_VENDOR, 1);
	b.answer = NULL;
	for (i = 0; i < MANY; i++) {
		mad.mad_hdr.tid = htobe64(i);
		CHECK(!client_send(&a, &to, &mad, sizeof(mad), 1000 + i % 7, 0));
	}
	CHECK(b.received == MANY);
	high = be64toh(client_hdr(&b)->tid) >> 32 << 32;
	mad.mad_hdr.method = UMAD_METHOD_GET_RESP;
	for (i = MANY; i-- > MANY / 2;) {
		mad.mad_hdr.tid = htobe64(high | i);
		CHECK(!client_send(&b, &b.addr, &mad, sizeof(mad), 0, 0));
	}
	CHECK(a.received == MANY / 2);
	CHECK(wait_for(&a.timeouts, MANY / 2, 2));
	pass(1);
	CHECK(a.received == MANY / 2 && a.timeouts == MANY / 2);
	client_close(&a);
	client_close(&b);
}

/* A response with a timeout waits for an answer to it, as in Linux's mad.c. */
static void test_response_timeout(void)
{
	struct client a = { 0 }, b = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET_RESP, 1ULL << 32 | 5);
	struct mad_addr to = addr_of("rxe1", 1);

	open_pair(&a, &b, CLASS_VENDOR, 1);
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	CHECK(client_send(&a, &to, &mad, sizeof(mad), 100, 0) == -EINVAL);
	to.lid++;
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	CHECK(wait_for(&a.timeouts, 2, 1));
	CHECK(be64toh(client_hdr(&a)->tid) == (1ULL << 32 | 5));
	client_close(&a);
	client_close(&b);
}

/* An SL without a VL, and a GMP to a multicast LID, get nowhere. */
static void test_undeliverable(void)
{
	struct client a = { 0 }, b = { 0 };
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_GET, 1);
	struct mad_addr to = addr_of("rxe1", 1);
	struct node *sw = fabric_find(t.ibfs.fabric, "switch");
	struct port *port = port_of("rxe0");
	const uint8_t map[8] = { 0x0f };

	open_pair(&a, &b, CLASS_VENDOR, 1);
	CHECK(!port_set_sl2vl(port, 0, map));
	to.sl = 1;
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	CHECK(!b.received && port->cnt.xmit_discards == 1);
	CHECK(wait_for(&a.timeouts, 1, 1));
	to.sl = 0;
	to.lid = 0xc000;
	CHECK(!switch_set_mft(sw, 0xc000, 0, 1U << port_of("rxe1")->peer->num));
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	CHECK(!b.received && port_of("rxe1")->cnt.multicast_rcv_pkts == 1);
	to.lid = port_of("rxe1")->lid;
	mad.mad_hdr.tid = htobe64(2);
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	CHECK(a.received == 1);
	client_close(&a);
	client_close(&b);
}

static void no_wake(struct textring_reader *reader)
{
	(void)reader;
}

/* Why something failed is told in words. */
static void test_reasons(void)
{
	struct textring_reader reader = { .wake = no_wake };
	struct client a = { 0 }, b = { 0 };
	struct mad_reg reg = reg_of(1, CLASS_VENDOR, 1);
	struct umad_vendor_packet mad = vendor_mad(UMAD_METHOD_SEND, 1);
	struct mad_addr to = addr_of("rxe1", 1);
	const char *line;

	textring_attach(t.ibfs.errors, &reader, false);
	reg_method(&reg, UMAD_METHOD_GET);
	CHECK(!try_reg(&a, reg));
	CHECK(try_reg(&b, reg) == -EINVAL);
	line = textring_next(t.ibfs.errors, &reader);
	CHECK(line && !strcmp(line, "EINVAL: rxe0/1: register: another agent has a method of it"));
	CHECK(!client_send(&a, &to, &mad, sizeof(mad), 100, 0));
	CHECK(client_send(&a, &to, &mad, sizeof(mad), 100, 0) == -EINVAL);
	line = textring_next(t.ibfs.errors, &reader);
	CHECK(line && !strcmp(line, "EINVAL: rxe0/1: send: a MAD with this TID and class is in "
				    "flight"));
	CHECK(!textring_next(t.ibfs.errors, &reader));
	textring_detach(t.ibfs.errors, &reader);
	client_close(&a);
}

static const struct test tests[] = {
	{ "register", test_register },
	{ "overlap", test_overlap },
	{ "vendor_oui", test_vendor_oui },
	{ "tid", test_tid },
	{ "match", test_match },
	{ "path_bits", test_path_bits },
	{ "timeout", test_timeout },
	{ "retry", test_retry },
	{ "no_timeout", test_no_timeout },
	{ "duplicate", test_duplicate },
	{ "lengths", test_lengths },
	{ "unclaimed", test_unclaimed },
	{ "invalid", test_invalid },
	{ "trap", test_trap },
	{ "directed_route", test_directed_route },
	{ "sminfo", test_sminfo },
	{ "own_lid", test_own_lid },
	{ "grh", test_grh },
	{ "pkey", test_pkey },
	{ "unregister", test_unregister },
	{ "unregister_inside", test_unregister_inside },
	{ "gone", test_gone },
	{ "outstanding", test_outstanding },
	{ "response_timeout", test_response_timeout },
	{ "undeliverable", test_undeliverable },
	{ "reasons", test_reasons },
	{ 0 },
};

int main(int argc, char **argv)
{
	return run_tests(tests, argc, argv);
}
