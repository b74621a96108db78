/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The congestion control agent, IBA annex A10.4: keeps what a congestion
 * manager sets for an end port's node, under its CC_Key. The fabric marks no
 * packets, so the logs stay empty.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabric/fabric.h"
#include "hca/cca.h"
#include "hca/mad.h"
#include "hca/smp.h"

#define CC_CLASS_VERSION	2
#define CC_LOG_OFFSET		32	/* CongestionLog's data; the others' is at 64 */
#define CC_DATA_OFFSET		64
#define CC_DATA_SIZE		(MAD_SIZE - CC_DATA_OFFSET)
#define CC_RESP_TIME		18
#define CCT_BLOCK		64	/* entries */
#define CCT_BLOCKS		2	/* ControlTableCap */
#define SW_PORTS_BLOCK		48	/* ports in a SwitchPortCongestionSetting */
#define SW_PORTS_BLOCKS		6
#define CC_TICK_NS		1024	/* of Timestamp */

enum cc_attr_id {
	CC_CLASS_PORT_INFO	= 0x01,
	CC_CONGESTION_INFO	= 0x11,
	CC_KEY_INFO		= 0x12,
	CC_LOG			= 0x13,
	CC_SWITCH_SETTING	= 0x14,
	CC_SWITCH_PORT_SETTING	= 0x15,
	CC_CA_SETTING		= 0x16,
	CC_TABLE		= 0x17,
	CC_TIMESTAMP		= 0x18,
};

struct cc_mad {
	struct mad_hdr hdr;
	__be64 key;
	uint8_t log[CC_DATA_OFFSET - CC_LOG_OFFSET];
	uint8_t data[CC_DATA_SIZE];
} __attribute__((packed));

struct cc_key_info {
	__be64 key;
	uint8_t protect;	/* CC_KeyProtectBit:1 */
	uint8_t reserved;
	__be16 lease, violations;
} __attribute__((packed));
#define CC_PROTECT	0x80

struct cc_switch_setting {	/* A10.4.3.5 */
	uint8_t bytes[76];
};

struct cc_ca_setting {		/* A10.4.3.8: port control, control map, an entry for each SL */
	uint8_t bytes[4 + 16 * 8];
};

struct cc_table {		/* a block of the control table, A10.4.3.9 */
	__be16 limit, reserved;
	__be16 entry[CCT_BLOCK];
};

struct cca_state {
	uint64_t key;
	bool protect;
	uint16_t lease, violations;
	uint64_t lease_end;	/* CLOCK_MONOTONIC, s; 0: not running */
	uint16_t cct_limit;
	__be16 cct[CCT_BLOCKS][CCT_BLOCK];
	union {
		struct {
			struct cc_switch_setting setting;
			__be32 ports[SW_PORTS_BLOCKS][SW_PORTS_BLOCK];
		} sw;
		struct cc_ca_setting ca;
	};
};

struct cc_req {
	struct port *end;
	struct cca_state *state;	/* NULL: nothing was set, all is 0 */
	struct cc_mad *mad;
	uint32_t mod;
};

void cca_state_free(struct cca_state *state)
{
	free(state);
}

static bool is_switch(const struct cc_req *req)
{
	return req->end->node->type == NODE_SWITCH;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static uint64_t now_s(void)
{
	return now_ns() / 1000000000;
}

/* As the M_Key's rules: Set needs the key, Get only where it is protected; a lease lifts that. */
static bool cc_key_ok(const struct cc_req *req)
{
	struct cca_state *state = req->state;

	if (!state || !state->key)
		return true;
	if (state->lease_end && now_s() >= state->lease_end) {
		state->lease_end = 0;
		state->protect = false;
	}
	if (req->mad->key == htobe64(state->key)) {
		state->lease_end = 0;
		return true;
	}
	if (req->mad->hdr.method == UMAD_METHOD_GET && !state->protect)
		return true;
	if (state->violations < UINT16_MAX)
		state->violations++;
	if (!state->lease_end && state->lease)
		state->lease_end = now_s() + state->lease;
	return false;
}

static uint16_t get_class_port_info(struct cc_req *req)
{
	struct class_port_info *info = (struct class_port_info *)req->mad->data;

	info->base_version = UMAD_BASE_VERSION;
	info->class_version = CC_CLASS_VERSION;
	info->cap_mask2_resp_time = htobe32(CC_RESP_TIME);
	return MAD_OK;
}

static uint16_t get_congestion_info(struct cc_req *req)
{
	req->mad->data[2] = is_switch(req) ? 0 : CCT_BLOCKS;
	return MAD_OK;
}

static uint16_t get_key_info(struct cc_req *req)
{
	struct cc_key_info *info = (struct cc_key_info *)req->mad->data;
	const struct cca_state *state = req->state;

	if (!state)
		return MAD_OK;
	/* The key itself is shown to those who know it, or where nothing is protected. */
	if (!state->protect || req->mad->key == htobe64(state->key) ||
	    req->mad->hdr.method == UMAD_METHOD_SET)
		info->key = htobe64(state->key);
	info->protect = state->protect ? CC_PROTECT : 0;
	info->lease = htobe16(state->lease);
	info->violations = htobe16(state->violations);
	return MAD_OK;
}

static uint16_t set_key_info(struct cc_req *req)
{
	const struct cc_key_info *info = (const struct cc_key_info *)req->mad->data;
	struct cca_state *state = req->state;

	state->key = be64toh(info->key);
	state->protect = info->protect & CC_PROTECT;
	state->lease = be16toh(info->lease);
	if (!info->violations)
		state->violations = 0;
	return MAD_OK;
}

static uint16_t get_log(struct cc_req *req)
{
	__be32 stamp = htobe32(now_ns() / CC_TICK_NS);

	/* A switch's CurrentTimeStamp is its second word, a CA's its third. */
	req->mad->log[0] = is_switch(req) ? 1 : 2;
	memcpy(&req->mad->log[is_switch(req) ? 4 : 8], &stamp, sizeof(stamp));
	return MAD_OK;
}

static uint16_t get_timestamp(struct cc_req *req)
{
	__be32 stamp = htobe32(now_ns() / CC_TICK_NS);

	memcpy(req->mad->data, &stamp, sizeof(stamp));
	return MAD_OK;
}

static uint16_t get_switch_setting(struct cc_req *req)
{
	if (!is_switch(req))
		return MAD_BAD_ATTR;
	if (req->state)
		memcpy(req->mad->data, &req->state->sw.setting, sizeof(req->state->sw.setting));
	return MAD_OK;
}

static uint16_t set_switch_setting(struct cc_req *req)
{
	if (!is_switch(req))
		return MAD_BAD_ATTR;
	memcpy(&req->state->sw.setting, req->mad->data, sizeof(req->state->sw.setting));
	return MAD_OK;
}

static uint16_t get_switch_port_setting(struct cc_req *req)
{
	if (!is_switch(req))
		return MAD_BAD_ATTR;
	if (req->mod > req->end->node->num_ports / SW_PORTS_BLOCK)
		return MAD_BAD_VALUE;
	if (req->state)
		memcpy(req->mad->data, req->state->sw.ports[req->mod], CC_DATA_SIZE);
	return MAD_OK;
}

static uint16_t set_switch_port_setting(struct cc_req *req)
{
	if (!is_switch(req))
		return MAD_BAD_ATTR;
	if (req->mod > req->end->node->num_ports / SW_PORTS_BLOCK)
		return MAD_BAD_VALUE;
	memcpy(req->state->sw.ports[req->mod], req->mad->data, CC_DATA_SIZE);
	return MAD_OK;
}

static uint16_t get_ca_setting(struct cc_req *req)
{
	if (is_switch(req))
		return MAD_BAD_ATTR;
	if (req->state)
		memcpy(req->mad->data, &req->state->ca, sizeof(req->state->ca));
	return MAD_OK;
}

static uint16_t set_ca_setting(struct cc_req *req)
{
	if (is_switch(req))
		return MAD_BAD_ATTR;
	memcpy(&req->state->ca, req->mad->data, sizeof(req->state->ca));
	return MAD_OK;
}

static uint16_t get_table(struct cc_req *req)
{
	struct cc_table *table = (struct cc_table *)req->mad->data;

	if (is_switch(req))
		return MAD_BAD_ATTR;
	if (req->mod >= CCT_BLOCKS)
		return MAD_BAD_VALUE;
	if (!req->state)
		return MAD_OK;
	table->limit = htobe16(req->state->cct_limit);
	memcpy(table->entry, req->state->cct[req->mod], sizeof(table->entry));
	return MAD_OK;
}

static uint16_t set_table(struct cc_req *req)
{
	const struct cc_table *table = (const struct cc_table *)req->mad->data;

	if (is_switch(req))
		return MAD_BAD_ATTR;
	if (req->mod >= CCT_BLOCKS || be16toh(table->limit) >= CCT_BLOCKS * CCT_BLOCK)
		return MAD_BAD_VALUE;
	req->state->cct_limit = be16toh(table->limit);
	memcpy(req->state->cct[req->mod], table->entry, sizeof(table->entry));
	return MAD_OK;
}

struct cc_attr {
	uint16_t (*get)(struct cc_req *req);
	uint16_t (*set)(struct cc_req *req);
};

static const struct cc_attr cc_attrs[] = {
	[CC_CLASS_PORT_INFO] = { get_class_port_info, NULL },
	[CC_CONGESTION_INFO] = { get_congestion_info, NULL },
	[CC_KEY_INFO] = { get_key_info, set_key_info },
	[CC_LOG] = { get_log, NULL },
	[CC_SWITCH_SETTING] = { get_switch_setting, set_switch_setting },
	[CC_SWITCH_PORT_SETTING] = { get_switch_port_setting, set_switch_port_setting },
	[CC_CA_SETTING] = { get_ca_setting, set_ca_setting },
	[CC_TABLE] = { get_table, set_table },
	[CC_TIMESTAMP] = { get_timestamp, NULL },
};

/* What is set needs a place to stand. */
static bool state_make(struct cc_req *req)
{
	struct port_agents *agents = port_agents(req->end);

	if (!agents)
		return false;
	if (!agents->cca)
		agents->cca = calloc(1, sizeof(*agents->cca));
	req->state = agents->cca;
	return req->state;
}

static uint16_t cc_dispatch(struct cc_req *req)
{
	const struct mad_hdr *hdr = &req->mad->hdr;
	unsigned int id = be16toh(hdr->attr_id);
	const struct cc_attr *attr;
	uint16_t status;

	if (hdr->base_version != UMAD_BASE_VERSION || hdr->class_version != CC_CLASS_VERSION)
		return MAD_BAD_VERSION;
	if (hdr->method != UMAD_METHOD_GET && hdr->method != UMAD_METHOD_SET)
		return MAD_BAD_METHOD;
	if (id >= sizeof(cc_attrs) / sizeof(cc_attrs[0]) || !cc_attrs[id].get)
		return MAD_BAD_ATTR;
	attr = &cc_attrs[id];
	if (hdr->method == UMAD_METHOD_SET) {
		if (!attr->set)
			return MAD_BAD_ATTR;
		if (!state_make(req))
			return MAD_BAD_VALUE;
		status = attr->set(req);
		if (status != MAD_OK)
			return status;
	}
	memset(req->mad->log, 0, sizeof(req->mad->log));
	memset(req->mad->data, 0, sizeof(req->mad->data));
	return attr->get(req);
}

enum mad_verdict cca_process(struct port *in, void *mad)
{
	struct port *end = port_end(in);
	const struct port_agents *agents = end->agents;
	struct cc_req req = {
		.end = end, .state = agents ? agents->cca : NULL, .mad = mad,
	};

	if (req.mad->hdr.method & UMAD_METHOD_RESP_MASK ||
	    req.mad->hdr.method == UMAD_METHOD_TRAP || req.mad->hdr.method == UMAD_METHOD_SEND)
		return MAD_UNHANDLED;
	req.mod = be32toh(req.mad->hdr.attr_mod);
	if (!cc_key_ok(&req))
		return MAD_CONSUMED;
	req.mad->hdr.status = htobe16(cc_dispatch(&req));
	req.mad->hdr.method = UMAD_METHOD_GET_RESP;
	return MAD_ANSWER;
}
