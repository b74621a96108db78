/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port's tables and counters: a directory of each, a file an entry, in the
 * formats of Linux's drivers/infiniband/core/sysfs.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/dev.h"
#include "fs/rows.h"

/* Directories of numbers 0..n-1: the kind of what is in them, and how many. */
static uint8_t entry_kind(struct path dir)
{
	switch (dir.kind) {
	case KIND_PKEYS:
	case KIND_SYS_PKEYS:
		return KIND_PKEY;
	case KIND_GID_TYPES:
	case KIND_SYS_GID_TYPES:
		return KIND_GID_TYPE;
	case KIND_GID_NDEVS:
	case KIND_SYS_GID_NDEVS:
		return KIND_GID_NDEV;
	default:
		return KIND_GID;
	}
}

static unsigned int table_len(struct ibfs *ibfs, struct path dir)
{
	struct ibfs_device *dev = path_device(ibfs, dir);
	struct ibv_port_attr attr = { 0 };
	int len;

	if (dev->ops->query_port(dev, dir.port, &attr))
		return 0;
	len = entry_kind(dir) == KIND_PKEY ? attr.pkey_tbl_len : attr.gid_tbl_len;
	return len > 0 ? len : 0;
}

static int table_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	uint64_t index;

	if (number_name(name, 0xffff, &index) || index >= table_len(ibfs, dir))
		return -ENOENT;
	child->kind = entry_kind(dir);
	child->idx = index;
	return 0;
}

static int table_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		      struct path *child)
{
	if (*pos >= table_len(ibfs, dir))
		return 0;
	sprintf(name, "%u", (unsigned int)*pos);
	child->kind = entry_kind(dir);
	child->idx = *pos;
	++*pos;
	return 1;
}

const struct dir_ops table_dir = { .lookup = table_lookup, .next = table_next };

static int gid_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	struct ibfs_device *dev = path_device(ibfs, path);
	union ibv_gid gid;
	unsigned int i;
	int ret;

	ret = dev->ops->query_gid(dev, path.port, path.idx, &gid);
	if (ret)
		return ret;
	for (i = 0; i < 16; i += 2)
		text_printf(out, "%s%02x%02x", i ? ":" : "", gid.raw[i], gid.raw[i + 1]);
	text_printf(out, "\n");
	return 0;
}

const struct file_ops gid_ops = { .show = gid_show };

static int pkey_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	struct ibfs_device *dev = path_device(ibfs, path);
	uint16_t pkey;
	int ret;

	ret = dev->ops->query_pkey(dev, path.port, path.idx, &pkey);
	if (!ret)
		text_printf(out, "0x%04x\n", pkey);
	return ret;
}

const struct file_ops pkey_ops = { .show = pkey_show };

/* An empty entry has neither type nor interface: EINVAL, as on Linux. */
static int gid_type_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	struct ibfs_device *dev = path_device(ibfs, path);
	union ibv_gid gid;
	int ret;

	ret = dev->ops->query_gid(dev, path.port, path.idx, &gid);
	if (ret)
		return ret;
	if (!gid.global.interface_id)
		return -EINVAL;
	text_printf(out, "IB/RoCE v1\n");
	return 0;
}

const struct file_ops gid_type_ops = { .show = gid_type_show };

/* A GID of InfiniBand belongs to no network interface. */
static int gid_ndev_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	(void)ibfs;
	(void)path;
	(void)out;
	return -EINVAL;
}

const struct file_ops gid_ndev_ops = { .show = gid_ndev_show };

/* Of a device's own port, or of a far one's. */
static uint8_t counter_kind(struct path dir)
{
	return dir.kind == KIND_PEER_COUNTERS ? KIND_PEER_COUNTER : KIND_COUNTER;
}

static int counters_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	unsigned int i;

	(void)ibfs;
	for (i = 0; i < CNT_MAX; i++) {
		if (strcmp(counter_names[i], name) != 0)
			continue;
		child->kind = counter_kind(dir);
		child->sub = i;
		return 0;
	}
	return -ENOENT;
}

static int counters_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
			 struct path *child)
{
	(void)ibfs;
	if (*pos >= CNT_MAX)
		return 0;
	snprintf(name, 256, "%s", counter_names[*pos]);
	child->kind = counter_kind(dir);
	child->sub = *pos;
	++*pos;
	return 1;
}

const struct dir_ops counters_dir = { .lookup = counters_lookup, .next = counters_next };

static int counter_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	struct ibfs_device *dev = path_device(ibfs, path);
	uint64_t value;
	int ret;

	ret = dev->ops->query_counter(dev, path.port, path.sub, &value);
	if (!ret)
		text_printf(out, "%llu\n", (unsigned long long)value);
	return ret;
}

/* 0 is all that can be written. */
int counter_value(struct ibfs *ibfs, const char *text, size_t len)
{
	if (len && text[len - 1] == '\n')
		len--;
	if (len != 1 || text[0] != '0')
		return ibfs_fail(ibfs, EINVAL, "a counter can be set to 0 only");
	return 0;
}

static ssize_t counter_store(struct file *file, struct fs_req *req, const char *text, size_t len)
{
	struct ibfs_device *dev = path_device(file->ibfs, file->path);
	int ret;

	(void)req;
	ret = counter_value(file->ibfs, text, len);
	if (!ret)
		ret = dev->ops->clear_counter(dev, file->path.port, file->path.sub);
	return ret ? ret : (ssize_t)len;
}

const struct file_ops counter_ops = { .show = counter_show, .store = counter_store };

/* The device's own counters, by name. */
static const char *hw_counter_name(const struct ibfs_device *dev, uint64_t index)
{
	const char *const *names = dev->ops->hw_counters;

	while (names && *names && index) {
		names++;
		index--;
	}
	return names ? *names : NULL;
}

static int hw_counters_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
			    struct path *child)
{
	const char *found = hw_counter_name(path_device(ibfs, dir), *pos);

	if (!found)
		return 0;
	snprintf(name, 256, "%s", found);
	child->kind = KIND_HW_COUNTER;
	child->sub = *pos;
	++*pos;
	return 1;
}

static int hw_counters_lookup(struct ibfs *ibfs, struct path dir, const char *name,
			      struct path *child)
{
	uint64_t pos = 0;
	char found[256];

	while (hw_counters_next(ibfs, dir, &pos, found, child) > 0)
		if (!strcmp(found, name))
			return 0;
	return -ENOENT;
}

const struct dir_ops hw_counters_dir = { .lookup = hw_counters_lookup, .next = hw_counters_next };

static int hw_counter_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	struct ibfs_device *dev = path_device(ibfs, path);
	uint64_t value;
	int ret;

	if (!hw_counter_name(dev, path.sub))
		return -ENOENT;
	ret = dev->ops->query_hw_counter(dev, path.port, path.sub, &value);
	if (!ret)
		text_printf(out, "%llu\n", (unsigned long long)value);
	return ret;
}

const struct file_ops hw_counter_ops = { .show = hw_counter_show };
