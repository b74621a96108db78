/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups that ids join: asked of the SA as an IPoIB interface's are, or
 * made by the static subnet. The client attaches its QP. Kernel cma.c:
 * rdma_join_multicast(), cma_set_mgid(); IBA 15.2.5.17.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_types.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include <ibfs/backend.h>
#include <ibfs/ipoib.h>

#include "fabric/fabric.h"
#include "fs/ucma.h"
#include "ipoib/sa.h"

#define MAX_JOINS	65536U		/* of all files */
#define JOIN_TIMEOUT	4000U		/* ms */
#define MCAST_QPN	0xffffffU
#define RDMA_CM_SIGN	0x01		/* in the MGID's signature: it isn't IPoIB's */

struct ucma_mc {
	UT_hash_handle hh;		/* of fs->ucma_mcs */
	struct ucma_mc *prev, *next;	/* of id->mcs */
	struct fs *fs;
	struct ucma_id *id;
	uint32_t num;
	uint64_t uid;			/* the client's name for it */
	struct mcmember record;		/* as it is asked for */
	struct sa_member member;
	struct mad_once once;		/* the SA's answer */
	struct task task;		/* the static subnet's */
	bool attached;			/* a member there */
	uint32_t events_reported;
};

/* --- leaving --- */

static void on_left(struct mad_once *once, int err, const void *mad, size_t len)
{
	(void)err;
	(void)mad;
	(void)len;
	free(once);
}

/* At worst the SA keeps a member that hears nothing. */
static void tell_sa(const struct ucma_mc *mc, uint8_t join)
{
	struct mcmember record = mc->record;
	const struct ucma_question question = {
		.method = UMAD_SA_METHOD_DELETE, .attr = UMAD_SA_ATTR_MCMEMBER_REC,
		.comp_mask = MCM_MGID | MCM_PORT_GID | MCM_JOIN,
		.record = &record, .len = sizeof(record), .timeout_ms = JOIN_TIMEOUT,
	};
	struct mad_once *once = calloc(1, sizeof(*once));

	if (!once)
		return;
	memcpy(record.mgid, mc->member.mgid.raw, 16);
	record.scope_join = join;
	once->done = on_left;
	if (ucma_ask_sa(once, mc->id->dev, mc->id->port, &question))
		free(once);
}

static void leave(struct ucma_mc *mc)
{
	struct ibfs_device *dev = mc->id->dev;
	uint8_t join = sa_member_del(mc->fs->ibfs, &mc->member);

	if (!dev)
		return;
	if (mc->attached)
		static_mcast_detach(mc->fs->ibfs->fabric, dev->ops->fabric_port(dev, mc->member.port),
				    mc->record.mgid);
	else if (join && !mc->task.fn)
		tell_sa(mc, join);
}

/* --- what becomes of it --- */

static struct ucma_event *event_of(struct ucma_mc *mc, enum ucma_event_type type, int status)
{
	struct ucma_event *event = ucma_event_new(mc->id, type, status);

	if (!event)
		return NULL;
	event->mc = mc;
	event->resp.uid = mc->uid;
	event->resp.id = mc->num;
	return event;
}

static void failed(struct ucma_mc *mc, int err)
{
	struct ucma_event *event = event_of(mc, UCMA_MULTICAST_ERROR, err);

	if (event)
		ucma_event_post(event);
}

static void joined(struct ucma_mc *mc, const struct mcmember *record)
{
	struct ucma_event *event = event_of(mc, UCMA_MULTICAST_JOIN, 0);
	uint32_t sfh = be32toh(record->sl_flow_hop);
	struct ibv_ah_attr ah = {
		.dlid = be16toh(record->mlid), .sl = sfh >> 28, .static_rate = record->rate & 0x3f,
		.port_num = mc->member.port, .is_global = 1,
		.grh = { .flow_label = sfh >> 8 & 0xfffff, .hop_limit = sfh & 0xff,
			 .traffic_class = record->tclass },
	};

	if (!event)
		return;
	memcpy(ah.grh.dgid.raw, record->mgid, 16);
	event->resp.param.ud.qp_num = MCAST_QPN;
	event->resp.param.ud.qkey = mc->id->qkey;
	ucma_put_ah(&event->resp.param.ud.ah_attr, &ah);
	ucma_event_post(event);
}

static struct ucma_mc *from_once(struct mad_once *once)
{
	return (struct ucma_mc *)((char *)once - offsetof(struct ucma_mc, once));
}

static void on_answer(struct mad_once *once, int err, const void *mad, size_t len)
{
	const struct umad_sa_packet *sa = mad;
	struct ucma_mc *mc = from_once(once);
	struct mcmember record;

	/* The id is told of that by itself: ucma_device_gone(). */
	if (err == -ENODEV)
		return;
	if (!err && (len < MADONCE_LEN || sa->mad_hdr.status))
		err = -EINVAL;
	if (!err) {
		memcpy(&record, sa->data, sizeof(record));
		/* The SA chose the group, perhaps. */
		memcpy(mc->member.mgid.raw, record.mgid, 16);
		err = ucma_set_qkey(mc->id, be32toh(record.qkey), 0);
	}
	if (!err) {
		joined(mc, &record);
		return;
	}
	leave(mc);
	failed(mc, err);
}

static void on_static(struct task *task)
{
	struct ucma_mc *mc = (struct ucma_mc *)((char *)task - offsetof(struct ucma_mc, task));
	struct ibfs_device *dev = mc->id->dev;
	int mlid;

	mlid = static_mcast_attach(mc->fs->ibfs->fabric, dev->ops->fabric_port(dev, mc->member.port),
				   mc->record.mgid);
	if (mlid < 0) {
		leave(mc);
		failed(mc, mlid);
		return;
	}
	mc->attached = true;
	mc->record.mlid = htobe16(mlid);
	joined(mc, &mc->record);
}

/* --- asking --- */

static int ask(struct ucma_mc *mc, unsigned int timeout_ms)
{
	const struct ucma_question question = {
		.method = UMAD_METHOD_SET, .attr = UMAD_SA_ATTR_MCMEMBER_REC,
		.comp_mask = MCM_MGID | MCM_PORT_GID | MCM_PKEY | MCM_JOIN | MCM_QKEY | MCM_SL |
			     MCM_FLOW | MCM_TCLASS |
			     (mc->id->ps == RDMA_PS_IPOIB ? MCM_RATE_SEL | MCM_RATE | MCM_MTU_SEL |
			      MCM_MTU | MCM_HOP : 0),
		.record = &mc->record, .len = sizeof(mc->record), .timeout_ms = timeout_ms,
	};

	mc->once.done = on_answer;
	return ucma_ask_sa(&mc->once, mc->id->dev, mc->id->port, &question);
}

static int start(struct ucma_mc *mc)
{
	struct ibfs_device *dev = mc->id->dev;
	struct ibv_port_attr attr;
	int err = dev->ops->query_port(dev, mc->id->port, &attr);

	if (err)
		return err;
	sa_member_add(mc->fs->ibfs, &mc->member);
	if (!ucma_static_subnet(dev, &attr) || !dev->ops->fabric_port)
		return ask(mc, JOIN_TIMEOUT);
	mc->task.fn = on_static;
	task_queue(dev->ibfs->tasks, &mc->task);
	return 0;
}

/* --- its life --- */

static void stop(struct ucma_mc *mc)
{
	mad_once_cancel(&mc->once);
	task_cancel(mc->fs->ibfs->tasks, &mc->task);
}

/* Events of it that are queued or being told are nobody's. */
static void forget_events(struct ucma_file *uf, const struct ucma_mc *mc)
{
	struct ucma_event *event, *tmp;
	struct ucma_cmd *cmd;

	DL_FOREACH_SAFE(uf->events, event, tmp) {
		if (event->mc != mc)
			continue;
		DL_DELETE(uf->events, event);
		free(event);
	}
	DL_FOREACH(uf->cmds, cmd) {
		if (cmd->made_mc == mc)
			cmd->made_mc = NULL;
		if (cmd->event && cmd->event->mc == mc)
			cmd->event->mc = NULL;
	}
}

void ucma_mc_free(struct ucma_mc *mc)
{
	struct ucma_file *uf;

	stop(mc);
	leave(mc);
	DL_FOREACH(mc->fs->ucmas, uf)
		forget_events(uf, mc);
	DL_DELETE(mc->id->mcs, mc);
	HASH_DEL(mc->fs->ucma_mcs, mc);
	free(mc);
}

void ucma_mcs_free(struct ucma_id *id)
{
	while (id->mcs)
		ucma_mc_free(id->mcs);
}

void ucma_mcs_gone(struct ucma_id *id)
{
	struct ucma_mc *mc;

	DL_FOREACH(id->mcs, mc) {
		stop(mc);
		leave(mc);
		mc->attached = false;
	}
}

void ucma_mc_counted(struct ucma_mc *mc)
{
	mc->events_reported++;
}

/* Membership is over with the subnet manager that knew of it. Kernel mcast_event_handler(). */
void ucma_port_event(struct ibfs_device *dev, unsigned int port, enum ibv_event_type event)
{
	struct ucma_id *id;
	struct ucma_mc *mc;

	if (event != IBV_EVENT_PORT_ERR && event != IBV_EVENT_LID_CHANGE &&
	    event != IBV_EVENT_SM_CHANGE && event != IBV_EVENT_CLIENT_REREGISTER)
		return;
	for (id = dev->ibfs->fs->ucma_ids; id; id = id->hh.next) {
		if (id->dev != dev || id->port != port)
			continue;
		DL_FOREACH(id->mcs, mc) {
			if (mc->attached || !mc->member.listed)
				continue;
			stop(mc);
			sa_member_del(mc->fs->ibfs, &mc->member);
			failed(mc, -ENETRESET);
		}
	}
}

/* --- joining --- */

/* The group that an address is. Kernel cma_set_mgid(). */
static void set_mgid(const struct ucma_id *id, const struct ipoib *ip, const union ucma_addr *addr,
		     union ibv_gid *mgid)
{
	const struct in6_addr in6 = ucma_addr_in6(addr);

	memset(mgid, 0, sizeof(*mgid));
	if (ucma_addr_any(addr))
		return;
	/* An MGID that the SA has given, as an address of IPv6. */
	if (addr->sa.sa_family == AF_IB || (addr->sa.sa_family == AF_INET6 &&
	    (ntohl(in6.s6_addr32[0]) & 0xfff0ffff) == 0xff10a01b)) {
		memcpy(mgid, &in6, sizeof(*mgid));
		return;
	}
	ipoib_mgid(ip, &in6, mgid);
	if (id->ps == RDMA_PS_UDP)
		mgid->raw[3] = RDMA_CM_SIGN;
}

static void fill_record(struct ucma_mc *mc, const struct ipoib_subnet *subnet)
{
	mc->record = (struct mcmember){
		.qkey = htobe32(mc->id->qkey), .pkey = htobe16(subnet->pkey),
		.mtu = SA_EXACTLY | subnet->mtu, .rate = SA_EXACTLY | subnet->rate,
		.tclass = subnet->traffic_class, .scope_join = mc->member.join,
		.sl_flow_hop = htobe32((uint32_t)subnet->sl << 28 | subnet->flow_label << 8 |
				       subnet->hop_limit),
	};
	memcpy(mc->record.mgid, mc->member.mgid.raw, 16);
	memcpy(mc->record.port_gid, mc->id->path.sgid.raw, 16);
}

static struct ucma_mc *mc_new(struct ucma_id *id, uint64_t uid, uint8_t join)
{
	struct fs *fs = id->fs;
	struct ucma_mc *mc, *other;

	if (HASH_COUNT(fs->ucma_mcs) >= MAX_JOINS)
		return NULL;
	mc = calloc(1, sizeof(*mc));
	if (!mc)
		return NULL;
	do {
		mc->num = ++fs->next_ucma_mc;
		HASH_FIND(hh, fs->ucma_mcs, &mc->num, sizeof(mc->num), other);
	} while (other);
	mc->fs = fs;
	mc->id = id;
	mc->uid = uid;
	mc->member.dev = id->dev;
	mc->member.port = id->port;
	mc->member.join = join;
	HASH_ADD(hh, fs->ucma_mcs, num, sizeof(mc->num), mc);
	DL_APPEND(id->mcs, mc);
	return mc;
}

static int join(struct ucma_cmd *cmd, struct ucma_id *id, const union ucma_addr *addr,
		uint64_t uid, uint8_t as)
{
	const struct ipoib *ip;
	struct ipoib_subnet subnet;
	int err;

	if (!id->dev || (id->state != ID_BOUND && id->state != ID_ADDR_DONE) ||
	    id->qp_type != IBV_QPT_UD)
		return -EINVAL;
	ip = ucma_interface(id, cmd->netns);
	err = ip ? ipoib_subnet(ip, &subnet) : -EADDRNOTAVAIL;
	if (err)
		return ibfs_fail(cmd->req->ibfs, -err, "rdma_cm: no IPoIB interface that is up has "
				 "the address, so it can't join a group");
	err = ucma_set_qkey(id, 0, cmd->netns);
	if (err)
		return err;
	cmd->made_mc = mc_new(id, uid, as);
	if (!cmd->made_mc)
		return -ENOMEM;
	set_mgid(id, ip, addr, &cmd->made_mc->member.mgid);
	fill_record(cmd->made_mc, &subnet);
	return start(cmd->made_mc);
}

static int join_and_answer(struct ucma_cmd *cmd, uint32_t num, const union ucma_addr *addr,
			   uint64_t uid, uint8_t as, uint64_t response)
{
	struct ucma_id *id = ucma_id_get(cmd->uf, num);
	struct rdma_ucm_create_id_resp resp;
	int err = id ? join(cmd, id, addr, uid, as) : -ENOENT;

	if (err) {
		if (cmd->made_mc)
			ucma_mc_free(cmd->made_mc);
		return err;
	}
	resp.id = cmd->made_mc->num;
	return ucma_respond(cmd, response, &resp, sizeof(resp), sizeof(resp));
}

int ucma_join_mcast(struct ucma_cmd *cmd)
{
	static const uint8_t as[] = {
		[RDMA_MC_JOIN_FLAG_FULLMEMBER] = JOIN_FULL,
		[RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER] = JOIN_SEND_ONLY_FULL,
	};
	union ucma_addr addr = { .sa.sa_family = AF_UNSPEC };
	struct rdma_ucm_join_mcast req;
	int err;

	if (cmd->out_room < sizeof(struct rdma_ucm_create_id_resp))
		return -ENOSPC;
	err = ucma_request(cmd, &req, sizeof(req), sizeof(req));
	if (err)
		return err;
	memcpy(&addr, &req.addr, sizeof(req.addr));
	if (!ucma_addr_len(&addr) || req.addr_size != ucma_addr_len(&addr) ||
	    req.join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return -EINVAL;
	return join_and_answer(cmd, req.id, &addr, req.uid, as[req.join_flags], req.response);
}

int ucma_join_ip_mcast(struct ucma_cmd *cmd)
{
	union ucma_addr addr = { .sa.sa_family = AF_UNSPEC };
	struct rdma_ucm_join_ip_mcast req;
	int err;

	if (cmd->out_room < sizeof(struct rdma_ucm_create_id_resp))
		return -ENOSPC;
	err = ucma_request(cmd, &req, sizeof(req),
			   offsetof(struct rdma_ucm_join_ip_mcast, id) + sizeof(req.id));
	if (err)
		return err;
	addr.in6 = req.addr;
	if (!ucma_addr_len(&addr) || addr.sa.sa_family == AF_IB)
		return -EINVAL;
	return join_and_answer(cmd, req.id, &addr, req.uid, JOIN_FULL, req.response);
}

int ucma_leave_mcast(struct ucma_cmd *cmd)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct rdma_ucm_destroy_id req;
	struct ucma_mc *mc;
	int err;

	if (cmd->out_room < sizeof(resp))
		return -ENOSPC;
	err = ucma_request(cmd, &req, sizeof(req), offsetof(struct rdma_ucm_destroy_id, reserved));
	if (err)
		return err;
	HASH_FIND(hh, cmd->req->ibfs->fs->ucma_mcs, &req.id, sizeof(req.id), mc);
	if (!mc)
		return -ENOENT;
	if (mc->id->uf != cmd->uf)
		return -EINVAL;
	resp.events_reported = mc->events_reported;
	ucma_mc_free(mc);
	return ucma_respond(cmd, req.response, &resp, sizeof(resp), sizeof(resp));
}
