/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows: type 1 (by PD, bound again and again) and type 2 (by QP and
 * PD: 2B). IBA 10.6.7.2.3, 11.2.8.9 to 11.2.8.12, and o10-2.2.
 */
#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "hca/verbs.h"

int mw_alloc(struct ibfs_pd *pd, enum ibv_mw_type type, struct ibfs_mw **out)
{
	struct verbs *verbs = pd->verbs;
	struct ibfs_mw *mw;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return -EINVAL;
	if (verbs->num_mws >= (unsigned int)verbs_limits.max_mw)
		return -ENOMEM;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	mw->key.kind = KEY_MW;
	if (key_alloc(verbs, &mw->key)) {
		free(mw);
		return -ENOMEM;
	}
	mw->type = type;
	mw->pd = pd;
	pd->refs++;
	verbs->num_mws++;
	*out = mw;
	return 0;
}

void mw_query(struct ibfs_mw *mw, struct ibfs_mw_attr *attr)
{
	*attr = (struct ibfs_mw_attr){
		.type = mw->type, .rkey = mw->key.value, .bound = mw->mr,
		.addr = mw->addr, .length = mw->length, .access = mw->access,
		.mr_lkey = mw->mr ? mw->mr->key.value : 0,
		.qp_num = mw->qp ? mw->qp->qpn : 0,
	};
}

void mw_unbind(struct ibfs_mw *mw)
{
	if (!mw->mr)
		return;
	mw->mr->windows--;
	mw->mr = NULL;
	mw->addr = 0;
	mw->length = 0;
	mw->access = 0;
	if (mw->qp)
		DL_DELETE(mw->qp->windows, mw);
	mw->qp = NULL;
}

int mw_dealloc(struct ibfs_mw *mw)
{
	struct verbs *verbs = mw->pd->verbs;

	mw_unbind(mw);
	ids_del(&verbs->keys, mw->key.value >> 8);
	mw->pd->refs--;
	verbs->num_mws--;
	free(mw);
	return 0;
}

/* What both types want of the MR. A length of 0 unbinds a type 1 window. */
static struct ibfs_mr *bind_mr(struct ibfs_qp *qp, const struct ibfs_wr *wr)
{
	struct ibfs_mr *mr = mr_by_key(qp->verbs, wr->bind.mr_lkey);
	const unsigned int remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				    IBV_ACCESS_REMOTE_ATOMIC;

	if (!mr || mr->pd != qp->pd || !(mr->access & IBV_ACCESS_MW_BIND))
		return NULL;
	/* Local writing means nothing to a window, and programs ask for it. */
	if (mr->access & IBV_ACCESS_ZERO_BASED ||
	    wr->bind.access & ~(remote | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE))
		return NULL;
	if (wr->bind.access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return NULL;
	return mr_check_range(mr, wr->bind.addr, wr->bind.length) ? NULL : mr;
}

static uint32_t next_rkey(uint32_t key)
{
	return (key & ~0xffU) | ((key + 1) & 0xff);
}

int mw_bind(struct ibfs_qp *qp, const struct ibfs_wr *wr)
{
	struct ibfs_mw *mw = mw_by_key(qp->verbs, wr->bind.mw_rkey);
	struct ibfs_mr *mr = NULL;

	if (!mw || mw->pd != qp->pd)
		return -EINVAL;
	if (mw->type == IBV_MW_TYPE_2 &&
	    (mw->mr || !wr->bind.length || (wr->bind.rkey ^ mw->key.value) >> 8))
		return -EINVAL;
	if (mw->type == IBV_MW_TYPE_1 && wr->bind.access & IBV_ACCESS_ZERO_BASED)
		return -EINVAL;
	if (wr->bind.length) {
		mr = bind_mr(qp, wr);
		if (!mr)
			return -EINVAL;
	}
	mw_unbind(mw);
	if (mw->type == IBV_MW_TYPE_2) {
		mw->key.value = wr->bind.rkey;
		mw->qp = qp;
		DL_APPEND(qp->windows, mw);
	} else {
		/* The client knows the key before: ib_bind_mw() gives the next one. */
		mw->key.value = (wr->bind.rkey ^ mw->key.value) >> 8 ? next_rkey(mw->key.value) :
				wr->bind.rkey;
	}
	if (!mr)
		return 0;
	mw->mr = mr;
	mr->windows++;
	mw->addr = wr->bind.addr;
	mw->length = wr->bind.length;
	mw->access = wr->bind.access;
	return 0;
}
