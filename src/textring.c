/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of recent text lines: what `errors` and `events` files read. The
 * writer never waits for a reader; a reader that is late misses lines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include <ibfs/ibfs.h>

enum { WAKES = 16 };			/* readers that are woken at once */

struct textring {
	unsigned int size;
	uint64_t next;			/* number of the next line to be written */
	struct textring_reader *readers;
	struct textring_reader *sleeper;	/* who is to be woken next, or NULL */
	bool again;			/* a line came since the first was woken */
	struct task task;		/* wakes the next */
	struct taskq *tasks;		/* NULL: all are woken at once */
	char *lines[];
};

static void wake_some(struct textring *ring)
{
	struct textring_reader *reader;

	for (unsigned int i = 0; ring->sleeper && (i < WAKES || !ring->tasks); i++) {
		reader = ring->sleeper;
		ring->sleeper = reader->next;
		reader->wake(reader);
		if (ring->sleeper || !ring->again)
			continue;
		ring->sleeper = ring->readers;
		ring->again = false;
	}
	if (ring->sleeper)
		task_queue(ring->tasks, &ring->task);
}

static void wake_more(struct task *task)
{
	wake_some((struct textring *)((char *)task - offsetof(struct textring, task)));
}

/* Readers may come and go while they are woken, and lines may come. */
static void wake(struct textring *ring)
{
	if (ring->sleeper) {
		ring->again = true;
		return;
	}
	ring->sleeper = ring->readers;
	wake_some(ring);
}

void textring_wake_by(struct textring *ring, struct taskq *tasks)
{
	ring->tasks = tasks;
	ring->task.fn = wake_more;
}

struct textring *textring_new(unsigned int lines)
{
	struct textring *ring;

	ring = calloc(1, sizeof(*ring) + lines * sizeof(ring->lines[0]));
	if (ring)
		ring->size = lines;
	return ring;
}

void textring_free(struct textring *ring)
{
	unsigned int i;

	if (!ring)
		return;
	if (ring->tasks)
		task_cancel(ring->tasks, &ring->task);
	for (i = 0; i < ring->size; i++)
		free(ring->lines[i]);
	free(ring);
}

/* What others write into a line must not make two of it. */
static void one_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' && *text != '\t')
			*text = ' ';
}

void textring_vadd(struct textring *ring, const char *fmt, va_list ap)
{
	char **slot = &ring->lines[ring->next % ring->size];
	char *text;

	if (vasprintf(&text, fmt, ap) < 0)
		return;
	one_line(text);
	free(*slot);
	*slot = text;
	ring->next++;
	wake(ring);
}

void textring_add(struct textring *ring, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	textring_vadd(ring, fmt, ap);
	va_end(ap);
}

static uint64_t oldest(const struct textring *ring)
{
	return ring->next > ring->size ? ring->next - ring->size : 0;
}

void textring_attach(struct textring *ring, struct textring_reader *reader, bool backlog)
{
	reader->seq = backlog ? oldest(ring) : ring->next;
	DL_APPEND(ring->readers, reader);
}

void textring_detach(struct textring *ring, struct textring_reader *reader)
{
	if (ring->sleeper == reader)
		ring->sleeper = reader->next;
	DL_DELETE(ring->readers, reader);
}

uint64_t textring_end(const struct textring *ring)
{
	return ring->next;
}

const char *textring_next(struct textring *ring, struct textring_reader *reader)
{
	if (reader->seq < oldest(ring))
		reader->seq = oldest(ring);
	if (reader->seq == ring->next)
		return NULL;
	return ring->lines[reader->seq++ % ring->size];
}
