/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The live fabric in ibnetdiscover's format, which topology_load(), ibsim and
 * people's scripts read. Two things of ibsim's go beyond what ibnetdiscover
 * knows: "module" lines for nodes with a module's name, and "do Link" for a
 * link that leads from a module to a node of none, which records can't say.
 *
 * A large fabric is printed in pieces, between which it may change: the state
 * of one holds indices, which are never used again, and no pointer.
 */
#include "fabric/topology.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What one piece has at most. */
enum { PORTS = 16, LINKS = 64 };

/* One piece. */
struct dump {
	struct topology_dump *at;
	struct textbuf *out;
};

_Static_assert(sizeof(((struct topology_dump *)0)->module) == TOPO_PREFIX_MAX + 1,
	       "a module's name has room");

/* Configurations and fabric/ctl may give names that the format can't hold. */
static bool fits_format(const char *id)
{
	const char *sep = strchr(id, '#'), *s;

	for (s = id; *s; s++)
		if (iscntrl((unsigned char)*s) || *s == '"' || *s == '@')
			return false;
	if (sep)
		return sep != id && sep - id <= TOPO_PREFIX_MAX && sep[1] && !strchr(sep + 1, '#');
	return true;
}

/* The length of a module's name in front of '#', or 0. */
static size_t prefix_len(const struct node *node)
{
	const char *sep = strchr(node->id, '#');

	return sep && fits_format(node->id) ? sep - node->id : 0;
}

static bool same_module(const struct node *a, const struct node *b)
{
	size_t len = prefix_len(a);

	return prefix_len(b) == len && !strncmp(a->id, b->id, len);
}

static bool links_by_command(const struct port *port)
{
	return !prefix_len(port->node) != !prefix_len(port->peer->node);
}

static bool is_up(const struct port *port)
{
	return port->peer && port->phys_state == PHYS_LINKUP;
}

/* A description may hold anything; a line may not. */
static void put_desc(struct dump *dump, const struct node *node)
{
	char text[sizeof(node->desc) + 2];
	const char *s;
	size_t n = 0;

	text[n++] = '"';
	for (s = node->desc; *s; s++)
		text[n++] = isprint((unsigned char)*s) ? *s : ' ';
	text[n++] = '"';
	text_put(dump->out, text, n);
}

static void put_prefix(struct dump *dump, const struct node *node)
{
	size_t len = prefix_len(node);

	char *module = dump->at->module;

	if (strlen(module) == len && !strncmp(module, node->id, len))
		return;
	memcpy(module, node->id, len);
	module[len] = '\0';
	text_printf(dump->out, "\nmodule=\"%s\"\n", module);
}

/* In quotes, without the module's name in records of the same module. */
static void put_id(struct dump *dump, const struct node *node, bool is_near)
{
	static const char letters[] = { [NODE_CA] = 'H', [NODE_SWITCH] = 'S', [NODE_ROUTER] = 'R' };
	size_t len = is_near ? prefix_len(node) : 0;

	if (fits_format(node->id))
		text_printf(dump->out, "\"%s\"", node->id + (len ? len + 1 : 0));
	else
		text_printf(dump->out, "\"%c-%016" PRIx64 "\"", letters[node->type], node->guid);
}

static void put_ids(struct dump *dump, const struct node *node)
{
	text_printf(dump->out, "\nvendid=0x%x\ndevid=0x%x\n", node->vendor_id, node->device_id);
	if (node->sysimg_guid)
		text_printf(dump->out, "sysimgguid=0x%" PRIx64 "\n", node->sysimg_guid);
}

static void put_switch(struct dump *dump, const struct node *node)
{
	const struct port *port0 = &node->ports[0];

	put_ids(dump, node);
	text_printf(dump->out, "switchguid=0x%" PRIx64 "(%" PRIx64 ")\nSwitch\t%u ", node->guid,
		port0->guid, node->num_ports);
	put_id(dump, node, true);
	text_printf(dump->out, "\t\t# ");
	put_desc(dump, node);
	text_printf(dump->out, " %s port 0 lid %u lmc %u\n",
		node->sw->enhanced_port0 ? "enhanced" : "base", port0->lid, port0->lmc);
}

static void put_endnode(struct dump *dump, const struct node *node)
{
	bool router = node->type == NODE_ROUTER;

	put_ids(dump, node);
	text_printf(dump->out, "%sguid=0x%" PRIx64 "\n%s\t%u ", router ? "rt" : "ca", node->guid,
		router ? "Rt" : "Ca", node->num_ports);
	put_id(dump, node, true);
	text_printf(dump->out, "\t\t# ");
	put_desc(dump, node);
	text_printf(dump->out, "\n");
}

/* "lid 4 4xEDR": the other end's LID, the link's rate */
static void put_rate(struct dump *dump, struct port *port)
{
	text_printf(dump->out, " lid %u %s%s\n", port_end(port->peer)->lid,
		width_active_name(port->width_active),
		speed_active_name(port->speed_active, port->speed_ext_active));
}

static void put_switch_port(struct dump *dump, struct port *port)
{
	struct port *peer = port->peer;

	text_printf(dump->out, "[%u]\t", port->num);
	put_id(dump, peer->node, same_module(port->node, peer->node));
	text_printf(dump->out, "[%u]", peer->num);
	if (peer->node->type != NODE_SWITCH)
		text_printf(dump->out, "(%" PRIx64 ") ", peer->guid);
	text_printf(dump->out, "\t\t# ");
	put_desc(dump, peer->node);
	put_rate(dump, port);
}

static void put_end_port(struct dump *dump, struct port *port)
{
	struct port *peer = port->peer;

	text_printf(dump->out, "[%u](%" PRIx64 ") \t", port->num, port->guid);
	put_id(dump, peer->node, same_module(port->node, peer->node));
	text_printf(dump->out, "[%u]", peer->num);
	if (peer->node->type != NODE_SWITCH)
		text_printf(dump->out, " (%" PRIx64 ") ", peer->guid);
	text_printf(dump->out, "\t\t# lid %u lmc %u ", port->lid, port->lmc);
	put_desc(dump, peer->node);
	put_rate(dump, port);
}

/* The node's record from port at->port on, whose head comes before all. */
static void put_node(struct dump *dump, struct node *node)
{
	unsigned int i = dump->at->port, end;

	if (!i) {
		put_prefix(dump, node);
		if (node->type == NODE_SWITCH)
			put_switch(dump, node);
		else
			put_endnode(dump, node);
		i = 1;
	}
	end = i + PORTS;
	for (; i <= node->num_ports && i < end; i++) {
		struct port *port = &node->ports[i];

		if (!is_up(port) || links_by_command(port))
			continue;
		if (node->type == NODE_SWITCH)
			put_switch_port(dump, port);
		else
			put_end_port(dump, port);
	}
	dump->at->port = i;
}

/* Some of a type's nodes. False: there are no more. */
static bool put_nodes(struct dump *dump, const struct fabric *fabric, enum node_type type)
{
	struct topology_dump *at = dump->at;
	struct node *node = fabric_node_from(fabric, type, at->index);

	if (!node)
		return false;
	if (node->index != at->index)	/* the one that was begun has gone */
		at->port = 0;
	at->index = node->index;
	put_node(dump, node);
	if (at->port > node->num_ports) {
		at->index++;
		at->port = 0;
	}
	return true;
}

static void put_command(struct dump *dump, const struct link *link)
{
	if (*dump->at->module)
		text_printf(dump->out, "\nmodule=\"\"\n");
	*dump->at->module = '\0';
	text_printf(dump->out, "do Link ");
	put_id(dump, link->a->node, false);
	text_printf(dump->out, "[%u] ", link->a->num);
	put_id(dump, link->b->node, false);
	text_printf(dump->out, "[%u]\n", link->b->num);
}

static bool put_commands(struct dump *dump, const struct fabric *fabric)
{
	const struct link *link;
	unsigned int i;

	for (i = 0; i < LINKS && dump->at->index < fabric->num_links; i++) {
		link = fabric->links[dump->at->index++];
		if (link && is_up(link->a) && links_by_command(link->a))
			put_command(dump, link);
	}
	return dump->at->index < fabric->num_links;
}

bool topology_dump(struct topology_dump *at, const struct fabric *fabric, struct textbuf *out)
{
	static const enum node_type order[] = { NODE_SWITCH, NODE_CA, NODE_ROUTER };
	enum { TYPES = sizeof(order) / sizeof(order[0]) };
	struct dump dump = { .at = at, .out = out };
	bool more;

	if (!at->part) {
		text_printf(out, "#\n# Topology file: generated by ibfs\n#\n");
		at->changes = fabric->changes;
		at->part = 1;
	}
	if (at->part <= TYPES)
		more = put_nodes(&dump, fabric, order[at->part - 1]);
	else
		more = put_commands(&dump, fabric);
	if (more)
		return true;
	at->index = 0;
	if (at->part++ <= TYPES)
		return true;
	if (at->changes != fabric->changes)
		text_printf(out, "\n# The fabric changed while this was read: read it again.\n");
	return false;
}
