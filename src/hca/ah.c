/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles. IBA 11.2.2.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/verbs.h"

int ah_check(const struct verbs *verbs, const struct ibv_ah_attr *attr)
{
	const struct port *port = verbs_port(verbs, attr->port_num);

	if (!port || attr->sl > 15 || attr->src_path_bits > 127)
		return -EINVAL;
	if (attr->dlid >= LID_MCAST_FIRST && attr->dlid != LID_PERMISSIVE && !attr->is_global)
		return -EINVAL;
	/* Nobody has a GID of no GUID; beyond the table there is none either. */
	if (attr->is_global && (!port_gid_guid(port, attr->grh.sgid_index) ||
				attr->grh.flow_label >> 20))
		return -EINVAL;
	return 0;
}

int ah_create(struct ibfs_pd *pd, const struct ibv_ah_attr *attr, struct ibfs_ah **out)
{
	struct ibfs_ah *ah;
	int err = ah_check(pd->verbs, attr);

	if (err)
		return err;
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return -ENOMEM;
	err = table_add(&pd->verbs->ahs, ah, &ah->handle);
	if (err) {
		free(ah);
		return err;
	}
	ah->pd = pd;
	ah->attr = *attr;
	pd->refs++;
	*out = ah;
	return 0;
}

int ah_modify(struct ibfs_ah *ah, const struct ibv_ah_attr *attr)
{
	int err = ah_check(ah->pd->verbs, attr);

	if (!err)
		ah->attr = *attr;
	return err;
}

void ah_query(struct ibfs_ah *ah, struct ibv_ah_attr *attr, uint32_t *handle)
{
	*attr = ah->attr;
	*handle = ah->handle;
}

void ah_destroy(struct ibfs_ah *ah)
{
	table_del(&ah->pd->verbs->ahs, ah->handle);
	ah->pd->refs--;
	free(ah);
}

/* The default prefix is a port's too, whatever else it was given. 4.1.1 */
int ah_gid_index(const struct port *port, const uint8_t gid[16])
{
	__be64 half[2];

	memcpy(half, gid, sizeof(half));
	if (be64toh(half[0]) != port->gid_prefix && be64toh(half[0]) != GID_PREFIX_DEFAULT)
		return -EINVAL;
	for (unsigned int i = 0; i < port->node->num_guids; i++) {
		uint64_t guid = port_gid_guid(port, i);

		if (guid && be64toh(half[1]) == guid)
			return i;
	}
	return -EINVAL;
}

/* Sender and receiver change places; the hop limit is as high as it goes. */
int ah_from_wc(struct ibfs_device *dev, unsigned int port_num, const struct ibfs_wc *wc,
	       const struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	const struct port *port = verbs_port(verbs_of(dev), port_num);
	int index;

	if (!port)
		return -EINVAL;
	*attr = (struct ibv_ah_attr){
		.dlid = wc->slid, .sl = wc->sl, .src_path_bits = wc->dlid_path_bits,
		.port_num = port_num,
	};
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	/* A message to a multicast group came to no GID of ours: index 0 answers. */
	index = grh->dgid.raw[0] == 0xff ? 0 : ah_gid_index(port, grh->dgid.raw);
	if (index < 0)
		return index;
	attr->is_global = 1;
	attr->grh = (struct ibv_global_route){
		.dgid = grh->sgid, .sgid_index = index, .hop_limit = 0xff,
		.flow_label = ntohl(grh->version_tclass_flow) & 0xfffff,
		.traffic_class = ntohl(grh->version_tclass_flow) >> 20 & 0xff,
	};
	return 0;
}
