/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages longer than a read's buffer, one named test each:
 * umad_rmpp NAME SENDER RECEIVER LID. SENDER and RECEIVER are umad files of two
 * ports of one subnet, LID is the receiver's.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "umad_message.h"

static void test_sizes(void)
{
	static const size_t sizes[] = { 257, 472, 473, 1000, 4096, 65536, 200000 };
	struct pair pair = pair_new(0x32, 0);
	uint8_t buf[HDR + MAD_LEN];
	uint32_t tid = 100;

	/* One segment needs no more room than it has. */
	send_message(&pair, 1, 100);
	CHECK_ERR(read(pair.to, buf, HDR + 99), EINVAL);
	CHECK(read(pair.to, buf, HDR + 100) == HDR + 100);
	CHECK(holds(buf, 1, HDR + 100, 100));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		send_message(&pair, ++tid, sizes[i]);
		CHECK(readable(pair.to, 5000));
		read_message(pair.to, tid, sizes[i]);
	}
}

/* The kernel cuts such reads and writes into several requests. */
static void test_megabytes(void)
{
	struct pair pair = pair_new(0x33, 0);
	size_t len = (3 << 20) + 12345, some = 2 << 20;
	uint8_t *buf = malloc(HDR + len);

	send_message(&pair, 1, len);
	CHECK(readable(pair.to, 20000));
	memset(buf, 0xee, HDR + len);
	CHECK_ERR(read(pair.to, buf, some), ENOSPC);
	CHECK(holds(buf, 1, HDR + len, MAD_LEN));
	CHECK(buf[HDR + MAD_LEN] == 0xee);
	read_message(pair.to, 1, len);
	/* A long write's error is the whole write's. */
	free(buf);
	buf = make_message(&pair, 2, len);
	((struct ib_user_mad_hdr *)buf)->id = 31;
	CHECK_ERR(write(pair.from, buf, HDR + len), EIO);
	CHECK(!readable(pair.to, 0));
	free(buf);
	send_message(&pair, 3, 300);
	CHECK(readable(pair.to, 5000));
	read_message(pair.to, 3, 300);
}

/* Exactly what one request of FUSE holds, one byte less and one more, at odd addresses. */
static void test_edges(void)
{
	struct pair pair = pair_new(0x34, 0);
	uint32_t tid = 0;

	for (size_t shift = 0; shift < 4096; shift += 2048 - 8) {
		for (size_t count = (1 << 20) - 4097; count <= (1 << 20) + 4097; count += 4097) {
			size_t len = count - HDR;
			uint8_t *out = malloc(shift + count), *in = malloc(shift + count);
			uint8_t *msg = make_message(&pair, ++tid, len);

			memcpy(out + shift, msg, count);
			CHECK(write(pair.from, out + shift, count) == (ssize_t)count);
			CHECK(readable(pair.to, 20000));
			CHECK_ERR(read(pair.to, in + shift, count - 1), ENOSPC);
			CHECK(holds(in + shift, tid, count, MAD_LEN));
			CHECK(read(pair.to, in + shift, count) == (ssize_t)count);
			CHECK(holds(in + shift, tid, count, len));
			free(msg);
			free(out);
			free(in);
		}
	}
}

static void test_vectors(void)
{
	struct pair pair = pair_new(0x35, 0);
	uint8_t small[HDR + MAD_LEN], *big = malloc(HDR + 5000);
	struct iovec split[] = { { small, 1 }, { NULL, 0 }, { small + 1, 80 },
				 { small + 81, sizeof(small) - 81 } };
	struct iovec two[] = { { big, HDR }, { big + HDR, 5000 } };

	send_message(&pair, 1, 5000);
	CHECK(readable(pair.to, 5000));
	memset(small, 0xee, sizeof(small));
	CHECK_ERR(readv(pair.to, split, 4), ENOSPC);
	CHECK(holds(small, 1, HDR + 5000, MAD_LEN));
	memset(small, 0xee, sizeof(small));
	CHECK_ERR(preadv2(pair.to, split, 4, -1, 0), ENOSPC);
	CHECK(holds(small, 1, HDR + 5000, MAD_LEN));
	CHECK(readv(pair.to, two, 2) == (ssize_t)HDR + 5000);
	CHECK(holds(big, 1, HDR + 5000, 5000));
	free(big);
}

/* Memory that can't be written: EFAULT, and the message stays. */
static void test_bad_buffer(void)
{
	struct pair pair = pair_new(0x36, 0);
	uint8_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *end = page + 4096 - HDR - 100;

	send_message(&pair, 1, 1000);
	CHECK(readable(pair.to, 5000));
	mprotect(page, 4096, PROT_READ);
	CHECK_ERR(syscall(SYS_read, pair.to, page, HDR + MAD_LEN), EFAULT);
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
	munmap(page + 4096, 4096);
	syscall(SYS_read, pair.to, end, HDR + MAD_LEN);
	read_message(pair.to, 1, 1000);
}

/* --- readers that wait --- */

struct short_reader {
	pthread_t thread;
	atomic_int tid;
	int fd, err;
	ssize_t ret;
	uint8_t buf[HDR + MAD_LEN];
};

static void *short_main(void *arg)
{
	struct short_reader *reader = arg;

	reader->tid = gettid();
	reader->ret = read(reader->fd, reader->buf, sizeof(reader->buf));
	reader->err = errno;
	return NULL;
}

static void short_start(struct short_reader *reader, int fd)
{
	memset(reader->buf, 0xee, sizeof(reader->buf));
	reader->fd = fd;
	reader->tid = 0;
	pthread_create(&reader->thread, NULL, short_main, reader);
	while (!reader->tid)
		usleep(100);
	CHECK(wait_in_syscall(reader->tid, SYS_read));
}

static void short_check(struct short_reader *reader, uint32_t tid, size_t len)
{
	pthread_join(reader->thread, NULL);
	CHECK(reader->ret == -1 && reader->err == ENOSPC);
	CHECK(holds(reader->buf, tid, HDR + len, MAD_LEN));
}

static void test_blocked(void)
{
	struct pair pair = pair_new(0x37, 0);
	struct short_reader a;

	short_start(&a, pair.to);
	send_message(&pair, 1, 3000);
	short_check(&a, 1, 3000);
	read_message(pair.to, 1, 3000);
}

/* Both get the message's beginning, one after the other, since it stays. */
static void test_two_blocked(void)
{
	struct pair pair = pair_new(0x38, 0);
	struct short_reader a, b;

	short_start(&a, pair.to);
	short_start(&b, pair.to);
	send_message(&pair, 1, 3000);
	short_check(&a, 1, 3000);
	short_check(&b, 1, 3000);
	read_message(pair.to, 1, 3000);
}

/* --- load --- */

#define ROUNDS	300

static void *rounds_main(void *arg)
{
	const struct pair *pair = arg;

	for (uint32_t tid = 1; tid <= ROUNDS; tid++) {
		size_t len = 300 + tid * 37 % 4000;

		send_message(pair, tid, len);
		read_message(pair->to, tid, len);
	}
	return NULL;
}

static void test_threads(void)
{
	struct pair pairs[4];
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		pairs[i] = pair_new((uint8_t)(0x39 + i), 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, rounds_main, &pairs[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

static void test_processes(void)
{
	struct pair pairs[2];
	int status;

	for (int i = 0; i < 2; i++) {
		pairs[i] = pair_new((uint8_t)(0x3d + i), 0);
		if (!fork()) {
			rounds_main(&pairs[i]);
			_exit(failures != 0);
		}
	}
	for (int i = 0; i < 2; i++)
		CHECK(wait(&status) > 0 && status == 0);
}

/* Two threads take turns at one queue as they like: each message is read whole once. */
static atomic_uint left;

static void *share_main(void *arg)
{
	const struct pair *pair = arg;
	uint8_t small[HDR + MAD_LEN], *big = malloc(HDR + 2000);

	while (left) {
		ssize_t n = read(pair->to, small, sizeof(small));

		CHECK(n < 0 && (errno == ENOSPC || errno == EAGAIN));
		n = read(pair->to, big, HDR + 2000);
		if (n < 0) {
			CHECK(errno == EAGAIN);
			continue;
		}
		CHECK(n == (ssize_t)HDR + 2000);
		CHECK(holds(big, get32(big + HDR + 12), HDR + 2000, 2000));
		left--;
	}
	free(big);
	return NULL;
}

static void test_shared_file(void)
{
	struct pair pair = pair_new(0x3f, O_NONBLOCK);
	pthread_t a, b;

	left = ROUNDS;
	for (uint32_t tid = 1; tid <= ROUNDS; tid++)
		send_message(&pair, tid, 2000);
	pthread_create(&a, NULL, share_main, &pair);
	pthread_create(&b, NULL, share_main, &pair);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	CHECK(!readable(pair.to, 0));
}

static const struct test tests[] = {
	{ "sizes", test_sizes },
	{ "megabytes", test_megabytes },
	{ "edges", test_edges },
	{ "vectors", test_vectors },
	{ "bad_buffer", test_bad_buffer },
	{ "blocked", test_blocked },
	{ "two_blocked", test_two_blocked },
	{ "threads", test_threads },
	{ "processes", test_processes },
	{ "shared_file", test_shared_file },
	{ 0 },
};

int main(int argc, char **argv)
{
	return run_message_tests(tests, argc, argv);
}
