/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process whose directory in /proc nobody can look into: one thread reads it into a
 * page that never comes (userfaultfd), with its lock held, another one waits for the
 * lock. Then it asks rdma_cm for what depends on its network: callbacks_proc RDMA_CM.
 * It says "asks" before, and never ends where that hangs. Exits with 77 where
 * userfaultfd isn't to be had.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "in_syscall.h"

static char dir[32];
static uint8_t *page;
static atomic_int changer;

static void *read_dir(void *arg)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	(void)arg;
	syscall(SYS_getdents64, fd, page, 4096);
	return NULL;
}

static void *change_mode(void *arg)
{
	(void)arg;
	changer = gettid();
	syscall(SYS_fchmodat, AT_FDCWD, dir, 0777);
	return NULL;
}

static int map_page(void)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reg.range = (struct uffdio_range){ (uintptr_t)page, 4096 };
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &reg))
		exit(77);
	return uffd;
}

static void lock_dir(void)
{
	struct uffd_msg msg;
	int uffd = map_page();
	pthread_t thread;

	snprintf(dir, sizeof(dir), "/proc/%d", (int)getpid());
	pthread_create(&thread, NULL, read_dir, NULL);
	CHECK(read(uffd, &msg, sizeof(msg)) == sizeof(msg));
	pthread_create(&thread, NULL, change_mode, NULL);
	while (!changer)
		usleep(100);
	CHECK(wait_in_syscall(changer, SYS_fchmodat));
}

static uint32_t create_id(int fd)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	struct { struct rdma_ucm_cmd_hdr hdr; struct rdma_ucm_create_id req; } cmd = {
		{ RDMA_USER_CM_CMD_CREATE_ID, sizeof(cmd.req), sizeof(resp) },
		{ .response = (uintptr_t)&resp, .ps = RDMA_PS_TCP },
	};

	CHECK(write(fd, &cmd, sizeof(cmd)) == sizeof(cmd));
	return resp.id;
}

static void bind_id(int fd, uint32_t id)
{
	struct { struct rdma_ucm_cmd_hdr hdr; struct rdma_ucm_bind_ip req; } cmd = {
		{ RDMA_USER_CM_CMD_BIND_IP, sizeof(cmd.req), 0 }, { .id = id },
	};
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a010203) };

	memcpy(&cmd.req.addr, &addr, sizeof(addr));
	(void)!write(fd, &cmd, sizeof(cmd));
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDWR) : -1;
	uint32_t id;

	if (fd < 0)
		return 2;
	id = create_id(fd);
	lock_dir();
	if (failed)
		return 1;
	puts("asks");
	fflush(stdout);
	bind_id(fd, id);
	puts("asked");
	fflush(stdout);
	for (;;)
		pause();
}
