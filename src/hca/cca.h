/* SPDX-License-Identifier: BSD-2-Clause */
/* The congestion control agent's state, as port_agents_free() drops it. */
#ifndef IBFS_HCA_CCA_H
#define IBFS_HCA_CCA_H

struct cca_state;

void cca_state_free(struct cca_state *state);

#endif
