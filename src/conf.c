/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading the configuration, ibfs.conf(5). Every setting stands in a table
 * with its parser and its place in struct conf; whatever is not in a table, or
 * not what the table says, is an error with file and line. Nothing here
 * touches a fabric: setup.c makes what was read.
 */
#include <ctype.h>
#include <errno.h>
#include <fabric/fabric.h>
#include <grp.h>
#include <libconfig.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ibfs/conf.h>
#include <ibfs/fs.h>

/* Debian's nobody and nogroup, the kernel's overflowuid. */
enum { NOBODY = 65534 };

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

static const char *source(const struct parser *p, const config_setting_t *s)
{
	const char *file = config_setting_source_file(s);

	return file ? file : p->file;
}

/* "switches[0].ports", as libconfig's own lookup would have it */
static void setting_path(const config_setting_t *s, char *buf, size_t size)
{
	const config_setting_t *parent = config_setting_parent(s);
	size_t len;

	buf[0] = '\0';
	if (!parent)
		return;
	setting_path(parent, buf, size);
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

__attribute__((format(printf, 3, 4)))
static int fail(struct parser *p, const config_setting_t *s, const char *fmt, ...)
{
	char *what;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&what, fmt, ap) < 0)
		what = NULL;
	va_end(ap);
	if (what && asprintf(&p->err, "%s:%u: %s", source(p, s), config_setting_source_line(s),
			     what) < 0)
		p->err = NULL;
	free(what);
	return -EINVAL;
}

static int expected(struct parser *p, const config_setting_t *s, const char *what)
{
	char path[128], value[80];

	setting_path(s, path, sizeof(path));
	setting_value(s, value, sizeof(value));
	return fail(p, s, "%s: expected %s, found %s", path, what, value);
}

/* Take over a string; NULL stays NULL. */
static const char *keep(struct parser *p, char *string)
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

static int parse_string(struct parser *p, const config_setting_t *s, const struct setting *what,
			void *field)
{
	const char *string = config_setting_get_string(s);
	char range[64];

	if (!string || strlen(string) < what->min || strlen(string) > what->max) {
		snprintf(range, sizeof(range), "a string of %u to %u characters", what->min,
			 what->max);
		return expected(p, s, range);
	}
	*(const char **)field = string;
	return 0;
}

/* A file's name, relative to the directory of the configuration. */
static int parse_path(struct parser *p, const config_setting_t *s, const struct setting *what,
		      void *field)
{
	const char *string = config_setting_get_string(s);
	const char *slash = strrchr(source(p, s), '/');
	char *path;

	(void)what;
	if (!string || !*string)
		return expected(p, s, "a file name");
	if (*string == '/' || !slash) {
		*(const char **)field = string;
		return 0;
	}
	if (asprintf(&path, "%.*s%s", (int)(slash - source(p, s)) + 1, source(p, s), string) < 0)
		return -ENOMEM;
	*(const char **)field = keep(p, path);
	return *(const char **)field ? 0 : -ENOMEM;
}

static int parse_uint(struct parser *p, const config_setting_t *s, const struct setting *what,
		      void *field)
{
	long long value = config_setting_get_int64(s);
	char range[64];

	if (!config_setting_is_number(s) || config_setting_type(s) == CONFIG_TYPE_FLOAT ||
	    value < what->min || value > what->max) {
		snprintf(range, sizeof(range), "a number from %u to %u", what->min, what->max);
		return expected(p, s, range);
	}
	*(unsigned int *)field = (unsigned int)value;
	return 0;
}

static int parse_guid(struct parser *p, const config_setting_t *s, const struct setting *what,
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
		return expected(p, s, "a GUID such as \"0x0002c90300000001\"");
	*(uint64_t *)field = guid;
	return 0;
}

static int parse_mode(struct parser *p, const config_setting_t *s, const struct setting *what,
		      void *field)
{
	const char *string = config_setting_get_string(s);
	unsigned long mode;
	char *end;

	(void)what;
	if (!string || !isdigit((unsigned char)string[0]))
		return expected(p, s, "an octal mode in quotes, such as \"0660\"");
	mode = strtoul(string, &end, 8);
	if (*end || mode > 0777)
		return expected(p, s, "an octal mode in quotes, such as \"0660\"");
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

static int parse_uid(struct parser *p, const config_setting_t *s, const struct setting *what,
		     void *field)
{
	const char *string = config_setting_get_string(s);
	const struct passwd *pw = string ? getpwnam(string) : NULL;

	(void)what;
	if (pw)
		*(uid_t *)field = pw->pw_uid;
	else if (!number_as_id(s, field))
		return expected(p, s, "the name or the number of a user");
	return 0;
}

static int parse_gid(struct parser *p, const config_setting_t *s, const struct setting *what,
		     void *field)
{
	const char *string = config_setting_get_string(s);
	const struct group *gr = string ? getgrnam(string) : NULL;

	(void)what;
	if (gr)
		*(gid_t *)field = gr->gr_gid;
	else if (!number_as_id(s, field))
		return expected(p, s, "the name or the number of a group");
	return 0;
}

static int parse_subnet(struct parser *p, const config_setting_t *s, const struct setting *what,
			void *field)
{
	const char *string = config_setting_get_string(s);

	(void)what;
	if (!string || (strcmp(string, "static") && strcmp(string, "sm")))
		return expected(p, s, "\"static\" or \"sm\"");
	*(bool *)field = !strcmp(string, "sm");
	return 0;
}

static int parse_backend(struct parser *p, const config_setting_t *s, const struct setting *what,
			 void *field)
{
	const char *string = config_setting_get_string(s);

	(void)what;
	if (!string || (strcmp(string, "soft") != 0 && strcmp(string, "verbs") != 0))
		return expected(p, s, "\"soft\" or \"verbs\"");
	*(bool *)field = !strcmp(string, "verbs");
	return 0;
}

static int parse_width(struct parser *p, const config_setting_t *s, const struct setting *what,
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
	return expected(p, s, "one of \"1x\", \"2x\", \"4x\", \"8x\", \"12x\"");
}

/* Fills speed and speed_ext of the link. */
static int parse_speed(struct parser *p, const config_setting_t *s, const struct setting *what,
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
	return expected(p, s, "one of \"SDR\", \"DDR\", \"QDR\", \"FDR\", \"EDR\", \"HDR\", "
			      "\"NDR\", \"XDR\"");
}

/* node[port]; without [port], port 1. */
static int parse_end(struct parser *p, const config_setting_t *s, const struct setting *what,
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
		return expected(p, s, example);
	if (!bracket) {
		end->node = string;
		end->port = 1;
		return 0;
	}
	port = strtoul(bracket + 1, &rest, 10);
	if (!isdigit((unsigned char)bracket[1]) || strcmp(rest, "]") || port < 1 || port > 254)
		return expected(p, s, example);
	end->node = keep(p, strndup(string, (size_t)(bracket - string)));
	end->port = (unsigned int)port;
	return end->node ? 0 : -ENOMEM;
}

static int unknown(struct parser *p, const config_setting_t *s, const struct setting *members)
{
	const char *name = config_setting_name(s);
	char names[256] = "";
	size_t len = 0;

	for (; members->name; members++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", len ? ", " : "",
					members->name);
	return fail(p, s, "unknown setting \"%s\": expected one of %s", name ? name : "", names);
}

static int parse_member(struct parser *p, const config_setting_t *s, const struct setting *members,
			char *obj)
{
	const struct setting *m;

	for (m = members; m->name; m++)
		if (!strcmp(m->name, config_setting_name(s)))
			return m->parse(p, s, m, obj + m->offset);
	return unknown(p, s, members);
}

/* A { } whose members stand in a table. */
static int parse_members(struct parser *p, const config_setting_t *s,
			 const struct setting *members, void *obj)
{
	const struct setting *m;
	char path[128];
	int i, err;

	for (i = 0; i < config_setting_length(s); i++) {
		err = parse_member(p, config_setting_get_elem(s, (unsigned int)i), members, obj);
		if (err)
			return err;
	}
	for (m = members; m->name; m++) {
		if (!m->required || config_setting_get_member(s, m->name))
			continue;
		setting_path(s, path, sizeof(path));
		return fail(p, s, "%s: expected a setting \"%s\"", path, m->name);
	}
	return 0;
}

static int parse_group(struct parser *p, const config_setting_t *s, const struct setting *what,
		       void *field)
{
	if (!config_setting_is_group(s))
		return expected(p, s, "a group { }");
	return parse_members(p, s, what->members, field);
}

/* Append what->size zeroed bytes to the array at field. */
static void *append(const struct setting *what, void **array, unsigned int *count)
{
	char *bigger = reallocarray(*array, *count + 1, what->size);

	if (!bigger)
		return NULL;
	*array = bigger;
	return memset(bigger + what->size * (*count)++, 0, what->size);
}

/* "file:line" of an element, for errors that show only later. */
static const char *where(struct parser *p, const config_setting_t *s)
{
	char *text;

	if (asprintf(&text, "%s:%u", source(p, s), config_setting_source_line(s)) < 0)
		return NULL;
	return keep(p, text);
}

/* A ( ) of groups. Every element's struct begins with its `where`. */
static int parse_list(struct parser *p, const config_setting_t *s, const struct setting *what,
		      void *field)
{
	unsigned int *count = (unsigned int *)((char *)p->conf + what->count);
	const config_setting_t *elem;
	const char **obj;
	int i, err;

	if (!config_setting_is_list(s))
		return expected(p, s, "a list ( { }, ... )");
	for (i = 0; i < config_setting_length(s); i++) {
		elem = config_setting_get_elem(s, (unsigned int)i);
		if (!config_setting_is_group(elem))
			return expected(p, elem, "a group { }");
		obj = append(what, field, count);
		if (!obj)
			return -ENOMEM;
		*obj = where(p, elem);
		if (!*obj)
			return -ENOMEM;
		err = parse_members(p, elem, what->members, obj);
		if (err)
			return err;
	}
	return 0;
}

static int parse_switches(struct parser *p, const config_setting_t *s, const struct setting *what,
			  void *field)
{
	unsigned int i = p->conf->num_nodes;
	int err = parse_list(p, s, what, field);

	for (; !err && i < p->conf->num_nodes; i++)
		p->conf->nodes[i].is_switch = true;
	return err;
}

static int parse_hcas(struct parser *p, const config_setting_t *s, const struct setting *what,
		      void *field)
{
	unsigned int i = p->conf->num_nodes;
	int err = parse_list(p, s, what, field);

	for (; !err && i < p->conf->num_nodes; i++)
		if (!p->conf->nodes[i].ports)
			p->conf->nodes[i].ports = 1;
	return err;
}

static int parse_devices(struct parser *p, const config_setting_t *s, const struct setting *what,
			 void *field)
{
	unsigned int i = p->conf->num_devices;
	int err = parse_list(p, s, what, field);

	p->conf->has_devices = true;
	for (; !err && i < p->conf->num_devices; i++)
		if (!p->conf->devices[i].node)
			p->conf->devices[i].node = p->conf->devices[i].name;
	return err;
}

static int parse_topology(struct parser *p, const config_setting_t *s, const struct setting *what,
			  void *field)
{
	p->conf->topology_where = where(p, s);
	return p->conf->topology_where ? parse_path(p, s, what, field) : -ENOMEM;
}

static int parse_log(struct parser *p, const config_setting_t *s, const struct setting *what,
		     void *field)
{
	const char *string = config_setting_get_string(s);

	if (string && !strcmp(string, "syslog")) {
		*(const char **)field = string;
		return 0;
	}
	return parse_path(p, s, what, field);
}

static int parse_bool(struct parser *p, const config_setting_t *s, const struct setting *what,
		      void *field)
{
	(void)what;
	if (config_setting_type(s) != CONFIG_TYPE_BOOL)
		return expected(p, s, "true or false");
	*(bool *)field = config_setting_get_bool(s);
	return 0;
}

/* One address, or an array or list of them. */
static int parse_listen(struct parser *p, const config_setting_t *s, const struct setting *what,
			void *field)
{
	static const struct setting element = { .size = sizeof(const char *) };
	struct conf_p9 *p9 = &p->conf->p9;
	const char *address = config_setting_get_string(s), **place, *wrong;
	int i, err = 0;

	if (config_setting_is_array(s) || config_setting_is_list(s)) {
		for (i = 0; !err && i < config_setting_length(s); i++)
			err = parse_listen(p, config_setting_get_elem(s, (unsigned int)i), what,
					   field);
		return err;
	}
	if (!address)
		return expected(p, s, "an address such as \"unix:/run/ibfs.9p\"");
	wrong = p9_check_address(address);
	if (wrong)
		return fail(p, s, "p9.listen: \"%s\": %s", address, wrong);
	place = append(&element, field, &p9->num_listen);
	if (!place)
		return -ENOMEM;
	*place = address;
	return 0;
}

#define MEMBER(type, member)	.offset = offsetof(struct type, member)

static const struct setting switch_settings[] = {
	{ "name", parse_string, MEMBER(conf_node, name), .min = 1, .max = 64, .required = true },
	{ "ports", parse_uint, MEMBER(conf_node, ports), .min = 1, .max = 254, .required = true },
	{ "guid", parse_guid, MEMBER(conf_node, guid) },
	{ "desc", parse_string, MEMBER(conf_node, desc), .max = 64 },
	{ 0 }
};

static const struct setting hca_settings[] = {
	{ "name", parse_string, MEMBER(conf_node, name), .min = 1, .max = 64, .required = true },
	{ "ports", parse_uint, MEMBER(conf_node, ports), .min = 1, .max = 254 },
	{ "guid", parse_guid, MEMBER(conf_node, guid) },
	{ "desc", parse_string, MEMBER(conf_node, desc), .max = 64 },
	{ 0 }
};

static const struct setting link_settings[] = {
	{ "a", parse_end, MEMBER(conf_link, a), .required = true },
	{ "b", parse_end, MEMBER(conf_link, b), .required = true },
	{ "width", parse_width, MEMBER(conf_link, width) },
	{ "speed", parse_speed, .offset = 0 },
	{ 0 }
};

static const struct setting device_settings[] = {
	{ "name", parse_string, MEMBER(conf_device, name), .min = 1, .max = 19, .required = true },
	{ "node", parse_string, MEMBER(conf_device, node), .min = 1, .max = 64 },
	{ "backend", parse_backend, MEMBER(conf_device, verbs) },
	{ 0 }
};

static const struct setting files_settings[] = {
	{ "uid", parse_uid, MEMBER(conf_files, uid) },
	{ "gid", parse_gid, MEMBER(conf_files, gid) },
	{ "umad", parse_mode, MEMBER(conf_files, umad) },
	{ "issm", parse_mode, MEMBER(conf_files, issm) },
	{ "uverbs", parse_mode, MEMBER(conf_files, uverbs) },
	{ "clone", parse_mode, MEMBER(conf_files, clone) },
	{ 0 }
};

static const struct setting p9_settings[] = {
	{ "listen", parse_listen, MEMBER(conf_p9, listen) },
	{ "mode", parse_mode, MEMBER(conf_p9, mode) },
	{ "tcp_uid", parse_uid, MEMBER(conf_p9, tcp_uid) },
	{ "tcp_gid", parse_gid, MEMBER(conf_p9, tcp_gid) },
	{ "remote", parse_bool, MEMBER(conf_p9, remote) },
	{ "read_only", parse_bool, MEMBER(conf_p9, read_only) },
	{ "msize", parse_uint, MEMBER(conf_p9, msize), .min = 8192, .max = 16 << 20 },
	{ "connections", parse_uint, MEMBER(conf_p9, connections), .min = 1, .max = 100000 },
	{ "fids", parse_uint, MEMBER(conf_p9, fids), .min = 16, .max = 1000000 },
	{ "tags", parse_uint, MEMBER(conf_p9, tags), .min = 1, .max = 65535 },
	{ "memory", parse_uint, MEMBER(conf_p9, memory), .max = 1 << 20 },
	{ 0 }
};

/* Offsets are in struct conf: the group's members know where they are. */
static const struct setting limits_settings[] = {
	{ "errors", parse_uint, MEMBER(conf, errors), .min = 1, .max = 1000000 },
	{ "events", parse_uint, MEMBER(conf, events), .min = 1, .max = 1000000 },
	{ "user_objects", parse_uint, MEMBER(conf, user_objects), .min = 1, .max = 1 << 28 },
	{ 0 }
};

#define LIST(array, number, table)                                                        \
	MEMBER(conf, array), .count = offsetof(struct conf, number), .members = (table),  \
	.size = sizeof(*((struct conf *)0)->array)

static const struct setting settings[] = {
	{ "subnet", parse_subnet, MEMBER(conf, subnet_manager) },
	{ "topology", parse_topology, MEMBER(conf, topology) },
	{ "switches", parse_switches, LIST(nodes, num_nodes, switch_settings) },
	{ "hcas", parse_hcas, LIST(nodes, num_nodes, hca_settings) },
	{ "links", parse_list, LIST(links, num_links, link_settings) },
	{ "devices", parse_devices, LIST(devices, num_devices, device_settings) },
	{ "backend", parse_backend, MEMBER(conf, verbs) },
	{ "files", parse_group, MEMBER(conf, files), .members = files_settings },
	{ "p9", parse_group, MEMBER(conf, p9), .members = p9_settings },
	{ "limits", parse_group, .offset = 0, .members = limits_settings },
	{ "log", parse_log, MEMBER(conf, log) },
	{ "passthrough", parse_bool, MEMBER(conf, passthrough) },
	{ "realtime", parse_bool, MEMBER(conf, realtime) },
	{ "bells", parse_bool, MEMBER(conf, bells) },
	{ 0 }
};

/* libconfig gives a syntax error's file, line and a word about it. */
static int syntax_error(struct parser *p, const config_t *cfg)
{
	const char *file = config_error_file(cfg);

	if (asprintf(&p->err, "%s:%d: expected `name = value;`: %s", file ? file : p->file,
		     config_error_line(cfg), config_error_text(cfg)) < 0)
		p->err = NULL;
	return -EINVAL;
}

static int open_error(struct parser *p, int err)
{
	if (asprintf(&p->err, "%s: cannot read the configuration: %s", p->file,
		     strerror(err)) < 0)
		p->err = NULL;
	return -err;
}

static int set_include_dir(config_t *cfg, const char *file)
{
	const char *slash = strrchr(file, '/');
	char *dir;

	if (!slash)
		return 0;
	dir = strndup(file, (size_t)(slash - file) + 1);
	if (!dir)
		return -ENOMEM;
	config_set_include_dir(cfg, dir);
	free(dir);
	return 0;
}

static int read_file(struct parser *p, config_t *cfg)
{
	struct stat st;
	FILE *in;
	int ok;

	if (set_include_dir(cfg, p->file))
		return -ENOMEM;
	in = fopen(p->file, "re");
	if (!in)
		return open_error(p, errno);
	if (fstat(fileno(in), &st) == 0 && S_ISDIR(st.st_mode)) {
		fclose(in);
		return open_error(p, EISDIR);
	}
	ok = config_read(cfg, in);
	fclose(in);
	if (!ok)
		return syntax_error(p, cfg);
	return parse_members(p, config_root_setting(cfg), settings, p->conf);
}

static int add_device(struct conf *conf, const char *at, const char *name)
{
	static const struct setting what = { .size = sizeof(struct conf_device) };
	struct conf_device *dev;

	dev = append(&what, (void **)&conf->devices, &conf->num_devices);
	if (!dev)
		return -ENOMEM;
	*dev = (struct conf_device){ .where = at, .name = name, .node = name };
	return 0;
}

/*
 * Without a list of devices, every HCA that the file describes is one; of a
 * file that describes nothing, those of the fabric that is there without it.
 */
static int add_default_devices(struct conf *conf)
{
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < conf->num_nodes; i++)
		if (!conf->nodes[i].is_switch)
			err = add_device(conf, conf->nodes[i].where, conf->nodes[i].name);
	if (conf->default_fabric && !err)
		err = add_device(conf, "default", "rxe0");
	if (conf->default_fabric && !err)
		err = add_device(conf, "default", "rxe1");
	return err;
}

static struct conf *conf_new(void)
{
	struct conf *conf = calloc(1, sizeof(*conf));
	struct conf_text *text = calloc(1, sizeof(*text));

	if (!conf || !text) {
		free(conf);
		free(text);
		return NULL;
	}
	config_init(&text->file);
	conf->files = (struct conf_files){
		.uid = geteuid(), .gid = getegid(),
		.umad = 0600, .issm = 0600, .uverbs = 0666, .clone = 0666,
	};
	conf->p9 = (struct conf_p9){
		.mode = geteuid() ? 0600 : 0666,
		.tcp_uid = NOBODY, .tcp_gid = NOBODY,
		.msize = 1 << 20, .connections = 1024, .fids = 16384, .tags = 1024, .memory = 8,
	};
	conf->realtime = conf->passthrough = conf->bells = true;
	conf->errors = 256;
	conf->events = 1024;
	conf->user_objects = 16384;
	conf->priv = text;
	return conf;
}

void conf_free(struct conf *conf)
{
	struct conf_text *text;

	if (!conf)
		return;
	text = conf->priv;
	while (text->num_strings)
		free(text->strings[--text->num_strings]);
	free(text->strings);
	config_destroy(&text->file);
	free(text);
	free(conf->nodes);
	free(conf->links);
	free(conf->devices);
	free(conf->p9.listen);
	free(conf);
}

/* Devices of the system, and none beside them that needs a fabric. */
static bool only_verbs(const struct conf *conf)
{
	unsigned int i;

	for (i = 0; i < conf->num_devices && conf->devices[i].verbs; i++)
		;
	return i == conf->num_devices && (conf->verbs || i);
}

static int read_all(struct parser *p)
{
	struct conf *conf = p->conf;
	int err = 0;

	if (p->file)
		err = read_file(p, &p->text->file);
	conf->default_fabric = !conf->topology && !conf->num_nodes && !conf->num_links &&
			       !only_verbs(conf);
	if (!err && !conf->has_devices)
		err = add_default_devices(conf);
	return err;
}

struct conf *conf_read(const char *file, char **err)
{
	struct parser p = { .conf = conf_new(), .file = file };

	*err = NULL;
	if (p.conf) {
		p.text = p.conf->priv;
		if (!read_all(&p))
			return p.conf;
	}
	*err = p.err ? p.err : strdup(strerror(ENOMEM));
	conf_free(p.conf);
	return NULL;
}
