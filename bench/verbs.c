/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A native ring client that measures the verbs engine, and what it is compared
 * with. Prints one number:
 *
 *	verbs futex		ns, half a round trip between two processes that sleep
 *	verbs spin		ns, half a round trip between two that spin
 *	verbs memcpy SIZE	MB/s, copies between two mappings
 *	verbs sleep MNT		ns, 8-byte SEND to receive completion, the engine asleep
 *	verbs busy MNT		ns, the same while client and engine spin
 *	verbs write MNT SIZE [IDLE]	MB/s of RDMA writes, beside IDLE unused QPs
 *	verbs rate MNT [IDLE]	8-byte RDMA writes per second
 */
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "../tests/native.h"

enum { DEPTH = 256, ROUNDS = 20000, SLEEPS = 2000, SECONDS_NS = 1000000000 };

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t *values, size_t num)
{
	qsort(values, num, sizeof(*values), compare);
	return values[num / 2];
}

/* Peers: no daemon takes part. */

static void futex(uint32_t *word, int op, uint32_t value)
{
	syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

static void await_turn(uint32_t *word, uint32_t turn, bool sleeps)
{
	uint32_t seen;

	while ((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != turn)
		if (sleeps)
			futex(word, FUTEX_WAIT, seen);
}

static void give_turn(uint32_t *word, uint32_t turn, bool sleeps)
{
	__atomic_store_n(word, turn, __ATOMIC_RELEASE);
	if (sleeps)
		futex(word, FUTEX_WAKE, 1);
}

static void ping_pong(bool sleeps)
{
	uint32_t *words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t *there = words, *back = words + 64;	/* a cache line each */
	static uint64_t took[ROUNDS];
	pid_t child = fork();

	if (child < 0)
		die("fork");
	for (uint32_t i = 1; !child && i <= ROUNDS; i++) {
		await_turn(there, i, sleeps);
		give_turn(back, i, sleeps);
	}
	if (!child)
		_exit(0);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		uint64_t start = now_ns();

		give_turn(there, i, sleeps);
		await_turn(back, i, sleeps);
		took[i - 1] = now_ns() - start;
	}
	waitpid(child, NULL, 0);
	printf("%lu\n", median(took, ROUNDS) / 2);
}

static void copies(size_t size)
{
	uint8_t *from = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t *to = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t start, took, num = 0;

	memset(from, 1, size);
	memset(to, 1, size);
	start = now_ns();
	do {
		memcpy(to, from, size);
		__asm__ volatile("" ::: "memory");
		num++;
	} while ((took = now_ns() - start) < SECONDS_NS / 2);
	printf("%lu\n", num * size * 1000 / took);
}

/* One end of a connection: rxe0's, or rxe1's. */
struct end {
	char pd[16], cq[16], mr[16], qp[16];
	int ctl, sqfd;
	struct rxe_queue_buf *sqring, *rqring, *cqring;
	uint32_t sent, posted, completed;
	uint32_t lkey, rkey;
	uint8_t *data;
};

static struct rxe_queue_buf *open_ring(const char *mnt, const char *kind, const char *num,
				       const char *file, int *fd)
{
	*fd = open_file(mnt, kind, num, file, O_RDWR);
	return map_ring(*fd);
}

static void end_open(struct end *end, const char *mnt, int device, size_t size)
{
	int fd;

	make(mnt, "pd", end->pd, "create device=rxe%d", device);
	make(mnt, "cq", end->cq, "create device=rxe%d cqe=%d", device, 4 * DEPTH);
	make(mnt, "mr", end->mr, "create pd=%s size=%zu access=local_write,remote_write", end->pd,
	     size);
	end->ctl = make(mnt, "qp", end->qp, "create type=rc pd=%s cq=%s sq=%d rq=%d", end->pd,
			end->cq, DEPTH, DEPTH);
	end->data = map_file(open_file(mnt, "mr", end->mr, "data", O_RDWR), size);
	end->sqring = open_ring(mnt, "qp", end->qp, "sq", &end->sqfd);
	end->rqring = open_ring(mnt, "qp", end->qp, "rq", &fd);
	end->cqring = open_ring(mnt, "cq", end->cq, "ring", &fd);
	end->lkey = number(mnt, "mr", end->mr, "lkey");
	end->rkey = number(mnt, "mr", end->mr, "rkey");
	memset(end->data, 1, size);
}

static void connect_ends(struct end *end, const char *mnt, size_t size)
{
	end_open(&end[0], mnt, 0, size);
	end_open(&end[1], mnt, 1, size);
	if (dprintf(end[0].ctl, "connect peer=%s", end[1].qp) < 0)
		die("connect");
}

static void put_recv(struct end *end)
{
	struct rxe_recv_wqe *wqe = ring_elem(end->rqring, end->posted++);

	wqe->wr_id = end->posted;
	wqe->dma.num_sge = 1;
	wqe->dma.length = 64;
	wqe->dma.sge[0] = (struct rxe_sge){ 0, 64, end->lkey };
	__atomic_store_n(&end->rqring->producer_index, end->posted & end->rqring->index_mask,
			 __ATOMIC_RELEASE);
}

static void put_send(struct end *end, enum ibv_wr_opcode opcode, uint32_t len, uint32_t rkey,
		     bool signaled)
{
	struct rxe_send_wqe *wqe = ring_elem(end->sqring, end->sent++);

	wqe->wr.wr_id = end->sent;
	wqe->wr.opcode = opcode;
	wqe->wr.send_flags = signaled ? IBV_SEND_SIGNALED : 0;
	wqe->wr.wr.rdma.remote_addr = 0;
	wqe->wr.wr.rdma.rkey = rkey;
	wqe->dma.length = len;
	wqe->dma.num_sge = 1;
	wqe->dma.sge[0] = (struct rxe_sge){ 0, len, end->lkey };
}

/* The next completion, waited for by spinning. */
static void await(struct end *end)
{
	const struct ib_uverbs_wc *wc;

	while (!(wc = completion(end->cqring, end->completed)))
		;
	if (wc->status) {
		fprintf(stderr, "completion %u: status %u\n", end->completed, wc->status);
		exit(1);
	}
	consumed(end->cqring, ++end->completed);
}

/* 8 bytes from one end to the other, and back; unsignaled, so that each CQ holds receives only. */
static void lat(const char *mnt, bool asleep)
{
	uint32_t rounds = asleep ? SLEEPS : ROUNDS;
	static uint64_t took[ROUNDS];
	struct end end[2] = { 0 };

	connect_ends(end, mnt, 4096);
	for (int i = 0; i < DEPTH / 2; i++) {
		put_recv(&end[0]);
		put_recv(&end[1]);
	}
	for (uint32_t i = 0; i < rounds; i++) {
		struct end *from = &end[i & 1], *to = &end[!(i & 1)];
		uint64_t start;

		while (asleep && !__atomic_load_n(&end[0].sqring->pad_1[0], __ATOMIC_RELAXED))
			;
		while (asleep && !__atomic_load_n(&end[1].sqring->pad_1[0], __ATOMIC_RELAXED))
			;
		start = now_ns();
		put_send(from, IBV_WR_SEND, 8, 0, false);
		produce(from->sqring, from->sent, from->sqfd);
		await(to);
		took[i] = now_ns() - start;
		put_recv(to);
	}
	printf("%lu\n", median(took, rounds));
}

/* Half a second of writes, one in batch of them signaled; how many, and in which time. */
static uint64_t writes(struct end *end, uint32_t size, uint32_t batch, uint64_t *took)
{
	uint32_t window = DEPTH / batch / 2;
	uint64_t start = now_ns(), num = 0;

	if (window > 8)
		window = 8;
	do {
		for (uint32_t i = 1; i <= batch; i++)
			put_send(&end[0], IBV_WR_RDMA_WRITE, size, end[1].rkey, i == batch);
		produce(end[0].sqring, end[0].sent, end[0].sqfd);
		num += batch;
		if (num / batch >= window)
			await(&end[0]);
	} while ((*took = now_ns() - start) < SECONDS_NS / 2);
	for (uint32_t i = 1; i < window; i++)
		await(&end[0]);
	*took = now_ns() - start;
	return num;
}

static void idle_qps(const struct end *end, const char *mnt, int num)
{
	char name[16];

	for (int i = 0; i < num; i++)
		make(mnt, "qp", name, "create type=rc pd=%s cq=%s sq=16 rq=16", end->pd, end->cq);
}

static void bandwidth(const char *mnt, uint32_t size)
{
	struct end end[2] = { 0 };
	uint64_t took, num;

	connect_ends(end, mnt, size);
	writes(end, size, 1, &took);
	num = writes(end, size, 1, &took);
	printf("%lu\n", num * size * 1000 / took);
}

static void rate(const char *mnt, int idle)
{
	struct end end[2] = { 0 };
	uint64_t took, num;

	connect_ends(end, mnt, 4096);
	idle_qps(end, mnt, idle);
	writes(end, 8, 32, &took);
	num = writes(end, 8, 32, &took);
	printf("%lu\n", num * SECONDS_NS / took);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *arg = argc > 2 ? argv[2] : NULL;
	int number = argc > 3 ? atoi(argv[3]) : 0;

	if (!strcmp(what, "futex") || !strcmp(what, "spin"))
		ping_pong(*what == 'f');
	else if (!strcmp(what, "memcpy") && arg)
		copies(strtoul(arg, NULL, 0));
	else if ((!strcmp(what, "sleep") || !strcmp(what, "busy")) && arg)
		lat(arg, *what == 's');
	else if (!strcmp(what, "write") && number > 0)
		bandwidth(arg, number);
	else if (!strcmp(what, "rate") && arg)
		rate(arg, number);
	else
		return 2;
	return 0;
}
