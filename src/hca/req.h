/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester's own interface, between req.c (connected), req_ud.c
 * (datagrams) and comp.c (responses).
 */
#ifndef IBFS_HCA_REQ_H
#define IBFS_HCA_REQ_H

#include "hca/verbs.h"

enum step {
	STEP_MORE,		/* look again */
	STEP_IDLE,		/* nothing to do, until somebody kicks */
	STEP_STALL,		/* something to do, after progress */
};

/* Up to *len bytes from req->off on into pkt; 0, -EFAULT, -ENOMEM, or 1: later. The caller frees *bounce. */
int req_payload(struct ibfs_qp *qp, const struct swqe *wqe, uint32_t *len, struct packet *pkt,
		void **bounce);
enum step req_datagram(struct ibfs_qp *qp, struct swqe *wqe, uint32_t *budget);
enum step req_raw(struct ibfs_qp *qp, struct swqe *wqe, uint32_t *budget);
/* A datagram or raw packet was sent, all of its message when last. */
void req_datagram_sent(struct ibfs_qp *qp, struct swqe *wqe, uint32_t len, uint32_t *budget);
void req_rnr(struct ibfs_qp *qp, uint32_t psn, ev_tstamp delay);
void req_start(struct ibfs_qp *qp);
bool req_draining(const struct ibfs_qp *qp);

#endif
