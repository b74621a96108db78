/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 9P: attributes, as 9P2000.L's getattr and as 9P2000's stat (stat(5) of Plan
 * 9's manual), and changing them.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fs/9p_server.h"

enum { GETATTR_BASIC = 0x7ff };
enum { SET_MODE = 1, SET_UID = 2, SET_GID = 4, SET_SIZE = 8 };

/* 9P2000's stat: size[2] type[2] dev[4] qid[13] mode[4] atime[4] mtime[4] length[8] 4 strings */
enum { AT_QID = 8, AT_MODE = 21, AT_ATIME = 25, AT_MTIME = 29, AT_LENGTH = 33, AT_NAME = 41 };
#define DMDIR 0x80000000U

enum { V9FS_MAGIC = 0x01021997 };

ssize_t p9_getattr(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	const struct p9_fid *fid = p9_fid_get(req->conn, in->fid);
	struct stat st;
	int ret;

	if (!fid)
		return -EBADF;
	ret = fs_getattr(req->req.ibfs, fid->path, &st);
	if (ret)
		return ret;
	out->mask = GETATTR_BASIC;
	out->qid = p9_qid(fid->path);
	out->perm = st.st_mode;
	out->uid = st.st_uid;
	out->gid = st.st_gid;
	out->attr = (struct p9_attr){
		.nlink = st.st_nlink,
		.size = st.st_size,
		.blksize = st.st_blksize,
		.blocks = st.st_blocks,
		.atime = { st.st_atim.tv_sec, st.st_atim.tv_nsec },
		.mtime = { st.st_mtim.tv_sec, st.st_mtim.tv_nsec },
		.ctime = { st.st_ctim.tv_sec, st.st_ctim.tv_nsec },
	};
	return 0;
}

/* To change the size takes what writing does, which fs has no way to see. */
static int set_attr(const struct p9_req *req, const struct p9_fid *fid, const struct stat *st,
		    unsigned int mask)
{
	struct ibfs *ibfs = req->req.ibfs;
	struct stat now;
	int ret = 0;

	if (req->conn->server->conf->read_only)
		return -EROFS;
	if (!mask)
		return fs_getattr(ibfs, fid->path, &now);
	if (mask & FS_SET_SIZE && S_ISDIR(fs_type(fid->path)))
		return -EISDIR;
	if (mask & FS_SET_SIZE && !(fid->file && fid->access != O_RDONLY))
		ret = fs_access(ibfs, fid->path, &fid->user->cred, W_OK);
	return ret ? ret : fs_setattr(ibfs, fid->path, &fid->user->cred, st, mask);
}

/* Times can't be set, and who sets them isn't told, as with FUSE. */
ssize_t p9_setattr(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	static const struct { uint32_t theirs; unsigned int ours; } map[] = {
		{ SET_MODE, FS_SET_MODE }, { SET_UID, FS_SET_UID }, { SET_GID, FS_SET_GID },
		{ SET_SIZE, FS_SET_SIZE },
	};
	const struct p9_fid *fid = p9_fid_get(req->conn, in->fid);
	struct stat st = {
		.st_mode = in->perm, .st_uid = in->uid, .st_gid = in->gid,
		.st_size = in->attr.size,
	};
	unsigned int i, mask = 0;

	(void)out;
	if (!fid)
		return -EBADF;
	if (in->valid & SET_SIZE && in->attr.size > INT64_MAX)
		return -EINVAL;
	for (i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (in->valid & map[i].theirs)
			mask |= map[i].ours;
	return set_attr(req, fid, &st, mask);
}

static uint8_t *put_text(uint8_t *at, const char *text)
{
	size_t len = strlen(text);

	p9_put_u16(at, len);
	return mempcpy(at + 2, text, len);
}

/* The names of a file's owner, looked up unless it is the same as the last time. */
static void name_owner(struct p9_owner *owner, const struct stat *st)
{
	if (!owner->known || owner->uid != st->st_uid)
		p9_user_name(st->st_uid, owner->user);
	if (!owner->known || owner->gid != st->st_gid)
		p9_group_name(st->st_gid, owner->group);
	owner->known = true;
	owner->uid = st->st_uid;
	owner->gid = st->st_gid;
}

size_t p9_put_stat(struct p9_owner *owner, const struct stat *st, const char *name, void *buf,
		   size_t room)
{
	struct p9_qid qid = p9_qid(path_unpack(st->st_ino));
	uint8_t *at = buf, *end;

	name_owner(owner, st);
	if (room < AT_NAME + 4 * 2 + strlen(name) + strlen(owner->user) + strlen(owner->group))
		return 0;
	memset(at, 0, AT_NAME);
	p9_put_qid(at + AT_QID, &qid);
	p9_put_u32(at + AT_MODE, (st->st_mode & 0777) | (S_ISDIR(st->st_mode) ? DMDIR : 0));
	p9_put_u32(at + AT_ATIME, st->st_atime);
	p9_put_u32(at + AT_MTIME, st->st_mtime);
	p9_put_u64(at + AT_LENGTH, S_ISDIR(st->st_mode) ? 0 : st->st_size);
	end = put_text(at + AT_NAME, name);
	end = put_text(end, owner->user);
	end = put_text(end, owner->group);
	end = put_text(end, "");
	p9_put_u16(at, end - at - 2);
	return end - at;
}

ssize_t p9_stat(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	const struct p9_fid *fid = p9_fid_get(req->conn, in->fid);
	struct p9_owner owner = { .known = false };
	struct stat st;
	int ret;

	if (!fid)
		return -EBADF;
	ret = fs_getattr(req->req.ibfs, fid->path, &st);
	if (ret)
		return ret;
	out->stat.text = (const char *)req->conn->server->scratch;
	out->stat.len = p9_put_stat(&owner, &st, p9_fid_name(fid),
				    req->conn->server->scratch, req->conn->msize);
	return out->stat.len ? 0 : -ENAMETOOLONG;
}

/* The strings of a stat that comes in; false: they don't fill it exactly. */
static bool parse_strings(struct p9_str stat, struct p9_str strings[4])
{
	const uint8_t *at = (const uint8_t *)stat.text + AT_NAME;
	size_t left = stat.len - AT_NAME;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		if (left < 2 || left - 2 < p9_get_u16(at))
			return false;
		strings[i] = (struct p9_str){ (const char *)at + 2, p9_get_u16(at) };
		at += 2 + strings[i].len;
		left -= 2 + strings[i].len;
	}
	return !left;
}

static bool as_text(struct p9_str str, char text[64])
{
	if (str.len >= 64 || memchr(str.text, '\0', str.len))
		return false;
	memcpy(text, str.text, str.len);
	text[str.len] = '\0';
	return true;
}

/* uid and gid by name. "" is: as it is. */
static int parse_owner(const struct p9_str strings[4], struct stat *st, unsigned int *mask)
{
	char text[64];

	if (strings[1].len) {
		if (!as_text(strings[1], text) || !p9_user_id(text, &st->st_uid))
			return -EINVAL;
		*mask |= FS_SET_UID;
	}
	if (strings[2].len) {
		if (!as_text(strings[2], text) || !p9_group_id(text, &st->st_gid))
			return -EINVAL;
		*mask |= FS_SET_GID;
	}
	return 0;
}

/* What a wstat asks to change of what is; ~0 is: as it is. */
static int parse_wstat(const struct p9_fid *fid, struct p9_str stat, struct stat *st,
		       unsigned int *mask)
{
	const uint8_t *at = (const uint8_t *)stat.text;
	const char *name = p9_fid_name(fid);
	struct p9_str strings[4];
	uint32_t mode;
	uint64_t length;

	if (stat.len < AT_NAME || p9_get_u16(at) != stat.len - 2 || !parse_strings(stat, strings))
		return -EPROTO;
	if (strings[0].len && (strings[0].len != strlen(name) ||
			       memcmp(strings[0].text, name, strings[0].len)))
		return -EPERM;
	mode = p9_get_u32(at + AT_MODE);
	if (mode != UINT32_MAX) {
		if (!(mode & DMDIR) != !S_ISDIR(fs_type(fid->path)))
			return -EPERM;
		st->st_mode = mode & 0777;
		*mask |= FS_SET_MODE;
	}
	length = p9_get_u64(at + AT_LENGTH);
	if (length != UINT64_MAX) {
		if (length > INT64_MAX)
			return -EINVAL;
		st->st_size = length;
		*mask |= S_ISDIR(fs_type(fid->path)) && !length ? 0 : FS_SET_SIZE;
	}
	return parse_owner(strings, st, mask);
}

ssize_t p9_wstat(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	const struct p9_fid *fid = p9_fid_get(req->conn, in->fid);
	struct stat st = { 0 };
	unsigned int mask = 0;
	int ret;

	(void)out;
	if (!fid)
		return -EBADF;
	ret = parse_wstat(fid, in->stat, &st, &mask);
	return ret ? ret : set_attr(req, fid, &st, mask);
}

ssize_t p9_statfs(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	if (!p9_fid_get(req->conn, in->fid))
		return -EBADF;
	out->fs_type = V9FS_MAGIC;
	out->bsize = 512;
	out->name_max = 255;
	return 0;
}
