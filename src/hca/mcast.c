/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups: which QPs of the HCA are attached to which GID, and, on a
 * static subnet, the port's membership in it (with a subnet manager, clients
 * join by the SA). IBA 10.5.2, 11.2.10.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "hca/verbs.h"

struct mcast_group *mcast_find(struct verbs *verbs, const uint8_t mgid[16])
{
	struct mcast_group *group;

	HASH_FIND(hh, verbs->groups, mgid, sizeof(group->mgid), group);
	return group;
}

static struct mcast_member *member_find(struct mcast_group *group, const struct ibfs_qp *qp)
{
	struct mcast_member *member;

	DL_SEARCH_SCALAR(group->members, member, qp, (struct ibfs_qp *)qp);
	return member;
}

static void group_drop(struct verbs *verbs, struct mcast_group *group)
{
	if (group->num)
		return;
	HASH_DEL(verbs->groups, group);
	verbs->num_groups--;
	free(group);
}

static struct mcast_group *group_make(struct verbs *verbs, const union ibv_gid *gid)
{
	struct mcast_group *group = mcast_find(verbs, gid->raw);

	if (group || verbs->num_groups >= (unsigned int)verbs_limits.max_mcast_grp)
		return group;
	group = calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	group->mgid = *gid;
	HASH_ADD(hh, verbs->groups, mgid, sizeof(group->mgid), group);
	verbs->num_groups++;
	return group;
}

/*
 * The port that the QP listens on; membership of a static subnet follows it. One
 * that was told none yet has the only one of its device, or none.
 */
static struct port *member_port(const struct ibfs_qp *qp)
{
	unsigned int num = qp->attr.port_num;

	return verbs_port(qp->verbs, num || qp->verbs->hca->dev.num_ports > 1 ? num : 1);
}

int mcast_attach(struct ibfs_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct verbs *verbs = qp->verbs;
	struct mcast_member *member;
	struct mcast_group *group;
	int err;

	(void)lid;		/* delivery goes by GID: two groups may share a LID */
	if (qp->type != IBV_QPT_UD || gid->raw[0] != 0xff || !member_port(qp))
		return -EINVAL;
	if (verbs->num_attached >= (unsigned int)verbs_limits.max_total_mcast_qp_attach)
		return -ENOMEM;
	group = group_make(verbs, gid);
	if (!group)
		return -ENOMEM;
	if (member_find(group, qp))
		return 0;
	err = -ENOMEM;
	if (group->num >= (unsigned int)verbs_limits.max_mcast_qp_attach)
		goto drop;
	member = calloc(1, sizeof(*member));
	if (!member)
		goto drop;
	err = static_mcast_attach(verbs->fabric, member_port(qp), gid->raw);
	if (err < 0 && err != -EOPNOTSUPP) {
		free(member);
		goto drop;
	}
	member->qp = qp;
	member->port = member_port(qp);
	DL_APPEND(group->members, member);
	group->num++;
	verbs->num_attached++;
	qp->mcast++;
	return 0;
drop:
	group_drop(verbs, group);
	return err;
}

static void member_drop(struct verbs *verbs, struct mcast_group *group, struct mcast_member *member)
{
	static_mcast_detach(verbs->fabric, member->port, group->mgid.raw);
	DL_DELETE(group->members, member);
	member->qp->mcast--;
	free(member);
	group->num--;
	verbs->num_attached--;
	group_drop(verbs, group);
}

int mcast_detach(struct ibfs_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct mcast_group *group = mcast_find(qp->verbs, gid->raw);
	struct mcast_member *member = group ? member_find(group, qp) : NULL;

	(void)lid;
	if (!member)
		return -EINVAL;
	member_drop(qp->verbs, group, member);
	return 0;
}

void mcast_detach_all(struct ibfs_qp *qp)
{
	struct mcast_group *group, *tmp;

	HASH_ITER(hh, qp->verbs->groups, group, tmp) {
		struct mcast_member *member = member_find(group, qp);

		if (member)
			member_drop(qp->verbs, group, member);
	}
}
