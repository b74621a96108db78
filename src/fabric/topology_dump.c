/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The live fabric in ibnetdiscover's format, which topology_load(), ibsim and
 * people's scripts read. Two things of ibsim's go beyond what ibnetdiscover
 * knows: "module" lines for nodes with a module's name, and "do Link" for a
 * link that leads from a module to a node of none, which records can't say.
 */
#include "fabric/topology.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct dump {
	FILE *out;
	char prefix[TOPO_PREFIX_MAX + 1];
};

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
	const char *s;

	putc('"', dump->out);
	for (s = node->desc; *s; s++)
		putc(isprint((unsigned char)*s) ? *s : ' ', dump->out);
	putc('"', dump->out);
}

static void put_prefix(struct dump *dump, const struct node *node)
{
	size_t len = prefix_len(node);

	if (strlen(dump->prefix) == len && !strncmp(dump->prefix, node->id, len))
		return;
	memcpy(dump->prefix, node->id, len);
	dump->prefix[len] = '\0';
	fprintf(dump->out, "\nmodule=\"%s\"\n", dump->prefix);
}

/* In quotes, without the module's name in records of the same module. */
static void put_id(struct dump *dump, const struct node *node, bool is_near)
{
	static const char letters[] = { [NODE_CA] = 'H', [NODE_SWITCH] = 'S', [NODE_ROUTER] = 'R' };
	size_t len = is_near ? prefix_len(node) : 0;

	if (fits_format(node->id))
		fprintf(dump->out, "\"%s\"", node->id + (len ? len + 1 : 0));
	else
		fprintf(dump->out, "\"%c-%016" PRIx64 "\"", letters[node->type], node->guid);
}

static void put_ids(struct dump *dump, const struct node *node)
{
	fprintf(dump->out, "\nvendid=0x%x\ndevid=0x%x\n", node->vendor_id, node->device_id);
	if (node->sysimg_guid)
		fprintf(dump->out, "sysimgguid=0x%" PRIx64 "\n", node->sysimg_guid);
}

static void put_switch(struct dump *dump, const struct node *node)
{
	const struct port *port0 = &node->ports[0];

	put_ids(dump, node);
	fprintf(dump->out, "switchguid=0x%" PRIx64 "(%" PRIx64 ")\nSwitch\t%u ", node->guid,
		port0->guid, node->num_ports);
	put_id(dump, node, true);
	fputs("\t\t# ", dump->out);
	put_desc(dump, node);
	fprintf(dump->out, " %s port 0 lid %u lmc %u\n",
		node->sw->enhanced_port0 ? "enhanced" : "base", port0->lid, port0->lmc);
}

static void put_endnode(struct dump *dump, const struct node *node)
{
	bool router = node->type == NODE_ROUTER;

	put_ids(dump, node);
	fprintf(dump->out, "%sguid=0x%" PRIx64 "\n%s\t%u ", router ? "rt" : "ca", node->guid,
		router ? "Rt" : "Ca", node->num_ports);
	put_id(dump, node, true);
	fputs("\t\t# ", dump->out);
	put_desc(dump, node);
	putc('\n', dump->out);
}

/* "lid 4 4xEDR": the other end's LID, the link's rate */
static void put_rate(struct dump *dump, struct port *port)
{
	fprintf(dump->out, " lid %u %s%s\n", port_end(port->peer)->lid,
		width_active_name(port->width_active),
		speed_active_name(port->speed_active, port->speed_ext_active));
}

static void put_switch_port(struct dump *dump, struct port *port)
{
	struct port *peer = port->peer;

	fprintf(dump->out, "[%u]\t", port->num);
	put_id(dump, peer->node, same_module(port->node, peer->node));
	fprintf(dump->out, "[%u]", peer->num);
	if (peer->node->type != NODE_SWITCH)
		fprintf(dump->out, "(%" PRIx64 ") ", peer->guid);
	fputs("\t\t# ", dump->out);
	put_desc(dump, peer->node);
	put_rate(dump, port);
}

static void put_end_port(struct dump *dump, struct port *port)
{
	struct port *peer = port->peer;

	fprintf(dump->out, "[%u](%" PRIx64 ") \t", port->num, port->guid);
	put_id(dump, peer->node, same_module(port->node, peer->node));
	fprintf(dump->out, "[%u]", peer->num);
	if (peer->node->type != NODE_SWITCH)
		fprintf(dump->out, " (%" PRIx64 ") ", peer->guid);
	fprintf(dump->out, "\t\t# lid %u lmc %u ", port->lid, port->lmc);
	put_desc(dump, peer->node);
	put_rate(dump, port);
}

static void put_node(struct dump *dump, struct node *node)
{
	unsigned int i;

	put_prefix(dump, node);
	if (node->type == NODE_SWITCH)
		put_switch(dump, node);
	else
		put_endnode(dump, node);
	for (i = 1; i <= node->num_ports; i++) {
		struct port *port = &node->ports[i];

		if (!is_up(port) || links_by_command(port))
			continue;
		if (node->type == NODE_SWITCH)
			put_switch_port(dump, port);
		else
			put_end_port(dump, port);
	}
}

static void put_commands(struct dump *dump, const struct fabric *fabric)
{
	const struct link *link;
	unsigned int i;

	for (i = 0; i < fabric->num_links; i++) {
		link = fabric->links[i];
		if (!link || !is_up(link->a) || !links_by_command(link->a))
			continue;
		if (*dump->prefix)
			fputs("\nmodule=\"\"\n", dump->out);
		*dump->prefix = '\0';
		fputs("do Link ", dump->out);
		put_id(dump, link->a->node, false);
		fprintf(dump->out, "[%u] ", link->a->num);
		put_id(dump, link->b->node, false);
		fprintf(dump->out, "[%u]\n", link->b->num);
	}
}

void topology_dump(struct fabric *fabric, FILE *out)
{
	static const enum node_type order[] = { NODE_SWITCH, NODE_CA, NODE_ROUTER };
	struct dump dump = { .out = out };
	unsigned int i, j;

	fputs("#\n# Topology file: generated by ibfs\n#\n", out);
	for (i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		for (j = 0; j < fabric->num_nodes; j++)
			if (fabric->nodes[j] && fabric->nodes[j]->type == order[i])
				put_node(&dump, fabric->nodes[j]);
	put_commands(&dump, fabric);
}
