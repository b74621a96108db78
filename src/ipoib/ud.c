/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The datagram QP and the memory that packets are in: slots of what is sent,
 * each free, with a queue, or with the QP, and the buffers of what is
 * received. RFC 4391 section 4 and 5.
 */
#include <errno.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "ipoib/ipoib.h"

#define TX_STRIDE	65600U	/* a slot, and what a connection receives into; */
#define TX_LEAD		4U	/* the IP packet is aligned to 8 bytes */
#define RX_STRIDE	4160U
#define RX_ID		(1ULL << 32)	/* a receive's wr_id: and the buffer's number */

static uint8_t *rx_buffer(const struct ipoib *ip, unsigned int index)
{
	return (uint8_t *)ip->mem->base + (size_t)IPOIB_TX_SLOTS * TX_STRIDE +
	       (size_t)index * RX_STRIDE;
}

uint8_t *ud_cm_buffer(const struct ipoib *ip, unsigned int index)
{
	return rx_buffer(ip, IPOIB_UD_RX) + (size_t)index * TX_STRIDE + TX_LEAD;
}

struct ipoib_tx *tx_alloc(struct ipoib *ip)
{
	struct ipoib_tx *tx = ip->free_slots;

	if (!tx)
		return NULL;
	DL_DELETE(ip->free_slots, tx);
	tx->len = 0;
	tx->own = false;
	memset(&tx->vnet, 0, sizeof(tx->vnet));
	memset(tx->data, 0, IPOIB_HEADER);
	return tx;
}

/* What was used last is in the processor's cache. */
void tx_free(struct ipoib *ip, struct ipoib_tx *tx)
{
	DL_PREPEND(ip->free_slots, tx);
	tun_resume(ip);
}

/* The oldest goes when too many wait, or this one when it is the only one. */
void tx_queue(struct ipoib *ip, struct ipoib_queue *q, struct ipoib_tx *tx)
{
	DL_APPEND(q->head, tx);
	q->count++;
	ip->queued++;
	if (q->count > IPOIB_QUEUE || ip->queued > IPOIB_QUEUED) {
		ip->stats[IPOIB_TX_DROPPED]++;
		tx_free(ip, tx_dequeue(ip, q));
	}
}

struct ipoib_tx *tx_dequeue(struct ipoib *ip, struct ipoib_queue *q)
{
	struct ipoib_tx *tx = q->head;

	if (tx) {
		DL_DELETE(q->head, tx);
		q->count--;
		ip->queued--;
	}
	return tx;
}

void tx_drop_queue(struct ipoib *ip, struct ipoib_queue *q)
{
	struct ipoib_tx *tx;

	while ((tx = tx_dequeue(ip, q)) != NULL) {
		ip->stats[IPOIB_TX_DROPPED]++;
		tx_free(ip, tx);
	}
}

void tx_drop_posted(struct ipoib *ip, uint32_t qpn)
{
	for (unsigned int i = 0; i < IPOIB_TX_SLOTS; i++) {
		if (ip->slots[i].qpn != qpn)
			continue;
		ip->slots[i].qpn = 0;
		ip->stats[IPOIB_TX_DROPPED]++;
		tx_free(ip, &ip->slots[i]);
	}
}

static int post_receive(struct ipoib *ip, unsigned int index)
{
	struct ibv_sge sge = { (uintptr_t)rx_buffer(ip, index), IPOIB_UD_DATA, ip->lkey };
	struct ibfs_recv_wr wr = { .wr_id = RX_ID | index, .sg_list = &sge, .num_sge = 1 };

	return ip->ops->post_recv(ip->qp, &wr);
}

static void received(struct ipoib *ip, const struct ibfs_wc *wc)
{
	const uint8_t *buf = rx_buffer(ip, wc->wr_id & UINT32_MAX);
	const struct ibv_grh *grh = (const struct ibv_grh *)buf;
	struct ipoib_rx rx = {
		.msg = buf + IPOIB_GRH, .len = wc->byte_len - IPOIB_GRH, .src_qpn = wc->src_qp,
		.slid = wc->slid, .sl = wc->sl, .csum_ok = wc->wc_flags & IBV_WC_IP_CSUM_OK,
	};

	if (wc->status != IBV_WC_SUCCESS) {
		ip->stats[IPOIB_IERRORS] += wc->status != IBV_WC_WR_FLUSH_ERR;
		return;
	}
	if (wc->byte_len < IPOIB_GRH + IPOIB_HEADER) {
		ip->stats[IPOIB_IERRORS]++;
		ip->stats[IPOIB_RX_LENGTH_ERRORS]++;
		return;
	}
	if (wc->wc_flags & IBV_WC_GRH) {
		rx.sgid = &grh->sgid;
		rx.multicast = grh->dgid.raw[0] == 0xff;
		rx.broadcast = rx.multicast && ip->bcast &&
			       !memcmp(&grh->dgid, &ip->bcast->mgid, sizeof(grh->dgid));
	}
	/* Our own, that came back: as the seed has it, nobody's. */
	if (rx.multicast && wc->src_qp == ip->qpn && wc->slid == ip->attr.lid)
		ip->stats[IPOIB_UNKNOWNS]++;
	else
		ipoib_receive(ip, &rx);
}

static void sent(struct ipoib *ip, const struct ibfs_wc *wc)
{
	struct ipoib_tx *tx = &ip->slots[wc->wr_id % IPOIB_TX_SLOTS];

	if (tx->qpn != wc->qp_num)
		return;
	tx->qpn = 0;
	tx_free(ip, tx);
	if (wc->status == IBV_WC_SUCCESS || wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	ip->stats[IPOIB_OERRORS]++;
	if (wc->qp_num == ip->qpn)
		ip->send_error = true;
	else
		conn_failed(ip, wc->qp_num);
}

/* A failed datagram leaves the send queue in SQE: back to RTS. */
static void sq_recover(struct ipoib *ip)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };

	ip->send_error = false;
	ip->ops->modify_qp(ip->qp, &attr, IBV_QP_STATE);
}

static void rx_run(struct task *task)
{
	struct ipoib *ip = (struct ipoib *)((char *)task - offsetof(struct ipoib, rx_task));
	struct ibfs_wc wc[IPOIB_BATCH];
	int n = ip->ops->poll_cq(ip->cq, IPOIB_BATCH, wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].wr_id & IPOIB_CM_ID) {
			conn_received(ip, &wc[i]);
		} else if (wc[i].wr_id & RX_ID) {
			received(ip, &wc[i]);
			if (wc[i].status == IBV_WC_SUCCESS)
				post_receive(ip, wc[i].wr_id & UINT32_MAX);
		} else {
			sent(ip, &wc[i]);
		}
	}
	if (ip->send_error)
		sq_recover(ip);
	if (n == IPOIB_BATCH || ip->ops->req_notify_cq(ip->cq, false, true))
		task_queue(ip->ibfs->tasks, &ip->rx_task);
}

static void on_completion(struct verbs_client *client)
{
	struct ipoib *ip = (struct ipoib *)client;

	task_queue(ip->ibfs->tasks, &ip->rx_task);
}

static int make_memory(struct ipoib *ip)
{
	struct ibfs_mr_init init = { .access = IBV_ACCESS_LOCAL_WRITE };
	struct ibfs_mr_attr attr;
	int err;

	ip->mem = memory_own((size_t)(IPOIB_TX_SLOTS + IPOIB_CM_RX) * TX_STRIDE +
			     (size_t)IPOIB_UD_RX * RX_STRIDE);
	if (!ip->mem)
		return -errno;
	init.mem = ip->mem;
	init.length = ip->mem->size;
	init.iova = (uintptr_t)ip->mem->base;
	err = ip->ops->reg_mr(ip->pd, &init, &ip->mr);
	if (err)
		return err;
	ip->ops->query_mr(ip->mr, &attr);
	ip->lkey = attr.lkey;
	for (unsigned int i = 0; i < IPOIB_TX_SLOTS; i++) {
		ip->slots[i].data = (uint8_t *)ip->mem->base + (size_t)i * TX_STRIDE + TX_LEAD;
		DL_APPEND(ip->free_slots, &ip->slots[i]);
	}
	return 0;
}

static int make_qp(struct ipoib *ip)
{
	struct ibfs_qp_init init = {
		.pd = ip->pd, .send_cq = ip->cq, .recv_cq = ip->cq, .type = IBV_QPT_UD,
		.cap = { .max_send_wr = IPOIB_TX_SLOTS, .max_recv_wr = IPOIB_UD_RX,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = true,
	};
	struct ibv_qp_attr attr;
	int err = ip->ops->create_qp(ip->dev, &init, &ip->client, &ip->qp);

	if (err)
		return err;
	ip->ops->query_qp(ip->qp, &attr, &init, &ip->qpn);
	return 0;
}

int ud_open(struct ipoib *ip)
{
	int err;

	ip->client.comp = on_completion;
	ip->rx_task.fn = rx_run;
	err = ip->ops->alloc_pd(ip->dev, &ip->pd);
	if (!err)
		err = make_memory(ip);
	if (!err)
		err = ip->ops->create_cq(ip->dev, 2 * (IPOIB_TX_SLOTS + IPOIB_UD_RX + IPOIB_CM_RX), &ip->client,
					 &ip->cq);
	if (!err)
		err = make_qp(ip);
	if (!err)
		ip->ops->req_notify_cq(ip->cq, false, false);
	else
		ud_close(ip);
	return err;
}

void ud_close(struct ipoib *ip)
{
	task_cancel(ip->ibfs->tasks, &ip->rx_task);
	if (ip->qp)
		ip->ops->destroy_qp(ip->qp, &ip->client);
	if (ip->cq)
		ip->ops->destroy_cq(ip->cq);
	if (ip->mr)
		ip->ops->dereg_mr(ip->mr);
	if (ip->pd)
		ip->ops->dealloc_pd(ip->pd);
	memory_put(ip->mem);
	ip->qp = NULL;
	ip->cq = NULL;
	ip->mr = NULL;
	ip->pd = NULL;
	ip->mem = NULL;
	ip->free_slots = NULL;
	ip->qp_ready = false;
}

int ud_start(struct ipoib *ip)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .pkey_index = ip->pkey_index, .port_num = ip->port,
		.qkey = ip->qkey,
	};
	int err;

	err = ip->ops->modify_qp(ip->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						IBV_QP_QKEY);
	for (unsigned int i = 0; !err && i < IPOIB_UD_RX; i++)
		err = post_receive(ip, i);
	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ip->ops->modify_qp(ip->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ip->ops->modify_qp(ip->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	ip->qp_ready = !err;
	return err;
}

int ud_set_qkey(struct ipoib *ip, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qkey = qkey };

	if (qkey == ip->qkey)
		return 0;
	ip->qkey = qkey;
	return ip->ops->modify_qp(ip->qp, &attr, IBV_QP_QKEY);
}

/* Sends that the QP had end without a completion. */
void ud_stop(struct ipoib *ip)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	if (!ip->qp)
		return;
	ip->qp_ready = false;
	ip->ops->modify_qp(ip->qp, &attr, IBV_QP_STATE);
	tx_drop_posted(ip, ip->qpn);
}

struct ibfs_ah *ud_ah(struct ipoib *ip, const union ibv_gid *dgid, const struct ipoib_route *route,
		      bool global)
{
	struct ibv_ah_attr attr = {
		.dlid = route->lid, .sl = route->sl, .static_rate = route->rate,
		.is_global = global, .port_num = ip->port,
		.grh = { .dgid = *dgid, .flow_label = route->flow_label,
			 .hop_limit = route->hop_limit, .traffic_class = route->traffic_class },
	};
	struct ibfs_ah *ah;

	return ip->ops->create_ah(ip->pd, &attr, &ah) ? NULL : ah;
}

/* Segments that the host left to us: LSO. The header ends where TCP's does. */
static bool make_lso(struct ipoib_tx *tx, struct ibfs_wr *wr, struct ibv_sge *sge)
{
	uint32_t at = IPOIB_HEADER + tx->vnet.csum_start, hlen;
	const struct tcphdr *tcp = (const struct tcphdr *)(tx->data + at);

	if (!(tx->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || at + sizeof(*tcp) > tx->len)
		return false;
	hlen = at + tcp->doff * 4;
	if (hlen >= tx->len || hlen < at + sizeof(*tcp))
		return false;
	wr->opcode = IBFS_WR_LSO;
	wr->send_flags |= IBV_SEND_IP_CSUM;
	wr->ud.header = tx->data;
	wr->ud.hlen = hlen;
	wr->ud.mss = tx->vnet.gso_size;
	sge->addr += hlen;
	sge->length -= hlen;
	return true;
}

/* What the host left to the QP; false: it can't be. */
static bool offload(struct ipoib *ip, struct ipoib_tx *tx, struct ibfs_wr *wr, struct ibv_sge *sge)
{
	if (tx->vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE)
		return make_lso(tx, wr, sge);
	if (!(tx->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return true;
	/* The QP knows IPv4 only. */
	if (!ip->can_csum || tx->data[0] != IPOIB_IPV4 >> 8)
		return csum_complete(tx);
	wr->send_flags |= IBV_SEND_IP_CSUM;
	return true;
}

void ud_send(struct ipoib *ip, struct ipoib_tx *tx, struct ibfs_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_sge sge = { (uintptr_t)tx->data, tx->len, ip->lkey };
	struct ibfs_wr wr = {
		.wr_id = tx - ip->slots, .opcode = IBFS_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = qkey },
		.sg_list = &sge, .num_sge = 1,
	};
	bool gso = tx->vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE;

	if (!gso && tx->len > ip->mcast_mtu + IPOIB_HEADER) {
		if (!tx->own)
			icmp_too_big(ip, tx, ip->mcast_mtu);
		ip->stats[IPOIB_TX_DROPPED]++;
		tx_free(ip, tx);
		return;
	}
	if (!offload(ip, tx, &wr, &sge) || ip->ops->post_send(ip->qp, &wr)) {
		ip->stats[IPOIB_OERRORS]++;
		tx_free(ip, tx);
		return;
	}
	tx->qpn = ip->qpn;
	ip->stats[IPOIB_OPACKETS]++;
	ip->stats[IPOIB_OBYTES] += tx->len - IPOIB_HEADER;
}
