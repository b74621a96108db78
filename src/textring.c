/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of recent text lines: what `errors` and `events` files read. The
 * writer never waits for a reader; a reader that is late misses lines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include <ibfs/ibfs.h>

struct textring {
	unsigned int size;
	uint64_t next;			/* number of the next line to be written */
	struct textring_reader *readers;
	char *lines[];
};

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
	struct textring_reader *reader, *tmp;
	char **slot = &ring->lines[ring->next % ring->size];
	char *text;

	if (vasprintf(&text, fmt, ap) < 0)
		return;
	one_line(text);
	free(*slot);
	*slot = text;
	ring->next++;
	DL_FOREACH_SAFE(ring->readers, reader, tmp)
		reader->wake(reader);
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
