/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program to which the kernel refuses a system call, as containers' seccomp
 * filters do: refuse CALL ERRNO COMMAND... The filter is classic BPF on struct
 * seccomp_data, seccomp(2); it stays with the program's children.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct word {
	const char *name;
	unsigned int number;
	unsigned int command;		/* of ioctl(); 0: none */
};

static const struct word calls[] = {
	{ "io_uring_setup", SYS_io_uring_setup, 0 },
	{ "futex_waitv", SYS_futex_waitv, 0 },
	{ "procmap_query", SYS_ioctl, _IOC(_IOC_READ | _IOC_WRITE, 'f', 17, 104) },
	{ NULL, 0, 0 },
};
static const struct word errnos[] = {
	{ "EPERM", EPERM, 0 }, { "ENOSYS", ENOSYS, 0 }, { "ENOTTY", ENOTTY, 0 }, { NULL, 0, 0 },
};

static const struct word *find(const struct word *words, const char *name)
{
	for (; words->name; words++)
		if (!strcmp(words->name, name))
			return words;
	return NULL;
}

static int refuse(const struct word *call, unsigned int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call->number, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(call->command ? BPF_JMP | BPF_JEQ | BPF_K : BPF_JMP | BPF_JGE | BPF_K,
			 call->command, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	/* Who is privileged keeps what set-user-ID programs give. */
	if (geteuid() && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	const struct word *call = argc < 4 ? NULL : find(calls, argv[1]);
	const struct word *err = argc < 4 ? NULL : find(errnos, argv[2]);

	if (!call || !err) {
		fprintf(stderr, "usage: refuse CALL ERRNO COMMAND...\n");
		return 2;
	}
	if (refuse(call, err->number)) {
		perror("refuse");
		return 1;
	}
	execvp(argv[3], argv + 3);
	perror(argv[3]);
	return 127;
}
