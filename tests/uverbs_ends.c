/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How things end, by libibverbs: uverbs_ends lost | many N | spin | fork | exec.
 * A QP of each process is an unreliable datagram one that sends to itself. Run
 * by ibfs-run; what is printed says how far it is.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define SIZE	1024
#define GRH	40
#define QKEY	7

struct own {
	struct ibv_context *ctx;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	uint8_t *mem;			/* half of it is sent, half received into */
	atomic_int async_tid, channel_tid;
};

static void *must(void *p, const char *what)
{
	if (!p || p == MAP_FAILED) {
		perror(what);
		exit(1);
	}
	return p;
}

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = must(ibv_get_device_list(NULL), "devices");
	struct ibv_context *ctx = must(list[0] ? ibv_open_device(list[0]) : NULL, "open");

	ibv_free_device_list(list);
	return ctx;
}

static void make(struct own *own, struct ibv_context *ctx)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct ibv_ah_attr to = { .port_num = 1 };
	struct ibv_port_attr port;

	own->ctx = ctx;
	own->channel = must(ibv_create_comp_channel(ctx), "channel");
	own->pd = must(ibv_alloc_pd(ctx), "pd");
	own->cq = must(ibv_create_cq(ctx, 8, NULL, own->channel, 0), "cq");
	own->mem = must(mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			"mmap");
	own->mr = must(ibv_reg_mr(own->pd, own->mem, 2 * SIZE, IBV_ACCESS_LOCAL_WRITE), "mr");
	init.send_cq = init.recv_cq = own->cq;
	own->qp = must(ibv_create_qp(own->pd, &init), "qp");
	CHECK(!ibv_query_port(ctx, 1, &port));
	to.dlid = port.lid;
	own->ah = must(ibv_create_ah(own->pd, &to), "ah");
	CHECK(!ibv_modify_qp(own->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(own->qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(own->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static int post_recv(struct own *own)
{
	struct ibv_sge sge = { (uintptr_t)own->mem + SIZE, SIZE, own->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_recv(own->qp, &wr, &bad);
}

static int post_send(struct own *own, uint32_t qpn)
{
	struct ibv_sge sge = { (uintptr_t)own->mem, SIZE - GRH, own->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = own->ah, .remote_qpn = qpn, .remote_qkey = QKEY },
	};

	return ibv_post_send(own->qp, &wr, &bad);
}

/* One completion, waited for: its status. */
static int completion(struct own *own)
{
	struct ibv_wc wc = { .status = 0 };
	int n;

	while (!(n = ibv_poll_cq(own->cq, 1, &wc)))
		usleep(50);
	return n < 0 ? -1 : (int)wc.status;
}

/* There and back, whole. */
static void talk(struct own *own, uint8_t word)
{
	memset(own->mem, word, SIZE);
	CHECK(!post_recv(own) && !post_send(own, own->qp->qp_num));
	CHECK(completion(own) == IBV_WC_SUCCESS && completion(own) == IBV_WC_SUCCESS);
	CHECK(!memcmp(own->mem, own->mem + SIZE + GRH, SIZE - GRH));
}

static void close_all(struct own *own)
{
	CHECK(!ibv_destroy_qp(own->qp));
	CHECK(!ibv_destroy_ah(own->ah));
	CHECK(!ibv_destroy_cq(own->cq));
	CHECK(!ibv_destroy_comp_channel(own->channel));
	CHECK(!ibv_dereg_mr(own->mr));
	CHECK(!ibv_dealloc_pd(own->pd));
	CHECK(!ibv_close_device(own->ctx));
}

/* --- lost: the device goes, or the daemon --- */

static bool is_gone(int err)
{
	return err == EIO || err == ENOTCONN || err == ECONNABORTED;
}

static void *wait_async(void *arg)
{
	struct own *own = arg;
	struct ibv_async_event event;

	own->async_tid = gettid();
	if (!ibv_get_async_event(own->ctx, &event)) {
		printf("event: %s\n", ibv_event_type_str(event.event_type));
		CHECK(event.event_type == IBV_EVENT_DEVICE_FATAL);
		CHECK(ibv_get_async_event(own->ctx, &event) == -1);
	}
	printf("async: %s\n", strerror(errno));
	CHECK(is_gone(errno));
	return NULL;
}

static void *wait_completion(void *arg)
{
	struct own *own = arg;
	struct ibv_cq *cq;
	void *context;

	own->channel_tid = gettid();
	while (!ibv_get_cq_event(own->channel, &cq, &context))
		say("completion event");
	printf("channel: %s\n", strerror(errno));
	CHECK(is_gone(errno));
	return NULL;
}

/*
 * Until the thread waits in read(2) or futex_waitv(2), where ibfs-run has its
 * events; two seconds where that can't be seen.
 */
static void wait_until_it_reads(const atomic_int *tid)
{
	char path[64], call[16] = "";
	FILE *file;

	for (int i = 0; i < 2000; i++) {
		if (!strncmp(call, "0 ", 2) || atoi(call) == SYS_futex_waitv)
			return;
		usleep(1000);
		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", *tid);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (!fgets(call, sizeof(call), file))
			call[0] = '\0';
		fclose(file);
	}
}

static int lost(void)
{
	struct ibv_device_attr attr;
	pthread_t async, comp;
	struct own own = { 0 };
	struct ibv_wc wc;

	make(&own, open_device());
	talk(&own, 1);
	CHECK(!post_recv(&own) && !ibv_req_notify_cq(own.cq, 0));
	pthread_create(&async, NULL, wait_async, &own);
	pthread_create(&comp, NULL, wait_completion, &own);
	wait_until_it_reads(&own.async_tid);
	wait_until_it_reads(&own.channel_tid);
	say("ready");
	pthread_join(async, NULL);
	pthread_join(comp, NULL);
	CHECK(is_gone(ibv_query_device(own.ctx, &attr)));
	CHECK(!ibv_alloc_pd(own.ctx) && is_gone(errno));
	CHECK(!ibv_reg_mr(own.pd, own.mem, SIZE, 0) && is_gone(errno));
	CHECK(is_gone(post_send(&own, 1)));
	/* The rings are still there. What was posted has failed, if anybody was left to say so. */
	while (ibv_poll_cq(own.cq, 1, &wc) > 0)
		printf("completion: %s\n", ibv_wc_status_str(wc.status));
	CHECK(ibv_destroy_qp(own.qp));
	ibv_close_device(own.ctx);
	say("done");
	return failed;
}

/* --- many processes at once --- */

static int child(struct ibv_device *device, int ready, int go)
{
	struct own own = { 0 };
	char byte;

	make(&own, must(ibv_open_device(device), "open"));
	if (write(ready, failed ? "x" : "r", 1) != 1 || read(go, &byte, 1))
		return 1;
	talk(&own, (uint8_t)getpid());
	close_all(&own);
	return failed;
}

static int many(unsigned int num)
{
	struct ibv_device **list = must(ibv_get_device_list(NULL), "devices");
	int ready[2], go[2], status;
	char byte;

	if (pipe(ready) || pipe(go))
		return 1;
	for (unsigned int i = 0; i < num; i++) {
		pid_t pid = fork();

		if (!pid) {
			close(go[1]);
			_exit(child(list[i & 1], ready[1], go[0]));
		}
		CHECK(pid > 0);
	}
	close(ready[1]);
	for (unsigned int i = 0; i < num; i++)
		CHECK(read(ready[0], &byte, 1) == 1 && byte == 'r');
	say("all are there");
	close(go[1]);
	while (wait(&status) > 0)
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	ibv_free_device_list(list);
	return failed;
}

static int spin(void)
{
	struct own own = { 0 };

	make(&own, open_device());
	talk(&own, 1);
	say("spins");
	while (!failed)
		talk(&own, 2);
	return failed;
}

/* --- fork and exec --- */

/* A child goes on with what its parent opened, or leaves it alone, or closes everything. */
static int forks(void)
{
	struct own own = { 0 };
	int status;

	make(&own, open_device());
	talk(&own, 1);
	for (int what = 0; what < 3; what++) {
		struct ibv_port_attr port;
		struct own second = { 0 };
		pid_t pid = fork();

		if (!pid) {
			if (what == 1) {
				CHECK(!ibv_query_port(own.ctx, 1, &port));
				make(&second, open_device());
				talk(&second, 3);
				close_all(&second);
			} else if (what == 2) {
				closefrom(3);
			}
			_exit(failed);
		}
		/* Its pages are shared with the child's until one of both writes. */
		talk(&own, (uint8_t)(10 + what));
		CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
		talk(&own, (uint8_t)(20 + what));
	}
	close_all(&own);
	return failed;
}

/* Who sends when told so. */
static pid_t start_sender(uint32_t qpn, int told)
{
	struct own own = { 0 };
	pid_t pid = fork();
	char byte;

	if (pid)
		return pid;
	make(&own, open_device());
	memset(own.mem, 0xee, SIZE);
	if (read(told, &byte, 1) != 1)
		_exit(1);
	CHECK(!post_send(&own, qpn) && completion(&own) == IBV_WC_SUCCESS);
	close_all(&own);
	_exit(failed);
}

/* The new program: the file and the QP are still there, the memory only if it was pinned. */
static int after_exec(int fd, uint32_t cq, int tell)
{
	struct { struct ib_uverbs_poll_cq_resp head; struct ib_uverbs_wc wc; } resp = { 0 };
	struct { struct ib_uverbs_cmd_hdr hdr; struct ib_uverbs_poll_cq req; } cmd = {
		.hdr = { IB_USER_VERBS_CMD_POLL_CQ, sizeof(cmd) / 4, sizeof(resp) / 4 },
		.req = { .response = (uintptr_t)&resp, .cq_handle = cq, .ne = 1 },
	};
	int status;

	CHECK(write(tell, "", 1) == 1);
	while (!resp.head.count && !failed) {
		CHECK(write(fd, &cmd, sizeof(cmd)) == sizeof(cmd));
		usleep(1000);
	}
	CHECK(resp.wc.wr_id == 1);
	CHECK(resp.wc.status == IBV_WC_LOC_PROT_ERR || resp.wc.status == IBV_WC_SUCCESS);
	CHECK(wait(&status) > 0 && WIFEXITED(status) && !WEXITSTATUS(status));
	return failed;
}

static int execs(void)
{
	struct own own = { 0 };
	char fd[12], cq[12], tell[12];
	int told[2];

	make(&own, open_device());
	CHECK(!post_recv(&own) && !pipe(told));
	start_sender(own.qp->qp_num, told[0]);
	CHECK(dup2(own.ctx->cmd_fd, 100) == 100);
	snprintf(fd, sizeof(fd), "%d", 100);
	snprintf(cq, sizeof(cq), "%u", own.cq->handle);
	snprintf(tell, sizeof(tell), "%d", told[1]);
	execl("/proc/self/exe", "uverbs_ends", "after_exec", fd, cq, tell, NULL);
	perror("exec");
	return 1;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "lost"))
		return lost();
	if (!strcmp(what, "many") && argc > 2)
		return many((unsigned int)atoi(argv[2]));
	if (!strcmp(what, "spin"))
		return spin();
	if (!strcmp(what, "fork"))
		return forks();
	if (!strcmp(what, "exec"))
		return execs();
	if (!strcmp(what, "after_exec") && argc > 4)
		return after_exec(atoi(argv[2]), (uint32_t)atoi(argv[3]), atoi(argv[4]));
	fputs("usage: uverbs_ends lost | many N | spin | fork | exec\n", stderr);
	return 2;
}
