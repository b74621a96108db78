/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of subnet administration on the wire, all fields big-endian, and
 * their component masks. IBA 15.2.5.16 (PathRecord), 15.2.5.17 (MCMemberRecord).
 */
#ifndef IBFS_IPOIB_SA_H
#define IBFS_IPOIB_SA_H

#include <linux/types.h>
#include <stdint.h>

#include "ipoib/ipoib.h"

#define SA_RECORD	200		/* bytes of a MAD's data */
#define SA_EXACTLY	(2 << 6)	/* selector in front of MTU, rate and life time */

struct mcmember {
	uint8_t mgid[16];
	uint8_t port_gid[16];
	__be32 qkey;
	__be16 mlid;
	uint8_t mtu;			/* selector:2 value:6 */
	uint8_t tclass;
	__be16 pkey;
	uint8_t rate;			/* selector:2 value:6 */
	uint8_t life;			/* selector:2 value:6 */
	__be32 sl_flow_hop;		/* SL:4 FlowLabel:20 HopLimit:8 */
	uint8_t scope_join;		/* Scope:4 JoinState:4 */
	uint8_t proxy;
	__be16 reserved;
};
enum {
	MCM_MGID = 1 << 0, MCM_PORT_GID = 1 << 1, MCM_QKEY = 1 << 2, MCM_MTU_SEL = 1 << 4,
	MCM_MTU = 1 << 5, MCM_TCLASS = 1 << 6, MCM_PKEY = 1 << 7, MCM_RATE_SEL = 1 << 8,
	MCM_RATE = 1 << 9, MCM_SL = 1 << 12, MCM_FLOW = 1 << 13, MCM_HOP = 1 << 14,
	MCM_JOIN = 1 << 16,
};
enum { JOIN_FULL = 1, JOIN_NON_MEMBER = 2, JOIN_SEND_ONLY = 4, JOIN_SEND_ONLY_FULL = 8 };

struct path_rec {
	__be64 service_id;
	uint8_t dgid[16];
	uint8_t sgid[16];
	__be16 dlid, slid;
	__be32 flow_hop;		/* RawTraffic:1 rsv:3 FlowLabel:20 HopLimit:8 */
	uint8_t tclass;
	uint8_t numb_path;		/* Reversible:1 NumbPath:7 */
	__be16 pkey;
	__be16 qos_sl;			/* QoSClass:12 SL:4 */
	uint8_t mtu, rate, life;	/* selector:2 value:6 */
	uint8_t preference;
	uint8_t reserved[6];
};
enum {
	PATH_DGID = 1 << 2, PATH_SGID = 1 << 3, PATH_REVERSIBLE = 1 << 11, PATH_NUMB = 1 << 12,
	PATH_PKEY = 1 << 13, PATH_QOS_CLASS = 1 << 14,
};

/* What is to be a member of the group: JOIN_*. */
uint8_t sa_join_state(const struct ipoib_group *group);
/* A question on its way: err < 0: it could not be sent. */
int sa_ask(struct ipoib *ip, struct sa_query *q, uint8_t method, uint16_t attr,
	   uint64_t comp_mask, const void *record, size_t len);
/* sa_static.c: the same, answered from the static subnet by ip->sa_task. */
void sa_static_join(struct ipoib *ip, struct ipoib_group *group);
void sa_static_path(struct ipoib *ip, struct ipoib_peer *peer);
void sa_static_groups(struct ipoib *ip, struct sa_query *q);
/*
 * member.c: the SA knows a port, and not who of the daemon's is the member there. Who joins
 * is entered before it asks, at every time anew; who leaves learns of what its port is
 * (JOIN_*) to be taken from the group, 0: nothing, since others are still there.
 */
void sa_member_add(struct ibfs *ibfs, struct sa_member *member);
uint8_t sa_member_del(struct ibfs *ibfs, struct sa_member *member);

#endif
