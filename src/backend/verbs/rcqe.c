/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests whose ends a struct ibfs_cqe is told (ibfs/verbs.h). A driver tells a
 * request by its wr_id alone, and the wr_ids of a process's requests may be
 * anything: these have one of the device's, which nobody is told, and count only
 * for the QP that they were posted to. That one is the driver's to say.
 */
#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "backend/verbs/rverbs.h"

#define COUNT_BITS 24

struct rcqe {
	struct rcqe *prev, *next;	/* of its QP */
	uint64_t wr_id;
	struct ibfs_cqe *cqe;
};

static uint64_t next_id(struct rdev *rdev)
{
	if (!rdev->own_ids)
		rdev->own_ids = ((uint64_t)arc4random() << 32 | arc4random()) >> COUNT_BITS | 1;
	return rdev->own_ids << COUNT_BITS | (rdev->next_own_id++ & ((1U << COUNT_BITS) - 1));
}

int rcqe_add(struct rqp *qp, struct ibfs_cqe *cqe, uint64_t *wr_id)
{
	struct rcqe *own;

	if (!cqe)
		return 0;
	own = calloc(1, sizeof(*own));
	if (!own)
		return -ENOMEM;
	own->cqe = cqe;
	own->wr_id = *wr_id = next_id(qp->obj.rdev);
	DL_APPEND(qp->cqes, own);
	return 0;
}

static struct ibfs_cqe *take(struct rqp *qp, uint64_t wr_id)
{
	struct ibfs_cqe *cqe = NULL;
	struct rcqe *own;

	DL_SEARCH_SCALAR(qp->cqes, own, wr_id, wr_id);
	if (!own)
		return NULL;
	cqe = own->cqe;
	DL_DELETE(qp->cqes, own);
	free(own);
	return cqe;
}

void rcqe_undo(struct rqp *qp, uint64_t wr_id)
{
	take(qp, wr_id);
}

/* One that isn't there any more was dropped, and its poster told. */
bool rcqe_done(struct rdev *rdev, const struct ibfs_wc *wc)
{
	struct ibfs_cqe *cqe;
	struct robj *obj;

	if (!rdev->own_ids || wc->wr_id >> COUNT_BITS != rdev->own_ids)
		return false;
	DL_FOREACH(rdev->objs[ROBJ_QP], obj) {
		struct rqp *qp = (struct rqp *)obj;

		cqe = qp->num == wc->qp_num ? take(qp, wc->wr_id) : NULL;
		if (!cqe)
			continue;
		cqe->done(cqe, wc);
		break;
	}
	return true;
}

void rcqe_drop(struct rqp *qp)
{
	while (qp->cqes)
		wr_dropped(take(qp, qp->cqes->wr_id));
}
