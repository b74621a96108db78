/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tests of memory regions by libibverbs share: an RC queue pair that talks
 * to itself, one request at a time, and contents to know again.
 */
#ifndef IBFS_TESTS_UVERBS_END_H
#define IBFS_TESTS_UVERBS_END_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "check.h"

#define SKIPPED		77
#define ACCESS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static inline void *must(void *p, const char *what)
{
	if (!p || p == MAP_FAILED) {
		perror(what);
		exit(1);
	}
	return p;
}

static inline void connect_self(struct end *end)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS,
	};

	ibv_query_port(end->ctx, 1, &port);
	CHECK(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = end->qp->qp_num,
		.max_dest_rd_atomic = 4, .min_rnr_timer = 12,
		.ah_attr = { .dlid = port.lid, .port_num = 1 },
	};
	CHECK(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 21 /* 9 s */, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	CHECK(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

/* After an error. */
static inline void connect_again(struct end *end)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_wc wc;

	CHECK(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE));
	while (ibv_poll_cq(end->cq, 1, &wc) > 0)
		;
	connect_self(end);
}

static inline void open_end(struct end *end)
{
	struct ibv_device **list = must(ibv_get_device_list(NULL), "devices");
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 1 },
	};

	end->ctx = must(list[0] ? ibv_open_device(list[0]) : NULL, "open");
	ibv_free_device_list(list);
	end->pd = must(ibv_alloc_pd(end->ctx), "pd");
	end->cq = must(ibv_create_cq(end->ctx, 16, NULL, NULL, 0), "cq");
	init.send_cq = init.recv_cq = end->cq;
	end->qp = must(ibv_create_qp(end->pd, &init), "qp");
	connect_self(end);
}

static inline void close_end(struct end *end)
{
	CHECK(!ibv_destroy_qp(end->qp));
	CHECK(!ibv_destroy_cq(end->cq));
	CHECK(!ibv_dealloc_pd(end->pd));
	CHECK(!ibv_close_device(end->ctx));
}

/* One request, waited for: its status. */
static inline int transfer(struct end *end, enum ibv_wr_opcode opcode, const struct ibv_mr *local,
		    const struct ibv_mr *remote, size_t off, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)local->addr + off, len, local->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
	};
	time_t end_time = time(NULL) + 20;
	struct ibv_wc wc;
	int n;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)remote->addr + off;
		wr.wr.atomic.rkey = remote->rkey;
		wr.wr.atomic.compare_add = 5;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)remote->addr + off;
		wr.wr.rdma.rkey = remote->rkey;
	}
	if (ibv_post_send(end->qp, &wr, &bad))
		return -1;
	while (!(n = ibv_poll_cq(end->cq, 1, &wc)) && time(NULL) < end_time)
		;
	return n == 1 ? (int)wc.status : -1;
}

static inline void fill(uint8_t *mem, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		mem[i] = (uint8_t)((i * 31 + (i >> 8) * 7 + seed) & 0xff);
}

static inline bool filled(const uint8_t *mem, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		if (mem[i] != (uint8_t)((i * 31 + (i >> 8) * 7 + seed) & 0xff))
			return false;
	return true;
}

struct end_test {
	const char *name;		/* NULL: no more */
	void (*fn)(struct end *end);
};

/* The test of that name, with an end of its own: what main() returns. */
static inline int run_end_test(const struct end_test *tests, const char *name)
{
	struct end end;

	while (tests->name && strcmp(name, tests->name))
		tests++;
	if (!tests->name) {
		fprintf(stderr, "no test \"%s\"\n", name);
		return 2;
	}
	open_end(&end);
	tests->fn(&end);
	close_end(&end);
	return failed;
}

#endif
