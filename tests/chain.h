/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small fabric for tests of MAD agents, and checks that say where they failed:
 *
 *	a[1] - [1]s1[2] - [1]s2[2] - [1]s3[2] - [1]b	a[2] is not plugged in
 *
 * What no agent of a takes is collected in t.got.
 */
#ifndef TESTS_CHAIN_H
#define TESTS_CHAIN_H

#include <endian.h>
#include <errno.h>
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"
#include "fabric/packet.h"
#include "hca/mad.h"
#include "hca/smp.h"
#include "ibfs/ibfs.h"

#define MAX_GOT 64

static struct {
	struct ibfs ibfs;
	struct fabric *fabric;
	struct node *a, *b, *s[3];
	struct link *links[4];
	unsigned int failed;
	const char *file;
	/* what reached a's clients */
	unsigned int num_got;
	struct smp got[MAX_GOT];
	uint16_t got_slid[MAX_GOT];
} t;

#define CHECK(cond) check(cond, #cond, __LINE__)
#define CHECK_EQ(a, b) check_eq(a, b, #a, __LINE__)

static inline void check(bool ok, const char *what, int line)
{
	if (ok)
		return;
	fprintf(stderr, "%s:%d: not so: %s\n", t.file, line, what);
	t.failed++;
}

static inline void check_eq(unsigned long long got, unsigned long long want, const char *what,
			    int line)
{
	if (got == want)
		return;
	fprintf(stderr, "%s:%d: %s is 0x%llx, want 0x%llx\n", t.file, line, what, got, want);
	t.failed++;
}

static inline void deliver(struct port *end, struct packet *pkt, const struct mad_view *view)
{
	(void)end;
	(void)pkt;
	if (t.num_got == MAX_GOT)
		return;
	memcpy(&t.got[t.num_got], view->mad, MAD_SIZE);
	t.got_slid[t.num_got++] = be16toh(view->lrh->slid);
}

static inline struct node *add(enum node_type type, const char *id, unsigned int ports)
{
	struct node *node = node_new(t.fabric, type, id, ports, 0);

	if (!node) {
		perror(id);
		exit(1);
	}
	return node;
}

static inline void setup(void)
{
	static const char *const names[] = { "s1", "s2", "s3" };

	t.ibfs.loop = ev_loop_new(0);
	t.ibfs.tasks = taskq_new(t.ibfs.loop);
	t.fabric = fabric_new(&t.ibfs, &sim_node_ops);
	t.ibfs.fabric = t.fabric;
	t.a = add(NODE_CA, "a", 2);
	t.b = add(NODE_CA, "b", 1);
	for (int i = 0; i < 3; i++)
		t.s[i] = add(NODE_SWITCH, names[i], 4);
	t.links[0] = link_new(&t.a->ports[1], &t.s[0]->ports[1]);
	t.links[1] = link_new(&t.s[0]->ports[2], &t.s[1]->ports[1]);
	t.links[2] = link_new(&t.s[1]->ports[2], &t.s[2]->ports[1]);
	t.links[3] = link_new(&t.s[2]->ports[2], &t.b->ports[1]);
	port_agents(&t.a->ports[1])->deliver = deliver;
}

static inline void teardown(void)
{
	fabric_free(t.fabric);
	taskq_free(t.ibfs.tasks);
	ev_loop_destroy(t.ibfs.loop);
	memset(&t, 0, offsetof(typeof(t), failed));
	t.num_got = 0;
}

/* A SMP with headers, ready for smi_send(); by LID when hops is NULL. */
static inline struct smp *make(struct packet *pkt, uint8_t method, uint16_t attr, uint32_t mod,
			const char *hops, uint16_t dlid)
{
	struct deth *deth;
	struct smp *smp;
	struct bth *bth;
	struct lrh *lrh;

	packet_init(pkt);
	smp = packet_put(pkt, MAD_SIZE);
	deth = packet_push(pkt, sizeof(*deth));
	bth = packet_push(pkt, sizeof(*bth));
	lrh = packet_push(pkt, sizeof(*lrh));
	memset(lrh, 0, sizeof(*lrh));
	memset(bth, 0, sizeof(*bth));
	memset(deth, 0, sizeof(*deth));
	memset(smp, 0, MAD_SIZE);
	lrh->sl_lnh = LNH_BTH;
	lrh->dlid = htobe16(dlid);
	lrh->slid = htobe16(hops ? LID_PERMISSIVE : t.a->ports[1].lid);
	bth->opcode = BTH_OPCODE_UD_SEND_ONLY;
	bth->pkey = htobe16(PKEY_DEFAULT);
	pkt->vl = 15;
	smp->base_version = 1;
	smp->class_version = 1;
	smp->mgmt_class = hops ? MAD_CLASS_SUBN_DR : MAD_CLASS_SUBN_LID;
	smp->method = method;
	smp->tid = htobe64(0x1234);
	smp->attr_id = htobe16(attr);
	smp->attr_mod = htobe32(mod);
	smp->dr_slid = htobe16(LID_PERMISSIVE);
	smp->dr_dlid = htobe16(LID_PERMISSIVE);
	if (hops) {
		smp->hop_cnt = strlen(hops);
		for (unsigned int i = 0; i < smp->hop_cnt; i++)
			smp->initial_path[i + 1] = hops[i] - '0';
	}
	return smp;
}

/* LIDs as a manager gives them: a 1, s1 2, s2 3, s3 4, b 5; routes along the chain. */
static inline void bring_up(void)
{
	struct port *ends[] = { &t.a->ports[1], &t.s[0]->ports[0], &t.s[1]->ports[0],
				&t.s[2]->ports[0], &t.b->ports[1] };

	for (int i = 0; i < 5; i++) {
		ends[i]->lid = i + 1;
		ends[i]->sm_lid = 1;
	}
	for (int i = 0; i < 3; i++) {
		t.s[i]->sw->lft_top = 63;
		for (uint16_t lid = 1; lid <= 5; lid++)
			switch_set_lft(t.s[i], lid, lid == i + 2 ? 0 : lid < i + 2 ? 1 : 2);
	}
	for (int i = 0; i < 4; i++) {
		struct port *both[] = { t.links[i]->a, t.links[i]->b };

		for (int j = 0; j < 2; j++)
			port_set_state(both[j], PORT_ARMED);
		for (int j = 0; j < 2; j++)
			port_set_state(both[j], PORT_ACTIVE);
	}
	for (int i = 0; i < 3; i++)
		t.s[i]->sw->port_state_change = false;
}

/* Run the loop until a's clients have so many MADs, or nothing is left to happen for a second. */
static inline void run_until(unsigned int num)
{
	ev_tstamp end = ev_time() + 5;

	while (t.num_got < num && ev_time() < end) {
		ev_run(t.ibfs.loop, EVRUN_NOWAIT);
		ev_sleep(0.002);
	}
}

/* Directed-route request from a; the answer, or NULL. */
static inline struct smp *request(uint8_t method, uint16_t attr, uint32_t mod, const char *hops,
			   const void *data, uint64_t mkey)
{
	struct packet pkt;
	struct smp *smp = make(&pkt, method, attr, mod, hops, LID_PERMISSIVE);

	if (data)
		memcpy(smp->data, data, sizeof(smp->data));
	smp->mkey = htobe64(mkey);
	t.num_got = 0;
	if (smi_send(&t.a->ports[1], &pkt) || t.num_got != 1)
		return NULL;
	return &t.got[0];
}

static inline unsigned int status(const struct smp *smp)
{
	return smp ? be16toh(smp->status) & ~UMAD_SMP_DIRECTION : 0xffff;
}

static inline unsigned int get(uint16_t attr, uint32_t mod, const char *hops, void *data)
{
	struct smp *smp = request(UMAD_METHOD_GET, attr, mod, hops, NULL, 0);

	if (smp && data)
		memcpy(data, smp->data, sizeof(smp->data));
	return status(smp);
}

static inline unsigned int set(uint16_t attr, uint32_t mod, const char *hops, const void *data)
{
	return status(request(UMAD_METHOD_SET, attr, mod, hops, data, 0));
}

static inline void send_lid(struct packet *pkt, uint16_t dlid)
{
	packet_lrh(pkt)->dlid = htobe16(dlid);
	packet_lrh(pkt)->slid = htobe16(t.a->ports[1].lid);
	t.num_got = 0;
	CHECK_EQ(smi_send(&t.a->ports[1], pkt), 0);
}

struct test {
	const char *name;
	void (*fn)(void);
	bool up;		/* LIDs and routes in place */
};

/* Each test on a fabric of its own; the exit status. */
static inline int run_tests(const char *file, const struct test *tests, unsigned int num)
{
	t.file = file;
	for (unsigned int i = 0; i < num; i++) {
		unsigned int before = t.failed;

		setup();
		if (tests[i].up)
			bring_up();
		tests[i].fn();
		teardown();
		if (t.failed != before)
			fprintf(stderr, "FAILED: %s\n", tests[i].name);
	}
	return t.failed ? 1 : 0;
}

#endif
