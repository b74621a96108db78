/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the host does with its interface, by rtnetlink: addresses (the daemon
 * answers for them, RFC 826 and 4861), MTU, up and down. The socket is in the
 * interface's namespace, which TUNGETDEVNETNS gives; it is opened anew when the
 * interface has left for another one.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "ipoib/ipoib.h"

#define TX_QUEUE_LEN 4096	/* the host's, in front of the slots: a burst of datagrams fits */

/* Two sockets in the interface's namespace; only this thread is there, for a moment. */
static int open_sockets(const struct ipoib *ip, int *netlink, int *ctl)
{
	int ns = ioctl(ip->tun, TUNGETDEVNETNS, NULL);
	int back = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int err = 0;

	*netlink = *ctl = -1;
	if (back < 0 || (ns >= 0 && setns(ns, CLONE_NEWNET))) {
		err = -errno;
		goto close;
	}
	*netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
	*ctl = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (*netlink < 0 || *ctl < 0)
		err = -errno;
	if (ns >= 0 && setns(back, CLONE_NEWNET))
		abort();	/* it is our own: there is no way on in a foreign one */
close:
	if (ns >= 0)
		close(ns);
	if (back >= 0)
		close(back);
	return err;
}

static int request_dump(int fd, uint16_t type)
{
	struct {
		struct nlmsghdr nh;
		struct ifaddrmsg msg;
	} req = {
		.nh = { .nlmsg_len = sizeof(req), .nlmsg_type = type,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
	};

	return send(fd, &req, sizeof(req), 0) < 0 ? -errno : 0;
}

static struct ipoib_host_addr *find(const struct ipoib *ip, const struct in6_addr *addr)
{
	struct ipoib_host_addr *a;

	DL_FOREACH(ip->host.addrs, a)
		if (!memcmp(&a->addr, addr, sizeof(*addr)))
			return a;
	return NULL;
}

const struct ipoib_host_addr *host_has(const struct ipoib *ip, const struct in6_addr *addr)
{
	return find(ip, addr);
}

const struct ipoib_host_addr *host_source(const struct ipoib *ip, const struct in6_addr *to)
{
	const struct ipoib_host_addr *a, *best = NULL;
	bool v4 = IN6_IS_ADDR_V4MAPPED(to);

	DL_FOREACH(ip->host.addrs, a) {
		if (v4 != (bool)IN6_IS_ADDR_V4MAPPED(&a->addr))
			continue;
		if (!best || (!v4 && IN6_IS_ADDR_LINKLOCAL(&a->addr)))
			best = a;
	}
	return best;
}

bool host_is_broadcast(const struct ipoib *ip, uint32_t addr)
{
	const struct ipoib_host_addr *a;

	if (addr == INADDR_BROADCAST)
		return true;
	DL_FOREACH(ip->host.addrs, a)
		if (a->broadcast.s6_addr32[3] == addr && IN6_IS_ADDR_V4MAPPED(&a->broadcast))
			return true;
	return false;
}

static void addr_add(struct ipoib *ip, const struct in6_addr *addr,
		     const struct in6_addr *broadcast)
{
	struct ipoib_host_addr *a = find(ip, addr);

	if (!a) {
		a = calloc(1, sizeof(*a));
		if (!a)
			return;
		a->addr = *addr;
		DL_APPEND(ip->host.addrs, a);
		if (IN6_IS_ADDR_V4MAPPED(addr))
			arp_announce(ip, addr->s6_addr32[3]);
		else
			nd_address(ip, addr, true);
	}
	a->broadcast = *broadcast;
}

static void addr_del(struct ipoib *ip, const struct in6_addr *addr)
{
	struct ipoib_host_addr *a = find(ip, addr);

	if (!a)
		return;
	DL_DELETE(ip->host.addrs, a);
	free(a);
	if (!IN6_IS_ADDR_V4MAPPED(addr))
		nd_address(ip, addr, false);
}

/* IFA_LOCAL is the own address of a point-to-point link, IFA_ADDRESS then the other's. */
static void on_addr(struct ipoib *ip, const struct nlmsghdr *nh)
{
	const struct ifaddrmsg *msg = NLMSG_DATA(nh);
	int len = nh->nlmsg_len - NLMSG_LENGTH(sizeof(*msg));
	struct in6_addr addr = { 0 }, broadcast = { 0 };
	size_t size = msg->ifa_family == AF_INET ? 4 : 16;
	const struct rtattr *rta;
	bool local = false;

	if ((int)msg->ifa_index != ip->host.index || (msg->ifa_family != AF_INET &&
						      msg->ifa_family != AF_INET6))
		return;
	for (rta = IFA_RTA(msg); RTA_OK(rta, len); rta = RTA_NEXT(rta, len)) {
		struct in6_addr value = { 0 };

		if (RTA_PAYLOAD(rta) != size)
			continue;
		if (size == 4) {
			in6_from4(&value, 0);
			memcpy(&value.s6_addr32[3], RTA_DATA(rta), 4);
		} else {
			memcpy(&value, RTA_DATA(rta), 16);
		}
		if (rta->rta_type == IFA_LOCAL || (rta->rta_type == IFA_ADDRESS && !local))
			addr = value;
		local |= rta->rta_type == IFA_LOCAL;
		if (rta->rta_type == IFA_BROADCAST)
			broadcast = value;
	}
	/* A TUN has no broadcast flag, so the kernel doesn't say: it is the last of the subnet. */
	if (size == 4 && !broadcast.s6_addr32[3] && msg->ifa_prefixlen < 31)
		in6_from4(&broadcast, addr.s6_addr32[3] |
				      htonl((uint32_t)(0xffffffffULL >> msg->ifa_prefixlen)));
	if (nh->nlmsg_type == RTM_NEWADDR)
		addr_add(ip, &addr, &broadcast);
	else
		addr_del(ip, &addr);
}

static void addrs_free(struct ipoib *ip)
{
	struct ipoib_host_addr *a, *tmp;

	DL_FOREACH_SAFE(ip->host.addrs, a, tmp)
		free(a);
	ip->host.addrs = NULL;
}

/* True: it has gone to another namespace, or altogether. */
static bool on_link(struct ipoib *ip, const struct nlmsghdr *nh)
{
	const struct ifinfomsg *msg = NLMSG_DATA(nh);
	int len = nh->nlmsg_len - NLMSG_LENGTH(sizeof(*msg));
	const struct rtattr *rta;
	bool was_up;

	if (msg->ifi_index != ip->host.index)
		return false;
	if (nh->nlmsg_type == RTM_DELLINK)
		return true;
	was_up = ip->host.up;
	ip->host.up = msg->ifi_flags & IFF_UP;
	if (ip->host.up && !was_up && ip->carrier)
		igmp_query(ip);
	for (rta = IFLA_RTA(msg); RTA_OK(rta, len); rta = RTA_NEXT(rta, len)) {
		if (rta->rta_type == IFLA_MTU && RTA_PAYLOAD(rta) == sizeof(uint32_t))
			memcpy(&ip->host.mtu, RTA_DATA(rta), sizeof(uint32_t));
		else if (rta->rta_type == IFLA_IFNAME)
			snprintf(ip->ifname, sizeof(ip->ifname), "%s",
				 (const char *)RTA_DATA(rta));
	}
	conns_mtu(ip);
	return false;
}

static void host_detach(struct ipoib *ip)
{
	if (ip->host.ctl < 0)
		return;
	ev_io_stop(ip->ibfs->loop, &ip->host.io);
	close(ip->host.io.fd);
	close(ip->host.ctl);
	ip->host.ctl = -1;
	addrs_free(ip);
}

static void host_readable(struct ev_loop *loop, ev_io *w, int revents)
{
	struct ipoib *ip = w->data;
	char buf[8192] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *nh = (const struct nlmsghdr *)buf;
	bool left = false, addrs_due = false;
	ssize_t len;

	(void)loop;
	(void)revents;
	len = recv(w->fd, buf, sizeof(buf), 0);
	if (len < 0 && errno == ENOBUFS)	/* something was lost: ask for all anew */
		request_dump(w->fd, RTM_GETADDR);
	for (; len > 0 && NLMSG_OK(nh, (size_t)len); nh = NLMSG_NEXT(nh, len)) {
		if (nh->nlmsg_type == RTM_NEWADDR || nh->nlmsg_type == RTM_DELADDR)
			on_addr(ip, nh);
		else if (nh->nlmsg_type == RTM_NEWLINK || nh->nlmsg_type == RTM_DELLINK)
			left |= on_link(ip, nh);
		else if (nh->nlmsg_type == NLMSG_DONE && !ip->host.dumped)
			addrs_due = true;
	}
	if (addrs_due) {
		ip->host.dumped = true;
		request_dump(w->fd, RTM_GETADDR);
	}
	if (!left)
		return;
	host_detach(ip);
	if (host_open(ip))
		ipoib_notice(ip, "removed", "the network interface is gone");
	else
		ipoib_apply_mtu(ip);
}

static int host_bind(struct ipoib *ip, int netlink)
{
	struct sockaddr_nl sa = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	struct ifreq ifr = { 0 };

	/* Its name may be another one there. */
	if (ioctl(ip->tun, TUNGETIFF, &ifr))
		return -errno;
	snprintf(ip->ifname, sizeof(ip->ifname), "%.15s", ifr.ifr_name);
	if (ioctl(ip->host.ctl, SIOCGIFINDEX, &ifr))
		return -errno;
	ip->host.index = ifr.ifr_ifindex;
	ifr.ifr_qlen = TX_QUEUE_LEN;
	ioctl(ip->host.ctl, SIOCSIFTXQLEN, &ifr);
	if (bind(netlink, (struct sockaddr *)&sa, sizeof(sa)))
		return -errno;
	ip->host.dumped = false;
	return request_dump(netlink, RTM_GETLINK);
}

void host_announce(struct ipoib *ip)
{
	const struct ipoib_host_addr *a;

	DL_FOREACH(ip->host.addrs, a) {
		if (IN6_IS_ADDR_V4MAPPED(&a->addr))
			arp_announce(ip, a->addr.s6_addr32[3]);
		else
			nd_announce(ip, &a->addr);
	}
}

int host_open(struct ipoib *ip)
{
	int netlink, err;

	err = open_sockets(ip, &netlink, &ip->host.ctl);
	if (!err)
		err = host_bind(ip, netlink);
	if (err) {
		if (netlink >= 0)
			close(netlink);
		if (ip->host.ctl >= 0)
			close(ip->host.ctl);
		ip->host.ctl = -1;
		return err;
	}
	ev_io_init(&ip->host.io, host_readable, netlink, EV_READ);
	ip->host.io.data = ip;
	ev_io_start(ip->ibfs->loop, &ip->host.io);
	return 0;
}

void host_close(struct ipoib *ip)
{
	host_detach(ip);
}

void host_set_mtu(struct ipoib *ip, unsigned int mtu)
{
	struct ifreq ifr = { .ifr_mtu = mtu };

	if (ip->host.ctl < 0)
		return;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ip->ifname);
	if (ioctl(ip->host.ctl, SIOCSIFMTU, &ifr))
		return;
	ip->host.mtu = mtu;
	conns_mtu(ip);
}
