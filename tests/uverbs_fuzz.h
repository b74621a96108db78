/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What uverbs_fuzz.c knows of uverbs: the fields of each write() command and
 * the attributes of each ioctl method, so that what it makes up is near to
 * right and gets far. <rdma/ib_user_verbs.h>, <rdma/ib_user_ioctl_cmds.h>.
 */
#ifndef UVERBS_FUZZ_H
#define UVERBS_FUZZ_H

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/rdma_user_rxe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum type { T_PD, T_MR, T_MW, T_AH, T_CQ, T_SRQ, T_QP, T_XRCD, TYPES, NONE = TYPES, T_EVENTS };

enum kind {
	K_END, K_RESPONSE,
	K_HANDLE,			/* arg: type */
	K_SMALL,			/* below arg */
	K_BITS,				/* some of arg */
	K_ADDR, K_LENGTH, K_FD, K_QPN, K_KEY,
	/* attributes of an ioctl */
	K_OUT,				/* arg: bytes */
	K_BYTES,			/* arg: bytes that it points to */
	K_NEW,
};

struct field {
	uint16_t at, size;		/* in the request; of an attribute: its number, bytes */
	uint8_t kind;
	uint32_t arg;
};

struct command {
	uint32_t cmd;
	bool ex;
	uint16_t req, resp, driver;	/* bytes */
	uint8_t makes;			/* a handle, first in the response */
	bool ends;			/* the handle in it */
	struct field fields[14];
};

#define SIZE(type) sizeof(struct ib_uverbs_##type)
#define F(type, member, kind, arg) \
	{ offsetof(struct ib_uverbs_##type, member), \
	  sizeof(((struct ib_uverbs_##type *)0)->member), kind, arg }
#define CMD(name, type) IB_USER_VERBS_CMD_##name, false, SIZE(type)
#define EX(name, type) IB_USER_VERBS_EX_CMD_##name, true, SIZE(type)
#define ACCESS_BITS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND)

static const struct command commands[] = {
	{ CMD(GET_CONTEXT, get_context), SIZE(get_context_resp), 0, NONE, false,
	  { F(get_context, response, K_RESPONSE, 0) } },
	{ CMD(QUERY_DEVICE, query_device), SIZE(query_device_resp), 0, NONE, false,
	  { F(query_device, response, K_RESPONSE, 0) } },
	{ CMD(QUERY_PORT, query_port), SIZE(query_port_resp), 0, NONE, false,
	  { F(query_port, response, K_RESPONSE, 0), F(query_port, port_num, K_SMALL, 3) } },
	{ EX(QUERY_DEVICE, ex_query_device), SIZE(ex_query_device_resp), 0, NONE, false, { { 0 } } },
	{ CMD(ALLOC_PD, alloc_pd), SIZE(alloc_pd_resp), 0, T_PD, false,
	  { F(alloc_pd, response, K_RESPONSE, 0) } },
	{ CMD(DEALLOC_PD, dealloc_pd), 0, 0, NONE, true, { F(dealloc_pd, pd_handle, K_HANDLE, T_PD) } },
	{ CMD(REG_MR, reg_mr), SIZE(reg_mr_resp), 0, T_MR, false,
	  { F(reg_mr, response, K_RESPONSE, 0), F(reg_mr, start, K_ADDR, 0),
	    F(reg_mr, length, K_LENGTH, 0), F(reg_mr, hca_va, K_ADDR, 0),
	    F(reg_mr, pd_handle, K_HANDLE, T_PD), F(reg_mr, access_flags, K_BITS, ACCESS_BITS) } },
	{ CMD(REREG_MR, rereg_mr), SIZE(rereg_mr_resp), 0, NONE, false,
	  { F(rereg_mr, response, K_RESPONSE, 0), F(rereg_mr, mr_handle, K_HANDLE, T_MR),
	    F(rereg_mr, flags, K_BITS, 7), F(rereg_mr, start, K_ADDR, 0),
	    F(rereg_mr, length, K_LENGTH, 0), F(rereg_mr, hca_va, K_ADDR, 0),
	    F(rereg_mr, pd_handle, K_HANDLE, T_PD),
	    F(rereg_mr, access_flags, K_BITS, ACCESS_BITS) } },
	{ CMD(DEREG_MR, dereg_mr), 0, 0, NONE, true, { F(dereg_mr, mr_handle, K_HANDLE, T_MR) } },
	{ CMD(ALLOC_MW, alloc_mw), SIZE(alloc_mw_resp), 0, T_MW, false,
	  { F(alloc_mw, response, K_RESPONSE, 0), F(alloc_mw, pd_handle, K_HANDLE, T_PD),
	    F(alloc_mw, mw_type, K_SMALL, 4) } },
	{ CMD(DEALLOC_MW, dealloc_mw), 0, 0, NONE, true, { F(dealloc_mw, mw_handle, K_HANDLE, T_MW) } },
	{ CMD(CREATE_AH, create_ah), SIZE(create_ah_resp), sizeof(struct rxe_create_ah_resp), T_AH, false,
	  { F(create_ah, response, K_RESPONSE, 0), F(create_ah, pd_handle, K_HANDLE, T_PD),
	    F(create_ah, attr.dlid, K_SMALL, 8), F(create_ah, attr.port_num, K_SMALL, 3),
	    F(create_ah, attr.is_global, K_SMALL, 2), F(create_ah, attr.sl, K_SMALL, 17) } },
	{ CMD(DESTROY_AH, destroy_ah), 0, 0, NONE, true, { F(destroy_ah, ah_handle, K_HANDLE, T_AH) } },
	{ CMD(OPEN_XRCD, open_xrcd), SIZE(open_xrcd_resp), 0, T_XRCD, false,
	  { F(open_xrcd, response, K_RESPONSE, 0), F(open_xrcd, fd, K_FD, 0),
	    F(open_xrcd, oflags, K_BITS, 0300) } },
	{ CMD(CLOSE_XRCD, close_xrcd), 0, 0, NONE, true,
	  { F(close_xrcd, xrcd_handle, K_HANDLE, T_XRCD) } },
	{ CMD(CREATE_COMP_CHANNEL, create_comp_channel), SIZE(create_comp_channel_resp), 0, T_EVENTS,
	  false, { F(create_comp_channel, response, K_RESPONSE, 0) } },
	{ CMD(CREATE_CQ, create_cq), SIZE(create_cq_resp), sizeof(struct rxe_create_cq_resp), T_CQ, false,
	  { F(create_cq, response, K_RESPONSE, 0), F(create_cq, cqe, K_SMALL, 40),
	    F(create_cq, comp_vector, K_SMALL, 2), F(create_cq, comp_channel, K_FD, 0) } },
	{ EX(CREATE_CQ, ex_create_cq), SIZE(ex_create_cq_resp), sizeof(struct rxe_create_cq_resp), T_CQ,
	  false, { F(ex_create_cq, cqe, K_SMALL, 40), F(ex_create_cq, comp_channel, K_FD, 0),
		   F(ex_create_cq, flags, K_BITS, 2) } },
	{ CMD(RESIZE_CQ, resize_cq), SIZE(resize_cq_resp), sizeof(struct rxe_resize_cq_resp), NONE, false,
	  { F(resize_cq, response, K_RESPONSE, 0), F(resize_cq, cq_handle, K_HANDLE, T_CQ),
	    F(resize_cq, cqe, K_SMALL, 80) } },
	{ EX(MODIFY_CQ, ex_modify_cq), 0, 0, NONE, false,
	  { F(ex_modify_cq, cq_handle, K_HANDLE, T_CQ), F(ex_modify_cq, attr_mask, K_SMALL, 3),
	    F(ex_modify_cq, attr, K_SMALL, 1 << 20) } },
	{ CMD(POLL_CQ, poll_cq), SIZE(poll_cq_resp) + 4 * sizeof(struct ib_uverbs_wc), 0, NONE, false,
	  { F(poll_cq, response, K_RESPONSE, 0), F(poll_cq, cq_handle, K_HANDLE, T_CQ),
	    F(poll_cq, ne, K_SMALL, 6) } },
	{ CMD(REQ_NOTIFY_CQ, req_notify_cq), 0, 0, NONE, false,
	  { F(req_notify_cq, cq_handle, K_HANDLE, T_CQ), F(req_notify_cq, solicited_only, K_SMALL, 2) } },
	{ CMD(DESTROY_CQ, destroy_cq), SIZE(destroy_cq_resp), 0, NONE, true,
	  { F(destroy_cq, response, K_RESPONSE, 0), F(destroy_cq, cq_handle, K_HANDLE, T_CQ) } },
	{ CMD(CREATE_SRQ, create_srq), SIZE(create_srq_resp), sizeof(struct rxe_create_srq_resp), T_SRQ,
	  false,
	  { F(create_srq, response, K_RESPONSE, 0), F(create_srq, pd_handle, K_HANDLE, T_PD),
	    F(create_srq, max_wr, K_SMALL, 40), F(create_srq, max_sge, K_SMALL, 5),
	    F(create_srq, srq_limit, K_SMALL, 3) } },
	{ CMD(CREATE_XSRQ, create_xsrq), SIZE(create_srq_resp), sizeof(struct rxe_create_srq_resp), T_SRQ,
	  false,
	  { F(create_xsrq, response, K_RESPONSE, 0), F(create_xsrq, srq_type, K_SMALL, 3),
	    F(create_xsrq, pd_handle, K_HANDLE, T_PD), F(create_xsrq, max_wr, K_SMALL, 40),
	    F(create_xsrq, max_sge, K_SMALL, 5), F(create_xsrq, xrcd_handle, K_HANDLE, T_XRCD),
	    F(create_xsrq, cq_handle, K_HANDLE, T_CQ) } },
	{ CMD(MODIFY_SRQ, modify_srq) + sizeof(struct rxe_modify_srq_cmd), 0, 0, NONE, false,
	  { F(modify_srq, srq_handle, K_HANDLE, T_SRQ), F(modify_srq, attr_mask, K_BITS, 3),
	    F(modify_srq, max_wr, K_SMALL, 80), F(modify_srq, srq_limit, K_SMALL, 30),
	    { SIZE(modify_srq), 8, K_RESPONSE, 0 } } },
	{ CMD(QUERY_SRQ, query_srq), SIZE(query_srq_resp), 0, NONE, false,
	  { F(query_srq, response, K_RESPONSE, 0), F(query_srq, srq_handle, K_HANDLE, T_SRQ) } },
	{ CMD(DESTROY_SRQ, destroy_srq), SIZE(destroy_srq_resp), 0, NONE, true,
	  { F(destroy_srq, response, K_RESPONSE, 0), F(destroy_srq, srq_handle, K_HANDLE, T_SRQ) } },
	{ CMD(CREATE_QP, create_qp), SIZE(create_qp_resp), sizeof(struct rxe_create_qp_resp), T_QP, false,
	  { F(create_qp, response, K_RESPONSE, 0), F(create_qp, pd_handle, K_HANDLE, T_PD),
	    F(create_qp, send_cq_handle, K_HANDLE, T_CQ), F(create_qp, recv_cq_handle, K_HANDLE, T_CQ),
	    F(create_qp, srq_handle, K_HANDLE, T_SRQ), F(create_qp, max_send_wr, K_SMALL, 40),
	    F(create_qp, max_recv_wr, K_SMALL, 40), F(create_qp, max_send_sge, K_SMALL, 5),
	    F(create_qp, max_recv_sge, K_SMALL, 5), F(create_qp, max_inline_data, K_SMALL, 70),
	    F(create_qp, sq_sig_all, K_SMALL, 2), F(create_qp, qp_type, K_SMALL, 11),
	    F(create_qp, is_srq, K_SMALL, 2) } },
	{ EX(CREATE_QP, ex_create_qp), SIZE(ex_create_qp_resp), sizeof(struct rxe_create_qp_resp), T_QP,
	  false, { F(ex_create_qp, pd_handle, K_HANDLE, T_PD),
		   F(ex_create_qp, send_cq_handle, K_HANDLE, T_CQ),
		   F(ex_create_qp, recv_cq_handle, K_HANDLE, T_CQ),
		   F(ex_create_qp, max_send_wr, K_SMALL, 40), F(ex_create_qp, max_recv_wr, K_SMALL, 40),
		   F(ex_create_qp, max_send_sge, K_SMALL, 5), F(ex_create_qp, max_recv_sge, K_SMALL, 5),
		   F(ex_create_qp, qp_type, K_SMALL, 5), F(ex_create_qp, create_flags, K_BITS, 2) } },
	{ CMD(OPEN_QP, open_qp), SIZE(create_qp_resp), 0, T_QP, false,
	  { F(open_qp, response, K_RESPONSE, 0), F(open_qp, pd_handle, K_HANDLE, T_XRCD),
	    F(open_qp, qpn, K_QPN, 0), F(open_qp, qp_type, K_SMALL, 11) } },
	{ CMD(QUERY_QP, query_qp), SIZE(query_qp_resp), 0, NONE, false,
	  { F(query_qp, response, K_RESPONSE, 0), F(query_qp, qp_handle, K_HANDLE, T_QP) } },
	{ CMD(MODIFY_QP, modify_qp), 0, 0, NONE, false,
	  { F(modify_qp, qp_handle, K_HANDLE, T_QP), F(modify_qp, attr_mask, K_BITS, 0x1fffff),
	    F(modify_qp, dest_qp_num, K_QPN, 0), F(modify_qp, qp_access_flags, K_BITS, ACCESS_BITS),
	    F(modify_qp, qp_state, K_SMALL, 8), F(modify_qp, cur_qp_state, K_SMALL, 8),
	    F(modify_qp, path_mtu, K_SMALL, 7), F(modify_qp, path_mig_state, K_SMALL, 4),
	    F(modify_qp, port_num, K_SMALL, 3), F(modify_qp, timeout, K_SMALL, 33),
	    F(modify_qp, retry_cnt, K_SMALL, 9), F(modify_qp, dest.dlid, K_SMALL, 8) } },
	{ EX(MODIFY_QP, ex_modify_qp), SIZE(ex_modify_qp_resp), 0, NONE, false,
	  { F(ex_modify_qp, base.qp_handle, K_HANDLE, T_QP),
	    F(ex_modify_qp, base.attr_mask, K_BITS, 0x1fffff), F(ex_modify_qp, base.qp_state, K_SMALL, 8),
	    F(ex_modify_qp, base.port_num, K_SMALL, 3) } },
	{ CMD(DESTROY_QP, destroy_qp), SIZE(destroy_qp_resp), 0, NONE, true,
	  { F(destroy_qp, response, K_RESPONSE, 0), F(destroy_qp, qp_handle, K_HANDLE, T_QP) } },
	{ CMD(POST_SEND, post_send), SIZE(post_send_resp), 0, NONE, false,
	  { F(post_send, response, K_RESPONSE, 0), F(post_send, qp_handle, K_HANDLE, T_QP),
	    F(post_send, wqe_size, K_SMALL, 2 * SIZE(send_wr)) } },
	{ CMD(POST_RECV, post_recv), SIZE(post_recv_resp), 0, NONE, false,
	  { F(post_recv, response, K_RESPONSE, 0), F(post_recv, qp_handle, K_HANDLE, T_QP),
	    F(post_recv, wr_count, K_SMALL, 3), F(post_recv, sge_count, K_SMALL, 3),
	    F(post_recv, wqe_size, K_SMALL, 40) } },
	{ CMD(POST_SRQ_RECV, post_srq_recv), SIZE(post_srq_recv_resp), 0, NONE, false,
	  { F(post_srq_recv, response, K_RESPONSE, 0), F(post_srq_recv, srq_handle, K_HANDLE, T_SRQ),
	    F(post_srq_recv, wr_count, K_SMALL, 3), F(post_srq_recv, wqe_size, K_SMALL, 40) } },
	{ CMD(ATTACH_MCAST, attach_mcast), 0, 0, NONE, false,
	  { F(attach_mcast, gid[0], K_SMALL, 256), F(attach_mcast, qp_handle, K_HANDLE, T_QP),
	    F(attach_mcast, mlid, K_SMALL, 0x10000) } },
	{ CMD(DETACH_MCAST, detach_mcast), 0, 0, NONE, false,
	  { F(detach_mcast, gid[0], K_SMALL, 256), F(detach_mcast, qp_handle, K_HANDLE, T_QP),
	    F(detach_mcast, mlid, K_SMALL, 0x10000) } },
};

/* A method's attributes. What an ioctl makes is attribute `made`'s. */
struct method {
	uint16_t object, id;
	uint8_t makes;
	bool ends;
	struct field attrs[16];
};

#define METHOD(object, id) UVERBS_OBJECT_##object, UVERBS_METHOD_##id
#define UHW { UVERBS_ATTR_UHW_OUT, 0, K_OUT, 40 }

static const struct method __attribute__((unused)) methods[] = {
	{ METHOD(DEVICE, GET_CONTEXT), NONE, false,
	  { { UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, 0, K_OUT, 4 },
	    { UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, 0, K_OUT, 8 } } },
	{ METHOD(DEVICE, QUERY_CONTEXT), NONE, false,
	  { { UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 0, K_OUT, 4 } } },
	{ METHOD(DEVICE, INFO_HANDLES), NONE, false,
	  { { UVERBS_ATTR_INFO_OBJECT_ID, 8, K_SMALL, 20 }, { UVERBS_ATTR_INFO_TOTAL_HANDLES, 0, K_OUT, 4 },
	    { UVERBS_ATTR_INFO_HANDLES_LIST, 0, K_OUT, 40 } } },
	{ METHOD(DEVICE, QUERY_PORT), NONE, false,
	  { { UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, K_SMALL, 3 },
	    { UVERBS_ATTR_QUERY_PORT_RESP, 0, K_OUT, SIZE(query_port_resp_ex) } } },
	{ METHOD(DEVICE, QUERY_GID_TABLE), NONE, false,
	  { { UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, 8, K_SMALL, 80 },
	    { UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 0, K_OUT, 400 },
	    { UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 0, K_OUT, 8 } } },
	{ METHOD(DEVICE, QUERY_GID_ENTRY), NONE, false,
	  { { UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 8, K_SMALL, 3 },
	    { UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 8, K_SMALL, 3 },
	    { UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 4, K_SMALL, 2 },
	    { UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, 0, K_OUT, SIZE(gid_entry) } } },
	{ METHOD(ASYNC_EVENT, ASYNC_EVENT_ALLOC), T_EVENTS, false,
	  { { UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0, K_NEW, 0 } } },
	{ METHOD(CQ, CQ_CREATE), T_CQ, false,
	  { { UVERBS_ATTR_CREATE_CQ_HANDLE, 0, K_NEW, 0 }, { UVERBS_ATTR_CREATE_CQ_CQE, 4, K_SMALL, 40 },
	    { UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, K_SMALL, 9 },
	    { UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, 0, K_FD, 0 },
	    { UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, K_SMALL, 2 },
	    { UVERBS_ATTR_CREATE_CQ_FLAGS, 4, K_BITS, 2 }, { UVERBS_ATTR_CREATE_CQ_RESP_CQE, 0, K_OUT, 4 },
	    { UVERBS_ATTR_CREATE_CQ_EVENT_FD, 0, K_FD, 0 }, UHW } },
	{ METHOD(CQ, CQ_DESTROY), NONE, true,
	  { { UVERBS_ATTR_DESTROY_CQ_HANDLE, 0, K_HANDLE, T_CQ },
	    { UVERBS_ATTR_DESTROY_CQ_RESP, 0, K_OUT, SIZE(destroy_cq_resp) } } },
	{ METHOD(QP, QP_CREATE), T_QP, false,
	  { { UVERBS_ATTR_CREATE_QP_HANDLE, 0, K_NEW, 0 },
	    { UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0, K_HANDLE, T_PD },
	    { UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, 0, K_HANDLE, T_SRQ },
	    { UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, 0, K_HANDLE, T_CQ },
	    { UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, 0, K_HANDLE, T_CQ },
	    { UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, K_SMALL, 9 },
	    { UVERBS_ATTR_CREATE_QP_CAP, 0, K_BYTES, SIZE(qp_cap) },
	    { UVERBS_ATTR_CREATE_QP_TYPE, 8, K_SMALL, 11 }, { UVERBS_ATTR_CREATE_QP_FLAGS, 4, K_BITS, 2 },
	    { UVERBS_ATTR_CREATE_QP_EVENT_FD, 0, K_FD, 0 },
	    { UVERBS_ATTR_CREATE_QP_RESP_CAP, 0, K_OUT, SIZE(qp_cap) },
	    { UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 0, K_OUT, 4 }, UHW } },
	{ METHOD(QP, QP_DESTROY), NONE, true,
	  { { UVERBS_ATTR_DESTROY_QP_HANDLE, 0, K_HANDLE, T_QP },
	    { UVERBS_ATTR_DESTROY_QP_RESP, 0, K_OUT, SIZE(destroy_qp_resp) } } },
	{ METHOD(SRQ, SRQ_CREATE), T_SRQ, false,
	  { { UVERBS_ATTR_CREATE_SRQ_HANDLE, 0, K_NEW, 0 },
	    { UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, 0, K_HANDLE, T_PD },
	    { UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, 0, K_HANDLE, T_XRCD },
	    { UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, 0, K_HANDLE, T_CQ },
	    { UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 8, K_SMALL, 9 },
	    { UVERBS_ATTR_CREATE_SRQ_MAX_WR, 4, K_SMALL, 40 },
	    { UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 4, K_SMALL, 5 },
	    { UVERBS_ATTR_CREATE_SRQ_LIMIT, 4, K_SMALL, 2 }, { UVERBS_ATTR_CREATE_SRQ_TYPE, 8, K_SMALL, 3 },
	    { UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, 0, K_OUT, 4 },
	    { UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, 0, K_OUT, 4 },
	    { UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, 0, K_OUT, 4 }, UHW } },
	{ METHOD(SRQ, SRQ_DESTROY), NONE, true,
	  { { UVERBS_ATTR_DESTROY_SRQ_HANDLE, 0, K_HANDLE, T_SRQ },
	    { UVERBS_ATTR_DESTROY_SRQ_RESP, 0, K_OUT, SIZE(destroy_srq_resp) } } },
	{ UVERBS_OBJECT_MR, 5 /* REG_MR */, T_MR, false,
	  { { 0, 0, K_NEW, 0 }, { 1, 0, K_HANDLE, T_PD }, { 3, 8, K_ADDR, 0 }, { 4, 8, K_ADDR, 0 },
	    { 5, 8, K_LENGTH, 0 }, { 6, 4, K_BITS, ACCESS_BITS }, { 9, 0, K_OUT, 4 },
	    { 10, 0, K_OUT, 4 } } },
	{ METHOD(MR, QUERY_MR), NONE, false,
	  { { UVERBS_ATTR_QUERY_MR_HANDLE, 0, K_HANDLE, T_MR }, { UVERBS_ATTR_QUERY_MR_RESP_LKEY, 0, K_OUT, 4 },
	    { UVERBS_ATTR_QUERY_MR_RESP_RKEY, 0, K_OUT, 4 }, { UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 0, K_OUT, 8 },
	    { UVERBS_ATTR_QUERY_MR_RESP_IOVA, 0, K_OUT, 8 } } },
	{ METHOD(MR, ADVISE_MR), NONE, false,
	  { { UVERBS_ATTR_ADVISE_MR_PD_HANDLE, 0, K_HANDLE, T_PD },
	    { UVERBS_ATTR_ADVISE_MR_ADVICE, 8, K_SMALL, 4 }, { UVERBS_ATTR_ADVISE_MR_FLAGS, 4, K_SMALL, 3 },
	    { UVERBS_ATTR_ADVISE_MR_SGE_LIST, 0, K_BYTES, 2 * SIZE(sge) } } },
	{ METHOD(MR, MR_DESTROY), NONE, true, { { 0, 0, K_HANDLE, T_MR } } },
	{ METHOD(PD, PD_DESTROY), NONE, true, { { 0, 0, K_HANDLE, T_PD } } },
	{ METHOD(MW, MW_DESTROY), NONE, true, { { 0, 0, K_HANDLE, T_MW } } },
	{ METHOD(AH, AH_DESTROY), NONE, true, { { 0, 0, K_HANDLE, T_AH } } },
	{ METHOD(XRCD, XRCD_DESTROY), NONE, true, { { 0, 0, K_HANDLE, T_XRCD } } },
	{ METHOD(DM, DM_ALLOC), NONE, false, { { UVERBS_ATTR_ALLOC_DM_HANDLE, 0, K_NEW, 0 } } },
};

#endif
