/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A set-user-ID program that takes no care of its descriptors, as most don't: it
 * writes its name to standard error, which whoever runs it has chosen both, and
 * exits with the error of that. "deputy lift" lifts its limit of locked memory first.
 * "deputy read BYTES" reads its input instead, to its output; "deputy id" says who
 * it is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int copy_input(size_t size)
{
	static char buf[4096];
	ssize_t n = read(STDIN_FILENO, buf, size < sizeof(buf) ? size : sizeof(buf));

	if (n < 0)
		return errno;
	return write(STDOUT_FILENO, buf, n) == n ? 0 : EIO;
}

int main(int argc, char **argv)
{
	struct rlimit lock;

	if (argc > 1 && !strcmp(argv[1], "id"))
		return printf("%u\n", geteuid()) < 0;
	if (argc > 2 && !strcmp(argv[1], "read"))
		return copy_input(strtoul(argv[2], NULL, 0));
	if (argc > 1 && !strcmp(argv[1], "lift")) {
		getrlimit(RLIMIT_MEMLOCK, &lock);
		lock.rlim_cur = lock.rlim_max;
		setrlimit(RLIMIT_MEMLOCK, &lock);
	}
	return write(STDERR_FILENO, argv[0], strlen(argv[0])) < 0 ? errno : 0;
}
