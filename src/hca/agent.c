/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients' MAD agents: who registered for what, and whose a MAD is that came
 * in and that no agent of the node took. IBA 13.4; the rules of registration
 * and of matching are those of Linux's core/mad.c.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabric/packet.h"
#include "hca/agent.h"
#include "hca/hca.h"

#define CLASS_VERSIONS	0x83	/* one past the largest */
#define CLASS_END	0x50
#define BM_RESPONSE	1	/* BM's AttributeModifier says what the R bit does elsewhere */

static bool class_has_oui(uint8_t mgmt_class)
{
	return mgmt_class >= UMAD_CLASS_VENDOR_RANGE2_START &&
	       mgmt_class <= UMAD_CLASS_VENDOR_RANGE2_END;
}

static bool class_is_smp(uint8_t mgmt_class)
{
	return mgmt_class == MAD_CLASS_SUBN_LID || mgmt_class == MAD_CLASS_SUBN_DR;
}

static uint64_t class_key(uint8_t mgmt_class, uint8_t version, const uint8_t *oui)
{
	uint64_t key = mgmt_class | version << 8;

	if (class_has_oui(mgmt_class))
		key |= (uint64_t)oui[0] << 32 | (uint64_t)oui[1] << 24 | (uint64_t)oui[2] << 16;
	return key;
}

static struct mad_class *class_find(struct mad_port *mp, uint64_t key)
{
	struct mad_class *class;

	HASH_FIND(hh, mp->classes, &key, sizeof(key), class);
	return class;
}

static bool reg_has_method(const struct mad_reg *reg, unsigned int method)
{
	return reg->methods[method / 64] >> method % 64 & 1;
}

bool mad_is_response(const struct umad_hdr *hdr)
{
	return hdr->method & UMAD_METHOD_RESP_MASK ||
	       hdr->method == UMAD_METHOD_TRAP_REPRESS ||
	       (hdr->mgmt_class == UMAD_CLASS_BM && hdr->attr_mod & htobe32(BM_RESPONSE));
}

int mad_refuse(const struct mad_port *mp, const char *what, const char *why)
{
	return ibfs_fail(mp->ibfs, EINVAL, "%s/%u: %s: %s", mp->dev->name, mp->port->num, what,
			 why);
}

/* What is wrong with a registration by itself, or NULL. */
static const char *reg_fault(const struct mad_reg *reg)
{
	static const uint8_t no_oui[3];

	if (reg->qpn > 1)
		return "MADs have QP 0 and 1 only";
	if (reg->rmpp_version > UMAD_RMPP_VERSION)
		return "unknown RMPP version";
	if (!reg->mgmt_class)
		return NULL;
	if (reg->class_version >= CLASS_VERSIONS)
		return "class version out of range";
	if (reg->mgmt_class >= CLASS_END && reg->mgmt_class != MAD_CLASS_SUBN_DR)
		return "no such class";
	if (class_has_oui(reg->mgmt_class) && !memcmp(reg->oui, no_oui, sizeof(no_oui)))
		return "the class needs an OUI";
	if (reg->rmpp_version && !rmpp_class(reg->mgmt_class))
		return "the class has no RMPP";
	if (class_is_smp(reg->mgmt_class) == (reg->qpn != 0))
		return reg->qpn ? "the class is QP 0's" : "the class is QP 1's";
	return NULL;
}

/* Take the methods for the agent: -EINVAL if one is another's. */
static int class_claim(struct mad_agent *agent)
{
	const struct mad_reg *reg = &agent->reg;
	uint64_t key = class_key(reg->mgmt_class, reg->class_version, reg->oui);
	struct mad_class *class = class_find(agent->mp, key);
	unsigned int i;

	if (!(reg->methods[0] | reg->methods[1]))
		return 0;
	if (!class) {
		class = calloc(1, sizeof(*class));
		if (!class)
			return -ENOMEM;
		class->key = key;
		HASH_ADD(hh, agent->mp->classes, key, sizeof(class->key), class);
	}
	for (i = 0; i < 128; i++)
		if (reg_has_method(reg, i) && class->methods[i])
			return mad_refuse(agent->mp, "register", "another agent has a method of it");
	for (i = 0; i < 128; i++) {
		if (!reg_has_method(reg, i))
			continue;
		class->methods[i] = agent;
		class->used++;
	}
	return 0;
}

static void class_release(struct mad_agent *agent)
{
	const struct mad_reg *reg = &agent->reg;
	struct mad_class *class;
	unsigned int i;

	class = class_find(agent->mp, class_key(reg->mgmt_class, reg->class_version, reg->oui));
	if (!class)
		return;
	for (i = 0; i < 128; i++) {
		if (class->methods[i] != agent)
			continue;
		class->methods[i] = NULL;
		class->used--;
	}
	if (class->used)
		return;
	HASH_DEL(agent->mp->classes, class);
	free(class);
}

static struct mad_agent *agent_by_tid(struct mad_port *mp, uint32_t hi_tid)
{
	struct mad_agent *agent;

	HASH_FIND(hh, mp->by_tid, &hi_tid, sizeof(hi_tid), agent);
	return agent;
}

/* An id that no agent of the port has; 0 is none's. */
static uint32_t new_tid(struct mad_port *mp)
{
	do
		mp->next_tid++;
	while (!mp->next_tid || agent_by_tid(mp, mp->next_tid));
	return mp->next_tid;
}

int mad_agent_register(struct mad_port *mp, const struct mad_reg *reg,
		       const struct mad_client_ops *ops, void *client, struct mad_agent **new_agent)
{
	const char *fault = reg_fault(reg);
	struct mad_agent *agent;
	int rc;

	if (fault)
		return mad_refuse(mp, "register", fault);
	agent = calloc(1, sizeof(*agent));
	if (!agent)
		return -ENOMEM;
	agent->mp = mp;
	agent->reg = *reg;
	agent->ops = ops;
	agent->client = client;
	rc = reg->mgmt_class ? class_claim(agent) : 0;
	if (rc) {
		free(agent);
		return rc;
	}
	agent->hi_tid = new_tid(mp);
	HASH_ADD(hh, mp->by_tid, hi_tid, sizeof(agent->hi_tid), agent);
	DL_APPEND(mp->agents, agent);
	*new_agent = agent;
	return 0;
}

void mad_agent_get(struct mad_agent *agent)
{
	agent->busy++;
}

void mad_agent_put(struct mad_agent *agent)
{
	if (!--agent->busy && agent->dead)
		free(agent);
}

/* No MAD reaches or leaves it any more. */
static void agent_detach(struct mad_agent *agent)
{
	struct mad_out *out, *tmp;

	HASH_DELETE(hh, agent->mp->by_tid, agent);
	DL_DELETE(agent->mp->agents, agent);
	if (agent->reg.mgmt_class)
		class_release(agent);
	HASH_ITER(hh, agent->outs, out, tmp)
		mad_out_done(out);
	rmpp_recv_free_all(agent);
	agent->dead = true;
}

void mad_agent_unregister(struct mad_agent *agent)
{
	mad_agent_get(agent);
	agent_detach(agent);
	mad_agent_put(agent);
}

/* IBA 13.5.3.3: versions and QPs that fit; CM sends (12.6), but for its ClassPortInfo. */
static bool mad_valid(const struct umad_hdr *hdr, unsigned int qpn)
{
	if (hdr->base_version != UMAD_BASE_VERSION)
		return false;
	if (hdr->mgmt_class == UMAD_CLASS_CM &&
	    hdr->attr_id != htobe16(UMAD_ATTR_CLASS_PORT_INFO) &&
	    hdr->method != UMAD_METHOD_SEND)
		return false;
	return class_is_smp(hdr->mgmt_class) == !qpn;
}

static struct mad_agent *agent_for(struct mad_port *mp, const struct umad_hdr *hdr)
{
	const uint8_t *oui = (const uint8_t *)hdr + OUI_OFFSET;
	struct mad_class *class;

	if (mad_is_response(hdr))
		return agent_by_tid(mp, be64toh(hdr->tid) >> 32);
	class = class_find(mp, class_key(hdr->mgmt_class, hdr->class_version, oui));
	return class ? class->methods[hdr->method & 0x7f] : NULL;
}

/* Nobody serves this Get or Set: say so, as Linux does on a device's behalf. */
static void answer_unclaimed(struct port *port, struct packet *pkt, const struct mad_view *view)
{
	const struct umad_hdr *hdr = view->mad;
	__be16 slid = view->lrh->slid;

	if (!mad_unserved(view->mad))
		return;
	if (hdr->mgmt_class != MAD_CLASS_SUBN_DR) {
		mad_reply(port, pkt, view);
		return;
	}
	view->lrh->slid = view->lrh->dlid;
	view->lrh->dlid = slid;
	smi_send(port, pkt);
}

static unsigned int gid_index(const struct port *port, const uint8_t gid[16])
{
	uint64_t guid;
	unsigned int i;

	memcpy(&guid, gid + 8, sizeof(guid));
	for (i = 0; i < port->node->num_guids; i++)
		if (port_gid_guid(port, i) == be64toh(guid))
			return i;
	return 0;
}

static void addr_from_view(const struct port *port, const struct mad_view *view,
			   struct mad_addr *addr)
{
	uint32_t flow;
	int index;

	memset(addr, 0, sizeof(*addr));
	addr->lid = be16toh(view->lrh->slid);
	addr->sl = lrh_sl(view->lrh);
	addr->path_bits = be16toh(view->lrh->dlid) & ((1U << port->lmc) - 1);
	addr->qpn = be32toh(view->deth->sqpn) & BTH_QPN_MASK;
	addr->qkey = be32toh(view->deth->qkey);
	index = addr->qpn ? port_find_pkey(port, be16toh(view->bth->pkey)) : 0;
	addr->pkey_index = index < 0 ? 0 : index;
	if (!view->grh)
		return;
	flow = be32toh(view->grh->ver_tclass_flow);
	addr->grh = true;
	addr->flow_label = flow & 0xfffff;
	addr->traffic_class = flow >> 20;
	addr->hop_limit = view->grh->hoplmt;
	addr->gid_index = gid_index(port, view->grh->dgid);
	memcpy(addr->gid.raw, view->grh->sgid, sizeof(addr->gid.raw));
}

void mad_agent_recv(struct mad_agent *agent, const struct mad_addr *addr,
		    const void *mad, size_t len)
{
	if (mad_is_response(mad)) {
		struct mad_out *out = mad_out_find(agent, addr, mad);

		if (out)
			mad_out_done(out);
		else if (!rmpp_raw(agent, mad))
			return;
	}
	agent->ops->recv(agent->client, agent, 0, addr, mad, len);
}

/* A queue pair of type SMI or GSI sees what agents see, and speaks for the port where none does. */
static bool give_engine(const struct mad_port *mp, struct port *port, unsigned int qpn,
			struct packet *pkt)
{
	struct hca *hca = (struct hca *)mp->dev;

	return hca->engine && hca->engine->mad && hca->engine->mad(hca, port, qpn, pkt);
}

/* port_agents.deliver: what the node's own agents left. */
static void mad_deliver(struct port *port, struct packet *pkt, const struct mad_view *view)
{
	struct mad_port *mp = port_agents(port)->clients;
	const struct umad_hdr *hdr = view->mad;
	struct mad_agent *agent;
	struct mad_addr addr;
	unsigned int qpn = be32toh(view->bth->dqpn) & BTH_QPN_MASK;
	bool taken;

	if (!mad_valid(hdr, qpn))
		return;
	taken = give_engine(mp, port, qpn, pkt);
	agent = agent_for(mp, hdr);
	if (!agent) {
		if (!taken)
			answer_unclaimed(port, pkt, view);
		return;
	}
	addr_from_view(port, view, &addr);
	mad_agent_get(agent);
	if (rmpp_agent(agent) && rmpp_class(hdr->mgmt_class) && rmpp_active(hdr))
		rmpp_recv(agent, &addr, hdr);
	else
		mad_agent_recv(agent, &addr, hdr, MAD_SIZE);
	mad_agent_put(agent);
}

struct mad_port *mad_port_new(const struct ibfs_device *dev, struct port *end_port,
			      uint32_t first_tid)
{
	struct port_agents *agents = port_agents(end_port);
	struct mad_port *mp;

	if (!agents)
		return NULL;
	mp = calloc(1, sizeof(*mp));
	if (!mp)
		return NULL;
	mp->dev = dev;
	mp->ibfs = dev->ibfs;
	mp->port = end_port;
	mp->next_tid = first_tid;
	agents->clients = mp;
	agents->deliver = mad_deliver;
	return mp;
}

void mad_port_free(struct mad_port *mp)
{
	struct port_agents *agents = port_agents(mp->port);
	struct mad_agent *agent;

	agents->deliver = NULL;
	agents->clients = NULL;
	while ((agent = mp->agents)) {
		mad_agent_get(agent);
		agent_detach(agent);
		agent->ops->gone(agent->client, agent);
		mad_agent_put(agent);
	}
	free(mp);
}
