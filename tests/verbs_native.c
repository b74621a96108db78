/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A native client: verbs_native MOUNTPOINT [hang]. Makes objects by clone, maps
 * memory, send ring and completion ring, posts and polls them without a system
 * call but the first doorbell; "hang" stops in the middle and waits to be killed.
 */
#include <sched.h>
#include <time.h>

#include "native.h"

static void request(struct rxe_queue_buf *sq, uint32_t n, uint32_t len, uint32_t lkey, uint32_t rkey)
{
	struct rxe_send_wqe *wqe = ring_elem(sq, n);

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr.wr_id = n;
	wqe->wr.opcode = IBV_WR_RDMA_WRITE;
	wqe->wr.send_flags = IBV_SEND_SIGNALED;
	wqe->wr.wr.rdma.remote_addr = 0;
	wqe->wr.wr.rdma.rkey = rkey;
	wqe->dma.num_sge = 1;
	wqe->dma.sge[0] = (struct rxe_sge){ 0, len, lkey };
}

/* Spin until a completion is there, for seconds at most. */
static const struct ib_uverbs_wc *consume(struct rxe_queue_buf *cq, uint32_t n)
{
	time_t end = time(NULL) + 20;
	const struct ib_uverbs_wc *wc;

	while (!(wc = completion(cq, n))) {
		sched_yield();
		if (time(NULL) > end)
			return NULL;
	}
	return wc;
}

int main(int argc, char **argv)
{
	const char *mnt = argv[1];
	char pd[2][16], cqn[2][16], mr[2][16], qp[2][16];
	struct rxe_queue_buf *sq, *cq;
	uint8_t *from, *to;
	int ctl[2], sqfd;
	uint32_t lkey, rkey;

	for (int i = 0; i < 2; i++) {
		make(mnt, "pd", pd[i], "create device=rxe%d", i);
		make(mnt, "cq", cqn[i], "create device=rxe%d cqe=64", i);
		make(mnt, "mr", mr[i], "create pd=%s size=1M access=local_write,remote_write", pd[i]);
		ctl[i] = make(mnt, "qp", qp[i], "create type=rc pd=%s cq=%s sq=16 rq=16", pd[i], cqn[i]);
	}
	if (dprintf(ctl[0], "connect peer=%s", qp[1]) < 0)
		die("connect");
	from = map_file(open_file(mnt, "mr", mr[0], "data", O_RDWR), 1 << 20);
	to = map_file(open_file(mnt, "mr", mr[1], "data", O_RDWR), 1 << 20);
	sqfd = open_file(mnt, "qp", qp[0], "sq", O_RDWR);
	sq = map_ring(sqfd);
	cq = map_ring(open_file(mnt, "cq", cqn[0], "ring", O_RDWR));
	if (argc > 2) {
		printf("%s\n", qp[1]);
		fflush(stdout);
		pause();
	}
	lkey = number(mnt, "mr", mr[0], "lkey");
	rkey = number(mnt, "mr", mr[1], "rkey");
	for (uint32_t n = 0; n < 1000; n++) {
		const struct ib_uverbs_wc *wc;
		uint32_t len = n * 97 % 100000;

		memset(from, n, len);
		request(sq, n, len, lkey, rkey);
		produce(sq, n + 1, sqfd);
		wc = consume(cq, n);
		if (!wc || wc->status || wc->wr_id != n || memcmp(from, to, len)) {
			fprintf(stderr, "request %u failed\n", n);
			return 1;
		}
		consumed(cq, n + 1);
	}
	return 0;
}
