/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where 9P clients come in: unix sockets and TCP ports; start and stop. Whoever
 * connects to a unix socket is known by uid, TCP clients all are the one user
 * that the configuration names, and come from this machine only unless it says
 * otherwise.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utlist.h>

#include "fs/9p_server.h"
#include "fs/tree.h"

enum {
	KEEPALIVE_IDLE = 30, KEEPALIVE_INTERVAL = 10, KEEPALIVE_COUNT = 3,	/* seconds */
	REST = 1,		/* seconds without accept() when there are no descriptors */
};

struct p9_listener {
	struct p9_listener *prev, *next;
	struct p9_server *server;
	int fd;
	char *path;			/* of a unix socket, absolute */
	struct ev_io io;
	struct ev_timer rest;
};

static const char unix_prefix[] = "unix:", tcp_prefix[] = "tcp:";

/* What is behind the prefix, or NULL: it has another. */
static const char *behind(const char *address, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(address, prefix, len) ? NULL : address + len;
}

/* "HOST:PORT", "[HOST]:PORT" in its parts, of which the host is allocated; NULL: it isn't. */
static char *split_host(const char *text, const char **port)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;

	if (!len || !colon[1])
		return NULL;
	*port = colon + 1;
	if (text[0] == '[' && text[len - 1] == ']')
		return len > 2 ? strndup(text + 1, len - 2) : NULL;
	return memchr(text, ':', len) ? NULL : strndup(text, len);
}

const char *p9_check_address(const char *address)
{
	const char *path = behind(address, unix_prefix), *tcp = behind(address, tcp_prefix);
	const char *port;
	char *host;

	if (path && strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return "the path is too long for a socket";
	if (path && *path)
		return NULL;
	host = tcp ? split_host(tcp, &port) : NULL;
	if (!host)
		return "expected unix:PATH, tcp:HOST:PORT or tcp:[HOST]:PORT";
	free(host);
	return NULL;
}

static void setup_tcp(int fd)
{
	static const struct { int level, name, value; } options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		/* A client that vanished must not keep what it holds. */
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE },
		{ IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL },
		{ IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT },
	};
	unsigned int i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

/* All TCP clients are one user, but each address has an account. */
static struct p9_user *tcp_user(const struct p9_server *server, const struct sockaddr *addr)
{
	const struct conf_p9 *conf = server->conf;
	struct p9_user *user = p9_user_new(conf->tcp_uid, conf->tcp_gid, fs_groups_new(0));

	if (!user)
		return NULL;
	user->cred.account = account_of_peer(server->ibfs->fs->accounts, conf->tcp_uid, addr);
	if (user->cred.account)
		return user;
	p9_user_put(user);
	return NULL;
}

static void take_connection(struct p9_listener *listener, int fd, const struct sockaddr *addr)
{
	struct p9_server *server = listener->server;
	struct p9_user *peer;

	if (!listener->path)
		setup_tcp(fd);
	peer = listener->path ? p9_user_peer(fd) : tcp_user(server, addr);
	if (peer)
		p9_conn_new(server, fd, peer, !listener->path);
	else
		close(fd);
}

static void listener_io(struct ev_loop *loop, struct ev_io *w, int revents)
{
	struct p9_listener *listener = w->data;
	struct sockaddr_storage addr = { 0 };
	struct sockaddr *peer = (struct sockaddr *)&addr;
	socklen_t len = sizeof(addr);
	int fd = accept4(listener->fd, peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)revents;
	if (fd >= 0) {
		take_connection(listener, fd, peer);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
		ev_io_stop(loop, w);
		ev_timer_set(&listener->rest, REST, 0);
		ev_timer_start(loop, &listener->rest);
	}
}

static void rested(struct ev_loop *loop, struct ev_timer *w, int revents)
{
	struct p9_listener *listener = w->data;

	(void)revents;
	ev_io_start(loop, &listener->io);
}

/* fd and path become its own, also when it fails. */
static int add_listener(struct p9_server *server, int fd, char *path)
{
	struct p9_listener *listener = calloc(1, sizeof(*listener));

	if (!listener || listen(fd, SOMAXCONN)) {
		free(listener);
		free(path);
		close(fd);
		return -ENOMEM;
	}
	listener->server = server;
	listener->fd = fd;
	listener->path = path;
	ev_io_init(&listener->io, listener_io, fd, EV_READ);
	listener->io.data = listener;
	ev_timer_init(&listener->rest, rested, 0, 0);
	listener->rest.data = listener;
	ev_io_start(server->ibfs->loop, &listener->io);
	DL_APPEND(server->listeners, listener);
	return 0;
}

/* A socket file that nobody listens on any more is left from a daemon that was killed. */
static void remove_stale(const struct sockaddr_un *addr)
{
	struct stat st;
	int fd;

	if (lstat(addr->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) && errno == ECONNREFUSED)
		unlink(addr->sun_path);
	close(fd);
}

static int listen_unix(struct p9_server *server, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char *dir = NULL, *absolute;
	int fd;

	/* In the background the daemon works in another directory. */
	if (path[0] != '/') {
		dir = getcwd(NULL, 0);
		if (!dir)
			return -errno;
	}
	if (asprintf(&absolute, "%s%s%s", dir ? dir : "", dir ? "/" : "", path) < 0)
		absolute = NULL;
	free(dir);
	if (!absolute)
		return -ENOMEM;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	remove_stale(&addr);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		int err = errno;

		if (fd >= 0)
			close(fd);
		free(absolute);
		return -err;
	}
	/* Nobody can connect before listen(). */
	chmod(path, server->conf->mode);
	return add_listener(server, fd, absolute);
}

static bool is_loopback(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr) >> 24 == 127;
	return addr->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

static int listen_addr(struct p9_server *server, const struct addrinfo *ai)
{
	int fd, one = 1, err;

	if (!server->conf->remote && !is_loopback(ai->ai_addr))
		return -EACCES;
	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (ai->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen)) {
		err = errno;
		close(fd);
		return -err;
	}
	return add_listener(server, fd, NULL);
}

/* All addresses of the name; what this machine has no network for is left out. */
static int listen_tcp(struct p9_server *server, const char *text, const char **why)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *list, *ai;
	const char *port;
	char *host = split_host(text, &port);
	int ret, done = 0;

	if (!host)
		return -EINVAL;
	ret = getaddrinfo(host, port, &hints, &list);
	free(host);
	if (ret) {
		*why = gai_strerror(ret);
		return -EINVAL;
	}
	for (ai = list; ai; ai = ai->ai_next) {
		ret = listen_addr(server, ai);
		if (ret && ret != -EAFNOSUPPORT && ret != -EADDRNOTAVAIL)
			break;
		done += !ret;
	}
	freeaddrinfo(list);
	if (ret == -EACCES)
		*why = "not on this machine's loopback, and p9.remote doesn't allow others";
	return ai || !done ? ret : 0;
}

static int listen_on(struct p9_server *server, const char *address)
{
	const char *path = behind(address, unix_prefix), *why = NULL;
	int ret;

	ret = path ? listen_unix(server, path) :
		     listen_tcp(server, address + strlen(tcp_prefix), &why);
	if (ret)
		ibfs_log(server->ibfs, "9p: cannot listen on %s: %s", address,
			 why ? why : strerror(-ret));
	return ret;
}

struct p9_server *p9_start(struct ibfs *ibfs, const char *const *addresses, unsigned int count)
{
	struct p9_server *server = calloc(1, sizeof(*server));
	const struct conf_p9 *conf = &ibfs->conf->p9;
	unsigned int i;
	int ret = 0;

	if (!server)
		return NULL;
	server->ibfs = ibfs;
	server->conf = conf;
	server->scratch = malloc(conf->msize);
	if (!server->scratch)
		ret = -ENOMEM;
	for (i = 0; !ret && i < count; i++)
		ret = listen_on(server, addresses[i]);
	for (i = 0; !ret && i < conf->num_listen; i++)
		ret = listen_on(server, conf->listen[i]);
	if (!ret)
		return server;
	p9_stop(server);
	return NULL;
}

static void listener_free(struct p9_listener *listener)
{
	struct p9_server *server = listener->server;

	ev_io_stop(server->ibfs->loop, &listener->io);
	ev_timer_stop(server->ibfs->loop, &listener->rest);
	close(listener->fd);
	if (listener->path)
		unlink(listener->path);
	free(listener->path);
	DL_DELETE(server->listeners, listener);
	free(listener);
}

/* As fuse_front_stop(): files first, then the requests that their holders couldn't let go of. */
static void conn_end(struct p9_conn *conn)
{
	p9_conn_close(conn);
	p9_cancel_all(conn);
	p9_fids_clunk(conn);
	p9_drop_waiting(conn);
	p9_conn_free(conn);
}

void p9_stop(struct p9_server *server)
{
	struct p9_req *req, *next;

	while (server->listeners)
		listener_free(server->listeners);
	while (server->conns)
		conn_end(server->conns);
	LL_FOREACH_SAFE(server->spare, req, next)
		free(req);
	free(server->scratch);
	free(server);
}
