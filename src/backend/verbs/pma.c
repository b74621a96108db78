/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of a port by MAD, from its own performance management agent (IBA
 * 16.1.3.5 PortCounters, 16.1.4.11 PortCountersExtended): where sysfs has none,
 * and to clear one, which sysfs can't. Called on the device's hand.
 */
#include <errno.h>
#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <stdlib.h>
#include <string.h>

#include "backend/verbs/rdev.h"

enum {
	ANSWER_MS = 300, RETRIES = 2,
	EXTENDED = 1 << 9,		/* of ClassPortInfo's CapabilityMask */
	NOT_THERE = -1,
};

/* Where a counter stands: its field and its bit of CounterSelect, in either attribute. */
static const struct place {
	int field, bit, ext_field, ext_bit;
} places[CNT_MAX] = {
	[CNT_SYMBOL_ERROR] = { IB_PC_ERR_SYM_F, 0, NOT_THERE, 0 },
	[CNT_LINK_ERROR_RECOVERY] = { IB_PC_LINK_RECOVERS_F, 1, NOT_THERE, 0 },
	[CNT_LINK_DOWNED] = { IB_PC_LINK_DOWNED_F, 2, NOT_THERE, 0 },
	[CNT_PORT_RCV_ERRORS] = { IB_PC_ERR_RCV_F, 3, NOT_THERE, 0 },
	[CNT_PORT_RCV_REMOTE_PHYSICAL_ERRORS] = { IB_PC_ERR_PHYSRCV_F, 4, NOT_THERE, 0 },
	[CNT_PORT_RCV_SWITCH_RELAY_ERRORS] = { IB_PC_ERR_SWITCH_REL_F, 5, NOT_THERE, 0 },
	[CNT_PORT_XMIT_DISCARDS] = { IB_PC_XMT_DISCARDS_F, 6, NOT_THERE, 0 },
	[CNT_PORT_XMIT_CONSTRAINT_ERRORS] = { IB_PC_ERR_XMTCONSTR_F, 7, NOT_THERE, 0 },
	[CNT_PORT_RCV_CONSTRAINT_ERRORS] = { IB_PC_ERR_RCVCONSTR_F, 8, NOT_THERE, 0 },
	[CNT_LOCAL_LINK_INTEGRITY_ERRORS] = { IB_PC_ERR_LOCALINTEG_F, 9, NOT_THERE, 0 },
	[CNT_EXCESSIVE_BUFFER_OVERRUN_ERRORS] = { IB_PC_ERR_EXCESS_OVR_F, 10, NOT_THERE, 0 },
	[CNT_VL15_DROPPED] = { IB_PC_VL15_DROPPED_F, 11, NOT_THERE, 0 },
	[CNT_PORT_XMIT_DATA] = { IB_PC_XMT_BYTES_F, 12, IB_PC_EXT_XMT_BYTES_F, 0 },
	[CNT_PORT_RCV_DATA] = { IB_PC_RCV_BYTES_F, 13, IB_PC_EXT_RCV_BYTES_F, 1 },
	[CNT_PORT_XMIT_PACKETS] = { IB_PC_XMT_PKTS_F, 14, IB_PC_EXT_XMT_PKTS_F, 2 },
	[CNT_PORT_RCV_PACKETS] = { IB_PC_RCV_PKTS_F, 15, IB_PC_EXT_RCV_PKTS_F, 3 },
	[CNT_UNICAST_XMIT_PACKETS] = { NOT_THERE, 0, IB_PC_EXT_XMT_UPKTS_F, 4 },
	[CNT_UNICAST_RCV_PACKETS] = { NOT_THERE, 0, IB_PC_EXT_RCV_UPKTS_F, 5 },
	[CNT_MULTICAST_XMIT_PACKETS] = { NOT_THERE, 0, IB_PC_EXT_XMT_MPKTS_F, 6 },
	[CNT_MULTICAST_RCV_PACKETS] = { NOT_THERE, 0, IB_PC_EXT_RCV_MPKTS_F, 7 },
	[CNT_PORT_XMIT_WAIT] = { IB_PC_XMT_WAIT_F, 16, NOT_THERE, 0 },	/* of CounterSelect2 */
};

struct pma {
	int fd, agent;
	unsigned int lid, port;
	bool extended;
};

/* data: the attribute, as it goes out and as it comes back. */
static int exchange(const struct pma *pma, int method, unsigned int attr, uint8_t *data)
{
	ib_rpc_t rpc = {
		.mgtclass = IB_PERFORMANCE_CLASS, .method = method, .attr.id = attr,
		.dataoffs = IB_PC_DATA_OFFS, .datasz = IB_PC_DATA_SZ,
	};
	ib_portid_t to = { .lid = (int)pma->lid, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY };
	uint8_t buf[1024] = { 0 };
	int len = mad_build_pkt(buf, &rpc, &to, NULL, data);

	if (len < 0 || umad_send(pma->fd, pma->agent, buf, len, ANSWER_MS, RETRIES) < 0)
		return -EIO;
	len = IB_MAD_SIZE;
	if (umad_recv(pma->fd, buf, &len, 2 * ANSWER_MS * (RETRIES + 1)) < 0 || umad_status(buf))
		return -ETIMEDOUT;
	if (mad_get_field(umad_get_mad(buf), 0, IB_MAD_STATUS_F))
		return -EOPNOTSUPP;
	memcpy(data, (uint8_t *)umad_get_mad(buf) + IB_PC_DATA_OFFS, IB_PC_DATA_SZ);
	return 0;
}

static int pma_open(struct pma *pma, const char *device, unsigned int port)
{
	uint8_t data[IB_MAD_SIZE] = { 0 };
	char lid[32];
	int err;

	*pma = (struct pma){ .port = port };
	err = sysfs_read(lid, sizeof(lid), "%s/ports/%u/lid", device, port);
	pma->lid = (unsigned int)strtoul(lid, NULL, 0);
	if (err || !pma->lid)
		return -EAGAIN;
	pma->fd = umad_fd_open(device, port);
	if (pma->fd < 0)
		return -EOPNOTSUPP;
	pma->agent = umad_register(pma->fd, IB_PERFORMANCE_CLASS, 1, 0, NULL);
	err = pma->agent < 0 ? -EIO : exchange(pma, IB_MAD_METHOD_GET, CLASS_PORT_INFO, data);
	if (err) {
		umad_close_port(pma->fd);
		return err;
	}
	pma->extended = mad_get_field(data, 0, IB_CPI_CAPMASK_F) & EXTENDED;
	return 0;
}

static int get(const struct pma *pma, const struct place *place, uint64_t *value)
{
	bool extended = pma->extended && place->ext_field != NOT_THERE;
	uint8_t data[IB_MAD_SIZE] = { 0 };
	int err;

	if (!extended && place->field == NOT_THERE)
		return -EOPNOTSUPP;
	mad_set_field(data, 0, IB_PC_PORT_SELECT_F, pma->port);
	err = exchange(pma, IB_MAD_METHOD_GET,
		       extended ? IB_GSI_PORT_COUNTERS_EXT : IB_GSI_PORT_COUNTERS, data);
	if (err)
		return err;
	*value = extended ? mad_get_field64(data, 0, (enum MAD_FIELDS)place->ext_field) :
			    mad_get_field(data, 0, (enum MAD_FIELDS)place->field);
	return 0;
}

int pma_counter(const char *device, unsigned int port, enum counter which, uint64_t *value)
{
	struct pma pma;
	int err = pma_open(&pma, device, port);

	if (err)
		return err;
	err = get(&pma, &places[which], value);
	umad_close_port(pma.fd);
	return err;
}

/* One that is in both attributes goes from both. */
static int clear(const struct pma *pma, const struct place *place)
{
	uint8_t data[IB_MAD_SIZE] = { 0 }, ext[IB_MAD_SIZE] = { 0 };
	int err = 0;

	mad_set_field(data, 0, IB_PC_PORT_SELECT_F, pma->port);
	mad_set_field(ext, 0, IB_PC_EXT_PORT_SELECT_F, pma->port);
	mad_set_field(ext, 0, IB_PC_EXT_COUNTER_SELECT_F, 1U << place->ext_bit);
	if (place->bit < 16)
		mad_set_field(data, 0, IB_PC_COUNTER_SELECT_F, 1U << place->bit);
	else
		mad_set_field(data, 0, IB_PC_COUNTER_SELECT2_F, 1U << (place->bit - 16));
	if (place->field == NOT_THERE && !pma->extended)
		return -EOPNOTSUPP;
	if (place->field != NOT_THERE)
		err = exchange(pma, IB_MAD_METHOD_SET, IB_GSI_PORT_COUNTERS, data);
	if (!err && place->ext_field != NOT_THERE && pma->extended)
		err = exchange(pma, IB_MAD_METHOD_SET, IB_GSI_PORT_COUNTERS_EXT, ext);
	return err;
}

int pma_clear(const char *device, unsigned int port, enum counter which)
{
	struct pma pma;
	int err = pma_open(&pma, device, port);

	if (err)
		return err;
	err = clear(&pma, &places[which]);
	umad_close_port(pma.fd);
	return err;
}
