/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FUSE passthrough for mmap(): the kernel maps a descriptor of the daemon's in
 * place of the file, so that a client and the daemon share memory. libfuse
 * 3.14 doesn't know it: the answer to INIT is changed on its way out.
 * linux/fuse.h, FUSE_PASSTHROUGH; kernel fs/fuse/passthrough.c.
 */
#ifndef IBFS_FS_PASSTHROUGH_H
#define IBFS_FS_PASSTHROUGH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct backing;

struct passthrough {
	int fd;				/* /dev/fuse */
	bool answered;			/* INIT was; nothing to watch for any more */
	bool offered, on;		/* by the kernel; in our answer */
	uint64_t init;			/* the INIT request's unique */
	bool allowed;			/* by the configuration */
	struct backing *backings;	/* by node id */
};

/* Not allowed: as if the kernel had none. */
void passthrough_init(struct passthrough *pt, int fd, bool allowed);
void passthrough_free(struct passthrough *pt);
/* What was read from, or is written to /dev/fuse, until pt->answered. */
void passthrough_request(struct passthrough *pt, const void *buf, size_t len);
void passthrough_reply(struct passthrough *pt, struct iovec *iov, int count);
/*
 * The backing id (> 0) of a node, which all its open files share: made from fd
 * at the first. -ENODEV without passthrough, -EPERM for a mount of an
 * unprivileged user. Each success is followed by one passthrough_put().
 */
int passthrough_get(struct passthrough *pt, uint64_t ino, int fd);
void passthrough_put(struct passthrough *pt, uint64_t ino);

#endif
