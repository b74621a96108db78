/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text for files: queues of lines, lines of words written to ctl files, numbers;
 * and queues of requests that wait.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/tree.h"

ssize_t read_bytes(const void *all, size_t len, void *buf, size_t size, off_t off)
{
	if (off < 0)
		return -EINVAL;
	if ((size_t)off >= len)
		return 0;
	if (size > len - off)
		size = len - off;
	memcpy(buf, (const uint8_t *)all + off, size);
	return size;
}

static bool waitq_cancel(struct fs_req *req)
{
	struct waitq *q = req->priv;

	DL_DELETE(q->head, req);
	fs_reply(req, -EINTR, NULL, 0);
	return true;
}

ssize_t waitq_add(struct waitq *q, struct fs_req *req)
{
	req->priv = q;
	req->cancel = waitq_cancel;
	DL_APPEND(q->head, req);
	return FS_PENDING;
}

struct fs_req *waitq_take(struct waitq *q)
{
	struct fs_req *req = q->head;

	if (req) {
		DL_DELETE(q->head, req);
		req->cancel = NULL;
	}
	return req;
}

void waitq_fail(struct waitq *q, int err)
{
	struct fs_req *req;

	while ((req = waitq_take(q)) != NULL)
		fs_reply(req, err, NULL, 0);
}

/* Make the next line the rest; false: there is none now. -ENOMEM loses the line. */
static int lineq_fill(struct lineq *q)
{
	const char *line;
	char *copy;
	size_t len;

	if (q->rest_off < q->rest_len)
		return 1;
	line = q->next(q);
	if (!line)
		return 0;
	len = strlen(line);
	copy = realloc(q->rest, len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, line, len);
	copy[len] = '\n';
	q->rest = copy;
	q->rest_len = len + 1;
	q->rest_off = 0;
	return 1;
}

/* The part of the line that fits; the line counts as taken with its first byte. */
static size_t lineq_take(struct lineq *q, size_t size, const char **data)
{
	size_t n = q->rest_len - q->rest_off;

	if (n > size)
		n = size;
	*data = q->rest + q->rest_off;
	q->rest_off += n;
	return n;
}

ssize_t lineq_read(struct lineq *q, struct fs_req *req, void *buf, size_t size)
{
	const char *data;
	size_t n;
	int ret;

	if (!size)
		return 0;
	/* Who came first takes the next line. */
	ret = q->readers.head ? 0 : lineq_fill(q);
	if (ret < 0)
		return ret;
	if (!ret && (q->file->flags & O_NONBLOCK))
		return -EAGAIN;
	req->size = size;
	if (!ret)
		return waitq_add(&q->readers, req);
	n = lineq_take(q, size, &data);
	memcpy(buf, data, n);
	return n;
}

unsigned int lineq_poll(struct lineq *q)
{
	bool ready = q->rest_off < q->rest_len || (q->ready ? q->ready(q) : lineq_fill(q) > 0);

	return ready ? POLLIN | POLLRDNORM : 0;
}

void lineq_wake(struct lineq *q)
{
	struct fs_req *req;
	const char *data;
	size_t n;
	int ret;

	while (q->readers.head) {
		ret = lineq_fill(q);
		if (!ret)
			return;
		req = waitq_take(&q->readers);
		if (ret < 0) {
			fs_reply(req, ret, NULL, 0);
			continue;
		}
		n = lineq_take(q, req->size, &data);
		fs_reply(req, n, data, n);
	}
	fs_wake(q->file);
}

void lineq_fail(struct lineq *q, int err)
{
	waitq_fail(&q->readers, err);
	fs_wake(q->file);
}

void lineq_free(struct lineq *q)
{
	free(q->rest);
	q->rest = NULL;
	q->rest_len = q->rest_off = 0;
}

/* Cut a line into words, in place. */
static int split_words(struct ctl_line *line, char *text)
{
	char *save, *word;

	line->argc = 0;
	for (word = strtok_r(text, " \t\r", &save); word; word = strtok_r(NULL, " \t\r", &save)) {
		if (line->argc == CTL_WORDS)
			return -E2BIG;
		line->argv[line->argc++] = word;
	}
	return 0;
}

static int run_line(struct ibfs *ibfs, const char *text, size_t len,
		    int (*run)(void *ctx, struct ctl_line *line), void *ctx)
{
	struct ctl_line line;
	char *copy;
	int ret;

	if (memchr(text, '\0', len))
		return ibfs_fail(ibfs, EINVAL, "a NUL byte in a command");
	copy = strndup(text, len);
	if (!copy)
		return -ENOMEM;
	ret = split_words(&line, copy);
	if (ret)
		ret = ibfs_fail(ibfs, -ret, "more than %d words in a command", CTL_WORDS);
	else if (line.argc)
		ret = run(ctx, &line);
	free(copy);
	return ret;
}

ssize_t ctl_write(struct ibfs *ibfs, const char *text, size_t len,
		  int (*run)(void *ctx, struct ctl_line *line), void *ctx)
{
	size_t off = 0, n;
	const char *end;
	int ret;

	while (off < len) {
		end = memchr(text + off, '\n', len - off);
		n = end ? (size_t)(end - (text + off)) : len - off;
		ret = run_line(ibfs, text + off, n, run, ctx);
		if (ret)
			return off ? (ssize_t)off : ret;
		off += n + (end != NULL);
	}
	return len;
}

const char *ctl_value(const char *arg, const char *key)
{
	size_t n = strlen(key);

	return !strncmp(arg, key, n) && arg[n] == '=' ? arg + n + 1 : NULL;
}

/* The number at text's start; *end behind it. */
static int number(const char *text, uint64_t *value, char **end)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;

	if (hex ? !isxdigit((unsigned char)*digits) : !isdigit((unsigned char)*digits))
		return -EINVAL;
	errno = 0;
	*value = strtoull(digits, end, hex ? 16 : 10);
	return errno ? -EINVAL : 0;
}

int parse_u64(const char *text, uint64_t max, uint64_t *value)
{
	uint64_t v;
	char *end;

	if (number(text, &v, &end) || *end || v > max)
		return -EINVAL;
	*value = v;
	return 0;
}

int parse_size(const char *text, uint64_t max, uint64_t *value)
{
	static const char units[] = "KMG";
	unsigned int shift = 0;
	const char *unit;
	uint64_t v;
	char *end;

	if (number(text, &v, &end))
		return -EINVAL;
	if (*end) {
		unit = strchr(units, *end);
		if (!unit || end[1])
			return -EINVAL;
		shift = 10 * (unit - units + 1);
	}
	if (v > max >> shift)
		return -EINVAL;
	*value = v << shift;
	return 0;
}

int number_name(const char *name, uint64_t max, uint64_t *value)
{
	if (name[0] == '0' && name[1])
		return -EINVAL;
	return parse_u64(name, max, value);
}
