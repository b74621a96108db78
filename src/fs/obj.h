/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verbs' objects as directories: pd/ mr/ mw/ cq/ srq/ qp/ ah/ xrcd/ mcast/.
 * obj.c makes and ends them, objdir.c has their directories, obj_files.c the files
 * that all kinds share; what a kind can do stands in its own file (obj_mem.c,
 * obj_cq.c, obj_qp.c, ...) as a table of commands. Works on a backend's verbs_ops;
 * knows no packet.
 */
#ifndef IBFS_FS_OBJ_H
#define IBFS_FS_OBJ_H

#include <uthash.h>

#include <ibfs/memory.h>
#include <ibfs/verbs.h>

#include "fs/rows.h"

/* In the order of dependence: each refers to kinds before it only. */
enum obj_kind {
	OBJ_PD, OBJ_XRCD, OBJ_CQ, OBJ_MR, OBJ_MW, OBJ_SRQ, OBJ_AH, OBJ_QP, OBJ_MCAST, OBJ_KINDS,
};

/* A kind as an account has it. */
static inline enum account_item obj_item(enum obj_kind kind)
{
	_Static_assert(ACCOUNT_MCAST - ACCOUNT_PD == OBJ_MCAST - OBJ_PD, "one order");
	return ACCOUNT_PD + kind;
}

/* path.port of a KIND_OBJ_FILE: which file. */
enum obj_file {
	OBJ_CTL, OBJ_STATUS, OBJ_EVENTS, OBJ_DATA, OBJ_LKEY, OBJ_RKEY, OBJ_WC, OBJ_RING, OBJ_LIMIT,
	OBJ_POST, OBJ_QPN, OBJ_SQ, OBJ_RQ, OBJ_SEND, OBJ_RECV,
};

#define OBJ_EVENTS_KEPT 64

struct message;

struct obj {
	struct verbs_client client;	/* first */
	struct ibfs *ibfs;
	enum obj_kind kind;
	uint32_t num;			/* never used again for its kind */
	char *name;			/* NULL: made by clone, lives as long as an open file */
	uid_t uid;
	gid_t gid;
	mode_t mode;			/* of its files */
	unsigned int open;		/* files */
	bool removed;			/* no path leads to it any more */
	bool doomed;			/* goes as soon as nothing depends on it */
	struct obj *prev, *next;	/* of the doomed */
	UT_hash_handle hh;		/* by name */
	char reason[200];		/* of the last command that was refused */

	struct ibfs_device *dev;	/* NULL until create, and when it has gone */
	bool gone;			/* its device has */
	const struct verbs_ops *ops;
	union {				/* by kind */
		void *made;
		struct ibfs_pd *pd;
		struct ibfs_xrcd *xrcd;
		struct ibfs_cq *cq;
		struct ibfs_mr *mr;
		struct ibfs_mw *mw;
		struct ibfs_srq *srq;
		struct ibfs_ah *ah;
		struct ibfs_qp *qp;
		struct obj *member;	/* MCAST: whose QP is attached */
	};
	struct memory *mem;		/* MR */
	struct charge charge;		/* its maker's: that it is there */
	struct charge contents;		/* its owner's: obj_pay.c */
	union ibv_gid gid_value;	/* MCAST */
	uint16_t lid_value;
	struct { uint32_t dev, key; } qpn_key;	/* QP */
	UT_hash_handle hh_qpn;
	struct message *sends, *recv_buf;	/* QP: obj_msg.c, as are these: */
	bool recv_posted, recv_filled, recv_failed;
	uint32_t recv_len;
	struct waitq recv_readers;
	struct task ended;
	uint64_t next_wr;		/* QP, SRQ: the next request's wr_id unless given */
	struct obj_reader *readers;	/* open `wc` or `events` files */
	char *events[OBJ_EVENTS_KEPT];	/* a ring of what nobody has read yet */
	unsigned int event_head, event_count;
};

struct objs {
	struct obj **list[OBJ_KINDS];	/* in order of their number */
	uint32_t count[OBJ_KINDS], room[OBJ_KINDS], next[OBJ_KINDS];
	struct obj *names[OBJ_KINDS];
	struct obj *qpns;
	struct obj *doomed;
};

/* A command's arguments, each fetched once; the first error stays in err. */
struct args {
	struct obj *obj;
	const struct fs_req *req;
	struct ctl_line *line;
	uint64_t used;			/* bit per word */
	int err;
	const struct obj *first;	/* whose device the command's object was given */
	const char *first_key;
};

struct command {
	const char *name;
	int (*run)(struct args *args);
	bool before;			/* may come before create, and only then */
};

struct obj_ops {
	const char *name;		/* of the directory */
	const struct entry *entries;
	const struct command *commands;
	void (*status)(struct obj *obj, struct textbuf *out);
	int (*destroy)(struct obj *obj);	/* -EBUSY: others depend on it */
};
extern const struct obj_ops pd_obj, xrcd_obj, cq_obj, mr_obj, mw_obj, srq_obj, ah_obj, qp_obj,
			    mcast_obj;

/* A command of an object begins: what fails from now on is its failure. */
void obj_begins(const struct ibfs *ibfs);
/* Why a command was refused: to the object's status and to `errors`; -err. */
int obj_fail(struct obj *obj, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
struct obj *path_obj(struct ibfs *ibfs, struct path path);
/* "a" or its number, for messages and for other objects' status. */
const char *obj_label(const struct obj *obj, char buf[32]);
/* By what tells a device's QPs apart: their number, of QP0 and QP1 with the port's on top. */
static inline uint32_t obj_qpn_key(uint32_t qpn, uint8_t port)
{
	return qpn > 1 ? qpn : qpn | (uint32_t)port << 24;
}
struct obj *obj_by_qpn(struct ibfs *ibfs, const struct ibfs_device *dev, uint32_t key);
void obj_qpn_add(struct obj *obj, uint32_t key);
static inline uint32_t obj_qpn(const struct obj *qp)
{
	return qp->qpn_key.key & 0xffffff;
}
void obj_event(struct obj *obj, const char *event);	/* a line of its `events` */
void obj_client(struct obj *obj);	/* set up obj->client */

/* Arguments: key=value, or a word alone. */
const char *arg_text(struct args *args, const char *key);
bool arg_word(struct args *args, const char *word);
uint64_t arg_num(struct args *args, const char *key, uint64_t max, uint64_t unset);
uint64_t arg_size(struct args *args, const char *key, uint64_t max, uint64_t unset);
unsigned int arg_access(struct args *args, const char *key, unsigned int unset);
bool arg_gid(struct args *args, const char *key, union ibv_gid *gid);
/*
 * An object of a kind that exists, that the file's opener may use, and that is of the
 * device of the command's object; that of one that is being created is the first
 * one's that is named. required: NULL is an error.
 */
struct obj *arg_obj(struct args *args, const char *key, enum obj_kind kind, bool required);
/* A QP of any device that the command's can reach, or NULL. */
struct obj *arg_peer(struct args *args, const char *key);
void arg_error(struct args *args, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* No words are left over, nothing went wrong: 0. */
int args_end(struct args *args);
int args_device(struct args *args);	/* device=NAME into obj->dev and ops */
void obj_unmake(struct obj *obj);	/* create failed after all */
void access_print(struct textbuf *out, unsigned int access);
/* obj_queue.c: lid= sl= gid= ... of a path, those not given stay. */
void args_av(struct args *args, struct ibv_ah_attr *attr);
void av_print(struct textbuf *out, const char *prefix, const struct ibv_ah_attr *attr);

/* obj_msg.c: send and recv. */
ssize_t msg_write(struct obj *qp, const struct fs_req *req, const void *buf, size_t size);
ssize_t msg_read(struct obj *qp, struct file *file, struct fs_req *req, void *buf, size_t size);
unsigned int msg_poll(const struct obj *qp);
void msg_free(struct obj *qp);		/* the QP went: what was under way is dropped */

/* obj_post.c: a work request as text. */
int obj_post_line(struct args *args);

/*
 * obj_pay.c: who pays for what an object holds, from its making to its end. -ENOMEM;
 * -EDQUOT, told in `errors`.
 */
int obj_pay_begin(struct obj *obj);
int obj_pay(struct verbs_client *client, const struct verbs_cost *cost);
void obj_refund(struct verbs_client *client, const struct verbs_cost *cost);
/* Memory of the daemon's. NULL and *err: -ENOMEM is also more than who asks may lock. */
struct memory *obj_memory(const struct obj *obj, const struct fs_req *req, uint64_t size, int *err);
int pinned_show(struct ibfs *ibfs, struct textbuf *out);

/* obj_files.c: queues of lines that objects have, taken by whoever reads first. */
struct obj_reader {
	struct lineq q;			/* first */
	struct obj_reader *prev, *next;
	struct obj *obj;
	enum obj_file which;
	char line[256];
};
void obj_wake(struct obj *obj, enum obj_file which);

/* Of a kind, the one of that number or the next, in the order of their numbers; or NULL. */
struct obj *obj_from(const struct ibfs *ibfs, enum obj_kind kind, uint64_t num);
/* One that has a name goes, unless others depend on it: 0 or -errno. */
int obj_remove(struct obj *obj);
int objs_init(struct ibfs *ibfs);
void objs_exit(struct ibfs *ibfs);
void objs_device_gone(struct ibfs_device *dev);
extern const struct obj_ops *const obj_kinds[OBJ_KINDS];
/* Open files count; the last of a cloned object ends it. */
void obj_get(struct obj *obj);
void obj_put(struct obj *obj);
/* -ENOMEM, -EDQUOT */
int obj_new(struct ibfs *ibfs, enum obj_kind kind, const char *name, const struct fs_cred *cred,
	    mode_t mode, struct obj **new_obj);
ssize_t obj_ctl(struct obj *obj, const struct fs_req *req, const char *text, size_t len,
		enum obj_file which);

#endif
