/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients and their memory, src/fs/client*.c, on processes of this program: one named
 * test each. What the process does is told it by a byte, and answered by one.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ibfs/fs.h>

#include "check.h"
#include "fs/client.h"

#define PAGE	4096UL
#define AREA	((uint8_t *)0x200000000000UL)	/* of the processes' memory */

/* A process, and the daemon's view of it. */
struct process {
	pid_t pid;
	int sock;			/* this side's */
	struct fs_req req;
	struct client_id id;
	struct client *client;
};

static char self[4096];			/* this program's file */

/* By a system call: a sanitizer's mmap() doesn't like the address. */
static void map_area(size_t size, int prot)
{
	if (syscall(SYS_mmap, AREA, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0L) !=
	    (long)AREA)
		_exit(1);
}

static void tell(int sock, char byte)
{
	if (write(sock, &byte, 1) != 1)
		_exit(1);
}

static char hear(int sock)
{
	char byte = 0;

	return read(sock, &byte, 1) == 1 ? byte : 0;
}

static struct process start(void (*act)(int sock))
{
	struct process process = { .sock = -1 };
	int pair[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	process.pid = fork();
	if (!process.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		act(pair[1]);
		_exit(0);
	}
	close(pair[1]);
	process.sock = pair[0];
	return process;
}

/* Of a thread that waits, as whoever opened the file. */
static void look_at(struct process *process, pid_t tid)
{
	process->req.caller.pid = tid;
	process->client = client_new(&process->req, &process->id);
	client_look(process->client);
	process->id = process->client->id;
	client_put(process->client);
	process->client = client_new(&process->req, &process->id);
}

static void answer(struct process *process)
{
	client_answered(&process->req);
}

static int end(struct process *process)
{
	int status = 0;

	answer(process);
	client_put(process->client);
	close(process->sock);
	waitpid(process->pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* What a client's memory gives to client_read() and client_write(), a byte each. */
static int get(struct process *process, const void *at, uint8_t *byte)
{
	struct iovec local = { byte, 1 }, remote = { (void *)at, 1 };

	return client_read(process->client, &local, &remote, 1);
}

static int put(struct process *process, void *at, uint8_t byte)
{
	struct iovec local = { &byte, 1 }, remote = { at, 1 };

	return client_write(process->client, &local, &remote, 1);
}

/* --- it waits, or not --- */

static void act_waits(int sock)
{
	map_area(PAGE, PROT_READ | PROT_WRITE);
	AREA[0] = 'a';
	tell(sock, 'r');
	hear(sock);
	_exit(AREA[0]);
}

/* Once its request is answered nothing is bound, found, or written. */
static void test_answered(void)
{
	struct process process = start(act_waits);
	struct client *late;
	char name[64];
	uint8_t byte;

	CHECK(hear(process.sock) == 'r');
	look_at(&process, process.pid);
	CHECK(client_bind(process.client) == 0 && client_waits(process.client));
	CHECK(get(&process, AREA, &byte) == 0 && byte == 'a');
	answer(&process);
	CHECK(!client_waits(process.client));
	CHECK(put(&process, AREA, 'b') == -ECANCELED);
	CHECK(client_open(process.client, "maps", O_RDONLY) == -ECANCELED);
	CHECK(client_fd_name(process.client, 0, name, sizeof(name)) == -ECANCELED);
	CHECK(client_fd_take(process.client, 0) == -ECANCELED);
	late = client_new(&process.req, &process.id);
	answer(&process);
	CHECK(client_bind(late) == -ECANCELED && late->mem < 0);
	client_put(late);
	CHECK(end(&process) == 'a');
}

static void test_ended(void)
{
	struct process process = start(act_waits);
	struct client *late;
	uint8_t byte;

	CHECK(hear(process.sock) == 'r');
	look_at(&process, process.pid);
	CHECK(client_bind(process.client) == 0);
	kill(process.pid, SIGKILL);
	waitpid(process.pid, NULL, 0);
	CHECK(client_move(process.client, &byte, (uintptr_t)AREA, 1, false) == -EFAULT);
	CHECK(client_check(process.client, (uintptr_t)AREA, 1, false, NULL) == -EFAULT);
	CHECK(client_fd_take(process.client, 0) < 0);
	late = client_new(&process.req, &process.id);
	CHECK(client_bind(late) == -ESRCH);
	client_put(late);
	end(&process);
}

static void test_itself(void)
{
	struct process process = { .sock = -1 };

	look_at(&process, getpid());
	CHECK(client_bind(process.client) == -EPERM);
	answer(&process);
	client_put(process.client);
}

/* --- another program --- */

/* What is executed has other bytes at the same place. */
static int be_other(int sock)
{
	map_area(PAGE, PROT_READ | PROT_WRITE);
	memset(AREA, 'o', PAGE);
	tell(sock, 'o');
	hear(sock);
	for (size_t i = 0; i < PAGE; i++)
		if (AREA[i] != 'o')
			return 1;
	return 0;
}

static int keep_memory(void *arg)
{
	int sock = *(int *)arg;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It ends when the other program does. */
	while (recv(sock, &byte, 1, MSG_PEEK) > 0)
		usleep(1000);
	_exit(0);
}

static void act_executes(int sock)
{
	static char stack[64 << 10] __attribute__((aligned(16)));
	char number[16];

	map_area(PAGE, PROT_READ | PROT_WRITE);
	memset(AREA, 'a', PAGE);
	if (clone(keep_memory, stack + sizeof(stack), CLONE_VM | SIGCHLD, &sock) < 0)
		_exit(1);
	tell(sock, 'r');
	hear(sock);
	snprintf(number, sizeof(number), "%d", sock);
	execl(self, self, "other", number, NULL);
	_exit(1);
}

/* The memory that was bound is the old program's, which somebody keeps alive. */
static void test_executed(void)
{
	struct process process = start(act_executes);
	struct client *late;
	uint8_t byte = 'x';

	CHECK(hear(process.sock) == 'r');
	look_at(&process, process.pid);
	CHECK(client_bind(process.client) == 0);
	answer(&process);
	tell(process.sock, 'g');
	CHECK(hear(process.sock) == 'o');
	CHECK(client_check(process.client, (uintptr_t)AREA, PAGE, true, NULL) == 0);
	CHECK(client_move(process.client, &byte, (uintptr_t)AREA, 1, true) == 0);
	byte = 0;
	CHECK(client_move(process.client, &byte, (uintptr_t)AREA, 1, false) == 0 && byte == 'x');
	CHECK(client_move(process.client, &byte, (uintptr_t)AREA + 1, 1, false) == 0 && byte == 'a');
	/* The same user's: another client, of another program. */
	late = client_new(&process.req, &process.id);
	CHECK(client_bind(late) == 0);
	client_id_program(&late->id, late->dir, late->mem);
	CHECK(late->id.has_program && process.id.has_program &&
	      memcmp(late->id.program, process.id.program, CLIENT_PROGRAM) != 0);
	CHECK(client_move(late, &byte, (uintptr_t)AREA, 1, false) == 0 && byte == 'o');
	client_put(late);
	tell(process.sock, 'g');
	CHECK(end(&process) == 0);
}

/* --- protection --- */

static void act_protects(int sock)
{
	map_area(5 * PAGE, PROT_READ | PROT_WRITE);
	memset(AREA, 'a', 5 * PAGE);
	if (mprotect(AREA + PAGE, PAGE, PROT_READ) || mprotect(AREA + 2 * PAGE, PAGE, PROT_NONE) ||
	    munmap(AREA + 4 * PAGE, PAGE))
		_exit(1);
	tell(sock, 'r');
	hear(sock);
	if (AREA[0] != 'w' || AREA[PAGE] != 'a')
		_exit(1);
	if (mprotect(AREA + 2 * PAGE, PAGE, PROT_READ) || AREA[2 * PAGE] != 'a')
		_exit(1);
}

static bool allowed(struct process *process, size_t from, size_t length, bool write)
{
	return !client_check(process->client, (uintptr_t)AREA + from, length, write, NULL);
}

static void test_protection(void)
{
	struct process process = start(act_protects);
	struct client_mapping map;
	uint8_t byte;

	CHECK(hear(process.sock) == 'r');
	look_at(&process, process.pid);
	CHECK(client_bind(process.client) == 0);
	CHECK(put(&process, AREA, 'w') == 0);
	CHECK(put(&process, AREA + PAGE, 'w') == -EFAULT);
	CHECK(put(&process, AREA + 2 * PAGE, 'w') == -EFAULT);
	CHECK(put(&process, AREA + 4 * PAGE, 'w') == -EFAULT);
	CHECK(get(&process, AREA + PAGE, &byte) == 0 && byte == 'a');
	CHECK(get(&process, AREA + 2 * PAGE, &byte) == -EFAULT);
	CHECK(allowed(&process, 0, PAGE, true) && allowed(&process, 0, 2 * PAGE, false));
	CHECK(!allowed(&process, 0, PAGE + 1, true) && !allowed(&process, 0, 2 * PAGE + 1, false));
	CHECK(allowed(&process, 3 * PAGE, PAGE, true) && !allowed(&process, 3 * PAGE, PAGE + 1, false));
	CHECK(!allowed(&process, 4 * PAGE, 1, false));
	CHECK(client_check(process.client, UINT64_MAX - 5, 10, false, NULL) == -EFAULT);
	CHECK(client_check(process.client, (uintptr_t)AREA + PAGE + 5, 10, false, &map) == 0);
	CHECK(map.from == (uintptr_t)AREA + PAGE && map.to == map.from + PAGE && map.read &&
	      !map.write && !map.shared && !map.ino);
	tell(process.sock, 'g');
	CHECK(end(&process) == 0);
}

static void act_shares(int sock)
{
	int fd = memfd_create("client", 0);

	if (ftruncate(fd, 8 * PAGE) ||
	    syscall(SYS_mmap, AREA, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		    3 * PAGE) != (long)AREA)
		_exit(1);
	dup2(fd, 50);
	tell(sock, 'r');
	hear(sock);
}

static void test_mapping(void)
{
	struct process process = start(act_shares);
	struct client_mapping map;
	struct stat st;
	char name[64];
	int fd;

	CHECK(hear(process.sock) == 'r');
	look_at(&process, process.pid);
	CHECK(client_bind(process.client) == 0);
	CHECK(client_fd_stat(process.client, 50, &st) == 0);
	CHECK(client_fd_name(process.client, 50, name, sizeof(name)) == 0);
	CHECK(!strcmp(name, "/memfd:client (deleted)"));
	CHECK(client_check(process.client, (uintptr_t)AREA + PAGE, PAGE, true, &map) == 0);
	CHECK(map.shared && map.write && map.off == 3 * PAGE && map.ino == st.st_ino &&
	      map.to == (uintptr_t)AREA + 2 * PAGE);
	fd = client_fd_take(process.client, 50);
	CHECK(fd >= 0 && !fstat(fd, &st) && st.st_ino == map.ino);
	close(fd);
	CHECK(client_fd_take(process.client, 51) == -EBADF);
	CHECK(client_fd_stat(process.client, 51, &st) == -ENOENT);
	tell(process.sock, 'g');
	CHECK(end(&process) == 0);
}

/* --- threads --- */

static void *second_thread(void *arg)
{
	int sock = *(int *)arg;
	pid_t tid = gettid();

	if (write(sock, &tid, sizeof(tid)) != sizeof(tid))
		_exit(1);
	hear(sock);
	return NULL;
}

static void act_threads(int sock)
{
	pthread_t thread;

	map_area(PAGE, PROT_READ | PROT_WRITE);
	if (pthread_create(&thread, NULL, second_thread, &sock))
		_exit(1);
	pthread_join(thread, NULL);
	tell(sock, 'j');
	hear(sock);
}

/* A region lasts longer than the thread that registered it. */
static void test_thread_ended(void)
{
	struct process process = start(act_threads);
	uint8_t byte = 'a';
	pid_t tid;

	CHECK(read(process.sock, &tid, sizeof(tid)) == sizeof(tid));
	look_at(&process, tid);
	CHECK(client_bind(process.client) == 0 && process.client->tgid == process.pid);
	CHECK(put(&process, AREA, 'x') == 0);
	client_put(client_keep_memory(process.client));
	client_rest(process.client);	/* which has no effect any more */
	answer(&process);
	tell(process.sock, 'g');
	CHECK(hear(process.sock) == 'j');
	CHECK(client_check(process.client, (uintptr_t)AREA, PAGE, true, NULL) == 0);
	CHECK(client_move(process.client, &byte, (uintptr_t)AREA, 1, false) == 0 && byte == 'x');
	tell(process.sock, 'g');
	CHECK(end(&process) == 0);
}

static void act_leaves(int sock)
{
	static int kept;
	pthread_t thread;

	kept = sock;
	map_area(PAGE, PROT_READ | PROT_WRITE);
	pthread_create(&thread, NULL, second_thread, &kept);
	syscall(SYS_exit, 0);		/* this thread alone */
}

static bool is_zombie(pid_t pid)
{
	char path[40], state = 0;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	stat = fopen(path, "r");
	if (stat) {
		if (fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		fclose(stat);
	}
	return state == 'Z';
}

/* The thread that began the program has none of its memory any more. */
static void test_leader_ended(void)
{
	struct process process = start(act_leaves);
	uint8_t byte;
	pid_t tid;

	CHECK(read(process.sock, &tid, sizeof(tid)) == sizeof(tid));
	while (!is_zombie(process.pid))
		usleep(1000);
	look_at(&process, tid);
	CHECK(client_bind(process.client) == 0);
	CHECK(put(&process, AREA, 'x') == 0);
	CHECK(get(&process, AREA, &byte) == 0 && byte == 'x');
	tell(process.sock, 'g');
	end(&process);
}

/* --- whose it is --- */

static struct client_id user(unsigned int uid)
{
	return (struct client_id){
		.known = true, .uid = { uid, uid, uid, uid }, .gid = { uid, uid, uid, uid },
		.readable = true, .has_program = true, .program = "opener's program",
	};
}

static void test_differs(void)
{
	struct client_id opener = user(1000), other = opener, root = user(0);

	CHECK(!client_id_differs(&opener, &other));
	for (int i = 0; i < 4; i++) {
		other = opener;
		other.uid[i] = 0;
		CHECK(client_id_differs(&opener, &other) && client_id_differs(&other, &opener));
		other = opener;
		other.gid[i] = 5;
		CHECK(client_id_differs(&opener, &other));
	}
	other = opener;
	other.known = false;
	CHECK(client_id_differs(&opener, &other) && client_id_differs(&other, &opener));
	/* More capabilities, or as many of another namespace. */
	other = opener;
	other.permitted = 1ULL << CAP_NET_RAW;
	CHECK(client_id_differs(&opener, &other) && !client_id_differs(&other, &opener));
	CHECK(client_id_differs(&root, &opener));
	root.permitted = UINT64_MAX;
	root.ns_ino = 1;
	other = root;
	other.permitted = 1;
	CHECK(!client_id_differs(&root, &other) && client_id_differs(&other, &root));
	other.ns_ino = 2;
	CHECK(client_id_differs(&root, &other));
	/* What can't be read is the same program, or refused. */
	other = opener;
	other.readable = false;
	CHECK(!client_id_differs(&opener, &other));
	other.program[15]++;
	CHECK(client_id_differs(&opener, &other));
	other = opener;
	other.readable = other.has_program = false;
	CHECK(client_id_differs(&opener, &other));
	opener.has_program = false;
	CHECK(client_id_differs(&opener, &other));
}

static const struct test {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "answered", test_answered }, { "ended", test_ended }, { "itself", test_itself },
	{ "executed", test_executed }, { "protection", test_protection },
	{ "mapping", test_mapping }, { "thread_ended", test_thread_ended },
	{ "leader_ended", test_leader_ended }, { "differs", test_differs },
};

int main(int argc, char **argv)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (argc == 3 && !strcmp(argv[1], "other"))
		return be_other(atoi(argv[2]));
	if (argc != 2 || n < 0)
		return 2;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (strcmp(tests[i].name, argv[1]) != 0)
			continue;
		tests[i].run();
		return failed;
	}
	return 2;
}
