/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Takes of one resource as much as it gets, or as is asked for, says how much that
 * was and what refused the next one, and holds it until its standard input ends.
 */
#ifndef IBFS_TESTS_EAT_H
#define IBFS_TESTS_EAT_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct resource {
	const char *name;
	bool (*eat)(unsigned int n);	/* one more; false and errno: there is no more */
};

static inline const struct resource *find_resource(const struct resource *all, const char *name)
{
	while (all->name && strcmp(all->name, name))
		all++;
	return all->name ? all : NULL;
}

/* It must not be this process's own limit that ends it. */
static inline void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* usage: PROGRAM WHERE RESOURCE [COUNT]	prints: COUNT RESOURCE ERROR */
static inline int eat(int argc, char **argv, const struct resource *all)
{
	const struct resource *what = argc >= 3 ? find_resource(all, argv[2]) : NULL;
	unsigned long most = argc >= 4 ? strtoul(argv[3], NULL, 0) : 1000000, n = 0;

	if (!what) {
		fprintf(stderr, "usage: %s WHERE RESOURCE [COUNT]\n", argv[0]);
		return 2;
	}
	raise_limit();
	errno = 0;
	while (n < most && what->eat(n))
		n++;
	printf("%lu %s %s\n", n, what->name, n < most ? strerrorname_np(errno) : "enough");
	fflush(stdout);
	while (read(STDIN_FILENO, &(char){ 0 }, 1) > 0)
		;
	return 0;
}

#endif
