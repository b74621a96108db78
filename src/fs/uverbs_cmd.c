/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands of uverbs: sizes and functions. Kernel: uverbs_def_write_intf.
 * What isn't here (flow steering, work queues, MODIFY_AH) the kernel doesn't
 * have, or the rxe driver hasn't: EOPNOTSUPP. One is of this file alone.
 */
#include <errno.h>

#include <ibfs/uverbs_rings.h>

#include "fs/uverbs.h"

#define NAME(cmd) IB_USER_VERBS_CMD_##cmd
#define EX_NAME(cmd) (IB_USER_VERBS_EX_CMD_##cmd & IB_USER_VERBS_CMD_COMMAND_MASK)
#define SIZE(type) sizeof(struct ib_uverbs_##type)
#define UPTO(type, member) (offsetof(struct ib_uverbs_##type, member) + \
			    sizeof(((struct ib_uverbs_##type *)0)->member))

enum { EX = 1, DRIVER = 1 };

static const struct uv_method methods[] = {
	/* command		ex driver context request, response, preparation, function */
	{ NAME(GET_CONTEXT), 0, DRIVER, 1, SIZE(get_context), SIZE(get_context_resp), NULL,
	  uv_get_context },
	{ NAME(QUERY_DEVICE), 0, 0, 0, SIZE(query_device), SIZE(query_device_resp), NULL,
	  uv_query_device },
	{ NAME(QUERY_PORT), 0, 0, 0, SIZE(query_port), SIZE(query_port_resp), NULL, uv_query_port },
	{ EX_NAME(QUERY_DEVICE), EX, DRIVER, 0, SIZE(ex_query_device),
	  UPTO(ex_query_device_resp, response_length), NULL, uv_ex_query_device },

	{ IBFS_UVERBS_RINGS, 0, 0, 0, sizeof(struct ibfs_uverbs_rings), 0, uv_prep_rings, uv_rings },

	{ NAME(ALLOC_PD), 0, DRIVER, 0, SIZE(alloc_pd), SIZE(alloc_pd_resp), NULL, uv_alloc_pd },
	{ NAME(DEALLOC_PD), 0, 0, 0, SIZE(dealloc_pd), 0, NULL, uv_dealloc_pd },
	{ NAME(REG_MR), 0, DRIVER, 0, SIZE(reg_mr), SIZE(reg_mr_resp), uv_prep_reg_mr, uv_reg_mr },
	{ NAME(REREG_MR), 0, DRIVER, 0, SIZE(rereg_mr), SIZE(rereg_mr_resp), uv_prep_rereg_mr,
	  uv_rereg_mr },
	{ NAME(DEREG_MR), 0, 0, 0, SIZE(dereg_mr), 0, NULL, uv_dereg_mr },
	{ NAME(ALLOC_MW), 0, DRIVER, 0, SIZE(alloc_mw), SIZE(alloc_mw_resp), NULL, uv_alloc_mw },
	{ NAME(DEALLOC_MW), 0, 0, 0, SIZE(dealloc_mw), 0, NULL, uv_dealloc_mw },
	{ NAME(CREATE_AH), 0, DRIVER, 0, SIZE(create_ah), SIZE(create_ah_resp), NULL, uv_create_ah },
	{ NAME(DESTROY_AH), 0, 0, 0, SIZE(destroy_ah), 0, NULL, uv_destroy_ah },
	{ NAME(OPEN_XRCD), 0, DRIVER, 0, SIZE(open_xrcd), SIZE(open_xrcd_resp), uv_prep_open_xrcd,
	  uv_open_xrcd },
	{ NAME(CLOSE_XRCD), 0, 0, 0, SIZE(close_xrcd), 0, NULL, uv_close_xrcd },

	{ NAME(CREATE_COMP_CHANNEL), 0, 0, 0, SIZE(create_comp_channel),
	  SIZE(create_comp_channel_resp), NULL, uv_create_comp_channel },
	{ NAME(CREATE_CQ), 0, DRIVER, 0, SIZE(create_cq), SIZE(create_cq_resp), uv_prep_create_cq,
	  uv_create_cq },
	{ EX_NAME(CREATE_CQ), EX, DRIVER, 0, SIZE(ex_create_cq),
	  UPTO(ex_create_cq_resp, response_length), uv_prep_ex_create_cq, uv_ex_create_cq },
	{ NAME(RESIZE_CQ), 0, DRIVER, 0, SIZE(resize_cq), SIZE(resize_cq_resp),
	  uv_prep_resize_cq, uv_resize_cq },
	{ EX_NAME(MODIFY_CQ), EX, 0, 0, SIZE(ex_modify_cq), 0, NULL, uv_ex_modify_cq },
	{ NAME(POLL_CQ), 0, 0, 0, SIZE(poll_cq), SIZE(poll_cq_resp), NULL, uv_poll_cq },
	{ NAME(REQ_NOTIFY_CQ), 0, 0, 0, SIZE(req_notify_cq), 0, NULL, uv_req_notify_cq },
	{ NAME(DESTROY_CQ), 0, 0, 0, SIZE(destroy_cq), SIZE(destroy_cq_resp), NULL, uv_destroy_cq },

	{ NAME(CREATE_SRQ), 0, DRIVER, 0, SIZE(create_srq), SIZE(create_srq_resp), NULL,
	  uv_create_srq },
	{ NAME(CREATE_XSRQ), 0, DRIVER, 0, SIZE(create_xsrq), SIZE(create_srq_resp), NULL,
	  uv_create_xsrq },
	{ NAME(MODIFY_SRQ), 0, DRIVER, 0, SIZE(modify_srq), 0, NULL, uv_modify_srq },
	{ NAME(QUERY_SRQ), 0, 0, 0, SIZE(query_srq), SIZE(query_srq_resp), NULL, uv_query_srq },
	{ NAME(DESTROY_SRQ), 0, 0, 0, SIZE(destroy_srq), SIZE(destroy_srq_resp), NULL,
	  uv_destroy_srq },

	{ NAME(CREATE_QP), 0, DRIVER, 0, SIZE(create_qp), SIZE(create_qp_resp), NULL, uv_create_qp },
	{ EX_NAME(CREATE_QP), EX, DRIVER, 0, UPTO(ex_create_qp, comp_mask),
	  UPTO(ex_create_qp_resp, response_length), NULL, uv_ex_create_qp },
	{ NAME(OPEN_QP), 0, DRIVER, 0, SIZE(open_qp), SIZE(create_qp_resp), NULL, uv_open_qp },
	{ NAME(QUERY_QP), 0, 0, 0, SIZE(query_qp), SIZE(query_qp_resp), NULL, uv_query_qp },
	{ NAME(MODIFY_QP), 0, 0, 0, SIZE(modify_qp), 0, NULL, uv_modify_qp },
	{ EX_NAME(MODIFY_QP), EX, 0, 0, UPTO(ex_modify_qp, base),
	  UPTO(ex_modify_qp_resp, response_length), NULL, uv_ex_modify_qp },
	{ NAME(DESTROY_QP), 0, 0, 0, SIZE(destroy_qp), SIZE(destroy_qp_resp), NULL, uv_destroy_qp },
	{ NAME(ATTACH_MCAST), 0, 0, 0, SIZE(attach_mcast), 0, NULL, uv_attach_mcast },
	{ NAME(DETACH_MCAST), 0, 0, 0, SIZE(detach_mcast), 0, NULL, uv_detach_mcast },

	{ NAME(POST_SEND), 0, 0, 0, SIZE(post_send), SIZE(post_send_resp), NULL,
	  uv_post_send },
	{ NAME(POST_RECV), 0, 0, 0, SIZE(post_recv), SIZE(post_recv_resp), NULL,
	  uv_post_recv },
	{ NAME(POST_SRQ_RECV), 0, 0, 0, SIZE(post_srq_recv), SIZE(post_srq_recv_resp), NULL,
	  uv_post_srq_recv },
};

const struct uv_method *uv_method(uint32_t cmd, bool ex)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (methods[i].cmd == cmd && methods[i].ex == ex)
			return &methods[i];
	return NULL;
}

int uv_find_method(uint32_t command, const struct uv_method **method)
{
	bool ex = command & IB_USER_VERBS_CMD_FLAG_EXTENDED;

	if (command & ~(IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_COMMAND_MASK))
		return -EINVAL;
	*method = uv_method(command & IB_USER_VERBS_CMD_COMMAND_MASK, ex);
	return *method ? 0 : -EOPNOTSUPP;
}
