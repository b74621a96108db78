/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads from a 9P2000.L server, any: how many small files a second (walk, open,
 * read, clunk, one after the other), or how many MB/s of one large file, by reads
 * of msize, with some of them under way at a time.
 *
 * usage: p9_read ADDRESS ANAME MSIZE small PATH SECONDS
 *        p9_read ADDRESS ANAME MSIZE large PATH WINDOW
 */
#include "../tests/p9_test.h"

enum { FID = 1 };

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void small(struct p9 *p9, const char *path, double seconds)
{
	double start = now(), end = start + seconds;
	unsigned long n = 0;

	do {
		if (p9_open(p9, FID, path, 0) || p9_read(p9, FID, 0, 4096) <= 0 ||
		    p9_clunk(p9, FID) < 0)
			die(path);
		n++;
	} while (now() < end);
	printf("%.0f\n", n / (now() - start));
}

static void ask(struct p9 *p9, uint16_t tag, uint64_t *offset, uint32_t count)
{
	p9_send(p9, TREAD, tag, "dqd", FID, *offset, count);
	*offset += count;
}

static void large(struct p9 *p9, const char *path, unsigned int window)
{
	uint32_t count = p9->msize - IOHDRSZ;
	uint64_t offset = 0, total = 0;
	double start = now();
	unsigned int left = window;
	size_t n;

	count -= count % 4096;
	if (p9_open(p9, FID, path, 0))
		die(path);
	for (n = 0; n < window; n++)
		ask(p9, n, &offset, count);
	while (left) {
		if (!p9_recv(p9) || p9_result(p9) < 0)
			die(path);
		n = p9_get(p9->body, 4);
		total += n;
		if (n)
			ask(p9, p9->tag, &offset, count);
		else
			left--;
	}
	printf("%.0f\n", total / (now() - start) / 1e6);
}

int main(int argc, char **argv)
{
	struct p9 *p9;

	if (argc != 7)
		return 2;
	p9 = p9_open_session(argv[1], "9P2000.L");
	if (p9_version(p9, "9P2000.L", atoi(argv[3])) || p9_attach(p9, 0, "root", 0, argv[2]) < 0)
		die("attach");
	if (!strcmp(argv[4], "small"))
		small(p9, argv[5], atof(argv[6]));
	else
		large(p9, argv[5], atoi(argv[6]));
	p9_end(p9);
	return 0;
}
