/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What native clients of the tree share, in tests and bench: objects by clone,
 * their files mapped, requests produced in send rings and completions consumed.
 * ibfs.verbs(5); the rings' layout: rdma/rdma_user_rxe.h.
 */
#ifndef TESTS_NATIVE_H
#define TESTS_NATIVE_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

/* A new object below the mount point: its ctl, and its number. */
static inline int make(const char *mnt, const char *kind, char num[16], const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static inline int make(const char *mnt, const char *kind, char num[16], const char *fmt, ...)
{
	char path[256], line[256];
	va_list ap;
	ssize_t n;
	int fd, len;

	snprintf(path, sizeof(path), "%s/%s/clone", mnt, kind);
	fd = open(path, O_RDWR);
	if (fd < 0)
		die(path);
	n = pread(fd, num, 15, 0);
	if (n <= 0)
		die("clone's number");
	num[n - 1] = '\0';
	va_start(ap, fmt);
	len = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (write(fd, line, len) != len)
		die(line);
	return fd;
}

static inline int open_file(const char *mnt, const char *kind, const char *num, const char *file,
			    int flags)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s/%s/%s", mnt, kind, num, file);
	fd = open(path, flags);
	if (fd < 0)
		die(path);
	return fd;
}

static inline void *map_file(int fd, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

/* A ring, all of it: its head tells how large it is. */
static inline struct rxe_queue_buf *map_ring(int fd)
{
	struct rxe_queue_buf *ring = map_file(fd, sizeof(*ring));
	size_t slots = (size_t)ring->index_mask + 1;
	size_t size = sizeof(*ring) + (slots << ring->log2_elem_size);

	munmap(ring, sizeof(*ring));
	return map_file(fd, size);
}

static inline uint32_t number(const char *mnt, const char *kind, const char *num, const char *file)
{
	int fd = open_file(mnt, kind, num, file, O_RDONLY);
	char text[32] = "";

	if (read(fd, text, sizeof(text) - 1) <= 0)
		die(file);
	close(fd);
	return strtoul(text, NULL, 0);
}

static inline void *ring_elem(struct rxe_queue_buf *ring, uint32_t n)
{
	return ring->data + ((size_t)(n & ring->index_mask) << ring->log2_elem_size);
}

/* Tell of n requests; the engine says in the ring whether it has to be rung. */
static inline void produce(struct rxe_queue_buf *sq, uint32_t n, int fd)
{
	__atomic_store_n(&sq->producer_index, n & sq->index_mask, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&sq->pad_1[0], __ATOMIC_RELAXED) && write(fd, "", 1) != 1)
		die("doorbell");
}

/* The completion after n others, or NULL: it isn't there yet. */
static inline const struct ib_uverbs_wc *completion(struct rxe_queue_buf *cq, uint32_t n)
{
	if (__atomic_load_n(&cq->producer_index, __ATOMIC_ACQUIRE) == (n & cq->index_mask))
		return NULL;
	return ring_elem(cq, n);
}

static inline void consumed(struct rxe_queue_buf *cq, uint32_t n)
{
	__atomic_store_n(&cq->consumer_index, n & cq->index_mask, __ATOMIC_RELEASE);
}

#endif
