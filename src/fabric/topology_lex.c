/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The topology format's tokens: blanks, numbers, "(guid)"s, quoted names. A
 * message about one shows what stood in its place.
 */
#include "fabric/topology.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

char *topo_skip(char *s)
{
	while (*s == ' ' || *s == '\t')
		s++;
	return s;
}

bool topo_take(char **s, const char *text)
{
	size_t len = strlen(text);

	if (strncmp(*s, text, len))
		return false;
	*s += len;
	return true;
}

const char *topo_show(char buf[48], const char *text)
{
	size_t i;

	if (!*text)
		return "the end of the line";
	buf[0] = '\'';
	for (i = 1; i < 40 && *text; text++, i++)
		buf[i] = isprint((unsigned char)*text) ? *text : '?';
	snprintf(buf + i, 48 - i, *text ? "...'" : "'");
	return buf;
}

int topo_number(struct topo *topo, char **s, const char *what, uint64_t min, uint64_t max,
		uint64_t *val)
{
	char found[48], *end;

	/* strtoull() would take a sign, and wrap -1 round. */
	if (!isdigit((unsigned char)**s))
		return topo_fail(topo, "%s: expected a number, found %s", what,
				 topo_show(found, *s));
	errno = 0;
	*val = strtoull(*s, &end, 0);
	if (errno || *val < min || *val > max)
		return topo_fail(topo, "%s: expected %" PRIu64 " to %" PRIu64 ", found %s",
				 what, min, max, topo_show(found, *s));
	if (isalnum((unsigned char)*end))
		return topo_fail(topo, "%s: expected a number, found %s", what,
				 topo_show(found, *s));
	*s = end;
	return 0;
}

int topo_guid(struct topo *topo, char **s, uint64_t *guid)
{
	char found[48], *end;

	errno = 0;
	*guid = isxdigit((unsigned char)(*s)[1]) ? strtoull(*s + 1, &end, 16) : 0;
	if (!*guid || errno || *end != ')')
		return topo_fail(topo, "expected a GUID as (hexadecimal), found %s",
				 topo_show(found, *s));
	*s = end + 1;
	return 0;
}

int topo_quoted(struct topo *topo, char **s, const char *what, char **val)
{
	char found[48], *end;

	if (**s != '"')
		return topo_fail(topo, "expected %s in double quotes, found %s", what,
				 topo_show(found, *s));
	end = strchr(*s + 1, '"');
	if (!end)
		return topo_fail(topo, "expected a double quote after %s, found none", what);
	*end = '\0';
	*val = *s + 1;
	*s = end + 1;
	return 0;
}

int topo_end(struct topo *topo, const char *s)
{
	char found[48];

	while (*s == ' ' || *s == '\t')
		s++;
	if (*s && *s != '#')
		return topo_fail(topo, "expected the end of the line or a comment, found %s",
				 topo_show(found, s));
	return 0;
}

int topo_expand(struct topo *topo, const char *name, const char **full, bool *is_alias)
{
	const char *at = strchr(name, '@');
	char buf[TOPO_ID_MAX + 1], found[48];
	const char *prefix = "", *sep = "";

	*is_alias = at;
	if (at == name) {
		prefix = topo->prefix;
	} else if (!at && !strchr(name, '#') && *topo->prefix) {
		prefix = topo->prefix;
		sep = "#";
	}
	if (!*name || strlen(name) + sizeof(topo->prefix) > TOPO_ID_MAX)
		return topo_fail(topo, "expected a node's name of 1 to %zu characters, found %s",
				 TOPO_ID_MAX - sizeof(topo->prefix), topo_show(found, name));
	snprintf(buf, sizeof(buf), "%s%s%s", prefix, sep, name);
	*full = topo_strdup(topo, buf);
	return *full ? 0 : topo_nomem(topo);
}
