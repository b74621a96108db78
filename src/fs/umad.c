/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The umad file of a port: management datagrams for clients, as Linux's
 * user_mad.c has it (<rdma/ib_user_mad.h>, ABI 5). An open file has up to 32
 * agents and one queue of what they received. It may touch the backend's MAD
 * operations and fs' part of the port.
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
_Static_assert(sizeof(struct ib_user_mad_reg_req) == 28, "registration layout");
_Static_assert(sizeof(struct ib_user_mad_reg_req2) == 40, "registration layout");
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

static unsigned int agent_id(const struct umad_file *uf, const struct mad_agent *agent)
{
	unsigned int id;

	for (id = 0; id < UMAD_AGENTS; id++)
		if (uf->agents[id] == agent)
			break;
	return id;
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

static void on_recv(void *client, struct mad_agent *agent, int status,
		    const struct mad_addr *addr, const void *data, size_t len)
{
	struct umad_file *uf = client;
	unsigned int id = agent_id(uf, agent);
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

static void agent_gone(struct umad_file *uf, unsigned int id)
{
	uf->agents[id] = NULL;
	uf->plain[0] &= ~(1U << id);
	uf->plain[1] &= ~(1U << id);
	umad_send_publish(uf);
}

static void on_gone(void *client, struct mad_agent *agent)
{
	struct umad_file *uf = client;
	unsigned int id = agent_id(uf, agent);

	if (id < UMAD_AGENTS)
		agent_gone(uf, id);
}

static const struct mad_client_ops client_ops = {
	.recv = on_recv,
	.gone = on_gone,
};

static void unregister_all(struct umad_file *uf)
{
	for (unsigned int id = 0; id < UMAD_AGENTS; id++) {
		struct mad_agent *agent = uf->agents[id];

		if (!agent)
			continue;
		agent_gone(uf, id);
		uf->dev->ops->mad_unregister(agent);
	}
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
		unregister_all(uf);
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
		unregister_all(uf);
		uf->dev = NULL;
		umad_ring_kill(uf);
		waitq_fail(&uf->readers, -EIO);
		fs_wake(uf->file);
	}
}

/* --- read, write, poll --- */

static int gone(struct umad_file *uf, int err)
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
		return gone(uf, EIO);
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
		return gone(uf, EIO);
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
	if (size >= LONG_WRITE && req->cred.pid)
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

/* --- ioctl --- */

static int check_qpn(struct umad_file *uf, uint32_t qpn)
{
	if (qpn > 1)
		return ibfs_fail(uf->file->ibfs, EINVAL, "%s/umad: register: qpn %u, not 0 or 1",
				 uf->where, qpn);
	return 0;
}

/* The lowest free id. */
static int free_id(struct umad_file *uf)
{
	unsigned int id = agent_id(uf, NULL);

	if (id == UMAD_AGENTS)
		return ibfs_fail(uf->file->ibfs, ENOMEM, "%s/umad: register: the file has %u agents",
				 uf->where, UMAD_AGENTS);
	return (int)id;
}

/* Without a class an agent only sends: the rest of what it asks for means nothing. */
static int add_agent(struct umad_file *uf, unsigned int id, struct mad_reg *reg)
{
	struct mad_reg sender = {
		.qpn = reg->qpn,
		.rmpp_version = reg->rmpp_version,
		.user_rmpp = reg->user_rmpp,
	};
	struct mad_agent *agent;
	int ret;

	ret = uf->dev->ops->mad_register(uf->dev, uf->port, reg->mgmt_class ? reg : &sender,
					 &client_ops, uf, &agent);
	if (ret)
		return ret;
	uf->agents[id] = agent;
	if (uf->dev->ops->mad_sure && !reg->rmpp_version && !reg->user_rmpp)
		uf->plain[reg->qpn] |= 1U << id;
	umad_send_publish(uf);
	return 0;
}

static ssize_t register_agent(struct umad_file *uf, const void *in, void *out, size_t *out_len)
{
	struct ib_user_mad_reg_req req;
	struct mad_reg reg = { 0 };
	int id, ret;

	memcpy(&req, in, sizeof(req));
	ret = check_qpn(uf, req.qpn);
	if (ret)
		return ret;
	id = free_id(uf);
	if (id < 0)
		return id;
	reg.qpn = req.qpn;
	reg.mgmt_class = req.mgmt_class;
	reg.class_version = req.mgmt_class_version;
	reg.rmpp_version = req.rmpp_version;
	memcpy(reg.oui, req.oui, sizeof(reg.oui));
	memcpy(reg.methods, req.method_mask, sizeof(reg.methods));
	ret = add_agent(uf, (unsigned int)id, &reg);
	if (ret)
		return ret;
	uf->used = true;
	req.id = (uint32_t)id;
	memcpy(out, &req, sizeof(req));
	*out_len = sizeof(req);
	return 0;
}

static int check_flags(struct umad_file *uf, struct ib_user_mad_reg_req2 *req, void *out,
		       size_t *out_len)
{
	uint32_t flags = req->flags;

	if (!(flags & ~(uint32_t)IB_USER_MAD_REG_FLAGS_CAP))
		return 0;
	req->flags = IB_USER_MAD_REG_FLAGS_CAP;
	memcpy(out, req, sizeof(*req));
	*out_len = sizeof(*req);
	return ibfs_fail(uf->file->ibfs, EINVAL, "%s/umad: register: flags 0x%x, known are 0x%x",
			 uf->where, flags, IB_USER_MAD_REG_FLAGS_CAP);
}

static int fill_reg2(struct umad_file *uf, const struct ib_user_mad_reg_req2 *req,
		     struct mad_reg *reg)
{
	if (req->mgmt_class && req->oui >> 24)
		return ibfs_fail(uf->file->ibfs, EINVAL, "%s/umad: register: oui 0x%x has over 24 bits",
				 uf->where, req->oui);
	*reg = (struct mad_reg){
		.qpn = (uint8_t)req->qpn,
		.mgmt_class = req->mgmt_class,
		.class_version = req->mgmt_class_version,
		.rmpp_version = req->rmpp_version,
		.user_rmpp = req->flags & IB_USER_MAD_USER_RMPP,
		.oui = { (uint8_t)(req->oui >> 16), (uint8_t)(req->oui >> 8), (uint8_t)req->oui },
		.methods = { req->method_mask[0], req->method_mask[1] },
	};
	return 0;
}

static ssize_t register_agent2(struct umad_file *uf, const void *in, void *out, size_t *out_len)
{
	struct ib_user_mad_reg_req2 req;
	struct mad_reg reg = { 0 };
	int id, ret;

	memcpy(&req, in, sizeof(req));
	ret = check_qpn(uf, req.qpn);
	if (ret)
		return ret;
	ret = check_flags(uf, &req, out, out_len);
	if (ret)
		return ret;
	id = free_id(uf);
	if (id < 0)
		return id;
	ret = fill_reg2(uf, &req, &reg);
	if (ret)
		return ret;
	ret = add_agent(uf, (unsigned int)id, &reg);
	if (ret)
		return ret;
	if (!uf->used)
		uf->pkey_index = true;
	uf->used = true;
	umad_send_publish(uf);
	req.id = (uint32_t)id;
	memcpy(out, &req, sizeof(req));
	*out_len = sizeof(req);
	return 0;
}

static ssize_t unregister_agent(struct umad_file *uf, const void *in, void *out, size_t *out_len)
{
	struct mad_agent *agent;
	uint32_t id;

	(void)out;
	(void)out_len;
	memcpy(&id, in, sizeof(id));
	if (id >= UMAD_AGENTS || !uf->agents[id])
		return ibfs_fail(uf->file->ibfs, EINVAL, "%s/umad: unregister: no agent %u",
				 uf->where, id);
	agent = uf->agents[id];
	agent_gone(uf, id);
	uf->dev->ops->mad_unregister(agent);
	return 0;
}

static ssize_t enable_pkey(struct umad_file *uf, const void *in, void *out, size_t *out_len)
{
	(void)in;
	(void)out;
	(void)out_len;
	if (uf->used)
		return ibfs_fail(uf->file->ibfs, EINVAL, "%s/umad: enable_pkey after an agent was registered",
				 uf->where);
	uf->pkey_index = true;
	umad_send_publish(uf);
	return 0;
}

static const struct umad_ioctl {
	unsigned int cmd;
	bool device;			/* needs the device: EPIPE without */
	ssize_t (*run)(struct umad_file *uf, const void *in, void *out, size_t *out_len);
} umad_ioctls[] = {
	{ IB_USER_MAD_REGISTER_AGENT, true, register_agent },
	{ IB_USER_MAD_UNREGISTER_AGENT, false, unregister_agent },
	{ IB_USER_MAD_ENABLE_PKEY, false, enable_pkey },
	{ IB_USER_MAD_REGISTER_AGENT2, true, register_agent2 },
	{ IBFS_UMAD_RING, true, umad_ring_make },
};

static const struct umad_ioctl *find_ioctl(unsigned int cmd)
{
	for (size_t i = 0; i < sizeof(umad_ioctls) / sizeof(umad_ioctls[0]); i++)
		if (umad_ioctls[i].cmd == cmd)
			return &umad_ioctls[i];
	return NULL;
}

static ssize_t umad_ioctl(struct file *file, struct fs_req *req, unsigned int cmd, uint64_t arg,
			  const void *in, size_t in_len, void *out, size_t out_room, size_t *out_len)
{
	const struct umad_ioctl *call = find_ioctl(cmd);
	struct umad_file *uf = file->priv;

	(void)req;
	(void)arg;
	umad_send_drain(uf);
	if (!call)
		return -ENOTTY;
	if (call->device && !uf->dev)
		return gone(uf, EPIPE);
	if ((_IOC_DIR(cmd) & _IOC_WRITE && in_len < _IOC_SIZE(cmd)) ||
	    (_IOC_DIR(cmd) & _IOC_READ && out_room < _IOC_SIZE(cmd)))
		return -EFAULT;
	return call->run(uf, in, out, out_len);
}

const struct file_ops umad_ops = {
	.open = umad_open,
	.release = umad_release,
	.read = umad_read,
	.write = umad_write,
	.poll = umad_poll,
	.ioctl = umad_ioctl,
};
