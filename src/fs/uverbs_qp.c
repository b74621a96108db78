/* SPDX-License-Identifier: BSD-2-Clause */
/* uverbs commands of queue pairs, and of multicast. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/uverbs.h"

#define MAX_WR 16384			/* rings that are larger are as large as asked for */
#define ATTR_STANDARD 0x1fffff		/* IB_QP_ATTR_STANDARD_BITS: up to IB_QP_DEST_QPN */
/* The rxe driver takes any, and looks at these: newer programs ask for flushes too. */
#define ACCESS_KNOWN (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		      IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND)

/* --- creation --- */

static struct ibfs_cq *cq_of(struct uverbs_file *uf, uint32_t handle)
{
	struct uobj *obj = uobj_get(uf, handle, UOBJ_CQ);

	return obj ? obj->cq : NULL;
}

/* What the QP refers to; a target's pd_handle is its XRC domain. */
static int fill_refs(struct uv_cmd *cmd, const struct ib_uverbs_ex_create_qp *req,
		     struct ibfs_qp_init *init)
{
	struct uverbs_file *uf = cmd->uf;
	struct uobj *obj;

	if (req->qp_type == IBV_QPT_XRC_RECV) {
		obj = uobj_get(uf, req->pd_handle, UOBJ_XRCD);
		if (!obj)
			return -EINVAL;
		init->xrcd = obj->xrcd->xrcd;
		return 0;
	}
	obj = uobj_get(uf, req->pd_handle, UOBJ_PD);
	init->send_cq = cq_of(uf, req->send_cq_handle);
	if (!obj || !init->send_cq)
		return -EINVAL;
	init->pd = obj->pd;
	if (req->qp_type == IBV_QPT_XRC_SEND)
		return 0;
	init->recv_cq = cq_of(uf, req->recv_cq_handle);
	if (!init->recv_cq)
		return -EINVAL;
	if (!req->is_srq)
		return 0;
	obj = uobj_get(uf, req->srq_handle, UOBJ_SRQ);
	if (!obj)
		return -EINVAL;
	init->srq = obj->srq;
	return 0;
}

static int rings(struct uv_cmd *cmd, struct uobj *obj, const struct ibfs_qp_init *init)
{
	const struct verbs_ops *verbs = uv_verbs(cmd->uf);
	struct rxe_create_qp_resp driver = { 0 };
	struct ibfs_ring ring;
	int err = 0;

	if (init->type != IBV_QPT_XRC_RECV) {
		err = verbs->qp_ring(obj->qp, true, &ring);
		if (err)
			return err;
		uv_mminfo(&ring, &driver.sq_mi);
	}
	if (init->recv_cq && !init->srq) {
		err = verbs->qp_ring(obj->qp, false, &ring);
		if (err)
			return err;
		uv_mminfo(&ring, &driver.rq_mi);
	}
	uv_respond_driver(cmd, &driver, sizeof(driver));
	return 0;
}

static void fill_resp(const struct verbs_ops *verbs, const struct uobj *obj,
		      struct ib_uverbs_create_qp_resp *resp)
{
	struct ibfs_qp_init init;
	struct ibv_qp_attr attr;
	uint32_t qpn;

	verbs->query_qp(obj->qp, &attr, &init, &qpn);
	*resp = (struct ib_uverbs_create_qp_resp){
		.qp_handle = obj->handle,
		.qpn = qpn,
		.max_send_wr = attr.cap.max_send_wr,
		.max_recv_wr = attr.cap.max_recv_wr,
		.max_send_sge = attr.cap.max_send_sge,
		.max_recv_sge = attr.cap.max_recv_sge,
		.max_inline_data = attr.cap.max_inline_data,
	};
}

static int make(struct uv_cmd *cmd, struct uobj *obj, const struct ibfs_qp_init *init)
{
	const struct verbs_ops *verbs = uv_verbs(cmd->uf);
	int err = verbs->create_qp(cmd->uf->dev, init, &obj->client, &obj->qp);

	if (err)
		return err;
	err = rings(cmd, obj, init);
	if (err)
		verbs->destroy_qp(obj->qp, &obj->client);
	return err;
}

/* As the kernel: the management QPs are its own clients', and raw packets take CAP_NET_RAW. */
static int type_check(const struct uv_cmd *cmd, unsigned int type)
{
	switch (type) {
	case IBV_QPT_RAW_PACKET:
		return fs_privileged(&cmd->req->cred) ? 0 : -EPERM;
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return 0;
	default:
		return -EINVAL;
	}
}

static int create(struct uv_cmd *cmd, const struct ib_uverbs_ex_create_qp *req,
		  struct ib_uverbs_create_qp_resp *resp)
{
	struct ibfs_qp_init init = {
		.type = req->qp_type,
		.create_flags = req->create_flags,
		.sq_sig_all = req->sq_sig_all,
		.cap = {
			.max_send_wr = uv_ring_room(req->max_send_wr, MAX_WR),
			.max_recv_wr = uv_ring_room(req->max_recv_wr, MAX_WR),
			.max_send_sge = req->max_send_sge, .max_recv_sge = req->max_recv_sge,
			.max_inline_data = req->max_inline_data,
		},
	};
	struct uobj *obj;
	int err;

	err = type_check(cmd, req->qp_type);
	if (err)
		return err;
	if (req->qp_type != IBV_QPT_XRC_RECV && cmd->drv_out_len < sizeof(struct rxe_create_qp_resp))
		return -EINVAL;
	err = fill_refs(cmd, req, &init);
	if (err)
		return err;
	obj = uobj_new(cmd->uf, UOBJ_QP);
	if (!obj)
		return -ENOMEM;
	obj->user_handle = req->user_handle;
	if (init.xrcd)
		uobj_set_domain(obj, uobj_get(cmd->uf, req->pd_handle, UOBJ_XRCD));
	err = uobj_set_events(obj, cmd);
	if (!err)
		err = make(cmd, obj, &init);
	if (!err)
		fill_resp(uv_verbs(cmd->uf), obj, resp);
	return uv_made(cmd, obj, err);
}

int uv_create_qp(struct uv_cmd *cmd)
{
	struct ib_uverbs_create_qp_resp resp;
	struct ib_uverbs_ex_create_qp ex = { 0 };
	struct ib_uverbs_create_qp req;
	int err;

	uv_request(cmd, &req, sizeof(req));
	ex = (struct ib_uverbs_ex_create_qp){
		.user_handle = req.user_handle, .pd_handle = req.pd_handle,
		.send_cq_handle = req.send_cq_handle, .recv_cq_handle = req.recv_cq_handle,
		.srq_handle = req.srq_handle, .max_send_wr = req.max_send_wr,
		.max_recv_wr = req.max_recv_wr, .max_send_sge = req.max_send_sge,
		.max_recv_sge = req.max_recv_sge, .max_inline_data = req.max_inline_data,
		.sq_sig_all = req.sq_sig_all, .qp_type = req.qp_type, .is_srq = req.is_srq,
	};
	err = create(cmd, &ex, &resp);
	if (!err)
		uv_respond(cmd, &resp, sizeof(resp));
	return err;
}

int uv_ex_create_qp(struct uv_cmd *cmd)
{
	struct ib_uverbs_ex_create_qp_resp resp = { .response_length = sizeof(resp) };
	struct ib_uverbs_ex_create_qp req;
	int err = uv_request_ex(cmd, &req, sizeof(req));

	if (err)
		return err;
	if (req.comp_mask & ~(uint32_t)IB_UVERBS_CREATE_QP_SUP_COMP_MASK || req.reserved)
		return -EINVAL;
	if (req.comp_mask)
		return -EOPNOTSUPP;
	err = create(cmd, &req, &resp.base);
	if (!err)
		uv_respond(cmd, &resp, sizeof(resp));
	return err;
}

int uv_open_qp(struct uv_cmd *cmd)
{
	const struct verbs_ops *verbs = uv_verbs(cmd->uf);
	struct ib_uverbs_create_qp_resp resp = { 0 };
	struct ib_uverbs_open_qp req;
	struct uobj *xrcd, *obj;
	int err;

	uv_request(cmd, &req, sizeof(req));
	xrcd = uobj_get(cmd->uf, req.pd_handle, UOBJ_XRCD);
	if (!xrcd || req.qp_type != IBV_QPT_XRC_RECV)
		return -EINVAL;
	obj = uobj_new(cmd->uf, UOBJ_QP);
	if (!obj)
		return -ENOMEM;
	obj->user_handle = req.user_handle;
	uobj_set_domain(obj, xrcd);
	err = uobj_set_events(obj, cmd);
	if (!err)
		err = verbs->open_qp(xrcd->xrcd->xrcd, req.qpn, &obj->client, &obj->qp);
	if (!err) {
		resp.qp_handle = obj->handle;
		resp.qpn = req.qpn;
		uv_respond(cmd, &resp, sizeof(resp));
	}
	return uv_made(cmd, obj, err);
}

/* --- attributes --- */

static void dest_to_attr(const struct ib_uverbs_qp_dest *dest, struct ibv_ah_attr *attr)
{
	*attr = (struct ibv_ah_attr){
		.dlid = dest->dlid, .sl = dest->sl, .src_path_bits = dest->src_path_bits,
		.static_rate = dest->static_rate, .is_global = dest->is_global,
		.port_num = dest->port_num,
		.grh = {
			.flow_label = dest->flow_label, .sgid_index = dest->sgid_index,
			.hop_limit = dest->hop_limit, .traffic_class = dest->traffic_class,
		},
	};
	memcpy(&attr->grh.dgid, dest->dgid, sizeof(attr->grh.dgid));
}

static void attr_to_dest(const struct ibv_ah_attr *attr, struct ib_uverbs_qp_dest *dest)
{
	*dest = (struct ib_uverbs_qp_dest){
		.flow_label = attr->grh.flow_label, .dlid = attr->dlid,
		.sgid_index = attr->grh.sgid_index, .hop_limit = attr->grh.hop_limit,
		.traffic_class = attr->grh.traffic_class, .sl = attr->sl,
		.src_path_bits = attr->src_path_bits, .static_rate = attr->static_rate,
		.is_global = attr->is_global, .port_num = attr->port_num,
	};
	memcpy(dest->dgid, &attr->grh.dgid, sizeof(dest->dgid));
}

int uv_query_qp(struct uv_cmd *cmd)
{
	struct ib_uverbs_query_qp_resp resp = { 0 };
	struct ib_uverbs_query_qp req;
	struct ibfs_qp_init init;
	struct ibv_qp_attr attr;
	struct uobj *obj;
	uint32_t qpn;

	uv_request(cmd, &req, sizeof(req));
	obj = uobj_get(cmd->uf, req.qp_handle, UOBJ_QP);
	if (!obj)
		return -EINVAL;
	uv_verbs(cmd->uf)->query_qp(obj->qp, &attr, &init, &qpn);
	resp = (struct ib_uverbs_query_qp_resp){
		.max_send_wr = attr.cap.max_send_wr, .max_recv_wr = attr.cap.max_recv_wr,
		.max_send_sge = attr.cap.max_send_sge, .max_recv_sge = attr.cap.max_recv_sge,
		.max_inline_data = attr.cap.max_inline_data, .qkey = attr.qkey,
		.rq_psn = attr.rq_psn, .sq_psn = attr.sq_psn, .dest_qp_num = attr.dest_qp_num,
		.qp_access_flags = attr.qp_access_flags, .pkey_index = attr.pkey_index,
		.alt_pkey_index = attr.alt_pkey_index, .qp_state = attr.qp_state,
		.cur_qp_state = attr.cur_qp_state, .path_mtu = attr.path_mtu,
		.path_mig_state = attr.path_mig_state, .sq_draining = attr.sq_draining,
		.max_rd_atomic = attr.max_rd_atomic, .max_dest_rd_atomic = attr.max_dest_rd_atomic,
		.min_rnr_timer = attr.min_rnr_timer, .port_num = attr.port_num,
		.timeout = attr.timeout, .retry_cnt = attr.retry_cnt, .rnr_retry = attr.rnr_retry,
		.alt_port_num = attr.alt_port_num, .alt_timeout = attr.alt_timeout,
		.sq_sig_all = init.sq_sig_all,
	};
	attr_to_dest(&attr.ah_attr, &resp.dest);
	attr_to_dest(&attr.alt_ah_attr, &resp.alt_dest);
	uv_respond(cmd, &resp, sizeof(resp));
	return 0;
}

/* The kernel's checks ahead of the state machine. */
static int modify_check(const struct ibfs_device *dev, const struct ib_uverbs_modify_qp *req)
{
	uint32_t mask = req->attr_mask;

	if (mask & IBV_QP_PORT && (!req->port_num || req->port_num > dev->num_ports))
		return -EINVAL;
	if (mask & IBV_QP_AV && (!req->dest.port_num || req->dest.port_num > dev->num_ports))
		return -EINVAL;
	if (mask & IBV_QP_ALT_PATH &&
	    (!req->alt_port_num || req->alt_port_num > dev->num_ports ||
	     !req->alt_dest.port_num || req->alt_dest.port_num > dev->num_ports))
		return -EINVAL;
	if ((mask & IBV_QP_CUR_STATE && req->cur_qp_state > IBV_QPS_ERR) ||
	    (mask & IBV_QP_STATE && req->qp_state > IBV_QPS_ERR))
		return -EINVAL;
	return 0;
}

static int modify(struct uv_cmd *cmd, const struct ib_uverbs_modify_qp *req)
{
	struct uobj *obj = uobj_get(cmd->uf, req->qp_handle, UOBJ_QP);
	struct ibv_qp_attr attr = {
		.qp_state = req->qp_state, .cur_qp_state = req->cur_qp_state,
		.path_mtu = req->path_mtu, .path_mig_state = req->path_mig_state,
		.qkey = req->qkey, .rq_psn = req->rq_psn & 0xffffff,
		.sq_psn = req->sq_psn & 0xffffff, .dest_qp_num = req->dest_qp_num,
		.qp_access_flags = req->qp_access_flags & ACCESS_KNOWN, .pkey_index = req->pkey_index,
		.alt_pkey_index = req->alt_pkey_index,
		.en_sqd_async_notify = req->en_sqd_async_notify,
		.max_rd_atomic = req->max_rd_atomic, .max_dest_rd_atomic = req->max_dest_rd_atomic,
		.min_rnr_timer = req->min_rnr_timer, .port_num = req->port_num,
		.timeout = req->timeout, .retry_cnt = req->retry_cnt,
		.rnr_retry = req->rnr_retry, .alt_port_num = req->alt_port_num,
		.alt_timeout = req->alt_timeout,
	};
	int err;

	if (!obj)
		return -EINVAL;
	err = modify_check(cmd->uf->dev, req);
	if (err)
		return err;
	/* IB_QP_SET_QKEY: such a Q_Key is management's. */
	if (req->attr_mask & IBV_QP_QKEY && req->qkey >> 31 && !fs_privileged(&cmd->req->cred))
		return -EPERM;
	dest_to_attr(&req->dest, &attr.ah_attr);
	dest_to_attr(&req->alt_dest, &attr.alt_ah_attr);
	return uv_verbs(cmd->uf)->modify_qp(obj->qp, &attr, (int)req->attr_mask);
}

int uv_modify_qp(struct uv_cmd *cmd)
{
	struct ib_uverbs_modify_qp req;

	uv_request(cmd, &req, sizeof(req));
	if (req.attr_mask & ~(uint32_t)ATTR_STANDARD)
		return -EOPNOTSUPP;
	return modify(cmd, &req);
}

int uv_ex_modify_qp(struct uv_cmd *cmd)
{
	struct ib_uverbs_ex_modify_qp_resp resp = { .response_length = sizeof(resp) };
	struct ib_uverbs_ex_modify_qp req;
	int err = uv_request_ex(cmd, &req, sizeof(req));

	if (!err && req.base.attr_mask & ~(uint32_t)ATTR_STANDARD)
		err = -EOPNOTSUPP;
	if (!err)
		err = modify(cmd, &req.base);
	if (!err)
		uv_respond(cmd, &resp, sizeof(resp));
	return err;
}

int uv_destroy_qp(struct uv_cmd *cmd)
{
	return uv_destroy_queue(cmd, UOBJ_QP);
}

/* --- multicast --- */

static struct uv_group *find_group(const struct uobj *obj, const struct ib_uverbs_attach_mcast *req)
{
	struct uv_group *group;

	DL_FOREACH(obj->groups, group)
		if (group->lid == req->mlid && !memcmp(&group->gid, req->gid, sizeof(group->gid)))
			return group;
	return NULL;
}

/* Attaching twice is attaching once, as in the kernel. */
int uv_attach_mcast(struct uv_cmd *cmd)
{
	struct ib_uverbs_attach_mcast req;
	struct uv_group *group;
	struct uobj *obj;
	int err;

	uv_request(cmd, &req, sizeof(req));
	obj = uobj_get(cmd->uf, req.qp_handle, UOBJ_QP);
	if (!obj)
		return -EINVAL;
	if (find_group(obj, &req))
		return 0;
	group = calloc(1, sizeof(*group));
	if (!group)
		return -ENOMEM;
	memcpy(&group->gid, req.gid, sizeof(group->gid));
	group->lid = req.mlid;
	err = uv_verbs(cmd->uf)->attach_mcast(obj->qp, &group->gid, group->lid);
	if (err)
		free(group);
	else
		DL_APPEND(obj->groups, group);
	return err;
}

int uv_detach_mcast(struct uv_cmd *cmd)
{
	struct ib_uverbs_attach_mcast req;
	struct uv_group *group;
	struct uobj *obj;
	int err;

	uv_request(cmd, &req, sizeof(req));
	obj = uobj_get(cmd->uf, req.qp_handle, UOBJ_QP);
	group = obj ? find_group(obj, &req) : NULL;
	if (!group)
		return -EINVAL;
	err = uv_verbs(cmd->uf)->detach_mcast(obj->qp, &group->gid, group->lid);
	if (err)
		return err;
	DL_DELETE(obj->groups, group);
	free(group);
	return 0;
}
