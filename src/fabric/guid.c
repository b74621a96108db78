/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * End ports by their GUID: a list in the order of GUIDs, made when somebody asks
 * after nodes came or went.
 */
#include <stdlib.h>

#include "fabric/fabric.h"

/* Port 0 of a switch, all of another node. */
static unsigned int end_ports(const struct node *node, struct port **first)
{
	*first = &node->ports[node->sw ? 0 : 1];
	return node->sw ? 1 : node->num_ports;
}

static int by_guid(const void *a, const void *b)
{
	const struct port *const *pa = a, *const *pb = b;
	const struct port *x = *pa, *y = *pb;

	if (x->guid != y->guid)
		return x->guid < y->guid ? -1 : 1;
	return (x->node->index > y->node->index) - (x->node->index < y->node->index);
}

static bool make_list(struct fabric *fabric)
{
	struct port_list *list = &fabric->by_port_guid;
	struct port *port, **ports;
	unsigned int i, n, count = 0;

	for (i = 0; i < fabric->num_nodes; i++)
		count += fabric->nodes[i] ? end_ports(fabric->nodes[i], &port) : 0;
	ports = reallocarray(list->ports, count ? count : 1, sizeof(struct port *));
	if (!ports)
		return false;
	list->ports = ports;
	list->count = 0;
	for (i = 0; i < fabric->num_nodes; i++)
		for (n = fabric->nodes[i] ? end_ports(fabric->nodes[i], &port) : 0; n; n--)
			ports[list->count++] = port++;
	qsort(ports, count, sizeof(struct port *), by_guid);
	list->valid = true;
	return true;
}

struct port *fabric_find_port_guid(struct fabric *fabric, uint64_t guid)
{
	const struct port_list *list = &fabric->by_port_guid;
	unsigned int low = 0, high;

	if (!list->valid && !make_list(fabric))
		return NULL;
	high = list->count;
	while (low < high) {
		unsigned int mid = low + (high - low) / 2;

		if (list->ports[mid]->guid < guid)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < list->count && list->ports[low]->guid == guid; low++)
		if (list->ports[low]->lid)
			return list->ports[low];
	return NULL;
}
