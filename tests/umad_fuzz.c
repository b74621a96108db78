/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random agents, MADs and reads on umad, the same for the same seed:
 * umad_fuzz SEED ROUNDS UMAD... MADs are mostly near to right ones, so that
 * they get far. It fails only when the file stops answering as it must.
 */
#include "umad_message.h"

#define MAX_FILES	8

static uint64_t state;

/* xorshift64 */
static uint32_t rnd(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % below;
}

static uint8_t pick(const uint8_t *from, size_t n)
{
	return rnd(8) ? from[rnd((uint32_t)n)] : (uint8_t)rnd(256);
}

static uint8_t random_class(void)
{
	static const uint8_t classes[] = {
		0x01, 0x81, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x0a, 0x21, 0x30, 0x32, 0x4f,
	};

	return pick(classes, sizeof(classes));
}

static uint8_t random_method(void)
{
	static const uint8_t methods[] = { 1, 2, 3, 5, 6, 7, 0x12, 0x14, 0x81, 0x92, 0x94 };

	return pick(methods, sizeof(methods));
}

static void register_any(int fd)
{
	struct ib_user_mad_reg_req2 req = {
		.qpn = rnd(3),
		.mgmt_class = rnd(3) ? random_class() : 0,
		.mgmt_class_version = (uint8_t)rnd(4),
		.flags = rnd(4) ? 0 : rnd(4),
		.method_mask = { rnd(UINT32_MAX), rnd(16) ? 0 : rnd(UINT32_MAX) },
		.oui = rnd(2) ? OUI : rnd(1 << 25),
		.rmpp_version = (uint8_t)rnd(3),
	};
	struct ib_user_mad_reg_req old = {
		.qpn = (uint8_t)rnd(2),
		.mgmt_class = random_class(),
		.mgmt_class_version = (uint8_t)rnd(3),
		.rmpp_version = (uint8_t)rnd(2),
	};

	switch (rnd(4)) {
	case 0:
		reg_old(fd, &old);
		break;
	case 1:
		unreg(fd, rnd(34));
		break;
	default:
		reg_new(fd, &req);
	}
}

/* A directed route of random hops, about where the packet is in it. */
static void random_route(uint8_t *data)
{
	data[6] = (uint8_t)(rnd(4) ? 0 : rnd(70));
	data[7] = (uint8_t)(rnd(8) ? rnd(5) : rnd(256));
	for (int i = 0; i < 64; i++)
		data[128 + i] = (uint8_t)rnd(10);
	if (rnd(8))
		memset(data + 32, 0xff, 4);
}

static void random_mad(uint8_t *data, size_t len)
{
	uint8_t class = random_class();

	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(rnd(4) ? 0 : rnd(256));
	mad_init(data, class, (uint8_t)rnd(3), random_method(), rnd(4), (uint16_t)rnd(0x40));
	if (!rnd(20))
		data[0] = (uint8_t)rnd(256);
	data[18] = data[19] = 0;
	put32(data + 20, rnd(4) ? rnd(10) : rnd(UINT32_MAX));
	if (class == CLASS_DR)
		random_route(data);
	else if (rnd(2))
		data[24] = 1, data[25] = (uint8_t)rnd(6), data[26] = (uint8_t)rnd(8);
	if (rnd(2))
		put32(data + 36, OUI);
}

static void write_any(int fd)
{
	static uint8_t buf[HDR + 20000];
	size_t len = rnd(4) ? MAD_LEN : rnd(16) ? rnd(600) + 36 : rnd(20000 - 36) + 36;
	struct ib_user_mad_hdr hdr = {
		.id = rnd(16) ? rnd(4) : rnd(40),
		.timeout_ms = rnd(3) ? rnd(5) : 0,
		.retries = rnd(3),
		.qpn = htonl(rnd(8) ? rnd(2) : rnd(UINT32_MAX)),
		.qkey = htonl(rnd(8) ? QKEY_GSI : rnd(UINT32_MAX)),
		.lid = htons((uint16_t)(rnd(4) ? rnd(6) : rnd(65536))),
		.sl = (uint8_t)rnd(20),
		.path_bits = (uint8_t)(rnd(4) ? 0 : rnd(256)),
		.grh_present = !rnd(6),
		.gid_index = (uint8_t)rnd(4),
		.hop_limit = (uint8_t)rnd(256),
		.pkey_index = (uint16_t)(rnd(8) ? 0 : rnd(65536)),
	};

	memcpy(buf, &hdr, sizeof(hdr));
	random_mad(buf + HDR, len);
	if (!rnd(16))
		len = rnd((uint32_t)len);
	CHECK(write(fd, buf, HDR + len) != 0);
}

static void read_any(int fd)
{
	static uint8_t buf[HDR + 20000];

	for (uint32_t n = rnd(4); n; n--) {
		ssize_t ret = read(fd, buf, rnd(3) ? HDR + MAD_LEN : 1 + rnd(sizeof(buf)));

		CHECK(ret > 0 || (ret < 0 && (errno == EAGAIN || errno == EINVAL ||
					      errno == ENOSPC)));
	}
}

static int open_any(const char *path)
{
	return must_open(path, O_RDWR | O_NONBLOCK);
}

int main(int argc, char **argv)
{
	int fd[MAX_FILES], paths = argc - 3, slot;
	uint32_t rounds;

	if (paths < 1)
		return 2;
	state = strtoull(argv[1], NULL, 0) * 0x9e3779b97f4a7c15 + 1;
	rounds = (uint32_t)strtoul(argv[2], NULL, 0);
	for (slot = 0; slot < MAX_FILES; slot++)
		fd[slot] = open_any(argv[3 + slot % paths]);
	while (rounds-- && !failures) {
		slot = (int)rnd(MAX_FILES);
		switch (rnd(40)) {
		case 0:
			close(fd[slot]);
			fd[slot] = open_any(argv[3 + slot % paths]);
			break;
		case 1 ... 6:
			register_any(fd[slot]);
			break;
		case 7 ... 25:
			write_any(fd[slot]);
			break;
		default:
			read_any(fd[slot]);
		}
	}
	return failures != 0;
}
