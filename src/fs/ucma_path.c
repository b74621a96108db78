/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path from a port to a GID: asked of the SA by an agent that lives as long
 * as the question, or looked up where the fabric has no SA. IBA 15.2.5.16.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_types.h>
#include <string.h>

#include "fabric/fabric.h"
#include "fs/ucma.h"
#include "ipoib/sa.h"

#define SA_RETRIES	3U

static struct ucma_id *id_of(struct ucma_path_query *q)
{
	return (struct ucma_id *)((char *)q - offsetof(struct ucma_id, query));
}

static struct ucma_path_query *query_of(struct task *task)
{
	return (struct ucma_path_query *)((char *)task - offsetof(struct ucma_path_query, task));
}

static void done(struct ucma_id *id, int err)
{
	ucma_path_stop(&id->query);
	id->state = err ? ID_ADDR_DONE : ID_ROUTE_DONE;
	ucma_post(id, err ? UCMA_ROUTE_ERROR : UCMA_ROUTE_RESOLVED, err);
}

void ucma_path_stop(struct ucma_path_query *q)
{
	mad_once_cancel(&q->once);
	task_cancel(id_of(q)->uf->file->ibfs->tasks, &q->task);
}

void ucma_path_set(struct ucma_id *id, const struct path_rec *rec)
{
	uint32_t flow_hop = ntohl(rec->flow_hop);
	struct cm_path *path = &id->path;

	path->slid = ntohs(rec->slid);
	path->dlid = ntohs(rec->dlid);
	path->sl = ntohs(rec->qos_sl) & 15;
	path->mtu = rec->mtu & 0x3f;
	path->rate = rec->rate & 0x3f;
	path->flow_label = flow_hop >> 8 & 0xfffff;
	path->hop_limit = flow_hop & 0xff;
	path->traffic_class = rec->tclass;
	path->global = path->hop_limit > 1;
	id->life = rec->life & 0x3f;
	id->has_path = true;
}

static void on_answer(struct mad_once *once, int err, const void *mad, size_t len)
{
	struct ucma_path_query *q = (struct ucma_path_query *)once;
	const struct umad_sa_packet *sa = mad;
	struct ucma_id *id = id_of(q);
	struct path_rec rec;

	/* The id is told of that by itself: ucma_device_gone(). */
	if (err == -ENODEV)
		return;
	if (!err && (len < MADONCE_LEN || sa->mad_hdr.status))
		err = -EHOSTUNREACH;
	if (!err) {
		memcpy(&rec, sa->data, sizeof(rec));
		ucma_path_set(id, &rec);
	}
	done(id, err);
}

int ucma_ask_sa(struct mad_once *once, struct ibfs_device *dev, unsigned int port,
		const struct ucma_question *question)
{
	struct umad_sa_packet sa = {
		.mad_hdr = {
			.base_version = UMAD_BASE_VERSION, .mgmt_class = UMAD_CLASS_SUBN_ADM,
			.class_version = UMAD_SA_CLASS_VERSION, .method = question->method,
			.attr_id = htobe16(question->attr), .tid = htobe64(arc4random()),
		},
		.comp_mask = htobe64(question->comp_mask),
	};
	struct mad_addr to = { .qpn = 1, .qkey = MADONCE_QP1_QKEY };
	struct ibv_port_attr attr;
	int err = dev->ops->query_port(dev, port, &attr);

	if (err)
		return err;
	if (!attr.sm_lid)
		return ibfs_fail(dev->ibfs, ENETUNREACH, "rdma_cm: %s has no subnet manager",
				 dev->name);
	to.lid = attr.sm_lid;
	to.sl = attr.sm_sl;
	memcpy(sa.data, question->record, question->len);
	return mad_once_send(once, dev, port, &to, &sa, false,
			     question->timeout_ms / (SA_RETRIES + 1) + 1, SA_RETRIES);
}

static int ask_path(struct ucma_id *id, unsigned int timeout_ms)
{
	struct path_rec rec = {
		.numb_path = 0x80 | 1, .pkey = htons(id->path.pkey), .qos_sl = htons(id->tos << 4),
	};
	const struct ucma_question question = {
		.method = UMAD_METHOD_GET, .attr = UMAD_SA_ATTR_PATH_REC,
		.comp_mask = PATH_DGID | PATH_SGID | PATH_REVERSIBLE | PATH_NUMB | PATH_PKEY |
			     (id->has_tos ? PATH_QOS_CLASS : 0),
		.record = &rec, .len = sizeof(rec), .timeout_ms = timeout_ms,
	};

	memcpy(rec.dgid, id->path.dgid.raw, 16);
	memcpy(rec.sgid, id->path.sgid.raw, 16);
	id->query.once.done = on_answer;
	return ucma_ask_sa(&id->query.once, id->dev, id->port, &question);
}

static void on_static(struct task *task)
{
	struct ucma_id *id = id_of(query_of(task));
	const struct port *port;
	struct ibv_port_attr attr;
	__be64 guid;

	memcpy(&guid, id->path.dgid.raw + 8, sizeof(guid));
	port = fabric_find_port_guid(id->dev->ibfs->fabric, be64toh(guid));
	if (!port || id->dev->ops->query_port(id->dev, id->port, &attr)) {
		done(id, -EHOSTUNREACH);
		return;
	}
	id->path.slid = attr.lid;
	id->path.dlid = port->lid;
	id->path.mtu = attr.active_mtu;
	id->path.rate = IBV_RATE_10_GBPS;
	id->life = attr.subnet_timeout;
	id->has_path = true;
	done(id, 0);
}

bool ucma_static_subnet(const struct ibfs_device *dev, const struct ibv_port_attr *attr)
{
	const struct fabric *fabric = dev->ibfs->fabric;

	return !attr->sm_lid && fabric && fabric->static_owned;
}

int ucma_path_ask(struct ucma_id *id, unsigned int timeout_ms)
{
	struct ibv_port_attr attr;
	int err = id->dev->ops->query_port(id->dev, id->port, &attr);

	if (err)
		return err;
	if (!ucma_static_subnet(id->dev, &attr))
		return ask_path(id, timeout_ms);
	id->query.task.fn = on_static;
	task_queue(id->dev->ibfs->tasks, &id->query.task);
	return 0;
}

int ucma_resolve_route(struct ucma_cmd *cmd)
{
	struct rdma_ucm_resolve_route req;
	struct ucma_id *id;
	int err = ucma_id_request(cmd, &req, sizeof(req), sizeof(req), &req.id, &id);

	if (err)
		return err;
	if (id->state != ID_ADDR_DONE || !id->dev)
		return -EINVAL;
	id->state = ID_ROUTE_QUERY;
	err = ucma_path_ask(id, req.timeout_ms);
	if (err)
		id->state = ID_ADDR_DONE;
	return err;
}
