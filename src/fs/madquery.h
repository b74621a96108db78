/* SPDX-License-Identifier: BSD-2-Clause */
/* A MAD asked for in words, and its answer in words: one query of mad/N. */
#ifndef IBFS_FS_MADQUERY_H
#define IBFS_FS_MADQUERY_H

#include <ibfs/backend.h>
#include <ibfs/fs.h>

#include "fs/tree.h"

struct mad_query;

/* Is the command one of smp, perf, sa? */
bool mad_query_word(const char *word);
/*
 * Send what the words ask for by a port of dev, for who has this account.
 * changed(ctx) when it is over. *query is the caller's, to end by
 * mad_query_free(). 0 or -errno, noted by ibfs_fail().
 */
int mad_query_start(struct ibfs_device *dev, unsigned int port, const struct account *account,
		    const struct ctl_line *line, void (*changed)(void *ctx), void *ctx,
		    struct mad_query **query);
/* It goes, answered or not; who waits for it is told -ECANCELED. */
void mad_query_free(struct mad_query *query);
bool mad_query_done(const struct mad_query *query);
/* "pending", "answered", or why it failed. */
const char *mad_query_state(const struct mad_query *query);
/*
 * The answer from *pos on, 0 at its end; -ETIMEDOUT, -EREMOTEIO (a status) or
 * -ENODEV when there is none; FS_PENDING until it is there, and
 * mad_query_waiter() then gives the request.
 */
ssize_t mad_query_read(struct mad_query *query, struct fs_req *req, size_t *pos, void *buf,
		       size_t size);
/* The next that waits for a query that is over, or NULL. */
struct fs_req *mad_query_waiter(struct mad_query *query);

#endif
