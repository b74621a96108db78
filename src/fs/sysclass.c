/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs look for in /dev/infiniband and /sys/class, in the layout that
 * libibumad and libibverbs expect; and the numbers in umadN and issmN, which
 * go with a port for the time that its device is in the tree.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/dev.h"
#include "fs/obj.h"

enum { SYS_MAD_ABI };
enum { SYS_LOCAL_CPUS, SYS_LOCAL_CPULIST, SYS_NUMA_NODE };
enum { SYS_UMAD_IBDEV, SYS_UMAD_PORT, SYS_UMAD_DEV, SYS_ISSM_DEV };
enum { IB_MAJOR = 231, ISSM_MINOR = 64, MAD_ABI = 5 };

const struct entry devdir_entries[] = {
	{ "infiniband", KIND_DEVDIR_IB, 0 },
	{ NULL, 0, 0 }
};

const struct entry devdir_ib_entries[] = {
	{ "ev", KIND_DEVDIR_EV, 0 },
	{ "rdma_cm", KIND_UCMA, 0 },
	{ NULL, 0, 0 }
};

const struct entry sys_entries[] = {
	{ "class", KIND_SYS_CLASS, 0 },
	{ NULL, 0, 0 }
};

const struct entry sys_class_entries[] = {
	{ "infiniband", KIND_SYS_IB, 0 },
	{ "infiniband_mad", KIND_SYS_MAD, 0 },
	{ "infiniband_verbs", KIND_SYS_VERBS, 0 },
	{ "misc", KIND_SYS_MISC, 0 },
	{ NULL, 0, 0 }
};

const struct entry sys_mad_entries[] = {
	{ "abi_version", KIND_SYS_TEXT, SYS_MAD_ABI },
	{ NULL, 0, 0 }
};

const struct entry sys_dev_entries[] = {
	{ "ports", KIND_SYS_PORTS, 0 },
	{ "device", KIND_SYS_DEVICE, 0 },
	{ NULL, 0, 0 }
};

const struct entry sys_device_entries[] = {
	{ "local_cpus", KIND_SYS_DEVICE_TEXT, SYS_LOCAL_CPUS },
	{ "local_cpulist", KIND_SYS_DEVICE_TEXT, SYS_LOCAL_CPULIST },
	{ "numa_node", KIND_SYS_DEVICE_TEXT, SYS_NUMA_NODE },
	{ NULL, 0, 0 }
};

const struct entry sys_port_entries[] = {
	{ "gids", KIND_SYS_GIDS, 0 },
	{ "pkeys", KIND_SYS_PKEYS, 0 },
	{ "gid_attrs", KIND_SYS_GID_ATTRS, 0 },
	{ "counters", KIND_SYS_COUNTERS, 0 },
	{ "hw_counters", KIND_SYS_HW_COUNTERS, 0 },
	{ NULL, 0, 0 }
};

const struct entry sys_gid_attrs_entries[] = {
	{ "types", KIND_SYS_GID_TYPES, 0 },
	{ "ndevs", KIND_SYS_GID_NDEVS, 0 },
	{ NULL, 0, 0 }
};

const struct entry sys_umad_entries[] = {
	{ "ibdev", KIND_SYS_UMAD_TEXT, SYS_UMAD_IBDEV },
	{ "port", KIND_SYS_UMAD_TEXT, SYS_UMAD_PORT },
	{ "dev", KIND_SYS_UMAD_TEXT, SYS_UMAD_DEV },
	{ NULL, 0, 0 }
};

const struct entry sys_issm_entries[] = {
	{ "ibdev", KIND_SYS_UMAD_TEXT, SYS_UMAD_IBDEV },
	{ "port", KIND_SYS_UMAD_TEXT, SYS_UMAD_PORT },
	{ "dev", KIND_SYS_UMAD_TEXT, SYS_ISSM_DEV },
	{ NULL, 0, 0 }
};

/* The lowest number that no port has. */
static int umad_number(struct fs *fs, struct ibfs_device *dev, unsigned int port)
{
	struct umad_slot *slots;
	unsigned int n;

	for (n = 0; n < fs->num_umads && fs->umads[n].used; n++)
		;
	if (n == fs->num_umads) {
		slots = realloc(fs->umads, (n + 1) * sizeof(*slots));
		if (!slots)
			return -ENOMEM;
		fs->umads = slots;
		fs->num_umads++;
	}
	fs->umads[n] = (struct umad_slot){ .used = true, .dev = dev->num, .port = port };
	return n;
}

static void put_numbers(struct ibfs_device *dev)
{
	struct fs *fs = dev->ibfs->fs;
	unsigned int n;

	for (n = 0; n < fs->num_umads; n++)
		if (fs->umads[n].used && fs->umads[n].dev == dev->num)
			fs->umads[n].used = false;
	uverbs_forget(dev);
}

int fs_device_added(struct ibfs_device *dev)
{
	const struct entry *entry;
	unsigned int port;
	int n = 0;

	for (entry = root_entries; entry->name; entry++)
		if (!strcmp(entry->name, dev->name))
			return ibfs_fail(dev->ibfs, EEXIST, "\"%s\" can't be a device's name",
					 dev->name);
	dev->ports = calloc(dev->num_ports + 1, sizeof(dev->ports[0]));
	if (!dev->ports)
		return -ENOMEM;
	for (port = dev->first_port; port <= dev->num_ports && n >= 0; port++) {
		n = umad_number(dev->ibfs->fs, dev, port);
		dev->ports[port].umad = n;
	}
	if (n >= 0)
		n = uverbs_device_added(dev);
	if (n >= 0)
		ucma_device_added(dev);
	if (n >= 0)
		return 0;
	put_numbers(dev);
	free(dev->ports);
	dev->ports = NULL;
	return n;
}

void fs_device_removed(struct ibfs_device *dev)
{
	unsigned int port;

	for (port = dev->first_port; port <= dev->num_ports; port++) {
		umad_device_gone(dev, port);
		issm_device_gone(dev, port);
	}
	ucma_device_gone(dev);
	uverbs_device_gone(dev);
	pcap_device_gone(dev);
	objs_device_gone(dev);
	peer_device_gone(dev);
	put_numbers(dev);
	free(dev->ports);
	dev->ports = NULL;
}

/* umadN and issmN, in dev/infiniband and in sys/class/infiniband_mad. */
static int umads_lookup(struct ibfs *ibfs, const char *name, struct path *child, uint8_t umad,
			uint8_t issm)
{
	const struct umad_slot *slot;
	uint64_t n;

	if (strlen(name) < 5 || number_name(name + 4, ibfs->fs->num_umads, &n) ||
	    n == ibfs->fs->num_umads)
		return -ENOENT;
	slot = &ibfs->fs->umads[n];
	if (!slot->used)
		return -ENOENT;
	if (!strncmp(name, "umad", 4))
		child->kind = umad;
	else if (!strncmp(name, "issm", 4))
		child->kind = issm;
	else
		return -ENOENT;
	child->dev = slot->dev;
	child->port = slot->port;
	return 0;
}

static int umads_next(struct ibfs *ibfs, uint64_t *pos, char name[256], struct path *child,
		      uint8_t umad, uint8_t issm)
{
	const struct fs *fs = ibfs->fs;

	while (*pos / 2 < fs->num_umads && !fs->umads[*pos / 2].used)
		*pos += 2 - *pos % 2;
	if (*pos / 2 >= fs->num_umads)
		return 0;
	sprintf(name, "%s%u", *pos % 2 ? "issm" : "umad", (unsigned int)(*pos / 2));
	child->kind = *pos % 2 ? issm : umad;
	child->dev = fs->umads[*pos / 2].dev;
	child->port = fs->umads[*pos / 2].port;
	++*pos;
	return 1;
}

static int devdir_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	(void)dir;
	if (!uverbs_lookup(ibfs, name, child, KIND_UVERBS))
		return 0;
	return umads_lookup(ibfs, name, child, KIND_UMAD, KIND_ISSM);
}

#define UVERBS_POS (1ULL << 32)		/* behind all of umad and issm */

static int devdir_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		       struct path *child)
{
	uint64_t uverbs;
	int ret = 0;

	(void)dir;
	if (*pos < UVERBS_POS)
		ret = umads_next(ibfs, pos, name, child, KIND_UMAD, KIND_ISSM);
	if (ret)
		return ret;
	uverbs = *pos < UVERBS_POS ? 0 : *pos - UVERBS_POS;
	ret = uverbs_next(ibfs, &uverbs, name, child, KIND_UVERBS);
	*pos = UVERBS_POS + uverbs;
	return ret;
}

const struct dir_ops devdir_ib_dir = { .lookup = devdir_lookup, .next = devdir_next };

static int mad_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	(void)dir;
	return umads_lookup(ibfs, name, child, KIND_SYS_UMAD, KIND_SYS_ISSM);
}

static int mad_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		    struct path *child)
{
	(void)dir;
	return umads_next(ibfs, pos, name, child, KIND_SYS_UMAD, KIND_SYS_ISSM);
}

const struct dir_ops sys_mad_dir = { .lookup = mad_lookup, .next = mad_next };

static int sys_ib_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	int ret = root_dir.lookup(ibfs, dir, name, child);

	child->kind = KIND_SYS_DEV;
	return ret;
}

static int sys_ib_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		       struct path *child)
{
	int ret = root_dir.next(ibfs, dir, pos, name, child);

	child->kind = KIND_SYS_DEV;
	return ret;
}

const struct dir_ops sys_ib_dir = { .lookup = sys_ib_lookup, .next = sys_ib_next };

static int sys_ports_lookup(struct ibfs *ibfs, struct path dir, const char *name,
			    struct path *child)
{
	return ports_lookup(ibfs, dir, name, child, KIND_SYS_PORT);
}

static int sys_ports_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
			  struct path *child)
{
	return ports_next(ibfs, dir, pos, name, child, KIND_SYS_PORT);
}

const struct dir_ops sys_ports_dir = { .lookup = sys_ports_lookup, .next = sys_ports_next };

static int sys_text_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	(void)ibfs;
	(void)path;
	text_printf(out, "%u\n", MAD_ABI);
	return 0;
}

const struct file_ops sys_text_ops = { .show = sys_text_show };

/* All processors are near: the kernel's mask, in words of 32, the highest first. */
static void cpumask_print(struct textbuf *out, unsigned int cpus)
{
	unsigned int words = (cpus + 31) / 32, rest = cpus % 32;

	text_printf(out, "%08x", rest ? (1U << rest) - 1 : ~0U);
	while (--words)
		text_printf(out, ",%08x", ~0U);
	text_printf(out, "\n");
}

static int sys_device_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	(void)ibfs;
	if (cpus < 1)
		cpus = 1;
	if (path.sub == SYS_LOCAL_CPUS)
		cpumask_print(out, cpus);
	else if (path.sub == SYS_LOCAL_CPULIST && cpus > 1)
		text_printf(out, "0-%ld\n", cpus - 1);
	else
		text_printf(out, "%d\n", path.sub == SYS_NUMA_NODE ? -1 : 0);
	return 0;
}

const struct file_ops sys_device_text_ops = { .show = sys_device_show };

static int sys_umad_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	const struct ibfs_device *dev = path_device(ibfs, path);
	unsigned int minor = dev->ports[path.port].umad;

	switch (path.sub) {
	case SYS_UMAD_IBDEV:
		text_printf(out, "%s\n", dev->name);
		return 0;
	case SYS_UMAD_PORT:
		text_printf(out, "%u\n", path.port);
		return 0;
	case SYS_UMAD_DEV:
		text_printf(out, "%u:%u\n", IB_MAJOR, minor);
		return 0;
	case SYS_ISSM_DEV:
		text_printf(out, "%u:%u\n", IB_MAJOR, ISSM_MINOR + minor);
		return 0;
	default:
		return -ENOENT;
	}
}

const struct file_ops sys_umad_text_ops = { .show = sys_umad_show };
