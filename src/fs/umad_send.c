/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending by the rings of umad files, ibfs/umad_ring.h: the daemon's side. A
 * file whose client writes to it becomes hot: its bell is heard, and its ring is
 * looked at before what clients ask of any file. It may touch the umad file and
 * the memory that it shares with the client, where nothing is believed but what
 * was checked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/umad_ring.h"

#define MAD_HEADER	24		/* IBA 13.4.3 */
#define PERIOD		0.001		/* seconds */
#define IN_ROW		8		/* bells that a client with answers to read rang */

/* --- what the client must know --- */

/* A plain agent's MAD that something ends. */
static bool counts(const struct umad_file *uf, const struct ib_user_mad_hdr *hdr,
		   const void *mad)
{
	return uf->ring && (uf->plain[0] | uf->plain[1]) >> hdr->id & 1 &&
	       umad_ring_class(mad);
}

static void land(struct umad_file *uf, unsigned int agent, const void *mad)
{
	atomic_uint *flight = umad_ring_flight(uf->ring->mem, agent, mad);

	/* What the client spoils are its own counts. */
	if (atomic_load(flight))
		atomic_fetch_sub(flight, 1);
}

void umad_send_begin(struct umad_file *uf, const struct ib_user_mad_hdr *hdr, const void *mad)
{
	if (counts(uf, hdr, mad) && hdr->timeout_ms && !umad_ring_answers(mad))
		atomic_fetch_add(umad_ring_flight(uf->ring->mem, hdr->id, mad), 1);
}

void umad_send_undo(struct umad_file *uf, const struct ib_user_mad_hdr *hdr, const void *mad)
{
	if (counts(uf, hdr, mad) && hdr->timeout_ms && !umad_ring_answers(mad))
		land(uf, hdr->id, mad);
}

void umad_send_end(struct umad_file *uf, const struct ib_user_mad_hdr *hdr, const void *mad)
{
	/* A timeout brings the request itself. */
	if (counts(uf, hdr, mad) && umad_ring_answers(mad) == !hdr->status)
		land(uf, hdr->id, mad);
}

void umad_send_publish(struct umad_file *uf)
{
	struct umad_ring *mem = uf->ring ? uf->ring->mem : NULL;
	bool adapter = uf->dev && uf->dev->node_type == IBV_NODE_CA;

	if (!mem)
		return;
	atomic_store(&mem->hdr_size, (unsigned int)umad_hdr_size(uf));
	atomic_store(&mem->exit_port, adapter ? uf->port : 0);
	for (unsigned int qpn = 0; qpn < 2; qpn++)
		atomic_store(&mem->plain[qpn], uf->plain[qpn]);
	/* Nothing of former agents is in flight. */
	if (!(uf->plain[0] | uf->plain[1]))
		memset(mem->flights, 0, sizeof(mem->flights));
}

/* --- taking --- */

static void take(struct umad_file *uf)
{
	struct ring *ring = uf->ring;
	const struct umad_ring_send *slot = &ring->mem->out[ring->taken % UMAD_RING_SENDS];
	size_t len = *(const volatile uint64_t *)&slot->len, hdr_size = umad_hdr_size(uf);
	struct ib_user_mad_hdr hdr = { 0 };
	uint8_t data[UMAD_RING_SEND_DATA] = { 0 };
	ssize_t ret;

	if (len > sizeof(data))
		len = 0;
	memcpy(data, slot->data, len);
	/* What is read of the copy from here on isn't read of the slot. */
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store(&ring->mem->taken, ++ring->taken);
	ret = umad_file_send(uf, data, len);
	if (hdr_size > sizeof(hdr) || len < hdr_size + MAD_HEADER)
		return;
	memcpy(&hdr, data, hdr_size);
	if (!hdr.timeout_ms)
		return;
	land(uf, hdr.id, data + hdr_size);	/* the client had counted it too */
	if (ret < 0)
		umad_file_lost(uf, &hdr, data + hdr_size);
}

void umad_send_drain(struct umad_file *uf)
{
	struct ring *ring = uf->ring;
	uint64_t sent;

	if (!ring || ring->dead)
		return;
	sent = atomic_load(&ring->mem->sent);
	if (sent == ring->taken)
		return;
	if (sent - ring->taken > UMAD_RING_SENDS) {
		umad_ring_kill(uf);
		return;
	}
	while ((int64_t)(sent - ring->taken) > 0 && !ring->dead)
		take(uf);
}

/* --- hot and cold --- */

/* What was left before the client knew didn't ring. */
static void end_patience(struct ring *ring)
{
	struct ev_loop *loop = ring->uf->file->ibfs->loop;

	atomic_store(&ring->mem->patient, 0);
	umad_send_drain(ring->uf);
	if (!ev_is_active(&ring->period))
		return;
	ev_ref(loop);
	ev_timer_stop(loop, &ring->period);
}

void umad_sends_run(struct ibfs *ibfs)
{
	struct ring *ring;

	DL_FOREACH2(ibfs->fs->hot, ring, hot_next)
		umad_send_drain(ring->uf);
}

/* Once nothing came in a period the client rings again. */
static void on_period(struct ev_loop *loop, struct ev_timer *w, int revents)
{
	struct ring *ring = w->data;

	(void)loop;
	(void)revents;
	umad_send_drain(ring->uf);
	if (ring->taken == ring->before || ring->dead)
		end_patience(ring);
	ring->before = ring->taken;
}

/* Time and again the client left something while it had answers to read. */
static void begin_patience(struct ring *ring)
{
	struct ev_loop *loop = ring->uf->file->ibfs->loop;

	ev_timer_init(&ring->period, on_period, PERIOD, PERIOD);
	ring->period.data = ring;
	ring->before = ring->taken;
	ev_timer_start(loop, &ring->period);
	ev_unref(loop);		/* it doesn't keep a loop going */
	atomic_store(&ring->mem->patient, 1);
}

static bool on_bell(struct bell *bell)
{
	struct ring *ring = (struct ring *)((char *)bell - offsetof(struct ring, bell));
	bool unread = umad_ring_filled(ring->uf);
	uint64_t taken = ring->taken;

	umad_send_drain(ring->uf);
	ring->in_row = unread ? ring->in_row + 1 : 0;
	if (ring->in_row >= IN_ROW && bell->slot && !ev_is_active(&ring->period))
		begin_patience(ring);
	/* Another's needed the place: from here on the client writes to the file. */
	if (!bell->slot)
		umad_send_cool(ring);
	return ring->taken != taken;
}

void umad_send_cool(struct ring *ring)
{
	struct ibfs *ibfs = ring->uf->file->ibfs;

	if (!ring->hot)
		return;
	ring->hot = false;
	DL_DELETE2(ibfs->fs->hot, ring, hot_prev, hot_next);
	bell_remove(ibfs, &ring->bell);
	end_patience(ring);
}

void umad_send_warm(struct umad_file *uf)
{
	struct ibfs *ibfs = uf->file->ibfs;
	struct ring *ring = uf->ring;

	if (!ring || ring->hot || ring->dead || !atomic_load(&ring->mem->mapped))
		return;
	ring->bell.words = &ring->mem->bell;
	ring->bell.rung = on_bell;
	if (bell_add(ibfs, &ring->bell))
		return;
	ring->hot = true;
	DL_APPEND2(ibfs->fs->hot, ring, hot_prev, hot_next);
}
