/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checksums and segmentation of IP in datagrams, RFC 4391's encapsulation: a
 * 4-byte header (EtherType), then IPv4.
 */
#ifndef IBFS_HCA_CSUM_H
#define IBFS_HCA_CSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packet;

/* Fill in the IPv4 header's and TCP's or UDP's checksum; false: not such a packet, left alone. */
bool csum_fill(uint8_t *msg, size_t len);
/* Does the payload carry IPv4 with all checksums right? */
bool csum_packet_ok(const struct packet *pkt, uint32_t off, uint32_t len);
/*
 * Turn the headers of a large TCP segment into those of one that carries len
 * bytes from off on, the part-th: lengths, IP ID, sequence number, FIN and PSH on the last.
 * False: they aren't IPv4 and TCP.
 */
bool lso_header(uint8_t *msg, size_t hlen, uint32_t part, uint32_t off, uint32_t len, bool last);

#endif
