/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that each post an RDMA write into a page that never comes, of a file
 * that they all map: uverbs_dead_users PROCESSES private|shared [UID]. With UID
 * each is another user, from that one on. Says so when all have posted, and stays.
 * Run by ibfs-run.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#include "dead_page.h"
#include "uverbs_end.h"

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* A process that ends with this one. */
static pid_t child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* A file whose page has been asked for. Nobody but its server has the file system's descriptor. */
static int dead_file(void)
{
	char name[] = "/tmp/uverbs_dead_users.XXXXXX", byte;
	struct dead_server server = { 0 };
	int told[2], fd;

	dead_mount(&server, name);
	if (pipe(told))
		die("pipe");
	server.told = told[1];
	if (!child()) {
		close(told[0]);
		dead_serve(&server);
		_exit(0);
	}
	close(server.fd);
	close(told[1]);
	fd = dead_open(name);
	if (!child()) {
		if (read(fd, &byte, 1) < 0)
			perror("page");
		_exit(1);
	}
	if (read(told[0], &byte, 1) != 1)
		die("nobody touched the page");
	close(told[0]);
	return fd;
}

static void become(uid_t uid)
{
	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		die("setuid");
	prctl(PR_SET_PDEATHSIG, SIGKILL);	/* which that has cleared */
}

static void *map(int fd, int flags)
{
	return must(mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, fd, 0), "mmap");
}

/* What is posted isn't waited for. */
static void post(int fd, int flags)
{
	void *page = map(fd, flags), *own = map(-1, MAP_PRIVATE | MAP_ANONYMOUS);
	struct ibv_sge sge = { .addr = (uintptr_t)own, .length = 4096 };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_mr *ours, *mr;
	struct end end;

	open_end(&end);
	memset(own, 1, 4096);
	ours = must(ibv_reg_mr(end.pd, own, 4096, ACCESS), "reg own");
	mr = must(ibv_reg_mr(end.pd, page, 4096, ACCESS), "reg page");
	sge.lkey = ours->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)page;
	wr.wr.rdma.rkey = mr->rkey;
	CHECK(!ibv_post_send(end.qp, &wr, &bad));
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[1]) : 0, posted[2], fd;
	uid_t uid = argc > 3 ? (uid_t)atoi(argv[3]) : 0;
	char byte;

	if (!count || pipe(posted)) {
		fputs("usage: uverbs_dead_users PROCESSES private|shared [UID]\n", stderr);
		return 2;
	}
	fd = dead_file();
	for (int i = 0; i < count; i++) {
		if (child())
			continue;
		if (uid)
			become(uid + i);
		post(fd, strcmp(argv[2], "shared") ? MAP_PRIVATE : MAP_SHARED);
		if (failed || write(posted[1], "p", 1) != 1)
			_exit(1);
		pause();
	}
	close(posted[1]);
	while (count && read(posted[0], &byte, 1) == 1)
		count--;
	puts(count ? "failed" : "posted");
	fflush(stdout);
	pause();
}
