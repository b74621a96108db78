/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive rings of umad files, ibfs/umad_ring.h: the daemon's side, and the
 * files in dev/infiniband/ev by which clients map them. MADs are in the ring
 * or in the queue, and those in the queue are the later ones. It may touch the
 * queue of the umad file and the memory that it shares with the client, where
 * nothing is believed but what was checked.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utlist.h>

#include <ibfs/keeper.h>
#include <ibfs/memory.h>
#include <ibfs/umad_ring.h>

#include "fs/rows.h"
#include "fs/umad_ring.h"
#include "fs/waiting.h"

#define UNOPENED_MAX	64		/* rings that nobody opened keep a descriptor each */

/* --- memory --- */

static int memory_map(struct ring *ring)
{
	void *mem;

	ring->fd = memory_fd("ibfs-umad", sizeof(*ring->mem));
	if (ring->fd < 0)
		return ring->fd;
	mem = mmap(NULL, sizeof(*ring->mem), PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (mem == MAP_FAILED) {
		close(ring->fd);
		return -ENOMEM;
	}
	ring->mem = mem;
	return 0;
}

static unsigned int unopened(const struct fs *fs)
{
	const struct ring *ring;
	unsigned int n;

	DL_COUNT(fs->rings, ring, n);
	return n;
}

static void wake_clients(struct task *task)
{
	struct ring *ring = (struct ring *)task;

	wake_waiting(&ring->mem->waiting);
}

ssize_t umad_ring_make(struct umad_file *uf, const void *in, void *out, size_t *out_len)
{
	struct fs *fs = uf->file->ibfs->fs;
	struct umad_ring_file answer = { .size = sizeof(struct umad_ring) };
	struct ring *ring;
	int ret;

	(void)in;
	if (uf->ring || unopened(fs) >= UNOPENED_MAX)
		return -EBUSY;
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	ret = memory_map(ring);
	if (ret) {
		free(ring);
		return ret;
	}
	answer.name = ring->id = ev_id(fs);
	ring->owner = &uf->file->opener;
	ring->wake.fn = wake_clients;
	ring->tail = ring->seen = (uint64_t)ring->id << 32;
	atomic_store(&ring->mem->head, ring->tail);
	atomic_store(&ring->mem->tail, ring->tail);
	ring->mem->magic = UMAD_RING_MAGIC;
	ring->kept = keeper_file(uf->file->ibfs, ring->fd, KEEP_UMAD);
	DL_APPEND(fs->rings, ring);
	ring->uf = uf;
	uf->ring = ring;
	umad_send_publish(uf);
	memcpy(out, &answer, sizeof(answer));
	*out_len = sizeof(answer);
	return 0;
}

void umad_ring_free(struct umad_file *uf)
{
	struct ring *ring = uf->ring;

	if (!ring)
		return;
	umad_ring_kill(uf);
	umad_send_cool(ring);
	task_cancel(uf->file->ibfs->tasks, &ring->wake);
	uf->ring = NULL;
	keeper_file_drop(ring->kept);
	if (ring->fd >= 0) {
		DL_DELETE(uf->file->ibfs->fs->rings, ring);
		close(ring->fd);
	}
	munmap(ring->mem, sizeof(*ring->mem));
	free(ring);
}

/* --- what is in it --- */

static bool usable(const struct umad_file *uf)
{
	return uf->ring && !uf->ring->dead && atomic_load(&uf->ring->mem->mapped);
}

/*
 * How many. A head that can't be, as one that goes back, makes it the last time that
 * anybody asks.
 */
static unsigned int count(const struct umad_file *uf)
{
	struct ring *ring = uf->ring;
	uint64_t head = atomic_load(&ring->mem->head);

	if (head - ring->seen <= ring->tail - ring->seen) {
		ring->seen = head;
		return (unsigned int)(ring->tail - head);
	}
	ring->dead = true;
	atomic_store(&ring->mem->dead, 1);
	return 0;
}

int umad_ring_cpu(const struct umad_file *uf)
{
	unsigned int cpu = usable(uf) ? atomic_load(&uf->ring->mem->cpu) : 0;

	return cpu <= INT_MAX ? (int)cpu - 1 : -1;
}

bool umad_ring_filled(const struct umad_file *uf)
{
	return usable(uf) && count(uf);
}

static bool put(struct umad_file *uf, const struct ib_user_mad_hdr *hdr, const void *data,
		size_t len)
{
	size_t hdr_size = umad_hdr_size(uf);
	struct ring *ring = uf->ring;
	struct umad_ring_slot *slot = umad_ring_slot(ring->mem, ring->tail);

	if (hdr_size + len > UMAD_RING_DATA || count(uf) == UMAD_RING_SLOTS || ring->dead)
		return false;
	memcpy(slot->data, hdr, hdr_size);
	memcpy(slot->data + hdr_size, data, len);
	slot->len = hdr_size + len;
	atomic_store(&ring->mem->tail, ++ring->tail);
	return true;
}

bool umad_ring_put(struct umad_file *uf, const struct ib_user_mad_hdr *hdr, const void *data,
		   size_t len)
{
	if (!usable(uf) || uf->queue || uf->jobs || uf->readers.head)
		return false;
	return put(uf, hdr, data, len);
}

void umad_ring_refill(struct umad_file *uf)
{
	struct umad_mad *mad;

	if (!usable(uf))
		return;
	while (!uf->jobs && !uf->readers.head && (mad = uf->queue) && put(uf, &mad->hdr, mad->data, mad->len)) {
		DL_DELETE(uf->queue, mad);
		umad_mad_free(uf, mad);
	}
	atomic_store(&uf->ring->mem->more, !!uf->queue);
}

/* All of it goes back to the queue's head, in order: each MAD once, whatever head does. */
static void reclaim(struct umad_file *uf)
{
	size_t hdr_size = umad_hdr_size(uf), len;
	struct umad_mad *list = NULL, *mad;
	uint8_t data[UMAD_RING_DATA];

	for (unsigned int left = count(uf); left; left--) {
		len = umad_ring_take(uf->ring->mem, uf->ring->tail, data, sizeof(data));
		if (!len)
			break;
		if (len < hdr_size)
			continue;
		mad = calloc(1, sizeof(*mad) + len - hdr_size);
		if (!mad)
			continue;
		memcpy(&mad->hdr, data, hdr_size);
		mad->len = len - hdr_size;
		memcpy(mad->data, data + hdr_size, mad->len);
		uf->bytes += sizeof(*mad) + mad->len;
		DL_APPEND(list, mad);
	}
	uf->ring->seen = uf->ring->tail;
	DL_CONCAT(list, uf->queue);
	uf->queue = list;
	atomic_store(&uf->ring->mem->more, !!list);
}

size_t umad_ring_get(struct umad_file *uf, void *buf, size_t size)
{
	size_t len;

	if (!umad_ring_filled(uf))
		return 0;
	len = umad_ring_take(uf->ring->mem, uf->ring->tail, buf, size);
	if (!len)
		reclaim(uf);
	return len;
}

void umad_ring_wake(struct umad_file *uf)
{
	if (uf->ring && atomic_load(&uf->ring->mem->waiting))
		task_queue(uf->file->ibfs->tasks, &uf->ring->wake);
}

void umad_ring_kill(struct umad_file *uf)
{
	if (!uf->ring)
		return;
	uf->ring->dead = true;
	atomic_store(&uf->ring->mem->dead, 1);
	wake_clients(&uf->ring->wake);
}

/* --- dev/infiniband/ev --- */

static struct ring *find(struct ibfs *ibfs, uint64_t id)
{
	struct ring *ring;

	DL_SEARCH_SCALAR(ibfs->fs->rings, ring, id, id);
	return ring;
}

bool umad_ring_exists(struct ibfs *ibfs, uint64_t id)
{
	return find(ibfs, id);
}

uint64_t umad_ring_from(struct ibfs *ibfs, uint64_t id)
{
	uint64_t first = UINT64_MAX;
	struct ring *ring;

	DL_FOREACH(ibfs->fs->rings, ring)
		if (ring->id >= id && ring->id < first)
			first = ring->id;
	return first;
}

int umad_ring_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	const struct ring *ring = find(ibfs, path.idx);

	st->st_size = sizeof(struct umad_ring);
	if (!ring)
		return 0;	/* open, and in no directory any more */
	st->st_uid = ring->owner->uid;
	st->st_gid = ring->owner->gid;
	return 0;
}

/* Once: what stays in the client's mapping has no descriptor here. */
static ssize_t ring_open(struct file *file, struct fs_req *req)
{
	struct ring *ring = find(req->ibfs, file->path.idx);

	if (!ring)
		return -ENOENT;
	file->backing = ring->fd;
	ring->fd = -1;
	keeper_file_closed(ring->kept);
	DL_DELETE(req->ibfs->fs->rings, ring);
	return 0;
}

static void ring_release(struct file *file)
{
	if (file->backing >= 0)
		close(file->backing);
}

const struct file_ops umad_ring_ops = {
	.open = ring_open,
	.release = ring_release,
};
