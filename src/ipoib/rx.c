/* SPDX-License-Identifier: BSD-2-Clause */
/* What came in, by its EtherType: to the host, or to the daemon's own ARP and discovery. */
#include "ipoib/ipoib.h"

static void count(struct ipoib *ip, const struct ipoib_rx *rx)
{
	ip->stats[IPOIB_IPACKETS]++;
	ip->stats[IPOIB_RBYTES] += rx->len - IPOIB_HEADER;
	if (rx->broadcast)
		ip->stats[IPOIB_BRDCSTRCV]++;
	else if (rx->multicast)
		ip->stats[IPOIB_MULTIRCV]++;
}

void ipoib_receive(struct ipoib *ip, const struct ipoib_rx *rx)
{
	unsigned int type = rx->msg[0] << 8 | rx->msg[1];

	count(ip, rx);
	if (ip->listeners)
		frame_deliver(ip, rx->msg, rx->len);
	switch (type) {
	case IPOIB_ARP:
		arp_receive(ip, rx);
		break;
	case IPOIB_IPV6:
		if (nd_receive(ip, rx))
			break;
		/* fall through */
	case IPOIB_IPV4:
		tun_write(ip, rx->msg + IPOIB_HEADER, rx->len - IPOIB_HEADER, rx->csum_ok);
		break;
	default:
		ip->stats[IPOIB_UNKNOWNS]++;
	}
}
