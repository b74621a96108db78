/* SPDX-License-Identifier: BSD-2-Clause */
/* uverbs commands of shared receive queues. */
#include <errno.h>

#include "fs/uverbs.h"

enum { SRQ_BASIC, SRQ_XRC };

static int make(struct uv_cmd *cmd, struct uobj *obj, struct ibfs_pd *pd, struct ibfs_srq_init *init)
{
	const struct verbs_ops *verbs = uv_verbs(cmd->uf);
	struct ib_uverbs_create_srq_resp resp = { .srq_handle = obj->handle };
	struct rxe_create_srq_resp driver = { 0 };
	struct ibv_srq_attr attr = init->attr;
	struct ibfs_ring ring;
	int err;

	err = verbs->create_srq(pd, init, &obj->client, &obj->srq);
	if (err)
		return err;
	if (attr.srq_limit)
		err = verbs->modify_srq(obj->srq, &attr, IBV_SRQ_LIMIT);
	if (!err)
		err = verbs->srq_ring(obj->srq, &ring);
	if (err) {
		verbs->destroy_srq(obj->srq);
		return err;
	}
	verbs->query_srq(obj->srq, &attr, &resp.srqn);
	resp.max_wr = attr.max_wr;
	resp.max_sge = attr.max_sge;
	driver.srq_num = resp.srqn;
	uv_mminfo(&ring, &driver.mi);
	uv_respond(cmd, &resp, sizeof(resp));
	uv_respond_driver(cmd, &driver, sizeof(driver));
	return 0;
}

static int fill_xrc(struct uv_cmd *cmd, const struct ib_uverbs_create_xsrq *req,
		    struct ibfs_srq_init *init)
{
	struct uobj *xrcd, *cq;

	if (req->srq_type != SRQ_XRC)
		return req->srq_type == SRQ_BASIC ? 0 : -EOPNOTSUPP;
	xrcd = uobj_get(cmd->uf, req->xrcd_handle, UOBJ_XRCD);
	cq = uobj_get(cmd->uf, req->cq_handle, UOBJ_CQ);
	if (!xrcd || !cq)
		return -EINVAL;
	init->xrc = true;
	init->xrcd = xrcd->xrcd->xrcd;
	init->cq = cq->cq;
	return 0;
}

static int create(struct uv_cmd *cmd, const struct ib_uverbs_create_xsrq *req)
{
	struct ibfs_srq_init init = {
		.attr = { .max_wr = req->max_wr, .max_sge = req->max_sge, .srq_limit = req->srq_limit },
	};
	struct uobj *pd, *obj;
	int err;

	if (cmd->drv_out_len < sizeof(struct rxe_create_srq_resp))
		return -EINVAL;
	err = fill_xrc(cmd, req, &init);
	if (err)
		return err;
	pd = uobj_get(cmd->uf, req->pd_handle, UOBJ_PD);
	if (!pd)
		return -EINVAL;
	obj = uobj_new(cmd->uf, UOBJ_SRQ);
	if (!obj)
		return -ENOMEM;
	obj->user_handle = req->user_handle;
	if (init.xrcd)
		uobj_set_domain(obj, uobj_get(cmd->uf, req->xrcd_handle, UOBJ_XRCD));
	err = uobj_set_events(obj, cmd);
	if (!err)
		err = make(cmd, obj, pd->pd, &init);
	return uv_made(cmd, obj, err);
}

int uv_create_srq(struct uv_cmd *cmd)
{
	struct ib_uverbs_create_srq req;
	struct ib_uverbs_create_xsrq x;

	uv_request(cmd, &req, sizeof(req));
	x = (struct ib_uverbs_create_xsrq){
		.user_handle = req.user_handle, .srq_type = SRQ_BASIC, .pd_handle = req.pd_handle,
		.max_wr = req.max_wr, .max_sge = req.max_sge, .srq_limit = req.srq_limit,
	};
	return create(cmd, &x);
}

int uv_create_xsrq(struct uv_cmd *cmd)
{
	struct ib_uverbs_create_xsrq req;

	uv_request(cmd, &req, sizeof(req));
	return create(cmd, &req);
}

/* The driver's part is an address that is told where the new ring is. */
int uv_modify_srq(struct uv_cmd *cmd)
{
	const struct verbs_ops *verbs = uv_verbs(cmd->uf);
	const struct rxe_modify_srq_cmd *driver = cmd->drv_in;
	struct ib_uverbs_modify_srq req;
	struct ibv_srq_attr attr;
	struct ibfs_ring ring;
	struct uobj *obj;
	int err;

	uv_request(cmd, &req, sizeof(req));
	obj = uobj_get(cmd->uf, req.srq_handle, UOBJ_SRQ);
	if (!obj)
		return -EINVAL;
	if (req.attr_mask & IBV_SRQ_MAX_WR && cmd->drv_in_len < sizeof(*driver))
		return -EINVAL;
	attr = (struct ibv_srq_attr){ .max_wr = req.max_wr, .srq_limit = req.srq_limit };
	err = verbs->modify_srq(obj->srq, &attr, (int)req.attr_mask);
	if (err || !(req.attr_mask & IBV_SRQ_MAX_WR))
		return err;
	err = verbs->srq_ring(obj->srq, &ring);
	if (err)
		return err;
	uv_mminfo(&ring, &cmd->also);
	cmd->also_at = driver->mmap_info_addr;
	return 0;
}

int uv_query_srq(struct uv_cmd *cmd)
{
	struct ib_uverbs_query_srq_resp resp = { 0 };
	struct ib_uverbs_query_srq req;
	struct ibv_srq_attr attr;
	struct uobj *obj;
	uint32_t num;

	uv_request(cmd, &req, sizeof(req));
	obj = uobj_get(cmd->uf, req.srq_handle, UOBJ_SRQ);
	if (!obj)
		return -EINVAL;
	uv_verbs(cmd->uf)->query_srq(obj->srq, &attr, &num);
	resp.max_wr = attr.max_wr;
	resp.max_sge = attr.max_sge;
	resp.srq_limit = attr.srq_limit;
	uv_respond(cmd, &resp, sizeof(resp));
	return 0;
}

int uv_destroy_srq(struct uv_cmd *cmd)
{
	return uv_destroy_queue(cmd, UOBJ_SRQ);
}
