/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Polling of send rings. A ring that was rung is looked at until it was idle
 * for a while, and need not be rung meanwhile. Only where a processor would be
 * idle otherwise: looking takes one from the very programs that produce. And
 * less and less often where looking found nothing before. A ring says in shared
 * memory whether it has to be rung, and is looked at once more after that is
 * said, so that no request is missed.
 */
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "ibfs/bell_words.h"
#include "ibfs/follow.h"
#include "ibfs/loop.h"
#include "ibfs/priority.h"

#include "hca/poll.h"
#include "hca/qp.h"
#include "hca/streak.h"

enum {
	SPIN_NS = 10000,	/* between two looks at everything else, */
	SPINS = 1000,		/* and how many at the rings meanwhile */
	IDLE_NS = 50000,	/* without a request, until a ring isn't looked at */
	SAMPLE_NS = 250000,	/* between two looks at the machine's load */
	MAX_FAILS = 10,		/* then 2^10 - 1 times are left out */
};

struct poller {
	struct ibfs *ibfs;
	unsigned int refs;
	struct ibfs_qp **qps;
	unsigned int num, room;
	struct task task;		/* a look between any two other things */
	struct ev_idle idle;		/* many, while there is nothing else */
	bool found;			/* something since polling began, and may go on */
	unsigned int fails, skip;
	int loadavg;			/* /proc/loadavg, or -1 */
	int processors;
	int running;			/* threads that want one */
	uint64_t sampled_ns;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The kernel's own: what another file system shows there may take its time to answer. */
static int open_loadavg(void)
{
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	struct statfs fs;

	if (fd >= 0 && (fstatfs(fd, &fs) || fs.f_type != PROC_SUPER_MAGIC)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* "0.20 0.18 0.12 1/80 11206": of 80 threads, one runs. proc_loadavg(5) */
static int count_running(const struct poller *p)
{
	char text[64], *at = text;
	ssize_t n = p->loadavg < 0 ? -1 : pread(p->loadavg, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return INT_MAX;
	text[n] = '\0';
	for (int i = 0; at && i < 3; i++)
		at = strchr(at + 1, ' ');
	return at ? (int)strtol(at, NULL, 10) : INT_MAX;
}

/*
 * Would a processor be idle if the loop's thread slept, once it has let others go
 * on? A client that waits for the answer to its doorbell is not counted as
 * running, and will; one that rang a bell is there, and the bell's thread takes
 * the place of the loop's.
 */
static bool processor_spare(struct poller *p, uint64_t now, bool client_waits)
{
	if (now - p->sampled_ns >= SAMPLE_NS) {
		p->sampled_ns = now;
		p->running = count_running(p);
		if (client_waits && p->running < INT_MAX)
			p->running++;
	}
	return p->running <= p->processors;
}

static enum doorbell what_to_tell(const struct ibfs_qp *qp)
{
	if (qp->polled || qp->busy)
		return DOORBELL_QUIET;
	if (!qp_takes(qp))
		return DOORBELL_ASK;
	return qp->streak.on ? DOORBELL_SELDOM : DOORBELL_RING;
}

void poll_tell(struct ibfs_qp *qp)
{
	enum doorbell tell;

	/* Nobody looks in other states. */
	qp->streak.on &= qp_takes(qp);
	tell = what_to_tell(qp);
	if (qp->client && qp->client->bell)
		*qp->client->bell = tell;
	if (qp->req.ring.buf)
		ring_want_doorbell(&qp->req.ring, tell != DOORBELL_QUIET);
}

bool poll_busy(struct ibfs_qp *qp, bool busy)
{
	if (qp->busy == busy)
		return false;
	qp->busy = busy;
	poll_tell(qp);
	return !busy;
}

/* Did the process produce since we looked last? What only waits for room doesn't count. */
static bool look(struct ibfs_qp *qp)
{
	uint32_t produced = streak_posted(qp);

	if (produced == qp->polled_index)
		return false;
	qp->polled_index = produced;
	return true;
}

/* The last one goes: was it of use? */
static void polling_ends(struct poller *p)
{
	task_cancel(p->ibfs->tasks, &p->task);
	ev_idle_stop(p->ibfs->loop, &p->idle);
	if (p->found)
		p->fails = 0;
	else if (p->fails < MAX_FAILS)
		p->fails++;
	p->skip = (1U << p->fails) - 1;
}

static void remove_qp(struct poller *p, struct ibfs_qp *qp)
{
	struct ibfs_qp *last = p->qps[--p->num];

	p->qps[qp->poll_slot] = last;
	last->poll_slot = qp->poll_slot;
	qp->polled = false;
	poll_tell(qp);
	if (!p->num)
		polling_ends(p);
}

void poll_stop(struct ibfs_qp *qp)
{
	poll_busy(qp, false);
	if (qp->polled)
		remove_qp(qp->verbs->ibfs->poller, qp);
}

/* Let go, unless something came at the last moment. */
static void release(struct poller *p, struct ibfs_qp *qp)
{
	remove_qp(p, qp);
	if (look(qp))
		qp_kick(qp);
}

/* Whoever produced may be spinning for what comes of it. */
static void urge(const struct poller *p)
{
	if (p->ibfs->priority)
		priority_urge(p->ibfs->priority);
}

/* One look at each ring; what has requests gets its turn. */
static void scan(struct poller *p, uint64_t now)
{
	bool found = false;

	for (unsigned int i = 0; i < p->num; i++) {
		struct ibfs_qp *qp = p->qps[i];

		if (!look(qp))
			continue;
		found = true;
		qp->polled_ns = now;
		qp_turn(qp);
	}
	if (!found)
		return;
	p->found = true;
	urge(p);
}

/* Rings that nobody used lately, or all where others need the processor. */
static void expire(struct poller *p, uint64_t now)
{
	bool spare = processor_spare(p, now, false);

	p->found &= spare;
	for (unsigned int i = p->num; i-- > 0;)
		if (!spare || now - p->qps[i]->polled_ns > IDLE_NS)
			release(p, p->qps[i]);
}

static void poll_task(struct task *task)
{
	struct poller *p = (struct poller *)((char *)task - offsetof(struct poller, task));
	uint64_t now = now_ns();

	follow_pause(p->ibfs->follow);
	scan(p, now);
	expire(p, now);
	if (p->num)
		task_queue(p->ibfs->tasks, task);
}

/* Until something else has to be done: requests of rings may queue tasks. */
static void poll_idle(struct ev_loop *loop, struct ev_idle *w, int revents)
{
	struct poller *p = w->data;
	uint64_t now = now_ns(), end = now + SPIN_NS;

	(void)loop;
	(void)revents;
	/* A clock that stands still, as tests have it, ends no loop. */
	for (int i = 0; i < SPINS && now < end && taskq_only(p->ibfs->tasks, &p->task); i++) {
		scan(p, now);
		now = now_ns();
	}
}

static bool add_qp(struct poller *p, struct ibfs_qp *qp)
{
	if (p->num == p->room) {
		unsigned int room = p->room ? 2 * p->room : 16;
		struct ibfs_qp **qps = reallocarray(p->qps, room, sizeof(struct ibfs_qp *));

		if (!qps)
			return false;
		p->qps = qps;
		p->room = room;
	}
	qp->poll_slot = p->num;
	p->qps[p->num++] = qp;
	return true;
}

static bool polling_begins(struct poller *p, uint64_t now)
{
	if (!p->processors)
		return false;
	if (p->skip) {
		p->skip--;
		return false;
	}
	if (!processor_spare(p, now, !loop_lent(p->ibfs->lock)))
		return false;
	p->found = false;
	return true;
}

static void begin_with(struct poller *p, struct ibfs_qp *qp, uint64_t now)
{
	if ((!p->num && !polling_begins(p, now)) || !add_qp(p, qp))
		return;
	qp->polled = true;
	poll_tell(qp);
	ev_idle_start(p->ibfs->loop, &p->idle);
	task_queue(p->ibfs->tasks, &p->task);
}

/*
 * Who rings bells and waits is served at once as it is, and might be kept from
 * its processor, when it wakes, by a thread that polls.
 */
static bool worth_it(const struct poller *p, const struct ibfs_qp *qp)
{
	return !loop_lent(p->ibfs->lock) || streak_likely(&qp->streak);
}

/* The caller looks at the ring afterwards, whatever it was told here. */
void poll_rung(struct ibfs_qp *qp)
{
	struct poller *p = qp->verbs->ibfs->poller;
	uint64_t now;

	urge(p);
	if (!qp->req.ring.buf)
		return;
	now = now_ns();
	qp->polled_ns = now;
	if (streak_rung(qp, now))
		poll_tell(qp);
	if (!qp->polled && worth_it(p, qp))
		begin_with(p, qp, now);
	if (qp->client && qp->client->again)
		qp->client->again = qp->streak.on ? VERBS_AGAIN_WANTED : VERBS_AGAIN_CAN;
}

static int count_processors(void)
{
	cpu_set_t own;

	if (!sched_getaffinity(0, sizeof(own), &own) && CPU_COUNT(&own) == 1)
		return 0;
	return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int poller_get(struct ibfs *ibfs)
{
	struct poller *p = ibfs->poller;

	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		p->ibfs = ibfs;
		p->task.fn = poll_task;
		ev_idle_init(&p->idle, poll_idle);
		ev_set_priority(&p->idle, EV_MINPRI);
		p->idle.data = p;
		p->loadavg = open_loadavg();
		p->processors = count_processors();
		ibfs->poller = p;
	}
	p->refs++;
	return 0;
}

void poller_put(struct ibfs *ibfs)
{
	struct poller *p = ibfs->poller;

	if (--p->refs)
		return;
	ibfs->poller = NULL;
	if (p->loadavg >= 0)
		close(p->loadavg);
	free(p->qps);
	free(p);
}
