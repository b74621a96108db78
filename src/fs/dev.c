/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Directories of a device and of its ports; sys/class shows the same files
 * again. Linux's drivers/infiniband/core/sysfs.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include <ibfs/conf.h>

#include "fs/dev.h"
#include "fs/rows.h"
#include "fs/umad.h"

const struct entry dev_value_entries[] = {
	{ "node_type", KIND_DEV_TEXT, DEV_NODE_TYPE },
	{ "node_guid", KIND_DEV_TEXT, DEV_NODE_GUID },
	{ "sys_image_guid", KIND_DEV_SET, DEV_SYS_IMAGE_GUID },
	{ "node_desc", KIND_DEV_SET, DEV_NODE_DESC },
	{ "fw_ver", KIND_DEV_TEXT, DEV_FW_VER },
	{ "hw_rev", KIND_DEV_TEXT, DEV_HW_REV },
	{ "hca_type", KIND_DEV_TEXT, DEV_HCA_TYPE },
	{ "board_id", KIND_DEV_TEXT, DEV_BOARD_ID },
	{ NULL, 0, 0 }
};

const struct entry port_value_entries[] = {
	{ "state", KIND_PORT_TEXT, PORT_TEXT_STATE },
	{ "phys_state", KIND_PORT_TEXT, PORT_TEXT_PHYS_STATE },
	{ "rate", KIND_PORT_TEXT, PORT_TEXT_RATE },
	{ "lid", KIND_PORT_TEXT, PORT_TEXT_LID },
	{ "lid_mask_count", KIND_PORT_TEXT, PORT_TEXT_LMC },
	{ "sm_lid", KIND_PORT_TEXT, PORT_TEXT_SM_LID },
	{ "sm_sl", KIND_PORT_TEXT, PORT_TEXT_SM_SL },
	{ "cap_mask", KIND_PORT_TEXT, PORT_TEXT_CAP_MASK },
	{ "link_layer", KIND_PORT_TEXT, PORT_TEXT_LINK_LAYER },
	{ NULL, 0, 0 }
};

const struct entry dev_entries[] = {
	{ "attr", KIND_DEV_TEXT, DEV_ATTR },
	{ "ctl", KIND_DEV_CTL, 0 },
	{ "events", KIND_DEV_EVENTS, 0 },
	{ "query", KIND_DEV_QUERY, 0 },
	{ NULL, 0, 0 }
};

const struct entry port_entries[] = {
	{ "attr", KIND_PORT_TEXT, PORT_TEXT_ATTR },
	{ "gids", KIND_GIDS, 0 },
	{ "pkeys", KIND_PKEYS, 0 },
	{ "gid_attrs", KIND_GID_ATTRS, 0 },
	{ "counters", KIND_COUNTERS, 0 },
	{ "hw_counters", KIND_HW_COUNTERS, 0 },
	{ "umad", KIND_UMAD, 0 },
	{ "issm", KIND_ISSM, 0 },
	{ "mad", KIND_MADS, 0 },
	{ "ipoib", KIND_IPOIBS, 0 },
	{ "ctl", KIND_PORT_CTL, 0 },
	{ "pcap", KIND_PORT_PCAP, 0 },
	{ "peer", KIND_PEER, 0 },
	{ NULL, 0, 0 }
};

const struct entry gid_attrs_entries[] = {
	{ "types", KIND_GID_TYPES, 0 },
	{ "ndevs", KIND_GID_NDEVS, 0 },
	{ NULL, 0, 0 }
};

/* A device's ports, as directories: in the device itself, and in sys/class. */
int ports_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child,
		 uint8_t kind)
{
	const struct ibfs_device *dev = path_device(ibfs, dir);
	uint64_t port;

	if (number_name(name, dev->num_ports, &port) || port < dev->first_port)
		return -ENOENT;
	child->kind = kind;
	child->port = port;
	return 0;
}

int ports_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
	       struct path *child, uint8_t kind)
{
	const struct ibfs_device *dev = path_device(ibfs, dir);

	if (*pos < dev->first_port)
		*pos = dev->first_port;
	if (*pos > dev->num_ports)
		return 0;
	sprintf(name, "%u", (unsigned int)*pos);
	child->kind = kind;
	child->port = *pos;
	++*pos;
	return 1;
}

static int dev_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	if (!strcmp(name, "uverbs") && uverbs_has(path_device(ibfs, dir))) {
		child->kind = KIND_UVERBS;
		return 0;
	}
	return ports_lookup(ibfs, dir, name, child, KIND_PORT);
}

static int dev_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		    struct path *child)
{
	const struct ibfs_device *dev = path_device(ibfs, dir);

	if (*pos <= dev->num_ports)
		return ports_next(ibfs, dir, pos, name, child, KIND_PORT);
	if (*pos > dev->num_ports + 1 || !uverbs_has(dev))
		return 0;
	strcpy(name, "uverbs");
	child->kind = KIND_UVERBS;
	*pos = dev->num_ports + 2;
	return 1;
}

const struct dir_ops dev_dir = { .lookup = dev_lookup, .next = dev_next };

/* Device files belong to whom the configuration says, with its modes. */
static void conf_attr(const struct conf *conf, mode_t mode, struct stat *st)
{
	st->st_mode = S_IFREG | mode;
	st->st_uid = conf->files.uid;
	st->st_gid = conf->files.gid;
}

/*
 * The size is what a write may have at most: Linux lets one writer at a time
 * go beyond it, and that one may hang in a page of its own.
 */
int umad_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	(void)path;
	st->st_size = UMAD_MESSAGE_MAX;
	if (ibfs->conf)
		conf_attr(ibfs->conf, ibfs->conf->files.umad, st);
	return 0;
}

/* The size is large so that writers of one file don't wait for each other: see umad. */
int uverbs_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	(void)path;
	st->st_size = UMAD_MESSAGE_MAX;
	if (ibfs->conf)
		conf_attr(ibfs->conf, ibfs->conf->files.uverbs, st);
	return 0;
}

int clone_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	(void)path;
	if (ibfs->conf)
		conf_attr(ibfs->conf, ibfs->conf->files.clone, st);
	return 0;
}

int issm_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	(void)path;
	if (ibfs->conf)
		conf_attr(ibfs->conf, ibfs->conf->files.issm, st);
	return 0;
}
