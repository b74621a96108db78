/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's command line: its options, and what is wrong with them in words. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <ibfs/fs.h>
#include <ibfs/ibfs.h>

#include "deadmount.h"
#include "options.h"

static const char usage[] =
	"usage: ibfs [-f] [-c CONF] [-o OPTIONS] [--9p ADDRESS]... [MOUNTPOINT]\n"
	"       ibfs SOURCE MOUNTPOINT [-o OPTIONS]     (as mount(8) calls it)\n";

static const char help[] =
	"\n"
	"Mount InfiniBand adapters as files, or serve them over 9P, or both;\n"
	"umount MOUNTPOINT stops it, or SIGTERM.\n"
	"\n"
	"  -c, --conf CONF        configuration, ibfs.conf(5); without it: two software\n"
	"                         HCAs, rxe0 and rxe1, on one switch\n"
	"  -f, --foreground       stay in the foreground, log to stderr\n"
	"      --9p ADDRESS       serve 9P on unix:PATH or tcp:HOST:PORT; may be repeated\n"
	"  -o OPTIONS             mount options, as for mount.fuse3(8)\n"
	"  -h, --help             this text\n"
	"  -V, --version          the version\n"
	"\n"
	"SOURCE is a configuration, or \"none\".\n";

void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("ibfs: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

static bool usage_error(int *status)
{
	fputs(usage, stderr);
	*status = EXIT_USAGE;
	return false;
}

/* -o may be given more than once. */
static void add_mount_options(struct options *opts, const char *more)
{
	char *joined;

	if (asprintf(&joined, "%s%s%s", opts->mount ? opts->mount : "", opts->mount ? "," : "",
		     more) < 0)
		abort();
	free(opts->mount);
	opts->mount = joined;
}

static bool add_9p(struct options *opts, const char *address, int *status)
{
	const char *wrong = p9_check_address(address);

	if (wrong) {
		say("--9p %s: %s", address, wrong);
		*status = EXIT_USAGE;
		return false;
	}
	opts->p9 = reallocarray(opts->p9, opts->num_p9 + 1, sizeof(*opts->p9));
	if (!opts->p9)
		abort();
	opts->p9[opts->num_p9++] = address;
	return true;
}

/* [SOURCE] MOUNTPOINT; or neither, for 9P only, which the configuration may ask for too */
static bool parse_arguments(int argc, char **argv, struct options *opts, int *status)
{
	if (argc == 0 && (opts->num_p9 || opts->conf) && !opts->mount)
		return true;
	if (argc < 1 || argc > 2 || (opts->conf && argc == 2))
		return usage_error(status);
	if (argc == 2 && strcmp(argv[0], "none") != 0)
		opts->conf = argv[0];
	opts->name = argv[argc - 1];
	return true;
}

bool options_parse(int argc, char **argv, struct options *opts, int *status)
{
	static const struct option longopts[] = {
		{ "9p", required_argument, NULL, '9' },
		{ "conf", required_argument, NULL, 'c' },
		{ "foreground", no_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 }
	};
	int opt;

	*status = EXIT_SUCCESS;
	while ((opt = getopt_long(argc, argv, "c:fho:V", longopts, NULL)) != -1) {
		switch (opt) {
		case '9':
			if (!add_9p(opts, optarg, status))
				return false;
			break;
		case 'c':
			opts->conf = optarg;
			break;
		case 'f':
			opts->foreground = true;
			break;
		case 'o':
			add_mount_options(opts, optarg);
			break;
		case 'h':
			printf("%s%s", usage, help);
			return false;
		case 'V':
			printf("ibfs %s\n", IBFS_VERSION);
			return false;
		default:
			return usage_error(status);
		}
	}
	return parse_arguments(argc - optind, argv + optind, opts, status);
}

/* Absolute. A path that ends with a slash is asked for more than a dead mount answers. */
static char *resolve(const char *name)
{
	size_t len = strlen(name);
	char *bare, *path;

	while (len > 1 && name[len - 1] == '/')
		len--;
	bare = strndup(name, len);
	path = bare ? realpath(bare, NULL) : NULL;
	free(bare);
	return path;
}

/* A directory that can be reached; what a daemon that was killed left there goes. */
static int check_directory(const char *name, const char *path)
{
	struct statvfs fs;
	struct stat st;
	int removed;

	removed = path ? deadmount_remove(path) : 0;
	/* statvfs asks the daemon of a mount that is there already; attributes are cached. */
	if (!path || stat(path, &st) || statvfs(path, &fs)) {
		say("mount point %s: %s%s", name, strerror(errno),
		    errno == ENOTCONN ? " (a dead mount: umount it first)" : "");
		return -1;
	}
	if (!S_ISDIR(st.st_mode)) {
		say("mount point %s: %s", name, strerror(ENOTDIR));
		return -1;
	}
	if (removed > 0)
		say("mount point %s: unmounted what a daemon that died had left there", name);
	return 0;
}

/* What would make the mount fail is told in words of ours, before libfuse's. */
int options_check_mountpoint(struct options *opts)
{
	int fd;

	if (!opts->name)
		return 0;
	opts->mountpoint = resolve(opts->name);
	if (check_directory(opts->name, opts->mountpoint))
		return -1;
	fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		say("/dev/fuse: %s%s", strerror(errno),
		    errno == ENOENT || errno == ENODEV || errno == ENXIO ?
		    " (load the kernel module: modprobe fuse)" :
		    " (ibfs needs read and write permission on it)");
		return -1;
	}
	close(fd);
	return 0;
}

void options_free(struct options *opts)
{
	free(opts->mountpoint);
	free(opts->mount);
	free(opts->p9);
}
