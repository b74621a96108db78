/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings in the hands of a client that doesn't keep to any rule: it produces whenever
 * something completes, as one that runs on another processor does all the time. And
 * the numbers that it would have to guess.
 */
#include <sys/mman.h>

#include "hca/cm.h"

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

/* --- numbers --- */

enum { NUMBERS = 300 };

static uint32_t new_key(void)
{
	struct ibfs_mr *mr = side_reg(&a, 0, 100, 0, ALL_ACCESS);
	uint32_t key = mr_key(&a, mr);

	CHECK(!a.ops->dereg_mr(mr));
	return key;
}

static uint32_t new_rkey(void)
{
	struct ibfs_mw_attr attr;
	struct ibfs_mw *mw;

	CHECK(!a.ops->alloc_mw(a.pd, IBV_MW_TYPE_2, &mw));
	a.ops->query_mw(mw, &attr);
	CHECK(!a.ops->dealloc_mw(mw));
	return attr.rkey;
}

static uint32_t new_qpn(void)
{
	side_qp(&a);
	CHECK(!a.ops->destroy_qp(a.qp, &a.client));
	a.qp = NULL;
	CHECK(a.qpn > 1 && a.qpn < 0xffffff);
	return a.qpn;
}

static uint32_t new_comm_id(void)
{
	struct cm_id *id;
	uint32_t num;

	CHECK(!cm_id_new(a.dev, 1, NULL, NULL, &id));
	num = id->local_id;
	cm_id_free(id);
	return num;
}

/* Each bit comes and goes, also in what lies between two: no number tells the next. */
static void check_bits(uint32_t (*next)(void), uint32_t bits)
{
	uint32_t ones = 0, zeroes = 0, more = 0, less = 0, last = next();

	for (int i = 0; i < NUMBERS; i++) {
		uint32_t num = next(), step = num - last;

		ones |= num;
		zeroes |= ~num;
		more |= step;
		less |= ~step;
		last = num;
	}
	CHECK((ones & zeroes & more & less & bits) == bits);
}

static void test_numbers(void)
{
	side_open(&a, "rxe0");
	check_bits(new_key, UINT32_MAX);
	check_bits(new_rkey, UINT32_MAX);
	check_bits(new_qpn, 0xffffff);
	check_bits(new_comm_id, UINT32_MAX);
	side_close(&a);
}

/* Of each of many daemons, the first numbers. */
static uint32_t first_qpn(void)
{
	uint32_t qpn;

	teardown();
	setup();
	side_open(&a, "rxe0");
	qpn = new_qpn();
	side_close(&a);
	return qpn;
}

static void test_first(void)
{
	check_bits(first_qpn, 0xffffff);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "flush_send", test_flush_send }, { "flush_recv", test_flush_recv },
		{ "numbers", test_numbers }, { "first", test_first }, { 0 },
	};

	return run_tests(tests, argc, argv);
}
