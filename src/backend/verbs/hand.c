/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that makes calls which may block. Who waits for one waits for a
 * bounded time: after that the call is left alone, and the hand is stuck for
 * good. Nothing here knows what is called.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "backend/verbs/rdev.h"

struct call {
	struct call *prev, *next;
	void (*fn)(void *arg);
	void (*undo)(void *arg);	/* when nobody takes the result any more */
	bool waited;			/* somebody takes the result, and frees it */
	bool ended;
	_Alignas(16) uint8_t arg[];
};

struct hand {
	pthread_mutex_t lock;
	pthread_cond_t more, ended;
	struct call *calls;
	struct rdevs *rdevs;
	bool stuck, closing;
};

static void hand_release(struct hand *hand)
{
	struct call *call, *tmp;

	DL_FOREACH_SAFE(hand->calls, call, tmp)
		free(call);
	rdevs_put(hand->rdevs);
	pthread_cond_destroy(&hand->ended);
	pthread_cond_destroy(&hand->more);
	pthread_mutex_destroy(&hand->lock);
	free(hand);
}

static void *hand_main(void *arg)
{
	struct hand *hand = arg;
	struct call *call;

	pthread_mutex_lock(&hand->lock);
	while (hand->calls || !hand->closing) {
		call = hand->calls;
		if (!call) {
			pthread_cond_wait(&hand->more, &hand->lock);
			continue;
		}
		DL_DELETE(hand->calls, call);
		pthread_mutex_unlock(&hand->lock);
		call->fn(call->arg);
		pthread_mutex_lock(&hand->lock);
		call->ended = true;
		if (call->waited) {
			pthread_cond_signal(&hand->ended);
			continue;
		}
		pthread_mutex_unlock(&hand->lock);
		if (call->undo)
			call->undo(call->arg);
		free(call);
		pthread_mutex_lock(&hand->lock);
	}
	pthread_mutex_unlock(&hand->lock);
	hand_release(hand);
	return NULL;
}

struct hand *hand_new(struct rdevs *rdevs)
{
	struct hand *hand = calloc(1, sizeof(*hand));
	pthread_condattr_t attr;

	if (!hand)
		return NULL;
	hand->rdevs = rdevs_get(rdevs);
	pthread_mutex_init(&hand->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&hand->more, &attr);
	pthread_cond_init(&hand->ended, &attr);
	pthread_condattr_destroy(&attr);
	if (!thread_start(hand_main, hand))
		return hand;
	hand_release(hand);
	return NULL;
}

static struct call *call_new(void (*fn)(void *arg), const void *arg, size_t size)
{
	struct call *call = malloc(sizeof(*call) + size);

	if (!call)
		return NULL;
	*call = (struct call){ .fn = fn };
	memcpy(call->arg, arg, size);
	return call;
}

static struct timespec deadline(unsigned int ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	return until;
}

/* Locked. False: it has not ended in time, and is the thread's to free. */
static bool await(struct hand *hand, struct call *call, unsigned int ms)
{
	struct timespec until = deadline(ms);

	while (!call->ended)
		if (pthread_cond_timedwait(&hand->ended, &hand->lock, &until) == ETIMEDOUT)
			break;
	if (call->ended)
		return true;
	call->waited = false;
	hand->stuck = true;
	return false;
}

int hand_call(struct hand *hand, void (*fn)(void *arg), void (*undo)(void *arg), void *arg,
	      size_t size, unsigned int ms)
{
	struct call *call = call_new(fn, arg, size);
	bool ended = false;

	if (!call)
		return -ENOMEM;
	call->waited = true;
	call->undo = undo;
	pthread_mutex_lock(&hand->lock);
	if (hand->stuck) {
		free(call);
	} else {
		DL_APPEND(hand->calls, call);
		pthread_cond_signal(&hand->more);
		ended = await(hand, call, ms);
	}
	pthread_mutex_unlock(&hand->lock);
	if (!ended)
		return -EIO;
	memcpy(arg, call->arg, size);
	free(call);
	return 0;
}

int hand_post(struct hand *hand, void (*fn)(void *arg), const void *arg, size_t size)
{
	struct call *call = call_new(fn, arg, size);

	if (!call)
		return -ENOMEM;
	pthread_mutex_lock(&hand->lock);
	DL_APPEND(hand->calls, call);
	pthread_cond_signal(&hand->more);
	pthread_mutex_unlock(&hand->lock);
	return 0;
}

bool hand_stuck(struct hand *hand)
{
	bool stuck;

	pthread_mutex_lock(&hand->lock);
	stuck = hand->stuck;
	pthread_mutex_unlock(&hand->lock);
	return stuck;
}

void hand_free(struct hand *hand)
{
	if (!hand)
		return;
	pthread_mutex_lock(&hand->lock);
	hand->closing = true;
	pthread_cond_signal(&hand->more);
	pthread_mutex_unlock(&hand->lock);
}
