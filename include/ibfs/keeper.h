/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keeper: a process of the daemon's that ends what programs wait for in
 * memory when the daemon dies. Who asks a file is told by the kernel then; who
 * spins on a completion queue's ring, or sleeps on a futex in a ring, asks
 * nobody. It completes all outstanding requests with IBV_WC_FATAL_ERR, as the
 * daemon does when a device goes, and marks the other rings dead.
 *
 * What is where stands in the book, memory that only the daemon and the keeper
 * have; the memory of clients it has as descriptors, and maps when the daemon is
 * gone. Of what clients can write it believes only what they would spoil for
 * themselves: indices, masked by the book's masks, and the requests in the slots.
 *
 * By who holds the loop's lock. Where there is no keeper (ibfs->keeper is NULL, or
 * it was killed) all functions work and nothing is kept.
 */
#ifndef IBFS_KEEPER_H
#define IBFS_KEEPER_H

#include <stdatomic.h>
#include <stdint.h>

#define KEEPER_NAME	"ibfs-keeper"	/* argv[0] by which the program becomes the keeper */

/* A ring in a client's memory. */
struct keep_ring {
	uint64_t off;			/* bytes, in the file */
	uint32_t file;			/* its number; 0: there is no ring */
	uint32_t mask, elem_size;
};

/*
 * A request that stands in no ring for a while: its slot is the client's again,
 * and its completion isn't in the CQ yet.
 */
enum keep_state {
	KEEP_NONE,
	KEEP_TAKING,	/* it is in its ring while that one's consumer is before `next` */
	KEEP_TAKEN,
	KEEP_COMPLETING,	/* the CQ has its completion when it isn't at `at` any more */
	KEEP_RETIRING,		/* both: it is in its ring, or completing */
};

struct keep_request {
	uint64_t wr_id;
	uint32_t next;			/* its ring's index behind it */
	uint32_t at;			/* its CQ's index */
	uint32_t opcode;		/* enum ibfs_wc_opcode */
	_Atomic uint32_t state;		/* enum keep_state; written last */
};

enum keep_kind {
	KEEP_FREE,
	KEEP_CQ,			/* rings[0]: where completions go */
	KEEP_QP,			/* rings: send, receive */
	KEEP_SRQ,			/* rings[0]; recv_cq: XRC */
	KEEP_EVENTS,			/* rings[0]: ibfs/event_ring.h */
};

/* An object of the book; CQs and SRQs are named by their slots' numbers, 0: none. */
struct keep_slot {
	_Atomic uint32_t kind;		/* enum keep_kind; written last */
	uint32_t qp_num;
	uint32_t send_cq, recv_cq, srq;
	struct keep_ring rings[2];
	struct keep_request send, recv;
};

#define KEEP_SLOTS	(1U << 20)	/* the first is none */
#define KEEP_FILES	(1U << 18)

struct keep_book {
	uint32_t used;			/* slots from here on never were */
	_Alignas(128) struct keep_slot slots[KEEP_SLOTS];
};

/* What a file's memory is beside rings. */
enum keep_file_kind { KEEP_RINGS = 1, KEEP_UVERBS, KEEP_UMAD };

/* From the daemon, with a descriptor if kind isn't 0; else the file is no longer kept. */
struct keep_message {
	uint32_t file, kind;
};

struct ibfs;
struct keeper;
struct keep_file;

/* ibfs->keeper, of the loop. NULL: it can't be had, and the log says why. */
struct keeper *keeper_new(struct ibfs *ibfs);
void keeper_free(struct keeper *keeper);

/* A client's memory. The descriptor stays the caller's. NULL: not kept. */
struct keep_file *keeper_file(struct ibfs *ibfs, int fd, enum keep_file_kind kind);
/* The descriptor is about to be closed, and the file kept all the same. NULL is allowed. */
void keeper_file_closed(struct keep_file *file);
void keeper_file_drop(struct keep_file *file);	/* NULL is allowed */
uint32_t keeper_file_num(const struct keep_file *file);	/* 0: of NULL */

/* Empty. NULL: not kept. */
struct keep_slot *keeper_slot(struct ibfs *ibfs);
void keeper_slot_drop(struct ibfs *ibfs, struct keep_slot *slot);	/* NULL is allowed */
uint32_t keeper_slot_num(const struct ibfs *ibfs, const struct keep_slot *slot);	/* 0: of NULL */

/* The keeper's own main(), with a socket to the daemon and the book's file as descriptors 0 and 1. */
int keeper_main(void);

#endif
