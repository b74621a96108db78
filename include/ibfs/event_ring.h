/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring of a completion channel: in the memory of its uverbs file, a page
 * from which libibfs-run.so takes events without a system call. The daemon puts
 * in what read() would give, in order; who takes one, client or daemon, reads it
 * and then moves head from where it was, and has it only if that works. So every
 * reader of the channel gets each event once.
 *
 * Nothing that stands in it is to be trusted: an index is good for as long as
 * it is in a variable, and the client that spoils it harms itself.
 *
 * How to get one: the ioctl on the channel's file says where in the uverbs file
 * to map it; then set `mapped`.
 */
#ifndef IBFS_EVENT_RING_H
#define IBFS_EVENT_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define EVENT_RING_MAGIC	0x31766569U	/* changes with the layout */
#define EVENT_RING_SLOTS	256U		/* a power of 2 */
#define EVENT_RING_SIZE		4096U		/* in the file */

/* head and tail count for ever, from a value that no other ring began with. */
struct event_ring {
	uint32_t magic;
	atomic_uint mapped;		/* the client's: it takes events from here */
	atomic_uint dead;		/* the daemon's: ask the file instead, for ever */
	atomic_uint more;		/* the daemon's: events beyond these wait in the file */
	atomic_uint waiting;		/* a futex: 1 while a client sleeps until there is one */
	_Alignas(64) atomic_ullong head;	/* the next one to take */
	_Alignas(64) atomic_ullong tail;	/* the next one to put */
	_Alignas(64) atomic_ullong events[EVENT_RING_SLOTS];	/* struct ib_uverbs_comp_event_desc */
};
_Static_assert(sizeof(struct event_ring) <= EVENT_RING_SIZE, "its place");

struct event_ring_place {
	uint64_t offset;
	uint32_t size;			/* sizeof(struct event_ring) of the daemon */
	uint32_t reserved;
};
#define IBFS_EVENT_RING		_IOR(0xb5, 2, struct event_ring_place)

/*
 * Take the first event, where tail is what may be taken. False: there is none, or
 * others were faster time and again.
 */
static inline bool event_ring_take(struct event_ring *ring, uint64_t tail, uint64_t *event)
{
	unsigned long long head = atomic_load(&ring->head);

	for (unsigned int tries = 0; tries < EVENT_RING_SLOTS; tries++) {
		if (tail - head - 1 >= EVENT_RING_SLOTS)
			return false;
		*event = atomic_load(&ring->events[head % EVENT_RING_SLOTS]);
		if (atomic_compare_exchange_strong(&ring->head, &head, head + 1))
			return true;
	}
	return false;
}

#endif
