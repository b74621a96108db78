/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A umad file's agents: the ioctls that register and unregister them, as in
 * Linux's user_mad.c (<rdma/ib_user_mad.h>, ABI 5). It may touch the backend's
 * MAD operations and the file's table of agents.
 */
#include <errno.h>
#include <string.h>

#include <ibfs/ibfs.h>
#include <ibfs/umad_ring.h>

#include "fs/umad.h"
#include "fs/umad_ring.h"

_Static_assert(sizeof(struct ib_user_mad_reg_req) == 28, "registration layout");
_Static_assert(sizeof(struct ib_user_mad_reg_req2) == 40, "registration layout");

unsigned int umad_agent_id(const struct umad_file *uf, const struct mad_agent *agent)
{
	unsigned int id;

	for (id = 0; id < UMAD_AGENTS; id++)
		if (uf->agents[id] == agent)
			break;
	return id;
}

static void agent_gone(struct umad_file *uf, unsigned int id)
{
	uf->agents[id] = NULL;
	uf->plain[0] &= ~(1U << id);
	uf->plain[1] &= ~(1U << id);
	umad_send_publish(uf);
}

static void on_gone(void *client, struct mad_agent *agent)
{
	struct umad_file *uf = client;
	unsigned int id = umad_agent_id(uf, agent);

	if (id < UMAD_AGENTS)
		agent_gone(uf, id);
}

static const struct mad_client_ops client_ops = {
	.recv = umad_receive,
	.gone = on_gone,
};

void umad_agents_drop(struct umad_file *uf)
{
	for (unsigned int id = 0; id < UMAD_AGENTS; id++) {
		struct mad_agent *agent = uf->agents[id];

		if (!agent)
			continue;
		agent_gone(uf, id);
		uf->dev->ops->mad_unregister(agent);
	}
}

/* --- registration --- */

static int check_qpn(struct umad_file *uf, uint32_t qpn)
{
	if (qpn > 1)
		return ibfs_fail(uf->file->ibfs, EINVAL, "%s/umad: register: qpn %u, not 0 or 1",
				 uf->where, qpn);
	return 0;
}

/* The lowest free id. */
static int free_id(struct umad_file *uf)
{
	unsigned int id = umad_agent_id(uf, NULL);

	if (id == UMAD_AGENTS)
		return ibfs_fail(uf->file->ibfs, ENOMEM, "%s/umad: register: the file has %u agents",
				 uf->where, UMAD_AGENTS);
	return (int)id;
}

/* Without a class an agent only sends: the rest of what it asks for means nothing. */
static int add_agent(struct umad_file *uf, unsigned int id, struct mad_reg *reg)
{
	struct mad_reg sender = {
		.qpn = reg->qpn,
		.rmpp_version = reg->rmpp_version,
		.user_rmpp = reg->user_rmpp,
	};
	struct mad_agent *agent;
	int ret;

	ret = uf->dev->ops->mad_register(uf->dev, uf->port, reg->mgmt_class ? reg : &sender,
					 &client_ops, uf, &agent);
	if (ret)
		return ret;
	uf->agents[id] = agent;
	if (uf->dev->ops->mad_sure && !reg->rmpp_version && !reg->user_rmpp)
		uf->plain[reg->qpn] |= 1U << id;
	umad_send_publish(uf);
	return 0;
}

static ssize_t register_agent(struct umad_file *uf, const void *in, void *out, size_t *out_len)
{
	struct ib_user_mad_reg_req req;
	struct mad_reg reg = { 0 };
	int id, ret;

	memcpy(&req, in, sizeof(req));
	ret = check_qpn(uf, req.qpn);
	if (ret)
		return ret;
	id = free_id(uf);
	if (id < 0)
		return id;
	reg.qpn = req.qpn;
	reg.mgmt_class = req.mgmt_class;
	reg.class_version = req.mgmt_class_version;
	reg.rmpp_version = req.rmpp_version;
	memcpy(reg.oui, req.oui, sizeof(reg.oui));
	memcpy(reg.methods, req.method_mask, sizeof(reg.methods));
	ret = add_agent(uf, (unsigned int)id, &reg);
	if (ret)
		return ret;
	uf->used = true;
	req.id = (uint32_t)id;
	memcpy(out, &req, sizeof(req));
	*out_len = sizeof(req);
	return 0;
}

static int check_flags(struct umad_file *uf, struct ib_user_mad_reg_req2 *req, void *out,
		       size_t *out_len)
{
	uint32_t flags = req->flags;

	if (!(flags & ~(uint32_t)IB_USER_MAD_REG_FLAGS_CAP))
		return 0;
	req->flags = IB_USER_MAD_REG_FLAGS_CAP;
	memcpy(out, req, sizeof(*req));
	*out_len = sizeof(*req);
	return ibfs_fail(uf->file->ibfs, EINVAL, "%s/umad: register: flags 0x%x, known are 0x%x",
			 uf->where, flags, IB_USER_MAD_REG_FLAGS_CAP);
}

static int fill_reg2(struct umad_file *uf, const struct ib_user_mad_reg_req2 *req,
		     struct mad_reg *reg)
{
	if (req->mgmt_class && req->oui >> 24)
		return ibfs_fail(uf->file->ibfs, EINVAL, "%s/umad: register: oui 0x%x has over 24 bits",
				 uf->where, req->oui);
	*reg = (struct mad_reg){
		.qpn = (uint8_t)req->qpn,
		.mgmt_class = req->mgmt_class,
		.class_version = req->mgmt_class_version,
		.rmpp_version = req->rmpp_version,
		.user_rmpp = req->flags & IB_USER_MAD_USER_RMPP,
		.oui = { (uint8_t)(req->oui >> 16), (uint8_t)(req->oui >> 8), (uint8_t)req->oui },
		.methods = { req->method_mask[0], req->method_mask[1] },
	};
	return 0;
}

static ssize_t register_agent2(struct umad_file *uf, const void *in, void *out, size_t *out_len)
{
	struct ib_user_mad_reg_req2 req;
	struct mad_reg reg = { 0 };
	int id, ret;

	memcpy(&req, in, sizeof(req));
	ret = check_qpn(uf, req.qpn);
	if (ret)
		return ret;
	ret = check_flags(uf, &req, out, out_len);
	if (ret)
		return ret;
	id = free_id(uf);
	if (id < 0)
		return id;
	ret = fill_reg2(uf, &req, &reg);
	if (ret)
		return ret;
	ret = add_agent(uf, (unsigned int)id, &reg);
	if (ret)
		return ret;
	if (!uf->used)
		uf->pkey_index = true;
	uf->used = true;
	umad_send_publish(uf);
	req.id = (uint32_t)id;
	memcpy(out, &req, sizeof(req));
	*out_len = sizeof(req);
	return 0;
}

static ssize_t unregister_agent(struct umad_file *uf, const void *in, void *out, size_t *out_len)
{
	struct mad_agent *agent;
	uint32_t id;

	(void)out;
	(void)out_len;
	memcpy(&id, in, sizeof(id));
	if (id >= UMAD_AGENTS || !uf->agents[id])
		return ibfs_fail(uf->file->ibfs, EINVAL, "%s/umad: unregister: no agent %u",
				 uf->where, id);
	agent = uf->agents[id];
	agent_gone(uf, id);
	uf->dev->ops->mad_unregister(agent);
	return 0;
}

static ssize_t enable_pkey(struct umad_file *uf, const void *in, void *out, size_t *out_len)
{
	(void)in;
	(void)out;
	(void)out_len;
	if (uf->used)
		return ibfs_fail(uf->file->ibfs, EINVAL, "%s/umad: enable_pkey after an agent was registered",
				 uf->where);
	uf->pkey_index = true;
	umad_send_publish(uf);
	return 0;
}

/* --- ioctl --- */

static const struct umad_ioctl {
	unsigned int cmd;
	bool device;			/* needs the device: EPIPE without */
	ssize_t (*run)(struct umad_file *uf, const void *in, void *out, size_t *out_len);
} umad_ioctls[] = {
	{ IB_USER_MAD_REGISTER_AGENT, true, register_agent },
	{ IB_USER_MAD_UNREGISTER_AGENT, false, unregister_agent },
	{ IB_USER_MAD_ENABLE_PKEY, false, enable_pkey },
	{ IB_USER_MAD_REGISTER_AGENT2, true, register_agent2 },
	{ IBFS_UMAD_RING, true, umad_ring_make },
};

static const struct umad_ioctl *find_ioctl(unsigned int cmd)
{
	for (size_t i = 0; i < sizeof(umad_ioctls) / sizeof(umad_ioctls[0]); i++)
		if (umad_ioctls[i].cmd == cmd)
			return &umad_ioctls[i];
	return NULL;
}

ssize_t umad_ioctl(struct file *file, struct fs_req *req, unsigned int cmd, uint64_t arg,
		   const void *in, size_t in_len, void *out, size_t out_room, size_t *out_len)
{
	const struct umad_ioctl *call = find_ioctl(cmd);
	struct umad_file *uf = file->priv;

	(void)req;
	(void)arg;
	umad_send_drain(uf);
	if (!call)
		return -ENOTTY;
	if (call->device && !uf->dev)
		return umad_gone(uf, EPIPE);
	if ((_IOC_DIR(cmd) & _IOC_WRITE && in_len < _IOC_SIZE(cmd)) ||
	    (_IOC_DIR(cmd) & _IOC_READ && out_room < _IOC_SIZE(cmd)))
		return -EFAULT;
	return call->run(uf, in, out, out_len);
}
