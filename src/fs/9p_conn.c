/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of a 9P connection: cut into messages that 9p_req.c takes, answers
 * written as the client reads them. Never blocks, and never holds more than one
 * message that came and a bounded number of answers: who doesn't read its
 * answers isn't served further. Knows a message's length, nothing else of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "fs/9p_server.h"
#include "fs/tree.h"

enum {
	BUDGET = 64,			/* messages in one turn of the event loop */
	READ_AHEAD = 16 << 10,		/* of an empty connection's buffer */
	KEEP = 64 << 10,		/* a larger buffer goes when it is empty */
	BACKLOG = 64 << 10,		/* unread answers that stop further requests */
	/* Answers of requests that waited may come on top, at most this much. */
	MAX_BACKLOG = 16 << 20,
};

static void buf_free(struct p9_conn *conn, struct p9_buf *buf, size_t pad)
{
	if (buf->data)
		free(buf->data - pad);
	charge_give(&conn->charge, ACCOUNT_MEMORY, buf->size);
	*buf = (struct p9_buf){ .data = NULL };
}

static bool buf_room(struct p9_conn *conn, struct p9_buf *buf, size_t len, size_t pad)
{
	size_t size = buf->size ? buf->size : READ_AHEAD;
	uint8_t *data;

	if (buf->size - buf->len >= len)
		return true;
	while (size - buf->len < len)
		size *= 2;
	if (charge_take(&conn->charge, ACCOUNT_MEMORY, size - buf->size))
		return false;
	data = realloc(buf->data ? buf->data - pad : NULL, size + pad);
	if (!data) {
		charge_give(&conn->charge, ACCOUNT_MEMORY, size - buf->size);
		return false;
	}
	buf->data = data + pad;
	buf->size = size;
	return true;
}

/* All was used: the next byte comes at the start. */
static void buf_empty(struct p9_conn *conn, struct p9_buf *buf, size_t pad)
{
	buf->pos = buf->len = 0;
	if (buf->size > KEEP)
		buf_free(conn, buf, pad);
}

static size_t backlog(const struct p9_conn *conn)
{
	return conn->out.len - conn->out.pos;
}

/* The size of the message that is next, 0: not known yet; -EPROTO: there is no such. */
static ssize_t next_size(const struct p9_conn *conn)
{
	uint32_t size;

	if (conn->in.len - conn->in.pos < 4)
		return 0;
	size = p9_get_u32(conn->in.data + conn->in.pos);
	return size < P9_HEADER || size > conn->msize ? -EPROTO : (ssize_t)size;
}

static bool has_message(const struct p9_conn *conn)
{
	ssize_t size = next_size(conn);

	return size && (size < 0 || conn->in.len - conn->in.pos >= (size_t)size);
}

/* What the event loop has to look at now. */
static void watch(struct p9_conn *conn)
{
	struct ev_loop *loop = conn->server->ibfs->loop;
	int events = 0;

	if (!conn->closing && backlog(conn))
		events |= EV_WRITE;
	if (!conn->closing && backlog(conn) < BACKLOG && !has_message(conn))
		events |= EV_READ;
	if (ev_is_active(&conn->io) && conn->io.events == events)
		return;
	ev_io_stop(loop, &conn->io);
	ev_io_set(&conn->io, conn->fd, events);
	if (events)
		ev_io_start(loop, &conn->io);
}

static void flush_out(struct p9_conn *conn)
{
	struct p9_buf *out = &conn->out;
	ssize_t n;

	if (conn->out_taken)
		return;
	while (!conn->closing && backlog(conn)) {
		n = send(conn->fd, out->data + out->pos, backlog(conn), MSG_NOSIGNAL);
		if (n >= 0) {
			out->pos += n;
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR) {
			p9_conn_close(conn);
			return;
		}
	}
	buf_empty(conn, out, P9_PAD_OUT);
}

uint8_t *p9_conn_room(struct p9_conn *conn, size_t len)
{
	struct p9_buf *out = &conn->out;

	if (conn->closing)
		return NULL;
	if (out->pos && out->size - out->len < len) {
		memmove(out->data, out->data + out->pos, backlog(conn));
		out->len -= out->pos;
		out->pos = 0;
	}
	if (backlog(conn) + len > MAX_BACKLOG || !buf_room(conn, out, len, P9_PAD_OUT)) {
		ibfs_log(conn->server->ibfs, "9p: hung up on a client of uid %u: no room for its answers",
			 conn->peer->cred.uid);
		p9_conn_close(conn);
		return NULL;
	}
	return out->data + out->len;
}

void p9_conn_sent(struct p9_conn *conn, size_t len)
{
	conn->out.len += len;
	if (conn->in_turn && backlog(conn) < BACKLOG)
		return;
	flush_out(conn);
	if (!conn->in_turn)
		watch(conn);
}

void p9_conn_take_out(struct p9_conn *conn)
{
	conn->out = (struct p9_buf){ .data = NULL };
	conn->out_taken = true;
}

void p9_conn_give_out(struct p9_conn *conn, struct p9_buf out)
{
	struct p9_buf other = conn->out;
	size_t len = other.len - other.pos;
	uint8_t *at;

	conn->out = out;
	conn->out_taken = false;
	if (conn->closing)
		conn->out.pos = conn->out.len = 0;
	at = len ? p9_conn_room(conn, len) : NULL;
	if (at) {
		memcpy(at, other.data + other.pos, len);
		conn->out.len += len;
	}
	buf_free(conn, &other, P9_PAD_OUT);
}

/* As many messages as there are and as this turn allows. */
static void run_messages(struct p9_conn *conn)
{
	struct p9_buf *in = &conn->in;
	unsigned int budget = BUDGET;
	ssize_t size;

	conn->in_turn = true;
	while (budget-- && !conn->closing && backlog(conn) < BACKLOG && has_message(conn)) {
		size = next_size(conn);
		if (size < 0) {
			p9_conn_close(conn);
			break;
		}
		p9_message(conn, in->data + in->pos, size);
		in->pos += size;
	}
	flush_out(conn);
	conn->in_turn = false;
	if (in->pos == in->len) {
		buf_empty(conn, in, P9_PAD_IN);
	} else if (in->pos) {
		memmove(in->data, in->data + in->pos, in->len - in->pos);
		in->len -= in->pos;
		in->pos = 0;
	}
	if (!conn->closing && has_message(conn) && backlog(conn) < BACKLOG)
		task_queue(conn->server->ibfs->tasks, &conn->task);
	watch(conn);
}

/* Read what there is, growing with what has come, up to the one message that is next. */
static void read_in(struct p9_conn *conn)
{
	struct p9_buf *in = &conn->in;
	ssize_t n;

	if (!buf_room(conn, in, in->size ? 1 : READ_AHEAD, P9_PAD_IN)) {
		p9_conn_close(conn);
		return;
	}
	n = read(conn->fd, in->data + in->len, in->size - in->len);
	if (n > 0)
		in->len += n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		p9_conn_close(conn);
}

static void conn_io(struct ev_loop *loop, struct ev_io *w, int revents)
{
	struct p9_conn *conn = w->data;

	(void)loop;
	if (revents & EV_WRITE)
		flush_out(conn);
	if (revents & EV_READ && !conn->closing && !has_message(conn))
		read_in(conn);
	if (!conn->closing)
		run_messages(conn);
}

static void conn_task(struct task *task)
{
	struct p9_conn *conn = (struct p9_conn *)((char *)task - offsetof(struct p9_conn, task));

	if (!conn->closing) {
		run_messages(conn);
		return;
	}
	if (!conn->released) {
		conn->released = true;
		p9_cancel_all(conn);
		p9_fids_clunk(conn);
	}
	if (!conn->waiting)
		p9_conn_free(conn);
}

/* With as many requests as may wait before each of them is counted: p9_may_wait(). */
static int charge_conn(struct p9_conn *conn, const struct p9_user *peer)
{
	struct accounts *accounts = conn->server->ibfs->fs->accounts;
	int err = charge_begin(&conn->charge, accounts, &peer->cred, ACCOUNT_CONNECTIONS);

	if (!err)
		err = charge_take_all(&conn->charge, sizeof(*conn) + fs_groups_size(peer->cred.groups) +
				      P9_WAITS_FREE * sizeof(struct p9_req), 1, 0);
	if (err)
		charge_end(&conn->charge);
	return err;
}

struct p9_conn *p9_conn_new(struct p9_server *server, int fd, struct p9_user *peer, bool mapped)
{
	struct p9_conn *conn = calloc(1, sizeof(*conn));

	if (conn)
		conn->server = server;
	if (!conn || charge_conn(conn, peer)) {
		free(conn);
		close(fd);
		p9_user_put(peer);
		return NULL;
	}
	conn->fd = fd;
	conn->peer = peer;
	conn->mapped = mapped;
	conn->msize = server->conf->msize;
	conn->task.fn = conn_task;
	DL_APPEND(server->conns, conn);
	ev_io_init(&conn->io, conn_io, fd, EV_READ);
	conn->io.data = conn;
	ev_io_start(server->ibfs->loop, &conn->io);
	return conn;
}

void p9_conn_close(struct p9_conn *conn)
{
	if (conn->closing)
		return;
	conn->closing = true;
	ev_io_stop(conn->server->ibfs->loop, &conn->io);
	close(conn->fd);
	/* Not now: this may be deep inside of something that still uses a fid of it. */
	conn->out.pos = conn->out.len = 0;
	task_queue(conn->server->ibfs->tasks, &conn->task);
}

void p9_conn_idle(struct p9_conn *conn)
{
	if (conn->released)
		task_queue(conn->server->ibfs->tasks, &conn->task);
}

void p9_conn_free(struct p9_conn *conn)
{
	struct p9_server *server = conn->server;

	task_cancel(server->ibfs->tasks, &conn->task);
	buf_free(conn, &conn->in, P9_PAD_IN);
	buf_free(conn, &conn->out, P9_PAD_OUT);
	p9_user_put(conn->peer);
	DL_DELETE(server->conns, conn);
	charge_end(&conn->charge);
	free(conn);
}
