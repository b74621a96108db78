/* SPDX-License-Identifier: BSD-2-Clause */
/* Helper threads, src/fs/offload.c: one named test each. */
#include <errno.h>
#include <ev.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ibfs/fs.h>
#include <ibfs/ibfs.h>

#include "check.h"

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

/* --- quick jobs --- */

static pthread_t ran_on;
static int ticks;

static void run_where(struct job *job)
{
	(void)job;
	ran_on = pthread_self();
}

static int start_quick(uid_t uid, void (*run)(struct job *), int n)
{
	struct work *work = work_new((pid_t)uid, uid, run, n);
	int ret;

	work->job.quick = true;
	ret = offload(&work->job);
	if (ret)
		free(work);
	return ret;
}

static void test_quick(void)
{
	for (int i = 1; i <= 1000; i++) {
		ran_on = 0;
		CHECK(start_quick(1, run_where, i) == 0);
		CHECK(!ran_on);
		CHECK(loop_until(&done, i));
		CHECK(pthread_equal(ran_on, pthread_self()));
	}
	CHECK(in_order);
}

/* While the first thread is stuck: other jobs are done, then it may go on. */
static void on_stuck_tick(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)revents;
	if (!started)
		return;
	CHECK(!pthread_equal(*(pthread_t *)timer->data, pthread_self()));
	if (!ticks++)
		CHECK(start_quick(2, run_where, 10) == 0);
	if (done != 1)
		return;
	CHECK(last == 10 && pthread_equal(ran_on, pthread_self()));
	ev_timer_stop(loop, timer);
	open_gate(1);
}

static void start_stuck_tick(ev_timer *timer, pthread_t *first,
			     void (*fn)(struct ev_loop *, ev_timer *, int))
{
	*first = pthread_self();
	ev_timer_init(timer, fn, 0.01, 0.01);
	timer->data = first;
	ev_timer_start(ibfs.loop, timer);
}

static void test_quick_stuck(void)
{
	pthread_t first;
	ev_timer timer;

	start_stuck_tick(&timer, &first, on_stuck_tick);
	CHECK(start_quick(1, run_stuck, 11) == 0);
	CHECK(loop_until(&done, 2));
	CHECK(last == 11);
	/* Its user is left to helpers now, others aren't, and the first thread leads again. */
	CHECK(start_quick(1, run_where, 12) == 0);
	CHECK(loop_until(&done, 3));
	CHECK(!pthread_equal(ran_on, first));
	CHECK(start_quick(3, run_where, 13) == 0);
	CHECK(loop_until(&done, 4));
	CHECK(pthread_equal(ran_on, first));
}

/* Two in one another, which come back in the order in which they went. */
static void on_nested_tick(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)revents;
	if (started == 1 && !ticks++)
		CHECK(start_quick(2, run_stuck, 2) == 0);
	if (started != 2)
		return;
	ev_timer_stop(loop, timer);
	open_gate(2);
}

static void test_quick_nested(void)
{
	pthread_t first;
	ev_timer timer;

	start_stuck_tick(&timer, &first, on_nested_tick);
	CHECK(start_quick(1, run_stuck, 1) == 0);
	CHECK(loop_until(&done, 2));
	CHECK(start_quick(3, run_where, 3) == 0);
	CHECK(loop_until(&done, 3));
	CHECK(pthread_equal(ran_on, first));
}

static void test_quick_disown(void)
{
	struct work *work = work_new(1, 1, run_nothing, 1);

	work->job.quick = true;
	CHECK(offload(&work->job) == 0);
	offload_disown(&work->job);
	CHECK(loop_until((int *)&disowned, 1));
	CHECK(!started && !done);
	CHECK(start_quick(1, run_nothing, 2) == 0);
	offload_exit(&ibfs);
	CHECK(disowned == 2 && !started);
}

/* The loop ends while the thread that began it is stuck for ever. */
static void on_end_tick(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)timer;
	(void)revents;
	if (started)
		ev_break(loop, EVBREAK_ALL);
}

static void leave(struct ibfs *of)
{
	CHECK(of == &ibfs);
	offload_exit(of);
	_exit(failed);
}

static void test_quick_end(void)
{
	pthread_t first;
	ev_timer timer;

	ibfs.leave = leave;
	start_stuck_tick(&timer, &first, on_end_tick);
	CHECK(start_quick(1, run_stuck, 1) == 0);
	ev_run(ibfs.loop, 0);
	CHECK(!"the loop came back");
}

static const struct test {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "order", test_order },
	{ "stuck", test_stuck },
	{ "bound", test_bound },
	{ "again", test_again },
	{ "disown", test_disown },
	{ "exit", test_exit },
	{ "exit_idle", test_exit_idle },
	{ "quick", test_quick },
	{ "quick_stuck", test_quick_stuck },
	{ "quick_nested", test_quick_nested },
	{ "quick_disown", test_quick_disown },
	{ "quick_end", test_quick_end },
	{ 0 },
};

int main(int argc, char **argv)
{
	const struct test *test;

	sem_init(&gate, 0, 0);
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
