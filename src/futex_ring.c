/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for futexes, futex_ring.h; io_uring_setup(2), io_uring_enter(2). What
 * completes is known by its id alone. One thread submits and waits, so that the
 * kernel has nothing to do for it in any other's place.
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "futex_ring.h"

enum { ENTRIES = 64 };

/* linux/io_uring.h and linux/futex.h of Linux 6.7; Debian's headers are older. */
enum { OP_FUTEX_WAIT = 51, FUTEX_SIZE_U32 = 2 };

static size_t rings_size(const struct io_uring_params *p)
{
	size_t sq = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
	size_t cq = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);

	return sq > cq ? sq : cq;
}

static atomic_uint *index_at(const struct futex_ring *ring, uint32_t offset)
{
	return (atomic_uint *)((char *)ring->rings + offset);
}

static int map(struct futex_ring *ring)
{
	const struct io_uring_params *p = &ring->params;

	ring->rings = mmap(NULL, rings_size(p), PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
			   IORING_OFF_SQ_RING);
	if (ring->rings == MAP_FAILED)
		return -errno;
	ring->entries = mmap(NULL, p->sq_entries * sizeof(*ring->entries),
			     PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQES);
	if (ring->entries != MAP_FAILED)
		return 0;
	munmap(ring->rings, rings_size(p));
	return -ENOMEM;
}

/* Does the kernel know the operation? */
static bool supported(int fd)
{
	struct {
		struct io_uring_probe head;
		struct io_uring_probe_op ops[OP_FUTEX_WAIT + 1];
	} probe = { 0 };

	return !syscall(SYS_io_uring_register, fd, IORING_REGISTER_PROBE, &probe,
			OP_FUTEX_WAIT + 1) &&
	       probe.head.last_op >= OP_FUTEX_WAIT &&
	       probe.ops[OP_FUTEX_WAIT].flags & IO_URING_OP_SUPPORTED;
}

int futex_ring_init(struct futex_ring *ring)
{
	int err;

	*ring = (struct futex_ring){ .params.flags = IORING_SETUP_R_DISABLED |
						     IORING_SETUP_SINGLE_ISSUER |
						     IORING_SETUP_DEFER_TASKRUN };
	ring->fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &ring->params);
	if (ring->fd < 0)
		return -errno;
	err = -ENOSYS;
	if (supported(ring->fd) && ring->params.features & IORING_FEAT_SINGLE_MMAP)
		err = map(ring);
	if (err)
		close(ring->fd);
	return err;
}

void futex_ring_exit(struct futex_ring *ring)
{
	munmap(ring->entries, ring->params.sq_entries * sizeof(*ring->entries));
	munmap(ring->rings, rings_size(&ring->params));
	close(ring->fd);
}

int futex_ring_enable(struct futex_ring *ring)
{
	return syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0) ?
		       -errno : 0;
}

/* What the kernel can't take now (no memory) it gets with the next. */
static void enter(struct futex_ring *ring, bool sleep)
{
	atomic_uint *tail = index_at(ring, ring->params.sq_off.tail);
	unsigned int left;

	atomic_fetch_add(tail, ring->queued);
	ring->queued = 0;
	left = *tail - *index_at(ring, ring->params.sq_off.head);
	if (left || sleep)
		syscall(SYS_io_uring_enter, ring->fd, left, sleep, sleep ? IORING_ENTER_GETEVENTS : 0,
			NULL, 0);
}

/* There is room again after each enter(), for what it took. */
static struct io_uring_sqe *next_entry(struct futex_ring *ring)
{
	const struct io_uring_params *p = &ring->params;
	uint32_t *array = (uint32_t *)((char *)ring->rings + p->sq_off.array);
	unsigned int tail, index;

	while (*index_at(ring, p->sq_off.tail) + ring->queued - *index_at(ring, p->sq_off.head) ==
	       p->sq_entries)
		enter(ring, false);
	tail = *index_at(ring, p->sq_off.tail) + ring->queued++;
	index = tail & (p->sq_entries - 1);
	array[index] = index;
	memset(&ring->entries[index], 0, sizeof(*ring->entries));
	return &ring->entries[index];
}

void futex_ring_wait(struct futex_ring *ring, uint64_t id, atomic_uint *word, unsigned int value)
{
	struct io_uring_sqe *entry = next_entry(ring);

	entry->opcode = OP_FUTEX_WAIT;
	entry->fd = FUTEX_SIZE_U32;
	entry->addr = (uintptr_t)word;
	entry->addr2 = value;
	entry->addr3 = FUTEX_BITSET_MATCH_ANY;
	entry->user_data = id;
}

void futex_ring_cancel(struct futex_ring *ring, uint64_t id)
{
	struct io_uring_sqe *entry = next_entry(ring);

	entry->opcode = IORING_OP_ASYNC_CANCEL;
	entry->addr = id;
}

void futex_ring_delay(struct futex_ring *ring, uint64_t id, unsigned int ns)
{
	struct io_uring_sqe *entry = next_entry(ring);

	ring->delay = (struct __kernel_timespec){ .tv_nsec = ns };
	entry->opcode = IORING_OP_TIMEOUT;
	entry->addr = (uintptr_t)&ring->delay;
	entry->len = 1;
	entry->user_data = id;
}

void futex_ring_sleep(struct futex_ring *ring)
{
	enter(ring, true);
}

uint64_t futex_ring_next(struct futex_ring *ring)
{
	const struct io_uring_params *p = &ring->params;
	const struct io_uring_cqe *done = (void *)((char *)ring->rings + p->cq_off.cqes);
	atomic_uint *head = index_at(ring, p->cq_off.head);
	uint64_t id = 0;

	while (!id && *head != atomic_load(index_at(ring, p->cq_off.tail))) {
		id = done[*head & (p->cq_entries - 1)].user_data;
		atomic_fetch_add(head, 1);
	}
	return id;
}
