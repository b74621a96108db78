/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who opens a file: found out by a helper while the opener waits, for later requests
 * to be compared with.
 */
#include <errno.h>
#include <stdlib.h>

#include <ibfs/fs.h>
#include <ibfs/ibfs.h>

#include "fs/client.h"

struct learn {
	struct job job;
	struct fs_req *req;
	struct client *client;
	struct client_id *to;
};

static struct learn *from_job(struct job *job)
{
	return (struct learn *)((char *)job - offsetof(struct learn, job));
}

static void learn_free(struct job *job)
{
	struct learn *learn = from_job(job);

	client_put(learn->client);
	free(learn);
}

static void learn_run(struct job *job)
{
	client_look(from_job(job)->client);
}

static void learn_done(struct job *job)
{
	struct learn *learn = from_job(job);
	struct fs_req *req = learn->req;

	*learn->to = learn->client->id;
	learn_free(job);
	fs_reply(req, 0, NULL, 0);
}

static bool learn_cancel(struct fs_req *req)
{
	struct learn *learn = req->priv;

	offload_disown(&learn->job);
	fs_reply(req, -EINTR, NULL, 0);
	return true;
}

static struct learn *learn_new(struct fs_req *req, struct client_id *id)
{
	struct learn *learn = calloc(1, sizeof(*learn));

	if (!learn)
		return NULL;
	learn->client = client_new(req, id);
	if (!learn->client) {
		free(learn);
		return NULL;
	}
	learn->req = req;
	learn->to = id;
	learn->job = (struct job){
		.ibfs = req->ibfs, .pid = req->caller.pid, .uid = req->caller.uid,
		.run = learn_run, .done = learn_done, .disowned = learn_free,
	};
	return learn;
}

ssize_t client_learn(struct fs_req *req, struct client_id *id)
{
	struct learn *learn;
	int err;

	if (!req->caller.pid)
		return 0;
	learn = learn_new(req, id);
	if (!learn)
		return -ENOMEM;
	err = offload(&learn->job);
	if (err) {
		learn_free(&learn->job);
		return ibfs_fail(req->ibfs, -err, "open: no helper thread for user %u", req->caller.uid);
	}
	req->priv = learn;
	req->cancel = learn_cancel;
	return FS_PENDING;
}
