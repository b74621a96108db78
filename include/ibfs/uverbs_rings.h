/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the kernel can't map a uverbs file (no FUSE passthrough), a process asks
 * for the memory of its rings by a command that the kernel's uverbs doesn't
 * have: it names one end of a pair of unix datagram sockets, and by the time the
 * command has succeeded the memfd was sent there (SCM_RIGHTS, one byte). Offsets
 * in it are those in the file.
 */
#ifndef IBFS_UVERBS_RINGS_H
#define IBFS_UVERBS_RINGS_H

#include <stdint.h>

#define IBFS_UVERBS_RINGS	0xf0

struct ibfs_uverbs_rings {
	int32_t sock;			/* in the process */
	uint32_t reserved;
};

#endif
