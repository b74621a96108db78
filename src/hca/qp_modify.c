/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Modify and query QP: all is checked first, then taken over, so that a refused
 * command changes nothing. IBA 11.2.5.2, 11.2.5.3.
 */
#include <errno.h>
#include <string.h>

#include "hca/poll.h"
#include "hca/qp.h"
#include "hca/req.h"

#define ACCESS_REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
		       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND)

static bool pkey_ok(const struct port *port, unsigned int index)
{
	return port && index < port_num_pkeys(port) && port_pkey(port, index);
}

/* A path's AV leaves by the path's port, whatever it says itself. */
static bool av_ok(const struct ibfs_qp *qp, const struct ibv_ah_attr *av, unsigned int port)
{
	struct ibv_ah_attr checked = *av;

	checked.port_num = port;
	return !ah_check(qp->verbs, &checked) && av->dlid && av->dlid < LID_MCAST_FIRST;
}

/* Path attributes, with those that stay as they are where the mask doesn't say. */
static bool path_ok(const struct ibfs_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	unsigned int num = mask & IBV_QP_PORT ? attr->port_num : qp->attr.port_num;
	const struct port *port = verbs_port(qp->verbs, num);

	if (mask & IBV_QP_PORT && !port)
		return false;
	if (mask & (IBV_QP_PKEY_INDEX | IBV_QP_PORT) &&
	    !pkey_ok(port, mask & IBV_QP_PKEY_INDEX ? attr->pkey_index : qp->attr.pkey_index))
		return false;
	if (mask & IBV_QP_AV && !av_ok(qp, &attr->ah_attr, num))
		return false;
	if (mask & IBV_QP_PATH_MTU && (attr->path_mtu < IBV_MTU_256 || !port ||
				       attr->path_mtu > port->mtu_cap))
		return false;
	if (mask & IBV_QP_ALT_PATH &&
	    (!pkey_ok(verbs_port(qp->verbs, attr->alt_port_num), attr->alt_pkey_index) ||
	     !av_ok(qp, &attr->alt_ah_attr, attr->alt_port_num) || attr->alt_timeout > 31))
		return false;
	return true;
}

/* 17.2.8: by hand, to REARM from MIGRATED, or to MIGRATED from ARMED. */
static bool mig_ok(const struct ibfs_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (!(mask & IBV_QP_PATH_MIG_STATE))
		return true;
	if (attr->path_mig_state == IBV_MIG_REARM)
		return mask & IBV_QP_ALT_PATH || qp->attr.alt_ah_attr.dlid;
	return attr->path_mig_state == IBV_MIG_MIGRATED;
}

static bool numbers_ok(const struct ibv_qp_attr *attr, int mask)
{
	return !((mask & IBV_QP_RQ_PSN && attr->rq_psn & ~PSN_MASK) ||
		 (mask & IBV_QP_SQ_PSN && attr->sq_psn & ~PSN_MASK) ||
		 (mask & IBV_QP_DEST_QPN && attr->dest_qp_num & ~QPN_MASK) ||
		 (mask & IBV_QP_ACCESS_FLAGS && attr->qp_access_flags & ~(unsigned int)ACCESS_REMOTE) ||
		 (mask & IBV_QP_MAX_QP_RD_ATOMIC &&
		  attr->max_rd_atomic > verbs_limits.max_qp_init_rd_atom) ||
		 (mask & IBV_QP_MAX_DEST_RD_ATOMIC &&
		  attr->max_dest_rd_atomic > verbs_limits.max_qp_rd_atom) ||
		 (mask & IBV_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31) ||
		 (mask & IBV_QP_TIMEOUT && attr->timeout > 31) ||
		 (mask & IBV_QP_RETRY_CNT && attr->retry_cnt > 7) ||
		 (mask & IBV_QP_RNR_RETRY && attr->rnr_retry > 7));
}

static void take_path(struct ibfs_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr *own = &qp->attr;

	if (mask & IBV_QP_PKEY_INDEX)
		own->pkey_index = attr->pkey_index;
	if (mask & IBV_QP_PORT)
		own->port_num = attr->port_num;
	if (mask & IBV_QP_AV)
		own->ah_attr = attr->ah_attr;
	own->ah_attr.port_num = own->port_num;
	if (mask & IBV_QP_PATH_MTU) {
		own->path_mtu = attr->path_mtu;
		qp->mtu = 128U << attr->path_mtu;
	}
	if (mask & IBV_QP_ALT_PATH) {
		own->alt_ah_attr = attr->alt_ah_attr;
		own->alt_ah_attr.port_num = attr->alt_port_num;
		own->alt_pkey_index = attr->alt_pkey_index;
		own->alt_port_num = attr->alt_port_num;
		own->alt_timeout = attr->alt_timeout;
	}
}

static void take_numbers(struct ibv_qp_attr *own, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
		own->en_sqd_async_notify = attr->en_sqd_async_notify;
	if (mask & IBV_QP_ACCESS_FLAGS)
		own->qp_access_flags = attr->qp_access_flags;
	if (mask & IBV_QP_QKEY)
		own->qkey = attr->qkey;
	if (mask & IBV_QP_TIMEOUT)
		own->timeout = attr->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		own->retry_cnt = attr->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		own->rnr_retry = attr->rnr_retry;
	if (mask & IBV_QP_RQ_PSN)
		own->rq_psn = attr->rq_psn;
	if (mask & IBV_QP_SQ_PSN)
		own->sq_psn = attr->sq_psn;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		own->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		own->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		own->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IBV_QP_DEST_QPN)
		own->dest_qp_num = attr->dest_qp_num;
}

static void take_mig(struct ibfs_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (!(mask & IBV_QP_PATH_MIG_STATE))
		return;
	if (attr->path_mig_state == IBV_MIG_REARM)
		qp->attr.path_mig_state = IBV_MIG_REARM;
	else if (qp->attr.path_mig_state == IBV_MIG_REARM)
		qp->attr.path_mig_state = IBV_MIG_MIGRATED;
	else
		qp_migrate(qp);
}

static void enter_state(struct ibfs_qp *qp, enum ibv_qp_state next)
{
	enum ibv_qp_state from = qp->state;

	qp->state = next;
	switch (next) {
	case IBV_QPS_RESET:
		qp_reset(qp);
		break;
	case IBV_QPS_RTR:
		resp_start(qp);
		break;
	case IBV_QPS_RTS:
		if (from == IBV_QPS_RTR)
			req_start(qp);
		qp_kick(qp);
		break;
	case IBV_QPS_SQD:
		if (from == IBV_QPS_SQD)
			break;
		qp->req.drained_told = false;
		qp->req.stalled = false;
		req_advance(qp);
		qp_kick(qp);
		break;
	case IBV_QPS_ERR:
		qp_error(qp);
		break;
	default:
		break;
	}
}

int qp_modify(struct ibfs_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state next = mask & IBV_QP_STATE ? attr->qp_state : qp->state;
	int err;

	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != qp->state)
		return -EINVAL;
	if (!qp_transition_ok(qp->type, qp->state, next, mask))
		return -EINVAL;
	if (!path_ok(qp, attr, mask) || !numbers_ok(attr, mask) || !mig_ok(qp, attr, mask))
		return -EINVAL;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic != qp->resp.num_res) {
		err = resp_resources(qp, attr->max_dest_rd_atomic);
		if (err)
			return err;
	}
	take_path(qp, attr, mask);
	take_numbers(&qp->attr, attr, mask);
	take_mig(qp, attr, mask);
	if (mask & IBV_QP_STATE)
		enter_state(qp, next);
	poll_tell(qp);
	return 0;
}

void qp_query(struct ibfs_qp *qp, struct ibv_qp_attr *attr, struct ibfs_qp_init *init, uint32_t *qpn)
{
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = qp->state;
	attr->sq_draining = qp->req.wqe && req_draining(qp);
	*init = (struct ibfs_qp_init){
		.pd = qp->pd, .send_cq = qp->send_cq, .recv_cq = qp->recv_cq, .srq = qp->srq,
		.xrcd = qp->xrcd, .cap = qp->attr.cap, .type = qp->type,
		.create_flags = qp->create_flags, .sq_sig_all = qp->sq_sig_all,
		.port_num = qp_special(qp) ? qp->attr.port_num : 0,
	};
	*qpn = qp->qpn;
}
