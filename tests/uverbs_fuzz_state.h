/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What uverbs_fuzz.c has in hand: its random numbers, the handles, keys and
 * rings that it got so far, values made of them, and the place for answers with
 * guards around.
 */
#ifndef UVERBS_FUZZ_STATE_H
#define UVERBS_FUZZ_STATE_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "uverbs_fuzz.h"

#define FILES		4
#define KNOWN		8	/* handles of a type, event files */
#define RINGS		24
#define PAGES		64
#define PAGE		4096UL
#define GUARD		0xa5
#define RING_MAX	(1UL << 20)

struct list {
	uint32_t at[KNOWN];
	unsigned int num;
};

/* An open uverbs file, and what is known of it. */
struct user {
	int fd;
	struct list handles[TYPES];
	struct list events;		/* descriptors */
};

struct ring {
	struct rxe_queue_buf *buf;
	size_t size;
	uint32_t mask, log;		/* before they were changed */
};

static struct {
	uint64_t rng;
	const char *mnt;
	struct user users[FILES];
	struct list qpns, keys;
	struct ring rings[RINGS];
	unsigned int num_rings;
	uint8_t *area, *answers, *bad;	/* registered; answered to; not there */
	uint8_t *ring_space;
	uint8_t in[1024];
	unsigned int done, refused;
	_Atomic int stop;
	struct ring hot;
} t;

static int fail(const char *what, unsigned long long value)
{
	printf("%s: %llu (errno %d)\n", what, value, errno);
	exit(1);
}

/* xorshift64 */
static uint32_t rnd(uint32_t below)
{
	t.rng ^= t.rng << 13;
	t.rng ^= t.rng >> 7;
	t.rng ^= t.rng << 17;
	return below ? (uint32_t)(t.rng >> 32) % below : 0;
}

static uint64_t any(void)
{
	static const uint64_t edges[] = {
		0, 1, UINT64_MAX, INT64_MAX, UINT32_MAX, 0x80000000, 0x7fffffff, 4096, 0xffff800000000000,
	};

	return rnd(2) ? edges[rnd(sizeof(edges) / sizeof(edges[0]))] : (uint64_t)rnd(UINT32_MAX) << rnd(33);
}

static void learn(struct list *list, uint32_t value)
{
	list->at[list->num < KNOWN ? list->num++ : rnd(KNOWN)] = value;
}

static uint32_t known(const struct list *list)
{
	return list->num && rnd(12) ? list->at[rnd(list->num)] : (uint32_t)any();
}

static void forget(struct user *user, uint32_t handle)
{
	for (int type = 0; type < TYPES; type++) {
		struct list *list = &user->handles[type];

		for (unsigned int i = 0; i < list->num; i++)
			if (list->at[i] == handle)
				list->at[i--] = list->at[--list->num];
	}
}

/* --- values --- */

static uint32_t any_handle(const struct user *user, unsigned int type)
{
	switch (rnd(20)) {
	case 0:
		return known(&t.users[rnd(FILES)].handles[type % TYPES]);
	case 1:
		return known(&user->handles[rnd(TYPES)]);
	default:
		return known(&user->handles[type % TYPES]);
	}
}

static uint64_t any_address(void)
{
	if (!rnd(20))
		return any();
	return (uintptr_t)t.area + rnd(PAGES) * PAGE + (rnd(4) ? 0 : rnd(PAGE));
}

/* Where an answer may go: mostly there is room. */
static uint64_t any_answer(void)
{
	uint64_t page = (uintptr_t)t.bad;

	if (rnd(10))
		return (uintptr_t)t.answers + PAGE / 2;
	switch (rnd(4)) {
	case 0:
		return page;			/* can't be read or written */
	case 1:
		return page - 1 - rnd(8);	/* up to there */
	case 2:
		return (uintptr_t)t.answers + PAGE / 2 + rnd(8);
	default:
		return any();
	}
}

static uint64_t any_value(const struct user *user, const struct field *field)
{
	if (!rnd(60))
		return any();
	switch (field->kind) {
	case K_RESPONSE:
		return any_answer();
	case K_HANDLE:
		return any_handle(user, field->arg);
	case K_SMALL:
		return rnd(field->arg);
	case K_BITS:
		return rnd(3) ? rnd(UINT32_MAX) & field->arg : 0;
	case K_ADDR:
		return any_address();
	case K_LENGTH:
		return rnd(20) ? rnd(8 * PAGE) : any();
	case K_FD:
		return rnd(2) ? UINT64_MAX : rnd(8) ? known(&user->events) : rnd(40);
	case K_QPN:
		return known(&t.qpns);
	default:
		return known(&t.keys);
	}
}

/* --- answers --- */

static const int errors[] = {
	EINVAL, ENOSPC, EFAULT, EOPNOTSUPP, EBADF, EBUSY, ENOMEM, ENOENT, EPERM, EAGAIN, EPROTONOSUPPORT,
	ENODATA, E2BIG, ENOTTY, ENOTSOCK,
};

static void check_error(const char *what, unsigned int number)
{
	t.refused++;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errno == errors[i])
			return;
	fail(what, number);
}

static void guard_answers(void)
{
	memset(t.answers, GUARD, PAGE);
}

/* Nothing but from..from+len may have been written to. */
static void check_guard(const char *what, unsigned int number, const uint8_t *from, size_t len)
{
	for (const uint8_t *at = t.answers; at < t.answers + PAGE; at++)
		if (*at != GUARD && (at < from || at >= from + len))
			fail(what, number * 10000ULL + (unsigned long long)(at - t.answers));
}

static void learn_ring(int fd, const struct mminfo *mi)
{
	struct ring *ring;
	unsigned int i;
	void *p;

	if (mi->size > RING_MAX)
		return;
	i = t.num_rings < RINGS ? t.num_rings++ : rnd(RINGS);
	ring = &t.rings[i];
	/* At a place of its own: the holes elsewhere are to stay. */
	p = mmap(t.ring_space + i * RING_MAX, mi->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 fd, (off_t)mi->offset);
	if (p == MAP_FAILED)
		fail("a ring can't be mapped", mi->offset);
	*ring = (struct ring){ .buf = p, .size = mi->size };
	ring->mask = ring->buf->index_mask;
	ring->log = ring->buf->log2_elem_size & 15;
}

static void learn_events(struct user *user, uint32_t id)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/dev/infiniband/ev/%u", t.mnt, id);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		fail("an event file can't be opened", id);
	if (user->events.num == KNOWN)
		close((int)user->events.at[--user->events.num]);
	learn(&user->events, (uint32_t)fd);
}

static void learn_handle(struct user *user, unsigned int type, uint32_t value)
{
	if (type == T_EVENTS)
		learn_events(user, value);
	else if (type < TYPES)
		learn(&user->handles[type], value);
}

#endif
