/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of libibfs-run.so have in common; none of it is seen by the program. */
#ifndef IBFS_RUN_PRELOAD_H
#define IBFS_RUN_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Is the open file one of the tree? By system calls only. */
__attribute__((visibility("hidden"))) bool preload_in_tree(int fd);
/* Does /dev/infiniband show the tree? */
__attribute__((visibility("hidden"))) bool preload_has_tree(void);

/* The program closes the descriptor. */
__attribute__((visibility("hidden"))) void preload_uverbs_close(int fd);
/* The ring of a umad file, or NULL; by memory alone, so that it may be another file by now. */
struct umad_ring;
__attribute__((visibility("hidden"))) struct umad_ring *preload_ring(int fd);
/* The same, by a system call: NULL if it isn't that file any more. */
__attribute__((visibility("hidden"))) struct umad_ring *preload_ring_live(int fd);
/* Is it this thread that polls it? Of a descriptor that has a ring. */
__attribute__((visibility("hidden"))) bool preload_ring_reads(int fd);
/* The program is about to write to the descriptor. True: its MAD was left in the ring. */
__attribute__((visibility("hidden"))) bool preload_send(int fd, const void *buf, size_t size);

/* A completion channel's new descriptor, of a uverbs file; it has become another's, or is closed. */
__attribute__((visibility("hidden"))) void preload_event_opened(int fd, int uverbs);
__attribute__((visibility("hidden"))) void preload_event_close(int fd);
/* A read() of a channel, whose result is *n. False: not done, the file is to be read. */
__attribute__((visibility("hidden"))) bool preload_event_read(int fd, void *buf, size_t size,
							      ssize_t *n);
/* Ask for a CQ's next event, of the page of these. False: not done, send the command. */
struct uverbs_arm;
__attribute__((visibility("hidden"))) bool preload_arm(struct uverbs_arm *arms, uint32_t handle,
							bool solicited);

/* Is the open file a uverbs file of the tree? errno may change. */
__attribute__((visibility("hidden"))) bool preload_is_uverbs(int fd);

#endif
