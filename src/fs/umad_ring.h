/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's side of an open umad file's rings (ibfs/umad_ring.h), for umad.c:
 * umad_ring.c receives, umad_send.c sends. Every function works, and does
 * nothing, on a file without rings.
 */
#ifndef IBFS_FS_UMAD_RING_H
#define IBFS_FS_UMAD_RING_H

#include <ev.h>

#include <ibfs/bell.h>
#include <ibfs/umad_ring.h>

#include "fs/tree.h"
#include "fs/umad.h"

struct ring {
	struct task wake;		/* first: wakes clients, when a request was answered */
	struct ring *prev, *next;	/* of fs->rings, until its file is opened */
	uint32_t id;
	const struct fs_cred *owner;
	int fd;				/* -1: its file was opened */
	bool dead;
	uint64_t tail;
	uint64_t seen;			/* where head was last: what is before was taken */
	struct umad_ring *mem;
	struct keep_file *kept;		/* ibfs/keeper.h; NULL: not kept */
	/* sending */
	struct umad_file *uf;
	struct bell bell;
	struct ring *hot_prev, *hot_next;	/* of fs->hot: its bell is heard */
	bool hot;
	uint64_t taken;
	struct ev_timer period;		/* to look without a bell, while mem->patient is set */
	uint64_t before;		/* taken, when it began */
	unsigned int in_row;		/* bells of a client that had answers to read */
};

/* The ioctl: makes the ring. -EBUSY: the file has one; -ENOMEM, -EMFILE. */
ssize_t umad_ring_make(struct umad_file *uf, const void *in, void *out, size_t *out_len);
/* Put a MAD, unless others are before it or it doesn't fit: false. */
bool umad_ring_put(struct umad_file *uf, const struct ib_user_mad_hdr *hdr, const void *data,
		   size_t len);
/* Take one, as a read() of size bytes would. 0: look at the queue. */
size_t umad_ring_get(struct umad_file *uf, void *buf, size_t size);
bool umad_ring_filled(const struct umad_file *uf);
/* The queue changed: move on what has room now, tell the client what hasn't. */
void umad_ring_refill(struct umad_file *uf);
/* Wake clients that sleep until there is a MAD. */
void umad_ring_wake(struct umad_file *uf);
/* The processor that the client wrote from; -1: not known. */
int umad_ring_cpu(const struct umad_file *uf);
/* The client asks the file itself from here on. */
void umad_ring_kill(struct umad_file *uf);
void umad_ring_free(struct umad_file *uf);

/* umad_send.c. Take what the file's client left. */
void umad_send_drain(struct umad_file *uf);
/* What may be left there has changed: layout, agents. */
void umad_send_publish(struct umad_file *uf);
/* The client writes, and so may leave its next MADs in the ring. */
void umad_send_warm(struct umad_file *uf);
void umad_send_cool(struct ring *ring);
/*
 * A MAD goes out; didn't; came in. The plain agents' requests are counted by
 * which the client knows whether a TID is in flight.
 */
void umad_send_begin(struct umad_file *uf, const struct ib_user_mad_hdr *hdr, const void *mad);
void umad_send_undo(struct umad_file *uf, const struct ib_user_mad_hdr *hdr, const void *mad);
void umad_send_end(struct umad_file *uf, const struct ib_user_mad_hdr *hdr, const void *mad);

#endif
