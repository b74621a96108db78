/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where devices come from: the interface between the tree and a backend (soft:
 * src/hca on src/fabric; verbs: real adapters). Attributes are libibverbs' own
 * types. Functions return 0 or a negative errno. Callbacks come from the event
 * loop, never from inside the call that caused them unless it says so.
 */
#ifndef IBFS_BACKEND_H
#define IBFS_BACKEND_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <uthash.h>

struct ibfs;
struct ibfs_device;
struct mad_agent;
struct port;
struct verbs_ops;

/* Port counters in the units of Linux's sysfs counters/ (data in 4-byte words). */
enum counter {
	CNT_SYMBOL_ERROR, CNT_LINK_ERROR_RECOVERY, CNT_LINK_DOWNED,
	CNT_PORT_RCV_ERRORS, CNT_PORT_RCV_REMOTE_PHYSICAL_ERRORS,
	CNT_PORT_RCV_SWITCH_RELAY_ERRORS, CNT_PORT_XMIT_DISCARDS,
	CNT_PORT_XMIT_CONSTRAINT_ERRORS, CNT_PORT_RCV_CONSTRAINT_ERRORS,
	CNT_LOCAL_LINK_INTEGRITY_ERRORS, CNT_EXCESSIVE_BUFFER_OVERRUN_ERRORS,
	CNT_VL15_DROPPED, CNT_PORT_XMIT_DATA, CNT_PORT_RCV_DATA,
	CNT_PORT_XMIT_PACKETS, CNT_PORT_RCV_PACKETS,
	CNT_UNICAST_XMIT_PACKETS, CNT_UNICAST_RCV_PACKETS,
	CNT_MULTICAST_XMIT_PACKETS, CNT_MULTICAST_RCV_PACKETS,
	CNT_PORT_XMIT_WAIT, CNT_MAX,
};
extern const char *const counter_names[CNT_MAX];	/* sysfs' file names */

/* A MAD's far end, host order. */
struct mad_addr {
	uint16_t lid;
	uint8_t sl, path_bits;
	uint32_t qpn, qkey;
	uint16_t pkey_index;
	bool grh;
	uint8_t gid_index, hop_limit, traffic_class;
	uint32_t flow_label;
	union ibv_gid gid;
	uint32_t user[3];	/* mad_send()'s caller's own; its ETIMEDOUT brings them back */
};

/* What ib_user_mad_reg_req2 asks for. */
struct mad_reg {
	uint8_t qpn, mgmt_class, class_version;
	uint8_t rmpp_version;
	bool user_rmpp;
	bool own_tids;			/* TIDs go out as they are given: answers are told otherwise */
	uint8_t oui[3];
	uint64_t methods[2];		/* bit n of 128: method n */
};

struct mad_client_ops {
	/*
	 * A MAD for the agent. It is the callee's to keep only by copying. status
	 * 0, or ETIMEDOUT with the 24-byte header of the request that timed out
	 * (len 24). May be called from inside mad_send().
	 */
	void (*recv)(void *client, struct mad_agent *agent, int status,
		     const struct mad_addr *addr, const void *mad, size_t len);
	/* The device is gone; the agent is dead and was freed. */
	void (*gone)(void *client, struct mad_agent *agent);
};

struct backend_ops {
	const char *name;
	int (*query_device)(struct ibfs_device *dev, struct ibv_device_attr_ex *attr);
	int (*query_port)(struct ibfs_device *dev, unsigned int port, struct ibv_port_attr *attr);
	int (*query_gid)(struct ibfs_device *dev, unsigned int port, unsigned int index, union ibv_gid *gid);
	int (*query_pkey)(struct ibfs_device *dev, unsigned int port, unsigned int index, uint16_t *pkey);
	int (*set_node_desc)(struct ibfs_device *dev, const char desc[64]);
	int (*set_sys_image_guid)(struct ibfs_device *dev, uint64_t guid);
	int (*modify_port)(struct ibfs_device *dev, unsigned int port, uint32_t set_cap, uint32_t clr_cap,
			   bool reset_qkey_cntr, bool shutdown, int init_type /* -1: leave */);
	int (*query_counter)(struct ibfs_device *dev, unsigned int port, enum counter which, uint64_t *value);
	int (*clear_counter)(struct ibfs_device *dev, unsigned int port, enum counter which);

	/*
	 * MADs. Errors as facts/umad.md: EINVAL (overlap, bad class, bad qpn);
	 * the backend notes why by ibfs_fail().
	 * mad_send takes a whole message (RMPP when the agent has it and the MAD
	 * says ACTIVE); -EINVAL for a duplicate TID in flight or a wrong length.
	 */
	int (*mad_register)(struct ibfs_device *dev, unsigned int port, const struct mad_reg *reg,
			    const struct mad_client_ops *ops, void *client, struct mad_agent **agent);
	void (*mad_unregister)(struct mad_agent *agent);
	int (*mad_send)(struct mad_agent *agent, const struct mad_addr *addr, const void *mad, size_t len,
			unsigned int timeout_ms, unsigned int retries);
	/* mad_send() fails only by its own checks of the message: no device refuses one. */
	bool mad_sure;
	/* Set or clear PortInfo:CapabilityMask.IsSM; exclusion is the caller's. */
	int (*set_issm)(struct ibfs_device *dev, unsigned int port, bool on);
	const struct verbs_ops *verbs;	/* ibfs/verbs.h; NULL: management only */
	/* The port in this daemon's fabric, for captures. No such function: it is not there. */
	struct port *(*fabric_port)(struct ibfs_device *dev, unsigned int port);
	/*
	 * Counters of the device's own, hw_counters/: names ending with NULL, or no
	 * names. index is a name's.
	 */
	const char *const *hw_counters;
	int (*query_hw_counter)(struct ibfs_device *dev, unsigned int port, unsigned int index,
				uint64_t *value);
	/* Take the device out of the tree and free it. */
	void (*remove)(struct ibfs_device *dev);
};

/* A device in the tree; backends embed it first in their own struct. */
struct ibfs_device {
	struct ibfs_device *prev, *next;
	UT_hash_handle hh;		/* by name */
	struct ibfs *ibfs;
	const struct backend_ops *ops;
	unsigned int num;		/* never used again in a daemon's life */
	char name[20];
	char node_desc[65];
	enum ibv_node_type node_type;
	uint64_t node_guid, sys_image_guid;	/* host order */
	char fw_ver[64], hca_type[64], board_id[64];
	uint32_t hw_rev;
	unsigned int first_port, num_ports;	/* ports first_port..num_ports: a switch's only one is 0 */
	struct ib_port_state *ports;	/* fs' own: issm holder and the like, by number */
};

/*
 * Are the objects that a verb was given those of its device? A backend asks so
 * before it looks into more than one. Who calls has refused others (by text,
 * fs/obj_args.c; a uverbs file has handles of its own device only), so a no is
 * this daemon's fault: it ends here in sanitized builds, and refuses elsewhere.
 */
static inline bool backend_own(bool own)
{
#ifdef IBFS_SANITIZED
	if (!own)
		abort();
#endif
	return own;
}

/*
 * Put a device into, or take it out of, the tree (fs does what follows). -EEXIST,
 * -EINVAL (bad name), -ENOSPC (no number is left), -ENOMEM.
 */
int device_add(struct ibfs *ibfs, struct ibfs_device *dev);
void device_remove(struct ibfs_device *dev);
/* By name or number; device_from(): the first whose number is num or larger. NULL: none. */
struct ibfs_device *device_find(struct ibfs *ibfs, const char *name);
struct ibfs_device *device_get(struct ibfs *ibfs, unsigned int num);
struct ibfs_device *device_from(struct ibfs *ibfs, uint64_t num);
/*
 * The index of the first entry of a port's table that is it, or -ENOENT; as the
 * kernel's ib_find_gid() and ib_find_pkey(). A P_Key's membership bit isn't
 * compared; 0 and 0x8000, which name no partition, are never found.
 */
int device_find_gid(struct ibfs_device *dev, unsigned int port, const union ibv_gid *gid);
int device_find_pkey(struct ibfs_device *dev, unsigned int port, uint16_t pkey);
/*
 * An asynchronous event of a device: a line "device=NAME port=N event=..." in
 * ibfs->events (names of ibv_event_type in small letters: port_active), and
 * news to uverbs clients.
 */
void device_event(struct ibfs_device *dev, unsigned int port, enum ibv_event_type event);

/* Backends. soft: make a node of the fabric a device of the tree. */
int soft_device_add(struct ibfs *ibfs, const char *name, const char *node_id);
/*
 * verbs: devices of the system that the configuration asks for, through
 * libibverbs and libibumad, now and when they come later. Stop after the devices
 * were removed. -ENOMEM.
 */
int rdevs_start(struct ibfs *ibfs);
void rdevs_stop(struct ibfs *ibfs);

#endif
