/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree: its table, and what walks it. A row's own functions stand in the
 * file of what they show; here nothing knows what a file contains.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fabric/fabric.h"
#include "fs/rows.h"
#include "fs/tree.h"

enum {
	D755 = S_IFDIR | 0755,
	D555 = S_IFDIR | 0555,
	F444 = S_IFREG | 0444,
	F644 = S_IFREG | 0644,
	F600 = S_IFREG | 0600,
	F400 = S_IFREG | 0400,
	F200 = S_IFREG | 0200,
	DEV_PORT = BY_DEV | BY_PORT,
	NODE_PORT = BY_NODE | BY_PORT,
};

const struct kind_row kinds[KIND_MAX] = {
	/* kind		 mode  parent	flags			what is in it */
	[KIND_ROOT] = { D755, KIND_ROOT, 0, FS_CACHE, root_entries, &root_dir },
	[KIND_ROOT_TEXT] = { F444, 0, BY_SUB, FS_CACHE | ROW_LONG, .ops = &root_text_ops },
	[KIND_ERRORS] = { F444, 0, 0, FS_CACHE | ROW_LONG, .ops = &errors_ops },
	[KIND_METRICS] = { F444, 0, 0, FS_CACHE | ROW_LONG, .ops = &metrics_ops },
	[KIND_EVENTS] = { F444, 0, 0, FS_CACHE | ROW_LONG, .ops = &events_ops },

	/* a device, a port */
	[KIND_DEV] = { D755, KIND_ROOT, BY_DEV, 0, dev_entries, &dev_dir,
		       .also = dev_value_entries },
	[KIND_DEV_TEXT] = { F444, 0, BY_DEV | BY_SUB, FS_CACHE, .ops = &dev_text_ops },
	[KIND_DEV_SET] = { F644, 0, BY_DEV | BY_SUB, FS_CACHE, .ops = &dev_set_ops },
	[KIND_DEV_CTL] = { F200, 0, BY_DEV, FS_CACHE | ROW_CHMOD, .ops = &dev_ctl_ops },
	[KIND_DEV_EVENTS] = { F444, 0, BY_DEV, FS_CACHE | ROW_LONG, .ops = &events_ops },
	[KIND_DEV_QUERY] = { S_IFREG | 0666, 0, BY_DEV, FS_CACHE, .ops = &query_ops },
	[KIND_PORT] = { D755, KIND_DEV, DEV_PORT, FS_CACHE, port_entries,
			.also = port_value_entries },
	[KIND_PORT_TEXT] = { F444, 0, DEV_PORT | BY_SUB, FS_CACHE, .ops = &port_text_ops },
	[KIND_PORT_CTL] = { F200, 0, DEV_PORT, FS_CACHE | ROW_CHMOD, .ops = &port_ctl_ops },
	[KIND_PORT_PCAP] = { F400, 0, DEV_PORT, FS_CACHE | ROW_CHMOD | ROW_LONG, .ops = &pcap_ops },
	[KIND_UMAD] = { F600, 0, DEV_PORT, FS_PROCESS | ROW_CHMOD, .ops = &umad_ops, .getattr = umad_getattr },
	[KIND_ISSM] = { F600, 0, DEV_PORT, FS_ACTS | ROW_CHMOD, .ops = &issm_ops,
			.getattr = issm_getattr },
	[KIND_MADS] = { D755, KIND_PORT, DEV_PORT, FS_CACHE, mads_entries, &mads_dir },
	[KIND_MAD_CLONE] = { F600, 0, DEV_PORT, FS_ACTS | ROW_CHMOD, .ops = &mad_clone_ops,
			     .getattr = mad_clone_getattr },
	[KIND_MAD] = { D755, KIND_MADS, DEV_PORT | BY_IDX, 0, mad_entries, .getattr = mad_getattr },
	[KIND_MAD_CTL] = { F600, 0, DEV_PORT | BY_IDX, 0, .ops = &mad_ctl_ops,
			   .getattr = mad_getattr },
	[KIND_MAD_DATA] = { F600, 0, DEV_PORT | BY_IDX, ROW_LONG, .ops = &mad_data_ops,
			    .getattr = mad_getattr },
	[KIND_MAD_STATUS] = { F400, 0, DEV_PORT | BY_IDX, ROW_LONG, .ops = &mad_status_ops,
			      .getattr = mad_getattr },
	[KIND_GIDS] = { D755, KIND_PORT, DEV_PORT, FS_CACHE, .dir = &table_dir },
	[KIND_GID] = { F444, 0, DEV_PORT | BY_IDX, 0, .ops = &gid_ops },
	[KIND_PKEYS] = { D755, KIND_PORT, DEV_PORT, FS_CACHE, .dir = &table_dir },
	[KIND_PKEY] = { F444, 0, DEV_PORT | BY_IDX, 0, .ops = &pkey_ops },
	[KIND_GID_ATTRS] = { D755, KIND_PORT, DEV_PORT, FS_CACHE, gid_attrs_entries },
	[KIND_GID_TYPES] = { D755, KIND_GID_ATTRS, DEV_PORT, FS_CACHE, .dir = &table_dir },
	[KIND_GID_TYPE] = { F444, 0, DEV_PORT | BY_IDX, 0, .ops = &gid_type_ops },
	[KIND_GID_NDEVS] = { D755, KIND_GID_ATTRS, DEV_PORT, FS_CACHE, .dir = &table_dir },
	[KIND_GID_NDEV] = { F444, 0, DEV_PORT | BY_IDX, 0, .ops = &gid_ndev_ops },
	[KIND_COUNTERS] = { D755, KIND_PORT, DEV_PORT, FS_CACHE, .dir = &counters_dir },
	[KIND_COUNTER] = { F644, 0, DEV_PORT | BY_SUB, FS_CACHE, .ops = &counter_ops },
	[KIND_HW_COUNTERS] = { D755, KIND_PORT, DEV_PORT, FS_CACHE, .dir = &hw_counters_dir },
	[KIND_HW_COUNTER] = { F444, 0, DEV_PORT | BY_SUB, FS_CACHE, .ops = &hw_counter_ops },

	/* the far node */
	[KIND_PEER] = { D555, KIND_PEER_PORT, BY_DEV | BY_IDX, FS_ASKS, .dir = &peer_dir,
			.getattr = peer_getattr, .ready = peer_ready, .up = peer_up },
	[KIND_PEER_TEXT] = { F444, 0, BY_DEV | BY_IDX | BY_SUB, 0, .ops = &peer_text_ops,
			     .getattr = peer_getattr },
	[KIND_PEER_PORTS] = { D555, KIND_PEER, BY_DEV | BY_IDX, FS_ASKS, .dir = &peer_ports_dir,
			      .getattr = peer_getattr, .ready = peer_ports_ready, .up = peer_up },
	[KIND_PEER_PORT] = { D555, KIND_PEER_PORTS, BY_DEV | BY_IDX, 0, peer_port_entries,
			     .getattr = peer_getattr, .up = peer_up },
	[KIND_PEER_PORT_TEXT] = { F444, 0, BY_DEV | BY_IDX | BY_SUB, 0,
				  .ops = &peer_port_text_ops, .getattr = peer_getattr },
	[KIND_PEER_COUNTERS] = { D555, KIND_PEER_PORT, BY_DEV | BY_IDX, 0, .dir = &counters_dir,
				 .getattr = peer_getattr, .up = peer_up },
	[KIND_PEER_COUNTER] = { F644, 0, BY_DEV | BY_IDX | BY_SUB, 0, .ops = &peer_counter_ops,
				.getattr = peer_getattr },

	/* IP interfaces */
	[KIND_IPOIBS] = { D755, KIND_PORT, DEV_PORT, FS_CACHE, ipoibs_entries, &ipoibs_dir },
	[KIND_IPOIB_CLONE] = { F600, 0, DEV_PORT, FS_CACHE, .ops = &ipoib_clone_ops },
	[KIND_IPOIB] = { D755, KIND_IPOIBS, DEV_PORT | BY_IDX, 0, ipoib_entries,
			 .getattr = ipoib_getattr },
	[KIND_IPOIB_CTL] = { F600, 0, DEV_PORT | BY_IDX, 0, .ops = &ipoib_ctl_ops,
			     .getattr = ipoib_getattr },
	[KIND_IPOIB_TEXT] = { F444, 0, DEV_PORT | BY_IDX | BY_SUB, ROW_LONG,
			      .ops = &ipoib_text_ops, .getattr = ipoib_getattr },
	[KIND_IPOIB_TABLE] = { F444, 0, DEV_PORT | BY_IDX | BY_SUB, ROW_LONG,
			       .ops = &ipoib_table_ops, .getattr = ipoib_getattr },
	[KIND_IPOIB_FRAME] = { F600, 0, DEV_PORT | BY_IDX, ROW_LONG, .ops = &ipoib_frame_ops,
			       .getattr = ipoib_getattr },
	[KIND_IPOIB_EVENTS] = { F444, 0, DEV_PORT | BY_IDX, ROW_LONG, .ops = &events_ops,
				.getattr = ipoib_getattr },
	[KIND_IPOIB_STATS] = { D755, KIND_IPOIB, DEV_PORT | BY_IDX, 0, .dir = &ipoib_stats_dir,
			       .getattr = ipoib_getattr },
	[KIND_IPOIB_STAT] = { F444, 0, DEV_PORT | BY_IDX | BY_SUB, 0, .ops = &ipoib_stat_ops,
			      .getattr = ipoib_getattr },

	/* verbs' objects */
	[KIND_OBJS] = { S_IFDIR | 01777, KIND_ROOT, BY_OBJ_KIND | BY_SUB, FS_CACHE, .dir = &objs_dir },
	[KIND_OBJ] = { D755, KIND_OBJS, BY_OBJ | BY_SUB, 0, .dir = &obj_dir, .getattr = obj_getattr },
	[KIND_OBJ_FILE] = { F600, 0, BY_OBJ | BY_SUB | BY_PORT, 0, .ops = &obj_file_ops,
			    .getattr = obj_getattr, .setattr = obj_setattr },
	[KIND_OBJ_CLONE] = { S_IFREG | 0666, 0, BY_OBJ_KIND | BY_SUB, FS_CACHE | FS_ACTS | FS_GROUPS,
			     .ops = &obj_clone_ops, .getattr = clone_getattr },

	/* the fabric */
	[KIND_FABRIC] = { D755, KIND_ROOT, 0, FS_CACHE, fabric_entries },
	[KIND_TOPOLOGY] = { F444, 0, 0, FS_CACHE | ROW_LONG, .ops = &topology_ops },
	[KIND_FABRIC_CTL] = { F200, 0, 0, FS_CACHE | ROW_CHMOD, .ops = &fabric_ctl_ops },
	[KIND_SWITCHES] = { D755, KIND_FABRIC, 0, FS_CACHE, .dir = &nodes_dir },
	[KIND_NODES] = { D755, KIND_FABRIC, 0, FS_CACHE, .dir = &nodes_dir },
	[KIND_SWITCH] = { D755, KIND_SWITCHES, BY_NODE, 0, switch_entries },
	[KIND_NODE] = { D755, KIND_NODES, BY_NODE, 0, node_entries },
	[KIND_NODE_TEXT] = { F444, 0, BY_NODE | BY_SUB, ROW_LONG, .ops = &node_text_ops },
	[KIND_NODE_LFT] = { F444, 0, BY_NODE, ROW_LONG, .ops = &node_lft_ops },
	[KIND_NODE_MFT] = { F444, 0, BY_NODE, ROW_LONG, .ops = &node_mft_ops },
	[KIND_NODE_CTL] = { F200, 0, BY_NODE, ROW_CHMOD, .ops = &node_ctl_ops },
	[KIND_NODE_PORTS] = { D755, KIND_NODE, BY_NODE, 0, .dir = &node_ports_dir },
	[KIND_NODE_PORT] = { D755, KIND_NODE_PORTS, NODE_PORT, 0, node_port_entries },
	[KIND_NODE_PORT_TEXT] = { F444, 0, NODE_PORT | BY_SUB, 0, .ops = &node_port_text_ops },
	[KIND_NODE_PCAP] = { F400, 0, NODE_PORT, ROW_CHMOD | ROW_LONG, .ops = &pcap_ops },
	[KIND_NODE_COUNTERS] = { D755, KIND_NODE_PORT, NODE_PORT, 0, .dir = &node_counters_dir },
	[KIND_NODE_COUNTER] = { F644, 0, NODE_PORT | BY_SUB, 0, .ops = &node_counter_ops },
	[KIND_LINKS] = { D755, KIND_FABRIC, 0, FS_CACHE, .dir = &links_dir },
	[KIND_LINK] = { D755, KIND_LINKS, BY_LINK, 0, link_entries },
	[KIND_LINK_TEXT] = { F444, 0, BY_LINK | BY_SUB, ROW_LONG, .ops = &link_text_ops },
	[KIND_LINK_CTL] = { F200, 0, BY_LINK, ROW_CHMOD, .ops = &link_ctl_ops },

	/* what /dev and /sys/class show */
	[KIND_DEVDIR] = { D755, KIND_ROOT, 0, FS_CACHE, devdir_entries },
	[KIND_DEVDIR_IB] = { D755, KIND_DEVDIR, 0, FS_CACHE, .entries = devdir_ib_entries,
			   .dir = &devdir_ib_dir },
	[KIND_DEVDIR_EV] = { D755, KIND_DEVDIR_IB, 0, FS_CACHE, .dir = &ev_dir },
	[KIND_UMAD_RING] = { F600, 0, BY_IDX, FS_PROCESS, .ops = &umad_ring_ops,
			     .getattr = umad_ring_getattr },
	[KIND_UVERBS] = { S_IFREG | 0666, 0, BY_DEV, FS_FRESH | FS_PROCESS | ROW_CHMOD, .ops = &uverbs_ops,
			  .getattr = uverbs_getattr },
	[KIND_UVERBS_EVENTS] = { F600, 0, BY_IDX, FS_PROCESS, .ops = &uv_events_ops,
				 .getattr = uv_events_getattr },
	[KIND_UCMA] = { S_IFREG | 0666, 0, 0, FS_PROCESS | ROW_CHMOD, .ops = &ucma_ops,
			.getattr = uverbs_getattr },
	[KIND_SYS] = { D755, KIND_ROOT, 0, FS_CACHE, sys_entries },
	[KIND_SYS_CLASS] = { D755, KIND_SYS, 0, FS_CACHE, sys_class_entries },
	[KIND_SYS_IB] = { D755, KIND_SYS_CLASS, 0, FS_CACHE, .dir = &sys_ib_dir },
	[KIND_SYS_MAD] = { D755, KIND_SYS_CLASS, 0, FS_CACHE, sys_mad_entries, &sys_mad_dir },
	[KIND_SYS_VERBS] = { D755, KIND_SYS_CLASS, 0, FS_CACHE, uverbs_class_entries,
			     &uverbs_class_dir },
	[KIND_SYS_VERBS_ABI] = { F444, 0, 0, FS_CACHE, .ops = &uverbs_abi_ops },
	[KIND_SYS_UVERBS] = { D755, KIND_SYS_VERBS, BY_DEV, 0, sys_uverbs_entries },
	[KIND_SYS_UVERBS_DEVICE] = { D755, KIND_SYS_UVERBS, BY_DEV, FS_CACHE,
				     sys_device_entries },
	[KIND_SYS_UVERBS_TEXT] = { F444, 0, BY_DEV | BY_SUB, FS_CACHE, .ops = &uverbs_text_ops },
	[KIND_SYS_MISC] = { D755, KIND_SYS_CLASS, 0, FS_CACHE, sys_misc_entries },
	[KIND_SYS_UCMA] = { D755, KIND_SYS_MISC, 0, FS_CACHE, sys_ucma_entries },
	[KIND_SYS_UCMA_TEXT] = { F444, 0, BY_SUB, FS_CACHE, .ops = &ucma_text_ops },
	[KIND_SYS_TEXT] = { F444, 0, BY_SUB, FS_CACHE, .ops = &sys_text_ops },
	[KIND_SYS_DEV] = { D755, KIND_SYS_IB, BY_DEV, 0, sys_dev_entries, .also = dev_value_entries },
	[KIND_SYS_DEVICE] = { D755, KIND_SYS_DEV, BY_DEV, FS_CACHE, sys_device_entries,
			      &sys_device_dir },
	[KIND_SYS_NETS] = { D755, KIND_SYS_DEVICE, BY_DEV, 0, .dir = &sys_nets_dir },
	[KIND_SYS_NET] = { D755, KIND_SYS_NETS, DEV_PORT | BY_IDX, 0, sys_net_entries,
			   .getattr = ipoib_getattr },
	[KIND_SYS_DEVICE_TEXT] = { F444, 0, BY_DEV | BY_SUB, FS_CACHE, .ops = &sys_device_text_ops },
	[KIND_SYS_PORTS] = { D755, KIND_SYS_DEV, BY_DEV, FS_CACHE, .dir = &sys_ports_dir },
	[KIND_SYS_PORT] = { D755, KIND_SYS_PORTS, DEV_PORT, FS_CACHE, sys_port_entries,
			    .also = port_value_entries },
	[KIND_SYS_GIDS] = { D755, KIND_SYS_PORT, DEV_PORT, FS_CACHE, .dir = &table_dir },
	[KIND_SYS_PKEYS] = { D755, KIND_SYS_PORT, DEV_PORT, FS_CACHE, .dir = &table_dir },
	[KIND_SYS_GID_ATTRS] = { D755, KIND_SYS_PORT, DEV_PORT, FS_CACHE, sys_gid_attrs_entries },
	[KIND_SYS_GID_TYPES] = { D755, KIND_SYS_GID_ATTRS, DEV_PORT, FS_CACHE, .dir = &table_dir },
	[KIND_SYS_GID_NDEVS] = { D755, KIND_SYS_GID_ATTRS, DEV_PORT, FS_CACHE, .dir = &table_dir },
	[KIND_SYS_COUNTERS] = { D755, KIND_SYS_PORT, DEV_PORT, FS_CACHE, .dir = &counters_dir },
	[KIND_SYS_HW_COUNTERS] = { D755, KIND_SYS_PORT, DEV_PORT, FS_CACHE, .dir = &hw_counters_dir },
	[KIND_SYS_UMAD] = { D755, KIND_SYS_MAD, DEV_PORT, 0, sys_umad_entries },
	[KIND_SYS_ISSM] = { D755, KIND_SYS_MAD, DEV_PORT, 0, sys_issm_entries },
	[KIND_SYS_UMAD_TEXT] = { F444, 0, DEV_PORT | BY_SUB, FS_CACHE, .ops = &sys_umad_text_ops },

	/* what a 9P attach to "ctl" finds */
	[KIND_P9_CTL] = { D755, KIND_P9_CTL, 0, FS_CACHE, p9_ctl_entries },
	[KIND_P9_NULL] = { S_IFREG | 0666, 0, 0, FS_CACHE, .ops = &p9_null_ops },
	[KIND_P9_ZERO] = { S_IFREG | 0666, 0, 0, FS_CACHE, .ops = &p9_zero_ops },
};

uint64_t path_pack(struct path path)
{
	if (path.kind == KIND_ROOT)
		return 1;
	return (uint64_t)path.kind << 56 | (uint64_t)path.sub << 48 | (uint64_t)path.port << 40 |
	       (uint64_t)(path.dev & 0xfff) << 28 | (path.idx & 0xfffffff);
}

struct path path_unpack(uint64_t ino)
{
	if (ino == 1)
		return (struct path){ .kind = KIND_ROOT };
	return (struct path){
		.kind = ino >> 56,
		.sub = ino >> 48,
		.port = ino >> 40,
		.dev = ino >> 28 & 0xfff,
		.idx = ino & 0xfffffff,
	};
}

struct ibfs_device *path_device(struct ibfs *ibfs, struct path path)
{
	return device_get(ibfs, path.dev);
}

static int check_device(struct ibfs *ibfs, struct path path, unsigned int by)
{
	const struct ibfs_device *dev = path_device(ibfs, path);

	if (!dev)
		return -ENOENT;
	if ((by & BY_PORT) && (path.port < dev->first_port || path.port > dev->num_ports))
		return -ENOENT;
	return 0;
}

static int check_node(const struct fabric *fabric, struct path path, unsigned int by)
{
	const struct node *node;

	if (!fabric || path.idx >= fabric->num_nodes || !fabric->nodes[path.idx])
		return -ENOENT;
	node = fabric->nodes[path.idx];
	if ((by & BY_PORT) && (path.port > node->num_ports || (!path.port && !node->sw)))
		return -ENOENT;
	return 0;
}

static int check_link(const struct fabric *fabric, struct path path)
{
	if (!fabric || path.idx >= fabric->num_links || !fabric->links[path.idx])
		return -ENOENT;
	return 0;
}

int path_check(struct ibfs *ibfs, struct path path)
{
	unsigned int by;

	if (path.kind >= KIND_MAX || !kinds[path.kind].mode)
		return -ENOENT;
	by = kinds[path.kind].by;
	if (by & BY_DEV)
		return check_device(ibfs, path, by);
	if (by & BY_NODE)
		return check_node(ibfs->fabric, path, by);
	if (by & BY_LINK)
		return check_link(ibfs->fabric, path);
	if (by & (BY_OBJ | BY_OBJ_KIND))
		return obj_check(ibfs, path);
	return 0;
}

unsigned int fs_flags(struct path path)
{
	unsigned int flags = kinds[path.kind].flags;

	flags &= FS_CACHE | FS_FRESH | FS_PROCESS | FS_ACTS | FS_ASKS | FS_GROUPS;
	return path.kind == KIND_OBJ_FILE ? flags | obj_file_flags(path) : flags;
}

ssize_t fs_ready(struct fs_req *req, struct path dir)
{
	int ret = path_check(req->ibfs, dir);

	req->file = NULL;
	req->cancel = NULL;
	return !ret && kinds[dir.kind].ready ? kinds[dir.kind].ready(req, dir) : ret;
}

mode_t fs_type(struct path path)
{
	return kinds[path.kind].mode & S_IFMT;
}

/* The directory of a directory: the same numbers, as far as it is told apart by them. */
static struct path parent_path(struct ibfs *ibfs, struct path dir)
{
	struct path up = { .kind = kinds[dir.kind].parent };
	unsigned int by;

	if (kinds[dir.kind].up)
		return kinds[dir.kind].up(ibfs, dir);
	/* What is in a node's directory is the same in switches/ and nodes/. */
	if (up.kind == KIND_NODE && ibfs->fabric->nodes[dir.idx]->sw)
		up.kind = KIND_SWITCH;
	by = kinds[up.kind].by;
	if (by & BY_DEV)
		up.dev = dir.dev;
	if (by & BY_PORT)
		up.port = dir.port;
	if (by & (BY_NODE | BY_LINK | BY_IDX | BY_OBJ))
		up.idx = dir.idx;
	if (by & BY_SUB)
		up.sub = dir.sub;
	return up;
}

/* The entry at a position that may come from outside; NULL behind the last one. */
static const struct entry *nth_entry(const struct kind_row *row, uint64_t n)
{
	const struct entry *const lists[] = { row->entries, row->also };
	const struct entry *entry;
	unsigned int i;

	for (i = 0; i < 2; i++)
		for (entry = lists[i]; entry && entry->name; entry++)
			if (!n--)
				return entry;
	return NULL;
}

static const struct entry *find_entry(const struct kind_row *row, const char *name)
{
	const struct entry *entry;
	uint64_t n = 0;

	while ((entry = nth_entry(row, n++)))
		if (!strcmp(entry->name, name))
			return entry;
	return NULL;
}

static struct path entry_path(struct path dir, const struct entry *entry)
{
	dir.kind = entry->kind;
	dir.sub = entry->sub;
	return dir;
}

static int check_dir(struct ibfs *ibfs, struct path dir)
{
	int ret = path_check(ibfs, dir);

	if (ret)
		return ret;
	return S_ISDIR(kinds[dir.kind].mode) ? 0 : -ENOTDIR;
}

int fs_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	const struct entry *entry;
	const struct kind_row *row;
	int ret;

	ret = check_dir(ibfs, dir);
	if (ret)
		return ret;
	row = &kinds[dir.kind];
	if (!strcmp(name, "..")) {
		*child = parent_path(ibfs, dir);
		return 0;
	}
	entry = find_entry(row, name);
	if (entry) {
		*child = entry_path(dir, entry);
		return 0;
	}
	if (!row->dir)
		return -ENOENT;
	*child = dir;
	return row->dir->lookup(ibfs, dir, name, child);
}

/* Cookies: the entries' positions first, then GENERATED and the generator's. */
#define GENERATED (1ULL << 56)

int fs_readdir(struct ibfs *ibfs, struct path dir, uint64_t *cookie, char name[256],
	       struct path *child)
{
	const struct kind_row *row;
	const struct entry *entry;
	uint64_t pos;
	int ret;

	ret = check_dir(ibfs, dir);
	if (ret)
		return ret;
	row = &kinds[dir.kind];
	if (*cookie < GENERATED) {
		entry = nth_entry(row, *cookie);
		if (entry) {
			snprintf(name, 256, "%s", entry->name);
			*child = entry_path(dir, entry);
			++*cookie;
			return 1;
		}
		*cookie = GENERATED;
	}
	if (!row->dir)
		return 0;
	*child = dir;
	pos = *cookie - GENERATED;
	ret = row->dir->next(ibfs, dir, &pos, name, child);
	*cookie = GENERATED + pos;
	return ret;
}

int fs_mkdir(struct ibfs *ibfs, struct path dir, const char *name, mode_t mode,
	     const struct fs_cred *cred, struct path *child)
{
	int ret = check_dir(ibfs, dir);

	if (ret)
		return ret;
	if (find_entry(&kinds[dir.kind], name))
		return -EEXIST;
	if (!kinds[dir.kind].dir || !kinds[dir.kind].dir->mkdir)
		return -EPERM;
	*child = dir;
	return kinds[dir.kind].dir->mkdir(ibfs, dir, name, mode, cred, child);
}

int fs_rmdir(struct ibfs *ibfs, struct path dir, const char *name, const struct fs_cred *cred)
{
	int ret = check_dir(ibfs, dir);

	if (ret)
		return ret;
	if (!kinds[dir.kind].dir || !kinds[dir.kind].dir->rmdir)
		return -EPERM;
	return kinds[dir.kind].dir->rmdir(ibfs, dir, name, cred);
}
