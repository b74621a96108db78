/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree that a 9P attach to "ctl" finds instead of devices: null and zero, as
 * in the one that diod serves by this name, for diodload(8) to measure a
 * connection with.
 */
#include <string.h>

#include "fs/rows.h"

const struct entry p9_ctl_entries[] = {
	{ "null", KIND_P9_NULL, 0 },
	{ "zero", KIND_P9_ZERO, 0 },
	{ NULL, 0, 0 }
};

static ssize_t null_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off)
{
	(void)file;
	(void)req;
	(void)buf;
	(void)size;
	(void)off;
	return 0;
}

static ssize_t zero_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off)
{
	(void)file;
	(void)req;
	(void)off;
	memset(buf, 0, size);
	return size;
}

static ssize_t any_write(struct file *file, struct fs_req *req, const void *buf, size_t size,
			 off_t off)
{
	(void)file;
	(void)req;
	(void)buf;
	(void)off;
	return size;
}

const struct file_ops p9_null_ops = { .read = null_read, .write = any_write };
const struct file_ops p9_zero_ops = { .read = zero_read, .write = any_write };
