/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests to a system's device: struct ibfs_wr to libibverbs'. What is
 * posted is copied, so that the hand needs nothing of the caller's.
 */
#include <errno.h>
#include <string.h>

#include "backend/verbs/rverbs.h"

struct post_call {
	struct rcall call;		/* first */
	struct ibv_send_wr wr;
	struct ibv_recv_wr recv;
	struct ibv_mw_bind bind;	/* type 1 */
	struct ibv_sge sge[RPOST_SGE];
	uint8_t data[RPOST_INLINE];
	uint8_t header[RPOST_HEADER];
};

static const int opcodes[IBFS_WR_OPCODES] = {
	[IBFS_WR_RDMA_WRITE] = IBV_WR_RDMA_WRITE + 1,
	[IBFS_WR_RDMA_WRITE_WITH_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM + 1,
	[IBFS_WR_SEND] = IBV_WR_SEND + 1,
	[IBFS_WR_SEND_WITH_IMM] = IBV_WR_SEND_WITH_IMM + 1,
	[IBFS_WR_RDMA_READ] = IBV_WR_RDMA_READ + 1,
	[IBFS_WR_ATOMIC_CMP_AND_SWP] = IBV_WR_ATOMIC_CMP_AND_SWP + 1,
	[IBFS_WR_ATOMIC_FETCH_AND_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD + 1,
	[IBFS_WR_LOCAL_INV] = IBV_WR_LOCAL_INV + 1,
	[IBFS_WR_BIND_MW] = IBV_WR_BIND_MW + 1,
	[IBFS_WR_SEND_WITH_INV] = IBV_WR_SEND_WITH_INV + 1,
	[IBFS_WR_LSO] = IBV_WR_TSO + 1,
};

/* Errors are positive errnos here, and a driver's own. */
static void send_job(void *arg)
{
	struct post_call *call = arg;
	struct ibv_send_wr *bad;

	call->wr.sg_list = call->sge;
	if (call->wr.send_flags & IBV_SEND_INLINE)
		call->sge[0].addr = (uintptr_t)call->data;
	if (call->wr.opcode == IBV_WR_TSO)
		call->wr.tso.hdr = call->header;
	call->call.err = -ibv_post_send(call->call.ibv, &call->wr, &bad);
}

static void bind_job(void *arg)
{
	struct post_call *call = arg;

	call->call.err = -ibv_bind_mw(call->call.ibv, call->wr.bind_mw.mw, &call->bind);
}

static int refuse(const struct rqp *qp, const char *what)
{
	return ibfs_fail(qp->obj.rdev->dev.ibfs, EOPNOTSUPP, "%s: no process can post %s on it",
			 qp->obj.rdev->dev.name, what);
}

static int fill_data(struct post_call *call, const struct ibfs_wr *wr)
{
	if (wr->send_flags & IBV_SEND_INLINE) {
		if (wr->inline_len > sizeof(call->data))
			return -EINVAL;
		memcpy(call->data, wr->inline_data, wr->inline_len);
		call->sge[0].length = wr->inline_len;
		call->wr.num_sge = 1;
		return 0;
	}
	if (wr->num_sge > RPOST_SGE)
		return -EINVAL;
	memcpy(call->sge, wr->sg_list, wr->num_sge * sizeof(*wr->sg_list));
	call->wr.num_sge = (int)wr->num_sge;
	return 0;
}

static int fill_ud(struct ibv_send_wr *to, const struct rqp *qp, const struct ibfs_wr *wr)
{
	const struct rah *ah = (const struct rah *)wr->ud.ah;

	if (!ah || !backend_own(robj_is(qp->obj.rdev, ROBJ_AH, ah)) ||
	    ah->pd != (const struct rpd *)qp->init.pd)
		return -EINVAL;
	to->wr.ud.ah = ah->obj.ibv;
	to->wr.ud.remote_qpn = wr->ud.remote_qpn;
	to->wr.ud.remote_qkey = wr->ud.remote_qkey;
	return 0;
}

static int fill_lso(struct post_call *call, const struct ibfs_wr *wr)
{
	if (wr->ud.hlen > sizeof(call->header))
		return -EINVAL;
	memcpy(call->header, wr->ud.header, wr->ud.hlen);
	call->wr.tso.hdr_sz = wr->ud.hlen;
	call->wr.tso.mss = wr->ud.mss;
	return 0;
}

static int fill_target(struct post_call *call, const struct rqp *qp, const struct ibfs_wr *wr)
{
	struct ibv_send_wr *to = &call->wr;
	int err;

	if (wr->opcode == IBFS_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBFS_WR_ATOMIC_FETCH_AND_ADD) {
		to->wr.atomic.remote_addr = wr->atomic.remote_addr;
		to->wr.atomic.compare_add = wr->atomic.compare_add;
		to->wr.atomic.swap = wr->atomic.swap;
		to->wr.atomic.rkey = wr->atomic.rkey;
	} else if (qp->init.type == IBV_QPT_UD) {
		err = fill_ud(to, qp, wr);
		if (err)
			return err;
	} else {
		to->wr.rdma.remote_addr = wr->rdma.remote_addr;
		to->wr.rdma.rkey = wr->rdma.rkey;
	}
	to->qp_type.xrc.remote_srqn = wr->xrc_srq_num;
	return wr->opcode == IBFS_WR_LSO ? fill_lso(call, wr) : 0;
}

static int fill_send(struct post_call *call, const struct rqp *qp, const struct ibfs_wr *wr)
{
	call->wr.wr_id = wr->wr_id;
	call->wr.opcode = (enum ibv_wr_opcode)(opcodes[wr->opcode] - 1);
	call->wr.send_flags = wr->send_flags;
	if (wr->opcode == IBFS_WR_LOCAL_INV || wr->opcode == IBFS_WR_SEND_WITH_INV)
		call->wr.invalidate_rkey = wr->ex.invalidate_rkey;
	else
		call->wr.imm_data = wr->ex.imm_data;
	if (wr->opcode == IBFS_WR_LOCAL_INV)
		return 0;
	return fill_target(call, qp, wr) ?: fill_data(call, wr);
}

/* What the window will be once the request is done; libibverbs doesn't tell. */
static void bound(struct rmw *mw, const struct rqp *qp, const struct ibfs_wr *wr)
{
	if (mw->attr.type == IBV_MW_TYPE_2)
		((struct ibv_mw *)mw->obj.ibv)->rkey = wr->bind.rkey;
	mw->attr.bound = wr->bind.length;
	mw->attr.addr = wr->bind.addr;
	mw->attr.length = wr->bind.length;
	mw->attr.access = wr->bind.access;
	mw->attr.mr_lkey = wr->bind.mr_lkey;
	mw->attr.qp_num = mw->attr.type == IBV_MW_TYPE_2 ? qp->num : 0;
}

/* Keys come from a client: its own window and region, as the QP is. */
static bool may_bind(const struct rqp *qp, const struct rmw *mw, const struct rmr *mr)
{
	const struct rpd *pd = (const struct rpd *)qp->init.pd;

	return pd && mw && mr && mr->pd == pd &&
	       ((const struct ibv_mw *)mw->obj.ibv)->pd == pd->obj.ibv;
}

static int post_bind(struct rqp *qp, const struct ibfs_wr *wr)
{
	struct rdev *rdev = qp->obj.rdev;
	struct rmw *mw = rmw_by_rkey(rdev, wr->bind.mw_rkey);
	struct rmr *mr = rmr_by_lkey(rdev, wr->bind.mr_lkey);
	struct post_call call = { .call.ibv = qp->obj.ibv };
	int err;

	if (!may_bind(qp, mw, mr))
		return -EINVAL;
	call.wr = (struct ibv_send_wr){
		.wr_id = wr->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = wr->send_flags,
		.bind_mw = { .mw = mw->obj.ibv, .rkey = wr->bind.rkey,
			     .bind_info = { .mr = mr->obj.ibv, .addr = wr->bind.addr,
					    .length = wr->bind.length,
					    .mw_access_flags = wr->bind.access } },
	};
	call.bind = (struct ibv_mw_bind){
		.wr_id = wr->wr_id, .send_flags = wr->send_flags,
		.bind_info = call.wr.bind_mw.bind_info,
	};
	err = rcall(rdev, mw->attr.type == IBV_MW_TYPE_1 ? bind_job : send_job, &call,
		    sizeof(call), "bind a memory window");
	if (!err)
		bound(mw, qp, wr);
	return err;
}

static int post_send(struct rqp *qp, const struct ibfs_wr *wr)
{
	struct post_call call = { .call.ibv = qp->obj.ibv };
	int err;

	if (wr->opcode >= IBFS_WR_OPCODES || !opcodes[wr->opcode])
		return refuse(qp, wr_opcode_name(wr->opcode) ?: "this");
	if (wr->opcode == IBFS_WR_BIND_MW)
		return post_bind(qp, wr);
	err = fill_send(&call, qp, wr);
	return err ? err : rcall(qp->obj.rdev, send_job, &call, sizeof(call), "post that");
}

int rqp_post_send(struct ibfs_qp *qp, const struct ibfs_wr *wr)
{
	struct rqp *rqp = (struct rqp *)qp;
	struct ibfs_wr own;
	int err;

	if (!wr->wr_cqe)
		return post_send(rqp, wr);
	own = *wr;
	own.send_flags |= IBV_SEND_SIGNALED;
	err = rcqe_add(rqp, wr->wr_cqe, &own.wr_id);
	if (err)
		return err;
	err = post_send(rqp, &own);
	if (err)
		rcqe_undo(rqp, own.wr_id);
	return err;
}

static int fill_recv(struct post_call *call, const struct ibfs_recv_wr *wr)
{
	if (wr->num_sge > RPOST_SGE)
		return -EINVAL;
	call->recv.wr_id = wr->wr_id;
	call->recv.num_sge = (int)wr->num_sge;
	memcpy(call->sge, wr->sg_list, wr->num_sge * sizeof(*wr->sg_list));
	return 0;
}

static void recv_job(void *arg)
{
	struct post_call *call = arg;
	struct ibv_recv_wr *bad;

	call->recv.sg_list = call->sge;
	call->call.err = -ibv_post_recv(call->call.ibv, &call->recv, &bad);
}

static void srq_recv_job(void *arg)
{
	struct post_call *call = arg;
	struct ibv_recv_wr *bad;

	call->recv.sg_list = call->sge;
	call->call.err = -ibv_post_srq_recv(call->call.ibv, &call->recv, &bad);
}

static int post_recv(struct robj *obj, void (*job)(void *arg), const struct ibfs_recv_wr *wr)
{
	struct post_call call = { .call.ibv = obj->ibv };
	int err = fill_recv(&call, wr);

	return err ? err : rcall(obj->rdev, job, &call, sizeof(call), "post that");
}

int rqp_post_recv(struct ibfs_qp *qp, const struct ibfs_recv_wr *wr)
{
	struct rqp *rqp = (struct rqp *)qp;
	struct ibfs_recv_wr own = *wr;
	int err = rcqe_add(rqp, wr->wr_cqe, &own.wr_id);

	if (err)
		return err;
	err = post_recv(&rqp->obj, recv_job, &own);
	if (err && wr->wr_cqe)
		rcqe_undo(rqp, own.wr_id);
	return err;
}

int rsrq_post(struct ibfs_srq *srq, const struct ibfs_recv_wr *wr)
{
	if (wr->wr_cqe)
		return -EINVAL;
	return post_recv((struct robj *)srq, srq_recv_job, wr);
}
