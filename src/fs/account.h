/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of accounts.
 *
 *	account.c		accounts and charges
 *	account_limits.c	how much there is, and how much of it a user may have
 *	account_show.c		`accounts`, `pinned` and `metrics`
 */
#ifndef IBFS_FS_ACCOUNT_H
#define IBFS_FS_ACCOUNT_H

#include <uthash.h>

#include <ibfs/account.h>

/* How an item is called, and what limits it. */
struct account_word {
	const char *name, *setting;
};
extern const struct account_word account_words[ACCOUNT_ITEMS];

struct account_limits {
	uint64_t user[ACCOUNT_ITEMS];	/* of one user but root */
	uint64_t users[ACCOUNT_ITEMS];	/* of all of them together; the rest is root's */
	uint64_t all[ACCOUNT_ITEMS];	/* with root's */
};
/* From the configuration, and from what the system lets this process have. */
void account_limits(struct account_limits *limits, const struct ibfs *ibfs);

/* Whose: net is all zero, or an address of the network, IPv4 as ::ffff:a.b.c.d. */
struct account_key {
	uid_t uid;
	uint8_t net[16];
};

struct account {
	struct accounts *accounts;
	struct account_key key;
	unsigned int refs;
	uint64_t used[ACCOUNT_ITEMS];
	pid_t locker;			/* who locked memory last, */
	uint64_t lock_limit;		/* and how much that process may lock */
	UT_hash_handle hh;
};

struct accounts {
	struct ibfs *ibfs;
	uid_t owner;			/* who runs the daemon, and is to it what root is */
	struct account_limits limits;
	struct account *by_key;
	uint64_t users[ACCOUNT_ITEMS], all[ACCOUNT_ITEMS];	/* what they have */
};

/* Does it know no limits but the daemon's own? */
bool account_privileged(const struct account *account);

#endif
