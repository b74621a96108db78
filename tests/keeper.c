/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the keeper does when the daemon dies between any two of its steps, and with
 * rings that a client has spoilt: keeper_end() on a book and on files of the test's.
 */
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ibfs/event_ring.h>
#include <ibfs/umad_ring.h>
#include <ibfs/uverbs_arms.h>
#include <ibfs/uverbs_bells.h>
#include <ibfs/verbs.h>

#include "check.h"
#include "keeper_end.h"

enum {
	PAGE = 4096, CQ_OFF = PAGE, SQ_OFF = 3 * PAGE, RQ_OFF = 5 * PAGE, SIZE = 7 * PAGE,
	CQ_MASK = 7, WQ_MASK = 3, CQ_ELEM = 64, SQ_ELEM = 256, RQ_ELEM = 64, CANARY = 0xa5,
};

/* A program with a completion queue and a queue pair: one file, two slots. */
struct program {
	uint8_t *mem;
	uint32_t file;
	struct rxe_queue_buf *cq, *sq, *rq;
	struct keep_slot *qp, *queue;
};

static struct keep_files *files;

static void *map(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mem == MAP_FAILED)
		exit(1);
	return mem;
}

static uint32_t new_file(size_t size, uint32_t kind, uint8_t **mem)
{
	uint32_t num = files->used++;
	int fd = memfd_create("keeper", MFD_CLOEXEC);

	CHECK(fd > 0 && !ftruncate(fd, (off_t)size));
	*mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*mem == MAP_FAILED)
		exit(1);
	files->memory[num] = (struct keep_memory){ .fd = fd, .kind = kind };
	return num;
}

static struct keep_slot *new_slot(enum keep_kind kind)
{
	struct keep_slot *slot = &files->book->slots[files->book->used++];

	slot->kind = kind;
	return slot;
}

static uint32_t num_of(const struct keep_slot *slot)
{
	return (uint32_t)(slot - files->book->slots);
}

/* Empty rings, in a file whose other bytes are known. */
static struct program begin(void)
{
	struct program p = { 0 };

	p.file = new_file(SIZE, KEEP_RINGS, &p.mem);
	memset(p.mem, CANARY, SIZE);
	memset(p.mem + CQ_OFF, 0, sizeof(*p.cq) + (CQ_MASK + 1) * CQ_ELEM);
	memset(p.mem + SQ_OFF, 0, sizeof(*p.sq) + (WQ_MASK + 1) * SQ_ELEM);
	memset(p.mem + RQ_OFF, 0, sizeof(*p.rq) + (WQ_MASK + 1) * RQ_ELEM);
	p.cq = (void *)(p.mem + CQ_OFF);
	p.sq = (void *)(p.mem + SQ_OFF);
	p.rq = (void *)(p.mem + RQ_OFF);
	p.queue = new_slot(KEEP_CQ);
	p.queue->rings[0] = (struct keep_ring){ CQ_OFF, p.file, CQ_MASK, CQ_ELEM };
	p.qp = new_slot(KEEP_QP);
	p.qp->qp_num = p.qp->send_cq = p.qp->recv_cq = num_of(p.queue);
	p.qp->rings[0] = (struct keep_ring){ SQ_OFF, p.file, WQ_MASK, SQ_ELEM };
	p.qp->rings[1] = (struct keep_ring){ RQ_OFF, p.file, WQ_MASK, RQ_ELEM };
	return p;
}

static void post(struct rxe_queue_buf *ring, uint32_t elem, uint64_t wr_id)
{
	memcpy(ring->data + (ring->producer_index & WQ_MASK) * elem, &wr_id, sizeof(wr_id));
	ring->producer_index = (ring->producer_index + 1) & WQ_MASK;
}

/* These numbers complete, from where the queue was, each as failed. */
static void completed(const struct program *p, uint32_t from, unsigned int num, const uint64_t *wr_ids)
{
	CHECK(((p->cq->producer_index - from) & CQ_MASK) == num);
	for (unsigned int i = 0; i < num; i++) {
		const struct ib_uverbs_wc *wc =
			(const void *)(p->cq->data + ((from + i) & CQ_MASK) * CQ_ELEM);

		CHECK(wc->wr_id == wr_ids[i] && wc->status == IBV_WC_FATAL_ERR);
		CHECK(wc->qp_num == p->qp->qp_num);
	}
}

/* Nothing around the rings was written. */
static void unspoilt(const struct program *p)
{
	static const struct { size_t from, to; } around[] = {
		{ 0, CQ_OFF }, { CQ_OFF + sizeof(struct rxe_queue_buf) + (CQ_MASK + 1) * CQ_ELEM, SQ_OFF },
		{ SQ_OFF + sizeof(struct rxe_queue_buf) + (WQ_MASK + 1) * SQ_ELEM, RQ_OFF },
		{ RQ_OFF + sizeof(struct rxe_queue_buf) + (WQ_MASK + 1) * RQ_ELEM, SIZE },
	};

	for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++)
		for (size_t at = around[i].from; at < around[i].to; at++)
			if (p->mem[at] != CANARY) {
				CHECK(!"nothing else is written");
				return;
			}
}

/* What stands in the rings, in both, at their ends. */
static struct program waiting(void)
{
	struct program p = begin();

	p.sq->consumer_index = p.sq->producer_index = WQ_MASK;
	p.cq->producer_index = p.cq->consumer_index = CQ_MASK;
	post(p.sq, SQ_ELEM, 1);
	post(p.sq, SQ_ELEM, 2);
	post(p.rq, RQ_ELEM, 3);
	return p;
}

/* A receive on its way from its ring, before and after the client sees that. */
static struct program taking(bool seen)
{
	struct program p = begin();

	post(p.rq, RQ_ELEM, 1);
	post(p.rq, RQ_ELEM, 2);
	p.rq->consumer_index = seen;
	p.qp->recv = (struct keep_request){ .wr_id = 1, .next = 1, .state = KEEP_TAKING };
	return p;
}

/* A receive whose completion is on its way, before and after the client sees it. */
static struct program completing(bool seen)
{
	struct program p = begin();

	p.cq->producer_index = p.cq->consumer_index = CQ_MASK;
	p.qp->recv = (struct keep_request){ .wr_id = 1, .at = CQ_MASK + 8, .state = KEEP_COMPLETING };
	if (seen)
		p.cq->producer_index = 0;
	return p;
}

/* The same of a request that was sent: its slot goes back first. */
static struct program retiring(bool back, bool seen)
{
	struct program p = begin();

	post(p.sq, SQ_ELEM, 1);
	p.sq->consumer_index = back;
	p.qp->send = (struct keep_request){ .wr_id = 1, .next = 1, .at = 0, .state = KEEP_RETIRING };
	p.cq->producer_index = seen;
	return p;
}

/* Indices beyond all slots. */
static struct program spoilt(void)
{
	struct program p = begin();

	p.cq->producer_index = 0xfffffff9;	/* 1 */
	p.cq->consumer_index = 0x80000001;
	p.sq->producer_index = 0xffffffff;
	p.sq->consumer_index = 0x7ffffffd;	/* two of them */
	p.rq->producer_index = 0x12345678;
	p.rq->consumer_index = 0xfffffffc;
	p.cq->index_mask = p.sq->index_mask = 0xffffffff;
	p.cq->log2_elem_size = p.sq->log2_elem_size = 30;
	return p;
}

static struct program full(void)
{
	struct program p = begin();

	memset(p.cq->data, 0x11, (CQ_MASK + 1) * CQ_ELEM);
	p.cq->producer_index = CQ_MASK;
	post(p.sq, SQ_ELEM, 1);
	p.qp->recv = (struct keep_request){ .wr_id = 2, .state = KEEP_TAKEN };
	return p;
}

/* A book that isn't right harms nobody either: rings outside their files, slots of another kind. */
static struct program wrong(void)
{
	struct program p = begin();

	post(p.sq, SQ_ELEM, 1);
	post(p.rq, RQ_ELEM, 1);
	p.qp->rings[0].off = SIZE - PAGE;
	p.qp->rings[0].mask = 1023;
	p.qp->rings[1].off = UINT64_MAX - 100;
	p.queue->kind = KEEP_SRQ;
	p.qp->recv = (struct keep_request){ .wr_id = 1, .state = KEEP_TAKEN };
	return p;
}

static struct uverbs_bells *uverbs_pages(struct event_ring **ring)
{
	struct keep_slot *slot = new_slot(KEEP_EVENTS);
	uint8_t *mem;

	slot->rings[0].file = new_file(4 * PAGE, KEEP_UVERBS, &mem);
	slot->rings[0].off = 3 * (uint64_t)PAGE;
	memset(mem, 2, 3 * (size_t)PAGE);
	*ring = (void *)(mem + 3 * (size_t)PAGE);
	(*ring)->waiting = 1;
	return (void *)mem;
}

static void check_uverbs(struct uverbs_bells *bells, const struct event_ring *ring)
{
	const struct uverbs_arm *arms = (void *)((char *)bells + UVERBS_ARMS_OFFSET);

	CHECK(ring->dead == 1 && !ring->waiting);
	for (unsigned int i = 0; i < UVERBS_BELLS; i++)
		CHECK(bells->doorbells[i] == DOORBELL_ASK);
	for (unsigned int i = 0; i < UVERBS_ARMS; i++)
		CHECK(!arms[i].state);
	CHECK(!bell_heard(&bells->words) && !bell_ring(&bells->words));
}

int main(void)
{
	struct program rings, midst[2], ends[2], sent[3], bad, no_room, no_book;
	struct uverbs_bells *bells;
	struct umad_ring *umad;
	struct event_ring *ring;
	uint8_t *mem;

	files = map(sizeof(*files));
	files->book = map(sizeof(*files->book));
	files->used = files->book->used = 1;
	rings = waiting();
	midst[0] = taking(false);
	midst[1] = taking(true);
	ends[0] = completing(false);
	ends[1] = completing(true);
	sent[0] = retiring(false, false);
	sent[1] = retiring(true, false);
	sent[2] = retiring(true, true);
	bad = spoilt();
	no_room = full();
	no_book = wrong();
	bells = uverbs_pages(&ring);
	new_file(sizeof(*umad), KEEP_UMAD, &mem);
	umad = (void *)mem;
	umad->waiting = 1;

	keeper_end(files);
	completed(&rings, CQ_MASK, 3, (uint64_t[]){ 1, 2, 3 });
	CHECK(!rings.sq->consumer_index == !rings.sq->producer_index);
	completed(&midst[0], 0, 2, (uint64_t[]){ 1, 2 });
	completed(&midst[1], 0, 2, (uint64_t[]){ 1, 2 });
	completed(&ends[0], CQ_MASK, 1, (uint64_t[]){ 1 });
	completed(&ends[1], 0, 0, NULL);
	completed(&sent[0], 0, 1, (uint64_t[]){ 1 });
	completed(&sent[1], 0, 1, (uint64_t[]){ 1 });
	completed(&sent[2], 1, 0, NULL);
	completed(&bad, 1, 2, (uint64_t[]){ 0, 0 });
	CHECK(no_room.cq->producer_index == CQ_MASK && no_room.cq->data[0] == 0x11);
	CHECK(!no_room.sq->consumer_index && no_room.qp->recv.state == KEEP_TAKEN);
	completed(&no_book, 0, 0, NULL);
	unspoilt(&rings);
	unspoilt(&bad);
	unspoilt(&no_book);
	check_uverbs(bells, ring);
	CHECK(umad->dead == 1 && !umad->waiting);
	return failed;
}
