/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Promiscuous mode: all multicast groups of the partition that the SA has are
 * joined, as a member that doesn't keep them alive (IBA 15.2.5.17.2), and it
 * is asked for new ones again and again. RFC 4391 section 8.
 */
#include <string.h>

#include "ipoib/sa.h"

#define SCAN	3.0	/* s */

void promisc_set(struct ipoib *ip, bool on)
{
	ip->promisc = on;
	ip->listen.next = 0;
	ip->listen.listed = ip->listen.failed = false;
	if (!ip->created)
		return;
	sa_cancel(ip, &ip->listen.query);
	if (on)
		promisc_tick(ip);
	else
		mcast_promisc_until(ip, ipoib_now(ip) + 1);
}

void promisc_tick(struct ipoib *ip)
{
	ev_tstamp now = ipoib_now(ip);

	if (!ip->promisc || !ip->carrier || now < ip->listen.next || ip->listen.query.tid)
		return;
	ip->listen.next = now + SCAN;
	sa_groups(ip, &ip->listen.query);
}

/* Of IP, and of this partition; its scope doesn't matter. */
static bool is_ours(const struct ipoib *ip, const uint8_t *mgid)
{
	return mgid[0] == 0xff && (mgid[2] == 0x40 || mgid[2] == 0x60) && mgid[3] == 0x1b &&
	       mgid[4] == ip->pkey >> 8 && mgid[5] == (ip->pkey & 0xff);
}

void promisc_groups(struct ipoib *ip, int err, const void *records, size_t stride, size_t size)
{
	const struct mcmember *mcm;
	union ibv_gid mgid;

	if (err || stride < sizeof(*mcm)) {
		if (!ip->listen.failed)
			ipoib_notice(ip, "promisc_no_list",
				     "Could not get list of IBA multicast groups");
		ip->listen.failed = true;
		return;
	}
	for (size_t at = 0; at + sizeof(*mcm) <= size; at += stride) {
		mcm = (const void *)((const uint8_t *)records + at);
		if (!is_ours(ip, mcm->mgid))
			continue;
		memcpy(mgid.raw, mcm->mgid, 16);
		mcast_promisc(ip, &mgid, ip->listen.listed);
	}
	ip->listen.listed = !ip->static_subnet;
	ip->listen.failed = false;
	/* A group that others have left goes, but not for one list that lacked it. */
	mcast_promisc_until(ip, ipoib_now(ip) - 2 * SCAN);
}
