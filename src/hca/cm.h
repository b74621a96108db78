/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CM inside: messages on the wire (IBA 12.6, all big-endian), an end's
 * state, and a port's ends. Parts:
 *  cm.c	ends: their life, tables, timers
 *  cm_port.c	a port's agent, and how MADs come from and go to it
 *  cm_send.c	what an end sends
 *  cm_recv.c cm_req.c	what it is sent; requests, from nobody known yet
 *  cm_qp.c	what a QP is to be set to
 */
#ifndef IBFS_HCA_CM_H
#define IBFS_HCA_CM_H

#include <ev.h>
#include <infiniband/umad_cm.h>
#include <infiniband/umad_types.h>
#include <linux/types.h>
#include <string.h>
#include <uthash.h>

#include "ibfs/backend.h"
#include "ibfs/cm.h"
#include "ibfs/ibfs.h"

#define CM_MAD		256
#define CM_CLASS_VERSION 2
#define CM_MAX_IDS	65536U	/* of a port */
#define CM_MAX_TIME	21U
#define CM_MAX_WAITING	4096U	/* MADs that a port keeps until their turn */

struct cm_req_msg {
	struct umad_hdr hdr;
	__be32 local_id;
	__be32 vendor;			/* reserved:8 VendorID:24 */
	__be64 service_id;
	__be64 ca_guid;
	__be32 reserved24, qkey;
	__be32 qpn_resources;		/* QPN:24 ResponderResources:8 */
	__be32 eecn_depth;		/* EECN:24 InitiatorDepth:8 */
	__be32 remote_eecn;		/* EECN:24 RemoteCMTimeout:5 Transport:2 FlowControl:1 */
	__be32 psn_timeout;		/* PSN:24 LocalCMTimeout:5 RetryCount:3 */
	__be16 pkey;
	uint8_t mtu_rnr;		/* MTU:4 RDCExists:1 RNRRetryCount:3 */
	uint8_t retries_srq;		/* MaxCMRetries:4 SRQ:1 ExtendedTransport:3 */
	__be16 local_lid, remote_lid;
	uint8_t local_gid[16], remote_gid[16];
	__be32 flow_rate;		/* FlowLabel:20 reserved:6 PacketRate:6 */
	uint8_t traffic_class, hop_limit;
	uint8_t sl_local;		/* SL:4 SubnetLocal:1 */
	uint8_t ack_timeout;		/* LocalACKTimeout:5 */
	uint8_t alternate[44];
	uint8_t private_data[CM_REQ_PRIVATE];
};

struct cm_mra_msg {
	struct umad_hdr hdr;
	__be32 local_id, remote_id;
	uint8_t message;		/* MessageMRAed:2 */
	uint8_t timeout;		/* ServiceTimeout:5 */
	uint8_t private_data[CM_MRA_PRIVATE];
};

struct cm_rej_msg {
	struct umad_hdr hdr;
	__be32 local_id, remote_id;
	uint8_t message;		/* MessageREJected:2 */
	uint8_t ari_len;		/* :7 */
	__be16 reason;
	uint8_t ari[CM_ARI];
	uint8_t private_data[CM_REJ_PRIVATE];
};

struct cm_rep_msg {
	struct umad_hdr hdr;
	__be32 local_id, remote_id, qkey;
	__be32 qpn, eecn, psn;		/* the upper 24 bits of each; VendorID, its low byte last */
	uint8_t resources, depth;
	uint8_t delay_flow;		/* TargetACKDelay:5 FailoverAccepted:2 FlowControl:1 */
	uint8_t rnr_srq;		/* RNRRetryCount:3 SRQ:1 */
	__be64 ca_guid;
	uint8_t private_data[CM_REP_PRIVATE];
} __attribute__((packed, aligned(4)));

/* RTU and DREP; what all but REQ begin with. */
struct cm_rtu_msg {
	struct umad_hdr hdr;
	__be32 local_id, remote_id;
	uint8_t private_data[CM_RTU_PRIVATE];
};

struct cm_dreq_msg {
	struct umad_hdr hdr;
	__be32 local_id, remote_id;
	__be32 remote_qpn;		/* the upper 24 bits */
	uint8_t private_data[CM_DREQ_PRIVATE];
};

struct cm_sidr_req_msg {
	struct umad_hdr hdr;
	__be32 request_id;
	__be16 pkey, reserved;
	__be64 service_id;
	uint8_t private_data[CM_SIDR_REQ_PRIVATE];
};

struct cm_sidr_rep_msg {
	struct umad_hdr hdr;
	__be32 request_id;
	uint8_t status, info_len;
	__be16 reserved;
	__be32 qpn;			/* the upper 24 bits */
	__be64 service_id;
	__be32 qkey;
	uint8_t info[CM_ARI];
	uint8_t private_data[CM_SIDR_REP_PRIVATE];
} __attribute__((packed, aligned(4)));

union cm_msg {
	struct umad_hdr hdr;
	struct cm_req_msg req;
	struct cm_mra_msg mra;
	struct cm_rej_msg rej;
	struct cm_rep_msg rep;
	struct cm_rtu_msg rtu;
	struct cm_dreq_msg dreq;
	struct cm_sidr_req_msg sidr_req;
	struct cm_sidr_rep_msg sidr_rep;
	uint8_t raw[CM_MAD];
};
_Static_assert(sizeof(union cm_msg) == CM_MAD && sizeof(struct cm_req_msg) == CM_MAD &&
	       sizeof(struct cm_mra_msg) == CM_MAD && sizeof(struct cm_rej_msg) == CM_MAD &&
	       sizeof(struct cm_rep_msg) == CM_MAD && sizeof(struct cm_dreq_msg) == CM_MAD &&
	       sizeof(struct cm_sidr_req_msg) == CM_MAD && sizeof(struct cm_sidr_rep_msg) == CM_MAD,
	       "each message is a MAD");

/* MessageMRAed and MessageREJected */
enum { CM_MSG_REQ, CM_MSG_REP, CM_MSG_OTHER };

/* The other end, by what its CM says: its communication ID, or its QPN. */
struct cm_key {
	uint64_t guid;			/* of its CA */
	uint64_t num;
};

/* The lowest bit tells that there is a number. */
static inline void cm_key_init(struct cm_key *key, uint64_t guid, uint32_t num)
{
	memset(key, 0, sizeof(*key));
	key->guid = guid;
	key->num = (uint64_t)num << 1 | 1;
}

struct cm_id {
	struct cm_id *prev, *next;	/* of port->ids */
	struct cm_port *port;
	cm_handler *handler;
	void *owner;
	enum cm_state state;
	unsigned int busy;		/* calls of the handler under way */
	bool orphan;			/* nobody's: goes when its connection is over */
	bool dead;			/* goes when no call is under way */
	bool gone;			/* was told that the device is */

	uint32_t local_id, remote_id;
	struct cm_key remote, remote_qp;	/* num 0: not known */
	uint64_t service_id;		/* of a listening one */
	UT_hash_handle hh_local, hh_remote, hh_qp, hh_service;
	uint64_t tid;			/* of REQ to RTU */
	struct mad_addr addr;		/* the other CM */
	bool mra_sent;
	bool sidr;			/* remote: who asked, and the number of its request */

	struct cm_path path;
	unsigned int pkey_index, gid_index;
	uint32_t qpn, psn, remote_qpn, remote_psn;
	uint8_t transport, responder_resources, initiator_depth;
	uint8_t ack_timeout, retry_count, rnr_retry_count;

	ev_timer timer;
	double timeout;			/* s, of a message that waits for its answer */
	unsigned int retries, max_retries;	/* left, and of each message */
	union cm_msg msg;		/* the last one sent, for sending it again */
};

struct cm_mad {
	struct cm_mad *prev, *next;
	struct mad_addr addr;
	union cm_msg msg;
};

/* The ends of a device's port, and its agent; lives as long as there is an end. */
struct cm_port {
	struct cm_port *prev, *next;	/* of ibfs->cm_ports */
	struct ibfs *ibfs;
	struct ibfs_device *dev;	/* NULL: gone */
	unsigned int num;
	unsigned int refs, num_ids;
	struct mad_agent *agent;
	struct cm_id *ids;
	struct cm_id *by_local, *by_remote, *by_qp, *by_service;
	struct cm_id *by_sidr;		/* requests that wait for their answer, by hh_remote */
	struct cm_mad *waiting;		/* arrived, to be looked at by the task */
	unsigned int num_waiting;
	struct task task;
};

/* cm.c */
int cm_id_make(struct cm_port *port, struct cm_id **id);
/* Call the handler: what it returns, 0 without one. The id may be gone after it. */
int cm_tell(struct cm_id *id, const struct cm_event *event);
int cm_tell_type(struct cm_id *id, enum cm_event_type type);
void cm_learn_remote(struct cm_id *id, uint64_t guid, uint32_t remote_id, uint32_t qpn);
/* Neither timers nor messages reach it any more. */
void cm_idle(struct cm_id *id);
void cm_timewait(struct cm_id *id);
void cm_arm(struct cm_id *id, double seconds);
void cm_disarm(struct cm_id *id);
/* The other end may ask for hours; it gets what Linux gives, 8.6 s. */
static inline double cm_seconds(unsigned int exponent)
{
	return 4.096e-6 * (double)(1U << (exponent < CM_MAX_TIME ? exponent : CM_MAX_TIME));
}

/* cm_port.c */
int cm_port_get(struct ibfs_device *dev, unsigned int num, struct cm_port **port);
void cm_port_hold(struct cm_port *port);
void cm_port_put(struct cm_port *port);
uint64_t cm_port_guid(const struct cm_port *port);
int cm_transmit(struct cm_port *port, const struct mad_addr *to, const union cm_msg *msg);

/* cm_send.c */
/* Where an answer to what came from there goes. */
void cm_answer_addr(const struct mad_addr *from, struct mad_addr *to);
void cm_resend(struct cm_id *id);
/* Answers that belong to no end: to a message that came from addr. */
void cm_refuse(struct cm_port *port, const struct cm_mad *in, unsigned int message,
	       enum cm_reason reason);
void cm_drep_nobody(struct cm_port *port, const struct cm_mad *in);
void cm_refuse_sidr(struct cm_port *port, const struct cm_mad *in, enum cm_sidr_status status);

/* cm_recv.c, cm_req.c */
void cm_handle(struct cm_port *port, const struct cm_mad *in);
void cm_handle_req(struct cm_port *port, const struct cm_mad *in);
void cm_handle_sidr_req(struct cm_port *port, const struct cm_mad *in);
/* A QP can't be in two connections: the old one is over, and is disconnected. */
bool cm_stale(struct cm_port *port, const struct cm_mad *in, const struct cm_key *qp,
	      unsigned int message);

#endif
