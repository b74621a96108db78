/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_cm's addresses. An IP address is that of an IPoIB interface of the daemon
 * in the client's network namespace, or loopback, which any port will do for; a
 * GID (AF_IB) is a port's own. The other end's is asked for as its neighbours
 * are. Kernel cma.c: rdma_bind_addr(), rdma_resolve_addr(); addr.c.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include <ibfs/backend.h>
#include <ibfs/ipoib.h>

#include "fs/rows.h"
#include "fs/tree.h"
#include "fs/ucma.h"

#define LOOK_AGAIN	0.01		/* s, for a neighbour's answer */
#define DYNAMIC_FIRST	32768U		/* ports that are given */
#define DYNAMIC_LAST	60999U
#define PRIVILEGED	1024U

/* --- ports of the port spaces --- */

/* May both have the same port? Kernel cma_check_port(). */
static int conflict(const struct ucma_id *id, const struct ucma_id *other)
{
	if (id->reuse && other->reuse && other->state != ID_LISTEN)
		return 0;
	if (id->src.sa.sa_family != other->src.sa.sa_family && (id->afonly || other->afonly))
		return 0;
	if (ucma_addr_any(&id->src) || ucma_addr_any(&other->src))
		return -EADDRNOTAVAIL;
	return ucma_addr_same(&id->src, &other->src) ? -EADDRINUSE : 0;
}

static int check_port(const struct ucma_id *id, uint16_t port)
{
	const struct ucma_id *other;
	int err = 0;

	for (other = id->fs->ucma_ids; other && !err; other = other->hh.next)
		if (other != id && other->ps == id->ps && !other->passive &&
		    other->state != ID_IDLE && ucma_addr_port(&other->src) == port)
			err = conflict(id, other);
	return err;
}

int ucma_use_port(struct ucma_id *id, const struct fs_cred *cred)
{
	uint16_t port = ucma_addr_port(&id->src);
	unsigned int count = DYNAMIC_LAST - DYNAMIC_FIRST + 1, first;

	if (port && port < PRIVILEGED && !fs_privileged(cred))
		return -EACCES;
	if (port)
		return check_port(id, port);
	first = arc4random_uniform(count);
	for (unsigned int i = 0; i < count; i++) {
		port = (uint16_t)(DYNAMIC_FIRST + (first + i) % count);
		if (check_port(id, port))
			continue;
		ucma_addr_set_port(&id->src, port);
		return 0;
	}
	return -EADDRNOTAVAIL;
}

/* --- which port an address is at --- */

static struct ucma_netns netns_of(int fd)
{
	struct ucma_netns netns = { 0 };
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st))
		netns = (struct ucma_netns){ st.st_dev, st.st_ino };
	return netns;
}

static struct ipoib *interface_in(struct ibfs *ibfs, const union ucma_addr *addr,
				  const struct ucma_netns *netns)
{
	const struct stat st = { .st_dev = netns->dev, .st_ino = netns->ino };
	struct in6_addr in6 = ucma_addr_in6(addr);

	return netns->ino ? ipoib_of_host(ibfs, &in6, &st) : NULL;
}

/* The interface that has the address, in the client's network. NULL: none. */
static struct ipoib *interface_of(struct ibfs *ibfs, const union ucma_addr *addr, int netns)
{
	const struct ucma_netns known = netns_of(netns);

	return interface_in(ibfs, addr, &known);
}

struct ipoib *ucma_interface(const struct ucma_id *id, int netns)
{
	return interface_of(id->uf->file->ibfs, &id->src, netns);
}

static bool is_active(struct ibfs_device *dev, unsigned int port)
{
	struct ibv_port_attr attr;

	return !dev->ops->query_port(dev, port, &attr) && attr.state == IBV_PORT_ACTIVE;
}

int ucma_bind_port(struct ucma_id *id, struct ibfs_device *dev, unsigned int port, uint16_t pkey)
{
	int err = 0;

	if (!pkey)
		err = dev->ops->query_pkey(dev, port, 0, &pkey);
	if (!err)
		err = dev->ops->query_gid(dev, port, 0, &id->path.sgid);
	if (err)
		return err;
	id->dev = dev;
	id->port = port;
	id->path.pkey = pkey;
	return 0;
}

/* The first active port, or of AF_IB the one with the GID. Kernel cma_bind_loopback(). */
static int bind_any(struct ucma_id *id, const uint8_t *gid)
{
	struct ibfs *ibfs = id->uf->file->ibfs;
	struct ibfs_device *dev;
	union ibv_gid own;

	DL_FOREACH(ibfs->devices, dev) {
		if (!uverbs_has(dev))
			continue;
		for (unsigned int port = dev->first_port; port <= dev->num_ports; port++) {
			if (gid && (dev->ops->query_gid(dev, port, 0, &own) ||
				    memcmp(own.raw, gid, 16)))
				continue;
			if (gid || is_active(dev, port))
				return ucma_bind_port(id, dev, port, 0);
		}
	}
	return -ENODEV;
}

static int bind_interface(struct ucma_id *id, struct ipoib *ip)
{
	struct ibfs_device *dev;
	unsigned int port;
	uint16_t pkey;

	return ipoib_port(ip, &dev, &port, &pkey) ? -ENODEV : ucma_bind_port(id, dev, port, pkey);
}

static int bind_device(struct ucma_id *id, const union ucma_addr *addr, int netns)
{
	struct ipoib *ip;

	if (ucma_addr_any(addr))
		return 0;
	if (addr->sa.sa_family == AF_IB)
		return bind_any(id, addr->ib.sib_addr);
	ip = interface_of(id->uf->file->ibfs, addr, netns);
	return ip ? bind_interface(id, ip) : -ENODEV;
}

int ucma_bind_addr(struct ucma_id *id, const union ucma_addr *addr, const struct ucma_cmd *cmd)
{
	int err;

	if (id->state != ID_IDLE || !ucma_addr_len(addr))
		return -EINVAL;
	id->src = *addr;
	err = ucma_use_port(id, &cmd->req->cred);
	if (!err)
		err = bind_device(id, addr, cmd->netns);
	if (err) {
		memset(&id->src, 0, sizeof(id->src));
		return err;
	}
	id->state = ID_BOUND;
	return 0;
}

/* --- the other end --- */

void ucma_resolve_stop(struct ucma_id *id)
{
	ev_timer_stop(id->uf->file->ibfs->loop, &id->timer);
}

static void resolved(struct ucma_id *id, int err)
{
	ucma_resolve_stop(id);
	id->state = err ? ID_BOUND : ID_ADDR_DONE;
	ucma_post(id, err ? UCMA_ADDR_ERROR : UCMA_ADDR_RESOLVED, err);
}

/* Is the neighbour known by now? */
static void look(struct ucma_id *id)
{
	struct ibfs *ibfs = id->uf->file->ibfs;
	struct in6_addr to = ucma_addr_in6(&id->dst);
	struct ipoib *ip = interface_in(ibfs, &id->src, &id->netns);
	int err;

	err = ip ? ipoib_neighbour(ip, &to, &id->path.dgid) : -ENODEV;
	if (err == -EAGAIN && ev_now(ibfs->loop) >= id->deadline)
		err = -ETIMEDOUT;
	if (err != -EAGAIN)
		resolved(id, err);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)loop;
	(void)revents;
	look(timer->data);
}

/* What is known already is told from the loop as well, never before the command's end. */
static void start_timer(struct ucma_id *id, double after)
{
	struct ev_loop *loop = id->uf->file->ibfs->loop;

	ev_timer_init(&id->timer, on_timer, after, LOOK_AGAIN);
	id->timer.data = id;
	ev_timer_start(loop, &id->timer);
}

static void on_known(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)loop;
	(void)revents;
	resolved(timer->data, 0);
}

static void resolved_soon(struct ucma_id *id)
{
	ev_timer_init(&id->timer, on_known, 0., LOOK_AGAIN);
	id->timer.data = id;
	ev_timer_start(id->uf->file->ibfs->loop, &id->timer);
}

/* To itself: any port will do, and both ends are there. */
static int resolve_loopback(struct ucma_id *id)
{
	int err = id->dev ? 0 : bind_any(id, NULL);

	if (err)
		return err;
	id->path.dgid = id->path.sgid;
	if (ucma_addr_any(&id->dst) && id->dst.sa.sa_family == AF_INET &&
	    !id->dst.in.sin_addr.s_addr)
		id->dst.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	resolved_soon(id);
	return 0;
}

static int resolve_gid(struct ucma_id *id)
{
	int err = id->dev ? 0 : bind_any(id, NULL);

	if (err)
		return err;
	memcpy(id->path.dgid.raw, id->dst.ib.sib_addr, 16);
	memcpy(id->src.ib.sib_addr, id->path.sgid.raw, 16);
	resolved_soon(id);
	return 0;
}

/* The address that the client's network would send from (its routing table says). */
static int route_source(const union ucma_addr *dst, int netns, union ucma_addr *src)
{
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int fd = -1, err = -ENETUNREACH;
	socklen_t len = ucma_addr_len(dst);

	if (netns < 0 || own < 0 || setns(netns, CLONE_NEWNET))
		goto close;
	fd = socket(dst->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !connect(fd, &dst->sa, len) && !getsockname(fd, &src->sa, &len))
		err = 0;
	if (setns(own, CLONE_NEWNET))
		abort();	/* it is our own: there is no way on in a foreign one */
close:
	if (fd >= 0)
		close(fd);
	if (own >= 0)
		close(own);
	return err;
}

/* The source, if there is none yet, is that of the interface which leads there. */
static int choose_source(struct ucma_id *id, int netns)
{
	uint16_t port = ucma_addr_port(&id->src);
	union ucma_addr src = { .sa.sa_family = AF_UNSPEC };
	int err;

	if (!ucma_addr_any(&id->src))
		return id->src.sa.sa_family == id->dst.sa.sa_family ? 0 : -EINVAL;
	err = route_source(&id->dst, netns, &src);
	if (err)
		return err;
	ucma_addr_set_port(&src, port);
	id->src = src;
	return 0;
}

static int resolve_ip(struct ucma_id *id, int netns)
{
	struct ibfs *ibfs = id->uf->file->ibfs;
	struct in6_addr to;
	struct ipoib *ip;
	int err = choose_source(id, netns);

	if (err)
		return err;
	ip = interface_of(ibfs, &id->src, netns);
	if (!ip)
		return ibfs_fail(ibfs, ENODEV, "rdma_cm: no IPoIB interface leads there");
	err = id->dev ? 0 : bind_interface(id, ip);
	if (err)
		return err;
	/* A group is nobody, and needs no answer. */
	if (ucma_addr_multicast(&id->dst)) {
		to = ucma_addr_in6(&id->dst);
		ipoib_mgid(ip, &to, &id->path.dgid);
		resolved_soon(id);
		return 0;
	}
	/* Its own address is nobody's neighbour. */
	ip = interface_of(ibfs, &id->dst, netns);
	if (ip) {
		ipoib_gid(ip, &id->path.dgid);
		resolved_soon(id);
		return 0;
	}
	id->netns = netns_of(netns);
	start_timer(id, 0.);
	return 0;
}

static int resolve(struct ucma_id *id, const union ucma_addr *src, const union ucma_addr *dst,
		   unsigned int timeout_ms, const struct ucma_cmd *cmd)
{
	union ucma_addr from = { .sa.sa_family = dst->sa.sa_family };
	int err = 0;

	if (id->state == ID_IDLE)
		err = ucma_bind_addr(id, ucma_addr_len(src) ? src : &from, cmd);
	if (err)
		return err;
	if (id->state != ID_BOUND)
		return -EINVAL;
	id->dst = *dst;
	id->deadline = ev_now(id->uf->file->ibfs->loop) + timeout_ms / 1000.;
	if (ucma_addr_any(dst))
		err = resolve_loopback(id);
	else if (dst->sa.sa_family == AF_IB)
		err = resolve_gid(id);
	else
		err = resolve_ip(id, cmd->netns);
	if (!err)
		id->state = ID_ADDR_QUERY;
	return err;
}

/* --- commands --- */

static int bind_id(struct ucma_cmd *cmd, uint32_t num, const void *addr, size_t size)
{
	struct ucma_id *id = ucma_id_get(cmd->uf, num);
	union ucma_addr at = { .sa.sa_family = AF_UNSPEC };

	if (!id)
		return -ENOENT;
	memcpy(&at, addr, size);
	if (!ucma_addr_len(&at) || size < ucma_addr_len(&at))
		return -EINVAL;
	return ucma_bind_addr(id, &at, cmd);
}

int ucma_bind_ip(struct ucma_cmd *cmd)
{
	struct rdma_ucm_bind_ip req;
	int err = ucma_request(cmd, &req, sizeof(req), offsetof(struct rdma_ucm_bind_ip, id) + 4);

	return err ? err : bind_id(cmd, req.id, &req.addr, sizeof(req.addr));
}

int ucma_bind(struct ucma_cmd *cmd)
{
	struct rdma_ucm_bind req;
	int err = ucma_request(cmd, &req, sizeof(req), sizeof(req));

	if (!err && (req.reserved || !req.addr_size || req.addr_size > sizeof(req.addr)))
		err = -EINVAL;
	return err ? err : bind_id(cmd, req.id, &req.addr, req.addr_size);
}

static int resolve_id(struct ucma_cmd *cmd, uint32_t num, const union ucma_addr *src,
		      const union ucma_addr *dst, unsigned int timeout_ms)
{
	struct ucma_id *id = ucma_id_get(cmd->uf, num);

	if (!id)
		return -ENOENT;
	if (!ucma_addr_len(dst))
		return -EINVAL;
	return resolve(id, src, dst, timeout_ms, cmd);
}

int ucma_resolve_ip(struct ucma_cmd *cmd)
{
	union ucma_addr src = { .sa.sa_family = AF_UNSPEC }, dst = src;
	struct rdma_ucm_resolve_ip req;
	int err = ucma_request(cmd, &req, sizeof(req), sizeof(req));

	if (err)
		return err;
	src.in6 = req.src_addr;
	dst.in6 = req.dst_addr;
	if (src.sa.sa_family == AF_IB || dst.sa.sa_family == AF_IB)
		return -EINVAL;
	return resolve_id(cmd, req.id, &src, &dst, req.timeout_ms);
}

int ucma_resolve_addr(struct ucma_cmd *cmd)
{
	union ucma_addr src = { .sa.sa_family = AF_UNSPEC }, dst = src;
	struct rdma_ucm_resolve_addr req;
	int err = ucma_request(cmd, &req, sizeof(req), sizeof(req));

	if (err)
		return err;
	if (req.reserved || req.src_size > sizeof(src) || req.dst_size > sizeof(dst))
		return -EINVAL;
	memcpy(&src, &req.src_addr, req.src_size);
	memcpy(&dst, &req.dst_addr, req.dst_size);
	if (req.src_size && req.src_size < ucma_addr_len(&src))
		return -EINVAL;
	if (req.dst_size < ucma_addr_len(&dst))
		return -EINVAL;
	return resolve_id(cmd, req.id, &src, &dst, req.timeout_ms);
}
