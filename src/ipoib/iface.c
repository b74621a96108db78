/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An interface's life, and how it follows its port: events only mark what has
 * changed, a task then does what follows from it. The names of events and
 * notices are those of ibp(7D).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "ipoib/ipoib.h"

#define PKEY_FULL	0x8000
#define MIN_MTU		68	/* RFC 791 */

void ipoib_notice(struct ipoib *ip, const char *event, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ip->notice, sizeof(ip->notice), fmt, ap);
	va_end(ap);
	ipoib_event(ip, event);
	ibfs_log(ip->ibfs, "NOTICE: %s: %s", ip->ifname, ip->notice);
}

void ipoib_event(struct ipoib *ip, const char *event)
{
	char label[32];

	if (ip->dev)
		textring_add(ip->ibfs->events, "device=%s port=%u ipoib=%s event=%s",
			     ip->dev->name, ip->port, ipoib_label(ip, label), event);
}

const char *ipoib_label(const struct ipoib *ip, char buf[32])
{
	if (ip->name)
		return ip->name;
	snprintf(buf, 32, "%u", ip->num);
	return buf;
}

struct ipoib *ipoib_new(struct ibfs *ibfs, struct ibfs_device *dev, unsigned int port,
			const char *name, uid_t uid, gid_t gid)
{
	struct ipoib *ip = calloc(1, sizeof(*ip));

	if (!ip)
		return NULL;
	if (name) {
		ip->name = strdup(name);
		if (!ip->name) {
			free(ip);
			return NULL;
		}
	}
	ip->ibfs = ibfs;
	ip->dev = dev;
	ip->ops = dev->ops->verbs;
	ip->devnum = dev->num;
	ip->port = port;
	ip->num = ibfs->next_ipoib++ & 0xfffffff;
	ip->owner_uid = uid;
	ip->owner_gid = gid;
	ip->tun = ip->host.ctl = -1;
	ip->connected = ip->offload = true;
	DL_APPEND(ibfs->ipoibs, ip);
	return ip;
}

/* In reverse order of ipoib_create(); also of what it made until it failed. */
static void unmake(struct ipoib *ip)
{
	ev_timer_stop(ip->ibfs->loop, &ip->tick);
	task_cancel(ip->ibfs->tasks, &ip->work);
	task_cancel(ip->ibfs->tasks, &ip->sa_task);
	ip->active = ip->created = false;
	host_close(ip);
	tun_close(ip);
	if (ip->dev) {
		neigh_close(ip);
		peers_close(ip);
		mcast_close(ip);
		sa_close(ip);
		conns_close(ip);
		ud_close(ip);
	}
	ip->mcast_mtu = 0;
	frames_end(ip);
}

static void drop(struct ipoib *ip)
{
	if (ip->open || !ip->removed)
		return;
	free(ip->name);
	free(ip);
}

static void unlink_it(struct ipoib *ip)
{
	if (ip->removed)
		return;
	unmake(ip);
	DL_DELETE(ip->ibfs->ipoibs, ip);
	ip->removed = true;
}

void ipoib_remove(struct ipoib *ip)
{
	unlink_it(ip);
	drop(ip);
}

void ipoib_get(struct ipoib *ip)
{
	ip->open++;
}

void ipoib_put(struct ipoib *ip)
{
	ip->open--;
	if (!ip->open && !ip->name)
		unlink_it(ip);
	drop(ip);
}

struct ipoib *ipoib_from(struct ibfs *ibfs, unsigned int dev, unsigned int port, uint64_t num)
{
	struct ipoib *ip;

	DL_FOREACH(ibfs->ipoibs, ip)
		if (ip->num >= num && ip->devnum == dev && ip->port == port)
			return ip;
	return NULL;
}

struct ipoib *ipoib_next(struct ibfs *ibfs, uint64_t num)
{
	struct ipoib *ip;

	DL_FOREACH(ibfs->ipoibs, ip)
		if (ip->num >= num)
			return ip;
	return NULL;
}

struct ipoib *ipoib_find(struct ibfs *ibfs, unsigned int dev, unsigned int port, const char *name)
{
	struct ipoib *ip;
	char label[32];

	DL_FOREACH(ibfs->ipoibs, ip)
		if (ip->devnum == dev && ip->port == port && !strcmp(ipoib_label(ip, label), name))
			return ip;
	return NULL;
}

struct ibfs *ipoib_ibfs(const struct ipoib *ip)
{
	return ip->ibfs;
}

uint32_t ipoib_num(const struct ipoib *ip)
{
	return ip->num;
}

const char *ipoib_name(const struct ipoib *ip)
{
	return ip->name;
}

const char *ipoib_ifname(const struct ipoib *ip)
{
	return ip->ifname;
}

bool ipoib_gone(const struct ipoib *ip)
{
	return ip->removed || !ip->dev;
}

void ipoib_owner(const struct ipoib *ip, uid_t *uid, gid_t *gid)
{
	*uid = ip->owner_uid;
	*gid = ip->owner_gid;
}

uint64_t ipoib_stat(const struct ipoib *ip, enum ipoib_stat stat)
{
	return ip->stats[stat];
}

static void set_addresses(struct ipoib *ip)
{
	union ibv_gid mgid;

	ip->addr.raw[0] = ip->listener ? IPOIB_FLAG_RC : 0;
	ip->addr.raw[1] = ip->qpn >> 16;
	ip->addr.raw[2] = ip->qpn >> 8;
	ip->addr.raw[3] = ip->qpn;
	memcpy(ip->addr.raw + 4, ip->gid.raw, 16);
	mcast_broadcast_gid(ip, &mgid);
	memset(ip->broadcast.raw, 0xff, 4);
	ip->broadcast.raw[0] = 0;
	memcpy(ip->broadcast.raw + 4, mgid.raw, 16);
}

unsigned int ipoib_max_mtu(const struct ipoib *ip)
{
	if (ip->connected)
		return IPOIB_CM_MTU;
	return ip->mcast_mtu ? ip->mcast_mtu : (128U << ip->attr.active_mtu) - IPOIB_HEADER;
}

void ipoib_apply_mtu(struct ipoib *ip)
{
	unsigned int max = ipoib_max_mtu(ip);

	host_set_mtu(ip, ip->want_mtu && ip->want_mtu < max ? ip->want_mtu : max);
}

void ipoib_set_up(struct ipoib *ip, bool up)
{
	if (up == ip->carrier)
		return;
	if (up) {
		set_addresses(ip);
		ipoib_apply_mtu(ip);
	}
	tun_carrier(ip, up);
	ipoib_event(ip, up ? "link_up" : "link_down");
	if (!up)
		return;
	host_announce(ip);
	if (ip->host.up)
		igmp_query(ip);
	promisc_tick(ip);
}

/* The port is as it is now: the QP follows its P_Key table, the groups its state. */
static void follow_port(struct ipoib *ip)
{
	uint16_t lid = ip->attr.lid;
	bool was = ip->active;
	int index;

	if (ip->dev->ops->query_port(ip->dev, ip->port, &ip->attr))
		return;
	ip->dev->ops->query_gid(ip->dev, ip->port, 0, &ip->gid);
	index = device_find_pkey(ip->dev, ip->port, ip->pkey);
	ip->active = ip->attr.state == IBV_PORT_ACTIVE && index >= 0;
	ip->static_subnet = ip->active && !ip->attr.sm_lid && ip->ibfs->fabric &&
			    ip->dev->ops->fabric_port;
	if (ip->active && (!ip->qp_ready || (unsigned int)index != ip->pkey_index)) {
		ud_stop(ip);
		ip->pkey_index = index;
		if (ud_start(ip))
			ip->active = false;
	}
	peers_stale(ip);
	/* Answers to what was sent from another LID don't come. */
	if (ip->active && ip->attr.lid != lid)
		conns_drop(ip);
	mcast_port(ip, !ip->active);
	if (was && !ip->active)
		ipoib_set_up(ip, false);
}

static void work_run(struct task *task)
{
	struct ipoib *ip = (struct ipoib *)((char *)task - offsetof(struct ipoib, work));

	if (ip->dev)
		follow_port(ip);
}

void ipoib_port_event(struct ibfs_device *dev, unsigned int port, enum ibv_event_type event)
{
	struct ipoib *ip;

	(void)event;	/* each of them may have changed paths, groups or the P_Key */
	DL_FOREACH(dev->ibfs->ipoibs, ip)
		if (ip->dev == dev && ip->port == port && ip->created)
			task_queue(dev->ibfs->tasks, &ip->work);
}

void ipoib_device_gone(struct ibfs_device *dev)
{
	struct ipoib *ip, *tmp;

	DL_FOREACH_SAFE(dev->ibfs->ipoibs, ip, tmp) {
		if (ip->dev != dev)
			continue;
		ipoib_get(ip);
		unlink_it(ip);
		ip->dev = NULL;
		ip->open--;
		drop(ip);
	}
}

static void tick(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct ipoib *ip = timer->data;

	(void)loop;
	(void)revents;
	mcast_tick(ip);
	neigh_tick(ip);
	peers_tick(ip);
	conns_tick(ip);
	promisc_tick(ip);
}

/* The index of the P_Key, 0: of the first that there is. -ENOENT. */
static int find_pkey(const struct ipoib *ip, uint16_t pkey)
{
	uint16_t found;

	if (pkey)
		return device_find_pkey(ip->dev, ip->port, pkey);
	for (int i = 0; i < ip->attr.pkey_tbl_len; i++)
		if (!ip->dev->ops->query_pkey(ip->dev, ip->port, i, &found) && (found & 0x7fff))
			return i;
	return -ENOENT;
}

static int check_create(struct ipoib *ip, uint16_t pkey)
{
	struct ibfs_device *dev = ip->dev;
	struct ibv_device_attr_ex attr = { 0 };
	uint16_t found;
	int index;

	if (ip->created)
		return ibfs_fail(ip->ibfs, EBUSY, "ipoib: is created already");
	if (!ip->ops)
		return ibfs_fail(ip->ibfs, EOPNOTSUPP, "ipoib: %s has no verbs", dev->name);
	if (dev->ops->query_port(dev, ip->port, &ip->attr) || dev->ops->query_device(dev, &attr))
		return -EIO;
	ip->can_csum = attr.orig_attr.device_cap_flags & IBV_DEVICE_UD_IP_CSUM;
	ip->can_lso = attr.tso_caps.supported_qpts & 1U << IBV_QPT_UD;
	index = find_pkey(ip, pkey);
	if (index < 0 || dev->ops->query_pkey(dev, ip->port, index, &found))
		return ibfs_fail(ip->ibfs, EINVAL, "ipoib: pkey=0x%04x is not in %s's table", pkey,
				 dev->name);
	ip->pkey = found | PKEY_FULL;
	ip->pkey_index = index;
	return 0;
}

int ipoib_create(struct ipoib *ip, uint16_t pkey, const char *ifname)
{
	int err;

	if (!ip->dev)
		return ibfs_fail(ip->ibfs, ENODEV, "ipoib: the device is gone");
	err = check_create(ip, pkey);
	if (err)
		return err;
	ip->qkey = IPOIB_DEFAULT_QKEY;
	snprintf(ip->ifname, sizeof(ip->ifname), "%s", ifname);
	ev_timer_init(&ip->tick, tick, 1, 1);
	ip->tick.data = ip;
	ip->work.fn = work_run;
	err = ud_open(ip);
	if (!err)
		err = conns_open(ip);
	if (!err)
		err = sa_open(ip);
	if (!err)
		err = tun_open(ip);
	if (!err)
		err = host_open(ip);
	if (!err)
		err = mcast_open(ip);
	if (err) {
		unmake(ip);
		return err;
	}
	set_addresses(ip);
	ipoib_apply_mtu(ip);
	ip->created = true;
	ev_timer_start(ip->ibfs->loop, &ip->tick);
	follow_port(ip);
	set_addresses(ip);
	return 0;
}

int ipoib_set_linkmode(struct ipoib *ip, bool connected)
{
	if (connected == ip->connected)
		return 0;
	ip->connected = connected;
	if (!ip->created)
		return 0;
	if (connected)
		conns_listen(ip);
	else
		conns_deaf(ip);
	set_addresses(ip);
	tun_offloads(ip);
	ipoib_apply_mtu(ip);
	/* Others learn by it how they can reach us. */
	host_announce(ip);
	return 0;
}

int ipoib_set_mtu(struct ipoib *ip, unsigned int mtu)
{
	if (mtu < MIN_MTU || mtu > ipoib_max_mtu(ip))
		return ibfs_fail(ip->ibfs, EINVAL, "ipoib: expected an MTU from %d to %u", MIN_MTU,
				 ipoib_max_mtu(ip));
	ip->want_mtu = mtu;
	if (ip->created)
		ipoib_apply_mtu(ip);
	return 0;
}

int ipoib_set_offload(struct ipoib *ip, bool on)
{
	ip->offload = on;
	tun_offloads(ip);
	return 0;
}

int ipoib_set_promisc(struct ipoib *ip, bool on)
{
	promisc_set(ip, on);
	return 0;
}
