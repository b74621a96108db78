/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Directories of a device and of its ports, in the formats of Linux's
 * drivers/infiniband/core/sysfs.c; sys/class shows the same files again.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include <ibfs/conf.h>
#include <ibfs/verbs.h>

#include "fs/dev.h"
#include "fs/fabricdir.h"
#include "fs/rows.h"
#include "fs/umad.h"

const struct entry dev_value_entries[] = {
	{ "node_type", KIND_DEV_TEXT, DEV_NODE_TYPE },
	{ "node_guid", KIND_DEV_TEXT, DEV_NODE_GUID },
	{ "sys_image_guid", KIND_DEV_SET, DEV_SYS_IMAGE_GUID },
	{ "node_desc", KIND_DEV_SET, DEV_NODE_DESC },
	{ "fw_ver", KIND_DEV_TEXT, DEV_FW_VER },
	{ "hw_rev", KIND_DEV_TEXT, DEV_HW_REV },
	{ "hca_type", KIND_DEV_TEXT, DEV_HCA_TYPE },
	{ "board_id", KIND_DEV_TEXT, DEV_BOARD_ID },
	{ NULL, 0, 0 }
};

const struct entry port_value_entries[] = {
	{ "state", KIND_PORT_TEXT, PORT_TEXT_STATE },
	{ "phys_state", KIND_PORT_TEXT, PORT_TEXT_PHYS_STATE },
	{ "rate", KIND_PORT_TEXT, PORT_TEXT_RATE },
	{ "lid", KIND_PORT_TEXT, PORT_TEXT_LID },
	{ "lid_mask_count", KIND_PORT_TEXT, PORT_TEXT_LMC },
	{ "sm_lid", KIND_PORT_TEXT, PORT_TEXT_SM_LID },
	{ "sm_sl", KIND_PORT_TEXT, PORT_TEXT_SM_SL },
	{ "cap_mask", KIND_PORT_TEXT, PORT_TEXT_CAP_MASK },
	{ "link_layer", KIND_PORT_TEXT, PORT_TEXT_LINK_LAYER },
	{ NULL, 0, 0 }
};

const struct entry dev_entries[] = {
	{ "attr", KIND_DEV_TEXT, DEV_ATTR },
	{ "ctl", KIND_DEV_CTL, 0 },
	{ "events", KIND_DEV_EVENTS, 0 },
	{ "query", KIND_DEV_QUERY, 0 },
	{ NULL, 0, 0 }
};

const struct entry port_entries[] = {
	{ "attr", KIND_PORT_TEXT, PORT_TEXT_ATTR },
	{ "gids", KIND_GIDS, 0 },
	{ "pkeys", KIND_PKEYS, 0 },
	{ "gid_attrs", KIND_GID_ATTRS, 0 },
	{ "counters", KIND_COUNTERS, 0 },
	{ "hw_counters", KIND_HW_COUNTERS, 0 },
	{ "umad", KIND_UMAD, 0 },
	{ "issm", KIND_ISSM, 0 },
	{ "mad", KIND_MADS, 0 },
	{ "ipoib", KIND_IPOIBS, 0 },
	{ "ctl", KIND_PORT_CTL, 0 },
	{ "pcap", KIND_PORT_PCAP, 0 },
	{ "peer", KIND_PEER, 0 },
	{ NULL, 0, 0 }
};

const struct entry gid_attrs_entries[] = {
	{ "types", KIND_GID_TYPES, 0 },
	{ "ndevs", KIND_GID_NDEVS, 0 },
	{ NULL, 0, 0 }
};

struct ibfs_device *device_from(struct ibfs *ibfs, uint64_t num)
{
	struct ibfs_device *dev;

	DL_FOREACH(ibfs->devices, dev)
		if (dev->num >= num)
			return dev;
	return NULL;
}

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

/* Directories of numbers 0..n-1: how many, and the kind of what is in them. */
static unsigned int table_len(struct ibfs *ibfs, struct path dir, uint8_t kind)
{
	struct ibfs_device *dev = path_device(ibfs, dir);
	struct ibv_port_attr attr = { 0 };
	int len;

	if (dev->ops->query_port(dev, dir.port, &attr))
		return 0;
	len = kind == KIND_PKEY ? attr.pkey_tbl_len : attr.gid_tbl_len;
	return len > 0 ? len : 0;
}

static int table_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child,
			uint8_t kind)
{
	uint64_t index;

	if (number_name(name, 0xffff, &index) || index >= table_len(ibfs, dir, kind))
		return -ENOENT;
	child->kind = kind;
	child->idx = index;
	return 0;
}

static int table_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		      struct path *child, uint8_t kind)
{
	if (*pos >= table_len(ibfs, dir, kind))
		return 0;
	sprintf(name, "%u", (unsigned int)*pos);
	child->kind = kind;
	child->idx = *pos;
	++*pos;
	return 1;
}

static int gids_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	return table_lookup(ibfs, dir, name, child, KIND_GID);
}

static int gids_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		     struct path *child)
{
	return table_next(ibfs, dir, pos, name, child, KIND_GID);
}

const struct dir_ops gids_dir = { .lookup = gids_lookup, .next = gids_next };

static int pkeys_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	return table_lookup(ibfs, dir, name, child, KIND_PKEY);
}

static int pkeys_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		      struct path *child)
{
	return table_next(ibfs, dir, pos, name, child, KIND_PKEY);
}

const struct dir_ops pkeys_dir = { .lookup = pkeys_lookup, .next = pkeys_next };

static int types_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	return table_lookup(ibfs, dir, name, child, KIND_GID_TYPE);
}

static int types_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		      struct path *child)
{
	return table_next(ibfs, dir, pos, name, child, KIND_GID_TYPE);
}

const struct dir_ops gid_types_dir = { .lookup = types_lookup, .next = types_next };

static int ndevs_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	return table_lookup(ibfs, dir, name, child, KIND_GID_NDEV);
}

static int ndevs_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		      struct path *child)
{
	return table_next(ibfs, dir, pos, name, child, KIND_GID_NDEV);
}

const struct dir_ops gid_ndevs_dir = { .lookup = ndevs_lookup, .next = ndevs_next };

static int gid_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	struct ibfs_device *dev = path_device(ibfs, path);
	union ibv_gid gid;
	unsigned int i;
	int ret;

	ret = dev->ops->query_gid(dev, path.port, path.idx, &gid);
	if (ret)
		return ret;
	for (i = 0; i < 16; i += 2)
		text_printf(out, "%s%02x%02x", i ? ":" : "", gid.raw[i], gid.raw[i + 1]);
	text_printf(out, "\n");
	return 0;
}

const struct file_ops gid_ops = { .show = gid_show };

static int pkey_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	struct ibfs_device *dev = path_device(ibfs, path);
	uint16_t pkey;
	int ret;

	ret = dev->ops->query_pkey(dev, path.port, path.idx, &pkey);
	if (!ret)
		text_printf(out, "0x%04x\n", pkey);
	return ret;
}

const struct file_ops pkey_ops = { .show = pkey_show };

/* An empty entry has neither type nor interface: EINVAL, as on Linux. */
static int gid_type_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	struct ibfs_device *dev = path_device(ibfs, path);
	union ibv_gid gid;
	int ret;

	ret = dev->ops->query_gid(dev, path.port, path.idx, &gid);
	if (ret)
		return ret;
	if (!gid.global.interface_id)
		return -EINVAL;
	text_printf(out, "IB/RoCE v1\n");
	return 0;
}

const struct file_ops gid_type_ops = { .show = gid_type_show };

/* A GID of InfiniBand belongs to no network interface. */
static int gid_ndev_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	(void)ibfs;
	(void)path;
	(void)out;
	return -EINVAL;
}

const struct file_ops gid_ndev_ops = { .show = gid_ndev_show };

/* Of a device's own port, or of a far one's. */
static uint8_t counter_kind(struct path dir)
{
	return dir.kind == KIND_PEER_COUNTERS ? KIND_PEER_COUNTER : KIND_COUNTER;
}

static int counters_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	unsigned int i;

	(void)ibfs;
	for (i = 0; i < CNT_MAX; i++) {
		if (strcmp(counter_names[i], name) != 0)
			continue;
		child->kind = counter_kind(dir);
		child->sub = i;
		return 0;
	}
	return -ENOENT;
}

static int counters_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
			 struct path *child)
{
	(void)ibfs;
	if (*pos >= CNT_MAX)
		return 0;
	snprintf(name, 256, "%s", counter_names[*pos]);
	child->kind = counter_kind(dir);
	child->sub = *pos;
	++*pos;
	return 1;
}

const struct dir_ops counters_dir = { .lookup = counters_lookup, .next = counters_next };

static int counter_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	struct ibfs_device *dev = path_device(ibfs, path);
	uint64_t value;
	int ret;

	ret = dev->ops->query_counter(dev, path.port, path.sub, &value);
	if (!ret)
		text_printf(out, "%llu\n", (unsigned long long)value);
	return ret;
}

/* 0 is all that can be written. */
int counter_value(struct ibfs *ibfs, const char *text, size_t len)
{
	if (len && text[len - 1] == '\n')
		len--;
	if (len != 1 || text[0] != '0')
		return ibfs_fail(ibfs, EINVAL, "a counter can be set to 0 only");
	return 0;
}

static ssize_t counter_store(struct file *file, struct fs_req *req, const char *text, size_t len)
{
	struct ibfs_device *dev = path_device(file->ibfs, file->path);
	int ret;

	(void)req;
	ret = counter_value(file->ibfs, text, len);
	if (!ret)
		ret = dev->ops->clear_counter(dev, file->path.port, file->path.sub);
	return ret ? ret : (ssize_t)len;
}

const struct file_ops counter_ops = { .show = counter_show, .store = counter_store };

/* The device's own counters, by name. */
static const char *hw_counter_name(const struct ibfs_device *dev, uint64_t index)
{
	const char *const *names = dev->ops->hw_counters;

	while (names && *names && index) {
		names++;
		index--;
	}
	return names ? *names : NULL;
}

static int hw_counters_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
			    struct path *child)
{
	const char *found = hw_counter_name(path_device(ibfs, dir), *pos);

	if (!found)
		return 0;
	snprintf(name, 256, "%s", found);
	child->kind = KIND_HW_COUNTER;
	child->sub = *pos;
	++*pos;
	return 1;
}

static int hw_counters_lookup(struct ibfs *ibfs, struct path dir, const char *name,
			      struct path *child)
{
	uint64_t pos = 0;
	char found[256];

	while (hw_counters_next(ibfs, dir, &pos, found, child) > 0)
		if (!strcmp(found, name))
			return 0;
	return -ENOENT;
}

const struct dir_ops hw_counters_dir = { .lookup = hw_counters_lookup, .next = hw_counters_next };

static int hw_counter_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	struct ibfs_device *dev = path_device(ibfs, path);
	uint64_t value;
	int ret;

	if (!hw_counter_name(dev, path.sub))
		return -ENOENT;
	ret = dev->ops->query_hw_counter(dev, path.port, path.sub, &value);
	if (!ret)
		text_printf(out, "%llu\n", (unsigned long long)value);
	return ret;
}

const struct file_ops hw_counter_ops = { .show = hw_counter_show };

/* A device's ports, as directories: in the device itself, and in sys/class. */
int ports_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child,
		 uint8_t kind)
{
	const struct ibfs_device *dev = path_device(ibfs, dir);
	uint64_t port;

	if (number_name(name, dev->num_ports, &port) || port < dev->first_port)
		return -ENOENT;
	child->kind = kind;
	child->port = port;
	return 0;
}

int ports_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
	       struct path *child, uint8_t kind)
{
	const struct ibfs_device *dev = path_device(ibfs, dir);

	if (*pos < dev->first_port)
		*pos = dev->first_port;
	if (*pos > dev->num_ports)
		return 0;
	sprintf(name, "%u", (unsigned int)*pos);
	child->kind = kind;
	child->port = *pos;
	++*pos;
	return 1;
}

static int dev_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	if (!strcmp(name, "uverbs") && uverbs_has(path_device(ibfs, dir))) {
		child->kind = KIND_UVERBS;
		return 0;
	}
	return ports_lookup(ibfs, dir, name, child, KIND_PORT);
}

static int dev_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		    struct path *child)
{
	const struct ibfs_device *dev = path_device(ibfs, dir);

	if (*pos <= dev->num_ports)
		return ports_next(ibfs, dir, pos, name, child, KIND_PORT);
	if (*pos > dev->num_ports + 1 || !uverbs_has(dev))
		return 0;
	strcpy(name, "uverbs");
	child->kind = KIND_UVERBS;
	*pos = dev->num_ports + 2;
	return 1;
}

const struct dir_ops dev_dir = { .lookup = dev_lookup, .next = dev_next };

/* Device files belong to whom the configuration says, with its modes. */
static void conf_attr(const struct conf *conf, mode_t mode, struct stat *st)
{
	st->st_mode = S_IFREG | mode;
	st->st_uid = conf->files.uid;
	st->st_gid = conf->files.gid;
}

/*
 * The size is what a write may have at most: Linux lets one writer at a time
 * go beyond it, and that one may hang in a page of its own.
 */
int umad_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	(void)path;
	st->st_size = UMAD_MESSAGE_MAX;
	if (ibfs->conf)
		conf_attr(ibfs->conf, ibfs->conf->files.umad, st);
	return 0;
}

/* The size is large so that writers of one file don't wait for each other: see umad. */
int uverbs_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	(void)path;
	st->st_size = UMAD_MESSAGE_MAX;
	if (ibfs->conf)
		conf_attr(ibfs->conf, ibfs->conf->files.uverbs, st);
	return 0;
}

int clone_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	(void)path;
	if (ibfs->conf)
		conf_attr(ibfs->conf, ibfs->conf->files.clone, st);
	return 0;
}

int issm_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	(void)path;
	if (ibfs->conf)
		conf_attr(ibfs->conf, ibfs->conf->files.issm, st);
	return 0;
}
