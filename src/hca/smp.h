/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Subnet management attributes as they stand in a SMP's data, IBA 14.2.5, and
 * the numbers that they are made of. All fields big-endian. Knows no object.
 */
#ifndef IBFS_HCA_SMP_H
#define IBFS_HCA_SMP_H

#include <assert.h>
#include <infiniband/umad_sm.h>
#include <infiniband/umad_types.h>
#include <linux/types.h>
#include <stdint.h>

/*
 * umad_types.h's and umad_sm.h's layouts, which assume alignment that a MAD
 * inside a packet need not have.
 */
struct mad_hdr {		/* 13.4.2 */
	uint8_t base_version, mgmt_class, class_version, method;
	__be16 status, class_specific;
	__be64 tid;
	__be16 attr_id, reserved;
	__be32 attr_mod;
} __attribute__((packed));

struct smp {			/* 14.2.1.1, 14.2.1.2 */
	uint8_t base_version, mgmt_class, class_version, method;
	__be16 status;
	uint8_t hop_ptr, hop_cnt;
	__be64 tid;
	__be16 attr_id, reserved;
	__be32 attr_mod;
	__be64 mkey;
	__be16 dr_slid, dr_dlid;
	uint8_t reserved2[28];
	uint8_t data[UMAD_LEN_SMP_DATA];
	uint8_t initial_path[UMAD_SMP_MAX_HOPS];
	uint8_t return_path[UMAD_SMP_MAX_HOPS];
} __attribute__((packed));
static_assert(sizeof(struct smp) == sizeof(struct umad_smp), "a SMP fills its MAD");

struct class_port_info {	/* 13.4.8.1; redirection and trap addresses are not used here */
	uint8_t base_version, class_version;
	__be16 cap_mask;
	__be32 cap_mask2_resp_time;	/* CapabilityMask2:27 RespTimeValue:5 */
	uint8_t addresses[64];
} __attribute__((packed));

struct smp_guid_info {		/* 14.2.5.5 */
	__be64 guid[8];
} __attribute__((packed));

/* MADHeader:Status, 13.4.7 */
enum mad_status {
	MAD_OK			= 0x00,
	MAD_BAD_VERSION		= 0x04,
	MAD_BAD_METHOD		= 0x08,
	MAD_BAD_ATTR		= 0x0c,	/* the attribute, or this method on it */
	MAD_BAD_VALUE		= 0x1c,
};

struct smp_node_info {		/* 14.2.5.3 */
	uint8_t base_version, class_version;
	uint8_t node_type, num_ports;
	__be64 sysimg_guid, node_guid, port_guid;
	__be16 partition_cap, device_id;
	__be32 revision;
	uint8_t local_port;
	uint8_t vendor_id[3];
} __attribute__((packed));

struct smp_switch_info {	/* 14.2.5.4 */
	__be16 lft_cap, rft_cap, mft_cap, lft_top;
	uint8_t default_port, default_mcast_primary, default_mcast_not_primary;
	uint8_t life_change;	/* LifeTimeValue:5 PortStateChange:1 OptimizedSLtoVL:2 */
	__be16 lids_per_port, part_enforce_cap;
	uint8_t enforce;	/* SWI_ENFORCE_IN to SWI_ENHANCED_PORT0; rsv:3 */
	uint8_t reserved;
	__be16 mcast_top;
} __attribute__((packed));

enum {				/* life_change, enforce */
	SWI_STATE_CHANGE	= 0x04,
	SWI_ENFORCE_IN		= 0x80,
	SWI_ENFORCE_OUT		= 0x40,
	SWI_FILTER_IN		= 0x20,
	SWI_FILTER_OUT		= 0x10,
	SWI_ENHANCED_PORT0	= 0x08,
};

struct smp_port_info {		/* 14.2.5.6 */
	__be64 mkey, gid_prefix;
	__be16 lid, sm_lid;
	__be32 cap_mask;
	__be16 diag_code, mkey_lease;
	uint8_t local_port;
	uint8_t width_enabled, width_supported, width_active;
	uint8_t speed_state;	/* LinkSpeedSupported:4 PortState:4 */
	uint8_t phys_default;	/* PortPhysicalState:4 LinkDownDefaultState:4 */
	uint8_t mkey_lmc;	/* M_KeyProtectBits:2 rsv:3 LMC:3 */
	uint8_t speed;		/* LinkSpeedActive:4 LinkSpeedEnabled:4 */
	uint8_t mtu_smsl;	/* NeighborMTU:4 MasterSMSL:4 */
	uint8_t vl_init;	/* VLCap:4 InitType:4 */
	uint8_t vl_high_limit, vlarb_high_cap, vlarb_low_cap;
	uint8_t init_mtu;	/* InitTypeReply:4 MTUCap:4 */
	uint8_t stall_hoq;	/* VLStallCount:3 HOQLife:5 */
	uint8_t oper_enforce;	/* OperationalVLs:4 PartitionEnforcement:2 FilterRaw:2, inbound first */
	__be16 mkey_violations, pkey_violations, qkey_violations;
	uint8_t guid_cap;	/* entries of GUIDInfo */
	uint8_t rereg_timeout;	/* ClientReregister:1 MulticastPKeyTrapSuppression:2 SubnetTimeOut:5 */
	uint8_t resp_time;	/* rsv:3 RespTimeValue:5 */
	uint8_t errors;		/* LocalPhyErrors:4 OverrunErrors:4 */
	__be16 max_credit_hint;
	uint8_t speed_ext2;	/* rsv:1 LinkSpeedExtActive2:2 Supported2:2 Enabled2:3, as in IBA 1.7 */
	uint8_t latency[3];
	__be16 cap_mask2;
	uint8_t speed_ext;	/* LinkSpeedExtActive:4 LinkSpeedExtSupported:4 */
	uint8_t speed_ext_enabled;	/* rsv:3 LinkSpeedExtEnabled:5 */
} __attribute__((packed));
static_assert(sizeof(struct smp_port_info) == UMAD_LEN_SMP_DATA, "PortInfo fills its data");

enum {				/* values of PortInfo's enabled masks beside the masks themselves */
	WIDTH_ALL		= 0xff,
	SPEED_ALL		= 0x0f,
	SPEED_EXT_OFF		= 30,
	SPEED_EXT_ALL		= 31,
	SPEED_EXT2_OFF		= 6,
	SPEED_EXT2_ALL		= 7,
	PORT_INFO_REREGISTER	= 0x80,	/* of rereg_timeout */
};

/* PortInfo:CapabilityMask and CapabilityMask2 */
enum {
	CAP_IS_SM		= 1 << 1,
	CAP_NOTICE		= 1 << 2,
	CAP_TRAP		= 1 << 3,
	CAP_SL_MAP		= 1 << 6,
	CAP_LED			= 1 << 9,
	CAP_EXT_SPEEDS		= 1 << 14,
	CAP_CAP_MASK2		= 1 << 15,
	CAP_CAP_NOTICE		= 1 << 22,
	CAP_REREGISTER		= 1 << 25,
	CAP_MCAST_FDB_TOP	= 1 << 30,
	CAP2_SET_NODE_DESC	= 1 << 0,
};

struct smp_vendor_diag {	/* 14.2.5.14 */
	__be16 next_index;	/* 0: there is no more */
	uint8_t data[62];	/* the vendor's */
} __attribute__((packed));

struct smp_notice {		/* 13.4.8.2, generic */
	uint8_t type;		/* IsGeneric:1 Type:7 */
	uint8_t producer[3];	/* node type */
	__be16 trap;
	__be16 issuer_lid;
	__be16 toggle_count;	/* NoticeToggle:1 NoticeCount:15 */
	union {			/* DataDetails, 14.2.5.1 */
		uint8_t details[54];
		struct {
			__be16 lid;
		} __attribute__((packed)) link_state;	/* 128 */
		struct {
			__be16 pad, lid;
			uint8_t port;
		} __attribute__((packed)) threshold;	/* 129-131 */
		struct {
			__be16 pad, lid;
			uint8_t pad2, other_changes;
			__be32 cap_mask;
			__be16 changes, cap_mask2;
		} __attribute__((packed)) local;	/* 144 */
		struct {
			__be16 pad, lid, dr_slid;
			uint8_t method, pad2;
			__be16 attr_id;
			__be32 attr_mod;
			__be64 mkey;
			uint8_t pad3;
			uint8_t dr_hops;	/* DRNotice:1 DRPathTruncated:1 DRHopCount:6 */
			uint8_t dr_path[30];
		} __attribute__((packed)) mkey;		/* 256 */
		struct {
			__be16 pad, lid1, lid2;
			__be32 key;
			__be32 sl_qp1;		/* SL:4 rsv:4 QP1:24 */
			__be32 qp2;
			uint8_t gid1[16], gid2[16];
		} __attribute__((packed)) key;		/* 257, 258 */
		struct {
			__be16 valid;		/* NOTICE_VALID_* */
			__be16 lid1, lid2, pkey;
			__be32 sl_qp1;		/* SL:4 rsv:4 QP1:24 */
			__be32 qp2;
			uint8_t gid1[16], gid2[16];
			__be16 switch_lid;
			uint8_t port;
		} __attribute__((packed)) switch_key;	/* 259 */
	};
} __attribute__((packed));
static_assert(sizeof(struct smp_notice) == UMAD_LEN_SMP_DATA, "Notice fills its data");

enum {				/* Notice:Type */
	NOTICE_FATAL = 0, NOTICE_URGENT = 1, NOTICE_SECURITY = 2, NOTICE_SM = 3,
	NOTICE_INFO = 4, NOTICE_EMPTY = 0x7f, NOTICE_GENERIC = 0x80,
};
enum {				/* trap 259's DataValid: a bit for each of its fields, in their order */
	NOTICE_VALID_HEADERS	= 0x2f,	/* LIDADDR1, LIDADDR2, PKEY, SL and QP2 */
	NOTICE_VALID_QP1	= 0x10,
	NOTICE_VALID_GIDS	= 0xc0,
};
enum {				/* trap 144 */
	LOCAL_OTHER_CHANGES	= 1,	/* other_changes */
	CHANGE_NODE_DESC	= 1,	/* changes */
	CHANGE_WIDTH		= 2,
	CHANGE_SPEED		= 4,
};

#define VLARB_CAP		64	/* entries in each of the two tables */
#define LFT_BLOCK		64
#define MFT_BLOCK		32
#define PKEY_BLOCK		32
#define GUID_BLOCK		8

#endif
