/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MADs: what an end port does with them. Layers, outermost first:
 *  agent.c	clients' agents: registration, matching, TIDs, timeouts (facts of
 *		Linux's mad.c), and the path of a MAD in and out of a port
 *  rmpp.c	segmentation and reassembly, IBA 13.6
 *  smi.c	QP0: directed routes, IBA 14.2.2
 *  gsi.c	QP1: checks and dispatch by class, IBA 13.5
 *  sma*.c trap.c pma*.c cca.c vendor.c
 *		agents that every node has, IBA 14.2, 14.2.5.1, 16.1, A10
 * It works on struct port and struct packet, and knows no file.
 */
#ifndef IBFS_HCA_MAD_H
#define IBFS_HCA_MAD_H

#include <infiniband/umad_types.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/wire.h"

struct ibfs;
struct node;
struct packet;
struct port;

/* A MAD as sent, 13.4.2 and 14.2.1: umad_types.h's layout, overlaid. */
#define MAD_SIZE		256
#define MAD_CLASS_SUBN_LID	0x01
#define MAD_CLASS_PERF		0x04
#define MAD_CLASS_VENDOR_MLX	0x0a
#define MAD_CLASS_CC		0x21
#define MAD_CLASS_SUBN_DR	0x81

/* A UD packet's headers and its MAD, all linear, big-endian, in the packet itself. */
struct mad_view {
	struct lrh *lrh;
	struct grh *grh;		/* NULL: none */
	struct bth *bth;
	struct deth *deth;
	void *mad;			/* MAD_SIZE bytes */
};

/*
 * Find the headers of a packet that starts at its LRH. False if it isn't one
 * UD SEND packet with a linear MAD of MAD_SIZE bytes: a packet whose payload
 * is in fragments is made linear by mad_linear() first.
 */
bool mad_view(struct packet *pkt, struct mad_view *view);
/* Gather a MAD's fragments behind its headers; false if it is too long for one. */
bool mad_linear(struct packet *pkt);

/*
 * What hca/ keeps for an end port (port->agents), made when it is first
 * needed. A device's owner sets deliver and clients.
 */
struct port_agents {
	/*
	 * A MAD that no agent of the node takes: a response, SMInfo, a trap, a
	 * class that is not served. The packet is the callee's until it
	 * returns; it may turn it round with mad_reply(). NULL: dropped.
	 */
	void (*deliver)(struct port *end_port, struct packet *pkt, const struct mad_view *view);
	void *clients;			/* of deliver's owner */
	struct sma_state *sma;		/* traps and M_Key lease: sma.h */
	struct pma_state *pma;		/* sampling: pma.h */
	struct cca_state *cca;		/* congestion control settings: cca.c */
};
/* The end port's, made on first use; NULL without memory. */
struct port_agents *port_agents(struct port *end_port);
/* Drop all that the agents of this directory keep, and port->agents; clients are their owner's. */
void port_agents_free(struct port *end_port);

/*
 * What simulated nodes do with what reaches them. A device's own ops call
 * smi_recv() for a packet to QP0, gsi_recv() for one to QP1, and
 * sma_port_event() from port_event.
 */
extern const struct node_ops sim_node_ops;

/*
 * A SMP that came in by this port (external, or the end port it was routed to
 * by LID): moves it on, answers it, or delivers it to the end port's clients.
 */
void smi_recv(struct port *in, struct packet *pkt);
/*
 * A SMP of a local client of this end port leaves, headers on, class and
 * route as the client wrote them: C14-9 and C14-13 at the origin. What is for
 * this node itself (hop count 0, own LID, a response that returns here) is
 * handled before it returns, replies delivered with SLID 0xffff (directed) or
 * the own LID. -EINVAL: a hop pointer or path that can't be (kernel's
 * handle_outgoing_dr_smp()); else 0, also when the wire loses it.
 */
int smi_send(struct port *end_port, struct packet *pkt);

/* A packet to QP1 of this end port: P_Key and Q_Key checks, dispatch, reply or delivery. */
void gsi_recv(struct port *end_port, struct packet *pkt);
/*
 * A LID-routed packet (GMP, or SMP of class 1) of this end port leaves: by the
 * port, by the switch's tables, or, to an own LID, straight into node->ops->recv.
 * 0, or port_xmit()'s error.
 */
int mad_xmit(struct port *end_port, struct packet *pkt);
/* A Get or Set that nobody serves becomes the answer that says so; false: it is neither. */
bool mad_unserved(void *mad);
/*
 * Turn a request's addresses round (LIDs, GIDs, QPs; the P_Key that this port
 * has for it) and send what view->mad now holds back where it came from:
 * any class but directed route.
 */
void mad_reply(struct port *end_port, struct packet *pkt, const struct mad_view *view);

/*
 * The agents of a node. Each takes the request in mad (MAD_SIZE bytes); in is
 * the end port, or the external port by which a directed route came in.
 */
enum mad_verdict {
	MAD_UNHANDLED,		/* not for this agent: clients may have it (SMInfo, traps, responses) */
	MAD_CONSUMED,		/* done, without an answer (a repressed trap, a bad M_Key) */
	MAD_ANSWER,		/* mad holds the response now: R bit, status, attribute */
};
/* slid: where a SMP by LID came from, for trap 256. */
enum mad_verdict sma_process(struct port *in, void *mad, uint16_t slid);
enum mad_verdict pma_process(struct port *in, void *mad);
enum mad_verdict cca_process(struct port *in, void *mad);
enum mad_verdict vendor_process(struct port *in, void *mad);

/* Traps 128 and 144 that follow from PORT_EV_* (sent to sm_lid until repressed). */
void sma_port_event(struct port *port, unsigned int events);
/* The node's description was changed by hand: trap 144. */
void sma_desc_changed(struct node *node);
/* A packet (LRH first) to this end port had a bad P_Key or Q_Key: count it, traps 257 and 258. */
void sma_bad_pkey(struct port *end_port, const struct packet *pkt);
void sma_bad_qkey(struct port *end_port, const struct packet *pkt);
/* node_ops' bad_pkey: trap 259. What it counts was counted. */
void sma_bad_switch_pkey(struct port *port, const struct packet *pkt);
/*
 * A port's local physical errors or its receive buffer's overruns went past
 * their thresholds in PortInfo, or its flow control watchdog ran out: counts
 * it and sends trap 129, 130 or 131.
 */
enum port_fault { FAULT_LINK_INTEGRITY = 129, FAULT_OVERRUN = 130, FAULT_WATCHDOG = 131 };
void sma_port_fault(struct port *port, enum port_fault fault);

#endif
