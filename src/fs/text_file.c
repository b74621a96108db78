/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads of text files, as the kernel's seq_file has them. A read from offset 0
 * begins the text anew. Short text (show) is printed at once and kept until the
 * file is closed, so that a read of several calls sees one moment.
 *
 * Long text (show_more) is printed in pieces while its reader waits, and only a
 * window of it is kept: what was printed last, and where its printing stood at
 * both ends. A read before the window prints from the start, one behind it goes
 * on. When there are many windows those unused for longest are dropped: they can
 * be printed again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/text_file.h"
#include "fs/tree.h"
#include "fs/work.h"

enum {
	PIECE = 8 << 10,	/* bytes that a piece prints, about 50 us */
	CALL = 128,		/* bytes that a call counts for, even if it prints nothing */
	WINDOW = 48 << 10,	/* with what the last call adds a buffer of 64 KiB holds it */
	WINDOWS = 256,
};

struct text_file {
	struct work work;	/* first; while somebody waits for more text */
	struct text_file *prev, *next;	/* of those that have a window */
	struct file *file;
	struct fs_req *readers;	/* the first is served */
	bool begun;		/* it is being served: see begin() */
	bool filling;		/* its text isn't there yet */
	bool listed;
	struct textbuf text;
	off_t base;		/* of the window in the text */
	bool ended;		/* the text, with the window */
	int err;
	char *states;		/* show_more()'s, at the window's start and at its end */
};

static char *first(struct text_file *t)
{
	return t->states;
}

static char *last(struct text_file *t)
{
	return t->states + t->file->ops->state_size;
}

static off_t end(const struct text_file *t)
{
	return t->base + (off_t)t->text.len;
}

/* --- windows --- */

static void unlist(struct text_file *t)
{
	struct fs *fs = t->file->ibfs->fs;

	if (!t->listed)
		return;
	DL_DELETE(fs->windows, t);
	fs->num_windows--;
	t->listed = false;
}

/* It can be printed again from where it began. */
static void drop_window(struct text_file *t)
{
	unlist(t);
	text_free(&t->text);
	memcpy(last(t), first(t), t->file->ops->state_size);
	t->ended = false;
}

/* The window is in use; too many: the one that was not for longest goes. */
static void use_window(struct text_file *t)
{
	struct fs *fs = t->file->ibfs->fs;
	struct text_file *old;

	unlist(t);
	if (!t->text.data)
		return;
	old = fs->windows ? fs->windows->prev : NULL;
	if (old && !old->begun && fs->num_windows >= WINDOWS)
		drop_window(old);
	DL_PREPEND(fs->windows, t);
	fs->num_windows++;
	t->listed = true;
}

/* The window begins where it ended. */
static void advance(struct text_file *t)
{
	t->base = end(t);
	t->text.len = 0;
	memcpy(first(t), last(t), t->file->ops->state_size);
}

/* The window is empty, at its end. */
static void forget(struct text_file *t)
{
	advance(t);
	text_free(&t->text);
	unlist(t);
}

static void restart(struct text_file *t)
{
	t->base = 0;
	t->text.len = 0;
	t->text.failed = false;
	t->ended = false;
	memset(t->states, 0, 2 * t->file->ops->state_size);
}

/* A read at off begins: is there text for it? Otherwise t->filling. */
static void begin(struct text_file *t, off_t off)
{
	t->begun = true;
	t->err = 0;
	if (!off || off < t->base)
		restart(t);
	else if (off >= end(t) && !t->ended)
		advance(t);
	t->filling = !t->ended && off >= end(t);
}

/* --- printing --- */

/* Up to a piece more; t->filling is cleared when that is enough for a read at off. */
static void fill(struct text_file *t, off_t off)
{
	const struct file *file = t->file;
	size_t work = 0, before;
	int ret = path_check(file->ibfs, file->path) ? -ENODEV : 1;

	while (ret > 0 && work < PIECE && (t->text.len < WINDOW || off >= end(t))) {
		if (t->text.len >= WINDOW)
			advance(t);
		before = t->text.len;
		ret = file->ops->show_more(file->ibfs, file->path, last(t), &t->text);
		if (t->text.failed)
			ret = -ENOMEM;
		work += CALL + t->text.len - before;
	}
	t->ended = !ret;
	t->err = ret < 0 ? ret : 0;
	t->filling = ret > 0 && (t->text.len < WINDOW || off >= end(t));
	if (t->err) {
		restart(t);
		text_free(&t->text);
	}
	use_window(t);
}

/* What the read gets of the text that is there. *data is valid until the file is read again. */
static ssize_t take(struct text_file *t, size_t size, off_t off, const char **data)
{
	*data = NULL;
	t->begun = false;
	if (t->err)
		return t->err;
	if (off >= end(t)) {
		if (t->base)		/* most that came to the end of it read no more */
			forget(t);
		return 0;
	}
	*data = t->text.data + (off - t->base);
	return (off_t)size < end(t) - off ? (off_t)size : end(t) - off;
}

/* --- who waits --- */

static bool cancel(struct fs_req *req)
{
	struct text_file *t = req->file->priv;

	if (req == t->readers)
		t->begun = false;
	DL_DELETE(t->readers, req);
	if (!t->readers)
		work_cancel(req->ibfs->fs->works, &t->work);
	fs_reply(req, -EINTR, NULL, 0);
	return true;
}

static void piece(struct work *work)
{
	struct text_file *t = (struct text_file *)work;
	struct fs_req *req = t->readers;
	const char *data;
	ssize_t ret;

	if (!t->begun)
		begin(t, req->off);
	if (t->filling)
		fill(t, req->off);
	if (t->filling)
		return;
	ret = take(t, req->size, req->off, &data);
	DL_DELETE(t->readers, req);
	if (!t->readers)
		work_cancel(req->ibfs->fs->works, work);
	/* Whoever hears of it may close the file. */
	fs_reply(req, ret, data, ret > 0 ? ret : 0);
}

/* begun: it has printed some of what this read needs. */
static ssize_t enqueue(struct text_file *t, struct fs_req *req, size_t size, off_t off, bool begun)
{
	int ret = work_queue(req->ibfs->fs->works, &t->work, t->file->charge.account);

	t->begun = begun && !ret;
	if (ret)
		return ret;
	req->size = size;
	req->off = off;
	req->cancel = cancel;
	DL_APPEND(t->readers, req);
	return FS_PENDING;
}

static ssize_t read_long(struct text_file *t, struct fs_req *req, void *buf, size_t size, off_t off)
{
	bool now = false;
	const char *data;
	ssize_t ret;

	if (t->readers)
		return enqueue(t, req, size, off, t->begun);
	begin(t, off);
	if (t->filling)
		now = work_now(req->ibfs->fs->works);
	if (now)
		fill(t, off);
	if (t->filling)
		return enqueue(t, req, size, off, now);
	ret = take(t, size, off, &data);
	if (data)
		memcpy(buf, data, ret);
	return ret;
}

/* --- open files --- */

static ssize_t read_short(struct text_file *t, void *buf, size_t size, off_t off)
{
	const struct file *file = t->file;
	int ret;

	if (!off || !t->ended) {
		t->ended = false;
		text_free(&t->text);
		if (path_check(file->ibfs, file->path))
			return -ENODEV;
		ret = file->ops->show(file->ibfs, file->path, &t->text);
		if (ret < 0 || t->text.failed)
			return ret < 0 ? ret : -ENOMEM;
		t->ended = true;
	}
	return read_bytes(t->text.data, t->text.len, buf, size, off);
}

static struct text_file *text_new(struct file *file)
{
	size_t states = 2 * file->ops->state_size;
	struct text_file *t = calloc(1, sizeof(*t) + states);

	if (!t)
		return NULL;
	t->work.piece = piece;
	t->file = file;
	t->states = (char *)(t + 1);
	return t;
}

ssize_t text_file_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off)
{
	if (off < 0)
		return -EINVAL;
	if (!file->priv)
		file->priv = text_new(file);
	if (!file->priv)
		return -ENOMEM;
	return file->ops->show ? read_short(file->priv, buf, size, off) :
				 read_long(file->priv, req, buf, size, off);
}

void text_file_release(struct file *file)
{
	struct text_file *t = file->priv;

	if (!t)
		return;
	while (t->readers)
		cancel(t->readers);
	unlist(t);
	text_free(&t->text);
	free(t);
}
