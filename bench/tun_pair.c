/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two TUN devices and a process that copies packets from each to the other: what
 * IP over anything in user space costs at least.
 *
 * usage: tun_pair IFNAME IFNAME	(until it is killed)
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BATCH	64	/* packets in a turn, as ibfs does */

static int tun_open(const char *name)
{
	struct ifreq ifr = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr)) {
		fprintf(stderr, "tun_pair: %s: %s\n", name, strerror(errno));
		return -1;
	}
	return fd;
}

static void copy(int from, int to)
{
	static char buf[65536];

	for (int i = 0; i < BATCH; i++) {
		ssize_t len = read(from, buf, sizeof(buf));

		/* What the other interface doesn't take is lost, as on any link. */
		if (len <= 0 || write(to, buf, len) < 0)
			return;
	}
}

int main(int argc, char **argv)
{
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };

	if (argc != 3) {
		fprintf(stderr, "usage: tun_pair IFNAME IFNAME\n");
		return 2;
	}
	for (int i = 0; i < 2; i++) {
		fds[i].fd = tun_open(argv[1 + i]);
		if (fds[i].fd < 0)
			return 1;
	}
	while (poll(fds, 2, -1) >= 0 || errno == EINTR) {
		if (fds[0].revents & POLLIN)
			copy(fds[0].fd, fds[1].fd);
		if (fds[1].revents & POLLIN)
			copy(fds[1].fd, fds[0].fd);
	}
	return 1;
}
