/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tests of private memory that libibfs-run.so makes shared have in common:
 * memory, its registration, and whether it is shared now.
 */
#ifndef IBFS_TESTS_UVERBS_PRIVATE_H
#define IBFS_TESTS_UVERBS_PRIVATE_H

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "uverbs_end.h"

#define PAGE	4096
#define SIZE	(64 * 1024)

/* Chunks that malloc() maps are known; a sanitizer's malloc() is another. */
#ifdef __SANITIZE_ADDRESS__
static const bool knows_malloc = false;
#else
static const bool knows_malloc = true;
#endif

static inline uint8_t *map_private(size_t size)
{
	return must(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		    "mmap");
}

static inline struct ibv_mr *reg(const struct end *end, void *mem, size_t size)
{
	return must(ibv_reg_mr(end->pd, mem, size, ACCESS), "reg");
}

/* Is the address in memory that was made shared? */
static inline bool is_shared(const void *mem)
{
	FILE *maps = must(fopen("/proc/self/maps", "r"), "maps");
	uintptr_t from, to, at = (uintptr_t)mem;
	char line[512];
	bool shared = false;

	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= at && at < to)
			shared = strstr(line, "memfd:ibfs-run");
	fclose(maps);
	return shared;
}

/* May this process hold threads that write? userfaultfd(2), as of Linux 6.4. */
static inline bool can_hold(void)
{
	struct uffdio_api api = {
		.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | 1ULL << 13,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	bool can = fd >= 0 && !ioctl(fd, UFFDIO_API, &api);

	if (fd >= 0)
		close(fd);
	return can;
}

static inline void need_hold(void)
{
	if (can_hold())
		return;
	puts("threads can't be held");
	exit(SKIPPED);
}

/* All of `from`, registered, arrives at the start of `to`. */
static inline void write_to(struct end *end, const struct ibv_mr *from, const struct ibv_mr *to)
{
	CHECK(transfer(end, IBV_WR_RDMA_WRITE, from, to, 0, (uint32_t)from->length) ==
	      IBV_WC_SUCCESS);
}

#endif
