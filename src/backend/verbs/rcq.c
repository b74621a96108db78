/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues of a system's device. All of a device have one completion
 * channel, which its waiter waits for: it arms and empties a queue that had an
 * event, and the loop puts what there was into a soft queue, which notifies,
 * moderates and tells clients as any.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "backend/verbs/rverbs.h"

enum { WC_BATCH = 32 };

/* What the waiter has of the channel. */
struct comp {
	struct watch watch;		/* first */
	struct ibv_comp_channel *channel;
	struct rdevs *rdevs;
	unsigned int num;
};

struct comp_note {
	struct note note;		/* first */
	unsigned int dev;
	uint32_t handle;
	int num;
	struct ibv_wc wc[WC_BATCH];
};

static struct ibfs_cq *soft_of(struct ibfs_cq *cq)
{
	return ((struct rcq *)cq)->soft;
}

static void wc_from(struct ibfs_wc *to, const struct ibv_wc *wc)
{
	*to = (struct ibfs_wc){
		.wr_id = wc->wr_id, .status = wc->status,
		.opcode = (enum ibfs_wc_opcode)wc->opcode, .vendor_err = wc->vendor_err,
		.byte_len = wc->byte_len, .imm_data = wc->imm_data, .qp_num = wc->qp_num,
		.src_qp = wc->src_qp, .wc_flags = wc->wc_flags, .pkey_index = wc->pkey_index,
		.slid = wc->slid, .sl = wc->sl, .dlid_path_bits = wc->dlid_path_bits,
	};
}

static void overrun(struct rcq *cq)
{
	const struct ibfs_cq *this = (const struct ibfs_cq *)cq;
	struct robj *obj;

	DL_FOREACH(cq->obj.rdev->objs[ROBJ_QP], obj) {
		struct rqp *qp = (struct rqp *)obj;

		if (qp->init.send_cq != this && qp->init.recv_cq != this)
			continue;
		rqp_error(qp);
		if (qp->client && qp->client->event)
			qp->client->event(qp->client, IBV_EVENT_QP_FATAL);
	}
}

void rcq_push(struct rcq *cq, const struct ibfs_wc *wc, bool solicited)
{
	bool was = cq->soft->error;

	if (cq_push(cq->soft, wc, solicited) && !was)
		overrun(cq);
}

static struct rcq *by_handle(struct rdev *rdev, uint32_t handle)
{
	struct robj *obj;

	DL_FOREACH(rdev->objs[ROBJ_CQ], obj)
		if (((struct rcq *)obj)->soft->handle == handle)
			return (struct rcq *)obj;
	return NULL;
}

/* A completion doesn't tell whether it was solicited: every receive counts as that. */
static void on_comp(struct note *note)
{
	const struct comp_note *comp = (const struct comp_note *)note;
	struct rdev *rdev = rdev_get(note_ibfs(note), comp->dev);
	struct ibfs_wc wc;

	for (int i = 0; rdev && i < comp->num; i++) {
		struct rcq *cq = by_handle(rdev, comp->handle);

		wc_from(&wc, &comp->wc[i]);
		if (!rcqe_done(rdev, &wc) && cq)
			rcq_push(cq, &wc, wc.opcode & IBFS_WC_RECV);
	}
	if (rdev)
		rrings_go_on(rdev);
	free(note);
}

/* True: there may be more. */
static bool empty(struct comp *comp, struct ibv_cq *cq, uint32_t handle)
{
	struct comp_note *note = calloc(1, sizeof(*note));
	int num;

	if (!note)
		return false;
	num = ibv_poll_cq(cq, WC_BATCH, note->wc);
	if (num <= 0) {
		free(note);
		return false;
	}
	note->note.fn = on_comp;
	note->dev = comp->num;
	note->handle = handle;
	note->num = num;
	note_send(comp->rdevs, &note->note);
	return true;
}

/* Acknowledged last: until then the queue can't be destroyed. */
static bool comp_ready(struct watch *watch)
{
	struct comp *comp = (struct comp *)watch;
	struct ibv_cq *cq;
	void *ctx;

	errno = 0;
	if (ibv_get_cq_event(comp->channel, &cq, &ctx))
		return errno == EAGAIN || errno == EINTR;
	ibv_req_notify_cq(cq, 0);
	while (empty(comp, cq, (uint32_t)(uintptr_t)ctx))
		;
	ibv_ack_cq_events(cq, 1);
	return true;
}

static void comp_free(struct watch *watch)
{
	struct comp *comp = (struct comp *)watch;

	/* Queues of a device that died otherwise than by EIO can't be destroyed, and hold it. */
	comp->channel->refcnt = 0;
	ibv_destroy_comp_channel(comp->channel);
	rdevs_put(comp->rdevs);
	free(comp);
}

int rcq_start(struct rdev *rdev, struct ibv_comp_channel *channel)
{
	struct comp *comp = calloc(1, sizeof(*comp));

	rdev->soft = calloc(1, sizeof(*rdev->soft));
	if (!comp || !rdev->soft) {
		free(comp);
		return -ENOMEM;
	}
	rdev->soft->ibfs = rdev->dev.ibfs;
	rdev->soft->cqs = (struct table){ .first = 1, .max = verbs_limits.max_cq };
	rdev->channel = channel;
	comp->watch = (struct watch){ .fd = channel->fd, .ready = comp_ready, .free = comp_free };
	comp->channel = channel;
	comp->rdevs = rdevs_get(rdev->rdevs);
	comp->num = rdev->dev.num;
	watch_add(rdev->waiter, &comp->watch);
	return 0;
}

void rcq_stop(struct rdev *rdev)
{
	if (!rdev->soft)
		return;
	free(rdev->soft->cqs.slot);
	free(rdev->soft);
}

struct cq_call {
	struct rcall call;		/* first */
	struct ibv_comp_channel *channel;
	int cqe;
	uint32_t handle;
	uint16_t count, period;
};

static void create_job(void *arg)
{
	struct cq_call *call = arg;
	struct ibv_cq *cq = ibv_create_cq(call->call.ctx, call->cqe, (void *)(uintptr_t)call->handle,
					  call->channel, 0);

	call->call.ibv = cq;
	call->call.err = cq ? -ibv_req_notify_cq(cq, 0) : -errno;
}

int rcq_create(struct ibfs_device *dev, int cqe, struct verbs_client *client,
	       struct ibfs_cq **out)
{
	struct rdev *rdev = rdev_of(dev);
	struct cq_call call = { .channel = rdev->channel, .cqe = cqe };
	struct ibfs_cq *soft;
	struct robj *obj;
	int err;

	err = cq_new(rdev->soft, cqe, client, &soft);
	if (err)
		return err;
	call.handle = soft->handle;
	err = robj_make(rdev, ROBJ_CQ, sizeof(struct rcq), create_job, &call.call, sizeof(call),
			"make a completion queue", &obj);
	if (err)
		goto soft;
	((struct rcq *)obj)->soft = soft;
	*out = (struct ibfs_cq *)obj;
	return 0;
soft:
	cq_destroy(soft);
	return err;
}

void rcq_free(struct rcq *cq)
{
	cq_destroy(cq->soft);
}

int rcq_destroy(struct ibfs_cq *cq)
{
	return robj_destroy((struct robj *)cq);
}

static void resize_job(void *arg)
{
	struct cq_call *call = arg;

	call->call.err = -ibv_resize_cq(call->call.ibv, call->cqe);
}

int rcq_resize(struct ibfs_cq *cq, int cqe)
{
	struct rcq *rcq = (struct rcq *)cq;
	struct cq_call call = { .call.ibv = rcq->obj.ibv, .cqe = cqe };
	int err;

	if (cqe < cq_peek(rcq->soft, rcq->soft->cqe))
		return -EINVAL;
	err = rcall(rcq->obj.rdev, resize_job, &call, sizeof(call), "resize it");
	return err ? err : cq_resize(rcq->soft, cqe);
}

/* The soft queue moderates: what the driver would delay, clients would wait for twice. */
int rcq_modify(struct ibfs_cq *cq, uint16_t count, uint16_t period_us)
{
	return cq_modify(soft_of(cq), count, period_us);
}

void rcq_query(struct ibfs_cq *cq, struct ibfs_cq_attr *attr)
{
	cq_query(soft_of(cq), attr);
}

/* Whether a driver's queues are being sent can't be known. */
bool rcq_busy(struct ibfs_cq *cq)
{
	(void)cq;
	return false;
}

int rcq_poll(struct ibfs_cq *cq, int num, struct ibfs_wc *wc)
{
	return cq_poll(soft_of(cq), num, wc);
}

int rcq_peek(struct ibfs_cq *cq, int num)
{
	return cq_peek(soft_of(cq), num);
}

int rcq_req_notify(struct ibfs_cq *cq, bool solicited_only, bool report_missed)
{
	return cq_req_notify(soft_of(cq), solicited_only, report_missed);
}

int rcq_req_ncomp(struct ibfs_cq *cq, int num)
{
	return cq_req_ncomp(soft_of(cq), num);
}

void rcq_event(struct rcq *cq, enum ibv_event_type event)
{
	struct verbs_client *client = cq->soft->client;

	cq->soft->error = event == IBV_EVENT_CQ_ERR;
	if (client && client->event)
		client->event(client, event);
}
