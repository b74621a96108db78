/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uverbs commands of protection domains and what belongs to them: memory
 * regions and windows, address handles; and XRC domains.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "fs/uverbs.h"

/* The kernel tells a wrong handle by ENOENT only where something is destroyed. */
static int destroy(struct uv_cmd *cmd, enum uobj_type type)
{
	struct uobj *obj;
	uint32_t handle;

	uv_request(cmd, &handle, sizeof(handle));
	obj = uobj_get(cmd->uf, handle, type);
	return obj ? uobj_destroy(obj) : -ENOENT;
}

int uv_alloc_pd(struct uv_cmd *cmd)
{
	struct uobj *obj = uobj_new(cmd->uf, UOBJ_PD);
	struct ib_uverbs_alloc_pd_resp resp;

	if (!obj)
		return -ENOMEM;
	resp.pd_handle = obj->handle;
	uv_respond(cmd, &resp, sizeof(resp));
	return uv_made(cmd, obj, uv_verbs(cmd->uf)->alloc_pd(cmd->uf->dev, &obj->pd));
}

int uv_dealloc_pd(struct uv_cmd *cmd)
{
	return destroy(cmd, UOBJ_PD);
}

/* --- memory regions --- */

/* ib_access_writable(): the device may write to the pages. */
static bool writes(unsigned int access)
{
	return access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
}

static int look(struct uv_cmd *cmd, uint64_t start, uint64_t length, uint64_t hca_va,
		unsigned int access)
{
	uint64_t in_page = sysconf(_SC_PAGESIZE) - 1;
	bool on_demand = access & IBV_ACCESS_ON_DEMAND;

	if ((start & in_page) != (hca_va & in_page))
		return -EINVAL;
	/* On demand and all of the address space: whatever will be there. */
	if ((!on_demand || start || length != UINT64_MAX) &&
	    (start + length < start || start + length + in_page < start))
		return -EINVAL;
	cmd->range.on_demand = on_demand;
	cmd->range.start = start;
	cmd->range.length = length;
	cmd->range.write = writes(access);
	return uv_range_look(&cmd->range, cmd->client);
}

void uv_prep_reg_mr(struct uv_cmd *cmd)
{
	struct ib_uverbs_reg_mr req;

	uv_request(cmd, &req, sizeof(req));
	cmd->err = look(cmd, req.start, req.length, req.hca_va, req.access_flags);
}

/* Count the memory as locked, and take it over. */
static int take_range(struct uv_cmd *cmd, struct uv_pin **pin, struct ibfs_mr_init *init)
{
	struct fs *fs = cmd->req->ibfs->fs;
	int err = uv_pin(fs, cmd->client, &cmd->range, cmd->req->cred.uid, pin);

	if (err)
		return ibfs_fail(cmd->req->ibfs, -err, "%s: process %d registers more than RLIMIT_MEMLOCK",
				 cmd->uf->name, (int)cmd->client->tgid);
	init->mem = uv_memory(cmd->req->ibfs, cmd->client, &cmd->range, *pin, &init->mem_off);
	if (init->mem)
		return 0;
	uv_unpin(fs, *pin, uv_range_bytes(&cmd->range));
	return -ENOMEM;
}

static int reg(struct uv_cmd *cmd, const struct ib_uverbs_reg_mr *req, struct uobj *pd,
	       struct uobj *obj)
{
	struct ibfs_mr_init init = {
		.length = req->length, .iova = req->hca_va, .access = req->access_flags,
	};
	int err = take_range(cmd, &obj->pin, &init);

	if (err) {
		obj->pin = NULL;
		return err;
	}
	obj->pinned = uv_range_bytes(&cmd->range);
	err = uv_verbs(cmd->uf)->reg_mr(pd->pd, &init, &obj->mr);
	memory_put(init.mem);
	return err;
}

int uv_reg_mr(struct uv_cmd *cmd)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ib_uverbs_reg_mr req;
	struct ibfs_mr_attr attr;
	struct uobj *pd, *obj;
	int err;

	uv_request(cmd, &req, sizeof(req));
	pd = uobj_get(cmd->uf, req.pd_handle, UOBJ_PD);
	if (!pd)
		return -EINVAL;
	obj = uobj_new(cmd->uf, UOBJ_MR);
	if (!obj)
		return -ENOMEM;
	err = reg(cmd, &req, pd, obj);
	if (!err) {
		uv_verbs(cmd->uf)->query_mr(obj->mr, &attr);
		resp = (struct ib_uverbs_reg_mr_resp){ obj->handle, attr.lkey, attr.rkey };
		uv_respond(cmd, &resp, sizeof(resp));
	}
	return uv_made(cmd, obj, err);
}

void uv_prep_rereg_mr(struct uv_cmd *cmd)
{
	struct ib_uverbs_rereg_mr req;

	uv_request(cmd, &req, sizeof(req));
	cmd->err = 0;
	/* Access that isn't told is taken for writing: the region may have it. */
	if (req.flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		cmd->err = look(cmd, req.start, req.length, req.hca_va,
				req.flags & IBV_REREG_MR_CHANGE_ACCESS ? req.access_flags :
									 IBV_ACCESS_LOCAL_WRITE);
}

static int rereg(struct uv_cmd *cmd, const struct ib_uverbs_rereg_mr *req, struct uobj *obj,
		 struct ibfs_pd *pd)
{
	struct ibfs_mr_init init = {
		.length = req->length, .iova = req->hca_va, .access = req->access_flags,
	};
	struct fs *fs = cmd->req->ibfs->fs;
	struct uv_pin *pin = NULL;
	uint64_t pinned = 0;
	int err = 0;

	if (req->flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		err = take_range(cmd, &pin, &init);
		if (err)
			return err;
		pinned = uv_range_bytes(&cmd->range);
	}
	err = uv_verbs(cmd->uf)->rereg_mr(obj->mr, (int)req->flags, pd, &init);
	memory_put(init.mem);
	if (!pin)
		return err;
	if (err) {
		uv_unpin(fs, pin, pinned);
		return err;
	}
	uv_unpin(fs, obj->pin, obj->pinned);
	obj->pin = pin;
	obj->pinned = pinned;
	return 0;
}

int uv_rereg_mr(struct uv_cmd *cmd)
{
	struct ib_uverbs_rereg_mr_resp resp = { 0 };
	struct uobj *obj, *pd = NULL;
	struct ib_uverbs_rereg_mr req;
	struct ibfs_mr_attr attr;
	int err;

	uv_request(cmd, &req, sizeof(req));
	if (!req.flags)
		return -EINVAL;
	obj = uobj_get(cmd->uf, req.mr_handle, UOBJ_MR);
	if (!obj)
		return -EINVAL;
	if (req.flags & IBV_REREG_MR_CHANGE_PD) {
		pd = uobj_get(cmd->uf, req.pd_handle, UOBJ_PD);
		if (!pd)
			return -EINVAL;
	}
	err = rereg(cmd, &req, obj, pd ? pd->pd : NULL);
	if (err)
		return err;
	uv_verbs(cmd->uf)->query_mr(obj->mr, &attr);
	resp.lkey = attr.lkey;
	resp.rkey = attr.rkey;
	uv_respond(cmd, &resp, sizeof(resp));
	return 0;
}

int uv_dereg_mr(struct uv_cmd *cmd)
{
	return destroy(cmd, UOBJ_MR);
}

/* --- memory windows --- */

int uv_alloc_mw(struct uv_cmd *cmd)
{
	const struct verbs_ops *verbs = uv_verbs(cmd->uf);
	struct ib_uverbs_alloc_mw_resp resp;
	struct ib_uverbs_alloc_mw req;
	struct ibfs_mw_attr attr;
	struct uobj *pd, *obj;
	int err;

	uv_request(cmd, &req, sizeof(req));
	pd = uobj_get(cmd->uf, req.pd_handle, UOBJ_PD);
	if (!pd || (req.mw_type != IBV_MW_TYPE_1 && req.mw_type != IBV_MW_TYPE_2))
		return -EINVAL;
	obj = uobj_new(cmd->uf, UOBJ_MW);
	if (!obj)
		return -ENOMEM;
	err = verbs->alloc_mw(pd->pd, req.mw_type, &obj->mw);
	if (!err) {
		verbs->query_mw(obj->mw, &attr);
		resp = (struct ib_uverbs_alloc_mw_resp){ obj->handle, attr.rkey };
		uv_respond(cmd, &resp, sizeof(resp));
	}
	return uv_made(cmd, obj, err);
}

int uv_dealloc_mw(struct uv_cmd *cmd)
{
	return destroy(cmd, UOBJ_MW);
}

/* --- address handles --- */

void uv_ah_attr(const struct ib_uverbs_ah_attr *from, struct ibv_ah_attr *to)
{
	*to = (struct ibv_ah_attr){
		.dlid = from->dlid, .sl = from->sl, .src_path_bits = from->src_path_bits,
		.static_rate = from->static_rate, .is_global = from->is_global,
		.port_num = from->port_num,
		.grh = {
			.flow_label = from->grh.flow_label, .sgid_index = from->grh.sgid_index,
			.hop_limit = from->grh.hop_limit, .traffic_class = from->grh.traffic_class,
		},
	};
	memcpy(&to->grh.dgid, from->grh.dgid, sizeof(to->grh.dgid));
}

int uv_create_ah(struct uv_cmd *cmd)
{
	const struct verbs_ops *verbs = uv_verbs(cmd->uf);
	struct rxe_create_ah_resp driver = { 0 };
	struct ib_uverbs_create_ah_resp resp;
	struct ib_uverbs_create_ah req;
	struct ibv_ah_attr attr;
	struct uobj *pd, *obj;
	int err;

	uv_request(cmd, &req, sizeof(req));
	pd = uobj_get(cmd->uf, req.pd_handle, UOBJ_PD);
	if (!pd)
		return -EINVAL;
	obj = uobj_new(cmd->uf, UOBJ_AH);
	if (!obj)
		return -ENOMEM;
	uv_ah_attr(&req.attr, &attr);
	obj->user_handle = req.user_handle;
	err = verbs->create_ah(pd->pd, &attr, &obj->ah);
	if (!err) {
		verbs->query_ah(obj->ah, &attr, &driver.ah_num);
		resp.ah_handle = obj->handle;
		uv_respond(cmd, &resp, sizeof(resp));
		uv_respond_driver(cmd, &driver, sizeof(driver));
	}
	return uv_made(cmd, obj, err);
}

int uv_destroy_ah(struct uv_cmd *cmd)
{
	return destroy(cmd, UOBJ_AH);
}

/* --- XRC domains --- */

/* Helper: which inode the descriptor is. */
void uv_prep_open_xrcd(struct uv_cmd *cmd)
{
	struct ib_uverbs_open_xrcd req;

	uv_request(cmd, &req, sizeof(req));
	cmd->err = 0;
	if (req.fd == UINT32_MAX)
		return;
	if (req.fd > INT_MAX || client_fd_stat(cmd->client, (int)req.fd, &cmd->fd_stat))
		cmd->err = -EBADF;
}

static struct uv_xrcd *xrcd_find(struct fs *fs, const struct ibfs_device *dev, const struct stat *st)
{
	struct uv_xrcd *xrcd;

	DL_FOREACH(fs->uv_xrcds, xrcd)
		if (xrcd->dev == dev && xrcd->st_ino && xrcd->st_ino == st->st_ino &&
		    xrcd->st_dev == st->st_dev)
			return xrcd;
	return NULL;
}

void uv_xrcd_put(struct fs *fs, struct uv_xrcd *xrcd)
{
	if (--xrcd->refs)
		return;
	DL_DELETE(fs->uv_xrcds, xrcd);
	free(xrcd);
}

static int xrcd_new(struct uv_cmd *cmd, struct uv_xrcd **out)
{
	struct fs *fs = cmd->req->ibfs->fs;
	struct uv_xrcd *xrcd = calloc(1, sizeof(*xrcd));
	int err;

	if (!xrcd)
		return -ENOMEM;
	err = uv_verbs(cmd->uf)->alloc_xrcd(cmd->uf->dev, &xrcd->xrcd);
	if (err) {
		free(xrcd);
		return err;
	}
	xrcd->dev = cmd->uf->dev;
	xrcd->st_dev = cmd->fd_stat.st_dev;
	xrcd->st_ino = cmd->fd_stat.st_ino;
	DL_APPEND(fs->uv_xrcds, xrcd);
	*out = xrcd;
	return 0;
}

/* Shared by inode: the kernel's ib_uverbs_open_xrcd(). */
static int xrcd_get(struct uv_cmd *cmd, const struct ib_uverbs_open_xrcd *req, struct uv_xrcd **out)
{
	bool by_inode = req->fd != UINT32_MAX;
	int err = 0;

	*out = NULL;
	if (by_inode)
		*out = xrcd_find(cmd->req->ibfs->fs, cmd->uf->dev, &cmd->fd_stat);
	if (by_inode && !*out && !(req->oflags & O_CREAT))
		return -EAGAIN;
	if (*out && req->oflags & O_EXCL)
		return -EINVAL;
	if (!*out)
		err = xrcd_new(cmd, out);
	if (!err)
		(*out)->refs++;
	return err;
}

int uv_open_xrcd(struct uv_cmd *cmd)
{
	struct ib_uverbs_open_xrcd_resp resp;
	struct ib_uverbs_open_xrcd req;
	struct uobj *obj;

	uv_request(cmd, &req, sizeof(req));
	if (req.oflags & ~(uint32_t)(O_CREAT | O_EXCL))
		return -EINVAL;
	obj = uobj_new(cmd->uf, UOBJ_XRCD);
	if (!obj)
		return -ENOMEM;
	resp.xrcd_handle = obj->handle;
	uv_respond(cmd, &resp, sizeof(resp));
	return uv_made(cmd, obj, xrcd_get(cmd, &req, &obj->xrcd));
}

int uv_close_xrcd(struct uv_cmd *cmd)
{
	return destroy(cmd, UOBJ_XRCD);
}
