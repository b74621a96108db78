/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings in the hands of a client that doesn't keep to any rule. It produces whenever
 * something completes, as one that runs on another processor does all the time.
 */
#include <sys/mman.h>

#include "verbs_test.h"

#include <rdma/rdma_user_rxe.h>

enum { NUM = 16, ENDLESS = 100000 };

static struct side a, b;
static struct rxe_queue_buf *ring;
static struct ibfs_ring info;
static unsigned int arrived;

static void produce(uint32_t num)
{
	__atomic_fetch_add(&ring->producer_index, num, __ATOMIC_SEQ_CST);
}

/* Polls, too: the completion queue never fills. */
static void on_arrived(struct verbs_client *client)
{
	struct side *s = (struct side *)client;
	struct ibfs_wc wc;

	s->ops->poll_cq(s->cq, 1, &wc);
	if (++arrived < ENDLESS)
		produce(1);
}

static void open_ring(bool send)
{
	pair_open(&a, &b, IBV_QPT_RC);
	a.client.arrived = on_arrived;
	CHECK(!a.ops->qp_ring(a.qp, send, &info));
	ring = mmap(NULL, info.size, PROT_READ | PROT_WRITE, MAP_SHARED, info.fd, 0);
	CHECK(ring != MAP_FAILED);
	arrived = 0;
}

static void close_ring(void)
{
	munmap(ring, info.size);
	pair_close(&a, &b);
}

static void to_error(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	CHECK(!a.ops->modify_qp(a.qp, &attr, IBV_QP_STATE));
}

/* What was there when it began is flushed, and nothing else until the QP is rung again. */
static void check_flush(bool send)
{
	open_ring(send);
	produce(NUM);
	to_error();
	taskq_run(t.ibfs.tasks);
	CHECK(arrived == NUM);
	if (send)
		CHECK(!a.ops->doorbell(a.qp));
	else
		qp_kick(a.qp);
	taskq_run(t.ibfs.tasks);
	CHECK(arrived == 2 * NUM);
	close_ring();
}

static void test_flush_send(void)
{
	check_flush(true);
}

static void test_flush_recv(void)
{
	check_flush(false);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "flush_send", test_flush_send }, { "flush_recv", test_flush_recv }, { 0 },
	};

	return run_tests(tests, argc, argv);
}
