/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues, address handles and multicast attachments of a
 * system's device.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "backend/verbs/rverbs.h"

struct srq_call {
	struct rcall call;		/* first */
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd;
	struct ibv_cq *cq;
	struct ibv_srq_attr attr;
	int mask;
	uint32_t num;
};

static void create_job(void *arg)
{
	struct srq_call *call = arg;
	struct ibv_srq_init_attr_ex ex = {
		.attr = call->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC, .pd = call->pd, .xrcd = call->xrcd, .cq = call->cq,
	};
	struct ibv_srq_init_attr init = { .attr = call->attr };
	struct ibv_srq *srq;

	srq = call->xrcd ? ibv_create_srq_ex(call->call.ctx, &ex) : ibv_create_srq(call->pd, &init);
	call->call.ibv = srq;
	call->call.err = srq ? 0 : -errno;
	call->attr = call->xrcd ? ex.attr : init.attr;
	if (srq && ibv_get_srq_num(srq, &call->num))
		call->num = srq->handle;
}

int rsrq_create(struct ibfs_pd *pd, const struct ibfs_srq_init *init,
		struct verbs_client *client, struct ibfs_srq **out)
{
	struct rdev *rdev = ((struct robj *)pd)->rdev;
	struct srq_call call = {
		.pd = ((struct robj *)pd)->ibv, .attr = init->attr,
		.xrcd = init->xrcd ? ((struct robj *)init->xrcd)->ibv : NULL,
		.cq = init->cq ? ((struct robj *)init->cq)->ibv : NULL,
	};
	struct robj *obj;
	struct rsrq *srq;
	int err;

	if (!backend_own(robj_is(rdev, ROBJ_XRCD, init->xrcd) && robj_is(rdev, ROBJ_CQ, init->cq)))
		return -EINVAL;
	err = robj_make(rdev, ROBJ_SRQ, sizeof(*srq), create_job, &call.call, sizeof(call),
			"make a shared receive queue", &obj);
	if (err)
		return err;
	srq = (struct rsrq *)obj;
	srq->client = srq->bill.client = client;
	srq->num = call.num;
	srq->max_wr = call.attr.max_wr;
	srq->max_sge = call.attr.max_sge;
	*out = (struct ibfs_srq *)srq;
	return 0;
}

static void modify_job(void *arg)
{
	struct srq_call *call = arg;

	call->call.err = -ibv_modify_srq(call->call.ibv, &call->attr, call->mask);
}

int rsrq_modify(struct ibfs_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	struct robj *obj = (struct robj *)srq;
	struct srq_call call = { .call.ibv = obj->ibv, .attr = *attr, .mask = mask };

	return rcall(obj->rdev, modify_job, &call, sizeof(call), "modify it");
}

static void query_job(void *arg)
{
	struct srq_call *call = arg;

	call->call.err = -ibv_query_srq(call->call.ibv, &call->attr);
}

void rsrq_query(struct ibfs_srq *srq, struct ibv_srq_attr *attr, uint32_t *srq_num)
{
	struct robj *obj = (struct robj *)srq;
	struct srq_call call = { .call.ibv = obj->ibv };

	rcall(obj->rdev, query_job, &call, sizeof(call), "query it");
	*attr = call.attr;
	*srq_num = ((struct rsrq *)srq)->num;
}

int rsrq_destroy(struct ibfs_srq *srq)
{
	return robj_destroy((struct robj *)srq);
}

/* --- address handles --- */

struct ah_call {
	struct rcall call;		/* first */
	struct ibv_pd *pd;
	struct ibv_ah *old;
	unsigned int port;
	struct ibv_ah_attr attr;
	struct ibv_wc wc;
	struct ibv_grh grh;
};

static void ah_job(void *arg)
{
	struct ah_call *call = arg;

	call->call.ibv = ibv_create_ah(call->pd, &call->attr);
	call->call.err = call->call.ibv ? 0 : -errno;
	if (call->call.ibv && call->old)
		ibv_destroy_ah(call->old);
}

int rah_create(struct ibfs_pd *pd, const struct ibv_ah_attr *attr, struct ibfs_ah **out)
{
	struct rpd *rpd = (struct rpd *)pd;
	struct ah_call call = { .pd = rpd->obj.ibv, .attr = *attr };
	struct robj *obj;
	struct rah *ah;
	int err;

	err = robj_make(rpd->obj.rdev, ROBJ_AH, sizeof(*ah), ah_job, &call.call, sizeof(call),
			"make an address handle", &obj);
	if (err)
		return err;
	ah = (struct rah *)obj;
	ah->pd = rpd;
	ah->attr = *attr;
	ah->num = ++rpd->obj.rdev->next_ah;
	*out = (struct ibfs_ah *)ah;
	return 0;
}

/* libibverbs can't modify one: another takes its place. */
int rah_modify(struct ibfs_ah *ah, const struct ibv_ah_attr *attr)
{
	struct rah *rah = (struct rah *)ah;
	struct ah_call call = { .pd = rah->pd->obj.ibv, .old = rah->obj.ibv, .attr = *attr };
	int err = rcall(rah->obj.rdev, ah_job, &call, sizeof(call), "make an address handle");

	if (err)
		return err;
	rah->obj.ibv = call.call.ibv;
	rah->attr = *attr;
	return 0;
}

void rah_query(struct ibfs_ah *ah, struct ibv_ah_attr *attr, uint32_t *handle)
{
	const struct rah *rah = (const struct rah *)ah;

	*attr = rah->attr;
	*handle = rah->num;
}

struct ibfs_ah *rah_by_num(struct rdev *rdev, uint32_t num)
{
	struct robj *obj;

	DL_FOREACH(rdev->objs[ROBJ_AH], obj)
		if (((struct rah *)obj)->num == num)
			return (struct ibfs_ah *)obj;
	return NULL;
}

void rah_destroy(struct ibfs_ah *ah)
{
	if (robj_destroy((struct robj *)ah))
		robj_free((struct robj *)ah);
}

static void from_wc_job(void *arg)
{
	struct ah_call *call = arg;

	if (ibv_init_ah_from_wc(call->call.ctx, (uint8_t)call->port, &call->wc, &call->grh,
				&call->attr))
		call->call.err = -EINVAL;
}

int rah_from_wc(struct ibfs_device *dev, unsigned int port, const struct ibfs_wc *wc,
		const struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct ah_call call = {
		.port = port,
		.wc = { .wc_flags = wc->wc_flags, .slid = wc->slid, .sl = wc->sl,
			.dlid_path_bits = wc->dlid_path_bits },
	};
	int err;

	if (wc->wc_flags & IBV_WC_GRH)
		call.grh = *grh;
	err = rcall(rdev_of(dev), from_wc_job, &call, sizeof(call), "find the sender");
	if (!err)
		*attr = call.attr;
	return err;
}

/* --- multicast --- */

struct mcast_call {
	struct rcall call;		/* first */
	union ibv_gid gid;
	uint16_t lid;
};

static void attach_job(void *arg)
{
	struct mcast_call *call = arg;

	call->call.err = -ibv_attach_mcast(call->call.ibv, &call->gid, call->lid);
}

static void detach_job(void *arg)
{
	struct mcast_call *call = arg;

	call->call.err = -ibv_detach_mcast(call->call.ibv, &call->gid, call->lid);
}

int rmcast_attach(struct ibfs_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct robj *obj = (struct robj *)qp;
	struct mcast_call call = { .call.ibv = obj->ibv, .gid = *gid, .lid = lid };

	return rcall(obj->rdev, attach_job, &call, sizeof(call), "attach to multicast");
}

/* Of a device that is lost, nothing is to be detached any more. */
int rmcast_detach(struct ibfs_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct robj *obj = (struct robj *)qp;
	struct mcast_call call = { .call.ibv = obj->ibv, .gid = *gid, .lid = lid };

	return obj->rdev->lost ? 0 : rcall(obj->rdev, detach_job, &call, sizeof(call), "detach");
}
