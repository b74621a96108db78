/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules of a umad file, one named test each: umad NAME UMAD. UMAD is a
 * port whose node has a switch at its port 1 with nothing at the switch's last
 * port, as the default fabric has.
 */
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "umad_test.h"

#define AGENTS	32

static const char *umad;

static struct ib_user_mad_reg_req vendor_req(uint64_t methods)
{
	struct ib_user_mad_reg_req req = {
		.qpn = 1,
		.mgmt_class = CLASS_VENDOR1,
		.mgmt_class_version = 1,
	};

	memcpy(req.method_mask, &methods, sizeof(methods));
	return req;
}

/* A request that nothing answers: two hops, the second through an empty switch port. */
static void lost_request(struct mad *mad, int agent, uint32_t tid, uint32_t timeout_ms)
{
	static const uint8_t path[] = { 1, 200 };

	memset(&mad->hdr, 0, sizeof(mad->hdr));
	mad->hdr.id = (uint32_t)agent;
	mad->hdr.timeout_ms = timeout_ms;
	mad->hdr.lid = 0xffff;
	dr_smp(mad->data, tid, 0x0011, 2, path);
}

static void test_numbers(void)
{
	CHECK(IB_USER_MAD_REGISTER_AGENT == 0xc01c1b01);
	CHECK(IB_USER_MAD_UNREGISTER_AGENT == 0x40041b02);
	CHECK(IB_USER_MAD_ENABLE_PKEY == 0x1b03);
	CHECK(IB_USER_MAD_REGISTER_AGENT2 == 0xc0281b04);
}

static void test_ids(void)
{
	int fd = must_open(umad, O_RDWR);
	struct ib_user_mad_reg_req old = { .qpn = 1 };
	struct ib_user_mad_reg_req2 new = { .qpn = 1 };

	for (int i = 0; i < AGENTS; i++)
		CHECK(add_sender(fd, i & 1) == i);
	CHECK_ERR(reg_old(fd, &old), ENOMEM);
	CHECK_ERR(reg_new(fd, &new), ENOMEM);
	CHECK_ERR(unreg(fd, 7), 0);
	CHECK_ERR(unreg(fd, 3), 0);
	CHECK_ERR(unreg(fd, 3), EINVAL);
	CHECK_ERR(unreg(fd, 32), EINVAL);
	CHECK_ERR(unreg(fd, UINT32_MAX), EINVAL);
	CHECK_ERR(reg_old(fd, &old), 0);
	CHECK(old.id == 3);
	CHECK_ERR(reg_new(fd, &new), 0);
	CHECK(new.id == 7);
}

/* What a registration must not ask for. */
static void test_bad_registration(void)
{
	static const struct ib_user_mad_reg_req2 bad[] = {
		{ .qpn = 2 },
		{ .qpn = 256 },
		{ .qpn = 1, .rmpp_version = 2 },
		{ .qpn = 1, .mgmt_class = 0x50, .mgmt_class_version = 1 },
		{ .qpn = 1, .mgmt_class = 0x81, .mgmt_class_version = 1 },
		{ .qpn = 1, .mgmt_class = 0x01, .mgmt_class_version = 1 },
		{ .qpn = 0, .mgmt_class = 0x03, .mgmt_class_version = 2 },
		{ .qpn = 1, .mgmt_class = 0x04, .mgmt_class_version = 1, .rmpp_version = 1 },
		{ .qpn = 1, .mgmt_class = 0x03, .mgmt_class_version = 0x83 },
		{ .qpn = 1, .mgmt_class = 0x30, .mgmt_class_version = 1 },
		{ .qpn = 1, .mgmt_class = 0x30, .mgmt_class_version = 1, .oui = 0x1001405 },
	};
	int fd = must_open(umad, O_RDWR);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ib_user_mad_reg_req2 req = bad[i];

		fprintf(stderr, "bad[%zu]\n", i);
		CHECK_ERR(reg_new(fd, &req), EINVAL);
	}
	/* Nothing of them stays. */
	CHECK(add_sender(fd, 1) == 0);
}

static void test_flags(void)
{
	struct ib_user_mad_reg_req2 req = { .id = 77, .qpn = 1, .flags = 0xf0 };
	int fd = must_open(umad, O_RDWR);

	CHECK_ERR(reg_new(fd, &req), EINVAL);
	CHECK(req.flags == IB_USER_MAD_REG_FLAGS_CAP);
	CHECK(req.id == 77);
	CHECK_ERR(reg_new(fd, &req), 0);
	CHECK(req.id == 0 && req.flags == IB_USER_MAD_USER_RMPP);
}

static void test_ioctl(void)
{
	int fd = must_open(umad, O_RDWR);
	uint32_t value = 0;

	CHECK_ERR(ioctl(fd, IB_USER_MAD_REGISTER_AGENT, NULL), EFAULT);
	CHECK_ERR(ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, 8), EFAULT);
	CHECK_ERR(ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, NULL), EFAULT);
	CHECK_ERR(ioctl(fd, _IO(0x1b, 5)), ENOTTY);
	CHECK_ERR(ioctl(fd, _IOW(0x1b, 2, uint64_t), &value), ENOTTY);
	CHECK_ERR(ioctl(fd, _IOR(0x1b, 9, uint32_t), &value), ENOTTY);
}

/* One agent to a (class, version, method), in all open files of the port. */
static void test_overlap(void)
{
	struct ib_user_mad_reg_req get = vendor_req(1 << 1), both = vendor_req(3 << 1),
				   set = vendor_req(1 << 2), again = get;
	int a = must_open(umad, O_RDWR), b = must_open(umad, O_RDWR);
	struct ib_user_mad_reg_req2 oui1 = {
		.qpn = 1, .mgmt_class = 0x31, .mgmt_class_version = 1, .oui = 0x001405,
		.method_mask = { 2 },
	}, oui2 = oui1;

	CHECK_ERR(reg_old(a, &get), 0);
	CHECK_ERR(reg_old(a, &again), EINVAL);
	CHECK_ERR(reg_old(b, &again), EINVAL);
	CHECK_ERR(reg_old(b, &both), EINVAL);
	CHECK_ERR(reg_old(b, &set), 0);
	CHECK(set.id == 0);
	CHECK_ERR(unreg(b, set.id), 0);
	CHECK_ERR(unreg(a, get.id), 0);
	CHECK_ERR(reg_old(b, &both), 0);

	CHECK_ERR(reg_new(a, &oui1), 0);
	CHECK_ERR(reg_new(b, &oui1), EINVAL);
	oui2.oui = 0x001406;
	CHECK_ERR(reg_new(b, &oui2), 0);
}

static void test_release(void)
{
	struct ib_user_mad_reg_req get = vendor_req(1 << 1), again = get;
	int fd = must_open(umad, O_RDWR);

	CHECK_ERR(reg_old(fd, &get), 0);
	close(fd);
	fd = must_open(umad, O_RDWR);
	CHECK_ERR(reg_old(fd, &again), 0);
}

/* --- layouts --- */

static void test_old_layout(void)
{
	struct { struct ib_user_mad_hdr_old hdr; uint8_t data[MAD_LEN]; } mad = {
		.hdr = { .timeout_ms = 1000, .lid = 0xffff },
	};
	struct ib_user_mad_reg_req req = { .qpn = 0 };
	int fd = must_open(umad, O_RDWR), id;

	CHECK(sizeof(mad.hdr) == 56);
	CHECK_ERR(reg_old(fd, &req), 0);
	CHECK_ERR(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), EINVAL);
	id = add_sender(fd, 0);
	CHECK(id == 1);
	mad.hdr.id = (uint32_t)id;
	dr_smp(mad.data, 0x1234, 0x0011, 0, NULL);
	CHECK(write(fd, &mad, sizeof(mad)) == sizeof(mad));
	memset(&mad, 0x55, sizeof(mad));
	CHECK_ERR(read(fd, &mad, 55), EINVAL);
	CHECK(read(fd, &mad, sizeof(mad)) == sizeof(mad));
	CHECK(mad.hdr.id == 1 && mad.hdr.status == 0 && mad.hdr.length == sizeof(mad));
	CHECK(mad.data[1] == CLASS_DR && mad.data[3] == 0x81 && get32(mad.data + 12) == 0x1234);
	/* And back, through the same layout, with nothing to copy but what was asked for. */
	CHECK_ERR(write(fd, &mad, 56 + 35), EINVAL);
}

static void check_new_layout(int fd, int agent)
{
	struct mad mad;

	CHECK(sizeof(mad.hdr) == 64);
	node_info(&mad, agent, 0xabcdef01);
	CHECK(write(fd, &mad, sizeof(mad)) == sizeof(mad));
	memset(&mad, 0x55, sizeof(mad));
	CHECK_ERR(read(fd, &mad, 63), EINVAL);
	CHECK(read(fd, &mad, sizeof(mad)) == sizeof(mad));
	CHECK(mad.hdr.id == (uint32_t)agent && mad.hdr.status == 0);
	CHECK(mad.hdr.length == sizeof(mad) && mad.hdr.lid == 0xffff && mad.hdr.pkey_index == 0);
	CHECK(mad.data[1] == CLASS_DR && mad.data[3] == 0x81);
	CHECK(get32(mad.data + 12) == 0xabcdef01);
	CHECK(mad.data[64 + 2] == 1);		/* NodeInfo:NodeType */
}

static void test_enable_pkey(void)
{
	struct ib_user_mad_reg_req req = { .qpn = 0 };
	int fd = must_open(umad, O_RDWR);

	CHECK_ERR(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), 0);
	CHECK_ERR(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), 0);
	CHECK_ERR(reg_old(fd, &req), 0);
	CHECK_ERR(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), EINVAL);
	check_new_layout(fd, (int)req.id);
}

static void test_new_layout(void)
{
	int fd = must_open(umad, O_RDWR);

	add_sender(fd, 0);
	check_new_layout(fd, 0);
}

/* --- write --- */

static void test_write(void)
{
	int fd = must_open(umad, O_RDWR), agent = add_sender(fd, 0);
	uint8_t large[64 + 257] = { 0 };
	struct mad mad;

	node_info(&mad, agent, 1);
	CHECK_ERR(write(fd, &mad, 64 + 35), EINVAL);
	mad.hdr.id = 32;
	CHECK_ERR(write(fd, &mad, sizeof(mad)), EINVAL);
	mad.hdr.id = 31;
	CHECK_ERR(write(fd, &mad, sizeof(mad)), EIO);
	mad.hdr.id = (uint32_t)agent;
	memcpy(large, &mad, sizeof(mad));
	CHECK_ERR(write(fd, large, sizeof(large)), EINVAL);
	CHECK_ERR(syscall(SYS_write, fd, 8UL, sizeof(mad)), EFAULT);
	CHECK(!readable(fd, 0));
	CHECK_ERR(unreg(fd, (uint32_t)agent), 0);
	CHECK_ERR(write(fd, &mad, sizeof(mad)), EIO);
}

static void test_duplicate(void)
{
	int fd = must_open(umad, O_RDWR), agent = add_sender(fd, 0);
	struct mad mad;

	lost_request(&mad, agent, 5, 10000);
	CHECK(write(fd, &mad, sizeof(mad)) == sizeof(mad));
	CHECK_ERR(write(fd, &mad, sizeof(mad)), EINVAL);
	node_info(&mad, agent, 5);
	CHECK_ERR(write(fd, &mad, sizeof(mad)), EINVAL);
	send_node_info(fd, agent, 6);
	CHECK(read(fd, &mad, sizeof(mad)) == sizeof(mad));
	CHECK(get32(mad.data + 12) == 6);
}

static void test_timeout(void)
{
	int fd = must_open(umad, O_RDWR), agent = add_sender(fd, 0);
	struct mad mad, sent;

	lost_request(&sent, agent, 0x77, 20);
	sent.hdr.retries = 2;
	sent.hdr.length = 99;
	sent.hdr.sl = 3;
	sent.hdr.qkey = htonl(5);
	CHECK(write(fd, &sent, sizeof(sent)) == sizeof(sent));
	CHECK(!readable(fd, 0));
	CHECK(readable(fd, 10000));
	CHECK_ERR(read(fd, &mad, 64 + 23), EINVAL);
	CHECK(read(fd, &mad, sizeof(mad)) == 64 + 24);
	CHECK(mad.hdr.status == ETIMEDOUT);
	mad.hdr.status = 0;
	CHECK(!memcmp(&mad.hdr, &sent.hdr, sizeof(mad.hdr)));
	CHECK(get32(mad.data + 12) == 0x77 && mad.data[3] == 1);
	/* Without a timeout nothing is reported, and the TID is free at once. */
	sent.hdr.timeout_ms = 0;
	CHECK(write(fd, &sent, sizeof(sent)) == sizeof(sent));
	CHECK(write(fd, &sent, sizeof(sent)) == sizeof(sent));
	CHECK(!readable(fd, 100));
}

/* --- read and poll --- */

static void test_read(void)
{
	int fd = must_open(umad, O_RDWR | O_NONBLOCK), agent = add_sender(fd, 0);
	struct mad mad;
	uint8_t tail[100];
	struct iovec iov[] = { { &mad, 64 + 156 }, { tail, 100 } };

	CHECK_ERR(read(fd, &mad, 63), EINVAL);
	CHECK_ERR(read(fd, &mad, sizeof(mad)), EAGAIN);
	send_node_info(fd, agent, 1);
	send_node_info(fd, agent, 2);
	CHECK(readable(fd, 1000));
	CHECK_ERR(read(fd, &mad, 64 + 255), EINVAL);
	CHECK_ERR(lseek(fd, 0, SEEK_SET), ESPIPE);
	CHECK_ERR(pread(fd, &mad, sizeof(mad), 0), ESPIPE);
	CHECK(readv(fd, iov, 2) == sizeof(mad));
	CHECK(get32(mad.data + 12) == 1);
	/* The second's answer comes when it comes. */
	CHECK(readable(fd, 5000));
	CHECK(read(fd, &mad, sizeof(mad)) == sizeof(mad));
	CHECK(get32(mad.data + 12) == 2);
	CHECK_ERR(read(fd, &mad, sizeof(mad)), EAGAIN);
}

static void test_poll(void)
{
	int fd = must_open(umad, O_RDWR), agent = add_sender(fd, 0), ep = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct pollfd pfd = { fd, POLLIN | POLLOUT, 0 };
	struct mad mad;

	CHECK(poll(&pfd, 1, 0) == 1 && pfd.revents == POLLOUT);
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event) == 0);
	CHECK(epoll_wait(ep, &event, 1, 0) == 0);
	send_node_info(fd, agent, 1);
	CHECK(epoll_wait(ep, &event, 1, 5000) == 1 && event.events & EPOLLIN);
	CHECK(poll(&pfd, 1, 0) == 1 && pfd.revents == (POLLIN | POLLOUT));
	CHECK(epoll_wait(ep, &event, 1, 0) == 0);
	send_node_info(fd, agent, 2);
	CHECK(epoll_wait(ep, &event, 1, 5000) == 1);
	CHECK(read(fd, &mad, sizeof(mad)) == sizeof(mad));
	CHECK(read(fd, &mad, sizeof(mad)) == sizeof(mad));
	CHECK(poll(&pfd, 1, 0) == 1 && pfd.revents == POLLOUT);
}

/* One poll that sleeps while another thread sends. */
static void test_poll_wakes(void)
{
	int fd = must_open(umad, O_RDWR), agent = add_sender(fd, 0), status;
	pid_t child = fork();

	if (!child)
		_exit(readable(fd, 10000) ? 0 : 1);
	CHECK(wait_in_syscall(child, SYS_poll));
	send_node_info(fd, agent, 1);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void test_nonblock_later(void)
{
	int fd = must_open(umad, O_RDWR);
	struct mad mad;

	CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	CHECK_ERR(read(fd, &mad, sizeof(mad)), EAGAIN);
}

/* --- blocked readers --- */

struct reader {
	pthread_t thread;
	atomic_int tid;
	int fd;
	ssize_t ret;
	int err;
	struct mad mad;
};

static void *reader_main(void *arg)
{
	struct reader *reader = arg;

	reader->tid = gettid();
	reader->ret = read(reader->fd, &reader->mad, sizeof(reader->mad));
	reader->err = errno;
	return NULL;
}

static void reader_start(struct reader *reader, int fd)
{
	reader->fd = fd;
	reader->tid = 0;
	pthread_create(&reader->thread, NULL, reader_main, reader);
	while (!reader->tid)
		usleep(100);
	CHECK(wait_in_syscall(reader->tid, SYS_read));
}

static void on_signal(int sig)
{
	(void)sig;
}

static void test_eintr(void)
{
	struct sigaction act = { .sa_handler = on_signal };
	int fd = must_open(umad, O_RDWR), agent = add_sender(fd, 0);
	struct reader reader;
	struct mad mad;

	sigaction(SIGUSR1, &act, NULL);
	reader_start(&reader, fd);
	pthread_kill(reader.thread, SIGUSR1);
	pthread_join(reader.thread, NULL);
	CHECK(reader.ret == -1 && reader.err == EINTR);
	/* What comes later isn't the interrupted one's. */
	send_node_info(fd, agent, 9);
	CHECK(read(fd, &mad, sizeof(mad)) == sizeof(mad));
	CHECK(get32(mad.data + 12) == 9);
}

/* Two threads on one file: a MAD each, in the order in which they came. */
static void test_two_readers(void)
{
	int fd = must_open(umad, O_RDWR), agent = add_sender(fd, 0);
	struct reader a, b;

	reader_start(&a, fd);
	reader_start(&b, fd);
	send_node_info(fd, agent, 1);
	send_node_info(fd, agent, 2);
	pthread_join(a.thread, NULL);
	pthread_join(b.thread, NULL);
	CHECK(a.ret == sizeof(a.mad) && get32(a.mad.data + 12) == 1);
	CHECK(b.ret == sizeof(b.mad) && get32(b.mad.data + 12) == 2);
}

/* A reader that is killed takes no MAD with it. */
static void test_killed_reader(void)
{
	int fd = must_open(umad, O_RDWR), agent = add_sender(fd, 0), status;
	struct mad mad;
	pid_t child = fork();

	if (!child) {
		read(fd, &mad, sizeof(mad));
		_exit(1);
	}
	CHECK(wait_in_syscall(child, SYS_read));
	kill(child, SIGKILL);
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	send_node_info(fd, agent, 3);
	CHECK(read(fd, &mad, sizeof(mad)) == sizeof(mad));
	CHECK(get32(mad.data + 12) == 3);
}

/* A file that a fork shares lives until both have closed it. */
static void test_fork(void)
{
	struct ib_user_mad_reg_req get = vendor_req(1 << 1), again = get;
	int fd = must_open(umad, O_RDWR), other = must_open(umad, O_RDWR), agent, status;
	int sync[2];
	char byte;
	pid_t child;

	agent = add_sender(fd, 0);
	CHECK_ERR(reg_old(fd, &get), 0);
	CHECK(pipe(sync) == 0);
	child = fork();
	if (!child) {
		struct mad mad;

		close(sync[1]);
		read(sync[0], &byte, 1);	/* the parent has closed it */
		send_node_info(fd, agent, 8);
		CHECK(read(fd, &mad, sizeof(mad)) == sizeof(mad));
		CHECK(get32(mad.data + 12) == 8);
		CHECK_ERR(reg_old(other, &again), EINVAL);
		_exit(failures != 0);
	}
	close(fd);
	close(sync[1]);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK_ERR(reg_old(other, &again), 0);
}

static void test_thousand(void)
{
	struct rlimit limit = { 2048, 2048 };
	struct mad mad;
	int fd[1000];

	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	for (int i = 0; i < 1000; i++) {
		fd[i] = must_open(umad, O_RDWR);
		CHECK(add_sender(fd[i], 0) == 0);
	}
	for (uint32_t i = 0; i < 1000; i++)
		send_node_info(fd[i], 0, i);
	for (uint32_t i = 0; i < 1000; i++) {
		CHECK(read(fd[i], &mad, sizeof(mad)) == sizeof(mad));
		CHECK(get32(mad.data + 12) == i);
	}
	for (int i = 0; i < 1000; i++)
		close(fd[i]);
}

/* The device goes while a reader waits; whoever runs this removes it at "ready". */
static void test_gone(void)
{
	int fd = must_open(umad, O_RDWR), agent = add_sender(fd, 0);
	struct ib_user_mad_reg_req req = { .qpn = 1 };
	struct pollfd pfd = { fd, POLLIN, 0 };
	struct ib_user_mad_reg_req2 req2 = { .qpn = 1 };
	struct reader reader;
	struct mad mad;

	reader_start(&reader, fd);
	puts("ready");
	fflush(stdout);
	CHECK(poll(&pfd, 1, 30000) == 1 && pfd.revents == POLLERR);
	pthread_join(reader.thread, NULL);
	CHECK(reader.ret == -1 && reader.err == EIO);
	CHECK_ERR(read(fd, &mad, sizeof(mad)), EIO);
	node_info(&mad, agent, 1);
	CHECK_ERR(write(fd, &mad, sizeof(mad)), EIO);
	CHECK_ERR(reg_old(fd, &req), EPIPE);
	CHECK_ERR(reg_new(fd, &req2), EPIPE);
	CHECK_ERR(unreg(fd, (uint32_t)agent), EINVAL);
	CHECK_ERR(open(umad, O_RDWR), ENOENT);
}

static const struct test tests[] = {
	{ "numbers", test_numbers },
	{ "ids", test_ids },
	{ "bad_registration", test_bad_registration },
	{ "flags", test_flags },
	{ "ioctl", test_ioctl },
	{ "overlap", test_overlap },
	{ "release", test_release },
	{ "old_layout", test_old_layout },
	{ "enable_pkey", test_enable_pkey },
	{ "new_layout", test_new_layout },
	{ "write", test_write },
	{ "duplicate", test_duplicate },
	{ "timeout", test_timeout },
	{ "read", test_read },
	{ "poll", test_poll },
	{ "poll_wakes", test_poll_wakes },
	{ "nonblock_later", test_nonblock_later },
	{ "eintr", test_eintr },
	{ "two_readers", test_two_readers },
	{ "killed_reader", test_killed_reader },
	{ "fork", test_fork },
	{ "thousand", test_thousand },
	{ "gone", test_gone },
	{ 0 },
};

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	umad = argv[2];
	return run_tests(tests, argv[1]);
}
