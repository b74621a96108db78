/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forwarding: packets go where the tables say and nowhere else, and what the
 * tables send astray is lost and counted.
 */
#include "fabric-test.h"

/* Two switches, joined by their ports 3, with CAs (LIDs 1..4) on ports 1 and 2; switches have 11, 12. */
struct pair {
	struct fabric *fabric;
	struct node *sw[2], *ca[4];
};

static struct pair new_pair(void)
{
	static const char *const names[] = { "A", "B", "C", "D" };
	struct pair p = { .fabric = test_fabric() };

	for (unsigned int i = 0; i < 2; i++) {
		p.sw[i] = test_node(p.fabric, NODE_SWITCH, i ? "S2" : "S1", 4);
		p.sw[i]->ports[0].lid = 11 + i;
		p.sw[i]->sw->lft_top = 100;
	}
	for (unsigned int i = 0; i < 4; i++) {
		p.ca[i] = test_node(p.fabric, NODE_CA, names[i], 1);
		p.ca[i]->ports[1].lid = 1 + i;
		test_link(p.ca[i], 1, p.sw[i / 2], 1 + i % 2);
	}
	test_link(p.sw[0], 3, p.sw[1], 3);
	for (unsigned int lid = 1; lid <= 4; lid++)
		for (unsigned int i = 0; i < 2; i++)
			CHECK(!switch_set_lft(p.sw[i], lid, (lid - 1) / 2 == i ? 1 + (lid - 1) % 2 : 3));
	CHECK(!switch_set_lft(p.sw[0], 12, 3));
	CHECK(!switch_set_lft(p.sw[1], 11, 3));
	test_activate(p.fabric);
	return p;
}

static int send(struct node *ca, uint16_t dlid)
{
	struct packet pkt;

	make_datagram(&pkt, ca->ports[1].lid, dlid);
	return port_xmit(&ca->ports[1], &pkt);
}

static void test_unicast(void)
{
	struct pair p = new_pair();
	/* LRH 8, BTH 12, DETH 8, payload 8, ICRC 4 */
	const unsigned int words = 10;

	CHECK_EQ(send(p.ca[0], 4), 0);
	CHECK_EQ(seen_of(p.ca[3])->num, 1);
	CHECK_EQ(seen_of(p.ca[3])->hops, 3);
	CHECK_EQ(seen_of(p.ca[1])->num + seen_of(p.ca[2])->num, 0);
	CHECK_EQ(p.ca[0]->ports[1].cnt.xmit_pkts, 1);
	CHECK_EQ(p.ca[0]->ports[1].cnt.unicast_xmit_pkts, 1);
	CHECK_EQ(p.ca[0]->ports[1].cnt.xmit_data, words);
	CHECK_EQ(p.sw[0]->ports[1].cnt.rcv_data, words);
	CHECK_EQ(p.sw[0]->ports[3].cnt.xmit_pkts, 1);
	CHECK_EQ(p.sw[1]->ports[3].cnt.rcv_pkts, 1);
	CHECK_EQ(p.ca[3]->ports[1].cnt.unicast_rcv_pkts, 1);
	CHECK_EQ(p.ca[3]->ports[1].cnt.multicast_rcv_pkts, 0);

	/* A switch's own LID reaches its port 0, and its own packets leave by its tables. */
	CHECK_EQ(send(p.ca[0], 12), 0);
	CHECK(seen_of(p.sw[1])->port == &p.sw[1]->ports[0]);
	struct packet pkt;

	make_datagram(&pkt, 12, 1);
	switch_forward(p.sw[1], &p.sw[1]->ports[0], &pkt);
	CHECK_EQ(seen_of(p.ca[0])->num, 1);
	test_free(p.fabric);
}

static void test_wrong_route(void)
{
	struct pair p = new_pair();
	struct port *in = &p.sw[0]->ports[1];

	/* No entry, above the top, a port that isn't there, back where it came from. */
	CHECK_EQ(send(p.ca[0], 50), 0);
	CHECK_EQ(in->cnt.rcv_switch_relay_errors, 1);
	CHECK(!switch_set_lft(p.sw[0], 101, 2));
	send(p.ca[0], 101);
	CHECK_EQ(in->cnt.rcv_switch_relay_errors, 2);
	switch_set_lft(p.sw[0], 50, 77);
	send(p.ca[0], 50);
	CHECK_EQ(in->cnt.rcv_switch_relay_errors, 3);
	switch_set_lft(p.sw[0], 50, 1);
	send(p.ca[0], 50);
	CHECK_EQ(in->cnt.rcv_switch_relay_errors, 4);
	/* To port 0, which has another LID. */
	switch_set_lft(p.sw[0], 50, 0);
	send(p.ca[0], 50);
	CHECK_EQ(in->cnt.rcv_switch_relay_errors, 5);
	CHECK_EQ(seen_of(p.sw[0])->num, 0);
	/* To a CA that has another LID, and to a port where nothing is plugged in. */
	switch_set_lft(p.sw[0], 50, 2);
	send(p.ca[0], 50);
	CHECK_EQ(seen_of(p.ca[1])->num, 0);
	CHECK_EQ(p.ca[1]->ports[1].cnt.rcv_errors, 1);
	switch_set_lft(p.sw[0], 50, 4);
	send(p.ca[0], 50);
	CHECK_EQ(p.sw[0]->ports[4].cnt.xmit_discards, 1);
	CHECK_EQ(in->cnt.rcv_switch_relay_errors, 5);
	test_free(p.fabric);
}

static void test_lmc(void)
{
	struct pair p = new_pair();

	p.ca[3]->ports[1].lid = 32;
	p.ca[3]->ports[1].lmc = 2;
	for (unsigned int lid = 31; lid <= 36; lid++) {
		switch_set_lft(p.sw[0], lid, 3);
		switch_set_lft(p.sw[1], lid, 2);
		send(p.ca[0], lid);
	}
	CHECK_EQ(seen_of(p.ca[3])->num, 4);
	CHECK_EQ(p.ca[3]->ports[1].cnt.rcv_errors, 2);
	/* LID 0 belongs to nobody, not to a port without a LID either. */
	p.ca[3]->ports[1].lid = 0;
	switch_set_lft(p.sw[0], 0, 3);
	switch_set_lft(p.sw[1], 0, 2);
	send(p.ca[0], 0);
	CHECK_EQ(seen_of(p.ca[3])->num, 4);
	test_free(p.fabric);
}

static void test_loop(void)
{
	struct pair p = new_pair();

	/* A second cable: each switch sends LID 60 to the other by the one it didn't come from. */
	test_link(p.sw[0], 4, p.sw[1], 4);
	for (unsigned int i = 0; i < 2; i++) {
		port_set_state(&p.sw[i]->ports[4], PORT_ARMED);
		port_set_state(&p.sw[i]->ports[4], PORT_ACTIVE);
	}
	switch_set_lft(p.sw[0], 60, 3);
	switch_set_lft(p.sw[1], 60, 4);
	CHECK_EQ(send(p.ca[0], 60), 0);
	CHECK_EQ(p.sw[0]->ports[3].cnt.xmit_discards + p.sw[1]->ports[4].cnt.xmit_discards, 1);
	CHECK_EQ(p.ca[0]->ports[1].cnt.xmit_pkts + p.sw[0]->ports[3].cnt.xmit_pkts +
			 p.sw[1]->ports[4].cnt.xmit_pkts,
		 PACKET_MAX_HOPS);
	test_free(p.fabric);
}

static void set_members(struct node *sw, uint16_t mlid, uint32_t mask)
{
	CHECK(!switch_set_mft(sw, mlid, 0, mask));
}

static void test_multicast(void)
{
	struct pair p = new_pair();
	struct packet pkt;
	const uint16_t mlid = 0xc005;

	/* All CAs, and port 0 of the second switch; not back to where it came from. */
	set_members(p.sw[0], mlid, 1 << 1 | 1 << 2 | 1 << 3);
	set_members(p.sw[1], mlid, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3);
	make_datagram(&pkt, 1, mlid);
	set_psn(&pkt, 77);
	CHECK_EQ(port_xmit(&p.ca[0]->ports[1], &pkt), 0);
	CHECK_EQ(seen_of(p.ca[0])->num, 0);
	for (unsigned int i = 1; i < 4; i++) {
		CHECK_EQ(seen_of(p.ca[i])->num, 1);
		CHECK_EQ(seen_of(p.ca[i])->psn, 77);
	}
	CHECK_EQ(seen_of(p.sw[1])->num, 1);
	CHECK(seen_of(p.sw[1])->port == &p.sw[1]->ports[0]);
	CHECK_EQ(p.ca[0]->ports[1].cnt.multicast_xmit_pkts, 1);
	CHECK_EQ(p.ca[0]->ports[1].cnt.unicast_xmit_pkts, 0);
	CHECK_EQ(p.ca[2]->ports[1].cnt.multicast_rcv_pkts, 1);
	/* The sender's packet is as it was. */
	CHECK_EQ(pkt.len, 28);
	CHECK_EQ(be16toh(packet_lrh(&pkt)->dlid), mlid);

	/* A group without members is lost and counted. */
	send(p.ca[0], 0xc006);
	CHECK_EQ(p.sw[0]->ports[1].cnt.rcv_switch_relay_errors, 1);
	test_free(p.fabric);
}

static void test_multicast_default(void)
{
	struct pair p = new_pair();

	/* An MLID that the table can't hold: to the primary port, and from it to the other. */
	p.sw[0]->sw->mft_cap = 16;
	p.sw[0]->sw->default_mcast_primary = 3;
	p.sw[0]->sw->default_mcast_not_primary = 2;
	set_members(p.sw[1], 0xc100, 1 << 1 | 1 << 3);
	CHECK_EQ(switch_set_mft(p.sw[0], 0xc100, 0, 2), -ERANGE);
	send(p.ca[0], 0xc100);
	CHECK_EQ(seen_of(p.ca[2])->num, 1);
	CHECK_EQ(seen_of(p.ca[1])->num, 0);
	send(p.ca[2], 0xc100);
	CHECK_EQ(seen_of(p.ca[1])->num, 1);
	test_free(p.fabric);
}

static void test_multicast_storm(void)
{
	struct fabric *fabric = test_fabric();
	struct node *sw[6];
	struct node *ca = test_node(fabric, NODE_CA, "A", 1);
	char id[8];
	uint64_t sent = 0;

	/* Six switches, each joined to each and a group that names all ports: only a bound ends it. */
	for (unsigned int i = 0; i < 6; i++) {
		snprintf(id, sizeof(id), "S%u", i);
		sw[i] = test_node(fabric, NODE_SWITCH, id, 7);
		set_members(sw[i], 0xc000, 0xfe);
		for (unsigned int j = 0; j < i; j++)
			test_link(sw[i], j + 1, sw[j], i + 1);
	}
	test_link(ca, 1, sw[0], 7);
	test_activate(fabric);
	CHECK_EQ(send(ca, 0xc000), 0);
	for (unsigned int i = 0; i < 6; i++)
		for (unsigned int j = 1; j <= 7; j++)
			sent += sw[i]->ports[j].cnt.xmit_pkts;
	CHECK(sent > 1000 && sent <= 128 * 1024);
	/* It ends for good: the next packet has its own bound, and a way out. */
	for (unsigned int i = 0; i < 6; i++)
		set_members(sw[i], 0xc000, i ? 0 : 1);
	send(ca, 0xc000);
	CHECK_EQ(seen_of(sw[0])->num, 1);
	test_free(fabric);
}

static void test_vl(void)
{
	struct pair p = new_pair();
	struct port *out = &p.sw[0]->ports[3];
	uint8_t map[8];
	struct packet pkt;

	/* Four data VLs: SL n goes to n mod 4 until a table says otherwise. */
	out->oper_vls = 3;
	port_get_sl2vl(out, 1, map);
	CHECK_EQ(map[2], 0x01);
	p.sw[1]->ports[2].oper_vls = 5;
	make_datagram(&pkt, 1, 4);
	packet_lrh(&pkt)->sl_lnh |= 6 << 4;
	port_xmit(&p.ca[0]->ports[1], &pkt);
	CHECK_EQ(seen_of(p.ca[3])->vl, 6);
	CHECK_EQ(port_vl(&p.sw[0]->ports[1], out, 6), 2);

	/* A table of one way in leaves the other ways alone. */
	memset(map, 0x33, sizeof(map));
	map[3] = 0xf3;
	CHECK(!port_set_sl2vl(out, 1, map));
	CHECK_EQ(port_vl(&p.sw[0]->ports[1], out, 5), 3);
	CHECK_EQ(port_vl(&p.sw[0]->ports[2], out, 5), 1);
	CHECK_EQ(port_set_sl2vl(out, 5, map), -ERANGE);

	/* VL 15, and a VL that isn't operational, are discarded. */
	make_datagram(&pkt, 1, 4);
	packet_lrh(&pkt)->sl_lnh |= 6 << 4;
	port_xmit(&p.ca[0]->ports[1], &pkt);
	CHECK_EQ(p.sw[0]->ports[1].cnt.rcv_switch_relay_errors, 1);
	out->oper_vls = 2;
	send(p.ca[0], 4);
	CHECK_EQ(p.sw[0]->ports[1].cnt.rcv_switch_relay_errors, 2);
	CHECK_EQ(seen_of(p.ca[3])->num, 1);
	test_free(p.fabric);
}

static int send_pkey(struct node *ca, uint16_t dlid, uint16_t pkey)
{
	struct packet pkt;

	make_datagram(&pkt, ca->ports[1].lid, dlid);
	packet_bth(&pkt)->pkey = htobe16(pkey);
	return port_xmit(&ca->ports[1], &pkt);
}

static void test_partitions(void)
{
	struct pair p = new_pair();
	struct port *in = &p.sw[0]->ports[1], *out = &p.sw[0]->ports[2];

	CHECK_EQ(port_num_pkeys(in), p.sw[0]->sw->part_enforce_cap);
	CHECK(!port_set_pkey(in, 1, 0x8001));
	CHECK(!port_set_pkey(out, 1, 0x0001));
	CHECK_EQ(port_pkey(in, 0), PKEY_DEFAULT);
	CHECK_EQ(port_pkey(in, 1), 0x8001);
	/* Not enforced: anything passes. */
	send_pkey(p.ca[0], 2, 0x8009);
	CHECK_EQ(seen_of(p.ca[1])->num, 1);
	in->part_enforce = PART_ENFORCE_IN;
	out->part_enforce = PART_ENFORCE_OUT;
	send_pkey(p.ca[0], 2, 0x8009);
	CHECK_EQ(in->cnt.rcv_constraint_errors, 1);
	send_pkey(p.ca[0], 2, 0x8001);
	CHECK_EQ(seen_of(p.ca[1])->num, 2);
	/* Two limited members don't talk: in lets it pass, out doesn't. */
	send_pkey(p.ca[0], 2, 0x0001);
	CHECK_EQ(in->cnt.rcv_constraint_errors, 1);
	CHECK_EQ(out->cnt.xmit_constraint_errors, 1);
	CHECK_EQ(seen_of(p.ca[1])->num, 2);
	CHECK_EQ(port_set_pkey(in, 32, 1), -ERANGE);
	test_free(p.fabric);
}

static void test_mtu(void)
{
	static uint8_t payload[4096];
	struct pair p = new_pair();
	struct packet pkt;

	p.sw[0]->ports[3].neighbor_mtu = IBV_MTU_1024;
	make_packet(&pkt, 1, 4, 4, 0, payload, 2048);
	CHECK_EQ(port_xmit(&p.ca[0]->ports[1], &pkt), 0);
	CHECK_EQ(p.sw[0]->ports[3].cnt.xmit_discards, 1);
	make_packet(&pkt, 1, 4, 4, 0, payload, 1024);
	CHECK_EQ(port_xmit(&p.ca[0]->ports[1], &pkt), 0);
	CHECK_EQ(seen_of(p.ca[3])->num, 1);
	p.ca[0]->ports[1].neighbor_mtu = IBV_MTU_256;
	CHECK_EQ(port_xmit(&p.ca[0]->ports[1], &pkt), -EMSGSIZE);
	/* Segments that fit may be many. */
	p.ca[0]->ports[1].neighbor_mtu = IBV_MTU_1024;
	make_packet(&pkt, 1, 4, 4, 0, payload, 4096);
	pkt.gso_size = 1024;
	pkt.gso_segs = 4;
	CHECK_EQ(port_xmit(&p.ca[0]->ports[1], &pkt), 0);
	CHECK_EQ(seen_of(p.ca[3])->num, 2);
	CHECK_EQ(p.ca[3]->ports[1].cnt.rcv_pkts, 5);
	/* 4 times LRH, BTH, ICRC and payload, after the one of 1024 */
	CHECK_EQ(p.ca[3]->ports[1].cnt.rcv_data, 5 * (24 + 1024) / 4);
	test_free(p.fabric);
}

static void test_directed(void)
{
	struct pair p = new_pair();
	struct packet pkt;

	/* A directed route's packet is for the SMI of each switch, told where it came in. */
	make_datagram(&pkt, LID_PERMISSIVE, LID_PERMISSIVE);
	pkt.vl = 15;
	CHECK_EQ(port_xmit(&p.ca[0]->ports[1], &pkt), 0);
	CHECK_EQ(seen_of(p.sw[0])->num, 1);
	CHECK(seen_of(p.sw[0])->port == &p.sw[0]->ports[1]);
	/* From the switch to a CA. */
	make_datagram(&pkt, LID_PERMISSIVE, LID_PERMISSIVE);
	pkt.vl = 15;
	CHECK_EQ(port_xmit(&p.sw[0]->ports[2], &pkt), 0);
	CHECK_EQ(seen_of(p.ca[1])->num, 1);
	/* Data with that LID isn't. */
	make_datagram(&pkt, 1, LID_PERMISSIVE);
	CHECK_EQ(port_xmit(&p.ca[0]->ports[1], &pkt), 0);
	CHECK_EQ(p.sw[0]->ports[1].cnt.rcv_switch_relay_errors, 1);
	test_free(p.fabric);
}

static void test_tables(void)
{
	struct pair p = new_pair();
	struct node *sw = p.sw[0];

	CHECK_EQ(switch_get_lft(sw, 0xbfff), 255);
	CHECK(!switch_set_lft(sw, 0xbfff, 255));
	CHECK_EQ(sw->sw->lft_size, 128);
	CHECK(!switch_set_lft(sw, 0xbfff, 3));
	CHECK_EQ(switch_get_lft(sw, 0xbfff), 3);
	CHECK_EQ(switch_get_lft(sw, 0xbffe), 255);
	CHECK_EQ(switch_get_lft(sw, 4), 3);
	CHECK_EQ(switch_set_lft(sw, 0xc000, 3), -ERANGE);
	CHECK_EQ(switch_set_mft(sw, 0xbfff, 0, 1), -ERANGE);
	CHECK_EQ(switch_set_mft(sw, 0xc000, 1, 1), -ERANGE);
	CHECK(!switch_set_mft(sw, 0xc000 + 4095, 0, 9));
	CHECK_EQ(switch_set_mft(sw, 0xc000 + 4096, 0, 9), -ERANGE);
	CHECK_EQ(switch_get_mft(sw, 0xc000 + 4095, 0), 9);
	CHECK_EQ(switch_get_mft(sw, 0xc000, 0), 0);
	test_free(p.fabric);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "unicast", test_unicast },
		{ "wrong-route", test_wrong_route },
		{ "lmc", test_lmc },
		{ "loop", test_loop },
		{ "multicast", test_multicast },
		{ "multicast-default", test_multicast_default },
		{ "multicast-storm", test_multicast_storm },
		{ "vl", test_vl },
		{ "partitions", test_partitions },
		{ "mtu", test_mtu },
		{ "directed", test_directed },
		{ "tables", test_tables },
	};

	return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
