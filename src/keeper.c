/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's side of the keeper (ibfs/keeper.h): it starts one, writes the
 * book, and sends descriptors by a socket whose end tells the keeper that the
 * daemon is gone. What the socket has no room for now waits here. When the
 * keeper is gone, another one gets all descriptors that are still open.
 * unix(7), SCM_RIGHTS; posix_spawn(3).
 */
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

#include <ibfs/ibfs.h>
#include <ibfs/keeper.h>

/* Seconds after one that died, doubled while each lives for less than that. */
#define AGAIN_SOON	1.0
#define AGAIN_LATE	64.0

/* Numbers from 1 on, each had by one thing at a time. */
struct numbers {
	uint32_t *freed;
	uint32_t num_freed, room;
	uint32_t next, end;
};

struct keep_file {
	struct keep_file *prev, *next;		/* of keeper->files */
	struct keep_file *wait_prev, *wait_next;	/* of keeper->waiting */
	struct keeper *keeper;
	uint32_t num;
	uint32_t kind;
	int fd;				/* -1: closed */
	bool sent, dropped, waits;
};

struct keeper {
	struct ibfs *ibfs;
	pid_t pid;			/* 0: there is none now */
	int sock;
	int book_fd;
	struct keep_book *book;
	struct numbers slots, numbers;
	struct keep_file *files;
	struct keep_file *waiting;	/* to be sent, in order */
	struct ev_io gone, writable;
	struct ev_timer again;
	ev_tstamp started, delay;
};

/* --- numbers --- */

/* 0: all are taken. */
static uint32_t number_take(struct numbers *numbers)
{
	if (numbers->num_freed)
		return numbers->freed[--numbers->num_freed];
	return numbers->next < numbers->end ? numbers->next++ : 0;
}

/* Without memory it isn't used again. */
static void number_give(struct numbers *numbers, uint32_t num)
{
	if (numbers->num_freed == numbers->room) {
		uint32_t room = numbers->room ? 2 * numbers->room : 64;
		uint32_t *freed = reallocarray(numbers->freed, room, sizeof(*freed));

		if (!freed)
			return;
		numbers->freed = freed;
		numbers->room = room;
	}
	numbers->freed[numbers->num_freed++] = num;
}

/* --- descriptors --- */

static int send_message(const struct keeper *keeper, const struct keep_message *message, int fd)
{
	union {
		struct cmsghdr head;
		char buf[CMSG_SPACE(sizeof(fd))];
	} control = { .head = {
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fd)),
	} };
	struct iovec part = { (void *)message, sizeof(*message) };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
	}
	return sendmsg(keeper->sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void file_free(struct keep_file *file)
{
	struct keeper *keeper = file->keeper;

	if (file->waits)
		DL_DELETE2(keeper->waiting, file, wait_prev, wait_next);
	DL_DELETE(keeper->files, file);
	number_give(&keeper->numbers, file->num);
	free(file);
}

/* False: there is no room for it now. What can't be sent at all isn't kept. */
static bool send_file(struct keep_file *file)
{
	struct keep_message message = {
		.file = file->num, .kind = file->dropped ? 0 : file->kind,
	};
	int err = send_message(file->keeper, &message, file->dropped ? -1 : file->fd);

	if (err == -EAGAIN)
		return false;
	DL_DELETE2(file->keeper->waiting, file, wait_prev, wait_next);
	file->waits = false;
	file->sent = !err;
	if (file->dropped)
		file_free(file);
	return true;
}

static void send_waiting(struct keeper *keeper)
{
	if (!keeper->pid)
		return;
	while (keeper->waiting)
		if (!send_file(keeper->waiting))
			break;
	if (keeper->waiting)
		ev_io_start(keeper->ibfs->loop, &keeper->writable);
	else
		ev_io_stop(keeper->ibfs->loop, &keeper->writable);
}

static void writable_cb(struct ev_loop *loop, struct ev_io *w, int revents)
{
	(void)loop;
	(void)revents;
	send_waiting(w->data);
}

static void wait_to_send(struct keep_file *file)
{
	DL_APPEND2(file->keeper->waiting, file, wait_prev, wait_next);
	file->waits = true;
	send_waiting(file->keeper);
}

struct keep_file *keeper_file(struct ibfs *ibfs, int fd, enum keep_file_kind kind)
{
	struct keep_file *file = ibfs->keeper ? calloc(1, sizeof(*file)) : NULL;

	if (!file)
		return NULL;
	file->keeper = ibfs->keeper;
	file->fd = fd;
	file->kind = kind;
	file->num = number_take(&ibfs->keeper->numbers);
	if (!file->num) {
		free(file);
		return NULL;
	}
	DL_APPEND(ibfs->keeper->files, file);
	wait_to_send(file);
	return file;
}

/* One that was never sent isn't kept. */
void keeper_file_closed(struct keep_file *file)
{
	if (!file)
		return;
	file->fd = -1;
	if (!file->waits)
		return;
	DL_DELETE2(file->keeper->waiting, file, wait_prev, wait_next);
	file->waits = false;
}

void keeper_file_drop(struct keep_file *file)
{
	if (!file)
		return;
	keeper_file_closed(file);
	if (!file->sent) {
		file_free(file);
		return;
	}
	file->dropped = true;
	wait_to_send(file);
}

uint32_t keeper_file_num(const struct keep_file *file)
{
	return file ? file->num : 0;
}

/* --- the book --- */

static int book_make(struct keeper *keeper)
{
	struct keep_book *book = MAP_FAILED;
	int err, fd = memfd_create(KEEPER_NAME, MFD_CLOEXEC);

	if (fd >= 0 && !ftruncate(fd, sizeof(*book)))
		book = mmap(NULL, sizeof(*book), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (book == MAP_FAILED) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	keeper->book_fd = fd;
	keeper->book = book;
	book->used = 1;
	return 0;
}

struct keep_slot *keeper_slot(struct ibfs *ibfs)
{
	struct keeper *keeper = ibfs->keeper;
	uint32_t num = keeper ? number_take(&keeper->slots) : 0;
	struct keep_slot *slot;

	if (!num)
		return NULL;
	slot = &keeper->book->slots[num];
	memset(slot, 0, sizeof(*slot));
	if (num >= keeper->book->used)
		keeper->book->used = num + 1;
	return slot;
}

uint32_t keeper_slot_num(const struct ibfs *ibfs, const struct keep_slot *slot)
{
	return slot ? (uint32_t)(slot - ibfs->keeper->book->slots) : 0;
}

void keeper_slot_drop(struct ibfs *ibfs, struct keep_slot *slot)
{
	if (!slot)
		return;
	atomic_store(&slot->kind, KEEP_FREE);
	number_give(&ibfs->keeper->slots, keeper_slot_num(ibfs, slot));
}

/* --- the process --- */

/* Its descriptors 0, 1 and 2 are made of others. */
static int above_stdio(int fd)
{
	int copy = fd < 0 || fd > STDERR_FILENO ? fd : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (copy != fd)
		close(fd);
	return copy;
}

/*
 * A program of its own, so that it has nothing of the daemon's memory, in a session
 * of its own, so that a terminal's signals and a shell's jobs aren't its.
 */
static int spawn_with(struct keeper *keeper, int sock)
{
	char *const argv[] = { KEEPER_NAME, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t all;
	int err;

	sigfillset(&all);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, sock, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, keeper->book_fd, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_RDWR, 0);
	err = posix_spawn(&keeper->pid, "/proc/self/exe", &actions, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	if (err)
		keeper->pid = 0;
	return -err;
}

static void watch(struct keeper *keeper)
{
	ev_io_set(&keeper->gone, keeper->sock, EV_READ);
	ev_io_set(&keeper->writable, keeper->sock, EV_WRITE);
	ev_io_start(keeper->ibfs->loop, &keeper->gone);
}

static int spawn(struct keeper *keeper)
{
	int ends[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	ends[0] = above_stdio(ends[0]);
	ends[1] = above_stdio(ends[1]);
	err = ends[0] < 0 || ends[1] < 0 ? -EMFILE : spawn_with(keeper, ends[1]);
	if (ends[1] >= 0)
		close(ends[1]);
	if (err) {
		if (ends[0] >= 0)
			close(ends[0]);
		return err;
	}
	keeper->sock = ends[0];
	keeper->started = ev_now(keeper->ibfs->loop);
	watch(keeper);
	return 0;
}

/* The new one has nothing yet. */
static void send_all(struct keeper *keeper)
{
	struct keep_file *file, *tmp;

	DL_FOREACH_SAFE(keeper->files, file, tmp) {
		file->sent = false;
		if (file->dropped) {
			file_free(file);
		} else if (file->fd >= 0 && !file->waits) {
			DL_APPEND2(keeper->waiting, file, wait_prev, wait_next);
			file->waits = true;
		}
	}
	send_waiting(keeper);
}

static void wait_to_start(struct keeper *keeper)
{
	if (ev_now(keeper->ibfs->loop) - keeper->started > AGAIN_LATE)
		keeper->delay = 0.;
	keeper->delay = keeper->delay ? 2 * keeper->delay : AGAIN_SOON;
	if (keeper->delay > AGAIN_LATE)
		keeper->delay = AGAIN_LATE;
	ev_timer_set(&keeper->again, keeper->delay, 0.);
	ev_timer_start(keeper->ibfs->loop, &keeper->again);
}

static void start_again(struct ev_loop *loop, struct ev_timer *w, int revents)
{
	struct keeper *keeper = w->data;
	int err;

	(void)loop;
	(void)revents;
	err = spawn(keeper);
	if (!err) {
		send_all(keeper);
		return;
	}
	ibfs_log(keeper->ibfs, "no keeper: %s", strerror(-err));
	wait_to_start(keeper);
}

/* Ends it if it hasn't ended. */
static void forget(struct keeper *keeper)
{
	if (!keeper->pid)
		return;
	ev_io_stop(keeper->ibfs->loop, &keeper->gone);
	ev_io_stop(keeper->ibfs->loop, &keeper->writable);
	close(keeper->sock);
	kill(keeper->pid, SIGKILL);
	while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR)
		;
	keeper->pid = 0;
}

static void gone_cb(struct ev_loop *loop, struct ev_io *w, int revents)
{
	struct keeper *keeper = w->data;

	(void)loop;
	(void)revents;
	ibfs_log(keeper->ibfs, "the keeper, process %d, died: starting another", (int)keeper->pid);
	forget(keeper);
	wait_to_start(keeper);
}

struct keeper *keeper_new(struct ibfs *ibfs)
{
	struct keeper *keeper = calloc(1, sizeof(*keeper));
	int err;

	if (!keeper)
		return NULL;
	keeper->ibfs = ibfs;
	keeper->slots = (struct numbers){ .next = 1, .end = KEEP_SLOTS };
	keeper->numbers = (struct numbers){ .next = 1, .end = KEEP_FILES };
	ev_init(&keeper->gone, gone_cb);
	ev_init(&keeper->writable, writable_cb);
	ev_init(&keeper->again, start_again);
	keeper->gone.data = keeper->writable.data = keeper->again.data = keeper;
	err = book_make(keeper);
	if (!err) {
		keeper->book_fd = above_stdio(keeper->book_fd);
		err = spawn(keeper);
		if (!err)
			return keeper;
		munmap(keeper->book, sizeof(*keeper->book));
		close(keeper->book_fd);
	}
	ibfs_log(ibfs, "no keeper, programs that spin won't end if the daemon dies: %s",
		 strerror(-err));
	free(keeper);
	return NULL;
}

void keeper_free(struct keeper *keeper)
{
	struct keep_file *file, *tmp;

	if (!keeper)
		return;
	forget(keeper);
	ev_timer_stop(keeper->ibfs->loop, &keeper->again);
	DL_FOREACH_SAFE(keeper->files, file, tmp)
		file_free(file);
	munmap(keeper->book, sizeof(*keeper->book));
	close(keeper->book_fd);
	free(keeper->slots.freed);
	free(keeper->numbers.freed);
	free(keeper);
}
