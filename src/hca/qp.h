/* SPDX-License-Identifier: BSD-2-Clause */
/* What qp.c has for qp_modify.c and the engine. */
#ifndef IBFS_HCA_QP_H
#define IBFS_HCA_QP_H

#include "hca/verbs.h"

/* Forget all that is queued and in progress, and all attributes, without a completion. */
void qp_reset(struct ibfs_qp *qp);
void qp_free(struct ibfs_qp *qp);
/* Answer and send, up to a turn's budget; flush in the error states. */
void qp_turn(struct ibfs_qp *qp);

#endif
