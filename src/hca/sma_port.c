/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PortInfo, IBA 14.2.5.6: reading it out of struct port, and Set: all fields
 * are checked before the first is written. Link and port state change through
 * fabric/port.c.
 */
#include <endian.h>

#include "hca/sma.h"

#define PORT_NUM_MASK	0xff	/* of the modifier; its top bit: the manager knows extended speeds */
#define MTU_MAX		5
#define EXT_MASK	0x0f	/* LinkSpeedExt's speeds; those beyond are LinkSpeedExt2's */
#define EXT2_SHIFT	4

/* The port that the modifier names; 0 is, on a CA, the one that was asked. */
static struct port *info_port(const struct sma_req *req)
{
	unsigned int num = req->mod & PORT_NUM_MASK;

	if (!num && req->node->type != NODE_SWITCH)
		return req->end;
	return node_port(req->node, num);
}

static bool is_end_port(const struct port *port)
{
	return !port->num || port->node->type != NODE_SWITCH;
}

static uint8_t ext_enabled_field(const struct port *port)
{
	uint8_t enabled = port->speed_ext_enabled & EXT_MASK;

	return enabled || !(port->speed_ext_supported & EXT_MASK) ? enabled : SPEED_EXT_OFF;
}

static uint8_t ext2_field(const struct port *port)
{
	uint8_t enabled = port->speed_ext_enabled >> EXT2_SHIFT;
	uint8_t supported = port->speed_ext_supported >> EXT2_SHIFT;

	if (!enabled && supported)
		enabled = SPEED_EXT2_OFF;
	return (port->speed_ext_active >> EXT2_SHIFT) << 5 | supported << 3 | enabled;
}

static void get_link_fields(const struct port *port, struct smp_port_info *info)
{
	info->width_enabled = port->width_enabled;
	info->width_supported = port->width_supported;
	info->width_active = port->width_active;
	info->speed_state = port->speed_supported << 4 | port->state;
	info->phys_default = port->phys_state << 4 | port->link_down_default;
	info->speed = port->speed_active << 4 | port->speed_enabled;
	info->mtu_smsl = port->neighbor_mtu << 4 | port->sm_sl;
	info->vl_init = port->vl_cap << 4 | port->init_type;
	info->vl_high_limit = port->vl_high_limit;
	if (port->vl_cap > 1) {
		info->vlarb_high_cap = VLARB_CAP;
		info->vlarb_low_cap = VLARB_CAP;
	}
	info->init_mtu = port->init_reply << 4 | port->mtu_cap;
	info->stall_hoq = port->vl_stall << 5 | port->hoq_life;
	info->oper_enforce = port->oper_vls << 4 | port->part_enforce;
	info->errors = port->phy_errors << 4 | port->overrun_errors;
	info->speed_ext = (port->speed_ext_active & EXT_MASK) << 4 |
			  (port->speed_ext_supported & EXT_MASK);
	info->speed_ext_enabled = ext_enabled_field(port);
	info->speed_ext2 = ext2_field(port);
}

uint16_t sma_get_port_info(struct sma_req *req)
{
	const struct port *port = info_port(req);
	struct smp_port_info *info = req->data;

	if (!port)
		return MAD_BAD_VALUE;
	if (sma_mkey_visible(req))
		info->mkey = htobe64(port->mkey);
	info->gid_prefix = htobe64(port->gid_prefix);
	info->lid = htobe16(port->lid);
	info->sm_lid = htobe16(port->sm_lid);
	info->cap_mask = htobe32(port->cap_mask);
	info->diag_code = htobe16(port->diag_code);
	info->mkey_lease = htobe16(port->mkey_lease);
	info->local_port = req->in->num;
	info->mkey_lmc = port->mkey_protect << 6 | port->lmc;
	info->mkey_violations = htobe16(port->mkey_violations);
	info->pkey_violations = htobe16(port->pkey_violations);
	info->qkey_violations = htobe16(port->qkey_violations);
	info->rereg_timeout = port->subnet_timeout;
	if (req->reregister)
		info->rereg_timeout |= PORT_INFO_REREGISTER;
	info->resp_time = port->resp_time;
	info->cap_mask2 = htobe16(port->cap_mask2);
	if (is_end_port(port))
		info->guid_cap = req->node->num_guids < UINT8_MAX ? req->node->num_guids : UINT8_MAX;
	get_link_fields(port, info);
	return MAD_OK;
}

/* A LID to be set: a unicast one, or what is there already (0 before any). */
static bool lid_ok(uint16_t lid, uint16_t now)
{
	return lid == now || (lid && lid <= LID_UCAST_LAST);
}

static bool end_fields_ok(const struct port *port, const struct smp_port_info *info)
{
	uint16_t lid = be16toh(info->lid);
	unsigned int lmc = info->mkey_lmc & 7, lids = 1U << lmc;

	if (!lid_ok(lid, port->lid) || !lid_ok(be16toh(info->sm_lid), port->sm_lid))
		return false;
	if (lmc && !port->num && !port->node->sw->enhanced_port0)
		return false;
	return !(lid & (lids - 1)) && lid + lids - 1 <= LID_UCAST_LAST;
}

/*
 * Set's states, 14.2.5.6: up one step at a time, down from anywhere; a physical
 * state only by itself or with Down.
 */
static bool state_ok(const struct port *port, const struct smp_port_info *info)
{
	unsigned int state = info->speed_state & 0xf, phys = info->phys_default >> 4;

	if (phys > PHYS_DISABLED)
		return false;
	switch (state) {
	case PORT_NOP:
	case PORT_DOWN:
		return true;
	case PORT_ARMED:
		return !phys && (port->state == PORT_INIT || port->state == PORT_ARMED);
	case PORT_ACTIVE:
		return !phys && (port->state == PORT_ARMED || port->state == PORT_ACTIVE);
	default:
		return false;
	}
}

/* What a link may use, as Set asks for it. */
struct link_masks {
	uint8_t width, speed, ext;
};

static bool width_speed_ok(const struct port *port, const struct smp_port_info *info,
			   struct link_masks *masks)
{
	uint8_t width = info->width_enabled, speed = info->speed & 0xf;

	masks->width = port->width_enabled;
	if (width == WIDTH_ALL)
		masks->width = port->width_supported;
	else if (width & ~port->width_supported)
		return false;
	else if (width)
		masks->width = width;

	masks->speed = port->speed_enabled;
	if (speed == SPEED_ALL)
		masks->speed = port->speed_supported;
	else if (speed & ~port->speed_supported)
		return false;
	else if (speed)
		masks->speed = speed;
	return true;
}

static bool speed_ext_ok(const struct port *port, const struct smp_port_info *info,
			 struct link_masks *masks)
{
	uint8_t ext = info->speed_ext_enabled & 0x1f, ext2 = info->speed_ext2 & 7;
	uint8_t supported = port->speed_ext_supported & EXT_MASK;
	uint8_t supported2 = port->speed_ext_supported >> EXT2_SHIFT;
	uint8_t low = port->speed_ext_enabled & EXT_MASK;
	uint8_t high = port->speed_ext_enabled >> EXT2_SHIFT;

	if (ext == SPEED_EXT_OFF)
		low = 0;
	else if (ext == SPEED_EXT_ALL)
		low = supported;
	else if (ext & ~supported)
		return false;
	else if (ext)
		low = ext;

	if (ext2 == SPEED_EXT2_OFF)
		high = 0;
	else if (ext2 == SPEED_EXT2_ALL)
		high = supported2;
	else if (ext2 & ~supported2)
		return false;
	else if (ext2)
		high = ext2;
	masks->ext = high << EXT2_SHIFT | low;
	return true;
}

/* NeighborMTU and OperationalVLs; a switch's port 0 has no neighbour. */
static bool mtu_vls_ok(const struct port *port, const struct smp_port_info *info)
{
	unsigned int mtu = info->mtu_smsl >> 4, vls = info->oper_enforce >> 4;

	if (vls > port->vl_cap)
		return false;
	if (mtu == port->neighbor_mtu || (!mtu && !port->num))
		return true;
	return mtu && mtu <= MTU_MAX && mtu <= port->mtu_cap;
}

static bool link_fields_ok(const struct port *port, const struct smp_port_info *info,
			   struct link_masks *masks)
{
	if (!mtu_vls_ok(port, info))
		return false;
	if (!port->num)
		return true;
	return state_ok(port, info) && (info->phys_default & 0xf) <= PHYS_POLLING &&
	       width_speed_ok(port, info, masks) && speed_ext_ok(port, info, masks);
}

/* Violation counters can only be cleared: any value but 0 leaves them. */
static void clear_if_zero(uint16_t *counter, __be16 field)
{
	if (!field)
		*counter = 0;
}

/* The end port's own part; returns PORT_EV_* of what changed. */
static unsigned int set_end_fields(struct port *port, const struct smp_port_info *info)
{
	unsigned int events = 0;
	uint16_t lid = be16toh(info->lid), sm_lid = be16toh(info->sm_lid);
	uint8_t lmc = info->mkey_lmc & 7, sm_sl = info->mtu_smsl & 0xf;

	if (lid != port->lid || lmc != port->lmc)
		events |= PORT_EV_LID;
	if (sm_lid != port->sm_lid || sm_sl != port->sm_sl)
		events |= PORT_EV_SM;
	if (be64toh(info->gid_prefix) != port->gid_prefix)
		events |= PORT_EV_GID;
	if (info->rereg_timeout & PORT_INFO_REREGISTER && port->cap_mask & CAP_REREGISTER)
		events |= PORT_EV_REREGISTER;
	port->mkey = be64toh(info->mkey);
	port->gid_prefix = be64toh(info->gid_prefix);
	port->lid = lid;
	port->lmc = lmc;
	port->sm_lid = sm_lid;
	port->sm_sl = sm_sl;
	port->mkey_lease = be16toh(info->mkey_lease);
	port->mkey_protect = info->mkey_lmc >> 6;
	port->init_reply = info->init_mtu >> 4;
	port->subnet_timeout = info->rereg_timeout & 0x1f;
	clear_if_zero(&port->mkey_violations, info->mkey_violations);
	clear_if_zero(&port->pkey_violations, info->pkey_violations);
	clear_if_zero(&port->qkey_violations, info->qkey_violations);
	if (sm_lid)	/* a manager has taken over */
		port->node->fabric->static_owned = false;
	return events;
}

static void set_link_fields(struct port *port, const struct smp_port_info *info)
{
	unsigned int mtu = info->mtu_smsl >> 4, vls = info->oper_enforce >> 4;

	if (mtu)
		port->neighbor_mtu = mtu;
	if (vls)
		port->oper_vls = vls;
	port->vl_high_limit = info->vl_high_limit;
	port->phy_errors = info->errors >> 4;
	port->overrun_errors = info->errors & 0xf;
	if (!port->num)
		return;
	if (info->phys_default & 0xf)
		port->link_down_default = info->phys_default & 0xf;
	if (port->node->type == NODE_SWITCH) {
		port->vl_stall = info->stall_hoq >> 5;
		port->hoq_life = info->stall_hoq & 0x1f;
		if (port->node->sw->part_enforce_cap)
			port->part_enforce = info->oper_enforce & 0xc;
	}
}

/* New widths and speeds are tried by training anew; returns CHANGE_*. */
static unsigned int set_masks(struct port *port, const struct link_masks *masks)
{
	unsigned int changes = 0;

	if (masks->width != port->width_enabled)
		changes |= CHANGE_WIDTH;
	if (masks->speed != port->speed_enabled || masks->ext != port->speed_ext_enabled)
		changes |= CHANGE_SPEED;
	port->width_enabled = masks->width;
	port->speed_enabled = masks->speed;
	port->speed_ext_enabled = masks->ext;
	if (changes)
		port_retrain(port);
	return changes;
}

static void set_state(struct port *port, unsigned int state, unsigned int phys)
{
	if (phys)
		port_set_phys(port, phys);
	else if (state == PORT_DOWN || (state != PORT_NOP && state != port->state))
		port_set_state(port, state);
}

/*
 * The link's part. That a Set takes a port down is no news to the SM: neither
 * trap 128 nor PortStateChange follows from it on this node (14.2.5.4). That it
 * then trains is the link's own doing.
 */
static void set_link(struct sma_req *req, struct port *port, const struct smp_port_info *info,
		     const struct link_masks *masks)
{
	unsigned int state = info->speed_state & 0xf, phys = info->phys_default >> 4, changes;
	struct switch_info *sw = req->node->sw;
	struct sma_state *agent = NULL;
	bool state_change = sw && sw->port_state_change;

	if (sw && (phys || state == PORT_DOWN))
		agent = sma_state(req->end);
	if (agent)
		agent->setting = port;
	changes = set_masks(port, masks);
	set_state(port, state, phys);
	if (agent)
		agent->setting = NULL;
	if (sw && port->state == PORT_DOWN)
		sw->port_state_change = state_change;
	if (changes)
		sma_local_change(req->end, changes);
}

uint16_t sma_set_port_info(struct sma_req *req)
{
	/* The answer is written over the request. */
	const struct smp_port_info info = *(const struct smp_port_info *)req->data;
	struct port *port = info_port(req);
	struct link_masks masks = { 0 };
	unsigned int events = 0;

	if (!port || (req->node->type != NODE_SWITCH && port != req->end))
		return MAD_BAD_VALUE;
	if (!link_fields_ok(port, &info, &masks))
		return MAD_BAD_VALUE;
	if (is_end_port(port)) {
		if (!end_fields_ok(port, &info))
			return MAD_BAD_VALUE;
		events = set_end_fields(port, &info);
		req->reregister = events & PORT_EV_REREGISTER;
	}
	set_link_fields(port, &info);
	if (port->num)
		set_link(req, port, &info, &masks);
	if (events)
		port_event(port, events);
	return MAD_OK;
}
