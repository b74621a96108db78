/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limits of ib_device_attr: what a device says is what it has, one more is
 * refused and changes nothing, and what goes makes room. Where a limit is too
 * large to be reached in a test, the count is brought near it first.
 */
#include "verbs_test.h"

static struct side a;

/* Make one more, or end what was made last. */
struct kind {
	const char *name;
	int (*make)(void **obj);
	void (*end)(void *obj);
};

static int make_pd(void **obj)
{
	return a.ops->alloc_pd(a.dev, (struct ibfs_pd **)obj);
}

static void end_pd(void *obj)
{
	CHECK(!a.ops->dealloc_pd(obj));
}

static int make_xrcd(void **obj)
{
	return a.ops->alloc_xrcd(a.dev, (struct ibfs_xrcd **)obj);
}

static void end_xrcd(void *obj)
{
	CHECK(!a.ops->dealloc_xrcd(obj));
}

static int make_cq(void **obj)
{
	return a.ops->create_cq(a.dev, 1, &a.client, (struct ibfs_cq **)obj);
}

static void end_cq(void *obj)
{
	CHECK(!a.ops->destroy_cq(obj));
}

static int make_srq(void **obj)
{
	struct ibfs_srq_init init = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return a.ops->create_srq(a.pd, &init, &a.client, (struct ibfs_srq **)obj);
}

static void end_srq(void *obj)
{
	CHECK(!a.ops->destroy_srq(obj));
}

static int make_ah(void **obj)
{
	struct ibv_ah_attr attr = { .dlid = 1, .port_num = 1 };

	return a.ops->create_ah(a.pd, &attr, (struct ibfs_ah **)obj);
}

static void end_ah(void *obj)
{
	a.ops->destroy_ah(obj);
}

static int make_qp(void **obj)
{
	return a.ops->create_qp(a.dev, &a.init, &a.client, (struct ibfs_qp **)obj);
}

static void end_qp(void *obj)
{
	CHECK(!a.ops->destroy_qp(obj, &a.client));
}

static int make_mr(void **obj)
{
	struct ibfs_mr_init init = { .mem = a.mem, .length = 4096 };

	return a.ops->reg_mr(a.pd, &init, (struct ibfs_mr **)obj);
}

static void end_mr(void *obj)
{
	CHECK(!a.ops->dereg_mr(obj));
}

static int make_mw(void **obj)
{
	return a.ops->alloc_mw(a.pd, IBV_MW_TYPE_1, (struct ibfs_mw **)obj);
}

static void end_mw(void *obj)
{
	CHECK(!a.ops->dealloc_mw(obj));
}

/* As many as there is room for, one more refused, one less makes room. */
static void fill_up(const struct kind *kind, unsigned int room)
{
	void *objs[320], *more;
	unsigned int n;

	for (n = 0; n < room; n++)
		CHECK(!kind->make(&objs[n]));
	if (kind->make(&more) != -ENOMEM) {
		printf("%s: one more than its limit\n", kind->name);
		t.failed++;
		return;
	}
	kind->end(objs[0]);
	CHECK(!kind->make(&objs[0]));
	CHECK(kind->make(&more) == -ENOMEM);
	while (n)
		kind->end(objs[--n]);
}

static void test_counts(void)
{
	const struct kind pd = { "pd", make_pd, end_pd }, xrcd = { "xrcd", make_xrcd, end_xrcd },
			  cq = { "cq", make_cq, end_cq }, srq = { "srq", make_srq, end_srq },
			  ah = { "ah", make_ah, end_ah }, qp = { "qp", make_qp, end_qp },
			  mr = { "mr", make_mr, end_mr }, mw = { "mw", make_mw, end_mw };
	struct verbs *verbs;

	side_open(&a, "rxe0");
	verbs = verbs_of(a.dev);
	/* The tables' limits are the device's. */
	CHECK(verbs->pds.max == (uint32_t)verbs_limits.max_pd);
	CHECK(verbs->xrcds.max == (uint32_t)verbs_limits.max_pd);
	CHECK(verbs->cqs.max == (uint32_t)verbs_limits.max_cq);
	CHECK(verbs->srqs.max == (uint32_t)verbs_limits.max_srq);
	CHECK(verbs->ahs.max == (uint32_t)verbs_limits.max_ah);
	CHECK(verbs->qps.max == (uint32_t)verbs_limits.max_qp);
	verbs->pds.max = verbs->xrcds.max = verbs->cqs.max = verbs->srqs.max = verbs->ahs.max =
		verbs->qps.max = 300;
	fill_up(&pd, 299);		/* the side has one of each */
	fill_up(&cq, 299);
	fill_up(&xrcd, 300);
	fill_up(&srq, 300);
	fill_up(&ah, 300);
	fill_up(&qp, 300);
	verbs->num_mrs += verbs_limits.max_mr - 6;
	fill_up(&mr, 5);
	verbs->num_mrs -= verbs_limits.max_mr - 6;
	verbs->num_mws += verbs_limits.max_mw - 5;
	fill_up(&mw, 5);
	verbs->num_mws -= verbs_limits.max_mw - 5;
	side_close(&a);
}

static union ibv_gid group(uint32_t n)
{
	union ibv_gid gid = { .raw = { 0xff, 0x12 } };

	n = htonl(n);
	memcpy(&gid.raw[12], &n, 4);
	return gid;
}

static void test_multicast(void)
{
	static struct ibfs_qp *qps[1025];
	const unsigned int groups = verbs_limits.max_mcast_grp, each = verbs_limits.max_mcast_qp_attach;
	struct verbs *verbs;
	union ibv_gid gid;

	side_open(&a, "rxe0");
	verbs = verbs_of(a.dev);
	a.init.type = IBV_QPT_UD;
	a.init.cap = (struct ibv_qp_cap){ .max_send_wr = 1, .max_recv_wr = 1 };
	CHECK(each == 1024);
	/* A static subnet's switches have fewer MLIDs than that. */
	t.ibfs.fabric->static_owned = false;
	for (unsigned int i = 0; i <= each; i++) {
		side_qp(&a);
		CHECK(!side_to(&a, IBV_QPS_INIT, TO_INIT_UD));
		qps[i] = a.qp;
		gid = group(0);
		CHECK(a.ops->attach_mcast(a.qp, &gid, 0) == (i < each ? 0 : -ENOMEM));
	}
	for (unsigned int i = 1; i <= groups; i++) {
		gid = group(i);
		CHECK(a.ops->attach_mcast(a.qp, &gid, 0) == (i < groups ? 0 : -ENOMEM));
	}
	gid = group(1);
	CHECK(!a.ops->detach_mcast(a.qp, &gid, 0));
	verbs->num_attached += verbs_limits.max_total_mcast_qp_attach - each - groups + 2;
	CHECK(a.ops->attach_mcast(a.qp, &gid, 0) == -ENOMEM);
	verbs->num_attached -= verbs_limits.max_total_mcast_qp_attach - each - groups + 2;
	CHECK(!a.ops->attach_mcast(a.qp, &gid, 0));
	for (unsigned int i = 0; i <= each; i++) {
		mcast_detach_all(qps[i]);
		CHECK(!a.ops->destroy_qp(qps[i], &a.client));
	}
	CHECK(!verbs->num_groups && !verbs->num_attached);
	a.qp = NULL;
	side_close(&a);
}

/* Sizes of single objects. */
static void test_sizes(void)
{
	struct ibfs_srq_init srq = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibfs_mr_init mr = { .length = 1 };
	static uint64_t pages[VERBS_MAX_PAGES + 1];
	struct ibfs_wr wr = { .opcode = IBFS_WR_FAST_REG_MR, .reg.pages = pages };
	struct memory *huge;
	struct ibfs_srq *s;
	struct ibfs_mr *m;

	side_open(&a, "rxe0");
	srq.attr.max_wr = verbs_limits.max_srq_wr + 1;
	CHECK(a.ops->create_srq(a.pd, &srq, &a.client, &s) == -EINVAL);
	srq.attr = (struct ibv_srq_attr){ .max_wr = 1, .max_sge = verbs_limits.max_srq_sge + 1 };
	CHECK(a.ops->create_srq(a.pd, &srq, &a.client, &s) == -EINVAL);
	srq.attr = (struct ibv_srq_attr){ .max_wr = verbs_limits.max_srq_wr,
					  .max_sge = verbs_limits.max_srq_sge };
	CHECK(!a.ops->create_srq(a.pd, &srq, &a.client, &s) && !a.ops->destroy_srq(s));
	huge = memory_remote(&(struct remote_ops){ 0 }, NULL, 1ULL << 50);
	mr.mem = huge;
	mr.length = verbs_limits.max_mr_size + 1;
	CHECK(a.ops->reg_mr(a.pd, &mr, &m) == -EINVAL);
	mr.length--;
	CHECK(!a.ops->reg_mr(a.pd, &mr, &m) && !a.ops->dereg_mr(m));
	mr.max_pages = a.ops->max_fast_reg_page_list_len + 1;
	CHECK(a.ops->reg_mr(a.pd, &mr, &m) == -EINVAL);
	mr.max_pages--;
	CHECK(!a.ops->reg_mr(a.pd, &mr, &m) && !a.ops->dereg_mr(m));
	free(huge);
	a.init.cap = (struct ibv_qp_cap){
		.max_send_wr = verbs_limits.max_qp_wr, .max_recv_wr = verbs_limits.max_qp_wr,
		.max_send_sge = verbs_limits.max_sge, .max_recv_sge = verbs_limits.max_sge,
	};
	side_qp(&a);
	a.attr.ah_attr = (struct ibv_ah_attr){ .dlid = 1, .port_num = 1 };
	CHECK(!side_to(&a, IBV_QPS_INIT, TO_INIT_RC) && !side_to(&a, IBV_QPS_RTR, TO_RTR_RC));
	CHECK(!side_to(&a, IBV_QPS_RTS, TO_RTS_INI));
	wr.reg.num_pages = a.ops->max_fast_reg_page_list_len + 1;
	CHECK(a.ops->post_send(a.qp, &wr) == -EINVAL);
	/* A fast registration of no pages, and of pages that nobody told. */
	wr.reg.num_pages = 0;
	CHECK(a.ops->post_send(a.qp, &wr) == -EINVAL);
	wr.reg = (typeof(wr.reg)){ .num_pages = 1 };
	CHECK(a.ops->post_send(a.qp, &wr) == -EINVAL);
	for (int i = 0; i < verbs_limits.max_qp_wr; i++)
		CHECK(!side_recv(&a, 0, 1));
	CHECK(side_recv(&a, 0, 1) == -ENOMEM);
	side_close(&a);
}

/* What is enforced is what is told. */
static void test_reported(void)
{
	struct ibv_device_attr_ex attr;
	const struct ibv_device_attr *is = &attr.orig_attr, *max = &verbs_limits;

	side_open(&a, "rxe0");
	CHECK(!a.dev->ops->query_device(a.dev, &attr));
#define SAME(field) CHECK(is->field == max->field && is->field > 0)
	SAME(max_mr_size);
	SAME(max_qp);
	SAME(max_qp_wr);
	SAME(max_sge);
	SAME(max_cq);
	SAME(max_cqe);
	SAME(max_mr);
	SAME(max_pd);
	SAME(max_qp_rd_atom);
	SAME(max_res_rd_atom);
	SAME(max_qp_init_rd_atom);
	SAME(max_mw);
	SAME(max_mcast_grp);
	SAME(max_mcast_qp_attach);
	SAME(max_total_mcast_qp_attach);
	SAME(max_ah);
	SAME(max_srq);
	SAME(max_srq_wr);
	SAME(max_srq_sge);
#undef SAME
	/* Reliable datagrams, FMRs and the older raw types aren't there. */
	CHECK(!is->max_sge_rd && !is->max_ee_rd_atom && !is->max_ee_init_rd_atom && !is->max_ee &&
	      !is->max_rdd && !is->max_fmr && !is->max_map_per_fmr && !is->max_raw_ipv6_qp &&
	      !is->max_raw_ethy_qp);
	/* All the resources that QPs may ask for are there. */
	CHECK(is->max_res_rd_atom == is->max_qp * is->max_qp_rd_atom);
	CHECK((is->device_cap_flags & max->device_cap_flags) == max->device_cap_flags);
	CHECK(is->atomic_cap == IBV_ATOMIC_HCA && a.ops->masked_atomic_cap == IBV_ATOMIC_HCA);
	side_close(&a);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "counts", test_counts }, { "multicast", test_multicast }, { "sizes", test_sizes },
		{ "reported", test_reported }, { 0 },
	};

	return run_tests(tests, argc, argv);
}
