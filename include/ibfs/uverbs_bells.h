/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first pages of a uverbs file's memory, between the daemon and
 * libibfs-run.so, by which a doorbell (POST_SEND without work requests) needs no
 * system call that waits for the daemon: the ring need not be rung, or is rung
 * by a bell (ibfs/bell_words.h). Who posts does so first, then has a full memory
 * barrier, then reads. The client can write all of it, and harms itself only.
 */
#ifndef IBFS_UVERBS_BELLS_H
#define IBFS_UVERBS_BELLS_H

#include <stdint.h>

#include <ibfs/bell_words.h>

#define UVERBS_BELLS_SIZE	8192
#define UVERBS_BELLS_MAGIC	0x336c6c6562736669ULL	/* "ifsbell3" in memory, little endian */
#define UVERBS_BELLS		(63 * 64)

struct uverbs_bells {
	uint64_t magic;
	uint8_t pad[56];
	_Atomic uint8_t doorbells[UVERBS_BELLS];	/* by QP handle: enum doorbell */
	/* From here on written by the client, who says so first: */
	atomic_uint rings;			/* 1: it rings by `words`, once they are armed */
	uint8_t pad_2[60];
	struct bell_words words;		/* quiet isn't used: each QP has its own */
	uint8_t pad_3[128 - sizeof(struct bell_words)];
	/* What was rung: QPs by handle, 64 to a word, and the words that aren't 0. */
	_Atomic uint64_t rung[UVERBS_BELLS / 64], rung_words;
	uint8_t pad_4[UVERBS_BELLS_SIZE - 4096 - 64 - 128 - 512];
};
_Static_assert(sizeof(struct uverbs_bells) == UVERBS_BELLS_SIZE, "whole pages");

#endif
