/* SPDX-License-Identifier: BSD-2-Clause */
/* uverbs commands that make the context and ask the device. */
#include <errno.h>
#include <endian.h>
#include <stdio.h>

#include "fs/uverbs_ioctl.h"

#define NO_VENDOR 0xffffff	/* as rxe has it, when the device doesn't say */

int uv_get_context(struct uv_cmd *cmd)
{
	struct ib_uverbs_get_context_resp resp = { .num_comp_vectors = 1 };
	struct uverbs_file *uf = cmd->uf;

	if (uf->context)
		return -EINVAL;
	cmd->made_events = uv_events_new(uf, &cmd->req->cred, true);
	if (!cmd->made_events)
		return -ENOMEM;
	uf->context = true;
	cmd->made_context = true;
	resp.async_fd = cmd->made_events->id;
	uv_respond(cmd, &resp, sizeof(resp));
	return 0;
}

/* "1.2.3" as the number that providers take apart again. */
static uint64_t fw_number(const char *text)
{
	unsigned int major = 0, minor = 0, sub = 0;

	if (sscanf(text, "%u.%u.%u", &major, &minor, &sub) < 1)
		return 0;
	return (uint64_t)major << 32 | (uint64_t)(minor & 0xffff) << 16 | (sub & 0xffff);
}

static void fill_device(const struct ibfs_device *dev, const struct ibv_device_attr *attr,
			struct ib_uverbs_query_device_resp *resp)
{
	*resp = (struct ib_uverbs_query_device_resp){
		.fw_ver = fw_number(dev->fw_ver),
		.node_guid = htobe64(dev->node_guid),
		.sys_image_guid = htobe64(dev->sys_image_guid),
		.max_mr_size = attr->max_mr_size,
		.page_size_cap = attr->page_size_cap ? attr->page_size_cap : 4096,
		.vendor_id = attr->vendor_id ? attr->vendor_id : NO_VENDOR,
		.vendor_part_id = attr->vendor_part_id,
		.hw_ver = attr->hw_ver,
		.max_qp = attr->max_qp,
		.max_qp_wr = attr->max_qp_wr,
		.device_cap_flags = attr->device_cap_flags,
		.max_sge = attr->max_sge,
		.max_sge_rd = attr->max_sge_rd ? attr->max_sge_rd : attr->max_sge,
		.max_cq = attr->max_cq,
		.max_cqe = attr->max_cqe,
		.max_mr = attr->max_mr,
		.max_pd = attr->max_pd,
		.max_qp_rd_atom = attr->max_qp_rd_atom,
		.max_res_rd_atom = attr->max_res_rd_atom,
		.max_qp_init_rd_atom = attr->max_qp_init_rd_atom,
		.atomic_cap = attr->atomic_cap,
		.max_mw = attr->max_mw,
		.max_mcast_grp = attr->max_mcast_grp,
		.max_mcast_qp_attach = attr->max_mcast_qp_attach,
		.max_total_mcast_qp_attach = attr->max_total_mcast_qp_attach,
		.max_ah = attr->max_ah,
		.max_srq = attr->max_srq,
		.max_srq_wr = attr->max_srq_wr,
		.max_srq_sge = attr->max_srq_sge,
		.max_pkeys = attr->max_pkeys,
		.local_ca_ack_delay = attr->local_ca_ack_delay,
		.phys_port_cnt = attr->phys_port_cnt,
	};
}

int uv_query_device(struct uv_cmd *cmd)
{
	struct ibfs_device *dev = cmd->uf->dev;
	struct ib_uverbs_query_device_resp resp;
	struct ibv_device_attr_ex attr = { 0 };
	int err = dev->ops->query_device(dev, &attr);

	if (err)
		return err;
	fill_device(dev, &attr.orig_attr, &resp);
	uv_respond(cmd, &resp, sizeof(resp));
	return 0;
}

int uv_ex_query_device(struct uv_cmd *cmd)
{
	struct ibfs_device *dev = cmd->uf->dev;
	struct ib_uverbs_ex_query_device_resp resp = { 0 };
	struct ib_uverbs_ex_query_device req;
	struct ibv_device_attr_ex attr = { 0 };
	int err = uv_request_ex(cmd, &req, sizeof(req));

	if (err)
		return err;
	if (req.comp_mask || req.reserved)
		return -EINVAL;
	err = dev->ops->query_device(dev, &attr);
	if (err)
		return err;
	fill_device(dev, &attr.orig_attr, &resp.base);
	resp.response_length = cmd->out_len < sizeof(resp) ? cmd->out_len : sizeof(resp);
	resp.device_cap_flags_ex = attr.device_cap_flags_ex;
	resp.odp_caps = (struct ib_uverbs_odp_caps){
		.general_caps = attr.odp_caps.general_caps,
		.per_transport_caps = {
			.rc_odp_caps = attr.odp_caps.per_transport_caps.rc_odp_caps,
			.uc_odp_caps = attr.odp_caps.per_transport_caps.uc_odp_caps,
			.ud_odp_caps = attr.odp_caps.per_transport_caps.ud_odp_caps,
		},
	};
	resp.xrc_odp_caps = attr.xrc_odp_caps;
	resp.cq_moderation_caps.max_cq_moderation_count = attr.cq_mod_caps.max_cq_count;
	resp.cq_moderation_caps.max_cq_moderation_period = attr.cq_mod_caps.max_cq_period;
	uv_respond(cmd, &resp, sizeof(resp));
	return 0;
}

int uv_port_answer(struct ibfs_device *dev, uint32_t port,
		   struct ib_uverbs_query_port_resp_ex *resp)
{
	struct ibv_port_attr attr = { 0 };
	int err;

	if (port < dev->first_port || port > dev->num_ports)
		return -EINVAL;
	err = dev->ops->query_port(dev, port, &attr);
	if (err)
		return err;
	resp->port_cap_flags2 = attr.port_cap_flags2;
	resp->legacy_resp = (struct ib_uverbs_query_port_resp){
		.port_cap_flags = attr.port_cap_flags,
		.max_msg_sz = attr.max_msg_sz,
		.bad_pkey_cntr = attr.bad_pkey_cntr,
		.qkey_viol_cntr = attr.qkey_viol_cntr,
		.gid_tbl_len = attr.gid_tbl_len,
		.pkey_tbl_len = attr.pkey_tbl_len,
		.lid = attr.lid,
		.sm_lid = attr.sm_lid,
		.state = attr.state,
		.max_mtu = attr.max_mtu,
		.active_mtu = attr.active_mtu,
		.lmc = attr.lmc,
		.max_vl_num = attr.max_vl_num,
		.sm_sl = attr.sm_sl,
		.subnet_timeout = attr.subnet_timeout,
		.init_type_reply = attr.init_type_reply,
		.active_width = attr.active_width,
		.active_speed = attr.active_speed,
		.phys_state = attr.phys_state,
		.link_layer = attr.link_layer,
		.flags = attr.flags,
	};
	return 0;
}

int uv_query_port(struct uv_cmd *cmd)
{
	struct ib_uverbs_query_port_resp_ex resp;
	struct ib_uverbs_query_port req;
	int err;

	uv_request(cmd, &req, sizeof(req));
	err = uv_port_answer(cmd->uf->dev, req.port_num, &resp);
	if (!err)
		uv_respond(cmd, &resp.legacy_resp, sizeof(resp.legacy_resp));
	return err;
}
