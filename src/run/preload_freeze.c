/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibfs-run.so: pages that nobody writes to for a moment, userfaultfd(2). The
 * kernel holds threads that write to them, also inside of system calls, until
 * thaw(), when they go on with whatever is mapped there then. Who isn't
 * permitted that (it holds system calls, too) does without if the process has
 * one thread: a thread that only could be held outside of system calls would
 * see EFAULT inside of them.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/stat.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/preload_share.h"

/* Linux 6.4; Debian's headers may be older. */
#define WP_UNPOPULATED	(1ULL << 13)
#define NEW_BY_DEVICE	_IO(UFFDIO, 0x00)

static int new_uffd(void)
{
	int dev, uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (uffd >= 0)
		return uffd;
	dev = (int)syscall(SYS_openat, AT_FDCWD, "/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return -1;
	uffd = (int)syscall(SYS_ioctl, dev, NEW_BY_DEVICE, O_CLOEXEC | O_NONBLOCK);
	syscall(SYS_close, dev);
	return uffd;
}

static int open_uffd(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM |
			    WP_UNPOPULATED,
	};
	int uffd = new_uffd();

	if (uffd >= 0 && syscall(SYS_ioctl, uffd, UFFDIO_API, &api)) {
		syscall(SYS_close, uffd);
		uffd = -1;
	}
	return uffd;
}

/* The directory has a link for each. */
static bool one_thread(void)
{
	struct stat st;

	return !syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &st, 0) && st.st_nlink == 3;
}

static bool protect(int uffd, uint64_t start, uint64_t len, bool on)
{
	struct uffdio_writeprotect arg = {
		.range = { start, len }, .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return !syscall(SYS_ioctl, uffd, UFFDIO_WRITEPROTECT, &arg);
}

bool freeze(struct freeze *frozen, uint64_t start, uint64_t len)
{
	struct uffdio_register reg = { .range = { start, len }, .mode = UFFDIO_REGISTER_MODE_WP };

	*frozen = (struct freeze){ .uffd = open_uffd(), .start = start, .len = len };
	if (frozen->uffd < 0)
		return one_thread();
	if (!syscall(SYS_ioctl, frozen->uffd, UFFDIO_REGISTER, &reg) &&
	    protect(frozen->uffd, start, len, true))
		return true;
	syscall(SYS_close, frozen->uffd);
	return false;
}

/* What is mapped there by others isn't the userfaultfd's. */
bool still_frozen(const struct freeze *frozen)
{
	return frozen->uffd < 0 || protect(frozen->uffd, frozen->start, frozen->len, true);
}

void thaw(const struct freeze *frozen)
{
	if (frozen->uffd < 0)
		return;
	/* Where the old pages still are; then who waits at new ones wakes, too. */
	protect(frozen->uffd, frozen->start, frozen->len, false);
	syscall(SYS_close, frozen->uffd);
}
