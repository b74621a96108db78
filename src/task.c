/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deferred work: one queue, run from the event loop. A prepare watcher runs
 * what is queued once in each turn of the loop, so that tasks and descriptors
 * take turns; while anything waits an idle watcher, whose callback does
 * nothing, keeps the loop from sleeping. With an empty queue neither costs
 * anything.
 */
#include <ev.h>
#include <stdlib.h>
#include <utlist.h>

#include <ibfs/ibfs.h>

enum { ROUNDS = 16 };
static const ev_tstamp TURN_SECONDS = 50e-6;

struct taskq {
	struct ev_loop *loop;
	struct task *head;
	struct ev_prepare prepare;
	struct ev_idle idle;
};

/* Tasks that go on have several rounds in a turn, while those are short: a turn costs too. */
static void prepare_cb(struct ev_loop *loop, struct ev_prepare *w, int revents)
{
	ev_tstamp end = ev_time() + TURN_SECONDS;

	(void)loop;
	(void)revents;
	for (int i = 0; i < ROUNDS; i++)
		if (!taskq_run(w->data) || ev_time() > end)
			break;
}

static void idle_cb(struct ev_loop *loop, struct ev_idle *w, int revents)
{
	(void)loop;
	(void)w;
	(void)revents;
}

struct taskq *taskq_new(struct ev_loop *loop)
{
	struct taskq *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->loop = loop;
	ev_prepare_init(&q->prepare, prepare_cb);
	q->prepare.data = q;
	/* After the other prepare watchers, whose tasks then run in this turn. */
	ev_set_priority(&q->prepare, EV_MINPRI);
	ev_idle_init(&q->idle, idle_cb);
	ev_set_priority(&q->idle, EV_MINPRI);
	ev_prepare_start(loop, &q->prepare);
	ev_unref(loop);		/* an empty queue doesn't keep a loop going */
	return q;
}

static void taskq_remove(struct taskq *q, struct task *task)
{
	DL_DELETE(q->head, task);
	task->prev = NULL;
	if (!q->head)
		ev_idle_stop(q->loop, &q->idle);
}

void taskq_free(struct taskq *q)
{
	if (!q)
		return;
	while (q->head)
		taskq_remove(q, q->head);
	ev_ref(q->loop);
	ev_prepare_stop(q->loop, &q->prepare);
	free(q);
}

void task_queue(struct taskq *q, struct task *task)
{
	if (task->prev)		/* set in every member of a list, NULL in an idle task */
		return;
	if (!q->head)
		ev_idle_start(q->loop, &q->idle);
	DL_APPEND(q->head, task);
}

void task_cancel(struct taskq *q, struct task *task)
{
	if (task->prev)
		taskq_remove(q, task);
}

bool taskq_run(struct taskq *q)
{
	struct task end = { .fn = NULL };
	struct task *task;

	if (!q->head)
		return false;
	/* Up to a mark: what the tasks queue comes behind it. */
	task_queue(q, &end);
	while ((task = q->head) != NULL) {
		taskq_remove(q, task);
		if (task == &end)
			break;
		if (task->fn)	/* NULL: the mark of a run that this one is nested in */
			task->fn(task);
	}
	return q->head != NULL;
}

bool taskq_only(const struct taskq *q, const struct task *task)
{
	return q->head == task && !task->next;
}
