/* SPDX-License-Identifier: BSD-2-Clause */
/* ARP over InfiniBand: RFC 826 with the 20-byte addresses of RFC 4391 section 9.1. */
#include <arpa/inet.h>
#include <net/if_arp.h>
#include <string.h>

#include "ipoib/ipoib.h"

struct arp {
	uint8_t header[IPOIB_HEADER];
	struct arphdr hdr;
	uint8_t sha[IPOIB_ADDR_LEN];
	uint8_t spa[4];
	uint8_t tha[IPOIB_ADDR_LEN];
	uint8_t tpa[4];
} __attribute__((packed));

/* to: NULL, all; tha likewise unknown. */
static void arp_send(struct ipoib *ip, uint16_t op, uint32_t from, uint32_t target,
		     const struct ipoib_addr *to)
{
	struct ipoib_tx *tx = tx_alloc(ip);
	struct arp arp = {
		.header = { IPOIB_ARP >> 8, IPOIB_ARP & 0xff },
		.hdr = { htons(ARPHRD_INFINIBAND), htons(IPOIB_IPV4), IPOIB_ADDR_LEN, 4, htons(op) },
	};

	if (!tx) {
		ip->stats[IPOIB_NOXMTBUF]++;
		return;
	}
	memcpy(arp.sha, ip->addr.raw, IPOIB_ADDR_LEN);
	memcpy(arp.spa, &from, 4);
	memcpy(arp.tpa, &target, 4);
	if (to)
		memcpy(arp.tha, to->raw, IPOIB_ADDR_LEN);
	memcpy(tx->data, &arp, sizeof(arp));
	tx->len = sizeof(arp);
	tx->own = true;
	ipoib_xmit_to(ip, tx, to ? to : &ip->broadcast);
}

void arp_ask(struct ipoib *ip, uint32_t target, const struct ipoib_addr *to)
{
	const struct ipoib_host_addr *from;
	struct in6_addr addr;

	in6_from4(&addr, target);
	from = host_source(ip, &addr);
	arp_send(ip, ARPOP_REQUEST, from ? from->addr.s6_addr32[3] : 0, target, to);
}

/* RFC 5227 section 3: a request for one's own address, so that others correct what they have. */
void arp_announce(struct ipoib *ip, uint32_t addr)
{
	if (ip->mcast_mtu)
		arp_send(ip, ARPOP_REQUEST, addr, addr, NULL);
}

void arp_receive(struct ipoib *ip, const struct ipoib_rx *rx)
{
	struct in6_addr sender, target;
	struct ipoib_addr lladdr;
	uint32_t spa, tpa;
	struct arp arp;
	bool ours;

	if (rx->len < sizeof(arp)) {
		ip->stats[IPOIB_IERRORS]++;
		return;
	}
	memcpy(&arp, rx->msg, sizeof(arp));
	if (arp.hdr.ar_hrd != htons(ARPHRD_INFINIBAND) || arp.hdr.ar_pro != htons(IPOIB_IPV4) ||
	    arp.hdr.ar_hln != IPOIB_ADDR_LEN || arp.hdr.ar_pln != 4) {
		ip->stats[IPOIB_UNKNOWNS]++;
		return;
	}
	memcpy(&spa, arp.spa, 4);
	memcpy(&tpa, arp.tpa, 4);
	memcpy(lladdr.raw, arp.sha, IPOIB_ADDR_LEN);
	in6_from4(&sender, spa);
	in6_from4(&target, tpa);
	ours = host_has(ip, &target) != NULL;
	peer_heard(ip, rx, &lladdr);
	/* 0 is a probe: it says who asks, not whose the address is. */
	if (spa && !host_has(ip, &sender))
		neigh_learn(ip, &sender, &lladdr, ours);
	if (ours && arp.hdr.ar_op == htons(ARPOP_REQUEST))
		arp_send(ip, ARPOP_REPLY, tpa, spa, &lladdr);
}
