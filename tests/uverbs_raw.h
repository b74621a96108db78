/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uverbs without libibverbs, for tests: commands written straight from
 * <rdma/ib_user_verbs.h>, rings mapped through the file.
 */
#ifndef IBFS_TESTS_UVERBS_RAW_H
#define IBFS_TESTS_UVERBS_RAW_H

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

static const char *mnt;

/* A command with its header: 0 or -errno. */
static inline int command(int fd, uint32_t cmd, void *req, size_t size, size_t out)
{
	struct ib_uverbs_cmd_hdr hdr = {
		.command = cmd, .in_words = (uint16_t)((size + 8) / 4), .out_words = (uint16_t)(out / 4),
	};
	uint8_t buf[1024];
	ssize_t n;

	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), req, size);
	n = write(fd, buf, size + sizeof(hdr));
	return n == (ssize_t)(size + sizeof(hdr)) ? 0 : n < 0 ? -errno : -EPROTO;
}

#define CALL(fd, cmd, req, resp) ({ \
	memset(&(resp), 0, sizeof(resp)); \
	(req).response = (uintptr_t)&(resp); \
	command(fd, IB_USER_VERBS_CMD_##cmd, &(req), sizeof(req), sizeof(resp)); })
#define TELL(fd, cmd, req) command(fd, IB_USER_VERBS_CMD_##cmd, &(req), sizeof(req), 0)

static inline int open_file(const char *name)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", mnt, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

static inline int open_event(uint32_t id, int flags)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/dev/infiniband/ev/%u", mnt, id);
	return open(path, O_RDONLY | O_CLOEXEC | flags);
}

static inline int open_context(const char *name)
{
	struct ib_uverbs_get_context_resp resp;
	struct ib_uverbs_get_context req;
	int fd = open_file(name);

	CHECK(CALL(fd, GET_CONTEXT, req, resp) == 0);
	CHECK(resp.num_comp_vectors == 1);
	return fd;
}

/* --- one QP that talks to itself --- */

struct qp {
	int fd;
	uint32_t pd, cq, qp, qpn, mr, lkey, rkey;
	struct rxe_queue_buf *sq, *rq, *ring;
	size_t sq_size;
	uint8_t *mem;
};

static inline void *map(int fd, const struct mminfo *mi)
{
	void *p = mmap(NULL, mi->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)mi->offset);

	CHECK(p != MAP_FAILED);
	return p;
}

static inline void make_mr(struct qp *q)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ib_uverbs_reg_mr req;

	q->mem = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	req = (struct ib_uverbs_reg_mr){
		.start = (uintptr_t)q->mem, .length = 8192, .hca_va = (uintptr_t)q->mem,
		.pd_handle = q->pd, .access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	};
	CHECK(CALL(q->fd, REG_MR, req, resp) == 0);
	q->mr = resp.mr_handle;
	q->lkey = resp.lkey;
	q->rkey = resp.rkey;
}

static inline void make_qp(struct qp *q, int32_t channel)
{
	struct ib_uverbs_alloc_pd_resp pd_resp;
	struct ib_uverbs_alloc_pd pd;
	struct ib_uverbs_create_cq cq = { .user_handle = 77, .cqe = 16, .comp_channel = channel };
	struct { struct ib_uverbs_create_cq_resp core; struct rxe_create_cq_resp drv; } cq_resp;
	struct ib_uverbs_create_qp qp = {
		.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1,
		.sq_sig_all = 1, .qp_type = IBV_QPT_RC,
	};
	struct { struct ib_uverbs_create_qp_resp core; struct rxe_create_qp_resp drv; } qp_resp;

	CHECK(CALL(q->fd, ALLOC_PD, pd, pd_resp) == 0);
	q->pd = pd_resp.pd_handle;
	CHECK(CALL(q->fd, CREATE_CQ, cq, cq_resp) == 0);
	q->cq = cq_resp.core.cq_handle;
	q->ring = map(q->fd, &cq_resp.drv.mi);
	qp.pd_handle = q->pd;
	qp.send_cq_handle = qp.recv_cq_handle = q->cq;
	CHECK(CALL(q->fd, CREATE_QP, qp, qp_resp) == 0);
	q->qp = qp_resp.core.qp_handle;
	q->qpn = qp_resp.core.qpn;
	q->sq = map(q->fd, &qp_resp.drv.sq_mi);
	q->rq = map(q->fd, &qp_resp.drv.rq_mi);
	q->sq_size = qp_resp.drv.sq_mi.size;
	make_mr(q);
}

static inline uint16_t own_lid(int fd)
{
	struct ib_uverbs_query_port req = { .port_num = 1 };
	struct ib_uverbs_query_port_resp resp;

	CHECK(CALL(fd, QUERY_PORT, req, resp) == 0);
	return resp.lid;
}

static inline void connect_qp(struct qp *q)
{
	struct ib_uverbs_modify_qp req = {
		.qp_handle = q->qp, .qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		.dest = { .dlid = own_lid(q->fd), .port_num = 1 },
		.path_mtu = IBV_MTU_4096, .dest_qp_num = q->qpn, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 12, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1,
	};

	CHECK(TELL(q->fd, MODIFY_QP, req) == 0);
	req.qp_state = IBV_QPS_RTR;
	req.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	CHECK(TELL(q->fd, MODIFY_QP, req) == 0);
	req.qp_state = IBV_QPS_RTS;
	req.attr_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
	CHECK(TELL(q->fd, MODIFY_QP, req) == 0);
}

static inline int doorbell(struct qp *q)
{
	struct ib_uverbs_post_send req = { .qp_handle = q->qp, .wqe_size = sizeof(struct ib_uverbs_send_wr) };

	return TELL(q->fd, POST_SEND, req) == -ENOSPC ?
	       ({ uint32_t bad; req.response = (uintptr_t)&bad;
		  command(q->fd, IB_USER_VERBS_CMD_POST_SEND, &req, sizeof(req), 4); }) : -EPROTO;
}

static inline void *slot(struct rxe_queue_buf *ring, uint32_t index)
{
	return ring->data + ((size_t)(index & ring->index_mask) << ring->log2_elem_size);
}

static inline void produce(struct rxe_queue_buf *ring)
{
	__atomic_store_n(&ring->producer_index, (ring->producer_index + 1) & ring->index_mask,
			 __ATOMIC_RELEASE);
}

static inline void ring_write(struct qp *q, uint64_t raddr, uint32_t rkey)
{
	struct rxe_send_wqe *wqe = slot(q->sq, q->sq->producer_index);

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr.wr_id = 5;
	wqe->wr.opcode = IB_UVERBS_WR_RDMA_WRITE;
	wqe->wr.send_flags = IBV_SEND_SIGNALED;
	wqe->wr.wr.rdma.remote_addr = raddr;
	wqe->wr.wr.rdma.rkey = rkey;
	wqe->dma.length = wqe->dma.resid = 100;
	wqe->dma.num_sge = 1;
	wqe->dma.sge[0] = (struct rxe_sge){ (uintptr_t)q->mem, 100, q->lkey };
	produce(q->sq);
}

static inline int poll_ring(struct qp *q)
{
	for (int i = 0; i < 5000; i++) {
		if (__atomic_load_n(&q->ring->producer_index, __ATOMIC_ACQUIRE) !=
		    q->ring->consumer_index) {
			const struct ib_uverbs_wc *wc = slot(q->ring, q->ring->consumer_index);
			int status = (int)wc->status;

			CHECK(wc->wr_id == 5);
			q->ring->consumer_index = (q->ring->consumer_index + 1) & q->ring->index_mask;
			return status;
		}
		usleep(1000);
	}
	return -ETIMEDOUT;
}

#endif
