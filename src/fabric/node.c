/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes: made, found by id and GUID, removed. IBA 14.2.5.3 (NodeInfo).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"
#include "fabric/link.h"

#define PORT_ALIGN	64	/* of struct port: a cache line */
#define MAX_PORTS	254

/* First GUIDs for nodes that come without one. */
static const uint64_t first_guid[] = {
	[NODE_CA] = 0x100000,
	[NODE_SWITCH] = 0x200000,
	[NODE_ROUTER] = 0x300000,
};

struct fabric *fabric_new(struct ibfs *ibfs, const struct node_ops *sim_ops)
{
	struct fabric *fabric = calloc(1, sizeof(*fabric));

	if (!fabric)
		return NULL;
	fabric->ibfs = ibfs;
	fabric->sim_ops = sim_ops;
	memcpy(fabric->next_guid, first_guid, sizeof(first_guid));
	return fabric;
}

void fabric_free(struct fabric *fabric)
{
	if (!fabric)
		return;
	static_exit(fabric);
	for (unsigned int i = 0; i < fabric->num_nodes; i++)
		if (fabric->nodes[i])
			node_remove(fabric->nodes[i]);
	for (unsigned int i = 0; i <= NODE_ROUTER; i++)
		free(fabric->types[i].nodes);
	free(fabric->nodes);
	free(fabric->by_port_guid.ports);
	free(fabric->links);
	free(fabric);
}

struct node *fabric_find(struct fabric *fabric, const char *id)
{
	struct node *node;

	HASH_FIND(hh_id, fabric->by_id, id, strlen(id), node);
	return node;
}

struct node *fabric_find_guid(struct fabric *fabric, uint64_t guid)
{
	struct node *node;

	HASH_FIND(hh_guid, fabric->by_guid, &guid, sizeof(guid), node);
	return node;
}

/* Where in the list the first node stands whose index is at least this. */
static unsigned int list_find(const struct node_list *list, unsigned int index)
{
	unsigned int low = 0, high = list->count;

	while (low < high) {
		unsigned int mid = low + (high - low) / 2;

		if (list->nodes[mid]->index < index)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct node *fabric_node_from(const struct fabric *fabric, enum node_type type, unsigned int index)
{
	const struct node_list *list = &fabric->types[type];
	unsigned int at = list_find(list, index);

	return at < list->count ? list->nodes[at] : NULL;
}

struct port *fabric_find_port(struct fabric *fabric, const char *id, unsigned int num)
{
	struct node *node = fabric_find(fabric, id);

	if (!node || num > node->num_ports || (num == 0 && !node->sw))
		return NULL;
	return &node->ports[num];
}

struct link *fabric_find_link(struct fabric *fabric, const char *name)
{
	/* An id may hold any of the name's separators: try each colon as the first end's. */
	for (const char *colon = strchr(name, ':'); colon; colon = strchr(colon + 1, ':')) {
		char *id = strndup(name, colon - name);
		struct port *port = id ? fabric_find_port(fabric, id, strtoul(colon + 1, NULL, 10)) :
					 NULL;
		char other[256];

		free(id);
		if (port && port->link &&
		    link_name(port->link, other, sizeof(other)) < (int)sizeof(other) &&
		    !strcmp(other, name))
			return port->link;
	}
	return NULL;
}

/* The next GUIDs of a kind that nobody has: a CA's ports take as many as it has ports. */
static uint64_t free_guid(struct fabric *fabric, enum node_type type, unsigned int num_ports)
{
	uint64_t guid;

	do {
		guid = fabric->next_guid[type];
		fabric->next_guid[type] += type == NODE_SWITCH ? 1 : num_ports + 1;
	} while (fabric_find_guid(fabric, guid));
	return guid;
}

static struct switch_info *new_switch_info(unsigned int num_ports)
{
	struct switch_info *sw = calloc(1, sizeof(*sw));

	if (!sw)
		return NULL;
	sw->lft_cap = 0xc000;
	sw->mft_cap = 4096;
	sw->default_port = 255;
	sw->default_mcast_primary = 255;
	sw->default_mcast_not_primary = 255;
	sw->life_time = 18;
	sw->part_enforce_cap = 32;
	sw->mft_words = num_ports / 32 + 1;
	return sw;
}

static struct port *new_ports(struct node *node)
{
	size_t size = (node->num_ports + 1U) * sizeof(struct port);
	struct port *ports = aligned_alloc(PORT_ALIGN, size);

	if (!ports)
		return NULL;
	memset(ports, 0, size);
	node->ports = ports;
	for (unsigned int i = 0; i <= node->num_ports; i++) {
		ports[i].node = node;
		ports[i].num = i;
		if (node->type != NODE_SWITCH)
			ports[i].guid = node->guid + i;
		if (i || node->sw)
			port_init(&ports[i]);
	}
	if (node->type == NODE_SWITCH)
		ports[0].guid = node->guid;
	return ports;
}

/* Room for one node more, by doubling. */
static bool grow(struct node ***nodes, unsigned int num)
{
	size_t size = num ? 2 * (size_t)num : 1;
	struct node **more;

	if (num & (num - 1))
		return true;
	more = reallocarray(*nodes, size, sizeof(struct node *));
	if (more)
		*nodes = more;
	return more;
}

/* A slot in the list of all nodes, and a place in that of its type. */
static bool add_node(struct fabric *fabric, struct node *node)
{
	struct node_list *list = &fabric->types[node->type];

	if (!grow(&fabric->nodes, fabric->num_nodes) || !grow(&list->nodes, list->count))
		return false;
	node->index = fabric->num_nodes;
	fabric->nodes[fabric->num_nodes++] = node;
	list->nodes[list->count++] = node;
	fabric->by_port_guid.valid = false;
	fabric->changes++;
	HASH_ADD_KEYPTR(hh_id, fabric->by_id, node->id, strlen(node->id), node);
	HASH_ADD(hh_guid, fabric->by_guid, guid, sizeof(node->guid), node);
	return true;
}

static void free_node(struct node *node)
{
	for (unsigned int i = 0; node->ports && i <= node->num_ports; i++)
		port_free_tables(&node->ports[i]);
	free(node->ports);
	if (node->sw) {
		free(node->sw->lft);
		free(node->sw->mft);
		free(node->sw);
	}
	free(node->id);
	free(node);
}

static void node_init(struct node *node, struct fabric *fabric, enum node_type type,
		      unsigned int num_ports, uint64_t guid)
{
	node->fabric = fabric;
	node->type = type;
	node->num_ports = num_ports;
	node->num_pkeys = 32;
	node->num_guids = 32;
	node->guid = guid ? guid : free_guid(fabric, type, num_ports);
	node->sysimg_guid = node->guid;
	node->ops = fabric->sim_ops;
	snprintf(node->desc, sizeof(node->desc), "%s", node->id);
}

struct node *node_new(struct fabric *fabric, enum node_type type, const char *id,
		      unsigned int num_ports, uint64_t guid)
{
	struct node *node;

	if (num_ports < 1 || num_ports > MAX_PORTS || !*id) {
		errno = EINVAL;
		return NULL;
	}
	if (fabric_find(fabric, id) || (guid && fabric_find_guid(fabric, guid))) {
		errno = EEXIST;
		return NULL;
	}
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	node->id = strdup(id);
	if (node->id)
		node_init(node, fabric, type, num_ports, guid);
	if (!node->id || (type == NODE_SWITCH && !(node->sw = new_switch_info(num_ports))) ||
	    !new_ports(node) || !add_node(fabric, node)) {
		free_node(node);
		errno = ENOMEM;
		return NULL;
	}
	return node;
}

static void list_remove(struct node_list *list, const struct node *node)
{
	unsigned int at = list_find(list, node->index);

	memmove(&list->nodes[at], &list->nodes[at + 1], (--list->count - at) * sizeof(node));
}

void node_remove(struct node *node)
{
	struct fabric *fabric = node->fabric;

	for (unsigned int i = 1; i <= node->num_ports; i++)
		if (node->ports[i].link)
			link_remove(node->ports[i].link);
	for (unsigned int i = 0; i <= node->num_ports; i++)
		if (&node->ports[i] == port_end(&node->ports[i]) && (i || node->sw))
			port_event(&node->ports[i], PORT_EV_REMOVED);
	if (node->ops->free)
		node->ops->free(node);
	static_node_gone(node);
	HASH_DELETE(hh_id, fabric->by_id, node);
	HASH_DELETE(hh_guid, fabric->by_guid, node);
	list_remove(&fabric->types[node->type], node);
	fabric->nodes[node->index] = NULL;
	fabric->by_port_guid.valid = false;
	fabric->changes++;
	free_node(node);
}
