/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels and requests for events, by libibverbs: uverbs_events NAME
 * MOUNTPOINT. A QP is an unreliable datagram one that sends to itself; only what
 * it receives completes. Run by ibfs-run. An alarm ends what hangs.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ibfs/event_ring.h>

#include "check.h"

#define SIZE	64
#define GRH	40
#define QKEY	7
#define DEPTH	64

static const char *mnt;

struct own {
	struct ibv_context *ctx;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	uint8_t mem[2 * SIZE + GRH];
};

struct queue {
	struct own *own;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void *must(void *p, const char *what)
{
	if (!p || p == MAP_FAILED) {
		perror(what);
		exit(1);
	}
	return p;
}

/* --- objects --- */

static struct own *own_open(void)
{
	struct own *own = must(calloc(1, sizeof(*own)), "memory");
	struct ibv_ah_attr to = { .port_num = 1 };
	struct ibv_device **list = must(ibv_get_device_list(NULL), "devices");
	struct ibv_port_attr port;

	own->ctx = must(ibv_open_device(must(list[0], "a device")), "open");
	ibv_free_device_list(list);
	own->channel = must(ibv_create_comp_channel(own->ctx), "channel");
	own->pd = must(ibv_alloc_pd(own->ctx), "pd");
	own->mr = must(ibv_reg_mr(own->pd, own->mem, sizeof(own->mem), IBV_ACCESS_LOCAL_WRITE), "mr");
	CHECK(!ibv_query_port(own->ctx, 1, &port));
	to.dlid = port.lid;
	own->ah = must(ibv_create_ah(own->pd, &to), "ah");
	return own;
}

static void own_close(struct own *own)
{
	CHECK(!ibv_destroy_ah(own->ah));
	CHECK(!ibv_dereg_mr(own->mr));
	CHECK(!ibv_dealloc_pd(own->pd));
	CHECK(!ibv_destroy_comp_channel(own->channel));
	CHECK(!ibv_close_device(own->ctx));
	free(own);
}

static struct queue *queue_make(struct own *own)
{
	struct queue *q = must(calloc(1, sizeof(*q)), "memory");
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	q->own = own;
	q->cq = must(ibv_create_cq(own->ctx, DEPTH, q, own->channel, 0), "cq");
	init.send_cq = init.recv_cq = q->cq;
	q->qp = must(ibv_create_qp(own->pd, &init), "qp");
	CHECK(!ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(q->qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return q;
}

static void queue_end(struct queue *q)
{
	CHECK(!ibv_destroy_qp(q->qp));
	CHECK(!ibv_destroy_cq(q->cq));
	free(q);
}

/* One message to itself: one completion. */
static void post_flags(struct queue *q, unsigned int flags)
{
	struct own *own = q->own;
	struct ibv_sge from = { (uintptr_t)own->mem, SIZE, own->mr->lkey };
	struct ibv_sge to = { (uintptr_t)own->mem + SIZE, SIZE + GRH, own->mr->lkey };
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = &to, .num_sge = 1 };
	struct ibv_send_wr *bad, send = {
		.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags,
		.wr.ud = { .ah = own->ah, .remote_qpn = q->qp->qp_num, .remote_qkey = QKEY },
	};

	CHECK(!ibv_post_recv(q->qp, &recv, &bad_recv));
	CHECK(!ibv_post_send(q->qp, &send, &bad));
}

static void post(struct queue *q)
{
	post_flags(q, 0);
}

static void arm_for(struct queue *q, bool solicited)
{
	CHECK(!ibv_req_notify_cq(q->cq, solicited));
}

static void arm(struct queue *q)
{
	arm_for(q, false);
}

static int drain(struct queue *q)
{
	struct ibv_wc wc;
	int n = 0, got;

	while ((got = ibv_poll_cq(q->cq, 1, &wc)) > 0) {
		CHECK(wc.status == IBV_WC_SUCCESS);
		n++;
	}
	CHECK(!got);
	return n;
}

/* The completion of what was posted. */
static void complete(struct queue *q)
{
	while (!drain(q))
		sched_yield();
}

/* Waits for an event, and acknowledges it: whose it is. */
static struct queue *event(struct own *own)
{
	struct ibv_cq *cq;
	void *q;

	int err = ibv_get_cq_event(own->channel, &cq, &q);

	CHECK(!err);
	if (err)
		return NULL;
	ibv_ack_cq_events(cq, 1);
	return q;
}

static bool readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static void set_nonblock(int fd)
{
	CHECK(!fcntl(fd, F_SETFL, O_NONBLOCK));
}

/* --- how it is asked for --- */

static unsigned long requests(void)
{
	unsigned long n = 0;
	char path[300], line[200];
	FILE *file;

	snprintf(path, sizeof(path), "%s/metrics", mnt);
	file = must(fopen(path, "r"), path);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "ibfs_requests_total %lu", &n);
	fclose(file);
	CHECK(n);
	return n;
}

/* No request to the daemon but doorbells, when neither asking nor reading has to wait. */
static void used(struct queue *q)
{
	enum { ROUNDS = 100 };
	unsigned long before;

	arm(q);
	post(q);
	CHECK(event(q->own) == q);
	before = requests();
	for (int i = 0; i < ROUNDS; i++) {
		complete(q);
		arm(q);
		post(q);
		CHECK(event(q->own) == q);
	}
	CHECK(requests() - before < ROUNDS + ROUNDS / 2);
}

/* A REQ_NOTIFY_CQ that the library doesn't see; rxe's CQs have the handle in theirs. */
static void arm_by_command(struct queue *q, bool solicited)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_req_notify_cq req;
	} cmd = {
		{ IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, sizeof(cmd) / 4, 0 },
		{ q->cq->handle, solicited },
	};

	CHECK(syscall(SYS_write, q->own->ctx->cmd_fd, &cmd, sizeof(cmd)) == sizeof(cmd));
}

/* Two completions, of which the first one has an event. */
static void one_event(struct queue *q)
{
	post(q);
	post(q);
	for (int n = 0; n < 2; n += drain(q))
		sched_yield();
	CHECK(event(q->own) == q);
	CHECK(!readable(q->own->channel->fd));
}

/* By memory, by command, by both: one event. */
static void ways(struct queue *q)
{
	for (int i = 0; i < 50; i++) {
		arm(q);
		one_event(q);
		arm_by_command(q, false);
		one_event(q);
		arm(q);
		arm_by_command(q, false);
		one_event(q);
		arm_by_command(q, true);
		arm(q);
		arm(q);
		one_event(q);
	}
}

static void solicited(struct queue *q)
{
	int fd = q->own->channel->fd;

	for (int way = 0; way < 2; way++) {
		if (way)
			arm_by_command(q, true);
		else
			arm_for(q, true);
		post(q);
		complete(q);
		CHECK(!readable(fd));
		post_flags(q, IBV_SEND_SOLICITED);
		CHECK(event(q->own) == q);
		complete(q);
		/* Whoever wants all isn't made to want less. */
		arm(q);
		arm_for(q, true);
		post(q);
		CHECK(event(q->own) == q);
		complete(q);
	}
	CHECK(!readable(fd));
	CHECK(syscall(SYS_write, q->own->ctx->cmd_fd, "", 0) <= 0);
}

/* What was there, and polled, before the request is no reason for an event. */
static void late(struct queue *q)
{
	for (int i = 0; i < 2000; i++) {
		post(q);
		complete(q);
		arm(q);
		CHECK(!readable(q->own->channel->fd));
		post(q);
		CHECK(event(q->own) == q);
		complete(q);
	}
}

/* As many, now or later. */
static void take(struct queue *q, int n)
{
	struct ibv_wc wc;

	while (n) {
		int got = ibv_poll_cq(q->cq, 1, &wc);

		CHECK(got >= 0);
		if (!got)
			sched_yield();
		n -= !!got;
	}
}

/* One more completion, there by now, that isn't polled. */
static void leave(struct queue *q, unsigned int flags)
{
	post_flags(q, flags);
	usleep(1000);
}

/*
 * A completion that is there unpolled when the event is asked for has one, if it
 * hasn't had one, and if it is of the kind that is asked for.
 */
static void missed(struct queue *q)
{
	int fd = q->own->channel->fd;

	for (int i = 0; i < 20; i++) {
		void (*ask)(struct queue *q, bool solicited) = i & 1 ? arm_by_command : arm_for;

		leave(q, 0);
		ask(q, false);
		CHECK(event(q->own) == q);
		ask(q, false);
		CHECK(!readable(fd));
		take(q, 1);
		post(q);
		CHECK(event(q->own) == q);

		leave(q, 0);
		ask(q, true);
		CHECK(!readable(fd));
		post_flags(q, IBV_SEND_SOLICITED);
		CHECK(event(q->own) == q);
		take(q, 3);

		leave(q, IBV_SEND_SOLICITED);
		leave(q, 0);
		CHECK(!ibv_resize_cq(q->cq, i & 2 ? DEPTH : 4 * DEPTH));
		ask(q, true);
		CHECK(event(q->own) == q);
		take(q, 2);
		ask(q, true);
		CHECK(!readable(fd));

		leave(q, IBV_SEND_SOLICITED);
		CHECK(event(q->own) == q);
		leave(q, IBV_SEND_SOLICITED);
		leave(q, 0);
		take(q, 2);
		ask(q, true);
		CHECK(!readable(fd));
		ask(q, false);
		CHECK(event(q->own) == q);
		take(q, 1);
	}
}

struct race {
	struct queue *q;
	atomic_int turn, stop;
};

static void *race_posts(void *arg)
{
	struct race *race = arg;
	unsigned int seed = 1;

	for (int done = 0; !race->stop; ) {
		if (race->turn == done)
			continue;
		for (volatile int i = rand_r(&seed) % 2000; i > 0; i--)
			;
		post(race->q);
		done++;
	}
	return NULL;
}

/*
 * Each completion is found by who looks after it asked, or by its event: one
 * that is lost hangs. An event may come late, when its completion was seen before.
 */
static void race(struct queue *q)
{
	struct race race = { .q = q };
	pthread_t poster;

	CHECK(!pthread_create(&poster, NULL, race_posts, &race));
	for (int i = 0; i < 5000; i++) {
		race.turn++;
		arm(q);
		while (!drain(q))
			CHECK(event(q->own) == q);
	}
	race.stop = 1;
	pthread_join(poster, NULL);
	/* The one that may be on its way, and then no more. */
	arm_by_command(q, false);
	if (readable(q->own->channel->fd))
		event(q->own);
	CHECK(!readable(q->own->channel->fd));
}

/* --- who reads --- */

enum { COMPETE = 2000 };

struct readers {
	struct own *own;
	atomic_int events;
};

static void *read_events(void *arg)
{
	struct readers *readers = arg;

	do {
		CHECK(event(readers->own));
	} while (++readers->events <= COMPETE);
	return NULL;
}

/* At the file itself, which the library doesn't see. */
static void *read_file(void *arg)
{
	struct readers *readers = arg;
	struct ib_uverbs_comp_event_desc desc;

	do {
		CHECK(syscall(SYS_read, readers->own->channel->fd, &desc, sizeof(desc)) ==
		      sizeof(desc));
		ibv_ack_cq_events((struct ibv_cq *)(uintptr_t)desc.cq_handle, 1);
	} while (++readers->events <= COMPETE);
	return NULL;
}

/* Two that read as programs do, and one at the file: each event once. */
static void compete(struct queue *q)
{
	struct readers readers = { .own = q->own };
	pthread_t thread[3];

	for (int i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, i == 2 ? read_file : read_events, &readers));
	/* The last three end one of them each. */
	for (int i = 0; i < COMPETE + 3; i++) {
		arm(q);
		post(q);
		complete(q);
		while (readers.events < i + 1)
			sched_yield();
		CHECK(readers.events == i + 1);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	CHECK(!readable(q->own->channel->fd));
}

static void *post_late(void *arg)
{
	usleep(20000);
	post(arg);
	return NULL;
}

/* Threads that sleep in poll(), epoll and read(), in turns. */
static void mixed(struct queue *q)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	struct pollfd pfd = { .fd = q->own->channel->fd, .events = POLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC);
	pthread_t poster;

	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, pfd.fd, &ev));
	for (int i = 0; i < 12; i++) {
		arm(q);
		CHECK(!pthread_create(&poster, NULL, post_late, q));
		if (i % 3 == 0)
			CHECK(poll(&pfd, 1, 10000) == 1 && pfd.revents & POLLIN);
		else if (i % 3 == 1)
			CHECK(epoll_wait(ep, &ev, 1, 10000) == 1);
		CHECK(event(q->own) == q);
		CHECK(!poll(&pfd, 1, 0));
		if (i % 3 != 1)
			epoll_wait(ep, &ev, 1, 0);
		pthread_join(poster, NULL);
		complete(q);
	}
	close(ep);
}

static atomic_int signals, channel_tid;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

/* One of these is cancelled, which ASan doesn't hear of. */
__attribute__((no_sanitize("address"))) static void *sleep_for_event(void *arg)
{
	struct queue *q = arg;
	struct ib_uverbs_comp_event_desc desc;

	channel_tid = gettid();
	errno = 0;
	if (read(q->own->channel->fd, &desc, sizeof(desc)) < 0)
		return (void *)(intptr_t)errno;
	ibv_ack_cq_events(q->cq, 1);
	return NULL;
}

/* Until the thread sleeps in read(2) or futex_waitv(2). */
static void wait_until_asleep(void)
{
	char path[64], line[16] = "";

	for (int i = 0; i < 20000; i++) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", channel_tid);
		file = channel_tid ? fopen(path, "r") : NULL;
		if (file) {
			if (!fgets(line, sizeof(line), file))
				line[0] = '\0';
			fclose(file);
			if (atoi(line) == SYS_futex_waitv || (line[0] == '0' && line[1] == ' '))
				return;
		}
		usleep(500);
	}
	CHECK(!"asleep");
}

static pthread_t sleeper(struct queue *q)
{
	pthread_t thread;

	channel_tid = 0;
	CHECK(!pthread_create(&thread, NULL, sleep_for_event, q));
	wait_until_asleep();
	return thread;
}

static void handle_signal(int flags)
{
	struct sigaction act = { .sa_handler = on_signal, .sa_flags = flags };

	CHECK(!sigaction(SIGUSR1, &act, NULL));
}

/* A signal ends the wait, or doesn't where its handler says so; so does a cancellation. */
static void signalled(struct queue *q)
{
	pthread_t thread;
	void *ret;

	handle_signal(0);
	thread = sleeper(q);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, &ret);
	CHECK((intptr_t)ret == EINTR);

	handle_signal(SA_RESTART);
	thread = sleeper(q);
	pthread_kill(thread, SIGUSR1);
	while (signals < 2)
		sched_yield();
	wait_until_asleep();
	arm(q);
	post(q);
	pthread_join(thread, &ret);
	CHECK(!ret);
	complete(q);

	thread = sleeper(q);
	CHECK(!pthread_cancel(thread));
	pthread_join(thread, &ret);
	CHECK(ret == PTHREAD_CANCELED);
	arm(q);
	post(q);
	CHECK(event(q->own) == q);
}

/* --- descriptors --- */

static int pass(int fd)
{
	union {
		struct cmsghdr head;
		char buf[CMSG_SPACE(sizeof(fd))];
	} control = { .head = {
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fd)),
	} };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control.buf, .msg_controllen = sizeof(control.buf),
	};
	int pair[2];

	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	CHECK(sendmsg(pair[0], &msg, 0) == 1);
	CHECK(recvmsg(pair[1], &msg, 0) == 1);
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	close(pair[0]);
	close(pair[1]);
	return fd;
}

static void read_one(struct queue *q, int fd)
{
	struct ib_uverbs_comp_event_desc desc = { 0 };

	CHECK(read(fd, &desc, sizeof(desc)) == sizeof(desc));
	CHECK(desc.cq_handle == (uintptr_t)q->cq);
	ibv_ack_cq_events(q->cq, 1);
}

/* Other names of the channel, each of which has its events, now or later. */
static void names(struct queue *q)
{
	int fd = q->own->channel->fd, other[2] = { dup(fd), pass(fd) };
	pthread_t poster;
	int status;
	pid_t pid;

	for (int i = 0; i < 2; i++) {
		arm(q);
		post(q);
		read_one(q, other[i]);
		complete(q);
		arm(q);
		CHECK(!pthread_create(&poster, NULL, post_late, q));
		read_one(q, other[i]);
		pthread_join(poster, NULL);
		complete(q);
		CHECK(!readable(fd));
	}
	arm(q);
	post(q);
	pid = fork();
	if (!pid) {
		read_one(q, fd);
		_exit(failed);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(!readable(fd));
	ibv_ack_cq_events(q->cq, 1);	/* the child's was its own copy's */
	complete(q);
	close(other[0]);
	close(other[1]);
	/* Another file's number, behind the library's back, is that file's. */
	CHECK(!pipe(other));
	arm(q);
	post(q);
	complete(q);
	status = dup(fd);
	CHECK(dup2(other[0], fd) == fd && write(other[1], "12345678", 8) == 8);
	CHECK(read(fd, &(char [8]){ 0 }, 8) == 8);
	CHECK(dup2(status, fd) == fd);
	read_one(q, fd);
	close(status);
	close(other[0]);
	close(other[1]);
}

/* What read() refuses leaves the event where it is. */
static void refused(struct queue *q)
{
	int fd = q->own->channel->fd;
	char buf[8], *page;

	page = must(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	set_nonblock(fd);
	errno = 0;
	CHECK(read(fd, buf, 8) == -1 && errno == EAGAIN);
	arm(q);
	post(q);
	complete(q);
	errno = 0;
	CHECK(read(fd, buf, 4) == -1 && errno == EINVAL);
	CHECK(read(fd, page, 8) == -1 && errno == EFAULT);
	CHECK(!fcntl(fd, F_SETFL, 0));
	CHECK(event(q->own) == q);
}

/* --- many events, many queues --- */

/* Far more events than a ring holds, of two queues in turns: all of them, in order. */
static void overflow(struct queue *q)
{
	enum { EVENTS = 2000 };
	struct queue *both[2] = { q, queue_make(q->own) };

	for (int i = 0; i < EVENTS; i++) {
		arm(both[i & 1]);
		post(both[i & 1]);
		complete(both[i & 1]);
	}
	for (int i = 0; i < EVENTS; i++)
		CHECK(event(q->own) == both[i & 1]);
	CHECK(!readable(q->own->channel->fd));
	queue_end(both[1]);
}

/* A queue that goes takes its events along, and no other's; those read were counted. */
static void shared(struct queue *q)
{
	for (int round = 0; round < 20; round++) {
		struct queue *other = queue_make(q->own);

		for (int i = 0; i < 10 + round * 20; i++) {
			struct queue *next = i % 3 ? q : other;

			arm(next);
			post(next);
			complete(next);
		}
		for (int i = 0; i < 5; i++)
			CHECK(event(q->own) == (i % 3 ? q : other));
		queue_end(other);
		for (int i = 5; i < 10 + round * 20; i++)
			if (i % 3)
				CHECK(event(q->own) == q);
		CHECK(!readable(q->own->channel->fd));
	}
}

/* --- strangers --- */

/* One that is killed asleep; its channel was shared with nobody. */
static void killed(struct queue *q)
{
	int ready[2];
	pid_t pid;

	CHECK(!pipe(ready));
	pid = fork();
	if (!pid) {
		struct queue *own = queue_make(own_open());

		arm(own);
		CHECK(write(ready[1], "", 1) == 1);
		event(own->own);
		_exit(1);
	}
	CHECK(read(ready[0], &(char){ 0 }, 1) == 1);
	usleep(20000);
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
	arm(q);
	post(q);
	CHECK(event(q->own) == q);
	close(ready[0]);
	close(ready[1]);
}

/* Words that are shared with the daemon: the pages of requests and of the channel. */
static unsigned int find_words(uint32_t **words)
{
	unsigned long from, to, off;
	unsigned int n = 0;
	char line[500];
	FILE *file = must(fopen("/proc/self/maps", "r"), "maps");

	while (n < 4 && fgets(line, sizeof(line), file))
		if (strstr(line, "/infiniband/uverbs") && sscanf(line, "%lx-%lx %*s %lx", &from, &to, &off) == 3 &&
		    (!off || ((uint32_t *)from)[0] == EVENT_RING_MAGIC))
			words[n++] = (uint32_t *)(to - 4096);
	fclose(file);
	return n;
}

/* It spoils what it shares: nobody else notices, and it isn't waited for. */
static void hostile(struct queue *q)
{
	uint32_t *words[4];
	unsigned int n, seed = 7;

	set_nonblock(q->own->channel->fd);
	arm(q);
	post(q);
	complete(q);
	n = find_words(words);
	CHECK(n == 2);
	for (int i = 0; n && i < 3000; i++) {
		uint64_t desc;
		struct ibv_wc wc;

		for (int k = 0; k < 8; k++)
			words[rand_r(&seed) % n][rand_r(&seed) % (i & 1 ? 48 : 1024)] =
				rand_r(&seed) % 3 ? (uint32_t)rand_r(&seed) : (uint32_t)i % 300;
		if (i % 100 == 99)
			arm_by_command(q, i & 64);
		else
			ibv_req_notify_cq(q->cq, i & 64);
		post(q);
		while (ibv_poll_cq(q->cq, 1, &wc) == 1)
			;
		if (i % 5 == 0 && read(q->own->channel->fd, &desc, 8) == 8)
			continue;
		readable(q->own->channel->fd);
	}
	_exit(failed);
}

static const struct {
	const char *name;
	void (*run)(struct queue *q);
} tests[] = {
	{ "used", used }, { "ways", ways }, { "solicited", solicited }, { "late", late },
	{ "missed", missed },
	{ "race", race }, { "compete", compete }, { "mixed", mixed }, { "signal", signalled },
	{ "names", names }, { "refused", refused }, { "overflow", overflow }, { "shared", shared },
	{ "killed", killed }, { "hostile", hostile },
};

int main(int argc, char **argv)
{
	struct queue *q;
	struct own *own;

	mnt = argv[argc - 1];
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (argc != 3 || strcmp(tests[i].name, argv[1]))
			continue;
		alarm(60);
		own = own_open();
		q = queue_make(own);
		tests[i].run(q);
		queue_end(q);
		own_close(own);
		return failed;
	}
	fprintf(stderr, "usage: uverbs_events NAME MOUNTPOINT\n");
	return 2;
}
