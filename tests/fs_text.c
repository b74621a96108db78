/* SPDX-License-Identifier: BSD-2-Clause */
/* text.c: buffers, lines, words, numbers; and packed paths. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/fabricdir.h"
#include "fs/tree.h"
#include "check.h"

static void test_numbers(void)
{
	static const struct {
		const char *text;
		uint64_t max, value;
		int ret;
	} u64[] = {
		{ "0", 10, 0, 0 }, { "10", 10, 10, 0 }, { "11", 10, 0, -EINVAL },
		{ "0x1f", 255, 31, 0 }, { "0X1F", 255, 31, 0 }, { "0x", 255, 0, -EINVAL },
		{ "", 255, 0, -EINVAL }, { "-1", UINT64_MAX, 0, -EINVAL },
		{ "+1", 255, 0, -EINVAL }, { " 1", 255, 0, -EINVAL }, { "1 ", 255, 0, -EINVAL },
		{ "0x-1", 255, 0, -EINVAL }, { "010", 255, 10, 0 },
		{ "18446744073709551615", UINT64_MAX, UINT64_MAX, 0 },
		{ "18446744073709551616", UINT64_MAX, 0, -EINVAL },
	}, sizes[] = {
		{ "4K", UINT64_MAX, 4096, 0 }, { "1M", 1 << 20, 1 << 20, 0 },
		{ "2M", 1 << 20, 0, -EINVAL }, { "1G", UINT64_MAX, 1 << 30, 0 },
		{ "1k", UINT64_MAX, 0, -EINVAL }, { "1MB", UINT64_MAX, 0, -EINVAL },
		{ "0x10K", UINT64_MAX, 16384, 0 }, { "K", UINT64_MAX, 0, -EINVAL },
		{ "17179869184G", UINT64_MAX, 0, -EINVAL }, { "7", UINT64_MAX, 7, 0 },
	}, names[] = {
		{ "0", 9, 0, 0 }, { "00", 9, 0, -EINVAL }, { "01", 9, 0, -EINVAL },
		{ "0x1", 9, 0, -EINVAL }, { "9", 9, 9, 0 }, { "", 9, 0, -EINVAL },
	};
	uint64_t value;
	size_t i;

	for (i = 0; i < sizeof(u64) / sizeof(u64[0]); i++) {
		value = 0;
		CHECK(parse_u64(u64[i].text, u64[i].max, &value) == u64[i].ret);
		CHECK(value == u64[i].value);
	}
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		value = 0;
		CHECK(parse_size(sizes[i].text, sizes[i].max, &value) == sizes[i].ret);
		CHECK(value == sizes[i].value);
	}
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CHECK(number_name(names[i].text, names[i].max, &value) == names[i].ret);
}

/* Writes what it was given, and refuses "bad". */
static int run(void *ctx, struct ctl_line *line)
{
	struct textbuf *seen = ctx;
	unsigned int i;

	if (!strcmp(line->argv[0], "bad"))
		return -EPERM;
	for (i = 0; i < line->argc; i++)
		text_printf(seen, "%s%c", line->argv[i], i + 1 < line->argc ? '|' : '\n');
	return 0;
}

static void check_ctl(const char *text, size_t len, ssize_t ret, const char *seen)
{
	struct textbuf out = { 0 };
	struct ibfs ibfs = { 0 };

	CHECK(ctl_write(&ibfs, text, len, run, &out) == ret);
	CHECK(!strcmp(out.len ? out.data : "", seen));
	text_free(&out);
}

static void test_ctl(void)
{
	char many[2 * CTL_WORDS + 4];

	check_ctl("a b=1\n", 6, 6, "a|b=1\n");
	check_ctl("a b", 3, 3, "a|b\n");
	check_ctl("  a\t b\r\n\n c", 11, 11, "a|b\nc\n");
	check_ctl("", 0, 0, "");
	check_ctl("\n \n", 3, 3, "");
	check_ctl("bad\na\n", 6, -EPERM, "");
	check_ctl("a\nbad\nb\n", 8, 2, "a\n");
	check_ctl("a\n\nbad", 6, 3, "a\n");
	check_ctl("a\0b\n", 4, -EINVAL, "");
	memset(many, 0, sizeof(many));
	for (int i = 0; i <= CTL_WORDS; i++)
		memcpy(many + 2 * i, "x ", 2);
	check_ctl(many, 2 * CTL_WORDS + 2, -E2BIG, "");
	CHECK(!strcmp(ctl_value("name=x=y", "name"), "x=y"));
	CHECK(!ctl_value("names=x", "name") && !ctl_value("nam", "name") && !ctl_value("", "name"));
}

static void test_text(void)
{
	struct textbuf out = { 0 };
	char big[5000];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	text_printf(&out, "%s", big);
	text_printf(&out, "%d", 42);
	CHECK(out.len == sizeof(big) - 1 + 2 && !strcmp(out.data + sizeof(big) - 1, "42"));
	text_free(&out);
	for (int i = 0; i < 1000; i++)
		text_printf(&out, "%03d", i);
	CHECK(out.len == 3000 && !memcmp(out.data + 2997, "999", 3));
	text_free(&out);
	CHECK(!out.data && !out.len);
}

static void test_paths(void)
{
	const struct path path = { .kind = KIND_MAX - 1, .sub = 255, .port = 254, .dev = 4095,
				   .idx = (1 << 28) - 1 };
	struct path back = path_unpack(path_pack(path));

	CHECK(back.kind == path.kind && back.sub == path.sub && back.port == path.port);
	CHECK(back.dev == path.dev && back.idx == path.idx);
	CHECK(path_pack((struct path){ .kind = KIND_ROOT }) == 1);
	CHECK(path_unpack(1).kind == KIND_ROOT);
}

static void check_name(const char *id, const char *name)
{
	char got[256], back[256];

	CHECK(name_from_id(got, id) && !strcmp(got, name));
	CHECK(id_from_name(back, sizeof(back), name) && !strcmp(back, id));
}

static void test_names(void)
{
	char long_id[400], name[256], id[16];

	check_name("S-0008f10500000000", "S-0008f10500000000");
	check_name("a/b", "a%2fb");
	check_name("50%", "50%25");
	check_name("..", "%2e.");
	check_name("a.b", "a.b");
	CHECK(!name_from_id(name, ""));
	memset(long_id, 'x', sizeof(long_id));
	long_id[sizeof(long_id) - 1] = '\0';
	CHECK(!name_from_id(name, long_id));
	CHECK(!id_from_name(id, sizeof(id), "%"));
	CHECK(!id_from_name(id, sizeof(id), "%2"));
	CHECK(!id_from_name(id, sizeof(id), "%zz"));
	CHECK(!id_from_name(id, sizeof(id), "a name that is too long"));
}

/* A queue of three lines, read in pieces. */
struct lines {
	struct lineq q;
	unsigned int next, last;
};

static const char *next_line(struct lineq *q)
{
	static const char *const text[] = { "one", "", "three" };
	struct lines *lines = (struct lines *)q;

	return lines->next < lines->last ? text[lines->next++] : NULL;
}

struct answer {
	struct fs_req req;
	ssize_t result;
	char data[16];
	int count;
};

static void reply(struct fs_req *req, ssize_t result, const void *data, size_t len)
{
	struct answer *answer = (struct answer *)req;

	answer->result = result;
	answer->count++;
	if (len)
		memcpy(answer->data, data, len);
}

static void test_lineq(void)
{
	struct answer a = { .req.reply = reply }, b = { .req.reply = reply };
	struct file file = { .flags = O_NONBLOCK };
	struct lines lines = { .q = { .file = &file, .next = next_line } };
	struct lineq *q = &lines.q;
	char buf[16];

	CHECK(lineq_read(q, &a.req, buf, 16) == -EAGAIN && lineq_poll(q) == 0);
	CHECK(lineq_read(q, &a.req, buf, 0) == 0);
	lines.last = 2;
	CHECK(lineq_poll(q) != 0);
	CHECK(lineq_read(q, &a.req, buf, 2) == 2 && !memcmp(buf, "on", 2));
	CHECK(lineq_read(q, &a.req, buf, 16) == 2 && !memcmp(buf, "e\n", 2));
	CHECK(lineq_read(q, &a.req, buf, 16) == 1 && buf[0] == '\n');
	/* Two wait; the first is cancelled, the second gets the line, in part. */
	file.flags = 0;
	CHECK(lineq_read(q, &a.req, buf, 16) == FS_PENDING);
	CHECK(lineq_read(q, &b.req, buf, 4) == FS_PENDING);
	fs_cancel(&a.req);
	CHECK(a.count == 1 && a.result == -EINTR && b.count == 0);
	lines.last = 3;
	lineq_wake(q);
	CHECK(b.count == 1 && b.result == 4 && !memcmp(b.data, "thre", 4));
	CHECK(lineq_read(q, &a.req, buf, 16) == 2 && !memcmp(buf, "e\n", 2));
	CHECK(lineq_read(q, &a.req, buf, 16) == FS_PENDING);
	lineq_fail(q, -EIO);
	CHECK(a.count == 2 && a.result == -EIO);
	lineq_free(q);
}

int main(void)
{
	test_numbers();
	test_ctl();
	test_text();
	test_paths();
	test_names();
	test_lineq();
	return failed;
}
