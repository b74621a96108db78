/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes and counters of a device of the system: by libibverbs where it has
 * a function and the device a context, else from sysfs (Linux's
 * Documentation/ABI/stable/sysfs-class-infiniband), counters that are not there
 * by MAD (pma.c). All of it on the device's hand.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/verbs/rdev.h"

/* Arguments and results: a copy goes to the hand and comes back. */
struct attr_call {
	struct ibv_context *ctx;
	char device[64];
	unsigned int port, index;
	int err;
	uint64_t value;
	union {
		struct ibv_device_attr_ex dev;
		struct ibv_port_attr attr;
		union ibv_gid gid;
		uint16_t pkey;
		char text[256];		/* a file's name, then its content */
	};
};

static int attr_call(struct ibfs_device *dev, void (*fn)(void *), struct attr_call *call)
{
	struct rdev *rdev = rdev_of(dev);
	int err;

	call->ctx = rdev->ctx;
	memcpy(call->device, rdev->system, sizeof(call->device));
	err = rdev_call(rdev, fn, call, sizeof(*call));
	return err ? err : call->err;
}

static int refused(struct ibfs_device *dev, const char *what)
{
	return ibfs_fail(dev->ibfs, EOPNOTSUPP, "%s: the system's driver %s", dev->name, what);
}

static void query_device_job(void *arg)
{
	struct attr_call *call = arg;

	call->err = -ibv_query_device_ex(call->ctx, NULL, &call->dev);
}

int rdev_query_device(struct ibfs_device *dev, struct ibv_device_attr_ex *attr)
{
	struct attr_call call = { 0 };
	int err;

	memset(attr, 0, sizeof(*attr));
	if (!rdev_of(dev)->ctx) {
		struct ibv_device_attr *a = &attr->orig_attr;

		memcpy(a->fw_ver, dev->fw_ver, sizeof(a->fw_ver));
		a->node_guid = htobe64(dev->node_guid);
		a->sys_image_guid = htobe64(dev->sys_image_guid);
		a->hw_ver = dev->hw_rev;
		a->phys_port_cnt = (uint8_t)(dev->num_ports - dev->first_port + 1);
		return 0;
	}
	err = attr_call(dev, query_device_job, &call);
	if (!err)
		*attr = call.dev;
	return err;
}

static unsigned long port_num(const struct attr_call *call, const char *file)
{
	char text[64];

	sysfs_read(text, sizeof(text), "%s/ports/%u/%s", call->device, call->port, file);
	return strtoul(text, NULL, 0);
}

/* "10 Gb/sec (4X SDR)" into the width's and the speed's bits. */
static void parse_rate(const char *text, struct ibv_port_attr *attr)
{
	static const struct { const char *name; uint8_t bit; } speeds[] = {
		{ " SDR", 1 }, { " DDR", 2 }, { " QDR", 4 }, { " FDR10", 8 }, { " FDR)", 16 },
		{ " EDR", 32 }, { " HDR", 64 }, { " NDR", 128 },
	};
	static const struct { unsigned int lanes; uint8_t bit; } widths[] = {
		{ 1, 1 }, { 4, 2 }, { 8, 4 }, { 12, 8 }, { 2, 16 },
	};
	const char *open = strchr(text, '(');
	unsigned long lanes = open ? strtoul(open + 1, NULL, 10) : 0;

	attr->active_speed = 1;
	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		if (strstr(text, speeds[i].name))
			attr->active_speed = speeds[i].bit;
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (lanes == widths[i].lanes)
			attr->active_width = widths[i].bit;
}

static unsigned int count_files(const struct attr_call *call, const char *dir)
{
	char path[256];
	unsigned int n = 0;

	do
		snprintf(path, sizeof(path), SYSFS_IB "/%s/ports/%u/%s/%u", call->device,
			 call->port, dir, n);
	while (!access(path, F_OK) && ++n < UINT16_MAX);
	return n;
}

/* What sysfs has: a switch's port has no context to ask. */
static void port_from_sysfs(struct attr_call *call)
{
	struct ibv_port_attr attr = { 0 };
	char rate[64];

	attr.state = (enum ibv_port_state)port_num(call, "state");
	attr.phys_state = (uint8_t)port_num(call, "phys_state");
	attr.lid = (uint16_t)port_num(call, "lid");
	attr.lmc = (uint8_t)port_num(call, "lid_mask_count");
	attr.sm_lid = (uint16_t)port_num(call, "sm_lid");
	attr.sm_sl = (uint8_t)port_num(call, "sm_sl");
	attr.port_cap_flags = (uint32_t)port_num(call, "cap_mask");
	attr.gid_tbl_len = (int)count_files(call, "gids");
	attr.pkey_tbl_len = (uint16_t)count_files(call, "pkeys");
	attr.link_layer = IBV_LINK_LAYER_INFINIBAND;
	sysfs_read(rate, sizeof(rate), "%s/ports/%u/rate", call->device, call->port);
	parse_rate(rate, &attr);
	call->attr = attr;
}

static void query_port_job(void *arg)
{
	struct attr_call *call = arg;
	struct ibv_port_attr attr = { 0 };

	if (call->ctx) {
		call->err = -ibv_query_port(call->ctx, (uint8_t)call->port, &attr);
		call->attr = attr;
	} else {
		port_from_sysfs(call);
	}
}

static bool bad_port(const struct ibfs_device *dev, unsigned int port)
{
	return port < dev->first_port || port > dev->num_ports;
}

int rdev_query_port(struct ibfs_device *dev, unsigned int port, struct ibv_port_attr *attr)
{
	struct attr_call call = { .port = port };
	int err;

	if (bad_port(dev, port))
		return -EINVAL;
	err = attr_call(dev, query_port_job, &call);
	if (!err)
		*attr = call.attr;
	return err;
}

static void query_gid_job(void *arg)
{
	struct attr_call *call = arg;
	char text[64];

	if (call->ctx) {
		struct ibv_gid_entry entry;
		union ibv_gid gid = { 0 };
		/* An empty entry is ENODATA there, and zero in sysfs. */
		int err = ibv_query_gid_ex(call->ctx, call->port, call->index, &entry, 0);

		if (!err)
			gid = entry.gid;
		call->err = err == ENODATA ? 0 : err ? -EINVAL : 0;
		call->gid = gid;
		return;
	}
	call->err = sysfs_read(text, sizeof(text), "%s/ports/%u/gids/%u", call->device, call->port,
			       call->index);
	if (!call->err && inet_pton(AF_INET6, text, &call->gid) != 1)
		call->err = -EINVAL;
}

int rdev_query_gid(struct ibfs_device *dev, unsigned int port, unsigned int index,
		   union ibv_gid *gid)
{
	struct attr_call call = { .port = port, .index = index };
	int err;

	if (bad_port(dev, port))
		return -EINVAL;
	err = attr_call(dev, query_gid_job, &call);
	if (!err)
		*gid = call.gid;
	return err;
}

static void query_pkey_job(void *arg)
{
	struct attr_call *call = arg;
	char text[64];

	call->err = sysfs_read(text, sizeof(text), "%s/ports/%u/pkeys/%u", call->device, call->port,
			       call->index);
	if (call->err == -ENOENT)
		call->err = -EINVAL;
	call->pkey = (uint16_t)strtoul(text, NULL, 0);
}

int rdev_query_pkey(struct ibfs_device *dev, unsigned int port, unsigned int index,
		    uint16_t *pkey)
{
	struct attr_call call = { .port = port, .index = index };
	int err;

	if (bad_port(dev, port))
		return -EINVAL;
	err = attr_call(dev, query_pkey_job, &call);
	if (!err)
		*pkey = call.pkey;
	return err;
}

static void set_desc_job(void *arg)
{
	struct attr_call *call = arg;
	char path[256];
	size_t len = strnlen(call->text, 64);
	int fd;

	snprintf(path, sizeof(path), SYSFS_IB "/%s/node_desc", call->device);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, call->text, len) != (ssize_t)len)
		call->err = -errno;
	if (fd >= 0)
		close(fd);
}

int rdev_set_node_desc(struct ibfs_device *dev, const char desc[64])
{
	struct attr_call call = { 0 };
	int err;

	memcpy(call.text, desc, 64);
	err = attr_call(dev, set_desc_job, &call);
	if (!err)
		snprintf(dev->node_desc, sizeof(dev->node_desc), "%.64s", desc);
	return err;
}

int rdev_set_sys_image_guid(struct ibfs_device *dev, uint64_t guid)
{
	(void)guid;
	return refused(dev, "lets nobody set sys_image_guid");
}

int rdev_modify_port(struct ibfs_device *dev, unsigned int port, uint32_t set_cap,
		     uint32_t clr_cap, bool reset_qkey_cntr, bool shutdown, int init_type)
{
	(void)port;
	(void)set_cap;
	(void)clr_cap;
	(void)reset_qkey_cntr;
	(void)shutdown;
	(void)init_type;
	return refused(dev, "lets no process modify a port: use its umad file");
}

/* A file of a port; its content takes the place of its name. */
static int read_port_file(struct attr_call *call)
{
	char name[sizeof(call->text)];

	memcpy(name, call->text, sizeof(name));
	return sysfs_read(call->text, sizeof(call->text), "%s/ports/%u/%s", call->device,
			  call->port, name);
}

/* By MAD where sysfs doesn't have it. */
static void counter_job(void *arg)
{
	struct attr_call *call = arg;
	uint64_t value = 0;

	snprintf(call->text, sizeof(call->text), "counters/%s", counter_names[call->index]);
	call->err = read_port_file(call);
	if (!call->err)
		value = strtoull(call->text, NULL, 10);
	else if (call->err == -ENOENT)
		call->err = pma_counter(call->device, call->port, call->index, &value);
	call->value = value;
}

static void clear_job(void *arg)
{
	struct attr_call *call = arg;

	call->err = pma_clear(call->device, call->port, call->index);
}

static int no_counter(struct ibfs_device *dev, unsigned int port, int err)
{
	if (err == -EOPNOTSUPP)
		return ibfs_fail(dev->ibfs, EOPNOTSUPP, "%s/%u: neither the system nor the port's "
				 "performance manager agent has that counter", dev->name, port);
	if (err == -EAGAIN)
		return ibfs_fail(dev->ibfs, EAGAIN, "%s/%u: the system has no such counter, and a port "
				 "without a LID can't be asked by MAD", dev->name, port);
	return ibfs_fail(dev->ibfs, -err, "%s/%u: the port's performance management agent: %s",
			 dev->name, port, strerror(-err));
}

static int counter_call(struct ibfs_device *dev, unsigned int port, enum counter which,
			void (*job)(void *arg), uint64_t *value)
{
	struct attr_call call = { .port = port, .index = which };
	int err;

	if (bad_port(dev, port) || which >= CNT_MAX)
		return -EINVAL;
	err = attr_call(dev, job, &call);
	*value = call.value;
	return err ? no_counter(dev, port, err) : 0;
}

int rdev_query_counter(struct ibfs_device *dev, unsigned int port, enum counter which,
		       uint64_t *value)
{
	return counter_call(dev, port, which, counter_job, value);
}

int rdev_clear_counter(struct ibfs_device *dev, unsigned int port, enum counter which)
{
	uint64_t none;

	return counter_call(dev, port, which, clear_job, &none);
}

static void hw_counter_job(void *arg)
{
	struct attr_call *call = arg;

	call->err = read_port_file(call);
	if (!call->err)
		call->value = strtoull(call->text, NULL, 10);
	else if (call->err == -ENOENT)
		call->err = -EOPNOTSUPP;
}

int rdev_query_hw_counter(struct ibfs_device *dev, unsigned int port, unsigned int index,
			  uint64_t *value)
{
	struct attr_call call = { .port = port };
	int err;

	if (bad_port(dev, port))
		return -EINVAL;
	snprintf(call.text, sizeof(call.text), "hw_counters/%s", rdev_of(dev)->hw_counters[index]);
	err = attr_call(dev, hw_counter_job, &call);
	if (err == -EOPNOTSUPP)
		return refused(dev, "has no such counter");
	*value = call.value;
	return err;
}
