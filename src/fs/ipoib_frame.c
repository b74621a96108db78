/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An IP interface's raw mode, ipoib/NAME/frame: a read takes one frame that came,
 * a write sends one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/ipoibdir.h"

#define FRAMES_KEPT	256	/* that a reader may be behind */

/* An open `frame`: what came since it was opened. */
struct frame {
	struct frame *prev, *next;
	size_t len;
	uint8_t data[];
};

struct frames {
	struct ipoib_listener listener;	/* first */
	struct file *file;
	struct ipoib *ip;
	struct frame *head;
	unsigned int count;
	struct waitq readers;
	bool ended;
};

static void frame_take(struct frames *fr, struct frame *frame)
{
	DL_DELETE(fr->head, frame);
	fr->count--;
	free(frame);
}

static void frame_came(struct ipoib_listener *listener, const void *data, size_t len)
{
	struct frames *fr = (struct frames *)listener;
	struct fs_req *req = waitq_take(&fr->readers);
	struct frame *frame;

	if (!data) {
		fr->ended = true;
		if (req)
			fs_reply(req, -EIO, NULL, 0);
		waitq_fail(&fr->readers, -EIO);
		fs_wake(fr->file);
		return;
	}
	if (req) {
		if (len > req->size)
			len = req->size;
		fs_reply(req, len, data, len);
		return;
	}
	frame = malloc(sizeof(*frame) + len);
	if (!frame)
		return;
	frame->len = len;
	memcpy(frame->data, data, len);
	if (fr->count == FRAMES_KEPT)
		frame_take(fr, fr->head);
	DL_APPEND(fr->head, frame);
	fr->count++;
	fs_wake(fr->file);
}

static ssize_t frame_open(struct file *file, struct fs_req *req)
{
	struct ipoib *ip = path_ipoib(file->ibfs, file->path);
	struct frames *fr = ip ? calloc(1, sizeof(*fr)) : NULL;

	(void)req;
	if (!fr)
		return ip ? -ENOMEM : -ENOENT;
	fr->listener.frame = frame_came;
	fr->file = file;
	fr->ip = ip;
	ipoib_get(ip);
	if (file->flags & O_WRONLY)
		fr->ended = true;
	else
		ipoib_listen(ip, &fr->listener);
	file->priv = fr;
	file->hints = FILE_QUEUE;
	return 0;
}

static void frame_release(struct file *file)
{
	struct frames *fr = file->priv;

	if (!fr)
		return;
	ipoib_unlisten(fr->ip, &fr->listener);
	while (fr->head)
		frame_take(fr, fr->head);
	ipoib_put(fr->ip);
	free(fr);
}

static ssize_t frame_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off)
{
	struct frames *fr = file->priv;

	(void)off;
	if (!fr->head) {
		if (fr->ended)
			return -EIO;
		if (file->flags & O_NONBLOCK)
			return -EAGAIN;
		req->size = size;
		return waitq_add(&fr->readers, req);
	}
	if (size > fr->head->len)
		size = fr->head->len;
	memcpy(buf, fr->head->data, size);
	frame_take(fr, fr->head);
	return size;
}

static ssize_t frame_write(struct file *file, struct fs_req *req, const void *buf, size_t size,
			   off_t off)
{
	struct frames *fr = file->priv;
	int err;

	(void)req;
	(void)off;
	if (ipoib_gone(fr->ip))
		return -EIO;
	err = ipoib_frame_send(fr->ip, buf, size);
	return err ? err : (ssize_t)size;
}

static unsigned int frame_poll(struct file *file)
{
	const struct frames *fr = file->priv;
	unsigned int ready = POLLOUT | POLLWRNORM;

	if (fr->head)
		ready |= POLLIN | POLLRDNORM;
	if (ipoib_gone(fr->ip))
		ready |= POLLERR | POLLHUP;
	return ready;
}

const struct file_ops ipoib_frame_ops = {
	.open = frame_open, .release = frame_release, .read = frame_read, .write = frame_write,
	.poll = frame_poll,
};
