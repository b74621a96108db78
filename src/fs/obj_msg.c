/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * qp/N/send and qp/N/recv: a write sends one message, a read takes one. The
 * engine tells of their requests' ends here (struct ibfs_cqe), not in the CQ: a
 * client may have that mapped, and write what it likes.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/obj.h"

#define RECV_ROOM	65536U
#define GRH_ROOM	40

struct message {
	struct ibfs_cqe cqe;		/* first */
	struct message *prev, *next;	/* of qp->sends */
	struct obj *qp;
	bool ended;			/* then: */
	enum ibv_wc_status status;
	uint32_t len;			/* of one that came */
	struct memory *mem;		/* NULL: it went inline */
	struct ibfs_mr *mr;
	uint32_t lkey;
};

static void msg_ended(struct task *task);

/* In the engine's midst: the rest is the task's. */
static void on_end(struct ibfs_cqe *cqe, const struct ibfs_wc *wc)
{
	struct message *msg = (struct message *)cqe;
	struct obj *qp = msg->qp;

	msg->ended = true;
	msg->status = wc->status;
	msg->len = wc->byte_len;
	qp->ended.fn = msg_ended;
	task_queue(qp->ibfs->tasks, &qp->ended);
}

static void message_free(struct obj *qp, struct message *msg)
{
	if (!msg)
		return;
	if (msg->mr)
		qp->ops->dereg_mr(msg->mr);
	memory_put(msg->mem);
	free(msg);
}

static struct message *message_new(struct obj *qp)
{
	struct message *msg = calloc(1, sizeof(*msg));

	if (msg)
		*msg = (struct message){ .cqe.done = on_end, .qp = qp };
	return msg;
}

/* One with size bytes of memory, registered. */
static struct message *message_mapped(struct obj *qp, const struct fs_req *req, size_t size)
{
	struct message *msg = message_new(qp);
	struct ibfs_mr_init init = { .length = size, .access = IBV_ACCESS_LOCAL_WRITE };
	struct ibfs_qp_init made;
	struct ibfs_mr_attr mr;
	struct ibv_qp_attr attr;
	uint32_t qpn;
	int err;

	if (!msg)
		return NULL;
	qp->ops->query_qp(qp->qp, &attr, &made, &qpn);
	msg->mem = init.mem = obj_memory(qp, req, size, &err);
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

/* What is small goes inline, and needs no memory. */
static int send_post(struct obj *qp, struct message *msg, const void *buf, size_t size)
{
	struct ibv_sge sge = { 0, (uint32_t)size, msg->lkey };
	struct ibfs_wr wr = { .wr_cqe = &msg->cqe, .opcode = IBFS_WR_SEND, .sg_list = &sge,
			      .num_sge = 1 };

	if (msg->mem) {
		memcpy(msg->mem->base, buf, size);
	} else {
		wr.send_flags = IBV_SEND_INLINE;
		wr.inline_data = buf;
		wr.inline_len = (uint32_t)size;
	}
	return qp->ops->post_send(qp->qp, &wr);
}

ssize_t msg_write(struct obj *qp, const struct fs_req *req, const void *buf, size_t size)
{
	unsigned int max_inline, type = qp_kind(qp, &max_inline);
	struct message *msg;
	int err;

	if (type != IBV_QPT_RC && type != IBV_QPT_UC)
		return obj_fail(qp, EINVAL, "send: only of RC and UC QPs; use post");
	msg = size <= max_inline ? message_new(qp) : message_mapped(qp, req, size);
	err = msg ? send_post(qp, msg, buf, size) : -ENOBUFS;
	if (err) {
		message_free(qp, msg);
		return send_refused(qp, err);
	}
	DL_APPEND(qp->sends, msg);
	return size;
}

static int recv_post(struct obj *qp, const struct fs_req *req)
{
	struct ibv_sge sge;
	struct ibfs_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	int err;

	if (!qp->recv_buf)
		qp->recv_buf = message_mapped(qp, req, RECV_ROOM);
	if (!qp->recv_buf)
		return obj_fail(qp, ENOMEM, "recv: no memory for it, or more than RLIMIT_MEMLOCK allows");
	sge = (struct ibv_sge){ 0, RECV_ROOM, qp->recv_buf->lkey };
	wr.wr_cqe = &qp->recv_buf->cqe;
	err = qp->ops->post_recv(qp->qp, &wr);
	if (err)
		return obj_fail(qp, -err, "recv: the QP takes no receive request");
	qp->recv_posted = true;
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

static void recv_done(struct obj *qp, struct message *msg)
{
	struct fs_req *req;
	const void *data = NULL;
	ssize_t n;

	msg->ended = qp->recv_posted = false;
	qp->recv_filled = true;
	qp->recv_failed = msg->status != IBV_WC_SUCCESS;
	qp->recv_len = msg->len < RECV_ROOM ? msg->len : RECV_ROOM;
	if (qp->recv_failed)
		obj_fail(qp, EIO, "recv: %s", wc_status_name(msg->status));
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

static void send_done(struct obj *qp, struct message *msg)
{
	if (msg->status)
		obj_fail(qp, EIO, "send: %s", wc_status_name(msg->status));
	DL_DELETE(qp->sends, msg);
	message_free(qp, msg);
}

/* Sends end in order. */
static void msg_ended(struct task *task)
{
	struct obj *qp = (struct obj *)((char *)task - offsetof(struct obj, ended));

	while (qp->sends && qp->sends->ended)
		send_done(qp, qp->sends);
	if (qp->recv_buf && qp->recv_buf->ended)
		recv_done(qp, qp->recv_buf);
}

void msg_free(struct obj *qp)
{
	struct message *msg, *tmp;

	waitq_fail(&qp->recv_readers, -EIO);
	DL_FOREACH_SAFE(qp->sends, msg, tmp)
		message_free(qp, msg);
	message_free(qp, qp->recv_buf);
	qp->sends = qp->recv_buf = NULL;
	qp->recv_posted = qp->recv_filled = false;
	task_cancel(qp->ibfs->tasks, &qp->ended);
}
