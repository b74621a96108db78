/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of the tree: numbers and names, and their end: in reverse order of
 * dependence, by letting each that others still need wait until they are gone.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fs/obj.h"

/* What an object takes, with its events and the engine's part, about. */
enum { OBJ_MEMORY = 4096 };

const struct obj_ops *const obj_kinds[OBJ_KINDS] = {
	[OBJ_PD] = &pd_obj, [OBJ_XRCD] = &xrcd_obj, [OBJ_CQ] = &cq_obj, [OBJ_MR] = &mr_obj,
	[OBJ_MW] = &mw_obj, [OBJ_SRQ] = &srq_obj, [OBJ_AH] = &ah_obj, [OBJ_QP] = &qp_obj,
	[OBJ_MCAST] = &mcast_obj,
};

void obj_begins(const struct ibfs *ibfs)
{
	ibfs->fs->failed_before = ibfs->failed.count;
}

/* Of what a device's driver is asked there may be better words: more than "Invalid argument". */
static bool driver_said(const struct ibfs *ibfs, int err)
{
	return ibfs->failed.count != ibfs->fs->failed_before && ibfs->failed.err == err &&
	       err != EINVAL && err != ENOMEM;
}

int obj_fail(struct obj *obj, int err, const char *fmt, ...)
{
	const struct ibfs *ibfs = obj->ibfs;
	char label[32];
	va_list ap;

	if (driver_said(ibfs, err)) {
		snprintf(obj->reason, sizeof(obj->reason), "%.*s",
			 (int)sizeof(obj->reason) - 1, ibfs->failed.why);
	} else {
		va_start(ap, fmt);
		vsnprintf(obj->reason, sizeof(obj->reason), fmt, ap);
		va_end(ap);
	}
	obj_begins(ibfs);
	return ibfs_fail(obj->ibfs, err, "%s/%s: %s", obj_kinds[obj->kind]->name,
			 obj_label(obj, label), obj->reason);
}

const char *obj_label(const struct obj *obj, char buf[32])
{
	if (obj->name)
		return obj->name;
	snprintf(buf, 32, "%u", obj->num);
	return buf;
}

/* The first of a kind whose number is num or larger: its place in the list. */
static uint32_t list_find(const struct objs *objs, enum obj_kind kind, uint32_t num)
{
	uint32_t low = 0, high = objs->count[kind];

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (objs->list[kind][mid]->num < num)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct obj *path_obj(struct ibfs *ibfs, struct path path)
{
	const struct objs *objs = ibfs->fs->objs;
	uint32_t at;

	if (path.sub >= OBJ_KINDS)
		return NULL;
	at = list_find(objs, path.sub, path.idx);
	if (at == objs->count[path.sub] || objs->list[path.sub][at]->num != path.idx ||
	    objs->list[path.sub][at]->removed)
		return NULL;
	return objs->list[path.sub][at];
}

struct obj *obj_from(const struct ibfs *ibfs, enum obj_kind kind, uint64_t num)
{
	const struct objs *objs = ibfs->fs->objs;
	uint32_t at = num < UINT32_MAX ? list_find(objs, kind, num) : objs->count[kind];

	while (at < objs->count[kind] && objs->list[kind][at]->removed)
		at++;
	return at < objs->count[kind] ? objs->list[kind][at] : NULL;
}

/* A path may come from anywhere: is there such a kind, such an object, such a file of it? */
int obj_check(struct ibfs *ibfs, struct path path)
{
	const struct entry *entry;

	if (path.sub >= OBJ_KINDS)
		return -ENOENT;
	if (path.kind == KIND_OBJS || path.kind == KIND_OBJ_CLONE)
		return 0;
	if (!path_obj(ibfs, path))
		return -ENOENT;
	if (path.kind == KIND_OBJ)
		return 0;
	for (entry = obj_kinds[path.sub]->entries; entry->name; entry++)
		if (entry->sub == path.port)
			return 0;
	return -ENOENT;
}

static int list_add(struct objs *objs, struct obj *obj)
{
	enum obj_kind kind = obj->kind;

	if (objs->next[kind] >= 1 << 28)
		return -ENOSPC;
	if (objs->count[kind] == objs->room[kind]) {
		uint32_t room = objs->room[kind] ? 2 * objs->room[kind] : 16;
		struct obj **list = realloc(objs->list[kind], room * sizeof(*list));

		if (!list)
			return -ENOMEM;
		objs->list[kind] = list;
		objs->room[kind] = room;
	}
	obj->num = objs->next[kind]++;
	objs->list[kind][objs->count[kind]++] = obj;
	return 0;
}

static struct obj *obj_alloc(struct ibfs *ibfs, enum obj_kind kind, const char *name,
			     const struct fs_cred *cred, mode_t mode)
{
	struct objs *objs = ibfs->fs->objs;
	struct obj *obj = calloc(1, sizeof(*obj));

	if (!obj)
		return NULL;
	obj->ibfs = ibfs;
	obj->kind = kind;
	obj->uid = cred->uid;
	obj->gid = cred->gid;
	obj->mode = mode;
	obj->next_wr = 1;
	if (name) {
		obj->name = strdup(name);
		if (!obj->name)
			goto free;
	}
	if (list_add(objs, obj))
		goto free;
	if (name)
		HASH_ADD_KEYPTR(hh, objs->names[kind], obj->name, strlen(obj->name), obj);
	return obj;
free:
	free(obj->name);
	free(obj);
	return NULL;
}

int obj_new(struct ibfs *ibfs, enum obj_kind kind, const char *name, const struct fs_cred *cred,
	    mode_t mode, struct obj **new_obj)
{
	struct charge charge;
	int err = charge_begin(&charge, ibfs->fs->accounts, cred, obj_item(kind));

	if (!err)
		err = charge_take(&charge, ACCOUNT_MEMORY, OBJ_MEMORY);
	if (!err) {
		*new_obj = obj_alloc(ibfs, kind, name, cred, mode);
		err = *new_obj ? 0 : -ENOMEM;
	}
	if (err)
		charge_end(&charge);
	else
		(*new_obj)->charge = charge;
	return err;
}

static void obj_free(struct obj *obj)
{
	struct objs *objs = obj->ibfs->fs->objs;
	uint32_t at = list_find(objs, obj->kind, obj->num);

	memmove(&objs->list[obj->kind][at], &objs->list[obj->kind][at + 1],
		(--objs->count[obj->kind] - at) * sizeof(obj));
	if (obj->name)
		HASH_DEL(objs->names[obj->kind], obj);
	if (obj->doomed)
		DL_DELETE(objs->doomed, obj);
	for (; obj->event_count; obj->event_count--)
		free(obj->events[obj->event_head++ % OBJ_EVENTS_KEPT]);
	charge_end(&obj->contents);
	charge_end(&obj->charge);
	free(obj->name);
	free(obj);
}

/* The backend's object goes; the directory may stay. */
static int obj_destroy(struct obj *obj)
{
	struct objs *objs = obj->ibfs->fs->objs;
	int err;

	if (!obj->made)
		return 0;
	err = obj_kinds[obj->kind]->destroy(obj);
	if (err)
		return err;
	if (obj->kind == OBJ_QP) {
		HASH_DELETE(hh_qpn, objs->qpns, obj);
		msg_free(obj);
	}
	charge_end(&obj->contents);
	obj->made = NULL;
	return 0;
}

void obj_unmake(struct obj *obj)
{
	obj_destroy(obj);
	obj->dev = NULL;
}

/* What waited for something that is gone now goes too, and so on. */
static void reap_doomed(struct ibfs *ibfs)
{
	struct objs *objs = ibfs->fs->objs;
	struct obj *obj, *tmp;
	bool again;

	do {
		again = false;
		DL_FOREACH_SAFE(objs->doomed, obj, tmp) {
			if (obj_destroy(obj))
				continue;
			obj_free(obj);
			again = true;
		}
	} while (again);
}

void obj_get(struct obj *obj)
{
	obj->open++;
}

void obj_put(struct obj *obj)
{
	struct ibfs *ibfs = obj->ibfs;

	if (--obj->open || obj->name)
		return;
	obj->removed = true;
	if (obj_destroy(obj)) {
		obj->doomed = true;
		DL_APPEND(ibfs->fs->objs->doomed, obj);
		return;
	}
	obj_free(obj);
	reap_doomed(ibfs);
}

/* Who waits in one of its files gets EIO, as who comes later. */
static void readers_fail(struct obj *obj)
{
	while (obj->readers) {
		struct obj_reader *reader = obj->readers;

		DL_DELETE(obj->readers, reader);
		lineq_fail(&reader->q, -EIO);
	}
}

/* Files that are still open answer EIO from here on: their path names nothing any more. */
int obj_remove(struct obj *obj)
{
	struct ibfs *ibfs = obj->ibfs;
	int err = obj_destroy(obj);

	if (err)
		return obj_fail(obj, -err, "others depend on it");
	HASH_DEL(ibfs->fs->objs->names[obj->kind], obj);
	free(obj->name);
	obj->name = NULL;
	obj->gone = obj->removed = true;
	obj_get(obj);
	readers_fail(obj);
	obj_put(obj);
	reap_doomed(ibfs);
	return 0;
}

struct obj *obj_by_qpn(struct ibfs *ibfs, const struct ibfs_device *dev, uint32_t key)
{
	struct obj *obj;
	uint32_t both[2] = { dev->num, key };

	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): uthash takes bytes */
	HASH_FIND(hh_qpn, ibfs->fs->objs->qpns, both, sizeof(both), obj);
	return obj;
}

void obj_qpn_add(struct obj *obj, uint32_t key)
{
	obj->qpn_key.dev = obj->dev->num;
	obj->qpn_key.key = key;
	HASH_ADD(hh_qpn, obj->ibfs->fs->objs->qpns, qpn_key, sizeof(obj->qpn_key), obj);
}

int objs_init(struct ibfs *ibfs)
{
	ibfs->fs->objs = calloc(1, sizeof(*ibfs->fs->objs));
	return ibfs->fs->objs ? 0 : -ENOMEM;
}

/* A device's objects, or with NULL all: users before what they use. */
static void objs_end(struct ibfs *ibfs, const struct ibfs_device *dev)
{
	struct objs *objs = ibfs->fs->objs;

	for (int kind = OBJ_KINDS - 1; kind >= 0; kind--) {
		for (uint32_t i = 0; i < objs->count[kind]; i++) {
			struct obj *obj = objs->list[kind][i];

			if (!obj->made || (dev && obj->dev != dev))
				continue;
			obj_destroy(obj);
			obj->gone = true;
			obj->dev = NULL;
			if (dev)
				readers_fail(obj);
		}
	}
}

void objs_device_gone(struct ibfs_device *dev)
{
	if (!dev->ibfs->fs || !dev->ibfs->fs->objs)
		return;
	objs_end(dev->ibfs, dev);
	reap_doomed(dev->ibfs);
}

void objs_exit(struct ibfs *ibfs)
{
	struct objs *objs = ibfs->fs->objs;

	if (!objs)
		return;
	objs_end(ibfs, NULL);
	for (int kind = 0; kind < OBJ_KINDS; kind++) {
		while (objs->count[kind])
			obj_free(objs->list[kind][objs->count[kind] - 1]);
		free(objs->list[kind]);
	}
	free(objs);
	ibfs->fs->objs = NULL;
}
