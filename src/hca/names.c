/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of states, types, statuses and events in text: libibverbs' and the
 * kernel's, in lower case.
 */
#include <stddef.h>

#include "ibfs/verbs.h"

#define NAME(table, i) ((i) < sizeof(table) / sizeof(table[0]) ? table[i] : NULL)

static const char *const wc_opcodes[] = {
	[IBFS_WC_SEND] = "send", [IBFS_WC_RDMA_WRITE] = "rdma_write", [IBFS_WC_RDMA_READ] = "rdma_read",
	[IBFS_WC_COMP_SWAP] = "comp_swap", [IBFS_WC_FETCH_ADD] = "fetch_add",
	[IBFS_WC_BIND_MW] = "bind_mw", [IBFS_WC_LOCAL_INV] = "local_inv", [IBFS_WC_LSO] = "lso",
	[IBFS_WC_ATOMIC_WRITE] = "atomic_write",
	[IBFS_WC_FAST_REG_MR] = "fast_reg_mr", [IBFS_WC_MASKED_COMP_SWAP] = "masked_comp_swap",
	[IBFS_WC_MASKED_FETCH_ADD] = "masked_fetch_add", [IBFS_WC_RECV] = "recv",
	[IBFS_WC_RECV_RDMA_WITH_IMM] = "recv_rdma_with_imm",
};

const char *wc_opcode_name(unsigned int opcode)
{
	return NAME(wc_opcodes, opcode);
}

static const char *const wc_statuses[] = {
	[IBV_WC_SUCCESS] = "success", [IBV_WC_LOC_LEN_ERR] = "loc_len_err",
	[IBV_WC_LOC_QP_OP_ERR] = "loc_qp_op_err", [IBV_WC_LOC_EEC_OP_ERR] = "loc_eec_op_err",
	[IBV_WC_LOC_PROT_ERR] = "loc_prot_err", [IBV_WC_WR_FLUSH_ERR] = "wr_flush_err",
	[IBV_WC_MW_BIND_ERR] = "mw_bind_err", [IBV_WC_BAD_RESP_ERR] = "bad_resp_err",
	[IBV_WC_LOC_ACCESS_ERR] = "loc_access_err", [IBV_WC_REM_INV_REQ_ERR] = "rem_inv_req_err",
	[IBV_WC_REM_ACCESS_ERR] = "rem_access_err", [IBV_WC_REM_OP_ERR] = "rem_op_err",
	[IBV_WC_RETRY_EXC_ERR] = "retry_exc_err", [IBV_WC_RNR_RETRY_EXC_ERR] = "rnr_retry_exc_err",
	[IBV_WC_LOC_RDD_VIOL_ERR] = "loc_rdd_viol_err",
	[IBV_WC_REM_INV_RD_REQ_ERR] = "rem_inv_rd_req_err", [IBV_WC_REM_ABORT_ERR] = "rem_abort_err",
	[IBV_WC_INV_EECN_ERR] = "inv_eecn_err", [IBV_WC_INV_EEC_STATE_ERR] = "inv_eec_state_err",
	[IBV_WC_FATAL_ERR] = "fatal_err", [IBV_WC_RESP_TIMEOUT_ERR] = "resp_timeout_err",
	[IBV_WC_GENERAL_ERR] = "general_err",
};

const char *wc_status_name(unsigned int status)
{
	return NAME(wc_statuses, status);
}

static const char *const qp_types[] = {
	[IBFS_QPT_SMI] = "smi", [IBFS_QPT_GSI] = "gsi", [IBV_QPT_RC] = "rc", [IBV_QPT_UC] = "uc",
	[IBV_QPT_UD] = "ud", [IBFS_QPT_RAW_IPV6] = "raw_ipv6",
	[IBFS_QPT_RAW_ETHERTYPE] = "raw_ethertype", [IBV_QPT_RAW_PACKET] = "raw_packet",
	[IBV_QPT_XRC_SEND] = "xrc_ini", [IBV_QPT_XRC_RECV] = "xrc_tgt",
};

const char *qp_type_name(unsigned int type)
{
	return NAME(qp_types, type);
}

static const char *const qp_states[] = {
	[IBV_QPS_RESET] = "reset", [IBV_QPS_INIT] = "init", [IBV_QPS_RTR] = "rtr",
	[IBV_QPS_RTS] = "rts", [IBV_QPS_SQD] = "sqd", [IBV_QPS_SQE] = "sqe", [IBV_QPS_ERR] = "err",
};

const char *qp_state_name(unsigned int state)
{
	return NAME(qp_states, state);
}

static const char *const events[] = {
	[IBV_EVENT_CQ_ERR] = "cq_err", [IBV_EVENT_QP_FATAL] = "qp_fatal",
	[IBV_EVENT_QP_REQ_ERR] = "qp_req_err", [IBV_EVENT_QP_ACCESS_ERR] = "qp_access_err",
	[IBV_EVENT_COMM_EST] = "comm_est", [IBV_EVENT_SQ_DRAINED] = "sq_drained",
	[IBV_EVENT_PATH_MIG] = "path_mig", [IBV_EVENT_PATH_MIG_ERR] = "path_mig_err",
	[IBV_EVENT_DEVICE_FATAL] = "device_fatal", [IBV_EVENT_PORT_ACTIVE] = "port_active",
	[IBV_EVENT_PORT_ERR] = "port_err", [IBV_EVENT_LID_CHANGE] = "lid_change",
	[IBV_EVENT_PKEY_CHANGE] = "pkey_change", [IBV_EVENT_SM_CHANGE] = "sm_change",
	[IBV_EVENT_SRQ_ERR] = "srq_err", [IBV_EVENT_SRQ_LIMIT_REACHED] = "srq_limit_reached",
	[IBV_EVENT_QP_LAST_WQE_REACHED] = "qp_last_wqe_reached",
	[IBV_EVENT_CLIENT_REREGISTER] = "client_reregister", [IBV_EVENT_GID_CHANGE] = "gid_change",
};

const char *verbs_event_name(unsigned int event)
{
	return NAME(events, event);
}
