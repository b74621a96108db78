/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters/ of a far port, under the names of Linux's sysfs: the performance
 * management agent's PortCounters and PortCountersExtended (IBA 16.1.3.5,
 * 16.1.4.11), by LID. Writing 0 clears the one counter.
 */
#include <errno.h>
#include <infiniband/mad.h>
#include <string.h>

#include "fs/dev.h"
#include "fs/peer.h"
#include "fs/rows.h"

enum { SELECT2 = 16, PMA_DATA = 192 };	/* bits from here on: CounterSelect2's */

/* Where a counter is, and its bit of the attribute's CounterSelect. */
static const struct {
	uint16_t attr;
	uint8_t bit;
	enum MAD_FIELDS field;
} counters[CNT_MAX] = {
	[CNT_SYMBOL_ERROR] = { ATTR_PORT_COUNTERS, 0, IB_PC_ERR_SYM_F },
	[CNT_LINK_ERROR_RECOVERY] = { ATTR_PORT_COUNTERS, 1, IB_PC_LINK_RECOVERS_F },
	[CNT_LINK_DOWNED] = { ATTR_PORT_COUNTERS, 2, IB_PC_LINK_DOWNED_F },
	[CNT_PORT_RCV_ERRORS] = { ATTR_PORT_COUNTERS, 3, IB_PC_ERR_RCV_F },
	[CNT_PORT_RCV_REMOTE_PHYSICAL_ERRORS] = { ATTR_PORT_COUNTERS, 4, IB_PC_ERR_PHYSRCV_F },
	[CNT_PORT_RCV_SWITCH_RELAY_ERRORS] = { ATTR_PORT_COUNTERS, 5, IB_PC_ERR_SWITCH_REL_F },
	[CNT_PORT_XMIT_DISCARDS] = { ATTR_PORT_COUNTERS, 6, IB_PC_XMT_DISCARDS_F },
	[CNT_PORT_XMIT_CONSTRAINT_ERRORS] = { ATTR_PORT_COUNTERS, 7, IB_PC_ERR_XMTCONSTR_F },
	[CNT_PORT_RCV_CONSTRAINT_ERRORS] = { ATTR_PORT_COUNTERS, 8, IB_PC_ERR_RCVCONSTR_F },
	[CNT_LOCAL_LINK_INTEGRITY_ERRORS] = { ATTR_PORT_COUNTERS, 9, IB_PC_ERR_LOCALINTEG_F },
	[CNT_EXCESSIVE_BUFFER_OVERRUN_ERRORS] = { ATTR_PORT_COUNTERS, 10, IB_PC_ERR_EXCESS_OVR_F },
	[CNT_VL15_DROPPED] = { ATTR_PORT_COUNTERS, 11, IB_PC_VL15_DROPPED_F },
	[CNT_PORT_XMIT_WAIT] = { ATTR_PORT_COUNTERS, SELECT2, IB_PC_XMT_WAIT_F },
	[CNT_PORT_XMIT_DATA] = { ATTR_PORT_COUNTERS_EXT, 0, IB_PC_EXT_XMT_BYTES_F },
	[CNT_PORT_RCV_DATA] = { ATTR_PORT_COUNTERS_EXT, 1, IB_PC_EXT_RCV_BYTES_F },
	[CNT_PORT_XMIT_PACKETS] = { ATTR_PORT_COUNTERS_EXT, 2, IB_PC_EXT_XMT_PKTS_F },
	[CNT_PORT_RCV_PACKETS] = { ATTR_PORT_COUNTERS_EXT, 3, IB_PC_EXT_RCV_PKTS_F },
	[CNT_UNICAST_XMIT_PACKETS] = { ATTR_PORT_COUNTERS_EXT, 4, IB_PC_EXT_XMT_UPKTS_F },
	[CNT_UNICAST_RCV_PACKETS] = { ATTR_PORT_COUNTERS_EXT, 5, IB_PC_EXT_RCV_UPKTS_F },
	[CNT_MULTICAST_XMIT_PACKETS] = { ATTR_PORT_COUNTERS_EXT, 6, IB_PC_EXT_XMT_MPKTS_F },
	[CNT_MULTICAST_RCV_PACKETS] = { ATTR_PORT_COUNTERS_EXT, 7, IB_PC_EXT_RCV_MPKTS_F },
};

static struct peer_question question(struct path path)
{
	return (struct peer_question){ CLASS_PERF, counters[path.sub].attr, path.port };
}

static ssize_t counter_print(struct fs_req *req, struct peer_place *place,
			     void (*resume)(struct fs_req *), struct textbuf *out)
{
	struct path path = req->file->path;
	enum MAD_FIELDS field = counters[path.sub].field;
	uint64_t value;
	const uint8_t *data;
	ssize_t ret;

	ret = peer_ask(req, place, question(path), resume, &data);
	if (ret)
		return ret;
	value = counters[path.sub].attr == ATTR_PORT_COUNTERS ?
		mad_get_field((void *)data, 0, field) : mad_get_field64((void *)data, 0, field);
	text_printf(out, "%llu\n", (unsigned long long)value);
	return 0;
}

static ssize_t counter_open(struct file *file, struct fs_req *req)
{
	(void)req;
	return file->path.sub < CNT_MAX ? 0 : -ENOENT;
}

static ssize_t counter_read(struct file *file, struct fs_req *req, void *buf, size_t size,
			    off_t off)
{
	return peer_text_read(file, req, buf, size, off, counter_print);
}

static ssize_t clear(struct fs_req *req);

static void clear_again(struct fs_req *req)
{
	ssize_t ret = clear(req);

	if (ret != FS_PENDING)
		fs_reply(req, ret, NULL, 0);
}

/* req->size: what the write is answered. */
static ssize_t clear(struct fs_req *req)
{
	struct path path = req->file->path;
	struct peer_place *place = peer_place(req->ibfs, path.idx);
	unsigned int bit = counters[path.sub].bit;
	uint8_t data[PMA_DATA] = { 0 };

	if (!place || !path_device(req->ibfs, path))
		return -ENODEV;
	if (bit >= SELECT2)
		mad_set_field(data, 0, IB_PC_COUNTER_SELECT2_F, 1U << (bit - SELECT2));
	else if (counters[path.sub].attr == ATTR_PORT_COUNTERS)
		mad_set_field(data, 0, IB_PC_COUNTER_SELECT_F, 1U << bit);
	else
		mad_set_field(data, 0, IB_PC_EXT_COUNTER_SELECT_F, 1U << bit);
	return peer_clear(req, place, question(path), data, req->size, clear_again);
}

static ssize_t counter_write(struct file *file, struct fs_req *req, const void *buf, size_t size,
			     off_t off)
{
	int ret = counter_value(file->ibfs, buf, size);

	(void)off;
	if (ret)
		return ret;
	req->size = size;
	return clear(req);
}

const struct file_ops peer_counter_ops = {
	.open = counter_open,
	.read = counter_read,
	.write = counter_write,
	.release = peer_text_release,
};
