/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a packet goes: RFC 4391 section 4 for groups, neighbours for the rest. */
#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <string.h>

#include "ipoib/ipoib.h"

static void set_type(struct ipoib_tx *tx, uint16_t type)
{
	tx->data[0] = type >> 8;
	tx->data[1] = type & 0xff;
}

static void xmit4(struct ipoib *ip, struct ipoib_tx *tx)
{
	const struct iphdr *iph = (const struct iphdr *)(tx->data + IPOIB_HEADER);
	struct in6_addr to;
	union ibv_gid mgid;

	set_type(tx, IPOIB_IPV4);
	if (IN_MULTICAST(ntohl(iph->daddr))) {
		igmp_watch4(ip, tx->data + IPOIB_HEADER, tx->len - IPOIB_HEADER);
		mcast_gid4(ip, iph->daddr, &mgid);
		mcast_send(ip, &mgid, tx);
	} else if (host_is_broadcast(ip, iph->daddr)) {
		mcast_broadcast_gid(ip, &mgid);
		mcast_send(ip, &mgid, tx);
	} else {
		in6_from4(&to, iph->daddr);
		neigh_send(ip, &to, tx);
	}
}

static void xmit6(struct ipoib *ip, struct ipoib_tx *tx)
{
	const struct ip6_hdr *ip6 = (const struct ip6_hdr *)(tx->data + IPOIB_HEADER);
	struct in6_addr to = ip6->ip6_dst;
	union ibv_gid mgid;

	set_type(tx, IPOIB_IPV6);
	if (IN6_IS_ADDR_MULTICAST(&to)) {
		igmp_watch6(ip, tx->data + IPOIB_HEADER, tx->len - IPOIB_HEADER);
		mcast_gid6(ip, &to, &mgid);
		mcast_send(ip, &mgid, tx);
	} else {
		neigh_send(ip, &to, tx);
	}
}

void ipoib_xmit(struct ipoib *ip, struct ipoib_tx *tx)
{
	size_t len = tx->len - IPOIB_HEADER;
	unsigned int version = len ? tx->data[IPOIB_HEADER] >> 4 : 0;

	if (!ip->active || !ip->mcast_mtu) {
		ip->stats[IPOIB_TX_CARRIER_ERRORS]++;
		tx_free(ip, tx);
	} else if (version == 4 && len >= sizeof(struct iphdr)) {
		xmit4(ip, tx);
	} else if (version == 6 && len >= sizeof(struct ip6_hdr)) {
		xmit6(ip, tx);
	} else {
		ip->stats[IPOIB_OERRORS]++;
		tx_free(ip, tx);
	}
}

void ipoib_xmit_to(struct ipoib *ip, struct ipoib_tx *tx, const struct ipoib_addr *to)
{
	struct ipoib_peer *peer;
	union ibv_gid gid;

	memcpy(gid.raw, to->raw + 4, sizeof(gid.raw));
	if (gid.raw[0] == 0xff) {
		mcast_send(ip, &gid, tx);
		return;
	}
	peer = peer_get(ip, to);
	if (!peer) {
		ip->stats[IPOIB_TX_DROPPED]++;
		tx_free(ip, tx);
		return;
	}
	peer_send(ip, peer, tx);
	peer_put(ip, peer);
}
