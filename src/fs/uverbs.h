/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open uverbs file, shared by the files of its commands. What is what the
 * kernel's is: a file has at most one context, the context's objects are named
 * by handles of one table, events are read from files of their own.
 * <rdma/ib_user_verbs.h>, <rdma/rdma_user_rxe.h>; kernel drivers/infiniband/core/uverbs*.c.
 *
 *  uverbs.c	the file: open, write, close; headers of commands
 *  uverbs_run.c	a command's life
 *  uverbs_cmd.c	the table of commands
 *  uverbs_ioctl.c uverbs_methods.c uverbs_query.c	RDMA_VERBS_IOCTL, its methods
 *  uverbs_obj.c	handles
 *  uverbs_event.c uverbs_chan.c	completion and asynchronous event files, and rings of the former
 *  uverbs_space.c uverbs_rings.c	the file's memory, where its rings are
 *  uverbs_bell.c	doorbells that are no command
 *  uverbs_look.c uverbs_mem.c	memory of processes
 *  uverbs_dev.c uverbs_pd.c uverbs_cq.c uverbs_srq.c uverbs_qp.c uverbs_post.c	commands
 *  uverbs_class.c	names in the tree
 */
#ifndef IBFS_FS_UVERBS_H
#define IBFS_FS_UVERBS_H

#include <ev.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <stdatomic.h>

#include <ibfs/bell.h>
#include <ibfs/memory.h>
#include <ibfs/uverbs_arms.h>
#include <ibfs/uverbs_bells.h>
#include <ibfs/verbs.h>

#include "fs/client.h"
#include "fs/tree.h"

struct uobj;
struct uv_attr;
struct uv_call;
struct uv_chan;
struct uv_cmd;

/* --- memory of rings (uverbs_space.c) --- */

/* What a space has at once, in one mapping: the pages of doorbells and of notices. */
#define UV_SPACE_FIRST	(UVERBS_ARMS_OFFSET + UVERBS_ARMS_SIZE)

struct uv_space {
	struct ring_space rings;	/* first */
	struct uverbs_bells *bells;	/* at its start */
	struct uverbs_arm *arms;	/* the page behind that */
	uint64_t size;			/* of the file */
	struct uv_hole *holes;		/* what was freed, by offset */
	struct charge *charge;		/* the file's, which pays for what rings have of it */
	bool keeps;			/* the last completions, for the client to read: nothing is freed */
};
/* NULL: no memory, or not for this one */
struct uv_space *uv_space_new(struct ibfs *ibfs, struct charge *charge);
void uv_space_free(struct uv_space *space);
/* Where a QP of this handle tells; NULL: nowhere. */
_Atomic uint8_t *uv_space_bell(const struct uv_space *space, uint32_t handle);
/* Where events of a CQ of this handle are asked for; NULL: nowhere. */
struct uverbs_arm *uv_space_arm(const struct uv_space *space, uint32_t handle);

/* --- doorbells in there (uverbs_bell.c) --- */

/* The client wrote a doorbell of this QP. */
void uv_bell_written(struct uverbs_file *uf, struct uobj *qp);
/* Before its memory goes. */
void uv_bell_stop(struct uverbs_file *uf);

/* --- memory of processes (uverbs_look.c, uverbs_mem.c) --- */

/* A file that a range maps shared. */
struct uv_shared {
	int fd;				/* -1: the range is private, or in several files */
	uint64_t off;			/* of the range's first byte, in the file */
	size_t page;			/* by which it can be mapped */
};

/* What a helper thread found out about a range that is to be registered. */
struct uv_range {
	uint64_t start, length;
	bool write;
	bool on_demand;			/* looked at when it is used; length UINT64_MAX: all there is */
	struct uv_shared shared;
	uint64_t limit;			/* RLIMIT_MEMLOCK, or UINT64_MAX */
};
void uv_range_init(struct uv_range *range);
/* Helper: 0, -EFAULT (not mapped, or not so), -ECANCELED. Afterwards shared.fd is the caller's. */
int uv_range_look(struct uv_range *range, struct client *client);
void uv_range_drop(struct uv_range *range);

/*
 * Bytes that a process has registered, for its RLIMIT_MEMLOCK. Of one address
 * space, as the kernel's mm->pinned_vm: another program in the process begins at 0.
 */
struct uv_pin {
	struct uv_pin *prev, *next;
	pid_t tgid;
	uid_t uid;
	uint8_t program[CLIENT_PROGRAM];	/* all zero: not known */
	struct uv_space_file *file;	/* NULL: none of it is private */
	uint64_t bytes, limit;
	unsigned int refs;
};
/* -ENOMEM; -EPERM: it may not lock anything. */
int uv_pin(struct fs *fs, const struct client *client, const struct uv_range *range, uid_t uid,
	   struct uv_pin **pin);
void uv_unpin(struct fs *fs, struct uv_pin *pin, uint64_t bytes);
struct textbuf;
/* A line a process, as in the tree's `pinned`. */
void uv_pins_show(const struct fs *fs, struct textbuf *out);
/* What a range counts for there: the pages that it touches, in bytes. */
uint64_t uv_range_bytes(const struct uv_range *range);
/* Uses the range's fd up, also when it fails: NULL. The range begins at *off of the memory. */
struct memory *uv_memory(struct ibfs *ibfs, struct client *client, struct uv_range *range,
			 struct uv_pin *pin, uint64_t *off);

/* --- objects (uverbs_obj.c) --- */

enum uobj_type {		/* in the order in which a close destroys them */
	UOBJ_QP, UOBJ_SRQ, UOBJ_CQ, UOBJ_AH, UOBJ_MW, UOBJ_MR, UOBJ_XRCD, UOBJ_PD, UOBJ_TYPES,
};

struct uv_group {		/* that a QP is attached to */
	struct uv_group *prev, *next;
	union ibv_gid gid;
	uint16_t lid;
};

struct uobj {
	struct verbs_client client;	/* first */
	struct uverbs_file *uf;
	enum uobj_type type;
	uint32_t handle;
	struct charge charge;
	bool live;			/* its maker was told the handle */
	uint64_t user_handle;
	union {
		struct ibfs_pd *pd;
		struct ibfs_mr *mr;
		struct ibfs_mw *mw;
		struct ibfs_ah *ah;
		struct ibfs_cq *cq;
		struct ibfs_srq *srq;
		struct ibfs_qp *qp;
		struct uv_xrcd *xrcd;
	};
	struct uv_events *channel;	/* CQ; NULL: none */
	struct uv_events *async;	/* CQ, SRQ, QP: where its events go; NULL: nowhere */
	uint32_t async_read, comp_read;	/* events that were read */
	struct uv_group *groups;	/* QP */
	struct uv_pin *pin;		/* MR */
	uint64_t pinned;
	struct uobj *domain;		/* QP, SRQ: the XRC domain it was made in; NULL: none */
	unsigned int users;		/* XRC domain: what names it so */
};

struct uobj *uobj_new(struct uverbs_file *uf, enum uobj_type type);
/* Have its events go where the command says, or to the context's first event file. -EBADF. */
int uobj_set_events(struct uobj *obj, const struct uv_cmd *cmd);
struct uobj *uobj_get(const struct uverbs_file *uf, uint32_t handle, enum uobj_type type);
bool uobj_exists(const struct uverbs_file *uf, uint32_t handle);	/* of any type */
/* It is of an XRC domain's, which can't be closed before it; NULL: of none. */
void uobj_set_domain(struct uobj *obj, struct uobj *xrcd);
/* Its destruction: 0, or -EBUSY and it stays. */
int uobj_destroy(struct uobj *obj);
/* Forget it, when its object was never made. */
void uobj_free(struct uobj *obj);
void uobj_destroy_all(struct uverbs_file *uf);

/* An XRC domain that openers of one inode share, or one alone (no inode). */
struct uv_xrcd {
	struct uv_xrcd *prev, *next;
	struct ibfs_device *dev;
	struct ibfs_xrcd *xrcd;
	dev_t st_dev;
	ino_t st_ino;			/* 0: none */
	unsigned int refs;
};

/* --- events (uverbs_event.c) --- */

struct uv_event {
	struct uv_event *prev, *next;
	struct uobj *obj;		/* NULL: the device's */
	uint64_t element;
	uint32_t type;
};

/* An event file; in dev/infiniband/ev until its owner opened it, once. */
struct uv_events {
	struct uv_events *prev, *next;	/* of fs->uv_events */
	unsigned int refs;
	uint32_t id;
	bool async;
	bool held;			/* one of refs is the context's */
	bool closed;			/* its context or device is gone */
	struct uverbs_file *uf;		/* whose; NULL: gone */
	uid_t uid;			/* its owner */
	gid_t gid;
	bool opened;
	struct file *file;		/* NULL: not open */
	struct fs *fs;
	struct uv_chan *chan;		/* events before those of the queue; NULL: none */
	struct uv_event *queue;
	unsigned int count;
	struct waitq readers;
};
/* The context's, which holds it until it is opened and closed. cred: who owns it. */
struct uv_events *uv_events_new(struct uverbs_file *uf, const struct fs_cred *cred, bool async);
struct uv_events *uv_events_find(struct fs *fs, uint64_t id);
void uv_events_get(struct uv_events *events);
void uv_events_put(struct uv_events *events);
void uv_events_add(struct uv_events *events, struct uobj *obj, uint64_t element, uint32_t type);
/* An event that is the first one: back into the queue, unless there's no memory. */
void uv_events_unread(struct uv_events *events, struct uobj *obj, uint64_t element);
/* An object goes: its events with it. */
void uv_events_drop(struct uv_events *events, const struct uobj *obj);
/*
 * Its context has gone: no more events come, readers get EIO when they have
 * read what there is.
 */
void uv_events_close(struct uv_events *events);

/*
 * --- rings of completion channels (uverbs_chan.c), ibfs/event_ring.h ---
 * Each function works, and does nothing, on a file without one. What was taken
 * is counted for the destroyers of its objects whenever one of them is called.
 */

/* The ioctl: makes the ring. -EBUSY, -ENOMEM, -EIO. */
ssize_t uv_chan_make(struct uv_events *events, void *out, size_t *out_len);
/* Put a CQ's event, if none waits elsewhere and there is room; else false. */
bool uv_chan_put(struct uv_events *events, struct uobj *obj);
bool uv_chan_take(struct uv_events *events, uint64_t *element);
bool uv_chan_filled(struct uv_events *events);
/* The queue changed: move on what has room now, tell the client what hasn't. */
void uv_chan_refill(struct uv_events *events);
/* All of it goes back to the queue's head: until a refill nobody takes any. */
void uv_chan_reclaim(struct uv_events *events);
/* The client asks the file itself from here on. */
void uv_chan_end(struct uv_events *events);

/* --- commands (uverbs_run.c) --- */

struct uv_method {
	uint8_t cmd;
	bool ex;
	bool driver;		/* request and response have a part for the driver */
	bool no_context;	/* allowed before GET_CONTEXT */
	uint16_t req, resp;	/* bytes at least; req without the header, with `response` */
	void (*prep)(struct uv_cmd *cmd);	/* helper: sets cmd->err */
	int (*run)(struct uv_cmd *cmd);		/* 0 or -errno; UV_LATER: after a helper's turn */
};
enum { UV_LATER = 2 };
const struct uv_method *uv_method(uint32_t cmd, bool ex);	/* NULL: none */
/* By a header's command, with its flags. -EINVAL, -EOPNOTSUPP. */
int uv_find_method(uint32_t command, const struct uv_method **method);

/* A command on its way. */
struct uv_cmd {
	struct uv_cmd *prev, *next;
	struct job job;
	struct ev_timer patience;
	struct client *client;		/* NULL: no helper was needed yet */
	struct uverbs_file *uf;
	struct fs_req *req;
	const struct uv_method *method;	/* NULL: an ioctl's own */
	struct uv_call *call;		/* an ioctl; NULL: a write() */
	size_t count;			/* what write() returns */
	const void *in, *drv_in;	/* the request; its driver part */
	size_t in_len, drv_in_len;
	uint64_t response;		/* in the client's memory; 0: none */
	size_t out_len, drv_out_len;	/* room there */
	uint8_t *out, *drv_out;		/* the answer, zeroed; NULL: no room */
	size_t out_used, drv_out_used;	/* 0 of both: nothing goes back */
	int err;
	int result;			/* -errno that goes with an answer (POST_SEND); else 0 */
	/* what prep() found */
	struct uv_range range;
	int sock;			/* -1: none */
	uint64_t fd_id;			/* of a descriptor of an event file */
	unsigned int turns;		/* that it was put off */
	const struct uv_attr *event_file;	/* an ioctl's choice for an object's events */
	struct stat fd_stat;
	/* what to take back when the answer doesn't arrive */
	struct uobj *made;
	struct uv_events *made_events;
	bool made_context;
	/* a second place to write to (MODIFY_SRQ) */
	uint64_t also_at;
	struct mminfo also;
};
/* Copy a request of `size` bytes at most that the struct has; the rest is 0. */
void uv_request(const struct uv_cmd *cmd, void *req, size_t size);
/* An extended request: -EOPNOTSUPP when what is beyond `size` isn't 0. */
int uv_request_ex(const struct uv_cmd *cmd, void *req, size_t size);
void uv_respond(struct uv_cmd *cmd, const void *resp, size_t size);
void uv_respond_driver(struct uv_cmd *cmd, const void *resp, size_t size);
/* The end of a command that makes obj: the maker's if err is 0, else freed. Returns err. */
int uv_made(struct uv_cmd *cmd, struct uobj *obj, int err);
/* DESTROY_QP and DESTROY_SRQ, whose requests and answers are alike. -ENOENT, -EBUSY. */
int uv_destroy_queue(struct uv_cmd *cmd, enum uobj_type type);
/* Run a command (the caller's, on its stack): what the request's operation returns. */
ssize_t uv_command(struct uv_cmd *cmd);
/* Helper: the number of the event file behind a client's descriptor. -EBADF, -EINVAL, -EPERM. */
int uv_event_file_of(const struct client *client, int64_t fd, uint64_t *id);
/* End one that waits by err; its helper, if any, goes on alone. */
void uv_give_up(struct uv_cmd *cmd, int err);

/* --- the ioctl (uverbs_ioctl.c) --- */

/* Helper: fetch the attributes, check them and make a request of them. 0 or -errno. */
int uv_call_fetch(struct uv_cmd *cmd);
int uv_call_run(struct uv_cmd *cmd);
/* Helper: write the answers. */
int uv_call_respond(struct uv_cmd *cmd);
void uv_call_free(struct uv_call *call);
ssize_t uverbs_ioctl(struct file *file, struct fs_req *req, unsigned int number, uint64_t arg,
		     const void *in, size_t in_len, void *out, size_t out_room, size_t *out_len);

struct uverbs_file {
	struct uverbs_file *prev, *next;	/* of fs->uverbs */
	struct file *file;
	struct client_id opener;
	struct ibfs_device *dev;	/* NULL: gone */
	char name[20];
	uint32_t node;			/* the front end's number of the file */
	bool context;
	struct uv_space *space;
	struct uv_events *async;	/* the first one; NULL: none */
	struct bell bell;		/* by which its QPs are rung */
	unsigned int doorbells;		/* that were written, since it was tried to have it rung */
	struct uv_cmd *cmds;		/* that wait */
	struct uobj **objs;		/* by handle */
	uint32_t num_objs;
};

static inline const struct verbs_ops *uv_verbs(const struct uverbs_file *uf)
{
	return uf->dev->ops->verbs;
}

/* --- commands' functions, by file --- */

int uv_get_context(struct uv_cmd *cmd);
void uv_prep_rings(struct uv_cmd *cmd);
int uv_rings(struct uv_cmd *cmd);
int uv_query_device(struct uv_cmd *cmd);
int uv_ex_query_device(struct uv_cmd *cmd);
int uv_query_port(struct uv_cmd *cmd);

int uv_alloc_pd(struct uv_cmd *cmd);
int uv_dealloc_pd(struct uv_cmd *cmd);
void uv_prep_reg_mr(struct uv_cmd *cmd);
int uv_reg_mr(struct uv_cmd *cmd);
void uv_prep_rereg_mr(struct uv_cmd *cmd);
int uv_rereg_mr(struct uv_cmd *cmd);
int uv_dereg_mr(struct uv_cmd *cmd);
int uv_alloc_mw(struct uv_cmd *cmd);
int uv_dealloc_mw(struct uv_cmd *cmd);
int uv_create_ah(struct uv_cmd *cmd);
int uv_destroy_ah(struct uv_cmd *cmd);
void uv_prep_open_xrcd(struct uv_cmd *cmd);
int uv_open_xrcd(struct uv_cmd *cmd);
int uv_close_xrcd(struct uv_cmd *cmd);
void uv_xrcd_put(struct fs *fs, struct uv_xrcd *xrcd);

int uv_create_comp_channel(struct uv_cmd *cmd);
void uv_prep_create_cq(struct uv_cmd *cmd);
int uv_create_cq(struct uv_cmd *cmd);
void uv_prep_ex_create_cq(struct uv_cmd *cmd);
void uv_prep_resize_cq(struct uv_cmd *cmd);
int uv_ex_create_cq(struct uv_cmd *cmd);
int uv_resize_cq(struct uv_cmd *cmd);
int uv_ex_modify_cq(struct uv_cmd *cmd);
int uv_poll_cq(struct uv_cmd *cmd);
int uv_req_notify_cq(struct uv_cmd *cmd);
int uv_destroy_cq(struct uv_cmd *cmd);

int uv_create_srq(struct uv_cmd *cmd);
int uv_create_xsrq(struct uv_cmd *cmd);
int uv_modify_srq(struct uv_cmd *cmd);
int uv_query_srq(struct uv_cmd *cmd);
int uv_destroy_srq(struct uv_cmd *cmd);

int uv_create_qp(struct uv_cmd *cmd);
int uv_ex_create_qp(struct uv_cmd *cmd);
int uv_open_qp(struct uv_cmd *cmd);
int uv_query_qp(struct uv_cmd *cmd);
int uv_modify_qp(struct uv_cmd *cmd);
int uv_ex_modify_qp(struct uv_cmd *cmd);
int uv_destroy_qp(struct uv_cmd *cmd);
int uv_attach_mcast(struct uv_cmd *cmd);
int uv_detach_mcast(struct uv_cmd *cmd);

int uv_post_send(struct uv_cmd *cmd);
int uv_post_recv(struct uv_cmd *cmd);
int uv_post_srq_recv(struct uv_cmd *cmd);

/* uverbs_pd.c, uverbs_qp.c: an address as libibverbs has it, and back. */
void uv_ah_attr(const struct ib_uverbs_ah_attr *from, struct ibv_ah_attr *to);

/* As many requests as a ring for `num` has room for (it is a power of two, one slot empty). */
static inline uint32_t uv_ring_room(uint32_t num, uint32_t max)
{
	uint32_t room = 1;

	while (room < num && room < max)
		room = room << 1 | 1;
	return room < num || room > max ? num : room;
}

/* Where a ring is, for mmap(). */
void uv_mminfo(const struct ibfs_ring *ring, struct mminfo *info);
/* An object's asynchronous event, from the engine. */
void uv_obj_event(struct verbs_client *client, enum ibv_event_type event);

#endif
