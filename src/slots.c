/* SPDX-License-Identifier: BSD-2-Clause */
/* Things in numbered slots, ibfs/slots.h. Free slots are a list. */
#include <stdlib.h>

#include <ibfs/slots.h>

static uintptr_t link_to(uint32_t num)
{
	return (uintptr_t)num << 1 | 1;
}

/* Twice the room, and a list of what is new. */
static bool grow(struct slots *slots)
{
	uint32_t room = slots->room ? 2 * slots->room : 8, i;
	uintptr_t *more;

	if (room > INT32_MAX)
		return false;
	more = reallocarray(slots->slots, room, sizeof(*more));
	if (!more)
		return false;
	for (i = slots->room; i < room; i++)
		more[i] = link_to(i + 1);
	slots->slots = more;
	slots->free = slots->room;
	slots->room = room;
	return true;
}

bool slots_add(struct slots *slots, void *thing, uint32_t *num)
{
	if (slots->count == slots->room && !grow(slots))
		return false;
	*num = slots->free;
	slots->free = (uint32_t)(slots->slots[*num] >> 1);
	slots->slots[*num] = (uintptr_t)thing;
	slots->count++;
	return true;
}

void slots_remove(struct slots *slots, uint32_t num)
{
	slots->slots[num] = link_to(slots->free);
	slots->free = num;
	if (--slots->count)
		return;
	free(slots->slots);
	*slots = (struct slots){ .slots = NULL };
}

void *slots_next(const struct slots *slots, uint32_t *num)
{
	uint32_t i;

	for (i = *num; i < slots->room; i++) {
		if (slots->slots[i] & 1)
			continue;
		*num = i + 1;
		return (void *)slots->slots[i];
	}
	return NULL;
}
