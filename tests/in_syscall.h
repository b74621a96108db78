/* SPDX-License-Identifier: BSD-2-Clause */
/* Where another thread or process is, for tests that go on when it is there. */
#ifndef IBFS_TESTS_IN_SYSCALL_H
#define IBFS_TESTS_IN_SYSCALL_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

/* The thread sleeps in this system call (proc_pid_syscall(5)): no sleep needs to guess. */
static inline bool wait_in_syscall(pid_t tid, long nr)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)tid);
	for (int i = 0; i < 10000; i++) {
		FILE *file = fopen(path, "re");
		bool in = file && fgets(text, sizeof(text), file) && text[0] != 'r' &&
			  strtol(text, NULL, 10) == nr;

		if (file)
			fclose(file);
		if (in)
			return true;
		usleep(1000);
	}
	return false;
}

#endif
