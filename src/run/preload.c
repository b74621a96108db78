/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibfs-run.so, preloaded by ibfs-run: what no file system can do. A file of
 * the tree can't be a character device (opening one would reach the kernel's
 * driver), and libibverbs takes nothing else for a uverbs file, nor librdmacm for
 * rdma_cm: the stat family says here that these files are what they look for.
 *
 * It runs inside any program: this part keeps nothing but one device number,
 * calls only system calls, allocates and locks nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "run/preload.h"

#define FUSE_MAGIC	0x65735546

/* The tree's st_dev; 0: it isn't at its place. */
static dev_t tree_dev;

/* Raw system calls: here glibc's functions of these names are ours. */
static int real_fstatat(int dir, const char *path, struct stat *st, int flags)
{
	return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

static void __attribute__((constructor)) find_tree(void)
{
	int saved = errno;
	struct statfs fs;
	struct stat st;

	if (!statfs("/dev/infiniband", &fs) && fs.f_type == FUSE_MAGIC &&
	    !real_fstatat(AT_FDCWD, "/dev/infiniband", &st, 0))
		tree_dev = st.st_dev;
	errno = saved;
}

bool preload_has_tree(void)
{
	return tree_dev;
}

bool preload_in_tree(int fd)
{
	struct stat st;

	return tree_dev && !real_fstatat(fd, "", &st, AT_EMPTY_PATH) && st.st_dev == tree_dev;
}

/* A path's last component if it is called as a device is, "uverbsN" or "rdma_cm", or NULL. */
static const char *device_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	if (!strcmp(name, "rdma_cm"))
		return name;
	return strncmp(name, "uverbs", 6) || !name[6] || strlen(name) > 16 ? NULL : name;
}

/* Its device number as sys/class tells, since that is what libraries compare with. */
static dev_t device_number(const char *name)
{
	const char *class = *name == 'r' ? "misc" : "infiniband_verbs";
	char path[64], text[32];
	char *end;
	ssize_t n;
	unsigned long major, minor;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/%s/%s/dev", class, name);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	syscall(SYS_close, fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	major = strtoul(text, &end, 10);
	if (*end != ':')
		return 0;
	minor = strtoul(end + 1, NULL, 10);
	return makedev(major, minor);
}

/*
 * The path of an open file, as it was opened. Each lookup of a uverbs file makes
 * an inode of its own, so another process's makes this one's a deleted one.
 */
static void path_of(int fd, char *path, size_t size)
{
	static const char deleted[] = " (deleted)";
	char link[40];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, size - 1);
	if (n < 0)
		n = 0;
	path[n] = '\0';
	n -= (ssize_t)strlen(deleted);
	if (n > 0 && !strcmp(path + n, deleted))
		path[n] = '\0';
}

/* Of a regular file of the tree: the number of the device that it stands for, or 0. */
static dev_t device_of(int dir, const char *path, int flags)
{
	char target[256];
	int saved = errno;
	const char *name;
	dev_t dev;

	if (flags & AT_EMPTY_PATH && (!path || !*path)) {
		path_of(dir, target, sizeof(target));
		path = target;
	}
	name = device_name(path);
	dev = name ? device_number(name) : 0;
	errno = saved;
	return dev;
}

/* An open file of a tree that took the place of the one that was there: find_tree() anew. */
static bool in_new_tree(int fd, const char *path, const struct stat *st, int flags)
{
	struct statfs fs;

	if (!(flags & AT_EMPTY_PATH) || (path && *path) || fstatfs(fd, &fs) || fs.f_type != FUSE_MAGIC)
		return false;
	find_tree();
	return st->st_dev == tree_dev;
}

static int stat_common(int dir, const char *path, struct stat *st, int flags)
{
	int ret = real_fstatat(dir, path, st, flags);
	dev_t dev;

	if (ret || !tree_dev || !S_ISREG(st->st_mode) ||
	    (st->st_dev != tree_dev && !in_new_tree(dir, path, st, flags)))
		return ret;
	dev = device_of(dir, path, flags);
	if (dev) {
		st->st_mode = (st->st_mode & ~(mode_t)S_IFMT) | S_IFCHR;
		st->st_rdev = dev;
		st->st_size = 0;
	}
	return 0;
}

static int fstat_common(int fd, struct stat *st)
{
	if (fd < 0) {
		errno = EBADF;
		return -1;
	}
	return stat_common(fd, "", st, AT_EMPTY_PATH);
}

/* glibc's declarations have reserved names. NOLINTBEGIN(*-inconsistent-declaration-parameter-name) */
int stat(const char *restrict path, struct stat *restrict st)
{
	return stat_common(AT_FDCWD, path, st, 0);
}

int lstat(const char *restrict path, struct stat *restrict st)
{
	return stat_common(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

int fstat(int fd, struct stat *st)
{
	return fstat_common(fd, st);
}

int fstatat(int dir, const char *restrict path, struct stat *restrict st, int flags)
{
	return stat_common(dir, path, st, flags);
}

int statx(int dir, const char *restrict path, int flags, unsigned int mask,
	  struct statx *restrict st)
{
	int ret = (int)syscall(SYS_statx, dir, path, flags, mask, st);
	dev_t dev;

	if (ret || !tree_dev || makedev(st->stx_dev_major, st->stx_dev_minor) != tree_dev ||
	    !S_ISREG(st->stx_mode))
		return ret;
	dev = device_of(dir, path, flags);
	if (dev) {
		st->stx_mode = (uint16_t)((st->stx_mode & ~S_IFMT) | S_IFCHR);
		st->stx_rdev_major = major(dev);
		st->stx_rdev_minor = minor(dev);
		st->stx_size = 0;
	}
	return 0;
}

/*
 * The same under the names that large-file programs and those of glibc before
 * 2.33 call. On 64-bit machines all have one struct stat, the kernel's.
 */
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "64-bit machines only");

int stat64(const char *restrict path, struct stat64 *restrict st)
{
	return stat_common(AT_FDCWD, path, (struct stat *)st, 0);
}

int lstat64(const char *restrict path, struct stat64 *restrict st)
{
	return stat_common(AT_FDCWD, path, (struct stat *)st, AT_SYMLINK_NOFOLLOW);
}

int fstat64(int fd, struct stat64 *st)
{
	return fstat_common(fd, (struct stat *)st);
}

int fstatat64(int dir, const char *restrict path, struct stat64 *restrict st, int flags)
{
	return stat_common(dir, path, (struct stat *)st, flags);
}

/* NOLINTEND(*-inconsistent-declaration-parameter-name) */

int __xstat(int version, const char *path, struct stat *st);
int __xstat(int version, const char *path, struct stat *st)
{
	(void)version;
	return stat_common(AT_FDCWD, path, st, 0);
}

int __lxstat(int version, const char *path, struct stat *st);
int __lxstat(int version, const char *path, struct stat *st)
{
	(void)version;
	return stat_common(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

int __fxstat(int version, int fd, struct stat *st);
int __fxstat(int version, int fd, struct stat *st)
{
	(void)version;
	return fstat_common(fd, st);
}

int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags)
{
	(void)version;
	return stat_common(dir, path, st, flags);
}
