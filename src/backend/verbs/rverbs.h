/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs of a device of the system: libibverbs' objects behind the opaque
 * ones of ibfs/verbs.h. What these files share:
 *  rverbs.c	the table, domains, what is left when the device goes
 *  rmem.c	memory regions and windows
 *  rcq.c	completion queues: those of the device are emptied into soft ones
 *  rsrq.c	shared receive queues, address handles, multicast
 *  rqp.c	queue pairs
 *  rpost.c	work requests
 *  rcqe.c	those of which no queue tells
 *  rring.c	rings that a process maps, from which they are taken
 */
#ifndef IBFS_BACKEND_RVERBS_H
#define IBFS_BACKEND_RVERBS_H

#include "backend/verbs/rdev.h"
#include "hca/verbs.h"
#include "ibfs/memory.h"
#include "ibfs/verbs.h"

enum { RPOST_SGE = 32, RPOST_INLINE = 1024, RPOST_HEADER = 256 };

enum robj_kind { ROBJ_QP, ROBJ_SRQ, ROBJ_CQ, ROBJ_AH, ROBJ_MW, ROBJ_MR, ROBJ_XRCD, ROBJ_PD,
		 ROBJ_KINDS };

/* First in every object; its device has a list a kind, in the order to destroy in. */
struct robj {
	struct robj *prev, *next;
	struct rdev *rdev;
	enum robj_kind kind;
	void *ibv;			/* libibverbs' */
};

struct rpd {
	struct robj obj;
};

struct rmr {
	struct robj obj;
	struct memory *mem;
	struct rpd *pd;
	uint64_t iova, length;
	unsigned int access;
};

struct rmw {
	struct robj obj;
	struct ibfs_mw_attr attr;
};

struct rcq {
	struct robj obj;
	struct ibfs_cq *soft;		/* what clients see */
};

struct rsrq {
	struct robj obj;
	struct verbs_client *client;
	struct bill bill;		/* of the ring */
	uint32_t num;
	uint32_t max_wr, max_sge;
	struct rq rq;			/* the ring that is mapped, with what else waits */
	bool waits;			/* there is something in it that the driver had no room for */
};

struct rah {
	struct robj obj;
	struct rpd *pd;
	struct ibv_ah_attr attr;
	uint32_t num;			/* drivers have none, or all the same */
};

struct rcqe;
struct rqp {
	struct robj obj;
	struct verbs_client *client;
	struct bill bill;		/* of its rings */
	struct rcqe *cqes;		/* rcqe.c: utlist */
	struct ibfs_qp_init init;
	uint32_t num;
	uint8_t port;			/* since INIT */
	struct ring sq;			/* as struct rsrq has them */
	struct rq rq;
	bool waits;
};

/* A call about an object: others embed it first. */
struct rcall {
	struct ibv_context *ctx;
	void *ibv;			/* what it is about, or what was made */
	int err;			/* negative errno */
	void (*undo)(void *arg);	/* rdev_call_long()'s, and how much longer */
	unsigned int more_ms;
};
enum { MS_SHIFT = 20 };			/* a MiB a ms: memory is pinned faster */
/* Run fn with a struct of which a struct rcall is the first member: its err, or the device's. */
int rcall(struct rdev *rdev, void (*fn)(void *arg), void *call, size_t size, const char *what);
/*
 * An object of size bytes, zeroed but for its struct robj, which comes first, of
 * what rcall() makes: in *out and in the device's list. rcall()'s errors, -ENOMEM.
 */
int robj_make(struct rdev *rdev, enum robj_kind kind, size_t size, void (*fn)(void *arg),
	      struct rcall *call, size_t call_size, const char *what, struct robj **out);
/* Destroy what libibverbs has; -EBUSY: others depend on it. The object is freed. */
int robj_destroy(struct robj *obj);
/* Without the device: what this side has of it. */
void robj_free(struct robj *obj);
struct robj *robj_find(struct rdev *rdev, enum robj_kind kind, const void *ibv);
/* Is it, where there is one, of that device and kind? For backend_own(). */
static inline bool robj_is(const struct rdev *rdev, enum robj_kind kind, const void *obj)
{
	const struct robj *robj = obj;

	return !robj || (robj->rdev == rdev && robj->kind == kind);
}

extern const struct verbs_ops rdev_verbs_ops;
int rverbs_start(struct rdev *rdev, struct ibv_comp_channel *channel);	/* -ENOMEM */
void rverbs_gone(struct rdev *rdev);	/* after the device left the tree */
void rverbs_free(struct rdev *rdev);

/* rmem.c */
int rmr_reg(struct ibfs_pd *pd, const struct ibfs_mr_init *init, struct ibfs_mr **mr);
int rmr_rereg(struct ibfs_mr *mr, int flags, struct ibfs_pd *pd, const struct ibfs_mr_init *init);
void rmr_query(struct ibfs_mr *mr, struct ibfs_mr_attr *attr);
int rmr_dereg(struct ibfs_mr *mr);
int rmw_alloc(struct ibfs_pd *pd, enum ibv_mw_type type, struct ibfs_mw **mw);
void rmw_query(struct ibfs_mw *mw, struct ibfs_mw_attr *attr);
int rmw_dealloc(struct ibfs_mw *mw);
struct rmr *rmr_by_lkey(struct rdev *rdev, uint32_t lkey);
struct rmw *rmw_by_rkey(struct rdev *rdev, uint32_t rkey);

/* rcq.c */
int rcq_start(struct rdev *rdev, struct ibv_comp_channel *channel);
void rcq_stop(struct rdev *rdev);	/* frees what the soft queues hang on */
int rcq_create(struct ibfs_device *dev, int cqe, struct verbs_client *client,
	       struct ibfs_cq **cq);
int rcq_resize(struct ibfs_cq *cq, int cqe);
int rcq_modify(struct ibfs_cq *cq, uint16_t count, uint16_t period_us);
void rcq_query(struct ibfs_cq *cq, struct ibfs_cq_attr *attr);
bool rcq_busy(struct ibfs_cq *cq);
int rcq_destroy(struct ibfs_cq *cq);
int rcq_poll(struct ibfs_cq *cq, int num, struct ibfs_wc *wc);
int rcq_peek(struct ibfs_cq *cq, int num);
int rcq_req_notify(struct ibfs_cq *cq, bool solicited_only, bool report_missed);
int rcq_req_ncomp(struct ibfs_cq *cq, int num);
void rcq_free(struct rcq *cq);		/* its soft one */
void rcq_event(struct rcq *cq, enum ibv_event_type event);
/* To the client. One that finds no room is the end of the QPs that complete here. */
void rcq_push(struct rcq *cq, const struct ibfs_wc *wc, bool solicited);

/* rsrq.c */
int rsrq_create(struct ibfs_pd *pd, const struct ibfs_srq_init *init,
		struct verbs_client *client, struct ibfs_srq **srq);
int rsrq_modify(struct ibfs_srq *srq, const struct ibv_srq_attr *attr, int mask);
void rsrq_query(struct ibfs_srq *srq, struct ibv_srq_attr *attr, uint32_t *srq_num);
int rsrq_destroy(struct ibfs_srq *srq);
int rah_create(struct ibfs_pd *pd, const struct ibv_ah_attr *attr, struct ibfs_ah **ah);
int rah_modify(struct ibfs_ah *ah, const struct ibv_ah_attr *attr);
void rah_query(struct ibfs_ah *ah, struct ibv_ah_attr *attr, uint32_t *handle);
void rah_destroy(struct ibfs_ah *ah);
struct ibfs_ah *rah_by_num(struct rdev *rdev, uint32_t num);	/* or NULL */
int rah_from_wc(struct ibfs_device *dev, unsigned int port, const struct ibfs_wc *wc,
		const struct ibv_grh *grh, struct ibv_ah_attr *attr);
int rmcast_attach(struct ibfs_qp *qp, const union ibv_gid *gid, uint16_t lid);
int rmcast_detach(struct ibfs_qp *qp, const union ibv_gid *gid, uint16_t lid);

/* rqp.c */
int rqp_create(struct ibfs_device *dev, const struct ibfs_qp_init *init,
	       struct verbs_client *client, struct ibfs_qp **qp);
int rqp_open(struct ibfs_xrcd *xrcd, uint32_t qp_num, struct verbs_client *client,
	     struct ibfs_qp **qp);
int rqp_modify(struct ibfs_qp *qp, const struct ibv_qp_attr *attr, int mask);
void rqp_query(struct ibfs_qp *qp, struct ibv_qp_attr *attr, struct ibfs_qp_init *init,
	       uint32_t *qp_num);
int rqp_destroy(struct ibfs_qp *qp, struct verbs_client *client);
void rqp_error(struct rqp *qp);		/* into the state ERR */

/* rpost.c */
int rqp_post_send(struct ibfs_qp *qp, const struct ibfs_wr *wr);
int rqp_post_recv(struct ibfs_qp *qp, const struct ibfs_recv_wr *wr);
int rsrq_post(struct ibfs_srq *srq, const struct ibfs_recv_wr *wr);

/* rcqe.c */
/* About to be posted: its wr_id, unless cqe is NULL. -ENOMEM. */
int rcqe_add(struct rqp *qp, struct ibfs_cqe *cqe, uint64_t *wr_id);
void rcqe_undo(struct rqp *qp, uint64_t wr_id);	/* it wasn't, and nobody is told */
/* True: it was of such a request, and no queue's. */
bool rcqe_done(struct rdev *rdev, const struct ibfs_wc *wc);
void rcqe_drop(struct rqp *qp);		/* all of them: the driver has none any more */

/* rring.c */
int rcq_ring(struct ibfs_cq *cq, struct ibfs_ring *ring);
int rqp_ring(struct ibfs_qp *qp, bool send, struct ibfs_ring *ring);
int rsrq_ring(struct ibfs_srq *srq, struct ibfs_ring *ring);
int rqp_doorbell(struct ibfs_qp *qp);
int rsrq_doorbell(struct ibfs_srq *srq);
void rqp_rings_free(struct rqp *qp);
void rqp_rings_reset(struct rqp *qp);
void rrings_go_on(struct rdev *rdev);	/* there were completions: queues may have room */

#endif
