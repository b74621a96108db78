/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dev/infiniband/rdma_cm without librdmacm: commands as a program that writes
 * the ABI itself sends them, right and wrong, and thousands that are made up.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(cond) do { \
	if (!(cond)) { \
		fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #cond, strerror(errno)); \
		exit(1); \
	} \
} while (0)

enum { UNREACHABLE_PAGE = 1, MADE_UP = 20000, ADDR_RESOLVED = 0, ROUTE_RESOLVED = 2 };

static const char *path;

static int open_cm(int flags)
{
	int fd = open(path, O_RDWR | flags);

	CHECK(fd >= 0);
	return fd;
}

/* 0, or the errno. */
static int command(int fd, uint32_t cmd, const void *req, size_t len, size_t room)
{
	struct rdma_ucm_cmd_hdr hdr = { .cmd = cmd, .in = len, .out = room };
	uint8_t buf[1024];
	ssize_t n;

	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), req, len);
	n = write(fd, buf, sizeof(hdr) + len);
	return n < 0 ? errno : n == (ssize_t)(sizeof(hdr) + len) ? 0 : EIO;
}

static int create(int fd, uint16_t ps, uint32_t *id)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	const struct rdma_ucm_create_id req = { .uid = 7, .response = (uintptr_t)&resp, .ps = ps };
	int err = command(fd, RDMA_USER_CM_CMD_CREATE_ID, &req, sizeof(req), sizeof(resp));

	*id = resp.id;
	return err;
}

static int destroy(int fd, uint32_t id, uint32_t *events)
{
	struct rdma_ucm_destroy_id_resp resp = { 0 };
	const struct rdma_ucm_destroy_id req = { .response = (uintptr_t)&resp, .id = id };
	int err = command(fd, RDMA_USER_CM_CMD_DESTROY_ID, &req, sizeof(req), sizeof(resp));

	*events = resp.events_reported;
	return err;
}

static int event(int fd, struct rdma_ucm_event_resp *resp)
{
	const struct rdma_ucm_get_event req = { .response = (uintptr_t)resp };

	return command(fd, RDMA_USER_CM_CMD_GET_EVENT, &req, sizeof(req), sizeof(*resp));
}

static int resolve_loopback(int fd, uint32_t id)
{
	struct rdma_ucm_resolve_ip req = { .id = id, .timeout_ms = 1000 };
	struct sockaddr_in *dst = (struct sockaddr_in *)&req.dst_addr;

	dst->sin_family = AF_INET;
	dst->sin_port = htons(7000);
	dst->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return command(fd, RDMA_USER_CM_CMD_RESOLVE_IP, &req, sizeof(req), 0);
}

static void test_life(void)
{
	const struct rdma_ucm_resolve_route route = { .timeout_ms = 1000 };
	struct rdma_ucm_resolve_route req = route;
	struct rdma_ucm_event_resp resp;
	int fd = open_cm(0), other = open_cm(O_NONBLOCK);
	uint32_t id, events;

	CHECK(!create(fd, RDMA_PS_TCP, &id));
	CHECK(event(other, &resp) == EAGAIN);
	/* An id is its file's. */
	CHECK(destroy(other, id, &events) == ENOENT);
	req.id = id;
	CHECK(command(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &req, sizeof(req), 0) == EINVAL);
	CHECK(!resolve_loopback(fd, id));
	CHECK(!event(fd, &resp) && resp.event == ADDR_RESOLVED && !resp.status && resp.uid == 7);
	CHECK(!command(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &req, sizeof(req), 0));
	CHECK(!event(fd, &resp) && resp.event == ROUTE_RESOLVED && !resp.status);
	CHECK(!destroy(fd, id, &events) && events == 2);
	CHECK(destroy(fd, id, &events) == ENOENT);
	close(other);
	close(fd);
}

static void test_poll(void)
{
	struct pollfd pfd = { .events = POLLIN };
	struct rdma_ucm_event_resp resp;
	uint32_t id;

	pfd.fd = open_cm(O_NONBLOCK);
	CHECK(poll(&pfd, 1, 0) == 0);
	CHECK(!create(pfd.fd, RDMA_PS_TCP, &id) && !resolve_loopback(pfd.fd, id));
	CHECK(poll(&pfd, 1, 10000) == 1 && pfd.revents & POLLIN);
	CHECK(!event(pfd.fd, &resp));
	CHECK(poll(&pfd, 1, 0) == 0);
	close(pfd.fd);
}

/* An answer that can't be written undoes the command; an event stays. */
static void test_bad_pointers(void)
{
	const struct rdma_ucm_create_id req = { .response = UNREACHABLE_PAGE, .ps = RDMA_PS_TCP };
	const struct rdma_ucm_get_event get = { .response = UNREACHABLE_PAGE };
	struct rdma_ucm_event_resp resp;
	int fd = open_cm(0);
	uint32_t id, next;

	CHECK(command(fd, RDMA_USER_CM_CMD_CREATE_ID, &req, sizeof(req), 4) == EFAULT);
	CHECK(command(fd, RDMA_USER_CM_CMD_CREATE_ID, &req, sizeof(req), 3) == ENOSPC);
	CHECK(!create(fd, RDMA_PS_TCP, &id) && !create(fd, RDMA_PS_TCP, &next));
	CHECK(!resolve_loopback(fd, id));
	CHECK(command(fd, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get), sizeof(resp)) == EFAULT);
	CHECK(!event(fd, &resp) && resp.id == id && resp.event == ADDR_RESOLVED);
	CHECK(create(fd, 4711, &id) == EINVAL);
	close(fd);
}

/* xorshift64: the same commands in every run. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void test_made_up(void)
{
	static uint8_t answer[4096];
	uint64_t state = 88172645463325252, at = (uintptr_t)answer;
	uint8_t req[320];
	uint32_t id;
	int fd = open_cm(O_NONBLOCK);

	for (int i = 0; i < MADE_UP; i++) {
		size_t len = next_random(&state) % sizeof(req);

		for (size_t k = 0; k < sizeof(req); k++)
			req[k] = next_random(&state) % 8 ? 0 : (uint8_t)next_random(&state);
		/* Often a good pointer, and an id that may exist. */
		if (i % 2)
			memcpy(req, &at, sizeof(at));
		id = next_random(&state) % 64;
		memcpy(req + next_random(&state) % 5 * 4, &id, sizeof(id));
		command(fd, next_random(&state) % 25, req, len, next_random(&state) % sizeof(answer));
	}
	CHECK(!create(fd, RDMA_PS_TCP, &id));
	close(fd);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	path = argv[1];
	test_life();
	test_poll();
	test_bad_pointers();
	test_made_up();
	return 0;
}
