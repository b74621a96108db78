/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The uverbs file: commands come by write(), each with a pointer for its
 * answer, as in the kernel's uverbs_main.c. A command that needs a look at the
 * client (its maps, a descriptor) or that answers into its memory goes through
 * a helper thread before, or after, it runs in the loop; an object is live when
 * its maker was told of it, and destroyed when that failed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <utlist.h>

#include <ibfs/ibfs.h>

#include "fs/rows.h"
#include "fs/uverbs.h"

/* A command whose helper hangs in a page that never comes doesn't stop a kill for longer. */
#define PATIENCE	1.0		/* seconds */
#define COMMAND_MAX	(1U << 20)

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
	memcpy(cmd->out, resp, cmd->out_used);
}

void uv_respond_driver(struct uv_cmd *cmd, const void *resp, size_t size)
{
	cmd->drv_out_used = size < cmd->drv_out_len ? size : cmd->drv_out_len;
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
	if (cmd->made_events && err) {
		uv_events_close(cmd->made_events);
		uv_events_put(cmd->made_events);
	}
	if (cmd->made_context && err) {
		uv_events_put(uf->async);
		uf->async = NULL;
		uf->context = false;
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

	settle(cmd, err);
	detach(cmd);
	cmd_free(cmd);
	fs_reply(req, result, NULL, 0);
}

static void give_up(struct uv_cmd *cmd, int err)
{
	struct fs_req *req = cmd->req;
	int state = UV_WAITS;

	atomic_compare_exchange_strong(&cmd->state, &state, UV_GIVEN_UP);
	settle(cmd, err);
	detach(cmd);
	offload_disown(&cmd->job);
	fs_reply(req, err, NULL, 0);
}

static void on_patience(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)loop;
	(void)revents;
	give_up(timer->data, -EINTR);
}

/* A signal alone doesn't end a command, as it doesn't in the kernel. */
static bool cancel(struct fs_req *req)
{
	struct uv_cmd *cmd = req->priv;

	ev_timer_start(req->ibfs->loop, &cmd->patience);
	return false;
}

/* Helper. */
static int write_client(pid_t tid, uint64_t addr, const void *data, size_t len)
{
	struct iovec local = { (void *)data, len };
	struct iovec remote = { (void *)(uintptr_t)addr, len };
	ssize_t n = process_vm_writev(tid, &local, 1, &remote, 1, 0);

	return n == (ssize_t)len ? 0 : n < 0 && errno == EPERM ? -EPERM : -EFAULT;
}

/* Helper. The answer ends with what was used; an extended one's core part is cleared to its end. */
static void respond_run(struct job *job)
{
	struct uv_cmd *cmd = from_job(job);
	size_t len = cmd->out_used;
	int state = UV_WAITS;

	if (!atomic_compare_exchange_strong(&cmd->state, &state, UV_WRITES))
		return;
	if (cmd->method->ex && cmd->out_used)
		len = cmd->out_len;
	if (cmd->drv_out_used)
		len = cmd->out_len + cmd->drv_out_used;
	cmd->err = len ? write_client(job->pid, cmd->response, cmd->out, len) : 0;
	if (!cmd->err && cmd->also_at)
		cmd->err = write_client(job->pid, cmd->also_at, &cmd->also, sizeof(cmd->also));
}

static void respond_done(struct job *job)
{
	struct uv_cmd *cmd = from_job(job);

	finish(cmd, cmd->err ? cmd->err : cmd->result);
}

/* In the loop: 0 done, 1 an answer has to be written, or -errno. */
static int execute(struct uv_cmd *cmd)
{
	struct uverbs_file *uf = cmd->uf;
	int err;

	if (!uf->dev)
		return -EIO;
	if (!uf->context && !cmd->method->no_context)
		return -EINVAL;
	err = cmd->method->run(cmd);
	if (err)
		return err;
	return cmd->out_used || cmd->drv_out_used || cmd->also_at;
}

static void prep_run(struct job *job)
{
	struct uv_cmd *cmd = from_job(job);

	if (atomic_load(&cmd->state) != UV_GIVEN_UP)
		cmd->method->prep(cmd);
}

static void prep_done(struct job *job)
{
	struct uv_cmd *cmd = from_job(job);
	int ret = cmd->err ? cmd->err : execute(cmd);

	if (ret > 0) {
		cmd->job.run = respond_run;
		cmd->job.done = respond_done;
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

/* A copy that outlives the write's buffer, for a helper. */
static struct uv_cmd *keep(const struct uv_cmd *cmd)
{
	struct uv_cmd *copy = malloc(sizeof(*copy) + cmd->in_len + cmd->drv_in_len);
	uint8_t *in;

	if (!copy)
		return NULL;
	in = (uint8_t *)(copy + 1);
	*copy = *cmd;
	memcpy(in, cmd->in, cmd->in_len);
	memcpy(in + cmd->in_len, cmd->drv_in, cmd->drv_in_len);
	copy->in = in;
	copy->drv_in = in + cmd->in_len;
	copy->job.ibfs = cmd->req->ibfs;
	copy->job.pid = cmd->req->cred.pid;
	copy->job.uid = cmd->req->cred.uid;
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
	free(cmd->out);
	return -ENOMEM;
}

static ssize_t command(struct uv_cmd *cmd)
{
	int err = out_alloc(cmd);

	if (err)
		return err;
	cmd->range.fd = -1;
	return cmd->method->prep ? run_later(cmd) : run_now(cmd);
}

/* --- headers: the kernel's verify_hdr() --- */

static int parse_ex(struct uv_cmd *cmd, const struct ib_uverbs_cmd_hdr *hdr, const uint8_t *buf,
		    size_t size)
{
	struct ib_uverbs_ex_cmd_hdr ex;
	size_t head = sizeof(*hdr) + sizeof(ex);

	if (size < head)
		return -EINVAL;
	memcpy(&ex, buf + sizeof(*hdr), sizeof(ex));
	if ((hdr->in_words + ex.provider_in_words) * 8UL != size - head)
		return -EINVAL;
	if (hdr->in_words * 8U < cmd->method->req)
		return -ENOSPC;
	if (ex.cmd_hdr_reserved)
		return -EINVAL;
	if (!ex.response != (!hdr->out_words && !ex.provider_out_words))
		return -EINVAL;
	if (ex.response && hdr->out_words * 8U < cmd->method->resp)
		return -ENOSPC;
	cmd->in = buf + head;
	cmd->in_len = hdr->in_words * 8UL;
	cmd->drv_in = buf + head + cmd->in_len;
	cmd->drv_in_len = ex.provider_in_words * 8UL;
	cmd->response = ex.response;
	cmd->out_len = hdr->out_words * 8UL;
	cmd->drv_out_len = ex.provider_out_words * 8UL;
	return 0;
}

/* rdma-core 18 and 19 send a DESTROY_CQ that is too short by its reserved word. */
static bool short_destroy_cq(const struct ib_uverbs_cmd_hdr *hdr, size_t size)
{
	return hdr->command == IB_USER_VERBS_CMD_DESTROY_CQ && size == 16;
}

static int parse(struct uv_cmd *cmd, const struct ib_uverbs_cmd_hdr *hdr, const uint8_t *buf,
		 size_t size)
{
	const struct uv_method *method = cmd->method;
	size_t out = hdr->out_words * 4UL;

	if (hdr->in_words * 4UL != size)
		return -EINVAL;
	if (size < method->req + sizeof(*hdr) && !short_destroy_cq(hdr, size))
		return -ENOSPC;
	if (out < method->resp)
		return -ENOSPC;
	cmd->in = buf + sizeof(*hdr);
	cmd->in_len = size - sizeof(*hdr);
	cmd->out_len = method->resp ? out : 0;
	if (method->resp)
		memcpy(&cmd->response, cmd->in, sizeof(cmd->response));
	cmd->drv_in = (const uint8_t *)cmd->in + cmd->in_len;
	if (!method->driver)
		return 0;
	cmd->drv_out_len = cmd->out_len - method->resp;
	cmd->out_len = method->resp;
	cmd->drv_in_len = cmd->in_len - method->req;
	cmd->drv_in = (const uint8_t *)cmd->in + method->req;
	cmd->in_len = method->req;
	return 0;
}

static int find_method(uint32_t command, const struct uv_method **method)
{
	bool ex = command & IB_USER_VERBS_CMD_FLAG_EXTENDED;

	if (command & ~(IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_CMD_COMMAND_MASK))
		return -EINVAL;
	*method = uv_method(command & IB_USER_VERBS_CMD_COMMAND_MASK, ex);
	return *method ? 0 : -EOPNOTSUPP;
}

static ssize_t uverbs_write(struct file *file, struct fs_req *req, const void *buf, size_t size,
			    off_t off)
{
	struct uverbs_file *uf = file->priv;
	struct uv_cmd cmd = { .uf = uf, .req = req, .count = size };
	struct ib_uverbs_cmd_hdr hdr;
	int err;

	(void)off;
	if (!uf->dev)
		return -EIO;
	if (size < sizeof(hdr) || size > COMMAND_MAX)
		return -EINVAL;
	memcpy(&hdr, buf, sizeof(hdr));
	err = find_method(hdr.command, &cmd.method);
	if (!err)
		err = cmd.method->ex ? parse_ex(&cmd, &hdr, buf, size) : parse(&cmd, &hdr, buf, size);
	if (err)
		return ibfs_fail(req->ibfs, -err, "%s: command 0x%x of %zu bytes, words %u in, %u out",
				 uf->name, hdr.command, size, hdr.in_words, hdr.out_words);
	return command(&cmd);
}

/* --- the file --- */

/*
 * The kernel gives all open files of one inode the same memory to map, and
 * each of ours has its own: a file that is opened again without a lookup (by
 * /proc/self/fd) is refused; open(2) looks it up anew then.
 */
static bool inode_taken(const struct fs *fs, const struct file *file)
{
	const struct uverbs_file *uf;

	DL_FOREACH(fs->uverbs, uf)
		if (uf->node == file->path.idx && file->path.idx)
			return true;
	return false;
}

static ssize_t uverbs_open(struct file *file, struct fs_req *req)
{
	struct fs *fs = req->ibfs->fs;
	struct ibfs_device *dev = path_device(req->ibfs, file->path);
	struct uverbs_file *uf;

	if (!dev || !dev->ops->verbs)
		return ibfs_fail(req->ibfs, ENXIO, "uverbs: the device is gone, or has no verbs");
	if (!req->cred.pid)
		return ibfs_fail(req->ibfs, EOPNOTSUPP, "uverbs needs a process on this machine");
	if (inode_taken(fs, file))
		return ibfs_fail(req->ibfs, ESTALE, "uverbs: this open file has its own memory");
	uf = calloc(1, sizeof(*uf));
	if (!uf)
		return -ENOMEM;
	uf->space = uv_space_new();
	if (!uf->space) {
		free(uf);
		return -ENOMEM;
	}
	uf->file = file;
	uf->dev = dev;
	uf->node = file->path.idx;
	memcpy(uf->name, dev->name, sizeof(uf->name));
	file->priv = uf;
	file->backing = uf->space->rings.fd;
	DL_APPEND(fs->uverbs, uf);
	return 0;
}

/* The context's objects and events end; the file may stay. */
static void end_context(struct uverbs_file *uf)
{
	struct uv_events *events, *tmp;
	struct uv_cmd *cmd, *next;

	DL_FOREACH_SAFE(uf->cmds, cmd, next)
		give_up(cmd, -EIO);
	uobj_destroy_all(uf);
	if (uf->async)
		uv_events_put(uf->async);
	uf->async = NULL;
	DL_FOREACH_SAFE(uf->file->ibfs->fs->uv_events, events, tmp) {
		if (events->uf != uf)
			continue;
		uv_events_close(events);
		if (!events->async)
			uv_events_put(events);
	}
}

static void uverbs_release(struct file *file)
{
	struct uverbs_file *uf = file->priv;

	if (!uf)
		return;
	end_context(uf);
	DL_DELETE(file->ibfs->fs->uverbs, uf);
	uv_space_free(uf->space);
	free(uf->objs);
	free(uf);
}

void uverbs_device_gone(struct ibfs_device *dev)
{
	struct uverbs_file *uf;

	DL_FOREACH(dev->ibfs->fs->uverbs, uf) {
		if (uf->dev != dev)
			continue;
		if (uf->async)
			uv_events_add(uf->async, NULL, 0, IBV_EVENT_DEVICE_FATAL);
		end_context(uf);
		uf->dev = NULL;
	}
}

void uverbs_device_event(struct ibfs_device *dev, unsigned int port, enum ibv_event_type event)
{
	struct uverbs_file *uf;

	DL_FOREACH(dev->ibfs->fs->uverbs, uf)
		if (uf->dev == dev && uf->async)
			uv_events_add(uf->async, NULL, port, event);
}

void uv_obj_event(struct verbs_client *client, enum ibv_event_type event)
{
	struct uobj *obj = (struct uobj *)client;

	if (obj->uf->async)
		uv_events_add(obj->uf->async, obj, obj->user_handle, event);
}

const struct file_ops uverbs_ops = {
	.open = uverbs_open,
	.release = uverbs_release,
	.write = uverbs_write,
};
