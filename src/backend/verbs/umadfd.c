/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files of a port's umad and issm, where libibumad finds them. By itself
 * because its header and the kernel's define the same names.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <unistd.h>

#include "backend/verbs/rdev.h"

int umad_fd_open(const char *device, unsigned int port)
{
	int fd = umad_open_port(device, (int)port);

	return fd >= 0 ? fd : fd == -1 && errno ? -errno : fd;
}

int issm_fd_open(const char *device, unsigned int port)
{
	char path[256];
	int fd = umad_get_issm_path(device, (int)port, path, sizeof(path));

	if (fd < 0)
		return -ENODEV;
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
