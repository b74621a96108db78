/* SPDX-License-Identifier: BSD-2-Clause */
/* Traps and notices of the SMA, through a chain of three switches. */
#include "hca/sma.h"
#include "chain.h"

static void repress(const struct smp *trap, uint16_t dlid)
{
	struct packet pkt;
	struct smp *smp = make(&pkt, UMAD_METHOD_TRAP_REPRESS, UMAD_ATTR_NOTICE, 0, NULL, dlid);

	smp->tid = trap->tid;
	memcpy(smp->data, trap->data, sizeof(smp->data));
	send_lid(&pkt, dlid);
}

static unsigned int trap_number(const struct smp *smp)
{
	const struct smp_notice *notice = (const struct smp_notice *)smp->data;

	return smp->method == UMAD_METHOD_TRAP ? be16toh(notice->trap) : 0;
}

/* Long enough for what is due at once. */
static void run_briefly(void)
{
	for (int i = 0; i < 20; i++) {
		ev_run(t.ibfs.loop, EVRUN_NOWAIT);
		ev_sleep(0.002);
	}
}

static void test_trap_128(void)
{
	const struct smp_notice *notice = (const struct smp_notice *)t.got[0].data;
	struct smp first;

	bring_up();
	t.s[2]->ports[0].subnet_timeout = 0;	/* repeat at the shortest interval */
	t.num_got = 0;
	link_set_down(t.links[3], true);
	CHECK_EQ(t.num_got, 0);			/* never from inside the event */
	run_until(3);
	CHECK_EQ(t.num_got, 3);			/* repeated, under one TID */
	CHECK_EQ(trap_number(&t.got[0]), 128);
	CHECK_EQ(be16toh(notice->link_state.lid), 4);
	CHECK_EQ(be16toh(notice->issuer_lid), 4);
	CHECK_EQ(t.got_slid[0], 4);
	CHECK_EQ(t.got[0].tid, t.got[2].tid);
	first = t.got[0];
	repress(&first, 4);
	t.num_got = 0;
	for (int i = 0; i < 100; i++) {
		ev_run(t.ibfs.loop, EVRUN_NOWAIT);
		ev_sleep(0.003);
	}
	CHECK_EQ(t.num_got, 0);			/* until it is repressed */
	/* Without a manager there is nobody to tell. */
	t.s[2]->ports[0].sm_lid = 0;
	link_set_down(t.links[3], false);
	run_briefly();
	CHECK_EQ(t.num_got, 0);
}

static void test_trap_limit(void)
{
	bring_up();
	t.s[2]->ports[0].subnet_timeout = 0;
	t.num_got = 0;
	link_set_down(t.links[3], true);
	/* Ten sends at 0.1 s, and then the loop has nothing to wait for. */
	ev_run(t.ibfs.loop, 0);
	CHECK_EQ(t.num_got, 10);
}

static void test_trap_144(void)
{
	const struct smp_notice *notice = (const struct smp_notice *)t.got[0].data;

	bring_up();
	t.b->ports[1].subnet_timeout = 31;
	t.num_got = 0;
	t.b->ports[1].cap_mask |= CAP_IS_SM;
	port_event(&t.b->ports[1], PORT_EV_CAPMASK);
	sma_desc_changed(t.b);
	run_until(1);
	CHECK_EQ(t.num_got, 1);			/* both changes in one trap */
	CHECK_EQ(trap_number(&t.got[0]), 144);
	CHECK_EQ(be16toh(notice->local.lid), 5);
	CHECK_EQ(be32toh(notice->local.cap_mask), t.b->ports[1].cap_mask);
	CHECK_EQ(be16toh(notice->local.changes), CHANGE_NODE_DESC);
	CHECK_EQ(notice->local.other_changes, 1);
}

static void test_other_traps(void)
{
	struct smp_notice *notice = (struct smp_notice *)t.got[0].data;
	struct port *port = &t.b->ports[1];
	uint8_t data[64];

	bring_up();
	port->subnet_timeout = 31;
	t.num_got = 0;
	sma_port_fault(&t.s[1]->ports[2], FAULT_LINK_INTEGRITY);
	run_until(1);
	CHECK_EQ(trap_number(&t.got[0]), 129);
	CHECK_EQ(be16toh(notice->threshold.lid), 3);
	CHECK_EQ(notice->threshold.port, 2);
	CHECK_EQ(t.s[1]->ports[2].cnt.local_link_integrity_errors, 1);
	t.num_got = 0;
	sma_port_fault(port, FAULT_OVERRUN);
	run_until(1);
	CHECK_EQ(trap_number(&t.got[0]), 130);
	t.num_got = 0;
	sma_port_fault(port, FAULT_WATCHDOG);
	run_until(1);
	CHECK_EQ(trap_number(&t.got[0]), 131);

	/* A wrong M_Key: 256, with the directed route's return path. */
	port->mkey = 1;
	request(UMAD_METHOD_SET, UMAD_SM_ATTR_PORT_INFO, 1, "1222", NULL, 77);
	t.num_got = 0;
	run_until(1);
	CHECK_EQ(trap_number(&t.got[0]), 256);
	CHECK_EQ(be64toh(notice->mkey.mkey), 77);
	CHECK_EQ(be16toh(notice->mkey.attr_id), UMAD_SM_ATTR_PORT_INFO);
	CHECK_EQ(notice->mkey.method, UMAD_METHOD_SET);
	CHECK_EQ(notice->mkey.dr_hops, 0x84);

	/* Notices queue up, and Set takes the oldest. */
	CHECK_EQ(status(request(UMAD_METHOD_GET, UMAD_ATTR_NOTICE, 0, "1222", NULL, 1)), MAD_OK);
	CHECK_EQ(be16toh(notice->trap), 130);
	CHECK_EQ(be16toh(notice->toggle_count), 3);
	memcpy(data, t.got[0].data, sizeof(data));
	CHECK_EQ(status(request(UMAD_METHOD_SET, UMAD_ATTR_NOTICE, 0, "1222", data, 1)), MAD_OK);
	CHECK_EQ(be16toh(notice->trap), 131);
	CHECK_EQ(be16toh(notice->toggle_count), 0x8002);
}

/* A MAD from a's QP 7 to b's QP 1. */
static void send_gmp(uint16_t pkey, uint32_t qkey)
{
	struct packet pkt;

	make(&pkt, UMAD_METHOD_GET, UMAD_ATTR_CLASS_PORT_INFO, 0, NULL, 5);
	packet_bth(&pkt)->pkey = htobe16(pkey);
	packet_bth(&pkt)->dqpn = htobe32(1);
	*(struct deth *)(packet_bth(&pkt) + 1) = (struct deth){ htobe32(qkey), htobe32(7) };
	pkt.vl = 0;
	CHECK_EQ(port_xmit(&t.a->ports[1], &pkt), 0);
}

static void test_key_traps(void)
{
	const struct smp_notice *notice = (const struct smp_notice *)t.got[0].data;
	struct port *port = &t.b->ports[1], *in = &t.s[1]->ports[1];

	bring_up();
	port->subnet_timeout = t.s[1]->ports[0].subnet_timeout = 31;
	t.num_got = 0;
	send_gmp(0x8009, QP1_QKEY);
	run_until(1);
	CHECK_EQ(trap_number(&t.got[0]), 257);
	CHECK_EQ(port->pkey_violations, 1);
	CHECK_EQ(be16toh(notice->key.lid1), 1);
	CHECK_EQ(be16toh(notice->key.lid2), 5);
	CHECK_EQ(be32toh(notice->key.key), 0x8009);
	CHECK_EQ(be32toh(notice->key.sl_qp1), 7);
	CHECK_EQ(be32toh(notice->key.qp2), 1);
	t.num_got = 0;
	send_gmp(PKEY_DEFAULT, 0x1234);
	run_until(1);
	CHECK_EQ(trap_number(&t.got[0]), 258);
	CHECK_EQ(port->qkey_violations, 1);
	CHECK_EQ(be32toh(notice->key.key), 0x1234);

	/* On the way a switch enforces its partitions: two packets, one trap. */
	t.num_got = 0;
	in->part_enforce = PART_ENFORCE_IN;
	send_gmp(0x8009, QP1_QKEY);
	send_gmp(0x8009, QP1_QKEY);
	run_until(1);
	send_gmp(0x8009, QP1_QKEY);
	run_briefly();
	CHECK_EQ(t.num_got, 1);
	CHECK_EQ(trap_number(&t.got[0]), 259);
	CHECK_EQ(in->cnt.rcv_constraint_errors, 3);
	CHECK_EQ(port->pkey_violations, 1);
	CHECK_EQ(be16toh(notice->switch_key.valid), 0x3f);
	CHECK_EQ(be16toh(notice->switch_key.lid1), 1);
	CHECK_EQ(be16toh(notice->switch_key.lid2), 5);
	CHECK_EQ(be16toh(notice->switch_key.pkey), 0x8009);
	CHECK_EQ(be32toh(notice->switch_key.sl_qp1), 7);
	CHECK_EQ(be32toh(notice->switch_key.qp2), 1);
	CHECK_EQ(be16toh(notice->switch_key.switch_lid), 3);
	CHECK_EQ(notice->switch_key.port, 1);
	CHECK_EQ(t.got_slid[0], 3);
}

static const struct test tests[] = {
	{ "trap 128", test_trap_128, false },
	{ "trap limit", test_trap_limit, false },
	{ "trap 144", test_trap_144, false },
	{ "other traps", test_other_traps, false },
	{ "violated keys", test_key_traps, false },
};

int main(void)
{
	return run_tests("traps.c", tests, sizeof(tests) / sizeof(tests[0]));
}
