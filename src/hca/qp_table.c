/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The QP state machine as a table: which attributes a transition needs and
 * which it may have, by type. IBA 10.3.1, 11.2.5.2 (tables 91 to 96), A14.5;
 * the same decisions as the kernel's ib_modify_qp_is_ok().
 */
#include "hca/verbs.h"

#define PKEY	IBV_QP_PKEY_INDEX
#define PORT	IBV_QP_PORT
#define QKEY	IBV_QP_QKEY
#define ACCESS	IBV_QP_ACCESS_FLAGS
#define CUR	IBV_QP_CUR_STATE
#define ALT	IBV_QP_ALT_PATH
#define MIG	IBV_QP_PATH_MIG_STATE
#define RNRT	IBV_QP_MIN_RNR_TIMER
#define NOTIFY	IBV_QP_EN_SQD_ASYNC_NOTIFY
#define DEST_RD	IBV_QP_MAX_DEST_RD_ATOMIC
#define CONNECT	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RETRY	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

enum qp_class { Q_UD, Q_MGMT, Q_UC, Q_RC, Q_XRC_INI, Q_XRC_TGT, Q_RAW, Q_CLASSES };

struct transition {
	bool ok;
	int required[Q_CLASSES], optional[Q_CLASSES];
};

#define MOD_UD	[Q_UD] = CUR | QKEY, [Q_MGMT] = CUR | QKEY

static const struct transition table[IBV_QPS_ERR + 1][IBV_QPS_ERR + 1] = {
	[IBV_QPS_RESET] = {
		[IBV_QPS_RESET] = { true },
		[IBV_QPS_INIT] = { true, .required = {
			[Q_UD] = PKEY | PORT | QKEY, [Q_MGMT] = PKEY | QKEY,
			[Q_UC] = PKEY | PORT | ACCESS, [Q_RC] = PKEY | PORT | ACCESS,
			[Q_XRC_INI] = PKEY | PORT | ACCESS, [Q_XRC_TGT] = PKEY | PORT | ACCESS,
			[Q_RAW] = PORT } },
	},
	[IBV_QPS_INIT] = {
		[IBV_QPS_RESET] = { true },
		[IBV_QPS_ERR] = { true },
		[IBV_QPS_INIT] = { true, .optional = {
			[Q_UD] = PKEY | PORT | QKEY, [Q_MGMT] = PKEY | QKEY,
			[Q_UC] = PKEY | PORT | ACCESS, [Q_RC] = PKEY | PORT | ACCESS,
			[Q_XRC_INI] = PKEY | PORT | ACCESS, [Q_XRC_TGT] = PKEY | PORT | ACCESS } },
		[IBV_QPS_RTR] = { true, .required = {
			[Q_UC] = CONNECT, [Q_XRC_INI] = CONNECT,
			[Q_RC] = CONNECT | DEST_RD | RNRT, [Q_XRC_TGT] = CONNECT | DEST_RD | RNRT },
			.optional = {
			[Q_UD] = PKEY | QKEY, [Q_MGMT] = PKEY | QKEY,
			[Q_UC] = ALT | ACCESS | PKEY, [Q_RC] = ALT | ACCESS | PKEY,
			[Q_XRC_INI] = ALT | ACCESS | PKEY, [Q_XRC_TGT] = ALT | ACCESS | PKEY } },
	},
	[IBV_QPS_RTR] = {
		[IBV_QPS_RESET] = { true },
		[IBV_QPS_ERR] = { true },
		[IBV_QPS_RTS] = { true, .required = {
			[Q_UD] = IBV_QP_SQ_PSN, [Q_MGMT] = IBV_QP_SQ_PSN, [Q_UC] = IBV_QP_SQ_PSN,
			[Q_RC] = RETRY | IBV_QP_SQ_PSN, [Q_XRC_INI] = RETRY | IBV_QP_SQ_PSN,
			[Q_XRC_TGT] = IBV_QP_TIMEOUT | IBV_QP_SQ_PSN },
			.optional = { MOD_UD,
			[Q_UC] = CUR | ALT | ACCESS | MIG,
			[Q_RC] = CUR | ALT | ACCESS | RNRT | MIG,
			[Q_XRC_INI] = CUR | ALT | ACCESS | MIG,
			[Q_XRC_TGT] = CUR | ALT | ACCESS | RNRT | MIG,
			[Q_RAW] = IBV_QP_RATE_LIMIT } },
	},
	[IBV_QPS_RTS] = {
		[IBV_QPS_RESET] = { true },
		[IBV_QPS_ERR] = { true },
		[IBV_QPS_RTS] = { true, .optional = { MOD_UD,
			[Q_UC] = CUR | ACCESS | ALT | MIG,
			[Q_RC] = CUR | ACCESS | ALT | MIG | RNRT,
			[Q_XRC_INI] = CUR | ACCESS | ALT | MIG,
			[Q_XRC_TGT] = CUR | ACCESS | ALT | MIG | RNRT,
			[Q_RAW] = IBV_QP_RATE_LIMIT } },
		[IBV_QPS_SQD] = { true, .optional = {
			[Q_UD] = NOTIFY, [Q_MGMT] = NOTIFY, [Q_UC] = NOTIFY, [Q_RC] = NOTIFY,
			[Q_XRC_INI] = NOTIFY, [Q_XRC_TGT] = NOTIFY } },
	},
	[IBV_QPS_SQD] = {
		[IBV_QPS_RESET] = { true },
		[IBV_QPS_ERR] = { true },
		[IBV_QPS_RTS] = { true, .optional = { MOD_UD,
			[Q_UC] = CUR | ALT | ACCESS | MIG,
			[Q_RC] = CUR | ALT | ACCESS | RNRT | MIG,
			[Q_XRC_INI] = CUR | ALT | ACCESS | MIG,
			[Q_XRC_TGT] = CUR | ALT | ACCESS | RNRT | MIG } },
		[IBV_QPS_SQD] = { true, .optional = {
			[Q_UD] = PKEY | QKEY, [Q_MGMT] = PKEY | QKEY,
			[Q_UC] = IBV_QP_AV | ALT | ACCESS | PKEY | MIG,
			[Q_RC] = PORT | IBV_QP_AV | RETRY | DEST_RD | ALT | ACCESS | PKEY | RNRT | MIG,
			[Q_XRC_INI] = PORT | IBV_QP_AV | RETRY | ALT | ACCESS | PKEY | MIG,
			[Q_XRC_TGT] = PORT | IBV_QP_AV | IBV_QP_TIMEOUT | DEST_RD | ALT | ACCESS |
				      PKEY | RNRT | MIG } },
	},
	[IBV_QPS_SQE] = {
		[IBV_QPS_RESET] = { true },
		[IBV_QPS_ERR] = { true },
		[IBV_QPS_RTS] = { true, .optional = { MOD_UD, [Q_UC] = CUR | ACCESS } },
	},
	[IBV_QPS_ERR] = {
		[IBV_QPS_RESET] = { true },
		[IBV_QPS_ERR] = { true },
	},
};

static int qp_class(unsigned int type)
{
	switch (type) {
	case IBFS_QPT_SMI:
	case IBFS_QPT_GSI:
		return Q_MGMT;
	case IBV_QPT_RC:
		return Q_RC;
	case IBV_QPT_UC:
		return Q_UC;
	case IBV_QPT_UD:
		return Q_UD;
	case IBV_QPT_XRC_SEND:
		return Q_XRC_INI;
	case IBV_QPT_XRC_RECV:
		return Q_XRC_TGT;
	case IBV_QPT_RAW_PACKET:
		return Q_RAW;
	default:
		return -1;
	}
}

bool qp_transition_ok(unsigned int type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	int class = qp_class(type), required, allowed;

	if (class < 0 || from > IBV_QPS_ERR || to > IBV_QPS_ERR || !table[from][to].ok)
		return false;
	if (mask & IBV_QP_CUR_STATE && from != IBV_QPS_RTR && from != IBV_QPS_RTS &&
	    from != IBV_QPS_SQD && from != IBV_QPS_SQE)
		return false;
	required = table[from][to].required[class];
	allowed = required | table[from][to].optional[class] | IBV_QP_STATE;
	return (mask & required) == required && !(mask & ~allowed);
}
