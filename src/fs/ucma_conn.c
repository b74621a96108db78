/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_cm's connections: the CM's messages as events, and commands as messages.
 * For IP addresses each request's private data begins with a header that tells
 * them. IBA annex A11; kernel cma.c.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include <ibfs/backend.h>

#include "fs/rows.h"
#include "fs/ucma.h"

#define MAX_BACKLOG	1024
#define CM_TIMEOUT	20U		/* 4.3 s: the kernel's CMA_CM_RESPONSE_TIMEOUT */
#define CM_RETRIES	15U

/* A11.3.1: in front of the private data of a request. */
struct cma_hdr {
	uint8_t version;		/* major:4 minor:4, 0 */
	uint8_t ip_version;		/* :4, then reserved */
	__be16 port;			/* of the requester */
	__be32 src[4], dst[4];		/* IPv4: the last word */
};

/* --- private data --- */

static void put_ip(__be32 to[4], const union ucma_addr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		to[3] = addr->in.sin_addr.s_addr;
	else
		memcpy(to, &addr->in6.sin6_addr, 16);
}

static void put_header(struct cma_hdr *hdr, const struct ucma_id *id)
{
	*hdr = (struct cma_hdr){
		.ip_version = id->dst.sa.sa_family == AF_INET ? 4 << 4 : 6 << 4,
		.port = htons(ucma_addr_port(&id->src)),
	};
	put_ip(hdr->src, &id->src);
	put_ip(hdr->dst, &id->dst);
}

static union ucma_addr get_ip(const struct cma_hdr *hdr, const __be32 from[4], uint16_t port)
{
	union ucma_addr addr = { .sa.sa_family = AF_UNSPEC };

	if (hdr->ip_version >> 4 == 4) {
		addr.in.sin_family = AF_INET;
		addr.in.sin_addr.s_addr = from[3];
	} else {
		addr.in6.sin6_family = AF_INET6;
		memcpy(&addr.in6.sin6_addr, from, 16);
	}
	ucma_addr_set_port(&addr, port);
	return addr;
}

static size_t header_len(const struct ucma_id *id)
{
	return id->src.sa.sa_family == AF_IB ? 0 : sizeof(struct cma_hdr);
}

/* --- events of the CM: what one end may ask for the other must provide --- */

static void put_private(struct rdma_ucm_conn_param *param, const void *data, size_t len)
{
	if (len > sizeof(param->private_data) - 1)
		len = sizeof(param->private_data) - 1;
	if (len)
		memcpy(param->private_data, data, len);
	param->private_data_len = (uint8_t)len;
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
	}
	put_private(param, from->private_data, from->private_len);
	ucma_event_post(event);
}

static int on_cm(struct cm_id *cm, const struct cm_event *event)
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
	case CM_EV_TIMEWAIT_EXIT:
		ucma_post(id, UCMA_TIMEWAIT_EXIT, 0);
		return 0;
	default:
		return 0;
	}
}

/* Connections only: 0 or -EOPNOTSUPP. */
static int check_type(const struct ucma_id *id)
{
	if (id->qp_type != IBV_QPT_UD)
		return 0;
	return ibfs_fail(id->uf->file->ibfs, EOPNOTSUPP,
			 "rdma_cm: datagram services (SIDR) aren't there");
}

/* --- listening --- */

static bool is_at(const struct ucma_id *id, const struct ucma_listener *l)
{
	return id->state == ID_LISTEN && ucma_service_id(id, &id->src) == l->service_id &&
	       (!id->dev || (id->dev == l->dev && id->port == l->port));
}

/* Does the id listen for what a request is about? hdr: of its private data. */
static bool is_meant(const struct ucma_id *id, const struct cma_hdr *hdr, bool *exactly)
{
	union ucma_addr dst;

	*exactly = false;
	if (id->src.sa.sa_family == AF_IB)
		return true;
	if (hdr->version || (hdr->ip_version >> 4 != 4 && hdr->ip_version >> 4 != 6))
		return false;
	dst = get_ip(hdr, hdr->dst, 0);
	*exactly = ucma_addr_same(&id->src, &dst);
	return *exactly || (ucma_addr_any(&id->src) &&
			    (id->src.sa.sa_family == dst.sa.sa_family ||
			     (id->src.sa.sa_family == AF_INET6 && !id->afonly)));
}

/* Of those that listen at the port, who is meant: rather one with that very address. */
static struct ucma_id *find_listening(const struct ucma_listener *l, const struct cma_hdr *hdr)
{
	struct ucma_id *id, *found = NULL;
	bool exactly;

	for (id = l->fs->ucma_ids; id; id = id->hh.next) {
		if (!is_at(id, l) || !is_meant(id, hdr, &exactly))
			continue;
		if (exactly)
			return id;
		found = id;
	}
	return found;
}

/* The new end of a request, which is the listener's to accept. */
static struct ucma_id *id_for(struct ucma_id *listening, const struct ucma_listener *l,
			      const struct cm_event *event)
{
	const struct cma_hdr *hdr = (const void *)event->private_data;
	struct ucma_id *id;

	id = ucma_id_new(listening->uf, listening->ps, listening->qp_type, 0);
	if (!id)
		return NULL;
	id->state = ID_CONNECT;
	id->passive = true;
	id->dev = l->dev;
	id->port = l->port;
	id->path = event->req->path;
	id->has_path = true;
	id->responder_resources = event->req->initiator_depth;
	id->src = listening->src;
	id->dst = listening->src;
	if (header_len(listening)) {
		id->src = get_ip(hdr, hdr->dst, ucma_addr_port(&listening->src));
		id->dst = get_ip(hdr, hdr->src, ntohs(hdr->port));
	} else {
		memcpy(id->src.ib.sib_addr, id->path.sgid.raw, 16);
		memcpy(id->dst.ib.sib_addr, id->path.dgid.raw, 16);
	}
	return id;
}

static struct ucma_event *request_event(struct ucma_id *listening, const struct cm_event *from)
{
	struct ucma_event *event = ucma_event_new(listening, UCMA_CONNECT_REQUEST, 0);
	size_t skip = header_len(listening);

	if (!event)
		return NULL;
	event->resp.param.conn = (struct rdma_ucm_conn_param){
		.qp_num = from->req->qpn,
		.responder_resources = from->req->initiator_depth,
		.initiator_depth = from->req->responder_resources,
		.flow_control = from->req->flow_control,
		.retry_count = from->req->retry_count,
		.rnr_retry_count = from->req->rnr_retry_count,
		.srq = from->req->srq,
	};
	put_private(&event->resp.param.conn, from->private_data + skip, from->private_len - skip);
	return event;
}

static int on_request(struct cm_id *cm, const struct cm_event *from)
{
	const struct ucma_listener *l = cm_id_owner(cm);
	struct ucma_id *listening, *id;
	struct ucma_event *event;

	if (from->type != CM_EV_REQ)
		return 0;
	listening = find_listening(l, (const void *)from->private_data);
	if (!listening || !listening->backlog)
		return -ECONNREFUSED;
	event = request_event(listening, from);
	id = event ? id_for(listening, l, from) : NULL;
	if (!id) {
		free(event);
		return -ENOMEM;
	}
	id->cm = from->id;
	cm_id_set(id->cm, on_cm, id);
	event->resp.id = id->num;
	event->made = id;
	listening->backlog--;
	ucma_event_post(event);
	return 0;
}

static struct ucma_listener *find_listener(const struct fs *fs, const struct ibfs_device *dev,
					   unsigned int port, uint64_t service_id)
{
	struct ucma_listener *l;

	DL_FOREACH(fs->ucma_listeners, l)
		if (l->dev == dev && l->port == port && l->service_id == service_id)
			return l;
	return NULL;
}

static int listen_port(struct fs *fs, struct ibfs_device *dev, unsigned int port,
		       uint64_t service_id)
{
	struct ucma_listener *l;
	int err;

	if (find_listener(fs, dev, port, service_id))
		return 0;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	*l = (struct ucma_listener){ .fs = fs, .dev = dev, .port = port, .service_id = service_id };
	err = cm_id_new(dev, port, on_request, l, &l->cm);
	if (!err)
		err = cm_listen(l->cm, service_id);
	if (err) {
		cm_id_free(l->cm);
		free(l);
		return err;
	}
	DL_APPEND(fs->ucma_listeners, l);
	return 0;
}

static int listen_device(struct fs *fs, struct ibfs_device *dev, uint64_t service_id)
{
	int err = 0;

	if (!uverbs_has(dev))
		return 0;
	for (unsigned int port = dev->first_port; !err && port <= dev->num_ports; port++)
		err = listen_port(fs, dev, port, service_id);
	return err;
}

static bool is_wanted(const struct ucma_listener *l)
{
	const struct ucma_id *id;

	for (id = l->fs->ucma_ids; id; id = id->hh.next)
		if (is_at(id, l))
			return true;
	return false;
}

static void drop_unwanted(struct fs *fs)
{
	struct ucma_listener *l, *tmp;

	DL_FOREACH_SAFE(fs->ucma_listeners, l, tmp) {
		if (l->dev && is_wanted(l))
			continue;
		DL_DELETE(fs->ucma_listeners, l);
		cm_id_free(l->cm);
		free(l);
	}
}

void ucma_unlisten(struct ucma_id *id)
{
	if (id->state != ID_LISTEN)
		return;
	id->state = ID_BOUND;
	drop_unwanted(id->fs);
}

void ucma_listeners_gone(struct ibfs_device *dev)
{
	struct ucma_listener *l;

	DL_FOREACH(dev->ibfs->fs->ucma_listeners, l)
		if (l->dev == dev)
			l->dev = NULL;
	drop_unwanted(dev->ibfs->fs);
}

/* Those that listen everywhere do so at a new device too. */
void ucma_device_added(struct ibfs_device *dev)
{
	struct fs *fs = dev->ibfs->fs;
	struct ucma_id *id;

	for (id = fs->ucma_ids; id; id = id->hh.next)
		if (id->state == ID_LISTEN && !id->dev)
			listen_device(fs, dev, ucma_service_id(id, &id->src));
}

static int start_listening(struct ucma_id *id)
{
	uint64_t service_id = ucma_service_id(id, &id->src);
	struct ibfs_device *dev;
	int err = 0;

	id->state = ID_LISTEN;
	if (id->dev) {
		err = listen_port(id->fs, id->dev, id->port, service_id);
	} else {
		DL_FOREACH(id->uf->file->ibfs->devices, dev)
			err = err ? err : listen_device(id->fs, dev, service_id);
	}
	if (err)
		ucma_unlisten(id);
	return err;
}

int ucma_listen(struct ucma_cmd *cmd)
{
	union ucma_addr any = { .sa.sa_family = AF_INET };
	struct rdma_ucm_listen req;
	struct ucma_id *id;
	int err = ucma_id_request(cmd, &req, sizeof(req), sizeof(req), &req.id, &id);

	if (err)
		return err;
	if (id->state == ID_IDLE)
		err = ucma_bind_addr(id, &any, &cmd->req->cred);
	if (err)
		return err;
	if (id->state != ID_BOUND)
		return -EINVAL;
	err = check_type(id);
	if (err)
		return err;
	id->backlog = req.backlog && req.backlog < MAX_BACKLOG ? (int)req.backlog : MAX_BACKLOG;
	return start_listening(id);
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

static int send_request(struct ucma_id *id, const struct rdma_ucm_conn_param *param)
{
	uint8_t private[CM_REQ_PRIVATE] = { 0 };
	size_t skip = header_len(id);
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
		.private_data = private,
	};

	if (skip + param->private_data_len > sizeof(private))
		return -EINVAL;
	if (skip)
		put_header((struct cma_hdr *)private, id);
	memcpy(private + skip, param->private_data, param->private_data_len);
	req.private_len = skip + param->private_data_len;
	return cm_send_req(id->cm, &req);
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
	err = check_type(id);
	if (!err && !id->cm)
		err = cm_id_new(id->dev, id->port, on_cm, id, &id->cm);
	if (!err)
		err = send_request(id, &req.conn_param);
	if (err)
		return err;
	id->responder_resources = req.conn_param.responder_resources;
	id->state = ID_CONNECT;
	return 0;
}

static int send_reply(struct ucma_id *id, const struct rdma_ucm_conn_param *param)
{
	const struct cm_rep rep = {
		.qpn = param->qp_num, .psn = id->psn,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth, .flow_control = param->flow_control,
		.target_ack_delay = ack_delay(id),
		.rnr_retry_count = param->rnr_retry_count < 7 ? param->rnr_retry_count : 7,
		.srq = param->srq, .private_data = param->private_data,
		.private_len = param->private_data_len,
	};

	return cm_send_rep(id->cm, &rep);
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
	/* The active end has modified its QP, and says so. */
	if (!req.conn_param.valid)
		return cm_send_rtu(id->cm, NULL, 0);
	if (req.conn_param.private_data_len > CM_REP_PRIVATE)
		return -EINVAL;
	err = send_reply(id, &req.conn_param);
	if (!err)
		id->uid = req.uid;
	return err;
}

int ucma_reject(struct ucma_cmd *cmd)
{
	struct rdma_ucm_reject req;
	struct ucma_id *id;
	int err = ucma_request(cmd, &req, sizeof(req), sizeof(req));

	if (err)
		return err;
	if (!req.reason)
		req.reason = CM_REJ_CONSUMER;
	if (req.private_data_len > CM_REJ_PRIVATE || req.reason != CM_REJ_CONSUMER)
		return -EINVAL;
	id = ucma_id_get(cmd->uf, req.id);
	if (!id)
		return -ENOENT;
	if (!id->cm)
		return -EINVAL;
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
	return cm_id_state(id->cm) == CM_DREQ_RCVD ? cm_send_drep(id->cm, NULL, 0) :
						     cm_send_dreq(id->cm, NULL, 0);
}

/* Before there is a connection: where the QP is to be. Kernel cma_ib_init_qp_attr(). */
static int attr_without_cm(const struct ucma_id *id, struct ibv_qp_attr *attr, int *mask)
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
	if (attr->pkey_index == port.pkey_tbl_len || attr->qp_state != IBV_QPS_INIT)
		return -EINVAL;
	attr->port_num = id->port;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (id->qp_type == IBV_QPT_UD) {
		attr->qkey = UCMA_QKEY;
		*mask |= IBV_QP_QKEY;
	} else {
		*mask |= IBV_QP_ACCESS_FLAGS;
	}
	return 0;
}

static void put_attr(struct ib_uverbs_qp_attr *to, const struct ibv_qp_attr *attr, int mask)
{
	const struct ibv_ah_attr *ah = &attr->ah_attr;

	*to = (struct ib_uverbs_qp_attr){
		.qp_attr_mask = mask, .qp_state = attr->qp_state, .cur_qp_state = attr->cur_qp_state,
		.path_mtu = attr->path_mtu, .qkey = attr->qkey, .rq_psn = attr->rq_psn,
		.sq_psn = attr->sq_psn, .dest_qp_num = attr->dest_qp_num,
		.qp_access_flags = attr->qp_access_flags,
		.ah_attr = {
			.dlid = ah->dlid, .sl = ah->sl, .src_path_bits = ah->src_path_bits,
			.static_rate = ah->static_rate, .is_global = ah->is_global,
			.port_num = ah->port_num,
			.grh = {
				.flow_label = ah->grh.flow_label,
				.sgid_index = ah->grh.sgid_index,
				.hop_limit = ah->grh.hop_limit,
				.traffic_class = ah->grh.traffic_class,
			},
		},
		.pkey_index = attr->pkey_index, .max_rd_atomic = attr->max_rd_atomic,
		.max_dest_rd_atomic = attr->max_dest_rd_atomic,
		.min_rnr_timer = attr->min_rnr_timer, .port_num = attr->port_num,
		.timeout = attr->timeout, .retry_cnt = attr->retry_cnt,
		.rnr_retry = attr->rnr_retry,
	};
	memcpy(to->ah_attr.grh.dgid, ah->grh.dgid.raw, 16);
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
	err = id->cm ? cm_qp_attr(id->cm, &attr, &mask) : attr_without_cm(id, &attr, &mask);
	if (err)
		return err;
	if (id->cm && attr.qp_state == IBV_QPS_INIT)
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
			(id->responder_resources ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC : 0);
	/* A reply goes out after the QP is ready, and tells it then. */
	if (id->cm && attr.qp_state == IBV_QPS_RTS)
		attr.sq_psn = id->psn;
	put_attr(&resp, &attr, mask);
	return ucma_respond(cmd, req.response, &resp, sizeof(resp), sizeof(resp));
}
