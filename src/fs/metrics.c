/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `metrics`: the text format of Prometheus. Units are its own (bytes,
 * seconds), not those of the counters' files.
 */
#include <inttypes.h>
#include <time.h>
#include <utlist.h>

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

static void port_counter(struct ibfs_device *dev, const struct metric *m, struct textbuf *out)
{
	unsigned int port;
	uint64_t value;

	for (port = dev->first_port; port <= dev->num_ports; port++)
		if (dev->ops->query_counter(dev, port, m->counter, &value) == 0)
			text_printf(out, "ibfs_port_%s_total{device=\"%s\",port=\"%u\"} %" PRIu64 "\n",
				    m->name, dev->name, port, value * m->unit);
}

static void port_counters(struct ibfs *ibfs, struct textbuf *out)
{
	struct ibfs_device *dev;
	const struct metric *m;
	unsigned int i;

	for (i = 0; i < sizeof(port_metrics) / sizeof(port_metrics[0]); i++) {
		m = &port_metrics[i];
		text_printf(out, "# HELP ibfs_port_%s_total %s.\n# TYPE ibfs_port_%s_total counter\n",
			    m->name, m->help, m->name);
		DL_FOREACH(ibfs->devices, dev)
			port_counter(dev, m, out);
	}
}

static void port_gauge(struct ibfs *ibfs, struct textbuf *out, const char *name, const char *help,
		       unsigned int (*value)(const struct ibv_port_attr *attr))
{
	struct ibv_port_attr attr;
	struct ibfs_device *dev;
	unsigned int port;

	text_printf(out, "# HELP ibfs_port_%s %s.\n# TYPE ibfs_port_%s gauge\n", name, help, name);
	DL_FOREACH(ibfs->devices, dev)
		for (port = dev->first_port; port <= dev->num_ports; port++)
			if (dev->ops->query_port(dev, port, &attr) == 0)
				text_printf(out, "ibfs_port_%s{device=\"%s\",port=\"%u\"} %u\n",
					    name, dev->name, port, value(&attr));
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

static void daemon_value(struct textbuf *out, const char *name, const char *type, const char *help,
			 double value)
{
	text_printf(out, "# HELP ibfs_%s %s.\n# TYPE ibfs_%s %s\nibfs_%s %.15g\n", name, help, name,
		    type, name, value);
}

static void fabric_values(const struct fabric *fabric, struct textbuf *out)
{
	unsigned int i, nodes = 0, links = 0;

	for (i = 0; i < fabric->num_nodes; i++)
		nodes += fabric->nodes[i] != NULL;
	for (i = 0; i < fabric->num_links; i++)
		links += fabric->links[i] != NULL;
	daemon_value(out, "fabric_nodes", "gauge", "Nodes of the fabric", nodes);
	daemon_value(out, "fabric_links", "gauge", "Links of the fabric", links);
}

int metrics_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	unsigned int devices;
	struct ibfs_device *dev;
	struct timespec cpu;

	(void)path;
	port_counters(ibfs, out);
	port_gauge(ibfs, out, "state", "Logical state: 1 down, 2 init, 3 armed, 4 active",
		   state_value);
	port_gauge(ibfs, out, "physical_state", "Physical state: 2 polling, 3 disabled, 5 link up",
		   phys_state_value);
	port_gauge(ibfs, out, "lid", "Base local identifier", lid_value);
	ipoib_metrics(ibfs, out);
	DL_COUNT(ibfs->devices, dev, devices);
	daemon_value(out, "devices", "gauge", "Devices in the tree", devices);
	if (ibfs->fabric)
		fabric_values(ibfs->fabric, out);
	accounts_metrics(ibfs->fs->accounts, out);
	daemon_value(out, "open_files", "gauge", "Open files", ibfs->fs->open_files);
	daemon_value(out, "rdma_cm_ids", "gauge", "Identifiers of connections by rdma_cm",
		     ucma_count(ibfs->fs));
	daemon_value(out, "rdma_cm_listeners", "gauge", "Those of them that listen",
		     ucma_listening(ibfs->fs));
	daemon_value(out, "requests_total", "counter", "Reads, writes and ioctls served",
		     ibfs->fs->requests);
	daemon_value(out, "capture_dropped_packets_total", "counter",
		     "Packets that pcap files lost because their readers were slow",
		     ibfs->fs->pcap_dropped);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	daemon_value(out, "cpu_seconds_total", "counter", "Processor time of the daemon",
		     cpu.tv_sec + cpu.tv_nsec / 1e9);
	return 0;
}
