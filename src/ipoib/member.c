/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is a member of which multicast group at which port: interfaces, and
 * programs by rdma_cm. Kernel drivers/infiniband/core/multicast.c.
 */
#include <string.h>
#include <utlist.h>

#include "ipoib/sa.h"

void sa_member_add(struct ibfs *ibfs, struct sa_member *member)
{
	if (!member->listed)
		DL_APPEND(ibfs->sa_members, member);
	member->listed = true;
}

static bool same_place(const struct sa_member *a, const struct sa_member *b)
{
	return a->dev == b->dev && a->port == b->port && !memcmp(&a->mgid, &b->mgid, sizeof(a->mgid));
}

uint8_t sa_member_del(struct ibfs *ibfs, struct sa_member *member)
{
	const struct sa_member *other;
	uint8_t join = member->join;

	if (!member->listed)
		return 0;
	DL_DELETE(ibfs->sa_members, member);
	member->listed = false;
	DL_FOREACH(ibfs->sa_members, other)
		if (same_place(member, other))
			join &= ~other->join;
	return join;
}
