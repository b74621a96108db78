/* SPDX-License-Identifier: BSD-2-Clause */
/* uverbs commands of completion channels and completion queues. */
#include <errno.h>

#include "fs/uverbs.h"

#define RESIZE_TURNS 1000
#define NO_CHANNEL UINT64_MAX

int uv_create_comp_channel(struct uv_cmd *cmd)
{
	struct ib_uverbs_create_comp_channel_resp resp;
	struct uv_events *events = uv_events_new(cmd->uf, &cmd->req->cred, false);

	if (!events)
		return -ENOMEM;
	cmd->made_events = events;
	resp.fd = events->id;
	uv_respond(cmd, &resp, sizeof(resp));
	return 0;
}

/* No channel, or the number of its file. */
static int channel_of(struct uv_cmd *cmd, int32_t fd)
{
	cmd->fd_id = NO_CHANNEL;
	return fd < 0 ? 0 : uv_event_file_of(cmd->client, fd, &cmd->fd_id);
}

void uv_prep_create_cq(struct uv_cmd *cmd)
{
	struct ib_uverbs_create_cq req;

	uv_request(cmd, &req, sizeof(req));
	cmd->err = channel_of(cmd, req.comp_channel);
}

void uv_prep_ex_create_cq(struct uv_cmd *cmd)
{
	struct ib_uverbs_ex_create_cq req;

	uv_request(cmd, &req, sizeof(req));
	cmd->err = channel_of(cmd, req.comp_channel);
}

static void cq_comp(struct verbs_client *client)
{
	struct uobj *obj = (struct uobj *)client;

	if (obj->channel)
		uv_events_add(obj->channel, obj, obj->user_handle, 0);
}

static int find_channel(struct uv_cmd *cmd, struct uv_events **channel)
{
	*channel = NULL;
	if (cmd->fd_id == NO_CHANNEL)
		return 0;
	*channel = uv_events_find(cmd->req->ibfs->fs, cmd->fd_id);
	if (*channel && (*channel)->uf == cmd->uf && !(*channel)->async)
		return 0;
	return -EBADF;
}

/* Make the CQ and its ring: what the driver's answer needs. */
static int make(struct uv_cmd *cmd, struct uobj *obj, uint32_t cqe, struct ibfs_cq_attr *attr)
{
	const struct verbs_ops *verbs = uv_verbs(cmd->uf);
	struct rxe_create_cq_resp driver;
	struct ibfs_ring ring;
	int err;

	if (cqe > INT32_MAX)
		return -EINVAL;
	err = verbs->create_cq(cmd->uf->dev, (int)cqe, &obj->client, &obj->cq);
	if (err)
		return err;
	err = verbs->cq_ring(obj->cq, &ring);
	if (err) {
		verbs->destroy_cq(obj->cq);
		return err;
	}
	uv_mminfo(&ring, &driver.mi);
	uv_respond_driver(cmd, &driver, sizeof(driver));
	verbs->query_cq(obj->cq, attr);
	return 0;
}

static int create(struct uv_cmd *cmd, const struct ib_uverbs_ex_create_cq *req,
		  struct ib_uverbs_create_cq_resp *resp)
{
	struct ibfs_cq_attr attr;
	struct uv_events *channel;
	struct uobj *obj;
	int err;

	if (req->comp_vector > 0 || cmd->drv_out_len < sizeof(struct rxe_create_cq_resp))
		return -EINVAL;
	err = find_channel(cmd, &channel);
	if (err)
		return err;
	obj = uobj_new(cmd->uf, UOBJ_CQ);
	if (!obj)
		return -ENOMEM;
	obj->user_handle = req->user_handle;
	obj->client.comp = cq_comp;
	/* Without a channel nobody sees its events. */
	obj->client.arm = channel ? uv_space_arm(cmd->uf->space, obj->handle) : NULL;
	err = uobj_set_events(obj, cmd);
	if (!err)
		err = make(cmd, obj, req->cqe, &attr);
	if (err) {
		uobj_free(obj);
		return err;
	}
	obj->channel = channel;
	if (channel)
		uv_events_get(channel);
	cmd->made = obj;
	*resp = (struct ib_uverbs_create_cq_resp){ .cq_handle = obj->handle, .cqe = attr.cqe };
	return 0;
}

int uv_create_cq(struct uv_cmd *cmd)
{
	struct ib_uverbs_create_cq_resp resp;
	struct ib_uverbs_ex_create_cq ex;
	struct ib_uverbs_create_cq req;
	int err;

	uv_request(cmd, &req, sizeof(req));
	ex = (struct ib_uverbs_ex_create_cq){
		.user_handle = req.user_handle, .cqe = req.cqe, .comp_vector = req.comp_vector,
	};
	err = create(cmd, &ex, &resp);
	if (!err)
		uv_respond(cmd, &resp, sizeof(resp));
	return err;
}

int uv_ex_create_cq(struct uv_cmd *cmd)
{
	struct ib_uverbs_ex_create_cq_resp resp = { .response_length = sizeof(resp) };
	struct ib_uverbs_ex_create_cq req;
	int err = uv_request_ex(cmd, &req, sizeof(req));

	if (err)
		return err;
	if (req.comp_mask || req.reserved)
		return -EINVAL;
	if (req.flags)
		return -EOPNOTSUPP;
	err = create(cmd, &req, &resp.base);
	if (!err)
		uv_respond(cmd, &resp, sizeof(resp));
	return err;
}

/* Nothing to find out: it only runs behind the client's jobs before it. */
void uv_prep_resize_cq(struct uv_cmd *cmd)
{
	cmd->err = 0;
}

/*
 * What was posted before counts: requests whose bytes are still being fetched
 * from the client complete first, unless that takes for ever.
 */
int uv_resize_cq(struct uv_cmd *cmd)
{
	const struct verbs_ops *verbs = uv_verbs(cmd->uf);
	struct ib_uverbs_resize_cq_resp resp = { 0 };
	struct rxe_resize_cq_resp driver;
	struct ib_uverbs_resize_cq req;
	struct ibfs_cq_attr attr;
	struct ibfs_ring ring;
	struct uobj *obj;
	int err;

	uv_request(cmd, &req, sizeof(req));
	obj = uobj_get(cmd->uf, req.cq_handle, UOBJ_CQ);
	if (!obj || req.cqe > INT32_MAX || cmd->drv_out_len < sizeof(driver))
		return -EINVAL;
	if (verbs->cq_busy(obj->cq) && cmd->turns++ < RESIZE_TURNS)
		return UV_LATER;
	err = verbs->resize_cq(obj->cq, (int)req.cqe);
	if (!err)
		err = verbs->cq_ring(obj->cq, &ring);
	if (err)
		return err;
	verbs->query_cq(obj->cq, &attr);
	resp.cqe = attr.cqe;
	uv_mminfo(&ring, &driver.mi);
	uv_respond(cmd, &resp, sizeof(resp));
	uv_respond_driver(cmd, &driver, sizeof(driver));
	return 0;
}

int uv_ex_modify_cq(struct uv_cmd *cmd)
{
	struct ib_uverbs_ex_modify_cq req;
	struct uobj *obj;
	int err = uv_request_ex(cmd, &req, sizeof(req));

	if (err)
		return err;
	if (!req.attr_mask || req.reserved)
		return -EINVAL;
	if (req.attr_mask > IBV_CQ_ATTR_MODERATE)
		return -EOPNOTSUPP;
	obj = uobj_get(cmd->uf, req.cq_handle, UOBJ_CQ);
	if (!obj)
		return -EINVAL;
	return uv_verbs(cmd->uf)->modify_cq(obj->cq, req.attr.cq_count, req.attr.cq_period);
}

static void fill_wc(const struct ibfs_wc *wc, struct ib_uverbs_wc *to)
{
	*to = (struct ib_uverbs_wc){
		.wr_id = wc->wr_id, .status = wc->status, .opcode = wc->opcode,
		.vendor_err = wc->vendor_err, .byte_len = wc->byte_len,
		.ex.imm_data = wc->imm_data, .qp_num = wc->qp_num, .src_qp = wc->src_qp,
		.wc_flags = wc->wc_flags, .pkey_index = wc->pkey_index, .slid = wc->slid,
		.sl = wc->sl, .dlid_path_bits = wc->dlid_path_bits, .port_num = wc->port_num,
	};
}

/* As many as are asked for; room for them has to be there before one is taken. */
int uv_poll_cq(struct uv_cmd *cmd)
{
	struct ib_uverbs_poll_cq_resp *resp = (struct ib_uverbs_poll_cq_resp *)cmd->out;
	struct ib_uverbs_poll_cq req;
	struct ibfs_wc wc;
	struct uobj *obj;

	uv_request(cmd, &req, sizeof(req));
	obj = uobj_get(cmd->uf, req.cq_handle, UOBJ_CQ);
	if (!obj)
		return -EINVAL;
	if ((cmd->out_len - sizeof(*resp)) / sizeof(resp->wc[0]) < req.ne)
		return -ENOSPC;
	while (resp->count < req.ne && uv_verbs(cmd->uf)->poll_cq(obj->cq, 1, &wc) == 1)
		fill_wc(&wc, &resp->wc[resp->count++]);
	cmd->out_used = sizeof(*resp) + resp->count * sizeof(resp->wc[0]);
	return 0;
}

int uv_req_notify_cq(struct uv_cmd *cmd)
{
	struct ib_uverbs_req_notify_cq req;
	struct uobj *obj;
	int ret;

	uv_request(cmd, &req, sizeof(req));
	obj = uobj_get(cmd->uf, req.cq_handle, UOBJ_CQ);
	if (!obj)
		return -EINVAL;
	ret = uv_verbs(cmd->uf)->req_notify_cq(obj->cq, req.solicited_only, false);
	return ret < 0 ? ret : 0;
}

/* What was read of its events: libibverbs waits until all of them were acknowledged. */
int uv_destroy_cq(struct uv_cmd *cmd)
{
	struct ib_uverbs_destroy_cq_resp resp;
	struct ib_uverbs_destroy_cq req;
	struct uv_events *channel;
	struct uobj *obj;
	int err;

	uv_request(cmd, &req, sizeof(req));
	obj = uobj_get(cmd->uf, req.cq_handle, UOBJ_CQ);
	if (!obj)
		return -ENOENT;
	channel = obj->channel;
	/* From here on no event is read, so that what is reported was. */
	if (channel)
		uv_chan_reclaim(channel);
	resp = (struct ib_uverbs_destroy_cq_resp){ obj->comp_read, obj->async_read };
	err = uobj_destroy(obj);
	if (!err)
		uv_respond(cmd, &resp, sizeof(resp));
	else if (channel)
		uv_chan_refill(channel);
	return err;
}
