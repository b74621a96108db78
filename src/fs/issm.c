/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The issm file of a port: whoever has it open is the port's subnet manager,
 * as PortInfo:CapabilityMask.IsSM then says (IBA 14.2.5.6; Linux's user_mad.c).
 * One holder at a time; others wait in open() in the order in which they came.
 */
#include <errno.h>
#include <fcntl.h>

#include <ibfs/ibfs.h>

#include "fs/tree.h"

static int hold(struct ibfs_device *dev, unsigned int port, struct file *file)
{
	int ret = dev->ops->set_issm(dev, port, true);

	if (!ret)
		dev->ports[port].issm = file;
	return ret;
}

static ssize_t issm_open(struct file *file, struct fs_req *req)
{
	struct ibfs_device *dev = path_device(req->ibfs, file->path);
	unsigned int port = file->path.port;

	if (!dev)
		return ibfs_fail(req->ibfs, ENXIO, "issm: the device is gone");
	file->hints |= FILE_STREAM;
	if (!dev->ports[port].issm)
		return hold(dev, port, file);
	if (file->flags & O_NONBLOCK)
		return ibfs_fail(req->ibfs, EAGAIN, "%s/%u/issm: another subnet manager has it",
				 dev->name, port);
	return waitq_add(&dev->ports[port].issm_waiters, req);
}

static void issm_release(struct file *file)
{
	struct ibfs_device *dev = path_device(file->ibfs, file->path);
	unsigned int port = file->path.port;
	struct ib_port_state *state;
	struct fs_req *req;

	if (!dev || dev->ports[port].issm != file)
		return;
	state = &dev->ports[port];
	state->issm = NULL;
	dev->ops->set_issm(dev, port, false);
	while (!state->issm && (req = waitq_take(&state->issm_waiters)))
		fs_reply(req, hold(dev, port, req->file), NULL, 0);
}

void issm_device_gone(struct ibfs_device *dev, unsigned int port)
{
	dev->ports[port].issm = NULL;
	waitq_fail(&dev->ports[port].issm_waiters, -ENXIO);
}

/* Nothing else can be done to it. */
const struct file_ops issm_ops = {
	.open = issm_open,
	.release = issm_release,
};
