/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event loop's lock. All of the daemon's state belongs to who holds it:
 * the thread that runs the loop does whenever it doesn't sleep in there, and
 * while it does others can take it and call everything that a callback of the
 * loop may call. They never wait for it.
 *
 * What they change about the loop (a timer that was started, a descriptor to
 * be watched, work that is left) the sleeping thread has to hear of: so
 * ev_timer_start() and the like are wrapped by the linker, and note it.
 */
#ifndef IBFS_LOOP_H
#define IBFS_LOOP_H

#include <stdbool.h>

struct ibfs;
struct loop_lock;

/*
 * For ibfs->loop, which the caller runs, now or soon; ev_userdata() is used.
 * NULL: no memory. released() is called by the loop's thread after each time
 * that it let go, before it sleeps, without the lock.
 */
struct loop_lock *loop_lock_new(struct ibfs *ibfs, void (*released)(struct ibfs *ibfs));
/* By who holds it. */
void loop_lock_free(struct loop_lock *lock);
/*
 * Not by the loop's own callbacks. False: another has it, or the loop's thread
 * waits for it, which comes first. ev_now() is now.
 */
bool loop_try(struct loop_lock *lock);
/*
 * By who holds it: was it taken by loop_try()? Then nobody waits for an answer
 * to a request, as the client of a file's does. NULL: it wasn't.
 */
bool loop_lent(const struct loop_lock *lock);
/* Wakes the loop's thread if it has to do something. */
void loop_release(struct loop_lock *lock);
/* By a callback of the loop: offload_run_loop() returns after this turn, whoever runs it. */
void loop_end(struct ibfs *ibfs);

#endif
