/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the configuration is read: conf.c walks tables of settings, conf_value.c
 * has a parser for each kind of value.
 */
#ifndef IBFS_CONF_PARSE_H
#define IBFS_CONF_PARSE_H

#include <libconfig.h>
#include <stdbool.h>
#include <stddef.h>

#include <ibfs/conf.h>

/* What struct conf's strings live in. */
struct conf_text {
	config_t file;
	char **strings;
	unsigned int num_strings;
};

struct parser {
	struct conf *conf;
	struct conf_text *text;
	const char *file;
	char *err;
};

struct setting {
	const char *name;
	int (*parse)(struct parser *p, const config_setting_t *s, const struct setting *what,
		     void *field);
	size_t offset;
	bool required;
	unsigned int min, max;
	const struct setting *members;	/* of a group or of a list's groups */
	size_t size;			/* of a list's element */
	size_t count;			/* offset of a list's number of elements */
};

/* The file that a setting stands in: the configuration, or one that it includes. */
const char *conf_source(const struct parser *p, const config_setting_t *s);
/* "switches[0].ports", as libconfig's own lookup would have it. */
void conf_path(const config_setting_t *s, char *buf, size_t size);
/* "FILE:LINE: " and the message into p->err. -EINVAL */
__attribute__((format(printf, 3, 4)))
int conf_fail(struct parser *p, const config_setting_t *s, const char *fmt, ...);
/* The same: expected this, and what was found. */
int conf_expected(struct parser *p, const config_setting_t *s, const char *what);
/* Take over a string, for as long as the configuration lives. NULL: there is none, or no memory. */
const char *conf_keep(struct parser *p, char *string);

/*
 * Setting's parsers, 0, -EINVAL or -ENOMEM: field is the place of a const char *
 * (string, path, log), unsigned int (uint, width), uint64_t, mode_t, uid_t,
 * gid_t, bool (subnet: by a manager; backend: verbs), struct conf_link (speed)
 * or struct conf_end.
 */
int value_string(struct parser *p, const config_setting_t *s, const struct setting *what,
		 void *field);
int value_path(struct parser *p, const config_setting_t *s, const struct setting *what,
	       void *field);
int value_uint(struct parser *p, const config_setting_t *s, const struct setting *what,
	       void *field);
int value_guid(struct parser *p, const config_setting_t *s, const struct setting *what,
	       void *field);
int value_mode(struct parser *p, const config_setting_t *s, const struct setting *what,
	       void *field);
int value_uid(struct parser *p, const config_setting_t *s, const struct setting *what,
	      void *field);
int value_gid(struct parser *p, const config_setting_t *s, const struct setting *what,
	      void *field);
int value_subnet(struct parser *p, const config_setting_t *s, const struct setting *what,
		 void *field);
int value_backend(struct parser *p, const config_setting_t *s, const struct setting *what,
		  void *field);
int value_width(struct parser *p, const config_setting_t *s, const struct setting *what,
		void *field);
int value_speed(struct parser *p, const config_setting_t *s, const struct setting *what,
		void *field);
int value_end(struct parser *p, const config_setting_t *s, const struct setting *what,
	      void *field);
int value_bool(struct parser *p, const config_setting_t *s, const struct setting *what,
	       void *field);
int value_log(struct parser *p, const config_setting_t *s, const struct setting *what,
	      void *field);

#endif
