/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quick jobs (quick.h). The thread that runs the loop counts `turn` up before
 * and after a job. A second thread looks at it now and then; when it finds the
 * first asleep in the same job twice it counts up itself, which tells the first
 * that its place was taken, and runs the loop inside that one's callback: for
 * libev a nested ev_run(), on another stack. Jobs are run from a callback of
 * their own, so that nothing else is half done meanwhile. Who comes back from a
 * long sleep waits until those who took over from it have let go, in reverse.
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
#define LOOKS_IDLE	8		/* without a job: then the second thread sleeps */
#define BAN		10.		/* seconds */
#define STACK_SIZE	(1 << 20)
#define MAX_DEPTH	16

/* A thread that runs the loop, or did before it was stuck. */
struct leader {
	struct leader *under;		/* whose place it took */
	pid_t tid;
	bool back;			/* from its job, and waits for that */
};

/* A user that kept the loop waiting. */
struct ban {
	struct ban *prev, *next;
	uid_t uid;
	ev_tstamp until;
};

struct quick {
	struct ibfs *ibfs;
	sigset_t signals;		/* that the loop's threads leave to a descriptor */
	pthread_mutex_t lock;		/* of leaders, bans and ended jobs */
	pthread_cond_t moved;		/* a leader is back, or another leads */
	struct ev_idle run;		/* never started: for its callback */
	struct ev_async back;		/* a leader is */
	struct job *jobs;
	struct job *running;
	struct job *ended;		/* of leaders whose place was taken */
	atomic_uint turn;		/* odd: a job runs */
	atomic_bool watched;
	sem_t wake;			/* the second thread, or it ends */
	atomic_bool exiting;
	pthread_t watcher;
	bool watching;			/* there is one */
	struct leader first, *leader;
	unsigned int depth;
	struct ban *bans;
};

/* --- the loop's side --- */

/* Those who come back do so in reverse order: is the one below waiting? */
static void let_go(struct quick *quick)
{
	pthread_mutex_lock(&quick->lock);
	if (quick->leader->under && quick->leader->under->back)
		ev_break(quick->ibfs->loop, EVBREAK_ONE);
	pthread_mutex_unlock(&quick->lock);
}

/* The place is another's: leave it the job, and wait. */
static void come_back(struct quick *quick, struct leader *me, struct job *job)
{
	pthread_mutex_lock(&quick->lock);
	me->back = true;
	DL_APPEND(quick->ended, job);
	if (quick->leader != me)
		ev_async_send(quick->ibfs->loop, &quick->back);
	pthread_cond_broadcast(&quick->moved);
	while (quick->leader != me)
		pthread_cond_wait(&quick->moved, &quick->lock);
	me->back = false;
	pthread_mutex_unlock(&quick->lock);
	if (quick->ibfs->priority)
		priority_move(quick->ibfs->priority);
}

static void finish_ended(struct quick *quick)
{
	struct job *jobs;

	pthread_mutex_lock(&quick->lock);
	jobs = quick->ended;
	quick->ended = NULL;
	pthread_mutex_unlock(&quick->lock);
	jobs_finish(jobs);
}

static void run_job(struct quick *quick, struct job *job)
{
	struct leader *me = quick->leader;
	unsigned int turn = atomic_load(&quick->turn) + 1;

	quick->running = job;
	atomic_store(&quick->turn, turn);
	if (!atomic_load(&quick->watched) && !atomic_exchange(&quick->watched, true))
		sem_post(&quick->wake);
	job->run(job);
	if (atomic_compare_exchange_strong(&quick->turn, &turn, turn + 1)) {
		job_finish(job);
		return;
	}
	come_back(quick, me, job);
	finish_ended(quick);
	let_go(quick);
}

static void on_run(struct ev_loop *loop, struct ev_idle *run, int revents)
{
	struct quick *quick = run->data;
	struct job *job;

	(void)loop;
	(void)revents;
	while ((job = quick->jobs)) {
		DL_DELETE(quick->jobs, job);
		if (job->orphan)
			job_finish(job);
		else
			run_job(quick, job);
	}
}

static void on_back(struct ev_loop *loop, struct ev_async *back, int revents)
{
	struct quick *quick = back->data;

	(void)loop;
	(void)revents;
	finish_ended(quick);
	let_go(quick);
}

/* --- the second thread --- */

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

static void ban(struct quick *quick, uid_t uid)
{
	struct ban *entry;

	DL_SEARCH_SCALAR(quick->bans, entry, uid, uid);
	if (!entry) {
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return;
		entry->uid = uid;
		DL_APPEND(quick->bans, entry);
	}
	entry->until = ev_time() + BAN;
}

/* 0, or an error number; without one no more jobs are taken. */
static int start_watcher(struct quick *quick);

/* Take the place of the one that sleeps in turn. */
static bool take_over(struct quick *quick, struct leader *me, unsigned int turn)
{
	bool taken = false;

	pthread_mutex_lock(&quick->lock);
	if (quick->depth < MAX_DEPTH && asleep(quick->leader->tid) &&
	    atomic_compare_exchange_strong(&quick->turn, &turn, turn + 1)) {
		taken = true;
		ban(quick, quick->running->uid);
		me->under = quick->leader;
		quick->leader = me;
		quick->depth++;
	}
	pthread_mutex_unlock(&quick->lock);
	return taken;
}

/*
 * The loop was left: because the one below is back, or because it ended. Then
 * nobody can wait for one that is stuck: the program ends from here.
 */
static void hand_back(struct quick *quick, struct leader *me)
{
	pthread_mutex_lock(&quick->lock);
	if (!me->under->back && quick->ibfs->leave) {
		pthread_mutex_unlock(&quick->lock);
		quick->ibfs->leave(quick->ibfs);
		return;
	}
	while (!me->under->back)
		pthread_cond_wait(&quick->moved, &quick->lock);
	quick->leader = me->under;
	quick->depth--;
	pthread_cond_broadcast(&quick->moved);
	pthread_mutex_unlock(&quick->lock);
}

static void lead(struct quick *quick, struct leader *me)
{
	sigset_t old;

	pthread_sigmask(SIG_SETMASK, &quick->signals, &old);
	if (quick->ibfs->priority)
		priority_move(quick->ibfs->priority);
	finish_ended(quick);
	ev_run(quick->ibfs->loop, 0);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	hand_back(quick, me);
}

/* The turn in which a job was found asleep; 0: there is nothing more to watch. */
static unsigned int watch(struct quick *quick)
{
	struct timespec look = { .tv_nsec = LOOK_NS };
	unsigned int turn, last = 0, idle = 0;

	while (!atomic_load(&quick->exiting)) {
		nanosleep(&look, NULL);
		turn = atomic_load(&quick->turn);
		if (turn != last) {
			last = turn;
			idle = 0;
		} else if (turn & 1) {
			return turn;
		} else if (++idle > LOOKS_IDLE) {
			atomic_store(&quick->watched, false);
			if (atomic_load(&quick->turn) == last || atomic_exchange(&quick->watched, true))
				while (sem_wait(&quick->wake))
					;
			idle = 0;
		}
	}
	return 0;
}

static void *watcher_main(void *arg)
{
	struct quick *quick = arg;
	struct leader me = { .tid = gettid() };
	unsigned int turn;

	while ((turn = watch(quick))) {
		if (!take_over(quick, &me, turn))
			continue;
		pthread_detach(pthread_self());
		quick->watching = start_watcher(quick) == 0;
		lead(quick, &me);
		break;
	}
	return NULL;
}

static int start_watcher(struct quick *quick)
{
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	follow_thread(quick->ibfs->follow, &attr);
	err = thread_create(&quick->watcher, &attr, watcher_main, quick);
	pthread_attr_destroy(&attr);
	return err;
}

/* --- its life --- */

struct quick *quick_new(struct ibfs *ibfs)
{
	struct quick *quick = calloc(1, sizeof(*quick));

	if (!quick)
		return NULL;
	quick->ibfs = ibfs;
	pthread_sigmask(SIG_SETMASK, NULL, &quick->signals);
	pthread_mutex_init(&quick->lock, NULL);
	pthread_cond_init(&quick->moved, NULL);
	sem_init(&quick->wake, 0, 0);
	quick->watched = true;
	quick->first.tid = gettid();
	quick->leader = &quick->first;
	ev_idle_init(&quick->run, on_run);
	quick->run.data = quick;
	ev_async_init(&quick->back, on_back);
	quick->back.data = quick;
	ev_async_start(ibfs->loop, &quick->back);
	ev_unref(ibfs->loop);
	quick->watching = start_watcher(quick) == 0;
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

void quick_free(struct quick *quick)
{
	struct ban *entry, *tmp;

	if (!quick)
		return;
	ev_clear_pending(quick->ibfs->loop, &quick->run);
	ev_ref(quick->ibfs->loop);
	ev_async_stop(quick->ibfs->loop, &quick->back);
	atomic_store(&quick->exiting, true);
	sem_post(&quick->wake);
	if (quick->watching)
		pthread_join(quick->watcher, NULL);
	drop_jobs(quick->jobs);
	drop_jobs(quick->ended);
	DL_FOREACH_SAFE(quick->bans, entry, tmp)
		free(entry);
	if (quick->depth)
		return;
	pthread_cond_destroy(&quick->moved);
	pthread_mutex_destroy(&quick->lock);
	sem_destroy(&quick->wake);
	free(quick);
}

static bool banned(struct quick *quick, uid_t uid)
{
	struct ban *entry;

	pthread_mutex_lock(&quick->lock);
	DL_SEARCH_SCALAR(quick->bans, entry, uid, uid);
	if (entry && ev_now(quick->ibfs->loop) > entry->until) {
		DL_DELETE(quick->bans, entry);
		free(entry);
		entry = NULL;
	}
	pthread_mutex_unlock(&quick->lock);
	return entry;
}

bool quick_submit(struct quick *quick, struct job *job)
{
	if (!quick->watching || banned(quick, job->uid))
		return false;
	DL_APPEND(quick->jobs, job);
	ev_feed_event(quick->ibfs->loop, &quick->run, EV_CUSTOM);
	return true;
}
