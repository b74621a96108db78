/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `metrics`: the text format of Prometheus, a line at a time. Units are its own
 * (bytes, seconds), not those of the counters' files.
 */
#include <inttypes.h>
#include <time.h>

#include <ibfs/ipoib.h>

#include "fabric/fabric.h"
#include "fs/rows.h"

/* Words of 4 bytes become bytes. */
static const struct metric {
	enum counter counter;
	unsigned int unit;
	const char *name, *help;
} port_metrics[] = {
	{ CNT_PORT_XMIT_DATA, 4, "data_transmitted_bytes",
	  "Bytes of data transmitted on all virtual lanes" },
	{ CNT_PORT_RCV_DATA, 4, "data_received_bytes",
	  "Bytes of data received on all virtual lanes" },
	{ CNT_PORT_XMIT_PACKETS, 1, "packets_transmitted", "Packets transmitted" },
	{ CNT_PORT_RCV_PACKETS, 1, "packets_received", "Packets received" },
	{ CNT_UNICAST_XMIT_PACKETS, 1, "unicast_packets_transmitted",
	  "Unicast packets transmitted" },
	{ CNT_UNICAST_RCV_PACKETS, 1, "unicast_packets_received", "Unicast packets received" },
	{ CNT_MULTICAST_XMIT_PACKETS, 1, "multicast_packets_transmitted",
	  "Multicast packets transmitted" },
	{ CNT_MULTICAST_RCV_PACKETS, 1, "multicast_packets_received",
	  "Multicast packets received" },
	{ CNT_PORT_XMIT_WAIT, 1, "transmit_wait",
	  "Ticks during which the port had data to send and could not" },
	{ CNT_PORT_XMIT_DISCARDS, 1, "transmit_discards", "Outbound packets discarded" },
	{ CNT_PORT_RCV_ERRORS, 1, "receive_errors", "Packets received with an error" },
	{ CNT_PORT_RCV_REMOTE_PHYSICAL_ERRORS, 1, "receive_remote_physical_errors",
	  "Packets received that were marked bad on their way" },
	{ CNT_PORT_RCV_SWITCH_RELAY_ERRORS, 1, "receive_switch_relay_errors",
	  "Packets received that could not be forwarded" },
	{ CNT_PORT_XMIT_CONSTRAINT_ERRORS, 1, "transmit_constraint_errors",
	  "Packets not transmitted because of a constraint" },
	{ CNT_PORT_RCV_CONSTRAINT_ERRORS, 1, "receive_constraint_errors",
	  "Packets discarded on receive because of a constraint" },
	{ CNT_SYMBOL_ERROR, 1, "symbol_errors", "Minor link errors" },
	{ CNT_LINK_ERROR_RECOVERY, 1, "link_error_recoveries", "Successful link recoveries" },
	{ CNT_LINK_DOWNED, 1, "link_downed", "Link recoveries that failed" },
	{ CNT_LOCAL_LINK_INTEGRITY_ERRORS, 1, "local_link_integrity_errors",
	  "Times that local physical errors passed the threshold" },
	{ CNT_EXCESSIVE_BUFFER_OVERRUN_ERRORS, 1, "excessive_buffer_overrun_errors",
	  "Times that buffer overruns passed the threshold" },
	{ CNT_VL15_DROPPED, 1, "vl15_dropped", "Management packets dropped for lack of room" },
};

/* What a family of lines is printed of, and which families there are. */
enum { PART_COUNTERS, PART_GAUGES, PART_IPOIB, PART_DAEMON, PARTS };

/* Where a reader is. */
struct metrics {
	unsigned int part;		/* PART_* */
	unsigned int family;		/* of the part */
	bool named;			/* the family's HELP and TYPE are printed */
	unsigned int port;		/* of what comes next */
	uint64_t from;			/* the device's or interface's number */
};

/* The next port of any device, or NULL: all were. */
static struct ibfs_device *next_port(struct ibfs *ibfs, struct metrics *at, unsigned int *port)
{
	struct ibfs_device *dev = device_from(ibfs, at->from);

	if (!dev)
		return NULL;
	if (dev->num != at->from || at->port < dev->first_port) {
		at->from = dev->num;
		at->port = dev->first_port;
	}
	*port = at->port;
	if (at->port++ < dev->num_ports)
		return dev;
	at->from++;
	at->port = 0;
	return dev;
}

static void head(struct textbuf *out, const char *prefix, const char *name, const char *suffix,
		 const char *help, const char *type)
{
	text_printf(out, "# HELP ibfs_%s%s%s %s.\n# TYPE ibfs_%s%s%s %s\n", prefix, name, suffix,
		    help, prefix, name, suffix, type);
}

static bool port_counter(struct ibfs *ibfs, struct metrics *at, struct textbuf *out)
{
	const struct metric *m = &port_metrics[at->family];
	struct ibfs_device *dev;
	unsigned int port;
	uint64_t value;

	if (!at->named)
		head(out, "port_", m->name, "_total", m->help, "counter");
	dev = next_port(ibfs, at, &port);
	if (dev && dev->ops->query_counter(dev, port, m->counter, &value) == 0)
		text_printf(out, "ibfs_port_%s_total{device=\"%s\",port=\"%u\"} %" PRIu64 "\n",
			    m->name, dev->name, port, value * m->unit);
	return dev;
}

static unsigned int state_value(const struct ibv_port_attr *attr)
{
	return attr->state;
}

static unsigned int phys_state_value(const struct ibv_port_attr *attr)
{
	return attr->phys_state;
}

static unsigned int lid_value(const struct ibv_port_attr *attr)
{
	return attr->lid;
}

static const struct gauge {
	const char *name, *help;
	unsigned int (*value)(const struct ibv_port_attr *attr);
} port_gauges[] = {
	{ "state", "Logical state: 1 down, 2 init, 3 armed, 4 active", state_value },
	{ "physical_state", "Physical state: 2 polling, 3 disabled, 5 link up", phys_state_value },
	{ "lid", "Base local identifier", lid_value },
};

static bool port_gauge(struct ibfs *ibfs, struct metrics *at, struct textbuf *out)
{
	const struct gauge *gauge = &port_gauges[at->family];
	struct ibv_port_attr attr;
	struct ibfs_device *dev;
	unsigned int port;

	if (!at->named)
		head(out, "port_", gauge->name, "", gauge->help, "gauge");
	dev = next_port(ibfs, at, &port);
	if (dev && dev->ops->query_port(dev, port, &attr) == 0)
		text_printf(out, "ibfs_port_%s{device=\"%s\",port=\"%u\"} %u\n", gauge->name,
			    dev->name, port, gauge->value(&attr));
	return dev;
}

static bool ipoib_counter(struct ibfs *ibfs, struct metrics *at, struct textbuf *out)
{
	const struct ipoib_stat_name *stat = &ipoib_stat_names[at->family];

	if (!stat->help)
		return false;
	if (!at->named)
		head(out, "ipoib_", stat->name, "_total", stat->help, "counter");
	return ipoib_metric(ibfs, &at->from, stat, out);
}

static void daemon_value(struct textbuf *out, const char *name, const char *type, const char *help,
			 double value)
{
	head(out, "", name, "", help, type);
	text_printf(out, "ibfs_%s %.15g\n", name, value);
}

static bool daemon_values(struct ibfs *ibfs, struct metrics *at, struct textbuf *out)
{
	const struct fabric *fabric = ibfs->fabric;
	struct timespec cpu;

	(void)at;
	daemon_value(out, "devices", "gauge", "Devices in the tree", ibfs->num_devices);
	if (fabric) {
		daemon_value(out, "fabric_nodes", "gauge", "Nodes of the fabric",
			     HASH_CNT(hh_id, fabric->by_id));
		daemon_value(out, "fabric_links", "gauge", "Links of the fabric",
			     fabric->live_links);
	}
	accounts_metrics(ibfs->fs->accounts, out);
	daemon_value(out, "open_files", "gauge", "Open files", ibfs->fs->open_files);
	daemon_value(out, "rdma_cm_ids", "gauge", "Identifiers of connections by rdma_cm",
		     ucma_count(ibfs->fs));
	daemon_value(out, "rdma_cm_listeners", "gauge", "Those of them that listen",
		     ibfs->fs->ucma_listening);
	daemon_value(out, "requests_total", "counter", "Reads, writes and ioctls served",
		     ibfs->fs->requests);
	daemon_value(out, "capture_dropped_packets_total", "counter",
		     "Packets that pcap files lost because their readers were slow",
		     ibfs->fs->pcap_dropped);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	daemon_value(out, "cpu_seconds_total", "counter", "Processor time of the daemon",
		     cpu.tv_sec + cpu.tv_nsec / 1e9);
	return false;
}

static unsigned int families(unsigned int part)
{
	switch (part) {
	case PART_COUNTERS:
		return sizeof(port_metrics) / sizeof(port_metrics[0]);
	case PART_GAUGES:
		return sizeof(port_gauges) / sizeof(port_gauges[0]);
	case PART_IPOIB:
		return ipoib_num_stat_names;
	default:
		return 1;
	}
}

/* A line or two. */
static int metrics_more(struct ibfs *ibfs, struct path path, void *state, struct textbuf *out)
{
	/* The family's next line; false: it has no more. */
	static bool (*const print[PARTS])(struct ibfs *ibfs, struct metrics *at,
					  struct textbuf *out) = {
		[PART_COUNTERS] = port_counter, [PART_GAUGES] = port_gauge,
		[PART_IPOIB] = ipoib_counter, [PART_DAEMON] = daemon_values,
	};
	struct metrics *at = state;
	bool more = print[at->part](ibfs, at, out);

	(void)path;
	at->named = more;
	if (more)
		return 1;
	at->from = at->port = 0;
	if (++at->family < families(at->part))
		return 1;
	at->family = 0;
	return ++at->part < PARTS;
}

const struct file_ops metrics_ops = {
	.show_more = metrics_more,
	.state_size = sizeof(struct metrics),
};
