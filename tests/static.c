/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The static subnet: LIDs, shortest routes, multicast trees, on small fabrics
 * and on random ones.  static [SEED]
 */
#include "fabric/fabric.h"
#include "ibfs/ibfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"

#define MAX_DEPTH 64

static const struct node_ops no_ops;

static struct fabric *new_fabric(void)
{
	static struct ibfs ibfs;
	struct fabric *f = fabric_new(&ibfs, &no_ops);

	if (!f)
		abort();
	return f;
}

static struct node *add(struct fabric *f, enum node_type type, const char *kind, unsigned int num,
			unsigned int ports)
{
	char id[32];
	struct node *node;

	snprintf(id, sizeof(id), "%s%u", kind, num);
	node = node_new(f, type, id, ports, 0);
	if (!node)
		abort();
	return node;
}

static struct link *plug(struct node *a, unsigned int pa, struct node *b, unsigned int pb)
{
	struct link *link = link_new(&a->ports[pa], &b->ports[pb]);

	if (!link)
		abort();
	return link;
}

static void go_static(struct fabric *f)
{
	char *err = NULL;

	if (static_subnet(f, &err))
		printf("%s\n", err);
	CHECK(!err);
	CHECK(f->static_owned);
	free(err);
}

/* How many cables from each switch to one of them, by index; -1: no way. */
static int *distances(struct fabric *f, struct node *to)
{
	struct node **queue = calloc(f->num_nodes, sizeof(*queue));
	int *dist = malloc(f->num_nodes * sizeof(*dist));
	unsigned int i, head = 0, tail = 0;

	for (i = 0; i < f->num_nodes; i++)
		dist[i] = -1;
	dist[to->index] = 0;
	queue[tail++] = to;
	while (head < tail) {
		struct node *node = queue[head++];

		for (i = 1; i <= node->num_ports; i++) {
			struct port *port = &node->ports[i];

			if (!port->peer || port->phys_state != PHYS_LINKUP || !port->peer->node->sw ||
			    dist[port->peer->node->index] >= 0)
				continue;
			dist[port->peer->node->index] = dist[node->index] + 1;
			queue[tail++] = port->peer->node;
		}
	}
	free(queue);
	return dist;
}

static struct node *switch_of(struct port *port)
{
	if (port->node->sw)
		return port->node;
	if (!port->peer || port->phys_state != PHYS_LINKUP || !port->peer->node->sw)
		return NULL;
	return port->peer->node;
}

/* Each switch sends a LID a step nearer to where it is, or nowhere. */
static void check_lid(struct fabric *f, struct port *end, uint16_t lid, const int *dist)
{
	unsigned int i;

	for (i = 0; i < f->num_nodes; i++) {
		struct node *node = f->nodes[i];
		uint8_t out;

		if (!node || !node->sw)
			continue;
		out = switch_get_lft(node, lid);
		if (dist[i] < 0) {
			CHECK(out == 255);
		} else if (!dist[i]) {
			CHECK(end->node->sw ? !out : out == end->peer->num);
		} else {
			CHECK(out && out <= node->num_ports);
			CHECK(node->ports[out].state == PORT_ACTIVE);
			CHECK(dist[node->ports[out].peer->node->index] == dist[i] - 1);
		}
	}
}

static void check_routes(struct fabric *f)
{
	unsigned int i, j, k;

	for (i = 0; i < f->num_nodes; i++) {
		struct node *node = f->nodes[i];

		for (j = 0; node && j <= node->num_ports; j++) {
			struct port *port = &node->ports[j];
			struct node *sw = switch_of(port);
			int *dist;

			if (port != port_end(port) || (!j && !node->sw) || !sw)
				continue;
			CHECK(port->lid && port->lid + (1 << port->lmc) <= 0xc000);
			dist = distances(f, sw);
			for (k = 0; k < 1u << port->lmc; k++)
				check_lid(f, port, port->lid + k, dist);
			free(dist);
		}
	}
}

static void test_lids(void)
{
	struct fabric *f = new_fabric();
	struct node *sw = add(f, NODE_SWITCH, "s", 0, 8);
	struct node *h[4];
	unsigned int i;

	for (i = 0; i < 4; i++) {
		h[i] = add(f, NODE_CA, "h", i, 2);
		plug(h[i], 1, sw, i + 1);
	}
	h[0]->ports[1].lid = 10;
	h[1]->ports[1].lid = 10;	/* taken */
	h[2]->ports[1].lid = 18;	/* not a multiple of 1 << lmc */
	h[2]->ports[1].lmc = 2;
	h[3]->ports[1].lid = 0xbfff;	/* the last one */
	go_static(f);
	CHECK(sw->ports[0].lid == 1);
	CHECK(h[0]->ports[1].lid == 10);
	CHECK(h[1]->ports[1].lid == 2);
	CHECK(h[2]->ports[1].lid == 4);
	CHECK(h[3]->ports[1].lid == 0xbfff);
	CHECK(sw->sw->lft_top == 0xbfff && sw->sw->lft_size == 0xc000);
	CHECK(!h[0]->ports[2].lid);
	CHECK(h[0]->ports[1].state == PORT_ACTIVE && sw->ports[1].state == PORT_ACTIVE);
	CHECK(h[0]->ports[2].state == PORT_DOWN && sw->ports[8].state == PORT_DOWN);
	CHECK(!h[0]->ports[1].sm_lid);
	check_routes(f);
	fabric_free(f);
}

static void test_too_many(void)
{
	struct fabric *f = new_fabric();
	struct node *sw[2] = { add(f, NODE_SWITCH, "s", 0, 254), add(f, NODE_SWITCH, "s", 1, 254) };
	char *err = NULL;
	unsigned int i;

	plug(sw[0], 254, sw[1], 254);
	for (i = 0; i < 400; i++) {
		struct node *h = add(f, NODE_CA, "h", i, 1);

		plug(h, 1, sw[i / 200], 1 + i % 200);
		h->ports[1].lmc = 7;
	}
	CHECK(static_subnet(f, &err) == -ENOSPC);
	CHECK(err && strstr(err, "needs 51202 LIDs, and there are 49151"));
	CHECK(!f->static_owned);
	free(err);
	for (i = 380; i < 400; i++)
		node_remove(fabric_find(f, f->nodes[i + 2]->id));
	go_static(f);
	fabric_free(f);
}

/* A ring of switches with a host on each. */
static struct fabric *ring(unsigned int num)
{
	struct fabric *f = new_fabric();
	struct node *sw[16], *h;
	unsigned int i;

	for (i = 0; i < num; i++) {
		sw[i] = add(f, NODE_SWITCH, "s", i, 40);
		h = add(f, NODE_CA, "h", i, 1);
		plug(h, 1, sw[i], 33);
	}
	for (i = 0; i < num; i++)
		plug(sw[i], 1, sw[(i + 1) % num], 2);
	return f;
}

static void test_refresh(void)
{
	struct fabric *f = ring(6);
	struct node *s0 = fabric_find(f, "s0"), *h3 = fabric_find(f, "h3"), *h9;
	uint16_t lid;

	go_static(f);
	check_routes(f);
	lid = h3->ports[1].lid;
	link_set_down(s0->ports[1].link, true);
	static_subnet_refresh(f);
	check_routes(f);
	CHECK(h3->ports[1].lid == lid);
	CHECK(switch_get_lft(s0, fabric_find(f, "h1")->ports[1].lid) == 2);
	link_set_down(s0->ports[1].link, false);
	CHECK(s0->ports[1].state == PORT_INIT);
	h9 = add(f, NODE_CA, "h", 9, 2);
	plug(h9, 2, s0, 34);
	static_subnet_refresh(f);
	check_routes(f);
	CHECK(s0->ports[1].state == PORT_ACTIVE);
	CHECK(h9->ports[2].lid && h9->ports[2].state == PORT_ACTIVE && !h9->ports[1].lid);
	node_remove(fabric_find(f, "s4"));
	static_subnet_refresh(f);
	check_routes(f);
	/* A subnet manager has it now. */
	f->static_owned = false;
	link_set_down(s0->ports[1].link, true);
	link_set_down(s0->ports[1].link, false);
	static_subnet_refresh(f);
	CHECK(s0->ports[1].state == PORT_INIT);
	fabric_free(f);
}

static void test_parts(void)
{
	struct fabric *f = ring(4);
	struct node *a, *b;

	link_set_down(fabric_find(f, "s0")->ports[1].link, true);
	link_set_down(fabric_find(f, "s2")->ports[1].link, true);
	a = add(f, NODE_CA, "a", 0, 1);
	b = add(f, NODE_CA, "b", 0, 1);
	plug(a, 1, b, 1);
	go_static(f);
	check_routes(f);
	CHECK(a->ports[1].lid && b->ports[1].lid && a->ports[1].state == PORT_ACTIVE);
	CHECK(switch_get_lft(fabric_find(f, "s0"), fabric_find(f, "h1")->ports[1].lid) == 255);
	fabric_free(f);
}

/* Multicast: who gets a packet, by node index */

static void flood(struct node *node, const struct port *in, uint16_t mlid, unsigned int *got,
		  unsigned int depth)
{
	unsigned int i;

	CHECK(depth < MAX_DEPTH);
	if (depth >= MAX_DEPTH)
		return;
	for (i = 0; i <= node->num_ports; i++) {
		struct port *port = &node->ports[i];

		if (port == in || !(switch_get_mft(node, mlid, i / 32) & 1u << i % 32))
			continue;
		if (!i) {
			got[node->index]++;
			continue;
		}
		CHECK(port->state == PORT_ACTIVE);
		if (port->state != PORT_ACTIVE)
			continue;
		if (port->peer->node->sw)
			flood(port->peer->node, port->peer, mlid, got, depth + 1);
		else
			got[port->peer->node->index]++;
	}
}

/* From each end port, members or not: each member gets one, and nobody else. */
static void check_mcast(struct fabric *f, uint16_t mlid, const bool *member)
{
	unsigned int i, j;

	for (i = 0; i < f->num_nodes; i++) {
		struct node *node = f->nodes[i], *sw;
		unsigned int *got;
		int *dist;

		sw = node ? switch_of(&node->ports[node->sw ? 0 : 1]) : NULL;
		if (!sw)
			continue;
		got = calloc(f->num_nodes, sizeof(*got));
		dist = distances(f, sw);
		flood(sw, node->sw ? &node->ports[0] : node->ports[1].peer, mlid, got, 0);
		for (j = 0; j < f->num_nodes; j++) {
			struct node *to = f->nodes[j], *at;

			at = to ? switch_of(&to->ports[to->sw ? 0 : 1]) : NULL;
			if (at && i != j)
				CHECK(got[j] == (member[j] && dist[at->index] >= 0));
		}
		free(dist);
		free(got);
	}
}

static void test_mcast(void)
{
	static const uint8_t g1[16] = { 0xff, 0x12, 1 }, g2[16] = { 0xff, 0x12, 2 };
	struct fabric *f = ring(6);
	struct port *p1 = &fabric_find(f, "h1")->ports[1], *p3 = &fabric_find(f, "h3")->ports[1];
	struct port *s5 = &fabric_find(f, "s5")->ports[0];
	bool member[64] = { false };

	CHECK(static_mcast_attach(f, p1, g1) == -EOPNOTSUPP);
	go_static(f);
	CHECK(static_mcast_mlid(f, g1) == -ENOENT);
	CHECK(static_mcast_attach(f, p1, g1) == 0xc000);
	CHECK(static_mcast_attach(f, p1, g1) == 0xc000);
	CHECK(static_mcast_attach(f, p3, g2) == 0xc001);
	CHECK(static_mcast_attach(f, p3, g1) == 0xc000);
	CHECK(static_mcast_attach(f, s5, g1) == 0xc000);
	CHECK(static_mcast_mlid(f, g2) == 0xc001);
	member[p1->node->index] = member[p3->node->index] = member[s5->node->index] = true;
	check_mcast(f, 0xc000, member);
	link_set_down(fabric_find(f, "s2")->ports[1].link, true);
	static_subnet_refresh(f);
	check_mcast(f, 0xc000, member);
	/* Counted. */
	CHECK(static_mcast_detach(f, p1, g1) == 0);
	check_mcast(f, 0xc000, member);
	CHECK(static_mcast_detach(f, p1, g1) == 0);
	CHECK(static_mcast_detach(f, p1, g1) == -ENOENT);
	member[p1->node->index] = false;
	check_mcast(f, 0xc000, member);
	/* A member that vanishes, a group that does. */
	member[s5->node->index] = false;
	static_node_gone(s5->node);
	static_subnet_refresh(f);
	check_mcast(f, 0xc000, member);
	CHECK(static_mcast_detach(f, p3, g1) == 0);
	CHECK(static_mcast_mlid(f, g1) == -ENOENT);
	check_mcast(f, 0xc000, (bool[64]){ false });
	CHECK(static_mcast_attach(f, p1, g1) == 0xc000);
	f->static_owned = false;
	CHECK(static_mcast_mlid(f, g2) == -EOPNOTSUPP);
	CHECK(static_mcast_detach(f, p3, g2) == 0);
	fabric_free(f);
}

/* Each end port is found by its GUID, by nothing else. */
static void check_guids(struct fabric *f)
{
	unsigned int i, p;

	for (i = 0; i < f->num_nodes; i++) {
		const struct node *node = f->nodes[i];

		for (p = !node || node->sw ? 0 : 1; node && p <= (node->sw ? 0 : node->num_ports); p++)
			CHECK(fabric_find_port_guid(f, node->ports[p].guid) ==
			      (node->ports[p].lid ? &node->ports[p] : NULL));
	}
	CHECK(!fabric_find_port_guid(f, 0) && !fabric_find_port_guid(f, UINT64_MAX));
}

static void test_guids(void)
{
	struct fabric *f = new_fabric();
	struct node *sw = add(f, NODE_SWITCH, "s", 0, 4), *a = add(f, NODE_CA, "a", 0, 2);
	struct node *b = add(f, NODE_CA, "b", 0, 1);
	uint64_t gone = b->ports[1].guid;

	plug(a, 1, sw, 1);
	plug(a, 2, sw, 2);
	plug(b, 1, sw, 3);
	go_static(f);
	check_guids(f);
	/* Two have one GUID: the one with a LID is meant. */
	a->ports[1].guid = gone;
	a->ports[1].lid = 0;
	f->by_port_guid.valid = false;
	CHECK(fabric_find_port_guid(f, gone) == &b->ports[1]);
	node_remove(b);
	CHECK(!fabric_find_port_guid(f, gone));
	b = add(f, NODE_CA, "c", 0, 1);
	plug(b, 1, sw, 3);
	static_subnet_refresh(f);
	CHECK(fabric_find_port_guid(f, b->ports[1].guid) == &b->ports[1]);
	fabric_free(f);
}

static uint64_t seed;

static unsigned int random_below(unsigned int limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % limit;
}

static struct port *free_port(struct node *node)
{
	unsigned int i;

	for (i = 1; i <= node->num_ports; i++)
		if (!node->ports[i].link)
			return &node->ports[i];
	return NULL;
}

/* Switches with cables between any two, also several, and hosts anywhere. */
static struct fabric *random_fabric(unsigned int switches, unsigned int cables, unsigned int hosts)
{
	struct fabric *f = new_fabric();
	unsigned int i;

	for (i = 0; i < switches; i++)
		add(f, NODE_SWITCH, "s", i, 1 + random_below(80));
	for (i = 0; i < hosts; i++) {
		struct node *h = add(f, NODE_CA, "h", i, 1);
		struct port *port = free_port(f->nodes[random_below(switches)]);

		h->ports[1].lmc = random_below(8) ? 0 : random_below(4);
		h->ports[1].lid = random_below(2) ? 0 : random_below(300);
		if (port)
			link_new(&h->ports[1], port);
	}
	for (i = 0; i < cables; i++) {
		struct port *a = free_port(f->nodes[random_below(switches)]);
		struct port *b = free_port(f->nodes[random_below(switches)]);

		if (a && b && a->node != b->node)
			link_new(a, b);
	}
	return f;
}

static void pull_some(struct fabric *f)
{
	unsigned int i;

	for (i = 0; i < 5 && f->num_links; i++) {
		struct link *link = f->links[random_below(f->num_links)];

		link_set_down(link, !link->down);
	}
	static_subnet_refresh(f);
}

static void test_random(void)
{
	struct fabric *f = random_fabric(1 + random_below(150), random_below(400), random_below(60));
	static const uint8_t mgid[16] = { 0xff, 0x15 };
	bool *member = calloc(f->num_nodes, sizeof(*member));
	unsigned int i;

	go_static(f);
	check_routes(f);
	check_guids(f);
	for (i = 0; i < 12; i++) {
		unsigned int index = random_below(f->num_nodes);
		struct node *node = f->nodes[index];
		struct port *port = &node->ports[node->sw ? 0 : 1];

		if (member[index])
			CHECK(!static_mcast_detach(f, port, mgid));
		else
			CHECK(static_mcast_attach(f, port, mgid) == 0xc000);
		member[index] = !member[index];
		check_mcast(f, 0xc000, member);
		if (i % 4 == 3) {
			pull_some(f);
			check_mcast(f, 0xc000, member);
		}
	}
	check_routes(f);
	free(member);
	fabric_free(f);
}

int main(int argc, char **argv)
{
	unsigned int i;

	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	test_lids();
	test_too_many();
	test_refresh();
	test_parts();
	test_mcast();
	test_guids();
	for (i = 0; i < 20; i++)
		test_random();
	return failed;
}
