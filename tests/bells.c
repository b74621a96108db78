/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bells and the loop's lock: an event loop here, clients in processes of their
 * own that share a page with it. Exits 77 where the kernel can't.
 */
#include <errno.h>
#include <ev.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include <ibfs/bell.h>
#include <ibfs/conf.h>
#include <ibfs/ibfs.h>
#include <ibfs/loop.h>

#define PATIENCE	20	/* seconds, until something is taken to be lost */

/* What a client shares: it counts posted up and rings, and waits for served. */
struct page {
	struct bell_words words;
	atomic_uint posted, served;
};

struct client {
	struct bell bell;		/* first */
	struct ibfs *ibfs;
	struct page *page;
	unsigned int seen;
	unsigned int rings;
	struct ev_timer timer;		/* started by each ring, where on_timer counts */
	unsigned int timers;
	struct task task;		/* queued by each ring, runs */
	unsigned int tasks;
	unsigned int agains;		/* looks that it still wants, unasked */
};

static void die(const char *what)
{
	fprintf(stderr, "bells: %s\n", what);
	exit(1);
}

static void task_fn(struct task *task)
{
	((struct client *)((char *)task - offsetof(struct client, task)))->tasks++;
}

static bool rung(struct bell *bell)
{
	struct client *client = (struct client *)bell;
	unsigned int posted = client->page->posted;

	if (bell->slot && !loop_lent(client->ibfs->lock))
		die("the lock isn't the thread's");
	client->rings++;
	client->bell.again = client->agains > 0;
	client->agains -= client->bell.again;
	if (posted == client->seen)
		return false;
	client->seen = posted;
	task_queue(client->ibfs->tasks, &client->task);
	if (client->timer.cb && !ev_is_active(&client->timer))
		ev_timer_start(client->ibfs->loop, &client->timer);
	client->page->served = posted;
	return true;
}

static void client_init(struct client *client, struct ibfs *ibfs)
{
	*client = (struct client){ .ibfs = ibfs, .bell.rung = rung, .task.fn = task_fn };
	client->page = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (client->page == MAP_FAILED)
		die("no memory");
	client->bell.words = &client->page->words;
}

/* --- clients --- */

static void await(bool (*true_now)(const void *arg), const void *arg, const char *what)
{
	time_t end = time(NULL) + PATIENCE;

	while (!true_now(arg)) {
		sched_yield();
		if (time(NULL) > end)
			die(what);
	}
}

static bool is_served(const void *arg)
{
	const struct page *page = arg;

	return page->served == page->posted;
}

static bool is_heard(const void *arg)
{
	struct page *page = (struct page *)arg;

	return page->words.word[sched_getcpu() % BELL_WORDS] != BELL_NONE;
}

static bool pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

/* From each processor, work and the answer to it. */
static void ring_everywhere(struct page *page)
{
	cpu_set_t all;

	sched_getaffinity(0, sizeof(all), &all);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all) || !pin(cpu))
			continue;
		await(is_heard, page, "no thread waits");
		for (int i = 0; i < 1000; i++) {
			page->posted++;
			if (!bell_ring(&page->words) && !is_heard(page))
				die("nobody is there any more");
			await(is_served, page, "a ring was lost");
		}
	}
}

/* As a client shouldn't: anything in any word, and wakes. */
static void ring_wildly(struct page *page)
{
	for (unsigned int i = 0; i < 20000; i++) {
		atomic_uint *word = &page->words.word[rand() % BELL_WORDS];

		*word = i % 3 ? (unsigned int)rand() % 4 : (unsigned int)rand();
		if (i % 2)
			syscall(SYS_futex, word, FUTEX_WAKE, 100, NULL, NULL, 0);
	}
}

/* Rings as it may, but never for anything. */
static void ring_in_vain(struct page *page)
{
	time_t end = time(NULL) + PATIENCE;

	await(is_heard, page, "no thread waits");
	while (bell_ring(&page->words) || is_heard(page))
		if (time(NULL) > end)
			die("who rings in vain is heard for ever");
}

static void ring_until_killed(struct page *page)
{
	for (;;) {
		page->posted++;
		bell_ring(&page->words);
	}
}

static pid_t begin(struct client *client, void (*run)(struct page *))
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	run(client->page);
	_exit(0);
}

/* --- the loop --- */

static void on_child(struct ev_loop *loop, struct ev_timer *w, int revents)
{
	pid_t *pid = w->data;
	int status;

	(void)revents;
	if (waitpid(*pid, &status, WNOHANG) != *pid)
		return;
	ev_timer_stop(loop, w);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		die("a client failed");
	*pid = 0;
	ev_break(loop, EVBREAK_ALL);
}

static void run_until_ended(struct ibfs *ibfs, pid_t pid)
{
	struct ev_timer timer;

	ev_timer_init(&timer, on_child, 0.01, 0.01);
	timer.data = &pid;
	ev_timer_start(ibfs->loop, &timer);
	ev_run(ibfs->loop, 0);
}

static void on_break(struct ev_loop *loop, struct ev_timer *w, int revents)
{
	(void)w;
	(void)revents;
	ev_break(loop, EVBREAK_ALL);
}

static void run_for(struct ibfs *ibfs, double seconds)
{
	struct ev_timer timer;

	ev_timer_init(&timer, on_break, seconds, 0.);
	ev_timer_start(ibfs->loop, &timer);
	ev_run(ibfs->loop, 0);
}

static void test_everywhere(struct ibfs *ibfs)
{
	struct client client;

	client_init(&client, ibfs);
	if (bell_add(ibfs, &client.bell))
		die("bell_add failed");
	run_until_ended(ibfs, begin(&client, ring_everywhere));
	if (client.tasks < 1000)
		die("tasks that a ring queued didn't run");
	bell_remove(ibfs, &client.bell);
	if (bell_ring(&client.page->words))
		die("a bell that was removed has somebody there");
}

static void on_timer(struct ev_loop *loop, struct ev_timer *w, int revents)
{
	struct client *client = w->data;

	(void)revents;
	client->timers++;
	ev_break(loop, EVBREAK_ALL);
}

static void ring_once(struct page *page)
{
	await(is_heard, page, "no thread waits");
	page->posted++;
	bell_ring(&page->words);
}

/* One ring, and it is looked at over and over as long as that is wanted. */
static void test_again(struct ibfs *ibfs)
{
	struct client client;

	client_init(&client, ibfs);
	client.agains = 100;
	if (bell_add(ibfs, &client.bell))
		die("bell_add failed");
	run_until_ended(ibfs, begin(&client, ring_once));
	for (time_t end = time(NULL) + PATIENCE; client.rings < 101 && time(NULL) < end;)
		run_for(ibfs, 0.001);
	run_for(ibfs, 0.01);
	if (client.rings != 101)
		die("not as many looks as were wanted");
	client.agains = UINT_MAX;
	run_until_ended(ibfs, begin(&client, ring_once));
	bell_remove(ibfs, &client.bell);
	client.rings = 0;
	run_for(ibfs, 0.01);
	if (client.rings)
		die("a bell that was removed is looked at again");
}

/* A timer that a ring starts is due long before the loop would wake. */
static void test_timer(struct ibfs *ibfs)
{
	struct ev_timer late;
	struct client client;
	pid_t pid;

	client_init(&client, ibfs);
	ev_timer_init(&client.timer, on_timer, 0.02, 0.);
	client.timer.data = &client;
	if (bell_add(ibfs, &client.bell))
		die("bell_add failed");
	ev_timer_init(&late, on_break, PATIENCE, 0.);
	ev_timer_start(ibfs->loop, &late);
	pid = begin(&client, ring_once);
	ev_run(ibfs->loop, 0);
	ev_timer_stop(ibfs->loop, &late);
	if (!client.timers)
		die("the loop slept over a timer that a ring had started");
	waitpid(pid, NULL, 0);
	bell_remove(ibfs, &client.bell);
}

/* More bells than there is room for: those that are idle make room after a while. */
static void test_many(struct ibfs *ibfs)
{
	struct client clients[BELL_MAX + 1];

	for (int i = 0; i <= BELL_MAX; i++) {
		client_init(&clients[i], ibfs);
		if (bell_add(ibfs, &clients[i].bell) != (i < BELL_MAX ? 0 : -EAGAIN))
			die("not as many bells as there should be");
	}
	run_for(ibfs, 1.1);
	if (bell_add(ibfs, &clients[BELL_MAX].bell))
		die("idle bells make no room");
	run_until_ended(ibfs, begin(&clients[BELL_MAX], ring_everywhere));
	for (int i = 0; i <= BELL_MAX; i++)
		bell_remove(ibfs, &clients[i].bell);
}

static void test_hostile(struct ibfs *ibfs)
{
	struct client wild, vain, client;

	client_init(&wild, ibfs);
	client_init(&vain, ibfs);
	client_init(&client, ibfs);
	if (bell_add(ibfs, &wild.bell) || bell_add(ibfs, &vain.bell) || bell_add(ibfs, &client.bell))
		die("bell_add failed");
	run_until_ended(ibfs, begin(&wild, ring_wildly));
	run_until_ended(ibfs, begin(&vain, ring_in_vain));
	if (vain.bell.slot)
		die("who rang in vain still has a place");
	run_until_ended(ibfs, begin(&client, ring_everywhere));
	bell_remove(ibfs, &wild.bell);
	bell_remove(ibfs, &client.bell);
}

/* A client is killed and its page goes, while another goes on. */
static void test_killed(struct ibfs *ibfs)
{
	struct client killed, client;
	pid_t pid, other;

	client_init(&client, ibfs);
	if (bell_add(ibfs, &client.bell))
		die("bell_add failed");
	other = begin(&client, ring_everywhere);
	for (int i = 0; i < 20; i++) {
		client_init(&killed, ibfs);
		if (bell_add(ibfs, &killed.bell))
			die("bell_add failed");
		pid = begin(&killed, ring_until_killed);
		run_for(ibfs, 0.005);
		if (i % 2)
			kill(pid, SIGKILL);
		bell_remove(ibfs, &killed.bell);
		task_cancel(ibfs->tasks, &killed.task);
		munmap(killed.page, sizeof(*killed.page));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	run_until_ended(ibfs, other);
	bell_remove(ibfs, &client.bell);
}

int main(void)
{
	struct conf conf = { .bells = true, .realtime = true };
	struct ibfs ibfs = { .conf = &conf, .loop = ev_loop_new(EVFLAG_AUTO) };
	struct client client;

	ibfs.tasks = taskq_new(ibfs.loop);
	ibfs.lock = loop_lock_new(&ibfs, bells_catch_up);
	ibfs.bells = bells_new(&ibfs);
	client_init(&client, &ibfs);
	if (bell_add(&ibfs, &client.bell) == -EOPNOTSUPP) {
		puts("the kernel has no futexes in io_uring for us");
		return 77;
	}
	bell_remove(&ibfs, &client.bell);
	test_everywhere(&ibfs);
	test_timer(&ibfs);
	test_again(&ibfs);
	test_hostile(&ibfs);
	test_killed(&ibfs);
	test_many(&ibfs);
	bells_free(ibfs.bells);
	taskq_free(ibfs.tasks);
	loop_lock_free(ibfs.lock);
	ev_loop_destroy(ibfs.loop);
	return 0;
}
