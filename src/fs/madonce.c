/* SPDX-License-Identifier: BSD-2-Clause */
/* One MAD and its answer, on the backend's agents. Knows no attribute. */
#include <errno.h>

#include "fs/madonce.h"

enum { HEADER = 64, AT_CLASS = 1, AT_VERSION = 2 };

static void on_recv(void *client, struct mad_agent *agent, int status,
		    const struct mad_addr *addr, const void *mad, size_t len)
{
	struct mad_once *once = client;
	struct ibfs_device *dev = once->dev;

	(void)addr;
	if (!status && len < HEADER)
		return;
	once->agent = NULL;
	/* It may free itself; the MAD lives as long as the agent. */
	once->done(once, status ? -ETIMEDOUT : 0, mad, len);
	dev->ops->mad_unregister(agent);
}

static void on_gone(void *client, struct mad_agent *agent)
{
	struct mad_once *once = client;

	(void)agent;
	once->agent = NULL;
	once->done(once, -ENODEV, NULL, 0);
}

static const struct mad_client_ops client_ops = { .recv = on_recv, .gone = on_gone };

int mad_once_send(struct mad_once *once, struct ibfs_device *dev, unsigned int port,
		  const struct mad_addr *addr, const void *mad, bool rmpp,
		  unsigned int timeout_ms, unsigned int retries)
{
	const uint8_t *bytes = mad;
	struct mad_reg reg = {
		.qpn = addr->qpn,
		.mgmt_class = bytes[AT_CLASS],
		.class_version = bytes[AT_VERSION],
		.rmpp_version = rmpp,
	};
	int ret;

	once->dev = dev;
	ret = dev->ops->mad_register(dev, port, &reg, &client_ops, once, &once->agent);
	if (ret)
		return ret;
	ret = dev->ops->mad_send(once->agent, addr, mad, MADONCE_LEN, timeout_ms, retries);
	if (ret)
		mad_once_cancel(once);
	return ret;
}

void mad_once_cancel(struct mad_once *once)
{
	if (once->agent)
		once->dev->ops->mad_unregister(once->agent);
	once->agent = NULL;
}
