/* SPDX-License-Identifier: BSD-2-Clause */
/* Raw mode: frames as they are on the fabric, in and out. ibp(7D) on DLIOCRAW. */
#include <errno.h>
#include <string.h>
#include <utlist.h>

#include "ipoib/ipoib.h"

int ipoib_frame_send(struct ipoib *ip, const void *frame, size_t len)
{
	const uint8_t *bytes = frame;
	struct ipoib_addr to;
	struct ipoib_tx *tx;

	if (!ip->created)
		return ibfs_fail(ip->ibfs, ENXIO, "ipoib: frame: the interface isn't created");
	if (len < IPOIB_ADDR_LEN + IPOIB_HEADER)
		return ibfs_fail(ip->ibfs, EINVAL, "ipoib: frame: expected a 20-byte destination "
				 "and the 4-byte header");
	if (!ip->active || !ip->mcast_mtu)
		return ibfs_fail(ip->ibfs, ENETDOWN, "ipoib: frame: the link is down");
	if (len - IPOIB_ADDR_LEN > ip->mcast_mtu + IPOIB_HEADER)
		return ibfs_fail(ip->ibfs, EMSGSIZE, "ipoib: frame: more than %u bytes",
				 ip->mcast_mtu);
	tx = tx_alloc(ip);
	if (!tx)
		return -ENOBUFS;
	memcpy(to.raw, bytes, IPOIB_ADDR_LEN);
	tx->len = len - IPOIB_ADDR_LEN;
	tx->own = true;
	memcpy(tx->data, bytes + IPOIB_ADDR_LEN, tx->len);
	ipoib_xmit_to(ip, tx, &to);
	return 0;
}

void ipoib_listen(struct ipoib *ip, struct ipoib_listener *listener)
{
	DL_APPEND(ip->listeners, listener);
}

void ipoib_unlisten(struct ipoib *ip, struct ipoib_listener *listener)
{
	if (listener->prev)
		DL_DELETE(ip->listeners, listener);
	listener->prev = NULL;
}

void frame_deliver(struct ipoib *ip, const void *frame, size_t len)
{
	struct ipoib_listener *listener, *tmp;

	DL_FOREACH_SAFE(ip->listeners, listener, tmp)
		listener->frame(listener, frame, len);
}

void frames_end(struct ipoib *ip)
{
	struct ipoib_listener *listener;

	while ((listener = ip->listeners) != NULL) {
		ipoib_unlisten(ip, listener);
		listener->frame(listener, NULL, 0);
	}
}
