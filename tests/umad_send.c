/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MADs left in a umad file's ring under ibfs-run, one named test each:
 * umad_send NAME UMAD RECEIVER LID. "raw" is what the preloaded library doesn't
 * see: a write to the file by a system call alone.
 */
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include <ibfs/umad_ring.h>

#include "umad_message.h"

#define MANY		20000
#define PERF		0x04		/* PerfMgt */
#define METHOD_TRAP	0x05

typedef ssize_t write_fn(int fd, const void *buf, size_t size);

static ssize_t raw_write(int fd, const void *buf, size_t size)
{
	return syscall(SYS_write, fd, buf, size);
}

/* Both ways by turns: what comes next must not depend on it. */
static ssize_t mixed_write(int fd, const void *buf, size_t size)
{
	static atomic_uint turn;

	return atomic_fetch_add(&turn, 1) & 1 ? raw_write(fd, buf, size) : write(fd, buf, size);
}

static write_fn *const ways[] = { write, raw_write, mixed_write };
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static bool send_info(write_fn *way, int fd, int agent, uint32_t tid)
{
	struct mad mad;

	node_info(&mad, agent, tid);
	return way(fd, &mad, sizeof(mad)) == sizeof(mad);
}

/* The answer of this TID is the next that comes. */
static bool answered(int fd, uint32_t tid)
{
	struct mad mad;

	return CHECK(readable(fd, 5000)) && CHECK(read(fd, &mad, sizeof(mad)) == sizeof(mad)) &&
	       CHECK(get32(mad.data + 12) == tid && !mad.hdr.status);
}

static void exchange(write_fn *way, int fd, int agent, uint32_t count)
{
	for (uint32_t tid = 1; tid <= count; tid++)
		if (!CHECK(send_info(way, fd, agent, tid)) || !answered(fd, tid))
			return;
}

/* A file whose MADs may be left in the ring from now on, and its agent on QP 0. */
static int open_warm(int flags, int *agent)
{
	int fd = must_open(from_path, O_RDWR);

	*agent = add_sender(fd, 0);
	exchange(write, fd, *agent, 100);
	if (flags)
		CHECK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | flags) == 0);
	return fd;
}

static void test_used(void)
{
	int agent, fd = open_warm(0, &agent);
	long before = daemon_requests();

	exchange(write, fd, agent, 1000);
	CHECK(daemon_requests() - before < 100);
}

/* --- errors --- */

/* Two hops, the second out of an empty port of the switch. */
static void lost_request(struct mad *mad, int agent, uint32_t tid, uint32_t timeout_ms)
{
	static const uint8_t path[] = { 1, 200 };

	node_info(mad, agent, tid);
	mad->hdr.timeout_ms = timeout_ms;
	dr_smp(mad->data, tid, 0x0011, 2, path);
}

struct wrong {
	const char *what;
	int err;
	size_t size;
	size_t at;			/* which byte is wrong, and how */
	uint8_t value;
};

#define IN_HDR(field)	offsetof(struct ib_user_mad_hdr, field)
#define IN_MAD(byte)	(HDR + (byte))

static const struct wrong wrongs[] = {
	{ "id 32", EINVAL, HDR + MAD_LEN, IN_HDR(id), 32 },
	{ "no agent", EIO, HDR + MAD_LEN, IN_HDR(id), 31 },
	{ "short", EINVAL, HDR + 35, IN_MAD(3), 1 },
	{ "long", EINVAL, HDR + MAD_LEN + 1, IN_MAD(3), 1 },
	{ "pkey index", EINVAL, HDR + MAD_LEN, IN_HDR(pkey_index) + 1, 200 },
	{ "hop pointer", EINVAL, HDR + MAD_LEN, IN_MAD(6), 3 },
	{ "hop count", EINVAL, HDR + MAD_LEN, IN_MAD(7), 64 },
	{ "no way out", EINVAL, HDR + MAD_LEN, IN_MAD(7), 1 },
	{ "no end", EINVAL, HDR + MAD_LEN, IN_MAD(34), 0 },
	{ NULL, 0, 0, 0, 0 },
};

static void check_wrongs(write_fn *way, int fd, int agent)
{
	struct mad mad[2] = { 0 };

	for (const struct wrong *wrong = wrongs; wrong->what; wrong++) {
		fprintf(stderr, "%s\n", wrong->what);
		node_info(mad, agent, 1000);
		((uint8_t *)mad)[wrong->at] = wrong->value;
		CHECK_ERR(way(fd, mad, wrong->size), wrong->err);
		exchange(way, fd, agent, 2);
	}
}

/* One on its way is all that there may be of a TID, however it was sent. */
static void check_duplicate(write_fn *first, write_fn *second, int fd, int agent)
{
	struct mad mad, other;

	lost_request(&mad, agent, 77, 100);
	CHECK(first(fd, &mad, sizeof(mad)) == sizeof(mad));
	CHECK_ERR(second(fd, &mad, sizeof(mad)), EINVAL);
	/* Another TID that is counted in the same place, as the layout has it. */
	lost_request(&other, agent, 77 + UMAD_RING_FLIGHTS, 100);
	CHECK(second(fd, &other, sizeof(other)) == sizeof(other));
	for (int i = 0; i < 2; i++) {
		CHECK(readable(fd, 10000));
		CHECK(read(fd, &mad, sizeof(mad)) == HDR + 24);
		CHECK(mad.hdr.status == ETIMEDOUT && mad.hdr.timeout_ms == 100);
	}
	exchange(second, fd, agent, 2);
	lost_request(&mad, agent, 77, 1);
	CHECK(second(fd, &mad, sizeof(mad)) == sizeof(mad));
	CHECK(readable(fd, 10000) && read(fd, &mad, sizeof(mad)) == HDR + 24);
}

static void test_errors(void)
{
	int agent, fd = open_warm(0, &agent);

	for (size_t i = 0; i < WAYS; i++) {
		check_wrongs(ways[i], fd, agent);
		for (size_t j = 0; j < WAYS; j++)
			check_duplicate(ways[i], ways[j], fd, agent);
	}
	/* Unregistered, and another's id at once. */
	for (size_t i = 0; i < WAYS; i++) {
		CHECK_ERR(unreg(fd, (uint32_t)agent), 0);
		CHECK(!send_info(ways[i], fd, agent, 5) && errno == EIO);
		CHECK(add_sender(fd, 1) == agent);
		CHECK_ERR(unreg(fd, (uint32_t)agent), 0);
		CHECK(add_sender(fd, 0) == agent);
		exchange(ways[i], fd, agent, 3);
	}
}

/* Memory that can't be read or written. */
static void test_addresses(void)
{
	int agent, fd = open_warm(0, &agent);
	uint8_t *pages = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *end = pages + 8192;
	struct mad *mad = (struct mad *)(pages + 4096 - sizeof(*mad) / 2);
	struct pollfd *pfd = (struct pollfd *)(end - sizeof(*pfd)), *volatile low = (struct pollfd *)8;

	CHECK(pages != MAP_FAILED && !mprotect(end, 4096, PROT_NONE));
	for (size_t i = 0; i < WAYS; i++) {
		CHECK_ERR(ways[i](fd, NULL, sizeof(*mad)), EFAULT);
		CHECK_ERR(ways[i](fd, (void *)8, sizeof(*mad)), EFAULT);
		CHECK_ERR(ways[i](fd, end, sizeof(*mad)), EFAULT);
		/* Across two pages, at an address that is not aligned, and in a page that is read-only. */
		node_info(mad, agent, 9);
		CHECK(ways[i](fd, mad, sizeof(*mad)) == sizeof(*mad) && answered(fd, 9));
		memmove((char *)mad + 1, mad, sizeof(*mad));
		CHECK(ways[i](fd, (char *)mad + 1, sizeof(*mad)) == sizeof(*mad) && answered(fd, 9));
		memmove(mad, (char *)mad + 1, sizeof(*mad));
		CHECK(!mprotect(pages, 8192, PROT_READ));
		CHECK(ways[i](fd, mad, sizeof(*mad)) == sizeof(*mad) && answered(fd, 9));
		CHECK(!mprotect(pages, 8192, PROT_READ | PROT_WRITE));
	}
	for (int full = 0; full < 2; full++) {
		for (int timeout = 0; timeout < 100; timeout += 50) {
			CHECK_ERR(poll(low, 1, timeout), EFAULT);
			CHECK_ERR(poll((struct pollfd *)end, 1, timeout), EFAULT);
			CHECK_ERR(poll(pfd, 2, timeout), EFAULT);
		}
		*pfd = (struct pollfd){ .fd = fd, .events = POLLIN };
		CHECK(poll(pfd, 1, full ? 5000 : 0) == full && pfd->revents == (full ? POLLIN : 0));
		CHECK(!mprotect(pages, 8192, PROT_READ));
		CHECK_ERR(poll(pfd, 1, 0), EFAULT);
		CHECK(!mprotect(pages, 8192, PROT_READ | PROT_WRITE));
		if (!full)
			CHECK(send_info(write, fd, agent, 1));
	}
	CHECK(answered(fd, 1));
	munmap(pages, 12288);
}

/* --- order, and who sends --- */

static void test_order(void)
{
	int agent, fd = open_warm(O_NONBLOCK, &agent);
	struct mad mad;

	/* More than the ring has room for, and nobody reads. */
	for (size_t i = 0; i < WAYS; i++) {
		for (uint32_t tid = 1; tid <= 1000; tid++)
			CHECK(send_info(tid % 7 ? ways[i] : mixed_write, fd, agent, tid));
		for (uint32_t tid = 1; tid <= 1000; tid++)
			if (!answered(fd, tid))
				return;
		CHECK_ERR(read(fd, &mad, sizeof(mad)), EAGAIN);
	}
}

struct sender {
	pthread_t thread;
	write_fn *way;
	int fd, agent;
	uint32_t first;
};

static void *send_many(void *arg)
{
	struct sender *sender = arg;

	for (uint32_t i = 0; i < MANY; i++)
		if (!CHECK(send_info(sender->way, sender->fd, sender->agent, sender->first + i)))
			break;
	return NULL;
}

/* Every answer once, and each sender's in order. */
static void receive_all(int fd, unsigned int senders)
{
	uint32_t next[4] = { 0 }, tid;
	struct mad mad;

	for (uint32_t left = senders * MANY; left; left--) {
		if (!CHECK(readable(fd, 5000)) || !CHECK(read(fd, &mad, sizeof(mad)) == sizeof(mad)))
			return;
		tid = get32(mad.data + 12);
		if (!CHECK(tid / MANY < senders && tid % MANY == next[tid / MANY]++ && !mad.hdr.status))
			return;
	}
	CHECK(!readable(fd, 0));
}

static void test_two_threads(void)
{
	int agent, fd = open_warm(0, &agent);
	struct sender senders[] = {
		{ .way = write }, { .way = write }, { .way = raw_write }, { .way = mixed_write },
	};
	unsigned int n = sizeof(senders) / sizeof(senders[0]);

	for (unsigned int i = 0; i < n; i++) {
		senders[i].fd = fd;
		senders[i].agent = agent;
		senders[i].first = i * MANY;
		pthread_create(&senders[i].thread, NULL, send_many, &senders[i]);
	}
	receive_all(fd, n);
	for (unsigned int i = 0; i < n; i++)
		pthread_join(senders[i].thread, NULL);
}

static void test_forked(void)
{
	int agent, fd = open_warm(0, &agent), status;
	struct sender sender = { .way = write, .fd = fd, .agent = agent, .first = 0 };
	pid_t child = fork();

	if (!child) {
		sender.first = MANY;
		send_many(&sender);
		_exit(failures != 0);
	}
	pthread_create(&sender.thread, NULL, send_many, &sender);
	receive_all(fd, 2);
	pthread_join(sender.thread, NULL);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* --- interrupted --- */

static int handler_fd, handler_agent;
static volatile sig_atomic_t handled;

static void on_alarm(int sig)
{
	int saved = errno;

	(void)sig;
	if (send_info(write, handler_fd, handler_agent, MANY + (uint32_t)handled))
		handled++;
	errno = saved;
}

/* A handler that writes may find the one that it interrupted in the middle of it. */
static void test_handler(void)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerspec often = { .it_value.tv_nsec = 50000, .it_interval.tv_nsec = 50000 };
	uint32_t tid, own = 0, theirs = MANY;
	timer_t timer;
	struct mad mad;

	handler_fd = open_warm(0, &handler_agent);
	sigaction(SIGALRM, &action, NULL);
	CHECK(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0);
	timer_settime(timer, 0, &often, NULL);
	for (uint32_t i = 0; i < MANY; i++)
		if (!CHECK(send_info(write, handler_fd, handler_agent, i)))
			break;
	timer_delete(timer);
	signal(SIGALRM, SIG_IGN);
	CHECK(handled > 0);
	while (own < MANY || theirs < MANY + (uint32_t)handled) {
		if (!CHECK(readable(handler_fd, 5000)) ||
		    !CHECK(read(handler_fd, &mad, sizeof(mad)) == sizeof(mad)))
			return;
		tid = get32(mad.data + 12);
		if (!CHECK(tid == (tid < MANY ? own++ : theirs++)))
			return;
	}
}

/* Killed anywhere, in the middle of leaving one, too: who shares the file goes on. */
static void test_killed(void)
{
	int agent, fd = open_warm(O_NONBLOCK, &agent), status;
	struct mad mad;

	for (int round = 0; round < 100; round++) {
		pid_t child = fork();

		if (!child)
			for (uint32_t tid = 0;; tid++)
				send_info(write, fd, agent, tid);
		CHECK(readable(fd, 5000));
		usleep((unsigned int)round * 7);
		kill(child, SIGKILL);
		CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
		/* What it left last may be on its way. */
		CHECK(send_info(raw_write, fd, agent, 0x80000000U + (uint32_t)round));
		do {
			if (!CHECK(readable(fd, 5000)))
				return;
			CHECK(read(fd, &mad, sizeof(mad)) == sizeof(mad));
		} while (get32(mad.data + 12) != 0x80000000U + (uint32_t)round);
		exchange(write, fd, agent, 10);
	}
}

/* Until it is killed. */
static void test_busy(void)
{
	int agent, fd = open_warm(0, &agent);

	puts("ready");
	fflush(stdout);
	for (;;)
		exchange(write, fd, agent, MANY);
}

/* --- a client of its own --- */

/* A raw file, its ring, and an agent for PerfMgt. */
static struct umad_ring *raw_ring(int *fd, int *agent)
{
	struct umad_ring_file file;
	struct umad_ring *ring;
	char path[64];
	int ev;

	*fd = (int)syscall(SYS_openat, AT_FDCWD, from_path, O_RDWR | O_NONBLOCK);
	if (!CHECK(*fd >= 0 && ioctl(*fd, IBFS_UMAD_RING, &file) == 0))
		exit(1);
	*agent = add_sender(*fd, 1);
	snprintf(path, sizeof(path), "/dev/infiniband/ev/%u", file.name);
	ev = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR);
	ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED, ev, 0);
	close(ev);
	if (!CHECK(ring != MAP_FAILED))
		exit(1);
	atomic_store(&ring->mapped, 1);
	return ring;
}

/* An agent of the receiver that gets PerfMgt's traps, which nobody sends. */
static int trap_receiver(void)
{
	struct ib_user_mad_reg_req2 req = {
		.qpn = 1, .mgmt_class = PERF, .mgmt_class_version = 1,
		.method_mask = { 1 << METHOD_TRAP },
	};
	int fd = must_open(to_path, O_RDWR);

	CHECK_ERR(reg_new(fd, &req), 0);
	return fd;
}

static void make_trap(struct mad *mad, int agent, uint32_t tid)
{
	memset(mad, 0, sizeof(*mad));
	mad->hdr.id = (uint32_t)agent;
	mad->hdr.lid = htons(to_lid);
	mad->hdr.qpn = htonl(1);
	mad->hdr.qkey = htonl(QKEY_GSI);
	mad_init(mad->data, PERF, 1, METHOD_TRAP, tid, 0x0001);
}

/* As the library does, but nobody is told. */
static void leave_quietly(struct umad_ring *ring, const struct mad *mad)
{
	uint64_t sent = atomic_load(&ring->sent);
	struct umad_ring_send *slot = &ring->out[sent % UMAD_RING_SENDS];

	memcpy(slot->data, mad, sizeof(*mad));
	slot->len = sizeof(*mad);
	atomic_store(&ring->sent, sent + 1);
}

static void check_traps(int to, uint32_t count)
{
	struct mad mad;

	for (uint32_t tid = 1; tid <= count; tid++) {
		CHECK(readable(to, 5000) && read(to, &mad, sizeof(mad)) == sizeof(mad));
		if (!CHECK(get32(mad.data + 12) == tid))
			return;
	}
	CHECK(!readable(to, 0));
}

/* What was left counts as written: it goes out, whatever happens next. */
static void test_left(void)
{
	int to = trap_receiver(), fd, agent;
	struct umad_ring *ring;
	struct mad mad;

	for (int end = 0; end < 4; end++) {
		ring = raw_ring(&fd, &agent);
		for (uint32_t tid = 1; tid <= UMAD_RING_SENDS; tid++) {
			make_trap(&mad, agent, tid);
			leave_quietly(ring, &mad);
		}
		make_trap(&mad, agent, UMAD_RING_SENDS + 1);
		if (end == 0)		/* a write comes after it, */
			CHECK(raw_write(fd, &mad, sizeof(mad)) == sizeof(mad));
		else if (end == 1)	/* any request makes the daemon look, */
			CHECK(!readable(fd, 0));
		else if (end == 2)	/* the agent goes after it, */
			CHECK_ERR(unreg(fd, (uint32_t)agent), 0);
		syscall(SYS_close, fd);	/* and the file, too */
		check_traps(to, UMAD_RING_SENDS + !end);
		munmap(ring, sizeof(*ring));
	}
}

/*
 * A client that has answers to read needn't ring: what it leaves goes out all the
 * same, when it reads them, and when it doesn't.
 */
static void test_patient(void)
{
	int agent, fd = open_warm(0, &agent), to = trap_receiver(), other = add_sender(fd, 1);
	struct mad mad;

	for (int round = 0; round < 50; round++) {
		for (uint32_t tid = 1; tid <= 40; tid++)
			CHECK(send_info(write, fd, agent, tid));
		for (uint32_t tid = 1; tid <= 20; tid++)
			answered(fd, tid);
		make_trap(&mad, other, 1);
		CHECK(write(fd, &mad, sizeof(mad)) == sizeof(mad));
		check_traps(to, 1);
		CHECK(send_info(write, fd, agent, 41));
		for (uint32_t tid = 21; tid <= 41; tid++)
			answered(fd, tid);
	}
}

/* Under ibfs-run: everything written before a close goes out. */
static void test_close(void)
{
	int to = trap_receiver();
	struct mad mad;

	for (int round = 0; round < 20; round++) {
		int fd = must_open(from_path, O_RDWR), agent = add_sender(fd, 1);

		for (uint32_t tid = 1; tid <= 300; tid++) {
			make_trap(&mad, agent, tid);
			CHECK(write(fd, &mad, sizeof(mad)) == sizeof(mad));
		}
		close(fd);
		check_traps(to, 300);
	}
}

/* An answer that comes while the file closes is told to nobody who polled it. */
static void test_close_polled(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct umad_ring *ring;
	struct mad mad;
	int fd, agent;

	for (int round = 0; round < 20; round++) {
		int epoll = epoll_create1(0);

		ring = raw_ring(&fd, &agent);
		agent = add_sender(fd, 0);
		CHECK(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
		CHECK(epoll_wait(epoll, &event, 1, 0) == 0);
		for (uint32_t tid = 1; tid <= UMAD_RING_SENDS; tid++) {
			node_info(&mad, agent, tid);
			leave_quietly(ring, &mad);
		}
		syscall(SYS_close, fd);
		close(epoll);
		munmap(ring, sizeof(*ring));
	}
	test_used();
}

static atomic_bool stop;

/* Everything, or only what the daemon looks at: indices, lengths, bells, headers. */
static void *scribble(void *arg)
{
	struct umad_ring *ring = arg;
	uint64_t *words = (uint64_t *)ring, r = 88172645463325252ULL;

	while (!atomic_load(&stop)) {
		struct umad_ring_send *slot = &ring->out[(r >> 8) % UMAD_RING_SENDS];

		r ^= r << 13;
		r ^= r >> 7;
		r ^= r << 17;
		atomic_store(&ring->mapped, 1);
		if (r & 1)
			atomic_fetch_add(&ring->sent, (r >> 40) % 40);
		else if (r & 2)
			slot->len = r & 4 ? r : (r >> 8) % 400;
		else if (r & 8)
			words[(r >> 8) % (sizeof(*ring) / sizeof(*words))] = r;
		else if (r & 16)
			slot->data[(r >> 8) % 100] = (uint8_t)r;
		atomic_store(&ring->taken, r & 32 ? r : 0);
		bell_ring(&ring->bell);
	}
	return NULL;
}

static void test_hostile(void)
{
	struct umad_ring *ring;
	struct mad mad;
	int fd, agent;

	for (int round = 0; round < 40; round++) {
		pthread_t thread;

		ring = raw_ring(&fd, &agent);
		for (uint32_t i = 0; i < UMAD_RING_SENDS; i++) {
			make_trap(&mad, agent, i);
			mad.hdr.timeout_ms = i;
			memcpy(ring->out[i].data, &mad, sizeof(mad));
			ring->out[i].len = sizeof(mad);
		}
		atomic_store(&stop, false);
		pthread_create(&thread, NULL, scribble, ring);
		for (uint32_t tid = 1; tid < 500; tid++) {
			make_trap(&mad, agent, tid);
			raw_write(fd, &mad, sizeof(mad));
			syscall(SYS_read, fd, &mad, sizeof(mad));
		}
		atomic_store(&stop, true);
		pthread_join(thread, NULL);
		close(fd);
		atomic_fetch_add(&ring->sent, 1);
		bell_ring(&ring->bell);
		munmap(ring, sizeof(*ring));
	}
	test_used();
}

/* Files beyond those whose bells can be heard: each works, however it is. */
static void test_many(void)
{
	enum { FILES = 80 };
	int fds[FILES], agents[FILES];

	for (int i = 0; i < FILES; i++) {
		fds[i] = must_open(from_path, O_RDWR);
		agents[i] = add_sender(fds[i], 0);
	}
	for (uint32_t round = 1; round < 40; round++) {
		for (int i = 0; i < FILES; i++)
			CHECK(send_info(write, fds[i], agents[i], round));
		for (int i = 0; i < FILES; i++)
			answered(fds[i], round);
	}
}

/* --- ends --- */

static void *wait_for_end(void *arg)
{
	struct pollfd pfd = { *(int *)arg, POLLIN, 0 };

	while (poll(&pfd, 1, -1) == 1 && !(pfd.revents & POLLERR)) {
		struct mad mad;

		if (read(pfd.fd, &mad, sizeof(mad)) < 0)
			break;
	}
	return NULL;
}

/* The device goes, or the daemon: writes fail after a while, and nobody waits for ever. */
static void until_end(int err)
{
	int agent, fd = open_warm(0, &agent);
	pthread_t thread;

	pthread_create(&thread, NULL, wait_for_end, &fd);
	puts("ready");
	fflush(stdout);
	for (uint32_t tid = 1; send_info(write, fd, agent, tid); tid++)
		usleep(100);
	CHECK(errno == err);
	CHECK(!send_info(raw_write, fd, agent, 1) && errno == err);
	pthread_join(thread, NULL);
}

static void test_gone(void)
{
	until_end(EIO);
}

static void test_daemon_killed(void)
{
	until_end(ENOTCONN);
}

static const struct test tests[] = {
	{ "used", test_used },
	{ "errors", test_errors },
	{ "addresses", test_addresses },
	{ "order", test_order },
	{ "two_threads", test_two_threads },
	{ "forked", test_forked },
	{ "handler", test_handler },
	{ "killed", test_killed },
	{ "busy", test_busy },
	{ "left", test_left },
	{ "patient", test_patient },
	{ "close", test_close },
	{ "close_polled", test_close_polled },
	{ "hostile", test_hostile },
	{ "many", test_many },
	{ "gone", test_gone },
	{ "daemon_killed", test_daemon_killed },
	{ 0 },
};

int main(int argc, char **argv)
{
	return run_message_tests(tests, argc, argv);
}
