/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The methods of RDMA_VERBS_IOCTL: what attributes each takes, and how they
 * become the request of the write() command that does the same. Sizes are those
 * of the kernel's uverbs_std_types_*.c. Objects that a software HCA hasn't
 * (device memory, counters, flows, work queues) have no methods, as in the
 * kernel for a driver without them: EPROTONOSUPPORT.
 */
#include <errno.h>
#include <string.h>

#include "fs/uverbs_ioctl.h"

/* Numbers of REG_MR, which Linux 6.18 added; Debian's headers are older. */
enum { METHOD_REG_MR = 5 };
enum {
	REG_MR_HANDLE, REG_MR_PD_HANDLE, REG_MR_DMA_HANDLE, REG_MR_IOVA, REG_MR_ADDR,
	REG_MR_LENGTH, REG_MR_ACCESS_FLAGS, REG_MR_FD, REG_MR_FD_OFFSET, REG_MR_RESP_LKEY,
	REG_MR_RESP_RKEY,
};

enum { MUST = true, MAY = false, GROWS = true };

#define ANY UINT16_MAX
#define IN(id, size, must) { id, UVA_IN, 0, must, false, size, size }
#define CONST_IN(id, must) IN(id, 8, must)
#define FLAGS_IN(id, must) { id, UVA_IN, 0, must, false, 4, 8 }
#define OUT(id, size, must) { id, UVA_OUT, 0, must, false, size, size }
#define STRUCT(id, type, first, last, must) { id, type, 0, must, GROWS, first, last }
#define OBJ(id, obj, must) { id, UVA_OBJ, obj, must, false, 0, 0 }
#define NEW(id, obj) { id, UVA_NEW, obj, MUST, false, 0, 0 }
#define DESTROY(id, obj) { id, UVA_DESTROY, obj, MUST, false, 0, 0 }
#define FD(id, must) { id, UVA_FD, 0, must, false, 0, 0 }
#define UHW \
	{ UVERBS_ATTR_UHW_IN, UVA_IN, 0, MAY, false, 0, ANY }, \
	{ UVERBS_ATTR_UHW_OUT, UVA_OUT, 0, MAY, false, 0, ANY }
#define ATTRS(list) list, sizeof(list) / sizeof((list)[0])
#define SIZE(type) sizeof(struct ib_uverbs_##type)
#define CMD(name) IB_USER_VERBS_CMD_##name
#define EX_CMD(name) (IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_##name)

static const struct uv_attr_spec get_context_attrs[] = {
	OUT(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, 4, MAY),
	OUT(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, 8, MAY),
	UHW,
};

static const struct uv_attr_spec query_context_attrs[] = {
	OUT(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 4, MAY),
	OUT(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, 8, MAY),
};

static const struct uv_attr_spec invoke_write_attrs[] = {
	{ UVERBS_ATTR_CORE_IN, UVA_IN, 0, MAY, false, 4, ANY },
	{ UVERBS_ATTR_CORE_OUT, UVA_OUT, 0, MAY, GROWS, 0, ANY },
	CONST_IN(UVERBS_ATTR_WRITE_CMD, MUST),
	UHW,
};

static const struct uv_attr_spec info_handles_attrs[] = {
	CONST_IN(UVERBS_ATTR_INFO_OBJECT_ID, MUST),
	OUT(UVERBS_ATTR_INFO_TOTAL_HANDLES, 4, MAY),
	{ UVERBS_ATTR_INFO_HANDLES_LIST, UVA_OUT, 0, MAY, false, 4, ANY },
};

static const struct uv_attr_spec query_port_attrs[] = {
	CONST_IN(UVERBS_ATTR_QUERY_PORT_PORT_NUM, MUST),
	STRUCT(UVERBS_ATTR_QUERY_PORT_RESP, UVA_OUT, SIZE(query_port_resp_ex), ANY, MUST),
};

static const struct uv_attr_spec query_gid_table_attrs[] = {
	CONST_IN(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, MUST),
	FLAGS_IN(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, MAY),
	{ UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, UVA_OUT, 0, MUST, false, 0, ANY },
	OUT(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8, MUST),
};

static const struct uv_attr_spec query_gid_entry_attrs[] = {
	CONST_IN(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, MUST),
	CONST_IN(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, MUST),
	FLAGS_IN(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, MUST),
	STRUCT(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, UVA_OUT, SIZE(gid_entry), ANY, MUST),
};

static const struct uv_attr_spec async_event_attrs[] = {
	{ UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, UVA_NEW_FD, 0, MUST, false, 0, 0 },
};

static const struct uv_attr_spec cq_create_attrs[] = {
	NEW(UVERBS_ATTR_CREATE_CQ_HANDLE, UOBJ_CQ),
	IN(UVERBS_ATTR_CREATE_CQ_CQE, 4, MUST),
	IN(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, MUST),
	FD(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, MAY),
	IN(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, MUST),
	FLAGS_IN(UVERBS_ATTR_CREATE_CQ_FLAGS, MAY),
	OUT(UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4, MUST),
	FD(UVERBS_ATTR_CREATE_CQ_EVENT_FD, MAY),
	UHW,
};

static const struct uv_attr_spec cq_destroy_attrs[] = {
	DESTROY(UVERBS_ATTR_DESTROY_CQ_HANDLE, UOBJ_CQ),
	OUT(UVERBS_ATTR_DESTROY_CQ_RESP, SIZE(destroy_cq_resp), MUST),
};

static const struct uv_attr_spec qp_create_attrs[] = {
	NEW(UVERBS_ATTR_CREATE_QP_HANDLE, UOBJ_QP),
	OBJ(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, UOBJ_XRCD, MAY),
	OBJ(UVERBS_ATTR_CREATE_QP_PD_HANDLE, UOBJ_PD, MAY),
	OBJ(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, UOBJ_SRQ, MAY),
	OBJ(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, UOBJ_CQ, MAY),
	OBJ(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, UOBJ_CQ, MAY),
	OBJ(UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, UOBJ_TYPES, MAY),
	IN(UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, MUST),
	STRUCT(UVERBS_ATTR_CREATE_QP_CAP, UVA_IN, SIZE(qp_cap), SIZE(qp_cap), MUST),
	CONST_IN(UVERBS_ATTR_CREATE_QP_TYPE, MUST),
	FLAGS_IN(UVERBS_ATTR_CREATE_QP_FLAGS, MAY),
	IN(UVERBS_ATTR_CREATE_QP_SOURCE_QPN, 4, MAY),
	FD(UVERBS_ATTR_CREATE_QP_EVENT_FD, MAY),
	STRUCT(UVERBS_ATTR_CREATE_QP_RESP_CAP, UVA_OUT, SIZE(qp_cap), ANY, MUST),
	OUT(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4, MUST),
	UHW,
};

static const struct uv_attr_spec qp_destroy_attrs[] = {
	DESTROY(UVERBS_ATTR_DESTROY_QP_HANDLE, UOBJ_QP),
	OUT(UVERBS_ATTR_DESTROY_QP_RESP, SIZE(destroy_qp_resp), MUST),
};

static const struct uv_attr_spec srq_create_attrs[] = {
	NEW(UVERBS_ATTR_CREATE_SRQ_HANDLE, UOBJ_SRQ),
	OBJ(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, UOBJ_PD, MUST),
	OBJ(UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, UOBJ_XRCD, MAY),
	OBJ(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, UOBJ_CQ, MAY),
	IN(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 8, MUST),
	IN(UVERBS_ATTR_CREATE_SRQ_MAX_WR, 4, MUST),
	IN(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 4, MUST),
	IN(UVERBS_ATTR_CREATE_SRQ_LIMIT, 4, MUST),
	IN(UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, 4, MAY),
	CONST_IN(UVERBS_ATTR_CREATE_SRQ_TYPE, MUST),
	FD(UVERBS_ATTR_CREATE_SRQ_EVENT_FD, MAY),
	OUT(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, 4, MUST),
	OUT(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, 4, MUST),
	OUT(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, 4, MAY),
	UHW,
};

static const struct uv_attr_spec srq_destroy_attrs[] = {
	DESTROY(UVERBS_ATTR_DESTROY_SRQ_HANDLE, UOBJ_SRQ),
	OUT(UVERBS_ATTR_DESTROY_SRQ_RESP, SIZE(destroy_srq_resp), MUST),
};

static const struct uv_attr_spec reg_mr_attrs[] = {
	NEW(REG_MR_HANDLE, UOBJ_MR),
	OBJ(REG_MR_PD_HANDLE, UOBJ_PD, MUST),
	OBJ(REG_MR_DMA_HANDLE, UOBJ_TYPES, MAY),
	IN(REG_MR_IOVA, 8, MUST),
	IN(REG_MR_ADDR, 8, MAY),
	IN(REG_MR_LENGTH, 8, MUST),
	FLAGS_IN(REG_MR_ACCESS_FLAGS, MUST),
	IN(REG_MR_FD, 8, MAY),
	IN(REG_MR_FD_OFFSET, 8, MAY),
	OUT(REG_MR_RESP_LKEY, 4, MUST),
	OUT(REG_MR_RESP_RKEY, 4, MUST),
};

static const struct uv_attr_spec query_mr_attrs[] = {
	OBJ(UVERBS_ATTR_QUERY_MR_HANDLE, UOBJ_MR, MUST),
	OUT(UVERBS_ATTR_QUERY_MR_RESP_LKEY, 4, MUST),
	OUT(UVERBS_ATTR_QUERY_MR_RESP_RKEY, 4, MUST),
	OUT(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 8, MUST),
	OUT(UVERBS_ATTR_QUERY_MR_RESP_IOVA, 8, MAY),
};

static const struct uv_attr_spec advise_mr_attrs[] = {
	OBJ(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, UOBJ_PD, MUST),
	CONST_IN(UVERBS_ATTR_ADVISE_MR_ADVICE, MUST),
	FLAGS_IN(UVERBS_ATTR_ADVISE_MR_FLAGS, MUST),
	{ UVERBS_ATTR_ADVISE_MR_SGE_LIST, UVA_IN, 0, MUST, false, SIZE(sge), ANY },
};

/* Those whose only attribute is the handle, number 0 in all of them. */
static const struct uv_attr_spec mr_destroy_attrs[] = { DESTROY(0, UOBJ_MR) };
static const struct uv_attr_spec pd_destroy_attrs[] = { DESTROY(0, UOBJ_PD) };
static const struct uv_attr_spec mw_destroy_attrs[] = { DESTROY(0, UOBJ_MW) };
static const struct uv_attr_spec ah_destroy_attrs[] = { DESTROY(0, UOBJ_AH) };
static const struct uv_attr_spec xrcd_destroy_attrs[] = { DESTROY(0, UOBJ_XRCD) };

/* --- the write() commands --- */

static int fill_invoke_write(struct uv_cmd *cmd, void *unused)
{
	const struct uv_attr *in = uv_attr(cmd, UVERBS_ATTR_CORE_IN);
	const struct uv_attr *out = uv_attr(cmd, UVERBS_ATTR_CORE_OUT);
	uint32_t command;
	int err;

	(void)unused;
	err = uv_attr_const(cmd, UVERBS_ATTR_WRITE_CMD, UINT32_MAX, &command);
	if (!err)
		err = uv_find_method(command, &cmd->method);
	if (err)
		return err;
	cmd->in = in ? in->in : NULL;
	cmd->in_len = in ? in->len : 0;
	cmd->out_len = out ? out->len : 0;
	return cmd->in_len < cmd->method->req || cmd->out_len < cmd->method->resp ? -ENOSPC : 0;
}

static int spread_invoke_write(struct uv_cmd *cmd, const void *resp)
{
	return cmd->out_used ? uv_attr_put(cmd, UVERBS_ATTR_CORE_OUT, resp, cmd->out_used) : 0;
}

/* --- contexts --- */

static int answer_context(struct uv_cmd *cmd)
{
	uint64_t support = IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS;
	uint32_t vectors = 1;
	int err;

	err = uv_attr_put(cmd, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &vectors, sizeof(vectors));
	if (err)
		return err;
	return uv_attr_put(cmd, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, &support, sizeof(support));
}

/* Its event file is a matter of its own, other than with the command. */
static int get_context(struct uv_cmd *cmd)
{
	if (cmd->uf->context)
		return -EINVAL;
	cmd->uf->context = true;
	cmd->made_context = true;
	return answer_context(cmd);
}

static int async_event_alloc(struct uv_cmd *cmd)
{
	struct uverbs_file *uf = cmd->uf;
	struct uv_events *events = uv_events_new(uf, &cmd->req->cred, true);

	if (!events)
		return -ENOMEM;
	cmd->made_events = events;
	uv_attr_put_new(cmd, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, events->id);
	return 0;
}

/* --- completion queues --- */

static int32_t fd_attr(const struct uv_cmd *cmd, uint16_t id)
{
	const struct uv_attr *attr = uv_attr(cmd, id);

	return attr ? (int32_t)attr->data : -1;
}

static int fill_cq(struct uv_cmd *cmd, void *request)
{
	struct ib_uverbs_ex_create_cq *req = request;

	req->user_handle = uv_attr_u64(cmd, UVERBS_ATTR_CREATE_CQ_USER_HANDLE);
	req->cqe = (uint32_t)uv_attr_u64(cmd, UVERBS_ATTR_CREATE_CQ_CQE);
	req->comp_vector = (uint32_t)uv_attr_u64(cmd, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR);
	req->comp_channel = fd_attr(cmd, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL);
	cmd->event_file = uv_attr(cmd, UVERBS_ATTR_CREATE_CQ_EVENT_FD);
	return uv_attr_flags(cmd, UVERBS_ATTR_CREATE_CQ_FLAGS,
			     IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION |
			     IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN, &req->flags);
}

static int spread_cq(struct uv_cmd *cmd, const void *response)
{
	const struct ib_uverbs_ex_create_cq_resp *resp = response;

	uv_attr_put_new(cmd, UVERBS_ATTR_CREATE_CQ_HANDLE, resp->base.cq_handle);
	return uv_attr_put(cmd, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &resp->base.cqe,
			   sizeof(resp->base.cqe));
}

/* --- queue pairs --- */

/* Which objects a QP of this type refers to, as uverbs_std_types_qp.c has it. */
static int check_qp_refs(const struct uv_cmd *cmd, uint32_t type)
{
	bool xrcd = uv_attr(cmd, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE);
	bool pd = uv_attr(cmd, UVERBS_ATTR_CREATE_QP_PD_HANDLE);
	bool srq = uv_attr(cmd, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE);
	bool send = uv_attr(cmd, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE);
	bool recv = uv_attr(cmd, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE);

	if (type == IB_UVERBS_QPT_XRC_TGT) {
		if (recv || send || pd)
			return -EINVAL;
		return xrcd ? 0 : -ENOENT;
	}
	if (xrcd || (srq && type == IB_UVERBS_QPT_XRC_INI))
		return -EINVAL;
	return pd && send && (recv || type == IB_UVERBS_QPT_XRC_INI) ? 0 : -ENOENT;
}

static int fill_qp_flags(struct uv_cmd *cmd, struct ib_uverbs_ex_create_qp *req)
{
	uint32_t flags;
	int err;

	err = uv_attr_flags(cmd, UVERBS_ATTR_CREATE_QP_FLAGS,
			    IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK |
			    IB_UVERBS_QP_CREATE_SCATTER_FCS | IB_UVERBS_QP_CREATE_CVLAN_STRIPPING |
			    IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING |
			    IB_UVERBS_QP_CREATE_SQ_SIG_ALL, &flags);
	if (err)
		return err;
	req->sq_sig_all = !!(flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL);
	req->create_flags = flags & ~(uint32_t)IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
	if (req->create_flags && req->qp_type != IB_UVERBS_QPT_UD &&
	    req->qp_type != IB_UVERBS_QPT_RAW_PACKET)
		return -EINVAL;
	/* A QP that sends as another's number is beyond rxe. */
	return uv_attr(cmd, UVERBS_ATTR_CREATE_QP_SOURCE_QPN) ? -EOPNOTSUPP : 0;
}

static int fill_qp(struct uv_cmd *cmd, void *request)
{
	struct ib_uverbs_ex_create_qp *req = request;
	struct ib_uverbs_qp_cap cap;
	uint32_t type;
	int err;

	err = uv_attr_const(cmd, UVERBS_ATTR_CREATE_QP_TYPE, UINT8_MAX, &type);
	if (!err)
		err = check_qp_refs(cmd, type);
	if (err)
		return err;
	memcpy(&cap, uv_attr(cmd, UVERBS_ATTR_CREATE_QP_CAP)->in, sizeof(cap));
	*req = (struct ib_uverbs_ex_create_qp){
		.user_handle = uv_attr_u64(cmd, UVERBS_ATTR_CREATE_QP_USER_HANDLE),
		.pd_handle = (uint32_t)uv_attr_u64(cmd, type == IB_UVERBS_QPT_XRC_TGT ?
						   UVERBS_ATTR_CREATE_QP_XRCD_HANDLE :
						   UVERBS_ATTR_CREATE_QP_PD_HANDLE),
		.send_cq_handle = (uint32_t)uv_attr_u64(cmd, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE),
		.recv_cq_handle = (uint32_t)uv_attr_u64(cmd, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE),
		.srq_handle = (uint32_t)uv_attr_u64(cmd, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE),
		.is_srq = uv_attr(cmd, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE) != NULL,
		.max_send_wr = cap.max_send_wr, .max_recv_wr = cap.max_recv_wr,
		.max_send_sge = cap.max_send_sge, .max_recv_sge = cap.max_recv_sge,
		.max_inline_data = cap.max_inline_data, .qp_type = (uint8_t)type,
	};
	cmd->event_file = uv_attr(cmd, UVERBS_ATTR_CREATE_QP_EVENT_FD);
	return fill_qp_flags(cmd, req);
}

static int spread_qp(struct uv_cmd *cmd, const void *response)
{
	const struct ib_uverbs_ex_create_qp_resp *resp = response;
	struct ib_uverbs_qp_cap cap = {
		.max_send_wr = resp->base.max_send_wr, .max_recv_wr = resp->base.max_recv_wr,
		.max_send_sge = resp->base.max_send_sge, .max_recv_sge = resp->base.max_recv_sge,
		.max_inline_data = resp->base.max_inline_data,
	};
	int err;

	uv_attr_put_new(cmd, UVERBS_ATTR_CREATE_QP_HANDLE, resp->base.qp_handle);
	err = uv_attr_put(cmd, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap, sizeof(cap));
	if (err)
		return err;
	return uv_attr_put(cmd, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &resp->base.qpn,
			   sizeof(resp->base.qpn));
}

/* --- shared receive queues --- */

static int fill_srq(struct uv_cmd *cmd, void *request)
{
	struct ib_uverbs_create_xsrq *req = request;
	bool cq = uv_attr(cmd, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE);
	bool xrcd = uv_attr(cmd, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE);
	uint32_t type;

	if (uv_attr_const(cmd, UVERBS_ATTR_CREATE_SRQ_TYPE, IB_UVERBS_SRQT_TM, &type))
		return -EINVAL;
	if ((type != IB_UVERBS_SRQT_BASIC && !cq) || (type == IB_UVERBS_SRQT_XRC && !xrcd))
		return -ENOENT;
	*req = (struct ib_uverbs_create_xsrq){
		.user_handle = uv_attr_u64(cmd, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE),
		.srq_type = type,
		.pd_handle = (uint32_t)uv_attr_u64(cmd, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE),
		.max_wr = (uint32_t)uv_attr_u64(cmd, UVERBS_ATTR_CREATE_SRQ_MAX_WR),
		.max_sge = (uint32_t)uv_attr_u64(cmd, UVERBS_ATTR_CREATE_SRQ_MAX_SGE),
		.srq_limit = (uint32_t)uv_attr_u64(cmd, UVERBS_ATTR_CREATE_SRQ_LIMIT),
		.xrcd_handle = (uint32_t)uv_attr_u64(cmd, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE),
		.cq_handle = (uint32_t)uv_attr_u64(cmd, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE),
	};
	cmd->event_file = uv_attr(cmd, UVERBS_ATTR_CREATE_SRQ_EVENT_FD);
	return 0;
}

static int spread_srq(struct uv_cmd *cmd, const void *response)
{
	const struct ib_uverbs_create_srq_resp *resp = response;
	int err;

	uv_attr_put_new(cmd, UVERBS_ATTR_CREATE_SRQ_HANDLE, resp->srq_handle);
	err = uv_attr_put(cmd, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &resp->max_wr,
			  sizeof(resp->max_wr));
	if (!err)
		err = uv_attr_put(cmd, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &resp->max_sge,
				  sizeof(resp->max_sge));
	if (!err)
		err = uv_attr_put(cmd, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, &resp->srqn,
				  sizeof(resp->srqn));
	return err;
}

/* --- memory regions --- */

static int fill_reg_mr(struct uv_cmd *cmd, void *request)
{
	struct ib_uverbs_reg_mr *req = request;

	/* A file's memory is a dma-buf's; nobody has any here. */
	if (uv_attr(cmd, REG_MR_FD) || uv_attr(cmd, REG_MR_FD_OFFSET))
		return -EOPNOTSUPP;
	if (!uv_attr(cmd, REG_MR_ADDR))
		return -EINVAL;
	req->start = uv_attr_u64(cmd, REG_MR_ADDR);
	req->length = uv_attr_u64(cmd, REG_MR_LENGTH);
	req->hca_va = uv_attr_u64(cmd, REG_MR_IOVA);
	req->pd_handle = (uint32_t)uv_attr_u64(cmd, REG_MR_PD_HANDLE);
	return uv_attr_flags(cmd, REG_MR_ACCESS_FLAGS, UINT32_MAX, &req->access_flags);
}

static int spread_reg_mr(struct uv_cmd *cmd, const void *response)
{
	const struct ib_uverbs_reg_mr_resp *resp = response;
	int err;

	uv_attr_put_new(cmd, REG_MR_HANDLE, resp->mr_handle);
	err = uv_attr_put(cmd, REG_MR_RESP_LKEY, &resp->lkey, sizeof(resp->lkey));
	if (err)
		return err;
	return uv_attr_put(cmd, REG_MR_RESP_RKEY, &resp->rkey, sizeof(resp->rkey));
}

/* --- destruction: the handle is attribute 0, what is answered number 1 --- */

_Static_assert(!UVERBS_ATTR_DESTROY_CQ_HANDLE && !UVERBS_ATTR_DESTROY_QP_HANDLE &&
	       !UVERBS_ATTR_DESTROY_SRQ_HANDLE && UVERBS_ATTR_DESTROY_CQ_RESP == 1 &&
	       UVERBS_ATTR_DESTROY_QP_RESP == 1 && UVERBS_ATTR_DESTROY_SRQ_RESP == 1, "one number");

static int fill_handle(struct uv_cmd *cmd, void *request)
{
	uint32_t *handle = request;

	*handle = (uint32_t)uv_attr_u64(cmd, 0);
	return 0;
}

/* Its request begins with an address, which an ioctl's has no use for. */
static int fill_destroy(struct uv_cmd *cmd, void *request)
{
	return fill_handle(cmd, (char *)request + offsetof(struct ib_uverbs_destroy_cq, cq_handle));
}

_Static_assert(offsetof(struct ib_uverbs_destroy_cq, cq_handle) ==
	       offsetof(struct ib_uverbs_destroy_qp, qp_handle) &&
	       offsetof(struct ib_uverbs_destroy_cq, cq_handle) ==
	       offsetof(struct ib_uverbs_destroy_srq, srq_handle), "one request");

static int spread_destroy(struct uv_cmd *cmd, const void *resp)
{
	return uv_attr_put(cmd, 1, resp, cmd->out_used);
}

/* --- the table --- */

#define METHOD(object, method) UVERBS_OBJECT_##object, UVERBS_METHOD_##method

const struct uv_ioctl_method uv_ioctl_methods[] = {
	{ METHOD(DEVICE, GET_CONTEXT), true, ATTRS(get_context_attrs), .run = get_context },
	{ METHOD(DEVICE, QUERY_CONTEXT), false, ATTRS(query_context_attrs), .run = answer_context },
	{ METHOD(DEVICE, INVOKE_WRITE), false, ATTRS(invoke_write_attrs),
	  .fill = fill_invoke_write, .spread = spread_invoke_write },
	{ METHOD(DEVICE, INFO_HANDLES), true, ATTRS(info_handles_attrs),
	  .run = uv_ioctl_info_handles },
	{ METHOD(DEVICE, QUERY_PORT), false, ATTRS(query_port_attrs), .run = uv_ioctl_query_port },
	{ METHOD(DEVICE, QUERY_GID_TABLE), false, ATTRS(query_gid_table_attrs),
	  .run = uv_ioctl_query_gid_table },
	{ METHOD(DEVICE, QUERY_GID_ENTRY), false, ATTRS(query_gid_entry_attrs),
	  .run = uv_ioctl_query_gid_entry },
	{ METHOD(ASYNC_EVENT, ASYNC_EVENT_ALLOC), false, ATTRS(async_event_attrs),
	  .run = async_event_alloc },

	{ METHOD(CQ, CQ_CREATE), false, ATTRS(cq_create_attrs), fill_cq, EX_CMD(CREATE_CQ),
	  SIZE(ex_create_cq), SIZE(ex_create_cq_resp), .spread = spread_cq },
	{ METHOD(CQ, CQ_DESTROY), false, ATTRS(cq_destroy_attrs), fill_destroy, CMD(DESTROY_CQ),
	  SIZE(destroy_cq), SIZE(destroy_cq_resp), .spread = spread_destroy },
	{ METHOD(QP, QP_CREATE), false, ATTRS(qp_create_attrs), fill_qp, EX_CMD(CREATE_QP),
	  SIZE(ex_create_qp), SIZE(ex_create_qp_resp), .spread = spread_qp },
	{ METHOD(QP, QP_DESTROY), false, ATTRS(qp_destroy_attrs), fill_destroy, CMD(DESTROY_QP),
	  SIZE(destroy_qp), SIZE(destroy_qp_resp), .spread = spread_destroy },
	{ METHOD(SRQ, SRQ_CREATE), false, ATTRS(srq_create_attrs), fill_srq, CMD(CREATE_XSRQ),
	  SIZE(create_xsrq), SIZE(create_srq_resp), .spread = spread_srq },
	{ METHOD(SRQ, SRQ_DESTROY), false, ATTRS(srq_destroy_attrs), fill_destroy,
	  CMD(DESTROY_SRQ), SIZE(destroy_srq), SIZE(destroy_srq_resp), .spread = spread_destroy },

	{ UVERBS_OBJECT_MR, METHOD_REG_MR, false, ATTRS(reg_mr_attrs), fill_reg_mr, CMD(REG_MR),
	  SIZE(reg_mr), SIZE(reg_mr_resp), .spread = spread_reg_mr },
	{ METHOD(MR, QUERY_MR), false, ATTRS(query_mr_attrs), .run = uv_ioctl_query_mr },
	{ METHOD(MR, ADVISE_MR), false, ATTRS(advise_mr_attrs), .run = uv_ioctl_advise_mr },
	{ METHOD(MR, MR_DESTROY), false, ATTRS(mr_destroy_attrs), fill_handle, CMD(DEREG_MR),
	  SIZE(dereg_mr), .resp = 0 },
	{ METHOD(PD, PD_DESTROY), false, ATTRS(pd_destroy_attrs), fill_handle, CMD(DEALLOC_PD),
	  SIZE(dealloc_pd), .resp = 0 },
	{ METHOD(MW, MW_DESTROY), false, ATTRS(mw_destroy_attrs), fill_handle, CMD(DEALLOC_MW),
	  SIZE(dealloc_mw), .resp = 0 },
	{ METHOD(AH, AH_DESTROY), false, ATTRS(ah_destroy_attrs), fill_handle, CMD(DESTROY_AH),
	  SIZE(destroy_ah), .resp = 0 },
	{ METHOD(XRCD, XRCD_DESTROY), false, ATTRS(xrcd_destroy_attrs), fill_handle,
	  CMD(CLOSE_XRCD), SIZE(close_xrcd), .resp = 0 },
};

const unsigned int uv_ioctl_num_methods = sizeof(uv_ioctl_methods) / sizeof(uv_ioctl_methods[0]);
