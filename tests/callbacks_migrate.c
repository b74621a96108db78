/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An rdma_cm id that processes with other rights would have: callbacks_migrate
 * RDMA_CM, by root. Only one with those of who made it can have it moved to its file.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static const char *path;

static uint32_t create_id(int fd)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	struct { struct rdma_ucm_cmd_hdr hdr; struct rdma_ucm_create_id req; } cmd = {
		{ RDMA_USER_CM_CMD_CREATE_ID, sizeof(cmd.req), sizeof(resp) },
		{ .response = (uintptr_t)&resp, .ps = RDMA_PS_TCP },
	};

	CHECK(write(fd, &cmd, sizeof(cmd)) == sizeof(cmd));
	return resp.id;
}

static int migrate(uint32_t id)
{
	struct rdma_ucm_migrate_resp resp;
	struct { struct rdma_ucm_cmd_hdr hdr; struct rdma_ucm_migrate_id req; } cmd = {
		{ RDMA_USER_CM_CMD_MIGRATE_ID, sizeof(cmd.req), sizeof(resp) },
		{ .response = (uintptr_t)&resp, .id = id },
	};
	int fd = open(path, O_RDWR);

	return fd >= 0 && write(fd, &cmd, sizeof(cmd)) == sizeof(cmd) ? 0 : errno;
}

static void become(unsigned int uid, unsigned int gid)
{
	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		_exit(255);
	/* Who changed its credentials is nobody's to look into. */
	prctl(PR_SET_DUMPABLE, 1);
}

static int migrate_as(unsigned int uid, unsigned int gid, uint32_t id)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		become(uid, gid);
		_exit(migrate(id));
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Its maker, and whom that tells its number. */
static pid_t make_id(uint32_t *id)
{
	int told[2];
	pid_t pid;

	CHECK(!pipe(told));
	pid = fork();
	if (!pid) {
		uint32_t made;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		become(65534, 65534);
		made = create_id(open(path, O_RDWR));
		if (write(told[1], &made, sizeof(made)) == sizeof(made))
			pause();
		_exit(1);
	}
	close(told[1]);
	CHECK(read(told[0], id, sizeof(*id)) == sizeof(*id));
	close(told[0]);
	return pid;
}

int main(int argc, char **argv)
{
	uint32_t id = 0;
	pid_t pid;

	if (argc != 2)
		return 2;
	path = argv[1];
	pid = make_id(&id);
	CHECK(migrate_as(65533, 65534, id) == ENOENT);
	CHECK(migrate_as(65534, 1, id) == ENOENT);
	CHECK(migrate_as(65534, 65534, id) == 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return failed;
}
