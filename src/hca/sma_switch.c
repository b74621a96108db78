/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A switch's attributes: SwitchInfo and the forwarding tables, IBA 14.2.5.4,
 * 14.2.5.10, 14.2.5.12. Tables are written through fabric/switch.c, which
 * sizes them.
 */
#include <endian.h>
#include <string.h>

#include "hca/sma.h"

#define MFT_BLOCK_MASK		0x1ff
#define MFT_POSITION_SHIFT	28
#define LFT_NONE		0xff

uint16_t sma_get_switch_info(struct sma_req *req)
{
	const struct switch_info *sw = req->node->sw;
	struct smp_switch_info *info = req->data;

	if (!sw)
		return MAD_BAD_ATTR;
	info->lft_cap = htobe16(sw->lft_cap);
	info->mft_cap = htobe16(sw->mft_cap);
	info->lft_top = htobe16(sw->lft_top);
	info->default_port = sw->default_port;
	info->default_mcast_primary = sw->default_mcast_primary;
	info->default_mcast_not_primary = sw->default_mcast_not_primary;
	info->life_change = sw->life_time << 3;
	if (sw->port_state_change)
		info->life_change |= SWI_STATE_CHANGE;
	info->part_enforce_cap = htobe16(sw->part_enforce_cap);
	if (sw->part_enforce_cap)
		info->enforce = SWI_ENFORCE_IN | SWI_ENFORCE_OUT;
	if (sw->enhanced_port0)
		info->enforce |= SWI_ENHANCED_PORT0;
	info->mcast_top = htobe16(sw->mcast_top);
	return MAD_OK;
}

/* 0xbfff says that no MLID is in use; 0 is what a manager sends that knows no top. */
static bool mcast_top_ok(const struct switch_info *sw, uint16_t top)
{
	return !top || top == LID_MCAST_FIRST - 1 ||
	       (top >= LID_MCAST_FIRST && top < LID_MCAST_FIRST + sw->mft_cap);
}

uint16_t sma_set_switch_info(struct sma_req *req)
{
	const struct smp_switch_info *info = req->data;
	struct switch_info *sw = req->node->sw;

	if (!sw)
		return MAD_BAD_ATTR;
	if (be16toh(info->lft_top) >= sw->lft_cap || !mcast_top_ok(sw, be16toh(info->mcast_top)))
		return MAD_BAD_VALUE;
	sw->lft_top = be16toh(info->lft_top);
	sw->default_port = info->default_port;
	sw->default_mcast_primary = info->default_mcast_primary;
	sw->default_mcast_not_primary = info->default_mcast_not_primary;
	sw->life_time = info->life_change >> 3;
	if (info->life_change & SWI_STATE_CHANGE)
		sw->port_state_change = false;
	sw->mcast_top = be16toh(info->mcast_top);
	return MAD_OK;
}

static bool lft_block_ok(const struct sma_req *req)
{
	return req->mod < (req->node->sw->lft_cap + LFT_BLOCK - 1U) / LFT_BLOCK;
}

uint16_t sma_get_lft(struct sma_req *req)
{
	const struct switch_info *sw = req->node->sw;
	uint32_t first = req->mod * LFT_BLOCK;

	if (!sw)
		return MAD_BAD_ATTR;
	if (!lft_block_ok(req))
		return MAD_BAD_VALUE;
	if (first + LFT_BLOCK <= sw->lft_size)
		memcpy(req->data, sw->lft + first, LFT_BLOCK);
	else
		memset(req->data, LFT_NONE, LFT_BLOCK);
	return MAD_OK;
}

uint16_t sma_set_lft(struct sma_req *req)
{
	struct switch_info *sw = req->node->sw;
	const uint8_t *ports = req->data;
	uint32_t first = req->mod * LFT_BLOCK;

	if (!sw)
		return MAD_BAD_ATTR;
	if (!lft_block_ok(req))
		return MAD_BAD_VALUE;
	if (first + LFT_BLOCK <= sw->lft_size) {
		memcpy(sw->lft + first, req->data, LFT_BLOCK);
		return MAD_OK;
	}
	for (unsigned int i = 0; i < LFT_BLOCK && first + i < sw->lft_cap; i++)
		if (switch_set_lft(req->node, first + i, ports[i]))
			return MAD_BAD_VALUE;
	return MAD_OK;
}

/* The MLID where a block begins, and its 16 ports' place; false if there are none such. */
static bool mft_block(const struct sma_req *req, uint16_t *mlid, unsigned int *position)
{
	uint32_t first = (req->mod & MFT_BLOCK_MASK) * MFT_BLOCK;

	*position = req->mod >> MFT_POSITION_SHIFT;
	*mlid = LID_MCAST_FIRST + first;
	return first < req->node->sw->mft_cap && *position <= req->node->num_ports / 16U;
}

uint16_t sma_get_mft(struct sma_req *req)
{
	unsigned int position;
	__be16 *masks = req->data;
	uint16_t mlid;

	if (!req->node->sw)
		return MAD_BAD_ATTR;
	if (!mft_block(req, &mlid, &position))
		return MAD_BAD_VALUE;
	for (unsigned int i = 0; i < MFT_BLOCK; i++)
		masks[i] = htobe16(switch_get_mft(req->node, mlid + i, position / 2) >>
				   (position % 2 * 16));
	return MAD_OK;
}

uint16_t sma_set_mft(struct sma_req *req)
{
	const __be16 *masks = req->data;
	unsigned int position, shift;
	uint16_t mlid;

	if (!req->node->sw)
		return MAD_BAD_ATTR;
	if (!mft_block(req, &mlid, &position))
		return MAD_BAD_VALUE;
	shift = position % 2 * 16;
	for (unsigned int i = 0; i < MFT_BLOCK; i++) {
		uint32_t old = switch_get_mft(req->node, mlid + i, position / 2);
		uint32_t mask = (old & ~(0xffffU << shift)) | (uint32_t)be16toh(masks[i]) << shift;

		if (mask != old && switch_set_mft(req->node, mlid + i, position / 2, mask))
			return MAD_BAD_VALUE;
	}
	return MAD_OK;
}
