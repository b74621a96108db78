/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text files of a far node and its ports: attributes of the subnet manager's
 * class (IBA 14.2.5), in the formats that a device's own files have. A read from
 * the start asks, and waits for the answer.
 */
#include <ctype.h>
#include <errno.h>
#include <infiniband/mad.h>
#include <stdlib.h>
#include <string.h>

#include "fs/dev.h"
#include "fs/peer.h"
#include "fs/rows.h"

static void read_again(struct fs_req *req)
{
	struct peer_text *text = req->file->priv;
	char *buf = malloc(req->size);
	ssize_t ret = -ENOMEM;

	if (buf)
		ret = fs_read(req, req->file, buf, req->size, text->off);
	if (ret != FS_PENDING)
		fs_reply(req, ret, buf, ret > 0 ? ret : 0);
	free(buf);
}

/* All of what the file says, asked anew. */
static ssize_t text_renew(struct file *file, struct fs_req *req,
			  ssize_t (*print)(struct fs_req *req, struct peer_place *place,
					   void (*resume)(struct fs_req *), struct textbuf *out))
{
	struct peer_place *place = peer_place(file->ibfs, file->path.idx);
	struct peer_text *text = file->priv;
	struct textbuf out = { .data = NULL };
	ssize_t ret = place && path_device(file->ibfs, file->path) ? 0 : -ENODEV;

	if (!ret)
		ret = print(req, place, read_again, &out);
	if (!ret && out.failed)
		ret = -ENOMEM;
	if (ret) {
		text_free(&out);
		return ret;
	}
	text_free(&text->text);
	text->text = out;
	text->printed = true;
	return 0;
}

ssize_t peer_text_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off,
		       ssize_t (*print)(struct fs_req *req, struct peer_place *place,
					void (*resume)(struct fs_req *), struct textbuf *out))
{
	struct peer_text *text = file->priv;
	ssize_t ret;

	if (off < 0)
		return -EINVAL;
	if (!text)
		text = file->priv = calloc(1, sizeof(*text));
	if (!text)
		return -ENOMEM;
	if (!off || !text->printed) {
		text->off = off;
		req->size = size;
		ret = text_renew(file, req, print);
		if (ret)
			return ret;
	}
	return read_bytes(text->text.data, text->text.len, buf, size, off);
}

void peer_text_release(struct file *file)
{
	struct peer_text *text = file->priv;

	if (text)
		text_free(&text->text);
	free(text);
}

/* An attribute's field under a name of ours. */
struct field {
	const char *name;
	enum MAD_FIELDS field;
	enum { DEC, HEX, GUID, MTU, STATE, PHYS_STATE, NODE_TYPE } format;
};

static const struct field node_fields[] = {
	{ "base_version", IB_NODE_BASE_VERS_F, DEC },
	{ "class_version", IB_NODE_CLASS_VERS_F, DEC },
	{ "node_type", IB_NODE_TYPE_F, NODE_TYPE },
	{ "num_ports", IB_NODE_NPORTS_F, DEC },
	{ "sys_image_guid", IB_NODE_SYSTEM_GUID_F, GUID },
	{ "node_guid", IB_NODE_GUID_F, GUID },
	{ "port_guid", IB_NODE_PORT_GUID_F, GUID },
	{ "local_port", IB_NODE_LOCAL_PORT_F, DEC },
	{ "partition_cap", IB_NODE_PARTITION_CAP_F, DEC },
	{ "vendor_id", IB_NODE_VENDORID_F, HEX },
	{ "device_id", IB_NODE_DEVID_F, HEX },
	{ "revision", IB_NODE_REVISION_F, HEX },
	{ NULL, IB_NO_FIELD, DEC }
};

static const struct field port_fields[] = {
	{ "state", IB_PORT_STATE_F, STATE },
	{ "phys_state", IB_PORT_PHYS_STATE_F, PHYS_STATE },
	{ "lid", IB_PORT_LID_F, HEX },
	{ "lmc", IB_PORT_LMC_F, DEC },
	{ "sm_lid", IB_PORT_SMLID_F, HEX },
	{ "sm_sl", IB_PORT_SMSL_F, DEC },
	{ "gid_prefix", IB_PORT_GID_PREFIX_F, GUID },
	{ "cap_mask", IB_PORT_CAPMASK_F, HEX },
	{ "max_mtu", IB_PORT_MTU_CAP_F, MTU },
	{ "active_mtu", IB_PORT_NEIGHBOR_MTU_F, MTU },
	{ "vl_cap", IB_PORT_VL_CAP_F, DEC },
	{ "operational_vls", IB_PORT_OPER_VLS_F, DEC },
	{ "width_supported", IB_PORT_LINK_WIDTH_SUPPORTED_F, HEX },
	{ "width_enabled", IB_PORT_LINK_WIDTH_ENABLED_F, HEX },
	{ "width_active", IB_PORT_LINK_WIDTH_ACTIVE_F, HEX },
	{ "speed_supported", IB_PORT_LINK_SPEED_SUPPORTED_F, HEX },
	{ "speed_enabled", IB_PORT_LINK_SPEED_ENABLED_F, HEX },
	{ "speed_active", IB_PORT_LINK_SPEED_ACTIVE_F, HEX },
	{ "speed_ext_active", IB_PORT_LINK_SPEED_EXT_ACTIVE_F, HEX },
	{ "mkey_violations", IB_PORT_MKEY_VIOL_F, DEC },
	{ "pkey_violations", IB_PORT_PKEY_VIOL_F, DEC },
	{ "qkey_violations", IB_PORT_QKEY_VIOL_F, DEC },
	{ "subnet_timeout", IB_PORT_SUBN_TIMEOUT_F, DEC },
	{ NULL, IB_NO_FIELD, DEC }
};

static unsigned int get(const uint8_t *data, enum MAD_FIELDS field)
{
	return mad_get_field((void *)data, 0, field);
}

static void print_field(struct textbuf *out, const uint8_t *data, const struct field *f)
{
	unsigned int value = f->format == GUID ? 0 : get(data, f->field);

	switch (f->format) {
	case DEC:
		text_printf(out, "%u\n", value);
		break;
	case HEX:
		text_printf(out, "0x%x\n", value);
		break;
	case GUID:
		guid_print(out, mad_get_field64((void *)data, 0, f->field));
		break;
	case MTU:
		text_printf(out, "%u\n", value && value < 6 ? 128U << value : 0);
		break;
	case STATE:
		text_printf(out, "%u: %s\n", value, port_state_name(value));
		break;
	case PHYS_STATE:
		text_printf(out, "%u: %s\n", value, phys_state_name(value));
		break;
	case NODE_TYPE:
		text_printf(out, "%u: %s\n", value, ib_node_type_name(value));
		break;
	}
}

static void print_fields(struct textbuf *out, const uint8_t *data, const struct field *f)
{
	for (; f->name; f++) {
		text_printf(out, "%s ", f->name);
		print_field(out, data, f);
	}
}

/* By what directed route the node answers, as `smp ... dr=` takes it. */
static void print_route(struct textbuf *out, const struct peer_place *place)
{
	unsigned int i;

	text_printf(out, "route 0");
	for (i = 1; i <= place->hops; i++)
		text_printf(out, ",%u", place->route[i]);
	text_printf(out, "\n");
}

/* Up to 64 bytes; nothing of it may be taken for the end of the line or for a terminal's. */
static void print_desc(struct textbuf *out, const uint8_t *data)
{
	char desc[65] = "", *c;

	memcpy(desc, data, 64);
	for (c = desc; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	text_printf(out, "%s\n", desc);
}

static ssize_t node_print(struct fs_req *req, struct peer_place *place,
			  void (*resume)(struct fs_req *), struct textbuf *out)
{
	static const struct field guid = { NULL, IB_NODE_GUID_F, GUID };
	static const struct field type = { NULL, IB_NODE_TYPE_F, NODE_TYPE };
	unsigned int sub = req->file->path.sub;
	uint8_t info[64];
	const uint8_t *data;
	ssize_t ret;

	ret = peer_ask(req, place, sub == PEER_TEXT_DESC ? PEER_NODE_DESC : PEER_NODE_INFO, resume,
		       &data);
	if (ret)
		return ret;
	switch (sub) {
	case PEER_TEXT_DESC:
		print_desc(out, data);
		break;
	case PEER_TEXT_GUID:
		print_field(out, data, &guid);
		break;
	case PEER_TEXT_TYPE:
		print_field(out, data, &type);
		break;
	default:
		memcpy(info, data, sizeof(info));
		if (place->entry)
			mad_set_field(info, 0, IB_NODE_LOCAL_PORT_F, place->entry);
		print_fields(out, info, node_fields);
		print_route(out, place);
	}
	return 0;
}

static ssize_t node_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off)
{
	return peer_text_read(file, req, buf, size, off, node_print);
}

const struct file_ops peer_text_ops = { .read = node_read, .release = peer_text_release };

/* libibverbs' bit of a speed: those of LinkSpeedExtActive begin with FDR's. */
static void print_rate(struct textbuf *out, const uint8_t *data)
{
	unsigned int ext = get(data, IB_PORT_LINK_SPEED_EXT_ACTIVE_F);

	text_printf(out, "rate ");
	rate_print(out, get(data, IB_PORT_LINK_WIDTH_ACTIVE_F),
		   ext ? ext << 4 : get(data, IB_PORT_LINK_SPEED_ACTIVE_F));
}

static ssize_t port_print(struct fs_req *req, struct peer_place *place,
			  void (*resume)(struct fs_req *), struct textbuf *out)
{
	static const struct field state = { NULL, IB_PORT_STATE_F, STATE };
	static const struct field lid = { NULL, IB_PORT_LID_F, HEX };
	unsigned int port = req->file->path.port;
	const uint8_t *data;
	ssize_t ret;

	ret = peer_ask(req, place, PEER_PORT_INFO(port), resume, &data);
	if (ret)
		return ret;
	switch (req->file->path.sub) {
	case PEER_TEXT_STATE:
		print_field(out, data, &state);
		break;
	case PEER_TEXT_LID:
		print_field(out, data, &lid);
		break;
	default:
		print_fields(out, data, port_fields);
		print_rate(out, data);
	}
	return 0;
}

static ssize_t port_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off)
{
	return peer_text_read(file, req, buf, size, off, port_print);
}

const struct file_ops peer_port_text_ops = { .read = port_read, .release = peer_text_release };
