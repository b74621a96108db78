/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 9P for a shell: one command on a server's tree, by either version of the
 * protocol.
 *
 * usage: p9 -s ADDRESS [-v VERSION] [-u UID] [-m MSIZE] COMMAND [PATH]
 *	cat		to standard output, to its end
 *	line		one read
 *	write		standard input, each read of it one Twrite
 *	ls, mkdir, rm	ls: names, one a line
 *	stat		MODE LENGTH UID GID NAME
 *	chmod MODE
 *	hold		opens it for reading and waits for a signal
 */
#include <getopt.h>

#include "p9_test.h"

enum { FID = 1, O_WR = 1 };

static struct p9 *p9;

static int fail(const char *what, long ret)
{
	fprintf(stderr, "p9: %s: %s\n", what, ret == -EREMOTEIO ? p9->error : strerror(-ret));
	return 1;
}

static int cat(const char *path, bool all)
{
	uint64_t off = 0;
	long n = p9_open(p9, FID, path, 0);

	if (n)
		return fail(path, n);
	do {
		n = p9_read(p9, FID, off, p9->msize - IOHDRSZ);
		if (n < 0)
			return fail(path, n);
		fwrite(p9->body + 4, 1, n, stdout);
		off += n;
	} while (all && n);
	return 0;
}

static int do_write(const char *path)
{
	size_t size = p9->msize - IOHDRSZ;
	char *buf = malloc(size);
	uint64_t off = 0;
	ssize_t n;
	long ret = p9_open(p9, FID, path, O_WR);

	while (!ret && (n = read(STDIN_FILENO, buf, size)) > 0) {
		ret = p9_write(p9, FID, off, buf, n);
		off += n;
		if (ret >= 0)
			ret = ret == n ? 0 : -EIO;
	}
	free(buf);
	return ret ? fail(path, ret) : 0;
}

/* Treaddir's entries: qid[13] offset[8] type[1] name[s]; the last one's offset. */
static uint64_t print_entries(const uint8_t *at, long n)
{
	const uint8_t *end = at + n;
	uint64_t next = 0;
	unsigned int len;

	for (; at < end; at += 24 + len) {
		next = p9_get(at + 13, 8);
		len = p9_get(at + 22, 2);
		if (at[24] != '.')
			printf("%.*s\n", len, at + 24);
	}
	return next;
}

static void print_stats(const uint8_t *at, long n)
{
	const uint8_t *end = at + n;

	for (; at < end; at += 2 + p9_get(at, 2))
		printf("%.*s\n", (int)p9_get(at + 41, 2), at + 43);
}

static int ls(const char *path)
{
	uint64_t off = 0;
	long n = p9_open(p9, FID, path, 0);

	if (n)
		return fail(path, n);
	do {
		n = p9_rpc(p9, p9->dotl ? TREADDIR : TREAD, "dqd", FID, off, p9->msize - IOHDRSZ);
		if (n < 0)
			return fail(path, n);
		n = p9_get(p9->body, 4);
		if (p9->dotl)
			off = n ? print_entries(p9->body + 4, n) : off;
		else
			print_stats(p9->body + 4, n);
		off += p9->dotl ? 0 : n;
	} while (n);
	return 0;
}

/* The directory's fid, and the name behind the last slash. */
static long walk_up(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char *dir = strndup(path, slash ? slash - path : 0);
	long ret = p9_walk(p9, FID, dir);

	free(dir);
	*name = slash ? slash + 1 : path;
	return ret;
}

static int do_mkdir(const char *path)
{
	const char *name;
	long ret = walk_up(path, &name);

	if (!ret)
		ret = p9->dotl ? p9_rpc(p9, TMKDIR, "dsdd", FID, name, 0755, 0) :
				 p9_rpc(p9, TCREATE, "dsdb", FID, name, DMDIR | 0755, 0);
	return ret < 0 ? fail(path, ret) : 0;
}

static int do_remove(const char *path)
{
	long ret = p9_walk(p9, FID, path);

	if (!ret)
		ret = p9_rpc(p9, TREMOVE, "d", FID);
	return ret < 0 ? fail(path, ret) : 0;
}

static int do_stat(const char *path)
{
	const uint8_t *at, *name, *uid, *gid;
	long ret = p9_walk(p9, FID, path);

	if (!ret)
		ret = p9->dotl ? p9_rpc(p9, TGETATTR, "dq", FID, (uint64_t)0x7ff) :
				 p9_rpc(p9, TSTAT, "d", FID);
	if (ret < 0)
		return fail(path, ret);
	at = p9->body;
	if (p9->dotl) {
		printf("%o %llu %u %u %s\n", (unsigned int)p9_get(at + 21, 4) & 07777,
		       (unsigned long long)p9_get(at + 49, 8), (unsigned int)p9_get(at + 25, 4),
		       (unsigned int)p9_get(at + 29, 4), path);
		return 0;
	}
	name = at + 2 + 41;
	uid = name + 2 + p9_get(name, 2);
	gid = uid + 2 + p9_get(uid, 2);
	printf("%o %llu %.*s %.*s %.*s\n", (unsigned int)p9_get(at + 2 + 21, 4) & 07777,
	       (unsigned long long)p9_get(at + 2 + 33, 8), (int)p9_get(uid, 2), uid + 2,
	       (int)p9_get(gid, 2), gid + 2, (int)p9_get(name, 2), name + 2);
	return 0;
}

/* Twstat with ~0 for what stays, or Tsetattr of the mode alone. */
static int do_chmod(const char *path, unsigned int mode)
{
	long ret = p9_walk(p9, FID, path);

	if (!ret && p9->dotl)
		ret = p9_rpc(p9, TSETATTR, "ddddd" "qqqqq", FID, 1, mode, 0, 0, (uint64_t)0,
			     (uint64_t)0, (uint64_t)0, (uint64_t)0, (uint64_t)0);
	else if (!ret)
		ret = p9_rpc(p9, TWSTAT, "d" "ww" "wd" "bdq" "ddd" "q" "ssss", FID, 49, 47,
			     0xffff, ~0U, 0xff, ~0U, UINT64_MAX, mode, ~0U, ~0U, UINT64_MAX,
			     "", "", "", "");
	return ret < 0 ? fail(path, ret) : 0;
}

static int hold(const char *path)
{
	long ret = p9_open(p9, FID, path, 0);

	if (ret)
		return fail(path, ret);
	puts("open");
	fflush(stdout);
	pause();
	return 0;
}

static int run(const char *command, const char *path, const char *arg)
{
	if (!strcmp(command, "cat"))
		return cat(path, true);
	if (!strcmp(command, "line"))
		return cat(path, false);
	if (!strcmp(command, "write"))
		return do_write(path);
	if (!strcmp(command, "ls"))
		return ls(path);
	if (!strcmp(command, "mkdir"))
		return do_mkdir(path);
	if (!strcmp(command, "rm"))
		return do_remove(path);
	if (!strcmp(command, "stat"))
		return do_stat(path);
	if (!strcmp(command, "chmod") && arg)
		return do_chmod(path, strtoul(arg, NULL, 8));
	if (!strcmp(command, "hold"))
		return hold(path);
	fprintf(stderr, "p9: no command %s\n", command);
	return 2;
}

int main(int argc, char **argv)
{
	const char *version = "9P2000.L", *user = "", *address = NULL;
	uint32_t msize = 0, uid = NONUNAME;
	int opt, status;
	long ret;

	while ((opt = getopt(argc, argv, "+s:v:u:m:")) != -1) {
		if (opt == 's')
			address = optarg;
		else if (opt == 'v')
			version = optarg;
		else if (opt == 'u')
			user = optarg;
		else if (opt == 'm')
			msize = atoi(optarg);
		else
			return 2;
	}
	argc -= optind;
	argv += optind;
	if (argc < 1 || !address)
		return 2;
	p9 = p9_open_session(address, version);
	if (msize && p9_version(p9, version, msize))
		die("Tversion");
	/* .L sends a number, 9P2000 the same as a name. */
	if (p9->dotl && *user)
		uid = atoi(user);
	ret = p9_attach(p9, 0, user, uid, "");
	if (ret < 0)
		return fail("attach", ret);
	status = run(argv[0], argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : NULL);
	p9_end(p9);
	return status;
}
