/* SPDX-License-Identifier: BSD-2-Clause */
/* Growing text, ibfs/text.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ibfs/text.h>

static bool text_room(struct textbuf *text, size_t more)
{
	size_t size = text->size ? text->size : 256;
	char *data;

	while (size - text->len <= more)
		size *= 2;
	if (size == text->size)
		return true;
	data = realloc(text->data, size);
	if (!data) {
		text_free(text);
		text->failed = true;
		return false;
	}
	text->data = data;
	text->size = size;
	return true;
}

void text_printf(struct textbuf *text, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (text->failed || !text_room(text, 128))
		return;
	va_start(ap, fmt);
	n = vsnprintf(text->data + text->len, text->size - text->len, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n >= text->size - text->len) {
		if (!text_room(text, n))
			return;
		va_start(ap, fmt);
		vsnprintf(text->data + text->len, text->size - text->len, fmt, ap);
		va_end(ap);
	}
	text->len += n;
}

void text_put(struct textbuf *text, const char *bytes, size_t len)
{
	if (text->failed || !text_room(text, len))
		return;
	memcpy(text->data + text->len, bytes, len);
	text->len += len;
}

void text_free(struct textbuf *text)
{
	free(text->data);
	*text = (struct textbuf){ .data = NULL };
}
