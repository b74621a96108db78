/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node of the fabric as an HCA: what makes it one, where its packets go, and
 * what its clients are told of its ports. IBA 11.6.3 (events), 17.2.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/packet.h"
#include "hca/agent.h"
#include "hca/hca.h"
#include "ibfs/ibfs.h"

static void hca_port_event(struct port *port, unsigned int events);
static void hca_node_free(struct node *node);

static const struct node_ops hca_node_ops = {
	.recv = hca_recv,
	.port_event = hca_port_event,
	.bad_pkey = sma_bad_switch_pkey,
	.free = hca_node_free,
};

/* Events of a port that are the same thing on both sides. */
static const struct {
	unsigned int port_event;
	enum ibv_event_type event;
} event_map[] = {
	{ PORT_EV_LID, IBV_EVENT_LID_CHANGE },
	{ PORT_EV_SM, IBV_EVENT_SM_CHANGE },
	{ PORT_EV_PKEY, IBV_EVENT_PKEY_CHANGE },
	{ PORT_EV_GID, IBV_EVENT_GID_CHANGE },
	{ PORT_EV_REREGISTER, IBV_EVENT_CLIENT_REREGISTER },
};

struct hca *node_hca(struct node *node)
{
	return node->ops == &hca_node_ops ? node->priv : NULL;
}

struct hca_port *hca_port(struct hca *hca, unsigned int num)
{
	if (num < hca->dev.first_port || num > hca->dev.num_ports)
		return NULL;
	return &hca->ports[num];
}

void hca_recv(struct port *port, struct packet *pkt)
{
	struct hca *hca = port->node->priv;
	const struct bth *bth = packet_bth(pkt);

	switch (bth ? be32toh(bth->dqpn) & BTH_QPN_MASK : BTH_QPN_MASK) {
	case 0:
		smi_recv(port, pkt);
		break;
	case 1:
		gsi_recv(port_end(port), pkt);
		break;
	default:
		if (hca->engine && hca->engine->recv)
			hca->engine->recv(hca, port_end(port), pkt);
	}
}

/* Clients see a port as active or not; what is in between is the subnet manager's. */
static void tell_state(struct hca *hca, struct hca_port *hp)
{
	enum port_state old = hp->state;

	hp->state = hp->port->state;
	if (hp->state == PORT_ACTIVE && old != PORT_ACTIVE) {
		device_event(&hca->dev, hp->port->num, IBV_EVENT_PORT_ACTIVE);
	} else if (hp->state != PORT_ACTIVE && old == PORT_ACTIVE) {
		hp->stats[STAT_LINK_DOWNED]++;
		device_event(&hca->dev, hp->port->num, IBV_EVENT_PORT_ERR);
	}
}

static void hca_port_event(struct port *port, unsigned int events)
{
	struct hca *hca = port->node->priv;
	struct hca_port *hp = hca_port(hca, port->num);
	unsigned int i;

	sma_port_event(port, events);
	/* A switch's external ports are no ports of the device. */
	if (!hp)
		return;
	if (events & PORT_EV_STATE)
		tell_state(hca, hp);
	for (i = 0; i < sizeof(event_map) / sizeof(event_map[0]); i++)
		if (events & event_map[i].port_event)
			device_event(&hca->dev, port->num, event_map[i].event);
	if (hca->engine && hca->engine->port_event)
		hca->engine->port_event(hca, port, events);
}

static void describe(struct hca *hca, const char *name)
{
	struct ibfs_device *dev = &hca->dev;
	const struct node *node = hca->node;

	snprintf(dev->name, sizeof(dev->name), "%s", name);
	snprintf(dev->node_desc, sizeof(dev->node_desc), "%s", node->desc);
	snprintf(dev->fw_ver, sizeof(dev->fw_ver), "%s", IBFS_VERSION);
	snprintf(dev->hca_type, sizeof(dev->hca_type), "ibfs");
	snprintf(dev->board_id, sizeof(dev->board_id), "ibfs");
	dev->node_type = (enum ibv_node_type)node->type;
	dev->node_guid = node->guid;
	dev->sys_image_guid = node->sysimg_guid;
	dev->hw_rev = node->revision;
	dev->first_port = node->type != NODE_SWITCH;
	dev->num_ports = node->type == NODE_SWITCH ? 0 : node->num_ports;
}

static void free_ports(struct hca *hca)
{
	unsigned int i;

	for (i = hca->dev.first_port; i <= hca->dev.num_ports; i++)
		if (hca->ports[i].mad)
			mad_port_free(hca->ports[i].mad);
	free(hca->ports);
}

/* Agents' ids differ between devices too, so that a trace of the fabric tells them apart. */
static int make_ports(struct hca *hca)
{
	uint32_t first_tid = (hca->dev.ibfs->next_device + 1) << 20;
	unsigned int i;

	hca->ports = calloc(hca->dev.num_ports + 1, sizeof(*hca->ports));
	if (!hca->ports)
		return -ENOMEM;
	for (i = hca->dev.first_port; i <= hca->dev.num_ports; i++) {
		struct hca_port *hp = &hca->ports[i];

		hp->port = &hca->node->ports[i];
		hp->state = hp->port->state;
		hp->mad = mad_port_new(&hca->dev, hp->port, first_tid + (i << 16));
		if (hp->mad)
			continue;
		free_ports(hca);
		return -ENOMEM;
	}
	return 0;
}

int hca_new(struct node *node, const struct backend_ops *ops, const char *name,
	    struct hca **new_hca)
{
	struct hca *hca;
	int rc;

	if (node->ops != node->fabric->sim_ops)
		return -EBUSY;
	if (strlen(name) >= sizeof(hca->dev.name))
		return -EINVAL;
	hca = calloc(1, sizeof(*hca));
	if (!hca)
		return -ENOMEM;
	hca->dev.ops = ops;
	hca->dev.ibfs = node->fabric->ibfs;
	hca->node = node;
	describe(hca, name);
	rc = make_ports(hca);
	if (rc) {
		free(hca);
		return rc;
	}
	node->priv = hca;
	node->ops = &hca_node_ops;
	*new_hca = hca;
	return 0;
}

void hca_remove(struct hca *hca)
{
	if (hca->engine && hca->engine->lost)
		hca->engine->lost(hca);
	device_remove(&hca->dev);
}

void hca_free(struct hca *hca)
{
	struct node *node = hca->node;

	if (hca->engine && hca->engine->free)
		hca->engine->free(hca);
	free_ports(hca);
	node->ops = node->fabric->sim_ops;
	node->priv = NULL;
	free(hca);
}

/* The node goes, and the device with it. */
static void hca_node_free(struct node *node)
{
	struct hca *hca = node->priv;

	hca_remove(hca);
	hca_free(hca);
	node->ops->free(node);
}
