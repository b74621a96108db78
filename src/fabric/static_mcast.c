/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of the static subnet: an MLID and a spanning tree for each
 * MGID that has members. The tree's root is the first member's switch, and
 * branches without members are cut, but each switch sends what comes in to its
 * parent: so senders need not be members. MFTs: 14.2.5.10, 18.2.4.3.3.
 */
#include "fabric/static.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MFT_WORDS	8		/* 256 ports */

struct member {
	struct port *port;
	unsigned int count;
};

struct static_group {
	uint8_t mgid[16];
	uint16_t mlid;
	unsigned int num, size;
	struct member *members;
	UT_hash_handle hh;
};

/* Of one switch, by node->index. */
struct branch {
	bool seen;
	uint8_t up;			/* port to the parent; 0: a root */
	uint32_t mask[MFT_WORDS];
};

struct tree {
	struct fabric *fabric;
	struct branch *branches;
	struct node **queue;
};

/* The switch that a member hangs on and by which port; NULL: none. */
static struct node *member_switch(const struct port *port, unsigned int *at)
{
	struct port *peer;

	*at = 0;
	if (port->node->type == NODE_SWITCH)
		return port->node;
	peer = static_peer(port);
	if (!peer || peer->node->type != NODE_SWITCH)
		return NULL;
	*at = peer->num;
	return peer->node;
}

static void set_bit(struct branch *branch, unsigned int port)
{
	branch->mask[port / 32] |= 1u << port % 32;
}

static bool has_bit(const struct branch *branch, unsigned int port)
{
	return branch->mask[port / 32] & 1u << port % 32;
}

/* Parents for all switches that can reach root. */
static void span(struct tree *tree, struct node *root)
{
	unsigned int head = 0, tail = 0, i;

	if (tree->branches[root->index].seen)
		return;
	tree->branches[root->index].seen = true;
	tree->queue[tail++] = root;
	while (head < tail) {
		struct node *node = tree->queue[head++];

		for (i = 1; i <= node->num_ports; i++) {
			struct port *peer = static_peer(&node->ports[i]);
			struct branch *branch;

			if (!peer || peer->node->type != NODE_SWITCH)
				continue;
			branch = &tree->branches[peer->node->index];
			if (branch->seen)
				continue;
			branch->seen = true;
			branch->up = peer->num;
			set_bit(branch, peer->num);
			tree->queue[tail++] = peer->node;
		}
	}
}

/* From the root down to the member. */
static void add_member(struct tree *tree, const struct port *port)
{
	struct branch *branch;
	struct node *node;
	unsigned int at;

	node = member_switch(port, &at);
	if (!node)
		return;
	span(tree, node);
	branch = &tree->branches[node->index];
	set_bit(branch, at);
	while (branch->up) {
		const struct port *peer = node->ports[branch->up].peer;

		node = peer->node;
		branch = &tree->branches[node->index];
		if (has_bit(branch, peer->num))
			return;
		set_bit(branch, peer->num);
	}
}

/* A word that is 0 already isn't written: it would make the table grow. */
static int write_mft(struct tree *tree, uint16_t mlid)
{
	struct fabric *fabric = tree->fabric;
	unsigned int i, word;
	int err;

	for (i = 0; i < fabric->num_nodes; i++) {
		struct node *node = fabric->nodes[i];

		if (!node || node->type != NODE_SWITCH)
			continue;
		for (word = 0; word <= node->num_ports / 32u; word++) {
			uint32_t mask = tree->branches[i].mask[word];

			if (switch_get_mft(node, mlid, word) == mask)
				continue;
			err = switch_set_mft(node, mlid, word, mask);
			if (err)
				return err;
		}
		if (node->sw->mcast_top < mlid)
			node->sw->mcast_top = mlid;
	}
	return 0;
}

static int group_routes(struct fabric *fabric, const struct static_group *group)
{
	struct tree tree = { .fabric = fabric };
	unsigned int i;
	int err = -ENOMEM;

	tree.branches = calloc(fabric->num_nodes + 1, sizeof(*tree.branches));
	tree.queue = calloc(fabric->num_nodes + 1, sizeof(struct node *));
	if (tree.branches && tree.queue) {
		for (i = 0; i < group->num; i++)
			add_member(&tree, group->members[i].port);
		err = write_mft(&tree, group->mlid);
	}
	free(tree.queue);
	free(tree.branches);
	return err;
}

int static_mcast_routes(struct fabric *fabric)
{
	struct static_group *group, *next;
	int err;

	HASH_ITER(hh, fabric->groups, group, next) {
		err = group_routes(fabric, group);
		if (err)
			return err;
	}
	return 0;
}

/* How many MLIDs every switch has room for. */
static unsigned int mlid_room(const struct fabric *fabric)
{
	unsigned int i, room = LID_MCAST_MAX - LID_MCAST_MIN + 1;

	for (i = 0; i < fabric->num_nodes; i++) {
		const struct node *node = fabric->nodes[i];

		if (node && node->sw && node->sw->mft_cap < room)
			room = node->sw->mft_cap;
	}
	return room;
}

/* The lowest that is free: 0 when all are taken, or -ENOMEM. */
static int free_mlid(const struct fabric *fabric)
{
	unsigned int i, room = mlid_room(fabric);
	struct static_group *group;
	bool *used;

	used = calloc(LID_MCAST_MAX - LID_MCAST_MIN + 1, sizeof(*used));
	if (!used)
		return -ENOMEM;
	for (group = fabric->groups; group; group = group->hh.next)
		used[group->mlid - LID_MCAST_MIN] = true;
	for (i = 0; i < room && used[i]; i++)
		;
	free(used);
	return i < room ? (int)(LID_MCAST_MIN + i) : 0;
}

static struct static_group *find_group(const struct fabric *fabric, const uint8_t mgid[16])
{
	struct static_group *group;

	HASH_FIND(hh, fabric->groups, mgid, sizeof(group->mgid), group);
	return group;
}

static int new_group(struct fabric *fabric, const uint8_t mgid[16], struct static_group **group)
{
	int mlid = free_mlid(fabric);

	if (mlid <= 0)
		return mlid ? mlid : -ENOSPC;
	*group = calloc(1, sizeof(**group));
	if (!*group)
		return -ENOMEM;
	memcpy((*group)->mgid, mgid, sizeof((*group)->mgid));
	(*group)->mlid = mlid;
	HASH_ADD(hh, fabric->groups, mgid, sizeof((*group)->mgid), *group);
	return 0;
}

static void free_group(struct fabric *fabric, struct static_group *group)
{
	HASH_DEL(fabric->groups, group);
	free(group->members);
	free(group);
}

static struct member *find_member(struct static_group *group, const struct port *port)
{
	unsigned int i;

	for (i = 0; i < group->num; i++)
		if (group->members[i].port == port)
			return &group->members[i];
	return NULL;
}

static int new_member(struct static_group *group, struct port *port)
{
	if (group->num == group->size) {
		unsigned int size = group->size ? group->size * 2 : 4;
		void *members = realloc(group->members, size * sizeof(*group->members));

		if (!members)
			return -ENOMEM;
		group->members = members;
		group->size = size;
	}
	group->members[group->num++] = (struct member){ .port = port, .count = 1 };
	return 0;
}

static void drop_member(struct static_group *group, struct member *member)
{
	memmove(member, member + 1,
		(group->members + --group->num - member) * sizeof(*member));
}

int static_mcast_attach(struct fabric *fabric, struct port *port, const uint8_t mgid[16])
{
	struct static_group *group;
	struct member *member;
	int err = 0;

	if (!fabric->static_owned)
		return -EOPNOTSUPP;
	group = find_group(fabric, mgid);
	if (!group)
		err = new_group(fabric, mgid, &group);
	if (err)
		return err;
	member = find_member(group, port);
	if (member) {
		member->count++;
		return group->mlid;
	}
	err = new_member(group, port);
	if (!err) {
		err = group_routes(fabric, group);
		if (err)
			group->num--;
	}
	if (!group->num)
		free_group(fabric, group);
	return err ? err : group->mlid;
}

int static_mcast_detach(struct fabric *fabric, struct port *port, const uint8_t mgid[16])
{
	struct static_group *group = find_group(fabric, mgid);
	struct member *member = group ? find_member(group, port) : NULL;
	int err = 0;

	if (!member)
		return -ENOENT;
	if (--member->count)
		return 0;
	drop_member(group, member);
	/* A subnet manager's tables are its own. */
	if (fabric->static_owned)
		err = group_routes(fabric, group);
	if (!group->num)
		free_group(fabric, group);
	return err;
}

int static_mcast_mlid(struct fabric *fabric, const uint8_t mgid[16])
{
	struct static_group *group;

	if (!fabric->static_owned)
		return -EOPNOTSUPP;
	group = find_group(fabric, mgid);
	return group ? group->mlid : -ENOENT;
}

void static_node_gone(struct node *node)
{
	struct fabric *fabric = node->fabric;
	struct static_group *group, *next;
	unsigned int i;

	HASH_ITER(hh, fabric->groups, group, next) {
		for (i = group->num; i-- > 0; )
			if (group->members[i].port->node == node)
				drop_member(group, &group->members[i]);
		if (group->num)
			continue;
		/* Else the caller's refresh makes the routes anew. */
		if (fabric->static_owned)
			group_routes(fabric, group);
		free_group(fabric, group);
	}
}

void static_exit(struct fabric *fabric)
{
	struct static_group *group, *next;

	HASH_ITER(hh, fabric->groups, group, next)
		free_group(fabric, group);
}

void static_mcast_each(struct fabric *fabric, void (*fn)(void *ctx, const uint8_t mgid[16]),
		       void *ctx)
{
	struct static_group *group, *next;

	HASH_ITER(hh, fabric->groups, group, next)
		fn(ctx, group->mgid);
}
