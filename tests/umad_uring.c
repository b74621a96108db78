/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reader through io_uring: no system call tells where its buffer is, so a
 * short read gets ENOSPC and an untouched buffer, and the message stays.
 * umad_uring SENDER RECEIVER LID; exits with 77 where io_uring isn't to be had.
 */
#include <linux/io_uring.h>
#include <sys/mman.h>

#include "umad_message.h"

#define MESSAGE	3000

struct ring {
	int fd;
	uint32_t *sq_tail, *sq_array, *cq_head, *cq_tail;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

static void *map(int fd, size_t size, off_t offset)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);

	if (at == MAP_FAILED) {
		perror("io_uring");
		exit(1);
	}
	return at;
}

static struct ring ring_new(void)
{
	struct io_uring_params p = { 0 };
	struct ring ring = { .fd = (int)syscall(SYS_io_uring_setup, 4, &p) };
	char *sq, *cq;

	if (ring.fd < 0)
		exit(77);
	sq = map(ring.fd, p.sq_off.array + p.sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING);
	cq = map(ring.fd, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe),
		 IORING_OFF_CQ_RING);
	ring.sqes = map(ring.fd, p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	ring.sq_tail = (uint32_t *)(sq + p.sq_off.tail);
	ring.sq_array = (uint32_t *)(sq + p.sq_off.array);
	ring.cq_head = (uint32_t *)(cq + p.cq_off.head);
	ring.cq_tail = (uint32_t *)(cq + p.cq_off.tail);
	ring.cqes = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
	return ring;
}

/* One read, one at a time: sqe and cqe are always the next of their ring. */
static int ring_read(struct ring *ring, int fd, void *buf, size_t size, uint8_t flags)
{
	uint32_t tail = *ring->sq_tail, head = *ring->cq_head;
	int ret;

	ring->sqes[tail % 4] = (struct io_uring_sqe){
		.opcode = IORING_OP_READ, .flags = flags, .fd = fd,
		.addr = (uintptr_t)buf, .len = (uint32_t)size, .off = (uint64_t)-1,
	};
	ring->sq_array[tail % 4] = tail % 4;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
	CHECK(syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
	CHECK(__atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE) == head + 1);
	ret = ring->cqes[head % 8].res;
	__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
	return ret;
}

int main(int argc, char **argv)
{
	static const uint8_t modes[] = { 0, IOSQE_ASYNC };
	uint8_t small[HDR + MAD_LEN], big[HDR + MESSAGE];
	struct ring ring = ring_new();
	struct pair pair;

	if (argc != 4)
		return 2;
	from_path = argv[1];
	to_path = argv[2];
	to_lid = (uint16_t)strtoul(argv[3], NULL, 0);
	pair = pair_new(0x42, 0);
	for (uint32_t tid = 1; tid <= 2; tid++) {
		send_message(&pair, tid, MESSAGE);
		CHECK(readable(pair.to, 5000));
		memset(small, 0xee, sizeof(small));
		CHECK(ring_read(&ring, pair.to, small, sizeof(small), modes[tid - 1]) == -ENOSPC);
		for (size_t i = 0; i < sizeof(small); i++)
			if (small[i] != 0xee && CHECK(!"the buffer was touched"))
				break;
		CHECK(ring_read(&ring, pair.to, big, sizeof(big), modes[tid - 1]) == sizeof(big));
		CHECK(holds(big, tid, sizeof(big), MESSAGE));
	}
	return failures != 0;
}
