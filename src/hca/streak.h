/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streaks of a QP: its client posts one request after another and waits for
 * none of them. Then it need ring only for some (DOORBELL_SELDOM), and the ring
 * is looked at again soon by who else rings it for the client.
 */
#ifndef IBFS_HCA_STREAK_H
#define IBFS_HCA_STREAK_H

#include <stdbool.h>
#include <stdint.h>

struct ibfs_qp;

/* Zeroed: none. */
struct streak {
	bool on;
	unsigned int in_row;		/* rings that look like one */
	unsigned int full;		/* rings for as many requests as can be, in this one */
	unsigned int fails, skip;
	uint32_t posted, consumed;	/* at the last ring: requests, completions */
	uint64_t rung_ns;		/* the last of them, or while on the last full one */
};

/* The QP was rung. True: it has begun or is over, and the client has to be told. */
bool streak_rung(struct ibfs_qp *qp, uint64_t now_ns);
/* One goes on, or is about to begin. */
bool streak_likely(const struct streak *streak);
/* Requests that the process has produced, ever; modulo 2^32. */
uint32_t streak_posted(const struct ibfs_qp *qp);

#endif
