/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What may happen while private memory is registered and used: signal handlers,
 * and other threads that fork, unmap, or map something else there.
 * uverbs_private_races TEST [ROUNDS]. Run by ibfs-run.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "uverbs_private.h"

static unsigned long rounds;

/* --- a signal handler --- */

static uint8_t *given_up;

static void give_up_in_handler(int sig)
{
	int saved = errno;

	(void)sig;
	CHECK(!madvise(given_up, PAGE, MADV_DONTNEED));
	errno = saved;
}

/* Once each time: a command that is interrupted again and again would never end. */
static void test_handler(struct end *end)
{
	struct sigaction action = { .sa_handler = give_up_in_handler, .sa_flags = SA_RESTART };
	uint8_t *mem = map_private(16 * SIZE), *other = map_private(SIZE);
	struct ibv_mr *mr = reg(end, other, SIZE);

	given_up = map_private(PAGE);
	fill(mem, 16 * SIZE, 1);
	sigaction(SIGALRM, &action, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		struct itimerval once = { .it_value.tv_usec = (suseconds_t)(1 + i % 60 * 50) };

		setitimer(ITIMER_REAL, &once, NULL);
		CHECK(!ibv_dereg_mr(reg(end, mem, 16 * SIZE)));
	}
	CHECK(filled(mem, 16 * SIZE, 1) && !ibv_dereg_mr(mr));
}

/* --- threads --- */

struct other {
	pthread_t thread;
	const struct end *end;
	atomic_bool stop;
};

static void spin_ns(unsigned long ns)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((unsigned long)(now.tv_sec - from.tv_sec) * 1000000000 + (unsigned long)now.tv_nsec -
	       (unsigned long)from.tv_nsec < ns);
}

/* Freed before the region ends, as a registration cache finds out too late. */
static void *register_and_unmap(void *arg)
{
	struct other *other = arg;
	size_t size = 64 * SIZE;

	for (unsigned long i = 0; !atomic_load(&other->stop); i++) {
		uint8_t *mem = map_private(size);
		struct ibv_mr *mr;

		memset(mem, 1, size);
		mr = reg(other->end, mem, size);
		spin_ns(i % 20 * 50000);
		munmap(mem, size);
		CHECK(!ibv_dereg_mr(mr));
	}
	return NULL;
}

static void test_fork_unmap(struct end *end)
{
	struct other other = { .end = end };
	int status;
	pid_t pid;

	pthread_create(&other.thread, NULL, register_and_unmap, &other);
	for (unsigned long i = 0; i < rounds; i++) {
		pid = fork();
		if (!pid)
			_exit(0);
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	}
	atomic_store(&other.stop, true);
	pthread_join(other.thread, NULL);
}

static void *deregister(void *arg)
{
	CHECK(!ibv_dereg_mr(arg));
	return NULL;
}

/* A region ends in one thread while its memory goes in another, which maps a file there. */
static void test_replace(struct end *end)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	size_t size = 16 * SIZE;

	CHECK(!ftruncate(fd, (off_t)size));
	for (unsigned long i = 0; i < rounds; i++) {
		uint8_t *mem = map_private(size);
		pthread_t thread;

		memset(mem, 1, size);
		pthread_create(&thread, NULL, deregister, reg(end, mem, size));
		spin_ns(i % 100 * 10000);
		CHECK(mmap(mem, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == mem);
		mem[1] = 2;
		pthread_join(thread, NULL);
		CHECK(pwrite(fd, &i, sizeof(i), 0) == sizeof(i) && !memcmp(mem, &i, sizeof(i)));
		munmap(mem, size);
	}
	close(fd);
}

static const struct {
	const char *name;
	void (*fn)(struct end *end);
} tests[] = {
	{ "handler", test_handler }, { "fork_unmap", test_fork_unmap }, { "replace", test_replace },
};

int main(int argc, char **argv)
{
	struct end end;

	rounds = argc > 2 ? strtoul(argv[2], NULL, 0) : 100;
	for (size_t i = 0; argc > 1 && i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (strcmp(argv[1], tests[i].name))
			continue;
		open_end(&end);
		tests[i].fn(&end);
		close_end(&end);
		return failed;
	}
	fputs("usage: uverbs_private_races TEST [ROUNDS]\n", stderr);
	return 2;
}
