/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port's `pcap`: what crosses the port from open on, as a stream in the
 * format of libpcap. Packets go from the LRH to the VCRC. tshark and Wireshark
 * don't read DLT_INFINIBAND (247), so the link type is ERF (197), whose records
 * say InfiniBand, the direction, a bad CRC, and how many packets were lost
 * since the last one because the reader was too slow for its buffer.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "fabric/fabric.h"
#include "fabric/packet.h"
#include "fs/rows.h"

enum {
	BUFFER = 4 << 20,
	MAX_PACKET = 8192,		/* the largest one has 4096 bytes of payload */
	LINKTYPE_ERF = 197,
	ERF_INFINIBAND = 21,
};

enum {				/* ERF's flags */
	ERF_OUT		= 1 << 0,	/* capture interface 1 of 0..3: what the port sends */
	ERF_VARYING	= 1 << 2,
	ERF_TRUNCATED	= 1 << 3,
	ERF_RX_ERROR	= 1 << 4,
};

/* https://www.tcpdump.org/manpages/pcap-savefile.5.html */
struct pcap_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, sigfigs, snaplen, linktype;
};

struct pcap_record {
	uint32_t sec, nsec;
	uint32_t len, wire_len;
};

/* Endace's extensible record format; all but the time is big-endian. */
struct erf_header {
	__le64 time;			/* 32.32 bits of seconds */
	uint8_t type, flags;
	__be16 len, lost, wire_len;
};

struct record {
	struct pcap_record pcap;
	struct erf_header erf;
	uint8_t data[MAX_PACKET];
};

static const struct pcap_header pcap_header = {
	.magic = 0xa1b23c4d,
	.major = 2,
	.minor = 4,
	.snaplen = sizeof(struct erf_header) + MAX_PACKET,
	.linktype = LINKTYPE_ERF,
};

/* An open file. Bytes from head to tail wait to be read, both counted modulo BUFFER. */
struct pcap {
	struct tap tap;
	struct task task;		/* answers readers, once for many packets */
	struct pcap *prev, *next;	/* in fs->pcaps */
	struct file *file;
	struct port *port;		/* NULL: gone */
	struct waitq readers;
	uint64_t head, tail;
	unsigned int lost;		/* packets since the last record */
	char *buf;
};

static void put_bytes(struct pcap *pcap, const void *data, size_t len)
{
	size_t at = pcap->tail % BUFFER, first = BUFFER - at;

	if (first > len)
		first = len;
	memcpy(pcap->buf + at, data, first);
	memcpy(pcap->buf, (const char *)data + first, len - first);
	pcap->tail += len;
}

static size_t take_bytes(struct pcap *pcap, void *data, size_t size)
{
	size_t at = pcap->head % BUFFER, first = BUFFER - at, len = pcap->tail - pcap->head;

	if (len > size)
		len = size;
	if (first > len)
		first = len;
	memcpy(data, pcap->buf + at, first);
	memcpy((char *)data + first, pcap->buf, len - first);
	pcap->head += len;
	return len;
}

/* Time and lengths of a packet, of which len bytes are in the record. */
static void record_head(struct record *rec, size_t wire_len, size_t len)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	rec->pcap.sec = now.tv_sec;
	rec->pcap.nsec = now.tv_nsec;
	rec->pcap.wire_len = sizeof(rec->erf) + wire_len;
	rec->pcap.len = sizeof(rec->erf) + len;
	rec->erf.time = htole64((uint64_t)now.tv_sec << 32 |
				((uint64_t)now.tv_nsec << 32) / 1000000000);
	rec->erf.len = htobe16(sizeof(rec->erf) + len);
	rec->erf.wire_len = htobe16(wire_len);
}

static void pcap_packet(struct tap *tap, const struct packet *pkt, bool out)
{
	struct pcap *pcap = (struct pcap *)tap;
	struct record rec;
	size_t len;

	if (BUFFER - (pcap->tail - pcap->head) < sizeof(rec)) {
		pcap->file->ibfs->fs->pcap_dropped++;
		pcap->lost++;
		return;
	}
	len = packet_wire_image(pkt, rec.data, sizeof(rec.data));
	rec.erf.type = ERF_INFINIBAND;
	rec.erf.flags = ERF_VARYING | (out ? ERF_OUT : 0) | (pkt->bad_crc ? ERF_RX_ERROR : 0) |
			(len > sizeof(rec.data) ? ERF_TRUNCATED : 0);
	rec.erf.lost = htobe16(pcap->lost < UINT16_MAX ? pcap->lost : UINT16_MAX);
	pcap->lost = 0;
	record_head(&rec, len, len < sizeof(rec.data) ? len : sizeof(rec.data));
	put_bytes(pcap, &rec, sizeof(rec.pcap) + rec.pcap.len);
	task_queue(pcap->file->ibfs->tasks, &pcap->task);
}

static void answer(struct pcap *pcap, struct fs_req *req)
{
	size_t len = pcap->tail - pcap->head;
	char *data;

	if (len > req->size)
		len = req->size;
	data = malloc(len);
	if (!data) {
		fs_reply(req, -ENOMEM, NULL, 0);
		return;
	}
	take_bytes(pcap, data, len);
	fs_reply(req, len, data, len);
	free(data);
}

static void pcap_ready(struct task *task)
{
	struct pcap *pcap = (struct pcap *)((char *)task - offsetof(struct pcap, task));
	struct fs_req *req;

	while (pcap->head != pcap->tail && (req = waitq_take(&pcap->readers)) != NULL)
		answer(pcap, req);
	fs_wake(pcap->file);
}

static struct port *find_port(struct ibfs *ibfs, struct path path)
{
	struct ibfs_device *dev;

	if (path.kind == KIND_NODE_PCAP)
		return &ibfs->fabric->nodes[path.idx]->ports[path.port];
	dev = path_device(ibfs, path);
	return dev->ops->fabric_port ? dev->ops->fabric_port(dev, path.port) : NULL;
}

static ssize_t pcap_open(struct file *file, struct fs_req *req)
{
	struct port *port = find_port(file->ibfs, file->path);
	struct pcap *pcap;

	(void)req;
	if (!port)
		return -EOPNOTSUPP;
	pcap = calloc(1, sizeof(*pcap));
	if (!pcap)
		return -ENOMEM;
	file->priv = pcap;
	file->hints = FILE_QUEUE;
	pcap->file = file;
	pcap->task.fn = pcap_ready;
	pcap->tap.fn = pcap_packet;
	pcap->buf = malloc(BUFFER);
	if (!pcap->buf)
		return -ENOMEM;
	pcap->port = port;
	tap_attach(port, &pcap->tap);
	DL_APPEND(file->ibfs->fs->pcaps, pcap);
	put_bytes(pcap, &pcap_header, sizeof(pcap_header));
	return 0;
}

static void detach(struct pcap *pcap)
{
	if (!pcap->port)
		return;
	tap_detach(pcap->port, &pcap->tap);
	DL_DELETE(pcap->file->ibfs->fs->pcaps, pcap);
	pcap->port = NULL;
}

static void pcap_release(struct file *file)
{
	struct pcap *pcap = file->priv;

	if (!pcap)
		return;
	detach(pcap);
	task_cancel(file->ibfs->tasks, &pcap->task);
	free(pcap->buf);
	free(pcap);
}

static ssize_t pcap_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off)
{
	struct pcap *pcap = file->priv;

	(void)off;
	if (!size)
		return 0;
	if (pcap->head != pcap->tail && !pcap->readers.head)
		return take_bytes(pcap, buf, size);
	if (!pcap->port)
		return 0;
	if (file->flags & O_NONBLOCK)
		return -EAGAIN;
	req->size = size;
	return waitq_add(&pcap->readers, req);
}

static unsigned int pcap_poll(struct file *file)
{
	struct pcap *pcap = file->priv;

	return pcap->head != pcap->tail || !pcap->port ? POLLIN | POLLRDNORM : 0;
}

const struct file_ops pcap_ops = {
	.open = pcap_open,
	.release = pcap_release,
	.read = pcap_read,
	.poll = pcap_poll,
};

/* The capture ends: its readers read what there is, and then end of file. */
static void end_capture(struct pcap *pcap)
{
	struct fs_req *req;

	detach(pcap);
	pcap_ready(&pcap->task);
	while ((req = waitq_take(&pcap->readers)) != NULL)
		fs_reply(req, 0, NULL, 0);
}

void pcap_node_gone(struct ibfs *ibfs, const struct node *node)
{
	struct pcap *pcap, *tmp;

	DL_FOREACH_SAFE(ibfs->fs->pcaps, pcap, tmp)
		if (pcap->port->node == node)
			end_capture(pcap);
}

void pcap_device_gone(const struct ibfs_device *dev)
{
	struct pcap *pcap, *tmp;

	DL_FOREACH_SAFE(dev->ibfs->fs->pcaps, pcap, tmp)
		if (pcap->file->path.kind == KIND_PORT_PCAP && pcap->file->path.dev == dev->num)
			end_capture(pcap);
}
