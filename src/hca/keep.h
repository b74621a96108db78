/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the engine writes into the keeper's book (ibfs/keeper.h): where the rings
 * are of queues that processes map, and the requests that are in no ring while
 * they complete. The daemon may die between any two of these stores.
 */
#ifndef IBFS_HCA_KEEP_H
#define IBFS_HCA_KEEP_H

#include "hca/verbs.h"
#include "ibfs/keeper.h"

/* After the object got a ring, or another one. */
void cq_keep(struct ibfs_cq *cq);
void qp_keep(struct ibfs_qp *qp);
void srq_keep(struct ibfs_srq *srq);
/* Before it goes. */
void cq_unkeep(struct ibfs_cq *cq);
void qp_unkeep(struct ibfs_qp *qp);
void srq_unkeep(struct ibfs_srq *srq);

static inline void keep_state(struct keep_request *request, enum keep_state state)
{
	atomic_store_explicit(&request->state, state, memory_order_release);
}

/* Around the advance of a receive ring's consumer, over a request that was at next - 1. */
static inline void keep_taking(struct ibfs_qp *qp, uint64_t wr_id, uint32_t next)
{
	if (!qp->keep)
		return;
	qp->keep->recv.wr_id = wr_id;
	qp->keep->recv.next = next;
	qp->keep->recv.opcode = IBFS_WC_RECV;
	keep_state(&qp->keep->recv, KEEP_TAKING);
}

static inline void keep_taken(struct ibfs_qp *qp)
{
	if (qp->keep)
		keep_state(&qp->keep->recv, KEEP_TAKEN);
}

/* Before its completion is put into the CQ at this index. */
static inline void keep_completing(struct ibfs_qp *qp, uint32_t at)
{
	if (!qp->keep || atomic_load_explicit(&qp->keep->recv.state, memory_order_relaxed) == KEEP_NONE)
		return;
	qp->keep->recv.at = at;
	keep_state(&qp->keep->recv, KEEP_COMPLETING);
}

/* The receive has completed, or was forgotten. */
static inline void keep_received(struct ibfs_qp *qp)
{
	if (qp->keep)
		keep_state(&qp->keep->recv, KEEP_NONE);
}

/* Before a send ring's consumer advances over a request at next - 1 that completes at `at`. */
static inline void keep_retiring(struct ibfs_qp *qp, uint64_t wr_id, uint32_t opcode, uint32_t next,
				 uint32_t at)
{
	if (!qp->keep)
		return;
	qp->keep->send.wr_id = wr_id;
	qp->keep->send.opcode = opcode;
	qp->keep->send.next = next;
	qp->keep->send.at = at;
	keep_state(&qp->keep->send, KEEP_RETIRING);
}

static inline void keep_sent(struct ibfs_qp *qp)
{
	if (qp->keep)
		keep_state(&qp->keep->send, KEEP_NONE);
}

#endif
