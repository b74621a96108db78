/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MAD agents of a device of the system, relayed one to one: each has a umad
 * file of the system to itself, whose driver does transaction ids, time-outs
 * and RMPP (<rdma/ib_user_mad.h>, ABI 5). Messages that come in are read on the
 * waiter's thread, with a buffer that grows to the longest.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_mad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utlist.h>

#include "backend/verbs/rdev.h"

enum { FIRST_ROOM = sizeof(struct ib_user_mad_hdr) + 256, MOST_ROOM = 64 << 20 };

struct mad_agent {
	struct mad_agent *prev, *next;
	struct rdev *rdev;
	struct umad_watch *watch;
	const struct mad_client_ops *ops;
	void *client;
	uint32_t num;			/* never used again of this device */
	uint32_t id;			/* in its umad file */
	int fd;				/* the watch's */
};

/* Its umad file, and what the thread reads from it. */
struct umad_watch {
	struct watch watch;		/* first */
	struct rdevs *rdevs;
	unsigned int dev;
	uint32_t agent;
	uint8_t *buf;
	size_t room;
};

struct mad_note {
	struct note note;		/* first */
	unsigned int dev;
	uint32_t agent;
	size_t len;
	struct ib_user_mad_hdr hdr;
	uint8_t mad[];
};

/* --- what comes in --- */

static void fill_addr(struct mad_addr *addr, const struct ib_user_mad_hdr *hdr)
{
	*addr = (struct mad_addr){
		.lid = ntohs(hdr->lid), .sl = hdr->sl, .path_bits = hdr->path_bits,
		.qpn = ntohl(hdr->qpn), .qkey = ntohl(hdr->qkey), .pkey_index = hdr->pkey_index,
		.grh = hdr->grh_present, .gid_index = hdr->gid_index,
		.hop_limit = hdr->hop_limit, .traffic_class = hdr->traffic_class,
		.flow_label = ntohl(hdr->flow_label),
		.user = { hdr->timeout_ms, hdr->retries, hdr->length },
	};
	memcpy(&addr->gid, hdr->gid, sizeof(addr->gid));
}

static void on_mad(struct note *note)
{
	const struct mad_note *in = (const struct mad_note *)note;
	struct rdev *rdev = rdev_get(note_ibfs(note), in->dev);
	struct mad_agent *agent = NULL;
	struct mad_addr addr;

	if (rdev)
		DL_SEARCH_SCALAR(rdev->agents, agent, num, in->agent);
	if (agent) {
		fill_addr(&addr, &in->hdr);
		agent->ops->recv(agent->client, agent, (int)in->hdr.status, &addr, in->mad,
				 in->len);
	}
	free(note);
}

static void send_note(struct umad_watch *uw, size_t len)
{
	struct mad_note *in = malloc(sizeof(*in) + len);

	if (!in)
		return;
	in->note = (struct note){ .fn = on_mad };
	in->dev = uw->dev;
	in->agent = uw->agent;
	in->len = len;
	memcpy(&in->hdr, uw->buf, sizeof(in->hdr));
	memcpy(in->mad, uw->buf + sizeof(in->hdr), len);
	note_send(uw->rdevs, &in->note);
}

/* ENOSPC: the header that was read tells how long the message is. */
static bool grow(struct umad_watch *uw)
{
	struct ib_user_mad_hdr hdr;
	size_t room = uw->room * 2;
	uint8_t *buf;

	memcpy(&hdr, uw->buf, sizeof(hdr));
	if (hdr.length > room && hdr.length <= MOST_ROOM)
		room = hdr.length;
	if (room > MOST_ROOM)
		return false;
	buf = realloc(uw->buf, room);
	if (!buf)
		return false;
	uw->buf = buf;
	uw->room = room;
	return true;
}

static bool umad_ready(struct watch *watch)
{
	struct umad_watch *uw = (struct umad_watch *)watch;
	ssize_t n;

	do
		n = read(watch->fd, uw->buf, uw->room);
	while (n < 0 && errno == ENOSPC && grow(uw));
	if (n >= (ssize_t)sizeof(struct ib_user_mad_hdr)) {
		send_note(uw, (size_t)n - sizeof(struct ib_user_mad_hdr));
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	rdev_note_lost(uw->rdevs, uw->dev);
	return false;
}

static void umad_free(struct watch *watch)
{
	struct umad_watch *uw = (struct umad_watch *)watch;

	close(watch->fd);
	rdevs_put(uw->rdevs);
	free(uw->buf);
	free(uw);
}

/* --- agents --- */

struct reg_call {
	char device[64];
	unsigned int port;
	struct ib_user_mad_reg_req2 req;
	int fd, err;
};

static void register_job(void *arg)
{
	struct reg_call *call = arg;

	call->fd = umad_fd_open(call->device, call->port);
	if (call->fd < 0) {
		call->err = call->fd;
		return;
	}
	if (!ioctl(call->fd, IB_USER_MAD_REGISTER_AGENT2, &call->req))
		return;
	call->err = -errno;
	close(call->fd);
}

static void unregister_late(void *arg)
{
	const struct reg_call *call = arg;

	if (!call->err)
		close(call->fd);
}

static void fill_reg(struct ib_user_mad_reg_req2 *req, const struct mad_reg *reg)
{
	*req = (struct ib_user_mad_reg_req2){
		.qpn = reg->qpn, .mgmt_class = reg->mgmt_class,
		.mgmt_class_version = reg->class_version,
		.flags = reg->user_rmpp ? IB_USER_MAD_USER_RMPP : 0,
		.method_mask = { reg->methods[0], reg->methods[1] },
		.oui = (uint32_t)reg->oui[0] << 16 | (uint32_t)reg->oui[1] << 8 | reg->oui[2],
		.rmpp_version = reg->rmpp_version,
	};
}

static struct umad_watch *umad_watch_new(struct rdev *rdev, int fd, uint32_t agent)
{
	struct umad_watch *uw = calloc(1, sizeof(*uw));
	uint8_t *buf = calloc(1, FIRST_ROOM);

	if (!uw || !buf) {
		free(uw);
		free(buf);
		return NULL;
	}
	uw->watch = (struct watch){ .fd = fd, .ready = umad_ready, .free = umad_free };
	uw->rdevs = rdevs_get(rdev->rdevs);
	uw->dev = rdev->dev.num;
	uw->agent = agent;
	uw->buf = buf;
	uw->room = FIRST_ROOM;
	return uw;
}

static void close_job(void *arg)
{
	int *fd = arg;

	close(*fd);
}

static int agent_new(struct rdev *rdev, int fd, uint32_t id, struct mad_agent **out)
{
	struct mad_agent *agent = calloc(1, sizeof(*agent));

	if (agent)
		agent->watch = umad_watch_new(rdev, fd, ++rdev->next_agent);
	if (!agent || !agent->watch) {
		free(agent);
		hand_post(rdev->hand, close_job, &fd, sizeof(fd));
		return -ENOMEM;
	}
	agent->rdev = rdev;
	agent->num = rdev->next_agent;
	agent->id = id;
	agent->fd = fd;
	DL_APPEND(rdev->agents, agent);
	*out = agent;
	return 0;
}

int rdev_mad_register(struct ibfs_device *dev, unsigned int port, const struct mad_reg *reg,
		      const struct mad_client_ops *ops, void *client, struct mad_agent **new_agent)
{
	struct rdev *rdev = rdev_of(dev);
	struct reg_call call = { .port = port };
	struct mad_agent *agent;
	int err;

	if (reg->own_tids)
		return ibfs_fail(dev->ibfs, EOPNOTSUPP, "%s/%u: connections of the "
				 "system's devices are the kernel's to make", dev->name, port);
	memcpy(call.device, rdev->system, sizeof(call.device));
	fill_reg(&call.req, reg);
	err = rdev_call_long(rdev, register_job, unregister_late, &call, sizeof(call), 0);
	if (!err)
		err = call.err;
	if (err)
		return ibfs_fail(dev->ibfs, -err, "%s/%u: the system's umad refuses class 0x%02x: %s",
				 dev->name, port, reg->mgmt_class, strerror(-err));
	err = agent_new(rdev, call.fd, call.req.id, &agent);
	if (err)
		return err;
	agent->ops = ops;
	agent->client = client;
	watch_add(rdev->waiter, &agent->watch->watch);
	*new_agent = agent;
	return 0;
}

struct unreg_call {
	int fd;
	uint32_t id;
};

static void unregister_job(void *arg)
{
	struct unreg_call *call = arg;

	ioctl(call->fd, IB_USER_MAD_UNREGISTER_AGENT, &call->id);
}

static void agent_free(struct mad_agent *agent)
{
	DL_DELETE(agent->rdev->agents, agent);
	watch_del(agent->rdev->waiter, &agent->watch->watch);
	free(agent);
}

/* Whoever registers next may want its methods: it has gone from the system when this returns. */
void rdev_mad_unregister(struct mad_agent *agent)
{
	struct unreg_call call = { .fd = agent->fd, .id = agent->id };
	struct rdev *rdev = agent->rdev;

	if (!rdev->lost)
		rdev_call(rdev, unregister_job, &call, sizeof(call));
	agent_free(agent);
}

void rdev_mad_gone(struct rdev *rdev)
{
	while (rdev->agents) {
		struct mad_agent *agent = rdev->agents;

		agent->ops->gone(agent->client, agent);
		agent_free(agent);
	}
}

/* --- what goes out --- */

struct send_call {
	int fd, err;
	size_t len;			/* of hdr and the MAD behind it */
	struct ib_user_mad_hdr hdr;
	uint8_t mad[];
};

static void send_job(void *arg)
{
	struct send_call *call = arg;
	ssize_t n = write(call->fd, &call->hdr, call->len);

	call->err = n < 0 ? -errno : (size_t)n < call->len ? -EIO : 0;
}

static void fill_hdr(struct ib_user_mad_hdr *hdr, const struct mad_addr *addr)
{
	*hdr = (struct ib_user_mad_hdr){
		.length = addr->user[2],
		.qpn = htonl(addr->qpn), .qkey = htonl(addr->qkey), .lid = htons(addr->lid),
		.sl = addr->sl, .path_bits = addr->path_bits, .grh_present = addr->grh,
		.gid_index = addr->gid_index, .hop_limit = addr->hop_limit,
		.traffic_class = addr->traffic_class, .flow_label = htonl(addr->flow_label),
		.pkey_index = addr->pkey_index,
	};
	memcpy(hdr->gid, &addr->gid, sizeof(hdr->gid));
}

int rdev_mad_send(struct mad_agent *agent, const struct mad_addr *addr, const void *mad,
		  size_t len, unsigned int timeout_ms, unsigned int retries)
{
	struct rdev *rdev = agent->rdev;
	struct send_call *call = calloc(1, sizeof(*call) + len);
	int err;

	if (!call)
		return -ENOMEM;
	call->fd = agent->fd;
	call->len = sizeof(call->hdr) + len;
	fill_hdr(&call->hdr, addr);
	call->hdr.id = agent->id;
	call->hdr.timeout_ms = timeout_ms;
	call->hdr.retries = retries;
	memcpy(call->mad, mad, len);
	err = rdev_call(rdev, send_job, call, sizeof(*call) + len);
	if (!err && call->err)
		err = ibfs_fail(rdev->dev.ibfs, -call->err, "%s: the system's umad refuses the MAD: %s",
				rdev->dev.name, strerror(-call->err));
	free(call);
	return err;
}

/* --- issm --- */

/* While it is open, the port says that it has a subnet manager. */
struct issm {
	struct issm *prev, *next;
	unsigned int port;
	int fd;
};

struct issm_call {
	char device[64];
	unsigned int port;
	int fd;
};

static void issm_job(void *arg)
{
	struct issm_call *call = arg;

	call->fd = issm_fd_open(call->device, call->port);
}

static void issm_late(void *arg)
{
	const struct issm_call *call = arg;

	if (call->fd >= 0)
		close(call->fd);
}

static int issm_open(struct rdev *rdev, unsigned int port)
{
	struct issm_call call = { .port = port };
	struct issm *issm = calloc(1, sizeof(*issm));
	int err;

	if (!issm)
		return -ENOMEM;
	memcpy(call.device, rdev->system, sizeof(call.device));
	err = rdev_call_long(rdev, issm_job, issm_late, &call, sizeof(call), 0);
	if (!err && call.fd < 0)
		err = ibfs_fail(rdev->dev.ibfs, -call.fd, "%s/%u: the system's issm: %s",
				rdev->dev.name, port, strerror(-call.fd));
	if (err) {
		free(issm);
		return err;
	}
	issm->port = port;
	issm->fd = call.fd;
	DL_APPEND(rdev->issms, issm);
	return 0;
}

int rdev_set_issm(struct ibfs_device *dev, unsigned int port, bool on)
{
	struct rdev *rdev = rdev_of(dev);
	struct issm *issm;

	DL_SEARCH_SCALAR(rdev->issms, issm, port, port);
	if (on)
		return issm ? 0 : issm_open(rdev, port);
	if (!issm)
		return 0;
	DL_DELETE(rdev->issms, issm);
	if (rdev->lost)
		hand_post(rdev->hand, close_job, &issm->fd, sizeof(issm->fd));
	else
		rdev_call(rdev, close_job, &issm->fd, sizeof(issm->fd));
	free(issm);
	return 0;
}

void rdev_issm_gone(struct rdev *rdev)
{
	while (rdev->issms)
		rdev_set_issm(&rdev->dev, rdev->issms->port, false);
}
