/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet management agent: a request's checks, the table of attributes,
 * M_Key protection. IBA 14.2.3 to 14.2.5. It reads and writes a MAD in place;
 * how it came and goes is smi.c's.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hca/sma.h"

struct sma_attr {
	uint16_t (*get)(struct sma_req *req);
	uint16_t (*set)(struct sma_req *req);
};

static const struct sma_attr sma_attrs[] = {
	[UMAD_ATTR_NOTICE] = { sma_get_notice, sma_set_notice },
	[UMAD_SM_ATTR_NODE_DESC] = { sma_get_node_desc, sma_set_node_desc },
	[UMAD_SM_ATTR_NODE_INFO] = { sma_get_node_info, NULL },
	[UMAD_SM_ATTR_SWITCH_INFO] = { sma_get_switch_info, sma_set_switch_info },
	[UMAD_SM_ATTR_GUID_INFO] = { sma_get_guid_info, sma_set_guid_info },
	[UMAD_SM_ATTR_PORT_INFO] = { sma_get_port_info, sma_set_port_info },
	[UMAD_SM_ATTR_PKEY_TABLE] = { sma_get_pkey_table, sma_set_pkey_table },
	[UMAD_SM_ATTR_SLVL_TABLE] = { sma_get_sl2vl, sma_set_sl2vl },
	[UMAD_SM_ATTR_VL_ARB_TABLE] = { sma_get_vlarb, sma_set_vlarb },
	[UMAD_SM_ATTR_LINEAR_FT] = { sma_get_lft, sma_set_lft },
	[UMAD_SM_ATTR_MCAST_FT] = { sma_get_mft, sma_set_mft },
	[UMAD_SM_ATTR_VENDOR_DIAG] = { sma_get_vendor_diag, NULL },
	[UMAD_SM_ATTR_LED_INFO] = { sma_get_led_info, sma_set_led_info },
};

struct port *node_port(const struct node *node, unsigned int num)
{
	if (num > node->num_ports || (!num && node->type != NODE_SWITCH))
		return NULL;
	return &node->ports[num];
}

struct sma_state *sma_state(struct port *end)
{
	struct port_agents *agents = port_agents(end);

	if (!agents)
		return NULL;
	if (!agents->sma) {
		agents->sma = calloc(1, sizeof(*agents->sma));
		if (agents->sma)
			agents->sma->end = end;
	}
	return agents->sma;
}

static struct sma_state *sma_state_if_any(const struct port *end)
{
	const struct port_agents *agents = end->agents;

	return agents ? agents->sma : NULL;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

/*
 * The lease, 14.2.4.3: a refused request starts it, one with the right key
 * stops it, and when it runs out the protect bits fall to 0, so that any
 * manager can read the key. Nobody sees them before the next request, so that
 * is when the clock is looked at.
 */
static void lease_check(struct port *end, struct sma_state *state)
{
	if (!state || !state->lease_end || now_ms() < state->lease_end)
		return;
	state->lease_end = 0;
	end->mkey_protect = 0;
}

static void lease_start(struct port *end)
{
	struct sma_state *state = sma_state(end);

	if (state && !state->lease_end && end->mkey_lease)
		state->lease_end = now_ms() + end->mkey_lease * 1000ULL;
}

/* A method that there isn't is answered so, whoever asks. */
static bool needs_mkey(uint8_t method, unsigned int protect)
{
	return method == UMAD_METHOD_SET || method == UMAD_METHOD_TRAP_REPRESS ||
	       (method == UMAD_METHOD_GET && protect >= 2);
}

/*
 * M_Key check, 14.2.4: true if the request may go on. Counts violations, runs
 * the lease and sends trap 256.
 */
static bool mkey_ok(struct sma_req *req, uint16_t slid)
{
	struct sma_state *state = sma_state_if_any(req->end);
	struct port *end = req->end;

	if (!end->mkey)
		return true;
	lease_check(end, state);
	if (req->smp->mkey == htobe64(end->mkey)) {
		if (state)
			state->lease_end = 0;
		return true;
	}
	if (!needs_mkey(req->smp->method, end->mkey_protect))
		return true;
	if (end->mkey_violations < UINT16_MAX)
		end->mkey_violations++;
	lease_start(end);
	sma_bad_mkey(req, slid);
	return false;
}

bool sma_mkey_visible(const struct sma_req *req)
{
	return req->smp->method == UMAD_METHOD_SET || !req->end->mkey_protect ||
	       req->smp->mkey == htobe64(req->end->mkey);
}

static const struct sma_attr *sma_attr(uint16_t id)
{
	static const struct sma_attr mlx_port_info = {
		sma_get_mlx_port_info, sma_set_mlx_port_info,
	};

	if (id == UMAD_SM_ATTR_MLNX_EXT_PORT_INFO)
		return &mlx_port_info;
	if (id >= sizeof(sma_attrs) / sizeof(sma_attrs[0]) || !sma_attrs[id].get)
		return NULL;
	return &sma_attrs[id];
}

static uint16_t sma_run(struct sma_req *req, const struct sma_attr *attr, bool set)
{
	uint16_t status = MAD_OK;

	if (set && !attr->set)
		return MAD_BAD_ATTR;
	if (set)
		status = attr->set(req);
	if (status != MAD_OK)
		return status;
	memset(req->data, 0, UMAD_LEN_SMP_DATA);
	return attr->get(req);
}

static uint16_t sma_dispatch(struct sma_req *req)
{
	const struct smp *smp = req->smp;
	const struct sma_attr *attr;

	if (smp->base_version != UMAD_BASE_VERSION || smp->class_version != 1)
		return MAD_BAD_VERSION;
	if (smp->method != UMAD_METHOD_GET && smp->method != UMAD_METHOD_SET)
		return MAD_BAD_METHOD;
	attr = sma_attr(be16toh(smp->attr_id));
	if (!attr)
		return MAD_BAD_ATTR;
	return sma_run(req, attr, smp->method == UMAD_METHOD_SET);
}

/* Of SMPs that reach a node, these are not for its agent. */
static bool sma_for_clients(const struct smp *smp)
{
	switch (smp->method) {
	case UMAD_METHOD_SEND:
	case UMAD_METHOD_TRAP:
	case UMAD_METHOD_REPORT:
		return true;
	default:
		return smp->method & UMAD_METHOD_RESP_MASK ||
		       smp->attr_id == htobe16(UMAD_SM_ATTR_SM_INFO);
	}
}

enum mad_verdict sma_process(struct port *in, void *mad, uint16_t slid)
{
	struct smp *smp = mad;
	struct sma_req req = {
		.node = in->node, .in = in, .end = port_end(in), .smp = smp,
		.mod = be32toh(smp->attr_mod), .data = smp->data,
	};
	uint16_t status;

	if (sma_for_clients(smp))
		return MAD_UNHANDLED;
	if (!mkey_ok(&req, slid))
		return MAD_CONSUMED;
	if (smp->method == UMAD_METHOD_TRAP_REPRESS)
		return sma_trap_repress(req.end, smp) ? MAD_CONSUMED : MAD_UNHANDLED;
	status = sma_dispatch(&req);
	smp->method = UMAD_METHOD_GET_RESP;
	smp->status = htobe16(status);
	if (smp->mgmt_class == MAD_CLASS_SUBN_DR)
		smp->status |= htobe16(UMAD_SMP_DIRECTION);
	return MAD_ANSWER;
}
