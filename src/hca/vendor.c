/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mellanox' vendor class 0x0a, for nodes whose ids say that they are such:
 * ClassPortInfo and GeneralInfo, which vendstat(8) reads. Other nodes have no
 * agent of the class. Layouts: rdma-core, infiniband-diags/vendstat.c.
 */
#include <endian.h>
#include <string.h>
#include <time.h>

#include "fabric/fabric.h"
#include "hca/mad.h"
#include "hca/smp.h"

#define VENDOR_ID_MLX		0x0002c9
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

	if (in->node->vendor_id != VENDOR_ID_MLX || hdr->method & UMAD_METHOD_RESP_MASK ||
	    hdr->method == UMAD_METHOD_TRAP || hdr->method == UMAD_METHOD_SEND)
		return MAD_UNHANDLED;
	hdr->status = htobe16(vendor_dispatch(in->node, hdr));
	hdr->method = UMAD_METHOD_GET_RESP;
	return MAD_ANSWER;
}
