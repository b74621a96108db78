/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of processes. /proc/PID/mem, opened at registration, stays bound to
 * the address space: a later process of the same number, or another program in
 * the same process, is never reached. It ignores a page's protection, so `maps`
 * is asked at registration. All calls that touch a client's memory may sleep
 * for ever and are made on helper threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "fs/client_mem.h"
#include "fs/uverbs.h"

struct uv_mem {
	unsigned int refs;		/* the memory's, and one a job */
	struct ibfs *ibfs;
	pid_t pid;
	uid_t uid;
	int fd;
	uint64_t start;
	struct uv_io *ios;
};

/* A transfer. The helper sees only its own copy of the bytes. */
struct uv_io {
	struct uv_io *prev, *next;
	struct job job;
	struct uv_mem *mem;
	struct mem_io *io;		/* NULL: cancelled */
	int op;
	uint64_t addr;
	size_t len;
	struct mem_atomic atomic;
	int err;
	uint8_t data[];
};

/* --- what a helper finds out before a registration --- */

/* Is all of the range mapped, and may the process read (and write) it? */
static int look_maps(const struct uv_range *range, pid_t tid)
{
	uint64_t at = range->start, end = range->start + range->length, from, to;
	char path[40], perm[5], *line = NULL;
	size_t size = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)tid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	while (at < end && getline(&line, &size, maps) > 0) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &from, &to, perm) != 3 || to <= at)
			continue;
		if (from > at || perm[0] != 'r' || (range->write && perm[1] != 'w'))
			break;
		at = to;
	}
	free(line);
	fclose(maps);
	return at < end ? -EFAULT : 0;
}

/* The process, and whether it may lock as much as it likes. */
static int look_status(pid_t tid, pid_t *tgid, bool *unlimited)
{
	char path[40], *line = NULL;
	size_t size = 0;
	uint64_t caps = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	status = fopen(path, "re");
	if (!status)
		return -errno;
	*tgid = tid;
	while (getline(&line, &size, status) > 0) {
		if (!strncmp(line, "Tgid:", 5))
			*tgid = (pid_t)strtol(line + 5, NULL, 10);
		else if (!strncmp(line, "CapEff:", 7))
			caps = strtoull(line + 7, NULL, 16);
	}
	free(line);
	fclose(status);
	*unlimited = caps >> CAP_IPC_LOCK & 1;
	return 0;
}

int uv_range_look(struct uv_range *range, pid_t tid)
{
	bool unlimited = false;
	char path[40];
	int err;

	err = look_status(tid, &range->tgid, &unlimited);
	if (err)
		return err;
	range->limit = UINT64_MAX;
	if (!unlimited)
		err = client_memlock(tid, &range->limit);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)tid);
	range->fd = open(path, O_RDWR | O_CLOEXEC);
	if (range->fd < 0)
		return errno == EACCES ? -EPERM : -errno;
	return look_maps(range, tid);
}

void uv_range_drop(struct uv_range *range)
{
	if (range->fd >= 0)
		close(range->fd);
	range->fd = -1;
}

/* --- RLIMIT_MEMLOCK --- */

uint64_t uv_range_bytes(uint64_t start, uint64_t length)
{
	uint64_t page = sysconf(_SC_PAGESIZE);

	return ((start + length + page - 1) & ~(page - 1)) - (start & ~(page - 1));
}

int uv_pin(struct fs *fs, const struct uv_range *range, struct uv_pin **out)
{
	uint64_t bytes = uv_range_bytes(range->start, range->length);
	struct uv_pin *pin;

	DL_SEARCH_SCALAR(fs->uv_pins, pin, tgid, range->tgid);
	if ((pin ? pin->bytes : 0) + bytes > range->limit)
		return -ENOMEM;
	if (!pin) {
		pin = calloc(1, sizeof(*pin));
		if (!pin)
			return -ENOMEM;
		pin->tgid = range->tgid;
		DL_APPEND(fs->uv_pins, pin);
	}
	pin->bytes += bytes;
	pin->refs++;
	*out = pin;
	return 0;
}

void uv_unpin(struct fs *fs, struct uv_pin *pin, uint64_t bytes)
{
	pin->bytes -= bytes;
	if (--pin->refs)
		return;
	DL_DELETE(fs->uv_pins, pin);
	free(pin);
}

/* --- transfers --- */

static void mem_put(struct uv_mem *mem)
{
	if (--mem->refs)
		return;
	close(mem->fd);
	free(mem);
}

static int io_move(struct uv_io *io, void *buf, size_t len, bool write)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write ? pwrite(io->mem->fd, (char *)buf + done, len - done, io->addr + done) :
				    pread(io->mem->fd, (char *)buf + done, len - done, io->addr + done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EFAULT;
		done += n;
	}
	return 0;
}

/* Helper. A client's atomics come one after the other, as its jobs do. */
static int io_atomic(struct uv_io *io)
{
	uint64_t value;
	int err = io_move(io, &io->atomic.orig, sizeof(io->atomic.orig), false);

	if (err)
		return err;
	value = mem_atomic_value(&io->atomic, io->atomic.orig);
	return value == io->atomic.orig ? 0 : io_move(io, &value, sizeof(value), true);
}

static void io_run(struct job *job)
{
	struct uv_io *io = (struct uv_io *)((char *)job - offsetof(struct uv_io, job));

	if (io->op == MEM_ATOMIC)
		io->err = io_atomic(io);
	else
		io->err = io_move(io, io->data, io->len, io->op == MEM_WRITE);
}

static void io_free(struct job *job)
{
	struct uv_io *io = (struct uv_io *)((char *)job - offsetof(struct uv_io, job));

	mem_put(io->mem);
	free(io);
}

static void io_done(struct job *job)
{
	struct uv_io *io = (struct uv_io *)((char *)job - offsetof(struct uv_io, job));
	struct mem_io *to = io->io;
	int err = io->err;

	if (!err && io->op == MEM_READ)
		memcpy(to->buf, io->data, io->len);
	if (!err && io->op == MEM_ATOMIC)
		to->atomic->orig = io->atomic.orig;
	DL_DELETE(io->mem->ios, io);
	io_free(job);
	to->done(to, err);
}

static int mem_io(void *remote, struct mem_io *to)
{
	struct uv_mem *mem = remote;
	struct uv_io *io;
	int err;

	io = malloc(sizeof(*io) + to->len);
	if (!io)
		return -ENOMEM;
	memset(io, 0, sizeof(*io));
	io->mem = mem;
	io->io = to;
	io->op = to->op;
	io->addr = mem->start + to->off;
	io->len = to->len;
	if (to->op == MEM_WRITE)
		memcpy(io->data, to->buf, to->len);
	if (to->op == MEM_ATOMIC)
		io->atomic = *to->atomic;
	io->job = (struct job){
		.ibfs = mem->ibfs, .pid = mem->pid, .uid = mem->uid,
		.run = io_run, .done = io_done, .disowned = io_free,
	};
	mem->refs++;
	err = offload(&io->job);
	if (err) {
		io_free(&io->job);
		return err;
	}
	DL_APPEND(mem->ios, io);
	to->priv = io;
	return 0;
}

static void mem_cancel(void *remote, struct mem_io *to)
{
	struct uv_mem *mem = remote;
	struct uv_io *io = to->priv;

	DL_DELETE(mem->ios, io);
	io->io = NULL;
	offload_disown(&io->job);
}

static void mem_free(void *remote)
{
	mem_put(remote);
}

static const struct remote_ops process_ops = {
	.io = mem_io,
	.cancel = mem_cancel,
	.free = mem_free,
};

struct memory *uv_memory(struct ibfs *ibfs, struct uv_range *range, uid_t uid)
{
	struct uv_mem *mem = calloc(1, sizeof(*mem));
	struct memory *memory;

	if (!mem) {
		uv_range_drop(range);
		return NULL;
	}
	mem->refs = 1;
	mem->ibfs = ibfs;
	mem->pid = range->tgid;
	mem->uid = uid;
	mem->fd = range->fd;
	mem->start = range->start;
	range->fd = -1;
	memory = memory_remote(&process_ops, mem, range->length);
	if (!memory)
		mem_put(mem);
	return memory;
}
