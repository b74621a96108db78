/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree without a front end: whatever path, name or cookie comes, nothing
 * goes wrong; entries are found as they are listed; permissions are checked.
 */
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/fabric.h"
#include "fs/tree.h"
#include "hca/mad.h"
#include "check.h"

static bool same(struct path a, struct path b)
{
	return path_pack(a) == path_pack(b);
}

static ssize_t replied;

static void note_reply(struct fs_req *req, ssize_t result, const void *data, size_t len)
{
	(void)req;
	(void)data;
	(void)len;
	replied = result;
}

/* What is in the directory is known, if need be by asking. */
static void make_ready(struct ibfs *ibfs, struct path dir)
{
	struct fs_req req = { .ibfs = ibfs, .reply = note_reply };
	ssize_t ret;

	do {
		replied = FS_PENDING;
		ret = fs_ready(&req, dir);
		while (ret == FS_PENDING && replied == FS_PENDING)
			ev_run(ibfs->loop, EVRUN_ONCE);
	} while (ret == FS_PENDING);
	CHECK(ret == 0);
}

/* Everything below dir: what readdir says, lookup and getattr say too, and ".." leads back. */
static unsigned int walk(struct ibfs *ibfs, struct path dir, unsigned int depth)
{
	uint64_t cookie = 0, again;
	struct path child, found;
	unsigned int n = 0;
	char name[256];
	struct stat st;

	make_ready(ibfs, dir);
	while (fs_readdir(ibfs, dir, &cookie, name, &child) == 1) {
		CHECK(cookie < 1ULL << 62);
		CHECK(fs_lookup(ibfs, dir, name, &found) == 0 && same(child, found));
		CHECK(fs_getattr(ibfs, child, &st) == 0);
		CHECK(st.st_ino == path_pack(child) && (st.st_mode & S_IFMT) == fs_type(child));
		again = cookie;
		CHECK(fs_readdir(ibfs, dir, &again, name, &found) >= 0);
		n++;
		if (!S_ISDIR(st.st_mode))
			continue;
		CHECK(fs_lookup(ibfs, child, "..", &found) == 0 && same(found, dir));
		CHECK(depth < 12);
		n += walk(ibfs, child, depth + 1);
	}
	return n;
}

static void no_wake(struct textring_reader *reader)
{
	(void)reader;
}

static void no_reply(struct fs_req *req, ssize_t result, const void *data, size_t len)
{
	(void)req;
	(void)result;
	(void)data;
	(void)len;
	CHECK(!"a reply");
}

/* What would wait is given up. */
static void cancel(struct fs_req *req, ssize_t ret)
{
	if (ret != FS_PENDING)
		return;
	req->reply = note_reply;
	fs_cancel(req);
	CHECK(replied == -EINTR);
	req->reply = no_reply;
	replied = 0;
}

/* Any 64 bits are a path, any text a name, any number a cookie. */
static void fuzz(struct ibfs *ibfs, unsigned int rounds)
{
	static const char *const names[] = { "", ".", "..", "x", "0", "1", "255", "umad",
		"umad4294967296", "%", "a:1-b:2", "-", ":", "rxe0:1-switch:1", "rxe0:999-", "rxe0" };
	struct fs_req req = { .ibfs = ibfs, .reply = no_reply };
	struct path path, child;
	struct file *file;
	uint64_t cookie;
	struct stat st;
	char buf[4096], name[256];

	while (rounds--) {
		path = path_unpack((uint64_t)(random() % (KIND_MAX + 4)) << 56 |
				   (uint64_t)(random() & 0x1f) << 48 |
				   (uint64_t)(random() & 3) << 40 | (uint64_t)(random() & 3) << 28 |
				   (random() & (random() & 1 ? 3 : 0xfffffff)));
		fs_getattr(ibfs, path, &st);
		cancel(&req, fs_ready(&req, path));
		fs_lookup(ibfs, path, names[random() % (sizeof(names) / sizeof(names[0]))], &child);
		cookie = (uint64_t)random() << (random() % 33);
		fs_readdir(ibfs, path, &cookie, name, &child);
		if (path.kind == KIND_UMAD || path.kind == KIND_ISSM)
			continue;
		if (fs_open(&req, path, O_RDWR | O_NONBLOCK, &file) == 0 && file) {
			cancel(&req, fs_read(&req, file, buf, random() % sizeof(buf), 0));
			cancel(&req, fs_read(&req, file, buf, random() % sizeof(buf), random()));
			fs_poll(file);
		}
		if (file)
			fs_release(file);
	}
}

/* Words that mean something, and nonsense; joined at random into lines. */
static const char *const words[] = {
	"device", "undevice", "remove", "link", "unlink", "ca", "switch", "down", "up", "faults",
	"off", "width", "speed", "shutdown", "init_type", "set_cap", "clr_cap", "reset_qkey_cntr",
	"gid", "pkey", "rxe0", "rxe1", "extra", "switch:1", "switch:4", "rxe0:1", "rxe1:2",
	"extra:1", "name=rxe7", "name=", "name=a/b", "name=fabric", "name=far-too-long-for-a-device",
	"drop=0.5", "drop=2", "drop=nan", "drop=1e400", "delay=1ms", "delay=1e9s", "delay=-0s",
	"jitter=5us", "seed=0x5", "seed=", "corrupt=1%", "reorder=101%", "1X", "4X", "99X", "EDR",
	"XDR", "0", "1", "-1", "255", "0x10000", "0x1ffffffff", "fe80::1", "::", "0xffff", "%2f",
	"\nca extra 2\n", "\nca rxe0 1\n", "\nswitch switch 4\n", "\nlink extra:1 switch:4\n",
	"\nlink rxe0:1 switch:1\n", "\ndevice extra\n", "\ndevice rxe0 name=rxe0\n",
	"\nunlink extra:1\n", "\nremove extra\n", "", "=", "==", "\x7f\xff", "x:", ":1", "x:99999999999999999999", "\n", "\n", "\t",
};

static size_t random_line(char *buf, size_t size)
{
	size_t n = 0, len;
	const char *word;

	do {
		word = words[random() % (sizeof(words) / sizeof(words[0]))];
		len = strlen(word);
		if (n + len + 2 > size)
			break;
		memcpy(buf + n, word, len);
		n += len;
		buf[n++] = random() % 8 ? ' ' : '\n';
	} while (random() % 4);
	return n;
}

/* The ctl file of what is there now. */
static struct path random_ctl(struct ibfs *ibfs)
{
	static const uint8_t ctls[] = { KIND_FABRIC_CTL, KIND_FABRIC_CTL, KIND_LINK_CTL,
					KIND_NODE_CTL, KIND_PORT_CTL, KIND_DEV_QUERY };
	struct path path = { .kind = ctls[random() % sizeof(ctls)], .port = 1 };

	if (path.kind == KIND_LINK_CTL)
		path.idx = random() % (ibfs->fabric->num_links + 1);
	else if (path.kind == KIND_NODE_CTL)
		path.idx = random() % (ibfs->fabric->num_nodes + 1);
	else if (path.kind != KIND_FABRIC_CTL)
		path.dev = random() % (ibfs->next_device + 1);
	return path;
}

/* Whatever is written to a ctl file, it is done, or refused with a reason in words. */
static void fuzz_ctl(struct ibfs *ibfs, unsigned int rounds)
{
	struct textring_reader reader = { .wake = no_wake };
	struct fs_req req = { .ibfs = ibfs, .reply = no_reply };
	struct file *file;
	char line[512];
	ssize_t ret;
	size_t len;

	textring_attach(ibfs->errors, &reader, false);
	while (rounds--) {
		len = random_line(line, sizeof(line));
		if (fs_open(&req, random_ctl(ibfs), O_RDWR, &file))
			continue;
		while (textring_next(ibfs->errors, &reader))
			;
		ret = fs_write(&req, file, line, len, 0);
		CHECK(ret <= (ssize_t)len);
		if (ret != (ssize_t)len && ret != -ENOENT && !textring_next(ibfs->errors, &reader)) {
			fprintf(stderr, "no reason (%zd, kind %u): %.*s\n", ret, file->path.kind,
				(int)len, line);
			failed = 1;
		}
		fs_release(file);
		taskq_run(ibfs->tasks);
	}
	textring_detach(ibfs->errors, &reader);
}

static void set_mode(struct ibfs *ibfs, struct path path, mode_t mode)
{
	struct fs_cred root = { .uid = 0 };
	struct stat set = { .st_mode = mode, .st_uid = 1001, .st_gid = 4242 };

	CHECK(fs_setattr(ibfs, path, &root, &set, FS_SET_MODE | FS_SET_UID | FS_SET_GID) == 0);
}

static void test_groups(struct ibfs *ibfs, struct path path)
{
	struct fs_groups *groups = fs_groups_new(2);
	struct fs_cred user = { .uid = 1000, .gid = 1000 };

	CHECK(groups);
	groups->gid[0] = 7;
	groups->gid[1] = 4242;
	groups->num = 1;
	/* Not known: neither do they help, nor can who is in one do without. */
	set_mode(ibfs, path, 0640);
	CHECK(fs_access(ibfs, path, &user, R_OK) == -EACCES);
	set_mode(ibfs, path, 0606);
	CHECK(fs_access(ibfs, path, &user, R_OK) == -EACCES);
	set_mode(ibfs, path, 0666);
	CHECK(fs_access(ibfs, path, &user, R_OK) == 0);

	user.groups = groups;
	set_mode(ibfs, path, 0640);
	CHECK(fs_access(ibfs, path, &user, R_OK) == -EACCES);
	set_mode(ibfs, path, 0606);
	CHECK(fs_access(ibfs, path, &user, R_OK) == 0);
	groups->num = 2;
	CHECK(fs_access(ibfs, path, &user, R_OK) == -EACCES);
	set_mode(ibfs, path, 0640);
	CHECK(fs_access(ibfs, path, &user, R_OK) == 0);
	CHECK(fs_access(ibfs, path, &user, W_OK) == -EACCES);
	fs_groups_put(groups);
}

static bool in_groups(const struct fs_groups *groups, gid_t gid)
{
	unsigned int i;

	for (i = 0; i < groups->num; i++)
		if (groups->gid[i] == gid)
			return true;
	return false;
}

/* Of a thread, this one: only while it is who it is said to be. */
static void test_groups_of(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid(), many[300];
	struct fs_groups *groups;
	unsigned int i;

	CHECK(!fs_groups_of(0, uid, gid));
	CHECK(!fs_groups_of(getpid(), uid + 1, gid));
	CHECK(!fs_groups_of(getpid(), uid, gid + 1));
	groups = fs_groups_of(getpid(), uid, gid);
	CHECK(groups && groups->num == (unsigned int)getgroups(0, NULL));
	CHECK(fs_groups_get(groups) == groups);
	fs_groups_put(groups);
	fs_groups_put(groups);
	fs_groups_put(NULL);
	if (uid)
		return;
	for (i = 0; i < 300; i++)
		many[i] = 1000000000 + i;
	CHECK(setgroups(300, many) == 0);
	groups = fs_groups_of(getpid(), uid, gid);
	CHECK(groups && groups->num == 300);
	CHECK(in_groups(groups, many[0]) && in_groups(groups, many[299]));
	CHECK(!in_groups(groups, 1000000300));
	fs_groups_put(groups);
	CHECK(setgroups(0, NULL) == 0);
	groups = fs_groups_of(getpid(), uid, gid);
	CHECK(groups && !groups->num);
	fs_groups_put(groups);
}

static void test_access(struct ibfs *ibfs)
{
	struct fs_cred root = { .uid = 0 }, user = { .uid = 1000, .gid = 1000 };
	struct stat set = { .st_mode = 0640, .st_uid = 1001, .st_gid = 2000 };
	struct path dir, umad, lid;

	CHECK(fs_lookup(ibfs, (struct path){ .kind = KIND_ROOT }, "rxe0", &dir) == 0);
	CHECK(fs_lookup(ibfs, dir, "1", &dir) == 0);
	CHECK(fs_lookup(ibfs, dir, "umad", &umad) == 0 && fs_lookup(ibfs, dir, "lid", &lid) == 0);
	CHECK(fs_access(ibfs, lid, &user, R_OK) == 0);
	CHECK(fs_access(ibfs, lid, &user, W_OK) == -EACCES);
	CHECK(fs_access(ibfs, umad, &user, R_OK) == -EACCES);
	CHECK(fs_access(ibfs, umad, &root, R_OK | W_OK) == 0);
	CHECK(fs_setattr(ibfs, umad, &user, &set, FS_SET_MODE) == -EPERM);
	CHECK(fs_setattr(ibfs, umad, &user, &set, FS_SET_UID) == -EPERM);
	CHECK(fs_setattr(ibfs, lid, &root, &set, FS_SET_MODE) == -EPERM);
	CHECK(fs_setattr(ibfs, lid, &root, &set, FS_SET_SIZE) == 0);
	CHECK(fs_setattr(ibfs, umad, &root, &set, FS_SET_MODE | FS_SET_GID) == 0);
	user.gid = 2000;
	CHECK(fs_access(ibfs, umad, &user, R_OK) == 0);
	CHECK(fs_access(ibfs, umad, &user, W_OK) == -EACCES);
	test_groups(ibfs, umad);
	user.uid = set.st_uid = 1000;
	CHECK(fs_setattr(ibfs, umad, &root, &set, FS_SET_UID) == 0);
	CHECK(fs_access(ibfs, umad, &user, R_OK | W_OK) == 0);
	CHECK(fs_setattr(ibfs, umad, &user, &set, FS_SET_MODE) == 0);
}

/* An object's ctl, of a new one: opened by one user, written by another. */
static struct file *open_clone(struct ibfs *ibfs, const char *kind, uid_t opener)
{
	struct fs_req req = { .ibfs = ibfs, .reply = no_reply, .cred = { .uid = opener } };
	struct path dir, clone;
	struct file *file;

	CHECK(fs_lookup(ibfs, (struct path){ .kind = KIND_ROOT }, kind, &dir) == 0);
	CHECK(fs_lookup(ibfs, dir, "clone", &clone) == 0);
	CHECK(fs_open(&req, clone, O_RDWR, &file) == 0);
	return file;
}

static ssize_t command(struct file *file, uid_t writer, const char *line)
{
	struct fs_req req = { .ibfs = file->ibfs, .cred = { .uid = writer } };

	return fs_write(&req, file, line, strlen(line), 0);
}

/* A file's requests have the rights of who opened it, whoever makes them. */
static void test_opener(struct ibfs *ibfs)
{
	struct file *pd = open_clone(ibfs, "pd", 0), *mine = open_clone(ibfs, "mw", 1000);
	struct file *roots = open_clone(ibfs, "mw", 0);
	struct fs_req req = { .ibfs = ibfs };
	char create[32];
	size_t len;

	CHECK(command(pd, 1000, "create device=rxe0") > 0);
	snprintf(create, sizeof(create), "create pd=%u", pd->path.idx);
	CHECK(command(mine, 0, create) == -EACCES);
	CHECK(command(roots, 1000, create) > 0);
	CHECK(fs_read(&req, mine, create, 1, 0) == 1 && req.cred.uid == 1000);
	req.cred.uid = 0;
	CHECK(fs_ioctl(&req, mine, 0, 0, NULL, 0, NULL, 0, &len) == -ENOTTY);
	CHECK(req.cred.uid == 1000);
	fs_release(mine);
	fs_release(roots);
	fs_release(pd);
}

/* What is open when its device goes fails, and is freed all the same. */
static void test_gone(struct ibfs *ibfs)
{
	struct ibfs_device *dev = device_find(ibfs, "rxe1");
	struct path path = { .kind = KIND_PORT_TEXT, .dev = dev->num, .port = 1 };
	struct fs_req req = { .ibfs = ibfs, .reply = no_reply };
	struct file *file;
	struct stat st;
	char buf[64];

	CHECK(fs_open(&req, path, O_RDONLY, &file) == 0);
	CHECK(fs_read(&req, file, buf, sizeof(buf), 0) > 0);
	dev->ops->remove(dev);
	CHECK(fs_read(&req, file, buf, sizeof(buf), 0) == -ENODEV);
	CHECK(fs_write(&req, file, buf, sizeof(buf), 0) == -EINVAL);
	fs_release(file);
	CHECK(fs_getattr(ibfs, path, &st) == -ENOENT);
	CHECK(fs_open(&req, path, O_RDONLY, &file) == -ENOENT && !file);
}

static void make_fabric(struct ibfs *ibfs)
{
	struct node *sw = node_new(ibfs->fabric, NODE_SWITCH, "switch", 4, 0);
	struct node *a = node_new(ibfs->fabric, NODE_CA, "rxe0", 1, 0);
	struct node *b = node_new(ibfs->fabric, NODE_CA, "rxe1", 2, 0);

	CHECK(sw && a && b);
	CHECK(link_new(&a->ports[1], &sw->ports[1]) && link_new(&b->ports[1], &sw->ports[2]));
	CHECK(soft_device_add(ibfs, "rxe0", "rxe0") == 0);
	CHECK(soft_device_add(ibfs, "rxe1", "rxe1") == 0);
	CHECK(soft_device_add(ibfs, "sw", "switch") == 0);
	CHECK(soft_device_add(ibfs, "sys", "rxe1") < 0);
}

int main(void)
{
	const struct path root = { .kind = KIND_ROOT };
	struct ibfs ibfs = { .loop = ev_loop_new(0) };
	struct ibfs_device *dev;
	unsigned int n;

	ibfs.tasks = taskq_new(ibfs.loop);
	ibfs.errors = textring_new(16);
	ibfs.events = textring_new(16);
	ibfs.fabric = fabric_new(&ibfs, &sim_node_ops);
	CHECK(fs_init(&ibfs) == 0);
	make_fabric(&ibfs);
	n = walk(&ibfs, root, 0);
	CHECK(n > 500);
	fuzz(&ibfs, 200000);
	CHECK(walk(&ibfs, root, 0) == n);
	test_access(&ibfs);
	test_groups_of();
	test_opener(&ibfs);
	test_gone(&ibfs);
	fuzz(&ibfs, 20000);
	fuzz_ctl(&ibfs, 100000);
	walk(&ibfs, root, 0);
	CHECK(ibfs.fs->open_files == 0);
	while ((dev = ibfs.devices) != NULL)
		dev->ops->remove(dev);
	fabric_free(ibfs.fabric);
	fs_exit(&ibfs);
	textring_free(ibfs.errors);
	textring_free(ibfs.events);
	taskq_free(ibfs.tasks);
	ev_loop_destroy(ibfs.loop);
	return failed;
}
