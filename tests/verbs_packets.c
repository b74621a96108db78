/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of anybody: anything that a port can receive, most of it nearly right,
 * made from a seed (verbs_packets SEED PACKETS). Whatever comes, memory changes
 * only where a key, its domain, bounds and permission let it, nothing else is
 * ever sent, and queue pairs can be used again.
 */
#include "hca/req.h"
#include "verbs_test.h"

#define SLICE	(SIDE_MEM / 16)
#define SECRET	0xee		/* what may not be read from afar */
#define OPEN	0x11		/* what may */
#define QPS	4

/* What each slice of b's memory is for; the rest is in no region. */
enum slice { READ, WRITE, ATOMIC, LOCAL, OTHER_PD, GONE, OTHER_QP, RECV, WINDOW, SLICES };
static const unsigned int slice_access[SLICES] = {
	[READ] = IBV_ACCESS_REMOTE_READ, [WRITE] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	[ATOMIC] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	[LOCAL] = IBV_ACCESS_LOCAL_WRITE, [OTHER_PD] = ALL_ACCESS, [GONE] = ALL_ACCESS,
	[OTHER_QP] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, [RECV] = IBV_ACCESS_LOCAL_WRITE,
	[WINDOW] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
};
#define WINDOW_LEN 4096

static struct side a, b, qps[QPS], friend;	/* friend: a QP that has a window of its own */
static struct ibfs_pd *other_pd;
static struct ibfs_mr *mrs[SLICES];
static struct ibfs_mw *other_mw, *mw;
static struct ibfs_srq *srq;
static struct ibfs_xrcd *xrcd;
static uint32_t keys[SLICES], srqn;
static uint64_t rng;
static struct hca_engine spy;
static unsigned int leaks, reads, accepted;
static const struct hca_engine *engine;

static uint32_t rnd(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (rng >> 11) % n;
}

/* What reaches a: read responses show only what may be read. */
static void spy_recv(struct hca *hca, struct port *port, struct packet *pkt)
{
	struct rx rx;
	uint8_t *data;

	(void)hca;
	if (!rx_parse(&rx, port, pkt) || rx.raw || rx.op->kind != KIND_READ_RESP)
		return;
	data = malloc(rx.len + 1);
	packet_gather(pkt, rx.off, data, rx.len);
	for (uint32_t i = 0; i < rx.len; i++)
		leaks += data[i] != OPEN;
	reads += rx.len > 0;
	free(data);
}

static void bind_window(struct side *s, struct ibfs_mw *window, enum slice slice, uint64_t len, uint32_t *key)
{
	struct ibfs_mw_attr attr;
	struct ibfs_wr wr = { .opcode = IBFS_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED };

	s->ops->query_mw(window, &attr);
	wr.bind.mw_rkey = attr.rkey;
	wr.bind.rkey = (attr.rkey & ~0xffU) | ((attr.rkey + 1) & 0xff);
	wr.bind.mr_lkey = mr_key(&b, mrs[slice]);
	wr.bind.addr = slice * SLICE;
	wr.bind.length = len;
	wr.bind.access = IBV_ACCESS_REMOTE_READ;
	CHECK(!s->ops->post_send(s->qp, &wr) && expect_wc(s, IBV_WC_SUCCESS, IBFS_WC_BIND_MW));
	s->ops->query_mw(window, &attr);
	*key = attr.rkey;
}

static void make_memory(void)
{
	struct ibfs_pd *own = b.pd;

	memset(b.data, SECRET, SIDE_MEM);
	memset(b.data + READ * SLICE, OPEN, SLICE);
	memset(b.data + WINDOW * SLICE, OPEN, WINDOW_LEN);
	CHECK(!b.ops->alloc_pd(b.dev, &other_pd));
	for (enum slice i = 0; i < SLICES; i++) {
		b.pd = i == OTHER_PD ? other_pd : own;
		mrs[i] = side_reg(&b, i * SLICE, SLICE, i * SLICE, slice_access[i]);
		keys[i] = mr_key(&b, mrs[i]);
	}
	b.pd = own;
	CHECK(!b.ops->dereg_mr(mrs[GONE]));
}

/* Another QP of b on the same domain and CQ. */
static void make_qp(struct side *s, unsigned int type)
{
	*s = b;
	s->init.type = type;
	s->init.xrcd = xrcd;
	s->attr.timeout = 10;
	s->attr.retry_cnt = 1;
	side_qp(s);
}

static void connect_qp(struct side *s)
{
	if (s->init.type == IBV_QPT_UD)
		side_ud(s);
	else
		side_connect(s, &a);
}

static void make_all(void)
{
	static const unsigned int types[QPS] = {
		IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_RECV,
	};
	struct ibfs_srq_init init = { .attr = { .max_wr = 64, .max_sge = 1 }, .xrc = true };
	struct ibv_srq_attr attr;

	side_open(&a, "rxe0");
	side_open(&b, "rxe1");
	a.qpn = 0x4321;			/* nobody: the spy stands before it */
	CHECK(!b.ops->alloc_xrcd(b.dev, &xrcd));
	init.xrcd = xrcd;
	init.cq = b.cq;
	CHECK(!b.ops->create_srq(b.pd, &init, &b.client, &srq));
	b.ops->query_srq(srq, &attr, &srqn);
	make_memory();
	for (int i = 0; i < QPS; i++) {
		make_qp(&qps[i], types[i]);
		connect_qp(&qps[i]);
	}
	make_qp(&friend, IBV_QPT_RC);
	connect_qp(&friend);
	CHECK(!b.ops->alloc_mw(b.pd, IBV_MW_TYPE_2, &other_mw));
	CHECK(!b.ops->alloc_mw(b.pd, IBV_MW_TYPE_1, &mw));
	bind_window(&friend, other_mw, OTHER_QP, SLICE, &keys[OTHER_QP]);
	bind_window(&friend, mw, WINDOW, WINDOW_LEN, &keys[WINDOW]);
	engine = hca_of(a.dev)->engine;
	spy = *engine;
	spy.recv = spy_recv;
	hca_of(a.dev)->engine = &spy;
}

static void end_all(void)
{
	hca_of(a.dev)->engine = engine;
	CHECK(!b.ops->dealloc_mw(mw) && !b.ops->dealloc_mw(other_mw));
	CHECK(!b.ops->destroy_qp(friend.qp, &friend.client));
	for (int i = 0; i < QPS; i++)
		CHECK(!b.ops->destroy_qp(qps[i].qp, &qps[i].client));
	CHECK(!b.ops->destroy_srq(srq) && !b.ops->dealloc_xrcd(xrcd));
	for (enum slice i = 0; i < SLICES; i++)
		if (i != GONE)
			CHECK(!b.ops->dereg_mr(mrs[i]));
	CHECK(!b.ops->dealloc_pd(other_pd));
	pair_close(&a, &b);
}

static uint8_t *put(uint8_t *at, uint64_t value, int len)
{
	for (int i = len - 1; i >= 0; i--)
		*at++ = value >> (8 * i);
	return at;
}

/* Mostly within a slice, often at its edges. */
static uint64_t some_addr(enum slice slice)
{
	static const int edges[] = { 0, 8, -8, SLICE - 8, SLICE, SLICE - 1, WINDOW_LEN - 8, WINDOW_LEN };

	if (!rnd(50))
		return (uint64_t)rnd(UINT32_MAX) << 32 | rnd(UINT32_MAX);
	return (uint64_t)slice * SLICE + (rnd(3) ? rnd(SLICE) & ~(rnd(4) ? 7U : 0U) :
					  (uint64_t)edges[rnd(sizeof(edges) / sizeof(edges[0]))]);
}

static uint32_t some_len(void)
{
	static const uint32_t lens[] = { 0, 8, 1024, 2048, SLICE, SLICE + 1, 1U << 30, UINT32_MAX };

	return rnd(2) ? rnd(3000) : lens[rnd(8)];
}

static uint8_t some_opcode(const struct ibfs_qp *qp)
{
	if (!rnd(20))
		return rnd(256);
	if (!rnd(4) && qp->transport != OP_UD)
		return qp->transport | OP_READ_REQ;
	return (qp->transport == OP_UD ? OP_UD : !rnd(20) ? OP_VENDOR : qp->transport) | rnd(0x1e);
}

static uint32_t some_psn(const struct ibfs_qp *qp)
{
	switch (rnd(12)) {
	case 0:
		return rnd(1 << 24);
	case 1:
		return qp->resp.epsn - rnd(20);
	case 2:
		return qp->resp.epsn + rnd(20);
	case 3:
	case 4:
		return qp->req.una + rnd(3);
	default:
		return qp->resp.epsn;
	}
}

/* The extended headers that an opcode has, in their order; *len: of the message, where one says it. */
static uint8_t *put_headers(uint8_t *at, unsigned int headers, uint32_t *len)
{
	enum slice slice = rnd(SLICES), key = rnd(4) ? slice : rnd(SLICES);
	uint64_t addr = some_addr(slice);
	uint32_t rkey = rnd(30) ? keys[key] : rnd(UINT32_MAX);

	if (headers & HDR_DETH)
		at = put(put(at, rnd(10) ? 0x1234 : rnd(UINT32_MAX), 4), 0x4321, 4);
	if (headers & HDR_XRCETH)
		at = put(at, rnd(10) ? srqn : rnd(100), 4);
	if (headers & (HDR_RETH | HDR_ATOMIC))
		at = put(put(at, addr, 8), rkey, 4);
	if (headers & HDR_RETH) {
		*len = some_len();
		at = put(at, *len, 4);
	}
	if (headers & HDR_ATOMIC)
		for (int i = 0; i < (headers & HDR_MASKED ? 4 : 2); i++)
			at = put(at, rng, 8);
	if (headers & HDR_AETH)
		at = put(at, rnd(UINT32_MAX), 4);
	if (headers & HDR_ATOMICACK)
		at = put(at, rng, 8);
	if (headers & HDR_IMM)
		at = put(at, rnd(UINT32_MAX), 4);
	if (headers & HDR_IETH)
		at = put(at, rkey, 4);
	return at;
}

static void send_packet(void)
{
	static uint8_t payload[4096 + 8];
	struct side *to = &qps[rnd(QPS)];
	struct port *port = side_port(&a);
	uint8_t head[PACKET_LINEAR], *at = head;
	uint8_t opcode = some_opcode(to->qp);
	const struct opcode *op = opcode_info(opcode);
	uint32_t len = rnd(2) ? to->qp->mtu : rnd(1100);
	struct packet pkt;

	at = put(at, rnd(50) ? 0x0002 : rnd(4), 2);
	at = put(at, side_port(&b)->lid, 2);
	at = put(at, 0, 2);
	at = put(at, port->lid, 2);
	at = put(at, opcode, 1);
	at = put(at, rnd(20) ? 0 : rnd(256), 1);
	at = put(at, rnd(50) ? 0xffff : rnd(65536), 2);
	at = put(at, rnd(50) ? to->qpn : rnd(1 << 24), 4);
	at = put(at, (uint64_t)rnd(2) << 31 | (some_psn(to->qp) & PSN_MASK), 4);
	at = put_headers(at, op->headers, &len);
	if (len > to->qp->mtu || !rnd(10))
		len = to->qp->mtu;
	if (op->kind == KIND_READ || op->kind == KIND_ATOMIC)
		len = rnd(10) ? 0 : len;
	packet_init(&pkt);
	if (!rnd(50))
		at -= rnd(8);
	memcpy(packet_put(&pkt, at - head), head, at - head);
	memset(payload, rnd(100), len);
	if (len) {
		pkt.nr_frags = 1;
		pkt.frags[0] = (struct packet_frag){ payload, len };
		pkt.data_len = len;
	}
	port_xmit(port, &pkt);
}

/* What was sent from b, and is answered by anybody. */
static void send_request(void)
{
	struct ibv_sge sge = { WRITE * SLICE + 8 * rnd(1000), 8 * rnd(400), keys[WRITE] };
	struct ibfs_wr wr = { .opcode = rnd(2) ? IBFS_WR_RDMA_READ : IBFS_WR_SEND,
			      .sg_list = &sge, .num_sge = 1 };

	if (!rnd(3)) {
		wr.opcode = IBFS_WR_ATOMIC_FETCH_AND_ADD;
		sge.length = 8;
	}
	b.ops->post_send(qps[0].qp, &wr);
}

static void recycle(struct side *s)
{
	struct ibfs_wc wc[64];

	while (b.ops->poll_cq(b.cq, 64, wc) > 0)
		accepted += wc[0].status == IBV_WC_SUCCESS && wc[0].opcode >= IBFS_WC_RECV;
	if (side_state(s) == IBV_QPS_ERR || side_state(s) == IBV_QPS_SQE) {
		CHECK(!side_to(s, IBV_QPS_RESET, 0));
		connect_qp(s);
	}
	for (int i = 0; i < 4; i++) {
		struct ibv_sge sge = { RECV * SLICE + rnd(SLICE / 2), rnd(SLICE / 2), keys[RECV] };
		struct ibfs_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };

		if (s->init.type == IBV_QPT_XRC_RECV)
			b.ops->post_srq_recv(srq, &wr);
		else
			b.ops->post_recv(s->qp, &wr);
	}
}

static bool all_is(enum slice slice, uint32_t from, uint32_t len, uint8_t value)
{
	for (uint32_t i = 0; i < len; i++)
		if (b.data[slice * SLICE + from + i] != value)
			return false;
	return true;
}

static void check_memory(void)
{
	static const enum slice shut[] = { LOCAL, OTHER_PD, GONE, OTHER_QP };

	CHECK(all_is(READ, 0, SLICE, OPEN) && all_is(WINDOW, 0, WINDOW_LEN, OPEN));
	CHECK(all_is(WINDOW, WINDOW_LEN, SLICE - WINDOW_LEN, SECRET));
	for (size_t i = 0; i < sizeof(shut) / sizeof(shut[0]); i++)
		CHECK(all_is(shut[i], 0, SLICE, SECRET));
	CHECK(all_is(SLICES, 0, SIDE_MEM - SLICES * SLICE, SECRET));
	CHECK(!leaks);
}

static unsigned int num_packets;

static void test_packets(void)
{
	make_all();
	for (unsigned int i = 1; i <= num_packets && !t.failed; i++) {
		if (!rnd(8))
			send_request();
		send_packet();
		if (!rnd(4))
			tick(rnd(100) ? 0.0001 : 0.02);
		recycle(&qps[i % QPS]);
		if (i % 5000 == 0)
			check_memory();
	}
	check_memory();
	/* It was no waste of time: things were read, written and received. */
	CHECK(reads > num_packets / 1000 && accepted > num_packets / 1000);
	CHECK(!all_is(WRITE, 0, SLICE, SECRET) && !all_is(ATOMIC, 0, SLICE, SECRET));
	CHECK(!all_is(RECV, 0, SLICE, SECRET));
	end_all();
}

int main(int argc, char **argv)
{
	static const struct test tests[] = { { "packets", test_packets }, { 0 } };
	char *names[] = { argv[0], (char *)"packets", NULL };

	if (argc != 3) {
		fprintf(stderr, "usage: verbs_packets SEED PACKETS\n");
		return 2;
	}
	rng = 0x9e3779b97f4a7c15ULL * (strtoul(argv[1], NULL, 0) + 1);
	num_packets = strtoul(argv[2], NULL, 0);
	return run_tests(tests, 2, names);
}
