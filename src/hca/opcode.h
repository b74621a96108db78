/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transport opcodes as data: what each BTH opcode is, which extended headers it
 * has and which work request opcode becomes which. IBA 9.2.1 table 38, 9.3, A14.
 */
#ifndef IBFS_HCA_OPCODE_H
#define IBFS_HCA_OPCODE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

/* The opcode's upper three bits. OP_VENDOR: ours, for what the IBA has no opcode for. */
enum { OP_RC = 0x00, OP_UC = 0x20, OP_UD = 0x60, OP_XRC = 0xa0, OP_VENDOR = 0xc0 };

/* The lower five */
enum {
	OP_SEND_FIRST, OP_SEND_MIDDLE, OP_SEND_LAST, OP_SEND_LAST_IMM, OP_SEND_ONLY, OP_SEND_ONLY_IMM,
	OP_WRITE_FIRST, OP_WRITE_MIDDLE, OP_WRITE_LAST, OP_WRITE_LAST_IMM, OP_WRITE_ONLY,
	OP_WRITE_ONLY_IMM, OP_READ_REQ, OP_READ_RESP_FIRST, OP_READ_RESP_MIDDLE, OP_READ_RESP_LAST,
	OP_READ_RESP_ONLY, OP_ACK, OP_ATOMIC_ACK, OP_CMP_SWAP, OP_FETCH_ADD,
	OP_SEND_LAST_INV = 0x16, OP_SEND_ONLY_INV = 0x17, OP_ATOMIC_WRITE = 0x1d,
	/* with OP_VENDOR only: an AtomicETH followed by swap mask and compare mask */
	OP_MASKED_CMP_SWAP = 0x13, OP_MASKED_FETCH_ADD = 0x14,
	/* the same of an XRC QP */
	OP_XRC_MASKED_CMP_SWAP = 0x1b, OP_XRC_MASKED_FETCH_ADD = 0x1c,
};

enum op_kind { KIND_NONE, KIND_SEND, KIND_WRITE, KIND_READ, KIND_ATOMIC, KIND_ATOMIC_WRITE,
	       KIND_READ_RESP, KIND_ACK, KIND_ATOMIC_ACK };	/* responses last */

/* Extended headers, in their order on the wire */
enum {
	HDR_DETH = 1 << 0, HDR_XRCETH = 1 << 1, HDR_RETH = 1 << 2, HDR_ATOMIC = 1 << 3,
	HDR_MASKED = 1 << 4, HDR_AETH = 1 << 5, HDR_ATOMICACK = 1 << 6, HDR_IMM = 1 << 7,
	HDR_IETH = 1 << 8, HDR_NUM = 9,
};

struct opcode {
	uint8_t kind;
	bool first, last;		/* of a message, or of a read's response */
	bool needs_recv;		/* its message consumes a receive request */
	uint16_t headers;
};

/* By the BTH's byte; kind KIND_NONE: no such opcode. */
const struct opcode *opcode_info(uint8_t opcode);
/* Bytes of one extended header, or of all in a mask. */
unsigned int header_size(unsigned int header);
unsigned int headers_size(unsigned int mask);

struct reth {
	__be64 va;
	__be32 rkey;
	__be32 len;
} __attribute__((packed, aligned(4)));

struct atomiceth {
	__be64 va;
	__be32 rkey;
	__be64 swap_add;
	__be64 compare;
	__be64 swap_mask, compare_mask;	/* OP_VENDOR only */
} __attribute__((packed, aligned(4)));
#define ATOMICETH_SIZE 28

/* AETH syndromes, 9.7.5.1 */
enum {
	AETH_ACK = 0x00, AETH_RNR = 0x20, AETH_NAK = 0x60, AETH_TYPE = 0x60,
	AETH_NO_CREDITS = 0x1f,
	NAK_PSN = 0x60, NAK_INVALID = 0x61, NAK_ACCESS = 0x62, NAK_OPERATION = 0x63,
};

/* What a work request opcode is: wr.c. */
struct wr_info {
	const char *name;
	uint8_t wc;			/* enum ibfs_wc_opcode */
	uint8_t kind;			/* KIND_NONE: local */
	uint16_t types;			/* bit per QP type that may have it */
	bool rd_atomic, local;
};
const struct wr_info *wr_info(unsigned int opcode);	/* NULL: there is none */

#endif
