/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Following a client from processor to processor: when, and when not. 77: there
 * is only one processor.
 */
#include <ev.h>
#include <sched.h>
#include <stdio.h>

#include <ibfs/follow.h>

static struct ibfs ibfs;
static struct follow *follow;
static cpu_set_t all;
static uint64_t requests;
static int failed;

static void check(const char *what, bool ok)
{
	if (ok)
		return;
	printf("FAILED: %s\n", what);
	failed = 1;
}

static bool may_run_everywhere(void)
{
	cpu_set_t now;

	return !sched_getaffinity(0, sizeof(now), &now) && CPU_EQUAL(&now, &all);
}

static bool runs_on(int cpu)
{
	cpu_set_t now;

	return !sched_getaffinity(0, sizeof(now), &now) && CPU_COUNT(&now) == 1 && CPU_ISSET(cpu, &now);
}

/* A client on cpu asks without a rest; others ask as often as each says. Until it is followed. */
static bool is_followed(int cpu, unsigned int others, bool paused)
{
	ev_tstamp end = ev_time() + (others || paused ? 0.2 : 20);

	while (ev_time() < end) {
		for (int i = 0; i < 100; i++) {
			requests += 1 + others;
			follow_request(follow, cpu, requests);
		}
		if (paused)
			follow_pause(follow);
		if (runs_on(cpu))
			return true;
		ev_run(ibfs.loop, EVRUN_NOWAIT);
	}
	return false;
}

/* Periods without a request. */
static bool is_left(void)
{
	ev_tstamp end = ev_time() + 20;

	while (!may_run_everywhere() && ev_time() < end)
		ev_run(ibfs.loop, EVRUN_NOWAIT);
	return may_run_everywhere();
}

int main(void)
{
	int first = 0, last = CPU_SETSIZE - 1;

	if (sched_getaffinity(0, sizeof(all), &all) || CPU_COUNT(&all) < 2)
		return 77;
	while (!CPU_ISSET(first, &all))
		first++;
	while (!CPU_ISSET(last, &all))
		last--;
	ibfs.loop = ev_loop_new(EVFLAG_AUTO);
	follow = follow_new(&ibfs);
	check("an unknown processor", !is_followed(-1, 1, false) && may_run_everywhere());
	check("one that no machine has", !is_followed(1 << 20, 1, false) && may_run_everywhere());
	check("a client alone", is_followed(first, 0, false));
	check("it moves", is_followed(last, 0, false));
	check("it rests", is_left());
	check("one among others", !is_followed(first, 1, false) && may_run_everywhere());
	check("alone again", is_followed(first, 0, false));
	follow_pause(follow);
	check("a pause", may_run_everywhere());
	check("work that doesn't end", !is_followed(last, 0, true) && may_run_everywhere());
	check("after it", is_followed(last, 0, false));
	follow_free(follow);
	check("the end", may_run_everywhere());
	ev_loop_destroy(ibfs.loop);
	return failed;
}
