/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports, links and nodes: the state machine, training, what is reported, what a
 * removal leaves behind, and the tables' defaults.
 */
#include "fabric-test.h"

/* A CA on port 2 of a switch. */
struct bed {
	struct fabric *fabric;
	struct node *ca, *sw;
	struct port *p, *q;		/* the CA's end, the switch's */
	struct link *link;
};

static struct bed new_bed(void)
{
	struct bed b = { .fabric = test_fabric() };

	b.ca = test_node(b.fabric, NODE_CA, "H-1", 1);
	b.sw = test_node(b.fabric, NODE_SWITCH, "S-1", 36);
	b.p = &b.ca->ports[1];
	b.q = &b.sw->ports[2];
	b.link = link_new(b.p, b.q);
	CHECK(b.link);
	return b;
}

static void forget_events(struct bed *b)
{
	seen_of(b->ca)->events = seen_of(b->ca)->num_events = 0;
	seen_of(b->sw)->events = seen_of(b->sw)->num_events = 0;
	b->sw->sw->port_state_change = false;
}

static void force(struct bed *b, enum port_state state)
{
	port_set_state(b->p, PORT_DOWN);
	CHECK_EQ(b->p->state, PORT_INIT);
	if (state >= PORT_ARMED)
		CHECK_EQ(port_set_state(b->p, PORT_ARMED), 0);
	if (state == PORT_ACTIVE)
		CHECK_EQ(port_set_state(b->p, PORT_ACTIVE), 0);
	if (state == PORT_DOWN)
		link_set_down(b->link, true);
	CHECK_EQ(b->p->state, state);
}

static void test_states(void)
{
	/* What follows from setting a state in a state; 0: refused. */
	static const enum port_state table[5][6] = {
		[PORT_DOWN] = { PORT_DOWN, PORT_DOWN, 0, 0, 0, 0 },
		[PORT_INIT] = { PORT_INIT, PORT_INIT, 0, PORT_ARMED, 0, 0 },
		[PORT_ARMED] = { PORT_ARMED, PORT_INIT, 0, PORT_ARMED, PORT_ACTIVE, 0 },
		[PORT_ACTIVE] = { PORT_ACTIVE, PORT_INIT, 0, 0, PORT_ACTIVE, 0 },
	};

	for (enum port_state from = PORT_DOWN; from <= PORT_ACTIVE; from++)
		for (unsigned int to = 0; to < 6; to++) {
			struct bed b = new_bed();
			int err;

			force(&b, from);
			err = port_set_state(b.p, to);
			CHECK_EQ(err, table[from][to] ? 0 : -EINVAL);
			CHECK_EQ(b.p->state, table[from][to] ? table[from][to] : from);
			test_free(b.fabric);
		}
}

static void test_port0(void)
{
	struct bed b = new_bed();
	struct port *port0 = &b.sw->ports[0];

	CHECK_EQ(port0->state, PORT_ACTIVE);
	CHECK_EQ(port0->phys_state, PHYS_LINKUP);
	CHECK_EQ(port_set_state(port0, PORT_ARMED), 0);
	CHECK_EQ(port0->state, PORT_ACTIVE);
	CHECK_EQ(port_set_state(port0, PORT_DOWN), -EINVAL);
	CHECK_EQ(port_set_phys(port0, PHYS_DISABLED), -EINVAL);
	CHECK(!link_new(port0, &b.sw->ports[3]));
	CHECK_EQ(errno, EINVAL);
	CHECK(port_end(&b.sw->ports[7]) == port0);
	CHECK(port_end(b.p) == b.p);
	test_free(b.fabric);
}

static void test_events(void)
{
	struct bed b = new_bed();

	/* Training was reported on both ends, and is the switch's to report to the SM. */
	CHECK_EQ(seen_of(b.ca)->events, PORT_EV_STATE);
	CHECK(b.sw->sw->port_state_change);
	forget_events(&b);
	/* What the SM sets isn't. */
	port_set_state(b.q, PORT_ARMED);
	port_set_state(b.q, PORT_ARMED);
	port_set_state(b.q, PORT_ACTIVE);
	CHECK_EQ(seen_of(b.sw)->num_events, 2);
	CHECK(!b.sw->sw->port_state_change);
	/* The other end, down by hand: both learn. */
	forget_events(&b);
	CHECK_EQ(port_set_phys(b.p, PHYS_DISABLED), 0);
	CHECK_EQ(b.q->state, PORT_DOWN);
	CHECK_EQ(b.q->phys_state, PHYS_POLLING);
	CHECK(b.sw->sw->port_state_change);
	CHECK_EQ(seen_of(b.sw)->num_events, 1);
	CHECK_EQ(b.p->cnt.link_downed, 1);
	CHECK_EQ(b.q->cnt.link_downed, 1);
	test_free(b.fabric);
}

static void test_disable(void)
{
	struct bed b = new_bed();

	port_set_phys(b.p, PHYS_DISABLED);
	CHECK_EQ(b.p->phys_state, PHYS_DISABLED);
	/* Neither its neighbour nor the cable nor a state wakes it. */
	port_set_phys(b.q, PHYS_POLLING);
	port_set_state(b.q, PORT_DOWN);
	link_set_down(b.link, true);
	link_set_down(b.link, false);
	port_retrain(b.q);
	CHECK_EQ(port_set_state(b.p, PORT_DOWN), 0);
	CHECK_EQ(b.p->phys_state, PHYS_DISABLED);
	CHECK_EQ(b.q->phys_state, PHYS_POLLING);
	CHECK_EQ(port_set_state(b.p, PORT_ARMED), -EINVAL);
	/* It counts once, and comes back when it is told to poll. */
	CHECK_EQ(b.p->cnt.link_downed, 1);
	CHECK_EQ(port_set_phys(b.p, PHYS_POLLING), 0);
	CHECK_EQ(b.p->state, PORT_INIT);
	CHECK_EQ(b.q->state, PORT_INIT);
	CHECK_EQ(b.q->phys_state, PHYS_LINKUP);
	CHECK_EQ(port_set_phys(b.p, PHYS_LINKUP), -EINVAL);
	CHECK_EQ(port_set_phys(b.p, PHYS_NOP), 0);
	test_free(b.fabric);
}

static void test_sleep(void)
{
	struct bed b = new_bed();

	/* Two that sleep don't wake each other; one that polls wakes the other. */
	b.p->link_down_default = b.q->link_down_default = PHYS_SLEEP;
	link_set_down(b.link, true);
	CHECK_EQ(b.p->phys_state, PHYS_SLEEP);
	link_set_down(b.link, false);
	CHECK_EQ(b.p->state, PORT_DOWN);
	port_set_phys(b.q, PHYS_POLLING);
	CHECK_EQ(b.p->state, PORT_INIT);
	test_free(b.fabric);
}

static void test_pulled(void)
{
	struct bed b = new_bed();

	test_activate(b.fabric);
	link_set_down(b.link, true);
	CHECK_EQ(b.p->state, PORT_DOWN);
	CHECK_EQ(b.q->state, PORT_DOWN);
	CHECK_EQ(b.q->phys_state, PHYS_POLLING);
	CHECK_EQ(port_set_state(b.p, PORT_DOWN), 0);
	port_set_phys(b.p, PHYS_POLLING);
	CHECK_EQ(b.p->state, PORT_DOWN);
	link_set_down(b.link, false);
	CHECK_EQ(b.p->state, PORT_INIT);
	CHECK_EQ(b.p->cnt.link_downed, 1);
	test_free(b.fabric);
}

static void test_training(void)
{
	struct bed b = new_bed();

	CHECK_EQ(b.p->width_active, WIDTH_4X);
	CHECK_EQ(b.p->speed_ext_active, SPEED_EDR);
	CHECK_EQ(b.p->speed_active, SPEED_QDR);
	CHECK_EQ(b.p->neighbor_mtu, IBV_MTU_4096);

	/* The best that both can and may. */
	b.q->speed_ext_enabled = SPEED_FDR | SPEED_HDR;
	port_retrain(b.q);
	CHECK_EQ(b.p->speed_ext_active, SPEED_FDR);
	b.q->speed_ext_enabled = 0;
	b.p->width_supported = b.p->width_enabled = WIDTH_1X | WIDTH_2X | WIDTH_12X;
	b.q->width_supported = b.q->width_enabled = 31;
	b.q->mtu_cap = IBV_MTU_1024;
	b.p->vl_cap = 2;
	port_retrain(b.q);
	CHECK_EQ(b.q->width_active, WIDTH_12X);
	CHECK_EQ(b.q->speed_ext_active, 0);
	CHECK_EQ(b.q->speed_active, SPEED_QDR);
	CHECK_EQ(b.p->neighbor_mtu, IBV_MTU_1024);
	CHECK_EQ(b.q->oper_vls, 2);
	/* Extended speeds alone, XDR. */
	b.p->speed_ext_supported = b.q->speed_ext_supported = 31;
	b.p->speed_ext_enabled = b.q->speed_ext_enabled = SPEED_XDR;
	b.p->speed_enabled = SPEED_SDR;
	b.q->speed_enabled = SPEED_DDR;
	b.p->width_enabled = WIDTH_2X;
	port_retrain(b.p);
	CHECK_EQ(b.p->speed_ext_active, SPEED_XDR);
	CHECK_EQ(b.p->speed_active, SPEED_QDR);
	CHECK_EQ(b.p->width_active, WIDTH_2X);
	/* Nothing in common: both poll. */
	b.q->speed_ext_enabled = 0;
	port_retrain(b.q);
	CHECK_EQ(b.p->state, PORT_DOWN);
	CHECK_EQ(b.p->phys_state, PHYS_POLLING);
	b.q->speed_enabled = SPEED_SDR;
	port_retrain(b.q);
	CHECK_EQ(b.p->speed_ext_active, 0);
	CHECK_EQ(b.p->speed_active, SPEED_SDR);
	test_free(b.fabric);
}

static int send_on(struct port *port, uint8_t vl)
{
	struct packet pkt;

	make_datagram(&pkt, 1, vl == 15 ? LID_PERMISSIVE : 2);
	pkt.vl = vl;
	return port_xmit(port, &pkt);
}

/* Data in INIT, ARMED and ACTIVE; SMPs in all of them but DOWN. */
static void test_traffic(void)
{
	struct bed b = new_bed();

	b.sw->ports[0].lid = 2;
	CHECK_EQ(send_on(b.p, 0), -ENETDOWN);
	CHECK_EQ(b.p->cnt.xmit_discards, 1);
	CHECK_EQ(send_on(b.p, 15), 0);
	port_set_state(b.p, PORT_ARMED);
	CHECK_EQ(send_on(b.p, 0), -ENETDOWN);
	port_set_state(b.p, PORT_ACTIVE);
	/* The far end is in INIT: it takes no data. */
	CHECK_EQ(seen_of(b.sw)->num, 1);
	CHECK_EQ(send_on(b.p, 0), 0);
	CHECK_EQ(seen_of(b.sw)->num, 1);
	/* Armed, it takes it, and is ACTIVE by it; not by an SMP. */
	port_set_state(b.q, PORT_ARMED);
	forget_events(&b);
	CHECK_EQ(send_on(b.p, 15), 0);
	CHECK_EQ(b.q->state, PORT_ARMED);
	CHECK_EQ(send_on(b.p, 0), 0);
	CHECK_EQ(seen_of(b.sw)->num, 3);
	CHECK_EQ(b.q->state, PORT_ACTIVE);
	CHECK_EQ(seen_of(b.sw)->num_events, 1);
	CHECK(!b.sw->sw->port_state_change);
	link_set_down(b.link, true);
	CHECK_EQ(send_on(b.p, 15), -ENETDOWN);
	CHECK_EQ(send_on(&b.sw->ports[9], 15), -ENETDOWN);
	test_free(b.fabric);
}

static void test_links(void)
{
	struct bed b = new_bed();
	struct link *loop;
	char name[64];

	CHECK(!link_new(b.p, &b.sw->ports[3]) && errno == EBUSY);
	CHECK(!link_new(&b.sw->ports[3], &b.sw->ports[3]) && errno == EINVAL);
	loop = link_new(&b.sw->ports[3], &b.sw->ports[4]);
	CHECK(loop);
	CHECK_EQ(b.sw->ports[4].state, PORT_INIT);
	CHECK_EQ(link_name(b.link, name, sizeof(name)), 11);
	CHECK(!strcmp(name, "H-1:1-S-1:2"));
	CHECK(fabric_find_link(b.fabric, name) == b.link);
	CHECK(fabric_find_link(b.fabric, "S-1:3-S-1:4") == loop);
	CHECK(!fabric_find_link(b.fabric, "S-1:4-S-1:3"));
	CHECK(!fabric_find_link(b.fabric, "H-1:1"));
	CHECK(!fabric_find_link(b.fabric, "H-1:1-S-1:22"));
	CHECK(fabric_find_port(b.fabric, "S-1", 0) == &b.sw->ports[0]);
	CHECK(!fabric_find_port(b.fabric, "H-1", 0));
	CHECK(!fabric_find_port(b.fabric, "H-1", 2));
	link_remove(b.link);
	CHECK(!b.fabric->links[0] && b.fabric->links[1] == loop);
	CHECK(!b.p->link && !b.p->peer && !b.q->link);
	CHECK_EQ(b.p->state, PORT_DOWN);
	CHECK_EQ(b.p->phys_state, PHYS_POLLING);
	CHECK(link_new(b.p, &b.sw->ports[5]));
	CHECK_EQ(b.p->state, PORT_INIT);
	test_free(b.fabric);
}

static void test_names_with_colons(void)
{
	struct fabric *fabric = test_fabric();
	struct node *a = test_node(fabric, NODE_CA, "a:1-b:2", 1);
	struct node *b = test_node(fabric, NODE_CA, "a", 1);
	struct link *link;

	link = link_new(&b->ports[1], &a->ports[1]);
	CHECK(fabric_find_link(fabric, "a:1-a:1-b:2:1") == link);
	test_free(fabric);
}

static void test_nodes(void)
{
	struct bed b = new_bed();
	struct node *node;
	char id[16];

	CHECK(!node_new(b.fabric, NODE_CA, "H-1", 1, 0) && errno == EEXIST);
	CHECK(!node_new(b.fabric, NODE_CA, "H-2", 1, b.sw->guid) && errno == EEXIST);
	CHECK(!node_new(b.fabric, NODE_CA, "H-2", 0, 0) && errno == EINVAL);
	CHECK(!node_new(b.fabric, NODE_CA, "H-2", 255, 0) && errno == EINVAL);
	CHECK(!node_new(b.fabric, NODE_CA, "", 1, 0) && errno == EINVAL);
	/* A GUID that is taken is passed over. */
	CHECK(node_new(b.fabric, NODE_CA, "X", 1, b.fabric->next_guid[NODE_CA]));
	b.fabric->nodes[2]->priv = calloc(1, sizeof(struct seen));
	node = test_node(b.fabric, NODE_CA, "H-2", 2);
	CHECK(node->guid != b.fabric->nodes[2]->guid);
	CHECK_EQ(node->ports[2].guid, node->guid + 2);
	CHECK_EQ(b.sw->ports[0].guid, b.sw->guid);
	CHECK_EQ(b.q->guid, 0);
	CHECK(fabric_find_guid(b.fabric, b.ca->guid) == b.ca);

	test_activate(b.fabric);
	forget_events(&b);
	node_remove(b.ca);
	CHECK(!fabric_find(b.fabric, "H-1"));
	CHECK(!b.fabric->nodes[0] && !b.fabric->links[0]);
	CHECK_EQ(b.q->state, PORT_DOWN);
	CHECK_EQ(seen_of(b.sw)->num_events, 1);
	CHECK(fabric_find(b.fabric, "S-1") == b.sw);
	for (unsigned int i = 0; i < 1000; i++) {
		snprintf(id, sizeof(id), "N%u", i);
		test_node(b.fabric, NODE_CA, id, 1);
	}
	CHECK(fabric_find(b.fabric, "N999") && fabric_find(b.fabric, "N0"));
	test_free(b.fabric);
}

static void test_port_tables(void)
{
	struct bed b = new_bed();
	uint8_t table[64];

	CHECK_EQ(port_pkey(b.p, 0), 0xffff);
	CHECK_EQ(port_pkey(b.p, 1), 0);
	CHECK_EQ(port_pkey(b.p, 1000), 0);
	CHECK(!b.p->pkeys);
	CHECK(port_find_pkey(b.p, 0x7fff) >= 0 && port_find_pkey(b.p, 0x8001) < 0);
	CHECK_EQ(port_set_pkey(b.p, 31, 0x8005), 0);
	CHECK_EQ(port_set_pkey(b.p, 0, 0x7fff), 0);
	CHECK(port_find_pkey(b.p, 0x7fff) < 0 && port_find_pkey(b.p, 0xffff) >= 0);
	/* An empty entry matches nothing. */
	CHECK(port_find_pkey(b.p, 0x8000) < 0 && port_find_pkey(b.p, 0) < 0);
	CHECK_EQ(port_set_pkey(b.p, 32, 1), -ERANGE);

	CHECK_EQ(port_gid_guid(b.p, 0), b.p->guid);
	CHECK_EQ(port_gid_guid(b.p, 1), 0);
	CHECK_EQ(port_set_guid(b.p, 0, 1), -ERANGE);
	CHECK_EQ(port_set_guid(b.p, 32, 1), -ERANGE);
	CHECK_EQ(port_set_guid(b.p, 31, 7), 0);
	CHECK_EQ(port_gid_guid(b.p, 31), 7);
	CHECK_EQ(port_gid_guid(b.p, 32), 0);

	CHECK_EQ(port_get_vlarb(b.p, 0, table), 0);
	CHECK(table[1] && !table[63]);
	memset(table, 5, sizeof(table));
	CHECK_EQ(port_set_vlarb(b.p, 2, table), 0);
	CHECK_EQ(port_get_vlarb(b.p, 1, table), 0);
	CHECK_EQ(table[1], 0);
	CHECK_EQ(port_get_vlarb(b.p, 2, table), 0);
	CHECK_EQ(table[63], 5);
	CHECK_EQ(port_get_vlarb(b.p, 4, table), -ERANGE);
	CHECK_EQ(port_set_vlarb(b.p, 4, table), -ERANGE);
	test_free(b.fabric);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "states", test_states },
		{ "port0", test_port0 },
		{ "events", test_events },
		{ "disable", test_disable },
		{ "sleep", test_sleep },
		{ "pulled", test_pulled },
		{ "training", test_training },
		{ "traffic", test_traffic },
		{ "links", test_links },
		{ "names-with-colons", test_names_with_colons },
		{ "nodes", test_nodes },
		{ "port-tables", test_port_tables },
	};

	return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
