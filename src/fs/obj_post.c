/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests as text: `post` of QPs and SRQs. Memory is named by its MR, an
 * address by its offset there; several mr= make a scatter/gather list.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/obj.h"

#define MAX_SGE 32
#define MAX_PAGES 512

struct post {
	struct ibfs_wr wr;
	struct ibv_sge sges[MAX_SGE];
	struct obj *first_mr;
	uint64_t first_off;
	uint64_t pages[MAX_PAGES];
	uint8_t header[128];
};

/*
 * offset= and length= that follow an mr=, or stand before the first, are its
 * own; without them all of it.
 */
static uint64_t next_size(struct args *args, unsigned int at, const char *key, uint64_t unset)
{
	for (unsigned int i = 1; i < args->line->argc; i++) {
		const char *text = ctl_value(args->line->argv[i], key);
		uint64_t value;

		if (i > at && ctl_value(args->line->argv[i], "mr"))
			break;
		if (!text || args->used >> i & 1)
			continue;
		args->used |= 1ULL << i;
		if (!parse_size(text, UINT64_MAX, &value))
			return value;
		arg_error(args, EINVAL, "%s=%s: expected a size", key, text);
		return unset;
	}
	return unset;
}

static void one_sge(struct args *args, struct post *post, unsigned int at)
{
	struct obj *mr = arg_obj(args, "mr", OBJ_MR, true);
	struct ibfs_mr_attr attr;
	uint64_t off, len;

	if (!mr)
		return;
	mr->ops->query_mr(mr->mr, &attr);
	off = next_size(args, at, "offset", 0);
	len = next_size(args, at, "length", off < attr.length ? attr.length - off : 0);
	if (len > UINT32_MAX) {
		arg_error(args, EINVAL, "length= is more than 4 GiB");
		return;
	}
	if (!post->wr.num_sge) {
		post->first_mr = mr;
		post->first_off = off;
	}
	post->sges[post->wr.num_sge++] = (struct ibv_sge){ attr.iova + off, len, attr.lkey };
}

static void gather_sges(struct args *args, struct post *post)
{
	for (unsigned int i = 1; i < args->line->argc; i++) {
		if (!ctl_value(args->line->argv[i], "mr") || args->used >> i & 1)
			continue;
		if (post->wr.num_sge == MAX_SGE)
			arg_error(args, EINVAL, "more than %d mr=", MAX_SGE);
		if (args->err)
			return;
		one_sge(args, post, i);
	}
	post->wr.sg_list = post->sges;
}

/* `inline`: the bytes are taken now; text=WORD: these bytes. */
static void inline_data(struct args *args, struct post *post)
{
	const char *text = arg_text(args, "text");
	bool flag = arg_word(args, "inline");
	const struct memory *mem = post->first_mr ? post->first_mr->mem : NULL;
	uint32_t len = post->wr.num_sge ? post->sges[0].length : 0;

	if (text) {
		post->wr.inline_data = text;
		post->wr.inline_len = strlen(text);
	} else if (flag) {
		if (post->wr.num_sge > 1 || (mem && (post->first_off > mem->size ||
						     len > mem->size - post->first_off))) {
			arg_error(args, EINVAL, "inline wants one mr=, and bytes that it has");
			return;
		}
		post->wr.inline_data = mem ? (uint8_t *)mem->base + post->first_off : NULL;
		post->wr.inline_len = len;
	} else {
		return;
	}
	post->wr.num_sge = 0;
	post->wr.send_flags |= IBV_SEND_INLINE;
}

static void send_flags(struct args *args, struct post *post)
{
	static const struct {
		const char *name;
		unsigned int flag;
	} flags[] = {
		{ "fence", IBV_SEND_FENCE }, { "solicited", IBV_SEND_SOLICITED },
		{ "ip_csum", IBV_SEND_IP_CSUM },
	};

	post->wr.send_flags = arg_word(args, "unsignaled") ? 0 : IBV_SEND_SIGNALED;
	arg_word(args, "signaled");
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (arg_word(args, flags[i].name))
			post->wr.send_flags |= flags[i].flag;
}

static uint32_t next_key(uint32_t key)
{
	return (key & ~0xffU) | ((key + 1) & 0xff);
}

static void parse_bind(struct args *args, struct ibfs_wr *wr)
{
	struct obj *mw = arg_obj(args, "mw", OBJ_MW, true), *mr = arg_obj(args, "mr", OBJ_MR, false);
	struct ibfs_mw_attr mwa = { 0 };
	struct ibfs_mr_attr mra = { 0 };

	if (mw)
		mw->ops->query_mw(mw->mw, &mwa);
	if (mr)
		mr->ops->query_mr(mr->mr, &mra);
	wr->bind.mw_rkey = mwa.rkey;
	wr->bind.mr_lkey = mra.lkey;
	wr->bind.rkey = arg_num(args, "rkey", UINT32_MAX, next_key(mwa.rkey));
	wr->bind.addr = mra.iova + arg_size(args, "offset", UINT64_MAX, 0);
	wr->bind.length = arg_size(args, "length", UINT64_MAX, mra.length);
	wr->bind.access = arg_access(args, "access", IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
}

static bool one_page(const char *text, size_t len, uint64_t *page)
{
	char copy[24];

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return !parse_u64(copy, UINT64_MAX, page);
}

static void parse_pages(struct args *args, struct post *post)
{
	const char *text = arg_text(args, "pages");
	size_t len;

	if (!text)
		arg_error(args, EINVAL, "pages=OFFSET,... is missing");
	while (text && *text && !args->err) {
		if (post->wr.reg.num_pages == MAX_PAGES) {
			arg_error(args, EINVAL, "more than %d pages", MAX_PAGES);
			return;
		}
		len = strcspn(text, ",");
		if (!one_page(text, len, &post->pages[post->wr.reg.num_pages++]))
			arg_error(args, EINVAL, "pages=: expected offsets with commas between them");
		text += len + (text[len] == ',');
	}
	post->wr.reg.pages = post->pages;
}

static void parse_reg(struct args *args, struct post *post)
{
	struct obj *mr = arg_obj(args, "mr", OBJ_MR, true);
	struct ibfs_mr_attr attr = { 0 };
	struct ibfs_wr *wr = &post->wr;

	if (mr)
		mr->ops->query_mr(mr->mr, &attr);
	wr->reg.mr_lkey = attr.lkey;
	wr->reg.rkey = arg_num(args, "rkey", UINT32_MAX, next_key(attr.lkey));
	wr->reg.iova = arg_num(args, "iova", UINT64_MAX, 0);
	wr->reg.page_shift = arg_num(args, "page_shift", 31, 12);
	wr->reg.access = arg_access(args, "access", IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				    IBV_ACCESS_REMOTE_WRITE);
	parse_pages(args, post);
	wr->reg.length = arg_size(args, "length", UINT64_MAX,
				  (uint64_t)wr->reg.num_pages << wr->reg.page_shift);
}

static void parse_atomic(struct args *args, struct ibfs_wr *wr)
{
	bool add = wr->opcode == IBFS_WR_ATOMIC_FETCH_AND_ADD ||
		   wr->opcode == IBFS_WR_MASKED_ATOMIC_FETCH_AND_ADD;

	wr->atomic.remote_addr = arg_num(args, "raddr", UINT64_MAX, 0);
	wr->atomic.rkey = arg_num(args, "rkey", UINT32_MAX, 0);
	if (wr->opcode == IBFS_WR_ATOMIC_WRITE) {
		wr->atomic.swap = arg_num(args, "value", UINT64_MAX, 0);
		return;
	}
	wr->atomic.compare_add = arg_num(args, add ? "add" : "compare", UINT64_MAX, 0);
	wr->atomic.swap = arg_num(args, "swap", UINT64_MAX, 0);
	wr->atomic.compare_add_mask = arg_num(args, add ? "add_mask" : "compare_mask", UINT64_MAX,
					      add ? 0 : UINT64_MAX);
	wr->atomic.swap_mask = arg_num(args, "swap_mask", UINT64_MAX, UINT64_MAX);
}

static void parse_header(struct args *args, struct post *post)
{
	const char *text = arg_text(args, "header");
	unsigned int byte;
	int used;

	while (text && *text) {
		if (post->wr.ud.hlen == sizeof(post->header) || sscanf(text, "%2x%n", &byte, &used) != 1 ||
		    used != 2) {
			arg_error(args, EINVAL, "header=: expected up to 128 bytes in hex");
			return;
		}
		post->header[post->wr.ud.hlen++] = byte;
		text += used;
	}
	post->wr.ud.header = post->header;
	post->wr.ud.mss = arg_num(args, "mss", UINT16_MAX, 0);
}

static void parse_datagram(struct args *args, struct post *post)
{
	struct obj *ah = arg_obj(args, "ah", OBJ_AH, true);

	post->wr.ud.ah = ah ? ah->ah : NULL;
	post->wr.ud.remote_qpn = arg_num(args, "qpn", UINT32_MAX, 0);
	post->wr.ud.remote_qkey = arg_num(args, "qkey", UINT32_MAX, 1U << 31);
	post->wr.ud.pkey_index = arg_num(args, "pkey", UINT16_MAX, 0);
	if (post->wr.opcode == IBFS_WR_LSO)
		parse_header(args, post);
}

static bool has_datagrams(const struct obj *obj)
{
	struct ibfs_qp_init init;
	struct ibv_qp_attr attr;
	uint32_t qpn;

	obj->ops->query_qp(obj->qp, &attr, &init, &qpn);
	return init.type == IBV_QPT_UD || init.type <= IBFS_QPT_GSI;
}

static bool is_atomic(unsigned int opcode)
{
	return opcode == IBFS_WR_ATOMIC_CMP_AND_SWP || opcode == IBFS_WR_ATOMIC_FETCH_AND_ADD ||
	       opcode == IBFS_WR_MASKED_ATOMIC_CMP_AND_SWP ||
	       opcode == IBFS_WR_MASKED_ATOMIC_FETCH_AND_ADD || opcode == IBFS_WR_ATOMIC_WRITE;
}

static void parse_send(struct args *args, struct post *post)
{
	struct ibfs_wr *wr = &post->wr;

	send_flags(args, post);
	if (wr->opcode == IBFS_WR_BIND_MW) {
		parse_bind(args, wr);
		return;
	}
	if (wr->opcode == IBFS_WR_FAST_REG_MR) {
		parse_reg(args, post);
		return;
	}
	if (wr->opcode == IBFS_WR_LOCAL_INV || wr->opcode == IBFS_WR_SEND_WITH_INV ||
	    wr->opcode == IBFS_WR_RDMA_READ_WITH_INV)
		wr->ex.invalidate_rkey = arg_num(args, "key", UINT32_MAX, 0);
	else
		wr->ex.imm_data = htonl(arg_num(args, "imm", UINT32_MAX, 0));
	gather_sges(args, post);
	inline_data(args, post);
	wr->xrc_srq_num = arg_num(args, "srqn", UINT32_MAX, 0);
	if (has_datagrams(args->obj))
		parse_datagram(args, post);
	else if (is_atomic(wr->opcode))
		parse_atomic(args, wr);
	else if (wr->opcode == IBFS_WR_RDMA_WRITE || wr->opcode == IBFS_WR_RDMA_READ ||
		 wr->opcode == IBFS_WR_RDMA_WRITE_WITH_IMM ||
		 wr->opcode == IBFS_WR_RDMA_READ_WITH_INV) {
		wr->rdma.remote_addr = arg_num(args, "raddr", UINT64_MAX, 0);
		wr->rdma.rkey = arg_num(args, "rkey", UINT32_MAX, 0);
	}
}

/* An atomic's answer is 8 bytes: length= need not be said. */
static void fit_atomic(struct post *post)
{
	if (post->wr.num_sge == 1)
		post->sges[0].length = 8;
}

static int refused(struct args *args, int err)
{
	return obj_fail(args->obj, -err, "%s: %s", args->line->argv[0], err == -ENOMEM ?
			"the queue is full" : "the QP's state, type or sizes don't allow it");
}

static int post_send(struct args *args, struct post *post, unsigned int opcode)
{
	struct obj *obj = args->obj;
	int err;

	post->wr.opcode = opcode;
	post->wr.wr_id = arg_num(args, "wr_id", INT64_MAX, obj->next_wr);
	parse_send(args, post);
	if (is_atomic(opcode))
		fit_atomic(post);
	if (args_end(args))
		return args->err;
	err = obj->ops->post_send(obj->qp, &post->wr);
	if (err)
		return refused(args, err);
	obj->next_wr++;
	return 0;
}

static int post_recv(struct args *args, struct post *post)
{
	struct obj *obj = args->obj;
	struct ibfs_recv_wr wr = { .wr_id = arg_num(args, "wr_id", INT64_MAX, obj->next_wr) };
	int err;

	gather_sges(args, post);
	if (args_end(args))
		return args->err;
	wr.sg_list = post->sges;
	wr.num_sge = post->wr.num_sge;
	err = obj->kind == OBJ_SRQ ? obj->ops->post_srq_recv(obj->srq, &wr) :
	      obj->ops->post_recv(obj->qp, &wr);
	if (err)
		return refused(args, err);
	obj->next_wr++;
	return 0;
}

int obj_post_line(struct args *args)
{
	const char *name = args->line->argv[0];
	struct post *post = calloc(1, sizeof(*post));
	unsigned int opcode = 0;
	int err;

	if (!post)
		return -ENOMEM;
	if (!strcmp(name, "recv")) {
		err = post_recv(args, post);
	} else {
		while (opcode < IBFS_WR_OPCODES &&
		       (!wr_opcode_name(opcode) || strcmp(wr_opcode_name(opcode), name)))
			opcode++;
		if (opcode == IBFS_WR_OPCODES || args->obj->kind == OBJ_SRQ)
			err = obj_fail(args->obj, EINVAL, "\"%.60s\" is no request that can be posted here",
				       name);
		else
			err = post_send(args, post, opcode);
	}
	free(post);
	return err;
}
