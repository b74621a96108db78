/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_cm's ids: each is one end of a connection, or listens. Numbers are the
 * daemon's, so that an id can move to another file of its owner (MIGRATE_ID).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/rows.h"
#include "fs/ucma.h"

#define MAX_IDS		65536U		/* of all files */

struct ucma_id *ucma_id_get(const struct ucma_file *uf, uint32_t num)
{
	struct ucma_id *id;

	HASH_FIND(hh, uf->file->ibfs->fs->ucma_ids, &num, sizeof(num), id);
	return id && id->uf == uf ? id : NULL;
}

unsigned int ucma_count(const struct fs *fs)
{
	return HASH_COUNT(fs->ucma_ids);
}

struct ucma_id *ucma_id_new(struct ucma_file *uf, uint16_t ps, uint8_t qp_type, uint64_t uid)
{
	struct fs *fs = uf->file->ibfs->fs;
	struct ucma_id *id, *other;

	if (HASH_COUNT(fs->ucma_ids) >= MAX_IDS)
		return NULL;
	id = calloc(1, sizeof(*id));
	if (!id)
		return NULL;
	do {
		id->num = ++fs->next_ucma;
		HASH_FIND(hh, fs->ucma_ids, &id->num, sizeof(id->num), other);
	} while (other);
	id->fs = fs;
	id->uf = uf;
	id->ps = ps;
	id->qp_type = qp_type;
	id->uid = uid;
	id->psn = arc4random() & 0xffffff;
	HASH_ADD(hh, fs->ucma_ids, num, sizeof(id->num), id);
	return id;
}

void ucma_events_free(struct ucma_file *uf, const struct ucma_id *id)
{
	struct ucma_event *event, *tmp;
	struct ucma_id *made;

	DL_FOREACH_SAFE(uf->events, event, tmp) {
		if (id && event->id != id && event->made != id)
			continue;
		made = event->made == id ? NULL : event->made;
		DL_DELETE(uf->events, event);
		free(event);
		/* Nobody was told of it. */
		if (made) {
			ucma_id_free(made);
			tmp = uf->events;
		}
	}
}

/* It may have moved since: what was on its way then is still at the other file. */
static void forget_id(struct ucma_file *uf, const struct ucma_id *id)
{
	struct ucma_cmd *cmd;

	/* An event of it that is being told counts for nobody any more. */
	DL_FOREACH(uf->cmds, cmd) {
		if (cmd->made == id)
			cmd->made = NULL;
		if (cmd->event && cmd->event->id == id)
			cmd->event->id = NULL;
		if (cmd->event && cmd->event->made == id)
			cmd->event->made = NULL;
	}
	ucma_events_free(uf, id);
}

void ucma_id_free(struct ucma_id *id)
{
	struct ucma_file *uf;

	ucma_resolve_stop(id);
	ucma_path_stop(&id->query);
	ucma_unlisten(id);
	ucma_mcs_free(id);
	cm_id_free(id->cm);
	HASH_DEL(id->fs->ucma_ids, id);
	DL_FOREACH(id->fs->ucmas, uf)
		forget_id(uf, id);
	free(id);
}

/* --- events --- */

struct ucma_event *ucma_event_new(struct ucma_id *id, enum ucma_event_type type, int status)
{
	struct ucma_event *event = calloc(1, sizeof(*event));

	if (!event)
		return NULL;
	event->id = id;
	event->resp.uid = id->uid;
	event->resp.id = id->num;
	event->resp.event = type;
	event->resp.status = (uint32_t)status;
	return event;
}

/* Tell the first event as a GET_EVENT's answer. */
static int take(struct ucma_cmd *cmd)
{
	struct ucma_event *event = cmd->uf->events;
	struct rdma_ucm_get_event req;
	int err = ucma_request(cmd, &req, sizeof(req), sizeof(req));

	if (!err)
		err = ucma_respond(cmd, req.response, &event->resp, sizeof(event->resp),
				   offsetof(struct rdma_ucm_event_resp, reserved));
	if (err)
		return err;
	DL_DELETE(cmd->uf->events, event);
	cmd->event = event;
	return 0;
}

/* Who can't be told an event leaves it to the next. */
void ucma_events_serve(struct ucma_file *uf)
{
	while (uf->events && uf->waiting) {
		struct ucma_cmd *cmd = uf->waiting;
		struct fs_req *req = cmd->req;
		ssize_t ret;

		DL_DELETE(uf->waiting, cmd);
		ret = take(cmd);
		if (!ret)
			ret = ucma_answer(cmd);
		else
			ucma_cmd_free(cmd);
		if (ret != FS_PENDING)
			fs_reply(req, ret, NULL, 0);
	}
	if (uf->events)
		fs_wake(uf->file);
}

void ucma_event_post(struct ucma_event *event)
{
	struct ucma_file *uf = event->id->uf;

	DL_APPEND(uf->events, event);
	ucma_events_serve(uf);
}

void ucma_post(struct ucma_id *id, enum ucma_event_type type, int status)
{
	struct ucma_event *event = ucma_event_new(id, type, status);

	if (event)
		ucma_event_post(event);
}

static bool cancel_wait(struct fs_req *req)
{
	struct ucma_cmd *cmd = req->priv;

	DL_DELETE(cmd->uf->waiting, cmd);
	ucma_cmd_free(cmd);
	fs_reply(req, -EINTR, NULL, 0);
	return true;
}

static int wait_for_event(struct ucma_cmd *cmd)
{
	ucma_keep(cmd);
	DL_APPEND(cmd->uf->waiting, cmd);
	cmd->req->priv = cmd;
	cmd->req->cancel = cancel_wait;
	return FS_PENDING;
}

int ucma_get_event(struct ucma_cmd *cmd)
{
	if (cmd->out_room < offsetof(struct rdma_ucm_event_resp, reserved))
		return -ENOSPC;
	if (cmd->uf->events)
		return take(cmd);
	if (cmd->uf->file->flags & O_NONBLOCK)
		return -EAGAIN;
	return wait_for_event(cmd);
}

/* --- commands --- */

static int qp_type_of(const struct rdma_ucm_create_id *req, uint8_t *type)
{
	switch (req->ps) {
	case RDMA_PS_TCP:
		*type = IBV_QPT_RC;
		return 0;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		*type = IBV_QPT_UD;
		return 0;
	case RDMA_PS_IB:
		*type = req->qp_type;
		return 0;
	default:
		return -EINVAL;
	}
}

int ucma_create_id(struct ucma_cmd *cmd)
{
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_create_id req;
	struct ucma_id *id;
	uint8_t type = 0;
	int err;

	err = ucma_request(cmd, &req, sizeof(req), offsetof(struct rdma_ucm_create_id, reserved));
	if (!err && cmd->out_room < sizeof(resp))
		err = -ENOSPC;
	if (!err)
		err = qp_type_of(&req, &type);
	if (err)
		return err;
	id = ucma_id_new(cmd->uf, req.ps, type, req.uid);
	if (!id)
		return -ENOMEM;
	cmd->made = id;
	resp.id = id->num;
	return ucma_respond(cmd, req.response, &resp, sizeof(resp), sizeof(resp));
}

int ucma_destroy_id(struct ucma_cmd *cmd)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct rdma_ucm_destroy_id req;
	struct ucma_id *id;
	int err;

	err = ucma_request(cmd, &req, sizeof(req), offsetof(struct rdma_ucm_destroy_id, reserved));
	if (!err && cmd->out_room < sizeof(resp))
		err = -ENOSPC;
	if (err)
		return err;
	id = ucma_id_get(cmd->uf, req.id);
	if (!id)
		return -ENOENT;
	resp.events_reported = id->events_reported;
	ucma_id_free(id);
	return ucma_respond(cmd, req.response, &resp, sizeof(resp), sizeof(resp));
}

/*
 * What is queued for the id goes with it to the file that asks, which must have the
 * rights of the file that has it.
 */
int ucma_migrate(struct ucma_cmd *cmd)
{
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id req;
	struct ucma_event *event, *tmp;
	struct ucma_file *from;
	struct ucma_id *id;
	int err = ucma_request(cmd, &req, sizeof(req), sizeof(req));

	if (err)
		return err;
	HASH_FIND(hh, cmd->req->ibfs->fs->ucma_ids, &req.id, sizeof(req.id), id);
	if (!id || client_id_differs(&cmd->uf->opener, &id->uf->opener))
		return -ENOENT;
	from = id->uf;
	resp.events_reported = id->events_reported;
	err = ucma_respond(cmd, req.response, &resp, sizeof(resp), sizeof(resp));
	if (err || from == cmd->uf)
		return err;
	DL_FOREACH_SAFE(from->events, event, tmp) {
		if (event->id != id)
			continue;
		DL_DELETE(from->events, event);
		DL_APPEND(cmd->uf->events, event);
		if (event->made)
			event->made->uf = cmd->uf;
	}
	id->uf = cmd->uf;
	ucma_events_serve(cmd->uf);
	return 0;
}

int ucma_notify(struct ucma_cmd *cmd)
{
	struct rdma_ucm_notify req;
	struct ucma_id *id;
	int err = ucma_id_request(cmd, &req, sizeof(req), sizeof(req), &req.id, &id);

	if (err)
		return err;
	if (!id->cm || req.event != IBV_EVENT_COMM_EST)
		return -EINVAL;
	return cm_established(id->cm);
}
