/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The completer: takes ACKs, NAKs, read responses and atomic results, and
 * completes send requests in order. IBA 9.7.5, 9.7.7, 9.9.2.4.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "hca/req.h"

/* RNR NAK timer codes, 9.7.5.2.8 table 45, in units of 10 us */
static const uint32_t rnr_delay[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
	1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

/* Credit codes of an AETH, 9.7.5.1.2 table 46: 0 1 2 3 4 6 8 12 ... */
static uint32_t credit_decode(unsigned int code)
{
	if (code < 2)
		return code;
	return code & 1 ? 3U << ((code - 3) / 2) : 1U << (code / 2);
}

static void comp_progress(struct ibfs_qp *qp, uint32_t una)
{
	struct requester *req = &qp->req;

	req->una = una & PSN_MASK;
	req->progress = ev_now(qp->verbs->ibfs->loop);
	req->retries = qp->attr.retry_cnt;
	req->rnr_retries = qp->attr.rnr_retry;
	req->implied_nak = false;
	/* It was sent already when a retry began: no need to do so again. */
	if (psn_cmp(req->una, req->psn) > 0)
		req_rewind(qp, req->una);
}

/*
 * All up to psn has arrived. A read or atomic among them that has no answer yet
 * lost it: it is asked again (9.9.2.4.2, implied NAK). False: that, or failure.
 */
static bool comp_ack(struct ibfs_qp *qp, uint32_t psn)
{
	struct requester *req = &qp->req;

	while (req->head != req->tail) {
		struct swqe *wqe = sq_wqe(req, req->head);

		if (wqe->done) {
			req_retire(qp, IBV_WC_SUCCESS, wqe->length);
			continue;
		}
		if (!wqe->started || psn_cmp(psn, wqe->first_psn) < 0)
			break;
		if (wr_info(wqe->wr.opcode)->rd_atomic) {
			if (psn_cmp(req->una, wqe->first_psn) < 0)
				comp_progress(qp, wqe->first_psn);
			if (psn_cmp(psn, req->una) < 0)
				break;
			if (!req->implied_nak && req_retry(qp, req->una, IBV_WC_RETRY_EXC_ERR))
				req->implied_nak = true;
			return false;
		}
		if (psn_cmp(psn, wqe->last_psn) < 0)
			break;
		comp_progress(qp, wqe->last_psn + 1);
		req_retire(qp, IBV_WC_SUCCESS, wqe->length);
	}
	if (psn_cmp(psn, req->una) >= 0)
		comp_progress(qp, psn + 1);
	return true;
}

static enum ibv_wc_status nak_status(unsigned int syndrome)
{
	switch (syndrome) {
	case NAK_INVALID:
		return IBV_WC_REM_INV_REQ_ERR;
	case NAK_ACCESS:
		return IBV_WC_REM_ACCESS_ERR;
	case NAK_OPERATION:
		return IBV_WC_REM_OP_ERR;
	default:
		return IBV_WC_BAD_RESP_ERR;
	}
}

static uint32_t rx_aeth(const struct rx *rx)
{
	__be32 aeth;

	memcpy(&aeth, rx_header(rx, HDR_AETH), 4);
	return ntohl(aeth);
}

static void comp_credits(struct ibfs_qp *qp, uint32_t aeth)
{
	unsigned int code = aeth >> 24 & 31;

	qp->req.credits = code != AETH_NO_CREDITS;
	/* The MSN has 24 bits of our count: it is at most as far as that is. */
	if (qp->req.credits) {
		uint32_t behind = (qp->req.ssn - aeth) & 0xffffff;

		qp->req.lsn = qp->req.ssn - behind + credit_decode(code);
	}
}

static void comp_nak(struct ibfs_qp *qp, uint32_t psn, unsigned int syndrome)
{
	struct requester *req = &qp->req;

	if (!comp_ack(qp, (psn - 1) & PSN_MASK))
		return;
	if (req->head == req->tail || !sq_wqe(req, req->head)->started)
		return;
	if ((syndrome & AETH_TYPE) == AETH_RNR) {
		qp_count(qp, STAT_RCVD_RNR);
		req_rnr(qp, psn, rnr_delay[syndrome & 31] * 10e-6);
	} else if (syndrome == NAK_PSN) {
		qp_count(qp, STAT_RCVD_SEQ_ERR);
		/* Nothing was sent since it began anew there: the same one, doubled on its way. */
		if (req->psn != psn)
			req_retry(qp, psn, IBV_WC_RETRY_EXC_ERR);
	} else {
		req_fail(qp, nak_status(syndrome));
	}
}

static void comp_ack_packet(struct ibfs_qp *qp, const struct rx *rx)
{
	uint32_t aeth = rx_aeth(rx);
	unsigned int syndrome = aeth >> 24;

	if ((syndrome & AETH_TYPE) == AETH_ACK) {
		comp_credits(qp, aeth);
		comp_ack(qp, rx->psn);
	} else {
		comp_nak(qp, rx->psn, syndrome);
	}
}

/* The read that this response belongs to, when it is the one that is due. */
static struct swqe *comp_expect(struct ibfs_qp *qp, const struct rx *rx, bool atomic)
{
	struct requester *req = &qp->req;
	struct swqe *wqe;
	uint8_t kind;

	if (!comp_ack(qp, (rx->psn - 1) & PSN_MASK))
		return NULL;
	if (req->head == req->tail)
		return NULL;
	wqe = sq_wqe(req, req->head);
	if (!wqe->started || psn_cmp(rx->psn, wqe->first_psn) < 0)
		return NULL;
	/* An atomic write is answered as a read of nothing. */
	kind = wr_info(wqe->wr.opcode)->kind;
	if (kind == KIND_ATOMIC_WRITE)
		kind = KIND_READ;
	if (kind == (atomic ? KIND_ATOMIC : KIND_READ) && psn_cmp(rx->psn, wqe->last_psn) <= 0)
		return wqe;
	req_fail(qp, IBV_WC_BAD_RESP_ERR);
	return NULL;
}

/* All of it is there: what was to be invalidated then is, or the request failed after all. */
static void read_finish(struct ibfs_qp *qp, const struct swqe *wqe)
{
	if (wqe->wr.opcode == IBFS_WR_RDMA_READ_WITH_INV &&
	    mr_invalidate(qp, qp->pd, wqe->wr.ex.invalidate_rkey, false))
		req_fail(qp, IBV_WC_MW_BIND_ERR);
	else
		req_retire(qp, IBV_WC_SUCCESS, wqe->length);
}

static void read_done(struct ibfs_qp *qp, struct rx *rx, int err)
{
	struct requester *req = &qp->req;
	struct swqe *wqe = sq_wqe(req, req->head);

	/* Remote memory took its time: the request may be gone, or failed. */
	if (req->head == req->tail || !wqe->started || rx->psn != req->una)
		return;
	if (err) {
		req_fail(qp, memory_status(err));
		return;
	}
	comp_progress(qp, rx->psn + rx->segs);
	if (psn_cmp(req->una, wqe->last_psn) > 0)
		read_finish(qp, wqe);
	req_advance(qp);
}

/* Does the response's opcode and length fit its place? What ends the read ends with LAST or ONLY. */
static bool read_fits(const struct ibfs_qp *qp, const struct rx *rx, const struct swqe *wqe,
		      uint32_t off)
{
	uint32_t end = (rx->psn + rx->segs - 1) & PSN_MASK;
	bool last = end == wqe->last_psn;

	if (psn_cmp(end, wqe->last_psn) > 0 || last != rx->op->last)
		return false;
	if (rx->op->headers & HDR_AETH && rx_aeth(rx) >> 24 & AETH_TYPE)
		return false;
	return rx_length_ok(qp, rx) && (!last || off + rx->len == wqe->length);
}

static void comp_read(struct ibfs_qp *qp, struct rx *rx)
{
	struct swqe *wqe = comp_expect(qp, rx, false);
	uint32_t off;
	int err;

	if (!wqe || rx->psn != qp->req.una)
		return;
	off = ((rx->psn - wqe->first_psn) & PSN_MASK) * qp->mtu;
	if (!read_fits(qp, rx, wqe, off)) {
		req_fail(qp, IBV_WC_BAD_RESP_ERR);
		return;
	}
	err = rx_scatter(qp, rx, qp->pd, wqe->wr.sg_list, wqe->wr.num_sge, off, read_done);
	if (err <= 0)
		read_done(qp, rx, err);
}

static void comp_atomic(struct ibfs_qp *qp, struct rx *rx)
{
	struct swqe *wqe = comp_expect(qp, rx, true);
	const void *raw = rx_header(rx, HDR_ATOMICACK);
	struct rx value;
	uint64_t orig;
	int err;

	if (!wqe)
		return;
	if (rx_aeth(rx) >> 24 & AETH_TYPE) {
		req_fail(qp, IBV_WC_BAD_RESP_ERR);
		return;
	}
	/* The value is written as if it were payload: in host order, where its header is. */
	memcpy(&orig, raw, 8);
	orig = be64toh(orig);
	memcpy((void *)raw, &orig, 8);
	value = *rx;
	value.off = (const uint8_t *)raw - rx->pkt->data;
	value.len = 8;
	err = rx_scatter(qp, &value, qp->pd, wqe->wr.sg_list, wqe->wr.num_sge, 0, read_done);
	if (err <= 0)
		read_done(qp, rx, err);
}

void comp_recv(struct ibfs_qp *qp, struct rx *rx)
{
	struct requester *req = &qp->req;

	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return;
	/* Of what was never sent, or of what was answered before: a ghost. */
	if (psn_cmp(rx->psn, req->una) < 0 || psn_cmp(rx->psn + rx->segs, req->max_psn) > 0)
		return;
	if (rx->op->kind == KIND_READ_RESP)
		comp_read(qp, rx);
	else if (rx->op->kind == KIND_ATOMIC_ACK)
		comp_atomic(qp, rx);
	else
		comp_ack_packet(qp, rx);
	if (qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD)
		req_advance(qp);
}
