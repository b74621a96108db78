/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node's record: the guids before it, and its first line
 *	Switch 36 "S-0008f10500000000"	# "leaf 1" enhanced port 0 lid 4 lmc 0
 */
#include "fabric/topology.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* switchguid=0x8f10500000010(8f10500000010), or caguid+0x10: after the last '=' one. */
int topo_parse_guid(struct topo *topo, char *s, int type)
{
	struct topo_guids *guids = &topo->guids[type];
	bool relative;
	char found[48];
	uint64_t val;
	int err;

	s = topo_skip(s);
	relative = *s == '+';
	if (*s != '=' && *s != '+')
		return topo_fail(topo, "expected '=' or '+' before the GUID, found %s",
				 topo_show(found, s));
	s = topo_skip(s + 1);
	err = topo_number(topo, &s, "GUID", relative ? 0 : 1, UINT64_MAX, &val);
	if (err)
		return err;
	if (!relative)
		guids->base = val;
	guids->next = relative ? guids->base + val : val;
	guids->set = true;
	guids->port_guid = 0;
	if (*s == '(')
		err = topo_guid(topo, &s, &guids->port_guid);
	return err ? err : topo_end(topo, s);
}

/*
 * lid L, lmc M and the kind of port 0 behind a switch's description. Other
 * words are somebody's remark.
 */
static int parse_port0(struct topo *topo, char *s, struct node *node)
{
	struct port *port = &node->ports[0];
	uint64_t val;
	char *at;
	int err;

	node->sw->enhanced_port0 = strstr(s, "enhanced port 0");
	at = strstr(s, "lid ");
	if (at && isdigit((unsigned char)at[4])) {
		at += 4;
		err = topo_number(topo, &at, "lid", 0, UINT16_MAX, &val);
		if (err)
			return err;
		if (val > 0xbfff && val != 0xffff)
			return topo_fail(topo, "lid: expected 1 to 49151, found %" PRIu64, val);
		port->lid = val == 0xffff ? 0 : val;
	}
	at = strstr(s, "lmc ");
	if (at && isdigit((unsigned char)at[4])) {
		at += 4;
		err = topo_number(topo, &at, "lmc", 0, 7, &val);
		if (err)
			return err;
		/* Only an enhanced port 0 may have one, 14.2.5.6. */
		if (node->sw->enhanced_port0)
			port->lmc = val;
	}
	return 0;
}

/*
 * The description: what is quoted behind '#', up to the last quote (it may
 * hold some), or the words up to what says something of port 0. Returns what
 * is behind it.
 */
static char *parse_desc(char *s, char **desc)
{
	static const char *const ends[] = { " enhanced port ", " base port ", " lid ", " lmc " };
	char *hash = strchr(s, '#'), *end, *rest, *at;
	size_t i;

	*desc = NULL;
	if (!hash)
		return s;
	s = topo_skip(hash + 1);
	if (*s == '"') {
		end = strrchr(s + 1, '"');
		if (end) {
			*end = '\0';
			*desc = s + 1;
			return end + 1;
		}
	}
	rest = s + strlen(s);
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		at = strstr(s, ends[i]);
		if (at && at < rest)
			rest = at;
	}
	if (*rest)
		*rest++ = '\0';
	end = s + strlen(s);
	while (end > s && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	*desc = s;
	return rest;
}

static int new_node_failed(struct topo *topo, const char *id, uint64_t guid)
{
	int err = errno;
	struct node *other = fabric_find(topo->fabric, id);
	const char *what = "the same name";
	struct topo_decl *decl;
	struct topo_place place;

	if (err == ENOMEM)
		return topo_nomem(topo);
	if (err != EEXIST)
		return topo_fail(topo, "can't make node \"%s\": %s", id, strerror(err));
	if (!other) {
		other = fabric_find_guid(topo->fabric, guid);
		what = "the same GUID";
	}
	if (!other)
		return topo_fail(topo, "GUID 0x%" PRIx64 " is taken by a port", guid);
	decl = topo_decl(topo, &other->ports[0]);
	if (!decl)
		return topo_fail(topo, "node \"%s\" has %s as \"%s\"", id, what, other->id);
	place = topo->nodes[other->index - topo->first_node].place;
	return topo_fail(topo, "node \"%s\" has %s as \"%s\" in %s:%u", id, what, other->id,
			 place.file, place.line);
}

/* Remember the record, for its ports' lines. */
static int open_record(struct topo *topo, struct node *node)
{
	unsigned int slot = node->index - topo->first_node;
	struct topo_node *rec;

	if (slot >= topo->size_nodes) {
		unsigned int size = topo->size_nodes ? topo->size_nodes * 2 : 64;
		void *nodes = realloc(topo->nodes, size * sizeof(*topo->nodes));

		if (!nodes)
			return topo_nomem(topo);
		topo->nodes = nodes;
		topo->size_nodes = size;
	}
	rec = &topo->nodes[slot];
	rec->place = topo->file->place;
	rec->decls = topo_alloc(topo, (node->num_ports + 1) * sizeof(*rec->decls));
	if (!rec->decls)
		return topo_nomem(topo);
	topo->num_nodes = slot + 1;
	topo->open = node;
	return 0;
}

/* Settings of lines before it. The vendor and the system image are for one node only. */
static void apply_settings(struct topo *topo, struct node *node, const char *desc)
{
	unsigned int i;

	snprintf(node->desc, sizeof(node->desc), "%s", desc && *desc ? desc : node->id);
	if (topo->vendor_given)
		node->vendor_id = topo->vendor_id;
	if (topo->device_given)
		node->device_id = topo->device_id;
	node->sysimg_guid = topo->sysimg_guid ? topo->sysimg_guid : node->guid;
	for (i = node->type == NODE_SWITCH ? 0 : 1; i <= node->num_ports; i++)
		port_enable(&node->ports[i], topo->width, topo->speed, topo->speed_ext);
	topo->vendor_given = false;
	topo->sysimg_guid = 0;
}

static int add_node(struct topo *topo, int type, const char *id, unsigned int num_ports,
		    const char *desc, struct node **node)
{
	struct topo_guids *guids = &topo->guids[type];
	uint64_t guid = guids->set ? guids->next : 0;
	char full[TOPO_ID_MAX + 1];

	snprintf(full, sizeof(full), "%s%s%s", topo->prefix, *topo->prefix ? "#" : "", id);
	*node = node_new(topo->fabric, type, full, num_ports, guid);
	if (!*node)
		return new_node_failed(topo, full, guid);
	/* The next one without a GUID of its own goes behind this one's ports. */
	guids->next += type == NODE_SWITCH ? 1 : num_ports + 1;
	apply_settings(topo, *node, desc);
	if (guids->port_guid && type == NODE_SWITCH)
		(*node)->ports[0].guid = guids->port_guid;
	guids->port_guid = 0;
	return 0;
}

static int check_id(struct topo *topo, const char *id)
{
	size_t max = TOPO_ID_MAX - sizeof(topo->prefix);
	char found[48];
	const char *s;

	for (s = id; *s; s++)
		if (iscntrl((unsigned char)*s) || *s == '#' || *s == '@')
			break;
	if (*s || s == id || s - id > (ptrdiff_t)max)
		return topo_fail(topo, "expected a node's name of 1 to %zu printable characters "
				 "without # and @, found %s", max, topo_show(found, id));
	return 0;
}

int topo_parse_node(struct topo *topo, char *s, int type)
{
	char *id, *desc, *rest;
	struct node *node;
	uint64_t num_ports;
	int err;

	s = topo_skip(s);
	err = topo_number(topo, &s, "number of ports", 1, 254, &num_ports);
	if (err)
		return err;
	s = topo_skip(s);
	err = topo_quoted(topo, &s, "the node's name", &id);
	if (!err)
		err = check_id(topo, id);
	if (err)
		return err;
	rest = parse_desc(s, &desc);
	err = add_node(topo, type, id, num_ports, desc, &node);
	if (!err)
		err = open_record(topo, node);
	if (!err && type == NODE_SWITCH)
		err = parse_port0(topo, rest, node);
	return err;
}
