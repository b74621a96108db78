/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the static subnet share. Private to static*.c. */
#ifndef IBFS_FABRIC_STATIC_H
#define IBFS_FABRIC_STATIC_H

#include "fabric/fabric.h"

#define LID_UCAST_MAX	0xbfff		/* 4.1.3 */
#define LID_MCAST_MIN	0xc000
#define LID_MCAST_MAX	0xfffe

/* The other end of a port if a packet can cross, else NULL. */
static inline struct port *static_peer(const struct port *port)
{
	return port->peer && port->phys_state == PHYS_LINKUP ? port->peer : NULL;
}

/* Fill all switches' LFTs for the LIDs that end ports have, none above top. -ENOMEM, -ERANGE */
int static_routes(struct fabric *fabric, uint16_t top);
/* Fill the MFTs of all groups. -ENOMEM, -ERANGE */
int static_mcast_routes(struct fabric *fabric);

#endif
