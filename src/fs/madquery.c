/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MADs in words: a query is made of a ctl line, sent through an agent of its
 * own, and its answer printed as mad_attr.c has it; of a table, which may have
 * thousands of records, some at a time.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_sm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ibfs/ibfs.h>

#include "fs/mad_attr.h"
#include "fs/madonce.h"
#include "fs/madquery.h"
#include "fs/work.h"

enum { GET = 1, SET = 2, GET_TABLE = 0x12 };
enum { SMP_DATA = 64, PMA_DATA = 64, SA_DATA = 56, MAX_ROUTE = 63 };
enum { RECORDS = 8 };		/* that are printed at a time */

static const char *const families[] = { "smp", "perf", "sa" };

struct mad_query {
	struct mad_once once;		/* first */
	struct ibfs *ibfs;
	struct ibfs_device *dev;
	unsigned int port;
	bool over;
	enum mad_family family;
	const struct mad_attr *attr;
	uint8_t method;
	uint8_t hops;			/* of a directed route */
	bool directed;
	struct mad_addr addr;
	unsigned int timeout_ms;
	uint8_t mad[MADONCE_LEN] __attribute__((aligned(8)));	/* overlaid by structs */
	int err;
	char state[160];
	struct textbuf text;
	const struct account *account;
	struct work work;		/* while a table is printed */
	uint8_t *table;
	size_t table_len, table_off;
	struct waitq readers;
	void (*changed)(void *ctx);
	void *ctx;
};

bool mad_query_word(const char *word)
{
	size_t i;

	for (i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (!strcmp(word, families[i]))
			return true;
	return false;
}

/* "0,1,4": the ports that a directed route leaves by; the first is the own node, 0. */
static int parse_route(struct mad_query *q, const char *text)
{
	struct umad_smp *smp = (struct umad_smp *)q->mad;
	unsigned int count = 0;
	uint64_t port;
	char one[8];
	size_t n;

	for (;;) {
		n = strcspn(text, ",");
		if (n >= sizeof(one) || count > MAX_ROUTE)
			return -EINVAL;
		memcpy(one, text, n);
		one[n] = '\0';
		if (parse_u64(one, count ? 254 : 0, &port) || (count && !port))
			return -EINVAL;
		smp->initial_path[count++] = port;
		if (!text[n])
			break;
		text += n + 1;
	}
	q->hops = count - 1;
	q->directed = true;
	return 0;
}

static int parse_data(struct mad_query *q, const char *text)
{
	unsigned int i, byte;

	if (strlen(text) != 128 || strspn(text, "0123456789abcdefABCDEF") != 128)
		return -EINVAL;
	for (i = 0; i < 64; i++) {
		sscanf(text + 2 * i, "%2x", &byte);
		q->mad[SMP_DATA + i] = byte;
	}
	return 0;
}

static int parse_smp(struct mad_query *q, const char *arg, unsigned int *seen)
{
	struct umad_smp *smp = (struct umad_smp *)q->mad;
	const char *value;
	uint64_t number;

	if ((value = ctl_value(arg, "dr")) != NULL) {
		*seen |= 1;
		return parse_route(q, value);
	}
	if ((value = ctl_value(arg, "mod")) != NULL) {
		if (parse_u64(value, UINT32_MAX, &number))
			return -EINVAL;
		smp->attr_mod = htobe32(number);
		return 0;
	}
	if ((value = ctl_value(arg, "mkey")) != NULL) {
		if (parse_u64(value, UINT64_MAX, &number))
			return -EINVAL;
		smp->mkey = htobe64(number);
		return 0;
	}
	if (q->method == SET && (value = ctl_value(arg, "data")) != NULL) {
		*seen |= 4;
		return parse_data(q, value);
	}
	return -EINVAL;
}

static int parse_perf(struct mad_query *q, const char *arg, unsigned int *seen)
{
	const char *value;
	uint64_t number;

	if ((value = ctl_value(arg, "port")) != NULL && !parse_u64(value, 255, &number)) {
		q->mad[PMA_DATA + 1] = number;
		*seen |= 2;
		return 0;
	}
	if (q->method == SET && (value = ctl_value(arg, "select")) != NULL &&
	    !parse_u64(value, 0xffff, &number)) {
		mad_bits_set(q->mad + PMA_DATA, 16, 16, number);
		*seen |= 4;
		return 0;
	}
	return -EINVAL;
}

static int parse_sa(struct mad_query *q, const char *arg)
{
	struct umad_sa_packet *sa = (struct umad_sa_packet *)q->mad;
	const struct mad_comp *comp;
	const char *value = NULL;
	uint64_t number, mask;

	for (comp = q->attr->comps; comp && comp->name; comp++)
		if ((value = ctl_value(arg, comp->name)) != NULL)
			break;
	if (!value)
		return -EINVAL;
	mask = UINT64_C(1) << comp->mask;
	if (be64toh(sa->comp_mask) & mask)
		return -EINVAL;
	sa->comp_mask |= htobe64(mask);
	if (comp->bits == 128)
		return inet_pton(AF_INET6, value, q->mad + SA_DATA + comp->offset / 8) == 1 ?
			0 : -EINVAL;
	if (parse_u64(value, (UINT64_C(1) << comp->bits) - 1, &number))
		return -EINVAL;
	mad_bits_set(q->mad + SA_DATA, comp->offset, comp->bits, number);
	return 0;
}

static int parse_arg(struct mad_query *q, const char *arg, unsigned int *seen)
{
	const char *value;
	uint64_t number;

	if ((value = ctl_value(arg, "timeout")) != NULL) {
		if (parse_u64(value, 60000, &number) || !number)
			return -EINVAL;
		q->timeout_ms = number;
		return 0;
	}
	if (q->family == MAD_FAMILY_SA)
		return parse_sa(q, arg);
	if ((value = ctl_value(arg, "lid")) != NULL) {
		if (parse_u64(value, 0xbfff, &number) || !number)
			return -EINVAL;
		q->addr.lid = number;
		*seen |= 1;
		return 0;
	}
	return q->family == MAD_FAMILY_SMP ? parse_smp(q, arg, seen) : parse_perf(q, arg, seen);
}

static int parse_method(struct mad_query *q, const char *word)
{
	if (!strcmp(word, "get"))
		q->method = GET;
	else if (!strcmp(word, "set") && q->family != MAD_FAMILY_SA)
		q->method = SET;
	else if (!strcmp(word, "table") && q->family == MAD_FAMILY_SA)
		q->method = GET_TABLE;
	else
		return -EINVAL;
	return 0;
}

static int parse(struct mad_query *q, const struct ctl_line *line)
{
	const char *word = line->argv[0];
	unsigned int i, seen = 0;

	while (strcmp(families[q->family], word))
		q->family++;
	if (line->argc < 3 || parse_method(q, line->argv[1]))
		return ibfs_fail(q->ibfs, EINVAL, "%s: expected `%s %s ATTRIBUTE ...`", word, word,
				 q->family == MAD_FAMILY_SA ? "get|table" : "get|set");
	q->attr = mad_attr_find(q->family, line->argv[2]);
	if (!q->attr)
		return ibfs_fail(q->ibfs, EINVAL, "%s: no attribute \"%s\" is known", word,
				 line->argv[2]);
	for (i = 3; i < line->argc; i++)
		if (parse_arg(q, line->argv[i], &seen))
			return ibfs_fail(q->ibfs, EINVAL, "%s: \"%s\" is not understood here", word,
					 line->argv[i]);
	if (q->family != MAD_FAMILY_SA && !(seen & 1))
		return ibfs_fail(q->ibfs, EINVAL, "%s: lid=%s is missing", word,
				 q->family == MAD_FAMILY_SMP ? " or dr=" : "");
	if (q->directed && q->addr.lid)
		return ibfs_fail(q->ibfs, EINVAL, "%s: either lid= or dr=", word);
	if (q->family == MAD_FAMILY_PERF && q->attr->id != 1 && !(seen & 2))
		return ibfs_fail(q->ibfs, EINVAL, "%s: port= is missing", word);
	if (q->method == SET && !(seen & 4))
		return ibfs_fail(q->ibfs, EINVAL, "%s: set: %s= is missing", word,
				 q->family == MAD_FAMILY_SMP ? "data" : "select");
	return 0;
}

static int address(struct mad_query *q)
{
	struct ibv_port_attr port;
	int ret;

	if (q->family != MAD_FAMILY_SMP) {
		q->addr.qpn = 1;
		q->addr.qkey = MADONCE_QP1_QKEY;
	}
	if (q->directed)
		q->addr.lid = MADONCE_PERMISSIVE_LID;
	if (q->family != MAD_FAMILY_SA)
		return 0;
	ret = q->dev->ops->query_port(q->dev, q->port, &port);
	if (ret)
		return ret;
	if (!port.sm_lid)
		return ibfs_fail(q->ibfs, EHOSTUNREACH, "sa: the port knows no subnet manager");
	q->addr.lid = port.sm_lid;
	q->addr.sl = port.sm_sl;
	return 0;
}

static void build(struct mad_query *q)
{
	static const uint8_t classes[] = { 0x01, 0x04, 0x03 };
	struct umad_smp *smp = (struct umad_smp *)q->mad;

	smp->base_version = 1;
	smp->mgmt_class = q->directed ? 0x81 : classes[q->family];
	smp->class_version = q->family == MAD_FAMILY_SA ? 2 : 1;
	smp->method = q->method;
	smp->tid = htobe64(1);
	smp->attr_id = htobe16(q->attr->id);
	if (!q->directed)
		return;
	smp->hop_cnt = q->hops;
	smp->dr_slid = smp->dr_dlid = 0xffff;
}

static const char *status_word(const struct mad_query *q, unsigned int status)
{
	static const char *const sa[] = {
		NULL, "no resources", "request invalid", "no records", "too many records",
		"invalid GID", "insufficient components", "request denied",
	};
	static const char *const common[] = {
		NULL, "bad version", "method not supported", "method and attribute not supported",
		NULL, NULL, NULL, "invalid field",
	};
	const char *word = NULL;

	if (q->family == MAD_FAMILY_SA && status >> 8 && status >> 8 < 8)
		word = sa[status >> 8];
	else if (status >> 2 & 7)
		word = common[status >> 2 & 7];
	else if (status & 1)
		word = "busy";
	else if (status & 2)
		word = "redirection required";
	return word ? word : "unknown";
}

static void over(struct mad_query *q)
{
	q->over = true;
	if (!q->err)
		snprintf(q->state, sizeof(q->state), "answered");
	else
		ibfs_fail(q->ibfs, -q->err, "%s %s: %s", families[q->family], q->attr->name,
			  q->state);
	q->changed(q->ctx);
}

static void no_memory(struct mad_query *q)
{
	q->err = -ENOMEM;
	snprintf(q->state, sizeof(q->state), "no memory for the answer");
}

/* Some records more; false: there are no more. */
static bool print_records(struct mad_query *q)
{
	size_t step = mad_bits_get(q->table, 44 * 8, 16) * 8;
	unsigned int n;
	uint8_t record[256];

	for (n = 0; step && q->table_off + step <= q->table_len; n++) {
		if (n == RECORDS)
			return !q->text.failed;
		memset(record, 0, sizeof(record));
		memcpy(record, q->table + q->table_off, step < 200 ? step : 200);
		if (q->table_off > SA_DATA)
			text_printf(&q->text, "\n");
		mad_attr_print(q->attr, record, &q->text);
		q->table_off += step;
	}
	return false;
}

static void end_table(struct mad_query *q)
{
	work_cancel(q->ibfs->fs->works, &q->work);
	free(q->table);
	q->table = NULL;
}

static void table_piece(struct work *work)
{
	struct mad_query *q = (struct mad_query *)((char *)work - offsetof(struct mad_query, work));

	if (print_records(q))
		return;
	end_table(q);
	if (q->text.failed)
		no_memory(q);
	over(q);
}

/* Printed later. */
static int keep_table(struct mad_query *q, const uint8_t *mad, size_t len)
{
	q->table = malloc(len);
	if (!q->table)
		return -ENOMEM;
	memcpy(q->table, mad, len);
	q->table_len = len;
	q->table_off = SA_DATA;
	q->work.piece = table_piece;
	return work_queue(q->ibfs->fs->works, &q->work, q->account);
}

static void print_one(struct mad_query *q, const uint8_t *mad, size_t len)
{
	uint8_t copy[MADONCE_LEN] = { 0 };

	memcpy(copy, mad, len < MADONCE_LEN ? len : MADONCE_LEN);
	mad_attr_print(q->attr, copy + (q->family == MAD_FAMILY_SA ? SA_DATA : SMP_DATA), &q->text);
	if (q->text.failed)
		no_memory(q);
}

static void answer(struct mad_query *q, const uint8_t *mad, size_t len)
{
	unsigned int status = mad_bits_get(mad, 32, 16) & (q->directed ? 0x7fff : 0xffff);

	if (status) {
		q->err = -EREMOTEIO;
		snprintf(q->state, sizeof(q->state), "status 0x%04x: %s", status,
			 status_word(q, status));
	} else if (q->method != GET_TABLE) {
		print_one(q, mad, len);
	} else if (len > SA_DATA) {
		if (!keep_table(q, mad, len))
			return;
		no_memory(q);
	}
	over(q);
}

static void on_answer(struct mad_once *once, int err, const void *mad, size_t len)
{
	struct mad_query *q = (struct mad_query *)once;

	q->err = err;
	if (!err) {
		answer(q, mad, len);
		return;
	}
	if (err == -ENODEV)
		snprintf(q->state, sizeof(q->state), "the device is gone");
	else
		snprintf(q->state, sizeof(q->state), "no answer in %u ms", q->timeout_ms);
	over(q);
}

static void no_news(void *ctx)
{
	(void)ctx;
}

int mad_query_start(struct ibfs_device *dev, unsigned int port, const struct account *account,
		    const struct ctl_line *line, void (*changed)(void *ctx), void *ctx,
		    struct mad_query **query)
{
	struct mad_query *q = calloc(1, sizeof(*q));
	int ret;

	if (!q)
		return -ENOMEM;
	q->ibfs = dev->ibfs;
	q->dev = dev;
	q->port = port;
	q->account = account;
	q->timeout_ms = 1000;
	q->once.done = on_answer;
	q->changed = no_news;
	snprintf(q->state, sizeof(q->state), "pending");
	ret = parse(q, line);
	if (!ret)
		ret = address(q);
	if (!ret) {
		build(q);
		ret = mad_once_send(&q->once, dev, port, &q->addr, q->mad,
				    q->family == MAD_FAMILY_SA, q->timeout_ms, 0);
	}
	if (ret) {
		mad_query_free(q);
		return ret;
	}
	q->changed = changed;
	q->ctx = ctx;
	*query = q;
	return 0;
}

void mad_query_free(struct mad_query *q)
{
	if (!q)
		return;
	mad_once_cancel(&q->once);
	end_table(q);
	waitq_fail(&q->readers, -ECANCELED);
	text_free(&q->text);
	free(q);
}

bool mad_query_done(const struct mad_query *q)
{
	return q->over;
}

const char *mad_query_state(const struct mad_query *q)
{
	return q->state;
}

ssize_t mad_query_read(struct mad_query *q, struct fs_req *req, size_t *pos, void *buf,
		       size_t size)
{
	if (!q->over) {
		req->size = size;
		return req->file->flags & O_NONBLOCK ? -EAGAIN : waitq_add(&q->readers, req);
	}
	if (q->err)
		return q->err;
	if (size > q->text.len - *pos)
		size = q->text.len - *pos;
	if (size)
		memcpy(buf, q->text.data + *pos, size);
	*pos += size;
	return size;
}

struct fs_req *mad_query_waiter(struct mad_query *q)
{
	return q->over ? waitq_take(&q->readers) : NULL;
}
