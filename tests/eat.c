/* SPDX-License-Identifier: BSD-2-Clause */
/* eat.h on a tree that is mounted. usage: eat TREE RESOURCE [COUNT] */
#include <sys/stat.h>

#include "eat.h"
#include "uverbs_raw.h"

static int open_in(const char *path, int flags)
{
	char full[300];

	snprintf(full, sizeof(full), "%s/%s", mnt, path);
	return open(full, flags | O_CLOEXEC);
}

/* A new object of a kind, which lives as long as its file is open: its file and number. */
static int clone_of(const char *kind, unsigned int *num, const char *create)
{
	char path[40], text[20] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/clone", kind);
	fd = open_in(path, O_RDWR);
	if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return -1;
	*num = (unsigned int)strtoul(text, NULL, 10);
	return write(fd, create, strlen(create)) < 0 ? -1 : fd;
}

/* The same file, again and again. */
static bool eat_files(unsigned int n)
{
	(void)n;
	return open_in("version", O_RDONLY) >= 0;
}

/* A CQ whose ring was opened once. */
static bool eat_ring(unsigned int cqe)
{
	char create[60], path[40];
	unsigned int num;
	int fd;

	snprintf(create, sizeof(create), "create device=rxe0 cqe=%u", cqe);
	if (clone_of("cq", &num, create) < 0)
		return false;
	snprintf(path, sizeof(path), "cq/%u/ring", num);
	fd = open_in(path, O_RDWR);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static bool eat_large_rings(unsigned int n)
{
	(void)n;
	return eat_ring(1048575);
}

static bool eat_small_rings(unsigned int n)
{
	(void)n;
	return eat_ring(1);
}

static bool eat_mrs(unsigned int n)
{
	static char create[60];
	unsigned int num;

	if (!n) {
		if (clone_of("pd", &num, "create device=rxe0") < 0)
			return false;
		snprintf(create, sizeof(create), "create pd=%u size=1", num);
	}
	return clone_of("mr", &num, create) >= 0;
}

/* A QP with queues as long as they can be, and no ring. */
static bool eat_qps(unsigned int n)
{
	static char create[120];
	unsigned int num;

	if (!n) {
		unsigned int cq;

		if (clone_of("pd", &num, "create device=rxe0") < 0 ||
		    clone_of("cq", &cq, "create device=rxe0 cqe=1") < 0)
			return false;
		snprintf(create, sizeof(create), "create type=rc pd=%u cq=%u sq=16384 rq=16384 "
			 "sge=32 inline=512", num, cq);
	}
	return clone_of("qp", &num, create) >= 0;
}

static bool eat_contexts(unsigned int n)
{
	(void)n;
	return open_in("rxe0/uverbs", O_RDWR) >= 0;
}

static bool eat_uverbs_cqs(unsigned int n)
{
	struct ib_uverbs_create_cq req = { .cqe = 1048575, .comp_channel = -1 };
	struct { struct ib_uverbs_create_cq_resp core; struct rxe_create_cq_resp drv; } resp;
	static int fd;
	int err;

	if (!n)
		fd = open_context("rxe0/uverbs");
	err = CALL(fd, CREATE_CQ, req, resp);
	errno = -err;
	return !err;
}

static const struct resource resources[] = {
	{ "files", eat_files },
	{ "large_rings", eat_large_rings },
	{ "small_rings", eat_small_rings },
	{ "mrs", eat_mrs },
	{ "qps", eat_qps },
	{ "contexts", eat_contexts },
	{ "uverbs_cqs", eat_uverbs_cqs },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	mnt = argc > 1 ? argv[1] : "";
	return eat(argc, argv, resources);
}
