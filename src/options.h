/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's command line: ibfs(8). */
#ifndef IBFS_OPTIONS_H
#define IBFS_OPTIONS_H

#include <stdbool.h>

enum { EXIT_USAGE = 2 };

struct options {
	bool foreground;
	const char *conf;
	char *mount;			/* -o, joined by commas; NULL: none */
	const char *name;		/* of the mount point, as given */
	char *mountpoint;		/* the same, absolute; both NULL: no mount */
	const char **p9;		/* --9p, each */
	unsigned int num_p9;
};

/* False: end the program with *status. */
bool options_parse(int argc, char **argv, struct options *opts, int *status);
/* Can something be mounted there? Fills opts->mountpoint. 0; -1: it was told why not. */
int options_check_mountpoint(struct options *opts);
void options_free(struct options *opts);
/* A line of "ibfs: ..." to who started the program. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
