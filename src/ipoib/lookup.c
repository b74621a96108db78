/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What others ask of interfaces: which one has an IP address, where it is in the
 * fabric, and where its neighbours are. For connections by IP address.
 */
#include <errno.h>
#include <linux/if_tun.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "ipoib/ipoib.h"

static bool in_netns(const struct ipoib *ip, const struct stat *netns)
{
	int ns = ioctl(ip->tun, TUNGETDEVNETNS, NULL);
	struct stat st;
	bool same;

	if (ns < 0)
		return false;
	same = !fstat(ns, &st) && st.st_dev == netns->st_dev && st.st_ino == netns->st_ino;
	close(ns);
	return same;
}

struct ipoib *ipoib_of_host(struct ibfs *ibfs, const struct in6_addr *addr,
			    const struct stat *netns)
{
	struct ipoib *ip;

	DL_FOREACH(ibfs->ipoibs, ip)
		if (ip->created && ip->dev && host_has(ip, addr) && in_netns(ip, netns))
			return ip;
	return NULL;
}

struct ipoib *ipoib_of_device(struct ibfs *ibfs, unsigned int dev, uint64_t num)
{
	struct ipoib *ip;

	DL_FOREACH(ibfs->ipoibs, ip)
		if (ip->created && ip->num >= num && ip->devnum == dev)
			return ip;
	return NULL;
}

int ipoib_port(const struct ipoib *ip, struct ibfs_device **dev, unsigned int *port, uint16_t *pkey)
{
	if (!ip->dev)
		return -ENODEV;
	*dev = ip->dev;
	*port = ip->port;
	*pkey = ip->pkey;
	return 0;
}

void ipoib_gid(const struct ipoib *ip, union ibv_gid *gid)
{
	*gid = ip->gid;
}

int ipoib_neighbour(struct ipoib *ip, const struct in6_addr *addr, union ibv_gid *gid)
{
	const struct ipoib_neigh *neigh = neigh_get(ip, addr);

	if (!neigh)
		return -ENOMEM;
	if (!neigh->peer)
		return -EAGAIN;
	memcpy(gid->raw, neigh->peer->key + 3, sizeof(gid->raw));
	return 0;
}

void ipoib_mgid(const struct ipoib *ip, const struct in6_addr *addr, union ibv_gid *mgid)
{
	if (IN6_IS_ADDR_V4MAPPED(addr))
		mcast_gid4(ip, addr->s6_addr32[3], mgid);
	else
		mcast_gid6(ip, addr, mgid);
}

int ipoib_subnet(const struct ipoib *ip, struct ipoib_subnet *subnet)
{
	const struct ipoib_group *group = ip->bcast;
	const struct ipoib_route *route;

	if (!ip->dev || !group || group->state != GROUP_JOINED)
		return -EADDRNOTAVAIL;
	route = &group->route;
	*subnet = (struct ipoib_subnet){
		.qkey = group->qkey, .pkey = ip->pkey, .sl = route->sl,
		.flow_label = route->flow_label, .traffic_class = route->traffic_class,
		.hop_limit = route->hop_limit, .mtu = route->mtu, .rate = route->rate,
	};
	return 0;
}
