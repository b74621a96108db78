/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inline jobs (quick.h). The loop's owner runs them between two turns of the
 * loop, with nothing of the loop on its stack. It counts `sequence` up before and
 * after a job. A second thread, the watcher, looks at that now and then; when it
 * finds the owner asleep in one job at two looks, or still in it at many, it
 * counts up itself, which tells the owner that it is none any more, and goes on
 * with the loop. Who comes back from such a job leaves it to the new owner and
 * ends; the first owner, which is the program's main thread, waits for the loop's
 * end.
 *
 * A user whose job took the loop's owner away has a penalty, which ends when all of
 * its jobs have ended and enough inline jobs of anybody were done since. Penalties
 * queue up, so that however many users there are, the loop stalls rarely beside
 * what it does.
 */
#include <errno.h>
#include <ev.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include <ibfs/follow.h>
#include <ibfs/ibfs.h>
#include <ibfs/priority.h>
#include <ibfs/thread.h>

#include "fs/quick.h"

#define LOOK_NS		4000000
#define LOOKS_IDLE	8		/* without a job: then the watcher sleeps */
#define LOOKS_BUSY	8		/* in one job, asleep or not: then it is a stuck one */
#define BUDGET		64		/* jobs in one turn of the loop */
#define STACK_SIZE	(1 << 20)

struct penalty {
	struct penalty *prev, *next;
	uid_t uid;
	unsigned int away;		/* of its jobs, on threads other than the owner */
	uint64_t until;			/* inline jobs, by the count below */
};

struct quick {
	struct ibfs *ibfs;
	sigset_t signals;		/* that the loop's owners leave to a descriptor */
	struct ev_idle idle;		/* started while there are jobs: the loop doesn't sleep */
	struct job *jobs;
	struct job *running;
	_Atomic pid_t owner;		/* the thread that runs the loop */
	atomic_uint sequence;		/* odd: a job runs */
	/* the watcher */
	atomic_bool watched;
	sem_t wake;			/* it, or it ends */
	atomic_bool stopping;
	pthread_t watcher;
	enum { NO_WATCHER, WATCHING, FAILED } watching;
	struct penalty *spare;		/* for the next user: there is one while it watches */
	/* penalties */
	struct penalty *penalties;
	unsigned int num_penalties;
	uint64_t count;			/* of inline jobs that ended, also on other threads */
	uint64_t until;			/* when the last of the penalties ends */
	/* former owners */
	pthread_mutex_t lock;		/* of what follows */
	pthread_cond_t over_cond;
	struct ev_async back;		/* one is */
	struct job *ended;		/* their jobs */
	unsigned int stuck;		/* those in a job */
	bool first_waits;		/* the first owner, for the loop's end */
	bool over;			/* that has come */
	bool left;			/* by ibfs->leave(), since the first owner is stuck */
	bool exiting;			/* nobody finishes what ended */
};

/* --- penalties --- */

static struct penalty *penalty_of(struct quick *quick, uid_t uid)
{
	struct penalty *penalty, *tmp, *found = NULL;

	DL_FOREACH_SAFE(quick->penalties, penalty, tmp) {
		if (!penalty->away && quick->count >= penalty->until) {
			DL_DELETE(quick->penalties, penalty);
			quick->num_penalties--;
			free(penalty);
		} else if (penalty->uid == uid) {
			found = penalty;
		}
	}
	return found;
}

/* May a job of the user run inline? */
static bool may_run(struct quick *quick, uid_t uid)
{
	return !penalty_of(quick, uid) && quick->num_penalties < INLINE_PENALTIES &&
	       quick->watching == WATCHING;
}

/* The job took the owner away. Its user has no penalty yet, or the job wasn't inline. */
static void punish(struct quick *quick, struct job *job)
{
	struct penalty *penalty = quick->spare;

	quick->spare = NULL;
	if (quick->until < quick->count)
		quick->until = quick->count;
	quick->until += INLINE_PENALTY;
	*penalty = (struct penalty){ .uid = job->uid, .away = 1, .until = quick->until };
	job->away = true;
	DL_APPEND(quick->penalties, penalty);
	quick->num_penalties++;
}

void quick_away(struct quick *quick, struct job *job)
{
	struct penalty *penalty = penalty_of(quick, job->uid);

	if (!penalty)
		return;
	penalty->away++;
	job->away = true;
}

void quick_ended(struct quick *quick, struct job *job)
{
	struct penalty *penalty;

	quick->count++;
	if (!job->away)
		return;
	job->away = false;
	DL_SEARCH_SCALAR(quick->penalties, penalty, uid, job->uid);
	penalty->away--;
}

/* --- the owner --- */

static void quick_destroy(struct quick *quick);

/* The place is another's: leave it the job. */
static void come_back(struct quick *quick, struct job *job)
{
	bool last;

	pthread_mutex_lock(&quick->lock);
	DL_APPEND(quick->ended, job);
	last = !--quick->stuck && quick->exiting && !quick->left;
	if (!quick->exiting)
		ev_async_send(quick->ibfs->loop, &quick->back);
	pthread_mutex_unlock(&quick->lock);
	if (last)
		quick_destroy(quick);
}

static void on_back(struct ev_loop *loop, struct ev_async *back, int revents)
{
	struct quick *quick = back->data;
	struct job *jobs;

	(void)loop;
	(void)revents;
	pthread_mutex_lock(&quick->lock);
	jobs = quick->ended;
	quick->ended = NULL;
	pthread_mutex_unlock(&quick->lock);
	jobs_finish(jobs);
}

/* False: it was stuck, and the caller isn't the owner any more. */
static bool run_job(struct quick *quick, struct job *job)
{
	unsigned int sequence = atomic_load(&quick->sequence) + 1;

	quick->running = job;
	atomic_store(&quick->sequence, sequence);
	if (!atomic_load(&quick->watched) && !atomic_exchange(&quick->watched, true))
		sem_post(&quick->wake);
	job->run(job);
	if (atomic_compare_exchange_strong(&quick->sequence, &sequence, sequence + 1)) {
		job_finish(job);
		return true;
	}
	come_back(quick, job);
	return false;
}

/* Its user has a penalty since it was taken. */
static void send_away(struct quick *quick, struct job *job)
{
	if (offload_always(job))
		DL_APPEND(quick->jobs, job);
}

/* As run_job(). What is beyond the budget waits for the loop's next turn. */
static bool run_jobs(struct quick *quick)
{
	struct job *job;

	if (!ev_is_active(&quick->idle))
		return true;
	for (int i = 0; i < BUDGET && (job = quick->jobs); i++) {
		DL_DELETE(quick->jobs, job);
		if (job->orphan)
			job_finish(job);
		else if (!may_run(quick, job->uid))
			send_away(quick, job);
		else if (!run_job(quick, job))
			return false;
	}
	if (!quick->jobs)
		ev_idle_stop(quick->ibfs->loop, &quick->idle);
	return true;
}

/* True: the loop ended; false: the caller isn't its owner any more. */
static bool run_loop(struct quick *quick)
{
	const struct ibfs *ibfs = quick->ibfs;

	while (!ibfs->ended && ev_run(ibfs->loop, EVRUN_ONCE))
		if (!run_jobs(quick))
			return false;
	return true;
}

void quick_run(struct quick *quick)
{
	quick->owner = gettid();
	quick->first_waits = quick->over = false;
	if (run_loop(quick))
		return;
	pthread_mutex_lock(&quick->lock);
	quick->first_waits = true;
	while (!quick->over || quick->left)	/* the program ends meanwhile */
		pthread_cond_wait(&quick->over_cond, &quick->lock);
	pthread_mutex_unlock(&quick->lock);
}

/*
 * The first owner goes on behind the loop, unless it is stuck: nobody can wait for
 * that, and the program ends from here.
 */
static void end_loop(struct quick *quick)
{
	struct ibfs *ibfs = quick->ibfs;
	bool left;

	pthread_mutex_lock(&quick->lock);
	left = !quick->first_waits && ibfs->leave;
	quick->left = left;
	quick->over = true;
	pthread_cond_signal(&quick->over_cond);
	pthread_mutex_unlock(&quick->lock);
	if (left)
		ibfs->leave(ibfs);
}

/* --- the watcher --- */

/* Asleep, not only kept from running by others? proc_pid_stat(5) */
static bool asleep(pid_t tid)
{
	char path[48], text[128], *state;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	file = fopen(path, "re");
	if (!file)
		return false;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	state = strrchr(text, ')');
	return state && (state[2] == 'D' || state[2] == 'S');
}

/* Nobody runs jobs: sleep until somebody does. */
static void rest(struct quick *quick, unsigned int sequence)
{
	atomic_store(&quick->watched, false);
	if (atomic_load(&quick->sequence) == sequence || atomic_exchange(&quick->watched, true))
		while (sem_wait(&quick->wake))
			;
}

/* The sequence of a job that is stuck; 0: there is nothing more to watch. */
static unsigned int watch(struct quick *quick)
{
	struct timespec look = { .tv_nsec = LOOK_NS };
	unsigned int sequence, last = 0, same = 0;

	while (!atomic_load(&quick->stopping)) {
		nanosleep(&look, NULL);
		sequence = atomic_load(&quick->sequence);
		same = sequence == last ? same + 1 : 0;
		last = sequence;
		if (sequence & 1) {
			if (same >= LOOKS_BUSY || (same && asleep(quick->owner)))
				return sequence;
		} else if (same > LOOKS_IDLE) {
			rest(quick, last);
			same = 0;
		}
	}
	return 0;
}

static bool take_over(struct quick *quick, unsigned int sequence)
{
	bool taken;

	pthread_mutex_lock(&quick->lock);
	taken = atomic_compare_exchange_strong(&quick->sequence, &sequence, sequence + 1);
	quick->stuck += taken;
	pthread_mutex_unlock(&quick->lock);
	return taken;
}

static int start_watcher(struct quick *quick);

/* The owner now, with the loop's lock. */
static void own_loop(struct quick *quick)
{
	pthread_detach(pthread_self());
	pthread_sigmask(SIG_SETMASK, &quick->signals, NULL);
	punish(quick, quick->running);
	quick->owner = gettid();
	quick->watching = start_watcher(quick) ? FAILED : WATCHING;
	if (quick->ibfs->priority)
		priority_move(quick->ibfs->priority);
	follow_pause(quick->ibfs->follow);
	if (run_loop(quick))
		end_loop(quick);
}

static void *watcher_main(void *arg)
{
	struct quick *quick = arg;
	unsigned int sequence;

	while ((sequence = watch(quick))) {
		if (!take_over(quick, sequence))
			continue;
		own_loop(quick);
		break;
	}
	return NULL;
}

static int start_watcher(struct quick *quick)
{
	pthread_attr_t attr;
	int err;

	quick->spare = calloc(1, sizeof(*quick->spare));
	if (!quick->spare)
		return -ENOMEM;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	follow_thread(quick->ibfs->follow, &attr);
	err = thread_create(&quick->watcher, &attr, watcher_main, quick);
	pthread_attr_destroy(&attr);
	return err;
}

/* --- its life --- */

static void on_idle(struct ev_loop *loop, struct ev_idle *idle, int revents)
{
	(void)loop;
	(void)idle;
	(void)revents;
}

struct quick *quick_new(struct ibfs *ibfs)
{
	struct quick *quick = calloc(1, sizeof(*quick));

	if (!quick)
		return NULL;
	quick->ibfs = ibfs;
	pthread_sigmask(SIG_SETMASK, NULL, &quick->signals);
	pthread_mutex_init(&quick->lock, NULL);
	pthread_cond_init(&quick->over_cond, NULL);
	sem_init(&quick->wake, 0, 0);
	quick->watched = true;
	ev_idle_init(&quick->idle, on_idle);
	ev_async_init(&quick->back, on_back);
	quick->back.data = quick;
	ev_async_start(ibfs->loop, &quick->back);
	ev_unref(ibfs->loop);
	return quick;
}

static void drop_jobs(struct job *jobs)
{
	struct job *job, *tmp;

	DL_FOREACH_SAFE(jobs, job, tmp) {
		DL_DELETE(jobs, job);
		job->disowned(job);
	}
}

static void quick_destroy(struct quick *quick)
{
	drop_jobs(quick->ended);
	pthread_cond_destroy(&quick->over_cond);
	pthread_mutex_destroy(&quick->lock);
	sem_destroy(&quick->wake);
	free(quick);
}

static void stop_watcher(struct quick *quick)
{
	atomic_store(&quick->stopping, true);
	sem_post(&quick->wake);
	if (quick->watching == WATCHING)
		pthread_join(quick->watcher, NULL);
	free(quick->spare);
}

void quick_free(struct quick *quick)
{
	struct penalty *penalty, *tmp;
	bool unused;

	if (!quick)
		return;
	ev_idle_stop(quick->ibfs->loop, &quick->idle);
	ev_ref(quick->ibfs->loop);
	ev_async_stop(quick->ibfs->loop, &quick->back);
	stop_watcher(quick);
	drop_jobs(quick->jobs);
	DL_FOREACH_SAFE(quick->penalties, penalty, tmp)
		free(penalty);
	pthread_mutex_lock(&quick->lock);
	quick->exiting = true;
	unused = !quick->stuck && !quick->left;
	pthread_mutex_unlock(&quick->lock);
	if (unused)
		quick_destroy(quick);
}

bool quick_submit(struct quick *quick, struct job *job)
{
	if (quick->watching == NO_WATCHER)
		quick->watching = start_watcher(quick) ? FAILED : WATCHING;
	if (!may_run(quick, job->uid))
		return false;
	DL_APPEND(quick->jobs, job);
	if (!ev_is_active(&quick->idle))
		ev_idle_start(quick->ibfs->loop, &quick->idle);
	return true;
}
