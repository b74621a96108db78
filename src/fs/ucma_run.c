/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rdma_cm command's answer, which goes into the client's memory, a value that it
 * points to, and the client's network: a helper thread writes it, reads it, or looks,
 * since that may be long. What the command made is undone when the answer can't be told.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utlist.h>

#include "fs/ucma.h"

/* A command whose helper hangs in a page that never comes doesn't stop a kill for longer. */
#define PATIENCE	1.0		/* seconds */

static struct ucma_cmd *from_job(struct job *job)
{
	return (struct ucma_cmd *)((char *)job - offsetof(struct ucma_cmd, job));
}

int ucma_request(const struct ucma_cmd *cmd, void *req, size_t size, size_t least)
{
	if (cmd->in_len < least)
		return -EINVAL;
	memset(req, 0, size);
	memcpy(req, cmd->in, cmd->in_len < size ? cmd->in_len : size);
	return 0;
}

int ucma_id_request(const struct ucma_cmd *cmd, void *req, size_t size, size_t least,
		    uint32_t *num, struct ucma_id **id)
{
	int err = ucma_request(cmd, req, size, least);

	if (err)
		return err;
	*id = ucma_id_get(cmd->uf, *num);
	return *id ? 0 : -ENOENT;
}

int ucma_respond(struct ucma_cmd *cmd, uint64_t response, const void *resp, size_t size,
		 size_t least)
{
	if (cmd->out_room < least)
		return -ENOSPC;
	cmd->out_len = cmd->out_room < size ? cmd->out_room : size;
	cmd->response = response;
	memcpy(cmd->out, resp, cmd->out_len);
	return 0;
}

/* An event whose telling ended; its id may have gone meanwhile. */
static void settle_event(struct ucma_event *event, int err)
{
	if (err && event->id) {
		struct ucma_file *uf = event->id->uf;	/* it may have moved */

		if (event->made)
			event->made->uf = uf;
		DL_PREPEND(uf->events, event);
		ucma_events_serve(uf);
		return;
	}
	if (err && event->made)
		ucma_id_free(event->made);
	if (event->id) {
		event->id->events_reported++;
		event->id->backlog += event->made != NULL;
	}
	if (event->mc)
		ucma_mc_counted(event->mc);
	free(event);
}

/* The client knows, or doesn't, what the command did. */
static void settle(struct ucma_cmd *cmd, int err)
{
	if (err && cmd->made)
		ucma_id_free(cmd->made);
	if (err && cmd->made_mc)
		ucma_mc_free(cmd->made_mc);
	if (cmd->event)
		settle_event(cmd->event, err);
}

static void detach(struct ucma_cmd *cmd)
{
	ev_timer_stop(cmd->job.ibfs->loop, &cmd->patience);
	DL_DELETE(cmd->uf->cmds, cmd);
}

void ucma_cmd_free(struct ucma_cmd *cmd)
{
	if (cmd->netns >= 0)
		close(cmd->netns);
	client_put(cmd->client);
	free(cmd->copy);
	free(cmd);
}

static void disowned(struct job *job)
{
	ucma_cmd_free(from_job(job));
}

static void write_run(struct job *job)
{
	struct ucma_cmd *cmd = from_job(job);
	struct iovec local = { cmd->out, cmd->out_len };
	struct iovec remote = { (void *)(uintptr_t)cmd->response, cmd->out_len };

	cmd->err = client_bind(cmd->client);
	if (!cmd->err)
		cmd->err = client_write(cmd->client, &local, &remote, 1);
}

static void read_run(struct job *job)
{
	struct ucma_cmd *cmd = from_job(job);
	struct iovec local = { cmd->out, cmd->out_len };
	struct iovec remote = { (void *)(uintptr_t)cmd->response, cmd->out_len };

	cmd->err = client_bind(cmd->client);
	if (!cmd->err)
		cmd->err = client_read(cmd->client, &local, &remote, 1);
}

static void finish(struct ucma_cmd *cmd, int err)
{
	struct fs_req *req = cmd->req;
	ssize_t result = err ? err : (ssize_t)cmd->count;

	client_error(req, cmd->client, "rdma_cm", err);
	settle(cmd, err);
	ucma_cmd_free(cmd);
	fs_reply(req, result, NULL, 0);
}

static void write_done(struct job *job)
{
	struct ucma_cmd *cmd = from_job(job);

	detach(cmd);
	finish(cmd, cmd->err);
}

static void read_done(struct job *job)
{
	struct ucma_cmd *cmd = from_job(job);

	detach(cmd);
	finish(cmd, cmd->err ? cmd->err : cmd->then(cmd));
}

void ucma_give_up(struct ucma_cmd *cmd, int err)
{
	struct fs_req *req = cmd->req;

	detach(cmd);
	settle(cmd, err);
	offload_disown(&cmd->job);
	fs_reply(req, err, NULL, 0);
}

static void on_patience(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)loop;
	(void)revents;
	ucma_give_up(timer->data, -EINTR);
}

static bool cancel(struct fs_req *req)
{
	struct ucma_cmd *cmd = req->priv;

	ev_timer_start(req->ibfs->loop, &cmd->patience);
	return false;
}

static int start(struct ucma_cmd *cmd, void (*run)(struct job *), void (*done)(struct job *))
{
	int err;

	client_put(cmd->client);
	cmd->client = client_new(cmd->req, &cmd->uf->opener);
	if (!cmd->client)
		return -ENOMEM;
	cmd->job.ibfs = cmd->req->ibfs;
	cmd->job.pid = cmd->req->caller.pid;
	cmd->job.uid = cmd->req->caller.uid;
	cmd->job.run = run;
	cmd->job.done = done;
	cmd->job.disowned = disowned;
	ev_timer_init(&cmd->patience, on_patience, PATIENCE, 0.);
	cmd->patience.data = cmd;
	err = offload(&cmd->job);
	if (err) {
		client_put(cmd->client);
		cmd->client = NULL;
		return err;
	}
	DL_APPEND(cmd->uf->cmds, cmd);
	cmd->req->priv = cmd;
	cmd->req->cancel = cancel;
	return FS_PENDING;
}

ssize_t ucma_answer(struct ucma_cmd *cmd)
{
	int ret = start(cmd, write_run, write_done);

	if (ret == FS_PENDING)
		return ret;
	settle(cmd, ret);
	ucma_cmd_free(cmd);
	return ret;
}

void ucma_keep(struct ucma_cmd *cmd)
{
	if (cmd->in_len > sizeof(cmd->kept))
		cmd->in_len = sizeof(cmd->kept);
	memcpy(cmd->kept, cmd->in, cmd->in_len);
	cmd->in = cmd->kept;
}

/* Without a network the command fails where it needs one. */
static void look_run(struct job *job)
{
	struct ucma_cmd *cmd = from_job(job);

	cmd->err = client_bind(cmd->client);
	if (!cmd->err)
		cmd->netns = client_open(cmd->client, "ns/net", O_RDONLY);
}

static void look_done(struct job *job)
{
	struct ucma_cmd *cmd = from_job(job);
	struct fs_req *req = cmd->req;
	int ret = cmd->err;

	detach(cmd);
	if (!ret)
		ret = cmd->then(cmd);
	if (ret == FS_PENDING)
		return;
	if (ret || !cmd->out_len) {
		finish(cmd, ret);
		return;
	}
	ret = (int)ucma_answer(cmd);
	if (ret != FS_PENDING)
		fs_reply(req, ret, NULL, 0);
}

int ucma_look(struct ucma_cmd *cmd, int (*then)(struct ucma_cmd *cmd))
{
	cmd->copy = malloc(cmd->in_len + 1);
	if (!cmd->copy)
		return -ENOMEM;
	memcpy(cmd->copy, cmd->in, cmd->in_len);
	cmd->in = cmd->copy;
	cmd->then = then;
	return start(cmd, look_run, look_done);
}

int ucma_fetch(struct ucma_cmd *cmd, uint64_t addr, size_t len, int (*then)(struct ucma_cmd *cmd))
{
	if (len > sizeof(cmd->out))
		return -EINVAL;
	ucma_keep(cmd);
	cmd->response = addr;
	cmd->out_len = len;
	cmd->then = then;
	return start(cmd, read_run, read_done);
}
