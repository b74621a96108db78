/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbour discovery for IPv6: RFC 4861's solicitations and advertisements,
 * with the link-layer address option of RFC 4391 section 9.3. Routers' messages
 * go to the host, which has no use for addresses in them.
 */
#include <arpa/inet.h>
#include <netinet/icmp6.h>
#include <netinet/ip6.h>
#include <string.h>
#include <utlist.h>

#include "ipoib/ipoib.h"

struct nd {
	uint8_t header[IPOIB_HEADER];
	struct ip6_hdr ip;
	struct nd_neighbor_solicit msg;		/* an advertisement has the same layout */
	uint8_t opt_type, opt_len;
	uint8_t opt_reserved[2];
	uint8_t lladdr[IPOIB_ADDR_LEN];
} __attribute__((packed));

#define ND_OPT_LEN	3	/* of the option, in 8 bytes */

static void solicited_node(const struct in6_addr *addr, struct in6_addr *group)
{
	*group = (struct in6_addr){ .s6_addr = { 0xff, 2, [11] = 1, 0xff } };
	memcpy(group->s6_addr + 13, addr->s6_addr + 13, 3);
}

/* to: NULL, by the multicast group that `dst` is. */
static void nd_send(struct ipoib *ip, uint8_t type, uint8_t flags, const struct in6_addr *src,
		    const struct in6_addr *dst, const struct in6_addr *target,
		    const struct ipoib_addr *to)
{
	struct ipoib_tx *tx = tx_alloc(ip);
	struct nd nd = {
		.header = { IPOIB_IPV6 >> 8, IPOIB_IPV6 & 0xff },
		.ip = { .ip6_flow = htonl(6U << 28), .ip6_nxt = IPPROTO_ICMPV6, .ip6_hlim = 255,
			.ip6_plen = htons(sizeof(nd) - offsetof(struct nd, msg)),
			.ip6_src = *src, .ip6_dst = *dst },
		.msg = { .nd_ns_type = type, .nd_ns_reserved = htonl((uint32_t)flags << 24),
			 .nd_ns_target = *target },
		.opt_type = type == ND_NEIGHBOR_SOLICIT ? ND_OPT_SOURCE_LINKADDR :
							  ND_OPT_TARGET_LINKADDR,
		.opt_len = ND_OPT_LEN,
	};
	union ibv_gid mgid;

	if (!tx) {
		ip->stats[IPOIB_NOXMTBUF]++;
		return;
	}
	memcpy(nd.lladdr, ip->addr.raw, IPOIB_ADDR_LEN);
	nd.msg.nd_ns_cksum = icmp6_sum(src, dst, &nd.msg, sizeof(nd) - offsetof(struct nd, msg),
				       IPPROTO_ICMPV6);
	memcpy(tx->data, &nd, sizeof(nd));
	tx->len = sizeof(nd);
	tx->own = true;
	if (to) {
		ipoib_xmit_to(ip, tx, to);
		return;
	}
	mcast_gid6(ip, dst, &mgid);
	mcast_send(ip, &mgid, tx);
}

void nd_ask(struct ipoib *ip, const struct in6_addr *target, const struct ipoib_addr *to)
{
	const struct ipoib_host_addr *from = host_source(ip, target);
	struct in6_addr group;

	if (!from)
		return;
	solicited_node(target, &group);
	nd_send(ip, ND_NEIGHBOR_SOLICIT, 0, &from->addr, to ? target : &group, target, to);
}

void nd_announce(struct ipoib *ip, const struct in6_addr *addr)
{
	static const struct in6_addr all_nodes = { .s6_addr = { 0xff, 2, [15] = 1 } };

	if (ip->mcast_mtu)
		nd_send(ip, ND_NEIGHBOR_ADVERT, ND_NA_FLAG_OVERRIDE >> 24, addr, &all_nodes, addr,
			NULL);
}

/* Two addresses may share their group. */
static bool group_needed(const struct ipoib *ip, const struct in6_addr *addr)
{
	const struct ipoib_host_addr *a;

	DL_FOREACH(ip->host.addrs, a)
		if (!IN6_IS_ADDR_V4MAPPED(&a->addr) &&
		    !memcmp(a->addr.s6_addr + 13, addr->s6_addr + 13, 3))
			return true;
	return false;
}

void nd_address(struct ipoib *ip, const struct in6_addr *addr, bool added)
{
	struct in6_addr group;
	union ibv_gid mgid;

	solicited_node(addr, &group);
	mcast_gid6(ip, &group, &mgid);
	mcast_host(ip, &mgid, added || group_needed(ip, addr));
	if (added)
		nd_announce(ip, addr);
}

/* The link-layer address option of a kind, if there is one that is as it should be. */
static bool nd_option(const uint8_t *opt, size_t len, uint8_t type, struct ipoib_addr *lladdr)
{
	while (len >= 8) {
		size_t size = opt[1] * 8U;

		if (!size || size > len)
			return false;
		if (opt[0] == type && opt[1] == ND_OPT_LEN) {
			memcpy(lladdr->raw, opt + 4, IPOIB_ADDR_LEN);
			return true;
		}
		opt += size;
		len -= size;
	}
	return false;
}

static void on_solicit(struct ipoib *ip, const struct ip6_hdr *ip6,
		       const struct nd_neighbor_solicit *msg, const struct ipoib_addr *lladdr)
{
	static const struct in6_addr all_nodes = { .s6_addr = { 0xff, 2, [15] = 1 } };
	struct in6_addr from = ip6->ip6_src, target = msg->nd_ns_target;

	if (!host_has(ip, &target))
		return;
	/* Somebody wants to have the address: all shall know that it is taken. */
	if (IN6_IS_ADDR_UNSPECIFIED(&from)) {
		nd_send(ip, ND_NEIGHBOR_ADVERT, ND_NA_FLAG_OVERRIDE >> 24, &target, &all_nodes,
			&target, NULL);
		return;
	}
	if (!lladdr)
		return;
	neigh_learn(ip, &from, lladdr, true);
	nd_send(ip, ND_NEIGHBOR_ADVERT, (ND_NA_FLAG_OVERRIDE | ND_NA_FLAG_SOLICITED) >> 24,
		&target, &from, &target, lladdr);
}

bool nd_receive(struct ipoib *ip, const struct ipoib_rx *rx)
{
	const struct ip6_hdr *ip6 = (const struct ip6_hdr *)(rx->msg + IPOIB_HEADER);
	const struct nd_neighbor_solicit *msg = (const void *)(ip6 + 1);
	size_t len = rx->len - IPOIB_HEADER, plen;
	struct in6_addr src, dst, target;
	struct ipoib_addr lladdr;
	bool has;

	if (len < sizeof(*ip6) + sizeof(*msg) || ip6->ip6_nxt != IPPROTO_ICMPV6 ||
	    (msg->nd_ns_type != ND_NEIGHBOR_SOLICIT && msg->nd_ns_type != ND_NEIGHBOR_ADVERT))
		return false;
	plen = ntohs(ip6->ip6_plen);
	src = ip6->ip6_src;
	dst = ip6->ip6_dst;
	if (plen < sizeof(*msg) || plen > len - sizeof(*ip6) || ip6->ip6_hlim != 255 ||
	    msg->nd_ns_code || icmp6_sum(&src, &dst, msg, plen, IPPROTO_ICMPV6)) {
		ip->stats[IPOIB_IERRORS]++;
		return true;
	}
	has = nd_option((const uint8_t *)(msg + 1), plen - sizeof(*msg),
			msg->nd_ns_type == ND_NEIGHBOR_SOLICIT ? ND_OPT_SOURCE_LINKADDR :
								 ND_OPT_TARGET_LINKADDR, &lladdr);
	if (has)
		peer_heard(ip, rx, &lladdr);
	target = msg->nd_ns_target;
	if (msg->nd_ns_type == ND_NEIGHBOR_SOLICIT)
		on_solicit(ip, ip6, msg, has ? &lladdr : NULL);
	else if (has && !host_has(ip, &target))
		neigh_learn(ip, &target, &lladdr, false);
	return true;
}
