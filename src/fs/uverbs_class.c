/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of uverbs files: uverbsN in dev/infiniband, and
 * sys/class/infiniband_verbs as libibverbs reads it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ibfs/verbs.h>

#include "fs/rows.h"

enum { UVERBS_IBDEV, UVERBS_DEV, UVERBS_ABI };
enum { IB_MAJOR = 231, UVERBS_MINOR = 192, CLASS_ABI = 6, RXE_ABI = 2 };

const struct entry uverbs_class_entries[] = {
	{ "abi_version", KIND_SYS_VERBS_ABI, 0 },
	{ NULL, 0, 0 }
};

const struct entry sys_uverbs_entries[] = {
	{ "ibdev", KIND_SYS_UVERBS_TEXT, UVERBS_IBDEV },
	{ "dev", KIND_SYS_UVERBS_TEXT, UVERBS_DEV },
	{ "abi_version", KIND_SYS_UVERBS_TEXT, UVERBS_ABI },
	{ "device", KIND_SYS_UVERBS_DEVICE, 0 },
	{ NULL, 0, 0 }
};

bool uverbs_has(const struct ibfs_device *dev)
{
	return dev->ops->verbs && !dev->ops->verbs->no_uverbs && dev->node_type == IBV_NODE_CA;
}

int uverbs_device_added(struct ibfs_device *dev)
{
	struct fs *fs = dev->ibfs->fs;
	struct uverbs_slot *slots;
	unsigned int n;

	if (!uverbs_has(dev))
		return 0;
	for (n = 0; n < fs->num_uverbs && fs->uverbs_slots[n].used; n++)
		;
	if (n == fs->num_uverbs) {
		slots = realloc(fs->uverbs_slots, (n + 1) * sizeof(*slots));
		if (!slots)
			return -ENOMEM;
		fs->uverbs_slots = slots;
		fs->num_uverbs++;
	}
	fs->uverbs_slots[n] = (struct uverbs_slot){ .used = true, .dev = dev->num };
	return 0;
}

void uverbs_forget(const struct ibfs_device *dev)
{
	struct fs *fs = dev->ibfs->fs;

	for (unsigned int n = 0; n < fs->num_uverbs; n++)
		if (fs->uverbs_slots[n].used && fs->uverbs_slots[n].dev == dev->num)
			fs->uverbs_slots[n].used = false;
}

int uverbs_lookup(struct ibfs *ibfs, const char *name, struct path *child, uint8_t kind)
{
	const struct fs *fs = ibfs->fs;
	uint64_t n;

	if (strncmp(name, "uverbs", 6) || number_name(name + 6, UINT32_MAX, &n) ||
	    n >= fs->num_uverbs || !fs->uverbs_slots[n].used)
		return -ENOENT;
	child->kind = kind;
	child->dev = fs->uverbs_slots[n].dev;
	return 0;
}

int uverbs_next(struct ibfs *ibfs, uint64_t *pos, char name[256], struct path *child, uint8_t kind)
{
	const struct fs *fs = ibfs->fs;

	while (*pos < fs->num_uverbs && !fs->uverbs_slots[*pos].used)
		++*pos;
	if (*pos >= fs->num_uverbs)
		return 0;
	sprintf(name, "uverbs%u", (unsigned int)*pos);
	child->kind = kind;
	child->dev = fs->uverbs_slots[*pos].dev;
	++*pos;
	return 1;
}

static int class_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	(void)dir;
	return uverbs_lookup(ibfs, name, child, KIND_SYS_UVERBS);
}

static int class_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		      struct path *child)
{
	(void)dir;
	return uverbs_next(ibfs, pos, name, child, KIND_SYS_UVERBS);
}

const struct dir_ops uverbs_class_dir = { .lookup = class_lookup, .next = class_next };

static int abi_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	(void)ibfs;
	(void)path;
	text_printf(out, "%u\n", CLASS_ABI);
	return 0;
}

const struct file_ops uverbs_abi_ops = { .show = abi_show };

static unsigned int minor_of(const struct fs *fs, uint16_t dev)
{
	unsigned int n;

	for (n = 0; n < fs->num_uverbs; n++)
		if (fs->uverbs_slots[n].used && fs->uverbs_slots[n].dev == dev)
			break;
	return UVERBS_MINOR + n;
}

static int uverbs_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	switch (path.sub) {
	case UVERBS_IBDEV:
		text_printf(out, "%s\n", path_device(ibfs, path)->name);
		return 0;
	case UVERBS_DEV:
		text_printf(out, "%u:%u\n", IB_MAJOR, minor_of(ibfs->fs, path.dev));
		return 0;
	default:
		text_printf(out, "%u\n", RXE_ABI);
		return 0;
	}
}

const struct file_ops uverbs_text_ops = { .show = uverbs_show };
