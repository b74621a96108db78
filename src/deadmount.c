/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mounts whose daemon has died. A FUSE connection ends with the daemon that has
 * it, but the mount stays, and all that is asked of it fails with ENOTCONN.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deadmount.h"

/* Requests that were on their way when it ended fail in another way, once. */
static bool is_dead(int fd)
{
	struct statfs fs;
	int ret;

	do {
		ret = fstatfs(fd, &fs);
	} while (ret && (errno == ECONNABORTED || errno == EINTR));
	return ret && errno == ENOTCONN;
}

/* Which mount a descriptor is on: proc_pid_fdinfo(5). -1: unknown. */
static int mount_id(int fd)
{
	char path[40], *line = NULL;
	size_t size = 0;
	int id = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	if (!file)
		return -1;
	while (id < 0 && getline(&line, &size, file) > 0)
		if (sscanf(line, "mnt_id: %d", &id) != 1)
			id = -1;
	free(line);
	fclose(file);
	return id;
}

/* A line: "ID ... - TYPE SOURCE OPTIONS", proc_pid_mountinfo(5). */
static bool is_ibfs_line(const char *line, int id)
{
	static const char type[] = " - fuse.ibfs ";

	return strtol(line, NULL, 10) == id && strstr(line, type);
}

static bool is_ibfs(int fd)
{
	int id = mount_id(fd);
	bool found = false;
	char *line = NULL;
	size_t size = 0;
	FILE *file;

	file = id < 0 ? NULL : fopen("/proc/self/mountinfo", "re");
	if (!file)
		return false;
	while (!found && getline(&line, &size, file) > 0)
		found = is_ibfs_line(line, id);
	free(line);
	fclose(file);
	return found;
}

/* A user may unmount what fusermount3(1) mounted, by that program alone. */
static bool unmount_by_helper(const char *mountpoint)
{
	char *const argv[] = { "fusermount3", "-u", "-z", "-q", "--", (char *)mountpoint, NULL };
	pid_t pid;
	int status;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ))
		return false;
	while (waitpid(pid, &status, 0) != pid)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Lazily: programs that have files of it open keep them, and get errors. */
static bool unmount(const char *mountpoint)
{
	if (!umount2(mountpoint, MNT_DETACH | UMOUNT_NOFOLLOW))
		return true;
	return errno == EPERM && unmount_by_helper(mountpoint);
}

/* 1: the topmost mount was dead, and is gone; 0: it isn't dead; -errno. */
static int remove_one(const char *mountpoint)
{
	int ret = 0, fd = open(mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (is_dead(fd))
		ret = is_ibfs(fd) && unmount(mountpoint) ? 1 : -ENOTCONN;
	close(fd);
	return ret;
}

int deadmount_remove(const char *mountpoint)
{
	int ret, n = 0;

	while ((ret = remove_one(mountpoint)) > 0)
		n++;
	return n ? n : ret;
}
