/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: create, the transitions as commands with ibv_modify_qp()'s
 * attributes as arguments, connect for the common way.
 */
#include <errno.h>
#include <string.h>

#include "fs/obj_qp.h"

static void qp_now(const struct obj *obj, struct ibv_qp_attr *attr, unsigned int *type)
{
	struct ibfs_qp_init init;
	uint32_t qpn;

	obj->ops->query_qp(obj->qp, attr, &init, &qpn);
	*type = init.type;
}

static int qp_apply(struct obj *obj, struct ibv_qp_attr *attr, int mask, const char *what)
{
	int err = obj->ops->modify_qp(obj->qp, attr, mask);
	struct ibv_qp_attr now;
	unsigned int type;

	if (!err)
		return 0;
	qp_now(obj, &now, &type);
	return obj_fail(obj, -err, "%s: a QP of type %s in state %s can't do that, or an argument is "
			"missing, too many or out of range", what, qp_type_name(type),
			qp_state_name(now.qp_state));
}

static int qp_transition(struct args *args, enum ibv_qp_state state)
{
	struct obj *obj = args->obj;
	struct ibv_qp_attr attr, now;
	unsigned int type;
	uint64_t psn;
	int mask;

	qp_now(obj, &now, &type);
	attr = now;
	mask = qp_attributes(args, &attr) | IBV_QP_STATE;
	psn = arg_num(args, "psn", UINT32_MAX, UINT64_MAX);
	if (psn != UINT64_MAX) {
		mask |= state == IBV_QPS_RTR ? IBV_QP_RQ_PSN : IBV_QP_SQ_PSN;
		attr.rq_psn = attr.sq_psn = psn;
	}
	if (args_end(args))
		return args->err;
	attr.qp_state = state;
	/* Back to RTS nothing is needed. */
	if (state != IBV_QPS_RTS || now.qp_state == IBV_QPS_RTR)
		mask = qp_defaults(obj, type, &attr, mask);
	return qp_apply(obj, &attr, mask, args->line->argv[0]);
}

static int qp_init_command(struct args *args)
{
	return qp_transition(args, IBV_QPS_INIT);
}

static int qp_rtr(struct args *args)
{
	return qp_transition(args, IBV_QPS_RTR);
}

static int qp_rts(struct args *args)
{
	return qp_transition(args, IBV_QPS_RTS);
}

static int qp_sqd(struct args *args)
{
	return qp_transition(args, IBV_QPS_SQD);
}

static int qp_err(struct args *args)
{
	return qp_transition(args, IBV_QPS_ERR);
}

static int qp_reset(struct args *args)
{
	return qp_transition(args, IBV_QPS_RESET);
}

static int qp_modify(struct args *args)
{
	struct ibv_qp_attr attr;
	unsigned int type;
	int mask;

	qp_now(args->obj, &attr, &type);
	mask = qp_attributes(args, &attr);
	if (!args->err && !mask)
		arg_error(args, EINVAL, "no attribute is given");
	if (args_end(args))
		return args->err;
	return qp_apply(args->obj, &attr, mask, "modify");
}

static int to_reset(struct obj *obj)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return obj->ops->modify_qp(obj->qp, &attr, IBV_QP_STATE);
}

/* From RESET to RTS towards lid and qpn; given are the attributes of all three steps. */
static int connect_one(struct obj *obj, const struct ibv_qp_attr *given, int mask, uint16_t lid,
		       uint32_t qpn)
{
	static const enum ibv_qp_state way[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	static const int parts[] = {
		IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_QKEY,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		IBV_QP_MIN_RNR_TIMER | IBV_QP_DEST_QPN,
		IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		IBV_QP_MAX_QP_RD_ATOMIC,
	};
	struct ibv_qp_attr attr, now;
	unsigned int type;
	int err = 0;

	for (int i = 0; i < 3 && !err; i++) {
		int step = (mask & parts[i]) | IBV_QP_STATE;

		qp_now(obj, &now, &type);
		attr = *given;
		if (!(mask & IBV_QP_PORT) || i)
			attr.port_num = i ? now.port_num : attr.port_num;
		attr.qp_state = way[i];
		attr.ah_attr.dlid = lid;
		attr.dest_qp_num = qpn;
		if (way[i] == IBV_QPS_RTR && !qp_unconnected(type))
			step |= IBV_QP_AV | IBV_QP_DEST_QPN;
		err = qp_apply(obj, &attr, qp_defaults(obj, type, &attr, step), "connect");
	}
	if (err)
		to_reset(obj);
	return err;
}

static bool in_reset(const struct obj *obj)
{
	struct ibv_qp_attr attr;
	unsigned int type;

	qp_now(obj, &attr, &type);
	return attr.qp_state == IBV_QPS_RESET;
}

static uint16_t port_lid(const struct obj *obj, unsigned int port)
{
	struct ibv_port_attr attr;

	return obj->dev->ops->query_port(obj->dev, port, &attr) ? 0 : attr.lid;
}

/* Both or neither; the smaller MTU of both. */
static int connect_pair(struct obj *obj, struct obj *peer, struct ibv_qp_attr *attr, int mask)
{
	unsigned int port = mask & IBV_QP_PORT ? attr->port_num : 1;
	enum ibv_mtu mine = qp_port_mtu(obj, port), theirs = qp_port_mtu(peer, port);
	int err;

	if (!in_reset(peer))
		return obj_fail(obj, EINVAL, "connect: the peer is not in state reset");
	if (!(mask & IBV_QP_PATH_MTU)) {
		attr->path_mtu = mine < theirs ? mine : theirs;
		mask |= IBV_QP_PATH_MTU;
	}
	err = connect_one(obj, attr, mask, port_lid(peer, port), obj_qpn(peer));
	if (err || peer == obj)
		return err;
	err = connect_one(peer, attr, mask, port_lid(obj, port), obj_qpn(obj));
	if (!err)
		return 0;
	to_reset(obj);
	return obj_fail(obj, -err, "connect: peer: %.120s", peer->reason);
}

static int qp_connect(struct args *args)
{
	struct obj *obj = args->obj, *peer = arg_peer(args, "peer");
	struct ibv_qp_attr attr = { 0 };
	int mask = qp_attributes(args, &attr);
	uint64_t psn = arg_num(args, "psn", UINT32_MAX, 0);

	attr.rq_psn = mask & IBV_QP_RQ_PSN ? attr.rq_psn : psn;
	attr.sq_psn = mask & IBV_QP_SQ_PSN ? attr.sq_psn : psn;
	if (!args->err && !peer && !(mask & IBV_QP_AV && mask & IBV_QP_DEST_QPN))
		arg_error(args, EINVAL, "expected peer=QP, or lid= and qpn=");
	if (args_end(args))
		return args->err;
	if (!in_reset(obj))
		return obj_fail(obj, EINVAL, "connect: not in state reset");
	if (peer)
		return connect_pair(obj, peer, &attr, mask);
	return connect_one(obj, &attr, mask, attr.ah_attr.dlid, attr.dest_qp_num);
}

static int qp_open(struct args *args, struct obj *xrcd, uint32_t qpn)
{
	struct obj *obj = args->obj;
	int err;

	if (!xrcd)
		arg_error(args, EINVAL, "xrcd= is missing");
	if (args_end(args) || !xrcd)
		return args->err;
	obj_client(obj);
	err = obj->ops->open_qp(xrcd->xrcd, qpn, &obj->client, &obj->qp);
	if (err)
		return obj_fail(obj, -err, "create: no XRC target QP 0x%x in this domain", qpn);
	obj_qpn_add(obj, qpn);
	return 0;
}

static int qp_make(struct obj *obj, const struct ibfs_qp_init *init)
{
	struct ibfs_qp_init made;
	struct ibv_qp_attr attr;
	uint32_t qpn;
	int err;

	obj_client(obj);
	err = obj->ops->create_qp(obj->dev, init, &obj->client, &obj->qp);
	if (err)
		return obj_fail(obj, -err, "create: %s", err == -EINVAL ? "pd=, cq=, srq=, xrcd=, "
				"port= don't suit the type, or a size is more than the device can" :
				err == -EBUSY ? "somebody has the port's" : strerror(-err));
	obj->ops->query_qp(obj->qp, &attr, &made, &qpn);
	obj_qpn_add(obj, obj_qpn_key(qpn, made.port_num));
	return 0;
}

/* As the kernel asks for CAP_NET_RAW: these speak for others than themselves. */
static void check_type(struct args *args, unsigned int type)
{
	if (type == IBFS_QPT_RAW_IPV6 || type == IBFS_QPT_RAW_ETHERTYPE)
		arg_error(args, EOPNOTSUPP, "type=%s: type=raw_packet sends and receives such packets",
			  qp_type_name(type));
	if ((type <= IBFS_QPT_GSI || type == IBV_QPT_RAW_PACKET) &&
	    !fs_privileged(&args->req->cred))
		arg_error(args, EPERM, "type=%s is for root", qp_type_name(type));
}

static int qp_create(struct args *args)
{
	unsigned int type = qp_named(args, "type", qp_type_name, 16, IBV_QPT_RC);
	struct obj *pd = arg_obj(args, "pd", OBJ_PD, type != IBV_QPT_XRC_RECV);
	struct obj *cq = arg_obj(args, "cq", OBJ_CQ, type != IBV_QPT_XRC_RECV);
	struct obj *recv_cq = arg_obj(args, "recv_cq", OBJ_CQ, false);
	struct obj *srq = arg_obj(args, "srq", OBJ_SRQ, false);
	struct obj *xrcd = arg_obj(args, "xrcd", OBJ_XRCD, type == IBV_QPT_XRC_RECV);
	uint64_t opened = arg_num(args, "open", UINT32_MAX, UINT64_MAX);
	struct ibfs_qp_init init = {
		.pd = pd ? pd->pd : NULL, .send_cq = cq ? cq->cq : NULL,
		.recv_cq = recv_cq ? recv_cq->cq : cq ? cq->cq : NULL,
		.srq = srq ? srq->srq : NULL, .xrcd = xrcd ? xrcd->xrcd : NULL, .type = type,
		.cap = { .max_send_wr = arg_num(args, "sq", UINT32_MAX, 64),
			 .max_recv_wr = arg_num(args, "rq", UINT32_MAX, 64),
			 .max_send_sge = arg_num(args, "sge", UINT32_MAX, 4),
			 .max_recv_sge = arg_num(args, "recv_sge", UINT32_MAX, 4),
			 .max_inline_data = arg_num(args, "inline", UINT32_MAX, 256) },
		.sq_sig_all = arg_word(args, "sig_all"),
		.port_num = type <= IBFS_QPT_GSI ? arg_num(args, "port", UINT8_MAX, 1) : 0,
	};

	check_type(args, type);
	if (arg_word(args, "block_mcast_loopback"))
		init.create_flags |= IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	if (opened != UINT64_MAX)
		return qp_open(args, xrcd, opened);
	if (args_end(args))
		return args->err;
	return qp_make(args->obj, &init);
}

static void qp_status(struct obj *obj, struct textbuf *out)
{
	struct ibfs_qp_init init;
	struct ibv_qp_attr attr;
	uint32_t qpn;

	obj->ops->query_qp(obj->qp, &attr, &init, &qpn);
	text_printf(out, "type %s\nqpn 0x%x\nstate %s\nsq_draining %u\nport %u\npkey %u\nqkey 0x%x\n",
		    qp_type_name(init.type), qpn, qp_state_name(attr.qp_state), attr.sq_draining,
		    attr.port_num, attr.pkey_index, attr.qkey);
	text_printf(out, "dest_qpn 0x%x\nmtu %u\nrq_psn 0x%x\nsq_psn 0x%x\ntimeout %u\nretry_cnt %u\n"
		    "rnr_retry %u\nmin_rnr_timer %u\nmax_rd_atomic %u\nmax_dest_rd_atomic %u\n",
		    attr.dest_qp_num, attr.path_mtu ? 128U << attr.path_mtu : 0, attr.rq_psn,
		    attr.sq_psn, attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer,
		    attr.max_rd_atomic, attr.max_dest_rd_atomic);
	av_print(out, "", &attr.ah_attr);
	text_printf(out, "path_mig %s\nalt_port %u\nalt_pkey %u\nalt_timeout %u\n",
		    qp_mig_name(attr.path_mig_state), attr.alt_port_num, attr.alt_pkey_index,
		    attr.alt_timeout);
	av_print(out, "alt_", &attr.alt_ah_attr);
	text_printf(out, "sq %u\nrq %u\nsge %u\nrecv_sge %u\ninline %u\nsig_all %d\naccess ",
		    attr.cap.max_send_wr, attr.cap.max_recv_wr, attr.cap.max_send_sge,
		    attr.cap.max_recv_sge, attr.cap.max_inline_data, init.sq_sig_all);
	access_print(out, attr.qp_access_flags);
}

static int qp_destroy(struct obj *obj)
{
	return obj->ops->destroy_qp(obj->qp, &obj->client);
}

static const struct entry qp_entries[] = {
	{ "ctl", KIND_OBJ_FILE, OBJ_CTL },
	{ "status", KIND_OBJ_FILE, OBJ_STATUS },
	{ "qpn", KIND_OBJ_FILE, OBJ_QPN },
	{ "send", KIND_OBJ_FILE, OBJ_SEND },
	{ "recv", KIND_OBJ_FILE, OBJ_RECV },
	{ "post", KIND_OBJ_FILE, OBJ_POST },
	{ "sq", KIND_OBJ_FILE, OBJ_SQ },
	{ "rq", KIND_OBJ_FILE, OBJ_RQ },
	{ "events", KIND_OBJ_FILE, OBJ_EVENTS },
	{ NULL, 0, 0 }
};

static const struct command qp_commands[] = {
	{ "create", qp_create, true }, { "connect", qp_connect, false },
	{ "init", qp_init_command, false }, { "rtr", qp_rtr, false }, { "rts", qp_rts, false },
	{ "sqd", qp_sqd, false }, { "err", qp_err, false }, { "reset", qp_reset, false },
	{ "modify", qp_modify, false }, { NULL, NULL, false }
};

const struct obj_ops qp_obj = { "qp", qp_entries, qp_commands, qp_status, qp_destroy };
