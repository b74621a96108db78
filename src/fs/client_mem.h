/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory that a client's thread named in the system call which it is
 * blocked in, and how much a client may lock. The copying may sleep for ever: it
 * is for helper threads only.
 */
#ifndef IBFS_FS_CLIENT_MEM_H
#define IBFS_FS_CLIENT_MEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct client;

/* The buffer, or buffers, of one read or write call. */
struct client_buf {
	struct client *client;
	bool write;			/* a system call of the write family */
	size_t total;			/* bytes, as the client asked for */
	unsigned int num;
	struct iovec iov[UIO_MAXIOV];	/* in the client's address space */
};

/*
 * Find the buffer of the read() or write() (also p..., ...v) in which the thread of
 * a bound client sleeps. Waits until it does, at most about a second, and no longer
 * than *stop is 0. -ENOENT: it is in no such call (io_uring), -EPERM: this process
 * may not know, -EFAULT: bad iovec array, -ECANCELED: *stop, or it was answered.
 */
int client_buf_find(struct client_buf *buf, struct client *client, const atomic_int *stop);
/* Copy len bytes at offset off of the buffer. 0, -EFAULT. */
int client_buf_read(const struct client_buf *buf, size_t off, void *data, size_t len);
int client_buf_write(const struct client_buf *buf, size_t off, const void *data, size_t len);
/*
 * In the loop, while the process waits there: its soft RLIMIT_MEMLOCK in bytes,
 * UINT64_MAX: unlimited. Of /proc, because prlimit(2) of another user's process would
 * need CAP_SYS_RESOURCE, which containers often don't have. 0, or a negative errno:
 * -ENOENT, no such process.
 */
int client_memlock(pid_t pid, uint64_t *bytes);
/* Helper: the same of a bound client; or -ECANCELED. */
int client_memlock_of(const struct client *client, uint64_t *bytes);

#endif
