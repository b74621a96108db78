/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibfs-run: run a command that sees an ibfs tree where programs look for
 * InfiniBand devices: /dev/infiniband, /sys/class/infiniband*. It makes a mount
 * namespace (with a user namespace for who may not do so otherwise), puts the
 * tree there and becomes the command.
 *
 * A directory to which entries must be added (/sys/class, and /dev if it has no
 * infiniband) is replaced by a tmpfs onto which all other entries are bound
 * from the old one. An overlay would be shorter, but it opens no device nodes
 * in a user namespace, and caches directories that change under it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <ibfs/ibfs.h>

#define LIBRARY		"libibfs-run.so"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_CANT_EXEC = 126, EXIT_NOT_FOUND = 127 };

static void __attribute__((noreturn, format(printf, 2, 3))) die(int status, const char *fmt, ...)
{
	va_list args;

	fputs("ibfs-run: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(status);
}

static char *__attribute__((format(printf, 1, 2))) format(const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		die(EXIT_FAILED, "no memory");
	va_end(args);
	return text;
}

/* --- trees that are mounted --- */

/* mountinfo writes space, tab, newline and backslash as \ooo. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (text[0] == '\\' && text[1] && text[2] && text[3]) {
			*to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

/*
 * The mount point that a line of mountinfo tells (proc_pid_mountinfo(5)), if it
 * is a whole tree: parts of it are bound where this command put them.
 */
static char *tree_of_line(char *line, const char **dev)
{
	char *word[6], *save, *type = strstr(line, " - ");
	int n = 0;

	if (!type || strncmp(type + 3, "fuse.ibfs ", 10))
		return NULL;
	for (char *p = strtok_r(line, " ", &save); p && n < 6; p = strtok_r(NULL, " ", &save))
		word[n++] = p;
	if (n < 6 || strcmp(word[3], "/"))
		return NULL;
	unescape(word[4]);
	*dev = word[2];
	return word[4];
}

/* Calls fn for each tree that is mounted. */
static void for_each_tree(void (*fn)(void *ctx, const char *path, const char *dev), void *ctx)
{
	char *line = NULL, *path;
	const char *dev;
	size_t size = 0;
	FILE *file;

	file = fopen("/proc/self/mountinfo", "re");
	if (!file)
		die(EXIT_FAILED, "/proc/self/mountinfo: %s", strerror(errno));
	while (getline(&line, &size, file) > 0) {
		path = tree_of_line(line, &dev);
		if (path)
			fn(ctx, path, dev);
	}
	free(line);
	fclose(file);
}

struct found {
	char *path, *dev;
};

static void found_tree(void *ctx, const char *path, const char *dev)
{
	struct found *found = ctx;

	if (found->dev && strcmp(found->dev, dev))
		die(EXIT_FAILED, "several trees are mounted (%s, %s): choose with -m",
		    found->path, path);
	if (found->dev)
		return;
	found->path = format("%s", path);
	found->dev = format("%s", dev);
}

/* The one tree that is mounted. */
static char *find_tree(void)
{
	struct found found = { 0 };

	for_each_tree(found_tree, &found);
	if (!found.path)
		die(EXIT_FAILED, "no ibfs is mounted here: start one with ibfs(8), or use -m");
	free(found.dev);
	return found.path;
}

/* A namespace keeps what is mounted in it: other trees' unmounting must not wait for this one. */
static void leave_tree(void *ctx, const char *path, const char *dev)
{
	if (strcmp(ctx, dev))
		umount2(path, MNT_DETACH);
}

static void leave_other_trees(int tree)
{
	struct stat st;
	char *dev;

	if (fstat(tree, &st))
		return;
	dev = format("%u:%u", major(st.st_dev), minor(st.st_dev));
	for_each_tree(leave_tree, dev);
	free(dev);
}

static int open_path(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		die(EXIT_FAILED, "%s: %s", path, strerror(errno));
	return fd;
}

/* At hand by its descriptor, whatever is mounted over its path. Only mounts of the own namespace can be bound. */
static int open_tree_root(const char *mnt)
{
	int fd = open_path(mnt);

	if (faccessat(fd, "dev/infiniband", X_OK, 0) || faccessat(fd, "sys/class", X_OK, 0))
		die(EXIT_FAILED, "%s: not an ibfs tree (%s)", mnt, strerror(errno));
	return fd;
}

/* --- the namespace --- */

static void write_map(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(EXIT_FAILED, "%s: %s", path, strerror(errno));
	close(fd);
}

/* Users stay who they are, so that files belong to whom they would outside. */
static void new_user_namespace(void)
{
	char *uids = format("%u %u 1", geteuid(), geteuid());
	char *gids = format("%u %u 1", getegid(), getegid());

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		die(EXIT_FAILED, "no user namespace: %s; this system keeps users from making one "
		    "(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone), "
		    "run it as root", strerror(errno));
	write_map("/proc/self/setgroups", "deny");
	write_map("/proc/self/gid_map", gids);
	write_map("/proc/self/uid_map", uids);
	free(uids);
	free(gids);
}

static void new_namespace(void)
{
	if (unshare(CLONE_NEWNS)) {
		if (errno != EPERM)
			die(EXIT_FAILED, "no mount namespace: %s", strerror(errno));
		new_user_namespace();
	}
	/* Mounts made and undone outside are seen, those of here stay here. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		die(EXIT_FAILED, "private mounts: %s", strerror(errno));
}

/* --- what is mounted --- */

static void bind(int dir, const char *name, const char *target)
{
	char *source = format("/proc/self/fd/%d/%s", dir, name);

	if (mount(source, target, NULL, MS_BIND | MS_REC, NULL))
		die(EXIT_FAILED, "mount on %s: %s", target, strerror(errno));
	free(source);
}

static void copy_link(int dir, const char *name, const char *target)
{
	char text[4096];
	ssize_t len = readlinkat(dir, name, text, sizeof(text) - 1);

	if (len < 0)
		return;
	text[len] = '\0';
	if (symlink(text, target))
		die(EXIT_FAILED, "%s: %s", target, strerror(errno));
}

/* Show dir's entry name as target, which is in a tmpfs of ours. What went meanwhile is left out. */
static void show(int dir, const char *name, const char *target)
{
	struct stat st;
	int fd;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	if (S_ISLNK(st.st_mode)) {
		copy_link(dir, name, target);
		return;
	}
	if (S_ISDIR(st.st_mode)) {
		if (mkdir(target, 0755))
			die(EXIT_FAILED, "%s: %s", target, strerror(errno));
	} else {
		fd = open(target, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
		if (fd < 0)
			die(EXIT_FAILED, "%s: %s", target, strerror(errno));
		close(fd);
	}
	bind(dir, name, target);
}

/* Show all entries of the directory dir at path, but those that path has. */
static void show_all(int dir, const char *path)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!list)
		die(EXIT_FAILED, "entries for %s: %s", path, strerror(errno));
	while ((entry = readdir(list))) {
		char *target = format("%s/%s", path, entry->d_name);
		struct stat st;

		if (lstat(target, &st))
			show(dir, entry->d_name, target);
		free(target);
	}
	closedir(list);
}

static void cover(const char *path)
{
	if (mount("ibfs-run", path, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=4m"))
		die(EXIT_FAILED, "mount on %s: %s", path, strerror(errno));
}

static void setup_dev(int tree)
{
	int old;

	if (!access("/dev/infiniband", F_OK)) {
		bind(tree, "dev/infiniband", "/dev/infiniband");
		return;
	}
	old = open_path("/dev");
	cover("/dev");
	if (mkdir("/dev/infiniband", 0755))
		die(EXIT_FAILED, "/dev/infiniband: %s", strerror(errno));
	bind(tree, "dev/infiniband", "/dev/infiniband");
	show_all(old, "/dev");
	close(old);
}

/* The tree has a class of its own in whole, except misc, which it shares with the system. */
static void setup_sys(int tree)
{
	int old = open_path("/sys/class"), ours, misc;

	ours = openat(tree, "sys/class", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (ours < 0)
		die(EXIT_FAILED, "sys/class: %s", strerror(errno));
	cover("/sys/class");
	misc = openat(ours, "misc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (misc >= 0) {
		if (mkdir("/sys/class/misc", 0755))
			die(EXIT_FAILED, "/sys/class/misc: %s", strerror(errno));
		show_all(misc, "/sys/class/misc");
		close(misc);
		misc = openat(old, "misc", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (misc >= 0)
			show_all(misc, "/sys/class/misc");
	}
	show_all(ours, "/sys/class");
	show_all(old, "/sys/class");
	close(misc);
	close(ours);
	close(old);
}

/* --- the command --- */

/* Beside this program, where the build puts it, or where it is installed. */
static char *find_library(void)
{
	static const char *const places[] = { "", "/../lib/ibfs" };
	char *dir = realpath("/proc/self/exe", NULL), *path;

	if (!dir)
		die(EXIT_FAILED, "/proc/self/exe: %s", strerror(errno));
	*strrchr(dir, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		path = format("%s%s/" LIBRARY, dir, places[i]);
		if (!access(path, R_OK))
			return path;
		free(path);
	}
	path = format("%s/ibfs/" LIBRARY, IBFS_LIBDIR);
	if (access(path, R_OK))
		die(EXIT_FAILED, "%s: %s", path, strerror(errno));
	return path;
}

/* Once, and behind what is preloaded already. ld.so separates by spaces and colons. */
static void preload(const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	char *value;

	if (strpbrk(library, " :"))
		die(EXIT_FAILED, "%s: can't be preloaded from a path with a space or a colon", library);
	if (old && strstr(old, library))
		return;
	value = old && *old ? format("%s:%s", old, library) : format("%s", library);
	if (setenv("LD_PRELOAD", value, 1))
		die(EXIT_FAILED, "no memory");
	free(value);
}

static void usage(FILE *file)
{
	fputs("usage: ibfs-run [-m MOUNTPOINT] COMMAND [ARGUMENT...]\n"
	      "Run COMMAND with the ibfs tree at MOUNTPOINT as /dev/infiniband and /sys/class/infiniband*.\n"
	      "Without -m: $IBFS, or the one that is mounted.\n", file);
}

static void bad_usage(const char *problem)
{
	if (problem)
		fprintf(stderr, "ibfs-run: %s\n", problem);
	fputs("usage: ibfs-run [-m MOUNTPOINT] COMMAND [ARGUMENT...]\n", stderr);
	exit(EXIT_USAGE);
}

static const char *parse_options(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	const char *mnt = getenv("IBFS");
	int c;

	while ((c = getopt_long(argc, argv, "+m:hV", longs, NULL)) != -1) {
		switch (c) {
		case 'm':
			mnt = optarg;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		case 'V':
			puts("ibfs-run " IBFS_VERSION);
			exit(0);
		default:
			bad_usage(NULL);
		}
	}
	if (optind == argc)
		bad_usage("no command");
	return mnt && *mnt ? mnt : find_tree();
}

int main(int argc, char **argv)
{
	const char *mnt = parse_options(argc, argv);
	char **command = argv + optind;
	char *library = find_library();
	char *path = realpath(mnt, NULL);
	int tree;

	if (!path)
		die(EXIT_FAILED, "%s: %s", mnt, strerror(errno));
	new_namespace();
	tree = open_tree_root(path);
	leave_other_trees(tree);
	setup_dev(tree);
	setup_sys(tree);
	preload(library);
	if (setenv("IBFS", path, 1))
		die(EXIT_FAILED, "no memory");
	execvp(command[0], command);
	die(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANT_EXEC, "%s: %s", command[0],
	    strerror(errno));
}
