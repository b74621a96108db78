/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMPP in the device: messages of all sizes, both ways, over perfect and bad
 * links, and against a peer that does its own RMPP and breaks the rules.
 */
#include "mad_test.h"

#define MAX_MSG		(1 << 20)
#define ATTR		0x11
#define SA_HDR		56

/* What the answering side answers with. */
static struct {
	size_t len;
	uint8_t bytes[MAX_MSG + 64];
} reply;

static unsigned int header_len(uint8_t class)
{
	return class == UMAD_CLASS_SUBN_ADM ? 56 : class == UMAD_CLASS_DEVICE_MGMT ? 64 : 40;
}

static void fill(uint8_t *bytes, size_t len, uint32_t seed)
{
	size_t i;

	for (i = 0; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		bytes[i] = seed >> 24;
	}
}

static struct mad_reg rmpp_reg(uint8_t class)
{
	struct mad_reg reg = reg_of(1, class, class == UMAD_CLASS_SUBN_ADM ? 2 : 1);

	reg.rmpp_version = 1;
	return reg;
}

/* A message with the class' header, RMPP active, and len bytes of data; returns its length. */
static size_t make_msg(uint8_t *bytes, uint8_t class, uint8_t method, uint64_t tid, size_t len)
{
	struct umad_rmpp_packet *mad = (struct umad_rmpp_packet *)bytes;
	unsigned int hdr_len = header_len(class);

	memset(bytes, 0, hdr_len);
	mad->mad_hdr = hdr_of(class, class == UMAD_CLASS_SUBN_ADM ? 2 : 1, method, ATTR, tid);
	mad->rmpp_hdr.rmpp_version = 1;
	mad->rmpp_hdr.rmpp_type = RMPP_DATA;
	mad->rmpp_hdr.rmpp_rtime_flags = RMPP_ACTIVE;
	if (class >= UMAD_CLASS_VENDOR_RANGE2_START)
		memcpy(bytes + OUI_OFFSET, "\x00\x14\x05", 3);
	fill(bytes + hdr_len, len, tid + len);
	return hdr_len + len;
}

static void answer_long(struct client *client, const struct mad_addr *addr, const void *mad,
			size_t len)
{
	const struct umad_hdr *hdr = mad;
	struct umad_hdr *answer = (struct umad_hdr *)reply.bytes;
	size_t n;
	int rc;

	(void)len;
	if (mad_is_response(hdr))
		return;
	n = make_msg(reply.bytes, hdr->mgmt_class, hdr->method | 0x80, 0, reply.len);
	answer->tid = hdr->tid;
	rc = client_send(client, addr, reply.bytes, n, 0, 8);
	/* A link doubled the request: the response is on its way. */
	CHECK(!rc || rc == -EINVAL);
}

static void open_pair(struct client *a, struct client *b, uint8_t class)
{
	struct mad_reg reg = rmpp_reg(class);

	CHECK(!client_open(a, "rxe0", &reg));
	reg.methods[0] = ~0ULL;
	CHECK(!client_open(b, "rxe1", &reg));
}

static void close_pair(struct client *a, struct client *b)
{
	client_close(a);
	client_close(b);
}

/* Ask with one MAD, get len bytes; true if it came whole within so many seconds. */
static bool get_long(struct client *a, struct client *b, uint8_t class, uint32_t tid, size_t len,
		     unsigned int timeout_ms, double seconds)
{
	struct mad_addr to = addr_of("rxe1", 1);
	uint8_t ask[MAD_SIZE] = { 0 };
	unsigned int hdr_len = header_len(class), before = a->received;

	make_msg(ask, class, METHOD_GET_TABLE, tid, 0);
	((struct umad_rmpp_packet *)ask)->rmpp_hdr.rmpp_rtime_flags = 0;
	reply.len = len;
	b->answer = answer_long;
	if (client_send(a, &to, ask, sizeof(ask), timeout_ms, 3) ||
	    !wait_for(&a->received, before + 1, seconds))
		return false;
	return a->received == before + 1 && a->len == hdr_len + len &&
	       !memcmp(a->mad + hdr_len, reply.bytes + hdr_len, len);
}

/* Send a message of len bytes that wants no response; true if it came whole. */
static bool put_long(struct client *a, struct client *b, uint8_t class, uint32_t tid, size_t len,
		     double seconds)
{
	static uint8_t bytes[MAX_MSG + 64];
	struct mad_addr to = addr_of("rxe1", 1);
	unsigned int hdr_len = header_len(class), before = b->received;
	size_t n = make_msg(bytes, class, UMAD_METHOD_SEND, tid, len);

	b->answer = NULL;
	if (client_send(a, &to, bytes, n, 0, 8) || !wait_for(&b->received, before + 1, seconds))
		return false;
	return b->received == before + 1 && b->len == n &&
	       !memcmp(b->mad + hdr_len, bytes + hdr_len, len);
}

static const uint8_t classes[] = {
	UMAD_CLASS_SUBN_ADM, UMAD_CLASS_DEVICE_MGMT, CLASS_VENDOR,
};

static void test_sizes(void)
{
	static const size_t sizes[] = {
		0, 1, 2, 20, 191, 192, 193, 199, 200, 201, 215, 216, 217, 399, 400, 401,
		200 * 64, 200 * 65, 200 * 65 + 1, 200 * 129, 54321, MAX_MSG,
	};
	unsigned int i, j, tid = 0;

	for (i = 0; i < sizeof(classes); i++) {
		struct client a = { 0 }, b = { 0 };

		open_pair(&a, &b, classes[i]);
		for (j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
			bool got = get_long(&a, &b, classes[i], ++tid, sizes[j], 1000, 1);
			bool put = put_long(&a, &b, classes[i], ++tid, sizes[j], 1);

			if (!got || !put)
				printf("class 0x%x, %zu bytes: %s\n", classes[i], sizes[j],
				       got ? "send" : "response");
			CHECK(got && put);
		}
		pass(15);
		CHECK(!a.timeouts && !b.timeouts);
		CHECK(!a.agent->num_ins && !b.agent->num_ins);
		CHECK(!HASH_COUNT(a.agent->outs) && !HASH_COUNT(b.agent->outs));
		close_pair(&a, &b);
	}
}

/* A request of many segments whose response has many. */
static void test_double_sided(void)
{
	struct client a = { 0 }, b = { 0 };
	struct mad_addr to = addr_of("rxe1", 1);
	static uint8_t ask[50000];
	size_t n = make_msg(ask, UMAD_CLASS_SUBN_ADM, 0x14, 5, 40000);

	open_pair(&a, &b, UMAD_CLASS_SUBN_ADM);
	reply.len = 30000;
	b.answer = answer_long;
	CHECK(!client_send(&a, &to, ask, n, 1000, 0));
	CHECK(wait_for(&a.received, 1, 2) && b.received == 1);
	CHECK(b.len == n && !memcmp(b.mad + SA_HDR, ask + SA_HDR, n - SA_HDR));
	CHECK(a.len == SA_HDR + 30000 && !memcmp(a.mad + SA_HDR, reply.bytes + SA_HDR, 30000));
	CHECK(!HASH_COUNT(a.agent->outs) && !HASH_COUNT(b.agent->outs));
	/* Without a response: once all is there, the response's time runs. */
	b.answer = NULL;
	make_msg(ask, UMAD_CLASS_SUBN_ADM, 0x14, 6, 40000);
	CHECK(!client_send(&a, &to, ask, n, 500, 3));
	CHECK(wait_for(&a.timeouts, 1, 1));
	CHECK(b.received == 2 && a.len == MAD_HDR_LEN);
	close_pair(&a, &b);
}

static void faulty(const struct fault_conf *conf, size_t len, double seconds)
{
	struct client a = { 0 }, b = { 0 };
	unsigned int i;

	CHECK(!link_set_faults(link_of("rxe0"), conf));
	open_pair(&a, &b, UMAD_CLASS_SUBN_ADM);
	for (i = 0; i < 3; i++) {
		CHECK(get_long(&a, &b, UMAD_CLASS_SUBN_ADM, 2 * i, len, 2000, seconds));
		CHECK(put_long(&a, &b, UMAD_CLASS_SUBN_ADM, 2 * i + 1, len, seconds));
	}
	CHECK(!b.timeouts);
	close_pair(&a, &b);
}

static void test_loss(void)
{
	faulty(&(struct fault_conf){ .drop = 0.02, .seed = 1 }, MAX_MSG, 30);
	faulty(&(struct fault_conf){ .drop = 0.2, .seed = 2 }, 100000, 30);
}

static void test_duplicates(void)
{
	faulty(&(struct fault_conf){ .duplicate = 0.3, .seed = 3 }, 200000, 10);
}

static void test_reorder(void)
{
	faulty(&(struct fault_conf){ .reorder = 0.2, .seed = 4 }, 200000, 30);
}

static void test_corrupt(void)
{
	faulty(&(struct fault_conf){ .corrupt = 0.05, .seed = 5 }, 200000, 30);
}

static void test_delay(void)
{
	faulty(&(struct fault_conf){ .delay = 0.03, .jitter = 0.02, .seed = 6 }, 100000, 40);
}

static void test_all_faults(void)
{
	faulty(&(struct fault_conf){
		.drop = 0.03, .duplicate = 0.03, .reorder = 0.03, .corrupt = 0.03,
		.delay = 0.002, .jitter = 0.002, .seed = 7,
	}, 200000, 40);
}

/* While a long response comes in slowly its request isn't out of time. */
static void test_slow_response(void)
{
	struct client a = { 0 }, b = { 0 };

	CHECK(!link_set_faults(link_of("rxe0"), &(struct fault_conf){ .delay = 0.1 }));
	open_pair(&a, &b, UMAD_CLASS_SUBN_ADM);
	CHECK(get_long(&a, &b, UMAD_CLASS_SUBN_ADM, 1, 200 * 64 * 10, 500, 20));
	CHECK(b.received == 1 && !a.timeouts);
	close_pair(&a, &b);
}

static void test_sender_timeout(void)
{
	struct client a = { 0 }, b = { 0 };
	static uint8_t bytes[10000];
	struct mad_addr to = addr_of("rxe1", 1);
	size_t n = make_msg(bytes, UMAD_CLASS_SUBN_ADM, UMAD_METHOD_SEND, 3, 5000);
	double start = now();

	open_pair(&a, &b, UMAD_CLASS_SUBN_ADM);
	CHECK(!link_set_faults(link_of("rxe1"), &(struct fault_conf){ .drop = 1 }));
	CHECK(!client_send(&a, &to, bytes, n, 0, 2));
	CHECK(wait_for(&a.timeouts, 1, 20));
	/* Three times Linux's 2 s. */
	CHECK(now() - start > 5.9 && now() - start < 8.5);
	CHECK(a.len == MAD_HDR_LEN);
	close_pair(&a, &b);
}

/* A peer that does its own RMPP: it keeps the last packet, and sends what a test tells it to. */
static void open_raw(struct client *raw, const char *dev, bool user_rmpp)
{
	struct mad_reg reg = rmpp_reg(UMAD_CLASS_SUBN_ADM);

	reg.user_rmpp = user_rmpp;
	reg.rmpp_version = user_rmpp;
	reg.methods[0] = ~0ULL;
	CHECK(!client_open(raw, dev, &reg));
}

static const struct umad_rmpp_hdr *rmpp_of(const struct client *client)
{
	return &((const struct umad_rmpp_packet *)client->mad)->rmpp_hdr;
}

static void send_raw(struct client *raw, const struct umad_hdr *hdr, uint8_t type, uint8_t flags,
		     uint8_t status, uint32_t seg, uint32_t len_win)
{
	struct mad_addr to = addr_of("rxe0", 1);
	struct umad_rmpp_packet mad = { .mad_hdr = *hdr };

	mad.rmpp_hdr = (struct umad_rmpp_hdr){
		.rmpp_version = 1, .rmpp_type = type, .rmpp_rtime_flags = flags | RMPP_ACTIVE,
		.rmpp_status = status, .seg_num = htobe32(seg), .paylen_newwin = htobe32(len_win),
	};
	memset(mad.data + 20, seg, sizeof(mad.data) - 20);
	CHECK(!client_send(raw, &to, &mad, sizeof(mad), 0, 0));
}

static bool is_answer(const struct client *raw, uint8_t type, uint8_t status, uint32_t seg,
		      uint32_t win)
{
	const struct umad_rmpp_hdr *rmpp = rmpp_of(raw);

	return rmpp->rmpp_type == type && rmpp->rmpp_status == status &&
	       rmpp->rmpp_rtime_flags & RMPP_ACTIVE && be32toh(rmpp->seg_num) == seg &&
	       be32toh(rmpp->paylen_newwin) == win;
}

/* Every segment that a message makes has the fields that 13.6.2.1 says. */
static void test_raw_receiver(void)
{
	struct client a = { 0 }, raw = { 0 };
	struct mad_reg reg = rmpp_reg(UMAD_CLASS_SUBN_ADM);
	static uint8_t bytes[1000];
	struct mad_addr to = addr_of("rxe1", 1);
	size_t n = make_msg(bytes, UMAD_CLASS_SUBN_ADM, UMAD_METHOD_SEND, 3, 450);
	struct umad_hdr hdr;

	CHECK(!client_open(&a, "rxe0", &reg));
	open_raw(&raw, "rxe1", true);
	CHECK(!client_send(&a, &to, bytes, n, 0, 2));
	/* The first one alone, until it is acknowledged. */
	CHECK(raw.received == 1 && raw.len == MAD_SIZE);
	CHECK(is_answer(&raw, RMPP_DATA, 0, 1, 450 + 3 * 20));
	CHECK((rmpp_of(&raw)->rmpp_rtime_flags & 7) == (RMPP_ACTIVE | RMPP_FIRST));
	CHECK(!memcmp(raw.mad + SA_HDR, bytes + SA_HDR, 200));
	hdr = *client_hdr(&raw);
	hdr.method ^= 0x80;
	send_raw(&raw, &hdr, RMPP_ACK, 0, 0, 1, 2);
	ev_run(t.ibfs.loop, EVRUN_NOWAIT);
	CHECK(raw.received == 2 && is_answer(&raw, RMPP_DATA, 0, 2, 0));
	CHECK((rmpp_of(&raw)->rmpp_rtime_flags & 7) == RMPP_ACTIVE);
	send_raw(&raw, &hdr, RMPP_ACK, 0, 0, 2, 3);
	ev_run(t.ibfs.loop, EVRUN_NOWAIT);
	CHECK(raw.received == 3 && is_answer(&raw, RMPP_DATA, 0, 3, 50 + 20));
	CHECK((rmpp_of(&raw)->rmpp_rtime_flags & 7) == (RMPP_ACTIVE | RMPP_LAST));
	CHECK(!memcmp(raw.mad + SA_HDR, bytes + SA_HDR + 400, 50));
	send_raw(&raw, &hdr, RMPP_ACK, 0, 0, 3, 4);
	CHECK(!HASH_COUNT(a.agent->outs));
	close_pair(&a, &raw);
}

/* ACKs and others that end a message: what the sender answers, and that it ends. */
static void test_sender_errors(void)
{
	static const struct {
		uint8_t type, status, version;
		uint32_t seg, win;
		uint8_t answer;		/* the status of the ABORT, 0: none */
	} cases[] = {
		{ RMPP_ACK, 5, 1, 1, 2, RMPP_BAD_STATUS },
		{ RMPP_ACK, 0, 1, 3, 2, RMPP_W2S },
		{ RMPP_ACK, 0, 1, 2, 9, RMPP_S2B },
		{ RMPP_STOP, RMPP_RESX, 1, 0, 0, 0 },
		{ RMPP_STOP, 7, 1, 0, 0, RMPP_BAD_STATUS },
		{ RMPP_ABORT, RMPP_T2L, 1, 0, 0, 0 },
		{ RMPP_ABORT, 3, 1, 0, 0, RMPP_BAD_STATUS },
		{ 9, 0, 1, 0, 0, RMPP_BADT },
	};
	struct client a = { 0 }, raw = { 0 };
	struct mad_reg reg = rmpp_reg(UMAD_CLASS_SUBN_ADM);
	static uint8_t bytes[1000];
	struct mad_addr to = addr_of("rxe1", 1);
	unsigned int i;

	CHECK(!client_open(&a, "rxe0", &reg));
	open_raw(&raw, "rxe1", false);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = make_msg(bytes, UMAD_CLASS_SUBN_ADM, UMAD_METHOD_SEND, i, 900);
		unsigned int before;
		struct umad_hdr hdr;

		CHECK(!client_send(&a, &to, bytes, n, 0, 2));
		hdr = *client_hdr(&raw);
		hdr.method ^= 0x80;
		before = raw.received;
		send_raw(&raw, &hdr, cases[i].type, 0, cases[i].status, cases[i].seg,
			 cases[i].win);
		CHECK(!HASH_COUNT(a.agent->outs));
		CHECK(raw.received == before + !!cases[i].answer);
		if (cases[i].answer)
			CHECK(is_answer(&raw, RMPP_ABORT, cases[i].answer, 0, 0));
	}
	pass(10);
	CHECK(!a.timeouts);
	close_pair(&a, &raw);
}

static void test_raw_sender(void)
{
	struct client a = { 0 }, raw = { 0 };
	struct mad_reg reg = rmpp_reg(UMAD_CLASS_SUBN_ADM);
	struct umad_hdr hdr = hdr_of(UMAD_CLASS_SUBN_ADM, 2, UMAD_METHOD_SEND, ATTR, 1ULL << 60);
	unsigned int i;

	reg.methods[0] = ~0ULL;
	CHECK(!client_open(&a, "rxe0", &reg));
	open_raw(&raw, "rxe1", true);
	/* The first segment opens a window of 64; early ones are kept, the missing one asked for. */
	send_raw(&raw, &hdr, RMPP_DATA, RMPP_FIRST, 0, 1, 0);
	CHECK(raw.received == 1 && is_answer(&raw, RMPP_ACK, 0, 1, 65));
	CHECK(client_hdr(&raw)->method == (UMAD_METHOD_SEND | 0x80));
	send_raw(&raw, &hdr, RMPP_DATA, 0, 0, 66, 0);
	CHECK(raw.received == 1);
	send_raw(&raw, &hdr, RMPP_DATA, 0, 0, 3, 0);
	CHECK(raw.received == 2 && is_answer(&raw, RMPP_ACK, 0, 1, 65));
	send_raw(&raw, &hdr, RMPP_DATA, 0, 0, 65, 0);
	CHECK(raw.received == 3 && is_answer(&raw, RMPP_ACK, 0, 1, 65));
	send_raw(&raw, &hdr, RMPP_DATA, 0, 0, 2, 0);
	CHECK(raw.received == 4 && is_answer(&raw, RMPP_ACK, 0, 3, 65));
	/* What it has it acknowledges again. */
	send_raw(&raw, &hdr, RMPP_DATA, 0, 0, 2, 0);
	CHECK(raw.received == 5 && is_answer(&raw, RMPP_ACK, 0, 3, 65));
	for (i = 4; i < 65; i++)
		send_raw(&raw, &hdr, RMPP_DATA, 0, 0, i, 0);
	CHECK(is_answer(&raw, RMPP_ACK, 0, 65, 129));
	send_raw(&raw, &hdr, RMPP_DATA, RMPP_LAST, 0, 66, 20 + 7);
	CHECK(is_answer(&raw, RMPP_ACK, 0, 66, 129));
	CHECK(a.received == 1 && a.len == SA_HDR + 65 * 200 + 7);
	for (i = 0; i < 66; i++)
		CHECK(a.mad[SA_HDR + i * 200] == (uint8_t)(i + 1));
	/* Its last ACK may get lost: it answers for 10 s, delivering nothing twice. */
	i = raw.received;
	send_raw(&raw, &hdr, RMPP_DATA, RMPP_LAST, 0, 66, 20 + 7);
	CHECK(raw.received == i + 1 && is_answer(&raw, RMPP_ACK, 0, 66, 129) && a.received == 1);
	pass(10.1);
	CHECK(!a.agent->num_ins);
	close_pair(&a, &raw);
}

static void test_receiver_errors(void)
{
	static const struct {
		uint8_t type, flags, status;
		uint32_t seg;
		uint8_t answer;
	} cases[] = {
		{ RMPP_DATA, RMPP_FIRST, 3, 1, RMPP_BAD_STATUS },
		{ RMPP_DATA, RMPP_FIRST, 0, 2, RMPP_BAD_SEG },
		{ RMPP_DATA, 0, 0, 1, RMPP_BAD_SEG },
		{ 0, 0, 0, 1, RMPP_BADT },
		{ RMPP_DATA, 0, 0, 2, 0 },
		{ RMPP_DATA, 0, 0, 0, 0 },
		{ RMPP_DATA, RMPP_LAST, 0, 0xffffffff, 0 },
	};
	struct client a = { 0 }, raw = { 0 };
	struct mad_reg reg = rmpp_reg(UMAD_CLASS_SUBN_ADM);
	unsigned int i;

	reg.methods[0] = ~0ULL;
	CHECK(!client_open(&a, "rxe0", &reg));
	open_raw(&raw, "rxe1", true);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct umad_hdr hdr = hdr_of(UMAD_CLASS_SUBN_ADM, 2, UMAD_METHOD_SEND, ATTR, i);
		unsigned int before = raw.received;

		send_raw(&raw, &hdr, cases[i].type, cases[i].flags, cases[i].status, cases[i].seg,
			 99);
		CHECK(raw.received == before + !!cases[i].answer);
		if (cases[i].answer)
			CHECK(is_answer(&raw, RMPP_ABORT, cases[i].answer, 0, 0));
		CHECK(!a.agent->num_ins);
	}
	CHECK(!a.received);
	close_pair(&a, &raw);
}

/* 40 s for a message, then ABORT; an ABORT from the sender ends it at once. */
static void test_reassembly_time(void)
{
	struct client a = { 0 }, raw = { 0 };
	struct mad_reg reg = rmpp_reg(UMAD_CLASS_SUBN_ADM);
	struct umad_hdr hdr = hdr_of(UMAD_CLASS_SUBN_ADM, 2, UMAD_METHOD_SEND, ATTR, 1);
	unsigned int i;

	reg.methods[0] = ~0ULL;
	CHECK(!client_open(&a, "rxe0", &reg));
	open_raw(&raw, "rxe1", true);
	for (i = 1; i < 4; i++) {
		send_raw(&raw, &hdr, RMPP_DATA, i == 1 ? RMPP_FIRST : 0, 0, i, 0);
		pass(13);
	}
	CHECK(a.agent->num_ins == 1 && raw.received == 1);
	pass(1.1);
	CHECK(!a.agent->num_ins && raw.received == 2);
	CHECK(is_answer(&raw, RMPP_ABORT, RMPP_T2L, 0, 0));
	send_raw(&raw, &hdr, RMPP_DATA, RMPP_FIRST, 0, 1, 0);
	CHECK(a.agent->num_ins == 1);
	send_raw(&raw, &hdr, RMPP_ABORT, 0, RMPP_T2L, 0, 0);
	CHECK(!a.agent->num_ins);
	CHECK(!a.received);
	close_pair(&a, &raw);
}

/* Raw agents may have many MADs of one TID in flight, and get none put together. */
static void test_user_rmpp(void)
{
	struct client a = { 0 }, b = { 0 };
	struct mad_addr to = addr_of("rxe1", 1);
	uint8_t bytes[MAD_SIZE] = { 0 };
	unsigned int i;

	open_raw(&a, "rxe0", true);
	open_raw(&b, "rxe1", true);
	make_msg(bytes, UMAD_CLASS_SUBN_ADM, UMAD_METHOD_SEND, 7, 200);
	for (i = 0; i < 3; i++)
		CHECK(!client_send(&a, &to, bytes, sizeof(bytes), 100, 0));
	CHECK(b.received == 3 && b.len == MAD_SIZE);
	CHECK(client_send(&a, &to, bytes, MAD_SIZE + 1, 100, 0) == -EINVAL);
	CHECK(wait_for(&a.timeouts, 3, 1));
	close_pair(&a, &b);
}

/* RMPP agents send what isn't active as it is, and no message of other classes. */
static void test_not_active(void)
{
	struct client a = { 0 }, b = { 0 };
	struct mad_addr to = addr_of("rxe1", 1);
	uint8_t bytes[MAD_SIZE + 200] = { 0 };

	open_pair(&a, &b, UMAD_CLASS_SUBN_ADM);
	make_msg(bytes, UMAD_CLASS_SUBN_ADM, UMAD_METHOD_SEND, 7, 400);
	((struct umad_rmpp_packet *)bytes)->rmpp_hdr.rmpp_rtime_flags = 0;
	CHECK(client_send(&a, &to, bytes, sizeof(bytes), 0, 0) == -EINVAL);
	CHECK(!client_send(&a, &to, bytes, MAD_SIZE, 0, 0));
	CHECK(b.received == 1 && b.len == MAD_SIZE);
	((struct umad_rmpp_packet *)bytes)->rmpp_hdr.rmpp_rtime_flags = RMPP_ACTIVE;
	CHECK(client_send(&a, &to, bytes, SA_HDR - 1, 0, 0) == -EINVAL);
	bytes[1] = UMAD_CLASS_PERF_MGMT;
	CHECK(client_send(&a, &to, bytes, MAD_SIZE, 0, 0) == -EINVAL);
	close_pair(&a, &b);
}

/* Many messages at once, both ways, on one agent. */
static void test_many(void)
{
	struct client a = { 0 }, b = { 0 };
	struct mad_addr to = addr_of("rxe1", 1);
	uint8_t ask[MAD_SIZE] = { 0 };
	unsigned int i;

	CHECK(!link_set_faults(link_of("rxe0"), &(struct fault_conf){ .drop = 0.01, .seed = 9 }));
	open_pair(&a, &b, UMAD_CLASS_SUBN_ADM);
	reply.len = 5000;
	b.answer = answer_long;
	for (i = 0; i < 1000; i++) {
		make_msg(ask, UMAD_CLASS_SUBN_ADM, METHOD_GET_TABLE, i, 0);
		((struct umad_rmpp_packet *)ask)->rmpp_hdr.rmpp_rtime_flags = 0;
		CHECK(!client_send(&a, &to, ask, sizeof(ask), 5000, 3));
	}
	CHECK(wait_for(&a.received, 1000, 30));
	CHECK(!a.timeouts && !b.timeouts);
	/* Unregistering in the middle of it leaves nothing behind. */
	make_msg(ask, UMAD_CLASS_SUBN_ADM, METHOD_GET_TABLE, i, 0);
	CHECK(!client_send(&a, &to, ask, sizeof(ask), 5000, 3));
	close_pair(&a, &b);
	pass(45);
}

static const struct test tests[] = {
	{ "sizes", test_sizes },
	{ "double_sided", test_double_sided },
	{ "loss", test_loss },
	{ "duplicates", test_duplicates },
	{ "reorder", test_reorder },
	{ "corrupt", test_corrupt },
	{ "delay", test_delay },
	{ "all_faults", test_all_faults },
	{ "slow_response", test_slow_response },
	{ "sender_timeout", test_sender_timeout },
	{ "raw_receiver", test_raw_receiver },
	{ "sender_errors", test_sender_errors },
	{ "raw_sender", test_raw_sender },
	{ "receiver_errors", test_receiver_errors },
	{ "reassembly_time", test_reassembly_time },
	{ "user_rmpp", test_user_rmpp },
	{ "not_active", test_not_active },
	{ "many", test_many },
	{ 0 },
};

int main(int argc, char **argv)
{
	return run_tests(tests, argc, argv);
}
