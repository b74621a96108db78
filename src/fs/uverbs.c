/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The uverbs file: commands come by write(), each with a header and a pointer
 * for its answer, as in the kernel's uverbs_main.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include <ibfs/ibfs.h>

#include "fs/rows.h"
#include "fs/uverbs.h"

#define COMMAND_MAX	(1U << 20)

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
	err = fs_same_user(file, req);
	if (err)
		return err;
	if (size < sizeof(hdr) || size > COMMAND_MAX)
		return -EINVAL;
	memcpy(&hdr, buf, sizeof(hdr));
	err = uv_find_method(hdr.command, &cmd.method);
	if (!err)
		err = cmd.method->ex ? parse_ex(&cmd, &hdr, buf, size) : parse(&cmd, &hdr, buf, size);
	if (err)
		return ibfs_fail(req->ibfs, -err, "%s: command 0x%x of %zu bytes, words %u in, %u out",
				 uf->name, hdr.command, size, hdr.in_words, hdr.out_words);
	return uv_command(&cmd);
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
	int err;

	if (!dev || !dev->ops->verbs)
		return ibfs_fail(req->ibfs, ENXIO, "uverbs: the device is gone, or has no verbs");
	if (!req->caller.pid)
		return ibfs_fail(req->ibfs, EOPNOTSUPP, "uverbs needs a process on this machine");
	if (inode_taken(fs, file))
		return ibfs_fail(req->ibfs, ESTALE, "uverbs: this open file has its own memory");
	err = charge_take_all(&file->charge, UV_SPACE_FIRST, 1, 1);
	if (err)
		return err;
	uf = calloc(1, sizeof(*uf));
	if (!uf)
		return -ENOMEM;
	uf->space = uv_space_new(req->ibfs, &file->charge);
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
	return client_learn(req, &uf->opener);
}

/* The context's objects and events end; the file may stay. */
static void end_context(struct uverbs_file *uf)
{
	struct uv_events *events, *tmp;
	struct uv_cmd *cmd, *next;

	DL_FOREACH_SAFE(uf->cmds, cmd, next)
		uv_give_up(cmd, -EIO);
	uobj_destroy_all(uf);
	if (uf->async)
		uv_events_put(uf->async);
	uf->async = NULL;
	DL_FOREACH_SAFE(uf->file->ibfs->fs->uv_events, events, tmp)
		if (events->uf == uf)
			uv_events_close(events);
}

static void uverbs_release(struct file *file)
{
	struct uverbs_file *uf = file->priv;

	if (!uf)
		return;
	uv_bell_stop(uf);
	end_context(uf);
	DL_DELETE(file->ibfs->fs->uverbs, uf);
	uv_space_free(uf->space);
	free(uf->objs);
	free(uf);
}

bool fs_verbs_in_use(const struct ibfs *ibfs)
{
	return ibfs->fs->uverbs;
}

void uverbs_device_gone(struct ibfs_device *dev)
{
	struct uverbs_file *uf;

	uverbs_device_event(dev, 0, IBV_EVENT_DEVICE_FATAL);
	DL_FOREACH(dev->ibfs->fs->uverbs, uf) {
		if (uf->dev != dev)
			continue;
		uf->space->keeps = true;
		end_context(uf);
		uf->dev = NULL;
	}
}

void uverbs_device_event(struct ibfs_device *dev, unsigned int port, enum ibv_event_type event)
{
	struct uv_events *events;

	DL_FOREACH(dev->ibfs->fs->uv_events, events)
		if (events->async && events->uf && events->uf->dev == dev)
			uv_events_add(events, NULL, port, event);
}

void uv_obj_event(struct verbs_client *client, enum ibv_event_type event)
{
	struct uobj *obj = (struct uobj *)client;

	if (obj->async)
		uv_events_add(obj->async, obj, obj->user_handle, event);
}

const struct file_ops uverbs_ops = {
	.open = uverbs_open,
	.release = uverbs_release,
	.write = uverbs_write,
	.ioctl = uverbs_ioctl,
};
