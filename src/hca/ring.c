/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings: a producer and a consumer index over a power of two of slots, one kept
 * empty, in the layout of struct rxe_queue_buf (rdma/rdma_user_rxe.h). When one
 * is shared, the other side can write anything anywhere at any time: its index
 * is masked at every use, and our own is never read back.
 */
#include <errno.h>
#include <rdma/rdma_user_rxe.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hca/verbs.h"
#include "ibfs/keeper.h"

static uint32_t log2_up(uint32_t n)
{
	return n <= 1 ? 0 : 32 - __builtin_clz(n - 1);
}

static void file_put(struct ring *ring)
{
	if (ring->space)
		ring->space->free(ring->space, ring->off, ring->size);
	else
		close(ring->fd);
	keeper_file_drop(ring->kept);
	ring->kept = NULL;
	ring->fd = -1;
}

static struct ring_space *space_of(const struct ring *ring)
{
	return ring->bill->client ? ring->bill->client->rings : NULL;
}

/* Memory from a space is paid for there. */
static struct verbs_cost cost_of(const struct ring *ring, bool shared)
{
	bool own_file = shared && !space_of(ring);

	return (struct verbs_cost){
		.bytes = shared && !own_file ? 0 : ring->size,
		.descriptors = own_file, .mappings = shared,
	};
}

/* A place in shared memory of ring->size bytes: fills fd, off and space. */
static void *ring_map(struct ring *ring)
{
	struct ring_space *space = space_of(ring);
	void *map;

	ring->space = space;
	ring->off = 0;
	if (space)
		ring->fd = space->alloc(space, ring->size, &ring->off) ? -1 : space->fd;
	else
		ring->fd = memory_fd("ibfs-ring", ring->size);
	if (ring->fd < 0)
		return NULL;
	map = mmap(NULL, ring->size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, ring->off);
	if (map != MAP_FAILED)
		return map;
	file_put(ring);
	return NULL;
}

int ring_init(struct ring *ring, uint32_t entries, uint32_t elem_size, bool shared,
	      struct bill *bill)
{
	uint32_t log2_elem = log2_up(elem_size), log2_slots = log2_up(entries + 1);
	size_t page = sysconf(_SC_PAGESIZE);
	int err;

	ring->mask = (1U << log2_slots) - 1;
	ring->elem_size = 1U << log2_elem;
	ring->index = 0;
	ring->fd = -1;
	ring->space = NULL;
	ring->bill = bill;
	ring->kept = NULL;
	ring->size = sizeof(*ring->buf) + ((size_t)1 << (log2_slots + log2_elem));
	ring->size = (ring->size + page - 1) & ~(page - 1);
	ring->buf = NULL;
	ring->cost = cost_of(ring, shared);
	err = bill_take(bill, ring->cost);
	if (err)
		return err;
	ring->buf = shared ? ring_map(ring) : calloc(1, ring->size);
	if (!ring->buf) {
		bill_give(bill, ring->cost);
		return -ENOMEM;
	}
	ring->buf->log2_elem_size = log2_elem;
	ring->buf->index_mask = ring->mask;
	return 0;
}

int ring_share(struct ring *ring)
{
	struct verbs_cost cost = cost_of(ring, true);
	void *map;
	int err;

	if (ring->fd >= 0)
		return 0;
	err = bill_take(ring->bill, cost);
	if (err)
		return err;
	map = ring_map(ring);
	if (!map) {
		bill_give(ring->bill, cost);
		return -ENOMEM;
	}
	memcpy(map, ring->buf, ring->size);
	free(ring->buf);
	bill_give(ring->bill, ring->cost);
	ring->buf = map;
	ring->cost = cost;
	return 0;
}

void ring_free(struct ring *ring)
{
	if (ring->fd >= 0) {
		munmap(ring->buf, ring->size);
		file_put(ring);
	} else {
		free(ring->buf);
	}
	ring->buf = NULL;
	bill_give(ring->bill, ring->cost);
}

uint32_t ring_used(const struct ring *ring, bool producer)
{
	uint32_t *theirs = producer ? &ring->buf->consumer_index : &ring->buf->producer_index;
	uint32_t other = __atomic_load_n(theirs, __ATOMIC_ACQUIRE);

	return (producer ? ring->index - other : other - ring->index) & ring->mask;
}

void *ring_slot(const struct ring *ring, uint32_t index)
{
	return ring->buf->data + (size_t)(index & ring->mask) * ring->elem_size;
}

size_t ring_copy(const struct ring *ring, uint32_t index, void *copy, size_t size)
{
	if (size > ring->elem_size)
		size = ring->elem_size;
	memcpy(copy, ring_slot(ring, index), size);
	/* What is read of the copy from here on isn't read of the ring. */
	atomic_signal_fence(memory_order_seq_cst);
	return size;
}

void ring_publish(struct ring *ring, bool producer)
{
	uint32_t *ours = producer ? &ring->buf->producer_index : &ring->buf->consumer_index;

	__atomic_store_n(ours, ring->index & ring->mask, __ATOMIC_RELEASE);
}

/* A full barrier: who sets it looks at the ring once more, who produced looks at it afterwards. */
void ring_want_doorbell(struct ring *ring, bool want)
{
	__atomic_store_n(&ring->buf->pad_1[0], want, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
