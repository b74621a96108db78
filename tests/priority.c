/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread's real-time priority: taken when urged where permitted, given up
 * while busy or not urged, taken again after sleep, never inherited. Exit status 77: not permitted here.
 */
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ibfs/priority.h>

static int policy(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static int child_policy(void)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0)
		_exit(policy());
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

/* Works, or sleeps, until the policy is the one that is waited for. */
static int until(struct priority *prio, int wanted, bool busy)
{
	time_t end = time(NULL) + 30;

	while (policy() != wanted) {
		if (time(NULL) > end) {
			printf("after %s: policy %d, not %d\n", busy ? "work" : "sleep", policy(),
			       wanted);
			return 1;
		}
		if (!busy)
			usleep(20000);
		priority_urge(prio);
		priority_check(prio);
	}
	return 0;
}

/* Nobody urges any more. */
static int quiet(struct priority *prio)
{
	time_t end = time(NULL) + 30;

	while (policy() != SCHED_OTHER) {
		if (time(NULL) > end) {
			puts("not urged: still real-time");
			return 1;
		}
		usleep(20000);
		priority_check(prio);
	}
	return 0;
}

int main(void)
{
	struct sched_param param = { .sched_priority = 1 };
	struct priority prio;

	priority_init(&prio, false);
	priority_urge(&prio);
	if (policy() != SCHED_OTHER) {
		printf("not allowed: policy %d\n", policy());
		return 1;
	}
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		return 77;
	priority_init(&prio, true);
	if (policy() != SCHED_OTHER) {
		printf("not urged: policy %d\n", policy());
		return 1;
	}
	priority_urge(&prio);
	if (policy() != SCHED_FIFO || child_policy() != SCHED_OTHER) {
		printf("urged: policy %d, a child's %d\n", policy(), child_policy());
		return 1;
	}
	return until(&prio, SCHED_OTHER, true) || until(&prio, SCHED_FIFO, false) ||
	       quiet(&prio);
}
