/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port's tables: GUIDInfo, P_KeyTable, SLtoVLMappingTable, VLArbitration,
 * IBA 14.2.5.5, 14.2.5.7 to 14.2.5.9, which fabric/port.c
 * keeps.
 */
#include <endian.h>

#include "hca/sma.h"

/* GUIDInfo: blocks of 8; entry 0 is the port's own and can't be written. */
static bool guid_block_ok(const struct sma_req *req)
{
	return req->mod < (req->node->num_guids + GUID_BLOCK - 1U) / GUID_BLOCK;
}

uint16_t sma_get_guid_info(struct sma_req *req)
{
	struct smp_guid_info *info = req->data;

	if (!guid_block_ok(req))
		return MAD_BAD_VALUE;
	for (unsigned int i = 0; i < GUID_BLOCK; i++)
		info->guid[i] = htobe64(port_gid_guid(req->end, req->mod * GUID_BLOCK + i));
	return MAD_OK;
}

uint16_t sma_set_guid_info(struct sma_req *req)
{
	const struct smp_guid_info *info = req->data;
	unsigned int first = req->mod * GUID_BLOCK;
	struct port *end = req->end;
	bool changed = false;

	if (!guid_block_ok(req))
		return MAD_BAD_VALUE;
	for (unsigned int i = 0; i < GUID_BLOCK; i++) {
		uint64_t guid = be64toh(info->guid[i]);
		unsigned int index = first + i;

		if (!index || index >= req->node->num_guids || port_gid_guid(end, index) == guid)
			continue;
		if (port_set_guid(end, index, guid))
			return MAD_BAD_VALUE;
		changed = true;
	}
	if (changed)
		port_event(end, PORT_EV_GID);
	return MAD_OK;
}

/* The port whose P_Key table the modifier names; a CA's is the one that was asked. */
static struct port *pkey_port(const struct sma_req *req)
{
	if (req->node->type != NODE_SWITCH)
		return req->end;
	return node_port(req->node, req->mod >> 16);
}

uint16_t sma_get_pkey_table(struct sma_req *req)
{
	unsigned int first = (req->mod & 0xffff) * PKEY_BLOCK;
	const struct port *port = pkey_port(req);
	__be16 *pkeys = req->data;

	if (!port || first >= port_num_pkeys(port))
		return MAD_BAD_VALUE;
	for (unsigned int i = 0; i < PKEY_BLOCK; i++)
		pkeys[i] = htobe16(port_pkey(port, first + i));
	return MAD_OK;
}

uint16_t sma_set_pkey_table(struct sma_req *req)
{
	unsigned int first = (req->mod & 0xffff) * PKEY_BLOCK;
	struct port *port = pkey_port(req);
	const __be16 *pkeys = req->data;
	bool changed = false;

	if (!port || first >= port_num_pkeys(port))
		return MAD_BAD_VALUE;
	for (unsigned int i = 0; i < PKEY_BLOCK && first + i < port_num_pkeys(port); i++) {
		uint16_t pkey = be16toh(pkeys[i]);

		if (port_pkey(port, first + i) == pkey)
			continue;
		if (port_set_pkey(port, first + i, pkey))
			return MAD_BAD_VALUE;
		changed = true;
	}
	if (changed && port == req->end)
		port_event(port, PORT_EV_PKEY);
	return MAD_OK;
}

/*
 * SL to VL: a switch's modifier names the input port (bits 15:8) and the
 * output port (7:0), whose table it is.
 */
static struct port *sl2vl_port(const struct sma_req *req, unsigned int *index)
{
	*index = 0;
	if (req->node->type != NODE_SWITCH)
		return req->end;
	*index = req->mod >> 8 & 0xff;
	if (req->mod >> 16 || *index > req->node->num_ports)
		return NULL;
	return node_port(req->node, req->mod & 0xff);
}

uint16_t sma_get_sl2vl(struct sma_req *req)
{
	unsigned int index;
	const struct port *port = sl2vl_port(req, &index);

	if (!port)
		return MAD_BAD_VALUE;
	port_get_sl2vl(port, index, req->data);
	return MAD_OK;
}

uint16_t sma_set_sl2vl(struct sma_req *req)
{
	unsigned int index;
	struct port *port = sl2vl_port(req, &index);

	if (!port || port_set_sl2vl(port, index, req->data))
		return MAD_BAD_VALUE;
	return MAD_OK;
}

/* VL arbitration: low 1, low 2, high 1, high 2; a port with one data VL has none. */
static struct port *vlarb_port(const struct sma_req *req, unsigned int *table)
{
	struct port *port = req->end;

	if (req->node->type == NODE_SWITCH)
		port = node_port(req->node, req->mod & 0xffff);
	*table = (req->mod >> 16) - 1;
	return port && port->vl_cap > 1 && *table < 4 ? port : NULL;
}

uint16_t sma_get_vlarb(struct sma_req *req)
{
	unsigned int table;
	const struct port *port = vlarb_port(req, &table);

	if (!port || port_get_vlarb(port, table, req->data))
		return MAD_BAD_VALUE;
	return MAD_OK;
}

uint16_t sma_set_vlarb(struct sma_req *req)
{
	unsigned int table;
	struct port *port = vlarb_port(req, &table);

	if (!port || port_set_vlarb(port, table, req->data))
		return MAD_BAD_VALUE;
	return MAD_OK;
}
