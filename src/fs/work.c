/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long work in pieces, fs/work.h. A prepare watcher does one piece in each turn
 * of the loop; an idle watcher, whose callback does nothing, keeps the loop from
 * sleeping meanwhile. Without work neither is active.
 */
#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <utlist.h>

#include <ibfs/ibfs.h>

#include "fs/work.h"

struct work_user {
	struct work_user *prev, *next;
	const struct account *account;
	struct work *work;		/* never NULL */
};

struct works {
	struct ev_loop *loop;
	struct ev_prepare prepare;
	struct ev_idle idle;
	struct work_user *users;	/* whose turn it is first */
	bool spent;			/* this turn of the loop had its piece */
};

static void watch(struct works *works)
{
	if (ev_is_active(&works->prepare))
		return;
	ev_prepare_start(works->loop, &works->prepare);
	ev_idle_start(works->loop, &works->idle);
}

static void unwatch(struct works *works)
{
	ev_prepare_stop(works->loop, &works->prepare);
	ev_idle_stop(works->loop, &works->idle);
}

/* A turn begins. */
static void prepare_cb(struct ev_loop *loop, struct ev_prepare *w, int revents)
{
	struct works *works = w->data;
	struct work_user *user = works->users;

	(void)loop;
	(void)revents;
	works->spent = user;
	if (!user) {
		unwatch(works);
		return;
	}
	DL_DELETE(works->users, user);
	DL_APPEND(works->users, user);
	user->work->piece(user->work);
}

static void idle_cb(struct ev_loop *loop, struct ev_idle *w, int revents)
{
	(void)loop;
	(void)w;
	(void)revents;
}

struct works *works_new(struct ibfs *ibfs)
{
	struct works *works = calloc(1, sizeof(*works));

	if (!works)
		return NULL;
	works->loop = ibfs->loop;
	ev_prepare_init(&works->prepare, prepare_cb);
	works->prepare.data = works;
	ev_idle_init(&works->idle, idle_cb);
	ev_set_priority(&works->idle, EV_MINPRI);
	return works;
}

void works_free(struct works *works)
{
	if (!works)
		return;
	while (works->users)
		work_cancel(works, works->users->work);
	unwatch(works);
	free(works);
}

static struct work_user *user_get(struct works *works, const struct account *account)
{
	struct work_user *user;

	DL_SEARCH_SCALAR(works->users, user, account, account);
	if (user)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->account = account;
	DL_APPEND(works->users, user);
	return user;
}

int work_queue(struct works *works, struct work *work, const struct account *account)
{
	struct work_user *user;

	if (work->user)
		return 0;
	user = user_get(works, account);
	if (!user)
		return -ENOMEM;
	work->user = user;
	DL_APPEND(user->work, work);
	watch(works);
	return 0;
}

void work_cancel(struct works *works, struct work *work)
{
	struct work_user *user = work->user;

	if (!user)
		return;
	DL_DELETE(user->work, work);
	work->user = NULL;
	if (user->work)
		return;
	DL_DELETE(works->users, user);
	free(user);
}

bool work_now(struct works *works)
{
	if (works->spent || works->users)
		return false;
	works->spent = true;
	watch(works);
	return true;
}
