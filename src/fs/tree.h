/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree's table: one row for each kind of file or directory, one generator
 * for each directory whose entries come and go. tree.c holds the table and
 * walks it; the rows' functions stand in the file of what they show.
 *
 * To add a directory: its kinds here, their rows in tree.c, and its struct
 * entry list (what is always in it) or struct dir_ops (what comes and goes),
 * or both, in its own file.
 */
#ifndef IBFS_FS_TREE_H
#define IBFS_FS_TREE_H

#include <time.h>

#include <ibfs/backend.h>
#include <ibfs/fs.h>
#include <ibfs/ibfs.h>

/* At most 255. The order is that of the tree; numbers are not kept anywhere. */
enum kind {
	KIND_NONE, KIND_ROOT,
	KIND_ROOT_TEXT, KIND_ERRORS, KIND_METRICS, KIND_EVENTS,
	/* devices: <dev>/, <dev>/<port>/ */
	KIND_DEV, KIND_DEV_TEXT, KIND_DEV_SET, KIND_DEV_CTL, KIND_DEV_EVENTS, KIND_DEV_QUERY,
	KIND_PORT, KIND_PORT_TEXT, KIND_PORT_CTL, KIND_PORT_PCAP, KIND_UMAD, KIND_ISSM,
	KIND_MADS, KIND_MAD_CLONE, KIND_MAD, KIND_MAD_CTL, KIND_MAD_DATA, KIND_MAD_STATUS,
	KIND_GIDS, KIND_GID, KIND_PKEYS, KIND_PKEY,
	KIND_IPOIBS, KIND_IPOIB_CLONE, KIND_IPOIB, KIND_IPOIB_CTL, KIND_IPOIB_TEXT,
	KIND_IPOIB_TABLE, KIND_IPOIB_FRAME, KIND_IPOIB_EVENTS, KIND_IPOIB_STATS, KIND_IPOIB_STAT,
	KIND_GID_ATTRS, KIND_GID_TYPES, KIND_GID_TYPE, KIND_GID_NDEVS, KIND_GID_NDEV,
	KIND_COUNTERS, KIND_COUNTER, KIND_HW_COUNTERS, KIND_HW_COUNTER,
	/* the far node */
	KIND_PEER, KIND_PEER_TEXT, KIND_PEER_PORTS, KIND_PEER_PORT, KIND_PEER_PORT_TEXT,
	KIND_PEER_COUNTERS, KIND_PEER_COUNTER,
	/* verbs' objects: pd/, pd/NAME/, ... */
	KIND_OBJS, KIND_OBJ, KIND_OBJ_FILE, KIND_OBJ_CLONE,
	/* fabric/ */
	KIND_FABRIC, KIND_TOPOLOGY, KIND_FABRIC_CTL,
	KIND_SWITCHES, KIND_NODES, KIND_SWITCH, KIND_NODE, KIND_NODE_TEXT, KIND_NODE_LFT,
	KIND_NODE_MFT, KIND_NODE_CTL,
	KIND_NODE_PORTS, KIND_NODE_PORT, KIND_NODE_PORT_TEXT, KIND_NODE_PCAP,
	KIND_NODE_COUNTERS, KIND_NODE_COUNTER,
	KIND_LINKS, KIND_LINK, KIND_LINK_TEXT, KIND_LINK_CTL,
	/* dev/, sys/class/ */
	KIND_DEVDIR, KIND_DEVDIR_IB, KIND_DEVDIR_EV, KIND_UMAD_RING, KIND_UVERBS, KIND_UVERBS_EVENTS,
	KIND_SYS, KIND_SYS_CLASS, KIND_SYS_IB, KIND_SYS_MAD, KIND_SYS_TEXT,
	KIND_SYS_DEV, KIND_SYS_DEVICE, KIND_SYS_DEVICE_TEXT, KIND_SYS_NETS, KIND_SYS_NET,
	KIND_SYS_PORTS, KIND_SYS_PORT, KIND_SYS_GIDS, KIND_SYS_PKEYS,
	KIND_SYS_GID_ATTRS, KIND_SYS_GID_TYPES, KIND_SYS_GID_NDEVS,
	KIND_SYS_COUNTERS, KIND_SYS_HW_COUNTERS,
	KIND_SYS_UMAD, KIND_SYS_ISSM, KIND_SYS_UMAD_TEXT,
	KIND_SYS_VERBS, KIND_SYS_VERBS_ABI, KIND_SYS_UVERBS, KIND_SYS_UVERBS_TEXT,
	KIND_SYS_UVERBS_DEVICE,
	KIND_UCMA, KIND_SYS_MISC, KIND_SYS_UCMA, KIND_SYS_UCMA_TEXT,
	/* what a 9P attach to "ctl" finds */
	KIND_P9_CTL, KIND_P9_NULL, KIND_P9_ZERO,
	KIND_MAX,
};

/* What of a struct path tells one file of a kind from another, and whether it is there. */
enum {
	BY_DEV		= 1 << 0,	/* dev: a device's number */
	BY_PORT		= 1 << 1,
	BY_NODE		= 1 << 2,	/* idx: a node's index in the fabric */
	BY_LINK		= 1 << 3,	/* idx: a link's */
	BY_IDX		= 1 << 4,	/* idx: the row's own meaning */
	BY_SUB		= 1 << 5,
	BY_OBJ		= 1 << 6,	/* sub, idx: an object's kind and number */
	BY_OBJ_KIND	= 1 << 7,	/* sub: that of its directory */
};

/* An entry that is always in its directory; the list ends with a NULL name. */
struct entry {
	const char *name;
	uint8_t kind, sub;
};

/* Entries that come and go. path fields that the child shares are in *child already. */
struct dir_ops {
	int (*lookup)(struct ibfs *ibfs, struct path dir, const char *name, struct path *child);
	/*
	 * The first entry at or after *pos (0: the start; below 2^56): fills name
	 * and child, moves *pos behind it and returns 1; 0 at the end; -errno.
	 * O(1) amortized; what is added or removed meanwhile moves nothing else.
	 */
	int (*next)(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		    struct path *child);
	int (*mkdir)(struct ibfs *ibfs, struct path dir, const char *name, mode_t mode,
		     const struct fs_cred *cred, struct path *child);
	int (*rmdir)(struct ibfs *ibfs, struct path dir, const char *name,
		     const struct fs_cred *cred);
};

struct kind_row {
	mode_t mode;			/* S_IFDIR or S_IFREG and permissions */
	uint8_t parent;			/* of a directory: its directory's kind */
	uint8_t by;			/* BY_* */
	uint8_t flags;			/* FS_* and ROW_* */
	const struct entry *entries;
	const struct dir_ops *dir;
	const struct file_ops *ops;
	/* What the row can't tell (owner, size, or that it is gone): adjusts *st; 0 or -errno. */
	int (*getattr)(struct ibfs *ibfs, struct path path, struct stat *st);
	/* Instead of the table of overrides; permission was checked. NULL: see ROW_CHMOD. */
	int (*setattr)(struct ibfs *ibfs, struct path path, const struct fs_cred *cred,
		       const struct stat *st, unsigned int mask);
	/* See fs_ready(), for a directory with FS_ASKS. */
	ssize_t (*ready)(struct fs_req *req, struct path path);
	/* The directory of a directory, where its numbers don't tell. */
	struct path (*up)(struct ibfs *ibfs, struct path dir);
	const struct entry *also;	/* behind entries, where directories share some */
};
enum {
	ROW_LONG	= 1 << 6,	/* of no certain size: 0, as in /proc, so that tail(1) reads on */
	ROW_CHMOD	= 1 << 7,	/* mode and owner can be changed, and are kept by fs.c */
};

extern const struct kind_row kinds[KIND_MAX];

/* A file's mode and owner that were changed by hand. */
struct objs;
struct override;
struct mad;
struct node;
struct pcap;
struct peers;
struct text_file;
struct works;

/* fs' part of the daemon. */
struct fs {
	struct ibfs *ibfs;
	struct override *overrides;
	struct umad_slot {		/* by the number in umadN: whose it is */
		bool used;
		uint16_t dev;
		uint8_t port;
	} *umads;
	unsigned int num_umads;
	struct timespec start;		/* every file's time */
	uid_t uid;			/* the daemon's: every file's owner */
	gid_t gid;
	struct ring *rings;		/* umad_ring.c: whose files nobody opened yet */
	struct ring *hot;		/* umad_send.c: whose bells are heard */
	uint32_t next_ev;		/* the last number given in dev/infiniband/ev */
	struct uverbs_file *uverbs;	/* open */
	struct uv_events *uv_events;
	struct uv_pin *uv_pins;
	struct uv_xrcd *uv_xrcds;
	struct uverbs_slot {		/* by the number in uverbsN */
		bool used;
		uint16_t dev;
	} *uverbs_slots;
	unsigned int num_uverbs;
	struct ucma_file *ucmas;	/* open */
	struct ucma_id *ucma_ids;	/* by number */
	uint32_t next_ucma;
	struct ucma_mc *ucma_mcs;	/* joins, by number */
	uint32_t next_ucma_mc;
	struct ucma_listener *ucma_listeners;
	unsigned int ucma_listening;	/* ids */
	struct works *works;
	struct text_file *windows;	/* of long texts, the one used last first */
	unsigned int num_windows;
	unsigned int open_files;
	uint64_t requests;		/* that front ends passed on */
	struct task refresh;		/* of a static subnet, after a change by hand */
	struct mad *mads;		/* by number, which begins at 1 */
	unsigned int next_mad;
	struct pcap *pcaps;		/* captures that run */
	struct peers *peers;		/* far nodes, peer.h; NULL: none was looked at */
	uint64_t pcap_dropped;		/* packets that found no room */
	struct accounts *accounts;
	struct objs *objs;		/* verbs' objects, obj.h */
	uint64_t failed_before;		/* ibfs->failed.count as an object's command began */
};

/* Is what the path names there (device, port, node, link)? 0 or -ENOENT. */
int path_check(struct ibfs *ibfs, struct path path);

/* fs' part of a port of a device, dev->ports[port]. */
struct ib_port_state {
	unsigned int umad;		/* the number in umadN and issmN */
	struct file *issm;		/* who holds it */
	struct waitq issm_waiters;
	void *umads;			/* umad.c: open files of this port */
};

/* umad_send.c: what clients left in their rings comes before what they ask of any file. */
void umad_sends_run(struct ibfs *ibfs);

/* umad.c, issm.c */
extern const struct file_ops umad_ops, issm_ops;
/* The device goes: its open files fail from here on, what waits is answered. */
void umad_device_gone(struct ibfs_device *dev, unsigned int port);
void issm_device_gone(struct ibfs_device *dev, unsigned int port);

/* The device that a path names, or NULL when it is gone. */
struct ibfs_device *path_device(struct ibfs *ibfs, struct path path);

/*
 * text.c. A queue of lines behind a file: at most one line per read, the rest
 * of a line that a short read left stays here. next gives the line to come
 * (no newline; valid until the next call), or NULL: none now.
 */
struct lineq {
	struct file *file;
	const char *(*next)(struct lineq *q);
	/* Would next() give a line? NULL: lines are this reader's alone, so just take it. */
	bool (*ready)(struct lineq *q);
	struct waitq readers;
	char *rest;
	size_t rest_len, rest_off;
};
ssize_t lineq_read(struct lineq *q, struct fs_req *req, void *buf, size_t size);
unsigned int lineq_poll(struct lineq *q);
void lineq_wake(struct lineq *q);		/* a line came: answers who waits */
void lineq_fail(struct lineq *q, int err);
void lineq_free(struct lineq *q);		/* not q itself */

/*
 * A ctl file's write, cut into lines, each into words at white space (words
 * longer than the write's own text don't exist; '#' has no meaning). Empty
 * lines are skipped. When line k > 1 fails, the bytes before it are returned.
 */
#define CTL_WORDS 64
struct ctl_line {
	unsigned int argc;
	char *argv[CTL_WORDS];
};
ssize_t ctl_write(struct ibfs *ibfs, const char *text, size_t len,
		  int (*run)(void *ctx, struct ctl_line *line), void *ctx);
/* "key=value" -> value when arg has this key, else NULL. */
const char *ctl_value(const char *arg, const char *key);
/* Numbers: decimal or 0x, all of the text; sizes accept K, M, G. 0 or -EINVAL. */
int parse_u64(const char *text, uint64_t max, uint64_t *value);
int parse_size(const char *text, uint64_t max, uint64_t *value);
/* The number that a directory entry's name is: decimal, no leading zero. */
int number_name(const char *name, uint64_t max, uint64_t *value);

#endif
