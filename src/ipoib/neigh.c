/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbours: IP addresses of the subnet and the InfiniBand addresses that
 * hosts have told for them. States as in RFC 4861 7.3, for both families.
 */
#include <stdlib.h>
#include <string.h>

#include "ipoib/ipoib.h"

#define REACHABLE_TIME	30.0	/* s, after which a neighbour in use is asked again */
#define KEEP_UNUSED	300.0
#define MAX_PROBES	3
#define MAX_NEIGHS	65536U
#define AT_A_TIME	8U		/* that are asked */

static struct ipoib_neigh *neigh_find(const struct ipoib *ip, const struct in6_addr *addr)
{
	struct ipoib_neigh *neigh;

	HASH_FIND(hh, ip->neighs, addr, sizeof(*addr), neigh);
	return neigh;
}

static struct ipoib_neigh *neigh_new(struct ipoib *ip, const struct in6_addr *addr)
{
	struct ipoib_neigh *neigh;

	if (HASH_COUNT(ip->neighs) >= MAX_NEIGHS)
		return NULL;
	neigh = calloc(1, sizeof(*neigh));
	if (!neigh)
		return NULL;
	if (!slots_add(&ip->neigh_slots, neigh, &neigh->slot)) {
		free(neigh);
		return NULL;
	}
	neigh->addr = *addr;
	neigh->used = ipoib_now(ip);
	HASH_ADD(hh, ip->neighs, addr, sizeof(neigh->addr), neigh);
	return neigh;
}

static void neigh_free(struct ipoib *ip, struct ipoib_neigh *neigh)
{
	tx_drop_queue(ip, &neigh->queue);
	if (neigh->peer)
		peer_put(ip, neigh->peer);
	HASH_DEL(ip->neighs, neigh);
	slots_remove(&ip->neigh_slots, neigh->slot);
	free(neigh);
}

/* Whoever is known is asked alone, all others everybody. */
static void neigh_ask(struct ipoib *ip, struct ipoib_neigh *neigh)
{
	struct ipoib_addr to;
	bool alone = neigh->state == NEIGH_PROBE && neigh->peer && neigh->probes < MAX_PROBES;

	neigh->probes++;
	if (alone) {
		to.raw[0] = neigh->peer->flags;
		memcpy(to.raw + 1, neigh->peer->key, sizeof(neigh->peer->key));
	}
	if (IN6_IS_ADDR_V4MAPPED(&neigh->addr))
		arp_ask(ip, neigh->addr.s6_addr32[3], alone ? &to : NULL);
	else
		nd_ask(ip, &neigh->addr, alone ? &to : NULL);
}

struct ipoib_neigh *neigh_get(struct ipoib *ip, const struct in6_addr *addr)
{
	struct ipoib_neigh *neigh = neigh_find(ip, addr);

	if (!neigh) {
		neigh = neigh_new(ip, addr);
		if (!neigh)
			return NULL;
		neigh_ask(ip, neigh);
	}
	neigh->used = ipoib_now(ip);
	return neigh;
}

void neigh_send(struct ipoib *ip, const struct in6_addr *to, struct ipoib_tx *tx)
{
	struct ipoib_neigh *neigh = neigh_get(ip, to);

	if (!neigh) {
		ip->stats[IPOIB_TX_DROPPED]++;
		tx_free(ip, tx);
		return;
	}
	if (neigh->peer)
		peer_send(ip, neigh->peer, tx);
	else
		tx_queue(ip, &neigh->queue, tx);
}

void neigh_learn(struct ipoib *ip, const struct in6_addr *addr, const struct ipoib_addr *lladdr,
		 bool create)
{
	struct ipoib_neigh *neigh = neigh_find(ip, addr);
	struct ipoib_peer *peer;
	struct ipoib_tx *tx;

	if (!neigh && create)
		neigh = neigh_new(ip, addr);
	if (!neigh)
		return;
	peer = peer_get(ip, lladdr);
	if (!peer)
		return;
	if (neigh->peer)
		peer_put(ip, neigh->peer);
	neigh->peer = peer;
	neigh->state = NEIGH_REACHABLE;
	neigh->probes = 0;
	neigh->confirmed = ipoib_now(ip);
	while ((tx = tx_dequeue(ip, &neigh->queue)) != NULL)
		peer_send(ip, peer, tx);
}

static void neigh_fail(struct ipoib *ip, struct ipoib_neigh *neigh)
{
	struct ipoib_tx *tx;

	while ((tx = tx_dequeue(ip, &neigh->queue)) != NULL) {
		icmp_unreachable(ip, tx);
		ip->stats[IPOIB_TX_DROPPED]++;
		tx_free(ip, tx);
	}
	neigh_free(ip, neigh);
}

static void neigh_age(struct ipoib *ip, struct ipoib_neigh *neigh, ev_tstamp now)
{
	unsigned int max = neigh->state == NEIGH_PROBE ? 2 * MAX_PROBES : MAX_PROBES;

	if (neigh->state == NEIGH_REACHABLE) {
		if (neigh->used + KEEP_UNUSED < now)
			neigh_free(ip, neigh);
		else if (neigh->confirmed + REACHABLE_TIME < now && neigh->used > neigh->confirmed)
			neigh->state = NEIGH_PROBE;
		return;
	}
	if (neigh->probes >= max)
		neigh_fail(ip, neigh);
	else
		neigh_ask(ip, neigh);
}

/* Some neighbours more: each may be asked anew, and there may be thousands. */
static void age_some(struct task *task)
{
	struct ipoib *ip = (struct ipoib *)((char *)task - offsetof(struct ipoib, age));
	struct ipoib_neigh *neigh;

	for (unsigned int i = 0; i < AT_A_TIME; i++) {
		/* While nobody can be asked nobody fails to answer. */
		neigh = ip->active && ip->mcast_mtu ?
			slots_next(&ip->neigh_slots, &ip->age_next) : NULL;
		if (!neigh) {
			ip->age_next = 0;
			return;
		}
		neigh_age(ip, neigh, ipoib_now(ip));
	}
	task_queue(ip->ibfs->tasks, &ip->age);
}

void neigh_tick(struct ipoib *ip)
{
	if (ip->age_next)	/* the last tick's aren't through */
		return;
	ip->age.fn = age_some;
	age_some(&ip->age);
}

void neigh_close(struct ipoib *ip)
{
	struct ipoib_neigh *neigh, *tmp;

	task_cancel(ip->ibfs->tasks, &ip->age);
	ip->age_next = 0;
	HASH_ITER(hh, ip->neighs, neigh, tmp)
		neigh_free(ip, neigh);
}
