/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long work of the event loop, done in pieces: one piece in each turn of the
 * loop, however much work there is, so that other requests wait for one piece at
 * most. Users (accounts) take turns; what one of them asked for is done one after
 * the other. All of this runs in the event loop.
 */
#ifndef IBFS_FS_WORK_H
#define IBFS_FS_WORK_H

#include <stdbool.h>

struct account;
struct ibfs;
struct works;
struct work_user;

/* Embedded in what it works on; all 0 but piece: idle. */
struct work {
	struct work *prev, *next;
	struct work_user *user;		/* NULL: it is idle */
	/*
	 * Some 50 us of work, by count. Called again in another turn until it calls
	 * work_cancel(), after which it may free the work.
	 */
	void (*piece)(struct work *work);
};

/* NULL: no memory. works_free(): what is queued is never done. */
struct works *works_new(struct ibfs *ibfs);
void works_free(struct works *works);
/*
 * Behind what this user has queued; nothing if it is queued already. The account is
 * only told from others. 0 or -ENOMEM.
 */
int work_queue(struct works *works, struct work *work, const struct account *account);
/* Take it out; nothing if it is idle. */
void work_cancel(struct works *works, struct work *work);
/*
 * May the caller do one piece now, without queueing it? Not when others wait for
 * theirs or this turn has had one.
 */
bool work_now(struct works *works);

#endif
