/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects by number. Numbers go up and come round, so that one which was given
 * back isn't soon another object's. Knows nothing of what it holds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/verbs.h"

#define TABLE_MIN 256		/* so many go by before a number comes again */

static int table_grow(struct table *table)
{
	uint32_t size = table->size ? 2 * table->size : TABLE_MIN;
	void **slot;

	if (table->size >= table->max)
		return -ENOMEM;
	if (size > table->max)
		size = table->max;
	slot = realloc(table->slot, size * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	memset(slot + table->size, 0, (size - table->size) * sizeof(*slot));
	table->slot = slot;
	table->next = table->size;
	table->size = size;
	return 0;
}

int table_add(struct table *table, void *obj, uint32_t *num)
{
	uint32_t i;

	/* Growing at three quarters keeps the search for a free slot short. */
	if (table->used >= table->size - table->size / 4 && table_grow(table) &&
	    table->used == table->size)
		return -ENOMEM;
	for (i = table->next; table->slot[i % table->size]; i++)
		;
	i %= table->size;
	table->slot[i] = obj;
	table->next = i + 1;
	table->used++;
	*num = table->first + i;
	return 0;
}

void table_del(struct table *table, uint32_t num)
{
	if (!table_get(table, num))
		return;
	table->slot[num - table->first] = NULL;
	table->used--;
}
