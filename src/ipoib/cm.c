/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How connections are made and end: requests to the service that an interface's
 * datagram QPN names, private data with QPN and receive MTU. RFC 4755 sections
 * 3.2 to 3.5 and 6.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "ipoib/conn.h"

#define SERVICE_ID	0x0100000000000000ULL	/* RFC 4755 3.5 */
#define SERVICE_LINUX	0x1000000000000000ULL	/* what Linux has always used instead */
#define MTU_MIN		(IPOIB_HEADER + 68U)	/* RFC 791 */
#define CM_TIMEOUT	18			/* 4.096 us * 2^18: 1.1 s */
#define CM_RETRIES	3
#define ACK_TIMEOUT	14			/* 67 ms */
#define RETRIES		6
#define RNR_RETRIES	7			/* for ever */
#define RETRY_REFUSED	10.0			/* s */
#define RETRY_LOST	1.0

struct private_data {
	__be32 qpn;
	__be32 mtu;			/* bytes that it can receive, header included */
};

static void private_fill(const struct ipoib *ip, struct private_data *data)
{
	data->qpn = htonl(ip->qpn);
	data->mtu = htonl(conn_mtu_offered(ip));
}

/* 0: what it says can't be. */
static uint32_t private_mtu(const uint8_t *bytes)
{
	struct private_data data;
	uint32_t mtu;

	memcpy(&data, bytes, sizeof(data));
	mtu = ntohl(data.mtu);
	return mtu < MTU_MIN ? 0 : mtu;
}

/* It is over; when to try again. */
static void ended(struct ipoib_conn *conn, ev_tstamp again, bool refused)
{
	struct ipoib_peer *peer = conn->peer;

	if (peer) {
		peer->conn_next = ipoib_now(conn->ip) + again;
		peer->conn_refused = refused;
	}
	conn_free(conn);
}

static void rejected(struct ipoib_conn *conn, unsigned int reason)
{
	struct ipoib_peer *peer = conn->peer;

	if (peer && reason == CM_REJ_INVALID_SERVICE_ID && !peer->linux_service) {
		peer->linux_service = true;
		ended(conn, 0, false);
		return;
	}
	if (peer)
		peer->linux_service = false;
	if (reason == CM_REJ_STALE_CONN)
		ended(conn, RETRY_LOST, false);
	else
		ended(conn, RETRY_REFUSED, true);
}

static void on_rep(struct ipoib_conn *conn, const struct cm_event *event)
{
	struct ipoib_tx *tx;

	conn->mtu = private_mtu(event->private_data);
	if (!conn->mtu || conn_to_state(conn, IBV_QPS_RTR) || conn_to_state(conn, IBV_QPS_RTS) ||
	    cm_send_rtu(conn->id, NULL, 0)) {
		ended(conn, RETRY_REFUSED, true);
		return;
	}
	conn->up = true;
	conn->peer->conn_refused = false;
	while ((tx = tx_dequeue(conn->ip, &conn->queue)) != NULL)
		conn_post(conn, tx);
}

static int conn_event(struct cm_id *id, const struct cm_event *event)
{
	struct ipoib_conn *conn = cm_id_owner(id);

	switch (event->type) {
	case CM_EV_REP:
		on_rep(conn, event);
		break;
	case CM_EV_REJ:
		rejected(conn, event->reason);
		break;
	case CM_EV_UNREACHABLE:
		if (conn->peer)
			peer_unreachable(conn->ip, conn->peer);
		ended(conn, RETRY_LOST, false);
		break;
	case CM_EV_DREQ:
	case CM_EV_DISCONNECTED:
	case CM_EV_TIMEWAIT_EXIT:
	case CM_EV_GONE:
		ended(conn, 0, false);
		break;
	default:
		break;
	}
	return 0;
}

static void fill_path(const struct ipoib *ip, const struct ipoib_peer *peer, struct cm_path *path)
{
	const struct ipoib_route *route = &peer->route;

	*path = (struct cm_path){
		.sgid = ip->gid, .slid = ip->attr.lid, .dlid = route->lid, .pkey = ip->pkey,
		.flow_label = route->flow_label, .sl = route->sl, .rate = route->rate,
		.mtu = route->mtu ? route->mtu : IBV_MTU_2048, .hop_limit = route->hop_limit,
		.traffic_class = route->traffic_class, .global = route->hop_limit > 1,
	};
	memcpy(path->dgid.raw, peer->key + 3, sizeof(path->dgid.raw));
}

struct ipoib_conn *conn_connect(struct ipoib *ip, struct ipoib_peer *peer)
{
	struct ipoib_conn *conn = conn_new(ip, peer);
	struct private_data data;
	struct cm_req req = {
		.service_id = (peer->linux_service ? SERVICE_LINUX : SERVICE_ID) | peer_qpn(peer),
		.srq = true, .remote_cm_timeout = CM_TIMEOUT, .local_cm_timeout = CM_TIMEOUT,
		.max_cm_retries = CM_RETRIES, .ack_timeout = ACK_TIMEOUT, .retry_count = RETRIES,
		.rnr_retry_count = RNR_RETRIES, .private_data = &data, .private_len = sizeof(data),
	};

	if (!conn)
		return NULL;
	private_fill(ip, &data);
	fill_path(ip, peer, &req.path);
	conn->lid = req.path.dlid;
	req.qpn = conn->qpn;
	req.psn = arc4random() & 0xffffff;
	if (cm_id_new(ip->dev, ip->port, conn_event, conn, &conn->id) ||
	    cm_send_req(conn->id, &req) || conn_to_state(conn, IBV_QPS_INIT)) {
		ended(conn, RETRY_LOST, false);
		return NULL;
	}
	return conn;
}

/* Somebody wants to send to us. */
static int accept_req(struct ipoib *ip, const struct cm_event *event)
{
	struct private_data data;
	struct cm_rep rep = {
		.srq = true, .rnr_retry_count = RNR_RETRIES, .psn = arc4random() & 0xffffff,
		.private_data = &data, .private_len = sizeof(data),
	};
	struct ipoib_conn *conn;

	if (event->req->transport != CM_TRANSPORT_RC || !private_mtu(event->private_data) ||
	    HASH_COUNT(ip->conns) >= IPOIB_CONNS)
		return -EINVAL;
	conn = conn_new(ip, NULL);
	if (!conn)
		return -ENOMEM;
	conn->id = event->id;
	rep.qpn = conn->qpn;
	private_fill(ip, &data);
	if (conn_to_state(conn, IBV_QPS_INIT) || conn_to_state(conn, IBV_QPS_RTR) ||
	    conn_to_state(conn, IBV_QPS_RTS) || cm_send_rep(event->id, &rep)) {
		conn->id = NULL;	/* stays the caller's */
		conn_free(conn);
		return -EINVAL;
	}
	cm_id_set(event->id, conn_event, conn);
	return 0;
}

static int on_listener(struct cm_id *id, const struct cm_event *event)
{
	struct ipoib *ip = cm_id_owner(id);

	return event->type == CM_EV_REQ ? accept_req(ip, event) : 0;
}

static struct cm_id *listen_for(struct ipoib *ip, uint64_t service)
{
	struct cm_id *id;

	if (cm_id_new(ip->dev, ip->port, on_listener, ip, &id))
		return NULL;
	if (cm_listen(id, service | ip->qpn)) {
		cm_id_free(id);
		return NULL;
	}
	return id;
}

void conns_listen(struct ipoib *ip)
{
	if (!ip->connected || ip->listener)
		return;
	ip->listener = listen_for(ip, SERVICE_ID);
	ip->listener_linux = ip->listener ? listen_for(ip, SERVICE_LINUX) : NULL;
}

void conns_deaf(struct ipoib *ip)
{
	conns_drop(ip);
	cm_id_free(ip->listener);
	cm_id_free(ip->listener_linux);
	ip->listener = ip->listener_linux = NULL;
}
