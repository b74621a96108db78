/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who a 9P client is: on a unix socket whom the kernel vouches for (unix(7):
 * SO_PEERCRED, SO_PEERGROUPS), over TCP whom the configuration names. Names and
 * groups come from /etc/passwd and /etc/group themselves: to ask the name
 * service could take for ever, and nothing in the event loop may.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "fs/9p_server.h"
#include "fs/tree.h"

enum {
	MAX_GROUPS = 65536,		/* limits.h's NGROUPS_MAX */
	NO_GROUP = 65534,		/* of a user whom /etc/passwd doesn't know */
};

struct p9_user *p9_user_new(uid_t uid, gid_t gid, struct fs_groups *groups)
{
	struct p9_user *user = groups ? calloc(1, sizeof(*user)) : NULL;

	if (!user) {
		fs_groups_put(groups);
		return NULL;
	}
	user->refs = 1;
	user->root.kind = KIND_ROOT;
	user->cred = (struct fs_cred){ .uid = uid, .gid = gid, .groups = groups };
	return user;
}

struct p9_user *p9_user_get(struct p9_user *user)
{
	user->refs++;
	return user;
}

void p9_user_put(struct p9_user *user)
{
	if (!user || --user->refs)
		return;
	fs_groups_put(user->cred.groups);
	account_put(user->cred.account);
	free(user);
}

struct p9_user *p9_user_peer(int fd)
{
	struct fs_groups *groups;
	struct ucred peer;
	socklen_t len = sizeof(peer), size = 0;
	gid_t none;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return NULL;
	/* With no room it says how much there must be. */
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, &none, &size) || errno != ERANGE ||
	    size > MAX_GROUPS * sizeof(gid_t))
		size = 0;
	groups = fs_groups_new(size / sizeof(gid_t));
	if (groups && size && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups->gid, &size))
		groups->num = 0;
	return p9_user_new(peer.uid, peer.gid, groups);
}

/* The next line of /etc/passwd that matches: by name, or with NULL by number. */
static bool find_user(const char *name, uid_t uid, struct passwd *found, char *buf, size_t size)
{
	FILE *file = fopen("/etc/passwd", "re");
	struct passwd *pw = NULL;

	while (file && !fgetpwent_r(file, found, buf, size, &pw))
		if (name ? !strcmp(pw->pw_name, name) : pw->pw_uid == uid)
			break;
	if (file)
		fclose(file);
	return pw != NULL;
}

static bool find_group(const char *name, gid_t gid, struct group *found, char *buf, size_t size)
{
	FILE *file = fopen("/etc/group", "re");
	struct group *gr = NULL;

	while (file && !fgetgrent_r(file, found, buf, size, &gr))
		if (name ? !strcmp(gr->gr_name, name) : gr->gr_gid == gid)
			break;
	if (file)
		fclose(file);
	return gr != NULL;
}

static bool is_member(const struct group *gr, const char *name)
{
	char **member;

	for (member = gr->gr_mem; *member; member++)
		if (!strcmp(*member, name))
			return true;
	return false;
}

/* The groups that list the user; with NULL they are only counted. */
static unsigned int member_of(const char *name, gid_t *groups, unsigned int room)
{
	FILE *file = fopen("/etc/group", "re");
	struct group gr, *found;
	unsigned int n = 0;
	char buf[16384];

	while (file && n < room && !fgetgrent_r(file, &gr, buf, sizeof(buf), &found)) {
		if (!is_member(found, name))
			continue;
		if (groups)
			groups[n] = found->gr_gid;
		n++;
	}
	if (file)
		fclose(file);
	return n;
}

/* A user whom root acts for, with the groups that they have here. */
static struct p9_user *user_other(uid_t uid)
{
	struct fs_groups *groups;
	struct passwd pw;
	char buf[4096];
	unsigned int n;

	if (!find_user(NULL, uid, &pw, buf, sizeof(buf)))
		return p9_user_new(uid, NO_GROUP, fs_groups_new(0));
	n = member_of(pw.pw_name, NULL, MAX_GROUPS);
	groups = fs_groups_new(n);
	if (groups)
		groups->num = member_of(pw.pw_name, groups->gid, n);
	return p9_user_new(uid, pw.pw_gid, groups);
}

static bool number(const char *text, uint32_t *value)
{
	uint64_t number;

	/* The last one means "none" in chown(2). */
	if (parse_u64(text, UINT32_MAX - 1, &number))
		return false;
	*value = number;
	return true;
}

bool p9_user_id(const char *name, uid_t *uid)
{
	struct passwd pw;
	char buf[4096];

	if (number(name, uid))
		return true;
	if (!find_user(name, 0, &pw, buf, sizeof(buf)))
		return false;
	*uid = pw.pw_uid;
	return true;
}

bool p9_group_id(const char *name, gid_t *gid)
{
	struct group gr;
	char buf[16384];

	if (number(name, gid))
		return true;
	if (!find_group(name, 0, &gr, buf, sizeof(buf)))
		return false;
	*gid = gr.gr_gid;
	return true;
}

void p9_user_name(uid_t uid, char name[64])
{
	struct passwd pw;
	char buf[4096];

	if (find_user(NULL, uid, &pw, buf, sizeof(buf)) && strlen(pw.pw_name) < 64)
		snprintf(name, 64, "%s", pw.pw_name);
	else
		snprintf(name, 64, "%u", uid);
}

void p9_group_name(gid_t gid, char name[64])
{
	struct group gr;
	char buf[16384];

	if (find_group(NULL, gid, &gr, buf, sizeof(buf)) && strlen(gr.gr_name) < 64)
		snprintf(name, 64, "%s", gr.gr_name);
	else
		snprintf(name, 64, "%u", gid);
}

/*
 * Whom an attach asks to act as: n_uname of 9P2000.L, otherwise the name, which
 * may be a number. Without either, whoever the client is.
 */
static int asked_for(struct p9_conn *conn, const struct p9_msg *in, uid_t *uid)
{
	char name[64];

	*uid = in->n_uname;
	if (in->n_uname != P9_NONUNAME)
		return 0;
	*uid = conn->peer->cred.uid;
	if (!in->uname.len)
		return 0;
	if (in->uname.len >= sizeof(name))
		return -EPERM;
	memcpy(name, in->uname.text, in->uname.len);
	name[in->uname.len] = '\0';
	if (!p9_user_id(name, uid))
		return ibfs_fail(conn->server->ibfs, EPERM, "9p: there is no user \"%s\"", name);
	return 0;
}

int p9_user_attach(struct p9_conn *conn, const struct p9_msg *in, struct p9_user **user)
{
	const struct fs_cred *peer = &conn->peer->cred;
	uid_t uid = peer->uid;
	int ret = conn->mapped ? 0 : asked_for(conn, in, &uid);

	if (ret)
		return ret;
	if (uid != peer->uid && peer->uid)
		return ibfs_fail(conn->server->ibfs, EPERM,
				 "9p: uid %u may not attach as uid %u", peer->uid, uid);
	if (uid != peer->uid) {
		*user = user_other(uid);
		return *user ? 0 : -ENOMEM;
	}
	*user = p9_user_new(peer->uid, peer->gid, fs_groups_get(peer->groups));
	if (!*user)
		return -ENOMEM;
	(*user)->cred.account = account_hold(peer->account);
	return 0;
}
