/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What can be done to a device and a port: their ctl files (ib_modify_port()
 * and friends), and `query` (ib_find_gid(), ib_find_pkey()).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/rows.h"

static int dev_command(void *ctx, struct ctl_line *line)
{
	struct file *file = ctx;
	struct ibfs_device *dev = path_device(file->ibfs, file->path);

	if (!dev)
		return ibfs_fail(file->ibfs, ENODEV, "the device is gone");
	if (strcmp(line->argv[0], "remove") || line->argc != 1)
		return ibfs_fail(file->ibfs, EINVAL, "%s/ctl: \"%s\": expected `remove`", dev->name,
				 line->argv[0]);
	dev->ops->remove(dev);
	return 0;
}

static ssize_t dev_ctl_store(struct file *file, struct fs_req *req, const char *text, size_t len)
{
	(void)req;
	return ctl_write(file->ibfs, text, len, dev_command, file);
}

const struct file_ops dev_ctl_ops = { .store = dev_ctl_store, .lines = true };

/* ib_modify_port()'s arguments; value is the verb's number. */
struct port_change {
	uint32_t set_cap, clr_cap;
	bool reset_qkey, shutdown;
	int init_type;
};

static void do_shutdown(struct port_change *c, uint32_t value)
{
	(void)value;
	c->shutdown = true;
}

static void do_init_type(struct port_change *c, uint32_t value)
{
	c->init_type = value;
}

static void do_reset_qkey(struct port_change *c, uint32_t value)
{
	(void)value;
	c->reset_qkey = true;
}

static void do_set_cap(struct port_change *c, uint32_t value)
{
	c->set_cap = value;
}

static void do_clr_cap(struct port_change *c, uint32_t value)
{
	c->clr_cap = value;
}

static const struct port_verb {
	const char *name, *usage;
	bool has_value;
	uint32_t max;
	void (*set)(struct port_change *c, uint32_t value);
} port_verbs[] = {
	{ "shutdown", "", false, 0, do_shutdown },
	{ "init_type", " 0..15", true, 15, do_init_type },
	{ "reset_qkey_cntr", "", false, 0, do_reset_qkey },
	{ "set_cap", " MASK", true, UINT32_MAX, do_set_cap },
	{ "clr_cap", " MASK", true, UINT32_MAX, do_clr_cap },
};

static int port_command(void *ctx, struct ctl_line *line)
{
	struct file *file = ctx;
	struct ibfs_device *dev = path_device(file->ibfs, file->path);
	struct port_change c = { .init_type = -1 };
	const struct port_verb *verb = NULL;
	uint64_t value = 0;
	unsigned int i;

	if (!dev)
		return ibfs_fail(file->ibfs, ENODEV, "the device is gone");
	for (i = 0; i < sizeof(port_verbs) / sizeof(port_verbs[0]); i++)
		if (!strcmp(port_verbs[i].name, line->argv[0]))
			verb = &port_verbs[i];
	if (!verb)
		return ibfs_fail(file->ibfs, EINVAL, "%s/%u/ctl: no command \"%s\"", dev->name,
				 file->path.port, line->argv[0]);
	if (line->argc != 1U + verb->has_value ||
	    (verb->has_value && parse_u64(line->argv[1], verb->max, &value)))
		return ibfs_fail(file->ibfs, EINVAL, "%s/%u/ctl: expected `%s%s`", dev->name,
				 file->path.port, verb->name, verb->usage);
	verb->set(&c, value);
	return dev->ops->modify_port(dev, file->path.port, c.set_cap, c.clr_cap, c.reset_qkey,
				     c.shutdown, c.init_type);
}

static ssize_t port_ctl_store(struct file *file, struct fs_req *req, const char *text, size_t len)
{
	(void)req;
	return ctl_write(file->ibfs, text, len, port_command, file);
}

const struct file_ops port_ctl_ops = { .store = port_ctl_store, .lines = true };

/* An open query file: the answer to the last question, and what was read of it. */
struct query {
	char answer[32];
	size_t len, off;
};

/* The first port with the P_Key, or with the GID where there is one. */
static int find(struct ibfs_device *dev, struct query *q, const union ibv_gid *gid, uint16_t pkey)
{
	unsigned int port;
	int index;

	for (port = dev->first_port; port <= dev->num_ports; port++) {
		index = gid ? device_find_gid(dev, port, gid) : device_find_pkey(dev, port, pkey);
		if (index < 0)
			continue;
		q->len = sprintf(q->answer, "%u %d\n", port, index);
		return 0;
	}
	return -ENOENT;
}

static int query_command(void *ctx, struct ctl_line *line)
{
	struct file *file = ctx;
	struct ibfs_device *dev = path_device(file->ibfs, file->path);
	struct query *q = file->priv;
	union ibv_gid gid;
	uint64_t number;

	if (!dev)
		return ibfs_fail(file->ibfs, ENODEV, "the device is gone");
	q->len = q->off = 0;
	if (line->argc == 2 && !strcmp(line->argv[0], "gid") &&
	    inet_pton(AF_INET6, line->argv[1], gid.raw) == 1)
		return find(dev, q, &gid, 0);
	if (line->argc == 2 && !strcmp(line->argv[0], "pkey") &&
	    parse_u64(line->argv[1], UINT16_MAX, &number) == 0 && (number & 0x7fff))
		return find(dev, q, NULL, number);
	return ibfs_fail(file->ibfs, EINVAL, "%s/query: expected `gid GID` or `pkey PKEY`",
			 dev->name);
}

static ssize_t query_open(struct file *file, struct fs_req *req)
{
	(void)req;
	file->hints |= FILE_QUEUE;
	file->priv = calloc(1, sizeof(struct query));
	return file->priv ? 0 : -ENOMEM;
}

static void query_release(struct file *file)
{
	free(file->priv);
}

static ssize_t query_write(struct file *file, struct fs_req *req, const void *buf, size_t size,
			   off_t off)
{
	(void)req;
	(void)off;
	return ctl_write(file->ibfs, buf, size, query_command, file);
}

static ssize_t query_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off)
{
	struct query *q = file->priv;
	size_t n = q->len - q->off;

	(void)req;
	(void)off;
	if (n > size)
		n = size;
	memcpy(buf, q->answer + q->off, n);
	q->off += n;
	return n;
}

const struct file_ops query_ops = {
	.open = query_open,
	.release = query_release,
	.read = query_read,
	.write = query_write,
	.lines = true,
};
