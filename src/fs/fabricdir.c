/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/switches and fabric/nodes: a directory for each node of the fabric,
 * and in it one for each port.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/dev.h"
#include "fs/fabricdir.h"
#include "fs/rows.h"

enum { NODE_ATTR, NODE_GUID, NODE_DESC, NODE_LID };	/* the last of switches only */
enum { NP_ATTR, NP_STATE, NP_PHYS_STATE, NP_RATE, NP_LID, NP_PEER };

const struct entry switch_entries[] = {
	{ "attr", KIND_NODE_TEXT, NODE_ATTR },
	{ "guid", KIND_NODE_TEXT, NODE_GUID },
	{ "desc", KIND_NODE_TEXT, NODE_DESC },
	{ "lid", KIND_NODE_TEXT, NODE_LID },
	{ "lft", KIND_NODE_LFT, 0 },
	{ "mft", KIND_NODE_MFT, 0 },
	{ "ctl", KIND_NODE_CTL, 0 },
	{ "ports", KIND_NODE_PORTS, 0 },
	{ NULL, 0, 0 }
};

const struct entry node_entries[] = {
	{ "attr", KIND_NODE_TEXT, NODE_ATTR },
	{ "guid", KIND_NODE_TEXT, NODE_GUID },
	{ "desc", KIND_NODE_TEXT, NODE_DESC },
	{ "ctl", KIND_NODE_CTL, 0 },
	{ "ports", KIND_NODE_PORTS, 0 },
	{ NULL, 0, 0 }
};

const struct entry node_port_entries[] = {
	{ "attr", KIND_NODE_PORT_TEXT, NP_ATTR },
	{ "state", KIND_NODE_PORT_TEXT, NP_STATE },
	{ "phys_state", KIND_NODE_PORT_TEXT, NP_PHYS_STATE },
	{ "rate", KIND_NODE_PORT_TEXT, NP_RATE },
	{ "lid", KIND_NODE_PORT_TEXT, NP_LID },
	{ "peer", KIND_NODE_PORT_TEXT, NP_PEER },
	{ "counters", KIND_NODE_COUNTERS, 0 },
	{ "pcap", KIND_NODE_PCAP, 0 },
	{ NULL, 0, 0 }
};

/* Where the fabric keeps a counter. */
static const struct {
	uint8_t offset, size;
} port_counters[CNT_MAX] = {
#define COUNTER(name, field) \
	[name] = { offsetof(struct port_counters, field), \
		   sizeof(((struct port_counters *)0)->field) }
	COUNTER(CNT_SYMBOL_ERROR, symbol_errors),
	COUNTER(CNT_LINK_ERROR_RECOVERY, link_recovers),
	COUNTER(CNT_LINK_DOWNED, link_downed),
	COUNTER(CNT_PORT_RCV_ERRORS, rcv_errors),
	COUNTER(CNT_PORT_RCV_REMOTE_PHYSICAL_ERRORS, rcv_rem_phys_errors),
	COUNTER(CNT_PORT_RCV_SWITCH_RELAY_ERRORS, rcv_switch_relay_errors),
	COUNTER(CNT_PORT_XMIT_DISCARDS, xmit_discards),
	COUNTER(CNT_PORT_XMIT_CONSTRAINT_ERRORS, xmit_constraint_errors),
	COUNTER(CNT_PORT_RCV_CONSTRAINT_ERRORS, rcv_constraint_errors),
	COUNTER(CNT_LOCAL_LINK_INTEGRITY_ERRORS, local_link_integrity_errors),
	COUNTER(CNT_EXCESSIVE_BUFFER_OVERRUN_ERRORS, excess_overrun_errors),
	COUNTER(CNT_VL15_DROPPED, vl15_dropped),
	COUNTER(CNT_PORT_XMIT_DATA, xmit_data),
	COUNTER(CNT_PORT_RCV_DATA, rcv_data),
	COUNTER(CNT_PORT_XMIT_PACKETS, xmit_pkts),
	COUNTER(CNT_PORT_RCV_PACKETS, rcv_pkts),
	COUNTER(CNT_UNICAST_XMIT_PACKETS, unicast_xmit_pkts),
	COUNTER(CNT_UNICAST_RCV_PACKETS, unicast_rcv_pkts),
	COUNTER(CNT_MULTICAST_XMIT_PACKETS, multicast_xmit_pkts),
	COUNTER(CNT_MULTICAST_RCV_PACKETS, multicast_rcv_pkts),
	COUNTER(CNT_PORT_XMIT_WAIT, xmit_wait),
#undef COUNTER
};

uint64_t port_counter(const struct port *port, enum counter which)
{
	const char *at = (const char *)&port->cnt + port_counters[which].offset;

	if (port_counters[which].size == sizeof(uint32_t))
		return *(const uint32_t *)at;
	return *(const uint64_t *)at;
}

void port_counter_clear(struct port *port, enum counter which)
{
	memset((char *)&port->cnt + port_counters[which].offset, 0, port_counters[which].size);
}

unsigned int port_speed_bit(const struct port *port)
{
	return port->speed_ext_active ? port->speed_ext_active << 4 : port->speed_active;
}

bool name_from_id(char name[256], const char *id)
{
	size_t n = 0;

	for (; *id; id++) {
		if (n > 250)
			return false;
		if (*id == '/' || *id == '%' || (*id == '.' && !n))
			n += sprintf(name + n, "%%%02x", *id);
		else
			name[n++] = *id;
	}
	name[n] = '\0';
	return n > 0;
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? at - digits : -1;
}

bool id_from_name(char *id, size_t size, const char *name)
{
	int high, low;
	size_t n = 0;

	for (; *name; name++) {
		if (n + 1 >= size)
			return false;
		if (*name != '%') {
			id[n++] = *name;
			continue;
		}
		high = hex_digit(name[1]);
		low = high < 0 ? -1 : hex_digit(name[2]);
		if (low < 0)
			return false;
		id[n++] = 16 * high + low;
		name += 2;
	}
	id[n] = '\0';
	return true;
}

struct port *port_by_name(struct fabric *fabric, const char *name)
{
	uint64_t port;
	char id[256];
	char *colon;

	if (!id_from_name(id, sizeof(id), name))
		return NULL;
	colon = strrchr(id, ':');
	if (!colon || number_name(colon + 1, UINT8_MAX, &port))
		return NULL;
	*colon = '\0';
	return fabric_find_port(fabric, id, port);
}

void port_name_print(struct textbuf *out, const struct port *port)
{
	char name[256];

	if (name_from_id(name, port->node->id))
		text_printf(out, "%s:%u", name, port->num);
}

struct ibfs_device *node_device(struct ibfs *ibfs, const struct node *node)
{
	struct ibfs_device *dev;

	DL_FOREACH(ibfs->devices, dev)
		if (dev->ops->fabric_port && dev->ops->fabric_port(dev, dev->first_port)->node == node)
			return dev;
	return NULL;
}

static struct node *path_node(struct ibfs *ibfs, struct path path)
{
	return ibfs->fabric->nodes[path.idx];
}

static struct port *path_port(struct ibfs *ibfs, struct path path)
{
	return &path_node(ibfs, path)->ports[path.port];
}

/* switches/ and nodes/: which nodes are in it, and as what. */
static int nodes_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	bool switches = dir.kind == KIND_SWITCHES;
	const struct node *node;
	char id[256], canon[256];

	if (!ibfs->fabric || !id_from_name(id, sizeof(id), name))
		return -ENOENT;
	node = fabric_find(ibfs->fabric, id);
	if (!node || (node->sw != NULL) != switches)
		return -ENOENT;
	/* One name each: a directory of two names would be two directories to the kernel. */
	if (!name_from_id(canon, id) || strcmp(canon, name) != 0)
		return -ENOENT;
	child->kind = switches ? KIND_SWITCH : KIND_NODE;
	child->idx = node->index;
	return 0;
}

/* Positions in nodes/: CAs by their index, behind all of them the routers. */
#define ROUTERS	(1ULL << 32)

static const struct node *next_node(const struct fabric *fabric, enum node_type type, uint64_t base,
				    uint64_t *pos)
{
	const struct node *node;

	node = *pos - base < ROUTERS ? fabric_node_from(fabric, type, *pos - base) : NULL;
	if (node)
		*pos = base + node->index + 1;
	return node;
}

static const struct node *next_endnode(const struct fabric *fabric, uint64_t *pos)
{
	const struct node *node = *pos < ROUTERS ? next_node(fabric, NODE_CA, 0, pos) : NULL;

	if (!node && *pos < ROUTERS)
		*pos = ROUTERS;
	return node ? node : next_node(fabric, NODE_ROUTER, ROUTERS, pos);
}

static int nodes_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		      struct path *child)
{
	bool switches = dir.kind == KIND_SWITCHES;
	const struct fabric *fabric = ibfs->fabric;
	const struct node *node;

	do {
		if (!fabric)
			return 0;
		node = switches ? next_node(fabric, NODE_SWITCH, 0, pos) :
				  next_endnode(fabric, pos);
		if (!node)
			return 0;
	} while (!name_from_id(name, node->id));
	child->kind = switches ? KIND_SWITCH : KIND_NODE;
	child->idx = node->index;
	return 1;
}

const struct dir_ops nodes_dir = { .lookup = nodes_lookup, .next = nodes_next };

static const char *node_type_name(const struct node *node)
{
	if (node->sw)
		return "switch";
	return node->type == NODE_ROUTER ? "router" : "ca";
}

static void node_attr_print(struct ibfs *ibfs, const struct node *node, struct textbuf *out)
{
	const struct ibfs_device *dev = node_device(ibfs, node);

	text_printf(out, "id %s\ntype %s\nports %u\nguid ", node->id, node_type_name(node),
		    node->num_ports);
	guid_print(out, node->guid);
	text_printf(out, "sys_image_guid ");
	guid_print(out, node->sysimg_guid);
	text_printf(out, "vendor_id 0x%06x\ndevice_id 0x%04x\nrevision 0x%x\n", node->vendor_id,
		    node->device_id, node->revision);
	if (node->sw)
		text_printf(out, "lft_cap %u\nlft_top %u\nmft_cap %u\nlife_time %u\n",
			    node->sw->lft_cap, node->sw->lft_top, node->sw->mft_cap,
			    node->sw->life_time);
	if (dev)
		text_printf(out, "device %s\n", dev->name);
}

static int node_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	const struct node *node = path_node(ibfs, path);

	if (path.sub == NODE_LID && !node->sw)
		return -ENOENT;
	switch (path.sub) {
	case NODE_ATTR:
		node_attr_print(ibfs, node, out);
		return 0;
	case NODE_GUID:
		guid_print(out, node->guid);
		return 0;
	case NODE_DESC:
		text_printf(out, "%.64s\n", node->desc);
		return 0;
	case NODE_LID:
		text_printf(out, "0x%x\n", node->ports[0].lid);
		return 0;
	default:
		return -ENOENT;
	}
}

const struct file_ops node_text_ops = { .show = node_show };

/* Where a reader of a table is: its next entry. */
struct table {
	unsigned int next;
};
enum { TABLE_ENTRIES = 64 };	/* looked at in one call */

/* "LID PORT" for each route that there is. */
static int lft_more(struct ibfs *ibfs, struct path path, void *state, struct textbuf *out)
{
	const struct node *node = path_node(ibfs, path);
	unsigned int i, lid, port;
	struct table *at = state;

	if (!node->sw)
		return -ENOENT;
	for (i = 0; i < TABLE_ENTRIES && at->next < node->sw->lft_size; i++) {
		lid = at->next++;
		port = switch_get_lft(node, lid);
		if (port != 255)
			text_printf(out, "0x%04x %u\n", lid, port);
	}
	return at->next < node->sw->lft_size;
}

const struct file_ops node_lft_ops = { .show_more = lft_more, .state_size = sizeof(struct table) };

/* "MLID PORT..." for a group that has a port here. */
static void mft_line(const struct node *node, unsigned int mlid, struct textbuf *out)
{
	unsigned int word;
	bool any = false;
	uint32_t mask;

	for (word = 0; word < node->sw->mft_words; word++) {
		for (mask = switch_get_mft(node, mlid, word); mask; mask &= mask - 1) {
			if (!any)
				text_printf(out, "0x%04x", mlid);
			text_printf(out, " %u", 32 * word + (unsigned int)__builtin_ctz(mask));
			any = true;
		}
	}
	if (any)
		text_printf(out, "\n");
}

static int mft_more(struct ibfs *ibfs, struct path path, void *state, struct textbuf *out)
{
	const struct node *node = path_node(ibfs, path);
	size_t before = out->len;
	struct table *at = state;
	unsigned int i;

	if (!node->sw)
		return -ENOENT;
	/* A line may have all ports. */
	for (i = 0; i < TABLE_ENTRIES && at->next < node->sw->mft_size && out->len == before; i++)
		mft_line(node, 0xc000 + at->next++, out);
	return at->next < node->sw->mft_size;
}

const struct file_ops node_mft_ops = { .show_more = mft_more, .state_size = sizeof(struct table) };

static int node_ports_lookup(struct ibfs *ibfs, struct path dir, const char *name,
			     struct path *child)
{
	const struct node *node = path_node(ibfs, dir);
	uint64_t port;

	if (number_name(name, node->num_ports, &port) || (!port && !node->sw))
		return -ENOENT;
	child->kind = KIND_NODE_PORT;
	child->port = port;
	return 0;
}

static int node_ports_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
			   struct path *child)
{
	const struct node *node = path_node(ibfs, dir);

	if (!*pos && !node->sw)
		++*pos;
	if (*pos > node->num_ports)
		return 0;
	sprintf(name, "%u", (unsigned int)*pos);
	child->kind = KIND_NODE_PORT;
	child->port = *pos;
	++*pos;
	return 1;
}

const struct dir_ops node_ports_dir = { .lookup = node_ports_lookup, .next = node_ports_next };

static void peer_print(const struct port *port, struct textbuf *out)
{
	if (port->peer)
		port_name_print(out, port->peer);
	else
		text_printf(out, "none");
	text_printf(out, "\n");
}

static void end_port_print(const struct port *port, struct textbuf *out)
{
	text_printf(out, "guid ");
	guid_print(out, port->guid);
	text_printf(out, "gid_prefix ");
	guid_print(out, port->gid_prefix);
	text_printf(out, "lid 0x%x\nlmc %u\nsm_lid 0x%x\nsm_sl %u\ncap_mask 0x%08x\n", port->lid,
		    port->lmc, port->sm_lid, port->sm_sl, port->cap_mask);
	text_printf(out, "pkey_violations %u\nqkey_violations %u\nmkey_violations %u\n",
		    port->pkey_violations, port->qkey_violations, port->mkey_violations);
}

static void np_attr_print(struct port *port, struct textbuf *out)
{
	text_printf(out, "state %u: %s\nphys_state %u: %s\n", port->state,
		    port_state_name(port->state), port->phys_state,
		    phys_state_name(port->phys_state));
	text_printf(out, "rate ");
	rate_print(out, port->width_active, port_speed_bit(port));
	text_printf(out, "peer ");
	peer_print(port, out);
	text_printf(out, "width_enabled 0x%x\nwidth_supported 0x%x\n", port->width_enabled,
		    port->width_supported);
	text_printf(out, "speed_enabled 0x%x\nspeed_supported 0x%x\n", port->speed_enabled,
		    port->speed_supported);
	text_printf(out, "speed_ext_enabled 0x%x\nspeed_ext_supported 0x%x\n",
		    port->speed_ext_enabled, port->speed_ext_supported);
	text_printf(out, "mtu_cap %u\nneighbor_mtu %u\nvl_cap %u\noper_vls %u\n", port->mtu_cap,
		    port->neighbor_mtu, port->vl_cap, port->oper_vls);
	if (port_end(port) == port)
		end_port_print(port, out);
}

static int node_port_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	struct port *port = path_port(ibfs, path);

	switch (path.sub) {
	case NP_ATTR:
		np_attr_print(port, out);
		return 0;
	case NP_STATE:
		text_printf(out, "%u: %s\n", port->state, port_state_name(port->state));
		return 0;
	case NP_PHYS_STATE:
		text_printf(out, "%u: %s\n", port->phys_state, phys_state_name(port->phys_state));
		return 0;
	case NP_RATE:
		rate_print(out, port->width_active, port_speed_bit(port));
		return 0;
	case NP_LID:
		text_printf(out, "0x%x\n", port_end(port)->lid);
		return 0;
	case NP_PEER:
		peer_print(port, out);
		return 0;
	default:
		return -ENOENT;
	}
}

const struct file_ops node_port_text_ops = { .show = node_port_show };

static int node_counters_lookup(struct ibfs *ibfs, struct path dir, const char *name,
				struct path *child)
{
	int ret = counters_dir.lookup(ibfs, dir, name, child);

	child->kind = KIND_NODE_COUNTER;
	return ret;
}

static int node_counters_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
			      struct path *child)
{
	int ret = counters_dir.next(ibfs, dir, pos, name, child);

	child->kind = KIND_NODE_COUNTER;
	return ret;
}

const struct dir_ops node_counters_dir = {
	.lookup = node_counters_lookup,
	.next = node_counters_next,
};

static int node_counter_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	if (path.sub >= CNT_MAX)
		return -ENOENT;
	text_printf(out, "%llu\n",
		    (unsigned long long)port_counter(path_port(ibfs, path), path.sub));
	return 0;
}

static ssize_t node_counter_store(struct file *file, struct fs_req *req, const char *text,
				  size_t len)
{
	int ret = counter_value(file->ibfs, text, len);

	(void)req;
	if (ret)
		return ret;
	if (file->path.sub >= CNT_MAX)
		return -ENOENT;
	port_counter_clear(path_port(file->ibfs, file->path), file->path.sub);
	return len;
}

const struct file_ops node_counter_ops = {
	.show = node_counter_show,
	.store = node_counter_store,
};
