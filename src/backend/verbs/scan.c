/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What RDMA devices the system has, by libibverbs and libibumad: a switch has
 * management only, an Ethernet adapter no umad. Runs on a thread; touches
 * nothing of the daemon but the scan.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "backend/verbs/rdev.h"

int sysfs_read(char *buf, size_t size, const char *fmt, ...)
{
	char path[512];
	int n, fd;
	ssize_t len;
	va_list ap;

	n = snprintf(path, sizeof(path), "%s/", SYSFS_IB);
	va_start(ap, fmt);
	vsnprintf(path + n, sizeof(path) - (size_t)n, fmt, ap);
	va_end(ap);
	buf[0] = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, buf, size - 1);
	n = len < 0 ? -errno : 0;
	close(fd);
	if (n)
		return n;
	buf[len] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

void found_free(struct found *found)
{
	for (char **name = found->hw_counters; name && *name; name++)
		free(*name);
	free(found->hw_counters);
	free(found);
}

void scan_free(struct scan *scan)
{
	struct found *found, *tmp;

	DL_FOREACH_SAFE(scan->found, found, tmp)
		found_free(found);
	free(scan->known);
	free(scan->want);
	free(scan);
}

static bool wanted(const struct scan *scan, const char *name)
{
	for (unsigned int i = 0; i < scan->num_want; i++)
		if (!strcmp(scan->want[i], name))
			return true;
	return scan->all;
}

/* One that the loop knows: it is there still, and what its description is now. */
static bool known(struct scan *scan, const char *name)
{
	for (unsigned int i = 0; i < scan->num_known; i++) {
		struct known *k = &scan->known[i];

		if (strcmp(k->name, name) != 0)
			continue;
		k->there = true;
		sysfs_read(k->node_desc, sizeof(k->node_desc), "%s/node_desc", name);
		return true;
	}
	return false;
}

static const struct found *found_already(const struct scan *scan, const char *name)
{
	const struct found *found;

	DL_FOREACH(scan->found, found)
		if (!strcmp(found->name, name))
			return found;
	return NULL;
}

static uint64_t read_guid(const char *device, const char *file)
{
	unsigned int part[4];
	char text[64];

	if (sysfs_read(text, sizeof(text), "%s/%s", device, file) ||
	    sscanf(text, "%4x:%4x:%4x:%4x", &part[0], &part[1], &part[2], &part[3]) != 4)
		return 0;
	return (uint64_t)part[0] << 48 | (uint64_t)part[1] << 32 | (uint64_t)part[2] << 16 | part[3];
}

static unsigned int read_num(const char *device, const char *file, int base)
{
	char text[64];

	sysfs_read(text, sizeof(text), "%s/%s", device, file);
	return (unsigned int)strtoul(text, NULL, base);
}

/* The lowest and the highest port; false: it has none. */
static bool read_ports(struct found *found)
{
	unsigned int low = UINT8_MAX, high = 0, num;
	struct dirent *entry;
	char path[256];
	DIR *dir;

	snprintf(path, sizeof(path), SYSFS_IB "/%s/ports", found->name);
	dir = opendir(path);
	if (!dir)
		return false;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		num = (unsigned int)strtoul(entry->d_name, NULL, 10);
		if (num < low)
			low = num;
		if (num > high && num < UINT8_MAX)
			high = num;
	}
	closedir(dir);
	found->first_port = low;
	found->num_ports = high;
	return low <= high;
}

/* Of the first port: all ports of a device have the same. */
static char **read_hw_counters(const struct found *found)
{
	char **names = calloc(HW_COUNTERS + 1, sizeof(*names)), path[256];
	struct dirent *entry;
	unsigned int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), SYSFS_IB "/%s/ports/%u/hw_counters", found->name,
		 found->first_port);
	dir = names ? opendir(path) : NULL;
	if (!dir) {
		free(names);
		return NULL;
	}
	while (n < HW_COUNTERS && (entry = readdir(dir))) {
		/* lifespan: how old the kernel lets the values get */
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "lifespan"))
			continue;
		names[n] = strdup(entry->d_name);
		if (names[n])
			n++;
	}
	closedir(dir);
	return names;
}

static struct found *look(const char *name)
{
	struct found *found = calloc(1, sizeof(*found));

	if (!found)
		return NULL;
	snprintf(found->name, sizeof(found->name), "%s", name);
	if (!read_ports(found)) {
		free(found);
		return NULL;
	}
	found->node_type = (enum ibv_node_type)read_num(name, "node_type", 10);
	found->node_guid = read_guid(name, "node_guid");
	found->sys_image_guid = read_guid(name, "sys_image_guid");
	found->hw_rev = read_num(name, "hw_rev", 16);
	sysfs_read(found->node_desc, sizeof(found->node_desc), "%s/node_desc", name);
	sysfs_read(found->fw_ver, sizeof(found->fw_ver), "%s/fw_ver", name);
	sysfs_read(found->hca_type, sizeof(found->hca_type), "%s/hca_type", name);
	sysfs_read(found->board_id, sizeof(found->board_id), "%s/board_id", name);
	found->hw_counters = read_hw_counters(found);
	return found;
}

static void dont_block(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* libibverbs tries several ways: its errno is of the last. */
static void cant_open(struct scan *scan, struct ibv_device *device, int err)
{
	char path[128];

	snprintf(path, sizeof(path), "/dev/infiniband/%.64s", device->dev_name);
	if (access(path, R_OK | W_OK))
		err = errno;
	snprintf(scan->why, sizeof(scan->why), "the system's device %.32s can't be opened: %.64s: %s",
		 ibv_get_device_name(device), path, strerror(err));
}

static void add(struct scan *scan, const char *name, struct ibv_device *device)
{
	struct found *found;

	if (!wanted(scan, name) || known(scan, name) || found_already(scan, name))
		return;
	found = look(name);
	if (!found)
		return;
	if (device) {
		found->ctx = ibv_open_device(device);
		if (!found->ctx) {
			cant_open(scan, device, errno);
			found_free(found);
			return;
		}
		found->channel = ibv_create_comp_channel(found->ctx);
		if (!found->channel) {
			ibv_close_device(found->ctx);
			found_free(found);
			return;
		}
		dont_block(found->ctx->async_fd);
		dont_block(found->channel->fd);
	}
	DL_APPEND(scan->found, found);
}

static void add_verbs(struct scan *scan)
{
	int num = 0;
	struct ibv_device **list = ibv_get_device_list(&num);

	for (int i = 0; list && i < num; i++)
		add(scan, ibv_get_device_name(list[i]), list[i]);
	if (list)
		ibv_free_device_list(list);
}

/* One that couldn't be opened with libibverbs is not shown without. */
static void add_umads(struct scan *scan)
{
	struct umad_device_node *list = umad_get_ca_device_list(), *node;

	for (node = list; node; node = node->next) {
		char type[64];

		sysfs_read(type, sizeof(type), "%s/node_type", node->ca_name);
		if (strtoul(type, NULL, 10) != IBV_NODE_CA)
			add(scan, node->ca_name, NULL);
	}
	if (list)
		umad_free_ca_device_list(list);
}

static void say_why(struct scan *scan)
{
	for (unsigned int i = 0; i < scan->num_known; i++)
		if (scan->known[i].there)
			return;
	if (scan->found || scan->why[0])
		return;
	if (access(SYSFS_IB, F_OK) || scan->all)
		snprintf(scan->why, sizeof(scan->why),
			 "no RDMA device on this system (%s: %s); those that come will be taken",
			 SYSFS_IB, access(SYSFS_IB, F_OK) ? strerror(errno) : "empty");
	else
		snprintf(scan->why, sizeof(scan->why),
			 "none of the RDMA devices that the configuration names is on this system; "
			 "those that come will be taken");
}

void scan_run(struct scan *scan)
{
	add_verbs(scan);
	add_umads(scan);
	say_why(scan);
}
