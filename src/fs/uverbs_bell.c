/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbells of a uverbs file in its memory, ibfs/uverbs_bells.h: a client that
 * has written some, and can do otherwise, gets a bell.
 */
#include <ibfs/uverbs_bells.h>

#include "fs/uverbs.h"

enum { OFTEN = 8 };		/* doorbells, before it is tried to give the client a bell */

static void set_rung(struct uverbs_bells *page, uint32_t handle)
{
	atomic_fetch_or(&page->rung[handle / 64], 1ULL << handle % 64);
	atomic_fetch_or(&page->rung_words, 1ULL << handle / 64);
}

/* What wants to be looked at again is as good as rung. */
static bool ring_qp(struct uverbs_file *uf, uint32_t handle)
{
	struct uobj *obj = uobj_get(uf, handle, UOBJ_QP);

	if (!obj)
		return false;
	obj->client.again = uf->bell.slot ? VERBS_AGAIN_CAN : VERBS_AGAIN_NEVER;
	if (uv_verbs(uf)->doorbell(obj->qp))
		return false;
	if (obj->client.again == VERBS_AGAIN_WANTED) {
		uf->bell.again = true;
		set_rung(uf->space->bells, handle);
	}
	return true;
}

/* What was rung is the client's to say: at most all that it has. */
static bool rung(struct bell *bell)
{
	struct uverbs_file *uf = (struct uverbs_file *)((char *)bell - offsetof(struct uverbs_file, bell));
	struct uverbs_bells *page = uf->space->bells;
	uint64_t words = atomic_exchange(&page->rung_words, 0), bits;
	bool any = false;

	if (!uf->dev)
		return false;
	for (words &= (1ULL << UVERBS_BELLS / 64) - 1; words; words &= words - 1) {
		uint32_t word = __builtin_ctzll(words);

		for (bits = atomic_exchange(&page->rung[word], 0); bits; bits &= bits - 1)
			any |= ring_qp(uf, word * 64 + __builtin_ctzll(bits));
	}
	return any;
}

void uv_bell_written(struct uverbs_file *uf, struct uobj *qp)
{
	qp->client.again = VERBS_AGAIN_NEVER;
	if (uf->bell.slot || !atomic_load(&uf->space->bells->rings) || ++uf->doorbells < OFTEN)
		return;
	uf->doorbells = 0;
	uf->bell.words = &uf->space->bells->words;
	uf->bell.rung = rung;
	bell_add(uf->file->ibfs, &uf->bell);
}

void uv_bell_stop(struct uverbs_file *uf)
{
	bell_remove(uf->file->ibfs, &uf->bell);
}
