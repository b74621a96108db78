/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port's CM: its agent on QP1 (class 0x07) exists while somebody connects or
 * listens there. What arrives is looked at by a task, so that no handler runs
 * inside a call of its owner's. IBA 12.6.1, 13.4.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "hca/cm.h"

static void cm_recv(void *client, struct mad_agent *agent, int status, const struct mad_addr *addr,
		    const void *mad, size_t len)
{
	struct cm_port *port = client;
	struct cm_mad *in;

	(void)agent;
	if (status || len < CM_MAD || port->num_waiting >= CM_MAX_WAITING)
		return;
	in = malloc(sizeof(*in));
	if (!in)
		return;
	in->addr = *addr;
	memcpy(&in->msg, mad, CM_MAD);
	DL_APPEND(port->waiting, in);
	port->num_waiting++;
	task_queue(port->ibfs->tasks, &port->task);
}

static struct cm_mad *waiting_take(struct cm_port *port)
{
	struct cm_mad *in = port->waiting;

	if (in) {
		DL_DELETE(port->waiting, in);
		port->num_waiting--;
	}
	return in;
}

static void port_run(struct task *task)
{
	struct cm_port *port = (struct cm_port *)((char *)task - offsetof(struct cm_port, task));
	struct cm_mad *in;

	cm_port_hold(port);
	while (port->dev && (in = waiting_take(port)) != NULL) {
		cm_handle(port, in);
		free(in);
	}
	cm_port_put(port);
}

/* Each end is told once; who has it frees it. */
static void cm_gone(void *client, struct mad_agent *agent)
{
	struct cm_port *port = client;
	struct cm_id *id;

	(void)agent;
	cm_port_hold(port);
	port->agent = NULL;
	port->dev = NULL;
	DL_DELETE(port->ibfs->cm_ports, port);
	/* Those that were told are behind those that weren't. */
	while ((id = port->ids) != NULL && !id->gone) {
		bool orphan = id->orphan;

		id->gone = true;
		DL_DELETE(port->ids, id);
		DL_APPEND(port->ids, id);
		cm_idle(id);
		if (orphan)
			cm_id_free(id);
		else
			cm_tell_type(id, CM_EV_GONE);
	}
	cm_port_put(port);
}

static const struct mad_client_ops cm_client_ops = { .recv = cm_recv, .gone = cm_gone };

static int port_new(struct ibfs_device *dev, unsigned int num, struct cm_port **out)
{
	static const struct mad_reg reg = {
		.qpn = 1, .mgmt_class = UMAD_CLASS_CM, .class_version = CM_CLASS_VERSION,
		.methods = { 1ULL << UMAD_METHOD_SEND }, .own_tids = true,
	};
	struct cm_port *port = calloc(1, sizeof(*port));
	int err;

	if (!port)
		return -ENOMEM;
	port->ibfs = dev->ibfs;
	port->dev = dev;
	port->num = num;
	port->task.fn = port_run;
	err = dev->ops->mad_register(dev, num, &reg, &cm_client_ops, port, &port->agent);
	if (err) {
		free(port);
		return err;
	}
	DL_APPEND(dev->ibfs->cm_ports, port);
	*out = port;
	return 0;
}

int cm_port_get(struct ibfs_device *dev, unsigned int num, struct cm_port **out)
{
	struct cm_port *port;
	int err = 0;

	DL_FOREACH(dev->ibfs->cm_ports, port)
		if (port->dev == dev && port->num == num)
			break;
	if (!port)
		err = port_new(dev, num, &port);
	if (err)
		return err;
	cm_port_hold(port);
	*out = port;
	return 0;
}

void cm_port_hold(struct cm_port *port)
{
	port->refs++;
}

void cm_port_put(struct cm_port *port)
{
	struct cm_mad *in;

	if (--port->refs)
		return;
	task_cancel(port->ibfs->tasks, &port->task);
	while ((in = waiting_take(port)) != NULL)
		free(in);
	if (port->dev) {
		DL_DELETE(port->ibfs->cm_ports, port);
		port->dev->ops->mad_unregister(port->agent);
	}
	free(port);
}

uint64_t cm_port_guid(const struct cm_port *port)
{
	return port->dev ? port->dev->node_guid : 0;
}

int cm_transmit(struct cm_port *port, const struct mad_addr *to, const union cm_msg *msg)
{
	if (!port->dev)
		return -ENODEV;
	return port->dev->ops->mad_send(port->agent, to, msg, CM_MAD, 0, 0);
}
