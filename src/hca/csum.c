/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IP checksums and large send offload of datagrams. RFC 791, 793, 768, 1071,
 * 4391. Works on bytes that may come from anywhere: every length is checked.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <string.h>

#include "fabric/packet.h"
#include "hca/csum.h"

#define ENCAP 4
#define MSG_MAX 4096

static uint32_t sum(const uint8_t *data, size_t len, uint32_t start)
{
	uint64_t total = start;
	size_t i;

	for (i = 0; i + 1 < len; i += 2)
		total += (uint32_t)data[i] << 8 | data[i + 1];
	if (len & 1)
		total += (uint32_t)data[len - 1] << 8;
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return total;
}

/* The IPv4 header of a message, with its whole datagram inside len; NULL: it isn't one. */
static struct iphdr *ip_header(uint8_t *msg, size_t len)
{
	struct iphdr *ip = (struct iphdr *)(msg + ENCAP);

	if (len < ENCAP + sizeof(*ip) || msg[0] != 0x08 || msg[1] != 0x00 || ip->version != 4)
		return NULL;
	if (ip->ihl < 5 || ip->ihl * 4U > ntohs(ip->tot_len) || ntohs(ip->tot_len) > len - ENCAP)
		return NULL;
	return ip;
}

/* The transport's checksum field, and how many bytes it covers; NULL: there is none. */
static uint8_t *l4_field(struct iphdr *ip, size_t *l4_len)
{
	uint8_t *l4 = (uint8_t *)ip + ip->ihl * 4;

	*l4_len = ntohs(ip->tot_len) - ip->ihl * 4;
	if (ntohs(ip->frag_off) & 0x3fff)
		return NULL;
	if (ip->protocol == IPPROTO_TCP && *l4_len >= sizeof(struct tcphdr))
		return l4 + offsetof(struct tcphdr, check);
	if (ip->protocol == IPPROTO_UDP && *l4_len >= sizeof(struct udphdr))
		return l4 + offsetof(struct udphdr, check);
	return NULL;
}

static uint32_t l4_sum(const struct iphdr *ip, size_t l4_len)
{
	uint32_t pseudo = sum((const uint8_t *)&ip->saddr, 8, ip->protocol + l4_len);

	return sum((const uint8_t *)ip + ip->ihl * 4, l4_len, pseudo);
}

static void put(uint8_t *field, uint16_t value)
{
	field[0] = value >> 8;
	field[1] = value;
}

bool csum_fill(uint8_t *msg, size_t len)
{
	struct iphdr *ip = ip_header(msg, len);
	uint8_t *field;
	size_t l4_len;

	if (!ip)
		return false;
	ip->check = 0;
	put((uint8_t *)&ip->check, ~sum((uint8_t *)ip, ip->ihl * 4, 0));
	field = l4_field(ip, &l4_len);
	if (field) {
		uint16_t value;

		put(field, 0);
		value = ~l4_sum(ip, l4_len);
		put(field, value || ip->protocol == IPPROTO_TCP ? value : 0xffff);
	}
	return true;
}

bool csum_packet_ok(const struct packet *pkt, uint32_t off, uint32_t len)
{
	uint8_t msg[MSG_MAX] __attribute__((aligned(4)));
	struct iphdr *ip;
	uint8_t *field;
	size_t l4_len;

	if (len > sizeof(msg) || packet_gather(pkt, off, msg, ENCAP) < ENCAP ||
	    msg[0] != 0x08 || msg[1] != 0x00)
		return false;
	packet_gather(pkt, off, msg, len);
	ip = ip_header(msg, len);
	if (!ip || sum((uint8_t *)ip, ip->ihl * 4, 0) != 0xffff)
		return false;
	field = l4_field(ip, &l4_len);
	if (!field)
		return false;
	if (ip->protocol == IPPROTO_UDP && !field[0] && !field[1])
		return true;
	return l4_sum(ip, l4_len) == 0xffff;
}

bool lso_header(uint8_t *msg, size_t hlen, uint32_t part, uint32_t off, uint32_t len, bool last)
{
	struct iphdr *ip = (struct iphdr *)(msg + ENCAP);
	struct tcphdr *tcp;

	if (hlen < ENCAP + sizeof(*ip) || msg[0] != 0x08 || msg[1] != 0x00 || ip->version != 4 ||
	    ip->ihl < 5 || ip->protocol != IPPROTO_TCP ||
	    hlen < ENCAP + ip->ihl * 4 + sizeof(*tcp))
		return false;
	tcp = (struct tcphdr *)((uint8_t *)ip + ip->ihl * 4);
	ip->id = htons(ntohs(ip->id) + part);
	ip->tot_len = htons(hlen - ENCAP + len);
	tcp->seq = htonl(ntohl(tcp->seq) + off);
	if (!last)
		tcp->fin = tcp->psh = 0;
	return true;
}
