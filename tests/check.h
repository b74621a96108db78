/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that say what isn't so and let the program go on; main() returns `failed`. */
#ifndef IBFS_TESTS_CHECK_H
#define IBFS_TESTS_CHECK_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

static atomic_int failed;		/* 0 or 1; threads check, too */

static inline void check(bool ok, const char *what, const char *file, int line)
{
	if (ok)
		return;
	fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", file, line, what, errno);
	failed = 1;
}
#define CHECK(cond) check(cond, #cond, __FILE__, __LINE__)

#endif
