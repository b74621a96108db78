/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that are run with other preloaded libraries, in each of the C
 * library's ways: under ibfs-run they see the same devices as their parent.
 * exec DEVICE-FILE. The child, exec DEVICE-FILE child ARGUMENT LIBRARIES, tells by its status.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define SELF	"/proc/self/exe"

static char *device, name[4096];
static char others[] = "LD_PRELOAD=libm.so.6";
/* What a sanitized program wants under a preloaded library. */
static char asan[] = "ASAN_OPTIONS=verify_asan_link_order=0";
static char *env[] = { "A=1", asan, others, "B=2", NULL };

enum how {
	EXECVE, EXECV, EXECVP, EXECVPE, EXECL, EXECLP, EXECLE, FEXECVE, EXECVEAT, SPAWN, SPAWNP, HOWS,
};

/* Doesn't return, but for those that make a process of their own, and with errors. */
static int run(enum how how, char *const list[])
{
	char *argv[] = { name, device, "child", "an argument", NULL };
	int fd = how == FEXECVE ? open(SELF, O_RDONLY | O_CLOEXEC) : -1;
	pid_t pid = 0;
	int err;

	switch (how) {
	case EXECVE: return execve(name, argv, list);
	case EXECV: return execv(name, argv);
	case EXECVP: return execvp(name, argv);
	case EXECVPE: return execvpe(name, argv, list);
	case EXECL: return execl(name, name, device, "child", "an argument", (char *)NULL);
	case EXECLP: return execlp(name, name, device, "child", "an argument", (char *)NULL);
	case EXECLE: return execle(name, name, device, "child", "an argument", (char *)NULL, list);
	case FEXECVE: return fexecve(fd, argv, list);
	case EXECVEAT: return execveat(AT_FDCWD, name, argv, list, 0);
	case SPAWN: err = posix_spawn(&pid, name, NULL, NULL, argv, list); break;
	default: err = posix_spawnp(&pid, name, NULL, NULL, argv, list);
	}
	errno = err;
	return err ? -1 : pid;
}

/* The status of a child that is run so: with the list in place of the environment. */
static int status_of(enum how how, char **list)
{
	int status = -1;
	pid_t pid;

	if (how == SPAWN || how == SPAWNP) {
		pid = run(how, list);
	} else {
		pid = fork();
		if (!pid) {
			if (how == EXECV || how == EXECVP || how == EXECL || how == EXECLP)
				environ = list;
			_exit(run(how, list) ? 100 : 101);
		}
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* 0: as its parent wanted it to be run; 2: it sees no device. */
static int child(int argc, char **argv)
{
	struct stat st;

	if (argc != 4 || strcmp(argv[3], "an argument"))
		return 1;
	if (stat(argv[1], &st) || !S_ISCHR(st.st_mode))
		return 2;
	return !getenv("A") || !getenv("B") || !getenv("LD_PRELOAD") ||
	       strncmp(getenv("LD_PRELOAD"), "libm.so.6:/", 11) ? 3 : 0;
}

static void test_all(void)
{
	char *bare[] = { "A=1", asan, "B=2", NULL };
	char *empty[] = { "A=1", asan, "LD_PRELOAD=", "B=2", NULL };
	char *big[5001];

	for (int how = 0; how < HOWS; how++) {
		int status = status_of(how, env);

		if (status)
			printf("way %d: status %d\n", how, status);
		CHECK(!status);
		/* Who wants none has none. */
		CHECK(status_of(how, bare) == 2);
		CHECK(status_of(how, empty) == 2);
	}
	for (int i = 0; i < 5000; i++)
		big[i] = "C=3";
	memcpy(big, env, 4 * sizeof(*env));
	big[5000] = NULL;
	CHECK(!status_of(EXECVE, big));
	CHECK(execve("/nowhere", env, env) == -1 && errno == ENOENT);
	CHECK(execlp("nowhere at all", "x", (char *)NULL) == -1 && errno == ENOENT);
	CHECK(fexecve(-1, env, env) == -1 && errno == EBADF);
}

static void test_vfork(void)
{
	int status = -1;
	pid_t pid = vfork();

	if (!pid) {
		execle(name, name, device, "child", "an argument", (char *)NULL, env);
		_exit(100);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

/*
 * Run before all constructors, the preloaded library's too, as other libraries'
 * may be. Nothing of a sanitizer is there yet.
 */
static int early_end = -1;

static void __attribute__((no_sanitize("address", "undefined", "thread")))
run_early(int argc, char **argv, char **environment)
{
	static char program[] = "true";
	static char *args[] = { program, NULL };
	pid_t pid;

	(void)argc;
	(void)argv;
	if (!posix_spawnp(&pid, program, NULL, NULL, args, environment))
		waitpid(pid, &early_end, 0);
}

static void (*const early[])(int argc, char **argv, char **environment)
	__attribute__((section(".preinit_array"), used)) = { run_early };

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	device = argv[1];
	if (argc > 2)
		return child(argc, argv);
	if (readlink(SELF, name, sizeof(name) - 1) < 0)
		return 2;
	CHECK(!early_end);
	test_all();
	test_vfork();
	return failed;
}
