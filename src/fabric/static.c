/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The static subnet: what a subnet manager would do, done at once: LIDs,
 * routes, ports ACTIVE. It lasts until a subnet manager takes over.
 */
#include "fabric/static.h"
#include "ibfs/ibfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct lid_map {
	bool used[LID_UCAST_MAX + 1];
	uint32_t next[8];		/* by LMC: where to look for a free block */
	uint16_t top;
	unsigned int wanted;		/* all LIDs that end ports want */
};

static bool take_block(struct lid_map *map, uint32_t lid, unsigned int lmc)
{
	uint32_t i, num = 1u << lmc;

	if (!lid || lid & (num - 1) || lid + num - 1 > LID_UCAST_MAX)
		return false;
	for (i = 0; i < num; i++)
		if (map->used[lid + i])
			return false;
	memset(&map->used[lid], true, num);
	if (lid + num - 1 > map->top)
		map->top = lid + num - 1;
	return true;
}

/* Blocks of one size never fill up again below the last one. */
static uint16_t find_block(struct lid_map *map, unsigned int lmc)
{
	uint32_t lid, num = 1u << lmc;

	for (lid = map->next[lmc] ? map->next[lmc] : num; lid <= LID_UCAST_MAX; lid += num) {
		if (take_block(map, lid, lmc)) {
			map->next[lmc] = lid + num;
			return lid;
		}
	}
	map->next[lmc] = lid;
	return 0;
}

/* Call fn for each end port. */
static int for_end_ports(struct fabric *fabric, struct lid_map *map,
			 int (*fn)(struct lid_map *map, struct port *port))
{
	unsigned int i, j, last;
	int err = 0;

	for (i = 0; i < fabric->num_nodes && !err; i++) {
		struct node *node = fabric->nodes[i];

		if (!node)
			continue;
		j = node->type == NODE_SWITCH ? 0 : 1;
		last = node->type == NODE_SWITCH ? 0 : node->num_ports;
		for (; j <= last && !err; j++)
			err = fn(map, &node->ports[j]);
	}
	return err;
}

/* First come, first served; who comes second gets another one. */
static int keep_lid(struct lid_map *map, struct port *port)
{
	if (port->lmc > 7)
		port->lmc = 7;
	if (port->lid && !take_block(map, port->lid, port->lmc))
		port->lid = 0;
	if (port->lid || port->link || !port->num)
		map->wanted += 1u << port->lmc;
	return 0;
}

static int give_lid(struct lid_map *map, struct port *port)
{
	if (port->lid || (port->num && !port->link))
		return 0;
	port->lid = find_block(map, port->lmc);
	if (!port->lid)
		return -ENOSPC;
	port_event(port, PORT_EV_LID);
	return 0;
}

static void activate(struct port *port)
{
	if (port->state == PORT_INIT)
		port_set_state(port, PORT_ARMED);
	if (port->state == PORT_ARMED)
		port_set_state(port, PORT_ACTIVE);
}

static void activate_all(struct fabric *fabric)
{
	unsigned int i;

	for (i = 0; i < fabric->num_links; i++) {
		if (!fabric->links[i])
			continue;
		activate(fabric->links[i]->a);
		activate(fabric->links[i]->b);
	}
}

static int build(struct fabric *fabric, unsigned int *wanted)
{
	struct lid_map *map = calloc(1, sizeof(*map));
	int err;

	if (!map)
		return -ENOMEM;
	for_end_ports(fabric, map, keep_lid);
	err = for_end_ports(fabric, map, give_lid);
	if (!err)
		err = static_routes(fabric, map->top);
	if (!err)
		err = static_mcast_routes(fabric);
	if (!err)
		activate_all(fabric);
	*wanted = map->wanted;
	free(map);
	return err;
}

int static_subnet(struct fabric *fabric, char **err)
{
	unsigned int wanted = 0;
	int ret = build(fabric, &wanted);

	*err = NULL;
	if (!ret)
		fabric->static_owned = true;
	else if (ret != -ENOSPC)
		*err = strdup("no memory for the static subnet's routes");
	else if (asprintf(err, "the static subnet needs %u LIDs, and there are %d", wanted,
			  LID_UCAST_MAX) < 0)
		*err = NULL;
	return ret;
}

void static_subnet_refresh(struct fabric *fabric)
{
	unsigned int wanted;
	int err;

	if (!fabric->static_owned)
		return;
	err = build(fabric, &wanted);
	if (err)
		ibfs_log(fabric->ibfs, "the static subnet's routes are out of date: %s",
			 strerror(-err));
}
