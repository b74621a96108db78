/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of all rings: outstanding requests complete with IBV_WC_FATAL_ERR, and
 * who sleeps is woken and finds a dead ring, so that it asks the file. The
 * clients run all the while and can write to all of it: each index is masked
 * with the book's mask, and each ring lies in its file, which can't shrink.
 * struct rxe_queue_buf, rxe_send_wqe and rxe_recv_wqe: rdma/rdma_user_rxe.h.
 */
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <ibfs/event_ring.h>
#include <ibfs/umad_ring.h>
#include <ibfs/uverbs_arms.h>
#include <ibfs/uverbs_bells.h>
#include <ibfs/verbs.h>

#include "fs/waiting.h"
#include "hca/opcode.h"
#include "keeper_end.h"

enum { ROUNDS = 50, ROUND_NS = 20 * 1000 * 1000 };

/* --- memory --- */

static struct keep_memory *mapped(struct keep_files *files, uint32_t file)
{
	struct keep_memory *memory = &files->memory[file % KEEP_FILES];
	off_t size;

	if (memory->map || !memory->fd)
		return memory->map ? memory : NULL;
	size = lseek(memory->fd, 0, SEEK_END);
	memory->map = size <= 0 ? MAP_FAILED :
		      mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	close(memory->fd);
	memory->fd = 0;
	memory->size = (size_t)size;
	if (memory->map == MAP_FAILED)
		memory->map = NULL;
	return memory->map ? memory : NULL;
}

static void *part_at(struct keep_files *files, const struct keep_ring *ring, size_t size)
{
	struct keep_memory *memory = ring->file ? mapped(files, ring->file) : NULL;

	if (!memory || size > memory->size || ring->off > memory->size - size)
		return NULL;
	return (char *)memory->map + ring->off;
}

static struct rxe_queue_buf *ring_at(struct keep_files *files, const struct keep_ring *ring)
{
	return part_at(files, ring, sizeof(struct rxe_queue_buf) +
				    ((size_t)ring->mask + 1) * ring->elem_size);
}

static uint32_t index_of(const uint32_t *index, const struct keep_ring *ring)
{
	return __atomic_load_n(index, __ATOMIC_ACQUIRE) & ring->mask;
}

static const void *slot_at(const struct rxe_queue_buf *buf, const struct keep_ring *ring,
			   uint32_t index)
{
	return buf->data + (size_t)(index & ring->mask) * ring->elem_size;
}

/* --- completions --- */

static struct keep_slot *slot_of(struct keep_files *files, uint32_t num, enum keep_kind kind)
{
	struct keep_slot *slot = &files->book->slots[num % KEEP_SLOTS];

	return num && atomic_load(&slot->kind) == kind ? slot : NULL;
}

/* False: the queue is full. What completes where nobody looks is done. */
static bool complete(struct keep_files *files, uint32_t cq_num, uint32_t qp_num, uint64_t wr_id,
		     uint32_t opcode)
{
	struct keep_slot *cq = slot_of(files, cq_num, KEEP_CQ);
	const struct keep_ring *ring = cq ? &cq->rings[0] : NULL;
	struct rxe_queue_buf *buf = cq ? ring_at(files, ring) : NULL;
	struct ib_uverbs_wc wc = {
		.wr_id = wr_id, .status = IBV_WC_FATAL_ERR, .opcode = opcode, .qp_num = qp_num,
	};
	uint32_t at;

	if (!buf)
		return true;
	at = index_of(&buf->producer_index, ring);
	if (((at - index_of(&buf->consumer_index, ring)) & ring->mask) == ring->mask)
		return false;
	memcpy(buf->data + (size_t)at * ring->elem_size, &wc, sizeof(wc));
	__atomic_store_n(&buf->producer_index, (at + 1) & ring->mask, __ATOMIC_RELEASE);
	return true;
}

/* Is the request still in the ring that it is taken from? */
static bool in_ring(struct keep_files *files, const struct keep_request *request,
		    const struct keep_ring *ring)
{
	const struct rxe_queue_buf *buf = ring_at(files, ring);

	return buf && index_of(&buf->consumer_index, ring) == ((request->next - 1) & ring->mask);
}

/* Did its completion reach the queue? */
static bool in_queue(struct keep_files *files, const struct keep_request *request, uint32_t cq_num)
{
	struct keep_slot *cq = slot_of(files, cq_num, KEEP_CQ);
	const struct rxe_queue_buf *buf = cq ? ring_at(files, &cq->rings[0]) : NULL;

	return !buf || index_of(&buf->producer_index, &cq->rings[0]) !=
		       (request->at & cq->rings[0].mask);
}

/* What the daemon had in its hands. False: the queue is full. */
static bool end_request(struct keep_files *files, struct keep_request *request,
			const struct keep_ring *ring, uint32_t cq, uint32_t qp_num)
{
	uint32_t state = atomic_load(&request->state);
	bool left = state != KEEP_NONE;

	if (state == KEEP_TAKING || state == KEEP_RETIRING)
		left = !in_ring(files, request, ring);
	if (state == KEEP_COMPLETING || state == KEEP_RETIRING)
		left &= !in_queue(files, request, cq);
	if (left && !complete(files, cq, qp_num, request->wr_id, request->opcode))
		return false;
	atomic_store(&request->state, KEEP_NONE);
	return true;
}

static uint32_t send_opcode(const void *slot)
{
	const struct rxe_send_wqe *wqe = slot;
	const struct wr_info *info = wr_info(wqe->wr.opcode);

	return info ? info->wc : IBFS_WC_SEND;
}

static uint32_t recv_opcode(const void *slot)
{
	(void)slot;
	return IBFS_WC_RECV;
}

/* All that was there when it began; what the queue has no room for stays. */
static void end_ring(struct keep_files *files, const struct keep_ring *ring, uint32_t cq,
		     uint32_t qp_num, uint32_t (*opcode)(const void *slot))
{
	struct rxe_queue_buf *buf = ring_at(files, ring);
	uint32_t at, left;
	uint64_t wr_id;

	if (!buf)
		return;
	at = index_of(&buf->consumer_index, ring);
	left = (index_of(&buf->producer_index, ring) - at) & ring->mask;
	for (; left; left--, at++) {
		/* Both kinds of requests begin with it. */
		memcpy(&wr_id, slot_at(buf, ring, at), sizeof(wr_id));
		if (!complete(files, cq, qp_num, wr_id, opcode(slot_at(buf, ring, at))))
			break;
	}
	__atomic_store_n(&buf->consumer_index, at & ring->mask, __ATOMIC_RELEASE);
}

/* In the order in which they were posted. */
static void end_qp(struct keep_files *files, struct keep_slot *qp)
{
	struct keep_slot *srq = slot_of(files, qp->srq, KEEP_SRQ);
	const struct keep_ring *receives = srq ? &srq->rings[0] : &qp->rings[1];

	if (end_request(files, &qp->send, &qp->rings[0], qp->send_cq, qp->qp_num))
		end_ring(files, &qp->rings[0], qp->send_cq, qp->qp_num, send_opcode);
	if (end_request(files, &qp->recv, receives, qp->recv_cq, qp->qp_num))
		end_ring(files, receives, qp->recv_cq, qp->qp_num, recv_opcode);
}

static void end_rings(struct keep_files *files)
{
	for (uint32_t num = 1; num < files->book->used && num < KEEP_SLOTS; num++) {
		struct keep_slot *slot = &files->book->slots[num];

		if (atomic_load(&slot->kind) == KEEP_QP)
			end_qp(files, slot);
		else if (atomic_load(&slot->kind) == KEEP_SRQ && slot->recv_cq)
			end_ring(files, &slot->rings[0], slot->recv_cq, 0, recv_opcode);
	}
}

/* --- doorbells, and who sleeps --- */

static void end_bells(struct bell_words *words)
{
	atomic_store(&words->quiet, 0);
	for (unsigned int i = 0; i < BELL_WORDS; i++)
		atomic_store(&words->word[i], BELL_NONE);
}

/* Doorbells and requests for events are commands again, which fail. */
static void end_uverbs(const struct keep_memory *memory)
{
	struct uverbs_bells *bells = memory->map;
	struct uverbs_arm *arms = (void *)((char *)memory->map + UVERBS_ARMS_OFFSET);

	if (memory->size < UVERBS_ARMS_OFFSET + UVERBS_ARMS_SIZE)
		return;
	for (unsigned int i = 0; i < UVERBS_BELLS; i++)
		atomic_store(&bells->doorbells[i], DOORBELL_ASK);
	for (unsigned int i = 0; i < UVERBS_ARMS; i++)
		atomic_store(&arms[i].state, 0);
	end_bells(&bells->words);
}

/* Who sleeps looks at the ring when it is woken, and then asks the file. */
static void end_umad(const struct keep_memory *memory)
{
	struct umad_ring *ring = memory->map;

	if (memory->size < sizeof(*ring))
		return;
	atomic_store(&ring->dead, 1);
	end_bells(&ring->bell);
	wake_waiting(&ring->waiting);
}

static void end_events(struct keep_files *files, const struct keep_slot *slot)
{
	struct event_ring *ring = part_at(files, &slot->rings[0], sizeof(*ring));

	if (!ring)
		return;
	atomic_store(&ring->dead, 1);
	wake_waiting(&ring->waiting);
}

static void end_doorbells(struct keep_files *files)
{
	for (uint32_t file = 1; file < files->used; file++) {
		const struct keep_memory *memory = mapped(files, file);

		if (memory && memory->kind == KEEP_UVERBS)
			end_uverbs(memory);
		else if (memory && memory->kind == KEEP_UMAD)
			end_umad(memory);
	}
	/* Who posted before it could see that is seen here. */
	atomic_thread_fence(memory_order_seq_cst);
}

static void end_sleep(struct keep_files *files)
{
	for (uint32_t num = 1; num < files->book->used && num < KEEP_SLOTS; num++)
		if (atomic_load(&files->book->slots[num].kind) == KEEP_EVENTS)
			end_events(files, &files->book->slots[num]);
}

void keeper_end(struct keep_files *files)
{
	const struct timespec round = { .tv_nsec = ROUND_NS };

	end_doorbells(files);
	end_rings(files);
	end_sleep(files);
	for (int i = 0; i < ROUNDS && files->used; i++) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &round, NULL);
		end_rings(files);
	}
}
