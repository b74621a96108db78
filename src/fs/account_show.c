/* SPDX-License-Identifier: BSD-2-Clause */
/* Accounts as text: `accounts`, `pinned`, and what they add to `metrics`. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <ibfs/fs.h>

#include "fs/account.h"

const struct account_word account_words[ACCOUNT_ITEMS] = {
	[ACCOUNT_MEMORY] = { "memory", "limits.user_memory" },
	[ACCOUNT_DESCRIPTORS] = { "descriptors", "limits.user_descriptors" },
	[ACCOUNT_MAPPINGS] = { "mappings", "limits.user_mappings" },
	[ACCOUNT_LOCKED] = { "locked", "RLIMIT_MEMLOCK" },
	[ACCOUNT_PINNED] = { "pinned", "RLIMIT_MEMLOCK" },
	[ACCOUNT_FILES] = { "files", "limits.user_files" },
	[ACCOUNT_CONNECTIONS] = { "connections", "limits.user_connections" },
	[ACCOUNT_FIDS] = { "fids", "limits.user_files" },
	[ACCOUNT_AGENTS] = { "agents", "limits.user_objects" },
	[ACCOUNT_EVENT_FILES] = { "event_files", "limits.user_objects" },
	[ACCOUNT_CM_IDS] = { "cm_ids", "limits.user_objects" },
	[ACCOUNT_CM_JOINS] = { "cm_joins", "limits.user_objects" },
	[ACCOUNT_PD] = { "pd", "limits.user_objects" },
	[ACCOUNT_XRCD] = { "xrcd", "limits.user_objects" },
	[ACCOUNT_CQ] = { "cq", "limits.user_objects" },
	[ACCOUNT_MR] = { "mr", "limits.user_objects" },
	[ACCOUNT_MW] = { "mw", "limits.user_objects" },
	[ACCOUNT_SRQ] = { "srq", "limits.user_objects" },
	[ACCOUNT_AH] = { "ah", "limits.user_objects" },
	[ACCOUNT_QP] = { "qp", "limits.user_objects" },
	[ACCOUNT_MCAST] = { "mcast", "limits.user_objects" },
};

enum { NAME_ROOM = INET6_ADDRSTRLEN + 8 };

/* An address of the network, or "". */
static const char *peer_name(const struct account_key *key, char name[NAME_ROOM])
{
	static const uint8_t none[sizeof(key->net)];
	char addr[INET6_ADDRSTRLEN] = "";

	name[0] = '\0';
	if (!memcmp(key->net, none, sizeof(none)))
		return name;
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)key->net)) {
		inet_ntop(AF_INET, key->net + 12, name, NAME_ROOM);
	} else {
		inet_ntop(AF_INET6, key->net, addr, sizeof(addr));
		snprintf(name, NAME_ROOM, "%s/64", addr);
	}
	return name;
}

static uint64_t limit_of(const struct account *account, enum account_item item)
{
	if (item == ACCOUNT_LOCKED && account->used[item])
		return account->lock_limit;
	if (account_privileged(account))
		return ACCOUNT_UNLIMITED;
	return account->accounts->limits.user[item];
}

static void show_number(struct textbuf *out, const char *before, uint64_t n)
{
	if (n == ACCOUNT_UNLIMITED)
		text_printf(out, "%sunlimited", before);
	else
		text_printf(out, "%s%" PRIu64, before, n);
}

static void show_item(struct textbuf *out, enum account_item item, uint64_t used, uint64_t limit)
{
	text_printf(out, " %s=%" PRIu64, account_words[item].name, used);
	show_number(out, "/", limit);
}

void accounts_show(const struct accounts *accounts, struct textbuf *out)
{
	const struct account *account;
	char name[NAME_ROOM];
	int item;

	for (account = accounts->by_key; account; account = account->hh.next) {
		text_printf(out, "uid=%u", account->key.uid);
		if (peer_name(&account->key, name)[0])
			text_printf(out, " peer=%s", name);
		for (item = 0; item < ACCOUNT_ITEMS; item++)
			show_item(out, item, account->used[item], limit_of(account, item));
		text_printf(out, "\n");
	}
	text_printf(out, "users");
	for (item = 0; item < ACCOUNT_ITEMS; item++)
		show_item(out, item, accounts->users[item], accounts->limits.users[item]);
	text_printf(out, "\n");
}

void accounts_show_locked(const struct accounts *accounts, struct textbuf *out)
{
	const struct account *account;

	for (account = accounts->by_key; account; account = account->hh.next)
		if (account->used[ACCOUNT_LOCKED])
			account_show_lock(out, account->locker, account->key.uid,
					  account->used[ACCOUNT_LOCKED], account->lock_limit);
}

void account_show_lock(struct textbuf *out, pid_t pid, uid_t uid, uint64_t bytes, uint64_t limit)
{
	text_printf(out, "pid=%d uid=%u bytes=%" PRIu64, (int)pid, uid, bytes);
	show_number(out, " limit=", limit);
	text_printf(out, "\n");
}

static void label(struct textbuf *out, const struct account *account, const char *metric,
		  enum account_item item)
{
	char name[NAME_ROOM];

	text_printf(out, "ibfs_account_%s{uid=\"%u\",peer=\"%s\",item=\"%s\"} ", metric,
		    account->key.uid, peer_name(&account->key, name), account_words[item].name);
}

void accounts_metrics(const struct accounts *accounts, struct textbuf *out)
{
	const struct account *account;
	int item;

	text_printf(out, "# HELP ibfs_account_used What a user has of the daemon.\n"
		    "# TYPE ibfs_account_used gauge\n");
	for (account = accounts->by_key; account; account = account->hh.next)
		for (item = 0; item < ACCOUNT_ITEMS; item++) {
			label(out, account, "used", item);
			text_printf(out, "%" PRIu64 "\n", account->used[item]);
		}
	text_printf(out, "# HELP ibfs_account_limit What a user may have of it.\n"
		    "# TYPE ibfs_account_limit gauge\n");
	for (account = accounts->by_key; account; account = account->hh.next)
		for (item = 0; item < ACCOUNT_ITEMS; item++) {
			if (limit_of(account, item) == ACCOUNT_UNLIMITED)
				continue;
			label(out, account, "limit", item);
			text_printf(out, "%" PRIu64 "\n", limit_of(account, item));
		}
}
