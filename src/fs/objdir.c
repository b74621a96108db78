/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of the tree as directories: KIND/, where they are made and removed by
 * name, and KIND/NAME/, whose files are those that the kind's table lists. Who
 * owns an object owns all of its files.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/obj.h"

static struct obj *obj_named(struct ibfs *ibfs, enum obj_kind kind, const char *name)
{
	struct obj *obj;
	uint64_t num;

	if (number_name(name, UINT32_MAX, &num)) {
		HASH_FIND(hh, ibfs->fs->objs->names[kind], name, strlen(name), obj);
		return obj;
	}
	obj = path_obj(ibfs, (struct path){ .sub = kind, .idx = num });
	/* One that has a name is found by that only. */
	return obj && !obj->name ? obj : NULL;
}

static int objs_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	struct obj *obj;

	if (!strcmp(name, "clone")) {
		child->kind = KIND_OBJ_CLONE;
		return 0;
	}
	obj = obj_named(ibfs, dir.sub, name);
	if (!obj)
		return -ENOENT;
	*child = (struct path){ .kind = KIND_OBJ, .sub = dir.sub, .idx = obj->num };
	return 0;
}

/* Positions: 0 is clone, then the numbers plus one. */
static int objs_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		     struct path *child)
{
	const struct obj *obj;
	char label[32];

	if (!*pos) {
		snprintf(name, 256, "clone");
		child->kind = KIND_OBJ_CLONE;
		*pos = 1;
		return 1;
	}
	obj = obj_from(ibfs, dir.sub, *pos - 1);
	if (!obj)
		return 0;
	snprintf(name, 256, "%s", obj_label(obj, label));
	*child = (struct path){ .kind = KIND_OBJ, .sub = dir.sub, .idx = obj->num };
	*pos = (uint64_t)obj->num + 2;
	return 1;
}

static int objs_mkdir(struct ibfs *ibfs, struct path dir, const char *name, mode_t mode,
		      const struct fs_cred *cred, struct path *child)
{
	struct obj *obj;
	uint64_t num;
	int err;

	(void)mode;
	if (!number_name(name, UINT64_MAX, &num) || strlen(name) > 200)
		return ibfs_fail(ibfs, EINVAL, "%s: \"%s\": a name must not be a number",
				 obj_kinds[dir.sub]->name, name);
	/* It appears in lines of words. */
	if (strpbrk(name, " \t\n\r=,"))
		return ibfs_fail(ibfs, EINVAL, "%s: no white space, = or , in a name",
				 obj_kinds[dir.sub]->name);
	if (!strcmp(name, "clone") || obj_named(ibfs, dir.sub, name))
		return -EEXIST;
	err = obj_new(ibfs, dir.sub, name, cred, 0600, &obj);
	if (err)
		return err;
	*child = (struct path){ .kind = KIND_OBJ, .sub = dir.sub, .idx = obj->num };
	return 0;
}

static int objs_rmdir(struct ibfs *ibfs, struct path dir, const char *name,
		      const struct fs_cred *cred)
{
	struct obj *obj = obj_named(ibfs, dir.sub, name);

	if (!obj)
		return -ENOENT;
	if (!obj->name)
		return -EBUSY;
	/* The directory is sticky, which not all front ends have a kernel to know. */
	if (!fs_owns(cred, obj->uid))
		return -EPERM;
	return obj_remove(obj);
}

const struct dir_ops objs_dir = {
	.lookup = objs_lookup, .next = objs_next, .mkdir = objs_mkdir, .rmdir = objs_rmdir,
};

static int obj_dir_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	const struct entry *entry;

	if (!path_obj(ibfs, dir))
		return -ENOENT;
	for (entry = obj_kinds[dir.sub]->entries; entry->name; entry++) {
		if (strcmp(entry->name, name))
			continue;
		child->kind = KIND_OBJ_FILE;
		child->port = entry->sub;
		return 0;
	}
	return -ENOENT;
}

static int obj_dir_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
			struct path *child)
{
	const struct entry *entry = obj_kinds[dir.sub]->entries;
	uint64_t n = *pos;

	(void)ibfs;
	while (entry->name && n--)
		entry++;
	if (!entry->name)
		return 0;
	snprintf(name, 256, "%s", entry->name);
	child->kind = KIND_OBJ_FILE;
	child->port = entry->sub;
	++*pos;
	return 1;
}

const struct dir_ops obj_dir = { .lookup = obj_dir_lookup, .next = obj_dir_next };

int obj_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	const struct obj *obj = path_obj(ibfs, path);

	if (!obj)
		return -ENOENT;
	st->st_uid = obj->uid;
	st->st_gid = obj->gid;
	if (path.kind != KIND_OBJ_FILE)
		return 0;
	st->st_mode = S_IFREG | obj->mode;
	if (path.port == OBJ_DATA)
		st->st_size = obj->mem ? obj->mem->size : 0;
	return 0;
}

/* Mode and owner are the object's, all its files have them. */
int obj_setattr(struct ibfs *ibfs, struct path path, const struct fs_cred *cred,
		const struct stat *st, unsigned int mask)
{
	struct obj *obj = path_obj(ibfs, path);

	(void)cred;
	if (!obj)
		return -ENOENT;
	/* O_TRUNC is how a shell opens for writing. */
	if (mask & FS_SET_SIZE && path.port == OBJ_DATA && st->st_size &&
	    (!obj->mem || (uint64_t)st->st_size != obj->mem->size))
		return -EINVAL;
	if (mask & FS_SET_MODE)
		obj->mode = st->st_mode & 0777;
	if (mask & FS_SET_UID)
		obj->uid = st->st_uid;
	if (mask & FS_SET_GID)
		obj->gid = st->st_gid;
	return 0;
}

int objs_getattr(struct ibfs *ibfs, struct path path, struct stat *st)
{
	(void)ibfs;
	(void)path;
	st->st_mode = S_IFDIR | 01777;
	return 0;
}
