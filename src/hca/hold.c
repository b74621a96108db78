/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A received packet that waits for remote memory, and those that wait behind
 * it: a QP's packets are worked on one after the other.
 */
#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "hca/verbs.h"

#define HOLD_MAX 1024		/* more are dropped, as by a full input buffer */

static struct verbs_cost wait_cost(const struct packet_wait *wait)
{
	return (struct verbs_cost){
		.bytes = sizeof(*wait) + sizeof(*wait->pkt) + wait->pkt->data_len,
	};
}

static void wait_free(struct ibfs_qp *qp, struct packet_wait *wait)
{
	bill_give(&qp->bill, wait_cost(wait));
	packet_free(wait->pkt);
	free(wait);
}

static void hold_drain(struct ibfs_qp *qp)
{
	struct hold *hold = &qp->hold;

	while (!hold->xfer && hold->waiting) {
		struct packet_wait *wait = hold->waiting;
		struct rx rx;

		DL_DELETE(hold->waiting, wait);
		hold->num_waiting--;
		if (rx_parse(&rx, wait->port, wait->pkt))
			qp_recv(qp, &rx);
		wait_free(qp, wait);
	}
}

/* then() may hold again; what it sends may come back, and waits behind what waits already. */
static void hold_done(struct xfer *xfer, int err)
{
	struct ibfs_qp *qp = xfer->priv;
	struct hold *hold = &qp->hold;
	struct packet *pkt = hold->pkt;
	struct rx rx;

	hold->pkt = NULL;
	hold->xfer = NULL;
	hold->finished = xfer;
	if (rx_parse(&rx, hold->port, pkt)) {
		if (rx.psn != hold->psn)
			rx_trim(&rx, (hold->psn - rx.psn) & PSN_MASK);
		hold->then(qp, &rx, err);
	}
	hold->finished = NULL;
	xfer_free(xfer);
	packet_free(pkt);
	hold_drain(qp);
}

/* 1: held; else xfer is freed, and the packet to be failed with the error. */
int qp_hold(struct ibfs_qp *qp, const struct rx *rx, struct xfer *xfer,
	    void (*then)(struct ibfs_qp *, struct rx *, int))
{
	struct hold *hold = &qp->hold;
	int err;

	hold->pkt = packet_copy(rx->pkt);
	if (!hold->pkt) {
		xfer_free(xfer);
		return -ENOMEM;
	}
	hold->port = rx->port;
	hold->psn = rx->psn;
	hold->then = then;
	hold->xfer = xfer;
	xfer->priv = qp;
	xfer->done = hold_done;
	err = xfer_start(xfer);
	if (err > 0)
		return 1;
	hold->xfer = NULL;
	packet_free(hold->pkt);
	hold->pkt = NULL;
	xfer_free(xfer);
	return err ? -EFAULT : 0;
}

bool qp_wait(struct ibfs_qp *qp, const struct rx *rx)
{
	struct hold *hold = &qp->hold;
	struct packet_wait *wait;

	if (!hold->xfer && !hold->finished)
		return false;
	if (hold->num_waiting >= HOLD_MAX)
		return true;
	wait = malloc(sizeof(*wait));
	if (!wait)
		return true;
	wait->port = rx->port;
	wait->pkt = packet_copy(rx->pkt);
	if (!wait->pkt || bill_take(&qp->bill, wait_cost(wait))) {
		packet_free(wait->pkt);
		free(wait);
		return true;
	}
	DL_APPEND(hold->waiting, wait);
	hold->num_waiting++;
	return true;
}

void qp_unhold(struct ibfs_qp *qp)
{
	struct hold *hold = &qp->hold;
	struct packet_wait *wait, *tmp;

	xfer_cancel(hold->xfer);
	packet_free(hold->pkt);
	DL_FOREACH_SAFE(hold->waiting, wait, tmp)
		wait_free(qp, wait);
	*hold = (struct hold){ 0 };
}
