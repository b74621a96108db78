/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp/N/send and qp/N/recv: a write sends one message, a read takes one. Their
 * requests are told by their wr_id's top bit, their completions are taken out
 * of the CQ here, and what stood before them is kept for `wc`.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/obj.h"

#define OURS		(1ULL << 63)
#define RECV_ROOM	65536U
#define GRH_ROOM	40

struct message {
	struct message *prev, *next;
	uint64_t id;
	struct memory *mem;
	struct ibfs_mr *mr;
	uint32_t lkey;
	uint64_t pinned;		/* counted on the owner's account */
};

static void message_free(struct obj *qp, struct message *msg)
{
	if (!msg)
		return;
	if (msg->mr)
		qp->ops->dereg_mr(msg->mr);
	pin_drop(qp, msg->pinned);
	memory_put(msg->mem);
	free(msg);
}

static struct message *message_new(struct obj *qp, const struct fs_req *req, size_t size)
{
	struct message *msg = calloc(1, sizeof(*msg));
	struct ibfs_mr_init init = { .length = size, .access = IBV_ACCESS_LOCAL_WRITE };
	struct ibfs_qp_init made;
	struct ibfs_mr_attr mr;
	struct ibv_qp_attr attr;
	uint32_t qpn;

	if (!msg)
		return NULL;
	qp->ops->query_qp(qp->qp, &attr, &made, &qpn);
	if (!pin_add(qp, req, size))
		msg->pinned = size;
	msg->mem = init.mem = msg->pinned ? memory_own(size) : NULL;
	if (!msg->mem || !made.pd || qp->ops->reg_mr(made.pd, &init, &msg->mr)) {
		message_free(qp, msg);
		return NULL;
	}
	qp->ops->query_mr(msg->mr, &mr);
	msg->lkey = mr.lkey;
	return msg;
}

static unsigned int qp_kind(const struct obj *qp, unsigned int *max_inline)
{
	struct ibfs_qp_init init;
	struct ibv_qp_attr attr;
	uint32_t qpn;

	qp->ops->query_qp(qp->qp, &attr, &init, &qpn);
	*max_inline = init.cap.max_inline_data;
	return init.type;
}

static int send_refused(struct obj *qp, int err)
{
	if (err == -ENOBUFS)
		return obj_fail(qp, ENOMEM, "send: no memory for it, or more than RLIMIT_MEMLOCK allows");
	return obj_fail(qp, -err, "send: %s", err == -ENOMEM ? "the queue is full" :
			"the QP's state or type doesn't allow it");
}

/* What is small goes inline, and nothing has to be waited for. */
static int send_inline(struct obj *qp, const void *buf, size_t size)
{
	struct ibfs_wr wr = { .wr_id = qp->next_wr, .opcode = IBFS_WR_SEND,
			      .send_flags = IBV_SEND_INLINE, .inline_data = buf, .inline_len = size };

	return qp->ops->post_send(qp->qp, &wr);
}

static int send_copy(struct obj *qp, const struct fs_req *req, const void *buf, size_t size)
{
	struct message *msg = message_new(qp, req, size);
	struct ibv_sge sge;
	struct ibfs_wr wr = { .opcode = IBFS_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
			      .sg_list = &sge, .num_sge = 1 };
	int err;

	if (!msg)
		return -ENOBUFS;
	memcpy(msg->mem->base, buf, size);
	sge = (struct ibv_sge){ 0, size, msg->lkey };
	msg->id = wr.wr_id = OURS | qp->next_wr;
	err = qp->ops->post_send(qp->qp, &wr);
	if (err) {
		message_free(qp, msg);
		return err;
	}
	DL_APPEND(qp->sends, msg);
	qp->scq->internal++;
	return 0;
}

ssize_t msg_write(struct obj *qp, const struct fs_req *req, const void *buf, size_t size)
{
	unsigned int max_inline, type = qp_kind(qp, &max_inline);
	int err;

	if (type != IBV_QPT_RC && type != IBV_QPT_UC)
		return obj_fail(qp, EINVAL, "send: only of RC and UC QPs; use post");
	err = size <= max_inline ? send_inline(qp, buf, size) : send_copy(qp, req, buf, size);
	if (err)
		return send_refused(qp, err);
	qp->next_wr++;
	return size;
}

static int recv_post(struct obj *qp, const struct fs_req *req)
{
	struct ibv_sge sge;
	struct ibfs_recv_wr wr = { .wr_id = OURS, .sg_list = &sge, .num_sge = 1 };
	int err;

	if (!qp->recv_buf)
		qp->recv_buf = message_new(qp, req, RECV_ROOM);
	if (!qp->recv_buf)
		return obj_fail(qp, ENOMEM, "recv: no memory for it, or more than RLIMIT_MEMLOCK allows");
	sge = (struct ibv_sge){ 0, RECV_ROOM, qp->recv_buf->lkey };
	err = qp->ops->post_recv(qp->qp, &wr);
	if (err)
		return obj_fail(qp, -err, "recv: the QP takes no receive request");
	qp->recv_posted = true;
	qp->rcq->internal++;
	return 0;
}

/* The message that came, or why none did; the rest of a longer one than is asked for is lost. */
static ssize_t recv_take(struct obj *qp, size_t size, const void **data)
{
	unsigned int max_inline;
	uint32_t skip = qp_kind(qp, &max_inline) == IBV_QPT_UD ? GRH_ROOM : 0;
	uint32_t len = qp->recv_len - (qp->recv_len < skip ? qp->recv_len : skip);

	qp->recv_filled = false;
	if (qp->recv_failed)
		return -EIO;
	*data = (uint8_t *)qp->recv_buf->mem->base + skip;
	return len < size ? len : size;
}

ssize_t msg_read(struct obj *qp, struct file *file, struct fs_req *req, void *buf, size_t size)
{
	const void *data;
	ssize_t n;
	int err;

	if (!qp->recv_filled && !qp->recv_posted) {
		err = recv_post(qp, req);
		if (err)
			return err;
	}
	if (!qp->recv_filled || qp->recv_readers.head) {
		req->size = size;
		return file->flags & O_NONBLOCK ? -EAGAIN : waitq_add(&qp->recv_readers, req);
	}
	n = recv_take(qp, size, &data);
	if (n > 0)
		memcpy(buf, data, n);
	return n;
}

unsigned int msg_poll(const struct obj *qp)
{
	return qp->recv_filled ? POLLIN | POLLRDNORM : 0;
}

static void recv_done(struct obj *qp, const struct ibfs_wc *wc)
{
	struct fs_req *req;
	const void *data = NULL;
	ssize_t n;

	if (!qp->recv_posted)
		return;
	qp->recv_posted = false;
	qp->recv_filled = true;
	qp->recv_failed = wc->status != IBV_WC_SUCCESS;
	qp->recv_len = wc->byte_len < RECV_ROOM ? wc->byte_len : RECV_ROOM;
	if (qp->recv_failed)
		obj_fail(qp, EIO, "recv: %s", wc_status_name(wc->status));
	req = waitq_take(&qp->recv_readers);
	if (req) {
		n = recv_take(qp, req->size, &data);
		fs_reply(req, n, data, n > 0 ? n : 0);
	}
	/* The next one who waits wants a message of his own. */
	if (qp->recv_readers.head && !qp->recv_failed && recv_post(qp, qp->recv_readers.head))
		waitq_fail(&qp->recv_readers, -EIO);
	else if (qp->recv_failed)
		waitq_fail(&qp->recv_readers, -EIO);
	obj_wake(qp, OBJ_RECV);
}

static void send_done(struct obj *qp, const struct ibfs_wc *wc)
{
	struct message *msg;

	DL_SEARCH_SCALAR(qp->sends, msg, id, wc->wr_id);
	if (!msg)
		return;
	if (wc->status)
		obj_fail(qp, EIO, "send: %s", wc_status_name(wc->status));
	DL_DELETE(qp->sends, msg);
	message_free(qp, msg);
}

/* True: it was one of ours. */
bool msg_completion(struct obj *cq, const struct ibfs_wc *wc)
{
	struct obj *qp;

	if (!(wc->wr_id & OURS) || !cq->internal)
		return false;
	cq->internal--;
	qp = obj_by_qpn(cq->ibfs, cq->dev, obj_qpn_key(wc->qp_num, wc->port_num));
	if (!qp)
		return true;
	if (wc->wr_id == OURS)
		recv_done(qp, wc);
	else
		send_done(qp, wc);
	return true;
}

/* Room for one more, of as many as the CQ itself may hold: then it fills, and overruns, as ever. */
static bool kept_room(struct obj *cq)
{
	struct ibfs_cq_attr attr;
	struct ibfs_wc *kept;

	if (cq->kept_count < cq->kept_room)
		return true;
	cq->ops->query_cq(cq->cq, &attr);
	if (cq->kept_count >= (uint32_t)attr.cqe)
		return false;
	kept = realloc(cq->kept, (2 * cq->kept_room + 16) * sizeof(*kept));
	if (!kept)
		return false;
	cq->kept = kept;
	cq->kept_room = 2 * cq->kept_room + 16;
	return true;
}

/* Take what came out of the CQ as far as ours may be among it. */
static void msg_pump(struct task *task)
{
	struct obj *cq = (struct obj *)((char *)task - offsetof(struct obj, pump));
	struct ibfs_wc wc;

	while (cq->made && cq->internal && kept_room(cq) && cq->ops->poll_cq(cq->cq, 1, &wc) == 1)
		if (!msg_completion(cq, &wc))
			cq->kept[cq->kept_count++] = wc;
	obj_wake(cq, OBJ_WC);
}

void msg_arrived(struct obj *cq)
{
	cq->pump.fn = msg_pump;
	task_queue(cq->ibfs->tasks, &cq->pump);
}

bool msg_kept(struct obj *cq, struct ibfs_wc *wc)
{
	if (!cq->kept_count)
		return false;
	*wc = cq->kept[0];
	memmove(cq->kept, cq->kept + 1, --cq->kept_count * sizeof(*wc));
	return true;
}

void msg_free(struct obj *obj)
{
	struct message *msg, *tmp;

	waitq_fail(&obj->recv_readers, -EIO);
	if (obj->recv_posted)
		obj->rcq->internal--;
	DL_FOREACH_SAFE(obj->sends, msg, tmp) {
		obj->scq->internal--;
		message_free(obj, msg);
	}
	message_free(obj, obj->recv_buf);
	obj->sends = obj->recv_buf = NULL;
	obj->recv_posted = obj->recv_filled = false;
	if (obj->pump.fn)
		task_cancel(obj->ibfs->tasks, &obj->pump);
	free(obj->kept);
	obj->kept = NULL;
	obj->kept_count = obj->kept_room = 0;
}
