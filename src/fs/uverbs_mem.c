/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of processes: what is counted against RLIMIT_MEMLOCK, and transfers.
 * The client that registers is kept for its address space: a later process of the
 * same number, or another program in the same process, is never reached. Calls that
 * touch a client's memory may sleep for ever, if it wants them to: they are quick
 * jobs, or a helper thread's.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utlist.h>

#include "fs/obj.h"
#include "fs/uverbs.h"

#define UNMAP_PIECE	(1ULL << 20)	/* bytes: less than a millisecond's work */

/* An address space. */
struct uv_space_file {
	unsigned int refs;		/* its pin's, and one a memory */
	struct client *client;		/* kept for its memory */
	pthread_mutex_t atomics;	/* held while one is under way: jobs may be on two threads */
};

struct uv_mem {
	unsigned int refs;		/* the memory's, and one a job */
	struct ibfs *ibfs;
	pid_t pid;
	uid_t uid;
	struct uv_space_file *file;
	bool on_demand;
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

/* --- RLIMIT_MEMLOCK --- */

uint64_t uv_range_bytes(const struct uv_range *range)
{
	uint64_t in_page = sysconf(_SC_PAGESIZE) - 1, start = range->start;

	if (range->on_demand)
		return 0;
	return ((start + range->length + in_page) & ~in_page) - (start & ~in_page);
}

static void file_put(struct uv_space_file *file)
{
	if (!file || --file->refs)
		return;
	client_put(file->client);
	pthread_mutex_destroy(&file->atomics);
	free(file);
}

static struct uv_pin *pin_find(const struct fs *fs, const struct client *client, uid_t uid)
{
	struct uv_pin *pin;

	DL_FOREACH(fs->uv_pins, pin)
		if (pin->tgid == client->tgid && pin->uid == uid &&
		    !memcmp(pin->program, client->id.program, sizeof(pin->program)))
			return pin;
	return NULL;
}

static struct uv_pin *pin_new(struct fs *fs, const struct client *client, uid_t uid)
{
	struct uv_pin *pin = calloc(1, sizeof(*pin));

	if (!pin)
		return NULL;
	pin->tgid = client->tgid;
	pin->uid = uid;
	memcpy(pin->program, client->id.program, sizeof(pin->program));
	DL_APPEND(fs->uv_pins, pin);
	return pin;
}

/* can_do_mlock() and the check of mm->pinned_vm in the kernel's ib_umem_get(). */
int uv_pin(struct fs *fs, const struct client *client, const struct uv_range *range, uid_t uid,
	   struct uv_pin **out)
{
	uint64_t bytes = uv_range_bytes(range);
	struct uv_pin *pin = pin_find(fs, client, uid);

	if (!range->limit)
		return -EPERM;
	if ((pin ? pin->bytes : 0) + bytes > range->limit)
		return -ENOMEM;
	if (!pin)
		pin = pin_new(fs, client, uid);
	if (!pin)
		return -ENOMEM;
	pin->limit = range->limit;
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
	file_put(pin->file);
	DL_DELETE(fs->uv_pins, pin);
	free(pin);
}

void uv_pins_show(const struct fs *fs, struct textbuf *out)
{
	const struct uv_pin *pin;

	DL_FOREACH(fs->uv_pins, pin)
		account_show_lock(out, pin->tgid, pin->uid, pin->bytes, pin->limit);
}

/* --- transfers --- */

static void mem_put(struct uv_mem *mem)
{
	if (--mem->refs)
		return;
	file_put(mem->file);
	free(mem);
}

static int io_move(struct uv_io *io, void *buf, size_t len, bool write)
{
	return client_move(io->mem->file->client, buf, io->addr, len, write);
}

static int read_and_write(struct uv_io *io)
{
	uint64_t value;
	int err = io_move(io, &io->atomic.orig, sizeof(io->atomic.orig), false);

	if (err)
		return err;
	value = mem_atomic_value(&io->atomic, io->atomic.orig);
	return value == io->atomic.orig ? 0 : io_move(io, &value, sizeof(value), true);
}

/* Helper. A client's atomics come one after the other. */
static int io_atomic(struct uv_io *io)
{
	pthread_mutex_t *lock = &io->mem->file->atomics;
	int err;

	pthread_mutex_lock(lock);
	err = read_and_write(io);
	pthread_mutex_unlock(lock);
	return err;
}

static void io_run(struct job *job)
{
	struct uv_io *io = (struct uv_io *)((char *)job - offsetof(struct uv_io, job));
	size_t len = io->op == MEM_ATOMIC ? sizeof(io->atomic.orig) : io->len;

	if (io->mem->on_demand)
		io->err = client_check(io->mem->file->client, io->addr, len, io->op != MEM_READ, NULL);
	if (io->err)
		return;
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
		.run = io_run, .done = io_done, .disowned = io_free, .quick = !mem->on_demand,
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

/* One client serves for all that the process registers. */
static struct uv_space_file *pin_file(struct uv_pin *pin, struct client *client)
{
	if (!pin->file) {
		pin->file = calloc(1, sizeof(*pin->file));
		if (!pin->file)
			return NULL;
		pin->file->refs = 1;
		pin->file->client = client_keep_memory(client);
		pthread_mutex_init(&pin->file->atomics, NULL);
	}
	pin->file->refs++;
	return pin->file;
}

/* From the start of a page, so that what is aligned there is aligned here. */
static struct memory *process_memory(struct ibfs *ibfs, struct client *client,
				     const struct uv_range *range, struct uv_pin *pin, uint64_t *off)
{
	struct uv_mem *mem = calloc(1, sizeof(*mem));
	struct memory *memory;

	if (!mem)
		return NULL;
	mem->refs = 1;
	mem->ibfs = ibfs;
	mem->pid = client->tgid;
	mem->uid = pin->uid;
	mem->on_demand = range->on_demand;
	*off = range->start % sysconf(_SC_PAGESIZE);
	mem->start = range->start - *off;
	mem->file = pin_file(pin, client);
	memory = mem->file ? memory_remote(&process_ops, mem, *off + range->length) : NULL;
	if (!memory)
		mem_put(mem);
	return memory;
}

/* --- memory that the daemon maps --- */

/* What a helper does for one that nobody uses any more. */
struct uv_unmap {
	struct job job;
	struct memory *mem;
};

/* In pieces, since nobody else can map anything meanwhile. */
static void unmap_run(struct job *job)
{
	struct memory *mem = ((struct uv_unmap *)job)->mem;
	uint64_t len;

	for (uint64_t off = 0; off < mem->size; off += len) {
		len = mem->size - off < UNMAP_PIECE ? mem->size - off : UNMAP_PIECE;
		munmap((char *)mem->base + off, len);
	}
	mem->base = NULL;
}

static void unmap_done(struct job *job)
{
	memory_end(((struct uv_unmap *)job)->mem);
	free(job);
}

static void unmap(struct memory *mem)
{
	struct uv_unmap *by = mem->unmapper;

	if (!by->job.ibfs->offload || offload_always(&by->job))
		unmap_done(&by->job);
}

/*
 * A file's pages go with its last mapping, which may be the daemon's, and its owner
 * may have made it as large as it likes. Huge pages are few, and are to be had again
 * when a command that gave them back is answered.
 */
static void unmap_by_helper(struct memory *mem, struct ibfs *ibfs, uid_t uid)
{
	struct uv_unmap *by = calloc(1, sizeof(*by));

	if (!by)
		return;
	by->mem = mem;
	by->job = (struct job){
		.ibfs = ibfs, .pid = OFFLOAD_GIVES_BACK, .uid = uid,
		.run = unmap_run, .done = unmap_done, .disowned = unmap_done,
	};
	memory_unmap_by(mem, unmap, by);
}

/* Whole pages of the file, as they are mapped. */
static struct memory *shared_memory(struct ibfs *ibfs, const struct uv_range *range, uid_t uid,
				    uint64_t *off)
{
	const struct uv_shared *shared = &range->shared;
	struct memory *mem;
	uint64_t from = shared->off / shared->page * shared->page;
	uint64_t end = (shared->off + range->length + shared->page - 1) / shared->page * shared->page;

	*off = shared->off - from;
	mem = memory_share(shared->fd, from, end - from, shared->page);
	if (mem && shared->page == (size_t)sysconf(_SC_PAGESIZE))
		unmap_by_helper(mem, ibfs, uid);
	return mem;
}

struct memory *uv_memory(struct ibfs *ibfs, struct client *client, struct uv_range *range,
			 struct uv_pin *pin, uint64_t *off)
{
	struct memory *memory = NULL;

	if (range->shared.fd >= 0)
		memory = shared_memory(ibfs, range, pin->uid, off);
	if (!memory)
		memory = process_memory(ibfs, client, range, pin, off);
	uv_range_drop(range);
	return memory;
}
