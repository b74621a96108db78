/* SPDX-License-Identifier: BSD-2-Clause */
/* Connected mode inside: conn.c has the queue pairs, cm.c talks to the other end's CM. */
#ifndef IBFS_IPOIB_CONN_H
#define IBFS_IPOIB_CONN_H

#include <ibfs/cm.h>

#include "ipoib/ipoib.h"

#define IPOIB_CONN_IDLE	120.0	/* s, after which a connection without packets ends */
#define IPOIB_CONNS	4096U	/* that others may make to an interface */

struct ipoib_conn {
	uint32_t qpn;
	UT_hash_handle hh;		/* of ip->conns */
	struct ipoib *ip;
	struct ipoib_peer *peer;	/* that it sends to; NULL: it only receives */
	struct cm_id *id;
	struct ibfs_qp *qp;
	bool up;			/* it may be sent by */
	uint32_t mtu, mtu_offered;	/* with the header; the other's, and ours when it was made */
	uint16_t lid;			/* of the path that it was made by */
	ev_tstamp used;
	struct ipoib_queue queue;
};

/* conn.c */
uint32_t conn_mtu_offered(const struct ipoib *ip);
struct ipoib_conn *conn_find(const struct ipoib *ip, uint32_t qpn);
struct ipoib_conn *conn_new(struct ipoib *ip, struct ipoib_peer *peer);	/* NULL: it can't be */
void conn_free(struct ipoib_conn *conn);	/* from its CM handler, too */
int conn_to_state(struct ipoib_conn *conn, enum ibv_qp_state state);
void conn_post(struct ipoib_conn *conn, struct ipoib_tx *tx);

/* cm.c */
struct ipoib_conn *conn_connect(struct ipoib *ip, struct ipoib_peer *peer);	/* NULL: not now */

#endif
