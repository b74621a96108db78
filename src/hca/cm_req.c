/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that arrive: known ones again, those of a QP that has a connection,
 * and new ones, which go to who listens for their service. IBA 12.6.5, 12.9.8;
 * those for a datagram service 12.11.1.
 */
#include <endian.h>
#include <string.h>

#include "hca/cm.h"

/* The path as it is from here. */
static void fill_path(struct cm_path *path, const struct cm_req_msg *msg)
{
	uint32_t flow_rate = be32toh(msg->flow_rate);

	*path = (struct cm_path){
		.slid = be16toh(msg->remote_lid), .dlid = be16toh(msg->local_lid),
		.pkey = be16toh(msg->pkey), .flow_label = flow_rate >> 12, .sl = msg->sl_local >> 4,
		.mtu = msg->mtu_rnr >> 4, .rate = flow_rate & 0x3f, .hop_limit = msg->hop_limit,
		.traffic_class = msg->traffic_class, .global = !(msg->sl_local >> 3 & 1),
	};
	memcpy(path->sgid.raw, msg->remote_gid, 16);
	memcpy(path->dgid.raw, msg->local_gid, 16);
}

static void fill_req(struct cm_req *req, const struct cm_req_msg *msg)
{
	uint32_t remote = be32toh(msg->remote_eecn), psn = be32toh(msg->psn_timeout);

	*req = (struct cm_req){
		.service_id = be64toh(msg->service_id), .qpn = be32toh(msg->qpn_resources) >> 8,
		.psn = psn >> 8, .transport = remote >> 1 & 3, .srq = msg->retries_srq >> 3 & 1,
		.flow_control = remote & 1,
		.responder_resources = be32toh(msg->qpn_resources) & 0xff,
		.initiator_depth = be32toh(msg->eecn_depth) & 0xff,
		.remote_cm_timeout = remote >> 3 & 31, .local_cm_timeout = psn >> 3 & 31,
		.max_cm_retries = msg->retries_srq >> 4, .ack_timeout = msg->ack_timeout >> 3,
		.retry_count = psn & 7, .rnr_retry_count = msg->mtu_rnr & 7,
		.ece = { be32toh(msg->vendor) & 0xffffff, be32toh(msg->hdr.attr_mod) },
		.private_data = msg->private_data, .private_len = CM_REQ_PRIVATE,
	};
	fill_path(&req->path, msg);
}

/* What of the request can't be; 0: nothing. */
static enum cm_reason fault(const struct cm_port *port, const struct cm_path *path, int *pkey,
			    int *gid)
{
	if (path->mtu < IBV_MTU_256 || path->mtu > IBV_MTU_4096)
		return CM_REJ_INVALID_MTU;
	if (!path->dlid || path->dlid >= 0xc000)
		return CM_REJ_INVALID_LID;
	*pkey = device_find_pkey(port->dev, port->num, path->pkey);
	*gid = device_find_gid(port->dev, port->num, &path->sgid);
	return *pkey < 0 || *gid < 0 ? CM_REJ_INVALID_GID : 0;
}

/* It was heard before: the answer is, too. True: nothing is left to do. */
static bool known(struct cm_port *port, const struct cm_mad *in, const struct cm_key *remote)
{
	struct cm_id *id;

	HASH_FIND(hh_remote, port->by_remote, remote, sizeof(*remote), id);
	if (!id)
		return false;
	if (id->state == CM_REP_SENT || (id->state == CM_REQ_RCVD && id->mra_sent))
		cm_resend(id);
	else if (id->state != CM_REQ_RCVD && id->tid != be64toh(in->msg.hdr.tid))
		cm_stale(port, in, &id->remote_qp, CM_MSG_REQ);
	return true;
}

static void init_passive(struct cm_id *id, const struct cm_mad *in, const struct cm_req *req)
{
	const struct cm_req_msg *msg = &in->msg.req;

	id->tid = be64toh(msg->hdr.tid);
	cm_answer_addr(&in->addr, &id->addr);
	id->path = req->path;
	id->remote_psn = req->psn;
	id->transport = req->transport;
	id->ack_timeout = req->ack_timeout;
	id->retry_count = req->retry_count;
	id->rnr_retry_count = req->rnr_retry_count;
	id->responder_resources = req->initiator_depth;
	id->initiator_depth = req->responder_resources;
	id->timeout = cm_seconds(req->local_cm_timeout);
	id->max_retries = req->max_cm_retries;
	id->state = CM_REQ_RCVD;
	cm_learn_remote(id, be64toh(msg->ca_guid), be32toh(msg->local_id), req->qpn);
}

void cm_handle_req(struct cm_port *port, const struct cm_mad *in)
{
	const struct cm_req_msg *msg = &in->msg.req;
	uint64_t guid = be64toh(msg->ca_guid), service_id = be64toh(msg->service_id);
	struct cm_event event = {
		.type = CM_EV_REQ, .private_data = msg->private_data, .private_len = CM_REQ_PRIVATE,
	};
	struct cm_id *listener;
	enum cm_reason reason;
	struct cm_key remote, qp;
	struct cm_req req;
	int pkey = 0, gid = 0;

	fill_req(&req, msg);
	cm_key_init(&remote, guid, be32toh(msg->local_id));
	cm_key_init(&qp, guid, req.qpn);
	if (known(port, in, &remote) || cm_stale(port, in, &qp, CM_MSG_REQ))
		return;
	HASH_FIND(hh_service, port->by_service, &service_id, sizeof(service_id), listener);
	reason = listener ? fault(port, &req.path, &pkey, &gid) : CM_REJ_INVALID_SERVICE_ID;
	if (!reason && cm_id_make(port, &event.id))
		reason = CM_REJ_NO_RESOURCES;
	if (reason) {
		cm_refuse(port, in, CM_MSG_REQ, reason);
		return;
	}
	event.id->pkey_index = pkey;
	event.id->gid_index = gid;
	event.req = &req;
	init_passive(event.id, in, &req);
	if (cm_tell(listener, &event))
		cm_id_free(event.id);
}

/* Who asks is known by where it is: such a request has no GUID. */
static uint64_t asker(const struct mad_addr *addr)
{
	return addr->grh ? be64toh(addr->gid.global.interface_id) : addr->lid;
}

static void init_asked(struct cm_id *id, const struct cm_mad *in, const struct cm_key *remote)
{
	id->tid = be64toh(in->msg.hdr.tid);
	id->service_id = be64toh(in->msg.sidr_req.service_id);
	id->remote_id = be32toh(in->msg.sidr_req.request_id);
	cm_answer_addr(&in->addr, &id->addr);
	id->remote = *remote;
	id->sidr = true;
	HASH_ADD(hh_remote, id->port->by_sidr, remote, sizeof(id->remote), id);
	id->state = CM_SIDR_REQ_RCVD;
}

void cm_handle_sidr_req(struct cm_port *port, const struct cm_mad *in)
{
	const struct cm_sidr_req_msg *msg = &in->msg.sidr_req;
	const struct cm_sidr_req req = {
		.service_id = be64toh(msg->service_id), .path.pkey = be16toh(msg->pkey),
	};
	struct cm_event event = {
		.type = CM_EV_SIDR_REQ, .sidr_req = &req, .private_data = msg->private_data,
		.private_len = CM_SIDR_REQ_PRIVATE,
	};
	struct cm_id *listener, *known;
	struct cm_key remote;

	cm_key_init(&remote, asker(&in->addr), be32toh(msg->request_id));
	HASH_FIND(hh_remote, port->by_sidr, &remote, sizeof(remote), known);
	if (known)	/* who listens hasn't answered yet */
		return;
	HASH_FIND(hh_service, port->by_service, &req.service_id, sizeof(req.service_id), listener);
	if (!listener) {
		cm_refuse_sidr(port, in, CM_SIDR_UNSUPPORTED);
		return;
	}
	if (cm_id_make(port, &event.id)) {
		cm_refuse_sidr(port, in, CM_SIDR_REJECT);
		return;
	}
	init_asked(event.id, in, &remote);
	if (cm_tell(listener, &event))
		cm_id_free(event.id);
}
