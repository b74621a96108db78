/* SPDX-License-Identifier: BSD-2-Clause */
/* The fabric that there is without configuration. Uses nodes and links only. */
#include "fabric/fabric.h"

#include <errno.h>

int fabric_default(struct fabric *fabric)
{
	static const char *const hosts[] = { "rxe0", "rxe1" };
	struct node *ca[2], *sw;
	unsigned int i;

	/* The adapters first: they get the first LIDs. */
	for (i = 0; i < 2; i++) {
		ca[i] = node_new(fabric, NODE_CA, hosts[i], 1, 0);
		if (!ca[i])
			return -errno;
	}
	sw = node_new(fabric, NODE_SWITCH, "switch", 8, 0);
	if (!sw)
		return -errno;
	for (i = 0; i < 2; i++)
		if (!link_new(&ca[i]->ports[1], &sw->ports[i + 1]))
			return -errno;
	return 0;
}
