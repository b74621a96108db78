/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an end is sent after the request: each message names the end that it is
 * for, and moves it on only from the states of IBA 12.9.7. All is checked: a
 * message must come from the end that the connection is with.
 */
#include <endian.h>
#include <string.h>

#include "hca/cm.h"

/* Which end it is for, if that talks, or talks not yet, with the sender. */
static struct cm_id *find(struct cm_port *port, const union cm_msg *msg)
{
	uint32_t num = be32toh(msg->rtu.remote_id);
	struct cm_id *id;

	HASH_FIND(hh_local, port->by_local, &num, sizeof(num), id);
	if (!id || id->state == CM_IDLE || id->state == CM_LISTEN)
		return NULL;
	if (id->remote.num && id->remote_id != be32toh(msg->rtu.local_id))
		return NULL;
	return id;
}

/* The last thing said is said again to who says its last thing again. */
static void again(struct cm_id *id, uint16_t attr)
{
	if (id->msg.hdr.attr_id == htobe16(attr))
		cm_resend(id);
}

bool cm_stale(struct cm_port *port, const struct cm_mad *in, const struct cm_key *qp,
	      unsigned int message)
{
	struct cm_id *old;

	HASH_FIND(hh_qp, port->by_qp, qp, sizeof(*qp), old);
	if (!old)
		return false;
	cm_refuse(port, in, message, CM_REJ_STALE_CONN);
	if (old->state == CM_ESTABLISHED)
		cm_send_dreq(old, NULL, 0);
	return true;
}

static void fill_rep(struct cm_rep *rep, const struct cm_rep_msg *msg)
{
	*rep = (struct cm_rep){
		.qpn = be32toh(msg->qpn) >> 8, .psn = be32toh(msg->psn) >> 8,
		.responder_resources = msg->resources, .initiator_depth = msg->depth,
		.target_ack_delay = msg->delay_flow >> 3, .rnr_retry_count = msg->rnr_srq >> 5,
		.srq = msg->rnr_srq >> 4 & 1, .flow_control = msg->delay_flow & 1,
		.ece = {
			.vendor_id = (be32toh(msg->qpn) & 0xff) << 16 |
				     (be32toh(msg->eecn) & 0xff) << 8 | (be32toh(msg->psn) & 0xff),
			.options = be32toh(msg->hdr.attr_mod),
		},
		.private_data = msg->private_data, .private_len = CM_REP_PRIVATE,
	};
}

static void handle_rep(struct cm_port *port, const struct cm_mad *in)
{
	const struct cm_rep_msg *msg = &in->msg.rep;
	struct cm_id *id = find(port, &in->msg);
	struct cm_event event = { .type = CM_EV_REP };
	struct cm_rep rep;
	struct cm_key qp;

	if (!id) {
		cm_refuse(port, in, CM_MSG_REP, CM_REJ_INVALID_COMM_ID);
		return;
	}
	if (id->state != CM_REQ_SENT) {
		again(id, id->state == CM_ESTABLISHED ? UMAD_CM_ATTR_RTU : UMAD_CM_ATTR_MRA);
		return;
	}
	fill_rep(&rep, msg);
	cm_key_init(&qp, be64toh(msg->ca_guid), rep.qpn);
	if (cm_stale(port, in, &qp, CM_MSG_REP)) {
		cm_idle(id);
		cm_tell_type(id, CM_EV_UNREACHABLE);
		return;
	}
	cm_disarm(id);
	cm_learn_remote(id, qp.guid, be32toh(msg->local_id), rep.qpn);
	id->remote_psn = rep.psn;
	id->responder_resources = rep.initiator_depth;
	id->initiator_depth = rep.responder_resources;
	id->rnr_retry_count = rep.rnr_retry_count;
	id->state = CM_REP_RCVD;
	event.rep = &rep;
	event.private_data = msg->private_data;
	event.private_len = CM_REP_PRIVATE;
	cm_tell(id, &event);
}

static void handle_rtu(struct cm_port *port, const struct cm_mad *in)
{
	struct cm_id *id = find(port, &in->msg);
	const struct cm_event event = {
		.type = CM_EV_RTU, .private_data = in->msg.rtu.private_data,
		.private_len = CM_RTU_PRIVATE,
	};

	/* ESTABLISHED before it only when nobody was told: cm_established(). */
	if (!id || id->state != CM_REP_SENT)
		return;
	cm_disarm(id);
	id->state = CM_ESTABLISHED;
	cm_tell(id, &event);
}

int cm_established(struct cm_id *id)
{
	if (id->state != CM_REP_SENT)
		return -EINVAL;
	cm_disarm(id);
	id->state = CM_ESTABLISHED;
	return 0;
}

/* The other end wants more time: 12.6.6. */
static void handle_mra(struct cm_port *port, const struct cm_mad *in)
{
	const struct cm_mra_msg *msg = &in->msg.mra;
	struct cm_id *id = find(port, &in->msg);
	const struct cm_event event = {
		.type = CM_EV_MRA, .private_data = msg->private_data, .private_len = CM_MRA_PRIVATE,
	};
	unsigned int message = msg->message >> 6;

	if (!id || !((id->state == CM_REQ_SENT && message == CM_MSG_REQ) ||
		     (id->state == CM_REP_SENT && message == CM_MSG_REP)))
		return;
	cm_arm(id, cm_seconds(msg->timeout >> 3) + id->timeout);
	cm_tell(id, &event);
}

/* Who gave up waiting for a REP knows no ID of ours: the ARI has its CA's GUID. 12.6.7.2 */
static struct cm_id *find_rejected(struct cm_port *port, const struct cm_rej_msg *msg)
{
	struct cm_key key;
	struct cm_id *id;
	__be64 guid;

	if (be16toh(msg->reason) != CM_REJ_TIMEOUT || msg->remote_id)
		return NULL;
	memcpy(&guid, msg->ari, sizeof(guid));
	cm_key_init(&key, be64toh(guid), be32toh(msg->local_id));
	HASH_FIND(hh_remote, port->by_remote, &key, sizeof(key), id);
	return id;
}

static void handle_rej(struct cm_port *port, const struct cm_mad *in)
{
	const struct cm_rej_msg *msg = &in->msg.rej;
	struct cm_id *id = find_rejected(port, msg);
	const struct cm_event event = {
		.type = CM_EV_REJ, .reason = be16toh(msg->reason), .ari = msg->ari,
		.private_data = msg->private_data, .private_len = CM_REJ_PRIVATE,
	};

	if (!id)
		id = find(port, &in->msg);
	if (!id)
		return;
	switch (id->state) {
	case CM_REQ_SENT:
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		cm_idle(id);
		break;
	case CM_ESTABLISHED:
	case CM_DREQ_SENT:
		cm_timewait(id);
		break;
	default:
		return;
	}
	cm_tell(id, &event);
}

static void handle_dreq(struct cm_port *port, const struct cm_mad *in)
{
	const struct cm_dreq_msg *msg = &in->msg.dreq;
	struct cm_id *id = find(port, &in->msg);
	const struct cm_event event = {
		.type = CM_EV_DREQ, .private_data = msg->private_data,
		.private_len = CM_DREQ_PRIVATE,
	};

	if (!id || !id->remote.num) {
		cm_drep_nobody(port, in);
		return;
	}
	if (id->qpn != be32toh(msg->remote_qpn) >> 8)
		return;
	switch (id->state) {
	case CM_TIMEWAIT:
		cm_drep_nobody(port, in);
		return;
	case CM_DREQ_SENT:	/* both at once: each answers the other */
		cm_drep_nobody(port, in);
		cm_timewait(id);
		cm_tell_type(id, CM_EV_DISCONNECTED);
		return;
	case CM_REP_SENT:
	case CM_ESTABLISHED:
		cm_disarm(id);
		id->tid = be64toh(msg->hdr.tid);
		id->state = CM_DREQ_RCVD;
		cm_tell(id, &event);
		return;
	default:
		return;
	}
}

static void handle_drep(struct cm_port *port, const struct cm_mad *in)
{
	struct cm_id *id = find(port, &in->msg);
	const struct cm_event event = {
		.type = CM_EV_DISCONNECTED, .private_data = in->msg.rtu.private_data,
		.private_len = CM_DREP_PRIVATE,
	};

	if (!id || id->state != CM_DREQ_SENT)
		return;
	cm_timewait(id);
	cm_tell(id, &event);
}

static void handle_sidr_rep(struct cm_port *port, const struct cm_mad *in)
{
	const struct cm_sidr_rep_msg *msg = &in->msg.sidr_rep;
	uint32_t num = be32toh(msg->request_id);
	const struct cm_sidr_rep rep = {
		.status = msg->status, .qpn = be32toh(msg->qpn) >> 8, .qkey = be32toh(msg->qkey),
	};
	const struct cm_event event = {
		.type = CM_EV_SIDR_REP, .sidr_rep = &rep, .private_data = msg->private_data,
		.private_len = CM_SIDR_REP_PRIVATE,
	};
	struct cm_id *id;

	HASH_FIND(hh_local, port->by_local, &num, sizeof(num), id);
	if (!id || id->state != CM_SIDR_REQ_SENT || id->tid != be64toh(msg->hdr.tid))
		return;
	cm_idle(id);
	cm_tell(id, &event);
}

static const struct handler {
	uint16_t attr;
	void (*fn)(struct cm_port *port, const struct cm_mad *in);
} handlers[] = {
	{ UMAD_CM_ATTR_REQ, cm_handle_req }, { UMAD_CM_ATTR_MRA, handle_mra },
	{ UMAD_CM_ATTR_REJ, handle_rej }, { UMAD_CM_ATTR_REP, handle_rep },
	{ UMAD_CM_ATTR_RTU, handle_rtu }, { UMAD_CM_ATTR_DREQ, handle_dreq },
	{ UMAD_CM_ATTR_DREP, handle_drep }, { UMAD_CM_ATTR_SIDR_REQ, cm_handle_sidr_req },
	{ UMAD_CM_ATTR_SIDR_REP, handle_sidr_rep },
};

/* Others, such as LAP, are optional: who sends them gets no answer. */
void cm_handle(struct cm_port *port, const struct cm_mad *in)
{
	for (unsigned int i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++)
		if (in->msg.hdr.attr_id == htobe16(handlers[i].attr))
			handlers[i].fn(port, in);
}
