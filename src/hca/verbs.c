/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs engine's life, its limits and its table of operations.
 */
#include <errno.h>
#include <stdlib.h>

#include "hca/poll.h"
#include "hca/qp.h"

/* What the engine can do at most; enforced by those who make objects. */
const struct ibv_device_attr verbs_limits = {
	.max_mr_size = 1ULL << 40,
	.max_qp = 1 << 18,
	.max_qp_wr = 16384,
	.device_cap_flags = IBV_DEVICE_AUTO_PATH_MIG | IBV_DEVICE_CHANGE_PHY_PORT |
			    IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_CURR_QP_STATE_MOD |
			    IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
			    IBV_DEVICE_N_NOTIFY_CQ | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_UD_IP_CSUM |
			    IBV_DEVICE_XRC | IBV_DEVICE_MEM_MGT_EXTENSIONS |
			    IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBFS_DEVICE_UD_TSO |
			    IBFS_DEVICE_BLOCK_MULTICAST_LOOPBACK,
	.max_sge = VERBS_MAX_SGE,
	.max_cq = 1 << 18,
	.max_cqe = 1 << 20,
	.max_mr = 1 << 20,
	.max_pd = 1 << 18,
	.max_qp_rd_atom = 128,
	.max_res_rd_atom = 128 << 18,
	.max_qp_init_rd_atom = 128,
	.atomic_cap = IBV_ATOMIC_HCA,
	.max_mw = 1 << 20,
	.max_mcast_grp = 8192,
	.max_mcast_qp_attach = 1024,
	.max_total_mcast_qp_attach = 1 << 16,
	.max_ah = 1 << 20,
	.max_srq = 1 << 16,
	.max_srq_wr = 16384,
	.max_srq_sge = VERBS_MAX_SGE,
	.local_ca_ack_delay = 15,
};

const struct verbs_ops soft_verbs_ops = {
	.masked_atomic_cap = IBV_ATOMIC_HCA, .max_fast_reg_page_list_len = VERBS_MAX_PAGES,
	.alloc_pd = pd_alloc, .dealloc_pd = pd_dealloc,
	.alloc_xrcd = xrcd_alloc, .dealloc_xrcd = xrcd_dealloc,
	.reg_mr = mr_reg, .rereg_mr = mr_rereg, .query_mr = mr_query, .dereg_mr = mr_dereg,
	.alloc_mw = mw_alloc, .query_mw = mw_query, .dealloc_mw = mw_dealloc,
	.create_cq = cq_create, .resize_cq = cq_resize, .modify_cq = cq_modify,
	.query_cq = cq_query, .cq_busy = cq_busy, .destroy_cq = cq_destroy, .poll_cq = cq_poll, .peek_cq = cq_peek,
	.req_notify_cq = cq_req_notify, .req_ncomp_notif = cq_req_ncomp, .cq_ring = cq_ring,
	.create_srq = srq_create, .modify_srq = srq_modify, .query_srq = srq_query,
	.destroy_srq = srq_destroy, .post_srq_recv = srq_post, .srq_ring = srq_ring,
	.create_ah = ah_create, .modify_ah = ah_modify, .query_ah = ah_query,
	.destroy_ah = ah_destroy, .init_ah_from_wc = ah_from_wc,
	.create_qp = qp_create, .open_qp = qp_open, .modify_qp = qp_modify, .query_qp = qp_query,
	.destroy_qp = qp_destroy, .post_send = qp_post_send, .post_recv = qp_post_recv,
	.qp_ring = qp_ring, .doorbell = qp_doorbell,
	.attach_mcast = mcast_attach, .detach_mcast = mcast_detach,
};

static const struct ibv_odp_caps odp_caps = {
	.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT,
	.per_transport_caps = {
		.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
			       IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC |
			       IBV_ODP_SUPPORT_SRQ_RECV,
		.uc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
			       IBV_ODP_SUPPORT_SRQ_RECV,
		.ud_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV,
	},
};

static void verbs_query_device(struct hca *hca, struct ibv_device_attr_ex *attr)
{
	const struct ibv_device_attr *max = &verbs_limits;
	struct ibv_device_attr *a = &attr->orig_attr;

	(void)hca;
	a->max_mr_size = max->max_mr_size;
	a->max_qp = max->max_qp;
	a->max_qp_wr = max->max_qp_wr;
	a->device_cap_flags |= max->device_cap_flags;
	a->max_sge = max->max_sge;
	a->max_cq = max->max_cq;
	a->max_cqe = max->max_cqe;
	a->max_mr = max->max_mr;
	a->max_pd = max->max_pd;
	a->max_qp_rd_atom = max->max_qp_rd_atom;
	a->max_res_rd_atom = max->max_res_rd_atom;
	a->max_qp_init_rd_atom = max->max_qp_init_rd_atom;
	a->atomic_cap = max->atomic_cap;
	a->max_mw = max->max_mw;
	a->max_mcast_grp = max->max_mcast_grp;
	a->max_mcast_qp_attach = max->max_mcast_qp_attach;
	a->max_total_mcast_qp_attach = max->max_total_mcast_qp_attach;
	a->max_ah = max->max_ah;
	a->max_srq = max->max_srq;
	a->max_srq_wr = max->max_srq_wr;
	a->max_srq_sge = max->max_srq_sge;
	a->local_ca_ack_delay = max->local_ca_ack_delay;
	attr->device_cap_flags_ex = a->device_cap_flags | IBFS_DEVICE_ATOMIC_WRITE;
	attr->odp_caps = odp_caps;
	attr->xrc_odp_caps = odp_caps.per_transport_caps.rc_odp_caps;
	attr->tso_caps.max_tso = 65536;
	attr->tso_caps.supported_qpts = 1 << IBV_QPT_UD;
	attr->cq_mod_caps.max_cq_count = UINT16_MAX;
	attr->cq_mod_caps.max_cq_period = UINT16_MAX;
}

static void *table_next(const struct table *table, uint32_t *at)
{
	for (; *at < table->size; (*at)++)
		if (table->slot[*at])
			return table->slot[(*at)++];
	return NULL;
}

static void qp_end(struct ibfs_qp *qp)
{
	qp->client = NULL;
	mcast_detach_all(qp);
	qp_free(qp);
}

static void verbs_lost(struct hca *hca)
{
	struct verbs *verbs = hca->engine_priv;
	struct ibfs_srq *srq;
	struct ibfs_qp *qp;

	for (uint32_t at = 0; at <= hca->dev.num_ports; at++)
		for (int i = 0; i < 2; i++)
			if (verbs->special[at][i])
				qp_lost(verbs->special[at][i]);
	for (uint32_t at = 0; (qp = ids_next(&verbs->qps, &at));)
		qp_lost(qp);
	for (uint32_t at = 0; (srq = table_next(&verbs->srqs, &at));)
		srq_lost(srq);
}

/* What a client left is destroyed in reverse order of dependence, and nobody told. */
static void verbs_teardown(struct verbs *verbs)
{
	void *obj;
	uint32_t at;

	for (at = 0; at <= verbs->hca->dev.num_ports; at++)
		for (int i = 0; i < 2; i++)
			if (verbs->special[at][i])
				qp_end(verbs->special[at][i]);
	for (at = 0; (obj = ids_next(&verbs->qps, &at));)
		qp_end(obj);
	for (at = 0; (obj = table_next(&verbs->srqs, &at));)
		srq_destroy(obj);
	for (at = 0; (obj = table_next(&verbs->cqs, &at));)
		cq_destroy(obj);
	for (at = 0; (obj = table_next(&verbs->ahs, &at));)
		ah_destroy(obj);
	/* Windows before the regions that they are bound to. */
	for (at = 0; (obj = ids_next(&verbs->keys, &at));)
		if (((struct key *)obj)->kind == KEY_MW)
			mw_dealloc(obj);
	for (at = 0; (obj = ids_next(&verbs->keys, &at));)
		mr_dereg(obj);
	for (at = 0; (obj = table_next(&verbs->xrcds, &at));)
		xrcd_dealloc(obj);
	for (at = 0; (obj = table_next(&verbs->pds, &at));)
		pd_dealloc(obj);
}

static void verbs_free(struct hca *hca)
{
	struct verbs *verbs = hca->engine_priv;
	struct table *tables[] = { &verbs->pds, &verbs->xrcds, &verbs->cqs, &verbs->srqs,
				   &verbs->ahs };

	verbs_teardown(verbs);
	poller_put(verbs->ibfs);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		free(tables[i]->slot);
	free(verbs->keys.slot);
	free(verbs->qps.slot);
	free(verbs->special);
	free(verbs);
	hca->engine = NULL;
	hca->engine_priv = NULL;
}

const struct hca_engine verbs_engine = {
	.recv = net_recv,
	.mad = special_mad,
	.query_device = verbs_query_device,
	.lost = verbs_lost,
	.free = verbs_free,
};

int verbs_start(struct hca *hca)
{
	const struct ibv_device_attr *max = &verbs_limits;
	struct verbs *verbs = calloc(1, sizeof(*verbs));

	if (!verbs)
		return -ENOMEM;
	verbs->special = calloc(hca->dev.num_ports + 1, sizeof(*verbs->special));
	if (!verbs->special || poller_get(hca->node->fabric->ibfs)) {
		free(verbs->special);
		free(verbs);
		return -ENOMEM;
	}
	verbs->hca = hca;
	verbs->node = hca->node;
	verbs->fabric = hca->node->fabric;
	verbs->ibfs = verbs->fabric->ibfs;
	verbs->pds = (struct table){ .first = 1, .max = max->max_pd };
	verbs->xrcds = (struct table){ .first = 1, .max = max->max_pd };
	verbs->keys.max = max->max_mr + max->max_mw;
	verbs->cqs = (struct table){ .first = 1, .max = max->max_cq };
	verbs->srqs = (struct table){ .first = 1, .max = max->max_srq };
	verbs->ahs = (struct table){ .first = 1, .max = max->max_ah };
	verbs->qps.max = max->max_qp;
	hca->engine = &verbs_engine;
	hca->engine_priv = verbs;
	return 0;
}
