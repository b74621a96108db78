/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rings of an open umad file: memory that the daemon shares with the client,
 * in which libibfs-run.so finds MADs, and leaves them, without a request to the
 * file.
 *
 * Receiving: the daemon puts in what read() would give, in order; who takes one,
 * client or daemon, copies it out and then moves head from where it was, and has
 * it only if that works. So every reader of the file gets each MAD once.
 *
 * Sending: while its bell is heard the client may leave a MAD whose write() can't
 * fail, under `lock`, and then rings. The daemon takes what was left before it
 * serves anything that clients ask of a file; if the bell isn't heard any more,
 * such a request (poll) makes it look. Whether a write() can fail is told by what
 * the daemon keeps here: the agents that take plain MADs, and the TIDs in flight.
 *
 * Nothing that stands in it is to be trusted: an index is good for as long as
 * it is in a variable, and the client that spoils it harms itself.
 *
 * How to get one: the ioctl on the umad file, then open and map the file of
 * that name in dev/infiniband/ev (once; its owner is the umad file's opener),
 * then set `mapped`.
 */
#ifndef IBFS_UMAD_RING_H
#define IBFS_UMAD_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#include <ibfs/bell_words.h>

#define UMAD_RING_MAGIC		0x69627234U	/* changes with the layout */
#define UMAD_RING_SLOTS		256U		/* a power of 2 */
#define UMAD_RING_DATA		376U		/* header and a MAD of one segment */
#define UMAD_RING_SENDS		64U		/* a power of 2 */
#define UMAD_RING_SEND_DATA	320U
#define UMAD_RING_FLIGHTS	1024U

struct umad_ring_slot {
	uint64_t len;
	uint8_t data[UMAD_RING_DATA];
};

/* head and tail count for ever, from a value that no other ring began with. */
struct umad_ring {
	uint32_t magic;
	atomic_uint mapped;		/* the client's: it takes MADs from here */
	atomic_uint dead;		/* the daemon's: ask the file instead, for ever */
	atomic_uint more;		/* the daemon's: MADs beyond these wait in the file */
	atomic_uint waiting;		/* a futex: 1 while a client sleeps until there is a MAD */
	atomic_uint cpu;		/* the client's: 1 + the processor that it last wrote from */
	_Alignas(64) atomic_ullong head;	/* the next one to take */
	_Alignas(64) atomic_ullong tail;	/* the next one to put */
	_Alignas(64) struct umad_ring_slot slots[UMAD_RING_SLOTS];

	/* sending; the daemon's */
	_Alignas(64) atomic_uint hdr_size;	/* of the file's layout */
	atomic_uint plain[2];		/* by QP: bit n: agent n is there, and has no RMPP */
	atomic_uint exit_port;		/* the only one that directed routes begin with; 0: ask */
	/*
	 * Nobody need ring while there are answers to read: who has read them all
	 * does, and the daemon looks now and then.
	 */
	atomic_uint patient;
	_Alignas(64) struct bell_words bell;
	_Alignas(64) atomic_ullong taken;	/* the next one to take */
	/* the client's */
	_Alignas(64) atomic_ullong sent;	/* the next one to leave */
	atomic_uint lock;
	_Alignas(64) struct umad_ring_send {
		uint64_t len;
		uint8_t data[UMAD_RING_SEND_DATA];
	} out[UMAD_RING_SENDS];
	/* Requests whose end plain agents wait for, by umad_ring_flight(); both count. */
	atomic_uint flights[UMAD_RING_FLIGHTS];
};

/* name: of the file in ev, decimal. size: sizeof(struct umad_ring) of the daemon. */
struct umad_ring_file {
	uint32_t name, size;
};
#define IBFS_UMAD_RING	_IOR(0xb5, 1, struct umad_ring_file)

static inline struct umad_ring_slot *umad_ring_slot(struct umad_ring *ring, uint64_t index)
{
	return &ring->slots[index % UMAD_RING_SLOTS];
}

/* Of these classes a MAD may be left, and requests are counted: SMPs and PerfMgt, no RMPP. */
static inline bool umad_ring_class(const void *mad)
{
	uint8_t mgmt_class = ((const uint8_t *)mad)[1];

	return mgmt_class == 0x01 || mgmt_class == 0x81 || mgmt_class == 0x04;
}

/* A response or a TrapRepress: it ends a request, and nothing ends it. */
static inline bool umad_ring_answers(const void *mad)
{
	uint8_t method = ((const uint8_t *)mad)[3];

	return method & 0x80 || method == 0x07;
}

/* Where an agent's requests are counted that have the MAD's TID, of which the low half is the client's. */
static inline atomic_uint *umad_ring_flight(struct umad_ring *ring, unsigned int agent,
					    const void *mad)
{
	const uint8_t *tid = (const uint8_t *)mad + 12;

	return &ring->flights[(((unsigned int)tid[2] << 8 | tid[3]) + agent * 97) % UMAD_RING_FLIGHTS];
}

/* Is there a MAD to take? */
static inline bool umad_ring_unread(const struct umad_ring *ring)
{
	return atomic_load(&ring->tail) != atomic_load(&ring->head);
}

/* Is there one that was left, and not taken? */
static inline bool umad_ring_unsent(const struct umad_ring *ring)
{
	return atomic_load(&ring->sent) != atomic_load(&ring->taken);
}

/*
 * Take the first MAD, where tail is what may be taken: its bytes, or 0: there
 * is none, it is longer than size, or others were faster time and again.
 */
static inline size_t umad_ring_take(struct umad_ring *ring, uint64_t tail, void *buf, size_t size)
{
	unsigned long long head = atomic_load_explicit(&ring->head, memory_order_acquire);

	for (unsigned int tries = 0; tries < UMAD_RING_SLOTS; tries++) {
		const struct umad_ring_slot *slot = umad_ring_slot(ring, head);
		size_t len;

		if (tail - head - 1 >= UMAD_RING_SLOTS)
			return 0;
		len = *(const volatile uint64_t *)&slot->len;
		if (len <= UMAD_RING_DATA && len <= size)
			memcpy(buf, slot->data, len);
		else
			len = 0;
		atomic_thread_fence(memory_order_acquire);
		if (!len && atomic_load(&ring->head) == head)
			return 0;
		if (len && atomic_compare_exchange_strong(&ring->head, &head, head + 1))
			return len;
		head = atomic_load_explicit(&ring->head, memory_order_acquire);
	}
	return 0;
}

#endif
