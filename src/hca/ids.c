/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects by numbers that nobody can guess, arc4random(3). The number's low bits are
 * the object's place, so that it is found as fast as in an array, and the array can
 * grow: what differs in few bits differs in more. Knows nothing of what it holds.
 */
#include <errno.h>
#include <stdlib.h>

#include "hca/verbs.h"

enum { IDS_MIN = 64, ID_FIRST = 2, ID_LAST = 0xfffffe };

/* Half of it stays free, which keeps the search for a number short. */
static int ids_grow(struct ids *ids)
{
	uint32_t size = ids->size ? 2 * ids->size : IDS_MIN;
	struct id_slot *slot = calloc(size, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < ids->size; i++)
		if (ids->slot[i].obj)
			slot[ids->slot[i].id & (size - 1)] = ids->slot[i];
	free(ids->slot);
	ids->slot = slot;
	ids->size = size;
	return 0;
}

static bool gone_lately(const struct ids *ids, uint32_t id)
{
	bool found = false;

	for (uint32_t i = 0; i < IDS_GONE; i++)
		found |= ids->gone[i] == id;
	return found;
}

int ids_add(struct ids *ids, void *obj, uint32_t *id)
{
	struct id_slot *slot;

	if (ids->used >= ids->max || (ids->used >= ids->size / 2 && ids_grow(ids)))
		return -ENOMEM;
	do {
		*id = arc4random() & ID_MASK;
		slot = &ids->slot[*id & (ids->size - 1)];
	} while (*id < ID_FIRST || *id > ID_LAST || slot->obj || gone_lately(ids, *id));
	*slot = (struct id_slot){ *id, obj };
	ids->used++;
	return 0;
}

void ids_del(struct ids *ids, uint32_t id)
{
	if (!ids_get(ids, id))
		return;
	ids->slot[id & (ids->size - 1)].obj = NULL;
	ids->used--;
	ids->gone[ids->num_gone++ % IDS_GONE] = id;
}

void *ids_next(const struct ids *ids, uint32_t *at)
{
	while (*at < ids->size) {
		void *obj = ids->slot[(*at)++].obj;

		if (obj)
			return obj;
	}
	return NULL;
}
