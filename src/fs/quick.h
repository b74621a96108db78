/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs that almost never sleep, run in the event loop's own thread, which saves
 * two changes of threads. When one does sleep another thread goes on with the
 * loop, until the job is done: nobody waits longer than a few milliseconds for
 * it, and its user's jobs are left to helper threads for a while.
 */
#ifndef IBFS_FS_QUICK_H
#define IBFS_FS_QUICK_H

#include <ibfs/fs.h>

struct quick;

/* NULL: no memory. It is used and freed in the loop, by whichever thread runs that. */
struct quick *quick_new(struct ibfs *ibfs);
/* Jobs that wait end by disowned(). It stays in memory while a thread of its sleeps. */
void quick_free(struct quick *quick);
/* Take the job: run() and done(), or disowned(), follow, not from inside. False: not now. */
bool quick_submit(struct quick *quick, struct job *job);
/* As done() or disowned() for a job that ended; offload.c. */
void job_finish(struct job *job);
void jobs_finish(struct job *jobs);

#endif
