/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An IPoIB interface, inside. It uses a device as a kernel client does, by
 * backend.h and verbs.h, and the host as a TUN device. Parts:
 *  iface.c	life, modes, and its state: what follows the port's
 *  tun.c host.c	the TUN device; the host's addresses, told by rtnetlink
 *  ud.c rx.c tx.c	the datagram QP; what came in, what goes out
 *  sa.c sa_static.c	joins and paths, by the SA or by the static subnet
 *  mcast.c promisc.c igmp.c
 *		multicast groups; all of the fabric's; which ones the host is in
 *  neigh.c arp.c nd.c	neighbours, and how they are found
 *  peer.c	paths to neighbours' ports
 *  conn.c cm.c	connected mode: queue pairs, and how they are connected
 *  icmp.c csum.c	what the daemon says to the host, checksums
 *  frame.c show.c lookup.c	raw mode, text of files, what others ask
 * All runs in the event loop; completions are taken by a task.
 */
#ifndef IBFS_IPOIB_IPOIB_H
#define IBFS_IPOIB_IPOIB_H

#include <ev.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>
#include <uthash.h>

#include <ibfs/backend.h>
#include <ibfs/ibfs.h>
#include <ibfs/ipoib.h>
#include <ibfs/memory.h>
#include <ibfs/slots.h>
#include <ibfs/verbs.h>

#define IPOIB_DEFAULT_QKEY 0x0b1bU	/* of the group that has none yet: OpenSM's */
#define IPOIB_CM_MTU	65520U	/* RFC 4755 allows any; Linux' and Solaris' */
#define IPOIB_IFNAME	16
#define IPOIB_TX_SLOTS	256
#define IPOIB_TX_DATA	(IPOIB_HEADER + 65536U)
#define IPOIB_UD_RX	512
#define IPOIB_GRH	40
#define IPOIB_UD_DATA	(IPOIB_GRH + 4096)
#define IPOIB_CM_RX	64	/* of the SRQ */
#define IPOIB_CM_DATA	(IPOIB_HEADER + IPOIB_CM_MTU)
#define IPOIB_CM_ID	(1ULL << 33)	/* a receive's wr_id: and the buffer's number */
#define IPOIB_QUEUE	48	/* packets that wait for a neighbour, path or group: 64 KB cut */
#define IPOIB_QUEUED	128	/* for all of them; the rest is for who needs not wait */
#define IPOIB_BATCH	64	/* packets in a turn of the loop */

enum { IPOIB_IPV4 = 0x0800, IPOIB_ARP = 0x0806, IPOIB_RARP = 0x8035, IPOIB_IPV6 = 0x86dd };
enum { IPOIB_FLAG_RC = 0x80 };	/* of an address' first byte: RFC 4755 3.1 */

struct ipoib_addr {
	uint8_t raw[IPOIB_ADDR_LEN];
};

/* A packet on its way out: the header and what follows it are in one piece. */
struct ipoib_tx {
	struct ipoib_tx *prev, *next;	/* of the free ones, or a queue */
	uint8_t *data;			/* the 4-byte header */
	uint32_t len;			/* from there */
	struct virtio_net_hdr vnet;	/* from the host; all 0: nothing to be done */
	bool own;			/* the daemon's: no error goes to the host */
	uint32_t qpn;			/* of the QP that has it, or 0 */
};
struct ipoib_queue {
	struct ipoib_tx *head;
	unsigned int count;
};

/* A path, or a group's: what an address handle is made of. */
struct ipoib_route {
	uint16_t lid;
	uint8_t sl, hop_limit, traffic_class, rate;
	uint32_t flow_label;
	uint8_t mtu;			/* 1..5, 0: not known */
	uint8_t life;
};

/* A question to the SA. The owner embeds it; done comes once, perhaps from inside. */
struct sa_query {
	struct sa_query *prev, *next;
	uint32_t tid;			/* 0: idle */
	enum { SA_JOIN, SA_PATH, SA_GROUPS } kind;
	size_t stride, size;		/* of the answer's records: from each to the next, in all */
	/* err: 0, -ETIMEDOUT, -ENODEV, or the SA's status (positive). record: 200 bytes, or size. */
	void (*done)(struct sa_query *q, int err, const void *record);
	void *owner;
};

/* A port of the fabric that has an interface, by QPN and GID. */
struct ipoib_peer {
	uint8_t key[IPOIB_ADDR_LEN - 1];	/* of the address, behind the flags */
	UT_hash_handle hh;
	struct ipoib *ip;
	unsigned int refs;		/* neighbours */
	uint8_t flags;
	bool fresh;			/* the path is newer than what could have changed it */
	ev_tstamp asked, used;
	struct ibfs_ah *ah;		/* NULL: no path yet */
	struct ipoib_route route;
	struct sa_query query;
	struct ipoib_queue queue;
	struct ipoib_conn *conn;	/* connected mode, or NULL */
	ev_tstamp conn_next;		/* not to be tried before */
	bool conn_refused;		/* it has no connected mode, whatever its address says */
	bool linux_service;		/* it listens for Linux' service ID only */
};

enum ipoib_neigh_state { NEIGH_INCOMPLETE, NEIGH_REACHABLE, NEIGH_PROBE };

/* A host at the other end, by IP address (IPv4 as ::ffff:a.b.c.d). */
struct ipoib_neigh {
	struct in6_addr addr;
	UT_hash_handle hh;
	uint32_t slot;
	enum ipoib_neigh_state state;
	unsigned int probes;
	ev_tstamp confirmed, used;
	struct ipoib_peer *peer;	/* NULL until the first answer */
	struct ipoib_queue queue;
};

enum ipoib_group_state { GROUP_IDLE, GROUP_JOINING, GROUP_JOINED };

struct ipoib_group {
	union ibv_gid mgid;
	UT_hash_handle hh;
	uint32_t slot;
	struct ipoib *ip;
	bool broadcast;
	bool host;			/* the host is a member (broadcast: always) */
	bool promisc;			/* wanted only to listen */
	bool late;			/* it came while we listened already */
	ev_tstamp listed;		/* when the SA had it last */
	bool full;			/* joined as a full member; else to send only */
	bool attached;			/* the QP is */
	bool create;			/* the join in flight may create it */
	bool rejoin;			/* was joined before the port went down */
	struct sa_member member;	/* as what it joined, or tries to */
	enum ipoib_group_state state;
	ev_tstamp next, delay;		/* when to try again, seconds to wait then */
	ev_tstamp joined, used;
	struct ibfs_ah *ah;
	struct ipoib_route route;
	uint32_t qkey;
	struct sa_query query;
	struct ipoib_queue queue;
};

/* An address of the host's on this interface. */
struct ipoib_host_addr {
	struct ipoib_host_addr *prev, *next;
	struct in6_addr addr;		/* as a neighbour's */
	struct in6_addr broadcast;	/* IPv4: the subnet's, or :: */
};

struct ipoib_host {
	ev_io io;			/* rtnetlink, in the interface's namespace */
	int ctl;			/* a socket there, for ioctl()s; -1: none */
	int index;
	unsigned int mtu;
	bool up, dumped;		/* dumped: what there was was asked for */
	struct ipoib_host_addr *addrs;
};

struct ipoib {
	struct verbs_client client;	/* first; of the CQ */
	struct ipoib *prev, *next;	/* of ibfs->ipoibs, by number */
	struct ibfs *ibfs;
	struct ibfs_device *dev;	/* NULL: gone */
	const struct verbs_ops *ops;
	unsigned int devnum, port;
	uint32_t num;
	char *name;
	uid_t owner_uid;
	gid_t owner_gid;
	unsigned int open;
	bool removed, created;

	/* what was asked for */
	char ifname[IPOIB_IFNAME];
	uint16_t pkey;			/* with the membership bit */
	bool connected, promisc, offload;
	unsigned int want_mtu;		/* 0: as large as it goes */

	/* the host's side */
	int tun;			/* -1: none */
	ev_io tun_io;
	bool carrier, tun_full;		/* reading waits for a free slot */
	struct ipoib_host host;

	/* the fabric's side */
	unsigned int pkey_index;
	union ibv_gid gid;
	struct ipoib_addr addr, broadcast;
	unsigned int mcast_mtu;		/* IP bytes of a datagram; 0: not joined yet */
	bool active, static_subnet;
	struct ibv_port_attr attr;
	bool can_csum, can_lso;		/* of the device, for UD */
	uint32_t qpn, qkey;
	struct ibfs_pd *pd;
	struct ibfs_cq *cq;
	struct ibfs_mr *mr;
	uint32_t lkey;
	struct memory *mem;
	struct ibfs_qp *qp;
	bool qp_ready, send_error;
	struct ibfs_srq *srq;		/* connected mode's */
	struct ipoib_conn *conns;	/* by QPN */
	struct cm_id *listener, *listener_linux;	/* NULL: nobody can connect */
	struct ipoib_tx slots[IPOIB_TX_SLOTS];
	struct ipoib_tx *free_slots;
	unsigned int queued;
	struct task rx_task, work;

	struct mad_agent *sa;
	uint32_t next_tid;
	struct sa_query *queries;
	struct task sa_task;		/* answers of the static subnet */

	struct ipoib_group *groups;	/* by MGID */
	struct ipoib_group *bcast;	/* one of them */
	struct {
		struct sa_query query;
		ev_tstamp next;
		bool listed, failed;	/* a list came; none came, and it was told */
	} listen;			/* of promiscuous mode */
	struct ipoib_neigh *neighs;
	struct slots neigh_slots, group_slots;	/* the same, and groups, in numbered slots */
	struct task age;		/* of neighbours, some at a time */
	uint32_t age_next;		/* the slot of the next; 0: all had their turn */
	struct ipoib_peer *peers;
	struct ipoib_listener *listeners;
	ev_timer tick;			/* 1 s: retries and ages */
	char notice[160];		/* the last one */
	uint64_t stats[IPOIB_STATS];
};

/* iface.c */
void ipoib_notice(struct ipoib *ip, const char *event, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void ipoib_event(struct ipoib *ip, const char *event);
const char *ipoib_label(const struct ipoib *ip, char buf[32]);	/* its name, or number */
void ipoib_set_up(struct ipoib *ip, bool up);	/* the broadcast group is, or isn't, joined */
unsigned int ipoib_max_mtu(const struct ipoib *ip);
void ipoib_apply_mtu(struct ipoib *ip);
static inline ev_tstamp ipoib_now(const struct ipoib *ip) { return ev_now(ip->ibfs->loop); }

/* tun.c */
int tun_open(struct ipoib *ip);			/* ip->ifname becomes the real one */
void tun_close(struct ipoib *ip);
void tun_carrier(struct ipoib *ip, bool on);
void tun_offloads(struct ipoib *ip);		/* as ip->offload and the mode say */
/* An IP packet for the host. */
void tun_write(struct ipoib *ip, const void *packet, size_t len, bool csum_ok);
void tun_resume(struct ipoib *ip);		/* a slot is free again */

/* host.c */
int host_open(struct ipoib *ip);
void host_close(struct ipoib *ip);
void host_set_mtu(struct ipoib *ip, unsigned int mtu);
const struct ipoib_host_addr *host_has(const struct ipoib *ip, const struct in6_addr *addr);
/* One of the family, fit to ask from: for IPv6 a link-local one if there is one. NULL: none. */
const struct ipoib_host_addr *host_source(const struct ipoib *ip, const struct in6_addr *to);
void host_announce(struct ipoib *ip);		/* all addresses, to everybody */
bool host_is_broadcast(const struct ipoib *ip, uint32_t addr);	/* network order */

/* ud.c */
int ud_open(struct ipoib *ip);
void ud_close(struct ipoib *ip);
int ud_start(struct ipoib *ip);			/* the QP to RTS, receives posted */
void ud_stop(struct ipoib *ip);
int ud_set_qkey(struct ipoib *ip, uint32_t qkey);
struct ipoib_tx *tx_alloc(struct ipoib *ip);	/* NULL: none is free */
void tx_free(struct ipoib *ip, struct ipoib_tx *tx);
void tx_queue(struct ipoib *ip, struct ipoib_queue *q, struct ipoib_tx *tx);
struct ipoib_tx *tx_dequeue(struct ipoib *ip, struct ipoib_queue *q);
void tx_drop_queue(struct ipoib *ip, struct ipoib_queue *q);
void tx_drop_posted(struct ipoib *ip, uint32_t qpn);	/* what a QP had that is no more */
uint8_t *ud_cm_buffer(const struct ipoib *ip, unsigned int index);
/* The packet is the callee's in any case. */
void ud_send(struct ipoib *ip, struct ipoib_tx *tx, struct ibfs_ah *ah, uint32_t qpn,
	     uint32_t qkey);
struct ibfs_ah *ud_ah(struct ipoib *ip, const union ibv_gid *dgid, const struct ipoib_route *route,
		      bool global);

/* rx.c */
struct ipoib_rx {
	const uint8_t *msg;		/* the 4-byte header */
	uint32_t len;
	const union ibv_gid *sgid;	/* NULL: not known */
	uint32_t src_qpn;
	uint16_t slid;
	uint8_t sl;
	bool multicast, broadcast, csum_ok;
};
void ipoib_receive(struct ipoib *ip, const struct ipoib_rx *rx);

/* tx.c: a packet from the host, or the daemon's own. The callee's. */
void ipoib_xmit(struct ipoib *ip, struct ipoib_tx *tx);
void ipoib_xmit_to(struct ipoib *ip, struct ipoib_tx *tx, const struct ipoib_addr *to);

/* sa.c */
int sa_open(struct ipoib *ip);
void sa_close(struct ipoib *ip);		/* what is asked ends unanswered */
int sa_join(struct ipoib *ip, struct ipoib_group *group);	/* < 0: not asked; who asks tries again */
void sa_leave(struct ipoib *ip, struct ipoib_group *group);	/* if it has joined */
int sa_path(struct ipoib *ip, struct ipoib_peer *peer);
int sa_describe(struct ipoib *ip, struct ipoib_group *group);	/* mcast_described() follows */
int sa_groups(struct ipoib *ip, struct sa_query *q);	/* of the partition: promisc_groups() */
void sa_cancel(struct ipoib *ip, struct sa_query *q);

/* mcast.c */
void mcast_gid4(const struct ipoib *ip, uint32_t addr, union ibv_gid *mgid);
void mcast_gid6(const struct ipoib *ip, const struct in6_addr *addr, union ibv_gid *mgid);
void mcast_broadcast_gid(const struct ipoib *ip, union ibv_gid *mgid);
int mcast_open(struct ipoib *ip);		/* the broadcast group is wanted */
void mcast_close(struct ipoib *ip);
void mcast_host(struct ipoib *ip, const union ibv_gid *mgid, bool member);
void mcast_send(struct ipoib *ip, const union ibv_gid *mgid, struct ipoib_tx *tx);
void mcast_joined(struct ipoib_group *group, int err);	/* sa.c: the join ended; route is set */
void mcast_port(struct ipoib *ip, bool down);	/* join all anew, or wait for the port */
void mcast_tick(struct ipoib *ip);
/* Listen to it, too. late: it wasn't there when listening began. */
void mcast_promisc(struct ipoib *ip, const union ibv_gid *mgid, bool late);
/* Those that were listed before then aren't listened to any more. */
void mcast_promisc_until(struct ipoib *ip, ev_tstamp then);
void mcast_described(struct ipoib_group *group, const struct ipoib_route *route, int err);

/* promisc.c */
void promisc_set(struct ipoib *ip, bool on);
void promisc_tick(struct ipoib *ip);
void promisc_groups(struct ipoib *ip, int err, const void *records, size_t stride, size_t size);

/* igmp.c: a packet that the host sends: is it about its groups? */
void igmp_watch4(struct ipoib *ip, const uint8_t *packet, size_t len);
void igmp_watch6(struct ipoib *ip, const uint8_t *packet, size_t len);
/* Ask the host which groups it is in: its reports may have gone while the link was down. */
void igmp_query(struct ipoib *ip);

/* neigh.c */
/* One that is asked for unless it is known. NULL: no memory, or too many. */
struct ipoib_neigh *neigh_get(struct ipoib *ip, const struct in6_addr *addr);
void neigh_send(struct ipoib *ip, const struct in6_addr *to, struct ipoib_tx *tx);
/* The neighbour said where it is. create: also if nobody asked. */
void neigh_learn(struct ipoib *ip, const struct in6_addr *addr, const struct ipoib_addr *lladdr,
		 bool create);
void neigh_tick(struct ipoib *ip);
void neigh_close(struct ipoib *ip);
static inline void in6_from4(struct in6_addr *in6, uint32_t in4)
{
	*in6 = (struct in6_addr){ .s6_addr32 = { 0, 0, htonl(0xffff), in4 } };
}

/* peer.c */
struct ipoib_peer *peer_get(struct ipoib *ip, const struct ipoib_addr *addr);
void peer_put(struct ipoib *ip, struct ipoib_peer *peer);
void peer_send(struct ipoib *ip, struct ipoib_peer *peer, struct ipoib_tx *tx);
void peer_path(struct ipoib_peer *peer, int err);	/* sa.c: the answer; route is set */
void peers_stale(struct ipoib *ip);
/* Where a datagram came from, for subnets that have no SA. */
void peer_heard(struct ipoib *ip, const struct ipoib_rx *rx, const struct ipoib_addr *addr);
void peers_tick(struct ipoib *ip);
/* A connection found nobody: perhaps the path is another one now. */
void peer_unreachable(struct ipoib *ip, struct ipoib_peer *peer);
static inline uint32_t peer_qpn(const struct ipoib_peer *peer)
{
	return (uint32_t)peer->key[0] << 16 | peer->key[1] << 8 | peer->key[2];
}
void peers_close(struct ipoib *ip);

/* conn.c, cm.c: connected mode */
int conns_open(struct ipoib *ip);
void conns_close(struct ipoib *ip);
void conns_listen(struct ipoib *ip);		/* if it is in connected mode */
void conns_deaf(struct ipoib *ip);		/* and all connections end */
void conns_drop(struct ipoib *ip);		/* all end; those that are needed are made anew */
void conns_mtu(struct ipoib *ip);		/* those that were told another MTU end */
void conns_tick(struct ipoib *ip);
/* True: the packet was the callee's. False: it is to go as a datagram. */
bool conn_send(struct ipoib *ip, struct ipoib_peer *peer, struct ipoib_tx *tx);
void conn_received(struct ipoib *ip, const struct ibfs_wc *wc);
void conn_failed(struct ipoib *ip, uint32_t qpn);
void conn_drop(struct ipoib_peer *peer);	/* its connection, if it has one */
void conn_path(struct ipoib_peer *peer);	/* its path is another one, perhaps */

/* arp.c, nd.c */
void arp_ask(struct ipoib *ip, uint32_t target, const struct ipoib_addr *to /* NULL: all */);
void arp_announce(struct ipoib *ip, uint32_t addr);
void arp_receive(struct ipoib *ip, const struct ipoib_rx *rx);
void nd_ask(struct ipoib *ip, const struct in6_addr *target, const struct ipoib_addr *to);
void nd_announce(struct ipoib *ip, const struct in6_addr *addr);
/* The host has it, or has it no more: its solicited-node group follows. */
void nd_address(struct ipoib *ip, const struct in6_addr *addr, bool added);
/* True: it was the daemon's; false: the host shall have it. */
bool nd_receive(struct ipoib *ip, const struct ipoib_rx *rx);

/* icmp.c: to the host, about a packet of its own that can't go. */
void icmp_too_big(struct ipoib *ip, const struct ipoib_tx *tx, unsigned int mtu);
void icmp_unreachable(struct ipoib *ip, const struct ipoib_tx *tx);

/* csum.c: RFC 1071 */
uint32_t ip_sum(const void *data, size_t len, uint32_t start);
uint16_t ip_fold(uint32_t sum);			/* complemented, network order */
uint16_t icmp6_sum(const struct in6_addr *from, const struct in6_addr *to, const void *msg,
		   size_t len, uint8_t proto);
/* Do what VIRTIO_NET_HDR_F_NEEDS_CSUM asks for. False: it lies outside the packet. */
bool csum_complete(struct ipoib_tx *tx);

/* frame.c */
void frame_deliver(struct ipoib *ip, const void *frame, size_t len);
void frames_end(struct ipoib *ip);

#endif
