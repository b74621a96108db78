/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dev/infiniband/ev: files that their owner opens once, by the number that an
 * answer of another file gave: receive rings of umad, event files of uverbs.
 */
#include <errno.h>
#include <stdio.h>
#include <utlist.h>

#include "fs/rows.h"
#include "fs/uverbs.h"

#define ID_MASK 0xfffffffU	/* of a path's idx */

uint32_t ev_id(struct fs *fs)
{
	do
		fs->next_ev = (fs->next_ev + 1) & ID_MASK;
	while (umad_ring_exists(fs->ibfs, fs->next_ev) || uv_events_find(fs, fs->next_ev));
	return fs->next_ev;
}

static uint64_t events_from(const struct fs *fs, uint64_t id)
{
	const struct uv_events *events;
	uint64_t first = UINT64_MAX;

	DL_FOREACH(fs->uv_events, events)
		if (!events->opened && events->id >= id && events->id < first)
			first = events->id;
	return first;
}

static int ev_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	const struct uv_events *events;
	uint64_t id;

	(void)dir;
	if (number_name(name, ID_MASK, &id))
		return -ENOENT;
	events = uv_events_find(ibfs->fs, id);
	/* One that is open keeps its name: /proc/PID/fd tells it by that. */
	if (!events && !umad_ring_exists(ibfs, id))
		return -ENOENT;
	child->kind = events ? KIND_UVERBS_EVENTS : KIND_UMAD_RING;
	child->idx = (uint32_t)id;
	return 0;
}

static int ev_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		   struct path *child)
{
	uint64_t ring = umad_ring_from(ibfs, *pos), events = events_from(ibfs->fs, *pos);
	uint64_t id = ring < events ? ring : events;

	(void)dir;
	if (id == UINT64_MAX)
		return 0;
	sprintf(name, "%u", (unsigned int)id);
	child->kind = ring < events ? KIND_UMAD_RING : KIND_UVERBS_EVENTS;
	child->idx = (uint32_t)id;
	*pos = id + 1;
	return 1;
}

const struct dir_ops ev_dir = { .lookup = ev_lookup, .next = ev_next };
