/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients' MADs on their way out: headers (IBA chapter 5, 13.5.1), those that
 * wait for a response, their timeouts and retries. A response often comes
 * before mad_transmit() returns, so a timer is started only after it, which is
 * also from when timeout_ms counts.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/packet.h"
#include "hca/agent.h"

#define IN_FLIGHT	"a MAD with this TID and class is in flight"
#define BAD_ROUTE	"a directed route that can't be"

static void push_deth(struct packet *pkt, uint32_t qpn)
{
	struct deth *deth = packet_push(pkt, sizeof(*deth));

	deth->qkey = htobe32(qpn ? QP1_QKEY : 0);
	deth->sqpn = htobe32(qpn);
}

static void push_bth(struct packet *pkt, struct mad_port *mp, uint32_t qpn,
		     const struct mad_addr *addr)
{
	struct bth *bth = packet_push(pkt, sizeof(*bth));

	bth->opcode = BTH_OPCODE_UD_SEND_ONLY;
	bth->flags = 0;
	bth->pkey = htobe16(qpn ? port_pkey(mp->port, addr->pkey_index) : PKEY_DEFAULT);
	bth->dqpn = htobe32(addr->qpn & BTH_QPN_MASK);
	bth->psn = htobe32(mp->psn[qpn]++ & BTH_PSN_MASK);
}

static void push_grh(struct packet *pkt, const struct port *port, const struct mad_addr *addr)
{
	struct grh *grh = packet_push(pkt, sizeof(*grh));
	__be64 prefix = htobe64(port->gid_prefix);
	__be64 guid = htobe64(port_gid_guid(port, addr->gid_index));

	grh->ver_tclass_flow = htobe32((uint32_t)GRH_VERSION << 28 | addr->traffic_class << 20 |
				       (addr->flow_label & 0xfffff));
	grh->paylen = 0;
	grh->nxthdr = GRH_NXTHDR_IBA;
	grh->hoplmt = addr->hop_limit;
	memcpy(grh->sgid, &prefix, sizeof(prefix));
	memcpy(grh->sgid + 8, &guid, sizeof(guid));
	memcpy(grh->dgid, addr->gid.raw, sizeof(grh->dgid));
}

/* VL and lengths are filled in where a wire needs them. */
static void push_lrh(struct packet *pkt, const struct port *port, const struct mad_addr *addr)
{
	uint16_t slid = port->lid | (addr->path_bits & ((1U << port->lmc) - 1));
	struct lrh *lrh = packet_push(pkt, sizeof(*lrh));

	lrh->vl_lver = 0;
	lrh->sl_lnh = (addr->sl & 0xf) << 4 | (addr->grh ? LNH_GRH : LNH_BTH);
	lrh->dlid = htobe16(addr->lid);
	lrh->len = 0;
	lrh->slid = htobe16(addr->lid == LID_PERMISSIVE ? LID_PERMISSIVE : slid);
}

int mad_transmit(struct mad_agent *agent, const struct mad_addr *addr, const void *mad)
{
	struct mad_port *mp = agent->mp;
	uint32_t qpn = agent->reg.qpn;
	struct packet pkt;

	packet_init(&pkt);
	memcpy(packet_put(&pkt, MAD_SIZE), mad, MAD_SIZE);
	push_deth(&pkt, qpn);
	push_bth(&pkt, mp, qpn, addr);
	if (addr->grh)
		push_grh(&pkt, mp->port, addr);
	pkt.vl = qpn ? port_vl(NULL, mp->port, addr->sl & 0xf) : VL_MGMT;
	push_lrh(&pkt, mp->port, addr);
	if (!qpn)
		return smi_send(mp->port, &pkt) ? mad_refuse(mp, "send", BAD_ROUTE) : 0;
	/* What a port does not send, for its SL has no VL or it is down, is lost as on any wire. */
	if (pkt.vl == VL_MGMT)
		mp->port->cnt.xmit_discards++;
	else
		mad_xmit(mp->port, &pkt);
	return 0;
}

/* A request is known by its TID; its answer may come from another LID than it went to. */
static void make_key(struct mad_out_key *key, const struct umad_hdr *hdr, uint16_t lid)
{
	memset(key, 0, sizeof(*key));
	key->tid = hdr->tid;
	key->mgmt_class = hdr->mgmt_class;
	key->response = mad_is_response(hdr);
	if (key->response && hdr->mgmt_class != MAD_CLASS_SUBN_DR)
		key->lid = lid;
}

/* The key of what a MAD that came in belongs to: a request's if that is a response. */
static void make_peer_key(struct mad_out_key *key, const struct umad_hdr *hdr, uint16_t lid)
{
	make_key(key, hdr, 0);
	key->response = !key->response;
	if (key->response && hdr->mgmt_class != MAD_CLASS_SUBN_DR)
		key->lid = lid;
}

static struct mad_out *find_key(const struct mad_agent *agent, const struct mad_out_key *key)
{
	struct mad_out *out;

	HASH_FIND(hh, agent->outs, key, sizeof(*key), out);
	return out;
}

/* Is it by this path that the answer to what went to addr comes? As Linux's rcv_has_same_addr(). */
static bool same_path(const struct mad_out *out, const struct mad_addr *from)
{
	const struct port *port = out->agent->mp->port;
	unsigned int mask = (1U << port->lmc) - 1;

	if (out->key.mgmt_class == MAD_CLASS_SUBN_DR)
		return true;
	if (out->addr.grh != from->grh)
		return false;
	if (out->key.response)
		return !from->grh || !memcmp(&out->addr.gid, &from->gid, sizeof(from->gid));
	if (from->grh)
		return out->addr.gid_index == from->gid_index;
	return !((out->addr.path_bits ^ from->path_bits) & mask);
}

struct mad_out *mad_out_find(struct mad_agent *agent, const struct mad_addr *addr,
			     const struct umad_hdr *hdr)
{
	struct mad_out_key key;
	struct mad_out *out;

	make_peer_key(&key, hdr, addr->lid);
	out = find_key(agent, &key);
	return out && same_path(out, addr) ? out : NULL;
}

/* The timer and the task know no agent that is gone: they stop here. */
void mad_out_done(struct mad_out *out)
{
	struct ibfs *ibfs = out->agent->mp->ibfs;

	HASH_DELETE(hh, out->agent->outs, out);
	ev_timer_stop(ibfs->loop, &out->timer);
	task_cancel(ibfs->tasks, &out->task);
	out->done = true;
	if (!out->sending)
		free(out);
}

void mad_out_expire(struct mad_out *out)
{
	struct mad_agent *agent = out->agent;
	struct mad_addr addr = out->addr;
	uint8_t hdr[MAD_HDR_LEN];

	memcpy(hdr, out->mad, sizeof(hdr));
	mad_out_done(out);
	mad_agent_get(agent);
	agent->ops->recv(agent->client, agent, ETIMEDOUT, &addr, hdr, sizeof(hdr));
	mad_agent_put(agent);
}

void mad_out_arm(struct mad_out *out)
{
	struct ev_loop *loop = out->agent->mp->ibfs->loop;
	bool acked = out->rmpp.acked == out->rmpp.segs;
	unsigned int ms = acked ? out->timeout_ms : out->rmpp.wait_ms;

	ev_timer_stop(loop, &out->timer);
	/* libev counts from the loop's last look at the clock. */
	ev_timer_set(&out->timer, ms / 1e3 + (ev_time() - ev_now(loop)), 0.);
	ev_timer_start(loop, &out->timer);
}

/* Send the first (or only) packet, and start the timer unless it is over by then. */
static int out_start(struct mad_out *out)
{
	struct mad_agent *agent = out->agent;
	int rc;

	mad_agent_get(agent);
	out->sending = true;
	rc = out->rmpp.segs ? rmpp_send_start(out) : mad_transmit(agent, &out->addr, out->mad);
	out->sending = false;
	if (out->done)
		free(out);
	else if (rc)
		mad_out_done(out);
	else
		mad_out_arm(out);
	mad_agent_put(agent);
	return rc;
}

static void out_timer(struct ev_loop *loop, struct ev_timer *timer, int revents)
{
	struct mad_out *out = timer->data;

	(void)loop;
	(void)revents;
	if (out->rmpp.acked < out->rmpp.segs) {
		rmpp_send_timeout(out);
	} else if (out->rmpp.segs || !out->retries) {
		mad_out_expire(out);
	} else {
		out->retries--;
		out_start(out);
	}
}

/* How many segments a message makes that the agent lets us cut; 0: it is one MAD. */
static uint32_t count_segs(const struct mad_agent *agent, const struct umad_hdr *hdr, size_t len)
{
	unsigned int hdr_len = rmpp_header_len(hdr->mgmt_class);
	size_t data = len - hdr_len, seg_size = MAD_SIZE - hdr_len;

	if (!rmpp_agent(agent) || !rmpp_active(hdr))
		return 0;
	return data ? (data + seg_size - 1) / seg_size : 1;
}

/* What is wrong with a MAD or message by itself, or NULL. */
static const char *send_fault(const struct mad_agent *agent, const struct mad_addr *addr,
			      const struct umad_hdr *hdr, size_t len)
{
	const struct node *node = agent->mp->port->node;
	bool rmpp;

	if (len < RMPP_HDR_LEN)
		return "shorter than its headers";
	if (rmpp_agent(agent) && !rmpp_class(hdr->mgmt_class))
		return "an agent with RMPP, and a class without it";
	rmpp = rmpp_agent(agent) && rmpp_active(hdr);
	if (!rmpp && len > MAD_SIZE)
		return "longer than a MAD, and not RMPP";
	if (rmpp && (len < rmpp_header_len(hdr->mgmt_class) || len > UINT32_MAX))
		return "a length that no RMPP message of the class has";
	if (addr->pkey_index >= node->num_pkeys)
		return "no such P_Key index";
	if (addr->grh && addr->gid_index >= node->num_guids)
		return "no such GID index";
	return NULL;
}

/* A copy of the MAD, padded, with the TID that goes out. */
static void copy_mad(const struct mad_agent *agent, uint8_t *copy, size_t room,
		     const void *mad, size_t len)
{
	struct umad_hdr *hdr = (struct umad_hdr *)copy;

	memcpy(copy, mad, len);
	memset(copy + len, 0, room - len);
	if (!mad_is_response(hdr) && !agent->reg.own_tids)
		hdr->tid = htobe64((uint64_t)agent->hi_tid << 32 | (uint32_t)be64toh(hdr->tid));
}

static struct mad_out *out_new(struct mad_agent *agent, const struct mad_addr *addr,
			       const void *mad, size_t len)
{
	size_t room = len < MAD_SIZE ? MAD_SIZE : len;
	struct mad_out *out = malloc(sizeof(*out) + room);

	if (!out)
		return NULL;
	memset(out, 0, sizeof(*out));
	out->agent = agent;
	out->addr = *addr;
	out->len = len;
	copy_mad(agent, out->mad, room, mad, len);
	make_key(&out->key, (struct umad_hdr *)out->mad, addr->lid);
	ev_init(&out->timer, out_timer);
	out->timer.data = out;
	return out;
}

static bool in_flight(const struct mad_agent *agent, const struct mad_out_key *key,
		      const struct umad_hdr *hdr)
{
	return find_key(agent, key) && !rmpp_raw(agent, hdr);
}

/* Nothing to wait for: neither a response nor an ACK. */
static int send_once(struct mad_agent *agent, const struct mad_addr *addr, const void *mad,
		     size_t len)
{
	uint8_t copy[MAD_SIZE];
	struct mad_out_key key;
	int rc;

	copy_mad(agent, copy, sizeof(copy), mad, len);
	make_key(&key, (struct umad_hdr *)copy, addr->lid);
	if (in_flight(agent, &key, mad))
		return mad_refuse(agent->mp, "send", IN_FLIGHT);
	mad_agent_get(agent);
	rc = mad_transmit(agent, addr, copy);
	mad_agent_put(agent);
	return rc;
}

int mad_agent_send(struct mad_agent *agent, const struct mad_addr *addr, const void *mad,
		   size_t len, unsigned int timeout_ms, unsigned int retries)
{
	const char *fault = send_fault(agent, addr, mad, len);
	struct mad_out *out;
	uint32_t segs;

	if (fault)
		return mad_refuse(agent->mp, "send", fault);
	segs = count_segs(agent, mad, len);
	if (!segs && !timeout_ms)
		return send_once(agent, addr, mad, len);
	out = out_new(agent, addr, mad, len);
	if (!out)
		return -ENOMEM;
	if (in_flight(agent, &out->key, mad)) {
		free(out);
		return mad_refuse(agent->mp, "send", IN_FLIGHT);
	}
	out->timeout_ms = timeout_ms;
	out->retries = retries;
	out->max_retries = retries;
	out->rmpp.segs = segs;
	HASH_ADD(hh, agent->outs, key, sizeof(out->key), out);
	return out_start(out);
}
