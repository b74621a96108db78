/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port's IP interfaces: ipoib/clone and ipoib/NAME/, their commands, text,
 * statistics and raw mode. What an interface does stands in src/ipoib.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include <ibfs/ipoib.h>

#include "fs/rows.h"

#define FRAMES_KEPT	256	/* that a reader of `frame` may be behind */

enum {
	IPOIB_ADDRESS, IPOIB_BROADCAST, IPOIB_LINKMODE, IPOIB_MTU, IPOIB_STATUS, IPOIB_INFO,
	IPOIB_NEIGHBOURS, IPOIB_MULTICAST, IPOIB_TEXTS,
};

const struct entry ipoibs_entries[] = {
	{ "clone", KIND_IPOIB_CLONE, 0 },
	{ NULL, 0, 0 }
};

const struct entry ipoib_entries[] = {
	{ "ctl", KIND_IPOIB_CTL, 0 },
	{ "address", KIND_IPOIB_TEXT, IPOIB_ADDRESS },
	{ "broadcast", KIND_IPOIB_TEXT, IPOIB_BROADCAST },
	{ "linkmode", KIND_IPOIB_TEXT, IPOIB_LINKMODE },
	{ "mtu", KIND_IPOIB_TEXT, IPOIB_MTU },
	{ "status", KIND_IPOIB_TEXT, IPOIB_STATUS },
	{ "info", KIND_IPOIB_TEXT, IPOIB_INFO },
	{ "neighbours", KIND_IPOIB_TEXT, IPOIB_NEIGHBOURS },
	{ "multicast", KIND_IPOIB_TEXT, IPOIB_MULTICAST },
	{ "frame", KIND_IPOIB_FRAME, 0 },
	{ "events", KIND_IPOIB_EVENTS, 0 },
	{ "stats", KIND_IPOIB_STATS, 0 },
	{ NULL, 0, 0 }
};

const struct entry sys_net_entries[] = {
	{ "address", KIND_IPOIB_TEXT, IPOIB_ADDRESS },
	{ "broadcast", KIND_IPOIB_TEXT, IPOIB_BROADCAST },
	{ "mtu", KIND_IPOIB_TEXT, IPOIB_MTU },
	{ NULL, 0, 0 }
};

static int (*const shows[IPOIB_TEXTS])(const struct ipoib *ip, struct textbuf *out) = {
	[IPOIB_ADDRESS] = ipoib_show_address,
	[IPOIB_BROADCAST] = ipoib_show_broadcast,
	[IPOIB_LINKMODE] = ipoib_show_linkmode,
	[IPOIB_MTU] = ipoib_show_mtu,
	[IPOIB_STATUS] = ipoib_show_status,
	[IPOIB_INFO] = ipoib_show_info,
	[IPOIB_NEIGHBOURS] = ipoib_show_neighbours,
	[IPOIB_MULTICAST] = ipoib_show_multicast,
};

static struct ipoib *path_ipoib(struct ibfs *ibfs, struct path path)
{
	struct ipoib *ip = ipoib_from(ibfs, path.dev, path.port, path.idx);

	return ip && ipoib_num(ip) == path.idx ? ip : NULL;
}

static void print_name(const struct ipoib *ip, char name[256])
{
	if (ipoib_name(ip))
		snprintf(name, 256, "%s", ipoib_name(ip));
	else
		snprintf(name, 256, "%u", ipoib_num(ip));
}

static int ipoibs_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	const struct ipoib *ip = ipoib_find(ibfs, dir.dev, dir.port, name);

	if (!ip)
		return -ENOENT;
	child->kind = KIND_IPOIB;
	child->idx = ipoib_num(ip);
	return 0;
}

static int ipoibs_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		       struct path *child)
{
	const struct ipoib *ip = ipoib_from(ibfs, dir.dev, dir.port, *pos);

	if (!ip)
		return 0;
	print_name(ip, name);
	child->kind = KIND_IPOIB;
	child->idx = ipoib_num(ip);
	*pos = (uint64_t)ipoib_num(ip) + 1;
	return 1;
}

static int ipoibs_mkdir(struct ibfs *ibfs, struct path dir, const char *name, mode_t mode,
			const struct fs_cred *cred, struct path *child)
{
	const struct ipoib *ip;
	uint64_t num;

	(void)mode;
	if (!number_name(name, UINT64_MAX, &num) || strlen(name) > 200 ||
	    strpbrk(name, " \t\n\r=,"))
		return ibfs_fail(ibfs, EINVAL, "ipoib: \"%s\": a name has no white space, = or , "
				 "and is no number", name);
	if (ipoib_find(ibfs, dir.dev, dir.port, name))
		return -EEXIST;
	ip = ipoib_new(ibfs, path_device(ibfs, dir), dir.port, name, cred->uid, cred->gid);
	if (!ip)
		return -ENOMEM;
	child->kind = KIND_IPOIB;
	child->idx = ipoib_num(ip);
	return 0;
}

static int ipoibs_rmdir(struct ibfs *ibfs, struct path dir, const char *name,
			const struct fs_cred *cred)
{
	struct ipoib *ip = ipoib_find(ibfs, dir.dev, dir.port, name);

	(void)cred;
	if (!ip)
		return -ENOENT;
	if (!ipoib_name(ip))
		return -EBUSY;
	ipoib_remove(ip);
	return 0;
}

const struct dir_ops ipoibs_dir = {
	.lookup = ipoibs_lookup, .next = ipoibs_next, .mkdir = ipoibs_mkdir, .rmdir = ipoibs_rmdir,
};

/* sys/class/infiniband/DEVICE/device/net: by the name of the network interface. */
static struct ipoib *net_find(struct ibfs *ibfs, unsigned int dev, const char *name)
{
	struct ipoib *ip;

	for (ip = ipoib_of_device(ibfs, dev, 0); ip;
	     ip = ipoib_of_device(ibfs, dev, (uint64_t)ipoib_num(ip) + 1))
		if (!strcmp(ipoib_ifname(ip), name))
			return ip;
	return NULL;
}

static void net_path(const struct ipoib *ip, struct path *child)
{
	struct ibfs_device *dev;
	unsigned int port = 0;
	uint16_t pkey;

	ipoib_port(ip, &dev, &port, &pkey);
	child->kind = KIND_SYS_NET;
	child->port = port;
	child->idx = ipoib_num(ip);
}

static int nets_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	const struct ipoib *ip = net_find(ibfs, dir.dev, name);

	if (!ip)
		return -ENOENT;
	net_path(ip, child);
	return 0;
}

/* In two network namespaces the same name may be: it is listed, and found, once. */
static int nets_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		     struct path *child)
{
	const struct ipoib *ip;

	do {
		ip = ipoib_of_device(ibfs, dir.dev, *pos);
		if (!ip)
			return 0;
		*pos = (uint64_t)ipoib_num(ip) + 1;
	} while (net_find(ibfs, dir.dev, ipoib_ifname(ip)) != ip);
	snprintf(name, 256, "%s", ipoib_ifname(ip));
	net_path(ip, child);
	return 1;
}

const struct dir_ops sys_nets_dir = { .lookup = nets_lookup, .next = nets_next };

/* sys/class/infiniband/DEVICE/device has net/ while there is an interface, as in Linux. */
static int sys_device_lookup(struct ibfs *ibfs, struct path dir, const char *name,
			     struct path *child)
{
	if (strcmp(name, "net") || !ipoib_of_device(ibfs, dir.dev, 0))
		return -ENOENT;
	child->kind = KIND_SYS_NETS;
	return 0;
}

static int sys_device_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
			   struct path *child)
{
	if (*pos || sys_device_lookup(ibfs, dir, "net", child))
		return 0;
	strcpy(name, "net");
	*pos = 1;
	return 1;
}

const struct dir_ops sys_device_dir = { .lookup = sys_device_lookup, .next = sys_device_next };

int ipoib_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	const struct ipoib *ip = path_ipoib(ibfs, path);

	if (!ip)
		return -ENOENT;
	ipoib_owner(ip, &st->st_uid, &st->st_gid);
	return 0;
}

bool ipoib_event_prefix(struct ibfs *ibfs, struct path path, char *prefix, size_t size)
{
	const struct ipoib *ip = path_ipoib(ibfs, path);
	const struct ibfs_device *dev = path_device(ibfs, path);
	char name[256];

	if (!ip || !dev)
		return false;
	print_name(ip, name);
	snprintf(prefix, size, "device=%s port=%u ipoib=%s ", dev->name, path.port, name);
	return true;
}

static int text_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	const struct ipoib *ip = path_ipoib(ibfs, path);

	if (!ip || path.sub >= IPOIB_TEXTS)
		return -ENODEV;
	return shows[path.sub](ip, out);
}

const struct file_ops ipoib_text_ops = { .show = text_show };

static int stats_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	(void)ibfs;
	(void)dir;
	for (unsigned int i = 0; i < ipoib_num_stat_names; i++) {
		if (strcmp(ipoib_stat_names[i].name, name) != 0)
			continue;
		child->kind = KIND_IPOIB_STAT;
		child->sub = i;
		return 0;
	}
	return -ENOENT;
}

static int stats_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		      struct path *child)
{
	(void)ibfs;
	(void)dir;
	if (*pos >= ipoib_num_stat_names)
		return 0;
	snprintf(name, 256, "%s", ipoib_stat_names[*pos].name);
	child->kind = KIND_IPOIB_STAT;
	child->sub = *pos;
	++*pos;
	return 1;
}

const struct dir_ops ipoib_stats_dir = { .lookup = stats_lookup, .next = stats_next };

static int stat_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	const struct ipoib *ip = path_ipoib(ibfs, path);

	if (!ip || path.sub >= ipoib_num_stat_names)
		return -ENODEV;
	text_printf(out, "%" PRIu64 "\n", ipoib_stat(ip, ipoib_stat_names[path.sub].stat));
	return 0;
}

const struct file_ops ipoib_stat_ops = { .show = stat_show };

void ipoib_metrics(struct ibfs *ibfs, struct textbuf *out)
{
	const struct ibfs_device *dev;
	char name[256];

	for (unsigned int i = 0; i < ipoib_num_stat_names; i++) {
		const struct ipoib_stat_name *stat = &ipoib_stat_names[i];

		if (!stat->help)
			continue;
		text_printf(out, "# HELP ibfs_ipoib_%s_total %s.\n# TYPE ibfs_ipoib_%s_total "
			    "counter\n", stat->name, stat->help, stat->name);
		DL_FOREACH(ibfs->devices, dev) {
			for (unsigned int port = dev->first_port; port <= dev->num_ports; port++) {
				const struct ipoib *ip = NULL;
				uint64_t from = 0;

				while ((ip = ipoib_from(ibfs, dev->num, port, from)) != NULL) {
					print_name(ip, name);
					text_printf(out, "ibfs_ipoib_%s_total{device=\"%s\","
						    "port=\"%u\",interface=\"%s\"} %" PRIu64 "\n",
						    stat->name, dev->name, port, name,
						    ipoib_stat(ip, stat->stat));
					from = (uint64_t)ipoib_num(ip) + 1;
				}
			}
		}
	}
}

/* Commands. */
static int refuse(struct ipoib *ip, const char *usage)
{
	return ibfs_fail(ipoib_ibfs(ip), EINVAL, "ipoib/ctl: expected `%s`", usage);
}

static int do_create(struct ipoib *ip, const struct ctl_line *line)
{
	const char *ifname = "", *value;
	uint64_t pkey = 0;

	for (unsigned int i = 1; i < line->argc; i++) {
		if ((value = ctl_value(line->argv[i], "pkey")) != NULL &&
		    !parse_u64(value, UINT16_MAX, &pkey) && (pkey & 0x7fff))
			continue;
		if ((value = ctl_value(line->argv[i], "ifname")) == NULL || !*value ||
		    strlen(value) >= 16 || strpbrk(value, "/:%"))
			return refuse(ip, "create pkey=0x8001 ifname=ib0");
		ifname = value;
	}
	return ipoib_create(ip, pkey, ifname);
}

static int do_linkmode(struct ipoib *ip, const struct ctl_line *line)
{
	bool cm = line->argc == 2 && !strcmp(line->argv[1], "cm");

	if (!cm && (line->argc != 2 || strcmp(line->argv[1], "ud") != 0))
		return refuse(ip, "linkmode cm|ud");
	return ipoib_set_linkmode(ip, cm);
}

static int do_mtu(struct ipoib *ip, const struct ctl_line *line)
{
	uint64_t mtu;

	if (line->argc != 2 || parse_u64(line->argv[1], UINT16_MAX, &mtu))
		return refuse(ip, "mtu BYTES");
	return ipoib_set_mtu(ip, mtu);
}

static int on_off(const struct ctl_line *line)
{
	if (line->argc == 2 && !strcmp(line->argv[1], "on"))
		return 1;
	return line->argc == 2 && !strcmp(line->argv[1], "off") ? 0 : -EINVAL;
}

static int do_promisc(struct ipoib *ip, const struct ctl_line *line)
{
	int on = on_off(line);

	return on < 0 ? refuse(ip, "promisc on|off") : ipoib_set_promisc(ip, on);
}

static int do_offload(struct ipoib *ip, const struct ctl_line *line)
{
	int on = on_off(line);

	return on < 0 ? refuse(ip, "offload on|off") : ipoib_set_offload(ip, on);
}

static const struct verb {
	const char *name;
	int (*run)(struct ipoib *ip, const struct ctl_line *line);
} verbs[] = {
	{ "create", do_create }, { "linkmode", do_linkmode }, { "mtu", do_mtu },
	{ "promisc", do_promisc }, { "offload", do_offload },
};

static int run_command(void *ctx, struct ctl_line *line)
{
	struct ipoib *ip = ctx;

	for (unsigned int i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(verbs[i].name, line->argv[0]))
			return verbs[i].run(ip, line);
	return refuse(ip, "create|linkmode|mtu|promisc|offload ...");
}

static ssize_t clone_open(struct file *file, struct fs_req *req)
{
	struct ibfs_device *dev = path_device(file->ibfs, file->path);
	struct ipoib *ip = ipoib_new(file->ibfs, dev, file->path.port, NULL, req->cred.uid,
				     req->cred.gid);

	if (!ip)
		return -ENOMEM;
	ipoib_get(ip);
	file->priv = ip;
	return 0;
}

static ssize_t ctl_open(struct file *file, struct fs_req *req)
{
	struct ipoib *ip = path_ipoib(file->ibfs, file->path);

	(void)req;
	if (!ip)
		return -ENOENT;
	ipoib_get(ip);
	file->priv = ip;
	return 0;
}

static void ctl_release(struct file *file)
{
	if (file->priv)
		ipoib_put(file->priv);
}

static ssize_t ctl_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off)
{
	char text[16];
	size_t len = snprintf(text, sizeof(text), "%u\n", ipoib_num(file->priv));

	(void)req;
	return read_bytes(text, len, buf, size, off);
}

static ssize_t ctl_do_write(struct file *file, struct fs_req *req, const void *buf, size_t size,
			    off_t off)
{
	(void)req;
	(void)off;
	if (ipoib_gone(file->priv))
		return -EIO;
	return ctl_write(file->ibfs, buf, size, run_command, file->priv);
}

const struct file_ops ipoib_clone_ops = {
	.open = clone_open, .release = ctl_release, .read = ctl_read, .write = ctl_do_write,
};

const struct file_ops ipoib_ctl_ops = {
	.open = ctl_open, .release = ctl_release, .read = ctl_read, .write = ctl_do_write,
};

/* An open `frame`: what came since it was opened. */
struct frame {
	struct frame *prev, *next;
	size_t len;
	uint8_t data[];
};

struct frames {
	struct ipoib_listener listener;	/* first */
	struct file *file;
	struct ipoib *ip;
	struct frame *head;
	unsigned int count;
	struct waitq readers;
	bool ended;
};

static void frame_take(struct frames *fr, struct frame *frame)
{
	DL_DELETE(fr->head, frame);
	fr->count--;
	free(frame);
}

static void frame_came(struct ipoib_listener *listener, const void *data, size_t len)
{
	struct frames *fr = (struct frames *)listener;
	struct fs_req *req = waitq_take(&fr->readers);
	struct frame *frame;

	if (!data) {
		fr->ended = true;
		if (req)
			fs_reply(req, -EIO, NULL, 0);
		waitq_fail(&fr->readers, -EIO);
		fs_wake(fr->file);
		return;
	}
	if (req) {
		if (len > req->size)
			len = req->size;
		fs_reply(req, len, data, len);
		return;
	}
	frame = malloc(sizeof(*frame) + len);
	if (!frame)
		return;
	frame->len = len;
	memcpy(frame->data, data, len);
	if (fr->count == FRAMES_KEPT)
		frame_take(fr, fr->head);
	DL_APPEND(fr->head, frame);
	fr->count++;
	fs_wake(fr->file);
}

static ssize_t frame_open(struct file *file, struct fs_req *req)
{
	struct ipoib *ip = path_ipoib(file->ibfs, file->path);
	struct frames *fr = ip ? calloc(1, sizeof(*fr)) : NULL;

	(void)req;
	if (!fr)
		return ip ? -ENOMEM : -ENOENT;
	fr->listener.frame = frame_came;
	fr->file = file;
	fr->ip = ip;
	ipoib_get(ip);
	if (file->flags & O_WRONLY)
		fr->ended = true;
	else
		ipoib_listen(ip, &fr->listener);
	file->priv = fr;
	file->hints = FILE_QUEUE;
	return 0;
}

static void frame_release(struct file *file)
{
	struct frames *fr = file->priv;

	if (!fr)
		return;
	ipoib_unlisten(fr->ip, &fr->listener);
	while (fr->head)
		frame_take(fr, fr->head);
	ipoib_put(fr->ip);
	free(fr);
}

static ssize_t frame_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off)
{
	struct frames *fr = file->priv;

	(void)off;
	if (!fr->head) {
		if (fr->ended)
			return -EIO;
		if (file->flags & O_NONBLOCK)
			return -EAGAIN;
		req->size = size;
		return waitq_add(&fr->readers, req);
	}
	if (size > fr->head->len)
		size = fr->head->len;
	memcpy(buf, fr->head->data, size);
	frame_take(fr, fr->head);
	return size;
}

static ssize_t frame_write(struct file *file, struct fs_req *req, const void *buf, size_t size,
			   off_t off)
{
	struct frames *fr = file->priv;
	int err;

	(void)req;
	(void)off;
	if (ipoib_gone(fr->ip))
		return -EIO;
	err = ipoib_frame_send(fr->ip, buf, size);
	return err ? err : (ssize_t)size;
}

static unsigned int frame_poll(struct file *file)
{
	const struct frames *fr = file->priv;
	unsigned int ready = POLLOUT | POLLWRNORM;

	if (fr->head)
		ready |= POLLIN | POLLRDNORM;
	if (ipoib_gone(fr->ip))
		ready |= POLLERR | POLLHUP;
	return ready;
}

const struct file_ops ipoib_frame_ops = {
	.open = frame_open, .release = frame_release, .read = frame_read, .write = frame_write,
	.poll = frame_poll,
};
