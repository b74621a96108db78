/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that waits for descriptors and lets their owners read them there:
 * even poll() asks a driver, or the daemon of a file, and may not come back.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

#include "backend/verbs/rdev.h"

struct waiter {
	pthread_mutex_t lock;
	struct watch *watches;
	struct pollfd *fds;		/* the thread's */
	unsigned int room;
	struct rdevs *rdevs;
	int bell;			/* rung when the list has changed */
	bool closing;
};

static void waiter_release(struct waiter *waiter)
{
	struct watch *watch, *tmp;

	DL_FOREACH_SAFE(waiter->watches, watch, tmp)
		watch->free(watch);
	if (waiter->bell >= 0)
		close(waiter->bell);
	rdevs_put(waiter->rdevs);
	pthread_mutex_destroy(&waiter->lock);
	free(waiter->fds);
	free(waiter);
}

/* Locked: free the dead, fill fds; how many, the bell included. */
static unsigned int collect(struct waiter *waiter)
{
	struct watch *watch, *tmp;
	struct pollfd *fds;
	unsigned int n = 1;

	DL_FOREACH_SAFE(waiter->watches, watch, tmp) {
		if (watch->dead) {
			DL_DELETE(waiter->watches, watch);
			watch->free(watch);
		} else {
			n++;
		}
	}
	if (n > waiter->room) {
		fds = reallocarray(waiter->fds, n, sizeof(*fds));
		if (!fds)
			return waiter->room;
		waiter->fds = fds;
		waiter->room = n;
	}
	waiter->fds[0] = (struct pollfd){ .fd = waiter->bell, .events = POLLIN };
	n = 1;
	DL_FOREACH(waiter->watches, watch) {
		if (n < waiter->room)
			waiter->fds[n] = (struct pollfd){
				.fd = watch->quiet ? -1 : watch->fd, .events = POLLIN,
			};
		n++;
	}
	return n < waiter->room ? n : waiter->room;
}

/* New ones come at the list's end and only this thread takes any out: fds' order is the list's. */
static void serve(struct waiter *waiter, unsigned int n)
{
	struct watch *watch;
	unsigned int i;
	bool dead;

	pthread_mutex_lock(&waiter->lock);
	watch = waiter->watches;
	for (i = 1; i < n; i++, watch = watch->next) {
		dead = watch->dead;
		if (dead || watch->quiet || !waiter->fds[i].revents)
			continue;
		pthread_mutex_unlock(&waiter->lock);
		watch->quiet = !watch->ready(watch);
		pthread_mutex_lock(&waiter->lock);
	}
	pthread_mutex_unlock(&waiter->lock);
}

static void *waiter_main(void *arg)
{
	struct waiter *waiter = arg;
	uint64_t rung;
	unsigned int n;
	bool closing = false;

	while (!closing) {
		pthread_mutex_lock(&waiter->lock);
		n = collect(waiter);
		closing = waiter->closing;
		pthread_mutex_unlock(&waiter->lock);
		if (closing || poll(waiter->fds, n, -1) <= 0)
			continue;
		if (waiter->fds[0].revents && read(waiter->bell, &rung, sizeof(rung)) < 0)
			continue;
		serve(waiter, n);
	}
	waiter_release(waiter);
	return NULL;
}

struct waiter *waiter_new(struct rdevs *rdevs)
{
	struct waiter *waiter = calloc(1, sizeof(*waiter));

	if (!waiter)
		return NULL;
	waiter->rdevs = rdevs_get(rdevs);
	pthread_mutex_init(&waiter->lock, NULL);
	waiter->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	waiter->room = 1;
	waiter->fds = calloc(1, sizeof(*waiter->fds));
	if (waiter->bell >= 0 && waiter->fds && !thread_start(waiter_main, waiter))
		return waiter;
	waiter_release(waiter);
	return NULL;
}

/* Locked. An eventfd that is full has been rung. */
static void ring(struct waiter *waiter)
{
	static const uint64_t one = 1;

	if (write(waiter->bell, &one, sizeof(one)) < 0)
		return;
}

void watch_add(struct waiter *waiter, struct watch *watch)
{
	pthread_mutex_lock(&waiter->lock);
	DL_APPEND(waiter->watches, watch);
	ring(waiter);
	pthread_mutex_unlock(&waiter->lock);
}

void watch_del(struct waiter *waiter, struct watch *watch)
{
	pthread_mutex_lock(&waiter->lock);
	watch->dead = true;
	ring(waiter);
	pthread_mutex_unlock(&waiter->lock);
}

void waiter_free(struct waiter *waiter)
{
	if (!waiter)
		return;
	pthread_mutex_lock(&waiter->lock);
	waiter->closing = true;
	ring(waiter);
	pthread_mutex_unlock(&waiter->lock);
}
