/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IP over InfiniBand, RFC 4391, 4392 and 4755: network interfaces (TUN) carried
 * by a device's verbs. What the tree and the list of devices call; src/ipoib
 * has the rest. Functions return 0 or a negative errno, noted by ibfs_fail().
 */
#ifndef IBFS_IPOIB_H
#define IBFS_IPOIB_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ibfs;
struct ibfs_device;
struct ipoib;
struct textbuf;

#define IPOIB_ADDR_LEN	20	/* flags, QPN (3), GID (16): RFC 4391 9.1.1 */
#define IPOIB_HEADER	4	/* EtherType and two reserved bytes: RFC 4391 6 */

/* What an interface counts. */
enum ipoib_stat {
	IPOIB_IPACKETS, IPOIB_OPACKETS, IPOIB_RBYTES, IPOIB_OBYTES, IPOIB_IERRORS, IPOIB_OERRORS,
	IPOIB_MULTIRCV, IPOIB_MULTIXMT, IPOIB_BRDCSTRCV, IPOIB_BRDCSTXMT, IPOIB_NORCVBUF,
	IPOIB_NOXMTBUF, IPOIB_UNKNOWNS, IPOIB_RX_DROPPED, IPOIB_TX_DROPPED, IPOIB_RX_LENGTH_ERRORS,
	IPOIB_TX_CARRIER_ERRORS, IPOIB_STATS,
};

/* The names of stats/: gld(7D)'s first, then those of Linux's net_device. */
struct ipoib_stat_name {
	const char *name;
	uint8_t stat;			/* enum ipoib_stat */
	const char *help;		/* in `metrics`; NULL: another name of one before */
};
extern const struct ipoib_stat_name ipoib_stat_names[];
extern const unsigned int ipoib_num_stat_names;

/*
 * An interface of a port, which does nothing until ipoib_create(). name: its
 * directory's, NULL: it has a number only, and goes with its last open file.
 */
struct ipoib *ipoib_new(struct ibfs *ibfs, struct ibfs_device *dev, unsigned int port,
			const char *name, uid_t uid, gid_t gid);	/* NULL: no memory */
/* Its directory goes; files that are open keep what is left of it until they are closed. */
void ipoib_remove(struct ipoib *ip);
/* An open file of it. */
void ipoib_get(struct ipoib *ip);
void ipoib_put(struct ipoib *ip);
/* By number (the first from num on); by name or number. NULL: there is none. */
struct ipoib *ipoib_from(struct ibfs *ibfs, unsigned int dev, unsigned int port, uint64_t num);
struct ipoib *ipoib_find(struct ibfs *ibfs, unsigned int dev, unsigned int port, const char *name);
/* The first of all from num on, its device may be gone; NULL: there is none. */
struct ipoib *ipoib_next(struct ibfs *ibfs, uint64_t num);
/* The first from num on that is created, at any port of the device. NULL: there is none. */
struct ipoib *ipoib_of_device(struct ibfs *ibfs, unsigned int dev, uint64_t num);
struct ibfs *ipoib_ibfs(const struct ipoib *ip);
uint32_t ipoib_num(const struct ipoib *ip);
const char *ipoib_name(const struct ipoib *ip);		/* NULL: a number only */
const char *ipoib_ifname(const struct ipoib *ip);
bool ipoib_gone(const struct ipoib *ip);	/* the device or the directory is */
void ipoib_owner(const struct ipoib *ip, uid_t *uid, gid_t *gid);

/*
 * Make the network interface. pkey: 0, the port's first; ifname: "" lets the
 * kernel choose ib0, ib1, ... EBUSY: is created; EINVAL: not in the port's
 * table, a bad name; EPERM, EOPNOTSUPP, and what the kernel says to TUNSETIFF.
 */
int ipoib_create(struct ipoib *ip, uint16_t pkey, const char *ifname);
int ipoib_set_linkmode(struct ipoib *ip, bool connected);
int ipoib_set_mtu(struct ipoib *ip, unsigned int mtu);	/* EINVAL: out of range */
int ipoib_set_promisc(struct ipoib *ip, bool on);
int ipoib_set_offload(struct ipoib *ip, bool on);

/* The content of its files. -ENXIO: not created yet. */
int ipoib_show_address(const struct ipoib *ip, struct textbuf *out);
int ipoib_show_broadcast(const struct ipoib *ip, struct textbuf *out);
int ipoib_show_linkmode(const struct ipoib *ip, struct textbuf *out);
int ipoib_show_mtu(const struct ipoib *ip, struct textbuf *out);
int ipoib_show_status(const struct ipoib *ip, struct textbuf *out);
int ipoib_show_info(const struct ipoib *ip, struct textbuf *out);
/* A line of neighbours or of multicast, the first from number *next on; false: there is none. */
bool ipoib_show_neighbour(const struct ipoib *ip, uint32_t *next, struct textbuf *out);
bool ipoib_show_group(const struct ipoib *ip, uint32_t *next, struct textbuf *out);
uint64_t ipoib_stat(const struct ipoib *ip, enum ipoib_stat stat);

/*
 * Raw mode: what is sent begins with the 20-byte destination, what comes with
 * the 4-byte header. EINVAL: too short or too long; ENETDOWN; ENOBUFS.
 */
int ipoib_frame_send(struct ipoib *ip, const void *frame, size_t len);
struct ipoib_listener {
	struct ipoib_listener *prev, *next;
	/* One frame, valid for the call only; NULL: there will be no more. */
	void (*frame)(struct ipoib_listener *listener, const void *frame, size_t len);
};
void ipoib_listen(struct ipoib *ip, struct ipoib_listener *listener);
void ipoib_unlisten(struct ipoib *ip, struct ipoib_listener *listener);

/*
 * For connections by IP address (IPv4 as ::ffff:a.b.c.d). The interface that has
 * the address, in the network namespace whose file's stat is given; NULL: none.
 * Its port, and -ENODEV when that is gone. The GID of a neighbour: -EAGAIN, it was
 * asked for and isn't known yet; -ENOMEM.
 */
struct in6_addr;
struct stat;
struct ipoib *ipoib_of_host(struct ibfs *ibfs, const struct in6_addr *addr,
			    const struct stat *netns);
int ipoib_port(const struct ipoib *ip, struct ibfs_device **dev, unsigned int *port, uint16_t *pkey);
void ipoib_gid(const struct ipoib *ip, union ibv_gid *gid);
int ipoib_neighbour(struct ipoib *ip, const struct in6_addr *addr, union ibv_gid *gid);
/* The group of the fabric that an IP group is: RFC 4391 4. */
void ipoib_mgid(const struct ipoib *ip, const struct in6_addr *addr, union ibv_gid *mgid);
/* What all groups of its IP subnet are like. -EADDRNOTAVAIL: it hasn't joined the broadcast group. */
struct ipoib_subnet {
	uint32_t qkey, flow_label;
	uint16_t pkey;
	uint8_t sl, traffic_class, hop_limit, mtu, rate;
};
int ipoib_subnet(const struct ipoib *ip, struct ipoib_subnet *subnet);

/* A member of a multicast group, for ipoib/sa.h: sa_member_add(). */
struct sa_member {
	struct sa_member *prev, *next;
	const struct ibfs_device *dev;
	unsigned int port;
	union ibv_gid mgid;
	uint8_t join;			/* as what: JOIN_* */
	bool listed;
};

/* For backend/device.c: an event of a port; the device goes. */
void ipoib_port_event(struct ibfs_device *dev, unsigned int port, enum ibv_event_type event);
void ipoib_device_gone(struct ibfs_device *dev);

#endif
