/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PortSamplesControl and PortSamplesResult, IBA 16.1.3.2 to 16.1.3.4: after
 * SampleStart ticks counters run for SampleInterval ticks. One set of samples
 * for an end port, of whichever port of its node it selects.
 */
#include <endian.h>
#include <ev.h>
#include <ibfs/ibfs.h>
#include <stdlib.h>
#include <string.h>

#include "hca/pma.h"

#define SAMPLE_COUNTERS		15
#define TICK_SECONDS		1.024e-6	/* 256 times 4 ns */
#define TICK_FIELD		0xff

struct pma_samples_control {
	uint8_t op_code, port_select, tick;
	uint8_t width;		/* rsv:5 CounterWidth:3; 4: 32 bits */
	__be32 mask0_9;		/* rsv:2 CounterMask0:3 CounterMasks1to9:27 */
	__be16 mask10_14;	/* rsv:1 CounterMasks10to14:15 */
	uint8_t mechanisms, status;
	__be64 option_mask, vendor_mask;
	__be32 start, interval;
	__be16 tag;
	__be16 select[SAMPLE_COUNTERS];
} __attribute__((packed));

struct pma_samples_result {
	__be16 tag, status;
	__be32 counter[SAMPLE_COUNTERS];
} __attribute__((packed));

struct pma_samples_result_ext {
	__be16 tag, status;
	__be32 width;		/* ExtendedWidth:2, 2: 64 bits */
	__be64 counter[SAMPLE_COUNTERS];
} __attribute__((packed));

#define WIDTH_32		4
#define EXT_WIDTH_64		0x80000000U
/* Any counter may be any of the mandatory ones: 001 for each. */
#define MASK_0_9		0x09249249U
#define MASK_10_14		0x1249U

enum sample_status { SAMPLE_DONE, SAMPLE_WAITING, SAMPLE_RUNNING };
enum sample_select { SELECT_NONE, SELECT_XMIT_DATA, SELECT_RCV_DATA, SELECT_XMIT_PKTS,
		     SELECT_RCV_PKTS, SELECT_XMIT_WAIT };

struct pma_state {
	struct port *end;
	ev_timer timer;
	enum sample_status status;
	uint8_t op_code, port_select;
	uint32_t start, interval;
	uint16_t tag;
	uint16_t select[SAMPLE_COUNTERS];
	uint64_t base[SAMPLE_COUNTERS];
	uint64_t result[SAMPLE_COUNTERS];
};

static struct pma_state *state_if_any(const struct port *end)
{
	const struct port_agents *agents = end->agents;

	return agents ? agents->pma : NULL;
}

static struct ev_loop *sample_loop(const struct pma_state *state)
{
	return state->end->node->fabric->ibfs->loop;
}

void pma_state_free(struct pma_state *state)
{
	if (!state)
		return;
	ev_timer_stop(sample_loop(state), &state->timer);
	free(state);
}

static uint64_t sample_value(const struct port_counters *cnt, unsigned int select)
{
	switch (select) {
	case SELECT_XMIT_DATA:
		return cnt->xmit_data;
	case SELECT_RCV_DATA:
		return cnt->rcv_data;
	case SELECT_XMIT_PKTS:
		return cnt->xmit_pkts;
	case SELECT_RCV_PKTS:
		return cnt->rcv_pkts;
	case SELECT_XMIT_WAIT:
		return cnt->xmit_wait;
	default:
		return 0;
	}
}

/* What was counted since sampling began; one that was cleared since then counts from 0. */
static void sample_now(const struct pma_state *state, uint64_t values[SAMPLE_COUNTERS])
{
	struct port_counters cnt;

	pma_counters(state->end->node, state->port_select, &cnt);
	for (unsigned int i = 0; i < SAMPLE_COUNTERS; i++) {
		uint64_t value = sample_value(&cnt, state->select[i]);

		values[i] = value < state->base[i] ? value : value - state->base[i];
	}
}

static void sample_results(const struct pma_state *state, uint64_t values[SAMPLE_COUNTERS])
{
	if (state->status == SAMPLE_RUNNING)
		sample_now(state, values);
	else
		memcpy(values, state->result, sizeof(state->result));
}

static void sample_timer(struct pma_state *state, uint32_t ticks)
{
	ev_timer_set(&state->timer, ticks * TICK_SECONDS, 0.);
	ev_timer_start(sample_loop(state), &state->timer);
}

static void sample_begin(struct pma_state *state)
{
	memset(state->base, 0, sizeof(state->base));
	sample_now(state, state->base);
	state->status = SAMPLE_RUNNING;
	sample_timer(state, state->interval);
}

static void sample_timeout(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct pma_state *state = timer->data;

	(void)loop;
	(void)revents;
	if (state->status == SAMPLE_WAITING) {
		sample_begin(state);
		return;
	}
	sample_now(state, state->result);
	state->status = SAMPLE_DONE;
}

static struct pma_state *state_get(struct port *end)
{
	struct port_agents *agents = port_agents(end);
	struct pma_state *state;

	if (!agents || agents->pma)
		return agents ? agents->pma : NULL;
	state = calloc(1, sizeof(*state));
	if (!state)
		return NULL;
	state->end = end;
	ev_timer_init(&state->timer, sample_timeout, 0., 0.);
	state->timer.data = state;
	agents->pma = state;
	return state;
}

uint16_t pma_get_samples_control(struct pma_req *req)
{
	struct pma_samples_control *control = (struct pma_samples_control *)req->data;
	const struct pma_state *state = state_if_any(req->end);
	uint8_t port_select = control->port_select;

	if (!pma_port_ok(req->node, port_select))
		return MAD_BAD_VALUE;
	memset(req->data, 0, PMA_DATA_SIZE);
	control->port_select = port_select;
	control->tick = TICK_FIELD;
	control->width = WIDTH_32;
	control->mask0_9 = htobe32(MASK_0_9);
	control->mask10_14 = htobe16(MASK_10_14);
	if (!state)
		return MAD_OK;
	control->op_code = state->op_code;
	control->status = state->status;
	control->start = htobe32(state->start);
	control->interval = htobe32(state->interval);
	control->tag = htobe16(state->tag);
	for (unsigned int i = 0; i < SAMPLE_COUNTERS; i++)
		control->select[i] = htobe16(state->select[i]);
	return MAD_OK;
}

/* Ignored while samples are being taken, as the answer shows. */
uint16_t pma_set_samples_control(struct pma_req *req)
{
	const struct pma_samples_control *control = (const struct pma_samples_control *)req->data;
	struct pma_state *state;

	if (!pma_port_ok(req->node, control->port_select))
		return MAD_BAD_VALUE;
	state = state_get(req->end);
	if (!state)
		return MAD_BAD_VALUE;
	if (state->status != SAMPLE_DONE)
		return MAD_OK;
	state->op_code = control->op_code;
	state->port_select = control->port_select;
	state->start = be32toh(control->start);
	state->interval = be32toh(control->interval);
	state->tag = be16toh(control->tag);
	for (unsigned int i = 0; i < SAMPLE_COUNTERS; i++)
		state->select[i] = be16toh(control->select[i]);
	memset(state->result, 0, sizeof(state->result));
	if (!state->start) {
		sample_begin(state);
		return MAD_OK;
	}
	state->status = SAMPLE_WAITING;
	sample_timer(state, state->start);
	return MAD_OK;
}

uint16_t pma_get_samples_result(struct pma_req *req)
{
	struct pma_samples_result *result = (struct pma_samples_result *)req->data;
	const struct pma_state *state = state_if_any(req->end);
	uint64_t values[SAMPLE_COUNTERS];

	memset(req->data, 0, PMA_DATA_SIZE);
	if (!state)
		return MAD_OK;
	sample_results(state, values);
	result->tag = htobe16(state->tag);
	result->status = htobe16(state->status);
	for (unsigned int i = 0; i < SAMPLE_COUNTERS; i++)
		result->counter[i] = htobe32(values[i] > UINT32_MAX ? UINT32_MAX : values[i]);
	return MAD_OK;
}

uint16_t pma_get_samples_result_ext(struct pma_req *req)
{
	struct pma_samples_result_ext *result = (struct pma_samples_result_ext *)req->data;
	const struct pma_state *state = state_if_any(req->end);
	uint64_t values[SAMPLE_COUNTERS];

	memset(req->data, 0, PMA_DATA_SIZE);
	result->width = htobe32(EXT_WIDTH_64);
	if (!state)
		return MAD_OK;
	sample_results(state, values);
	result->tag = htobe16(state->tag);
	result->status = htobe16(state->status);
	for (unsigned int i = 0; i < SAMPLE_COUNTERS; i++)
		result->counter[i] = htobe64(values[i]);
	return MAD_OK;
}
