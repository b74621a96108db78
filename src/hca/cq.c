/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: a ring of struct ib_uverbs_wc, notification (next,
 * solicited, at N), moderation, overrun. IBA 11.2.6, 11.4.2, 10.8.
 */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <stdlib.h>
#include <string.h>

#include <ibfs/uverbs_arms.h>

#include "hca/keep.h"
#include "hca/verbs.h"

#define CQE_SLOT 64

static void arm_show(const struct ibfs_cq *cq)
{
	if (cq->client && cq->client->arm)
		atomic_store(&cq->client->arm->state,
			     UVERBS_ARM_HERE | (cq->missed ? UVERBS_ARM_MISSED : 0) |
			     (cq->arm_count & UVERBS_ARM_COUNT));
}

static void arm_count(struct ibfs_cq *cq)
{
	cq->arm_count++;
	arm_show(cq);
}

static void cq_arm(struct ibfs_cq *cq, bool solicited_only)
{
	if (!solicited_only)
		cq->armed = CQ_NEXT;
	else if (cq->armed != CQ_NEXT)
		cq->armed = CQ_SOLICITED;
	cq->moder_pending = 0;
}

/* A completion begins: what the process wants from here on is too late for it. */
static void arm_take(struct ibfs_cq *cq)
{
	struct uverbs_arm *arm = cq->client ? cq->client->arm : NULL;
	uint8_t wanted;

	if (!arm)
		return;
	arm_count(cq);
	if (!atomic_load(&arm->wanted))
		return;
	wanted = atomic_exchange(&arm->wanted, 0);
	if (wanted == UVERBS_ARM_NEXT || wanted == UVERBS_ARM_SOLICITED)
		cq_arm(cq, wanted == UVERBS_ARM_SOLICITED);
}

static void clear_missed(struct ibfs_cq *cq)
{
	if (!cq->missed)
		return;
	cq->missed = cq->missed_solicited = false;
	arm_show(cq);
}

static void cq_fire(struct ibfs_cq *cq)
{
	cq->armed = CQ_UNARMED;
	cq->moder_pending = 0;
	clear_missed(cq);
	ev_timer_stop(cq->verbs->ibfs->loop, &cq->moder_timer);
	if (cq->client && cq->client->comp)
		cq->client->comp(cq->client);
}

static void cq_moder_timeout(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)loop;
	(void)revents;
	cq_fire(timer->data);
}

int cq_new(struct verbs *verbs, int cqe, struct verbs_client *client, struct ibfs_cq **out)
{
	struct ibfs_cq *cq;
	int err;

	if (cqe < 1 || cqe > verbs_limits.max_cqe)
		return -EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->verbs = verbs;
	cq->client = cq->bill.client = client;
	cq->cqe = cqe;
	ev_timer_init(&cq->moder_timer, cq_moder_timeout, 0, 0);
	cq->moder_timer.data = cq;
	err = ring_init(&cq->ring, cqe, CQE_SLOT, false, &cq->bill);
	if (err)
		goto free;
	err = table_add(&cq->verbs->cqs, cq, &cq->handle);
	if (err)
		goto ring;
	if (client && client->arm)
		atomic_store(&client->arm->wanted, 0);
	arm_show(cq);
	*out = cq;
	return 0;
ring:
	ring_free(&cq->ring);
free:
	free(cq);
	return err;
}

int cq_create(struct ibfs_device *dev, int cqe, struct verbs_client *client, struct ibfs_cq **out)
{
	return cq_new(verbs_of(dev), cqe, client, out);
}

int cq_destroy(struct ibfs_cq *cq)
{
	if (cq->refs)
		return -EBUSY;
	ev_timer_stop(cq->verbs->ibfs->loop, &cq->moder_timer);
	if (cq->client && cq->client->arm)
		atomic_store(&cq->client->arm->state, 0);
	table_del(&cq->verbs->cqs, cq->handle);
	cq_unkeep(cq);
	ring_free(&cq->ring);
	free(cq);
	return 0;
}

/* Whoever mapped the old ring has to map the new one. */
int cq_resize(struct ibfs_cq *cq, int cqe)
{
	uint32_t used = ring_used(&cq->ring, true);
	struct ring new;
	int err;

	if (cqe < 1 || cqe > verbs_limits.max_cqe || used > (uint32_t)cqe)
		return -EINVAL;
	err = ring_init(&new, cqe, CQE_SLOT, cq->ring.fd >= 0, &cq->bill);
	if (err)
		return err;
	for (uint32_t i = cq->ring.index - used; i != cq->ring.index; i++)
		memcpy(ring_slot(&new, new.index++), ring_slot(&cq->ring, i), CQE_SLOT);
	ring_publish(&new, true);
	ring_free(&cq->ring);
	cq->solicited_at += new.index - cq->ring.index;
	cq->ring = new;
	cq->cqe = cqe;
	if (cq->keep)
		cq_keep(cq);
	return 0;
}

int cq_modify(struct ibfs_cq *cq, uint16_t count, uint16_t period_us)
{
	cq->moder_count = count;
	cq->moder_period = period_us;
	return 0;
}

void cq_query(struct ibfs_cq *cq, struct ibfs_cq_attr *attr)
{
	*attr = (struct ibfs_cq_attr){
		.handle = cq->handle, .cqe = cq->cqe, .moder_count = cq->moder_count,
		.moder_period = cq->moder_period, .error = cq->error,
	};
}

/* Its own queues have work that waits for nobody but the engine and the memory. */
static bool qp_sending(const struct ibfs_qp *qp)
{
	const struct requester *req = &qp->req;

	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return false;
	return qp->task.prev || (req->xfer && !req->xfer_ready) ||
	       (req->ring.buf && ring_used(&req->ring, false) != req->ring_fetched);
}

bool cq_busy(struct ibfs_cq *cq)
{
	const struct ibfs_qp *qp;

	for (uint32_t at = 0; (qp = ids_next(&cq->verbs->qps, &at));)
		if (qp->send_cq == cq && qp_sending(qp))
			return true;
	return false;
}

int cq_ring(struct ibfs_cq *cq, struct ibfs_ring *ring)
{
	int err = ring_share(&cq->ring);

	if (err)
		return err;
	cq_keep(cq);
	*ring = (struct ibfs_ring){ cq->ring.fd, cq->ring.size, cq->ring.off };
	return 0;
}

static void cq_overrun(struct ibfs_cq *cq)
{
	cq->error = true;
	if (cq->client && cq->client->event)
		cq->client->event(cq->client, IBV_EVENT_CQ_ERR);
}

/* An event is due when enough completions came or the first of them waited long enough. */
static void cq_moderate(struct ibfs_cq *cq)
{
	cq->moder_pending++;
	if (cq->moder_pending >= cq->moder_count) {
		cq_fire(cq);
	} else if (cq->moder_period && !ev_is_active(&cq->moder_timer)) {
		ev_timer_set(&cq->moder_timer, cq->moder_period * 1e-6, 0);
		ev_timer_start(cq->verbs->ibfs->loop, &cq->moder_timer);
	}
}

/* Whether an event is due for the completion that is the ring's last one now. */
static bool cq_wants(struct ibfs_cq *cq, bool solicited)
{
	if (cq->armed == CQ_NEXT || (cq->armed == CQ_SOLICITED && solicited))
		return true;
	cq->missed = true;
	if (solicited) {
		cq->missed_solicited = true;
		cq->solicited_at = cq->ring.index;
	}
	return false;
}

int cq_push(struct ibfs_cq *cq, const struct ibfs_wc *wc, bool solicited)
{
	uint32_t used = ring_used(&cq->ring, true);
	struct ib_uverbs_wc *slot = ring_slot(&cq->ring, cq->ring.index);
	bool wanted;

	if (cq->error)
		return -EIO;
	if (used == cq->ring.mask) {
		cq_overrun(cq);
		return -EIO;
	}
	arm_take(cq);
	*slot = (struct ib_uverbs_wc){
		.wr_id = wc->wr_id, .status = wc->status, .opcode = wc->opcode,
		.vendor_err = wc->vendor_err, .byte_len = wc->byte_len,
		.ex.imm_data = wc->imm_data, .qp_num = wc->qp_num, .src_qp = wc->src_qp,
		.wc_flags = wc->wc_flags, .pkey_index = wc->pkey_index, .slid = wc->slid,
		.sl = wc->sl, .dlid_path_bits = wc->dlid_path_bits, .port_num = wc->port_num,
	};
	cq->ring.index++;
	ring_publish(&cq->ring, true);
	wanted = cq_wants(cq, solicited || wc->status != IBV_WC_SUCCESS);
	arm_count(cq);

	if (cq->client && cq->client->arrived)
		cq->client->arrived(cq->client);
	if (wanted)
		cq_moderate(cq);
	if (cq->ncomp && used + 1 >= (uint32_t)cq->ncomp) {
		cq->ncomp = 0;
		cq_fire(cq);
	}
	return 0;
}

int cq_poll(struct ibfs_cq *cq, int num, struct ibfs_wc *wc)
{
	uint32_t used = ring_used(&cq->ring, true), at = cq->ring.index - used;
	int n = 0;

	for (; n < num && (uint32_t)n < used; n++) {
		const struct ib_uverbs_wc *slot = ring_slot(&cq->ring, at++);

		wc[n] = (struct ibfs_wc){
			.wr_id = slot->wr_id, .status = slot->status, .opcode = slot->opcode,
			.vendor_err = slot->vendor_err, .byte_len = slot->byte_len,
			.imm_data = slot->ex.imm_data, .qp_num = slot->qp_num,
			.src_qp = slot->src_qp, .wc_flags = slot->wc_flags,
			.pkey_index = slot->pkey_index, .slid = slot->slid, .sl = slot->sl,
			.dlid_path_bits = slot->dlid_path_bits, .port_num = slot->port_num,
		};
	}
	if (n)
		__atomic_store_n(&cq->ring.buf->consumer_index, at & cq->ring.mask, __ATOMIC_RELEASE);
	return n;
}

int cq_peek(struct ibfs_cq *cq, int num)
{
	int used = ring_used(&cq->ring, true);

	return num < 0 ? -EINVAL : used < num ? used : num;
}

/*
 * A completion is there that nobody polled and that no event told of, as adapters
 * see it: programs exist (UCX) that look into the queue, ask, and then sleep.
 */
static bool cq_missed(struct ibfs_cq *cq)
{
	uint32_t used = ring_used(&cq->ring, true);

	if (!used)
		clear_missed(cq);
	if (cq->armed == CQ_NEXT)
		return cq->missed;
	return cq->missed_solicited && cq->ring.index - cq->solicited_at < used;
}

int cq_req_notify(struct ibfs_cq *cq, bool solicited_only, bool report_missed)
{
	cq_arm(cq, solicited_only);
	if (report_missed)
		return ring_used(&cq->ring, true) != 0;
	if (cq_missed(cq))
		cq_fire(cq);
	return 0;
}

int cq_req_ncomp(struct ibfs_cq *cq, int num)
{
	if (num < 1 || (uint32_t)num > cq->ring.mask)
		return -EINVAL;
	if (ring_used(&cq->ring, true) >= (uint32_t)num)
		cq_fire(cq);
	else
		cq->ncomp = num;
	return 0;
}
