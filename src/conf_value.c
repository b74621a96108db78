/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single values of the configuration: what each kind looks like, and the error
 * that says what was expected, with file and line. ibfs.conf(5).
 */
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"
#include "conf_parse.h"

const char *conf_source(const struct parser *p, const config_setting_t *s)
{
	const char *file = config_setting_source_file(s);

	return file ? file : p->file;
}

void conf_path(const config_setting_t *s, char *buf, size_t size)
{
	const config_setting_t *parent = config_setting_parent(s);
	size_t len;

	buf[0] = '\0';
	if (!parent)
		return;
	conf_path(parent, buf, size);
	len = strlen(buf);
	if (config_setting_name(s))
		snprintf(buf + len, size - len, "%s%s", len ? "." : "", config_setting_name(s));
	else
		snprintf(buf + len, size - len, "[%d]", config_setting_index(s));
}

/* A setting's value in an error message. */
static void setting_value(const config_setting_t *s, char *buf, size_t size)
{
	switch (config_setting_type(s)) {
	case CONFIG_TYPE_STRING:
		snprintf(buf, size, "\"%.64s\"", config_setting_get_string(s));
		break;
	case CONFIG_TYPE_INT:
	case CONFIG_TYPE_INT64:
		snprintf(buf, size, "%lld", config_setting_get_int64(s));
		break;
	case CONFIG_TYPE_FLOAT:
		snprintf(buf, size, "%g", config_setting_get_float(s));
		break;
	case CONFIG_TYPE_BOOL:
		snprintf(buf, size, "%s", config_setting_get_bool(s) ? "true" : "false");
		break;
	case CONFIG_TYPE_GROUP:
		snprintf(buf, size, "a group { }");
		break;
	default:
		snprintf(buf, size, "a list");
	}
}

int conf_fail(struct parser *p, const config_setting_t *s, const char *fmt, ...)
{
	char *what;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&what, fmt, ap) < 0)
		what = NULL;
	va_end(ap);
	if (what && asprintf(&p->err, "%s:%u: %s", conf_source(p, s), config_setting_source_line(s),
			     what) < 0)
		p->err = NULL;
	free(what);
	return -EINVAL;
}

int conf_expected(struct parser *p, const config_setting_t *s, const char *what)
{
	char path[128], value[80];

	conf_path(s, path, sizeof(path));
	setting_value(s, value, sizeof(value));
	return conf_fail(p, s, "%s: expected %s, found %s", path, what, value);
}

const char *conf_keep(struct parser *p, char *string)
{
	struct conf_text *text = p->text;
	char **strings;

	if (!string)
		return NULL;
	strings = reallocarray(text->strings, text->num_strings + 1, sizeof(*strings));
	if (!strings) {
		free(string);
		return NULL;
	}
	text->strings = strings;
	strings[text->num_strings++] = string;
	return string;
}

int value_string(struct parser *p, const config_setting_t *s, const struct setting *what,
		 void *field)
{
	const char *string = config_setting_get_string(s);
	char range[64];

	if (!string || strlen(string) < what->min || strlen(string) > what->max) {
		snprintf(range, sizeof(range), "a string of %u to %u characters", what->min,
			 what->max);
		return conf_expected(p, s, range);
	}
	*(const char **)field = string;
	return 0;
}

/* A file's name, relative to the directory of the configuration. */
int value_path(struct parser *p, const config_setting_t *s, const struct setting *what,
	       void *field)
{
	const char *string = config_setting_get_string(s);
	const char *file = conf_source(p, s), *slash = strrchr(file, '/');
	char *path;

	(void)what;
	if (!string || !*string)
		return conf_expected(p, s, "a file name");
	if (*string == '/' || !slash) {
		*(const char **)field = string;
		return 0;
	}
	if (asprintf(&path, "%.*s%s", (int)(slash - file) + 1, file, string) < 0)
		return -ENOMEM;
	*(const char **)field = conf_keep(p, path);
	return *(const char **)field ? 0 : -ENOMEM;
}

int value_uint(struct parser *p, const config_setting_t *s, const struct setting *what,
	       void *field)
{
	long long value = config_setting_get_int64(s);
	char range[64];

	if (!config_setting_is_number(s) || config_setting_type(s) == CONFIG_TYPE_FLOAT ||
	    value < what->min || value > what->max) {
		snprintf(range, sizeof(range), "a number from %u to %u", what->min, what->max);
		return conf_expected(p, s, range);
	}
	*(unsigned int *)field = (unsigned int)value;
	return 0;
}

int value_guid(struct parser *p, const config_setting_t *s, const struct setting *what,
	       void *field)
{
	const char *string = config_setting_get_string(s);
	unsigned long long guid;
	char *end;

	(void)what;
	if (string) {
		errno = 0;
		guid = strtoull(string, &end, 16);
		if (errno || *end || !isxdigit((unsigned char)string[0]))
			guid = 0;
	} else {
		guid = (unsigned long long)config_setting_get_int64(s);
	}
	if (!guid)
		return conf_expected(p, s, "a GUID such as \"0x0002c90300000001\"");
	*(uint64_t *)field = guid;
	return 0;
}

int value_mode(struct parser *p, const config_setting_t *s, const struct setting *what,
	       void *field)
{
	const char *string = config_setting_get_string(s);
	unsigned long mode;
	char *end;

	(void)what;
	if (!string || !isdigit((unsigned char)string[0]))
		return conf_expected(p, s, "an octal mode in quotes, such as \"0660\"");
	mode = strtoul(string, &end, 8);
	if (*end || mode > 0777)
		return conf_expected(p, s, "an octal mode in quotes, such as \"0660\"");
	*(mode_t *)field = (mode_t)mode;
	return 0;
}

static bool number_as_id(const config_setting_t *s, unsigned int *id)
{
	long long value = config_setting_get_int64(s);

	if (config_setting_type(s) != CONFIG_TYPE_INT && config_setting_type(s) != CONFIG_TYPE_INT64)
		return false;
	if (value < 0 || value >= UINT_MAX)
		return false;
	*id = (unsigned int)value;
	return true;
}

int value_uid(struct parser *p, const config_setting_t *s, const struct setting *what,
	      void *field)
{
	const char *string = config_setting_get_string(s);
	const struct passwd *pw = string ? getpwnam(string) : NULL;

	(void)what;
	if (pw)
		*(uid_t *)field = pw->pw_uid;
	else if (!number_as_id(s, field))
		return conf_expected(p, s, "the name or the number of a user");
	return 0;
}

int value_gid(struct parser *p, const config_setting_t *s, const struct setting *what,
	      void *field)
{
	const char *string = config_setting_get_string(s);
	const struct group *gr = string ? getgrnam(string) : NULL;

	(void)what;
	if (gr)
		*(gid_t *)field = gr->gr_gid;
	else if (!number_as_id(s, field))
		return conf_expected(p, s, "the name or the number of a group");
	return 0;
}

int value_subnet(struct parser *p, const config_setting_t *s, const struct setting *what,
		 void *field)
{
	const char *string = config_setting_get_string(s);

	(void)what;
	if (!string || (strcmp(string, "static") && strcmp(string, "sm")))
		return conf_expected(p, s, "\"static\" or \"sm\"");
	*(bool *)field = !strcmp(string, "sm");
	return 0;
}

int value_backend(struct parser *p, const config_setting_t *s, const struct setting *what,
		  void *field)
{
	const char *string = config_setting_get_string(s);

	(void)what;
	if (!string || (strcmp(string, "soft") != 0 && strcmp(string, "verbs") != 0))
		return conf_expected(p, s, "\"soft\" or \"verbs\"");
	*(bool *)field = !strcmp(string, "verbs");
	return 0;
}

int value_width(struct parser *p, const config_setting_t *s, const struct setting *what,
		void *field)
{
	static const struct { const char *name; unsigned int width; } widths[] = {
		{ "1x", WIDTH_1X }, { "2x", WIDTH_2X }, { "4x", WIDTH_4X }, { "8x", WIDTH_8X },
		{ "12x", WIDTH_12X },
	};
	const char *string = config_setting_get_string(s);
	unsigned int i;

	(void)what;
	for (i = 0; string && i < sizeof(widths) / sizeof(widths[0]); i++) {
		if (!strcasecmp(string, widths[i].name)) {
			*(unsigned int *)field = widths[i].width;
			return 0;
		}
	}
	return conf_expected(p, s, "one of \"1x\", \"2x\", \"4x\", \"8x\", \"12x\"");
}

/* Fills speed and speed_ext of the link. */
int value_speed(struct parser *p, const config_setting_t *s, const struct setting *what,
		void *field)
{
	static const struct { const char *name; unsigned int speed, ext; } speeds[] = {
		{ "SDR", SPEED_SDR, 0 }, { "DDR", SPEED_DDR, 0 }, { "QDR", SPEED_QDR, 0 },
		{ "FDR", SPEED_QDR, SPEED_FDR }, { "EDR", SPEED_QDR, SPEED_EDR },
		{ "HDR", SPEED_QDR, SPEED_HDR }, { "NDR", SPEED_QDR, SPEED_NDR },
		{ "XDR", SPEED_QDR, SPEED_XDR },
	};
	const char *string = config_setting_get_string(s);
	struct conf_link *link = field;
	unsigned int i;

	(void)what;
	for (i = 0; string && i < sizeof(speeds) / sizeof(speeds[0]); i++) {
		if (!strcasecmp(string, speeds[i].name)) {
			link->speed = speeds[i].speed;
			link->speed_ext = speeds[i].ext;
			return 0;
		}
	}
	return conf_expected(p, s, "one of \"SDR\", \"DDR\", \"QDR\", \"FDR\", \"EDR\", \"HDR\", "
			      "\"NDR\", \"XDR\"");
}

/* node[port]; without [port], port 1. */
int value_end(struct parser *p, const config_setting_t *s, const struct setting *what,
	      void *field)
{
	static const char example[] = "a node and its port, such as \"switch0[1]\"";
	const char *string = config_setting_get_string(s);
	const char *bracket = string ? strrchr(string, '[') : NULL;
	struct conf_end *end = field;
	unsigned long port = 1;
	char *rest;

	(void)what;
	if (!string || !*string || bracket == string)
		return conf_expected(p, s, example);
	if (!bracket) {
		end->node = string;
		end->port = 1;
		return 0;
	}
	port = strtoul(bracket + 1, &rest, 10);
	if (!isdigit((unsigned char)bracket[1]) || strcmp(rest, "]") || port < 1 || port > 254)
		return conf_expected(p, s, example);
	end->node = conf_keep(p, strndup(string, (size_t)(bracket - string)));
	end->port = (unsigned int)port;
	return end->node ? 0 : -ENOMEM;
}

int value_log(struct parser *p, const config_setting_t *s, const struct setting *what,
	      void *field)
{
	const char *string = config_setting_get_string(s);

	if (string && !strcmp(string, "syslog")) {
		*(const char **)field = string;
		return 0;
	}
	return value_path(p, s, what, field);
}

int value_bool(struct parser *p, const config_setting_t *s, const struct setting *what,
	       void *field)
{
	(void)what;
	if (config_setting_type(s) != CONFIG_TYPE_BOOL)
		return conf_expected(p, s, "true or false");
	*(bool *)field = config_setting_get_bool(s);
	return 0;
}
