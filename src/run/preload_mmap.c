/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibfs-run.so's part for mapping: where the kernel can't map a uverbs file
 * the daemon sends the memory itself (ibfs/uverbs_rings.h). By system calls
 * only; the descriptors are gone when mmap() returns.
 */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ibfs/uverbs_rings.h>

#include "run/preload.h"

static bool ask(int fd, int sock)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ibfs_uverbs_rings req;
	} command = {
		{ .command = IBFS_UVERBS_RINGS, .in_words = sizeof(command) / sizeof(uint32_t) },
		{ .sock = sock },
	};

	return syscall(SYS_write, fd, &command, sizeof(command)) == sizeof(command);
}

static int receive(int sock)
{
	union {
		struct cmsghdr head;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control.buf, .msg_controllen = sizeof(control.buf),
	};
	int fd = -1;

	if (syscall(SYS_recvmsg, sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == 1 &&
	    msg.msg_controllen >= CMSG_LEN(sizeof(int)) && control.head.cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	return fd;
}

/* The memory of the file's rings; -1: there is none to be had. */
static int get_memory(int fd)
{
	int pair[2], memory = -1;

	if (syscall(SYS_socketpair, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair))
		return -1;
	if (ask(fd, pair[1]))
		memory = receive(pair[0]);
	syscall(SYS_close, pair[0]);
	syscall(SYS_close, pair[1]);
	return memory;
}

static void *map(void *addr, size_t size, int prot, int flags, int fd, off_t off)
{
	void *at = (void *)syscall(SYS_mmap, addr, size, prot, flags, fd, off);
	int saved = errno, memory;

	if (at != MAP_FAILED || errno != ENODEV || fd < 0 || !preload_is_uverbs(fd))
		return at;
	memory = get_memory(fd);
	if (memory < 0) {
		errno = saved;
		return MAP_FAILED;
	}
	at = (void *)syscall(SYS_mmap, addr, size, prot, flags, memory, off);
	saved = errno;
	syscall(SYS_close, memory);
	errno = saved;
	return at;
}

/* glibc's declarations have reserved names. NOLINTBEGIN(*-inconsistent-declaration-parameter-name) */
void *mmap(void *addr, size_t size, int prot, int flags, int fd, off_t off)
{
	return map(addr, size, prot, flags, fd, off);
}

void *mmap64(void *addr, size_t size, int prot, int flags, int fd, off64_t off)
{
	return map(addr, size, prot, flags, fd, off);
}

/* NOLINTEND(*-inconsistent-declaration-parameter-name) */
