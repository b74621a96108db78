/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TUN device: the interface that the host sees. It is layer 3, so what is
 * read and written is IP packets, each behind a struct virtio_net_hdr. The
 * descriptor stays valid when the interface moves to another namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ipoib/ipoib.h"

/* One packet into a slot: its bytes, 0 when there is none, -errno. */
static ssize_t tun_read_one(struct ipoib *ip, struct ipoib_tx *tx)
{
	struct iovec iov[2] = {
		{ &tx->vnet, sizeof(tx->vnet) },
		{ tx->data + IPOIB_HEADER, IPOIB_TX_DATA - IPOIB_HEADER },
	};
	ssize_t got = readv(ip->tun, iov, 2);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return got > (ssize_t)sizeof(tx->vnet) ? got - (ssize_t)sizeof(tx->vnet) : 0;
}

static void tun_readable(struct ev_loop *loop, ev_io *w, int revents)
{
	struct ipoib *ip = w->data;
	unsigned int i;

	(void)revents;
	for (i = 0; i < IPOIB_BATCH && ip->tun >= 0; i++) {
		struct ipoib_tx *tx = tx_alloc(ip);
		ssize_t len;

		if (!tx) {
			ip->tun_full = true;
			ev_io_stop(loop, w);
			return;
		}
		len = tun_read_one(ip, tx);
		if (len <= 0) {
			tx_free(ip, tx);
			/* The interface was deleted from under us: nothing comes any more. */
			if (len == -EBADFD)
				ev_io_stop(loop, w);
			return;
		}
		tx->len = IPOIB_HEADER + len;
		ipoib_xmit(ip, tx);
	}
}

void tun_resume(struct ipoib *ip)
{
	if (!ip->tun_full)
		return;
	ip->tun_full = false;
	ev_io_start(ip->ibfs->loop, &ip->tun_io);
}

static int tun_make(struct ipoib *ip, int fd)
{
	struct ifreq ifr = { .ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR };

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ip->ifname[0] ? ip->ifname : "ib%d");
	if (ioctl(fd, TUNSETIFF, &ifr))
		return -errno;
	snprintf(ip->ifname, sizeof(ip->ifname), "%.15s", ifr.ifr_name);
	return 0;
}

int tun_open(struct ipoib *ip)
{
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int err;

	if (fd < 0)
		return ibfs_fail(ip->ibfs, errno, "ipoib: /dev/net/tun: %s", strerror(errno));
	err = tun_make(ip, fd);
	if (err) {
		close(fd);
		return ibfs_fail(ip->ibfs, -err, "ipoib: interface \"%s\": %s", ip->ifname,
				 strerror(-err));
	}
	ip->tun = fd;
	ip->carrier = true;
	tun_carrier(ip, false);
	tun_offloads(ip);
	ev_io_init(&ip->tun_io, tun_readable, fd, EV_READ);
	ip->tun_io.data = ip;
	ev_io_start(ip->ibfs->loop, &ip->tun_io);
	return 0;
}

void tun_close(struct ipoib *ip)
{
	if (ip->tun < 0)
		return;
	ev_io_stop(ip->ibfs->loop, &ip->tun_io);
	close(ip->tun);
	ip->tun = -1;
}

void tun_carrier(struct ipoib *ip, bool on)
{
	int value = on;

	if (on == ip->carrier || ip->tun < 0)
		return;
	ip->carrier = on;
	ioctl(ip->tun, TUNSETCARRIER, &value);
}

/* Connected mode has no segmentation: a message is as long as a segment can be. */
void tun_offloads(struct ipoib *ip)
{
	unsigned int flags = 0;

	if (ip->tun < 0)
		return;
	if (ip->offload)
		flags |= TUN_F_CSUM;
	if (ip->offload && !ip->connected && ip->can_lso)
		flags |= TUN_F_TSO4 | TUN_F_TSO6;
	ioctl(ip->tun, TUNSETOFFLOAD, flags);
}

void tun_write(struct ipoib *ip, const void *packet, size_t len, bool csum_ok)
{
	struct virtio_net_hdr vnet = { .flags = csum_ok ? VIRTIO_NET_HDR_F_DATA_VALID : 0 };
	struct iovec iov[2] = { { &vnet, sizeof(vnet) }, { (void *)packet, len } };

	if (ip->tun < 0)
		return;
	if (writev(ip->tun, iov, 2) < 0)
		ip->stats[errno == EAGAIN || errno == ENOMEM ? IPOIB_NORCVBUF : IPOIB_RX_DROPPED]++;
}
