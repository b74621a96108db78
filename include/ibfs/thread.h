/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads beside the event loop's. */
#ifndef IBFS_THREAD_H
#define IBFS_THREAD_H

#include <pthread.h>

/* As pthread_create(), of a thread that leaves signals to the event loop's. 0, -errno. */
int thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg);

#endif
