/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics and their masks, shared receive queues, XRC, windows, fast
 * registration, path migration, drained queues, memory in another address
 * space, rings.
 */
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "hca/req.h"
#include "verbs_remote.h"

#include <rdma/rdma_user_rxe.h>

static struct side a, b, c;

static void atomic(unsigned int opcode, uint64_t cmp, uint64_t swap, uint64_t cmp_mask,
		   uint64_t swap_mask, uint64_t orig, uint64_t result)
{
	uint64_t *target = (uint64_t *)(b.data + 64), *got = (uint64_t *)a.data;
	struct ibv_sge sge;
	struct ibfs_wr wr = wr_of(&a, opcode, &sge, 0, 8);

	*target = orig;
	*got = ~orig;
	wr.atomic.remote_addr = 64;
	wr.atomic.rkey = b.key;
	wr.atomic.compare_add = cmp;
	wr.atomic.swap = swap;
	wr.atomic.compare_add_mask = cmp_mask;
	wr.atomic.swap_mask = swap_mask;
	CHECK(!a.ops->post_send(a.qp, &wr));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(*got == orig && *target == result);
}

static void test_atomics(void)
{
	struct ibv_sge sge;
	struct ibfs_wr wr;

	pair_open(&a, &b, IBV_QPT_RC);
	atomic(IBFS_WR_ATOMIC_FETCH_AND_ADD, 5, 0, 0, 0, 10, 15);
	atomic(IBFS_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0, 0, ~0ULL, 0);
	atomic(IBFS_WR_ATOMIC_CMP_AND_SWP, 10, 99, 0, 0, 10, 99);
	atomic(IBFS_WR_ATOMIC_CMP_AND_SWP, 11, 99, 0, 0, 10, 10);
	/* Compare the low byte, change the high half. */
	atomic(IBFS_WR_MASKED_ATOMIC_CMP_AND_SWP, 0xff34, 0x1111222233334444, 0xff,
	       0xffffffff00000000, 0xabcdef0012341234, 0x1111222212341234);
	atomic(IBFS_WR_MASKED_ATOMIC_CMP_AND_SWP, 0x35, 1, 0xff, ~0ULL, 0x34, 0x34);
	/* Fields of 16 bits that don't carry into each other. */
	atomic(IBFS_WR_MASKED_ATOMIC_FETCH_AND_ADD, 0x0001000100010001, 0, 0x8000800080008000, 0,
	       0xffff00007fffffff, 0x0000000180000000);
	wr = wr_of(&a, IBFS_WR_ATOMIC_FETCH_AND_ADD, &sge, 0, 4);
	CHECK(a.ops->post_send(a.qp, &wr) == -EINVAL);
	pair_close(&a, &b);
}

/* 8 bytes to an aligned place, which takes the right to write and no right to atomics. */
static void test_atomic_write(void)
{
	struct ibfs_wr wr = {
		.opcode = IBFS_WR_ATOMIC_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.atomic = { .remote_addr = 64, .swap = 0x1122334455667788 },
	};
	uint64_t *target;

	pair_open(&a, &b, IBV_QPT_RC);
	target = (uint64_t *)(b.data + 64);
	*target = 5;
	wr.atomic.rkey = b.key;
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(*target == 0x1122334455667788);
	wr.num_sge = 1;
	CHECK(a.ops->post_send(a.qp, &wr) == -EINVAL);
	wr.num_sge = 0;
	wr.send_flags |= IBV_SEND_INLINE;
	CHECK(a.ops->post_send(a.qp, &wr) == -EINVAL);
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.atomic.swap = 1;
	wr.atomic.remote_addr = 68;
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_REM_INV_REQ_ERR, -1));
	CHECK(*target == 0x1122334455667788);
	pair_close(&a, &b);
}

/* Two QPs take from one queue; the limit is told once; it grows with what it holds. */
static void test_srq(void)
{
	struct ibfs_srq_init init = { .attr = { .max_wr = 10, .max_sge = 2 } };
	struct ibv_srq_attr attr = { .max_wr = 0, .srq_limit = 5 };
	struct side a2, b2;
	struct ibfs_wc wc;
	uint32_t num;

	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	side_open(&a2, "rxe0");
	side_open(&b2, "rxe1");
	CHECK(b.ops->create_srq(b.pd, &(struct ibfs_srq_init){ 0 }, &b.client, &b.srq) == -EINVAL);
	CHECK(!b.ops->create_srq(b.pd, &init, &b.client, &b.srq));
	b.init.srq = b2.init.srq = b.srq;
	b2.init.recv_cq = b.cq;
	side_qp(&a);
	side_qp(&b);
	side_qp(&a2);
	side_qp(&b2);
	connect_sides(&a, &b);
	connect_sides(&a2, &b2);
	for (int i = 0; i < 10; i++)
		CHECK(!side_recv(&b, 100 * i, 100));
	CHECK(side_recv(&b, 0, 100) == -ENOMEM);
	CHECK(b.ops->modify_srq(b.srq, &(struct ibv_srq_attr){ .max_wr = 9 }, IBV_SRQ_MAX_WR) == -EINVAL);
	CHECK(!b.ops->modify_srq(b.srq, &(struct ibv_srq_attr){ .max_wr = 20 }, IBV_SRQ_MAX_WR));
	CHECK(b.ops->modify_srq(b.srq, &(struct ibv_srq_attr){ .srq_limit = 21 }, IBV_SRQ_LIMIT) == -EINVAL);
	CHECK(!b.ops->modify_srq(b.srq, &attr, IBV_SRQ_LIMIT));
	for (int i = 0; i < 8; i++) {
		struct side *from = i & 1 ? &a2 : &a;

		fill(from->data, 50, i);
		CHECK(!side_send(from, IBFS_WR_SEND, 0, 50, 0, 0));
		CHECK(expect_wc(from, IBV_WC_SUCCESS, -1));
		CHECK(side_wc(&b, &wc) && wc.wr_id == (unsigned int)i + 1 && !wc.status);
		CHECK(wc.qp_num == (i & 1 ? b2.qpn : b.qpn) && !memcmp(b.data + 100 * i, from->data, 50));
		CHECK(b.events[IBV_EVENT_SRQ_LIMIT_REACHED] == (i >= 5));
	}
	b.ops->query_srq(b.srq, &attr, &num);
	CHECK(attr.max_wr == 20 && attr.max_sge == 2 && attr.srq_limit == 0);
	CHECK(b.ops->destroy_srq(b.srq) == -EBUSY);
	/* What a QP leaves in the SRQ stays there. */
	CHECK(!side_to(&b, IBV_QPS_ERR, 0));
	pass(0.01);
	CHECK(b.events[IBV_EVENT_QP_LAST_WQE_REACHED] == 1 && no_wc(&b));
	CHECK(!side_send(&a2, IBFS_WR_SEND, 0, 50, 0, 0) && expect_wc(&a2, IBV_WC_SUCCESS, -1));
	CHECK(expect_wc(&b, IBV_WC_SUCCESS, IBFS_WC_RECV));
	side_close(&b2);
	side_close(&a2);
	pair_close(&a, &b);
}

/* One target QP, two SRQs named by number, a second opener. */
/* Messages to two SRQs by turns. */
static void xrc_messages(struct ibfs_srq *const srq[2], const uint32_t num[2])
{
	struct ibv_sge sge;
	struct ibfs_wr wr;
	struct ibfs_wc wc;

	for (unsigned int i = 0; i < 6; i++) {
		struct ibv_sge to = { 1000 * i, 10000, b.key };
		struct ibfs_recv_wr recv = { .wr_id = i, .sg_list = &to, .num_sge = 1 };

		CHECK(!b.ops->post_srq_recv(srq[i & 1], &recv));
		wr = wr_of(&a, i < 4 ? IBFS_WR_SEND : IBFS_WR_RDMA_WRITE_WITH_IMM, &sge, 0, 5000);
		wr.xrc_srq_num = num[i & 1];
		wr.rdma.rkey = b.key;
		wr.rdma.remote_addr = 1000 * i;
		fill(a.data, 5000, i);
		CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, -1));
		CHECK(side_wc(&b, &wc) && wc.wr_id == i && !wc.status && wc.byte_len == 5000);
		CHECK(!memcmp(a.data, b.data + 1000 * i, 5000));
	}
}

/* A read and an atomic, which name an SRQ, too; and an SRQ that isn't there. */
static void xrc_others(uint32_t num)
{
	struct ibv_sge sge;
	struct ibfs_wr wr;

	wr = wr_of(&a, IBFS_WR_RDMA_READ, &sge, 8000, 3000);
	wr.xrc_srq_num = num;
	wr.rdma.rkey = b.key;
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_RDMA_READ));
	CHECK(!memcmp(a.data + 8000, b.data, 3000));
	wr = wr_of(&a, IBFS_WR_MASKED_ATOMIC_FETCH_AND_ADD, &sge, 0, 8);
	wr.xrc_srq_num = num;
	wr.atomic.rkey = b.key;
	wr.atomic.compare_add = 1;
	*(uint64_t *)b.data = 41;
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(*(uint64_t *)b.data == 42);
	/* Both openers are told. */
	wr = wr_of(&a, IBFS_WR_SEND, &sge, 0, 8);
	wr.xrc_srq_num = 0xffff;
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_REM_INV_REQ_ERR, -1));
	CHECK(b.events[IBV_EVENT_QP_REQ_ERR] == 1 && c.events[IBV_EVENT_QP_REQ_ERR] == 1);
}

static void test_xrc(void)
{
	struct ibfs_xrcd *xrcd, *other;
	struct ibfs_srq_init init = { .attr = { .max_wr = 10, .max_sge = 1 }, .xrc = true };
	struct ibfs_srq *srq[2];
	struct ibv_srq_attr attr;
	uint32_t num[2];
	struct ibfs_qp *opened;

	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	side_open(&c, "rxe1");
	CHECK(!b.ops->alloc_xrcd(b.dev, &xrcd) && !b.ops->alloc_xrcd(b.dev, &other));
	init.xrcd = xrcd;
	init.cq = b.cq;
	for (int i = 0; i < 2; i++) {
		CHECK(!b.ops->create_srq(b.pd, &init, &b.client, &srq[i]));
		b.ops->query_srq(srq[i], &attr, &num[i]);
	}
	a.init.type = IBV_QPT_XRC_SEND;
	b.init.type = IBV_QPT_XRC_RECV;
	b.init.xrcd = xrcd;
	side_qp(&a);
	side_qp(&b);
	connect_sides(&a, &b);
	CHECK(b.ops->open_qp(other, b.qpn, &c.client, &opened) == -EINVAL);
	CHECK(!b.ops->open_qp(xrcd, b.qpn, &c.client, &opened) && opened == b.qp);
	xrc_messages(srq, num);
	xrc_others(num[0]);
	/* It lives until the last of them closes it. */
	CHECK(!b.ops->destroy_qp(b.qp, &b.client) && b.ops->dealloc_xrcd(xrcd) == -EBUSY);
	CHECK(!b.ops->destroy_qp(opened, &c.client));
	b.qp = NULL;
	CHECK(!b.ops->destroy_srq(srq[0]) && !b.ops->destroy_srq(srq[1]));
	CHECK(!b.ops->dealloc_xrcd(xrcd) && !b.ops->dealloc_xrcd(other));
	side_close(&c);
	pair_close(&a, &b);
}

static int bind_mw(struct side *s, struct ibfs_mw *mw, uint32_t new_key, uint64_t addr, uint64_t len,
		   unsigned int access)
{
	struct ibfs_wr wr = { .opcode = IBFS_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED };
	struct ibfs_mw_attr attr;

	s->ops->query_mw(mw, &attr);
	wr.bind.mw_rkey = attr.rkey;
	wr.bind.mr_lkey = s->key;
	wr.bind.rkey = new_key ? new_key : attr.rkey + 1;
	wr.bind.addr = addr;
	wr.bind.length = len;
	wr.bind.access = access;
	return s->ops->post_send(s->qp, &wr);
}

static uint32_t mw_key(struct side *s, struct ibfs_mw *mw)
{
	struct ibfs_mw_attr attr;

	s->ops->query_mw(mw, &attr);
	return attr.rkey;
}

static void reconnect(void)
{
	CHECK(!side_to(&a, IBV_QPS_RESET, 0) && !side_to(&b, IBV_QPS_RESET, 0));
	connect_sides(&a, &b);
}

static void test_mw1(void)
{
	struct ibfs_mw *mw;
	uint32_t first;

	pair_open(&a, &b, IBV_QPT_RC);
	CHECK(!b.ops->alloc_mw(b.pd, IBV_MW_TYPE_1, &mw));
	CHECK(!bind_mw(&b, mw, 0, 1000, 100, IBV_ACCESS_REMOTE_WRITE));
	CHECK(expect_wc(&b, IBV_WC_SUCCESS, IBFS_WC_BIND_MW));
	CHECK(b.ops->dereg_mr(b.mr) == -EBUSY);
	CHECK(b.ops->rereg_mr(b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
			      &(struct ibfs_mr_init){ 0 }) == -EBUSY);
	first = mw_key(&b, mw);
	fill(a.data, 100, 1);
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 100, 1000, first));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1) && !memcmp(a.data, b.data + 1000, 100));
	/* Bound anew: the old key is dead. */
	CHECK(!bind_mw(&b, mw, 0, 2000, 100, IBV_ACCESS_REMOTE_READ));
	CHECK(expect_wc(&b, IBV_WC_SUCCESS, IBFS_WC_BIND_MW) && mw_key(&b, mw) != first);
	CHECK(!side_send(&a, IBFS_WR_RDMA_READ, 0, 100, 2000, mw_key(&b, mw)));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 100, 1000, first));
	CHECK(expect_wc(&a, IBV_WC_REM_ACCESS_ERR, -1));
	reconnect();
	/* Not what it was bound for, and not beyond its end. */
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 1, 2000, mw_key(&b, mw)));
	CHECK(expect_wc(&a, IBV_WC_REM_ACCESS_ERR, -1));
	reconnect();
	CHECK(!side_send(&a, IBFS_WR_RDMA_READ, 0, 100, 2001, mw_key(&b, mw)));
	CHECK(expect_wc(&a, IBV_WC_REM_ACCESS_ERR, -1));
	reconnect();
	/* Length 0 unbinds. */
	CHECK(!bind_mw(&b, mw, 0, 0, 0, 0) && expect_wc(&b, IBV_WC_SUCCESS, IBFS_WC_BIND_MW));
	CHECK(!bind_mw(&b, mw, 0, SIDE_MEM - 50, 100, IBV_ACCESS_REMOTE_READ));
	CHECK(expect_wc(&b, IBV_WC_MW_BIND_ERR, IBFS_WC_BIND_MW) && side_state(&b) == IBV_QPS_ERR);
	CHECK(!b.ops->dealloc_mw(mw));
	pair_close(&a, &b);
}

/* To its QP: another of the same PD can't use it. */
static void mw2_belongs(struct ibfs_mw *mw, uint32_t key)
{
	side_open(&c, "rxe1");
	CHECK(!bind_mw(&b, mw, key, 0, 100, IBV_ACCESS_REMOTE_WRITE));
	CHECK(expect_wc(&b, IBV_WC_SUCCESS, IBFS_WC_BIND_MW));
	CHECK(!bind_mw(&b, mw, key ^ 3, 0, 100, IBV_ACCESS_REMOTE_WRITE));
	CHECK(expect_wc(&b, IBV_WC_MW_BIND_ERR, -1));
	reconnect();
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 100, 0, key));	/* unbound by the reset */
	CHECK(expect_wc(&a, IBV_WC_REM_ACCESS_ERR, -1));
	reconnect();
	CHECK(!bind_mw(&b, mw, key ^ 7, 0, 100, IBV_ACCESS_REMOTE_WRITE));
	CHECK(expect_wc(&b, IBV_WC_SUCCESS, IBFS_WC_BIND_MW));
	c.init.pd = b.pd;
	side_qp(&c);
	CHECK(!side_to(&a, IBV_QPS_RESET, 0));
	connect_sides(&a, &c);
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 100, 0, key ^ 7));
	CHECK(expect_wc(&a, IBV_WC_REM_ACCESS_ERR, -1));
	side_close(&c);
}

static void test_mw2(void)
{
	struct ibfs_wr inv = { .opcode = IBFS_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED };
	struct ibfs_mw *mw;
	struct ibv_sge sge;
	struct ibfs_wr wr;
	struct ibfs_wc wc;
	uint32_t key;

	pair_open(&a, &b, IBV_QPT_RC);
	CHECK(b.ops->alloc_mw(b.pd, 3, &mw) == -EINVAL);
	CHECK(!b.ops->alloc_mw(b.pd, IBV_MW_TYPE_2, &mw));
	key = mw_key(&b, mw) ^ 0x5a;
	/* Zero based */
	CHECK(!bind_mw(&b, mw, key, 1000, 100, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED));
	CHECK(expect_wc(&b, IBV_WC_SUCCESS, IBFS_WC_BIND_MW) && mw_key(&b, mw) == key);
	fill(a.data, 100, 1);
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 100, 0, key));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1) && !memcmp(a.data, b.data + 1000, 100));
	inv.ex.invalidate_rkey = key;
	CHECK(!b.ops->post_send(b.qp, &inv) && expect_wc(&b, IBV_WC_SUCCESS, IBFS_WC_LOCAL_INV));
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 100, 0, key));
	CHECK(expect_wc(&a, IBV_WC_REM_ACCESS_ERR, -1));
	reconnect();
	/* A peer may invalidate it with a message. */
	CHECK(!bind_mw(&b, mw, key ^ 1, 0, 100, IBV_ACCESS_REMOTE_WRITE));
	CHECK(expect_wc(&b, IBV_WC_SUCCESS, IBFS_WC_BIND_MW) && !side_recv(&b, 0, 100));
	wr = wr_of(&a, IBFS_WR_SEND_WITH_INV, &sge, 0, 10);
	wr.ex.invalidate_rkey = key ^ 1;
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_SEND));
	CHECK(side_wc(&b, &wc) && wc.wc_flags == IBV_WC_WITH_INV && wc.invalidated_rkey == (key ^ 1));
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 100, 0, key ^ 1));
	CHECK(expect_wc(&a, IBV_WC_REM_ACCESS_ERR, -1));
	reconnect();
	mw2_belongs(mw, key);
	CHECK(!b.ops->dealloc_mw(mw));
	pair_close(&a, &b);
}

static void test_fast_reg(void)
{
	struct ibfs_mr_init init = { .access = IBV_ACCESS_LOCAL_WRITE, .max_pages = 4 };
	uint64_t pages[] = { 0x5000, 0x1000, 0x9000 };
	struct ibfs_wr reg = { .opcode = IBFS_WR_FAST_REG_MR, .send_flags = IBV_SEND_SIGNALED };
	struct ibfs_wr inv = { .opcode = IBFS_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED };
	struct ibfs_mr *mr;
	uint32_t key;

	pair_open(&a, &b, IBV_QPT_RC);
	init.mem = b.mem;
	init.length = SIDE_MEM;
	CHECK(!b.ops->reg_mr(b.pd, &init, &mr));
	key = mr_key(&b, mr);
	reg.reg.mr_lkey = key;
	reg.reg.rkey = key ^ 0x33;
	reg.reg.iova = 0x70000800;
	reg.reg.length = 3 * 4096 - 0x800;
	reg.reg.pages = pages;
	reg.reg.num_pages = 3;
	reg.reg.page_shift = 12;
	reg.reg.access = ALL_ACCESS & ~IBV_ACCESS_MW_BIND;
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 1, 0x70000800, key));
	CHECK(expect_wc(&a, IBV_WC_REM_ACCESS_ERR, -1));	/* not valid before */
	reconnect();
	CHECK(!b.ops->post_send(b.qp, &reg) && expect_wc(&b, IBV_WC_SUCCESS, IBFS_WC_FAST_REG_MR));
	fill(a.data, 3 * 4096, 5);
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 3 * 4096 - 0x800, 0x70000800, key ^ 0x33));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(!memcmp(b.data + 0x5800, a.data, 0x800) && !memcmp(b.data + 0x1000, a.data + 0x800, 4096));
	CHECK(!memcmp(b.data + 0x9000, a.data + 0x1800, 4096) && !b.data[0x57ff] && !b.data[0xa000]);
	CHECK(!side_send(&a, IBFS_WR_RDMA_READ, 20000, 5000, 0x70000900, key ^ 0x33));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1) && !memcmp(a.data + 20000, a.data + 0x100, 5000));
	inv.ex.invalidate_rkey = key ^ 0x33;
	CHECK(!b.ops->post_send(b.qp, &inv) && expect_wc(&b, IBV_WC_SUCCESS, IBFS_WC_LOCAL_INV));
	CHECK(!side_send(&a, IBFS_WR_RDMA_READ, 0, 1, 0x70000900, key ^ 0x33));
	CHECK(expect_wc(&a, IBV_WC_REM_ACCESS_ERR, -1));
	reconnect();
	pages[1] = SIDE_MEM;			/* not in its memory */
	reg.reg.mr_lkey = key ^ 0x33;
	CHECK(!b.ops->post_send(b.qp, &reg) && expect_wc(&b, IBV_WC_MW_BIND_ERR, -1));
	CHECK(!b.ops->dereg_mr(mr));
	pair_close(&a, &b);
}

static void test_rereg(void)
{
	struct ibfs_mr_init init = { .access = IBV_ACCESS_REMOTE_WRITE };
	struct ibfs_mr_attr attr;
	struct ibfs_mr *mr;

	side_open(&a, "rxe0");
	init.mem = a.mem;
	init.length = 4096;
	CHECK(a.ops->reg_mr(a.pd, &init, &mr) == -EINVAL);
	init.access = IBV_ACCESS_LOCAL_WRITE;
	init.mem_off = SIDE_MEM - 100;
	CHECK(a.ops->reg_mr(a.pd, &init, &mr) == -EINVAL);
	init.mem_off = 0;
	CHECK(!a.ops->reg_mr(a.pd, &init, &mr));
	a.ops->query_mr(mr, &attr);
	CHECK(attr.lkey && !attr.rkey && attr.length == 4096 && attr.valid && attr.pd == a.pd);
	init.access = ALL_ACCESS;
	init.iova = 0x1000;
	init.length = 100;
	CHECK(a.ops->rereg_mr(mr, 0, NULL, &init) == -EINVAL);
	CHECK(!a.ops->rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
			       &init));
	a.ops->query_mr(mr, &attr);
	CHECK(attr.rkey && attr.length == 100 && attr.iova == 0x1000 && attr.access == ALL_ACCESS);
	CHECK(!a.ops->dereg_mr(mr));
	side_close(&a);
}

/* SQD finishes what began, holds the rest and tells; RTS goes on. */
static void test_sqd(void)
{
	struct ibfs_wc wc;

	pair_open(&a, &b, IBV_QPT_RC);
	CHECK(!side_send(&a, IBFS_WR_SEND, 0, 8, 0, 0));	/* waits for a receive request */
	CHECK(!side_send(&a, IBFS_WR_SEND, 0, 8, 0, 0));
	for (int i = 0; i < 4; i++)
		ev_run(t.ibfs.loop, EVRUN_NOWAIT);
	a.attr.en_sqd_async_notify = 1;
	CHECK(!side_to(&a, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY));
	CHECK(!a.events[IBV_EVENT_SQ_DRAINED] && req_draining(a.qp));
	CHECK(!side_recv(&b, 0, 8) && !side_recv(&b, 0, 8));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1));
	pass(0.01);
	CHECK(a.events[IBV_EVENT_SQ_DRAINED] == 1 && !req_draining(a.qp) && no_wc(&a));
	CHECK(!side_send(&a, IBFS_WR_SEND, 0, 8, 0, 0) && no_wc(&a));
	CHECK(!side_to(&a, IBV_QPS_RTS, 0));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(!side_recv(&b, 0, 8) && side_wc(&a, &wc) && !wc.status);
	pair_close(&a, &b);
}

/* COMM_EST: the first message in RTR. */
static void test_comm_est(void)
{
	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	side_qp(&a);
	side_qp(&b);
	side_connect(&a, &b);
	b.attr.dest_qp_num = a.qpn;
	b.attr.ah_attr = (struct ibv_ah_attr){ .dlid = side_port(&a)->lid, .port_num = 1 };
	CHECK(!side_to(&b, IBV_QPS_INIT, TO_INIT_RC) && !side_to(&b, IBV_QPS_RTR, TO_RTR_RC));
	CHECK(!side_recv(&b, 0, 8) && !side_send(&a, IBFS_WR_SEND, 0, 8, 0, 0));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1) && b.events[IBV_EVENT_COMM_EST] == 1);
	CHECK(expect_wc(&b, IBV_WC_SUCCESS, -1));
	pair_close(&a, &b);
}

static void two_ports(const char *id)
{
	struct node *node = node_new(t.ibfs.fabric, NODE_CA, id, 2, 0), *sw;
	char *err = NULL;

	CHECK(node);
	for (int i = 1; i <= 2; i++) {
		sw = fabric_find(t.ibfs.fabric, "switch");
		for (int p = 1; p <= sw->num_ports; p++)
			if (!sw->ports[p].link) {
				CHECK(link_new(&node->ports[i], &sw->ports[p]));
				break;
			}
	}
	CHECK(!static_subnet(t.ibfs.fabric, &err) && !soft_device_add(&t.ibfs, id, id));
}

static void set_alternate(struct side *s, struct side *peer)
{
	s->attr.alt_ah_attr = (struct ibv_ah_attr){ .dlid = side_port(peer)[1].lid, .port_num = 2 };
	s->attr.alt_port_num = 2;
	s->attr.alt_timeout = 10;
	s->attr.path_mig_state = IBV_MIG_REARM;
	CHECK(!side_to(s, IBV_QPS_RTS, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE));
}

static enum ibv_mig_state mig_state(struct side *s)
{
	struct ibv_qp_attr attr;
	struct ibfs_qp_init init;
	uint32_t qpn;

	s->ops->query_qp(s->qp, &attr, &init, &qpn);
	return attr.path_mig_state;
}

/* A cable is pulled: both ends go to their other ports, the message arrives, nothing fails. */
static void test_apm(void)
{
	struct ibv_qp_attr attr;
	struct ibfs_qp_init init;
	uint32_t qpn;

	two_ports("x");
	two_ports("y");
	side_open(&a, "x");
	side_open(&b, "y");
	side_qp(&a);
	side_qp(&b);
	connect_sides(&a, &b);
	a.attr.path_mig_state = IBV_MIG_REARM;
	CHECK(side_to(&a, IBV_QPS_RTS, IBV_QP_PATH_MIG_STATE) == -EINVAL);	/* no alternate path */
	set_alternate(&a, &b);
	set_alternate(&b, &a);
	CHECK(mig_state(&a) == IBV_MIG_REARM);
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 8, 0, b.key) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(mig_state(&a) == IBV_MIG_ARMED && mig_state(&b) == IBV_MIG_ARMED);
	link_set_down(side_port(&a)->link, true);
	CHECK(!side_recv(&b, 0, 100) && !side_send(&a, IBFS_WR_SEND, 0, 100, 0, 0));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, IBFS_WC_SEND) && expect_wc(&b, IBV_WC_SUCCESS, -1));
	CHECK(mig_state(&a) == IBV_MIG_MIGRATED && mig_state(&b) == IBV_MIG_MIGRATED);
	CHECK(a.events[IBV_EVENT_PATH_MIG] == 1 && b.events[IBV_EVENT_PATH_MIG] == 1);
	a.ops->query_qp(a.qp, &attr, &init, &qpn);
	CHECK(attr.port_num == 2 && attr.ah_attr.dlid == side_port(&b)[1].lid && attr.timeout == 10);
	/* To a port that is down it can't. */
	a.attr.alt_ah_attr = (struct ibv_ah_attr){ .dlid = side_port(&b)->lid, .port_num = 1 };
	a.attr.alt_port_num = 1;
	a.attr.path_mig_state = IBV_MIG_REARM;
	CHECK(!side_to(&a, IBV_QPS_RTS, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE));
	b.attr.path_mig_state = IBV_MIG_REARM;
	CHECK(!side_to(&b, IBV_QPS_RTS, IBV_QP_PATH_MIG_STATE));
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 8, 0, b.key) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(mig_state(&a) == IBV_MIG_ARMED);
	a.attr.path_mig_state = IBV_MIG_MIGRATED;
	CHECK(!side_to(&a, IBV_QPS_RTS, IBV_QP_PATH_MIG_STATE));
	CHECK(a.events[IBV_EVENT_PATH_MIG_ERR] == 1);
	pair_close(&a, &b);
}

static void remote_atomic(struct side *l, struct side *r)
{
	struct ibv_sge sge;
	struct ibfs_wr wr = wr_of(l, IBFS_WR_ATOMIC_FETCH_AND_ADD, &sge, 0, 8);

	*(uint64_t *)(remote.mem + 8) = 41;
	wr.atomic.remote_addr = 8;
	wr.atomic.rkey = r->key;
	wr.atomic.compare_add = 1;
	CHECK(!l->ops->post_send(l->qp, &wr) && remote_wc(l, IBV_WC_SUCCESS));
	CHECK(*(uint64_t *)(remote.mem + 8) == 42 && *(uint64_t *)l->data == 41);
}

/* A copy that fails, and one that is under way when the QP goes. */
static void remote_fails(struct side *l, struct side *r)
{
	remote.fail = true;
	CHECK(!side_send(l, IBFS_WR_RDMA_WRITE, 0, 10, 0, r->key));
	CHECK(remote_wc(l, IBV_WC_REM_OP_ERR));
	reconnect();
	CHECK(!side_send(r, IBFS_WR_RDMA_WRITE, 0, 10, 0, l->key));
	CHECK(remote_wc(r, IBV_WC_LOC_PROT_ERR));
	reconnect();
	CHECK(!side_send(l, IBFS_WR_RDMA_WRITE, 0, 10, 0, r->key));
	CHECK(!side_send(r, IBFS_WR_RDMA_WRITE, 0, 10, 0, l->key));
}

static void test_remote(void)
{
	for (int far = 0; far < 2; far++) {
		struct side *r = far ? &b : &a, *l = far ? &a : &b;

		pair_open(&a, &b, IBV_QPT_RC);
		remote_open(r);
		fill(remote.mem, REMOTE_LEN, 1);
		/* Away from remote memory, */
		CHECK(!side_recv(l, 0, REMOTE_LEN) && !side_send(r, IBFS_WR_SEND, 0, 290000, 0, 0));
		CHECK(remote_wc(r, IBV_WC_SUCCESS) && remote_wc(l, IBV_WC_SUCCESS));
		CHECK(!memcmp(l->data, remote.mem, 290000));
		/* into it, several at a time, */
		fill(l->data, REMOTE_LEN, 2);
		for (int i = 0; i < 4; i++)
			CHECK(!side_send(l, IBFS_WR_RDMA_WRITE, i * 70000, 70000, i * 70000, r->key));
		for (int i = 0; i < 4; i++)
			CHECK(remote_wc(l, IBV_WC_SUCCESS));
		CHECK(!memcmp(l->data, remote.mem, 280000));
		/* read from and read into, and by an atomic. */
		fill(remote.mem, REMOTE_LEN, 3);
		CHECK(!side_send(l, IBFS_WR_RDMA_READ, 0, 290000, 5, r->key));
		CHECK(remote_wc(l, IBV_WC_SUCCESS) && !memcmp(l->data, remote.mem + 5, 290000));
		fill(l->data, REMOTE_LEN, 4);
		CHECK(!side_send(r, IBFS_WR_RDMA_READ, 3, 290000, 0, l->key));
		CHECK(remote_wc(r, IBV_WC_SUCCESS) && !memcmp(l->data, remote.mem + 3, 290000));
		remote_atomic(l, r);
		remote_fails(l, r);
		for (int i = 0; i < 5; i++)
			ev_run(t.ibfs.loop, EVRUN_NOWAIT);
		CHECK(remote.num == 2);
		pair_close(&a, &b);
		CHECK(remote.cancelled == 2 && !remote.num && remote.freed);
	}
}

/* A process' rings: produced into shared memory, found by a doorbell and by polling. */
static void test_ring(void)
{
	struct ibfs_ring sq, cqr, rq;
	struct rxe_queue_buf *q, *cb, *rb;
	struct rxe_send_wqe *wqe;
	struct rxe_recv_wqe *recv;
	struct ibfs_wc wc;
	uint32_t slot;

	pair_open(&a, &b, IBV_QPT_RC);
	CHECK(!a.ops->qp_ring(a.qp, true, &sq) && !a.ops->cq_ring(a.cq, &cqr));
	CHECK(!b.ops->qp_ring(b.qp, false, &rq));
	q = mmap(NULL, sq.size, PROT_READ | PROT_WRITE, MAP_SHARED, sq.fd, 0);
	cb = mmap(NULL, cqr.size, PROT_READ | PROT_WRITE, MAP_SHARED, cqr.fd, 0);
	rb = mmap(NULL, rq.size, PROT_READ | PROT_WRITE, MAP_SHARED, rq.fd, 0);
	CHECK(q != MAP_FAILED && cb != MAP_FAILED && rb != MAP_FAILED);
	slot = 1U << q->log2_elem_size;
	for (uint32_t i = 0; i < 300; i++) {
		recv = (struct rxe_recv_wqe *)(rb->data + ((size_t)(i & rb->index_mask) << rb->log2_elem_size));
		memset(recv, 0, sizeof(*recv));
		recv->wr_id = 1000 + i;
		recv->dma.num_sge = 1;
		recv->dma.sge[0] = (struct rxe_sge){ 4096, 4096, b.key };
		__atomic_store_n(&rb->producer_index, (i + 1) & rb->index_mask, __ATOMIC_RELEASE);
		wqe = (struct rxe_send_wqe *)(q->data + (size_t)(i & q->index_mask) * slot);
		memset(wqe, 0, sizeof(*wqe));
		wqe->wr.wr_id = i;
		wqe->wr.opcode = IBV_WR_SEND;
		wqe->wr.send_flags = IBV_SEND_SIGNALED;
		wqe->dma.num_sge = 1;
		wqe->dma.sge[0] = (struct rxe_sge){ 0, i, a.key };
		fill(a.data, i, i);
		__atomic_store_n(&q->producer_index, (i + 1) & q->index_mask, __ATOMIC_RELEASE);
		if (!i || q->pad_1[0])
			CHECK(!a.ops->doorbell(a.qp));
		CHECK(side_wc(&a, &wc) && !wc.status && wc.wr_id == i);
		CHECK(side_wc(&b, &wc) && !wc.status && wc.wr_id == 1000 + i && wc.byte_len == i);
		CHECK(!memcmp(a.data, b.data + 4096, i));
		CHECK(q->consumer_index == ((i + 1) & q->index_mask));
	}
	munmap(q, sq.size);
	munmap(cb, cqr.size);
	munmap(rb, rq.size);
	pair_close(&a, &b);
}

/* A ring full of anything, its indices too, is only its owner's trouble. */
static void test_hostile_ring(void)
{
	uint32_t rng = 1;

	for (int round = 0; round < 300; round++) {
		struct ibfs_ring sq, rq;
		uint8_t *map, *rmap;

		pair_open(&a, &b, round % 3 == 2 ? IBV_QPT_UD : round % 3 ? IBV_QPT_UC : IBV_QPT_RC);
		CHECK(!a.ops->qp_ring(a.qp, true, &sq) && !b.ops->qp_ring(b.qp, false, &rq));
		map = mmap(NULL, sq.size, PROT_READ | PROT_WRITE, MAP_SHARED, sq.fd, 0);
		rmap = mmap(NULL, rq.size, PROT_READ | PROT_WRITE, MAP_SHARED, rq.fd, 0);
		CHECK(map != MAP_FAILED && rmap != MAP_FAILED);
		for (int burst = 0; burst < 20; burst++) {
			struct rxe_queue_buf *q = (struct rxe_queue_buf *)map;

			fill(map, sq.size, rng += 77);
			fill(rmap, rq.size, rng + 5);
			/* Something near a request, or its fields would never get far. */
			for (int i = 0; i <= 127; i++) {
				struct rxe_send_wqe *wqe = (void *)(map + 384 + i * 512 % (sq.size - 1024));

				wqe->wr.opcode &= 15;
				wqe->wr.send_flags &= 31;
				wqe->dma.num_sge &= 7;
				wqe->dma.length &= 0x1ff;
				wqe->dma.sge[0].lkey = burst & 1 ? a.key : wqe->dma.sge[0].lkey;
				wqe->dma.sge[0].addr &= 0xffff;
				wqe->dma.sge[0].length &= 0xffff;
			}
			a.ops->doorbell(a.qp);
			q->producer_index = rng;
			for (int i = 0; i < 4; i++)
				tick(0.001);
		}
		munmap(map, sq.size);
		munmap(rmap, rq.size);
		pair_close(&a, &b);
	}
}

/* This process' own time, which the test's clock isn't: in microseconds. */
static double cpu_time(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return 1e6 * (use.ru_utime.tv_sec + use.ru_stime.tv_sec) + use.ru_utime.tv_usec +
	       use.ru_stime.tv_usec;
}

/* Cost of a QP doesn't grow with their number: the last thousand are as the second. */
static void test_many(void)
{
	static struct ibfs_qp *qps[10000];
	double time[10];
	size_t mem[10];

	side_open(&a, "rxe0");
	a.init.cap = (struct ibv_qp_cap){ .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1,
					  .max_recv_sge = 1 };
	for (int i = 0; i < 10000; i++) {
		CHECK(!a.ops->create_qp(a.dev, &a.init, &a.client, &qps[i]));
		if (i % 1000 == 999) {
			mem[i / 1000] = mallinfo2().uordblks;
			time[i / 1000] = cpu_time();
		}
	}
	CHECK(mem[9] - mem[8] <= 1.1 * (mem[1] - mem[0]));
	CHECK(time[9] - time[4] < 4 * (time[5] - time[0]) + 20000);
	for (int i = 0; i < 10000; i++)
		CHECK(!a.ops->destroy_qp(qps[i], &a.client));
	side_close(&a);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "atomics", test_atomics }, { "atomic_write", test_atomic_write }, { "srq", test_srq }, { "xrc", test_xrc },
		{ "mw1", test_mw1 }, { "mw2", test_mw2 }, { "fast_reg", test_fast_reg },
		{ "rereg", test_rereg }, { "sqd", test_sqd }, { "comm_est", test_comm_est },
		{ "apm", test_apm },
		{ "remote", test_remote }, { "ring", test_ring }, { "hostile_ring", test_hostile_ring },
		{ "many", test_many }, { 0 },
	};

	return run_tests(tests, argc, argv);
}
