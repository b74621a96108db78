/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which multicast groups the host is in: learnt from the reports that it sends,
 * as a switch that snoops does, and asked for as a router does. So it works in
 * any namespace. IGMP: RFC 1112, 2236, 3376; MLD: RFC 2710, 3810.
 */
#include <arpa/inet.h>
#include <linux/igmp.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <string.h>

#include "ipoib/ipoib.h"

#define MLD2_REPORT	143
#define GENERAL_TIME	10	/* max response time: 1 s for IGMP (tenths) */

/* What a record of a group says, both protocols the same: -1 nothing, else member or not. */
static int record_member(uint8_t type, unsigned int sources)
{
	switch (type) {
	case IGMPV3_MODE_IS_EXCLUDE:
	case IGMPV3_CHANGE_TO_EXCLUDE:
		return 1;
	case IGMPV3_MODE_IS_INCLUDE:
	case IGMPV3_ALLOW_NEW_SOURCES:
		return sources ? 1 : -1;
	case IGMPV3_CHANGE_TO_INCLUDE:
		return sources != 0;
	default:
		return -1;
	}
}

static void host_group4(struct ipoib *ip, const void *addr, bool member)
{
	union ibv_gid mgid;
	uint32_t group;

	memcpy(&group, addr, 4);
	if (!IN_MULTICAST(ntohl(group)) || group == htonl(INADDR_ALLHOSTS_GROUP))
		return;
	mcast_gid4(ip, group, &mgid);
	mcast_host(ip, &mgid, member);
}

static void host_group6(struct ipoib *ip, const void *addr, bool member)
{
	static const struct in6_addr all_nodes = { .s6_addr = { 0xff, 2, [15] = 1 } };
	struct in6_addr group;
	union ibv_gid mgid;

	memcpy(&group, addr, sizeof(group));
	if (!IN6_IS_ADDR_MULTICAST(&group) || IN6_IS_ADDR_MC_NODELOCAL(&group) ||
	    IN6_ARE_ADDR_EQUAL(&group, &all_nodes))
		return;
	mcast_gid6(ip, &group, &mgid);
	mcast_host(ip, &mgid, member);
}

/* Records behind an 8-byte header: type, length of the rest, number of sources, group. */
static void records(struct ipoib *ip, const uint8_t *msg, size_t len, size_t addr_len,
		    void (*host)(struct ipoib *, const void *, bool))
{
	size_t at = 8, step;
	unsigned int count;

	if (len < at)
		return;
	for (count = msg[6] << 8 | msg[7]; count && at + 4 + addr_len <= len; count--) {
		unsigned int sources = msg[at + 2] << 8 | msg[at + 3];
		int member = record_member(msg[at], sources);

		if (member >= 0)
			host(ip, msg + at + 4, member);
		step = 4 + addr_len + sources * addr_len + msg[at + 1] * 4U;
		if (step > len - at)
			return;
		at += step;
	}
}

void igmp_watch4(struct ipoib *ip, const uint8_t *packet, size_t len)
{
	const struct iphdr *iph = (const struct iphdr *)packet;
	size_t at = iph->ihl * 4U;

	if (iph->protocol != IPPROTO_IGMP || len < at + 8)
		return;
	switch (packet[at]) {
	case IGMP_HOST_MEMBERSHIP_REPORT:
	case IGMPV2_HOST_MEMBERSHIP_REPORT:
		host_group4(ip, packet + at + 4, true);
		break;
	case IGMP_HOST_LEAVE_MESSAGE:
		host_group4(ip, packet + at + 4, false);
		break;
	case IGMPV3_HOST_MEMBERSHIP_REPORT:
		records(ip, packet + at, len - at, 4, host_group4);
		break;
	default:
		break;
	}
}

/* MLD comes behind a hop-by-hop header with the router alert. */
void igmp_watch6(struct ipoib *ip, const uint8_t *packet, size_t len)
{
	const struct ip6_hdr *ip6 = (const struct ip6_hdr *)packet;
	size_t at = sizeof(*ip6);

	if (ip6->ip6_nxt != IPPROTO_HOPOPTS || len < at + 8 || packet[at] != IPPROTO_ICMPV6)
		return;
	at += (packet[at + 1] + 1U) * 8;
	if (len < at + 8)
		return;
	switch (packet[at]) {
	case MLD_LISTENER_REPORT:
	case MLD_LISTENER_REDUCTION:
		if (len >= at + 24)
			host_group6(ip, packet + at + 8, packet[at] == MLD_LISTENER_REPORT);
		break;
	case MLD2_REPORT:
		records(ip, packet + at, len - at, 16, host_group6);
		break;
	default:
		break;
	}
}

static void query4(struct ipoib *ip)
{
	struct {
		struct iphdr ip;
		uint8_t alert[4];
		uint8_t igmp[12];
	} __attribute__((packed)) q = {
		.ip = { .version = 4, .ihl = 6, .tos = 0xc0, .tot_len = htons(sizeof(q)), .ttl = 1,
			.protocol = IPPROTO_IGMP, .daddr = htonl(INADDR_ALLHOSTS_GROUP) },
		.alert = { IPOPT_RA, 4 },
		.igmp = { IGMP_HOST_MEMBERSHIP_QUERY, GENERAL_TIME },
	};
	uint16_t sum = ip_fold(ip_sum(q.igmp, sizeof(q.igmp), 0));

	memcpy(q.igmp + 2, &sum, 2);
	q.ip.check = ip_fold(ip_sum(&q, sizeof(q.ip) + sizeof(q.alert), 0));
	tun_write(ip, &q, sizeof(q), false);
}

/* From a link-local address, as it has to be, that nobody has. */
static void query6(struct ipoib *ip)
{
	struct {
		struct ip6_hdr ip;
		uint8_t hop[8];
		uint8_t mld[28];
	} __attribute__((packed)) q = {
		.ip = { .ip6_flow = htonl(6U << 28),
			.ip6_plen = htons(sizeof(q) - sizeof(struct ip6_hdr)),
			.ip6_nxt = IPPROTO_HOPOPTS, .ip6_hlim = 1,
			.ip6_src = { .s6_addr = { 0xfe, 0x80 } },
			.ip6_dst = { .s6_addr = { 0xff, 2, [15] = 1 } } },
		.hop = { IPPROTO_ICMPV6, 0, 5, 2, 0, 0, 1, 0 },
		.mld = { MLD_LISTENER_QUERY, [4] = 0x03, [5] = 0xe8 },	/* within 1000 ms */
	};
	struct in6_addr from = q.ip.ip6_src, to = q.ip.ip6_dst;
	uint16_t sum = icmp6_sum(&from, &to, q.mld, sizeof(q.mld), IPPROTO_ICMPV6);

	memcpy(q.mld + 2, &sum, 2);
	tun_write(ip, &q, sizeof(q), false);
}

void igmp_query(struct ipoib *ip)
{
	query4(ip);
	query6(ip);
}
