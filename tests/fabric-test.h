/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the fabric's test programs share: a fabric whose nodes write down what
 * reached them, packets to send, and a table of cases. Each program runs the
 * cases that its arguments name, or all, and says which check failed.
 */
#ifndef IBFS_FABRIC_TEST_H
#define IBFS_FABRIC_TEST_H

#include <endian.h>
#include <errno.h>
#include <ev.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"
#include "fabric/packet.h"
#include "fabric/wire.h"
#include "ibfs/ibfs.h"

#define CHECK(cond)                                                                         \
	do {                                                                                \
		if (!(cond)) {                                                              \
			fprintf(stderr, "%s:%d: %s: not so: %s\n", __FILE__, __LINE__, __func__, \
				#cond);                                                     \
			exit(1);                                                            \
		}                                                                           \
	} while (0)

/* Also says what it was. */
#define CHECK_EQ(a, b)                                                                      \
	do {                                                                                \
		long long a_ = (long long)(a), b_ = (long long)(b);                         \
		if (a_ != b_) {                                                             \
			fprintf(stderr, "%s:%d: %s: %s is %lld, not %s = %lld\n", __FILE__, \
				__LINE__, __func__, #a, a_, #b, b_);                        \
			exit(1);                                                            \
		}                                                                           \
	} while (0)

struct test_case {
	const char *name;
	void (*fn)(void);
};

static inline int run_cases(const struct test_case *cases, size_t num, int argc, char **argv)
{
	int left = argc - 1;

	for (size_t i = 0; i < num; i++) {
		bool wanted = argc < 2;

		for (int j = 1; j < argc; j++)
			if (!strcmp(argv[j], cases[i].name)) {
				wanted = true;
				left--;
			}
		if (wanted) {
			cases[i].fn();
			printf("ok %s\n", cases[i].name);
		}
	}
	if (left)
		fprintf(stderr, "%s: no such case among the arguments\n", argv[0]);
	return left ? 2 : 0;
}

/* A node writes down what it got, in its priv. */
struct seen {
	unsigned int num;		/* packets */
	const struct port *port;	/* of the last */
	uint32_t psn;
	uint8_t vl, hops, opcode;
	uint32_t psns[4096];		/* of each, for the first ones */
	unsigned int events, num_events;
};

static inline void seen_recv(struct port *port, struct packet *pkt)
{
	struct seen *seen = port->node->priv;
	const struct bth *bth = packet_bth(pkt);

	seen->port = port;
	seen->vl = pkt->vl;
	seen->hops = pkt->hops;
	if (bth) {
		seen->psn = be32toh(bth->psn) & BTH_PSN_MASK;
		seen->opcode = bth->opcode;
	}
	if (seen->num < sizeof(seen->psns) / sizeof(seen->psns[0]))
		seen->psns[seen->num] = seen->psn;
	seen->num++;
}

static inline void seen_event(struct port *port, unsigned int events)
{
	struct seen *seen = port->node->priv;

	seen->events |= events;
	seen->num_events++;
}

static inline void seen_free(struct node *node)
{
	free(node->priv);
}

static const struct node_ops seen_ops = {
	.recv = seen_recv,
	.port_event = seen_event,
	.free = seen_free,
};

static inline struct fabric *test_fabric(void)
{
	struct ibfs *ibfs = calloc(1, sizeof(*ibfs));
	struct fabric *fabric;

	ibfs->loop = ev_default_loop(0);
	fabric = fabric_new(ibfs, &seen_ops);
	ibfs->fabric = fabric;
	return fabric;
}

static inline void test_free(struct fabric *fabric)
{
	struct ibfs *ibfs = fabric->ibfs;

	fabric_free(fabric);
	free(ibfs);
}

static inline struct node *test_node(struct fabric *fabric, enum node_type type, const char *id,
				     unsigned int num_ports)
{
	struct node *node = node_new(fabric, type, id, num_ports, 0);

	CHECK(node);
	node->priv = calloc(1, sizeof(struct seen));
	return node;
}

static inline struct seen *seen_of(struct node *node)
{
	return node->priv;
}

static inline void test_link(struct node *a, unsigned int a_port, struct node *b, unsigned int b_port)
{
	CHECK(link_new(&a->ports[a_port], &b->ports[b_port]));
}

/* Both ends of all links ACTIVE. */
static inline void test_activate(struct fabric *fabric)
{
	for (unsigned int i = 0; i < fabric->num_links; i++) {
		struct link *link = fabric->links[i];
		struct port *ends[] = { link ? link->a : NULL, link ? link->b : NULL };

		for (int j = 0; link && j < 2; j++) {
			CHECK(!port_set_state(ends[j], PORT_ARMED));
			CHECK(!port_set_state(ends[j], PORT_ACTIVE));
		}
	}
}

/* A packet of an opcode with extended headers of ext_len bytes (zeros) and a payload by reference. */
static inline void make_packet(struct packet *pkt, uint16_t slid, uint16_t dlid, uint8_t opcode,
			       unsigned int ext_len, void *payload, uint32_t len)
{
	struct lrh *lrh;
	struct bth *bth;

	packet_init(pkt);
	memset(packet_push(pkt, ext_len), 0, ext_len);
	bth = packet_push(pkt, sizeof(*bth));
	*bth = (struct bth){ .opcode = opcode, .pkey = htobe16(PKEY_DEFAULT) };
	lrh = packet_push(pkt, sizeof(*lrh));
	*lrh = (struct lrh){ .sl_lnh = LNH_BTH, .dlid = htobe16(dlid), .slid = htobe16(slid) };
	if (len) {
		pkt->frags[0] = (struct packet_frag){ .base = payload, .len = len };
		pkt->nr_frags = 1;
		pkt->data_len = len;
	}
}

/* A datagram of 8 bytes; SL 0. */
static inline void make_datagram(struct packet *pkt, uint16_t slid, uint16_t dlid)
{
	static uint8_t payload[8] = "datagram";

	make_packet(pkt, slid, dlid, BTH_OPCODE_UD_SEND_ONLY, sizeof(struct deth), payload,
		    sizeof(payload));
}

static inline void set_psn(struct packet *pkt, uint32_t psn)
{
	packet_bth(pkt)->psn = htobe32(psn);
}

#endif
