/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes of the node as a whole: NodeDescription, NodeInfo, VendorDiag,
 * LedInfo, IBA 14.2.5.2, 14.2.5.3, 14.2.5.14, 14.2.5.15.
 */
#include <endian.h>
#include <string.h>

#include "hca/sma.h"

#define NODE_DESC_LEN	64
#define LED_ON		0x80	/* first byte of LedInfo */

uint16_t sma_get_node_desc(struct sma_req *req)
{
	memcpy(req->data, req->node->desc, strnlen(req->node->desc, NODE_DESC_LEN));
	return MAD_OK;
}

uint16_t sma_set_node_desc(struct sma_req *req)
{
	char *desc = req->node->desc;

	if (!(req->end->cap_mask2 & CAP2_SET_NODE_DESC))
		return MAD_BAD_ATTR;
	if (strncmp(desc, req->data, NODE_DESC_LEN)) {
		memcpy(desc, req->data, NODE_DESC_LEN);
		desc[NODE_DESC_LEN] = '\0';
		sma_desc_changed(req->node);
		port_event(req->end, PORT_EV_CAPMASK);
	}
	return MAD_OK;
}

uint16_t sma_get_node_info(struct sma_req *req)
{
	const struct node *node = req->node;
	struct smp_node_info *info = req->data;

	info->base_version = 1;
	info->class_version = 1;
	info->node_type = node->type;
	info->num_ports = node->num_ports;
	info->sysimg_guid = htobe64(node->sysimg_guid);
	info->node_guid = htobe64(node->guid);
	info->port_guid = htobe64(req->end->guid);
	info->partition_cap = htobe16(node->num_pkeys);
	info->device_id = htobe16(node->device_id);
	info->revision = htobe32(node->revision);
	info->local_port = req->in->num;
	info->vendor_id[0] = node->vendor_id >> 16;
	info->vendor_id[1] = node->vendor_id >> 8;
	info->vendor_id[2] = node->vendor_id;
	return MAD_OK;
}

/* The first one, which has nothing to tell, and behind which there is none. */
uint16_t sma_get_vendor_diag(struct sma_req *req)
{
	struct smp_vendor_diag *diag = req->data;

	if (req->mod)
		return MAD_BAD_VALUE;
	diag->next_index = 0;
	return MAD_OK;
}

uint16_t sma_get_led_info(struct sma_req *req)
{
	const struct port_agents *agents = req->end->agents;

	if (!(req->end->cap_mask & CAP_LED))
		return MAD_BAD_ATTR;
	if (agents && agents->sma && agents->sma->led)
		*(uint8_t *)req->data = LED_ON;
	return MAD_OK;
}

uint16_t sma_set_led_info(struct sma_req *req)
{
	struct sma_state *state;

	if (!(req->end->cap_mask & CAP_LED))
		return MAD_BAD_ATTR;
	state = sma_state(req->end);
	if (!state)
		return MAD_BAD_VALUE;
	state->led = *(uint8_t *)req->data & LED_ON;
	return MAD_OK;
}
