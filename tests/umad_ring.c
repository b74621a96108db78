/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive rings under ibfs-run, one named test each:
 * umad_ring NAME UMAD [RECEIVER LID], as umad and umad_rmpp have them. "raw" is
 * what the preloaded library doesn't see: the file by system calls alone.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include <ibfs/umad_ring.h>

#include "umad_message.h"

#define MANY	20000

static ssize_t raw_read(int fd, void *buf, size_t size)
{
	return syscall(SYS_read, fd, buf, size);
}

static int raw_open(const char *path, int flags)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags);
}

/* count requests and their answers, one by one; what they cost the daemon. */
static long exchange(int fd, int agent, uint32_t count)
{
	long before = daemon_requests();
	struct mad mad;

	for (uint32_t tid = 1; tid <= count; tid++) {
		send_node_info(fd, agent, tid);
		CHECK(readable(fd, 5000));
		CHECK(read(fd, &mad, sizeof(mad)) == sizeof(mad));
		CHECK(mad.hdr.length == sizeof(mad) && get32(mad.data + 12) == tid);
	}
	return daemon_requests() - before;
}

/* Until it is killed. */
static void test_busy(void)
{
	int fd = must_open(from_path, O_RDWR), agent = add_sender(fd, 0);

	puts("ready");
	fflush(stdout);
	for (;;)
		exchange(fd, agent, MANY);
}

static void test_used(void)
{
	int fd = must_open(from_path, O_RDWR), agent = add_sender(fd, 0);

	CHECK(exchange(fd, agent, 1000) < 1200);
}

/*
 * Memory that can't be written: EFAULT, and the MAD stays. Where only a part of
 * it can, FUSE makes that part a read of its own, which is too short: EINVAL.
 */
static void test_bad_buffer(void)
{
	int fd = must_open(from_path, O_RDWR), agent = add_sender(fd, 0);
	uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *end = pages + 4096;
	struct mad *mad = (struct mad *)(end - sizeof(*mad));
	void *const bad[] = { NULL, (void *)8, end }, *const half[] = { end - 100, (uint8_t *)mad + 1 };

	CHECK(pages != MAP_FAILED && !mprotect(end, 4096, PROT_READ));
	send_node_info(fd, agent, 1);
	CHECK(readable(fd, 5000));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_ERR(read(fd, bad[i], sizeof(*mad)), EFAULT);
	for (size_t i = 0; i < sizeof(half) / sizeof(half[0]); i++)
		CHECK_ERR(read(fd, half[i], sizeof(*mad)), EINVAL);
	CHECK(readable(fd, 0));
	CHECK(read(fd, mad, sizeof(*mad)) == sizeof(*mad) && get32(mad->data + 12) == 1);
	munmap(pages, 8192);
}

/* --- readers that compete --- */

struct taker {
	pthread_t thread;
	int fd;
	ssize_t (*read)(int fd, void *buf, size_t size);
	atomic_int *left;
	uint8_t *seen;		/* by TID: how often */
	uint32_t last;
	unsigned int taken;
};

static void *take(void *arg)
{
	struct taker *taker = arg;
	struct mad mad;
	uint32_t tid;

	while (atomic_load(taker->left) > 0) {
		if (taker->read(taker->fd, &mad, sizeof(mad)) != sizeof(mad)) {
			CHECK(errno == EAGAIN);
			sched_yield();
			continue;
		}
		tid = get32(mad.data + 12);
		CHECK(tid > taker->last);
		taker->last = tid;
		if (tid <= MANY)
			__atomic_fetch_add(&taker->seen[tid], 1, __ATOMIC_SEQ_CST);
		taker->taken++;
		atomic_fetch_sub(taker->left, 1);
	}
	return NULL;
}

static uint8_t *shared_memory(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void check_seen_once(const uint8_t *seen)
{
	for (uint32_t tid = 1; tid <= MANY; tid++) {
		if (seen[tid] == 1)
			continue;
		fprintf(stderr, "MAD %u was read %u times\n", tid, seen[tid]);
		failures++;
		return;
	}
}

static void send_many(int fd, int agent)
{
	for (uint32_t tid = 1; tid <= MANY; tid++)
		send_node_info(fd, agent, tid);
}

static void test_compete(void)
{
	int fd = must_open(from_path, O_RDWR | O_NONBLOCK), agent = add_sender(fd, 0);
	uint8_t *seen = shared_memory(MANY + 1 + sizeof(atomic_int) * 2);
	atomic_int left = MANY;
	struct taker takers[] = {
		{ .fd = fd, .read = read, .left = &left, .seen = seen },
		{ .fd = fd, .read = raw_read, .left = &left, .seen = seen },
	};

	for (int i = 0; i < 2; i++)
		pthread_create(&takers[i].thread, NULL, take, &takers[i]);
	send_many(fd, agent);
	for (int i = 0; i < 2; i++)
		pthread_join(takers[i].thread, NULL);
	check_seen_once(seen);
}

static void test_fork(void)
{
	int fd = must_open(from_path, O_RDWR | O_NONBLOCK), agent = add_sender(fd, 0), status;
	atomic_int *left = (atomic_int *)shared_memory(sizeof(*left));
	uint8_t *seen = shared_memory(MANY + 1);
	struct taker taker = { .fd = fd, .read = read, .left = left, .seen = seen };
	pid_t child;

	atomic_store(left, MANY);
	child = fork();
	if (!child) {
		take(&taker);
		_exit(failures != 0);
	}
	pthread_create(&taker.thread, NULL, take, &taker);
	send_many(fd, agent);
	pthread_join(taker.thread, NULL);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	check_seen_once(seen);
}

/* --- order --- */

static void test_overflow(void)
{
	int fd = must_open(from_path, O_RDWR), agent = add_sender(fd, 0);
	struct mad mad;

	for (uint32_t tid = 1; tid <= 5000; tid++)
		send_node_info(fd, agent, tid);
	for (uint32_t tid = 1; tid <= 5000; tid++) {
		ssize_t n = tid % 100 < 3 ? raw_read(fd, &mad, sizeof(mad)) :
					    read(fd, &mad, sizeof(mad));

		if (!CHECK(n == sizeof(mad)) || !CHECK(get32(mad.data + 12) == tid))
			return;
	}
	CHECK(!readable(fd, 0));
	CHECK(exchange(fd, agent, 1000) < 1200);
}

/* Short, long, short: the long one is not in the ring, and nothing overtakes it. */
static void test_message(void)
{
	struct pair pair = pair_new(0x37, 0);
	uint8_t buf[HDR + MAD_LEN];

	for (uint32_t tid = 1; tid < 60; tid += 3) {
		send_message(&pair, tid, 200);
		send_message(&pair, tid + 1, 5000);
		send_message(&pair, tid + 2, 200);
		CHECK(readable(pair.to, 5000));
		CHECK_ERR(read(pair.to, buf, HDR + 100), EINVAL);
		CHECK(read(pair.to, buf, sizeof(buf)) == HDR + 200);
		CHECK(holds(buf, tid, HDR + 200, 200));
		CHECK(readable(pair.to, 5000));
		read_message(pair.to, tid + 1, 5000);
		CHECK(readable(pair.to, 5000));
		CHECK(raw_read(pair.to, buf, HDR + 100) == -1 && errno == EINVAL);
		CHECK(read(pair.to, buf, sizeof(buf)) == HDR + 200);
		CHECK(holds(buf, tid + 2, HDR + 200, 200));
	}
}

/* --- descriptors --- */

/* Closed behind the library's back, the number is another file's. */
static void test_raw_close(void)
{
	int fd, agent, zero;
	struct mad mad;

	for (int i = 0; i < 100; i++) {
		fd = must_open(from_path, O_RDWR | O_NONBLOCK);
		agent = add_sender(fd, 0);
		for (uint32_t tid = 1; tid < 6; tid++)
			send_node_info(fd, agent, tid);
		syscall(SYS_close, fd);
		zero = raw_open("/dev/zero", O_RDONLY);
		CHECK(zero == fd);
		memset(&mad, 0xee, sizeof(mad));
		CHECK(read(fd, &mad, 16) == 16);
		CHECK(get32((uint8_t *)&mad) == 0);
		syscall(SYS_close, fd);
		CHECK(!readable(fd, 0));
		CHECK_ERR(read(fd, &mad, sizeof(mad)), EBADF);
	}
	/* The next one has none of them, however it is opened. */
	fd = must_open(from_path, O_RDWR | O_NONBLOCK);
	CHECK_ERR(read(fd, &mad, sizeof(mad)), EAGAIN);
	send_node_info(fd, add_sender(fd, 0), 9);
	syscall(SYS_close, fd);
	CHECK(raw_open(from_path, O_RDWR | O_NONBLOCK) == fd);
	CHECK_ERR(read(fd, &mad, sizeof(mad)), EAGAIN);
	exchange(fd, add_sender(fd, 0), 10);
}

static void test_dup(void)
{
	int fd = must_open(from_path, O_RDWR), agent = add_sender(fd, 0), other;
	int zero = must_open("/dev/zero", O_RDONLY);
	struct mad mad;

	other = dup(fd);
	for (uint32_t tid = 1; tid <= 6; tid++)
		send_node_info(fd, agent, tid);
	for (uint32_t tid = 1; tid <= 6; tid++) {
		CHECK(read(tid & 1 ? fd : other, &mad, sizeof(mad)) == sizeof(mad));
		CHECK(get32(mad.data + 12) == tid);
	}
	send_node_info(fd, agent, 7);
	CHECK(dup2(zero, fd) == fd);
	CHECK(read(fd, &mad, 16) == 16);
	CHECK(get32((uint8_t *)&mad) == 0);
	CHECK(read(other, &mad, sizeof(mad)) == sizeof(mad));
	CHECK(get32(mad.data + 12) == 7);
	close_range((unsigned int)fd, (unsigned int)fd, 0);
	CHECK_ERR(read(fd, &mad, sizeof(mad)), EBADF);
}

static void test_exec(void)
{
	int fd = must_open(from_path, O_RDWR), agent = add_sender(fd, 0), status;
	char number[12];
	struct mad mad;
	pid_t child;

	snprintf(number, sizeof(number), "%d", fd);
	for (uint32_t tid = 1; tid <= 300; tid++)
		send_node_info(fd, agent, tid);
	CHECK(read(fd, &mad, sizeof(mad)) == sizeof(mad));
	child = fork();
	if (!child) {
		execl("/proc/self/exe", "umad_ring", "executed", number, NULL);
		_exit(127);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(read(fd, &mad, sizeof(mad)) == sizeof(mad));
	CHECK(get32(mad.data + 12) == 300);
}

/* By the name of a descriptor that it inherited: all MADs but the first and the last. */
static void test_executed(void)
{
	int fd = atoi(from_path);
	struct mad mad;

	for (uint32_t tid = 2; tid < 300; tid++) {
		CHECK(read(fd, &mad, sizeof(mad)) == sizeof(mad));
		CHECK(get32(mad.data + 12) == tid);
	}
}

/* --- waiting --- */

static void *wait_for_ever(void *arg)
{
	struct pollfd pfd = { *(int *)arg, POLLIN, 0 };

	poll(&pfd, 1, -1);
	return NULL;
}

static void on_signal(int sig)
{
	(void)sig;
}

static void test_poll(void)
{
	int fd = must_open(from_path, O_RDWR), agent = add_sender(fd, 0);
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct pollfd pfd = { fd, POLLIN, 0 };
	struct itimerspec soon = { .it_value.tv_nsec = 50000000 };
	struct timespec a, b;
	pthread_t thread;
	timer_t timer;
	void *ret;

	clock_gettime(CLOCK_MONOTONIC, &a);
	CHECK(poll(&pfd, 1, 120) == 0);
	clock_gettime(CLOCK_MONOTONIC, &b);
	CHECK((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= 119);
	/* A handler ends it, SA_RESTART or not. */
	sigaction(SIGALRM, &action, NULL);
	CHECK(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0);
	for (int timeout = -1; timeout < 100000; timeout += 50000) {
		timer_settime(timer, 0, &soon, NULL);
		CHECK_ERR(poll(&pfd, 1, timeout), EINTR);
	}
	/* A thread that waits can be cancelled. */
	pthread_create(&thread, NULL, wait_for_ever, &fd);
	usleep(20000);
	pthread_cancel(thread);
	CHECK(pthread_join(thread, &ret) == 0 && ret == PTHREAD_CANCELED);
	/* And woken. */
	pthread_create(&thread, NULL, wait_for_ever, &fd);
	usleep(20000);
	send_node_info(fd, agent, 1);
	CHECK(pthread_join(thread, &ret) == 0 && !ret);
	CHECK(poll(&pfd, 1, -1) == 1 && pfd.revents == POLLIN);
	pfd.events = POLLIN | POLLOUT;
	CHECK(poll(&pfd, 1, -1) == 1 && pfd.revents == (POLLIN | POLLOUT));
}

/* --- without one, or with a bad one --- */

static struct umad_ring *raw_ring(int fd)
{
	struct umad_ring_file file;
	char path[64];
	void *mem;
	int ev;

	if (!CHECK(ioctl(fd, IBFS_UMAD_RING, &file) == 0))
		return NULL;
	CHECK(file.size == sizeof(struct umad_ring));
	CHECK_ERR(ioctl(fd, IBFS_UMAD_RING, &file), EBUSY);
	snprintf(path, sizeof(path), "/dev/infiniband/ev/%u", file.name);
	ev = raw_open(path, O_RDWR);
	CHECK(ev >= 0);
	mem = mmap(NULL, sizeof(struct umad_ring), PROT_READ | PROT_WRITE, MAP_SHARED, ev, 0);
	close(ev);
	CHECK(raw_open(path, O_RDWR) == -1 && errno == ENOENT);
	return CHECK(mem != MAP_FAILED) ? mem : NULL;
}

/* A user takes all the rings that may wait to be opened: others do without. */
static void test_fallback(void)
{
	struct umad_ring_file file;
	int fd, agent, n;

	for (n = 0; n < 100; n++) {
		fd = raw_open(from_path, O_RDWR);
		if (fd < 0 || ioctl(fd, IBFS_UMAD_RING, &file))
			break;
	}
	CHECK(n == 64);
	fd = must_open(from_path, O_RDWR);
	agent = add_sender(fd, 0);
	CHECK(exchange(fd, agent, 1000) >= 2000);
}

static void test_owner(void)
{
	int fd = raw_open(from_path, O_RDWR), status;
	struct umad_ring_file file;
	char path[64];
	pid_t child;

	CHECK(ioctl(fd, IBFS_UMAD_RING, &file) == 0);
	snprintf(path, sizeof(path), "/dev/infiniband/ev/%u", file.name);
	child = fork();
	if (!child) {
		if (setgid(65534) || setuid(65534))
			_exit(2);
		CHECK(raw_open(path, O_RDWR) == -1 && errno == EACCES);
		CHECK(raw_open(path, O_RDONLY) == -1 && errno == EACCES);
		_exit(failures != 0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(raw_open(path, O_RDWR) >= 0);
}

static atomic_bool stop;

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Everything, or only what the daemon looks at: indices and lengths. */
static void *scribble(void *arg)
{
	struct umad_ring *ring = arg;
	uint64_t *words = (uint64_t *)ring, seed = 88172645463325252ULL;

	while (!atomic_load(&stop)) {
		uint64_t r = next_random(&seed);

		atomic_store(&ring->mapped, 1);
		if (r & 1)
			atomic_store(&ring->head, atomic_load(&ring->tail) - (r >> 8) % 300);
		else if (r & 2)
			ring->slots[(r >> 8) % UMAD_RING_SLOTS].len = r & 4 ? r : (r >> 8) % 500;
		else
			words[(r >> 8) % (sizeof(*ring) / sizeof(*words))] = r;
		atomic_store(&ring->waiting, (unsigned int)r >> 5 & 1);
	}
	return NULL;
}

static void test_hostile(void)
{
	struct mad mad;

	for (int round = 0; round < 40; round++) {
		int fd = raw_open(from_path, O_RDWR | O_NONBLOCK), agent = add_sender(fd, 0);
		struct umad_ring *ring = raw_ring(fd);
		struct pollfd pfd = { fd, POLLIN, 0 };
		pthread_t thread;

		if (!ring)
			return;
		atomic_store(&stop, false);
		pthread_create(&thread, NULL, scribble, ring);
		for (uint32_t tid = 1; tid < 500; tid++) {
			send_node_info(fd, agent, tid);
			poll(&pfd, 1, 0);
			raw_read(fd, &mad, tid % 3 ? sizeof(mad) : 100);
		}
		atomic_store(&stop, true);
		pthread_join(thread, NULL);
		/* Memory that others share with the daemon goes on without it. */
		close(fd);
		ring->head++;
		munmap(ring, sizeof(*ring));
	}
	test_used();
}

/* Who says that he hasn't taken what he took gets it back neither from the ring nor the file. */
static void test_rewind(void)
{
	enum { NUM = 200, ROUNDS = 50 };
	int fd = raw_open(from_path, O_RDWR | O_NONBLOCK), agent = add_sender(fd, 0);
	struct umad_ring *ring = raw_ring(fd);
	unsigned int taken = 0;
	struct mad mad;

	if (!ring)
		return;
	atomic_store(&ring->mapped, 1);
	for (uint32_t tid = 1; tid <= NUM; tid++) {
		uint64_t tail = atomic_load(&ring->tail);

		send_node_info(fd, agent, tid);
		while (atomic_load(&ring->tail) == tail)
			readable(fd, 1);
	}
	for (int round = 0; round < ROUNDS; round++) {
		while (raw_read(fd, &mad, sizeof(mad)) == sizeof(mad))
			taken++;
		atomic_store(&ring->head, atomic_load(&ring->tail) - NUM);
		raw_read(fd, &mad, 100);
	}
	CHECK(taken == NUM);
	close(fd);
	munmap(ring, sizeof(*ring));
}

/* MADs in the ring and behind it, and a thread that waits: whoever looks kills us. */
static void test_killed(void)
{
	int fd = must_open(from_path, O_RDWR), agent = add_sender(fd, 0);
	int idle = must_open(from_path, O_RDWR);
	pthread_t thread;

	pthread_create(&thread, NULL, wait_for_ever, &idle);
	for (uint32_t tid = 1; tid <= 1000; tid++)
		send_node_info(fd, agent, tid);
	puts("ready");
	fflush(stdout);
	pause();
}

/* Opening again and again keeps nothing. */
static void test_reopen(void)
{
	for (int i = 0; i < 300; i++) {
		int fd = must_open(from_path, O_RDWR);

		if (i % 3)
			exchange(fd, add_sender(fd, 0), 2);
		close(fd);
	}
}

static const struct test tests[] = {
	{ "bad_buffer", test_bad_buffer },
	{ "busy", test_busy },
	{ "used", test_used },
	{ "compete", test_compete },
	{ "fork", test_fork },
	{ "overflow", test_overflow },
	{ "message", test_message },
	{ "raw_close", test_raw_close },
	{ "dup", test_dup },
	{ "exec", test_exec },
	{ "executed", test_executed },
	{ "poll", test_poll },
	{ "fallback", test_fallback },
	{ "owner", test_owner },
	{ "hostile", test_hostile },
	{ "rewind", test_rewind },
	{ "killed", test_killed },
	{ "reopen", test_reopen },
	{ 0 },
};

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: umad_ring NAME UMAD [RECEIVER LID]\n");
		return 2;
	}
	from_path = argv[2];
	if (argc > 4) {
		to_path = argv[3];
		to_lid = (uint16_t)strtoul(argv[4], NULL, 0);
	}
	return run_tests(tests, argv[1]);
}
