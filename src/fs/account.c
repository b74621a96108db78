/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accounts and charges. An account is there while somebody has something on it;
 * each amount is in a charge, in its account and in two sums at the same time.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ibfs/fs.h>
#include <ibfs/ibfs.h>

#include "fs/account.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

enum { NET_PREFIX = 8 };	/* bytes of an IPv6 address that tell one user from another */

/* --- accounts --- */

struct accounts *accounts_new(struct ibfs *ibfs)
{
	struct accounts *accounts = calloc(1, sizeof(*accounts));

	if (!accounts)
		return NULL;
	accounts->ibfs = ibfs;
	accounts->owner = geteuid();
	account_limits(&accounts->limits, ibfs);
	return accounts;
}

/* False: there is something on it. */
static bool is_even(const struct account *account)
{
	for (int item = 0; item < ACCOUNT_ITEMS; item++) {
		if (!account->used[item])
			continue;
		ibfs_log(account->accounts->ibfs, "accounts: user %u still has %llu of %s",
			 account->key.uid, (unsigned long long)account->used[item],
			 account_words[item].name);
		return false;
	}
	return true;
}

void accounts_free(struct accounts *accounts, bool stuck)
{
	struct account *account, *tmp;
	bool even = true;

	if (!accounts)
		return;
	HASH_ITER(hh, accounts->by_key, account, tmp) {
		even = (stuck || is_even(account)) && even;
		HASH_DEL(accounts->by_key, account);
		free(account);
	}
	free(accounts);
	if (SANITIZED && !even)
		abort();
}

/* A reference. */
static struct account *account_get(struct accounts *accounts, const struct account_key *key)
{
	struct account *account;

	HASH_FIND(hh, accounts->by_key, key, sizeof(*key), account);
	if (!account) {
		account = calloc(1, sizeof(*account));
		if (!account)
			return NULL;
		account->accounts = accounts;
		account->key = *key;
		HASH_ADD(hh, accounts->by_key, key, sizeof(account->key), account);
	}
	account->refs++;
	return account;
}

struct account *account_hold(struct account *account)
{
	if (account)
		account->refs++;
	return account;
}

void account_put(struct account *account)
{
	if (!account || --account->refs)
		return;
	HASH_DEL(account->accounts->by_key, account);
	free(account);
}

/* Who has one address of a network has many. */
static void net_of(const struct sockaddr *addr, uint8_t net[16])
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	struct in_addr ip4 = { 0 };

	if (addr->sa_family == AF_INET)
		ip4 = ((const struct sockaddr_in *)addr)->sin_addr;
	else if (addr->sa_family != AF_INET6)
		return;
	else if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		memcpy(&ip4, in6->sin6_addr.s6_addr + 12, sizeof(ip4));
	else if (IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr))
		ip4.s_addr = htonl(INADDR_LOOPBACK);
	else
		memcpy(net, in6->sin6_addr.s6_addr, NET_PREFIX);
	if (!ip4.s_addr)
		return;
	if (ntohl(ip4.s_addr) >> 24 == IN_LOOPBACKNET)
		ip4.s_addr = htonl(INADDR_LOOPBACK);
	net[10] = net[11] = 0xff;
	memcpy(net + 12, &ip4, sizeof(ip4));
}

struct account *account_of_peer(struct accounts *accounts, uid_t uid, const struct sockaddr *addr)
{
	struct account_key key = { .uid = uid };

	net_of(addr, key.net);
	return account_get(accounts, &key);
}

static bool is_remote(const struct account *account)
{
	static const uint8_t none[sizeof(account->key.net)];

	return memcmp(account->key.net, none, sizeof(none));
}

bool account_privileged(const struct account *account)
{
	uid_t uid = account->key.uid;

	return !is_remote(account) && (!uid || uid == account->accounts->owner);
}

/* --- taking and giving --- */

static bool has_room(uint64_t used, uint64_t n, uint64_t limit)
{
	return limit == ACCOUNT_UNLIMITED || (used <= limit && n <= limit - used);
}

/* In words, why it is too much. */
static int refused(const struct account *account, enum account_item item, uint64_t n)
{
	const struct account_word *word = &account_words[item];
	unsigned long long used = account->used[item];
	struct ibfs *ibfs = account->accounts->ibfs;

	if (item >= ACCOUNT_AMOUNTS)
		return ibfs_fail(ibfs, EDQUOT, "%s: user %u has %llu of them, as many as %s allows",
				 word->name, account->key.uid, used, word->setting);
	return ibfs_fail(ibfs, EDQUOT, "%s: user %u has %llu and wants %llu more: %s allows %llu",
			 word->name, account->key.uid, used, (unsigned long long)n, word->setting,
			 (unsigned long long)account->accounts->limits.user[item]);
}

static int check(const struct account *account, enum account_item item, uint64_t n)
{
	const struct accounts *accounts = account->accounts;
	const struct account_limits *limits = &accounts->limits;
	bool privileged = account_privileged(account);

	if (!privileged && !has_room(account->used[item], n, limits->user[item]))
		return refused(account, item, n);
	if (!privileged && !has_room(accounts->users[item], n, limits->users[item]))
		return ibfs_fail(accounts->ibfs, EDQUOT,
				 "%s: users have %llu together: what is left is root's",
				 account_words[item].name,
				 (unsigned long long)accounts->users[item]);
	if (!has_room(accounts->all[item], n, limits->all[item]))
		return ibfs_fail(accounts->ibfs, EDQUOT, "%s: all have %llu together: there are no more",
				 account_words[item].name, (unsigned long long)accounts->all[item]);
	return 0;
}

/* n may be what uint64_t has for a negative number. */
static void account_add(struct account *account, enum account_item item, uint64_t n)
{
	account->used[item] += n;
	account->accounts->all[item] += n;
	if (!account_privileged(account))
		account->accounts->users[item] += n;
}

static uint64_t *place(struct charge *charge, enum account_item item)
{
	return item < ACCOUNT_AMOUNTS ? &charge->used[item] : &charge->things;
}

static void charge_add(struct charge *charge, enum account_item item, uint64_t n)
{
	account_add(charge->account, item, n);
	*place(charge, item) += n;
}

int charge_take(struct charge *charge, enum account_item item, uint64_t n)
{
	int err = charge->account ? check(charge->account, item, n) : 0;

	if (!err && charge->account)
		charge_add(charge, item, n);
	return err;
}

int charge_take_all(struct charge *charge, uint64_t bytes, unsigned int descriptors,
		    unsigned int mappings)
{
	int err = charge_take(charge, ACCOUNT_MEMORY, bytes);

	if (err)
		return err;
	err = charge_take(charge, ACCOUNT_DESCRIPTORS, descriptors);
	if (err)
		goto bytes;
	err = charge_take(charge, ACCOUNT_MAPPINGS, mappings);
	if (!err)
		return 0;
	charge_give(charge, ACCOUNT_DESCRIPTORS, descriptors);
bytes:
	charge_give(charge, ACCOUNT_MEMORY, bytes);
	return err;
}

int charge_lock(struct charge *charge, pid_t pid, uint64_t limit, uint64_t bytes)
{
	struct account *account = charge->account;

	if (!account)
		return 0;
	if (!has_room(account->used[ACCOUNT_LOCKED], bytes, limit))
		return -ENOMEM;
	account->locker = pid;
	account->lock_limit = limit;
	charge_add(charge, ACCOUNT_LOCKED, bytes);
	return 0;
}

void charge_give(struct charge *charge, enum account_item item, uint64_t n)
{
	if (charge->account)
		charge_add(charge, item, -n);
}

void charge_give_all(struct charge *charge, uint64_t bytes, unsigned int descriptors,
		     unsigned int mappings)
{
	charge_give(charge, ACCOUNT_MEMORY, bytes);
	charge_give(charge, ACCOUNT_DESCRIPTORS, descriptors);
	charge_give(charge, ACCOUNT_MAPPINGS, mappings);
}

uid_t charge_uid(const struct charge *charge)
{
	return charge->account ? charge->account->key.uid : 0;
}

void charge_pass(struct charge *from, struct charge *to, enum account_item item, uint64_t n)
{
	charge_give(from, item, n);
	if (to->account)
		charge_add(to, item, n);
}

/* --- a charge's life --- */

/* On an account whose reference becomes the charge's. */
static int begin(struct charge *charge, struct account *account, enum account_item thing)
{
	int err;

	*charge = (struct charge){ .account = account, .thing = thing };
	err = account ? 0 : -ENOMEM;
	if (!err && thing != ACCOUNT_NO_THING)
		err = charge_take(charge, thing, 1);
	if (err) {
		account_put(account);
		charge->account = NULL;
	}
	return err;
}

int charge_begin(struct charge *charge, struct accounts *accounts, const struct fs_cred *cred,
		 enum account_item thing)
{
	struct account_key key = { .uid = cred->uid };

	if (cred->account)
		key = cred->account->key;
	return begin(charge, account_get(accounts, &key), thing);
}

int charge_beside(struct charge *charge, const struct charge *other, enum account_item thing)
{
	*charge = (struct charge){ .account = NULL };
	if (!other->account)
		return 0;
	return begin(charge, account_get(other->account->accounts, &other->account->key), thing);
}

void charge_end(struct charge *charge)
{
	if (!charge->account)
		return;
	if (charge->things)
		account_add(charge->account, charge->thing, -charge->things);
	for (int item = 0; item < ACCOUNT_AMOUNTS; item++)
		account_add(charge->account, item, -charge->used[item]);
	account_put(charge->account);
	*charge = (struct charge){ .account = NULL };
}
