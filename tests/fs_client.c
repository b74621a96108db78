/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a shell can't do to the tree: fs_client TEST ARGUMENT... runs one test
 * on the files that the arguments name, says what failed, and exits 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(ok) do { if (!(ok)) fail(__LINE__, #ok); } while (0)

static void fail(int line, const char *what)
{
	fprintf(stderr, "fs_client.c:%d: %s (%s)\n", line, what, strerror(errno));
	exit(1);
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* An event happens: LINK-CTL goes down and up again. */
static void make_events(const char *ctl)
{
	write_text(ctl, "down\n");
	write_text(ctl, "up\n");
}

/* seek FILE: one moment is read to its end; from offset 0 there is a new one. */
static int test_seek(char **argv)
{
	int fd = open(argv[0], O_RDONLY);
	char buf[64] = "";

	write_text(argv[0], "first text\n");
	CHECK(fd >= 0);
	CHECK(read(fd, buf, 6) == 6 && !memcmp(buf, "first ", 6));
	write_text(argv[0], "other\n");
	CHECK(read(fd, buf, sizeof(buf)) == 5 && !memcmp(buf, "text\n", 5));
	CHECK(read(fd, buf, sizeof(buf)) == 0);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CHECK(read(fd, buf, sizeof(buf)) == 6 && !memcmp(buf, "other\n", 6));
	CHECK(pread(fd, buf, sizeof(buf), 2) == 4 && !memcmp(buf, "her\n", 4));
	CHECK(pread(fd, buf, sizeof(buf), 1 << 30) == 0);
	CHECK(ioctl(fd, 0x1b03) == -1 && errno == ENOTTY);
	return 0;
}

/* opens FILE COUNT: so many at a time, each with its own text. */
static int test_opens(char **argv)
{
	int i, n = atoi(argv[1]), *fds = calloc(n, sizeof(*fds));
	struct rlimit limit = { n + 64, n + 64 };
	char buf[4096];
	ssize_t len;

	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	for (i = 0; i < n; i++) {
		fds[i] = open(argv[0], O_RDONLY);
		CHECK(fds[i] >= 0);
	}
	len = read(fds[0], buf, sizeof(buf));
	CHECK(len > 0);
	for (i = 1; i < n; i++)
		CHECK(read(fds[i], buf, sizeof(buf)) == len);
	for (i = 0; i < n; i++)
		CHECK(close(fds[i]) == 0);
	free(fds);
	return 0;
}

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1 && (p.revents & POLLIN);
}

/* All that make_events() made: of a system's device it comes a moment later. */
static void drain(int fd)
{
	bool last = false;
	char line[256];
	ssize_t n;

	do {
		while ((n = read(fd, line, sizeof(line) - 1)) > 0) {
			line[n] = '\0';
			if (strstr(line, "event=port_active"))
				last = true;
		}
	} while (!last && readable(fd, 5000));
}

/* queue EVENTS CTL: a line a read, the rest stays; O_NONBLOCK, poll, lseek. */
static int test_queue(char **argv)
{
	int a = open(argv[0], O_RDONLY | O_NONBLOCK), b = open(argv[0], O_RDONLY);
	char whole[256] = "", parts[256] = "";
	ssize_t n, len;

	CHECK(a >= 0 && b >= 0);
	CHECK(read(a, parts, 1) == -1 && errno == EAGAIN);
	CHECK(!readable(a, 0));
	make_events(argv[1]);
	CHECK(readable(a, 5000) && readable(b, 5000));
	n = read(b, whole, sizeof(whole) - 1);
	CHECK(n > 10 && whole[n - 1] == '\n' && strchr(whole, '\n') == whole + n - 1);
	CHECK(lseek(a, 0, SEEK_SET) == 0);
	for (len = 0; len < n; len += 3)
		CHECK(read(a, parts + len, 3) == (n - len < 3 ? n - len : 3));
	CHECK(!strcmp(whole, parts));
	CHECK(lseek(a, 0, SEEK_CUR) >= 0);
	/* F_SETFL counts, not what open said. */
	CHECK(fcntl(b, F_SETFL, O_NONBLOCK) == 0);
	drain(b);
	CHECK(errno == EAGAIN);
	CHECK(!readable(b, 0));
	return 0;
}

static void *wait_and_make(void *ctl)
{
	usleep(100000);
	make_events(ctl);
	return NULL;
}

/* poll EVENTS CTL: poll, select and both kinds of epoll sleep until there is something. */
static int test_poll(char **argv)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int fd = open(argv[0], O_RDONLY | O_NONBLOCK), ep = epoll_create1(0);
	pthread_t thread;
	fd_set set;
	int round;

	CHECK(fd >= 0 && ep >= 0);
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) == 0);
	CHECK(epoll_wait(ep, &ev, 1, 0) == 0);
	for (round = 0; round < 4; round++) {
		CHECK(pthread_create(&thread, NULL, wait_and_make, argv[1]) == 0);
		FD_ZERO(&set);
		FD_SET(fd, &set);
		if (round == 0)
			CHECK(readable(fd, 10000));
		else if (round == 1)
			CHECK(select(fd + 1, &set, NULL, NULL, NULL) == 1);
		else
			CHECK(epoll_wait(ep, &ev, 1, 10000) == 1 && (ev.events & EPOLLIN));
		pthread_join(thread, NULL);
		drain(fd);
		CHECK(errno == EAGAIN);
		/* The edge that came meanwhile. */
		while (epoll_wait(ep, &ev, 1, 0) == 1)
			;
		CHECK(!readable(fd, 0));
	}
	return 0;
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* interrupt QUEUE: a signal ends a read that waits, with EINTR; the file works on. */
static int test_interrupt(char **argv)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	int fd = open(argv[0], O_RDONLY), i;
	char buf[256];

	CHECK(fd >= 0);
	CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
	while (readable(fd, 0))
		CHECK(read(fd, buf, sizeof(buf)) > 0);
	for (i = 0; i < 3; i++) {
		ualarm(50000, 0);
		CHECK(read(fd, buf, sizeof(buf)) == -1 && errno == EINTR);
	}
	return 0;
}

/* killed QUEUE: kill -9 ends a process that waits. */
static int test_killed(char **argv)
{
	int status, fds[2];
	char buf[256];
	pid_t pid;

	CHECK(pipe(fds) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		int fd = open(argv[0], O_RDONLY);

		if (write(fds[1], "", 1) != 1)
			_exit(2);
		while (read(fd, buf, sizeof(buf)) > 0)
			;
		_exit(1);
	}
	CHECK(read(fds[0], buf, 1) == 1);
	usleep(100000);
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	return 0;
}

struct reader {
	pthread_t thread;
	int fd;
	ssize_t n;
	char line[256];
};

static void *read_one(void *arg)
{
	struct reader *r = arg;

	r->n = read(r->fd, r->line, sizeof(r->line));
	return NULL;
}

/* threads EVENTS CTL: two that wait on one file get a line each. */
static int test_threads(char **argv)
{
	struct reader r[2];
	int fd = open(argv[0], O_RDONLY), i;

	CHECK(fd >= 0);
	for (i = 0; i < 2; i++) {
		r[i].fd = fd;
		CHECK(pthread_create(&r[i].thread, NULL, read_one, &r[i]) == 0);
	}
	usleep(100000);
	make_events(argv[1]);
	for (i = 0; i < 2; i++) {
		pthread_join(r[i].thread, NULL);
		CHECK(r[i].n > 0 && r[i].line[r[i].n - 1] == '\n');
	}
	CHECK(r[0].n != r[1].n || memcmp(r[0].line, r[1].line, r[0].n) != 0);
	return 0;
}

/* flood UMAD COUNT: so many Get(NodeInfo) to the node at the other end, each answered. */
static int test_flood(char **argv)
{
	struct ib_user_mad_reg_req reg = { .mgmt_class = 0x81, .mgmt_class_version = 1 };
	struct {
		struct ib_user_mad_hdr hdr;
		uint8_t mad[256];
	} msg;
	int fd = open(argv[0], O_RDWR), i;

	CHECK(fd >= 0);
	CHECK(ioctl(fd, IB_USER_MAD_ENABLE_PKEY) == 0);
	CHECK(ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &reg) == 0);
	for (i = 1; i <= atoi(argv[1]); i++) {
		memset(&msg, 0, sizeof(msg));
		msg.hdr.id = reg.id;
		msg.hdr.timeout_ms = 5000;
		msg.hdr.lid = 0xffff;
		memcpy(msg.mad, "\1\x81\1\1\0\0\0\1", 8);	/* one hop */
		memcpy(msg.mad + 12, &i, sizeof(i));
		msg.mad[17] = 0x11;
		memset(msg.mad + 32, 0xff, 4);
		msg.mad[129] = 1;
		CHECK(write(fd, &msg, sizeof(msg)) == sizeof(msg));
		CHECK(read(fd, &msg, sizeof(msg)) == sizeof(msg) && !msg.hdr.status);
	}
	return 0;
}

static const struct {
	const char *name;
	int args;
	int (*run)(char **argv);
} tests[] = {
	{ "seek", 1, test_seek },
	{ "opens", 2, test_opens },
	{ "queue", 2, test_queue },
	{ "poll", 2, test_poll },
	{ "interrupt", 1, test_interrupt },
	{ "killed", 1, test_killed },
	{ "threads", 2, test_threads },
	{ "flood", 2, test_flood },
};

int main(int argc, char **argv)
{
	unsigned int i;

	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (argc > 1 && !strcmp(argv[1], tests[i].name) && argc - 2 == tests[i].args)
			return tests[i].run(argv + 2);
	fprintf(stderr, "usage: fs_client TEST ARGUMENT...\n");
	return 2;
}
