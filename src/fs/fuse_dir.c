/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FUSE: names, directories and attributes, and what of them the kernel may keep.
 * A directory that asks others for what is in it (FS_ASKS) is looked at again
 * when they have answered.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/fuse_front.h"

enum {
	ENTRY_SECONDS = 3600,	/* for which the kernel keeps what never changes */
	ATTR_SECONDS = 1,	/* another front end may change a mode */
};

static struct fs_cred caller(fuse_req_t fuse)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(fuse);

	return (struct fs_cred){ .uid = ctx->uid, .gid = ctx->gid };
}

static void reply_entry(fuse_req_t fuse, struct path path)
{
	struct fuse_front *front = fuse_req_userdata(fuse);
	unsigned int flags = fs_flags(path);
	struct fuse_entry_param entry = { 0 };
	int ret;

	ret = fs_getattr(front->ibfs, path, &entry.attr);
	if (ret) {
		fuse_reply_err(fuse, -ret);
		return;
	}
	if (flags & FS_FRESH)
		path.idx = ++front->fresh & 0xfffffff;
	if (flags & FS_CACHE) {
		entry.entry_timeout = ENTRY_SECONDS;
		entry.attr_timeout = ATTR_SECONDS;
	}
	entry.ino = path_pack(path);
	fuse_reply_entry(fuse, &entry);
}

static void lookup(fuse_req_t fuse, struct path dir, const char *name)
{
	struct fuse_front *front = fuse_req_userdata(fuse);
	struct path child;
	int ret;

	ret = fs_lookup(front->ibfs, dir, name, &child);
	if (ret)
		fuse_reply_err(fuse, -ret);
	else
		reply_entry(fuse, child);
}

/* One entry into the answer to readdir; false: it doesn't fit. */
static bool add_entry(fuse_req_t fuse, char *data, size_t size, size_t *used, const char *name,
		      struct path path, uint64_t next)
{
	struct stat st = { .st_ino = path_pack(path), .st_mode = fs_type(path) };
	size_t len;

	len = fuse_add_direntry(fuse, data + *used, size - *used, name, &st, next);
	if (len > size - *used)
		return false;
	*used += len;
	return true;
}

/* Offsets: 1 behind ".", 2 behind "..", then fs' cookies and 2. */
static void readdir(fuse_req_t fuse, struct path dir, char *data, size_t size, off_t off)
{
	struct fuse_front *front = fuse_req_userdata(fuse);
	struct path child = dir;
	uint64_t cookie = off > 2 ? off - 2 : 0;
	char name[256];
	size_t used = 0;
	int ret = 1;

	if (off == 0 && !add_entry(fuse, data, size, &used, ".", dir, 1))
		ret = 0;
	if (ret && off <= 1 && fs_lookup(front->ibfs, dir, "..", &child) == 0 &&
	    !add_entry(fuse, data, size, &used, "..", child, 2))
		ret = 0;
	while (ret > 0) {
		ret = fs_readdir(front->ibfs, dir, &cookie, name, &child);
		if (ret > 0 && !add_entry(fuse, data, size, &used, name, child, cookie + 2))
			break;
	}
	if (ret < 0 && !used)
		fuse_reply_err(fuse, -ret);
	else
		fuse_reply_buf(fuse, data, used);
}

/*
 * What is in the directory was asked for, or has to be now. Another request may
 * be at work, in the middle of which the answer came: front->data is that one's.
 */
static void look_again(struct front_req *req, ssize_t result, const void *none, size_t len)
{
	char *data = NULL;
	ssize_t ret = result ? result : fs_ready(&req->req, req->dir);

	(void)none;
	(void)len;
	if (ret == FS_PENDING) {
		front_req_wait(req);
		return;
	}
	if (!ret && !req->name) {
		data = malloc(req->size);
		ret = data ? 0 : -ENOMEM;
	}
	if (ret)
		fuse_reply_err(req->fuse, -ret);
	else if (data)
		readdir(req->fuse, req->dir, data, req->size, req->off);
	else
		lookup(req->fuse, req->dir, req->name);
	free(data);
	front_req_put(req);
}

void front_lookup(fuse_req_t fuse, fuse_ino_t parent, const char *name)
{
	struct path dir = path_unpack(parent);
	struct front_req *req;

	if (!(fs_flags(dir) & FS_ASKS)) {
		lookup(fuse, dir, name);
		return;
	}
	req = front_req_start(fuse, NULL, look_again);
	if (!req)
		return;
	req->dir = dir;
	req->name = strdup(name);
	look_again(req, req->name ? 0 : -ENOMEM, NULL, 0);
}

void front_readdir(fuse_req_t fuse, fuse_ino_t ino, size_t size, off_t off,
		   struct fuse_file_info *fi)
{
	struct fuse_front *front = fuse_req_userdata(fuse);
	struct path dir = path_unpack(ino);
	struct front_req *req;

	(void)fi;
	if (size > FS_READDIR_SIZE)
		size = FS_READDIR_SIZE;
	if (!(fs_flags(dir) & FS_ASKS)) {
		readdir(fuse, dir, front->data, size, off);
		return;
	}
	req = front_req_start(fuse, NULL, look_again);
	if (!req)
		return;
	req->dir = dir;
	req->size = size;
	req->off = off;
	look_again(req, 0, NULL, 0);
}

void front_mkdir(fuse_req_t fuse, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct fuse_front *front = fuse_req_userdata(fuse);
	struct fs_cred cred = caller(fuse);
	struct path child;
	int ret;

	ret = fs_mkdir(front->ibfs, path_unpack(parent), name, mode, &cred, &child);
	if (ret)
		fuse_reply_err(fuse, -ret);
	else
		reply_entry(fuse, child);
}

void front_rmdir(fuse_req_t fuse, fuse_ino_t parent, const char *name)
{
	struct fuse_front *front = fuse_req_userdata(fuse);
	struct fs_cred cred = caller(fuse);

	fuse_reply_err(fuse, -fs_rmdir(front->ibfs, path_unpack(parent), name, &cred));
}

static void reply_attr(fuse_req_t fuse, struct path path)
{
	struct fuse_front *front = fuse_req_userdata(fuse);
	struct stat st;
	int ret;

	ret = fs_getattr(front->ibfs, path, &st);
	if (ret)
		fuse_reply_err(fuse, -ret);
	else
		fuse_reply_attr(fuse, &st, fs_flags(path) & FS_CACHE ? ATTR_SECONDS : 0);
}

void front_getattr(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)fi;
	reply_attr(fuse, path_unpack(ino));
}

void front_setattr(fuse_req_t fuse, fuse_ino_t ino, struct stat *st, int to_set,
		   struct fuse_file_info *fi)
{
	struct fuse_front *front = fuse_req_userdata(fuse);
	struct fs_cred cred = caller(fuse);
	unsigned int mask = 0;
	int ret;

	(void)fi;
	if (to_set & FUSE_SET_ATTR_MODE)
		mask |= FS_SET_MODE;
	if (to_set & FUSE_SET_ATTR_UID)
		mask |= FS_SET_UID;
	if (to_set & FUSE_SET_ATTR_GID)
		mask |= FS_SET_GID;
	if (to_set & FUSE_SET_ATTR_SIZE)
		mask |= FS_SET_SIZE;
	if (mask & FS_SET_GID && !fs_privileged(&cred))
		cred.groups = fs_groups_of(fuse_req_ctx(fuse)->pid, cred.uid, cred.gid);
	ret = mask ? fs_setattr(front->ibfs, path_unpack(ino), &cred, st, mask) : 0;
	fs_groups_put(cred.groups);
	if (ret)
		fuse_reply_err(fuse, -ret);
	else
		reply_attr(fuse, path_unpack(ino));
}
