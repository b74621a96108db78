/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command whose answer goes to a page that never comes (userfaultfd):
 * uverbs_dead_page MOUNTPOINT. It hangs alone, others' commands don't; what it
 * made is gone when it was killed. Exits with 77 where userfaultfd isn't to be had.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ibfs/uverbs_rings.h>

#include "check.h"

#define NO_USERFAULTFD	77

struct context {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_get_context req;
};

static int open_uverbs(const char *mnt)
{
	struct ib_uverbs_get_context_resp resp;
	struct context cmd = {
		{ IB_USER_VERBS_CMD_GET_CONTEXT, sizeof(cmd) / 4, sizeof(resp) / 4 },
		{ .response = (uintptr_t)&resp },
	};
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/rxe0/uverbs", mnt);
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0 && write(fd, &cmd, sizeof(cmd)) == sizeof(cmd));
	return fd;
}

static ssize_t alloc_pd(int fd, uint32_t *handle)
{
	struct { struct ib_uverbs_cmd_hdr hdr; struct ib_uverbs_alloc_pd req; } cmd = {
		{ IB_USER_VERBS_CMD_ALLOC_PD, sizeof(cmd) / 4, 1 }, { .response = (uintptr_t)handle },
	};

	return write(fd, &cmd, sizeof(cmd));
}

/* By ioctl, the attributes on the page. */
static int query_port(int fd, void *page)
{
	struct ib_uverbs_ioctl_hdr *hdr = (struct ib_uverbs_ioctl_hdr *)((char *)page - sizeof(*hdr));

	*hdr = (struct ib_uverbs_ioctl_hdr){
		.length = sizeof(*hdr) + 2 * sizeof(struct ib_uverbs_attr), .num_attrs = 2,
		.object_id = UVERBS_OBJECT_DEVICE, .method_id = UVERBS_METHOD_QUERY_PORT,
		.driver_id = RDMA_DRIVER_RXE,
	};
	return ioctl(fd, RDMA_VERBS_IOCTL, hdr);
}

/* A page that is there, and behind it one that doesn't come. */
static uint8_t *map_pages(int *uffd)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	reg.range = (struct uffdio_range){ (uintptr_t)pages + 4096, 4096 };
	if (*uffd < 0 || ioctl(*uffd, UFFDIO_API, &api) || ioctl(*uffd, UFFDIO_REGISTER, &reg))
		exit(NO_USERFAULTFD);
	return pages;
}

/* The child's command hangs, and its page's fault tells the watcher so. */
static void hang(const char *mnt, int by_ioctl, int told)
{
	struct uffd_msg msg;
	uint8_t *pages;
	int uffd, fd = open_uverbs(mnt);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pages = map_pages(&uffd);
	pages[0] = 0;
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(uffd, &msg, sizeof(msg)) == sizeof(msg) && write(told, "h", 1) == 1)
			pause();
		_exit(1);
	}
	if (by_ioctl)
		query_port(fd, pages + 4096);
	else
		alloc_pd(fd, (uint32_t *)(pages + 4096));
	_exit(1);
}

static void test(const char *mnt, int by_ioctl)
{
	int told[2], status, fd;
	uint32_t handle;
	char byte;
	pid_t pid;

	CHECK(!pipe(told));
	pid = fork();
	if (!pid) {
		close(told[0]);
		hang(mnt, by_ioctl, told[1]);
	}
	close(told[1]);
	if (read(told[0], &byte, 1) != 1) {
		CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
		exit(WEXITSTATUS(status) == NO_USERFAULTFD ? NO_USERFAULTFD : 1);
	}
	close(told[0]);
	fd = open_uverbs(mnt);
	for (int i = 0; i < 100; i++)
		CHECK(alloc_pd(fd, &handle) > 0);
	CHECK(!waitpid(pid, &status, WNOHANG));
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	CHECK(alloc_pd(fd, &handle) > 0);
	close(fd);
}

/* --- a socket whose lock is held by a send from such a page --- */

static int tcp_socket(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(addr);

	CHECK(!bind(listener, (struct sockaddr *)&addr, len) && !listen(listener, 1));
	CHECK(!getsockname(listener, (struct sockaddr *)&addr, &len));
	CHECK(!connect(fd, (struct sockaddr *)&addr, len));
	return fd;
}

struct sender {
	int sock;
	const void *page;
};

static void *send_page(void *arg)
{
	const struct sender *sender = arg;

	send(sender->sock, sender->page, 100, 0);
	return NULL;
}

/* The daemon is asked to send its rings there; the answer is told. */
static void send_rings(const char *mnt, int told)
{
	struct { struct ib_uverbs_cmd_hdr hdr; struct ibfs_uverbs_rings req; } cmd = {
		.hdr = { IBFS_UVERBS_RINGS, sizeof(cmd) / 4, 0 },
	};
	int uffd, fd = open_uverbs(mnt), err;
	struct sender sender = { .sock = tcp_socket() };
	struct uffd_msg msg;
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sender.page = map_pages(&uffd) + 4096;
	CHECK(!pthread_create(&thread, NULL, send_page, &sender));
	CHECK(read(uffd, &msg, sizeof(msg)) == sizeof(msg));
	cmd.req.sock = sender.sock;
	err = write(fd, &cmd, sizeof(cmd)) < 0 ? errno : 0;
	CHECK(write(told, &err, sizeof(err)) == sizeof(err));
	pause();
}

static void test_socket(const char *mnt)
{
	int told[2], status, err = 0;
	uint32_t handle;
	pid_t pid;
	int fd;

	CHECK(!pipe(told));
	pid = fork();
	if (!pid)
		send_rings(mnt, told[1]);
	CHECK(read(told[0], &err, sizeof(err)) == sizeof(err) && err == EINVAL);
	fd = open_uverbs(mnt);
	CHECK(alloc_pd(fd, &handle) > 0);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	test(argv[1], 0);
	test(argv[1], 1);
	test_socket(argv[1]);
	return failed;
}
