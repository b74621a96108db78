/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What nodes have whose ids say that they are Mellanox': the vendor class 0x0a
 * with ClassPortInfo and GeneralInfo, which vendstat(8) reads, and the SMA's
 * ExtendedPortInfo, which OpenSM asks such nodes for. Others have neither.
 * Layouts: rdma-core, infiniband-diags/vendstat.c; OpenSM, ib_types.h.
 */
#include <endian.h>
#include <string.h>
#include <time.h>

#include "fabric/fabric.h"
#include "hca/sma.h"

#define VENDOR_ID_MLX		0x0002c9
#define VENDOR_ID_BULL		0x00119f
#define VENDOR_DATA_OFFSET	24
#define VENDOR_RESP_TIME	18
#define ATTR_CLASS_PORT_INFO	0x01
#define ATTR_GENERAL_INFO	0x17

struct mlx_hw_info {
	__be16 revision, device_id;
	uint8_t reserved[24];
	__be32 uptime;		/* seconds */
} __attribute__((packed));

/* Behind it stand firmware and software versions, which a node of this fabric has none of. */
struct mlx_general_info {
	uint8_t reserved[8];
	struct mlx_hw_info hw;
} __attribute__((packed));

struct mlx_port_info {
	uint8_t reserved[3], state_change_enable;
	uint8_t reserved2[3], speed_supported;	/* 1: FDR10 */
	uint8_t reserved3[3], speed_enabled;
	uint8_t reserved4[3], speed_active;
};

/* By vendor, or by the device ids that OpenSM takes for theirs. */
static bool is_mlx(const struct node *node)
{
	static const struct {
		uint16_t first, last;
	} ids[] = {
		{ 0x1003, 0x101b }, { 0xa2d2, 0xa2d2 }, { 0xc738, 0xc73b }, { 0xc839, 0xc839 },
		{ 0xcb20, 0xcb20 }, { 0xcf08, 0xcf09 }, { 0xd2f0, 0xd2f0 },
	};

	for (unsigned int i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (node->device_id >= ids[i].first && node->device_id <= ids[i].last)
			return true;
	return node->vendor_id == VENDOR_ID_MLX || node->vendor_id == VENDOR_ID_BULL;
}

/* No port here has FDR10, the one speed that it tells of: all of it is 0. */
uint16_t sma_get_mlx_port_info(struct sma_req *req)
{
	if (!is_mlx(req->node))
		return MAD_BAD_ATTR;
	if ((req->mod & 0xff) > req->node->num_ports)
		return MAD_BAD_VALUE;
	return MAD_OK;
}

uint16_t sma_set_mlx_port_info(struct sma_req *req)
{
	const struct mlx_port_info *info = req->data;

	if (!is_mlx(req->node))
		return MAD_BAD_ATTR;
	if ((req->mod & 0xff) > req->node->num_ports ||
	    (info->state_change_enable && info->speed_enabled))
		return MAD_BAD_VALUE;
	return MAD_OK;
}

static void get_class_port_info(uint8_t *data)
{
	struct class_port_info *info = (struct class_port_info *)data;

	info->base_version = UMAD_BASE_VERSION;
	info->class_version = 1;
	info->cap_mask2_resp_time = htobe32(VENDOR_RESP_TIME);
}

static void get_general_info(const struct node *node, uint8_t *data)
{
	struct mlx_general_info *info = (struct mlx_general_info *)data;
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	info->hw.revision = htobe16(node->revision);
	info->hw.device_id = htobe16(node->device_id);
	info->hw.uptime = htobe32(ts.tv_sec);
}

static uint16_t vendor_dispatch(const struct node *node, struct mad_hdr *hdr)
{
	uint8_t *data = (uint8_t *)hdr + VENDOR_DATA_OFFSET;
	unsigned int id = be16toh(hdr->attr_id);

	if (hdr->base_version != UMAD_BASE_VERSION || hdr->class_version != 1)
		return MAD_BAD_VERSION;
	if (hdr->method != UMAD_METHOD_GET && hdr->method != UMAD_METHOD_SET)
		return MAD_BAD_METHOD;
	if (hdr->method == UMAD_METHOD_SET ||
	    (id != ATTR_CLASS_PORT_INFO && id != ATTR_GENERAL_INFO))
		return MAD_BAD_ATTR;
	memset(data, 0, MAD_SIZE - VENDOR_DATA_OFFSET);
	if (id == ATTR_CLASS_PORT_INFO)
		get_class_port_info(data);
	else
		get_general_info(node, data);
	return MAD_OK;
}

enum mad_verdict vendor_process(struct port *in, void *mad)
{
	struct mad_hdr *hdr = mad;

	if (!is_mlx(in->node) || hdr->method & UMAD_METHOD_RESP_MASK ||
	    hdr->method == UMAD_METHOD_TRAP || hdr->method == UMAD_METHOD_SEND)
		return MAD_UNHANDLED;
	hdr->status = htobe16(vendor_dispatch(in->node, hdr));
	hdr->method = UMAD_METHOD_GET_RESP;
	return MAD_ANSWER;
}
