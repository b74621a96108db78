/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event loop's lock, ibfs/loop.h: a futex of two bits. Its owner is no
 * thread but a role: who is stuck in a job of fs/quick.h has another thread go
 * on, with the lock. Only the loop's thread ever waits for it. futex(2), and
 * ev_set_loop_release_cb() in ev(3).
 */
#include <ev.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ibfs/ibfs.h>
#include <ibfs/loop.h>

enum { HELD = 1, WANTED = 2 };	/* wanted: by the loop's thread */

struct loop_lock {
	struct ibfs *ibfs;
	void (*released)(struct ibfs *ibfs);
	atomic_uint word;
	/* By the holder: */
	bool lent;		/* by loop_try() */
	struct ev_async wake;
	bool changed;		/* what the loop waits for */
	int idles;		/* idle watchers that were started, less those stopped */
};

static void unlock(struct loop_lock *lock)
{
	if (atomic_fetch_and(&lock->word, ~(unsigned int)HELD) & WANTED)
		syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void release_cb(struct ev_loop *loop)
{
	struct loop_lock *lock = ev_userdata(loop);

	unlock(lock);
	lock->released(lock->ibfs);
}

static void acquire_cb(struct ev_loop *loop)
{
	struct loop_lock *lock = ev_userdata(loop);
	unsigned int word = atomic_load(&lock->word);

	for (;;) {
		if (!(word & HELD)) {
			if (!atomic_compare_exchange_strong(&lock->word, &word, HELD))
				continue;
			lock->lent = false;
			return;
		} else if (word & WANTED ||
			   atomic_compare_exchange_strong(&lock->word, &word, HELD | WANTED)) {
			syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, HELD | WANTED, NULL,
				NULL, 0);
			word = atomic_load(&lock->word);
		}
	}
}

static void wake_cb(struct ev_loop *loop, struct ev_async *w, int revents)
{
	(void)loop;
	(void)w;
	(void)revents;
}

struct loop_lock *loop_lock_new(struct ibfs *ibfs, void (*released)(struct ibfs *ibfs))
{
	struct loop_lock *lock = calloc(1, sizeof(*lock));

	if (!lock)
		return NULL;
	lock->ibfs = ibfs;
	lock->released = released;
	lock->word = HELD;
	ev_async_init(&lock->wake, wake_cb);
	ev_async_start(ibfs->loop, &lock->wake);
	ev_unref(ibfs->loop);		/* it doesn't keep a loop going */
	ev_set_userdata(ibfs->loop, lock);
	ev_set_loop_release_cb(ibfs->loop, release_cb, acquire_cb);
	return lock;
}

void loop_lock_free(struct loop_lock *lock)
{
	struct ev_loop *loop;

	if (!lock)
		return;
	loop = lock->ibfs->loop;
	ev_set_loop_release_cb(loop, NULL, NULL);
	ev_set_userdata(loop, NULL);
	ev_ref(loop);
	ev_async_stop(loop, &lock->wake);
	free(lock);
}

bool loop_try(struct loop_lock *lock)
{
	unsigned int word = 0;

	if (!atomic_compare_exchange_strong(&lock->word, &word, HELD))
		return false;
	ev_now_update(lock->ibfs->loop);
	lock->lent = true;
	lock->changed = false;
	lock->idles = 0;
	return true;
}

bool loop_lent(const struct loop_lock *lock)
{
	return lock && lock->lent;
}

void loop_release(struct loop_lock *lock)
{
	struct ev_loop *loop = lock->ibfs->loop;

	if (lock->changed || lock->idles > 0 || ev_pending_count(loop))
		ev_async_send(loop, &lock->wake);
	unlock(lock);
}

void loop_end(struct ibfs *ibfs)
{
	ibfs->ended = true;
}

/* --- what changes the loop: calls to NAME come to __wrap_NAME. ld(1), --wrap --- */

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
void __real_ev_timer_start(struct ev_loop *loop, ev_timer *w);
void __real_ev_timer_again(struct ev_loop *loop, ev_timer *w);
void __real_ev_io_start(struct ev_loop *loop, ev_io *w);
void __real_ev_idle_start(struct ev_loop *loop, ev_idle *w);
void __real_ev_idle_stop(struct ev_loop *loop, ev_idle *w);
void __wrap_ev_timer_start(struct ev_loop *loop, ev_timer *w);
void __wrap_ev_timer_again(struct ev_loop *loop, ev_timer *w);
void __wrap_ev_io_start(struct ev_loop *loop, ev_io *w);
void __wrap_ev_idle_start(struct ev_loop *loop, ev_idle *w);
void __wrap_ev_idle_stop(struct ev_loop *loop, ev_idle *w);

static void note(struct ev_loop *loop, bool changed, int idles)
{
	struct loop_lock *lock = ev_userdata(loop);

	if (!lock)
		return;
	lock->changed |= changed;
	lock->idles += idles;
}

void __wrap_ev_timer_start(struct ev_loop *loop, ev_timer *w)
{
	note(loop, true, 0);
	__real_ev_timer_start(loop, w);
}

void __wrap_ev_timer_again(struct ev_loop *loop, ev_timer *w)
{
	note(loop, true, 0);
	__real_ev_timer_again(loop, w);
}

void __wrap_ev_io_start(struct ev_loop *loop, ev_io *w)
{
	note(loop, true, 0);
	__real_ev_io_start(loop, w);
}

void __wrap_ev_idle_start(struct ev_loop *loop, ev_idle *w)
{
	note(loop, false, !ev_is_active(w));
	__real_ev_idle_start(loop, w);
}

void __wrap_ev_idle_stop(struct ev_loop *loop, ev_idle *w)
{
	note(loop, false, -!!ev_is_active(w));
	__real_ev_idle_stop(loop, w);
}

/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
