/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Something that the daemon calls back for, by a process with rights of its own:
 * callbacks_ask [-d] [-D] [-f] [-r UID:GID] [-x PROGRAM] KIND FILE. FILE is opened, or @ and
 * the number of a descriptor. Exits with the errno of what was asked, or 0.
 *
 *	-d, -D	its memory is nobody's to read, from before or after the opening
 *	-f	a child asks
 *	-r	as this user and group, from after the opening
 *	-x	another program asks, executed after the opening
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ibfs/uverbs_rings.h>

/* Where an answer goes; without PROT_WRITE it can't. */
static void *answer_page(int prot)
{
	static uint64_t answer[8];

	if (prot == (PROT_READ | PROT_WRITE))
		return answer;
	return mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int by_write(int fd, int prot)
{
	struct { struct ib_uverbs_cmd_hdr hdr; struct ib_uverbs_get_context req; } cmd = {
		{ IB_USER_VERBS_CMD_GET_CONTEXT, sizeof(cmd) / 4,
		  sizeof(struct ib_uverbs_get_context_resp) / 4 },
		{ .response = (uintptr_t)answer_page(prot) },
	};

	return write(fd, &cmd, sizeof(cmd)) == sizeof(cmd) ? 0 : errno;
}

static int ask_write(int fd)
{
	return by_write(fd, PROT_READ | PROT_WRITE);
}

/* What may not be written isn't, and an error. */
static int ask_read_only(int fd)
{
	return by_write(fd, PROT_READ);
}

static int by_ioctl(int fd, int prot)
{
	struct { struct ib_uverbs_ioctl_hdr hdr; struct ib_uverbs_attr attr[2]; } call = {
		{ .length = sizeof(call), .object_id = UVERBS_OBJECT_DEVICE, .num_attrs = 2,
		  .method_id = UVERBS_METHOD_GET_CONTEXT, .driver_id = RDMA_DRIVER_RXE },
		{ { .attr_id = UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, .len = 4,
		    .data = (uintptr_t)answer_page(prot) },
		  { .attr_id = UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, .len = 8,
		    .data = (uintptr_t)answer_page(prot) } },
	};

	return ioctl(fd, RDMA_VERBS_IOCTL, &call) ? errno : 0;
}

static int ask_ioctl(int fd)
{
	return by_ioctl(fd, PROT_READ | PROT_WRITE);
}

static int ask_ioctl_read_only(int fd)
{
	return by_ioctl(fd, PROT_READ);
}

static int ask_socket(int fd)
{
	struct { struct ib_uverbs_cmd_hdr hdr; struct ibfs_uverbs_rings req; } cmd = {
		{ IBFS_UVERBS_RINGS, sizeof(cmd) / 4, 0 }, { 0 },
	};
	int pair[2], err = ask_write(fd);

	if (err || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		return errno;
	cmd.req.sock = pair[0];
	return write(fd, &cmd, sizeof(cmd)) == sizeof(cmd) ? 0 : errno;
}

static int create_id(int fd, void *response)
{
	struct { struct rdma_ucm_cmd_hdr hdr; struct rdma_ucm_create_id req; } cmd = {
		{ RDMA_USER_CM_CMD_CREATE_ID, sizeof(cmd.req), sizeof(struct rdma_ucm_create_id_resp) },
		{ .uid = 1, .response = (uintptr_t)response, .ps = RDMA_PS_TCP },
	};

	return write(fd, &cmd, sizeof(cmd)) == sizeof(cmd) ? 0 : errno;
}

static int ask_rdma_cm(int fd)
{
	return create_id(fd, answer_page(PROT_READ | PROT_WRITE));
}

static int ask_rdma_cm_read_only(int fd)
{
	return create_id(fd, answer_page(PROT_READ));
}

static const struct kind {
	const char *name;
	int (*ask)(int fd);
} kinds[] = {
	{ "write", ask_write }, { "ioctl", ask_ioctl }, { "socket", ask_socket },
	{ "rdma_cm", ask_rdma_cm }, { "read_only", ask_read_only },
	{ "ioctl_read_only", ask_ioctl_read_only }, { "rdma_cm_read_only", ask_rdma_cm_read_only },
};

static int ask(const char *name, int fd)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return kinds[i].ask(fd);
	return 255;
}

/* A child's errno is its parent's. */
static void let_child(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		return;
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		exit(255);
	exit(WEXITSTATUS(status));
}

static void become(const char *ids)
{
	unsigned int uid, gid;

	if (sscanf(ids, "%u:%u", &uid, &gid) != 2 || setgroups(0, NULL) ||
	    setresgid(gid, gid, gid) || setresuid(uid, uid, uid)) {
		perror(ids);
		exit(255);
	}
}

static void execute(const char *program, const char *kind, int fd)
{
	char file[16];

	snprintf(file, sizeof(file), "@%d", fd);
	execl(program, program, kind, file, NULL);
	perror(program);
	exit(255);
}

int main(int argc, char **argv)
{
	const char *ids = NULL, *program = NULL;
	bool late = false, child = false;
	int opt, fd;

	while ((opt = getopt(argc, argv, "dDfr:x:")) >= 0) {
		if (opt == 'd')
			prctl(PR_SET_DUMPABLE, 0);
		late = late || opt == 'D';
		child = child || opt == 'f';
		ids = opt == 'r' ? optarg : ids;
		program = opt == 'x' ? optarg : program;
	}
	if (argc != optind + 2)
		return 255;
	fd = argv[optind + 1][0] == '@' ? atoi(argv[optind + 1] + 1) : open(argv[optind + 1], O_RDWR);
	if (fd < 0) {
		perror(argv[optind + 1]);
		return 255;
	}
	if (late)
		prctl(PR_SET_DUMPABLE, 0);
	if (ids)
		become(ids);
	if (child)
		let_child();
	if (program)
		execute(program, argv[optind], fd);
	_exit(ask(argv[optind], fd));	/* a sanitizer would look for leaks, and may not */
}
