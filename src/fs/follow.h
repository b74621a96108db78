/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop's thread stays on its client's processor while one client has
 * nearly all of it: a request is then answered by a switch of threads, and not
 * by waking another processor, which costs as much as many requests.
 */
#ifndef IBFS_FS_FOLLOW_H
#define IBFS_FS_FOLLOW_H

#include <pthread.h>

#include <ibfs/ibfs.h>

struct follow;

/* NULL: no memory; then nobody is followed. */
struct follow *follow_new(struct ibfs *ibfs);
/* From now on the thread runs again where it could before. */
void follow_free(struct follow *follow);
/* A request that its client began on this processor; a hint, -1: unknown. */
void follow_request(struct follow *follow, int cpu);
/* A thread with these attributes may run wherever the loop's could before. */
void follow_thread(const struct follow *follow, pthread_attr_t *attr);

#endif
