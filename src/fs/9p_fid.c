/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fids: a client's numbers for places of the tree, and files that it opened
 * there. Tversion ends them all, Tattach and Twalk make them, Tclunk ends one.
 * Each component of a walk is checked as the kernel does for FUSE.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/9p_server.h"
#include "fs/rows.h"

struct p9_fid *p9_fid_get(const struct p9_conn *conn, uint32_t num)
{
	struct p9_fid *fid;

	HASH_FIND(hh, conn->fids, &num, sizeof(num), fid);
	return fid;
}

/* What a fid takes besides its name, with its user, about. */
enum { FID_MEMORY = sizeof(struct p9_fid) + sizeof(struct p9_user) };

static int charge_fid(struct charge *charge, const struct p9_conn *conn,
		      const struct p9_user *user, const char *name)
{
	struct accounts *accounts = conn->server->ibfs->fs->accounts;
	int err = charge_begin(charge, accounts, &user->cred, ACCOUNT_FIDS);

	if (!err)
		err = charge_take(charge, ACCOUNT_MEMORY, FID_MEMORY + strlen(name));
	if (err)
		charge_end(charge);
	return err;
}

int p9_fid_new(struct p9_conn *conn, uint32_t num, struct p9_user *user, struct path path,
	       char *name)
{
	struct charge charge;
	struct p9_fid *fid;
	int err = charge_fid(&charge, conn, user, name);

	fid = err ? NULL : calloc(1, sizeof(*fid));
	if (!fid) {
		charge_end(&charge);
		free(name);
		return err ? err : -ENOMEM;
	}
	fid->num = num;
	fid->refs = 1;
	fid->user = p9_user_get(user);
	fid->charge = charge;
	fid->path = path;
	fid->name = name;
	HASH_ADD(hh, conn->fids, num, sizeof(fid->num), fid);
	return 0;
}

void p9_fid_put(struct p9_fid *fid)
{
	if (--fid->refs)
		return;
	if (fid->file)
		fs_release(fid->file);
	p9_user_put(fid->user);
	charge_end(&fid->charge);
	free(fid->name);
	free(fid);
}

void p9_fid_clunk(struct p9_conn *conn, struct p9_fid *fid)
{
	p9_cancel_fid(conn, fid);
	HASH_DEL(conn->fids, fid);
	p9_fid_put(fid);
}

void p9_fids_clunk(struct p9_conn *conn)
{
	while (conn->fids)
		p9_fid_clunk(conn, conn->fids);
}

const char *p9_fid_name(const struct p9_fid *fid)
{
	const char *slash = strrchr(fid->name, '/');

	return slash ? slash + 1 : fid->name[0] ? fid->name : "/";
}

struct p9_qid p9_qid(struct path path)
{
	return (struct p9_qid){
		.type = S_ISDIR(fs_type(path)) ? P9_QTDIR : P9_QTFILE,
		.path = path_pack(path),
	};
}

int p9_component(struct p9_str str, char name[256])
{
	if (str.len > 255)
		return -ENAMETOOLONG;
	if (!str.len || memchr(str.text, '\0', str.len) || memchr(str.text, '/', str.len))
		return -EINVAL;
	memcpy(name, str.text, str.len);
	name[str.len] = '\0';
	return 0;
}

/* A message may be as long as the server likes: what is common to both is used. */
ssize_t p9_version(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	static const char dotl[] = "9P2000.L", plain[] = "9P2000", unknown[] = "unknown";
	struct p9_conn *conn = req->conn;
	const struct p9_str *asked = &in->version;
	const char *version = unknown;

	if (in->msize < P9_MIN_MSIZE)
		return ibfs_fail(req->req.ibfs, EINVAL, "9p: an msize of %u is too small",
				 in->msize);
	p9_cancel_all(conn);
	p9_fids_clunk(conn);
	conn->dialect = P9_NONE;
	if (asked->len == strlen(dotl) && !memcmp(asked->text, dotl, asked->len)) {
		version = dotl;
		conn->dialect = P9_DOTL;
	} else if (asked->len >= strlen(plain) && !memcmp(asked->text, plain, strlen(plain)) &&
		   (asked->len == strlen(plain) || asked->text[strlen(plain)] == '.')) {
		/* An extension that is not known: what it extends (version(5)). */
		version = plain;
		conn->dialect = P9_2000;
	}
	out->msize = conn->msize = conn->server->conf->msize;
	if (out->msize > in->msize)
		out->msize = in->msize;
	if (conn->dialect)
		conn->msize = out->msize;
	out->version = (struct p9_str){ version, strlen(version) };
	return 0;
}

/* fid->name with one component more, or less; -ENAMETOOLONG, -ENOMEM. */
static int change_name(char **name, const char *component)
{
	char *new, *slash;

	if (!strcmp(component, "..")) {
		slash = strrchr(*name, '/');
		*(slash ? slash : *name) = '\0';
		return 0;
	}
	if (strlen(*name) + strlen(component) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (asprintf(&new, "%s%s%s", *name, **name ? "/" : "", component) < 0)
		return -ENOMEM;
	free(*name);
	*name = new;
	return 0;
}

/* One component from *path on. */
static int step(struct p9_req *req, const struct p9_user *user, struct p9_str str,
		struct path *path, char **name)
{
	struct ibfs *ibfs = req->req.ibfs;
	struct path child;
	struct stat st;
	char component[256];
	int ret;

	ret = p9_component(str, component);
	if (!ret && !S_ISDIR(fs_type(*path)))
		ret = -ENOTDIR;
	if (!ret)
		ret = fs_access(ibfs, *path, &user->cred, X_OK);
	if (ret || !strcmp(component, "."))
		return ret;
	if (!strcmp(component, "..") && path_pack(*path) == path_pack(user->root))
		return 0;
	ret = strcmp(component, "..") ? p9_ready(req, user, *path) : 0;
	if (!ret)
		ret = fs_lookup(ibfs, *path, component, &child);
	if (!ret)
		ret = fs_getattr(ibfs, child, &st);
	if (!ret)
		ret = change_name(name, component);
	if (!ret)
		*path = child;
	return ret;
}

/*
 * aname: where in the tree the attach begins, "" and "/" are its root. "ctl" is
 * what diod's own clients measure with, 9p_ctl.c.
 */
static int walk_aname(struct p9_req *req, struct p9_user *user, struct p9_str aname, char **name)
{
	static const char diod[] = "ctl";
	const char *at = aname.text, *end = at + aname.len, *slash;
	struct path path = user->root;
	int ret = 0;

	if (aname.len == strlen(diod) && !memcmp(at, diod, aname.len)) {
		user->root.kind = KIND_P9_CTL;
		return 0;
	}
	for (; !ret && at < end; at = slash + 1) {
		slash = memchr(at, '/', end - at);
		if (!slash)
			slash = end;
		if (slash > at)
			ret = step(req, user, (struct p9_str){ at, slash - at }, &path, name);
	}
	user->root = path;
	return ret;
}

/* Where root acts for others, as a mount does, they leave it some. */
static unsigned int max_fids(const struct p9_conn *conn, const struct p9_user *user)
{
	unsigned int fids = conn->server->conf->fids;

	return fs_privileged(&conn->peer->cred) && !fs_privileged(&user->cred) ?
	       fids - fids / 100 * conn->server->ibfs->conf->reserve : fids;
}

/* May there be one more, of this number? */
static int check_new(const struct p9_req *req, const struct p9_user *user, uint32_t num)
{
	const struct p9_conn *conn = req->conn;

	if (num == P9_NOFID)
		return -EINVAL;
	if (p9_fid_get(conn, num))
		return ibfs_fail(req->req.ibfs, EINVAL, "9p: fid %u is in use", num);
	if (HASH_COUNT(conn->fids) >= max_fids(conn, user))
		return ibfs_fail(req->req.ibfs, EMFILE, "9p: more than %u fids",
				 max_fids(conn, user));
	return 0;
}

ssize_t p9_attach(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	struct p9_user *user = NULL;
	char *name = NULL;
	int ret;

	if (in->afid != P9_NOFID)
		return ibfs_fail(req->req.ibfs, EINVAL, "9p: authentication is not required");
	ret = p9_user_attach(req->conn, in, &user);
	if (ret)
		return ret;
	ret = check_new(req, user, in->fid);
	if (ret)
		goto out;
	name = strdup("");
	ret = name ? walk_aname(req, user, in->aname, &name) : -ENOMEM;
	if (ret)
		goto out;
	ret = p9_fid_new(req->conn, in->fid, user, user->root, name);
	name = NULL;
	if (!ret)
		out->qid = p9_qid(user->root);
out:
	free(name);
	p9_user_put(user);
	return ret;
}

/* Where the walk came to: newfid, which may be fid itself. */
static int walk_end(struct p9_req *req, struct p9_fid *fid, uint32_t newfid, struct path path,
		    char *name)
{
	int err;

	if (newfid != fid->num)
		return p9_fid_new(req->conn, newfid, fid->user, path, name);
	err = charge_take(&fid->charge, ACCOUNT_MEMORY, strlen(name));
	if (err) {
		free(name);
		return err;
	}
	charge_give(&fid->charge, ACCOUNT_MEMORY, strlen(fid->name));
	free(fid->name);
	fid->name = name;
	fid->path = path;
	return 0;
}

/*
 * That the first component fails is an error; that a later one does is an
 * answer with the qids up to there, and no newfid (walk(5)).
 */
ssize_t p9_walk(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	struct p9_fid *fid = p9_fid_get(req->conn, in->fid);
	struct path path;
	char *name;
	int ret = 0;

	if (!fid)
		return -EBADF;
	if (in->newfid != in->fid)
		ret = check_new(req, fid->user, in->newfid);
	else if (fid->open || fid->refs > 1)
		ret = ibfs_fail(req->req.ibfs, EBUSY, "9p: fid %u is open", in->fid);
	if (ret)
		return ret;
	path = fid->path;
	name = strdup(fid->name);
	if (!name)
		return -ENOMEM;
	while (!ret && out->num_qids < in->num_names) {
		ret = step(req, fid->user, in->names[out->num_qids], &path, &name);
		if (!ret)
			out->qids[out->num_qids++] = p9_qid(path);
	}
	if (!ret)
		return walk_end(req, fid, in->newfid, path, name);
	free(name);
	return out->num_qids && ret != FS_PENDING ? 0 : ret;
}

ssize_t p9_clunk(struct p9_req *req, const struct p9_msg *in, struct p9_msg *out)
{
	struct p9_fid *fid = p9_fid_get(req->conn, in->fid);

	(void)out;
	if (!fid)
		return -EBADF;
	p9_fid_clunk(req->conn, fid);
	return 0;
}
