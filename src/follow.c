/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Following a client, ibfs/follow.h. Touches the calling thread's processor
 * affinity only, and never leaves what that was before; sched_setaffinity(2).
 * What counts is looked at in periods: a client that asks seldom, or beside
 * others that ask for something else, is not followed.
 */
#include <ev.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <ibfs/follow.h>

enum {
	PATIENCE = 8,		/* requests from another processor in a row, before a move */
	BUSY = 32,		/* requests in a period */
	OTHERS = 8,		/* one request of so many may be another's */
};

static const double PERIOD = 0.01;	/* seconds */

struct follow {
	struct ibfs *ibfs;
	struct ev_timer period;
	cpu_set_t before;		/* where the thread could run; while it follows */
	pid_t tid;			/* that thread; another may lead the loop by now */
	int cpu;			/* where it can run now; -1: it follows nobody */
	int from;			/* where the last requests came from, */
	unsigned int in_row;		/* so many of them */
	unsigned int count;		/* in this period */
	uint64_t first, last;		/* requests of all kinds when it began, and at the last one */
	bool paused;			/* in this period */
	bool wanted;			/* by what the last period was like */
};

static void leave(struct follow *follow)
{
	if (follow->cpu >= 0)
		sched_setaffinity(follow->tid, sizeof(follow->before), &follow->before);
	follow->cpu = -1;
}

static void move(struct follow *follow, int cpu)
{
	pid_t self = gettid();
	cpu_set_t set;

	if (follow->tid != self)
		leave(follow);
	follow->tid = self;
	if (follow->cpu < 0 && sched_getaffinity(0, sizeof(follow->before), &follow->before))
		return;
	if (!CPU_ISSET(cpu, &follow->before))
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (!sched_setaffinity(0, sizeof(set), &set))
		follow->cpu = cpu;
}

/* An idle daemon has no timer: it stops with the first period that has no request. */
static void on_period(struct ev_loop *loop, struct ev_timer *w, int revents)
{
	struct follow *follow = w->data;
	uint64_t all = follow->last - follow->first;

	(void)revents;
	follow->wanted = !follow->paused && follow->count >= BUSY &&
			 all - follow->count <= all / OTHERS;
	if (!follow->wanted)
		leave(follow);
	if (!follow->count) {
		ev_timer_stop(loop, w);
		ev_ref(loop);
	}
	follow->count = 0;
	follow->first = follow->last;
	follow->paused = false;
}

void follow_request(struct follow *follow, int cpu, uint64_t requests)
{
	struct ev_loop *loop;

	if (!follow || cpu < 0 || cpu >= CPU_SETSIZE)
		return;
	loop = follow->ibfs->loop;
	if (!ev_is_active(&follow->period)) {
		follow->first = requests - 1;
		ev_timer_again(loop, &follow->period);
		ev_unref(loop);		/* it doesn't keep a loop going */
	}
	follow->count++;
	follow->last = requests;
	if (cpu != follow->from) {
		follow->from = cpu;
		follow->in_row = 0;
	}
	if (++follow->in_row >= PATIENCE && follow->wanted && cpu != follow->cpu)
		move(follow, cpu);
}

void follow_pause(struct follow *follow)
{
	if (!follow)
		return;
	follow->paused = true;
	follow->wanted = false;
	leave(follow);
}

void follow_thread(const struct follow *follow, pthread_attr_t *attr)
{
	cpu_set_t set;

	if (follow && follow->cpu >= 0)
		set = follow->before;
	else if (sched_getaffinity(getpid(), sizeof(set), &set))
		return;
	pthread_attr_setaffinity_np(attr, sizeof(set), &set);
}

struct follow *follow_new(struct ibfs *ibfs)
{
	struct follow *follow = calloc(1, sizeof(*follow));

	if (!follow)
		return NULL;
	follow->ibfs = ibfs;
	follow->cpu = follow->from = -1;
	ev_timer_init(&follow->period, on_period, 0, PERIOD);
	follow->period.data = follow;
	return follow;
}

void follow_free(struct follow *follow)
{
	if (!follow)
		return;
	leave(follow);
	if (ev_is_active(&follow->period)) {
		ev_ref(follow->ibfs->loop);
		ev_timer_stop(follow->ibfs->loop, &follow->period);
	}
	free(follow);
}
