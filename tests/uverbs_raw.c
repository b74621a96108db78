/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uverbs without libibverbs: answers and errors as the kernel has them.
 * uverbs_raw MOUNTPOINT
 */
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <ibfs/uverbs_rings.h>

#include "uverbs_raw.h"

/* --- errors of headers and pointers --- */

static void test_headers(void)
{
	struct ib_uverbs_query_port port = { .port_num = 1 };
	struct ib_uverbs_alloc_pd_resp pd_resp;
	struct ib_uverbs_query_port_resp resp;
	struct ib_uverbs_alloc_pd pd;
	struct ib_uverbs_cmd_hdr hdr = { 0 };
	struct ib_uverbs_dealloc_pd dealloc;
	struct ib_uverbs_get_context_resp ctx_resp;
	struct ib_uverbs_get_context ctx;
	int fd = open_file("rxe0/uverbs");
	char big[64] = { 0 };

	/* Nothing before the context; no second one. */
	CHECK(CALL(fd, ALLOC_PD, pd, pd_resp) == -EINVAL);
	CHECK(CALL(fd, GET_CONTEXT, ctx, ctx_resp) == 0);
	CHECK(CALL(fd, GET_CONTEXT, ctx, ctx_resp) == -EINVAL);

	CHECK(write(fd, &hdr, 4) < 0 && errno == EINVAL);
	hdr.command = IB_USER_VERBS_CMD_ALLOC_PD;
	hdr.in_words = 2;
	CHECK(write(fd, &hdr, 8) < 0 && errno == ENOSPC);	/* no request behind it */
	hdr.in_words = 1000;
	CHECK(write(fd, &hdr, 8) < 0 && errno == EINVAL);	/* not as long as it says */
	hdr = (struct ib_uverbs_cmd_hdr){ .command = 0x12345, .in_words = 2 };
	CHECK(write(fd, &hdr, 8) < 0 && errno == EINVAL);
	hdr.command = 200;
	CHECK(write(fd, &hdr, 8) < 0 && errno == EOPNOTSUPP);
	hdr.command = 0x80000000u | 99;
	CHECK(write(fd, &hdr, 8) < 0 && errno == EOPNOTSUPP);
	hdr.command = IB_USER_VERBS_EX_CMD_QUERY_DEVICE | 0x80000000u;
	CHECK(write(fd, &hdr, 8) < 0 && errno == EINVAL);
	memcpy(big, &hdr, 8);
	CHECK(write(fd, big, 64) < 0 && errno == EINVAL);

	CHECK(CALL(fd, QUERY_PORT, port, resp) == 0);
	CHECK(resp.lid && resp.state == IBV_PORT_ACTIVE);
	CHECK(command(fd, IB_USER_VERBS_CMD_QUERY_PORT, &port, sizeof(port), 4) == -ENOSPC);
	port.port_num = 2;
	CHECK(CALL(fd, QUERY_PORT, port, resp) == -EINVAL);

	/* An answer that can't be written undoes the command. */
	CHECK(CALL(fd, ALLOC_PD, pd, pd_resp) == 0);
	dealloc.pd_handle = pd_resp.pd_handle;
	CHECK(TELL(fd, DEALLOC_PD, dealloc) == 0);
	pd.response = 8;
	CHECK(command(fd, IB_USER_VERBS_CMD_ALLOC_PD, &pd, sizeof(pd), sizeof(pd_resp)) == -EFAULT);
	CHECK(TELL(fd, DEALLOC_PD, dealloc) == -ENOENT);
	close(fd);
}

static void test_data(void)
{
	struct qp q = { .fd = open_context("dev/infiniband/uverbs0") };

	make_qp(&q, -1);
	CHECK(doorbell(&q) == -EINVAL);		/* not in a state that sends */
	connect_qp(&q);
	memset(q.mem, 0x5a, 100);
	ring_write(&q, (uintptr_t)q.mem + 4096, q.rkey);
	CHECK(doorbell(&q) == 0);
	CHECK(poll_ring(&q) == IBV_WC_SUCCESS);
	CHECK(!memcmp(q.mem, q.mem + 4096, 100));

	/* The memory goes while it is registered: an error completion. */
	munmap(q.mem, 8192);
	ring_write(&q, (uintptr_t)q.mem + 4096, q.rkey);
	CHECK(doorbell(&q) == 0);
	CHECK(poll_ring(&q) > 0);
	close(q.fd);
}

/* Numbers in the rings that no sane program writes: the daemon lives. */
static void test_hostile_rings(void)
{
	static const uint32_t values[] = { 0, 1, 0xffffffff, 0x80000000, 12345 };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct qp q = { .fd = open_context("rxe0/uverbs") };

		make_qp(&q, -1);
		connect_qp(&q);
		memset(q.sq->data, 0xff, q.sq_size - sizeof(*q.sq));
		memset(q.ring, (int)values[i], sizeof(*q.ring));
		q.sq->index_mask = q.rq->index_mask = values[i];
		q.sq->log2_elem_size = values[i];
		q.sq->consumer_index = q.rq->producer_index = values[i];
		q.sq->producer_index = values[i];
		CHECK(doorbell(&q) == 0);
		doorbell(&q);
		close(q.fd);
	}
}

/* --- handles are the opener's own; nothing that is used goes --- */

static void test_handles(void)
{
	struct ib_uverbs_destroy_cq_resp cq_resp;
	struct ib_uverbs_destroy_qp_resp qp_resp;
	struct ib_uverbs_dealloc_pd pd;
	struct ib_uverbs_destroy_cq cq;
	struct ib_uverbs_destroy_qp qp;
	struct ib_uverbs_dereg_mr mr;
	struct qp q = { .fd = open_context("rxe0/uverbs") };
	int other = open_context("rxe0/uverbs");

	make_qp(&q, -1);
	pd.pd_handle = q.pd;
	mr.mr_handle = q.mr;
	cq.cq_handle = q.cq;
	qp.qp_handle = q.qp;
	CHECK(TELL(other, DEALLOC_PD, pd) == -ENOENT);
	CHECK(TELL(other, DEREG_MR, mr) == -ENOENT);
	CHECK(CALL(other, DESTROY_QP, qp, qp_resp) == -ENOENT);
	CHECK(TELL(q.fd, DEALLOC_PD, pd) == -EBUSY);
	CHECK(CALL(q.fd, DESTROY_CQ, cq, cq_resp) == -EBUSY);
	mr.mr_handle = q.qp;			/* another type */
	CHECK(TELL(q.fd, DEREG_MR, mr) == -ENOENT);
	mr.mr_handle = 0xffffffff;
	CHECK(TELL(q.fd, DEREG_MR, mr) == -ENOENT);
	CHECK(CALL(q.fd, DESTROY_QP, qp, qp_resp) == 0);
	CHECK(CALL(q.fd, DESTROY_QP, qp, qp_resp) == -ENOENT);
	CHECK(CALL(q.fd, DESTROY_CQ, cq, cq_resp) == 0);
	mr.mr_handle = q.mr;
	CHECK(TELL(q.fd, DEREG_MR, mr) == 0);
	CHECK(TELL(q.fd, DEALLOC_PD, pd) == 0);
	close(other);
	close(q.fd);
}

/* Two files share a domain by an inode: neither can close it while it has something in it. */
static void test_domains(void)
{
	struct { struct ib_uverbs_create_srq_resp core; struct rxe_create_srq_resp drv; } srq_resp;
	struct ib_uverbs_create_xsrq srq = { .srq_type = IB_UVERBS_SRQT_XRC, .max_wr = 4, .max_sge = 1 };
	struct ib_uverbs_open_xrcd_resp resp;
	struct ib_uverbs_open_xrcd open = { .oflags = O_CREAT };
	struct ib_uverbs_destroy_srq_resp destroy_resp;
	struct ib_uverbs_destroy_srq destroy;
	struct ib_uverbs_close_xrcd shut;
	struct qp q = { .fd = open_context("rxe0/uverbs") };
	int other = open_context("rxe0/uverbs"), inode = memfd_create("domain", MFD_CLOEXEC);

	make_qp(&q, -1);
	open.fd = (uint32_t)inode;
	CHECK(CALL(other, OPEN_XRCD, open, resp) == 0);
	open.oflags = 0;
	CHECK(CALL(q.fd, OPEN_XRCD, open, resp) == 0);
	srq.pd_handle = q.pd;
	srq.cq_handle = q.cq;
	srq.xrcd_handle = shut.xrcd_handle = resp.xrcd_handle;
	CHECK(CALL(q.fd, CREATE_XSRQ, srq, srq_resp) == 0);
	CHECK(TELL(q.fd, CLOSE_XRCD, shut) == -EBUSY);
	close(other);
	destroy.srq_handle = srq_resp.core.srq_handle;
	CHECK(CALL(q.fd, DESTROY_SRQ, destroy, destroy_resp) == 0);
	CHECK(TELL(q.fd, CLOSE_XRCD, shut) == 0);
	close(inode);
	close(q.fd);
}

/* The rings' memory by a socket, for who can't map the file. */
static void test_rings_sent(void)
{
	struct ibfs_uverbs_rings req = { .sock = -1 };
	int fd = open_context("rxe0/uverbs"), pair[2];
	char byte;

	CHECK(command(fd, IBFS_UVERBS_RINGS, &req, sizeof(req), 0) == -EBADF);
	req.sock = fd;
	CHECK(command(fd, IBFS_UVERBS_RINGS, &req, sizeof(req), 0) == -ENOTSOCK);
	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair));
	req.sock = pair[1];
	CHECK(command(fd, IBFS_UVERBS_RINGS, &req, sizeof(req), 0) == 0);
	CHECK(recv(pair[0], &byte, 1, MSG_DONTWAIT) == 1);
	/* One that is full doesn't hold the daemon up. */
	for (int i = 0; i < 10000; i++)
		if (command(fd, IBFS_UVERBS_RINGS, &req, sizeof(req), 0) == -EAGAIN)
			break;
	CHECK(command(fd, IBFS_UVERBS_RINGS, &req, sizeof(req), 0) == -EAGAIN);
	close(pair[0]);
	CHECK(command(fd, IBFS_UVERBS_RINGS, &req, sizeof(req), 0) == -ECONNREFUSED);
	close(pair[1]);
	close(fd);
}

/* A process of another user that has the descriptor: a set-user-ID program, say. */
static void as_other(int fd, int cm, uid_t uid, gid_t gid)
{
	struct { uint32_t cmd; uint16_t in, out; } cm_hdr = { .cmd = 9999 };
	struct ib_uverbs_alloc_pd_resp resp = { .pd_handle = 12345 };
	struct ib_uverbs_alloc_pd req;
	pid_t pid = fork();
	int status = -1;

	if (!pid) {
		bool allowed = getuid() == uid && getgid() == gid;

		CHECK(!setresgid(gid, gid, gid) && !setresuid(uid, uid, uid));
		CHECK(CALL(fd, ALLOC_PD, req, resp) == (allowed ? 0 : -EACCES));
		CHECK(allowed || !resp.pd_handle);
		CHECK(write(cm, &cm_hdr, sizeof(cm_hdr)) < 0 && errno == (allowed ? EINVAL : EACCES));
		_exit(failed);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
}

static void test_users(void)
{
	int fd = open_context("rxe0/uverbs"), cm = open_file("dev/infiniband/rdma_cm");
	struct ib_uverbs_alloc_pd_resp resp;
	struct ib_uverbs_alloc_pd req;

	as_other(fd, cm, 65534, 65534);
	as_other(fd, cm, getuid(), 65534);
	as_other(fd, cm, getuid(), getgid());
	CHECK(CALL(fd, ALLOC_PD, req, resp) == 0);
	close(cm);
	close(fd);
}

static void test_regions(void)
{
	uint8_t *rw = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct qp q = { .fd = open_context("rxe0/uverbs") };
	struct ib_uverbs_reg_mr_resp resp;
	struct ib_uverbs_reg_mr req = { .length = 4096 };

	make_qp(&q, -1);
	req.pd_handle = q.pd;
	req.start = req.hca_va = (uintptr_t)ro;
	CHECK(CALL(q.fd, REG_MR, req, resp) == 0);
	req.access_flags = IBV_ACCESS_LOCAL_WRITE;
	CHECK(CALL(q.fd, REG_MR, req, resp) == -EFAULT);	/* not writable */
	req.start = req.hca_va = 4096;
	CHECK(CALL(q.fd, REG_MR, req, resp) == -EFAULT);	/* not mapped */
	req.start = req.hca_va = (uintptr_t)rw;
	req.access_flags = IBV_ACCESS_REMOTE_WRITE;
	CHECK(CALL(q.fd, REG_MR, req, resp) == -EINVAL);	/* without local writing */
	req.access_flags = IBV_ACCESS_LOCAL_WRITE;
	req.hca_va = (uintptr_t)rw + 1;
	CHECK(CALL(q.fd, REG_MR, req, resp) == -EINVAL);	/* elsewhere in the page */
	req.hca_va = req.start;
	req.length = UINT64_MAX;
	CHECK(CALL(q.fd, REG_MR, req, resp) == -EINVAL);
	req.length = 4096;
	req.pd_handle = q.qp;
	CHECK(CALL(q.fd, REG_MR, req, resp) == -EINVAL);	/* not a PD */
	close(q.fd);
}

/* --- events --- */

static void test_events(void)
{
	struct ib_uverbs_create_comp_channel_resp ch_resp;
	struct ib_uverbs_req_notify_cq notify;
	struct ib_uverbs_comp_event_desc desc;
	struct ib_uverbs_create_comp_channel ch;
	struct ib_uverbs_create_cq bad = { .cqe = 4 };
	struct { struct ib_uverbs_create_cq_resp core; struct rxe_create_cq_resp drv; } cq_resp;
	struct qp q = { .fd = open_context("rxe0/uverbs") };
	struct pollfd wait = { .events = POLLIN };
	int other = open_context("rxe0/uverbs");

	CHECK(CALL(q.fd, CREATE_COMP_CHANNEL, ch, ch_resp) == 0);
	wait.fd = open_event(ch_resp.fd, O_NONBLOCK);
	CHECK(wait.fd >= 0);
	CHECK(open_event(ch_resp.fd, 0) < 0 && errno == EBUSY);	/* once */
	CHECK(read(wait.fd, &desc, sizeof(desc)) < 0 && errno == EAGAIN);
	bad.comp_channel = wait.fd;
	CHECK(CALL(other, CREATE_CQ, bad, cq_resp) == -EBADF);		/* another context's */
	bad.comp_channel = 0;
	CHECK(CALL(q.fd, CREATE_CQ, bad, cq_resp) == -EBADF);
	bad.comp_channel = 9999;
	CHECK(CALL(q.fd, CREATE_CQ, bad, cq_resp) == -EBADF);

	make_qp(&q, wait.fd);
	connect_qp(&q);
	notify = (struct ib_uverbs_req_notify_cq){ .cq_handle = q.cq };
	CHECK(TELL(q.fd, REQ_NOTIFY_CQ, notify) == 0);
	CHECK(poll(&wait, 1, 0) == 0);
	ring_write(&q, (uintptr_t)q.mem + 4096, q.rkey);
	CHECK(doorbell(&q) == 0);
	CHECK(poll(&wait, 1, 5000) == 1 && wait.revents & POLLIN);
	CHECK(read(wait.fd, &desc, 4) < 0 && errno == EINVAL);
	CHECK(read(wait.fd, &desc, sizeof(desc)) == sizeof(desc) && desc.cq_handle == 77);
	CHECK(poll_ring(&q) == IBV_WC_SUCCESS);
	close(q.fd);
	CHECK(read(wait.fd, &desc, sizeof(desc)) < 0 && errno == EIO);
	close(wait.fd);
	close(other);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	mnt = argv[1];
	test_headers();
	test_handles();
	test_domains();
	test_rings_sent();
	test_users();
	test_regions();
	test_data();
	test_events();
	test_hostile_rings();
	return failed;
}
