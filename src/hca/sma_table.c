/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port's tables: GUIDInfo, P_KeyTable, SLtoVLMappingTable, VLArbitration,
 * IBA 14.2.5.5, 14.2.5.7 to 14.2.5.9. Each is made when it is first written;
 * until then its default is worked out.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

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
	unsigned int first = req->mod * GUID_BLOCK;
	unsigned int num = req->node->num_guids;
	const struct smp_guid_info *info = req->data;
	struct port *end = req->end;
	bool changed = false;

	if (!guid_block_ok(req))
		return MAD_BAD_VALUE;
	if (!end->guids)
		end->guids = calloc(num, sizeof(*end->guids));
	if (!end->guids)
		return MAD_BAD_VALUE;
	for (unsigned int i = first; i < first + GUID_BLOCK && i < num; i++) {
		uint64_t guid = be64toh(info->guid[i - first]);

		if (!i || end->guids[i - 1] == guid)
			continue;
		end->guids[i - 1] = guid;
		changed = true;
	}
	if (changed)
		port_event(end, PORT_EV_GID);
	return MAD_OK;
}

/* The port that a P_Key table's modifier names, and its number of entries. */
static struct port *pkey_port(const struct sma_req *req, unsigned int *entries)
{
	const struct node *node = req->node;
	struct port *port;

	*entries = node->num_pkeys;
	if (node->type != NODE_SWITCH)
		return req->end;
	port = node_port(node, req->mod >> 16);
	if (port && port->num)
		*entries = node->sw->part_enforce_cap;
	return port;
}

static uint16_t pkey_entry(const struct port *port, unsigned int index)
{
	if (port->pkeys)
		return port->pkeys[index];
	return index ? 0 : PKEY_DEFAULT;
}

uint16_t sma_get_pkey_table(struct sma_req *req)
{
	unsigned int entries, first = (req->mod & 0xffff) * PKEY_BLOCK;
	const struct port *port = pkey_port(req, &entries);
	__be16 *pkeys = req->data;

	if (!port || first >= entries)
		return MAD_BAD_VALUE;
	for (unsigned int i = 0; i < PKEY_BLOCK && first + i < entries; i++)
		pkeys[i] = htobe16(pkey_entry(port, first + i));
	return MAD_OK;
}

uint16_t sma_set_pkey_table(struct sma_req *req)
{
	unsigned int entries, first = (req->mod & 0xffff) * PKEY_BLOCK;
	struct port *port = pkey_port(req, &entries);
	const __be16 *pkeys = req->data;
	bool changed = false;

	if (!port || first >= entries)
		return MAD_BAD_VALUE;
	if (!port->pkeys) {
		port->pkeys = calloc(entries, sizeof(*port->pkeys));
		if (!port->pkeys)
			return MAD_BAD_VALUE;
		port->pkeys[0] = PKEY_DEFAULT;
	}
	for (unsigned int i = 0; i < PKEY_BLOCK && first + i < entries; i++) {
		uint16_t pkey = be16toh(pkeys[i]);

		if (port->pkeys[first + i] == pkey)
			continue;
		port->pkeys[first + i] = pkey;
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

/* SL n goes to VL n while there are as many: 1, 2, 4, 8 or 15 data VLs. */
static void sl2vl_default(const struct port *port, uint8_t table[8])
{
	static const uint8_t vls[] = { 1, 1, 2, 4, 8, 15 };
	unsigned int num = vls[port->oper_vls < sizeof(vls) ? port->oper_vls : 1];

	for (unsigned int i = 0; i < 8; i++)
		table[i] = 2 * i % num << 4 | (2 * i + 1) % num;
}

uint16_t sma_get_sl2vl(struct sma_req *req)
{
	unsigned int index;
	const struct port *port = sl2vl_port(req, &index);

	if (!port)
		return MAD_BAD_VALUE;
	if (port->sl2vl)
		memcpy(req->data, port->sl2vl[index], sizeof(port->sl2vl[index]));
	else
		sl2vl_default(port, req->data);
	return MAD_OK;
}

uint16_t sma_set_sl2vl(struct sma_req *req)
{
	unsigned int index, rows = 1;
	struct port *port = sl2vl_port(req, &index);

	if (!port)
		return MAD_BAD_VALUE;
	if (!port->sl2vl) {
		if (req->node->type == NODE_SWITCH)
			rows += req->node->num_ports;
		port->sl2vl = calloc(rows, sizeof(*port->sl2vl));
		if (!port->sl2vl)
			return MAD_BAD_VALUE;
		for (unsigned int i = 0; i < rows; i++)
			sl2vl_default(port, port->sl2vl[i]);
	}
	memcpy(port->sl2vl[index], req->data, sizeof(port->sl2vl[index]));
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

	if (!port)
		return MAD_BAD_VALUE;
	if (port->vlarb)
		memcpy(req->data, port->vlarb[table], sizeof(port->vlarb[table]));
	return MAD_OK;
}

uint16_t sma_set_vlarb(struct sma_req *req)
{
	unsigned int table;
	struct port *port = vlarb_port(req, &table);

	if (!port)
		return MAD_BAD_VALUE;
	if (!port->vlarb)
		port->vlarb = calloc(4, sizeof(*port->vlarb));
	if (!port->vlarb)
		return MAD_BAD_VALUE;
	memcpy(port->vlarb[table], req->data, sizeof(port->vlarb[table]));
	return MAD_OK;
}
