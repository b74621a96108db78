/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rdma_cm file: commands come by write(), each with a header and a pointer
 * for its answer; events are asked for by a command that waits. Kernel ucma.c.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/rows.h"
#include "fs/ucma.h"

#define COMMAND_MAX	4096

static const struct {
	int (*run)(struct ucma_cmd *cmd);
	bool network;			/* of the caller: it counts */
} commands[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = { ucma_create_id, false },
	[RDMA_USER_CM_CMD_DESTROY_ID] = { ucma_destroy_id, false },
	[RDMA_USER_CM_CMD_BIND_IP] = { ucma_bind_ip, true },
	[RDMA_USER_CM_CMD_RESOLVE_IP] = { ucma_resolve_ip, true },
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = { ucma_resolve_route, false },
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = { ucma_query_route, false },
	[RDMA_USER_CM_CMD_CONNECT] = { ucma_connect, false },
	[RDMA_USER_CM_CMD_LISTEN] = { ucma_listen, false },
	[RDMA_USER_CM_CMD_ACCEPT] = { ucma_accept, true },
	[RDMA_USER_CM_CMD_REJECT] = { ucma_reject, false },
	[RDMA_USER_CM_CMD_DISCONNECT] = { ucma_disconnect, false },
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = { ucma_init_qp_attr, true },
	[RDMA_USER_CM_CMD_GET_EVENT] = { ucma_get_event, false },
	[RDMA_USER_CM_CMD_SET_OPTION] = { ucma_set_option, false },
	[RDMA_USER_CM_CMD_NOTIFY] = { ucma_notify, false },
	[RDMA_USER_CM_CMD_MIGRATE_ID] = { ucma_migrate, false },
	[RDMA_USER_CM_CMD_QUERY] = { ucma_query, false },
	[RDMA_USER_CM_CMD_BIND] = { ucma_bind, true },
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = { ucma_resolve_addr, true },
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = { ucma_join_ip_mcast, true },
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = { ucma_leave_mcast, false },
	[RDMA_USER_CM_CMD_JOIN_MCAST] = { ucma_join_mcast, true },
};

enum { NUM_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static ssize_t run(struct ucma_file *uf, struct fs_req *req, const struct rdma_ucm_cmd_hdr *hdr,
		   const void *in, size_t size)
{
	struct ucma_cmd *cmd = calloc(1, sizeof(*cmd));
	ssize_t ret;

	if (!cmd)
		return -ENOMEM;
	cmd->uf = uf;
	cmd->req = req;
	cmd->in = in;
	cmd->in_len = hdr->in;
	cmd->out_room = hdr->out;
	cmd->count = size;
	cmd->netns = -1;
	if (commands[hdr->cmd].network)
		ret = ucma_look(cmd, commands[hdr->cmd].run);
	else
		ret = commands[hdr->cmd].run(cmd);
	/* It waits, and is the file's. */
	if (ret == FS_PENDING)
		/* cppcheck-suppress memleak */
		return ret;
	if (!ret && cmd->out_len)
		return ucma_answer(cmd);
	ucma_cmd_free(cmd);
	return ret ? ret : (ssize_t)size;
}

static ssize_t ucma_write(struct file *file, struct fs_req *req, const void *buf, size_t size,
			  off_t off)
{
	struct rdma_ucm_cmd_hdr hdr;

	int err = fs_same_user(file, req);

	(void)off;
	if (err)
		return err;
	if (size < sizeof(hdr) || size > COMMAND_MAX)
		return -EINVAL;
	memcpy(&hdr, buf, sizeof(hdr));
	if (hdr.cmd >= NUM_COMMANDS || hdr.in + sizeof(hdr) > size)
		return ibfs_fail(req->ibfs, EINVAL, "rdma_cm: command %u of %zu bytes, %u told",
				 hdr.cmd, size, hdr.in);
	if (!commands[hdr.cmd].run)
		return ibfs_fail(req->ibfs, ENOSYS, "rdma_cm: there is no command %u", hdr.cmd);
	return run(file->priv, req, &hdr, (const char *)buf + sizeof(hdr), size);
}

static ssize_t ucma_open(struct file *file, struct fs_req *req)
{
	struct ucma_file *uf;

	if (!req->caller.pid)
		return ibfs_fail(req->ibfs, EOPNOTSUPP, "rdma_cm needs a process on this machine");
	uf = calloc(1, sizeof(*uf));
	if (!uf)
		return -ENOMEM;
	uf->file = file;
	file->priv = uf;
	file->hints |= FILE_STREAM;
	DL_APPEND(req->ibfs->fs->ucmas, uf);
	return client_learn(req, &uf->opener);
}

static void ucma_release(struct file *file)
{
	struct ucma_file *uf = file->priv;
	struct ucma_id *id, *tmp;
	struct ucma_cmd *cmd, *next;

	if (!uf)
		return;
	DL_FOREACH_SAFE(uf->cmds, cmd, next)
		ucma_give_up(cmd, -EINTR);
	/* First what nobody was told of: then freeing an id frees no other. */
	ucma_events_free(uf, NULL);
	HASH_ITER(hh, file->ibfs->fs->ucma_ids, id, tmp)
		if (id->uf == uf)
			ucma_id_free(id);
	DL_DELETE(file->ibfs->fs->ucmas, uf);
	free(uf);
}

static unsigned int ucma_poll(struct file *file)
{
	const struct ucma_file *uf = file->priv;

	return uf->events ? POLLIN | POLLRDNORM : 0;
}

void ucma_device_gone(struct ibfs_device *dev)
{
	struct ucma_id *id, *tmp;

	ucma_listeners_gone(dev);
	HASH_ITER(hh, dev->ibfs->fs->ucma_ids, id, tmp) {
		if (id->dev != dev)
			continue;
		ucma_resolve_stop(id);
		ucma_path_stop(&id->query);
		ucma_unlisten(id);
		ucma_mcs_gone(id);
		cm_id_free(id->cm);
		id->cm = NULL;
		id->dev = NULL;
		id->state = ID_GONE;
		ucma_post(id, UCMA_DEVICE_REMOVAL, 0);
	}
}

const struct file_ops ucma_ops = {
	.open = ucma_open,
	.release = ucma_release,
	.write = ucma_write,
	.poll = ucma_poll,
};

/* --- sys/class/misc/rdma_cm --- */

enum { UCMA_ABI, UCMA_DEV };
enum { MISC_MAJOR = 10, UCMA_MINOR = 58 };

const struct entry sys_misc_entries[] = {
	{ "rdma_cm", KIND_SYS_UCMA, 0 },
	{ NULL, 0, 0 }
};

const struct entry sys_ucma_entries[] = {
	{ "abi_version", KIND_SYS_UCMA_TEXT, UCMA_ABI },
	{ "dev", KIND_SYS_UCMA_TEXT, UCMA_DEV },
	{ NULL, 0, 0 }
};

static int ucma_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	(void)ibfs;
	if (path.sub == UCMA_ABI)
		text_printf(out, "%u\n", RDMA_USER_CM_ABI_VERSION);
	else
		text_printf(out, "%u:%u\n", MISC_MAJOR, UCMA_MINOR);
	return 0;
}

const struct file_ops ucma_text_ops = { .show = ucma_show };
