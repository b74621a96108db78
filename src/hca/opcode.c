/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of transport opcodes and of work request opcodes. IBA 9.2.1 (table
 * 38), 9.3, A14.3 (every XRC request carries an XRCETH) and A19 (atomic write).
 */
#include <stddef.h>

#include "hca/opcode.h"
#include "ibfs/verbs.h"

#define FIRST	.first = true
#define LAST	.last = true
#define ONLY	.first = true, .last = true

static const struct opcode rc[32] = {
	[OP_SEND_FIRST]		= { KIND_SEND, FIRST },
	[OP_SEND_MIDDLE]	= { KIND_SEND },
	[OP_SEND_LAST]		= { KIND_SEND, LAST, .needs_recv = true },
	[OP_SEND_LAST_IMM]	= { KIND_SEND, LAST, .needs_recv = true, .headers = HDR_IMM },
	[OP_SEND_ONLY]		= { KIND_SEND, ONLY, .needs_recv = true },
	[OP_SEND_ONLY_IMM]	= { KIND_SEND, ONLY, .needs_recv = true, .headers = HDR_IMM },
	[OP_SEND_LAST_INV]	= { KIND_SEND, LAST, .needs_recv = true, .headers = HDR_IETH },
	[OP_SEND_ONLY_INV]	= { KIND_SEND, ONLY, .needs_recv = true, .headers = HDR_IETH },
	[OP_WRITE_FIRST]	= { KIND_WRITE, FIRST, .headers = HDR_RETH },
	[OP_WRITE_MIDDLE]	= { KIND_WRITE },
	[OP_WRITE_LAST]		= { KIND_WRITE, LAST },
	[OP_WRITE_LAST_IMM]	= { KIND_WRITE, LAST, .needs_recv = true, .headers = HDR_IMM },
	[OP_WRITE_ONLY]		= { KIND_WRITE, ONLY, .headers = HDR_RETH },
	[OP_WRITE_ONLY_IMM]	= { KIND_WRITE, ONLY, .needs_recv = true,
				    .headers = HDR_RETH | HDR_IMM },
	[OP_READ_REQ]		= { KIND_READ, ONLY, .headers = HDR_RETH },
	[OP_CMP_SWAP]		= { KIND_ATOMIC, ONLY, .headers = HDR_ATOMIC },
	[OP_FETCH_ADD]		= { KIND_ATOMIC, ONLY, .headers = HDR_ATOMIC },
	[OP_ATOMIC_WRITE]	= { KIND_ATOMIC_WRITE, ONLY, .headers = HDR_RETH },
	[OP_READ_RESP_FIRST]	= { KIND_READ_RESP, FIRST, .headers = HDR_AETH },
	[OP_READ_RESP_MIDDLE]	= { KIND_READ_RESP },
	[OP_READ_RESP_LAST]	= { KIND_READ_RESP, LAST, .headers = HDR_AETH },
	[OP_READ_RESP_ONLY]	= { KIND_READ_RESP, ONLY, .headers = HDR_AETH },
	[OP_ACK]		= { KIND_ACK, ONLY, .headers = HDR_AETH },
	[OP_ATOMIC_ACK]		= { KIND_ATOMIC_ACK, ONLY, .headers = HDR_AETH | HDR_ATOMICACK },
};

static const struct opcode uc[32] = {
	[OP_SEND_FIRST]		= { KIND_SEND, FIRST },
	[OP_SEND_MIDDLE]	= { KIND_SEND },
	[OP_SEND_LAST]		= { KIND_SEND, LAST, .needs_recv = true },
	[OP_SEND_LAST_IMM]	= { KIND_SEND, LAST, .needs_recv = true, .headers = HDR_IMM },
	[OP_SEND_ONLY]		= { KIND_SEND, ONLY, .needs_recv = true },
	[OP_SEND_ONLY_IMM]	= { KIND_SEND, ONLY, .needs_recv = true, .headers = HDR_IMM },
	[OP_WRITE_FIRST]	= { KIND_WRITE, FIRST, .headers = HDR_RETH },
	[OP_WRITE_MIDDLE]	= { KIND_WRITE },
	[OP_WRITE_LAST]		= { KIND_WRITE, LAST },
	[OP_WRITE_LAST_IMM]	= { KIND_WRITE, LAST, .needs_recv = true, .headers = HDR_IMM },
	[OP_WRITE_ONLY]		= { KIND_WRITE, ONLY, .headers = HDR_RETH },
	[OP_WRITE_ONLY_IMM]	= { KIND_WRITE, ONLY, .needs_recv = true,
				    .headers = HDR_RETH | HDR_IMM },
};

static const struct opcode ud[32] = {
	[OP_SEND_ONLY]		= { KIND_SEND, ONLY, .needs_recv = true, .headers = HDR_DETH },
	[OP_SEND_ONLY_IMM]	= { KIND_SEND, ONLY, .needs_recv = true,
				    .headers = HDR_DETH | HDR_IMM },
};

static const struct opcode xrc[32] = {
	[OP_SEND_FIRST]		= { KIND_SEND, FIRST, .headers = HDR_XRCETH },
	[OP_SEND_MIDDLE]	= { KIND_SEND, .headers = HDR_XRCETH },
	[OP_SEND_LAST]		= { KIND_SEND, LAST, .needs_recv = true, .headers = HDR_XRCETH },
	[OP_SEND_LAST_IMM]	= { KIND_SEND, LAST, .needs_recv = true,
				    .headers = HDR_XRCETH | HDR_IMM },
	[OP_SEND_ONLY]		= { KIND_SEND, ONLY, .needs_recv = true, .headers = HDR_XRCETH },
	[OP_SEND_ONLY_IMM]	= { KIND_SEND, ONLY, .needs_recv = true,
				    .headers = HDR_XRCETH | HDR_IMM },
	[OP_SEND_LAST_INV]	= { KIND_SEND, LAST, .needs_recv = true,
				    .headers = HDR_XRCETH | HDR_IETH },
	[OP_SEND_ONLY_INV]	= { KIND_SEND, ONLY, .needs_recv = true,
				    .headers = HDR_XRCETH | HDR_IETH },
	[OP_WRITE_FIRST]	= { KIND_WRITE, FIRST, .headers = HDR_XRCETH | HDR_RETH },
	[OP_WRITE_MIDDLE]	= { KIND_WRITE, .headers = HDR_XRCETH },
	[OP_WRITE_LAST]		= { KIND_WRITE, LAST, .headers = HDR_XRCETH },
	[OP_WRITE_LAST_IMM]	= { KIND_WRITE, LAST, .needs_recv = true,
				    .headers = HDR_XRCETH | HDR_IMM },
	[OP_WRITE_ONLY]		= { KIND_WRITE, ONLY, .headers = HDR_XRCETH | HDR_RETH },
	[OP_WRITE_ONLY_IMM]	= { KIND_WRITE, ONLY, .needs_recv = true,
				    .headers = HDR_XRCETH | HDR_RETH | HDR_IMM },
	[OP_READ_REQ]		= { KIND_READ, ONLY, .headers = HDR_XRCETH | HDR_RETH },
	[OP_CMP_SWAP]		= { KIND_ATOMIC, ONLY, .headers = HDR_XRCETH | HDR_ATOMIC },
	[OP_FETCH_ADD]		= { KIND_ATOMIC, ONLY, .headers = HDR_XRCETH | HDR_ATOMIC },
	[OP_ATOMIC_WRITE]	= { KIND_ATOMIC_WRITE, ONLY, .headers = HDR_XRCETH | HDR_RETH },
	[OP_READ_RESP_FIRST]	= { KIND_READ_RESP, FIRST, .headers = HDR_AETH },
	[OP_READ_RESP_MIDDLE]	= { KIND_READ_RESP },
	[OP_READ_RESP_LAST]	= { KIND_READ_RESP, LAST, .headers = HDR_AETH },
	[OP_READ_RESP_ONLY]	= { KIND_READ_RESP, ONLY, .headers = HDR_AETH },
	[OP_ACK]		= { KIND_ACK, ONLY, .headers = HDR_AETH },
	[OP_ATOMIC_ACK]		= { KIND_ATOMIC_ACK, ONLY, .headers = HDR_AETH | HDR_ATOMICACK },
};

/* Manufacturer opcodes: the IBA has none for masked atomics. */
static const struct opcode vendor[32] = {
	[OP_MASKED_CMP_SWAP]	= { KIND_ATOMIC, ONLY, .headers = HDR_ATOMIC | HDR_MASKED },
	[OP_MASKED_FETCH_ADD]	= { KIND_ATOMIC, ONLY, .headers = HDR_ATOMIC | HDR_MASKED },
	[OP_XRC_MASKED_CMP_SWAP] = { KIND_ATOMIC, ONLY,
				     .headers = HDR_XRCETH | HDR_ATOMIC | HDR_MASKED },
	[OP_XRC_MASKED_FETCH_ADD] = { KIND_ATOMIC, ONLY,
				      .headers = HDR_XRCETH | HDR_ATOMIC | HDR_MASKED },
};

static const struct opcode none[32];

static const struct opcode *const classes[8] = {
	rc, uc, none, ud, none, xrc, vendor, none,
};

const struct opcode *opcode_info(uint8_t opcode)
{
	return &classes[opcode >> 5][opcode & 31];
}

static const uint8_t sizes[HDR_NUM] = { 8, 4, 16, ATOMICETH_SIZE, 16, 4, 8, 4, 4 };

unsigned int header_size(unsigned int header)
{
	return sizes[__builtin_ctz(header)];
}

unsigned int headers_size(unsigned int mask)
{
	unsigned int size = 0;

	for (; mask; mask &= mask - 1)
		size += sizes[__builtin_ctz(mask)];
	return size;
}

#define RC	(1 << IBV_QPT_RC | 1 << IBV_QPT_XRC_SEND)
#define UC	(1 << IBV_QPT_UC)
#define UD	(1 << IBV_QPT_UD)
#define MGMT	(1 << IBFS_QPT_GSI | 1 << IBFS_QPT_SMI)
#define RAW	(1 << IBV_QPT_RAW_PACKET)

static const struct wr_info wrs[IBFS_WR_OPCODES] = {
	[IBFS_WR_RDMA_WRITE] = { "write", IBFS_WC_RDMA_WRITE, KIND_WRITE, RC | UC },
	[IBFS_WR_RDMA_WRITE_WITH_IMM] = { "write_with_imm", IBFS_WC_RDMA_WRITE, KIND_WRITE, RC | UC },
	[IBFS_WR_SEND] = { "send", IBFS_WC_SEND, KIND_SEND, RC | UC | UD | MGMT | RAW },
	[IBFS_WR_SEND_WITH_IMM] = { "send_with_imm", IBFS_WC_SEND, KIND_SEND, RC | UC | UD },
	[IBFS_WR_RDMA_READ] = { "read", IBFS_WC_RDMA_READ, KIND_READ, RC, .rd_atomic = true },
	[IBFS_WR_ATOMIC_CMP_AND_SWP] = { "cmp_and_swp", IBFS_WC_COMP_SWAP, KIND_ATOMIC, RC,
					 .rd_atomic = true },
	[IBFS_WR_ATOMIC_FETCH_AND_ADD] = { "fetch_and_add", IBFS_WC_FETCH_ADD, KIND_ATOMIC, RC,
					   .rd_atomic = true },
	[IBFS_WR_LOCAL_INV] = { "local_inv", IBFS_WC_LOCAL_INV, KIND_NONE, RC | UC, .local = true },
	[IBFS_WR_BIND_MW] = { "bind_mw", IBFS_WC_BIND_MW, KIND_NONE, RC | UC, .local = true },
	[IBFS_WR_SEND_WITH_INV] = { "send_with_inv", IBFS_WC_SEND, KIND_SEND, RC },
	[IBFS_WR_LSO] = { "lso", IBFS_WC_LSO, KIND_SEND, UD },
	[IBFS_WR_RDMA_READ_WITH_INV] = { "read_with_inv", IBFS_WC_RDMA_READ, KIND_READ, RC,
					 .rd_atomic = true },
	[IBFS_WR_MASKED_ATOMIC_CMP_AND_SWP] = { "masked_cmp_and_swp", IBFS_WC_MASKED_COMP_SWAP,
						KIND_ATOMIC, RC, .rd_atomic = true },
	[IBFS_WR_MASKED_ATOMIC_FETCH_AND_ADD] = { "masked_fetch_and_add", IBFS_WC_MASKED_FETCH_ADD,
						  KIND_ATOMIC, RC, .rd_atomic = true },
	[IBFS_WR_ATOMIC_WRITE] = { "atomic_write", IBFS_WC_ATOMIC_WRITE, KIND_ATOMIC_WRITE, RC,
				   .rd_atomic = true },
	[IBFS_WR_FAST_REG_MR] = { "fast_reg", IBFS_WC_FAST_REG_MR, KIND_NONE, RC | UC, .local = true },
};

const struct wr_info *wr_info(unsigned int opcode)
{
	return opcode < IBFS_WR_OPCODES && wrs[opcode].name ? &wrs[opcode] : NULL;
}

const char *wr_opcode_name(unsigned int opcode)
{
	const struct wr_info *info = wr_info(opcode);

	return info ? info->name : NULL;
}
