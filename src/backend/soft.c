/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The soft backend: struct backend_ops over src/hca's HCAs. Attributes come
 * from the node's PortInfo and NodeInfo; what the verbs engine can do it adds
 * itself.
 */
#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "fabric/fabric.h"
#include "hca/agent.h"
#include "hca/hca.h"
#include "hca/verbs.h"
#include "ibfs/backend.h"
#include "ibfs/ibfs.h"

#define CAP_IS_SM	(1U << 1)	/* PortInfo:CapabilityMask */
#define MAX_MESSAGE	(1U << 31)
#define PAGE_SIZES	0xfffff000U

/* Where a counter is, and the largest value that its field holds, 16.1.3.5 and 16.1.4. */
static const struct {
	uint8_t offset, size;
	uint64_t max;
} counters[CNT_MAX] = {
#define COUNTER(name, field, bits) \
	[name] = { offsetof(struct port_counters, field), \
		   sizeof(((struct port_counters *)0)->field), UINT64_MAX >> (64 - (bits)) }
	COUNTER(CNT_SYMBOL_ERROR, symbol_errors, 16),
	COUNTER(CNT_LINK_ERROR_RECOVERY, link_recovers, 8),
	COUNTER(CNT_LINK_DOWNED, link_downed, 8),
	COUNTER(CNT_PORT_RCV_ERRORS, rcv_errors, 16),
	COUNTER(CNT_PORT_RCV_REMOTE_PHYSICAL_ERRORS, rcv_rem_phys_errors, 16),
	COUNTER(CNT_PORT_RCV_SWITCH_RELAY_ERRORS, rcv_switch_relay_errors, 16),
	COUNTER(CNT_PORT_XMIT_DISCARDS, xmit_discards, 16),
	COUNTER(CNT_PORT_XMIT_CONSTRAINT_ERRORS, xmit_constraint_errors, 8),
	COUNTER(CNT_PORT_RCV_CONSTRAINT_ERRORS, rcv_constraint_errors, 8),
	COUNTER(CNT_LOCAL_LINK_INTEGRITY_ERRORS, local_link_integrity_errors, 4),
	COUNTER(CNT_EXCESSIVE_BUFFER_OVERRUN_ERRORS, excess_overrun_errors, 4),
	COUNTER(CNT_VL15_DROPPED, vl15_dropped, 16),
	COUNTER(CNT_PORT_XMIT_DATA, xmit_data, 64),
	COUNTER(CNT_PORT_RCV_DATA, rcv_data, 64),
	COUNTER(CNT_PORT_XMIT_PACKETS, xmit_pkts, 64),
	COUNTER(CNT_PORT_RCV_PACKETS, rcv_pkts, 64),
	COUNTER(CNT_UNICAST_XMIT_PACKETS, unicast_xmit_pkts, 64),
	COUNTER(CNT_UNICAST_RCV_PACKETS, unicast_rcv_pkts, 64),
	COUNTER(CNT_MULTICAST_XMIT_PACKETS, multicast_xmit_pkts, 64),
	COUNTER(CNT_MULTICAST_RCV_PACKETS, multicast_rcv_pkts, 64),
	COUNTER(CNT_PORT_XMIT_WAIT, xmit_wait, 32),
#undef COUNTER
};

static struct port *soft_port(struct ibfs_device *dev, unsigned int num)
{
	struct hca_port *hp = hca_port(hca_of(dev), num);

	return hp ? hp->port : NULL;
}

static int soft_query_device(struct ibfs_device *dev, struct ibv_device_attr_ex *attr)
{
	struct hca *hca = hca_of(dev);
	struct ibv_device_attr *a = &attr->orig_attr;

	memset(attr, 0, sizeof(*attr));
	snprintf(a->fw_ver, sizeof(a->fw_ver), "%s", dev->fw_ver);
	a->node_guid = htobe64(dev->node_guid);
	a->sys_image_guid = htobe64(dev->sys_image_guid);
	a->vendor_id = hca->node->vendor_id;
	a->vendor_part_id = hca->node->device_id;
	a->hw_ver = dev->hw_rev;
	a->page_size_cap = PAGE_SIZES;
	a->device_cap_flags = IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |
			      IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
			      IBV_DEVICE_SHUTDOWN_PORT | IBV_DEVICE_INIT_TYPE;
	a->max_pkeys = hca->node->num_pkeys;
	a->phys_port_cnt = dev->num_ports - dev->first_port + 1;
	attr->phys_port_cnt_ex = a->phys_port_cnt;
	if (hca->engine && hca->engine->query_device)
		hca->engine->query_device(hca, attr);
	return 0;
}

/* libibverbs' speeds go on from SDR, DDR, QDR by FDR10, FDR, ...; 8 bits end at NDR. */
static uint8_t verbs_speed(const struct port *port)
{
	unsigned int ext = port->speed_ext_active;

	if (!ext)
		return port->speed_active;
	return ext > SPEED_NDR ? SPEED_NDR << 4 : ext << 4;
}

static int soft_query_port(struct ibfs_device *dev, unsigned int num, struct ibv_port_attr *attr)
{
	const struct port *port = soft_port(dev, num);

	if (!port)
		return -EINVAL;
	*attr = (struct ibv_port_attr) {
		.state = (enum ibv_port_state)port->state,
		.max_mtu = (enum ibv_mtu)port->mtu_cap,
		.active_mtu = (enum ibv_mtu)port->neighbor_mtu,
		.gid_tbl_len = port->node->num_guids,
		.port_cap_flags = port->cap_mask,
		.max_msg_sz = MAX_MESSAGE,
		.bad_pkey_cntr = port->pkey_violations,
		.qkey_viol_cntr = port->qkey_violations,
		.pkey_tbl_len = port->node->num_pkeys,
		.lid = port->lid,
		.sm_lid = port->sm_lid,
		.lmc = port->lmc,
		.max_vl_num = port->vl_cap,
		.sm_sl = port->sm_sl,
		.subnet_timeout = port->subnet_timeout,
		.init_type_reply = port->init_reply,
		.active_width = port->width_active,
		.active_speed = verbs_speed(port),
		.phys_state = port->phys_state,
		.link_layer = IBV_LINK_LAYER_INFINIBAND,
		.port_cap_flags2 = port->cap_mask2,
	};
	return 0;
}

static int soft_query_gid(struct ibfs_device *dev, unsigned int num, unsigned int index,
			  union ibv_gid *gid)
{
	const struct port *port = soft_port(dev, num);
	uint64_t guid;

	if (!port || index >= port->node->num_guids)
		return -EINVAL;
	guid = port_gid_guid(port, index);
	gid->global.subnet_prefix = htobe64(guid ? port->gid_prefix : 0);
	gid->global.interface_id = htobe64(guid);
	return 0;
}

static int soft_query_pkey(struct ibfs_device *dev, unsigned int num, unsigned int index,
			   uint16_t *pkey)
{
	const struct port *port = soft_port(dev, num);

	if (!port || index >= port->node->num_pkeys)
		return -EINVAL;
	*pkey = port_pkey(port, index);
	return 0;
}

static int soft_set_node_desc(struct ibfs_device *dev, const char desc[64])
{
	struct node *node = hca_of(dev)->node;

	snprintf(node->desc, sizeof(node->desc), "%.64s", desc);
	snprintf(dev->node_desc, sizeof(dev->node_desc), "%s", node->desc);
	sma_desc_changed(node);
	return 0;
}

static int soft_set_sys_image_guid(struct ibfs_device *dev, uint64_t guid)
{
	hca_of(dev)->node->sysimg_guid = guid;
	dev->sys_image_guid = guid;
	return 0;
}

static void change_caps(struct port *port, uint32_t set, uint32_t clear)
{
	uint32_t caps = (port->cap_mask | set) & ~clear;

	if (caps == port->cap_mask)
		return;
	port->cap_mask = caps;
	port_event(port, PORT_EV_CAPMASK);
}

static int soft_modify_port(struct ibfs_device *dev, unsigned int num, uint32_t set_cap,
			    uint32_t clr_cap, bool reset_qkey_cntr, bool shutdown, int init_type)
{
	struct port *port = soft_port(dev, num);

	if (!port || init_type > 0xf || init_type < -1)
		return -EINVAL;
	if (init_type >= 0)
		port->init_type = init_type;
	if (reset_qkey_cntr)
		port->qkey_violations = 0;
	change_caps(port, set_cap, clr_cap);
	return shutdown ? port_set_phys(port, PHYS_DISABLED) : 0;
}

static int soft_set_issm(struct ibfs_device *dev, unsigned int num, bool on)
{
	return soft_modify_port(dev, num, on ? CAP_IS_SM : 0, on ? 0 : CAP_IS_SM, false, false, -1);
}

static uint8_t *counter_field(struct port *port, enum counter which)
{
	return (uint8_t *)&port->cnt + counters[which].offset;
}

static int soft_query_counter(struct ibfs_device *dev, unsigned int num, enum counter which,
			      uint64_t *value)
{
	struct port *port = soft_port(dev, num);
	uint32_t narrow;

	if (!port || which >= CNT_MAX)
		return -EINVAL;
	if (counters[which].size == sizeof(*value)) {
		memcpy(value, counter_field(port, which), sizeof(*value));
	} else {
		memcpy(&narrow, counter_field(port, which), sizeof(narrow));
		*value = narrow;
	}
	if (*value > counters[which].max)
		*value = counters[which].max;
	return 0;
}

static int soft_clear_counter(struct ibfs_device *dev, unsigned int num, enum counter which)
{
	struct port *port = soft_port(dev, num);

	if (!port || which >= CNT_MAX)
		return -EINVAL;
	memset(counter_field(port, which), 0, counters[which].size);
	return 0;
}

static int soft_mad_register(struct ibfs_device *dev, unsigned int num, const struct mad_reg *reg,
			     const struct mad_client_ops *ops, void *client,
			     struct mad_agent **agent)
{
	struct hca_port *hp = hca_port(hca_of(dev), num);

	return hp ? mad_agent_register(hp->mad, reg, ops, client, agent) : -EINVAL;
}

static int soft_query_hw_counter(struct ibfs_device *dev, unsigned int port, unsigned int index,
				 uint64_t *value)
{
	const struct hca_port *hp = hca_port(hca_of(dev), port);

	if (!hp || index >= STAT_MAX)
		return -EINVAL;
	*value = hp->stats[index];
	return 0;
}

static void soft_remove(struct ibfs_device *dev)
{
	hca_remove(hca_of(dev));
	hca_free(hca_of(dev));
}

static const struct backend_ops soft_ops = {
	.name = "soft",
	.query_device = soft_query_device,
	.query_port = soft_query_port,
	.query_gid = soft_query_gid,
	.query_pkey = soft_query_pkey,
	.set_node_desc = soft_set_node_desc,
	.set_sys_image_guid = soft_set_sys_image_guid,
	.modify_port = soft_modify_port,
	.query_counter = soft_query_counter,
	.clear_counter = soft_clear_counter,
	.mad_register = soft_mad_register,
	.mad_unregister = mad_agent_unregister,
	.mad_sure = true,
	.mad_send = mad_agent_send,
	.set_issm = soft_set_issm,
	.fabric_port = soft_port,
	.verbs = &soft_verbs_ops,
	.hw_counters = hca_stat_names,
	.query_hw_counter = soft_query_hw_counter,
	.remove = soft_remove,
};

int soft_device_add(struct ibfs *ibfs, const char *name, const char *node_id)
{
	struct node *node = fabric_find(ibfs->fabric, node_id);
	struct hca *hca;
	int rc;

	if (!node)
		return -ENOENT;
	rc = hca_new(node, &soft_ops, name, &hca);
	if (rc)
		return rc;
	rc = verbs_start(hca);
	if (!rc)
		rc = device_add(ibfs, &hca->dev);
	if (rc)
		hca_free(hca);
	return rc;
}
