/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA_VERBS_IOCTL: the header comes with the ioctl, the attributes behind it,
 * and what they point to, are fetched from the client's memory by a helper,
 * checked against what the method takes, and the answers written there.
 * Kernel: ib_uverbs_ioctl(), ib_uverbs_run_method(), uverbs_process_attr().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include <ibfs/ibfs.h>

#include "fs/uverbs_ioctl.h"

#define ALIGN 8

static size_t aligned(size_t size)
{
	return (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* --- attributes, for methods --- */

struct uv_attr *uv_attr(const struct uv_cmd *cmd, uint16_t id)
{
	struct uv_call *call = cmd->call;

	for (unsigned int i = 0; i < call->method->num_attrs; i++)
		if (call->given[i].spec && call->given[i].spec->id == id)
			return &call->given[i];
	return NULL;
}

uint64_t uv_attr_u64(const struct uv_cmd *cmd, uint16_t id)
{
	const struct uv_attr *attr = uv_attr(cmd, id);
	uint64_t value = 0;

	if (!attr)
		return 0;
	if (attr->spec->type != UVA_IN)
		return attr->data;
	memcpy(&value, attr->in, attr->len < sizeof(value) ? attr->len : sizeof(value));
	return value;
}

int uv_attr_flags(const struct uv_cmd *cmd, uint16_t id, uint32_t allowed, uint32_t *flags)
{
	const struct uv_attr *attr = uv_attr(cmd, id);
	uint64_t value = uv_attr_u64(cmd, id);

	if (attr && attr->len != sizeof(uint32_t) && attr->len != sizeof(uint64_t))
		return -EINVAL;
	if (value & ~(uint64_t)allowed)
		return -EINVAL;
	*flags = (uint32_t)value;
	return 0;
}

int uv_attr_const(const struct uv_cmd *cmd, uint16_t id, uint64_t max, uint32_t *value)
{
	uint64_t given = uv_attr_u64(cmd, id);

	if (given > max)
		return -EINVAL;
	*value = (uint32_t)given;
	return 0;
}

int uv_attr_put(struct uv_cmd *cmd, uint16_t id, const void *data, size_t size)
{
	struct uv_attr *attr = uv_attr(cmd, id);
	size_t len;

	if (!attr)
		return 0;
	len = size < attr->len ? size : attr->len;
	attr->out_len = attr->spec->grows ? attr->len : len;
	attr->out = calloc(1, attr->out_len + 1);
	if (!attr->out)
		return -ENOMEM;
	memcpy(attr->out, data, len);
	attr->set = true;
	return 0;
}

void uv_attr_put_new(struct uv_cmd *cmd, uint16_t id, uint32_t handle)
{
	struct uv_attr *attr = uv_attr(cmd, id);

	attr->data = handle;
	attr->set = true;
}

void uv_call_free(struct uv_call *call)
{
	if (!call)
		return;
	for (unsigned int i = 0; i < UV_SPECS_MAX; i++)
		free(call->given[i].out);
	free(call->area);
	free(call);
}

/* --- helper: from the client --- */

static bool all_zero(const uint8_t *data, size_t len)
{
	while (len && !*data)
		data++, len--;
	return !len;
}

static int check_bytes(const struct uv_attr_spec *spec, const struct ib_uverbs_attr *attr)
{
	if (attr->len < spec->min || (!spec->grows && attr->len > spec->max) ||
	    attr->attr_data.reserved)
		return -EINVAL;
	return 0;
}

static int check_object(const struct ib_uverbs_attr *attr)
{
	return attr->attr_data.reserved || attr->len ? -EINVAL : 0;
}

static int take_attr(struct uv_cmd *cmd, const struct ib_uverbs_attr *from, unsigned int index)
{
	const struct uv_ioctl_method *method = cmd->call->method;
	const struct uv_attr_spec *spec;
	struct uv_attr *attr;
	unsigned int i;

	for (i = 0; i < method->num_attrs && method->attrs[i].id != from->attr_id; i++)
		;
	if (i == method->num_attrs)
		return from->flags & UVERBS_ATTR_F_MANDATORY ? -EPROTONOSUPPORT : 0;
	spec = &method->attrs[i];
	attr = &cmd->call->given[i];
	if (attr->spec)
		return -EINVAL;
	*attr = (struct uv_attr){
		.spec = spec, .index = (uint16_t)index, .len = from->len, .flags = from->flags,
		.data = from->data,
	};
	if (spec->type == UVA_IN || spec->type == UVA_OUT)
		return check_bytes(spec, from);
	if (spec->type == UVA_FD && !check_object(from))
		return uv_event_file_of(cmd->client, from->data_s64, &attr->fd_id);
	return check_object(from);
}

static int take_attrs(struct uv_cmd *cmd)
{
	struct uv_call *call = cmd->call;

	for (unsigned int i = 0; i < call->num; i++) {
		int err = take_attr(cmd, &call->attrs[i], i);

		if (err)
			return err;
	}
	for (unsigned int i = 0; i < call->method->num_attrs; i++)
		if (call->method->attrs[i].mandatory && !call->given[i].spec)
			return -EINVAL;
	return 0;
}

static bool is_inline(const struct uv_attr *attr)
{
	return attr->len <= sizeof(attr->data);
}

/* What UVA_IN attributes point to, in one call. */
static int fetch_data(struct uv_cmd *cmd)
{
	struct iovec remote[UV_SPECS_MAX], local[UV_SPECS_MAX];
	struct uv_call *call = cmd->call;
	unsigned int num = 0;
	size_t size = 0;
	uint8_t *at;

	for (unsigned int i = 0; i < call->method->num_attrs; i++)
		if (call->given[i].spec && call->given[i].spec->type == UVA_IN)
			size += aligned(call->given[i].len);
	at = call->area = malloc(size + 1);
	if (!at)
		return -ENOMEM;
	for (unsigned int i = 0; i < call->method->num_attrs; i++) {
		struct uv_attr *attr = &call->given[i];

		if (!attr->spec || attr->spec->type != UVA_IN)
			continue;
		attr->in = at;
		if (is_inline(attr)) {
			memcpy(at, &attr->data, attr->len);
		} else {
			local[num] = (struct iovec){ at, attr->len };
			remote[num++] = (struct iovec){ (void *)(uintptr_t)attr->data, attr->len };
		}
		at += aligned(attr->len);
	}
	return client_read(cmd->client, local, remote, num);
}

/* Of a struct that grew: what is not known here has to be 0. */
static int check_tails(const struct uv_call *call)
{
	for (unsigned int i = 0; i < call->method->num_attrs; i++) {
		const struct uv_attr *attr = &call->given[i];

		if (attr->spec && attr->spec->type == UVA_IN && attr->len > attr->spec->max &&
		    !all_zero(attr->in + attr->spec->max, attr->len - attr->spec->max))
			return -EOPNOTSUPP;
	}
	return 0;
}

/* The request of the command that does the method, and room for its response. */
static int fill_command(struct uv_cmd *cmd)
{
	const struct uv_attr *in = uv_attr(cmd, UVERBS_ATTR_UHW_IN);
	const struct uv_attr *out = uv_attr(cmd, UVERBS_ATTR_UHW_OUT);
	const struct uv_ioctl_method *method = cmd->call->method;
	int err;

	if (method->command) {
		err = uv_find_method(method->command, &cmd->method);
		if (err)
			return err;
		cmd->in = cmd->call->req;
		cmd->in_len = method->req;
		cmd->out_len = method->resp;
	}
	err = method->fill ? method->fill(cmd, cmd->call->req) : 0;
	if (err)
		return err;
	cmd->drv_in = in ? in->in : NULL;
	cmd->drv_in_len = in ? in->len : 0;
	cmd->drv_out_len = out ? out->len : 0;
	return 0;
}

int uv_call_fetch(struct uv_cmd *cmd)
{
	struct uv_call *call = cmd->call;
	struct iovec local = { call->attrs, call->num * sizeof(call->attrs[0]) };
	struct iovec remote = { (void *)(uintptr_t)call->user, local.iov_len };
	int err;

	err = client_read(cmd->client, &local, &remote, call->num ? 1 : 0);
	if (!err)
		err = take_attrs(cmd);
	if (!err)
		err = fetch_data(cmd);
	if (!err)
		err = check_tails(call);
	if (!err)
		err = fill_command(cmd);
	return err;
}

/* --- in the loop --- */

static int find_object(const struct uverbs_file *uf, const struct uv_attr *attr)
{
	if ((int64_t)attr->data < 0)
		return -EINVAL;
	if (attr->data > UINT32_MAX || !uobj_exists(uf, (uint32_t)attr->data))
		return -ENOENT;
	return uobj_get(uf, (uint32_t)attr->data, attr->spec->obj) ? 0 : -EINVAL;
}

static int find_objects(const struct uv_cmd *cmd)
{
	const struct uv_call *call = cmd->call;

	for (unsigned int i = 0; i < call->method->num_attrs; i++) {
		const struct uv_attr *attr = &call->given[i];
		int err;

		if (!attr->spec || (attr->spec->type != UVA_OBJ && attr->spec->type != UVA_DESTROY))
			continue;
		err = find_object(cmd->uf, attr);
		if (err)
			return err;
	}
	return 0;
}

/* The kernel takes it that a driver has written its part, if there is one. */
static int put_driver(struct uv_cmd *cmd)
{
	struct uv_attr *attr = uv_attr(cmd, UVERBS_ATTR_UHW_OUT);

	if (!attr)
		return 0;
	attr->set = true;
	return cmd->drv_out_used ?
	       uv_attr_put(cmd, UVERBS_ATTR_UHW_OUT, cmd->drv_out, cmd->drv_out_used) : 0;
}

int uv_call_run(struct uv_cmd *cmd)
{
	const struct uv_ioctl_method *method = cmd->call->method;
	bool no_context = cmd->method ? cmd->method->no_context : method->no_context;
	int err = find_objects(cmd);

	if (err)
		return err;
	if (!cmd->uf->context && !no_context)
		return -EINVAL;
	err = cmd->method ? cmd->method->run(cmd) : method->run(cmd);
	if (!err && method->spread)
		err = method->spread(cmd, cmd->out);
	return err ? err : put_driver(cmd);
}

/* --- helper: to the client --- */

struct answer {
	struct iovec local[2 * UV_SPECS_MAX], remote[2 * UV_SPECS_MAX];
	unsigned int num;
};

static void add_part(struct answer *answer, uint64_t to, const void *from, size_t len)
{
	if (!len)
		return;
	answer->local[answer->num] = (struct iovec){ (void *)from, len };
	answer->remote[answer->num++] = (struct iovec){ (void *)(uintptr_t)to, len };
}

static void add_attr(struct answer *answer, const struct uv_call *call, struct uv_attr *attr)
{
	uint64_t user = call->user + attr->index * sizeof(struct ib_uverbs_attr);

	if (attr->spec->type != UVA_OUT) {
		add_part(answer, user + offsetof(struct ib_uverbs_attr, data), &attr->data,
			 sizeof(attr->data));
		return;
	}
	add_part(answer, attr->data, attr->out, attr->out_len);
	attr->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
	add_part(answer, user + offsetof(struct ib_uverbs_attr, flags), &attr->flags,
		 sizeof(attr->flags));
}

int uv_call_respond(struct uv_cmd *cmd)
{
	struct uv_call *call = cmd->call;
	struct answer answer = { .num = 0 };

	for (unsigned int i = 0; i < call->method->num_attrs; i++)
		if (call->given[i].spec && call->given[i].set)
			add_attr(&answer, call, &call->given[i]);
	return client_write(cmd->client, answer.local, answer.remote, answer.num);
}

/* --- the ioctl --- */

static int check_header(const struct ib_uverbs_ioctl_hdr *hdr)
{
	if (hdr->length > UV_CALL_MAX ||
	    hdr->length != sizeof(*hdr) + hdr->num_attrs * sizeof(struct ib_uverbs_attr))
		return -EINVAL;
	if (hdr->reserved1 || hdr->reserved2)
		return -EPROTONOSUPPORT;
	return hdr->driver_id == RDMA_DRIVER_RXE ? 0 : -EINVAL;
}

static const struct uv_ioctl_method *find_ioctl_method(const struct ib_uverbs_ioctl_hdr *hdr)
{
	for (unsigned int i = 0; i < uv_ioctl_num_methods; i++)
		if (uv_ioctl_methods[i].object == hdr->object_id &&
		    uv_ioctl_methods[i].id == hdr->method_id)
			return &uv_ioctl_methods[i];
	return NULL;
}

ssize_t uverbs_ioctl(struct file *file, struct fs_req *req, unsigned int number, uint64_t arg,
		     const void *in, size_t in_len, void *out, size_t out_room, size_t *out_len)
{
	struct uv_cmd cmd = { .uf = file->priv, .req = req };
	struct ib_uverbs_ioctl_hdr hdr;
	int err;

	(void)out;
	(void)out_room;
	(void)out_len;
	if (number != RDMA_VERBS_IOCTL || in_len < sizeof(hdr))
		return -ENOTTY;
	if (!cmd.uf->dev)
		return -EIO;
	memcpy(&hdr, in, sizeof(hdr));
	err = check_header(&hdr);
	if (err)
		return ibfs_fail(req->ibfs, -err, "%s: ioctl of %u bytes, %u attributes, driver %u",
				 cmd.uf->name, hdr.length, hdr.num_attrs, hdr.driver_id);
	cmd.call = calloc(1, sizeof(*cmd.call));
	if (!cmd.call)
		return -ENOMEM;
	cmd.call->method = find_ioctl_method(&hdr);
	cmd.call->user = arg + sizeof(hdr);
	cmd.call->num = hdr.num_attrs;
	if (cmd.call->method)
		return uv_command(&cmd);
	uv_call_free(cmd.call);
	return ibfs_fail(req->ibfs, EPROTONOSUPPORT, "%s: ioctl of object %u, method %u",
			 cmd.uf->name, hdr.object_id, hdr.method_id);
}
