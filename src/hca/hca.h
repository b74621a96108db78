/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The soft HCA: a node of the fabric that is a device of the tree. The node
 * brings ports, tables and counters; the HCA adds clients' MADs (agent.h) and,
 * set from outside, the verbs engine.
 */
#ifndef IBFS_HCA_HCA_H
#define IBFS_HCA_HCA_H

#include "fabric/fabric.h"
#include "hca/stats.h"
#include "ibfs/backend.h"

struct hca;
struct packet;

/* What the verbs engine does for an HCA; any function may be NULL. */
struct hca_engine {
	/* A packet for another QP than 0 and 1 (a multicast or a raw one), LRH first; owned as in packet.h. */
	void (*recv)(struct hca *hca, struct port *port, struct packet *pkt);
	/* A MAD for QP0 or QP1 that the node's agents left: true when somebody has such a QP. */
	bool (*mad)(struct hca *hca, struct port *port, unsigned int qpn, struct packet *pkt);
	/* PORT_EV_* happened; device_event() was called. */
	void (*port_event)(struct hca *hca, struct port *port, unsigned int events);
	/* Put its limits and capabilities into what soft_ops->query_device() fills. */
	void (*query_device)(struct hca *hca, struct ibv_device_attr_ex *attr);
	/* The device is about to go: end the work that waits, while its clients can still look. */
	void (*lost)(struct hca *hca);
	/* The HCA goes: free hca->engine_priv. */
	void (*free)(struct hca *hca);
};

struct hca_port {
	struct port *port;
	struct mad_port *mad;
	enum port_state state;		/* that clients were told last */
	uint64_t stats[STAT_MAX];
};

struct hca {
	struct ibfs_device dev;		/* first */
	struct node *node;
	const struct hca_engine *engine;	/* NULL: QP0 and QP1 only */
	void *engine_priv;
	struct hca_port *ports;		/* by number; 0 unused on a CA */
};

/* Make the node an HCA, its ops ours. Not yet in the tree. -EBUSY: is a device already; -ENOMEM. */
int hca_new(struct node *node, const struct backend_ops *ops, const char *name,
	    struct hca **new_hca);
/* Take the device out of the tree, its clients' work ended before; hca_free() follows. */
void hca_remove(struct hca *hca);
/* Agents are told; the node becomes a simulated one again. */
void hca_free(struct hca *hca);

static inline struct hca *hca_of(struct ibfs_device *dev)
{
	return (struct hca *)dev;
}
/* The HCA that a node is, or NULL. */
struct hca *node_hca(struct node *node);
/* An end port by number, or NULL. */
struct hca_port *hca_port(struct hca *hca, unsigned int num);

/* node_ops.recv of a device: QP0 and QP1 to the MAD agents, the rest to the engine. */
void hca_recv(struct port *port, struct packet *pkt);

#endif
