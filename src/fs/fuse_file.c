/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FUSE: open files. Who polls one is told of a change once, and asks again, in
 * the protocol of linux/fuse.h's FUSE_NOTIFY_POLL.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <utlist.h>

#include "fs/fuse_front.h"

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

static struct front_file *file_of(const struct fuse_file_info *fi)
{
	return (struct front_file *)(uintptr_t)fi->fh;
}

/* --- polling --- */

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

void front_poll(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi,
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

void front_files_init(struct fuse_front *front)
{
	ev_idle_init(&front->idle, notify_due);
	ev_set_priority(&front->idle, EV_MINPRI);
	front->idle.data = front;
}

/* --- opening and closing --- */

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
static void answer_open(struct front_req *req, ssize_t result, const void *data, size_t len)
{
	(void)data;
	(void)len;
	if (result < 0)
		fuse_reply_err(req->fuse, -result);
	else
		result = reply_open(req);
	if (result < 0)
		file_free(req->file);
	front_req_put(req);
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

/*
 * The opener's groups, where a write will ask for them: now, while the opener waits;
 * later it may have others, be gone, or its number be somebody else's.
 */
static struct fs_groups *opener_groups(const struct front_req *req, struct path path, int flags)
{
	const struct fs_cred *cred = &req->req.cred;

	if (!(fs_flags(path) & FS_GROUPS) || (flags & O_ACCMODE) == O_RDONLY ||
	    fs_privileged(cred))
		return NULL;
	return fs_groups_of(req->req.caller.pid, cred->uid, cred->gid);
}

void front_open(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct front_req *req = front_req_start(fuse, NULL, answer_open);
	struct fs_groups *groups;
	struct front_file *file;
	ssize_t ret;

	if (!req)
		return;
	file = req->file = file_new(req->front, ino);
	if (!file) {
		fuse_reply_err(fuse, ENOMEM);
		front_req_put(req);
		return;
	}
	req->req.cred.groups = groups = opener_groups(req, path_unpack(ino), fi->flags);
	ret = fs_open(&req->req, path_unpack(ino), fi->flags, &file->file);
	fs_groups_put(groups);
	if (file->file) {
		file->file->front = file;
		file->file->wake = file_wake;
	}
	front_req_done(req, ret, NULL, 0);
}

void front_release(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	file_free(file_of(fi));
	fuse_reply_err(fuse, 0);
}

void front_files_free(struct fuse_front *front)
{
	struct front_file *file, *next;

	DL_FOREACH_SAFE(front->files, file, next)
		file_free(file);
}

/* --- reading, writing, ioctl --- */

static void answer_read(struct front_req *req, ssize_t result, const void *data, size_t len)
{
	if (result < 0)
		fuse_reply_err(req->fuse, -result);
	else
		fuse_reply_buf(req->fuse, data, len);
	front_req_put(req);
}

void front_read(fuse_req_t fuse, fuse_ino_t ino, size_t size, off_t off,
		struct fuse_file_info *fi)
{
	struct front_req *req = front_req_start(fuse, file_of(fi), answer_read);
	struct file *file = file_of(fi)->file;
	ssize_t ret;
	char *data;

	(void)ino;
	if (!req)
		return;
	data = req->front->data;
	file->flags = fi->flags;
	ret = fs_read(&req->req, file, data, size < FRONT_READ_SIZE ? size : FRONT_READ_SIZE, off);
	front_req_done(req, ret, data, ret);
}

static void answer_write(struct front_req *req, ssize_t result, const void *data, size_t len)
{
	(void)data;
	(void)len;
	if (result < 0)
		fuse_reply_err(req->fuse, -result);
	else
		fuse_reply_write(req->fuse, result);
	front_req_put(req);
}

void front_write(fuse_req_t fuse, fuse_ino_t ino, const char *buf, size_t size, off_t off,
		 struct fuse_file_info *fi)
{
	struct front_req *req = front_req_start(fuse, file_of(fi), answer_write);
	struct file *file = file_of(fi)->file;

	(void)ino;
	if (!req)
		return;
	file->flags = fi->flags;
	front_req_done(req, fs_write(&req->req, file, buf, size, off), NULL, 0);
}

/* The result of an ioctl may be an error and carry data. */
static void answer_ioctl(struct front_req *req, ssize_t result, const void *data, size_t len)
{
	fuse_reply_ioctl(req->fuse, result, data, len);
	front_req_put(req);
}

void front_ioctl(fuse_req_t fuse, fuse_ino_t ino, unsigned int cmd, void *arg,
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
	req = front_req_start(fuse, file_of(fi), answer_ioctl);
	if (!req)
		return;
	data = req->front->data;
	ret = fs_ioctl(&req->req, file_of(fi)->file, cmd, (uintptr_t)arg, in, in_len, data,
		       out_room < FRONT_READ_SIZE ? out_room : FRONT_READ_SIZE, &out_len);
	front_req_done(req, ret, data, out_len);
}
