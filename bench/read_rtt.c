/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a read of a small file takes: prints the median and the 99th percentile
 * of all reads in microseconds. Reads from the file's start, in one open file.
 *
 * usage: read_rtt FILE SECONDS
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_US = 200, MAX_READS = 1 << 20 };

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
	uint64_t *took = calloc(MAX_READS, sizeof(*took)), end, start;
	int fd = argc == 3 ? open(argv[1], O_RDONLY) : -1;
	size_t n = 0;
	char buf[4096];

	if (fd < 0 || !took) {
		fprintf(stderr, "usage: read_rtt FILE SECONDS\n");
		return 2;
	}
	end = now_ns() + strtod(argv[2], NULL) * 1e9;
	/* Pauses, as from a user who is not in a hurry: others' turns come between. */
	for (start = now_ns(); start < end && n < MAX_READS; start = now_ns()) {
		if (pread(fd, buf, sizeof(buf), 0) <= 0) {
			perror(argv[1]);
			return 1;
		}
		took[n++] = now_ns() - start;
		usleep(PAUSE_US);
	}
	if (!n)
		return 1;
	qsort(took, n, sizeof(*took), by_value);
	printf("%.1f %.1f\n", took[n / 2] / 1e3, took[n - 1 - n / 100] / 1e3);
	close(fd);
	free(took);
	return 0;
}
