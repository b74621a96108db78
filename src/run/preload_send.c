/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibfs-run.so: MADs are left in a umad file's ring (ibfs/umad_ring.h) instead
 * of written to the file. Only those whose write() can't fail, as the daemon
 * says in the ring, and while the ring has room: the file takes all others, after
 * what was left before them. Nobody waits here for another thread, who could be
 * the one that a signal's handler interrupted, or dead: the file has no lock.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <ibfs/umad_ring.h>

#include "run/preload.h"

enum { MAD_MIN = 36, MAD_MAX = 256, TRIES = 64 };

/* Directed-route SMPs, IBA 14.2.1.2. */
enum {
	CLASS = 1, STATUS = 4, HOP_PTR = 6, HOP_CNT = 7, DR_SLID = 32, DR_DLID = 34,
	INITIAL_PATH = 128, CLASS_DR = 0x81, DIRECTION = 0x80, HOPS_MAX = 63,
};

/* A copy of what is written, which nobody changes meanwhile. */
struct send {
	struct ib_user_mad_hdr hdr;
	const uint8_t *mad;
	size_t len, mad_len;
	uint8_t data[UMAD_RING_SEND_DATA];
};

/* The kernel reads these 32 bytes, for the sake of no timer. */
static bool can_read(uintptr_t at)
{
	return syscall(SYS_timerfd_settime, -1, 0, at, NULL) == -1 &&
	       (errno == EBADF || errno == EINVAL);
}

/* A MAD can be in two pages. */
static bool readable(const void *buf, size_t size)
{
	const uintptr_t page = 4096;	/* or a multiple of it */
	uintptr_t first = (uintptr_t)buf, last = first + size - sizeof(struct itimerspec);

	return can_read(first) &&
	       (first / page == (last + sizeof(struct itimerspec) - 1) / page || can_read(last));
}

static bool copy(struct umad_ring *ring, struct send *send, const void *buf, size_t size)
{
	size_t hdr_size = atomic_load(&ring->hdr_size);

	if (hdr_size > sizeof(send->hdr) || size < hdr_size + MAD_MIN || size > hdr_size + MAD_MAX ||
	    !readable(buf, size))
		return false;
	memcpy(send->data, buf, size);
	memset(&send->hdr, 0, sizeof(send->hdr));
	memcpy(&send->hdr, send->data, hdr_size);
	send->mad = send->data + hdr_size;
	send->mad_len = size - hdr_size;
	send->len = size;
	return true;
}

static bool permissive(const uint8_t *lid)
{
	return lid[0] == 0xff && lid[1] == 0xff;
}

/* A route that begins: to the port itself, or out of it. */
static bool route_begins(const struct send *send, unsigned int exit_port)
{
	const uint8_t *mad = send->mad;

	if (send->mad_len != MAD_MAX || mad[STATUS] & DIRECTION || mad[HOP_PTR] ||
	    !permissive(mad + DR_SLID))
		return false;
	if (!mad[HOP_CNT])
		return permissive(mad + DR_DLID);
	return mad[HOP_CNT] <= HOPS_MAX && exit_port && mad[INITIAL_PATH + 1] == exit_port;
}

/* Can't a write() of it fail? */
static bool sure(struct umad_ring *ring, const struct send *send)
{
	const struct ib_user_mad_hdr *hdr = &send->hdr;
	uint8_t class = send->mad[CLASS];
	unsigned int qpn = class == 0x04;

	if (hdr->id >= 32 || !(atomic_load(&ring->plain[qpn]) >> hdr->id & 1) || hdr->grh_present ||
	    hdr->pkey_index || !umad_ring_class(send->mad) || umad_ring_answers(send->mad))
		return false;
	return class != CLASS_DR || route_begins(send, atomic_load(&ring->exit_port));
}

static bool lock(struct umad_ring *ring)
{
	unsigned int none;

	for (unsigned int tries = 0; tries < TRIES; tries++) {
		none = 0;
		if (atomic_compare_exchange_strong(&ring->lock, &none, 1))
			return true;
	}
	return false;
}

/* Who holds the lock: room for it, and no other request like it on its way. */
static bool leave(struct umad_ring *ring, const struct send *send)
{
	unsigned long long sent = atomic_load(&ring->sent);
	atomic_uint *flight = umad_ring_flight(ring, send->hdr.id, send->mad);
	struct umad_ring_send *slot = &ring->out[sent % UMAD_RING_SENDS];

	if (sent - atomic_load(&ring->taken) >= UMAD_RING_SENDS || atomic_load(flight))
		return false;
	memcpy(slot->data, send->data, send->len);
	slot->len = send->len;
	if (send->hdr.timeout_ms)
		atomic_fetch_add(flight, 1);
	atomic_store(&ring->sent, sent + 1);
	return true;
}

static void call_daemon(struct umad_ring *ring, int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	/* This thread comes for the answers, and rings then. */
	if (atomic_load(&ring->patient) && umad_ring_unread(ring) && preload_ring_reads(fd))
		return;
	if (!bell_ring(&ring->bell))
		syscall(SYS_poll, &pfd, 1, 0);
}

bool preload_send(int fd, const void *buf, size_t size)
{
	struct umad_ring *ring = preload_ring(fd);
	int saved = errno;
	struct send send;
	bool left = false;

	if (!ring)
		return false;
	/* The daemon that is on the program's processor answers much faster; a hint. */
	atomic_store_explicit(&ring->cpu, (unsigned int)(sched_getcpu() + 1), memory_order_relaxed);
	if (!bell_heard(&ring->bell))
		return false;
	pthread_testcancel();
	if (copy(ring, &send, buf, size) && sure(ring, &send) && preload_ring_live(fd) == ring &&
	    lock(ring)) {
		left = leave(ring, &send);
		atomic_store(&ring->lock, 0);
		if (left)
			call_daemon(ring, fd);
	}
	errno = saved;
	return left;
}
