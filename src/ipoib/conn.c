/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connected mode's queue pairs: one to send to each peer that has it, one to
 * receive from each that connects to us, as Linux does it, all receiving from
 * one SRQ. RFC 4755 sections 2, 3.3 and 5.1.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ipoib/conn.h"

#define RNR_TIMER	1	/* 0.01 ms: the SRQ is filled again at once */

uint32_t conn_mtu_offered(const struct ipoib *ip)
{
	unsigned int mtu = ip->host.mtu > ip->mcast_mtu ? ip->host.mtu : ip->mcast_mtu;

	return IPOIB_HEADER + (mtu < IPOIB_CM_MTU ? mtu : IPOIB_CM_MTU);
}

struct ipoib_conn *conn_find(const struct ipoib *ip, uint32_t qpn)
{
	struct ipoib_conn *conn;

	HASH_FIND(hh, ip->conns, &qpn, sizeof(qpn), conn);
	return conn;
}

struct ipoib_conn *conn_new(struct ipoib *ip, struct ipoib_peer *peer)
{
	struct ipoib_conn *conn = calloc(1, sizeof(*conn));
	struct ibfs_qp_init init = {
		.pd = ip->pd, .send_cq = ip->cq, .recv_cq = ip->cq, .srq = ip->srq,
		.type = IBV_QPT_RC, .sq_sig_all = true,
		.cap = { .max_send_wr = peer ? IPOIB_TX_SLOTS : 1, .max_send_sge = 1 },
	};
	struct ibv_qp_attr attr;

	if (!conn)
		return NULL;
	if (ip->ops->create_qp(ip->dev, &init, &ip->client, &conn->qp)) {
		free(conn);
		return NULL;
	}
	ip->ops->query_qp(conn->qp, &attr, &init, &conn->qpn);
	conn->ip = ip;
	conn->peer = peer;
	conn->used = ipoib_now(ip);
	conn->mtu_offered = conn_mtu_offered(ip);
	HASH_ADD(hh, ip->conns, qpn, sizeof(conn->qpn), conn);
	if (peer)
		peer->conn = conn;
	return conn;
}

/* What the QP has, and what waited for it, is lost. */
void conn_free(struct ipoib_conn *conn)
{
	struct ipoib *ip = conn->ip;

	if (conn->peer)
		conn->peer->conn = NULL;
	cm_id_free(conn->id);
	ip->ops->destroy_qp(conn->qp, &ip->client);
	HASH_DEL(ip->conns, conn);
	tx_drop_posted(ip, conn->qpn);
	tx_drop_queue(ip, &conn->queue);
	free(conn);
}

int conn_to_state(struct ipoib_conn *conn, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask, err = cm_qp_attr(conn->id, &attr, &mask);

	attr.min_rnr_timer = RNR_TIMER;
	return err ? err : conn->ip->ops->modify_qp(conn->qp, &attr, mask);
}

static void too_big(struct ipoib *ip, struct ipoib_tx *tx, unsigned int mtu)
{
	icmp_too_big(ip, tx, mtu);
	ip->stats[IPOIB_TX_DROPPED]++;
	tx_free(ip, tx);
}

void conn_post(struct ipoib_conn *conn, struct ipoib_tx *tx)
{
	struct ipoib *ip = conn->ip;
	struct ibv_sge sge = { (uintptr_t)tx->data, tx->len, ip->lkey };
	struct ibfs_wr wr = {
		.wr_id = tx - ip->slots, .opcode = IBFS_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
	};

	conn->used = ipoib_now(ip);
	if (tx->len > conn->mtu) {
		too_big(ip, tx, conn->mtu - IPOIB_HEADER);
		return;
	}
	if ((tx->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM && !csum_complete(tx)) ||
	    ip->ops->post_send(conn->qp, &wr)) {
		ip->stats[IPOIB_OERRORS]++;
		tx_free(ip, tx);
		return;
	}
	tx->qpn = conn->qpn;
	ip->stats[IPOIB_OPACKETS]++;
	ip->stats[IPOIB_OBYTES] += tx->len - IPOIB_HEADER;
}

/* While there is no connection, datagrams: what is too long for one waits, or is told so. */
bool conn_send(struct ipoib *ip, struct ipoib_peer *peer, struct ipoib_tx *tx)
{
	struct ipoib_conn *conn = peer->conn;

	if (tx->own || !ip->listener || !(peer->flags & IPOIB_FLAG_RC) ||
	    tx->vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE)
		return false;
	if (!conn && peer->fresh && peer->conn_next <= ipoib_now(ip))
		conn = conn_connect(ip, peer);
	if (conn && conn->up) {
		conn_post(conn, tx);
		return true;
	}
	if (tx->len <= ip->mcast_mtu + IPOIB_HEADER || peer->conn_refused)
		return false;
	if (conn) {
		tx_queue(ip, &conn->queue, tx);
	} else if (!peer->fresh) {	/* the path is being asked for, and comes first */
		tx_queue(ip, &peer->queue, tx);
	} else {
		ip->stats[IPOIB_TX_DROPPED]++;
		tx_free(ip, tx);
	}
	return true;
}

static void post_receive(struct ipoib *ip, unsigned int index)
{
	struct ibv_sge sge = { (uintptr_t)ud_cm_buffer(ip, index), IPOIB_CM_DATA, ip->lkey };
	struct ibfs_recv_wr wr = { .wr_id = IPOIB_CM_ID | index, .sg_list = &sge, .num_sge = 1 };

	ip->ops->post_srq_recv(ip->srq, &wr);
}

void conn_received(struct ipoib *ip, const struct ibfs_wc *wc)
{
	unsigned int index = wc->wr_id & UINT32_MAX;
	struct ipoib_conn *conn = conn_find(ip, wc->qp_num);
	struct ipoib_rx rx = { .msg = ud_cm_buffer(ip, index), .len = wc->byte_len };

	if (conn && wc->status != IBV_WC_SUCCESS) {
		ip->stats[IPOIB_IERRORS] += wc->status != IBV_WC_WR_FLUSH_ERR;
		conn_free(conn);
	} else if (conn && rx.len < IPOIB_HEADER) {
		ip->stats[IPOIB_IERRORS]++;
		ip->stats[IPOIB_RX_LENGTH_ERRORS]++;
	} else if (conn) {
		conn->used = ipoib_now(ip);
		cm_established(conn->id);
		ipoib_receive(ip, &rx);
	}
	post_receive(ip, index);
}

void conn_failed(struct ipoib *ip, uint32_t qpn)
{
	struct ipoib_conn *conn = conn_find(ip, qpn);

	if (!conn)
		return;
	if (conn->peer)
		peer_unreachable(ip, conn->peer);
	conn_free(conn);
}

void conn_drop(struct ipoib_peer *peer)
{
	if (peer->conn)
		conn_free(peer->conn);
}

void conn_path(struct ipoib_peer *peer)
{
	if (peer->conn && (!peer->ah || peer->conn->lid != peer->route.lid))
		conn_free(peer->conn);
}

void conns_tick(struct ipoib *ip)
{
	struct ipoib_conn *conn, *tmp;
	ev_tstamp now = ipoib_now(ip);

	HASH_ITER(hh, ip->conns, conn, tmp)
		if (conn->used + (conn->peer ? IPOIB_CONN_IDLE : 2 * IPOIB_CONN_IDLE) < now)
			conn_free(conn);
}

void conns_mtu(struct ipoib *ip)
{
	struct ipoib_conn *conn, *tmp;

	HASH_ITER(hh, ip->conns, conn, tmp)
		if (!conn->peer && conn->mtu_offered != conn_mtu_offered(ip))
			conn_free(conn);
}

void conns_drop(struct ipoib *ip)
{
	struct ipoib_conn *conn, *tmp;

	HASH_ITER(hh, ip->conns, conn, tmp)
		conn_free(conn);
}

int conns_open(struct ipoib *ip)
{
	struct ibfs_srq_init init = { .attr = { .max_wr = IPOIB_CM_RX, .max_sge = 1 } };
	int err = ip->ops->create_srq(ip->pd, &init, &ip->client, &ip->srq);

	for (unsigned int i = 0; !err && i < IPOIB_CM_RX; i++)
		post_receive(ip, i);
	if (!err)
		conns_listen(ip);
	return err;
}

void conns_close(struct ipoib *ip)
{
	conns_deaf(ip);
	if (ip->srq)
		ip->ops->destroy_srq(ip->srq);
	ip->srq = NULL;
}
