/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that answers late: a model of another process' for tests of the verbs
 * engine. Transfers wait until remote_work().
 */
#ifndef VERBS_REMOTE_H
#define VERBS_REMOTE_H

#include "verbs_test.h"

#define REMOTE_LEN 300000
static struct {
	uint8_t mem[REMOTE_LEN];
	struct mem_io *io[64];
	unsigned int num, cancelled;
	bool fail, freed;
} remote;

static inline int remote_io(void *priv, struct mem_io *io)
{
	(void)priv;
	CHECK(remote.num < 64 && io->off + io->len <= REMOTE_LEN);
	remote.io[remote.num++] = io;
	return 0;
}

static inline void remote_cancel(void *priv, struct mem_io *io)
{
	(void)priv;
	for (unsigned int i = 0; i < remote.num; i++)
		if (remote.io[i] == io) {
			remote.io[i] = remote.io[--remote.num];
			remote.cancelled++;
			return;
		}
	CHECK(!"cancelled what wasn't asked");
}

static inline void remote_free(void *priv)
{
	(void)priv;
	remote.freed = true;
}

static inline void remote_work(void)
{
	while (remote.num) {
		struct mem_io *io = remote.io[0];

		memmove(remote.io, remote.io + 1, --remote.num * sizeof(io));
		if (remote.fail) {
			io->done(io, -EFAULT);
			continue;
		}
		if (io->op == MEM_READ)
			memcpy(io->buf, remote.mem + io->off, io->len);
		else if (io->op == MEM_WRITE)
			memcpy(remote.mem + io->off, io->buf, io->len);
		else
			mem_atomic_exec((uint64_t *)(remote.mem + io->off), io->atomic);
		io->done(io, 0);
	}
}

static inline bool remote_wc(struct side *s, unsigned int status)
{
	struct ibfs_wc wc;

	for (int i = 0; i < 100; i++) {
		if (s->ops->poll_cq(s->cq, 1, &wc) == 1) {
			if (wc.status != status)
				printf("status %s\n", wc_status_name(wc.status));
			return wc.status == status;
		}
		tick(0.0001);
		remote_work();
	}
	printf("no completion\n");
	return false;
}

static inline void remote_open(struct side *s)
{
	static const struct remote_ops ops = { remote_io, remote_cancel, remote_free };

	memset(&remote, 0, sizeof(remote));
	CHECK(!s->ops->dereg_mr(s->mr));
	memory_put(s->mem);
	s->mem = memory_remote(&ops, NULL, REMOTE_LEN);
	s->mr = side_reg(s, 0, REMOTE_LEN, 0, ALL_ACCESS);
	s->key = mr_key(s, s->mr);
}

#endif
