/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces at the other end, and the paths to them: asked of the SA once,
 * used for as long as nothing happens that may have changed them. An old path
 * serves until there is a new one. RFC 4391 section 9.2 and 10.
 */
#include <stdlib.h>
#include <string.h>

#include "ipoib/ipoib.h"

#define ASK_AGAIN	1.0	/* s */
#define KEEP_UNUSED	60.0

struct ipoib_peer *peer_get(struct ipoib *ip, const struct ipoib_addr *addr)
{
	struct ipoib_peer *peer;

	HASH_FIND(hh, ip->peers, addr->raw + 1, sizeof(peer->key), peer);
	if (!peer) {
		peer = calloc(1, sizeof(*peer));
		if (!peer)
			return NULL;
		peer->ip = ip;
		memcpy(peer->key, addr->raw + 1, sizeof(peer->key));
		HASH_ADD(hh, ip->peers, key, sizeof(peer->key), peer);
	}
	peer->flags = addr->raw[0];
	peer->used = ipoib_now(ip);
	peer->refs++;
	return peer;
}

static void peer_free(struct ipoib *ip, struct ipoib_peer *peer)
{
	sa_cancel(ip, &peer->query);
	tx_drop_queue(ip, &peer->queue);
	conn_drop(peer);
	if (peer->ah)
		ip->ops->destroy_ah(peer->ah);
	HASH_DEL(ip->peers, peer);
	free(peer);
}

/* It stays for a while: who asked for an address is likely to be sent to. */
void peer_put(struct ipoib *ip, struct ipoib_peer *peer)
{
	(void)ip;
	peer->refs--;
}

static void peer_ask(struct ipoib *ip, struct ipoib_peer *peer)
{
	ev_tstamp now = ipoib_now(ip);

	if (peer->query.tid || (peer->asked && peer->asked + ASK_AGAIN > now))
		return;
	peer->asked = now;
	sa_path(ip, peer);
}

static void peer_transmit(struct ipoib *ip, struct ipoib_peer *peer, struct ipoib_tx *tx)
{
	if (!conn_send(ip, peer, tx))
		ud_send(ip, tx, peer->ah, peer_qpn(peer), ip->qkey);
}

void peer_send(struct ipoib *ip, struct ipoib_peer *peer, struct ipoib_tx *tx)
{
	peer->used = ipoib_now(ip);
	if (peer->ah)
		peer_transmit(ip, peer, tx);
	else
		tx_queue(ip, &peer->queue, tx);
	if (!peer->fresh)
		peer_ask(ip, peer);
}

void peer_path(struct ipoib_peer *peer, int err)
{
	struct ipoib *ip = peer->ip;
	struct ipoib_tx *tx;
	struct ibfs_ah *ah;
	union ibv_gid gid;

	memcpy(gid.raw, peer->key + 3, sizeof(gid.raw));
	ah = err ? NULL : ud_ah(ip, &gid, &peer->route, peer->route.hop_limit > 1);
	/* No answer says nothing about the old path; that there is none does. */
	if (err < 0 || (!err && !ah))
		return;
	if (peer->ah)
		ip->ops->destroy_ah(peer->ah);
	peer->ah = ah;
	peer->fresh = ah != NULL;
	conn_path(peer);
	while ((tx = tx_dequeue(ip, &peer->queue)) != NULL) {
		if (ah) {
			peer_transmit(ip, peer, tx);
			continue;
		}
		if (!tx->own)
			icmp_unreachable(ip, tx);
		ip->stats[IPOIB_TX_DROPPED]++;
		tx_free(ip, tx);
	}
}

void peers_stale(struct ipoib *ip)
{
	struct ipoib_peer *peer, *tmp;

	HASH_ITER(hh, ip->peers, peer, tmp) {
		sa_cancel(ip, &peer->query);
		peer->fresh = false;
		peer->asked = 0;
	}
}

void peer_heard(struct ipoib *ip, const struct ipoib_rx *rx, const struct ipoib_addr *addr)
{
	struct ipoib_peer *peer;

	HASH_FIND(hh, ip->peers, addr->raw + 1, sizeof(peer->key), peer);
	if (peer && peer->ah && peer->route.lid != rx->slid)
		peer->fresh = false;
}

void peer_unreachable(struct ipoib *ip, struct ipoib_peer *peer)
{
	peer->fresh = false;
	peer->asked = 0;
	if (peer->ah)
		peer_ask(ip, peer);
}

void peers_tick(struct ipoib *ip)
{
	struct ipoib_peer *peer, *tmp;
	ev_tstamp now = ipoib_now(ip);

	HASH_ITER(hh, ip->peers, peer, tmp) {
		if (!peer->refs && peer->used + KEEP_UNUSED < now)
			peer_free(ip, peer);
		else if (peer->queue.head)
			peer_ask(ip, peer);
	}
}

void peers_close(struct ipoib *ip)
{
	struct ipoib_peer *peer, *tmp;

	HASH_ITER(hh, ip->peers, peer, tmp)
		peer_free(ip, peer);
}
