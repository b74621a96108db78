/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibfs-run.so: umad files' receive rings (ibfs/umad_ring.h). A program that
 * opens a umad file of the tree gets its MADs from memory that it shares with
 * the daemon: read() and poll() are no system call while there is one. Whatever
 * the ring can't tell is asked of the file, which always gives the right answer,
 * so each step here may fail, and then the program runs as without it.
 *
 * It runs inside any program, with threads, signal handlers and vfork(): it
 * allocates and locks nothing. How descriptors have memory: run/preload_slot.h.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <ibfs/umad_ring.h>

#include "run/preload.h"
#include "run/preload_slot.h"

enum { ASK_MS = 5000 };

static struct preload_slot slots[PRELOAD_FDS];
static atomic_bool used;		/* any of them, ever */
static _Atomic pthread_t readers[PRELOAD_FDS];	/* who polled it last */

/* The C library's, under the names that are ours here. */
static struct calls {
	atomic_bool found;
	ssize_t (*read)(int fd, void *buf, size_t size);
	int (*poll)(struct pollfd *fds, nfds_t n, int timeout);
	int (*close)(int fd);
	int (*open)(const char *path, int flags, ...);
	int (*openat)(int dir, const char *path, int flags, ...);
} calls;

/*
 * Looked for at the first use, since other libraries' constructors may come
 * before ours. Any thread finds the same.
 */
static const struct calls *next(void)
{
	if (atomic_load_explicit(&calls.found, memory_order_acquire))
		return &calls;
	calls.read = dlsym(RTLD_NEXT, "read");
	calls.poll = dlsym(RTLD_NEXT, "poll");
	calls.close = dlsym(RTLD_NEXT, "close");
	calls.open = dlsym(RTLD_NEXT, "open");
	calls.openat = dlsym(RTLD_NEXT, "openat");
	atomic_store_explicit(&calls.found, true, memory_order_release);
	return &calls;
}

/* --- rings of descriptors --- */

static void forget(int fd)
{
	if (atomic_load_explicit(&slots[fd].mark, memory_order_relaxed))
		preload_slot_forget(&slots[fd], sizeof(struct umad_ring));
}

static struct preload_slot *slot_of(int fd)
{
	struct preload_slot *slot = fd >= 0 && fd < PRELOAD_FDS ? &slots[fd] : NULL;

	return slot && atomic_load_explicit(&slot->mark, memory_order_acquire) ? slot : NULL;
}

/* The descriptor's ring if it has one and still is the file that it was. */
static struct umad_ring *live_ring(struct preload_slot *slot, int fd)
{
	struct umad_ring *ring = atomic_load(&slot->mem);

	if (!atomic_load(&ring->dead))
		return preload_slot_live(slot, fd, sizeof(*ring));
	preload_slot_forget(slot, sizeof(*ring));
	return NULL;
}

struct umad_ring *preload_ring(int fd)
{
	struct preload_slot *slot = slot_of(fd);

	return slot ? atomic_load(&slot->mem) : NULL;
}

bool preload_ring_reads(int fd)
{
	return pthread_equal(atomic_load_explicit(&readers[fd], memory_order_relaxed),
			     pthread_self());
}

struct umad_ring *preload_ring_live(int fd)
{
	struct preload_slot *slot = slot_of(fd);

	return slot ? live_ring(slot, fd) : NULL;
}

/* --- open --- */

static struct umad_ring *map_file(const struct umad_ring_file *file)
{
	void *mem = MAP_FAILED;
	char path[48];
	int fd;

	if (file->size != sizeof(struct umad_ring))
		return NULL;
	snprintf(path, sizeof(path), "/dev/infiniband/ev/%u", file->name);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (preload_in_tree(fd))
		mem = mmap(NULL, file->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	syscall(SYS_close, fd);
	if (mem == MAP_FAILED)
		return NULL;
	if (((struct umad_ring *)mem)->magic == UMAD_RING_MAGIC)
		return mem;
	munmap(mem, file->size);
	return NULL;
}

static void attach(int fd)
{
	struct preload_slot *slot = &slots[fd];
	struct umad_ring_file file;
	struct umad_ring *ring;

	if (!preload_in_tree(fd) || syscall(SYS_ioctl, fd, IBFS_UMAD_RING, &file))
		return;
	ring = map_file(&file);
	if (ring)
		ring = preload_slot_set(slot, fd, ring, sizeof(*ring));
	if (!ring)
		return;
	atomic_store(&ring->mapped, 1);
	atomic_store(&used, true);
}

/* A new descriptor: it has no ring that an older file of its number had. */
static int opened(int fd, const char *path, int flags)
{
	const char *slash, *name;
	int saved = errno;

	if (fd < 0 || fd >= PRELOAD_FDS)
		return fd;
	slash = strrchr(path, '/');
	name = slash ? slash + 1 : path;
	forget(fd);
	preload_event_close(fd);
	if (!strncmp(name, "umad", 4) && (flags & O_ACCMODE) == O_RDWR &&
	    !(flags & O_PATH))
		attach(fd);
	errno = saved;
	return fd;
}

/* The argument that open() has only when it may make a file. */
static mode_t open_mode(int flags, va_list args)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = open_mode(flags, args);
	va_end(args);
	return opened(next()->open(path, flags, mode), path, flags);
}

/* O_LARGEFILE is nothing on 64-bit machines. */
int open64(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = open_mode(flags, args);
	va_end(args);
	return opened(next()->open(path, flags, mode), path, flags);
}

int openat(int dir, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = open_mode(flags, args);
	va_end(args);
	return opened(next()->openat(dir, path, flags, mode), path, flags);
}

int openat64(int dir, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = open_mode(flags, args);
	va_end(args);
	return opened(next()->openat(dir, path, flags, mode), path, flags);
}

int close(int fd)
{
	struct preload_slot *slot = slot_of(fd);

	if (slot)
		forget(fd);
	preload_uverbs_close(fd);
	preload_event_close(fd);
	return next()->close(fd);
}

/* --- read and poll --- */

static bool same_page(uintptr_t a, uintptr_t b)
{
	const uintptr_t page = 4096;	/* or a multiple of it */

	return a / page == b / page;
}

/*
 * Can a MAD be put there? The kernel says it, by writing eight bytes of no
 * matter to each of the two pages that a MAD can be in.
 */
static bool writable(int fd, void *buf, size_t size)
{
	uintptr_t first = (uintptr_t)buf, last;
	int saved = errno;
	bool ok;

	if (size < sizeof(struct f_owner_ex))
		return false;
	if (size > UMAD_RING_DATA)
		size = UMAD_RING_DATA;
	last = first + size - sizeof(struct f_owner_ex);
	ok = !syscall(SYS_fcntl, fd, F_GETOWN_EX, first) &&
	     (same_page(first, last + sizeof(struct f_owner_ex) - 1) ||
	      !syscall(SYS_fcntl, fd, F_GETOWN_EX, last));
	errno = saved;
	return ok;
}

ssize_t read(int fd, void *buf, size_t size)
{
	struct preload_slot *slot = slot_of(fd);
	struct umad_ring *ring;
	size_t len;
	ssize_t n;

	if (preload_event_read(fd, buf, size, &n))
		return n;
	if (slot && umad_ring_unread(atomic_load(&slot->mem))) {
		pthread_testcancel();
		ring = writable(fd, buf, size) ? live_ring(slot, fd) : NULL;
		len = ring ? umad_ring_take(ring, atomic_load(&ring->tail), buf, size) : 0;
		if (len)
			return (ssize_t)len;
	}
	return next()->read(fd, buf, size);
}

/*
 * Sleep until the daemon says that there is something, or that the file must be
 * asked. Returns an errno; ETIMEDOUT and EINTR mean what they do for poll(): with
 * a time limit, a futex too is not taken up again after a signal's handler.
 */
static int sleep_on(struct umad_ring *ring, const struct timespec *until)
{
	int type, ret;

	atomic_store(&ring->waiting, 1);
	if (umad_ring_unread(ring) || atomic_load(&ring->more) || atomic_load(&ring->dead))
		return 0;
	/* poll() is a cancellation point, and OpenSM ends its receiver by that. */
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	ret = (int)syscall(SYS_futex, &ring->waiting, FUTEX_WAIT_BITSET, 1, until, NULL,
			   FUTEX_BITSET_MATCH_ANY);
	ret = ret ? errno : 0;
	pthread_setcanceltype(type, &type);
	return ret == EAGAIN ? 0 : ret;
}

static struct timespec later(const struct timespec *now, int ms)
{
	struct timespec ts = {
		.tv_sec = now->tv_sec + ms / 1000,
		.tv_nsec = now->tv_nsec + ms % 1000 * 1000000L,
	};

	if (ts.tv_nsec >= 1000000000L) {
		ts.tv_nsec -= 1000000000L;
		ts.tv_sec++;
	}
	return ts;
}

static int passed_ms(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int)((now.tv_sec - from->tv_sec) * 1000 + (now.tv_nsec - from->tv_nsec) / 1000000);
}

/*
 * Sleep, at most ms (-1: no limit), until there may be something. A daemon without
 * a keeper that was killed wakes nobody: after ASK_MS it is time to ask the file.
 * *ms becomes what is left. 0, or EINTR.
 */
static int wait_for_mad(struct umad_ring *ring, int *ms)
{
	int part = *ms < 0 || *ms > ASK_MS ? ASK_MS : *ms, err;
	struct timespec now, until;

	clock_gettime(CLOCK_MONOTONIC, &now);
	until = later(&now, part);
	err = sleep_on(ring, &until);
	if (*ms >= 0) {
		part = passed_ms(&now);
		*ms = part < *ms ? *ms - part : 0;
	}
	return err == ETIMEDOUT ? 0 : err;
}

/* One umad file's poll(): the ring's answer, the file's when the ring can't tell. */
static int ring_poll(struct preload_slot *slot, struct pollfd *pfd, int timeout)
{
	struct umad_ring *ring;
	int ret;

	atomic_store_explicit(&readers[pfd->fd], pthread_self(), memory_order_relaxed);
	for (;;) {
		ring = atomic_load(&slot->mem);
		if (umad_ring_unread(ring) && live_ring(slot, pfd->fd)) {
			pfd->revents = pfd->events & (POLLIN | POLLRDNORM);
			return 1;
		}
		if (!timeout || !atomic_load(&slot->mark) || atomic_load(&ring->dead) ||
		    atomic_load(&ring->more))
			break;
		/* Who left MADs while there were answers to read needn't have rung. */
		if (umad_ring_unsent(ring) && bell_ring(&ring->bell) && umad_ring_unread(ring))
			continue;
		ret = wait_for_mad(ring, &timeout);
		if (ret) {
			errno = ret;
			return -1;
		}
		ret = umad_ring_unread(ring) ? 0 : next()->poll(pfd, 1, 0);
		if (ret)
			return ret;
	}
	return next()->poll(pfd, 1, timeout);
}

/* Can the word be written? The kernel adds nothing to it, and wakes nobody. */
static bool can_write(uintptr_t word)
{
	unsigned int none = 0;

	return syscall(SYS_futex, &none, FUTEX_WAKE_OP_PRIVATE, 0, 0, word,
		       FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, 0)) >= 0;
}

/* Is a pollfd there? Most are in their caller's frame, which is next to this one. */
static bool is_pollfd(struct pollfd *pfd)
{
	uintptr_t first = (uintptr_t)pfd, last = first + sizeof(*pfd) - sizeof(pfd->fd);
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	int saved = errno;
	bool ok;

	if (same_page(first, frame) && same_page(last + sizeof(pfd->fd) - 1, frame))
		return true;
	ok = can_write(first) && (same_page(first, last) || can_write(last));
	errno = saved;
	return ok;
}

/* poll() by another name here: glibc's declaration of it claims that fds is only written. */
int preload_poll(struct pollfd *fds, nfds_t n, int timeout) __asm__("poll");
int preload_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	struct preload_slot *slot = NULL;

	if (n == 1 && atomic_load_explicit(&used, memory_order_relaxed) && is_pollfd(fds))
		slot = slot_of(fds->fd);
	/* A umad file can always be written: a poll for that too doesn't wait. */
	if (!slot || !(fds->events & (POLLIN | POLLRDNORM)) ||
	    fds->events & (POLLOUT | POLLWRNORM))
		return next()->poll(fds, n, timeout);
	pthread_testcancel();
	return ring_poll(slot, fds, timeout);
}
