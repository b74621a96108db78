/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options of an id. A value stays in the client's memory, and is fetched from
 * there. Kernel ucma.c: ucma_set_option_level().
 */
#include <errno.h>
#include <string.h>

#include "fs/ucma.h"
#include "ipoib/sa.h"

static int set_ack_timeout(struct ucma_id *id, uint8_t value)
{
	if (id->qp_type != IBV_QPT_RC && id->qp_type != IBV_QPT_XRC_SEND &&
	    id->qp_type != IBV_QPT_XRC_RECV)
		return -EINVAL;
	id->ack_timeout = value;
	id->has_ack_timeout = true;
	return 0;
}

/* Who listens may only have the port to itself. */
static int set_reuse(struct ucma_id *id, bool value)
{
	if (value && id->state == ID_LISTEN)
		return -EINVAL;
	id->reuse = value;
	return 0;
}

static int set_afonly(struct ucma_id *id, bool value)
{
	if (id->state != ID_IDLE && id->state != ID_BOUND)
		return -EINVAL;
	id->afonly = value;
	return 0;
}

static int set_id_option(struct ucma_id *id, const struct rdma_ucm_set_option *req,
			 const uint8_t *value)
{
	bool byte = req->optname == RDMA_OPTION_ID_TOS || req->optname == RDMA_OPTION_ID_ACK_TIMEOUT;
	int number = 0;

	if (req->optname > RDMA_OPTION_ID_ACK_TIMEOUT)
		return -ENOSYS;
	if (req->optlen != (byte ? 1 : sizeof(number)))
		return -EINVAL;
	memcpy(&number, value, req->optlen);
	switch (req->optname) {
	case RDMA_OPTION_ID_TOS:
		id->tos = *value;
		id->has_tos = true;
		return 0;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		return set_ack_timeout(id, *value);
	case RDMA_OPTION_ID_REUSEADDR:
		return set_reuse(id, number);
	default:
		return set_afonly(id, number);
	}
}

/* The path, from who knows it (ibacm): then none has to be asked for. */
static int set_path(struct ucma_id *id, const uint8_t *value, size_t len)
{
	const uint32_t wanted = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	struct ib_path_rec_data data = { 0 };
	struct path_rec rec;

	if (len % sizeof(data))
		return -EINVAL;
	for (size_t off = 0; off < len && data.flags != wanted; off += sizeof(data))
		memcpy(&data, value + off, sizeof(data));
	if (data.flags != wanted || !id->dev || id->state != ID_ADDR_DONE)
		return -EINVAL;
	memcpy(&rec, data.path_rec, sizeof(rec));
	memcpy(id->path.sgid.raw, rec.sgid, 16);
	memcpy(id->path.dgid.raw, rec.dgid, 16);
	id->path.pkey = ntohs(rec.pkey);
	ucma_path_set(id, &rec);
	id->state = ID_ROUTE_DONE;
	ucma_post(id, UCMA_ROUTE_RESOLVED, 0);
	return 0;
}

/* The id is looked up again: it may have gone while the value was fetched. */
static int set_fetched(struct ucma_cmd *cmd)
{
	struct rdma_ucm_set_option req;
	struct ucma_id *id;
	int err = ucma_id_request(cmd, &req, sizeof(req), sizeof(req), &req.id, &id);

	if (err)
		return err;
	if (req.level == RDMA_OPTION_ID)
		return set_id_option(id, &req, cmd->out);
	if (req.level == RDMA_OPTION_IB && req.optname == RDMA_OPTION_IB_PATH)
		return set_path(id, cmd->out, req.optlen);
	return ibfs_fail(cmd->req->ibfs, ENOSYS, "rdma_cm: there is no option %u of level %u",
			 req.optname, req.level);
}

int ucma_set_option(struct ucma_cmd *cmd)
{
	struct rdma_ucm_set_option req;
	struct ucma_id *id;
	int err = ucma_id_request(cmd, &req, sizeof(req), sizeof(req), &req.id, &id);

	return err ? err : ucma_fetch(cmd, req.optval, req.optlen, set_fetched);
}
