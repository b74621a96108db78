/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words in memory that a client shares with the daemon, by which it wakes a
 * thread of the daemon on its own processor: that one preempts it, does what
 * there is to do, and the client goes on. No processor is interrupted, and no
 * answer waited for. futex(2).
 *
 * The words are the client's to spoil: the daemon believes nothing of them.
 */
#ifndef IBFS_BELL_WORDS_H
#define IBFS_BELL_WORDS_H

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BELL_WORDS	16	/* processors beyond share them */

enum bell_state {
	BELL_NONE,		/* nobody waits there; as memory is at first */
	BELL_ARMED,		/* a thread waits, or is about to */
	BELL_RUNG,		/* it is about to look */
};

/* What a send ring says of its doorbell. */
enum doorbell {
	DOORBELL_ASK,		/* may be refused, by the queue's state */
	DOORBELL_QUIET,		/* tells nothing: the ring is looked at */
	DOORBELL_RING,		/* only tells to look */
	DOORBELL_SELDOM,	/* the same; of DOORBELL_EVERY one is enough, others look soon */
};

#define DOORBELL_EVERY	16

struct bell_words {
	atomic_uint quiet;	/* not 0: the daemon looks by itself, and need not be rung */
	atomic_uint word[BELL_WORDS];	/* enum bell_state, by processor % BELL_WORDS */
};

static inline atomic_uint *bell_word(struct bell_words *words)
{
	int cpu = sched_getcpu();

	return &words->word[cpu < 0 ? 0 : cpu % BELL_WORDS];
}

/* Is anybody there, on this processor? Also afterwards, most likely. */
static inline bool bell_heard(struct bell_words *words)
{
	return atomic_load_explicit(bell_word(words), memory_order_relaxed) != BELL_NONE;
}

/*
 * After work was left where the daemon finds it. False: perhaps nobody is there,
 * and the daemon has to be told another way. May change errno.
 */
static inline bool bell_ring(struct bell_words *words)
{
	atomic_uint *word = bell_word(words);
	unsigned int state = BELL_ARMED;

	/* Who sets quiet to 0 looks at the work once more afterwards. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&words->quiet, memory_order_relaxed))
		return true;
	if (!atomic_compare_exchange_strong(word, &state, BELL_RUNG))
		return state == BELL_RUNG;
	return syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0) > 0;
}

#endif
