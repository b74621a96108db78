/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A uverbs command's life. One that needs a look at the client (its maps, a
 * descriptor) or that answers into its memory goes through a helper thread
 * before, or after, it runs in the loop; an object is live when its maker was
 * told of it, and destroyed when that failed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utlist.h>

#include <ibfs/ibfs.h>

#include "fs/uverbs_ioctl.h"

/* A command whose helper hangs in a page that never comes doesn't stop a kill for longer. */
#define PATIENCE	1.0		/* seconds */

static struct uv_cmd *from_job(struct job *job)
{
	return (struct uv_cmd *)((char *)job - offsetof(struct uv_cmd, job));
}

/* --- requests and answers --- */

void uv_request(const struct uv_cmd *cmd, void *req, size_t size)
{
	memset(req, 0, size);
	memcpy(req, cmd->in, cmd->in_len < size ? cmd->in_len : size);
}

int uv_request_ex(const struct uv_cmd *cmd, void *req, size_t size)
{
	const uint8_t *in = cmd->in;

	for (size_t i = size; i < cmd->in_len; i++)
		if (in[i])
			return -EOPNOTSUPP;
	uv_request(cmd, req, size);
	return 0;
}

void uv_respond(struct uv_cmd *cmd, const void *resp, size_t size)
{
	cmd->out_used = size < cmd->out_len ? size : cmd->out_len;
	if (cmd->out_used)
		memcpy(cmd->out, resp, cmd->out_used);
}

void uv_respond_driver(struct uv_cmd *cmd, const void *resp, size_t size)
{
	cmd->drv_out_used = size < cmd->drv_out_len ? size : cmd->drv_out_len;
	if (cmd->drv_out_used)
		memcpy(cmd->drv_out, resp, cmd->drv_out_used);
}

void uv_mminfo(const struct ibfs_ring *ring, struct mminfo *info)
{
	*info = (struct mminfo){ .offset = ring->off, .size = (uint32_t)ring->size };
}

/* --- a command's life --- */

static void cmd_free(struct uv_cmd *cmd)
{
	uv_range_drop(&cmd->range);
	if (cmd->sock >= 0)
		close(cmd->sock);
	client_put(cmd->client);
	uv_call_free(cmd->call);
	free(cmd->out);
	free(cmd);
}

static void disowned(struct job *job)
{
	cmd_free(from_job(job));
}

/* What a command made is its maker's, or, when that wasn't told, nobody's. */
static void settle(struct uv_cmd *cmd, int err)
{
	struct uverbs_file *uf = cmd->uf;

	if (cmd->made && !err)
		cmd->made->live = true;
	if (cmd->made && err)
		uobj_destroy(cmd->made);
	if (cmd->made_context && err)
		uf->context = false;
	if (cmd->made_events && err) {
		if (uf->async == cmd->made_events) {
			uv_events_put(uf->async);
			uf->async = NULL;
		}
		uv_events_close(cmd->made_events);
	}
	cmd->made = NULL;
}

static void detach(struct uv_cmd *cmd)
{
	ev_timer_stop(cmd->job.ibfs->loop, &cmd->patience);
	DL_DELETE(cmd->uf->cmds, cmd);
}

/* The end of a command that waited. */
static void finish(struct uv_cmd *cmd, int err)
{
	struct fs_req *req = cmd->req;
	ssize_t result = err ? err : (ssize_t)cmd->count;

	client_error(req, cmd->client, cmd->uf->name, err);
	settle(cmd, err);
	detach(cmd);
	cmd_free(cmd);
	fs_reply(req, result, NULL, 0);
}

void uv_give_up(struct uv_cmd *cmd, int err)
{
	struct fs_req *req = cmd->req;

	settle(cmd, err);
	detach(cmd);
	offload_disown(&cmd->job);
	fs_reply(req, err, NULL, 0);
}

static void on_patience(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)loop;
	(void)revents;
	uv_give_up(timer->data, -EINTR);
}

/* A signal alone doesn't end a command, as it doesn't in the kernel. */
static bool cancel(struct fs_req *req)
{
	struct uv_cmd *cmd = req->priv;

	ev_timer_start(req->ibfs->loop, &cmd->patience);
	return false;
}

static int write_client(const struct uv_cmd *cmd, uint64_t addr, const void *data, size_t len)
{
	struct iovec local = { (void *)data, len };
	struct iovec remote = { (void *)(uintptr_t)addr, len };

	return client_write(cmd->client, &local, &remote, 1);
}

/* The answer ends with what was used; an extended one's core part is cleared to its end. */
static int respond(const struct uv_cmd *cmd)
{
	size_t len = cmd->out_used;

	if (cmd->method->ex && cmd->out_used)
		len = cmd->out_len;
	if (cmd->drv_out_used)
		len = cmd->out_len + cmd->drv_out_used;
	return len ? write_client(cmd, cmd->response, cmd->out, len) : 0;
}

/* Helper. */
static void respond_run(struct job *job)
{
	struct uv_cmd *cmd = from_job(job);

	cmd->err = client_bind(cmd->client);
	if (!cmd->err)
		cmd->err = cmd->call ? uv_call_respond(cmd) : respond(cmd);
	if (!cmd->err && cmd->also_at)
		cmd->err = write_client(cmd, cmd->also_at, &cmd->also, sizeof(cmd->also));
}

static void respond_done(struct job *job)
{
	struct uv_cmd *cmd = from_job(job);

	finish(cmd, cmd->err ? cmd->err : cmd->result);
}

/* In the loop: 0 done, 1 an answer has to be written, UV_LATER, or -errno. */
static int execute(struct uv_cmd *cmd)
{
	struct uverbs_file *uf = cmd->uf;
	int err;

	if (!uf->dev)
		return -EIO;
	if (cmd->call) {
		err = uv_call_run(cmd);
		return err ? err : 1;
	}
	if (!uf->context && !cmd->method->no_context)
		return -EINVAL;
	err = cmd->method->run(cmd);
	if (err)
		return err;
	return cmd->out_used || cmd->drv_out_used || cmd->also_at;
}

static int out_alloc(struct uv_cmd *cmd)
{
	if (!cmd->out_len && !cmd->drv_out_len)
		return 0;
	cmd->out = calloc(1, cmd->out_len + cmd->drv_out_len);
	if (!cmd->out)
		return -ENOMEM;
	cmd->drv_out = cmd->out + cmd->out_len;
	return 0;
}

/* Helper. */
static void prep_run(struct job *job)
{
	struct uv_cmd *cmd = from_job(job);

	cmd->err = client_bind(cmd->client);
	if (!cmd->err && cmd->call) {
		cmd->err = uv_call_fetch(cmd);
		if (!cmd->err)
			cmd->err = out_alloc(cmd);
	}
	if (!cmd->err && cmd->method && cmd->method->prep)
		cmd->method->prep(cmd);
}

/* Helper: a turn behind what the client had to do before. */
static void turn_run(struct job *job)
{
	(void)job;
}

static void prep_done(struct job *job)
{
	struct uv_cmd *cmd = from_job(job);
	int ret = cmd->err ? cmd->err : execute(cmd);

	client_rest(cmd->client);
	if (ret > 0) {
		cmd->job.run = ret == UV_LATER ? turn_run : respond_run;
		cmd->job.done = ret == UV_LATER ? prep_done : respond_done;
		ret = offload(&cmd->job);
		if (!ret)
			return;
	}
	finish(cmd, ret);
}

static ssize_t start(struct uv_cmd *cmd, void (*run)(struct job *), void (*done)(struct job *))
{
	int err;

	cmd->job.run = run;
	cmd->job.done = done;
	err = offload(&cmd->job);
	if (err) {
		settle(cmd, err);
		cmd_free(cmd);
		return err;
	}
	DL_APPEND(cmd->uf->cmds, cmd);
	cmd->req->priv = cmd;
	cmd->req->cancel = cancel;
	return FS_PENDING;
}

/* A copy that outlives the write's buffer, for a helper. */
static struct uv_cmd *keep(const struct uv_cmd *cmd)
{
	struct uv_cmd *copy = malloc(sizeof(*copy) + cmd->in_len + cmd->drv_in_len);
	uint8_t *in;

	if (!copy)
		return NULL;
	in = (uint8_t *)(copy + 1);
	*copy = *cmd;
	if (cmd->in_len)
		memcpy(in, cmd->in, cmd->in_len);
	if (cmd->drv_in_len)
		memcpy(in + cmd->in_len, cmd->drv_in, cmd->drv_in_len);
	copy->client = client_new(cmd->req, &cmd->uf->opener);
	if (!copy->client) {
		free(copy);
		return NULL;
	}
	copy->in = in;
	copy->drv_in = in + cmd->in_len;
	copy->job.ibfs = cmd->req->ibfs;
	copy->job.pid = cmd->req->caller.pid;
	copy->job.uid = cmd->req->caller.uid;
	copy->job.disowned = disowned;
	ev_timer_init(&copy->patience, on_patience, PATIENCE, 0.);
	copy->patience.data = copy;
	return copy;
}

static ssize_t run_now(struct uv_cmd *cmd)
{
	struct uv_cmd *copy;
	int ret = execute(cmd);

	if (ret > 0) {
		copy = keep(cmd);
		if (copy)
			return start(copy, respond_run, respond_done);
		ret = -ENOMEM;
	}
	settle(cmd, ret);
	free(cmd->out);
	return ret ? ret : (ssize_t)cmd->count;
}

static ssize_t run_later(struct uv_cmd *cmd)
{
	struct uv_cmd *copy = keep(cmd);

	if (copy)
		return start(copy, prep_run, prep_done);
	uv_call_free(cmd->call);
	free(cmd->out);
	return -ENOMEM;
}

ssize_t uv_command(struct uv_cmd *cmd)
{
	int err;

	uv_range_init(&cmd->range);
	cmd->sock = -1;
	if (cmd->call)
		return run_later(cmd);
	err = out_alloc(cmd);
	if (err)
		return err;
	return cmd->method->prep ? run_later(cmd) : run_now(cmd);
}
