/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client may rely on, message by message: Linux's v9fs first (its rules
 * stand in net/9p and fs/9p), then what both versions of the protocol say of
 * sessions, walks, fids and limits, then messages that are none.
 *
 * usage: p9_rules SOCKET MSIZE FIDS TAGS		(the daemon's limits)
 */
#include "p9_test.h"

enum { O_CREAT_L = 0100, O_EXCL_L = 0200, O_TRUNC_L = 01000, O_DIRECTORY_L = 0200000 };
enum { RMDIR_L = 0x200, LOCK_WR = 1 };

static const char *address;
static unsigned long msize, fids, tags;

/* Tversion: the smaller msize counts, unknown versions are told so, and it starts anew. */
static void versions(void)
{
	struct p9 *p9 = p9_open_session(address, "9P2000.L");

	CHECK(p9->msize == msize);
	CHECK_ERR(p9_version(p9, "9P2000.L", 8192), 0);
	CHECK(p9->msize == 8192);
	CHECK_ERR(p9_version(p9, "9P2000.u", 65536), 0);
	CHECK(p9_get(p9->body + 4, 2) == 6 && !memcmp(p9->body + 6, "9P2000", 6));
	CHECK_ERR(p9_version(p9, "9P1999", 8192), 0);
	CHECK(p9_get(p9->body + 4, 2) == 7 && !memcmp(p9->body + 6, "unknown", 7));
	CHECK(p9->msize == 8192);
	CHECK(p9_attach(p9, 0, "", NONUNAME, "") < 0);
	CHECK(p9_version(p9, "9P2000.L", 100) < 0);
	CHECK_ERR(p9_version(p9, "9P2000.L", 0xffffffff), 0);
	CHECK(p9->msize == msize);
	CHECK(p9_attach(p9, 0, "", NONUNAME, "") >= 0);
	CHECK_ERR(p9_rpc(p9, TOPEN, "db", 0, 0), EOPNOTSUPP);	/* of the other version */
	p9_end(p9);
}

static void attaches(void)
{
	struct p9 *p9 = p9_open_session(address, "9P2000.L");
	char text[64];

	CHECK_ERR(p9_rpc(p9, TAUTH, "dssd", 5, "root", "", NONUNAME), ENOENT);
	CHECK_ERR(p9_rpc(p9, TATTACH, "ddssd", 0, 5, "", "", NONUNAME), EINVAL);
	CHECK_ERR(p9_attach(p9, 0, "", NONUNAME, "none"), ENOENT);
	CHECK_ERR(p9_attach(p9, 0, "", NONUNAME, "version"), 0);
	CHECK_ERR(p9_attach(p9, 0, "", NONUNAME, ""), EINVAL);	/* in use */
	CHECK_ERR(p9_clunk(p9, 0), 0);
	CHECK(p9_attach(p9, 0, "", NONUNAME, "/rxe0/1/") >= 0);
	CHECK(p9_cat(p9, "state", text, sizeof(text)) == 10);
	/* ".." ends where the attach began */
	CHECK(p9_cat(p9, "../../../1/state", text, sizeof(text)) == -ENOENT);
	CHECK(p9_cat(p9, "../../gids/../state", text, sizeof(text)) == 10);
	p9_end(p9);
}

/* A walk of many names, of none, to itself, and one that ends on its way. */
static void walks(void)
{
	struct p9 *p9 = p9_start(address, "9P2000.L");

	CHECK_ERR(p9_walk(p9, 1, "rxe0/1/../../rxe0/./1/counters/../../../rxe1/1/gids/../state"), 0);
	CHECK(p9_get(p9->body, 2) == 16);
	CHECK_ERR(p9_rpc(p9, TWALK, "ddw", 1, 2, 0), 0);
	CHECK_ERR(p9_openfid(p9, 2, 0), 0);
	CHECK_ERR(p9_rpc(p9, TWALK, "ddw", 2, 3, 0), 0);	/* of an open one */
	CHECK_ERR(p9_rpc(p9, TWALK, "ddws", 1, 4, 1, "x"), ENOTDIR);
	CHECK(p9_rpc(p9, TWALK, "ddwss", 0, 4, 2, "rxe0", "none") > 0);
	CHECK(p9_get(p9->body, 2) == 1);
	CHECK_ERR(p9_clunk(p9, 4), EBADF);
	CHECK_ERR(p9_rpc(p9, TWALK, "ddws", 0, 4, 1, "none"), ENOENT);
	CHECK_ERR(p9_rpc(p9, TWALK, "ddws", 0, 1, 1, "rxe0"), EINVAL);
	CHECK_ERR(p9_rpc(p9, TWALK, "ddws", 0, NOFID, 1, "rxe0"), EINVAL);
	CHECK_ERR(p9_rpc(p9, TWALK, "ddws", 77, 4, 1, "rxe0"), EBADF);
	CHECK_ERR(p9_rpc(p9, TWALK, "ddws", 0, 4, 1, ""), EINVAL);
	CHECK_ERR(p9_rpc(p9, TWALK, "ddws", 0, 4, 1, "rxe0/1"), EINVAL);
	CHECK_ERR(p9_rpc(p9, TWALK, "ddws", 0, 0, 1, "rxe0"), 0);
	p9_end(p9);
}

static void opens(void)
{
	struct p9 *p9 = p9_start(address, "9P2000.L");
	char longest[257] = "";

	CHECK_ERR(p9_walk(p9, 1, "rxe0/1"), 0);
	CHECK_ERR(p9_openfid(p9, 1, 1), EISDIR);
	CHECK_ERR(p9_openfid(p9, 1, O_DIRECTORY_L), 0);
	CHECK_ERR(p9_openfid(p9, 1, 0), EBUSY);
	CHECK_ERR(p9_rpc(p9, TREAD, "dqd", 1, (uint64_t)0, 100), EISDIR);
	CHECK_ERR(p9_walk(p9, 2, "rxe0/1/state"), 0);
	CHECK_ERR(p9_openfid(p9, 2, O_DIRECTORY_L), ENOTDIR);
	CHECK_ERR(p9_openfid(p9, 2, 3), EINVAL);
	CHECK_ERR(p9_rpc(p9, TREAD, "dqd", 2, (uint64_t)0, 100), EBADF);
	CHECK_ERR(p9_openfid(p9, 2, 0), 0);
	CHECK_ERR(p9_rpc(p9, TREADDIR, "dqd", 2, (uint64_t)0, 100), ENOTDIR);
	CHECK(p9_write(p9, 2, 0, "x", 1) == -EBADF);
	CHECK(p9_read(p9, 2, UINT64_MAX, 10) == -EINVAL);
	CHECK(p9_read(p9, 2, 0, 0xffffffff) == 10);
	CHECK(p9_read(p9, 2, 3, 4) == 4);
	/* a shell's ">": O_CREAT of what is there; nothing new can be made */
	CHECK_ERR(p9_walk(p9, 3, "pd"), 0);
	CHECK_ERR(p9_rpc(p9, TLCREATE, "dsddd", 3, "x", O_CREAT_L | 1, 0644, 0), EPERM);
	memset(longest, 'x', 256);
	CHECK_ERR(p9_rpc(p9, TLCREATE, "dsddd", 3, longest, O_CREAT_L | 1, 0644, 0), ENAMETOOLONG);
	CHECK_ERR(p9_rpc(p9, TLCREATE, "dsddd", 3, "", O_CREAT_L | 1, 0644, 0), EINVAL);
	CHECK_ERR(p9_rpc(p9, TLCREATE, "dsddd", 3, "..", O_CREAT_L | 1, 0644, 0), EEXIST);
	CHECK_ERR(p9_walk(p9, 4, "rxe0"), 0);
	CHECK_ERR(p9_rpc(p9, TLCREATE, "dsddd", 4, "ctl", O_CREAT_L | O_EXCL_L | 1, 0644, 0), EEXIST);
	CHECK_ERR(p9_rpc(p9, TLCREATE, "dsddd", 4, "ctl", O_CREAT_L | O_TRUNC_L | 1, 0644, 0), 0);
	CHECK(p9_write(p9, 4, 0, "\n", 1) == 1);
	p9_end(p9);
}

/* What v9fs sends that the tree has no use for, and the errors that it expects. */
static void v9fs(void)
{
	struct p9 *p9 = p9_start(address, "9P2000.L");

	CHECK_ERR(p9_walk(p9, 1, "rxe0/1/state"), 0);
	CHECK_ERR(p9_openfid(p9, 1, 0), 0);
	CHECK_ERR(p9_rpc(p9, TXATTRWALK, "dds", 1, 2, "security.selinux"), EOPNOTSUPP);
	CHECK_ERR(p9_rpc(p9, TXATTRWALK, "dds", 1, 2, ""), EOPNOTSUPP);
	CHECK_ERR(p9_rpc(p9, TXATTRCREATE, "dsqd", 1, "user.x", (uint64_t)1, 0), EOPNOTSUPP);
	CHECK_ERR(p9_clunk(p9, 2), EBADF);
	CHECK_ERR(p9_rpc(p9, TLOCK, "dbdqqds", 1, LOCK_WR, 0, (uint64_t)0, (uint64_t)0, 1, "h"), ENOLCK);
	CHECK_ERR(p9_rpc(p9, TGETLOCK, "dbqqds", 1, LOCK_WR, (uint64_t)0, (uint64_t)0, 1, "h"), ENOLCK);
	CHECK_ERR(p9_rpc(p9, TFSYNC, "dd", 1, 0), 0);
	CHECK_ERR(p9_rpc(p9, TFSYNC, "d", 1), 0);
	CHECK_ERR(p9_rpc(p9, TREADLINK, "d", 1), EINVAL);
	CHECK_ERR(p9_rpc(p9, TSYMLINK, "dssd", 0, "a", "b", 0), EPERM);
	CHECK_ERR(p9_rpc(p9, TMKNOD, "dsdddd", 0, "a", 0600, 1, 3, 0), EPERM);
	CHECK_ERR(p9_rpc(p9, TLINK, "dds", 0, 1, "b"), EPERM);
	CHECK_ERR(p9_rpc(p9, TRENAME, "dds", 1, 0, "b"), EPERM);
	CHECK_ERR(p9_rpc(p9, TRENAMEAT, "dsds", 0, "rxe0", 0, "b"), EPERM);
	CHECK_ERR(p9_rpc(p9, TUNLINKAT, "dsd", 0, "version", 0), EPERM);
	CHECK_ERR(p9_rpc(p9, TUNLINKAT, "dsd", 0, "pd", 0), EISDIR);
	CHECK_ERR(p9_rpc(p9, TUNLINKAT, "dsd", 0, "version", RMDIR_L), ENOTDIR);
	CHECK(p9_rpc(p9, TSTATFS, "d", 0) == 60 && p9_get(p9->body, 4) == 0x01021997);
	/* Rgetattr has at least what stat(2) needs. */
	CHECK(p9_rpc(p9, TGETATTR, "dq", 1, (uint64_t)0x7ff) == 153);
	CHECK((p9_get(p9->body, 8) & 0x7ff) == 0x7ff);
	/* Times and the size that a shell's ">" sets */
	CHECK_ERR(p9_walk(p9, 3, "rxe0/1/ctl"), 0);
	CHECK_ERR(p9_rpc(p9, TSETATTR, "dddddqqqqq", 3, 8 | 0x30, 0, 0, 0, (uint64_t)0, (uint64_t)0,
			 (uint64_t)0, (uint64_t)0, (uint64_t)0), 0);
	p9_end(p9);
}

/* Entries come once each, whatever the size of the answers, and cookies stay good. */
static void directories(void)
{
	struct p9 *p9 = p9_start(address, "9P2000.L");
	unsigned int n, n_small = 0, len;
	uint64_t off = 0, second = 0;
	const uint8_t *at;

	CHECK_ERR(p9_open(p9, 1, "rxe0/1", 0), 0);
	CHECK_ERR(p9_rpc(p9, TREADDIR, "dqd", 1, (uint64_t)0, 65536), 0);
	for (n = 0, at = p9->body + 4; at < p9->body + p9->len; n++, at += 24 + len)
		len = p9_get(at + 22, 2);
	for (;;) {
		CHECK_ERR(p9_rpc(p9, TREADDIR, "dqd", 1, off, 50), 0);
		if (!p9_get(p9->body, 4))
			break;
		for (at = p9->body + 4; at < p9->body + p9->len; n_small++, at += 24 + len) {
			off = p9_get(at + 13, 8);
			len = p9_get(at + 22, 2);
			if (n_small == 1)
				second = off;
		}
	}
	CHECK(n > 10 && n_small == n);
	/* too little room for one isn't the end */
	CHECK_ERR(p9_rpc(p9, TREADDIR, "dqd", 1, (uint64_t)0, 24), EINVAL);
	CHECK_ERR(p9_rpc(p9, TREADDIR, "dqd", 1, second, 24), EINVAL);
	/* back, and to where nothing is */
	CHECK_ERR(p9_rpc(p9, TREADDIR, "dqd", 1, second, 50), 0);
	CHECK(p9_get(p9->body, 4) > 0);
	CHECK(p9_rpc(p9, TREADDIR, "dqd", 1, (uint64_t)1 << 60, 50) == 4);
	p9_end(p9);
}

/* 9P2000: clone becomes ctl; directories are read in order; OEXEC, ORCLOSE. */
static void plan9(void)
{
	struct p9 *p9 = p9_start(address, "9P2000");

	CHECK_ERR(p9_walk(p9, 1, "rxe0/1/mad/clone"), 0);
	CHECK_ERR(p9_rpc(p9, TOPEN, "db", 1, 2), 0);
	CHECK(p9_read(p9, 1, 0, 100) > 1 && p9->body[4] >= '1');
	CHECK_ERR(p9_rpc(p9, TSTAT, "d", 1), 0);
	CHECK(p9_write(p9, 1, 0, "unregister\n", 11) == -EREMOTEIO);
	CHECK(strstr(p9->error, "is not registered") != NULL);
	CHECK_ERR(p9_clunk(p9, 1), 0);
	CHECK_ERR(p9_open(p9, 1, "rxe0", 0), 0);
	CHECK(p9_read(p9, 1, 0, 200) > 0);
	CHECK(p9_read(p9, 1, 7, 200) == -EREMOTEIO);
	CHECK(p9_read(p9, 1, 0, 40) == -EREMOTEIO);
	CHECK(p9_read(p9, 1, 0, 200) > 0);
	CHECK_ERR(p9_walk(p9, 2, "version"), 0);
	CHECK(p9_rpc(p9, TOPEN, "db", 2, 0x40) == -EREMOTEIO);
	CHECK(p9_rpc(p9, TOPEN, "db", 2, 0x80) == -EREMOTEIO);
	CHECK(p9_rpc(p9, TLOPEN, "dd", 2, 0) == -EREMOTEIO);
	CHECK(p9_rpc(p9, TWSTAT, "dw", 2, 0) == -EREMOTEIO);
	p9_end(p9);
}

/* The shortest messages that there are hold every answer, the longest reasons cut off. */
static void small_messages(void)
{
	struct p9 *p9 = p9_open_session(address, "9P2000");
	char text[400];

	CHECK_ERR(p9_version(p9, "9P2000", 512), 0);
	CHECK(p9_attach(p9, 0, "", NONUNAME, "") >= 0);
	CHECK_ERR(p9_open(p9, 1, "rxe0/ctl", 1), 0);
	memset(text, '#', sizeof(text));
	text[399] = '\n';
	CHECK(p9_write(p9, 1, 0, text, sizeof(text)) == -EREMOTEIO);
	CHECK(p9->len + HEADER > 400 && p9->len + HEADER <= 512);
	p9_end(p9);
}

static void limits(void)
{
	struct p9 *p9 = p9_start(address, "9P2000.L");
	unsigned long n;

	for (n = 1; p9_rpc(p9, TWALK, "ddw", 0, (unsigned int)n, 0) >= 0; n++)
		;
	CHECK(n == fids);
	CHECK_ERR(p9_rpc(p9, TWALK, "ddw", 0, 1000000, 0), EMFILE);
	CHECK_ERR(p9_clunk(p9, 1), 0);
	CHECK_ERR(p9_open(p9, 1, "events", 0), 0);
	for (n = 0; n < tags; n++)
		p9_send(p9, TREAD, 1000 + n, "dqd", 1, (uint64_t)0, 100);
	CHECK_ERR(p9_rpc(p9, TREAD, "dqd", 1, (uint64_t)0, 100), EAGAIN);
	p9_end(p9);
}

static bool hung_up(struct p9 *p9)
{
	char byte;

	return p9_waits(p9, 30000) && read(p9->fd, &byte, 1) <= 0;
}

/* A new object of a kind, by an attach's user: fid is its ctl. The object's number. */
static unsigned int make(struct p9 *p9, uint32_t attach, uint32_t fid, const char *kind)
{
	char text[16] = "";
	long n;

	CHECK_ERR(p9_rpc(p9, TWALK, "ddwss", attach, fid, 2, kind, "clone"), 0);
	CHECK_ERR(p9_openfid(p9, fid, 2), 0);
	n = p9_read(p9, fid, 0, sizeof(text) - 1);
	CHECK(n > 0);
	memcpy(text, p9->body + 4, n > 0 ? n : 0);
	return strtoul(text, NULL, 10);
}

/* Several users of one connection, which is root's: an open file has its own attach's rights. */
static void users(void)
{
	enum { ROOT, USER, PD, ROOTS, USERS, OTHER };
	struct p9 *p9 = p9_start(address, "9P2000.L");
	char create[32];

	if (p9_attach(p9, USER, "", 65534, "") < 0)
		goto out;	/* we are not root */
	snprintf(create, sizeof(create), "create pd=%u", make(p9, ROOT, PD, "pd"));
	CHECK(p9_write(p9, PD, 0, "create device=rxe0", 18) == 18);
	make(p9, USER, USERS, "mw");
	make(p9, ROOT, ROOTS, "mw");
	CHECK_ERR(p9_write(p9, USERS, 0, create, strlen(create)), EACCES);
	CHECK(p9_write(p9, ROOTS, 0, create, strlen(create)) > 0);
	CHECK_ERR(p9_write(p9, USERS, 0, create, strlen(create)), EACCES);
	CHECK_ERR(p9_rpc(p9, TWALK, "ddwsss", USER, OTHER, 3, "rxe0", "1", "issm"), 0);
	CHECK_ERR(p9_openfid(p9, OTHER, 0), EACCES);
out:
	p9_end(p9);
}

/* Messages that are none: a size that can't be hangs up, the rest is answered. */
static void nonsense(void)
{
	static const uint32_t sizes[] = { 0, 6, 0x7fffffff, 0xffffffff };
	uint8_t buf[64] = { 0 };
	struct p9 *p9;
	unsigned int i, type;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		p9 = p9_start(address, "9P2000.L");
		p9_put(buf, sizes[i], 4);
		p9_write_all(p9->fd, buf, HEADER);
		CHECK(hung_up(p9));
		p9_end(p9);
	}
	p9 = p9_start(address, "9P2000.L");
	for (type = 0; type < 256; type++) {
		if (type == TCLUNK || type == TREMOVE || type == TVERSION)
			continue;
		/* one byte that no message of that type is alone */
		p9_send(p9, type, 7, "b", 0);
		CHECK(p9_recv(p9) && p9->tag == 7 && p9->type == RLERROR);
	}
	CHECK_ERR(p9_rpc(p9, TWALK, "ddw", 0, 1, 17), EPROTO);
	CHECK_ERR(p9_rpc(p9, TWALK, "ddww", 0, 1, 1, 0xffff), EPROTO);
	CHECK_ERR(p9_rpc(p9, TWRITE, "dqd", 0, (uint64_t)0, 0xffffffff), EPROTO);
	CHECK_ERR(p9_rpc(p9, TFSYNC, "ddb", 0, 0, 0), EPROTO);
	p9_end(p9);
	/* before Tversion */
	p9 = calloc(1, sizeof(*p9));
	p9->msize = 8192;
	p9->in = malloc(p9->msize + 512);
	p9->fd = p9_socket(address);
	CHECK(p9_rpc(p9, TCLUNK, "d", 0) < 0);
	CHECK_ERR(p9_version(p9, "9P2000", 8192), 0);
	p9_end(p9);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	address = argv[1];
	msize = strtoul(argv[2], NULL, 0);
	fids = strtoul(argv[3], NULL, 0);
	tags = strtoul(argv[4], NULL, 0);
	versions();
	attaches();
	walks();
	opens();
	v9fs();
	directories();
	plan9();
	small_messages();
	limits();
	users();
	nonsense();
	return failures != 0;
}
