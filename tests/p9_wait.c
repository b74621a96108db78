/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What blocks, over 9P: reads and an open that wait as pending tags, Tflush,
 * clunk and Tversion while they wait, hundreds of connections of them, clients
 * that stop in the middle of a message or don't read. On the default fabric.
 *
 * usage: p9_wait SOCKET
 */
#include "p9_test.h"

enum { EVENTS = 1, CTL = 2, DATA = 3, ISSM = 4, O_NONBLOCK_L = 04000 };
enum { CONNECTIONS = 300, TAGS = 8, SHORT_MS = 50 };

static const char *address;

/* Events that everybody sees: a cable is pulled and plugged. */
static void make_event(struct p9 *p9)
{
	CHECK(p9_echo(p9, "fabric/links/rxe0:1-switch:1/ctl", "down\n") == 5);
	CHECK(p9_echo(p9, "fabric/links/rxe0:1-switch:1/ctl", "up\n") == 3);
}

/* A Tread of what isn't there yet. */
static void read_later(struct p9 *p9, uint16_t tag, uint32_t fid)
{
	p9_send(p9, TREAD, tag, "dqd", fid, (uint64_t)0, 4096);
}

static bool is_answer(struct p9 *p9, uint8_t type, uint16_t tag)
{
	return p9_recv(p9) && p9->type == type && p9->tag == tag;
}

static bool is_error(struct p9 *p9, uint16_t tag, int err)
{
	return is_answer(p9, RLERROR, tag) && p9_result(p9) == -err;
}

/* Open and read to the end of what there is now, so that the next read waits. */
static void open_drained(struct p9 *p9, uint32_t fid, const char *path)
{
	long n;

	CHECK_ERR(p9_open(p9, fid, path, O_NONBLOCK_L), 0);
	do
		n = p9_read(p9, fid, 0, 4096);
	while (n > 0);
	CHECK_ERR(n, EAGAIN);
	CHECK_ERR(p9_clunk(p9, fid), 0);
	CHECK_ERR(p9_open(p9, fid, path, 0), 0);
}

static void pending_reads(void)
{
	struct p9 *p9 = p9_start(address, "9P2000.L");
	char text[64];

	CHECK_ERR(p9_open(p9, EVENTS, "events", 0), 0);
	read_later(p9, 900, EVENTS);
	CHECK(!p9_waits(p9, SHORT_MS));
	/* Others go on meanwhile; the same tag isn't free. */
	CHECK(p9_cat(p9, "version", text, sizeof(text)) > 0);
	read_later(p9, 900, EVENTS);
	CHECK(is_error(p9, 900, EINVAL));
	p9_end(p9);
}

static void answered_read(void)
{
	struct p9 *p9 = p9_start(address, "9P2000.L"), *other = p9_start(address, "9P2000.L");

	CHECK_ERR(p9_open(p9, EVENTS, "events", 0), 0);
	read_later(p9, 900, EVENTS);
	CHECK(!p9_waits(p9, SHORT_MS));
	make_event(other);
	CHECK(is_answer(p9, TREAD + 1, 900));
	CHECK(p9_get(p9->body, 4) > 0 && p9->body[4 + p9_get(p9->body, 4) - 1] == '\n');
	p9_end(other);
	p9_end(p9);
}

static void flushes(void)
{
	struct p9 *p9 = p9_start(address, "9P2000.L");
	char text[64];

	/* Of what isn't there, and of what was answered. */
	CHECK_ERR(p9_rpc(p9, TFLUSH, "w", 1234), 0);
	CHECK_ERR(p9_open(p9, EVENTS, "events", 0), 0);
	read_later(p9, 900, EVENTS);
	p9_send(p9, TFLUSH, 901, "w", 900);
	CHECK(is_answer(p9, TFLUSH + 1, 901));
	/* No answer to 900 any more, and it can be used again. */
	CHECK(!p9_waits(p9, SHORT_MS));
	read_later(p9, 900, EVENTS);
	CHECK(!p9_waits(p9, SHORT_MS));
	/* Twice the same, and a flush of a flush: answers in the order of the requests. */
	p9_send(p9, TFLUSH, 901, "w", 900);
	p9_send(p9, TFLUSH, 902, "w", 900);
	p9_send(p9, TFLUSH, 903, "w", 902);
	CHECK(is_answer(p9, TFLUSH + 1, 901));
	CHECK(is_answer(p9, TFLUSH + 1, 902));
	CHECK(is_answer(p9, TFLUSH + 1, 903));
	CHECK(p9_cat(p9, "version", text, sizeof(text)) > 0);
	p9_end(p9);
}

/* Of two fids one's read is flushed, the other's clunked: each hears of its own end. */
static void clunks(void)
{
	struct p9 *p9 = p9_start(address, "9P2000.L");

	CHECK_ERR(p9_open(p9, EVENTS, "events", 0), 0);
	CHECK_ERR(p9_open(p9, DATA, "events", 0), 0);
	read_later(p9, 900, EVENTS);
	read_later(p9, 901, DATA);
	p9_send(p9, TCLUNK, 902, "d", EVENTS);
	CHECK(is_error(p9, 900, EINTR));
	CHECK(is_answer(p9, TCLUNK + 1, 902));
	CHECK(!p9_waits(p9, SHORT_MS));
	CHECK_ERR(p9_rpc(p9, TREAD, "dqd", EVENTS, (uint64_t)0, 100), EBADF);
	/* A fid whose file is read can't be walked or opened. */
	CHECK_ERR(p9_rpc(p9, TWALK, "ddw", DATA, DATA, 0), EBUSY);
	CHECK_ERR(p9_openfid(p9, DATA, 0), EBUSY);
	/* A new session: nothing is answered, no fid is left. */
	CHECK_ERR(p9_version(p9, "9P2000.L", 8192), 0);
	CHECK(p9_attach(p9, DATA, "", NONUNAME, "") >= 0);
	CHECK(!p9_waits(p9, SHORT_MS));
	p9_end(p9);
}

/* Every kind of file that waits: a read of each, flushed, and O_NONBLOCK's error. */
static void all_kinds(void)
{
	static const char *const paths[] = {
		"events", "rxe0/events", "cq/c/wc", "cq/c/events", "qp/a/recv", "srq/s/events",
		"rxe0/1/mad/1/data",
	};
	struct p9 *p9 = p9_start(address, "9P2000.L");
	char number[16], path[64];
	unsigned int i;
	long n;

	CHECK_ERR(p9_open(p9, CTL, "rxe0/1/mad/clone", 2), 0);
	n = p9_read(p9, CTL, 0, sizeof(number) - 1);
	CHECK(n > 1);
	snprintf(number, sizeof(number), "%d", atoi((char *)p9->body + 4));
	/* clone is its ctl now */
	CHECK(p9_write(p9, CTL, 0, "register class=9 version=1\n", 27) == 27);
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		snprintf(path, sizeof(path), "%s", paths[i]);
		if (strstr(path, "mad/"))
			snprintf(path, sizeof(path), "rxe0/1/mad/%s/data", number);
		open_drained(p9, DATA, path);
		read_later(p9, 900, DATA);
		if (p9_waits(p9, SHORT_MS))
			fprintf(stderr, "%s doesn't wait\n", path), failures++;
		p9_send(p9, TFLUSH, 901, "w", 900);
		CHECK(is_answer(p9, TFLUSH + 1, 901));
		CHECK_ERR(p9_clunk(p9, DATA), 0);
	}
	p9_end(p9);
}

/* What Linux' read() of more than a line asks for: the rest, which is told to be empty. */
static void linux_reads(void)
{
	struct p9 *p9 = p9_start(address, "9P2000.L"), *other = p9_start(address, "9P2000.L");
	long n;

	CHECK_ERR(p9_open(p9, EVENTS, "events", 0), 0);
	make_event(other);
	n = p9_read(p9, EVENTS, 0, 4096);
	CHECK(n > 0 && n < 4096);
	CHECK(p9_read(p9, EVENTS, n, 4096 - n) == 0);
	/* The next read() begins there, and gets the next line. */
	CHECK(p9_read(p9, EVENTS, n, 4096) > 0);
	p9_end(other);
	p9_end(p9);
}

static bool is_sm(struct p9 *p9)
{
	char text[32] = "";

	p9_cat(p9, "rxe1/1/cap_mask", text, sizeof(text));
	return strtoul(text, NULL, 0) & 2;
}

/* The next one waits in its open; a flushed open holds nothing; hanging up lets go. */
static void issm(void)
{
	struct p9 *a = p9_start(address, "9P2000.L"), *b = p9_start(address, "9P2000.L");
	struct p9 *c = p9_start(address, "9P2000");

	CHECK_ERR(p9_open(a, ISSM, "rxe1/1/issm", 0), 0);
	CHECK(is_sm(c));
	CHECK_ERR(p9_open(b, ISSM, "rxe1/1/issm", O_NONBLOCK_L), EAGAIN);
	/* the fid is as it was before */
	p9_send(b, TLOPEN, 900, "dd", ISSM, 0);
	CHECK(!p9_waits(b, SHORT_MS));
	p9_send(b, TFLUSH, 901, "w", 900);
	CHECK(is_answer(b, TFLUSH + 1, 901));
	p9_send(b, TLOPEN, 902, "dd", ISSM, 0);
	CHECK(!p9_waits(b, SHORT_MS));
	/* 9P2000's client stands in the line too. */
	CHECK_ERR(p9_walk(c, ISSM, "rxe1/1/issm"), 0);
	p9_send(c, TOPEN, 903, "db", ISSM, 0);
	CHECK(!p9_waits(c, SHORT_MS));
	p9_end(a);
	CHECK(is_answer(b, TLOPEN + 1, 902));
	CHECK_ERR(p9_clunk(b, ISSM), 0);
	CHECK(is_answer(c, TOPEN + 1, 903));
	CHECK(is_sm(b));
	p9_end(c);
	while (is_sm(b))
		usleep(1000);
	p9_end(b);
}

/* A walk to a node that doesn't answer: given up at once by Tflush, else after a while. */
static void far_nodes(void)
{
	struct p9 *p9 = p9_start(address, "9P2000.L"), *other = p9_start(address, "9P2000.L");
	uint8_t buf[256];
	char text[64];
	size_t len;

	CHECK(p9_echo(other, "fabric/links/rxe0:1-switch:1/ctl", "drop=1\n") == 7);
	len = p9_build(buf, TWALK, 900, "ddwssss", 0, 1, 4, "rxe0", "1", "peer", "node_guid");
	len += p9_build(buf + len, TFLUSH, 901, "w", 900);
	p9_write_all(p9->fd, buf, len);
	CHECK(is_answer(p9, TFLUSH + 1, 901));
	CHECK_ERR(p9_clunk(p9, 1), EBADF);
	len = p9_build(buf, TWALK, 900, "ddwssss", 0, 1, 4, "rxe0", "1", "peer", "node_guid");
	p9_write_all(p9->fd, buf, len);
	CHECK(p9_cat(other, "version", text, sizeof(text)) > 0);
	CHECK(is_answer(p9, TWALK + 1, 900) && p9_get(p9->body, 2) == 3);
	/* Hung up on while it waits: nothing of it may be left. */
	p9_write_all(p9->fd, buf, len);
	p9_end(p9);
	CHECK(p9_echo(other, "fabric/links/rxe0:1-switch:1/ctl", "faults off\n") == 11);
	while (p9_cat(other, "rxe0/1/peer/node_type", text, sizeof(text)) == -ENOENT)
		usleep(1000);
	CHECK(!strcmp(text, "2: switch\n"));
	p9_end(other);
}

/* Many connections, each with reads that wait; then all flushed at once; then all answered. */
static void storm(void)
{
	struct p9 *all[CONNECTIONS], *p9;
	unsigned int i, t;
	uint8_t buf[TAGS * 64];
	size_t len;

	for (i = 0; i < CONNECTIONS; i++) {
		p9 = all[i] = p9_start(address, "9P2000.L");
		CHECK_ERR(p9_open(p9, EVENTS, "events", 0), 0);
		for (t = 0; t < 2 * TAGS; t++)
			read_later(p9, t, EVENTS);
	}
	for (i = 0; i < CONNECTIONS; i++) {
		/* in one write, in the middle of which a message ends */
		for (t = 0, len = 0; t < TAGS; t++)
			len += p9_build(buf + len, TFLUSH, 1000 + t, "w", (t * 5 + 3) % TAGS);
		p9_write_all(all[i]->fd, buf, len - 5);
		if (i % 2)
			p9_write_all(all[i]->fd, buf + len - 5, 5);
	}
	for (i = 1; i < CONNECTIONS; i += 2)
		for (t = 0; t < TAGS; t++)
			CHECK(is_answer(all[i], TFLUSH + 1, 1000 + t));
	p9 = p9_start(address, "9P2000.L");
	make_event(p9);
	p9_end(p9);
	/* Half of the others have hung up with everything pending. */
	for (i = 0; i < CONNECTIONS; i += 2)
		p9_end(all[i]);
	for (i = 1; i < CONNECTIONS; i += 2) {
		CHECK(is_answer(all[i], TREAD + 1, TAGS));
		p9_end(all[i]);
	}
}

/* Who sends half a message, or doesn't read answers, keeps nobody else waiting. */
static void slow_clients(void)
{
	struct p9 *half = p9_start(address, "9P2000.L"), *deaf = p9_start(address, "9P2000.L");
	struct p9 *p9 = p9_start(address, "9P2000.L");
	uint8_t buf[64];
	char text[64];
	unsigned int i;
	size_t len = p9_build(buf, TREAD, 1, "dqd", EVENTS, (uint64_t)0, 1 << 20);

	p9_write_all(half->fd, buf, 3);
	CHECK_ERR(p9_open(deaf, EVENTS, "mr/m/data", 0), 0);
	/* As many requests as a socket takes, for a MiB each, of which no answer is read. */
	for (i = 0; i < 100000 && send(deaf->fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL) > 0; i++)
		;
	CHECK(i > 10);
	for (i = 0; i < 50; i++)
		CHECK(p9_cat(p9, "version", text, sizeof(text)) > 0);
	p9_end(deaf);
	p9_write_all(half->fd, buf + 3, 1);
	p9_end(half);
	p9_end(p9);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	address = argv[1];
	pending_reads();
	answered_read();
	flushes();
	clunks();
	all_kinds();
	linux_reads();
	issm();
	far_nodes();
	storm();
	slow_clients();
	return failures != 0;
}
