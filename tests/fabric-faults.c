/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Imperfect cables: the same seed gives the same faults, each fault does what
 * it says, and what a cable holds is lost with it.
 */
#include "fabric-test.h"

#define PACKETS 2000

struct bed {
	struct fabric *fabric;
	struct node *a, *b;
	struct link *link;
};

static struct bed new_bed(const struct fault_conf *conf)
{
	struct bed bed = { .fabric = test_fabric() };

	bed.a = test_node(bed.fabric, NODE_CA, "A", 1);
	bed.b = test_node(bed.fabric, NODE_CA, "B", 1);
	bed.a->ports[1].lid = 1;
	bed.b->ports[1].lid = 2;
	bed.link = link_new(&bed.a->ports[1], &bed.b->ports[1]);
	test_activate(bed.fabric);
	CHECK_EQ(link_set_faults(bed.link, conf), 0);
	return bed;
}

static void send_from(struct node *node, uint16_t dlid, uint32_t psn)
{
	struct packet pkt;

	make_datagram(&pkt, node->ports[1].lid, dlid);
	set_psn(&pkt, psn);
	CHECK_EQ(port_xmit(&node->ports[1], &pkt), 0);
	CHECK(!pkt.bad_crc);
}

static void send_many(struct bed *bed, unsigned int num)
{
	for (unsigned int i = 0; i < num; i++)
		send_from(bed->a, 2, i);
}

/* Let the cable deliver what it holds. */
static void wait_for(struct bed *bed, unsigned int num)
{
	while (seen_of(bed->b)->num < num)
		ev_run(bed->fabric->ibfs->loop, EVRUN_ONCE);
}

static void test_replay(void)
{
	static struct seen first, other;
	struct fault_conf conf = {
		.drop = 0.1, .corrupt = 0.1, .duplicate = 0.1, .seed = 42,
	};
	struct bed bed = new_bed(&conf);
	struct fault_conf got;

	link_get_faults(bed.link, &got);
	CHECK(!memcmp(&got, &conf, sizeof(conf)));
	send_many(&bed, PACKETS);
	first = *seen_of(bed.b);
	CHECK(first.num > PACKETS / 2 && first.num < PACKETS);
	/* The other direction draws from its own numbers. */
	for (unsigned int i = 0; i < PACKETS; i++)
		send_from(bed.b, 1, i);
	other = *seen_of(bed.a);
	CHECK(memcmp(first.psns, other.psns, sizeof(first.psns)));
	test_free(bed.fabric);

	/* Again, both directions mixed: the same packets suffer. */
	bed = new_bed(&conf);
	for (unsigned int i = 0; i < PACKETS; i++) {
		send_from(bed.b, 1, i);
		send_from(bed.a, 2, i);
	}
	CHECK_EQ(seen_of(bed.b)->num, first.num);
	CHECK(!memcmp(seen_of(bed.b)->psns, first.psns, sizeof(first.psns)));
	CHECK(!memcmp(seen_of(bed.a)->psns, other.psns, sizeof(other.psns)));
	/* Set again, it starts anew. */
	memset(seen_of(bed.b), 0, sizeof(struct seen));
	CHECK_EQ(link_set_faults(bed.link, &conf), 0);
	send_many(&bed, PACKETS);
	CHECK(!memcmp(seen_of(bed.b)->psns, first.psns, sizeof(first.psns)));
	/* Another seed, other packets. */
	conf.seed++;
	memset(seen_of(bed.b), 0, sizeof(struct seen));
	CHECK_EQ(link_set_faults(bed.link, &conf), 0);
	send_many(&bed, PACKETS);
	CHECK(memcmp(seen_of(bed.b)->psns, first.psns, sizeof(first.psns)));
	test_free(bed.fabric);
}

static void test_drop(void)
{
	struct bed bed = new_bed(&(struct fault_conf){ .drop = 1 });

	send_many(&bed, 10);
	CHECK_EQ(seen_of(bed.b)->num, 0);
	CHECK_EQ(bed.a->ports[1].cnt.xmit_pkts, 10);
	CHECK_EQ(bed.b->ports[1].cnt.rcv_pkts, 0);
	/* Perfect again. */
	CHECK_EQ(link_set_faults(bed.link, &(struct fault_conf){ .seed = 5 }), 0);
	CHECK(!bed.link->faults && !bed.a->ports[1].faults);
	send_many(&bed, 10);
	CHECK_EQ(seen_of(bed.b)->num, 10);
	test_free(bed.fabric);
}

static void test_rate(void)
{
	struct bed bed = new_bed(&(struct fault_conf){ .drop = 0.25, .seed = 7 });

	send_many(&bed, 40000);
	CHECK(seen_of(bed.b)->num > 29600 && seen_of(bed.b)->num < 30400);
	test_free(bed.fabric);
}

static void test_corrupt(void)
{
	struct bed bed = new_bed(&(struct fault_conf){ .corrupt = 1 });

	send_many(&bed, 10);
	CHECK_EQ(seen_of(bed.b)->num, 0);
	CHECK_EQ(bed.b->ports[1].cnt.rcv_pkts, 10);
	CHECK_EQ(bed.b->ports[1].cnt.rcv_errors, 10);
	CHECK_EQ(bed.b->ports[1].cnt.symbol_errors, 10);
	/* The ninth in a row was more than LocalPhyErrors allows. */
	CHECK(seen_of(bed.b)->events & PORT_EV_INTEGRITY);
	test_free(bed.fabric);
}

/* Good packets make up for spoilt ones: one in four stays below the threshold, three don't. */
static void test_integrity(void)
{
	struct bed bed = new_bed(&(struct fault_conf){ .corrupt = 0.25, .seed = 11 });

	bed.b->ports[1].phy_errors = 15;
	send_many(&bed, PACKETS);
	CHECK(!(seen_of(bed.b)->events & PORT_EV_INTEGRITY));
	CHECK_EQ(link_set_faults(bed.link, &(struct fault_conf){ .corrupt = 0.75, .seed = 11 }), 0);
	send_many(&bed, PACKETS);
	CHECK(seen_of(bed.b)->events & PORT_EV_INTEGRITY);
	test_free(bed.fabric);
}

static void test_duplicate(void)
{
	struct bed bed = new_bed(&(struct fault_conf){ .duplicate = 1 });

	send_many(&bed, 10);
	CHECK_EQ(seen_of(bed.b)->num, 20);
	for (unsigned int i = 0; i < 20; i++)
		CHECK_EQ(seen_of(bed.b)->psns[i], i / 2);
	test_free(bed.fabric);
}

static void test_reorder(void)
{
	struct bed bed = new_bed(&(struct fault_conf){ .reorder = 1 });

	/* Every other packet waits for its follower; the last comes although none follows. */
	send_many(&bed, 5);
	CHECK_EQ(seen_of(bed.b)->num, 4);
	CHECK_EQ(seen_of(bed.b)->psns[0], 1);
	CHECK_EQ(seen_of(bed.b)->psns[1], 0);
	CHECK_EQ(seen_of(bed.b)->psns[2], 3);
	CHECK_EQ(seen_of(bed.b)->psns[3], 2);
	wait_for(&bed, 5);
	CHECK_EQ(seen_of(bed.b)->psns[4], 4);
	test_free(bed.fabric);
}

static void test_delay(void)
{
	struct bed bed = new_bed(&(struct fault_conf){ .delay = 0.02, .jitter = 0.02, .seed = 3 });
	double start = ev_time();

	/* Late, and in order whatever the jitter. */
	send_many(&bed, 100);
	CHECK_EQ(seen_of(bed.b)->num, 0);
	wait_for(&bed, 100);
	CHECK(ev_time() - start >= 0.02);
	for (unsigned int i = 0; i < 100; i++)
		CHECK_EQ(seen_of(bed.b)->psns[i], i);
	test_free(bed.fabric);
}

static void test_delayed_reorder(void)
{
	struct bed bed = new_bed(&(struct fault_conf){ .delay = 0.01, .reorder = 1 });

	send_many(&bed, 4);
	wait_for(&bed, 4);
	CHECK_EQ(seen_of(bed.b)->psns[0], 1);
	CHECK_EQ(seen_of(bed.b)->psns[1], 0);
	CHECK_EQ(seen_of(bed.b)->psns[2], 3);
	CHECK_EQ(seen_of(bed.b)->psns[3], 2);
	test_free(bed.fabric);
}

/* Run the loop past the time when held packets would have come. */
static void past_cb(struct ev_loop *loop, ev_timer *timer, int revents)
{
	(void)revents;
	ev_timer_stop(loop, timer);
	ev_break(loop, EVBREAK_ONE);
}

static void run_for(struct bed *bed, double seconds)
{
	struct ev_loop *loop = bed->fabric->ibfs->loop;
	ev_timer past;

	ev_now_update(loop);
	ev_timer_init(&past, past_cb, seconds, 0);
	ev_timer_start(loop, &past);
	ev_run(loop, 0);
}

static void test_flush(void)
{
	struct fault_conf conf = { .delay = 0.02 };
	struct bed bed = new_bed(&conf);

	send_many(&bed, 10);
	link_set_down(bed.link, true);
	link_set_down(bed.link, false);
	run_for(&bed, 0.05);
	CHECK_EQ(seen_of(bed.b)->num, 0);
	/* The fault itself stays. */
	test_activate(bed.fabric);
	send_many(&bed, 10);
	CHECK_EQ(seen_of(bed.b)->num, 0);
	wait_for(&bed, 10);
	/* Removed with packets inside, and a node likewise. */
	send_many(&bed, 10);
	link_remove(bed.link);
	CHECK(!bed.a->ports[1].faults);
	bed.link = link_new(&bed.b->ports[1], &bed.a->ports[1]);
	CHECK_EQ(link_set_faults(bed.link, &conf), 0);
	test_activate(bed.fabric);
	send_many(&bed, 10);
	node_remove(bed.a);
	run_for(&bed, 0.05);
	CHECK_EQ(seen_of(bed.b)->num, 10);
	test_free(bed.fabric);
}

/* The receiver of a packet takes the link down: nothing of what follows may use it. */
static void down_recv(struct port *port, struct packet *pkt)
{
	seen_recv(port, pkt);
	port_set_state(port, PORT_DOWN);
}

static void test_down_inside(void)
{
	static const struct node_ops ops = {
		.recv = down_recv, .port_event = seen_event, .free = seen_free,
	};
	struct bed bed = new_bed(&(struct fault_conf){ .duplicate = 1, .reorder = 1 });

	bed.b->ops = &ops;
	send_from(bed.a, 2, 0);
	send_from(bed.a, 2, 1);
	/* The first was held and went with the link; the second's double came too late for it. */
	CHECK_EQ(seen_of(bed.b)->num, 1);
	CHECK_EQ(seen_of(bed.b)->psn, 1);
	CHECK_EQ(link_set_faults(bed.link, &(struct fault_conf){ .delay = 0.01 }), 0);
	test_activate(bed.fabric);
	send_many(&bed, 10);
	wait_for(&bed, 2);
	run_for(&bed, 0.03);
	CHECK_EQ(seen_of(bed.b)->num, 2);
	test_free(bed.fabric);
}

/* Packets of many segments are hit segment by segment. */
static void test_gso(void)
{
	static uint8_t payload[64 * 256];
	struct bed bed = new_bed(&(struct fault_conf){ .drop = 0.5, .seed = 1 });
	struct seen *seen = seen_of(bed.b);
	struct packet pkt;

	make_packet(&pkt, 1, 2, 4, 0, payload, sizeof(payload));
	pkt.gso_size = 256;
	pkt.gso_segs = 64;
	CHECK_EQ(port_xmit(&bed.a->ports[1], &pkt), 0);
	CHECK(seen->num > 16 && seen->num < 48);
	for (unsigned int i = 1; i < seen->num; i++)
		CHECK(seen->psns[i] > seen->psns[i - 1]);
	CHECK_EQ(bed.a->ports[1].cnt.xmit_pkts, 64);
	CHECK_EQ(bed.b->ports[1].cnt.rcv_pkts, seen->num);
	CHECK_EQ(bed.b->ports[1].cnt.rcv_data, seen->num * (24 + 256) / 4);
	test_free(bed.fabric);
}

/* A cable that holds too much loses the rest, and its port counts it. */
static void test_limit(void)
{
	struct bed bed = new_bed(&(struct fault_conf){ .delay = 0.05 });

	send_many(&bed, 5000);
	CHECK_EQ(bed.a->ports[1].cnt.xmit_discards, 5000 - 4096);
	wait_for(&bed, 4096);
	test_free(bed.fabric);
}

static void test_refused(void)
{
	static const struct fault_conf bad[] = {
		{ .drop = -0.1 }, { .drop = 1.1 }, { .corrupt = 2 }, { .duplicate = -1 },
		{ .reorder = 1.5 }, { .delay = -1 }, { .jitter = 1e9 },
		{ .drop = __builtin_nan("") }, { .delay = __builtin_inf() },
	};
	struct fault_conf conf = { .drop = 0.5, .seed = 9 }, got;
	struct bed bed = new_bed(&conf);

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_EQ(link_set_faults(bed.link, &bad[i]), -EINVAL);
	link_get_faults(bed.link, &got);
	CHECK(!memcmp(&got, &conf, sizeof(conf)));
	test_free(bed.fabric);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ "replay", test_replay },
		{ "drop", test_drop },
		{ "rate", test_rate },
		{ "corrupt", test_corrupt },
		{ "integrity", test_integrity },
		{ "duplicate", test_duplicate },
		{ "reorder", test_reorder },
		{ "delay", test_delay },
		{ "delayed-reorder", test_delayed_reorder },
		{ "flush", test_flush },
		{ "down-inside", test_down_inside },
		{ "gso", test_gso },
		{ "limit", test_limit },
		{ "refused", test_refused },
	};

	return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
