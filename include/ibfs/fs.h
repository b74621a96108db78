/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree: what a path means and what its files do, for any front end (FUSE,
 * 9P). A path is a small value, not an object: its kind and the numbers of
 * whose it is, packed into 64 bits that serve as inode number and 9P qid.
 * Kinds stand in one table (tree.c). Front ends know requests and paths, and
 * no device.
 */
#ifndef IBFS_FS_H
#define IBFS_FS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <ibfs/account.h>
#include <ibfs/text.h>

struct client;
struct file;
struct fs_req;
struct ibfs;
struct ibfs_device;

/* Packed: kind:8 sub:8 port:8 dev:12 idx:28. The root is 1. */
struct path {
	uint8_t kind;		/* enum kind, tree.h */
	uint8_t sub;		/* which of a kind's family (counter, attribute) */
	uint8_t port;
	uint16_t dev;		/* device number */
	uint32_t idx;		/* table index, node or link index, object number */
};

uint64_t path_pack(struct path path);
struct path path_unpack(uint64_t ino);

/* Supplementary groups, shared by all who have them. Used in the loop only. */
struct fs_groups {
	unsigned int refs;
	unsigned int num;
	gid_t gid[];
};
struct fs_groups *fs_groups_new(unsigned int num);	/* gid[] to be filled; NULL: no memory */
struct fs_groups *fs_groups_get(struct fs_groups *groups);	/* also of NULL */
void fs_groups_put(struct fs_groups *groups);			/* also of NULL */
size_t fs_groups_size(const struct fs_groups *groups);		/* bytes; of NULL 0 */
/*
 * A thread's, while it surely waits in a request of its own, which says that its
 * file system's user and group are these. NULL: they can't be known, or the thread
 * has others (one of io_uring's may act with rights that are not its own).
 */
struct fs_groups *fs_groups_of(pid_t tid, uid_t uid, gid_t gid);

/* Whose rights count. groups NULL: not known, and none of them helps. */
struct fs_cred {
	uid_t uid;
	gid_t gid;
	struct fs_groups *groups;
	struct account *account;	/* who pays; NULL: the uid. Whoever has it holds it */
};

/* Root: may do what takes a capability in the kernel. */
bool fs_privileged(const struct fs_cred *cred);
bool fs_owns(const struct fs_cred *cred, uid_t owner);	/* or is root */

/*
 * The process that makes a request: for its memory, its limits, its network, and who
 * pays for the threads that wait for it. It says nothing of rights: a set-user-ID
 * program may have been made to write to a file that it didn't open.
 */
struct fs_caller {
	pid_t pid;		/* of the thread; 0 over 9P */
	uid_t uid;
	gid_t gid;
};

struct file;
/*
 * 0, or -EACCES: the pointers of uverbs' and rdma_cm's commands are in the memory of
 * who writes them, who therefore has to be the user that opened the file. Kernel:
 * ib_safe_file_access().
 */
int fs_same_user(const struct file *file, const struct fs_req *req);

/*
 * A request. The front end embeds it and fills the upper part. An operation
 * returns its result (0, bytes, or -errno) or FS_PENDING, after which whoever
 * holds the request answers with fs_reply() exactly once. A front end whose
 * client gave up calls fs_cancel(), which makes the holder let go of it and
 * answers it with -EINTR, or leaves it when its holder can't let go any more.
 */
#define FS_PENDING	(-4096)

struct fs_req {
	struct ibfs *ibfs;
	/*
	 * Whose rights the request has. fs_read(), fs_write() and fs_ioctl() set it to the
	 * file's opener, whoever calls; front ends to the caller in all other requests.
	 */
	struct fs_cred cred;
	struct fs_caller caller;
	struct client *client;		/* who is called back until the answer, fs/client.h; or NULL */
	void (*reply)(struct fs_req *req, ssize_t result, const void *data, size_t len);
	/* the holder's; cancel: false if it is too late, the answer is on its way */
	bool (*cancel)(struct fs_req *req);
	struct fs_req *prev, *next;
	struct file *file;
	size_t size;			/* of a pending read */
	off_t off;			/* and its offset, where the holder keeps that */
	void *priv;
	double began;			/* peer_mad.c's; the front end clears it */
};

void fs_reply(struct fs_req *req, ssize_t result, const void *data, size_t len);
void fs_cancel(struct fs_req *req);

/* An open file. Front ends make one by fs_open() and end it by fs_release(). */
struct file {
	struct ibfs *ibfs;
	struct path path;
	const struct file_ops *ops;
	unsigned int flags;		/* O_* ; O_NONBLOCK as of the last read or write */
	unsigned int hints;		/* FILE_* below, for the front end */
	int backing;			/* descriptor that mmap() maps, -1: none; ops' own */
	struct fs_cred opener;		/* the file holds its groups, its charge the account */
	struct charge charge;		/* the opener's; ops may take more on it */
	void *priv;			/* of ops */
	void *front;			/* of the front end (poll handle, fid) */
	void (*wake)(struct file *file);	/* front end's: readiness may have changed */
};

enum {
	FILE_STREAM	= 1 << 0,	/* no offset at all: umad, issm, event files */
	FILE_QUEUE	= 1 << 1,	/* direct, offset ignored, lseek allowed */
	FILE_LINES	= 1 << 2,	/* writes are lines of commands, done one after the other */
};

struct file_ops {
	ssize_t (*open)(struct file *file, struct fs_req *req);		/* 0, -errno, FS_PENDING */
	void (*release)(struct file *file);	/* also after a failed open */
	/* Fills buf and returns bytes; or FS_PENDING, keeping req (req->size = size). */
	ssize_t (*read)(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off);
	ssize_t (*write)(struct file *file, struct fs_req *req, const void *buf, size_t size, off_t off);
	unsigned int (*poll)(struct file *file);			/* POLLIN | ... now */
	/*
	 * arg is the caller's pointer, in what was copied in (a restricted
	 * ioctl's _IOC_SIZE), out out_room bytes for what goes back. *out_len is
	 * 0: set it to the bytes to copy back, which happens also when the result
	 * is an error. in and out don't overlap.
	 */
	ssize_t (*ioctl)(struct file *file, struct fs_req *req, unsigned int cmd, uint64_t arg,
			 const void *in, size_t in_len, void *out, size_t out_room,
			 size_t *out_len);
	/* Text files: print the whole content; take a whole write. Used when read/write are NULL. */
	int (*show)(struct ibfs *ibfs, struct path path, struct textbuf *out);
	/*
	 * Instead of show, where the content grows with the fabric or with what
	 * users have made: append the next lines, at most 4 KiB or a few us of work.
	 * 1: there is more, 0: that was the end, -errno. state is state_size bytes,
	 * all 0 at the start, and says where the next call goes on. It may be copied
	 * and used again. Between two calls anything may come and go: what is there
	 * all the time is printed once. The path is there.
	 */
	int (*show_more)(struct ibfs *ibfs, struct path path, void *state, struct textbuf *out);
	size_t state_size;
	bool lines;		/* FILE_LINES */
	ssize_t (*store)(struct file *file, struct fs_req *req, const char *text, size_t len);
};

/* Of all, len bytes, what a read of size bytes at off gets. -EINVAL: off is negative. */
ssize_t read_bytes(const void *all, size_t len, void *buf, size_t size, off_t off);

/*
 * What front ends call. Names are one component; ".." is known. Permissions
 * are checked by fs_access(), called by front ends that have no kernel to do
 * so. -ENOENT from all that take a path: what it names is gone.
 */
int fs_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child);
int fs_getattr(struct ibfs *ibfs, struct path path, struct stat *st);
enum { FS_SET_MODE = 1, FS_SET_UID = 2, FS_SET_GID = 4, FS_SET_SIZE = 8 };
/* May cred change *old to *st so? 0 or -EPERM. As the kernel's setattr_prepare(). */
int fs_may_set(const struct stat *old, const struct fs_cred *cred, const struct stat *st,
	       unsigned int mask);
int fs_setattr(struct ibfs *ibfs, struct path path, const struct fs_cred *cred,
	       const struct stat *st, unsigned int mask);	/* FS_SET_* */
/*
 * The directory's entries from *cookie on (0: the start), in a stable order,
 * without . and ..: fills name and child and moves *cookie; 1, or 0 at the
 * end, or -errno. Cookies stay below 2^62. A front end answers with no more
 * than FS_READDIR_SIZE bytes of entries at a time, so that others wait for some
 * hundreds of them at most.
 */
enum { FS_READDIR_SIZE = 16 << 10 };
int fs_readdir(struct ibfs *ibfs, struct path dir, uint64_t *cookie, char name[256],
	       struct path *child);
int fs_mkdir(struct ibfs *ibfs, struct path dir, const char *name, mode_t mode,
	     const struct fs_cred *cred, struct path *child);
int fs_rmdir(struct ibfs *ibfs, struct path dir, const char *name, const struct fs_cred *cred);
/* mask: R_OK, W_OK, X_OK; 0, -EACCES, -ENOENT. */
int fs_access(struct ibfs *ibfs, struct path path, const struct fs_cred *cred, int mask);
enum {
	FS_CACHE	= 1 << 0,	/* the entry lives as long as its directory: may be cached */
	FS_FRESH	= 1 << 1,	/* each lookup wants its own file: idx is the front end's */
	FS_PROCESS	= 1 << 2,	/* of no use without the caller's process or its mmap() */
	FS_ACTS		= 1 << 3,	/* to open it changes something */
	FS_ASKS		= 1 << 4,	/* a directory whose content others have: fs_ready() */
	FS_GROUPS	= 1 << 5,	/* what is written names other files: opener.groups count */
};
unsigned int fs_flags(struct path path);
/*
 * To be called before fs_lookup() and fs_readdir() in a directory with FS_ASKS: 0,
 * -errno, or FS_PENDING. After that, when the request is answered with 0, the
 * front end begins again, with the same request and with this call.
 */
ssize_t fs_ready(struct fs_req *req, struct path dir);
mode_t fs_type(struct path path);	/* S_IFDIR or S_IFREG */

/*
 * 0 or FS_PENDING (then fs_reply(0 or -errno)): *file is made at once in both
 * cases, and freed by fs_release() also after a failed open. No file: NULL.
 */
ssize_t fs_open(struct fs_req *req, struct path path, unsigned int flags, struct file **file);
ssize_t fs_read(struct fs_req *req, struct file *file, void *buf, size_t size, off_t off);
ssize_t fs_write(struct fs_req *req, struct file *file, const void *buf, size_t size, off_t off);
ssize_t fs_ioctl(struct fs_req *req, struct file *file, unsigned int cmd, uint64_t arg,
		 const void *in, size_t in_len, void *out, size_t out_room, size_t *out_len);
unsigned int fs_poll(struct file *file);
void fs_release(struct file *file);
/* Tell the front end that the file's readiness may have changed. */
void fs_wake(struct file *file);

/*
 * Requests that wait for the same thing, first come first served. waitq_add()
 * returns FS_PENDING; fs_cancel() takes the request out again.
 */
struct waitq {
	struct fs_req *head;
};
ssize_t waitq_add(struct waitq *q, struct fs_req *req);
/* The first one, taken out, for the caller to answer; NULL: none. */
struct fs_req *waitq_take(struct waitq *q);
/* Answer all that wait with err (a negative errno). */
void waitq_fail(struct waitq *q, int err);

/*
 * Work that may sleep for ever (process_vm_*, /proc of a client): run() on a
 * helper thread of that client, one job after the other, then done() back in
 * the event loop. A job can't be stopped, only disowned. At most
 * OFFLOAD_THREADS of a user's clients have a thread at a time, further ones
 * wait for one; -EAGAIN when too many wait. A quick job, which sleeps only when
 * somebody makes it, is run inline by the thread that runs the loop, if that is in
 * offload_run_loop(); when it sleeps another thread runs the loop from then on.
 */
struct job {
	struct job *prev, *next;
	struct ibfs *ibfs;
	pid_t pid;				/* the client, or OFFLOAD_GIVES_BACK */
	uid_t uid;				/* the user whose threads it takes */
	void (*run)(struct job *job);		/* on the helper thread */
	void (*done)(struct job *job);		/* in the loop; frees the job */
	void (*disowned)(struct job *job);	/* instead of done, after offload_disown() */
	bool quick;				/* run() takes microseconds, and may run anywhere */
	bool orphan;				/* offload.c's */
	bool away;				/* quick.c's */
};
enum { OFFLOAD_THREADS = 64, OFFLOAD_WAITING = 4096 };
/*
 * In place of a client: the job gives back what one had (munmap(2), close(2)), which
 * may be much, and waits for nobody. A user has a thread more for such jobs.
 */
enum { OFFLOAD_GIVES_BACK = -1 };
int offload(struct job *job);
/* The same, not inline, and however many wait: 0, or -ENOMEM. */
int offload_always(struct job *job);
/* Afterwards a job that hasn't begun never runs; one that has goes on, alone. */
void offload_disown(struct job *job);
/*
 * Run the event loop until loop_end(), or until nothing is left to wait for. When
 * the calling thread is stuck in a quick job at that time, the thread that runs the
 * loop calls ibfs->leave() instead; without that it waits here.
 */
void offload_run_loop(struct ibfs *ibfs);
/* The daemon ends: jobs end by disowned(), except one that is stuck. */
void offload_exit(struct ibfs *ibfs);

/*
 * Devices come and go, for backend/device.c: after it was linked into
 * ibfs->devices, and before it leaves (open files of it fail from here on).
 */
int fs_device_added(struct ibfs_device *dev);		/* -ENOMEM */
void fs_device_removed(struct ibfs_device *dev);
/* An event of a port, for those who hold the device open. */
void uverbs_device_event(struct ibfs_device *dev, unsigned int port, enum ibv_event_type event);
void ucma_port_event(struct ibfs_device *dev, unsigned int port, enum ibv_event_type event);

/*
 * Start and stop. fuse.c: mounts and joins the loop, or returns NULL after a line
 * on stderr (libfuse's own) that says why not; stopping unmounts.
 */
int fs_init(struct ibfs *ibfs);
void fs_exit(struct ibfs *ibfs);
/* Is a uverbs file open? */
bool fs_verbs_in_use(const struct ibfs *ibfs);
struct fuse_front;
struct fuse_front *fuse_front_start(struct ibfs *ibfs, const char *mountpoint, const char *options);
void fuse_front_stop(struct fuse_front *front);

/*
 * 9P. An address is "unix:PATH" or "tcp:HOST:PORT"; p9_check_address() gives
 * NULL, or in words what is wrong with one. p9_start() listens on those given and
 * on the configuration's; NULL after a line in the log that says why not.
 */
struct p9_server;
const char *p9_check_address(const char *address);
struct p9_server *p9_start(struct ibfs *ibfs, const char *const *addresses, unsigned int count);
void p9_stop(struct p9_server *server);

#endif
