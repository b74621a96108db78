/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What front ends call: attributes, open files and requests.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

#include <ibfs/follow.h>

#include "fs/client.h"
#include "fs/lines.h"
#include "fs/obj.h"
#include "fs/rows.h"
#include "fs/text_file.h"
#include "fs/work.h"

enum { FILE_MEMORY = 1024 };	/* what an open file takes, with its front end's part, about */

struct override {
	uint64_t ino;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	UT_hash_handle hh;
};

int fs_init(struct ibfs *ibfs)
{
	struct fs *fs = calloc(1, sizeof(*fs));

	if (!fs)
		return -ENOMEM;
	clock_gettime(CLOCK_REALTIME, &fs->start);
	fs->uid = geteuid();
	fs->gid = getegid();
	fs->ibfs = ibfs;
	fs->next_mad = 1;
	ibfs->fs = fs;
	ibfs->follow = follow_new(ibfs);
	fs->accounts = accounts_new(ibfs);
	fs->works = works_new(ibfs);
	return fs->accounts && fs->works ? objs_init(ibfs) : -ENOMEM;
}

void fs_exit(struct ibfs *ibfs)
{
	struct override *o, *tmp;
	struct fs *fs = ibfs->fs;

	if (!fs)
		return;
	offload_exit(ibfs);
	objs_exit(ibfs);
	follow_free(ibfs->follow);
	ibfs->follow = NULL;
	HASH_ITER(hh, fs->overrides, o, tmp) {
		HASH_DEL(fs->overrides, o);
		free(o);
	}
	peers_exit(ibfs);
	task_cancel(ibfs->tasks, &fs->refresh);
	works_free(fs->works);
	free(fs->umads);
	free(fs->uverbs_slots);
	accounts_free(fs->accounts, false);
	free(fs);
	ibfs->fs = NULL;
}

/* What a row says of a file, before its own getattr and what was changed by hand. */
static void row_attr(const struct fs *fs, const struct kind_row *row, struct stat *st)
{
	*st = (struct stat){
		.st_mode = row->mode,
		.st_nlink = 1,	/* of a directory: not counted */
		.st_uid = fs->uid,
		.st_gid = fs->gid,
		.st_size = S_ISREG(row->mode) && !(row->flags & ROW_LONG) ? 4096 : 0,
		.st_blksize = 4096,
		.st_atim = fs->start,
		.st_mtim = fs->start,
		.st_ctim = fs->start,
	};
}

int fs_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	const struct kind_row *row;
	struct override *o;
	int ret;

	ret = path_check(ibfs, path);
	if (ret)
		return ret;
	row = &kinds[path.kind];
	row_attr(ibfs->fs, row, st);
	if (row->flags & FS_FRESH)
		path.idx = 0;
	st->st_ino = path_pack(path);
	if (row->getattr) {
		ret = row->getattr(ibfs, path, st);
		if (ret)
			return ret;
	}
	if (!(row->flags & ROW_CHMOD) || !ibfs->fs->overrides)
		return 0;
	HASH_FIND(hh, ibfs->fs->overrides, &st->st_ino, sizeof(st->st_ino), o);
	if (o) {
		st->st_mode = S_IFREG | o->mode;
		st->st_uid = o->uid;
		st->st_gid = o->gid;
	}
	return 0;
}

static int override_set(struct fs *fs, const struct stat *st)
{
	uint64_t ino = st->st_ino;
	struct override *o;

	HASH_FIND(hh, fs->overrides, &ino, sizeof(ino), o);
	if (!o) {
		o = calloc(1, sizeof(*o));
		if (!o)
			return -ENOMEM;
		o->ino = ino;
		HASH_ADD(hh, fs->overrides, ino, sizeof(o->ino), o);
	}
	o->mode = st->st_mode & 07777;
	o->uid = st->st_uid;
	o->gid = st->st_gid;
	return 0;
}

int fs_setattr(struct ibfs *ibfs, struct path path, const struct fs_cred *cred,
	       const struct stat *st, unsigned int mask)
{
	const struct kind_row *row;
	struct stat new;
	int ret;

	ret = fs_getattr(ibfs, path, &new);
	if (!ret)
		ret = fs_may_set(&new, cred, st, mask);
	if (ret)
		return ret;
	row = &kinds[path.kind];
	if (row->setattr)
		return row->setattr(ibfs, path, cred, st, mask);
	mask &= ~FS_SET_SIZE;	/* O_TRUNC is how a shell opens; there is nothing to cut */
	if (!mask)
		return 0;
	if (!(row->flags & ROW_CHMOD))
		return -EPERM;
	if (mask & FS_SET_MODE)
		new.st_mode = st->st_mode;
	if (mask & FS_SET_UID)
		new.st_uid = st->st_uid;
	if (mask & FS_SET_GID)
		new.st_gid = st->st_gid;
	return override_set(ibfs->fs, &new);
}

/* On the account of who opens it; -EDQUOT, -ENOMEM. */
static int file_new(const struct fs_req *req, struct file **filep)
{
	struct fs *fs = req->ibfs->fs;
	struct file *file = calloc(1, sizeof(*file));
	int err = file ? charge_begin(&file->charge, fs->accounts, &req->cred, ACCOUNT_FILES) : -ENOMEM;

	if (!err) {
		err = charge_take(&file->charge, ACCOUNT_MEMORY,
				  FILE_MEMORY + fs_groups_size(req->cred.groups));
		if (err)
			charge_end(&file->charge);
	}
	if (err) {
		free(file);
		return err;
	}
	file->ibfs = req->ibfs;
	file->backing = -1;
	file->opener = req->cred;
	fs_groups_get(file->opener.groups);
	fs->open_files++;
	*filep = file;
	return 0;
}

/* The answer is there at once: the caller goes on. */
static ssize_t ended(struct fs_req *req, ssize_t ret)
{
	if (ret != FS_PENDING)
		client_answered(req);
	return ret;
}

ssize_t fs_open(struct fs_req *req, struct path path, unsigned int flags, struct file **filep)
{
	const struct kind_row *row;
	struct file *file;
	int ret;

	*filep = NULL;
	umad_sends_run(req->ibfs);
	ret = path_check(req->ibfs, path);
	if (ret)
		return ret;
	row = &kinds[path.kind];
	if (!row->ops)
		return S_ISDIR(row->mode) ? -EISDIR : -ENXIO;
	ret = file_new(req, &file);
	if (ret)
		return ret;
	file->path = path;
	file->ops = row->ops;
	file->flags = flags;
	file->hints = row->ops->lines ? FILE_LINES : 0;
	req->file = file;
	*filep = file;
	return file->ops->open ? ended(req, file->ops->open(file, req)) : 0;
}

/* What is asked of an open file is asked with the rights of who opened it. */
static void begin(struct fs_req *req, struct file *file)
{
	req->file = file;
	req->cred = file->opener;
	req->cancel = NULL;
	umad_sends_run(file->ibfs);
	file->ibfs->fs->requests++;
}

ssize_t fs_read(struct fs_req *req, struct file *file, void *buf, size_t size, off_t off)
{
	begin(req, file);
	if (file->ops->read)
		return ended(req, file->ops->read(file, req, buf, size, off));
	if (file->ops->show || file->ops->show_more)
		return text_file_read(file, req, buf, size, off);
	return -EINVAL;
}

static ssize_t write_now(struct fs_req *req, struct file *file, const void *buf, size_t size,
			 off_t off)
{
	if (file->ops->write)
		return ended(req, file->ops->write(file, req, buf, size, off));
	if (!file->ops->store)
		return -EINVAL;
	if (path_check(file->ibfs, file->path))
		return -ENODEV;
	return file->ops->store(file, req, buf, size);
}

ssize_t fs_write(struct fs_req *req, struct file *file, const void *buf, size_t size, off_t off)
{
	begin(req, file);
	if (file->hints & FILE_LINES)
		return lines_write(req, file, buf, size, write_now);
	return write_now(req, file, buf, size, off);
}

ssize_t fs_ioctl(struct fs_req *req, struct file *file, unsigned int cmd, uint64_t arg,
		 const void *in, size_t in_len, void *out, size_t out_room, size_t *out_len)
{
	*out_len = 0;
	begin(req, file);
	if (!file->ops->ioctl)
		return -ENOTTY;
	return ended(req, file->ops->ioctl(file, req, cmd, arg, in, in_len, out, out_room, out_len));
}

unsigned int fs_poll(struct file *file)
{
	umad_sends_run(file->ibfs);
	if (file->ops->poll)
		return file->ops->poll(file);
	return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;
}

void fs_release(struct file *file)
{
	file->wake = NULL;	/* what comes while it goes is told to nobody */
	umad_sends_run(file->ibfs);
	if (file->ops->release)
		file->ops->release(file);
	else if (file->ops->show || file->ops->show_more)
		text_file_release(file);
	file->ibfs->fs->open_files--;
	charge_end(&file->charge);
	fs_groups_put(file->opener.groups);
	free(file);
}

void fs_wake(struct file *file)
{
	if (file->wake)
		file->wake(file);
}

void fs_reply(struct fs_req *req, ssize_t result, const void *data, size_t len)
{
	req->cancel = NULL;
	client_answered(req);
	req->reply(req, result, data, len);
}

void fs_cancel(struct fs_req *req)
{
	if (req->cancel)
		req->cancel(req);
}
