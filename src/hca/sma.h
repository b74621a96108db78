/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet management agent's inside: what its files share. sma.c looks an
 * attribute up in a table and calls what stands there; each attribute's
 * functions read and write the objects of the fabric.
 */
#ifndef IBFS_HCA_SMA_H
#define IBFS_HCA_SMA_H

#include "fabric/fabric.h"
#include "hca/mad.h"
#include "hca/smp.h"

/* A request on its way through an attribute's function. */
struct sma_req {
	struct node *node;
	struct port *in;	/* where it came in */
	struct port *end;	/* the end port that it is for: in, or port 0 */
	const struct smp *smp;
	uint32_t mod;
	void *data;		/* UMAD_LEN_SMP_DATA bytes: written by get, read by set */
	bool reregister;	/* set saw PortInfo:ClientReregister: get shows it (o14-12.2.1) */
};

/*
 * A status (enum mad_status). get fills all of data, which is zero before it.
 * set changes nothing unless it returns MAD_OK; get follows it to answer.
 */
uint16_t sma_get_node_desc(struct sma_req *req);
uint16_t sma_set_node_desc(struct sma_req *req);
uint16_t sma_get_node_info(struct sma_req *req);
uint16_t sma_get_led_info(struct sma_req *req);
uint16_t sma_set_led_info(struct sma_req *req);
uint16_t sma_get_vendor_diag(struct sma_req *req);
uint16_t sma_get_notice(struct sma_req *req);
uint16_t sma_set_notice(struct sma_req *req);
uint16_t sma_get_switch_info(struct sma_req *req);
uint16_t sma_set_switch_info(struct sma_req *req);
uint16_t sma_get_lft(struct sma_req *req);
uint16_t sma_set_lft(struct sma_req *req);
uint16_t sma_get_mft(struct sma_req *req);
uint16_t sma_set_mft(struct sma_req *req);
uint16_t sma_get_guid_info(struct sma_req *req);
uint16_t sma_set_guid_info(struct sma_req *req);
uint16_t sma_get_pkey_table(struct sma_req *req);
uint16_t sma_set_pkey_table(struct sma_req *req);
uint16_t sma_get_sl2vl(struct sma_req *req);
uint16_t sma_set_sl2vl(struct sma_req *req);
uint16_t sma_get_vlarb(struct sma_req *req);
uint16_t sma_set_vlarb(struct sma_req *req);
uint16_t sma_get_port_info(struct sma_req *req);
uint16_t sma_set_port_info(struct sma_req *req);
uint16_t sma_get_mlx_port_info(struct sma_req *req);
uint16_t sma_set_mlx_port_info(struct sma_req *req);

/* The node's port of that number; NULL if it has none (a CA has no port 0). */
struct port *node_port(const struct node *node, unsigned int num);

/* Whether PortInfo may show the end port's M_Key in the answer, 14.2.4.2. */
bool sma_mkey_visible(const struct sma_req *req);

/* Traps and what else the agent remembers of an end port. */
struct trap;
struct sma_state {
	struct port *end;
	struct trap *traps;		/* not repressed yet */
	unsigned int num_traps;
	uint64_t next_tid;
	struct smp_notice queue[8];	/* Get(Notice), oldest first */
	unsigned int num_notices;
	bool notice_toggle;
	bool led;
	const struct port *setting;	/* its PortInfo is being set: that it goes down is no news */
	uint64_t lease_end;		/* CLOCK_MONOTONIC, ms; 0: not running */
};
/* The end port's, made on first use; NULL without memory. */
struct sma_state *sma_state(struct port *end);
void sma_state_free(struct sma_state *state);

/* TrapRepress from the SM; false: the trap is none of ours, but may be a client's. */
bool sma_trap_repress(struct port *end, const struct smp *smp);
/* Trap 144 because of a change that the capability mask doesn't show: CHANGE_*. */
void sma_local_change(struct port *end, unsigned int changes);
/* Trap 256. */
void sma_bad_mkey(const struct sma_req *req, uint16_t slid);

#endif
