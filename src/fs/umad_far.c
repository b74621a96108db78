/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes of umad that a front end's request doesn't tell all of.
 *
 * A read with too little room fails with ENOSPC and yet fills the buffer
 * (header and first segment), which no answer of FUSE can do: a helper thread
 * writes it into the caller's memory. And the kernel cuts a long read or write
 * into several requests: only the caller's system call tells its whole length,
 * on which success or failure depends. A long write's rest is fetched from the
 * caller at once, so that its error is the whole write's.
 *
 * The memory is what the caller itself told the kernel, in a system call on the file:
 * who opened that gets nothing by it. A request of another user comes of a page that
 * is mapped from the file, and has no such system call behind it.
 *
 * Helpers see only a job's own copies; what they find is used in the loop.
 */
#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include <ibfs/ibfs.h>

#include "fs/client.h"
#include "fs/client_mem.h"
#include "fs/tree.h"
#include "fs/umad.h"

/*
 * A helper may write to the caller's memory only while the caller waits for it;
 * a caller that gives up meanwhile waits for the helper, but not for ever.
 */
#define PATIENCE	1.0		/* seconds */

enum { JOB_LOOKS, JOB_WRITES, JOB_CANCELLED };

struct umad_job {
	struct umad_job *prev, *next;
	struct job job;
	atomic_int state;
	struct umad_file *uf;
	struct fs_req *req;
	struct client *client;
	size_t size;			/* of the front end's request */
	off_t off;
	/* a read's */
	struct umad_mad *mad;
	size_t need;			/* bytes for the whole MAD */
	/* a read's header and first segment; a write's message */
	uint8_t *data;
	size_t len;
	ev_timer patience;		/* runs when cancelled too late */
	/* what the helper found */
	int err;
	struct client_buf buf;
};

static struct umad_job *from_job(struct job *job)
{
	return (struct umad_job *)((char *)job - offsetof(struct umad_job, job));
}

/* --- pieces of a long read or write --- */

static void part_free(struct umad_file *uf, struct umad_part *part)
{
	DL_DELETE(uf->parts, part);
	if (part->mad)
		umad_mad_free(uf, part->mad);
	free(part);
}

/* The same thread's next request either goes on where the last one ended, or what is left is void. */
struct umad_part *umad_part_find(struct umad_file *uf, const struct fs_req *req, off_t off,
				 bool write)
{
	struct umad_part *part, *tmp;

	DL_FOREACH_SAFE(uf->parts, part, tmp) {
		if (part->tid != req->caller.pid || write == !!part->mad)
			continue;
		if (part->off == off)
			return part;
		part_free(uf, part);
	}
	return NULL;
}

static size_t part_next(struct umad_file *uf, struct umad_part *part, size_t size)
{
	if (size > part->left)
		size = part->left;
	part->off += (off_t)size;
	part->left -= size;
	if (part->data)
		part->data += size;
	if (!part->left)
		part_free(uf, part);
	return size;
}

size_t umad_part_read(struct umad_file *uf, struct umad_part *part, void *buf, size_t size)
{
	memcpy(buf, part->data, size < part->left ? size : part->left);
	return part_next(uf, part, size);
}

size_t umad_part_write(struct umad_file *uf, struct umad_part *part, size_t size)
{
	return part_next(uf, part, size);
}

static struct umad_part *part_new(const struct umad_job *job, size_t left)
{
	struct umad_part *part = calloc(1, sizeof(*part));

	if (!part)
		return NULL;
	part->tid = job->req->caller.pid;
	part->off = job->off + (off_t)job->size;
	part->left = left;
	DL_APPEND(job->uf->parts, part);
	return part;
}

/* --- jobs --- */

static void job_free(struct job *base)
{
	struct umad_job *job = from_job(base);

	client_put(job->client);
	free(job->data);
	free(job);
}

/* The loop is done with it, the helper may not be. */
static void detach(struct umad_job *job)
{
	ev_timer_stop(job->job.ibfs->loop, &job->patience);
	DL_DELETE(job->uf->jobs, job);
	if (job->mad)
		umad_requeue(job->uf, job->mad);
	job->mad = NULL;
}

static void give_up(struct umad_job *job)
{
	struct umad_file *uf = job->uf;
	struct fs_req *req = job->req;

	detach(job);
	offload_disown(&job->job);
	fs_reply(req, -EINTR, NULL, 0);
	umad_serve(uf);
}

/* The helper hangs in a page of the caller's that never comes: a kill must not wait for it. */
static void on_patience(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)loop;
	(void)revents;
	give_up(timer->data);
}

static bool cancel_job(struct fs_req *req)
{
	struct umad_job *job = req->priv;
	int state = JOB_LOOKS;

	if (atomic_compare_exchange_strong(&job->state, &state, JOB_CANCELLED)) {
		give_up(job);
		return true;
	}
	ev_timer_start(req->ibfs->loop, &job->patience);
	return false;
}

static struct umad_job *job_new(struct umad_file *uf, struct fs_req *req, size_t size, size_t len)
{
	struct umad_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->data = malloc(len);
	job->client = job->data ? client_new(req, NULL) : NULL;
	if (!job->client) {
		free(job->data);
		free(job);
		return NULL;
	}
	job->len = len;
	job->size = size;
	job->uf = uf;
	job->req = req;
	job->job.ibfs = req->ibfs;
	job->job.pid = req->caller.pid;
	job->job.uid = req->caller.uid;
	job->job.disowned = job_free;
	ev_timer_init(&job->patience, on_patience, PATIENCE, 0.);
	job->patience.data = job;
	return job;
}

/* From here on the request is the job's, or the job is gone. */
static ssize_t job_start(struct umad_job *job)
{
	struct umad_file *uf = job->uf;
	int ret = offload(&job->job);

	if (ret) {
		if (job->mad)
			umad_requeue(uf, job->mad);
		ret = ibfs_fail(job->job.ibfs, -ret, "%s/umad: no helper thread for user %u",
				uf->where, job->job.uid);
		job_free(&job->job);
		return ret;
	}
	DL_APPEND(uf->jobs, job);
	job->req->priv = job;
	job->req->cancel = cancel_job;
	return FS_PENDING;
}

void umad_far_close(struct umad_file *uf)
{
	struct umad_part *part, *next_part;
	struct umad_job *job, *next_job;

	DL_FOREACH_SAFE(uf->jobs, job, next_job) {
		atomic_store(&job->state, JOB_CANCELLED);
		offload_disown(&job->job);
		fs_reply(job->req, -EINTR, NULL, 0);
		detach(job);
	}
	DL_FOREACH_SAFE(uf->parts, part, next_part)
		part_free(uf, part);
}

/* --- read --- */

/* Helper. */
static void run_read(struct job *base)
{
	struct umad_job *job = from_job(base);
	int state = JOB_LOOKS;

	job->err = client_bind(job->client);
	if (!job->err)
		job->err = client_buf_find(&job->buf, job->client, &job->state);
	if (!job->err && (job->buf.write || job->buf.total < job->size))
		job->err = -ENOENT;
	if (job->err || job->buf.total >= job->need)
		return;
	if (!atomic_compare_exchange_strong(&job->state, &state, JOB_WRITES))
		return;
	job->err = client_buf_write(&job->buf, 0, job->data, job->len);
}

/* The whole system call has room: its first piece now. */
static bool read_long(struct umad_job *job)
{
	struct umad_part *part = part_new(job, job->need - job->size);
	const uint8_t *data;

	if (!part)
		return false;
	data = umad_pack(job->uf, job->mad);
	part->mad = job->mad;
	part->data = data + job->size;
	job->mad = NULL;
	fs_reply(job->req, (ssize_t)job->size, data, job->size);
	return true;
}

static void read_done(struct job *base)
{
	struct umad_job *job = from_job(base);
	struct umad_file *uf = job->uf;
	struct fs_req *req = job->req;
	bool fits = !job->err && job->buf.total >= job->need;
	int err = job->err == -EFAULT ? -EFAULT : -ENOSPC;

	if (fits && read_long(job)) {
		detach(job);
	} else {
		detach(job);
		fs_reply(req, fits ? -ENOMEM : err, NULL, 0);
	}
	job_free(base);
	umad_serve(uf);
}

ssize_t umad_far_read(struct umad_file *uf, struct fs_req *req, struct umad_mad *mad)
{
	size_t hdr = umad_hdr_size(uf);
	struct umad_job *job = NULL;
	int err = fs_same_user(req->file, req);

	if (!err && req->caller.pid)
		job = job_new(uf, req, req->size, hdr + UMAD_SEGMENT);
	if (!job) {
		umad_requeue(uf, mad);
		return err ? err : -ENOSPC;
	}
	job->mad = mad;
	job->need = hdr + mad->len;
	memcpy(job->data, &mad->hdr, hdr);
	memcpy(job->data + hdr, mad->data, UMAD_SEGMENT);
	job->job.run = run_read;
	job->job.done = read_done;
	return job_start(job);
}

/* --- write --- */

/* Helper. What can't be found is taken for a write of one request. */
static void run_write(struct job *base)
{
	struct umad_job *job = from_job(base);
	size_t total;
	uint8_t *data;

	job->err = client_bind(job->client);
	if (!job->err)
		job->err = client_buf_find(&job->buf, job->client, &job->state);
	if (job->err || !job->buf.write || job->buf.total <= job->len) {
		job->err = 0;
		return;
	}
	total = job->buf.total;
	data = total <= UMAD_MESSAGE_MAX ? realloc(job->data, total) : NULL;
	if (!data) {
		job->err = -ENOMEM;
		return;
	}
	job->data = data;
	job->err = client_buf_read(&job->buf, job->len, data + job->len, total - job->len);
	job->len = total;
}

static void write_done(struct job *base)
{
	struct umad_job *job = from_job(base);
	struct umad_part *part = NULL;
	ssize_t ret = job->err;

	if (!ret && job->len > job->size) {
		part = part_new(job, job->len - job->size);
		ret = part ? 0 : -ENOMEM;
	}
	if (!ret)
		ret = umad_file_send(job->uf, job->data, job->len);
	if (ret < 0 && part)
		part_free(job->uf, part);
	fs_reply(job->req, ret < 0 ? ret : (ssize_t)job->size, NULL, 0);
	detach(job);
	job_free(base);
}

ssize_t umad_far_write(struct umad_file *uf, struct fs_req *req, const void *buf, size_t size,
		       off_t off)
{
	int err = fs_same_user(req->file, req);
	struct umad_job *job;

	if (err)
		return err;
	job = job_new(uf, req, size, size);
	if (!job)
		return -ENOMEM;
	job->off = off;
	memcpy(job->data, buf, size);
	job->job.run = run_write;
	job->job.done = write_done;
	return job_start(job);
}
