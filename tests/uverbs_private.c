/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private memory that a program registers: the daemon copies to and from it, and
 * the program, its threads and its children have it as it was.
 * uverbs_private TEST [ROUNDS]. Run by ibfs-run.
 */
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uverbs_private.h"

static unsigned long rounds;

/* --- what is registered is what it was --- */

/* Read and written, also at its ends. */
static void use(struct end *end, uint8_t *mem, size_t size)
{
	uint8_t *own = map_private(size);
	struct ibv_mr *mr, *ours = reg(end, own, size);

	fill(mem, size, 1);
	mr = reg(end, mem, size);
	CHECK(filled(mem, size, 1));
	fill(own, size, 2);
	write_to(end, ours, mr);
	CHECK(filled(mem, size, 2));
	fill(mem, size, 3);
	CHECK(transfer(end, IBV_WR_RDMA_READ, ours, mr, 0, (uint32_t)size) == IBV_WC_SUCCESS);
	CHECK(filled(own, size, 3));
	CHECK(!ibv_dereg_mr(mr) && filled(mem, size, 3));
	CHECK(!ibv_dereg_mr(ours) && filled(own, size, 3));
	munmap(own, size);
}

static void test_use(struct end *end)
{
	uint8_t *mem = map_private(3 * SIZE), *heap = must(malloc(1 << 20), "malloc");
	uint8_t *small = must(malloc(100), "malloc"), stack[3 * PAGE];

	use(end, mem, SIZE);
	use(end, mem, 3 * SIZE);
	use(end, mem + 4, SIZE);
	use(end, mem + SIZE - 1, 2);
	use(end, heap, 1 << 20);
	use(end, small, 100);
	use(end, stack, sizeof(stack));
	munmap(mem, 3 * SIZE);
	free(heap);
	free(small);
}

static unsigned long resident_kb(void)
{
	FILE *status = must(fopen("/proc/self/status", "r"), "status");
	unsigned long kb = 0;
	char line[256];

	while (fgets(line, sizeof(line), status))
		sscanf(line, "VmRSS: %lu", &kb);
	fclose(status);
	return kb;
}

/* Pages that nobody touched stay so when they are registered. */
static void test_sparse(struct end *end)
{
	size_t size = 256 << 20;
	uint8_t *mem = map_private(size), *own = map_private(PAGE);
	struct ibv_mr *mr, *ours = reg(end, own, PAGE);
	unsigned long before;

	mem[PAGE] = 7;
	before = resident_kb();
	mr = reg(end, mem, size);
	own[5] = 9;
	write_to(end, ours, mr);
	CHECK(!ibv_dereg_mr(mr));
	CHECK(resident_kb() < before + (64 << 10));
	CHECK(mem[5] == 9 && mem[PAGE] == 7 && !mem[size - 1] && !mem[size / 2]);
	CHECK(!ibv_dereg_mr(ours));
	munmap(mem, size);
}

/* --- threads that write all the time --- */

struct writer {
	pthread_t thread;
	volatile uint64_t *slots;	/* every PAGE */
	unsigned int num, nr;
	int pipe;			/* what is written by read(); -1: stores */
	uint64_t count;
	atomic_bool *stop;
};

/* Each goes round the pages; its slot of each page counts the rounds. */
static void *store(void *arg)
{
	struct writer *writer = arg;

	while (!atomic_load(writer->stop)) {
		writer->count++;
		for (unsigned int i = 0; i < writer->num; i++) {
			volatile uint64_t *slot = &writer->slots[i * PAGE / 8 + writer->nr];

			if (*slot != writer->count - 1) {
				printf("page %u: %lu after %lu\n", i, *slot, writer->count - 1);
				failed = 1;
				return NULL;
			}
			*slot = writer->count;
		}
	}
	return NULL;
}

static void *store_by_read(void *arg)
{
	struct writer *writer = arg;

	while (!atomic_load(writer->stop)) {
		writer->count++;
		for (unsigned int i = 0; i < writer->num; i++) {
			volatile uint64_t *slot = &writer->slots[i * PAGE / 8 + writer->nr];
			int ends[2];

			if (*slot != writer->count - 1 || pipe(ends) ||
			    write(ends[1], &writer->count, 8) != 8 ||
			    read(ends[0], (void *)slot, 8) != 8) {
				printf("read: page %u: %lu after %lu (errno %d)\n", i, *slot,
				       writer->count - 1, errno);
				failed = 1;
				return NULL;
			}
			close(ends[0]);
			close(ends[1]);
		}
	}
	return NULL;
}

/* Messages go to each page meanwhile, behind what the threads write. */
static void test_writers(struct end *end)
{
	uint8_t *mem = map_private(SIZE), *own = map_private(SIZE);
	struct ibv_mr *mr, *ours = reg(end, own, SIZE);
	const uint32_t off = 2048, len = 100;
	atomic_bool stop = false;
	struct writer writers[3];

	for (unsigned int i = 0; i < 3; i++) {
		writers[i] = (struct writer){
			.slots = (uint64_t *)mem, .num = SIZE / PAGE, .nr = i, .stop = &stop,
		};
		pthread_create(&writers[i].thread, NULL, i ? store : store_by_read, &writers[i]);
	}
	for (unsigned long i = 0; i < rounds; i++) {
		size_t at = i * PAGE % SIZE + off;

		mr = reg(end, mem, SIZE);
		memset(own + at, (int)(i & 0xff), len);
		CHECK(transfer(end, IBV_WR_RDMA_WRITE, ours, mr, at, len) == IBV_WC_SUCCESS);
		CHECK(!memcmp(mem + at, own + at, len));
		CHECK(!ibv_dereg_mr(mr));
	}
	atomic_store(&stop, true);
	for (unsigned int i = 0; i < 3; i++)
		pthread_join(writers[i].thread, NULL);
	for (unsigned int i = 0; i < SIZE; i += PAGE)
		for (unsigned int k = 0; k < 3; k++)
			CHECK(((uint64_t *)(mem + i))[k] == writers[k].count);
	CHECK(!ibv_dereg_mr(ours));
	munmap(mem, SIZE);
}

/* --- children --- */

/* Until the parent says so, or dies. */
static void wait_byte(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		_exit(9);
}

/* What the parent does later isn't seen here, and what is done here isn't seen there. */
static void child(uint8_t *mem, uint8_t *heap, int from_parent, int to_parent)
{
	bool ok = filled(mem, SIZE, 1) && filled(heap, 1 << 20, 2);

	ok = ok && write(to_parent, "r", 1) == 1;
	wait_byte(from_parent);
	ok = ok && filled(mem, SIZE, 1);
	fill(mem, SIZE, 3);
	free(heap);
	heap = calloc(2, 1 << 20);
	ok = ok && heap && !heap[0] && !heap[(2 << 20) - 1];
	_exit(ok ? 0 : 1);
}

static void test_fork(struct end *end)
{
	uint8_t *mem = map_private(SIZE), *own = map_private(SIZE), *heap = malloc(1 << 20);
	struct ibv_mr *mr, *ours = reg(end, own, SIZE), *other = reg(end, heap, 1 << 20);
	int down[2], up[2], status;
	pid_t pid;

	fill(mem, SIZE, 1);
	mr = reg(end, mem, SIZE);
	fill(heap, 1 << 20, 2);
	CHECK(!pipe(down) && !pipe(up));
	pid = fork();
	if (!pid) {
		close(down[1]);
		close(up[0]);
		child(mem, heap, down[0], up[1]);
	}
	close(up[1]);
	wait_byte(up[0]);
	fill(own, SIZE, 4);
	write_to(end, ours, mr);
	CHECK(filled(mem, SIZE, 4));
	CHECK(write(down[1], "r", 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(filled(mem, SIZE, 4) && filled(heap, 1 << 20, 2));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(ours) && !ibv_dereg_mr(other));
	free(heap);
}

struct registrar {
	pthread_t thread;
	const struct end *end;
	uint8_t *mem;			/* SIZE bytes */
	unsigned int nr;
	atomic_bool *stop;
	atomic_int *turns;
};

static void *register_for_ever(void *arg)
{
	struct registrar *registrar = arg;

	while (!atomic_load(registrar->stop))
		CHECK(!ibv_dereg_mr(reg(registrar->end, registrar->mem, SIZE)));
	return NULL;
}

/* A child that has its parent's memory closes descriptors, and leaves all as it was. */
static void test_vfork(struct end *end)
{
	uint8_t *mem = map_private(SIZE);
	struct ibv_mr *mr = reg(end, mem, SIZE);
	int status;
	pid_t pid;

	pid = vfork();
	if (!pid) {
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	CHECK(!ibv_dereg_mr(mr));
	use(end, mem, SIZE);
}

extern char **environ;

/* Children while other threads register. */
static void test_fork_threads(struct end *end)
{
	uint8_t *mem = map_private(SIZE);
	struct ibv_mr *mr = reg(end, mem, SIZE);
	char *args[] = { (char *)"true", NULL };
	struct registrar others[2];
	atomic_bool stop = false;
	int status;
	pid_t pid;

	fill(mem, SIZE, 5);
	for (unsigned int i = 0; i < 2; i++) {
		others[i] = (struct registrar){
			.end = end, .mem = map_private(SIZE), .stop = &stop,
		};
		pthread_create(&others[i].thread, NULL, register_for_ever, &others[i]);
	}
	for (unsigned long i = 0; i < rounds; i++) {
		pid = fork();
		if (!pid)
			_exit(!filled(mem, SIZE, 5));
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
		CHECK(!posix_spawnp(&pid, "true", NULL, NULL, args, environ));
		CHECK(waitpid(pid, &status, 0) == pid && !status);
	}
	CHECK(system("exit 3") == 3 << 8);
	atomic_store(&stop, true);
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(others[i].thread, NULL);
	CHECK(!ibv_dereg_mr(mr));
}

/* --- what programs do with memory --- */

/* What is given up is zeroes when it comes back, and the region is of what is there then. */
static void test_give_up(struct end *end)
{
	uint8_t *mem = map_private(SIZE), *own = map_private(SIZE);
	struct ibv_mr *ours = reg(end, own, SIZE), *mr;

	fill(mem, SIZE, 1);
	mr = reg(end, mem, SIZE);
	CHECK(!madvise(mem + PAGE, 2 * PAGE, MADV_DONTNEED));
	CHECK(!mem[PAGE] && !mem[3 * PAGE - 1] && filled(mem, PAGE, 1) && mem[3 * PAGE]);
	CHECK(transfer(end, IBV_WR_RDMA_READ, ours, mr, 0, SIZE) == IBV_WC_SUCCESS);
	CHECK(!memcmp(own, mem, SIZE));
	fill(own, SIZE, 2);
	write_to(end, ours, mr);
	CHECK(filled(mem, SIZE, 2));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(ours) && filled(mem, SIZE, 2));
}

/* Gone, or something else, before the region ends: what is there is reached, and an error else. */
static void test_unmap(struct end *end)
{
	uint8_t *mem = map_private(2 * SIZE), *own = map_private(SIZE);
	struct ibv_mr *ours = reg(end, own, SIZE), *a = reg(end, mem, SIZE);
	struct ibv_mr *b = reg(end, mem + SIZE, SIZE);

	fill(own, SIZE, 4);
	CHECK(!munmap(mem, 2 * SIZE));
	CHECK(transfer(end, IBV_WR_RDMA_WRITE, ours, a, 0, SIZE) > IBV_WC_SUCCESS);
	connect_again(end);
	CHECK(transfer(end, IBV_WR_RDMA_READ, ours, b, 0, SIZE) > IBV_WC_SUCCESS);
	connect_again(end);
	CHECK(filled(own, SIZE, 4));
	CHECK(mmap(mem, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		   0) == mem);
	fill(mem, SIZE, 3);
	write_to(end, ours, a);
	CHECK(filled(mem, SIZE, 4));
	CHECK(!ibv_dereg_mr(a) && !ibv_dereg_mr(b) && !ibv_dereg_mr(ours));
	CHECK(filled(mem, SIZE, 4));
	use(end, mem, SIZE);
}

/* realloc(): while it is registered, which moves the mapping, and afterwards. */
static void test_realloc(struct end *end)
{
	size_t size = 1 << 20;
	uint8_t *mem = must(malloc(size), "malloc"), *more;
	struct ibv_mr *mr;

	fill(mem, size, 1);
	mr = reg(end, mem, size);
	more = must(realloc(mem, 8 * size), "realloc");
	CHECK(filled(more, size, 1));
	memset(more + size, 5, 7 * size);
	if (!fork())
		_exit(!filled(more, size, 1) || more[8 * size - 1] != 5);
	wait(&(int){ 0 });
	CHECK(!ibv_dereg_mr(mr));
	CHECK(filled(more, size, 1) && more[size] == 5 && more[8 * size - 1] == 5);
	use(end, more, 8 * size);
	fill(more, size, 1);
	mem = must(realloc(more, 2 * size), "realloc");
	CHECK(filled(mem, size, 1));
	use(end, mem, 2 * size);
	free(mem);
}

/* Pages that the program may no longer use itself: all of a message arrives, or it failed. */
static void test_protect(struct end *end)
{
	uint8_t *mem = map_private(SIZE), *own = map_private(SIZE);
	struct ibv_mr *mr, *ours = reg(end, own, SIZE);
	int status;

	fill(mem, SIZE, 1);
	fill(own, SIZE, 2);
	mr = reg(end, mem, SIZE);
	CHECK(!mprotect(mem + PAGE, PAGE, PROT_READ));
	CHECK(!mprotect(mem + 3 * PAGE, PAGE, PROT_NONE));
	if (!fork())
		_exit(!filled(mem, 3 * PAGE, 1));
	CHECK(wait(&status) > 0 && !status);
	status = transfer(end, IBV_WR_RDMA_WRITE, ours, mr, 0, SIZE);
	CHECK(!mprotect(mem, SIZE, PROT_READ | PROT_WRITE));
	if (status == IBV_WC_SUCCESS)
		CHECK(filled(mem, SIZE, 2));
	else
		connect_again(end);
	CHECK(filled(mem, PAGE, 2));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(ours));
	use(end, mem, SIZE);
}

/* --- regions that share pages --- */

static void test_overlap(struct end *end)
{
	uint8_t *mem = map_private(4 * SIZE), *own = map_private(SIZE);
	struct ibv_mr *ours = reg(end, own, SIZE), *all, *part, *odd, *edge;

	fill(mem, 4 * SIZE, 1);
	all = reg(end, mem, 2 * SIZE);
	part = reg(end, mem + PAGE, SIZE);
	odd = reg(end, mem + 100, 100);
	edge = reg(end, mem + SIZE, 2 * SIZE);
	fill(own, SIZE, 2);
	write_to(end, ours, edge);
	CHECK(!memcmp(mem + SIZE, own, SIZE));
	CHECK(!ibv_dereg_mr(all));
	write_to(end, ours, part);
	CHECK(!memcmp(mem + PAGE, own, SIZE));
	CHECK(!ibv_dereg_mr(part));
	fill(own, SIZE, 3);
	CHECK(transfer(end, IBV_WR_RDMA_WRITE, ours, odd, 0, 100) == IBV_WC_SUCCESS);
	CHECK(!memcmp(mem + 100, own, 100));
	write_to(end, ours, edge);
	CHECK(!memcmp(mem + SIZE, own, SIZE));
	CHECK(!ibv_dereg_mr(edge) && !ibv_dereg_mr(odd) && !ibv_dereg_mr(ours));
	CHECK(!memcmp(mem + SIZE, own, SIZE));
}

static void test_many(struct end *end)
{
	uint8_t *mem = map_private(rounds * 2 * PAGE);
	struct ibv_mr **mrs = must(calloc(rounds, sizeof(struct ibv_mr *)), "calloc");

	for (unsigned long i = 0; i < rounds; i++) {
		mem[i * 2 * PAGE] = (uint8_t)i;
		mrs[i] = reg(end, mem + i * 2 * PAGE, PAGE);
	}
	for (unsigned long i = 1; i < rounds; i++) {
		CHECK(transfer(end, IBV_WR_RDMA_WRITE, mrs[i], mrs[i - 1], 0, 64) ==
		      IBV_WC_SUCCESS);
		CHECK(mem[(i - 1) * 2 * PAGE] == (uint8_t)i);
	}
	for (unsigned long i = 0; i < rounds; i++)
		CHECK(!ibv_dereg_mr(mrs[i]));
	CHECK(mem[0] == 1);
	free(mrs);
}

/* The same pages from several threads. */
static void *register_same(void *arg)
{
	struct registrar *registrar = arg;
	uint8_t *at = registrar->mem + registrar->nr * PAGE, nr = (uint8_t)registrar->nr;

	while (atomic_fetch_sub(registrar->turns, 1) > 0) {
		struct ibv_mr *mr = reg(registrar->end, at, SIZE);

		at[SIZE / 2 + nr]++;
		CHECK(!ibv_dereg_mr(mr));
		at[SIZE / 2 + nr]--;
	}
	CHECK(!at[SIZE / 2 + nr]);
	return NULL;
}

static void test_threads(struct end *end)
{
	uint8_t *mem = map_private(2 * SIZE);
	atomic_int turns = (int)rounds;
	struct registrar threads[4];

	for (unsigned int i = 0; i < 4; i++) {
		threads[i] = (struct registrar){ .end = end, .mem = mem, .nr = i, .turns = &turns };
		pthread_create(&threads[i].thread, NULL, register_same, &threads[i]);
	}
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(threads[i].thread, NULL);
	mem[SIZE] = 1;
	CHECK(!ibv_dereg_mr(reg(end, mem, SIZE)));
}

/* All descriptors go, and the region with them; the memory stays, and another context takes the numbers. */
static void test_close_all(struct end *end)
{
	static struct end lost;
	static struct ibv_mr *first;
	uint8_t *mem = map_private(SIZE);
	int status;

	first = reg(end, mem, SIZE);
	fill(mem, SIZE, 1);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	CHECK(filled(mem, SIZE, 1));
	if (!fork())
		_exit(!filled(mem, SIZE, 1));
	CHECK(wait(&status) > 0 && !status);
	lost = *end;
	open_end(end);
	CHECK(lost.ctx != end->ctx && first->context == lost.ctx);
	use(end, mem, SIZE);
}

/* --- what the daemon counts and holds --- */

/* Many regions; then somebody looks at the daemon. */
static void test_hold(struct end *end)
{
	uint8_t *mem = map_private(rounds * PAGE), *own = map_private(PAGE);
	struct ibv_mr *ours = reg(end, own, PAGE), *mr = ours;

	own[0] = 5;
	for (unsigned long i = 0; i < rounds; i++)
		mr = reg(end, mem + i * PAGE, 100);
	CHECK(transfer(end, IBV_WR_RDMA_WRITE, ours, mr, 0, 100) == IBV_WC_SUCCESS);
	CHECK(mem[(rounds - 1) * PAGE] == 5);
	printf("holds\n");
	fflush(stdout);
	wait_byte(STDIN_FILENO);
	_exit(failed);
}

/* Each address space has all of RLIMIT_MEMLOCK; less than a page of it is still a page. */
static void register_all(struct end *end, size_t size)
{
	uint8_t *mem = map_private(size + PAGE);
	struct ibv_mr *mr = reg(end, mem, size), *again;

	CHECK(!ibv_reg_mr(end->pd, mem + size, 1, ACCESS) && errno == ENOMEM);
	CHECK(!ibv_reg_mr(end->pd, mem, PAGE, ACCESS) && errno == ENOMEM);
	CHECK(!ibv_dereg_mr(mr));
	again = reg(end, mem + PAGE, size);
	CHECK(!ibv_dereg_mr(again));
	/* Kept for others to see. */
	reg(end, mem, size);
}

/* By a user without CAP_IPC_LOCK, with another process of the same user beside it. */
static void test_memlock(struct end *end)
{
	struct rlimit limit = { SIZE, SIZE }, none = { 0, 0 };
	struct end mine;
	int status;

	CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
	register_all(end, SIZE);
	if (!fork()) {
		open_end(&mine);
		register_all(&mine, SIZE);
		CHECK(!setrlimit(RLIMIT_MEMLOCK, &none));
		CHECK(!ibv_reg_mr(mine.pd, map_private(PAGE), PAGE, ACCESS) && errno == EPERM);
		_exit(failed);
	}
	CHECK(wait(&status) > 0 && !status);
	printf("holds\n");
	fflush(stdout);
	wait_byte(STDIN_FILENO);
	_exit(failed);
}

static const struct end_test tests[] = {
	{ "use", test_use }, { "sparse", test_sparse }, { "writers", test_writers },
	{ "fork", test_fork }, { "fork_threads", test_fork_threads }, { "vfork", test_vfork },
	{ "give_up", test_give_up },
	{ "unmap", test_unmap }, { "realloc", test_realloc }, { "protect", test_protect },
	{ "overlap", test_overlap }, { "many", test_many }, { "threads", test_threads },
	{ "close_all", test_close_all }, { "hold", test_hold }, { "memlock", test_memlock },
	{ 0 },
};

int main(int argc, char **argv)
{
	if (argc < 2) {
		fputs("usage: uverbs_private TEST [ROUNDS]\n", stderr);
		return 2;
	}
	rounds = argc > 2 ? strtoul(argv[2], NULL, 0) : 100;
	return run_end_test(tests, argv[1]);
}
