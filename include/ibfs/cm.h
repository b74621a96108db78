/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Communication management: how two ends agree on a connection. IBA chapter 12;
 * calls and events are cut as those of Linux' drivers/infiniband/core/cm.c. It
 * knows no QP: who uses it modifies its own as cm_qp_attr() says. All numbers
 * are host order, times are exponents x of 4.096 us * 2^x. Functions return 0
 * or a negative errno, -EINVAL in a state in which the message makes no sense.
 *
 * An end is a struct cm_id. It is its maker's, who frees it at any time, from
 * inside its handler too: what is under way is then rejected or disconnected
 * properly. Handlers are called from the event loop, never from inside a call.
 *
 * Datagram services (SIDR, 12.11): a request asks for the QP of a service, and
 * the answer, or that there is none, ends it: both ids are idle again.
 */
#ifndef IBFS_CM_H
#define IBFS_CM_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ibfs_device;
struct cm_id;

enum cm_state {
	CM_IDLE, CM_LISTEN, CM_REQ_SENT, CM_REQ_RCVD, CM_REP_SENT, CM_REP_RCVD, CM_ESTABLISHED,
	CM_DREQ_SENT, CM_DREQ_RCVD, CM_TIMEWAIT, CM_SIDR_REQ_SENT, CM_SIDR_REQ_RCVD,
};

/* REJ's reasons, 12.6.7.2 */
enum cm_reason {
	CM_REJ_NO_QP = 1, CM_REJ_NO_RESOURCES = 3, CM_REJ_TIMEOUT = 4, CM_REJ_UNSUPPORTED = 5,
	CM_REJ_INVALID_COMM_ID = 6, CM_REJ_INVALID_SERVICE_ID = 8, CM_REJ_INVALID_TRANSPORT = 9,
	CM_REJ_STALE_CONN = 10, CM_REJ_INVALID_GID = 12, CM_REJ_INVALID_LID = 13,
	CM_REJ_INVALID_MTU = 26, CM_REJ_CONSUMER = 28, CM_REJ_VENDOR_OPTION = 35,
};

/* SIDR_REP's status, 12.11.2.1 */
enum cm_sidr_status {
	CM_SIDR_SUCCESS, CM_SIDR_UNSUPPORTED, CM_SIDR_REJECT, CM_SIDR_NO_QP, CM_SIDR_REDIRECT,
	CM_SIDR_UNSUPPORTED_VERSION,
};

enum { CM_TRANSPORT_RC, CM_TRANSPORT_UC, CM_TRANSPORT_RD, CM_TRANSPORT_EXTENDED };

/* Bytes of private data that each message has room for. */
enum {
	CM_REQ_PRIVATE = 92, CM_MRA_PRIVATE = 222, CM_REJ_PRIVATE = 148, CM_REP_PRIVATE = 196,
	CM_RTU_PRIVATE = 224, CM_DREQ_PRIVATE = 220, CM_DREP_PRIVATE = 224, CM_ARI = 72,
	CM_SIDR_REQ_PRIVATE = 216, CM_SIDR_REP_PRIVATE = 136,
};

struct cm_path {
	union ibv_gid sgid, dgid;	/* s: of this end */
	uint16_t slid, dlid, pkey;
	uint32_t flow_label;
	uint8_t sl, mtu, rate, hop_limit, traffic_class;	/* mtu: 1..5 */
	bool global;			/* packets need a GRH */
};

/*
 * Enhanced connection establishment: what a vendor's driver offers or wants.
 * vendor_id has 24 bits, of which 0 is nobody's; what options mean is the vendor's.
 */
struct cm_ece {
	uint32_t vendor_id, options;
};

struct cm_req {
	uint64_t service_id;
	struct cm_path path;
	uint32_t qpn, psn;
	uint8_t transport;		/* CM_TRANSPORT_* */
	bool srq, flow_control;
	uint8_t responder_resources, initiator_depth;
	uint8_t remote_cm_timeout, local_cm_timeout, max_cm_retries;
	uint8_t ack_timeout, retry_count, rnr_retry_count;
	struct cm_ece ece;
	const void *private_data;
	size_t private_len;		/* CM_REQ_PRIVATE at most; in an event exactly that */
};

struct cm_rep {
	uint32_t qpn, psn;
	uint8_t responder_resources, initiator_depth, target_ack_delay, rnr_retry_count;
	bool srq, flow_control;
	struct cm_ece ece;
	const void *private_data;
	size_t private_len;
};

struct cm_sidr_req {
	uint64_t service_id;
	struct cm_path path;		/* in an event only its pkey */
	uint8_t timeout, max_retries;	/* 0 in an event */
	const void *private_data;
	size_t private_len;
};

struct cm_sidr_rep {
	uint8_t status;			/* enum cm_sidr_status, or what else the other end says */
	uint32_t qpn, qkey;
	const void *private_data;
	size_t private_len;
};

enum cm_event_type {
	CM_EV_REQ,		/* to the handler of a listening id */
	CM_EV_REP, CM_EV_RTU, CM_EV_MRA,
	CM_EV_REJ,		/* the id is idle again, or in TIMEWAIT if it was established */
	CM_EV_UNREACHABLE,	/* no answer to REQ, REP or SIDR_REQ: the id is idle */
	CM_EV_DREQ,		/* cm_send_drep() is due */
	CM_EV_DISCONNECTED,	/* the answer to DREQ, or that there is none: TIMEWAIT */
	CM_EV_TIMEWAIT_EXIT,	/* idle; the QP may be used for another connection */
	CM_EV_SIDR_REQ,		/* to the handler of a listening id */
	CM_EV_SIDR_REP,
	CM_EV_GONE,		/* the device is: idle, and good for nothing but cm_id_free() */
};

/* Valid for the call only. */
struct cm_event {
	enum cm_event_type type;
	struct cm_id *id;		/* REQ, SIDR_REQ: a new one, which returning 0 takes over */
	const struct cm_req *req;	/* REQ: its path is this end's */
	const struct cm_rep *rep;	/* REP */
	const struct cm_sidr_req *sidr_req;
	const struct cm_sidr_rep *sidr_rep;
	uint16_t reason;		/* REJ */
	const uint8_t *ari;		/* REJ: CM_ARI bytes */
	const uint8_t *private_data;	/* all of the message's */
	size_t private_len;
};

/* Not 0 refuses a request: a REJ, or its like, goes out unless one has; else it means nothing. */
typedef int cm_handler(struct cm_id *id, const struct cm_event *event);

/* For a port. EINVAL: class 0x07 is somebody else's there; ENOMEM. */
int cm_id_new(struct ibfs_device *dev, unsigned int port, cm_handler *handler, void *owner,
	      struct cm_id **id);
void cm_id_free(struct cm_id *id);	/* NULL is allowed */
void cm_id_set(struct cm_id *id, cm_handler *handler, void *owner);
void *cm_id_owner(const struct cm_id *id);
enum cm_state cm_id_state(const struct cm_id *id);

int cm_listen(struct cm_id *id, uint64_t service_id);	/* EADDRINUSE */
int cm_send_req(struct cm_id *id, const struct cm_req *req);
int cm_send_mra(struct cm_id *id, uint8_t service_timeout, const void *data, size_t len);
int cm_send_rej(struct cm_id *id, enum cm_reason reason, const void *ari, size_t ari_len,
		const void *data, size_t len);
int cm_send_rep(struct cm_id *id, const struct cm_rep *rep);
int cm_send_rtu(struct cm_id *id, const void *data, size_t len);
int cm_send_dreq(struct cm_id *id, const void *data, size_t len);
int cm_send_drep(struct cm_id *id, const void *data, size_t len);
int cm_send_sidr_req(struct cm_id *id, const struct cm_sidr_req *req);
int cm_send_sidr_rep(struct cm_id *id, const struct cm_sidr_rep *rep);
/* The QP has got a message though no RTU came (IBV_EVENT_COMM_EST). */
int cm_established(struct cm_id *id);
/*
 * The attributes that a connected QP needs for the transition to attr->qp_state
 * (INIT, RTR or RTS), and their mask. min_rnr_timer and, on INIT, access flags
 * are 0: they are the caller's to set.
 */
int cm_qp_attr(struct cm_id *id, struct ibv_qp_attr *attr, int *mask);

#endif
