/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 9P: directories. 9P2000.L reads them from a cookie on, 9P2000 as a file of
 * stats, from where the last read ended or from the start. Making and removing
 * what is in them takes write permission on them, as the kernel has it for FUSE.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fs/9p_server.h"

enum { DIRENT = P9_QID_SIZE + 8 + 1 + 2, AT_REMOVE_DIR = 0x200 };

/* One entry into the answer; false: it doesn't fit. */
static bool add_entry(uint8_t *buf, size_t size, size_t *used, const char *name, struct path path,
		      uint64_t next)
{
	size_t len = strlen(name);
	struct p9_qid qid = p9_qid(path);
	uint8_t *at = buf + *used;

	if (size - *used < DIRENT + len)
		return false;
	p9_put_qid(at, &qid);
	p9_put_u64(at + P9_QID_SIZE, next);
	at[P9_QID_SIZE + 8] = qid.type & P9_QTDIR ? DT_DIR : DT_REG;
	p9_put_u16(at + P9_QID_SIZE + 9, len);
	*used = (uint8_t *)mempcpy(at + DIRENT, name, len) - buf;
	return true;
}

/*
 * Offsets as FUSE has them: 1 behind ".", 2 behind "..", then fs' cookies and 2.
 * 1: there is more, 0: there was no more.
 */
static int read_entries(struct ibfs *ibfs, struct path dir, uint64_t offset, uint8_t *buf,
			size_t size, size_t *used)
{
	uint64_t cookie = offset > 2 ? offset - 2 : 0;
	struct path child = dir;
	char name[256];
	int ret = 1;

	*used = 0;
	if (offset == 0 && !add_entry(buf, size, used, ".", dir, 1))
		return 1;
	if (offset <= 1 && fs_lookup(ibfs, dir, "..", &child) == 0 &&
	    !add_entry(buf, size, used, "..", child, 2))
		return 1;
	while (ret > 0) {
		ret = fs_readdir(ibfs, dir, &cookie, name, &child);
		if (ret > 0 && !add_entry(buf, size, used, name, child, cookie + 2))
			return 1;
	}
	return ret;
}

ssize_t p9_readdir(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	struct p9_fid *fid = req->fid = p9_fid_get(req->conn, in->fid);
	uint32_t size = req->conn->msize - P9_IOHDRSZ;
	uint8_t *scratch = req->conn->server->scratch;
	size_t used;
	int ret;

	(void)out;
	if (!fid || !fid->open)
		return -EBADF;
	if (fid->file)
		return -ENOTDIR;
	if (size > in->count)
		size = in->count;
	if (size > FS_READDIR_SIZE)
		size = FS_READDIR_SIZE;
	ret = p9_ready(req, fid->user, fid->path);
	if (ret)
		return ret;
	ret = read_entries(req->req.ibfs, fid->path, in->offset, scratch, size, &used);
	if (ret && !used)
		return ret < 0 ? ret : -EINVAL;	/* as getdents(2) with too little room */
	p9_answer_data(req->conn, P9_RREADDIR, req->tag, scratch, used);
	return P9_ANSWERED;
}

/* One more entry of a directory as a stat; 0: none; -EINVAL: it doesn't fit. */
static ssize_t next_stat(struct ibfs *ibfs, struct p9_fid *fid, struct p9_owner *owner, void *buf,
			 size_t size)
{
	uint64_t cookie = fid->dir_cookie;
	struct path child;
	struct stat st;
	char name[256];
	size_t len;
	int ret;

	do {
		ret = fs_readdir(ibfs, fid->path, &cookie, name, &child);
		if (ret <= 0)
			return ret;
		/* What has gone meanwhile is left out. */
	} while (fs_getattr(ibfs, child, &st));
	len = p9_put_stat(owner, &st, name, buf, size);
	if (!len)
		return -EINVAL;
	fid->dir_cookie = cookie;
	return len;
}

ssize_t p9_read_stats(struct p9_req *req, uint64_t offset, void *buf, size_t size)
{
	struct p9_owner owner = { .known = false };
	struct p9_fid *fid = req->fid;
	size_t used = 0;
	ssize_t len;

	if (size > FS_READDIR_SIZE)
		size = FS_READDIR_SIZE;
	if (!offset)
		fid->dir_offset = fid->dir_cookie = 0;
	if (offset != fid->dir_offset)
		return ibfs_fail(req->req.ibfs, EINVAL, "9p: %s/: a directory is read in order",
				 fid->name);
	do {
		len = next_stat(req->req.ibfs, fid, &owner, (uint8_t *)buf + used,
				size - used);
		if (len < 0 && !used)
			return len;
		used += len > 0 ? len : 0;
	} while (len > 0);
	fid->dir_offset += used;
	return used;
}

/* May the fid's user change what is in the directory? */
static int check_dir(const struct p9_req *req, const struct p9_fid *fid, struct path dir)
{
	if (!S_ISDIR(fs_type(dir)))
		return -ENOTDIR;
	if (req->conn->server->conf->read_only)
		return -EROFS;
	return fs_access(req->req.ibfs, dir, &fid->user->cred, W_OK | X_OK);
}

ssize_t p9_mkdir_at(struct p9_req *req, struct p9_str str, mode_t mode, struct path *child)
{
	struct p9_fid *fid = req->fid;
	struct path old;
	char name[256];
	int ret;

	ret = p9_component(str, name);
	/* Who may not search it is not told what is there. */
	if (!ret)
		ret = fs_access(req->req.ibfs, fid->path, &fid->user->cred, X_OK);
	if (!ret && (!strcmp(name, ".") || !strcmp(name, "..") ||
		     !fs_lookup(req->req.ibfs, fid->path, name, &old)))
		ret = -EEXIST;
	if (!ret)
		ret = check_dir(req, fid, fid->path);
	if (ret)
		return ret;
	return fs_mkdir(req->req.ibfs, fid->path, name, mode, &fid->user->cred, child);
}

ssize_t p9_mkdir(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	struct path child;
	int ret;

	req->fid = p9_fid_get(req->conn, in->fid);
	if (!req->fid)
		return -EBADF;
	ret = p9_mkdir_at(req, in->name, in->perm & 07777, &child);
	if (!ret)
		out->qid = p9_qid(child);
	return ret;
}

/* Directories can be removed, files can't. */
static int remove_at(const struct p9_req *req, const struct p9_fid *fid, struct path dir,
		     const char *name)
{
	int ret = check_dir(req, fid, dir);

	return ret ? ret : fs_rmdir(req->req.ibfs, dir, name, &fid->user->cred);
}

ssize_t p9_unlinkat(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	struct p9_fid *fid = p9_fid_get(req->conn, in->fid);
	struct path child;
	char name[256];
	int ret;

	(void)out;
	if (!fid)
		return -EBADF;
	ret = p9_component(in->name, name);
	if (!ret && (!strcmp(name, ".") || !strcmp(name, "..")))
		ret = -EINVAL;
	if (!ret)
		ret = check_dir(req, fid, fid->path);
	if (!ret)
		ret = fs_lookup(req->req.ibfs, fid->path, name, &child);
	if (ret)
		return ret;
	if (!!S_ISDIR(fs_type(child)) != !!(in->flags & AT_REMOVE_DIR))
		return S_ISDIR(fs_type(child)) ? -EISDIR : -ENOTDIR;
	return S_ISDIR(fs_type(child)) ? remove_at(req, fid, fid->path, name) : -EPERM;
}

/* The fid goes in any case (remove(5)). */
ssize_t p9_remove(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	struct p9_fid *fid = p9_fid_get(req->conn, in->fid);
	struct path dir;
	int ret = -EPERM;

	(void)out;
	if (!fid)
		return -EBADF;
	if (S_ISDIR(fs_type(fid->path)) && path_pack(fid->path) != path_pack(fid->user->root))
		ret = fs_lookup(req->req.ibfs, fid->path, "..", &dir);
	if (!ret)
		ret = remove_at(req, fid, dir, p9_fid_name(fid));
	p9_fid_clunk(req->conn, fid);
	return ret;
}
