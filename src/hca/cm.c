/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends of connections: how they come and go, by what they are found, and what
 * their timers do: a message without an answer is sent again, TIMEWAIT ends.
 * IBA 12.9.5 to 12.9.8.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "hca/cm.h"

#define TIMEWAIT_MIN	0.01	/* s: what may still be on its way in a small fabric */

int cm_tell(struct cm_id *id, const struct cm_event *event)
{
	int ret = 0;

	if (!id->handler)
		return 0;
	id->busy++;
	ret = id->handler(id, event);
	id->busy--;
	if (id->dead && !id->busy)
		free(id);
	return ret;
}

int cm_tell_type(struct cm_id *id, enum cm_event_type type)
{
	const struct cm_event event = { .type = type };

	return cm_tell(id, &event);
}

void cm_arm(struct cm_id *id, double seconds)
{
	struct ev_loop *loop = id->port->ibfs->loop;

	ev_timer_stop(loop, &id->timer);
	ev_timer_set(&id->timer, seconds + (ev_time() - ev_now(loop)), 0.);
	ev_timer_start(loop, &id->timer);
}

void cm_disarm(struct cm_id *id)
{
	ev_timer_stop(id->port->ibfs->loop, &id->timer);
}

static void forget_remote(struct cm_id *id)
{
	struct cm_id **by_remote = id->sidr ? &id->port->by_sidr : &id->port->by_remote;

	if (id->remote.num)
		HASH_DELETE(hh_remote, *by_remote, id);
	if (id->remote_qp.num)
		HASH_DELETE(hh_qp, id->port->by_qp, id);
	id->remote.num = id->remote_qp.num = 0;
	id->sidr = false;
}

void cm_learn_remote(struct cm_id *id, uint64_t guid, uint32_t remote_id, uint32_t qpn)
{
	forget_remote(id);
	id->remote_id = remote_id;
	id->remote_qpn = qpn;
	cm_key_init(&id->remote, guid, remote_id);
	cm_key_init(&id->remote_qp, guid, qpn);
	HASH_ADD(hh_remote, id->port->by_remote, remote, sizeof(id->remote), id);
	HASH_ADD(hh_qp, id->port->by_qp, remote_qp, sizeof(id->remote_qp), id);
}

static void stop_listening(struct cm_id *id)
{
	if (id->state == CM_LISTEN)
		HASH_DELETE(hh_service, id->port->by_service, id);
}

void cm_idle(struct cm_id *id)
{
	cm_disarm(id);
	stop_listening(id);
	forget_remote(id);
	id->state = CM_IDLE;
}

/* 12.9.8.4: until nothing of the connection can still be under way. */
void cm_timewait(struct cm_id *id)
{
	double wait = 2 * cm_seconds(id->ack_timeout);

	id->state = CM_TIMEWAIT;
	cm_arm(id, wait > TIMEWAIT_MIN ? wait : TIMEWAIT_MIN);
}

static void drop(struct cm_id *id)
{
	struct cm_port *port = id->port;

	cm_idle(id);
	HASH_DELETE(hh_local, port->by_local, id);
	DL_DELETE(port->ids, id);
	port->num_ids--;
	if (id->busy)
		id->dead = true;
	else
		free(id);
	cm_port_put(port);
}

/* A REQ or REP that nobody answers ends it; a DREQ is as good as answered. */
static void give_up(struct cm_id *id)
{
	if (id->state == CM_DREQ_SENT) {
		cm_timewait(id);
		cm_tell_type(id, CM_EV_DISCONNECTED);
		return;
	}
	if (id->state == CM_REQ_SENT) {
		__be64 guid = htobe64(cm_port_guid(id->port));

		cm_send_rej(id, CM_REJ_TIMEOUT, &guid, sizeof(guid), NULL, 0);
	}
	cm_idle(id);
	cm_tell_type(id, CM_EV_UNREACHABLE);
}

static void timer_due(struct ev_loop *loop, ev_timer *timer, int revents)
{
	struct cm_id *id = timer->data;

	(void)loop;
	(void)revents;
	if (id->state == CM_TIMEWAIT) {
		if (id->orphan) {
			drop(id);
			return;
		}
		cm_idle(id);
		cm_tell_type(id, CM_EV_TIMEWAIT_EXIT);
	} else if (id->retries) {
		id->retries--;
		cm_arm(id, id->timeout);
		cm_resend(id);
	} else {
		give_up(id);
	}
}

static uint32_t new_local_id(struct cm_port *port)
{
	const struct cm_id *id;
	uint32_t num;

	do {
		num = arc4random();
		HASH_FIND(hh_local, port->by_local, &num, sizeof(num), id);
	} while (!num || id);
	return num;
}

int cm_id_make(struct cm_port *port, struct cm_id **out)
{
	struct cm_id *id;

	if (port->num_ids >= CM_MAX_IDS)
		return -ENOMEM;
	id = calloc(1, sizeof(*id));
	if (!id)
		return -ENOMEM;
	id->port = port;
	ev_init(&id->timer, timer_due);
	id->timer.data = id;
	id->local_id = new_local_id(port);
	HASH_ADD(hh_local, port->by_local, local_id, sizeof(id->local_id), id);
	DL_APPEND(port->ids, id);
	port->num_ids++;
	cm_port_hold(port);
	*out = id;
	return 0;
}

int cm_id_new(struct ibfs_device *dev, unsigned int num, cm_handler *handler, void *owner,
	      struct cm_id **id)
{
	struct cm_port *port;
	int err = cm_port_get(dev, num, &port);

	if (err)
		return err;
	err = cm_id_make(port, id);
	if (!err)
		cm_id_set(*id, handler, owner);
	cm_port_put(port);
	return err;
}

void cm_id_set(struct cm_id *id, cm_handler *handler, void *owner)
{
	id->handler = handler;
	id->owner = owner;
}

void *cm_id_owner(const struct cm_id *id)
{
	return id->owner;
}

enum cm_state cm_id_state(const struct cm_id *id)
{
	return id->state;
}

/* Say to the other end that it is over. */
static void part(struct cm_id *id)
{
	static const struct cm_sidr_rep reject = { .status = CM_SIDR_REJECT };
	__be64 guid = htobe64(cm_port_guid(id->port));

	switch (id->state) {
	case CM_REQ_SENT:
		cm_send_rej(id, CM_REJ_TIMEOUT, &guid, sizeof(guid), NULL, 0);
		break;
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		cm_send_rej(id, CM_REJ_CONSUMER, NULL, 0, NULL, 0);
		break;
	case CM_ESTABLISHED:
		cm_send_dreq(id, NULL, 0);
		break;
	case CM_DREQ_RCVD:
		cm_send_drep(id, NULL, 0);
		break;
	case CM_SIDR_REQ_RCVD:
		cm_send_sidr_rep(id, &reject);
		break;
	default:
		break;
	}
}

void cm_id_free(struct cm_id *id)
{
	if (!id)
		return;
	cm_id_set(id, NULL, NULL);
	part(id);
	if (id->state == CM_DREQ_SENT || id->state == CM_TIMEWAIT)
		id->orphan = true;
	else
		drop(id);
}

int cm_listen(struct cm_id *id, uint64_t service_id)
{
	const struct cm_id *other;

	if (id->state != CM_IDLE || !id->port->dev)
		return -EINVAL;
	HASH_FIND(hh_service, id->port->by_service, &service_id, sizeof(service_id), other);
	if (other)
		return -EADDRINUSE;
	id->service_id = service_id;
	HASH_ADD(hh_service, id->port->by_service, service_id, sizeof(id->service_id), id);
	id->state = CM_LISTEN;
	return 0;
}
