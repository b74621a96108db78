/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helper threads for what may sleep for ever: calls that touch a client's
 * memory or its /proc files. A client has one thread while it has jobs, so one
 * that is stuck in a dead page of its own stops nobody else; a user has at
 * most OFFLOAD_THREADS, and what is beyond waits for one of them. One more gives
 * back what clients had, which no client can stop. Results return to the event
 * loop by an ev_async watcher.
 *
 * The pool's lock covers lists and counts only, never a job's work.
 */
#include <errno.h>
#include <ev.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <utlist.h>

#include <ibfs/follow.h>
#include <ibfs/fs.h>
#include <ibfs/ibfs.h>
#include <ibfs/priority.h>
#include <ibfs/thread.h>

#include "fs/quick.h"

#define STACK_SIZE	(256 << 10)
#define EXIT_WAIT_NS	200000000	/* for jobs that are about to end */
#define LINGER_NS	20000000	/* a thread that has nothing to do waits for more */

struct worker {
	struct worker *prev, *next;
	struct offload *pool;
	struct user *user;
	pid_t pid;			/* whose jobs it runs now */
	struct job *jobs;
	pthread_cond_t more;		/* jobs, while idle */
	bool idle;
};

/* A user with jobs; gone with its last worker. */
struct user {
	struct user *prev, *next;
	uid_t uid;
	struct worker *workers;
	unsigned int threads, jobs;	/* jobs: not yet running */
	struct job *waiting;		/* of clients that have no worker */
};

struct offload {
	pthread_mutex_t lock;
	pthread_cond_t none;		/* no thread is left */
	struct ev_loop *loop;
	const struct follow *follow;
	ev_async async;
	struct quick *quick;
	struct user *users;
	struct job *ended;		/* on the way to the loop */
	unsigned int threads;
	const struct priority *priority;	/* of the loop, which waits for it; or NULL */
	bool exiting;
	bool abandoned;			/* the last thread frees it */
};

void job_finish(struct job *job)
{
	if (job->quick && job->ibfs->offload->quick)
		quick_ended(job->ibfs->offload->quick, job);
	if (job->orphan)
		job->disowned(job);
	else
		job->done(job);
}

void jobs_finish(struct job *jobs)
{
	struct job *job, *tmp;

	DL_FOREACH_SAFE(jobs, job, tmp) {
		DL_DELETE(jobs, job);
		job_finish(job);
	}
}

static void on_async(struct ev_loop *loop, ev_async *async, int revents)
{
	struct offload *pool = async->data;
	struct job *jobs;

	(void)loop;
	(void)revents;
	pthread_mutex_lock(&pool->lock);
	jobs = pool->ended;
	pool->ended = NULL;
	pthread_mutex_unlock(&pool->lock);
	jobs_finish(jobs);
}

/* What never ran, or ended after the loop looked last. */
static void drop_jobs(struct job *jobs)
{
	struct job *job, *tmp;

	DL_FOREACH_SAFE(jobs, job, tmp) {
		DL_DELETE(jobs, job);
		job->disowned(job);
	}
}

static struct offload *pool_new(struct ibfs *ibfs)
{
	struct offload *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->none, NULL);
	pool->loop = ibfs->loop;
	pool->follow = ibfs->follow;
	pool->priority = ibfs->priority;
	ev_async_init(&pool->async, on_async);
	pool->async.data = pool;
	ev_async_start(pool->loop, &pool->async);
	ev_unref(pool->loop);
	return pool;
}

static void pool_free(struct offload *pool)
{
	drop_jobs(pool->ended);
	pthread_cond_destroy(&pool->none);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

static struct user *user_get(struct offload *pool, uid_t uid)
{
	struct user *user;

	DL_SEARCH_SCALAR(pool->users, user, uid, uid);
	if (user)
		return user;
	user = calloc(1, sizeof(*user));
	if (user) {
		user->uid = uid;
		DL_APPEND(pool->users, user);
	}
	return user;
}

static void user_put(struct offload *pool, struct user *user)
{
	if (user->threads || user->jobs)
		return;
	DL_DELETE(pool->users, user);
	free(user);
}

/* The worker takes what waits of its client, in order. */
static void adopt(struct worker *worker)
{
	struct user *user = worker->user;
	struct job *job, *tmp;

	DL_FOREACH_SAFE(user->waiting, job, tmp) {
		if (job->pid != worker->pid)
			continue;
		DL_DELETE(user->waiting, job);
		DL_APPEND(worker->jobs, job);
	}
}

/* The next job of this client, or, when it has no more, of one that waits. */
static struct job *next_job(struct worker *worker)
{
	struct user *user = worker->user;
	struct job *job;

	if (worker->pool->exiting)
		return NULL;
	if (!worker->jobs && user->waiting && worker->pid != OFFLOAD_GIVES_BACK) {
		worker->pid = user->waiting->pid;
		adopt(worker);
	}
	job = worker->jobs;
	if (job) {
		DL_DELETE(worker->jobs, job);
		user->jobs--;
	}
	return job;
}

/* As next_job(), after a while without one: starting a thread costs more than most jobs. */
static struct job *await_job(struct worker *worker)
{
	struct job *job = next_job(worker);
	struct timespec until;
	int err = 0;

	if (job)
		return job;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LINGER_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	worker->idle = true;
	while (!job && !err && !worker->pool->exiting) {
		err = pthread_cond_timedwait(&worker->more, &worker->pool->lock, &until);
		job = next_job(worker);
	}
	worker->idle = false;
	return job;
}

static void run(const struct offload *pool, struct priority *priority, struct job *job)
{
	/* As urgent as what waits for it. */
	if (pool->priority && pool->priority->realtime)
		priority_urge(priority);
	job->run(job);
	priority_check(priority);
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	struct offload *pool = worker->pool;
	struct user *user = worker->user;
	struct priority priority;
	struct job *job;
	bool last;

	priority_init(&priority, pool->priority);
	pthread_mutex_lock(&pool->lock);
	while ((job = await_job(worker))) {
		if (!job->orphan) {
			pthread_mutex_unlock(&pool->lock);
			run(pool, &priority, job);
			pthread_mutex_lock(&pool->lock);
		}
		DL_APPEND(pool->ended, job);
		if (!pool->exiting)
			ev_async_send(pool->loop, &pool->async);
	}
	DL_DELETE(user->workers, worker);
	user->threads--;
	DL_CONCAT(user->waiting, worker->jobs);
	pthread_cond_destroy(&worker->more);
	free(worker);
	user_put(pool, user);
	if (!--pool->threads)
		pthread_cond_signal(&pool->none);
	last = !pool->threads && pool->abandoned;
	pthread_mutex_unlock(&pool->lock);
	if (last)
		pool_free(pool);
	return NULL;
}

static int start_thread(struct worker *worker)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	follow_thread(worker->pool->follow, &attr);
	err = thread_create(&thread, &attr, worker_main, worker);
	pthread_attr_destroy(&attr);
	return err;
}

static struct worker *worker_new(struct offload *pool, struct user *user, pid_t pid)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	pthread_condattr_t attr;

	if (!worker)
		return NULL;
	worker->pool = pool;
	worker->user = user;
	worker->pid = pid;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&worker->more, &attr);
	pthread_condattr_destroy(&attr);
	if (start_thread(worker)) {
		pthread_cond_destroy(&worker->more);
		free(worker);
		return NULL;
	}
	DL_APPEND(user->workers, worker);
	user->threads++;
	pool->threads++;
	adopt(worker);
	return worker;
}

/* The client's worker, or one that waits for work and is the client's from now on. */
static struct worker *worker_find(const struct user *user, pid_t pid)
{
	struct worker *worker;

	DL_SEARCH_SCALAR(user->workers, worker, pid, pid);
	if (worker || pid == OFFLOAD_GIVES_BACK)
		return worker;
	DL_FOREACH(user->workers, worker)
		if (worker->idle && !worker->jobs && worker->pid != OFFLOAD_GIVES_BACK)
			break;
	if (worker)
		worker->pid = pid;
	return worker;
}

/* always: nobody can be told that there is no room for it. It may wait without a thread then. */
static int submit(struct offload *pool, struct job *job, bool always)
{
	struct user *user = user_get(pool, job->uid);
	struct worker *worker;

	if (!user)
		return -ENOMEM;
	if (user->jobs >= OFFLOAD_WAITING && !always)
		return -EAGAIN;
	worker = worker_find(user, job->pid);
	if (!worker && (user->threads < OFFLOAD_THREADS || job->pid == OFFLOAD_GIVES_BACK))
		worker = worker_new(pool, user, job->pid);
	if (!worker && !user->threads && !always) {
		user_put(pool, user);
		return -EAGAIN;
	}
	if (worker)
		DL_APPEND(worker->jobs, job);
	else
		DL_APPEND(user->waiting, job);
	user->jobs++;
	if (worker && worker->idle)
		pthread_cond_signal(&worker->more);
	return 0;
}

static int start_job(struct offload *pool, struct job *job, bool always)
{
	int ret;

	pthread_mutex_lock(&pool->lock);
	ret = submit(pool, job, always);
	pthread_mutex_unlock(&pool->lock);
	if (!ret && job->quick && pool->quick)
		quick_away(pool->quick, job);
	return ret;
}

static struct offload *pool_of(struct ibfs *ibfs)
{
	if (!ibfs->offload)
		ibfs->offload = pool_new(ibfs);
	return ibfs->offload;
}

int offload(struct job *job)
{
	struct offload *pool = pool_of(job->ibfs);

	if (!pool)
		return -ENOMEM;
	job->orphan = job->away = false;
	if (job->quick && pool->quick && quick_submit(pool->quick, job))
		return 0;
	return start_job(pool, job, false);
}

int offload_always(struct job *job)
{
	struct offload *pool = pool_of(job->ibfs);

	job->orphan = job->away = false;
	return pool ? start_job(pool, job, true) : -ENOMEM;
}

void offload_run_loop(struct ibfs *ibfs)
{
	struct offload *pool = pool_of(ibfs);

	if (pool && !pool->quick)
		pool->quick = quick_new(ibfs);
	if (pool && pool->quick)
		quick_run(pool->quick);
	else
		while (!ibfs->ended && ev_run(ibfs->loop, EVRUN_ONCE))
			;
}

/* Whoever takes it from a list does so under the lock, too, and sees that nobody wants it. */
void offload_disown(struct job *job)
{
	struct offload *pool = job->ibfs->offload;

	if (pool)
		pthread_mutex_lock(&pool->lock);
	job->orphan = true;
	if (pool)
		pthread_mutex_unlock(&pool->lock);
}

static void drop_users(struct offload *pool)
{
	struct user *user, *tmp;
	struct worker *worker;

	DL_FOREACH_SAFE(pool->users, user, tmp) {
		drop_jobs(user->waiting);
		user->waiting = NULL;
		DL_FOREACH(user->workers, worker) {
			drop_jobs(worker->jobs);
			worker->jobs = NULL;
		}
		user->jobs = 0;
		user_put(pool, user);
	}
}

/* A thread that is stuck keeps the pool, and a process that ends doesn't wait for it. */
void offload_exit(struct ibfs *ibfs)
{
	struct offload *pool = ibfs->offload;
	struct timespec until;
	struct worker *worker;
	struct user *user;
	bool idle;

	if (!pool)
		return;
	ibfs->offload = NULL;
	quick_free(pool->quick);
	ev_ref(pool->loop);
	ev_async_stop(pool->loop, &pool->async);

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += EXIT_WAIT_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&pool->lock);
	pool->exiting = true;
	DL_FOREACH(pool->users, user)
		DL_FOREACH(user->workers, worker)
			pthread_cond_signal(&worker->more);
	while (pool->threads)
		if (pthread_cond_timedwait(&pool->none, &pool->lock, &until))
			break;
	drop_users(pool);
	idle = !pool->threads;
	pool->abandoned = !idle;
	pthread_mutex_unlock(&pool->lock);
	if (idle)
		pool_free(pool);
}
