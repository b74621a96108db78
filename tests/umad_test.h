/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs that test umad share: checks that tell the line, and MADs
 * built byte by byte. They know <rdma/ib_user_mad.h> and the file, no library.
 */
#ifndef IBFS_UMAD_TEST_H
#define IBFS_UMAD_TEST_H

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "in_syscall.h"

#define MAD_LEN		256
#define CLASS_SA	0x03
#define CLASS_VENDOR1	0x0a		/* without an OUI */
#define CLASS_DR	0x81
#define QKEY_GSI	0x80010000

static int failures;

static inline bool check(bool ok, int line, const char *what)
{
	if (!ok) {
		fprintf(stderr, "line %d: not true: %s\n", line, what);
		failures++;
	}
	return ok;
}

static inline void check_errno(long ret, int err, int line, const char *what)
{
	int got = ret < 0 ? errno : 0;

	if (ret >= 0 ? err != 0 : got != err) {
		fprintf(stderr, "line %d: %s: returned %ld (%s), not %s\n", line, what, ret,
			got ? strerrorname_np(got) : "success", err ? strerrorname_np(err) : "0");
		failures++;
	}
}

#define CHECK(x)		check(x, __LINE__, #x)
#define CHECK_ERR(x, err)	check_errno(x, err, __LINE__, #x)

static inline int must_open(const char *path, int flags)
{
	int fd = open(path, flags);

	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

/* --- registration --- */

static inline int reg_old(int fd, struct ib_user_mad_reg_req *req)
{
	return ioctl(fd, IB_USER_MAD_REGISTER_AGENT, req);
}

static inline int reg_new(int fd, struct ib_user_mad_reg_req2 *req)
{
	return ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, req);
}

static inline int unreg(int fd, uint32_t id)
{
	return ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &id);
}

/* An agent that sends on QP qpn; its id, or -1. */
static inline int add_sender(int fd, uint8_t qpn)
{
	struct ib_user_mad_reg_req2 req = { .qpn = qpn };

	return reg_new(fd, &req) ? -1 : (int)req.id;
}

/* --- MADs, with the new header --- */

struct mad {
	struct ib_user_mad_hdr hdr;
	uint8_t data[MAD_LEN];
};

static inline void put32(uint8_t *at, uint32_t value)
{
	value = htonl(value);
	memcpy(at, &value, sizeof(value));
}

static inline uint32_t get32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return ntohl(value);
}

static inline void mad_init(uint8_t *data, uint8_t class, uint8_t version, uint8_t method,
			    uint32_t tid, uint16_t attr)
{
	data[0] = 1;
	data[1] = class;
	data[2] = version;
	data[3] = method;
	put32(data + 12, tid);
	data[16] = (uint8_t)(attr >> 8);
	data[17] = (uint8_t)attr;
}

/* A directed-route SMP to the port's own node (hops 0), or through its port 1 and on. */
static inline void dr_smp(uint8_t *data, uint32_t tid, uint16_t attr, int hops, const uint8_t *path)
{
	memset(data, 0, MAD_LEN);
	mad_init(data, CLASS_DR, 1, 1, tid, attr);
	data[7] = (uint8_t)hops;
	memset(data + 32, 0xff, 4);	/* DrSLID and DrDLID: permissive */
	for (int i = 1; i <= hops; i++)
		data[128 + i] = path[i - 1];
}

/* Get(NodeInfo) of the own node; it is answered before the write returns, or soon. */
static inline void node_info(struct mad *mad, int agent, uint32_t tid)
{
	memset(&mad->hdr, 0, sizeof(mad->hdr));
	mad->hdr.id = (uint32_t)agent;
	mad->hdr.timeout_ms = 1000;
	mad->hdr.lid = 0xffff;
	dr_smp(mad->data, tid, 0x0011, 0, NULL);
}

static inline bool readable(int fd, int ms)
{
	struct pollfd pfd = { fd, POLLIN, 0 };

	return poll(&pfd, 1, ms) == 1 && pfd.revents & POLLIN;
}

static inline void send_node_info(int fd, int agent, uint32_t tid)
{
	struct mad mad;

	node_info(&mad, agent, tid);
	CHECK(write(fd, &mad, sizeof(mad)) == sizeof(mad));
}

/* --- a table of named tests --- */

struct test {
	const char *name;
	void (*run)(void);
};

static inline int run_tests(const struct test *tests, const char *name)
{
	for (; tests->name; tests++) {
		if (strcmp(tests->name, name))
			continue;
		tests->run();
		return failures ? 1 : 0;
	}
	fprintf(stderr, "no test named %s\n", name);
	return 2;
}

#endif
