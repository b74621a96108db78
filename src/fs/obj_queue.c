/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues, shared receive queues, address handles and multicast
 * attachments.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "fabric/fabric.h"
#include "fs/obj.h"

static int cq_create(struct args *args)
{
	struct obj *obj = args->obj;
	int cqe = arg_num(args, "cqe", INT32_MAX, 0), err;

	args_device(args);
	if (args_end(args))
		return args->err;
	obj_client(obj);
	err = obj->ops->create_cq(obj->dev, cqe, &obj->client, &obj->cq);
	return err ? obj_fail(obj, -err, "create: expected cqe=, within what the device can") : 0;
}

static int cq_resize(struct args *args)
{
	struct obj *obj = args->obj;
	int cqe = arg_num(args, "cqe", INT32_MAX, 0), err;

	if (args_end(args))
		return args->err;
	err = obj->ops->resize_cq(obj->cq, cqe);
	return err ? obj_fail(obj, -err, "resize: %d is less than it holds, or too much", cqe) : 0;
}

static int cq_moderate(struct args *args)
{
	struct obj *obj = args->obj;
	unsigned int count = arg_num(args, "count", UINT16_MAX, 0);
	unsigned int period = arg_num(args, "period", UINT16_MAX, 0);

	if (args_end(args))
		return args->err;
	return obj->ops->modify_cq(obj->cq, count, period);
}

/* An event when the next (solicited) completion comes; "missed" in `events` when one is there already. */
static int cq_notify(struct args *args)
{
	struct obj *obj = args->obj;
	bool solicited = arg_word(args, "solicited"), missed = arg_word(args, "report_missed");
	int ret;

	if (args_end(args))
		return args->err;
	ret = obj->ops->req_notify_cq(obj->cq, solicited, missed);
	if (ret > 0)
		obj_event(obj, "missed");
	return ret < 0 ? ret : 0;
}

static int cq_notify_at(struct args *args)
{
	struct obj *obj = args->obj;
	int num = arg_num(args, "count", INT32_MAX, 0), err;

	if (args_end(args))
		return args->err;
	err = obj->ops->req_ncomp_notif(obj->cq, num);
	return err ? obj_fail(obj, -err, "notify_at: expected count=, of what it can hold") : 0;
}

static void cq_status(struct obj *obj, struct textbuf *out)
{
	struct ibfs_cq_attr attr;

	obj->ops->query_cq(obj->cq, &attr);
	text_printf(out, "state %s\ncqe %d\nwaiting %d\nmoder_count %u\nmoder_period %u\n",
		    attr.error ? "error" : "ok", attr.cqe, obj->ops->peek_cq(obj->cq, attr.cqe),
		    attr.moder_count, attr.moder_period);
}

static int cq_destroy(struct obj *obj)
{
	return obj->ops->destroy_cq(obj->cq);
}

static const struct entry cq_entries[] = {
	{ "ctl", KIND_OBJ_FILE, OBJ_CTL },
	{ "status", KIND_OBJ_FILE, OBJ_STATUS },
	{ "wc", KIND_OBJ_FILE, OBJ_WC },
	{ "ring", KIND_OBJ_FILE, OBJ_RING },
	{ "events", KIND_OBJ_FILE, OBJ_EVENTS },
	{ NULL, 0, 0 }
};

static const struct command cq_commands[] = {
	{ "create", cq_create, true }, { "resize", cq_resize, false },
	{ "moderate", cq_moderate, false }, { "notify", cq_notify, false },
	{ "notify_at", cq_notify_at, false }, { NULL, NULL, false }
};

const struct obj_ops cq_obj = { "cq", cq_entries, cq_commands, cq_status, cq_destroy };

static int srq_create(struct args *args)
{
	struct obj *obj = args->obj, *pd = arg_obj(args, "pd", OBJ_PD, true);
	struct obj *xrcd = arg_obj(args, "xrcd", OBJ_XRCD, false);
	struct obj *cq = arg_obj(args, "cq", OBJ_CQ, xrcd);
	struct ibfs_srq_init init = {
		.attr = { .max_wr = arg_num(args, "wr", UINT32_MAX, 64),
			  .max_sge = arg_num(args, "sge", UINT32_MAX, 4) },
		.xrc = xrcd, .xrcd = xrcd ? xrcd->xrcd : NULL, .cq = cq ? cq->cq : NULL,
	};
	int err;

	if (args_end(args))
		return args->err;
	obj_client(obj);
	err = obj->ops->create_srq(pd->pd, &init, &obj->client, &obj->srq);
	return err ? obj_fail(obj, -err, "create: wr= or sge= is out of range") : 0;
}

static int srq_resize(struct args *args)
{
	struct obj *obj = args->obj;
	struct ibv_srq_attr attr = { .max_wr = arg_num(args, "wr", UINT32_MAX, 0) };
	int err;

	if (args_end(args))
		return args->err;
	err = obj->ops->modify_srq(obj->srq, &attr, IBV_SRQ_MAX_WR);
	return err ? obj_fail(obj, -err, "resize: less than it holds, or too much") : 0;
}

static void srq_status(struct obj *obj, struct textbuf *out)
{
	struct ibv_srq_attr attr;
	uint32_t num;

	obj->ops->query_srq(obj->srq, &attr, &num);
	text_printf(out, "srqn 0x%x\nwr %u\nsge %u\nlimit %u\n", num, attr.max_wr, attr.max_sge,
		    attr.srq_limit);
}

static int srq_destroy(struct obj *obj)
{
	return obj->ops->destroy_srq(obj->srq);
}

static const struct entry srq_entries[] = {
	{ "ctl", KIND_OBJ_FILE, OBJ_CTL },
	{ "status", KIND_OBJ_FILE, OBJ_STATUS },
	{ "post", KIND_OBJ_FILE, OBJ_POST },
	{ "ring", KIND_OBJ_FILE, OBJ_RING },
	{ "limit", KIND_OBJ_FILE, OBJ_LIMIT },
	{ "events", KIND_OBJ_FILE, OBJ_EVENTS },
	{ NULL, 0, 0 }
};

static const struct command srq_commands[] = {
	{ "create", srq_create, true }, { "resize", srq_resize, false }, { NULL, NULL, false }
};

const struct obj_ops srq_obj = { "srq", srq_entries, srq_commands, srq_status, srq_destroy };

void args_av(struct args *args, struct ibv_ah_attr *attr)
{
	attr->dlid = arg_num(args, "lid", UINT16_MAX, attr->dlid);
	attr->sl = arg_num(args, "sl", 15, attr->sl);
	attr->src_path_bits = arg_num(args, "path_bits", 127, attr->src_path_bits);
	attr->static_rate = arg_num(args, "static_rate", UINT8_MAX, attr->static_rate);
	if (arg_gid(args, "gid", &attr->grh.dgid))
		attr->is_global = 1;
	if (!attr->is_global)
		return;
	attr->grh.sgid_index = arg_num(args, "gid_index", UINT8_MAX, attr->grh.sgid_index);
	attr->grh.hop_limit = arg_num(args, "hop_limit", UINT8_MAX,
				      attr->grh.hop_limit ? attr->grh.hop_limit : 1);
	attr->grh.flow_label = arg_num(args, "flow_label", 0xfffff, attr->grh.flow_label);
	attr->grh.traffic_class = arg_num(args, "traffic_class", UINT8_MAX, attr->grh.traffic_class);
}

/* From a completion: slid= sl= path_bits= as its line says, and where its GRH is. */
static int ah_from_wc(struct args *args, struct ibv_ah_attr *attr, unsigned int port, unsigned int slid)
{
	struct obj *obj = args->obj, *mr = arg_obj(args, "grh", OBJ_MR, false);
	uint64_t off = arg_num(args, "offset", UINT64_MAX, 0);
	struct ibfs_wc wc = {
		.slid = slid, .sl = arg_num(args, "sl", 15, 0),
		.dlid_path_bits = arg_num(args, "path_bits", 127, 0),
		.wc_flags = mr ? IBV_WC_GRH : 0,
	};
	struct ibv_grh grh;
	int err;

	if (args_end(args))
		return args->err;
	if (mr) {
		if (off > mr->mem->size || sizeof(grh) > mr->mem->size - off)
			return obj_fail(obj, EINVAL, "create: offset= is behind the memory's end");
		memcpy(&grh, (const uint8_t *)mr->mem->base + off, sizeof(grh));
	}
	err = obj->ops->init_ah_from_wc(obj->dev, port, &wc, &grh, attr);
	return err ? obj_fail(obj, -err, "create: the completion's GID is not of this port") : 0;
}

static int ah_create(struct args *args)
{
	struct obj *obj = args->obj, *pd = arg_obj(args, "pd", OBJ_PD, true);
	unsigned int port = arg_num(args, "port", UINT8_MAX, 1);
	unsigned int slid = arg_num(args, "slid", UINT16_MAX, 0);
	struct ibv_ah_attr attr = { .port_num = port };
	int err;

	if (slid && !args->err)
		err = ah_from_wc(args, &attr, port, slid);
	else {
		args_av(args, &attr);
		err = args_end(args);
	}
	if (err)
		return err;
	err = obj->ops->create_ah(pd->pd, &attr, &obj->ah);
	return err ? obj_fail(obj, -err, "create: port=, gid_index= or a multicast lid= without gid=") : 0;
}

static int ah_modify(struct args *args)
{
	struct obj *obj = args->obj;
	struct ibv_ah_attr attr;
	uint32_t handle;
	int err;

	obj->ops->query_ah(obj->ah, &attr, &handle);
	attr.port_num = arg_num(args, "port", UINT8_MAX, attr.port_num);
	args_av(args, &attr);
	if (args_end(args))
		return args->err;
	err = obj->ops->modify_ah(obj->ah, &attr);
	return err ? obj_fail(obj, -err, "modify: a value is out of range") : 0;
}

void av_print(struct textbuf *out, const char *prefix, const struct ibv_ah_attr *attr)
{
	char gid[INET6_ADDRSTRLEN];

	text_printf(out, "%slid %u\n%ssl %u\n%spath_bits %u\n", prefix, attr->dlid, prefix, attr->sl,
		    prefix, attr->src_path_bits);
	if (!attr->is_global)
		return;
	text_printf(out, "%sgid %s\n%sgid_index %u\n%shop_limit %u\n%sflow_label 0x%x\n"
		    "%straffic_class %u\n", prefix,
		    inet_ntop(AF_INET6, attr->grh.dgid.raw, gid, sizeof(gid)), prefix,
		    attr->grh.sgid_index, prefix, attr->grh.hop_limit, prefix, attr->grh.flow_label,
		    prefix, attr->grh.traffic_class);
}

static void ah_status(struct obj *obj, struct textbuf *out)
{
	struct ibv_ah_attr attr;
	uint32_t handle;

	obj->ops->query_ah(obj->ah, &attr, &handle);
	text_printf(out, "handle %u\nport %u\n", handle, attr.port_num);
	av_print(out, "", &attr);
}

static int ah_destroy(struct obj *obj)
{
	obj->ops->destroy_ah(obj->ah);
	return 0;
}

static const struct entry plain_entries[] = {
	{ "ctl", KIND_OBJ_FILE, OBJ_CTL },
	{ "status", KIND_OBJ_FILE, OBJ_STATUS },
	{ NULL, 0, 0 }
};

static const struct command ah_commands[] = {
	{ "create", ah_create, true }, { "modify", ah_modify, false }, { NULL, NULL, false }
};

const struct obj_ops ah_obj = { "ah", plain_entries, ah_commands, ah_status, ah_destroy };

/* The QP stays attached until the directory goes. */
static int mcast_create(struct args *args)
{
	struct obj *obj = args->obj, *qp = arg_obj(args, "qp", OBJ_QP, true);
	int err;

	if (!arg_gid(args, "gid", &obj->gid_value))
		arg_error(args, EINVAL, "gid=MGID is missing");
	obj->lid_value = arg_num(args, "lid", UINT16_MAX, 0);
	if (args_end(args))
		return args->err;
	err = obj->ops->attach_mcast(qp->qp, &obj->gid_value, obj->lid_value);
	if (err)
		return obj_fail(obj, -err, "create: %s", err == -EINVAL ?
				"expected a UD QP not in RESET, and a multicast GID" : strerror(-err));
	obj->member = qp;
	return 0;
}

static void mcast_status(struct obj *obj, struct textbuf *out)
{
	char gid[INET6_ADDRSTRLEN], label[32];
	int mlid = 0;

	/* With a subnet manager, and in the system's fabric, the group's LID comes from joining it. */
	if (obj->dev->ops->fabric_port)
		mlid = static_mcast_mlid(obj->ibfs->fabric, obj->gid_value.raw);
	if (mlid > 0)
		text_printf(out, "lid %d\n", mlid);
	text_printf(out, "gid %s\nqp %s\n", inet_ntop(AF_INET6, obj->gid_value.raw, gid, sizeof(gid)),
		    obj_label(obj->member, label));
}

static int mcast_destroy(struct obj *obj)
{
	return obj->ops->detach_mcast(obj->member->qp, &obj->gid_value, obj->lid_value);
}

static const struct command mcast_commands[] = {
	{ "create", mcast_create, true }, { NULL, NULL, false }
};

const struct obj_ops mcast_obj = { "mcast", plain_entries, mcast_commands, mcast_status, mcast_destroy };
