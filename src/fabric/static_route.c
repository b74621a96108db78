/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unicast routes of the static subnet: from each switch to each end port by a
 * shortest path, so without loops. The end ports behind a switch are spread
 * over the ports that are equally near to it.
 *
 * A breadth-first search goes from 64 destination switches at a time, one bit
 * each: what would take a minute for 3,000 switches takes a fraction of a
 * second. LFTs are written by hand: a call per entry, of which there are
 * 100 million, would take as long as all the rest.
 */
#include "fabric/static.h"
#include "ibfs/ibfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_PORT	255

/* A cable to another switch. */
struct edge {
	uint32_t to;			/* number in struct routing */
	uint8_t port;
};

struct rswitch {
	struct node *node;
	struct edge *edges;
	uint16_t *lids;			/* of end ports here, port 0's first */
	unsigned int num_edges, num_lids;
	/* One bit for each destination of the batch: */
	uint64_t seen;			/* reached, the distance is known */
	uint64_t front;			/* reached in the last step */
	uint64_t next;			/* in this one */
};

struct routing {
	struct fabric *fabric;
	struct rswitch *sw;
	uint32_t *number;		/* by node->index */
	struct edge *edges;		/* all switches' */
	uint16_t *lids;
	unsigned int num;
	uint16_t top;
};

/* End ports that hang on a switch: its port 0, and CAs and routers. */
static struct port *end_port_at(struct node *node, unsigned int num)
{
	struct port *peer;

	if (!num)
		return &node->ports[0];
	peer = static_peer(&node->ports[num]);
	return peer && peer->node->type != NODE_SWITCH && peer->lid ? peer : NULL;
}

static int count_all(struct routing *rt)
{
	size_t num_edges = 0, num_lids = 0;
	unsigned int i, j;

	for (i = 0; i < rt->fabric->num_nodes; i++) {
		struct node *node = rt->fabric->nodes[i];

		if (!node || node->type != NODE_SWITCH)
			continue;
		rt->number[i] = rt->num;
		rt->sw[rt->num++].node = node;
		num_lids += 1u << node->ports[0].lmc;
		for (j = 1; j <= node->num_ports; j++) {
			const struct port *end = end_port_at(node, j);

			if (end)
				num_lids += 1u << end->lmc;
			else
				num_edges++;
		}
	}
	rt->edges = calloc(num_edges + 1, sizeof(*rt->edges));
	rt->lids = calloc(num_lids + 1, sizeof(*rt->lids));
	return rt->edges && rt->lids ? 0 : -ENOMEM;
}

/* The switch's own end ports, in its LFT and in the list. */
static void add_end_port(struct rswitch *sw, struct port *end, uint8_t port)
{
	unsigned int i;

	for (i = 0; i < 1u << end->lmc; i++) {
		sw->node->sw->lft[end->lid + i] = port;
		sw->lids[sw->num_lids++] = end->lid + i;
	}
}

static int clear_lft(struct node *node, uint16_t top)
{
	int err;

	/* To make room up to it. */
	err = switch_set_lft(node, top, 0);
	if (err)
		return err;
	memset(node->sw->lft, NO_PORT, node->sw->lft_size);
	node->sw->lft_top = top;
	return 0;
}

static int init_switches(struct routing *rt)
{
	struct edge *edge = rt->edges;
	uint16_t *lid = rt->lids;
	unsigned int i, j;
	int err;

	for (i = 0; i < rt->num; i++) {
		struct rswitch *sw = &rt->sw[i];

		err = clear_lft(sw->node, rt->top);
		if (err)
			return err;
		sw->edges = edge;
		sw->lids = lid;
		for (j = 0; j <= sw->node->num_ports; j++) {
			struct port *end = end_port_at(sw->node, j);
			struct port *peer = static_peer(&sw->node->ports[j]);

			if (end)
				add_end_port(sw, end, j);
			else if (peer && peer->node->type == NODE_SWITCH && peer->node != sw->node)
				sw->edges[sw->num_edges++] = (struct edge){
					.to = rt->number[peer->node->index], .port = j,
				};
		}
		edge += sw->num_edges;
		lid += sw->num_lids;
	}
	return 0;
}

/*
 * Neighbouring switches must choose differently for the same LID, or all that
 * comes from one by a port leaves the next by one port.
 */
static unsigned int mix(uint32_t from, uint32_t to)
{
	uint32_t hash = from * 0x9e3779b1u ^ to * 0x85ebca6bu;

	hash ^= hash >> 15;
	hash *= 0xc2b2ae35u;
	return hash >> 12;
}

static void write_routes(struct routing *rt, uint32_t from, uint32_t to, const uint8_t *ports,
			 unsigned int num_ports)
{
	uint8_t *lft = rt->sw[from].node->sw->lft;
	const struct rswitch *dest = &rt->sw[to];
	unsigned int i, at = num_ports > 1 ? mix(from, to) % num_ports : 0;

	for (i = 0; i < dest->num_lids; i++) {
		lft[dest->lids[i]] = ports[at];
		if (++at == num_ports)
			at = 0;
	}
}

/*
 * The destinations in todo are one step nearer at some neighbours, via[e] says
 * which at which. Those with the same choice of ports are handled together.
 */
static void route_step(struct routing *rt, uint32_t from, uint32_t base, uint64_t todo)
{
	const struct rswitch *sw = &rt->sw[from];
	uint64_t via[254], same;
	uint8_t ports[254];
	unsigned int i, num;

	for (i = 0; i < sw->num_edges; i++)
		via[i] = rt->sw[sw->edges[i].to].front & todo;
	while (todo) {
		uint64_t bit = todo & -todo;

		same = todo;
		for (i = 0, num = 0; i < sw->num_edges; i++) {
			if (via[i] & bit) {
				ports[num++] = sw->edges[i].port;
				same &= via[i];
			} else {
				same &= ~via[i];
			}
		}
		todo &= ~same;
		for (; same; same &= same - 1)
			write_routes(rt, from, base + __builtin_ctzll(same), ports, num);
	}
}

/* All switches that are one step farther from the destinations; false: there is none. */
static bool search_step(struct routing *rt, uint32_t base)
{
	bool more = false;
	uint32_t i;
	unsigned int j;

	for (i = 0; i < rt->num; i++) {
		struct rswitch *sw = &rt->sw[i];

		sw->next = 0;
		for (j = 0; j < sw->num_edges; j++)
			sw->next |= rt->sw[sw->edges[j].to].front;
		sw->next &= ~sw->seen;
		if (!sw->next)
			continue;
		more = true;
		route_step(rt, i, base, sw->next);
	}
	for (i = 0; i < rt->num; i++) {
		rt->sw[i].seen |= rt->sw[i].next;
		rt->sw[i].front = rt->sw[i].next;
	}
	return more;
}

static void search_batch(struct routing *rt, uint32_t base)
{
	uint32_t i;

	for (i = 0; i < rt->num; i++) {
		rt->sw[i].seen = i >= base && i < base + 64 ? 1ull << (i - base) : 0;
		rt->sw[i].front = rt->sw[i].seen;
	}
	while (search_step(rt, base))
		;
}

/* After the first batch, whose bit 0 is the first switch. Pulled cables are no news. */
static void report_parts(struct routing *rt)
{
	unsigned int i, apart = 0;

	for (i = 0; i < rt->num; i++)
		apart += !(rt->sw[i].seen & 1);
	if (apart && !rt->fabric->static_owned)
		ibfs_log(rt->fabric->ibfs, "%u of %u switches have no path to \"%s\"", apart,
			 rt->num, rt->sw[0].node->id);
}

int static_routes(struct fabric *fabric, uint16_t top)
{
	struct routing rt = { .fabric = fabric, .top = top };
	uint32_t base;
	int err = -ENOMEM;

	rt.sw = calloc(fabric->num_nodes + 1, sizeof(*rt.sw));
	rt.number = calloc(fabric->num_nodes + 1, sizeof(*rt.number));
	if (rt.sw && rt.number)
		err = count_all(&rt);
	if (!err)
		err = init_switches(&rt);
	for (base = 0; !err && base < rt.num; base += 64) {
		search_batch(&rt, base);
		if (!base)
			report_parts(&rt);
	}
	free(rt.lids);
	free(rt.edges);
	free(rt.number);
	free(rt.sw);
	return err;
}
