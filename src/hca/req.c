/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester: takes send requests in order and turns them into packets, up
 * to a turn's budget. PSNs, windows, retries and timers. A message that fits
 * goes as one packet of many segments. IBA 9.7.2 to 9.7.5, 9.9.2, 10.7.
 */
#include <endian.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/keep.h"
#include "hca/poll.h"
#include "hca/req.h"

#define PSN_WINDOW (1U << 22)	/* PSNs that may be unanswered: half of what can be told apart */
#define ACK_EVERY 16		/* messages, at most, between two that ask for an ACK */

/* 9.7.6.1.3 */
static ev_tstamp ack_timeout(const struct ibfs_qp *qp)
{
	return 4.096e-6 * (1ULL << qp->attr.timeout);
}

static bool outstanding(const struct requester *req)
{
	return psn_cmp(req->una, req->max_psn) < 0;
}

/* The timer isn't moved at every packet: it finds out when it fires. */
static void req_arm(struct ibfs_qp *qp)
{
	struct requester *req = &qp->req;
	struct ev_loop *loop = qp->verbs->ibfs->loop;

	if (!qp_reliable(qp) || ev_is_active(&req->timer))
		return;
	req->progress = ev_now(loop);
	if (!qp->attr.timeout)
		return;
	ev_timer_set(&req->timer, ack_timeout(qp), 0);
	ev_timer_start(loop, &req->timer);
}

static void req_timeout(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct ibfs_qp *qp = timer->data;
	ev_tstamp due = qp->req.progress + ack_timeout(qp);

	(void)revents;
	if (!outstanding(&qp->req) || !qp->attr.timeout ||
	    (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD))
		return;
	if (due > ev_now(loop) + 1e-6 || qp->req.rnr_wait) {
		ev_tstamp after = due - ev_now(loop);

		ev_timer_set(timer, after > 0 ? after : ack_timeout(qp), 0);
		ev_timer_start(loop, timer);
		return;
	}
	req_retry(qp, qp->req.una, IBV_WC_RETRY_EXC_ERR);
}

static void rnr_timeout(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct ibfs_qp *qp = timer->data;

	(void)revents;
	qp->req.rnr_wait = false;
	qp->req.progress = ev_now(loop);
	qp_kick(qp);
}

void req_init(struct ibfs_qp *qp)
{
	ev_timer_init(&qp->req.timer, req_timeout, 0, 0);
	ev_timer_init(&qp->req.rnr_timer, rnr_timeout, 0, 0);
	qp->req.timer.data = qp;
	qp->req.rnr_timer.data = qp;
}

/* RTR to RTS: the first packet has sq_psn. */
void req_start(struct ibfs_qp *qp)
{
	struct requester *req = &qp->req;

	req->psn = req->una = req->max_psn = qp->attr.sq_psn;
	req->ssn = req->lsn = 0;
	req->credits = false;
	req->no_ackreq = 0;
	req->rd_out = 0;
	req->retries = qp->attr.retry_cnt;
	req->rnr_retries = qp->attr.rnr_retry;
	req->rnr_wait = req->implied_nak = false;
}

static void req_stop(struct ibfs_qp *qp)
{
	struct ev_loop *loop = qp->verbs->ibfs->loop;

	ev_timer_stop(loop, &qp->req.timer);
	ev_timer_stop(loop, &qp->req.rnr_timer);
	qp->req.rnr_wait = false;
	xfer_cancel(qp->req.xfer);
	qp->req.xfer = NULL;
}

/* Is anybody told of the request's end? */
static bool tells(const struct ibfs_qp *qp, const struct swqe *wqe, enum ibv_wc_status status)
{
	return status != IBV_WC_SUCCESS || wqe->wr.wr_cqe || qp->sq_sig_all ||
	       wqe->wr.send_flags & IBV_SEND_SIGNALED;
}

/* To whoever is to be told of it. */
static void complete(struct ibfs_qp *qp, const struct swqe *wqe, enum ibv_wc_status status,
		     uint32_t byte_len)
{
	const struct wr_info *info = wr_info(wqe->wr.opcode);
	struct ibfs_cqe *cqe = wqe->wr.wr_cqe;
	struct ibfs_wc wc;

	if (!tells(qp, wqe, status))
		return;
	wc = (struct ibfs_wc){
		.wr_id = wqe->wr.wr_id, .status = status,
		.opcode = info ? info->wc : IBFS_WC_SEND, .byte_len = byte_len,
		.qp_num = qp->qpn, .port_num = qp->attr.port_num,
	};
	if (cqe) {
		cqe->done(cqe, &wc);
	} else if (cq_push(qp->send_cq, &wc, false) && qp->state != IBV_QPS_ERR) {
		qp_event(qp, IBV_EVENT_QP_FATAL);
		qp_error(qp);
	}
}

void req_retire(struct ibfs_qp *qp, enum ibv_wc_status status, uint32_t byte_len)
{
	struct requester *req = &qp->req;
	struct swqe *wqe = sq_wqe(req, req->head);
	const struct wr_info *info = wr_info(wqe->wr.opcode);

	if (status == IBV_WC_SUCCESS && info && info->wc == IBFS_WC_SEND)
		qp_count(qp, STAT_RDMA_SENDS);
	if (wqe->rd_counted)
		req->rd_out--;
	sq_drop_extra(req, wqe);
	if (wqe->from_ring) {
		req->ring.index++;
		req->ring_fetched--;
		if (tells(qp, wqe, status))
			keep_retiring(qp, wqe->wr.wr_id, info ? info->wc : IBFS_WC_SEND,
				      req->ring.index, qp->send_cq->ring.index);
		ring_publish(&req->ring, false);
	}
	if (req->next == req->head) {
		req->next++;
		req->off = 0;
	}
	req->head++;
	complete(qp, wqe, status, byte_len);
	keep_sent(qp);
}

void req_fail(struct ibfs_qp *qp, enum ibv_wc_status status)
{
	req_retire(qp, status, 0);
	qp_sq_error(qp);
}

void req_flush(struct ibfs_qp *qp, enum ibv_wc_status status)
{
	struct requester *req = &qp->req;

	uint32_t left = sq_waiting(req), n;

	req_stop(qp);
	do {
		while (req->head != req->tail)
			req_retire(qp, status, 0);
		n = sq_fetch(qp, left);
		left -= n;
	} while (n);
	req->rd_out = 0;
}

void req_reset(struct ibfs_qp *qp)
{
	struct requester *req = &qp->req;

	req_stop(qp);
	for (; req->head != req->tail; req->head++) {
		struct swqe *wqe = sq_wqe(req, req->head);

		sq_drop_extra(req, wqe);
		wr_dropped(wqe->wr.wr_cqe);
	}
	req->next = req->head;
	req->off = 0;
	if (req->ring.buf) {
		req->ring.index += ring_used(&req->ring, false);
		req->ring_fetched = 0;
		ring_publish(&req->ring, false);
	}
}

/* The place of a PSN among the requests: what is sent next. */
void req_rewind(struct ibfs_qp *qp, uint32_t psn)
{
	struct requester *req = &qp->req;
	uint32_t i;

	req->psn = psn;
	req->off = 0;
	for (i = req->head; i != req->tail; i++) {
		struct swqe *wqe = sq_wqe(req, i);

		if (wqe->done)
			continue;
		if (!wqe->started)
			break;
		if (psn_cmp(psn, wqe->last_psn) <= 0) {
			if (psn_cmp(psn, wqe->first_psn) > 0)
				req->off = ((psn - wqe->first_psn) & PSN_MASK) * qp->mtu;
			break;
		}
	}
	req->next = i;
}

bool req_retry(struct ibfs_qp *qp, uint32_t psn, enum ibv_wc_status status)
{
	struct requester *req = &qp->req;

	if (!req->retries && !qp_migrate(qp)) {
		qp_count(qp, STAT_RETRY_EXCEEDED);
		req_fail(qp, status);
		return false;
	}
	if (req->retries)
		req->retries--;
	else
		req->retries = qp->attr.retry_cnt;
	qp_count(qp, STAT_COMPLETER_RETRY);
	req->progress = ev_now(qp->verbs->ibfs->loop);
	req_rewind(qp, psn);
	ev_timer_stop(qp->verbs->ibfs->loop, &req->timer);
	req_arm(qp);
	qp_kick(qp);
	return true;
}

void req_rnr(struct ibfs_qp *qp, uint32_t psn, ev_tstamp delay)
{
	struct requester *req = &qp->req;
	struct ev_loop *loop = qp->verbs->ibfs->loop;

	/* Nothing was sent since: the same one, doubled on its way. */
	if (req->rnr_wait)
		return;
	if (!req->rnr_retries) {
		qp_count(qp, STAT_RNR_RETRY_EXCEEDED);
		req_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (qp->attr.rnr_retry != 7)
		req->rnr_retries--;
	req_rewind(qp, psn);
	req->rnr_wait = true;
	ev_timer_stop(loop, &req->rnr_timer);
	ev_timer_set(&req->rnr_timer, delay, 0);
	ev_timer_start(loop, &req->rnr_timer);
}

static bool drained(const struct ibfs_qp *qp)
{
	const struct requester *req = &qp->req;

	return req->head == req->tail || (req->head == req->next && !req->off &&
					  !sq_wqe((struct requester *)req, req->head)->started);
}

bool req_draining(const struct ibfs_qp *qp)
{
	return qp->state == IBV_QPS_SQD && !drained(qp);
}

void req_advance(struct ibfs_qp *qp)
{
	struct requester *req = &qp->req;

	while (req->head != req->tail && sq_wqe(req, req->head)->done)
		req_retire(qp, IBV_WC_SUCCESS, sq_wqe(req, req->head)->length);
	if (qp->state == IBV_QPS_SQD && !req->drained_told && drained(qp)) {
		req->drained_told = true;
		if (qp->attr.en_sqd_async_notify)
			qp_event(qp, IBV_EVENT_SQ_DRAINED);
	}
	if (req->stalled)
		qp_kick(qp);
}

/* Bytes of the message from req->off on, as fragments; 1 while remote memory is asked. */
static int payload_remote(struct ibfs_qp *qp, const struct mem_seg *segs, int num, uint32_t len);

static void payload_ready(struct xfer *xfer, int err)
{
	struct ibfs_qp *qp = xfer->priv;
	struct requester *req = &qp->req;

	if (err) {
		xfer_free(xfer);
		req->xfer = NULL;
		if (req->xfer_wqe != req->next)
			return;
		sq_wqe(req, req->next)->status = IBV_WC_LOC_PROT_ERR;
	} else {
		req->xfer_ready = true;
	}
	qp_kick(qp);
}

static int payload_remote(struct ibfs_qp *qp, const struct mem_seg *segs, int num, uint32_t len)
{
	struct requester *req = &qp->req;
	int err;

	if (req->xfer && req->xfer_wqe == req->next && req->xfer_off == req->off &&
	    req->xfer_len == len)
		return req->xfer_ready ? 0 : 1;
	xfer_cancel(req->xfer);
	req->xfer = xfer_new(segs, num, len);
	if (!req->xfer)
		return -ENOMEM;
	req->xfer->priv = qp;
	req->xfer->done = payload_ready;
	req->xfer_wqe = req->next;
	req->xfer_off = req->off;
	req->xfer_len = len;
	err = xfer_start(req->xfer);
	req->xfer_ready = !err;
	if (err < 0) {
		xfer_free(req->xfer);
		req->xfer = NULL;
	}
	return err;
}

static void add_frag(struct packet *pkt, void *base, uint32_t len)
{
	pkt->frags[pkt->nr_frags++] = (struct packet_frag){ base, len };
	pkt->data_len += len;
}

/* *bounce, when it is set, is freed by the caller after sending. */
static int payload_segs(struct ibfs_qp *qp, const struct mem_seg *segs, int num, uint32_t len,
			struct packet *pkt, void **bounce)
{
	if (segs_remote(segs, num)) {
		int err = payload_remote(qp, segs, num, len);

		if (err)
			return err;
		add_frag(pkt, qp->req.xfer->buf, len);
		return 0;
	}
	if (num > PACKET_FRAGS) {
		*bounce = malloc(len);
		if (!*bounce)
			return -ENOMEM;
		segs_read(segs, num, *bounce);
		add_frag(pkt, *bounce, len);
		return 0;
	}
	for (int i = 0; i < num; i++)
		add_frag(pkt, (uint8_t *)segs[i].mem->base + segs[i].off, segs[i].len);
	return 0;
}

int req_payload(struct ibfs_qp *qp, const struct swqe *wqe, uint32_t *len, struct packet *pkt,
		void **bounce)
{
	struct requester *req = &qp->req;
	struct mem_seg segs[MEM_SEGS];
	int num;

	if (!*len)
		return 0;
	if (wqe->wr.send_flags & IBV_SEND_INLINE) {
		add_frag(pkt, (uint8_t *)wqe->wr.inline_data + req->off, *len);
		return 0;
	}
	/* Memory in too many places goes in smaller packets. */
	for (;;) {
		num = sge_segments(qp->verbs, qp->pd, wqe->wr.sg_list, wqe->wr.num_sge, req->off,
				   *len, 0, segs);
		if (num != -E2BIG || *len <= qp->mtu)
			break;
		*len = (*len / 2 + qp->mtu - 1) / qp->mtu * qp->mtu;
	}
	return num < 0 ? -EFAULT : payload_segs(qp, segs, num, *len, pkt, bounce);
}

static void req_begin(struct ibfs_qp *qp, struct swqe *wqe)
{
	struct requester *req = &qp->req;
	uint32_t packets = wqe->length ? (wqe->length + qp->mtu - 1) / qp->mtu : 1;

	if (wqe->started)
		return;
	if (wr_info(wqe->wr.opcode)->kind == KIND_ATOMIC)
		packets = 1;
	wqe->started = true;
	wqe->first_psn = req->psn;
	wqe->last_psn = (req->psn + packets - 1) & PSN_MASK;
	wqe->ssn = ++req->ssn;
}

static void req_sent(struct ibfs_qp *qp, uint32_t psn)
{
	struct requester *req = &qp->req;

	/* A timer that still runs counts from here: nothing waited before. */
	if (!outstanding(req))
		req->progress = ev_now(qp->verbs->ibfs->loop);
	req->psn = psn & PSN_MASK;
	if (psn_cmp(req->psn, req->max_psn) > 0)
		req->max_psn = req->psn;
}

/* 9.7.7.2: credits are for messages that consume a receive request. */
static bool no_credit(const struct requester *req, const struct swqe *wqe, uint32_t ssn)
{
	if (!req->credits || (int32_t)(ssn - req->lsn) <= 0)
		return false;
	return wr_info(wqe->wr.opcode)->kind == KIND_SEND ||
	       wqe->wr.opcode == IBFS_WR_RDMA_WRITE_WITH_IMM;
}

/*
 * May the ACK that this request needs come with a later one's? Not when it is
 * sent again: on a link that loses much, each message must bring the window on.
 */
static bool ack_can_wait(struct ibfs_qp *qp)
{
	struct requester *req = &qp->req;
	const struct swqe *next = sq_wqe(req, req->next + 1);
	const struct wr_info *info;

	if (req->next + 1 == req->tail || req->no_ackreq + 1 >= ACK_EVERY ||
	    qp->state != IBV_QPS_RTS || psn_cmp(req->psn, req->max_psn) < 0)
		return false;
	if (next->status || next->done || next->wr.send_flags & IBV_SEND_FENCE)
		return false;
	info = wr_info(next->wr.opcode);
	return info && (info->kind == KIND_SEND || info->kind == KIND_WRITE) &&
	       !no_credit(req, next, req->ssn + 1);
}

static uint8_t message_opcode(const struct swqe *wqe, bool first, bool last)
{
	static const uint8_t send[] = { OP_SEND_MIDDLE, OP_SEND_LAST, OP_SEND_FIRST, OP_SEND_ONLY };
	static const uint8_t write[] = { OP_WRITE_MIDDLE, OP_WRITE_LAST, OP_WRITE_FIRST, OP_WRITE_ONLY };
	unsigned int at = first << 1 | last;

	switch (wqe->wr.opcode) {
	case IBFS_WR_RDMA_WRITE:
		return write[at];
	case IBFS_WR_RDMA_WRITE_WITH_IMM:
		return last ? (first ? OP_WRITE_ONLY_IMM : OP_WRITE_LAST_IMM) : write[at];
	case IBFS_WR_SEND_WITH_IMM:
		return last ? (first ? OP_SEND_ONLY_IMM : OP_SEND_LAST_IMM) : send[at];
	case IBFS_WR_SEND_WITH_INV:
		return last ? (first ? OP_SEND_ONLY_INV : OP_SEND_LAST_INV) : send[at];
	default:
		return send[at];
	}
}

static void tx_init(const struct ibfs_qp *qp, const struct swqe *wqe, struct tx *tx)
{
	const struct port *port = verbs_port(qp->verbs, qp->attr.port_num);

	*tx = (struct tx){
		.psn = qp->req.psn, .segs = 1, .xrc_srq = wqe->wr.xrc_srq_num,
		.pkey = port ? port_pkey(port, qp->attr.pkey_index) : 0,
	};
}

/* Stalled until progress, or as long as nothing is outstanding without credit. 9.7.7.2 */
static bool window_closed(const struct ibfs_qp *qp, const struct swqe *wqe)
{
	const struct requester *req = &qp->req;

	if (!outstanding(req))
		return false;
	if (((req->psn - req->una) & PSN_MASK) * (uint64_t)qp->mtu >= VERBS_WINDOW)
		return true;
	return !wqe->started && no_credit(req, wqe, req->ssn + 1);
}

static enum step req_message(struct ibfs_qp *qp, struct swqe *wqe, uint32_t *budget)
{
	struct requester *req = &qp->req;
	bool reliable = qp_reliable(qp), first = !req->off, last;
	uint32_t len = wqe->length - req->off;
	void *bounce = NULL;
	struct packet pkt;
	struct tx tx;
	int err;

	if (reliable && window_closed(qp, wqe))
		return STEP_STALL;
	if (len > VERBS_TURN_BYTES)
		len = VERBS_TURN_BYTES;
	packet_init(&pkt);
	err = req_payload(qp, wqe, &len, &pkt, &bounce);
	if (err > 0)
		return STEP_STALL;
	if (err) {
		wqe->status = memory_status(err);
		return STEP_MORE;
	}
	req_begin(qp, wqe);
	tx_init(qp, wqe, &tx);
	last = req->off + len == wqe->length;
	tx.opcode = qp->transport | message_opcode(wqe, first, last);
	tx.segs = len > qp->mtu ? (len + qp->mtu - 1) / qp->mtu : 1;
	tx.solicited = last && wqe->wr.send_flags & IBV_SEND_SOLICITED;
	tx.reth.va = htobe64(wqe->wr.rdma.remote_addr);
	tx.reth.rkey = htonl(wqe->wr.rdma.rkey);
	tx.reth.len = htonl(wqe->length);
	tx.imm = wqe->wr.ex.imm_data;
	tx.ieth = wqe->wr.ex.invalidate_rkey;
	tx.ack_req = reliable && !(last && ack_can_wait(qp));

	/* The answer may come before net_xmit() returns: be done with the state first. */
	req_sent(qp, req->psn + tx.segs);
	*budget -= len < *budget ? len : *budget;
	if (tx.ack_req)
		req->no_ackreq = 0;
	else
		req->no_ackreq++;
	req->off += len;
	if (last) {
		req->next++;
		req->off = 0;
		wqe->done = !reliable;
	}
	req_arm(qp);
	net_xmit(qp, &pkt, &tx);
	free(bounce);
	if (req->xfer && req->xfer_ready) {
		xfer_free(req->xfer);
		req->xfer = NULL;
	}
	if (!reliable && last)
		req_advance(qp);
	return STEP_MORE;
}

/* May all of the request's own memory be written? */
static bool sges_writable(const struct ibfs_qp *qp, const struct swqe *wqe)
{
	for (unsigned int i = 0; i < wqe->wr.num_sge; i++) {
		const struct ibv_sge *sge = &wqe->wr.sg_list[i];

		if (sge->length && !lkey_check(qp->verbs, qp->pd, sge->lkey, sge->addr, sge->length,
					       IBV_ACCESS_LOCAL_WRITE))
			return false;
	}
	return true;
}

static void tx_atomic(const struct swqe *wqe, struct tx *tx, uint8_t transport)
{
	bool xrc = transport == OP_XRC;

	tx->atomic.va = htobe64(wqe->wr.atomic.remote_addr);
	tx->atomic.rkey = htonl(wqe->wr.atomic.rkey);
	tx->atomic.swap_mask = htobe64(wqe->wr.atomic.swap_mask);
	tx->atomic.compare_mask = htobe64(wqe->wr.atomic.compare_add_mask);
	tx->atomic.swap_add = htobe64(wqe->wr.atomic.swap);
	tx->atomic.compare = htobe64(wqe->wr.atomic.compare_add);
	switch (wqe->wr.opcode) {
	case IBFS_WR_ATOMIC_CMP_AND_SWP:
		tx->opcode = transport | OP_CMP_SWAP;
		break;
	case IBFS_WR_MASKED_ATOMIC_CMP_AND_SWP:
		tx->opcode = OP_VENDOR | (xrc ? OP_XRC_MASKED_CMP_SWAP : OP_MASKED_CMP_SWAP);
		break;
	case IBFS_WR_MASKED_ATOMIC_FETCH_AND_ADD:
		tx->opcode = OP_VENDOR | (xrc ? OP_XRC_MASKED_FETCH_ADD : OP_MASKED_FETCH_ADD);
		tx->atomic.swap_add = htobe64(wqe->wr.atomic.compare_add);
		break;
	default:
		tx->opcode = transport | OP_FETCH_ADD;
		tx->atomic.swap_add = htobe64(wqe->wr.atomic.compare_add);
		tx->atomic.compare = 0;
	}
}

static void tx_atomic_write(struct swqe *wqe, struct tx *tx, struct packet *pkt)
{
	tx->opcode |= OP_ATOMIC_WRITE;
	tx->reth.va = htobe64(wqe->wr.atomic.remote_addr);
	tx->reth.rkey = htonl(wqe->wr.atomic.rkey);
	tx->reth.len = htonl(sizeof(wqe->wr.atomic.swap));
	add_frag(pkt, &wqe->wr.atomic.swap, sizeof(wqe->wr.atomic.swap));
}

/* Does a read's answer leave PSNs free by which old packets are known? 9.7.1 */
static bool psns_left(const struct ibfs_qp *qp, const struct swqe *wqe)
{
	const struct requester *req = &qp->req;
	uint32_t waiting = (req->psn - req->una) & PSN_MASK;

	return wqe->started || !outstanding(req) ||
	       waiting + (wqe->length + qp->mtu - 1) / qp->mtu <= PSN_WINDOW;
}

static enum step req_rd_atomic(struct ibfs_qp *qp, struct swqe *wqe, uint32_t *budget)
{
	struct requester *req = &qp->req;
	uint8_t kind = wr_info(wqe->wr.opcode)->kind;
	struct packet pkt;
	struct tx tx;

	if (!wqe->rd_counted && req->rd_out >= qp->attr.max_rd_atomic) {
		if (!qp->attr.max_rd_atomic) {
			wqe->status = IBV_WC_LOC_QP_OP_ERR;
			return STEP_MORE;
		}
		return STEP_STALL;
	}
	if (!psns_left(qp, wqe))
		return STEP_STALL;
	if (!sges_writable(qp, wqe)) {
		wqe->status = IBV_WC_LOC_PROT_ERR;
		return STEP_MORE;
	}
	req_begin(qp, wqe);
	tx_init(qp, wqe, &tx);
	tx.ack_req = true;
	packet_init(&pkt);
	if (kind == KIND_READ) {
		tx.opcode = qp->transport | OP_READ_REQ;
		tx.reth.va = htobe64(wqe->wr.rdma.remote_addr + req->off);
		tx.reth.rkey = htonl(wqe->wr.rdma.rkey);
		tx.reth.len = htonl(wqe->length - req->off);
	} else if (kind == KIND_ATOMIC_WRITE) {
		tx.opcode = qp->transport;
		tx_atomic_write(wqe, &tx, &pkt);
	} else {
		tx_atomic(wqe, &tx, qp->transport);
	}
	if (!wqe->rd_counted) {
		wqe->rd_counted = true;
		req->rd_out++;
	}
	req_sent(qp, wqe->last_psn + 1);
	*budget -= wqe->length < *budget ? wqe->length : *budget;
	req->no_ackreq = 0;
	req->next++;
	req->off = 0;
	req_arm(qp);
	net_xmit(qp, &pkt, &tx);
	return STEP_MORE;
}

/* 10.6.7, 11.4.1.1: in order, an invalidation when all before it has finished. */
static enum step req_local(struct ibfs_qp *qp, struct swqe *wqe)
{
	struct requester *req = &qp->req;
	int err;

	if (wqe->wr.opcode == IBFS_WR_LOCAL_INV && req->head != req->next)
		return STEP_STALL;
	if (wqe->wr.opcode == IBFS_WR_LOCAL_INV)
		err = mr_invalidate(qp, qp->pd, wqe->wr.ex.invalidate_rkey, false);
	else if (wqe->wr.opcode == IBFS_WR_FAST_REG_MR)
		err = mr_fast_reg(qp, &wqe->wr, wqe->extra);
	else
		err = mw_bind(qp, &wqe->wr);
	if (err) {
		wqe->status = IBV_WC_MW_BIND_ERR;
		return STEP_MORE;
	}
	wqe->done = true;
	req->next++;
	req_advance(qp);
	return STEP_MORE;
}

static enum step req_step(struct ibfs_qp *qp, uint32_t *budget)
{
	struct requester *req = &qp->req;
	const struct wr_info *info;
	struct swqe *wqe;

	if (req->tail - req->next < 2)
		sq_fetch(qp, UINT32_MAX);
	if (req->rnr_wait || req->next == req->tail)
		return STEP_IDLE;
	wqe = sq_wqe(req, req->next);
	if (wqe->done) {
		req->next++;
		return STEP_MORE;
	}
	if (wqe->status) {
		if (req->head != req->next)
			return STEP_STALL;
		req_fail(qp, wqe->status);
		return STEP_IDLE;
	}
	if (!wqe->started && qp->state == IBV_QPS_SQD)
		return STEP_STALL;
	if (!wqe->started && wqe->wr.send_flags & IBV_SEND_FENCE && req->rd_out)
		return STEP_STALL;
	info = wr_info(wqe->wr.opcode);
	if (info->local)
		return req_local(qp, wqe);
	if (qp->type == IBV_QPT_RAW_PACKET)
		return req_raw(qp, wqe, budget);
	if (!qp_connected(qp))
		return req_datagram(qp, wqe, budget);
	return info->rd_atomic ? req_rd_atomic(qp, wqe, budget) : req_message(qp, wqe, budget);
}

/*
 * What stands still needs an answer to what was sent, which nobody may have
 * asked for. Not while it stands because memory is fetched: that goes on.
 */
static bool req_ask_ack(struct ibfs_qp *qp)
{
	struct requester *req = &qp->req;

	if (req->xfer && !req->xfer_ready)
		return false;
	if (!qp_reliable(qp) || !req->no_ackreq || !outstanding(req) || req->psn == req->una)
		return false;
	req->no_ackreq = ACK_EVERY;
	req_rewind(qp, (req->psn - 1) & PSN_MASK);
	return true;
}

/* True: the budget was used up. */
static bool req_turn(struct ibfs_qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t budget = VERBS_TURN_BYTES;
	enum step step;

	for (int n = 0; n < VERBS_TURN_WRS && budget; n++) {
		if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
			return false;
		req->stalled = false;
		step = req_step(qp, &budget);
		if (step == STEP_STALL) {
			req->stalled = true;
			if (req_ask_ack(qp))
				continue;
		}
		if (step != STEP_MORE)
			return false;
	}
	return true;
}

/* The ring need not be rung until there is nothing more to do, or to wait for. */
void req_run(struct ibfs_qp *qp)
{
	bool more = req_turn(qp);
	bool waits = qp->req.stalled && (qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD);

	if (poll_busy(qp, more || waits) || more)
		qp_kick(qp);
}
