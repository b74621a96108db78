/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bells: words in memory shared with a client (ibfs/bell_words.h) that a thread
 * of the daemon waits for on each processor, so that a client that leaves work
 * there has it done at once on its own processor.
 *
 * All functions are for who holds the loop's lock (ibfs/loop.h), and rung() is
 * called with it, from a thread of any kind. It must not sleep: what can (jobs
 * of a client's memory) is given to offload() as from the loop. Where it queues
 * tasks those run, too, before the lock is let go. Nothing in it may ask which
 * thread it is: follow_request() is for the loop's own.
 */
#ifndef IBFS_BELL_H
#define IBFS_BELL_H

#include <ibfs/bell_words.h>

struct ibfs;

struct bell {
	struct bell_words *words;
	/*
	 * Rung, or only perhaps: look for work. False: there was none, and who
	 * rings so over and over is not heard any more.
	 */
	bool (*rung)(struct bell *bell);
	bool again;			/* set by rung(): call it once more, after BELL_AGAIN_NS */
	unsigned int slot;		/* bell.c's; 0: not added */
};

#define BELL_AGAIN_NS	100000

/* Bells that can be heard at a time. */
#define BELL_MAX	32

/*
 * ibfs->bells. Nothing is started before the first bell is added. NULL, and that
 * is no error: it is not wanted (conf), or not to be had.
 */
struct bells *bells_new(struct ibfs *ibfs);
/* Bells that were not removed are not touched again. */
void bells_free(struct bells *bells);
/*
 * For the loop's thread, when it has let go of the lock: what was rung meanwhile
 * and found it taken.
 */
void bells_catch_up(struct ibfs *ibfs);
/*
 * Its words become BELL_ARMED, soon. 0; -EOPNOTSUPP: the kernel has no such
 * thing for us (Linux 6.7, io_uring); -EAGAIN: BELL_MAX others were rung lately.
 * One that wasn't for a second makes room: it is as if it was removed.
 */
int bell_add(struct ibfs *ibfs, struct bell *bell);
/*
 * Its words become BELL_NONE; after this they can go. Work that came before may
 * not have rung: look once more, if the client stays.
 */
void bell_remove(struct ibfs *ibfs, struct bell *bell);

#endif
