/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder of reliable connections, RC and XRC: checks each request packet
 * in the IBA's order, executes it, answers. IBA 9.7.3, 9.7.4, 9.7.5.1, 9.7.7,
 * and for XRC annex A14.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/resp.h"

/* 9.7.5.1.2 table 46: the largest code whose value is no more than count. */
static unsigned int credit_code(uint32_t count)
{
	unsigned int log;

	if (count < 4)
		return count;
	if (count >= 32768)
		return 30;
	log = 31 - __builtin_clz(count);
	return 2 * log + (count >= 3U << (log - 1));
}

static uint8_t ack_syndrome(const struct ibfs_qp *qp)
{
	if (qp->srq || qp->transport == OP_XRC)
		return AETH_NO_CREDITS;
	return credit_code(rq_count(&qp->rq));
}

void resp_tx(const struct ibfs_qp *qp, struct tx *tx, unsigned int opcode, uint32_t psn,
	     uint8_t syndrome)
{
	const struct port *port = verbs_port(qp->verbs, qp->attr.port_num);

	*tx = (struct tx){
		.opcode = qp->transport | opcode, .psn = psn & PSN_MASK, .segs = 1,
		.aeth = (uint32_t)syndrome << 24 | (qp->resp.msn & 0xffffff),
		.pkey = port ? port_pkey(port, qp->attr.pkey_index) : 0,
	};
}

void resp_ack_now(struct ibfs_qp *qp, uint32_t psn, uint8_t syndrome)
{
	struct packet pkt;
	struct tx tx;

	packet_init(&pkt);
	resp_tx(qp, &tx, OP_ACK, psn, syndrome);
	net_xmit(qp, &pkt, &tx);
}

/* Answers go in order of PSN: behind reads that are still being answered. */
static void resp_ack(struct ibfs_qp *qp, uint32_t psn, uint8_t syndrome)
{
	struct responder *r = &qp->resp;

	if (!resp_active(qp)) {
		resp_ack_now(qp, psn, syndrome);
		return;
	}
	qp_count(qp, STAT_ACK_DEFERRED);
	r->ack_pending = true;
	r->ack_psn = psn & PSN_MASK;
	r->ack_syndrome = syndrome;
}

/* The request can't be right or isn't allowed: NAK, error to the receive request, error state. */
static void resp_fail(struct ibfs_qp *qp, const struct rx *rx, uint8_t nak, enum ibv_wc_status status)
{
	struct responder *r = &qp->resp;

	if (r->has_wqe)
		recv_complete(qp, rx, status);
	/* In error the QP sends nothing more: what is due goes now. */
	while (resp_active(qp) && resp_run(qp))
		;
	resp_ack_now(qp, r->epsn, nak);
	qp_event(qp, nak == NAK_ACCESS ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
	qp_error(qp);
}

static void resp_rnr(struct ibfs_qp *qp)
{
	qp_count(qp, STAT_SEND_RNR);
	resp_ack(qp, qp->resp.epsn, AETH_RNR | qp->attr.min_rnr_timer);
	/* What comes behind it is out of sequence only because of it. */
	qp->resp.nak_sent = true;
}

/* A request packet was executed: count it, acknowledge when asked. */
static void resp_next(struct ibfs_qp *qp, const struct rx *rx)
{
	struct responder *r = &qp->resp;

	r->epsn = (rx->psn + rx->segs) & PSN_MASK;
	if (rx->op->last) {
		r->msg = MSG_NONE;
		r->msn++;
	}
	if (ntohl(rx->bth->psn) >> 31)
		resp_ack(qp, r->epsn - 1, ack_syndrome(qp));
}

/* XRC: the SRQ that the packet names, if it is of the QP's domain. A14.4 */
static struct ibfs_srq *xrc_srq(const struct ibfs_qp *qp, const struct rx *rx)
{
	const void *ext = rx_header(rx, HDR_XRCETH);
	struct ibfs_srq *srq;
	__be32 num;

	if (!ext)
		return NULL;
	memcpy(&num, ext, 4);
	srq = table_get(&qp->verbs->srqs, ntohl(num) & 0xffffff);
	return srq && srq->xrc && srq->xrcd == qp->xrcd ? srq : NULL;
}

/* Whose keys the request may use: the QP's, or of XRC the SRQ's protection domain. */
static const struct ibfs_pd *resp_pd(const struct ibfs_qp *qp, const struct rx *rx)
{
	const struct ibfs_srq *srq;

	if (qp->transport != OP_XRC)
		return qp->pd;
	srq = xrc_srq(qp, rx);
	return srq ? srq->pd : NULL;
}

/* 0, or it was answered. */
static int resp_take(struct ibfs_qp *qp, struct rx *rx)
{
	struct ibfs_srq *srq = qp->transport == OP_XRC ? xrc_srq(qp, rx) : qp->srq;
	int err;

	if (qp->transport == OP_XRC && !srq) {
		resp_fail(qp, rx, NAK_INVALID, IBV_WC_LOC_QP_OP_ERR);
		return -EINVAL;
	}
	err = recv_take(qp, srq);
	if (err == -ENOENT)
		resp_rnr(qp);
	else if (err)
		resp_fail(qp, rx, NAK_OPERATION, IBV_WC_LOC_QP_OP_ERR);
	return err;
}

static void send_done(struct ibfs_qp *qp, struct rx *rx, int err)
{
	struct responder *r = &qp->resp;
	const void *ieth = rx_header(rx, HDR_IETH);
	__be32 key;

	if (err) {
		resp_fail(qp, rx, NAK_OPERATION, memory_status(err));
		return;
	}
	r->off += rx->len;
	if (ieth) {
		memcpy(&key, ieth, 4);
		if (mr_invalidate(qp, resp_pd(qp, rx), ntohl(key), true)) {
			resp_fail(qp, rx, NAK_ACCESS, IBV_WC_MW_BIND_ERR);
			return;
		}
	}
	if (rx->op->last)
		recv_complete(qp, rx, IBV_WC_SUCCESS);
	if (qp->state != IBV_QPS_ERR)
		resp_next(qp, rx);
}

static void resp_send(struct ibfs_qp *qp, struct rx *rx)
{
	struct responder *r = &qp->resp;
	int err;

	if (rx->op->first && resp_take(qp, rx))
		return;
	if (!rx_length_ok(qp, rx) || rx->len > r->wqe.length - r->off) {
		resp_fail(qp, rx, NAK_INVALID, IBV_WC_LOC_LEN_ERR);
		return;
	}
	r->msg = MSG_SEND;
	err = recv_scatter(qp, rx, send_done);
	if (err <= 0)
		send_done(qp, rx, err);
}

static void write_done(struct ibfs_qp *qp, struct rx *rx, int err)
{
	struct responder *r = &qp->resp;

	if (err) {
		resp_fail(qp, rx, NAK_OPERATION, IBV_WC_LOC_ACCESS_ERR);
		return;
	}
	r->va += rx->len;
	r->resid -= rx->len;
	if (rx->op->needs_recv)
		recv_complete(qp, rx, IBV_WC_SUCCESS);
	if (qp->state != IBV_QPS_ERR)
		resp_next(qp, rx);
}

bool resp_reth(struct ibfs_qp *qp, const struct rx *rx)
{
	struct responder *r = &qp->resp;
	struct reth reth;

	memcpy(&reth, rx_header(rx, HDR_RETH), sizeof(reth));
	r->va = be64toh(reth.va);
	r->rkey = ntohl(reth.rkey);
	r->resid = r->length = ntohl(reth.len);
	return r->length <= VERBS_MAX_MSG;
}

/* Payload to where the RETH said; all of it was checked at first, this part is again. */
int resp_write_payload(struct ibfs_qp *qp, struct rx *rx, const struct ibfs_pd *pd,
		       void (*then)(struct ibfs_qp *, struct rx *, int))
{
	struct responder *r = &qp->resp;
	uint32_t check = rx->op->first ? r->resid : rx->len;
	struct mem_seg segs[MEM_SEGS];
	struct rx part = *rx;
	struct ibfs_mr *mr;
	uint64_t addr;

	if (!check)
		return 0;
	mr = pd ? rkey_check(qp, pd, r->rkey, r->va, check, IBV_ACCESS_REMOTE_WRITE, &addr) : NULL;
	if (!mr)
		return -EACCES;
	for (uint32_t done = 0; done < rx->len; done += part.len) {
		int num, err;

		part.off = rx->off + done;
		part.len = rx->len - done;
		while ((num = mr_segments(mr, addr + done, part.len, segs, 0)) == -E2BIG)
			part.len = (part.len + 1) / 2;
		err = rx_write(qp, &part, segs, num, then);
		if (err)
			return err;
	}
	return 0;
}

static void resp_write(struct ibfs_qp *qp, struct rx *rx)
{
	struct responder *r = &qp->resp;
	int err;

	if (rx->op->first && (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) ||
			      !resp_reth(qp, rx))) {
		resp_fail(qp, rx, NAK_INVALID, IBV_WC_REM_INV_REQ_ERR);
		return;
	}
	if (!rx_length_ok(qp, rx) || rx->len > r->resid || (rx->op->last && rx->len != r->resid)) {
		resp_fail(qp, rx, NAK_INVALID, IBV_WC_REM_INV_REQ_ERR);
		return;
	}
	if (rx->op->needs_recv && resp_take(qp, rx))
		return;
	r->msg = MSG_WRITE;
	err = resp_write_payload(qp, rx, resp_pd(qp, rx), write_done);
	if (err == -EACCES)
		resp_fail(qp, rx, NAK_ACCESS, IBV_WC_LOC_ACCESS_ERR);
	else if (err <= 0)
		write_done(qp, rx, err);
}

static void resp_read(struct ibfs_qp *qp, struct rx *rx)
{
	const struct ibfs_pd *pd = resp_pd(qp, rx);
	struct responder *r = &qp->resp;
	uint32_t packets;
	uint64_t addr;

	if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ) || !resp_reth(qp, rx)) {
		resp_fail(qp, rx, NAK_INVALID, IBV_WC_REM_INV_REQ_ERR);
		return;
	}
	if (r->length && (!pd || !rkey_check(qp, pd, r->rkey, r->va, r->length,
					     IBV_ACCESS_REMOTE_READ, &addr))) {
		resp_fail(qp, rx, NAK_ACCESS, IBV_WC_REM_ACCESS_ERR);
		return;
	}
	packets = r->length ? (r->length + qp->mtu - 1) / qp->mtu : 1;
	if (!resp_add(qp, &(struct resource){
			.active = true, .first_psn = rx->psn,
			.last_psn = (rx->psn + packets - 1) & PSN_MASK,
			.rkey = r->rkey, .va = r->va, .len = r->length, .pd = pd })) {
		resp_fail(qp, rx, NAK_INVALID, IBV_WC_REM_INV_REQ_ERR);
		return;
	}
	r->epsn = (rx->psn + packets) & PSN_MASK;
	r->msn++;
	if (resp_run(qp))
		qp_kick(qp);
}

/* A swap that takes place whatever is there. A19: 8 bytes, aligned. */
static bool atomic_write_fields(const struct rx *rx, struct mem_atomic *op, uint64_t *va,
				uint32_t *rkey)
{
	struct reth reth;

	memcpy(&reth, rx_header(rx, HDR_RETH), sizeof(reth));
	if (rx->len != sizeof(op->swap) || ntohl(reth.len) != sizeof(op->swap))
		return false;
	*va = be64toh(reth.va);
	*rkey = ntohl(reth.rkey);
	*op = (struct mem_atomic){ .swap_op = true, .swap_mask = ~0ULL };
	packet_gather(rx->pkt, rx->off, &op->swap, sizeof(op->swap));
	return true;
}

static bool atomic_fields(const struct rx *rx, struct mem_atomic *op, uint64_t *va, uint32_t *rkey)
{
	unsigned int low = rx->opcode & 31;
	struct atomiceth eth;
	bool masked = rx->op->headers & HDR_MASKED;

	if (rx->op->kind == KIND_ATOMIC_WRITE)
		return atomic_write_fields(rx, op, va, rkey);
	memcpy(&eth, rx_header(rx, HDR_ATOMIC), masked ? sizeof(eth) : ATOMICETH_SIZE);
	*va = be64toh(eth.va);
	*rkey = ntohl(eth.rkey);
	op->swap_op = low == OP_CMP_SWAP || (masked && low == OP_XRC_MASKED_CMP_SWAP);
	op->swap = be64toh(eth.swap_add);
	op->compare_add = op->swap_op ? be64toh(eth.compare) : be64toh(eth.swap_add);
	op->swap_mask = masked ? be64toh(eth.swap_mask) : ~0ULL;
	op->compare_add_mask = masked ? be64toh(eth.compare_mask) : op->swap_op ? ~0ULL : 0;
	return !rx->len;
}

static void atomic_done(struct ibfs_qp *qp, struct rx *rx, int err)
{
	struct responder *r = &qp->resp;
	uint64_t orig = qp->hold.finished ? qp->hold.finished->atomic.orig : r->atomic_orig;

	if (err) {
		resp_fail(qp, rx, NAK_OPERATION, IBV_WC_REM_OP_ERR);
		return;
	}
	if (!resp_add(qp, &(struct resource){
			.active = true, .atomic = true, .orig = orig,
			.answer = rx->op->kind == KIND_ATOMIC ? OP_ATOMIC_ACK : OP_READ_RESP_ONLY,
			.first_psn = rx->psn, .last_psn = rx->psn })) {
		resp_fail(qp, rx, NAK_INVALID, IBV_WC_REM_INV_REQ_ERR);
		return;
	}
	r->epsn = (rx->psn + 1) & PSN_MASK;
	r->msn++;
	if (resp_run(qp))
		qp_kick(qp);
}

static int resp_atomic_exec(struct ibfs_qp *qp, const struct rx *rx, const struct mem_seg *seg,
			    struct mem_atomic *op)
{
	struct xfer *xfer;

	if (seg->mem->kind != MEMORY_REMOTE) {
		mem_atomic_exec((uint64_t *)((uint8_t *)seg->mem->base + seg->off), op);
		qp->resp.atomic_orig = op->orig;
		return 0;
	}
	xfer = xfer_new(seg, 1, 8);
	if (!xfer)
		return -ENOMEM;
	xfer->io.op = MEM_ATOMIC;
	xfer->atomic = *op;
	return qp_hold(qp, rx, xfer, atomic_done);
}

static void resp_atomic(struct ibfs_qp *qp, struct rx *rx)
{
	const struct ibfs_pd *pd = resp_pd(qp, rx);
	unsigned int access = rx->op->kind == KIND_ATOMIC ? IBV_ACCESS_REMOTE_ATOMIC :
							    IBV_ACCESS_REMOTE_WRITE;
	struct mem_atomic op = { 0 };
	struct mem_seg segs[MEM_SEGS];
	struct ibfs_mr *mr;
	uint64_t va, addr;
	uint32_t rkey;
	int err;

	if (!atomic_fields(rx, &op, &va, &rkey) || !(qp->attr.qp_access_flags & access) || va & 7 ||
	    !resp_room(qp)) {
		resp_fail(qp, rx, NAK_INVALID, IBV_WC_REM_INV_REQ_ERR);
		return;
	}
	mr = pd ? rkey_check(qp, pd, rkey, va, 8, access, &addr) : NULL;
	if (!mr || mr_segments(mr, addr, 8, segs, 0) != 1 || segs[0].off & 7) {
		resp_fail(qp, rx, NAK_ACCESS, IBV_WC_REM_ACCESS_ERR);
		return;
	}
	err = resp_atomic_exec(qp, rx, &segs[0], &op);
	if (err <= 0)
		atomic_done(qp, rx, err);
}

/* 9.7.4.1.2: a message begins when none is in progress, and goes on as it began. */
static bool sequence_ok(const struct responder *r, const struct opcode *op)
{
	if (op->first)
		return r->msg == MSG_NONE;
	return r->msg == (op->kind == KIND_SEND ? MSG_SEND : MSG_WRITE);
}

/* 9.7.5.1.1: what arrived before is answered again, and not done again. */
static void resp_duplicate(struct ibfs_qp *qp, struct rx *rx)
{
	struct responder *r = &qp->resp;

	qp_count(qp, STAT_DUPLICATE_REQUEST);
	if (rx->op->kind == KIND_READ || rx->op->kind == KIND_ATOMIC ||
	    rx->op->kind == KIND_ATOMIC_WRITE) {
		if (resp_again(qp, rx) && resp_run(qp))
			qp_kick(qp);
		return;
	}
	if (ntohl(rx->bth->psn) >> 31)
		resp_ack(qp, r->epsn - 1, ack_syndrome(qp));
}

static bool resp_psn(struct ibfs_qp *qp, struct rx *rx)
{
	struct responder *r = &qp->resp;
	int ahead = psn_cmp(rx->psn, r->epsn);

	if (ahead > 0) {
		qp_count(qp, STAT_OUT_OF_SEQ_REQUEST);
		if (!r->nak_sent)
			resp_ack(qp, r->epsn, NAK_PSN);
		r->nak_sent = true;
		return false;
	}
	if (ahead < 0) {
		bool message = rx->op->kind == KIND_SEND || rx->op->kind == KIND_WRITE;

		if (!message || psn_cmp(rx->psn + rx->segs, r->epsn) <= 0) {
			resp_duplicate(qp, rx);
			return false;
		}
		rx_trim(rx, (r->epsn - rx->psn) & PSN_MASK);
	}
	r->nak_sent = false;
	return true;
}

void resp_recv(struct ibfs_qp *qp, struct rx *rx)
{
	if (!resp_psn(qp, rx))
		return;
	if (rx->op->kind == KIND_NONE || !sequence_ok(&qp->resp, rx->op)) {
		resp_fail(qp, rx, NAK_INVALID, IBV_WC_REM_INV_REQ_ERR);
		return;
	}
	switch (rx->op->kind) {
	case KIND_SEND:
		resp_send(qp, rx);
		break;
	case KIND_WRITE:
		resp_write(qp, rx);
		break;
	case KIND_READ:
		resp_read(qp, rx);
		break;
	default:
		resp_atomic(qp, rx);
	}
}
