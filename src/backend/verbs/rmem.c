/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions and windows of a system's device. A region is of memory that
 * the daemon can address (mr/N/data), which the driver registers: its clients
 * map the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "backend/verbs/rverbs.h"

struct mr_call {
	struct rcall call;		/* first */
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	void *addr;
	uint64_t length, iova;
	unsigned int access;
	int flags;
};

static void reg_job(void *arg)
{
	struct mr_call *call = arg;

	call->call.ibv = ibv_reg_mr_iova2(call->pd, call->addr, call->length, call->iova,
					  call->access & ~(unsigned int)IBV_ACCESS_ZERO_BASED);
	call->call.err = call->call.ibv ? 0 : -errno;
}

static void reg_late(void *arg)
{
	const struct mr_call *call = arg;

	if (call->call.ibv)
		ibv_dereg_mr(call->call.ibv);
}

/* What can't be registered; the keys of MRs come with the call's end. */
static int reg_check(const struct rdev *rdev, const struct ibfs_mr_init *init)
{
	if (init->max_pages)
		return ibfs_fail(rdev->dev.ibfs, EOPNOTSUPP,
				 "%s: no process has fast registration on the system's devices",
				 rdev->dev.name);
	if (init->mem->kind == MEMORY_REMOTE)
		return ibfs_fail(rdev->dev.ibfs, EOPNOTSUPP,
				 "%s: only memory that is shared with the daemon can be registered",
				 rdev->dev.name);
	return 0;
}

int rmr_reg(struct ibfs_pd *pd, const struct ibfs_mr_init *init, struct ibfs_mr **out)
{
	struct rpd *rpd = (struct rpd *)pd;
	struct rdev *rdev = rpd->obj.rdev;
	struct mr_call call = {
		.pd = rpd->obj.ibv, .length = init->length, .access = init->access,
		.iova = init->access & IBV_ACCESS_ZERO_BASED ? 0 : init->iova,
		.call = { .undo = reg_late, .more_ms = init->length >> MS_SHIFT },
	};
	int err = reg_check(rdev, init);
	struct robj *obj;
	struct rmr *mr;

	if (err)
		return err;
	call.addr = (uint8_t *)init->mem->base + init->mem_off;
	err = robj_make(rdev, ROBJ_MR, sizeof(*mr), reg_job, &call.call, sizeof(call),
			"register memory", &obj);
	if (err)
		return err;
	mr = (struct rmr *)obj;
	mr->mem = memory_get(init->mem);
	mr->pd = rpd;
	mr->iova = call.iova;
	mr->length = init->length;
	mr->access = init->access;
	*out = (struct ibfs_mr *)mr;
	return 0;
}

static void rereg_job(void *arg)
{
	struct mr_call *call = arg;

	errno = 0;
	if (ibv_rereg_mr(call->mr, call->flags, call->pd, call->addr, call->length,
			 (int)call->access))
		call->call.err = errno ? -errno : -EINVAL;
}

int rmr_rereg(struct ibfs_mr *mr, int flags, struct ibfs_pd *pd, const struct ibfs_mr_init *init)
{
	struct rmr *rmr = (struct rmr *)mr;
	struct rpd *rpd = (struct rpd *)pd;
	struct mr_call call = {
		.mr = rmr->obj.ibv, .flags = flags, .access = init->access,
		.pd = rpd ? rpd->obj.ibv : NULL,
	};
	int err;

	if (!backend_own(robj_is(rmr->obj.rdev, ROBJ_PD, pd)))
		return -EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		return -EOPNOTSUPP;
	err = rcall(rmr->obj.rdev, rereg_job, &call, sizeof(call), "register memory anew");
	if (err)
		return err;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		rmr->pd = rpd;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		rmr->access = init->access;
	return 0;
}

static unsigned int windows_of(const struct rmr *mr)
{
	uint32_t lkey = ((const struct ibv_mr *)mr->obj.ibv)->lkey;
	const struct robj *obj;
	unsigned int n = 0;

	DL_FOREACH(mr->obj.rdev->objs[ROBJ_MW], obj) {
		const struct rmw *mw = (const struct rmw *)obj;

		n += mw->attr.bound && mw->attr.mr_lkey == lkey;
	}
	return n;
}

void rmr_query(struct ibfs_mr *mr, struct ibfs_mr_attr *attr)
{
	const struct rmr *rmr = (const struct rmr *)mr;
	const struct ibv_mr *ibv = rmr->obj.ibv;

	*attr = (struct ibfs_mr_attr){
		.pd = (struct ibfs_pd *)rmr->pd, .iova = rmr->iova, .length = rmr->length,
		.access = rmr->access, .lkey = ibv->lkey, .rkey = ibv->rkey,
		.windows = windows_of(rmr), .valid = true,
	};
}

int rmr_dereg(struct ibfs_mr *mr)
{
	return robj_destroy((struct robj *)mr);
}

struct rmr *rmr_by_lkey(struct rdev *rdev, uint32_t lkey)
{
	struct robj *obj;

	DL_FOREACH(rdev->objs[ROBJ_MR], obj)
		if (((const struct ibv_mr *)obj->ibv)->lkey == lkey)
			return (struct rmr *)obj;
	return NULL;
}

struct mw_call {
	struct rcall call;		/* first */
	struct ibv_pd *pd;
	enum ibv_mw_type type;
};

static void mw_job(void *arg)
{
	struct mw_call *call = arg;

	call->call.ibv = ibv_alloc_mw(call->pd, call->type);
	call->call.err = call->call.ibv ? 0 : -errno;
}

int rmw_alloc(struct ibfs_pd *pd, enum ibv_mw_type type, struct ibfs_mw **out)
{
	struct rpd *rpd = (struct rpd *)pd;
	struct mw_call call = { .pd = rpd->obj.ibv, .type = type };
	struct robj *obj;
	int err = robj_make(rpd->obj.rdev, ROBJ_MW, sizeof(struct rmw), mw_job, &call.call,
			    sizeof(call), "make a memory window", &obj);

	if (err)
		return err;
	((struct rmw *)obj)->attr.type = type;
	*out = (struct ibfs_mw *)obj;
	return 0;
}

void rmw_query(struct ibfs_mw *mw, struct ibfs_mw_attr *attr)
{
	const struct rmw *rmw = (const struct rmw *)mw;

	*attr = rmw->attr;
	attr->rkey = ((const struct ibv_mw *)rmw->obj.ibv)->rkey;
}

int rmw_dealloc(struct ibfs_mw *mw)
{
	return robj_destroy((struct robj *)mw);
}

struct rmw *rmw_by_rkey(struct rdev *rdev, uint32_t rkey)
{
	struct robj *obj;

	DL_FOREACH(rdev->objs[ROBJ_MW], obj)
		if (((const struct ibv_mw *)obj->ibv)->rkey == rkey)
			return (struct rmw *)obj;
	return NULL;
}
