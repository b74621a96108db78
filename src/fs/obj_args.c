/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arguments of objects' commands: key=value words, each fetched by name, all of
 * them known, every value in range; and the running of a ctl file's lines.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/obj.h"

void arg_error(struct args *args, int err, const char *fmt, ...)
{
	char text[160];
	va_list ap;

	if (args->err)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	args->err = obj_fail(args->obj, err, "%s: %s", args->line->argv[0], text);
}

const char *arg_text(struct args *args, const char *key)
{
	for (unsigned int i = 1; i < args->line->argc; i++) {
		const char *value = ctl_value(args->line->argv[i], key);

		if (!value || args->used >> i & 1)
			continue;
		args->used |= 1ULL << i;
		return value;
	}
	return NULL;
}

bool arg_word(struct args *args, const char *word)
{
	for (unsigned int i = 1; i < args->line->argc; i++) {
		if (strcmp(args->line->argv[i], word) || args->used >> i & 1)
			continue;
		args->used |= 1ULL << i;
		return true;
	}
	return false;
}

static uint64_t arg_value(struct args *args, const char *key, uint64_t max, uint64_t unset,
			  int (*parse)(const char *text, uint64_t max, uint64_t *value),
			  const char *what, const char *units)
{
	const char *text = arg_text(args, key);
	uint64_t value;

	if (!text)
		return unset;
	if (parse(text, max, &value)) {
		arg_error(args, EINVAL, "%s=%s: expected a %s up to %llu%s", key, text, what,
			  (unsigned long long)max, units);
		return unset;
	}
	return value;
}

uint64_t arg_num(struct args *args, const char *key, uint64_t max, uint64_t unset)
{
	return arg_value(args, key, max, unset, parse_u64, "number", "");
}

uint64_t arg_size(struct args *args, const char *key, uint64_t max, uint64_t unset)
{
	return arg_value(args, key, max, unset, parse_size, "size", " (K, M, G)");
}

static const struct {
	const char *name;
	unsigned int flag;
} accesses[] = {
	{ "local_write", IBV_ACCESS_LOCAL_WRITE }, { "remote_write", IBV_ACCESS_REMOTE_WRITE },
	{ "remote_read", IBV_ACCESS_REMOTE_READ }, { "remote_atomic", IBV_ACCESS_REMOTE_ATOMIC },
	{ "mw_bind", IBV_ACCESS_MW_BIND }, { "zero_based", IBV_ACCESS_ZERO_BASED },
};
#define ACCESSES (sizeof(accesses) / sizeof(accesses[0]))

unsigned int arg_access(struct args *args, const char *key, unsigned int unset)
{
	const char *text = arg_text(args, key);
	unsigned int flags = 0;

	if (!text)
		return unset;
	while (*text) {
		size_t len = strcspn(text, ","), i;

		for (i = 0; i < ACCESSES; i++)
			if (strlen(accesses[i].name) == len && !memcmp(accesses[i].name, text, len))
				break;
		if (i == ACCESSES) {
			arg_error(args, EINVAL, "%s: \"%.*s\" is no access (local_write, remote_write, "
				  "remote_read, remote_atomic, mw_bind, zero_based)", key, (int)len, text);
			return unset;
		}
		flags |= accesses[i].flag;
		text += len + (text[len] == ',');
	}
	return flags;
}

void access_print(struct textbuf *out, unsigned int access)
{
	const char *comma = "";

	for (size_t i = 0; i < ACCESSES; i++) {
		if (!(access & accesses[i].flag))
			continue;
		text_printf(out, "%s%s", comma, accesses[i].name);
		comma = ",";
	}
	text_printf(out, "\n");
}

bool arg_gid(struct args *args, const char *key, union ibv_gid *gid)
{
	const char *text = arg_text(args, key);

	if (!text)
		return false;
	if (inet_pton(AF_INET6, text, gid->raw) == 1)
		return true;
	arg_error(args, EINVAL, "%s=%s: expected a GID (fe80::1)", key, text);
	return false;
}

/* Using an object takes the right to write to its ctl. */
static struct obj *find_obj(struct args *args, enum obj_kind kind, const char *name)
{
	struct path dir = { .kind = KIND_OBJS, .sub = kind }, path;
	struct obj *obj;

	if (fs_lookup(args->obj->ibfs, dir, name, &path) || path.kind != KIND_OBJ) {
		arg_error(args, ENOENT, "no %s/%s", obj_kinds[kind]->name, name);
		return NULL;
	}
	path.kind = KIND_OBJ_FILE;
	path.port = OBJ_CTL;
	if (fs_access(args->obj->ibfs, path, &args->req->cred, W_OK)) {
		arg_error(args, EACCES, "%s/%s is not yours", obj_kinds[kind]->name, name);
		return NULL;
	}
	obj = path_obj(args->obj->ibfs, path);
	if (obj->made && !obj->gone)
		return obj;
	arg_error(args, ENXIO, "%s/%s is %s", obj_kinds[kind]->name, name,
		  obj->gone ? "gone with its device" : "not created");
	return NULL;
}

static struct obj *named_obj(struct args *args, const char *key, enum obj_kind kind, bool required)
{
	const char *name = arg_text(args, key);

	if (name)
		return find_obj(args, kind, name);
	if (required)
		arg_error(args, EINVAL, "%s=%s is missing", key, obj_kinds[kind]->name);
	return NULL;
}

/* Why an object of another device isn't taken: both objects, and both devices. */
static void refuse_device(struct args *args, const char *key, const struct obj *named, const char *why)
{
	const struct obj *obj = args->obj, *other = args->first ? args->first : obj;
	char label[32], other_label[32];

	arg_error(args, EINVAL, "%s=%.40s is of device %s, but %s%c%.40s of %s%s", key,
		  obj_label(named, label), named->dev->name,
		  args->first ? args->first_key : obj_kinds[obj->kind]->name,
		  args->first ? '=' : '/', obj_label(other, other_label), obj->dev->name, why);
}

/*
 * A backend gets objects of one device only: that of the object whose command it
 * is or, where that is being created, of the first that the command names.
 */
struct obj *arg_obj(struct args *args, const char *key, enum obj_kind kind, bool required)
{
	struct obj *obj = args->obj, *named = named_obj(args, key, kind, required);

	if (!named || named->dev == obj->dev)
		return named;
	if (!obj->dev) {
		obj->dev = named->dev;
		obj->ops = named->ops;
		args->first = named;
		args->first_key = key;
		return named;
	}
	refuse_device(args, key, named, "");
	return NULL;
}

/* In this daemon's fabric, or in the system's. */
static bool same_fabric(const struct ibfs_device *a, const struct ibfs_device *b)
{
	return !a->ops->fabric_port == !b->ops->fabric_port;
}

struct obj *arg_peer(struct args *args, const char *key)
{
	struct obj *peer = named_obj(args, key, OBJ_QP, false);

	if (!peer || same_fabric(peer->dev, args->obj->dev))
		return peer;
	refuse_device(args, key, peer, ", in another fabric");
	return NULL;
}

int args_end(struct args *args)
{
	for (unsigned int i = 1; i < args->line->argc; i++)
		if (!(args->used >> i & 1))
			arg_error(args, EINVAL, "\"%.60s\" is no argument of it", args->line->argv[i]);
	return args->err;
}

int args_device(struct args *args)
{
	const char *name = arg_text(args, "device");
	struct ibfs_device *dev = name ? device_find(args->obj->ibfs, name) : NULL;

	if (!name)
		arg_error(args, EINVAL, "device=NAME is missing");
	else if (!dev)
		arg_error(args, ENODEV, "no device \"%.30s\"", name);
	else if (!dev->ops->verbs)
		arg_error(args, EOPNOTSUPP, "device %s has no verbs", name);
	else {
		args->obj->dev = dev;
		args->obj->ops = dev->ops->verbs;
	}
	return args->err;
}

static const struct command *find_command(const struct obj *obj, const char *name)
{
	const struct command *command = obj_kinds[obj->kind]->commands;

	while (command->name && strcmp(command->name, name))
		command++;
	return command->name ? command : NULL;
}

static int run_command(struct args *args)
{
	const char *name = args->line->argv[0];
	struct obj *obj = args->obj;
	const struct command *command = find_command(obj, name);
	int err;

	if (obj->gone)
		return -EIO;
	if (!command)
		return obj_fail(obj, EINVAL, "\"%.60s\" is no command of a %s", name,
				obj_kinds[obj->kind]->name);
	if (command->before && obj->made)
		return obj_fail(obj, EEXIST, "%s: it exists already", name);
	if (!command->before && !obj->made)
		return obj_fail(obj, ENXIO, "%s: not created yet", name);
	err = command->before ? obj_pay_begin(obj) : 0;
	return err ? err : command->run(args);
}

static int run_line(void *ctx, struct ctl_line *line)
{
	struct args args = *(struct args *)ctx;
	struct obj *obj = args.obj;
	int err;

	args.line = line;
	obj_begins(obj->ibfs);
	err = run_command(&args);
	if (err && !obj->made)
		obj->dev = NULL;
	if (!err)
		obj->reason[0] = '\0';
	return err;
}

static int run_post(void *ctx, struct ctl_line *line)
{
	struct args args = *(struct args *)ctx;

	args.line = line;
	obj_begins(args.obj->ibfs);
	if (args.obj->gone)
		return -EIO;
	if (!args.obj->made)
		return obj_fail(args.obj, ENXIO, "not created yet");
	return obj_post_line(&args);
}

ssize_t obj_ctl(struct obj *obj, const struct fs_req *req, const char *text, size_t len,
		enum obj_file which)
{
	struct args args = { .obj = obj, .req = req };

	return ctl_write(obj->ibfs, text, len, which == OBJ_POST ? run_post : run_line, &args);
}
