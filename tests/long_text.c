/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long text without a front end: it is made in pieces, one in a turn of the loop
 * however many read; users have equal shares; what changes meanwhile breaks
 * nothing; a reader gets the bytes that it asks for, and memory stays bounded.
 */
#include <ev.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <ibfs/slots.h>

#include "fabric/fabric.h"
#include "fs/tree.h"
#include "hca/mad.h"
#include "check.h"

enum {
	SWITCHES = 24, CAS = 30,	/* of each switch */
	TURN = 16 << 10,		/* bytes that a turn may print, and some */
	CHUNK = 32 << 10,		/* of a read */
	READERS = 24,
};

static struct ibfs ibfs;
static const struct path topology = { .kind = KIND_TOPOLOGY };

/* A file that is read from its start to its end, or as a test wants it. */
struct reader {
	struct fs_req req;		/* first */
	struct file *file;
	bool waits;
	ssize_t result;
	unsigned int answers;
	struct textbuf text;
	char buf[CHUNK];
};

static void answered(struct fs_req *req, ssize_t result, const void *data, size_t len)
{
	struct reader *r = (struct reader *)req;

	CHECK(r->waits);
	r->waits = false;
	r->result = result;
	r->answers++;
	if (len)
		memcpy(r->buf, data, len);
}

static void open_it(struct reader *r, struct path path, uid_t uid)
{
	memset(r, 0, sizeof(*r));
	r->req.ibfs = &ibfs;
	r->req.cred.uid = uid;
	r->req.reply = answered;
	CHECK(fs_open(&r->req, path, O_RDONLY, &r->file) == 0);
}

static void close_it(struct reader *r)
{
	fs_release(r->file);
	text_free(&r->text);
}

static void ask(struct reader *r, size_t size, off_t off)
{
	ssize_t ret = fs_read(&r->req, r->file, r->buf, size, off);

	r->waits = ret == FS_PENDING;
	if (r->waits)
		return;
	r->result = ret;
	r->answers++;
}

static void turn(void)
{
	ev_run(ibfs.loop, EVRUN_NOWAIT);
}

static void wait_for(struct reader *r)
{
	while (r->waits)
		turn();
}

/* One read of it after the other as they are answered. True: there is more. */
static bool go_on(struct reader *r)
{
	if (r->waits)
		return true;
	if (r->answers) {
		CHECK(r->result >= 0);
		if (r->result <= 0)
			return false;
		text_put(&r->text, r->buf, r->result);
	}
	ask(r, CHUNK, r->text.len);
	return true;
}

static void read_all(struct reader *r)
{
	while (go_on(r))
		turn();
	text_put(&r->text, "", 1);
}

/* What the file says while nothing else happens. */
static struct textbuf topology_text(void)
{
	struct topology_dump at = { 0 };
	struct textbuf out = { 0 };

	while (topology_dump(&at, ibfs.fabric, &out))
		;
	text_put(&out, "", 1);
	out.len--;
	return out;
}

static void make_fabric(void)
{
	struct node *sw[SWITCHES], *ca;
	unsigned int i, j;
	char name[32];

	for (i = 0; i < SWITCHES; i++) {
		snprintf(name, sizeof(name), "S-%u", i);
		sw[i] = node_new(ibfs.fabric, NODE_SWITCH, name, CAS + 2, 0);
		CHECK(sw[i] && (!i || link_new(&sw[i - 1]->ports[CAS + 1], &sw[i]->ports[CAS + 2])));
		for (j = 1; j <= CAS; j++) {
			snprintf(name, sizeof(name), "H-%u-%u", i, j);
			ca = node_new(ibfs.fabric, NODE_CA, name, 1, 0);
			CHECK(ca && link_new(&ca->ports[1], &sw[i]->ports[j]));
		}
	}
	CHECK(soft_device_add(&ibfs, "rxe0", "H-0-1") == 0);
}

static void read_short_file(void)
{
	struct reader r;

	open_it(&r, (struct path){ .kind = KIND_PORT_TEXT, .port = 1 }, 1000);
	ask(&r, sizeof(r.buf), 0);
	CHECK(!r.waits && r.result > 0);
	close_it(&r);
}

/* The turn's piece is done at once for who comes first, so that little is there at once. */
static void test_at_once(void)
{
	struct path path = { .kind = KIND_NODE_LFT, .idx = fabric_find(ibfs.fabric, "S-5")->index };
	struct reader first, second;

	turn();
	turn();
	open_it(&first, path, 1000);
	open_it(&second, path, 1001);
	ask(&first, CHUNK, 0);
	CHECK(!first.waits);
	ask(&second, CHUNK, 0);
	CHECK(second.waits);
	turn();
	CHECK(!second.waits);
	close_it(&first);
	close_it(&second);
}

/* However many read, a turn prints a piece; between two pieces others are answered at once. */
static void test_turns(unsigned int count)
{
	struct reader *readers = calloc(count, sizeof(*readers));
	struct textbuf right = topology_text();
	unsigned int turns = 0, i;
	bool more = true;

	for (i = 0; i < count; i++)
		open_it(&readers[i], topology, 1000 + i % 5);
	while (more) {
		more = false;
		for (i = 0; i < count; i++)
			more |= go_on(&readers[i]);
		read_short_file();
		turn();
		turns++;
	}
	CHECK(right.len > 8 * TURN);
	CHECK(turns >= count * (right.len / TURN));
	for (i = 0; i < count; i++) {
		CHECK(readers[i].text.len == right.len &&
		      !memcmp(readers[i].text.data, right.data, right.len));
		close_it(&readers[i]);
	}
	free(readers);
	text_free(&right);
}

/* Who has many files open gets no more of the time than who has one. */
static void test_shares(void)
{
	struct reader *greedy = calloc(READERS, sizeof(*greedy)), one;
	unsigned int i, alone = 0, beside = 0;

	open_it(&one, topology, 2000);
	for (ask(&one, CHUNK, 0); one.waits; alone++)
		turn();
	close_it(&one);
	for (i = 0; i < READERS; i++) {
		open_it(&greedy[i], topology, 1000);
		ask(&greedy[i], CHUNK, 0);
	}
	open_it(&one, topology, 2000);
	for (ask(&one, CHUNK, 0); one.waits; beside++)
		turn();
	CHECK(alone >= 3 && beside <= 2 * alone + 4);
	close_it(&one);
	for (i = 0; i < READERS; i++) {
		wait_for(&greedy[i]);
		close_it(&greedy[i]);
	}
	free(greedy);
}

/* Any part of the text, in any order, also by two at a time; and by who was forgotten. */
static void test_offsets(void)
{
	enum { FILES = 300 };
	struct reader *r = calloc(FILES, sizeof(*r));
	struct textbuf right = topology_text();
	off_t *at = calloc(FILES, sizeof(*at));
	struct reader second;
	unsigned int i, round;

	for (i = 0; i < FILES; i++)
		open_it(&r[i], topology, 1000 + i % 3);
	for (round = 0; round < 800; round++) {
		i = random() % FILES;
		if (random() % 3 == 0)
			at[i] = random() % (right.len + 100);
		ask(&r[i], 1 + random() % CHUNK, at[i]);
		wait_for(&r[i]);
		CHECK(r[i].result >= 0 && at[i] + r[i].result <= (off_t)right.len + 100);
		CHECK((r[i].result == 0) == (at[i] >= (off_t)right.len));
		if (at[i] < (off_t)right.len)
			CHECK(!memcmp(r[i].buf, right.data + at[i], r[i].result));
		at[i] += r[i].result;
		CHECK(ibfs.fs->num_windows <= 256);
	}
	/* Two reads of one file. */
	second = (struct reader){ .req = r[0].req, .file = r[0].file };
	ask(&r[0], CHUNK, right.len - 1000);
	ask(&second, CHUNK, 5000);
	CHECK(r[0].waits && second.waits);
	wait_for(&r[0]);
	wait_for(&second);
	CHECK(r[0].result == 1000 && !memcmp(r[0].buf, right.data + right.len - 1000, 1000));
	CHECK(second.result > 0 && !memcmp(second.buf, right.data + 5000, second.result));
	for (i = 0; i < FILES; i++)
		close_it(&r[i]);
	CHECK(!ibfs.fs->num_windows && !ibfs.fs->windows);
	text_free(&right);
	free(at);
	free(r);
}

/* How often the text has a record of this node. */
static unsigned int records(const struct textbuf *text, const char *id)
{
	const char *at = text->data;
	unsigned int n = 0;
	char key[64];

	snprintf(key, sizeof(key), "\n%s ", id);
	for (at = strstr(at, id[0] == 'S' ? "\nSwitch\t" : "\nCa\t"); at;
	     at = strstr(at + 1, id[0] == 'S' ? "\nSwitch\t" : "\nCa\t")) {
		snprintf(key, sizeof(key), "\"%s\"\t", id);
		n += !strncmp(strchr(at, '"'), key, strlen(key));
	}
	return n;
}

/* Each line is one that the format has. */
static void check_lines(const struct textbuf *text)
{
	static const char *const begins[] = { "#", "vendid=", "devid=", "sysimgguid=", "switchguid=",
		"caguid=", "Switch\t", "Ca\t", "[", "\n" };
	const char *line, *end;
	size_t i;

	for (line = text->data; *line; line = end + 1) {
		for (i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
			if (!strncmp(line, begins[i], strlen(begins[i])))
				break;
		CHECK(i < sizeof(begins) / sizeof(begins[0]));
		end = strchr(line, '\n');
		if (!end) {
			CHECK(!"a whole line");
			return;
		}
	}
}

/* Nodes go and come in every turn: who stays is there once, who goes or comes at most once. */
static void test_changes(void)
{
	unsigned int i, j, count = 0, news = 0;
	char name[32];
	struct reader r;

	open_it(&r, topology, 1000);
	while (go_on(&r)) {
		struct node *node;

		i = random() % SWITCHES;
		j = 2 * (1 + random() % (CAS / 2));
		snprintf(name, sizeof(name), "H-%u-%u", i, j);
		node = fabric_find(ibfs.fabric, name);
		if (node && count++ < SWITCHES * CAS / 4)
			node_remove(node);
		node = fabric_find(ibfs.fabric, "S-7");
		if (node && r.text.len > 8 * TURN)
			node_remove(node);
		snprintf(name, sizeof(name), "H-new-%u", news++);
		CHECK(node_new(ibfs.fabric, NODE_CA, name, 2, 0));
		turn();
	}
	text_put(&r.text, "", 1);
	check_lines(&r.text);
	CHECK(strstr(r.text.data, "\n# The fabric changed while this was read"));
	for (i = 0; i < SWITCHES; i++) {
		snprintf(name, sizeof(name), "S-%u", i);
		CHECK(records(&r.text, name) == 1 || i == 7);
		for (j = 1; j <= CAS; j++) {
			snprintf(name, sizeof(name), "H-%u-%u", i, j);
			CHECK(records(&r.text, name) <= 1);
			CHECK(records(&r.text, name) == 1 || !fabric_find(ibfs.fabric, name));
		}
	}
	close_it(&r);
	open_it(&r, topology, 1000);
	read_all(&r);
	CHECK(!strstr(r.text.data, "The fabric changed"));
	close_it(&r);
}

/* Who gives up is answered, and harms nobody; neither does a file that is closed. */
static void test_cancel(void)
{
	struct textbuf right = topology_text();
	struct reader a, b;
	unsigned int i;

	open_it(&a, topology, 1000);
	open_it(&b, topology, 1000);
	for (i = 0; i < 40; i++) {
		ask(&a, CHUNK, 4096);
		ask(&b, CHUNK, 0);
		for (unsigned int n = i % 9; n; n--)
			turn();
		if (a.waits) {
			fs_cancel(&a.req);
			CHECK(!a.waits && a.result == -EINTR);
		}
		wait_for(&b);
		CHECK(b.result > 0 && !memcmp(b.buf, right.data, b.result));
	}
	ask(&a, CHUNK, right.len / 2);
	ask(&b, CHUNK, right.len / 2);
	CHECK(a.waits && b.waits);
	turn();
	close_it(&a);
	CHECK(!a.waits && a.result == -EINTR);
	wait_for(&b);
	CHECK(b.result > 0 && !memcmp(b.buf, right.data + right.len / 2, b.result));
	close_it(&b);
	text_free(&right);
}

/* What a file is about goes while somebody waits for it. */
static void test_gone(void)
{
	struct node *node = fabric_find(ibfs.fabric, "S-3");
	struct path path = { .kind = KIND_NODE_LFT, .idx = node->index };
	unsigned int lid;
	struct reader r;

	for (lid = 1; lid < 0xc000; lid++)
		switch_set_lft(node, lid, lid % CAS);
	open_it(&r, path, 1000);
	read_all(&r);
	CHECK(strstr(r.text.data, "0xbfff ") && r.text.len > 8 * 49000);
	r.text.len = 0;
	ask(&r, CHUNK, 400000);
	CHECK(r.waits);
	turn();
	node_remove(node);
	wait_for(&r);
	CHECK(r.result == -ENODEV);
	ask(&r, CHUNK, 0);
	wait_for(&r);
	CHECK(r.result == -ENODEV);
	close_it(&r);
}

/* Things keep their numbers while others come and go; each that stays is met once. */
static void test_slots(void)
{
	enum { THINGS = 500 };
	struct thing { uint32_t num; bool there; unsigned int met, born; } things[THINGS] = { 0 }, *t;
	struct slots slots = { 0 };
	unsigned int round, i, n;
	uint32_t next;

	for (round = 1; round < 300; round++) {
		for (i = 0; i < THINGS; i++)
			things[i].met = 0;
		next = 0;
		while ((t = slots_next(&slots, &next)) != NULL) {
			CHECK(t->there && t->num == next - 1 && !t->met++);
			for (n = 0; n < 4; n++) {
				i = random() % THINGS;
				t = &things[i];
				if (t->there && random() % 2) {
					slots_remove(&slots, t->num);
					t->there = false;
				} else if (!t->there) {
					CHECK(slots_add(&slots, t, &t->num));
					t->there = true;
					t->born = round;
					t->met = 0;
				}
			}
		}
		for (i = n = 0; i < THINGS; i++) {
			n += things[i].there;
			CHECK(!things[i].there || things[i].born == round || things[i].met == 1);
		}
		CHECK(n == slots.count);
		if (!n) {
			CHECK(slots_add(&slots, &things[0], &things[0].num));
			things[0].there = true;
			things[0].born = round;
		}
	}
	for (i = 0; i < THINGS; i++)
		if (things[i].there)
			slots_remove(&slots, things[i].num);
	CHECK(!slots.slots && !slots.room);
	next = 0;
	CHECK(!slots_next(&slots, &next));
}

static unsigned int lines_done(const char *name)
{
	const struct node *node = fabric_find(ibfs.fabric, name);

	return node ? node->index : 0;
}

static void start_write(struct reader *r, const char *text, size_t len)
{
	ssize_t ret = fs_write(&r->req, r->file, text, len, 0);

	r->waits = ret == FS_PENDING;
	if (!r->waits)
		r->result = ret;
}

/* "ca NAME-0 1\n" and so on */
static struct textbuf ca_lines(const char *name, unsigned int count)
{
	struct textbuf text = { 0 };

	for (unsigned int i = 0; i < count; i++)
		text_printf(&text, "ca %s-%u 1\n", name, i);
	return text;
}

/* A write of many lines: some in a turn, in their order; it ends at the first that fails. */
static void test_lines(void)
{
	enum { COUNT = 1000, IN_A_TURN = 32 };
	struct textbuf text = ca_lines("a", COUNT);
	unsigned int first = ibfs.fabric->num_nodes, before = first, i;
	struct reader r;
	size_t len;

	open_it(&r, (struct path){ .kind = KIND_FABRIC_CTL }, 0);
	start_write(&r, text.data, text.len);
	CHECK(r.waits);
	for (i = 0; r.waits && i < COUNT; i++) {
		CHECK(ibfs.fabric->num_nodes - before <= IN_A_TURN);
		before = ibfs.fabric->num_nodes;
		read_short_file();
		turn();
	}
	CHECK(!r.waits && r.result == (ssize_t)text.len && i >= COUNT / IN_A_TURN - 1);
	CHECK(ibfs.fabric->num_nodes == first + COUNT && lines_done("a-999") == first + 999);
	text_free(&text);
	/* A line that fails, in the first piece and in a later one; the last without a newline. */
	text = ca_lines("b", 200);
	len = text.len;
	text_printf(&text, "no such thing\nca b-200 1\nca b-201 1");
	start_write(&r, text.data, text.len);
	wait_for(&r);
	CHECK(r.result == (ssize_t)len && lines_done("b-199") && !lines_done("b-200"));
	start_write(&r, text.data + len, text.len - len);
	CHECK(!r.waits && r.result == -EINVAL);
	len = strstr(text.data, "ca b-200") - text.data;
	start_write(&r, text.data + len, text.len - len);
	CHECK(!r.waits && r.result == (ssize_t)(text.len - len) && lines_done("b-201"));
	text_free(&text);
	/* Who gives up is told how far it came. */
	text = ca_lines("c", COUNT);
	start_write(&r, text.data, text.len);
	turn();
	turn();
	CHECK(r.waits);
	fs_cancel(&r.req);
	CHECK(!r.waits && r.result > 0 && text.data[r.result - 1] == '\n');
	CHECK(!strncmp(text.data + r.result, "ca c-", 5));
	i = atoi(text.data + r.result + 5);
	CHECK(i >= IN_A_TURN && i <= 3 * IN_A_TURN && !fabric_find(ibfs.fabric, "c-999"));
	CHECK(ibfs.fabric->num_nodes == first + COUNT + 202 + i);
	close_it(&r);
	text_free(&text);
}

/* Lines with nothing in them take time, too. */
static void test_empty_lines(void)
{
	enum { BYTES = 300000 };
	char *text = malloc(BYTES);
	unsigned int turns = 0;
	struct reader r;

	memset(text, '\n', BYTES);
	open_it(&r, (struct path){ .kind = KIND_DEV_QUERY }, 1000);
	start_write(&r, text, BYTES);
	for (; r.waits; turns++)
		turn();
	CHECK(r.result == BYTES && turns >= BYTES / 4096 - 1);
	close_it(&r);
	free(text);
}

static unsigned int waiting(const struct reader *readers, unsigned int count)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < count; i++)
		n += readers[i].waits;
	return n;
}

/* Each who waits for an event hears of it, some in a turn; who came first misses none. */
static void test_events(void)
{
	enum { COUNT = 3000, AT_ONCE = 16, IN_A_TURN = 300 };
	struct reader *r = calloc(COUNT, sizeof(*r));
	unsigned int i, now, before;

	for (i = 0; i < COUNT; i++) {
		open_it(&r[i], (struct path){ .kind = KIND_EVENTS }, 1000 + i % 3);
		ask(&r[i], CHUNK, 0);
		CHECK(r[i].waits);
	}
	textring_add(ibfs.events, "one");
	before = waiting(r, COUNT);
	CHECK(before >= COUNT - AT_ONCE && before < COUNT);
	ask(&r[0], CHUNK, 0);
	CHECK(r[0].waits);
	textring_add(ibfs.events, "two");
	/* Some go while others are told. */
	for (i = 100; i < COUNT; i += 7) {
		fs_cancel(&r[i].req);
		close_it(&r[i]);
	}
	before = waiting(r, COUNT);
	for (i = 0; before && i < COUNT; i++) {
		turn();
		now = waiting(r, COUNT);
		CHECK(before - now <= IN_A_TURN);
		before = now;
	}
	CHECK(!before);
	CHECK(!memcmp(r[0].buf, "two\n", 4) && !memcmp(r[1].buf, "one\n", 4));
	for (i = 0; i < COUNT; i++) {
		if (i >= 100 && (i - 100) % 7 == 0)
			continue;
		if (i) {
			CHECK(!memcmp(r[i].buf, "one\n", 4));
			ask(&r[i], CHUNK, 0);
			CHECK(!r[i].waits && !memcmp(r[i].buf, "two\n", 4));
		}
		close_it(&r[i]);
	}
	free(r);
}

int main(void)
{
	ibfs.loop = ev_loop_new(0);
	ibfs.tasks = taskq_new(ibfs.loop);
	ibfs.errors = textring_new(16);
	ibfs.events = textring_new(16);
	textring_wake_by(ibfs.events, ibfs.tasks);
	ibfs.fabric = fabric_new(&ibfs, &sim_node_ops);
	CHECK(fs_init(&ibfs) == 0);
	make_fabric();
	test_at_once();
	test_turns(1);
	test_at_once();
	test_turns(READERS);
	test_shares();
	test_offsets();
	test_cancel();
	test_changes();
	test_gone();
	test_events();
	test_slots();
	test_lines();
	test_empty_lines();
	CHECK(ibfs.fs->open_files == 0);
	while (ibfs.devices)
		ibfs.devices->ops->remove(ibfs.devices);
	fabric_free(ibfs.fabric);
	fs_exit(&ibfs);
	textring_free(ibfs.errors);
	textring_free(ibfs.events);
	taskq_free(ibfs.tasks);
	ev_loop_destroy(ibfs.loop);
	return failed;
}
