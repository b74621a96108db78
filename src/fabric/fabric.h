/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabric: nodes with ports, links that join two ports, switches that
 * forward by the tables which a subnet manager wrote into them. Nothing here
 * knows a MAD's meaning, a file or a process. IBA chapters 7, 14.2 and 18.
 *
 * Numbers are host order throughout; only packets are big-endian.
 */
#ifndef IBFS_FABRIC_FABRIC_H
#define IBFS_FABRIC_FABRIC_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <uthash.h>

#include <ibfs/text.h>

struct ibfs;
struct fabric;
struct fault_way;
struct link;
struct node;
struct packet;
struct port;
struct static_group;

enum node_type { NODE_CA = 1, NODE_SWITCH = 2, NODE_ROUTER = 3 };

/* PortInfo:PortState and PortPhysicalState, 14.2.5.6 */
enum port_state {
	PORT_NOP, PORT_DOWN, PORT_INIT, PORT_ARMED, PORT_ACTIVE,
} __attribute__((packed));
enum phys_state {
	PHYS_NOP, PHYS_SLEEP, PHYS_POLLING, PHYS_DISABLED, PHYS_TRAINING,
	PHYS_LINKUP, PHYS_RECOVERY, PHYS_TEST,
} __attribute__((packed));

/* PortInfo's LinkWidth and LinkSpeed masks, and LinkSpeedExt */
enum { WIDTH_1X = 1, WIDTH_4X = 2, WIDTH_8X = 4, WIDTH_12X = 8, WIDTH_2X = 16 };
enum { SPEED_SDR = 1, SPEED_DDR = 2, SPEED_QDR = 4 };
enum {
	SPEED_FDR = 1, SPEED_EDR = 2, SPEED_HDR = 4, SPEED_NDR = 8,
	SPEED_XDR = 16,		/* as in IBA 1.7's PortInfo; ActiveExt needs 5 bits there */
};

/*
 * What a port counts, 16.1.3.5 and 16.1.4. Data in 4-byte words, as PMA has
 * them. The PMA and sysfs cut them to their field's width (they stick at the
 * largest value); clearing sets the field here to 0.
 */
struct port_counters {
	uint64_t xmit_data, xmit_pkts, unicast_xmit_pkts;
	uint64_t rcv_data, rcv_pkts, unicast_rcv_pkts;
	uint64_t multicast_xmit_pkts, multicast_rcv_pkts;
	uint64_t xmit_wait;
	uint32_t symbol_errors, link_recovers, link_downed;
	uint32_t rcv_errors, rcv_rem_phys_errors, rcv_switch_relay_errors;
	uint32_t xmit_discards, xmit_constraint_errors, rcv_constraint_errors;
	uint32_t local_link_integrity_errors, excess_overrun_errors;
	uint32_t vl15_dropped, qp1_dropped;
};

/*
 * What few ask for, 16.1.4.1 to 16.1.4.8: why packets were lost, and how many
 * of one BTH opcode came in, in all and by VL. Kept from the first loss on, or
 * from when somebody asks. Links here have no flow control, so that nothing
 * waits for it: the last three only show what a topology file says.
 */
struct port_details {
	uint32_t xmit_inactive, xmit_mtu, xmit_lifetime, xmit_hoq;	/* of xmit_discards */
	uint32_t rcv_local_phys, rcv_malformed, rcv_overrun;	/* of rcv_errors */
	uint32_t rcv_dlid, rcv_vl, rcv_looping;			/* of rcv_switch_relay_errors */
	bool count_ops;
	uint8_t op, vl_pkts_op, vl_data_op;	/* the opcode that each of these counts */
	uint32_t op_pkts, op_data;
	uint32_t vl_pkts[16], vl_data[16];
	uint32_t flow_xmit, flow_rcv;
	uint32_t vl_update_errors[16], vl_wait[16];
};

/*
 * A port's part of PortInfo (14.2.5.6), one for every external port of a
 * switch, every CA port, and a switch's port 0. What every packet touches
 * stands first; the group behind the counters matters on end ports only (CA
 * ports and switch port 0). The lazy tables are read and written through the
 * functions below, which know their defaults.
 */
struct port {
	struct node *node;
	struct link *link;		/* NULL: nothing is plugged in */
	struct port *peer;		/* the other end while link is plugged in */
	struct tap *taps;		/* captures that listen, or NULL */
	struct fault_way *faults;	/* faults of what leaves here; NULL: none */
	uint8_t (*sl2vl)[8];		/* by input port (switch) or 0 (CA), two SLs a byte */
	struct port_details *details;	/* lazily, port_details() */
	enum port_state state;
	enum phys_state phys_state;
	uint8_t num;
	uint8_t lmc;
	uint16_t lid;
	uint8_t mtu_cap, neighbor_mtu;	/* 1..5: 256..4096 */
	uint8_t vl_cap, oper_vls;	/* 1..5: VL0, 0-1, 0-3, 0-7, 0-14 */
	uint8_t part_enforce;		/* PART_* */
	uint8_t phy_errors_now;		/* spoilt packets less good ones since, 7.12.2 */
	uint8_t overruns_now;		/* in a row */
	struct port_counters cnt;

	uint64_t guid;			/* end ports; a switch's external ports: 0 */
	uint64_t gid_prefix;
	uint64_t mkey;
	uint16_t sm_lid;
	uint16_t cap_mask2;
	uint32_t cap_mask;
	uint16_t mkey_lease;		/* seconds, 0: never runs out */
	uint8_t sm_sl, mkey_protect;
	uint8_t subnet_timeout, resp_time, client_rereg;
	uint16_t mkey_violations, pkey_violations, qkey_violations;

	enum phys_state link_down_default;	/* PHYS_SLEEP or PHYS_POLLING */
	/* Masks. Enabled ones are kept as such: SMA resolves "as supported" and 30. */
	uint8_t width_enabled, width_supported, width_active;
	uint8_t speed_enabled, speed_supported, speed_active;
	uint8_t speed_ext_enabled, speed_ext_supported, speed_ext_active;
	uint8_t vl_stall, hoq_life;
	uint8_t phy_errors, overrun_errors, init_type, init_reply;
	uint8_t vl_high_limit;
	uint16_t diag_code;

	uint16_t *pkeys;		/* port_num_pkeys() entries, lazily */
	uint64_t *guids;		/* GUIDInfo, node->num_guids entries, lazily */
	uint8_t (*vlarb)[64];		/* four tables: low 1, low 2, high 1, high 2, lazily */
	void *agents;			/* hca/: MAD state of this end port, lazily */
} __attribute__((aligned(64)));

/* port.part_enforce: PortInfo's four bits, in its order */
enum {
	PART_ENFORCE_IN = 8, PART_ENFORCE_OUT = 4,
	PART_FILTER_RAW_IN = 2, PART_FILTER_RAW_OUT = 1,
};

/* SwitchInfo, 14.2.5.4, and the tables that it sizes */
struct switch_info {
	uint8_t *lft;			/* lid -> port, 255: none */
	uint32_t lft_size;		/* entries allocated, a multiple of 64 */
	uint16_t lft_top;		/* DLIDs above it are discarded: who routes sets it */
	uint16_t lft_cap, mft_cap;
	uint16_t mcast_top;		/* 0: as many MLIDs as mft_cap says */
	uint32_t mft_size;		/* MLIDs allocated */
	unsigned int mft_words;		/* 32-bit words per MLID */
	uint32_t *mft;			/* mlid - 0xc000 -> port mask, bit 0 = port 0 */
	uint8_t default_port, default_mcast_primary, default_mcast_not_primary;
	uint8_t life_time;
	bool port_state_change, enhanced_port0;
	uint16_t part_enforce_cap;
};

/* What a node's owner (hca/) does. Chosen at creation; may change when it becomes a device. */
struct node_ops {
	/*
	 * A packet for this node's own management or end port: addressed to an
	 * end port (port is that end port: CA port or port 0), or a directed
	 * route SMP (port is where it came in, which may be external).
	 */
	void (*recv)(struct port *port, struct packet *pkt);
	/* The port's state, or the other fields that clients care for, changed. */
	void (*port_event)(struct port *port, unsigned int events);
	/*
	 * A switch's external port let a packet (LRH first) neither in nor out
	 * because its partitions don't have the P_Key. NULL: nobody is told.
	 */
	void (*bad_pkey)(struct port *port, const struct packet *pkt);
	/* Free priv and the ports' agents. */
	void (*free)(struct node *node);
};

enum {				/* port_event()'s events */
	PORT_EV_STATE		= 1 << 0,	/* up, down, armed, active */
	PORT_EV_LID		= 1 << 1,
	PORT_EV_SM		= 1 << 2,
	PORT_EV_PKEY		= 1 << 3,
	PORT_EV_GID		= 1 << 4,
	PORT_EV_REREGISTER	= 1 << 5,
	PORT_EV_CAPMASK		= 1 << 6,	/* or node description: trap 144 */
	PORT_EV_REMOVED		= 1 << 7,
	PORT_EV_INTEGRITY	= 1 << 8,	/* LocalPhyErrors exceeded: trap 129 */
	PORT_EV_OVERRUN		= 1 << 9,	/* OverrunErrors exceeded: trap 130 */
	PORT_EV_WATCHDOG	= 1 << 10,	/* no flow control packet came in time: trap 131 */
};

struct node {			/* what forwarding needs first */
	struct port *ports;		/* 0..num_ports; [0] is a switch's port 0, else unused */
	struct switch_info *sw;		/* NULL unless a switch */
	const struct node_ops *ops;
	void *priv;			/* of ops' owner: struct hca for a device */
	struct fabric *fabric;
	enum node_type type;
	unsigned int index;		/* in order of creation */
	uint8_t num_ports;		/* external ones */
	uint8_t num_pkeys;		/* per end port; 32 unless said */
	uint16_t num_guids;		/* GUIDCap of end ports; 32 unless said */
	uint16_t device_id;
	uint64_t guid, sysimg_guid;
	uint32_t vendor_id, revision;
	char *id;			/* unique: the topology file's node id */
	char desc[65];
	UT_hash_handle hh_id, hh_guid;
};

struct link {
	struct port *a, *b;
	unsigned int index;
	bool down;			/* taken down by hand (cable pulled) */
	struct faults *faults;		/* NULL: a perfect cable */
};

struct fabric {
	struct ibfs *ibfs;
	struct node **nodes;		/* by index; NULL where one was removed */
	struct link **links;
	unsigned int num_nodes, num_links;	/* slots */
	struct node_list {		/* those of a type, in order of their index */
		struct node **nodes;
		unsigned int count;
	} types[NODE_ROUTER + 1];
	struct port_list {		/* guid.c's: end ports in the order of their GUIDs */
		struct port **ports;
		unsigned int count;
		bool valid;		/* until nodes come or go, or a GUID changes */
	} by_port_guid;
	unsigned int live_links;
	uint64_t changes;		/* of nodes, links and their states, so far */
	struct node *by_id, *by_guid;
	unsigned int copies;		/* of a multicast packet, still allowed: a loop must end */
	unsigned int mcast_depth;	/* switches that now replicate */
	const struct node_ops *sim_ops;	/* for nodes that are no device */
	uint64_t next_guid[4];		/* by node type, for nodes without a guid */
	bool static_owned;		/* static_subnet()'s LIDs and routes hold. SMA clears it when a
					   subnet manager sets a PortInfo with an SM LID */
	struct static_group *groups;	/* static_mcast.c's, by MGID */
};

struct fabric *fabric_new(struct ibfs *ibfs, const struct node_ops *sim_ops);
void fabric_free(struct fabric *fabric);

/*
 * Add a node (all ports DOWN/POLLING, nothing plugged in). guid 0: the next
 * free one. A CA's port guids are guid + port number unless set afterwards.
 * NULL and errno: EEXIST (id or guid), EINVAL (ports 1..254), ENOMEM.
 */
struct node *node_new(struct fabric *fabric, enum node_type type,
		      const char *id, unsigned int num_ports, uint64_t guid);
void node_remove(struct node *node);	/* unplugs it, tells its owner, frees it */
struct node *fabric_find(struct fabric *fabric, const char *id);
struct node *fabric_find_guid(struct fabric *fabric, uint64_t guid);
/* The first node of a type whose index is at least this; NULL: there is none. */
struct node *fabric_node_from(const struct fabric *fabric, enum node_type type,
			      unsigned int index);
/* The end port with this GUID that has a LID, for the first time after a change in O(n log n). */
struct port *fabric_find_port_guid(struct fabric *fabric, uint64_t guid);
/* NULL when there is no such node, or no such port (0: a switch's). */
struct port *fabric_find_port(struct fabric *fabric, const char *id, unsigned int num);
/*
 * A link's name, "ID:PORT-ID:PORT", its first end first; as snprintf returns.
 * The other way round, NULL when no link has that name.
 */
int link_name(const struct link *link, char *buf, size_t size);
struct link *fabric_find_link(struct fabric *fabric, const char *name);
/* The end port whose PortInfo governs this port: itself, or a switch's port 0. */
struct port *port_end(struct port *port);

/*
 * Plug a cable in; trains to INIT at the best common width and speed. NULL and
 * errno: EBUSY, EINVAL, ENOMEM.
 */
struct link *link_new(struct port *a, struct port *b);
void link_remove(struct link *link);
void link_set_down(struct link *link, bool down);
/* Flow control stops for so long that both ends' watchdogs run out (7.9.4). -ENOLINK: it is down. */
int link_stall(struct link *link);

/*
 * State changes by the subnet manager or by hand (Set(PortInfo), ctl). A state
 * that 14.2.5.6's table forbids: -EINVAL, and nothing changed. PORT_DOWN takes
 * the link down, which at once trains to INIT again unless an end is disabled;
 * port_set_phys() takes SLEEP, POLLING and DISABLED. Both ends follow where
 * they must. Each change of state is reported by port_event(), on both ends.
 * A switch's port 0 is always ACTIVE: what it is set to is accepted without
 * effect, except PORT_DOWN and a physical state.
 */
int port_set_state(struct port *port, enum port_state state);
int port_set_phys(struct port *port, enum phys_state phys);
void port_retrain(struct port *port);	/* after a change of enabled width or speed */
/* After a change of the widths and speeds that a port supports: its end port's capability masks say so. */
void port_capabilities(struct port *port);
/*
 * Report through node->ops->port_event. PORT_EV_STATE with a state of DOWN or
 * INIT, which only the link's own state machine gives, sets
 * SwitchInfo:PortStateChange (14.2.5.4); ARMED and ACTIVE come from the SM.
 */
void port_event(struct port *port, unsigned int events);

/*
 * The lazy tables. Setters allocate at the first use; -ERANGE, -ENOMEM. Before
 * that P_Key 0 is the default key and all others 0 (empty), GUID 0 is the
 * port's and all others 0, SL n goes to VL n modulo the operational VLs, and
 * all data VLs arbitrate alike. They report no event: the caller does.
 */
/* A switch's external ports have part_enforce_cap of them. */
unsigned int port_num_pkeys(const struct port *port);
uint16_t port_pkey(const struct port *port, unsigned int index);	/* 0 when empty */
int port_set_pkey(struct port *port, unsigned int index, uint16_t pkey);
uint64_t port_gid_guid(const struct port *port, unsigned int index);	/* 0 when empty */
/* Index 0 is read-only: -ERANGE. */
int port_set_guid(struct port *port, unsigned int index, uint64_t guid);
/* SLtoVLMappingTable of out for what came in by in (0 on a CA): as its 8 bytes, two SLs each. */
void port_get_sl2vl(const struct port *out, unsigned int in, uint8_t map[8]);
int port_set_sl2vl(struct port *out, unsigned int in, const uint8_t map[8]);
/* VLArbitrationTable's block 0..3, as its 64 bytes (VL and weight, 32 times). */
int port_get_vlarb(const struct port *port, unsigned int block, uint8_t table[64]);
int port_set_vlarb(struct port *port, unsigned int block, const uint8_t table[64]);
/* Two P_Keys match when they name one partition and one of them is a full member's, 10.9.3. */
bool pkey_match(uint16_t a, uint16_t b);
/* The index of the port's first P_Key that matches the one on the wire; -ENOENT. */
int port_find_pkey(const struct port *port, uint16_t pkey);
/* The port's details, made on first use; NULL without memory. */
struct port_details *port_details(struct port *port);
/* Is this LID one of the end port's, 2^lmc of them from its base? */
static inline bool port_has_lid(const struct port *port, uint16_t lid)
{
	return port->lid && (unsigned int)lid - port->lid < 1U << port->lmc;
}

/*
 * Send a packet out of a port, LRH pushed, pkt->vl chosen. The peer's node gets
 * it before this returns, unless a fault keeps it. Counts it on both ends,
 * feeds the taps, obeys state (nothing leaves a DOWN port; only VL15 before
 * ACTIVE; an ARMED port that receives data becomes ACTIVE). 0, or what kept it
 * from leaving, which the port then counts as a discard: -ENETDOWN, -EMSGSIZE
 * (NeighborMTU), -ELOOP (PACKET_MAX_HOPS), -EINVAL (no LRH). A switch's port 0 has no link: its
 * packets go by switch_forward().
 */
int port_xmit(struct port *port, struct packet *pkt);

/* Switching, switch.c: called by port_xmit() for a packet that reached a switch. */
void switch_recv(struct port *in, struct packet *pkt);
/* Forward from inside the switch (port 0's own packets) by its tables. */
void switch_forward(struct node *node, struct port *in, struct packet *pkt);
/* Table access for SMA and static routing; grows the table as needed. -ERANGE, -ENOMEM. */
int switch_set_lft(struct node *node, uint16_t lid, uint8_t port);
uint8_t switch_get_lft(const struct node *node, uint16_t lid);	/* 255: none */
/* Bit n of word w stands for port 32 * w + n. */
int switch_set_mft(struct node *node, uint16_t mlid, unsigned int word, uint32_t mask);
uint32_t switch_get_mft(const struct node *node, uint16_t mlid, unsigned int word);
/*
 * The VL of an SL by out's SL2VL table; in is NULL on a CA, port 0 for a
 * switch's own packets. VL_MGMT: it has none, discard the packet.
 */
unsigned int port_vl(const struct port *in, const struct port *out, unsigned int sl);

/*
 * Faults of a link, faults.c, both ways alike and each way drawing from its own
 * generator: the same seed and packets give the same faults. Probabilities
 * 0..1; delay in seconds, jitter the most that is added to it.
 */
struct fault_conf {
	double drop, corrupt, duplicate, reorder;
	double overrun;			/* the receiving port has no buffer free */
	double delay, jitter;
	uint64_t seed;
};
/* -EINVAL, -ENOMEM. No probability and no time: a perfect cable again. */
int link_set_faults(struct link *link, const struct fault_conf *conf);
void link_get_faults(const struct link *link, struct fault_conf *conf);

/*
 * Capture, capture.c: fn gets every packet that leaves or enters the port, one
 * call for each that would be on the wire (gso packets are cut). It must not
 * detach a tap.
 */
struct tap {
	struct tap *prev, *next;
	void (*fn)(struct tap *tap, const struct packet *pkt, bool out);
};
void tap_attach(struct port *port, struct tap *tap);
void tap_detach(struct port *port, struct tap *tap);
/*
 * Bytes as on the wire, with the fields that only the wire needs (LRH:VL and
 * PktLen, GRH:PayLen, BTH:PadCnt and the pad) filled in, ICRC and VCRC appended
 * (IBA 7.8); spoilt when bad_crc is set. Returns the whole length; writes no
 * more than size of it.
 */
size_t packet_wire_image(const struct packet *pkt, void *buf, size_t size);

/*
 * Topology files (ibsim's and ibnetdiscover's format). On error: -errno, and
 * one line in *err ("file:line: what was wrong, what was expected"), which the
 * caller frees; what had been read until then is in the fabric. Ports are left
 * in INIT; LIDs that the file gives are set (static_subnet() honours them).
 */
int topology_load(struct fabric *fabric, const char *file, char **err);
/* The same from an open stream; name stands in messages and for finding includes. */
int topology_load_stream(struct fabric *fabric, FILE *in, const char *name, char **err);
/*
 * The live fabric in the same format, as ibnetdiscover prints it: appends a few
 * lines to out. True: there is more. *at is all 0 at the start. Between two
 * calls the fabric may change; what is there all the time is printed once. A
 * last line says whether nodes, links or their states changed.
 */
struct topology_dump {
	unsigned int part;		/* 0: the head, nodes by type, links */
	unsigned int index, port;	/* of what comes next */
	uint64_t changes;		/* the fabric's, as it began */
	char module[21];		/* that was named last */
};
bool topology_dump(struct topology_dump *at, const struct fabric *fabric, struct textbuf *out);

/* What there is without configuration: one-port CAs "rxe0" and "rxe1" on "switch". -errno */
int fabric_default(struct fabric *fabric);

/*
 * Static subnet: LIDs for all plugged end ports (those from the file where they
 * are free), LFTs of shortest paths, states ACTIVE, SM LID 0. -ENOSPC when the
 * LIDs don't suffice, -ENOMEM, with a line in *err, which the caller frees.
 */
int static_subnet(struct fabric *fabric, char **err);
/*
 * After a link or node came, went, or changed: LIDs and routes anew, while the
 * fabric is static_owned. LIDs that were given stay.
 */
void static_subnet_refresh(struct fabric *fabric);
/*
 * Multicast on a static subnet: a port becomes a member of a group (counted:
 * as many detaches as attaches), whose packets go along a spanning tree. A
 * sender need not be a member. attach and mlid: the MLID, 0xc000 and up, or
 * -ENOENT (no such group or member), -ENOSPC, -ENOMEM, -EOPNOTSUPP (the subnet
 * is not, or no longer, static).
 */
int static_mcast_attach(struct fabric *fabric, struct port *port, const uint8_t mgid[16]);
int static_mcast_detach(struct fabric *fabric, struct port *port, const uint8_t mgid[16]);
int static_mcast_mlid(struct fabric *fabric, const uint8_t mgid[16]);
/* Each group that there is; fn may attach. */
void static_mcast_each(struct fabric *fabric, void (*fn)(void *ctx, const uint8_t mgid[16]),
		       void *ctx);
/* Forget the ports of a node that goes; forget all groups. For node_remove() and fabric_free(). */
void static_node_gone(struct node *node);
void static_exit(struct fabric *fabric);

#endif
