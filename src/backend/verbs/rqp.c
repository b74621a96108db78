/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs of a system's device. QP0 and QP1 are the kernel's: their MADs go
 * by umad.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/verbs/rverbs.h"

struct qp_call {
	struct rcall call;		/* first */
	struct ibv_qp_init_attr_ex init;
	struct ibv_xrcd *xrcd;
	struct ibv_qp_attr attr;
	int mask;
	uint32_t num;
};

static void *ibv_of(void *obj)
{
	return obj ? ((struct robj *)obj)->ibv : NULL;
}

static void create_job(void *arg)
{
	struct qp_call *call = arg;
	struct ibv_qp *qp = ibv_create_qp_ex(call->call.ctx, &call->init);

	call->call.ibv = qp;
	call->call.err = qp ? 0 : -errno;
	call->num = qp ? qp->qp_num : 0;
}

static int check_type(struct rdev *rdev, const struct ibfs_qp_init *init)
{
	switch (init->type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return 0;
	default:
		return ibfs_fail(rdev->dev.ibfs, EOPNOTSUPP,
				 "%s: no process has QPs of type %s on the system's devices: use umad",
				 rdev->dev.name, qp_type_name(init->type));
	}
}

static void fill_init(struct ibv_qp_init_attr_ex *ex, const struct ibfs_qp_init *init)
{
	*ex = (struct ibv_qp_init_attr_ex){
		.send_cq = ibv_of(init->send_cq), .recv_cq = ibv_of(init->recv_cq),
		.srq = ibv_of(init->srq), .cap = init->cap, .qp_type = (enum ibv_qp_type)init->type,
		.sq_sig_all = init->sq_sig_all, .pd = ibv_of(init->pd), .xrcd = ibv_of(init->xrcd),
		.create_flags = init->create_flags,
	};
	if (init->pd)
		ex->comp_mask |= IBV_QP_INIT_ATTR_PD;
	if (init->xrcd)
		ex->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	if (init->create_flags)
		ex->comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
}

static bool init_own(const struct rdev *rdev, const struct ibfs_qp_init *init)
{
	return backend_own(robj_is(rdev, ROBJ_PD, init->pd) && robj_is(rdev, ROBJ_SRQ, init->srq) &&
			   robj_is(rdev, ROBJ_CQ, init->send_cq) &&
			   robj_is(rdev, ROBJ_CQ, init->recv_cq) &&
			   robj_is(rdev, ROBJ_XRCD, init->xrcd));
}

int rqp_create(struct ibfs_device *dev, const struct ibfs_qp_init *init,
	       struct verbs_client *client, struct ibfs_qp **out)
{
	struct rdev *rdev = rdev_of(dev);
	struct qp_call call = { 0 };
	int err = check_type(rdev, init);
	struct robj *obj;
	struct rqp *qp;

	if (err)
		return err;
	if (!init_own(rdev, init))
		return -EINVAL;
	fill_init(&call.init, init);
	err = robj_make(rdev, ROBJ_QP, sizeof(*qp), create_job, &call.call, sizeof(call),
			"make such a QP", &obj);
	if (err)
		return err;
	qp = (struct rqp *)obj;
	qp->client = qp->bill.client = client;
	qp->init = *init;
	qp->init.cap = call.init.cap;
	qp->num = call.num;
	*out = (struct ibfs_qp *)qp;
	return 0;
}

static void open_job(void *arg)
{
	struct qp_call *call = arg;
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = call->num, .xrcd = call->xrcd, .qp_type = IBV_QPT_XRC_RECV,
	};

	call->call.ibv = ibv_open_qp(call->call.ctx, &attr);
	call->call.err = call->call.ibv ? 0 : -errno;
}

int rqp_open(struct ibfs_xrcd *xrcd, uint32_t qp_num, struct verbs_client *client,
	     struct ibfs_qp **out)
{
	struct rdev *rdev = ((struct robj *)xrcd)->rdev;
	struct qp_call call = { .xrcd = ibv_of(xrcd), .num = qp_num };
	struct robj *obj;
	struct rqp *qp;
	int err;

	err = robj_make(rdev, ROBJ_QP, sizeof(*qp), open_job, &call.call, sizeof(call),
			"open a QP", &obj);
	if (err)
		return err;
	qp = (struct rqp *)obj;
	qp->client = qp->bill.client = client;
	qp->init = (struct ibfs_qp_init){ .xrcd = xrcd, .type = IBV_QPT_XRC_RECV };
	qp->num = qp_num;
	*out = (struct ibfs_qp *)qp;
	return 0;
}

static void modify_job(void *arg)
{
	struct qp_call *call = arg;

	call->call.err = -ibv_modify_qp(call->call.ibv, &call->attr, call->mask);
}

int rqp_modify(struct ibfs_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct rqp *rqp = (struct rqp *)qp;
	struct qp_call call = { .call.ibv = rqp->obj.ibv, .attr = *attr, .mask = mask };
	int err;

	/* The kernel wants the port in the path, too. */
	if (mask & IBV_QP_PORT)
		call.attr.ah_attr.port_num = attr->port_num;
	else if (!attr->ah_attr.port_num)
		call.attr.ah_attr.port_num = rqp->port;
	if (mask & IBV_QP_ALT_PATH && !attr->alt_ah_attr.port_num)
		call.attr.alt_ah_attr.port_num = attr->alt_port_num;
	err = rcall(rqp->obj.rdev, modify_job, &call, sizeof(call), "modify it");
	if (!err && mask & IBV_QP_PORT)
		rqp->port = attr->port_num;
	if (!err && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		rqp_rings_reset(rqp);
	return err;
}

void rqp_error(struct rqp *qp)
{
	const struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	rqp_modify((struct ibfs_qp *)qp, &attr, IBV_QP_STATE);
}

static void query_job(void *arg)
{
	struct qp_call *call = arg;
	struct ibv_qp_init_attr init;

	call->call.err = -ibv_query_qp(call->call.ibv, &call->attr,
				       IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_PKEY_INDEX |
				       IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_ALT_PATH |
				       IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN | IBV_QP_PATH_MIG_STATE |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_CAP | IBV_QP_DEST_QPN |
				       IBV_QP_ACCESS_FLAGS, &init);
}

void rqp_query(struct ibfs_qp *qp, struct ibv_qp_attr *attr, struct ibfs_qp_init *init,
	       uint32_t *qp_num)
{
	struct rqp *rqp = (struct rqp *)qp;
	struct qp_call call = { .call.ibv = rqp->obj.ibv };

	if (rcall(rqp->obj.rdev, query_job, &call, sizeof(call), "query it"))
		call.attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR };
	*attr = call.attr;
	*init = rqp->init;
	*qp_num = rqp->num;
}

int rqp_destroy(struct ibfs_qp *qp, struct verbs_client *client)
{
	(void)client;
	return robj_destroy((struct robj *)qp);
}
