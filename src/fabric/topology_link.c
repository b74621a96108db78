/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * After reading: the two ends that records declare become links, if they agree.
 */
#include "fabric/topology.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int topo_link_ports(struct topo *topo, struct topo_place place, struct port *a, struct port *b)
{
	if (a == b)
		return topo_fail_at(topo, place, "\"%s\"[%u] can't be linked to itself",
				    a->node->id, a->num);
	if (a->link && a->link->down)
		link_remove(a->link);
	if (b->link && b->link->down)
		link_remove(b->link);
	if (a->link || b->link) {
		const struct port *busy = a->link ? a : b;

		return topo_fail_at(topo, place, "\"%s\"[%u] is linked already", busy->node->id,
				    busy->num);
	}
	if (!link_new(a, b))
		return topo_nomem(topo);
	if (a->phys_state != PHYS_LINKUP)
		return topo_fail_at(topo, place, "\"%s\"[%u] (w=%u s=%u e=%u) and \"%s\"[%u] "
				    "(w=%u s=%u e=%u): expected a common width and speed",
				    a->node->id, a->num, a->width_enabled, a->speed_enabled,
				    a->speed_ext_enabled, b->node->id, b->num, b->width_enabled,
				    b->speed_enabled, b->speed_ext_enabled);
	return 0;
}

static int connect_alias(struct topo *topo, struct topo_decl *decl, struct port *port)
{
	struct topo_alias *alias;

	HASH_FIND_STR(topo->aliases, decl->remote, alias);
	if (!alias)
		return topo_fail_at(topo, decl->place, "expected a port that bears the alias "
				    "\"%s\", found none", decl->remote);
	return topo_link_ports(topo, decl->place, port, alias->port);
}

/* The other end's record must say the same. */
static int check_agreement(struct topo *topo, const struct topo_decl *decl, const struct port *port,
			   const struct port *remote)
{
	const struct topo_decl *other = topo_decl(topo, remote);
	const struct node *node = port->node;

	if (!other || !other->place.line || !other->remote)
		return topo_fail_at(topo, decl->place, "\"%s\"[%u] doesn't say that it is linked: "
				    "expected [%u] \"%s\"[%u] in its record", remote->node->id,
				    remote->num, remote->num, node->id, port->num);
	if (other->remote_port != port->num || strcmp(other->remote, node->id))
		return topo_fail_at(topo, decl->place, "\"%s\"[%u] is linked to \"%s\"[%u] in "
				    "%s:%u, expected \"%s\"[%u]", remote->node->id, remote->num,
				    other->remote, other->remote_port, other->place.file,
				    other->place.line, node->id, port->num);
	return 0;
}

/* A port's GUID may stand at its own line, at the other end's, or both. */
static int check_remote_guid(struct topo *topo, const struct topo_decl *decl, struct port *remote)
{
	struct topo_decl *other = topo_decl(topo, remote);

	if (!decl->remote_guid || remote->node->type == NODE_SWITCH)
		return 0;
	if (other->guid_given && remote->guid != decl->remote_guid)
		return topo_fail_at(topo, decl->place, "\"%s\"[%u] has GUID (%" PRIx64 ") here, "
				    "(%" PRIx64 ") in %s:%u", remote->node->id, remote->num,
				    decl->remote_guid, remote->guid, other->place.file,
				    other->place.line);
	remote->guid = decl->remote_guid;
	other->guid_given = true;
	return 0;
}

static int connect_decl(struct topo *topo, struct topo_decl *decl, struct port *port)
{
	struct node *node;
	struct port *remote;
	int err;

	if (port->peer && !strcmp(port->peer->node->id, decl->remote) &&
	    port->peer->num == decl->remote_port)
		return check_remote_guid(topo, decl, port->peer);	/* came from the other end */
	node = fabric_find(topo->fabric, decl->remote);
	if (!node)
		return topo_fail_at(topo, decl->place, "expected a record of node \"%s\", found "
				    "none", decl->remote);
	if (decl->remote_port > node->num_ports)
		return topo_fail_at(topo, decl->place, "the other end's port: expected 1 to %u, "
				    "which \"%s\" has, found %u", node->num_ports, node->id,
				    decl->remote_port);
	remote = &node->ports[decl->remote_port];
	err = check_agreement(topo, decl, port, remote);
	if (!err)
		err = check_remote_guid(topo, decl, remote);
	return err ? err : topo_link_ports(topo, decl->place, port, remote);
}

static int connect_node(struct topo *topo, struct node *node)
{
	unsigned int i;
	int err = 0;

	for (i = 1; i <= node->num_ports && !err; i++) {
		struct topo_decl *decl = topo_decl(topo, &node->ports[i]);

		if (!decl->remote)
			continue;
		err = decl->remote_is_alias ? connect_alias(topo, decl, &node->ports[i]) :
					      connect_decl(topo, decl, &node->ports[i]);
	}
	return err;
}

int topo_connect(struct topo *topo)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < topo->num_nodes && !err; i++)
		err = connect_node(topo, topo->fabric->nodes[topo->first_node + i]);
	return err;
}

/* Where a port's GUID was given, or its node's. */
static struct topo_place guid_place(struct topo *topo, const struct port *port)
{
	const struct topo_decl *decl = topo_decl(topo, port);

	if (decl->place.line && decl->guid_given)
		return decl->place;
	return topo->nodes[port->node->index - topo->first_node].place;
}

static int compare_guids(const void *a, const void *b)
{
	const struct port *p = *(const struct port *const *)a;
	const struct port *q = *(const struct port *const *)b;

	if (p->guid != q->guid)
		return p->guid < q->guid ? -1 : 1;
	if (p->node->index != q->node->index)
		return p->node->index < q->node->index ? -1 : 1;
	return p->num - q->num;
}

static int check_sorted(struct topo *topo, struct port *const *ports, size_t num)
{
	struct topo_place place;
	size_t i;

	/* The last GUID plus a port's number is none. */
	if (num && !ports[0]->guid)
		return topo_fail_at(topo, guid_place(topo, ports[0]), "\"%s\"[%u]: expected a GUID "
				    "other than 0", ports[0]->node->id, ports[0]->num);
	for (i = 1; i < num; i++) {
		if (ports[i]->guid != ports[i - 1]->guid)
			continue;
		place = guid_place(topo, ports[i - 1]);
		return topo_fail_at(topo, guid_place(topo, ports[i]), "port \"%s\"[%u] has GUID "
				    "0x%" PRIx64 ", which \"%s\"[%u] has from %s:%u",
				    ports[i]->node->id, ports[i]->num, ports[i]->guid,
				    ports[i - 1]->node->id, ports[i - 1]->num, place.file,
				    place.line);
	}
	return 0;
}

static size_t end_ports(const struct topo *topo, struct port **ports)
{
	unsigned int i, j, first, last;
	size_t num = 0;

	for (i = 0; i < topo->num_nodes; i++) {
		struct node *node = topo->fabric->nodes[topo->first_node + i];

		first = node->type == NODE_SWITCH ? 0 : 1;
		last = node->type == NODE_SWITCH ? 0 : node->num_ports;
		for (j = first; j <= last; j++, num++)
			if (ports)
				ports[num] = &node->ports[j];
	}
	return num;
}

/* Two ports of one GUID would be one to a subnet manager. */
int topo_check_guids(struct topo *topo)
{
	size_t num = end_ports(topo, NULL);
	struct port **ports = calloc(num + 1, sizeof(struct port *));
	int err;

	if (!ports)
		return topo_nomem(topo);
	end_ports(topo, ports);
	qsort(ports, num, sizeof(struct port *), compare_guids);
	err = check_sorted(topo, ports, num);
	free(ports);
	return err;
}
