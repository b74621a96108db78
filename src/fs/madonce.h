/* SPDX-License-Identifier: BSD-2-Clause */
/* One MAD sent by an agent of its own, and the one answer to it. */
#ifndef IBFS_FS_MADONCE_H
#define IBFS_FS_MADONCE_H

#include <ibfs/backend.h>

enum { MADONCE_LEN = 256, MADONCE_QP1_QKEY = 0x80010000, MADONCE_PERMISSIVE_LID = 0xffff };

/* Embedded by who asks; all zero before the first mad_once_send(). */
struct mad_once {
	struct ibfs_device *dev;
	struct mad_agent *agent;	/* NULL: nothing is under way */
	/*
	 * It is over, and another may be sent. err 0: len bytes, 64 or more, of the
	 * answer, the callee's to keep by copying; -ETIMEDOUT; -ENODEV: the device is
	 * gone. May be called from inside mad_once_send().
	 */
	void (*done)(struct mad_once *once, int err, const void *mad, size_t len);
};

/*
 * Send the 256 bytes of mad, whose class, version and transaction are filled in,
 * by the device's port; rmpp: the answer may be of many MADs. 0 or -errno, noted by
 * ibfs_fail(); done is not called then.
 */
int mad_once_send(struct mad_once *once, struct ibfs_device *dev, unsigned int port,
		  const struct mad_addr *addr, const void *mad, bool rmpp,
		  unsigned int timeout_ms, unsigned int retries);
/* Nobody waits for the answer any more. */
void mad_once_cancel(struct mad_once *once);

#endif
