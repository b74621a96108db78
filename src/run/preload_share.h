/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private memory that libibfs-run.so makes shared, so that the daemon can map
 * what a program registers. What the parts of that tell each other:
 *
 *  preload_share_cmd.c	which commands register memory, by write() or ioctl()
 *  preload_share.c	what is registered and shared now
 *  preload_pages.c	pages go from private to shared and back
 *  preload_freeze.c	nobody writes to them meanwhile
 *  preload_maps.c	/proc/self/maps
 *  preload_limits.c	what the system permits
 *  preload_fork.c	a child's own copy
 *  preload_madvise.c	memory that the program gives up
 *
 * All of it by system calls, with memory of its own: programs and libraries put
 * functions of theirs in place of malloc() and mmap(), which may register memory.
 */
#ifndef IBFS_RUN_PRELOAD_SHARE_H
#define IBFS_RUN_PRELOAD_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#pragma GCC visibility push(hidden)

enum { SHARE_PAGE = 4096 };

/* --- preload_maps.c --- */

/* A line of /proc/self/maps. */
struct map_line {
	uint64_t from, to;
	int prot;			/* PROT_* */
	bool shared;
	dev_t dev;			/* of a file; ino 0: none */
	ino_t ino;
	bool anonymous;			/* private, of no file, also the heap; no stack, nothing special */
	bool async_io;			/* rings of aio or io_uring */
};

struct maps {
	int fd;
	size_t at, end;
	char buf[8192];
};
/* False: it can't be read. */
bool maps_open(struct maps *maps);
/* The next line; false: that was all. */
bool maps_next(struct maps *maps, struct map_line *line);
void maps_close(struct maps *maps);
/* Is that mapping still there, as it was? */
bool maps_has(const struct map_line *line);

/* --- preload_limits.c --- */

/* May private memory become shared in this process now? */
bool limits_share(void);
/* May so much shared memory become private? For a moment it is there twice. */
bool limits_unshare(uint64_t len);

/* --- preload_freeze.c --- */

/* Pages that no thread writes to: who tries sleeps. They may still be unmapped. */
struct freeze {
	int uffd;			/* -1: there is no other thread */
	uint64_t start, len;
};
/* False: it can't be had without harm, and nothing has changed. */
bool freeze(struct freeze *frozen, uint64_t start, uint64_t len);
/* Nothing else has been mapped there meanwhile. */
bool still_frozen(const struct freeze *frozen);
void thaw(const struct freeze *frozen);

/* --- preload_pages.c --- */

/*
 * The file behind shared pages. Its descriptor is kept until the region is
 * registered: a daemon without privileges finds the file there, and only there.
 */
struct share_file {
	dev_t dev;
	ino_t ino;
	int fd;				/* or -1 */
};
/*
 * Private anonymous pages become a file's; false: they stay what they were, or,
 * where file isn't empty, some of them do.
 */
bool pages_share(uint64_t start, uint64_t len, struct share_file *file);
/* Close its descriptor, if it is still the file's: programs close what they don't know. */
void pages_close(struct share_file *file);
/* A mapping of such a file becomes private; false: it stays what it was, or has gone. */
bool pages_unshare(const struct map_line *line);
/* The program's memory, which may not be there. */
bool pages_read(void *to, const void *from, uint64_t size);
/* Private memory with the same contents somewhere else, of the same protection; 0: none. */
uint64_t pages_copy(const struct map_line *line);
/* Put private memory from somewhere else in the place of what is at `to`. */
bool pages_put(uint64_t from, uint64_t to, uint64_t len);

/* --- preload_share.c --- */

/*
 * A region is about to be registered: share its pages if that can be done. Says
 * by which number it is known until share_keep() or share_drop(); -1: not at all.
 */
int share_range(uint64_t start, uint64_t length, bool on_demand);
/* It is registered as that handle of that file; what was there before has been replaced. */
void share_keep(int id, int fd, uint32_t handle);
/* It isn't registered, or no longer. */
void share_drop(int id);
/* Take the region out of the table of handles; -1: there is none. */
int share_take(int fd, uint32_t handle);
/* A new file takes the number: what was registered by the one before stays as it is. */
void share_forget(int fd);

/* Are there shared pages? */
bool share_any(void);
/* Is the mapping one of those? The lock is held. */
bool share_is(const struct map_line *line);
/* Signals are blocked, too: a handler may do what needs the lock, or write to frozen pages. */
void share_lock(void);
void share_unlock(void);
/* A table of zeroes, or twice of what it was, with as many entries more; NULL: no memory. */
void *share_grow(void *table, int *max, size_t entry);
/* In a child, where all is private: none is registered. */
void share_reset(void);

/* --- preload_fork.c --- */

/* From now on children get copies. The lock isn't held. */
void share_watch_fork(void);

#pragma GCC visibility pop
#endif
