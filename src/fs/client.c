/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients' life, and how they are bound. What a helper opens by a number is the
 * caller's if the request isn't answered by then: the loop notes that it is before it
 * answers. Should a request ever come whose caller doesn't wait: the memory is opened
 * first, and whose it is read afterwards, since the kernel opens no program's memory
 * before the process has that program's credentials.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ibfs/fs.h>
#include <ibfs/ibfs.h>

#include "fs/client.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL		/* Linux 6.9 */
#endif

/* --- its life --- */

static void get(struct client *client)
{
	atomic_fetch_add(&client->refs, 1);
}

struct client *client_new(struct fs_req *req, const struct client_id *opener)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->refs = 1;
	client->tid = req->caller.pid;
	if (opener)
		client->opener = *opener;
	client->anybody = !opener;
	client->dir = client->mem = client->maps = -1;
	pthread_mutex_init(&client->maps_lock, NULL);
	client_answered(req);
	get(client);
	req->client = client;
	return client;
}

static void close_file(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_files(struct client *client)
{
	close_file(&client->dir);
	close_file(&client->mem);
	close_file(&client->maps);
}

void client_put(struct client *client)
{
	if (!client || atomic_fetch_sub(&client->refs, 1) > 1)
		return;
	close_files(client);
	pthread_mutex_destroy(&client->maps_lock);
	free(client);
}

void client_answered(struct fs_req *req)
{
	struct client *client = req->client;

	if (!client)
		return;
	req->client = NULL;
	atomic_store(&client->answered, true);
	client_put(client);
}

struct client *client_keep_memory(struct client *client)
{
	get(client);
	client->kept = true;
	close_file(&client->dir);
	return client;
}

void client_rest(struct client *client)
{
	if (!client || client->kept)
		return;
	client->bound = false;
	close_files(client);
}

int client_error(const struct fs_req *req, const struct client *client, const char *name, int err)
{
	if (err == -EACCES && client->why[0])
		ibfs_fail(req->ibfs, EACCES, "%s: process %d %s", name, (int)client->tid, client->why);
	return err;
}

/* --- helper: binding --- */

/* What the helper did before has been done when it looks here. */
bool client_waits(const struct client *client)
{
	atomic_thread_fence(memory_order_seq_cst);
	return !atomic_load(&client->answered);
}

static int open_dir(const struct client *client)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d", (int)client->tid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? fd : errno == ENOENT ? -ESRCH : -errno;
}

static int open_in(int dir, const char *name, int flags)
{
	int fd = openat(dir, name, flags | O_CLOEXEC);

	return fd >= 0 ? fd : errno == EACCES ? -EPERM : -errno;
}

/* Text is told as long as the thread lives: the first one's, unless that is gone. */
static void use_leader(struct client *client)
{
	char path[32], byte;
	int fd;

	if (client->tgid == client->tid || client_maps_asked(client))
		return;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)client->tgid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, &byte, 1) == 1) {
		close(client->maps);
		client->maps = fd;
	} else if (fd >= 0) {
		close(fd);
	}
}

/* Without a look at whose it is. */
static int open_all(struct client *client)
{
	client->dir = open_dir(client);
	if (client->dir < 0)
		return client->dir;
	client->mem = open_in(client->dir, "mem", O_RDWR);
	client->maps = open_in(client->dir, "maps", O_RDONLY);
	return client_id_read(&client->id, &client->tgid, client->dir);
}

/* Who isn't like the opener otherwise may be its program: that is for long to ask. */
static int compare(struct client *client)
{
	const char *why;

	if (client->anybody)
		return 0;
	why = client_id_differs(&client->opener, &client->id);
	if (why && !client->id.readable) {
		client_id_program(&client->id, client->dir, client->mem);
		why = client_id_differs(&client->opener, &client->id);
	}
	if (!why)
		return 0;
	snprintf(client->why, sizeof(client->why), "%s", why);
	return -EACCES;
}

static int bind_now(struct client *client)
{
	int err = open_all(client);

	if (!err && client->tgid == getpid())
		err = -EPERM;		/* a page fault of ours, in a file of ours */
	if (!err && client->mem < 0)
		err = client->mem;
	if (!err && client->maps < 0)
		err = client->maps;
	if (!err)
		use_leader(client);
	return err ? err : compare(client);
}

int client_bind(struct client *client)
{
	int err;

	if (client->bound)
		return 0;
	if (!client_waits(client))
		return -ECANCELED;
	err = bind_now(client);
	if (!client_waits(client))
		err = -ECANCELED;
	client->bound = !err;
	if (!err)
		return 0;
	close_files(client);
	return err;
}

/* Whatever goes wrong, it is the opener whom nobody will be like. */
void client_look(struct client *client)
{
	if (!open_all(client))
		client_id_program(&client->id, client->dir, client->mem);
	if (!client_waits(client))
		client->id.known = false;
}

/* --- helper: what it has --- */

int client_open(const struct client *client, const char *name, int flags)
{
	int fd = openat(client->dir, name, flags | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (client_waits(client))
		return fd;
	close(fd);
	return -ECANCELED;
}

int client_fd_name(const struct client *client, int fd, char *name, size_t size)
{
	char path[32];
	ssize_t n;

	snprintf(path, sizeof(path), "fd/%d", fd);
	n = readlinkat(client->dir, path, name, size - 1);
	if (n < 0)
		return -errno;
	name[n] = '\0';
	return client_waits(client) ? 0 : -ECANCELED;
}

int client_fd_stat(const struct client *client, int fd, struct stat *st)
{
	char path[32];

	snprintf(path, sizeof(path), "fd/%d", fd);
	if (fstatat(client->dir, path, st, 0))
		return -errno;
	return client_waits(client) ? 0 : -ECANCELED;
}

/* The thread's own, which are its process's unless it made them others. */
int client_fd_take(const struct client *client, int fd)
{
	int pidfd = (int)syscall(SYS_pidfd_open, client->tid, PIDFD_THREAD), taken;

	if (pidfd < 0)
		pidfd = (int)syscall(SYS_pidfd_open, client->tgid, 0);
	if (pidfd < 0)
		return -errno;
	taken = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (taken < 0)
		taken = -errno;
	close(pidfd);
	if (taken < 0 || client_waits(client))
		return taken;
	close(taken);
	return -ECANCELED;
}
