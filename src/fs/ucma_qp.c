/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an id's QP is to be set to, and the addresses that datagrams go to.
 * Kernel cma.c: rdma_init_qp_attr(), cma_set_default_qkey().
 */
#include <errno.h>
#include <string.h>

#include <ibfs/backend.h>
#include <ibfs/ipoib.h>

#include "fs/ucma.h"

int ucma_set_qkey(struct ucma_id *id, uint32_t qkey, int netns)
{
	struct ipoib_subnet subnet;
	const struct ipoib *ip;
	int err;

	if (id->qkey)
		return qkey && qkey != id->qkey ? -EINVAL : 0;
	if (!qkey && id->ps == RDMA_PS_IPOIB) {
		ip = ucma_interface(id, netns);
		err = ip ? ipoib_subnet(ip, &subnet) : -EADDRNOTAVAIL;
		if (err)
			return err;
		qkey = subnet.qkey;
	}
	id->qkey = qkey ? qkey : UCMA_QKEY;
	return 0;
}

/* Before there is a connection: where the QP is to be. Kernel cma_ib_init_qp_attr(). */
static int attr_without_cm(struct ucma_id *id, struct ibv_qp_attr *attr, int *mask, int netns)
{
	struct ibv_port_attr port;
	uint16_t pkey;
	int err = id->dev->ops->query_port(id->dev, id->port, &port);

	if (err)
		return err;
	for (attr->pkey_index = 0; attr->pkey_index < port.pkey_tbl_len; attr->pkey_index++)
		if (!id->dev->ops->query_pkey(id->dev, id->port, attr->pkey_index, &pkey) &&
		    !((pkey ^ id->path.pkey) & 0x7fff))
			break;
	if (attr->pkey_index == port.pkey_tbl_len)
		return -EINVAL;
	attr->port_num = id->port;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (id->qp_type != IBV_QPT_UD) {
		*mask |= IBV_QP_ACCESS_FLAGS;
		return 0;
	}
	*mask |= IBV_QP_QKEY;
	err = ucma_set_qkey(id, 0, netns);
	attr->qkey = id->qkey;
	return err;
}

/* Of a connection. What the client chose goes before what the messages agreed on. */
static int attr_of_cm(const struct ucma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	int err = cm_qp_attr(id->cm, attr, mask);

	if (err)
		return err;
	if (attr->qp_state == IBV_QPS_INIT)
		attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
			(id->responder_resources ?
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC : 0);
	/* A reply goes out after the QP is ready, and tells it then. */
	if (attr->qp_state == IBV_QPS_RTS)
		attr->sq_psn = id->psn;
	if (*mask & IBV_QP_TIMEOUT && id->has_ack_timeout)
		attr->timeout = id->ack_timeout;
	return 0;
}

void ucma_put_ah(struct ib_uverbs_ah_attr *to, const struct ibv_ah_attr *from)
{
	*to = (struct ib_uverbs_ah_attr){
		.dlid = from->dlid, .sl = from->sl, .src_path_bits = from->src_path_bits,
		.static_rate = from->static_rate, .is_global = from->is_global,
		.port_num = from->port_num,
		.grh = {
			.flow_label = from->grh.flow_label,
			.sgid_index = from->grh.sgid_index,
			.hop_limit = from->grh.hop_limit,
			.traffic_class = from->grh.traffic_class,
		},
	};
	memcpy(to->grh.dgid, from->grh.dgid.raw, 16);
}

static void put_attr(struct ib_uverbs_qp_attr *to, const struct ibv_qp_attr *attr, int mask)
{
	*to = (struct ib_uverbs_qp_attr){
		.qp_attr_mask = mask, .qp_state = attr->qp_state, .cur_qp_state = attr->cur_qp_state,
		.path_mtu = attr->path_mtu, .qkey = attr->qkey, .rq_psn = attr->rq_psn,
		.sq_psn = attr->sq_psn, .dest_qp_num = attr->dest_qp_num,
		.qp_access_flags = attr->qp_access_flags,
		.pkey_index = attr->pkey_index, .max_rd_atomic = attr->max_rd_atomic,
		.max_dest_rd_atomic = attr->max_dest_rd_atomic,
		.min_rnr_timer = attr->min_rnr_timer, .port_num = attr->port_num,
		.timeout = attr->timeout, .retry_cnt = attr->retry_cnt,
		.rnr_retry = attr->rnr_retry,
	};
	ucma_put_ah(&to->ah_attr, &attr->ah_attr);
}

int ucma_init_qp_attr(struct ucma_cmd *cmd)
{
	struct rdma_ucm_init_qp_attr req;
	struct ib_uverbs_qp_attr resp;
	struct ibv_qp_attr attr = { 0 };
	struct ucma_id *id;
	int mask = 0, err;

	err = ucma_id_request(cmd, &req, sizeof(req), sizeof(req), &req.id, &id);
	if (err)
		return err;
	if (!id->dev || req.qp_state > IBV_QPS_ERR)
		return -EINVAL;
	attr.qp_state = req.qp_state;
	if (id->cm && id->qp_type != IBV_QPT_UD)
		err = attr_of_cm(id, &attr, &mask);
	else
		err = attr_without_cm(id, &attr, &mask, cmd->netns);
	if (err)
		return err;
	put_attr(&resp, &attr, mask);
	return ucma_respond(cmd, req.response, &resp, sizeof(resp), sizeof(resp));
}
