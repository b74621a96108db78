/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads of text files: those whose ops have show or show_more. For fs.c. */
#ifndef IBFS_FS_TEXT_FILE_H
#define IBFS_FS_TEXT_FILE_H

#include <ibfs/fs.h>

ssize_t text_file_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off);
/* Reads that still wait fail. */
void text_file_release(struct file *file);

#endif
