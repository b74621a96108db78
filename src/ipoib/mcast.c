/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of the fabric: the broadcast group, whose parameters all
 * others take over, those that the host is in, and those that it only sends to.
 * RFC 4391 sections 4, 5 and 10.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipoib/sa.h"

#define MCAST_QPN	0xffffffU
#define DELAY_MAX	16.0
#define SEND_ONLY_CHECK	30.0	/* s, after which a group that is only sent to is asked for again */
#define SEND_ONLY_IDLE	120.0

/* ff1S:401b:PKEY::/104 and the 28 bits that IPv4 groups differ in. S: link-local. */
static void mgid_init(const struct ipoib *ip, union ibv_gid *mgid, uint16_t signature)
{
	memset(mgid, 0, sizeof(*mgid));
	mgid->raw[0] = 0xff;
	mgid->raw[1] = 0x12;
	mgid->raw[2] = signature >> 8;
	mgid->raw[3] = signature & 0xff;
	mgid->raw[4] = ip->pkey >> 8;
	mgid->raw[5] = ip->pkey & 0xff;
}

void mcast_gid4(const struct ipoib *ip, uint32_t addr, union ibv_gid *mgid)
{
	uint32_t low = addr & htonl(0x0fffffff);

	mgid_init(ip, mgid, 0x401b);
	memcpy(mgid->raw + 12, &low, 4);
}

void mcast_gid6(const struct ipoib *ip, const struct in6_addr *addr, union ibv_gid *mgid)
{
	mgid_init(ip, mgid, 0x601b);
	memcpy(mgid->raw + 6, addr->s6_addr + 6, 10);
}

void mcast_broadcast_gid(const struct ipoib *ip, union ibv_gid *mgid)
{
	mgid_init(ip, mgid, 0x401b);
	memset(mgid->raw + 12, 0xff, 4);
}

static struct ipoib_group *group_find(const struct ipoib *ip, const union ibv_gid *mgid)
{
	struct ipoib_group *group;

	HASH_FIND(hh, ip->groups, mgid, sizeof(*mgid), group);
	return group;
}

static struct ipoib_group *group_get(struct ipoib *ip, const union ibv_gid *mgid)
{
	struct ipoib_group *group = group_find(ip, mgid);

	if (group)
		return group;
	group = calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	if (!slots_add(&ip->group_slots, group, &group->slot)) {
		free(group);
		return NULL;
	}
	group->ip = ip;
	group->mgid = *mgid;
	group->used = ipoib_now(ip);
	group->delay = 1;
	HASH_ADD(hh, ip->groups, mgid, sizeof(group->mgid), group);
	return group;
}

static void group_detach(struct ipoib_group *group)
{
	struct ipoib *ip = group->ip;

	if (group->attached && ip->qp)
		ip->ops->detach_mcast(ip->qp, &group->mgid, group->route.lid);
	group->attached = false;
}

static void group_free(struct ipoib_group *group)
{
	struct ipoib *ip = group->ip;

	sa_cancel(ip, &group->query);
	group_detach(group);
	sa_leave(ip, group);
	tx_drop_queue(ip, &group->queue);
	if (group->ah)
		ip->ops->destroy_ah(group->ah);
	HASH_DEL(ip->groups, group);
	slots_remove(&ip->group_slots, group->slot);
	free(group);
}

static void group_retry(struct ipoib_group *group)
{
	group->state = GROUP_IDLE;
	group->next = ipoib_now(group->ip) + group->delay;
	group->delay = group->delay * 2 < DELAY_MAX ? group->delay * 2 : DELAY_MAX;
}

static void group_join(struct ipoib_group *group)
{
	struct ipoib *ip = group->ip;

	if (!ip->active || (!group->broadcast && !ip->mcast_mtu) || group->state != GROUP_IDLE)
		return;
	/* The broadcast group should be there; others begin with their first member. */
	if (!group->broadcast)
		group->create = group->full && !group->promisc;
	group->state = GROUP_JOINING;
	if (sa_join(ip, group) && group->state == GROUP_JOINING)
		group_retry(group);
}

static void group_text(const struct ipoib_group *group, char text[INET6_ADDRSTRLEN])
{
	inet_ntop(AF_INET6, group->mgid.raw, text, INET6_ADDRSTRLEN);
}

/* Told once, not with each further try. */
static void failure_notice(struct ipoib_group *group)
{
	struct ipoib *ip = group->ip;
	char text[INET6_ADDRSTRLEN];

	group_text(group, text);
	if (group->delay > 1)
		return;
	if (group->broadcast)
		ipoib_notice(ip, "broadcast_absent", "IPoIB broadcast group absent");
	if (group->rejoin && !group->promisc)
		ipoib_notice(ip, "rejoin_failed", "Failure on port up to rejoin multicast gid %s",
			     text);
	if (group->promisc && !group->host)
		ipoib_notice(ip, "promisc_missed", "IBA promiscuous mode missed %s %s",
			     group->late ? "new multicast gid" : "multicast group", text);
}

static void join_failed(struct ipoib_group *group, int err)
{
	struct ipoib *ip = group->ip;

	/* Is it not there, or is it only not for this port? */
	if (err > 0 && group->broadcast && !group->create && !sa_describe(ip, group))
		return;
	if (err > 0)
		failure_notice(group);
	group->rejoin = false;
	group->create = false;
	group_retry(group);
	/* Nobody is in a group that isn't there. */
	if (!group->full && err > 0) {
		tx_drop_queue(ip, &group->queue);
		if (group->ah)
			ip->ops->destroy_ah(group->ah);
		group->ah = NULL;
	}
}

static unsigned int route_mtu(const struct ipoib_route *route)
{
	return route->mtu ? route->mtu : IBV_MTU_2048;
}

/* The MTU of the group is that of the whole IP subnet; RFC 4391 section 5. */
static bool broadcast_fits(struct ipoib_group *group, const struct ipoib_route *route)
{
	struct ipoib *ip = group->ip;

	if (route_mtu(route) <= ip->attr.max_mtu && route_mtu(route) <= IBV_MTU_4096)
		return true;
	if (group->delay <= 1)
		ipoib_notice(ip, "broadcast_mtu", "IPoIB broadcast group MTU %u greater than "
			     "port's maximum MTU %u", 128U << (route_mtu(route) & 15),
			     128U << ip->attr.max_mtu);
	return false;
}

/* The broadcast group that wouldn't have us: if it isn't there, make it. */
void mcast_described(struct ipoib_group *group, const struct ipoib_route *route, int err)
{
	if (err <= 0) {
		if (!err && broadcast_fits(group, route))
			failure_notice(group);
		group->rejoin = false;
		group_retry(group);
		return;
	}
	group->create = true;
	group->state = GROUP_IDLE;
	group_join(group);
}

static void join_waiting(struct ipoib *ip)
{
	struct ipoib_group *group, *tmp;

	HASH_ITER(hh, ip->groups, group, tmp) {
		group->delay = 1;
		if (group->full || group->queue.head || group->ah)
			group_join(group);
	}
}

static void flush_queue(struct ipoib_group *group)
{
	struct ipoib_tx *tx;

	while ((tx = tx_dequeue(group->ip, &group->queue)) != NULL)
		ud_send(group->ip, tx, group->ah, MCAST_QPN, group->qkey);
}

void mcast_joined(struct ipoib_group *group, int err)
{
	struct ipoib *ip = group->ip;
	struct ibfs_ah *ah;

	if (!err && group->broadcast && !broadcast_fits(group, &group->route)) {
		group_retry(group);
		return;
	}
	if (err) {
		join_failed(group, err);
		return;
	}
	if (group->broadcast) {
		ip->mcast_mtu = (128U << route_mtu(&group->route)) - IPOIB_HEADER;
		ud_set_qkey(ip, group->qkey);
	}
	if (group->full && !group->attached)
		group->attached = !ip->ops->attach_mcast(ip->qp, &group->mgid, group->route.lid);
	ah = ud_ah(ip, &group->mgid, &group->route, true);
	if (!ah || (group->full && !group->attached)) {
		if (ah)
			ip->ops->destroy_ah(ah);
		group_retry(group);
		return;
	}
	if (group->ah)
		ip->ops->destroy_ah(group->ah);
	group->ah = ah;
	group->state = GROUP_JOINED;
	group->rejoin = false;
	group->delay = 1;
	group->joined = ipoib_now(ip);
	flush_queue(group);
	if (group->broadcast) {
		ipoib_set_up(ip, true);
		join_waiting(ip);
	}
}

int mcast_open(struct ipoib *ip)
{
	static const struct in6_addr all_nodes = { .s6_addr = { 0xff, 2, [15] = 1 } };
	union ibv_gid mgid;

	mcast_broadcast_gid(ip, &mgid);
	ip->bcast = group_get(ip, &mgid);
	if (!ip->bcast)
		return -ENOMEM;
	ip->bcast->broadcast = ip->bcast->full = ip->bcast->host = true;
	/* Every host is in these, and reports neither. */
	mcast_gid4(ip, htonl(INADDR_ALLHOSTS_GROUP), &mgid);
	mcast_host(ip, &mgid, true);
	mcast_gid6(ip, &all_nodes, &mgid);
	mcast_host(ip, &mgid, true);
	group_join(ip->bcast);
	return 0;
}

void mcast_close(struct ipoib *ip)
{
	struct ipoib_group *group, *tmp;

	HASH_ITER(hh, ip->groups, group, tmp)
		group_free(group);
	ip->bcast = NULL;
}

/* What it is to be a member of the group has changed. */
static void group_change(struct ipoib_group *group)
{
	struct ipoib *ip = group->ip;

	if (group->state == GROUP_JOINED && group->member.join != sa_join_state(group))
		sa_leave(ip, group);
	group->full = true;
	sa_cancel(ip, &group->query);
	group->state = GROUP_IDLE;
	group->delay = 1;
	group_join(group);
}

void mcast_host(struct ipoib *ip, const union ibv_gid *mgid, bool member)
{
	struct ipoib_group *group = member ? group_get(ip, mgid) : group_find(ip, mgid);

	if (!group || group->broadcast || group->host == member)
		return;
	group->host = member;
	if (!member && !group->promisc)
		group_free(group);
	else
		group_change(group);
}

void mcast_promisc(struct ipoib *ip, const union ibv_gid *mgid, bool late)
{
	struct ipoib_group *group = group_get(ip, mgid);

	if (!group)
		return;
	group->listed = ipoib_now(ip);
	if (group->promisc || group->broadcast)
		return;
	group->promisc = true;
	group->late = late;
	if (!group->host)
		group_change(group);
}

void mcast_promisc_until(struct ipoib *ip, ev_tstamp then)
{
	struct ipoib_group *group, *tmp;

	HASH_ITER(hh, ip->groups, group, tmp) {
		if (!group->promisc || group->listed >= then)
			continue;
		group->promisc = false;
		if (!group->host)
			group_free(group);
	}
}

void mcast_send(struct ipoib *ip, const union ibv_gid *mgid, struct ipoib_tx *tx)
{
	struct ipoib_group *group = ip->active ? group_get(ip, mgid) : NULL;

	if (!group) {
		ip->stats[IPOIB_TX_CARRIER_ERRORS]++;
		tx_free(ip, tx);
		return;
	}
	group->used = ipoib_now(ip);
	ip->stats[group->broadcast ? IPOIB_BRDCSTXMT : IPOIB_MULTIXMT]++;
	if (group->ah) {
		ud_send(ip, tx, group->ah, MCAST_QPN, group->qkey);
		return;
	}
	tx_queue(ip, &group->queue, tx);
	if (group->next <= group->used)
		group_join(group);
}

void mcast_port(struct ipoib *ip, bool down)
{
	struct ipoib_group *group, *tmp;

	HASH_ITER(hh, ip->groups, group, tmp) {
		sa_cancel(ip, &group->query);
		group->rejoin = group->rejoin || group->state == GROUP_JOINED;
		group->state = GROUP_IDLE;
		group->delay = 1;
		group->next = 0;
		group->create = false;
	}
	if (!down && ip->bcast)
		group_join(ip->bcast);
}

static void group_tick(struct ipoib_group *group, ev_tstamp now)
{
	bool wanted = group->full || group->queue.head;

	if (group->state == GROUP_IDLE) {
		if (wanted && group->next <= now)
			group_join(group);
		else if (!wanted && group->used + SEND_ONLY_IDLE < now)
			group_free(group);
		return;
	}
	if (group->full || group->state != GROUP_JOINED)
		return;
	if (group->used + SEND_ONLY_IDLE < now) {
		group_free(group);
	} else if (group->joined + SEND_ONLY_CHECK < now && group->used > group->joined) {
		group->state = GROUP_IDLE;
		group_join(group);
	}
}

void mcast_tick(struct ipoib *ip)
{
	struct ipoib_group *group, *tmp;

	HASH_ITER(hh, ip->groups, group, tmp)
		group_tick(group, ipoib_now(ip));
}
