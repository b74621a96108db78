/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MADs: what an end port does with them. Layers, outermost first:
 *  agent.c	clients' agents: registration, matching, TIDs, timeouts (facts of
 *		Linux's mad.c), and the path of a MAD in and out of a port
 *  rmpp.c	segmentation and reassembly, IBA 13.6
 *  smi.c	directed routes, IBA 14.2.2
 *  sma.c pma.c	agents that every node has, IBA 14.2, 16.1
 * It works on struct port and struct packet, and knows no file.
 */
#ifndef IBFS_HCA_MAD_H
#define IBFS_HCA_MAD_H

#include <infiniband/umad_types.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ibfs;
struct node;
struct packet;
struct port;

/* A MAD as sent, 13.4.2 and 14.2.1: umad_types.h's layout, overlaid. */
#define MAD_SIZE		256
#define MAD_CLASS_SUBN_LID	0x01
#define MAD_CLASS_SUBN_DR	0x81

/* What every node does with MADs that reach it: simulated nodes' ops. */
extern const struct node_ops sim_node_ops;

/*
 * The agents of a node. Both take the request in mad (256 bytes) and turn it
 * into the response in place. True: answer it; false: no answer (a response,
 * a trap repress, an attribute that the agent leaves to clients: SMInfo).
 * in is the port by which it came in (port 0 or a CA port for LID routing).
 */
bool sma_process(struct port *in, void *mad);
bool pma_process(struct port *in, void *mad);
/* Traps 128-131, 144 of this node (repeated until repressed or the SM is gone). */
void sma_port_event(struct port *port, unsigned int events);
/* Drop trap state and leases; the node goes. */
void sma_free(struct port *end_port);

/*
 * A directed-route or LID-routed SMP that arrived at in, or (in == the end
 * port) one that a local client sends: moves it on, answers it, or hands it to
 * the node's clients. pkt has its headers still on.
 */
void smi_recv(struct port *in, struct packet *pkt);

#endif
