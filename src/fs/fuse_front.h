/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The FUSE front end's inside. A node id is a packed path, so nothing is
 * remembered of a lookup, and nothing forgotten.
 *
 *	fuse.c		the session: mount, the event loop, unmount
 *	fuse_req.c	a request's life: answered now, later, or interrupted
 *	fuse_file.c	open files, and telling who polls them
 *	fuse_dir.c	names, directories, attributes
 */
#ifndef IBFS_FS_FUSE_FRONT_H
#define IBFS_FS_FUSE_FRONT_H

#include <ev.h>
#include <fuse_lowlevel.h>

#include <ibfs/fs.h>
#include <ibfs/ibfs.h>

#include "fs/mountwatch.h"
#include "fs/passthrough.h"

enum { FRONT_READ_SIZE = 1 << 20 };	/* the most that the kernel asks for in a read */

struct front_req {
	struct fs_req req;
	struct front_req *prev, *next;	/* of those that wait, or of the spare ones */
	struct fuse_front *front;
	fuse_req_t fuse;
	struct front_file *file;
	/* Answers the kernel, then front_req_put()s it. */
	void (*answer)(struct front_req *req, ssize_t result, const void *data, size_t len);
	bool waits;
	bool asked;			/* by front_reqs_cancel() */
	/* of a lookup or a readdir in a directory that asks others */
	struct path dir;
	char *name;			/* NULL: a readdir's */
	size_t size;
	off_t off;
};

struct front_file {
	struct front_file *prev, *next;
	struct fuse_front *front;
	struct file *file;
	struct fuse_pollhandle *poll;	/* whom to tell of a change; NULL: nobody */
	unsigned int poll_events;	/* that matter to them */
	bool may_sleep;			/* a poll since the last notice was answered: not ready */
	struct front_file *due_prev, *due_next;	/* of those that get a notice later */
	bool due;
	fuse_ino_t ino;
	int32_t backing_id;		/* 0: none */
};

struct fuse_front {
	struct ibfs *ibfs;
	struct fuse_session *se;
	struct fuse_buf buf;
	struct ev_io io;
	struct ev_idle idle;		/* runs while notices are due */
	bool unmounted;			/* by somebody else */
	struct mountwatch mountwatch;
	struct passthrough passthrough;
	struct front_req *waiting, *spare;
	struct front_file *files, *due;
	uint32_t fresh;			/* the last number given to a path that wants one */
	char *data;			/* of an answer: FRONT_READ_SIZE bytes */
};

/*
 * fuse_req.c. A request with its caller; NULL: no memory, and the kernel knows.
 * file: that it is for, or NULL.
 */
struct front_req *front_req_start(fuse_req_t fuse, struct front_file *file,
				  void (*answer)(struct front_req *req, ssize_t result,
						 const void *data, size_t len));
/* What fs said: the answer, or FS_PENDING. */
void front_req_done(struct front_req *req, ssize_t result, const void *data, size_t len);
void front_req_wait(struct front_req *req);	/* for fs' reply, or an interrupt */
void front_req_put(struct front_req *req);
/* The daemon ends. Holders that can't let go of a request do so when its file is released. */
void front_reqs_cancel(struct fuse_front *front);
void front_reqs_free(struct fuse_front *front);

/* fuse_file.c */
void front_open(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi);
void front_read(fuse_req_t fuse, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void front_write(fuse_req_t fuse, fuse_ino_t ino, const char *buf, size_t size, off_t off,
		 struct fuse_file_info *fi);
void front_ioctl(fuse_req_t fuse, fuse_ino_t ino, unsigned int cmd, void *arg,
		 struct fuse_file_info *fi, unsigned int flags, const void *in, size_t in_len,
		 size_t out_room);
void front_poll(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi,
		struct fuse_pollhandle *poll);
void front_release(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi);
void front_files_init(struct fuse_front *front);
void front_files_free(struct fuse_front *front);

/* fuse_dir.c */
void front_lookup(fuse_req_t fuse, fuse_ino_t parent, const char *name);
void front_getattr(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi);
void front_setattr(fuse_req_t fuse, fuse_ino_t ino, struct stat *st, int to_set,
		   struct fuse_file_info *fi);
void front_readdir(fuse_req_t fuse, fuse_ino_t ino, size_t size, off_t off,
		   struct fuse_file_info *fi);
void front_mkdir(fuse_req_t fuse, fuse_ino_t parent, const char *name, mode_t mode);
void front_rmdir(fuse_req_t fuse, fuse_ino_t parent, const char *name);

#endif
