/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers on the wire, IBA volume 1 chapter 5.2 and 9.3 (LRH, GRH, BTH, DETH).
 * All fields big-endian as sent.
 */
#ifndef IBFS_FABRIC_WIRE_H
#define IBFS_FABRIC_WIRE_H

#include <linux/types.h>
#include <stdint.h>

#define LID_PERMISSIVE	0xffff
#define LID_MCAST_FIRST	0xc000
#define LID_UCAST_LAST	0xbfff
#define QP1_QKEY	0x80010000U
#define PKEY_DEFAULT	0xffff
#define VL_MGMT		15	/* of SMPs; what SLtoVL tables call it is discarded */

#define ICRC_SIZE	4
#define VCRC_SIZE	2

enum { LNH_RAW = 0, LNH_IPV6 = 1, LNH_BTH = 2, LNH_GRH = 3 };

struct lrh {			/* 7.7 */
	uint8_t vl_lver;	/* VL:4 LVer:4 */
	uint8_t sl_lnh;		/* SL:4 rsv:2 LNH:2 */
	__be16 dlid;
	__be16 len;		/* in 4-byte words, LRH to before VCRC */
	__be16 slid;
};

struct grh {			/* 8.3 */
	__be32 ver_tclass_flow;	/* IPVer:4 TClass:8 FlowLabel:20 */
	__be16 paylen;		/* bytes after the GRH, ICRC included */
	uint8_t nxthdr;		/* GRH_NXTHDR_IBA */
	uint8_t hoplmt;
	uint8_t sgid[16];
	uint8_t dgid[16];
};

#define GRH_VERSION	6
#define GRH_NXTHDR_IBA	0x1b
#define GID_PREFIX_DEFAULT 0xfe80000000000000ULL	/* 4.1.1 */

struct bth {			/* 9.2 */
	uint8_t opcode;
	uint8_t flags;		/* SE:1 M:1 Pad:2 TVer:4 */
	__be16 pkey;
	__be32 dqpn;		/* FECN:1 BECN:1 rsv:6 DestQP:24 */
	__be32 psn;		/* AckReq:1 rsv:7 PSN:24 */
};

struct deth {			/* 9.3.1 */
	__be32 qkey;
	__be32 sqpn;		/* rsv:8 SrcQP:24 */
};

#define BTH_SOLICITED	0x80		/* in flags */
#define BTH_MIGRATED	0x40
#define BTH_PAD_MASK	0x30
#define BTH_PAD_SHIFT	4
#define BTH_TVER	0x0f
#define BTH_ACKREQ	0x80000000U	/* in psn */
#define BTH_PSN_MASK	0xffffffU
#define BTH_QPN_MASK	0xffffffU	/* in dqpn */

static inline unsigned int lrh_sl(const struct lrh *lrh) { return lrh->sl_lnh >> 4; }
static inline unsigned int lrh_lnh(const struct lrh *lrh) { return lrh->sl_lnh & 3; }

#define BTH_OPCODE_UD		0x60	/* of the transport, the top three bits */
#define BTH_OPCODE_TRANSPORT	0xe0
#define BTH_OPCODE_UD_SEND_ONLY	0x64

#endif
