/* SPDX-License-Identifier: BSD-2-Clause */
/* libibfs-run.so: /proc/self/maps, line by line, proc_pid_maps(5). By system calls only. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "run/preload_share.h"

bool maps_open(struct maps *maps)
{
	maps->at = maps->end = 0;
	maps->fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
	return maps->fd >= 0;
}

void maps_close(struct maps *maps)
{
	syscall(SYS_close, maps->fd);
}

/* The rest of the buffer goes to its start, and more comes behind it. */
static bool fill(struct maps *maps)
{
	ssize_t n;

	memmove(maps->buf, maps->buf + maps->at, maps->end - maps->at);
	maps->end -= maps->at;
	maps->at = 0;
	if (maps->end == sizeof(maps->buf))
		return false;
	n = syscall(SYS_read, maps->fd, maps->buf + maps->end, sizeof(maps->buf) - maps->end);
	if (n <= 0)
		return false;
	maps->end += (size_t)n;
	return true;
}

/* The next line as a string. */
static char *next_line(struct maps *maps)
{
	char *newline, *text;

	while (!(newline = memchr(maps->buf + maps->at, '\n', maps->end - maps->at)))
		if (!fill(maps))
			return NULL;
	text = maps->buf + maps->at;
	*newline = '\0';
	maps->at = (size_t)(newline + 1 - maps->buf);
	return text;
}

static int protection(const char *perm)
{
	return (perm[0] == 'r' ? PROT_READ : 0) | (perm[1] == 'w' ? PROT_WRITE : 0) |
	       (perm[2] == 'x' ? PROT_EXEC : 0);
}

/* 7f0000000000-7f0000001000 rw-p 00000000 00:00 0          name */
bool maps_next(struct maps *maps, struct map_line *line)
{
	char *text = next_line(maps);
	unsigned int major, minor;

	if (!text)
		return false;
	line->from = strtoull(text, &text, 16);
	line->to = strtoull(text + 1, &text, 16);
	line->prot = protection(text + 1);
	line->shared = text[4] == 's';
	(void)strtoull(text + 6, &text, 16);
	major = (unsigned int)strtoul(text + 1, &text, 16);
	minor = (unsigned int)strtoul(text + 1, &text, 16);
	line->dev = makedev(major, minor);
	line->ino = strtoull(text + 1, &text, 10);
	text += strspn(text, " ");
	line->anonymous = !line->shared && !line->ino &&
			  (!*text || !strcmp(text, "[heap]") || !strncmp(text, "[anon:", 6));
	line->async_io = !strncmp(text, "/[aio]", 6) || !strncmp(text, "anon_inode:[io_uring]", 21);
	return true;
}

static bool same(const struct map_line *a, const struct map_line *b)
{
	return a->from == b->from && a->to == b->to && a->prot == b->prot &&
	       a->shared == b->shared && a->dev == b->dev && a->ino == b->ino;
}

bool maps_has(const struct map_line *line)
{
	struct map_line at = { 0 };
	struct maps maps;

	if (!maps_open(&maps))
		return false;
	while (at.to <= line->from && maps_next(&maps, &at))
		;
	maps_close(&maps);
	return same(&at, line);
}
