/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much of each item there is, and how much of it a user may have: what the
 * configuration says, else a share of what the system lets this process have.
 * getrlimit(2), /proc/sys/vm/max_map_count (proc_sys_vm(5)), sysconf(3).
 */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ibfs/conf.h>
#include <ibfs/ibfs.h>

#include "fs/account.h"

enum {
	OWN = 64,			/* descriptors and mappings of the daemon itself, about */
	USERS_SHARE = 4,		/* a user has a quarter of what users have */
	LEAST = 8,			/* but no less than so many */
	MCAST_MOST = 2048,		/* a quarter of the groups that a device has */
};

static uint64_t max_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return ACCOUNT_UNLIMITED;
	return limit.rlim_cur > OWN ? limit.rlim_cur - OWN : 0;
}

static uint64_t max_mappings(void)
{
	FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned long long count = 0;
	bool known = file && fscanf(file, "%llu", &count) == 1;

	if (file)
		fclose(file);
	if (!known)
		return ACCOUNT_UNLIMITED;
	return count > OWN ? count - OWN : 0;
}

static uint64_t max_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 2 : ACCOUNT_UNLIMITED;
}

/* What is shared by all: users leave some of it to root; one of them has `user`, or, 0, its share. */
static void set_shared(struct account_limits *limits, enum account_item item, uint64_t total,
		       unsigned int user, unsigned int reserve)
{
	uint64_t users = total == ACCOUNT_UNLIMITED ? total : total - total / 100 * reserve -
			 total % 100 * reserve / 100;

	limits->users[item] = users;
	limits->user[item] = users == ACCOUNT_UNLIMITED ? users : users / USERS_SHARE;
	if (limits->user[item] < LEAST)
		limits->user[item] = LEAST;
	if (user)
		limits->user[item] = user;
}

/* Nothing limits what the others do not: they are memory in the end. */
static void set_all(struct account_limits *limits)
{
	for (int item = 0; item < ACCOUNT_ITEMS; item++)
		limits->user[item] = limits->users[item] = limits->all[item] = ACCOUNT_UNLIMITED;
}

void account_limits(struct account_limits *limits, const struct ibfs *ibfs)
{
	const struct conf *conf = ibfs->conf;

	set_all(limits);
	if (!conf)
		return;
	for (int item = ACCOUNT_AGENTS; item < ACCOUNT_ITEMS; item++)
		limits->user[item] = conf->user_objects;
	limits->user[ACCOUNT_FILES] = limits->user[ACCOUNT_FIDS] = conf->user_files;
	if (limits->user[ACCOUNT_MCAST] > MCAST_MOST)
		limits->user[ACCOUNT_MCAST] = MCAST_MOST;
	set_shared(limits, ACCOUNT_DESCRIPTORS, max_descriptors(), conf->user_descriptors,
		   conf->reserve);
	set_shared(limits, ACCOUNT_MAPPINGS, max_mappings(), conf->user_mappings, conf->reserve);
	set_shared(limits, ACCOUNT_CONNECTIONS, conf->p9.connections, conf->user_connections,
		   conf->reserve);
	limits->all[ACCOUNT_CONNECTIONS] = conf->p9.connections;
	limits->user[ACCOUNT_MEMORY] = (uint64_t)conf->user_memory << 20;
	limits->users[ACCOUNT_MEMORY] = max_memory();
}
