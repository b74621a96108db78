/* SPDX-License-Identifier: BSD-2-Clause */
/* What callbacks.c and its set-user-ID victim agree on. */
#ifndef IBFS_TESTS_CALLBACKS_H
#define IBFS_TESTS_CALLBACKS_H

#define SECRET		0x200000000000UL	/* an address */
#define SECRET_SIZE	8192
#define SECRET_BYTE	0x5a

enum { TELL = 30, GO, SOCK, SOCK_PEER };	/* descriptors */
enum { NO_ROOT = 77, CHANGED = 3, SENT = 4 };	/* exit statuses */

#endif
