/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The 9P front end's inside: connections, fids, requests. What a path means and
 * what its files do is fs.h's; here is only the protocol. One connection is one
 * client, which may act for several users (struct p9_user, one an attach).
 *
 *	9p_listen.c	addresses, sockets, accept
 *	9p_conn.c	bytes of a connection, in and out
 *	9p_req.c	one message: dispatch, answers, what waits, Tflush
 *	9p_fid.c	fids: version, attach, walk, clunk
 *	9p_io.c		open, create, read, write
 *	9p_dir.c	reading directories, mkdir, unlink, remove
 *	9p_attr.c	getattr, setattr, stat, wstat, statfs
 *	9p_user.c	who a client is
 */
#ifndef IBFS_FS_9P_SERVER_H
#define IBFS_FS_9P_SERVER_H

#include <ev.h>
#include <uthash.h>

#include <ibfs/conf.h>
#include <ibfs/fs.h>
#include <ibfs/ibfs.h>

#include "fs/9p.h"

/* Bytes that came or go; those before pos are done with. */
struct p9_buf {
	uint8_t *data;
	size_t pos, len, size;
};

struct p9_server {
	struct ibfs *ibfs;
	const struct conf_p9 *conf;
	struct p9_listener *listeners;
	struct p9_conn *conns;
	struct p9_req *spare;
	unsigned int num_spare;
	uint8_t *scratch;		/* conf->msize bytes, aligned, of the request that runs */
};

/* Who an attach acts as, and where it is. Counted: the attach's fids hold it. */
struct p9_user {
	unsigned int refs;
	struct fs_cred cred;
	struct path root;		/* ".." goes no further */
};

struct p9_conn {
	struct p9_conn *prev, *next;
	struct p9_server *server;
	int fd;
	struct charge charge;		/* its peer's: itself, buffers, requests that wait */
	struct ev_io io;
	struct task task;		/* go on with what is in `in`; or free it */
	struct p9_buf in, out;
	bool out_taken;			/* by p9_conn_take_out() */
	bool in_turn;			/* answers wait for the end of it */
	bool closing;			/* hung up; no answers any more */
	bool released;			/* and what it held is */
	enum p9_dialect dialect;
	uint32_t msize;
	struct p9_user *peer;		/* whom the kernel vouches for, or whom conf names */
	bool mapped;			/* the latter (TCP): attaches are as that user, always */
	struct p9_fid *fids;
	struct p9_req *waiting;		/* by tag */
};

struct p9_fid {
	uint32_t num;
	UT_hash_handle hh;
	unsigned int refs;		/* of the table and of requests that wait */
	struct p9_user *user;
	struct charge charge;		/* the user's */
	struct path path;
	char *name;			/* all components from the tree's root; "" is that */
	bool open;
	int access;			/* O_ACCMODE, once open */
	struct file *file;		/* of an open file; of a directory NULL */
	/* reading a directory as 9P2000 does, by bytes */
	uint64_t dir_offset, dir_cookie;
	/* the last read of a queue, see continues() */
	uint64_t read_end;
	uint32_t read_left;
	uint32_t read_count;
};

struct p9_req {
	struct fs_req req;		/* first */
	struct p9_conn *conn;
	struct p9_fid *fid;
	uint8_t type;
	uint16_t tag;
	bool waits;
	bool flushed;			/* a Tflush waits for it */
	bool silent;			/* of a session that is over: no answer */
	bool asked;			/* by cancel_one() */
	bool asks;			/* by p9_ready(): answered 0, it is run anew */
	uint8_t *again;			/* from this copy of its message */
	size_t paid;			/* bytes of the connection's charge */
	struct p9_req *flushes;		/* Tflushes to answer after it */
	struct p9_req *prev, *next;	/* of those, or of the spare ones */
	UT_hash_handle hh;
};

/* What a message's function returns when the answer is sent already. */
enum { P9_ANSWERED = 1 };

/*
 * Does what a message asks; *out is the answer, all zero but for type and tag.
 * 0: send *out; P9_ANSWERED; FS_PENDING; or -errno.
 */
typedef ssize_t p9_op(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out);

/*
 * 9p_conn.c. fd and peer become its own, also when NULL is returned: no memory, or the
 * peer may have no more, which is told.
 */
struct p9_conn *p9_conn_new(struct p9_server *server, int fd, struct p9_user *peer, bool mapped);
/* Hang up: everything that it holds is released in the loop's next turn, and itself. */
void p9_conn_close(struct p9_conn *conn);
void p9_conn_free(struct p9_conn *conn);
/* Nothing waits any more: a connection that was hung up can go. */
void p9_conn_idle(struct p9_conn *conn);
/* len bytes at the end of what goes out, to be filled; NULL: no memory, it is hung up. */
uint8_t *p9_conn_room(struct p9_conn *conn, size_t len);
void p9_conn_sent(struct p9_conn *conn, size_t len);	/* that much of it was filled */
/*
 * Fill the end of what goes out while other answers may come: it is the caller's
 * from take (who copied conn->out before) to give, which appends what came.
 */
void p9_conn_take_out(struct p9_conn *conn);
void p9_conn_give_out(struct p9_conn *conn, struct p9_buf out);
/* data[i] is aligned to 8 bytes where i + pad is. */
enum { P9_PAD_IN = 1, P9_PAD_OUT = 5 };

/* 9p_req.c */
enum { P9_WAITS_FREE = 16 };		/* requests that may wait, of what a connection has */
void p9_message(struct p9_conn *conn, const uint8_t *buf, size_t len);
void p9_cancel_all(struct p9_conn *conn);	/* the session is over */
/* Requests that use the fid are cancelled: it is clunked. */
void p9_cancel_fid(struct p9_conn *conn, const struct p9_fid *fid);
void p9_drop_waiting(struct p9_conn *conn);	/* the daemon ends: nobody answers them */
void p9_answer_data(struct p9_conn *conn, uint8_t type, uint16_t tag, const void *data, size_t len);
/* fs_ready(); FS_PENDING: the message's function returns that, and is run again later. */
ssize_t p9_ready(struct p9_req *req, const struct p9_user *user, struct path dir);
/* The request is this user's. */
void p9_act_as(struct p9_req *req, const struct p9_user *user);
/* This request would wait: are there too many already? 0, -EAGAIN or -EDQUOT. */
int p9_may_wait(struct p9_req *req, const struct p9_user *user);

/* 9p_fid.c */
struct p9_fid *p9_fid_get(const struct p9_conn *conn, uint32_t num);
/* At a place whose name becomes its own, also when it fails: -EDQUOT, -ENOMEM. */
int p9_fid_new(struct p9_conn *conn, uint32_t num, struct p9_user *user, struct path path,
	       char *name);
void p9_fid_put(struct p9_fid *fid);
void p9_fid_clunk(struct p9_conn *conn, struct p9_fid *fid);
void p9_fids_clunk(struct p9_conn *conn);
const char *p9_fid_name(const struct p9_fid *fid);	/* its last component; "/" */
struct p9_qid p9_qid(struct path path);
/* A component of a path, as a string of C; -EINVAL, -ENAMETOOLONG. */
int p9_component(struct p9_str str, char name[256]);
p9_op p9_version, p9_attach, p9_walk, p9_clunk;

/* 9p_io.c */
p9_op p9_lopen, p9_open, p9_lcreate, p9_create, p9_read, p9_write, p9_fsync;
/* An open that waited: fills *out. */
ssize_t p9_opened(struct p9_req *req, ssize_t result, struct p9_msg *out);
void p9_read_done(struct p9_req *req, size_t len);

/* 9p_dir.c */
p9_op p9_readdir, p9_mkdir, p9_unlinkat, p9_remove;
ssize_t p9_mkdir_at(struct p9_req *req, struct p9_str name, mode_t mode, struct path *child);
ssize_t p9_read_stats(struct p9_req *req, uint64_t offset, void *buf, size_t size);

/* 9p_attr.c */
p9_op p9_getattr, p9_setattr, p9_stat, p9_wstat, p9_statfs;
/* The names that the last stat had, for the next. */
struct p9_owner {
	bool known;
	uid_t uid;
	gid_t gid;
	char user[64], group[64];
};
/* A file as 9P2000's stat; its length, or 0 if it doesn't fit. */
size_t p9_put_stat(struct p9_owner *owner, const struct stat *st, const char *name, void *buf,
		   size_t room);

/* 9p_user.c */
/* groups become its own, also when NULL is returned (no memory, or groups is NULL). */
struct p9_user *p9_user_new(uid_t uid, gid_t gid, struct fs_groups *groups);
struct p9_user *p9_user_get(struct p9_user *user);
void p9_user_put(struct p9_user *user);
struct p9_user *p9_user_peer(int fd);		/* of a unix socket; NULL and errno */
/* Who an attach acts as: a new reference in *user, or -EPERM, -ENOMEM. */
int p9_user_attach(struct p9_conn *conn, const struct p9_msg *in, struct p9_user **user);
void p9_user_name(uid_t uid, char name[64]);
void p9_group_name(gid_t gid, char name[64]);
/* A name or a number. False: there is none. */
bool p9_user_id(const char *name, uid_t *uid);
bool p9_group_id(const char *name, gid_t *gid);

#endif
