/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes of many commands, fs/lines.h: some lines at once, which are all that
 * most writes have, the others in pieces while the writer waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/lines.h"
#include "fs/tree.h"
#include "fs/work.h"

enum {
	LINES = 32,		/* of a piece; empty ones don't count */
	BYTES = 4 << 10,	/* of a piece, and the rest of its last line */
};

struct lines {
	struct work work;	/* first */
	struct fs_req *req;
	ssize_t (*write)(struct fs_req *req, struct file *file, const void *buf, size_t size,
			 off_t off);
	size_t len, done;
	char text[];
};

/* The bytes of the next piece. */
static size_t piece_len(const char *text, size_t len)
{
	unsigned int lines = 0;
	const char *end;
	size_t off = 0;

	while (off < len && off < BYTES && lines < LINES) {
		end = memchr(text + off, '\n', len - off);
		lines += end != text + off;
		off = end ? (size_t)(end + 1 - text) : len;
	}
	return off;
}

/* What the writer is told; ret is what the last piece was. */
static ssize_t outcome(const struct lines *lines, ssize_t ret)
{
	if (ret < 0)
		return lines->done ? (ssize_t)lines->done : ret;
	return (ssize_t)lines->done + ret;
}

static void end(struct lines *lines, ssize_t ret)
{
	struct fs_req *req = lines->req;

	ret = outcome(lines, ret);
	work_cancel(req->ibfs->fs->works, &lines->work);
	free(lines);
	fs_reply(req, ret, NULL, 0);
}

static bool cancel(struct fs_req *req)
{
	end(req->priv, -EINTR);
	return true;
}

static void piece(struct work *work)
{
	struct lines *lines = (struct lines *)work;
	const char *text = lines->text + lines->done;
	size_t len = piece_len(text, lines->len - lines->done);
	ssize_t ret = lines->write(lines->req, lines->req->file, text, len, 0);

	if (ret == (ssize_t)len && lines->done + len < lines->len)
		lines->done += len;
	else
		end(lines, ret);
}

/* The writer waits for the rest; without memory it is told how far it came. */
static ssize_t go_on(struct fs_req *req, const char *text, size_t len, size_t done,
		     ssize_t (*write)(struct fs_req *req, struct file *file, const void *buf,
				      size_t size, off_t off))
{
	struct lines *lines = malloc(sizeof(*lines) + len);

	if (!lines)
		return (ssize_t)done;
	*lines = (struct lines){ .work.piece = piece, .req = req, .write = write, .len = len,
				 .done = done };
	memcpy(lines->text, text, len);
	if (work_queue(req->ibfs->fs->works, &lines->work, req->file->charge.account)) {
		free(lines);
		return (ssize_t)done;
	}
	req->priv = lines;
	req->cancel = cancel;
	return FS_PENDING;
}

ssize_t lines_write(struct fs_req *req, struct file *file, const void *buf, size_t size,
		    ssize_t (*write)(struct fs_req *req, struct file *file, const void *buf,
				     size_t size, off_t off))
{
	size_t len = piece_len(buf, size);
	ssize_t ret = write(req, file, buf, len, 0);

	if (ret != (ssize_t)len || len == size)
		return ret;
	return go_on(req, buf, size, len, write);
}
