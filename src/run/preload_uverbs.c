/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibfs-run.so's part for uverbs: two commands answer with a new descriptor,
 * which no file system can put into its caller. Their answer is the name of a
 * file in /dev/infiniband/ev; here it is opened, and its descriptor takes the
 * name's place. And libibverbs asks netlink for devices before it looks into
 * /sys: the kernel's devices aren't those that the program is to see.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <rdma/ib_user_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/preload.h"

/* Where the answer's descriptor is, if this is a command that has one: its address, or 0. */
static uint64_t answer_of(const void *buf, size_t size)
{
	struct ib_uverbs_cmd_hdr hdr;
	uint64_t response;

	if (size < sizeof(hdr) + sizeof(response))
		return 0;
	memcpy(&hdr, buf, sizeof(hdr));
	if ((hdr.command != IB_USER_VERBS_CMD_GET_CONTEXT &&
	     hdr.command != IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL) ||
	    hdr.in_words * sizeof(uint32_t) != size || !hdr.out_words)
		return 0;
	memcpy(&response, (const char *)buf + sizeof(hdr), sizeof(response));
	return response;
}

static bool is_uverbs(int fd)
{
	char link[40], target[256];
	const char *slash;
	ssize_t n;

	if (!preload_in_tree(fd))
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	slash = strrchr(target, '/');
	return slash && !strncmp(slash, "/uverbs", 7);
}

/* False: there is no descriptor, and errno says why. */
static bool install(uint64_t response)
{
	uint32_t *answer = (uint32_t *)(uintptr_t)response;
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/ev/%u", *answer);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	*answer = (uint32_t)fd;
	return fd >= 0;
}

/* glibc's declarations have reserved names. NOLINTBEGIN(*-inconsistent-declaration-parameter-name) */
ssize_t write(int fd, const void *buf, size_t size)
{
	ssize_t n = syscall(SYS_write, fd, buf, size);
	uint64_t response;
	int saved = errno;

	if (n < 0 || (size_t)n != size)
		return n;
	response = answer_of(buf, size);
	if (!response || !is_uverbs(fd)) {
		errno = saved;
		return n;
	}
	if (!install(response))
		return -1;
	errno = saved;
	return n;
}

int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA && preload_has_tree()) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return (int)syscall(SYS_socket, domain, type, protocol);
}

/* NOLINTEND(*-inconsistent-declaration-parameter-name) */
