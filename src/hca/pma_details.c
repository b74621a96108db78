/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PortRcvErrorDetails to PortVLXmitWaitCounters, IBA 16.1.4.1 to 16.1.4.8. All
 * have one shape: OpCode (some), PortSelect, CounterSelect, then counters of
 * one width in the order of their select bits, as struct port_details has them.
 */
#include <stddef.h>
#include <string.h>

#include "hca/pma.h"

#define OP_CODE		0	/* byte of data */
#define COUNTERS	4	/* byte where they begin */
#define COUNTERS_MAX	16

struct detail_attr {
	uint8_t attr_id;
	uint16_t first;		/* the first counter's offset in struct port_details */
	uint8_t num;
	uint8_t bits;
	uint16_t op;		/* the opcode's offset there; 0: the attribute has none */
};

static const struct detail_attr detail_attrs[] = {
	{ PMA_RCV_ERROR_DETAILS, offsetof(struct port_details, rcv_local_phys), 6, 16, 0 },
	{ PMA_XMIT_DISCARD_DETAILS, offsetof(struct port_details, xmit_inactive), 4, 16, 0 },
	{ PMA_OP_RCV_COUNTERS, offsetof(struct port_details, op_pkts), 2, 32,
	  offsetof(struct port_details, op) },
	{ PMA_FLOW_CTL_COUNTERS, offsetof(struct port_details, flow_xmit), 2, 32, 0 },
	{ PMA_VL_OP_PACKETS, offsetof(struct port_details, vl_pkts), 16, 16,
	  offsetof(struct port_details, vl_pkts_op) },
	{ PMA_VL_OP_DATA, offsetof(struct port_details, vl_data), 16, 32,
	  offsetof(struct port_details, vl_data_op) },
	{ PMA_VL_UPDATE_ERRORS, offsetof(struct port_details, vl_update_errors), 16, 2, 0 },
	{ PMA_VL_XMIT_WAIT, offsetof(struct port_details, vl_wait), 16, 16, 0 },
};

static const struct detail_attr *detail_attr(const struct pma_req *req)
{
	const struct detail_attr *attr = detail_attrs;

	while (attr->attr_id != req->attr_id)
		attr++;
	return attr;
}

static uint32_t *detail_counters(struct port_details *details, const struct detail_attr *attr)
{
	return (uint32_t *)((char *)details + attr->first);
}

/* Opcodes are counted from when somebody first asks for one. */
static struct port_details *details_of(struct port *port, const struct detail_attr *attr)
{
	struct port_details *details = attr->op ? port_details(port) : port->details;

	if (details && attr->op)
		details->count_ops = true;
	return details;
}

static bool is_selected(const struct pma_req *req, unsigned int port)
{
	unsigned int select = req->data[PMA_PORT_SELECT];

	if (select == PMA_ALL_PORTS)
		return port || req->node->type == NODE_SWITCH;
	return port == select;
}

uint16_t pma_get_details(struct pma_req *req)
{
	const struct detail_attr *attr = detail_attr(req);
	uint64_t sums[COUNTERS_MAX] = { 0 };

	if (!pma_port_ok(req->node, req->data[PMA_PORT_SELECT]))
		return MAD_BAD_VALUE;
	memset(req->data + COUNTERS, 0, PMA_DATA_SIZE - COUNTERS);
	for (unsigned int port = 0; port <= req->node->num_ports; port++) {
		struct port_details *details;

		if (!is_selected(req, port))
			continue;
		details = details_of(&req->node->ports[port], attr);
		for (unsigned int i = 0; details && i < attr->num; i++)
			sums[i] += detail_counters(details, attr)[i];
		if (details && attr->op)
			req->data[OP_CODE] = *((uint8_t *)details + attr->op);
	}
	for (unsigned int i = 0; i < attr->num; i++)
		pma_put(req->data, COUNTERS * 8 + i * attr->bits, attr->bits, sums[i]);
	return MAD_OK;
}

/* Clears what is selected, and everything when another opcode is to be counted. */
static void set_port(struct port *port, const struct detail_attr *attr, uint8_t op, uint16_t select)
{
	struct port_details *details = details_of(port, attr);
	uint8_t *old;

	if (!details)
		return;
	old = (uint8_t *)details + attr->op;
	if (attr->op && *old != op) {
		*old = op;
		select = UINT16_MAX;
	}
	for (unsigned int i = 0; i < attr->num; i++)
		if (select >> i & 1)
			detail_counters(details, attr)[i] = 0;
}

uint16_t pma_set_details(struct pma_req *req)
{
	const uint8_t *select = req->data + PMA_COUNTER_SELECT;

	if (!pma_port_ok(req->node, req->data[PMA_PORT_SELECT]))
		return MAD_BAD_VALUE;
	for (unsigned int port = 0; port <= req->node->num_ports; port++)
		if (is_selected(req, port))
			set_port(&req->node->ports[port], detail_attr(req), req->data[OP_CODE],
				 select[0] << 8 | select[1]);
	return MAD_OK;
}
