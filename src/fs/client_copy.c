/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client's memory, by its mem file of /proc: that is of one address space, while
 * process_vm_readv(2) takes a number, whose process may run another program at any
 * moment. What the process itself may not read or write could be read and written so,
 * and is found out before. And the mem file waits for no page that userfaultfd(2) is to
 * bring, while the address space is locked when it waits for another one: so the pages
 * are touched first, by number, which does nothing but wait.
 */
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fs/client.h"

#define TRIES		8		/* with pages that went again */
#define TOUCHED		64		/* at a time */

int client_move(const struct client *client, void *buf, uint64_t addr, size_t length, bool write)
{
	size_t done = 0;

	while (done < length) {
		char *at = (char *)buf + done;
		ssize_t n = write ? pwrite(client->mem, at, length - done, (off_t)(addr + done)) :
				    pread(client->mem, at, length - done, (off_t)(addr + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EFAULT;
		done += n;
	}
	return 0;
}

/* A byte of each page, for nothing. */
static int touch(const struct client *client, uint64_t addr, uint64_t length)
{
	uint64_t page = sysconf(_SC_PAGESIZE), end = addr + length;
	struct iovec remote[TOUCHED], local;
	char bytes[TOUCHED] = { 0 };

	while (addr < end) {
		unsigned int num;

		for (num = 0; num < TOUCHED && addr < end; num++, addr = (addr / page + 1) * page)
			remote[num] = (struct iovec){ (void *)(uintptr_t)addr, 1 };
		local = (struct iovec){ bytes, num };
		if (process_vm_readv(client->tid, &local, 1, remote, num, 0) != (ssize_t)num)
			return -EFAULT;
	}
	return 0;
}

static int copy_part(struct client *client, void *buf, uint64_t addr, size_t length, bool write)
{
	int err = -EFAULT;

	for (int i = 0; i < TRIES && err == -EFAULT; i++) {
		if (touch(client, addr, length) ||
		    client_check(client, addr, length, write, NULL))
			return -EFAULT;
		if (!client_waits(client))
			return -ECANCELED;
		err = client_move(client, buf, addr, length, write);
	}
	return err;
}

static int copy(struct client *client, const struct iovec *local, const struct iovec *remote,
		unsigned int num, bool write)
{
	int err = 0;

	for (unsigned int i = 0; i < num && !err; i++)
		err = copy_part(client, local[i].iov_base, (uintptr_t)remote[i].iov_base,
				remote[i].iov_len, write);
	return err;
}

int client_read(struct client *client, const struct iovec *local, const struct iovec *remote,
		unsigned int num)
{
	return copy(client, local, remote, num, false);
}

int client_write(struct client *client, const struct iovec *local, const struct iovec *remote,
		 unsigned int num)
{
	return copy(client, local, remote, num, true);
}
