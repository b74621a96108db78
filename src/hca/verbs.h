/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs engine of one soft HCA, inside: its objects and how its parts call
 * each other. IBA chapters 9 to 11 and annex A14. Parts, from a client inwards:
 *  verbs.c	the engine's life, and the table of operations (ibfs/verbs.h)
 *  pd.c mr.c mw.c cq.c srq.c ah.c mcast.c qp.c	objects
 *  wq.c wq_ring.c ring.c	work queues: private, and rings shared with a process
 *  req.c	requester: takes work requests, sends packets
 *  resp.c	responder: takes request packets, answers
 *  comp.c	completer: takes responses, completes work requests
 *  net.c demux.c	headers on and off; to which QP a packet goes
 *  special.c raw.c	what is different for SMI, GSI and raw packet QPs
 *  keep.c	what is told to the keeper, for the case that the daemon dies
 * All runs in the event loop. A packet that one QP sends may come back as a
 * response before port_xmit() returns, so whoever sends writes its own state
 * down first and looks at it again afterwards.
 */
#ifndef IBFS_HCA_VERBS_H
#define IBFS_HCA_VERBS_H

#include <errno.h>
#include <ev.h>
#include <uthash.h>

#include "fabric/fabric.h"
#include "fabric/packet.h"
#include "fabric/wire.h"
#include "hca/hca.h"
#include "hca/opcode.h"
#include "hca/streak.h"
#include "ibfs/ibfs.h"
#include "ibfs/memory.h"
#include "ibfs/verbs.h"

#define VERBS_MAX_SGE		32
#define VERBS_MAX_INLINE	512
#define VERBS_MAX_PAGES		4096		/* of a fast registration */
#define VERBS_MAX_MSG		0x40000000U	/* bytes */
#define VERBS_TURN_BYTES	(256 * 1024)	/* what one QP sends in a turn */
#define VERBS_TURN_WRS		64
#define VERBS_WINDOW		(4 * 1024 * 1024)	/* bytes that may be unacknowledged */
#define PSN_MASK		0xffffffU
#define QPN_MASK		0xffffffU

/* Objects by number; a number isn't used again soon. */
struct table {
	void **slot;
	uint32_t size, used, next;
	uint32_t first, max;		/* numbers first..first + max - 1 */
};
int table_add(struct table *table, void *obj, uint32_t *num);	/* -ENOMEM: full */
void table_del(struct table *table, uint32_t num);
static inline void *table_get(const struct table *table, uint32_t num)
{
	return num - table->first < table->size ? table->slot[num - table->first] : NULL;
}

/*
 * Objects by a number of 24 bits that nobody can guess: not 0, 1 (QP0 and QP1) or
 * 0xffffff (multicast), nor one of the last IDS_GONE that were given back.
 */
#define ID_MASK		0xffffffU
#define IDS_GONE	1024
struct id_slot {
	uint32_t id;
	void *obj;			/* NULL: free */
};
struct ids {
	struct id_slot *slot;		/* by the number's low bits */
	uint32_t size, used, max;	/* size: a power of 2, or 0 */
	uint32_t gone[IDS_GONE], num_gone;
};
int ids_add(struct ids *ids, void *obj, uint32_t *id);	/* -ENOMEM: or max of them are there */
void ids_del(struct ids *ids, uint32_t id);
/* The next object from *at on, which begins with 0 and moves on; NULL: no more. */
void *ids_next(const struct ids *ids, uint32_t *at);
static inline void *ids_get(const struct ids *ids, uint32_t id)
{
	const struct id_slot *slot;

	if (!ids->size)
		return NULL;
	slot = &ids->slot[id & (ids->size - 1)];
	return slot->id == id ? slot->obj : NULL;
}

struct verbs {
	struct hca *hca;
	struct node *node;
	struct fabric *fabric;
	struct ibfs *ibfs;
	struct table pds, xrcds, cqs, srqs, ahs;
	struct ids keys, qps;
	unsigned int num_mrs, num_mws;
	struct mcast_group *groups;
	unsigned int num_groups, num_attached;
	struct ibfs_qp *(*special)[2];	/* QP0 and QP1 by port, where clients have them */
	struct ibfs_qp *raws;		/* utlist */
};
extern const struct ibv_device_attr verbs_limits;

static inline struct port *verbs_port(const struct verbs *verbs, unsigned int num)
{
	return num >= 1 && num <= verbs->hca->dev.num_ports ? &verbs->node->ports[num] : NULL;
}

/* A port of the device, or none: a QP in RESET has none. */
static inline void stat_add(const struct verbs *verbs, unsigned int port, enum hca_stat stat,
			    unsigned int n)
{
	if (port <= verbs->hca->dev.num_ports)
		verbs->hca->ports[port].stats[stat] += n;
}

struct ibfs_pd {
	struct verbs *verbs;
	uint32_t handle;
	unsigned int refs;
};

struct ibfs_xrcd {
	struct verbs *verbs;
	uint32_t handle;
	unsigned int refs;
};

/* L_Keys and R_Keys are one space: 24 bits of verbs->keys, then 8 that a client may choose. */
struct key {
	enum { KEY_MR, KEY_MW } kind;
	uint32_t value;
};

struct ibfs_mr {
	struct key key;			/* first */
	struct ibfs_pd *pd;
	struct memory *mem;
	uint64_t mem_off, mem_len;	/* the part of mem that it may reach */
	uint64_t iova, length;
	unsigned int access;
	bool valid;
	unsigned int windows;		/* bound to it */
	uint32_t max_pages, num_pages;	/* of a fast registration; 0: contiguous */
	uint8_t page_shift;
	uint64_t *pages;		/* offsets in mem */
};

struct ibfs_mw {
	struct key key;			/* first */
	struct ibfs_pd *pd;
	enum ibv_mw_type type;
	struct ibfs_mr *mr;		/* NULL: not bound */
	struct ibfs_qp *qp;		/* type 2, while bound */
	struct ibfs_mw *prev, *next;	/* of qp->windows */
	uint64_t addr, length;
	unsigned int access;
};

/* A stretch of memory that an address range in an MR turned into. */
struct mem_seg {
	struct memory *mem;
	uint64_t off;
	uint32_t len;
};
#define MEM_SEGS 64			/* as many as one packet may touch */

/* mr.c, mw.c: keys. Access is IBV_ACCESS_*, 0 for local reading. */
struct ibfs_mr *mr_by_key(struct verbs *verbs, uint32_t key);
struct ibfs_mw *mw_by_key(struct verbs *verbs, uint32_t key);
int mr_check_range(const struct ibfs_mr *mr, uint64_t addr, uint64_t len);	/* -EFAULT */
/*
 * What a local or remote key gives: the MR, through a window or not; NULL when
 * key, PD, QP, bounds or access forbid it.
 */
struct ibfs_mr *lkey_check(struct verbs *verbs, const struct ibfs_pd *pd, uint32_t lkey,
			   uint64_t addr, uint64_t len, unsigned int access);
struct ibfs_mr *rkey_check(const struct ibfs_qp *qp, const struct ibfs_pd *pd, uint32_t rkey,
			   uint64_t addr, uint64_t len, unsigned int access, uint64_t *mr_addr);
/* Append the segments of addr..addr+len; how many there are then, or -E2BIG. */
int mr_segments(const struct ibfs_mr *mr, uint64_t addr, uint32_t len, struct mem_seg *segs, int num);
/* Part of a scatter/gather list, offset and length in bytes; -EFAULT, -E2BIG. */
int sge_segments(struct verbs *verbs, const struct ibfs_pd *pd, const struct ibv_sge *sges,
		 unsigned int num_sge, uint32_t off, uint32_t len, unsigned int access,
		 struct mem_seg *segs);
int mr_invalidate(struct ibfs_qp *qp, const struct ibfs_pd *pd, uint32_t key, bool remote);
int mr_fast_reg(struct ibfs_qp *qp, const struct ibfs_wr *wr, const uint64_t *pages);
int mw_bind(struct ibfs_qp *qp, const struct ibfs_wr *wr);
void mw_unbind(struct ibfs_mw *mw);
int key_alloc(struct verbs *verbs, struct key *key);

/*
 * guard.c: mapped pages that may go away while they are used are replaced, page
 * bytes at a time, by zeroes. NULL: no memory, or no handler.
 */
struct guard;
struct guard *guard_new(void *base, size_t size, size_t page);
void guard_free(struct guard *guard);	/* NULL is allowed */

/*
 * memory.c: move bytes between segments and a buffer. 0, -EFAULT, or 1 when
 * remote memory takes part: then xfer->done() comes later.
 */
struct xfer {
	struct mem_io io;
	struct mem_seg segs[MEM_SEGS];
	int num_segs, cur;
	uint8_t *buf;			/* xfer_free() frees it */
	size_t at;
	bool write;			/* buf to memory */
	struct mem_atomic atomic;
	void (*done)(struct xfer *xfer, int err);
	void *priv;
};
bool segs_remote(const struct mem_seg *segs, int num);
void segs_read(const struct mem_seg *segs, int num, void *buf);		/* none remote */
void segs_write(const struct mem_seg *segs, int num, const struct packet *pkt, uint32_t off, uint32_t len);
struct xfer *xfer_new(const struct mem_seg *segs, int num, size_t buf_size);
int xfer_start(struct xfer *xfer);
void xfer_cancel(struct xfer *xfer);	/* and free; NULL is allowed */
void xfer_free(struct xfer *xfer);
/* What a request completes with whose memory gave err: -ENOMEM is the engine's own want. */
static inline enum ibv_wc_status memory_status(int err)
{
	return err == -ENOMEM ? IBV_WC_GENERAL_ERR : IBV_WC_LOC_PROT_ERR;
}

/* bill.c: what an object's client pays for. All zero, but for client: nothing yet. */
struct bill {
	struct verbs_client *client;	/* NULL: nobody pays */
	struct verbs_cost cost;
};
int bill_take(struct bill *bill, struct verbs_cost cost);	/* before it is taken; the client's error */
void bill_give(struct bill *bill, struct verbs_cost cost);
void bill_settle(struct bill *bill);	/* all of it; what else is taken and given nobody pays for */

/* ring.c: a queue of fixed slots, the layout of struct rxe_queue_buf. */
struct ring {
	struct rxe_queue_buf *buf;	/* NULL: there is none */
	size_t size;
	int fd;				/* -1: private memory */
	uint64_t off;			/* in fd */
	struct ring_space *space;	/* whose fd is; NULL: the ring's own */
	struct bill *bill;
	struct verbs_cost cost;		/* on it */
	struct keep_file *kept;		/* of its own; NULL: not kept */
	uint32_t mask;
	uint32_t elem_size;		/* a power of two */
	uint32_t index;			/* our own side's, never read back from buf */
};
/* Its client's memory, if that has some for rings, or its own. -ENOMEM, or what the client says. */
int ring_init(struct ring *ring, uint32_t entries, uint32_t elem_size, bool shared,
	      struct bill *bill);
/* Make private memory shared, contents kept. */
int ring_share(struct ring *ring);
void ring_free(struct ring *ring);
uint32_t ring_used(const struct ring *ring, bool producer);	/* slots filled, by the other side's index */
void *ring_slot(const struct ring *ring, uint32_t index);
/* A slot's bytes, size at most, read once: how many. To be looked at in the copy only. */
size_t ring_copy(const struct ring *ring, uint32_t index, void *copy, size_t size);
void ring_publish(struct ring *ring, bool producer);		/* our index, release */
/*
 * Ours, in a word that rxe leaves unused (pad_1[0]): 1 when a producer has to
 * ring after producing, 0 while the engine looks by itself.
 */
void ring_want_doorbell(struct ring *ring, bool want);

struct ibfs_cq {
	struct verbs *verbs;
	uint32_t handle;
	unsigned int refs;
	struct verbs_client *client;
	struct bill bill;
	struct ring ring;
	int cqe;
	bool error;
	enum { CQ_UNARMED, CQ_SOLICITED, CQ_NEXT } armed;
	uint8_t arm_count;		/* ours of client->arm's, never read back */
	bool missed, missed_solicited;	/* such a completion came since the last event, without one */
	uint32_t solicited_at;		/* ring.index after the last of the latter */
	int ncomp;			/* tell when it holds as many; 0: off */
	uint16_t moder_count, moder_period;
	uint32_t moder_pending;		/* completions since the last event */
	ev_timer moder_timer;
	struct keep_slot *keep;		/* hca/keep.h; NULL: not kept */
};
/* A request ends, whoever is told; what was dropped and has no cqe tells nobody. */
static inline void wr_dropped(struct ibfs_cqe *cqe)
{
	const struct ibfs_wc wc = { .status = IBV_WC_WR_FLUSH_ERR };

	if (cqe)
		cqe->done(cqe, &wc);
}
/* -EIO: the CQ is, or went, into error by overrun and takes nothing. */
int cq_push(struct ibfs_cq *cq, const struct ibfs_wc *wc, bool solicited);

/* A receive request as it is taken from its queue. */
struct rwqe {
	uint64_t wr_id;
	struct ibfs_cqe *wr_cqe;
	unsigned int num_sge;
	uint32_t length;
	bool from_ring;
	struct ibv_sge *sges;		/* room for the queue's max_sge */
};

/* A queue of receive requests, a QP's or an SRQ's. */
struct rq {
	struct {
		uint64_t wr_id;
		struct ibfs_cqe *wr_cqe;
		uint32_t num_sge;
	} *wqe;
	struct ibv_sge *sges;		/* max_sge for each */
	uint32_t size, max_sge;		/* size: a power of two */
	uint32_t max_wr;
	uint32_t head, tail;
	struct ring ring;		/* shared with a process, taken from after the private part */
	struct bill *bill;
	struct verbs_cost cost;		/* of the private part */
};
int rq_init(struct rq *rq, uint32_t max_wr, uint32_t max_sge, struct bill *bill);
void rq_free(struct rq *rq);
int rq_post(struct rq *rq, const struct ibfs_recv_wr *wr);
void rq_drop(struct rq *rq);			/* all that was posted */
uint32_t rq_count(const struct rq *rq);
/* -ENOENT: empty; -EINVAL: a bad one was in the ring. Then, but for -ENOENT: */
int rq_take(struct rq *rq, struct rwqe *wqe);
void rq_taken(struct rq *rq, const struct rwqe *wqe);	/* its slot is the process's again */
int rq_resize(struct rq *rq, uint32_t max_wr);
int rq_share(struct rq *rq, struct ibfs_ring *info);

struct ibfs_srq {
	struct verbs *verbs;
	uint32_t num;
	struct ibfs_pd *pd;
	struct verbs_client *client;
	struct bill bill;
	bool xrc, error;
	struct ibfs_xrcd *xrcd;
	struct ibfs_cq *cq;
	unsigned int refs;
	struct rq rq;
	uint32_t limit;
	struct keep_slot *keep;		/* hca/keep.h; NULL: not kept */
};
int srq_take(struct ibfs_srq *srq, struct rwqe *wqe);
/* As qp_lost(), where a QP of the SRQ's would complete them; without one nobody waits. */
void srq_lost(struct ibfs_srq *srq);

struct ibfs_ah {
	struct ibfs_pd *pd;
	uint32_t handle;
	struct ibv_ah_attr attr;
};
int ah_check(const struct verbs *verbs, const struct ibv_ah_attr *attr);
/* Which of the port's GIDs this is, or -EINVAL. */
int ah_gid_index(const struct port *port, const uint8_t gid[16]);

struct mcast_member {
	struct mcast_member *prev, *next;
	struct ibfs_qp *qp;
	struct port *port;
};
struct mcast_group {
	union ibv_gid mgid;
	struct mcast_member *members;
	unsigned int num;
	UT_hash_handle hh;
};
struct mcast_group *mcast_find(struct verbs *verbs, const uint8_t mgid[16]);

/* A send request in its queue. */
struct swqe {
	struct ibfs_wr wr;		/* sg_list and inline_data point into the queue's */
	uint32_t length;		/* bytes of message */
	uint32_t first_psn, last_psn;	/* once started */
	uint32_t ssn;
	bool started, done, rd_counted, from_ring;
	uint8_t status;			/* why it failed before its turn came, or 0 */
	uint32_t extra_len;
	void *extra;			/* page list or LSO header */
	struct ibv_ah_attr *av;		/* UD: points into the queue's */
};

struct requester {
	struct swqe *wqe;
	struct ibv_sge *sges;
	uint8_t *inl;
	struct ibv_ah_attr *avs;	/* UD types only */
	struct bill *bill;
	struct verbs_cost cost;		/* of the above */
	uint32_t size;			/* slots, a power of two */
	uint32_t head, next, tail;	/* oldest outstanding, next to send, end */
	uint32_t off;			/* bytes of wqe[next] that were sent */
	uint32_t psn;			/* of the next new packet */
	uint32_t una;			/* oldest PSN that has no response */
	uint32_t max_psn;		/* behind the last that was ever sent */
	uint32_t ssn, lsn;		/* of the last message sent; that credits allow */
	bool credits;			/* the responder gives them */
	unsigned int rd_out;		/* reads and atomics outstanding */
	unsigned int no_ackreq;		/* messages since one asked for an ACK */
	uint8_t retries, rnr_retries;	/* left */
	bool rnr_wait, implied_nak, stalled, drained_told;
	ev_tstamp progress;		/* when the last response came */
	ev_timer timer, rnr_timer;
	struct ring ring;		/* shared with a process: slots fetched go back when retired */
	uint32_t ring_fetched;
	struct xfer *xfer;		/* gathers from, or works on, remote memory */
	bool xfer_ready;
	uint32_t xfer_wqe, xfer_off, xfer_len;
};

/* A read or atomic that the responder answers, or may have to answer again. */
struct resource {
	bool active, atomic;
	bool again;			/* active because the request came once more */
	uint32_t first_psn, last_psn;
	uint32_t rkey;
	uint64_t va;
	uint32_t len, start, off;	/* of a read: sent from start on, up to off so far */
	uint64_t orig;			/* of an atomic */
	uint8_t answer;			/* of an atomic: its OP_* */
	const struct ibfs_pd *pd;	/* XRC: of the request's SRQ; else the QP's */
};

struct responder {
	uint32_t epsn, msn;
	bool nak_sent;
	enum { MSG_NONE, MSG_SEND, MSG_WRITE, MSG_SKIP } msg;	/* in progress */
	bool has_wqe;
	struct rwqe wqe;
	uint32_t wqe_room;		/* SGEs that wqe has room for */
	struct ibfs_srq *srq;		/* wqe came from it, or NULL */
	uint32_t off;			/* bytes received of the message */
	uint64_t va;
	uint32_t rkey, resid, length;	/* of a write */
	struct resource *res;		/* ring of num_res: head oldest */
	unsigned int num_res, res_head, res_count, num_active;
	unsigned int res_first;		/* none of the res_first oldest is active */
	uint64_t atomic_orig;
	bool ack_pending;		/* after the active reads */
	uint32_t ack_psn;
	uint8_t ack_syndrome;
	struct xfer *xfer;		/* gathers a response from remote memory */
	bool xfer_ready, xfer_failed;
	uint32_t xfer_psn, xfer_len;
};

struct packet_wait {
	struct packet_wait *prev, *next;
	struct packet *pkt;
	struct port *port;
};

/*
 * A received packet whose bytes go to, or which works on, remote memory: it
 * waits for that, and what arrives meanwhile waits behind it.
 */
struct rx;
struct hold {
	struct xfer *xfer;		/* NULL: nothing is held */
	struct xfer *finished;		/* while then() runs */
	struct packet *pkt;
	struct port *port;
	uint32_t psn;			/* the packet's may be less: part of it was old */
	void (*then)(struct ibfs_qp *qp, struct rx *rx, int err);
	struct packet_wait *waiting;	/* utlist */
	unsigned int num_waiting;
};

/* Another opener of an XRC_TGT QP. */
struct qp_opener {
	struct qp_opener *prev, *next;
	struct verbs_client *client;
};

struct ibfs_qp {
	struct verbs *verbs;
	uint32_t qpn;
	unsigned int type;		/* IBV_QPT_*, IBFS_QPT_* */
	uint8_t transport;		/* BTH class: OP_RC... */
	enum ibv_qp_state state;
	bool sq_sig_all;
	unsigned int create_flags;
	struct ibfs_pd *pd;
	struct ibfs_cq *send_cq, *recv_cq;
	struct ibfs_srq *srq;
	struct ibfs_xrcd *xrcd;
	struct verbs_client *client;
	struct bill bill;
	struct qp_opener *openers;
	struct ibv_qp_attr attr;
	uint32_t mtu;			/* bytes */
	struct requester req;
	struct responder resp;
	struct hold hold;
	struct rq rq;
	struct ibfs_mw *windows;	/* type 2 bound to it */
	unsigned int mcast;		/* groups it is attached to */
	struct task task;
	bool comm_est, last_wqe_told;
	bool lost;			/* its device goes */
	bool polled, busy;		/* poll.c's, as are these: */
	unsigned int poll_slot;
	uint32_t polled_index;
	uint64_t polled_ns;		/* when a request was found, or it was rung */
	struct streak streak;
	struct keep_slot *keep;		/* hca/keep.h; NULL: not kept */
	struct ibfs_qp *raw_prev, *raw_next;	/* of verbs->raws */
};

static inline void qp_count(const struct ibfs_qp *qp, enum hca_stat stat)
{
	stat_add(qp->verbs, qp->attr.port_num, stat, 1);
}

static inline bool qp_connected(const struct ibfs_qp *qp)
{
	return qp->transport != OP_UD;
}
static inline bool qp_special(const struct ibfs_qp *qp)
{
	return qp->type == IBFS_QPT_SMI || qp->type == IBFS_QPT_GSI;
}
static inline bool qp_reliable(const struct ibfs_qp *qp)
{
	return qp->transport == OP_RC || qp->transport == OP_XRC;
}

/* qp.c, qp_table.c: see also qp.h */
bool qp_transition_ok(unsigned int type, enum ibv_qp_state from, enum ibv_qp_state to, int mask);
void qp_kick(struct ibfs_qp *qp);
/* Its state lets send requests be posted. 10.3.1 */
bool qp_takes(const struct ibfs_qp *qp);
void qp_event(struct ibfs_qp *qp, enum ibv_event_type event);
/* To the error state; what is queued is flushed by the QP's task, in order. */
void qp_error(struct ibfs_qp *qp);
void qp_sq_error(struct ibfs_qp *qp);	/* SQE on unreliable types, else qp_error() */
/* Make the alternate path the current one, events told. False: there is none armed. */
bool qp_migrate(struct ibfs_qp *qp);
/* What is queued completes as IBV_WC_FATAL_ERR, at once: the device goes. */
void qp_lost(struct ibfs_qp *qp);

/* wq.c: post to the private part of the send queue; -EINVAL, -ENOMEM. */
int sq_init(struct requester *req, const struct ibv_qp_cap *cap, bool ud, struct bill *bill);
void sq_free(struct requester *req);
void sq_drop_extra(struct requester *req, struct swqe *wqe);
int sq_check(const struct ibfs_qp *qp, const struct ibfs_wr *wr);
int sq_post(struct ibfs_qp *qp, const struct ibfs_wr *wr, bool from_ring);
static inline struct swqe *sq_wqe(struct requester *req, uint32_t index)
{
	return &req->wqe[index & (req->size - 1)];
}
/*
 * wq_ring.c: parse what the process produced, while the queue has room, max at most;
 * how many. It may go on producing: who wants an end counts what waits beforehand.
 */
uint32_t sq_fetch(struct ibfs_qp *qp, uint32_t max);
uint32_t sq_waiting(const struct requester *req);
struct rxe_send_wqe;
#define WQE_MAX_BYTES (sizeof(struct rxe_send_wqe) + VERBS_MAX_SGE * sizeof(struct rxe_sge))
/*
 * One of rdma/rdma_user_rxe.h, room bytes of data behind it, which wr points
 * into: all but a datagram's address handle, whose number is the caller's to
 * look up. -EINVAL: it can't be; wr_id and opcode are there also then.
 */
int wr_from_wqe(struct ibfs_wr *wr, const struct rxe_send_wqe *raw, size_t room, bool ud);
/* The ring has no room for masks, LSO headers and page lists: those opcodes come by text. */
bool wqe_can(unsigned int opcode);
int sq_share(struct ibfs_qp *qp, struct ibfs_ring *info);

/* req.c */
void req_init(struct ibfs_qp *qp);
void req_run(struct ibfs_qp *qp);		/* one turn */
void req_reset(struct ibfs_qp *qp);
void req_flush(struct ibfs_qp *qp, enum ibv_wc_status status);
void req_rewind(struct ibfs_qp *qp, uint32_t psn);
/* One retry: false when none is left; then the oldest request failed with status. */
bool req_retry(struct ibfs_qp *qp, uint32_t psn, enum ibv_wc_status status);
/* Complete the oldest request, and take it off. */
void req_retire(struct ibfs_qp *qp, enum ibv_wc_status status, uint32_t byte_len);
/* The oldest request failed: complete it so, and put the QP into error. */
void req_fail(struct ibfs_qp *qp, enum ibv_wc_status status);
/* After progress: completes local operations, tells of draining, goes on. */
void req_advance(struct ibfs_qp *qp);

/* A packet as it was parsed. */
struct rx {
	struct port *port;
	struct packet *pkt;
	const struct opcode *op;
	uint8_t opcode;
	const struct lrh *lrh;
	const struct grh *grh;		/* NULL: none */
	const struct bth *bth;
	const uint8_t *ext;		/* extended headers */
	uint32_t psn, segs;
	uint32_t off, len;		/* payload */
	uint32_t dqpn, sqpn, qkey;	/* the last two: UD */
	bool multicast;
	bool raw;			/* LNH 0 or 1: op and bth stand for nothing on the wire */
	bool csum_ok;
};

/* net.c */
struct tx {				/* what a packet is to carry */
	uint8_t opcode;
	uint32_t psn;
	bool ack_req, solicited;
	struct reth reth;
	struct atomiceth atomic;
	uint32_t aeth;			/* host order: syndrome and MSN */
	uint64_t atomic_orig;
	__be32 imm;
	uint32_t ieth, xrc_srq;
	uint32_t dqpn, qkey, sqpn;	/* dqpn: UD; else the QP's */
	uint16_t pkey;
	const struct ibv_ah_attr *av;	/* UD; NULL: the QP's path */
	uint32_t gso_size;
	uint32_t segs;
};
/* Is it in a state in which packets reach it? */
bool qp_receives(const struct ibfs_qp *qp);
/* A packet for one QP that was parsed. */
void qp_recv(struct ibfs_qp *qp, struct rx *rx);
/* Headers in front of the payload that pkt has, and away: 0, or why it couldn't leave. */
int net_xmit(struct ibfs_qp *qp, struct packet *pkt, const struct tx *tx);
/* A request or response header, where the opcode has it; NULL when not. */
const void *rx_header(const struct rx *rx, unsigned int header);
/* Take trim segments off the front of a gso request whose first part is old. */
void rx_trim(struct rx *rx, uint32_t segs);
bool rx_parse(struct rx *rx, struct port *port, struct packet *pkt);
void net_recv(struct hca *hca, struct port *port, struct packet *pkt);
static inline int psn_cmp(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8);
}

/* resp.c, resp_ud.c, comp.c */
void resp_recv(struct ibfs_qp *qp, struct rx *rx);
void resp_uc(struct ibfs_qp *qp, struct rx *rx);
void resp_ud(struct ibfs_qp *qp, struct rx *rx);
bool resp_run(struct ibfs_qp *qp);		/* send what is due; true: more waits */
void resp_start(struct ibfs_qp *qp);		/* INIT to RTR */
void resp_reset(struct ibfs_qp *qp);
void resp_flush(struct ibfs_qp *qp, enum ibv_wc_status status);
int resp_resources(struct ibfs_qp *qp, unsigned int num);
void comp_recv(struct ibfs_qp *qp, struct rx *rx);

/* recv.c: what the responders of all types share. */
/* Take a receive request for a message: 0, -ENOENT (none), -EINVAL (a bad one was there). */
int recv_take(struct ibfs_qp *qp, struct ibfs_srq *srq);
/* Complete it, and forget it. */
void recv_complete(struct ibfs_qp *qp, const struct rx *rx, enum ibv_wc_status status);
/* An XRC SRQ goes: let go of what the QP has from it. */
void recv_srq_gone(struct ibfs_qp *qp, const struct ibfs_srq *srq);
/* Payload into the receive request at r->off: 0, -EFAULT; 1: held, then() follows. */
int recv_scatter(struct ibfs_qp *qp, struct rx *rx, void (*then)(struct ibfs_qp *, struct rx *, int));
/* Payload into segments, in the same way. */
int rx_write(struct ibfs_qp *qp, struct rx *rx, const struct mem_seg *segs, int num,
	     void (*then)(struct ibfs_qp *, struct rx *, int));
int rx_scatter(struct ibfs_qp *qp, struct rx *rx, const struct ibfs_pd *pd,
	       const struct ibv_sge *sges, unsigned int num_sge, uint32_t off,
	       void (*then)(struct ibfs_qp *, struct rx *, int));
/* Is the payload as long as the packet's place in its message says? */
bool rx_length_ok(const struct ibfs_qp *qp, const struct rx *rx);

/* special.c: SMI and GSI QPs. -EBUSY: the port's is somebody's. */
int special_claim(struct ibfs_qp *qp, unsigned int port);
void special_release(struct ibfs_qp *qp);
bool special_mad(struct hca *hca, struct port *port, unsigned int qpn, struct packet *pkt);
int special_xmit(struct port *port, struct packet *pkt);

/* raw.c */
void raw_add(struct ibfs_qp *qp);
void raw_del(struct ibfs_qp *qp);
void raw_recv(struct verbs *verbs, struct rx *rx);
bool raw_parse(struct rx *rx);			/* the part of rx_parse() for LNH 0 and 1 */

/* hold.c */
int qp_hold(struct ibfs_qp *qp, const struct rx *rx, struct xfer *xfer,
	    void (*then)(struct ibfs_qp *, struct rx *, int));
bool qp_wait(struct ibfs_qp *qp, const struct rx *rx);	/* true: the packet waits its turn */
void qp_unhold(struct ibfs_qp *qp);

extern const struct verbs_ops soft_verbs_ops;
extern const struct hca_engine verbs_engine;
/* Give an HCA its verbs; -ENOMEM. */
int verbs_start(struct hca *hca);
static inline struct verbs *verbs_of(struct ibfs_device *dev)
{
	return hca_of(dev)->engine_priv;
}

/* Operations of the table, one group a file. */
int pd_alloc(struct ibfs_device *dev, struct ibfs_pd **pd);
int pd_dealloc(struct ibfs_pd *pd);
int xrcd_alloc(struct ibfs_device *dev, struct ibfs_xrcd **xrcd);
int xrcd_dealloc(struct ibfs_xrcd *xrcd);
int mr_reg(struct ibfs_pd *pd, const struct ibfs_mr_init *init, struct ibfs_mr **mr);
int mr_rereg(struct ibfs_mr *mr, int flags, struct ibfs_pd *pd, const struct ibfs_mr_init *init);
void mr_query(struct ibfs_mr *mr, struct ibfs_mr_attr *attr);
int mr_dereg(struct ibfs_mr *mr);
int mw_alloc(struct ibfs_pd *pd, enum ibv_mw_type type, struct ibfs_mw **mw);
void mw_query(struct ibfs_mw *mw, struct ibfs_mw_attr *attr);
int mw_dealloc(struct ibfs_mw *mw);
/* With the engine's state of no HCA but its loop and table of CQs, for other backends. */
int cq_new(struct verbs *verbs, int cqe, struct verbs_client *client, struct ibfs_cq **cq);
int cq_create(struct ibfs_device *dev, int cqe, struct verbs_client *client, struct ibfs_cq **cq);
int cq_resize(struct ibfs_cq *cq, int cqe);
int cq_modify(struct ibfs_cq *cq, uint16_t count, uint16_t period_us);
void cq_query(struct ibfs_cq *cq, struct ibfs_cq_attr *attr);
bool cq_busy(struct ibfs_cq *cq);
int cq_destroy(struct ibfs_cq *cq);
int cq_poll(struct ibfs_cq *cq, int num, struct ibfs_wc *wc);
int cq_peek(struct ibfs_cq *cq, int num);
int cq_req_notify(struct ibfs_cq *cq, bool solicited_only, bool report_missed);
int cq_req_ncomp(struct ibfs_cq *cq, int num);
int cq_ring(struct ibfs_cq *cq, struct ibfs_ring *ring);
int srq_create(struct ibfs_pd *pd, const struct ibfs_srq_init *init, struct verbs_client *client,
	       struct ibfs_srq **srq);
int srq_modify(struct ibfs_srq *srq, const struct ibv_srq_attr *attr, int mask);
void srq_query(struct ibfs_srq *srq, struct ibv_srq_attr *attr, uint32_t *num);
int srq_destroy(struct ibfs_srq *srq);
int srq_post(struct ibfs_srq *srq, const struct ibfs_recv_wr *wr);
int srq_ring(struct ibfs_srq *srq, struct ibfs_ring *ring);
int ah_create(struct ibfs_pd *pd, const struct ibv_ah_attr *attr, struct ibfs_ah **ah);
int ah_modify(struct ibfs_ah *ah, const struct ibv_ah_attr *attr);
void ah_query(struct ibfs_ah *ah, struct ibv_ah_attr *attr, uint32_t *handle);
void ah_destroy(struct ibfs_ah *ah);
int ah_from_wc(struct ibfs_device *dev, unsigned int port, const struct ibfs_wc *wc,
	       const struct ibv_grh *grh, struct ibv_ah_attr *attr);
int qp_create(struct ibfs_device *dev, const struct ibfs_qp_init *init, struct verbs_client *client,
	      struct ibfs_qp **qp);
int qp_open(struct ibfs_xrcd *xrcd, uint32_t qp_num, struct verbs_client *client, struct ibfs_qp **qp);
int qp_modify(struct ibfs_qp *qp, const struct ibv_qp_attr *attr, int mask);
void qp_query(struct ibfs_qp *qp, struct ibv_qp_attr *attr, struct ibfs_qp_init *init, uint32_t *qpn);
int qp_destroy(struct ibfs_qp *qp, struct verbs_client *client);
int qp_post_send(struct ibfs_qp *qp, const struct ibfs_wr *wr);
int qp_post_recv(struct ibfs_qp *qp, const struct ibfs_recv_wr *wr);
int qp_ring(struct ibfs_qp *qp, bool send, struct ibfs_ring *ring);
int qp_doorbell(struct ibfs_qp *qp);
int mcast_attach(struct ibfs_qp *qp, const union ibv_gid *gid, uint16_t lid);
int mcast_detach(struct ibfs_qp *qp, const union ibv_gid *gid, uint16_t lid);
void mcast_detach_all(struct ibfs_qp *qp);

#endif
