/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a helper thread finds out about memory that a process registers: whether all
 * of it is mapped and with which protection, how much the process may lock, and
 * whether a file is behind it whose pages the daemon can map itself.
 * proc_pid_map_files(5).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fs/client_mem.h"
#include "fs/uverbs.h"

/*
 * Only pages that are memory: those of another file system may not come for
 * ever. The file is looked at before it is opened, since to open can do things.
 */
static int open_memory(const struct client *client, const char *name,
		       const struct client_mapping *map, size_t *page)
{
	int fd, look = client_open(client, name, O_PATH);
	struct statfs fs = { 0 };
	char self[40];
	struct stat st;

	if (look < 0)
		return -1;
	fd = -1;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", look);
	if (!fstat(look, &st) && !fstatfs(look, &fs) && S_ISREG(st.st_mode) &&
	    st.st_ino == map->ino && st.st_dev == makedev(map->major, map->minor) &&
	    (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC))
		fd = open(self, O_RDWR | O_CLOEXEC);
	*page = fs.f_type == HUGETLBFS_MAGIC ? (size_t)fs.f_bsize : (size_t)sysconf(_SC_PAGESIZE);
	close(look);
	return fd;
}

/* Of what the file is, as far as is known without asking its file system. */
static bool is_file_of(int dir, const char *name, const struct client_mapping *map)
{
	struct statx st;

	return !statx(dir, name, AT_STATX_DONT_SYNC, STATX_INO, &st) && st.stx_ino == map->ino &&
	       st.stx_dev_major == map->major && st.stx_dev_minor == map->minor;
}

/* The mapping's file, if the process has it open: map_files is for privileged daemons only. */
static int open_descriptor(const struct client *client, const struct client_mapping *map,
			   size_t *page)
{
	const struct dirent *entry;
	char name[300];
	int fd = client_open(client, "fd", O_RDONLY | O_DIRECTORY);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	fd = -1;
	while (fd < 0 && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.' || !is_file_of(dirfd(dir), entry->d_name, map))
			continue;
		snprintf(name, sizeof(name), "fd/%s", entry->d_name);
		fd = open_memory(client, name, map, page);
	}
	closedir(dir);
	return fd;
}

/*
 * The file of a range that one shared mapping holds. The same mapping before and after
 * means that the file that was opened is the one mapped.
 */
static void look_shared(struct uv_range *range, struct client *client,
			const struct client_mapping *map)
{
	struct client_mapping again;
	char name[64];
	int fd;

	if (map->from > range->start || !map->write || !map->shared)
		return;
	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, map->from, map->to);
	fd = open_memory(client, name, map, &range->shared.page);
	if (fd < 0)
		fd = open_descriptor(client, map, &range->shared.page);
	if (fd < 0)
		return;
	if (client_check(client, range->start, range->length, range->write, &again) ||
	    again.from != map->from || again.to != map->to || again.off != map->off ||
	    again.ino != map->ino || !again.shared) {
		close(fd);
		return;
	}
	range->shared.fd = fd;
	range->shared.off = map->off + (range->start - map->from);
}

void uv_range_init(struct uv_range *range)
{
	*range = (struct uv_range){ .shared.fd = -1 };
}

int uv_range_look(struct uv_range *range, struct client *client)
{
	struct client_mapping map;
	int err = 0;

	client_id_program(&client->id, client->dir, client->mem);
	range->limit = UINT64_MAX;
	if (range->on_demand)
		return 0;
	if (!client_id_locks(&client->id))
		err = client_memlock_of(client, &range->limit);
	if (!err)
		err = client_check(client, range->start, range->length, range->write, &map);
	if (!err)
		look_shared(range, client, &map);
	return err;
}

void uv_range_drop(struct uv_range *range)
{
	if (range->shared.fd >= 0)
		close(range->shared.fd);
	range->shared.fd = -1;
}
