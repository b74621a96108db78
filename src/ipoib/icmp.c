/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the host is told when a packet of its own can't go: fragmentation needed
 * (RFC 1191, RFC 8201) and unreachable (RFC 792, RFC 4443), as if from where
 * the packet was going to.
 */
#include <arpa/inet.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <string.h>

#include "ipoib/ipoib.h"

#define QUOTE4	548U	/* of the packet: 576 in all; RFC 1812 4.3.2.3 */
#define QUOTE6	1232U	/* 1280 in all; RFC 4443 2.4 */

static void icmp4(struct ipoib *ip, const struct ipoib_tx *tx, uint8_t code, uint16_t mtu)
{
	const struct iphdr *old = (const struct iphdr *)(tx->data + IPOIB_HEADER);
	size_t len = tx->len - IPOIB_HEADER;
	struct {
		struct iphdr ip;
		struct icmphdr icmp;
		uint8_t quote[QUOTE4];
	} __attribute__((packed)) m = {
		.ip = { .version = 4, .ihl = 5, .tos = 0xc0, .ttl = 64, .protocol = IPPROTO_ICMP,
			.saddr = old->daddr, .daddr = old->saddr },
		.icmp = { .type = ICMP_DEST_UNREACH, .code = code,
			  .un.frag.mtu = htons(mtu) },
	};

	if (len > QUOTE4)
		len = QUOTE4;
	/* Not about an error, nor to nobody. */
	if (!old->saddr || (old->protocol == IPPROTO_ICMP && len > old->ihl * 4U &&
			    ((const uint8_t *)old)[old->ihl * 4U] == ICMP_DEST_UNREACH))
		return;
	memcpy(m.quote, old, len);
	len += sizeof(m.icmp);
	m.icmp.checksum = ip_fold(ip_sum(&m.icmp, len, 0));
	len += sizeof(m.ip);
	m.ip.tot_len = htons(len);
	m.ip.check = ip_fold(ip_sum(&m.ip, sizeof(m.ip), 0));
	tun_write(ip, &m, len, false);
}

static void icmp6(struct ipoib *ip, const struct ipoib_tx *tx, uint8_t type, uint8_t code,
		  uint32_t mtu)
{
	const struct ip6_hdr *old = (const struct ip6_hdr *)(tx->data + IPOIB_HEADER);
	struct in6_addr from = old->ip6_dst, to = old->ip6_src;
	size_t len = tx->len - IPOIB_HEADER;
	struct {
		struct ip6_hdr ip;
		struct icmp6_hdr icmp;
		uint8_t quote[QUOTE6];
	} __attribute__((packed)) m = {
		.ip = { .ip6_flow = htonl(6U << 28), .ip6_nxt = IPPROTO_ICMPV6, .ip6_hlim = 64,
			.ip6_src = from, .ip6_dst = to },
		.icmp = { .icmp6_type = type, .icmp6_code = code, .icmp6_data32 = { htonl(mtu) } },
	};

	if (IN6_IS_ADDR_UNSPECIFIED(&to) || IN6_IS_ADDR_MULTICAST(&from))
		return;
	if (len > QUOTE6)
		len = QUOTE6;
	memcpy(m.quote, old, len);
	len += sizeof(m.icmp);
	m.ip.ip6_plen = htons(len);
	m.icmp.icmp6_cksum = icmp6_sum(&from, &to, &m.icmp, len, IPPROTO_ICMPV6);
	tun_write(ip, &m, sizeof(m.ip) + len, false);
}

static bool is_ip(const struct ipoib_tx *tx, unsigned int version)
{
	size_t least = version == 4 ? sizeof(struct iphdr) : sizeof(struct ip6_hdr);

	return tx->len >= IPOIB_HEADER + least && tx->data[IPOIB_HEADER] >> 4 == version;
}

void icmp_too_big(struct ipoib *ip, const struct ipoib_tx *tx, unsigned int mtu)
{
	if (is_ip(tx, 4))
		icmp4(ip, tx, ICMP_FRAG_NEEDED, mtu);
	else if (is_ip(tx, 6))
		icmp6(ip, tx, ICMP6_PACKET_TOO_BIG, 0, mtu);
}

void icmp_unreachable(struct ipoib *ip, const struct ipoib_tx *tx)
{
	if (is_ip(tx, 4))
		icmp4(ip, tx, ICMP_HOST_UNREACH, 0);
	else if (is_ip(tx, 6))
		icmp6(ip, tx, ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_ADDR, 0);
}
