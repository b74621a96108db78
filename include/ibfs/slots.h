/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of things in numbered slots, for who goes through all of them in pieces:
 * a thing keeps its number while others come and go. All 0: empty.
 */
#ifndef IBFS_SLOTS_H
#define IBFS_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

struct slots {
	uintptr_t *slots;		/* a thing, or 1 and twice the next free number */
	uint32_t count, room, free;
};

/* Into a free slot, whose number is in *num. The thing's address is even. False: no memory. */
bool slots_add(struct slots *slots, void *thing, uint32_t *num);
/* The slot is free; with the last one goes the memory. */
void slots_remove(struct slots *slots, uint32_t num);
/* The first thing from number *num on, which becomes the one behind it; NULL: there is none. */
void *slots_next(const struct slots *slots, uint32_t *num);

#endif
