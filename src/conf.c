/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading the configuration, ibfs.conf(5). Every setting stands in a table
 * with its parser and its place in struct conf; whatever is not in a table, or
 * not what the table says, is an error with file and line. Nothing here
 * touches a fabric: setup.c makes what was read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ibfs/fs.h>

#include "conf_parse.h"

/* Debian's nobody and nogroup, the kernel's overflowuid. */
enum { NOBODY = 65534 };

static int unknown(struct parser *p, const config_setting_t *s, const struct setting *members)
{
	const char *name = config_setting_name(s);
	char names[256] = "";
	size_t len = 0;

	for (; members->name; members++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", len ? ", " : "",
					members->name);
	return conf_fail(p, s, "unknown setting \"%s\": expected one of %s", name ? name : "",
			 names);
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
		conf_path(s, path, sizeof(path));
		return conf_fail(p, s, "%s: expected a setting \"%s\"", path, m->name);
	}
	return 0;
}

static int parse_group(struct parser *p, const config_setting_t *s, const struct setting *what,
		       void *field)
{
	if (!config_setting_is_group(s))
		return conf_expected(p, s, "a group { }");
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

	if (asprintf(&text, "%s:%u", conf_source(p, s), config_setting_source_line(s)) < 0)
		return NULL;
	return conf_keep(p, text);
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
		return conf_expected(p, s, "a list ( { }, ... )");
	for (i = 0; i < config_setting_length(s); i++) {
		elem = config_setting_get_elem(s, (unsigned int)i);
		if (!config_setting_is_group(elem))
			return conf_expected(p, elem, "a group { }");
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
	return p->conf->topology_where ? value_path(p, s, what, field) : -ENOMEM;
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
		return conf_expected(p, s, "an address such as \"unix:/run/ibfs.9p\"");
	wrong = p9_check_address(address);
	if (wrong)
		return conf_fail(p, s, "p9.listen: \"%s\": %s", address, wrong);
	place = append(&element, field, &p9->num_listen);
	if (!place)
		return -ENOMEM;
	*place = address;
	return 0;
}

#define MEMBER(type, member)	.offset = offsetof(struct type, member)

static const struct setting switch_settings[] = {
	{ "name", value_string, MEMBER(conf_node, name), .min = 1, .max = 64, .required = true },
	{ "ports", value_uint, MEMBER(conf_node, ports), .min = 1, .max = 254, .required = true },
	{ "guid", value_guid, MEMBER(conf_node, guid) },
	{ "desc", value_string, MEMBER(conf_node, desc), .max = 64 },
	{ 0 }
};

static const struct setting hca_settings[] = {
	{ "name", value_string, MEMBER(conf_node, name), .min = 1, .max = 64, .required = true },
	{ "ports", value_uint, MEMBER(conf_node, ports), .min = 1, .max = 254 },
	{ "guid", value_guid, MEMBER(conf_node, guid) },
	{ "desc", value_string, MEMBER(conf_node, desc), .max = 64 },
	{ 0 }
};

static const struct setting link_settings[] = {
	{ "a", value_end, MEMBER(conf_link, a), .required = true },
	{ "b", value_end, MEMBER(conf_link, b), .required = true },
	{ "width", value_width, MEMBER(conf_link, width) },
	{ "speed", value_speed, .offset = 0 },
	{ 0 }
};

static const struct setting device_settings[] = {
	{ "name", value_string, MEMBER(conf_device, name), .min = 1, .max = 19, .required = true },
	{ "node", value_string, MEMBER(conf_device, node), .min = 1, .max = 64 },
	{ "backend", value_backend, MEMBER(conf_device, verbs) },
	{ 0 }
};

static const struct setting files_settings[] = {
	{ "uid", value_uid, MEMBER(conf_files, uid) },
	{ "gid", value_gid, MEMBER(conf_files, gid) },
	{ "umad", value_mode, MEMBER(conf_files, umad) },
	{ "issm", value_mode, MEMBER(conf_files, issm) },
	{ "uverbs", value_mode, MEMBER(conf_files, uverbs) },
	{ "clone", value_mode, MEMBER(conf_files, clone) },
	{ 0 }
};

static const struct setting p9_settings[] = {
	{ "listen", parse_listen, MEMBER(conf_p9, listen) },
	{ "mode", value_mode, MEMBER(conf_p9, mode) },
	{ "tcp_uid", value_uid, MEMBER(conf_p9, tcp_uid) },
	{ "tcp_gid", value_gid, MEMBER(conf_p9, tcp_gid) },
	{ "remote", value_bool, MEMBER(conf_p9, remote) },
	{ "read_only", value_bool, MEMBER(conf_p9, read_only) },
	{ "msize", value_uint, MEMBER(conf_p9, msize), .min = 8192, .max = 16 << 20 },
	{ "connections", value_uint, MEMBER(conf_p9, connections), .min = 1, .max = 100000 },
	{ "fids", value_uint, MEMBER(conf_p9, fids), .min = 16, .max = 1000000 },
	{ "tags", value_uint, MEMBER(conf_p9, tags), .min = 1, .max = 65535 },
	{ "memory", value_uint, MEMBER(conf_p9, memory), .max = 1 << 20 },
	{ 0 }
};

/* Offsets are in struct conf: the group's members know where they are. */
static const struct setting limits_settings[] = {
	{ "errors", value_uint, MEMBER(conf, errors), .min = 1, .max = 1000000 },
	{ "events", value_uint, MEMBER(conf, events), .min = 1, .max = 1000000 },
	{ "user_objects", value_uint, MEMBER(conf, user_objects), .min = 1, .max = 1 << 28 },
	{ "user_files", value_uint, MEMBER(conf, user_files), .min = 1, .max = 1 << 28 },
	{ "user_memory", value_uint, MEMBER(conf, user_memory), .min = 1, .max = 1 << 28 },
	{ "user_descriptors", value_uint, MEMBER(conf, user_descriptors), .min = 1, .max = 1 << 28 },
	{ "user_mappings", value_uint, MEMBER(conf, user_mappings), .min = 1, .max = 1 << 28 },
	{ "user_connections", value_uint, MEMBER(conf, user_connections), .min = 1, .max = 1 << 28 },
	{ "reserve", value_uint, MEMBER(conf, reserve), .min = 0, .max = 90 },
	{ 0 }
};

#define LIST(array, number, table)                                                        \
	MEMBER(conf, array), .count = offsetof(struct conf, number), .members = (table),  \
	.size = sizeof(*((struct conf *)0)->array)

static const struct setting settings[] = {
	{ "subnet", value_subnet, MEMBER(conf, subnet_manager) },
	{ "topology", parse_topology, MEMBER(conf, topology) },
	{ "switches", parse_switches, LIST(nodes, num_nodes, switch_settings) },
	{ "hcas", parse_hcas, LIST(nodes, num_nodes, hca_settings) },
	{ "links", parse_list, LIST(links, num_links, link_settings) },
	{ "devices", parse_devices, LIST(devices, num_devices, device_settings) },
	{ "backend", value_backend, MEMBER(conf, verbs) },
	{ "files", parse_group, MEMBER(conf, files), .members = files_settings },
	{ "p9", parse_group, MEMBER(conf, p9), .members = p9_settings },
	{ "limits", parse_group, .offset = 0, .members = limits_settings },
	{ "log", value_log, MEMBER(conf, log) },
	{ "passthrough", value_bool, MEMBER(conf, passthrough) },
	{ "realtime", value_bool, MEMBER(conf, realtime) },
	{ "bells", value_bool, MEMBER(conf, bells) },
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
	conf->user_objects = conf->user_files = 16384;
	conf->user_memory = 256;
	conf->reserve = 10;
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
