/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of an IP interface: ipoib/clone and ipoib/NAME/ctl. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/ipoibdir.h"

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
	.lines = true,
};

const struct file_ops ipoib_ctl_ops = {
	.open = ctl_open, .release = ctl_release, .read = ctl_read, .write = ctl_do_write,
	.lines = true,
};
