/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Takes of one resource as much as it gets, or as is asked for, says how much that
 * was and what refused the next one, and holds it until its standard input ends.
 *
 * usage: eat TREE RESOURCE [COUNT]		prints: COUNT RESOURCE ERROR
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *tree;

static int open_in(const char *path, int flags)
{
	char full[300];

	snprintf(full, sizeof(full), "%s/%s", tree, path);
	return open(full, flags | O_CLOEXEC);
}

/* The same file, again and again. */
static bool eat_files(unsigned int n)
{
	(void)n;
	return open_in("version", O_RDONLY) >= 0;
}

static const struct resource {
	const char *name;
	bool (*eat)(unsigned int n);	/* one more; false and errno: there is no more */
} resources[] = {
	{ "files", eat_files },
};

static const struct resource *find(const char *name)
{
	for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++)
		if (!strcmp(resources[i].name, name))
			return &resources[i];
	return NULL;
}

/* It must not be this process's own limit that ends it. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	const struct resource *what = argc >= 3 ? find(argv[2]) : NULL;
	unsigned long most = argc >= 4 ? strtoul(argv[3], NULL, 0) : 1000000, n = 0;

	if (!what) {
		fprintf(stderr, "usage: eat TREE RESOURCE [COUNT]\n");
		return 2;
	}
	tree = argv[1];
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
