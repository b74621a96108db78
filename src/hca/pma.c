/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The performance management agent: ClassPortInfo, PortCounters and
 * PortCountersExtended of any port of the node, IBA 16.1.3, 16.1.4.11. Where
 * a counter stands and which bit selects it is a table; it is counted by
 * fabric/, and clearing it here clears it there.
 */
#include <endian.h>
#include <stddef.h>
#include <string.h>

#include "hca/pma.h"

enum {				/* ClassPortInfo:CapabilityMask and CapabilityMask2 */
	PMA_CAP_ALL_PORTS	= 1 << 8,
	PMA_CAP_EXT_WIDTH	= 1 << 9,
	PMA_CAP_XMIT_WAIT	= 1 << 12,
	PMA_CAP_QP1_DROP	= 1 << 15,
	PMA_CAP2_EXT_ERRORS	= 1 << 1,
};
#define PMA_RESP_TIME		18	/* 4.096 us * 2^18, about a second */

/* A counter of an attribute: where it is, in both places, and what selects it. */
struct pma_counter {
	uint16_t cnt;		/* offset in struct port_counters */
	uint8_t cnt_size;	/* 4 or 8 there */
	uint16_t bit;		/* in the attribute, counted as IBA's tables do */
	uint8_t bits;		/* wide there */
	uint8_t select;		/* bit of CounterSelect, from 16 on of CounterSelect2 */
};

#define CNT(field) \
	offsetof(struct port_counters, field), sizeof(((struct port_counters *)NULL)->field)

static const struct pma_counter port_counters[] = {
	{ CNT(symbol_errors), 32, 16, 0 },
	{ CNT(link_recovers), 48, 8, 1 },
	{ CNT(link_downed), 56, 8, 2 },
	{ CNT(rcv_errors), 64, 16, 3 },
	{ CNT(rcv_rem_phys_errors), 80, 16, 4 },
	{ CNT(rcv_switch_relay_errors), 96, 16, 5 },
	{ CNT(xmit_discards), 112, 16, 6 },
	{ CNT(xmit_constraint_errors), 128, 8, 7 },
	{ CNT(rcv_constraint_errors), 136, 8, 8 },
	{ CNT(local_link_integrity_errors), 152, 4, 9 },
	{ CNT(excess_overrun_errors), 156, 4, 10 },
	{ CNT(qp1_dropped), 160, 16, 17 },
	{ CNT(vl15_dropped), 176, 16, 11 },
	{ CNT(xmit_data), 192, 32, 12 },
	{ CNT(rcv_data), 224, 32, 13 },
	{ CNT(xmit_pkts), 256, 32, 14 },
	{ CNT(rcv_pkts), 288, 32, 15 },
	{ CNT(xmit_wait), 320, 32, 16 },
};

static const struct pma_counter port_counters_ext[] = {
	{ CNT(xmit_data), 64, 64, 0 },
	{ CNT(rcv_data), 128, 64, 1 },
	{ CNT(xmit_pkts), 192, 64, 2 },
	{ CNT(rcv_pkts), 256, 64, 3 },
	{ CNT(unicast_xmit_pkts), 320, 64, 4 },
	{ CNT(unicast_rcv_pkts), 384, 64, 5 },
	{ CNT(multicast_xmit_pkts), 448, 64, 6 },
	{ CNT(multicast_rcv_pkts), 512, 64, 7 },
	{ CNT(symbol_errors), 576, 64, 16 },
	{ CNT(link_recovers), 640, 64, 17 },
	{ CNT(link_downed), 704, 64, 18 },
	{ CNT(rcv_errors), 768, 64, 19 },
	{ CNT(rcv_rem_phys_errors), 832, 64, 20 },
	{ CNT(rcv_switch_relay_errors), 896, 64, 21 },
	{ CNT(xmit_discards), 960, 64, 22 },
	{ CNT(xmit_constraint_errors), 1024, 64, 23 },
	{ CNT(rcv_constraint_errors), 1088, 64, 24 },
	{ CNT(local_link_integrity_errors), 1152, 64, 25 },
	{ CNT(excess_overrun_errors), 1216, 64, 26 },
	{ CNT(vl15_dropped), 1280, 64, 27 },
	{ CNT(xmit_wait), 1344, 64, 28 },
	{ CNT(qp1_dropped), 1408, 64, 29 },
};

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

bool pma_port_ok(const struct node *node, unsigned int select)
{
	if (select == PMA_ALL_PORTS)
		return true;
	return select <= node->num_ports && (select || node->type == NODE_SWITCH);
}

static uint64_t cnt_read(const struct port_counters *cnt, const struct pma_counter *field)
{
	const char *at = (const char *)cnt + field->cnt;

	return field->cnt_size == 8 ? *(const uint64_t *)at : *(const uint32_t *)at;
}

static void cnt_write(struct port_counters *cnt, const struct pma_counter *field, uint64_t value)
{
	char *at = (char *)cnt + field->cnt;

	if (field->cnt_size == 8)
		*(uint64_t *)at = value;
	else
		*(uint32_t *)at = value;
}

static void cnt_add(struct port_counters *sum, const struct port_counters *cnt)
{
	/* The extended attribute has every counter there is. */
	for (unsigned int i = 0; i < ARRAY_SIZE(port_counters_ext); i++) {
		const struct pma_counter *field = &port_counters_ext[i];
		uint64_t max = field->cnt_size == 8 ? UINT64_MAX : UINT32_MAX;
		uint64_t a = cnt_read(sum, field), b = cnt_read(cnt, field);

		cnt_write(sum, field, b > max - a ? max : a + b);
	}
}

void pma_counters(const struct node *node, unsigned int select, struct port_counters *cnt)
{
	if (select != PMA_ALL_PORTS) {
		*cnt = node->ports[select].cnt;
		return;
	}
	*cnt = (struct port_counters){ 0 };
	for (unsigned int i = node->type == NODE_SWITCH ? 0 : 1; i <= node->num_ports; i++)
		cnt_add(cnt, &node->ports[i].cnt);
}

void pma_put(uint8_t *data, unsigned int bit, unsigned int bits, uint64_t value)
{
	uint64_t max = bits == 64 ? UINT64_MAX : (1ULL << bits) - 1;
	uint8_t *byte = data + bit / 8;

	if (value > max)
		value = max;
	if (bits < 8) {
		unsigned int shift = 8 - bits - bit % 8;

		*byte = (*byte & ~(max << shift)) | value << shift;
		return;
	}
	for (unsigned int left = bits; left; left -= 8)
		*byte++ = value >> (left - 8);
}

static uint16_t counters_get(struct pma_req *req, const struct pma_counter *fields,
			     unsigned int num)
{
	unsigned int select = req->data[PMA_PORT_SELECT];
	struct port_counters cnt;

	if (!pma_port_ok(req->node, select))
		return MAD_BAD_VALUE;
	pma_counters(req->node, select, &cnt);
	for (unsigned int i = 0; i < num; i++)
		pma_put(req->data, fields[i].bit, fields[i].bits, cnt_read(&cnt, &fields[i]));
	return MAD_OK;
}

/* Set of a selected counter clears it, 16.1.3.5. */
static uint16_t counters_clear(struct pma_req *req, const struct pma_counter *fields,
			       unsigned int num, uint64_t mask)
{
	unsigned int select = req->data[PMA_PORT_SELECT];

	if (!pma_port_ok(req->node, select))
		return MAD_BAD_VALUE;
	for (unsigned int port = 0; port <= req->node->num_ports; port++) {
		if (select != PMA_ALL_PORTS && select != port)
			continue;
		for (unsigned int i = 0; i < num; i++)
			if (mask >> fields[i].select & 1)
				cnt_write(&req->node->ports[port].cnt, &fields[i], 0);
	}
	return MAD_OK;
}

static uint16_t pma_get_port_counters(struct pma_req *req)
{
	return counters_get(req, port_counters, ARRAY_SIZE(port_counters));
}

static uint16_t pma_set_port_counters(struct pma_req *req)
{
	const uint8_t *data = req->data;
	uint64_t mask = data[18] << 16 | data[2] << 8 | data[3];

	return counters_clear(req, port_counters, ARRAY_SIZE(port_counters), mask);
}

static uint16_t pma_get_port_counters_ext(struct pma_req *req)
{
	return counters_get(req, port_counters_ext, ARRAY_SIZE(port_counters_ext));
}

static uint16_t pma_set_port_counters_ext(struct pma_req *req)
{
	const uint8_t *data = req->data;
	uint64_t mask2 = (uint32_t)data[4] << 24 | data[5] << 16 | data[6] << 8 | data[7];

	return counters_clear(req, port_counters_ext, ARRAY_SIZE(port_counters_ext),
			      mask2 << 16 | data[2] << 8 | data[3]);
}

static uint16_t pma_get_class_port_info(struct pma_req *req)
{
	struct class_port_info *info = (struct class_port_info *)req->data;

	memset(info, 0, sizeof(*info));
	info->base_version = 1;
	info->class_version = 1;
	info->cap_mask = htobe16(PMA_CAP_ALL_PORTS | PMA_CAP_EXT_WIDTH | PMA_CAP_XMIT_WAIT |
				 PMA_CAP_QP1_DROP);
	info->cap_mask2_resp_time = htobe32(PMA_CAP2_EXT_ERRORS << 5 | PMA_RESP_TIME);
	return MAD_OK;
}

struct pma_attr {
	uint16_t (*get)(struct pma_req *req);
	uint16_t (*set)(struct pma_req *req);
};

static const struct pma_attr pma_attrs[] = {
	[PMA_CLASS_PORT_INFO] = { pma_get_class_port_info, NULL },
	[PMA_SAMPLES_CONTROL] = { pma_get_samples_control, pma_set_samples_control },
	[PMA_SAMPLES_RESULT] = { pma_get_samples_result, NULL },
	[PMA_PORT_COUNTERS] = { pma_get_port_counters, pma_set_port_counters },
	[PMA_RCV_ERROR_DETAILS] = { pma_get_details, pma_set_details },
	[PMA_XMIT_DISCARD_DETAILS] = { pma_get_details, pma_set_details },
	[PMA_OP_RCV_COUNTERS] = { pma_get_details, pma_set_details },
	[PMA_FLOW_CTL_COUNTERS] = { pma_get_details, pma_set_details },
	[PMA_VL_OP_PACKETS] = { pma_get_details, pma_set_details },
	[PMA_VL_OP_DATA] = { pma_get_details, pma_set_details },
	[PMA_VL_UPDATE_ERRORS] = { pma_get_details, pma_set_details },
	[PMA_VL_XMIT_WAIT] = { pma_get_details, pma_set_details },
	[PMA_PORT_COUNTERS_EXT] = { pma_get_port_counters_ext, pma_set_port_counters_ext },
	[PMA_SAMPLES_RESULT_EXT] = { pma_get_samples_result_ext, NULL },
};

static uint16_t pma_dispatch(struct pma_req *req, const struct mad_hdr *hdr)
{
	unsigned int id = be16toh(hdr->attr_id);
	uint16_t status = MAD_OK;

	if (hdr->base_version != UMAD_BASE_VERSION || hdr->class_version != 1)
		return MAD_BAD_VERSION;
	if (hdr->method != UMAD_METHOD_GET && hdr->method != UMAD_METHOD_SET)
		return MAD_BAD_METHOD;
	if (id >= ARRAY_SIZE(pma_attrs) || !pma_attrs[id].get)
		return MAD_BAD_ATTR;
	req->attr_id = id;
	if (hdr->method == UMAD_METHOD_SET)
		status = pma_attrs[id].set ? pma_attrs[id].set(req) : MAD_BAD_ATTR;
	return status == MAD_OK ? pma_attrs[id].get(req) : status;
}

enum mad_verdict pma_process(struct port *in, void *mad)
{
	struct mad_hdr *hdr = mad;
	struct pma_req req = {
		.node = in->node, .end = port_end(in), .data = (uint8_t *)mad + PMA_DATA_OFFSET,
	};

	if (hdr->method & UMAD_METHOD_RESP_MASK || hdr->method == UMAD_METHOD_TRAP ||
	    hdr->method == UMAD_METHOD_SEND)
		return MAD_UNHANDLED;
	hdr->status = htobe16(pma_dispatch(&req, hdr));
	hdr->method = UMAD_METHOD_GET_RESP;
	return MAD_ANSWER;
}
