/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Imperfect cables: packets that get lost, spoilt, doubled, late or out of
 * order. Each direction draws the same number of random numbers for each
 * packet from a generator of its own, so that a seed replays a run. Works on
 * packets and the event loop's timers.
 */
#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <time.h>
#include <utlist.h>

#include "fabric/fabric.h"
#include "fabric/link.h"
#include "fabric/packet.h"
#include "ibfs/ibfs.h"

#define MAX_DELAY	3600.0	/* seconds */
#define MAX_HELD	4096	/* packets in one direction of a cable */
#define REORDER_FLUSH	0.01	/* seconds after which a held back packet waits no longer */

/* A packet that the cable holds; the queue is in order of due. */
struct held {
	struct held *prev, *next;
	struct packet *pkt;
	double due;
};

/* One direction of a link */
struct fault_way {
	struct port *out;
	const struct fault_conf *conf;
	uint64_t random;
	struct held *queue;
	struct held *behind;	/* in queue: goes after the next packet */
	unsigned int num_held;
	double last_due;	/* of what is in order: delays alone never reorder */
	ev_timer timer;
};

struct faults {
	struct fault_conf conf;
	struct fault_way way[2];
};

static struct ev_loop *loop_of(const struct fault_way *way)
{
	return way->out->node->fabric->ibfs->loop;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* SplitMix64 (Steele, Lea, Flood 2014); 0 <= result < 1. */
static double draw(struct fault_way *way)
{
	uint64_t z = way->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	z ^= z >> 31;
	return (double)(z >> 11) / (double)(1ULL << 53);
}

static void arm_timer(struct fault_way *way)
{
	double after;

	ev_timer_stop(loop_of(way), &way->timer);
	if (!way->queue)
		return;
	after = way->queue->due - now();
	ev_timer_set(&way->timer, after > 0 ? after : 0, 0);
	ev_timer_start(loop_of(way), &way->timer);
}

/* In order of due, behind those due at the same time; mostly that is the end. */
static void enqueue(struct fault_way *way, struct held *held)
{
	struct held *after = way->queue ? way->queue->prev : NULL;

	while (after && after->due > held->due)
		after = after == way->queue ? NULL : after->prev;
	if (after)
		DL_APPEND_ELEM(way->queue, after, held);
	else
		DL_PREPEND(way->queue, held);
	way->num_held++;
}

static void dequeue(struct fault_way *way, struct held *held)
{
	DL_DELETE(way->queue, held);
	way->num_held--;
	if (way->behind == held)
		way->behind = NULL;
}

static void free_held(struct held *held)
{
	packet_free(held->pkt);
	free(held);
}

/* Keep a copy until due; NULL when there is no room for it, which loses it. */
static struct held *hold(struct fault_way *way, const struct packet *pkt, double due)
{
	struct held *held = way->num_held < MAX_HELD ? malloc(sizeof(*held)) : NULL;

	if (held)
		held->pkt = packet_copy(pkt);
	if (!held || !held->pkt) {
		free(held);
		way->out->cnt.xmit_discards++;
		return NULL;
	}
	held->due = due;
	enqueue(way, held);
	arm_timer(way);
	return held;
}

static void deliver(struct fault_way *way, struct held *held)
{
	struct port *peer = way->out->peer;

	dequeue(way, held);
	port_receive(peer, held->pkt);
	free_held(held);
}

static void timer_cb(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct fault_way *way = timer->data;
	double until = now();

	(void)loop;
	(void)revents;
	/* A delivery may flush the queue: look at it afresh each time. */
	while (way->queue && way->queue->due <= until)
		deliver(way, way->queue);
	arm_timer(way);
}

/* The held back packet follows the one that has just passed, or that is due then. */
static void release_behind(struct fault_way *way, double due)
{
	struct held *behind = way->behind;

	if (due <= 0) {
		deliver(way, behind);
	} else {
		dequeue(way, behind);
		behind->due = due;
		enqueue(way, behind);
	}
	arm_timer(way);
}

/* When a packet that enters the cable now leaves it; 0: at once. */
static double due_time(struct fault_way *way, double jitter)
{
	const struct fault_conf *conf = way->conf;
	double due;

	if (conf->delay <= 0 && conf->jitter <= 0)
		return 0;
	due = now() + conf->delay + jitter * conf->jitter;
	if (due < way->last_due)
		due = way->last_due;
	way->last_due = due;
	return due;
}

static void pass(struct fault_way *way, struct packet *pkt, double due)
{
	if (due > 0)
		hold(way, pkt, due);
	else
		port_receive(way->out->peer, pkt);
}

static void pass_twice(struct fault_way *way, struct packet *pkt, double due)
{
	struct packet copy;

	packet_share(&copy, pkt);
	pass(way, &copy, due);
	pass(way, pkt, due);
}

static int cross_one(void *priv, struct packet *pkt)
{
	struct fault_way *way = priv;
	const struct fault_conf *conf = way->conf;
	bool drop = draw(way) < conf->drop;
	bool corrupt = draw(way) < conf->corrupt;
	bool duplicate = draw(way) < conf->duplicate;
	bool reorder = draw(way) < conf->reorder;
	double jitter = draw(way);
	bool overrun = conf->overrun > 0 && draw(way) < conf->overrun;
	bool had_behind = way->behind;
	double due;

	if (drop)
		return 0;
	if (overrun) {
		port_overrun(way->out->peer);
		return 0;
	}
	pkt->bad_crc |= corrupt;
	due = due_time(way, jitter);
	if (reorder && !had_behind) {
		way->behind = hold(way, pkt, (due > 0 ? due : now()) + REORDER_FLUSH);
		return 0;
	}
	if (duplicate)
		pass_twice(way, pkt, due);
	else
		pass(way, pkt, due);
	/* What passed may have been answered, and the answer's answer released it, or flushed it. */
	if (had_behind && way->behind)
		release_behind(way, due);
	return 0;
}

void faults_cross(struct port *out, struct packet *pkt)
{
	/* Cut or copied either way: what happens here must not be seen in the sender's packet. */
	if (packet_cut(pkt, cross_one, out->faults))
		out->cnt.xmit_discards += pkt->gso_segs;
}

static void flush_way(struct fault_way *way)
{
	while (way->queue) {
		struct held *held = way->queue;

		dequeue(way, held);
		free_held(held);
	}
	arm_timer(way);
}

void faults_flush(struct link *link)
{
	if (!link->faults)
		return;
	flush_way(&link->faults->way[0]);
	flush_way(&link->faults->way[1]);
}

void faults_free(struct link *link)
{
	faults_flush(link);
	free(link->faults);
	link->faults = NULL;
	link->a->faults = link->b->faults = NULL;
}

static void init_way(struct fault_way *way, struct port *out, const struct fault_conf *conf)
{
	way->out = out;
	way->conf = conf;
	way->random = 2 * conf->seed + (out == out->link->b);
	ev_init(&way->timer, timer_cb);
	way->timer.data = way;
	out->faults = way;
}

/* Also false for what is no number. */
static bool is_probability(double p)
{
	return p >= 0 && p <= 1;
}

static bool is_delay(double seconds)
{
	return seconds >= 0 && seconds <= MAX_DELAY;
}

static bool is_perfect(const struct fault_conf *conf)
{
	return conf->drop <= 0 && conf->corrupt <= 0 && conf->duplicate <= 0 &&
	       conf->reorder <= 0 && conf->overrun <= 0 && conf->delay <= 0 && conf->jitter <= 0;
}

int link_set_faults(struct link *link, const struct fault_conf *conf)
{
	struct faults *faults;

	if (!is_probability(conf->drop) || !is_probability(conf->corrupt) ||
	    !is_probability(conf->duplicate) || !is_probability(conf->reorder) ||
	    !is_probability(conf->overrun) ||
	    !is_delay(conf->delay) || !is_delay(conf->jitter) || !link->a->node->fabric->ibfs)
		return -EINVAL;
	if (is_perfect(conf)) {
		faults_free(link);
		return 0;
	}
	faults = calloc(1, sizeof(*faults));
	if (!faults)
		return -ENOMEM;
	faults_free(link);
	faults->conf = *conf;
	link->faults = faults;
	init_way(&faults->way[0], link->a, &faults->conf);
	init_way(&faults->way[1], link->b, &faults->conf);
	return 0;
}

void link_get_faults(const struct link *link, struct fault_conf *conf)
{
	*conf = link->faults ? link->faults->conf : (struct fault_conf){ 0 };
}
