/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory type: the daemon's own, aliased, remote. The HCA's counterpart of
 * DMA mapping (ib_dma_*): what can be addressed is copied at once, what is in
 * another address space by transfers that answer later.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hca/verbs.h"

static struct memory *memory_new(enum memory_kind kind, uint64_t size)
{
	struct memory *mem = calloc(1, sizeof(*mem));

	if (!mem)
		return NULL;
	mem->kind = kind;
	mem->refs = 1;
	mem->size = size;
	mem->fd = -1;
	return mem;
}

static int memory_map(struct memory *mem, int fd, uint64_t off)
{
	void *base = mmap(NULL, mem->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, off);

	if (base == MAP_FAILED)
		return -1;
	mem->base = base;
	return 0;
}

int memory_fd(const char *name, uint64_t size)
{
	int err, fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && !ftruncate(fd, size) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return fd;
	err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}

struct memory *memory_own(uint64_t size)
{
	struct memory *mem;

	if (!size) {
		errno = EINVAL;
		return NULL;
	}
	mem = memory_new(MEMORY_OWN, size);
	if (!mem)
		return NULL;
	mem->fd = memory_fd("ibfs-memory", size);
	if (mem->fd < 0 || memory_map(mem, mem->fd, 0)) {
		memory_put(mem);
		return NULL;
	}
	return mem;
}

struct memory *memory_alias(int fd, uint64_t off, uint64_t size)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct memory *mem;
	struct stat st;

	if (seals < 0 || !(seals & F_SEAL_SHRINK)) {
		errno = EPERM;
		return NULL;
	}
	if (fstat(fd, &st))
		return NULL;
	if (!size || off % sysconf(_SC_PAGESIZE) || off > (uint64_t)st.st_size ||
	    size > (uint64_t)st.st_size - off) {
		errno = EINVAL;
		return NULL;
	}
	mem = memory_new(MEMORY_ALIASED, size);
	if (!mem)
		return NULL;
	mem->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (mem->fd < 0 || memory_map(mem, mem->fd, off)) {
		memory_put(mem);
		return NULL;
	}
	return mem;
}

struct memory *memory_share(int fd, uint64_t off, uint64_t size, size_t page)
{
	struct memory *mem = memory_new(MEMORY_ALIASED, size);

	if (!mem)
		return NULL;
	if (!memory_map(mem, fd, off))
		mem->guard = guard_new(mem->base, size, page);
	if (mem->guard)
		return mem;
	memory_put(mem);
	return NULL;
}

struct memory *memory_remote(const struct remote_ops *ops, void *remote, uint64_t size)
{
	struct memory *mem = memory_new(MEMORY_REMOTE, size);

	if (!mem)
		return NULL;
	mem->ops = ops;
	mem->remote = remote;
	return mem;
}

struct memory *memory_get(struct memory *mem)
{
	mem->refs++;
	return mem;
}

void memory_put(struct memory *mem)
{
	if (!mem || --mem->refs)
		return;
	guard_free(mem->guard);
	if (mem->unmap)
		mem->unmap(mem);
	else
		memory_end(mem);
}

void memory_end(struct memory *mem)
{
	if (mem->base)
		munmap(mem->base, mem->size);
	if (mem->fd >= 0)
		close(mem->fd);
	if (mem->kind == MEMORY_REMOTE)
		mem->ops->free(mem->remote);
	if (mem->gone)
		mem->gone(mem->owner);
	free(mem);
}

void memory_unmap_by(struct memory *mem, void (*unmap)(struct memory *mem), void *unmapper)
{
	mem->unmap = unmap;
	mem->unmapper = unmapper;
}

void memory_tell(struct memory *mem, void (*gone)(void *owner), void *owner)
{
	mem->gone = gone;
	mem->owner = owner;
}

/*
 * A masked add adds field by field: a set bit in the mask ends a field, whose
 * carry goes no further.
 */
static uint64_t masked_add(uint64_t a, uint64_t b, uint64_t mask)
{
	uint64_t top = mask | 1ULL << 63;

	return ((a & ~top) + (b & ~top)) ^ ((a ^ b) & top);
}

uint64_t mem_atomic_value(const struct mem_atomic *atomic, uint64_t orig)
{
	if (!atomic->swap_op)
		return masked_add(orig, atomic->compare_add, atomic->compare_add_mask);
	if ((orig ^ atomic->compare_add) & atomic->compare_add_mask)
		return orig;
	return (orig & ~atomic->swap_mask) | (atomic->swap & atomic->swap_mask);
}

/* The memory is shared with processes, whose own atomics it has to go with. */
void mem_atomic_exec(uint64_t *target, struct mem_atomic *atomic)
{
	atomic->orig = __atomic_load_n(target, __ATOMIC_SEQ_CST);
	while (!__atomic_compare_exchange_n(target, &atomic->orig,
					    mem_atomic_value(atomic, atomic->orig), false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

bool segs_remote(const struct mem_seg *segs, int num)
{
	for (int i = 0; i < num; i++)
		if (segs[i].mem->kind == MEMORY_REMOTE)
			return true;
	return false;
}

void segs_read(const struct mem_seg *segs, int num, void *buf)
{
	uint8_t *at = buf;

	for (int i = 0; i < num; i++) {
		memcpy(at, (uint8_t *)segs[i].mem->base + segs[i].off, segs[i].len);
		at += segs[i].len;
	}
}

/* The packet's next bytes from *off on that lie together. */
static const void *packet_run(const struct packet *pkt, uint32_t off, uint32_t *len)
{
	if (off < pkt->len) {
		*len = pkt->len - off;
		return pkt->data + off;
	}
	off -= pkt->len;
	for (int i = 0; i < pkt->nr_frags; i++) {
		if (off < pkt->frags[i].len) {
			*len = pkt->frags[i].len - off;
			return (uint8_t *)pkt->frags[i].base + off;
		}
		off -= pkt->frags[i].len;
	}
	*len = 0;
	return NULL;
}

void segs_write(const struct mem_seg *segs, int num, const struct packet *pkt, uint32_t off,
		uint32_t len)
{
	uint32_t done = 0;

	for (int i = 0; i < num && len; i++, done = 0) {
		while (done < segs[i].len && len) {
			uint32_t run, room = segs[i].len - done;
			const void *from = packet_run(pkt, off, &run);

			if (!from)
				return;
			if (run > room)
				run = room;
			if (run > len)
				run = len;
			/* A message between two views of one memory may overlap itself. */
			memmove((uint8_t *)segs[i].mem->base + segs[i].off + done, from, run);
			done += run;
			off += run;
			len -= run;
		}
	}
}

struct xfer *xfer_new(const struct mem_seg *segs, int num, size_t buf_size)
{
	struct xfer *xfer = calloc(1, sizeof(*xfer));

	if (!xfer)
		return NULL;
	xfer->buf = malloc(buf_size ? buf_size : 1);
	if (!xfer->buf) {
		free(xfer);
		return NULL;
	}
	memcpy(xfer->segs, segs, num * sizeof(*segs));
	xfer->num_segs = num;
	for (int i = 0; i < num; i++)
		memory_get(segs[i].mem);
	return xfer;
}

static void xfer_io_done(struct mem_io *io, int err);

/* Local segments on the way are copied at once. */
static int xfer_step(struct xfer *xfer)
{
	for (; xfer->cur < xfer->num_segs; xfer->cur++) {
		const struct mem_seg *seg = &xfer->segs[xfer->cur];
		uint8_t *local;

		if (seg->mem->kind == MEMORY_REMOTE) {
			int err;

			xfer->io.off = seg->off;
			xfer->io.len = seg->len;
			xfer->io.buf = xfer->buf + xfer->at;
			xfer->io.done = xfer_io_done;
			err = seg->mem->ops->io(seg->mem->remote, &xfer->io);
			return err ? -EFAULT : 1;
		}
		local = (uint8_t *)seg->mem->base + seg->off;
		if (xfer->write)
			memcpy(local, xfer->buf + xfer->at, seg->len);
		else
			memcpy(xfer->buf + xfer->at, local, seg->len);
		xfer->at += seg->len;
	}
	return 0;
}

static void xfer_io_done(struct mem_io *io, int err)
{
	struct xfer *xfer = (struct xfer *)io;

	xfer->at += xfer->segs[xfer->cur++].len;
	if (!err) {
		err = xfer_step(xfer);
		if (err > 0)
			return;
	}
	xfer->cur = xfer->num_segs;
	xfer->done(xfer, err);
}

int xfer_start(struct xfer *xfer)
{
	if (xfer->io.op != MEM_ATOMIC)
		xfer->io.op = xfer->write ? MEM_WRITE : MEM_READ;
	xfer->io.atomic = &xfer->atomic;
	return xfer_step(xfer);
}

void xfer_free(struct xfer *xfer)
{
	if (!xfer)
		return;
	for (int i = 0; i < xfer->num_segs; i++)
		memory_put(xfer->segs[i].mem);
	free(xfer->buf);
	free(xfer);
}

void xfer_cancel(struct xfer *xfer)
{
	if (!xfer)
		return;
	if (xfer->cur < xfer->num_segs) {
		struct memory *mem = xfer->segs[xfer->cur].mem;

		mem->ops->cancel(mem->remote, &xfer->io);
	}
	xfer_free(xfer);
}
