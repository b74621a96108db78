/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MADs in words: a query is made of a ctl line, sent through an agent of its
 * own, and its answer printed by libibmad's decoders. SMPs (IBA 14.2), PMA
 * (16.1), SA (15.2); libibmad's functions that send or wait are not used.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mad.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_sm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ibfs/ibfs.h>

#include "fs/madonce.h"
#include "fs/madquery.h"

enum { GET = 1, SET = 2, GET_TABLE = 0x12 };
enum { SMP_DATA = 64, PMA_DATA = 64, SA_DATA = 56, MAX_ROUTE = 63 };
enum { FAMILY_SMP, FAMILY_PERF, FAMILY_SA };

static const char *const families[] = { "smp", "perf", "sa" };

struct mad_query {
	struct mad_once once;		/* first */
	struct ibfs *ibfs;
	struct ibfs_device *dev;
	unsigned int port;
	bool over;
	unsigned int family;
	const struct attr *attr;
	uint8_t method;
	uint8_t hops;			/* of a directed route */
	bool directed;
	struct mad_addr addr;
	unsigned int timeout_ms;
	uint8_t mad[MADONCE_LEN] __attribute__((aligned(8)));	/* overlaid by structs */
	int err;
	char state[160];
	struct textbuf text;
	struct waitq readers;
	void (*changed)(void *ctx);
	void *ctx;
};

/* A component of a SA record: where it is, and its bit of the component mask. */
struct comp {
	const char *name;
	uint16_t offset;		/* bits */
	uint8_t bits;			/* 128: a GID */
	int8_t mask;
};

struct attr {
	const char *name;
	uint8_t family;
	uint16_t id;
	ib_mad_dump_fn *dump;		/* NULL: numbers of width bytes */
	uint8_t width;
	uint8_t skip;			/* bytes of a SA record in front of what dump takes */
	const struct comp *comps;
};

static const struct comp path_comps[] = {
	{ "dgid", 64, 128, 2 }, { "sgid", 192, 128, 3 }, { "dlid", 320, 16, 4 },
	{ "slid", 336, 16, 5 }, { "hop_limit", 376, 8, 9 }, { "tclass", 384, 8, 10 },
	{ "reversible", 392, 1, 11 }, { "num_path", 393, 7, 12 }, { "pkey", 400, 16, 13 },
	{ "sl", 428, 4, 15 }, { "mtu", 434, 6, 17 }, { "rate", 442, 6, 19 },
	{ "life", 450, 6, 21 }, { NULL, 0, 0, 0 }
};
static const struct comp lid_comps[] = { { "lid", 0, 16, 0 }, { NULL, 0, 0, 0 } };
static const struct comp portinfo_comps[] = {
	{ "lid", 0, 16, 0 }, { "port", 16, 8, 1 }, { NULL, 0, 0, 0 }
};
static const struct comp link_comps[] = {
	{ "from_lid", 0, 16, 0 }, { "from_port", 16, 8, 1 }, { "to_port", 24, 8, 2 },
	{ "to_lid", 32, 16, 3 }, { NULL, 0, 0, 0 }
};
static const struct comp mcmember_comps[] = {
	{ "mgid", 0, 128, 0 }, { "port_gid", 128, 128, 1 }, { "qkey", 256, 32, 2 },
	{ "mlid", 288, 16, 3 }, { "mtu", 306, 6, 5 }, { "tclass", 312, 8, 6 },
	{ "pkey", 320, 16, 7 }, { "rate", 338, 6, 9 }, { "life", 346, 6, 11 },
	{ "sl", 352, 4, 12 }, { "scope", 384, 4, 15 }, { "join_state", 388, 4, 16 },
	{ NULL, 0, 0, 0 }
};

static void dump_desc(char *buf, int size, void *val, int len)
{
	char desc[65] = "";

	(void)len;
	memcpy(desc, val, 64);
	mad_dump_field(IB_NODE_DESC_F, buf, size, desc);
	strncat(buf, "\n", size - strlen(buf) - 1);
}

/* A NodeRecord's NodeInfo and, behind it, description. */
static void dump_node(char *buf, int size, void *val, int len)
{
	size_t used;

	mad_dump_nodeinfo(buf, size, val, len);
	used = strlen(buf);
	dump_desc(buf + used, size - used, (uint8_t *)val + 40, 64);
}

static void dump_sminfo(char *buf, int size, void *val, int len)
{
	mad_dump_fields(buf, size, val, len, IB_SMINFO_GUID_F, IB_SMINFO_STATE_F + 1);
}

static const struct attr attrs[] = {
	{ "NodeDescription", FAMILY_SMP, 0x10, dump_desc, 0, 0, NULL },
	{ "NodeInfo", FAMILY_SMP, 0x11, mad_dump_nodeinfo, 0, 0, NULL },
	{ "SwitchInfo", FAMILY_SMP, 0x12, mad_dump_switchinfo, 0, 0, NULL },
	{ "GUIDInfo", FAMILY_SMP, 0x14, NULL, 8, 0, NULL },
	{ "PortInfo", FAMILY_SMP, 0x15, mad_dump_portinfo, 0, 0, NULL },
	{ "PKeyTable", FAMILY_SMP, 0x16, NULL, 2, 0, NULL },
	{ "SLtoVLMappingTable", FAMILY_SMP, 0x17, NULL, 1, 0, NULL },
	{ "VLArbitrationTable", FAMILY_SMP, 0x18, NULL, 2, 0, NULL },
	{ "LinearForwardingTable", FAMILY_SMP, 0x19, NULL, 1, 0, NULL },
	{ "MulticastForwardingTable", FAMILY_SMP, 0x1b, NULL, 2, 0, NULL },
	{ "SMInfo", FAMILY_SMP, 0x20, dump_sminfo, 0, 0, NULL },
	{ "ClassPortInfo", FAMILY_PERF, 0x01, mad_dump_classportinfo, 0, 0, NULL },
	{ "PortCounters", FAMILY_PERF, 0x12, mad_dump_perfcounters, 0, 0, NULL },
	{ "PortCountersExtended", FAMILY_PERF, 0x1d, mad_dump_perfcounters_ext, 0, 0, NULL },
	{ "ClassPortInfo", FAMILY_SA, 0x01, mad_dump_classportinfo, 0, 0, NULL },
	{ "NodeRecord", FAMILY_SA, 0x11, dump_node, 0, 4, lid_comps },
	{ "PortInfoRecord", FAMILY_SA, 0x12, mad_dump_portinfo, 0, 4, portinfo_comps },
	{ "SwitchInfoRecord", FAMILY_SA, 0x14, mad_dump_switchinfo, 0, 4, lid_comps },
	{ "LinkRecord", FAMILY_SA, 0x20, NULL, 0, 0, link_comps },
	{ "PathRecord", FAMILY_SA, 0x35, NULL, 0, 0, path_comps },
	{ "MCMemberRecord", FAMILY_SA, 0x38, NULL, 0, 0, mcmember_comps },
};

bool mad_query_word(const char *word)
{
	size_t i;

	for (i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (!strcmp(word, families[i]))
			return true;
	return false;
}

static uint64_t bits_get(const uint8_t *data, unsigned int offset, unsigned int bits)
{
	uint64_t value = 0;

	for (; bits; bits--, offset++)
		value = value << 1 | (data[offset / 8] >> (7 - offset % 8) & 1);
	return value;
}

static void bits_set(uint8_t *data, unsigned int offset, unsigned int bits, uint64_t value)
{
	for (; bits; bits--, offset++)
		if (value >> (bits - 1) & 1)
			data[offset / 8] |= 0x80 >> offset % 8;
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
		bits_set(q->mad + PMA_DATA, 16, 16, number);
		*seen |= 4;
		return 0;
	}
	return -EINVAL;
}

static int parse_sa(struct mad_query *q, const char *arg)
{
	struct umad_sa_packet *sa = (struct umad_sa_packet *)q->mad;
	const struct comp *comp;
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
	bits_set(q->mad + SA_DATA, comp->offset, comp->bits, number);
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
	if (q->family == FAMILY_SA)
		return parse_sa(q, arg);
	if ((value = ctl_value(arg, "lid")) != NULL) {
		if (parse_u64(value, 0xbfff, &number) || !number)
			return -EINVAL;
		q->addr.lid = number;
		*seen |= 1;
		return 0;
	}
	return q->family == FAMILY_SMP ? parse_smp(q, arg, seen) : parse_perf(q, arg, seen);
}

static int parse_method(struct mad_query *q, const char *word)
{
	if (!strcmp(word, "get"))
		q->method = GET;
	else if (!strcmp(word, "set") && q->family != FAMILY_SA)
		q->method = SET;
	else if (!strcmp(word, "table") && q->family == FAMILY_SA)
		q->method = GET_TABLE;
	else
		return -EINVAL;
	return 0;
}

static const struct attr *find_attr(unsigned int family, const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++)
		if (attrs[i].family == family && !strcmp(attrs[i].name, name))
			return &attrs[i];
	return NULL;
}

static int parse(struct mad_query *q, const struct ctl_line *line)
{
	const char *word = line->argv[0];
	unsigned int i, seen = 0;

	while (strcmp(families[q->family], word))
		q->family++;
	if (line->argc < 3 || parse_method(q, line->argv[1]))
		return ibfs_fail(q->ibfs, EINVAL, "%s: expected `%s %s ATTRIBUTE ...`", word, word,
				 q->family == FAMILY_SA ? "get|table" : "get|set");
	q->attr = find_attr(q->family, line->argv[2]);
	if (!q->attr)
		return ibfs_fail(q->ibfs, EINVAL, "%s: no attribute \"%s\" is known", word,
				 line->argv[2]);
	for (i = 3; i < line->argc; i++)
		if (parse_arg(q, line->argv[i], &seen))
			return ibfs_fail(q->ibfs, EINVAL, "%s: \"%s\" is not understood here", word,
					 line->argv[i]);
	if (q->family != FAMILY_SA && !(seen & 1))
		return ibfs_fail(q->ibfs, EINVAL, "%s: lid=%s is missing", word,
				 q->family == FAMILY_SMP ? " or dr=" : "");
	if (q->directed && q->addr.lid)
		return ibfs_fail(q->ibfs, EINVAL, "%s: either lid= or dr=", word);
	if (q->family == FAMILY_PERF && q->attr->id != 1 && !(seen & 2))
		return ibfs_fail(q->ibfs, EINVAL, "%s: port= is missing", word);
	if (q->method == SET && !(seen & 4))
		return ibfs_fail(q->ibfs, EINVAL, "%s: set: %s= is missing", word,
				 q->family == FAMILY_SMP ? "data" : "select");
	return 0;
}

static int address(struct mad_query *q)
{
	struct ibv_port_attr port;
	int ret;

	if (q->family != FAMILY_SMP) {
		q->addr.qpn = 1;
		q->addr.qkey = MADONCE_QP1_QKEY;
	}
	if (q->directed)
		q->addr.lid = MADONCE_PERMISSIVE_LID;
	if (q->family != FAMILY_SA)
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
	smp->class_version = q->family == FAMILY_SA ? 2 : 1;
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

	if (q->family == FAMILY_SA && status >> 8 && status >> 8 < 8)
		word = sa[status >> 8];
	else if (status >> 2 & 7)
		word = common[status >> 2 & 7];
	else if (status & 1)
		word = "busy";
	else if (status & 2)
		word = "redirection required";
	return word ? word : "unknown";
}

/* A name from afar has no newline or escape sequence of its own. */
static void print_clean(struct textbuf *out, char *text)
{
	char *c;

	for (c = text; *c; c++)
		if (*c != '\n' && !isprint((unsigned char)*c))
			*c = '?';
	text_printf(out, "%s", text);
}

static void print_comps(struct textbuf *out, const struct comp *comp, const uint8_t *rec)
{
	char gid[INET6_ADDRSTRLEN];

	for (; comp && comp->name; comp++) {
		if (comp->bits == 128)
			text_printf(out, "%s %s\n", comp->name,
				    inet_ntop(AF_INET6, rec + comp->offset / 8, gid, sizeof(gid)));
		else
			text_printf(out, "%s %llu\n", comp->name, (unsigned long long)
				    bits_get(rec, comp->offset, comp->bits));
	}
}

/* One attribute or record; data has the 200 bytes that decoders may look at. */
static void print_attr(struct mad_query *q, uint8_t *data)
{
	char text[8192] = "";
	unsigned int i;

	print_comps(&q->text, q->attr->comps, data);
	if (q->attr->dump) {
		q->attr->dump(text, sizeof(text), data + q->attr->skip, 64);
		print_clean(&q->text, text);
	}
	for (i = 0; q->attr->width && i < 64U / q->attr->width; i++)
		text_printf(&q->text, "%u 0x%0*llx\n", i, 2 * q->attr->width, (unsigned long long)
			    bits_get(data, 8 * q->attr->width * i, 8 * q->attr->width));
}

static void print_table(struct mad_query *q, const uint8_t *mad, size_t len)
{
	size_t step = bits_get(mad, 44 * 8, 16) * 8, off;
	uint8_t record[256];

	if (!step)
		return;
	for (off = SA_DATA; off + step <= len && !q->text.failed; off += step) {
		memset(record, 0, sizeof(record));
		memcpy(record, mad + off, step < 200 ? step : 200);
		if (off > SA_DATA)
			text_printf(&q->text, "\n");
		print_attr(q, record);
	}
}

static void answer(struct mad_query *q, const uint8_t *mad, size_t len)
{
	unsigned int status = bits_get(mad, 32, 16) & (q->directed ? 0x7fff : 0xffff);
	uint8_t copy[MADONCE_LEN] = { 0 };

	if (status) {
		q->err = -EREMOTEIO;
		snprintf(q->state, sizeof(q->state), "status 0x%04x: %s", status,
			 status_word(q, status));
		return;
	}
	if (q->method == GET_TABLE) {
		print_table(q, mad, len);
	} else {
		memcpy(copy, mad, len < MADONCE_LEN ? len : MADONCE_LEN);
		print_attr(q, copy + (q->family == FAMILY_SA ? SA_DATA : SMP_DATA));
	}
	if (q->text.failed)
		q->err = -ENOMEM;
	snprintf(q->state, sizeof(q->state), q->err ? "no memory for the answer" : "answered");
}

static void over(struct mad_query *q)
{
	if (q->err)
		ibfs_fail(q->ibfs, -q->err, "%s %s: %s", families[q->family], q->attr->name,
			  q->state);
	q->changed(q->ctx);
}

static void on_answer(struct mad_once *once, int err, const void *mad, size_t len)
{
	struct mad_query *q = (struct mad_query *)once;

	q->over = true;
	q->err = err;
	if (err == -ENODEV)
		snprintf(q->state, sizeof(q->state), "the device is gone");
	else if (err)
		snprintf(q->state, sizeof(q->state), "no answer in %u ms", q->timeout_ms);
	else
		answer(q, mad, len);
	over(q);
}

static void no_news(void *ctx)
{
	(void)ctx;
}

int mad_query_start(struct ibfs_device *dev, unsigned int port, const struct ctl_line *line,
		    void (*changed)(void *ctx), void *ctx, struct mad_query **query)
{
	struct mad_query *q = calloc(1, sizeof(*q));
	int ret;

	if (!q)
		return -ENOMEM;
	q->ibfs = dev->ibfs;
	q->dev = dev;
	q->port = port;
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
				    q->family == FAMILY_SA, q->timeout_ms, 0);
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
