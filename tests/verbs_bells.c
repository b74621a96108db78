/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a process' send ring has to be rung: not while its turn goes on, always
 * when the engine is through with it, in every state that takes requests; and
 * seldom, where requests come one after another. On one processor, where nobody
 * looks at rings all the time.
 */
#include <sched.h>
#include <sys/mman.h>

#include <ibfs/bell_words.h>

#include "verbs_test.h"

#include <rdma/rdma_user_rxe.h>

enum { NUM = 16, SIZE = 64 * 1024 };

static struct side a, b;
static _Atomic uint8_t bell;
static struct rxe_queue_buf *ring;
static struct ibfs_ring info;

static void open_ring(void)
{
	pair_open(&a, &b, IBV_QPT_RC);
	bell = 0;
	a.client.bell = &bell;
	CHECK(!a.ops->qp_ring(a.qp, true, &info));
	ring = mmap(NULL, info.size, PROT_READ | PROT_WRITE, MAP_SHARED, info.fd, 0);
	CHECK(ring != MAP_FAILED);
}

static void close_ring(void)
{
	munmap(ring, info.size);
	pair_close(&a, &b);
}

static void produce_writes(uint32_t num, uint32_t size, unsigned int flags)
{
	uint32_t n = ring->producer_index;

	for (; num--; n++) {
		struct rxe_send_wqe *wqe = (struct rxe_send_wqe *)(ring->data +
			((size_t)(n & ring->index_mask) << ring->log2_elem_size));

		memset(wqe, 0, sizeof(*wqe));
		wqe->wr.wr_id = n;
		wqe->wr.opcode = IBV_WR_RDMA_WRITE;
		wqe->wr.send_flags = flags;
		wqe->wr.wr.rdma.rkey = b.key;
		wqe->dma.num_sge = 1;
		wqe->dma.sge[0] = (struct rxe_sge){ 0, size, a.key };
	}
	__atomic_store_n(&ring->producer_index, n & ring->index_mask, __ATOMIC_RELEASE);
}

/* One turn of the engine has room for four of them. */
static void produce(uint32_t num)
{
	produce_writes(num, SIZE, IBV_SEND_SIGNALED);
}

static bool must_ring(void)
{
	CHECK((bell == DOORBELL_QUIET) == !ring->pad_1[0]);
	return ring->pad_1[0];
}

/* Both tell the same; what comes while they say "quiet" is found without a doorbell. */
static void test_busy(void)
{
	struct ibfs_wc wc;

	open_ring();
	CHECK(must_ring());
	for (int round = 0; round < 20; round++) {
		produce(NUM);
		CHECK(!a.ops->doorbell(a.qp));
		taskq_run(t.ibfs.tasks);
		CHECK(!must_ring());
		produce(NUM);
		for (int i = 0; i < 2 * NUM; i++)
			CHECK(side_wc(&a, &wc) && !wc.status);
		for (int i = 0; i < 100 && !must_ring(); i++)
			tick(0.001);
		CHECK(must_ring());
	}
	close_ring();
}

static int to_state(enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return a.ops->modify_qp(a.qp, &attr, IBV_QP_STATE);
}

/* An error in the middle: flushed, and the ring has to be rung. */
static void test_error(void)
{
	struct ibfs_wc wc;

	open_ring();
	produce(NUM);
	CHECK(!a.ops->doorbell(a.qp));
	taskq_run(t.ibfs.tasks);
	CHECK(!must_ring());
	CHECK(!to_state(IBV_QPS_ERR));
	produce(1);
	for (int i = 0; i < NUM + 1; i++)
		CHECK(side_wc(&a, &wc));
	CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
	for (int i = 0; i < 100 && !must_ring(); i++)
		tick(0.001);
	CHECK(must_ring());
	CHECK(bell == DOORBELL_RING);
	CHECK(!to_state(IBV_QPS_RESET));
	CHECK(must_ring());
	CHECK(bell == DOORBELL_ASK);
	close_ring();
}

/* Posts, and rings once for all; what is told afterwards. */
static enum doorbell post_small(uint32_t num, unsigned int flags)
{
	produce_writes(num, 8, flags);
	CHECK(!a.ops->doorbell(a.qp));
	for (int i = 0; i < 100 && taskq_run(t.ibfs.tasks); i++)
		;
	return bell;
}

/* So many requests with a ring each, until it need be rung seldom only; -1: all of the time. */
static int until_seldom(int limit, unsigned int flags, bool consume)
{
	struct ibfs_wc wc;

	for (int i = 1; i <= limit; i++) {
		if (post_small(1, flags) == DOORBELL_SELDOM)
			return i;
		while (consume && a.ops->poll_cq(a.cq, 1, &wc) > 0)
			;
	}
	return -1;
}

/* Nobody who waits, or who can't have the ring looked at again, is told to ring seldom. */
static void test_no_streak(void)
{
	open_ring();
	CHECK(until_seldom(100, 0, false) == -1);
	a.client.again = VERBS_AGAIN_CAN;
	CHECK(until_seldom(100, IBV_SEND_SIGNALED, true) == -1);
	for (int i = 0; i < 100; i++) {
		CHECK(post_small(1, 0) != DOORBELL_SELDOM);
		tick(0.001);
	}
	CHECK(a.client.again == VERBS_AGAIN_CAN);
	close_ring();
}

/* It goes on with full rings, ends with a look that finds less, and is missed if it was long. */
static void test_streak(void)
{
	int first, second;

	open_ring();
	a.client.again = VERBS_AGAIN_CAN;
	first = until_seldom(100, 0, false);
	CHECK(first > 0 && a.client.again == VERBS_AGAIN_WANTED);
	CHECK(ring->pad_1[0]);
	tick(0.001);
	CHECK(post_small(1, 0) == DOORBELL_RING && a.client.again == VERBS_AGAIN_CAN);
	second = until_seldom(100, 0, false);
	CHECK(second > first);
	for (int i = 0; i < 100; i++)
		CHECK(post_small(DOORBELL_EVERY, 0) == DOORBELL_SELDOM);
	tick(0.001);
	CHECK(post_small(0, 0) == DOORBELL_RING);
	CHECK(until_seldom(100, 0, false) <= first);
	close_ring();
}

/* In a state that takes no requests there is no streak, nor is one left afterwards. */
static void test_streak_state(void)
{
	open_ring();
	a.client.again = VERBS_AGAIN_CAN;
	CHECK(until_seldom(100, 0, false) > 0);
	CHECK(!to_state(IBV_QPS_RESET));
	CHECK(bell == DOORBELL_ASK && a.ops->doorbell(a.qp));
	close_ring();
}

static void use_one_processor(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	CHECK(!sched_setaffinity(0, sizeof(set), &set));
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "busy", test_busy }, { "error", test_error }, { "no_streak", test_no_streak },
		{ "streak", test_streak }, { "streak_state", test_streak_state }, { 0 },
	};

	use_one_processor();
	return run_tests(tests, argc, argv);
}
