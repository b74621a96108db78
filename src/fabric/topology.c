/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading topology files: lines, includes, and which line means what. The
 * format is ibsim's (its sim_net.c decides), which contains ibnetdiscover's.
 */
#include "fabric/topology.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define POOL_CHUNK	65536

struct topo_chunk {
	struct topo_chunk *next;
	size_t used, size;
	_Alignas(max_align_t) char data[];
};

static int read_file(struct topo *topo, const char *name);

void *topo_alloc(struct topo *topo, size_t size)
{
	struct topo_chunk *chunk = topo->pool;
	void *mem;

	size = (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
	if (!chunk || chunk->size - chunk->used < size) {
		size_t room = size > POOL_CHUNK ? size : POOL_CHUNK;

		chunk = calloc(1, sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		chunk->size = room;
		chunk->next = topo->pool;
		topo->pool = chunk;
	}
	mem = chunk->data + chunk->used;
	chunk->used += size;
	return mem;
}

char *topo_strdup(struct topo *topo, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = topo_alloc(topo, size);

	return copy ? memcpy(copy, text, size) : NULL;
}

/* What stands in a file must neither break the message's line nor reach a terminal raw. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if (iscntrl((unsigned char)*text))
			*text = '?';
}

static int fail_va(struct topo *topo, struct topo_place place, const char *fmt, va_list ap)
{
	char *what;

	if (vasprintf(&what, fmt, ap) < 0)
		return topo_nomem(topo);
	if (asprintf(topo->err, "%s:%u: %s", place.file, place.line, what) < 0)
		*topo->err = NULL;
	else
		make_printable(*topo->err);
	free(what);
	return -EINVAL;
}

int topo_fail_at(struct topo *topo, struct topo_place place, const char *fmt, ...)
{
	va_list ap;
	int err;

	va_start(ap, fmt);
	err = fail_va(topo, place, fmt, ap);
	va_end(ap);
	return err;
}

int topo_fail(struct topo *topo, const char *fmt, ...)
{
	va_list ap;
	int err;

	va_start(ap, fmt);
	err = fail_va(topo, topo->file->place, fmt, ap);
	va_end(ap);
	return err;
}

int topo_nomem(struct topo *topo)
{
	*topo->err = strdup("no memory for the topology");
	return -ENOMEM;
}

struct topo_decl *topo_decl(struct topo *topo, const struct port *port)
{
	unsigned int index = port->node->index;

	if (index < topo->first_node || index - topo->first_node >= topo->num_nodes)
		return NULL;
	return &topo->nodes[index - topo->first_node].decls[port->num];
}

/* "word=value" and "word = value" */
static int take_assignment(struct topo *topo, char **s, const char *word)
{
	char found[48];

	*s = topo_skip(*s);
	if (!topo_take(s, "="))
		return topo_fail(topo, "expected '=' after %s, found %s", word,
				 topo_show(found, *s));
	*s = topo_skip(*s);
	return 0;
}

static int parse_value(struct topo *topo, char *s, const char *word, uint64_t min,
		       uint64_t max, uint64_t *val)
{
	int err = take_assignment(topo, &s, word);

	if (!err)
		err = topo_number(topo, &s, word, min, max, val);
	return err ? err : topo_end(topo, s);
}

static int parse_vendid(struct topo *topo, char *s, int unused)
{
	uint64_t val;
	int err = parse_value(topo, s, "vendid", 0, 0xffffff, &val);

	(void)unused;
	if (err)
		return err;
	topo->vendor_id = val;
	topo->vendor_given = true;
	return 0;
}

static int parse_devid(struct topo *topo, char *s, int unused)
{
	uint64_t val;
	int err = parse_value(topo, s, "devid", 0, UINT16_MAX, &val);

	(void)unused;
	if (err)
		return err;
	topo->device_id = val;
	topo->device_given = true;
	return 0;
}

static int parse_sysimgguid(struct topo *topo, char *s, int unused)
{
	(void)unused;
	return parse_value(topo, s, "sysimgguid", 0, UINT64_MAX, &topo->sysimg_guid);
}

static int parse_width(struct topo *topo, char *s, int unused)
{
	uint64_t val;
	int err = parse_value(topo, s, "width", 1, 31, &val);

	(void)unused;
	if (!err)
		topo->width = val;
	return err;
}

static int parse_speed(struct topo *topo, char *s, int unused)
{
	uint64_t val;
	int err = parse_value(topo, s, "speed", 1, 7, &val);

	(void)unused;
	if (!err)
		topo->speed = val;
	return err;
}

static int parse_extspeed(struct topo *topo, char *s, int unused)
{
	uint64_t val;
	int err = parse_value(topo, s, "extspeed", 0, 31, &val);

	(void)unused;
	if (!err)
		topo->speed_ext = val;
	return err;
}

static int parse_module(struct topo *topo, char *s, int unused)
{
	char *prefix;
	int err;

	(void)unused;
	err = take_assignment(topo, &s, "module");
	if (!err)
		err = topo_quoted(topo, &s, "the module's name", &prefix);
	if (!err)
		err = topo_end(topo, s);
	if (err)
		return err;
	if (strlen(prefix) > TOPO_PREFIX_MAX || strpbrk(prefix, "#@"))
		return topo_fail(topo, "expected a module's name of up to %d characters "
				 "without # and @, found \"%.40s\"", TOPO_PREFIX_MAX, prefix);
	memcpy(topo->prefix, prefix, strlen(prefix) + 1);
	return 0;
}

/* A file's name is relative to the file that includes it. */
static int parse_include(struct topo *topo, char *s, int unused)
{
	const char *here = topo->file->place.file;
	const char *slash = strrchr(here, '/');
	char *name, path[PATH_MAX];
	int err, len;

	(void)unused;
	s = topo_skip(s);
	err = topo_quoted(topo, &s, "a file's name", &name);
	if (!err)
		err = topo_end(topo, s);
	if (err)
		return err;
	len = *name == '/' || !slash ? 0 : slash - here + 1;
	if ((size_t)snprintf(path, sizeof(path), "%.*s%s", len, here, name) >= sizeof(path))
		return topo_fail(topo, "the included file's path is longer than %d characters",
				 PATH_MAX - 1);
	return read_file(topo, path);
}

static int parse_nothing(struct topo *topo, char *s, int unused)
{
	(void)topo;
	(void)s;
	(void)unused;
	return 0;
}

/* What a line starts with. The last ones are ibsim's debug switch and ibnetdiscover -g's headings. */
static const struct record {
	const char *word;
	int (*parse)(struct topo *topo, char *s, int type);
	int type;
} records[] = {
	{ "Switch", topo_parse_node, NODE_SWITCH },
	{ "Hca", topo_parse_node, NODE_CA },
	{ "Ca", topo_parse_node, NODE_CA },
	{ "Rt", topo_parse_node, NODE_ROUTER },
	{ "switchguid", topo_parse_guid, NODE_SWITCH },
	{ "hcaguids", topo_parse_guid, NODE_CA },
	{ "hcaguid", topo_parse_guid, NODE_CA },
	{ "caguids", topo_parse_guid, NODE_CA },
	{ "caguid", topo_parse_guid, NODE_CA },
	{ "rtguid", topo_parse_guid, NODE_ROUTER },
	{ "vendid", parse_vendid, 0 },
	{ "devid", parse_devid, 0 },
	{ "sysimgguid", parse_sysimgguid, 0 },
	{ "width", parse_width, 0 },
	{ "speed", parse_speed, 0 },
	{ "extspeed", parse_extspeed, 0 },
	{ "module", parse_module, 0 },
	{ "include", parse_include, 0 },
	{ "do", topo_parse_do, 0 },
	{ "pdebug", parse_nothing, 0 },
	{ "Chassis", parse_nothing, 0 },
	{ "Hostname", parse_nothing, 0 },
	{ "Non-Chassis", parse_nothing, 0 },
};

static int parse_record(struct topo *topo, char *s)
{
	size_t len = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-");
	char found[48];
	size_t i;

	for (i = 0; i < sizeof(records) / sizeof(records[0]); i++)
		if (len == strlen(records[i].word) && !strncmp(s, records[i].word, len))
			return records[i].parse(topo, s + len, records[i].type);
	return topo_fail(topo, "expected a record (Switch, Ca, Hca, Rt), a port ([1] ...), "
			 "a setting (caguid=, vendid=, ...), include, do or a comment, found %s",
			 topo_show(found, s));
}

static int parse_line(struct topo *topo, char *line, size_t len)
{
	char *s;

	if (memchr(line, '\0', len))
		return topo_fail(topo, "expected text, found a NUL byte");
	while (len && (line[len - 1] == '\n' || line[len - 1] == '\r'))
		line[--len] = '\0';
	s = topo_skip(line);
	if (*s == '#')
		return 0;
	if (*s == '[' || *s == '@') {
		if (!topo->open)
			return topo_fail(topo, "expected a Switch, Ca, Hca or Rt line before "
					 "its ports' lines");
		return topo_parse_port(topo, s);
	}
	topo->open = NULL;
	return *s ? parse_record(topo, s) : 0;
}

static int read_lines(struct topo *topo, struct topo_file *file)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int err = 0;

	errno = 0;
	while (!err && (len = getline(&line, &size, file->in)) >= 0) {
		file->place.line++;
		err = parse_line(topo, line, len);
		errno = 0;
	}
	if (!err && !feof(file->in))
		err = errno == ENOMEM ? topo_nomem(topo) :
		      topo_fail(topo, "can't read on: %s", strerror(errno));
	free(line);
	return err;
}

/* An include's own includes and records end with it. */
static int read_stream(struct topo *topo, struct topo_file *file)
{
	int err;

	file->parent = topo->file;
	topo->file = file;
	topo->open = NULL;
	err = read_lines(topo, file);
	topo->open = NULL;
	topo->file = file->parent;
	return err;
}

static int check_file(struct topo *topo, struct topo_file *file)
{
	struct stat st;
	struct topo_file *f;
	unsigned int depth = 0;

	if (fstat(fileno(file->in), &st))
		return topo_fail(topo, "%s: %s", file->place.file, strerror(errno));
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
		return topo_fail(topo, "%s: expected a file or a pipe", file->place.file);
	file->dev = st.st_dev;
	file->ino = st.st_ino;
	for (f = topo->file; f; f = f->parent, depth++)
		if (f->dev == file->dev && f->ino == file->ino)
			return topo_fail(topo, "%s includes itself", file->place.file);
	if (depth > TOPO_DEPTH_MAX)
		return topo_fail(topo, "includes are nested deeper than %d", TOPO_DEPTH_MAX);
	if (++topo->files > TOPO_FILES_MAX)
		return topo_fail(topo, "more than %d includes", TOPO_FILES_MAX);
	return 0;
}

/* A file that can't be opened is the including line's fault. */
static int read_file(struct topo *topo, const char *name)
{
	struct topo_file file = { 0 };
	int err;

	file.place.file = topo_strdup(topo, name);
	if (!file.place.file)
		return topo_nomem(topo);
	file.in = fopen(name, "re");
	if (!file.in)
		return topo_fail(topo, "can't open %s: %s", name, strerror(errno));
	err = check_file(topo, &file);
	if (!err)
		err = read_stream(topo, &file);
	fclose(file.in);
	return err;
}

static void topo_free(struct topo *topo)
{
	struct topo_chunk *chunk;

	HASH_CLEAR(hh, topo->aliases);
	while ((chunk = topo->pool)) {
		topo->pool = chunk->next;
		free(chunk);
	}
	free(topo->nodes);
}

/* What ibsim starts with: 4x SDR. */
static void topo_init(struct topo *topo, struct fabric *fabric, char **err)
{
	*topo = (struct topo){
		.fabric = fabric,
		.err = err,
		.first_node = fabric->num_nodes,
		.width = WIDTH_4X,
		.speed = SPEED_SDR,
	};
	*err = NULL;
}

static int topo_finish(struct topo *topo, struct topo_file *file)
{
	int err;

	if (!file->place.line)
		file->place.line = 1;
	if (!topo->num_nodes)
		return topo_fail_at(topo, file->place,
				    "expected a Switch, Ca, Hca or Rt record, found none");
	err = topo_connect(topo);
	if (!err)
		err = topo_run_cmds(topo);
	return err ? err : topo_check_guids(topo);
}

int topology_load_stream(struct fabric *fabric, FILE *in, const char *name, char **err)
{
	struct topo_file file = { .in = in, .place.file = name };
	struct topo topo;
	struct stat st;
	int ret;

	topo_init(&topo, fabric, err);
	if (fileno(in) >= 0 && !fstat(fileno(in), &st)) {
		file.dev = st.st_dev;
		file.ino = st.st_ino;
	}
	ret = read_stream(&topo, &file);
	if (!ret)
		ret = topo_finish(&topo, &file);
	fabric->by_port_guid.valid = false;
	topo_free(&topo);
	return ret;
}

int topology_load(struct fabric *fabric, const char *file, char **err)
{
	struct stat st;
	FILE *in;
	int ret;

	in = fopen(file, "re");
	if (!in || fstat(fileno(in), &st)) {
		ret = -errno;
		if (asprintf(err, "%s: can't open: %s", file, strerror(-ret)) < 0)
			*err = NULL;
	} else if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode)) {
		ret = -EINVAL;
		if (asprintf(err, "%s: expected a file or a pipe", file) < 0)
			*err = NULL;
	} else {
		ret = topology_load_stream(fabric, in, file, err);
	}
	if (in)
		fclose(in);
	return ret;
}
