/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The performance management agent's inside, IBA 16.1: pma.c has the counters,
 * pma_details.c what they are made up of, pma_sample.c the samples.
 */
#ifndef IBFS_HCA_PMA_H
#define IBFS_HCA_PMA_H

#include "fabric/fabric.h"
#include "hca/mad.h"
#include "hca/smp.h"

enum pma_attr_id {
	PMA_CLASS_PORT_INFO	= 0x01,
	PMA_SAMPLES_CONTROL	= 0x10,
	PMA_SAMPLES_RESULT	= 0x11,
	PMA_PORT_COUNTERS	= 0x12,
	PMA_RCV_ERROR_DETAILS	= 0x15,
	PMA_XMIT_DISCARD_DETAILS = 0x16,
	PMA_OP_RCV_COUNTERS	= 0x17,
	PMA_FLOW_CTL_COUNTERS	= 0x18,
	PMA_VL_OP_PACKETS	= 0x19,
	PMA_VL_OP_DATA		= 0x1a,
	PMA_VL_UPDATE_ERRORS	= 0x1b,
	PMA_VL_XMIT_WAIT	= 0x1c,
	PMA_PORT_COUNTERS_EXT	= 0x1d,
	PMA_SAMPLES_RESULT_EXT	= 0x1e,
};

#define PMA_DATA_OFFSET		64
#define PMA_DATA_SIZE		(MAD_SIZE - PMA_DATA_OFFSET)
#define PMA_ALL_PORTS		255
#define PMA_PORT_SELECT		1	/* byte of data, in every attribute that has one */
#define PMA_COUNTER_SELECT	2	/* two bytes */

struct pma_req {
	struct node *node;
	struct port *end;
	unsigned int attr_id;
	uint8_t *data;		/* PMA_DATA_SIZE bytes; get leaves what it doesn't fill as it was */
};

/* Whether the node has the port that PortSelect names; 255 is all of them together. */
bool pma_port_ok(const struct node *node, unsigned int select);
/* Those ports' counters; a sum sticks at the largest value. */
void pma_counters(const struct node *node, unsigned int select, struct port_counters *cnt);

/*
 * Write a counter of so many bits (2, 4 or whole bytes) at a bit of the
 * attribute, counted from its first byte's highest; it sticks at its largest.
 */
void pma_put(uint8_t *data, unsigned int bit, unsigned int bits, uint64_t value);

uint16_t pma_get_details(struct pma_req *req);
uint16_t pma_set_details(struct pma_req *req);
uint16_t pma_get_samples_control(struct pma_req *req);
uint16_t pma_set_samples_control(struct pma_req *req);
uint16_t pma_get_samples_result(struct pma_req *req);
uint16_t pma_get_samples_result_ext(struct pma_req *req);
void pma_state_free(struct pma_state *state);

#endif
