/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thread that waits for many futexes: an io_uring whose only operations are
 * to wait for a futex (Linux 6.7), to cancel that, and to wait for a time.
 * io_uring(7).
 */
#ifndef IBFS_FUTEX_RING_H
#define IBFS_FUTEX_RING_H

#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct futex_ring {
	int fd;
	struct io_uring_params params;
	void *rings;			/* both, one mapping */
	struct io_uring_sqe *entries;
	unsigned int queued;
	struct __kernel_timespec delay;	/* until the kernel has read it */
};

/* -ENOSYS, -EPERM, -ENOMEM, ...: the kernel has none of this for us. */
int futex_ring_init(struct futex_ring *ring);
void futex_ring_exit(struct futex_ring *ring);
/* First, by the thread that alone uses it from then on. */
int futex_ring_enable(struct futex_ring *ring);
/*
 * Wait until somebody wakes word, or, if it isn't value then, not at all: in
 * both cases id ends, once. id: not 0. The word's memory may go at any time.
 */
void futex_ring_wait(struct futex_ring *ring, uint64_t id, atomic_uint *word, unsigned int value);
/* The waiting is over; the id ends, too. */
void futex_ring_cancel(struct futex_ring *ring, uint64_t id);
/* The id ends after so long, less than a second; one at a time. */
void futex_ring_delay(struct futex_ring *ring, uint64_t id, unsigned int ns);
/* Take effect what was asked for, and sleep until something ends. */
void futex_ring_sleep(struct futex_ring *ring);
/* The next that ended, or 0. */
uint64_t futex_ring_next(struct futex_ring *ring);

#endif
