/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of an open uverbs file: a memfd that grows as rings are made, and
 * that the client maps through the file. It begins with the pages by which its
 * rings are rung, and that where CQs' notices are asked for. What a ring leaves
 * is emptied and given to the next one; it never serves another file, since a
 * client's mappings outlive its descriptors.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utlist.h>

#include <ibfs/keeper.h>

#include "fs/uverbs.h"

#define SPACE_MAX	(4ULL << 30)

_Static_assert(UVERBS_BELLS_SIZE == UVERBS_ARMS_OFFSET, "one behind the other");

struct uv_hole {
	struct uv_hole *prev, *next;
	uint64_t off, size;
};

static int space_grow(struct uv_space *space, uint64_t size, uint64_t *off)
{
	if (size > SPACE_MAX - space->size || ftruncate(space->rings.fd, space->size + size))
		return -ENOMEM;
	*off = space->size;
	space->size += size;
	return 0;
}

static void hole_take(struct uv_space *space, struct uv_hole *hole, uint64_t size, uint64_t *off)
{
	*off = hole->off;
	hole->off += size;
	hole->size -= size;
	/* What a client wrote to it meanwhile isn't the new ring's. */
	fallocate(space->rings.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, *off, size);
	if (hole->size)
		return;
	DL_DELETE(space->holes, hole);
	free(hole);
}

static int space_alloc(struct ring_space *rings, size_t size, uint64_t *off)
{
	struct uv_space *space = (struct uv_space *)rings;
	struct uv_hole *hole;
	int err = 0;

	if (charge_take(space->charge, ACCOUNT_MEMORY, size))
		return -ENOMEM;
	DL_FOREACH(space->holes, hole)
		if (hole->size >= size)
			break;
	if (hole)
		hole_take(space, hole, size, off);
	else
		err = space_grow(space, size, off);
	if (err)
		charge_give(space->charge, ACCOUNT_MEMORY, size);
	return err;
}

static void hole_join(struct uv_space *space, struct uv_hole *hole, struct uv_hole *after)
{
	if (!hole || !after || hole->off + hole->size != after->off)
		return;
	hole->size += after->size;
	DL_DELETE(space->holes, after);
	free(after);
}

static void space_free(struct ring_space *rings, uint64_t off, size_t size)
{
	struct uv_space *space = (struct uv_space *)rings;
	struct uv_hole *next, *hole;

	if (space->keeps)
		return;
	charge_give(space->charge, ACCOUNT_MEMORY, size);
	hole = malloc(sizeof(*hole));
	fallocate(rings->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, size);
	if (!hole)
		return;
	hole->off = off;
	hole->size = size;
	DL_FOREACH(space->holes, next)
		if (next->off > off)
			break;
	if (next)
		DL_PREPEND_ELEM(space->holes, next, hole);
	else
		DL_APPEND(space->holes, hole);
	hole_join(space, hole, hole->next);
	if (hole != space->holes)
		hole_join(space, hole->prev, hole);
}

static int map_pages(struct uv_space *space)
{
	void *pages;

	if (ftruncate(space->rings.fd, UV_SPACE_FIRST))
		return -1;
	pages = mmap(NULL, UV_SPACE_FIRST, PROT_READ | PROT_WRITE, MAP_SHARED, space->rings.fd, 0);
	if (pages == MAP_FAILED)
		return -1;
	space->bells = pages;
	space->bells->magic = UVERBS_BELLS_MAGIC;
	space->arms = (struct uverbs_arm *)((char *)pages + UVERBS_ARMS_OFFSET);
	space->size = UV_SPACE_FIRST;
	return 0;
}

_Atomic uint8_t *uv_space_bell(const struct uv_space *space, uint32_t handle)
{
	return handle < UVERBS_BELLS ? &space->bells->doorbells[handle] : NULL;
}

struct uverbs_arm *uv_space_arm(const struct uv_space *space, uint32_t handle)
{
	return handle < UVERBS_ARMS ? &space->arms[handle] : NULL;
}

struct uv_space *uv_space_new(struct ibfs *ibfs, struct charge *charge)
{
	struct uv_space *space = calloc(1, sizeof(*space));

	if (!space)
		return NULL;
	space->charge = charge;
	space->rings.alloc = space_alloc;
	space->rings.free = space_free;
	space->rings.fd = memfd_create("ibfs-uverbs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (space->rings.fd >= 0 && !fcntl(space->rings.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) &&
	    !map_pages(space)) {
		space->rings.kept = keeper_file(ibfs, space->rings.fd, KEEP_UVERBS);
		return space;
	}
	uv_space_free(space);
	return NULL;
}

/* A client that has it mapped keeps the addresses, not the memory: nobody pays for it any more. */
void uv_space_free(struct uv_space *space)
{
	struct uv_hole *hole, *tmp;

	fallocate(space->rings.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)space->size);
	DL_FOREACH_SAFE(space->holes, hole, tmp)
		free(hole);
	if (space->bells)
		munmap(space->bells, UV_SPACE_FIRST);
	keeper_file_drop(space->rings.kept);
	if (space->rings.fd >= 0)
		close(space->rings.fd);
	free(space);
}
