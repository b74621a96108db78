/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All devices of the verbs backend: which of the system's are wanted, a scan
 * every second for those that have come and gone, and the way by which threads
 * tell the loop. The scanning thread may get stuck as any other: scans end
 * then, what is there stays.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "backend/verbs/rdev.h"
#include "ibfs/conf.h"
#include "ibfs/thread.h"

/* A device that is there and can't be in the tree: told once, and left alone. */
struct refused {
	struct refused *prev, *next;
	char system[64];
};

struct rdevs {
	pthread_mutex_t lock;
	pthread_cond_t came;		/* a note */
	struct note *notes;
	unsigned int refs;
	bool closed;			/* the loop takes no more */
	struct ibfs *ibfs;		/* the loop's from here on */
	struct ev_loop *loop;
	ev_async async;
	ev_timer timer;
	struct hand *scanner;
	bool scanning, scanned;
	struct rdev *list;
	struct refused *refused;
	char why[160];			/* told last: why there is no device */
};

int thread_start(void *(*fn)(void *arg), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = thread_create(&thread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	return err;
}

struct rdevs *rdevs_get(struct rdevs *rdevs)
{
	pthread_mutex_lock(&rdevs->lock);
	rdevs->refs++;
	pthread_mutex_unlock(&rdevs->lock);
	return rdevs;
}

void rdevs_put(struct rdevs *rdevs)
{
	struct refused *refused, *next;
	struct note *note, *tmp;
	bool last;

	pthread_mutex_lock(&rdevs->lock);
	last = !--rdevs->refs;
	pthread_mutex_unlock(&rdevs->lock);
	if (!last)
		return;
	DL_FOREACH_SAFE(rdevs->notes, note, tmp)
		free(note);
	DL_FOREACH_SAFE(rdevs->refused, refused, next)
		free(refused);
	pthread_cond_destroy(&rdevs->came);
	pthread_mutex_destroy(&rdevs->lock);
	free(rdevs);
}

void note_send(struct rdevs *rdevs, struct note *note)
{
	note->rdevs = rdevs;
	pthread_mutex_lock(&rdevs->lock);
	if (rdevs->closed) {
		free(note);
	} else {
		DL_APPEND(rdevs->notes, note);
		pthread_cond_signal(&rdevs->came);
		ev_async_send(rdevs->loop, &rdevs->async);
	}
	pthread_mutex_unlock(&rdevs->lock);
}

struct ibfs *note_ibfs(const struct note *note)
{
	return note->rdevs->ibfs;
}

struct ibfs *rdevs_ibfs(const struct rdevs *rdevs)
{
	return rdevs->ibfs;
}

static void take_notes(struct rdevs *rdevs)
{
	struct note *notes, *note, *tmp;

	pthread_mutex_lock(&rdevs->lock);
	notes = rdevs->notes;
	rdevs->notes = NULL;
	pthread_mutex_unlock(&rdevs->lock);
	DL_FOREACH_SAFE(notes, note, tmp) {
		DL_DELETE(notes, note);
		note->fn(note);
	}
}

static void on_async(struct ev_loop *loop, ev_async *async, int revents)
{
	(void)loop;
	(void)revents;
	take_notes(async->data);
}

/* --- devices --- */

static struct rdev *rdev_by_system(const struct rdevs *rdevs, const char *system)
{
	struct rdev *rdev;

	DL_FOREACH(rdevs->list, rdev)
		if (!strcmp(rdev->system, system))
			return rdev;
	return NULL;
}

struct rdev *rdev_get(struct ibfs *ibfs, unsigned int num)
{
	struct rdev *rdev;

	DL_FOREACH(ibfs->rdevs->list, rdev)
		if (rdev->dev.num == num)
			return rdev;
	return NULL;
}

void rdevs_link(struct rdev *rdev)
{
	DL_APPEND(rdev->rdevs->list, rdev);
}

void rdevs_forget(struct rdev *rdev)
{
	DL_DELETE(rdev->rdevs->list, rdev);
}

/* What the configuration calls a device of the system, or the system's own name. */
static const char *tree_name(const struct conf *conf, const char *system)
{
	for (unsigned int i = 0; i < conf->num_devices; i++)
		if (conf->devices[i].verbs && !strcmp(conf->devices[i].node, system))
			return conf->devices[i].name;
	return system;
}

static void refuse(struct rdevs *rdevs, const char *system)
{
	struct refused *refused = calloc(1, sizeof(*refused));

	if (!refused)
		return;
	snprintf(refused->system, sizeof(refused->system), "%s", system);
	DL_APPEND(rdevs->refused, refused);
}

/* Those whose name is free now, or that have gone, are tried when they are seen next. */
static void forgive(struct rdevs *rdevs, const char *system, bool there)
{
	struct refused *refused, *tmp;

	DL_FOREACH_SAFE(rdevs->refused, refused, tmp) {
		if (strcmp(refused->system, system) != 0)
			continue;
		if (there && device_find(rdevs->ibfs, tree_name(rdevs->ibfs->conf, system)))
			continue;
		DL_DELETE(rdevs->refused, refused);
		free(refused);
	}
}

static void add_found(struct rdevs *rdevs, struct found *found)
{
	char system[sizeof(found->name)];
	const char *name;
	int err;

	memcpy(system, found->name, sizeof(system));
	name = tree_name(rdevs->ibfs->conf, system);
	err = rdev_add(rdevs, name, found);
	if (!err)
		ibfs_log(rdevs->ibfs, "device \"%s\" is the system's %s", name, system);
	else
		ibfs_log(rdevs->ibfs, "the system's device %s can't be \"%s\": %s", system, name,
			 err == -EEXIST ? "that name is taken" : strerror(-err));
	if (err)
		refuse(rdevs, system);
}

static void scan_ended(struct note *note)
{
	struct scan *scan = (struct scan *)note;
	struct rdevs *rdevs = note->rdevs;
	struct found *found, *tmp;

	rdevs->scanning = false;
	rdevs->scanned = true;
	for (unsigned int i = 0; i < scan->num_known; i++) {
		const struct known *known = &scan->known[i];
		struct rdev *rdev = rdev_by_system(rdevs, known->name);

		if (!rdev)
			forgive(rdevs, known->name, known->there);
		else if (!known->there)
			rdev_lost(rdev);
		else
			memcpy(rdev->dev.node_desc, known->node_desc, sizeof(known->node_desc));
	}
	DL_FOREACH_SAFE(scan->found, found, tmp) {
		DL_DELETE(scan->found, found);
		add_found(rdevs, found);
	}
	if (strcmp(rdevs->why, scan->why) != 0 && scan->why[0])
		ibfs_log(rdevs->ibfs, "%s", scan->why);
	memcpy(rdevs->why, scan->why, sizeof(rdevs->why));
	scan_free(scan);
}

static int fill_want(struct scan *scan, const struct conf *conf)
{
	scan->all = conf->verbs;
	if (!conf->num_devices)
		return 0;
	scan->want = calloc(conf->num_devices, sizeof(*scan->want));
	if (!scan->want)
		return -ENOMEM;
	for (unsigned int i = 0; i < conf->num_devices; i++)
		if (conf->devices[i].verbs)
			snprintf(scan->want[scan->num_want++], sizeof(*scan->want), "%s",
				 conf->devices[i].node);
	return 0;
}

static int fill_known(struct scan *scan, const struct rdevs *rdevs)
{
	const struct refused *refused;
	unsigned int count, others;
	struct rdev *rdev;

	DL_COUNT(rdevs->list, rdev, count);
	DL_COUNT(rdevs->refused, refused, others);
	if (!count && !others)
		return 0;
	scan->known = calloc(count + others, sizeof(*scan->known));
	if (!scan->known)
		return -ENOMEM;
	DL_FOREACH(rdevs->list, rdev) {
		struct known *known = &scan->known[scan->num_known++];

		memcpy(known->name, rdev->system, sizeof(known->name));
		memcpy(known->node_desc, rdev->dev.node_desc, sizeof(known->node_desc));
	}
	DL_FOREACH(rdevs->refused, refused)
		memcpy(scan->known[scan->num_known++].name, refused->system,
		       sizeof(refused->system));
	return 0;
}

struct scan_call {
	struct scan *scan;
	struct rdevs *rdevs;		/* a reference of its own */
};

static void scan_job(void *arg)
{
	const struct scan_call *call = arg;

	scan_run(call->scan);
	note_send(call->rdevs, &call->scan->note);
	rdevs_put(call->rdevs);
}

static int scan_start(struct rdevs *rdevs)
{
	struct scan_call call = { .scan = calloc(1, sizeof(*call.scan)) };

	if (!call.scan)
		return -ENOMEM;
	call.scan->note.fn = scan_ended;
	if (fill_want(call.scan, rdevs->ibfs->conf) || fill_known(call.scan, rdevs)) {
		scan_free(call.scan);
		return -ENOMEM;
	}
	call.rdevs = rdevs_get(rdevs);
	if (hand_post(rdevs->scanner, scan_job, &call, sizeof(call))) {
		rdevs_put(rdevs);
		scan_free(call.scan);
		return -ENOMEM;
	}
	rdevs->scanning = true;
	return 0;
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct rdevs *rdevs = timer->data;

	(void)loop;
	(void)revents;
	if (!rdevs->scanning)
		scan_start(rdevs);
}

/* --- start and stop --- */

/* The devices that are there are in the tree when it is mounted. */
static void first_scan(struct rdevs *rdevs)
{
	struct timespec until;
	int err = scan_start(rdevs);

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += START_MS / 1000;
	while (!err && !rdevs->scanned) {
		pthread_mutex_lock(&rdevs->lock);
		while (!err && !rdevs->notes)
			err = pthread_cond_timedwait(&rdevs->came, &rdevs->lock, &until);
		pthread_mutex_unlock(&rdevs->lock);
		take_notes(rdevs);
	}
	if (err)
		ibfs_log(rdevs->ibfs, "the system's RDMA devices don't answer yet");
}

static bool any_wanted(const struct conf *conf)
{
	unsigned int i;

	for (i = 0; i < conf->num_devices && !conf->devices[i].verbs; i++)
		;
	return conf->verbs || i < conf->num_devices;
}

int rdevs_start(struct ibfs *ibfs)
{
	struct rdevs *rdevs;

	if (!any_wanted(ibfs->conf))
		return 0;
	rdevs = calloc(1, sizeof(*rdevs));
	if (!rdevs)
		return -ENOMEM;
	/* libibverbs: what a device that has gone can't destroy any more is freed. */
	setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 1);
	rdevs->refs = 1;
	rdevs->ibfs = ibfs;
	rdevs->loop = ibfs->loop;
	pthread_mutex_init(&rdevs->lock, NULL);
	pthread_cond_init(&rdevs->came, NULL);
	rdevs->scanner = hand_new(rdevs);
	if (!rdevs->scanner) {
		rdevs_put(rdevs);
		return -ENOMEM;
	}
	ibfs->rdevs = rdevs;
	ev_async_init(&rdevs->async, on_async);
	rdevs->async.data = rdevs;
	ev_async_start(rdevs->loop, &rdevs->async);
	ev_timer_init(&rdevs->timer, on_timer, SCAN_SECONDS, SCAN_SECONDS);
	rdevs->timer.data = rdevs;
	ev_timer_start(rdevs->loop, &rdevs->timer);
	first_scan(rdevs);
	return 0;
}

void rdevs_stop(struct ibfs *ibfs)
{
	struct rdevs *rdevs = ibfs->rdevs;

	if (!rdevs)
		return;
	ibfs->rdevs = NULL;
	pthread_mutex_lock(&rdevs->lock);
	rdevs->closed = true;
	pthread_mutex_unlock(&rdevs->lock);
	ev_timer_stop(rdevs->loop, &rdevs->timer);
	ev_async_stop(rdevs->loop, &rdevs->async);
	hand_free(rdevs->scanner);
	rdevs_put(rdevs);
}
