/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 9P: opening files and directories, reading and writing them. As on Plan 9 a
 * fid that opened clone is from then on one of the new object's ctl. What needs
 * the caller's process (umad, uverbs, rings) can't be opened.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/9p_server.h"

/* 9P2000's open modes, open(5). */
enum { OREAD, OWRITE, ORDWR, OEXEC, OMODE = 3, OTRUNC = 0x10, ORCLOSE = 0x40 };
#define DMDIR 0x80000000U

/* 9P2000.L's flags are Linux's of most machines, by number. */
enum {
	L_CREATE = 0100, L_EXCL = 0200, L_TRUNC = 01000, L_APPEND = 02000, L_NONBLOCK = 04000,
	L_DIRECTORY = 0200000,
};

static int flags_of_dotl(uint32_t flags)
{
	static const struct { uint32_t theirs; int ours; } map[] = {
		{ L_TRUNC, O_TRUNC }, { L_APPEND, O_APPEND }, { L_NONBLOCK, O_NONBLOCK },
		{ L_DIRECTORY, O_DIRECTORY },
	};
	int ours = flags & O_ACCMODE;
	unsigned int i;

	for (i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (flags & map[i].theirs)
			ours |= map[i].ours;
	return ours;
}

/* Permissions that an open of a file or directory takes; 0 or -errno. */
static int check_open(const struct p9_req *req, const struct p9_fid *fid, int flags)
{
	static const int masks[] = { R_OK, W_OK, R_OK | W_OK };
	bool changes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
	struct ibfs *ibfs = req->req.ibfs;
	int mask;

	if ((flags & O_ACCMODE) == O_ACCMODE)
		return -EINVAL;
	if (S_ISDIR(fs_type(fid->path)))
		return changes ? -EISDIR : fs_access(ibfs, fid->path, &fid->user->cred, R_OK);
	if (flags & O_DIRECTORY)
		return -ENOTDIR;
	if (fs_flags(fid->path) & FS_PROCESS)
		return ibfs_fail(ibfs, EOPNOTSUPP, "9p: %s: over 9P there is no process to serve",
				 fid->name);
	if (req->conn->server->conf->read_only && (changes || fs_flags(fid->path) & FS_ACTS))
		return -EROFS;
	mask = masks[flags & O_ACCMODE] | (flags & O_TRUNC ? W_OK : 0);
	return fs_access(ibfs, fid->path, &fid->user->cred, mask);
}

ssize_t p9_opened(struct p9_req *req, ssize_t result, struct p9_msg *out)
{
	struct p9_fid *fid = req->fid;

	if (result < 0) {
		if (fid->file)
			fs_release(fid->file);
		fid->file = NULL;
		return result;
	}
	fid->open = true;
	if (fid->file)
		fid->path = fid->file->path;	/* of clone it is the new ctl's */
	out->qid = p9_qid(fid->path);
	return 0;
}

static ssize_t open_fid(struct p9_req *req, struct p9_fid *fid, int flags, struct p9_msg *out)
{
	ssize_t ret;

	if (fid->open || fid->file || fid->refs > 1)
		return ibfs_fail(req->req.ibfs, EBUSY, "9p: fid %u is open", fid->num);
	ret = check_open(req, fid, flags);
	if (!ret)
		ret = p9_may_wait(req, fid->user);
	if (ret)
		return ret;
	fid->access = flags & O_ACCMODE;
	req->fid = fid;
	p9_act_as(req, fid->user);
	if (S_ISDIR(fs_type(fid->path)))
		return p9_opened(req, 0, out);
	ret = fs_open(&req->req, fid->path, flags & ~O_DIRECTORY, &fid->file);
	return ret == FS_PENDING ? ret : p9_opened(req, ret, out);
}

ssize_t p9_lopen(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	struct p9_fid *fid = p9_fid_get(req->conn, in->fid);

	return fid ? open_fid(req, fid, flags_of_dotl(in->flags), out) : -EBADF;
}

static int flags_of_2000(uint8_t mode, int *flags)
{
	static const int access[] = { O_RDONLY, O_WRONLY, O_RDWR, O_RDONLY };

	if (mode & ~(OMODE | OTRUNC | ORCLOSE))
		return -EINVAL;
	*flags = access[mode & OMODE] | (mode & OTRUNC ? O_TRUNC : 0);
	/* Files aren't removed; of a directory nobody asks that. */
	return mode & ORCLOSE ? -EPERM : 0;
}

ssize_t p9_open(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	struct p9_fid *fid = p9_fid_get(req->conn, in->fid);
	int flags, ret;

	if (!fid)
		return -EBADF;
	ret = flags_of_2000(in->mode, &flags);
	if (!ret && (in->mode & OMODE) == OEXEC && !S_ISDIR(fs_type(fid->path)))
		ret = fs_access(req->req.ibfs, fid->path, &fid->user->cred, X_OK);
	return ret ? ret : open_fid(req, fid, flags, out);
}

/* The fid of a directory becomes its child's, whose name is then in *old's place. */
static int descend(struct p9_fid *fid, const char *name, struct path child, char **old)
{
	char *longer;

	if (asprintf(&longer, "%s%s%s", fid->name, fid->name[0] ? "/" : "", name) < 0)
		return -ENOMEM;
	*old = fid->name;
	fid->name = longer;
	fid->path = child;
	return 0;
}

/* Open what the fid descended to; if that fails it is the directory's again. */
static ssize_t open_child(struct p9_req *req, struct p9_fid *fid, const char *name,
			  struct path child, int flags, struct p9_msg *out)
{
	struct path dir = fid->path;
	ssize_t ret;
	char *old;

	ret = descend(fid, name, child, &old);
	if (ret)
		return ret;
	ret = open_fid(req, fid, flags, out);
	if (ret < 0 && ret != FS_PENDING) {
		free(fid->name);
		fid->name = old;
		fid->path = dir;
	} else {
		free(old);
	}
	return ret;
}

/* What a create of a file finds: one that is there; new ones can't be made. */
static ssize_t create_file(struct p9_req *req, struct p9_fid *fid, const char *name, int flags,
			   bool exclusive, struct p9_msg *out)
{
	struct path dir = fid->path, child;
	struct ibfs *ibfs = req->req.ibfs;
	ssize_t ret;

	ret = fs_access(ibfs, dir, &fid->user->cred, X_OK);
	if (!ret)
		ret = p9_ready(req, fid->user, dir);
	if (!ret)
		ret = fs_lookup(ibfs, dir, name, &child);
	if (ret == -ENOENT) {
		ret = fs_access(ibfs, dir, &fid->user->cred, W_OK);
		return ret ? ret : -EPERM;
	}
	if (!ret && exclusive)
		ret = -EEXIST;
	return ret ? ret : open_child(req, fid, name, child, flags, out);
}

/* The directory in which something is made: a fid that isn't open, and the name. */
static int create_in(struct p9_req *req, const struct p9_msg *in, struct p9_fid **fid,
		     char name[256])
{
	int ret = p9_component(in->name, name);

	*fid = p9_fid_get(req->conn, in->fid);
	if (!*fid)
		return -EBADF;
	if ((*fid)->open || (*fid)->refs > 1)
		return -EBUSY;
	if (ret)
		return ret;
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return -EEXIST;
	return S_ISDIR(fs_type((*fid)->path)) ? 0 : -ENOTDIR;
}

ssize_t p9_lcreate(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	struct p9_fid *fid;
	char name[256];
	int ret = create_in(req, in, &fid, name);

	return ret ? ret : create_file(req, fid, name, flags_of_dotl(in->flags),
				       in->flags & L_EXCL, out);
}

ssize_t p9_create(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	struct p9_fid *fid;
	struct path child;
	char name[256];
	int flags = 0, ret;

	ret = create_in(req, in, &fid, name);
	if (!ret)
		ret = flags_of_2000(in->mode, &flags);
	if (ret)
		return ret;
	if (!(in->perm & DMDIR))
		return create_file(req, fid, name, flags | O_TRUNC, false, out);
	if (flags != O_RDONLY)
		return -EISDIR;
	req->fid = fid;
	ret = p9_mkdir_at(req, in->name, in->perm & 0777, &child);
	return ret ? ret : open_child(req, fid, name, child, flags, out);
}

/*
 * Linux's client doesn't end a read() at a short answer: it asks for the rest,
 * until there is no more (p9_client_read()). Of a queue that would take the next
 * line into the same read(), or wait for it. So what reads on exactly where a
 * short answer ended, for what was missing there, is told that this is all.
 * A read() of more than fits in a message is cut to that again: then the rest
 * may be more, but not as much as the first message asked for.
 */
static bool continues(struct p9_fid *fid, uint64_t offset, uint32_t count, uint32_t most)
{
	bool rest = fid->read_left && offset == fid->read_end;

	if (fid->read_count == most)
		rest = rest && count >= fid->read_left && count < most;
	else
		rest = rest && count == fid->read_left;
	fid->read_left = 0;
	return rest;
}

static void remember_read(struct p9_fid *fid, uint64_t offset, uint32_t count)
{
	fid->read_end = offset;
	fid->read_count = count;
	fid->read_left = 0;
}

void p9_read_done(struct p9_req *req, size_t len)
{
	struct p9_fid *fid = req->fid;

	if (!len || len >= fid->read_count)
		return;
	fid->read_end += len;
	fid->read_left = fid->read_count - len;
}

/*
 * Reads into the end of what goes out, where answers of other requests may
 * arrive meanwhile: it is taken away as long as the file's function runs.
 */
static ssize_t read_file(struct p9_req *req, uint64_t offset, uint32_t count)
{
	struct p9_conn *conn = req->conn;
	struct p9_buf out = conn->out;
	uint8_t *at = out.data + out.len + P9_DATA_HEADER;
	uint8_t *to = (uintptr_t)at & 7 ? conn->server->scratch : at;
	ssize_t ret;

	p9_conn_take_out(conn);
	ret = fs_read(&req->req, req->fid->file, to, count, offset);
	if (ret >= 0) {
		if (to != at)
			memcpy(at, to, ret);
		p9_put_header(at - P9_DATA_HEADER, P9_DATA_HEADER + ret, P9_RREAD, req->tag);
		p9_put_u32(at - P9_DATA_HEADER + P9_HEADER, ret);
		out.len += P9_DATA_HEADER + ret;
	}
	p9_conn_give_out(conn, out);
	return ret;
}

static ssize_t read_open(struct p9_req *req, const struct p9_msg *in, uint32_t count)
{
	struct p9_fid *fid = req->fid;
	ssize_t ret;

	if (fid->file->hints & (FILE_STREAM | FILE_QUEUE)) {
		if (continues(fid, in->offset, count, req->conn->msize - P9_IOHDRSZ)) {
			p9_answer_data(req->conn, P9_RREAD, req->tag, NULL, 0);
			return P9_ANSWERED;
		}
		remember_read(fid, in->offset, count);
	}
	ret = p9_may_wait(req, fid->user);
	if (ret)
		return ret;
	if (!p9_conn_room(req->conn, P9_DATA_HEADER + count))
		return -ENOMEM;
	ret = read_file(req, in->offset, count);
	if (ret < 0)
		return ret;
	if (fid->file->hints & (FILE_STREAM | FILE_QUEUE))
		p9_read_done(req, ret);
	p9_conn_sent(req->conn, 0);
	return P9_ANSWERED;
}

ssize_t p9_read(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	struct p9_fid *fid = req->fid = p9_fid_get(req->conn, in->fid);
	uint32_t count = req->conn->msize - P9_IOHDRSZ;
	ssize_t ret;

	(void)out;
	if (!fid || !fid->open || fid->access == O_WRONLY)
		return -EBADF;
	if (in->offset > INT64_MAX)
		return -EINVAL;
	if (count > in->count)
		count = in->count;
	p9_act_as(req, fid->user);
	if (fid->file)
		return read_open(req, in, count);
	if (req->conn->dialect == P9_DOTL)
		return -EISDIR;
	ret = p9_ready(req, fid->user, fid->path);
	if (ret)
		return ret;
	ret = p9_read_stats(req, in->offset, req->conn->server->scratch, count);
	if (ret < 0)
		return ret;
	p9_answer_data(req->conn, P9_RREAD, req->tag, req->conn->server->scratch, ret);
	return P9_ANSWERED;
}

ssize_t p9_write(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	struct p9_fid *fid = req->fid = p9_fid_get(req->conn, in->fid);
	const void *data = in->data;
	ssize_t ret;

	if (!fid || !fid->file || !fid->open || fid->access == O_RDONLY)
		return -EBADF;
	if (in->offset > INT64_MAX)
		return -EINVAL;
	ret = p9_may_wait(req, fid->user);
	if (ret)
		return ret;
	/* Its first message is aligned, 9p_server.h; what comes behind may not be. */
	if ((uintptr_t)data & 7)
		data = memcpy(req->conn->server->scratch, data, in->count);
	p9_act_as(req, fid->user);
	ret = fs_write(&req->req, fid->file, data, in->count, in->offset);
	if (ret < 0)
		return ret;
	out->count = ret;
	return 0;
}

/* Nothing is written late. */
ssize_t p9_fsync(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	(void)out;
	return p9_fid_get(req->conn, in->fid) ? 0 : -EBADF;
}
