/* SPDX-License-Identifier: BSD-2-Clause */
/* Watch /proc/self/mountinfo, proc(5); see mountwatch.h. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "fs/mountwatch.h"

/* A line: "ID PARENT MAJOR:MINOR ROOT MOUNTPOINT ..."; the path has \ooo for odd characters. */
static bool parse_line(const char *line, unsigned int *major, unsigned int *minor, char *path,
		       size_t size)
{
	char format[40];

	snprintf(format, sizeof(format), "%%*u %%*u %%u:%%u %%*s %%%zus", size - 1);
	return sscanf(line, format, major, minor, path) == 3;
}

/* The octal escapes taken out, in place. */
static void unescape(char *path)
{
	unsigned int c;
	char *out = path;

	for (; *path; path++) {
		if (*path == '\\' && sscanf(path + 1, "%3o", &c) == 1) {
			*out++ = (char)c;
			path += 3;
		} else {
			*out++ = *path;
		}
	}
	*out = '\0';
}

/*
 * Go through the mounts: with a mount point, find its device number (that of
 * the last mount on it); without, see whether the device is mounted.
 */
static bool search(struct mountwatch *watch, const char *mountpoint)
{
	unsigned int major, minor;
	char *line = NULL, path[4096];
	bool found = false;
	size_t size = 0;
	FILE *file;

	file = fopen("/proc/self/mountinfo", "re");
	if (!file)
		return !mountpoint;
	while (getline(&line, &size, file) > 0) {
		if (!parse_line(line, &major, &minor, path, sizeof(path)))
			continue;
		unescape(path);
		if (mountpoint && !strcmp(path, mountpoint)) {
			watch->major = major;
			watch->minor = minor;
			found = true;
		} else if (!mountpoint && major == watch->major && minor == watch->minor) {
			found = true;
		}
	}
	free(line);
	fclose(file);
	return found;
}

static void mounts_changed(struct ev_loop *loop, struct ev_io *w, int revents)
{
	struct mountwatch *watch = (struct mountwatch *)w;
	struct epoll_event event;

	(void)loop;
	(void)revents;
	while (epoll_wait(watch->epoll, &event, 1, 0) > 0)
		;
	if (!search(watch, NULL))
		watch->gone(watch);
}

/* A mount table is always readable, and says EPOLLPRI once when it has changed. */
void mountwatch_start(struct mountwatch *watch, struct ev_loop *loop, const char *mountpoint,
		      void (*gone)(struct mountwatch *watch))
{
	struct epoll_event event = { .events = EPOLLPRI };

	watch->mounts = watch->epoll = -1;
	watch->gone = gone;
	if (!search(watch, mountpoint))
		return;
	watch->mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	watch->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (watch->mounts < 0 || watch->epoll < 0 ||
	    epoll_ctl(watch->epoll, EPOLL_CTL_ADD, watch->mounts, &event)) {
		mountwatch_stop(watch, loop);
		return;
	}
	ev_io_init(&watch->io, mounts_changed, watch->epoll, EV_READ);
	ev_io_start(loop, &watch->io);
}

void mountwatch_stop(struct mountwatch *watch, struct ev_loop *loop)
{
	ev_io_stop(loop, &watch->io);
	if (watch->epoll >= 0)
		close(watch->epoll);
	if (watch->mounts >= 0)
		close(watch->mounts);
	watch->mounts = watch->epoll = -1;
}
