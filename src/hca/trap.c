/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traps of an end port to its subnet manager, and the queue of notices, IBA
 * 13.4.5, 13.4.8 to 13.4.11, 14.2.5.1. A trap is sent from the event loop,
 * never from inside what caused it, and again at intervals until it is
 * repressed, the manager is gone or it was sent TRAP_SENDS times.
 */
#include <endian.h>
#include <ev.h>
#include <ibfs/ibfs.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabric/packet.h"
#include "hca/sma.h"

#define TRAP_SENDS		10
#define TRAPS_MAX		16	/* of one end port, at once */
#define NOTICES_MAX		(sizeof(((struct sma_state *)NULL)->queue) / sizeof(struct smp_notice))
#define INTERVAL_MIN		0.1	/* seconds */
#define INTERVAL_MAX		60.0
#define SMP_LRH_WORDS		72	/* LRH BTH DETH MAD ICRC, in 4-byte words */
#define LRH_VL15		0xf0
#define COUNT_MAX		0x7fff	/* NoticeCount */
#define NOTICE_TOGGLE		0x8000
#define DR_NOTICE		0x80
#define DR_TRUNCATED		0x40

struct trap {
	struct trap *prev, *next;
	struct sma_state *state;
	ev_timer timer;
	unsigned int sent;
	uint64_t tid;
	struct smp_notice notice;
};

static struct ev_loop *trap_loop(const struct trap *trap)
{
	return trap->state->end->node->fabric->ibfs->loop;
}

static void trap_free(struct trap *trap)
{
	ev_timer_stop(trap_loop(trap), &trap->timer);
	DL_DELETE(trap->state->traps, trap);
	trap->state->num_traps--;
	free(trap);
}

void sma_state_free(struct sma_state *state)
{
	if (!state)
		return;
	while (state->traps)
		trap_free(state->traps);
	free(state);
}

/* Is there somebody to tell, and a way to? */
static bool trap_possible(const struct port *end)
{
	if (!end->lid || !end->sm_lid || !(end->cap_mask & CAP_TRAP))
		return false;
	return end->node->type == NODE_SWITCH || end->state == PORT_ACTIVE;
}

/* PortInfo:SubnetTimeOut bounds how often a port may send traps: 4.096 us * 2^n. */
static double trap_interval(const struct port *end)
{
	double interval = 4.096e-6 * (1U << (end->subnet_timeout & 0x1f));

	if (interval < INTERVAL_MIN)
		return INTERVAL_MIN;
	return interval > INTERVAL_MAX ? INTERVAL_MAX : interval;
}

static void trap_fill(const struct trap *trap, struct packet *pkt)
{
	const struct port *end = trap->state->end;
	struct smp *smp;
	struct deth *deth;
	struct lrh *lrh;
	struct bth *bth;

	smp = packet_put(pkt, MAD_SIZE);
	deth = packet_push(pkt, sizeof(*deth));
	bth = packet_push(pkt, sizeof(*bth));
	lrh = packet_push(pkt, sizeof(*lrh));
	*lrh = (struct lrh){
		.vl_lver = LRH_VL15, .sl_lnh = end->sm_sl << 4 | LNH_BTH,
		.dlid = htobe16(end->sm_lid), .slid = htobe16(end->lid),
		.len = htobe16(SMP_LRH_WORDS),
	};
	*bth = (struct bth){ .opcode = BTH_OPCODE_UD_SEND_ONLY, .pkey = htobe16(PKEY_DEFAULT) };
	*deth = (struct deth){ 0 };
	memset(smp, 0, MAD_SIZE);
	smp->base_version = UMAD_BASE_VERSION;
	smp->mgmt_class = MAD_CLASS_SUBN_LID;
	smp->class_version = 1;
	smp->method = UMAD_METHOD_TRAP;
	smp->tid = htobe64(trap->tid);
	smp->attr_id = htobe16(UMAD_ATTR_NOTICE);
	memcpy(smp->data, &trap->notice, sizeof(trap->notice));
	pkt->vl = 15;
}

static void trap_timeout(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct trap *trap = timer->data;
	struct port *end = trap->state->end;
	struct packet pkt;

	(void)revents;
	if (!trap_possible(end) || trap->sent == TRAP_SENDS) {
		trap_free(trap);
		return;
	}
	trap->sent++;
	ev_timer_set(timer, trap_interval(end), 0.);
	ev_timer_start(loop, timer);
	packet_init(&pkt);
	trap_fill(trap, &pkt);
	/* The answer may come before this returns, and free the trap. */
	mad_xmit(end, &pkt);
}

static void notice_queue(struct sma_state *state, const struct smp_notice *notice)
{
	if (!(state->end->cap_mask & CAP_NOTICE) || state->num_notices == NOTICES_MAX)
		return;
	state->queue[state->num_notices++] = *notice;
}

/* The pending trap that says the same; of 128 and 144 there is at most one. */
static struct trap *trap_find(const struct sma_state *state, const struct smp_notice *notice)
{
	uint16_t num = be16toh(notice->trap);
	struct trap *trap;

	DL_FOREACH(state->traps, trap) {
		if (trap->notice.trap != notice->trap)
			continue;
		if (num == UMAD_SM_LINK_STATE_CHANGED_TRAP || num == UMAD_SM_LOCAL_CHANGES_TRAP ||
		    !memcmp(trap->notice.details, notice->details, sizeof(notice->details)))
			return trap;
	}
	return NULL;
}

static void trap_again(struct trap *trap, const struct smp_notice *notice)
{
	struct ev_loop *loop = trap_loop(trap);

	trap->sent = 0;
	/* Who sends with wrong keys sends many: that is said once an interval. */
	if (notice->type == (NOTICE_GENERIC | NOTICE_SECURITY))
		return;
	if (notice->trap == htobe16(UMAD_SM_LOCAL_CHANGES_TRAP)) {
		__be16 changes = trap->notice.local.changes | notice->local.changes;
		uint8_t other = trap->notice.local.other_changes | notice->local.other_changes;

		trap->notice = *notice;
		trap->notice.local.changes = changes;
		trap->notice.local.other_changes = other;
	}
	ev_timer_stop(loop, &trap->timer);
	ev_timer_set(&trap->timer, 0., 0.);
	ev_timer_start(loop, &trap->timer);
}

static void trap_raise(struct port *end, struct smp_notice *notice)
{
	struct sma_state *state;
	struct trap *trap;

	if (!trap_possible(end))
		return;
	state = sma_state(end);
	if (!state)
		return;
	trap = trap_find(state, notice);
	if (trap) {
		trap_again(trap, notice);
		return;
	}
	if (state->num_traps == TRAPS_MAX)
		return;
	trap = calloc(1, sizeof(*trap));
	if (!trap)
		return;
	trap->state = state;
	trap->tid = ++state->next_tid;
	trap->notice = *notice;
	DL_APPEND(state->traps, trap);
	state->num_traps++;
	notice_queue(state, notice);
	ev_timer_init(&trap->timer, trap_timeout, 0., 0.);
	trap->timer.data = trap;
	ev_timer_start(trap_loop(trap), &trap->timer);
}

static struct smp_notice notice_new(const struct port *end, unsigned int type, unsigned int trap)
{
	return (struct smp_notice){
		.type = NOTICE_GENERIC | type, .producer = { 0, 0, end->node->type },
		.trap = htobe16(trap), .issuer_lid = htobe16(end->lid),
	};
}

void sma_local_change(struct port *end, unsigned int changes)
{
	struct smp_notice notice = notice_new(end, NOTICE_INFO, UMAD_SM_LOCAL_CHANGES_TRAP);

	notice.local.lid = htobe16(end->lid);
	notice.local.cap_mask = htobe32(end->cap_mask);
	notice.local.cap_mask2 = htobe16(end->cap_mask2);
	notice.local.changes = htobe16(changes);
	notice.local.other_changes = changes ? LOCAL_OTHER_CHANGES : 0;
	trap_raise(end, &notice);
}

void sma_desc_changed(struct node *node)
{
	if (node->type == NODE_SWITCH) {
		sma_local_change(&node->ports[0], CHANGE_NODE_DESC);
		return;
	}
	for (unsigned int i = 1; i <= node->num_ports; i++)
		sma_local_change(&node->ports[i], CHANGE_NODE_DESC);
}

/*
 * Trap 128 is a switch's: a port of it went up or down by itself. A manager
 * that arms, activates or takes down a port hears nothing of that from it.
 */
void sma_port_event(struct port *port, unsigned int events)
{
	struct port *end = port_end(port);
	const struct port_agents *agents = end->agents;
	struct smp_notice notice;

	if (events & PORT_EV_CAPMASK)
		sma_local_change(end, 0);
	if (events & PORT_EV_INTEGRITY)
		sma_port_fault(port, FAULT_LINK_INTEGRITY);
	if (events & PORT_EV_OVERRUN)
		sma_port_fault(port, FAULT_OVERRUN);
	if (events & PORT_EV_WATCHDOG)
		sma_port_fault(port, FAULT_WATCHDOG);
	if (!(events & PORT_EV_STATE) || port == end || port->state > PORT_INIT)
		return;
	if (port->state == PORT_DOWN && agents && agents->sma && agents->sma->setting == port)
		return;
	notice = notice_new(end, NOTICE_URGENT, UMAD_SM_LINK_STATE_CHANGED_TRAP);
	notice.link_state.lid = htobe16(end->lid);
	trap_raise(end, &notice);
}

static void count_fault(uint32_t *counter)
{
	if (*counter < UINT32_MAX)
		++*counter;
}

void sma_port_fault(struct port *port, enum port_fault fault)
{
	struct port *end = port_end(port);
	struct smp_notice notice = notice_new(end, NOTICE_URGENT, fault);

	if (fault == FAULT_LINK_INTEGRITY)
		count_fault(&port->cnt.local_link_integrity_errors);
	else if (fault == FAULT_OVERRUN)
		count_fault(&port->cnt.excess_overrun_errors);
	notice.threshold.lid = htobe16(end->lid);
	notice.threshold.port = port->num;
	trap_raise(end, &notice);
}

void sma_bad_mkey(const struct sma_req *req, uint16_t slid)
{
	struct smp_notice notice = notice_new(req->end, NOTICE_SECURITY, UMAD_SM_BAD_MKEY_TRAP);
	const struct smp *smp = req->smp;
	unsigned int hops = smp->hop_cnt;

	notice.mkey.lid = htobe16(slid);
	notice.mkey.method = smp->method;
	notice.mkey.attr_id = smp->attr_id;
	notice.mkey.attr_mod = smp->attr_mod;
	notice.mkey.mkey = smp->mkey;
	if (smp->mgmt_class == MAD_CLASS_SUBN_DR) {
		notice.mkey.dr_slid = smp->dr_slid;
		notice.mkey.dr_hops = DR_NOTICE;
		if (hops > sizeof(notice.mkey.dr_path)) {
			hops = sizeof(notice.mkey.dr_path);
			notice.mkey.dr_hops |= DR_TRUNCATED;
		}
		notice.mkey.dr_hops |= hops;
		memcpy(notice.mkey.dr_path, smp->return_path, hops);
	}
	trap_raise(req->end, &notice);
}

/* Whose packet it was, as the traps of violated keys tell it; fields big-endian. */
struct offender {
	const struct lrh *lrh;
	const struct grh *grh;		/* NULL: none */
	const struct bth *bth;
	bool has_sqpn;			/* only a datagram tells its sender's QP */
	__be32 sl_qp1, qp2;
};

static struct offender offender(const struct packet *pkt)
{
	struct offender o = { .lrh = packet_lrh(pkt), .bth = packet_bth(pkt) };
	const struct deth *deth = (const struct deth *)(o.bth + 1);
	uint32_t sqpn = 0;

	if (lrh_lnh(o.lrh) == LNH_GRH)
		o.grh = (const struct grh *)(o.lrh + 1);
	o.has_sqpn = (o.bth->opcode & BTH_OPCODE_TRANSPORT) == BTH_OPCODE_UD &&
		     (const uint8_t *)(deth + 1) <= pkt->data + pkt->len;
	if (o.has_sqpn)
		sqpn = be32toh(deth->sqpn) & BTH_QPN_MASK;
	o.sl_qp1 = htobe32(lrh_sl(o.lrh) << 28 | sqpn);
	o.qp2 = o.bth->dqpn & htobe32(BTH_QPN_MASK);
	return o;
}

static void key_trap(struct port *end, const struct offender *o, unsigned int trap, uint32_t key)
{
	struct smp_notice notice = notice_new(end, NOTICE_SECURITY, trap);

	notice.key.lid1 = o->lrh->slid;
	notice.key.lid2 = o->lrh->dlid;
	notice.key.key = htobe32(key);
	notice.key.sl_qp1 = o->sl_qp1;
	notice.key.qp2 = o->qp2;
	if (o->grh) {
		memcpy(notice.key.gid1, o->grh->sgid, sizeof(notice.key.gid1));
		memcpy(notice.key.gid2, o->grh->dgid, sizeof(notice.key.gid2));
	}
	trap_raise(end, &notice);
}

static void violation(uint16_t *counter)
{
	if (*counter < UINT16_MAX)
		++*counter;
}

void sma_bad_pkey(struct port *end_port, const struct packet *pkt)
{
	struct offender o = offender(pkt);

	violation(&end_port->pkey_violations);
	key_trap(end_port, &o, UMAD_SM_BAD_PKEY_TRAP, be16toh(o.bth->pkey));
}

/* Only a datagram has a Q_Key. */
void sma_bad_qkey(struct port *end_port, const struct packet *pkt)
{
	struct offender o = offender(pkt);

	violation(&end_port->qkey_violations);
	if (o.has_sqpn)
		key_trap(end_port, &o, UMAD_SM_BAD_QKEY_TRAP,
			 be32toh(((const struct deth *)(o.bth + 1))->qkey));
}

void sma_bad_switch_pkey(struct port *port, const struct packet *pkt)
{
	struct port *end = port_end(port);
	struct smp_notice notice = notice_new(end, NOTICE_SECURITY, UMAD_SM_BAD_SWITCH_PKEY_TRAP);
	struct offender o = offender(pkt);

	notice.switch_key.valid = htobe16(NOTICE_VALID_HEADERS |
					  (o.has_sqpn ? NOTICE_VALID_QP1 : 0) |
					  (o.grh ? NOTICE_VALID_GIDS : 0));
	notice.switch_key.lid1 = o.lrh->slid;
	notice.switch_key.lid2 = o.lrh->dlid;
	notice.switch_key.pkey = o.bth->pkey;
	notice.switch_key.sl_qp1 = o.sl_qp1;
	notice.switch_key.qp2 = o.qp2;
	if (o.grh) {
		memcpy(notice.switch_key.gid1, o.grh->sgid, sizeof(notice.switch_key.gid1));
		memcpy(notice.switch_key.gid2, o.grh->dgid, sizeof(notice.switch_key.gid2));
	}
	notice.switch_key.switch_lid = htobe16(end->lid);
	notice.switch_key.port = port->num;
	trap_raise(end, &notice);
}

bool sma_trap_repress(struct port *end, const struct smp *smp)
{
	const struct smp_notice *notice = (const struct smp_notice *)smp->data;
	const struct port_agents *agents = end->agents;
	struct trap *trap;

	if (smp->attr_id != htobe16(UMAD_ATTR_NOTICE) || !agents || !agents->sma)
		return false;
	DL_FOREACH(agents->sma->traps, trap) {
		if (trap->tid != be64toh(smp->tid) || trap->notice.trap != notice->trap)
			continue;
		trap_free(trap);
		return true;
	}
	return false;
}

/* Get(Notice) shows the oldest notice, or an empty one; Set(Notice) of the same takes it away. */
uint16_t sma_get_notice(struct sma_req *req)
{
	const struct port_agents *agents = req->end->agents;
	const struct sma_state *state = agents ? agents->sma : NULL;
	struct smp_notice *notice = req->data;

	if (!(req->end->cap_mask & CAP_NOTICE))
		return MAD_BAD_ATTR;
	if (!state || !state->num_notices) {
		notice->type = NOTICE_GENERIC | NOTICE_EMPTY;
		return MAD_OK;
	}
	*notice = state->queue[0];
	notice->toggle_count = htobe16((state->notice_toggle ? NOTICE_TOGGLE : 0) |
				       (state->num_notices & COUNT_MAX));
	return MAD_OK;
}

uint16_t sma_set_notice(struct sma_req *req)
{
	const struct port_agents *agents = req->end->agents;
	struct sma_state *state = agents ? agents->sma : NULL;
	const struct smp_notice *notice = req->data;

	if (!(req->end->cap_mask & CAP_NOTICE))
		return MAD_BAD_ATTR;
	if (!state || !state->num_notices || state->queue[0].trap != notice->trap ||
	    memcmp(state->queue[0].details, notice->details, sizeof(notice->details)))
		return MAD_OK;
	state->num_notices--;
	memmove(&state->queue[0], &state->queue[1], state->num_notices * sizeof(state->queue[0]));
	state->notice_toggle = !state->notice_toggle;
	return MAD_OK;
}
