/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A page that doesn't come, or that can't be written to: of a file whose FUSE server
 * keeps the read, or the write of what the page was. The file is the root of a file
 * system of its own, which root can mount, and who is root in a user namespace.
 */
#ifndef IBFS_TESTS_DEAD_PAGE_H
#define IBFS_TESTS_DEAD_PAGE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define DEAD_SKIPPED	77
#define DEAD_SIZE	(256 * 1024)

struct dead_server {
	int fd;
	atomic_bool asked;
	uint64_t read;			/* the request that waits */
	int told;			/* gets a byte then; 0: nobody is told */
	int go;				/* gives one when a write is to be answered; 0: never */
};

static inline void dead_answer(const struct dead_server *server, uint64_t unique, int err,
			       const void *data, size_t size)
{
	struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + size), .error = err, .unique = unique,
	};
	struct iovec iov[2] = { { &head, sizeof(head) }, { (void *)data, size } };

	if (writev(server->fd, iov, 2) < 0)
		fprintf(stderr, "answer to %u: %s\n", head.len, strerror(errno));
}

static inline void dead_tell(struct dead_server *server)
{
	server->asked = true;
	if (server->told && write(server->told, "r", 1) != 1)
		perror("told");
}

/* The answer to the read: a page of zeroes. */
static inline void dead_give_page(const struct dead_server *server)
{
	static const char zeroes[4096];

	dead_answer(server, server->read, 0, zeroes, sizeof(zeroes));
}

/* Of a server of writes, reads are answered. */
static inline void dead_read(struct dead_server *server, uint64_t unique)
{
	server->read = unique;
	if (server->go)
		dead_give_page(server);
	else
		dead_tell(server);
}

/*
 * Not for ever: a process with such a page can't end before that, and neither can one
 * that gave it the descriptor of the file system.
 */
static inline void dead_write(struct dead_server *server, uint64_t unique)
{
	struct pollfd go = { .fd = server->go, .events = POLLIN };
	struct fuse_write_out written = { .size = 4096 };

	dead_tell(server);
	poll(&go, 1, 30000);
	dead_answer(server, unique, 0, &written, sizeof(written));
}

static inline void dead_serve_one(struct dead_server *server, const struct fuse_in_header *in)
{
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096,
	};
	struct fuse_attr_out attr = {
		.attr = { .ino = 1, .size = DEAD_SIZE, .mode = S_IFREG | 0600, .nlink = 1 },
	};
	struct fuse_statfs_out statfs = { .st = { .bsize = 4096 } };
	/* Opening it again doesn't wait for its pages. */
	struct fuse_open_out open = { .fh = 1, .open_flags = FOPEN_KEEP_CACHE };

	switch (in->opcode) {
	case FUSE_INIT:
		dead_answer(server, in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_GETATTR:
		dead_answer(server, in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_STATFS:
		dead_answer(server, in->unique, 0, &statfs, sizeof(statfs));
		break;
	case FUSE_OPEN:
		dead_answer(server, in->unique, 0, &open, sizeof(open));
		break;
	case FUSE_READ:
		dead_read(server, in->unique);
		break;
	case FUSE_WRITE:
		dead_write(server, in->unique);
		break;
	default:
		dead_answer(server, in->unique, -ENOSYS, NULL, 0);
	}
}

/* By a thread, or a process: until the file system has gone. */
static inline void *dead_serve(void *arg)
{
	static union {
		struct fuse_in_header in;
		char buf[FUSE_MIN_READ_BUFFER];
	} request;
	struct dead_server *server = arg;

	while (read(server->fd, &request, sizeof(request)) > 0)
		dead_serve_one(server, &request.in);
	return NULL;
}

/* In a file of that name, mkstemp(3), which is made. Then somebody has to serve. */
static inline void dead_mount(struct dead_server *server, char *name)
{
	int fd = mkstemp(name);
	char options[80];

	server->fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=100000,user_id=0,group_id=0", server->fd);
	if (fd < 0 || mount("dead", name, "fuse.dead", MS_NOSUID | MS_NODEV, options)) {
		perror("mount");
		if (fd >= 0)
			unlink(name);
		exit(DEAD_SKIPPED);
	}
	close(fd);
}

/* The file, which nobody else finds from now on. */
static inline int dead_open(const char *name)
{
	int fd = open(name, O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {		/* the kernel asks for its size */
		perror(name);
		exit(1);
	}
	umount2(name, MNT_DETACH);
	unlink(name);
	return fd;
}

#endif
