/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "do COMMAND": those commands of ibsim's console that set a fabric up. They
 * are checked where they stand and run in order when all records' links are
 * made, so that one can unplug what the records plug in.
 */
#include "fabric/topology.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <utlist.h>

struct topo_verb {
	const char *word;
	int (*run)(struct topo *topo, struct topo_cmd *cmd);
	/* For each port that is named, when run is NULL. */
	int (*run_port)(struct topo *topo, struct topo_cmd *cmd, struct port *port);
	unsigned int num_names;
	bool wants_link;	/* run_port only for ports with a cable; at least one */
};

static int cmd_number(struct topo *topo, struct topo_cmd *cmd, char **s, const char *what,
		      uint64_t min, uint64_t max, uint64_t *val)
{
	char found[48], *start = topo_skip(*s), *end = start;

	errno = 0;
	*val = isdigit((unsigned char)*start) ? strtoull(start, &end, 0) : 0;
	if (end == start || errno || *val < min || *val > max ||
	    (*end && !isspace((unsigned char)*end)))
		return topo_fail_at(topo, cmd->place, "%s: expected %" PRIu64 " to %" PRIu64
				    ", found %s", what, min, max, topo_show(found, start));
	*s = topo_skip(end);
	return 0;
}

static int cmd_end(struct topo *topo, struct topo_cmd *cmd, const char *s)
{
	char found[48];

	if (*s && *s != '#')
		return topo_fail_at(topo, cmd->place, "expected the end of the command, found %s",
				    topo_show(found, s));
	return 0;
}

/*
 * The node that is named; its port number comes from an alias if one is used.
 * NULL when there is none, with the message made.
 */
static struct node *find_node(struct topo *topo, struct topo_cmd *cmd, struct topo_name *name)
{
	struct topo_alias *alias = NULL;
	struct node *node = NULL;

	if (name->is_alias) {
		HASH_FIND_STR(topo->aliases, name->name, alias);
		if (alias) {
			node = alias->port->node;
			name->port = alias->port->num;
		}
	} else {
		node = fabric_find(topo->fabric, name->name);
	}
	if (!node) {
		topo_fail_at(topo, cmd->place, "expected a record of %s \"%s\", found none",
			     name->is_alias ? "alias" : "node", name->name);
		return NULL;
	}
	if (name->port > node->num_ports) {
		topo_fail_at(topo, cmd->place, "port: expected 1 to %u, which \"%s\" has, found %d",
			     node->num_ports, node->id, name->port);
		return NULL;
	}
	return node;
}

/* A port must be named, and be external unless port 0 of a switch is wanted too. */
static struct port *find_port(struct topo *topo, struct topo_cmd *cmd, struct topo_name *name,
			      bool port0)
{
	struct node *node = find_node(topo, cmd, name);

	if (!node)
		return NULL;
	if (name->port < 0) {
		topo_fail_at(topo, cmd->place, "expected [port number] after \"%s\"", name->name);
		return NULL;
	}
	if (!name->port && !(port0 && node->type == NODE_SWITCH)) {
		topo_fail_at(topo, cmd->place, "port: expected 1 to %u, found 0", node->num_ports);
		return NULL;
	}
	return &node->ports[name->port];
}

static int run_link(struct topo *topo, struct topo_cmd *cmd)
{
	struct port *a = find_port(topo, cmd, &cmd->names[0], false);
	struct port *b = a ? find_port(topo, cmd, &cmd->names[1], false) : NULL;
	int err;

	if (!b)
		return -EINVAL;
	err = cmd_end(topo, cmd, cmd->args);
	return err ? err : topo_link_ports(topo, cmd->place, a, b);
}

static int run_unlink(struct topo *topo, struct topo_cmd *cmd, struct port *port)
{
	link_set_down(port->link, true);
	return cmd_end(topo, cmd, cmd->args);
}

static int run_relink(struct topo *topo, struct topo_cmd *cmd, struct port *port)
{
	link_set_down(port->link, false);
	return cmd_end(topo, cmd, cmd->args);
}

/* Unplugged, and without the LID of its record. */
static int run_clear(struct topo *topo, struct topo_cmd *cmd, struct port *port)
{
	if (port->link)
		link_set_down(port->link, true);
	port->lid = 0;
	port->lmc = 0;
	return cmd_end(topo, cmd, cmd->args);
}

static int run_guid(struct topo *topo, struct topo_cmd *cmd)
{
	struct fabric *fabric = topo->fabric;
	struct topo_name *name = &cmd->names[0];
	struct node *node = find_node(topo, cmd, name), *other;
	char *s = cmd->args;
	uint64_t guid;
	int err;

	if (!node)
		return -EINVAL;
	err = cmd_number(topo, cmd, &s, "GUID", 1, UINT64_MAX, &guid);
	if (!err)
		err = cmd_end(topo, cmd, s);
	if (err)
		return err;
	if (name->port > 0 && node->type == NODE_SWITCH)
		return topo_fail_at(topo, cmd->place, "expected port 0 or none of a switch, "
				    "found %d", name->port);
	if (name->port >= 0) {
		node->ports[name->port].guid = guid;
		return 0;
	}
	other = fabric_find_guid(fabric, guid);
	if (other && other != node)
		return topo_fail_at(topo, cmd->place, "node \"%s\" has GUID 0x%" PRIx64, other->id,
				    guid);
	HASH_DELETE(hh_guid, fabric->by_guid, node);
	if (node->sysimg_guid == node->guid)
		node->sysimg_guid = guid;
	node->guid = guid;
	HASH_ADD(hh_guid, fabric->by_guid, guid, sizeof(node->guid), node);
	return 0;
}

static int run_baselid(struct topo *topo, struct topo_cmd *cmd)
{
	struct port *port = find_port(topo, cmd, &cmd->names[0], true);
	uint64_t lid, lmc = 0;
	char *s = cmd->args;
	int err;

	if (!port)
		return -EINVAL;
	err = cmd_number(topo, cmd, &s, "lid", 1, 0xbfff, &lid);
	if (!err && *s && *s != '#')
		err = cmd_number(topo, cmd, &s, "lmc", 0, 7, &lmc);
	if (!err)
		err = cmd_end(topo, cmd, s);
	if (err)
		return err;
	if (port != port_end(port))
		return topo_fail_at(topo, cmd->place, "expected port 0 of a switch, found %u",
				    port->num);
	port->lid = lid;
	port->lmc = lmc;
	return 0;
}

static int run_error(struct topo *topo, struct topo_cmd *cmd, struct port *port)
{
	struct fault_conf conf = { 0 };
	char *s = cmd->args;
	uint64_t rate = 0;
	int err;

	err = cmd_number(topo, cmd, &s, "error rate", 0, 100, &rate);
	if (!err && *s && *s != '#')
		return topo_fail_at(topo, cmd->place, "expected an error rate only, which is for "
				    "all packets of a link: found an attribute too");
	if (err)
		return err;
	link_get_faults(port->link, &conf);
	conf.drop = rate / 100.0;
	err = link_set_faults(port->link, &conf);
	if (err)
		return topo_fail_at(topo, cmd->place, "can't set the link's faults: %s",
				    strerror(-err));
	return 0;
}

#define COUNTER(attr, field, member, max) \
	{ attr, field, offsetof(struct port_counters, member), \
	  sizeof(((struct port_counters *)0)->member), max, 0 }
#define DETAIL(attr, field, member, num, max) \
	{ attr, field, offsetof(struct port_details, member), sizeof(uint32_t), max, num }

/* 16.1.3.5 and 16.1.4: fields, and the largest value that they hold */
static const struct perf_field {
	const char *attr, *field;
	size_t offset, size;
	uint64_t max;
	unsigned int details;	/* of struct port_details, so many: more than one are numbered */
} perf_fields[] = {
	COUNTER("PortCounters", "SymbolErrorCounter", symbol_errors, UINT16_MAX),
	COUNTER("PortCounters", "LinkErrorRecoveryCounter", link_recovers, UINT8_MAX),
	COUNTER("PortCounters", "LinkDownedCounter", link_downed, UINT8_MAX),
	COUNTER("PortCounters", "PortRcvErrors", rcv_errors, UINT16_MAX),
	COUNTER("PortCounters", "PortRcvRemotePhysicalErrors", rcv_rem_phys_errors, UINT16_MAX),
	COUNTER("PortCounters", "PortRcvSwitchRelayErrors", rcv_switch_relay_errors, UINT16_MAX),
	COUNTER("PortCounters", "PortXmitDiscards", xmit_discards, UINT16_MAX),
	COUNTER("PortCounters", "PortXmitConstraintErrors", xmit_constraint_errors, UINT8_MAX),
	COUNTER("PortCounters", "PortRcvConstraintErrors", rcv_constraint_errors, UINT8_MAX),
	COUNTER("PortCounters", "LocalLinkIntegrityErrors", local_link_integrity_errors, 15),
	COUNTER("PortCounters", "ExcessiveBufferOverrunErrors", excess_overrun_errors, 15),
	COUNTER("PortCounters", "VL15Dropped", vl15_dropped, UINT16_MAX),
	COUNTER("PortCounters", "PortXmitData", xmit_data, UINT32_MAX),
	COUNTER("PortCounters", "PortRcvData", rcv_data, UINT32_MAX),
	COUNTER("PortCounters", "PortXmitPkts", xmit_pkts, UINT32_MAX),
	COUNTER("PortCounters", "PortRcvPkts", rcv_pkts, UINT32_MAX),
	COUNTER("PortCounters", "PortXmitWait", xmit_wait, UINT32_MAX),
	COUNTER("PortCountersExtended", "PortXmitData", xmit_data, UINT64_MAX),
	COUNTER("PortCountersExtended", "PortRcvData", rcv_data, UINT64_MAX),
	COUNTER("PortCountersExtended", "PortXmitPkts", xmit_pkts, UINT64_MAX),
	COUNTER("PortCountersExtended", "PortRcvPkts", rcv_pkts, UINT64_MAX),
	COUNTER("PortCountersExtended", "PortUnicastXmitPkts", unicast_xmit_pkts, UINT64_MAX),
	COUNTER("PortCountersExtended", "PortUnicastRcvPkts", unicast_rcv_pkts, UINT64_MAX),
	COUNTER("PortCountersExtended", "PortMultiCastXmitPkts", multicast_xmit_pkts, UINT64_MAX),
	COUNTER("PortCountersExtended", "PortMultiCastRcvPkts", multicast_rcv_pkts, UINT64_MAX),
	DETAIL("PortRcvErrorDetails", "PortLocalPhysicalErrors", rcv_local_phys, 1, UINT16_MAX),
	DETAIL("PortRcvErrorDetails", "PortMalformedPacketErrors", rcv_malformed, 1, UINT16_MAX),
	DETAIL("PortRcvErrorDetails", "PortBufferOverrunErrors", rcv_overrun, 1, UINT16_MAX),
	DETAIL("PortRcvErrorDetails", "PortDLIDMappingErrors", rcv_dlid, 1, UINT16_MAX),
	DETAIL("PortRcvErrorDetails", "PortVLMappingErrors", rcv_vl, 1, UINT16_MAX),
	DETAIL("PortRcvErrorDetails", "PortLoopingErrors", rcv_looping, 1, UINT16_MAX),
	DETAIL("PortXmitDiscardDetails", "PortInactiveDiscards", xmit_inactive, 1, UINT16_MAX),
	DETAIL("PortXmitDiscardDetails", "PortNeighborMTUDiscards", xmit_mtu, 1, UINT16_MAX),
	DETAIL("PortXmitDiscardDetails", "PortSwLifetimeLimitDiscards", xmit_lifetime, 1, UINT16_MAX),
	DETAIL("PortXmitDiscardDetails", "PortSwHOQLifetimeLimitDiscards", xmit_hoq, 1, UINT16_MAX),
	DETAIL("PortOpRcvCounters", "PortOpRcvPkts", op_pkts, 1, UINT32_MAX),
	DETAIL("PortOpRcvCounters", "PortOpRcvData", op_data, 1, UINT32_MAX),
	DETAIL("PortFlowCtlCounters", "PortXmitFlowPkts", flow_xmit, 1, UINT32_MAX),
	DETAIL("PortFlowCtlCounters", "PortRcvFlowPkts", flow_rcv, 1, UINT32_MAX),
	DETAIL("PortVLOpPackets", "PortVLOpPackets", vl_pkts, 16, UINT16_MAX),
	DETAIL("PortVLOpData", "PortVLOpData", vl_data, 16, UINT32_MAX),
	DETAIL("PortVLXmitFlowCtlUpdateErrors", "PortVLXmitFlowCtlUpdateErrors",
	       vl_update_errors, 16, 3),
	DETAIL("PortVLXmitWaitCounters", "PortVLXmitWait", vl_wait, 16, UINT16_MAX),
};

/* Does the name say this field, and of numbered ones, which? */
static bool is_field(const struct perf_field *perf, const char *name, unsigned int *index)
{
	size_t len = strlen(perf->field);
	char *end;

	*index = 0;
	if (perf->details <= 1)
		return !strcasecmp(name, perf->field);
	if (strncasecmp(name, perf->field, len) || !isdigit((unsigned char)name[len]))
		return false;
	*index = strtoul(name + len, &end, 10);
	return !*end && *index < perf->details;
}

static const struct perf_field *find_field(const char *attr, const char *field,
					   unsigned int *index)
{
	size_t i;

	for (i = 0; i < sizeof(perf_fields) / sizeof(perf_fields[0]); i++)
		if (!strcasecmp(attr, perf_fields[i].attr) &&
		    is_field(&perf_fields[i], field, index))
			return &perf_fields[i];
	return NULL;
}

/* PerformanceSet "id"[port] PortCounters.SymbolErrorCounter=5; too much sticks at the most. */
static int run_performance(struct topo *topo, struct topo_cmd *cmd)
{
	const struct perf_field *perf;
	char attr[32], field[32], found[48], *s = cmd->args, *counter;
	struct port *port = find_port(topo, cmd, &cmd->names[0], true);
	unsigned int index = 0;
	uint64_t val = 0;
	int err, at = 0;

	if (!port)
		return -EINVAL;
	if (sscanf(s, "%31[A-Za-z] . %31[A-Za-z0-9] =%n", attr, field, &at) != 2 || !at)
		return topo_fail_at(topo, cmd->place, "expected ATTRIBUTE.FIELD=VALUE, found %s",
				    topo_show(found, s));
	perf = find_field(attr, field, &index);
	if (!perf)
		return topo_fail_at(topo, cmd->place, "expected a field of PortCounters or "
				    "of another attribute of counters, found %s.%s", attr, field);
	s += at;
	err = cmd_number(topo, cmd, &s, field, 0, UINT64_MAX, &val);
	if (!err)
		err = cmd_end(topo, cmd, s);
	if (err)
		return err;
	if (val > perf->max)
		val = perf->max;
	counter = perf->details ? (char *)port_details(port) : (char *)&port->cnt;
	if (!counter)
		return topo_fail_at(topo, cmd->place, "%s", strerror(ENOMEM));
	counter += perf->offset + index * perf->size;
	if (perf->size == sizeof(uint64_t))
		*(uint64_t *)counter = val;
	else
		*(uint32_t *)counter = val;
	return 0;
}

static const struct topo_verb verbs[] = {
	{ "Link", run_link, NULL, 2, false },
	{ "Unlink", NULL, run_unlink, 1, true },
	{ "ReLink", NULL, run_relink, 1, true },
	{ "Clear", NULL, run_clear, 1, false },
	{ "Guid", run_guid, NULL, 1, false },
	{ "Baselid", run_baselid, NULL, 1, false },
	{ "Error", NULL, run_error, 1, true },
	{ "PerformanceSet", run_performance, NULL, 1, false },
};

/* "id"[port] or "id" */
static int parse_name(struct topo *topo, char **s, struct topo_name *name)
{
	char found[48], *text;
	uint64_t num;
	int err;

	*s = topo_skip(*s);
	err = topo_quoted(topo, s, "a node's name", &text);
	if (!err)
		err = topo_expand(topo, text, &name->name, &name->is_alias);
	name->port = -1;
	if (err || !topo_take(s, "["))
		return err;
	err = topo_number(topo, s, "port", 0, 254, &num);
	if (err)
		return err;
	if (!topo_take(s, "]"))
		return topo_fail(topo, "expected ']' after the port number, found %s",
				 topo_show(found, *s));
	name->port = num;
	return 0;
}

int topo_parse_do(struct topo *topo, char *s, int unused)
{
	const struct topo_verb *verb = NULL;
	struct topo_cmd *cmd;
	char found[48];
	unsigned int i;
	size_t len;
	int err = 0;

	(void)unused;
	s = topo_skip(s);
	if (!*s || *s == '#')
		return 0;
	len = strcspn(s, " \t\"");
	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (len == strlen(verbs[i].word) && !strncasecmp(s, verbs[i].word, len))
			verb = &verbs[i];
	if (!verb)
		return topo_fail(topo, "expected Link, Unlink, ReLink, Clear, Guid, Baselid, Error "
				 "or PerformanceSet after do, found %s", topo_show(found, s));
	cmd = topo_alloc(topo, sizeof(*cmd));
	if (!cmd)
		return topo_nomem(topo);
	cmd->place = topo->file->place;
	cmd->verb = verb;
	s += len;
	for (i = 0; i < verb->num_names && !err; i++)
		err = parse_name(topo, &s, &cmd->names[i]);
	if (err)
		return err;
	cmd->args = topo_strdup(topo, topo_skip(s));
	if (!cmd->args)
		return topo_nomem(topo);
	DL_APPEND(topo->cmds, cmd);
	return 0;
}

/* The named port, or all of the named node's. */
static int run_ports(struct topo *topo, struct topo_cmd *cmd)
{
	struct topo_name *name = &cmd->names[0];
	const struct topo_verb *verb = cmd->verb;
	unsigned int i, first, last, hits = 0;
	struct node *node = find_node(topo, cmd, name);
	int err = 0;

	if (!node)
		return -EINVAL;
	if (!name->port)
		return topo_fail_at(topo, cmd->place, "port: expected 1 to %u, found 0",
				    node->num_ports);
	first = name->port > 0 ? (unsigned int)name->port : 1;
	last = name->port > 0 ? (unsigned int)name->port : node->num_ports;
	for (i = first; i <= last && !err; i++) {
		if (verb->wants_link && !node->ports[i].link)
			continue;
		hits++;
		err = verb->run_port(topo, cmd, &node->ports[i]);
	}
	if (!err && !hits)
		return topo_fail_at(topo, cmd->place, "expected a link at \"%s\", found none",
				    node->id);
	return err;
}

int topo_run_cmds(struct topo *topo)
{
	struct topo_cmd *cmd;
	int err = 0;

	DL_FOREACH(topo->cmds, cmd) {
		err = cmd->verb->run ? cmd->verb->run(topo, cmd) : run_ports(topo, cmd);
		if (err)
			break;
	}
	return err;
}
