/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of fabric/ share. */
#ifndef IBFS_FS_FABRICDIR_H
#define IBFS_FS_FABRICDIR_H

#include "fabric/fabric.h"
#include "fs/tree.h"

/*
 * A node's id as a file name and back: '/', '%', and a first '.' stand as %2f,
 * %25, %2e. false: it doesn't fit, or is no such name.
 */
bool name_from_id(char name[256], const char *id);
bool id_from_name(char *id, size_t size, const char *name);

/* "NODE:PORT" as ctl files take it and name_from_id() made it; NULL: there is none. */
struct port *port_by_name(struct fabric *fabric, const char *name);
/* The same of a port, appended to text. */
void port_name_print(struct textbuf *out, const struct port *port);

/* A link by its directory's name, or NULL. */
struct link *link_by_name(struct fabric *fabric, const char *name);

/* A port's counter as the fabric keeps it, not cut to its field's width in a MAD. */
uint64_t port_counter(const struct port *port, enum counter which);
void port_counter_clear(struct port *port, enum counter which);
/* libibverbs' bit of a port's speed. */
unsigned int port_speed_bit(const struct port *port);
/* The device that the node is, or NULL. */
struct ibfs_device *node_device(struct ibfs *ibfs, const struct node *node);
/* A static subnet follows what was changed, when the change is complete. */
void fabric_changed(struct ibfs *ibfs);

#endif
