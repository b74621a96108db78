/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbells of uverbs by futex: uverbs_bells TEST. Run by ibfs-run. Exits 77
 * where the daemon doesn't wait for any.
 */
#include <string.h>
#include <unistd.h>

#include <ibfs/uverbs_bells.h>

#include "uverbs_end.h"

enum { SENDS = 3000, SPOILS = 200000, STREAKS = 3000 };

static struct ibv_mr *mr;

static struct uverbs_bells *bells_of(const struct end *end)
{
	return must(mmap(NULL, UVERBS_BELLS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			 end->ctx->cmd_fd, 0), "bells");
}

static bool armed(struct uverbs_bells *bells)
{
	for (int i = 0; i < BELL_WORDS; i++)
		if (bells->words.word[i] != BELL_NONE)
			return true;
	return false;
}

static void start(struct end *end)
{
	open_end(end);
	mr = must(ibv_reg_mr(end->pd, must(mmap(NULL, 4096, PROT_READ | PROT_WRITE,
						MAP_SHARED | MAP_ANONYMOUS, -1, 0), "memory"),
			     4096, ACCESS), "mr");
}

static void send_one(struct end *end)
{
	CHECK(!transfer(end, IBV_WR_RDMA_WRITE, mr, mr, 0, 8));
}

static void get_heard(struct end *end, struct uverbs_bells *bells)
{
	time_t limit = time(NULL) + 20;

	while (!armed(bells) && time(NULL) < limit && !failed)
		send_one(end);
	if (!armed(bells))
		exit(SKIPPED);
}

/* What isn't rung by a bell is written; all of it arrives. */
static void test_ring(struct end *end)
{
	struct uverbs_bells *bells = bells_of(end);

	get_heard(end, bells);
	for (int i = 0; i < SENDS && !failed; i++)
		send_one(end);
}

/* Without a word of BELL_ARMED, as it is without threads. */
static void test_unheard(struct end *end)
{
	struct uverbs_bells *bells = bells_of(end);

	for (int i = 0; i < SENDS && !failed; i++)
		send_one(end);
	CHECK(!armed(bells));
}

/* In states that take no requests, posting fails as it does by the command. */
static void test_states(struct end *end)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct uverbs_bells *bells = bells_of(end);
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND };

	get_heard(end, bells);
	CHECK(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE));
	CHECK(ibv_post_send(end->qp, &wr, &bad) == EINVAL);
	connect_again(end);
	send_one(end);
}

/* All that the client can write, but for what tells it to ring. */
static void test_spoil(struct end *end)
{
	struct uverbs_bells *bells = bells_of(end);
	uint8_t *from = (uint8_t *)&bells->rings;
	size_t size = sizeof(*bells) - (size_t)(from - (uint8_t *)bells);

	get_heard(end, bells);
	srand(1);
	for (int i = 0; i < SPOILS; i++) {
		atomic_uint *word = &bells->words.word[rand() % BELL_WORDS];

		from[(size_t)rand() % size] = (uint8_t)rand();
		if (i % 4)
			continue;
		*word = (unsigned int)rand() % 4;
		syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
}

/* Many requests of which the last one completes: it does however they ended. */
static void send_many(struct end *end, int num)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 8, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { (uintptr_t)mr->addr, mr->rkey },
	};
	time_t limit = time(NULL) + 20;
	struct ibv_wc wc;
	int n = 0;

	/* Where the queue is full, there is room again when some have ended. */
	while (num > 0 && time(NULL) < limit) {
		wr.send_flags = num == 1 ? IBV_SEND_SIGNALED : 0;
		num -= !ibv_post_send(end->qp, &wr, &bad);
	}
	CHECK(!num);
	while (!n && time(NULL) < limit)
		n = ibv_poll_cq(end->cq, 1, &wc);
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
}

static void test_streaks(struct end *end)
{
	get_heard(end, bells_of(end));
	for (int i = 0; i < STREAKS && !failed; i++)
		send_many(end, 1 + i % 60);
}

static void test_for_ever(struct end *end)
{
	get_heard(end, bells_of(end));
	puts("rings");
	fflush(stdout);
	while (!failed)
		send_one(end);
}

static const struct {
	const char *name;
	void (*run)(struct end *end);
} tests[] = {
	{ "ring", test_ring }, { "unheard", test_unheard }, { "states", test_states },
	{ "spoil", test_spoil }, { "streaks", test_streaks }, { "for_ever", test_for_ever },
};

int main(int argc, char **argv)
{
	struct end end;

	if (argc < 2)
		return 2;
	start(&end);
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		if (strcmp(argv[1], tests[i].name) != 0)
			continue;
		tests[i].run(&end);
		CHECK(!ibv_dereg_mr(mr));
		close_end(&end);
		return failed;
	}
	return 2;
}
