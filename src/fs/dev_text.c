/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of a device and of a port say, and what can be written to
 * them, in the formats of Linux's drivers/infiniband/core/sysfs.c.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <ibfs/verbs.h>

#include "fs/dev.h"
#include "fs/fabricdir.h"
#include "fs/rows.h"

/* Names of numbers, from..; anything else is "<unknown>". */
struct names {
	unsigned int from, count;
	const char *const *names;
};

static const char *name_of(const struct names *names, unsigned int value)
{
	if (value < names->from || value - names->from >= names->count)
		return "<unknown>";
	return names->names[value - names->from];
}

static const char *const node_types[] = { "CA", "switch", "router" };
static const char *const states[] = { "NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER" };
static const char *const phys_states[] = {
	"Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery",
	"Phy Test",
};

static const struct names node_type_names = { 1, 3, node_types };
static const struct names state_names = { 0, 6, states };
static const struct names phys_state_names = { 1, 7, phys_states };

const char *ib_node_type_name(unsigned int type)
{
	return name_of(&node_type_names, type);
}

const char *port_state_name(unsigned int state)
{
	return name_of(&state_names, state);
}

const char *phys_state_name(unsigned int state)
{
	return name_of(&phys_state_names, state);
}

/* sysfs.c's rate_show(): by the speed's and the width's bit, Gbit/s of the lanes' payload. */
static const struct speed {
	const char *name;
	unsigned int bit;
	unsigned int lane;		/* 100 Mbit/s a lane */
} speeds[] = {
	{ "SDR", 1, 25 }, { "DDR", 2, 50 }, { "QDR", 4, 100 }, { "FDR10", 8, 100 },
	{ "FDR", 16, 140 }, { "EDR", 32, 250 }, { "HDR", 64, 500 }, { "NDR", 128, 1000 },
	{ "XDR", 256, 2000 },
};

static const unsigned int widths[] = { 1, 4, 8, 12, 2 };	/* by the bit's number */

void rate_print(struct textbuf *out, unsigned int width, unsigned int speed)
{
	const struct speed *s = &speeds[0];
	unsigned int i, lanes = 1, rate;

	for (i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		if (speeds[i].bit == speed)
			s = &speeds[i];
	for (i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (width == 1U << i)
			lanes = widths[i];
	rate = s->lane * lanes;
	text_printf(out, "%u%s Gb/sec (%uX %s)\n", rate / 10, rate % 10 ? ".5" : "", lanes,
		    s->name);
}

void guid_print(struct textbuf *out, uint64_t guid)
{
	text_printf(out, "%04x:%04x:%04x:%04x\n", (unsigned int)(guid >> 48),
		    (unsigned int)(guid >> 32 & 0xffff), (unsigned int)(guid >> 16 & 0xffff),
		    (unsigned int)(guid & 0xffff));
}

/* A number among a struct's fields, shown under the field's name. */
struct field {
	const char *name;
	uint16_t offset, size;
	bool hex;
};

static uint64_t field_value(const struct field *f, const void *data)
{
	const char *at = (const char *)data + f->offset;

	switch (f->size) {
	case 1:
		return *(const uint8_t *)at;
	case 2:
		return *(const uint16_t *)at;
	case 4:
		return *(const uint32_t *)at;
	default:
		return *(const uint64_t *)at;
	}
}

static void fields_print(struct textbuf *out, const struct field *f, const void *data)
{
	for (; f->name; f++)
		text_printf(out, f->hex ? "%s 0x%llx\n" : "%s %llu\n", f->name,
			    (unsigned long long)field_value(f, data));
}

#define FIELD(type, name, hex)	{ #name, offsetof(type, name), sizeof(((type *)0)->name), hex }
#define DEV_FIELD(name, hex)	FIELD(struct ibv_device_attr, name, hex)
#define PORT_FIELD(name, hex)	FIELD(struct ibv_port_attr, name, hex)

static const struct field dev_fields[] = {
	DEV_FIELD(max_mr_size, true), DEV_FIELD(page_size_cap, true),
	DEV_FIELD(vendor_id, true), DEV_FIELD(vendor_part_id, false), DEV_FIELD(hw_ver, true),
	DEV_FIELD(max_qp, false), DEV_FIELD(max_qp_wr, false),
	DEV_FIELD(device_cap_flags, true), DEV_FIELD(max_sge, false),
	DEV_FIELD(max_sge_rd, false), DEV_FIELD(max_cq, false), DEV_FIELD(max_cqe, false),
	DEV_FIELD(max_mr, false), DEV_FIELD(max_pd, false), DEV_FIELD(max_qp_rd_atom, false),
	DEV_FIELD(max_ee_rd_atom, false), DEV_FIELD(max_res_rd_atom, false),
	DEV_FIELD(max_qp_init_rd_atom, false), DEV_FIELD(max_ee_init_rd_atom, false),
	DEV_FIELD(atomic_cap, false), DEV_FIELD(max_ee, false), DEV_FIELD(max_rdd, false),
	DEV_FIELD(max_mw, false), DEV_FIELD(max_raw_ipv6_qp, false),
	DEV_FIELD(max_raw_ethy_qp, false), DEV_FIELD(max_mcast_grp, false),
	DEV_FIELD(max_mcast_qp_attach, false), DEV_FIELD(max_total_mcast_qp_attach, false),
	DEV_FIELD(max_ah, false), DEV_FIELD(max_fmr, false), DEV_FIELD(max_map_per_fmr, false),
	DEV_FIELD(max_srq, false), DEV_FIELD(max_srq_wr, false), DEV_FIELD(max_srq_sge, false),
	DEV_FIELD(max_pkeys, false), DEV_FIELD(local_ca_ack_delay, false),
	DEV_FIELD(phys_port_cnt, false),
	{ NULL, 0, 0, false }
};

static const struct field port_fields[] = {
	PORT_FIELD(gid_tbl_len, false), PORT_FIELD(port_cap_flags, true),
	PORT_FIELD(max_msg_sz, false), PORT_FIELD(bad_pkey_cntr, false),
	PORT_FIELD(qkey_viol_cntr, false), PORT_FIELD(pkey_tbl_len, false),
	PORT_FIELD(lid, true), PORT_FIELD(sm_lid, true), PORT_FIELD(lmc, false),
	PORT_FIELD(max_vl_num, false), PORT_FIELD(sm_sl, false),
	PORT_FIELD(subnet_timeout, false), PORT_FIELD(init_type_reply, false),
	PORT_FIELD(active_width, false), PORT_FIELD(active_speed, false),
	{ NULL, 0, 0, false }
};

static int dev_attr_show(struct ibfs_device *dev, struct textbuf *out)
{
	struct ibv_device_attr_ex attr = { 0 };
	int ret;

	ret = dev->ops->query_device(dev, &attr);
	if (ret)
		return ret;
	text_printf(out, "fw_ver %s\nnode_guid ", attr.orig_attr.fw_ver);
	guid_print(out, be64toh(attr.orig_attr.node_guid));
	text_printf(out, "sys_image_guid ");
	guid_print(out, be64toh(attr.orig_attr.sys_image_guid));
	fields_print(out, dev_fields, &attr.orig_attr);
	if (dev->ops->verbs)
		text_printf(out, "masked_atomic_cap %u\nmax_fast_reg_page_list_len %u\n",
			    dev->ops->verbs->masked_atomic_cap,
			    dev->ops->verbs->max_fast_reg_page_list_len);
	return 0;
}

static int dev_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	struct ibfs_device *dev = path_device(ibfs, path);

	switch (path.sub) {
	case DEV_ATTR:
		return dev_attr_show(dev, out);
	case DEV_NODE_TYPE:
		text_printf(out, "%u: %s\n", dev->node_type,
			    ib_node_type_name(dev->node_type));
		return 0;
	case DEV_NODE_GUID:
		guid_print(out, dev->node_guid);
		return 0;
	case DEV_SYS_IMAGE_GUID:
		guid_print(out, dev->sys_image_guid);
		return 0;
	case DEV_NODE_DESC:
		text_printf(out, "%.64s\n", dev->node_desc);
		return 0;
	case DEV_FW_VER:
		text_printf(out, "%s\n", dev->fw_ver);
		return 0;
	case DEV_HW_REV:
		text_printf(out, "%x\n", dev->hw_rev);
		return 0;
	case DEV_HCA_TYPE:
		text_printf(out, "%s\n", dev->hca_type);
		return 0;
	case DEV_BOARD_ID:
		text_printf(out, "%s\n", dev->board_id);
		return 0;
	default:
		return -ENOENT;
	}
}

const struct file_ops dev_text_ops = { .show = dev_show };

/* 0002:c903:0000:0001, or the same as a number. */
static int parse_guid(const char *text, uint64_t *guid)
{
	unsigned int part[4];
	int end = 0;

	if (sscanf(text, "%4x:%4x:%4x:%4x%n", &part[0], &part[1], &part[2], &part[3], &end) != 4 ||
	    text[end])
		return parse_u64(text, UINT64_MAX, guid);
	*guid = (uint64_t)part[0] << 48 | (uint64_t)part[1] << 32 | (uint64_t)part[2] << 16 |
		part[3];
	return 0;
}

static int set_guid(struct ibfs_device *dev, const char *value)
{
	uint64_t guid;

	if (parse_guid(value, &guid))
		return ibfs_fail(dev->ibfs, EINVAL, "%s: \"%s\" is not a GUID", dev->name, value);
	return dev->ops->set_sys_image_guid(dev, guid);
}

/* node_desc and sys_image_guid: all of the write is the value, a last newline not. */
static ssize_t dev_store(struct file *file, struct fs_req *req, const char *text, size_t len)
{
	struct ibfs_device *dev = path_device(file->ibfs, file->path);
	size_t n = len && text[len - 1] == '\n' ? len - 1 : len;
	char value[65] = "", desc[64];
	int ret;

	(void)req;
	if (n > 64 || memchr(text, '\0', n))
		return ibfs_fail(file->ibfs, EINVAL, "%s: a value of more than 64 bytes", dev->name);
	memcpy(value, text, n);
	if (file->path.sub == DEV_NODE_DESC) {
		memcpy(desc, value, sizeof(desc));
		ret = dev->ops->set_node_desc(dev, desc);
	} else {
		ret = set_guid(dev, value);
	}
	return ret ? ret : (ssize_t)len;
}

const struct file_ops dev_set_ops = { .show = dev_show, .store = dev_store };

static const char *link_layer_name(const struct ibv_port_attr *attr)
{
	return attr->link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
}

/* 1..5 on the wire; 0 when there is none. */
static unsigned int mtu_bytes(unsigned int mtu)
{
	return mtu ? 128U << mtu : 0;
}

static void port_attr_print(const struct ibv_port_attr *attr, struct textbuf *out)
{
	text_printf(out, "state %u: %s\n", attr->state, port_state_name(attr->state));
	text_printf(out, "phys_state %u: %s\n", attr->phys_state, phys_state_name(attr->phys_state));
	text_printf(out, "max_mtu %u\nactive_mtu %u\n", mtu_bytes(attr->max_mtu),
		    mtu_bytes(attr->active_mtu));
	fields_print(out, port_fields, attr);
	text_printf(out, "link_layer %s\n", link_layer_name(attr));
}

/* ibv_port_attr's active_speed has no bit for XDR; a port of the fabric knows. */
static void port_rate_print(struct ibfs_device *dev, unsigned int num,
			    const struct ibv_port_attr *attr, struct textbuf *out)
{
	const struct port *port = dev->ops->fabric_port ? dev->ops->fabric_port(dev, num) : NULL;

	rate_print(out, attr->active_width, port ? port_speed_bit(port) : attr->active_speed);
}

static int port_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	struct ibfs_device *dev = path_device(ibfs, path);
	struct ibv_port_attr attr = { 0 };
	int ret;

	ret = dev->ops->query_port(dev, path.port, &attr);
	if (ret)
		return ret;
	switch (path.sub) {
	case PORT_TEXT_ATTR:
		port_attr_print(&attr, out);
		break;
	case PORT_TEXT_STATE:
		text_printf(out, "%u: %s\n", attr.state, port_state_name(attr.state));
		break;
	case PORT_TEXT_PHYS_STATE:
		text_printf(out, "%u: %s\n", attr.phys_state, phys_state_name(attr.phys_state));
		break;
	case PORT_TEXT_RATE:
		port_rate_print(dev, path.port, &attr, out);
		break;
	case PORT_TEXT_LID:
		text_printf(out, "0x%x\n", attr.lid);
		break;
	case PORT_TEXT_LMC:
		text_printf(out, "%u\n", attr.lmc);
		break;
	case PORT_TEXT_SM_LID:
		text_printf(out, "0x%x\n", attr.sm_lid);
		break;
	case PORT_TEXT_SM_SL:
		text_printf(out, "%u\n", attr.sm_sl);
		break;
	case PORT_TEXT_CAP_MASK:
		text_printf(out, "0x%08x\n", attr.port_cap_flags);
		break;
	case PORT_TEXT_LINK_LAYER:
		text_printf(out, "%s\n", link_layer_name(&attr));
		break;
	default:
		return -ENOENT;
	}
	return 0;
}

const struct file_ops port_text_ops = { .show = port_show };
