/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a topology file takes from disk to a usable subnet, and what it
 * costs in memory:  load FILE...  prints a line a file.
 */
#include "fabric/fabric.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct node_ops no_ops;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static double rss_mb(void)
{
	unsigned long pages = 0;
	FILE *in = fopen("/proc/self/statm", "r");

	if (in) {
		if (fscanf(in, "%*u %lu", &pages) != 1)
			pages = 0;
		fclose(in);
	}
	return pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static int measure(const char *file)
{
	double before = rss_mb(), start = now(), loaded, routed, again, size;
	struct fabric *fabric = fabric_new(NULL, &no_ops);
	char *err = NULL;

	if (!fabric || topology_load(fabric, file, &err)) {
		fprintf(stderr, "%s\n", err ? err : "no memory");
		return 1;
	}
	loaded = now();
	size = rss_mb() - before;
	if (static_subnet(fabric, &err)) {
		fprintf(stderr, "%s\n", err);
		return 1;
	}
	routed = now();
	static_subnet_refresh(fabric);
	again = now();
	printf("%s: %u nodes, load %.3f s, static subnet %.3f s, refresh %.3f s, "
	       "memory %.0f MB (%.1f KiB a node), with routes %.0f MB\n", file, fabric->num_nodes,
	       loaded - start, routed - loaded, again - routed, size,
	       size * 1024 / fabric->num_nodes, rss_mb() - before);
	fabric_free(fabric);
	return 0;
}

int main(int argc, char **argv)
{
	int i, err = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: load FILE...\n");
		return 2;
	}
	for (i = 1; i < argc && !err; i++)
		err = measure(argv[i]);
	return err;
}
