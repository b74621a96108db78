/* SPDX-License-Identifier: BSD-2-Clause */
/* What device directories share with sys/class and fabric/. */
#ifndef IBFS_FS_DEV_H
#define IBFS_FS_DEV_H

#include "fs/tree.h"

enum {				/* sub of KIND_DEV_TEXT and KIND_DEV_SET */
	DEV_ATTR, DEV_NODE_TYPE, DEV_NODE_GUID, DEV_SYS_IMAGE_GUID, DEV_NODE_DESC,
	DEV_FW_VER, DEV_HW_REV, DEV_HCA_TYPE, DEV_BOARD_ID,
};

enum {				/* sub of KIND_PORT_TEXT */
	PORT_TEXT_ATTR, PORT_TEXT_STATE, PORT_TEXT_PHYS_STATE, PORT_TEXT_RATE, PORT_TEXT_LID,
	PORT_TEXT_LMC, PORT_TEXT_SM_LID, PORT_TEXT_SM_SL, PORT_TEXT_CAP_MASK,
	PORT_TEXT_LINK_LAYER,
};

const char *ib_node_type_name(unsigned int type);		/* "CA", "switch", "router" */
/* Names of states as sysfs has them; "<unknown>". */
const char *port_state_name(unsigned int state);
const char *phys_state_name(unsigned int state);
/* "100 Gb/sec (4X EDR)" from libibverbs' active_width and active_speed. */
void rate_print(struct textbuf *out, unsigned int width, unsigned int speed);
void guid_print(struct textbuf *out, uint64_t guid);
/* What is written to a counter: 0, or -EINVAL and the reason. */
int counter_value(struct ibfs *ibfs, const char *text, size_t len);

/* Directories of a device's ports; kind: of a port's directory. */
int ports_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child,
		 uint8_t kind);
int ports_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
	       struct path *child, uint8_t kind);

#endif
