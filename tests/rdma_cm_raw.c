/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dev/infiniband/rdma_cm without librdmacm: commands as a program that writes
 * the ABI itself sends them, right and wrong, and thousands that are made up.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "in_syscall.h"

#define CHECK(cond) do { \
	if (!(cond)) { \
		fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #cond, strerror(errno)); \
		exit(1); \
	} \
} while (0)

enum {
	UNREACHABLE_PAGE = 1, MADE_UP = 20000, NOBODY = 999999,
	ADDR_RESOLVED = 0, ROUTE_RESOLVED = 2, CONNECT_REQUEST = 4, UNREACHABLE = 7,
	ESTABLISHED = 9, MULTICAST_JOIN = 12, MULTICAST_ERROR = 13,
	QKEY = 0x01234567, QPN = 0x4711, SIDR_UNSUPPORTED = 1, SIDR_REJECT = 2,
	SIDR_PRIVATE = 216 - 36, SIDR_REP_PRIVATE = 136, GROUP = 0xef010203,
};

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

/* The next one must be this. */
static struct rdma_ucm_event_resp expect(int fd, uint32_t type, uint32_t status)
{
	struct rdma_ucm_event_resp resp;

	CHECK(!event(fd, &resp));
	if (resp.event != type || resp.status != status)
		fprintf(stderr, "event %u with status %d\n", resp.event, (int)resp.status);
	CHECK(resp.event == type && resp.status == status);
	return resp;
}

static int resolve_to(int fd, uint32_t id, uint16_t port)
{
	struct rdma_ucm_resolve_ip req = { .id = id, .timeout_ms = 1000 };
	struct sockaddr_in *dst = (struct sockaddr_in *)&req.dst_addr;

	dst->sin_family = AF_INET;
	dst->sin_port = htons(port);
	dst->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return command(fd, RDMA_USER_CM_CMD_RESOLVE_IP, &req, sizeof(req), 0);
}

static int resolve_loopback(int fd, uint32_t id)
{
	return resolve_to(fd, id, 7000);
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

/* A child that waits for an event, to be told at resp; it ends with the errno. */
static pid_t wait_for_event(int fd, struct rdma_ucm_event_resp *resp)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit(event(fd, resp));
	CHECK(wait_in_syscall(pid, SYS_write));
	return pid;
}

static int end_of(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* An event that can't be told to who waits first is the next one's. */
static void test_bad_waiter(void)
{
	struct rdma_ucm_event_resp resp;
	int fd = open_cm(0);
	pid_t bad, good;
	uint32_t id;

	CHECK(!create(fd, RDMA_PS_TCP, &id));
	bad = wait_for_event(fd, (struct rdma_ucm_event_resp *)UNREACHABLE_PAGE);
	good = wait_for_event(fd, &resp);
	CHECK(!resolve_loopback(fd, id));
	CHECK(end_of(bad) == EFAULT);
	CHECK(end_of(good) == 0);
	close(fd);
}

/* An id brings its events to who waits at the file that it goes to. */
static void test_migrated(void)
{
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id req = { .response = (uintptr_t)&resp };
	struct rdma_ucm_event_resp told;
	struct pollfd from = { .fd = open_cm(0), .events = POLLIN };
	int to = open_cm(0);
	pid_t waiter;

	req.fd = (uint32_t)from.fd;
	CHECK(!create(from.fd, RDMA_PS_TCP, &req.id) && !resolve_loopback(from.fd, req.id));
	CHECK(poll(&from, 1, 10000) == 1);
	waiter = wait_for_event(to, &told);
	CHECK(!command(to, RDMA_USER_CM_CMD_MIGRATE_ID, &req, sizeof(req), sizeof(resp)));
	CHECK(end_of(waiter) == 0 && !resp.events_reported);
	CHECK(poll(&from, 1, 0) == 0);
	close(to);
	close(from.fd);
}

/* --- datagram services --- */

static int resolve_route(int fd, uint32_t id)
{
	const struct rdma_ucm_resolve_route req = { .id = id, .timeout_ms = 1000 };

	return command(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &req, sizeof(req), 0);
}

/* On any address; the port that it got. */
static uint16_t listen_any(int fd, uint32_t id)
{
	struct rdma_ucm_bind_ip bind = { .id = id };
	const struct rdma_ucm_listen req = { .id = id, .backlog = 5 };
	struct rdma_ucm_query_route_resp route;
	const struct rdma_ucm_query query = { .id = id, .response = (uintptr_t)&route };

	((struct sockaddr_in *)&bind.addr)->sin_family = AF_INET;
	CHECK(!command(fd, RDMA_USER_CM_CMD_BIND_IP, &bind, sizeof(bind), 0));
	CHECK(!command(fd, RDMA_USER_CM_CMD_LISTEN, &req, sizeof(req), 0));
	CHECK(!command(fd, RDMA_USER_CM_CMD_QUERY_ROUTE, &query, sizeof(query), sizeof(route)));
	return ntohs(((struct sockaddr_in *)&route.src_addr)->sin_port);
}

static int ask(int fd, uint32_t id, uint8_t private_len)
{
	struct rdma_ucm_connect req = { .id = id };

	req.conn_param.valid = 1;
	req.conn_param.private_data_len = private_len;
	memset(req.conn_param.private_data, 'q', private_len);
	return command(fd, RDMA_USER_CM_CMD_CONNECT, &req, sizeof(req), 0);
}

static int answer(int fd, uint32_t id, uint8_t private_len)
{
	struct rdma_ucm_accept req = { .id = id, .uid = 8 };

	req.conn_param.valid = 1;
	req.conn_param.qp_num = QPN;
	req.conn_param.private_data_len = private_len;
	memset(req.conn_param.private_data, 'a', private_len);
	return command(fd, RDMA_USER_CM_CMD_ACCEPT, &req, sizeof(req), 0);
}

static int reject(int fd, uint32_t id, uint8_t private_len, uint8_t reason)
{
	const struct rdma_ucm_reject req = {
		.id = id, .private_data_len = private_len, .reason = reason, .private_data = "no",
	};

	return command(fd, RDMA_USER_CM_CMD_REJECT, &req, sizeof(req), 0);
}

/* An id that can ask the service at the port. */
static uint32_t asker(int fd, uint16_t port)
{
	uint32_t id;

	CHECK(!create(fd, RDMA_PS_UDP, &id));
	CHECK(ask(fd, id, 0) == EINVAL);
	CHECK(!resolve_to(fd, id, port));
	expect(fd, ADDR_RESOLVED, 0);
	CHECK(!resolve_route(fd, id));
	expect(fd, ROUTE_RESOLVED, 0);
	return id;
}

static void test_datagrams(void)
{
	int server = open_cm(0), client = open_cm(0);
	struct rdma_ucm_init_qp_attr init = { .qp_state = 1 };
	struct ib_uverbs_qp_attr attr;
	struct rdma_ucm_event_resp resp;
	uint32_t listener, id, events;
	uint16_t port;

	CHECK(!create(server, RDMA_PS_UDP, &listener));
	port = listen_any(server, listener);
	id = asker(client, port);
	CHECK(ask(client, id, SIDR_PRIVATE + 1) == EINVAL);
	CHECK(!ask(client, id, SIDR_PRIVATE));
	CHECK(ask(client, id, 0) == EINVAL);
	resp = expect(server, CONNECT_REQUEST, 0);
	CHECK(resp.param.ud.private_data_len == SIDR_PRIVATE);
	CHECK(resp.param.ud.private_data[0] == 'q' && resp.param.ud.private_data[SIDR_PRIVATE - 1] == 'q');
	init.id = resp.id;
	init.response = (uintptr_t)&attr;
	CHECK(!command(server, RDMA_USER_CM_CMD_INIT_QP_ATTR, &init, sizeof(init), sizeof(attr)));
	CHECK(attr.qkey == QKEY && attr.port_num == 1);
	CHECK(answer(server, resp.id, SIDR_REP_PRIVATE + 1) == EINVAL);
	CHECK(!answer(server, resp.id, SIDR_REP_PRIVATE));
	CHECK(answer(server, resp.id, 0) == EINVAL && reject(server, resp.id, 0, 0) == EINVAL);
	resp = expect(client, ESTABLISHED, 0);
	CHECK(resp.param.ud.qp_num == QPN && resp.param.ud.qkey == QKEY);
	CHECK(resp.param.ud.ah_attr.dlid && resp.param.ud.private_data[0] == 'a');
	CHECK(!destroy(client, id, &events) && events == 3);

	id = asker(client, port);
	CHECK(!ask(client, id, 0));
	resp = expect(server, CONNECT_REQUEST, 0);
	CHECK(reject(server, resp.id, 3, 1) == EINVAL);
	CHECK(reject(server, resp.id, SIDR_REP_PRIVATE + 1, 0) == EINVAL);
	CHECK(!reject(server, resp.id, 3, 0));
	resp = expect(client, UNREACHABLE, SIDR_REJECT);
	CHECK(!strcmp((char *)resp.param.ud.private_data, "no"));

	/* Who was asked goes, as what was told of it and as what was not; then who listens. */
	id = asker(client, port);
	CHECK(!ask(client, id, 0));
	resp = expect(server, CONNECT_REQUEST, 0);
	CHECK(!destroy(server, resp.id, &events));
	expect(client, UNREACHABLE, SIDR_REJECT);
	id = asker(client, port);
	CHECK(!ask(client, id, 0));
	close(server);
	CHECK(!event(client, &resp) && resp.event == UNREACHABLE);
	id = asker(client, port);
	CHECK(!ask(client, id, 0));
	expect(client, UNREACHABLE, SIDR_UNSUPPORTED);
	close(client);
}

/* One that asks to connect can go before it was told, through another file even. */
static void test_migrated_untold(void)
{
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id req = { .response = (uintptr_t)&resp };
	struct pollfd server = { .fd = open_cm(0), .events = POLLIN };
	int client = open_cm(0), other = open_cm(0);
	uint32_t listener, id, last, events;

	CHECK(!create(server.fd, RDMA_PS_UDP, &listener));
	id = asker(client, listen_any(server.fd, listener));
	CHECK(!ask(client, id, 4));
	CHECK(poll(&server, 1, 10000) == 1);
	/* Nobody knows its number: it is one of the next. */
	req.fd = (uint32_t)server.fd;
	last = id + 16;
	for (req.id = id + 1; req.id != last; req.id++)
		if (!command(other, RDMA_USER_CM_CMD_MIGRATE_ID, &req, sizeof(req), sizeof(resp)))
			break;
	CHECK(req.id != last && !destroy(other, req.id, &events));
	CHECK(poll(&server, 1, 0) == 0);
	close(server.fd);
	close(other);
	close(client);
}

/* Each end is killed at each stage; the other one hears of it, or needn't. */
enum stage { LISTENS, IS_ASKED, KNOWS_IT };

static void serve_until_killed(enum stage stage, int out)
{
	struct pollfd pfd = { .fd = open_cm(0), .events = POLLIN };
	uint32_t id;
	uint16_t port;

	CHECK(!create(pfd.fd, RDMA_PS_UDP, &id));
	port = listen_any(pfd.fd, id);
	CHECK(write(out, &port, sizeof(port)) == sizeof(port));
	if (stage >= IS_ASKED)
		CHECK(poll(&pfd, 1, -1) == 1);
	if (stage >= KNOWS_IT)
		expect(pfd.fd, CONNECT_REQUEST, 0);
	CHECK(write(out, &port, sizeof(port)) == sizeof(port));
	for (;;)
		pause();
}

static void kill_child(pid_t pid)
{
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
}

static void test_killed_server(enum stage stage)
{
	int fd = open_cm(0), fds[2];
	struct rdma_ucm_event_resp resp;
	uint16_t port;
	uint32_t id;
	pid_t pid;

	CHECK(!pipe(fds));
	pid = fork();
	if (!pid)
		serve_until_killed(stage, fds[1]);
	CHECK(pid > 0 && read(fds[0], &port, sizeof(port)) == sizeof(port));
	id = asker(fd, port);
	if (stage >= IS_ASKED)
		CHECK(!ask(fd, id, 0));
	CHECK(read(fds[0], &port, sizeof(port)) == sizeof(port));
	kill_child(pid);
	if (stage == LISTENS)
		CHECK(!ask(fd, id, 0));
	CHECK(!event(fd, &resp) && resp.event == UNREACHABLE && resp.status);
	close(fds[0]);
	close(fds[1]);
	close(fd);
}

static void test_killed_client(void)
{
	int fd = open_cm(0);
	struct rdma_ucm_event_resp resp;
	uint32_t id, events;
	uint16_t port;
	pid_t pid;

	CHECK(!create(fd, RDMA_PS_UDP, &id));
	port = listen_any(fd, id);
	pid = fork();
	if (!pid) {
		int own = open_cm(0);

		CHECK(!ask(own, asker(own, port), 0));
		for (;;)
			pause();
	}
	resp = expect(fd, CONNECT_REQUEST, 0);
	kill_child(pid);
	/* It isn't known that nobody hears it. */
	CHECK(!answer(fd, resp.id, 0) && !destroy(fd, resp.id, &events) && !events);
	CHECK(!destroy(fd, id, &events) && events == 1);
	close(fd);
}

/* --- options --- */

static int set_option(int fd, uint32_t id, uint32_t level, uint32_t name, const void *value,
		      uint32_t len)
{
	const struct rdma_ucm_set_option req = {
		.optval = (uintptr_t)value, .id = id, .level = level, .optname = name, .optlen = len,
	};

	return command(fd, RDMA_USER_CM_CMD_SET_OPTION, &req, sizeof(req), 0);
}

static void test_options(void)
{
	const struct ib_path_rec_data none[2] = { { .flags = IB_PATH_GMP } };
	struct {
		uint32_t num, reserved;
		struct ib_path_rec_data data;
	} path_resp;
	struct rdma_ucm_query query = {
		.response = (uintptr_t)&path_resp, .option = RDMA_USER_CM_QUERY_PATH,
	};
	const uint8_t timeout = 17;
	const int yes = 1;
	int fd = open_cm(0);
	uint32_t rc, ud, other;

	CHECK(!create(fd, RDMA_PS_TCP, &rc) && !create(fd, RDMA_PS_UDP, &ud));
	CHECK(!set_option(fd, rc, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	CHECK(set_option(fd, ud, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1) == EINVAL);
	CHECK(!set_option(fd, ud, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &timeout, 1));
	CHECK(set_option(fd, ud, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &yes, 4) == EINVAL);
	CHECK(!set_option(fd, ud, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, 4));
	CHECK(!set_option(fd, ud, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, 4));
	CHECK(set_option(fd, ud, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, 3) == EINVAL);
	CHECK(set_option(fd, ud, RDMA_OPTION_ID, 9, &yes, 4) == ENOSYS);
	CHECK(set_option(fd, ud, 9, 0, &yes, 4) == ENOSYS);
	CHECK(set_option(fd, NOBODY, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, 4) == ENOENT);
	CHECK(set_option(fd, ud, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, (void *)UNREACHABLE_PAGE, 4) ==
	      EFAULT);
	CHECK(set_option(fd, ud, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, none, 1 << 20) == EINVAL);

	/* A path that another id knows. */
	CHECK(!resolve_loopback(fd, rc));
	expect(fd, ADDR_RESOLVED, 0);
	CHECK(!resolve_route(fd, rc));
	expect(fd, ROUTE_RESOLVED, 0);
	query.id = rc;
	CHECK(!command(fd, RDMA_USER_CM_CMD_QUERY, &query, sizeof(query), sizeof(path_resp)));
	CHECK(path_resp.num == 1 && !create(fd, RDMA_PS_TCP, &other));
	CHECK(set_option(fd, other, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path_resp.data,
			 sizeof(path_resp.data)) == EINVAL);
	CHECK(!resolve_loopback(fd, other));
	expect(fd, ADDR_RESOLVED, 0);
	CHECK(set_option(fd, other, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, none, sizeof(none)) == EINVAL);
	CHECK(set_option(fd, other, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, none, 7) == EINVAL);
	CHECK(!set_option(fd, other, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path_resp.data,
			  sizeof(path_resp.data)));
	expect(fd, ROUTE_RESOLVED, 0);
	close(fd);
}

/* --- multicast groups --- */

static int join_ip(int fd, uint32_t id, uint32_t *mc, size_t room)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	struct rdma_ucm_join_ip_mcast req = {
		.response = mc ? (uintptr_t)&resp : UNREACHABLE_PAGE, .uid = 9, .id = id,
	};
	struct sockaddr_in *addr = (struct sockaddr_in *)&req.addr;
	int err;

	addr->sin_family = AF_INET;
	addr->sin_addr.s_addr = htonl(GROUP);
	err = command(fd, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &req, sizeof(req), room);
	if (mc)
		*mc = resp.id;
	return err;
}

static int join(int fd, uint32_t id, uint16_t family, uint16_t size, uint16_t flags)
{
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_join_mcast req = {
		.response = (uintptr_t)&resp, .id = id, .addr_size = size, .join_flags = flags,
	};

	((struct sockaddr_in *)&req.addr)->sin_family = family;
	((struct sockaddr_in *)&req.addr)->sin_addr.s_addr = htonl(GROUP);
	return command(fd, RDMA_USER_CM_CMD_JOIN_MCAST, &req, sizeof(req), sizeof(resp));
}

static int leave(int fd, uint32_t mc, uint32_t *events, size_t room)
{
	struct rdma_ucm_destroy_id_resp resp = { 0 };
	const struct rdma_ucm_destroy_id req = { .response = (uintptr_t)&resp, .id = mc };
	int err = command(fd, RDMA_USER_CM_CMD_LEAVE_MCAST, &req, sizeof(req), room);

	*events = resp.events_reported;
	return err;
}

static void test_bad_groups(void)
{
	int fd = open_cm(0);
	uint32_t id, rc, mc, events;
	const uint16_t size = sizeof(struct sockaddr_in);

	CHECK(!create(fd, RDMA_PS_UDP, &id) && !create(fd, RDMA_PS_TCP, &rc));
	CHECK(join_ip(fd, NOBODY, &mc, 4) == ENOENT && join_ip(fd, id, &mc, 3) == ENOSPC);
	CHECK(join_ip(fd, id, &mc, 4) == EINVAL);	/* it is at no device */
	CHECK(!resolve_loopback(fd, id) && !resolve_loopback(fd, rc));
	expect(fd, ADDR_RESOLVED, 0);
	expect(fd, ADDR_RESOLVED, 0);
	CHECK(join_ip(fd, rc, &mc, 4) == EINVAL);
	CHECK(join_ip(fd, id, &mc, 4) == EADDRNOTAVAIL);	/* no interface has 127.0.0.1 */
	CHECK(join(fd, id, AF_INET, size, 0) == EADDRNOTAVAIL);
	CHECK(join(fd, id, AF_INET, size, RDMA_MC_JOIN_FLAG_RESERVED) == EINVAL);
	CHECK(join(fd, id, AF_INET, size, UINT16_MAX) == EINVAL);
	CHECK(join(fd, id, AF_INET, size - 1, 0) == EINVAL && join(fd, id, 77, size, 0) == EINVAL);
	CHECK(join(fd, NOBODY, AF_INET, size, 0) == ENOENT);
	CHECK(leave(fd, 1, &events, 4) == ENOENT && leave(fd, 1, &events, 3) == ENOSPC);
	close(fd);
}

/* With an interface that has the address. */
static uint32_t bound(int fd, in_addr_t at)
{
	struct rdma_ucm_bind_ip bind = { 0 };
	struct sockaddr_in *addr = (struct sockaddr_in *)&bind.addr;

	CHECK(!create(fd, RDMA_PS_UDP, &bind.id));
	addr->sin_family = AF_INET;
	addr->sin_addr.s_addr = at;
	CHECK(!command(fd, RDMA_USER_CM_CMD_BIND_IP, &bind, sizeof(bind), 0));
	return bind.id;
}

static void test_groups(in_addr_t at)
{
	int fd = open_cm(0), other = open_cm(0);
	uint32_t id = bound(fd, at), second = bound(other, at), mc, mc2, events;
	struct rdma_ucm_event_resp resp;

	CHECK(join_ip(fd, id, NULL, 4) == EFAULT);
	CHECK(!join_ip(fd, id, &mc, 4));
	resp = expect(fd, MULTICAST_JOIN, 0);
	CHECK(resp.uid == 9 && resp.id == mc && resp.param.ud.qp_num == 0xffffff);
	CHECK(resp.param.ud.qkey == QKEY && resp.param.ud.ah_attr.dlid >= 0xc000);
	CHECK(resp.param.ud.ah_attr.is_global && resp.param.ud.ah_attr.grh.dgid[0] == 0xff);
	/* Another id at the same port; it isn't theirs to leave for one another. */
	CHECK(!join_ip(other, second, &mc2, 4) && mc2 != mc);
	expect(other, MULTICAST_JOIN, 0);
	CHECK(leave(other, mc, &events, 4) == EINVAL);
	CHECK(!leave(fd, mc, &events, 4) && events == 1);
	CHECK(leave(fd, mc, &events, 4) == ENOENT);
	/* Not yet joined, and gone already. */
	CHECK(!join_ip(fd, id, &mc, 4) && !leave(fd, mc, &events, 4) && !events);
	CHECK(!join_ip(fd, id, &mc, 4) && !destroy(fd, id, &events));
	CHECK(leave(fd, mc, &events, 4) == ENOENT);
	CHECK(!leave(other, mc2, &events, 4) && events == 1);
	CHECK(!destroy(other, second, &events) && events == 1);
	id = bound(fd, at);
	CHECK(!join_ip(fd, id, &mc, 4));
	close(other);
	close(fd);
}

/* Until the subnet manager changes; then it can join anew, when the interface has. */
static void test_new_sm(in_addr_t at)
{
	const struct timespec moment = { .tv_nsec = 20000000 };
	int fd = open_cm(0), err;
	uint32_t id = bound(fd, at), mc, events;

	CHECK(!join_ip(fd, id, &mc, 4));
	expect(fd, MULTICAST_JOIN, 0);
	puts("joined");
	fflush(stdout);
	CHECK(expect(fd, MULTICAST_ERROR, -ENETRESET).id == mc);
	CHECK(!leave(fd, mc, &events, 4) && events == 2);
	while ((err = join_ip(fd, id, &mc, 4)) == EADDRNOTAVAIL)
		nanosleep(&moment, NULL);
	CHECK(!err);
	expect(fd, MULTICAST_JOIN, 0);
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
	CHECK(argc >= 2 && argc <= 4);
	path = argv[1];
	/* An address of an interface; and a new subnet manager will come. */
	if (argc == 3)
		test_groups(inet_addr(argv[2]));
	if (argc == 4)
		test_new_sm(inet_addr(argv[2]));
	if (argc > 2)
		return 0;
	test_life();
	test_poll();
	test_bad_pointers();
	test_bad_waiter();
	test_migrated();
	test_datagrams();
	test_migrated_untold();
	for (enum stage stage = LISTENS; stage <= KNOWS_IT; stage++)
		test_killed_server(stage);
	test_killed_client();
	test_options();
	test_bad_groups();
	test_made_up();
	return 0;
}
