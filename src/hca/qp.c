/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: creation and end, events, their task (one turn of answering and
 * sending), posting and rings. IBA 10.2.4, 11.2.5; XRC targets shared by
 * openers: A14.5.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "hca/keep.h"
#include "hca/poll.h"
#include "hca/qp.h"
#include "hca/req.h"

void qp_kick(struct ibfs_qp *qp)
{
	task_queue(qp->verbs->ibfs->tasks, &qp->task);
}

void qp_event(struct ibfs_qp *qp, enum ibv_event_type event)
{
	struct qp_opener *opener;

	if (qp->client && qp->client->event)
		qp->client->event(qp->client, event);
	DL_FOREACH(qp->openers, opener)
		if (opener->client && opener->client->event)
			opener->client->event(opener->client, event);
}

void qp_error(struct ibfs_qp *qp)
{
	qp->state = IBV_QPS_ERR;
	qp_kick(qp);
}

void qp_sq_error(struct ibfs_qp *qp)
{
	if (qp->state == IBV_QPS_ERR)
		return;
	if (qp_reliable(qp)) {
		qp_error(qp);
		return;
	}
	qp->state = IBV_QPS_SQE;
	qp_kick(qp);
}

/* 17.2.8: to the other path, when both ends armed it and its port is up. */
bool qp_migrate(struct ibfs_qp *qp)
{
	struct ibv_qp_attr *attr = &qp->attr;
	const struct port *port = verbs_port(qp->verbs, attr->alt_port_num);

	if (attr->path_mig_state != IBV_MIG_ARMED)
		return false;
	attr->path_mig_state = IBV_MIG_MIGRATED;
	if (!port || port->state != PORT_ACTIVE) {
		qp_event(qp, IBV_EVENT_PATH_MIG_ERR);
		return false;
	}
	attr->ah_attr = attr->alt_ah_attr;
	attr->port_num = attr->alt_port_num;
	attr->pkey_index = attr->alt_pkey_index;
	attr->timeout = attr->alt_timeout;
	qp_event(qp, IBV_EVENT_PATH_MIG);
	return true;
}

static void qp_flush(struct ibfs_qp *qp)
{
	req_flush(qp, IBV_WC_WR_FLUSH_ERR);
	resp_flush(qp, IBV_WC_WR_FLUSH_ERR);
	if ((qp->srq || qp->transport == OP_XRC) && !qp->last_wqe_told) {
		qp->last_wqe_told = true;
		qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
	}
}

/*
 * Who posts has to ask from here on, and is refused; what was posted by others is in
 * the ring when it is flushed.
 */
void qp_lost(struct ibfs_qp *qp)
{
	qp->state = IBV_QPS_ERR;
	qp->lost = true;
	poll_stop(qp);
	poll_tell(qp);
	req_flush(qp, IBV_WC_FATAL_ERR);
	resp_flush(qp, IBV_WC_FATAL_ERR);
}

void qp_turn(struct ibfs_qp *qp)
{
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		poll_busy(qp, false);
	if (qp->state == IBV_QPS_ERR) {
		qp_flush(qp);
		return;
	}
	if (qp->state == IBV_QPS_SQE) {
		req_flush(qp, IBV_WC_WR_FLUSH_ERR);
		return;
	}
	if (resp_run(qp))
		qp_kick(qp);
	req_run(qp);
}

static void qp_task(struct task *task)
{
	qp_turn((struct ibfs_qp *)((char *)task - offsetof(struct ibfs_qp, task)));
}

static bool cap_ok(const struct ibv_qp_cap *cap)
{
	return cap->max_send_wr <= (uint32_t)verbs_limits.max_qp_wr &&
	       cap->max_recv_wr <= (uint32_t)verbs_limits.max_qp_wr &&
	       cap->max_send_sge <= VERBS_MAX_SGE && cap->max_recv_sge <= VERBS_MAX_SGE &&
	       cap->max_inline_data <= VERBS_MAX_INLINE;
}

static bool init_own(const struct verbs *verbs, const struct ibfs_qp_init *init)
{
	return backend_own((!init->pd || init->pd->verbs == verbs) &&
			   (!init->xrcd || init->xrcd->verbs == verbs) &&
			   (!init->send_cq || init->send_cq->verbs == verbs) &&
			   (!init->recv_cq || init->recv_cq->verbs == verbs) &&
			   (!init->srq || init->srq->verbs == verbs));
}

/* Who needs what: A14.5 for XRC, 11.2.5.1 for the rest. */
static int init_check(const struct verbs *verbs, const struct ibfs_qp_init *init)
{
	bool tgt = init->type == IBV_QPT_XRC_RECV, ini = init->type == IBV_QPT_XRC_SEND;

	if (!init_own(verbs, init))
		return -EINVAL;
	if (init->type == IBFS_QPT_RAW_IPV6 || init->type == IBFS_QPT_RAW_ETHERTYPE ||
	    !qp_type_name(init->type))
		return -EOPNOTSUPP;
	if (init->type <= IBFS_QPT_GSI && !verbs_port(verbs, init->port_num))
		return -EINVAL;
	if (!cap_ok(&init->cap))
		return -EINVAL;
	if (tgt ? !init->xrcd : !init->pd || !init->send_cq)
		return -EINVAL;
	if (!tgt && !ini && !init->recv_cq)
		return -EINVAL;
	if (init->srq && init->type != IBV_QPT_RC && init->type != IBV_QPT_UC &&
	    init->type != IBV_QPT_UD)
		return -EINVAL;
	if (init->srq && init->srq->xrc)
		return -EINVAL;
	if (init->create_flags & ~(unsigned int)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB ||
	    (init->create_flags && init->type != IBV_QPT_UD))
		return -EINVAL;
	return 0;
}

static uint8_t type_transport(unsigned int type)
{
	switch (type) {
	case IBV_QPT_RC:
		return OP_RC;
	case IBV_QPT_UC:
		return OP_UC;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return OP_XRC;
	default:
		return OP_UD;
	}
}

/* Counted as users of what the QP refers to, or no longer. */
static void qp_refs(struct ibfs_qp *qp, int n)
{
	if (qp->pd)
		qp->pd->refs += n;
	if (qp->send_cq)
		qp->send_cq->refs += n;
	if (qp->recv_cq)
		qp->recv_cq->refs += n;
	if (qp->srq)
		qp->srq->refs += n;
	if (qp->xrcd)
		qp->xrcd->refs += n;
}

static void qp_reset_attr(struct ibfs_qp *qp)
{
	struct ibv_qp_cap cap = qp->attr.cap;
	uint8_t port = qp_special(qp) ? qp->attr.port_num : 0;

	qp->attr = (struct ibv_qp_attr){ .cap = cap, .path_mig_state = IBV_MIG_MIGRATED,
					 .port_num = port };
	qp->mtu = 4096;
	qp->comm_est = qp->last_wqe_told = false;
}

static int qp_queues(struct ibfs_qp *qp)
{
	const struct ibv_qp_cap *cap = &qp->attr.cap;
	bool sends = qp->type != IBV_QPT_XRC_RECV;
	bool receives = qp->transport != OP_XRC && !qp->srq;
	int err = 0;

	if (sends)
		err = sq_init(&qp->req, cap, qp->type == IBV_QPT_UD || qp_special(qp), &qp->bill);
	if (err || !receives)
		return err;
	err = rq_init(&qp->rq, cap->max_recv_wr, cap->max_recv_sge, &qp->bill);
	if (err)
		sq_free(&qp->req);
	return err;
}

/* Its number, and what finds it by something else than that. */
static int qp_name(struct ibfs_qp *qp, unsigned int port)
{
	int err;

	if (qp_special(qp))
		return special_claim(qp, port);
	err = ids_add(&qp->verbs->qps, qp, &qp->qpn);
	if (!err && qp->type == IBV_QPT_RAW_PACKET)
		raw_add(qp);
	return err;
}

static void qp_unname(struct ibfs_qp *qp)
{
	if (qp->type == IBV_QPT_RAW_PACKET)
		raw_del(qp);
	if (qp_special(qp))
		special_release(qp);
	else
		ids_del(&qp->verbs->qps, qp->qpn);
}

int qp_create(struct ibfs_device *dev, const struct ibfs_qp_init *init, struct verbs_client *client,
	      struct ibfs_qp **out)
{
	struct verbs *verbs = verbs_of(dev);
	struct ibfs_qp *qp;
	int err = init_check(verbs, init);

	if (err)
		return err;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->verbs = verbs;
	qp->type = init->type;
	qp->transport = type_transport(init->type);
	qp->sq_sig_all = init->sq_sig_all;
	qp->create_flags = init->create_flags;
	qp->pd = init->type == IBV_QPT_XRC_RECV ? NULL : init->pd;
	qp->send_cq = init->type == IBV_QPT_XRC_RECV ? NULL : init->send_cq;
	qp->recv_cq = qp->transport == OP_XRC ? NULL : init->recv_cq;
	qp->srq = init->srq;
	qp->xrcd = init->type == IBV_QPT_XRC_RECV ? init->xrcd : NULL;
	qp->client = qp->bill.client = client;
	qp->attr.cap = init->cap;
	if (qp->srq || qp->transport == OP_XRC)
		qp->attr.cap.max_recv_wr = qp->attr.cap.max_recv_sge = 0;
	if (init->type == IBV_QPT_XRC_RECV)
		qp->attr.cap = (struct ibv_qp_cap){ 0 };
	qp->req.ring.fd = qp->rq.ring.fd = -1;
	qp->task.fn = qp_task;
	qp_reset_attr(qp);
	req_init(qp);
	err = qp_queues(qp);
	if (err)
		goto free;
	err = qp_name(qp, init->port_num);
	if (err)
		goto queues;
	qp_refs(qp, 1);
	*out = qp;
	return 0;
queues:
	sq_free(&qp->req);
	rq_free(&qp->rq);
free:
	free(qp);
	return err;
}

int qp_open(struct ibfs_xrcd *xrcd, uint32_t qp_num, struct verbs_client *client, struct ibfs_qp **out)
{
	struct ibfs_qp *qp = ids_get(&xrcd->verbs->qps, qp_num);
	struct qp_opener *opener;

	if (!qp || qp->type != IBV_QPT_XRC_RECV || qp->xrcd != xrcd)
		return -EINVAL;
	opener = calloc(1, sizeof(*opener));
	if (!opener)
		return -ENOMEM;
	opener->client = client;
	DL_APPEND(qp->openers, opener);
	*out = qp;
	return 0;
}

void qp_reset(struct ibfs_qp *qp)
{
	task_cancel(qp->verbs->ibfs->tasks, &qp->task);
	poll_stop(qp);
	poll_tell(qp);
	if (qp->req.wqe)
		req_reset(qp);
	resp_reset(qp);
	while (qp->windows)
		mw_unbind(qp->windows);
	qp_reset_attr(qp);
}

/* True: another who opened it keeps it. */
static bool qp_close(struct ibfs_qp *qp, struct verbs_client *client)
{
	struct qp_opener *opener;

	if (client == qp->client) {
		bill_settle(&qp->bill);
		qp->client = NULL;
		return qp->openers;
	}
	DL_SEARCH_SCALAR(qp->openers, opener, client, client);
	if (opener) {
		DL_DELETE(qp->openers, opener);
		free(opener);
	}
	return qp->client || qp->openers;
}

void qp_free(struct ibfs_qp *qp)
{
	struct qp_opener *opener, *tmp;

	DL_FOREACH_SAFE(qp->openers, opener, tmp)
		free(opener);
	qp->state = IBV_QPS_RESET;
	qp_reset(qp);
	qp_unname(qp);
	qp_unkeep(qp);
	qp_refs(qp, -1);
	sq_free(&qp->req);
	rq_free(&qp->rq);
	free(qp->resp.wqe.sges);
	free(qp->resp.res);
	bill_settle(&qp->bill);
	free(qp);
}

int qp_destroy(struct ibfs_qp *qp, struct verbs_client *client)
{
	if (qp->mcast)
		return -EBUSY;
	if (qp->type != IBV_QPT_XRC_RECV || !qp_close(qp, client))
		qp_free(qp);
	return 0;
}

bool qp_takes(const struct ibfs_qp *qp)
{
	return qp->req.wqe && !qp->lost && qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_INIT &&
	       qp->state != IBV_QPS_RTR;
}

int qp_post_send(struct ibfs_qp *qp, const struct ibfs_wr *wr)
{
	int err;

	if (!qp_takes(qp) || !qp->attr.cap.max_send_wr)
		return -EINVAL;
	err = sq_check(qp, wr);
	if (!err)
		err = sq_post(qp, wr, false);
	if (!err)
		qp_kick(qp);
	return err;
}

int qp_post_recv(struct ibfs_qp *qp, const struct ibfs_recv_wr *wr)
{
	int err;

	if (!qp->rq.wqe || qp->state == IBV_QPS_RESET)
		return -EINVAL;
	err = rq_post(&qp->rq, wr);
	if (!err && qp->state == IBV_QPS_ERR)
		qp_kick(qp);
	return err;
}

int qp_ring(struct ibfs_qp *qp, bool send, struct ibfs_ring *ring)
{
	int err = -EINVAL;

	if (send && qp->req.wqe)
		err = sq_share(qp, ring);
	else if (!send && qp->rq.wqe)
		err = rq_share(&qp->rq, ring);
	if (!err)
		qp_keep(qp);
	return err;
}

int qp_doorbell(struct ibfs_qp *qp)
{
	if (!qp_takes(qp))
		return -EINVAL;
	poll_rung(qp);
	qp_kick(qp);
	return 0;
}
