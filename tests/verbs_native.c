/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A native client: verbs_native MOUNTPOINT [hang]. Makes objects by clone, maps
 * memory, send ring and completion ring, posts and polls them without a system
 * call but the first doorbell; "hang" stops in the middle and waits to be killed.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>

static const char *mnt;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* A new object: its ctl, and its number. */
static int make(const char *kind, char num[16], const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int make(const char *kind, char num[16], const char *fmt, ...)
{
	char path[256], line[256];
	va_list ap;
	ssize_t n;
	int fd, len;

	snprintf(path, sizeof(path), "%s/%s/clone", mnt, kind);
	fd = open(path, O_RDWR);
	if (fd < 0)
		die(path);
	n = pread(fd, num, 15, 0);
	if (n <= 0)
		die("clone's number");
	num[n - 1] = '\0';
	va_start(ap, fmt);
	len = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (write(fd, line, len) != len)
		die(line);
	return fd;
}

static void *map(const char *kind, const char *num, const char *file, int *fd)
{
	char path[256];
	struct stat st;
	void *p;
	size_t size = 1 << 20;

	snprintf(path, sizeof(path), "%s/%s/%s/%s", mnt, kind, num, file);
	*fd = open(path, O_RDWR);
	if (*fd < 0 || fstat(*fd, &st))
		die(path);
	if (strcmp(file, "data"))
		size = 65536;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (p == MAP_FAILED)
		die(path);
	return p;
}

static uint32_t number(const char *kind, const char *num, const char *file)
{
	char path[256], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/%s/%s/%s", mnt, kind, num, file);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		die(path);
	close(fd);
	return strtoul(text, NULL, 0);
}

static void produce(struct rxe_queue_buf *sq, uint32_t n, uint32_t len, uint32_t lkey, uint32_t rkey)
{
	struct rxe_send_wqe *wqe = (void *)(sq->data +
		((size_t)(n & sq->index_mask) << sq->log2_elem_size));

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr.wr_id = n;
	wqe->wr.opcode = IBV_WR_RDMA_WRITE;
	wqe->wr.send_flags = IBV_SEND_SIGNALED;
	wqe->wr.wr.rdma.remote_addr = 0;
	wqe->wr.wr.rdma.rkey = rkey;
	wqe->dma.num_sge = 1;
	wqe->dma.sge[0] = (struct rxe_sge){ 0, len, lkey };
	__atomic_store_n(&sq->producer_index, (n + 1) & sq->index_mask, __ATOMIC_SEQ_CST);
}

/* Spin until a completion is there, for seconds at most. */
static const struct ib_uverbs_wc *consume(struct rxe_queue_buf *cq, uint32_t n)
{
	time_t end = time(NULL) + 20;

	while (__atomic_load_n(&cq->producer_index, __ATOMIC_ACQUIRE) == (n & cq->index_mask)) {
		sched_yield();
		if (time(NULL) > end)
			return NULL;
	}
	return (const void *)(cq->data + ((size_t)(n & cq->index_mask) << cq->log2_elem_size));
}

int main(int argc, char **argv)
{
	char pd[2][16], cqn[2][16], mr[2][16], qp[2][16];
	struct rxe_queue_buf *sq, *cq;
	uint8_t *from, *to;
	int ctl[2], fd, sqfd;
	uint32_t lkey, rkey;

	mnt = argv[1];
	for (int i = 0; i < 2; i++) {
		make("pd", pd[i], "create device=rxe%d", i);
		make("cq", cqn[i], "create device=rxe%d cqe=64", i);
		make("mr", mr[i], "create pd=%s size=1M access=local_write,remote_write", pd[i]);
		ctl[i] = make("qp", qp[i], "create type=rc pd=%s cq=%s sq=16 rq=16", pd[i], cqn[i]);
	}
	if (dprintf(ctl[0], "connect peer=%s", qp[1]) < 0)
		die("connect");
	from = map("mr", mr[0], "data", &fd);
	to = map("mr", mr[1], "data", &fd);
	sq = map("qp", qp[0], "sq", &sqfd);
	cq = map("cq", cqn[0], "ring", &fd);
	if (argc > 2) {
		printf("%s\n", qp[1]);
		fflush(stdout);
		pause();
	}
	lkey = number("mr", mr[0], "lkey");
	rkey = number("mr", mr[1], "rkey");
	for (uint32_t n = 0; n < 1000; n++) {
		const struct ib_uverbs_wc *wc;
		uint32_t len = n * 97 % 100000;

		memset(from, n, len);
		produce(sq, n, len, lkey, rkey);
		/* Left out while the engine looks by itself: the ring says so. */
		if (__atomic_load_n(&sq->pad_1[0], __ATOMIC_SEQ_CST) && write(sqfd, "", 1) != 1)
			die("doorbell");
		wc = consume(cq, n);
		if (!wc || wc->status || wc->wr_id != n || memcmp(from, to, len)) {
			fprintf(stderr, "request %u failed\n", n);
			return 1;
		}
		__atomic_store_n(&cq->consumer_index, (n + 1) & cq->index_mask, __ATOMIC_RELEASE);
	}
	return 0;
}
