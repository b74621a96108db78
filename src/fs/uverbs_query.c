/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Methods of RDMA_VERBS_IOCTL that ask and change nothing. Kernel:
 * uverbs_std_types_device.c, uverbs_std_types_mr.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ibfs/backend.h>

#include "fs/uverbs_ioctl.h"

#define ADVISE_MAX	256		/* pieces that one call looks for */

int uv_ioctl_query_port(struct uv_cmd *cmd)
{
	struct ib_uverbs_query_port_resp_ex resp = { 0 };
	uint32_t port;
	int err;

	err = uv_attr_const(cmd, UVERBS_ATTR_QUERY_PORT_PORT_NUM, UINT8_MAX, &port);
	if (!err)
		err = uv_port_answer(cmd->uf->dev, port, &resp);
	if (err)
		return err;
	return uv_attr_put(cmd, UVERBS_ATTR_QUERY_PORT_RESP, &resp, sizeof(resp));
}

/* --- GIDs --- */

/* 0, -EINVAL: no such port or index; -ENODATA: the entry is empty. */
static int gid_entry(struct ibfs_device *dev, uint32_t port, uint32_t index,
		     struct ib_uverbs_gid_entry *entry)
{
	struct ibv_port_attr attr = { 0 };
	union ibv_gid gid;
	int err;

	if (port < dev->first_port || port > dev->num_ports)
		return -EINVAL;
	err = dev->ops->query_port(dev, port, &attr);
	if (err)
		return err;
	if ((int64_t)index >= attr.gid_tbl_len)
		return -EINVAL;
	err = dev->ops->query_gid(dev, port, index, &gid);
	if (err)
		return err;
	*entry = (struct ib_uverbs_gid_entry){
		.gid_index = index, .port_num = port, .gid_type = IB_UVERBS_GID_TYPE_IB,
	};
	memcpy(entry->gid, &gid, sizeof(gid));
	return entry->gid[0] || entry->gid[1] ? 0 : -ENODATA;
}

int uv_ioctl_query_gid_entry(struct uv_cmd *cmd)
{
	struct ib_uverbs_gid_entry entry;
	uint32_t flags, port, index;
	int err;

	err = uv_attr_flags(cmd, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 0, &flags);
	if (!err)
		err = uv_attr_const(cmd, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, UINT32_MAX, &port);
	if (!err)
		err = uv_attr_const(cmd, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, UINT32_MAX, &index);
	if (!err)
		err = gid_entry(cmd->uf->dev, port, index, &entry);
	if (err)
		return err;
	return uv_attr_put(cmd, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &entry, sizeof(entry));
}

/* All entries that aren't empty, of all ports: how many, or -EINVAL when there is no room. */
static int64_t gid_table(struct ibfs_device *dev, uint8_t *out, size_t room, size_t entry_size)
{
	size_t copy = sizeof(struct ib_uverbs_gid_entry);
	struct ib_uverbs_gid_entry entry;
	int64_t num = 0;

	if (entry_size < copy)
		copy = entry_size;
	for (uint32_t port = dev->first_port; port <= dev->num_ports; port++) {
		for (uint32_t index = 0;; index++) {
			int err = gid_entry(dev, port, index, &entry);

			if (err == -ENODATA)
				continue;
			if (err)
				break;
			if ((size_t)num == room)
				return -EINVAL;
			memcpy(out + num++ * entry_size, &entry, copy);
		}
	}
	return num;
}

int uv_ioctl_query_gid_table(struct uv_cmd *cmd)
{
	const struct uv_attr *attr = uv_attr(cmd, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
	uint64_t size = uv_attr_u64(cmd, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
	uint32_t flags;
	uint8_t *table;
	int64_t num;
	int err;

	err = uv_attr_flags(cmd, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 0, &flags);
	if (err)
		return err;
	if (!size || !attr->len || attr->len % size)
		return -EINVAL;
	table = calloc(1, attr->len);
	if (!table)
		return -ENOMEM;
	num = gid_table(cmd->uf->dev, table, attr->len / size, size);
	err = num < 0 ? (int)num :
	      uv_attr_put(cmd, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, table, num * size);
	free(table);
	if (err)
		return err;
	return uv_attr_put(cmd, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, &num, sizeof(num));
}

/* --- handles --- */

/* By UVERBS_OBJECT_*: one more than the type of its handles; 0: it has none here. */
static const uint8_t types[] = {
	[UVERBS_OBJECT_PD] = UOBJ_PD + 1, [UVERBS_OBJECT_CQ] = UOBJ_CQ + 1,
	[UVERBS_OBJECT_QP] = UOBJ_QP + 1, [UVERBS_OBJECT_SRQ] = UOBJ_SRQ + 1,
	[UVERBS_OBJECT_AH] = UOBJ_AH + 1, [UVERBS_OBJECT_MR] = UOBJ_MR + 1,
	[UVERBS_OBJECT_MW] = UOBJ_MW + 1, [UVERBS_OBJECT_XRCD] = UOBJ_XRCD + 1,
};

int uv_ioctl_info_handles(struct uv_cmd *cmd)
{
	const struct uv_attr *attr = uv_attr(cmd, UVERBS_ATTR_INFO_HANDLES_LIST);
	uint64_t object = uv_attr_u64(cmd, UVERBS_ATTR_INFO_OBJECT_ID);
	const struct uverbs_file *uf = cmd->uf;
	uint32_t *list, num = 0;
	int err;

	if (!attr || attr->len % sizeof(uint32_t) ||
	    object >= sizeof(types) / sizeof(types[0]) || !types[object])
		return -EINVAL;
	list = malloc(attr->len);
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < uf->num_objs && num < attr->len / sizeof(uint32_t); i++)
		if (uobj_get(uf, i, types[object] - 1))
			list[num++] = i;
	err = uv_attr_put(cmd, UVERBS_ATTR_INFO_HANDLES_LIST, list, num * sizeof(uint32_t));
	free(list);
	if (err)
		return err;
	return uv_attr_put(cmd, UVERBS_ATTR_INFO_TOTAL_HANDLES, &num, sizeof(num));
}

/* --- memory regions --- */

int uv_ioctl_query_mr(struct uv_cmd *cmd)
{
	uint32_t handle = (uint32_t)uv_attr_u64(cmd, UVERBS_ATTR_QUERY_MR_HANDLE);
	struct ibfs_mr_attr attr;
	int err;

	uv_verbs(cmd->uf)->query_mr(uobj_get(cmd->uf, handle, UOBJ_MR)->mr, &attr);
	err = uv_attr_put(cmd, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &attr.lkey, sizeof(attr.lkey));
	if (!err)
		err = uv_attr_put(cmd, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &attr.rkey, sizeof(attr.rkey));
	if (!err)
		err = uv_attr_put(cmd, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &attr.length,
				  sizeof(attr.length));
	if (!err)
		err = uv_attr_put(cmd, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &attr.iova, sizeof(attr.iova));
	return err;
}

static int find_mr(const struct uverbs_file *uf, const struct ibfs_pd *pd, uint32_t lkey,
		   struct ibfs_mr_attr *attr)
{
	for (uint32_t i = 0; i < uf->num_objs; i++) {
		const struct uobj *obj = uobj_get(uf, i, UOBJ_MR);

		if (!obj)
			continue;
		uv_verbs(uf)->query_mr(obj->mr, attr);
		if (attr->lkey == lkey)
			return attr->pd == pd ? 0 : -EINVAL;
	}
	return -EINVAL;
}

/* rxe_ib_advise_mr(): every piece has to be of the PD's, and within its region. */
static int check_sge(const struct uverbs_file *uf, const struct ibfs_pd *pd, uint32_t advice,
		     const struct ib_uverbs_sge *sge)
{
	struct ibfs_mr_attr attr;
	int err = find_mr(uf, pd, sge->lkey, &attr);

	if (err)
		return err;
	if (advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
	    !(attr.access & IBV_ACCESS_LOCAL_WRITE))
		return -EPERM;
	if (sge->addr < attr.iova || sge->addr - attr.iova > attr.length ||
	    sge->length > attr.length - (sge->addr - attr.iova))
		return -EINVAL;
	return 0;
}

/*
 * Advice: pages come when they are needed, since the memory is reached as its
 * own process would, so that there is nothing to do but to check.
 */
int uv_ioctl_advise_mr(struct uv_cmd *cmd)
{
	const struct uv_attr *list = uv_attr(cmd, UVERBS_ATTR_ADVISE_MR_SGE_LIST);
	uint32_t pd = (uint32_t)uv_attr_u64(cmd, UVERBS_ATTR_ADVISE_MR_PD_HANDLE);
	struct ib_uverbs_sge sge;
	uint32_t advice, flags;
	int err;

	err = uv_attr_flags(cmd, UVERBS_ATTR_ADVISE_MR_FLAGS, IB_UVERBS_ADVISE_MR_FLAG_FLUSH,
			    &flags);
	if (err || list->len % sizeof(sge) || list->len > ADVISE_MAX * sizeof(sge))
		return -EINVAL;
	if (uv_attr_const(cmd, UVERBS_ATTR_ADVISE_MR_ADVICE,
			  IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, &advice))
		return -EOPNOTSUPP;
	for (size_t at = 0; at < list->len && !err; at += sizeof(sge)) {
		memcpy(&sge, list->in + at, sizeof(sge));
		err = check_sge(cmd->uf, uobj_get(cmd->uf, pd, UOBJ_PD)->pd, advice, &sge);
	}
	return err;
}
