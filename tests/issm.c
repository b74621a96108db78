/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * issm hold FILE: open it (waiting for it), print "held", keep it until killed.
 * issm try FILE: open it with O_NONBLOCK and print "held" or the error's name.
 * issm interrupt FILE: open it and be interrupted, print the error's name.
 * issm other FILE: what else can be done to it, which is nothing.
 */
#include "umad_test.h"

static void on_alarm(int sig)
{
	(void)sig;
}

static void report(int fd)
{
	puts(fd < 0 ? strerrorname_np(errno) : "held");
	fflush(stdout);
}

static void interrupt(const char *path)
{
	struct sigaction act = { .sa_handler = on_alarm };
	pid_t parent = getpid(), child;

	sigaction(SIGUSR1, &act, NULL);
	child = fork();
	if (!child) {
		wait_in_syscall(parent, SYS_openat);
		kill(parent, SIGUSR1);
		_exit(0);
	}
	report(open(path, O_RDONLY));
	waitpid(child, NULL, 0);
}

static void other(const char *path)
{
	int fd = must_open(path, O_RDWR | O_NONBLOCK);
	struct pollfd pfd = { fd, POLLIN | POLLOUT, 0 };
	char byte = 0;

	CHECK_ERR(read(fd, &byte, 1), EINVAL);
	CHECK_ERR(write(fd, &byte, 1), EINVAL);
	CHECK_ERR(lseek(fd, 0, SEEK_SET), ESPIPE);
	CHECK_ERR(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), ENOTTY);
	CHECK(poll(&pfd, 1, 0) == 1 && pfd.revents == (POLLIN | POLLOUT));
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	if (!strcmp(argv[1], "hold")) {
		int fd = open(argv[2], O_RDONLY);

		report(fd);
		while (fd >= 0)
			pause();
	} else if (!strcmp(argv[1], "try")) {
		report(open(argv[2], O_RDONLY | O_NONBLOCK));
	} else if (!strcmp(argv[1], "interrupt")) {
		interrupt(argv[2]);
	} else if (!strcmp(argv[1], "other")) {
		other(argv[2]);
	}
	return failures != 0;
}
