/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibfs-run.so: which memory is registered, and which of it was made shared
 * for that. An area is what was shared at once: it has a file of its own, and
 * becomes private again with the last region in it. Whatever is doubtful stays
 * as it is, since all works with private memory too, only slower.
 *
 * Pages hold what is of the region only, or of its malloc() chunk: a child's
 * copy of what other threads change while they fork is of a moment before, which
 * an allocator's own memory would not survive.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/preload_share.h"

enum {
	TABLE_MIN = 256,		/* entries; a table doubles */
	MAPPINGS_MAX = 30000,		/* the kernel lets a process have 65530 */
	NO_AREA = -1,
	NO_FILE = -1,			/* not told its handle yet, or forgotten */
	UNSHARE_TRIES = 4,
};
/* Of a mapping; unknown: there is no descriptor to read them. */
enum found { NONE, FOUND, UNKNOWN };

struct area {
	struct share_file file;		/* ino 0: the entry is free */
	unsigned int regions;
	bool stays;			/* for ever: it can't be told when nobody uses it any more */
};

struct region {
	bool used;
	uint64_t from, to;		/* whole pages */
	int area;			/* index, or NO_AREA */
	int fd;				/* of its uverbs file, or NO_FILE */
	uint32_t handle;
};

/* By system calls' memory; the entries beyond `used` are zero. */
static struct share_state {
	struct area *areas;
	struct region *regions;
	int max_areas, max_regions;
	int shared;			/* areas in use */
	uint64_t signals;		/* that the lock's holder has blocked before */
} state;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void share_lock(void)
{
	uint64_t all = UINT64_MAX, before = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof(all));
	pthread_mutex_lock(&lock);
	state.signals = before;
}

void share_unlock(void)
{
	uint64_t before = state.signals;

	pthread_mutex_unlock(&lock);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
}

bool share_any(void)
{
	return __atomic_load_n(&state.shared, __ATOMIC_ACQUIRE) > 0;
}

/* --- tables --- */

void *share_grow(void *table, int *max, size_t entry)
{
	int more = *max ? *max * 2 : TABLE_MIN;
	long at;

	if (table)
		at = syscall(SYS_mremap, table, *max * entry, more * entry, MREMAP_MAYMOVE);
	else
		at = syscall(SYS_mmap, NULL, more * entry, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == -1)
		return NULL;
	*max = more;
	return (void *)at;
}

/* A free entry's index, or -1. */
static int new_region(void)
{
	int i = 0;
	void *more;

	while (i < state.max_regions && state.regions[i].used)
		i++;
	if (i < state.max_regions)
		return i;
	more = share_grow(state.regions, &state.max_regions, sizeof(*state.regions));
	if (!more)
		return -1;
	state.regions = more;
	return i;
}

static int new_area(void)
{
	int i = 0;
	void *more;

	while (i < state.max_areas && state.areas[i].file.ino)
		i++;
	if (i < state.max_areas)
		return i;
	more = share_grow(state.areas, &state.max_areas, sizeof(*state.areas));
	if (!more)
		return NO_AREA;
	state.areas = more;
	return i;
}

static int area_of(const struct map_line *line)
{
	for (int i = 0; line->shared && i < state.max_areas; i++)
		if (state.areas[i].file.ino && state.areas[i].file.ino == line->ino &&
		    state.areas[i].file.dev == line->dev)
			return i;
	return NO_AREA;
}

bool share_is(const struct map_line *line)
{
	return area_of(line) != NO_AREA;
}

void share_reset(void)
{
	if (!state.regions)
		return;
	for (int i = 0; i < state.max_areas; i++)
		if (state.areas[i].file.ino)
			pages_close(&state.areas[i].file);
	if (state.areas)
		memset(state.areas, 0, state.max_areas * sizeof(*state.areas));
	memset(state.regions, 0, state.max_regions * sizeof(*state.regions));
	state.shared = 0;
}

/* --- what may be shared --- */

/* What there is in a range of pages. */
struct view {
	uint64_t from, to;		/* whole pages */
	uint64_t covered;		/* up to here all is private memory, of what began at `block` */
	uint64_t block;
	int area;			/* that all of it is in, or NO_AREA */
	bool mixed;			/* part of it is in areas */
	bool never;			/* this process's memory is better left alone */
	unsigned int mappings;
};

static void view_line(struct view *view, const struct map_line *line, uint64_t stack)
{
	int area = area_of(line);

	view->mappings++;
	if (line->async_io)
		view->never = true;
	if (area != NO_AREA && line->from < view->to && line->to > view->from) {
		view->mixed = true;
		if (line->from <= view->from && line->to >= view->to)
			view->area = area;
		else
			state.areas[area].stays = true;
	}
	if (!line->anonymous || line->prot != (PROT_READ | PROT_WRITE) ||
	    (line->from <= stack && stack < line->to))
		return;
	if (line->from <= view->from && line->to > view->from)
		view->block = line->from;
	else if (line->from != view->covered || !view->block)
		return;
	view->covered = line->to;
}

static bool view_range(struct view *view)
{
	struct map_line line;
	struct maps maps;

	if (!maps_open(&maps))
		return false;
	while (maps_next(&maps, &line))
		view_line(view, &line, (uintptr_t)&line);
	maps_close(&maps);
	return true;
}

/*
 * Is all that shares pages with the range a chunk that malloc() mapped for it
 * alone? As glibc's free() checks it: the chunk's size stands before the memory,
 * with a mark, and before that how far behind its first page it begins.
 */
static bool is_chunk(const struct view *view, uint64_t start, uint64_t end)
{
	const uint64_t marks = 7, mapped = 2;
	uint64_t begin = start - 2 * sizeof(uint64_t), word[2];

	if (start % sizeof(word) || begin < view->block ||
	    !pages_read(word, (const void *)(uintptr_t)begin, sizeof(word)))
		return false;
	if ((word[1] & marks) != mapped || word[0] > begin - view->block ||
	    word[1] > view->covered - begin + mapped)
		return false;
	return !((begin - word[0]) % SHARE_PAGE) &&
	       !((begin + word[1] - mapped) % SHARE_PAGE) && begin + word[1] - mapped >= end;
}

static bool has_room(const struct view *view, uint64_t start, uint64_t end)
{
	return view->block && view->covered >= view->to &&
	       ((view->from == start && view->to == end) || is_chunk(view, start, end));
}

/* The daemon reaches regions of private memory by the process, which mustn't stop then. */
static bool is_private_region(uint64_t from, uint64_t to)
{
	for (int i = 0; i < state.max_regions; i++)
		if (state.regions[i].used && state.regions[i].area == NO_AREA &&
		    state.regions[i].from < to && state.regions[i].to > from)
			return true;
	return false;
}

/* --- areas --- */

static void add_area(int area, const struct share_file *file, bool stays)
{
	state.areas[area] = (struct area){ .file = *file, .stays = stays };
	__atomic_add_fetch(&state.shared, 1, __ATOMIC_RELEASE);
}

static int share_new(uint64_t from, uint64_t to)
{
	struct share_file file;
	int area = new_area();
	bool all;

	if (area == NO_AREA)
		return NO_AREA;
	all = pages_share(from, to - from, &file);
	if (file.ino)
		add_area(area, &file, !all);
	return all ? area : NO_AREA;
}

static void free_area(int area)
{
	state.areas[area] = (struct area){ 0 };
	__atomic_sub_fetch(&state.shared, 1, __ATOMIC_RELEASE);
}

/* The area's mapping at this address or the next one, wherever the program has moved it. */
static enum found find_mapping(int area, uint64_t from, struct map_line *line)
{
	enum found found = NONE;
	struct maps maps;

	if (!maps_open(&maps))
		return UNKNOWN;
	while (found == NONE && maps_next(&maps, line))
		if (line->from >= from && area_of(line) == area)
			found = FOUND;
	maps_close(&maps);
	return found;
}

/* What another thread unmapped or moved meanwhile is looked for again. False: it is still there. */
static bool unshare_area(int area)
{
	enum found found = FOUND;
	struct map_line line;

	for (int tries = 0; tries < UNSHARE_TRIES && found == FOUND; tries++) {
		line.to = 0;
		while ((found = find_mapping(area, line.to, &line)) == FOUND)
			if (!limits_unshare(line.to - line.from))
				return false;
			else if (!pages_unshare(&line))
				break;
	}
	return found == NONE;
}

static void end_area(int area)
{
	if (unshare_area(area))
		free_area(area);
	else
		state.areas[area].stays = true;
}

/* --- regions --- */

static uint64_t page_of(uint64_t addr)
{
	return addr / SHARE_PAGE * SHARE_PAGE;
}

static uint64_t end_page_of(uint64_t end)
{
	return end > UINT64_MAX - SHARE_PAGE ? UINT64_MAX : page_of(end + SHARE_PAGE - 1);
}

/* What this thread, or the kernel for it, writes to meanwhile. */
static bool is_own(const struct view *view)
{
	uint64_t thread = (uint64_t)pthread_self(), err = (uintptr_t)&errno;

	return (view->from <= thread && thread < view->to) || (view->from <= err && err < view->to);
}

static int find_area(uint64_t start, uint64_t end, bool on_demand)
{
	struct view view = {
		.from = page_of(start), .to = end_page_of(end), .area = NO_AREA,
	};

	if (on_demand || start >= end || !view_range(&view))
		return NO_AREA;
	if (view.mixed)
		return view.area;
	if (view.never || view.mappings > MAPPINGS_MAX || is_own(&view) ||
	    !has_room(&view, start, end) ||
	    is_private_region(view.from, view.to) || !limits_share())
		return NO_AREA;
	return share_new(view.from, view.to);
}

int share_range(uint64_t start, uint64_t length, bool on_demand)
{
	uint64_t end = start + length < start ? UINT64_MAX : start + length;
	int id;

	share_watch_fork();
	share_lock();
	id = new_region();
	if (id >= 0) {
		int area = find_area(start, end, on_demand);

		state.regions[id] = (struct region){
			.used = true, .from = page_of(start), .to = end_page_of(end),
			.area = area, .fd = NO_FILE,
		};
		if (area != NO_AREA)
			state.areas[area].regions++;
	}
	share_unlock();
	return id;
}

/* The daemon has answered. */
static void answered(int area)
{
	if (area != NO_AREA)
		pages_close(&state.areas[area].file);
}

static void drop(int id)
{
	int area = state.regions[id].area;

	answered(area);
	state.regions[id] = (struct region){ 0 };
	if (area != NO_AREA && !--state.areas[area].regions && !state.areas[area].stays)
		end_area(area);
}

static int find_region(int fd, uint32_t handle)
{
	for (int i = 0; i < state.max_regions; i++)
		if (state.regions[i].used && state.regions[i].fd == fd &&
		    state.regions[i].handle == handle)
			return i;
	return -1;
}

void share_drop(int id)
{
	share_lock();
	drop(id);
	share_unlock();
}

void share_keep(int id, int fd, uint32_t handle)
{
	int old;

	share_lock();
	old = find_region(fd, handle);
	if (old >= 0)
		drop(old);
	state.regions[id].fd = fd;
	state.regions[id].handle = handle;
	answered(state.regions[id].area);
	share_unlock();
}

int share_take(int fd, uint32_t handle)
{
	int id;

	share_lock();
	id = find_region(fd, handle);
	if (id >= 0)
		state.regions[id].fd = NO_FILE;
	share_unlock();
	return id;
}

/*
 * Regions of a file that was closed: another descriptor of it may be open, and
 * whether the memory is in use nobody tells. What isn't mapped any more is
 * forgotten.
 */
static void forget(int id)
{
	struct map_line line;
	int area = state.regions[id].area;

	state.regions[id].fd = NO_FILE;
	if (area != NO_AREA) {
		state.areas[area].stays = true;
		if (find_mapping(area, 0, &line) != NONE)
			return;
		if (!--state.areas[area].regions)
			free_area(area);
	}
	state.regions[id] = (struct region){ 0 };
}

void share_forget(int fd)
{
	if (!__atomic_load_n(&state.regions, __ATOMIC_ACQUIRE))
		return;
	share_lock();
	for (int i = 0; i < state.max_regions; i++)
		if (state.regions[i].used && state.regions[i].fd == fd)
			forget(i);
	share_unlock();
}
