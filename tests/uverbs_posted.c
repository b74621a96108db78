/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams that are posted just before their address handle and queue pair go,
 * without a completion, as mckey of librdmacm does it: a device has sent them by
 * then. uverbs_posted [ROUNDS]. Run by ibfs-run.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "check.h"

#define NUM	10
#define LEN	100
#define GRH	40
#define QKEY	7
#define PATIENCE	10	/* seconds */

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *mem;
};

static void *must(void *p, const char *what)
{
	if (!p || p == MAP_FAILED) {
		perror(what);
		exit(1);
	}
	return p;
}

static void open_side(struct side *side)
{
	struct ibv_device **list = must(ibv_get_device_list(NULL), "devices");

	side->ctx = must(list[0] ? ibv_open_device(list[0]) : NULL, "open");
	ibv_free_device_list(list);
	side->pd = must(ibv_alloc_pd(side->ctx), "pd");
	side->cq = must(ibv_create_cq(side->ctx, 2 * NUM, NULL, NULL, 0), "cq");
	side->mem = must(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
			 "mmap");
	side->mr = must(ibv_reg_mr(side->pd, side->mem, 4096, IBV_ACCESS_LOCAL_WRITE), "mr");
}

static void close_side(struct side *side)
{
	CHECK(!ibv_dereg_mr(side->mr) && !ibv_destroy_cq(side->cq));
	CHECK(!ibv_dealloc_pd(side->pd) && !ibv_close_device(side->ctx));
	munmap(side->mem, 4096);
}

static struct ibv_qp *make_qp(const struct side *side)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .send_cq = side->cq, .recv_cq = side->cq,
		.cap = { .max_send_wr = NUM, .max_recv_wr = NUM, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = must(ibv_create_qp(side->pd, &init), "qp");
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return qp;
}

static void post_receives(const struct side *side, struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)side->mem, GRH + LEN, side->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	for (unsigned int i = 0; i < NUM; i++)
		CHECK(!ibv_post_recv(qp, &wr, &bad));
}

/* One after the other, each with a doorbell of its own; then nothing is left of the sender. */
static void send_and_go(const struct side *side, uint32_t qpn, bool close_only)
{
	struct ibv_port_attr port;
	struct ibv_sge sge = { (uintptr_t)side->mem, LEN, side->mr->lkey };
	struct ibv_qp *qp = make_qp(side);
	struct ibv_ah_attr ah = { .port_num = 1 };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.wr.ud = { .remote_qpn = qpn, .remote_qkey = QKEY },
	};

	CHECK(!ibv_query_port(side->ctx, 1, &port));
	ah.dlid = port.lid;
	wr.wr.ud.ah = must(ibv_create_ah(side->pd, &ah), "ah");
	for (unsigned int i = 0; i < NUM; i++)
		CHECK(!ibv_post_send(qp, &wr, &bad));
	if (!close_only)
		CHECK(!ibv_destroy_ah(wr.wr.ud.ah));
	CHECK(!ibv_destroy_qp(qp));
	if (close_only)
		CHECK(!ibv_destroy_ah(wr.wr.ud.ah));
}

static unsigned int received(const struct side *side)
{
	time_t end = time(NULL) + PATIENCE;
	struct ibv_wc wc[NUM];
	unsigned int num = 0;

	while (num < NUM && time(NULL) < end) {
		int n = ibv_poll_cq(side->cq, NUM, wc);

		CHECK(n >= 0);
		for (int i = 0; i < n; i++)
			CHECK(wc[i].status == IBV_WC_SUCCESS);
		num += n > 0 ? (unsigned int)n : 0;
	}
	return num;
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 100;
	struct side from, to;

	open_side(&to);
	for (unsigned long i = 0; i < rounds && !failed; i++) {
		struct ibv_qp *qp = make_qp(&to);
		unsigned int num;

		open_side(&from);
		post_receives(&to, qp);
		send_and_go(&from, qp->qp_num, i & 1);
		num = received(&to);
		if (num != NUM)
			printf("round %lu: %u of %u arrived\n", i, num, NUM);
		CHECK(num == NUM);
		close_side(&from);
		CHECK(!ibv_destroy_qp(qp));
	}
	close_side(&to);
	return failed;
}
