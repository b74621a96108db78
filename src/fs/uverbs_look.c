/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a helper thread finds out about memory that a process registers, from
 * /proc/PID: whether all of it is mapped and with which protection, how much
 * the process may lock, and whether a file is behind it whose pages the daemon
 * can map itself. proc_pid_maps(5), proc_pid_map_files(5).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/auxvec.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fs/client_mem.h"
#include "fs/uverbs.h"

/* A line of maps. */
struct mapping {
	uint64_t from, to, off;
	char perm[5];
	unsigned int major, minor;
	uint64_t ino;
};

static bool parse_line(const char *line, struct mapping *map)
{
	return sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &map->from,
		      &map->to, map->perm, &map->off, &map->major, &map->minor, &map->ino) == 7;
}

/* Is all of the range mapped, and may the process read (and write) it? The mapping of its end. */
static int look_maps(const struct uv_range *range, pid_t tid, struct mapping *map)
{
	uint64_t at = range->start, end = range->start + range->length;
	char path[40], *line = NULL;
	size_t size = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)tid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	while (at < end && getline(&line, &size, maps) > 0) {
		if (!parse_line(line, map) || map->to <= at)
			continue;
		if (map->from > at || map->perm[0] != 'r' || (range->write && map->perm[1] != 'w'))
			break;
		at = map->to;
	}
	free(line);
	fclose(maps);
	return at < end ? -EFAULT : 0;
}

int uv_range_check(pid_t tgid, uint64_t start, uint64_t length, bool write)
{
	struct uv_range range = { .start = start, .length = length, .write = write };
	struct mapping map;

	return start + length < start ? -EFAULT : look_maps(&range, tgid, &map);
}

/* The process, and whether it may lock as much as it likes. */
static int look_status(pid_t tid, pid_t *tgid, bool *unlimited)
{
	char path[40], *line = NULL;
	size_t size = 0;
	uint64_t caps = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	status = fopen(path, "re");
	if (!status)
		return -errno;
	*tgid = tid;
	while (getline(&line, &size, status) > 0) {
		if (!strncmp(line, "Tgid:", 5))
			*tgid = (pid_t)strtol(line + 5, NULL, 10);
		else if (!strncmp(line, "CapEff:", 7))
			caps = strtoull(line + 7, NULL, 16);
	}
	free(line);
	fclose(status);
	*unlimited = caps >> CAP_IPC_LOCK & 1;
	return 0;
}

int uv_tgid(pid_t tid, pid_t *tgid)
{
	bool unlimited;

	return look_status(tid, tgid, &unlimited);
}

/*
 * Only pages that are memory: those of another file system may not come for
 * ever. The file is looked at before it is opened, since to open can do things.
 */
static int open_memory(const char *path, const struct mapping *map, size_t *page)
{
	int fd, look = open(path, O_PATH | O_CLOEXEC);
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
static bool is_file_of(int dir, const char *name, const struct mapping *map)
{
	struct statx st;

	return !statx(dir, name, AT_STATX_DONT_SYNC, STATX_INO, &st) && st.stx_ino == map->ino &&
	       st.stx_dev_major == map->major && st.stx_dev_minor == map->minor;
}

/* The mapping's file, if the process has it open: map_files is for privileged daemons only. */
static int open_descriptor(pid_t tid, const struct mapping *map, size_t *page)
{
	const struct dirent *entry;
	char path[300];
	DIR *dir;
	int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)tid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while (fd < 0 && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.' || !is_file_of(dirfd(dir), entry->d_name, map))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)tid, entry->d_name);
		fd = open_memory(path, map, page);
	}
	closedir(dir);
	return fd;
}

/*
 * The file of a range that one shared mapping holds. The same line of maps
 * before and after means that the file that was opened is the one mapped.
 */
static void look_shared(struct uv_range *range, pid_t tid, const struct mapping *map)
{
	struct mapping again;
	char path[80];
	int fd;

	if (map->from > range->start || map->perm[1] != 'w' || map->perm[3] != 's')
		return;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)tid, map->from,
		 map->to);
	fd = open_memory(path, map, &range->shared.page);
	if (fd < 0)
		fd = open_descriptor(tid, map, &range->shared.page);
	if (fd < 0)
		return;
	memset(&again, 0, sizeof(again));
	if (look_maps(range, tid, &again) || again.from != map->from || again.to != map->to ||
	    again.off != map->off || again.ino != map->ino || again.perm[3] != 's') {
		close(fd);
		return;
	}
	range->shared.fd = fd;
	range->shared.off = map->off + (range->start - map->from);
}

/* Where the kernel put 16 random bytes when the program began: getauxval(3), AT_RANDOM. */
static uint64_t random_bytes_at(pid_t tid)
{
	uint64_t aux[128] = { 0 };
	char path[40];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, aux, sizeof(aux) - 2 * sizeof(aux[0]));
		close(fd);
	}
	for (ssize_t i = 0; i + 1 < n / (ssize_t)sizeof(aux[0]); i += 2)
		if (aux[i] == AT_RANDOM)
			return aux[i + 1];
	return 0;
}

/*
 * Tells programs that run in a process one after the other apart: one that
 * changes its own bytes is taken for another one.
 */
static void look_program(struct uv_range *range, pid_t tid)
{
	uint64_t at = random_bytes_at(tid);

	if (!at || pread(range->fd, range->program, sizeof(range->program), (off_t)at) < 0)
		memset(range->program, 0, sizeof(range->program));
}

void uv_range_init(struct uv_range *range)
{
	*range = (struct uv_range){ .fd = -1, .shared.fd = -1 };
}

int uv_range_look(struct uv_range *range, pid_t tid)
{
	struct mapping map = { 0 };
	bool unlimited = false;
	char path[40];
	int err;

	err = look_status(tid, &range->tgid, &unlimited);
	if (err)
		return err;
	range->limit = UINT64_MAX;
	if (!unlimited && !range->on_demand)
		err = client_memlock(tid, &range->limit);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)tid);
	range->fd = open(path, O_RDWR | O_CLOEXEC);
	if (range->fd < 0)
		return errno == EACCES ? -EPERM : -errno;
	look_program(range, tid);
	if (range->on_demand)
		return 0;
	err = look_maps(range, tid, &map);
	if (!err)
		look_shared(range, tid, &map);
	return err;
}

void uv_range_drop(struct uv_range *range)
{
	if (range->fd >= 0)
		close(range->fd);
	if (range->shared.fd >= 0)
		close(range->shared.fd);
	range->fd = range->shared.fd = -1;
}
