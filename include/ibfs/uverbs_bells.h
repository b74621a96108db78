/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first page of a uverbs file's memory, between the daemon, which writes it,
 * and libibfs-run.so, which maps it for reading: whether a doorbell (POST_SEND
 * without work requests) would tell the engine anything. Who posts does so
 * first, then has a full memory barrier, then reads.
 */
#ifndef IBFS_UVERBS_BELLS_H
#define IBFS_UVERBS_BELLS_H

#include <stdint.h>

#define UVERBS_BELLS_SIZE	4096
#define UVERBS_BELLS_MAGIC	0x326c6c6562736669ULL	/* "ifsbell2" in memory, little endian */
#define UVERBS_BELLS		(UVERBS_BELLS_SIZE - 64)

struct uverbs_bells {
	uint64_t magic;
	uint8_t pad[56];
	_Atomic uint8_t quiet[UVERBS_BELLS];	/* by QP handle; 1: need not be rung */
};
_Static_assert(sizeof(struct uverbs_bells) == UVERBS_BELLS_SIZE, "one page");

#endif
