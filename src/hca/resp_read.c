/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Responder resources: reads and atomics being answered, and kept for being
 * asked again. Answers go in order, a turn's budget at a time. IBA 9.7.5.1.3,
 * 9.7.5.1.4, 9.7.7.1.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/keep.h"
#include "hca/resp.h"

static struct resource *res_at(const struct responder *r, unsigned int i)
{
	return &r->res[(r->res_head + i) % r->num_res];
}

/* Those before res_first were answered long ago: of many, as most are, only few are looked at. */
static struct resource *first_active(struct responder *r)
{
	if (!r->num_active)
		return NULL;
	while (!res_at(r, r->res_first)->active)
		r->res_first++;
	return res_at(r, r->res_first);
}

static void res_done(struct ibfs_qp *qp, struct resource *res)
{
	res->active = res->again = false;
	qp->resp.num_active--;
}

bool resp_active(const struct ibfs_qp *qp)
{
	return qp->resp.num_active;
}

/*
 * The oldest makes room when it was answered. If it is being answered again,
 * then to a packet that was doubled on its way: who had not got the answer
 * would not ask for more than there is room for.
 */
bool resp_room(const struct ibfs_qp *qp)
{
	const struct responder *r = &qp->resp;

	return r->res_count < r->num_res ||
	       (r->num_res && (!res_at(r, 0)->active || res_at(r, 0)->again));
}

bool resp_add(struct ibfs_qp *qp, const struct resource *res)
{
	struct responder *r = &qp->resp;

	if (!resp_room(qp))
		return false;
	if (r->res_count == r->num_res) {
		if (res_at(r, 0)->active)
			res_done(qp, res_at(r, 0));
		r->res_head = (r->res_head + 1) % r->num_res;
		r->res_count--;
		if (r->res_first)
			r->res_first--;
	}
	*res_at(r, r->res_count++) = *res;
	r->num_active++;
	return true;
}

/* The newest that there are stay, as many as there is room for. */
int resp_resources(struct ibfs_qp *qp, unsigned int num)
{
	struct responder *r = &qp->resp;
	unsigned int keep = r->res_count < num ? r->res_count : num;
	struct verbs_cost cost = { .bytes = num * sizeof(struct resource) };
	struct resource *res = NULL;
	int err = bill_take(&qp->bill, cost);

	if (err)
		return err;
	if (num) {
		res = calloc(num, sizeof(*res));
		if (!res) {
			bill_give(&qp->bill, cost);
			return -ENOMEM;
		}
	}
	for (unsigned int i = 0; i < r->res_count; i++) {
		struct resource *old = res_at(r, i);

		if (i >= r->res_count - keep)
			res[i - (r->res_count - keep)] = *old;
		else if (old->active)
			res_done(qp, old);
	}
	free(r->res);
	bill_give(&qp->bill, (struct verbs_cost){ .bytes = r->num_res * sizeof(*res) });
	r->res = res;
	r->num_res = num;
	r->res_head = r->res_first = 0;
	r->res_count = keep;
	return 0;
}

/* The request that is repeated has to be part of the one that was. */
static bool read_again(struct ibfs_qp *qp, const struct rx *rx, struct resource *res)
{
	uint32_t skip = ((rx->psn - res->first_psn) & PSN_MASK) * qp->mtu;
	struct reth reth;

	memcpy(&reth, rx_header(rx, HDR_RETH), sizeof(reth));
	if (skip > res->len || be64toh(reth.va) != res->va + skip ||
	    ntohl(reth.rkey) != res->rkey || ntohl(reth.len) != res->len - skip)
		return false;
	res->start = res->off = skip;
	return true;
}

bool resp_again(struct ibfs_qp *qp, const struct rx *rx)
{
	struct responder *r = &qp->resp;
	bool atomic = rx->op->kind != KIND_READ;

	for (unsigned int i = 0; i < r->res_count; i++) {
		struct resource *res = res_at(r, i);

		if (res->atomic != atomic || psn_cmp(rx->psn, res->first_psn) < 0 ||
		    psn_cmp(rx->psn, res->last_psn) > 0)
			continue;
		if (!atomic && !read_again(qp, rx, res))
			return false;
		if (!res->active) {
			r->num_active++;
			res->active = res->again = true;
		}
		r->res_first = 0;
		return true;
	}
	return false;
}

static void atomic_answer(struct ibfs_qp *qp, struct resource *res)
{
	struct packet pkt;
	struct tx tx;

	res_done(qp, res);
	resp_tx(qp, &tx, res->answer, res->first_psn, AETH_NO_CREDITS);
	tx.atomic_orig = res->orig;
	packet_init(&pkt);
	net_xmit(qp, &pkt, &tx);
}

static void gather_done(struct xfer *xfer, int err)
{
	struct ibfs_qp *qp = xfer->priv;

	qp->resp.xfer_ready = true;
	qp->resp.xfer_failed = err;
	qp_kick(qp);
}

/* The payload at psn from remote memory: 0, 1 (later), -EFAULT. */
static int gather_remote(struct ibfs_qp *qp, const struct mem_seg *segs, int num, uint32_t psn,
			 uint32_t len)
{
	struct responder *r = &qp->resp;
	int err;

	if (r->xfer && r->xfer_psn == psn && r->xfer_len == len)
		return !r->xfer_ready ? 1 : r->xfer_failed ? -EFAULT : 0;
	xfer_cancel(r->xfer);
	r->xfer = xfer_new(segs, num, len);
	if (!r->xfer)
		return -EFAULT;
	r->xfer->priv = qp;
	r->xfer->done = gather_done;
	r->xfer_psn = psn;
	r->xfer_len = len;
	r->xfer_failed = false;
	err = xfer_start(r->xfer);
	r->xfer_ready = err <= 0;
	return err;
}

static int read_payload(struct ibfs_qp *qp, struct resource *res, uint32_t psn, uint32_t *len,
			struct packet *pkt)
{
	struct mem_seg segs[PACKET_FRAGS];
	struct mem_seg all[MEM_SEGS];
	struct ibfs_mr *mr;
	uint64_t addr;
	int num;

	_Static_assert(PACKET_FRAGS <= MEM_SEGS, "fragments fit");
	if (!*len)
		return 0;
	mr = rkey_check(qp, res->pd, res->rkey, res->va + res->off, *len, IBV_ACCESS_REMOTE_READ,
			&addr);
	if (!mr)
		return -EACCES;
	while ((num = mr_segments(mr, addr, *len, all, 0)) == -E2BIG || num > PACKET_FRAGS)
		*len = (*len / 2 + qp->mtu - 1) / qp->mtu * qp->mtu;
	memcpy(segs, all, num * sizeof(*segs));
	if (segs_remote(segs, num)) {
		int err = gather_remote(qp, segs, num, psn, *len);

		if (!err)
			pkt->frags[pkt->nr_frags++] = (struct packet_frag){ qp->resp.xfer->buf, *len };
		pkt->data_len = *len;
		return err;
	}
	for (int i = 0; i < num; i++)
		pkt->frags[pkt->nr_frags++] = (struct packet_frag){
			(uint8_t *)segs[i].mem->base + segs[i].off, segs[i].len };
	pkt->data_len = *len;
	return 0;
}

static void read_fail(struct ibfs_qp *qp, struct resource *res, uint32_t psn, int err)
{
	res_done(qp, res);
	resp_ack_now(qp, psn, err == -EACCES ? NAK_ACCESS : NAK_OPERATION);
	qp_event(qp, err == -EACCES ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
	qp_error(qp);
}

/* The next part of a read's answer; false while memory is waited for, or after an error. */
static bool read_answer(struct ibfs_qp *qp, struct resource *res, uint32_t *budget)
{
	static const uint8_t opcodes[] = {
		OP_READ_RESP_MIDDLE, OP_READ_RESP_LAST, OP_READ_RESP_FIRST, OP_READ_RESP_ONLY,
	};
	uint32_t psn = (res->first_psn + res->off / qp->mtu) & PSN_MASK;
	uint32_t len = res->len - res->off;
	bool first = res->off == res->start, last;
	struct packet pkt;
	struct tx tx;
	int err;

	if (len > VERBS_TURN_BYTES)
		len = VERBS_TURN_BYTES;
	packet_init(&pkt);
	err = read_payload(qp, res, psn, &len, &pkt);
	if (err > 0)
		return false;
	if (err) {
		read_fail(qp, res, psn, err);
		return false;
	}
	res->off += len;
	last = res->off == res->len;
	if (last)
		res_done(qp, res);
	*budget -= len < *budget ? len : *budget;
	resp_tx(qp, &tx, opcodes[first << 1 | last], psn, AETH_NO_CREDITS);
	tx.segs = len > qp->mtu ? (len + qp->mtu - 1) / qp->mtu : 1;
	net_xmit(qp, &pkt, &tx);
	xfer_free(qp->resp.xfer);
	qp->resp.xfer = NULL;
	return true;
}

bool resp_run(struct ibfs_qp *qp)
{
	struct responder *r = &qp->resp;
	uint32_t budget = VERBS_TURN_BYTES;
	struct resource *res;

	while ((res = first_active(r))) {
		if (!budget)
			return true;
		if (res->atomic)
			atomic_answer(qp, res);
		else if (!read_answer(qp, res, &budget))
			return false;
	}
	if (r->ack_pending) {
		r->ack_pending = false;
		resp_ack_now(qp, r->ack_psn, r->ack_syndrome);
	}
	return false;
}

void resp_start(struct ibfs_qp *qp)
{
	struct responder *r = &qp->resp;

	r->epsn = qp->attr.rq_psn;
	r->msn = 0;
	r->msg = MSG_NONE;
	r->nak_sent = r->ack_pending = false;
}

void resp_flush(struct ibfs_qp *qp, enum ibv_wc_status status)
{
	struct responder *r = &qp->resp;
	uint32_t left = qp->rq.wqe ? rq_count(&qp->rq) : 0;

	xfer_cancel(r->xfer);
	r->xfer = NULL;
	qp_unhold(qp);
	r->res_count = r->res_first = r->num_active = 0;
	r->ack_pending = false;
	if (r->has_wqe)
		recv_complete(qp, NULL, status);
	while (left-- && recv_take(qp, NULL) != -ENOENT)
		recv_complete(qp, NULL, status);
}

void resp_reset(struct ibfs_qp *qp)
{
	struct responder *r = &qp->resp;

	xfer_cancel(r->xfer);
	r->xfer = NULL;
	qp_unhold(qp);
	r->res_count = r->res_first = r->num_active = 0;
	if (r->has_wqe)
		wr_dropped(r->wqe.wr_cqe);
	r->ack_pending = r->has_wqe = false;
	if (qp->rq.wqe)
		rq_drop(&qp->rq);
	keep_received(qp);
}
