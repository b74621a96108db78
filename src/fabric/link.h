/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of src/fabric/ call of each other and nobody else does.
 */
#ifndef IBFS_FABRIC_LINK_H
#define IBFS_FABRIC_LINK_H

#include <stdbool.h>

struct link;
struct packet;
struct port;
struct port_details;

/* link.c: the packet has crossed the cable to this port. */
void port_receive(struct port *in, struct packet *pkt);
/* It has, and finds no buffer there. */
void port_overrun(struct port *in);

/* faults.c: the packet has left out, whose cable is imperfect; delivers what is left of it. */
void faults_cross(struct port *out, struct packet *pkt);
/* What the cable still holds is lost: the link went down. */
void faults_flush(struct link *link);
void faults_free(struct link *link);

/* capture.c: show the packet to the port's taps. */
void taps_feed(struct port *port, const struct packet *pkt, bool out);

/* details.c: why packets were lost, beside the counter that has them all; and what came in. */
void details_discard(struct port *port, unsigned int packets, int err);
void details_bad(struct port *port);
void details_overrun(struct port *port);
void details_malformed(struct port *port, unsigned int packets);
enum astray { ASTRAY_DLID, ASTRAY_VL, ASTRAY_LOOP };
void details_astray(struct port *port, unsigned int packets, enum astray why);
void details_recv(struct port_details *details, struct packet *pkt);

/* port.c: a node's ports as they are at power-up; and their tables' memory. */
void port_init(struct port *port);
void port_free_tables(struct port *port);

#endif
