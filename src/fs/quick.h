/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inline jobs: jobs that almost never sleep, run by the thread that runs the
 * event loop, its owner, which saves two changes of threads. When one does sleep
 * another thread becomes the owner: nobody else waits longer than a few
 * milliseconds for it. Its user's jobs go to helper threads from then on, as long
 * as one of them hasn't ended, and until INLINE_PENALTY inline jobs have.
 */
#ifndef IBFS_FS_QUICK_H
#define IBFS_FS_QUICK_H

#include <ibfs/fs.h>

enum {
	/* Each stall of the loop is paid for by so many jobs: time alone forgives nothing. */
	INLINE_PENALTY = 1 << 19,
	/* Users with a penalty; while there are as many nobody's jobs are inline. */
	INLINE_PENALTIES = 16,
};

struct quick;

/* NULL: no memory. All functions are for who holds the loop's lock, unless they say otherwise. */
struct quick *quick_new(struct ibfs *ibfs);
/* Jobs that wait end by disowned(). It stays in memory while a thread is stuck in a job. */
void quick_free(struct quick *quick);
/* Run the loop until loop_end(): offload_run_loop(). */
void quick_run(struct quick *quick);
/* Take the job: run() and done(), or disowned(), follow, not from inside. False: not this one. */
bool quick_submit(struct quick *quick, struct job *job);
/* A helper thread has the job, which quick_submit() didn't take. */
void quick_away(struct quick *quick, struct job *job);
/* The job, inline or not, has ended: before job_finish() gives it back. */
void quick_ended(struct quick *quick, struct job *job);
/* As done() or disowned() for a job that ended; offload.c. */
void job_finish(struct job *job);
void jobs_finish(struct job *jobs);

#endif
