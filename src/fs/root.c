/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The root: a few files about the daemon, the devices by name, and the queues
 * of events (one at the root for all devices, one in each device).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/obj.h"

enum { ROOT_README, ROOT_VERSION, ROOT_PINNED, ROOT_ACCOUNTS };

const struct entry root_entries[] = {
	{ "README", KIND_ROOT_TEXT, ROOT_README },
	{ "version", KIND_ROOT_TEXT, ROOT_VERSION },
	{ "errors", KIND_ERRORS, 0 },
	{ "metrics", KIND_METRICS, 0 },
	{ "pinned", KIND_ROOT_TEXT, ROOT_PINNED },
	{ "accounts", KIND_ROOT_TEXT, ROOT_ACCOUNTS },
	{ "events", KIND_EVENTS, 0 },
	{ "pd", KIND_OBJS, OBJ_PD },
	{ "xrcd", KIND_OBJS, OBJ_XRCD },
	{ "cq", KIND_OBJS, OBJ_CQ },
	{ "mr", KIND_OBJS, OBJ_MR },
	{ "mw", KIND_OBJS, OBJ_MW },
	{ "srq", KIND_OBJS, OBJ_SRQ },
	{ "ah", KIND_OBJS, OBJ_AH },
	{ "qp", KIND_OBJS, OBJ_QP },
	{ "mcast", KIND_OBJS, OBJ_MCAST },
	{ "fabric", KIND_FABRIC, 0 },
	{ "dev", KIND_DEVDIR, 0 },
	{ "sys", KIND_SYS, 0 },
	{ NULL, 0, 0 }
};

static const char readme[] =
	"InfiniBand as files. The manual is ibfs(5).\n"
	"\n"
	"DEVICE/             an adapter; cat its attr, and PORT/attr\n"
	"DEVICE/PORT/umad    the port's MADs, as /dev/infiniband/umadN; issm likewise\n"
	"DEVICE/PORT/ipoib   IP interfaces: mkdir ipoib/x; echo create ifname=ib0 > ipoib/x/ctl\n"
	"DEVICE/PORT/peer/   the node at the other end of the cable, and so on\n"
	"DEVICE/PORT/pcap    tshark -i - < DEVICE/PORT/pcap\n"
	"pd/ mr/ cq/ qp/ ... resources of verbs: mkdir qp/a; echo create ... > qp/a/ctl\n"
	"fabric/             switches, nodes and links; fabric/topology is a topology file\n"
	"fabric/links/L/ctl  echo down > ctl; echo up > ctl; echo drop=0.01 delay=5ms > ctl\n"
	"dev/, sys/          what programs look for in /dev/infiniband and /sys/class:\n"
	"                    ibfs-run ibstat\n"
	"events              what happens, a line each; head -1 events waits for the next\n"
	"errors              why the latest requests failed\n"
	"metrics             for Prometheus\n";

/* Where a reader of `errors` is; those that come after it began aren't for it. */
struct errors {
	struct textring_reader at;
	uint64_t end;			/* 0: it begins */
};

static int errors_more(struct ibfs *ibfs, struct path path, void *state, struct textbuf *out)
{
	struct errors *e = state;
	const char *line;

	(void)path;
	if (!e->end)
		e->end = textring_end(ibfs->errors);
	line = e->at.seq < e->end ? textring_next(ibfs->errors, &e->at) : NULL;
	/* Lines may have gone unread. */
	if (!line || e->at.seq > e->end)
		return 0;
	text_printf(out, "%s\n", line);
	return 1;
}

const struct file_ops errors_ops = {
	.show_more = errors_more,
	.state_size = sizeof(struct errors),
};

static int root_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	switch (path.sub) {
	case ROOT_README:
		text_printf(out, "%s", readme);
		return 0;
	case ROOT_VERSION:
		text_printf(out, "%s\n", IBFS_VERSION);
		return 0;
	case ROOT_PINNED:
		return pinned_show(ibfs, out);
	case ROOT_ACCOUNTS:
		accounts_show(ibfs->fs->accounts, out);
		return 0;
	default:
		return -ENOENT;
	}
}

const struct file_ops root_text_ops = { .show = root_show };

static int root_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	const struct ibfs_device *dev = device_find(ibfs, name);

	(void)dir;
	if (!dev)
		return -ENOENT;
	child->kind = KIND_DEV;
	child->dev = dev->num;
	return 0;
}

static int root_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		     struct path *child)
{
	const struct ibfs_device *dev = device_from(ibfs, *pos);

	(void)dir;
	if (!dev)
		return 0;
	snprintf(name, 256, "%s", dev->name);
	child->kind = KIND_DEV;
	child->dev = dev->num;
	*pos = dev->num + 1;
	return 1;
}

const struct dir_ops root_dir = { .lookup = root_lookup, .next = root_next };

/* An open events file: a reader of the ring of lines, and its queue. */
struct events {
	struct lineq q;
	struct textring_reader reader;
	char prefix[300];		/* how this file's lines begin, as "device=NAME "; "": all */
};

static const char *events_next(struct lineq *q)
{
	struct events *ev = (struct events *)q;
	struct textring *ring = q->file->ibfs->events;
	const char *line;

	do {
		line = textring_next(ring, &ev->reader);
	} while (line && strncmp(line, ev->prefix, strlen(ev->prefix)));
	return line;
}

static void events_wake(struct textring_reader *reader)
{
	struct events *ev = (struct events *)((char *)reader - offsetof(struct events, reader));

	lineq_wake(&ev->q);
}

static ssize_t events_open(struct file *file, struct fs_req *req)
{
	struct events *ev = calloc(1, sizeof(*ev));
	const struct ibfs_device *dev;

	(void)req;
	if (!ev)
		return -ENOMEM;
	if (file->path.kind == KIND_DEV_EVENTS) {
		dev = path_device(file->ibfs, file->path);
		snprintf(ev->prefix, sizeof(ev->prefix), "device=%s ", dev->name);
	} else if (file->path.kind == KIND_IPOIB_EVENTS &&
		   !ipoib_event_prefix(file->ibfs, file->path, ev->prefix, sizeof(ev->prefix))) {
		free(ev);
		return -ENOENT;
	}
	ev->q.file = file;
	ev->q.next = events_next;
	ev->reader.wake = events_wake;
	textring_attach(file->ibfs->events, &ev->reader, false);
	file->priv = ev;
	file->hints = FILE_QUEUE;
	return 0;
}

static void events_release(struct file *file)
{
	struct events *ev = file->priv;

	if (!ev)
		return;
	textring_detach(file->ibfs->events, &ev->reader);
	lineq_free(&ev->q);
	free(ev);
}

static ssize_t events_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off)
{
	struct events *ev = file->priv;

	(void)off;
	return lineq_read(&ev->q, req, buf, size);
}

static unsigned int events_poll(struct file *file)
{
	struct events *ev = file->priv;

	return lineq_poll(&ev->q);
}

const struct file_ops events_ops = {
	.open = events_open,
	.release = events_release,
	.read = events_read,
	.poll = events_poll,
};
