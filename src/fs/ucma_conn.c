/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_cm's connections: the CM's messages as events, and commands as messages.
 * A datagram service's are a question for its QP and the answer. Kernel cma.c.
 */
#include <errno.h>
#include <string.h>

#include <ibfs/backend.h>

#include "fs/ucma.h"

#define CM_TIMEOUT	20U		/* 4.3 s: the kernel's CMA_CM_RESPONSE_TIMEOUT */
#define CM_RETRIES	15U

/* --- events of the CM: what one end may ask for the other must provide --- */

uint8_t ucma_private(uint8_t room[RDMA_MAX_PRIVATE_DATA], const void *data, size_t len)
{
	if (len > UINT8_MAX)
		len = UINT8_MAX;
	if (len)
		memcpy(room, data, len);
	return (uint8_t)len;
}

void ucma_put_ece(struct ucma_event *event, const struct cm_ece *ece)
{
	event->resp.ece = (struct rdma_ucm_ece){ ece->vendor_id, ece->options };
}

static void post_with(struct ucma_id *id, enum ucma_event_type type, int status,
		      const struct cm_event *from)
{
	struct ucma_event *event = ucma_event_new(id, type, status);
	struct rdma_ucm_conn_param *param;

	if (!event)
		return;
	param = &event->resp.param.conn;
	if (from->rep) {
		param->qp_num = from->rep->qpn;
		param->responder_resources = from->rep->initiator_depth;
		param->initiator_depth = from->rep->responder_resources;
		param->flow_control = from->rep->flow_control;
		param->rnr_retry_count = from->rep->rnr_retry_count;
		param->srq = from->rep->srq;
		ucma_put_ece(event, &from->rep->ece);
	}
	param->private_data_len = ucma_private(param->private_data, from->private_data,
					       from->private_len);
	ucma_event_post(event);
}

/* Where datagrams to the path's other end go. */
static void put_address(struct rdma_ucm_ud_param *param, const struct ucma_id *id)
{
	const struct cm_path *path = &id->path;
	const struct ibv_ah_attr ah = {
		.dlid = path->dlid, .sl = path->sl, .static_rate = path->rate,
		.port_num = id->port, .is_global = path->global,
		.grh = { .dgid = path->dgid, .flow_label = path->flow_label,
			 .hop_limit = path->hop_limit, .traffic_class = path->traffic_class },
	};

	ucma_put_ah(&param->ah_attr, &ah);
}

/* Kernel cma_sidr_rep_handler(). */
static void on_sidr_rep(struct ucma_id *id, const struct cm_event *from)
{
	const struct cm_sidr_rep *rep = from->sidr_rep;
	struct rdma_ucm_ud_param *param;
	struct ucma_event *event;
	int err;

	if (rep->status) {
		event = ucma_event_new(id, UCMA_UNREACHABLE, rep->status);
	} else {
		err = ucma_set_qkey(id, rep->qkey, 0);
		event = ucma_event_new(id, err ? UCMA_ADDR_ERROR : UCMA_ESTABLISHED, err);
	}
	if (!event)
		return;
	param = &event->resp.param.ud;
	if (event->resp.event == UCMA_ESTABLISHED) {
		param->qp_num = rep->qpn;
		param->qkey = rep->qkey;
		put_address(param, id);
	}
	param->private_data_len = ucma_private(param->private_data, from->private_data,
					       from->private_len);
	ucma_event_post(event);
}

int ucma_on_cm(struct cm_id *cm, const struct cm_event *event)
{
	struct ucma_id *id = cm_id_owner(cm);

	switch (event->type) {
	case CM_EV_REP:
		post_with(id, UCMA_CONNECT_RESPONSE, 0, event);
		return 0;
	case CM_EV_RTU:
		post_with(id, UCMA_ESTABLISHED, 0, event);
		return 0;
	case CM_EV_UNREACHABLE:
		ucma_post(id, UCMA_UNREACHABLE, -ETIMEDOUT);
		return 0;
	case CM_EV_REJ:
		post_with(id, UCMA_REJECTED, event->reason, event);
		return 0;
	case CM_EV_DREQ:
	case CM_EV_DISCONNECTED:
		if (id->state != ID_CONNECT)
			return 0;
		id->state = ID_DISCONNECT;
		post_with(id, UCMA_DISCONNECTED, 0, event);
		return 0;
	case CM_EV_SIDR_REP:
		on_sidr_rep(id, event);
		return 0;
	case CM_EV_TIMEWAIT_EXIT:
		ucma_post(id, UCMA_TIMEWAIT_EXIT, 0);
		return 0;
	default:
		return 0;
	}
}

/* --- commands --- */

/* How long the other end and the way there take: kernel cm_ack_timeout(). */
static uint8_t ack_timeout(uint8_t delay, uint8_t life)
{
	unsigned int timeout = life + 1U;

	if (timeout >= delay)
		timeout += delay + 1U >= timeout;
	else
		timeout = delay + (timeout + 1U >= delay);
	return timeout < 31 ? (uint8_t)timeout : 31;
}

static uint8_t ack_delay(const struct ucma_id *id)
{
	struct ibv_device_attr_ex attr = { 0 };

	return id->dev->ops->query_device(id->dev, &attr) ? 0 : attr.orig_attr.local_ca_ack_delay;
}

/* What the other end is told: the header, then the client's. -EINVAL: it doesn't fit. */
static int fill_private(const struct ucma_id *id, const struct rdma_ucm_conn_param *param,
			uint8_t *room, size_t size, size_t *len)
{
	size_t skip = ucma_header_len(id);

	*len = skip + param->private_data_len;
	if (*len > size)
		return -EINVAL;
	if (skip)
		ucma_header_put((struct cma_hdr *)room, id);
	memcpy(room + skip, param->private_data, param->private_data_len);
	return 0;
}

static int send_sidr_request(struct ucma_id *id, const struct rdma_ucm_conn_param *param)
{
	uint8_t private[CM_SIDR_REQ_PRIVATE] = { 0 };
	struct cm_sidr_req req = {
		.service_id = ucma_service_id(id, &id->dst), .path = id->path,
		.timeout = CM_TIMEOUT, .max_retries = CM_RETRIES, .private_data = private,
	};
	int err = fill_private(id, param, private, sizeof(private), &req.private_len);

	return err ? err : cm_send_sidr_req(id->cm, &req);
}

static int send_request(struct ucma_id *id, const struct rdma_ucm_connect *command)
{
	const struct rdma_ucm_conn_param *param = &command->conn_param;
	uint8_t private[CM_REQ_PRIVATE] = { 0 };
	struct cm_req req = {
		.service_id = ucma_service_id(id, &id->dst), .path = id->path,
		.qpn = param->qp_num, .psn = id->psn,
		.transport = id->qp_type == IBV_QPT_UC ? CM_TRANSPORT_UC : CM_TRANSPORT_RC,
		.srq = param->srq, .flow_control = param->flow_control,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.remote_cm_timeout = CM_TIMEOUT, .local_cm_timeout = CM_TIMEOUT,
		.max_cm_retries = CM_RETRIES, .ack_timeout = ack_timeout(ack_delay(id), id->life),
		.retry_count = param->retry_count < 7 ? param->retry_count : 7,
		.rnr_retry_count = param->rnr_retry_count < 7 ? param->rnr_retry_count : 7,
		.ece = { command->ece.vendor_id, command->ece.attr_mod }, .private_data = private,
	};
	int err = fill_private(id, param, private, sizeof(private), &req.private_len);

	return err ? err : cm_send_req(id->cm, &req);
}

int ucma_connect(struct ucma_cmd *cmd)
{
	struct rdma_ucm_connect req;
	struct ucma_id *id;
	int err = ucma_request(cmd, &req, sizeof(req), offsetof(struct rdma_ucm_connect, reserved));

	if (err)
		return err;
	if (!req.conn_param.valid)
		return -EINVAL;
	id = ucma_id_get(cmd->uf, req.id);
	if (!id)
		return -ENOENT;
	if (id->state != ID_ROUTE_DONE || !id->dev)
		return -EINVAL;
	err = id->cm ? 0 : cm_id_new(id->dev, id->port, ucma_on_cm, id, &id->cm);
	if (!err && id->qp_type == IBV_QPT_UD)
		err = send_sidr_request(id, &req.conn_param);
	else if (!err)
		err = send_request(id, &req);
	if (err)
		return err;
	id->responder_resources = req.conn_param.responder_resources;
	id->state = ID_CONNECT;
	return 0;
}

static int send_reply(struct ucma_id *id, const struct rdma_ucm_accept *command)
{
	const struct rdma_ucm_conn_param *param = &command->conn_param;
	const struct cm_rep rep = {
		.qpn = param->qp_num, .psn = id->psn,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth, .flow_control = param->flow_control,
		.target_ack_delay = ack_delay(id),
		.rnr_retry_count = param->rnr_retry_count < 7 ? param->rnr_retry_count : 7,
		.srq = param->srq, .ece = { command->ece.vendor_id, command->ece.attr_mod },
		.private_data = param->private_data, .private_len = param->private_data_len,
	};

	return cm_send_rep(id->cm, &rep);
}

static int send_sidr_reply(struct ucma_id *id, const struct rdma_ucm_conn_param *param, int netns)
{
	struct cm_sidr_rep rep = {
		.status = CM_SIDR_SUCCESS, .qpn = param->qp_num,
		.private_data = param->private_data, .private_len = param->private_data_len,
	};
	int err = ucma_set_qkey(id, param->qkey, netns);

	rep.qkey = id->qkey;
	return err ? err : cm_send_sidr_rep(id->cm, &rep);
}

int ucma_accept(struct ucma_cmd *cmd)
{
	struct rdma_ucm_accept req;
	struct ucma_id *id;
	int err = ucma_id_request(cmd, &req, sizeof(req), offsetof(struct rdma_ucm_accept, reserved),
				  &req.id, &id);

	if (err)
		return err;
	if (id->state != ID_CONNECT || !id->cm)
		return -EINVAL;
	if (id->qp_type == IBV_QPT_UD)
		err = send_sidr_reply(id, &req.conn_param, cmd->netns);
	/* The active end has modified its QP, and says so. */
	else if (!req.conn_param.valid)
		err = cm_send_rtu(id->cm, NULL, 0);
	else
		err = send_reply(id, &req);
	if (!err && req.conn_param.valid)
		id->uid = req.uid;
	return err;
}

int ucma_reject(struct ucma_cmd *cmd)
{
	struct rdma_ucm_reject req;
	struct cm_sidr_rep rep = { .status = CM_SIDR_REJECT };
	struct ucma_id *id;
	int err = ucma_request(cmd, &req, sizeof(req), sizeof(req));

	if (err)
		return err;
	if (!req.reason)
		req.reason = CM_REJ_CONSUMER;
	if (req.reason != CM_REJ_CONSUMER && req.reason != CM_REJ_VENDOR_OPTION)
		return -EINVAL;
	id = ucma_id_get(cmd->uf, req.id);
	if (!id)
		return -ENOENT;
	if (!id->cm)
		return -EINVAL;
	if (id->qp_type == IBV_QPT_UD) {
		rep.private_data = req.private_data;
		rep.private_len = req.private_data_len;
		return cm_send_sidr_rep(id->cm, &rep);
	}
	return cm_send_rej(id->cm, req.reason, NULL, 0, req.private_data, req.private_data_len);
}

int ucma_disconnect(struct ucma_cmd *cmd)
{
	struct rdma_ucm_disconnect req;
	struct ucma_id *id;
	int err = ucma_id_request(cmd, &req, sizeof(req), sizeof(req), &req.id, &id);

	if (err)
		return err;
	if (!id->cm || (id->state != ID_CONNECT && id->state != ID_DISCONNECT))
		return -EINVAL;
	/* There is no connection, which the kernel doesn't mind. */
	if (id->qp_type == IBV_QPT_UD)
		return 0;
	return cm_id_state(id->cm) == CM_DREQ_RCVD ? cm_send_drep(id->cm, NULL, 0) :
						     cm_send_dreq(id->cm, NULL, 0);
}
