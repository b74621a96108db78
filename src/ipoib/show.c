/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of an interface's files. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <ibfs/fs.h>

#include "ipoib/conn.h"

const struct ipoib_stat_name ipoib_stat_names[] = {
	{ "ipackets", IPOIB_IPACKETS, "Packets received" },
	{ "opackets", IPOIB_OPACKETS, "Packets sent" },
	{ "rbytes", IPOIB_RBYTES, "Bytes received, behind the 4-byte header" },
	{ "obytes", IPOIB_OBYTES, "Bytes sent, behind the 4-byte header" },
	{ "ierrors", IPOIB_IERRORS, "Packets received that were malformed" },
	{ "oerrors", IPOIB_OERRORS, "Packets that could not be sent" },
	{ "multircv", IPOIB_MULTIRCV, "Multicast packets received" },
	{ "multixmt", IPOIB_MULTIXMT, "Multicast packets sent" },
	{ "brdcstrcv", IPOIB_BRDCSTRCV, "Broadcast packets received" },
	{ "brdcstxmt", IPOIB_BRDCSTXMT, "Broadcast packets sent" },
	{ "norcvbuf", IPOIB_NORCVBUF, "Packets received that found no memory" },
	{ "noxmtbuf", IPOIB_NOXMTBUF, "Packets to send that found no memory" },
	{ "unknowns", IPOIB_UNKNOWNS, "Packets received that are for nobody, own broadcasts too" },
	{ "rx_packets", IPOIB_IPACKETS, NULL },
	{ "tx_packets", IPOIB_OPACKETS, NULL },
	{ "rx_bytes", IPOIB_RBYTES, NULL },
	{ "tx_bytes", IPOIB_OBYTES, NULL },
	{ "rx_errors", IPOIB_IERRORS, NULL },
	{ "tx_errors", IPOIB_OERRORS, NULL },
	{ "multicast", IPOIB_MULTIRCV, NULL },
	{ "rx_dropped", IPOIB_RX_DROPPED, "Packets received that the host didn't take" },
	{ "tx_dropped", IPOIB_TX_DROPPED, "Packets that nobody could be found for" },
	{ "rx_length_errors", IPOIB_RX_LENGTH_ERRORS, "Packets received without a whole header" },
	{ "tx_carrier_errors", IPOIB_TX_CARRIER_ERRORS, "Packets to send while the link was down" },
};
const unsigned int ipoib_num_stat_names = sizeof(ipoib_stat_names) / sizeof(ipoib_stat_names[0]);

static void print_addr(struct textbuf *out, const uint8_t *raw)
{
	for (unsigned int i = 0; i < IPOIB_ADDR_LEN; i++)
		text_printf(out, "%s%02x", i ? ":" : "", raw[i]);
}

int ipoib_show_address(const struct ipoib *ip, struct textbuf *out)
{
	if (!ip->created)
		return -ENXIO;
	print_addr(out, ip->addr.raw);
	text_printf(out, "\n");
	return 0;
}

int ipoib_show_broadcast(const struct ipoib *ip, struct textbuf *out)
{
	if (!ip->created)
		return -ENXIO;
	print_addr(out, ip->broadcast.raw);
	text_printf(out, "\n");
	return 0;
}

int ipoib_show_linkmode(const struct ipoib *ip, struct textbuf *out)
{
	text_printf(out, "%s\n", ip->connected ? "cm" : "ud");
	return 0;
}

int ipoib_show_mtu(const struct ipoib *ip, struct textbuf *out)
{
	if (!ip->created)
		return -ENXIO;
	text_printf(out, "%u\n", ip->host.mtu);
	return 0;
}

static const char *state_name(const struct ipoib *ip)
{
	if (!ip->created)
		return "new";
	if (!ip->active)
		return "down";
	return ip->carrier ? "up" : "joining";
}

int ipoib_show_status(const struct ipoib *ip, struct textbuf *out)
{
	text_printf(out, "state %s\nlinkmode %s\npromisc %s\noffload %s\n", state_name(ip),
		    ip->connected ? "cm" : "ud", ip->promisc ? "on" : "off",
		    ip->offload ? "on" : "off");
	if (ip->created)
		text_printf(out, "ifname %s\npkey 0x%04x\npkey_index %u\nqpn 0x%06x\nqkey 0x%08x\n"
			    "mtu %u\nmcast_mtu %u\nsubnet %s\n", ip->ifname, ip->pkey,
			    ip->pkey_index, ip->qpn, ip->qkey, ip->host.mtu, ip->mcast_mtu,
			    ip->static_subnet ? "static" : "sm");
	text_printf(out, "notice %s\n", ip->notice[0] ? ip->notice : "none");
	return 0;
}

/* What DL_INFO_ACK answers, under dlpi(7P)'s names. */
int ipoib_show_info(const struct ipoib *ip, struct textbuf *out)
{
	if (!ip->created)
		return -ENXIO;
	text_printf(out, "max_sdu %u\nmin_sdu 0\naddr_length 22\nmac_type DL_IB\nsap_length -2\n"
		    "brdcst_addr_length %d\nbrdcst_addr ", ipoib_max_mtu(ip), IPOIB_ADDR_LEN);
	return ipoib_show_broadcast(ip, out);
}

static const char *const neigh_states[] = {
	[NEIGH_INCOMPLETE] = "incomplete", [NEIGH_REACHABLE] = "reachable", [NEIGH_PROBE] = "probe",
};

static void print_ip(struct textbuf *out, const struct in6_addr *addr)
{
	char text[INET6_ADDRSTRLEN];

	if (IN6_IS_ADDR_V4MAPPED(addr))
		inet_ntop(AF_INET, &addr->s6_addr32[3], text, sizeof(text));
	else
		inet_ntop(AF_INET6, addr, text, sizeof(text));
	text_printf(out, "%s", text);
}

static void print_mode(struct textbuf *out, const struct ipoib_conn *conn)
{
	if (conn && conn->up)
		text_printf(out, " mode=cm mtu=%u", conn->mtu - IPOIB_HEADER);
	else
		text_printf(out, " mode=ud");
}

bool ipoib_show_neighbour(const struct ipoib *ip, uint32_t *next, struct textbuf *out)
{
	const struct ipoib_neigh *neigh = slots_next(&ip->neigh_slots, next);
	const struct ipoib_peer *peer = neigh ? neigh->peer : NULL;
	uint8_t raw[IPOIB_ADDR_LEN];

	if (!neigh)
		return false;
	print_ip(out, &neigh->addr);
	text_printf(out, " state=%s", neigh_states[neigh->state]);
	if (peer) {
		raw[0] = peer->flags;
		memcpy(raw + 1, peer->key, sizeof(peer->key));
		text_printf(out, " address=");
		print_addr(out, raw);
	}
	if (peer && peer->ah) {
		text_printf(out, " lid=0x%x sl=%u", peer->route.lid, peer->route.sl);
		print_mode(out, peer->conn);
	}
	text_printf(out, "\n");
	return true;
}

static const char *group_state(const struct ipoib_group *group)
{
	if (group->state == GROUP_JOINED)
		return group->full ? "joined" : "send_only";
	return group->state == GROUP_JOINING ? "joining" : "idle";
}

bool ipoib_show_group(const struct ipoib *ip, uint32_t *next, struct textbuf *out)
{
	const struct ipoib_group *group = slots_next(&ip->group_slots, next);
	char text[INET6_ADDRSTRLEN];

	if (!group)
		return false;
	inet_ntop(AF_INET6, group->mgid.raw, text, sizeof(text));
	text_printf(out, "%s state=%s", text, group_state(group));
	if (group->ah)
		text_printf(out, " mlid=0x%x qkey=0x%x", group->route.lid, group->qkey);
	text_printf(out, "%s%s\n", group->host ? " host" : "", group->promisc ? " promisc" : "");
	return true;
}
