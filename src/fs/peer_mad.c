/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to far nodes and their answers. Who asks the same while a MAD is
 * under way waits for the same answer. SMPs go by directed route (IBA
 * 14.2.1.2), PMA's (16.1) by LID. Answers are kept for half a second, which with
 * the half second that a MAD and its repetition may take is never more than
 * one. Knows no file.
 */
#include <endian.h>
#include <errno.h>
#include <ev.h>
#include <infiniband/mad.h>
#include <infiniband/umad_sm.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/peer.h"

#define FRESH_SECONDS	0.5
#define KEEP_SECONDS	10	/* for peer_known() */
enum { TIMEOUT_MS = 250, RETRIES = 1, DATA = 64, MAX_ANSWERS = 16384,
       MULTICAST_LIDS = 0xc000 };

struct peer_key {
	uint32_t place, mod;
	uint16_t attr;
	uint8_t mgmt_class, method;
};

/* A request that waits for an answer. */
struct peer_wait {
	struct peer_wait *prev, *next;
	struct peer_wait **list;	/* that it is in */
	struct fs_req *req;
	void (*resume)(struct fs_req *req);
	ssize_t result;			/* of a Set */
};

struct peer_answer {
	struct mad_once once;		/* first */
	struct peer_answer *prev, *next;	/* by time of the question */
	UT_hash_handle hh;
	struct peers *peers;
	struct peer_key key;
	bool pending, busy;
	double time;			/* when it came */
	int err;
	struct peer_wait *waits;
	struct peer_wait *woken;	/* those that hear of it now */
	uint8_t data[MADONCE_LEN - DATA];
};

static struct peer_answer *find(const struct peers *peers, const struct peer_key *key)
{
	struct peer_answer *answer;

	HASH_FIND(hh, peers->by_question, key, sizeof(*key), answer);
	return answer;
}

/* Except while requests hear of it, which may ask it anew. */
static void answer_free(struct peer_answer *answer)
{
	if (answer->busy)
		return;
	HASH_DEL(answer->peers->by_question, answer);
	DL_DELETE(answer->peers->answers, answer);
	mad_once_cancel(&answer->once);
	free(answer);
}

/* Old ones go, and when there are too many the oldest. */
static void make_room(struct peers *peers)
{
	double now = ev_now(peers->ibfs->loop);
	struct peer_answer *answer, *next;

	DL_FOREACH_SAFE(peers->answers, answer, next) {
		if (now - answer->time < KEEP_SECONDS && HASH_COUNT(peers->by_question) < MAX_ANSWERS)
			break;
		if (!answer->pending)
			answer_free(answer);
	}
}

static bool wait_cancel(struct fs_req *req)
{
	struct peer_wait *wait = req->priv;

	DL_DELETE(*wait->list, wait);
	free(wait);
	fs_reply(req, -EINTR, NULL, 0);
	return true;
}

static ssize_t wait_for(struct peer_answer *answer, struct fs_req *req,
			void (*resume)(struct fs_req *req), ssize_t result)
{
	struct peer_wait *wait = calloc(1, sizeof(*wait));

	if (!wait)
		return -ENOMEM;
	wait->req = req;
	wait->list = &answer->waits;
	wait->resume = resume;
	wait->result = result;
	DL_APPEND(answer->waits, wait);
	req->priv = wait;
	req->cancel = wait_cancel;
	return FS_PENDING;
}

void peer_try_again(struct fs_req *req)
{
	fs_reply(req, 0, NULL, 0);
}

/* One after the other: each may cancel others, or ask the same again. */
static void wake_all(struct peer_answer *answer)
{
	struct peer_wait *wait;
	int err = answer->err;

	answer->busy = true;
	answer->woken = answer->waits;
	answer->waits = NULL;
	DL_FOREACH(answer->woken, wait)
		wait->list = &answer->woken;
	while ((wait = answer->woken) != NULL) {
		DL_DELETE(answer->woken, wait);
		wait->req->cancel = NULL;
		if (wait->resume)
			wait->resume(wait->req);
		else
			fs_reply(wait->req, err ? err : wait->result, NULL, 0);
		free(wait);
	}
	answer->busy = false;
}

/* The SMP's or GMP's status; a directed route's top bit is its direction. */
static int mad_error(const struct peer_key *key, const uint8_t *mad)
{
	unsigned int status = mad[4] << 8 | mad[5];

	if (key->mgmt_class == CLASS_DIRECTED)
		status &= 0x7fff;
	return status ? -EREMOTEIO : 0;
}

static void note_guid(const struct peer_answer *answer)
{
	struct peer_place *place = peer_place(answer->peers->ibfs, answer->key.place);

	if (place && answer->key.mgmt_class == CLASS_DIRECTED && answer->key.attr == ATTR_NODE_INFO)
		place->guid = mad_get_field64((void *)answer->data, 0, IB_NODE_GUID_F);
}

/* What was counted before is no longer so. */
static void forget_counters(struct peers *peers, uint32_t place)
{
	struct peer_answer *answer;

	DL_FOREACH(peers->answers, answer)
		if (answer->key.place == place && answer->key.mgmt_class == CLASS_PERF)
			answer->time = 0;
}

static void answered(struct mad_once *once, int err, const void *mad, size_t len)
{
	struct peer_answer *answer = (struct peer_answer *)once;
	struct peers *peers = answer->peers;

	answer->pending = false;
	answer->time = ev_now(peers->ibfs->loop);
	answer->err = err ? err : mad_error(&answer->key, mad);
	memset(answer->data, 0, sizeof(answer->data));
	if (!err)
		memcpy(answer->data, (const uint8_t *)mad + DATA,
		       len < MADONCE_LEN ? len - DATA : sizeof(answer->data));
	if (!answer->err)
		note_guid(answer);
	if (answer->key.method == METHOD_SET)
		forget_counters(peers, answer->key.place);
	wake_all(answer);
}

static void build_smp(struct umad_smp *smp, const struct peer_place *place)
{
	smp->attr_mod = 0;
	smp->hop_cnt = place->hops;
	smp->dr_slid = smp->dr_dlid = htobe16(MADONCE_PERMISSIVE_LID);
	memcpy(smp->initial_path, place->route, place->hops + 1);
}

/* Send what key asks of place; data: of a Set. */
static int ask(struct peer_answer *answer, const struct peer_place *place, uint16_t lid,
	       const uint8_t *data)
{
	const struct peer_key *key = &answer->key;
	struct ibfs_device *dev = device_get(answer->peers->ibfs, place->way.dev);
	uint8_t mad[MADONCE_LEN] __attribute__((aligned(8))) = { 0 };
	struct umad_smp *smp = (struct umad_smp *)mad;
	struct mad_addr addr = { .lid = MADONCE_PERMISSIVE_LID };
	int ret;

	if (!dev)
		return -ENODEV;
	if (data)
		memcpy(mad + DATA, data, sizeof(answer->data));
	smp->base_version = 1;
	smp->mgmt_class = key->mgmt_class;
	smp->class_version = 1;
	smp->method = key->method;
	smp->tid = htobe64(1);
	smp->attr_id = htobe16(key->attr);
	if (key->mgmt_class == CLASS_DIRECTED) {
		build_smp(smp, place);
		smp->attr_mod = htobe32(key->mod);
	} else {
		addr = (struct mad_addr){ .lid = lid, .qpn = 1, .qkey = MADONCE_QP1_QKEY };
		mad[DATA + 1] = key->mod;
	}
	answer->pending = true;
	answer->time = 0;
	ret = mad_once_send(&answer->once, dev, place->port, &addr, mad, false, TIMEOUT_MS, RETRIES);
	if (ret)
		answer->pending = false;
	return ret;
}

/* The entry of a question, made if there is none. */
static struct peer_answer *answer_get(struct peers *peers, const struct peer_key *key)
{
	struct peer_answer *answer = find(peers, key);

	if (answer)
		return answer;
	make_room(peers);
	answer = HASH_COUNT(peers->by_question) < MAX_ANSWERS ? calloc(1, sizeof(*answer)) : NULL;
	if (!answer)
		return NULL;
	answer->peers = peers;
	answer->key = *key;
	answer->once.done = answered;
	HASH_ADD(hh, peers->by_question, key, sizeof(*key), answer);
	DL_APPEND(peers->answers, answer);
	return answer;
}

static bool is_fresh(const struct peer_answer *answer, const struct fs_req *req)
{
	double now = ev_now(req->ibfs->loop);

	return !answer->pending && answer->time &&
	       (now - answer->time < FRESH_SECONDS || answer->time >= req->began);
}

static struct peer_key key_of(const struct peer_place *place, struct peer_question question,
			      uint8_t method)
{
	return (struct peer_key){
		.place = place->num, .mod = question.mod, .attr = question.attr,
		.mgmt_class = question.mgmt_class, .method = method,
	};
}

/* lid: of a question to PMA. */
static ssize_t ask_at(struct fs_req *req, struct peer_place *place, struct peer_question question,
		      uint16_t lid, void (*resume)(struct fs_req *req), const uint8_t **data)
{
	struct peer_key key = key_of(place, question, METHOD_GET);
	struct peers *peers = req->ibfs->fs->peers;
	struct peer_answer *answer = answer_get(peers, &key);
	int ret;

	if (!answer)
		return -ENOMEM;
	if (!answer->pending && !is_fresh(answer, req)) {
		DL_DELETE(peers->answers, answer);
		DL_APPEND(peers->answers, answer);
		ret = ask(answer, place, lid, NULL);
		if (ret)
			return ret;
	}
	if (answer->pending)
		return wait_for(answer, req, resume, 0);
	*data = answer->data;
	return answer->err;
}

/* A switch's is port 0's, another node's that of the port by which one came. */
static ssize_t find_lid(struct fs_req *req, struct peer_place *place,
			void (*resume)(struct fs_req *req), uint16_t *lid)
{
	const uint8_t *data;
	unsigned int port;
	ssize_t ret;

	ret = ask_at(req, place, PEER_NODE_INFO, 0, resume, &data);
	if (ret)
		return ret;
	port = mad_get_field((void *)data, 0, IB_NODE_LOCAL_PORT_F);
	if (mad_get_field((void *)data, 0, IB_NODE_TYPE_F) == NODE_IS_SWITCH)
		port = 0;
	ret = ask_at(req, place, PEER_PORT_INFO(port), 0, resume, &data);
	if (ret)
		return ret;
	*lid = mad_get_field((void *)data, 0, IB_PORT_LID_F);
	if (!*lid || *lid >= MULTICAST_LIDS)
		return ibfs_fail(req->ibfs, EHOSTUNREACH,
				 "peer: the node has no LID, by which counters are read");
	return 0;
}

/* A request's first question tells what is fresh enough for it. */
static int begin(struct fs_req *req, const struct peer_place *place)
{
	if (!req->began)
		req->began = ev_now(req->ibfs->loop);
	return place->reachable ? 0 : -EHOSTUNREACH;
}

ssize_t peer_ask(struct fs_req *req, struct peer_place *place, struct peer_question question,
		 void (*resume)(struct fs_req *req), const uint8_t **data)
{
	uint16_t lid = 0;
	ssize_t ret = begin(req, place);

	if (!ret && question.mgmt_class == CLASS_PERF)
		ret = find_lid(req, place, resume, &lid);
	return ret ? ret : ask_at(req, place, question, lid, resume, data);
}

const uint8_t *peer_known(struct ibfs *ibfs, const struct peer_place *place,
			  struct peer_question question)
{
	struct peer_key key = key_of(place, question, METHOD_GET);
	const struct peer_answer *answer = find(ibfs->fs->peers, &key);

	return answer && answer->time && !answer->err ? answer->data : NULL;
}

ssize_t peer_clear(struct fs_req *req, struct peer_place *place, struct peer_question question,
		   const uint8_t *data, ssize_t result, void (*resume)(struct fs_req *req))
{
	struct peer_key key = key_of(place, question, METHOD_SET);
	struct peer_answer *answer;
	uint16_t lid;
	ssize_t ret = begin(req, place);

	if (!ret)
		ret = find_lid(req, place, resume, &lid);
	if (ret)
		return ret;
	answer = answer_get(req->ibfs->fs->peers, &key);
	if (!answer)
		return -ENOMEM;
	if (answer->pending)		/* somebody else's, maybe of another counter */
		return wait_for(answer, req, resume, 0);
	ret = ask(answer, place, lid, data);
	if (ret)
		return ret;
	if (answer->pending)
		return wait_for(answer, req, NULL, result);
	return answer->err ? answer->err : result;
}

void peer_answers_free(struct peers *peers)
{
	while (peers->answers) {
		peers->answers->err = -ENODEV;
		wake_all(peers->answers);
		answer_free(peers->answers);
	}
}
