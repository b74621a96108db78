/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many resources of each kind a user has, of the tree and of uverbs
 * together, and may have: limits.user_objects of ibfs.conf(5), as the kernel's
 * rdma cgroup bounds them. Root has no limit. Memory is counted in obj_mem.c.
 */
#include <errno.h>
#include <stdlib.h>

#include <ibfs/conf.h>

#include "fs/obj.h"

struct quota {
	uid_t uid;
	uint32_t used[OBJ_KINDS];
	UT_hash_handle hh;
};

static struct quota *quota_find(struct objs *objs, uid_t uid)
{
	struct quota *quota;

	HASH_FIND(hh, objs->quotas, &uid, sizeof(uid), quota);
	return quota;
}

static struct quota *quota_new(struct objs *objs, uid_t uid)
{
	struct quota *quota = calloc(1, sizeof(*quota));

	if (!quota)
		return NULL;
	quota->uid = uid;
	HASH_ADD(hh, objs->quotas, uid, sizeof(quota->uid), quota);
	return quota;
}

int quota_take(struct ibfs *ibfs, uid_t uid, enum obj_kind kind)
{
	struct objs *objs = ibfs->fs->objs;
	struct quota *quota;

	if (!uid)
		return 0;
	quota = quota_find(objs, uid);
	if (!quota)
		quota = quota_new(objs, uid);
	if (!quota)
		return -ENOMEM;
	if (ibfs->conf && quota->used[kind] >= ibfs->conf->user_objects)
		return ibfs_fail(ibfs, EDQUOT, "%s: user %u has %u of them, as many as "
				 "limits.user_objects allows", obj_kinds[kind]->name, uid,
				 quota->used[kind]);
	quota->used[kind]++;
	return 0;
}

void quota_give(struct ibfs *ibfs, uid_t uid, enum obj_kind kind)
{
	struct objs *objs = ibfs->fs->objs;
	struct quota *quota = objs ? quota_find(objs, uid) : NULL;
	uint32_t left = 0;

	if (!quota)
		return;
	quota->used[kind]--;
	for (int i = 0; i < OBJ_KINDS; i++)
		left |= quota->used[i];
	if (left)
		return;
	HASH_DEL(objs->quotas, quota);
	free(quota);
}

void quotas_free(struct objs *objs)
{
	struct quota *quota, *tmp;

	HASH_ITER(hh, objs->quotas, quota, tmp) {
		HASH_DEL(objs->quotas, quota);
		free(quota);
	}
}
