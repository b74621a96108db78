/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Topologies without a file: what the configuration writes out, and what there
 * is without any. Ports are 4x EDR, as the adapters of a small cluster are.
 */
#include "fabric/topology.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define CONF_SPEED	(SPEED_SDR | SPEED_DDR | SPEED_QDR)
#define CONF_EXT	(SPEED_FDR | SPEED_EDR)

static int __attribute__((format(printf, 3, 4)))
fail(char **err, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(err, fmt, ap) < 0)
		*err = NULL;
	va_end(ap);
	return -error;
}

struct node *topology_add_node(struct fabric *fabric, enum node_type type, const char *id,
			       const char *desc, unsigned int num_ports, char **err)
{
	struct node *node;
	unsigned int i;

	if (!*id || strpbrk(id, "#@\"\n")) {
		fail(err, EINVAL, "node \"%s\": expected a name without #, @ and quotes", id);
		errno = EINVAL;
		return NULL;
	}
	if (num_ports < 1 || num_ports > 254) {
		fail(err, EINVAL, "node \"%s\": expected 1 to 254 ports, found %u", id, num_ports);
		errno = EINVAL;
		return NULL;
	}
	node = node_new(fabric, type, id, num_ports, 0);
	if (!node) {
		int error = errno;

		fail(err, error, "node \"%s\": %s", id, strerror(error));
		errno = error;
		return NULL;
	}
	snprintf(node->desc, sizeof(node->desc), "%s", desc ? desc : id);
	for (i = type == NODE_SWITCH ? 0 : 1; i <= num_ports; i++)
		port_enable(&node->ports[i], WIDTH_1X | WIDTH_4X, CONF_SPEED, CONF_EXT);
	return node;
}

static struct port *find_port(struct fabric *fabric, const char *id, unsigned int num, char **err)
{
	struct node *node = fabric_find(fabric, id);

	if (!node) {
		fail(err, EINVAL, "there is no node \"%s\"", id);
		return NULL;
	}
	if (num > node->num_ports) {
		fail(err, EINVAL, "node \"%s\" has ports 1 to %u, not %u", id, node->num_ports,
		     num);
		return NULL;
	}
	if (num)
		return &node->ports[num];
	for (num = 1; num <= node->num_ports; num++)
		if (!node->ports[num].link)
			return &node->ports[num];
	fail(err, EINVAL, "node \"%s\" has no free port", id);
	return NULL;
}

int topology_link(struct fabric *fabric, const char *a, unsigned int port_a,
		  const char *b, unsigned int port_b, char **err)
{
	struct port *pa, *pb;
	int error;

	pa = find_port(fabric, a, port_a, err);
	if (!pa)
		return -EINVAL;
	pb = find_port(fabric, b, port_b, err);
	if (!pb)
		return -EINVAL;
	/* "Any free port" twice of one node is two ports. */
	if (pa == pb && !port_b) {
		for (port_b = pa->num + 1u; port_b <= pb->node->num_ports; port_b++)
			if (!pb->node->ports[port_b].link)
				break;
		if (port_b <= pb->node->num_ports)
			pb = &pb->node->ports[port_b];
	}
	if (pa == pb)
		return fail(err, EINVAL, "port %u of \"%s\" can't be linked to itself", pa->num, a);
	if (link_new(pa, pb))
		return 0;
	error = errno;
	return fail(err, error, "can't link \"%s\" port %u to \"%s\" port %u: %s", a, pa->num, b,
		    pb->num, error == EBUSY ? "one has a link already" : strerror(error));
}

int fabric_default(struct fabric *fabric)
{
	static const char *const hosts[] = { "rxe0", "rxe1" };
	char *err = NULL;
	unsigned int i;
	int ret = 0;

	/* The adapters first: they get the first LIDs. */
	for (i = 0; i < 2 && !ret; i++)
		if (!topology_add_node(fabric, NODE_CA, hosts[i], NULL, 1, &err))
			ret = -errno;
	if (!ret && !topology_add_node(fabric, NODE_SWITCH, "switch", NULL, 8, &err))
		ret = -errno;
	for (i = 0; i < 2 && !ret; i++)
		ret = topology_link(fabric, hosts[i], 1, "switch", i + 1, &err);
	free(err);
	return ret;
}
