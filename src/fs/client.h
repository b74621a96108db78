/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that makes a request, for what the daemon does in it and to it: its
 * memory, its descriptors, what /proc tells. The kernel has a caller wait until its
 * request is answered; only so long is its number its own, and is it the program that
 * asked. A helper binds the client in that time: it opens the process's memory, which
 * stays that of one address space whatever becomes of the process, and compares whose
 * process it is with who opened the file, as the kernel's ib_safe_file_access() does.
 *
 *	client.c	its life, and binding
 *	client_id.c	whose it is
 *	client_learn.c	whose the one is that opens a file
 *	client_copy.c	its memory
 *	client_maps.c	what is mapped there
 *	client_mem.c	the buffers of its system calls, its limits (client_mem.h)
 */
#ifndef IBFS_FS_CLIENT_H
#define IBFS_FS_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct fs_req;
struct iovec;
struct stat;

enum { CLIENT_PROGRAM = 16 };		/* bytes */

/* Whose a process is, and what it runs: credentials(7), proc_pid_status(5). */
struct client_id {
	bool known;			/* else all else isn't */
	uid_t uid[4];			/* real, effective, saved, of the file system */
	gid_t gid[4];
	uint64_t permitted, effective;	/* capabilities */
	dev_t ns_dev;
	ino_t ns_ino;			/* where these count, if there are any */
	bool readable;			/* its user may read its memory: PR_GET_DUMPABLE */
	/*
	 * 16 random bytes that the kernel gave to the program, getauxval(3) AT_RANDOM.
	 * They tell the programs that a process runs one after the other apart, and
	 * nobody knows another's beforehand.
	 */
	bool has_program;
	uint8_t program[CLIENT_PROGRAM];
};

/* Helper: that of the thread whose /proc directory is dir. 0 or -errno; the program by itself. */
int client_id_read(struct client_id *id, pid_t *tgid, int dir);
void client_id_program(struct client_id *id, int dir, int mem);
/*
 * What `other` has that `id` doesn't have, in words, or NULL: id's user could do to the
 * process what the daemon does for it. Kernel: ptrace_may_access().
 */
const char *client_id_differs(const struct client_id *id, const struct client_id *other);
/* Helper: may it lock memory without limit? */
bool client_id_locks(const struct client_id *id);

struct client {
	atomic_uint refs;		/* by whoever works for it, and its request */
	atomic_bool answered;		/* its request: from then on it does what it likes */
	pid_t tid;
	struct client_id opener;	/* of the file: whom it has to be like, */
	bool anybody;			/* unless it needn't */
	char why[96];			/* it isn't; "": it is */
	/* since it is bound */
	bool bound, kept;
	struct client_id id;
	pid_t tgid;
	int dir;			/* of /proc, the thread's; only while the client waits */
	int mem, maps;			/* /proc/PID/mem and maps, of the address space for ever */
	pthread_mutex_t maps_lock;
};

/*
 * In the loop. The client of a request whose caller waits, one reference; NULL: no
 * memory. opener: what client_learn() has found out; NULL: it may be anybody, who is
 * called back for nothing but what the kernel would do by itself.
 */
struct client *client_new(struct fs_req *req, const struct client_id *opener);
void client_put(struct client *client);		/* NULL is allowed; also by a helper */
/* The request is about to be answered, by fs_reply() or by its operation's end. */
void client_answered(struct fs_req *req);
/*
 * A reference to a bound one for its memory alone, also when its request is answered:
 * CLIENT_KEPT descriptors of the daemon. Others are open only while a helper works.
 */
struct client *client_keep_memory(struct client *client);
enum { CLIENT_KEPT = 2 };
/* A helper has done its work; the next one binds it again. Also of NULL. */
void client_rest(struct client *client);
/*
 * An operation's open(): who opens the file. FS_PENDING: *id is there when the request
 * is answered; or what the operation returns. id may stay unknown.
 */
ssize_t client_learn(struct fs_req *req, struct client_id *id);
/* An error of what a helper did: told in `errors` if it means who asked. name: the file's. */
int client_error(const struct fs_req *req, const struct client *client, const char *name, int err);

/*
 * The rest is for helpers.
 *
 * Bind it, unless it is. -EACCES: it differs from the opener; -EPERM: the daemon may
 * not touch it; -ECANCELED: it was answered meanwhile; -ESRCH, -EMFILE.
 */
int client_bind(struct client *client);
/* Find out whose it is, alone; client->id may stay unknown. */
void client_look(struct client *client);
/* Has it waited until now? What was found by its number up to here is its own then. */
bool client_waits(const struct client *client);

/*
 * Of a bound one. Copy bytes from and to its memory, num parts, of one length each:
 * 0, -EFAULT, or -ECANCELED. Where it may not read or write itself nothing is.
 */
int client_read(struct client *client, const struct iovec *local, const struct iovec *remote,
		unsigned int num);
int client_write(struct client *client, const struct iovec *local, const struct iovec *remote,
		 unsigned int num);
/* All of length bytes, without a look at their protection. */
int client_move(const struct client *client, void *buf, uint64_t addr, size_t length, bool write);

/* A mapping in its address space: proc_pid_maps(5). */
struct client_mapping {
	uint64_t from, to, off;
	bool read, write, shared;
	unsigned int major, minor;
	uint64_t ino;
};
/*
 * Is all of the range mapped, and may it read, or also write it? 0, -EFAULT. last: the
 * mapping of its end, unless NULL.
 */
int client_check(struct client *client, uint64_t start, uint64_t length, bool write,
		 struct client_mapping *last);

/* Does the kernel know it without the process's threads? */
bool client_maps_asked(const struct client *client);

/* Of one that waits, or -ECANCELED. A file in its directory of /proc. */
int client_open(const struct client *client, const char *name, int flags);
/* Its descriptor: what it is called, of which inode it is; itself, for the daemon. */
int client_fd_name(const struct client *client, int fd, char *name, size_t size);
int client_fd_stat(const struct client *client, int fd, struct stat *st);
int client_fd_take(const struct client *client, int fd);

#endif
