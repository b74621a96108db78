/* SPDX-License-Identifier: BSD-2-Clause */
/* libibfs-run.so: memory shared on behalf of descriptors, run/preload_slot.h. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/preload_slot.h"

enum { MARK_MIN = 33, MARK_MAX = 64 };

static atomic_uint next_mark;

static void cover(void *mem, size_t size)
{
	(void)mmap(mem, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void preload_slot_forget(struct preload_slot *slot, size_t size)
{
	if (atomic_exchange(&slot->mark, 0))
		cover(atomic_load(&slot->mem), size);
}

void *preload_slot_live(struct preload_slot *slot, int fd, size_t size)
{
	int mark = atomic_load(&slot->mark), saved = errno;

	if (!mark)
		return NULL;
	if (syscall(SYS_fcntl, fd, F_GETSIG) == mark)
		return atomic_load(&slot->mem);
	errno = saved;
	preload_slot_forget(slot, size);
	return NULL;
}

/* Where the descriptor's last memory was, if it had some: threads may still look there. */
static void *settle(struct preload_slot *slot, void *mem, size_t size)
{
	void *place = NULL;

	if (atomic_compare_exchange_strong(&slot->mem, &place, mem))
		return mem;
	if (mremap(mem, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place)
		return place;
	cover(place, size);
	munmap(mem, size);
	return NULL;
}

void *preload_slot_set(struct preload_slot *slot, int fd, void *mem, size_t size)
{
	int mark = MARK_MIN + (int)(atomic_fetch_add(&next_mark, 1) % (MARK_MAX - MARK_MIN + 1));

	if (syscall(SYS_fcntl, fd, F_SETSIG, mark)) {
		munmap(mem, size);
		return NULL;
	}
	mem = settle(slot, mem, size);
	if (mem)
		atomic_store(&slot->mark, mark);
	return mem;
}
