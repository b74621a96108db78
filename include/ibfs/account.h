/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accounts: what each user has of the daemon, and may have (ibfs.conf(5), limits).
 * A user is a uid of this machine or, over TCP, an address. Whatever a client makes
 * the daemon keep has a charge, which says on whose account it is and how much of
 * what, and gives all of it back at once. Front ends and files charge; an account
 * doesn't know what for. All of it is for the event loop only.
 */
#ifndef IBFS_ACCOUNT_H
#define IBFS_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct account;
struct accounts;
struct fs_cred;
struct ibfs;
struct sockaddr;
struct textbuf;

enum account_item {
	/* amounts */
	ACCOUNT_MEMORY,			/* bytes of the daemon's */
	ACCOUNT_DESCRIPTORS,		/* the daemon's */
	ACCOUNT_MAPPINGS,		/* in the daemon's address space */
	ACCOUNT_LOCKED,			/* bytes registered by file, against RLIMIT_MEMLOCK */
	ACCOUNT_PINNED,			/* bytes of processes, registered by uverbs */
	/* things, of one kind in a charge */
	ACCOUNT_FILES, ACCOUNT_CONNECTIONS, ACCOUNT_FIDS, ACCOUNT_AGENTS, ACCOUNT_EVENT_FILES,
	ACCOUNT_CM_IDS, ACCOUNT_CM_JOINS,
	/* in the order of enum obj_kind */
	ACCOUNT_PD, ACCOUNT_XRCD, ACCOUNT_CQ, ACCOUNT_MR, ACCOUNT_MW, ACCOUNT_SRQ, ACCOUNT_AH,
	ACCOUNT_QP, ACCOUNT_MCAST,
	ACCOUNT_ITEMS,
	ACCOUNT_AMOUNTS = ACCOUNT_FILES,
	ACCOUNT_NO_THING = ACCOUNT_ITEMS,	/* of a charge: amounts only */
};

#define ACCOUNT_UNLIMITED UINT64_MAX

struct accounts *accounts_new(struct ibfs *ibfs);	/* NULL: no memory */
/*
 * Everything must have been given back: what wasn't is told in the log, and is the
 * end of a sanitized daemon. stuck: helpers that never end may still have some.
 */
void accounts_free(struct accounts *accounts, bool stuck);

/*
 * The account of who comes from an address of the network as this uid: one for an
 * IPv4 address, one for 64 bits of an IPv6 address, one for this machine. A
 * reference; NULL: no memory.
 */
struct account *account_of_peer(struct accounts *accounts, uid_t uid, const struct sockaddr *addr);
struct account *account_hold(struct account *account);	/* one more reference; also of NULL */
void account_put(struct account *account);		/* likewise */

/* What something has. All zero: nothing. */
struct charge {
	struct account *account;	/* NULL: nobody pays */
	enum account_item thing;
	uint64_t things;
	uint64_t used[ACCOUNT_AMOUNTS];
};

/*
 * One thing, on the account of these credentials, or on that of another charge. 0,
 * -EDQUOT (told in `errors`) or -ENOMEM: then there is no charge.
 */
int charge_begin(struct charge *charge, struct accounts *accounts, const struct fs_cred *cred,
		 enum account_item thing);
int charge_beside(struct charge *charge, const struct charge *other, enum account_item thing);
/* More, before it is taken: 0, or -EDQUOT. The item is an amount, or the charge's thing. */
int charge_take(struct charge *charge, enum account_item item, uint64_t n);
/* Memory, descriptors and mappings, all of them or none. */
int charge_take_all(struct charge *charge, uint64_t bytes, unsigned int descriptors,
		    unsigned int mappings);
void charge_give_all(struct charge *charge, uint64_t bytes, unsigned int descriptors,
		     unsigned int mappings);
/* Bytes of memory to lock, by a process that may lock so many: -ENOMEM. Nothing is told. */
int charge_lock(struct charge *charge, pid_t pid, uint64_t limit, uint64_t bytes);
void charge_give(struct charge *charge, enum account_item item, uint64_t n);
/* What was taken is now in another charge, whatever that one's limit. */
void charge_pass(struct charge *from, struct charge *to, enum account_item item, uint64_t n);
uid_t charge_uid(const struct charge *charge);	/* who pays; 0: nobody */
/* Gives back all that it has; of one that has nothing, nothing. */
void charge_end(struct charge *charge);

/* A line for each account, and one for all users but root: item=used/limit. */
void accounts_show(const struct accounts *accounts, struct textbuf *out);
/* Who has locked how much, and may; and a line of that. */
void accounts_show_locked(const struct accounts *accounts, struct textbuf *out);
void account_show_lock(struct textbuf *out, pid_t pid, uid_t uid, uint64_t bytes, uint64_t limit);
void accounts_metrics(const struct accounts *accounts, struct textbuf *out);

#endif
