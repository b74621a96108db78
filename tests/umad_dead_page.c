/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reader whose buffer is a page that never comes (userfaultfd), so that
 * whoever fills it hangs: umad_dead_page NAME SENDER RECEIVER LID. Exits with
 * 77 where userfaultfd isn't to be had.
 */
#include <linux/userfaultfd.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "umad_message.h"

#define MESSAGE		3000
#define NO_USERFAULTFD	77

/* The child, whose main thread looks on while the reader hangs. */
struct victim {
	pthread_t thread;
	atomic_int tid;
	int fd, uffd;
	uint8_t *page;
	ssize_t ret;
	int err;
};

static void *reader_main(void *arg)
{
	struct victim *victim = arg;

	victim->tid = gettid();
	victim->ret = read(victim->fd, victim->page, HDR + MAD_LEN);
	victim->err = errno;
	return NULL;
}

static void map_page(struct victim *victim)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { 0, 4096 },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	victim->page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	victim->uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	reg.range.start = (uintptr_t)victim->page;
	if (victim->uffd < 0 || ioctl(victim->uffd, UFFDIO_API, &api) ||
	    ioctl(victim->uffd, UFFDIO_REGISTER, &reg))
		exit(NO_USERFAULTFD);
}

/* The page is taken away once the read is under way, and its fault waited for. */
static void hang(struct victim *victim, int fd, int ready)
{
	struct uffd_msg msg;

	victim->fd = fd;
	map_page(victim);
	pthread_create(&victim->thread, NULL, reader_main, victim);
	while (!victim->tid)
		usleep(100);
	CHECK(wait_in_syscall(victim->tid, SYS_read));
	CHECK(madvise(victim->page, 4096, MADV_DONTNEED) == 0);
	CHECK(write(ready, "r", 1) == 1);	/* for the message to be sent */
	CHECK(read(victim->uffd, &msg, sizeof(msg)) == sizeof(msg));
	CHECK(msg.event == UFFD_EVENT_PAGEFAULT);
	CHECK(write(ready, "h", 1) == 1);	/* hangs */
}

static void child_stays(struct victim *victim)
{
	(void)victim;
	for (;;)
		pause();
}

static void on_signal(int sig)
{
	(void)sig;
}

static void child_signal(struct victim *victim)
{
	struct sigaction act = { .sa_handler = on_signal };

	sigaction(SIGUSR1, &act, NULL);
	pthread_kill(victim->thread, SIGUSR1);
	pthread_join(victim->thread, NULL);
	CHECK(victim->ret == -1 && victim->err == EINTR);
}

static void child_resolves(struct victim *victim)
{
	struct uffdio_zeropage zero = { .range = { (uintptr_t)victim->page, 4096 } };

	CHECK(ioctl(victim->uffd, UFFDIO_ZEROPAGE, &zero) == 0);
	pthread_join(victim->thread, NULL);
	CHECK(victim->ret == -1 && victim->err == ENOSPC);
	CHECK(holds(victim->page, 1, HDR + MESSAGE, MAD_LEN));
}

/* A child hangs in pair->to; what it does then is act's. */
static pid_t start_victim(const struct pair *pair, void (*act)(struct victim *))
{
	struct victim victim = { 0 };
	int ready[2], status;
	char byte;
	pid_t child;

	CHECK(pipe(ready) == 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		hang(&victim, pair->to, ready[1]);
		act(&victim);
		_exit(failures != 0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		waitpid(child, &status, 0);
		exit(WEXITSTATUS(status));
	}
	send_message(pair, 1, MESSAGE);
	CHECK(read(ready[0], &byte, 1) == 1 && byte == 'h');
	close(ready[0]);
	return child;
}

/* Others aren't held up meanwhile, the file's own queue neither. */
static void go_on(const struct pair *pair)
{
	struct pair other = pair_new(0x41, 0);

	send_message(&other, 1, MESSAGE);
	read_message(other.to, 1, MESSAGE);
	send_message(pair, 2, MESSAGE);
	read_message(pair->to, 2, MESSAGE);
}

static void test_killed(void)
{
	struct pair pair = pair_new(0x40, 0);
	pid_t child = start_victim(&pair, child_stays);
	int status;

	go_on(&pair);
	kill(child, SIGKILL);
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	read_message(pair.to, 1, MESSAGE);
}

static void test_signal(void)
{
	struct pair pair = pair_new(0x40, 0);
	pid_t child = start_victim(&pair, child_signal);
	int status;

	CHECK(waitpid(child, &status, 0) == child && status == 0);
	read_message(pair.to, 1, MESSAGE);
}

static void test_resolves(void)
{
	struct pair pair = pair_new(0x40, 0);
	pid_t child = start_victim(&pair, child_resolves);
	int status;

	CHECK(waitpid(child, &status, 0) == child && status == 0);
	read_message(pair.to, 1, MESSAGE);
}

/* A writer that hangs in the kernel keeps no other writer of the port from long messages. */
static void write_hanging(const struct pair *pair, int ready)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	size_t size = 16 * 4096;
	uint8_t *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	reg.range = (struct uffdio_range){ (uintptr_t)pages, size };
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &reg))
		_exit(NO_USERFAULTFD);
	CHECK(write(ready, "r", 1) == 1);
	CHECK(syscall(SYS_write, pair->from, pages, size) == 0);
}

static void test_writer(void)
{
	struct pair pair = pair_new(0x40, 0);
	int ready[2], status;
	char byte;
	pid_t child;

	CHECK(pipe(ready) == 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		write_hanging(&pair, ready[1]);
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		waitpid(child, &status, 0);
		exit(WEXITSTATUS(status));
	}
	CHECK(wait_in_syscall(child, SYS_write));
	for (uint32_t tid = 1; tid < 4; tid++) {
		send_message(&pair, tid, 100000);
		CHECK(readable(pair.to, 5000));
		read_message(pair.to, tid, 100000);
	}
	kill(child, SIGKILL);
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

/* For a look at how the daemon ends: prints "hangs" and stays until killed. */
static void test_stays(void)
{
	struct pair pair = pair_new(0x40, 0);

	start_victim(&pair, child_stays);
	puts("hangs");
	fflush(stdout);
	wait(NULL);
}

static const struct test tests[] = {
	{ "killed", test_killed },
	{ "signal", test_signal },
	{ "resolves", test_resolves },
	{ "writer", test_writer },
	{ "stays", test_stays },
	{ 0 },
};

int main(int argc, char **argv)
{
	return run_message_tests(tests, argc, argv);
}
