/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * To which QP a packet goes, and the checks before its transport sees it:
 * state, transport, port, P_Key, path. IBA 9.6, 10.9.3; path migration by a
 * received packet: 17.2.8.
 */
#include <arpa/inet.h>
#include <string.h>
#include <utlist.h>

#include "hca/mad.h"
#include "hca/verbs.h"

static bool transport_match(const struct ibfs_qp *qp, const struct rx *rx)
{
	uint8_t class = rx->opcode & 0xe0, low = rx->opcode & 31;

	if (rx->raw || qp->type == IBV_QPT_RAW_PACKET)
		return rx->raw && qp->type == IBV_QPT_RAW_PACKET;
	if (class == qp->transport)
		return true;
	if (class != OP_VENDOR || !rx->op->kind)
		return false;
	return (low == OP_MASKED_CMP_SWAP || low == OP_MASKED_FETCH_ADD) ?
	       qp->transport == OP_RC : qp->transport == OP_XRC;
}

/* Did the packet come by this path, as its other end would send it? 9.6.1.5 */
static bool path_match(const struct rx *rx, unsigned int port, const struct ibv_ah_attr *av)
{
	if (rx->port->num != port || ntohs(rx->lrh->slid) != av->dlid)
		return false;
	if (!rx->grh != !av->is_global)
		return false;
	return !rx->grh || !memcmp(rx->grh->sgid, av->grh.dgid.raw, 16);
}

/*
 * 17.2.8.1: in REARM, a packet that doesn't ask for migration arms; in ARMED,
 * one that does and came by the alternate path migrates.
 */
static bool path_check(struct ibfs_qp *qp, const struct rx *rx)
{
	bool migrate = rx->bth->flags & BTH_MIGRATED;

	if (path_match(rx, qp->attr.port_num, &qp->attr.ah_attr)) {
		if (qp->attr.path_mig_state == IBV_MIG_REARM && !migrate)
			qp->attr.path_mig_state = IBV_MIG_ARMED;
		return true;
	}
	if (qp->attr.path_mig_state != IBV_MIG_ARMED || !migrate ||
	    !path_match(rx, qp->attr.alt_port_num, &qp->attr.alt_ah_attr))
		return false;
	return qp_migrate(qp);
}

static bool pkey_check(const struct ibfs_qp *qp, const struct rx *rx)
{
	uint16_t pkey = ntohs(rx->bth->pkey);

	if (qp->type == IBFS_QPT_SMI || rx->raw)
		return true;
	if (qp->type == IBFS_QPT_GSI)
		return port_find_pkey(rx->port, pkey) >= 0;
	return pkey_match(pkey, port_pkey(rx->port, qp->attr.pkey_index));
}

bool qp_receives(const struct ibfs_qp *qp)
{
	return qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS ||
	       qp->state == IBV_QPS_SQD || qp->state == IBV_QPS_SQE;
}

void qp_recv(struct ibfs_qp *qp, struct rx *rx)
{
	if (!qp_receives(qp) || !transport_match(qp, rx))
		return;
	if (qp_connected(qp) ? !path_check(qp, rx) : rx->port->num != qp->attr.port_num)
		return;
	if (!pkey_check(qp, rx)) {
		sma_bad_pkey(rx->port, rx->pkt);
		return;
	}
	if (qp_wait(qp, rx))
		return;
	if (qp->state == IBV_QPS_RTR && !qp->comm_est) {
		qp->comm_est = true;
		qp_event(qp, IBV_EVENT_COMM_EST);
	}
	if (!qp_connected(qp))
		resp_ud(qp, rx);
	else if (rx->op->kind >= KIND_READ_RESP)
		comp_recv(qp, rx);
	else if (qp->transport == OP_UC)
		resp_uc(qp, rx);
	else
		resp_recv(qp, rx);
}

/* Each QP gets the packet as it came; a QP may block what it sent itself. */
static void mcast_recv(struct verbs *verbs, struct rx *rx)
{
	struct mcast_group *group = rx->grh ? mcast_find(verbs, rx->grh->dgid) : NULL;
	struct mcast_member *member, *tmp;
	bool own = port_has_lid(rx->port, ntohs(rx->lrh->slid));

	if (!group || rx->dqpn != QPN_MASK)
		return;
	DL_FOREACH_SAFE(group->members, member, tmp) {
		struct rx copy = *rx;

		if (own && member->qp->qpn == rx->sqpn &&
		    member->qp->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)
			continue;
		qp_recv(member->qp, &copy);
	}
}

/* Versions that there are, and a GID of this port's or a group's. 9.6.1.1, 9.6.1.2 */
static bool headers_ok(const struct rx *rx)
{
	if (rx->bth->flags & BTH_TVER)
		return false;
	if (!rx->grh)
		return true;
	if (ntohl(rx->grh->ver_tclass_flow) >> 28 != GRH_VERSION || rx->grh->nxthdr != GRH_NXTHDR_IBA)
		return false;
	return rx->grh->dgid[0] == 0xff || ah_gid_index(rx->port, rx->grh->dgid) >= 0;
}

void net_recv(struct hca *hca, struct port *port, struct packet *pkt)
{
	struct verbs *verbs = hca->engine_priv;
	struct ibfs_qp *qp;
	struct rx rx;

	if (!rx_parse(&rx, port, pkt))
		return;
	stat_add(verbs, port->num, STAT_RCVD_PKTS, rx.segs);
	if (rx.raw) {
		raw_recv(verbs, &rx);
		return;
	}
	if (!headers_ok(&rx))
		return;
	if (rx.multicast) {
		mcast_recv(verbs, &rx);
		return;
	}
	qp = ids_get(&verbs->qps, rx.dqpn);
	if (qp)
		qp_recv(qp, &rx);
}
