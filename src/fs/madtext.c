/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad/: a MAD agent of a port for a shell, and for who has no ioctl(). Opening
 * clone makes one, whose ctl it then is; reading that gives its number; it
 * goes when its last file is closed. Below it is an open umad file with one
 * agent, number 0: `data` reads and writes what umad does, in the layout with
 * a P_Key index. After a query in words, `data` is its answer instead, until
 * the agent registers.
 */
#include <errno.h>
#include <poll.h>
#include <rdma/ib_user_mad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/madquery.h"
#include "fs/rows.h"

enum { CLASS_LID_ROUTED = 0x01, CLASS_DIRECTED = 0x81 };

struct mad {
	struct file umad;		/* first: what is open below */
	struct mad *prev, *next;	/* of all, by num */
	unsigned int num;
	uid_t uid;			/* its files' owner */
	gid_t gid;
	struct mad_file *files;
	bool registered;
	struct mad_query *query;	/* whose answer data is; NULL: none */
	unsigned int queries;
	struct ib_user_mad_reg_req2 reg;
	char refused[160];		/* why the last command was */
};

/* An open file of it. */
struct mad_file {
	struct mad_file *prev, *next;
	struct file *file;
	struct mad *mad;
	unsigned int query;		/* which of mad->queries pos belongs to */
	size_t pos;
};

const struct entry mads_entries[] = {
	{ "clone", KIND_MAD_CLONE, 0 },
	{ NULL, 0, 0 }
};

const struct entry mad_entries[] = {
	{ "ctl", KIND_MAD_CTL, 0 },
	{ "data", KIND_MAD_DATA, 0 },
	{ "status", KIND_MAD_STATUS, 0 },
	{ NULL, 0, 0 }
};

/* The first of the port whose number is num or larger. */
static struct mad *mad_from(struct ibfs *ibfs, struct path path, uint64_t num)
{
	struct mad *mad;

	DL_FOREACH(ibfs->fs->mads, mad)
		if (mad->num >= num && mad->umad.path.dev == path.dev &&
		    mad->umad.path.port == path.port)
			return mad;
	return NULL;
}

static struct mad *mad_get(struct ibfs *ibfs, struct path path)
{
	struct mad *mad = mad_from(ibfs, path, path.idx);

	return mad && mad->num == path.idx ? mad : NULL;
}

static int mads_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		     struct path *child)
{
	const struct mad *mad = mad_from(ibfs, dir, *pos);

	if (!mad)
		return 0;
	snprintf(name, 256, "%u", mad->num);
	child->kind = KIND_MAD;
	child->idx = mad->num;
	*pos = mad->num + 1;
	return 1;
}

static int mads_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	uint64_t num;

	(void)dir;
	if (number_name(name, UINT32_MAX, &num))
		return -ENOENT;
	child->kind = KIND_MAD;
	child->idx = num;
	return mad_get(ibfs, *child) ? 0 : -ENOENT;
}

const struct dir_ops mads_dir = { .lookup = mads_lookup, .next = mads_next };

/* Whoever may open umad may make one. */
int mad_clone_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	int ret = umad_getattr(ibfs, path, st);

	st->st_size = 0;
	return ret;
}

/* Its files belong to who made it. */
int mad_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	const struct mad *mad = mad_get(ibfs, path);

	if (!mad)
		return -ENOENT;
	st->st_uid = mad->uid;
	st->st_gid = mad->gid;
	return 0;
}

/* The umad file below has news for whoever polls data. */
static void mad_wake(struct file *umad)
{
	struct mad *mad = (struct mad *)umad;
	struct mad_file *mf, *tmp;

	DL_FOREACH_SAFE(mad->files, mf, tmp)
		fs_wake(mf->file);
}

static int add_file(struct mad *mad, struct file *file)
{
	struct mad_file *mf = calloc(1, sizeof(*mf));

	if (!mf)
		return -ENOMEM;
	mf->file = file;
	mf->mad = mad;
	DL_APPEND(mad->files, mf);
	file->priv = mf;
	return 0;
}

static void mad_free(struct mad *mad)
{
	mad_query_free(mad->query);
	DL_DELETE(mad->umad.ibfs->fs->mads, mad);
	umad_ops.release(&mad->umad);
	free(mad);
}

static ssize_t clone_open(struct file *file, struct fs_req *req)
{
	struct fs *fs = file->ibfs->fs;
	struct mad *mad = calloc(1, sizeof(*mad));
	size_t none = 0;
	ssize_t ret;

	if (!mad)
		return -ENOMEM;
	mad->umad.ibfs = file->ibfs;
	mad->umad.path = file->path;
	mad->umad.path.kind = KIND_UMAD;
	mad->umad.ops = &umad_ops;
	mad->umad.backing = -1;
	mad->umad.opener.uid = mad->uid = req->cred.uid;
	mad->umad.opener.gid = mad->gid = req->cred.gid;
	mad->umad.wake = mad_wake;
	mad->num = fs->next_mad++ & 0xfffffff;
	DL_APPEND(fs->mads, mad);
	ret = umad_ops.open(&mad->umad, req);
	if (!ret)
		ret = umad_ops.ioctl(&mad->umad, req, IB_USER_MAD_ENABLE_PKEY, 0, NULL, 0, NULL, 0,
				     &none);
	if (!ret)
		ret = add_file(mad, file);
	if (ret) {
		mad_free(mad);
		return ret;
	}
	file->path.kind = KIND_MAD_CTL;		/* from here on */
	file->path.idx = mad->num;
	return 0;
}

static ssize_t mad_open(struct file *file, struct fs_req *req)
{
	struct mad *mad = mad_get(file->ibfs, file->path);

	(void)req;
	if (file->path.kind == KIND_MAD_DATA)
		file->hints = FILE_STREAM;
	return mad ? add_file(mad, file) : -ENOENT;
}

static void mad_release(struct file *file)
{
	struct mad_file *mf = file->priv;

	if (!mf)
		return;
	DL_DELETE(mf->mad->files, mf);
	if (!mf->mad->files)
		mad_free(mf->mad);
	free(mf);
}

static struct mad *mad_of(struct file *file)
{
	struct mad_file *mf = file->priv;

	return mf->mad;
}

/* "1,2,0x12": bits of the methods that others' requests come with. */
static int parse_methods(const char *text, uint32_t mask[4])
{
	uint64_t method;
	char one[8];
	size_t n;

	do {
		n = strcspn(text, ",");
		if (n >= sizeof(one))
			return -EINVAL;
		memcpy(one, text, n);
		one[n] = '\0';
		if (parse_u64(one, 127, &method))
			return -EINVAL;
		mask[method / 32] |= 1U << method % 32;
		text += n + (text[n] == ',');
	} while (*text);
	return 0;
}

static int parse_arg(struct ib_user_mad_reg_req2 *reg, const char *arg)
{
	uint64_t number = 0;
	uint32_t *mask = (uint32_t *)reg->method_mask;
	const char *value;

	if ((value = ctl_value(arg, "methods")) != NULL)
		return parse_methods(value, mask);
	if ((value = ctl_value(arg, "class")) != NULL && !parse_u64(value, 255, &number))
		reg->mgmt_class = number;
	else if ((value = ctl_value(arg, "version")) != NULL && !parse_u64(value, 255, &number))
		reg->mgmt_class_version = number;
	else if ((value = ctl_value(arg, "qpn")) != NULL && !parse_u64(value, 1, &number))
		reg->qpn = number;
	else if ((value = ctl_value(arg, "rmpp")) != NULL && !parse_u64(value, 1, &number))
		reg->rmpp_version = number;
	else if ((value = ctl_value(arg, "oui")) != NULL && !parse_u64(value, 0xffffff, &number))
		reg->oui = number;
	else
		return -EINVAL;
	return 0;
}

static int mad_register(struct mad *mad, struct fs_req *req, struct ctl_line *line)
{
	struct ib_user_mad_reg_req2 reg = { .mgmt_class_version = 1, .qpn = UINT32_MAX }, out;
	size_t out_len = 0;
	unsigned int i;
	ssize_t ret;

	if (mad->registered)
		return ibfs_fail(req->ibfs, EBUSY, "mad/%u: is registered", mad->num);
	for (i = 1; i < line->argc; i++)
		if (parse_arg(&reg, line->argv[i]))
			return ibfs_fail(req->ibfs, EINVAL, "mad/%u: register: \"%s\": expected "
					 "class= version= qpn= methods=M,M.. rmpp=0|1 oui=",
					 mad->num, line->argv[i]);
	if (reg.qpn == UINT32_MAX)
		reg.qpn = reg.mgmt_class != CLASS_LID_ROUTED && reg.mgmt_class != CLASS_DIRECTED;
	ret = umad_ops.ioctl(&mad->umad, req, IB_USER_MAD_REGISTER_AGENT2, 0, &reg, sizeof(reg),
			     &out, sizeof(out), &out_len);
	if (ret)
		return ret;
	mad_query_free(mad->query);
	mad->query = NULL;
	mad->reg = reg;
	mad->registered = true;
	return 0;
}

static int mad_unregister(struct mad *mad, struct fs_req *req)
{
	uint32_t id = 0;
	size_t none = 0;
	ssize_t ret;

	if (!mad->registered)
		return ibfs_fail(req->ibfs, EINVAL, "mad/%u: is not registered", mad->num);
	ret = umad_ops.ioctl(&mad->umad, req, IB_USER_MAD_UNREGISTER_AGENT, 0, &id, sizeof(id),
			     NULL, 0, &none);
	if (!ret)
		mad->registered = false;
	return ret;
}

/* As much of the answer as this file has not read. */
static ssize_t answer_read(struct mad_file *mf, struct fs_req *req, void *buf, size_t size)
{
	if (mf->query != mf->mad->queries) {
		mf->query = mf->mad->queries;
		mf->pos = 0;
	}
	return mad_query_read(mf->mad->query, req, &mf->pos, buf, size);
}

static void answer_reader(struct fs_req *req)
{
	char *buf = malloc(req->size);
	ssize_t ret = buf ? answer_read(req->file->priv, req, buf, req->size) : -ENOMEM;

	fs_reply(req, ret, buf, ret > 0 ? ret : 0);
	free(buf);
}

static void answered(void *ctx)
{
	struct mad *mad = ctx;
	struct fs_req *req;

	while ((req = mad_query_waiter(mad->query)) != NULL)
		answer_reader(req);
	mad_wake(&mad->umad);
}

static int mad_ask(struct mad *mad, struct fs_req *req, const struct ctl_line *line)
{
	struct ibfs_device *dev = path_device(req->ibfs, mad->umad.path);
	struct mad_query *query;
	int ret;

	if (!dev)
		return ibfs_fail(req->ibfs, ENXIO, "mad/%u: the device is gone", mad->num);
	if (mad->query && !mad_query_done(mad->query))
		return ibfs_fail(req->ibfs, EBUSY, "mad/%u: a query is under way", mad->num);
	ret = mad_query_start(dev, mad->umad.path.port, req->file->charge.account, line, answered,
			      mad, &query);
	if (ret)
		return ret;
	mad_query_free(mad->query);
	mad->query = query;
	mad->queries++;
	mad_wake(&mad->umad);
	return 0;
}

static int mad_command(void *ctx, struct ctl_line *line)
{
	struct fs_req *req = ctx;
	struct mad *mad = mad_of(req->file);
	int ret;

	if (!strcmp(line->argv[0], "register"))
		ret = mad_register(mad, req, line);
	else if (!strcmp(line->argv[0], "unregister") && line->argc == 1)
		ret = mad_unregister(mad, req);
	else if (mad_query_word(line->argv[0]))
		ret = mad_ask(mad, req, line);
	else
		ret = ibfs_fail(req->ibfs, EINVAL, "mad/%u: expected `register ...`, `unregister`, "
				"or a query: `smp ...`, `perf ...`, `sa ...`", mad->num);
	if (ret)
		snprintf(mad->refused, sizeof(mad->refused), "%s: %s", line->argv[0],
			 strerrorname_np(-ret));
	return ret;
}

static ssize_t mad_ctl_write(struct file *file, struct fs_req *req, const void *buf, size_t size,
			     off_t off)
{
	(void)off;
	return ctl_write(file->ibfs, buf, size, mad_command, req);
}

/* Reading ctl, or clone, gives the number. */
static ssize_t mad_ctl_read(struct file *file, struct fs_req *req, void *buf, size_t size,
			    off_t off)
{
	char text[16];
	size_t len;

	(void)req;
	len = snprintf(text, sizeof(text), "%u\n", mad_of(file)->num);
	return read_bytes(text, len, buf, size, off);
}

const struct file_ops mad_clone_ops = {
	.open = clone_open,
	.release = mad_release,
	.read = mad_ctl_read,
	.write = mad_ctl_write,
	.lines = true,
};

const struct file_ops mad_ctl_ops = {
	.open = mad_open,
	.release = mad_release,
	.read = mad_ctl_read,
	.write = mad_ctl_write,
	.lines = true,
};

static ssize_t mad_data_read(struct file *file, struct fs_req *req, void *buf, size_t size,
			     off_t off)
{
	struct mad *mad = mad_of(file);

	if (mad->query)
		return answer_read(file->priv, req, buf, size);
	mad->umad.flags = file->flags;
	return umad_ops.read(&mad->umad, req, buf, size, off);
}

static ssize_t mad_data_write(struct file *file, struct fs_req *req, const void *buf, size_t size,
			      off_t off)
{
	struct mad *mad = mad_of(file);

	mad->umad.flags = file->flags;
	return umad_ops.write(&mad->umad, req, buf, size, off);
}

static unsigned int mad_data_poll(struct file *file)
{
	const struct mad *mad = mad_of(file);

	if (mad->query)
		return mad_query_done(mad->query) ? POLLIN | POLLRDNORM : 0;
	return umad_ops.poll(&mad_of(file)->umad);
}

const struct file_ops mad_data_ops = {
	.open = mad_open,
	.release = mad_release,
	.read = mad_data_read,
	.write = mad_data_write,
	.poll = mad_data_poll,
};

static void methods_print(const uint32_t mask[4], struct textbuf *out)
{
	unsigned int i;
	bool any = false;

	text_printf(out, "methods ");
	for (i = 0; i < 128; i++) {
		if (!(mask[i / 32] >> i % 32 & 1))
			continue;
		text_printf(out, "%s0x%02x", any ? "," : "", i);
		any = true;
	}
	text_printf(out, "%s\n", any ? "" : "none");
}

static int mad_status_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	const struct mad *mad = mad_get(ibfs, path);

	if (!mad)
		return -ENODEV;
	text_printf(out, "state %s\n", mad->registered ? "registered" : "unregistered");
	if (mad->registered) {
		text_printf(out, "class 0x%02x\nversion %u\nqpn %u\nrmpp %u\noui 0x%06x\n",
			    mad->reg.mgmt_class, mad->reg.mgmt_class_version, mad->reg.qpn,
			    mad->reg.rmpp_version, mad->reg.oui);
		methods_print((const uint32_t *)mad->reg.method_mask, out);
	}
	text_printf(out, "query %s\n", mad->query ? mad_query_state(mad->query) : "none");
	text_printf(out, "refused %s\n", mad->refused[0] ? mad->refused : "none");
	return 0;
}

const struct file_ops mad_status_ops = { .show = mad_status_show };
