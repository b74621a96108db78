/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What libibverbs' rxe provider never asks for, or by other ways: XRC and a QP
 * that another file opens, regions that change, windows, SRQs that grow and
 * warn, multicast, and messages by commands alone. uverbs_more MOUNTPOINT
 */
#include <poll.h>

#include "uverbs_raw.h"

struct ends {				/* two QPs on the two devices, each its own file */
	struct qp a, b;
};

static void make_pd_cq(struct qp *q)
{
	struct { struct ib_uverbs_create_cq_resp core; struct rxe_create_cq_resp drv; } cq_resp;
	struct ib_uverbs_create_cq cq = { .user_handle = 77, .cqe = 30, .comp_channel = -1 };
	struct ib_uverbs_alloc_pd_resp pd_resp;
	struct ib_uverbs_alloc_pd pd;

	CHECK(CALL(q->fd, ALLOC_PD, pd, pd_resp) == 0);
	q->pd = pd_resp.pd_handle;
	CHECK(CALL(q->fd, CREATE_CQ, cq, cq_resp) == 0);
	q->cq = cq_resp.core.cq_handle;
	q->ring = map(q->fd, &cq_resp.drv.mi);
	make_mr(q);
}

/* pd: of an XRC target its domain. Its rings, if it has any, are mapped. */
static int make_typed(struct qp *q, enum ibv_qp_type type, uint32_t pd, uint32_t srq, bool has_srq)
{
	struct { struct ib_uverbs_create_qp_resp core; struct rxe_create_qp_resp drv; } resp;
	struct ib_uverbs_create_qp req = {
		.user_handle = 88, .pd_handle = pd, .send_cq_handle = q->cq, .recv_cq_handle = q->cq,
		.srq_handle = srq, .is_srq = has_srq, .max_send_wr = 8, .max_recv_wr = 8,
		.max_send_sge = 1, .max_recv_sge = 1, .qp_type = type,
	};
	int err = CALL(q->fd, CREATE_QP, req, resp);

	if (err)
		return err;
	q->qp = resp.core.qp_handle;
	q->qpn = resp.core.qpn;
	if (resp.drv.sq_mi.size)
		q->sq = map(q->fd, &resp.drv.sq_mi);
	if (resp.drv.rq_mi.size)
		q->rq = map(q->fd, &resp.drv.rq_mi);
	return 0;
}

static int modify(const struct qp *q, struct ib_uverbs_modify_qp *req, int state, uint32_t mask)
{
	req->qp_handle = q->qp;
	req->qp_state = state;
	req->attr_mask = mask | IBV_QP_STATE;
	return TELL(q->fd, MODIFY_QP, *req);
}

/* To RTS, or as far as an XRC target needs it: this QP's half of a connection. */
static void to_rts(const struct qp *q, enum ibv_qp_type type, const struct qp *peer)
{
	struct ib_uverbs_modify_qp req = {
		.port_num = 1, .dest = { .dlid = own_lid(peer->fd), .port_num = 1 },
		/* Bits that nobody knows, as newer programs have them. */
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC | 3 << 8 | 1 << 20,
		.path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qpn, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 12, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1,
	};

	CHECK(!modify(q, &req, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	CHECK(!modify(q, &req, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		      IBV_QP_RQ_PSN | (type == IBV_QPT_XRC_SEND ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC |
							      IBV_QP_MIN_RNR_TIMER)));
	CHECK(!modify(q, &req, IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN |
		      (type == IBV_QPT_XRC_RECV ? 0 : IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						      IBV_QP_MAX_QP_RD_ATOMIC)));
}

static void ends_open(struct ends *e)
{
	*e = (struct ends){ .a.fd = open_context("rxe0/uverbs"), .b.fd = open_context("rxe1/uverbs") };
	make_pd_cq(&e->a);
	make_pd_cq(&e->b);
}

static void ends_connect(struct ends *e)
{
	CHECK(!make_typed(&e->a, IBV_QPT_RC, e->a.pd, 0, false));
	CHECK(!make_typed(&e->b, IBV_QPT_RC, e->b.pd, 0, false));
	to_rts(&e->a, IBV_QPT_RC, &e->b);
	to_rts(&e->b, IBV_QPT_RC, &e->a);
}

static void ends_close(struct ends *e)
{
	close(e->a.fd);
	close(e->b.fd);
}

/* The next completion, or one of status -1. */
static struct ib_uverbs_wc next_wc(struct qp *q)
{
	struct ib_uverbs_wc wc = { .status = UINT32_MAX };

	for (int i = 0; i < 5000; i++) {
		if (__atomic_load_n(&q->ring->producer_index, __ATOMIC_ACQUIRE) !=
		    q->ring->consumer_index) {
			wc = *(struct ib_uverbs_wc *)slot(q->ring, q->ring->consumer_index);
			q->ring->consumer_index = (q->ring->consumer_index + 1) & q->ring->index_mask;
			break;
		}
		usleep(1000);
	}
	return wc;
}

static struct rxe_send_wqe *new_wqe(struct qp *q, uint32_t opcode, uint64_t wr_id, uint32_t length)
{
	struct rxe_send_wqe *wqe = slot(q->sq, q->sq->producer_index);

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr.wr_id = wr_id;
	wqe->wr.opcode = opcode;
	wqe->wr.send_flags = IBV_SEND_SIGNALED;
	wqe->dma.length = wqe->dma.resid = length;
	wqe->dma.num_sge = length ? 1 : 0;
	wqe->dma.sge[0] = (struct rxe_sge){ (uintptr_t)q->mem, length, q->lkey };
	return wqe;
}

static uint32_t send_it(struct qp *q)
{
	produce(q->sq);
	CHECK(doorbell(q) == 0);
	return next_wc(q).status;
}

static uint32_t write_to(struct qp *q, void *to, uint32_t rkey)
{
	struct rxe_send_wqe *wqe = new_wqe(q, IB_UVERBS_WR_RDMA_WRITE, 1, 100);

	wqe->wr.wr.rdma.remote_addr = (uintptr_t)to;
	wqe->wr.wr.rdma.rkey = rkey;
	return send_it(q);
}

static void put_recv(struct rxe_queue_buf *ring, uint64_t wr_id, void *to, uint32_t length,
		     uint32_t lkey)
{
	struct rxe_recv_wqe *wqe = slot(ring, ring->producer_index);

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = wr_id;
	wqe->dma.length = wqe->dma.resid = length;
	wqe->dma.num_sge = 1;
	wqe->dma.sge[0] = (struct rxe_sge){ (uintptr_t)to, length, lkey };
	produce(ring);
}

/* --- XRC --- */

struct srq {
	uint32_t handle, num;
	struct rxe_queue_buf *ring;
};

static uint32_t open_domain(int fd, int inode, uint32_t flags, int expected)
{
	struct ib_uverbs_open_xrcd req = { .fd = (uint32_t)inode, .oflags = flags };
	struct ib_uverbs_open_xrcd_resp resp;

	CHECK(CALL(fd, OPEN_XRCD, req, resp) == expected);
	return resp.xrcd_handle;
}

static struct srq make_xsrq(struct qp *q, uint32_t xrcd)
{
	struct { struct ib_uverbs_create_srq_resp core; struct rxe_create_srq_resp drv; } resp;
	struct ib_uverbs_create_xsrq req = {
		.srq_type = IB_UVERBS_SRQT_XRC, .pd_handle = q->pd, .max_wr = 4, .max_sge = 1,
		.xrcd_handle = xrcd, .cq_handle = q->cq,
	};

	CHECK(CALL(q->fd, CREATE_XSRQ, req, resp) == 0);
	CHECK(resp.core.srqn && resp.core.srqn == resp.drv.srq_num);
	return (struct srq){ resp.core.srq_handle, resp.core.srqn, map(q->fd, &resp.drv.mi) };
}

/* A message into the SRQ, whose owner finds it with that length. */
static void send_xrc(struct qp *from, struct qp *to, const struct srq *srq, char what)
{
	struct ib_uverbs_wc wc;

	put_recv(srq->ring, 900 + (uint64_t)what, to->mem, 4096, to->lkey);
	memset(from->mem, what, 2000);
	new_wqe(from, IB_UVERBS_WR_SEND, 1, 2000)->wr.reserved = srq->num;
	CHECK(send_it(from) == IBV_WC_SUCCESS);
	wc = next_wc(to);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == 900 + (uint64_t)what);
	CHECK(wc.opcode == IBV_WC_RECV && wc.byte_len == 2000);
	CHECK(!memcmp(from->mem, to->mem, 2000));
}

/* The same by the command, whose request has no ring. */
static void command_xrc(struct qp *from, struct qp *to, const struct srq *srq)
{
	struct {
		struct ib_uverbs_post_send head;
		struct ib_uverbs_send_wr wr;
		struct ib_uverbs_sge sge;
	} req = {
		.head = { .qp_handle = from->qp, .wr_count = 1, .sge_count = 1,
			  .wqe_size = sizeof(req.wr) },
		.wr = { .wr_id = 6, .num_sge = 1, .opcode = IB_UVERBS_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED, .wr.rdma.reserved = srq->num },
		.sge = { (uintptr_t)from->mem, 10, from->lkey },
	};
	uint32_t bad = 9;

	put_recv(srq->ring, 7, to->mem, 4096, to->lkey);
	req.head.response = (uintptr_t)&bad;
	CHECK(command(from->fd, IB_USER_VERBS_CMD_POST_SEND, &req, sizeof(req), sizeof(bad)) == 0);
	CHECK(!bad && next_wc(from).wr_id == 6);
	CHECK(next_wc(to).byte_len == 10);
}

static void test_open_qp(struct qp *other, uint32_t xrcd, const struct qp *target)
{
	struct ib_uverbs_open_qp req = { .pd_handle = xrcd, .qpn = target->qpn,
					 .qp_type = IB_UVERBS_QPT_XRC_TGT };
	struct ib_uverbs_query_qp query = { .attr_mask = IBV_QP_STATE };
	struct ib_uverbs_query_qp_resp attr;
	struct ib_uverbs_create_qp_resp resp;

	req.qpn++;
	CHECK(CALL(other->fd, OPEN_QP, req, resp) == -EINVAL);
	req.qpn--;
	req.pd_handle = other->pd;
	CHECK(CALL(other->fd, OPEN_QP, req, resp) == -EINVAL);
	req.pd_handle = xrcd;
	CHECK(CALL(other->fd, OPEN_QP, req, resp) == 0 && resp.qpn == target->qpn);
	query.qp_handle = other->qp = resp.qp_handle;
	CHECK(CALL(other->fd, QUERY_QP, query, attr) == 0 && attr.qp_state == IBV_QPS_RTS);
}

/* The target's maker goes; who opened it has it on. */
static void test_xrc(void)
{
	struct qp other = { .fd = open_context("rxe1/uverbs") };
	int inode = memfd_create("domain", MFD_CLOEXEC);
	struct ib_uverbs_destroy_qp_resp gone;
	struct ib_uverbs_destroy_qp destroy;
	uint32_t xrcd, others;
	struct srq srq, mine;
	struct ends e;

	ends_open(&e);
	make_pd_cq(&other);
	open_domain(e.b.fd, inode, 0, -EAGAIN);			/* nobody made it yet */
	xrcd = open_domain(e.b.fd, inode, O_CREAT, 0);
	open_domain(other.fd, inode, O_CREAT | O_EXCL, -EINVAL);
	others = open_domain(other.fd, inode, 0, 0);
	srq = make_xsrq(&e.b, xrcd);
	mine = make_xsrq(&other, others);
	CHECK(!make_typed(&e.a, IBV_QPT_XRC_SEND, e.a.pd, 0, false));
	CHECK(make_typed(&e.b, IBV_QPT_XRC_RECV, e.b.pd, 0, false) == -EINVAL);
	CHECK(!make_typed(&e.b, IBV_QPT_XRC_RECV, xrcd, 0, false));
	CHECK(e.a.sq && !e.a.rq && !e.b.sq && !e.b.rq);
	to_rts(&e.a, IBV_QPT_XRC_SEND, &e.b);
	to_rts(&e.b, IBV_QPT_XRC_RECV, &e.a);
	send_xrc(&e.a, &e.b, &srq, 'a');
	send_xrc(&e.a, &other, &mine, 'b');
	command_xrc(&e.a, &e.b, &srq);
	test_open_qp(&other, others, &e.b);
	close(e.b.fd);
	send_xrc(&e.a, &other, &mine, 'c');
	new_wqe(&e.a, IB_UVERBS_WR_SEND, 1, 10)->wr.reserved = mine.num + 77;
	CHECK(send_it(&e.a) == IBV_WC_REM_INV_REQ_ERR);
	destroy.qp_handle = other.qp;
	CHECK(CALL(other.fd, DESTROY_QP, destroy, gone) == 0);
	close(other.fd);
	close(e.a.fd);
	close(inode);
}

/* --- regions that change, and windows --- */

static int rereg(struct qp *q, struct ib_uverbs_rereg_mr *req)
{
	struct ib_uverbs_rereg_mr_resp resp;
	int err;

	req->mr_handle = q->mr;
	err = CALL(q->fd, REREG_MR, *req, resp);
	if (!err) {
		q->lkey = resp.lkey;
		q->rkey = resp.rkey;
	}
	return err;
}

static void test_rereg(void)
{
	enum { PAGE = 4096 };
	struct ib_uverbs_rereg_mr req = { .access_flags = IBV_ACCESS_LOCAL_WRITE };
	struct ib_uverbs_alloc_pd_resp pd_resp;
	struct ib_uverbs_alloc_pd pd;
	struct ends e;
	uint8_t *more;

	ends_open(&e);
	ends_connect(&e);
	memset(e.a.mem, 7, PAGE);
	CHECK(write_to(&e.a, e.b.mem, e.b.rkey) == IBV_WC_SUCCESS && e.b.mem[99] == 7);
	CHECK(rereg(&e.b, &req) == -EINVAL);			/* changes nothing */
	req.flags = 1 << 5;
	CHECK(rereg(&e.b, &req) == -EOPNOTSUPP || rereg(&e.b, &req) == -EINVAL);
	/* Other memory, at an address of its own. */
	more = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	req.flags = IBV_REREG_MR_CHANGE_TRANSLATION;
	req.start = (uintptr_t)more;
	req.hca_va = 0x10000;
	req.length = PAGE;
	CHECK(!rereg(&e.b, &req));
	memset(e.a.mem, 8, PAGE);
	CHECK(write_to(&e.a, (void *)0x10000, e.b.rkey) == IBV_WC_SUCCESS);
	CHECK(more[99] == 8 && e.b.mem[99] == 7);
	/* What can't be leaves it as it was. */
	req.start = PAGE;
	CHECK(rereg(&e.b, &req) == -EFAULT);
	CHECK(write_to(&e.a, (void *)0x10000, e.b.rkey) == IBV_WC_SUCCESS);
	/* Another PD than the QP's. */
	CHECK(CALL(e.b.fd, ALLOC_PD, pd, pd_resp) == 0);
	req.flags = IBV_REREG_MR_CHANGE_PD;
	req.pd_handle = 0xffff;
	CHECK(rereg(&e.b, &req) == -EINVAL);
	req.pd_handle = pd_resp.pd_handle;
	CHECK(!rereg(&e.b, &req));
	CHECK(write_to(&e.a, (void *)0x10000, e.b.rkey) == IBV_WC_REM_ACCESS_ERR);
	ends_close(&e);
	/* Nobody may write any more. */
	ends_open(&e);
	ends_connect(&e);
	req.flags = IBV_REREG_MR_CHANGE_ACCESS;
	CHECK(!rereg(&e.b, &req));
	CHECK(write_to(&e.a, e.b.mem, e.b.rkey) == IBV_WC_REM_ACCESS_ERR);
	ends_close(&e);
	munmap(more, PAGE);
}

static int alloc_mw(const struct qp *q, uint8_t type, struct ib_uverbs_alloc_mw_resp *resp)
{
	struct ib_uverbs_alloc_mw req = { .pd_handle = q->pd, .mw_type = type };

	return CALL(q->fd, ALLOC_MW, req, *resp);
}

/* The window opens on half of the region; its key is returned. */
static uint32_t bind_mw(struct qp *q, uint32_t rkey)
{
	struct rxe_send_wqe *wqe = new_wqe(q, IB_UVERBS_WR_BIND_MW, 3, 0);

	wqe->wr.wr.mw.addr = (uintptr_t)q->mem;
	wqe->wr.wr.mw.length = 4096;
	wqe->wr.wr.mw.mr_lkey = q->lkey;
	wqe->wr.wr.mw.mw_rkey = rkey;
	wqe->wr.wr.mw.rkey = (rkey & ~0xffU) | ((rkey + 1) & 0xff);
	wqe->wr.wr.mw.access = IBV_ACCESS_REMOTE_WRITE;
	rkey = wqe->wr.wr.mw.rkey;
	CHECK(send_it(q) == IBV_WC_SUCCESS);
	return rkey;
}

static void test_mw(uint8_t type)
{
	struct ib_uverbs_reg_mr_resp mr_resp;
	struct ib_uverbs_alloc_mw_resp mw;
	struct ib_uverbs_dealloc_mw dealloc;
	struct ib_uverbs_dereg_mr dereg;
	struct ib_uverbs_reg_mr reg;
	struct ends e;
	uint32_t rkey;

	ends_open(&e);
	ends_connect(&e);
	reg = (struct ib_uverbs_reg_mr){
		.start = (uintptr_t)e.b.mem, .length = 8192, .hca_va = (uintptr_t)e.b.mem,
		.pd_handle = e.b.pd, .access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
	};
	CHECK(CALL(e.b.fd, REG_MR, reg, mr_resp) == 0);
	e.b.lkey = mr_resp.lkey;
	CHECK(alloc_mw(&e.b, 3, &mw) == -EINVAL);
	CHECK(!alloc_mw(&e.b, type, &mw));
	rkey = bind_mw(&e.b, mw.rkey);
	memset(e.a.mem, 9, 100);
	CHECK(write_to(&e.a, e.b.mem + 3996, rkey) == IBV_WC_SUCCESS && e.b.mem[4095] == 9);
	dereg.mr_handle = mr_resp.mr_handle;
	CHECK(TELL(e.b.fd, DEREG_MR, dereg) == -EBUSY);		/* while a window is open on it */
	dealloc.mw_handle = mw.mw_handle;
	CHECK(TELL(e.b.fd, DEALLOC_MW, dealloc) == 0);
	CHECK(TELL(e.b.fd, DEALLOC_MW, dealloc) == -ENOENT);
	CHECK(write_to(&e.a, e.b.mem, rkey) == IBV_WC_REM_ACCESS_ERR);
	CHECK(TELL(e.b.fd, DEREG_MR, dereg) == 0);
	ends_close(&e);
}

/* --- shared receive queues --- */

static int modify_srq(int fd, uint32_t handle, uint32_t wr, uint32_t limit, uint32_t mask,
		      struct mminfo *mi)
{
	struct {
		struct ib_uverbs_modify_srq core;
		struct rxe_modify_srq_cmd drv;
	} req = {
		.core = { .srq_handle = handle, .attr_mask = mask, .max_wr = wr, .srq_limit = limit },
		.drv = { .mmap_info_addr = (uintptr_t)mi },
	};

	return command(fd, IB_USER_VERBS_CMD_MODIFY_SRQ, &req,
		       mi ? sizeof(req) : sizeof(req.core), 0);
}

static struct ib_uverbs_query_srq_resp query_srq(int fd, uint32_t handle)
{
	struct ib_uverbs_query_srq req = { .srq_handle = handle };
	struct ib_uverbs_query_srq_resp resp;

	CHECK(CALL(fd, QUERY_SRQ, req, resp) == 0);
	req.srq_handle += 1000;
	CHECK(command(fd, IB_USER_VERBS_CMD_QUERY_SRQ, &req, sizeof(req), sizeof(resp)) == -EINVAL);
	return resp;
}

static void send_bytes(struct qp *q, uint32_t length)
{
	new_wqe(q, IB_UVERBS_WR_SEND, 1, length);
	CHECK(send_it(q) == IBV_WC_SUCCESS);
}

static void test_srq(void)
{
	struct { struct ib_uverbs_create_srq_resp core; struct rxe_create_srq_resp drv; } resp;
	struct ib_uverbs_create_srq req = { .user_handle = 99, .max_wr = 7, .max_sge = 1 };
	struct ib_uverbs_get_context_resp ctx_resp;
	struct ib_uverbs_get_context ctx;
	struct ib_uverbs_query_srq_resp attr;
	struct ib_uverbs_async_event_desc event;
	struct ib_uverbs_destroy_srq_resp gone;
	struct ib_uverbs_destroy_srq destroy;
	struct rxe_queue_buf *ring;
	struct pollfd wait = { .events = POLLIN };
	struct mminfo mi = { 0 };
	struct ends e = { .a.fd = open_context("rxe0/uverbs"), .b.fd = open_file("rxe1/uverbs") };

	CHECK(CALL(e.b.fd, GET_CONTEXT, ctx, ctx_resp) == 0);
	wait.fd = open_event(ctx_resp.async_fd, O_NONBLOCK);
	make_pd_cq(&e.a);
	make_pd_cq(&e.b);
	req.pd_handle = e.b.pd;
	CHECK(CALL(e.b.fd, CREATE_SRQ, req, resp) == 0 && resp.core.max_wr >= 7);
	destroy.srq_handle = resp.core.srq_handle;
	ring = map(e.b.fd, &resp.drv.mi);
	CHECK(!make_typed(&e.a, IBV_QPT_RC, e.a.pd, 0, false));
	CHECK(!make_typed(&e.b, IBV_QPT_RC, e.b.pd, destroy.srq_handle, true));
	to_rts(&e.a, IBV_QPT_RC, &e.b);
	to_rts(&e.b, IBV_QPT_RC, &e.a);
	CHECK(CALL(e.b.fd, DESTROY_SRQ, destroy, gone) == -EBUSY);

	for (int i = 0; i < 3; i++)
		put_recv(ring, (uint64_t)i, e.b.mem, 100, e.b.lkey);
	/* More than there is room for; then as much as warns at the second message. */
	CHECK(modify_srq(e.b.fd, destroy.srq_handle, 0, 10000, IBV_SRQ_LIMIT, NULL) == -EINVAL);
	CHECK(!modify_srq(e.b.fd, destroy.srq_handle, 0, 2, IBV_SRQ_LIMIT, NULL));
	attr = query_srq(e.b.fd, destroy.srq_handle);
	CHECK(attr.srq_limit == 2 && attr.max_wr >= 7 && attr.max_sge == 1);
	send_bytes(&e.a, 50);
	CHECK(next_wc(&e.b).wr_id == 0 && poll(&wait, 1, 0) == 0);
	send_bytes(&e.a, 50);
	CHECK(next_wc(&e.b).wr_id == 1 && poll(&wait, 1, 5000) == 1);
	CHECK(read(wait.fd, &event, sizeof(event)) == sizeof(event));
	CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element == 99);
	CHECK(query_srq(e.b.fd, destroy.srq_handle).srq_limit == 0);

	/* It grows, and keeps what is in it; the answer to a bad address isn't written. */
	CHECK(modify_srq(e.b.fd, destroy.srq_handle, 100, 0, IBV_SRQ_MAX_WR, NULL) == -EINVAL);
	CHECK(!modify_srq(e.b.fd, destroy.srq_handle, 100, 0, IBV_SRQ_MAX_WR, &mi) && mi.size);
	CHECK(query_srq(e.b.fd, destroy.srq_handle).max_wr >= 100);
	ring = map(e.b.fd, &mi);
	send_bytes(&e.a, 50);
	CHECK(next_wc(&e.b).wr_id == 2);
	for (int i = 0; i < 50; i++)
		put_recv(ring, 10 + (uint64_t)i, e.b.mem, 100, e.b.lkey);
	send_bytes(&e.a, 50);
	CHECK(next_wc(&e.b).wr_id == 10);
	CHECK(modify_srq(e.b.fd, destroy.srq_handle, 200, 0, IBV_SRQ_MAX_WR, (void *)8) == -EFAULT);
	close(wait.fd);
	ends_close(&e);
}

/* --- datagrams by commands alone: no ring is looked at --- */

static uint32_t make_ah(const struct qp *q, const uint8_t *gid, uint16_t dlid)
{
	struct { struct ib_uverbs_create_ah_resp core; struct rxe_create_ah_resp drv; } resp;
	struct ib_uverbs_create_ah req = {
		.pd_handle = q->pd, .attr = { .dlid = dlid, .port_num = 1, .is_global = 1,
					      .grh.hop_limit = 1 },
	};

	memcpy(req.attr.grh.dgid, gid, 16);
	req.attr.grh.sgid_index = 5;				/* an empty entry */
	CHECK(CALL(q->fd, CREATE_AH, req, resp) == -EINVAL);
	req.attr.grh.sgid_index = 0;
	CHECK(CALL(q->fd, CREATE_AH, req, resp) == 0 && resp.drv.ah_num);
	return resp.core.ah_handle;
}

static void make_ud(struct qp *q)
{
	struct ib_uverbs_modify_qp req = { .port_num = 1, .qkey = 0x1234 };

	CHECK(!make_typed(q, IBV_QPT_UD, q->pd, 0, false));
	CHECK(!modify(q, &req, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	CHECK(!modify(q, &req, IBV_QPS_RTR, 0));
	CHECK(!modify(q, &req, IBV_QPS_RTS, IBV_QP_SQ_PSN));
}

static void command_recv(const struct qp *q)
{
	struct {
		struct ib_uverbs_post_recv head;
		struct ib_uverbs_recv_wr wr;
		struct ib_uverbs_sge sge;
	} req = {
		.head = { .qp_handle = q->qp, .wr_count = 1, .sge_count = 1, .wqe_size = sizeof(req.wr) },
		.wr = { .wr_id = 21, .num_sge = 1 },
		.sge = { (uintptr_t)q->mem, 4096, q->lkey },
	};
	uint32_t bad = 9;

	req.head.response = (uintptr_t)&bad;
	CHECK(command(q->fd, IB_USER_VERBS_CMD_POST_RECV, &req, sizeof(req), sizeof(bad)) == 0 && !bad);
}

static void command_send(const struct qp *q, uint32_t ah, uint32_t qpn)
{
	struct {
		struct ib_uverbs_post_send head;
		struct ib_uverbs_send_wr wr;
		struct ib_uverbs_sge sge;
	} req = {
		.head = { .qp_handle = q->qp, .wr_count = 1, .sge_count = 1, .wqe_size = sizeof(req.wr) },
		.wr = { .wr_id = 22, .num_sge = 1, .opcode = IB_UVERBS_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = 0x1234 } },
		.sge = { (uintptr_t)q->mem, 10, q->lkey },
	};
	uint32_t bad = 9;

	req.head.response = (uintptr_t)&bad;
	CHECK(command(q->fd, IB_USER_VERBS_CMD_POST_SEND, &req, sizeof(req), sizeof(bad)) == 0 && !bad);
	req.wr.wr.ud.ah = q->qp;			/* not one */
	CHECK(command(q->fd, IB_USER_VERBS_CMD_POST_SEND, &req, sizeof(req), sizeof(bad)) == -EINVAL);
	CHECK(bad == 1);
}

/* By POLL_CQ; status -1: there is none within the time. */
static struct ib_uverbs_wc command_poll(const struct qp *q)
{
	struct {
		struct ib_uverbs_poll_cq_resp head;
		struct ib_uverbs_wc wc;
	} resp = { .head.count = 0 };
	struct ib_uverbs_poll_cq req = {
		.response = (uintptr_t)&resp, .cq_handle = q->cq, .ne = 1,
	};

	for (int i = 0; i < 5000 && !resp.head.count; i++) {
		CHECK(!command(q->fd, IB_USER_VERBS_CMD_POLL_CQ, &req, sizeof(req), sizeof(resp)));
		if (!resp.head.count)
			usleep(1000);
	}
	if (!resp.head.count)
		resp.wc.status = UINT32_MAX;
	return resp.wc;
}

static int attach(const struct qp *q, const uint8_t *gid, uint16_t mlid, uint32_t cmd)
{
	struct ib_uverbs_attach_mcast req = { .qp_handle = q->qp, .mlid = mlid };

	memcpy(req.gid, gid, 16);
	return command(q->fd, cmd, &req, sizeof(req), 0);
}

static void test_mcast(void)
{
	static const uint8_t mgid[16] = { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = 0x77 };
	static const uint8_t gid[16] = { 0xfe, 0x80, [15] = 1 };
	const uint32_t join = IB_USER_VERBS_CMD_ATTACH_MCAST, leave = IB_USER_VERBS_CMD_DETACH_MCAST;
	struct ib_uverbs_wc wc;
	struct ends e;

	ends_open(&e);
	make_ud(&e.a);
	make_ud(&e.b);
	CHECK(attach(&e.b, gid, 0xc000, join) == -EINVAL);
	CHECK(attach(&e.b, mgid, 0xc000, leave) == -EINVAL);	/* isn't there */
	CHECK(!attach(&e.b, mgid, 0xc000, join));
	CHECK(!attach(&e.b, mgid, 0xc000, join));		/* once */
	command_recv(&e.b);
	memset(e.a.mem, 5, 10);
	command_send(&e.a, make_ah(&e.a, mgid, 0xc000), 0xffffff);
	CHECK(command_poll(&e.a).wr_id == 22);
	wc = command_poll(&e.b);
	CHECK(!wc.status && wc.wr_id == 21 && wc.byte_len == 50 && wc.src_qp == e.a.qpn);
	CHECK(wc.wc_flags & IBV_WC_GRH && e.b.mem[49] == 5 && !memcmp(e.b.mem + 24, mgid, 16));
	CHECK(!attach(&e.b, mgid, 0xc000, leave));
	CHECK(attach(&e.b, mgid, 0xc000, leave) == -EINVAL);
	ends_close(&e);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	mnt = argv[1];
	test_xrc();
	test_rereg();
	test_mw(IBV_MW_TYPE_1);
	test_mw(IBV_MW_TYPE_2);
	test_srq();
	test_mcast();
	return failed;
}
