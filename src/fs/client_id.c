/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whose a process is, and whether who opened a file could do to it what the daemon
 * does: the rules of ptrace(2), "Ptrace access mode checking", but that a program may
 * always be called back through a file which it opened itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/auxvec.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/client.h"

/* Behind a line's name; NULL: it isn't there. */
static char *find_line(char *text, const char *name)
{
	text = text ? strstr(text, name) : NULL;
	return text ? text + strlen(name) : NULL;
}

static bool parse_ids(char *text, unsigned int ids[4])
{
	for (int i = 0; text && i < 4; i++)
		ids[i] = (unsigned int)strtoul(text, &text, 10);
	return text;
}

/* The lines that count, in their order; names have no newline. -ESRCH: one isn't there. */
static int parse_status(char *text, struct client_id *id, pid_t *tgid)
{
	char *group = find_line(text, "\nTgid:"), *user = find_line(group, "\nUid:");
	char *gids = find_line(user, "\nGid:"), *permitted = find_line(gids, "\nCapPrm:");
	char *effective = find_line(permitted, "\nCapEff:");

	if (!effective || !parse_ids(user, id->uid) || !parse_ids(gids, id->gid))
		return -ESRCH;
	*tgid = (pid_t)strtol(group, NULL, 10);
	id->permitted = strtoull(permitted, NULL, 16);
	id->effective = strtoull(effective, NULL, 16);
	return 0;
}

/* All of a file of /proc, which groups may make long, as text to be freed. NULL: there is none. */
static char *read_text(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	char *text = NULL, *more;
	size_t len = 0, size = 4096;
	ssize_t n = 1;

	if (fd < 0)
		return NULL;
	do {
		more = realloc(text, size + 1);
		if (!more)
			break;
		text = more;
		n = read(fd, text + len, size - len);
		len += n > 0 ? (size_t)n : 0;
		size *= len == size ? 2 : 1;
	} while (n > 0);
	close(fd);
	if (more && !n) {
		text[len] = '\0';
		return text;
	}
	free(text);
	return NULL;
}

static int read_status(struct client_id *id, pid_t *tgid, int dir)
{
	char *text = read_text(dir, "status");
	int err;

	if (!text)
		return -ESRCH;
	err = parse_status(text, id, tgid);
	free(text);
	return err;
}

/* Files of /proc/PID are root's where the process's user may not read its memory. */
int client_id_read(struct client_id *id, pid_t *tgid, int dir)
{
	struct stat st;
	int err;

	memset(id, 0, sizeof(*id));
	err = read_status(id, tgid, dir);
	if (err)
		return err;
	if (id->permitted && !fstatat(dir, "ns/user", &st, 0)) {
		id->ns_dev = st.st_dev;
		id->ns_ino = st.st_ino;
	}
	id->readable = !fstatat(dir, "mem", &st, 0) && st.st_uid == id->uid[1];
	id->known = true;
	return 0;
}

/* Where the kernel put them; 0: not known. */
static uint64_t random_bytes_at(int dir)
{
	uint64_t aux[128] = { 0 };
	ssize_t n = 0;
	int fd = openat(dir, "auxv", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		n = read(fd, aux, sizeof(aux) - 2 * sizeof(aux[0]));
		close(fd);
	}
	for (ssize_t i = 0; i + 1 < n / (ssize_t)sizeof(aux[0]); i += 2)
		if (aux[i] == AT_RANDOM)
			return aux[i + 1];
	return 0;
}

void client_id_program(struct client_id *id, int dir, int mem)
{
	uint64_t at;

	if (id->has_program || mem < 0)
		return;
	at = random_bytes_at(dir);
	id->has_program = at && pread(mem, id->program, sizeof(id->program), (off_t)at) ==
			       sizeof(id->program);
}

/* A kernel may have none at all. */
static bool same_namespace(const struct client_id *a, const struct client_id *b)
{
	return a->ns_ino == b->ns_ino && a->ns_dev == b->ns_dev;
}

static bool same_program(const struct client_id *a, const struct client_id *b)
{
	return a->has_program && b->has_program && !memcmp(a->program, b->program, CLIENT_PROGRAM);
}

const char *client_id_differs(const struct client_id *id, const struct client_id *other)
{
	if (!id->known || !other->known)
		return "can't be compared with who opened the file";
	if (memcmp(id->uid, other->uid, sizeof(id->uid)) ||
	    memcmp(id->gid, other->gid, sizeof(id->gid)))
		return "has another user or group than who opened the file";
	if (other->permitted & ~id->permitted ||
	    (other->permitted && !same_namespace(id, other)))
		return "has capabilities that who opened the file hadn't";
	if (!other->readable && !same_program(id, other))
		return "runs another program than opened the file, one that may not be looked into";
	return NULL;
}

/* A capability of a user namespace of its own is none here. */
bool client_id_locks(const struct client_id *id)
{
	struct stat own;

	return id->effective >> CAP_IPC_LOCK & 1 && !stat("/proc/self/ns/user", &own) &&
	       own.st_ino == id->ns_ino && own.st_dev == id->ns_dev;
}
