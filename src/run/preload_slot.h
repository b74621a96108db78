/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that libibfs-run.so shares with the daemon on behalf of a descriptor. A
 * descriptor that was closed behind its back and has become another file's is
 * told by a mark on the open file (F_SETSIG's number, which means nothing for
 * files of the tree). Memory is never unmapped, since another thread could be
 * looking at it, but covered by memory of no content; what the descriptor shares
 * next takes its place. Nothing here allocates or locks.
 */
#ifndef IBFS_RUN_PRELOAD_SLOT_H
#define IBFS_RUN_PRELOAD_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { PRELOAD_FDS = 1024 };	/* higher descriptors share nothing */

/* One descriptor's, of one kind of memory, which is always of one size. */
struct preload_slot {
	void *_Atomic mem;		/* once it had some */
	atomic_int mark;		/* 0: it has none now */
};

/* The descriptor shares nothing any more. */
__attribute__((visibility("hidden"))) void preload_slot_forget(struct preload_slot *slot, size_t size);
/* Its memory, if it is still the file that it was; else NULL, and it is forgotten. */
__attribute__((visibility("hidden"))) void *preload_slot_live(struct preload_slot *slot, int fd,
							      size_t size);
/* From now on it shares what is mapped at mem, whose place may change; NULL: it doesn't. */
__attribute__((visibility("hidden"))) void *preload_slot_set(struct preload_slot *slot, int fd,
							     void *mem, size_t size);

#endif
