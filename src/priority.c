/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Real-time priority for threads whose clients spin, and its limit: a thread that
 * is busy all the time has no need to run soon, and must let others run.
 * Touches the calling thread's scheduling only. sched(7), sched_setattr(2).
 */
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <ibfs/priority.h>

enum {
	PRIORITY = 1,		/* the least of the real-time ones */
	PERIOD_NS = 100000000,
	BUSY_PERCENT = 80,	/* of a period: more than that is no answering */
	SLICE_NS = 100000,	/* the shortest that the kernel takes */
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* False: not permitted. */
static bool set_policy(pid_t tid, bool realtime)
{
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = realtime ? SCHED_FIFO : SCHED_NORMAL,
		.sched_flags = SCHED_FLAG_RESET_ON_FORK,
		.sched_priority = realtime ? PRIORITY : 0,
		.sched_runtime = realtime ? 0 : SLICE_NS,
	};

	return syscall(SYS_sched_setattr, tid, &attr, 0) == 0;
}

void priority_init(struct priority *prio, bool allowed)
{
	*prio = (struct priority){
		.tid = gettid(), .allowed = allowed, .since_ns = now_ns(CLOCK_MONOTONIC),
		.cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID),
	};
	set_policy(prio->tid, false);
}

void priority_move(struct priority *prio)
{
	prio->tid = gettid();
	prio->realtime = prio->urged = prio->busy = false;
	prio->since_ns = now_ns(CLOCK_MONOTONIC);
	prio->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	set_policy(prio->tid, false);
}

void priority_urge(struct priority *prio)
{
	bool granted;

	prio->urged = true;
	if (prio->realtime || prio->busy || !prio->allowed)
		return;
	granted = set_policy(prio->tid, true);
	prio->realtime = granted;
	prio->allowed = granted;
}

void priority_check(struct priority *prio)
{
	uint64_t now, cpu;

	if (!prio->realtime && !prio->busy)
		return;
	now = now_ns(CLOCK_MONOTONIC);
	if (now - prio->since_ns < PERIOD_NS)
		return;
	cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
	prio->busy = cpu - prio->cpu_ns > (now - prio->since_ns) * BUSY_PERCENT / 100;
	if (prio->realtime && (prio->busy || !prio->urged))
		prio->realtime = !set_policy(prio->tid, false);
	prio->urged = false;
	prio->since_ns = now;
	prio->cpu_ns = cpu;
}
