/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory behind memory regions: the one type by which an HCA reaches bytes
 * (what ib_dma_* is to a kernel driver). Three kinds, chosen when it is made:
 * the daemon's own, aliased (a file's pages that a client maps too), and remote
 * (another address space, reached by operations that answer later: the HCA
 * knows no process). Sizes and offsets are bytes.
 */
#ifndef IBFS_MEMORY_H
#define IBFS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum memory_kind { MEMORY_OWN, MEMORY_ALIASED, MEMORY_REMOTE };

/* An 8-byte read-modify-write; host order. Masks as IB_WR_MASKED_ATOMIC_*. */
struct mem_atomic {
	bool swap_op;			/* compare and swap; else fetch and add */
	uint64_t compare_add, swap;
	uint64_t compare_add_mask, swap_mask;	/* for an add: compare_add_mask bounds the fields */
	uint64_t orig;			/* result: what was there */
};

/*
 * A transfer with remote memory. The maker fills the upper part and keeps it
 * all until done() was called or cancel() of the remote's operations returned.
 */
struct mem_io {
	enum { MEM_READ, MEM_WRITE, MEM_ATOMIC } op;
	uint64_t off;			/* in the memory */
	size_t len;
	void *buf;			/* bytes to (MEM_READ) or from (MEM_WRITE) */
	struct mem_atomic *atomic;
	void (*done)(struct mem_io *io, int err);	/* 0 or -EFAULT; in the event loop */
	void *priv;			/* the remote's, while it works */
};

struct remote_ops {
	/* Start a transfer: 0, after which io->done() follows (never from inside), or -errno. */
	int (*io)(void *remote, struct mem_io *io);
	/* Let go of io at once: done() won't come, io and its buffer may be freed. */
	void (*cancel)(void *remote, struct mem_io *io);
	void (*free)(void *remote);
};

struct memory {
	enum memory_kind kind;
	unsigned int refs;
	uint64_t size;
	int fd;				/* the memfd, or -1 */
	void *base;			/* NULL for remote */
	struct guard *guard;		/* of base, or NULL */
	void (*unmap)(struct memory *mem);	/* see memory_unmap_by() */
	void *unmapper;
	const struct remote_ops *ops;
	void *remote;
	void (*gone)(void *owner);	/* see memory_tell() */
	void *owner;
};

/*
 * All start with one reference; NULL and errno on failure. memory_own() is
 * zeroed and sealed against resizing. memory_alias() wants an fd that is sealed
 * against shrinking (EPERM: a truncation would kill the daemon by SIGBUS) and
 * maps size bytes from off (EINVAL: not within the file or not page aligned);
 * it keeps a duplicate of fd. memory_remote() takes over `remote`.
 */
struct memory *memory_own(uint64_t size);
/* A descriptor of size zeroed bytes to share, which nobody can resize; -errno. name: in maps. */
int memory_fd(const char *name, uint64_t size);
struct memory *memory_alias(int fd, uint64_t off, uint64_t size);
/*
 * Alias pages of a file that others may shorten: size bytes from off, both
 * multiples of page, the file's page size (not of hugetlbfs: the system's). A
 * page that the file no longer has is replaced by one of nobody's, as a page
 * that a kernel driver has pinned is nobody's once it was cut off: what is
 * written there is lost, and what is read is 0. For use in one thread, the
 * event loop's. The fd stays the caller's.
 */
struct memory *memory_share(int fd, uint64_t off, uint64_t size, size_t page);
struct memory *memory_remote(const struct remote_ops *ops, void *remote, uint64_t size);
struct memory *memory_get(struct memory *mem);
void memory_put(struct memory *mem);	/* NULL is allowed */
/*
 * Have somebody unmap base, which may take long, when nobody uses it any more: unmap() is
 * called, and sees to it that memory_end() is, in the event loop, after it set base to NULL.
 */
void memory_unmap_by(struct memory *mem, void (*unmap)(struct memory *mem), void *unmapper);
void memory_end(struct memory *mem);
/* Have somebody told, once, when it is gone. */
void memory_tell(struct memory *mem, void (*gone)(void *owner), void *owner);

/* Execute an atomic on 8 aligned bytes that the daemon can address. */
void mem_atomic_exec(uint64_t *target, struct mem_atomic *atomic);
/* The same as a pure function: what orig turns into. */
uint64_t mem_atomic_value(const struct mem_atomic *atomic, uint64_t orig);

#endif
