/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open umad file, shared by umad.c (its queue, reads and writes), umad_agents.c
 * (ioctls) and umad_far.c (reads and writes that need a look at the client's own
 * system call).
 */
#ifndef IBFS_FS_UMAD_H
#define IBFS_FS_UMAD_H

#include <rdma/ib_user_mad.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ibfs/backend.h>
#include <ibfs/fs.h>

#define UMAD_AGENTS	32
#define UMAD_SEGMENT	256		/* of a MAD: the first segment, or all of a short one */
#define UMAD_MESSAGE_MAX (256U << 20)	/* bytes of one write; an SA has no use for so much */

/* A received MAD, or what is left of a request that timed out. */
struct umad_mad {
	struct umad_mad *prev, *next;
	size_t len;
	struct ib_user_mad_hdr hdr;	/* directly before data: a read takes both */
	uint8_t data[];
};

/*
 * The rest of a read or write that the kernel cuts into several requests of
 * the front end (FUSE: at about 1 MiB): which of them comes next.
 */
struct umad_part {
	struct umad_part *prev, *next;
	pid_t tid;
	off_t off;			/* of the next request */
	size_t left;
	struct umad_mad *mad;		/* a read's; NULL: a write, which was sent */
	const uint8_t *data;		/* a read's next bytes, in mad */
};

struct ring;

struct umad_file {
	struct umad_file *prev, *next;	/* of the port */
	struct file *file;
	struct ibfs_device *dev;	/* NULL: gone */
	unsigned int port;
	char where[28];			/* "device/port", for messages */
	struct mad_agent *agents[UMAD_AGENTS];
	uint32_t plain[2];		/* by QP: bit n: agent n has no RMPP, and sends for sure */
	bool pkey_index;		/* the 64-byte header */
	bool used;
	struct umad_mad *queue;
	size_t bytes;			/* of MADs that this file keeps */
	struct waitq readers;
	struct umad_part *parts;
	struct umad_job *jobs;
	struct ring *ring;		/* umad_ring.c */
};

size_t umad_hdr_size(const struct umad_file *uf);
/* Header and data as one piece in the file's layout; once only. */
const uint8_t *umad_pack(const struct umad_file *uf, struct umad_mad *mad);
void umad_mad_free(struct umad_file *uf, struct umad_mad *mad);
/* Back to the head of the queue. */
void umad_requeue(struct umad_file *uf, struct umad_mad *mad);
/* Answer readers that wait while there is something to read. */
void umad_serve(struct umad_file *uf);
/* A whole write: size, or -errno. */
ssize_t umad_file_send(struct umad_file *uf, const void *buf, size_t size);
/* What an agent received, or a request that timed out: mad_client_ops.recv. */
void umad_receive(void *client, struct mad_agent *agent, int status, const struct mad_addr *addr,
		  const void *data, size_t len);
/* The device is gone: -err, said in words. */
int umad_gone(struct umad_file *uf, int err);
/* A request was not sent, and it is too late for its write to fail: it times out. */
void umad_file_lost(struct umad_file *uf, struct ib_user_mad_hdr *hdr, const void *mad);

/* umad_agents.c. UMAD_AGENTS: it is none of the file's; of NULL the lowest free id. */
unsigned int umad_agent_id(const struct umad_file *uf, const struct mad_agent *agent);
void umad_agents_drop(struct umad_file *uf);
ssize_t umad_ioctl(struct file *file, struct fs_req *req, unsigned int cmd, uint64_t arg,
		   const void *in, size_t in_len, void *out, size_t out_room, size_t *out_len);

/*
 * umad_far.c. A read whose request has less room than the MAD (taken off the
 * queue; it goes back unless it was read), a write that may be longer than its
 * request, and what follows them. FS_PENDING, bytes, or -errno.
 */
ssize_t umad_far_read(struct umad_file *uf, struct fs_req *req, struct umad_mad *mad);
ssize_t umad_far_write(struct umad_file *uf, struct fs_req *req, const void *buf, size_t size,
		       off_t off);
/* The next piece of a long read or write, or NULL: this is a new one. */
struct umad_part *umad_part_find(struct umad_file *uf, const struct fs_req *req, off_t off,
				 bool write);
size_t umad_part_read(struct umad_file *uf, struct umad_part *part, void *buf, size_t size);
size_t umad_part_write(struct umad_file *uf, struct umad_part *part, size_t size);
/* The file closes: end all of this. */
void umad_far_close(struct umad_file *uf);

#endif
