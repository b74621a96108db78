/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread's right to run when it has work: clients that spin for completions
 * would otherwise keep the processors from who makes them. sched(7).
 */
#ifndef IBFS_PRIORITY_H
#define IBFS_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * One thread's, which calls the functions, or who holds the loop's lock (loop.h)
 * for the loop's thread; others may look at realtime.
 */
struct priority {
	pid_t tid;
	_Atomic bool realtime;	/* SCHED_FIFO now */
	bool allowed;		/* to be so */
	bool urged, busy;	/* in this period, in the last one */
	uint64_t since_ns;	/* start of the period: wall clock, */
	uint64_t cpu_ns;	/* and the thread's processor time then */
};

/*
 * For the calling thread, which is a normal one until it is urged: with a short
 * time slice, so that it runs soon after it wakes (Linux 6.12). Whether it may
 * become a real-time one. Nothing of it is inherited.
 */
void priority_init(struct priority *prio, bool allowed);
/* From now on it is the calling thread's, which was not urged yet. */
void priority_move(struct priority *prio);
/*
 * Somebody may be spinning for what the thread is about to do: SCHED_FIFO, where
 * that is permitted (CAP_SYS_NICE, RLIMIT_RTPRIO) and it wasn't busy all the time.
 */
void priority_urge(struct priority *prio);
/*
 * To be called often: after a tenth of a second in which it wasn't urged, or
 * nearly never slept, the thread is a normal one. It starves nobody.
 */
void priority_check(struct priority *prio);

#endif
