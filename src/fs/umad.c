/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The umad file of a port: management datagrams for clients, as Linux's
 * user_mad.c has it (<rdma/ib_user_mad.h>, ABI 5). An open file has up to 32
 * agents (umad_agents.c) and one queue of what they received. It may touch the
 * backend's MAD operations and fs' part of the port.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include <ibfs/follow.h>
#include <ibfs/ibfs.h>
#include <ibfs/umad_ring.h>

#include "fs/tree.h"
#include "fs/umad.h"
#include "fs/umad_ring.h"

#define MAD_HEADER	24		/* IBA 13.4.3 */
#define MAD_RMPP_HEADER	36		/* IBA 13.6.2.1: the least that a write brings */
#define QUEUE_BYTES	(64 << 20)	/* with more than this unread, MADs are dropped */
#define LONG_WRITE	(64 << 10)	/* from here on, a write may be only the first part of one */

_Static_assert(sizeof(struct ib_user_mad_hdr_old) == 56, "old header layout");
_Static_assert(sizeof(struct ib_user_mad_hdr) == 64, "header layout");
_Static_assert(offsetof(struct umad_mad, data) ==
	       offsetof(struct umad_mad, hdr) + sizeof(struct ib_user_mad_hdr), "no gap");

size_t umad_hdr_size(const struct umad_file *uf)
{
	return uf->pkey_index ? sizeof(struct ib_user_mad_hdr) :
				sizeof(struct ib_user_mad_hdr_old);
}

/* The old header is the new one's beginning: it moves up to the data. */
const uint8_t *umad_pack(const struct umad_file *uf, struct umad_mad *mad)
{
	size_t size = umad_hdr_size(uf);
	uint8_t *start = mad->data - size;

	memmove(start, &mad->hdr, size);
	return start;
}

/* --- the queue --- */

void umad_mad_free(struct umad_file *uf, struct umad_mad *mad)
{
	uf->bytes -= sizeof(*mad) + mad->len;
	free(mad);
}

/* Somebody may wait, in poll or at the ring, for what is there now. */
static void wake(struct umad_file *uf)
{
	umad_ring_wake(uf);
	fs_wake(uf->file);
}

void umad_requeue(struct umad_file *uf, struct umad_mad *mad)
{
	DL_PREPEND(uf->queue, mad);
}

/*
 * The head of the queue for a reader with room for req->size bytes: > 0: *mad
 * is the caller's, to copy these bytes from what umad_pack() gives, and free.
 */
static ssize_t take(struct umad_file *uf, struct fs_req *req, struct umad_mad **out)
{
	struct umad_mad *mad = uf->queue;
	size_t hdr = umad_hdr_size(uf);
	size_t first = mad->len < UMAD_SEGMENT ? mad->len : UMAD_SEGMENT;

	if (req->size < hdr + first)
		return ibfs_fail(req->ibfs, EINVAL, "%s/umad: read of %zu bytes, the MAD needs %zu",
				 uf->where, req->size, hdr + first);
	DL_DELETE(uf->queue, mad);
	if (req->size < hdr + mad->len)
		return umad_far_read(uf, req, mad);
	*out = mad;
	return (ssize_t)(hdr + mad->len);
}

void umad_serve(struct umad_file *uf)
{
	while (uf->queue && uf->readers.head) {
		struct fs_req *req = waitq_take(&uf->readers);
		struct umad_mad *mad = NULL;
		ssize_t n = take(uf, req, &mad);

		if (n == FS_PENDING)
			continue;
		fs_reply(req, n, mad ? umad_pack(uf, mad) : NULL, mad ? (size_t)n : 0);
		if (mad)
			umad_mad_free(uf, mad);
	}
	umad_ring_refill(uf);
	if (uf->queue || umad_ring_filled(uf))
		wake(uf);
}

/* --- the backend's side --- */

static void fill_hdr(struct ib_user_mad_hdr *hdr, const struct mad_addr *addr)
{
	hdr->qpn = htonl(addr->qpn);
	hdr->lid = htons(addr->lid);
	hdr->sl = addr->sl;
	hdr->path_bits = addr->path_bits;
	hdr->pkey_index = addr->pkey_index;
	hdr->grh_present = addr->grh;
	if (!addr->grh)
		return;
	hdr->gid_index = addr->gid_index;
	hdr->hop_limit = addr->hop_limit;
	hdr->traffic_class = addr->traffic_class;
	memcpy(hdr->gid, &addr->gid, sizeof(hdr->gid));
	hdr->flow_label = htonl(addr->flow_label);
}

/* What a timed-out request's writer finds again is what it wrote. */
static void fill_timeout(struct ib_user_mad_hdr *hdr, const struct mad_addr *addr)
{
	hdr->status = ETIMEDOUT;
	hdr->qkey = htonl(addr->qkey);
	hdr->timeout_ms = addr->user[0];
	hdr->retries = addr->user[1];
	hdr->length = addr->user[2];
}

/* What the ring didn't take: readers that wait get it, or it waits for them. */
static void enqueue(struct umad_file *uf, const struct ib_user_mad_hdr *hdr, const void *data,
		    size_t len)
{
	struct umad_mad *mad = uf->bytes <= QUEUE_BYTES ? malloc(sizeof(*mad) + len) : NULL;

	if (!mad) {
		ibfs_fail(uf->file->ibfs, ENOBUFS, "%s/umad: MAD dropped, %zu bytes wait to be read",
			  uf->where, uf->bytes);
		return;
	}
	mad->hdr = *hdr;
	memcpy(mad->data, data, len);
	mad->len = len;
	uf->bytes += sizeof(*mad) + len;
	DL_APPEND(uf->queue, mad);
	umad_serve(uf);
}

static void give(struct umad_file *uf, const struct ib_user_mad_hdr *hdr, const void *data,
		 size_t len)
{
	if (umad_ring_put(uf, hdr, data, len))
		wake(uf);
	else
		enqueue(uf, hdr, data, len);
}

void umad_receive(void *client, struct mad_agent *agent, int status, const struct mad_addr *addr,
		  const void *data, size_t len)
{
	struct umad_file *uf = client;
	unsigned int id = umad_agent_id(uf, agent);
	struct ib_user_mad_hdr hdr = { .id = id };

	if (id == UMAD_AGENTS)
		return;
	fill_hdr(&hdr, addr);
	if (status)
		fill_timeout(&hdr, addr);
	else
		hdr.length = (uint32_t)(umad_hdr_size(uf) + len);
	umad_send_end(uf, &hdr, data);
	give(uf, &hdr, data, len);
}

void umad_file_lost(struct umad_file *uf, struct ib_user_mad_hdr *hdr, const void *mad)
{
	hdr->status = ETIMEDOUT;
	give(uf, hdr, mad, MAD_HEADER);
}

/* --- open and release --- */

static struct ib_port_state *port_state(const struct umad_file *uf)
{
	return &uf->dev->ports[uf->port];
}

static void port_attach(struct umad_file *uf)
{
	struct umad_file *list = port_state(uf)->umads;

	DL_APPEND(list, uf);
	port_state(uf)->umads = list;
}

static void port_detach(struct umad_file *uf)
{
	struct umad_file *list = port_state(uf)->umads;

	DL_DELETE(list, uf);
	port_state(uf)->umads = list;
}

static ssize_t umad_open(struct file *file, struct fs_req *req)
{
	struct ibfs_device *dev = path_device(req->ibfs, file->path);
	struct umad_file *uf;

	if (!dev)
		return ibfs_fail(req->ibfs, ENXIO, "umad: the device is gone");
	uf = calloc(1, sizeof(*uf));
	if (!uf)
		return -ENOMEM;
	uf->file = file;
	uf->dev = dev;
	uf->port = file->path.port;
	snprintf(uf->where, sizeof(uf->where), "%s/%u", dev->name, uf->port);
	port_attach(uf);
	file->priv = uf;
	file->hints |= FILE_STREAM;
	return 0;
}

static void umad_release(struct file *file)
{
	struct umad_file *uf = file->priv;
	struct umad_mad *mad, *tmp;

	if (!uf)
		return;
	umad_send_drain(uf);
	waitq_fail(&uf->readers, -EINTR);
	umad_far_close(uf);
	umad_ring_free(uf);
	if (uf->dev) {
		umad_agents_drop(uf);
		port_detach(uf);
	}
	DL_FOREACH_SAFE(uf->queue, mad, tmp) {
		DL_DELETE(uf->queue, mad);
		umad_mad_free(uf, mad);
	}
	free(uf);
}

void umad_device_gone(struct ibfs_device *dev, unsigned int port)
{
	struct umad_file *list = dev->ports[port].umads, *uf, *tmp;

	dev->ports[port].umads = NULL;
	DL_FOREACH_SAFE(list, uf, tmp) {
		umad_agents_drop(uf);
		uf->dev = NULL;
		umad_ring_kill(uf);
		waitq_fail(&uf->readers, -EIO);
		fs_wake(uf->file);
	}
}

/* --- read, write, poll --- */

int umad_gone(struct umad_file *uf, int err)
{
	return ibfs_fail(uf->file->ibfs, err, "%s/umad: the device is gone", uf->where);
}

static ssize_t umad_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off)
{
	struct umad_file *uf = file->priv;
	struct umad_part *part = umad_part_find(uf, req, off, false);
	struct umad_mad *mad = NULL;
	ssize_t n;

	umad_send_drain(uf);
	if (part)
		return (ssize_t)umad_part_read(uf, part, buf, size);
	if (size < umad_hdr_size(uf))
		return ibfs_fail(req->ibfs, EINVAL, "%s/umad: read of %zu bytes, a header has %zu",
				 uf->where, size, umad_hdr_size(uf));
	if (!uf->dev)
		return umad_gone(uf, EIO);
	n = (ssize_t)umad_ring_get(uf, buf, size);
	if (n)
		return n;
	req->size = size;
	if (!uf->queue)
		return file->flags & O_NONBLOCK ? -EAGAIN : waitq_add(&uf->readers, req);
	n = take(uf, req, &mad);
	if (mad) {
		memcpy(buf, umad_pack(uf, mad), (size_t)n);
		umad_mad_free(uf, mad);
	}
	umad_ring_refill(uf);
	return n;
}

static void read_hdr(const struct umad_file *uf, const void *buf, struct ib_user_mad_hdr *hdr)
{
	memset(hdr, 0, sizeof(*hdr));
	memcpy(hdr, buf, umad_hdr_size(uf));
}

static void fill_addr(struct mad_addr *addr, const struct ib_user_mad_hdr *hdr)
{
	*addr = (struct mad_addr){
		.lid = ntohs(hdr->lid),
		.sl = hdr->sl,
		.path_bits = hdr->path_bits,
		.qpn = ntohl(hdr->qpn),
		.qkey = ntohl(hdr->qkey),
		.pkey_index = hdr->pkey_index,
		.grh = hdr->grh_present,
		.gid_index = hdr->gid_index,
		.hop_limit = hdr->hop_limit,
		.traffic_class = hdr->traffic_class,
		.flow_label = ntohl(hdr->flow_label),
		.user = { hdr->timeout_ms, hdr->retries, hdr->length },
	};
	memcpy(&addr->gid, hdr->gid, sizeof(addr->gid));
}

ssize_t umad_file_send(struct umad_file *uf, const void *buf, size_t size)
{
	struct ibfs *ibfs = uf->file->ibfs;
	size_t hdr_size = umad_hdr_size(uf);
	const uint8_t *mad = (const uint8_t *)buf + hdr_size;
	struct ib_user_mad_hdr hdr;
	struct mad_addr addr;
	int ret;

	if (size < hdr_size + MAD_RMPP_HEADER)
		return ibfs_fail(ibfs, EINVAL, "%s/umad: write of %zu bytes, the least is %zu",
				 uf->where, size, hdr_size + MAD_RMPP_HEADER);
	read_hdr(uf, buf, &hdr);
	if (hdr.id >= UMAD_AGENTS)
		return ibfs_fail(ibfs, EINVAL, "%s/umad: agent id %u, the largest is %u",
				 uf->where, hdr.id, UMAD_AGENTS - 1);
	if (!uf->dev)
		return umad_gone(uf, EIO);
	if (!uf->agents[hdr.id])
		return ibfs_fail(ibfs, EIO, "%s/umad: no agent %u", uf->where, hdr.id);
	fill_addr(&addr, &hdr);
	umad_send_begin(uf, &hdr, mad);
	ret = uf->dev->ops->mad_send(uf->agents[hdr.id], &addr, mad, size - hdr_size,
				     hdr.timeout_ms, hdr.retries);
	if (!ret)
		return (ssize_t)size;
	umad_send_undo(uf, &hdr, mad);
	return ret;
}

static ssize_t umad_write(struct file *file, struct fs_req *req, const void *buf, size_t size,
			  off_t off)
{
	struct umad_file *uf = file->priv;
	struct umad_part *part = umad_part_find(uf, req, off, true);

	umad_send_drain(uf);
	if (part)
		return (ssize_t)umad_part_write(uf, part, size);
	if (size >= LONG_WRITE && req->caller.pid)
		return umad_far_write(uf, req, buf, size, off);
	follow_request(file->ibfs->follow, umad_ring_cpu(uf), file->ibfs->fs->requests);
	umad_send_warm(uf);
	return umad_file_send(uf, buf, size);
}

static unsigned int umad_poll(struct file *file)
{
	struct umad_file *uf = file->priv;

	umad_send_drain(uf);
	if (!uf->dev)
		return POLLERR;
	return POLLOUT | POLLWRNORM | (umad_ring_filled(uf) || uf->queue ? POLLIN | POLLRDNORM : 0);
}

const struct file_ops umad_ops = {
	.open = umad_open,
	.release = umad_release,
	.read = umad_read,
	.write = umad_write,
	.poll = umad_poll,
	.ioctl = umad_ioctl,
};
