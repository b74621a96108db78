/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's side of an open umad file's receive ring (ibfs/umad_ring.h),
 * for umad.c. Every function works, and does nothing, on a file without one.
 */
#ifndef IBFS_FS_UMAD_RING_H
#define IBFS_FS_UMAD_RING_H

#include "fs/umad.h"

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

#endif
