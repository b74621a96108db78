/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The floor under every file of a FUSE daemon: a file system of one file that
 * gives back what was last written, as plainly as libfuse allows.
 *
 *	echofs MOUNTPOINT COUNT	mounts, times COUNT pairs of write and read of
 *				320 bytes from a child, prints the mean pair in
 *				ns and the daemon's own processor time in it
 */
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE 320

static void echo_attr(fuse_ino_t ino, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_ino = ino;
	st->st_mode = ino == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0600;
	st->st_nlink = 1;
}

static void echo_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e = {.ino = 2, .attr_timeout = 1, .entry_timeout = 1};

	if (parent != FUSE_ROOT_ID || strcmp(name, "echo")) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	echo_attr(2, &e.attr);
	fuse_reply_entry(req, &e);
}

static void echo_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;

	(void)fi;
	echo_attr(ino, &st);
	fuse_reply_attr(req, &st, 1);
}

static void echo_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	fi->direct_io = 1;
	fuse_reply_open(req, fi);
}

static void echo_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	char *last = fuse_req_userdata(req);

	(void)ino;
	(void)off;
	(void)fi;
	memcpy(last, buf, size < SIZE ? size : SIZE);
	fuse_reply_write(req, size);
}

static void echo_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		      struct fuse_file_info *fi)
{
	(void)ino;
	(void)off;
	(void)fi;
	fuse_reply_buf(req, fuse_req_userdata(req), size < SIZE ? size : SIZE);
}

static const struct fuse_lowlevel_ops echo_ops = {
	.lookup = echo_lookup,
	.getattr = echo_getattr,
	.open = echo_open,
	.write = echo_write,
	.read = echo_read,
};

static double now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

/* Mean ns of a pair, or 0 when one failed. */
static double client(const char *dir, long count)
{
	char path[4096], buf[SIZE] = "";
	double start;
	long i;
	int fd;

	snprintf(path, sizeof(path), "%s/echo", dir);
	fd = open(path, O_RDWR);
	if (fd < 0)
		return 0;
	start = now(CLOCK_MONOTONIC);
	for (i = 0; i < count; i++)
		if (pwrite(fd, buf, SIZE, 0) != SIZE || pread(fd, buf, SIZE, 0) != SIZE)
			break;
	close(fd);
	return i < count ? 0 : (now(CLOCK_MONOTONIC) - start) / count;
}

/* The daemon: serves until it is unmounted, then tells its processor time in ns. */
static void serve(struct fuse_session *se, int out)
{
	double start = now(CLOCK_PROCESS_CPUTIME_ID);
	struct fuse_buf buf = {0};

	while (fuse_session_receive_buf(se, &buf) > 0)
		fuse_session_process_buf(se, &buf);
	start = now(CLOCK_PROCESS_CPUTIME_ID) - start;
	_exit(write(out, &start, sizeof(start)) != sizeof(start));
}

int main(int argc, char **argv)
{
	char *args[] = {argv[0], NULL}, last[SIZE] = "";
	struct fuse_args fargs = FUSE_ARGS_INIT(1, args);
	struct fuse_session *se;
	double pair, cpu;
	long count;
	int fds[2];
	pid_t child;

	if (argc != 3 || (count = atol(argv[2])) < 1) {
		fprintf(stderr, "usage: echofs MOUNTPOINT COUNT\n");
		return 2;
	}
	se = fuse_session_new(&fargs, &echo_ops, sizeof(echo_ops), last);
	if (!se || fuse_session_mount(se, argv[1]) || pipe(fds))
		return 1;
	child = fork();
	if (child == 0)
		serve(se, fds[1]);
	pair = client(argv[1], count);
	fuse_session_unmount(se);
	close(fds[1]);
	if (read(fds[0], &cpu, sizeof(cpu)) != sizeof(cpu) || pair == 0)
		return 1;
	waitpid(child, NULL, 0);
	printf("%.0f %.0f\n", pair, cpu / count);
	fuse_session_destroy(se);
	return 0;
}
