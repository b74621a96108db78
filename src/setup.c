/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the configuration to a fabric and the devices on it. What the fabric
 * refuses is told with the configuration's file and line.
 */
#include <errno.h>
#include <fabric/fabric.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ibfs/backend.h>
#include <ibfs/conf.h>
#include <ibfs/ibfs.h>

__attribute__((format(printf, 3, 4)))
static int fail(char **err, int result, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(err, fmt, ap) < 0)
		*err = NULL;
	va_end(ap);
	return result;
}

static int add_node(struct fabric *fabric, const struct conf_node *cn, char **err)
{
	struct node *node;

	if (fabric_find(fabric, cn->name))
		return fail(err, -EEXIST, "%s: a node \"%s\" is there already", cn->where, cn->name);
	if (cn->guid && fabric_find_guid(fabric, cn->guid))
		return fail(err, -EEXIST, "%s: GUID 0x%016llx is node \"%s\" already", cn->where,
			    (unsigned long long)cn->guid,
			    fabric_find_guid(fabric, cn->guid)->id);
	node = node_new(fabric, cn->is_switch ? NODE_SWITCH : NODE_CA, cn->name, cn->ports,
			cn->guid);
	if (!node)
		return fail(err, -errno, "%s: node \"%s\": %s", cn->where, cn->name,
			    strerror(errno));
	snprintf(node->desc, sizeof(node->desc), "%s", cn->desc ? cn->desc : cn->name);
	return 0;
}

/* A port that a link may be plugged into, or NULL and *err. */
static struct port *find_port(struct fabric *fabric, const struct conf_link *cl,
			      const struct conf_end *end, char **err)
{
	struct node *node = fabric_find(fabric, end->node);

	if (!node) {
		fail(err, 0, "%s: no node \"%s\"", cl->where, end->node);
		return NULL;
	}
	if (end->port > node->num_ports) {
		fail(err, 0, "%s: \"%s\" has ports 1 to %u, no port %u", cl->where, end->node,
		     node->num_ports, end->port);
		return NULL;
	}
	if (node->ports[end->port].link) {
		fail(err, 0, "%s: port \"%s[%u]\" has a link already", cl->where, end->node,
		     end->port);
		return NULL;
	}
	return &node->ports[end->port];
}

/* A soft port can be whatever its cable is. */
static void set_speed(struct port *port, const struct conf_link *cl)
{
	if (cl->width) {
		port->width_supported |= (uint8_t)cl->width;
		port->width_enabled = (uint8_t)cl->width;
	}
	if (cl->speed) {
		port->speed_supported |= (uint8_t)cl->speed;
		port->speed_enabled = (uint8_t)cl->speed;
		port->speed_ext_supported |= (uint8_t)cl->speed_ext;
		port->speed_ext_enabled = (uint8_t)cl->speed_ext;
	}
	port_capabilities(port);
}

static int add_link(struct fabric *fabric, const struct conf_link *cl, char **err)
{
	struct port *a, *b;

	a = find_port(fabric, cl, &cl->a, err);
	if (!a)
		return -EINVAL;
	b = find_port(fabric, cl, &cl->b, err);
	if (!b)
		return -EINVAL;
	if (a == b)
		return fail(err, -EINVAL, "%s: a link needs two ports", cl->where);
	set_speed(a, cl);
	set_speed(b, cl);
	if (!link_new(a, b))
		return fail(err, -errno, "%s: link: %s", cl->where, strerror(errno));
	return 0;
}

static int make_fabric(struct ibfs *ibfs, char **err)
{
	const struct conf *conf = ibfs->conf;
	unsigned int i;
	int ret = 0;

	if (conf->default_fabric)
		return fabric_default(ibfs->fabric);
	if (conf->topology)
		ret = topology_load(ibfs->fabric, conf->topology, err);
	for (i = 0; !ret && i < conf->num_nodes; i++)
		ret = add_node(ibfs->fabric, &conf->nodes[i], err);
	for (i = 0; !ret && i < conf->num_links; i++)
		ret = add_link(ibfs->fabric, &conf->links[i], err);
	return ret;
}

static int add_device(struct ibfs *ibfs, const struct conf_device *cd, char **err)
{
	int ret;

	if (!fabric_find(ibfs->fabric, cd->node))
		return fail(err, -ENOENT, "%s: no node \"%s\" for the device \"%s\"", cd->where,
			    cd->node, cd->name);
	if (device_find(ibfs, cd->name))
		return fail(err, -EEXIST, "%s: a device \"%s\" is there already", cd->where,
			    cd->name);
	ret = soft_device_add(ibfs, cd->name, cd->node);
	if (ret == -EINVAL)
		return fail(err, ret, "%s: \"%s\": expected a name of 1 to 19 letters, digits, "
			    "\"_\", \"-\" or \".\"", cd->where, cd->name);
	if (ret == -EEXIST)
		return fail(err, ret, "%s: \"%s\" is a file of the tree itself: expected another name",
			    cd->where, cd->name);
	if (ret == -EBUSY)
		return fail(err, ret, "%s: node \"%s\" is another device already", cd->where,
			    cd->node);
	if (ret)
		return fail(err, ret, "%s: device \"%s\": %s", cd->where, cd->name, strerror(-ret));
	return 0;
}

/* Of a topology for which no device is named, the first HCA. */
static int add_first_device(struct ibfs *ibfs, char **err)
{
	const struct fabric *fabric = ibfs->fabric;
	struct conf_device cd = { .where = ibfs->conf->topology_where, .name = "rxe0" };
	unsigned int i;

	for (i = 0; i < fabric->num_nodes; i++) {
		if (!fabric->nodes[i] || fabric->nodes[i]->type != NODE_CA)
			continue;
		cd.node = fabric->nodes[i]->id;
		return add_device(ibfs, &cd, err);
	}
	return fail(err, -ENOENT, "%s: the topology has no HCA: name a `devices` list", cd.where);
}

int conf_apply(struct ibfs *ibfs, char **err)
{
	const struct conf *conf = ibfs->conf;
	unsigned int i;
	int ret;

	*err = NULL;
	ret = make_fabric(ibfs, err);
	if (!ret && !conf->subnet_manager)
		ret = static_subnet(ibfs->fabric, err);
	if (!ret && conf->topology && !conf->has_devices && !conf->num_devices)
		ret = add_first_device(ibfs, err);
	for (i = 0; !ret && i < conf->num_devices; i++)
		if (!conf->devices[i].verbs)
			ret = add_device(ibfs, &conf->devices[i], err);
	if (!ret)
		ret = rdevs_start(ibfs);
	if (ret && !*err)
		fail(err, ret, "cannot make the fabric: %s", strerror(-ret));
	return ret;
}
