/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs across the backend interface: objects, work requests and work
 * completions. Attributes are libibverbs' types; work is ours: supersets of
 * libibverbs' that carry every opcode of the kernel's API. Objects are opaque,
 * each backend defines its own. Functions return 0 or a negative errno, and
 * change nothing when they fail. IBA chapter 11; errnos are the kernel's.
 *
 * Handles of objects, where a ring or uverbs needs a number, are given by the
 * query functions; keys and numbers are host order.
 */
#ifndef IBFS_VERBS_H
#define IBFS_VERBS_H

#include <infiniband/verbs.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ibfs_device;
struct ibfs_pd;
struct ibfs_mr;
struct ibfs_mw;
struct ibfs_cq;
struct ibfs_srq;
struct ibfs_ah;
struct ibfs_xrcd;
struct ibfs_qp;
struct keep_file;
struct memory;
struct uverbs_arm;

/* Operations, numbered as the kernel's enum ib_wr_opcode. */
enum ibfs_wr_opcode {
	IBFS_WR_RDMA_WRITE		= 0,
	IBFS_WR_RDMA_WRITE_WITH_IMM	= 1,
	IBFS_WR_SEND			= 2,
	IBFS_WR_SEND_WITH_IMM		= 3,
	IBFS_WR_RDMA_READ		= 4,
	IBFS_WR_ATOMIC_CMP_AND_SWP	= 5,
	IBFS_WR_ATOMIC_FETCH_AND_ADD	= 6,
	IBFS_WR_LOCAL_INV		= 7,
	IBFS_WR_BIND_MW			= 8,
	IBFS_WR_SEND_WITH_INV		= 9,
	IBFS_WR_LSO			= 10,
	IBFS_WR_RDMA_READ_WITH_INV	= 11,
	IBFS_WR_MASKED_ATOMIC_CMP_AND_SWP = 12,
	IBFS_WR_MASKED_ATOMIC_FETCH_AND_ADD = 13,
	IBFS_WR_ATOMIC_WRITE		= 15,	/* libibverbs' */
	IBFS_WR_FAST_REG_MR		= 0x20,
	IBFS_WR_OPCODES			= 0x21,
};

/* Completed operations, numbered as the kernel's enum ib_wc_opcode. */
enum ibfs_wc_opcode {
	IBFS_WC_SEND			= 0,
	IBFS_WC_RDMA_WRITE		= 1,
	IBFS_WC_RDMA_READ		= 2,
	IBFS_WC_COMP_SWAP		= 3,
	IBFS_WC_FETCH_ADD		= 4,
	IBFS_WC_BIND_MW			= 5,
	IBFS_WC_LOCAL_INV		= 6,
	IBFS_WC_LSO			= 7,
	IBFS_WC_ATOMIC_WRITE		= 9,
	IBFS_WC_FAST_REG_MR		= 10,
	IBFS_WC_MASKED_COMP_SWAP	= 11,
	IBFS_WC_MASKED_FETCH_ADD	= 12,
	IBFS_WC_RECV			= 128,
	IBFS_WC_RECV_RDMA_WITH_IMM	= 129,
};

/* QP types that libibverbs has no name for, as in the kernel's enum ib_qp_type. */
enum { IBFS_QPT_SMI = 0, IBFS_QPT_GSI = 1, IBFS_QPT_RAW_IPV6 = 5, IBFS_QPT_RAW_ETHERTYPE = 6 };

struct ibfs_wc;

/*
 * Who is told of one request's completion instead of its completion queue, as the
 * kernel's struct ib_cqe: embedded in what the poster has of the request. Nothing of
 * such a request is in memory that a client can write. done() comes once for each
 * that was posted, signaled or not, as the functions of struct verbs_client; what
 * RESET or the QP's end drops ends with IBV_WC_WR_FLUSH_ERR before they return.
 */
struct ibfs_cqe {
	void (*done)(struct ibfs_cqe *cqe, const struct ibfs_wc *wc);
};

/*
 * A work request. What it points to is copied when it is posted. send_flags
 * are IBV_SEND_*; with IBV_SEND_INLINE the bytes are inline_data, not sg_list.
 */
struct ibfs_wr {
	uint64_t wr_id;
	struct ibfs_cqe *wr_cqe;	/* NULL: the send CQ */
	enum ibfs_wr_opcode opcode;
	unsigned int send_flags;
	union {
		__be32 imm_data;
		uint32_t invalidate_rkey;	/* LOCAL_INV, SEND_WITH_INV, RDMA_READ_WITH_INV */
	} ex;
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma;
		struct {
			uint64_t remote_addr;
			uint64_t compare_add, swap;	/* ATOMIC_WRITE: swap is written */
			uint64_t compare_add_mask, swap_mask;
			uint32_t rkey;
		} atomic;
		struct {
			struct ibfs_ah *ah;
			uint32_t remote_qpn, remote_qkey;
			uint16_t pkey_index;	/* GSI only */
			const void *header;	/* LSO */
			uint16_t hlen, mss;
		} ud;
		struct {
			uint32_t mr_lkey;	/* of an MR made with max_pages */
			uint32_t rkey;		/* its new key */
			uint64_t iova, length;
			const uint64_t *pages;	/* byte offsets in the MR's memory */
			uint32_t num_pages;
			uint8_t page_shift;
			unsigned int access;
		} reg;
		struct {
			uint32_t mw_rkey;	/* which window */
			uint32_t mr_lkey;
			uint32_t rkey;		/* its new key (type 2) */
			uint64_t addr, length;
			unsigned int access;
		} bind;
	};
	uint32_t xrc_srq_num;
	const struct ibv_sge *sg_list;
	unsigned int num_sge;
	const void *inline_data;
	uint32_t inline_len;
};

struct ibfs_recv_wr {
	uint64_t wr_id;
	struct ibfs_cqe *wr_cqe;	/* NULL: the receive CQ; of an SRQ's always */
	const struct ibv_sge *sg_list;
	unsigned int num_sge;
};

struct ibfs_wc {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibfs_wc_opcode opcode;
	uint32_t vendor_err;
	uint32_t byte_len;
	union {
		__be32 imm_data;
		uint32_t invalidated_rkey;
	};
	uint32_t qp_num, src_qp;
	unsigned int wc_flags;		/* IBV_WC_* */
	uint16_t pkey_index, slid;
	uint8_t sl, dlid_path_bits, port_num;
};

/*
 * Memory that rings are taken from, when whoever makes an object wants them all
 * in one mapping: a sealed file, whole pages of it. Outlives the objects.
 */
struct ring_space {
	int fd;
	int (*alloc)(struct ring_space *space, size_t size, uint64_t *off);	/* -ENOMEM; zeroed */
	void (*free)(struct ring_space *space, uint64_t off, size_t size);
	struct keep_file *kept;		/* ibfs/keeper.h; NULL: not kept */
};

/* What something takes of the daemon. */
struct verbs_cost {
	uint64_t bytes;			/* of memory */
	unsigned int descriptors, mappings;
};

/*
 * Who is told: embedded in the object of whoever made the QP, CQ or SRQ.
 * Called from the engine in the event loop; it may poll, but must not post,
 * destroy or modify from inside. Each may be NULL.
 */
struct verbs_client {
	void (*event)(struct verbs_client *client, enum ibv_event_type event);
	void (*comp)(struct verbs_client *client);	/* CQ: a completion event */
	void (*arrived)(struct verbs_client *client);	/* CQ: each completion, asked for or not */
	struct ring_space *rings;	/* NULL: each ring has a file of its own */
	/*
	 * QP: enum doorbell (ibfs/bell_words.h) of its send ring, beside what the
	 * ring itself says; for who can't find the ring. NULL: told nowhere.
	 */
	_Atomic uint8_t *bell;
	/*
	 * QP: does who rings it with doorbell() do so again, unasked, after
	 * BELL_AGAIN_NS (ibfs/bell.h) if the QP wants that?
	 */
	enum { VERBS_AGAIN_NEVER, VERBS_AGAIN_CAN, VERBS_AGAIN_WANTED } again;
	/*
	 * CQ: where a process leaves its requests for an event (ibfs/uverbs_arms.h),
	 * beside req_notify_cq(). NULL: nowhere.
	 */
	struct uverbs_arm *arm;
	/*
	 * Who pays for the object's queues and rings, and for packets that wait: 0, or
	 * -errno and it is not taken; refund when it was given back. Memory from `rings`
	 * is that one's matter. NULL: nobody.
	 */
	int (*pay)(struct verbs_client *client, const struct verbs_cost *cost);
	void (*refund)(struct verbs_client *client, const struct verbs_cost *cost);
};

struct ibfs_mr_init {
	struct memory *mem;		/* the MR takes its own reference */
	uint64_t mem_off, length;	/* which part of it */
	uint64_t iova;			/* address of its first byte; 0 with IBV_ACCESS_ZERO_BASED */
	unsigned int access;		/* IBV_ACCESS_* */
	uint32_t max_pages;		/* not 0: for FAST_REG work requests; not valid until one */
};

struct ibfs_mr_attr {
	struct ibfs_pd *pd;
	uint64_t iova, length;
	unsigned int access;
	uint32_t lkey, rkey;
	unsigned int windows;		/* memory windows bound to it */
	bool valid;
};

struct ibfs_mw_attr {
	enum ibv_mw_type type;
	uint32_t rkey;
	bool bound;
	uint64_t addr, length;
	unsigned int access;
	uint32_t mr_lkey, qp_num;	/* of what it is bound to; qp_num: type 2 */
};

struct ibfs_cq_attr {
	uint32_t handle;
	int cqe;			/* room, at least what was asked for */
	uint16_t moder_count, moder_period;	/* period in microseconds */
	bool error;			/* overrun */
};

struct ibfs_srq_init {
	struct ibv_srq_attr attr;
	bool xrc;
	struct ibfs_xrcd *xrcd;
	struct ibfs_cq *cq;		/* XRC */
};

struct ibfs_qp_init {
	struct ibfs_pd *pd;		/* none for XRC_TGT */
	struct ibfs_cq *send_cq, *recv_cq;
	struct ibfs_srq *srq;
	struct ibfs_xrcd *xrcd;		/* XRC_TGT */
	struct ibv_qp_cap cap;		/* as asked; query_qp tells what it became */
	unsigned int type;		/* enum ibv_qp_type, IBFS_QPT_* */
	unsigned int create_flags;	/* IBV_QP_CREATE_BLOCK_SELF_MCAST_LB */
	bool sq_sig_all;
	uint8_t port_num;		/* SMI, GSI */
};

/* A ring in shared memory (layout: facts of rdma_user_rxe.h), for mmap. */
struct ibfs_ring {
	int fd;				/* the object's; don't close it */
	size_t size;			/* bytes, whole pages */
	uint64_t off;			/* in the file */
};

/* IB_DEVICE_* of the kernel that libibverbs has no name for. */
enum { IBFS_DEVICE_UD_TSO = 1 << 19, IBFS_DEVICE_BLOCK_MULTICAST_LOOPBACK = 1 << 22 };
#define IBFS_DEVICE_ATOMIC_WRITE (1ULL << 40)

struct verbs_ops {
	/* What struct ibv_device_attr has no field for. */
	enum ibv_atomic_cap masked_atomic_cap;
	unsigned int max_fast_reg_page_list_len;
	bool no_uverbs;			/* no uverbs file: programs have the system's */

	int (*alloc_pd)(struct ibfs_device *dev, struct ibfs_pd **pd);
	int (*dealloc_pd)(struct ibfs_pd *pd);			/* EBUSY */
	int (*alloc_xrcd)(struct ibfs_device *dev, struct ibfs_xrcd **xrcd);
	int (*dealloc_xrcd)(struct ibfs_xrcd *xrcd);		/* EBUSY */

	/* EINVAL: access (remote write or atomic without local write), range; ENOMEM: limit */
	int (*reg_mr)(struct ibfs_pd *pd, const struct ibfs_mr_init *init, struct ibfs_mr **mr);
	/* flags: IBV_REREG_MR_CHANGE_*. EBUSY: windows are bound */
	int (*rereg_mr)(struct ibfs_mr *mr, int flags, struct ibfs_pd *pd, const struct ibfs_mr_init *init);
	void (*query_mr)(struct ibfs_mr *mr, struct ibfs_mr_attr *attr);
	int (*dereg_mr)(struct ibfs_mr *mr);			/* EBUSY: windows are bound */

	int (*alloc_mw)(struct ibfs_pd *pd, enum ibv_mw_type type, struct ibfs_mw **mw);
	void (*query_mw)(struct ibfs_mw *mw, struct ibfs_mw_attr *attr);
	int (*dealloc_mw)(struct ibfs_mw *mw);

	int (*create_cq)(struct ibfs_device *dev, int cqe, struct verbs_client *client, struct ibfs_cq **cq);
	int (*resize_cq)(struct ibfs_cq *cq, int cqe);		/* EINVAL: holds more than that */
	int (*modify_cq)(struct ibfs_cq *cq, uint16_t count, uint16_t period_us);
	void (*query_cq)(struct ibfs_cq *cq, struct ibfs_cq_attr *attr);
	bool (*cq_busy)(struct ibfs_cq *cq);	/* requests are being sent that complete here */
	int (*destroy_cq)(struct ibfs_cq *cq);			/* EBUSY */
	int (*poll_cq)(struct ibfs_cq *cq, int num, struct ibfs_wc *wc);	/* how many */
	int (*peek_cq)(struct ibfs_cq *cq, int num);		/* how many, at most num */
	/*
	 * 1 when report_missed and completions wait already, else 0; without
	 * report_missed an event comes for those that none has told of.
	 */
	int (*req_notify_cq)(struct ibfs_cq *cq, bool solicited_only, bool report_missed);
	int (*req_ncomp_notif)(struct ibfs_cq *cq, int num);	/* when the CQ holds num */
	int (*cq_ring)(struct ibfs_cq *cq, struct ibfs_ring *ring);

	int (*create_srq)(struct ibfs_pd *pd, const struct ibfs_srq_init *init,
			  struct verbs_client *client, struct ibfs_srq **srq);
	int (*modify_srq)(struct ibfs_srq *srq, const struct ibv_srq_attr *attr, int mask);
	void (*query_srq)(struct ibfs_srq *srq, struct ibv_srq_attr *attr, uint32_t *srq_num);
	int (*destroy_srq)(struct ibfs_srq *srq);		/* EBUSY */
	int (*post_srq_recv)(struct ibfs_srq *srq, const struct ibfs_recv_wr *wr);	/* ENOMEM: full */
	int (*srq_ring)(struct ibfs_srq *srq, struct ibfs_ring *ring);

	int (*create_ah)(struct ibfs_pd *pd, const struct ibv_ah_attr *attr, struct ibfs_ah **ah);
	int (*modify_ah)(struct ibfs_ah *ah, const struct ibv_ah_attr *attr);
	void (*query_ah)(struct ibfs_ah *ah, struct ibv_ah_attr *attr, uint32_t *handle);
	void (*destroy_ah)(struct ibfs_ah *ah);
	/* Where the sender of a UD message is reached; grh: 40 bytes, used when wc says IBV_WC_GRH. */
	int (*init_ah_from_wc)(struct ibfs_device *dev, unsigned int port, const struct ibfs_wc *wc,
			       const struct ibv_grh *grh, struct ibv_ah_attr *attr);

	/*
	 * EBUSY: the port's QP0 or QP1 is somebody's; EOPNOTSUPP: RAW_IPV6, RAW_ETHERTYPE.
	 * A raw packet QP sends and receives whole packets from the LRH on (LNH 0 and 1).
	 */
	int (*create_qp)(struct ibfs_device *dev, const struct ibfs_qp_init *init,
			 struct verbs_client *client, struct ibfs_qp **qp);
	/* Another reference to an XRC_TGT QP, its events to this client too; destroy_qp ends it. */
	int (*open_qp)(struct ibfs_xrcd *xrcd, uint32_t qp_num, struct verbs_client *client,
		       struct ibfs_qp **qp);
	int (*modify_qp)(struct ibfs_qp *qp, const struct ibv_qp_attr *attr, int mask);
	void (*query_qp)(struct ibfs_qp *qp, struct ibv_qp_attr *attr, struct ibfs_qp_init *init,
			 uint32_t *qp_num);
	int (*destroy_qp)(struct ibfs_qp *qp, struct verbs_client *client);	/* EBUSY: attached to multicast */
	/* EINVAL: state or request; ENOMEM: queue is full */
	int (*post_send)(struct ibfs_qp *qp, const struct ibfs_wr *wr);
	int (*post_recv)(struct ibfs_qp *qp, const struct ibfs_recv_wr *wr);
	int (*qp_ring)(struct ibfs_qp *qp, bool send, struct ibfs_ring *ring);
	/* Something was produced in the QP's rings. EINVAL: not in a state that sends. */
	int (*doorbell)(struct ibfs_qp *qp);
	int (*srq_doorbell)(struct ibfs_srq *srq);	/* NULL: an SRQ's ring is looked at anyway */

	int (*attach_mcast)(struct ibfs_qp *qp, const union ibv_gid *gid, uint16_t lid);
	int (*detach_mcast)(struct ibfs_qp *qp, const union ibv_gid *gid, uint16_t lid);
};

/* Names in text, as in `wc` lines: "rdma_write", "retry_exc_err"; NULL when there is none. */
const char *wr_opcode_name(unsigned int opcode);
const char *wc_opcode_name(unsigned int opcode);
const char *wc_status_name(unsigned int status);
const char *qp_type_name(unsigned int type);
const char *qp_state_name(unsigned int state);
const char *verbs_event_name(unsigned int event);

#endif
