/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMPP, IBA 13.6: which classes have it, and where a packet of it goes: data
 * to rmpp_recv.c, the rest to the message that it is about (rmpp_send.c). The
 * choice of errors is that of Linux's core/mad_rmpp.c.
 */
#include <endian.h>
#include <string.h>

#include "hca/agent.h"

static bool vendor_range2(uint8_t mgmt_class)
{
	return mgmt_class >= UMAD_CLASS_VENDOR_RANGE2_START &&
	       mgmt_class <= UMAD_CLASS_VENDOR_RANGE2_END;
}

bool rmpp_class(uint8_t mgmt_class)
{
	return mgmt_class == UMAD_CLASS_SUBN_ADM || mgmt_class == UMAD_CLASS_DEVICE_MGMT ||
	       mgmt_class == UMAD_CLASS_DEVICE_ADM || mgmt_class == UMAD_CLASS_BIS ||
	       vendor_range2(mgmt_class);
}

unsigned int rmpp_header_len(uint8_t mgmt_class)
{
	switch (mgmt_class) {
	case UMAD_CLASS_SUBN_ADM:
		return 56;
	case UMAD_CLASS_DEVICE_MGMT:
	case UMAD_CLASS_DEVICE_ADM:
	case UMAD_CLASS_BIS:
		return 64;
	default:
		return vendor_range2(mgmt_class) ? 40 : MAD_HDR_LEN;
	}
}

bool rmpp_agent(const struct mad_agent *agent)
{
	return agent->reg.rmpp_version && !agent->reg.user_rmpp;
}

bool rmpp_raw(const struct mad_agent *agent, const struct umad_hdr *hdr)
{
	return !rmpp_agent(agent) && rmpp_class(hdr->mgmt_class) && rmpp_active(hdr);
}

void rmpp_answer(struct mad_agent *agent, const struct mad_addr *addr, const void *mad,
		 uint8_t type, uint8_t status, uint32_t seg, uint32_t newwin)
{
	union {
		struct umad_rmpp_packet head;
		uint8_t bytes[MAD_SIZE];
	} answer = { 0 };
	const struct umad_hdr *hdr = mad;

	memcpy(answer.bytes, mad, rmpp_header_len(hdr->mgmt_class));
	answer.head.mad_hdr.method ^= UMAD_METHOD_RESP_MASK;
	answer.head.rmpp_hdr.rmpp_version = UMAD_RMPP_VERSION;
	answer.head.rmpp_hdr.rmpp_type = type;
	answer.head.rmpp_hdr.rmpp_rtime_flags = RMPP_NO_RESP_TIME | RMPP_ACTIVE;
	answer.head.rmpp_hdr.rmpp_status = status;
	answer.head.rmpp_hdr.seg_num = htobe32(seg);
	answer.head.rmpp_hdr.paylen_newwin = htobe32(newwin);
	mad_transmit(agent, addr, answer.bytes);
}

/* A packet that makes no sense ends the message that it is about, on both sides. */
static void refuse(struct mad_agent *agent, const struct mad_addr *addr, const void *mad,
		   uint8_t status)
{
	rmpp_send_abort(agent, addr, mad);
	rmpp_recv_abort(agent, addr, mad);
	rmpp_answer(agent, addr, mad, RMPP_ABORT, status, 0, 0);
}

static void recv_abort(struct mad_agent *agent, const struct mad_addr *addr, const void *mad,
		       bool known_status)
{
	if (!known_status) {
		refuse(agent, addr, mad, RMPP_BAD_STATUS);
		return;
	}
	rmpp_send_abort(agent, addr, mad);
	rmpp_recv_abort(agent, addr, mad);
}

static void recv_ack(struct mad_agent *agent, const struct mad_addr *addr, const void *mad)
{
	const struct umad_rmpp_hdr *rmpp = &((const struct umad_rmpp_packet *)mad)->rmpp_hdr;

	if (rmpp->rmpp_status)
		refuse(agent, addr, mad, RMPP_BAD_STATUS);
	else if (be32toh(rmpp->paylen_newwin) < be32toh(rmpp->seg_num))
		refuse(agent, addr, mad, RMPP_W2S);
	else
		rmpp_send_ack(agent, addr, mad);
}

static void recv_data(struct mad_agent *agent, const struct mad_addr *addr, const void *mad)
{
	const struct umad_rmpp_hdr *rmpp = &((const struct umad_rmpp_packet *)mad)->rmpp_hdr;
	bool first = rmpp->rmpp_rtime_flags & RMPP_FIRST;

	if (rmpp->rmpp_status)
		rmpp_answer(agent, addr, mad, RMPP_ABORT, RMPP_BAD_STATUS, 0, 0);
	else if (first != (be32toh(rmpp->seg_num) == 1))
		rmpp_answer(agent, addr, mad, RMPP_ABORT, RMPP_BAD_SEG, 0, 0);
	else
		rmpp_recv_data(agent, addr, mad);
}

void rmpp_recv(struct mad_agent *agent, const struct mad_addr *addr, const void *mad)
{
	const struct umad_rmpp_hdr *rmpp = &((const struct umad_rmpp_packet *)mad)->rmpp_hdr;

	if (rmpp->rmpp_version != UMAD_RMPP_VERSION) {
		refuse(agent, addr, mad, RMPP_UNV);
		return;
	}
	switch (rmpp->rmpp_type) {
	case RMPP_DATA:
		recv_data(agent, addr, mad);
		break;
	case RMPP_ACK:
		recv_ack(agent, addr, mad);
		break;
	case RMPP_STOP:
		recv_abort(agent, addr, mad, rmpp->rmpp_status == RMPP_RESX);
		break;
	case RMPP_ABORT:
		recv_abort(agent, addr, mad, rmpp->rmpp_status >= RMPP_ABORT_MIN &&
			   rmpp->rmpp_status <= RMPP_ABORT_MAX);
		break;
	default:
		refuse(agent, addr, mad, RMPP_BADT);
	}
}
