/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibfs-run.so: pages go from private memory to a file in memory
 * (memfd_create(2)) that is mapped in their place, and back. What was never
 * touched stays so: holes of the file, pages that aren't there.
 */
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <unistd.h>

#include "run/preload_share.h"

/*
 * A mapping that grows by mremap(), as realloc() lets it, finds zeroes behind
 * what the file has: it ends far behind.
 */
#define SLACK		(64ULL << 30)

enum { CHUNK = 512 };		/* pages that are looked at together */

/* So much goes at once: what there is twice meanwhile, and how long writers wait. */
#define MOVE_MAX	(64ULL << 20)

static const uint64_t pagemap_present = 1ULL << 63, pagemap_swapped = 1ULL << 62;

static bool is_zero(const void *page)
{
	const uint64_t *word = page;

	for (size_t i = 0; i < SHARE_PAGE / sizeof(*word); i++)
		if (word[i])
			return false;
	return true;
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How many pages from this one on are wanted, one after the other. */
static uint64_t run_of(const bool *wanted, uint64_t page, uint64_t pages)
{
	uint64_t run = 0;

	while (page + run < pages && wanted[page + run])
		run++;
	return run;
}

bool pages_read(void *to, const void *from, uint64_t size)
{
	struct iovec local = { to, size }, remote = { (void *)from, size };

	return syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0) == (long)size;
}

/* --- to the file --- */

static bool write_all(int fd, uint64_t from, uint64_t len, uint64_t off)
{
	while (len) {
		ssize_t n = syscall(SYS_pwrite64, fd, from, len, off);

		if (n <= 0)
			return false;
		from += (uint64_t)n;
		off += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return true;
}

/*
 * Has the page anything in it? One that was never touched looks as if it were
 * swapped out while it is frozen.
 */
static bool has_data(uint64_t entry, uint64_t page)
{
	return entry & pagemap_present ||
	       (entry & pagemap_swapped && !is_zero((const void *)(uintptr_t)page));
}

static bool save_chunk(int fd, const uint64_t *entries, uint64_t from, uint64_t pages, uint64_t off)
{
	bool wanted[CHUNK];
	uint64_t run;

	for (uint64_t i = 0; i < pages; i++)
		wanted[i] = has_data(entries[i], from + i * SHARE_PAGE);
	for (uint64_t i = 0; i < pages; i += run + 1) {
		run = run_of(wanted, i, pages);
		if (run && !write_all(fd, from + i * SHARE_PAGE, run * SHARE_PAGE,
				      off + i * SHARE_PAGE))
			return false;
	}
	return true;
}

static bool save(int fd, int pagemap, uint64_t start, uint64_t len, uint64_t off)
{
	uint64_t entries[CHUNK], pages, size;

	for (uint64_t done = 0; done < len; done += pages * SHARE_PAGE) {
		pages = min((len - done) / SHARE_PAGE, CHUNK);
		size = pages * sizeof(entries[0]);
		if (syscall(SYS_pread64, pagemap, entries, size,
			    (start + done) / SHARE_PAGE * sizeof(entries[0])) != (ssize_t)size)
			return false;
		if (!save_chunk(fd, entries, start + done, pages, off + done))
			return false;
	}
	return true;
}

static int new_file(uint64_t len, struct share_file *file)
{
	int fd = (int)syscall(SYS_memfd_create, "ibfs-run", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat st;

	if (fd < 0)
		return -1;
	if (syscall(SYS_ftruncate, fd, len + SLACK) ||
	    syscall(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) ||
	    syscall(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH)) {
		syscall(SYS_close, fd);
		return -1;
	}
	file->dev = st.st_dev;
	file->ino = st.st_ino;
	return fd;
}

/* Children that are made behind fork()'s back don't get it. */
static bool map_file(int fd, uint64_t start, uint64_t len, uint64_t off)
{
	if (syscall(SYS_mmap, start, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, off) !=
	    (long)start)
		return false;
	syscall(SYS_madvise, start, len, MADV_DONTFORK);
	return true;
}

static bool move_part(int fd, int pagemap, uint64_t start, uint64_t len, uint64_t off)
{
	struct freeze frozen;
	bool ok;

	if (!freeze(&frozen, start, len))
		return false;
	ok = save(fd, pagemap, start, len, off) && map_file(fd, start, len, off);
	thaw(&frozen);
	return ok;
}

/* How much of it was moved, from the start on. */
static uint64_t move_to(int fd, int pagemap, uint64_t start, uint64_t len)
{
	uint64_t done = 0, part;

	for (; done < len; done += part) {
		part = min(len - done, MOVE_MAX);
		if (!move_part(fd, pagemap, start + done, part, done))
			break;
	}
	return done;
}

/* Some of it was moved; false: it can't go back. */
static bool move_back(uint64_t start, uint64_t len, const struct share_file *file)
{
	const struct map_line line = {
		.from = start, .to = start + len, .prot = PROT_READ | PROT_WRITE, .shared = true,
		.dev = file->dev, .ino = file->ino,
	};

	return pages_unshare(&line);
}

void pages_close(struct share_file *file)
{
	struct stat st;

	if (file->fd >= 0 && !syscall(SYS_newfstatat, file->fd, "", &st, AT_EMPTY_PATH) &&
	    st.st_dev == file->dev && st.st_ino == file->ino)
		syscall(SYS_close, file->fd);
	file->fd = -1;
}

bool pages_share(uint64_t start, uint64_t len, struct share_file *file)
{
	int pagemap = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t done = 0;

	*file = (struct share_file){ .fd = -1 };
	if (pagemap < 0)
		return false;
	file->fd = new_file(len, file);
	if (file->fd >= 0)
		done = move_to(file->fd, pagemap, start, len);
	syscall(SYS_close, pagemap);
	if (done == len)
		return true;
	pages_close(file);
	if (!done || move_back(start, done, file))
		*file = (struct share_file){ .fd = -1 };
	return false;
}

/* --- to private memory --- */

/* While anything is swapped out, mincore(2) doesn't tell what there is. */
static bool swap_used(void)
{
	struct sysinfo info;

	return syscall(SYS_sysinfo, &info) || info.freeswap != info.totalswap;
}

/* Pages that were copied for nothing. */
static void drop_zeroes(uint64_t to, uint64_t pages)
{
	for (uint64_t page = to; page < to + pages * SHARE_PAGE; page += SHARE_PAGE)
		if (is_zero((const void *)(uintptr_t)page))
			syscall(SYS_madvise, page, SHARE_PAGE, MADV_DONTNEED);
}

/* No pointer is followed: another thread may unmap it meanwhile. */
static bool load_chunk(uint64_t to, uint64_t from, uint64_t pages, const uint8_t *there, bool all)
{
	bool wanted[CHUNK];
	uint64_t run;

	for (uint64_t i = 0; i < pages; i++)
		wanted[i] = there[i] & 1 || all;
	/* One fault for many pages. */
	if (run_of(wanted, 0, pages) == pages) {
		syscall(SYS_madvise, from, pages * SHARE_PAGE, MADV_POPULATE_READ);
		syscall(SYS_madvise, to, pages * SHARE_PAGE, MADV_POPULATE_WRITE);
	}
	for (uint64_t i = 0; i < pages; i += run + 1) {
		run = run_of(wanted, i, pages);
		if (run && !pages_read((void *)(uintptr_t)(to + i * SHARE_PAGE),
				       (const void *)(uintptr_t)(from + i * SHARE_PAGE),
				       run * SHARE_PAGE))
			return false;
	}
	if (all)
		drop_zeroes(to, pages);
	return true;
}

static bool load_all(uint64_t to, uint64_t from, uint64_t len, bool all)
{
	uint8_t there[CHUNK];
	uint64_t pages;

	for (uint64_t done = 0; done < len; done += pages * SHARE_PAGE) {
		pages = min((len - done) / SHARE_PAGE, CHUNK);
		if (syscall(SYS_mincore, from + done, pages * SHARE_PAGE, there) ||
		    !load_chunk(to + done, from + done, pages, there, all))
			return false;
	}
	return true;
}

static bool load(uint64_t to, uint64_t from, uint64_t len)
{
	bool all = swap_used();

	if (!load_all(to, from, len, all))
		return false;
	return all || !swap_used() || load_all(to, from, len, true);
}

static uint64_t new_private(uint64_t len)
{
	long at = syscall(SYS_mmap, NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	return at == -1 ? 0 : (uint64_t)at;
}

static bool fill_copy(const struct map_line *line, uint64_t copy)
{
	uint64_t len = line->to - line->from;

	return load(copy, line->from, len) &&
	       (line->prot == (PROT_READ | PROT_WRITE) ||
		!syscall(SYS_mprotect, copy, len, line->prot));
}

uint64_t pages_copy(const struct map_line *line)
{
	uint64_t copy = line->prot & PROT_READ ? new_private(line->to - line->from) : 0;

	if (copy && !fill_copy(line, copy)) {
		syscall(SYS_munmap, copy, line->to - line->from);
		copy = 0;
	}
	return copy;
}

bool pages_put(uint64_t from, uint64_t to, uint64_t len)
{
	return syscall(SYS_mremap, from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to) == (long)to;
}

static bool replace(const struct map_line *line, const struct freeze *frozen)
{
	uint64_t copy, len = line->to - line->from;

	copy = maps_has(line) ? pages_copy(line) : 0;
	if (copy && still_frozen(frozen) && pages_put(copy, line->from, len))
		return true;
	if (copy)
		syscall(SYS_munmap, copy, len);
	return false;
}

bool pages_unshare(const struct map_line *line)
{
	struct freeze frozen;
	bool ok;

	if (!freeze(&frozen, line->from, line->to - line->from))
		return false;
	ok = replace(line, &frozen);
	thaw(&frozen);
	return ok;
}
