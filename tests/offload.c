/* SPDX-License-Identifier: BSD-2-Clause */
/* Helper threads, src/fs/offload.c: one named test each. */
#include <errno.h>
#include <ev.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ibfs/fs.h>
#include <ibfs/ibfs.h>
#include <ibfs/loop.h>

#include "check.h"
#include "fs/quick.h"

static struct ibfs ibfs;
static sem_t gate;			/* what a stuck job waits for */
static atomic_int started;
static int done, last;			/* in the loop */
static atomic_int disowned;
static bool in_order = true;

struct work {
	struct job job;
	int n;
};

static void run_nothing(struct job *job)
{
	(void)job;
	started++;
}

static void run_stuck(struct job *job)
{
	(void)job;
	started++;
	while (sem_wait(&gate))
		;
}

static void on_done(struct job *job)
{
	struct work *work = (struct work *)job;

	done++;
	in_order = in_order && work->n > last;
	last = work->n;
	free(work);
}

static void on_disowned(struct job *job)
{
	disowned++;
	free(job);
}

static struct work *work_new(pid_t pid, uid_t uid, void (*run)(struct job *), int n)
{
	struct work *work = calloc(1, sizeof(*work));

	work->job = (struct job){
		.ibfs = &ibfs, .pid = pid, .uid = uid, .run = run,
		.done = on_done, .disowned = on_disowned,
	};
	work->n = n;
	return work;
}

static int start(pid_t pid, uid_t uid, void (*run)(struct job *), int n)
{
	struct work *work = work_new(pid, uid, run, n);
	int ret = offload(&work->job);

	if (ret)
		free(work);
	return ret;
}

static void on_tick(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)loop;
	(void)timer;
	(void)revents;
}

/* Turn the loop until *count is want; false after ten seconds. */
static bool loop_until(const int *count, int want)
{
	ev_tstamp end = ev_time() + 10;
	ev_timer tick;

	ev_timer_init(&tick, on_tick, 0.01, 0.01);
	ev_timer_start(ibfs.loop, &tick);
	while (*count != want && ev_time() < end)
		ev_run(ibfs.loop, EVRUN_ONCE);
	ev_timer_stop(ibfs.loop, &tick);
	return *count == want;
}

static void wait_started(int want)
{
	for (int i = 0; i < 10000 && started != want; i++)
		ev_sleep(0.001);
	CHECK(started == want);
}

static void open_gate(int n)
{
	while (n--)
		sem_post(&gate);
}

/* Of which one may be ThreadSanitizer's. */
#ifdef __SANITIZE_THREAD__
#define OTHER_THREADS	1
#else
#define OTHER_THREADS	0
#endif

static unsigned int threads(void)
{
	unsigned int n = 0;
	char line[128];
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "Threads:", 8))
			n = (unsigned int)strtoul(line + 8, NULL, 10);
	if (file)
		fclose(file);
	return n - OTHER_THREADS;
}

static void wait_threads(unsigned int want)
{
	for (int i = 0; i < 10000 && threads() != want; i++)
		ev_sleep(0.001);
	CHECK(threads() == want);
}

static void test_order(void)
{
	for (int i = 1; i <= 100; i++)
		CHECK(start(1, 0, run_nothing, i) == 0);
	CHECK(loop_until(&done, 100));
	CHECK(in_order);
	wait_threads(1);
}

/* A client that hangs stops no other, and its own next job comes after it. */
static void test_stuck(void)
{
	CHECK(start(1, 0, run_stuck, 1) == 0);
	CHECK(start(1, 0, run_nothing, 2) == 0);
	CHECK(start(2, 0, run_nothing, 3) == 0);
	CHECK(loop_until(&done, 1));
	CHECK(last == 3);
	CHECK(threads() <= 3);
	open_gate(1);
	CHECK(loop_until(&done, 3));
	CHECK(last == 2);
	wait_threads(1);
}

/* A user's threads are bounded: what is beyond waits, other users don't. */
static void test_bound(void)
{
	for (int i = 0; i < OFFLOAD_THREADS; i++)
		CHECK(start(1 + i, 1000, run_stuck, i) == 0);
	wait_started(OFFLOAD_THREADS);
	for (int i = 0; i < 10; i++)
		CHECK(start(500 + i % 2, 1000, run_nothing, 100 + i) == 0);
	CHECK(threads() == OFFLOAD_THREADS + 1);
	CHECK(start(9, 1001, run_nothing, 1) == 0);
	CHECK(loop_until(&done, 1));
	CHECK(last == 1);
	/* One thread that is free takes all that waits. */
	open_gate(1);
	CHECK(loop_until(&done, 12));
	CHECK(last == 109);
	open_gate(OFFLOAD_THREADS - 1);
	CHECK(loop_until(&done, 11 + OFFLOAD_THREADS));
	wait_threads(1);
}

/* A user whose threads are all stuck gets rid of what it had, in order and on one thread. */
static void test_gives_back(void)
{
	for (int i = 0; i <= OFFLOAD_THREADS; i++)
		CHECK(start(1 + i, 1000, run_stuck, 100 + i) == 0);
	wait_started(OFFLOAD_THREADS);
	for (int i = 1; i <= 10; i++) {
		struct work *work = work_new(OFFLOAD_GIVES_BACK, 1000, run_nothing, i);

		CHECK(offload_always(&work->job) == 0);
		CHECK(i % 2 || loop_until(&done, i));
		CHECK(threads() <= OFFLOAD_THREADS + 2);
	}
	CHECK(in_order && started == OFFLOAD_THREADS + 10);
	open_gate(1 + OFFLOAD_THREADS);
	CHECK(loop_until(&done, 11 + OFFLOAD_THREADS));
	wait_threads(1);
}

static void test_again(void)
{
	CHECK(start(1, 0, run_stuck, 0) == 0);
	wait_started(1);
	for (int i = 0; i < OFFLOAD_WAITING; i++)
		CHECK(start(1, 0, run_nothing, i) == 0);
	CHECK(start(1, 0, run_nothing, 0) == -EAGAIN);
	CHECK(start(2, 0, run_nothing, 0) == -EAGAIN);
	CHECK(start(1, 1, run_nothing, 0) == 0);
	open_gate(1);
	CHECK(loop_until(&done, 2 + OFFLOAD_WAITING));
}

/* What was disowned before it began doesn't: it might write where its client has something else. */
static void test_disown(void)
{
	struct work *stuck = work_new(1, 0, run_stuck, 1), *behind = work_new(1, 0, run_stuck, 2);

	CHECK(offload(&stuck->job) == 0);
	CHECK(offload(&behind->job) == 0);
	wait_started(1);
	offload_disown(&stuck->job);
	offload_disown(&behind->job);
	open_gate(1);
	CHECK(loop_until((int *)&disowned, 2));
	CHECK(done == 0 && started == 1);
}

/* The end doesn't wait for what hangs, and frees what never ran. */
static void test_exit(void)
{
	ev_tstamp start_time = ev_time();

	CHECK(start(1, 0, run_stuck, 1) == 0);
	wait_started(1);
	CHECK(start(1, 0, run_nothing, 2) == 0);
	CHECK(start(2, 0, run_nothing, 3) == 0);
	wait_started(2);
	offload_exit(&ibfs);
	CHECK(ev_time() - start_time < 5);
	/* What ran on the second client's thread, and what waited on the first's. */
	CHECK(done == 0 && disowned >= 1);
	open_gate(1);
	wait_threads(1);
	CHECK(disowned == 3);
}

/* Jobs that ended before the loop looked are freed too. */
static void test_exit_idle(void)
{
	for (int i = 0; i < 20; i++)
		CHECK(start(i, 0, run_nothing, i) == 0);
	offload_exit(&ibfs);
	CHECK(done == 0 && disowned == 20);
	wait_threads(1);
	offload_exit(&ibfs);
}

/* A thread that keeps to one processor makes threads that needn't. */
static cpu_set_t helper_set;

static void run_set(struct job *job)
{
	(void)job;
	sched_getaffinity(0, sizeof(helper_set), &helper_set);
	started++;
}

static void *start_pinned(void *arg)
{
	const cpu_set_t *set = arg;

	CHECK(!sched_setaffinity(0, sizeof(*set), set));
	CHECK(start(1, 0, run_set, 1) == 0);
	return NULL;
}

static void test_processors(void)
{
	cpu_set_t all, one;
	pthread_t thread;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &one);
	CHECK(!pthread_create(&thread, NULL, start_pinned, &one));
	pthread_join(thread, NULL);
	CHECK(loop_until(&done, 1));
	CHECK(CPU_EQUAL(&helper_set, &all));
}

/* --- quick jobs --- */

static pthread_t ran_on, first;
static atomic_bool spins;

static void run_where(struct job *job)
{
	(void)job;
	ran_on = pthread_self();
}

/* What doesn't sleep, and doesn't end either. */
static void run_busy(struct job *job)
{
	(void)job;
	started++;
	while (spins)
		;
}

/* Each of another client's. */
static struct work *quick_new_work(uid_t uid, void (*run)(struct job *), int n)
{
	static pid_t pid;
	struct work *work = work_new(++pid, uid, run, n);

	work->job.quick = true;
	return work;
}

static int start_quick(uid_t uid, void (*run)(struct job *), int n)
{
	struct work *work = quick_new_work(uid, run, n);
	int ret = offload(&work->job);

	if (ret)
		free(work);
	return ret;
}

/* Run the loop as the daemon does, until so many jobs were done. */
static int wanted;
static ev_tstamp deadline;

static void on_look(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)loop;
	(void)timer;
	(void)revents;
	if (done >= wanted || ev_time() > deadline)
		loop_end(&ibfs);
}

static bool run_until(int want)
{
	ev_timer look;

	wanted = want;
	deadline = ev_time() + 20;
	ibfs.ended = false;
	ev_timer_init(&look, on_look, 0.001, 0.001);
	ev_timer_start(ibfs.loop, &look);
	offload_run_loop(&ibfs);
	ev_timer_stop(ibfs.loop, &look);
	return done == want;
}

/* Is a job of the user inline now? It is run, and done. */
static bool is_inline(uid_t uid)
{
	ran_on = 0;
	CHECK(start_quick(uid, run_where, 0) == 0);
	CHECK(run_until(done + 1));
	return pthread_equal(ran_on, first);
}

static void test_quick(void)
{
	CHECK(run_until(0));
	for (int i = 1; i <= 1000; i++)
		CHECK(start_quick(1 + i % 2, run_where, i) == 0);
	CHECK(!ran_on);
	CHECK(run_until(1000));
	CHECK(in_order);
	CHECK(pthread_equal(ran_on, first));
	CHECK(is_inline(1));
}

/* The loop goes on on another thread, where others' quick jobs are inline. */
static void stuck(void (*run)(struct job *))
{
	CHECK(run_until(0));
	CHECK(start_quick(1, run, 1) == 0);
	CHECK(start_quick(2, run_where, 2) == 0);
}

/* A timer of the loop on another thread, for what the first one can't do. */
struct other {
	ev_timer timer;
	void (*then)(void);
	int done;			/* jobs, before that */
};

static void on_other(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct other *other = timer->data;

	(void)revents;
	if (done < other->done)
		return;
	CHECK(!pthread_equal(first, pthread_self()));
	ev_timer_stop(loop, timer);
	other->then();
}

static void start_other(struct other *other, int after, void (*then)(void))
{
	other->then = then;
	other->done = after;
	ev_timer_init(&other->timer, on_other, 0.001, 0.001);
	other->timer.data = other;
	ev_timer_start(ibfs.loop, &other->timer);
}

static void let_one_go(void)
{
	CHECK(last == 2 && pthread_equal(ran_on, pthread_self()));
	spins = false;
	open_gate(1);
}

static void test_quick_stuck(void)
{
	struct other other;

	stuck(run_stuck);
	start_other(&other, 1, let_one_go);
	CHECK(run_until(2));
	CHECK(last == 1);
	CHECK(!is_inline(1) && is_inline(3));
}

static void test_quick_busy(void)
{
	struct other other;

	spins = true;
	stuck(run_busy);
	start_other(&other, 1, let_one_go);
	CHECK(run_until(2));
	CHECK(!is_inline(1) && is_inline(3));
}

/* It is noticed without a look at the thread's state, too, for which there is no descriptor. */
static void test_quick_no_files(void)
{
	struct rlimit limit, none = { 0 };
	struct other other;

	getrlimit(RLIMIT_NOFILE, &limit);
	none.rlim_max = limit.rlim_max;
	stuck(run_stuck);
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	start_other(&other, 1, let_one_go);
	CHECK(run_until(2));
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
}

/* The first job comes from a thread that ends: the loop's own is looked at all the same. */
static void *start_first(void *arg)
{
	(void)arg;
	CHECK(start_quick(3, run_where, 0) == 0);
	return NULL;
}

static void test_quick_first(void)
{
	struct other other;
	pthread_t thread;

	CHECK(run_until(0));
	CHECK(!pthread_create(&thread, NULL, start_first, NULL));
	pthread_join(thread, NULL);
	CHECK(run_until(1));
	CHECK(start_quick(1, run_stuck, 1) == 0);
	CHECK(start_quick(2, run_where, 2) == 0);
	start_other(&other, 2, let_one_go);
	CHECK(run_until(3));
	CHECK(last == 1);
}

/* Users one after the other, more than may be inline at a time: the loop goes on. */
enum { USERS = 100 };

static void let_all_go(void)
{
	open_gate(USERS);
}

static void test_quick_many(void)
{
	struct other other;

	CHECK(run_until(0));
	for (int i = 0; i < USERS; i++)
		CHECK(start_quick(1000 + i, run_stuck, i) == 0);
	CHECK(start_quick(1, run_where, USERS) == 0);
	start_other(&other, 1, let_all_go);
	CHECK(run_until(1 + USERS));
	CHECK(started == USERS);
	/* So many penalties that nobody's jobs are inline, which jobs end, and not time. */
	CHECK(!is_inline(1));
	wait_threads(2);
}

/* A user takes one owner of the loop away, whatever was taken before that. */
static void let_both_go(void)
{
	wait_started(2);
	CHECK(last == 3 && threads() == 4);	/* first, owner, watcher, helper */
	open_gate(2);
}

static void test_quick_twice(void)
{
	struct other other;

	CHECK(run_until(0));
	CHECK(start_quick(1, run_stuck, 1) == 0);
	CHECK(start_quick(1, run_stuck, 2) == 0);
	CHECK(start_quick(2, run_where, 3) == 0);
	start_other(&other, 1, let_both_go);
	CHECK(run_until(3));
}

/* Jobs of another user, until a penalty would have ended. */
static void do_jobs(int num)
{
	int before = done;

	for (int n; num; num -= n) {
		n = num < 1000 ? num : 1000;
		for (int i = 0; i < n; i++)
			CHECK(start_quick(2, run_nothing, 0) == 0);
		before += n;
		CHECK(run_until(before));
	}
}

/* A penalty lasts for so many jobs, and as long as the user has one that is stuck. */
static void test_quick_penalty(void)
{
	struct other other;

	stuck(run_stuck);
	start_other(&other, 1, let_one_go);
	CHECK(run_until(2));
	CHECK(!is_inline(1));
	do_jobs(INLINE_PENALTY - 5);
	CHECK(!is_inline(1));
	CHECK(start_quick(1, run_stuck, 0) == 0);
	do_jobs(INLINE_PENALTY);
	CHECK(!is_inline(1) && is_inline(3));
	open_gate(1);
	CHECK(run_until(done + 1));
	CHECK(is_inline(1));
}

static void test_quick_disown(void)
{
	struct work *work = quick_new_work(1, run_nothing, 1);

	CHECK(run_until(0));
	CHECK(offload(&work->job) == 0);
	offload_disown(&work->job);
	CHECK(run_until(0));
	CHECK(disowned == 1 && !started);
	CHECK(start_quick(1, run_nothing, 2) == 0);
	offload_exit(&ibfs);
	CHECK(disowned == 2 && !started);
}

/* The loop ends while the thread that began it is stuck for ever, and so are others. */
static void leave(struct ibfs *of)
{
	CHECK(of == &ibfs && started == 3);
	offload_exit(of);
	_exit(failed);
}

static void end_stuck(void)
{
	loop_end(&ibfs);
}

static void test_quick_end(void)
{
	struct other other;

	ibfs.leave = leave;
	CHECK(run_until(0));
	for (int i = 1; i <= 3; i++)
		CHECK(start_quick(i, run_stuck, i) == 0);
	CHECK(start_quick(4, run_where, 4) == 0);
	start_other(&other, 1, end_stuck);
	wanted = INT_MAX;
	ibfs.ended = false;
	offload_run_loop(&ibfs);
	CHECK(!"the loop came back");
}

/* The first thread ends the program while another is stuck, which comes back afterwards. */
static sem_t late_gate;

static void run_late(struct job *job)
{
	(void)job;
	started++;
	while (sem_wait(&late_gate))
		;
}

static void test_quick_late(void)
{
	struct other other;

	stuck(run_stuck);
	CHECK(start_quick(3, run_late, 3) == 0);
	CHECK(start_quick(4, run_where, 2) == 0);
	start_other(&other, 2, let_one_go);
	CHECK(run_until(3));
	offload_exit(&ibfs);
	wait_threads(2);
	CHECK(started == 2 && !disowned);
	sem_post(&late_gate);
	wait_threads(1);
	CHECK(disowned == 1);
}

static const struct test {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "order", test_order },
	{ "stuck", test_stuck },
	{ "bound", test_bound },
	{ "gives_back", test_gives_back },
	{ "again", test_again },
	{ "disown", test_disown },
	{ "exit", test_exit },
	{ "exit_idle", test_exit_idle },
	{ "processors", test_processors },
	{ "quick", test_quick },
	{ "quick_stuck", test_quick_stuck },
	{ "quick_busy", test_quick_busy },
	{ "quick_no_files", test_quick_no_files },
	{ "quick_first", test_quick_first },
	{ "quick_many", test_quick_many },
	{ "quick_twice", test_quick_twice },
	{ "quick_penalty", test_quick_penalty },
	{ "quick_disown", test_quick_disown },
	{ "quick_end", test_quick_end },
	{ "quick_late", test_quick_late },
	{ 0 },
};

int main(int argc, char **argv)
{
	const struct test *test;

	first = pthread_self();
	sem_init(&gate, 0, 0);
	sem_init(&late_gate, 0, 0);
	ibfs.loop = ev_loop_new(EVFLAG_AUTO);
	for (test = tests; test->name; test++)
		if (argc == 2 && !strcmp(test->name, argv[1]))
			break;
	if (!test->name)
		return 2;
	test->run();
	offload_exit(&ibfs);
	ev_loop_destroy(ibfs.loop);
	return failed;
}
