/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may do what: users, their groups, and the modes of files, as
 * path_resolution(7) has them. Here is every question for rights.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ibfs/fs.h>
#include <ibfs/ibfs.h>

/* --- groups --- */

struct fs_groups *fs_groups_new(unsigned int num)
{
	struct fs_groups *groups = malloc(sizeof(*groups) + num * sizeof(groups->gid[0]));

	if (!groups)
		return NULL;
	groups->refs = 1;
	groups->num = num;
	return groups;
}

struct fs_groups *fs_groups_get(struct fs_groups *groups)
{
	if (groups)
		groups->refs++;
	return groups;
}

void fs_groups_put(struct fs_groups *groups)
{
	if (groups && !--groups->refs)
		free(groups);
}

size_t fs_groups_size(const struct fs_groups *groups)
{
	return groups ? sizeof(*groups) + groups->num * sizeof(groups->gid[0]) : 0;
}

/* "\t1 2 3 \n", as many as there are. */
static struct fs_groups *parse_groups(const char *text)
{
	struct fs_groups *groups = fs_groups_new(strlen(text) / 2);
	char *end;

	if (!groups)
		return NULL;
	for (groups->num = 0;; groups->num++) {
		unsigned long gid = strtoul(text, &end, 10);

		if (end == text)
			return groups;
		groups->gid[groups->num] = gid;
		text = end;
	}
}

/* Of "Uid:" or "Gid:" the last one counts, the file system's. */
static bool has_id(const char *text, unsigned int id)
{
	unsigned int fsid;

	return sscanf(text, "%*u %*u %*u %u", &fsid) == 1 && fsid == id;
}

/* Of proc_pid_status(5): to read it takes no lock that the thread could keep. */
struct fs_groups *fs_groups_of(pid_t tid, uid_t uid, gid_t gid)
{
	struct fs_groups *groups = NULL;
	char path[40], *line = NULL;
	bool other = false;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	file = tid ? fopen(path, "re") : NULL;
	if (!file)
		return NULL;
	while (!groups && !other && getline(&line, &size, file) > 0) {
		if (!strncmp(line, "Uid:", 4))
			other = !has_id(line + 4, uid);
		else if (!strncmp(line, "Gid:", 4))
			other = !has_id(line + 4, gid);
		else if (!strncmp(line, "Groups:", 7))
			groups = parse_groups(line + 7);
	}
	free(line);
	fclose(file);
	return groups;
}

static bool has_group(const struct fs_cred *cred, gid_t gid)
{
	unsigned int i;

	for (i = 0; cred->groups && i < cred->groups->num; i++)
		if (cred->groups->gid[i] == gid)
			return true;
	return cred->gid == gid;
}

/* --- rights --- */

bool fs_privileged(const struct fs_cred *cred)
{
	return !cred->uid;
}

/* Whose groups aren't known may do what members and others both may. */
static unsigned int mode_bits(const struct stat *st, const struct fs_cred *cred)
{
	if (cred->uid == st->st_uid)
		return st->st_mode >> 6;
	if (has_group(cred, st->st_gid))
		return st->st_mode >> 3;
	return cred->groups ? st->st_mode : st->st_mode & st->st_mode >> 3;
}

bool fs_owns(const struct fs_cred *cred, uid_t owner)
{
	return fs_privileged(cred) || cred->uid == owner;
}

int fs_access(struct ibfs *ibfs, struct path path, const struct fs_cred *cred, int mask)
{
	struct stat st;
	int ret;

	ret = fs_getattr(ibfs, path, &st);
	if (ret || fs_privileged(cred))
		return ret;
	return (mask & ~mode_bits(&st, cred) & 7) ? -EACCES : 0;
}

int fs_may_set(const struct stat *old, const struct fs_cred *cred, const struct stat *st,
	       unsigned int mask)
{
	if (fs_privileged(cred))
		return 0;
	if ((mask & FS_SET_UID) && st->st_uid != old->st_uid)
		return -EPERM;
	if ((mask & FS_SET_GID) && !has_group(cred, st->st_gid))
		return -EPERM;
	if ((mask & (FS_SET_MODE | FS_SET_UID | FS_SET_GID)) && !fs_owns(cred, old->st_uid))
		return -EPERM;
	return 0;
}

int fs_same_user(const struct file *file, const struct fs_req *req)
{
	const struct fs_cred *opener = &file->opener;
	const struct fs_caller *caller = &req->caller;

	if (opener->uid == caller->uid && opener->gid == caller->gid)
		return 0;
	return ibfs_fail(req->ibfs, EACCES, "user %u, group %u opened the file, not %u, %u",
			 opener->uid, opener->gid, caller->uid, caller->gid);
}
