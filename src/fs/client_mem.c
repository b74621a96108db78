/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client's blocked thread told the kernel: /proc/TID/syscall gives its
 * system call's number and arguments (proc_pid_syscall(5)).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fs/client.h"
#include "fs/client_mem.h"

#define WAIT_NS		20000		/* the first; each wait is longer by half */
#define WAIT_ROUNDS	28		/* together about a second */
#define MAX_COUNT	0x7ffff000	/* no system call moves more: MAX_RW_COUNT */

static const struct call {
	long nr;
	bool vec, write;
} calls[] = {
	{ SYS_read, false, false },
	{ SYS_pread64, false, false },
	{ SYS_readv, true, false },
	{ SYS_preadv, true, false },
	{ SYS_preadv2, true, false },
	{ SYS_write, false, true },
	{ SYS_pwrite64, false, true },
	{ SYS_writev, true, true },
	{ SYS_pwritev, true, true },
	{ SYS_pwritev2, true, true },
};

static const struct call *find_call(long nr)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

/* One look; -EAGAIN: the thread isn't asleep yet. */
static int read_syscall(int fd, long *nr, uint64_t arg[3])
{
	char text[256];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	char *p = text;

	if (n < 0)
		return -errno;
	text[n] = '\0';
	if (!strncmp(text, "running", 7))
		return -EAGAIN;
	*nr = strtol(p, &p, 10);
	for (int i = 0; i < 3; i++)
		arg[i] = strtoull(p, &p, 16);
	return 0;
}

static int wait_syscall(const struct client *client, const atomic_int *stop, long *nr,
			uint64_t arg[3])
{
	struct timespec wait = { .tv_nsec = WAIT_NS };
	int fd = client_open(client, "syscall", O_RDONLY), ret = -EAGAIN;

	if (fd < 0)
		return fd;
	for (int i = 0; i < WAIT_ROUNDS; i++) {
		ret = atomic_load(stop) ? -ECANCELED : read_syscall(fd, nr, arg);
		if (ret != -EAGAIN)
			break;
		nanosleep(&wait, NULL);
		wait.tv_nsec += wait.tv_nsec / 2;
	}
	close(fd);
	return ret == -EAGAIN ? -ENOENT : ret;
}

/* Its own parts, each of what is local there. */
static int copy(const struct client_buf *buf, const struct iovec *remote, unsigned int num,
		void *data, bool write)
{
	struct iovec local = { .iov_base = data };
	int err = 0;

	for (unsigned int i = 0; i < num && !err; i++) {
		local.iov_len = remote[i].iov_len;
		err = write ? client_write(buf->client, &local, &remote[i], 1) :
			      client_read(buf->client, &local, &remote[i], 1);
		local.iov_base = (char *)local.iov_base + local.iov_len;
	}
	return err;
}

/* The client's array is its own to change: what was fetched is what counts. */
static int fetch_iov(struct client_buf *buf, uint64_t addr, uint64_t num)
{
	struct iovec remote = { (void *)(uintptr_t)addr, num * sizeof(buf->iov[0]) };
	int ret;

	if (!num || num > UIO_MAXIOV)
		return -ENOENT;
	ret = copy(buf, &remote, 1, buf->iov, false);
	if (ret)
		return ret;
	buf->num = (unsigned int)num;
	return 0;
}

/* Lengths that together are more than a system call may move are cut, as the kernel does. */
static void sum_iov(struct client_buf *buf)
{
	buf->total = 0;
	for (unsigned int i = 0; i < buf->num; i++) {
		if (buf->iov[i].iov_len > MAX_COUNT - buf->total)
			buf->iov[i].iov_len = MAX_COUNT - buf->total;
		buf->total += buf->iov[i].iov_len;
	}
}

int client_buf_find(struct client_buf *buf, struct client *client, const atomic_int *stop)
{
	const struct call *call;
	uint64_t arg[3] = { 0 };
	long nr = -1;
	int ret;

	ret = wait_syscall(client, stop, &nr, arg);
	if (ret)
		return ret;
	call = find_call(nr);
	if (!call)
		return -ENOENT;
	buf->client = client;
	buf->write = call->write;
	if (call->vec) {
		ret = fetch_iov(buf, arg[1], arg[2]);
		if (ret)
			return ret;
	} else {
		buf->num = 1;
		buf->iov[0] = (struct iovec){ (void *)(uintptr_t)arg[1], arg[2] };
	}
	sum_iov(buf);
	return 0;
}

/* The buffer's parts from off to off + len. */
static unsigned int slice(const struct client_buf *buf, size_t off, size_t len, struct iovec *out)
{
	unsigned int num = 0;

	for (unsigned int i = 0; i < buf->num && len; i++) {
		struct iovec part = buf->iov[i];

		if (off >= part.iov_len) {
			off -= part.iov_len;
			continue;
		}
		part.iov_base = (char *)part.iov_base + off;
		part.iov_len -= off;
		off = 0;
		if (part.iov_len > len)
			part.iov_len = len;
		len -= part.iov_len;
		out[num++] = part;
	}
	return num;
}

static int copy_slice(const struct client_buf *buf, size_t off, void *data, size_t len, bool write)
{
	struct iovec *part;
	int ret;

	if (off > buf->total || len > buf->total - off)
		return -EFAULT;
	if (!len)
		return 0;
	part = malloc(buf->num * sizeof(*part));
	if (!part)
		return -ENOMEM;
	ret = copy(buf, part, slice(buf, off, len, part), data, write);
	free(part);
	return ret;
}

int client_buf_read(const struct client_buf *buf, size_t off, void *data, size_t len)
{
	return copy_slice(buf, off, data, len, false);
}

int client_buf_write(const struct client_buf *buf, size_t off, const void *data, size_t len)
{
	return copy_slice(buf, off, (void *)data, len, true);
}

static int read_memlock(FILE *limits, uint64_t *bytes)
{
	static const char name[] = "Max locked memory";
	int err = -EIO;
	char line[256];

	while (err && fgets(line, sizeof(line), limits)) {
		if (strncmp(line, name, strlen(name)))
			continue;
		err = 0;
		if (sscanf(line + strlen(name), "%" SCNu64, bytes) != 1)
			*bytes = UINT64_MAX;
	}
	fclose(limits);
	return err;
}

int client_memlock(pid_t pid, uint64_t *bytes)
{
	FILE *limits;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
	limits = fopen(path, "re");
	return limits ? read_memlock(limits, bytes) : -errno;
}

int client_memlock_of(const struct client *client, uint64_t *bytes)
{
	int fd = client_open(client, "limits", O_RDONLY);
	FILE *limits = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (limits)
		return read_memlock(limits, bytes);
	if (fd < 0)
		return fd;
	close(fd);
	return -ENOMEM;
}
