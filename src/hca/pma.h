/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The performance management agent's inside, IBA 16.1: pma.c has the counters,
 * pma_sample.c the samples.
 */
#ifndef IBFS_HCA_PMA_H
#define IBFS_HCA_PMA_H

#include "fabric/fabric.h"
#include "hca/mad.h"
#include "hca/smp.h"

#define PMA_DATA_OFFSET		64
#define PMA_DATA_SIZE		(MAD_SIZE - PMA_DATA_OFFSET)
#define PMA_ALL_PORTS		255
#define PMA_PORT_SELECT		1	/* byte of data, in every attribute that has one */

struct pma_req {
	struct node *node;
	struct port *end;
	uint8_t *data;		/* PMA_DATA_SIZE bytes; get leaves what it doesn't fill as it was */
};

/* Whether the node has the port that PortSelect names; 255 is all of them together. */
bool pma_port_ok(const struct node *node, unsigned int select);
/* Those ports' counters; a sum sticks at the largest value. */
void pma_counters(const struct node *node, unsigned int select, struct port_counters *cnt);

uint16_t pma_get_samples_control(struct pma_req *req);
uint16_t pma_set_samples_control(struct pma_req *req);
uint16_t pma_get_samples_result(struct pma_req *req);
uint16_t pma_get_samples_result_ext(struct pma_req *req);
void pma_state_free(struct pma_state *state);

#endif
