/* SPDX-License-Identifier: BSD-2-Clause */
/* A port's IP interfaces as directories: what their files share. */
#ifndef IBFS_FS_IPOIBDIR_H
#define IBFS_FS_IPOIBDIR_H

#include <ibfs/ipoib.h>

#include "fs/rows.h"

/* The interface that a path leads to; NULL: it is gone. */
struct ipoib *path_ipoib(struct ibfs *ibfs, struct path path);

#endif
