/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a uverbs file's rings as a descriptor, for processes that can't
 * map it through the file: ibfs/uverbs_rings.h. pidfd_getfd(2), unix(7).
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <ibfs/uverbs_rings.h>

#include "fs/uverbs.h"

/*
 * Other kinds are locked while their owner sends: who did that from a page that
 * never comes would stop whoever sends there, too.
 */
static int check_socket(int fd)
{
	socklen_t len = sizeof(int);
	int domain;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len))
		return -errno;
	return domain == AF_UNIX ? 0 : -EINVAL;
}

/* Helper: the socket becomes ours. */
void uv_prep_rings(struct uv_cmd *cmd)
{
	struct ibfs_uverbs_rings req;

	uv_request(cmd, &req, sizeof(req));
	cmd->sock = client_fd_take(cmd->client, req.sock);
	cmd->err = cmd->sock < 0 ? cmd->sock : check_socket(cmd->sock);
}

int uv_rings(struct uv_cmd *cmd)
{
	int fd = cmd->uf->space->rings.fd;
	union {
		struct cmsghdr head;
		char buf[CMSG_SPACE(sizeof(fd))];
	} control = { .head = {
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fd)),
	} };
	struct iovec byte = { "", 1 };
	struct msghdr msg = {
		.msg_iov = &byte, .msg_iovlen = 1,
		.msg_control = control.buf, .msg_controllen = sizeof(control.buf),
	};

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	return sendmsg(cmd->sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 ? 0 : -errno;
}
