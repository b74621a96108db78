/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port by itself: its tables, which exist only once they were written, and
 * what it reports. The state machine, which needs the other end, is in link.c.
 * IBA 14.2.5.6 to 14.2.5.9, 10.9.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"
#include "fabric/link.h"
#include "fabric/wire.h"

#define PKEY_BASE		0x7fff	/* the key without its membership bit */
#define PKEY_FULL		0x8000
#define VLARB_BLOCKS		4

#define CAP_MASK_END_PORT	(IBV_PORT_NOTICE_SUP | IBV_PORT_TRAP_SUP | \
				 IBV_PORT_AUTO_MIGR_SUP | IBV_PORT_SL_MAP_SUP | \
				 IBV_PORT_SYS_IMAGE_GUID_SUP | IBV_PORT_EXTENDED_SPEEDS_SUP | \
				 IBV_PORT_CAP_MASK_NOTICE_SUP | IBV_PORT_CLIENT_REG_SUP)

/* Values of PortInfo:OperationalVLs */
static unsigned int data_vls(unsigned int code)
{
	static const uint8_t vls[] = { 1, 1, 2, 4, 8, 15 };

	return code < sizeof(vls) ? vls[code] : 1;
}

/* A switch's port 0 has no cable: it is always there. */
static bool is_inner(const struct port *port)
{
	return port->num == 0;
}

void port_init(struct port *port)
{
	bool inner = is_inner(port);

	port->state = inner ? PORT_ACTIVE : PORT_DOWN;
	port->phys_state = inner ? PHYS_LINKUP : PHYS_POLLING;
	port->link_down_default = PHYS_POLLING;
	port->width_supported = port->width_enabled = WIDTH_1X | WIDTH_4X;
	port->width_active = WIDTH_4X;
	port->speed_supported = port->speed_enabled = SPEED_SDR | SPEED_DDR | SPEED_QDR;
	port->speed_active = inner ? SPEED_QDR : SPEED_SDR;
	port->speed_ext_supported = port->speed_ext_enabled = SPEED_FDR | SPEED_EDR;
	port->mtu_cap = port->neighbor_mtu = IBV_MTU_4096;
	port->vl_cap = port->oper_vls = 4;
	port->vl_stall = 7;
	port->hoq_life = 16;
	port->phy_errors = port->overrun_errors = 8;
	port->gid_prefix = GID_PREFIX_DEFAULT;
	if (port == port_end(port)) {
		port->cap_mask = CAP_MASK_END_PORT;
		if (inner)
			port->cap_mask |= IBV_PORT_PKEY_SW_EXT_PORT_TRAP_SUP;
		port->subnet_timeout = 18;
		port->resp_time = 16;
	}
}

/* PortInfo:CapabilityMask2's bits that say what widths and speeds there are; 14.2.5.6 */
enum {
	CAP_MASK2_USED = 1 << 15,	/* of CapabilityMask */
	CAP2_WIDTH_2X = 1 << 4, CAP2_HDR = 1 << 5, CAP2_NDR = 1 << 10, CAP2_EXT_SPEEDS_2 = 1 << 11,
	CAP2_XDR = 1 << 12,
};

void port_capabilities(struct port *port)
{
	struct port *end = port_end(port);

	if (port->width_supported & WIDTH_2X)
		end->cap_mask2 |= CAP2_WIDTH_2X;
	if (port->speed_ext_supported & SPEED_HDR)
		end->cap_mask2 |= CAP2_HDR;
	if (port->speed_ext_supported & SPEED_NDR)
		end->cap_mask2 |= CAP2_NDR;
	if (port->speed_ext_supported & SPEED_XDR)
		end->cap_mask2 |= CAP2_EXT_SPEEDS_2 | CAP2_XDR;
	if (end->cap_mask2)
		end->cap_mask |= CAP_MASK2_USED;
}

void port_free_tables(struct port *port)
{
	free(port->pkeys);
	free(port->guids);
	free(port->sl2vl);
	free(port->vlarb);
	free(port->details);
}

struct port *port_end(struct port *port)
{
	return port->node->type == NODE_SWITCH ? &port->node->ports[0] : port;
}

void port_event(struct port *port, unsigned int events)
{
	struct node *node = port->node;
	bool by_link = port->state == PORT_DOWN || port->state == PORT_INIT;

	if (node->sw && (events & PORT_EV_STATE) && by_link)
		node->sw->port_state_change = true;
	if (node->ops->port_event)
		node->ops->port_event(port, events);
}

unsigned int port_num_pkeys(const struct port *port)
{
	const struct node *node = port->node;

	if (node->sw && !is_inner(port))
		return node->sw->part_enforce_cap;
	return node->num_pkeys;
}

uint16_t port_pkey(const struct port *port, unsigned int index)
{
	if (index >= port_num_pkeys(port))
		return 0;
	if (!port->pkeys)
		return index ? 0 : PKEY_DEFAULT;
	return port->pkeys[index];
}

int port_set_pkey(struct port *port, unsigned int index, uint16_t pkey)
{
	unsigned int num = port_num_pkeys(port);

	if (index >= num)
		return -ERANGE;
	if (!port->pkeys) {
		port->pkeys = calloc(num, sizeof(port->pkeys[0]));
		if (!port->pkeys)
			return -ENOMEM;
		port->pkeys[0] = PKEY_DEFAULT;
	}
	port->pkeys[index] = pkey;
	return 0;
}

bool pkey_match(uint16_t a, uint16_t b)
{
	return (a & PKEY_BASE) && !((a ^ b) & PKEY_BASE) && ((a | b) & PKEY_FULL);
}

int port_find_pkey(const struct port *port, uint16_t pkey)
{
	unsigned int num = port_num_pkeys(port);

	if (!port->pkeys)
		return pkey_match(PKEY_DEFAULT, pkey) ? 0 : -ENOENT;
	for (unsigned int i = 0; i < num; i++)
		if (pkey_match(port->pkeys[i], pkey))
			return i;
	return -ENOENT;
}

uint64_t port_gid_guid(const struct port *port, unsigned int index)
{
	if (index == 0)
		return port->guid;
	if (index >= port->node->num_guids || !port->guids)
		return 0;
	return port->guids[index];
}

int port_set_guid(struct port *port, unsigned int index, uint64_t guid)
{
	if (index == 0 || index >= port->node->num_guids)
		return -ERANGE;
	if (!port->guids) {
		port->guids = calloc(port->node->num_guids, sizeof(port->guids[0]));
		if (!port->guids)
			return -ENOMEM;
	}
	port->guids[index] = guid;
	return 0;
}

/* How many SL2VL tables a port has: one for each way in. */
static unsigned int sl2vl_tables(const struct port *out)
{
	return out->node->sw ? out->node->num_ports + 1U : 1;
}

static void sl2vl_default(const struct port *out, uint8_t map[8])
{
	unsigned int vls = data_vls(out->oper_vls);

	for (unsigned int i = 0; i < 8; i++)
		map[i] = (2 * i % vls) << 4 | (2 * i + 1) % vls;
}

void port_get_sl2vl(const struct port *out, unsigned int in, uint8_t map[8])
{
	if (out->sl2vl && in < sl2vl_tables(out))
		memcpy(map, out->sl2vl[in], sizeof(out->sl2vl[in]));
	else
		sl2vl_default(out, map);
}

int port_set_sl2vl(struct port *out, unsigned int in, const uint8_t map[8])
{
	unsigned int num = sl2vl_tables(out);

	if (in >= num)
		return -ERANGE;
	if (!out->sl2vl) {
		uint8_t (*tables)[8] = malloc(num * sizeof(*tables));

		if (!tables)
			return -ENOMEM;
		for (unsigned int i = 0; i < num; i++)
			sl2vl_default(out, tables[i]);
		out->sl2vl = tables;
	}
	memcpy(out->sl2vl[in], map, sizeof(out->sl2vl[in]));
	return 0;
}

unsigned int port_vl(const struct port *in, const struct port *out, unsigned int sl)
{
	unsigned int vls = data_vls(out->oper_vls);
	unsigned int vl;

	if (!out->sl2vl)
		return sl % vls;
	vl = out->sl2vl[in && out->node->sw ? in->num : 0][sl / 2] >> (sl & 1 ? 0 : 4) & 0xf;
	return vl < vls ? vl : VL_MGMT;
}

static void vlarb_default(const struct port *port, unsigned int block, uint8_t table[64])
{
	unsigned int vls = data_vls(port->vl_cap);

	memset(table, 0, 64);
	for (size_t i = 0; block == 0 && i < vls; i++) {
		table[2 * i] = i;
		table[2 * i + 1] = 1;
	}
}

int port_get_vlarb(const struct port *port, unsigned int block, uint8_t table[64])
{
	if (block >= VLARB_BLOCKS)
		return -ERANGE;
	if (port->vlarb)
		memcpy(table, port->vlarb[block], sizeof(port->vlarb[block]));
	else
		vlarb_default(port, block, table);
	return 0;
}

int port_set_vlarb(struct port *port, unsigned int block, const uint8_t table[64])
{
	if (block >= VLARB_BLOCKS)
		return -ERANGE;
	if (!port->vlarb) {
		uint8_t (*tables)[64] = malloc(VLARB_BLOCKS * sizeof(*tables));

		if (!tables)
			return -ENOMEM;
		for (unsigned int i = 0; i < VLARB_BLOCKS; i++)
			vlarb_default(port, i, tables[i]);
		port->vlarb = tables;
	}
	memcpy(port->vlarb[block], table, sizeof(port->vlarb[block]));
	return 0;
}
