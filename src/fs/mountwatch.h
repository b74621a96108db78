/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is the daemon's file system still mounted here? The kernel ends a FUSE
 * connection only when the last mount of it goes, and a private mount
 * namespace (a container's, ibfs-run's) keeps a copy of every mount. Whoever
 * unmounts the tree where the daemon runs wants it to stop all the same.
 */
#ifndef IBFS_FS_MOUNTWATCH_H
#define IBFS_FS_MOUNTWATCH_H

#include <ev.h>

struct mountwatch {
	struct ev_io io;
	int mounts;			/* /proc/self/mountinfo, -1: not watched */
	int epoll;			/* says when it changed */
	unsigned int major, minor;	/* the file system's device number */
	void (*gone)(struct mountwatch *watch);
};

/*
 * Call gone when no mount of what is mounted on mountpoint is left. Does
 * nothing where /proc doesn't tell. Never touches the mount point itself.
 */
void mountwatch_start(struct mountwatch *watch, struct ev_loop *loop, const char *mountpoint,
		      void (*gone)(struct mountwatch *watch));
void mountwatch_stop(struct mountwatch *watch, struct ev_loop *loop);

#endif
