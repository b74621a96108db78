/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who listens, and the requests that come: each makes an id, which is told with
 * a CONNECT_REQUEST. Kernel cma.c: rdma_listen(), cma_ib_req_handler().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include <ibfs/backend.h>

#include "fs/rows.h"
#include "fs/ucma.h"

#define MAX_BACKLOG	1024

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
	dst = ucma_header_ip(hdr, hdr->dst, 0);
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

/* Who asks whom: as the private data's header says, or as the ports are. */
static void set_addresses(struct ucma_id *id, const struct ucma_id *listening,
			  const struct cma_hdr *hdr)
{
	id->src = id->dst = listening->src;
	if (ucma_header_len(listening)) {
		id->src = ucma_header_ip(hdr, hdr->dst, ucma_addr_port(&listening->src));
		id->dst = ucma_header_ip(hdr, hdr->src, ntohs(hdr->port));
	} else {
		memcpy(id->src.ib.sib_addr, id->path.sgid.raw, 16);
		memcpy(id->dst.ib.sib_addr, id->path.dgid.raw, 16);
	}
}

/* The new end of a request, which is the listener's to accept. */
static struct ucma_id *id_for(struct ucma_id *listening, const struct ucma_listener *l,
			      const struct cm_event *event)
{
	struct ucma_id *id = ucma_id_new(listening->uf, listening->ps, listening->qp_type, 0);

	if (!id)
		return NULL;
	id->state = ID_CONNECT;
	id->passive = true;
	if (event->req) {
		id->dev = l->dev;
		id->port = l->port;
		id->path = event->req->path;
		id->has_path = true;
		id->responder_resources = event->req->initiator_depth;
	} else if (ucma_bind_port(id, l->dev, l->port, event->sidr_req->path.pkey)) {
		ucma_id_free(id);
		return NULL;
	}
	set_addresses(id, listening, (const void *)event->private_data);
	return id;
}

static struct ucma_event *request_event(struct ucma_id *listening, const struct cm_event *from)
{
	struct ucma_event *event = ucma_event_new(listening, UCMA_CONNECT_REQUEST, 0);
	size_t skip = ucma_header_len(listening), len = from->private_len - skip;
	const uint8_t *data = from->private_data + skip;
	struct rdma_ucm_ud_param *ud;

	if (!event)
		return NULL;
	if (!from->req) {
		ud = &event->resp.param.ud;
		ud->private_data_len = ucma_private(ud->private_data, data, len);
		return event;
	}
	event->resp.param.conn = (struct rdma_ucm_conn_param){
		.qp_num = from->req->qpn,
		.responder_resources = from->req->initiator_depth,
		.initiator_depth = from->req->responder_resources,
		.flow_control = from->req->flow_control,
		.retry_count = from->req->retry_count,
		.rnr_retry_count = from->req->rnr_retry_count,
		.srq = from->req->srq,
	};
	ucma_put_ece(event, &from->req->ece);
	event->resp.param.conn.private_data_len =
		ucma_private(event->resp.param.conn.private_data, data, len);
	return event;
}

static int on_request(struct cm_id *cm, const struct cm_event *from)
{
	const struct ucma_listener *l = cm_id_owner(cm);
	struct ucma_id *listening, *id;
	struct ucma_event *event;

	if (from->type != CM_EV_REQ && from->type != CM_EV_SIDR_REQ)
		return 0;
	listening = find_listening(l, (const void *)from->private_data);
	if (!listening || !listening->backlog ||
	    (listening->qp_type == IBV_QPT_UD) != (from->type == CM_EV_SIDR_REQ))
		return -ECONNREFUSED;
	event = request_event(listening, from);
	id = event ? id_for(listening, l, from) : NULL;
	if (!id) {
		free(event);
		return -ENOMEM;
	}
	id->cm = from->id;
	cm_id_set(id->cm, ucma_on_cm, id);
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
	id->fs->ucma_listening--;
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
	id->fs->ucma_listening++;
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
		err = ucma_bind_addr(id, &any, cmd);
	if (err)
		return err;
	if (id->state != ID_BOUND)
		return -EINVAL;
	id->backlog = req.backlog && req.backlog < MAX_BACKLOG ? (int)req.backlog : MAX_BACKLOG;
	return start_listening(id);
}
