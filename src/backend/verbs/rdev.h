/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs backend: devices of the system, through libibverbs, libibumad and
 * sysfs. What the files of this directory share:
 *  rdevs.c	all of them: notes from threads, scans, who comes and goes
 *  scan.c	what the system has, looked up and opened on a thread
 *  hand.c	a thread that makes calls which may block
 *  waiter.c	a thread that waits for descriptors
 *  rdev.c	a device: its life and its asynchronous events
 *  attr.c	attributes and counters
 *  pma.c	counters by MAD
 *  mad.c	MAD agents, relayed one to one
 *  rverbs.h	and those that it names: the verbs
 *
 * Any call to the system may block for ever when a driver (or the daemon behind
 * a file of another ibfs) hangs, poll() included. So the event loop makes none:
 * a device's calls run on its hand, for CALL_MS at most, and a device whose hand
 * is stuck is taken for dead. What comes by itself is waited for and read by its
 * waiter. Threads tell the loop by notes.
 */
#ifndef IBFS_BACKEND_RDEV_H
#define IBFS_BACKEND_RDEV_H

#include <ev.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ibfs/backend.h"
#include "ibfs/ibfs.h"

#define SYSFS_IB	"/sys/class/infiniband"

enum {
	CALL_MS		= 2000,		/* what a call may take */
	START_MS	= 5000,		/* what the first scan may */
	SCAN_SECONDS	= 1,
	HW_COUNTERS	= 128,
};

struct hand;
struct robj;
struct rdevs;
struct verbs;
struct waiter;

/* From a thread to the loop. fn frees it; one that comes too late is only free()d. */
struct note {
	struct note *prev, *next;
	struct rdevs *rdevs;
	void (*fn)(struct note *note);
};
void note_send(struct rdevs *rdevs, struct note *note);
struct ibfs *note_ibfs(const struct note *note);
struct ibfs *rdevs_ibfs(const struct rdevs *rdevs);	/* the loop's only */
/* Whoever may send notes holds a reference; the loop's ends with rdevs_stop(). */
struct rdevs *rdevs_get(struct rdevs *rdevs);
void rdevs_put(struct rdevs *rdevs);

/* A detached thread that takes no signals: 0, -errno. */
int thread_start(void *(*fn)(void *arg), void *arg);

/* hand.c. fn gets a copy of arg, and what it leaves there is copied back. */
struct hand *hand_new(struct rdevs *rdevs);
/*
 * 0 after fn ran; -EIO: it didn't, or has not come back in time: hand_stuck() from
 * now on. When it comes back later, undo (unless NULL) takes back what fn did.
 */
int hand_call(struct hand *hand, void (*fn)(void *arg), void (*undo)(void *arg), void *arg,
	      size_t size, unsigned int ms);
/* Don't wait for it. */
int hand_post(struct hand *hand, void (*fn)(void *arg), const void *arg, size_t size);
bool hand_stuck(struct hand *hand);
/* The thread ends after the calls that are queued. */
void hand_free(struct hand *hand);

/* waiter.c. A descriptor that is waited for; the waiter's from watch_add() on. */
struct watch {
	struct watch *prev, *next;
	int fd;
	bool dead;			/* under the waiter's lock */
	bool quiet;			/* the thread's: nothing more will come */
	bool (*ready)(struct watch *watch);	/* on the thread; false: don't call again */
	void (*free)(struct watch *watch);	/* on the thread, after watch_del() */
};
struct waiter *waiter_new(struct rdevs *rdevs);
void watch_add(struct waiter *waiter, struct watch *watch);
void watch_del(struct waiter *waiter, struct watch *watch);
/* What is still watched is freed. */
void waiter_free(struct waiter *waiter);

/* scan.c: a device that was found and opened, its text as sysfs has it. */
struct found {
	struct found *prev, *next;
	char name[64];			/* of the system */
	struct ibv_context *ctx;	/* NULL: management only */
	struct ibv_comp_channel *channel;	/* with ctx */
	enum ibv_node_type node_type;
	uint64_t node_guid, sys_image_guid;
	char node_desc[65], fw_ver[64], hca_type[64], board_id[64];
	uint32_t hw_rev;
	unsigned int first_port, num_ports;
	char **hw_counters;		/* NULL at the end; NULL: none */
};

/* A scan: names that the loop knows in, what is new and what has gone out. */
struct scan {
	struct note note;		/* first */
	bool all;			/* else the names of want */
	char (*want)[64];
	unsigned int num_want;
	struct known {
		char name[64];
		bool there;
		char node_desc[65];	/* now */
	} *known;
	unsigned int num_known;
	struct found *found;
	char why[160];			/* nothing was found: in words */
};
void scan_run(struct scan *scan);	/* on a thread */
void scan_free(struct scan *scan);
void found_free(struct found *found);	/* its context is somebody's now, or NULL */
/* A line of a file below SYSFS_IB without its newline; -errno. */
int sysfs_read(char *buf, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A device in the tree. */
struct rdev {
	struct ibfs_device dev;		/* first */
	struct backend_ops ops;		/* the backend's, with its own hw_counters */
	struct rdevs *rdevs;
	struct rdev *prev, *next;
	char system[64];		/* its name in SYSFS_IB */
	char **hw_counters;
	struct ibv_context *ctx;
	struct hand *hand;
	struct waiter *waiter;
	struct watch *async;
	bool lost;			/* it is about to be removed */
	struct mad_agent *agents;	/* mad.c */
	uint32_t next_agent, next_ah, next_own_id;
	uint64_t own_ids;		/* rcqe.c: what they begin with; 0: there were none */
	struct issm *issms;
	struct ibv_comp_channel *channel;
	struct robj **objs;		/* rverbs.h: a list a kind */
	struct verbs *soft;		/* rcq.c */
};
extern const struct backend_ops rdev_ops;

static inline struct rdev *rdev_of(struct ibfs_device *dev)
{
	return (struct rdev *)dev;
}

/* Make found a device of the tree, by this name; found is used up. */
int rdev_add(struct rdevs *rdevs, const char *name, struct found *found);
/* A call on its hand: -EIO when it is stuck, after which the device goes. */
int rdev_call(struct rdev *rdev, void (*fn)(void *arg), void *arg, size_t size);
/* One that may take ms more; what it made when it is too late is taken back by undo, or NULL. */
int rdev_call_long(struct rdev *rdev, void (*fn)(void *arg), void (*undo)(void *arg), void *arg,
		   size_t size, unsigned int ms);
/* From a thread: it doesn't answer any more. */
void rdev_note_lost(struct rdevs *rdevs, unsigned int num);
/* A device of this backend by its number, or NULL: it has gone. */
struct rdev *rdev_get(struct ibfs *ibfs, unsigned int num);
void rdevs_forget(struct rdev *rdev);	/* rdevs.c: it has left the tree */
void rdevs_link(struct rdev *rdev);
void rdev_lost(struct rdev *rdev);	/* remove it from the loop */

/* attr.c */
int rdev_query_device(struct ibfs_device *dev, struct ibv_device_attr_ex *attr);
int rdev_query_port(struct ibfs_device *dev, unsigned int port, struct ibv_port_attr *attr);
int rdev_query_gid(struct ibfs_device *dev, unsigned int port, unsigned int index,
		   union ibv_gid *gid);
int rdev_query_pkey(struct ibfs_device *dev, unsigned int port, unsigned int index,
		    uint16_t *pkey);
int rdev_set_node_desc(struct ibfs_device *dev, const char desc[64]);
int rdev_set_sys_image_guid(struct ibfs_device *dev, uint64_t guid);
int rdev_modify_port(struct ibfs_device *dev, unsigned int port, uint32_t set_cap,
		     uint32_t clr_cap, bool reset_qkey_cntr, bool shutdown, int init_type);
int rdev_query_counter(struct ibfs_device *dev, unsigned int port, enum counter which,
		       uint64_t *value);
int rdev_clear_counter(struct ibfs_device *dev, unsigned int port, enum counter which);
int rdev_query_hw_counter(struct ibfs_device *dev, unsigned int port, unsigned int index,
			  uint64_t *value);

/* pma.c, on the hand. -EOPNOTSUPP: it has none, -EAGAIN: no LID, -ETIMEDOUT, -EIO. */
int pma_counter(const char *device, unsigned int port, enum counter which, uint64_t *value);
int pma_clear(const char *device, unsigned int port, enum counter which);

/* mad.c */
int rdev_mad_register(struct ibfs_device *dev, unsigned int port, const struct mad_reg *reg,
		      const struct mad_client_ops *ops, void *client, struct mad_agent **agent);
void rdev_mad_unregister(struct mad_agent *agent);
int rdev_mad_send(struct mad_agent *agent, const struct mad_addr *addr, const void *mad,
		  size_t len, unsigned int timeout_ms, unsigned int retries);
int rdev_set_issm(struct ibfs_device *dev, unsigned int port, bool on);
void rdev_mad_gone(struct rdev *rdev);	/* its agents are told, and freed */
void rdev_issm_gone(struct rdev *rdev);
/* umadfd.c: libibumad's names of the system's files; fd or -errno. */
int umad_fd_open(const char *device, unsigned int port);
int issm_fd_open(const char *device, unsigned int port);

#endif
