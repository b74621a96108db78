/* SPDX-License-Identifier: BSD-2-Clause */
/* Growing text: what files show is printed into it. */
#ifndef IBFS_TEXT_H
#define IBFS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* No memory: failed is set, and what is printed later ignored. */
struct textbuf {
	char *data;
	size_t len, size;
	bool failed;
};

void text_printf(struct textbuf *text, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* len bytes as they are. */
void text_put(struct textbuf *text, const char *bytes, size_t len);
void text_free(struct textbuf *text);

#endif
