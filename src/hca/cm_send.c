/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an end sends, IBA 12.6: REQ and REP wait for their answer and DREQ for
 * its, each is kept to be sent again. The messages of a conversation have the
 * TID of the one that began it (12.5.2.1).
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/cm.h"

#define CM_QKEY		0x80010000U
#define DEFAULT_TIMEOUT	18		/* about 1 s */
#define NUM24		0xffffffU

static void fill_header(union cm_msg *msg, uint16_t attr, uint64_t tid)
{
	memset(msg, 0, sizeof(*msg));
	msg->hdr = (struct umad_hdr){
		.base_version = UMAD_BASE_VERSION, .mgmt_class = UMAD_CLASS_CM,
		.class_version = CM_CLASS_VERSION, .method = UMAD_METHOD_SEND,
		.tid = htobe64(tid), .attr_id = htobe16(attr),
	};
}

/* Every message but REQ begins with both IDs. */
static void fill_ids(const struct cm_id *id, union cm_msg *msg, uint16_t attr, uint64_t tid)
{
	fill_header(msg, attr, tid);
	msg->rtu.local_id = htobe32(id->local_id);
	msg->rtu.remote_id = htobe32(id->remote_id);
}

static void fill_private(uint8_t *room, const void *data, size_t len)
{
	if (len)
		memcpy(room, data, len);
}

void cm_resend(struct cm_id *id)
{
	/* What can't be sent is lost; the timer sends it again. */
	cm_transmit(id->port, &id->addr, &id->msg);
}

/* Into a state in which an answer to id->msg is waited for. */
static int send_and_wait(struct cm_id *id, enum cm_state state)
{
	int err = cm_transmit(id->port, &id->addr, &id->msg);

	if (err)
		return err;
	id->state = state;
	id->retries = id->max_retries;
	cm_arm(id, id->timeout);
	return 0;
}

/* The path's addresses in this end's tables, and the other end's CM. */
static int set_path(struct cm_id *id, const struct cm_path *path)
{
	const struct cm_port *port = id->port;
	int pkey = device_find_pkey(port->dev, port->num, path->pkey);
	int gid = device_find_gid(port->dev, port->num, &path->sgid);

	if (pkey < 0 || gid < 0)
		return -EINVAL;
	id->path = *path;
	id->pkey_index = pkey;
	id->gid_index = gid;
	id->addr = (struct mad_addr){
		.lid = path->dlid, .sl = path->sl, .qpn = 1, .qkey = CM_QKEY, .pkey_index = pkey,
		.grh = path->global, .gid_index = gid, .gid = path->dgid,
		.hop_limit = path->hop_limit, .traffic_class = path->traffic_class,
		.flow_label = path->flow_label,
	};
	return 0;
}

static void fill_path(struct cm_req_msg *msg, const struct cm_path *path)
{
	msg->pkey = htobe16(path->pkey);
	msg->local_lid = htobe16(path->slid);
	msg->remote_lid = htobe16(path->dlid);
	memcpy(msg->local_gid, path->sgid.raw, 16);
	memcpy(msg->remote_gid, path->dgid.raw, 16);
	msg->flow_rate = htobe32(path->flow_label << 12 | (path->rate & 0x3f));
	msg->traffic_class = path->traffic_class;
	msg->hop_limit = path->hop_limit;
	msg->sl_local = path->sl << 4 | (path->hop_limit <= 1) << 3;
}

static void fill_req(struct cm_id *id, const struct cm_req *req)
{
	struct cm_req_msg *msg = &id->msg.req;

	fill_header(&id->msg, UMAD_CM_ATTR_REQ, id->tid);
	msg->hdr.attr_mod = htobe32(req->ece.options);
	msg->local_id = htobe32(id->local_id);
	msg->vendor = htobe32(req->ece.vendor_id & NUM24);
	msg->service_id = htobe64(req->service_id);
	msg->ca_guid = htobe64(cm_port_guid(id->port));
	msg->qpn_resources = htobe32(req->qpn << 8 | req->responder_resources);
	msg->eecn_depth = htobe32(req->initiator_depth);
	msg->remote_eecn = htobe32((req->remote_cm_timeout & 31) << 3 | (req->transport & 3) << 1 |
				   req->flow_control);
	msg->psn_timeout = htobe32(req->psn << 8 | (req->local_cm_timeout & 31) << 3 |
				   (req->retry_count & 7));
	msg->mtu_rnr = req->path.mtu << 4 | (req->rnr_retry_count & 7);
	msg->retries_srq = req->max_cm_retries << 4 | req->srq << 3;
	msg->ack_timeout = (req->ack_timeout & 31) << 3;
	fill_path(msg, &req->path);
	fill_private(msg->private_data, req->private_data, req->private_len);
}

int cm_send_req(struct cm_id *id, const struct cm_req *req)
{
	if (id->state != CM_IDLE || id->gone || req->private_len > CM_REQ_PRIVATE ||
	    req->qpn > NUM24 || req->psn > NUM24 || req->path.mtu < IBV_MTU_256 ||
	    req->path.mtu > IBV_MTU_4096 || set_path(id, &req->path))
		return -EINVAL;
	id->tid = (uint64_t)arc4random() << 32 | id->local_id;
	id->qpn = req->qpn;
	id->psn = req->psn;
	id->transport = req->transport;
	id->responder_resources = req->responder_resources;
	id->initiator_depth = req->initiator_depth;
	id->ack_timeout = req->ack_timeout;
	id->retry_count = req->retry_count;
	id->rnr_retry_count = req->rnr_retry_count;
	id->timeout = cm_seconds(req->remote_cm_timeout);
	id->max_retries = req->max_cm_retries;
	id->mra_sent = false;
	fill_req(id, req);
	return send_and_wait(id, CM_REQ_SENT);
}

int cm_send_mra(struct cm_id *id, uint8_t service_timeout, const void *data, size_t len)
{
	unsigned int message = id->state == CM_REQ_RCVD ? CM_MSG_REQ : CM_MSG_REP;

	if ((id->state != CM_REQ_RCVD && id->state != CM_REP_RCVD) || len > CM_MRA_PRIVATE)
		return -EINVAL;
	fill_ids(id, &id->msg, UMAD_CM_ATTR_MRA, id->tid);
	id->msg.mra.message = message << 6;
	id->msg.mra.timeout = (service_timeout & 31) << 3;
	fill_private(id->msg.mra.private_data, data, len);
	id->mra_sent = true;
	return cm_transmit(id->port, &id->addr, &id->msg);
}

static void fill_rej(struct cm_rej_msg *msg, unsigned int message, enum cm_reason reason)
{
	msg->message = message << 6;
	msg->reason = htobe16(reason);
}

int cm_send_rej(struct cm_id *id, enum cm_reason reason, const void *ari, size_t ari_len,
		const void *data, size_t len)
{
	unsigned int message = CM_MSG_OTHER;

	if (id->state < CM_REQ_SENT || id->state > CM_REP_RCVD || ari_len > CM_ARI ||
	    len > CM_REJ_PRIVATE)
		return -EINVAL;
	if (id->state == CM_REQ_RCVD)
		message = CM_MSG_REQ;
	else if (id->state == CM_REP_RCVD)
		message = CM_MSG_REP;
	fill_ids(id, &id->msg, UMAD_CM_ATTR_REJ, id->tid);
	fill_rej(&id->msg.rej, message, reason);
	id->msg.rej.ari_len = ari_len << 1;
	fill_private(id->msg.rej.ari, ari, ari_len);
	fill_private(id->msg.rej.private_data, data, len);
	cm_transmit(id->port, &id->addr, &id->msg);
	cm_idle(id);
	return 0;
}

int cm_send_rep(struct cm_id *id, const struct cm_rep *rep)
{
	struct cm_rep_msg *msg = &id->msg.rep;

	if (id->state != CM_REQ_RCVD || rep->private_len > CM_REP_PRIVATE || rep->qpn > NUM24 ||
	    rep->psn > NUM24)
		return -EINVAL;
	id->qpn = rep->qpn;
	id->psn = rep->psn;
	id->responder_resources = rep->responder_resources;
	id->initiator_depth = rep->initiator_depth;
	fill_ids(id, &id->msg, UMAD_CM_ATTR_REP, id->tid);
	msg->hdr.attr_mod = htobe32(rep->ece.options);
	msg->qpn = htobe32(rep->qpn << 8 | (rep->ece.vendor_id >> 16 & 0xff));
	msg->eecn = htobe32(rep->ece.vendor_id >> 8 & 0xff);
	msg->psn = htobe32(rep->psn << 8 | (rep->ece.vendor_id & 0xff));
	msg->resources = rep->responder_resources;
	msg->depth = rep->initiator_depth;
	msg->delay_flow = (rep->target_ack_delay & 31) << 3 | rep->flow_control;
	msg->rnr_srq = (rep->rnr_retry_count & 7) << 5 | rep->srq << 4;
	msg->ca_guid = htobe64(cm_port_guid(id->port));
	fill_private(msg->private_data, rep->private_data, rep->private_len);
	return send_and_wait(id, CM_REP_SENT);
}

int cm_send_rtu(struct cm_id *id, const void *data, size_t len)
{
	int err;

	if (id->state != CM_REP_RCVD || len > CM_RTU_PRIVATE)
		return -EINVAL;
	fill_ids(id, &id->msg, UMAD_CM_ATTR_RTU, id->tid);
	fill_private(id->msg.rtu.private_data, data, len);
	err = cm_transmit(id->port, &id->addr, &id->msg);
	if (!err)
		id->state = CM_ESTABLISHED;
	return err;
}

int cm_send_dreq(struct cm_id *id, const void *data, size_t len)
{
	int err;

	if (id->state != CM_ESTABLISHED || len > CM_DREQ_PRIVATE)
		return -EINVAL;
	if (!id->timeout)
		id->timeout = cm_seconds(DEFAULT_TIMEOUT);
	fill_ids(id, &id->msg, UMAD_CM_ATTR_DREQ, (uint64_t)arc4random() << 32 | id->local_id);
	id->msg.dreq.remote_qpn = htobe32(id->remote_qpn << 8);
	fill_private(id->msg.dreq.private_data, data, len);
	err = send_and_wait(id, CM_DREQ_SENT);
	if (err)	/* the other end will find out by itself */
		cm_timewait(id);
	return err;
}

int cm_send_drep(struct cm_id *id, const void *data, size_t len)
{
	uint64_t tid = id->tid;

	if (id->state != CM_DREQ_RCVD || len > CM_DREP_PRIVATE)
		return -EINVAL;
	fill_ids(id, &id->msg, UMAD_CM_ATTR_DREP, tid);
	fill_private(id->msg.rtu.private_data, data, len);
	cm_transmit(id->port, &id->addr, &id->msg);
	cm_timewait(id);
	return 0;
}

static void fill_sidr_req(struct cm_id *id, const struct cm_sidr_req *req)
{
	struct cm_sidr_req_msg *msg = &id->msg.sidr_req;

	fill_header(&id->msg, UMAD_CM_ATTR_SIDR_REQ, id->tid);
	msg->request_id = htobe32(id->local_id);
	msg->pkey = htobe16(req->path.pkey);
	msg->service_id = htobe64(req->service_id);
	fill_private(msg->private_data, req->private_data, req->private_len);
}

int cm_send_sidr_req(struct cm_id *id, const struct cm_sidr_req *req)
{
	if (id->state != CM_IDLE || id->gone || req->private_len > CM_SIDR_REQ_PRIVATE ||
	    set_path(id, &req->path))
		return -EINVAL;
	id->tid = (uint64_t)arc4random() << 32 | id->local_id;
	id->timeout = cm_seconds(req->timeout);
	id->max_retries = req->max_retries;
	fill_sidr_req(id, req);
	return send_and_wait(id, CM_SIDR_REQ_SENT);
}

static void fill_sidr_rep(union cm_msg *to, uint64_t tid, uint32_t request_id,
			  uint64_t service_id, const struct cm_sidr_rep *rep)
{
	struct cm_sidr_rep_msg *msg = &to->sidr_rep;

	fill_header(to, UMAD_CM_ATTR_SIDR_REP, tid);
	msg->request_id = htobe32(request_id);
	msg->service_id = htobe64(service_id);
	msg->status = rep->status;
	msg->qpn = htobe32(rep->qpn << 8);
	msg->qkey = htobe32(rep->qkey);
	fill_private(msg->private_data, rep->private_data, rep->private_len);
}

int cm_send_sidr_rep(struct cm_id *id, const struct cm_sidr_rep *rep)
{
	int err;

	if (id->state != CM_SIDR_REQ_RCVD || rep->private_len > CM_SIDR_REP_PRIVATE ||
	    rep->qpn > NUM24)
		return -EINVAL;
	fill_sidr_rep(&id->msg, id->tid, id->remote_id, id->service_id, rep);
	err = cm_transmit(id->port, &id->addr, &id->msg);
	if (!err)
		cm_idle(id);
	return err;
}

void cm_refuse_sidr(struct cm_port *port, const struct cm_mad *in, enum cm_sidr_status status)
{
	const struct cm_sidr_req_msg *req = &in->msg.sidr_req;
	const struct cm_sidr_rep rep = { .status = status };
	struct mad_addr to;
	union cm_msg msg;

	fill_sidr_rep(&msg, be64toh(req->hdr.tid), be32toh(req->request_id),
		      be64toh(req->service_id), &rep);
	cm_answer_addr(&in->addr, &to);
	cm_transmit(port, &to, &msg);
}

/* Back where it came from, with its IDs turned round. */
static void turn_round(const struct cm_mad *in, union cm_msg *msg, struct mad_addr *to,
		       uint16_t attr)
{
	fill_header(msg, attr, be64toh(in->msg.hdr.tid));
	msg->rtu.remote_id = in->msg.rtu.local_id;
	if (in->msg.hdr.attr_id != htobe16(UMAD_CM_ATTR_REQ))
		msg->rtu.local_id = in->msg.rtu.remote_id;
	cm_answer_addr(&in->addr, to);
}

void cm_answer_addr(const struct mad_addr *from, struct mad_addr *to)
{
	*to = *from;
	to->qpn = 1;
	to->qkey = CM_QKEY;
	to->hop_limit = 0xff;
}

void cm_refuse(struct cm_port *port, const struct cm_mad *in, unsigned int message,
	       enum cm_reason reason)
{
	struct mad_addr to;
	union cm_msg msg;

	turn_round(in, &msg, &to, UMAD_CM_ATTR_REJ);
	fill_rej(&msg.rej, message, reason);
	cm_transmit(port, &to, &msg);
}

void cm_drep_nobody(struct cm_port *port, const struct cm_mad *in)
{
	struct mad_addr to;
	union cm_msg msg;

	turn_round(in, &msg, &to, UMAD_CM_ATTR_DREP);
	cm_transmit(port, &to, &msg);
}
