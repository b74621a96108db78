/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs share that test devices and their MAD agents below the
 * tree: a fabric of two HCAs on a switch, clients that keep what they get, and
 * a clock that stands still but for wait_for(): tests of timeouts take no time
 * and come out the same on any machine.
 */
#ifndef MAD_TEST_H
#define MAD_TEST_H

#include <endian.h>
#include <errno.h>
#include <ev.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "fabric/fabric.h"
#include "fabric/packet.h"
#include "hca/agent.h"
#include "hca/hca.h"
#include "hca/mad.h"
#include "ibfs/backend.h"
#include "ibfs/fs.h"
#include "ibfs/ibfs.h"

#define CLASS_VENDOR	0x32
#define METHOD_GET_TABLE 0x12
#define TICK		0.005	/* seconds that the clock moves on at a time */

#define CHECK(cond) check(cond, #cond, __FILE__, __LINE__)

struct test {
	const char *name;
	void (*fn)(void);
};

struct client {
	struct mad_agent *agent;
	unsigned int received, timeouts, gone;
	struct mad_addr addr;		/* of the last one */
	size_t len;
	uint8_t *mad;
	/* Answers requests when set. */
	void (*answer)(struct client *client, const struct mad_addr *addr, const void *mad,
		       size_t len);
	struct ibfs_device *dev;
};

/* The message of one test's assertions; tests run one at a time. */
static struct {
	struct ibfs ibfs;
	struct timespec now;
	unsigned int failed;
} t;

/* There is no tree here. */
int fs_device_added(struct ibfs_device *dev)
{
	(void)dev;
	return 0;
}

void fs_device_removed(struct ibfs_device *dev)
{
	(void)dev;
}

void uverbs_device_event(struct ibfs_device *dev, unsigned int port, enum ibv_event_type event)
{
	(void)dev;
	(void)port;
	(void)event;
}

void ucma_port_event(struct ibfs_device *dev, unsigned int port, enum ibv_event_type event)
{
	(void)dev;
	(void)port;
	(void)event;
}

/* libev's clocks, and ours. */
int gettimeofday(struct timeval *tv, void *tz)
{
	(void)tz;
	tv->tv_sec = t.now.tv_sec + 1000000;
	tv->tv_usec = t.now.tv_nsec / 1000;
	return 0;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	*ts = t.now;
	ts->tv_sec += 1000000;
	return 0;
}

static inline void check(bool ok, const char *what, const char *file, int line)
{
	if (ok)
		return;
	printf("%s:%d: %s\n", file, line, what);
	t.failed++;
}

static inline void tick(double seconds)
{
	long long ns = t.now.tv_nsec + (long long)(seconds * 1e9);

	t.now.tv_sec += ns / 1000000000;
	t.now.tv_nsec = ns % 1000000000;
	ev_run(t.ibfs.loop, EVRUN_NOWAIT);
}

static inline double now(void)
{
	return t.now.tv_sec + t.now.tv_nsec / 1e9;
}

/* Let time pass, in ticks, until *counter is at least n; false after so many seconds. */
static inline bool wait_for(const unsigned int *counter, unsigned int n, double seconds)
{
	double end = now() + seconds;

	ev_run(t.ibfs.loop, EVRUN_NOWAIT);
	while (*counter < n && now() < end)
		tick(TICK);
	return *counter >= n;
}

static inline void pass(double seconds)
{
	static const unsigned int never;

	wait_for(&never, 1, seconds);
}

static inline struct ibfs_device *device(const char *name)
{
	return device_find(&t.ibfs, name);
}

static inline struct port *port_of(const char *id)
{
	struct node *node = fabric_find(t.ibfs.fabric, id);

	return &node->ports[node->type != NODE_SWITCH];
}

static inline struct link *link_of(const char *id)
{
	return port_of(id)->link;
}

static inline void setup(void)
{
	char *err;

	t.now.tv_sec = 0;
	t.now.tv_nsec = 0;
	memset(&t.ibfs, 0, sizeof(t.ibfs));
	t.ibfs.loop = ev_loop_new(EVFLAG_AUTO);
	t.ibfs.tasks = taskq_new(t.ibfs.loop);
	t.ibfs.events = textring_new(1024);
	t.ibfs.errors = textring_new(64);
	t.ibfs.fabric = fabric_new(&t.ibfs, &sim_node_ops);
	if (fabric_default(t.ibfs.fabric) || static_subnet(t.ibfs.fabric, &err) ||
	    soft_device_add(&t.ibfs, "rxe0", "rxe0") || soft_device_add(&t.ibfs, "rxe1", "rxe1")) {
		printf("can't make the fabric\n");
		exit(1);
	}
}

static inline void teardown(void)
{
	fabric_free(t.ibfs.fabric);
	textring_free(t.ibfs.errors);
	textring_free(t.ibfs.events);
	taskq_free(t.ibfs.tasks);
	ev_loop_destroy(t.ibfs.loop);
}

static inline void client_recv(void *priv, struct mad_agent *agent, int status,
			       const struct mad_addr *addr, const void *mad, size_t len)
{
	struct client *client = priv;

	CHECK(agent == client->agent);
	CHECK(status == 0 || (status == ETIMEDOUT && len == MAD_HDR_LEN));
	free(client->mad);
	client->mad = malloc(len);
	memcpy(client->mad, mad, len);
	client->len = len;
	client->addr = *addr;
	if (status)
		client->timeouts++;
	else
		client->received++;
	if (!status && client->answer)
		client->answer(client, addr, mad, len);
}

static inline void client_gone(void *priv, struct mad_agent *agent)
{
	struct client *client = priv;

	CHECK(agent == client->agent);
	client->agent = NULL;
	client->gone++;
}

static const struct mad_client_ops client_ops = { .recv = client_recv, .gone = client_gone };

static inline struct mad_reg reg_of(uint8_t qpn, uint8_t class, uint8_t version)
{
	struct mad_reg reg = { .qpn = qpn, .mgmt_class = class, .class_version = version };

	if (class >= UMAD_CLASS_VENDOR_RANGE2_START && class <= UMAD_CLASS_VENDOR_RANGE2_END)
		memcpy(reg.oui, "\x00\x14\x05", 3);
	return reg;
}

static inline void reg_method(struct mad_reg *reg, unsigned int method)
{
	reg->methods[method / 64] |= 1ULL << method % 64;
}

static inline int client_open(struct client *client, const char *dev, const struct mad_reg *reg)
{
	struct ibfs_device *d = device(dev);

	client->dev = d;
	return d->ops->mad_register(d, d->first_port, reg, &client_ops, client, &client->agent);
}

static inline void client_close(struct client *client)
{
	if (client->agent)
		client->dev->ops->mad_unregister(client->agent);
	free(client->mad);
	memset(client, 0, sizeof(*client));
}

static inline int client_send(struct client *client, const struct mad_addr *addr,
			      const void *mad, size_t len, unsigned int timeout_ms,
			      unsigned int retries)
{
	return client->dev->ops->mad_send(client->agent, addr, mad, len, timeout_ms, retries);
}

static inline struct mad_addr addr_of(const char *id, uint32_t qpn)
{
	struct mad_addr addr = {
		.lid = port_of(id)->lid, .qpn = qpn, .qkey = qpn ? QP1_QKEY : 0,
	};

	return addr;
}

static inline struct umad_hdr hdr_of(uint8_t class, uint8_t version, uint8_t method,
				     uint16_t attr, uint64_t tid)
{
	struct umad_hdr hdr = {
		.base_version = UMAD_BASE_VERSION, .mgmt_class = class, .class_version = version,
		.method = method, .attr_id = htobe16(attr), .tid = htobe64(tid),
	};

	return hdr;
}

static inline const struct umad_hdr *client_hdr(const struct client *client)
{
	return (const struct umad_hdr *)client->mad;
}

/* Run the tests that are named, or all; each in a fabric of its own. */
static inline int run_tests(const struct test *tests, int argc, char **argv)
{
	unsigned int ran = 0, failed = 0;
	int i;

	for (; tests->name; tests++) {
		for (i = 1; i < argc && strcmp(argv[i], tests->name); i++)
			;
		if (argc > 1 && i == argc)
			continue;
		t.failed = 0;
		setup();
		tests->fn();
		teardown();
		ran++;
		failed += !!t.failed;
		if (t.failed)
			printf("%s: failed\n", tests->name);
	}
	if (!ran)
		printf("no such test\n");
	return failed || !ran;
}

#endif
