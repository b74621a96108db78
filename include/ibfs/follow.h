/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop's thread stays on its client's processor while one client has
 * nearly all of it: a request is then answered by a switch of threads, and not
 * by waking another processor, which costs as much as many requests.
 */
#ifndef IBFS_FOLLOW_H
#define IBFS_FOLLOW_H

#include <pthread.h>
#include <stdint.h>

#include <ibfs/ibfs.h>

struct follow;

/* NULL: no memory; then nobody is followed. */
struct follow *follow_new(struct ibfs *ibfs);
/* From now on the thread runs again where it could before. */
void follow_free(struct follow *follow);
/*
 * A request that its client began on this processor (a hint; -1: unknown), and
 * how many requests there were, of all clients and since the start, with it.
 */
void follow_request(struct follow *follow, int cpu, uint64_t requests);
/* The loop has other work, which would keep the client from its processor. */
void follow_pause(struct follow *follow);
/*
 * A thread with these attributes may run wherever the program may (that is its first
 * thread), also when a thread makes it that keeps to some processors.
 */
void follow_thread(const struct follow *follow, pthread_attr_t *attr);

#endif
