/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes of many commands to ctl files, in pieces. For fs.c. */
#ifndef IBFS_FS_LINES_H
#define IBFS_FS_LINES_H

#include <ibfs/fs.h>

/*
 * The write of a file of lines (FILE_LINES), by write(), which is given whole
 * lines and never keeps the request. As that returns, or FS_PENDING.
 */
ssize_t lines_write(struct fs_req *req, struct file *file, const void *buf, size_t size,
		    ssize_t (*write)(struct fs_req *req, struct file *file, const void *buf,
				     size_t size, off_t off));

#endif
