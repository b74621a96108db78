/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waking the clients of a ring that is shared with them, who sleep by futex(2)
 * on its word `waiting` (ibfs/umad_ring.h, ibfs/event_ring.h).
 */
#ifndef IBFS_FS_WAITING_H
#define IBFS_FS_WAITING_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * After what they wait for was stored. Who says 1 looks for it once more before
 * it sleeps: either it sees that, or here the 1 is seen, as both are seq_cst.
 */
static inline void wake_waiting(atomic_uint *waiting)
{
	if (atomic_load(waiting) && atomic_exchange(waiting, 0))
		syscall(SYS_futex, waiting, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
