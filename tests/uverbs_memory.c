/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a process behind memory regions, by libibverbs, with an RC queue
 * pair that talks to itself: uverbs_memory TEST DAEMON_PID. Run by ibfs-run.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dead_page.h"
#include "uverbs_end.h"

#define SIZE		(256 * 1024)
#define HUGE		(2 << 20)
#define LARGE		(512 << 20)

static const char *daemon_pid;

/* Does the daemon itself map the file? */
static bool daemon_maps(const struct stat *st)
{
	char path[64], line[512];
	bool found = false;
	uint64_t ino;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%s/maps", daemon_pid);
	maps = must(fopen(path, "r"), path);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%*s %*s %*s %*s %" SCNu64, &ino) == 1 && ino == st->st_ino)
			found = true;
	fclose(maps);
	return found;
}

/* A helper thread does it. */
static bool daemon_unmaps(const struct stat *st)
{
	time_t until = time(NULL) + 20;

	while (daemon_maps(st))
		if (time(NULL) > until)
			return false;
	return true;
}

/* Written to, read from, and worked on, from and to private memory; from an odd address on. */
static void use(struct end *end, uint8_t *mem, size_t size, bool mapped, const struct stat *st)
{
	uint8_t *own = must(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				 0), "mmap");
	struct ibv_mr *ours = must(ibv_reg_mr(end->pd, own + 4, size - 4, ACCESS), "reg own");
	struct ibv_mr *mr = must(ibv_reg_mr(end->pd, mem + 4, size - 4, ACCESS), "reg");
	uint64_t *word = (uint64_t *)(mem + 4096);

	if (st)
		CHECK(daemon_maps(st) == mapped);
	memset(mem, 0, size);
	fill(own, size, 1);
	CHECK(transfer(end, IBV_WR_RDMA_WRITE, ours, mr, 0, (uint32_t)size - 4) == IBV_WC_SUCCESS);
	CHECK(filled(own, size, 1) && !memcmp(mem + 4, own + 4, size - 4));
	CHECK(!mem[0] && !mem[1] && !mem[2] && !mem[3]);
	fill(mem, size, 2);
	CHECK(transfer(end, IBV_WR_RDMA_READ, ours, mr, 4096, 8000) == IBV_WC_SUCCESS);
	CHECK(!memcmp(own + 4100, mem + 4100, 8000) && filled(own, 4100, 1));
	*word = 37;
	CHECK(transfer(end, IBV_WR_ATOMIC_FETCH_AND_ADD, ours, mr, 4092, 8) == IBV_WC_SUCCESS);
	CHECK(*word == 42);
	CHECK(!memcmp(own + 4096, &(uint64_t){ 37 }, 8));
	CHECK(!ibv_dereg_mr(mr));
	if (st)
		CHECK(daemon_unmaps(st));
	CHECK(!ibv_dereg_mr(ours));
	munmap(own, size);
}

static uint8_t *map_fd(int fd, size_t size, off_t off, int flags)
{
	return must(mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, off), "mmap");
}

static int memfd(size_t size, unsigned int flags)
{
	int fd = memfd_create("uverbs_memory", flags);

	if (fd < 0 || ftruncate(fd, (off_t)size)) {
		perror("memfd");
		exit(flags & MFD_HUGETLB ? SKIPPED : 1);
	}
	return fd;
}

static void use_fd(struct end *end, int fd, size_t size, off_t off, int flags, bool mapped)
{
	uint8_t *mem = map_fd(fd, size, off, flags);
	struct stat st;

	fstat(fd, &st);
	close(fd);
	use(end, mem, size, mapped, &st);
	munmap(mem, size);
}

static void test_private(struct end *end)
{
	char name[] = "/tmp/uverbs_memory.XXXXXX";
	int fd = mkstemp(name);

	use(end, map_fd(-1, SIZE, 0, MAP_PRIVATE | MAP_ANONYMOUS), SIZE, false, NULL);
	CHECK(fd >= 0 && !unlink(name) && !ftruncate(fd, SIZE));
	use_fd(end, fd, SIZE, 0, MAP_PRIVATE, false);
}

static void test_memfd(struct end *end)
{
	use_fd(end, memfd(SIZE, 0), SIZE, 0, MAP_SHARED, true);
	use_fd(end, memfd(SIZE + 12288, 0), SIZE, 12288, MAP_SHARED, true);
	use_fd(end, memfd(SIZE, 0), SIZE, 0, MAP_PRIVATE, false);
	use(end, map_fd(-1, SIZE, 0, MAP_SHARED | MAP_ANONYMOUS), SIZE, true, NULL);
}

/* Registered while its file is open; until the end of the input, somebody looks at the daemon. */
static void test_descriptor(struct end *end)
{
	int fd = memfd(SIZE, 0);
	uint8_t *mem = map_fd(fd, SIZE, 0, MAP_SHARED);
	struct ibv_mr *mr = must(ibv_reg_mr(end->pd, mem, SIZE, ACCESS), "reg");
	char byte;

	puts("registered");
	fflush(stdout);
	CHECK(read(STDIN_FILENO, &byte, 1) == 0);
	CHECK(!ibv_dereg_mr(mr));
	use(end, mem, SIZE, true, NULL);
	close(fd);
	munmap(mem, SIZE);
}

static void test_shm(struct end *end)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/uverbs_memory.%d", (int)getpid());
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0 && !shm_unlink(name) && !ftruncate(fd, SIZE));
	use_fd(end, fd, SIZE, 0, MAP_SHARED, true);
}

static void test_sysv(struct end *end)
{
	int id = shmget(IPC_PRIVATE, SIZE, 0600);
	struct stat st = { .st_ino = (ino_t)id };	/* SysV's inode is its number */
	uint8_t *mem = shmat(id, NULL, 0);

	CHECK(mem != (void *)-1);
	shmctl(id, IPC_RMID, NULL);
	use(end, mem, SIZE, true, &st);
	shmdt(mem);
}

static void test_huge(struct end *end)
{
	int fd = memfd(HUGE, MFD_HUGETLB);
	uint8_t *mem = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct stat st;

	if (mem == MAP_FAILED) {
		perror("huge page");
		exit(SKIPPED);
	}
	fstat(fd, &st);
	use(end, mem + 4096, HUGE - 4096, true, &st);
}

/* A range over two files, or over a hole, isn't one file's. */
static void test_mixed(struct end *end)
{
	uint8_t *mem = map_fd(-1, SIZE, 0, MAP_PRIVATE | MAP_ANONYMOUS);

	map_fd(memfd(SIZE, 0), SIZE / 2, 0, MAP_SHARED);
	must(mmap(mem, SIZE / 2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memfd(SIZE, 0), 0),
	     "mmap");
	use(end, mem, SIZE, false, NULL);
	munmap(mem + SIZE / 4, 4096);
	CHECK(!ibv_reg_mr(end->pd, mem, SIZE, ACCESS) && errno == EFAULT);
}

/* Pages stay those that were registered, whatever is mapped there later. */
static void test_remap(struct end *end)
{
	int fd = memfd(SIZE, 0);
	uint8_t *mem = map_fd(fd, SIZE, 0, MAP_SHARED), *file = map_fd(fd, SIZE, 0, MAP_SHARED);
	uint8_t *own = map_fd(-1, SIZE, 0, MAP_PRIVATE | MAP_ANONYMOUS);
	struct ibv_mr *ours = must(ibv_reg_mr(end->pd, own, SIZE, ACCESS), "reg own");
	struct ibv_mr *mr = must(ibv_reg_mr(end->pd, mem, SIZE, ACCESS), "reg");

	must(mmap(mem, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
	     "mmap");
	memset(mem, 9, SIZE);
	fill(own, SIZE, 3);
	CHECK(transfer(end, IBV_WR_RDMA_WRITE, ours, mr, 0, SIZE) == IBV_WC_SUCCESS);
	CHECK(filled(file, SIZE, 3));
	CHECK(mem[0] == 9 && !memcmp(mem, mem + 1, SIZE - 1));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(ours));
}

/* A file that is shortened takes its pages away, and nothing else. */
static void test_truncate(struct end *end)
{
	int fd = memfd(SIZE, 0);
	uint8_t *mem = map_fd(fd, SIZE, 0, MAP_SHARED);
	uint8_t *own = map_fd(-1, SIZE, 0, MAP_PRIVATE | MAP_ANONYMOUS);
	struct ibv_mr *ours = must(ibv_reg_mr(end->pd, own, SIZE, ACCESS), "reg own");
	struct ibv_mr *mr = must(ibv_reg_mr(end->pd, mem, SIZE, ACCESS), "reg");

	fill(own, SIZE, 4);
	CHECK(!ftruncate(fd, SIZE / 2));
	CHECK(transfer(end, IBV_WR_RDMA_WRITE, ours, mr, 0, SIZE) == IBV_WC_SUCCESS);
	CHECK(filled(mem, SIZE / 2, 4));
	CHECK(!ftruncate(fd, 0));
	CHECK(transfer(end, IBV_WR_RDMA_READ, ours, mr, 0, SIZE) == IBV_WC_SUCCESS);
	CHECK(transfer(end, IBV_WR_RDMA_WRITE, ours, mr, 0, SIZE) == IBV_WC_SUCCESS);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(ours));
}

/* --- a large file whose last mapping is the daemon's --- */

static uint64_t ns_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
}

/* Processor time of this thread, or of the daemon's first: proc_pid_schedstat(5). */
static uint64_t own_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return ns_of(&now);
}

static uint64_t loop_time(void)
{
	char path[64];
	uint64_t ns = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/task/%s/schedstat", daemon_pid, daemon_pid);
	file = must(fopen(path, "r"), path);
	CHECK(fscanf(file, "%" SCNu64, &ns) == 1);
	fclose(file);
	return ns;
}

static int large_memfd(void)
{
	int fd = memfd(LARGE, 0);

	CHECK(!fallocate(fd, 0, 0, LARGE));
	return fd;
}

/* Its pages are given back, and not by the thread that everybody waits for. */
static void test_left(struct end *end)
{
	int fd = large_memfd();
	uint64_t own = own_time(), loop;
	struct ibv_mr *mr;
	struct stat st;
	uint8_t *mem;

	close(fd);
	own = own_time() - own;
	fd = large_memfd();
	fstat(fd, &st);
	mem = map_fd(fd, 4096, 0, MAP_SHARED);
	mr = must(ibv_reg_mr(end->pd, mem, 4096, ACCESS), "reg");
	close(fd);
	munmap(mem, 4096);
	CHECK(daemon_maps(&st));
	loop = loop_time();
	CHECK(!ibv_dereg_mr(mr) && daemon_unmaps(&st));
	loop = loop_time() - loop;
	printf("pages are freed in %" PRIu64 " ns, by the loop in %" PRIu64 " ns\n", own, loop);
	CHECK(loop < own / 4);
}

/* Whatever is there when it is used, as the process itself may use it then. */
static void test_on_demand(struct end *end)
{
	uint8_t *own = map_fd(-1, SIZE, 0, MAP_PRIVATE | MAP_ANONYMOUS);
	uint8_t *mem = map_fd(-1, SIZE, 0, MAP_PRIVATE | MAP_ANONYMOUS);
	struct ibv_mr *ours = must(ibv_reg_mr(end->pd, own, SIZE, ACCESS), "reg own"), *mr, *all;

	CHECK(!munmap(mem, SIZE));
	mr = must(ibv_reg_mr(end->pd, mem, SIZE, ACCESS | IBV_ACCESS_ON_DEMAND), "reg");
	all = must(ibv_reg_mr(end->pd, NULL, SIZE_MAX, ACCESS | IBV_ACCESS_ON_DEMAND), "reg all");
	must(mmap(mem, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
	     "mmap");
	fill(own, SIZE, 6);
	CHECK(transfer(end, IBV_WR_RDMA_WRITE, ours, mr, 0, SIZE) == IBV_WC_SUCCESS);
	CHECK(filled(mem, SIZE, 6));
	must(mmap(mem, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memfd(SIZE, 0), 0), "mmap");
	CHECK(transfer(end, IBV_WR_RDMA_READ, all, mr, (uintptr_t)mem, 8) == IBV_WC_REM_ACCESS_ERR);
	connect_again(end);
	fill(mem, SIZE, 7);
	CHECK(transfer(end, IBV_WR_RDMA_READ, ours, mr, 0, SIZE) == IBV_WC_SUCCESS);
	CHECK(filled(own, SIZE, 7));
	*(uint64_t *)own = 1;
	CHECK(transfer(end, IBV_WR_ATOMIC_FETCH_AND_ADD, ours, mr, 8, 8) == IBV_WC_SUCCESS);
	CHECK(!mprotect(mem, SIZE, PROT_READ));
	CHECK(transfer(end, IBV_WR_RDMA_READ, ours, mr, 0, SIZE) == IBV_WC_SUCCESS);
	memset(own, 9, SIZE);
	/* The QP's own error may be first. */
	CHECK(transfer(end, IBV_WR_RDMA_WRITE, ours, mr, 0, SIZE) > IBV_WC_SUCCESS);
	CHECK(mem[0] != 9 && mem[SIZE - 1] != 9);
	connect_again(end);
	CHECK(!munmap(mem, SIZE));
	CHECK(transfer(end, IBV_WR_RDMA_READ, ours, mr, 0, 1) == IBV_WC_REM_OP_ERR);
	CHECK(!ibv_dereg_mr(all) && !ibv_dereg_mr(mr) && !ibv_dereg_mr(ours));
}

/* --- a page that doesn't come --- */

static uint8_t *dead_page(struct dead_server *server)
{
	char name[] = "/tmp/uverbs_memory.XXXXXX";
	pthread_t thread;
	uint8_t *page;
	int fd;

	dead_mount(server, name);
	pthread_create(&thread, NULL, dead_serve, server);
	fd = dead_open(name);
	page = map_fd(fd, 4096, 0, MAP_PRIVATE);
	close(fd);
	return page;
}

static void await(const atomic_bool *what, const char *why)
{
	time_t until = time(NULL) + 20;

	while (!*what && time(NULL) < until)
		;
	if (*what)
		return;
	puts(why);
	exit(1);
}

struct dead {
	uint8_t *page, *own;
	struct ibv_mr *mr, *ours;
	struct dead_server server;
};

/* A write to the page is under way, and whoever does it sleeps. */
static void begin_dead(struct end *end, struct dead *dead)
{
	struct ibv_sge sge = { .length = 4096 };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};

	memset(&dead->server, 0, sizeof(dead->server));
	dead->page = dead_page(&dead->server);
	dead->own = map_fd(-1, 4096, 0, MAP_PRIVATE | MAP_ANONYMOUS);
	fill(dead->own, 4096, 5);
	dead->ours = must(ibv_reg_mr(end->pd, dead->own, 4096, ACCESS), "reg own");
	dead->mr = must(ibv_reg_mr(end->pd, dead->page, 4096, ACCESS), "reg");
	sge.addr = (uintptr_t)dead->own;
	sge.lkey = dead->ours->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)dead->page;
	wr.wr.rdma.rkey = dead->mr->rkey;
	CHECK(!ibv_post_send(end->qp, &wr, &bad));
	await(&dead->server.asked, "nobody touched the page");
}

/*
 * It goes on when the page is there. Until then who sleeps there keeps this
 * process from mapping anything, so others' tests are other processes'.
 */
static void test_dead(struct end *end)
{
	time_t until = time(NULL) + 20;
	struct dead dead;
	struct ibv_wc wc;
	int n;

	begin_dead(end, &dead);
	CHECK(ibv_poll_cq(end->cq, 1, &wc) == 0);
	dead_give_page(&dead.server);
	while (!(n = ibv_poll_cq(end->cq, 1, &wc)) && time(NULL) < until)
		;
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(filled(dead.page, 4096, 5));
	CHECK(!ibv_dereg_mr(dead.mr) && !ibv_dereg_mr(dead.ours));
}

static void post_add(struct end *end, const struct ibv_mr *ours, const struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)ours->addr, 8, ours->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = { (uintptr_t)mr->addr, .compare_add = 5, .rkey = mr->rkey },
	};

	CHECK(!ibv_post_send(end->qp, &wr, &bad));
}

/* Does the thread sleep for the kernel? proc_pid_stat(5) */
static bool sleeps(int dir, const char *thread)
{
	char name[300], text[200] = "";
	int fd;

	snprintf(name, sizeof(name), "%s/stat", thread);
	fd = openat(dir, name, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		perror(name);
	close(fd);
	return strstr(text, ") D ");
}

/* So many of the daemon's threads. A process with such a page can't fork to find out. */
static int daemon_sleepers(void)
{
	const struct dirent *entry;
	char path[64];
	DIR *dir;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%s/task", daemon_pid);
	dir = must(opendir(path), path);
	while ((entry = readdir(dir)) != NULL)
		n += entry->d_name[0] != '.' && sleeps(dirfd(dir), entry->d_name);
	closedir(dir);
	return n;
}

static void await_sleepers(int n, double seconds)
{
	for (int i = 0; i < seconds * 100 && daemon_sleepers() < n; i++)
		usleep(10000);
}

/* A page whose server, another process, writes it back until it may go on. */
struct slow {
	uint64_t *word;
	int fd, told[2], go[2];
};

static void slow_page(struct slow *slow)
{
	char name[] = "/tmp/uverbs_memory.XXXXXX";
	struct dead_server server = { 0 };

	dead_mount(&server, name);
	CHECK(!pipe(slow->told) && !pipe(slow->go));
	server.told = slow->told[1];
	server.go = slow->go[0];
	if (!fork()) {
		dead_serve(&server);
		_exit(0);
	}
	close(server.fd);
	slow->fd = dead_open(name);
	slow->word = (uint64_t *)map_fd(slow->fd, 4096, 0, MAP_SHARED);
}

static void write_back(const struct slow *slow)
{
	char byte;

	*slow->word = 1;
	CHECK(!sync_file_range(slow->fd, 0, 4096, SYNC_FILE_RANGE_WRITE));
	CHECK(read(slow->told[0], &byte, 1) == 1);
}

/*
 * Two queue pairs add to a word whose page is being written back: it can be read, but
 * who writes to it waits. None is lost, though the one that the loop began waits there
 * while a helper has the other.
 */
static void test_atomics(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = end->cq, .recv_cq = end->cq,
		.cap = { .max_send_wr = 16, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 1 },
	};
	uint8_t *own = map_fd(-1, 4096, 0, MAP_PRIVATE | MAP_ANONYMOUS);
	struct ibv_mr *ours = must(ibv_reg_mr(end->pd, own, 4096, ACCESS), "reg own"), *mr;
	time_t until = time(NULL) + 40;
	struct end other = *end;
	struct ibv_wc wc[2];
	struct slow slow;
	int n = 0;

	other.qp = must(ibv_create_qp(end->pd, &init), "qp");
	connect_self(&other);
	slow_page(&slow);
	mr = must(ibv_reg_mr(end->pd, slow.word, 4096, ACCESS), "reg");
	write_back(&slow);
	post_add(end, ours, mr);
	await_sleepers(1, 20);
	post_add(&other, ours, mr);
	await_sleepers(2, 0.2);		/* they aren't, if all is well */
	CHECK(write(slow.go[1], "g", 1) == 1);
	while (n < 2 && time(NULL) < until)
		n += ibv_poll_cq(end->cq, 2 - n, wc + n);
	CHECK(n == 2 && wc[0].status == IBV_WC_SUCCESS && wc[1].status == IBV_WC_SUCCESS);
	CHECK(*slow.word == 11);
	CHECK(!ibv_destroy_qp(other.qp) && !ibv_dereg_mr(mr) && !ibv_dereg_mr(ours));
}

/* It stays so until the process is killed. */
static void test_dead_for_ever(struct end *end)
{
	struct dead dead;

	begin_dead(end, &dead);
	puts("stuck");
	fflush(stdout);
	pause();
}

static const struct end_test tests[] = {
	{ "private", test_private }, { "memfd", test_memfd },
	{ "descriptor", test_descriptor }, { "shm", test_shm },
	{ "sysv", test_sysv }, { "huge", test_huge }, { "mixed", test_mixed },
	{ "remap", test_remap }, { "truncate", test_truncate }, { "left", test_left }, { "on_demand", test_on_demand },
	{ "dead", test_dead }, { "atomics", test_atomics }, { "dead_for_ever", test_dead_for_ever },
	{ 0 },
};

int main(int argc, char **argv)
{
	if (argc < 2) {
		fputs("usage: uverbs_memory TEST DAEMON_PID\n", stderr);
		return 2;
	}
	daemon_pid = argc > 2 ? argv[2] : "self";
	return run_end_test(tests, argv[1]);
}
