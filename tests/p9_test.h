/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small 9P client for tests: messages are built field by field by a format, as
 * intro(5) of Plan 9's manual writes them, with nothing of the server's code.
 * Only linux/errno.h's numbers and message types stand here.
 */
#ifndef IBFS_P9_TEST_H
#define IBFS_P9_TEST_H

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	TLERROR = 6, TSTATFS = 8, TLOPEN = 12, TLCREATE = 14, TSYMLINK = 16, TMKNOD = 18,
	TRENAME = 20, TREADLINK = 22, TGETATTR = 24, TSETATTR = 26, TXATTRWALK = 30,
	TXATTRCREATE = 32, TREADDIR = 40, TFSYNC = 50, TLOCK = 52, TGETLOCK = 54, TLINK = 70,
	TMKDIR = 72, TRENAMEAT = 74, TUNLINKAT = 76, TVERSION = 100, TAUTH = 102, TATTACH = 104,
	RERROR = 107, TFLUSH = 108, TWALK = 110, TOPEN = 112, TCREATE = 114, TREAD = 116,
	TWRITE = 118, TCLUNK = 120, TREMOVE = 122, TSTAT = 124, TWSTAT = 126,
	RLERROR = TLERROR + 1,
};
enum { NOTAG = 0xffff, HEADER = 7, IOHDRSZ = 24 };
#define NOFID		0xffffffffU
#define NONUNAME	0xffffffffU
#define DMDIR		0x80000000U

struct p9 {
	int fd;
	bool dotl;
	uint32_t msize;
	uint16_t next_tag;
	/* the last message that came */
	uint8_t *in;
	uint8_t type;
	uint16_t tag;
	uint8_t *body;
	size_t len;			/* of the body */
	char error[256];		/* Rerror's words */
};

static int failures;

static inline bool check(bool ok, int line, const char *what)
{
	if (!ok) {
		fprintf(stderr, "line %d: not true: %s\n", line, what);
		failures++;
	}
	return ok;
}
#define CHECK(x) check(x, __LINE__, #x)

/* A call's result (0 or more, or a negative errno) is as expected: 0 for any success. */
static inline void check_err(long ret, int err, int line, const char *what)
{
	if (ret >= 0 ? err != 0 : ret != -err) {
		fprintf(stderr, "line %d: %s: %ld, not %d\n", line, what, ret, -err);
		failures++;
	}
}
#define CHECK_ERR(x, err) check_err(x, err, __LINE__, #x)

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

/* address: a path, or HOST:PORT. */
static inline int p9_socket(const char *address)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const char *colon = strchr(address, '/') ? NULL : strrchr(address, ':');
	struct addrinfo *ai, hints = { .ai_socktype = SOCK_STREAM };
	char host[256];
	int fd;

	if (!colon) {
		snprintf(un.sun_path, sizeof(un.sun_path), "%s", address);
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		return fd < 0 || connect(fd, (struct sockaddr *)&un, sizeof(un)) ? -1 : fd;
	}
	snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
	if (getaddrinfo(host, colon + 1, &hints, &ai))
		return -1;
	fd = socket(ai->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, ai->ai_addr, ai->ai_addrlen))
		return -1;
	freeaddrinfo(ai);
	return fd;
}

/* --- messages --- */

struct p9_bytes {
	const void *data;
	uint32_t len;
};

static inline uint64_t p9_get(const uint8_t *at, unsigned int bytes)
{
	uint64_t value = 0;

	memcpy(&value, at, bytes);
	return le64toh(value);
}

static inline uint8_t *p9_put(uint8_t *at, uint64_t value, unsigned int bytes)
{
	value = htole64(value);
	memcpy(at, &value, bytes);
	return at + bytes;
}

/* b 1 byte, w 2, d 4, q 8, s a string, S a string or NULL for none, B count[4] and bytes */
static inline uint8_t *p9_vpack(uint8_t *at, const char *fmt, va_list ap)
{
	const struct p9_bytes *bytes;
	const char *text;

	for (; *fmt; fmt++) {
		switch (*fmt) {
		case 'b': at = p9_put(at, va_arg(ap, unsigned int), 1); break;
		case 'w': at = p9_put(at, va_arg(ap, unsigned int), 2); break;
		case 'd': at = p9_put(at, va_arg(ap, unsigned int), 4); break;
		case 'q': at = p9_put(at, va_arg(ap, uint64_t), 8); break;
		case 's':
			text = va_arg(ap, const char *);
			at = p9_put(at, strlen(text), 2);
			at = mempcpy(at, text, strlen(text));
			break;
		case 'B':
			bytes = va_arg(ap, const struct p9_bytes *);
			at = p9_put(at, bytes->len, 4);
			at = mempcpy(at, bytes->data, bytes->len);
			break;
		default: abort();
		}
	}
	return at;
}

/* A message into buf, which is large enough; its length. */
static inline size_t p9_build(uint8_t *buf, uint8_t type, uint16_t tag, const char *fmt, ...)
{
	uint8_t *end;
	va_list ap;

	va_start(ap, fmt);
	end = p9_vpack(buf + HEADER, fmt, ap);
	va_end(ap);
	p9_put(p9_put(p9_put(buf, end - buf, 4), type, 1), tag, 2);
	return end - buf;
}

static inline bool p9_write_all(int fd, const void *data, size_t len)
{
	const char *at = data;
	ssize_t n;

	for (; len; at += n, len -= n) {
		n = send(fd, at, len, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
	}
	return true;
}

static inline bool p9_vsend(struct p9 *p9, uint8_t type, uint16_t tag, const char *fmt, va_list ap)
{
	uint8_t little[4096], *buf = strchr(fmt, 'B') ? malloc(p9->msize + 4096) : little, *end;
	bool ok;

	end = p9_vpack(buf + HEADER, fmt, ap);
	p9_put(p9_put(p9_put(buf, end - buf, 4), type, 1), tag, 2);
	ok = p9_write_all(p9->fd, buf, end - buf);
	if (buf != little)
		free(buf);
	return ok;
}

static inline bool p9_send(struct p9 *p9, uint8_t type, uint16_t tag, const char *fmt, ...)
{
	va_list ap;
	bool ok;

	va_start(ap, fmt);
	ok = p9_vsend(p9, type, tag, fmt, ap);
	va_end(ap);
	return ok;
}

/* Does anything come within ms? */
static inline bool p9_waits(const struct p9 *p9, int ms)
{
	struct pollfd pfd = { .fd = p9->fd, .events = POLLIN };

	return poll(&pfd, 1, ms) > 0;
}

static inline bool p9_read_all(struct p9 *p9, uint8_t *at, size_t len)
{
	ssize_t n;

	for (; len; at += n, len -= n) {
		if (!p9_waits(p9, 30000)) {
			fprintf(stderr, "no answer in 30 s\n");
			return false;
		}
		n = read(p9->fd, at, len);
		if (n <= 0)
			return false;
	}
	return true;
}

/* The next message; false: none in 30 seconds, or the server hung up. */
static inline bool p9_recv(struct p9 *p9)
{
	size_t size;

	if (!p9_read_all(p9, p9->in, HEADER))
		return false;
	size = p9_get(p9->in, 4);
	if (size < HEADER || size > p9->msize + 512) {
		fprintf(stderr, "an answer of %zu bytes\n", size);
		return false;
	}
	if (!p9_read_all(p9, p9->in + HEADER, size - HEADER))
		return false;
	p9->type = p9->in[4];
	p9->tag = p9_get(p9->in + 5, 2);
	p9->body = p9->in + HEADER;
	p9->len = size - HEADER;
	return true;
}

/* What the message that came says: its body's length, or -errno (9P2000's words: -EREMOTEIO). */
static inline long p9_result(struct p9 *p9)
{
	if (p9->type == RLERROR)
		return -(long)p9_get(p9->body, 4);
	if (p9->type != RERROR)
		return p9->len;
	snprintf(p9->error, sizeof(p9->error), "%.*s", (int)p9_get(p9->body, 2), p9->body + 2);
	return -EREMOTEIO;
}

static inline long p9_rpc(struct p9 *p9, uint8_t type, const char *fmt, ...)
{
	uint16_t tag = type == TVERSION ? NOTAG : p9->next_tag++ & 0x7fff;
	va_list ap;
	bool ok;

	va_start(ap, fmt);
	ok = p9_vsend(p9, type, tag, fmt, ap);
	va_end(ap);
	if (!ok || !p9_recv(p9))
		return -EPIPE;
	if (p9->tag != tag || (p9->type != type + 1 && p9->type != RLERROR && p9->type != RERROR)) {
		fprintf(stderr, "Tag %u type %u answered by tag %u type %u\n", tag, type, p9->tag,
			p9->type);
		return -EPROTO;
	}
	return p9_result(p9);
}

/* --- sessions --- */

static inline long p9_version(struct p9 *p9, const char *version, uint32_t msize)
{
	long ret = p9_rpc(p9, TVERSION, "ds", msize, version);

	if (ret < 0)
		return ret;
	p9->msize = p9_get(p9->body, 4);
	p9->dotl = !strcmp(version, "9P2000.L");
	return 0;
}

static inline long p9_attach(struct p9 *p9, uint32_t fid, const char *user, uint32_t uid,
			     const char *aname)
{
	if (p9->dotl)
		return p9_rpc(p9, TATTACH, "ddssd", fid, NOFID, user, aname, uid);
	return p9_rpc(p9, TATTACH, "ddss", fid, NOFID, user, aname);
}

/* Connected and of this version, not attached. */
static inline struct p9 *p9_open_session(const char *address, const char *version)
{
	struct p9 *p9 = calloc(1, sizeof(*p9));

	p9->msize = 1 << 20;
	p9->in = malloc(p9->msize + 512);
	p9->fd = p9_socket(address);
	if (p9->fd < 0)
		die(address);
	if (p9_version(p9, version, p9->msize))
		die("Tversion");
	return p9;
}

/* And fid 0 is the tree's root, as whoever we are. */
static inline struct p9 *p9_start(const char *address, const char *version)
{
	struct p9 *p9 = p9_open_session(address, version);

	if (p9_attach(p9, 0, "", NONUNAME, "") < 0)
		die("Tattach");
	return p9;
}

static inline void p9_end(struct p9 *p9)
{
	close(p9->fd);
	free(p9->in);
	free(p9);
}

/* Twalk from fid 0 by a path of at most 16 names; -ENOENT also when it ends on the way. */
static inline long p9_walk(struct p9 *p9, uint32_t newfid, const char *path)
{
	char *copy = strdup(path), *save, *name;
	uint8_t buf[4096], *at = buf + HEADER + 10;
	unsigned int n = 0;
	long ret;

	for (name = strtok_r(copy, "/", &save); name; name = strtok_r(NULL, "/", &save), n++) {
		at = p9_put(at, strlen(name), 2);
		at = mempcpy(at, name, strlen(name));
	}
	free(copy);
	p9_put(p9_put(p9_put(buf, at - buf, 4), TWALK, 1), 1, 2);
	p9_put(p9_put(p9_put(buf + HEADER, 0, 4), newfid, 4), n, 2);
	if (!p9_write_all(p9->fd, buf, at - buf) || !p9_recv(p9))
		return -EPIPE;
	ret = p9_result(p9);
	return ret < 0 ? ret : p9_get(p9->body, 2) < n ? -ENOENT : 0;
}

/* flags: Linux's O_ACCMODE and the rest for .L. */
static inline long p9_openfid(struct p9 *p9, uint32_t fid, unsigned int flags)
{
	long ret = p9->dotl ? p9_rpc(p9, TLOPEN, "dd", fid, flags) :
			      p9_rpc(p9, TOPEN, "db", fid, flags & 3);

	return ret < 0 ? ret : 0;
}

static inline long p9_open(struct p9 *p9, uint32_t fid, const char *path, unsigned int flags)
{
	long ret = p9_walk(p9, fid, path);

	return ret ? ret : p9_openfid(p9, fid, flags);
}

/* The bytes, in p9->body + 4. */
static inline long p9_read(struct p9 *p9, uint32_t fid, uint64_t offset, uint32_t count)
{
	long ret = p9_rpc(p9, TREAD, "dqd", fid, offset, count);

	return ret < 0 ? ret : (long)p9_get(p9->body, 4);
}

static inline long p9_write(struct p9 *p9, uint32_t fid, uint64_t offset, const void *data,
			    uint32_t len)
{
	struct p9_bytes bytes = { data, len };
	long ret = p9_rpc(p9, TWRITE, "dqB", fid, offset, &bytes);

	return ret < 0 ? ret : (long)p9_get(p9->body, 4);
}

static inline long p9_clunk(struct p9 *p9, uint32_t fid)
{
	return p9_rpc(p9, TCLUNK, "d", fid);
}

/* A file's text, at most size - 1 bytes, from its start; -errno. */
static inline long p9_cat(struct p9 *p9, const char *path, char *text, size_t size)
{
	uint32_t fid = 0x7000;
	long ret = p9_open(p9, fid, path, 0);

	if (!ret) {
		ret = p9_read(p9, fid, 0, size - 1);
		if (ret >= 0) {
			memcpy(text, p9->body + 4, ret);
			text[ret] = '\0';
		}
	}
	p9_clunk(p9, fid);
	return ret;
}

static inline long p9_echo(struct p9 *p9, const char *path, const char *text)
{
	uint32_t fid = 0x7001;
	long ret = p9_open(p9, fid, path, 1);

	if (!ret)
		ret = p9_write(p9, fid, 0, text, strlen(text));
	p9_rpc(p9, TCLUNK, "d", fid);
	return ret;
}

#endif
