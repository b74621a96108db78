/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program has outstanding when the daemon is killed completes, once each:
 * uverbs_killed TEST, run by ibfs-run. It says "ready", polls its completion queue
 * without a system call, and says "done" when it has what it expects. It waits
 * for ever for that.
 */
#include <unistd.h>

#include "uverbs_end.h"

#define RECVS		4
#define SENDS		12
#define SIZE		4096
#define LONG		(64 << 20)	/* many times what goes without an acknowledgement */
#define FIRST_SEND	100

struct killed {
	struct end end;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	uint8_t *mem;
};

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = must(ibv_get_device_list(NULL), "devices");
	struct ibv_context *ctx = NULL;

	for (int i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	return must(ctx, name);
}

static void open_killed(struct killed *k, const char *device, int cqe, bool srq)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = RECVS, .max_sge = 1 } };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = SENDS, .max_recv_wr = RECVS, .max_send_sge = 2,
			 .max_recv_sge = 1 },
	};

	k->end.ctx = open_device(device);
	k->end.pd = must(ibv_alloc_pd(k->end.ctx), "pd");
	k->end.cq = must(ibv_create_cq(k->end.ctx, cqe, NULL, NULL, 0), "cq");
	if (srq)
		k->srq = must(ibv_create_srq(k->end.pd, &srq_init), "srq");
	init.srq = k->srq;
	init.send_cq = init.recv_cq = k->end.cq;
	k->end.qp = must(ibv_create_qp(k->end.pd, &init), "qp");
	connect_self(&k->end);
	k->mem = must(mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
		      "mmap");
	k->mr = must(ibv_reg_mr(k->end.pd, k->mem, LONG, IBV_ACCESS_LOCAL_WRITE), "mr");
}

static int post_recv(struct killed *k, uint64_t wr_id, uint32_t size)
{
	struct ibv_sge sge = { (uintptr_t)k->mem, size, k->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	return k->srq ? ibv_post_srq_recv(k->srq, &wr, &bad) : ibv_post_recv(k->end.qp, &wr, &bad);
}

static int post_send(struct killed *k, uint64_t wr_id, struct ibv_sge *sges, int num)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id, .sg_list = sges, .num_sge = num, .opcode = IBV_WR_SEND,
		.send_flags = wr_id & 1 ? IBV_SEND_SIGNALED : 0,
	};

	return ibv_post_send(k->end.qp, &wr, &bad);
}

static int post_small(struct killed *k, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)k->mem, SIZE, k->mr->lkey };

	return post_send(k, wr_id, &sge, 1);
}

/* The next completion, however long it takes. */
static struct ibv_wc next_wc(struct killed *k)
{
	struct ibv_wc wc = { 0 };
	int n;

	while (!(n = ibv_poll_cq(k->end.cq, 1, &wc)))
		;
	CHECK(n == 1 && wc.status == IBV_WC_FATAL_ERR && wc.qp_num == k->end.qp->qp_num);
	return wc;
}

/* All of these numbers, each once; those of one queue in order. */
static void expect(struct killed *k, unsigned int recvs, unsigned int sends)
{
	uint64_t recv = 1, send = FIRST_SEND;

	while (recv <= recvs || send < FIRST_SEND + sends) {
		struct ibv_wc wc = next_wc(k);

		if (wc.wr_id == recv && recv <= recvs)
			recv++;
		else if (wc.wr_id == send && send < FIRST_SEND + sends)
			send++;
		else
			CHECK(!"in order, and once");
		if (failed)
			return;
	}
}

static void expect_no_more(struct killed *k)
{
	struct ibv_wc wc;

	CHECK(ibv_poll_cq(k->end.cq, 1, &wc) == 0);
	CHECK(post_small(k, 1));
}

/* Nothing is received, so nothing that is sent completes. */
static void post_all(struct killed *k, unsigned int recvs, unsigned int sends)
{
	for (unsigned int i = 1; i <= recvs; i++)
		CHECK(!post_recv(k, i, SIZE));
	for (unsigned int i = 0; i < sends; i++)
		CHECK(!post_small(k, FIRST_SEND + i));
}

static void test_recvs(struct killed *k)
{
	open_killed(k, "rxe0", 32, false);
	post_all(k, RECVS, 0);
	say("ready");
	expect(k, RECVS, 0);
	expect_no_more(k);
}

static void test_sends(struct killed *k)
{
	open_killed(k, "rxe0", 32, false);
	post_all(k, 0, SENDS);
	say("ready");
	expect(k, 0, SENDS);
	expect_no_more(k);
}

static void test_srq(struct killed *k)
{
	open_killed(k, "rxe0", 32, true);
	post_all(k, RECVS, 0);
	say("ready");
	expect(k, RECVS, 0);
	expect_no_more(k);
}

/* A queue for fewer than come: they come as there is room. */
static void test_full(struct killed *k)
{
	open_killed(k, "rxe0", 3, false);
	post_all(k, 0, SENDS);
	say("ready");
	expect(k, 0, SENDS);
	expect_no_more(k);
}

/* A queue that is another one by now. */
static void test_resized(struct killed *k)
{
	open_killed(k, "rxe0", 3, false);
	post_all(k, 0, SENDS);
	CHECK(!ibv_resize_cq(k->end.cq, 1000));
	say("ready");
	expect(k, 0, SENDS);
	expect_no_more(k);
}

/* What is posted afterwards: a receive request asks nobody whether it can be. */
static void test_late(struct killed *k)
{
	open_killed(k, "rxe0", 32, false);
	post_all(k, 1, 0);
	say("ready");
	expect(k, 1, 0);
	CHECK(!post_recv(k, 1, SIZE));
	expect(k, 1, 0);
	expect_no_more(k);
}

/* As connect_self(), with another. */
static void connect_to(struct end *end, const struct end *peer)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	CHECK(!ibv_query_port(peer->ctx, 1, &port));
	CHECK(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1 };
	CHECK(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = peer->qp->qp_num,
		.min_rnr_timer = 12, .ah_attr = { .dlid = port.lid, .port_num = 1 },
	};
	CHECK(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 24 /* 69 s */, .retry_cnt = 7, .rnr_retry = 7,
	};
	CHECK(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

/*
 * In the midst of a message of many windows, whose only receive request is in no
 * ring any more. The test has made the way long, so that a window takes seconds.
 */
static void test_midst(struct killed *k)
{
	struct killed peer = { 0 };
	struct ibv_sge sge;

	open_killed(k, "rxe0", 32, false);
	open_killed(&peer, "rxe1", 32, false);
	connect_to(&k->end, &peer.end);
	connect_to(&peer.end, &k->end);
	memset(k->mem, 1, LONG);
	CHECK(!post_recv(&peer, 1, LONG));
	sge = (struct ibv_sge){ (uintptr_t)k->mem, LONG, k->mr->lkey };
	CHECK(!post_send(k, FIRST_SEND, &sge, 1));
	while (!*(volatile uint8_t *)peer.mem)
		usleep(1000);
	say("ready");
	expect(&peer, 1, 0);
	expect(k, 0, 1);
	expect_no_more(k);
	expect_no_more(&peer);
}

static const struct test {
	const char *name;
	void (*fn)(struct killed *k);
} tests[] = {
	{ "recvs", test_recvs }, { "sends", test_sends }, { "srq", test_srq }, { "full", test_full },
	{ "resized", test_resized }, { "late", test_late }, { "midst", test_midst },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	struct killed killed = { 0 };
	const struct test *test = tests;

	while (test->name && (argc < 2 || strcmp(argv[1], test->name) != 0))
		test++;
	if (!test->name) {
		fputs("usage: uverbs_killed TEST\n", stderr);
		return 2;
	}
	test->fn(&killed);
	say("done");
	return failed;
}
