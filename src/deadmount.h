/* SPDX-License-Identifier: BSD-2-Clause */
/* What a daemon that was killed leaves mounted, and a new one takes away. */
#ifndef IBFS_DEADMOUNT_H
#define IBFS_DEADMOUNT_H

/*
 * Unmount what is mounted on mountpoint (absolute, without symbolic links), as
 * long as that is a mount of ibfs whose daemon is gone. May wait for a daemon
 * that is there. How many were unmounted, or -errno when nothing was; -ENOTCONN:
 * one is dead, but another file system's, or not the caller's to unmount.
 */
int deadmount_remove(const char *mountpoint);

#endif
