/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses as the ABI has them, and as a request tells them to the other end:
 * in a header of its private data. IBA annex A11; kernel cma.c, addr.c.
 */
#include <endian.h>
#include <string.h>

#include "fs/ucma.h"

size_t ucma_addr_len(const union ucma_addr *addr)
{
	switch (addr->sa.sa_family) {
	case AF_INET:
		return sizeof(addr->in);
	case AF_INET6:
		return sizeof(addr->in6);
	case AF_IB:
		return sizeof(addr->ib);
	default:
		return 0;
	}
}

bool ucma_addr_any(const union ucma_addr *addr)
{
	static const uint8_t loopback[16] = { [15] = 1 };
	static const uint8_t zero[16];
	const void *raw;

	if (addr->sa.sa_family == AF_INET)
		return !addr->in.sin_addr.s_addr || ntohl(addr->in.sin_addr.s_addr) >> 24 == 127;
	raw = addr->sa.sa_family == AF_IB ? (const void *)addr->ib.sib_addr : &addr->in6.sin6_addr;
	return !memcmp(raw, zero, 16) || !memcmp(raw, loopback, 16);
}

uint16_t ucma_addr_port(const union ucma_addr *addr)
{
	switch (addr->sa.sa_family) {
	case AF_INET:
		return ntohs(addr->in.sin_port);
	case AF_INET6:
		return ntohs(addr->in6.sin6_port);
	default:
		return be64toh(addr->ib.sib_sid) & be64toh(addr->ib.sib_sid_mask) & 0xffff;
	}
}

void ucma_addr_set_port(union ucma_addr *addr, uint16_t port)
{
	if (addr->sa.sa_family == AF_INET)
		addr->in.sin_port = htons(port);
	else if (addr->sa.sa_family == AF_INET6)
		addr->in6.sin6_port = htons(port);
	if (addr->sa.sa_family != AF_IB)
		return;
	addr->ib.sib_sid = htobe64((be64toh(addr->ib.sib_sid) & ~UINT64_C(0xffff)) | port);
	addr->ib.sib_sid_mask = UINT64_MAX;
}

struct in6_addr ucma_addr_in6(const union ucma_addr *addr)
{
	struct in6_addr in6 = addr->in6.sin6_addr;

	if (addr->sa.sa_family == AF_INET)
		in6 = (struct in6_addr){
			.s6_addr32 = { 0, 0, htonl(0xffff), addr->in.sin_addr.s_addr },
		};
	else if (addr->sa.sa_family == AF_IB)
		memcpy(&in6, addr->ib.sib_addr, sizeof(in6));
	return in6;
}

bool ucma_addr_same(const union ucma_addr *a, const union ucma_addr *b)
{
	struct in6_addr x = ucma_addr_in6(a), y = ucma_addr_in6(b);

	return a->sa.sa_family == b->sa.sa_family && !memcmp(&x, &y, sizeof(x));
}

uint64_t ucma_service_id(const struct ucma_id *id, const union ucma_addr *addr)
{
	if (addr->sa.sa_family == AF_IB)
		return be64toh(addr->ib.sib_sid);
	return (uint64_t)id->ps << 16 | ucma_addr_port(addr);
}

bool ucma_addr_multicast(const union ucma_addr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		return IN_MULTICAST(ntohl(addr->in.sin_addr.s_addr));
	return addr->sa.sa_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&addr->in6.sin6_addr);
}

/* --- the header --- */

static void put_ip(__be32 to[4], const union ucma_addr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		to[3] = addr->in.sin_addr.s_addr;
	else
		memcpy(to, &addr->in6.sin6_addr, 16);
}

void ucma_header_put(struct cma_hdr *hdr, const struct ucma_id *id)
{
	*hdr = (struct cma_hdr){
		.ip_version = id->dst.sa.sa_family == AF_INET ? 4 << 4 : 6 << 4,
		.port = htons(ucma_addr_port(&id->src)),
	};
	put_ip(hdr->src, &id->src);
	put_ip(hdr->dst, &id->dst);
}

union ucma_addr ucma_header_ip(const struct cma_hdr *hdr, const __be32 from[4], uint16_t port)
{
	union ucma_addr addr = { .sa.sa_family = AF_UNSPEC };

	if (hdr->ip_version >> 4 == 4) {
		addr.in.sin_family = AF_INET;
		addr.in.sin_addr.s_addr = from[3];
	} else {
		addr.in6.sin6_family = AF_INET6;
		memcpy(&addr.in6.sin6_addr, from, 16);
	}
	ucma_addr_set_port(&addr, port);
	return addr;
}

size_t ucma_header_len(const struct ucma_id *id)
{
	return id->src.sa.sa_family == AF_IB ? 0 : sizeof(struct cma_hdr);
}
