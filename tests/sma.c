/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SMPs through a chain of three switches: directed routes with and without
 * parts by LID, every attribute of the SMA, M_Key rules.
 */
#include "chain.h"

static const struct {
	const char *hops, *id;
	uint8_t port;
} walks[] = {
	{ "", "a", 1 }, { "1", "s1", 1 }, { "12", "s2", 1 }, { "122", "s3", 1 }, { "1222", "b", 1 },
	{ "11", "a", 1 }, { "121", "s1", 2 }, { "1221", "s2", 2 },
};

static void test_walk(void)
{
	for (unsigned int i = 0; i < sizeof(walks) / sizeof(walks[0]); i++) {
		struct smp *smp = request(UMAD_METHOD_GET, UMAD_SM_ATTR_NODE_INFO, 0,
					  walks[i].hops, NULL, 0);
		struct smp_node_info *info;
		struct node *node;

		CHECK(smp);
		if (!smp)
			continue;
		info = (struct smp_node_info *)smp->data;
		node = fabric_find(t.fabric, walks[i].id);
		CHECK_EQ(smp->method, UMAD_METHOD_GET_RESP);
		CHECK_EQ(be16toh(smp->status), UMAD_SMP_DIRECTION);
		CHECK_EQ(smp->hop_ptr, 0);
		CHECK_EQ(t.got_slid[0], LID_PERMISSIVE);
		CHECK_EQ(be64toh(info->node_guid), node->guid);
		CHECK_EQ(info->local_port, walks[i].port);
		CHECK_EQ(info->num_ports, node->num_ports);
	}
}

static int send_path(uint8_t ptr, uint8_t cnt, const char *hops, uint16_t dirs)
{
	struct packet pkt;
	struct smp *smp = make(&pkt, UMAD_METHOD_GET, UMAD_SM_ATTR_NODE_INFO, 0, hops,
			       LID_PERMISSIVE);

	smp->hop_ptr = ptr;
	smp->hop_cnt = cnt;
	smp->status = htobe16(dirs);
	t.num_got = 0;
	return smi_send(&t.a->ports[1], &pkt);
}

static void test_bad_paths(void)
{
	/* Lost on the way: no such port, nothing plugged in, a CA in the middle, port 0. */
	CHECK(!request(UMAD_METHOD_GET, UMAD_SM_ATTR_NODE_INFO, 0, "19", NULL, 0));
	CHECK(!request(UMAD_METHOD_GET, UMAD_SM_ATTR_NODE_INFO, 0, "14", NULL, 0));
	CHECK(!request(UMAD_METHOD_GET, UMAD_SM_ATTR_NODE_INFO, 0, "111", NULL, 0));
	CHECK(!request(UMAD_METHOD_GET, UMAD_SM_ATTR_NODE_INFO, 0, "10", NULL, 0));
	/* Refused at once: another port than the client's, a pointer that can't be. */
	CHECK_EQ(send_path(0, 1, "2", 0), (unsigned long long)-EINVAL);
	CHECK_EQ(send_path(5, 2, "12", 0), (unsigned long long)-EINVAL);
	CHECK_EQ(send_path(1, 2, "12", 0), (unsigned long long)-EINVAL);
	CHECK_EQ(send_path(0, 64, "12", 0), (unsigned long long)-EINVAL);
	CHECK_EQ(send_path(9, 2, "12", UMAD_SMP_DIRECTION), (unsigned long long)-EINVAL);
	CHECK_EQ(t.num_got, 0);
	/* A pointer of 0 that comes over the wire has skipped the sender's part. */
	{
		struct packet pkt;

		make(&pkt, UMAD_METHOD_GET, UMAD_SM_ATTR_NODE_INFO, 0, "12", LID_PERMISSIVE);
		t.num_got = 0;
		port_xmit(&t.a->ports[1], &pkt);
		CHECK_EQ(t.num_got, 0);
	}
}

static void test_lid_routed(void)
{
	struct packet pkt;

	for (uint16_t lid = 1; lid <= 5; lid++) {
		make(&pkt, UMAD_METHOD_GET, UMAD_SM_ATTR_NODE_INFO, 0, NULL, lid);
		send_lid(&pkt, lid);
		CHECK_EQ(t.num_got, 1);
		CHECK_EQ(be16toh(t.got[0].status), 0);
		CHECK_EQ(t.got_slid[0], lid);
	}
}

static void combined(uint16_t first, const char *hops, uint16_t last, const char *id)
{
	struct node *node = fabric_find(t.fabric, id);
	struct smp_node_info *info = (struct smp_node_info *)t.got[0].data;
	struct packet pkt;
	struct smp *smp = make(&pkt, UMAD_METHOD_GET, UMAD_SM_ATTR_NODE_INFO, 0, hops, first);

	if (first)
		smp->dr_slid = htobe16(t.a->ports[1].lid);
	if (last)
		smp->dr_dlid = htobe16(last);
	send_lid(&pkt, first ? first : LID_PERMISSIVE);
	CHECK_EQ(t.num_got, 1);
	CHECK_EQ(t.got[0].method, UMAD_METHOD_GET_RESP);
	CHECK_EQ(be64toh(info->node_guid), node->guid);
}

static void test_combined(void)
{
	combined(2, "22", 0, "s3");		/* by LID to s1, then two hops */
	combined(3, "22", 0, "b");		/* by LID to s2, then to b's port */
	combined(0, "12", 5, "b");		/* two hops, then by LID from s2 */
	combined(2, "2", 5, "b");		/* by LID, a hop, by LID */
	combined(2, "2", 1, "a");		/* and back to where it began */
	combined(3, "", 0, "s2");
}

static void test_dispatch(void)
{
	struct packet pkt;
	struct smp *smp;

	CHECK_EQ(get(0xff90, 1, "1", NULL), MAD_BAD_ATTR);
	t.s[0]->device_id = 0xcb20;		/* OpenSM asks such a switch for it */
	CHECK_EQ(get(0xff90, 1, "1", NULL), MAD_OK);
	CHECK_EQ(get(0xff90, 5, "1", NULL), MAD_BAD_VALUE);
	CHECK_EQ(get(UMAD_SM_ATTR_RANDOM_FT, 0, "1", NULL), MAD_BAD_ATTR);
	CHECK_EQ(set(UMAD_SM_ATTR_VENDOR_DIAG, 0, "1", NULL), MAD_BAD_ATTR);
	CHECK_EQ(get(UMAD_SM_ATTR_SM_INFO, 0, "1", NULL), MAD_BAD_ATTR);
	CHECK_EQ(get(UMAD_SM_ATTR_SWITCH_INFO, 0, "1222", NULL), MAD_BAD_ATTR);
	CHECK_EQ(get(UMAD_SM_ATTR_LINEAR_FT, 0, "1222", NULL), MAD_BAD_ATTR);
	CHECK_EQ(get(UMAD_SM_ATTR_MCAST_FT, 0, "1222", NULL), MAD_BAD_ATTR);
	CHECK_EQ(set(UMAD_SM_ATTR_NODE_INFO, 0, "1", NULL), MAD_BAD_ATTR);
	CHECK_EQ(set(UMAD_SM_ATTR_NODE_DESC, 0, "1", NULL), MAD_BAD_ATTR);
	CHECK_EQ(status(request(0x11, UMAD_SM_ATTR_NODE_INFO, 0, "1", NULL, 0)), MAD_BAD_METHOD);
	CHECK(!request(UMAD_METHOD_SEND, UMAD_SM_ATTR_NODE_INFO, 0, "1", NULL, 0));
	smp = make(&pkt, UMAD_METHOD_GET, UMAD_SM_ATTR_NODE_INFO, 0, "1", LID_PERMISSIVE);
	smp->class_version = 9;
	t.num_got = 0;
	smi_send(&t.a->ports[1], &pkt);
	CHECK_EQ(t.num_got, 1);
	CHECK_EQ(status(&t.got[0]), MAD_BAD_VERSION);
	/* A node's own SMInfo goes to its clients as it came. */
	smp = request(UMAD_METHOD_GET, UMAD_SM_ATTR_SM_INFO, 0, "", NULL, 0);
	CHECK(smp && smp->method == UMAD_METHOD_GET && smp->hop_ptr == 1);
}

/* Every node has a VendorDiag: here without data, and without a second one. */
static void test_vendor_diag(void)
{
	static const char *const hops[] = { "", "1", "1222" };
	uint8_t data[64], none[64] = { 0 };

	for (unsigned int i = 0; i < 3; i++) {
		memset(data, 1, sizeof(data));
		CHECK_EQ(get(UMAD_SM_ATTR_VENDOR_DIAG, 0, hops[i], data), MAD_OK);
		CHECK(!memcmp(data, none, sizeof(data)));
		CHECK_EQ(get(UMAD_SM_ATTR_VENDOR_DIAG, 1, hops[i], NULL), MAD_BAD_VALUE);
	}
}

static void test_tables(void)
{
	uint8_t data[64], back[64];
	struct smp_guid_info *guids = (struct smp_guid_info *)data;
	__be16 *words = (__be16 *)data;

	/* GUIDInfo: entry 0 stays, the rest take what they get; 32 entries are 4 blocks. */
	CHECK_EQ(get(UMAD_SM_ATTR_GUID_INFO, 0, "1222", data), MAD_OK);
	CHECK_EQ(be64toh(guids->guid[0]), t.b->ports[1].guid);
	guids->guid[0] = htobe64(1);
	guids->guid[3] = htobe64(0x1234);
	CHECK_EQ(set(UMAD_SM_ATTR_GUID_INFO, 0, "1222", data), MAD_OK);
	CHECK_EQ(port_gid_guid(&t.b->ports[1], 0), t.b->ports[1].guid);
	CHECK_EQ(port_gid_guid(&t.b->ports[1], 3), 0x1234);
	CHECK_EQ(get(UMAD_SM_ATTR_GUID_INFO, 4, "1222", NULL), MAD_BAD_VALUE);

	/* P_Keys: of a CA, of a switch's port 0 and of an external port. */
	CHECK_EQ(get(UMAD_SM_ATTR_PKEY_TABLE, 0, "1222", data), MAD_OK);
	CHECK_EQ(be16toh(words[0]), 0xffff);
	CHECK_EQ(be16toh(words[1]), 0);
	words[5] = htobe16(0x8005);
	CHECK_EQ(set(UMAD_SM_ATTR_PKEY_TABLE, 0, "1222", data), MAD_OK);
	CHECK_EQ(port_pkey(&t.b->ports[1], 5), 0x8005);
	CHECK_EQ(get(UMAD_SM_ATTR_PKEY_TABLE, 1, "1222", NULL), MAD_BAD_VALUE);
	CHECK_EQ(set(UMAD_SM_ATTR_PKEY_TABLE, 2 << 16, "1", data), MAD_OK);
	CHECK_EQ(port_pkey(&t.s[0]->ports[2], 5), 0x8005);
	CHECK_EQ(port_pkey(&t.s[0]->ports[0], 5), 0);
	CHECK_EQ(get(UMAD_SM_ATTR_PKEY_TABLE, 5 << 16, "1", NULL), MAD_BAD_VALUE);

	/* SL to VL of output port 2 from input port 1, and of nothing else. */
	memset(data, 0x12, sizeof(data));
	CHECK_EQ(set(UMAD_SM_ATTR_SLVL_TABLE, 1 << 8 | 2, "1", data), MAD_OK);
	CHECK_EQ(get(UMAD_SM_ATTR_SLVL_TABLE, 1 << 8 | 2, "1", back), MAD_OK);
	CHECK(!memcmp(data, back, 8) && !back[8]);
	CHECK_EQ(get(UMAD_SM_ATTR_SLVL_TABLE, 3 << 8 | 2, "1", back), MAD_OK);
	CHECK_EQ(back[0], 0x01);
	CHECK_EQ(get(UMAD_SM_ATTR_SLVL_TABLE, 5 << 8 | 2, "1", NULL), MAD_BAD_VALUE);
	CHECK_EQ(get(UMAD_SM_ATTR_SLVL_TABLE, 1 << 8 | 5, "1", NULL), MAD_BAD_VALUE);
	CHECK_EQ(set(UMAD_SM_ATTR_SLVL_TABLE, 0, "1222", data), MAD_OK);

	/* VL arbitration: four tables. */
	CHECK_EQ(set(UMAD_SM_ATTR_VL_ARB_TABLE, 3 << 16 | 2, "1", data), MAD_OK);
	CHECK_EQ(get(UMAD_SM_ATTR_VL_ARB_TABLE, 3 << 16 | 2, "1", back), MAD_OK);
	CHECK(!memcmp(data, back, 64));
	CHECK_EQ(get(UMAD_SM_ATTR_VL_ARB_TABLE, 5 << 16 | 2, "1", NULL), MAD_BAD_VALUE);
	CHECK_EQ(get(UMAD_SM_ATTR_VL_ARB_TABLE, 0 << 16 | 2, "1", NULL), MAD_BAD_VALUE);
}

static void test_forwarding(void)
{
	union {
		struct smp_switch_info info;
		uint8_t bytes[64];
	} sw = { 0 };
	struct smp_switch_info *info = &sw.info;
	uint8_t data[64], back[64];
	__be16 *words = (__be16 *)data;

	memset(data, 2, sizeof(data));
	data[63] = 255;
	CHECK_EQ(set(UMAD_SM_ATTR_LINEAR_FT, 1, "1", data), MAD_OK);
	CHECK_EQ(switch_get_lft(t.s[0], 64), 2);
	CHECK_EQ(switch_get_lft(t.s[0], 127), 255);
	CHECK_EQ(get(UMAD_SM_ATTR_LINEAR_FT, 1, "1", back), MAD_OK);
	CHECK(!memcmp(data, back, 64));
	/* A block of nothing beyond the table makes it no longer; an entry does. */
	memset(data, 255, sizeof(data));
	CHECK_EQ(set(UMAD_SM_ATTR_LINEAR_FT, 767, "1", data), MAD_OK);
	CHECK(t.s[0]->sw->lft_size < 768 * 64);
	data[63] = 1;
	CHECK_EQ(set(UMAD_SM_ATTR_LINEAR_FT, 767, "1", data), MAD_OK);
	CHECK_EQ(switch_get_lft(t.s[0], 0xbfff), 1);
	CHECK_EQ(set(UMAD_SM_ATTR_LINEAR_FT, 768, "1", data), MAD_BAD_VALUE);
	CHECK_EQ(get(UMAD_SM_ATTR_LINEAR_FT, 0x4000000, "1", NULL), MAD_BAD_VALUE);

	for (int i = 0; i < 32; i++)
		words[i] = htobe16(i);
	CHECK_EQ(set(UMAD_SM_ATTR_MCAST_FT, 2, "1", data), MAD_OK);
	CHECK_EQ(switch_get_mft(t.s[0], 0xc000 + 64 + 9, 0), 9);
	CHECK_EQ(get(UMAD_SM_ATTR_MCAST_FT, 2, "1", back), MAD_OK);
	CHECK(!memcmp(data, back, 64));
	CHECK_EQ(get(UMAD_SM_ATTR_MCAST_FT, 1U << 28, "1", NULL), MAD_BAD_VALUE);
	CHECK_EQ(get(UMAD_SM_ATTR_MCAST_FT, 0x1ff, "1", NULL), MAD_BAD_VALUE);

	CHECK_EQ(get(UMAD_SM_ATTR_SWITCH_INFO, 0, "1", &sw), MAD_OK);
	CHECK_EQ(be16toh(info->lft_cap), 0xc000);
	CHECK_EQ(be16toh(info->rft_cap), 0);
	info->lft_top = htobe16(0x100);
	info->life_change = 5 << 3;
	t.s[0]->sw->port_state_change = true;
	CHECK_EQ(set(UMAD_SM_ATTR_SWITCH_INFO, 0, "1", &sw), MAD_OK);
	CHECK(t.s[0]->sw->port_state_change);
	CHECK_EQ(t.s[0]->sw->lft_top, 0x100);
	CHECK_EQ(t.s[0]->sw->life_time, 5);
	info->life_change |= SWI_STATE_CHANGE;
	CHECK_EQ(set(UMAD_SM_ATTR_SWITCH_INFO, 0, "1", &sw), MAD_OK);
	CHECK(!t.s[0]->sw->port_state_change);
	info->lft_top = htobe16(0xc000);
	CHECK_EQ(set(UMAD_SM_ATTR_SWITCH_INFO, 0, "1", &sw), MAD_BAD_VALUE);
}

static void test_mft_positions(void)
{
	struct node *big = add(NODE_SWITCH, "big", 40);
	struct port *end = &big->ports[0];
	__be16 word = htobe16(0x0101);
	struct packet pkt;
	struct smp *smp;

	for (unsigned int position = 0; position < 4; position++) {
		smp = make(&pkt, UMAD_METHOD_SET, UMAD_SM_ATTR_MCAST_FT, position << 28, NULL, 1);
		memcpy(smp->data, &word, sizeof(word));
		CHECK_EQ(sma_process(end, smp, 1), MAD_ANSWER);
		CHECK_EQ(be16toh(smp->status), position <= 40 / 16 ? MAD_OK : MAD_BAD_VALUE);
	}
	CHECK_EQ(switch_get_mft(big, 0xc000, 0), 0x01010101);
	CHECK_EQ(switch_get_mft(big, 0xc000, 1), 0x0101);
}

static void test_node_desc(void)
{
	char data[64];

	CHECK_EQ(get(UMAD_SM_ATTR_NODE_DESC, 0, "12", data), MAD_OK);
	CHECK(!strcmp(data, "s2"));
	t.s[1]->ports[0].cap_mask2 |= CAP2_SET_NODE_DESC;
	memset(data, 'x', sizeof(data));
	CHECK_EQ(set(UMAD_SM_ATTR_NODE_DESC, 0, "12", data), MAD_OK);
	CHECK_EQ(strlen(t.s[1]->desc), 64);
	CHECK_EQ(get(UMAD_SM_ATTR_LED_INFO, 0, "12", NULL), MAD_BAD_ATTR);
	t.s[1]->ports[0].cap_mask |= CAP_LED;
	memset(data, 0, sizeof(data));
	data[0] = (char)0x80;
	CHECK_EQ(set(UMAD_SM_ATTR_LED_INFO, 0, "12", data), MAD_OK);
	CHECK_EQ((uint8_t)t.got[0].data[0], 0x80);
}

/* Set(PortInfo): what is changed in what Get gave, to which port, and what comes of it. */
struct set_case {
	const char *hops;
	uint8_t port;
	unsigned int byte;
	uint8_t mask, value;
	unsigned int status;
	unsigned int after;	/* of the byte's masked bits; as before where refused */
};

#define BYTE(field) offsetof(struct smp_port_info, field)
static const struct set_case set_cases[] = {
	/* widths and speeds: NOP, a subset, all, what the port can't */
	{ "1222", 1, BYTE(width_enabled), 0xff, 0, MAD_OK, 3 },
	{ "1222", 1, BYTE(width_enabled), 0xff, 1, MAD_OK, 1 },
	{ "1222", 1, BYTE(width_enabled), 0xff, 0xff, MAD_OK, 3 },
	{ "1222", 1, BYTE(width_enabled), 0xff, 8, MAD_BAD_VALUE, 3 },
	{ "122", 2, BYTE(width_enabled), 0xff, 0x80, MAD_BAD_VALUE, 3 },
	{ "1222", 1, BYTE(speed), 0x0f, 1, MAD_OK, 1 },
	{ "1222", 1, BYTE(speed), 0x0f, 0, MAD_OK, 1 },
	{ "1222", 1, BYTE(speed), 0x0f, 8, MAD_BAD_VALUE, 1 },
	{ "1222", 1, BYTE(speed), 0x0f, 15, MAD_OK, 7 },
	{ "1222", 1, BYTE(speed_ext_enabled), 0x1f, 1, MAD_OK, 1 },
	{ "1222", 1, BYTE(speed_ext_enabled), 0x1f, 4, MAD_BAD_VALUE, 1 },
	{ "1222", 1, BYTE(speed_ext_enabled), 0x1f, 30, MAD_OK, 30 },
	{ "1222", 1, BYTE(speed_ext_enabled), 0x1f, 0, MAD_OK, 30 },
	{ "1222", 1, BYTE(speed_ext_enabled), 0x1f, 31, MAD_OK, 3 },
	{ "1222", 1, BYTE(speed_ext_enabled), 0x1f, 17, MAD_BAD_VALUE, 3 },
	{ "1222", 1, BYTE(speed_ext2), 0x07, 1, MAD_BAD_VALUE, 0 },
	{ "1222", 1, BYTE(speed_ext2), 0x07, 7, MAD_OK, 0 },
	/* states: INIT can't be set, up goes step by step, a physical state alone or with Down */
	{ "122", 2, BYTE(speed_state), 0x0f, PORT_INIT, MAD_BAD_VALUE, PORT_INIT },
	{ "122", 2, BYTE(speed_state), 0x0f, PORT_ACTIVE, MAD_BAD_VALUE, PORT_INIT },
	{ "122", 2, BYTE(speed_state), 0x0f, PORT_NOP, MAD_OK, PORT_INIT },
	{ "122", 2, BYTE(speed_state), 0x0f, PORT_ARMED, MAD_OK, PORT_ARMED },
	{ "122", 2, BYTE(speed_state), 0x0f, PORT_ARMED, MAD_OK, PORT_ARMED },
	{ "122", 2, BYTE(speed_state), 0x0f, PORT_ACTIVE, MAD_OK, PORT_ACTIVE },
	{ "122", 2, BYTE(speed_state), 0x0f, PORT_ARMED, MAD_BAD_VALUE, PORT_ACTIVE },
	{ "122", 2, BYTE(speed_state), 0x0f, PORT_ACTIVE, MAD_OK, PORT_ACTIVE },
	{ "122", 2, BYTE(speed_state), 0x0f, 5, MAD_BAD_VALUE, PORT_ACTIVE },
	{ "122", 2, BYTE(speed_state), 0x0f, PORT_DOWN, MAD_OK, PORT_INIT },
	{ "122", 3, BYTE(speed_state), 0x0f, PORT_ARMED, MAD_BAD_VALUE, PORT_DOWN },
	{ "122", 2, BYTE(phys_default), 0xf0, 0x50, MAD_BAD_VALUE, 0x50 },
	{ "122", 2, BYTE(phys_default), 0xf0, 0x30, MAD_OK, 0x30 },
	{ "122", 2, BYTE(phys_default), 0xf0, 0x20, MAD_OK, 0x50 },
	{ "122", 2, BYTE(phys_default), 0x0f, 1, MAD_OK, 1 },
	{ "122", 2, BYTE(phys_default), 0x0f, 0, MAD_OK, 1 },
	{ "122", 2, BYTE(phys_default), 0x0f, 3, MAD_BAD_VALUE, 1 },
	{ "122", 2, BYTE(phys_default), 0x0f, 2, MAD_OK, 2 },
	/* MTU and VLs */
	{ "1222", 1, BYTE(mtu_smsl), 0xf0, 0x40, MAD_OK, 0x40 },
	{ "1222", 1, BYTE(mtu_smsl), 0xf0, 0x60, MAD_BAD_VALUE, 0x40 },
	{ "1222", 1, BYTE(mtu_smsl), 0xf0, 0x00, MAD_BAD_VALUE, 0x40 },
	{ "1222", 1, BYTE(mtu_smsl), 0x0f, 3, MAD_OK, 3 },
	{ "1222", 1, BYTE(oper_enforce), 0xf0, 0x20, MAD_OK, 0x20 },
	{ "1222", 1, BYTE(oper_enforce), 0xf0, 0x00, MAD_OK, 0x20 },
	{ "1222", 1, BYTE(oper_enforce), 0xf0, 0x50, MAD_BAD_VALUE, 0x20 },
	{ "1222", 1, BYTE(vl_high_limit), 0xff, 7, MAD_OK, 7 },
	{ "1222", 1, BYTE(errors), 0xff, 0x34, MAD_OK, 0x34 },
	/* partition enforcement, VLStallCount and HOQLife are a switch's */
	{ "122", 2, BYTE(oper_enforce), 0x0f, 0x0c, MAD_OK, 0x0c },
	{ "122", 2, BYTE(stall_hoq), 0xff, 0x43, MAD_OK, 0x43 },
	/* the end port's own; a base port 0 has no LMC */
	{ "12", 0, BYTE(mkey_lmc), 0x07, 1, MAD_BAD_VALUE, 0 },
	{ "1222", 1, BYTE(rereg_timeout), 0x1f, 7, MAD_OK, 7 },
	{ "1222", 1, BYTE(init_mtu), 0xf0, 0x60, MAD_OK, 0x60 },
	{ "1222", 1, BYTE(cap_mask), 0xff, 0xff, MAD_OK, 0x02 },
	/* a switch's external port keeps nothing of an end port's part */
	{ "122", 2, BYTE(rereg_timeout), 0x1f, 9, MAD_OK, 0 },
	{ "122", 2, BYTE(mtu_smsl), 0x0f, 9, MAD_OK, 0 },
};

static void nop_states(struct smp_port_info *info)
{
	info->speed_state &= 0xf0;
	info->phys_default &= 0x0f;
}

static void test_set_port_info(void)
{
	for (unsigned int i = 0; i < sizeof(set_cases) / sizeof(set_cases[0]); i++) {
		const struct set_case *c = &set_cases[i];
		struct smp_port_info info, after;
		uint8_t *byte = (uint8_t *)&info + c->byte;
		unsigned int before = t.failed;

		CHECK_EQ(get(UMAD_SM_ATTR_PORT_INFO, c->port, c->hops, &info), MAD_OK);
		nop_states(&info);
		*byte = (*byte & ~c->mask) | c->value;
		CHECK_EQ(set(UMAD_SM_ATTR_PORT_INFO, c->port, c->hops, &info), c->status);
		CHECK_EQ(get(UMAD_SM_ATTR_PORT_INFO, c->port, c->hops, &after), MAD_OK);
		CHECK_EQ(((uint8_t *)&after)[c->byte] & c->mask, c->after);
		if (t.failed != before)
			fprintf(stderr, "sma.c: that was set_cases[%u]\n", i);
	}
}

/* A refused Set leaves all as it was, whatever else it asked for. */
static void test_set_atomic(void)
{
	struct smp_port_info before, info, after;

	CHECK_EQ(get(UMAD_SM_ATTR_PORT_INFO, 1, "1222", &before), MAD_OK);
	info = before;
	nop_states(&info);
	info.lid = htobe16(77);
	info.gid_prefix = htobe64(42);
	info.vl_high_limit ^= 1;
	info.sm_lid = htobe16(0xc001);
	CHECK_EQ(set(UMAD_SM_ATTR_PORT_INFO, 1, "1222", &info), MAD_BAD_VALUE);
	CHECK_EQ(get(UMAD_SM_ATTR_PORT_INFO, 1, "1222", &after), MAD_OK);
	CHECK(!memcmp(&before, &after, sizeof(before)));
	info.sm_lid = htobe16(9);
	info.lid = htobe16(0xffff);
	CHECK_EQ(set(UMAD_SM_ATTR_PORT_INFO, 1, "1222", &info), MAD_BAD_VALUE);
	info.lid = htobe16(77);
	info.mkey_lmc = 1;			/* not on an odd LID */
	CHECK_EQ(set(UMAD_SM_ATTR_PORT_INFO, 1, "1222", &info), MAD_BAD_VALUE);
	info.mkey_lmc = 0;
	t.fabric->static_owned = true;
	CHECK_EQ(set(UMAD_SM_ATTR_PORT_INFO, 1, "1222", &info), MAD_OK);
	CHECK_EQ(t.b->ports[1].lid, 77);
	CHECK_EQ(t.b->ports[1].gid_prefix, 42);
	CHECK(!t.fabric->static_owned);
	/* A CA's other port can be read, and not set; there is no port 3. */
	CHECK_EQ(get(UMAD_SM_ATTR_PORT_INFO, 2, "", &info), MAD_OK);
	nop_states(&info);
	CHECK_EQ(set(UMAD_SM_ATTR_PORT_INFO, 2, "", &info), MAD_BAD_VALUE);
	CHECK_EQ(get(UMAD_SM_ATTR_PORT_INFO, 3, "", NULL), MAD_BAD_VALUE);
	/* The answer to Set shows the reregister bit; Get does not. */
	CHECK_EQ(get(UMAD_SM_ATTR_PORT_INFO, 0, "1222", &info), MAD_OK);
	nop_states(&info);
	info.rereg_timeout |= PORT_INFO_REREGISTER;
	CHECK_EQ(set(UMAD_SM_ATTR_PORT_INFO, 0, "1222", &info), MAD_OK);
	CHECK(((struct smp_port_info *)t.got[0].data)->rereg_timeout & PORT_INFO_REREGISTER);
	CHECK_EQ(get(UMAD_SM_ATTR_PORT_INFO, 0, "1222", &info), MAD_OK);
	CHECK(!(info.rereg_timeout & PORT_INFO_REREGISTER));
}

static void set_port_state(enum port_state state, enum phys_state phys)
{
	struct smp_port_info info;

	CHECK_EQ(get(UMAD_SM_ATTR_PORT_INFO, 2, "1", &info), MAD_OK);
	info.speed_state = (info.speed_state & 0xf0) | state;
	info.phys_default = (info.phys_default & 0x0f) | phys << 4;
	CHECK_EQ(set(UMAD_SM_ATTR_PORT_INFO, 2, "1", &info), MAD_OK);
}

/* What the manager does itself is no state change of the switch; what the link does then is. */
static void test_state_change(void)
{
	bring_up();
	set_port_state(PORT_DOWN, PHYS_DISABLED);
	CHECK(!t.s[0]->sw->port_state_change);
	CHECK(t.s[1]->sw->port_state_change);
	CHECK_EQ(t.s[0]->ports[2].state, PORT_DOWN);
	t.s[1]->sw->port_state_change = false;
	set_port_state(PORT_NOP, PHYS_POLLING);
	CHECK_EQ(t.s[0]->ports[2].state, PORT_INIT);
	CHECK(t.s[0]->sw->port_state_change);
	CHECK(t.s[1]->sw->port_state_change);
}

/* M_Key, 14.2.4.2: key right or wrong, Get or Set, at each level of protection. */
static void test_mkey(void)
{
	const uint64_t key = 0x1122334455667788ULL;
	struct port *port = &t.b->ports[1];
	struct smp_port_info *info = (struct smp_port_info *)t.got[0].data;
	uint16_t violations = 0;
	uint8_t guids[64] = { 0 };

	port->mkey = key;
	for (unsigned int protect = 0; protect < 4; protect++) {
		port->mkey_protect = protect;
		CHECK(request(UMAD_METHOD_GET, UMAD_SM_ATTR_PORT_INFO, 1, "1222", NULL, key));
		CHECK_EQ(be64toh(info->mkey), key);
		if (protect < 2) {
			CHECK(request(UMAD_METHOD_GET, UMAD_SM_ATTR_PORT_INFO, 1, "1222", NULL, 0));
			CHECK_EQ(be64toh(info->mkey), protect ? 0 : key);
		} else {
			CHECK(!request(UMAD_METHOD_GET, UMAD_SM_ATTR_PORT_INFO, 1, "1222", NULL, 0));
			violations++;
		}
		CHECK_EQ(port->mkey_violations, violations);
		CHECK(request(UMAD_METHOD_SET, UMAD_SM_ATTR_GUID_INFO, 0, "1222", guids, key));
		CHECK(!request(UMAD_METHOD_SET, UMAD_SM_ATTR_GUID_INFO, 0, "1222", guids, 5));
		violations++;
		CHECK_EQ(port->mkey_violations, violations);
		/* No key is asked for what isn't there. */
		CHECK_EQ(status(request(0x11, UMAD_SM_ATTR_PORT_INFO, 1, "1222", NULL, 5)),
			 MAD_BAD_METHOD);
		CHECK_EQ(port->mkey_violations, violations);
	}
	/* A transit switch has no say. */
	t.s[0]->ports[0].mkey = key;
	t.s[0]->ports[0].mkey_protect = 3;
	CHECK(request(UMAD_METHOD_GET, UMAD_SM_ATTR_PORT_INFO, 1, "1222", NULL, key));
	CHECK(!request(UMAD_METHOD_GET, UMAD_SM_ATTR_NODE_INFO, 0, "1", NULL, 0));
	/* The lease runs from a refusal on, and then the key can be read. */
	port->mkey_lease = 1;
	CHECK(!request(UMAD_METHOD_GET, UMAD_SM_ATTR_PORT_INFO, 1, "1222", NULL, 0));
	for (int i = 0; i < 30 && port->mkey_protect; i++) {
		ev_sleep(0.1);
		request(UMAD_METHOD_GET, UMAD_SM_ATTR_PORT_INFO, 1, "1222", NULL, 0);
	}
	CHECK_EQ(port->mkey_protect, 0);
	CHECK(request(UMAD_METHOD_GET, UMAD_SM_ATTR_PORT_INFO, 1, "1222", NULL, 0));
	CHECK_EQ(be64toh(info->mkey), key);
}

static const struct test tests[] = {
	{ "walk", test_walk, false },
	{ "bad paths", test_bad_paths, false },
	{ "by LID", test_lid_routed, true },
	{ "combined routes", test_combined, true },
	{ "dispatch", test_dispatch, false },
	{ "vendor diagnostics", test_vendor_diag, false },
	{ "tables", test_tables, false },
	{ "forwarding tables", test_forwarding, false },
	{ "multicast positions", test_mft_positions, false },
	{ "node description", test_node_desc, false },
	{ "Set(PortInfo)", test_set_port_info, false },
	{ "refused Set", test_set_atomic, false },
	{ "PortStateChange", test_state_change, false },
	{ "M_Key", test_mkey, false },
};

int main(void)
{
	return run_tests("sma.c", tests, sizeof(tests) / sizeof(tests[0]));
}
