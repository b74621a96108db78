/* SPDX-License-Identifier: BSD-2-Clause */
/* FUSE passthrough, negotiated behind libfuse's back; see passthrough.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <uthash.h>

#include "fs/passthrough.h"

/* linux/fuse.h of Linux 6.9; Debian's header is older. */
enum {
	OPCODE_INIT = 26,
	INIT_EXT = 1 << 30,		/* flags */
	INIT_PASSTHROUGH = 1 << 5,	/* flags2, bit 37 of both */
	/* 32-bit words of struct fuse_init_in and fuse_init_out */
	IN_FLAGS = 3, IN_FLAGS2 = 4, IN_WORDS = 5,
	OUT_FLAGS = 3, OUT_FLAGS2 = 8, OUT_STACK_DEPTH = 9, OUT_WORDS = 10,
};

struct in_header {
	uint32_t len, opcode;
	uint64_t unique, nodeid;
	uint32_t uid, gid, pid, padding;
};

struct out_header {
	uint32_t len;
	int32_t error;
	uint64_t unique;
};

struct backing_map {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
};

#define BACKING_OPEN	_IOW(229, 1, struct backing_map)
#define BACKING_CLOSE	_IOW(229, 2, uint32_t)

struct backing {
	uint64_t ino;
	uint32_t id;
	unsigned int refs;
	UT_hash_handle hh;
};

void passthrough_init(struct passthrough *pt, int fd, bool allowed)
{
	*pt = (struct passthrough){ .fd = fd, .allowed = allowed };
}

void passthrough_request(struct passthrough *pt, const void *buf, size_t len)
{
	uint32_t words[IN_WORDS];
	struct in_header head;

	if (len < sizeof(head) + sizeof(words))
		return;
	memcpy(&head, buf, sizeof(head));
	if (head.opcode != OPCODE_INIT)
		return;
	memcpy(words, (const char *)buf + sizeof(head), sizeof(words));
	pt->init = head.unique;
	pt->offered = pt->allowed && (words[IN_FLAGS] & INIT_EXT) && (words[IN_FLAGS2] & INIT_PASSTHROUGH);
}

void passthrough_reply(struct passthrough *pt, struct iovec *iov, int count)
{
	const struct out_header *head = iov[0].iov_base;
	uint32_t *words;

	if (!pt->init || head->unique != pt->init || head->error)
		return;
	pt->answered = true;
	if (!pt->offered || count < 2 || iov[1].iov_len < OUT_WORDS * sizeof(*words))
		return;
	words = iov[1].iov_base;
	words[OUT_FLAGS] |= INIT_EXT;
	words[OUT_FLAGS2] |= INIT_PASSTHROUGH;
	words[OUT_STACK_DEPTH] = 1;
	pt->on = true;
}

int passthrough_get(struct passthrough *pt, uint64_t ino, int fd)
{
	struct backing_map map = { .fd = fd };
	struct backing *backing;
	int id;

	if (!pt->on)
		return -ENODEV;
	HASH_FIND(hh, pt->backings, &ino, sizeof(ino), backing);
	if (backing) {
		backing->refs++;
		return backing->id;
	}
	backing = calloc(1, sizeof(*backing));
	if (!backing)
		return -ENOMEM;
	id = ioctl(pt->fd, BACKING_OPEN, &map);
	if (id <= 0) {
		free(backing);
		return id < 0 ? -errno : -EIO;
	}
	backing->ino = ino;
	backing->id = id;
	backing->refs = 1;
	HASH_ADD(hh, pt->backings, ino, sizeof(backing->ino), backing);
	return id;
}

void passthrough_put(struct passthrough *pt, uint64_t ino)
{
	struct backing *backing;

	HASH_FIND(hh, pt->backings, &ino, sizeof(ino), backing);
	if (!backing || --backing->refs)
		return;
	ioctl(pt->fd, BACKING_CLOSE, &backing->id);
	HASH_DEL(pt->backings, backing);
	free(backing);
}

void passthrough_free(struct passthrough *pt)
{
	struct backing *backing, *tmp;

	HASH_ITER(hh, pt->backings, backing, tmp) {
		HASH_DEL(pt->backings, backing);
		free(backing);
	}
}
