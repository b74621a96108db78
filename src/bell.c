/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bells, ibfs/bell.h. A thread on each processor waits for its word of every
 * bell. What was rung is a set of slots; who finds the loop's lock free takes
 * the set and serves it, and who doesn't leaves it there: everybody who lets go
 * of the lock looks at the set afterwards, so nobody waits.
 *
 * Slots, which the threads read, change under the loop's lock and `lock` both.
 * The words of a bell are written under `lock` only, so that they can go.
 */
#include <errno.h>
#include <ev.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#include <ibfs/bell.h>
#include <ibfs/conf.h>
#include <ibfs/ibfs.h>
#include <ibfs/loop.h>
#include <ibfs/priority.h>

#include "futex_ring.h"

#define STACK_SIZE	(1 << 20)	/* as the loop's work needs it */
#define LATELY		1.		/* seconds */
#define EMPTY_MAX	1000		/* rings in a row without work, until a bell isn't heard */
#define TASK_ROUNDS	16
#define LINGER		1.		/* seconds without a bell */

/* An id in the ring: a slot's number and generation, or these. */
#define ID_CALLED	1U
#define ID_AGAIN	3U
#define SLOT_BITS	8

_Static_assert(BELL_MAX < 64, "a set is a word; slot 0 is not used");

struct slot {
	struct bell *bell;		/* NULL: free */
	uint32_t generation;
	unsigned int empty;		/* rings in a row without work */
	ev_tstamp used;			/* when it last had some */
	atomic_uint rung_by;		/* the thread that heard it last */
	unsigned int again_by;		/* the one in whose set `again` it is, if in any */
};

struct bell_thread {
	struct bells *bells;
	pthread_t thread;
	bool started;
	unsigned int word;		/* of each bell, that it waits for */
	struct futex_ring ring;
	atomic_uint called;		/* 1: the slots have changed, or it ends */
	uint32_t waits[BELL_MAX + 1];	/* generation that it waits for; 0: none */
	_Atomic uint64_t again;		/* slots to look at again though nobody rings */
	bool delayed;			/* it does so soon */
	struct priority priority;
};

struct bells {
	struct ibfs *ibfs;
	cpu_set_t processors;
	bool failed, started;
	unsigned int added;		/* bells */
	struct ev_timer idle;		/* without one: then the threads end */
	atomic_bool exiting;
	pthread_mutex_t lock;
	struct slot slots[BELL_MAX + 1];
	_Atomic uint64_t rung;		/* slots */
	struct bell_thread threads[BELL_WORDS];
};

/* --- who serves --- */

static void silence(struct bells *bells, struct slot *slot);

static void call(struct bell_thread *thread)
{
	atomic_store(&thread->called, 1);
	syscall(SYS_futex, &thread->called, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* By the thread of the client's processor, which needn't be the one that serves it. */
static void look_again(struct bells *bells, struct slot *slot, bool again,
		       const struct bell_thread *self)
{
	uint64_t bit = 1ULL << (slot - bells->slots);
	struct bell_thread *by = &bells->threads[atomic_load(&slot->rung_by)];
	struct bell_thread *before = &bells->threads[slot->again_by];

	if (atomic_load(&before->again) & bit && (!again || before != by))
		atomic_fetch_and(&before->again, ~bit);
	if (!again || atomic_load(&by->again) & bit)
		return;
	slot->again_by = by->word;
	atomic_fetch_or(&by->again, bit);
	if (by != self)
		call(by);
}

static void serve_slot(struct bells *bells, struct slot *slot, const struct bell_thread *self)
{
	struct bell *bell = slot->bell;
	bool found;

	if (!bell)
		return;
	bell->again = false;
	found = bell->rung(bell);
	look_again(bells, slot, slot->bell == bell && bell->again, self);
	if (found) {
		slot->empty = 0;
		slot->used = ev_now(bells->ibfs->loop);
	} else if (slot->bell == bell && ++slot->empty > EMPTY_MAX) {
		silence(bells, slot);
	}
}

/* The loop's lock is held. */
static void serve_all(struct bells *bells, const struct bell_thread *self)
{
	struct ibfs *ibfs = bells->ibfs;
	uint64_t rung = atomic_exchange(&bells->rung, 0);

	if (ibfs->priority)
		priority_urge(ibfs->priority);
	for (; rung; rung &= rung - 1)
		serve_slot(bells, &bells->slots[__builtin_ctzll(rung)], self);
	for (int i = 0; i < TASK_ROUNDS; i++)
		if (!taskq_run(ibfs->tasks))
			break;
}

/*
 * Who leaves something to another, which has the lock, did so before that one
 * looks. self: NULL for the loop's thread.
 */
static void serve(struct bells *bells, const struct bell_thread *self)
{
	while (atomic_load(&bells->rung) && loop_try(bells->ibfs->lock)) {
		serve_all(bells, self);
		loop_release(bells->ibfs->lock);
	}
}

void bells_catch_up(struct ibfs *ibfs)
{
	if (ibfs->bells)
		serve(ibfs->bells, NULL);
}

/* --- the threads --- */

static uint64_t slot_id(unsigned int number, uint32_t generation)
{
	return (uint64_t)generation << SLOT_BITS | number << 1;
}

static void wait_for(struct bell_thread *self, unsigned int number)
{
	const struct slot *slot = &self->bells->slots[number];
	atomic_uint *word = &slot->bell->words->word[self->word];

	atomic_store(word, BELL_ARMED);
	futex_ring_wait(&self->ring, slot_id(number, slot->generation), word, BELL_ARMED);
	self->waits[number] = slot->generation;
}

/* The slots have changed: wait for the new ones, and no longer for the old. */
static void look_at_slots(struct bell_thread *self)
{
	struct bells *bells = self->bells;

	atomic_store(&self->called, 0);
	futex_ring_wait(&self->ring, ID_CALLED, &self->called, 0);
	pthread_mutex_lock(&bells->lock);
	for (unsigned int i = 1; i <= BELL_MAX; i++) {
		const struct slot *slot = &bells->slots[i];

		if (self->waits[i] && (!slot->bell || self->waits[i] != slot->generation)) {
			futex_ring_cancel(&self->ring, slot_id(i, self->waits[i]));
			self->waits[i] = 0;
		}
		if (slot->bell && !self->waits[i])
			wait_for(self, i);
	}
	pthread_mutex_unlock(&bells->lock);
}

/* It is armed before anybody looks for work, so that none is missed. */
static void on_ring(struct bell_thread *self, uint64_t id)
{
	struct bells *bells = self->bells;
	unsigned int number = (id & ((1U << SLOT_BITS) - 1)) >> 1;
	uint32_t generation = (uint32_t)(id >> SLOT_BITS);
	struct slot *slot = &bells->slots[number];

	if (self->waits[number] != generation)
		return;
	self->waits[number] = 0;
	pthread_mutex_lock(&bells->lock);
	if (slot->bell && slot->generation == generation) {
		wait_for(self, number);
		atomic_store(&slot->rung_by, self->word);
		atomic_fetch_or(&bells->rung, 1ULL << number);
	}
	pthread_mutex_unlock(&bells->lock);
}

static void on_end(struct bell_thread *self, uint64_t id)
{
	if (id == ID_CALLED) {
		look_at_slots(self);
	} else if (id == ID_AGAIN) {
		self->delayed = false;
		atomic_fetch_or(&self->bells->rung, atomic_load(&self->again));
	} else {
		on_ring(self, id);
	}
}

static void *thread_main(void *arg)
{
	struct bell_thread *self = arg;
	struct bells *bells = self->bells;
	uint64_t id;

	priority_init(&self->priority, bells->ibfs->conf->realtime);
	if (futex_ring_enable(&self->ring))
		return NULL;
	look_at_slots(self);
	while (!atomic_load(&bells->exiting)) {
		priority_urge(&self->priority);
		priority_check(&self->priority);
		futex_ring_sleep(&self->ring);
		while ((id = futex_ring_next(&self->ring)))
			on_end(self, id);
		serve(bells, self);
		if (!self->delayed && atomic_load(&self->again)) {
			self->delayed = true;
			futex_ring_delay(&self->ring, ID_AGAIN, BELL_AGAIN_NS);
		}
	}
	return NULL;
}

/* --- their life --- */

static void call_all(struct bells *bells)
{
	for (unsigned int i = 0; i < BELL_WORDS; i++)
		if (bells->threads[i].started)
			call(&bells->threads[i]);
}

/* Signals are the loop's, but for what an access to memory raises: the thread's own. */
static int create(struct bell_thread *thread, const cpu_set_t *processors)
{
	pthread_attr_t attr;
	sigset_t most, old;
	int err;

	sigfillset(&most);
	sigdelset(&most, SIGBUS);
	sigdelset(&most, SIGSEGV);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	pthread_attr_setaffinity_np(&attr, sizeof(*processors), processors);
	pthread_sigmask(SIG_SETMASK, &most, &old);
	err = -pthread_create(&thread->thread, &attr, thread_main, thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return err;
}

/* For the processors that have this word, of those that the daemon may use. */
static int start_thread(struct bells *bells, unsigned int word)
{
	struct bell_thread *thread = &bells->threads[word];
	cpu_set_t set;
	int err;

	CPU_ZERO(&set);
	for (unsigned int cpu = word; cpu < CPU_SETSIZE; cpu += BELL_WORDS)
		if (CPU_ISSET(cpu, &bells->processors))
			CPU_SET(cpu, &set);
	if (!CPU_COUNT(&set))
		return 0;
	*thread = (struct bell_thread){ .bells = bells, .word = word };
	err = futex_ring_init(&thread->ring);
	if (err)
		return err;
	err = create(thread, &set);
	if (err)
		futex_ring_exit(&thread->ring);
	else
		thread->started = true;
	return err;
}

static void stop(struct bells *bells)
{
	atomic_store(&bells->exiting, true);
	call_all(bells);
	for (unsigned int i = 0; i < BELL_WORDS; i++) {
		if (!bells->threads[i].started)
			continue;
		pthread_join(bells->threads[i].thread, NULL);
		futex_ring_exit(&bells->threads[i].ring);
		bells->threads[i].started = false;
	}
	bells->started = false;
}

/* They never wait for the lock that is held here. */
static void on_idle(struct ev_loop *loop, struct ev_timer *w, int revents)
{
	(void)revents;
	ev_timer_stop(loop, w);
	stop(w->data);
}

static bool start(struct bells *bells)
{
	int err = 0;

	if (bells->started || bells->failed)
		return bells->started;
	atomic_store(&bells->exiting, false);
	for (unsigned int i = 0; i < BELL_WORDS && !err; i++)
		err = start_thread(bells, i);
	bells->failed = err;
	if (err)
		stop(bells);
	else
		bells->started = true;
	return bells->started;
}

struct bells *bells_new(struct ibfs *ibfs)
{
	struct bells *bells = ibfs->conf->bells ? calloc(1, sizeof(*bells)) : NULL;
	pthread_mutexattr_t attr;

	if (!bells)
		return NULL;
	bells->ibfs = ibfs;
	sched_getaffinity(0, sizeof(bells->processors), &bells->processors);
	/* A normal thread that has it isn't kept from its processor by one that wants it. */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&bells->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	ev_timer_init(&bells->idle, on_idle, 0., LINGER);
	bells->idle.data = bells;
	return bells;
}

void bells_free(struct bells *bells)
{
	if (!bells)
		return;
	ev_timer_stop(bells->ibfs->loop, &bells->idle);
	stop(bells);
	pthread_mutex_destroy(&bells->lock);
	free(bells);
}

/* --- slots --- */

static void set_slot(struct bells *bells, struct slot *slot, struct bell *bell)
{
	pthread_mutex_lock(&bells->lock);
	if (slot->bell) {
		slot->bell->slot = 0;
		for (unsigned int i = 0; i < BELL_WORDS; i++)
			atomic_store(&slot->bell->words->word[i], BELL_NONE);
	}
	bells->added += !!bell - !!slot->bell;
	look_again(bells, slot, false, NULL);
	slot->bell = bell;
	if (!++slot->generation)
		slot->generation = 1;
	slot->empty = 0;
	slot->used = ev_now(bells->ibfs->loop);
	if (bell)
		bell->slot = slot - bells->slots;
	pthread_mutex_unlock(&bells->lock);
	call_all(bells);
	if (bells->added)
		ev_timer_stop(bells->ibfs->loop, &bells->idle);
	else
		ev_timer_again(bells->ibfs->loop, &bells->idle);
}

/* Who has rung it may still be there, and has to find another way from now on. */
static void silence(struct bells *bells, struct slot *slot)
{
	struct bell *bell = slot->bell;

	set_slot(bells, slot, NULL);
	bell->rung(bell);
}

static struct slot *find_slot(struct bells *bells)
{
	ev_tstamp old = ev_now(bells->ibfs->loop) - LATELY;
	struct slot *slot, *oldest = NULL;

	for (unsigned int i = 1; i <= BELL_MAX; i++) {
		slot = &bells->slots[i];
		if (!slot->bell)
			return slot;
		if (slot->used < old && (!oldest || slot->used < oldest->used))
			oldest = slot;
	}
	if (oldest)
		silence(bells, oldest);
	return oldest && !oldest->bell ? oldest : NULL;
}

int bell_add(struct ibfs *ibfs, struct bell *bell)
{
	struct slot *slot;

	if (bell->slot)
		return 0;
	if (!ibfs->bells || !start(ibfs->bells))
		return -EOPNOTSUPP;
	slot = find_slot(ibfs->bells);
	if (!slot)
		return -EAGAIN;
	set_slot(ibfs->bells, slot, bell);
	return 0;
}

void bell_remove(struct ibfs *ibfs, struct bell *bell)
{
	if (bell->slot)
		set_slot(ibfs->bells, &ibfs->bells->slots[bell->slot], NULL);
}
