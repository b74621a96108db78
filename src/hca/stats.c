/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the engine's counters, hca/stats.h. Touches nothing. */
#include <stddef.h>

#include "hca/stats.h"

const char *const hca_stat_names[] = {
	[STAT_SENT_PKTS] = "sent_pkts",
	[STAT_RCVD_PKTS] = "rcvd_pkts",
	[STAT_DUPLICATE_REQUEST] = "duplicate_request",
	[STAT_OUT_OF_SEQ_REQUEST] = "out_of_seq_request",
	[STAT_RCVD_RNR] = "rcvd_rnr_err",
	[STAT_SEND_RNR] = "send_rnr_err",
	[STAT_RCVD_SEQ_ERR] = "rcvd_seq_err",
	[STAT_ACK_DEFERRED] = "ack_deferred",
	[STAT_RETRY_EXCEEDED] = "retry_exceeded_err",
	[STAT_RNR_RETRY_EXCEEDED] = "retry_rnr_exceeded_err",
	[STAT_COMPLETER_RETRY] = "completer_retry_err",
	[STAT_SEND_ERR] = "send_err",
	[STAT_LINK_DOWNED] = "link_downed",
	[STAT_RDMA_SENDS] = "rdma_sends",
	[STAT_RDMA_RECVS] = "rdma_recvs",
	[STAT_MAX] = NULL,
};
