/* SPDX-License-Identifier: BSD-2-Clause */
/* The Internet checksum, RFC 1071, over what goes to and comes from the host. */
#include <string.h>

#include "ipoib/ipoib.h"

/* Sums of native words are the sum of big-endian ones with their bytes swapped. */
uint32_t ip_sum(const void *data, size_t len, uint32_t start)
{
	const uint8_t *at = data;
	uint64_t sum = start, more = 0;
	uint32_t word[4];
	uint16_t half = 0;

	for (; len >= sizeof(word); at += sizeof(word), len -= sizeof(word)) {
		memcpy(word, at, sizeof(word));
		sum += (uint64_t)word[0] + word[1];
		more += (uint64_t)word[2] + word[3];
	}
	sum += more;
	for (; len >= 2; at += 2, len -= 2) {
		memcpy(&half, at, 2);
		sum += half;
	}
	if (len) {
		half = 0;
		memcpy(&half, at, 1);
		sum += half;
	}
	while (sum >> 32)
		sum = (sum & 0xffffffff) + (sum >> 32);
	return sum;
}

uint16_t ip_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

uint16_t icmp6_sum(const struct in6_addr *from, const struct in6_addr *to, const void *msg,
		   size_t len, uint8_t proto)
{
	uint32_t tail[2] = { htonl(len), htonl(proto) };
	uint64_t sum = ip_sum(from, sizeof(*from), 0);

	sum += ip_sum(to, sizeof(*to), 0);
	sum += ip_sum(tail, sizeof(tail), 0);
	while (sum >> 32)
		sum = (sum & 0xffffffff) + (sum >> 32);
	return ip_fold(ip_sum(msg, len, sum));
}

/* The field holds the sum of the pseudo header already. */
bool csum_complete(struct ipoib_tx *tx)
{
	uint8_t *packet = tx->data + IPOIB_HEADER;
	size_t len = tx->len - IPOIB_HEADER, start = tx->vnet.csum_start;
	size_t field = start + tx->vnet.csum_offset;
	uint16_t value;

	if (start > len || field + sizeof(value) > len)
		return false;
	value = ip_fold(ip_sum(packet + start, len - start, 0));
	/* 0 means none to UDP, and is the same number to the others. */
	if (!value)
		value = 0xffff;
	memcpy(packet + field, &value, sizeof(value));
	tx->vnet.flags &= ~VIRTIO_NET_HDR_F_NEEDS_CSUM;
	return true;
}
