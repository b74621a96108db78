/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibfs-run.so: a child that fork() makes has memory of its own, also where its
 * parent's was made shared: a copy is made before, and takes the place in the
 * child. There only what may be called in a signal handler is called.
 */
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/preload_share.h"

struct copy {
	uint64_t at, from, to;		/* at 0: there is no memory for it */
};

/* Between the handlers, under the lock of what is shared. */
static struct copies {
	struct copy *table;
	int num, max;
} copies;

static void add_copy(const struct map_line *line)
{
	void *more;

	if (copies.num == copies.max) {
		more = share_grow(copies.table, &copies.max, sizeof(*copies.table));
		if (!more)
			return;
		copies.table = more;
	}
	copies.table[copies.num++] = (struct copy){ pages_copy(line), line->from, line->to };
}

static void before(void)
{
	struct map_line line;
	struct maps maps;

	share_lock();
	copies.num = 0;
	if (!share_any() || !maps_open(&maps))
		return;
	while (maps_next(&maps, &line))
		if (share_is(&line))
			add_copy(&line);
	maps_close(&maps);
}

static void after_in_parent(void)
{
	for (int i = 0; i < copies.num; i++)
		if (copies.table[i].at)
			syscall(SYS_munmap, copies.table[i].at,
				copies.table[i].to - copies.table[i].from);
	share_unlock();
}

static void after_in_child(void)
{
	for (int i = 0; i < copies.num; i++)
		if (copies.table[i].at)
			pages_put(copies.table[i].at, copies.table[i].from,
				  copies.table[i].to - copies.table[i].from);
	share_reset();
	share_unlock();
}

static void watch(void)
{
	pthread_atfork(before, after_in_parent, after_in_child);
}

void share_watch_fork(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}
