/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiver of a RMPP message, IBA 13.6.6.2. It says which segments may come
 * (a window of 64), keeps those that come early, and acknowledges at the end
 * of a window, at the end of the message, and whenever something is wrong: a
 * segment that it has, or one that came while an earlier one is missing.
 * A message that is complete is remembered for 10 s, since its last ACK may
 * have been lost; one that doesn't become so within 40 s is aborted.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "hca/agent.h"

#define WINDOW		64	/* bits of rmpp_in.early */
#define MESSAGE_TIME	40.	/* seconds, as Linux has them */
#define MEMORY_TIME	10.
#define MAX_MESSAGES	8192	/* an agent's, complete ones included */
#define MAX_LEN		(256U << 20)

struct rmpp_in_key {		/* all bytes count */
	uint64_t tid;
	uint32_t sqpn;
	uint16_t slid;
	uint8_t mgmt_class, class_version, method;
	uint8_t zero[7];
};

struct rmpp_in {
	struct mad_agent *agent;
	struct rmpp_in_key key;
	UT_hash_handle hh;
	struct mad_addr addr;
	struct ev_timer timer;
	uint32_t seg;		/* all up to this one are here */
	uint32_t win;		/* up to which we let the sender go */
	uint32_t last;		/* the message's last segment; 0: not seen */
	uint32_t last_paylen;
	uint64_t early;		/* bit n: segment seg + 2 + n is here */
	size_t room;
	uint8_t *buf;		/* the message; NULL once it was delivered */
	uint8_t hdr[RMPP_MAX_HDR];	/* the first segment's, for answers */
};

static struct rmpp_in *in_find(struct mad_agent *agent, const struct mad_addr *addr,
			       const struct umad_hdr *hdr, struct rmpp_in_key *key)
{
	struct rmpp_in *in;

	memset(key, 0, sizeof(*key));
	key->tid = hdr->tid;
	key->sqpn = addr->qpn;
	key->slid = addr->lid;
	key->mgmt_class = hdr->mgmt_class;
	key->class_version = hdr->class_version;
	key->method = hdr->method;
	HASH_FIND(hh, agent->ins, key, sizeof(*key), in);
	return in;
}

static void in_free(struct rmpp_in *in)
{
	ev_timer_stop(in->agent->mp->ibfs->loop, &in->timer);
	HASH_DELETE(hh, in->agent->ins, in);
	in->agent->num_ins--;
	free(in->buf);
	free(in);
}

void rmpp_recv_free_all(struct mad_agent *agent)
{
	struct rmpp_in *in, *tmp;

	HASH_ITER(hh, agent->ins, in, tmp)
		in_free(in);
}

/* A message that isn't complete is too late; one that is need not be known any more. */
static void in_timer(struct ev_loop *loop, struct ev_timer *timer, int revents)
{
	struct rmpp_in *in = timer->data;

	(void)loop;
	(void)revents;
	if (in->buf)
		rmpp_answer(in->agent, &in->addr, in->hdr, RMPP_ABORT, RMPP_T2L, 0, 0);
	in_free(in);
}

static void in_arm(struct rmpp_in *in, double seconds)
{
	struct ev_loop *loop = in->agent->mp->ibfs->loop;

	ev_timer_stop(loop, &in->timer);
	ev_timer_set(&in->timer, seconds + (ev_time() - ev_now(loop)), 0.);
	ev_timer_start(loop, &in->timer);
}

/* Room for one more: the oldest message goes if it is complete (uthash keeps their order). */
static bool in_room(struct mad_agent *agent)
{
	if (agent->num_ins < MAX_MESSAGES)
		return true;
	if (agent->ins->buf)
		return false;
	in_free(agent->ins);
	return true;
}

static struct rmpp_in *in_new(struct mad_agent *agent, const struct mad_addr *addr,
			      const struct umad_hdr *hdr, const struct rmpp_in_key *key)
{
	struct rmpp_in *in;

	if (!in_room(agent))
		return NULL;
	in = calloc(1, sizeof(*in));
	if (!in)
		return NULL;
	in->buf = malloc(MAD_SIZE);
	if (!in->buf) {
		free(in);
		return NULL;
	}
	in->room = MAD_SIZE;
	in->agent = agent;
	in->addr = *addr;
	in->key = *key;
	in->win = 1;
	memcpy(in->hdr, hdr, rmpp_header_len(hdr->mgmt_class));
	ev_init(&in->timer, in_timer);
	in->timer.data = in;
	HASH_ADD(hh, agent->ins, key, sizeof(in->key), in);
	agent->num_ins++;
	in_arm(in, MESSAGE_TIME);
	return in;
}

static bool in_grow(struct rmpp_in *in, size_t len)
{
	size_t room = in->room * 2 > len ? in->room * 2 : len;
	uint8_t *buf;

	if (len <= in->room)
		return true;
	buf = len > MAX_LEN ? NULL : realloc(in->buf, room);
	if (!buf)
		return false;
	in->buf = buf;
	in->room = room;
	return true;
}

/* Put a segment into its place in the message; false without room for it. */
static bool in_store(struct rmpp_in *in, uint32_t seg, const uint8_t *mad)
{
	unsigned int hdr_len = rmpp_header_len(in->key.mgmt_class);
	size_t data = MAD_SIZE - hdr_len;
	size_t offset = hdr_len + (seg - 1) * data;

	if (!in_grow(in, offset + data))
		return false;
	if (seg == 1)
		memcpy(in->buf, mad, hdr_len);
	memcpy(in->buf + offset, mad + hdr_len, data);
	return true;
}

/* A segment that is new and inside the window is here: move on as far as we can. */
static void in_advance(struct rmpp_in *in, uint32_t seg)
{
	if (seg > in->seg + 1) {
		in->early |= 1ULL << (seg - in->seg - 2);
		return;
	}
	in->seg++;
	while (in->early & 1) {
		in->early >>= 1;
		in->seg++;
	}
	in->early >>= 1;
}

static bool in_has(const struct rmpp_in *in, uint32_t seg)
{
	return seg <= in->seg || (seg > in->seg + 1 && in->early >> (seg - in->seg - 2) & 1);
}

static void in_ack(struct rmpp_in *in)
{
	rmpp_answer(in->agent, &in->addr, in->hdr, RMPP_ACK, RMPP_OK, in->seg, in->win);
}

/* A last PayloadLength that can't be counts as a full segment, as in Linux's get_mad_len(). */
static size_t in_len(const struct rmpp_in *in)
{
	unsigned int hdr_len = rmpp_header_len(in->key.mgmt_class);
	size_t data = MAD_SIZE - hdr_len;
	size_t len = hdr_len + in->last * data;
	uint32_t pad = MAD_SIZE - RMPP_HDR_LEN - in->last_paylen;

	if (in->last_paylen > MAD_SIZE - RMPP_HDR_LEN)
		pad = 0;
	return pad > data ? len - data : len - pad;
}

static void in_complete(struct rmpp_in *in)
{
	struct mad_agent *agent = in->agent;
	struct mad_addr addr = in->addr;
	uint8_t *buf = in->buf;
	size_t len = in_len(in);

	in->buf = NULL;
	in->seg = in->last;
	in_arm(in, MEMORY_TIME);
	in_ack(in);
	mad_agent_recv(agent, &addr, buf, len);
	free(buf);
}

/* While its response comes in, a request is not out of time. */
static void extend_request(struct rmpp_in *in)
{
	struct mad_out *out = mad_out_find(in->agent, &in->addr, (struct umad_hdr *)in->hdr);

	if (out && !out->sending)
		mad_out_arm(out);
}

/* Acknowledge if the sender needs it to go on, or has something to send again. */
static void in_progress(struct rmpp_in *in)
{
	bool window_done = in->seg == in->win;

	if (window_done) {
		in->win += WINDOW;
		extend_request(in);
	}
	if (window_done || in->early)
		in_ack(in);
}

void rmpp_recv_data(struct mad_agent *agent, const struct mad_addr *addr, const void *mad)
{
	const struct umad_rmpp_packet *packet = mad;
	uint32_t seg = be32toh(packet->rmpp_hdr.seg_num);
	struct rmpp_in_key key;
	struct rmpp_in *in = in_find(agent, addr, mad, &key);

	if (!in && seg == 1)
		in = in_new(agent, addr, mad, &key);
	if (!in || seg > in->win)
		return;
	if (!in->buf || in_has(in, seg)) {
		in_ack(in);
		return;
	}
	if (in->last && seg > in->last)
		return;
	if (!in_store(in, seg, mad)) {
		rmpp_answer(agent, addr, mad, RMPP_STOP, RMPP_RESX, 0, 0);
		in_free(in);
		return;
	}
	if (packet->rmpp_hdr.rmpp_rtime_flags & RMPP_LAST) {
		in->last = seg;
		in->last_paylen = be32toh(packet->rmpp_hdr.paylen_newwin);
	}
	in_advance(in, seg);
	if (in->last && in->seg >= in->last)
		in_complete(in);
	else
		in_progress(in);
}

void rmpp_recv_abort(struct mad_agent *agent, const struct mad_addr *addr, const void *mad)
{
	struct rmpp_in_key key;
	struct rmpp_in *in = in_find(agent, addr, mad, &key);

	if (in && in->buf)
		in_free(in);
}
