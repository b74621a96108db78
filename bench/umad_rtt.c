/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round trips of directed-route Get(NodeInfo) through libibumad, so that the
 * same program runs on ibfs and, preloaded, on ibsim. IBA 14.2.1.
 *
 *	umad_rtt WINDOW COUNT [HOPS]	prints requests per second and p50 in ns
 *
 * HOPS is a path of output ports, "1" (the next switch) unless given.
 */
#include <infiniband/umad.h>
#include <infiniband/umad_sm.h>
#include <infiniband/umad_types.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_WINDOW 256

struct bench {
	int port, agent;
	unsigned int window, count, sent, received;
	uint8_t path[64], hops;
	uint64_t *start, *took;		/* ns, by request */
	void *umad;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "umad_rtt: %s: %m\n", what);
	exit(1);
}

static void send_one(struct bench *b)
{
	struct umad_smp *smp = umad_get_mad(b->umad);

	memset(b->umad, 0, umad_size() + sizeof(*smp));
	smp->base_version = UMAD_BASE_VERSION;
	smp->mgmt_class = UMAD_CLASS_SUBN_DIRECTED_ROUTE;
	smp->class_version = 1;
	smp->method = UMAD_METHOD_GET;
	smp->tid = htobe64(b->sent);
	smp->attr_id = htobe16(UMAD_SM_ATTR_NODE_INFO);
	smp->hop_cnt = b->hops;
	smp->dr_slid = smp->dr_dlid = 0xffff;
	memcpy(smp->initial_path, b->path, sizeof(b->path));
	umad_set_addr(b->umad, 0xffff, 0, 0, 0);
	b->start[b->sent] = now_ns();
	if (umad_send(b->port, b->agent, b->umad, sizeof(*smp), 1000, 3) < 0)
		die("send");
	b->sent++;
}

static void receive_one(struct bench *b)
{
	struct umad_smp *smp = umad_get_mad(b->umad);
	int len = sizeof(*smp);
	uint32_t tid;

	if (umad_recv(b->port, b->umad, &len, -1) < 0)
		die("recv");
	if (umad_status(b->umad))
		die("a request timed out");
	tid = be64toh(smp->tid);
	if (tid >= b->count || be16toh(smp->status) & 0x7fff)
		die("wrong answer");
	b->took[tid] = now_ns() - b->start[tid];
	b->received++;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void parse_path(struct bench *b, char *text)
{
	char *word;

	for (word = strtok(text, ","); word && b->hops < 62; word = strtok(NULL, ","))
		b->path[++b->hops] = atoi(word);
}

int main(int argc, char **argv)
{
	char next_switch[] = "1";
	struct bench b = {0};
	uint64_t begin, end;

	if (argc < 3 || (b.window = atoi(argv[1])) < 1 || b.window > MAX_WINDOW ||
	    (b.count = atoi(argv[2])) < b.window) {
		fprintf(stderr, "usage: umad_rtt WINDOW COUNT [PORT,PORT...]\n");
		return 2;
	}
	parse_path(&b, argc > 3 ? argv[3] : next_switch);
	b.start = calloc(b.count, sizeof(*b.start));
	b.took = calloc(b.count, sizeof(*b.took));
	if (umad_init() < 0 || (b.port = umad_open_port(NULL, 0)) < 0)
		die("open the port");
	b.agent = umad_register(b.port, UMAD_CLASS_SUBN_DIRECTED_ROUTE, 1, 0, NULL);
	b.umad = umad_alloc(1, umad_size() + 256);
	if (b.agent < 0 || !b.umad || !b.start || !b.took)
		die("register");
	begin = now_ns();
	while (b.received < b.count) {
		while (b.sent < b.count && b.sent - b.received < b.window)
			send_one(&b);
		receive_one(&b);
	}
	end = now_ns();
	qsort(b.took, b.count, sizeof(*b.took), compare);
	printf("%.0f %ju\n", b.count * 1e9 / (end - begin), (uintmax_t)b.took[b.count / 2]);
	umad_free(b.umad);
	umad_unregister(b.port, b.agent);
	umad_close_port(b.port);
	free(b.start);
	free(b.took);
	return 0;
}
