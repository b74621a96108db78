/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The static subnet in the SA's place: it has no SA, but the fabric knows each
 * GID's LID and each group's MLID. Answers come from a task, as the SA's come
 * later.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <utlist.h>

#include "fabric/fabric.h"
#include "ipoib/sa.h"

#define NO_RECORDS	0x0300		/* the SA's status */

static void answer(struct ipoib *ip, struct sa_query *q)
{
	sa_cancel(ip, q);
	q->tid = ++ip->next_tid ? ip->next_tid : ++ip->next_tid;
	DL_APPEND(ip->queries, q);
	task_queue(ip->ibfs->tasks, &ip->sa_task);
}

static int find_path(const struct ipoib *ip, struct path_rec *rec, const struct ipoib_peer *peer)
{
	const struct port *port;
	__be64 guid;

	memcpy(&guid, peer->key + 3 + 8, 8);
	port = ip->ibfs->fabric ? fabric_find_port_guid(ip->ibfs->fabric, be64toh(guid)) : NULL;
	if (!port)
		return NO_RECORDS;
	rec->dlid = htons(port->lid);
	rec->mtu = ip->attr.active_mtu;
	return 0;
}

static int find_group(const struct ipoib *ip, struct mcmember *mcm, const struct ipoib_group *group)
{
	int mlid = static_mcast_mlid(ip->ibfs->fabric, group->mgid.raw);

	if (mlid < 0)
		return NO_RECORDS;
	mcm->mlid = htons(mlid);
	mcm->mtu = ip->attr.active_mtu;
	mcm->qkey = htonl(IPOIB_DEFAULT_QKEY);
	return 0;
}

struct groups_answer {
	struct ipoib *ip;
	struct sa_query *q;
};

/* One record at a time, which the SA sends in one piece. */
static void tell_group(void *ctx, const uint8_t mgid[16])
{
	const struct groups_answer *answer = ctx;
	struct mcmember mcm = { 0 };

	memcpy(mcm.mgid, mgid, 16);
	answer->q->stride = answer->q->size = sizeof(mcm);
	answer->q->done(answer->q, 0, &mcm);
}

static void find_groups(struct ipoib *ip, struct sa_query *q)
{
	struct groups_answer answer = { ip, q };

	static_mcast_each(ip->ibfs->fabric, tell_group, &answer);
}

static void run(struct task *task)
{
	struct ipoib *ip = (struct ipoib *)((char *)task - offsetof(struct ipoib, sa_task));
	union {
		struct path_rec path;
		struct mcmember mcm;
	} record;
	struct sa_query *q;

	while (ip->static_subnet && (q = ip->queries) != NULL) {
		int err;

		if (q->kind == SA_GROUPS) {
			sa_cancel(ip, q);
			find_groups(ip, q);
			continue;
		}
		memset(&record, 0, sizeof(record));
		if (q->kind == SA_PATH)
			err = find_path(ip, &record.path, q->owner);
		else
			err = find_group(ip, &record.mcm, q->owner);
		sa_cancel(ip, q);
		q->done(q, err, err ? NULL : &record);
	}
}

/* The fabric makes the group of whoever attaches to it. */
void sa_static_join(struct ipoib *ip, struct ipoib_group *group)
{
	ip->sa_task.fn = run;
	if (group->full && !group->attached)
		group->attached = !ip->ops->attach_mcast(ip->qp, &group->mgid, 0);
	answer(ip, &group->query);
}

void sa_static_groups(struct ipoib *ip, struct sa_query *q)
{
	ip->sa_task.fn = run;
	answer(ip, q);
}

void sa_static_path(struct ipoib *ip, struct ipoib_peer *peer)
{
	ip->sa_task.fn = run;
	answer(ip, &peer->query);
}
