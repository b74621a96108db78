/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clients of an end port's QP0 and QP1, for the files of this directory
 * that serve them: agent.c (who gets what), send.c (what goes out, timeouts),
 * rmpp*.c (messages of many segments). IBA 13.4, 13.6; the rules are those of
 * Linux's core/mad.c, mad_rmpp.c and user_mad.c.
 */
#ifndef IBFS_HCA_AGENT_H
#define IBFS_HCA_AGENT_H

#include <ev.h>
#include <uthash.h>

#include "fabric/fabric.h"
#include "hca/mad.h"
#include "ibfs/backend.h"
#include "ibfs/ibfs.h"

enum { RMPP_DATA = 1, RMPP_ACK = 2, RMPP_STOP = 3, RMPP_ABORT = 4 };
enum { RMPP_ACTIVE = 1, RMPP_FIRST = 2, RMPP_LAST = 4, RMPP_FLAGS = 7 };
#define RMPP_NO_RESP_TIME	(0x1f << 3)

/* RMPPStatus, 13.6.2.2 table */
enum {
	RMPP_OK = 0, RMPP_RESX = 1, RMPP_T2L = 118, RMPP_BAD_SEG = 120,
	RMPP_BADT = 121, RMPP_W2S = 122, RMPP_S2B = 123, RMPP_BAD_STATUS = 124,
	RMPP_UNV = 125, RMPP_ABORT_MIN = 118, RMPP_ABORT_MAX = 127,
};

#define MAD_HDR_LEN	24	/* the header that all classes share */
#define RMPP_HDR_LEN	36	/* and the RMPP header behind it */
#define RMPP_MAX_HDR	64	/* the longest class header, 13.6: devices' */
#define OUI_OFFSET	37	/* vendor classes 0x30-0x4f */

/* Which methods of a class and version go to which agent. */
struct mad_class {
	uint64_t key;			/* class, version and OUI */
	unsigned int used;		/* methods that are taken */
	struct mad_agent *methods[128];
	UT_hash_handle hh;
};

/* An end port's clients: port_agents->clients. */
struct mad_port {
	struct port *port;
	struct ibfs *ibfs;
	const struct ibfs_device *dev;
	uint32_t next_tid;		/* candidates for the next agent's id */
	uint32_t psn[2];		/* by QP */
	struct mad_agent *agents;	/* utlist */
	struct mad_agent *by_tid;	/* uthash by hi_tid */
	struct mad_class *classes;	/* uthash by key */
};

struct mad_agent {
	struct mad_agent *prev, *next;
	struct mad_port *mp;
	struct mad_reg reg;
	const struct mad_client_ops *ops;
	void *client;
	uint32_t hi_tid;		/* high half of its requests' TIDs */
	UT_hash_handle hh;		/* of mad_port.by_tid */
	struct mad_out *outs;		/* in flight, uthash by key */
	struct rmpp_in *ins;		/* messages that arrive, uthash by key */
	unsigned int num_ins;
	unsigned int busy;		/* calls that are under way in it */
	bool dead;			/* freed when no call is under way */
};

/* What tells MADs in flight from each other; all bytes count. */
struct mad_out_key {
	uint64_t tid;			/* as on the wire */
	uint16_t lid;			/* the far end's, of responses only */
	uint8_t mgmt_class;
	uint8_t response;
	uint32_t zero;
};

/* A message's progress, in segments counted from 1. */
struct rmpp_out {
	uint32_t segs;			/* 0: not a RMPP message */
	uint32_t sent, acked, win;
	uint32_t resent;		/* the last one sent again because an ACK lacked it */
	bool missing;			/* acked + 1 is to be sent again */
	unsigned int wait_ms, waited_ms;
};

/* A MAD or message that waits for its response or its ACKs. */
struct mad_out {
	struct task task;		/* first: sends segments */
	struct mad_agent *agent;
	struct mad_out_key key;
	UT_hash_handle hh;
	struct mad_addr addr;
	struct ev_timer timer;
	unsigned int timeout_ms;	/* 0: no response is expected */
	unsigned int retries;		/* that are left */
	unsigned int max_retries;
	bool sending;			/* whoever sends it frees it if done */
	bool done;
	struct rmpp_out rmpp;
	size_t len;
	uint8_t mad[];			/* the message; at least MAD_SIZE bytes */
};

/* agent.c */
struct mad_port *mad_port_new(const struct ibfs_device *dev, struct port *end_port,
			      uint32_t first_tid);
/* Note why a client's request failed; returns -EINVAL. */
int mad_refuse(const struct mad_port *mp, const char *what, const char *why);
/* Agents that are left are told that they are gone, and freed. */
void mad_port_free(struct mad_port *mp);
int mad_agent_register(struct mad_port *mp, const struct mad_reg *reg,
		       const struct mad_client_ops *ops, void *client,
		       struct mad_agent **new_agent);
void mad_agent_unregister(struct mad_agent *agent);
/* Around calls by which a client may unregister the agent: the last put frees a dead one. */
void mad_agent_get(struct mad_agent *agent);
void mad_agent_put(struct mad_agent *agent);
bool mad_is_response(const struct umad_hdr *hdr);
/* A whole MAD or message for the agent: completes its request, calls the client. */
void mad_agent_recv(struct mad_agent *agent, const struct mad_addr *addr,
		    const void *mad, size_t len);

/* send.c */
int mad_agent_send(struct mad_agent *agent, const struct mad_addr *addr, const void *mad,
		   size_t len, unsigned int timeout_ms, unsigned int retries);
/* Send MAD_SIZE bytes from the agent's QP: 0 or -EINVAL (an address or route that can't be). */
int mad_transmit(struct mad_agent *agent, const struct mad_addr *addr, const void *mad);
/* The MAD in flight that one that came in belongs to, or NULL. */
struct mad_out *mad_out_find(struct mad_agent *agent, const struct mad_addr *addr,
			     const struct umad_hdr *hdr);
/* It is over: nothing is reported. Freed at once unless it is being sent. */
void mad_out_done(struct mad_out *out);
/* It is over: the client gets its header with ETIMEDOUT. */
void mad_out_expire(struct mad_out *out);
/* Start its timer anew, for the next ACK or, when there is none to come, the response. */
void mad_out_arm(struct mad_out *out);

/* rmpp.c */
bool rmpp_class(uint8_t mgmt_class);
/* Bytes of headers in front of a class' data, in every segment. */
unsigned int rmpp_header_len(uint8_t mgmt_class);
/* The agent's messages are cut and put together here, not by the client. */
bool rmpp_agent(const struct mad_agent *agent);
static inline bool rmpp_active(const void *mad)
{
	return ((const struct umad_rmpp_packet *)mad)->rmpp_hdr.rmpp_rtime_flags & RMPP_ACTIVE;
}
/* A segment of a client that does its own RMPP: many MADs may have one TID. */
bool rmpp_raw(const struct mad_agent *agent, const struct umad_hdr *hdr);
/* A MAD with RMPP active for an agent that doesn't. */
void rmpp_recv(struct mad_agent *agent, const struct mad_addr *addr, const void *mad);
/* Answer a segment with an ACK, STOP or ABORT: headers are those of mad, turned round. */
void rmpp_answer(struct mad_agent *agent, const struct mad_addr *addr, const void *mad,
		 uint8_t type, uint8_t status, uint32_t seg, uint32_t newwin);

/* rmpp_send.c */
/* Cut it and send the first segment; as mad_transmit(). */
int rmpp_send_start(struct mad_out *out);
void rmpp_send_timeout(struct mad_out *out);
void rmpp_send_ack(struct mad_agent *agent, const struct mad_addr *addr, const void *mad);
/* The far end gave up, or we do. */
void rmpp_send_abort(struct mad_agent *agent, const struct mad_addr *addr, const void *mad);

/* rmpp_recv.c */
void rmpp_recv_data(struct mad_agent *agent, const struct mad_addr *addr, const void *mad);
/* Forget a message that the far end gave up. */
void rmpp_recv_abort(struct mad_agent *agent, const struct mad_addr *addr, const void *mad);
void rmpp_recv_free_all(struct mad_agent *agent);

#endif
