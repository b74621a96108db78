/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA_VERBS_IOCTL without libibverbs: calls written straight from
 * <rdma/rdma_user_ioctl_cmds.h> and <rdma/ib_user_ioctl_cmds.h>, their errors as
 * the kernel's uverbs_ioctl.c has them. uverbs_ioctl MOUNTPOINT
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/rdma_user_rxe.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

static const char *mnt;

enum { ATTRS = 20 };

struct call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[ATTRS];
};

static struct call call_of(uint16_t object, uint16_t method)
{
	struct call call = { 0 };

	call.hdr.object_id = object;
	call.hdr.method_id = method;
	call.hdr.driver_id = RDMA_DRIVER_RXE;
	return call;
}

static struct ib_uverbs_attr *add(struct call *call, uint16_t id, uint16_t len, uint64_t data)
{
	struct ib_uverbs_attr *attr = &call->attrs[call->hdr.num_attrs++];

	*attr = (struct ib_uverbs_attr){
		.attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data,
	};
	return attr;
}

#define ADD_PTR(call, id, var) add(call, id, sizeof(var), (uintptr_t)&(var))

static int run(int fd, struct call *call)
{
	call->hdr.length = (uint16_t)(sizeof(call->hdr) +
				      call->hdr.num_attrs * sizeof(call->attrs[0]));
	return ioctl(fd, RDMA_VERBS_IOCTL, call) ? -errno : 0;
}

static bool valid(const struct ib_uverbs_attr *attr)
{
	return attr->flags & UVERBS_ATTR_F_VALID_OUTPUT;
}

static int open_file(const char *name, int flags)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", mnt, name);
	return open(path, flags | O_CLOEXEC);
}

static int open_event(uint64_t id)
{
	char name[60];

	snprintf(name, sizeof(name), "dev/infiniband/ev/%llu", (unsigned long long)id);
	return open_file(name, O_RDONLY | O_NONBLOCK);
}

static int get_context(int fd)
{
	struct call call = call_of(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	uint32_t vectors = 0;
	uint64_t support = 0;

	ADD_PTR(&call, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, vectors);
	ADD_PTR(&call, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, support);
	if (run(fd, &call))
		return -errno;
	CHECK(vectors == 1 && support == IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS);
	CHECK(valid(&call.attrs[0]) && valid(&call.attrs[1]));
	return 0;
}

static int open_context(void)
{
	int fd = open_file("rxe0/uverbs", O_RDWR);

	CHECK(fd >= 0 && get_context(fd) == 0);
	return fd;
}

/* A write() command by INVOKE_WRITE. */
static int invoke(int fd, uint32_t cmd, void *req, size_t req_size, void *resp, size_t resp_size)
{
	struct call call = call_of(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	struct ib_uverbs_attr *out = NULL;
	uint64_t word = 0;
	int ret;

	add(&call, UVERBS_ATTR_WRITE_CMD, 8, cmd);
	if (req_size > sizeof(word)) {
		add(&call, UVERBS_ATTR_CORE_IN, (uint16_t)req_size, (uintptr_t)req);
	} else if (req_size) {
		memcpy(&word, req, req_size);
		add(&call, UVERBS_ATTR_CORE_IN, (uint16_t)req_size, word);
	}
	if (resp)
		out = add(&call, UVERBS_ATTR_CORE_OUT, (uint16_t)resp_size, (uintptr_t)resp);
	ret = run(fd, &call);
	if (!ret && resp)
		CHECK(valid(out));
	return ret;
}

#define INVOKE(fd, cmd, req, resp) \
	invoke(fd, IB_USER_VERBS_CMD_##cmd, &(req), sizeof(req), &(resp), sizeof(resp))

static uint32_t alloc_pd(int fd)
{
	struct ib_uverbs_alloc_pd_resp resp = { 0 };
	struct ib_uverbs_alloc_pd req = { 0 };

	CHECK(INVOKE(fd, ALLOC_PD, req, resp) == 0);
	return resp.pd_handle;
}

static int destroy(int fd, uint16_t object, uint16_t method, uint64_t handle, void *resp,
		   uint16_t size)
{
	struct call call = call_of(object, method);

	add(&call, 0, 0, handle);
	if (resp)
		add(&call, 1, size, (uintptr_t)resp);
	return run(fd, &call);
}

static int dealloc_pd(int fd, uint64_t pd)
{
	return destroy(fd, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, pd, NULL, 0);
}

/* --- headers and attributes --- */

static void test_headers(void)
{
	struct call call = call_of(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	int fd = open_file("rxe0/uverbs", O_RDWR);

	CHECK(fd >= 0);
	CHECK(ioctl(fd, TIOCGWINSZ, &call) < 0 && errno == ENOTTY);
	CHECK(ioctl(fd, _IOWR(RDMA_IOCTL_MAGIC, 2, struct ib_uverbs_ioctl_hdr), &call) < 0 &&
	      errno == ENOTTY);
	CHECK(ioctl(fd, RDMA_VERBS_IOCTL, 8) < 0 && errno == EFAULT);

	call.hdr.driver_id = RDMA_DRIVER_MLX5;
	CHECK(run(fd, &call) == -EINVAL);
	call.hdr.driver_id = RDMA_DRIVER_RXE;
	call.hdr.reserved1 = 1;
	CHECK(run(fd, &call) == -EPROTONOSUPPORT);
	call.hdr.reserved1 = 0;
	call.hdr.reserved2 = 1;
	CHECK(run(fd, &call) == -EPROTONOSUPPORT);
	call.hdr.reserved2 = 0;
	call.hdr.length = 25;
	CHECK(ioctl(fd, RDMA_VERBS_IOCTL, &call) < 0 && errno == EINVAL);
	call.hdr.num_attrs = 0xffff;
	call.hdr.length = 8;
	CHECK(ioctl(fd, RDMA_VERBS_IOCTL, &call) < 0 && errno == EINVAL);
	call.hdr.num_attrs = 255;
	call.hdr.length = 24 + 255 * 16;
	CHECK(ioctl(fd, RDMA_VERBS_IOCTL, &call) < 0 && errno == EINVAL);

	/* What a software HCA hasn't is not there; the same for what nobody has. */
	call = call_of(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
	CHECK(run(fd, &call) == -EPROTONOSUPPORT);
	call = call_of(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE);
	CHECK(run(fd, &call) == -EPROTONOSUPPORT);
	call = call_of(0x1000, 0x1000);
	CHECK(run(fd, &call) == -EPROTONOSUPPORT);
	call = call_of(UVERBS_OBJECT_DEVICE, 99);
	CHECK(run(fd, &call) == -EPROTONOSUPPORT);
	close(fd);
}

static void test_attrs(void)
{
	struct call call = call_of(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
	struct ib_uverbs_query_port_resp_ex resp;
	struct { struct ib_uverbs_query_port_resp_ex known; uint8_t more[16]; } longer;
	int fd = open_file("rxe0/uverbs", O_RDWR);
	struct ib_uverbs_attr *attr;

	add(&call, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, 1);
	attr = ADD_PTR(&call, UVERBS_ATTR_QUERY_PORT_RESP, resp);
	CHECK(run(fd, &call) == -EINVAL);		/* no context */
	CHECK(get_context(fd) == 0);
	CHECK(get_context(fd) == -EINVAL);		/* a second one */
	memset(&resp, 0xff, sizeof(resp));
	CHECK(run(fd, &call) == 0 && valid(attr));
	CHECK(resp.legacy_resp.lid && resp.legacy_resp.state == IBV_PORT_ACTIVE);

	attr->len -= 1;
	CHECK(run(fd, &call) == -EINVAL);
	/* What later versions may know is cleared. */
	memset(&longer, 0xff, sizeof(longer));
	attr->len = sizeof(longer);
	attr->data = (uintptr_t)&longer;
	CHECK(run(fd, &call) == 0 && longer.known.legacy_resp.lid && !longer.more[0] && !longer.more[15]);
	attr->attr_data.reserved = 1;
	CHECK(run(fd, &call) == -EINVAL);
	attr->attr_data.reserved = 0;
	attr->data = 8;
	CHECK(run(fd, &call) == -EFAULT);
	attr->data = (uintptr_t)&longer;
	call.attrs[0].data = 2;
	CHECK(run(fd, &call) == -EINVAL);		/* no such port */
	call.attrs[0].data = 1;
	call.attrs[0].len = 4;
	CHECK(run(fd, &call) == -EINVAL);
	call.attrs[0].len = 8;

	/* Unknown ones matter when their sender says so; none may come twice, or be missing. */
	add(&call, 77, 0, 0)->flags = 0;
	CHECK(run(fd, &call) == 0);
	call.attrs[2].flags = UVERBS_ATTR_F_MANDATORY;
	CHECK(run(fd, &call) == -EPROTONOSUPPORT);
	call.attrs[2] = call.attrs[0];
	CHECK(run(fd, &call) == -EINVAL);
	call.hdr.num_attrs = 1;
	CHECK(run(fd, &call) == -EINVAL);
	close(fd);
}

/* --- write() commands inside --- */

static void test_invoke(void)
{
	struct ib_uverbs_query_device_resp dev = { 0 };
	struct ib_uverbs_ex_query_device_resp ex_dev = { 0 };
	struct ib_uverbs_ex_query_device ex = { 0 };
	struct ib_uverbs_query_device query = { 0 };
	struct ib_uverbs_alloc_pd_resp pd_resp;
	struct ib_uverbs_alloc_pd pd = { 0 };
	int fd = open_file("rxe0/uverbs", O_RDWR);
	uint32_t handle;

	/* libibverbs' question whether this is there at all. */
	CHECK(invoke(fd, IB_USER_VERBS_CMD_QUERY_DEVICE, NULL, 0, NULL, 0) == -ENOSPC);
	CHECK(INVOKE(fd, ALLOC_PD, pd, pd_resp) == -EINVAL);
	CHECK(get_context(fd) == 0);
	CHECK(INVOKE(fd, QUERY_DEVICE, query, dev) == 0 && dev.phys_port_cnt == 1);
	CHECK(invoke(fd, IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE, &ex,
		     sizeof(ex), &ex_dev, sizeof(ex_dev)) == 0);
	CHECK(ex_dev.response_length == sizeof(ex_dev) && ex_dev.base.max_qp == dev.max_qp);
	CHECK(invoke(fd, 99, &query, sizeof(query), &dev, sizeof(dev)) == -EOPNOTSUPP);
	CHECK(invoke(fd, 0x100, &query, sizeof(query), &dev, sizeof(dev)) == -EINVAL);
	CHECK(invoke(fd, IB_USER_VERBS_CMD_QUERY_DEVICE, &query, 4, &dev, sizeof(dev)) == -ENOSPC);
	CHECK(invoke(fd, IB_USER_VERBS_CMD_QUERY_DEVICE, &query, sizeof(query), &dev, 8) == -ENOSPC);

	handle = alloc_pd(fd);
	CHECK(dealloc_pd(fd, handle) == 0);
	CHECK(dealloc_pd(fd, handle) == -ENOENT);
	CHECK(dealloc_pd(fd, UINT64_MAX) == -EINVAL);
	CHECK(dealloc_pd(fd, 1ULL << 40) == -ENOENT);
	/* What its maker isn't told of doesn't exist. */
	CHECK(invoke(fd, IB_USER_VERBS_CMD_ALLOC_PD, &pd, sizeof(pd), (void *)8, sizeof(pd_resp)) ==
	      -EFAULT);
	CHECK(dealloc_pd(fd, handle) == -ENOENT);
	CHECK(invoke(fd, IB_USER_VERBS_CMD_ALLOC_PD, (void *)8, 16, &pd_resp, sizeof(pd_resp)) ==
	      -EFAULT);
	close(fd);
}

/* --- objects --- */

struct objects {
	int fd, async;
	uint32_t pd, cq, qp, qpn;
	struct rxe_create_cq_resp cq_driver;
	struct rxe_create_qp_resp qp_driver;
};

static int make_async(int fd)
{
	struct call call = call_of(UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC);

	add(&call, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0, 0);
	CHECK(run(fd, &call) == 0);
	return open_event(call.attrs[0].data);
}

static int make_channel(int fd)
{
	struct ib_uverbs_create_comp_channel_resp resp = { 0 };
	struct ib_uverbs_create_comp_channel req = { 0 };

	CHECK(INVOKE(fd, CREATE_COMP_CHANNEL, req, resp) == 0);
	return open_event(resp.fd);
}

static int make_cq(struct objects *o, int channel, int async, uint32_t vector, uint32_t flags)
{
	struct call call = call_of(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
	uint32_t cqe = 0;
	int ret;

	add(&call, UVERBS_ATTR_CREATE_CQ_HANDLE, 0, 0);
	add(&call, UVERBS_ATTR_CREATE_CQ_CQE, 4, 10);
	add(&call, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, 77);
	add(&call, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, vector);
	ADD_PTR(&call, UVERBS_ATTR_CREATE_CQ_RESP_CQE, cqe);
	ADD_PTR(&call, UVERBS_ATTR_UHW_OUT, o->cq_driver);
	if (channel != -1)
		add(&call, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, 0, (uint64_t)(int64_t)channel);
	if (async != -1)
		add(&call, UVERBS_ATTR_CREATE_CQ_EVENT_FD, 0, (uint64_t)(int64_t)async);
	if (flags)
		add(&call, UVERBS_ATTR_CREATE_CQ_FLAGS, 4, flags);
	ret = run(o->fd, &call);
	o->cq = (uint32_t)call.attrs[0].data;
	if (!ret)
		CHECK(cqe >= 10 && valid(&call.attrs[5]) && o->cq_driver.mi.size);
	return ret;
}

static int make_qp(struct objects *o, uint64_t pd, uint32_t type)
{
	struct call call = call_of(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	struct ib_uverbs_qp_cap cap = {
		.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1,
	}, got = { 0 };
	int ret;

	add(&call, UVERBS_ATTR_CREATE_QP_HANDLE, 0, 0);
	add(&call, UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0, pd);
	add(&call, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, 0, o->cq);
	add(&call, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, 0, o->cq);
	add(&call, UVERBS_ATTR_CREATE_QP_TYPE, 8, type);
	add(&call, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, 99);
	add(&call, UVERBS_ATTR_CREATE_QP_EVENT_FD, 0, (uint64_t)o->async);
	ADD_PTR(&call, UVERBS_ATTR_CREATE_QP_CAP, cap);
	ADD_PTR(&call, UVERBS_ATTR_CREATE_QP_RESP_CAP, got);
	ADD_PTR(&call, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, o->qpn);
	ADD_PTR(&call, UVERBS_ATTR_UHW_OUT, o->qp_driver);
	ret = run(o->fd, &call);
	o->qp = (uint32_t)call.attrs[0].data;
	if (!ret)
		CHECK(got.max_send_wr >= 4 && o->qpn && o->qp_driver.sq_mi.size);
	return ret;
}

static void test_objects(void)
{
	struct objects o = { .fd = open_context() }, other = { .fd = open_context() };
	struct ib_uverbs_destroy_cq_resp cq_resp;
	struct ib_uverbs_destroy_qp_resp qp_resp;
	int channel = make_channel(o.fd);
	void *ring;

	o.async = make_async(o.fd);
	CHECK(o.async >= 0 && channel >= 0);
	o.pd = alloc_pd(o.fd);
	CHECK(make_cq(&o, channel, o.async, 1, 0) == -EINVAL);
	CHECK(make_cq(&o, channel, o.async, 0, 0x80) == -EINVAL);
	CHECK(make_cq(&o, channel, o.async, 0, IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION) == -EOPNOTSUPP);
	CHECK(make_cq(&o, 0, o.async, 0, 0) == -EBADF);
	CHECK(make_cq(&o, o.async, o.async, 0, 0) == -EBADF);	/* not a channel */
	CHECK(make_cq(&o, channel, channel, 0, 0) == -EBADF);
	CHECK(make_cq(&other, channel, -1, 0, 0) == -EBADF);	/* another context's */
	CHECK(make_cq(&o, channel, o.async, 0, 0) == 0);
	ring = mmap(NULL, o.cq_driver.mi.size, PROT_READ | PROT_WRITE, MAP_SHARED, o.fd,
		    (off_t)o.cq_driver.mi.offset);
	CHECK(ring != MAP_FAILED && ((struct rxe_queue_buf *)ring)->index_mask >= 10);

	CHECK(make_qp(&o, o.cq, IB_UVERBS_QPT_RC) == -EINVAL);	/* not a PD */
	CHECK(make_qp(&o, 1000, IB_UVERBS_QPT_RC) == -ENOENT);
	CHECK(make_qp(&o, o.pd, 77) == -EINVAL);
	CHECK(make_qp(&o, o.pd, IB_UVERBS_QPT_XRC_TGT) == -EINVAL);
	CHECK(make_qp(&o, o.pd, IB_UVERBS_QPT_RC) == 0);
	CHECK(dealloc_pd(o.fd, o.pd) == -EBUSY);
	CHECK(destroy(o.fd, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, o.cq, &cq_resp, 8) == -EBUSY);
	CHECK(destroy(o.fd, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, o.cq, &qp_resp, 4) == -EINVAL);
	CHECK(destroy(o.fd, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, o.qp, &qp_resp, 8) == -EINVAL);
	CHECK(destroy(other.fd, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, o.qp, &qp_resp, 4) == -ENOENT);
	CHECK(destroy(o.fd, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, o.qp, &qp_resp, 4) == 0);
	CHECK(!qp_resp.events_reported);
	CHECK(destroy(o.fd, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, o.cq, &cq_resp, 8) == 0);
	CHECK(dealloc_pd(o.fd, o.pd) == 0);
	munmap(ring, o.cq_driver.mi.size);
	close(o.async);
	close(channel);
	close(other.fd);
	close(o.fd);
}

static void test_srq(void)
{
	struct call call = call_of(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
	struct rxe_create_srq_resp driver = { 0 };
	struct ib_uverbs_destroy_srq_resp resp;
	uint32_t wr = 0, sge = 0;
	int fd = open_context();

	add(&call, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0, 0);
	add(&call, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, 0, alloc_pd(fd));
	add(&call, UVERBS_ATTR_CREATE_SRQ_TYPE, 8, IB_UVERBS_SRQT_BASIC);
	add(&call, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 8, 5);
	add(&call, UVERBS_ATTR_CREATE_SRQ_MAX_WR, 4, 8);
	add(&call, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 4, 2);
	add(&call, UVERBS_ATTR_CREATE_SRQ_LIMIT, 4, 0);
	ADD_PTR(&call, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, wr);
	ADD_PTR(&call, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, sge);
	ADD_PTR(&call, UVERBS_ATTR_UHW_OUT, driver);
	call.attrs[2].data = IB_UVERBS_SRQT_XRC;
	CHECK(run(fd, &call) == -ENOENT);	/* neither domain nor CQ */
	call.attrs[2].data = 9;
	CHECK(run(fd, &call) == -EINVAL);
	call.attrs[2].data = IB_UVERBS_SRQT_BASIC;
	CHECK(run(fd, &call) == 0 && wr >= 8 && sge >= 2 && driver.mi.size);
	CHECK(destroy(fd, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, call.attrs[0].data, &resp,
		      sizeof(resp)) == 0);
	close(fd);
}

/* --- memory regions --- */

/* Numbers that Debian's headers don't have yet. */
enum { REG_MR = 5 };
enum { R_HANDLE, R_PD, R_DMAH, R_IOVA, R_ADDR, R_LENGTH, R_ACCESS, R_FD, R_OFFSET, R_LKEY, R_RKEY };

static int advise(int fd, uint32_t pd, uint64_t advice, const struct ib_uverbs_sge *sge, size_t num)
{
	struct call call = call_of(UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR);

	add(&call, UVERBS_ATTR_ADVISE_MR_PD_HANDLE, 0, pd);
	add(&call, UVERBS_ATTR_ADVISE_MR_ADVICE, 8, advice);
	add(&call, UVERBS_ATTR_ADVISE_MR_FLAGS, 4, IB_UVERBS_ADVISE_MR_FLAG_FLUSH);
	add(&call, UVERBS_ATTR_ADVISE_MR_SGE_LIST, (uint16_t)(num * sizeof(*sge)), (uintptr_t)sge);
	return run(fd, &call);
}

static void test_regions(void)
{
	struct call call = call_of(UVERBS_OBJECT_MR, REG_MR), query;
	uint8_t *mem = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t lkey = 0, rkey = 0, got_lkey = 0, got_rkey = 0;
	uint64_t length = 0, iova = 0;
	struct ib_uverbs_sge sge;
	int fd = open_context();
	uint32_t pd = alloc_pd(fd);

	add(&call, R_HANDLE, 0, 0);
	add(&call, R_PD, 0, pd);
	add(&call, R_IOVA, 8, 0x10000);
	add(&call, R_LENGTH, 8, 8192);
	add(&call, R_ACCESS, 4, 0);
	ADD_PTR(&call, R_LKEY, lkey);
	ADD_PTR(&call, R_RKEY, rkey);
	CHECK(run(fd, &call) == -EINVAL);	/* of what? */
	add(&call, R_ADDR, 8, (uintptr_t)mem);
	CHECK(run(fd, &call) == 0 && lkey && valid(&call.attrs[5]));

	query = call_of(UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR);
	add(&query, UVERBS_ATTR_QUERY_MR_HANDLE, 0, call.attrs[0].data);
	ADD_PTR(&query, UVERBS_ATTR_QUERY_MR_RESP_LKEY, got_lkey);
	ADD_PTR(&query, UVERBS_ATTR_QUERY_MR_RESP_RKEY, got_rkey);
	ADD_PTR(&query, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, length);
	ADD_PTR(&query, UVERBS_ATTR_QUERY_MR_RESP_IOVA, iova);
	CHECK(run(fd, &query) == 0);
	CHECK(got_lkey == lkey && got_rkey == rkey && length == 8192 && iova == 0x10000);

	sge = (struct ib_uverbs_sge){ .addr = 0x10000, .length = 8192, .lkey = lkey };
	CHECK(advise(fd, pd, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH, &sge, 1) == 0);
	CHECK(advise(fd, pd, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE, &sge, 1) == -EPERM);
	CHECK(advise(fd, pd, 9, &sge, 1) == -EOPNOTSUPP);
	CHECK(advise(fd, alloc_pd(fd), IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH, &sge, 1) == -EINVAL);
	sge.length++;
	CHECK(advise(fd, pd, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH, &sge, 1) == -EINVAL);
	sge.lkey ^= 0x100;
	CHECK(advise(fd, pd, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH, &sge, 1) == -EINVAL);

	CHECK(destroy(fd, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, call.attrs[0].data, NULL, 0) == 0);
	call.attrs[7].data = 4096;
	CHECK(run(fd, &call) == -EFAULT);	/* nothing is mapped there */
	munmap(mem, 8192);
	close(fd);
}

/* --- questions --- */

static void test_gids(void)
{
	struct call call = call_of(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY);
	struct ib_uverbs_gid_entry entry = { 0 }, table[64] = { 0 };
	uint64_t num = 0;
	int fd = open_context();

	add(&call, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 8, 1);
	add(&call, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 8, 0);
	add(&call, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 4, 0);
	ADD_PTR(&call, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, entry);
	CHECK(run(fd, &call) == 0);
	CHECK(entry.gid[1] && entry.port_num == 1 && entry.gid_type == IB_UVERBS_GID_TYPE_IB);
	call.attrs[1].data = 1000;
	CHECK(run(fd, &call) == -EINVAL);
	call.attrs[1].data = 0;
	call.attrs[2].data = 1;
	CHECK(run(fd, &call) == -EINVAL);

	call = call_of(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE);
	add(&call, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, 8, sizeof(table[0]));
	ADD_PTR(&call, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, table);
	ADD_PTR(&call, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, num);
	CHECK(run(fd, &call) == 0 && num >= 1);
	CHECK(!memcmp(&table[0], &entry, sizeof(entry)));
	call.attrs[0].data = 33;
	CHECK(run(fd, &call) == -EINVAL);
	call.attrs[0].data = 0;
	CHECK(run(fd, &call) == -EINVAL);
	close(fd);
}

static void test_handles(void)
{
	struct call call = call_of(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);
	uint32_t list[4] = { 0 }, total = 0;
	int fd = open_context();
	uint32_t first = alloc_pd(fd), second = alloc_pd(fd);

	add(&call, UVERBS_ATTR_INFO_OBJECT_ID, 8, UVERBS_OBJECT_PD);
	ADD_PTR(&call, UVERBS_ATTR_INFO_TOTAL_HANDLES, total);
	ADD_PTR(&call, UVERBS_ATTR_INFO_HANDLES_LIST, list);
	CHECK(run(fd, &call) == 0 && total == 2 && list[0] == first && list[1] == second);
	call.attrs[0].data = UVERBS_OBJECT_CQ;
	CHECK(run(fd, &call) == 0 && total == 0);
	call.attrs[0].data = 500;
	CHECK(run(fd, &call) == -EINVAL);
	call.attrs[0].data = UVERBS_OBJECT_PD;
	call.attrs[2].len = 6;
	CHECK(run(fd, &call) == -EINVAL);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	mnt = argv[1];
	test_headers();
	test_attrs();
	test_invoke();
	test_objects();
	test_srq();
	test_regions();
	test_gids();
	test_handles();
	return failed;
}
