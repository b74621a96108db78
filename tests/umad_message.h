/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages longer than one MAD, from one umad file to another, of a vendor
 * class with RMPP, so that tests that run together don't share agents.
 */
#ifndef IBFS_UMAD_MESSAGE_H
#define IBFS_UMAD_MESSAGE_H

#include "umad_test.h"

#define HDR		sizeof(struct ib_user_mad_hdr)
#define CLASS_HDR	40		/* of a vendor class with an OUI */
#define METHOD		2
#define OUI		0x001405

static const char *from_path, *to_path;
static uint16_t to_lid;

/* Sender and receiver of one test, on agents of their own. */
struct pair {
	int from, to;
	uint8_t class;
	uint32_t from_id;
};

static inline struct pair pair_new(uint8_t class, int flags)
{
	struct ib_user_mad_reg_req2 req = {
		.qpn = 1, .mgmt_class = class, .mgmt_class_version = 1, .oui = OUI,
		.rmpp_version = 1,
	};
	struct pair pair = {
		.from = must_open(from_path, O_RDWR),
		.to = must_open(to_path, O_RDWR | flags),
		.class = class,
	};

	CHECK_ERR(reg_new(pair.from, &req), 0);
	pair.from_id = req.id;
	req.method_mask[0] = 1 << METHOD;
	CHECK_ERR(reg_new(pair.to, &req), 0);
	return pair;
}

/* Reads, writes and ioctls that the daemon has served. */
static inline long daemon_requests(void)
{
	char path[256], line[256];
	long n = -1;
	FILE *file;

	snprintf(path, sizeof(path), "%s/metrics", getenv("IBFS"));
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "ibfs_requests_total %ld", &n);
	if (file)
		fclose(file);
	return n;
}

static inline uint8_t pattern(uint32_t tid, size_t i)
{
	return (uint8_t)(i * 7 + (i >> 8) + tid * 31);
}

/* Header and message of len bytes (from the MAD's start). */
static inline uint8_t *make_message(const struct pair *pair, uint32_t tid, size_t len)
{
	struct ib_user_mad_hdr *hdr = calloc(1, HDR + len);
	uint8_t *data = (uint8_t *)(hdr + 1);

	hdr->id = pair->from_id;
	hdr->lid = htons(to_lid);
	hdr->qpn = htonl(1);
	hdr->qkey = htonl(QKEY_GSI);
	mad_init(data, pair->class, 1, METHOD, tid, 0x0100);
	data[24] = 1;			/* RMPPVersion */
	data[25] = 1;			/* DATA */
	data[26] = 1;			/* Active */
	put32(data + 36, OUI);		/* a reserved byte, then the OUI */
	for (size_t i = CLASS_HDR; i < len; i++)
		data[i] = pattern(tid, i);
	return (uint8_t *)hdr;
}

static inline void send_message(const struct pair *pair, uint32_t tid, size_t len)
{
	uint8_t *buf = make_message(pair, tid, len);

	CHECK(write(pair->from, buf, HDR + len) == (ssize_t)(HDR + len));
	free(buf);
}

/* What a buffer must hold after a read: header for need bytes, data up to end. */
static inline bool holds(const uint8_t *buf, uint32_t tid, size_t need, size_t end)
{
	struct ib_user_mad_hdr hdr;

	memcpy(&hdr, buf, sizeof(hdr));
	if (hdr.status || hdr.length != need || get32(buf + HDR + 12) != tid) {
		fprintf(stderr, "status %u length %u (%zu) tid 0x%x (0x%x)\n", hdr.status,
			hdr.length, need, get32(buf + HDR + 12), tid);
		return false;
	}
	for (size_t i = CLASS_HDR; i < end; i++) {
		if (buf[HDR + i] == pattern(tid, i))
			continue;
		fprintf(stderr, "byte %zu of %zu is 0x%02x, not 0x%02x\n", i, end, buf[HDR + i],
			pattern(tid, i));
		return false;
	}
	return true;
}

/* The contract on a message of len bytes: short reads leave it, the whole one takes it. */
static inline void read_message(int fd, uint32_t tid, size_t len)
{
	uint8_t *buf = malloc(HDR + len);
	uint8_t small[HDR + MAD_LEN];

	for (int i = 0; i < 2; i++) {
		memset(small, 0xee, sizeof(small));
		CHECK_ERR(read(fd, small, sizeof(small)), ENOSPC);
		CHECK(holds(small, tid, HDR + len, MAD_LEN));
	}
	CHECK_ERR(read(fd, small, sizeof(small) - 1), EINVAL);
	CHECK(read(fd, buf, HDR + len) == (ssize_t)(HDR + len));
	CHECK(holds(buf, tid, HDR + len, len));
	free(buf);
}

/* main() of what takes NAME UMAD RECEIVER LID. */
static inline int run_message_tests(const struct test *tests, int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: %s NAME UMAD RECEIVER LID\n", argv[0]);
		return 2;
	}
	from_path = argv[2];
	to_path = argv[3];
	to_lid = (uint16_t)strtoul(argv[4], NULL, 0);
	return run_tests(tests, argv[1]);
}

#endif
