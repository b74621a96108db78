/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of a system's device's verbs, what its objects have in common,
 * protection and XRC domains.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "backend/verbs/rverbs.h"

int rcall(struct rdev *rdev, void (*fn)(void *arg), void *arg, size_t size, const char *what)
{
	struct rcall *call = arg;
	int err;

	call->ctx = rdev->ctx;
	err = rdev_call_long(rdev, fn, call->undo, arg, size, call->more_ms);
	if (!err)
		err = call->err;
	if (err == -ENOSYS || err == -ENOTSUP)
		return ibfs_fail(rdev->dev.ibfs, EOPNOTSUPP, "%s: the system's driver can't %s",
				 rdev->dev.name, what);
	if (err && err != -EBUSY)
		ibfs_fail(rdev->dev.ibfs, -err, "%s: the system's driver refuses to %s: %s",
			  rdev->dev.name, what, strerror(-err));
	return err;
}

/* --- objects --- */

/* The memory first: what libibverbs has made needn't be undone for want of it. */
int robj_make(struct rdev *rdev, enum robj_kind kind, size_t size, void (*fn)(void *arg),
	      struct rcall *call, size_t call_size, const char *what, struct robj **out)
{
	struct robj *obj = calloc(1, size);
	int err;

	if (!obj)
		return -ENOMEM;
	err = rcall(rdev, fn, call, call_size, what);
	if (err) {
		free(obj);
		return err;
	}
	obj->rdev = rdev;
	obj->kind = kind;
	obj->ibv = call->ibv;
	DL_APPEND(rdev->objs[kind], obj);
	*out = obj;
	return 0;
}

struct robj *robj_find(struct rdev *rdev, enum robj_kind kind, const void *ibv)
{
	struct robj *obj;

	DL_FOREACH(rdev->objs[kind], obj)
		if (obj->ibv == ibv)
			return obj;
	return NULL;
}

struct destroy_call {
	struct rcall call;		/* first */
	enum robj_kind kind;
	struct rdevs *rdevs;		/* with put: a reference */
	struct put_note *put;
};

/* Memory that a driver may still reach: it goes when the region has gone. */
struct put_note {
	struct note note;		/* first */
	struct memory *mem;
};

static void on_put(struct note *note)
{
	memory_put(((struct put_note *)note)->mem);
	free(note);
}

/* For a call that nobody waits for: the memory is the call's from now on. */
static void keep_memory(struct destroy_call *call, struct rmr *mr)
{
	call->put = calloc(1, sizeof(*call->put));
	if (!call->put)
		return;
	call->put->note.fn = on_put;
	call->put->mem = memory_get(mr->mem);
	call->rdevs = rdevs_get(mr->obj.rdev->rdevs);
}

/* libibverbs gives positive errnos, or -1 and errno. */
static void destroy_job(void *arg)
{
	struct destroy_call *call = arg;
	void *ibv = call->call.ibv;
	int err = 0;

	switch (call->kind) {
	case ROBJ_QP:
		err = ibv_destroy_qp(ibv);
		break;
	case ROBJ_SRQ:
		err = ibv_destroy_srq(ibv);
		break;
	case ROBJ_CQ:
		err = ibv_destroy_cq(ibv);
		break;
	case ROBJ_AH:
		err = ibv_destroy_ah(ibv);
		break;
	case ROBJ_MW:
		err = ibv_dealloc_mw(ibv);
		break;
	case ROBJ_MR:
		err = ibv_dereg_mr(ibv);
		break;
	case ROBJ_XRCD:
		err = ibv_close_xrcd(ibv);
		break;
	default:
		err = ibv_dealloc_pd(ibv);
	}
	call->call.err = err < 0 ? -errno : -err;
	if (!call->put)
		return;
	note_send(call->rdevs, &call->put->note);
	rdevs_put(call->rdevs);
}

void robj_free(struct robj *obj)
{
	DL_DELETE(obj->rdev->objs[obj->kind], obj);
	if (obj->kind == ROBJ_MR)
		memory_put(((struct rmr *)obj)->mem);
	if (obj->kind == ROBJ_CQ)
		rcq_free((struct rcq *)obj);
	if (obj->kind == ROBJ_QP) {
		rcqe_drop((struct rqp *)obj);
		rqp_rings_free((struct rqp *)obj);
	}
	if (obj->kind == ROBJ_SRQ && ((struct rsrq *)obj)->rq.wqe)
		rq_free(&((struct rsrq *)obj)->rq);
	free(obj);
}

/* Of a device that is lost the calls are only queued: the driver may not answer any more. */
int robj_destroy(struct robj *obj)
{
	struct destroy_call call = { .call.ibv = obj->ibv, .kind = obj->kind };
	int err = 0;

	if (obj->kind == ROBJ_MR)
		call.call.more_ms = ((struct rmr *)obj)->length >> MS_SHIFT;
	if (obj->rdev->lost && obj->kind == ROBJ_MR)
		keep_memory(&call, (struct rmr *)obj);
	if (obj->rdev->lost)
		hand_post(obj->rdev->hand, destroy_job, &call, sizeof(call));
	else
		err = rcall(obj->rdev, destroy_job, &call, sizeof(call), "destroy it");
	if (err)
		return err;
	robj_free(obj);
	return 0;
}

/* --- domains --- */

static void alloc_pd_job(void *arg)
{
	struct rcall *call = arg;

	call->ibv = ibv_alloc_pd(call->ctx);
	call->err = call->ibv ? 0 : -errno;
}

static void open_xrcd_job(void *arg)
{
	struct rcall *call = arg;
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};

	call->ibv = ibv_open_xrcd(call->ctx, &attr);
	call->err = call->ibv ? 0 : -errno;
}

static int domain_new(struct ibfs_device *dev, enum robj_kind kind, void (*job)(void *arg),
		      const char *what, struct robj **out)
{
	struct rcall call = { 0 };

	return robj_make(rdev_of(dev), kind, sizeof(struct rpd), job, &call, sizeof(call), what, out);
}

static int rpd_alloc(struct ibfs_device *dev, struct ibfs_pd **pd)
{
	return domain_new(dev, ROBJ_PD, alloc_pd_job, "make a protection domain",
			  (struct robj **)pd);
}

static int rpd_dealloc(struct ibfs_pd *pd)
{
	return robj_destroy((struct robj *)pd);
}

static int rxrcd_alloc(struct ibfs_device *dev, struct ibfs_xrcd **xrcd)
{
	return domain_new(dev, ROBJ_XRCD, open_xrcd_job, "do XRC", (struct robj **)xrcd);
}

static int rxrcd_dealloc(struct ibfs_xrcd *xrcd)
{
	return robj_destroy((struct robj *)xrcd);
}

/* --- all of them --- */

const struct verbs_ops rdev_verbs_ops = {
	.no_uverbs = true,
	.alloc_pd = rpd_alloc, .dealloc_pd = rpd_dealloc,
	.alloc_xrcd = rxrcd_alloc, .dealloc_xrcd = rxrcd_dealloc,
	.reg_mr = rmr_reg, .rereg_mr = rmr_rereg, .query_mr = rmr_query, .dereg_mr = rmr_dereg,
	.alloc_mw = rmw_alloc, .query_mw = rmw_query, .dealloc_mw = rmw_dealloc,
	.create_cq = rcq_create, .resize_cq = rcq_resize, .modify_cq = rcq_modify,
	.query_cq = rcq_query, .cq_busy = rcq_busy, .destroy_cq = rcq_destroy, .poll_cq = rcq_poll,
	.peek_cq = rcq_peek, .req_notify_cq = rcq_req_notify, .req_ncomp_notif = rcq_req_ncomp,
	.cq_ring = rcq_ring,
	.create_srq = rsrq_create, .modify_srq = rsrq_modify, .query_srq = rsrq_query,
	.destroy_srq = rsrq_destroy, .post_srq_recv = rsrq_post, .srq_ring = rsrq_ring,
	.create_ah = rah_create, .modify_ah = rah_modify, .query_ah = rah_query,
	.destroy_ah = rah_destroy, .init_ah_from_wc = rah_from_wc,
	.create_qp = rqp_create, .open_qp = rqp_open, .modify_qp = rqp_modify,
	.query_qp = rqp_query, .destroy_qp = rqp_destroy, .post_send = rqp_post_send,
	.post_recv = rqp_post_recv, .qp_ring = rqp_ring, .doorbell = rqp_doorbell,
	.srq_doorbell = rsrq_doorbell,
	.attach_mcast = rmcast_attach, .detach_mcast = rmcast_detach,
};

int rverbs_start(struct rdev *rdev, struct ibv_comp_channel *channel)
{
	rdev->objs = calloc(ROBJ_KINDS, sizeof(struct robj *));
	return rdev->objs ? rcq_start(rdev, channel) : -ENOMEM;
}

/* What clients that know no files left (IP interfaces), users before what they use. */
void rverbs_gone(struct rdev *rdev)
{
	for (int kind = 0; rdev->objs && kind < ROBJ_KINDS; kind++)
		while (rdev->objs[kind])
			robj_destroy(rdev->objs[kind]);
}

void rverbs_free(struct rdev *rdev)
{
	rcq_stop(rdev);
	free(rdev->objs);
}
