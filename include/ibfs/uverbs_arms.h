/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The third page of a uverbs file's memory: completion queues' requests to be
 * told of the next completion (REQ_NOTIFY_CQ), left here instead of sent. By the
 * CQ's handle. The engine counts `state` up, adds a completion, whose event it
 * decides on by what was wanted before, and counts on. So who asks
 *
 *	stores `wanted`, has a full memory barrier, reads `state`: while that is odd
 *	a completion may be on its way that the request came too late for, and that
 *	the ring doesn't show yet; with the next count it does.
 *
 * While it says MISSED, completions came of which no event told: the request must
 * be a command, and `wanted` taken back, so that the engine looks whether they were
 * polled. When that can't be taken back, the engine has taken it.
 *
 * Then an event comes for each completion that the ring didn't show when it was
 * asked for, or that was there unpolled and untold of, and for no other, as if both
 * had had a lock.
 */
#ifndef IBFS_UVERBS_ARMS_H
#define IBFS_UVERBS_ARMS_H

#include <stdatomic.h>
#include <stdint.h>

#define UVERBS_ARMS_OFFSET	8192
#define UVERBS_ARMS_SIZE	4096
#define UVERBS_ARMS		(UVERBS_ARMS_SIZE / sizeof(struct uverbs_arm))

enum { UVERBS_ARM_SOLICITED = 1, UVERBS_ARM_NEXT = 2 };	/* of wanted; 0: nothing */
enum {	/* of state; without HERE: send the command */
	UVERBS_ARM_COUNT = 0x3f, UVERBS_ARM_MISSED = 1 << 6, UVERBS_ARM_HERE = 1 << 7
};

struct uverbs_arm {
	_Atomic uint8_t state;		/* the engine's */
	_Atomic uint8_t wanted;		/* the client's; the engine takes it */
};

#endif
