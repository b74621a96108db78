/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets and MADs that no sane sender makes, from a seeded generator, into
 * every node's QP0 and QP1: nothing may crash (run it sanitized), each answer
 * is a response, and the fabric is still of one piece afterwards.
 *
 * usage: mad_fuzz [ROUNDS [SEED]]
 */
#include "chain.h"

static uint64_t seed = 1;

static uint32_t rnd(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return seed >> 33;
}

static uint32_t below(uint32_t num)
{
	return rnd() % num;
}

/* Mostly what means something, so that it gets past the first check. */
static uint8_t pick(const uint8_t *values, unsigned int num)
{
	return below(8) ? values[below(num)] : rnd();
}

static void fill_random(uint8_t *at, unsigned int len)
{
	unsigned int kind = below(3);

	for (unsigned int i = 0; i < len; i++)
		at[i] = kind == 0 ? 0 : kind == 1 ? below(8) : rnd();
}

static void fill_mad(uint8_t *mad, bool qp0)
{
	static const uint8_t smp_class[] = { 0x01, 0x81 };
	static const uint8_t gmp_class[] = { 0x04, 0x21, 0x0a, 0x03 };
	static const uint8_t methods[] = { 1, 2, 1, 2, 3, 5, 7, 0x81 };
	static const uint8_t attrs[] = { 0x01, 0x02, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16,
					 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1d, 0x1e, 0x20, 0x31 };
	struct smp *smp = (struct smp *)mad;

	fill_random(mad, MAD_SIZE);
	smp->base_version = below(16) ? 1 : rnd();
	smp->mgmt_class = qp0 ? pick(smp_class, 2) : pick(gmp_class, 4);
	smp->class_version = below(16) ? smp->mgmt_class == MAD_CLASS_CC ? 2 : 1 : rnd();
	smp->method = pick(methods, sizeof(methods));
	smp->attr_id = htobe16(below(20) ? pick(attrs, sizeof(attrs)) : rnd());
	smp->attr_mod = below(3) ? htobe32(below(6) | below(6) << 8 | below(4) << 16) :
				   htobe32(rnd());
	if (!qp0)
		return;
	smp->status = below(2) ? 0 : htobe16(rnd());
	smp->mkey = below(4) ? 0 : htobe64(1);
	smp->hop_cnt = below(4) ? below(5) : rnd();
	smp->hop_ptr = below(4) ? below(6) : rnd();
	smp->dr_slid = below(2) ? htobe16(LID_PERMISSIVE) : htobe16(below(8));
	smp->dr_dlid = below(2) ? htobe16(LID_PERMISSIVE) : htobe16(below(8));
}

/* Set(PortInfo) of what is there, but for a byte. */
static void almost_right(uint8_t *mad, struct port *port)
{
	struct smp *smp = (struct smp *)mad;
	uint8_t hop_ptr = smp->hop_ptr;

	smp->base_version = smp->class_version = 1;
	smp->method = UMAD_METHOD_GET;
	smp->attr_id = htobe16(UMAD_SM_ATTR_PORT_INFO);
	smp->attr_mod = htobe32(port->num);
	sma_process(port, mad, 1);
	smp->method = UMAD_METHOD_SET;
	smp->status = 0;
	smp->hop_ptr = hop_ptr;
	smp->data[below(UMAD_LEN_SMP_DATA)] = rnd();
}

/* A packet with proper headers around it, or, now and then, hardly any. */
static void fill_packet(struct packet *pkt, struct port *port)
{
	bool qp0 = below(2);
	uint8_t *mad;
	struct deth *deth;
	struct bth *bth;
	struct lrh *lrh;
	struct grh *grh = NULL;

	packet_init(pkt);
	mad = packet_put(pkt, MAD_SIZE);
	fill_mad(mad, qp0);
	if (qp0 && !below(4))
		almost_right(mad, port);
	deth = packet_push(pkt, sizeof(*deth));
	*deth = (struct deth){ htobe32(qp0 ? 0 : QP1_QKEY), htobe32(!qp0) };
	bth = packet_push(pkt, sizeof(*bth));
	*bth = (struct bth){ .opcode = BTH_OPCODE_UD_SEND_ONLY, .dqpn = htobe32(!qp0),
			     .pkey = htobe16(below(9) ? PKEY_DEFAULT : rnd()) };
	if (!below(5)) {
		grh = packet_push(pkt, sizeof(*grh));
		fill_random((uint8_t *)grh, sizeof(*grh));
		grh->nxthdr = 0x1b;
	}
	lrh = packet_push(pkt, sizeof(*lrh));
	*lrh = (struct lrh){ .sl_lnh = (grh ? LNH_GRH : LNH_BTH) | below(16) << 4,
			     .slid = htobe16(below(7)), .dlid = htobe16(below(7)) };
	pkt->vl = qp0 ? 15 : 0;
	if (!below(10))
		pkt->len = below(pkt->len + 1);
	if (!below(10))
		lrh->sl_lnh = rnd();
}

static struct port *random_port(void)
{
	for (;;) {
		struct node *node = t.fabric->nodes[below(t.fabric->num_nodes)];
		struct port *port = &node->ports[below(node->num_ports + 1)];

		if (port->num || node->type == NODE_SWITCH)
			return port;
	}
}

static void one_round(void)
{
	struct port *port = random_port();
	struct packet pkt;

	fill_packet(&pkt, port);
	t.num_got = 0;
	switch (below(4)) {
	case 0:
		smi_send(port_end(port), &pkt);
		break;
	case 1:
		smi_recv(port, &pkt);
		break;
	case 2:
		gsi_recv(port_end(port), &pkt);
		break;
	default:
		if (port->link && pkt.len >= sizeof(struct lrh))
			port_xmit(port, &pkt);
		break;
	}
	if (!below(64))
		ev_run(t.ibfs.loop, EVRUN_NOWAIT);
}

/* As an administrator would put it right. */
static void repair(struct port *port)
{
	CHECK(port->state >= PORT_DOWN && port->state <= PORT_ACTIVE);
	CHECK(!(port->width_enabled & ~port->width_supported) && port->width_enabled);
	CHECK(!(port->speed_enabled & ~port->speed_supported) && port->speed_enabled);
	CHECK(port->neighbor_mtu >= 1 && port->neighbor_mtu <= port->mtu_cap);
	CHECK(port->oper_vls >= 1 && port->oper_vls <= port->vl_cap);
	port->width_enabled = port->width_supported;
	port->speed_enabled = port->speed_supported;
	port->neighbor_mtu = port->mtu_cap;
	port->mkey = 0;
	if (port->num && port->phys_state != PHYS_LINKUP)
		port_set_phys(port, PHYS_POLLING);
}

/* Whatever was set: every node can still be reached once its ports are let. */
static void check_whole(void)
{
	static const char *const hops[] = { "", "1", "12", "122", "1222" };

	for (unsigned int i = 0; i < t.fabric->num_nodes; i++) {
		struct node *node = t.fabric->nodes[i];

		for (unsigned int num = node->type != NODE_SWITCH; num <= node->num_ports; num++)
			repair(&node->ports[num]);
	}
	for (unsigned int i = 0; i < sizeof(hops) / sizeof(hops[0]); i++) {
		struct packet pkt;

		make(&pkt, UMAD_METHOD_GET, UMAD_SM_ATTR_NODE_INFO, 0, hops[i], LID_PERMISSIVE);
		t.num_got = 0;
		CHECK_EQ(smi_send(&t.a->ports[1], &pkt), 0);
		CHECK_EQ(t.num_got, 1);
		CHECK_EQ(t.got[0].method, UMAD_METHOD_GET_RESP);
	}
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 200000;

	t.file = "mad_fuzz.c";
	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	setup();
	bring_up();
	t.s[1]->vendor_id = 0x2c9;
	for (unsigned long i = 0; i < rounds; i++) {
		/* Ports come back from what was done to them. */
		if (i % 1000 == 0) {
			check_whole();
			bring_up();
		}
		one_round();
	}
	check_whole();
	teardown();
	return t.failed ? 1 : 0;
}
