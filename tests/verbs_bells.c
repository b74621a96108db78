/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a process' send ring has to be rung: not while its turn goes on, always
 * when the engine is through with it, in every state that takes requests.
 */
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

/* One turn of the engine has room for four of them. */
static void produce(uint32_t num)
{
	uint32_t n = ring->producer_index;

	for (; num--; n++) {
		struct rxe_send_wqe *wqe = (struct rxe_send_wqe *)(ring->data +
			((size_t)(n & ring->index_mask) << ring->log2_elem_size));

		memset(wqe, 0, sizeof(*wqe));
		wqe->wr.wr_id = n;
		wqe->wr.opcode = IBV_WR_RDMA_WRITE;
		wqe->wr.send_flags = IBV_SEND_SIGNALED;
		wqe->wr.wr.rdma.rkey = b.key;
		wqe->dma.num_sge = 1;
		wqe->dma.sge[0] = (struct rxe_sge){ 0, SIZE, a.key };
	}
	__atomic_store_n(&ring->producer_index, n & ring->index_mask, __ATOMIC_RELEASE);
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

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "busy", test_busy }, { "error", test_error }, { 0 },
	};

	return run_tests(tests, argc, argv);
}
