/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port's IP interfaces: ipoib/clone and ipoib/NAME/, their text and statistics;
 * their commands are ipoib_ctl.c's, their raw mode is ipoib_frame.c's. What an
 * interface does stands in src/ipoib.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/ipoibdir.h"

enum {
	IPOIB_ADDRESS, IPOIB_BROADCAST, IPOIB_LINKMODE, IPOIB_MTU, IPOIB_STATUS, IPOIB_INFO,
	IPOIB_TEXTS,
};
enum { IPOIB_NEIGHBOURS, IPOIB_MULTICAST };	/* of KIND_IPOIB_TABLE */

const struct entry ipoibs_entries[] = {
	{ "clone", KIND_IPOIB_CLONE, 0 },
	{ NULL, 0, 0 }
};

const struct entry ipoib_entries[] = {
	{ "ctl", KIND_IPOIB_CTL, 0 },
	{ "address", KIND_IPOIB_TEXT, IPOIB_ADDRESS },
	{ "broadcast", KIND_IPOIB_TEXT, IPOIB_BROADCAST },
	{ "linkmode", KIND_IPOIB_TEXT, IPOIB_LINKMODE },
	{ "mtu", KIND_IPOIB_TEXT, IPOIB_MTU },
	{ "status", KIND_IPOIB_TEXT, IPOIB_STATUS },
	{ "info", KIND_IPOIB_TEXT, IPOIB_INFO },
	{ "neighbours", KIND_IPOIB_TABLE, IPOIB_NEIGHBOURS },
	{ "multicast", KIND_IPOIB_TABLE, IPOIB_MULTICAST },
	{ "frame", KIND_IPOIB_FRAME, 0 },
	{ "events", KIND_IPOIB_EVENTS, 0 },
	{ "stats", KIND_IPOIB_STATS, 0 },
	{ NULL, 0, 0 }
};

const struct entry sys_net_entries[] = {
	{ "address", KIND_IPOIB_TEXT, IPOIB_ADDRESS },
	{ "broadcast", KIND_IPOIB_TEXT, IPOIB_BROADCAST },
	{ "mtu", KIND_IPOIB_TEXT, IPOIB_MTU },
	{ NULL, 0, 0 }
};

static int (*const shows[IPOIB_TEXTS])(const struct ipoib *ip, struct textbuf *out) = {
	[IPOIB_ADDRESS] = ipoib_show_address,
	[IPOIB_BROADCAST] = ipoib_show_broadcast,
	[IPOIB_LINKMODE] = ipoib_show_linkmode,
	[IPOIB_MTU] = ipoib_show_mtu,
	[IPOIB_STATUS] = ipoib_show_status,
	[IPOIB_INFO] = ipoib_show_info,
};

struct ipoib *path_ipoib(struct ibfs *ibfs, struct path path)
{
	struct ipoib *ip = ipoib_from(ibfs, path.dev, path.port, path.idx);

	return ip && ipoib_num(ip) == path.idx ? ip : NULL;
}

static void print_name(const struct ipoib *ip, char name[256])
{
	if (ipoib_name(ip))
		snprintf(name, 256, "%s", ipoib_name(ip));
	else
		snprintf(name, 256, "%u", ipoib_num(ip));
}

static int ipoibs_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	const struct ipoib *ip = ipoib_find(ibfs, dir.dev, dir.port, name);

	if (!ip)
		return -ENOENT;
	child->kind = KIND_IPOIB;
	child->idx = ipoib_num(ip);
	return 0;
}

static int ipoibs_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		       struct path *child)
{
	const struct ipoib *ip = ipoib_from(ibfs, dir.dev, dir.port, *pos);

	if (!ip)
		return 0;
	print_name(ip, name);
	child->kind = KIND_IPOIB;
	child->idx = ipoib_num(ip);
	*pos = (uint64_t)ipoib_num(ip) + 1;
	return 1;
}

static int ipoibs_mkdir(struct ibfs *ibfs, struct path dir, const char *name, mode_t mode,
			const struct fs_cred *cred, struct path *child)
{
	const struct ipoib *ip;
	uint64_t num;

	(void)mode;
	if (!number_name(name, UINT64_MAX, &num) || strlen(name) > 200 ||
	    strpbrk(name, " \t\n\r=,"))
		return ibfs_fail(ibfs, EINVAL, "ipoib: \"%s\": a name has no white space, = or , "
				 "and is no number", name);
	if (ipoib_find(ibfs, dir.dev, dir.port, name))
		return -EEXIST;
	ip = ipoib_new(ibfs, path_device(ibfs, dir), dir.port, name, cred->uid, cred->gid);
	if (!ip)
		return -ENOMEM;
	child->kind = KIND_IPOIB;
	child->idx = ipoib_num(ip);
	return 0;
}

static int ipoibs_rmdir(struct ibfs *ibfs, struct path dir, const char *name,
			const struct fs_cred *cred)
{
	struct ipoib *ip = ipoib_find(ibfs, dir.dev, dir.port, name);

	(void)cred;
	if (!ip)
		return -ENOENT;
	if (!ipoib_name(ip))
		return -EBUSY;
	ipoib_remove(ip);
	return 0;
}

const struct dir_ops ipoibs_dir = {
	.lookup = ipoibs_lookup, .next = ipoibs_next, .mkdir = ipoibs_mkdir, .rmdir = ipoibs_rmdir,
};

/* sys/class/infiniband/DEVICE/device/net: by the name of the network interface. */
static struct ipoib *net_find(struct ibfs *ibfs, unsigned int dev, const char *name)
{
	struct ipoib *ip;

	for (ip = ipoib_of_device(ibfs, dev, 0); ip;
	     ip = ipoib_of_device(ibfs, dev, (uint64_t)ipoib_num(ip) + 1))
		if (!strcmp(ipoib_ifname(ip), name))
			return ip;
	return NULL;
}

static void net_path(const struct ipoib *ip, struct path *child)
{
	struct ibfs_device *dev;
	unsigned int port = 0;
	uint16_t pkey;

	ipoib_port(ip, &dev, &port, &pkey);
	child->kind = KIND_SYS_NET;
	child->port = port;
	child->idx = ipoib_num(ip);
}

static int nets_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	const struct ipoib *ip = net_find(ibfs, dir.dev, name);

	if (!ip)
		return -ENOENT;
	net_path(ip, child);
	return 0;
}

/* In two network namespaces the same name may be: it is listed, and found, once. */
static int nets_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		     struct path *child)
{
	const struct ipoib *ip;

	do {
		ip = ipoib_of_device(ibfs, dir.dev, *pos);
		if (!ip)
			return 0;
		*pos = (uint64_t)ipoib_num(ip) + 1;
	} while (net_find(ibfs, dir.dev, ipoib_ifname(ip)) != ip);
	snprintf(name, 256, "%s", ipoib_ifname(ip));
	net_path(ip, child);
	return 1;
}

const struct dir_ops sys_nets_dir = { .lookup = nets_lookup, .next = nets_next };

/* sys/class/infiniband/DEVICE/device has net/ while there is an interface, as in Linux. */
static int sys_device_lookup(struct ibfs *ibfs, struct path dir, const char *name,
			     struct path *child)
{
	if (strcmp(name, "net") || !ipoib_of_device(ibfs, dir.dev, 0))
		return -ENOENT;
	child->kind = KIND_SYS_NETS;
	return 0;
}

static int sys_device_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
			   struct path *child)
{
	if (*pos || sys_device_lookup(ibfs, dir, "net", child))
		return 0;
	strcpy(name, "net");
	*pos = 1;
	return 1;
}

const struct dir_ops sys_device_dir = { .lookup = sys_device_lookup, .next = sys_device_next };

int ipoib_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	const struct ipoib *ip = path_ipoib(ibfs, path);

	if (!ip)
		return -ENOENT;
	ipoib_owner(ip, &st->st_uid, &st->st_gid);
	return 0;
}

bool ipoib_event_prefix(struct ibfs *ibfs, struct path path, char *prefix, size_t size)
{
	const struct ipoib *ip = path_ipoib(ibfs, path);
	const struct ibfs_device *dev = path_device(ibfs, path);
	char name[256];

	if (!ip || !dev)
		return false;
	print_name(ip, name);
	snprintf(prefix, size, "device=%s port=%u ipoib=%s ", dev->name, path.port, name);
	return true;
}

static int text_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	const struct ipoib *ip = path_ipoib(ibfs, path);

	if (!ip || path.sub >= IPOIB_TEXTS)
		return -ENODEV;
	return shows[path.sub](ip, out);
}

const struct file_ops ipoib_text_ops = { .show = text_show };

static int table_more(struct ibfs *ibfs, struct path path, void *state, struct textbuf *out)
{
	const struct ipoib *ip = path_ipoib(ibfs, path);
	uint32_t *next = state;

	if (!ip || path.sub > IPOIB_MULTICAST)
		return -ENODEV;
	return path.sub == IPOIB_NEIGHBOURS ? ipoib_show_neighbour(ip, next, out) :
					      ipoib_show_group(ip, next, out);
}

const struct file_ops ipoib_table_ops = { .show_more = table_more, .state_size = sizeof(uint32_t) };

static int stats_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	(void)ibfs;
	(void)dir;
	for (unsigned int i = 0; i < ipoib_num_stat_names; i++) {
		if (strcmp(ipoib_stat_names[i].name, name) != 0)
			continue;
		child->kind = KIND_IPOIB_STAT;
		child->sub = i;
		return 0;
	}
	return -ENOENT;
}

static int stats_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		      struct path *child)
{
	(void)ibfs;
	(void)dir;
	if (*pos >= ipoib_num_stat_names)
		return 0;
	snprintf(name, 256, "%s", ipoib_stat_names[*pos].name);
	child->kind = KIND_IPOIB_STAT;
	child->sub = *pos;
	++*pos;
	return 1;
}

const struct dir_ops ipoib_stats_dir = { .lookup = stats_lookup, .next = stats_next };

static int stat_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	const struct ipoib *ip = path_ipoib(ibfs, path);

	if (!ip || path.sub >= ipoib_num_stat_names)
		return -ENODEV;
	text_printf(out, "%" PRIu64 "\n", ipoib_stat(ip, ipoib_stat_names[path.sub].stat));
	return 0;
}

const struct file_ops ipoib_stat_ops = { .show = stat_show };

bool ipoib_metric(struct ibfs *ibfs, uint64_t *num, const struct ipoib_stat_name *stat,
		  struct textbuf *out)
{
	const struct ipoib *ip = ipoib_next(ibfs, *num);
	struct ibfs_device *dev;
	unsigned int port;
	char name[256];
	uint16_t pkey;

	if (!ip)
		return false;
	*num = (uint64_t)ipoib_num(ip) + 1;
	if (ipoib_port(ip, &dev, &port, &pkey))
		return true;
	print_name(ip, name);
	text_printf(out, "ibfs_ipoib_%s_total{device=\"%s\",port=\"%u\",interface=\"%s\"} %" PRIu64
		    "\n", stat->name, dev->name, port, name, ipoib_stat(ip, stat->stat));
	return true;
}
