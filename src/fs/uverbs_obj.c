/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles of a uverbs file: indices of its own table, the lowest free one
 * first, all types in one table as the kernel has them; and how objects end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/uverbs_ioctl.h"

static int handle_alloc(struct uverbs_file *uf, struct uobj *obj)
{
	struct uobj **objs;
	uint32_t n, size;

	for (n = 0; n < uf->num_objs && uf->objs[n]; n++)
		;
	if (n == uf->num_objs) {
		size = n ? 2 * n : 16;
		objs = realloc(uf->objs, size * sizeof(struct uobj *));
		if (!objs)
			return -ENOMEM;
		memset(objs + n, 0, (size - n) * sizeof(struct uobj *));
		uf->objs = objs;
		uf->num_objs = size;
	}
	uf->objs[n] = obj;
	obj->handle = n;
	return 0;
}

/* On the opener's account, as its resources of the tree. */
static const enum account_item items[UOBJ_TYPES] = {
	[UOBJ_QP] = ACCOUNT_QP, [UOBJ_SRQ] = ACCOUNT_SRQ, [UOBJ_CQ] = ACCOUNT_CQ,
	[UOBJ_AH] = ACCOUNT_AH, [UOBJ_MW] = ACCOUNT_MW, [UOBJ_MR] = ACCOUNT_MR,
	[UOBJ_XRCD] = ACCOUNT_XRCD, [UOBJ_PD] = ACCOUNT_PD,
};

/* What one takes, with the engine's part, about. */
enum { UOBJ_MEMORY = 1024, QP_MEMORY = 4096 };

static int charge_object(struct charge *charge, const struct uverbs_file *uf, enum uobj_type type)
{
	int err = charge_beside(charge, &uf->file->charge, items[type]);

	if (!err)
		err = charge_take(charge, ACCOUNT_MEMORY, type == UOBJ_QP ? QP_MEMORY : UOBJ_MEMORY);
	if (err)
		charge_end(charge);
	return err;
}

/* The kernel's errno for it: in words it was told. */
static int uobj_pay(struct verbs_client *client, const struct verbs_cost *cost)
{
	struct uobj *obj = (struct uobj *)client;

	return charge_take_all(&obj->charge, cost->bytes, cost->descriptors, cost->mappings) ?
	       -ENOMEM : 0;
}

static void uobj_refund(struct verbs_client *client, const struct verbs_cost *cost)
{
	struct uobj *obj = (struct uobj *)client;

	charge_give_all(&obj->charge, cost->bytes, cost->descriptors, cost->mappings);
}

static struct uobj *uobj_alloc(struct uverbs_file *uf, enum uobj_type type)
{
	struct uobj *obj = calloc(1, sizeof(*obj));

	if (!obj)
		return NULL;
	obj->uf = uf;
	obj->type = type;
	obj->client.event = uv_obj_event;
	obj->client.rings = &uf->space->rings;
	obj->client.pay = uobj_pay;
	obj->client.refund = uobj_refund;
	if (!handle_alloc(uf, obj)) {
		obj->client.bell = uv_space_bell(uf->space, obj->handle);
		return obj;
	}
	free(obj);
	return NULL;
}

struct uobj *uobj_new(struct uverbs_file *uf, enum uobj_type type)
{
	struct charge charge;
	struct uobj *obj;

	if (charge_object(&charge, uf, type))
		return NULL;
	obj = uobj_alloc(uf, type);
	if (obj)
		obj->charge = charge;
	else
		charge_end(&charge);
	return obj;
}

bool uobj_exists(const struct uverbs_file *uf, uint32_t handle)
{
	return handle < uf->num_objs && uf->objs[handle] && uf->objs[handle]->live;
}

struct uobj *uobj_get(const struct uverbs_file *uf, uint32_t handle, enum uobj_type type)
{
	struct uobj *obj = handle < uf->num_objs ? uf->objs[handle] : NULL;

	return obj && obj->live && obj->type == type ? obj : NULL;
}

int uobj_set_events(struct uobj *obj, const struct uv_cmd *cmd)
{
	struct uv_events *events = obj->uf->async;

	if (cmd->event_file) {
		events = uv_events_find(cmd->req->ibfs->fs, cmd->event_file->fd_id);
		if (!events || events->uf != obj->uf || !events->async)
			return -EBADF;
	}
	if (events)
		uv_events_get(events);
	obj->async = events;
	return 0;
}

void uobj_set_domain(struct uobj *obj, struct uobj *xrcd)
{
	obj->domain = xrcd;
	if (xrcd)
		xrcd->users++;
}

static void leave_events(struct uv_events *events, const struct uobj *obj)
{
	if (!events)
		return;
	uv_events_drop(events, obj);
	uv_events_put(events);
}

void uobj_free(struct uobj *obj)
{
	struct uv_group *group, *tmp;

	obj->uf->objs[obj->handle] = NULL;
	leave_events(obj->async, obj);
	leave_events(obj->channel, obj);
	if (obj->domain)
		obj->domain->users--;
	if (obj->pin)
		uv_unpin(obj->uf->file->ibfs->fs, obj->pin, obj->pinned);
	DL_FOREACH_SAFE(obj->groups, group, tmp)
		free(group);
	charge_end(&obj->charge);
	free(obj);
}

static int destroy_object(struct uobj *obj)
{
	const struct verbs_ops *verbs = uv_verbs(obj->uf);

	switch (obj->type) {
	case UOBJ_QP:
		return verbs->destroy_qp(obj->qp, &obj->client);
	case UOBJ_SRQ:
		return verbs->destroy_srq(obj->srq);
	case UOBJ_CQ:
		return verbs->destroy_cq(obj->cq);
	case UOBJ_AH:
		verbs->destroy_ah(obj->ah);
		return 0;
	case UOBJ_MW:
		return verbs->dealloc_mw(obj->mw);
	case UOBJ_MR:
		return verbs->dereg_mr(obj->mr);
	case UOBJ_XRCD:
		if (obj->users)
			return -EBUSY;
		if (obj->xrcd->refs == 1 && verbs->dealloc_xrcd(obj->xrcd->xrcd))
			return -EBUSY;
		uv_xrcd_put(obj->uf->file->ibfs->fs, obj->xrcd);
		return 0;
	default:
		return verbs->dealloc_pd(obj->pd);
	}
}

int uobj_destroy(struct uobj *obj)
{
	int err = obj->groups ? -EBUSY : destroy_object(obj);

	if (!err)
		uobj_free(obj);
	return err;
}

int uv_made(struct uv_cmd *cmd, struct uobj *obj, int err)
{
	if (err)
		uobj_free(obj);
	else
		cmd->made = obj;
	return err;
}

int uv_destroy_queue(struct uv_cmd *cmd, enum uobj_type type)
{
	struct ib_uverbs_destroy_qp_resp resp;
	struct ib_uverbs_destroy_qp req;
	struct uobj *obj;
	int err;

	uv_request(cmd, &req, sizeof(req));
	obj = uobj_get(cmd->uf, req.qp_handle, type);
	if (!obj)
		return -ENOENT;
	resp.events_reported = obj->async_read;
	err = uobj_destroy(obj);
	if (!err)
		uv_respond(cmd, &resp, sizeof(resp));
	return err;
}

static void detach_all(struct uobj *obj)
{
	struct uv_group *group, *tmp;

	DL_FOREACH_SAFE(obj->groups, group, tmp) {
		uv_verbs(obj->uf)->detach_mcast(obj->qp, &group->gid, group->lid);
		DL_DELETE(obj->groups, group);
		free(group);
	}
}

/* In reverse of dependence: nothing that is destroyed has users any more. */
void uobj_destroy_all(struct uverbs_file *uf)
{
	for (unsigned int type = 0; type < UOBJ_TYPES; type++) {
		for (uint32_t i = 0; i < uf->num_objs; i++) {
			if (!uf->objs[i] || uf->objs[i]->type != type)
				continue;
			detach_all(uf->objs[i]);
			uobj_destroy(uf->objs[i]);
		}
	}
}
