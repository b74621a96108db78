/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files of verbs' objects: ctl and clone, text, queues of lines that whoever
 * reads first takes, memory and rings that can be mapped.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "fs/obj.h"

/* An open file of an object. */
struct obj_open {
	struct obj_reader reader;	/* first; of a queue */
	struct textbuf text;		/* what status and the like said at offset 0 */
};

void obj_event(struct obj *obj, const char *event)
{
	char line[64];

	if (obj->event_count == OBJ_EVENTS_KEPT) {
		free(obj->events[obj->event_head++ % OBJ_EVENTS_KEPT]);
		obj->event_count--;
	}
	snprintf(line, sizeof(line), "event=%s", event);
	obj->events[(obj->event_head + obj->event_count++) % OBJ_EVENTS_KEPT] = strdup(line);
	obj_wake(obj, OBJ_EVENTS);
}

static void client_event(struct verbs_client *client, enum ibv_event_type event)
{
	struct obj *obj = (struct obj *)client;
	char label[32];

	textring_add(obj->ibfs->events, "device=%s %s=%s event=%s", obj->dev->name,
		     obj_kinds[obj->kind]->name, obj_label(obj, label), verbs_event_name(event));
	obj_event(obj, verbs_event_name(event));
}

static void client_comp(struct verbs_client *client)
{
	obj_event((struct obj *)client, "comp");
}

static void client_arrived(struct verbs_client *client)
{
	obj_wake((struct obj *)client, OBJ_WC);
}

void obj_client(struct obj *obj)
{
	obj->client = (struct verbs_client){
		.event = client_event, .comp = client_comp, .arrived = client_arrived,
		.pay = obj_pay, .refund = obj_refund,
	};
}

void obj_wake(struct obj *obj, enum obj_file which)
{
	struct obj_reader *reader, *tmp;

	DL_FOREACH_SAFE(obj->readers, reader, tmp) {
		if (reader->which != which)
			continue;
		if (which == OBJ_RECV)
			fs_wake(reader->q.file);
		else
			lineq_wake(&reader->q);
	}
}

static const char *event_line(struct obj_reader *reader)
{
	struct obj *obj = reader->obj;
	char *line;

	if (!obj->event_count)
		return NULL;
	line = obj->events[obj->event_head++ % OBJ_EVENTS_KEPT];
	obj->event_count--;
	snprintf(reader->line, sizeof(reader->line), "%s", line ? line : "");
	free(line);
	return reader->line;
}

static size_t print(char *line, size_t size, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static size_t print(char *line, size_t size, size_t at, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line + at, size - at, fmt, ap);
	va_end(ap);
	return n < 0 || (size_t)n >= size - at ? size - 1 : at + n;
}

/* The names come from memory that a client may have mapped: they may be anything. */
static const char *or_unknown(const char *name)
{
	return name ? name : "unknown";
}

static void print_wc(struct obj_reader *reader, const struct ibfs_wc *wc)
{
	struct obj *qp = obj_by_qpn(reader->obj->ibfs, reader->obj->dev,
				   obj_qpn_key(wc->qp_num, wc->port_num));
	char *line = reader->line, label[32];
	size_t size = sizeof(reader->line), at;

	at = print(line, size, 0, "wr_id=%llu status=%s opcode=%s byte_len=%u",
		   (unsigned long long)wc->wr_id, or_unknown(wc_status_name(wc->status)),
		   or_unknown(wc_opcode_name(wc->opcode)), wc->byte_len);
	if (qp)
		at = print(line, size, at, " qp=%.120s", obj_label(qp, label));
	else
		at = print(line, size, at, " qp_num=0x%x", wc->qp_num);
	if (wc->wc_flags & IBV_WC_WITH_IMM)
		at = print(line, size, at, " imm=0x%x", be32toh(wc->imm_data));
	if (wc->wc_flags & IBV_WC_WITH_INV)
		at = print(line, size, at, " invalidated_rkey=0x%x", wc->invalidated_rkey);
	if (wc->opcode & IBFS_WC_RECV && wc->slid)
		at = print(line, size, at, " src_qp=0x%x slid=%u sl=%u path_bits=%u pkey_index=%u",
			   wc->src_qp, wc->slid, wc->sl, wc->dlid_path_bits, wc->pkey_index);
	if (wc->wc_flags & IBV_WC_GRH)
		at = print(line, size, at, " grh");
	if (wc->wc_flags & IBV_WC_IP_CSUM_OK)
		print(line, size, at, " ip_csum_ok");
}

static const char *wc_line(struct obj_reader *reader)
{
	struct obj *obj = reader->obj;
	struct ibfs_wc wc;

	if (!obj->made || obj->ops->poll_cq(obj->cq, 1, &wc) != 1)
		return NULL;
	print_wc(reader, &wc);
	return reader->line;
}

static const char *queue_next(struct lineq *q)
{
	struct obj_reader *reader = (struct obj_reader *)q;

	return reader->which == OBJ_WC ? wc_line(reader) : event_line(reader);
}

static bool queue_ready(struct lineq *q)
{
	struct obj_reader *reader = (struct obj_reader *)q;
	struct obj *obj = reader->obj;

	if (reader->which == OBJ_WC)
		return obj->made && obj->ops->peek_cq(obj->cq, 1) > 0;
	return obj->event_count;
}

static bool is_queue(enum obj_file which)
{
	return which == OBJ_WC || which == OBJ_EVENTS;
}

/* The object's, as it is now: another one after a resize. */
static int find_ring(const struct obj *obj, enum obj_file which, struct ibfs_ring *ring)
{
	if (obj->kind == OBJ_CQ)
		return obj->ops->cq_ring(obj->cq, ring);
	if (obj->kind == OBJ_SRQ)
		return obj->ops->srq_ring(obj->srq, ring);
	return obj->ops->qp_ring(obj->qp, which == OBJ_SQ, ring);
}

/* What is mapped, for the open alone: the object's memory or ring; none before create. */
static int open_backing(struct file *file, struct obj *obj, enum obj_file which)
{
	struct ibfs_ring ring;
	int err;

	if (!obj->made)
		return 0;
	if (which == OBJ_DATA) {
		file->backing = obj->mem->fd;
		return 0;
	}
	err = find_ring(obj, which, &ring);
	if (!err)
		file->backing = ring.fd;
	return err;
}

static bool is_mapped(enum obj_file which)
{
	return which == OBJ_DATA || which == OBJ_RING || which == OBJ_SQ || which == OBJ_RQ;
}

/* Commands name other objects; rings are to be mapped. */
unsigned int obj_file_flags(struct path path)
{
	if (path.port == OBJ_CTL || path.port == OBJ_POST)
		return FS_GROUPS;
	return is_mapped(path.port) && path.port != OBJ_DATA ? FS_PROCESS : 0;
}

static int open_file(struct file *file, struct obj *obj, enum obj_file which)
{
	struct obj_open *open = calloc(1, sizeof(*open));
	int err;

	if (!open)
		return -ENOMEM;
	open->reader.obj = obj;
	open->reader.which = which;
	open->reader.q = (struct lineq){ .file = file, .next = queue_next, .ready = queue_ready };
	file->priv = open;
	obj_get(obj);
	if (which == OBJ_CTL || which == OBJ_POST)
		file->hints |= FILE_LINES;
	if (is_queue(which) || which == OBJ_RECV || which == OBJ_SEND) {
		file->hints |= FILE_QUEUE;
		DL_APPEND(obj->readers, &open->reader);
	}
	if (!is_mapped(which))
		return 0;
	err = open_backing(file, obj, which);
	return err;
}

static ssize_t obj_file_open(struct file *file, struct fs_req *req)
{
	struct obj *obj = path_obj(file->ibfs, file->path);

	(void)req;
	return obj ? open_file(file, obj, file->path.port) : -ENOENT;
}

static ssize_t clone_open(struct file *file, struct fs_req *req)
{
	struct obj *obj;
	int err = obj_new(file->ibfs, file->path.sub, NULL, &req->cred, 0600, &obj);

	if (err)
		return err;
	/* From here on it is a ctl as that of any object. */
	file->path = (struct path){ .kind = KIND_OBJ_FILE, .sub = obj->kind, .port = OBJ_CTL,
				    .idx = obj->num };
	obj_get(obj);
	err = open_file(file, obj, OBJ_CTL);
	obj_put(obj);
	return err;
}

static void obj_file_release(struct file *file)
{
	struct obj_open *open = file->priv;
	struct obj_reader *reader;

	if (!open)
		return;
	DL_FOREACH(open->reader.obj->readers, reader)
		if (reader == &open->reader)
			break;
	if (reader)
		DL_DELETE(open->reader.obj->readers, reader);
	lineq_free(&open->reader.q);
	text_free(&open->text);
	obj_put(open->reader.obj);
	free(open);
}

static void print_status(struct obj *obj, struct textbuf *out)
{
	if (!obj->made)
		text_printf(out, "state %s\n", obj->gone ? "gone" : "new");
	else
		text_printf(out, "device %s\n", obj->dev->name);
	if (obj->made && obj_kinds[obj->kind]->status)
		obj_kinds[obj->kind]->status(obj, out);
	if (obj->reason[0])
		text_printf(out, "refused %s\n", obj->reason);
}

static int print_text(struct obj *obj, enum obj_file which, struct textbuf *out)
{
	struct ibfs_mr_attr mr;
	struct ibfs_mw_attr mw;
	struct ibv_srq_attr srq;
	uint32_t num;

	if (which == OBJ_STATUS) {
		print_status(obj, out);
		return 0;
	}
	if (which == OBJ_CTL) {
		text_printf(out, "%u\n", obj->num);
		return 0;
	}
	if (!obj->made)
		return -ENXIO;
	if (which == OBJ_QPN) {
		text_printf(out, "0x%x\n", obj_qpn(obj));
	} else if (which == OBJ_LIMIT) {
		obj->ops->query_srq(obj->srq, &srq, &num);
		text_printf(out, "%u\n", srq.srq_limit);
	} else if (obj->kind == OBJ_MW) {
		obj->ops->query_mw(obj->mw, &mw);
		text_printf(out, "0x%x\n", mw.rkey);
	} else {
		obj->ops->query_mr(obj->mr, &mr);
		text_printf(out, "0x%x\n", which == OBJ_LKEY ? mr.lkey : mr.rkey);
	}
	return 0;
}

static ssize_t read_text(struct obj_open *open, void *buf, size_t size, off_t off)
{
	int err;

	if (off < 0)
		return -EINVAL;
	if (!off) {
		text_free(&open->text);
		err = print_text(open->reader.obj, open->reader.which, &open->text);
		if (err)
			return err;
		if (open->text.failed)
			return -ENOMEM;
	}
	return read_bytes(open->text.data, open->text.len, buf, size, off);
}

static ssize_t write_data(const struct obj *obj, const void *buf, size_t size, off_t off)
{
	if (off < 0)
		return -EINVAL;
	if ((uint64_t)off >= obj->mem->size)
		return size ? -ENOSPC : 0;
	if (size > obj->mem->size - off)
		size = obj->mem->size - off;
	memcpy((uint8_t *)obj->mem->base + off, buf, size);
	return size;
}

/* The descriptor of the open may be closed by now, and its number something else's. */
static ssize_t read_ring(const struct obj *obj, enum obj_file which, void *buf, size_t size,
			 off_t off)
{
	struct ibfs_ring ring;
	ssize_t n;
	int err = find_ring(obj, which, &ring);

	if (err)
		return err;
	if (off < 0)
		return -EINVAL;
	if ((uint64_t)off >= ring.size)
		return 0;
	if (size > ring.size - off)
		size = ring.size - off;
	n = pread(ring.fd, buf, size, (off_t)(ring.off + off));
	return n < 0 ? -errno : n;
}

static ssize_t obj_file_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off)
{
	struct obj_open *open = file->priv;
	struct obj *obj = open->reader.obj;

	if (obj->gone && open->reader.which != OBJ_STATUS)
		return -EIO;
	obj_begins(obj->ibfs);
	if (is_queue(open->reader.which))
		return obj->made ? lineq_read(&open->reader.q, req, buf, size) : -ENXIO;
	if (open->reader.which == OBJ_SEND)
		return -EINVAL;
	if (!is_mapped(open->reader.which) && open->reader.which != OBJ_RECV)
		return read_text(open, buf, size, off);
	if (!obj->made)
		return -ENXIO;
	if (open->reader.which == OBJ_RECV)
		return msg_read(obj, file, req, buf, size);
	if (open->reader.which == OBJ_DATA)
		return read_bytes(obj->mem->base, obj->mem->size, buf, size, off);
	return read_ring(obj, open->reader.which, buf, size, off);
}

static ssize_t write_limit(struct obj *obj, const char *text, size_t len)
{
	struct ibv_srq_attr attr = { 0 };
	char copy[24];
	uint64_t value;
	int err;

	if (len && text[len - 1] == '\n')
		len--;
	snprintf(copy, sizeof(copy), "%.*s", (int)len, text);
	if (len >= sizeof(copy) || parse_u64(copy, UINT32_MAX, &value))
		return obj_fail(obj, EINVAL, "limit: expected a number");
	attr.srq_limit = value;
	err = obj->ops->modify_srq(obj->srq, &attr, IBV_SRQ_LIMIT);
	return err ? obj_fail(obj, -err, "limit: more than the queue holds") : 0;
}

static int ring_bell(struct obj *obj)
{
	if (obj->kind == OBJ_QP)
		return obj->ops->doorbell(obj->qp);
	if (obj->kind == OBJ_SRQ && obj->ops->srq_doorbell)
		return obj->ops->srq_doorbell(obj->srq);
	return -EINVAL;
}

static ssize_t obj_file_write(struct file *file, struct fs_req *req, const void *buf, size_t size,
			      off_t off)
{
	struct obj_open *open = file->priv;
	struct obj *obj = open->reader.obj;
	ssize_t err;

	if (obj->gone)
		return -EIO;
	obj_begins(obj->ibfs);
	if (open->reader.which == OBJ_CTL || open->reader.which == OBJ_POST)
		return obj_ctl(obj, req, buf, size, open->reader.which);
	if (!obj->made)
		return -ENXIO;
	switch (open->reader.which) {
	case OBJ_DATA:
		return write_data(obj, buf, size, off);
	case OBJ_LIMIT:
		err = write_limit(obj, buf, size);
		return err ? err : (ssize_t)size;
	case OBJ_SEND:
		return msg_write(obj, req, buf, size);
	case OBJ_SQ:
	case OBJ_RQ:
	case OBJ_RING:
		err = ring_bell(obj);
		return err ? err : (ssize_t)size;
	default:
		return -EINVAL;
	}
}

static unsigned int obj_file_poll(struct file *file)
{
	struct obj_open *open = file->priv;

	if (open->reader.obj->gone)
		return POLLERR | POLLHUP;
	if (is_queue(open->reader.which))
		return lineq_poll(&open->reader.q);
	if (open->reader.which == OBJ_RECV)
		return msg_poll(open->reader.obj);
	return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;
}

const struct file_ops obj_file_ops = {
	.open = obj_file_open,
	.release = obj_file_release,
	.read = obj_file_read,
	.write = obj_file_write,
	.poll = obj_file_poll,
};

const struct file_ops obj_clone_ops = {
	.open = clone_open,
	.release = obj_file_release,
	.read = obj_file_read,
	.write = obj_file_write,
	.poll = obj_file_poll,
};
