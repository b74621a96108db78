/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of the tree's devices, whatever backend they are of, and what
 * happens to them: lines of the `events` files.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "ibfs/backend.h"
#include "ibfs/fs.h"
#include "ibfs/ibfs.h"
#include "ibfs/ipoib.h"
#include "ibfs/verbs.h"

#define MAX_DEVICES	4096	/* struct path's bits */

const char *const counter_names[CNT_MAX] = {
	[CNT_SYMBOL_ERROR] = "symbol_error",
	[CNT_LINK_ERROR_RECOVERY] = "link_error_recovery",
	[CNT_LINK_DOWNED] = "link_downed",
	[CNT_PORT_RCV_ERRORS] = "port_rcv_errors",
	[CNT_PORT_RCV_REMOTE_PHYSICAL_ERRORS] = "port_rcv_remote_physical_errors",
	[CNT_PORT_RCV_SWITCH_RELAY_ERRORS] = "port_rcv_switch_relay_errors",
	[CNT_PORT_XMIT_DISCARDS] = "port_xmit_discards",
	[CNT_PORT_XMIT_CONSTRAINT_ERRORS] = "port_xmit_constraint_errors",
	[CNT_PORT_RCV_CONSTRAINT_ERRORS] = "port_rcv_constraint_errors",
	[CNT_LOCAL_LINK_INTEGRITY_ERRORS] = "local_link_integrity_errors",
	[CNT_EXCESSIVE_BUFFER_OVERRUN_ERRORS] = "excessive_buffer_overrun_errors",
	[CNT_VL15_DROPPED] = "VL15_dropped",
	[CNT_PORT_XMIT_DATA] = "port_xmit_data",
	[CNT_PORT_RCV_DATA] = "port_rcv_data",
	[CNT_PORT_XMIT_PACKETS] = "port_xmit_packets",
	[CNT_PORT_RCV_PACKETS] = "port_rcv_packets",
	[CNT_UNICAST_XMIT_PACKETS] = "unicast_xmit_packets",
	[CNT_UNICAST_RCV_PACKETS] = "unicast_rcv_packets",
	[CNT_MULTICAST_XMIT_PACKETS] = "multicast_xmit_packets",
	[CNT_MULTICAST_RCV_PACKETS] = "multicast_rcv_packets",
	[CNT_PORT_XMIT_WAIT] = "port_xmit_wait",
};

/* One path component that every shell and tool takes as it is. */
static bool valid_name(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
	size_t len = strlen(name);

	return len && len < sizeof(((struct ibfs_device *)NULL)->name) && name[0] != '.' &&
	       strspn(name, allowed) == len;
}

/* Numbers are never given again: there are as many slots as numbers were given. */
static int insert(struct ibfs *ibfs, struct ibfs_device *dev)
{
	struct ibfs_device **slots;

	slots = reallocarray(ibfs->device_slots, ibfs->next_device + 1, sizeof(struct ibfs_device *));
	if (!slots)
		return -ENOMEM;
	if (!ibfs->num_devices)
		memset(slots, 0, ibfs->next_device * sizeof(struct ibfs_device *));
	ibfs->device_slots = slots;
	dev->ibfs = ibfs;
	dev->num = ibfs->next_device++;
	slots[dev->num] = dev;
	ibfs->num_devices++;
	HASH_ADD_STR(ibfs->device_names, name, dev);
	DL_APPEND(ibfs->devices, dev);
	return 0;
}

static void extract(struct ibfs_device *dev)
{
	struct ibfs *ibfs = dev->ibfs;

	HASH_DEL(ibfs->device_names, dev);
	DL_DELETE(ibfs->devices, dev);
	ibfs->device_slots[dev->num] = NULL;
	if (--ibfs->num_devices)
		return;
	free(ibfs->device_slots);
	ibfs->device_slots = NULL;
}

int device_add(struct ibfs *ibfs, struct ibfs_device *dev)
{
	int rc;

	if (!valid_name(dev->name))
		return -EINVAL;
	if (device_find(ibfs, dev->name))
		return -EEXIST;
	if (ibfs->next_device == MAX_DEVICES)
		return -ENOSPC;
	rc = insert(ibfs, dev);
	if (rc)
		return rc;
	rc = fs_device_added(dev);
	if (rc)
		extract(dev);
	return rc;
}

void device_remove(struct ibfs_device *dev)
{
	textring_add(dev->ibfs->events, "device=%s event=%s", dev->name,
		     verbs_event_name(IBV_EVENT_DEVICE_FATAL));
	ipoib_device_gone(dev);
	fs_device_removed(dev);
	extract(dev);
}

struct ibfs_device *device_find(struct ibfs *ibfs, const char *name)
{
	struct ibfs_device *dev;

	HASH_FIND_STR(ibfs->device_names, name, dev);
	return dev;
}

struct ibfs_device *device_get(struct ibfs *ibfs, unsigned int num)
{
	return ibfs->device_slots && num < ibfs->next_device ? ibfs->device_slots[num] : NULL;
}

struct ibfs_device *device_from(struct ibfs *ibfs, uint64_t num)
{
	for (; ibfs->device_slots && num < ibfs->next_device; num++)
		if (ibfs->device_slots[num])
			return ibfs->device_slots[num];
	return NULL;
}

int device_find_gid(struct ibfs_device *dev, unsigned int port, const union ibv_gid *gid)
{
	struct ibv_port_attr attr;
	union ibv_gid found;

	if (dev->ops->query_port(dev, port, &attr))
		return -ENOENT;
	for (int i = 0; i < attr.gid_tbl_len; i++)
		if (!dev->ops->query_gid(dev, port, i, &found) &&
		    !memcmp(&found, gid, sizeof(found)))
			return i;
	return -ENOENT;
}

int device_find_pkey(struct ibfs_device *dev, unsigned int port, uint16_t pkey)
{
	struct ibv_port_attr attr;
	uint16_t found;

	if (dev->ops->query_port(dev, port, &attr))
		return -ENOENT;
	for (int i = 0; i < attr.pkey_tbl_len; i++)
		if (!dev->ops->query_pkey(dev, port, i, &found) && (found & 0x7fff) &&
		    !((found ^ pkey) & 0x7fff))
			return i;
	return -ENOENT;
}

void device_event(struct ibfs_device *dev, unsigned int port, enum ibv_event_type event)
{
	textring_add(dev->ibfs->events, "device=%s port=%u event=%s", dev->name, port,
		     verbs_event_name(event));
	uverbs_device_event(dev, port, event);
	ipoib_port_event(dev, port, event);
	ucma_port_event(dev, port, event);
}
