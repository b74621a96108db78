/* SPDX-License-Identifier: BSD-2-Clause */
/* Communication management between two ports: handshakes, losses, refusals, ends, nonsense. */
#include <infiniband/umad_cm.h>

#include "hca/cm.h"
#include "mad_test.h"

#define SERVICE	0x0100000000000042ULL

/* One end: what its handler was told, and what it answers by itself. */
struct end {
	struct cm_id *id;
	unsigned int count[CM_EV_GONE + 1];
	uint16_t reason;
	struct cm_req req;
	struct cm_rep rep;
	struct cm_sidr_req asked;
	struct cm_sidr_rep told;
	uint8_t private_data[CM_RTU_PRIVATE];
	bool refuse, silent, free_it;	/* a request; whatever comes; at the next event */
	bool lose;			/* its answer */
	struct end *other;
};

static void lose(double drop)
{
	const struct fault_conf conf = { .drop = drop };

	CHECK(!link_set_faults(link_of("rxe0"), &conf));
}

static uint32_t qpn_of(const struct end *end)
{
	return end->other ? 0x111 : 0x222;	/* who listens has no other end yet */
}

static void answer_req(struct end *end)
{
	const struct cm_rep rep = {
		.qpn = 0x222, .psn = 0xabcdef, .responder_resources = 3, .initiator_depth = 5,
		.target_ack_delay = 7, .rnr_retry_count = 6, .srq = true,
		.private_data = "reply", .private_len = 6,
	};

	if (end->lose)
		lose(1);
	CHECK(!cm_send_rep(end->id, &rep));
}

static void answer_question(const struct end *end)
{
	const struct cm_sidr_rep rep = {
		.status = CM_SIDR_SUCCESS, .qpn = 0x333, .qkey = 0x11223344,
		.private_data = "answer", .private_len = 7,
	};

	CHECK(!cm_send_sidr_rep(end->id, &rep));
}

static int told(struct cm_id *id, const struct cm_event *event)
{
	struct end *end = cm_id_owner(id);

	end->count[event->type]++;
	end->reason = event->reason;
	if (event->private_data)
		memcpy(end->private_data, event->private_data,
		       event->private_len < sizeof(end->private_data) ? event->private_len :
		       sizeof(end->private_data));
	if (event->sidr_rep)
		end->told = *event->sidr_rep;
	if (event->sidr_req)
		end->asked = *event->sidr_req;
	if (event->req)
		end->req = *event->req;
	if (event->id) {
		if (end->refuse)
			return -ECONNREFUSED;
		end->id = event->id;
		cm_id_set(end->id, told, end);
	}
	if (event->type == CM_EV_REP)
		end->rep = *event->rep;
	if (end->free_it) {
		cm_id_free(end->id);
		end->id = NULL;
		return 0;
	}
	if (end->silent)
		return 0;
	if (event->type == CM_EV_REQ)
		answer_req(end);
	if (event->type == CM_EV_SIDR_REQ)
		answer_question(end);
	if (event->type == CM_EV_REP) {
		if (end->lose)
			lose(1);
		CHECK(!cm_send_rtu(id, "done", 5));
	}
	if (event->type == CM_EV_DREQ)
		CHECK(!cm_send_drep(id, NULL, 0));
	return 0;
}

static union ibv_gid gid_of(const char *name)
{
	union ibv_gid gid;

	CHECK(!device(name)->ops->query_gid(device(name), 1, 0, &gid));
	return gid;
}

static struct cm_req request(void)
{
	return (struct cm_req){
		.service_id = SERVICE, .qpn = 0x111, .psn = 0x123456, .srq = true,
		.path = { .sgid = gid_of("rxe0"), .dgid = gid_of("rxe1"),
			  .slid = port_of("rxe0")->lid, .dlid = port_of("rxe1")->lid,
			  .pkey = 0xffff, .mtu = IBV_MTU_2048, .sl = 0 },
		.responder_resources = 9, .initiator_depth = 4, .remote_cm_timeout = 18,
		.local_cm_timeout = 18, .max_cm_retries = 3, .ack_timeout = 12, .retry_count = 5,
		.rnr_retry_count = 2, .private_data = "request", .private_len = 8,
	};
}

static struct cm_id *listener;

static void open_ends(struct end *a, struct end *b)
{
	CHECK(!cm_id_new(device("rxe0"), 1, told, a, &a->id));
	CHECK(!cm_id_new(device("rxe1"), 1, told, b, &listener));
	CHECK(!cm_listen(listener, SERVICE));
	a->other = b;
}

static void connect_ends(struct end *a, struct end *b)
{
	const struct cm_req req = request();

	open_ends(a, b);
	CHECK(!cm_send_req(a->id, &req));
	CHECK(cm_send_req(a->id, &req) == -EINVAL);
}

static void close_ends(struct end *a, struct end *b)
{
	lose(0);
	a->silent = b->silent = false;
	cm_id_free(a->id);
	cm_id_free(b->id);
	cm_id_free(listener);
	pass(20);
	/* The last end took the agents along. */
	CHECK(!t.ibfs.cm_ports);
}

static bool both(const struct end *a, const struct end *b, enum cm_state state)
{
	return a->id && b->id && cm_id_state(a->id) == state && cm_id_state(b->id) == state;
}

static void check_attr(struct end *a, struct end *b)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	CHECK(!cm_qp_attr(a->id, &attr, &mask) && attr.port_num == 1);
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!cm_qp_attr(a->id, &attr, &mask));
	CHECK(attr.dest_qp_num == 0x222 && attr.rq_psn == 0xabcdef && attr.path_mtu == IBV_MTU_2048);
	CHECK(attr.ah_attr.dlid == port_of("rxe1")->lid && !attr.ah_attr.is_global);
	CHECK(attr.max_dest_rd_atomic == 5 && mask & IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!cm_qp_attr(a->id, &attr, &mask));
	CHECK(attr.sq_psn == 0x123456 && attr.timeout == 12 && attr.retry_cnt == 5 &&
	      attr.rnr_retry == 6 && attr.max_rd_atomic == 3);
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!cm_qp_attr(b->id, &attr, &mask));
	CHECK(attr.dest_qp_num == 0x111 && attr.rq_psn == 0x123456 &&
	      attr.ah_attr.dlid == port_of("rxe0")->lid && attr.max_dest_rd_atomic == 3);
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!cm_qp_attr(b->id, &attr, &mask));
	CHECK(attr.sq_psn == 0xabcdef && attr.rnr_retry == 2 && attr.max_rd_atomic == 5);
	attr.qp_state = IBV_QPS_SQD;
	CHECK(cm_qp_attr(b->id, &attr, &mask) == -EINVAL);
}

static void test_connect(void)
{
	struct end a = { 0 }, b = { 0 };

	connect_ends(&a, &b);
	CHECK(wait_for(&b.count[CM_EV_RTU], 1, 1));
	CHECK(both(&a, &b, CM_ESTABLISHED) && qpn_of(&a) == b.req.qpn);
	CHECK(b.req.psn == 0x123456 && b.req.srq && b.req.responder_resources == 9 &&
	      b.req.initiator_depth == 4 && b.req.retry_count == 5 && b.req.rnr_retry_count == 2 &&
	      b.req.max_cm_retries == 3 && b.req.ack_timeout == 12);
	CHECK(a.rep.qpn == 0x222 && a.rep.target_ack_delay == 7 && a.rep.srq);
	CHECK(!strcmp((char *)a.private_data, "reply") && !strcmp((char *)b.private_data, "done"));
	check_attr(&a, &b);
	CHECK(!cm_send_dreq(a.id, NULL, 0));
	CHECK(wait_for(&a.count[CM_EV_DISCONNECTED], 1, 1) && b.count[CM_EV_DREQ] == 1);
	CHECK(wait_for(&a.count[CM_EV_TIMEWAIT_EXIT], 1, 1));
	CHECK(wait_for(&b.count[CM_EV_TIMEWAIT_EXIT], 1, 1) && both(&a, &b, CM_IDLE));
	close_ends(&a, &b);
}

static void test_both_disconnect(void)
{
	struct end a = { 0 }, b = { 0 };

	connect_ends(&a, &b);
	CHECK(wait_for(&b.count[CM_EV_RTU], 1, 1));
	CHECK(!cm_send_dreq(a.id, NULL, 0) && !cm_send_dreq(b.id, NULL, 0));
	CHECK(wait_for(&a.count[CM_EV_TIMEWAIT_EXIT], 1, 1));
	CHECK(wait_for(&b.count[CM_EV_TIMEWAIT_EXIT], 1, 1));
	CHECK(a.count[CM_EV_DISCONNECTED] == 1 && b.count[CM_EV_DISCONNECTED] == 1);
	close_ends(&a, &b);
}

static void test_nobody_listens(void)
{
	struct end a = { 0 }, b = { 0 };
	struct cm_req req = request();

	open_ends(&a, &b);
	req.service_id++;
	CHECK(!cm_send_req(a.id, &req));
	CHECK(wait_for(&a.count[CM_EV_REJ], 1, 1));
	CHECK(a.reason == CM_REJ_INVALID_SERVICE_ID && cm_id_state(a.id) == CM_IDLE);
	/* The same end may try again. */
	req.service_id--;
	CHECK(!cm_send_req(a.id, &req) && wait_for(&b.count[CM_EV_RTU], 1, 1));
	close_ends(&a, &b);
}

static void test_refused(void)
{
	struct end a = { 0 }, b = { .refuse = true };

	connect_ends(&a, &b);
	CHECK(wait_for(&a.count[CM_EV_REJ], 1, 1) && a.reason == CM_REJ_CONSUMER);
	CHECK(cm_listen(a.id, SERVICE) == 0);	/* another port: another name space */
	close_ends(&a, &b);
}

static void test_listen_twice(void)
{
	struct end a = { 0 }, b = { 0 };
	struct cm_id *id;

	open_ends(&a, &b);
	CHECK(!cm_id_new(device("rxe1"), 1, told, &b, &id));
	CHECK(cm_listen(id, SERVICE) == -EADDRINUSE && !cm_listen(id, SERVICE + 1));
	cm_id_free(id);
	close_ends(&a, &b);
}

static void test_lost_req(void)
{
	struct end a = { 0 }, b = { 0 };

	lose(1);
	connect_ends(&a, &b);
	pass(1.5);
	CHECK(!b.count[CM_EV_REQ]);
	lose(0);
	CHECK(wait_for(&b.count[CM_EV_RTU], 1, 5) && both(&a, &b, CM_ESTABLISHED));
	CHECK(b.count[CM_EV_REQ] == 1);
	close_ends(&a, &b);
}

static void test_lost_rep(void)
{
	struct end a = { 0 }, b = { .lose = true };

	connect_ends(&a, &b);
	CHECK(wait_for(&b.count[CM_EV_REQ], 1, 1) && !a.count[CM_EV_REP]);
	lose(0);
	CHECK(wait_for(&b.count[CM_EV_RTU], 1, 5) && both(&a, &b, CM_ESTABLISHED));
	CHECK(a.count[CM_EV_REP] == 1 && b.count[CM_EV_REQ] == 1);
	close_ends(&a, &b);
}

static void test_lost_rtu(void)
{
	struct end a = { .lose = true }, b = { 0 };

	connect_ends(&a, &b);
	CHECK(wait_for(&a.count[CM_EV_REP], 1, 1) && !b.count[CM_EV_RTU]);
	lose(0);
	CHECK(wait_for(&b.count[CM_EV_RTU], 1, 5) && a.count[CM_EV_REP] == 1);
	CHECK(both(&a, &b, CM_ESTABLISHED));
	close_ends(&a, &b);
}

/* Data came first: the RTU that follows is no news. */
static void test_established(void)
{
	struct end a = { .lose = true }, b = { 0 };

	connect_ends(&a, &b);
	CHECK(wait_for(&a.count[CM_EV_REP], 1, 1));
	lose(0);
	CHECK(!cm_established(b.id) && cm_established(b.id) == -EINVAL);
	pass(3);
	CHECK(!b.count[CM_EV_RTU] && both(&a, &b, CM_ESTABLISHED));
	close_ends(&a, &b);
}

static void test_unreachable(void)
{
	struct end a = { 0 }, b = { 0 };
	double start;

	lose(1);
	connect_ends(&a, &b);
	start = now();
	CHECK(wait_for(&a.count[CM_EV_UNREACHABLE], 1, 10) && cm_id_state(a.id) == CM_IDLE);
	/* Four times 4.096 us * 2^18. */
	CHECK(now() - start > 4.2 && now() - start < 4.4);
	close_ends(&a, &b);
}

static void test_mra(void)
{
	struct end a = { 0 }, b = { .silent = true };

	connect_ends(&a, &b);
	CHECK(wait_for(&b.count[CM_EV_REQ], 1, 1));
	CHECK(!cm_send_mra(b.id, 21, "wait", 5));
	CHECK(wait_for(&a.count[CM_EV_MRA], 1, 1));
	pass(8);	/* longer than all retries without it */
	CHECK(!a.count[CM_EV_UNREACHABLE]);
	answer_req(&b);
	CHECK(wait_for(&b.count[CM_EV_RTU], 1, 5) && both(&a, &b, CM_ESTABLISHED));
	close_ends(&a, &b);
}

/* Who gives up says so, and the other end, whose answer was lost, forgets it. */
static void test_gives_up(void)
{
	struct end a = { 0 }, b = { .silent = true };

	connect_ends(&a, &b);
	CHECK(wait_for(&b.count[CM_EV_REJ], 1, 10) && b.reason == CM_REJ_TIMEOUT);
	CHECK(a.count[CM_EV_UNREACHABLE] == 1 && cm_id_state(b.id) == CM_IDLE);
	close_ends(&a, &b);
}

/* The same QP asks for another connection: the old one is over. 12.9.8.3.1 */
static void test_stale(void)
{
	struct end a = { 0 }, b = { 0 }, c = { 0 };
	const struct cm_req req = request();

	connect_ends(&a, &b);
	CHECK(wait_for(&b.count[CM_EV_RTU], 1, 1));
	CHECK(!cm_id_new(device("rxe0"), 1, told, &c, &c.id));
	CHECK(!cm_send_req(c.id, &req));
	CHECK(wait_for(&c.count[CM_EV_REJ], 1, 1) && c.reason == CM_REJ_STALE_CONN);
	CHECK(wait_for(&a.count[CM_EV_DREQ], 1, 1));
	CHECK(wait_for(&b.count[CM_EV_TIMEWAIT_EXIT], 1, 2));
	cm_id_free(b.id);
	b.id = NULL;
	CHECK(!cm_send_req(c.id, &req) && wait_for(&c.count[CM_EV_REP], 1, 1));
	cm_id_free(c.id);
	close_ends(&a, &b);
}

/* Freed in each state, from outside and from inside: the other end gets to know. */
static void test_free(void)
{
	static const struct {
		bool b_silent, a_silent;
		enum cm_event_type at_a, at_b;
	} when[] = {
		{ true, false, CM_EV_REQ, CM_EV_REJ }, { false, true, CM_EV_REP, CM_EV_REJ },
		{ false, false, CM_EV_REP, CM_EV_DREQ },
	};

	for (unsigned int i = 0; i < 3; i++) {
		struct end a = { .silent = when[i].a_silent }, b = { .silent = when[i].b_silent };

		connect_ends(&a, &b);
		pass(0.05);
		cm_id_free(a.id);
		a.id = NULL;
		CHECK(wait_for(&b.count[when[i].at_b], 1, 2));
		close_ends(&a, &b);
	}
	for (unsigned int i = 0; i < 2; i++) {
		struct end a = { .free_it = i }, b = { .free_it = !i };

		connect_ends(&a, &b);
		CHECK(i ? wait_for(&b.count[CM_EV_REJ], 1, 2) :
			  wait_for(&a.count[CM_EV_REJ], 1, 2));
		CHECK((i ? b.reason : a.reason) == CM_REJ_CONSUMER);
		close_ends(&a, &b);
	}
}

static void test_lost_dreq(void)
{
	struct end a = { 0 }, b = { 0 };

	connect_ends(&a, &b);
	CHECK(wait_for(&b.count[CM_EV_RTU], 1, 1));
	lose(1);
	cm_id_free(a.id);
	a.id = NULL;
	pass(0.5);
	CHECK(!b.count[CM_EV_DREQ]);
	lose(0);
	CHECK(wait_for(&b.count[CM_EV_DREQ], 1, 5) && wait_for(&b.count[CM_EV_TIMEWAIT_EXIT], 1, 1));
	close_ends(&a, &b);
}

static void test_gone(void)
{
	struct end a = { 0 }, b = { 0 };

	connect_ends(&a, &b);
	CHECK(wait_for(&b.count[CM_EV_RTU], 1, 1));
	device("rxe1")->ops->remove(device("rxe1"));
	CHECK(b.count[CM_EV_GONE] == 2 && cm_id_state(b.id) == CM_IDLE);
	CHECK(cm_listen(listener, SERVICE) == -EINVAL);
	cm_id_free(b.id);
	b.id = NULL;
	cm_id_free(listener);
	listener = NULL;
	CHECK(!cm_send_dreq(a.id, NULL, 0));
	CHECK(wait_for(&a.count[CM_EV_TIMEWAIT_EXIT], 1, 10));
	close_ends(&a, &b);
}

/* What asks can't be: each is told which part. */
static void test_bad_requests(void)
{
	struct end a = { 0 }, b = { 0 };
	struct cm_req req = request();

	open_ends(&a, &b);
	req.path.mtu = 6;
	CHECK(cm_send_req(a.id, &req) == -EINVAL);
	req = request();
	req.path.pkey = 0x1234;
	CHECK(cm_send_req(a.id, &req) == -EINVAL);
	req = request();
	req.path.sgid = req.path.dgid;
	CHECK(cm_send_req(a.id, &req) == -EINVAL);
	req = request();
	req.path.dgid = gid_of("rxe0");
	CHECK(!cm_send_req(a.id, &req));
	CHECK(wait_for(&a.count[CM_EV_REJ], 1, 1) && a.reason == CM_REJ_INVALID_GID);
	req = request();
	req.path.slid = 0;
	CHECK(!cm_send_req(a.id, &req));
	CHECK(wait_for(&a.count[CM_EV_REJ], 2, 1) && a.reason == CM_REJ_INVALID_LID);
	close_ends(&a, &b);
}

/* --- datagram services --- */

static struct cm_sidr_req question(void)
{
	return (struct cm_sidr_req){
		.service_id = SERVICE, .path = request().path, .timeout = 18, .max_retries = 3,
		.private_data = "question", .private_len = 9,
	};
}

static void ask_ends(struct end *a, struct end *b)
{
	const struct cm_sidr_req req = question();

	open_ends(a, b);
	CHECK(!cm_send_sidr_req(a->id, &req));
	CHECK(cm_send_sidr_req(a->id, &req) == -EINVAL && cm_id_state(a->id) == CM_SIDR_REQ_SENT);
}

static void test_sidr(void)
{
	struct end a = { 0 }, b = { 0 };
	struct cm_sidr_req req = question();

	ask_ends(&a, &b);
	CHECK(wait_for(&a.count[CM_EV_SIDR_REP], 1, 1));
	CHECK(b.count[CM_EV_SIDR_REQ] == 1 && !strcmp((char *)b.private_data, "question"));
	CHECK(b.asked.service_id == SERVICE && b.asked.path.pkey == 0xffff);
	CHECK(!a.told.status && a.told.qpn == 0x333 && a.told.qkey == 0x11223344);
	CHECK(!strcmp((char *)a.private_data, "answer") && both(&a, &b, CM_IDLE));
	/* Once only; and neither is a connection. */
	CHECK(cm_send_sidr_rep(b.id, &(struct cm_sidr_rep){ 0 }) == -EINVAL);
	CHECK(cm_send_dreq(a.id, NULL, 0) == -EINVAL);
	req.service_id++;
	CHECK(!cm_send_sidr_req(a.id, &req) && wait_for(&a.count[CM_EV_SIDR_REP], 2, 1));
	CHECK(a.told.status == CM_SIDR_UNSUPPORTED && b.count[CM_EV_SIDR_REQ] == 1);
	close_ends(&a, &b);
}

static void test_sidr_refused(void)
{
	struct end a = { 0 }, b = { .refuse = true };
	struct cm_sidr_req req;

	ask_ends(&a, &b);
	CHECK(wait_for(&a.count[CM_EV_SIDR_REP], 1, 1) && a.told.status == CM_SIDR_REJECT);
	/* Who was asked goes without an answer. */
	b.refuse = false;
	b.free_it = true;
	req = question();
	CHECK(!cm_send_sidr_req(a.id, &req) && wait_for(&a.count[CM_EV_SIDR_REP], 2, 1));
	CHECK(a.told.status == CM_SIDR_REJECT && b.count[CM_EV_SIDR_REQ] == 2);
	/* What can't be asked. */
	req.private_len = CM_SIDR_REQ_PRIVATE + 1;
	CHECK(cm_send_sidr_req(a.id, &req) == -EINVAL);
	req = question();
	req.path.pkey = 0x1234;
	CHECK(cm_send_sidr_req(a.id, &req) == -EINVAL);
	close_ends(&a, &b);
}

/* A lost question is asked again; one that waits for its answer is told once. */
static void test_sidr_lost(void)
{
	const struct cm_sidr_rep late = { .status = CM_SIDR_NO_QP };
	struct end a = { 0 }, b = { .silent = true };

	lose(1);
	ask_ends(&a, &b);
	pass(0.5);
	CHECK(!b.count[CM_EV_SIDR_REQ]);
	lose(0);
	CHECK(wait_for(&b.count[CM_EV_SIDR_REQ], 1, 5));
	pass(2.5);
	CHECK(b.count[CM_EV_SIDR_REQ] == 1 && !a.count[CM_EV_SIDR_REP]);
	CHECK(!cm_send_sidr_rep(b.id, &late) && wait_for(&a.count[CM_EV_SIDR_REP], 1, 1));
	CHECK(a.told.status == CM_SIDR_NO_QP);
	close_ends(&a, &b);
}

static void test_sidr_unreachable(void)
{
	struct end a = { 0 }, b = { .silent = true };

	ask_ends(&a, &b);
	CHECK(wait_for(&a.count[CM_EV_UNREACHABLE], 1, 20) && cm_id_state(a.id) == CM_IDLE);
	CHECK(b.count[CM_EV_SIDR_REQ] == 1);
	/* An answer that comes too late is nobody's. */
	CHECK(!cm_send_sidr_rep(b.id, &(struct cm_sidr_rep){ 0 }));
	pass(1);
	CHECK(!a.count[CM_EV_SIDR_REP]);
	close_ends(&a, &b);
}

static void test_sidr_gone(void)
{
	struct end a = { 0 }, b = { .silent = true };

	ask_ends(&a, &b);
	CHECK(wait_for(&b.count[CM_EV_SIDR_REQ], 1, 1));
	device("rxe1")->ops->remove(device("rxe1"));
	CHECK(b.count[CM_EV_GONE] == 2 && cm_id_state(b.id) == CM_IDLE);
	cm_id_free(b.id);
	cm_id_free(listener);
	b.id = listener = NULL;
	CHECK(wait_for(&a.count[CM_EV_UNREACHABLE], 1, 20));
	close_ends(&a, &b);
}

static void send_nonsense(struct client *client, struct drand48_data *seed)
{
	struct mad_addr to = addr_of("rxe1", 1);
	union cm_msg msg;
	long word;

	for (unsigned int i = 0; i < CM_MAD / 4; i++) {
		mrand48_r(seed, &word);
		memcpy(msg.raw + 4 * i, &(uint32_t){ word }, 4);
	}
	lrand48_r(seed, &word);
	msg.hdr = hdr_of(UMAD_CLASS_CM, CM_CLASS_VERSION, UMAD_METHOD_SEND,
			 UMAD_CM_ATTR_REQ + (word & 15), word);
	/* Numbers that are somebody's are the likelier ones to hurt. */
	if (word & 16)
		msg.rtu.remote_id = htobe32(word >> 5 & 31);
	if (word & 32)
		msg.rtu.local_id = htobe32(word >> 5 & 31);
	if (msg.hdr.attr_id == htobe16(UMAD_CM_ATTR_REQ) && word & 64) {
		union ibv_gid gid = gid_of("rxe1");

		msg.req.service_id = htobe64(SERVICE);
		memcpy(msg.req.remote_gid, gid.raw, 16);
		msg.req.pkey = 0xffff;
		msg.req.mtu_rnr = 4 << 4;
	}
	if (msg.hdr.attr_id == htobe16(UMAD_CM_ATTR_SIDR_REQ) && word & 64)
		msg.sidr_req.service_id = htobe64(SERVICE);
	client_send(client, &to, &msg, sizeof(msg), 0, 0);
}

static void test_nonsense(void)
{
	struct end a = { 0 }, b = { 0 };
	struct mad_reg reg = { .qpn = 1 };
	struct drand48_data seed;
	struct client client = { 0 };

	srand48_r(7, &seed);
	connect_ends(&a, &b);
	CHECK(wait_for(&b.count[CM_EV_RTU], 1, 1));
	CHECK(!client_open(&client, "rxe0", &reg));
	b.refuse = true;	/* but the CM sees all of them */
	for (unsigned int i = 0; i < 20000; i++) {
		send_nonsense(&client, &seed);
		if (i % 64 == 0)
			tick(TICK);
	}
	CHECK(b.count[CM_EV_REQ] > 1);
	client_close(&client);
	close_ends(&a, &b);
}

static const struct test tests[] = {
	{ "connect", test_connect },
	{ "both_disconnect", test_both_disconnect },
	{ "nobody_listens", test_nobody_listens },
	{ "refused", test_refused },
	{ "listen_twice", test_listen_twice },
	{ "lost_req", test_lost_req },
	{ "lost_rep", test_lost_rep },
	{ "lost_rtu", test_lost_rtu },
	{ "established", test_established },
	{ "unreachable", test_unreachable },
	{ "mra", test_mra },
	{ "gives_up", test_gives_up },
	{ "stale", test_stale },
	{ "free", test_free },
	{ "lost_dreq", test_lost_dreq },
	{ "gone", test_gone },
	{ "bad_requests", test_bad_requests },
	{ "sidr", test_sidr },
	{ "sidr_refused", test_sidr_refused },
	{ "sidr_lost", test_sidr_lost },
	{ "sidr_unreachable", test_sidr_unreachable },
	{ "sidr_gone", test_sidr_gone },
	{ "nonsense", test_nonsense },
	{ 0 },
};

int main(int argc, char **argv)
{
	return run_tests(tests, argc, argv);
}
