/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PORT/peer/: places, and the directories of them. What is at the other end of a
 * cable is known from NodeInfo, whether there is a cable that works from
 * PortInfo of its near end. A switch is passed by one hop more of the directed
 * route; from another node one only comes back. A node that is on the way
 * already doesn't list its ports, so that a loop of cables ends; by name one may
 * go on.
 */
#include <errno.h>
#include <infiniband/mad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/peer.h"
#include "fs/rows.h"

enum { LINK_UP = 5, MAX_IDX = 0xfffffff };	/* PortInfo:PortPhysicalState */

struct peers *peers_get(struct ibfs *ibfs)
{
	struct peers *peers = ibfs->fs->peers;

	if (!peers) {
		peers = calloc(1, sizeof(*peers));
		if (peers)
			peers->ibfs = ibfs;
		ibfs->fs->peers = peers;
	}
	return peers;
}

struct peer_place *peer_place(struct ibfs *ibfs, uint32_t num)
{
	struct peer_place *place = NULL;

	if (ibfs->fs->peers)
		HASH_FIND(by_num, ibfs->fs->peers->by_num, &num, sizeof(num), place);
	return place;
}

static void place_free(struct peers *peers, struct peer_place *place)
{
	if (place->parent)
		place->parent->children--;
	HASH_DELETE(by_num, peers->by_num, place);
	HASH_DELETE(by_key, peers->by_key, place);
	DL_DELETE(peers->places, place);
	free(place);
}

/* The device's places go, from the one that was unused for longest: see touch(). */
void peer_device_gone(const struct ibfs_device *dev)
{
	struct peers *peers = dev->ibfs->fs->peers;
	struct peer_place *place, *before;

	place = peers && peers->places ? peers->places->prev : NULL;
	for (; place && peers->by_num && peers->by_key; place = before) {
		before = place == peers->places ? NULL : place->prev;
		if (place->way.dev == dev->num)
			place_free(peers, place);
	}
}

void peers_exit(struct ibfs *ibfs)
{
	struct peers *peers = ibfs->fs->peers;
	struct peer_place *place, *next;

	if (!peers)
		return;
	peer_answers_free(peers);
	HASH_CLEAR(by_key, peers->by_key);
	HASH_CLEAR(by_num, peers->by_num);
	DL_FOREACH_SAFE(peers->places, place, next)
		free(place);
	free(peers);
	ibfs->fs->peers = NULL;
}

/* It was used, and so were those on the way to it: they stay longer than it. */
static void touch(struct peers *peers, struct peer_place *place)
{
	for (; place; place = place->parent) {
		DL_DELETE(peers->places, place);
		DL_PREPEND(peers->places, place);
	}
}

static uint64_t way_key(const struct peer_way *way)
{
	return (uint64_t)way->place << 32 | (uint32_t)way->dev << 8 | way->port;
}

static struct peer_place *place_new(struct peers *peers, const struct peer_way *way,
				    struct peer_place *parent)
{
	struct peer_place *place = calloc(1, sizeof(*place));

	if (!place)
		return NULL;
	/* The one that was unused for longest has nothing behind it: see touch(). */
	if (HASH_CNT(by_num, peers->by_num) >= PEER_PLACES)
		place_free(peers, peers->places->prev);
	do
		place->num = ++peers->next_num & MAX_IDX;
	while (!place->num || peer_place(peers->ibfs, place->num));
	place->way = *way;
	place->key = way_key(way);
	place->parent = parent;
	place->depth = parent ? parent->depth + 1 : 1;
	if (parent)
		parent->children++;
	HASH_ADD(by_num, peers->by_num, num, sizeof(place->num), place);
	HASH_ADD(by_key, peers->by_key, key, sizeof(place->key), place);
	DL_PREPEND(peers->places, place);
	touch(peers, place);
	return place;
}

/* How one comes to the other end of the device's own port: a switch's port 0 is itself. */
static void route_first(struct peer_place *place)
{
	place->reachable = true;
	place->port = place->way.port;
	place->hops = place->port ? 1 : 0;
	place->route[1] = place->port;
}

/* How one comes there from the place before, of which NodeInfo is known. */
static void route_on(struct peer_place *place, const uint8_t *info)
{
	const struct peer_place *parent = place->parent;
	bool is_switch = mad_get_field((void *)info, 0, IB_NODE_TYPE_F) == NODE_IS_SWITCH;
	bool back = place->way.port == mad_get_field((void *)info, 0, IB_NODE_LOCAL_PORT_F);

	place->port = parent->port;
	memcpy(place->route, parent->route, sizeof(place->route));
	place->hops = parent->hops;
	place->reachable = true;
	place->entry = 0;
	if (is_switch && place->way.port && parent->hops < PEER_HOPS) {
		place->route[++place->hops] = place->way.port;
	} else if (!is_switch && back && parent->hops) {
		/* It is asked by the way there, which comes in by another port. */
		place->entry = place->route[place->hops--];
	} else if (!is_switch && back && !parent->hops && place->port == place->way.port) {
		place->route[++place->hops] = place->way.port;
	} else {
		place->reachable = false;
	}
}

struct peer_place *peer_place_at(struct ibfs *ibfs, struct path path)
{
	struct peer_way way = { .place = path.idx, .dev = path.dev, .port = path.port };
	struct peer_place *parent = way.place ? peer_place(ibfs, way.place) : NULL, *place;
	struct peers *peers = peers_get(ibfs);
	uint64_t key = way_key(&way);
	const uint8_t *info = parent ? peer_known(ibfs, parent, PEER_NODE_INFO) : NULL;

	errno = peers ? ENOENT : ENOMEM;
	if (!peers || (way.place && (!info || parent->depth >= PEER_HOPS)))
		return NULL;
	/* Making one may make room; not by what is used here. */
	if (parent)
		touch(peers, parent);
	HASH_FIND(by_key, peers->by_key, &key, sizeof(key), place);
	if (place)
		touch(peers, place);
	else
		place = place_new(peers, &way, parent);
	errno = ENOMEM;
	if (place && parent)
		route_on(place, info);
	else if (place)
		route_first(place);
	return place;
}

/* Is the near end of the cable up? 1, 0, -errno or FS_PENDING. */
static ssize_t cable_up(struct fs_req *req, struct path path)
{
	struct ibfs_device *dev = path_device(req->ibfs, path);
	struct peer_place *parent;
	struct ibv_port_attr attr;
	const uint8_t *data;
	ssize_t ret;

	if (!path.idx) {
		if (!path.port)
			return 1;
		ret = dev->ops->query_port(dev, path.port, &attr);
		return ret ? ret : attr.phys_state == LINK_UP;
	}
	parent = peer_place(req->ibfs, path.idx);
	if (!parent)
		return -ENOENT;
	/* What kind of node it is tells how one goes on. */
	ret = peer_ask(req, parent, PEER_NODE_INFO, peer_try_again, &data);
	if (!ret)
		ret = peer_ask(req, parent, PEER_PORT_INFO(path.port), peer_try_again, &data);
	if (ret)
		return ret;
	return mad_get_field((void *)data, 0, IB_PORT_PHYS_STATE_F) == LINK_UP;
}

/* Of a directory that there is no node for it isn't an error: it is empty. */
static ssize_t nothing_there(ssize_t ret)
{
	return ret == -ETIMEDOUT || ret == -EREMOTEIO || ret == -EHOSTUNREACH ? 0 : ret;
}

ssize_t peer_ready(struct fs_req *req, struct path path)
{
	ssize_t ret = cable_up(req, path);
	struct peer_place *place;
	const uint8_t *data;

	if (ret < 0)
		return nothing_there(ret);
	place = peer_place_at(req->ibfs, path);
	if (!place)
		return errno == ENOENT ? 0 : -errno;
	place->cable = ret;
	if (!place->cable)
		return 0;
	return nothing_there(peer_ask(req, place, PEER_NODE_INFO, peer_try_again, &data));
}

ssize_t peer_ports_ready(struct fs_req *req, struct path path)
{
	struct peer_place *place = peer_place(req->ibfs, path.idx);
	const uint8_t *data;

	if (!place)
		return -ENOENT;
	return nothing_there(peer_ask(req, place, PEER_NODE_INFO, peer_try_again, &data));
}

/* What it names is there as long as the place is remembered; KIND_PEER of a device always. */
int peer_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	(void)st;
	if (path.kind == KIND_PEER && !path.idx)
		return 0;
	return peer_place(ibfs, path.idx) ? 0 : -ENOENT;
}

struct path peer_up(struct ibfs *ibfs, struct path dir)
{
	const struct peer_place *place = peer_place(ibfs, dir.idx);
	struct path up = { .kind = kinds[dir.kind].parent, .dev = dir.dev, .idx = dir.idx };

	if (dir.kind == KIND_PEER && !dir.idx)
		up.kind = KIND_PORT;
	if (dir.kind != KIND_PEER_PORT)
		up.port = dir.port;
	if (dir.kind == KIND_PEER_PORTS) {
		up.port = place ? place->way.port : 0;
		up.idx = place ? place->way.place : 0;
	}
	return up;
}

static const struct entry peer_entries[] = {
	{ "node_desc", KIND_PEER_TEXT, PEER_TEXT_DESC },
	{ "node_guid", KIND_PEER_TEXT, PEER_TEXT_GUID },
	{ "node_type", KIND_PEER_TEXT, PEER_TEXT_TYPE },
	{ "attr", KIND_PEER_TEXT, PEER_TEXT_ATTR },
	{ "ports", KIND_PEER_PORTS, 0 },
};
enum { ENTRIES = sizeof(peer_entries) / sizeof(peer_entries[0]) };

/* The node at the end of the cable, or NULL: there is none. */
static struct peer_place *node_at(struct ibfs *ibfs, struct path dir)
{
	struct peer_place *place = peer_place_at(ibfs, dir);

	return place && place->cable && peer_known(ibfs, place, PEER_NODE_INFO) ? place : NULL;
}

static void peer_child(struct path *child, const struct peer_place *place, unsigned int entry)
{
	child->kind = peer_entries[entry].kind;
	child->sub = peer_entries[entry].sub;
	child->port = 0;
	child->idx = place->num;
}

static int peer_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	const struct peer_place *place = node_at(ibfs, dir);
	unsigned int i;

	for (i = 0; place && i < ENTRIES; i++) {
		if (strcmp(peer_entries[i].name, name) != 0)
			continue;
		peer_child(child, place, i);
		return 0;
	}
	return -ENOENT;
}

/* Did one come by this node before, or start from it? */
static bool seen_before(struct ibfs *ibfs, const struct peer_place *place)
{
	const struct ibfs_device *dev = device_get(ibfs, place->way.dev);
	const struct peer_place *at;

	for (at = place->parent; at; at = at->parent)
		if (at->guid == place->guid)
			return true;
	/* A switch's own port 0 leads to itself: that is where one starts. */
	for (at = place; at->parent; at = at->parent)
		;
	return dev && dev->node_guid == place->guid && (at != place || place->hops);
}

static int peer_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		     struct path *child)
{
	const struct peer_place *place = node_at(ibfs, dir);

	if (!place || *pos >= ENTRIES)
		return 0;
	if (peer_entries[*pos].kind == KIND_PEER_PORTS && seen_before(ibfs, place))
		return 0;
	snprintf(name, 256, "%s", peer_entries[*pos].name);
	peer_child(child, place, *pos);
	++*pos;
	return 1;
}

const struct dir_ops peer_dir = { .lookup = peer_lookup, .next = peer_next };

/* A switch's begin at 0. */
static bool port_range(struct ibfs *ibfs, struct path dir, uint64_t *first, uint64_t *last)
{
	const struct peer_place *place = peer_place(ibfs, dir.idx);
	const uint8_t *info = place ? peer_known(ibfs, place, PEER_NODE_INFO) : NULL;

	if (!info)
		return false;
	*first = mad_get_field((void *)info, 0, IB_NODE_TYPE_F) != NODE_IS_SWITCH;
	*last = mad_get_field((void *)info, 0, IB_NODE_NPORTS_F);
	return true;
}

static int ports_in_lookup(struct ibfs *ibfs, struct path dir, const char *name,
			   struct path *child)
{
	uint64_t port, first, last;

	if (!port_range(ibfs, dir, &first, &last) || number_name(name, last, &port) ||
	    port < first)
		return -ENOENT;
	child->kind = KIND_PEER_PORT;
	child->port = port;
	return 0;
}

static int ports_in_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
			 struct path *child)
{
	uint64_t first, last;

	if (!port_range(ibfs, dir, &first, &last) || *pos + first > last)
		return 0;
	child->kind = KIND_PEER_PORT;
	child->port = *pos + first;
	snprintf(name, 256, "%u", child->port);
	++*pos;
	return 1;
}

const struct dir_ops peer_ports_dir = { .lookup = ports_in_lookup, .next = ports_in_next };

const struct entry peer_port_entries[] = {
	{ "attr", KIND_PEER_PORT_TEXT, PEER_TEXT_ATTR },
	{ "state", KIND_PEER_PORT_TEXT, PEER_TEXT_STATE },
	{ "lid", KIND_PEER_PORT_TEXT, PEER_TEXT_LID },
	{ "counters", KIND_PEER_COUNTERS, 0 },
	{ "peer", KIND_PEER, 0 },
	{ NULL, 0, 0 }
};
