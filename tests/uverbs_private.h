/* SPDX-License-Identifier: BSD-2-Clause */
/* What tests of private memory have in common: memory, its registration, messages to it. */
#ifndef IBFS_TESTS_UVERBS_PRIVATE_H
#define IBFS_TESTS_UVERBS_PRIVATE_H

#include <stdint.h>

#include "uverbs_end.h"

#define PAGE	4096
#define SIZE	(64 * 1024)

static inline uint8_t *map_private(size_t size)
{
	return must(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		    "mmap");
}

static inline struct ibv_mr *reg(const struct end *end, void *mem, size_t size)
{
	return must(ibv_reg_mr(end->pd, mem, size, ACCESS), "reg");
}

/* All of `from`, registered, arrives at the start of `to`. */
static inline void write_to(struct end *end, const struct ibv_mr *from, const struct ibv_mr *to)
{
	CHECK(transfer(end, IBV_WR_RDMA_WRITE, from, to, 0, (uint32_t)from->length) ==
	      IBV_WC_SUCCESS);
}

#endif
