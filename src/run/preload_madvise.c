/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibfs-run.so: memory that the program gives up is full of zeroes when it is
 * used again, as allocators rely on. Where it was made shared it would come back
 * as it was: new private memory takes its place. What was registered keeps the
 * old pages, as if it had them locked.
 */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/preload_share.h"

static void replace(const struct map_line *line, uint64_t from, uint64_t to)
{
	if (from < line->from)
		from = line->from;
	if (to > line->to)
		to = line->to;
	if (from < to)
		syscall(SYS_mmap, from, to - from, line->prot,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static bool gives_up(int advice)
{
	return advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED || advice == MADV_FREE;
}

static void give_up(uint64_t from, uint64_t to)
{
	struct map_line line;
	struct maps maps;

	share_lock();
	if (maps_open(&maps)) {
		while (maps_next(&maps, &line) && line.from < to)
			if (share_is(&line))
				replace(&line, from, to);
		maps_close(&maps);
	}
	share_unlock();
}

/* glibc's declarations have reserved names. NOLINTBEGIN(*-inconsistent-declaration-parameter-name) */
int madvise(void *addr, size_t len, int advice)
{
	uint64_t from = (uintptr_t)addr, to = from + (len + SHARE_PAGE - 1) / SHARE_PAGE * SHARE_PAGE;

	if (gives_up(advice) && share_any() && from < to && !(from % SHARE_PAGE))
		give_up(from, to);
	return (int)syscall(SYS_madvise, addr, len, advice);
}

/* NOLINTEND(*-inconsistent-declaration-parameter-name) */
