/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random commands, ioctls, rings and memory on uverbs files, the same for the
 * same seed: uverbs_fuzz SEED ROUNDS MOUNTPOINT. It fails when an answer is one
 * that the kernel never gives, when more is written than there was room for,
 * or when at the end a right command doesn't work.
 */
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include "uverbs_fuzz_state.h"

/* --- commands --- */

/* Its response is at the beginning of the answers. */
static void learn_response(struct user *user, const struct command *c, const uint32_t *resp)
{
	const uint8_t *driver = (const uint8_t *)resp + c->resp;
	struct mminfo mi[2];

	learn_handle(user, c->makes, resp[0]);
	if (c->makes == T_QP)
		learn(&t.qpns, resp[1]);
	if (c->makes == T_MR) {
		learn(&t.keys, resp[1]);
		learn(&t.keys, resp[2]);
	}
	if (c->makes != T_QP && c->makes != T_CQ && c->makes != T_SRQ)
		return;
	memcpy(mi, driver, sizeof(mi));
	for (unsigned int i = 0; i < (c->makes == T_QP ? 2 : 1); i++)
		if (c->driver >= (i + 1) * sizeof(mi[0]) && mi[i].size)
			learn_ring(user->fd, &mi[i]);
}

struct frame {
	struct ib_uverbs_cmd_hdr hdr;
	union {
		struct {
			struct ib_uverbs_ex_cmd_hdr hdr;
			uint8_t req[800];
		} ex;
		uint8_t req[816];
	};
} __attribute__((packed, aligned(8)));

static size_t fill_request(const struct user *user, const struct command *c, uint8_t *req)
{
	size_t size = c->req;

	memset(req, 0, 800);
	for (const struct field *f = c->fields; f->kind; f++) {
		uint64_t value = any_value(user, f);

		memcpy(req + f->at, &value, f->size);
	}
	if (!rnd(8))
		size += 8 * rnd(20);		/* a driver's part, or what isn't known */
	if (!rnd(30))
		size = 4 * rnd(60);
	for (size_t i = c->req; i < size; i++)
		req[i] = rnd(2) ? 0 : (uint8_t)rnd(256);
	if (!rnd(40))
		req[rnd(c->req)] = (uint8_t)rnd(256);
	return size;
}

static uint32_t handle_of(const struct command *c, const uint8_t *req)
{
	uint32_t handle = UINT32_MAX;

	for (const struct field *f = c->fields; f->kind; f++)
		if (f->kind == K_HANDLE)
			memcpy(&handle, req + f->at, sizeof(handle));
	return handle;
}

/* Bytes of header and request; *room: of the answer. */
static size_t fill_frame(const struct user *user, const struct command *c, struct frame *frame,
			 size_t *room, uint64_t *response)
{
	uint8_t *req = c->ex ? frame->ex.req : frame->req;
	size_t size = fill_request(user, c, req), words = c->ex ? 8 : 4;
	size_t out = rnd(20) ? c->resp : 4 * rnd(40), driver = rnd(20) ? c->driver : 4 * rnd(8);

	frame->hdr.command = c->cmd | (c->ex ? IB_USER_VERBS_CMD_FLAG_EXTENDED : 0);
	if (!c->ex) {
		*room = out + driver;
		*response = *(uint64_t *)req;
		frame->hdr.in_words = (uint16_t)((size + sizeof(frame->hdr)) / words);
		frame->hdr.out_words = (uint16_t)(*room / words);
		return sizeof(frame->hdr) + size;
	}
	frame->ex.hdr = (struct ib_uverbs_ex_cmd_hdr){
		.response = c->resp ? any_answer() : 0, .provider_out_words = (uint16_t)(driver / words),
	};
	frame->hdr.in_words = (uint16_t)(size / words);
	frame->hdr.out_words = (uint16_t)(out / words);
	*room = out + driver;
	*response = frame->ex.hdr.response;
	return sizeof(frame->hdr) + sizeof(frame->ex.hdr) + size;
}

static void do_command(struct user *user, const struct command *c)
{
	const uint8_t *answer = t.answers + PAGE / 2;
	struct frame frame = { .hdr = { 0 } };
	uint64_t response;
	size_t room, size;
	ssize_t n;

	size = fill_frame(user, c, &frame, &room, &response);
	if (!rnd(50)) {
		((uint8_t *)&frame.hdr)[rnd(8)] = (uint8_t)rnd(256);
		room = PAGE;
	}
	guard_answers();
	n = write(user->fd, &frame, size);
	if (n < 0)
		check_error("command", c->cmd);
	else if ((size_t)n != size)
		fail("written", (unsigned long long)n);
	/* MODIFY_SRQ has a place of its driver's to write to. */
	if (c->ex || c->cmd != IB_USER_VERBS_CMD_MODIFY_SRQ)
		check_guard("too long an answer, command", c->cmd, (uint8_t *)(uintptr_t)response, room);
	if (n < 0)
		return;
	t.done++;
	if (c->ends)
		forget(user, handle_of(c, c->ex ? frame.ex.req : frame.req));
	if (response == (uintptr_t)answer && room == (size_t)c->resp + c->driver && c->makes != NONE)
		learn_response(user, c, (const uint32_t *)answer);
}

/* --- ioctls --- */

struct call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[20];
};

static uint32_t slot_of(unsigned int i)
{
	return i * (uint32_t)(PAGE / 8) / 4;
}

static void fill_attr(const struct user *user, const struct field *f, unsigned int i,
		      struct ib_uverbs_attr *attr)
{
	*attr = (struct ib_uverbs_attr){
		.attr_id = f->at, .len = f->size, .flags = UVERBS_ATTR_F_MANDATORY,
	};
	if (f->kind == K_OUT) {
		attr->len = (uint16_t)f->arg;
		attr->data = rnd(30) ? (uintptr_t)t.answers + slot_of(i) : any_answer();
	} else if (f->kind == K_BYTES) {
		for (uint32_t at = 0; at < f->arg; at++)
			t.in[at] = at % 4 ? 0 : (uint8_t)rnd(8);
		attr->len = (uint16_t)f->arg;
		attr->data = rnd(30) ? (uintptr_t)t.in : any_answer();
	} else if (f->kind != K_NEW) {
		attr->data = any_value(user, f);
		if (f->kind == K_SMALL && f->size < 8)
			attr->data &= (1ULL << 8 * f->size) - 1;
	}
	if (!rnd(80))
		attr->len = (uint16_t)rnd(rnd(4) ? 40 : 65536);
	if (!rnd(80))
		attr->flags = (uint16_t)rnd(4);
	if (!rnd(150))
		attr->attr_id = (uint16_t)rnd(20);
	if (!rnd(150))
		attr->attr_data.reserved = (uint16_t)rnd(3);
}

static void damage(struct call *call)
{
	if (!rnd(30) && call->hdr.num_attrs)
		call->attrs[rnd(call->hdr.num_attrs)] = call->attrs[rnd(call->hdr.num_attrs)];
	if (!rnd(50))
		call->hdr.object_id = (uint16_t)rnd(20);
	if (!rnd(50))
		call->hdr.method_id = (uint16_t)rnd(10);
	if (!rnd(60))
		call->hdr.num_attrs = (uint16_t)rnd(30);
	if (rnd(60))
		call->hdr.length = (uint16_t)(sizeof(call->hdr) +
					      call->hdr.num_attrs * sizeof(call->attrs[0]));
	if (!rnd(80))
		call->hdr.reserved1 = any();
}

/* What one attribute of an answer may have been written to, then clean again. */
static void clean_slots(const struct call *call)
{
	for (unsigned int i = 0; i < 20; i++) {
		uint64_t from = call->attrs[i].data - (uintptr_t)t.answers, len = call->attrs[i].len;

		if (from < PAGE)
			memset(t.answers + from, GUARD, len < PAGE - from ? len : PAGE - from);
	}
}

static void learn_call(struct user *user, const struct method *m, const struct call *call)
{
	for (unsigned int i = 0; m->attrs[i].kind; i++) {
		if (m->ends && m->attrs[i].kind == K_HANDLE)
			forget(user, (uint32_t)call->attrs[i].data);
		if (m->attrs[i].kind == K_NEW)
			learn_handle(user, m->makes, (uint32_t)call->attrs[i].data);
	}
}

static void do_ioctl(struct user *user, const struct method *m)
{
	struct call call = { .hdr = { .object_id = m->object, .method_id = m->id,
				      .driver_id = RDMA_DRIVER_RXE } };
	struct call before;
	bool whole;

	memset(&call.attrs, 0, sizeof(call.attrs));
	for (unsigned int i = 0; m->attrs[i].kind; i++)
		fill_attr(user, &m->attrs[i], i, &call.attrs[call.hdr.num_attrs++]);
	damage(&call);
	before = call;
	guard_answers();
	whole = !ioctl(user->fd, rnd(200) ? RDMA_VERBS_IOCTL : RDMA_VERBS_IOCTL + 1, &call);
	if (!whole)
		check_error("ioctl of object", m->object * 100 + m->id);
	clean_slots(&before);
	check_guard("too long an answer, ioctl", m->object * 100 + m->id, t.answers, 0);
	if (memcmp(&call.hdr, &before.hdr, sizeof(call.hdr)))
		fail("the header was changed", m->id);
	if (!whole)
		return;
	t.done++;
	for (unsigned int i = 0; m->attrs[i].kind; i++)
		if (call.attrs[i].attr_id != m->attrs[i].at)
			return;
	if (call.hdr.object_id == m->object && call.hdr.method_id == m->id)
		learn_call(user, m, &call);
}

/* --- rings --- */

static void any_request(struct rxe_send_wqe *wqe, size_t room)
{
	struct rxe_sge *sge = wqe->dma.sge;

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr.opcode = rnd(16) ? rnd(16) : (uint32_t)any();
	wqe->wr.send_flags = rnd(32);
	wqe->wr.wr.rdma.remote_addr = any_address();
	wqe->wr.wr.rdma.rkey = known(&t.keys);
	if (!rnd(3)) {
		wqe->wr.wr.ud.remote_qpn = known(&t.qpns);
		wqe->wr.wr.ud.ah_num = rnd(64);
	}
	wqe->dma.length = rnd(16) ? rnd(3 * PAGE) : (uint32_t)any();
	wqe->dma.num_sge = rnd(16) ? rnd(4) : (uint32_t)any();
	for (size_t at = sizeof(*wqe); at + sizeof(*sge) <= room; at += sizeof(*sge))
		*sge++ = (struct rxe_sge){ any_address(), rnd(2 * PAGE), known(&t.keys) };
}

/* Producing right, or anything to any index, or anything anywhere. */
static void scribble(const struct ring *ring)
{
	uint32_t *words = (uint32_t *)ring->buf;
	uint32_t producer = ring->buf->producer_index & ring->mask & 0xffff;
	size_t elem = 1UL << ring->log;
	uint8_t *slot;

	switch (rnd(8)) {
	case 0:
		words[rnd((uint32_t)ring->size / 4)] = (uint32_t)any();
		break;
	case 1:
		words[32 * rnd(3)] = (uint32_t)any();
		break;
	case 2:
		ring->buf->consumer_index = ring->buf->producer_index;
		break;
	default:
		slot = ring->buf->data + ((size_t)producer << ring->log);
		if (elem >= sizeof(struct rxe_send_wqe) && slot + elem <= (uint8_t *)ring->buf + ring->size)
			any_request((struct rxe_send_wqe *)slot, elem);
		__atomic_store_n(&ring->buf->producer_index, producer + 1, __ATOMIC_RELEASE);
	}
}

/* While the engine looks: the rings of one QP, by a thread with numbers of its own. */
static void *keep_scribbling(void *arg)
{
	uint32_t *words = (uint32_t *)t.hot.buf, n = 12345;

	(void)arg;
	while (!t.stop) {
		for (int i = 0; i < 200; i++) {
			n = n * 1103515245 + 12345;
			words[i % 4 ? n / 65536 % (t.hot.size / 4) : 32] = n >> (n % 32);
		}
		usleep(50);
	}
	return NULL;
}

/* --- memory --- */

static void change_memory(void)
{
	uint8_t *at = t.area + rnd(PAGES) * PAGE;
	size_t len = (rnd(8) + 1) * PAGE;

	if (at + len > t.area + PAGES * PAGE)
		len = PAGE;
	switch (rnd(4)) {
	case 0:
		mprotect(at, len, rnd(4) ? PROT_READ : PROT_NONE);
		break;
	case 1:
		munmap(at, len);
		break;
	default:
		if (mmap(at, len, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_ANONYMOUS |
			 (rnd(3) ? MAP_PRIVATE : MAP_SHARED), -1, 0) != at)
			fail("mmap", len);
	}
}

/* --- files --- */

static int open_uverbs(unsigned int device)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/rxe%u/uverbs", t.mnt, device);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fail("open", device);
	return fd;
}

static void reopen(struct user *user)
{
	close(user->fd);
	while (user->events.num)
		close((int)user->events.at[--user->events.num]);
	memset(user->handles, 0, sizeof(user->handles));
	user->fd = open_uverbs(rnd(2));
	do_command(user, &commands[0]);
}

static void read_events(struct user *user)
{
	struct pollfd wait = { .events = POLLIN };
	uint8_t buf[64];

	if (!user->events.num)
		return;
	wait.fd = (int)user->events.at[rnd(user->events.num)];
	poll(&wait, 1, 0);
	if (read(wait.fd, buf, rnd(8) ? sizeof(buf) : rnd(16)) < 0)
		check_error("event", 0);
}

static void map_any(const struct user *user)
{
	size_t size = (rnd(8) + 1) * PAGE;
	void *p = mmap(NULL, size, PROT_READ, rnd(4) ? MAP_SHARED : MAP_PRIVATE, user->fd,
		       (off_t)(rnd(8) * PAGE));

	if (p != MAP_FAILED)
		munmap(p, size);
}

/* --- all together --- */

static void ring_doorbell(struct user *user)
{
	struct { struct ib_uverbs_cmd_hdr hdr; struct ib_uverbs_post_send req; } bell = {
		.hdr = { IB_USER_VERBS_CMD_POST_SEND, sizeof(bell) / 4, 1 },
		.req = { .response = (uintptr_t)t.answers, .wqe_size = SIZE(send_wr) },
	};

	bell.req.qp_handle = any_handle(user, T_QP);
	if (write(user->fd, &bell, sizeof(bell)) < 0)
		check_error("doorbell", bell.req.qp_handle);
}

/* To a state in which it sends, to itself or another. */
static void connect_any(struct user *user)
{
	static const uint32_t masks[] = {
		0, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
		IBV_QP_STATE | IBV_QP_SQ_PSN,
	};
	struct { struct ib_uverbs_cmd_hdr hdr; struct ib_uverbs_modify_qp req; } cmd = {
		.hdr = { IB_USER_VERBS_CMD_MODIFY_QP, sizeof(cmd) / 4, 0 },
		.req = { .port_num = 1, .path_mtu = IBV_MTU_1024, .timeout = 8, .max_rd_atomic = 2,
			 .max_dest_rd_atomic = 2, .qp_access_flags = 15,
			 .dest = { .dlid = (uint16_t)(1 + rnd(4)), .port_num = 1 } },
	};
	bool datagrams = !rnd(3), reliable = rnd(2);

	cmd.req.qp_handle = any_handle(user, T_QP);
	cmd.req.dest_qp_num = known(&t.qpns);
	for (uint8_t state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
		cmd.req.qp_state = state;
		cmd.req.attr_mask = masks[state];
		if (state == IBV_QPS_INIT)
			cmd.req.attr_mask |= datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
		else if (datagrams)
			cmd.req.attr_mask &= IBV_QP_STATE | IBV_QP_SQ_PSN;
		else if (reliable)
			cmd.req.attr_mask |= state == IBV_QPS_RTR ?
				IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER :
				IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_MAX_QP_RD_ATOMIC;
		if (write(user->fd, &cmd, sizeof(cmd)) < 0)
			check_error("connect", state);
	}
}

/* Of what ends something, a fourth: so that there is something. */
static const struct command *any_command(void)
{
	const struct command *c;

	do
		c = &commands[rnd(sizeof(commands) / sizeof(commands[0]))];
	while (c->ends && rnd(4));
	return c;
}

static const struct method *any_method(void)
{
	const struct method *m;

	do
		m = &methods[rnd(sizeof(methods) / sizeof(methods[0]))];
	while (m->ends && rnd(4));
	return m;
}

static void step(void)
{
	struct user *user = &t.users[rnd(FILES)];
	uint32_t what = rnd(100);

	if (what < 50)
		do_command(user, any_command());
	else if (what < 70)
		do_ioctl(user, any_method());
	else if (what < 84 && t.num_rings)
		scribble(&t.rings[rnd(t.num_rings)]);
	else if (what < 90)
		ring_doorbell(user);
	else if (what < 94)
		connect_any(user);
	else if (what < 96)
		change_memory();
	else if (what < 98)
		read_events(user);
	else if (what < 99)
		map_any(user);
	else if (!rnd(5))
		reopen(user);
}

/* A QP whose rings the thread has to itself. */
static void make_hot(void)
{
	for (int i = 0; i < 10000 && t.num_rings < 4; i++)
		step();
	if (t.num_rings < 4)
		fail("no rings", t.num_rings);
	t.hot = t.rings[t.num_rings - 1];
	t.hot.buf = mremap(t.hot.buf, t.hot.size, t.hot.size, MREMAP_MAYMOVE | MREMAP_FIXED,
			   t.ring_space + RINGS * RING_MAX);
	t.num_rings--;
	if (t.hot.buf == MAP_FAILED)
		fail("mremap", t.hot.size);
}

static void set_up(void)
{
	/* What is registered reaches beyond its pages, and not to the answers. */
	t.area = mmap(NULL, (PAGES + 32) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	t.answers = t.area + (PAGES + 24) * PAGE;
	t.bad = t.area + (PAGES + 28) * PAGE;
	t.ring_space = mmap(NULL, (RINGS + 1) * RING_MAX, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t.area == MAP_FAILED || t.ring_space == MAP_FAILED || mprotect(t.bad, PAGE, PROT_NONE))
		fail("mmap", 0);
	for (int i = 0; i < FILES; i++) {
		t.users[i].fd = open_uverbs(i & 1);
		do_command(&t.users[i], &commands[0]);
	}
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 4)
		return 2;
	t.rng = strtoull(argv[1], NULL, 0) * 0x9e3779b97f4a7c15 + 1;
	t.mnt = argv[3];
	set_up();
	make_hot();
	if (pthread_create(&thread, NULL, keep_scribbling, NULL))
		fail("pthread_create", 0);
	for (unsigned long n = strtoul(argv[2], NULL, 0); n; n--)
		step();
	t.stop = 1;
	pthread_join(thread, NULL);
	printf("%u done, %u refused\n", t.done, t.refused);
	return t.done < 100 || t.refused < 100;
}
