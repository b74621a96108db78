/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ends badly without a peer's fault: queues that break, a device that
 * goes, an engine without memory; and memory that is shared with a client.
 */
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "verbs_test.h"

#include <rdma/rdma_user_rxe.h>

static struct side a, b;

/* A request that can't be right in a SRQ's ring: the SRQ is in error, told once, and gives none. */
static void test_srq_err(void)
{
	struct ibfs_srq_init init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct rxe_queue_buf *buf;
	struct rxe_recv_wqe *recv;
	struct ibfs_ring ring;

	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	CHECK(!b.ops->create_srq(b.pd, &init, &b.client, &b.srq));
	b.init.srq = b.srq;
	side_qp(&a);
	side_qp(&b);
	connect_sides(&a, &b);
	CHECK(!b.ops->srq_ring(b.srq, &ring));
	buf = mmap(NULL, ring.size, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, ring.off);
	CHECK(buf != MAP_FAILED);
	recv = (struct rxe_recv_wqe *)buf->data;
	recv->dma.num_sge = 2;
	__atomic_store_n(&buf->producer_index, 1, __ATOMIC_RELEASE);
	CHECK(!side_send(&a, IBFS_WR_SEND, 0, 8, 0, 0));
	CHECK(expect_wc(&a, IBV_WC_RNR_RETRY_EXC_ERR, IBFS_WC_SEND) && no_wc(&b));
	CHECK(b.events[IBV_EVENT_SRQ_ERR] == 1);
	CHECK(side_recv(&b, 0, 8) == -EINVAL);
	munmap(buf, ring.size);
	pair_close(&a, &b);
}

/* No room for a receive's completion: the CQ and the QP tell, each once. */
static void test_recv_overrun(void)
{
	struct ibfs_cq *small;
	struct ibfs_cq_attr attr;

	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	CHECK(!b.ops->create_cq(b.dev, 3, &b.client, &small));
	b.init.recv_cq = small;
	side_qp(&a);
	side_qp(&b);
	connect_sides(&a, &b);
	for (int i = 0; i < 5; i++)
		CHECK(!side_recv(&b, 0, 8) && !side_send(&a, IBFS_WR_SEND, 0, 8, 0, 0));
	pass(0.01);
	b.ops->query_cq(small, &attr);
	CHECK(attr.error && b.events[IBV_EVENT_CQ_ERR] == 1 && b.events[IBV_EVENT_QP_FATAL] == 1);
	CHECK(side_state(&b) == IBV_QPS_ERR && b.ops->peek_cq(small, 9) == 3);
	CHECK(!b.ops->destroy_qp(b.qp, &b.client) && !b.ops->destroy_cq(small));
	b.qp = NULL;
	pair_close(&a, &b);
}

/* What a client of a device that goes gets to see, in order. */
static struct {
	struct verbs_client client;
	struct ibfs_cq *cq;
	const struct verbs_ops *ops;
	unsigned int num;
	struct ibfs_wc wc[8];
} last;

static void last_arrived(struct verbs_client *client)
{
	(void)client;
	if (last.num < 8)
		last.num += last.ops->poll_cq(last.cq, 1, &last.wc[last.num]);
}

/* Work that is queued when its device goes ends with it, both queues, in order. */
static void test_lost(void)
{
	memset(&last, 0, sizeof(last));
	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	last.client.arrived = last_arrived;
	last.ops = b.ops;
	CHECK(!b.ops->create_cq(b.dev, 8, &last.client, &last.cq));
	b.init.send_cq = b.init.recv_cq = last.cq;
	side_qp(&a);
	side_qp(&b);
	connect_sides(&a, &b);
	CHECK(!side_recv(&b, 0, 8) && !side_recv(&b, 0, 8));
	link_set_down(side_port(&b)->link, true);
	CHECK(!side_send(&b, IBFS_WR_SEND, 0, 8, 0, 0) && !side_send(&b, IBFS_WR_SEND, 0, 8, 0, 0));
	ev_run(t.ibfs.loop, EVRUN_NOWAIT);
	CHECK(!last.num);
	b.dev->ops->remove(b.dev);
	CHECK(last.num == 4);
	for (unsigned int i = 0; i < 4; i++)
		CHECK(last.wc[i].status == IBV_WC_FATAL_ERR &&
		      last.wc[i].wr_id == (i < 2 ? i + 3 : i - 1));
	memory_put(b.mem);
	side_close(&a);
}

/* A MR of pages in so many places that a message of it has to be copied. */
static struct ibfs_mr *scattered(struct side *s, uint32_t *key, uint32_t num)
{
	struct ibfs_mr_init init = { .mem = s->mem, .length = SIDE_MEM,
				     .access = IBV_ACCESS_LOCAL_WRITE, .max_pages = num };
	struct ibfs_wr reg = { .opcode = IBFS_WR_FAST_REG_MR, .send_flags = IBV_SEND_SIGNALED };
	uint64_t pages[64];
	struct ibfs_mr *mr;

	for (uint32_t i = 0; i < num; i++)
		pages[i] = 8192 * i;
	CHECK(!s->ops->reg_mr(s->pd, &init, &mr));
	reg.reg.mr_lkey = *key = reg.reg.rkey = mr_key(s, mr);
	reg.reg.length = 4096 * num;
	reg.reg.pages = pages;
	reg.reg.num_pages = num;
	reg.reg.page_shift = 12;
	reg.reg.access = IBV_ACCESS_LOCAL_WRITE;
	CHECK(!s->ops->post_send(s->qp, &reg) && expect_wc(s, IBV_WC_SUCCESS, -1));
	return mr;
}

/* No memory for that copy: a general error, which isn't the request's fault. */
static void test_no_memory(void)
{
	const struct rlimit none = { 1 << 20, RLIM_INFINITY };
	struct rlimit before;
	struct ibv_sge sge;
	struct ibfs_wr wr;
	struct ibfs_mr *mr;
	uint32_t key;

	pair_open(&a, &b, IBV_QPT_RC);
	mr = scattered(&a, &key, 64);
	wr = wr_of(&a, IBFS_WR_RDMA_WRITE, &sge, 0, 64 * 4096);
	sge.lkey = key;
	wr.rdma.rkey = b.key;
	CHECK(!a.ops->post_send(a.qp, &wr) && expect_wc(&a, IBV_WC_SUCCESS, -1));
	CHECK(!a.ops->post_send(a.qp, &wr));
	malloc_trim(0);
	CHECK(!getrlimit(RLIMIT_AS, &before) && !setrlimit(RLIMIT_AS, &none));
	CHECK(expect_wc(&a, IBV_WC_GENERAL_ERR, IBFS_WC_RDMA_WRITE));
	CHECK(!setrlimit(RLIMIT_AS, &before));
	CHECK(side_state(&a) == IBV_QPS_ERR && !a.ops->dereg_mr(mr));
	pair_close(&a, &b);
}

static int shared_file(size_t size, int seals)
{
	int fd = memfd_create("test", MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && !ftruncate(fd, size));
	CHECK(!seals || !fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

static void refused(int fd, uint64_t off, uint64_t size, int err)
{
	errno = 0;
	CHECK(!memory_alias(fd, off, size) && errno == err);
}

/* Memory that a client and the engine both map: what one writes the other has. */
static void test_aliased(void)
{
	int open_fd = shared_file(SIDE_MEM, 0), fd = shared_file(SIDE_MEM, F_SEAL_SHRINK);
	uint8_t *mine = mmap(NULL, SIDE_MEM, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct memory *mem;

	refused(open_fd, 0, 4096, EPERM);
	refused(STDIN_FILENO, 0, 4096, EPERM);
	refused(fd, 0, 0, EINVAL);
	refused(fd, 1, 4096, EINVAL);
	refused(fd, 4096, SIDE_MEM, EINVAL);
	refused(fd, 1ULL << 60, 4096, EINVAL);
	pair_open(&a, &b, IBV_QPT_RC);
	mem = memory_alias(fd, 8192, SIDE_MEM - 8192);
	CHECK(mem && mem->kind == MEMORY_ALIASED && mine != MAP_FAILED);
	close(fd);
	CHECK(!a.ops->dereg_mr(a.mr));
	memory_put(a.mem);
	a.mem = mem;
	a.mr = side_reg(&a, 4096, 400000, 0, ALL_ACCESS);
	a.key = mr_key(&a, a.mr);
	/* Its offset 0 is the file's 8192 + 4096. */
	fill(mine + 12288, 300000, 1);
	CHECK(!side_send(&a, IBFS_WR_RDMA_WRITE, 0, 300000, 0, b.key));
	CHECK(expect_wc(&a, IBV_WC_SUCCESS, -1) && !memcmp(mine + 12288, b.data, 300000));
	fill(b.data, 300000, 2);
	CHECK(!side_send(&b, IBFS_WR_RDMA_WRITE, 0, 300000, 7, a.key));
	CHECK(expect_wc(&b, IBV_WC_SUCCESS, -1) && !memcmp(mine + 12295, b.data, 300000));
	CHECK(!side_send(&b, IBFS_WR_RDMA_READ, 400000, 1000, 0, a.key));
	CHECK(expect_wc(&b, IBV_WC_SUCCESS, -1) && !memcmp(mine + 12288, b.data + 400000, 1000));
	CHECK(!side_send(&b, IBFS_WR_RDMA_WRITE, 0, 8, 399993, a.key));
	CHECK(expect_wc(&b, IBV_WC_REM_ACCESS_ERR, -1));
	munmap(mine, SIDE_MEM);
	close(open_fd);
	pair_close(&a, &b);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "srq_err", test_srq_err }, { "recv_overrun", test_recv_overrun },
		{ "lost", test_lost }, { "no_memory", test_no_memory },
		{ "aliased", test_aliased }, { 0 },
	};

	return run_tests(tests, argc, argv);
}
