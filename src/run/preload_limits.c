/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibfs-run.so: what the system and the process's limits have to say to memory
 * that changes between private and shared. proc(5), cgroups(7). By system calls
 * only, of which any may fail: then it isn't permitted.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/preload_share.h"

/* So much is always there. */
#define LITTLE	(64ULL << 20)

struct text {
	char buf[4096];
};

/* A file's beginning; where the value of that name stands in it, or NULL. "VmLck:\t       0 kB" */
static const char *read_value(struct text *text, const char *path, const char *name)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	const char *at;
	ssize_t n;

	if (fd < 0)
		return NULL;
	n = syscall(SYS_read, fd, text->buf, sizeof(text->buf) - 1);
	syscall(SYS_close, fd);
	text->buf[n > 0 ? n : 0] = '\0';
	at = strstr(text->buf, name);
	if (!at)
		return NULL;
	at += strlen(name);
	return at + strspn(at, " \t");
}

static bool says(const char *path, const char *name, const char *value)
{
	struct text text;
	const char *at = read_value(&text, path, name);

	return at && !strncmp(at, value, strlen(value));
}

/* UINT64_MAX: there is no number. */
static uint64_t number(const char *path, const char *name)
{
	struct text text;
	const char *at = read_value(&text, path, name);

	return at && *at >= '0' && *at <= '9' ? strtoull(at, NULL, 10) : UINT64_MAX;
}

/* Private memory would be locked, the other wouldn't, or no longer. */
static bool nothing_locked(void)
{
	return says("/proc/self/status", "VmLck:", "0 kB");
}

/* Files in memory have limits that private memory doesn't have. */
bool limits_share(void)
{
	struct rlimit limit;

	return sysconf(_SC_PAGESIZE) == SHARE_PAGE &&
	       !syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) &&
	       limit.rlim_cur == RLIM_INFINITY &&
	       !says("/proc/sys/vm/overcommit_memory", "", "2") && nothing_locked();
}

static bool group_has(const char *group, uint64_t len)
{
	char path[512];
	uint64_t max, used;

	if (strlen(group) > sizeof(path) - 64)
		return false;
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", group);
	max = number(path, "");
	if (max == UINT64_MAX)
		return true;
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.current", group);
	used = number(path, "");
	return used < max && len < max - used;
}

/* The process's group and those around it. */
static bool groups_have(uint64_t len)
{
	struct text text;
	const char *at = read_value(&text, "/proc/self/cgroup", "0::");
	char *group = text.buf + (at ? at - text.buf : 0), *slash;

	group[at ? strcspn(group, "\n") : 0] = '\0';
	while (group_has(group, len)) {
		slash = strrchr(group, '/');
		if (!slash)
			return true;
		*slash = '\0';
	}
	return false;
}

bool limits_unshare(uint64_t len)
{
	uint64_t available;

	if (!nothing_locked())
		return false;
	if (len <= LITTLE)
		return true;
	available = number("/proc/meminfo", "MemAvailable:");
	return available != UINT64_MAX && len / 1024 < available && groups_have(len);
}
