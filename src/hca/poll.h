/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who looks at rings without being rung. One poller serves all soft HCAs of a
 * daemon; it hangs off struct ibfs. Nothing here fails: a ring that isn't
 * looked at is rung.
 */
#ifndef IBFS_HCA_POLL_H
#define IBFS_HCA_POLL_H

#include <stdbool.h>

struct ibfs;
struct ibfs_qp;

/* An engine begins and ends. -ENOMEM */
int poller_get(struct ibfs *ibfs);
void poller_put(struct ibfs *ibfs);
/* The QP's send ring was rung: look at it from now on, if there is a processor to spare. */
void poll_rung(struct ibfs_qp *qp);
/*
 * The engine comes back to the QP's ring by itself, since it isn't through with
 * it yet; or does no longer. True: it has to look once more, at what came since.
 */
bool poll_busy(struct ibfs_qp *qp, bool busy);
/* The QP's state has changed: what its ring says may have to. */
void poll_tell(struct ibfs_qp *qp);
/* Look no longer; before the ring goes. */
void poll_stop(struct ibfs_qp *qp);

#endif
