/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions and the checks of keys: PD, bounds, access, for local and
 * remote use, and what an address range turns into. IBA 10.6, 11.2.8, 9.4.1.1.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/verbs.h"

#define ACCESS_KNOWN (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		      IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
		      IBV_ACCESS_HUGETLB | IBV_ACCESS_ON_DEMAND)
#define ACCESS_REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

int key_alloc(struct verbs *verbs, struct key *key)
{
	uint32_t id;
	int err = ids_add(&verbs->keys, key, &id);

	if (!err)
		key->value = id << 8 | (arc4random() & 0xff);
	return err;
}

static struct key *key_find(struct verbs *verbs, uint32_t value, unsigned int kind)
{
	struct key *key = ids_get(&verbs->keys, value >> 8);

	return key && key->value == value && key->kind == kind ? key : NULL;
}

struct ibfs_mr *mr_by_key(struct verbs *verbs, uint32_t key)
{
	return (struct ibfs_mr *)key_find(verbs, key, KEY_MR);
}

struct ibfs_mw *mw_by_key(struct verbs *verbs, uint32_t key)
{
	return (struct ibfs_mw *)key_find(verbs, key, KEY_MW);
}

/* Optional access flags are hints: those that it doesn't know are dropped, as the kernel does. */
static int access_check(unsigned int *access)
{
	*access &= ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;
	if (*access & ~ACCESS_KNOWN)
		return -EINVAL;
	if (*access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(*access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return 0;
}

static int mr_init_check(const struct ibfs_mr_init *init, unsigned int *access)
{
	*access = init->access;
	if (access_check(access))
		return -EINVAL;
	if (!init->mem || init->mem_off > init->mem->size ||
	    init->length > init->mem->size - init->mem_off)
		return -EINVAL;
	if (init->length > verbs_limits.max_mr_size && !(init->access & IBV_ACCESS_ON_DEMAND))
		return -EINVAL;
	if (init->iova + init->length < init->iova)
		return -EINVAL;
	if (init->max_pages > VERBS_MAX_PAGES)
		return -EINVAL;
	return 0;
}

static void mr_set_memory(struct ibfs_mr *mr, const struct ibfs_mr_init *init)
{
	mr->mem = memory_get(init->mem);
	mr->mem_off = init->mem_off;
	mr->mem_len = init->length;
	mr->length = init->length;
	mr->iova = mr->access & IBV_ACCESS_ZERO_BASED ? 0 : init->iova;
}

int mr_reg(struct ibfs_pd *pd, const struct ibfs_mr_init *init, struct ibfs_mr **out)
{
	struct verbs *verbs = pd->verbs;
	unsigned int access;
	struct ibfs_mr *mr;
	int err = mr_init_check(init, &access);

	if (err)
		return err;
	if (verbs->num_mrs >= (unsigned int)verbs_limits.max_mr)
		return -ENOMEM;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	mr->key.kind = KEY_MR;
	mr->access = access;
	mr->max_pages = init->max_pages;
	mr->valid = !init->max_pages;
	err = -ENOMEM;
	if (mr->max_pages) {
		mr->pages = calloc(mr->max_pages, sizeof(*mr->pages));
		if (!mr->pages)
			goto free;
	}
	err = key_alloc(verbs, &mr->key);
	if (err)
		goto free;
	mr_set_memory(mr, init);
	mr->pd = pd;
	pd->refs++;
	verbs->num_mrs++;
	*out = mr;
	return 0;
free:
	free(mr->pages);
	free(mr);
	return err;
}

int mr_rereg(struct ibfs_mr *mr, int flags, struct ibfs_pd *pd, const struct ibfs_mr_init *init)
{
	unsigned int access = mr->access;

	if (flags & ~(IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD |
		      IBV_REREG_MR_CHANGE_ACCESS) || !flags || mr->max_pages)
		return -EINVAL;
	if (mr->windows)
		return -EBUSY;
	if (flags & IBV_REREG_MR_CHANGE_PD && !backend_own(pd->verbs == mr->pd->verbs))
		return -EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS) {
		access = init->access;
		if (access_check(&access))
			return -EINVAL;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		struct ibfs_mr_init checked = *init;
		struct memory *old = mr->mem;
		unsigned int ignored;

		checked.access = access;
		checked.max_pages = 0;
		if (mr_init_check(&checked, &ignored))
			return -EINVAL;
		mr->access = access;
		mr_set_memory(mr, &checked);
		memory_put(old);
	}
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		mr->pd->refs--;
		mr->pd = pd;
		pd->refs++;
	}
	mr->access = access;
	mr->valid = true;
	return 0;
}

void mr_query(struct ibfs_mr *mr, struct ibfs_mr_attr *attr)
{
	*attr = (struct ibfs_mr_attr){
		.pd = mr->pd, .iova = mr->iova, .length = mr->length, .access = mr->access,
		.lkey = mr->key.value, .rkey = mr->access & ACCESS_REMOTE ? mr->key.value : 0,
		.windows = mr->windows, .valid = mr->valid,
	};
}

int mr_dereg(struct ibfs_mr *mr)
{
	struct verbs *verbs = mr->pd->verbs;

	if (mr->windows)
		return -EBUSY;
	ids_del(&verbs->keys, mr->key.value >> 8);
	mr->pd->refs--;
	verbs->num_mrs--;
	memory_put(mr->mem);
	free(mr->pages);
	free(mr);
	return 0;
}

int mr_check_range(const struct ibfs_mr *mr, uint64_t addr, uint64_t len)
{
	if (!mr->valid || addr < mr->iova || len > mr->length ||
	    addr - mr->iova > mr->length - len)
		return -EFAULT;
	return 0;
}

struct ibfs_mr *lkey_check(struct verbs *verbs, const struct ibfs_pd *pd, uint32_t lkey,
			   uint64_t addr, uint64_t len, unsigned int access)
{
	struct ibfs_mr *mr = mr_by_key(verbs, lkey);

	if (!mr || mr->pd != pd || access & ~mr->access || mr_check_range(mr, addr, len))
		return NULL;
	return mr;
}

/* A window gives what it was bound with; a zero-based one counts from where it starts. */
static struct ibfs_mr *window_check(const struct ibfs_qp *qp, const struct ibfs_pd *pd,
				    uint32_t rkey, uint64_t addr, uint64_t len,
				    unsigned int access, uint64_t *mr_addr)
{
	struct ibfs_mw *mw = mw_by_key(qp->verbs, rkey);
	uint64_t base;

	if (!mw || !mw->mr || mw->pd != pd || access & ~mw->access)
		return NULL;
	if (mw->type == IBV_MW_TYPE_2 && mw->qp != qp)
		return NULL;
	base = mw->access & IBV_ACCESS_ZERO_BASED ? 0 : mw->addr;
	if (addr < base || len > mw->length || addr - base > mw->length - len)
		return NULL;
	*mr_addr = mw->addr + (addr - base);
	return mr_check_range(mw->mr, *mr_addr, len) ? NULL : mw->mr;
}

struct ibfs_mr *rkey_check(const struct ibfs_qp *qp, const struct ibfs_pd *pd, uint32_t rkey,
			   uint64_t addr, uint64_t len, unsigned int access, uint64_t *mr_addr)
{
	struct ibfs_mr *mr = lkey_check(qp->verbs, pd, rkey, addr, len, access);

	if (!mr)
		return window_check(qp, pd, rkey, addr, len, access, mr_addr);
	*mr_addr = addr;
	return mr;
}

int mr_segments(const struct ibfs_mr *mr, uint64_t addr, uint32_t len, struct mem_seg *segs, int num)
{
	uint64_t off = addr - mr->iova;

	if (!len)
		return num;
	if (!mr->num_pages) {
		if (num == MEM_SEGS)
			return -E2BIG;
		segs[num] = (struct mem_seg){ mr->mem, mr->mem_off + off, len };
		return num + 1;
	}
	/* The first page may begin in its middle: iova keeps its offset there. */
	off += mr->iova & ((1ULL << mr->page_shift) - 1);
	while (len) {
		uint64_t in_page = off & ((1ULL << mr->page_shift) - 1);
		uint64_t run = (1ULL << mr->page_shift) - in_page;

		if (num == MEM_SEGS)
			return -E2BIG;
		if (run > len)
			run = len;
		segs[num++] = (struct mem_seg){
			mr->mem, mr->pages[off >> mr->page_shift] + in_page, run };
		off += run;
		len -= run;
	}
	return num;
}

int sge_segments(struct verbs *verbs, const struct ibfs_pd *pd, const struct ibv_sge *sges,
		 unsigned int num_sge, uint32_t off, uint32_t len, unsigned int access,
		 struct mem_seg *segs)
{
	int num = 0;

	for (unsigned int i = 0; i < num_sge && len; i++) {
		const struct ibv_sge *sge = &sges[i];
		uint32_t run;
		struct ibfs_mr *mr;

		if (off >= sge->length) {
			off -= sge->length;
			continue;
		}
		/* The whole element has to be valid, as where one page fault would tell. */
		mr = lkey_check(verbs, pd, sge->lkey, sge->addr, sge->length, access);
		if (!mr)
			return -EFAULT;
		run = sge->length - off;
		if (run > len)
			run = len;
		num = mr_segments(mr, sge->addr + off, run, segs, num);
		if (num < 0)
			return num;
		off = 0;
		len -= run;
	}
	return len ? -EFAULT : num;
}

/*
 * Local invalidate, and send with invalidate from afar. Only keys that a work
 * request could make valid: fast registrations and type 2 windows. IBA 10.6.7.2.
 */
int mr_invalidate(struct ibfs_qp *qp, const struct ibfs_pd *pd, uint32_t key, bool remote)
{
	struct ibfs_mr *mr = mr_by_key(qp->verbs, key);
	struct ibfs_mw *mw = mw_by_key(qp->verbs, key);

	if (mr) {
		if (mr->pd != pd || !mr->max_pages || mr->windows ||
		    (remote && !(mr->access & ACCESS_REMOTE)))
			return -EINVAL;
		mr->valid = false;
		return 0;
	}
	if (!mw || mw->type != IBV_MW_TYPE_2 || mw->pd != pd || (mw->qp && mw->qp != qp))
		return -EINVAL;
	mw_unbind(mw);
	return 0;
}

/* The new key may differ from the MR's in its lower 8 bits only. */
int mr_fast_reg(struct ibfs_qp *qp, const struct ibfs_wr *wr, const uint64_t *pages)
{
	struct ibfs_mr *mr = mr_by_key(qp->verbs, wr->reg.mr_lkey);
	unsigned int access = wr->reg.access;
	uint64_t page, first;

	if (!mr || mr->pd != qp->pd || !mr->max_pages || mr->valid || mr->windows)
		return -EINVAL;
	if (access_check(&access) || (wr->reg.rkey ^ mr->key.value) >> 8)
		return -EINVAL;
	if (!wr->reg.num_pages || wr->reg.num_pages > mr->max_pages ||
	    wr->reg.page_shift < 12 || wr->reg.page_shift > 31)
		return -EINVAL;
	page = 1ULL << wr->reg.page_shift;
	first = wr->reg.iova & (page - 1);
	if (wr->reg.length > wr->reg.num_pages * page - first ||
	    wr->reg.iova + wr->reg.length < wr->reg.iova)
		return -EINVAL;
	for (uint32_t i = 0; i < wr->reg.num_pages; i++)
		if (pages[i] & (page - 1) || pages[i] > mr->mem_len ||
		    page > mr->mem_len - pages[i])
			return -EINVAL;
	for (uint32_t i = 0; i < wr->reg.num_pages; i++)
		mr->pages[i] = mr->mem_off + pages[i];
	mr->num_pages = wr->reg.num_pages;
	mr->page_shift = wr->reg.page_shift;
	mr->iova = wr->reg.iova;
	mr->length = wr->reg.length;
	mr->access = access;
	mr->key.value = wr->reg.rkey;
	mr->valid = true;
	return 0;
}
