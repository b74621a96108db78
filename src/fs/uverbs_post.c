/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uverbs commands that post work requests. With none, POST_SEND is the
 * doorbell of the ring that the process maps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/uverbs.h"

/* A post command's three arrays, checked. */
struct batch {
	const uint8_t *wrs;
	const struct ib_uverbs_sge *sges;
	uint32_t num_wr, num_sge, wr_size;
	uint32_t next_sge;
};

_Static_assert(sizeof(struct ib_uverbs_sge) == sizeof(struct ibv_sge), "one layout");
_Static_assert(sizeof(struct ib_uverbs_post_send) == sizeof(struct ib_uverbs_post_recv), "one head");

static int batch_check(const struct uv_cmd *cmd, const struct ib_uverbs_post_send *req, size_t wr_min,
		       struct batch *batch)
{
	uint64_t wrs = (uint64_t)req->wqe_size * req->wr_count;
	uint64_t sges = (uint64_t)req->sge_count * sizeof(struct ib_uverbs_sge);
	uint64_t room = cmd->in_len - sizeof(*req);

	if (wrs > room || sges > room - wrs)
		return -ENOSPC;
	/* The kernel takes any size from the least on; what follows is aligned here. */
	if (req->wr_count && (req->wqe_size < wr_min || req->wqe_size % 8))
		return -EINVAL;
	*batch = (struct batch){
		.wrs = (const uint8_t *)cmd->in + sizeof(*req), .num_wr = req->wr_count,
		.num_sge = req->sge_count, .wr_size = req->wqe_size,
	};
	batch->sges = (const struct ib_uverbs_sge *)(batch->wrs + wrs);
	return 0;
}

static int take_sges(struct batch *batch, uint32_t num, const struct ibv_sge **sges)
{
	if (num > batch->num_sge - batch->next_sge)
		return -EINVAL;
	*sges = (const struct ibv_sge *)(batch->sges + batch->next_sge);
	batch->next_sge += num;
	return 0;
}

static bool is_ud(const struct uv_cmd *cmd, struct ibfs_qp *qp)
{
	struct ibfs_qp_init init;
	struct ibv_qp_attr attr;
	uint32_t qpn;

	uv_verbs(cmd->uf)->query_qp(qp, &attr, &init, &qpn);
	return init.type == IBV_QPT_UD;
}

static int fill_send(const struct uv_cmd *cmd, bool ud, const struct ib_uverbs_send_wr *raw,
		     struct ibfs_wr *wr)
{
	const struct uobj *ah;

	*wr = (struct ibfs_wr){
		.wr_id = raw->wr_id, .opcode = raw->opcode, .send_flags = raw->send_flags,
		.ex.imm_data = raw->ex.imm_data, .num_sge = raw->num_sge,
	};
	if (ud) {
		ah = uobj_get(cmd->uf, raw->wr.ud.ah, UOBJ_AH);
		if (!ah)
			return -EINVAL;
		wr->ud.ah = ah->ah;
		wr->ud.remote_qpn = raw->wr.ud.remote_qpn;
		wr->ud.remote_qkey = raw->wr.ud.remote_qkey;
		return 0;
	}
	/* The kernel's command can't say which SRQ in XRC: what is reserved does, as in rings. */
	wr->xrc_srq_num = raw->wr.rdma.reserved;
	switch (raw->opcode) {
	case IB_UVERBS_WR_RDMA_WRITE:
	case IB_UVERBS_WR_RDMA_WRITE_WITH_IMM:
	case IB_UVERBS_WR_RDMA_READ:
		wr->rdma.remote_addr = raw->wr.rdma.remote_addr;
		wr->rdma.rkey = raw->wr.rdma.rkey;
		return 0;
	case IB_UVERBS_WR_ATOMIC_CMP_AND_SWP:
	case IB_UVERBS_WR_ATOMIC_FETCH_AND_ADD:
		wr->atomic.remote_addr = raw->wr.atomic.remote_addr;
		wr->atomic.compare_add = raw->wr.atomic.compare_add;
		wr->atomic.swap = raw->wr.atomic.swap;
		wr->atomic.rkey = raw->wr.atomic.rkey;
		wr->xrc_srq_num = raw->wr.atomic.reserved;
		return 0;
	case IB_UVERBS_WR_SEND:
	case IB_UVERBS_WR_SEND_WITH_IMM:
	case IB_UVERBS_WR_SEND_WITH_INV:
	case IB_UVERBS_WR_LOCAL_INV:
		return 0;
	default:
		return -EINVAL;
	}
}

/* Which request failed, counted from 1 (0: none), goes to the client together with the error. */
static int answer(struct uv_cmd *cmd, uint32_t bad, int err)
{
	cmd->result = err;
	uv_respond(cmd, &bad, sizeof(bad));
	return 0;
}

static int post_sends(struct uv_cmd *cmd, struct ibfs_qp *qp, struct batch *batch)
{
	bool ud = is_ud(cmd, qp);

	for (uint32_t i = 0; i < batch->num_wr; i++) {
		struct ib_uverbs_send_wr raw;
		struct ibfs_wr wr;
		int err;

		memcpy(&raw, batch->wrs + (size_t)i * batch->wr_size, sizeof(raw));
		err = raw.send_flags & IBV_SEND_INLINE ? -EINVAL : fill_send(cmd, ud, &raw, &wr);
		if (!err)
			err = take_sges(batch, raw.num_sge, &wr.sg_list);
		if (!err)
			err = uv_verbs(cmd->uf)->post_send(qp, &wr);
		if (err)
			return answer(cmd, i + 1, err);
	}
	return answer(cmd, 0, 0);
}

/*
 * The doorbell's answer says that no request was bad, of none: it isn't
 * written, since that would cost a helper thread each time.
 */
int uv_post_send(struct uv_cmd *cmd)
{
	struct ib_uverbs_post_send req;
	struct batch batch;
	struct uobj *obj;
	int err;

	uv_request(cmd, &req, sizeof(req));
	err = batch_check(cmd, &req, sizeof(struct ib_uverbs_send_wr), &batch);
	if (err)
		return err;
	obj = uobj_get(cmd->uf, req.qp_handle, UOBJ_QP);
	if (!obj)
		return -EINVAL;
	if (!batch.num_wr) {
		uv_bell_written(cmd->uf, obj);
		return uv_verbs(cmd->uf)->doorbell(obj->qp);
	}
	return post_sends(cmd, obj->qp, &batch);
}

static int post_recvs(struct uv_cmd *cmd, struct uobj *obj, struct batch *batch)
{
	const struct verbs_ops *verbs = uv_verbs(cmd->uf);

	for (uint32_t i = 0; i < batch->num_wr; i++) {
		struct ib_uverbs_recv_wr raw;
		struct ibfs_recv_wr wr;
		int err;

		memcpy(&raw, batch->wrs + (size_t)i * batch->wr_size, sizeof(raw));
		wr = (struct ibfs_recv_wr){ .wr_id = raw.wr_id, .num_sge = raw.num_sge };
		err = take_sges(batch, raw.num_sge, &wr.sg_list);
		if (!err && obj->type == UOBJ_SRQ)
			err = verbs->post_srq_recv(obj->srq, &wr);
		else if (!err)
			err = verbs->post_recv(obj->qp, &wr);
		if (err)
			return answer(cmd, i + 1, err);
	}
	return answer(cmd, 0, 0);
}

static int post_to(struct uv_cmd *cmd, enum uobj_type type)
{
	struct ib_uverbs_post_send req;
	struct batch batch;
	struct uobj *obj;
	int err;

	uv_request(cmd, &req, sizeof(req));
	err = batch_check(cmd, &req, sizeof(struct ib_uverbs_recv_wr), &batch);
	if (err)
		return err;
	obj = uobj_get(cmd->uf, req.qp_handle, type);
	return obj ? post_recvs(cmd, obj, &batch) : -EINVAL;
}

int uv_post_recv(struct uv_cmd *cmd)
{
	return post_to(cmd, UOBJ_QP);
}

int uv_post_srq_recv(struct uv_cmd *cmd)
{
	return post_to(cmd, UOBJ_SRQ);
}
