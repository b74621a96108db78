/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibfs-run.so: completion channels' rings (ibfs/event_ring.h) and completion
 * queues' requests for events (ibfs/uverbs_arms.h). A program that reads events
 * takes them from memory that it shares with the daemon, and sleeps there until
 * there is one. Whatever the ring can't tell is asked of the file, which always
 * gives the right answer, so each step here may fail, and then the program runs
 * as without it. It allocates and locks nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <ibfs/event_ring.h>
#include <ibfs/uverbs_arms.h>

#include "run/preload.h"
#include "run/preload_slot.h"

enum { ASK_SECONDS = 5, ARM_SPINS = 1000 };

static struct preload_slot channels[PRELOAD_FDS];

/* --- asking for an event --- */

/* The engine takes no time for a completion, unless it isn't running. */
static uint8_t settled(struct uverbs_arm *arm)
{
	uint8_t before = atomic_load(&arm->state), state = before;

	for (int i = 0; before & 1 && state == before && i < ARM_SPINS; i++)
		state = atomic_load(&arm->state);
	return before & 1 && state == before ? 0 : state;
}

bool preload_arm(struct uverbs_arm *arms, uint32_t handle, bool solicited)
{
	uint8_t none = 0, wanted = solicited ? UVERBS_ARM_SOLICITED : UVERBS_ARM_NEXT;
	struct uverbs_arm *arm = &arms[handle];

	if (handle >= UVERBS_ARMS || !(atomic_load(&arm->state) & UVERBS_ARM_HERE))
		return false;
	if (!solicited)
		atomic_store(&arm->wanted, wanted);
	else
		atomic_compare_exchange_strong(&arm->wanted, &none, wanted);
	atomic_thread_fence(memory_order_seq_cst);
	if ((settled(arm) & (UVERBS_ARM_HERE | UVERBS_ARM_MISSED)) == UVERBS_ARM_HERE)
		return true;
	/* Else by the command; unless the engine has taken it for a completion since. */
	return !atomic_compare_exchange_strong(&arm->wanted, &wanted, 0) && !wanted;
}

/* --- the channel --- */

void preload_event_close(int fd)
{
	if (fd >= 0 && fd < PRELOAD_FDS && atomic_load(&channels[fd].mark))
		preload_slot_forget(&channels[fd], EVENT_RING_SIZE);
}

void preload_event_opened(int fd, int uverbs)
{
	struct event_ring_place place;
	struct event_ring *ring;

	preload_event_close(fd);
	if (fd >= PRELOAD_FDS || syscall(SYS_ioctl, fd, IBFS_EVENT_RING, &place) ||
	    place.size != sizeof(struct event_ring))
		return;
	ring = mmap(NULL, EVENT_RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, uverbs,
		    (off_t)place.offset);
	if (ring == MAP_FAILED)
		return;
	if (ring->magic != EVENT_RING_MAGIC) {
		munmap(ring, EVENT_RING_SIZE);
		return;
	}
	ring = preload_slot_set(&channels[fd], fd, ring, EVENT_RING_SIZE);
	if (ring)
		atomic_store(&ring->mapped, 1);
}

static bool filled(struct event_ring *ring)
{
	return atomic_load(&ring->tail) != atomic_load(&ring->head);
}

static bool ask_file(struct event_ring *ring)
{
	return atomic_load(&ring->more) || atomic_load(&ring->dead);
}

/*
 * Sleep until the daemon says that there is something, or that the file must be
 * asked; a daemon without a keeper that was killed says nothing. Returns an errno:
 * EINTR as read() has it, since this system call is taken up again where a read()
 * would be, in spite of its time limit.
 */
static int sleep_on(struct event_ring *ring)
{
	struct futex_waitv futex = {
		.val = 1, .uaddr = (uintptr_t)&ring->waiting, .flags = FUTEX_32,
	};
	struct timespec until;
	int type, err;
	long ret;

	atomic_store(&ring->waiting, 1);
	if (filled(ring) || ask_file(ring))
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ASK_SECONDS;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	ret = syscall(SYS_futex_waitv, &futex, 1, 0, &until, CLOCK_MONOTONIC);
	err = ret < 0 ? errno : 0;
	pthread_setcanceltype(type, &type);
	return err == EAGAIN ? 0 : err;
}

/* Can an event be put there? The kernel says it, by writing as many bytes of no matter. */
static bool writable(int fd, void *buf)
{
	_Static_assert(sizeof(struct f_owner_ex) == sizeof(struct ib_uverbs_comp_event_desc), "");
	return !syscall(SYS_fcntl, fd, F_GETOWN_EX, buf);
}

static bool take(struct event_ring *ring, int fd, void *buf)
{
	struct ib_uverbs_comp_event_desc desc;
	uint64_t event;

	if (!filled(ring) || !writable(fd, buf) ||
	    !event_ring_take(ring, atomic_load(&ring->tail), &event))
		return false;
	desc.cq_handle = event;
	memcpy(buf, &desc, sizeof(desc));
	return true;
}

/* Can the file be waited for here? Else it says itself what there is to say. */
static bool may_sleep(struct event_ring *ring, int fd)
{
	long flags = syscall(SYS_fcntl, fd, F_GETFL);

	return flags >= 0 && !(flags & O_NONBLOCK) && !filled(ring) && !ask_file(ring);
}

static bool quiet(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return !syscall(SYS_poll, &pfd, 1, 0);
}

bool preload_event_read(int fd, void *buf, size_t size, ssize_t *n)
{
	struct preload_slot *slot = fd >= 0 && fd < PRELOAD_FDS ? &channels[fd] : NULL;
	struct event_ring *ring;
	int saved = errno, err;

	if (!slot || !atomic_load_explicit(&slot->mark, memory_order_acquire) ||
	    size < sizeof(struct ib_uverbs_comp_event_desc))
		return false;
	pthread_testcancel();
	for (;;) {
		ring = preload_slot_live(slot, fd, EVENT_RING_SIZE);
		if (ring && take(ring, fd, buf)) {
			*n = sizeof(struct ib_uverbs_comp_event_desc);
			break;
		}
		if (!ring || !may_sleep(ring, fd))
			return false;
		err = sleep_on(ring);
		if (err == EINTR) {
			saved = err;
			*n = -1;
			break;
		}
		if (err && (err != ETIMEDOUT || !quiet(fd)))
			return false;
	}
	errno = saved;
	return true;
}
