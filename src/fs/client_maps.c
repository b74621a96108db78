/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is mapped in a client's address space: asked of its maps file by
 * PROCMAP_QUERY where the kernel has that (6.11), else read there,
 * proc_pid_maps(5).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fs/client.h"

/* <linux/fs.h>, which is younger than the C library's headers may be. */
struct query {
	uint64_t size;
	uint64_t flags;
	uint64_t addr;
	uint64_t from, to;
	uint64_t vma_flags;
	uint64_t page_size;
	uint64_t off;
	uint64_t ino;
	uint32_t major, minor;
	uint32_t name_size, build_id_size;
	uint64_t name, build_id;
};
enum { VMA_READABLE = 1, VMA_WRITABLE = 2, VMA_SHARED = 8 };

/* The mapping that has addr: 0, -ENOENT, -ENOTTY: the kernel can't tell, -ESRCH. */
static int query(const struct client *client, uint64_t addr, struct client_mapping *map)
{
	struct query query = { .size = sizeof(query), .addr = addr };

	if (ioctl(client->maps, _IOWR('f', 17, struct query), &query))
		return -errno;
	*map = (struct client_mapping){
		.from = query.from, .to = query.to, .off = query.off, .ino = query.ino,
		.read = query.vma_flags & VMA_READABLE, .write = query.vma_flags & VMA_WRITABLE,
		.shared = query.vma_flags & VMA_SHARED, .major = query.major, .minor = query.minor,
	};
	return 0;
}

bool client_maps_asked(const struct client *client)
{
	struct client_mapping map;

	return query(client, 0, &map) != -ENOTTY;
}

static bool parse_line(const char *line, struct client_mapping *map)
{
	char perm[5];

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &map->from,
		   &map->to, perm, &map->off, &map->major, &map->minor, &map->ino) != 7)
		return false;
	map->read = perm[0] == 'r';
	map->write = perm[1] == 'w';
	map->shared = perm[3] == 's';
	return true;
}

/* As far as it is allowed: up to where. */
static uint64_t allowed_to(uint64_t at, const struct client_mapping *map, bool write)
{
	return map->from <= at && at < map->to && map->read && (!write || map->write) ? map->to : at;
}

static int check_text(FILE *maps, uint64_t at, uint64_t end, bool write, struct client_mapping *map)
{
	char *line = NULL;
	size_t size = 0;

	while (at < end && getline(&line, &size, maps) > 0) {
		uint64_t from = at;

		if (!parse_line(line, map) || map->to <= at)
			continue;
		at = allowed_to(at, map, write);
		if (at == from)
			break;
	}
	free(line);
	return at < end ? -EFAULT : 0;
}

/* Another descriptor of the same open file, which alone has the address space. */
static int read_text(struct client *client, uint64_t at, uint64_t end, bool write,
		     struct client_mapping *map)
{
	int fd = dup(client->maps), err = -EFAULT;
	FILE *maps = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (!maps) {
		err = fd < 0 ? -errno : -ENOMEM;
		if (fd >= 0)
			close(fd);
		return err;
	}
	pthread_mutex_lock(&client->maps_lock);
	if (!fseeko(maps, 0, SEEK_SET))
		err = check_text(maps, at, end, write, map);
	fclose(maps);		/* which moves the offset, too */
	pthread_mutex_unlock(&client->maps_lock);
	return err;
}

int client_check(struct client *client, uint64_t start, uint64_t length, bool write,
		 struct client_mapping *last)
{
	uint64_t at = start, end = start + length, next;
	struct client_mapping map = { 0 };
	int err = 0;

	if (end < start)
		return -EFAULT;
	while (at < end && !err) {
		err = query(client, at, &map);
		next = err ? at : allowed_to(at, &map, write);
		if (next == at)
			break;
		at = next;
	}
	if (err == -ENOTTY)
		err = read_text(client, start, end, write, &map);
	else if (at < end)
		err = -EFAULT;
	if (last)
		*last = map;
	return err;
}
