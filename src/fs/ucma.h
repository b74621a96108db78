/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rdma_cm file: connections by IP address, as librdmacm asks for them.
 * <rdma/rdma_user_cm.h>; kernel drivers/infiniband/core/ucma.c and cma.c. It is a
 * client of the CM (ibfs/cm.h) and of the interfaces (ibfs/ipoib.h), and touches
 * no QP: the program modifies its own as it is told.
 *
 *  ucma.c	the file: open, write, poll, close; the table of commands
 *  ucma_run.c	a command's answer in the client's memory
 *  ucma_id.c	ids: their life and events
 *  ucma_option.c	their options
 *  ucma_sockaddr.c	addresses, in the ABI and in private data
 *  ucma_addr.c	which port they are at, and the other end's GID
 *  ucma_path.c	paths, by the SA or by the static subnet
 *  ucma_listen.c	listening, and requests that come
 *  ucma_conn.c	connect, accept, reject, disconnect
 *  ucma_qp.c	what QPs are to be set to
 *  ucma_mcast.c	multicast groups
 *  ucma_query.c	what an id is about
 */
#ifndef IBFS_FS_UCMA_H
#define IBFS_FS_UCMA_H

#include <ev.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <uthash.h>

#include <ibfs/backend.h>
#include <ibfs/cm.h>
#include <ibfs/fs.h>
#include <ibfs/ibfs.h>

#include "fs/client.h"
#include "fs/madonce.h"
#include "fs/tree.h"

struct path_rec;
struct ucma_cmd;
struct ucma_id;
struct ucma_mc;

/* rdma_cma.h's enum rdma_cm_event_type, by number. */
enum ucma_event_type {
	UCMA_ADDR_RESOLVED, UCMA_ADDR_ERROR, UCMA_ROUTE_RESOLVED, UCMA_ROUTE_ERROR,
	UCMA_CONNECT_REQUEST, UCMA_CONNECT_RESPONSE, UCMA_CONNECT_ERROR, UCMA_UNREACHABLE,
	UCMA_REJECTED, UCMA_ESTABLISHED, UCMA_DISCONNECTED, UCMA_DEVICE_REMOVAL,
	UCMA_MULTICAST_JOIN, UCMA_MULTICAST_ERROR, UCMA_ADDR_CHANGE, UCMA_TIMEWAIT_EXIT,
};

enum ucma_state {
	ID_IDLE, ID_BOUND, ID_ADDR_QUERY, ID_ADDR_DONE, ID_ROUTE_QUERY, ID_ROUTE_DONE, ID_CONNECT,
	ID_DISCONNECT, ID_LISTEN, ID_GONE,
};

/* RDMA_UDP_QKEY of rdma_cma.h */
#define UCMA_QKEY	0x01234567U

/* <infiniband/ib.h> of librdmacm. */
#ifndef AF_IB
#define AF_IB 27
#endif
struct ucma_sockaddr_ib {
	unsigned short sib_family;
	__be16 sib_pkey;
	__be32 sib_flowinfo;
	uint8_t sib_addr[16];
	__be64 sib_sid, sib_sid_mask;
	uint64_t sib_scope_id;
};

union ucma_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct ucma_sockaddr_ib ib;
	struct __kernel_sockaddr_storage storage;
};

struct ucma_event {
	struct ucma_event *prev, *next;
	struct ucma_id *id;		/* whose it counts for */
	struct ucma_id *made;		/* CONNECT_REQUEST: the new one; else NULL */
	struct ucma_mc *mc;		/* MULTICAST_JOIN, _ERROR: counts for it, too */
	struct rdma_ucm_event_resp resp;
};

struct ucma_file {
	struct ucma_file *prev, *next;	/* of ibfs->fs->ucmas */
	struct file *file;
	struct client_id opener;
	struct ucma_event *events;
	struct ucma_cmd *waiting;	/* GET_EVENTs */
	struct ucma_cmd *cmds;		/* whose answer is being written */
};

/* A port's answer to one service ID, shared by the ids that listen there. */
struct ucma_listener {
	struct ucma_listener *prev, *next;
	struct fs *fs;
	struct ibfs_device *dev;
	unsigned int port;
	uint64_t service_id;
	struct cm_id *cm;
};

/* A question to the SA: a record of len bytes and which of it are told. */
struct ucma_question {
	uint8_t method;
	uint16_t attr;
	uint64_t comp_mask;
	const void *record;
	size_t len;
	unsigned int timeout_ms;	/* in all */
};

/* An id's question for a path. */
struct ucma_path_query {
	struct mad_once once;		/* first; the SA's answer */
	struct task task;		/* the static subnet's */
};

/* A11.3.1: in front of the private data of a request. */
struct cma_hdr {
	uint8_t version;		/* major:4 minor:4, 0 */
	uint8_t ip_version;		/* :4, then reserved */
	__be16 port;			/* of the requester */
	__be32 src[4], dst[4];		/* IPv4: the last word */
};

/* A client's network; ino 0: none. */
struct ucma_netns {
	dev_t dev;
	ino_t ino;
};

struct ucma_id {
	UT_hash_handle hh;
	uint32_t num;
	struct fs *fs;
	struct ucma_file *uf;
	uint64_t uid;			/* the client's name for it */
	enum ucma_state state;
	uint16_t ps;
	uint8_t qp_type;
	bool reuse, afonly, passive;
	bool has_tos, has_ack_timeout;	/* options that were set */
	uint8_t tos, ack_timeout;
	union ucma_addr src, dst;
	struct ibfs_device *dev;	/* NULL: not bound to one */
	unsigned int port;
	struct cm_path path;		/* sgid, pkey: once bound; all: once resolved */
	bool has_path;
	uint8_t life;			/* of packets on the path: 4.096 us * 2^life */
	struct cm_id *cm;
	uint32_t psn;
	uint32_t qkey;			/* of datagrams; 0: not chosen yet */
	struct ucma_mc *mcs;		/* groups that it joined */
	uint8_t responder_resources;
	int backlog;			/* LISTEN: CONNECT_REQUESTs that may wait */
	uint32_t events_reported;
	ev_timer timer;			/* ADDR_QUERY: looks again */
	ev_tstamp deadline;
	struct ucma_netns netns;	/* that is asked for the neighbour */
	struct ucma_path_query query;
};

/* A command: the request, and the answer if there is one. */
struct ucma_cmd {
	struct ucma_cmd *prev, *next;
	struct job job;
	ev_timer patience;
	struct client *client;		/* NULL: no helper was needed yet */
	int netns;			/* the caller's network namespace; -1: not looked at, or none */
	struct ucma_file *uf;
	struct fs_req *req;
	size_t count;			/* what write() returns */
	const void *in;
	uint8_t kept[64];		/* of a request, while the command waits, */
	void *copy;			/* or all of it; NULL: it isn't needed */
	size_t in_len, out_room;
	uint64_t response;
	uint8_t out[512];		/* the answer; what was fetched */
	size_t out_len;			/* 0: no answer */
	int err;
	int (*then)(struct ucma_cmd *cmd);	/* after a fetch, or a look */
	struct ucma_id *made;		/* undone when the answer doesn't arrive */
	struct ucma_mc *made_mc;	/* likewise */
	struct ucma_event *event;	/* likewise: it is the first again */
};

/* ucma_run.c */
/* Write the answer: FS_PENDING, or -errno and the command is undone and freed. */
ssize_t ucma_answer(struct ucma_cmd *cmd);
void ucma_give_up(struct ucma_cmd *cmd, int err);
void ucma_cmd_free(struct ucma_cmd *cmd);
/* Have cmd->netns for `then`, which is as a command's function. FS_PENDING, or -errno. */
int ucma_look(struct ucma_cmd *cmd, int (*then)(struct ucma_cmd *cmd));
/* The write's buffer doesn't last: the request's beginning does. */
void ucma_keep(struct ucma_cmd *cmd);
/*
 * Read len bytes of the client's memory into cmd->out; then goes on, and what it returns ends
 * the command. FS_PENDING, or -errno: -EINVAL, there is no room. -EFAULT may follow.
 */
int ucma_fetch(struct ucma_cmd *cmd, uint64_t addr, size_t len, int (*then)(struct ucma_cmd *cmd));
/* Copy a request, the rest is 0. -EINVAL: it is shorter than `least`. */
int ucma_request(const struct ucma_cmd *cmd, void *req, size_t size, size_t least);
/* The same, of a command about an id, whose number is at *num in req. -ENOENT: not the file's. */
int ucma_id_request(const struct ucma_cmd *cmd, void *req, size_t size, size_t least,
		    uint32_t *num, struct ucma_id **id);
/* -ENOSPC: less than `least` has room. */
int ucma_respond(struct ucma_cmd *cmd, uint64_t response, const void *resp, size_t size,
		 size_t least);

/* ucma_id.c */
struct ucma_id *ucma_id_new(struct ucma_file *uf, uint16_t ps, uint8_t qp_type, uint64_t uid);
struct ucma_id *ucma_id_get(const struct ucma_file *uf, uint32_t num);	/* NULL: not its */
void ucma_id_free(struct ucma_id *id);		/* with its events */
/* An event; status and param are the caller's to fill in. NULL: no memory, it is lost. */
struct ucma_event *ucma_event_new(struct ucma_id *id, enum ucma_event_type type, int status);
void ucma_events_serve(struct ucma_file *uf);	/* who waits gets what there is */
void ucma_event_post(struct ucma_event *event);
void ucma_post(struct ucma_id *id, enum ucma_event_type type, int status);
void ucma_events_free(struct ucma_file *uf, const struct ucma_id *id);	/* NULL: all */
int ucma_create_id(struct ucma_cmd *cmd);
int ucma_destroy_id(struct ucma_cmd *cmd);
int ucma_get_event(struct ucma_cmd *cmd);	/* FS_PENDING: waits */
int ucma_migrate(struct ucma_cmd *cmd);
int ucma_notify(struct ucma_cmd *cmd);

/* ucma_option.c */
int ucma_set_option(struct ucma_cmd *cmd);

/* ucma_sockaddr.c */
size_t ucma_addr_len(const union ucma_addr *addr);	/* 0: of no known family */
bool ucma_addr_any(const union ucma_addr *addr);	/* zero, or loopback */
bool ucma_addr_multicast(const union ucma_addr *addr);	/* of IP */
struct in6_addr ucma_addr_in6(const union ucma_addr *addr);	/* IPv4 as ::ffff:a.b.c.d */
uint16_t ucma_addr_port(const union ucma_addr *addr);	/* host order */
void ucma_addr_set_port(union ucma_addr *addr, uint16_t port);
bool ucma_addr_same(const union ucma_addr *a, const union ucma_addr *b);	/* but for the port */
uint64_t ucma_service_id(const struct ucma_id *id, const union ucma_addr *addr);	/* host order */
/* A11.3.1: the header in front of a request's private data, none for AF_IB. */
size_t ucma_header_len(const struct ucma_id *id);
void ucma_header_put(struct cma_hdr *hdr, const struct ucma_id *id);
union ucma_addr ucma_header_ip(const struct cma_hdr *hdr, const __be32 from[4], uint16_t port);

/* ucma_addr.c */
/* The interface that has the id's own address, in that network. NULL: none. */
struct ipoib *ucma_interface(const struct ucma_id *id, int netns);
/* pkey 0: the port's first. */
int ucma_bind_port(struct ucma_id *id, struct ibfs_device *dev, unsigned int port, uint16_t pkey);
int ucma_bind_addr(struct ucma_id *id, const union ucma_addr *addr, const struct ucma_cmd *cmd);
/* A port of its own; the number in id->src, or any. -EADDRINUSE, -EADDRNOTAVAIL, -EACCES. */
int ucma_use_port(struct ucma_id *id, const struct fs_cred *cred);
void ucma_resolve_stop(struct ucma_id *id);
int ucma_bind_ip(struct ucma_cmd *cmd);
int ucma_bind(struct ucma_cmd *cmd);
int ucma_resolve_ip(struct ucma_cmd *cmd);
int ucma_resolve_addr(struct ucma_cmd *cmd);

/* ucma_path.c: from id->dev's port to id->path.dgid; done comes later, or never after a stop. */
int ucma_path_ask(struct ucma_id *id, unsigned int timeout_ms);
void ucma_path_stop(struct ucma_path_query *q);
void ucma_path_set(struct ucma_id *id, const struct path_rec *rec);	/* but for its ends */
/* A subnet without SM, whose tables are the daemon's. */
bool ucma_static_subnet(const struct ibfs_device *dev, const struct ibv_port_attr *attr);
/* Ask the port's SA; -ENETUNREACH: there is no SM. Else as mad_once_send(). */
int ucma_ask_sa(struct mad_once *once, struct ibfs_device *dev, unsigned int port,
		const struct ucma_question *question);
int ucma_resolve_route(struct ucma_cmd *cmd);

/* ucma_listen.c */
void ucma_unlisten(struct ucma_id *id);
void ucma_listeners_gone(struct ibfs_device *dev);
int ucma_listen(struct ucma_cmd *cmd);

/* ucma_conn.c */
int ucma_on_cm(struct cm_id *cm, const struct cm_event *event);	/* an id's, but a listening one's */
/* Into an event's private data, which may have less room. The length. */
uint8_t ucma_private(uint8_t room[RDMA_MAX_PRIVATE_DATA], const void *data, size_t len);
void ucma_put_ece(struct ucma_event *event, const struct cm_ece *ece);
int ucma_connect(struct ucma_cmd *cmd);
int ucma_accept(struct ucma_cmd *cmd);
int ucma_reject(struct ucma_cmd *cmd);
int ucma_disconnect(struct ucma_cmd *cmd);

/* ucma_qp.c */
/* The id's Q_Key is this, or, 0, any: -EINVAL, it has another one; -EADDRNOTAVAIL. */
int ucma_set_qkey(struct ucma_id *id, uint32_t qkey, int netns);
void ucma_put_ah(struct ib_uverbs_ah_attr *to, const struct ibv_ah_attr *from);
int ucma_init_qp_attr(struct ucma_cmd *cmd);

/* ucma_mcast.c */
void ucma_mc_free(struct ucma_mc *mc);
void ucma_mcs_free(struct ucma_id *id);		/* it leaves all */
void ucma_mcs_gone(struct ucma_id *id);		/* the device is */
void ucma_mc_counted(struct ucma_mc *mc);	/* an event of it was told */
int ucma_join_mcast(struct ucma_cmd *cmd);
int ucma_join_ip_mcast(struct ucma_cmd *cmd);
int ucma_leave_mcast(struct ucma_cmd *cmd);

/* ucma_query.c */
int ucma_query_route(struct ucma_cmd *cmd);
int ucma_query(struct ucma_cmd *cmd);

#endif
