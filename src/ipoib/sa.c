/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Subnet administration: joins, leaves and paths, asked of the port's SM by an
 * agent of the interface. A question is asked once and may time out; who asks
 * tries again. IBA 15.2, RFC 4391 section 5 and 10.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_types.h>
#include <string.h>
#include <utlist.h>

#include "ipoib/sa.h"

#define SA_TIMEOUT_MS	1000
#define SA_QKEY		0x80010000U
#define MAD_LEN		256
#define METHOD_GET_TABLE 0x12

static struct sa_query *query_take(struct ipoib *ip, uint32_t tid)
{
	struct sa_query *q;

	DL_SEARCH_SCALAR(ip->queries, q, tid, tid);
	if (q) {
		DL_DELETE(ip->queries, q);
		q->tid = 0;
	}
	return q;
}

static void sa_recv(void *client, struct mad_agent *agent, int status, const struct mad_addr *addr,
		    const void *mad, size_t len)
{
	const struct umad_sa_packet *sa = mad;
	struct ipoib *ip = client;
	struct sa_query *q;
	int err = status ? -ETIMEDOUT : 0;

	(void)agent;
	(void)addr;
	/* A table comes whole, as long as it is. */
	if (len < sizeof(struct umad_hdr) || (!status && len < offsetof(struct umad_sa_packet, data)))
		return;
	q = query_take(ip, be64toh(sa->mad_hdr.tid) & UINT32_MAX);
	if (!q)
		return;
	if (!err)
		err = be16toh(sa->mad_hdr.status);
	if (!err && q->kind != SA_GROUPS && len < MAD_LEN)
		err = -EPROTO;
	if (!err) {
		q->stride = be16toh(sa->attr_offset) * 8U;
		q->size = len - offsetof(struct umad_sa_packet, data);
	}
	q->done(q, err, err ? NULL : sa->data);
}

static void sa_gone(void *client, struct mad_agent *agent)
{
	struct ipoib *ip = client;

	(void)agent;
	ip->sa = NULL;
}

static const struct mad_client_ops sa_client_ops = { .recv = sa_recv, .gone = sa_gone };

int sa_open(struct ipoib *ip)
{
	const struct mad_reg reg = {
		.qpn = 1, .mgmt_class = UMAD_CLASS_SUBN_ADM, .class_version = UMAD_SA_CLASS_VERSION,
		.rmpp_version = 1,
	};

	return ip->dev->ops->mad_register(ip->dev, ip->port, &reg, &sa_client_ops, ip, &ip->sa);
}

void sa_close(struct ipoib *ip)
{
	if (ip->sa)
		ip->dev->ops->mad_unregister(ip->sa);
	ip->sa = NULL;
	while (ip->queries)
		query_take(ip, ip->queries->tid);
}

void sa_cancel(struct ipoib *ip, struct sa_query *q)
{
	if (q->tid)
		query_take(ip, q->tid);
}

int sa_ask(struct ipoib *ip, struct sa_query *q, uint8_t method, uint16_t attr,
	   uint64_t comp_mask, const void *record, size_t len)
{
	struct umad_sa_packet sa = {
		.mad_hdr = {
			.base_version = UMAD_BASE_VERSION, .mgmt_class = UMAD_CLASS_SUBN_ADM,
			.class_version = UMAD_SA_CLASS_VERSION, .method = method,
			.attr_id = htobe16(attr),
		},
		.comp_mask = htobe64(comp_mask),
	};
	struct mad_addr to = {
		.lid = ip->attr.sm_lid, .sl = ip->attr.sm_sl, .qpn = 1, .qkey = SA_QKEY,
	};
	int err;

	if (!ip->sa || !ip->attr.sm_lid)
		return -ENODEV;
	sa_cancel(ip, q);
	q->tid = ++ip->next_tid ? ip->next_tid : ++ip->next_tid;
	sa.mad_hdr.tid = htobe64(q->tid);
	memcpy(sa.data, record, len);
	DL_APPEND(ip->queries, q);
	err = ip->dev->ops->mad_send(ip->sa, &to, &sa, MAD_LEN, SA_TIMEOUT_MS, 0);
	if (err)
		sa_cancel(ip, q);
	return err;
}

static void route_from_mcmember(struct ipoib_route *route, const struct mcmember *mcm)
{
	uint32_t sfh = ntohl(mcm->sl_flow_hop);

	*route = (struct ipoib_route){
		.lid = ntohs(mcm->mlid), .sl = sfh >> 28, .hop_limit = sfh & 0xff,
		.flow_label = sfh >> 8 & 0xfffff, .traffic_class = mcm->tclass,
		.rate = mcm->rate & 0x3f, .mtu = mcm->mtu & 0x3f, .life = mcm->life & 0x3f,
	};
}

static void join_done(struct sa_query *q, int err, const void *record)
{
	struct ipoib_group *group = q->owner;
	const struct mcmember *mcm = record;

	if (!err) {
		route_from_mcmember(&group->route, mcm);
		group->qkey = ntohl(mcm->qkey);
	}
	mcast_joined(group, err);
}

uint8_t sa_join_state(const struct ipoib_group *group)
{
	if (group->host)
		return JOIN_FULL;
	return group->promisc ? JOIN_NON_MEMBER : JOIN_SEND_ONLY;
}

/* The best that a port with this width and speed, and any slower one up to 10 Gbit/s, has. */
static uint8_t port_rate(const struct ibv_port_attr *attr)
{
	unsigned int lanes = attr->active_width == 1 ? 1 : 4, speed = attr->active_speed;
	unsigned int mbps = lanes * (speed == 1 ? 2500 : speed == 2 ? 5000 : 10000);

	if (mbps >= 10000)
		return IBV_RATE_10_GBPS;
	return mbps >= 5000 ? IBV_RATE_5_GBPS : IBV_RATE_2_5_GBPS;
}

/* What a group that doesn't exist shall be like: as the broadcast group. RFC 4391 section 5. */
static uint64_t join_create(const struct ipoib *ip, const struct ipoib_group *group,
			    struct mcmember *mcm)
{
	const struct ipoib_group *like = ip->bcast;
	bool first = group == like;
	const struct ipoib_route *r = &like->route;

	mcm->qkey = htonl(first ? IPOIB_DEFAULT_QKEY : like->qkey);
	mcm->mtu = SA_EXACTLY | (first ? ip->attr.active_mtu : r->mtu);
	mcm->rate = SA_EXACTLY | (first ? port_rate(&ip->attr) : r->rate);
	mcm->tclass = first ? 0 : r->traffic_class;
	mcm->sl_flow_hop = first ? 0 : htonl((uint32_t)r->sl << 28 | r->flow_label << 8 |
					     r->hop_limit);
	return MCM_QKEY | MCM_MTU_SEL | MCM_MTU | MCM_TCLASS | MCM_RATE_SEL | MCM_RATE | MCM_SL |
	       MCM_FLOW | MCM_HOP;
}

int sa_join(struct ipoib *ip, struct ipoib_group *group)
{
	struct mcmember mcm = {
		.pkey = htons(ip->pkey), .scope_join = sa_join_state(group),
	};
	uint64_t mask = MCM_MGID | MCM_PORT_GID | MCM_PKEY | MCM_JOIN;

	group->query.done = join_done;
	group->query.owner = group;
	group->query.kind = SA_JOIN;
	group->member.dev = ip->dev;
	group->member.port = ip->port;
	group->member.mgid = group->mgid;
	group->member.join = mcm.scope_join;
	sa_member_add(ip->ibfs, &group->member);
	if (ip->static_subnet) {
		sa_static_join(ip, group);
		return 0;
	}
	memcpy(mcm.mgid, group->mgid.raw, 16);
	memcpy(mcm.port_gid, ip->gid.raw, 16);
	if (group->create)
		mask |= join_create(ip, group, &mcm);
	return sa_ask(ip, &group->query, UMAD_METHOD_SET, UMAD_SA_ATTR_MCMEMBER_REC, mask, &mcm,
		      sizeof(mcm));
}

static void describe_done(struct sa_query *q, int err, const void *record)
{
	struct ipoib_group *group = q->owner;
	struct ipoib_route route = { 0 };

	if (!err)
		route_from_mcmember(&route, record);
	mcast_described(group, &route, err);
}

int sa_describe(struct ipoib *ip, struct ipoib_group *group)
{
	struct mcmember mcm = { 0 };

	memcpy(mcm.mgid, group->mgid.raw, 16);
	group->query.done = describe_done;
	group->query.owner = group;
	return sa_ask(ip, &group->query, UMAD_METHOD_GET, UMAD_SA_ATTR_MCMEMBER_REC, MCM_MGID, &mcm,
		      sizeof(mcm));
}

static void groups_done(struct sa_query *q, int err, const void *records)
{
	promisc_groups(q->owner, err, records, q->stride, q->size);
}

int sa_groups(struct ipoib *ip, struct sa_query *q)
{
	struct mcmember mcm = { .pkey = htons(ip->pkey) };

	q->done = groups_done;
	q->owner = ip;
	q->kind = SA_GROUPS;
	if (ip->static_subnet) {
		sa_static_groups(ip, q);
		return 0;
	}
	return sa_ask(ip, q, METHOD_GET_TABLE, UMAD_SA_ATTR_MCMEMBER_REC, MCM_PKEY, &mcm,
		      sizeof(mcm));
}

static void nothing_done(struct sa_query *q, int err, const void *record)
{
	(void)q;
	(void)err;
	(void)record;
}

/* Not waited for: at worst the SA keeps a member that hears nothing. */
void sa_leave(struct ipoib *ip, struct ipoib_group *group)
{
	struct mcmember mcm = { .scope_join = sa_member_del(ip->ibfs, &group->member) };
	struct sa_query once = { .done = nothing_done };

	if (ip->static_subnet || !ip->active || group->state != GROUP_JOINED || !mcm.scope_join)
		return;
	memcpy(mcm.mgid, group->mgid.raw, 16);
	memcpy(mcm.port_gid, ip->gid.raw, 16);
	sa_ask(ip, &once, UMAD_SA_METHOD_DELETE, UMAD_SA_ATTR_MCMEMBER_REC,
	       MCM_MGID | MCM_PORT_GID | MCM_JOIN, &mcm, sizeof(mcm));
	sa_cancel(ip, &once);
}

static void path_done(struct sa_query *q, int err, const void *record)
{
	struct ipoib_peer *peer = q->owner;
	const struct path_rec *rec = record;

	if (!err)
		peer->route = (struct ipoib_route){
			.lid = ntohs(rec->dlid), .sl = ntohs(rec->qos_sl) & 15,
			.hop_limit = ntohl(rec->flow_hop) & 0xff,
			.flow_label = ntohl(rec->flow_hop) >> 8 & 0xfffff,
			.traffic_class = rec->tclass, .rate = rec->rate & 0x3f,
			.mtu = rec->mtu & 0x3f, .life = rec->life & 0x3f,
		};
	peer_path(peer, err);
}

int sa_path(struct ipoib *ip, struct ipoib_peer *peer)
{
	struct path_rec rec = { .numb_path = 0x80 | 1, .pkey = htons(ip->pkey) };

	peer->query.done = path_done;
	peer->query.owner = peer;
	peer->query.kind = SA_PATH;
	if (ip->static_subnet) {
		sa_static_path(ip, peer);
		return 0;
	}
	memcpy(rec.dgid, peer->key + 3, 16);
	memcpy(rec.sgid, ip->gid.raw, 16);
	return sa_ask(ip, &peer->query, UMAD_METHOD_GET, UMAD_SA_ATTR_PATH_REC,
		      PATH_DGID | PATH_SGID | PATH_REVERSIBLE | PATH_NUMB | PATH_PKEY, &rec,
		      sizeof(rec));
}
