/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device of the system in the tree: its life, its calls, its asynchronous
 * events, its table of operations.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "backend/verbs/rverbs.h"

/* --- calls --- */

struct lost_note {
	struct note note;		/* first */
	unsigned int num;
};

static void on_lost(struct note *note)
{
	const struct lost_note *lost = (const struct lost_note *)note;
	struct rdev *rdev = rdev_get(note_ibfs(note), lost->num);

	if (rdev)
		rdev_lost(rdev);
	free(note);
}

void rdev_note_lost(struct rdevs *rdevs, unsigned int num)
{
	struct lost_note *lost = calloc(1, sizeof(*lost));

	if (!lost)
		return;
	lost->note.fn = on_lost;
	lost->num = num;
	note_send(rdevs, &lost->note);
}

int rdev_call_long(struct rdev *rdev, void (*fn)(void *arg), void (*undo)(void *arg), void *arg,
		   size_t size, unsigned int ms)
{
	int err = hand_call(rdev->hand, fn, undo, arg, size, CALL_MS + ms);

	if (err != -EIO)
		return err;
	if (!rdev->lost) {
		rdev->lost = true;
		rdev_note_lost(rdev->rdevs, rdev->dev.num);
	}
	return ibfs_fail(rdev->dev.ibfs, EIO, "%s: the system's device doesn't answer",
			 rdev->dev.name);
}

int rdev_call(struct rdev *rdev, void (*fn)(void *arg), void *arg, size_t size)
{
	return rdev_call_long(rdev, fn, NULL, arg, size, 0);
}

/* --- asynchronous events --- */

struct async {
	struct watch watch;		/* first */
	struct ibv_context *ctx;	/* closed with it */
	struct rdevs *rdevs;
	unsigned int num;
};

struct event_note {
	struct note note;		/* first */
	unsigned int num;
	struct ibv_async_event event;	/* its objects may have gone: to compare only */
};

static void queue_event(struct rdev *rdev, const struct ibv_async_event *event, bool srq)
{
	struct robj *obj = srq ? robj_find(rdev, ROBJ_SRQ, event->element.srq) :
				 robj_find(rdev, ROBJ_QP, event->element.qp);
	struct verbs_client *client = NULL;

	if (obj)
		client = srq ? ((struct rsrq *)obj)->client : ((struct rqp *)obj)->client;
	if (client && client->event)
		client->event(client, event->event_type);
}

static void cq_event(struct rdev *rdev, const struct ibv_async_event *event)
{
	struct robj *obj = robj_find(rdev, ROBJ_CQ, event->element.cq);

	if (obj)
		rcq_event((struct rcq *)obj, event->event_type);
}

static void on_event(struct note *note)
{
	const struct event_note *ev = (const struct event_note *)note;
	struct rdev *rdev = rdev_get(note_ibfs(note), ev->num);

	if (!rdev)
		goto free;
	switch (ev->event.event_type) {
	case IBV_EVENT_DEVICE_FATAL:
		rdev_lost(rdev);
		break;
	case IBV_EVENT_CQ_ERR:
		cq_event(rdev, &ev->event);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		queue_event(rdev, &ev->event, true);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		queue_event(rdev, &ev->event, false);
		break;
	default:
		device_event(&rdev->dev, (unsigned int)ev->event.element.port_num,
			     ev->event.event_type);
	}
free:
	free(note);
}

/* On the waiter's thread. An event file whose device has gone can't be read. */
static bool async_ready(struct watch *watch)
{
	struct async *async = (struct async *)watch;
	struct ibv_async_event event;
	struct event_note *ev;

	errno = 0;
	if (ibv_get_async_event(async->ctx, &event)) {
		if (errno == EAGAIN || errno == EINTR)
			return true;
		rdev_note_lost(async->rdevs, async->num);
		return false;
	}
	ibv_ack_async_event(&event);
	ev = calloc(1, sizeof(*ev));
	if (!ev)
		return true;
	ev->note.fn = on_event;
	ev->num = async->num;
	ev->event = event;
	note_send(async->rdevs, &ev->note);
	return true;
}

static void async_free(struct watch *watch)
{
	struct async *async = (struct async *)watch;

	ibv_close_device(async->ctx);
	rdevs_put(async->rdevs);
	free(async);
}

static int watch_events(struct rdev *rdev)
{
	struct async *async;

	if (!rdev->ctx)
		return 0;
	async = calloc(1, sizeof(*async));
	/* What is watched first goes first: the channel before the context. */
	if (!async || rverbs_start(rdev, rdev->channel)) {
		free(async);
		return -ENOMEM;
	}
	async->watch = (struct watch){
		.fd = rdev->ctx->async_fd, .ready = async_ready, .free = async_free,
	};
	async->ctx = rdev->ctx;
	async->rdevs = rdevs_get(rdev->rdevs);
	async->num = rdev->dev.num;
	watch_add(rdev->waiter, &async->watch);
	return 0;
}

/* --- coming and going --- */

/* The hand's last call: what was waited for ends when all calls have. */
static void finish_job(void *arg)
{
	struct waiter **waiter = arg;

	waiter_free(*waiter);
}

static void rdev_free(struct rdev *rdev)
{
	char **name;

	if (rdev->hand && rdev->waiter)
		hand_post(rdev->hand, finish_job, &rdev->waiter, sizeof(rdev->waiter));
	hand_free(rdev->hand);
	for (name = rdev->hw_counters; name && *name; name++)
		free(*name);
	free(rdev->hw_counters);
	rverbs_free(rdev);
	free(rdev);
}

static void rdev_remove(struct ibfs_device *dev)
{
	struct rdev *rdev = rdev_of(dev);

	rdev->lost = true;
	device_remove(dev);
	rdev_mad_gone(rdev);
	rdev_issm_gone(rdev);
	rverbs_gone(rdev);
	rdevs_forget(rdev);
	rdev_free(rdev);
}

void rdev_lost(struct rdev *rdev)
{
	ibfs_log(rdev->dev.ibfs, "device \"%s\": the system's %s has gone", rdev->dev.name,
		 rdev->system);
	rdev_remove(&rdev->dev);
}

const struct backend_ops rdev_ops = {
	.name = "verbs",
	.query_device = rdev_query_device,
	.query_port = rdev_query_port,
	.query_gid = rdev_query_gid,
	.query_pkey = rdev_query_pkey,
	.set_node_desc = rdev_set_node_desc,
	.set_sys_image_guid = rdev_set_sys_image_guid,
	.modify_port = rdev_modify_port,
	.query_counter = rdev_query_counter,
	.clear_counter = rdev_clear_counter,
	.mad_register = rdev_mad_register,
	.mad_unregister = rdev_mad_unregister,
	.mad_send = rdev_mad_send,
	.set_issm = rdev_set_issm,
	.query_hw_counter = rdev_query_hw_counter,
	.remove = rdev_remove,
};

static struct rdev *rdev_new(struct rdevs *rdevs, const char *name, struct found *found)
{
	struct rdev *rdev = calloc(1, sizeof(*rdev));
	struct ibfs_device *dev = &rdev->dev;

	if (!rdev)
		return NULL;
	rdev->rdevs = rdevs;
	rdev->ops = rdev_ops;
	rdev->ctx = found->ctx;
	rdev->channel = found->channel;
	if (rdev->ctx)
		rdev->ops.verbs = &rdev_verbs_ops;
	rdev->hw_counters = found->hw_counters;
	rdev->ops.hw_counters = (const char *const *)rdev->hw_counters;
	found->hw_counters = NULL;
	memcpy(rdev->system, found->name, sizeof(rdev->system));
	dev->ops = &rdev->ops;
	snprintf(dev->name, sizeof(dev->name), "%s", name);
	dev->node_type = found->node_type;
	dev->node_guid = found->node_guid;
	dev->sys_image_guid = found->sys_image_guid;
	dev->hw_rev = found->hw_rev;
	dev->first_port = found->first_port;
	dev->num_ports = found->num_ports;
	memcpy(dev->node_desc, found->node_desc, sizeof(dev->node_desc));
	memcpy(dev->fw_ver, found->fw_ver, sizeof(dev->fw_ver));
	memcpy(dev->hca_type, found->hca_type, sizeof(dev->hca_type));
	memcpy(dev->board_id, found->board_id, sizeof(dev->board_id));
	rdev->hand = hand_new(rdevs);
	rdev->waiter = waiter_new(rdevs);
	return rdev;
}

/* The context was opened on a thread; closing it may block, too. */
static void close_job(void *arg)
{
	struct ibv_comp_channel **channel = arg;
	struct ibv_context *ctx = (*channel)->context;

	ibv_destroy_comp_channel(*channel);
	ibv_close_device(ctx);
}

int rdev_add(struct rdevs *rdevs, const char *name, struct found *found)
{
	struct rdev *rdev = rdev_new(rdevs, name, found);
	int err = -ENOMEM;

	found_free(found);
	if (!rdev)
		return -ENOMEM;
	if (strlen(name) >= sizeof(rdev->dev.name))
		err = -ENAMETOOLONG;
	else if (rdev->hand && rdev->waiter)
		err = device_add(rdevs_ibfs(rdevs), &rdev->dev);
	if (!err) {
		rdevs_link(rdev);
		err = watch_events(rdev);
		if (!err)
			return 0;
		device_remove(&rdev->dev);
		rdevs_forget(rdev);
	}
	if (rdev->ctx && rdev->hand)
		hand_post(rdev->hand, close_job, &rdev->channel, sizeof(rdev->channel));
	rdev_free(rdev);
	return err;
}
