/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every write() command of uverbs, right and wrong: cut at each length, longer
 * than it is, with too little room for its answer, an answer that can't be
 * written, and handles that are another file's or of another type. What is
 * refused leaves nothing behind. uverbs_each MOUNTPOINT
 */
#include <sys/ioctl.h>

#include "uverbs_fuzz.h"
#include "uverbs_raw.h"

enum { PAGE = 4096, ROOM = 512 };

/* A file with an object of each type. */
struct world {
	struct qp q;
	uint32_t handles[TYPES];
	uint32_t target;		/* number of an XRC QP */
};

/* --- requests that are right --- */

/* Where the least number above 0 isn't right. */
static const struct value {
	uint32_t cmd;
	bool ex;
	uint16_t at;
	uint64_t value;
} values[] = {
#define V(name, type, member, value) \
	{ IB_USER_VERBS_CMD_##name, false, offsetof(struct ib_uverbs_##type, member), value }
#define XV(name, type, member, value) \
	{ IB_USER_VERBS_EX_CMD_##name, true, offsetof(struct ib_uverbs_##type, member), value }
	V(CREATE_CQ, create_cq, comp_vector, 0),
	XV(CREATE_CQ, ex_create_cq, flags, 0),
	V(REREG_MR, rereg_mr, flags, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD),
	V(CREATE_AH, create_ah, attr.is_global, 0),
	V(CREATE_QP, create_qp, qp_type, IBV_QPT_RC),
	XV(CREATE_QP, ex_create_qp, qp_type, IBV_QPT_RC),
	XV(CREATE_QP, ex_create_qp, create_flags, 0),
	V(OPEN_QP, open_qp, qp_type, IB_UVERBS_QPT_XRC_TGT),
	V(OPEN_XRCD, open_xrcd, oflags, O_CREAT),
	V(MODIFY_QP, modify_qp, qp_state, IBV_QPS_RESET),
	XV(MODIFY_QP, ex_modify_qp, base.qp_state, IBV_QPS_RESET),
	V(POST_RECV, post_recv, wr_count, 0),
	V(POST_RECV, post_recv, sge_count, 0),
	V(POST_SRQ_RECV, post_srq_recv, wr_count, 0),
	V(ATTACH_MCAST, attach_mcast, gid[0], 0xff),
	V(DETACH_MCAST, detach_mcast, gid[0], 0xff),
	V(ATTACH_MCAST, attach_mcast, mlid, 0xc000),
	V(DETACH_MCAST, detach_mcast, mlid, 0xc000),
};

static uint64_t right_value(const struct world *w, const struct command *c, const struct field *f)
{
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (values[i].cmd == c->cmd && values[i].ex == c->ex && values[i].at == f->at)
			return values[i].value;
	switch (f->kind) {
	case K_HANDLE: return w->handles[f->arg];
	case K_ADDR: return (uintptr_t)w->q.mem;
	case K_LENGTH: return PAGE;
	case K_FD: return UINT64_MAX;
	case K_QPN: return w->target;
	case K_RESPONSE: return (uintptr_t)w->q.mem;
	default: return 1;
	}
}

struct request {
	struct ib_uverbs_cmd_hdr hdr;
	union {
		struct {
			struct ib_uverbs_ex_cmd_hdr hdr;
			uint8_t req[600];
		} ex;
		uint8_t req[600];
	};
};

/* `size` bytes of the request are sent, `room` are said to be at `answer`. */
static int send_request(int fd, const struct command *c, const uint8_t *req, size_t size,
			uint64_t answer, size_t room)
{
	size_t words = c->ex ? 8 : 4, head = sizeof(struct ib_uverbs_cmd_hdr);
	struct request frame = { .hdr = {
		.command = c->cmd | (c->ex ? IB_USER_VERBS_CMD_FLAG_EXTENDED : 0),
		.in_words = (uint16_t)((size + (c->ex ? 0 : head)) / words),
	} };
	size_t driver = room > c->resp ? room - c->resp : 0;
	ssize_t n;

	frame.hdr.out_words = (uint16_t)((c->ex ? room - driver : room) / words);
	memcpy(c->ex ? frame.ex.req : frame.req, req, size);
	if (c->ex) {
		head += sizeof(frame.ex.hdr);
		frame.ex.hdr.response = room ? answer : 0;
		frame.ex.hdr.provider_out_words = (uint16_t)(driver / words);
	} else if (c->resp && size >= sizeof(answer)) {
		memcpy(frame.req, &answer, sizeof(answer));
	}
	n = write(fd, &frame, head + size);
	return n == (ssize_t)(head + size) ? 0 : n < 0 ? -errno : -EPROTO;
}

static void fill(const struct world *w, const struct command *c, uint8_t *req)
{
	memset(req, 0, ROOM);
	for (const struct field *f = c->fields; f->kind; f++) {
		uint64_t value = right_value(w, c, f);

		memcpy(req + f->at, &value, f->size);
	}
}

/* --- objects --- */

static uint32_t make(struct world *w, uint32_t cmd, enum type type)
{
	const struct command *c = commands;
	uint8_t req[ROOM];
	uint32_t answer[ROOM / 4];

	while (c->cmd != cmd || c->ex)
		c++;
	fill(w, c, req);
	CHECK(!send_request(w->q.fd, c, req, c->req, (uintptr_t)answer, c->resp + c->driver));
	w->handles[type] = answer[0];
	return answer[1];
}

/* Queue pairs of the table are connected ones; here a datagram's is wanted, and XRC's. */
static void make_qps(struct world *w)
{
	struct { struct ib_uverbs_create_qp_resp core; struct rxe_create_qp_resp drv; } resp;
	struct ib_uverbs_create_qp req = {
		.pd_handle = w->handles[T_XRCD], .qp_type = IB_UVERBS_QPT_XRC_TGT,
	};
	struct ib_uverbs_attach_mcast join = { .gid = { 0xff }, .mlid = 0xc000 };

	CHECK(CALL(w->q.fd, CREATE_QP, req, resp) == 0);
	w->target = resp.core.qpn;
	req = (struct ib_uverbs_create_qp){
		.pd_handle = w->handles[T_PD], .send_cq_handle = w->handles[T_CQ],
		.recv_cq_handle = w->handles[T_CQ], .max_send_wr = 1, .max_recv_wr = 1,
		.max_send_sge = 1, .max_recv_sge = 1, .qp_type = IBV_QPT_UD,
	};
	CHECK(CALL(w->q.fd, CREATE_QP, req, resp) == 0);
	join.qp_handle = w->handles[T_QP] = resp.core.qp_handle;
	CHECK(TELL(w->q.fd, ATTACH_MCAST, join) == 0);
}

static void world_open(struct world *w, bool context)
{
	*w = (struct world){ .q.fd = context ? open_context("rxe0/uverbs") : open_file("rxe0/uverbs") };
	w->q.mem = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!context)
		return;
	make(w, IB_USER_VERBS_CMD_ALLOC_PD, T_PD);
	make(w, IB_USER_VERBS_CMD_REG_MR, T_MR);
	make(w, IB_USER_VERBS_CMD_ALLOC_MW, T_MW);
	make(w, IB_USER_VERBS_CMD_CREATE_AH, T_AH);
	make(w, IB_USER_VERBS_CMD_CREATE_CQ, T_CQ);
	make(w, IB_USER_VERBS_CMD_CREATE_SRQ, T_SRQ);
	make(w, IB_USER_VERBS_CMD_OPEN_XRCD, T_XRCD);
	make_qps(w);
}

static void world_close(struct world *w)
{
	close(w->q.fd);
	munmap(w->q.mem, PAGE);
}

/* How many handles the file has, of all types; -1: no context. */
static int count(int fd)
{
	static const uint16_t objects[] = {
		UVERBS_OBJECT_PD, UVERBS_OBJECT_MR, UVERBS_OBJECT_MW, UVERBS_OBJECT_AH,
		UVERBS_OBJECT_CQ, UVERBS_OBJECT_SRQ, UVERBS_OBJECT_QP, UVERBS_OBJECT_XRCD,
	};
	uint32_t sum = 0, num;

	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
		struct {
			struct ib_uverbs_ioctl_hdr hdr;
			struct ib_uverbs_attr attrs[2];
		} call = {
			.hdr = { .length = sizeof(call), .object_id = UVERBS_OBJECT_DEVICE,
				 .method_id = UVERBS_METHOD_INFO_HANDLES, .num_attrs = 2,
				 .driver_id = RDMA_DRIVER_RXE },
			.attrs = {
				{ .attr_id = UVERBS_ATTR_INFO_OBJECT_ID, .len = 8, .flags = 1,
				  .data = objects[i] },
				{ .attr_id = UVERBS_ATTR_INFO_TOTAL_HANDLES, .len = 4, .flags = 1,
				  .data = (uintptr_t)&num },
			},
		};

		num = 0;
		if (ioctl(fd, RDMA_VERBS_IOCTL, &call))
			return -1;
		sum += num;
	}
	return (int)sum;
}

/* --- what each command does with them --- */

static void say(const struct command *c, const char *what, size_t number, int ret)
{
	printf("command %u%s: %s %zu: %s\n", c->cmd, c->ex ? " (extended)" : "", what, number,
	       ret > 0 ? "?" : strerror(-ret));
	failed = 1;
}

static void expect(bool ok, const struct command *c, const char *what, size_t number, int ret)
{
	if (!ok)
		say(c, what, number, ret);
}

/* These have no context, or are refused in these states. */
static bool needs_context(const struct command *c)
{
	return c->ex || c->cmd != IB_USER_VERBS_CMD_GET_CONTEXT;
}
static int right_answer(const struct command *c, int ret)
{
	if (c->cmd == IB_USER_VERBS_CMD_POST_SEND)
		return ret == -EINVAL;		/* a doorbell in RESET */
	/* Others use it. */
	return !ret || (c->ends && ret == -EBUSY);
}

static void test_right(const struct command *c)
{
	uint8_t req[ROOM], answer[ROOM];
	struct world w;
	int ret;

	world_open(&w, needs_context(c));
	fill(&w, c, req);
	ret = send_request(w.q.fd, c, req, c->req, (uintptr_t)answer, c->resp + c->driver);
	expect(right_answer(c, ret), c, "right, bytes", c->req, ret);
	world_close(&w);
}

/* An extended one may end where it grew once, and old versions of libibverbs forget a word. */
static bool may_be_cut(const struct command *c, size_t size)
{
	return c->ex ? size + 16 >= c->req : c->cmd == IB_USER_VERBS_CMD_DESTROY_CQ && size == 8;
}

static void test_cut(const struct command *c)
{
	size_t word = c->ex ? 8 : 4;
	uint8_t req[ROOM], answer[ROOM];
	struct world w;
	int before;

	world_open(&w, needs_context(c));
	before = count(w.q.fd);
	fill(&w, c, req);
	for (size_t size = 0; size < c->req; size += word) {
		int ret = send_request(w.q.fd, c, req, size, (uintptr_t)answer, c->resp + c->driver);

		if (may_be_cut(c, size) && ret != -ENOSPC)
			continue;
		expect(ret == -ENOSPC || ret == -EINVAL, c, "cut to", size, ret);
		expect(count(w.q.fd) == before, c, "handles after", size, count(w.q.fd) - before);
	}
	world_close(&w);
}

static void test_long(const struct command *c)
{
	uint8_t req[ROOM], answer[ROOM];
	struct world w;
	int ret;

	for (unsigned int fill_by = 0; fill_by < 256; fill_by += 255) {
		world_open(&w, needs_context(c));
		fill(&w, c, req);
		memset(req + c->req, (int)fill_by, 64);
		ret = send_request(w.q.fd, c, req, c->req + 64, (uintptr_t)answer, c->resp + c->driver);
		if (c->ex && fill_by)
			expect(ret == -EOPNOTSUPP, c, "unknown bytes of", fill_by, ret);
		else
			expect(right_answer(c, ret), c, "more bytes of", fill_by, ret);
		world_close(&w);
	}
}

/* The answer's room ends where a page does: no byte is written behind it. */
static void test_room(const struct command *c)
{
	uint8_t *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t word = c->ex ? 8 : 4;
	uint8_t req[ROOM];

	mprotect(pages + PAGE, PAGE, PROT_NONE);
	for (size_t room = 0; room < (size_t)c->resp + c->driver; room += word) {
		struct world w;
		int ret, before;

		world_open(&w, needs_context(c));
		before = count(w.q.fd);
		fill(&w, c, req);
		ret = send_request(w.q.fd, c, req, c->req, (uintptr_t)pages + PAGE - room, room);
		expect(right_answer(c, ret) || ret == -ENOSPC || ret == -EINVAL, c, "room for", room, ret);
		if (ret)
			expect(count(w.q.fd) == before, c, "handles after room for", room,
			       count(w.q.fd) - before);
		world_close(&w);
	}
	munmap(pages, 2 * PAGE);
}

static void test_pointers(const struct command *c)
{
	uint8_t *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *fixed = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t bad[] = {
		8, (uintptr_t)fixed, (uintptr_t)pages + PAGE - 2, UINT64_MAX - 7, 0xffff888000000000,
	};
	uint8_t req[ROOM];

	mprotect(pages + PAGE, PAGE, PROT_NONE);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]) && c->resp; i++) {
		struct world w;
		int ret, before;

		world_open(&w, needs_context(c));
		before = count(w.q.fd);
		fill(&w, c, req);
		ret = send_request(w.q.fd, c, req, c->req, bad[i], c->resp + c->driver);
		expect(ret == -EFAULT || (ret && right_answer(c, ret)), c, "bad pointer", i, ret);
		if (!c->ends)
			expect(count(w.q.fd) == before, c, "handles after pointer", i,
			       count(w.q.fd) - before);
		world_close(&w);
	}
	munmap(pages, 2 * PAGE);
	munmap(fixed, PAGE);
}

static bool refused(int ret)
{
	return ret == -EINVAL || ret == -ENOENT;
}

/* Each handle of another type, or one that nobody has, in its place. */
static void test_handles(const struct command *c)
{
	uint8_t req[ROOM], answer[ROOM];
	struct world w, none;
	size_t i = 0;
	int ret, before;

	world_open(&w, needs_context(c));
	none = (struct world){ .q.fd = open_context("rxe0/uverbs") };
	before = count(w.q.fd);
	for (const struct field *f = c->fields; f->kind; f++) {
		uint32_t others[] = {
			w.handles[(f->arg + 1) % TYPES], UINT32_MAX, 0x80000000, 1000000,
		};

		if (f->kind != K_HANDLE)
			continue;
		for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++, i++) {
			fill(&w, c, req);
			memcpy(req + f->at, &others[k], sizeof(others[k]));
			ret = send_request(w.q.fd, c, req, c->req, (uintptr_t)answer, c->resp + c->driver);
			expect(refused(ret), c, "wrong handle", i, ret);
		}
	}
	if (i) {
		fill(&w, c, req);
		ret = send_request(none.q.fd, c, req, c->req, (uintptr_t)answer, c->resp + c->driver);
		expect(refused(ret), c, "another's handle", 0, ret);
	}
	expect(count(w.q.fd) == before, c, "handles, before", (size_t)before, 0);
	close(none.q.fd);
	world_close(&w);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	mnt = argv[1];
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const struct command *c = &commands[i];

		test_right(c);
		test_cut(c);
		test_long(c);
		test_room(c);
		test_pointers(c);
		test_handles(c);
	}
	return failed;
}
