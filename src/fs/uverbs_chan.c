/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings of completion channels, ibfs/event_ring.h: the daemon's side. Events are
 * in the ring or in the channel's queue, and those in the queue are the later
 * ones. It may touch both, and the memory that it shares with the client, where
 * nothing is believed but what was checked: whose events are in it stands here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <utlist.h>

#include <ibfs/event_ring.h>
#include <ibfs/keeper.h>

#include "fs/uverbs.h"
#include "fs/waiting.h"

struct uv_chan {
	struct event_ring *mem;
	uint64_t off;			/* in the uverbs file's memory */
	uint64_t tail;
	uint64_t seen;			/* what is before was taken, and counted */
	bool dead;
	struct keep_slot *keep;		/* NULL: not kept */
	struct uobj *whose[EVENT_RING_SLOTS];
};

static struct event_ring *ring_map(struct uv_space *space, uint64_t *off)
{
	void *mem;

	if (space->rings.alloc(&space->rings, EVENT_RING_SIZE, off))
		return NULL;
	mem = mmap(NULL, EVENT_RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, space->rings.fd,
		   (off_t)*off);
	if (mem != MAP_FAILED)
		return mem;
	space->rings.free(&space->rings, *off, EVENT_RING_SIZE);
	return NULL;
}

static void ring_keep(struct uv_events *events)
{
	struct uv_chan *chan = events->chan;

	chan->keep = keeper_slot(events->fs->ibfs);
	if (!chan->keep)
		return;
	chan->keep->rings[0] = (struct keep_ring){
		.file = keeper_file_num(events->uf->space->rings.kept), .off = chan->off,
	};
	atomic_store(&chan->keep->kind, KEEP_EVENTS);
}

ssize_t uv_chan_make(struct uv_events *events, void *out, size_t *out_len)
{
	struct event_ring_place answer = { .size = sizeof(struct event_ring) };
	struct uv_chan *chan;

	if (events->closed)
		return -EIO;
	if (events->chan)
		return -EBUSY;
	chan = calloc(1, sizeof(*chan));
	if (!chan)
		return -ENOMEM;
	chan->mem = ring_map(events->uf->space, &chan->off);
	if (!chan->mem) {
		free(chan);
		return -ENOMEM;
	}
	chan->tail = chan->seen = (uint64_t)events->id << 32;
	atomic_store(&chan->mem->head, chan->tail);
	atomic_store(&chan->mem->tail, chan->tail);
	/* Until the first who asks the file: events may have come before it is mapped. */
	atomic_store(&chan->mem->more, 1);
	chan->mem->magic = EVENT_RING_MAGIC;
	events->chan = chan;
	ring_keep(events);
	answer.offset = chan->off;
	memcpy(out, &answer, sizeof(answer));
	*out_len = sizeof(answer);
	return 0;
}

/* The client has spoilt it: nobody asks any more. */
static void kill_ring(struct uv_chan *chan)
{
	chan->dead = true;
	atomic_store(&chan->mem->dead, 1);
	wake_waiting(&chan->mem->waiting);
}

/*
 * Count what was taken, for its objects' destroyers; how many are left. A head
 * that can't be makes it the last time that anybody asks.
 */
static unsigned int count(struct uv_chan *chan)
{
	uint64_t head = atomic_load(&chan->mem->head);

	if (chan->dead)
		return 0;
	if (head - chan->seen > chan->tail - chan->seen) {
		kill_ring(chan);
		return 0;
	}
	for (; chan->seen != head; chan->seen++)
		chan->whose[chan->seen % EVENT_RING_SLOTS]->comp_read++;
	return (unsigned int)(chan->tail - head);
}

static bool usable(const struct uv_events *events)
{
	const struct uv_chan *chan = events->chan;

	return chan && !chan->dead && atomic_load(&chan->mem->mapped);
}

bool uv_chan_filled(struct uv_events *events)
{
	return usable(events) && count(events->chan);
}

static bool put(struct uv_chan *chan, struct uobj *obj)
{
	if (count(chan) == EVENT_RING_SLOTS || chan->dead)
		return false;
	chan->whose[chan->tail % EVENT_RING_SLOTS] = obj;
	atomic_store(&chan->mem->events[chan->tail % EVENT_RING_SLOTS], obj->user_handle);
	atomic_store(&chan->mem->tail, ++chan->tail);
	return true;
}

bool uv_chan_put(struct uv_events *events, struct uobj *obj)
{
	if (!usable(events) || events->queue || events->readers.head || !put(events->chan, obj))
		return false;
	wake_waiting(&events->chan->mem->waiting);
	return true;
}

/*
 * Take the first event, or all: how many there are from chan->seen on, where head was.
 * 0: none, or a client was faster more often than there can be events.
 */
static unsigned int take(struct uv_chan *chan, bool all)
{
	unsigned int left = count(chan);

	for (unsigned int tries = 0; left && tries < EVENT_RING_SLOTS; tries++) {
		unsigned long long head = chan->seen;

		if (atomic_compare_exchange_strong(&chan->mem->head, &head,
						   all ? chan->tail : chan->seen + 1))
			return left;
		left = count(chan);
	}
	if (left)
		kill_ring(chan);
	return 0;
}

bool uv_chan_take(struct uv_events *events, uint64_t *element)
{
	struct uv_chan *chan = events->chan;
	struct uobj *obj;

	if (!usable(events) || !take(chan, false))
		return false;
	obj = chan->whose[chan->seen++ % EVENT_RING_SLOTS];
	obj->comp_read++;
	*element = obj->user_handle;
	return true;
}

void uv_chan_refill(struct uv_events *events)
{
	struct uv_event *event;

	if (!usable(events))
		return;
	while (!events->readers.head && (event = events->queue) != NULL &&
	       put(events->chan, event->obj)) {
		DL_DELETE(events->queue, event);
		events->count--;
		free(event);
	}
	atomic_store(&events->chan->mem->more, !!events->queue);
	if (count(events->chan) || events->queue)
		wake_waiting(&events->chan->mem->waiting);
}

/* What stands in the ring isn't read back: of an event its object knows all. */
void uv_chan_reclaim(struct uv_events *events)
{
	struct uv_chan *chan = events->chan;
	unsigned int left = usable(events) ? take(chan, true) : 0;

	for (; left; left--) {
		struct uobj *obj = chan->whose[(chan->seen + left - 1) % EVENT_RING_SLOTS];

		uv_events_unread(events, obj, obj->user_handle);
	}
	if (chan)
		chan->seen = chan->tail;
}

void uv_chan_end(struct uv_events *events)
{
	struct uv_chan *chan = events->chan;
	struct uv_space *space;

	if (!chan)
		return;
	uv_chan_reclaim(events);
	keeper_slot_drop(events->fs->ibfs, chan->keep);
	atomic_store(&chan->mem->dead, 1);
	wake_waiting(&chan->mem->waiting);
	munmap(chan->mem, EVENT_RING_SIZE);
	/* While the file is open its readers look there; else its place serves the next one. */
	if (!events->closed) {
		space = events->uf->space;
		space->rings.free(&space->rings, chan->off, EVENT_RING_SIZE);
	}
	free(chan);
	events->chan = NULL;
}
