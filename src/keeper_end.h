/* SPDX-License-Identifier: BSD-2-Clause */
/* What the keeper does when the daemon is gone. */
#ifndef IBFS_KEEPER_END_H
#define IBFS_KEEPER_END_H

#include <stdbool.h>
#include <stddef.h>

#include <ibfs/keeper.h>

/* A client's memory, by the file's number. */
struct keep_memory {
	int fd;				/* 0: none */
	uint32_t kind;			/* enum keep_file_kind */
	size_t size;
	void *map;			/* NULL: not mapped yet */
};

struct keep_files {
	struct keep_book *book;
	uint32_t used;			/* files from here on never were */
	struct keep_memory memory[KEEP_FILES];
};

/*
 * Complete what is outstanding, and end all that sleeps. Takes a second, in which what
 * programs still post is completed, too, and queues that were full have room again.
 */
void keeper_end(struct keep_files *files);

#endif
