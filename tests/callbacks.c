/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attacks by a user on what a set-user-ID program has: callbacks TEST MOUNTPOINT
 * VICTIM. The attacker asks for something that takes the daemon long, and for what it
 * is after behind that, both by one io_submit(), so that it needn't wait for an answer;
 * then it becomes the victim. A sibling that shares its memory keeps that alive and
 * sees what comes of it. Exits with 77 where the victim doesn't become root.
 */
#include <linux/aio_abi.h>
#include <rdma/rdma_user_cm.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <ibfs/uverbs_rings.h>

#include "callbacks.h"
#include "uverbs_raw.h"

#define SLOW		40		/* regions of memory that are long to look at */
#define AREAS		20000		/* in each */
#define PAGE		4096
#define LIMIT		120		/* seconds */

struct attack;

struct plan {
	const char *name;
	/* Fill in what is asked for behind the slow ones. */
	void (*ask)(struct attack *attack);
	/* The sibling, once the victim runs: did it get anything? */
	bool (*use)(struct attack *attack);
};

/* Lies in memory that the sibling shares. */
struct attack {
	const struct plan *plan;
	const char *victim;
	struct qp qp;
	uint32_t mr, rkey;
	uint8_t *areas;
	aio_context_t aio;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_reg_mr req;
		struct ib_uverbs_reg_mr_resp resp;
	} slow[SLOW];
	struct {
		uint8_t bytes[128];
		size_t len;
		int fd;
	} last;
	struct ib_uverbs_rereg_mr_resp rereg;
	int tell, go;			/* the other ends of the victim's descriptors */
	int sock;
};

static struct attack *attack_new(void)
{
	void *at = mmap(NULL, sizeof(struct attack), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		exit(1);
	return at;
}

/* --- what is asked for --- */

/* A command of a uverbs file, to be submitted last. */
static void ask(struct attack *attack, uint32_t cmd, const void *req, size_t size, size_t out)
{
	struct ib_uverbs_cmd_hdr hdr = {
		.command = cmd, .in_words = (uint16_t)((size + sizeof(hdr)) / 4),
		.out_words = (uint16_t)(out / 4),
	};

	memcpy(attack->last.bytes, &hdr, sizeof(hdr));
	memcpy(attack->last.bytes + sizeof(hdr), req, size);
	attack->last.len = sizeof(hdr) + size;
	attack->last.fd = attack->qp.fd;
}

/* All memory that the process will have. */
static void ask_register(struct attack *attack)
{
	struct ib_uverbs_rereg_mr req = {
		.response = (uintptr_t)&attack->rereg, .mr_handle = attack->mr,
		.flags = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
		.length = UINT64_MAX,
		.access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND,
	};

	ask(attack, IB_USER_VERBS_CMD_REREG_MR, &req, sizeof(req), sizeof(attack->rereg));
}

static void post(struct qp *q, uint32_t opcode, uint32_t rkey)
{
	struct rxe_send_wqe *wqe = slot(q->sq, q->sq->producer_index);

	ring_write(q, SECRET, rkey);
	wqe->wr.opcode = opcode;
	doorbell(q);
}

static bool use_register(struct attack *attack)
{
	struct qp *q = &attack->qp;
	bool stolen;

	memset(q->mem, 0, 100);
	post(q, IB_UVERBS_WR_RDMA_READ, attack->rkey);
	stolen = poll_ring(q) == 0 && q->mem[0] == SECRET_BYTE;
	memset(q->mem, 0, 100);
	post(q, IB_UVERBS_WR_RDMA_WRITE, attack->rkey);
	poll_ring(q);
	return stolen;
}

/* An answer to where the victim has its secret. */
static void ask_answer(struct attack *attack)
{
	struct ib_uverbs_alloc_pd req = { .response = SECRET };

	ask(attack, IB_USER_VERBS_CMD_ALLOC_PD, &req, sizeof(req), 4);
}

static void ask_rdma_cm(struct attack *attack)
{
	struct { struct rdma_ucm_cmd_hdr hdr; struct rdma_ucm_create_id req; } cmd = {
		{ RDMA_USER_CM_CMD_CREATE_ID, sizeof(cmd.req), sizeof(struct rdma_ucm_create_id_resp) },
		{ .uid = 1, .response = SECRET, .ps = RDMA_PS_TCP },
	};

	memcpy(attack->last.bytes, &cmd, sizeof(cmd));
	attack->last.len = sizeof(cmd);
	attack->last.fd = open_file("dev/infiniband/rdma_cm");
}

/* Something sent to a socket that has a number of the victim's. */
static void ask_socket(struct attack *attack)
{
	struct ibfs_uverbs_rings req = { .sock = SOCK };
	int pair[2];

	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair));
	CHECK(dup3(pair[0], SOCK, O_CLOEXEC) == SOCK);
	attack->sock = pair[1];
	ask(attack, IBFS_UVERBS_RINGS, &req, sizeof(req), 0);
}

static bool use_nothing(struct attack *attack)
{
	(void)attack;
	return false;
}

static const struct plan plans[] = {
	{ "register", ask_register, use_register },
	{ "answer", ask_answer, use_nothing },
	{ "rdma_cm", ask_rdma_cm, use_nothing },
	{ "socket", ask_socket, use_nothing },
};

/* --- the attack --- */

static void make_areas(struct attack *attack)
{
	size_t size = 2UL * AREAS * PAGE;

	attack->areas = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(attack->areas != MAP_FAILED);
	for (size_t at = 0; at < size; at += 2UL * PAGE)
		CHECK(!mprotect(attack->areas + at, PAGE, PROT_READ | PROT_WRITE));
}

static void make_mrs(struct attack *attack)
{
	struct ib_uverbs_reg_mr req = {
		.start = (uintptr_t)attack->areas, .length = PAGE, .hca_va = (uintptr_t)attack->areas,
		.pd_handle = attack->qp.pd,
		.access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND,
	};
	struct ib_uverbs_reg_mr_resp resp;

	CHECK(CALL(attack->qp.fd, REG_MR, req, resp) == 0);
	attack->mr = resp.mr_handle;
	attack->rkey = resp.rkey;
	for (int i = 0; i < SLOW; i++) {
		attack->slow[i].hdr = (struct ib_uverbs_cmd_hdr){
			IB_USER_VERBS_CMD_REG_MR,
			(sizeof(attack->slow[i].hdr) + sizeof(attack->slow[i].req)) / 4,
			sizeof(attack->slow[i].resp) / 4,
		};
		req.response = (uintptr_t)&attack->slow[i].resp;
		req.length = 2UL * AREAS * PAGE;
		req.access_flags = 0;
		attack->slow[i].req = req;
	}
}

/* Returns when all was taken, or, where a write makes its caller wait, when all was done. */
static void submit(struct attack *attack)
{
	struct iocb cbs[SLOW + 1], *list[SLOW + 1];

	for (int i = 0; i <= SLOW; i++) {
		bool last = i == SLOW;
		const void *buf = last ? (void *)attack->last.bytes : (void *)&attack->slow[i];
		size_t len = sizeof(attack->slow[i].hdr) + sizeof(attack->slow[i].req);

		list[i] = &cbs[i];
		cbs[i] = (struct iocb){
			.aio_lio_opcode = IOCB_CMD_PWRITE, .aio_buf = (uintptr_t)buf,
			.aio_nbytes = last ? attack->last.len : len,
			.aio_fildes = (uint32_t)(last ? attack->last.fd : attack->qp.fd),
		};
	}
	CHECK(fcntl(attack->qp.fd, F_SETFL, O_DIRECT) == 0);
	CHECK(fcntl(attack->last.fd, F_SETFL, O_DIRECT) == 0);
	CHECK(syscall(SYS_io_submit, attack->aio, SLOW + 1, list) == SLOW + 1);
}

/* It has the attacker's memory, but neither its descriptors nor its fate. */
static int sibling(void *arg)
{
	struct attack *attack = arg;
	struct io_event events[SLOW + 1];
	bool stolen;
	char byte;

	close(TELL);
	alarm(LIMIT);
	if (read(attack->tell, &byte, 1) != 1)
		_exit(NO_ROOT);
	CHECK(syscall(SYS_io_getevents, attack->aio, SLOW + 1, SLOW + 1, events, NULL) == SLOW + 1);
	stolen = attack->plan->use(attack);
	CHECK(write(attack->go, "g", 1) == 1);
	_exit(stolen ? CHANGED : failed);
}

static void become_victim(const struct attack *attack)
{
	char *const argv[] = { (char *)attack->victim, NULL }, *const env[] = { NULL };

	execve(attack->victim, argv, env);
	perror(attack->victim);
	_exit(1);
}

static void run(struct attack *attack, pid_t *pid)
{
	static char stack[256 << 10] __attribute__((aligned(16)));

	alarm(LIMIT);
	attack->qp.fd = open_context("dev/infiniband/uverbs0");
	make_qp(&attack->qp, -1);
	connect_qp(&attack->qp);
	make_areas(attack);
	make_mrs(attack);
	attack->plan->ask(attack);
	CHECK(syscall(SYS_io_setup, SLOW + 1, &attack->aio) == 0);
	*pid = clone(sibling, stack + sizeof(stack), CLONE_VM | CLONE_PARENT | SIGCHLD, attack);
	CHECK(*pid > 0);
	submit(attack);
	if (failed)
		_exit(1);
	become_victim(attack);
}

static void make_pipes(struct attack *attack)
{
	int tell[2] = { -1, -1 }, go[2] = { -1, -1 };

	CHECK(!pipe2(tell, O_CLOEXEC) && !pipe2(go, O_CLOEXEC));
	CHECK(dup2(tell[1], TELL) == TELL && dup2(go[0], GO) == GO);
	close(tell[1]);
	close(go[0]);
	attack->tell = tell[0];
	attack->go = go[1];
}

static int status_of(pid_t pid)
{
	int status = 0;

	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
	return 1;
}

static int attacked(struct attack *attack)
{
	pid_t *helper = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;
	int status;

	make_pipes(attack);
	pid = fork();
	if (!pid)
		run(attack, helper);
	close(TELL);
	close(GO);
	close(attack->tell);
	close(attack->go);
	status = status_of(pid);
	if (status == NO_ROOT)
		return NO_ROOT;
	CHECK(status != CHANGED);	/* the victim's memory */
	CHECK(status != SENT);		/* to the victim's socket */
	CHECK(status == 0);
	status = status_of(*helper);
	CHECK(status != CHANGED);	/* the victim's secret was read */
	CHECK(status == 0);
	return failed;
}

int main(int argc, char **argv)
{
	struct attack *attack = attack_new();

	if (argc < 4)
		return 2;
	mnt = argv[2];
	attack->victim = argv[3];
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
		if (!strcmp(plans[i].name, argv[1]))
			attack->plan = &plans[i];
	return attack->plan ? attacked(attack) : 2;
}
