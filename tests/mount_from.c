/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mount_from PID DIRECTORY TARGET: what is mounted at DIRECTORY in that process's
 * mount namespace is mounted at TARGET in this one's, too. Root only.
 */
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static int die(const char *what)
{
	perror(what);
	return 1;
}

static int ns_open(const char *pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

int main(int argc, char **argv)
{
	int here = ns_open("self"), there, tree;

	if (argc != 4)
		return 2;
	there = ns_open(argv[1]);
	if (here < 0 || there < 0 || setns(there, CLONE_NEWNS))
		return die(argv[1]);
	tree = (int)syscall(SYS_open_tree, AT_FDCWD, argv[2], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return die(argv[2]);
	if (setns(here, CLONE_NEWNS) ||
	    syscall(SYS_move_mount, tree, "", AT_FDCWD, argv[3], MOVE_MOUNT_F_EMPTY_PATH))
		return die(argv[3]);
	return 0;
}
