/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the verbs engine of a port has done, hw_counters/ of sysfs: the names
 * and meanings are those of Linux's rxe_hw_counters.c, which is what programs
 * for software HCAs know. MADs are not counted here. They never go back.
 */
#ifndef IBFS_HCA_STATS_H
#define IBFS_HCA_STATS_H

#include <stdint.h>

enum hca_stat {
	STAT_SENT_PKTS, STAT_RCVD_PKTS,
	STAT_DUPLICATE_REQUEST, STAT_OUT_OF_SEQ_REQUEST,
	STAT_RCVD_RNR, STAT_SEND_RNR, STAT_RCVD_SEQ_ERR,
	STAT_ACK_DEFERRED,		/* behind answers to reads that came before */
	STAT_RETRY_EXCEEDED, STAT_RNR_RETRY_EXCEEDED,
	STAT_COMPLETER_RETRY,		/* requests are sent again */
	STAT_SEND_ERR,			/* packets that the port did not take */
	STAT_LINK_DOWNED,
	STAT_RDMA_SENDS, STAT_RDMA_RECVS,	/* messages */
	STAT_MAX,
};

/* In the order of enum hca_stat, ending with NULL. */
extern const char *const hca_stat_names[];

#endif
