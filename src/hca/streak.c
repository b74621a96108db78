/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streaks, hca/streak.h. What a client does between two rings says whether it
 * waits: one that does consumes what completes. A guess that was wrong costs
 * the client a look that comes late, so a streak has to be worth that, or the
 * next ones are not believed. Touches the QP's counts only.
 */
#include "ibfs/bell_words.h"

#include "hca/streak.h"
#include "hca/verbs.h"

enum {
	IN_ROW = 8,
	NEAR_NS = 20000,	/* between two rings in a row */
	LATE_NS = 50000,	/* without a full ring, until it is over */
	WORTH = 6,		/* full rings that make up for a late look */
	MAX_FAILS = 10,		/* then 2^10 - 1 are left out */
};

/* A client that waits has consumed since; other QPs' completions may mislead. */
static uint32_t consumed(const struct ibfs_qp *qp)
{
	const struct ring *send = &qp->send_cq->ring;
	uint32_t n = send->index - ring_used(send, true);

	if (qp->recv_cq && qp->recv_cq != qp->send_cq)
		n += qp->recv_cq->ring.index - ring_used(&qp->recv_cq->ring, true);
	return n;
}

uint32_t streak_posted(const struct ibfs_qp *qp)
{
	return ring_used(&qp->req.ring, false) + qp->req.ring.index;
}

bool streak_likely(const struct streak *s)
{
	return s->on || s->in_row >= IN_ROW / 2;
}

static bool begin(struct streak *s)
{
	s->in_row = 0;
	if (s->skip) {
		s->skip--;
		return false;
	}
	s->on = true;
	s->full = 0;
	return true;
}

static bool end(struct streak *s)
{
	s->on = false;
	if (s->full >= WORTH)
		s->fails = 0;
	else if (s->fails < MAX_FAILS)
		s->fails++;
	s->skip = (1U << s->fails) - 1;
	return true;
}

bool streak_rung(struct ibfs_qp *qp, uint64_t now)
{
	bool possible = qp->client && qp->client->again != VERBS_AGAIN_NEVER && !qp->polled;
	uint32_t posted = streak_posted(qp), taken = consumed(qp);
	struct streak *s = &qp->streak;
	uint32_t more = posted - s->posted;
	bool waits = taken != s->consumed, near = now - s->rung_ns < NEAR_NS;

	s->posted = posted;
	s->consumed = taken;
	if (s->on) {
		if (possible && more < DOORBELL_EVERY && now - s->rung_ns < LATE_NS)
			return false;
		if (!possible || more < DOORBELL_EVERY)
			return end(s);
		s->full++;
		s->rung_ns = now;
		return false;
	}
	s->rung_ns = now;
	if (!possible || waits || !near || !more)
		s->in_row = 0;
	else if (++s->in_row >= IN_ROW)
		return begin(s);
	return false;
}
