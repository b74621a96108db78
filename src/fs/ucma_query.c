/* SPDX-License-Identifier: BSD-2-Clause */
/* What an rdma_cm id is about: addresses, GIDs, path. Kernel ucma.c. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include <ibfs/backend.h>

#include "fs/ucma.h"
#include "ipoib/sa.h"

/* The header of a path in RDMA_USER_CM_QUERY_PATH's answer, and the path. */
struct path_answer {
	uint32_t num_paths, reserved;
	struct ib_path_rec_data data;
};

static void put_route(struct ib_user_path_rec *to, const struct ucma_id *id)
{
	const struct cm_path *path = &id->path;

	memcpy(to->dgid, path->dgid.raw, 16);
	memcpy(to->sgid, path->sgid.raw, 16);
	to->pkey = htobe16(path->pkey);
	if (!id->has_path)
		return;
	to->dlid = htobe16(path->dlid);
	to->slid = htobe16(path->slid);
	to->flow_label = htobe32(path->flow_label);
	to->reversible = 1;
	to->mtu = path->mtu;
	to->hop_limit = path->hop_limit;
	to->traffic_class = path->traffic_class;
	to->numb_path = 1;
	to->sl = path->sl;
	to->mtu_selector = to->rate_selector = to->packet_life_time_selector = 2;
	to->rate = path->rate;
	to->packet_life_time = id->life;
}

int ucma_query_route(struct ucma_cmd *cmd)
{
	struct rdma_ucm_query_route_resp resp = { 0 };
	struct rdma_ucm_query req;
	struct ucma_id *id;
	int err = ucma_id_request(cmd, &req, sizeof(req), offsetof(struct rdma_ucm_query, option),
				  &req.id, &id);

	if (err)
		return err;
	if (id->src.sa.sa_family == AF_IB)
		return -EINVAL;
	memcpy(&resp.src_addr, &id->src.in6, ucma_addr_len(&id->src));
	memcpy(&resp.dst_addr, &id->dst.in6, ucma_addr_len(&id->dst));
	if (id->dev) {
		resp.node_guid = htobe64(id->dev->node_guid);
		resp.port_num = id->port;
		resp.ibdev_index = id->dev->num;
		resp.num_paths = id->has_path;
		put_route(&resp.ib_route[0], id);
	}
	return ucma_respond(cmd, req.response, &resp, sizeof(resp),
			    offsetof(struct rdma_ucm_query_route_resp, ibdev_index));
}

static void put_device(struct rdma_ucm_query_addr_resp *resp, const struct ucma_id *id)
{
	resp->pkey = htobe16(id->path.pkey);
	if (!id->dev)
		return;
	resp->node_guid = htobe64(id->dev->node_guid);
	resp->port_num = id->port;
	resp->ibdev_index = id->dev->num;
}

static int answer_addr(struct ucma_cmd *cmd, uint64_t at, const struct ucma_id *id)
{
	struct rdma_ucm_query_addr_resp resp = {
		.src_size = ucma_addr_len(&id->src), .dst_size = ucma_addr_len(&id->dst),
	};

	memcpy(&resp.src_addr, &id->src, resp.src_size);
	memcpy(&resp.dst_addr, &id->dst, resp.dst_size);
	put_device(&resp, id);
	return ucma_respond(cmd, at, &resp, sizeof(resp),
			    offsetof(struct rdma_ucm_query_addr_resp, ibdev_index));
}

static void put_gid(struct __kernel_sockaddr_storage *to, const union ibv_gid *gid,
		    const struct ucma_id *id, const union ucma_addr *addr)
{
	struct ucma_sockaddr_ib ib = {
		.sib_family = AF_IB, .sib_pkey = htobe16(id->path.pkey),
		.sib_sid_mask = UINT64_MAX,
	};

	memcpy(ib.sib_addr, gid->raw, 16);
	ib.sib_sid = ucma_addr_len(addr) ? htobe64(ucma_service_id(id, addr)) : 0;
	memcpy(to, &ib, sizeof(ib));
}

static int answer_gid(struct ucma_cmd *cmd, uint64_t at, const struct ucma_id *id)
{
	struct rdma_ucm_query_addr_resp resp = {
		.src_size = sizeof(struct ucma_sockaddr_ib),
		.dst_size = sizeof(struct ucma_sockaddr_ib),
	};

	put_gid(&resp.src_addr, &id->path.sgid, id, &id->src);
	put_gid(&resp.dst_addr, &id->path.dgid, id, &id->dst);
	put_device(&resp, id);
	return ucma_respond(cmd, at, &resp, sizeof(resp),
			    offsetof(struct rdma_ucm_query_addr_resp, ibdev_index));
}

static int answer_path(struct ucma_cmd *cmd, uint64_t at, const struct ucma_id *id)
{
	const struct cm_path *path = &id->path;
	struct path_rec rec = {
		.dlid = htobe16(path->dlid), .slid = htobe16(path->slid),
		.flow_hop = htobe32(path->flow_label << 8 | path->hop_limit),
		.tclass = path->traffic_class, .numb_path = 0x80 | 1, .pkey = htobe16(path->pkey),
		.qos_sl = htobe16(path->sl), .mtu = SA_EXACTLY | path->mtu,
		.rate = SA_EXACTLY | path->rate, .life = SA_EXACTLY | id->life,
	};
	struct path_answer resp = {
		.num_paths = id->has_path,
		.data.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL,
	};

	_Static_assert(sizeof(rec) == sizeof(resp.data.path_rec), "a PathRecord");
	memcpy(rec.dgid, path->dgid.raw, 16);
	memcpy(rec.sgid, path->sgid.raw, 16);
	memcpy(resp.data.path_rec, &rec, sizeof(rec));
	return ucma_respond(cmd, at, &resp,
			    id->has_path ? sizeof(resp) : offsetof(struct path_answer, data),
			    offsetof(struct path_answer, data));
}

int ucma_query(struct ucma_cmd *cmd)
{
	struct rdma_ucm_query req;
	struct ucma_id *id;
	int err = ucma_id_request(cmd, &req, sizeof(req), sizeof(req), &req.id, &id);

	if (err)
		return err;
	switch (req.option) {
	case RDMA_USER_CM_QUERY_ADDR:
		return answer_addr(cmd, req.response, id);
	case RDMA_USER_CM_QUERY_PATH:
		return answer_path(cmd, req.response, id);
	case RDMA_USER_CM_QUERY_GID:
		return answer_gid(cmd, req.response, id);
	default:
		return -ENOSYS;
	}
}
