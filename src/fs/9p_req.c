/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One 9P message: what it asks is done by the function that the table names;
 * here is how it is answered, now or later, and how Tflush ends what waits.
 *
 * Rflush comes after the answer of what it flushes, or there is no such answer
 * (flush(5)): a request that its holder lets go of is dropped without one, of
 * another that is too late to stop the answer is awaited.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/9p_server.h"

enum {
	SPARE = 256,			/* requests that are kept for the next */
	USERS_SHARE = 4,		/* a quarter of what may wait */
};

/* What a message asks for: a function, or why it is always refused. */
static const struct {
	p9_op *run;
	int refused;
	const char *why;
} ops[P9_TYPES] = {
	[P9_TVERSION] = { .run = p9_version },
	/* With this number diod's clients go on without. */
	[P9_TAUTH] = { NULL, ENOENT, "authentication is not required" },
	[P9_TATTACH] = { .run = p9_attach },
	[P9_TWALK] = { .run = p9_walk },
	[P9_TCLUNK] = { .run = p9_clunk },
	[P9_TLOPEN] = { .run = p9_lopen },
	[P9_TOPEN] = { .run = p9_open },
	[P9_TLCREATE] = { .run = p9_lcreate },
	[P9_TCREATE] = { .run = p9_create },
	[P9_TREAD] = { .run = p9_read },
	[P9_TWRITE] = { .run = p9_write },
	[P9_TFSYNC] = { .run = p9_fsync },
	[P9_TREADDIR] = { .run = p9_readdir },
	[P9_TMKDIR] = { .run = p9_mkdir },
	[P9_TUNLINKAT] = { .run = p9_unlinkat },
	[P9_TREMOVE] = { .run = p9_remove },
	[P9_TGETATTR] = { .run = p9_getattr },
	[P9_TSETATTR] = { .run = p9_setattr },
	[P9_TSTAT] = { .run = p9_stat },
	[P9_TWSTAT] = { .run = p9_wstat },
	[P9_TSTATFS] = { .run = p9_statfs },
	/* What the tree has no use for, with FUSE's errors. */
	[P9_TSYMLINK] = { .refused = EPERM },
	[P9_TMKNOD] = { .refused = EPERM },
	[P9_TRENAME] = { .refused = EPERM },
	[P9_TRENAMEAT] = { .refused = EPERM },
	[P9_TLINK] = { .refused = EPERM },
	[P9_TREADLINK] = { .refused = EINVAL },
	/* Linux takes this as: this file system has none (getxattr(2), listxattr(2)). */
	[P9_TXATTRWALK] = { .refused = EOPNOTSUPP },
	[P9_TXATTRCREATE] = { .refused = EOPNOTSUPP },
	/* An Rlock with an error in it would make Linux say so: ENOLCK (flock(2), fcntl(2)). */
	[P9_TLOCK] = { .refused = ENOLCK },
	[P9_TGETLOCK] = { .refused = ENOLCK },
};

static struct p9_req *req_get(struct p9_conn *conn, uint8_t type, uint16_t tag)
{
	struct p9_server *server = conn->server;
	struct p9_req *req = server->spare;

	if (req) {
		LL_DELETE(server->spare, req);
		server->num_spare--;
	} else {
		req = malloc(sizeof(*req));
	}
	if (req)
		*req = (struct p9_req){ .conn = conn, .type = type, .tag = tag,
					.req.ibfs = server->ibfs };
	return req;
}

static void req_put(struct p9_req *req)
{
	struct p9_server *server = req->conn->server;

	charge_give(&req->conn->charge, ACCOUNT_MEMORY, req->paid);
	free(req->again);
	req->again = NULL;
	if (server->num_spare >= SPARE) {
		free(req);
		return;
	}
	LL_PREPEND(server->spare, req);
	server->num_spare++;
}

static void answer(struct p9_conn *conn, const struct p9_msg *out)
{
	/* A stat with the longest names, or a reason, is the longest. */
	uint8_t *at = p9_conn_room(conn, P9_MIN_MSIZE);

	if (at)
		p9_conn_sent(conn, p9_encode(out, at, P9_MIN_MSIZE));
}

void p9_answer_data(struct p9_conn *conn, uint8_t type, uint16_t tag, const void *data, size_t len)
{
	uint8_t *at = p9_conn_room(conn, P9_DATA_HEADER + len);

	if (!at)
		return;
	p9_put_header(at, P9_DATA_HEADER + len, type, tag);
	p9_put_u32(at + P9_HEADER, len);
	if (len)
		memcpy(at + P9_DATA_HEADER, data, len);
	p9_conn_sent(conn, P9_DATA_HEADER + len);
}

/* why: in words, or NULL. 9P2000 has nothing but words, 9P2000.L nothing but a number. */
static void answer_error(struct p9_conn *conn, uint16_t tag, int err, const char *why)
{
	struct p9_msg out = { .tag = tag };

	if (conn->dialect == P9_DOTL) {
		out.type = P9_RLERROR;
		out.ecode = err;
	} else {
		out.type = P9_RERROR;
		out.name.text = why ? why : strerror(err);
		out.name.len = strnlen(out.name.text, P9_MIN_MSIZE - P9_HEADER - 2);
	}
	answer(conn, &out);
}

/* The reason of what failed just now, if any was given since the count was `before`. */
static const char *reason(const struct ibfs *ibfs, uint64_t before, int err)
{
	return ibfs->failed.count != before && ibfs->failed.err == err ? ibfs->failed.why : NULL;
}

/* It was answered, or nobody wants the answer: now the Tflushes that wait for it. */
static void req_end(struct p9_req *req)
{
	struct p9_conn *conn = req->conn;
	struct p9_req *flush, *tmp;
	struct p9_msg out = { .type = P9_RFLUSH };

	if (req->waits)
		HASH_DEL(conn->waiting, req);
	if (req->fid)
		p9_fid_put(req->fid);
	DL_FOREACH_SAFE(req->flushes, flush, tmp) {
		out.tag = flush->tag;
		if (!flush->silent)
			answer(conn, &out);
		req_end(flush);
	}
	req_put(req);
	if (!conn->waiting)
		p9_conn_idle(conn);
}

static void send_result(struct p9_req *req, ssize_t result, struct p9_msg *out, const char *why)
{
	if (result < 0)
		answer_error(req->conn, req->tag, -result, why);
	else if (result != P9_ANSWERED)
		answer(req->conn, out);
}

static void run_again(struct p9_req *req);

/* fs' answer to a request that waited. */
static void late_reply(struct fs_req *fs_req, ssize_t result, const void *data, size_t len)
{
	struct p9_req *req = (struct p9_req *)fs_req;
	struct p9_msg out = { .type = req->type + 1, .tag = req->tag };

	if (req->asks && !result && !req->silent && !req->flushed) {
		run_again(req);
		return;
	}
	if (req->type == P9_TWRITE)
		out.count = result;
	else if (req->type != P9_TREAD && !req->asks)
		result = p9_opened(req, result, &out);
	if (req->silent || (req->flushed && (result == -EINTR || req->asks))) {
		req_end(req);
		return;
	}
	if (req->type == P9_TREAD && result >= 0 && !req->asks) {
		p9_read_done(req, len);
		p9_answer_data(req->conn, P9_RREAD, req->tag, data, len);
	} else {
		send_result(req, result < 0 ? result : 0, &out, NULL);
	}
	req_end(req);
}

/* Bytes that stay as long as the request does. */
static int pay(struct p9_req *req, size_t bytes)
{
	int err = charge_take(&req->conn->charge, ACCOUNT_MEMORY, bytes);

	if (!err)
		req->paid += bytes;
	return err;
}

static unsigned int waiting_of(const struct p9_conn *conn, uid_t uid)
{
	const struct p9_req *req;
	unsigned int n = 0;

	for (req = conn->waiting; req; req = req->hh.next)
		n += req->req.cred.uid == uid;
	return n;
}

/* Where root acts for others, as a mount does, one of them doesn't have it all. */
static bool has_share(const struct p9_conn *conn, const struct fs_cred *cred)
{
	return !fs_privileged(&conn->peer->cred) || fs_privileged(cred) ||
	       waiting_of(conn, cred->uid) < conn->server->conf->tags / USERS_SHARE;
}

int p9_may_wait(struct p9_req *req, const struct p9_user *user)
{
	const struct p9_conn *conn = req->conn;
	unsigned int waiting = HASH_COUNT(conn->waiting);

	if (waiting < P9_WAITS_FREE && waiting < conn->server->conf->tags / USERS_SHARE)
		return 0;
	if (waiting < conn->server->conf->tags && has_share(conn, &user->cred))
		return req->paid ? 0 : pay(req, sizeof(*req));
	return ibfs_fail(req->req.ibfs, EAGAIN, "9p: %u requests wait already", waiting);
}

static void wait_for_reply(struct p9_req *req)
{
	req->waits = true;
	HASH_ADD(hh, req->conn->waiting, tag, sizeof(req->tag), req);
	if (req->fid)
		req->fid->refs++;
}

static struct p9_req *find_waiting(const struct p9_conn *conn, uint16_t tag)
{
	struct p9_req *req;

	HASH_FIND(hh, conn->waiting, &tag, sizeof(tag), req);
	return req;
}

static void flush(struct p9_conn *conn, const struct p9_msg *in)
{
	struct p9_req *old = find_waiting(conn, in->oldtag), *req;
	struct p9_msg out = { .type = P9_RFLUSH, .tag = in->tag };

	if (!old) {
		answer(conn, &out);
		return;
	}
	req = req_get(conn, in->type, in->tag);
	if (!req) {
		p9_conn_close(conn);
		return;
	}
	wait_for_reply(req);
	DL_APPEND(old->flushes, req);
	if (old->type == P9_TFLUSH)
		return;
	old->flushed = true;
	fs_cancel(&old->req);
}

/* The one that runs, for another time. */
static int keep_message(struct p9_req *req)
{
	const struct p9_buf *buf = &req->conn->in;
	const uint8_t *message = buf->data + buf->pos;
	size_t len = p9_get_u32(message);
	int err = pay(req, len);

	if (err)
		return err;
	req->again = malloc(len);
	if (!req->again)
		return -ENOMEM;
	memcpy(req->again, message, len);
	return 0;
}

void p9_act_as(struct p9_req *req, const struct p9_user *user)
{
	req->req.cred = user->cred;
	req->req.caller = (struct fs_caller){ .uid = user->cred.uid, .gid = user->cred.gid };
}

ssize_t p9_ready(struct p9_req *req, const struct p9_user *user, struct path dir)
{
	ssize_t ret;

	if (!(fs_flags(dir) & FS_ASKS))
		return 0;
	ret = p9_may_wait(req, user);
	if (!ret && !req->again)
		ret = keep_message(req);
	p9_act_as(req, user);
	if (!ret)
		ret = fs_ready(&req->req, dir);
	req->asks = ret == FS_PENDING;
	return ret;
}

/*
 * The message anew, with what is known now. Another request may be at work, that
 * this one's answer comes in the middle of: the scratch memory is that one's.
 */
static void run_again(struct p9_req *req)
{
	struct p9_server *server = req->conn->server;
	struct p9_msg in, out = { .type = req->type + 1, .tag = req->tag };
	uint64_t before = req->req.ibfs->failed.count;
	uint8_t *scratch = server->scratch;
	ssize_t ret = -ENOMEM;

	req->asks = false;
	if (req->fid)
		p9_fid_put(req->fid);
	req->fid = NULL;
	server->scratch = malloc(server->conf->msize);
	if (server->scratch && !p9_decode(req->again, p9_get_u32(req->again), &in))
		ret = ops[in.type].run(req, &in, &out);
	if (ret == FS_PENDING && req->fid)
		req->fid->refs++;
	if (ret != FS_PENDING)
		send_result(req, ret, &out, reason(req->req.ibfs, before, -ret));
	free(server->scratch);
	server->scratch = scratch;
	if (ret == FS_PENDING)
		return;
	/* Only one that waits holds its fid. */
	req->fid = NULL;
	req_end(req);
}

static void run(struct p9_conn *conn, const struct p9_msg *in)
{
	struct p9_msg out = { .type = in->type + 1, .tag = in->tag };
	struct p9_req *req = req_get(conn, in->type, in->tag);
	struct ibfs *ibfs = conn->server->ibfs;
	uint64_t before = ibfs->failed.count;
	ssize_t ret;

	if (!req) {
		answer_error(conn, in->tag, ENOMEM, NULL);
		return;
	}
	req->req.reply = late_reply;
	ret = ops[in->type].run(req, in, &out);
	if (ret == FS_PENDING) {
		wait_for_reply(req);
		return;
	}
	send_result(req, ret, &out, reason(ibfs, before, -ret));
	req_put(req);
}

/* Is there anything wrong with a message that its function needn't know of? */
static int check(const struct p9_conn *conn, const struct p9_msg *in, const char **why)
{
	if (!p9_is_request(in->type, conn->dialect) &&
	    (in->type != P9_TVERSION || conn->dialect)) {
		*why = conn->dialect ? "no such message in this version of the protocol" :
				       "Tversion comes first";
		return EOPNOTSUPP;
	}
	if (find_waiting(conn, in->tag) && in->type != P9_TVERSION) {
		*why = "this tag is in use";
		return EINVAL;
	}
	*why = ops[in->type].why;
	return ops[in->type].refused;
}

void p9_message(struct p9_conn *conn, const uint8_t *buf, size_t len)
{
	struct p9_msg in;
	const char *why;
	int err;

	/* Its tag can be known, so that the client hears of it. */
	if (p9_decode(buf, len, &in)) {
		answer_error(conn, p9_get_u16(buf + 5), p9_name(buf[4]) ? EPROTO : EOPNOTSUPP,
			     "not a message of 9P");
		return;
	}
	err = check(conn, &in, &why);
	if (err)
		answer_error(conn, in.tag, err, why);
	else if (in.type == P9_TFLUSH)
		flush(conn, &in);
	else
		run(conn, &in);
}

/* One more that can be and wasn't asked yet; cancelling one may end others. */
static bool cancel_one(struct p9_conn *conn, const struct p9_fid *fid)
{
	struct p9_req *req, *tmp;

	HASH_ITER(hh, conn->waiting, req, tmp) {
		if (req->asked || req->type == P9_TFLUSH || (fid && req->fid != fid))
			continue;
		req->asked = true;
		fs_cancel(&req->req);
		return true;
	}
	return false;
}

void p9_cancel_all(struct p9_conn *conn)
{
	struct p9_req *req, *tmp;

	HASH_ITER(hh, conn->waiting, req, tmp)
		req->silent = true;
	while (cancel_one(conn, NULL))
		;
}

void p9_cancel_fid(struct p9_conn *conn, const struct p9_fid *fid)
{
	/* Most clunks: nobody uses it but the table. */
	while (fid->refs > 1 && cancel_one(conn, fid))
		;
}

void p9_drop_waiting(struct p9_conn *conn)
{
	struct p9_req *req, *tmp;

	HASH_ITER(hh, conn->waiting, req, tmp) {
		HASH_DEL(conn->waiting, req);
		if (req->fid)
			p9_fid_put(req->fid);
		req_put(req);
	}
}
