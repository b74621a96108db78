/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The FUSE front end, on libfuse's low-level API: kernel requests become
 * fs_*() calls, their results replies. A node id is a packed path, so nothing
 * is remembered of a lookup, and nothing forgotten.
 *
 * While clients keep it busy it reads /dev/fuse again without asking the event
 * loop, up to a budget; deferred work runs between two requests. Requests that
 * wait keep their struct front_req; the others use the same one over and over.
 */
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utlist.h>

#include <ibfs/conf.h>
#include <ibfs/fs.h>
#include <ibfs/ibfs.h>

#include "fs/mountwatch.h"
#include "fs/passthrough.h"

enum {
	READ_SIZE = 1 << 20,	/* the most that the kernel asks for in a read */
	BUDGET = 64,		/* requests in one turn of the event loop */
	ENTRY_SECONDS = 3600,	/* for which the kernel keeps what never changes */
	ATTR_SECONDS = 1,	/* another front end may change a mode */
};

/* Flags of an open reply, linux/fuse.h, which libfuse 3.14 has no fields for. */
enum {
	OPEN_DIRECT_IO = 1 << 0,
	OPEN_STREAM = 1 << 4,
	OPEN_PARALLEL_WRITES = 1 << 6,
	OPEN_PASSTHROUGH = 1 << 7,
};

struct open_reply {
	uint64_t fh;
	uint32_t flags;
	int32_t backing_id;
};

enum req_type { REQ_OPEN, REQ_READ, REQ_WRITE, REQ_IOCTL, REQ_LOOKUP, REQ_READDIR };

struct front_req {
	struct fs_req req;
	struct front_req *prev, *next;	/* of those that wait, or of the spare ones */
	struct fuse_front *front;
	fuse_req_t fuse;
	struct front_file *file;
	enum req_type type;
	bool waits;
	/* of a lookup or a readdir in a directory that asks others */
	struct path dir;
	char *name;
	size_t size;
	off_t off;
};

struct front_file {
	struct front_file *prev, *next;
	struct fuse_front *front;
	struct file *file;
	struct fuse_pollhandle *poll;	/* whom to tell of a change; NULL: nobody */
	unsigned int poll_events;	/* that matter to them */
	bool may_sleep;			/* a poll since the last notice was answered: not ready */
	struct front_file *due_prev, *due_next;	/* of those that get a notice later */
	bool due;
	fuse_ino_t ino;
	int32_t backing_id;		/* 0: none */
};

struct fuse_front {
	struct ibfs *ibfs;
	struct fuse_session *se;
	struct fuse_buf buf;
	struct ev_io io;
	struct ev_idle idle;		/* runs while notices are due */
	bool unmounted;			/* by somebody else */
	struct mountwatch mountwatch;
	struct passthrough passthrough;
	struct front_req *waiting, *spare;
	struct front_file *files, *due;
	uint32_t fresh;			/* the last number given to a path that wants one */
	char *data;			/* of an answer: READ_SIZE bytes */
};

static struct front_req *req_get(struct fuse_front *front, fuse_req_t fuse)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(fuse);
	struct front_req *req = front->spare;

	if (req) {
		LL_DELETE(front->spare, req);
	} else {
		req = calloc(1, sizeof(*req));
		if (!req)
			return NULL;
		req->front = front;
		req->req.ibfs = front->ibfs;
	}
	req->fuse = fuse;
	req->waits = false;
	req->req.began = 0;
	req->req.cred.uid = ctx->uid;
	req->req.cred.gid = ctx->gid;
	req->req.cred.pid = ctx->pid;
	return req;
}

static void req_put(struct front_req *req)
{
	if (req->waits)
		DL_DELETE(req->front->waiting, req);
	free(req->name);
	req->name = NULL;
	LL_PREPEND(req->front->spare, req);
}

static void file_free(struct front_file *file)
{
	struct fuse_front *front = file->front;

	DL_DELETE(front->files, file);
	if (file->due)
		DL_DELETE2(front->due, file, due_prev, due_next);
	if (file->poll)
		fuse_pollhandle_destroy(file->poll);
	if (file->file)
		fs_release(file->file);
	if (file->backing_id)
		passthrough_put(&front->passthrough, file->ino);
	free(file);
}

/* The open worked: tell the kernel how its file behaves. 0, or -errno of the reply. */
static int reply_open(struct front_req *req)
{
	struct front_file *file = req->file;
	struct open_reply out = {
		.fh = (uintptr_t)file,
		.flags = OPEN_DIRECT_IO | OPEN_PARALLEL_WRITES,
	};
	int ret;

	if (file->file->backing >= 0) {
		ret = passthrough_get(&file->front->passthrough, file->ino, file->file->backing);
		if (ret > 0) {
			file->backing_id = out.backing_id = ret;
			out.flags |= OPEN_PASSTHROUGH;
		}
	}
	if (file->file->hints & FILE_STREAM)
		out.flags |= OPEN_STREAM;
	return fuse_reply_buf(req->fuse, (const char *)&out, sizeof(out));
}

/* The caller that gave up meanwhile never sees the open: release it here. */
static void finish_open(struct front_req *req, ssize_t result)
{
	if (result < 0)
		fuse_reply_err(req->fuse, -result);
	else
		result = reply_open(req);
	if (result < 0)
		file_free(req->file);
}

static void look_again(struct front_req *req, ssize_t result);

static void finish(struct front_req *req, ssize_t result, const void *data, size_t len)
{
	switch (req->type) {
	case REQ_OPEN:
		finish_open(req, result);
		break;
	case REQ_READ:
		if (result < 0)
			fuse_reply_err(req->fuse, -result);
		else
			fuse_reply_buf(req->fuse, data, len);
		break;
	case REQ_WRITE:
		if (result < 0)
			fuse_reply_err(req->fuse, -result);
		else
			fuse_reply_write(req->fuse, result);
		break;
	case REQ_IOCTL:
		/* The result of an ioctl may be an error and carry data. */
		fuse_reply_ioctl(req->fuse, result, data, len);
		break;
	case REQ_LOOKUP:
	case REQ_READDIR:
		look_again(req, result);
		return;
	}
	req_put(req);
}

static void front_reply(struct fs_req *fs_req, ssize_t result, const void *data, size_t len)
{
	finish((struct front_req *)fs_req, result, data, len);
}

static void interrupted(fuse_req_t fuse, void *priv)
{
	struct front_req *req = priv;

	(void)fuse;
	fs_cancel(&req->req);
}

/* Keep a request that fs left pending, until front_reply(). */
static void wait_for_reply(struct front_req *req)
{
	if (!req->waits)
		DL_APPEND(req->front->waiting, req);
	req->waits = true;
	/* libfuse calls the function at once, with a lock held, if it is too late. */
	if (fuse_req_interrupted(req->fuse))
		fs_cancel(&req->req);
	else
		fuse_req_interrupt_func(req->fuse, interrupted, req);
}

static void done(struct front_req *req, ssize_t result, const void *data, size_t len)
{
	if (result == FS_PENDING)
		wait_for_reply(req);
	else
		finish(req, result, data, len);
}

static struct front_file *file_of(const struct fuse_file_info *fi)
{
	return (struct front_file *)(uintptr_t)fi->fh;
}

static struct front_req *start(fuse_req_t fuse, struct front_file *file, enum req_type type)
{
	struct front_req *req = req_get(fuse_req_userdata(fuse), fuse);

	if (!req) {
		fuse_reply_err(fuse, ENOMEM);
		return NULL;
	}
	req->type = type;
	req->req.reply = front_reply;
	req->file = file;
	return req;
}

/* Whoever still waits after this asks again, with a handle. */
static void notify(struct front_file *file)
{
	fuse_lowlevel_notify_poll(file->poll);
	fuse_pollhandle_destroy(file->poll);
	file->poll = NULL;
	file->may_sleep = false;
}

/*
 * Somebody whom a poll told "not ready" may sleep in it: tell now. Otherwise
 * only an edge-triggered epoll can wait, which needs a notice without having
 * asked again; most clients are about to read, so that it can wait until there
 * is nothing else to do and is then often not needed.
 */
static void file_wake(struct file *fs_file)
{
	struct front_file *file = fs_file->front;

	if (!file->poll)
		return;
	if (file->may_sleep) {
		notify(file);
	} else if (!file->due) {
		file->due = true;
		ev_idle_start(file->front->ibfs->loop, &file->front->idle);
		DL_APPEND2(file->front->due, file, due_prev, due_next);
	}
}

/* The notices that were put off, where there is still something to tell. */
static void notify_due(struct ev_loop *loop, struct ev_idle *w, int revents)
{
	struct fuse_front *front = w->data;
	struct front_file *file;

	(void)revents;
	ev_idle_stop(loop, w);
	while ((file = front->due) != NULL) {
		DL_DELETE2(front->due, file, due_prev, due_next);
		file->due = false;
		if (file->poll && (fs_poll(file->file) & file->poll_events))
			notify(file);
	}
}

static struct front_file *file_new(struct fuse_front *front, fuse_ino_t ino)
{
	struct front_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->front = front;
	file->ino = ino;
	DL_APPEND(front->files, file);
	return file;
}

static void op_open(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct front_req *req = start(fuse, NULL, REQ_OPEN);
	struct front_file *file;
	ssize_t ret;

	if (!req)
		return;
	file = req->file = file_new(req->front, ino);
	if (!file) {
		fuse_reply_err(fuse, ENOMEM);
		req_put(req);
		return;
	}
	ret = fs_open(&req->req, path_unpack(ino), fi->flags, &file->file);
	if (file->file) {
		file->file->front = file;
		file->file->wake = file_wake;
	}
	done(req, ret, NULL, 0);
}

static void op_read(fuse_req_t fuse, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct front_req *req = start(fuse, file_of(fi), REQ_READ);
	struct file *file = file_of(fi)->file;
	ssize_t ret;
	char *data;

	(void)ino;
	if (!req)
		return;
	data = req->front->data;
	file->flags = fi->flags;
	ret = fs_read(&req->req, file, data, size < READ_SIZE ? size : READ_SIZE, off);
	done(req, ret, data, ret);
}

static void op_write(fuse_req_t fuse, fuse_ino_t ino, const char *buf, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	struct front_req *req = start(fuse, file_of(fi), REQ_WRITE);
	struct file *file = file_of(fi)->file;

	(void)ino;
	if (!req)
		return;
	file->flags = fi->flags;
	done(req, fs_write(&req->req, file, buf, size, off), NULL, 0);
}

static void op_ioctl(fuse_req_t fuse, fuse_ino_t ino, unsigned int cmd, void *arg,
		     struct fuse_file_info *fi, unsigned int flags, const void *in, size_t in_len,
		     size_t out_room)
{
	struct front_req *req;
	size_t out_len;
	ssize_t ret;
	char *data;

	(void)ino;
	if (flags & FUSE_IOCTL_DIR) {
		fuse_reply_err(fuse, ENOTTY);
		return;
	}
	req = start(fuse, file_of(fi), REQ_IOCTL);
	if (!req)
		return;
	data = req->front->data;
	ret = fs_ioctl(&req->req, file_of(fi)->file, cmd, (uintptr_t)arg, in, in_len, data,
		       out_room < READ_SIZE ? out_room : READ_SIZE, &out_len);
	done(req, ret, data, out_len);
}

static void op_poll(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi,
		    struct fuse_pollhandle *poll)
{
	struct front_file *file = file_of(fi);
	unsigned int ready = fs_poll(file->file);

	(void)ino;
	if (poll) {
		if (file->poll)
			fuse_pollhandle_destroy(file->poll);
		file->poll = poll;
		file->poll_events |= fi->poll_events | POLLERR | POLLHUP;
		if (!(ready & fi->poll_events))
			file->may_sleep = true;
	}
	fuse_reply_poll(fuse, ready);
}

static void op_release(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	file_free(file_of(fi));
	fuse_reply_err(fuse, 0);
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

static void op_lookup(fuse_req_t fuse, fuse_ino_t parent, const char *name)
{
	struct path dir = path_unpack(parent);
	struct front_req *req;

	if (!(fs_flags(dir) & FS_ASKS)) {
		lookup(fuse, dir, name);
		return;
	}
	req = start(fuse, NULL, REQ_LOOKUP);
	if (!req)
		return;
	req->dir = dir;
	req->name = strdup(name);
	look_again(req, req->name ? 0 : -ENOMEM);
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

static void op_getattr(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)fi;
	reply_attr(fuse, path_unpack(ino));
}

static void op_setattr(fuse_req_t fuse, fuse_ino_t ino, struct stat *st, int to_set,
		       struct fuse_file_info *fi)
{
	struct fuse_front *front = fuse_req_userdata(fuse);
	const struct fuse_ctx *ctx = fuse_req_ctx(fuse);
	struct fs_cred cred = { .uid = ctx->uid, .gid = ctx->gid, .pid = ctx->pid };
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
	ret = mask ? fs_setattr(front->ibfs, path_unpack(ino), &cred, st, mask) : 0;
	if (ret)
		fuse_reply_err(fuse, -ret);
	else
		reply_attr(fuse, path_unpack(ino));
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

static void op_readdir(fuse_req_t fuse, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	struct fuse_front *front = fuse_req_userdata(fuse);
	struct path dir = path_unpack(ino);
	struct front_req *req;

	(void)fi;
	if (size > READ_SIZE)
		size = READ_SIZE;
	if (!(fs_flags(dir) & FS_ASKS)) {
		readdir(fuse, dir, front->data, size, off);
		return;
	}
	req = start(fuse, NULL, REQ_READDIR);
	if (!req)
		return;
	req->dir = dir;
	req->size = size;
	req->off = off;
	look_again(req, 0);
}

/*
 * What is in the directory was asked for, or has to be now. Another request may
 * be at work, in the middle of which the answer came: front->data is that one's.
 */
static void look_again(struct front_req *req, ssize_t result)
{
	char *data = NULL;
	ssize_t ret = result ? result : fs_ready(&req->req, req->dir);

	if (ret == FS_PENDING) {
		wait_for_reply(req);
		return;
	}
	if (!ret && req->type == REQ_READDIR) {
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
	req_put(req);
}

static void op_mkdir(fuse_req_t fuse, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct fuse_front *front = fuse_req_userdata(fuse);
	const struct fuse_ctx *ctx = fuse_req_ctx(fuse);
	struct fs_cred cred = { .uid = ctx->uid, .gid = ctx->gid, .pid = ctx->pid };
	struct path child;
	int ret;

	ret = fs_mkdir(front->ibfs, path_unpack(parent), name, mode, &cred, &child);
	if (ret)
		fuse_reply_err(fuse, -ret);
	else
		reply_entry(fuse, child);
}

static void op_rmdir(fuse_req_t fuse, fuse_ino_t parent, const char *name)
{
	struct fuse_front *front = fuse_req_userdata(fuse);
	const struct fuse_ctx *ctx = fuse_req_ctx(fuse);
	struct fs_cred cred = { .uid = ctx->uid, .gid = ctx->gid, .pid = ctx->pid };

	fuse_reply_err(fuse, -fs_rmdir(front->ibfs, path_unpack(parent), name, &cred));
}

/* What the tree has no use for is not permitted, rather than not implemented. */
static void op_mknod(fuse_req_t fuse, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	(void)parent;
	(void)name;
	(void)mode;
	(void)rdev;
	fuse_reply_err(fuse, EPERM);
}

static void op_unlink(fuse_req_t fuse, fuse_ino_t parent, const char *name)
{
	(void)parent;
	(void)name;
	fuse_reply_err(fuse, EPERM);
}

static void op_symlink(fuse_req_t fuse, const char *link, fuse_ino_t parent, const char *name)
{
	(void)link;
	(void)parent;
	(void)name;
	fuse_reply_err(fuse, EPERM);
}

static void op_rename(fuse_req_t fuse, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
		      const char *newname, unsigned int flags)
{
	(void)parent;
	(void)name;
	(void)newparent;
	(void)newname;
	(void)flags;
	fuse_reply_err(fuse, EPERM);
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	(void)userdata;
	/* Splicing small requests costs more than copying them. */
	conn->want &= ~(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
	conn->want |= conn->capable & (FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_PARALLEL_DIROPS);
	/* A RELEASE is a background request and must not queue behind others. */
	conn->max_background = 65535;
	conn->congestion_threshold = 65535;
}

static const struct fuse_lowlevel_ops front_ops = {
	.init = op_init,
	.lookup = op_lookup,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.symlink = op_symlink,
	.rename = op_rename,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.release = op_release,
	.readdir = op_readdir,
	.ioctl = op_ioctl,
	.poll = op_poll,
};

static ssize_t front_read(int fd, void *buf, size_t len, void *userdata)
{
	struct fuse_front *front = userdata;
	ssize_t n = read(fd, buf, len);

	if (n > 0 && !front->passthrough.answered)
		passthrough_request(&front->passthrough, buf, n);
	return n;
}

static ssize_t front_writev(int fd, struct iovec *iov, int count, void *userdata)
{
	struct fuse_front *front = userdata;

	if (!front->passthrough.answered)
		passthrough_reply(&front->passthrough, iov, count);
	return writev(fd, iov, count);
}

static const struct fuse_custom_io front_hooks = {
	.read = front_read,
	.writev = front_writev,
};

static void front_io(struct ev_loop *loop, struct ev_io *w, int revents)
{
	struct fuse_front *front = w->data;
	unsigned int i;
	int ret;

	(void)revents;
	for (i = 0; i < BUDGET; i++) {
		ret = fuse_session_receive_buf(front->se, &front->buf);
		if (ret == -EAGAIN)
			return;
		if (ret == -EINTR)
			continue;
		if (ret <= 0) {
			front->unmounted = true;
			ev_io_stop(loop, w);
			ev_break(loop, EVBREAK_ALL);
			return;
		}
		fuse_session_process_buf(front->se, &front->buf);
		taskq_run(front->ibfs->tasks);
	}
}

/* The caller's options come last: what contradicts ours wins. */
static struct fuse_session *session_new(struct fuse_front *front, const char *options)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *se = NULL;
	const char *ours;

	ours = geteuid() ? "fsname=ibfs,subtype=ibfs,default_permissions" :
			   "fsname=ibfs,subtype=ibfs,default_permissions,allow_other,nosuid,nodev";
	if (fuse_opt_add_arg(&args, "ibfs") || fuse_opt_add_arg(&args, "-o") ||
	    fuse_opt_add_arg(&args, ours))
		goto out;
	if (options && (fuse_opt_add_arg(&args, "-o") || fuse_opt_add_arg(&args, options)))
		goto out;
	se = fuse_session_new(&args, &front_ops, sizeof(front_ops), front);
out:
	fuse_opt_free_args(&args);
	return se;
}

static void unmounted(struct mountwatch *watch)
{
	struct fuse_front *front =
		(struct fuse_front *)((char *)watch - offsetof(struct fuse_front, mountwatch));

	front->unmounted = true;
	ev_break(front->ibfs->loop, EVBREAK_ALL);
}

struct fuse_front *fuse_front_start(struct ibfs *ibfs, const char *mountpoint, const char *options)
{
	struct fuse_front *front = calloc(1, sizeof(*front));
	int fd;

	if (!front)
		goto err_memory;
	front->ibfs = ibfs;
	front->data = malloc(READ_SIZE);
	if (!front->data)
		goto err_front;
	front->se = session_new(front, options);
	if (!front->se)
		goto err_data;
	if (fuse_session_mount(front->se, mountpoint))
		goto err_session;
	fd = fuse_session_fd(front->se);
	if (fuse_session_custom_io(front->se, &front_hooks, fd) ||
	    fcntl(fd, F_SETFL, O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC)) {
		ibfs_log(ibfs, "cannot mount on %s", mountpoint);
		goto err_mount;
	}
	passthrough_init(&front->passthrough, fd, ibfs->conf->passthrough);
	ev_io_init(&front->io, front_io, fd, EV_READ);
	front->io.data = front;
	ev_idle_init(&front->idle, notify_due);
	ev_set_priority(&front->idle, EV_MINPRI);
	front->idle.data = front;
	ev_io_start(ibfs->loop, &front->io);
	mountwatch_start(&front->mountwatch, ibfs->loop, mountpoint, unmounted);
	return front;
err_mount:
	fuse_session_unmount(front->se);
err_session:
	fuse_session_destroy(front->se);
err_data:
	free(front->data);
	free(front);
	return NULL;
err_front:
	free(front);
err_memory:
	ibfs_log(ibfs, "cannot mount: %s", strerror(ENOMEM));
	return NULL;
}

/* End all requests and files. Holders that can't let go of a request do so in release. */
static void drop_all(struct fuse_front *front)
{
	struct front_file *file, *next_file;
	struct front_req *req, *next;

	DL_FOREACH_SAFE(front->waiting, req, next)
		fs_cancel(&req->req);
	DL_FOREACH_SAFE(front->files, file, next_file)
		file_free(file);
	DL_FOREACH_SAFE(front->waiting, req, next)
		req_put(req);
	LL_FOREACH_SAFE(front->spare, req, next)
		free(req);
}

/*
 * End the connection, so that libfuse sees an error on its descriptor and
 * doesn't unmount, and complain of, what is no longer mounted: something else
 * takes the descriptor's place.
 */
static void abandon(int fd)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return;
	close(ends[0]);
	dup3(ends[1], fd, O_CLOEXEC);
	close(ends[1]);
}

void fuse_front_stop(struct fuse_front *front)
{
	mountwatch_stop(&front->mountwatch, front->ibfs->loop);
	ev_io_stop(front->ibfs->loop, &front->io);
	ev_idle_stop(front->ibfs->loop, &front->idle);
	drop_all(front);
	passthrough_free(&front->passthrough);
	if (front->unmounted)
		abandon(fuse_session_fd(front->se));
	fuse_session_unmount(front->se);
	fuse_session_destroy(front->se);
	free(front->buf.mem);
	free(front->data);
	free(front);
}
