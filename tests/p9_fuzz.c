/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole path of 9P messages, from a socket to the tree's files, on the
 * default fabric: whatever a client sends, the server stays well, and when it
 * hangs up nothing of it is left. A libFuzzer target with `make fuzz`; built as
 * other tests it runs the files of directories, once each.
 *
 * An input's first byte is how it comes: bit 0, from another user than root; bit
 * 1, in pieces of 13 bytes. What follows is what the client sends.
 *
 * usage: p9_fuzz DIRECTORY...
 */
#include <dirent.h>
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ibfs/conf.h>

#include "fabric/fabric.h"
#include "fs/9p_server.h"
#include "fs/tree.h"
#include "hca/mad.h"

enum { NOT_ROOT = 1, IN_PIECES = 2, PIECE = 13, HEADER = 7, USER = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "p9_fuzz: %s\n", what);
	abort();
}

static struct p9_server *start(struct ibfs *ibfs)
{
	char *err = NULL;

	ibfs->conf = conf_read(NULL, &err);
	must(ibfs->conf, "no configuration");
	ibfs->conf->p9.msize = 8192;
	ibfs->loop = ev_loop_new(0);
	ibfs->tasks = taskq_new(ibfs->loop);
	ibfs->errors = textring_new(16);
	ibfs->events = textring_new(16);
	ibfs->fabric = fabric_new(ibfs, &sim_node_ops);
	must(fs_init(ibfs) == 0 && conf_apply(ibfs, &err) == 0, "no tree");
	return p9_start(ibfs, NULL, 0);
}

static void stop(struct ibfs *ibfs, struct p9_server *server)
{
	p9_stop(server);
	while (ibfs->devices)
		ibfs->devices->ops->remove(ibfs->devices);
	fabric_free(ibfs->fabric);
	must(ibfs->fs->open_files == 0, "files are still open");
	fs_exit(ibfs);
	textring_free(ibfs->errors);
	textring_free(ibfs->events);
	taskq_free(ibfs->tasks);
	ev_loop_destroy(ibfs->loop);
	conf_free(ibfs->conf);
}

/* What can be done without waiting is done, answers are read. */
static void turn(struct ibfs *ibfs, int fd)
{
	char answers[65536];
	unsigned int i;

	for (i = 0; i < 4; i++) {
		ev_run(ibfs->loop, EVRUN_NOWAIT);
		while (recv(fd, answers, sizeof(answers), MSG_DONTWAIT) > 0)
			;
	}
}

/* false: the server has hung up. */
static bool deliver(struct ibfs *ibfs, int fd, const uint8_t *data, size_t size)
{
	ssize_t n;

	while (size) {
		n = send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			return false;
		data += n > 0 ? n : 0;
		size -= n > 0 ? n : 0;
		turn(ibfs, fd);
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ibfs ibfs = { .background = true };	/* nothing on stderr */
	struct p9_server *server;
	size_t piece, at;
	int ends[2];
	uid_t uid;

	if (!size || size > 65536)
		return 0;
	server = start(&ibfs);
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), "no socket");
	uid = data[0] & NOT_ROOT ? USER : 0;
	must(p9_conn_new(server, ends[1], p9_user_new(uid, uid, fs_groups_new(0)), false),
	     "no connection");
	piece = data[0] & IN_PIECES ? PIECE : size;
	for (at = 1; at < size; at += piece)
		if (!deliver(&ibfs, ends[0], data + at, size - at < piece ? size - at : piece))
			break;
	close(ends[0]);
	for (at = 0; at < 1000 && server->conns; at++)
		ev_run(ibfs.loop, EVRUN_NOWAIT);
	must(!server->conns, "a connection stays");
	must(ibfs.fs->open_files == 0, "a file stays open");
	stop(&ibfs, server);
	return 0;
}

#ifdef IBFS_FUZZ
/* One message is changed, and its size with it; now and then anything at all is. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	size_t at = 1, len = 0, n = 0, end, new;
	uint8_t body[8192];

	if (size < 1 + HEADER || seed % 16 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	for (end = 1; end + HEADER <= size; end += len) {
		len = p9_get_u32(data + end);
		if (len < HEADER || len > size - end)
			break;
		n++;
		if ((seed >> 4) % n == 0)	/* each is the one with the same chance, nearly */
			at = end;
	}
	len = n ? p9_get_u32(data + at) : 0;
	if (!n || len > sizeof(body))
		return LLVMFuzzerMutate(data, size, max_size);
	memcpy(body, data + at + 4, len - 4);
	new = sizeof(body) < max_size - (size - len) - 4 ? sizeof(body) : max_size - (size - len) - 4;
	if (new < len)
		return LLVMFuzzerMutate(data, size, max_size);
	new = LLVMFuzzerMutate(body, len - 4, new) + 4;
	memmove(data + at + new, data + at + len, size - at - len);
	memcpy(data + at + 4, body, new - 4);
	p9_put_u32(data + at, new);
	return size - len + new;
}
#else
static unsigned int run_file(const char *dir, const char *name)
{
	static uint8_t data[65536];
	char path[4096];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, data, sizeof(data));
	close(fd);
	if (n > 0)
		LLVMFuzzerTestOneInput(data, n);
	return n > 0;
}

int main(int argc, char **argv)
{
	struct dirent **names;
	unsigned int runs = 0;
	int i, n;

	while (*++argv) {
		n = scandir(*argv, &names, NULL, alphasort);
		for (i = 0; i < n; i++) {
			runs += run_file(*argv, names[i]->d_name);
			free(names[i]);
		}
		if (n >= 0)
			free(names);
	}
	printf("%u inputs\n", runs);
	return argc < 2 || !runs;
}
#endif
