/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event files of uverbs: one for a context's asynchronous events, and the
 * completion channels. Where the kernel answers a command with a descriptor,
 * the answer is a name in dev/infiniband/ev, whose file the command's sender
 * opens. A read takes one event. Kernel: ib_uverbs_event_read().
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include <ibfs/event_ring.h>

#include "fs/rows.h"
#include "fs/uverbs.h"

#define EVENTS_MAX	65536		/* of a file that nobody reads */

static void event_free(struct uv_events *events, struct uv_event *event)
{
	DL_DELETE(events->queue, event);
	events->count--;
	free(event);
}

struct uv_events *uv_events_find(struct fs *fs, uint64_t id)
{
	struct uv_events *events;

	DL_SEARCH_SCALAR(fs->uv_events, events, id, id);
	return events;
}

struct uv_events *uv_events_new(struct uverbs_file *uf, const struct fs_cred *cred, bool async)
{
	struct fs *fs = uf->file->ibfs->fs;
	struct uv_events *events = calloc(1, sizeof(*events));

	if (!events)
		return NULL;
	events->refs = 1;
	events->held = true;
	events->id = ev_id(fs);
	events->async = async;
	events->uf = uf;
	events->uid = cred->uid;
	events->gid = cred->gid;
	events->fs = fs;
	DL_APPEND(fs->uv_events, events);
	/* ib_uverbs_init_async_event_file(): the first one is the default. */
	if (async && !uf->async) {
		uf->async = events;
		events->refs++;
	}
	return events;
}

void uv_events_get(struct uv_events *events)
{
	events->refs++;
}

void uv_events_put(struct uv_events *events)
{
	struct uv_event *event, *tmp;

	if (--events->refs)
		return;
	DL_FOREACH_SAFE(events->queue, event, tmp)
		event_free(events, event);
	DL_DELETE(events->fs->uv_events, events);
	free(events);
}

static size_t record_size(const struct uv_events *events)
{
	return events->async ? sizeof(struct ib_uverbs_async_event_desc) :
			       sizeof(struct ib_uverbs_comp_event_desc);
}

static bool have(struct uv_events *events)
{
	return uv_chan_filled(events) || events->queue;
}

/*
 * The first event, taken: its record, and counted for the object's destroyer.
 * False: somebody else was faster.
 */
static bool take(struct uv_events *events, void *buf)
{
	struct uv_event *event;
	uint64_t element;

	if (uv_chan_take(events, &element)) {
		struct ib_uverbs_comp_event_desc desc = { .cq_handle = element };

		memcpy(buf, &desc, sizeof(desc));
		return true;
	}
	event = events->queue;
	if (!event)
		return false;
	if (events->async) {
		struct ib_uverbs_async_event_desc desc = {
			.element = event->element, .event_type = event->type,
		};

		memcpy(buf, &desc, sizeof(desc));
		if (event->obj)
			event->obj->async_read++;
	} else {
		struct ib_uverbs_comp_event_desc desc = { .cq_handle = event->element };

		memcpy(buf, &desc, sizeof(desc));
		event->obj->comp_read++;
	}
	event_free(events, event);
	uv_chan_refill(events);
	return true;
}

static void serve(struct uv_events *events)
{
	uint8_t buf[sizeof(struct ib_uverbs_async_event_desc)];
	size_t len = record_size(events);
	struct fs_req *req;

	while (events->queue && (req = waitq_take(&events->readers))) {
		if (req->size < len) {
			fs_reply(req, -EINVAL, NULL, 0);
			continue;
		}
		take(events, buf);
		fs_reply(req, (ssize_t)len, buf, len);
	}
	uv_chan_refill(events);
	if (events->file && (have(events) || events->closed))
		fs_wake(events->file);
}

static struct uv_event *event_new(struct uv_events *events, struct uobj *obj, uint64_t element)
{
	struct uv_event *event = calloc(1, sizeof(*event));

	if (!event)
		return NULL;
	event->obj = obj;
	event->element = element;
	events->count++;
	return event;
}

void uv_events_unread(struct uv_events *events, struct uobj *obj, uint64_t element)
{
	struct uv_event *event = event_new(events, obj, element);

	if (event)
		DL_PREPEND(events->queue, event);
}

void uv_events_add(struct uv_events *events, struct uobj *obj, uint64_t element, uint32_t type)
{
	struct uv_event *event;

	/* Nobody can read them: not opened yet is another matter. */
	if (events->closed || (events->opened && !events->file))
		return;
	if (uv_chan_put(events, obj)) {
		fs_wake(events->file);
		return;
	}
	event = events->count < EVENTS_MAX ? event_new(events, obj, element) : NULL;
	if (!event)
		return;
	event->type = type;
	DL_APPEND(events->queue, event);
	serve(events);
}

void uv_events_drop(struct uv_events *events, const struct uobj *obj)
{
	struct uv_event *event, *tmp;

	uv_chan_reclaim(events);
	DL_FOREACH_SAFE(events->queue, event, tmp) {
		if (event->obj != obj)
			continue;
		event_free(events, event);
	}
	uv_chan_refill(events);
}

static void let_go(struct uv_events *events)
{
	if (!events->held)
		return;
	events->held = false;
	uv_events_put(events);
}

void uv_events_close(struct uv_events *events)
{
	events->closed = true;
	uv_chan_end(events);
	events->uf = NULL;
	waitq_fail(&events->readers, -EIO);
	if (events->file)
		fs_wake(events->file);
	let_go(events);
}

/*
 * Any file that is called so is taken, since only the context's own are looked
 * for later.
 */
int uv_event_file_of(const struct client *client, int64_t fd, uint64_t *id)
{
	char *name, *gone, target[256];
	int err;

	if (fd != (int)fd)
		return -EINVAL;
	err = client_fd_name(client, (int)fd, target, sizeof(target));
	if (err)
		return err == -EACCES ? -EPERM : -EBADF;
	gone = strstr(target, " (deleted)");
	if (gone)
		*gone = '\0';
	name = strrchr(target, '/');
	if (!name || name - target < 3 || strncmp(name - 3, "/ev", 3) ||
	    number_name(name + 1, UINT32_MAX, id))
		return -EBADF;
	return 0;
}

/* --- the file --- */

static ssize_t events_open(struct file *file, struct fs_req *req)
{
	struct uv_events *events = uv_events_find(req->ibfs->fs, file->path.idx);

	if (!events)
		return -ENOENT;
	if (events->opened)
		return -EBUSY;
	events->opened = true;
	events->file = file;
	file->priv = events;
	file->hints |= FILE_STREAM;
	uv_events_get(events);
	return 0;
}

static void events_release(struct file *file)
{
	struct uv_events *events = file->priv;
	struct uv_event *event, *tmp;

	if (!events)
		return;
	waitq_fail(&events->readers, -EINTR);
	uv_chan_end(events);
	DL_FOREACH_SAFE(events->queue, event, tmp)
		event_free(events, event);
	events->file = NULL;
	let_go(events);
	uv_events_put(events);
}

static ssize_t events_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off)
{
	struct uv_events *events = file->priv;
	size_t len = record_size(events);

	(void)off;
	if (have(events)) {
		if (size < len)
			return -EINVAL;
		if (take(events, buf))
			return (ssize_t)len;
	}
	if (events->closed)
		return -EIO;
	if (file->flags & O_NONBLOCK)
		return -EAGAIN;
	uv_chan_refill(events);
	req->size = size;
	return waitq_add(&events->readers, req);
}

static unsigned int events_poll(struct file *file)
{
	struct uv_events *events = file->priv;

	if (have(events))
		return POLLIN | POLLRDNORM;
	return events->closed ? POLLERR : 0;
}

static ssize_t events_ioctl(struct file *file, struct fs_req *req, unsigned int cmd, uint64_t arg,
			    const void *in, size_t in_len, void *out, size_t out_room,
			    size_t *out_len)
{
	struct uv_events *events = file->priv;

	(void)req;
	(void)arg;
	(void)in;
	(void)in_len;
	if (cmd != IBFS_EVENT_RING || events->async)
		return -ENOTTY;
	if (out_room < _IOC_SIZE(cmd))
		return -EFAULT;
	return uv_chan_make(events, out, out_len);
}

const struct file_ops uv_events_ops = {
	.open = events_open,
	.release = events_release,
	.read = events_read,
	.poll = events_poll,
	.ioctl = events_ioctl,
};

int uv_events_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	const struct uv_events *events = uv_events_find(ibfs->fs, path.idx);

	if (!events)
		return -ENOENT;
	st->st_size = 0;
	st->st_uid = events->uid;
	st->st_gid = events->gid;
	return 0;
}
