/* SPDX-License-Identifier: BSD-2-Clause */
/* What a QP is set to for its connection: IBA 12.9.7, 11.2.5.2. */
#include <errno.h>

#include "hca/cm.h"

static void fill_rtr(const struct cm_id *id, struct ibv_qp_attr *attr)
{
	const struct cm_path *path = &id->path;

	attr->ah_attr = (struct ibv_ah_attr){
		.dlid = path->dlid, .sl = path->sl, .static_rate = path->rate,
		.port_num = id->port->num, .is_global = path->global,
		.grh = { .dgid = path->dgid, .sgid_index = id->gid_index,
			 .flow_label = path->flow_label, .hop_limit = path->hop_limit,
			 .traffic_class = path->traffic_class },
	};
	attr->path_mtu = path->mtu;
	attr->dest_qp_num = id->remote_qpn;
	attr->rq_psn = id->remote_psn;
	attr->max_dest_rd_atomic = id->responder_resources;
	attr->min_rnr_timer = 0;
}

int cm_qp_attr(struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	bool reliable = id->transport != CM_TRANSPORT_UC;

	if (id->state < CM_REQ_SENT || id->state > CM_ESTABLISHED)
		return -EINVAL;
	*mask = IBV_QP_STATE;
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		attr->pkey_index = id->pkey_index;
		attr->port_num = id->port->num;
		attr->qp_access_flags = 0;
		*mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
		return 0;
	case IBV_QPS_RTR:
		if (id->state == CM_REQ_SENT)
			return -EINVAL;
		fill_rtr(id, attr);
		*mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
		if (reliable)
			*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		return 0;
	case IBV_QPS_RTS:
		attr->sq_psn = id->psn;
		attr->timeout = id->ack_timeout;
		attr->retry_cnt = id->retry_count;
		attr->rnr_retry = id->rnr_retry_count;
		attr->max_rd_atomic = id->initiator_depth;
		*mask |= IBV_QP_SQ_PSN;
		if (reliable)
			*mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				 IBV_QP_MAX_QP_RD_ATOMIC;
		return 0;
	default:
		return -EINVAL;
	}
}
