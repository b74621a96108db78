/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port's line in a node's record:
 *	[1](8f10400410016) "S-0008f10500000000"[3] w=2 # lid 5 lmc 0 "leaf" lid 4 4xEDR
 *	[1] "@alias"		plugged into the port that bears the alias
 *	@[1] "alias"		this port bears it
 */
#include "fabric/topology.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* "[ext 5]", the chassis' name of a port, says nothing here. */
static char *skip_ext(char *s)
{
	char *end;

	s = topo_skip(s);
	if (!strncmp(s, "[ext ", 5)) {
		end = strchr(s, ']');
		if (end)
			s = topo_skip(end + 1);
	}
	return s;
}

/* "[5]" */
static int parse_port_num(struct topo *topo, char **s, unsigned int max, const char *what,
			  uint64_t *num)
{
	char found[48];
	int err;

	if (!topo_take(s, "["))
		return topo_fail(topo, "expected [port number], found %s", topo_show(found, *s));
	*s = topo_skip(*s);
	err = topo_number(topo, s, what, 1, max, num);
	if (err)
		return err;
	*s = topo_skip(*s);
	if (!topo_take(s, "]"))
		return topo_fail(topo, "expected ']' after the port number, found %s",
				 topo_show(found, *s));
	return 0;
}

static int add_alias(struct topo *topo, const char *name, struct port *port)
{
	struct topo_alias *alias, *old;
	const char *full;
	bool is_alias;
	char at[TOPO_ID_MAX + 1];
	int err;

	if (!*name || strpbrk(name, "#@") || strlen(name) + 1 >= sizeof(at))
		return topo_fail(topo, "expected an alias of 1 to %d characters without # and "
				 "@, found \"%.40s\"", TOPO_ID_MAX - 1, name);
	snprintf(at, sizeof(at), "@%s", name);
	err = topo_expand(topo, at, &full, &is_alias);
	if (err)
		return err;
	HASH_FIND_STR(topo->aliases, full, old);
	if (old)
		return topo_fail(topo, "alias \"%s\" is taken in %s:%u", name, old->place.file,
				 old->place.line);
	alias = topo_alloc(topo, sizeof(*alias));
	if (!alias)
		return topo_nomem(topo);
	alias->name = full;
	alias->port = port;
	alias->place = topo->file->place;
	HASH_ADD_KEYPTR(hh, topo->aliases, full, strlen(full), alias);
	return 0;
}

/* w=2 s=4 e=3 */
static int parse_option(struct topo *topo, char **s, struct port *port)
{
	char found[48], letter = **s;
	uint64_t val;
	int err;

	if (!strchr("wse", letter) || (*s)[1] != '=')
		return topo_fail(topo, "expected w=, s=, e= or a comment, found %s",
				 topo_show(found, *s));
	*s += 2;
	err = letter == 'w' ? topo_number(topo, s, "w", 1, 31, &val) :
	      letter == 's' ? topo_number(topo, s, "s", 0, 7, &val) :
			      topo_number(topo, s, "e", 0, 31, &val);
	if (err)
		return err;
	port_enable(port, letter == 'w' ? val : port->width_enabled,
		    letter != 's' ? port->speed_enabled : val ? val : SPEED_QDR,
		    letter == 'e' ? val : port->speed_ext_enabled);
	*s = topo_skip(*s);
	return 0;
}

/* "4xEDR" of a comment. ibnetdiscover prints '?' for what it doesn't know. */
static int parse_rate(struct topo *topo, const char *s, struct port *port)
{
	const struct width_name *width;
	const struct speed_name *speed;
	unsigned int lanes;
	char name[16];

	if (sscanf(s, "%ux%15[A-Za-z0-9?]", &lanes, name) != 2 || strchr(name, '?'))
		return 0;
	width = width_by_lanes(lanes);
	if (!width)
		return topo_fail(topo, "expected a width of 1x, 2x, 4x, 8x or 12x, found %ux",
				 lanes);
	speed = speed_by_name(name);
	if (!speed)
		return topo_fail(topo, "expected a speed of SDR, DDR, QDR, FDR10, FDR, EDR, HDR, "
				 "NDR or XDR, found %s", name);
	port_enable(port, width->width, speed->speed, speed->ext);
	return 0;
}

/* "lid 5 lmc 0" is the port's own; "lid 4" alone is the other end's. */
static int parse_own_lid(struct topo *topo, const char *s, struct port *port)
{
	unsigned int lid, lmc;

	s = strstr(s, "lid ");
	if (!s || sscanf(s, "lid %u lmc %u", &lid, &lmc) != 2)
		return 0;
	if (lid == 0xffff)
		lid = 0;
	if (lid > 0xbfff)
		return topo_fail(topo, "lid: expected 1 to 49151, found %u", lid);
	if (lmc > 7)
		return topo_fail(topo, "lmc: expected 0 to 7, found %u", lmc);
	port->lid = lid;
	port->lmc = lmc;
	return 0;
}

/*
 * What ibnetdiscover notes behind '#': # lid 5 lmc 0 "the other end" lid 4 4xEDR
 * The description may hold quotes. What doesn't look so is somebody's remark.
 */
static int parse_comment(struct topo *topo, char *s, struct port *port)
{
	char *first = strchr(s, '"'), *last = strrchr(s, '"'), *tail;
	int err = 0, at = 0;

	if (first)
		*first = '\0';
	if (port->node->type != NODE_SWITCH)
		err = parse_own_lid(topo, s, port);
	tail = strstr(last ? last + 1 : s, "lid ");
	if (err || !tail || sscanf(tail, "lid %*u%n", &at) || !at)
		return err;
	return parse_rate(topo, topo_skip(tail + at), port);
}

/* Options weigh more than the comment, which only tells what once was. */
static int parse_rest(struct topo *topo, char *s, struct port *port)
{
	char *comment;
	int err = 0;

	s = topo_skip(s);
	comment = strchr(s, '#');
	if (comment) {
		*comment = '\0';
		err = parse_comment(topo, comment + 1, port);
	}
	while (!err && *s)
		err = parse_option(topo, &s, port);
	return err;
}

/* [3](guid) of the other end, each optional: port 1 unless said */
static int parse_remote(struct topo *topo, char **s, struct topo_decl *decl)
{
	uint64_t num = 1;
	int err = 0;

	*s = skip_ext(*s);
	if (**s == '[')
		err = parse_port_num(topo, s, 254, "the other end's port", &num);
	decl->remote_port = num;
	if (err)
		return err;
	*s = skip_ext(*s);
	return **s == '(' ? topo_guid(topo, s, &decl->remote_guid) : 0;
}

static int parse_local(struct topo *topo, char **s, struct topo_decl **decl, struct port **port)
{
	struct node *node = topo->open;
	uint64_t num = 0;
	int err;

	err = parse_port_num(topo, s, node->num_ports, "port", &num);
	if (err)
		return err;
	*port = &node->ports[num];
	*decl = topo_decl(topo, *port);
	if ((*decl)->place.line)
		return topo_fail(topo, "port %u was given before, in %s:%u", (*port)->num,
				 (*decl)->place.file, (*decl)->place.line);
	(*decl)->place = topo->file->place;
	*s = skip_ext(*s);
	if (**s != '(')
		return 0;
	if (node->type == NODE_SWITCH)
		return topo_fail(topo, "expected no GUID at a switch's port, found %.40s", *s);
	(*decl)->guid_given = true;
	return topo_guid(topo, s, &(*port)->guid);
}

int topo_parse_port(struct topo *topo, char *s)
{
	bool bears_alias = topo_take(&s, "@");
	struct topo_decl *decl;
	struct port *port;
	char *name;
	int err;

	err = parse_local(topo, &s, &decl, &port);
	if (err)
		return err;
	s = topo_skip(s);
	err = topo_quoted(topo, &s, bears_alias ? "an alias" : "the other end's name", &name);
	if (err)
		return err;
	if (bears_alias) {
		err = add_alias(topo, name, port);
	} else {
		err = topo_expand(topo, name, &decl->remote, &decl->remote_is_alias);
		if (!err)
			err = parse_remote(topo, &s, decl);
	}
	return err ? err : parse_rest(topo, s, port);
}
