/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FUSE: a request's life. Most are answered at once, and use the same struct
 * front_req over and over; those that wait keep theirs.
 */
#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "fs/fuse_front.h"

static struct front_req *req_get(struct fuse_front *front, fuse_req_t fuse)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(fuse);
	struct front_req *req = front->spare;

	if (req) {
		LL_DELETE(front->spare, req);
	} else {
		req = calloc(1, sizeof(*req));
		if (!req)
			return NULL;
		req->front = front;
		req->req.ibfs = front->ibfs;
	}
	req->fuse = fuse;
	req->waits = req->asked = false;
	req->req.began = 0;
	req->req.cred = (struct fs_cred){ .uid = ctx->uid, .gid = ctx->gid };
	req->req.caller = (struct fs_caller){ .pid = ctx->pid, .uid = ctx->uid, .gid = ctx->gid };
	return req;
}

void front_req_put(struct front_req *req)
{
	if (req->waits)
		DL_DELETE(req->front->waiting, req);
	free(req->name);
	req->name = NULL;
	LL_PREPEND(req->front->spare, req);
}

/* fs' answer to a request that waited. */
static void late_reply(struct fs_req *fs_req, ssize_t result, const void *data, size_t len)
{
	struct front_req *req = (struct front_req *)fs_req;

	req->answer(req, result, data, len);
}

static void interrupted(fuse_req_t fuse, void *priv)
{
	struct front_req *req = priv;

	(void)fuse;
	fs_cancel(&req->req);
}

void front_req_wait(struct front_req *req)
{
	if (!req->waits)
		DL_APPEND(req->front->waiting, req);
	req->waits = true;
	/* libfuse calls the function at once, with a lock held, if it is too late. */
	if (fuse_req_interrupted(req->fuse))
		fs_cancel(&req->req);
	else
		fuse_req_interrupt_func(req->fuse, interrupted, req);
}

void front_req_done(struct front_req *req, ssize_t result, const void *data, size_t len)
{
	if (result == FS_PENDING)
		front_req_wait(req);
	else
		req->answer(req, result, data, len);
}

struct front_req *front_req_start(fuse_req_t fuse, struct front_file *file,
				  void (*answer)(struct front_req *req, ssize_t result,
						 const void *data, size_t len))
{
	struct front_req *req = req_get(fuse_req_userdata(fuse), fuse);

	if (!req) {
		fuse_reply_err(fuse, ENOMEM);
		return NULL;
	}
	req->answer = answer;
	req->req.reply = late_reply;
	req->file = file;
	return req;
}

/* One more that wasn't asked yet: cancelling one may end others. */
static bool cancel_one(struct fuse_front *front)
{
	struct front_req *req;

	DL_SEARCH_SCALAR(front->waiting, req, asked, false);
	if (!req)
		return false;
	req->asked = true;
	fs_cancel(&req->req);
	return true;
}

void front_reqs_cancel(struct fuse_front *front)
{
	while (cancel_one(front))
		;
}

void front_reqs_free(struct fuse_front *front)
{
	struct front_req *req, *next;

	DL_FOREACH_SAFE(front->waiting, req, next)
		front_req_put(req);
	LL_FOREACH_SAFE(front->spare, req, next)
		free(req);
}
