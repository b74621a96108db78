/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder's own interface, between resp.c (requests), resp_read.c
 * (answers that take time or are given again) and resp_uc.c.
 */
#ifndef IBFS_HCA_RESP_H
#define IBFS_HCA_RESP_H

#include "hca/verbs.h"

void resp_tx(const struct ibfs_qp *qp, struct tx *tx, unsigned int opcode, uint32_t psn,
	     uint8_t syndrome);
void resp_ack_now(struct ibfs_qp *qp, uint32_t psn, uint8_t syndrome);
/* The RETH into r->va, rkey, resid and length; false: too long. */
bool resp_reth(struct ibfs_qp *qp, const struct rx *rx);
/* 0, 1 (held), -EFAULT, or -EACCES: the key doesn't give this. */
int resp_write_payload(struct ibfs_qp *qp, struct rx *rx, const struct ibfs_pd *pd,
		       void (*then)(struct ibfs_qp *, struct rx *, int));

/* Is an answer to a read or atomic due? */
bool resp_active(const struct ibfs_qp *qp);
/* Is there a resource for one more? */
bool resp_room(const struct ibfs_qp *qp);
bool resp_add(struct ibfs_qp *qp, const struct resource *res);
/* A read or atomic that was asked before: true when it is answered again. */
bool resp_again(struct ibfs_qp *qp, const struct rx *rx);

#endif
