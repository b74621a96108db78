/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibfs-run.so: the commands of uverbs files that register memory or end that,
 * <rdma/ib_user_verbs.h>, whether they come by write() or by ioctl(), looked at
 * before the daemon gets them. What can't be read is the daemon's to refuse.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "run/preload.h"
#include "run/preload_share.h"

enum { FDS = 1024, ATTRS_MAX = 32 };
enum kind { NOTHING, REGISTER, REREGISTER, DEREGISTER };

/* Of REG_MR, which Linux 6.18 added; Debian's headers are older. */
enum {
	METHOD_REG_MR = 5, REG_MR_HANDLE = 0, REG_MR_ADDR = 4, REG_MR_LENGTH, REG_MR_ACCESS_FLAGS,
};

/* IBV_ACCESS_ON_DEMAND, IBV_REREG_MR_CHANGE_TRANSLATION */
enum { ACCESS_ON_DEMAND = 1 << 6, CHANGE_TRANSLATION = 1 };

/* By descriptor: was it opened as a uverbs file? */
static _Atomic uint8_t opened[FDS];
static _Atomic pid_t opener;

void preload_share_opened(int fd, const char *name)
{
	if (fd < 0 || fd >= FDS)
		return;
	if (opened[fd])
		share_forget(fd);
	opened[fd] = !strncmp(name, "uverbs", 6);
	if (opened[fd])
		opener = getpid();
}

/* A child of vfork() closes its own descriptors, not those of the process whose memory it has. */
void preload_share_closed(int fd)
{
	if (fd < 0 || fd >= FDS || !opened[fd] || opener != getpid())
		return;
	if (atomic_exchange(&opened[fd], 0))
		share_forget(fd);
}

static bool is_candidate(int fd)
{
	return fd >= 0 && fd < FDS && atomic_load_explicit(&opened[fd], memory_order_relaxed);
}

/* --- what is asked for --- */

static bool take_reg(struct share_call *call, const void *req, size_t size)
{
	struct ib_uverbs_reg_mr reg = { 0 };

	if (size < sizeof(reg) || !pages_read(&reg, req, sizeof(reg)))
		return false;
	call->kind = REGISTER;
	call->start = reg.start;
	call->length = reg.length;
	call->access = reg.access_flags;
	return true;
}

static bool take_rereg(struct share_call *call, const void *req, size_t size)
{
	struct ib_uverbs_rereg_mr rereg = { 0 };

	if (size < sizeof(rereg) || !pages_read(&rereg, req, sizeof(rereg)) ||
	    !(rereg.flags & CHANGE_TRANSLATION))
		return false;
	call->kind = REREGISTER;
	call->start = rereg.start;
	call->length = rereg.length;
	call->access = rereg.access_flags;
	call->handle = rereg.mr_handle;
	return true;
}

static bool take_dereg(struct share_call *call, const void *req, size_t size)
{
	struct ib_uverbs_dereg_mr dereg = { 0 };

	if (size < sizeof(dereg) || !pages_read(&dereg, req, sizeof(dereg)))
		return false;
	call->kind = DEREGISTER;
	call->handle = dereg.mr_handle;
	return true;
}

static bool take_command(struct share_call *call, uint64_t command, const void *req, size_t size)
{
	switch (command) {
	case IB_USER_VERBS_CMD_REG_MR:
		return take_reg(call, req, size);
	case IB_USER_VERBS_CMD_REREG_MR:
		return take_rereg(call, req, size);
	case IB_USER_VERBS_CMD_DEREG_MR:
		return take_dereg(call, req, size);
	default:
		return false;
	}
}

/* A command in its own method, or as an attribute whose address arg is. */
struct request {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[ATTRS_MAX];
	struct ib_uverbs_ioctl_hdr *arg;
};

/* The index, or -1. */
static int find_attr(const struct request *req, uint16_t id)
{
	for (int i = 0; i < req->hdr.num_attrs; i++)
		if (req->attrs[i].attr_id == id)
			return i;
	return -1;
}

static bool take_method_reg(struct share_call *call, const struct request *req)
{
	int handle = find_attr(req, REG_MR_HANDLE), addr = find_attr(req, REG_MR_ADDR);
	int length = find_attr(req, REG_MR_LENGTH), access = find_attr(req, REG_MR_ACCESS_FLAGS);

	if (handle < 0 || addr < 0 || length < 0 || access < 0)
		return false;
	call->kind = REGISTER;
	call->start = req->attrs[addr].data;
	call->length = req->attrs[length].data;
	call->access = (uint32_t)req->attrs[access].data;
	call->answer = (const uint32_t *)&req->arg->attrs[handle].data;
	return true;
}

static bool take_method_dereg(struct share_call *call, const struct request *req)
{
	int handle = find_attr(req, UVERBS_ATTR_DESTROY_MR_HANDLE);

	if (handle < 0)
		return false;
	call->kind = DEREGISTER;
	call->handle = (uint32_t)req->attrs[handle].data;
	return true;
}

static bool take_invoked(struct share_call *call, const struct request *req)
{
	int in = find_attr(req, UVERBS_ATTR_CORE_IN), out = find_attr(req, UVERBS_ATTR_CORE_OUT);
	int command = find_attr(req, UVERBS_ATTR_WRITE_CMD);
	const struct ib_uverbs_attr *attr = &req->attrs[in];
	const void *data;

	if (in < 0 || command < 0)
		return false;
	data = attr->len > sizeof(attr->data) ? (void *)(uintptr_t)attr->data :
						(void *)&req->arg->attrs[in].data;
	if (out >= 0)
		call->answer = (const uint32_t *)(uintptr_t)req->attrs[out].data;
	return take_command(call, req->attrs[command].data, data, attr->len);
}

static bool take_request(struct share_call *call, struct request *req)
{
	uint16_t object = req->hdr.object_id, method = req->hdr.method_id;
	bool invoked = object == UVERBS_OBJECT_DEVICE && method == UVERBS_METHOD_INVOKE_WRITE;

	if ((object != UVERBS_OBJECT_MR && !invoked) || req->hdr.num_attrs > ATTRS_MAX ||
	    !pages_read(req->attrs, req->arg->attrs, req->hdr.num_attrs * sizeof(req->attrs[0])))
		return false;
	if (invoked)
		return take_invoked(call, req);
	if (method == METHOD_REG_MR)
		return take_method_reg(call, req);
	return method == UVERBS_METHOD_MR_DESTROY && take_method_dereg(call, req);
}

/* --- around the call --- */

static void begin(struct share_call *call)
{
	if (call->kind == DEREGISTER)
		call->id = share_take(call->fd, call->handle);
	else
		call->id = share_range(call->start, call->length, call->access & ACCESS_ON_DEMAND);
	if (call->id < 0)
		call->kind = NOTHING;
}

static void start_call(struct share_call *call, int fd)
{
	memset(call, 0, sizeof(*call));
	call->fd = fd;
}

void preload_share_write(struct share_call *call, int fd, const void *buf, size_t size)
{
	struct ib_uverbs_cmd_hdr hdr;

	call->kind = NOTHING;
	if (!is_candidate(fd) || size < sizeof(hdr))
		return;
	memcpy(&hdr, buf, sizeof(hdr));
	if (hdr.command != IB_USER_VERBS_CMD_REG_MR && hdr.command != IB_USER_VERBS_CMD_REREG_MR &&
	    hdr.command != IB_USER_VERBS_CMD_DEREG_MR)
		return;
	start_call(call, fd);
	if (!preload_is_uverbs(fd) ||
	    !take_command(call, hdr.command, (const char *)buf + sizeof(hdr), size - sizeof(hdr)))
		return;
	/* The answer's address comes first. */
	if (call->kind == REGISTER)
		memcpy(&call->answer, (const char *)buf + sizeof(hdr), sizeof(uint64_t));
	begin(call);
}

static void begin_ioctl(struct share_call *call, int fd, void *arg)
{
	struct request req = { .arg = arg };

	if (!pages_read(&req.hdr, arg, sizeof(req.hdr)))
		return;
	start_call(call, fd);
	if (preload_is_uverbs(fd) && take_request(call, &req))
		begin(call);
}

void preload_share_ioctl(struct share_call *call, int fd, unsigned long request, void *arg)
{
	call->kind = NOTHING;
	if (request == RDMA_VERBS_IOCTL && is_candidate(fd))
		begin_ioctl(call, fd, arg);
}

void preload_share_done(const struct share_call *call, bool done)
{
	switch (call->kind) {
	case REGISTER:
		if (done && call->answer)
			share_keep(call->id, call->fd, *call->answer);
		else
			share_drop(call->id);
		break;
	case REREGISTER:
		if (done)
			share_keep(call->id, call->fd, call->handle);
		else
			share_drop(call->id);
		break;
	case DEREGISTER:
		if (done)
			share_drop(call->id);
		else
			share_keep(call->id, call->fd, call->handle);
		break;
	default:
		break;
	}
}
