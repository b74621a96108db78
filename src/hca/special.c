/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP0 and QP1 as queue pairs of types SMI and GSI: one of each a port, datagram
 * QPs that have their number, Q_Key and VL by what they are. They stand beside
 * the MAD agents: what the node's own agents (SMA, PMA, ...) don't take goes to
 * both. IBA 10.2.4.4, 11.2.5.1 (special QPs), 13.5, 14.2.
 */
#include <errno.h>

#include "hca/mad.h"
#include "hca/verbs.h"

int special_claim(struct ibfs_qp *qp, unsigned int port)
{
	struct ibfs_qp **place = &qp->verbs->special[port][qp->type];

	if (*place)
		return -EBUSY;
	*place = qp;
	qp->qpn = qp->type;
	qp->attr.port_num = port;
	return 0;
}

void special_release(struct ibfs_qp *qp)
{
	qp->verbs->special[qp->attr.port_num][qp->type] = NULL;
}

bool special_mad(struct hca *hca, struct port *port, unsigned int qpn, struct packet *pkt)
{
	struct verbs *verbs = hca->engine_priv;
	struct ibfs_qp *qp = verbs->special[port->num][qpn];
	struct rx rx;

	if (!qp || !qp_receives(qp) || !rx_parse(&rx, port, pkt))
		return false;
	qp_recv(qp, &rx);
	return true;
}

/* Directed routes begin here as they do for a MAD agent; nothing of it is told when they can't. */
int special_xmit(struct port *port, struct packet *pkt)
{
	struct lrh *lrh = packet_lrh(pkt);

	if (lrh->dlid == htobe16(LID_PERMISSIVE))
		lrh->slid = htobe16(LID_PERMISSIVE);
	return smi_send(port, pkt);
}
