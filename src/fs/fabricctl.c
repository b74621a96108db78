/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/topology, fabric/ctl and a node's ctl: nodes become devices and
 * simulated nodes again, nodes go, cables are plugged in and out.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/fabricdir.h"
#include "fs/rows.h"

const struct entry fabric_entries[] = {
	{ "topology", KIND_TOPOLOGY, 0 },
	{ "ctl", KIND_FABRIC_CTL, 0 },
	{ "switches", KIND_SWITCHES, 0 },
	{ "nodes", KIND_NODES, 0 },
	{ "links", KIND_LINKS, 0 },
	{ NULL, 0, 0 }
};

static int topology_more(struct ibfs *ibfs, struct path path, void *state, struct textbuf *out)
{
	(void)path;
	return topology_dump(state, ibfs->fabric, out);
}

const struct file_ops topology_ops = {
	.show_more = topology_more,
	.state_size = sizeof(struct topology_dump),
};

static void refresh(struct task *task)
{
	struct fs *fs = (struct fs *)((char *)task - offsetof(struct fs, refresh));

	static_subnet_refresh(fs->ibfs->fabric);
}

void fabric_changed(struct ibfs *ibfs)
{
	ibfs->fs->refresh.fn = refresh;
	task_queue(ibfs->tasks, &ibfs->fs->refresh);
}

static struct node *find_node(struct ibfs *ibfs, const char *name)
{
	struct node *node = NULL;
	char id[256];

	if (id_from_name(id, sizeof(id), name))
		node = fabric_find(ibfs->fabric, id);
	if (!node)
		ibfs_fail(ibfs, ENOENT, "fabric/ctl: no node \"%s\"", name);
	return node;
}

/* The lowest rxeN that is free. */
static void free_name(struct ibfs *ibfs, char name[20])
{
	unsigned int n = 0;

	do {
		snprintf(name, 20, "rxe%u", n++);
	} while (device_find(ibfs, name));
}

static int add_device(struct ibfs *ibfs, struct node *node, const char *arg)
{
	const char *wanted = arg ? ctl_value(arg, "name") : NULL;
	char name[20];
	int ret;

	if (arg && !wanted)
		return ibfs_fail(ibfs, EINVAL, "fabric/ctl: \"%s\": expected name=NAME", arg);
	if (!wanted) {
		free_name(ibfs, name);
		wanted = name;
	}
	ret = soft_device_add(ibfs, wanted, node->id);
	if (ret)
		return ibfs_fail(ibfs, -ret, "fabric/ctl: node %s can't be a device \"%s\"%s",
				 node->id, wanted,
				 ret == -EBUSY ? ": it is one already" :
				 ret == -EEXIST ? ": the name is taken" : "");
	return 0;
}

static int remove_node(struct ibfs *ibfs, struct node *node)
{
	pcap_node_gone(ibfs, node);
	node_remove(node);
	fabric_changed(ibfs);
	return 0;
}

static int ctl_device(struct ibfs *ibfs, struct ctl_line *line)
{
	struct node *node = find_node(ibfs, line->argv[1]);

	return node ? add_device(ibfs, node, line->argc > 2 ? line->argv[2] : NULL) : -ENOENT;
}

static int ctl_undevice(struct ibfs *ibfs, struct ctl_line *line)
{
	struct ibfs_device *dev = device_find(ibfs, line->argv[1]);

	if (!dev)
		return ibfs_fail(ibfs, ENOENT, "fabric/ctl: no device \"%s\"", line->argv[1]);
	dev->ops->remove(dev);
	return 0;
}

static int ctl_remove(struct ibfs *ibfs, struct ctl_line *line)
{
	struct node *node = find_node(ibfs, line->argv[1]);

	return node ? remove_node(ibfs, node) : -ENOENT;
}

static struct port *find_end(struct ibfs *ibfs, const char *name)
{
	struct port *port = port_by_name(ibfs->fabric, name);

	if (!port || !port->num) {
		ibfs_fail(ibfs, ENOENT, "fabric/ctl: no port \"%s\" (NODE:PORT)", name);
		return NULL;
	}
	return port;
}

static int ctl_link(struct ibfs *ibfs, struct ctl_line *line)
{
	struct port *a = find_end(ibfs, line->argv[1]);
	struct port *b = find_end(ibfs, line->argv[2]);

	if (!a || !b)
		return -ENOENT;
	if (!link_new(a, b))
		return ibfs_fail(ibfs, errno, "fabric/ctl: %s and %s can't be linked%s",
				 line->argv[1], line->argv[2],
				 errno == EBUSY ? ": one has a cable already" : "");
	fabric_changed(ibfs);
	return 0;
}

/* By the link's name or by one of its ends. */
static int ctl_unlink(struct ibfs *ibfs, struct ctl_line *line)
{
	struct link *link = link_by_name(ibfs->fabric, line->argv[1]);
	struct port *port;

	if (!link) {
		port = port_by_name(ibfs->fabric, line->argv[1]);
		link = port ? port->link : NULL;
	}
	if (!link)
		return ibfs_fail(ibfs, ENOENT, "fabric/ctl: no link \"%s\"", line->argv[1]);
	link_remove(link);
	fabric_changed(ibfs);
	return 0;
}

static int add_node(struct ibfs *ibfs, struct ctl_line *line, enum node_type type)
{
	uint64_t ports;

	if (parse_u64(line->argv[2], 254, &ports) || !ports)
		return ibfs_fail(ibfs, EINVAL, "fabric/ctl: \"%s\": expected 1 to 254 ports",
				 line->argv[2]);
	if (strlen(line->argv[1]) > 64)
		return ibfs_fail(ibfs, ENAMETOOLONG, "fabric/ctl: an id of more than 64 bytes");
	if (!node_new(ibfs->fabric, type, line->argv[1], ports, 0))
		return ibfs_fail(ibfs, errno, "fabric/ctl: no new node \"%s\"%s", line->argv[1],
				 errno == EEXIST ? ": there is one" : "");
	fabric_changed(ibfs);
	return 0;
}

static int ctl_ca(struct ibfs *ibfs, struct ctl_line *line)
{
	return add_node(ibfs, line, NODE_CA);
}

static int ctl_switch(struct ibfs *ibfs, struct ctl_line *line)
{
	return add_node(ibfs, line, NODE_SWITCH);
}

static const struct {
	const char *name, *usage;
	unsigned int min, max;		/* arguments */
	int (*run)(struct ibfs *ibfs, struct ctl_line *line);
} fabric_verbs[] = {
	{ "device", "NODE [name=NAME]", 1, 2, ctl_device },
	{ "undevice", "NAME", 1, 1, ctl_undevice },
	{ "remove", "NODE", 1, 1, ctl_remove },
	{ "link", "NODE:PORT NODE:PORT", 2, 2, ctl_link },
	{ "unlink", "LINK", 1, 1, ctl_unlink },
	{ "ca", "ID PORTS", 2, 2, ctl_ca },
	{ "switch", "ID PORTS", 2, 2, ctl_switch },
};

static int fabric_command(void *ctx, struct ctl_line *line)
{
	struct ibfs *ibfs = ctx;
	unsigned int i;

	for (i = 0; i < sizeof(fabric_verbs) / sizeof(fabric_verbs[0]); i++) {
		if (strcmp(fabric_verbs[i].name, line->argv[0]) != 0)
			continue;
		if (line->argc - 1 < fabric_verbs[i].min || line->argc - 1 > fabric_verbs[i].max)
			return ibfs_fail(ibfs, EINVAL, "fabric/ctl: expected `%s %s`",
					 fabric_verbs[i].name, fabric_verbs[i].usage);
		return fabric_verbs[i].run(ibfs, line);
	}
	return ibfs_fail(ibfs, EINVAL, "fabric/ctl: no command \"%s\"", line->argv[0]);
}

static ssize_t fabric_ctl_store(struct file *file, struct fs_req *req, const char *text, size_t len)
{
	(void)req;
	return ctl_write(file->ibfs, text, len, fabric_command, file->ibfs);
}

const struct file_ops fabric_ctl_ops = { .store = fabric_ctl_store, .lines = true };

static int node_undevice(struct ibfs *ibfs, struct node *node)
{
	struct ibfs_device *dev = node_device(ibfs, node);

	if (!dev)
		return ibfs_fail(ibfs, ENOENT, "node %s is no device", node->id);
	dev->ops->remove(dev);
	return 0;
}

static int node_command(void *ctx, struct ctl_line *line)
{
	struct file *file = ctx;
	struct ibfs *ibfs = file->ibfs;
	struct node *node = ibfs->fabric->nodes[file->path.idx];

	if (!node)
		return ibfs_fail(ibfs, ENODEV, "the node is gone");
	if (!strcmp(line->argv[0], "device") && line->argc <= 2)
		return add_device(ibfs, node, line->argc == 2 ? line->argv[1] : NULL);
	if (!strcmp(line->argv[0], "undevice") && line->argc == 1)
		return node_undevice(ibfs, node);
	if (!strcmp(line->argv[0], "remove") && line->argc == 1)
		return remove_node(ibfs, node);
	return ibfs_fail(ibfs, EINVAL,
			 "node %s: expected `device [name=NAME]`, `undevice` or `remove`", node->id);
}

static ssize_t node_ctl_store(struct file *file, struct fs_req *req, const char *text, size_t len)
{
	(void)req;
	return ctl_write(file->ibfs, text, len, node_command, file);
}

const struct file_ops node_ctl_ops = { .store = node_ctl_store, .lines = true };
