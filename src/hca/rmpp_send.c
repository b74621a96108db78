/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sender of a RMPP message, IBA 13.6.6.1: segments go out as the receiver's
 * window opens. An ACK comes from inside the call that sent a segment, so what
 * follows it is sent from a task.
 *
 * What is lost is sent again in two ways. An ACK that stops short of what was
 * sent tells that the next segment is missing: that one goes out again, once.
 * When no ACK comes, all from the last acknowledged one on go out again, after
 * a wait that starts short and doubles; only when the waits add up to the full
 * time (Linux's 2 s, or less if the client's timeout is less) a retry is used.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "hca/agent.h"

#define ACK_TIMEOUT_MS	2000
#define FIRST_WAIT_MS	50
#define BURST		64	/* segments that one run of the task sends */

static unsigned int full_wait(const struct mad_out *out)
{
	if (!out->timeout_ms || out->timeout_ms > ACK_TIMEOUT_MS)
		return ACK_TIMEOUT_MS;
	return out->timeout_ms;
}

static void reset_wait(struct mad_out *out)
{
	unsigned int full = full_wait(out);

	out->rmpp.wait_ms = full < FIRST_WAIT_MS ? full : FIRST_WAIT_MS;
	out->rmpp.waited_ms = 0;
	out->retries = out->max_retries;
}

/* PayloadLength counts the class' own header in each segment, 13.6.2.1. */
static uint32_t payload_len(const struct mad_out *out, uint32_t seg, unsigned int hdr_len)
{
	size_t data = out->len - hdr_len;
	unsigned int seg_size = MAD_SIZE - hdr_len;

	if (seg == out->rmpp.segs)
		return data - (size_t)(seg - 1) * seg_size + hdr_len - RMPP_HDR_LEN;
	if (seg == 1)
		return data + (size_t)out->rmpp.segs * (hdr_len - RMPP_HDR_LEN);
	return 0;
}

static int send_seg(struct mad_out *out, uint32_t seg)
{
	union {
		struct umad_rmpp_packet head;
		uint8_t bytes[MAD_SIZE];
	} mad = { 0 };
	struct umad_rmpp_hdr *rmpp = &mad.head.rmpp_hdr;
	unsigned int hdr_len = rmpp_header_len(out->key.mgmt_class);
	size_t offset = hdr_len + (size_t)(seg - 1) * (MAD_SIZE - hdr_len);
	size_t left = out->len - offset;

	memcpy(mad.bytes, out->mad, hdr_len);
	if (left > MAD_SIZE - hdr_len)
		left = MAD_SIZE - hdr_len;
	memcpy(mad.bytes + hdr_len, out->mad + offset, left);
	rmpp->rmpp_version = UMAD_RMPP_VERSION;
	rmpp->rmpp_type = RMPP_DATA;
	rmpp->rmpp_rtime_flags = RMPP_NO_RESP_TIME | RMPP_ACTIVE | (seg == 1 ? RMPP_FIRST : 0) |
				 (seg == out->rmpp.segs ? RMPP_LAST : 0);
	rmpp->rmpp_status = RMPP_OK;
	rmpp->seg_num = htobe32(seg);
	rmpp->paylen_newwin = htobe32(payload_len(out, seg, hdr_len));
	return mad_transmit(out->agent, &out->addr, mad.bytes);
}

static bool may_send(const struct mad_out *out)
{
	return !out->done && out->rmpp.sent < out->rmpp.win && out->rmpp.sent < out->rmpp.segs;
}

static void send_task(struct task *task)
{
	struct mad_out *out = (struct mad_out *)task;
	struct mad_agent *agent = out->agent;
	unsigned int n;

	mad_agent_get(agent);
	out->sending = true;
	if (out->rmpp.missing) {
		out->rmpp.missing = false;
		send_seg(out, out->rmpp.acked + 1);
	}
	for (n = 0; n < BURST && may_send(out); n++)
		send_seg(out, ++out->rmpp.sent);
	out->sending = false;
	if (out->done) {
		free(out);
	} else {
		mad_out_arm(out);
		if (may_send(out))
			task_queue(agent->mp->ibfs->tasks, &out->task);
	}
	mad_agent_put(agent);
}

int rmpp_send_start(struct mad_out *out)
{
	out->task.fn = send_task;
	out->rmpp.sent = 1;
	out->rmpp.win = 1;
	reset_wait(out);
	return send_seg(out, 1);
}

void rmpp_send_timeout(struct mad_out *out)
{
	struct rmpp_out *rmpp = &out->rmpp;
	unsigned int full = full_wait(out);

	rmpp->waited_ms += rmpp->wait_ms;
	if (rmpp->waited_ms >= full) {
		if (!out->retries) {
			mad_out_expire(out);
			return;
		}
		out->retries--;
		rmpp->waited_ms = 0;
	}
	rmpp->wait_ms = rmpp->wait_ms * 2 < full ? rmpp->wait_ms * 2 : full;
	rmpp->sent = rmpp->acked;
	rmpp->resent = 0;
	rmpp->missing = false;
	task_queue(out->agent->mp->ibfs->tasks, &out->task);
}

/* The whole message is there. */
static void all_acked(struct mad_out *out, const struct mad_addr *addr, const void *mad)
{
	struct mad_agent *agent = out->agent;

	if (!out->timeout_ms) {
		mad_out_done(out);
		return;
	}
	if (!out->sending)
		mad_out_arm(out);
	/* Turns the direction of a double-sided transfer round, 13.6.6.3. */
	rmpp_answer(agent, addr, mad, RMPP_ACK, RMPP_OK, 0, 1);
}

/* An ACK that is short of what was sent: the segment after it is missing there. */
static void note_missing(struct mad_out *out)
{
	struct rmpp_out *rmpp = &out->rmpp;

	if (rmpp->sent == rmpp->acked || rmpp->resent == rmpp->acked + 1)
		return;
	rmpp->resent = rmpp->acked + 1;
	rmpp->missing = true;
}

void rmpp_send_ack(struct mad_agent *agent, const struct mad_addr *addr, const void *mad)
{
	const struct umad_rmpp_hdr *hdr = &((const struct umad_rmpp_packet *)mad)->rmpp_hdr;
	uint32_t seg = be32toh(hdr->seg_num), win = be32toh(hdr->paylen_newwin);
	struct mad_out *out = mad_out_find(agent, addr, mad);
	struct rmpp_out *rmpp;

	if (!out || !out->rmpp.segs)
		return;
	rmpp = &out->rmpp;
	/* Answering that as well would go on for ever between two ends that both do. */
	if (rmpp->acked == rmpp->segs)
		return;
	if (seg > rmpp->segs || seg > rmpp->win) {
		mad_out_done(out);
		rmpp_answer(agent, addr, mad, RMPP_ABORT, RMPP_S2B, 0, 0);
		return;
	}
	if (win < rmpp->win || seg < rmpp->acked)
		return;
	rmpp->win = win;
	if (seg > rmpp->acked) {
		rmpp->acked = seg;
		rmpp->sent = rmpp->sent > seg ? rmpp->sent : seg;
		reset_wait(out);
	}
	if (seg == rmpp->segs) {
		all_acked(out, addr, mad);
		return;
	}
	note_missing(out);
	task_queue(agent->mp->ibfs->tasks, &out->task);
}

void rmpp_send_abort(struct mad_agent *agent, const struct mad_addr *addr, const void *mad)
{
	struct mad_out *out = mad_out_find(agent, addr, mad);

	if (out && out->rmpp.acked < out->rmpp.segs)
		mad_out_done(out);
}
