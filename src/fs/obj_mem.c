/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection and XRC domains, memory regions and windows. */
#include <errno.h>
#include <string.h>

#include "fs/obj.h"

static const struct entry plain_entries[] = {
	{ "ctl", KIND_OBJ_FILE, OBJ_CTL },
	{ "status", KIND_OBJ_FILE, OBJ_STATUS },
	{ NULL, 0, 0 }
};

static int pd_create(struct args *args)
{
	struct obj *obj = args->obj;
	int err;

	if (args_device(args) || args_end(args))
		return args->err;
	err = obj->ops->alloc_pd(obj->dev, &obj->pd);
	return err ? obj_fail(obj, -err, "create: the device has no more") : 0;
}

static int pd_destroy(struct obj *obj)
{
	return obj->ops->dealloc_pd(obj->pd);
}

static const struct command pd_commands[] = {
	{ "create", pd_create, true }, { NULL, NULL, false }
};

const struct obj_ops pd_obj = { "pd", plain_entries, pd_commands, NULL, pd_destroy };

static int xrcd_create(struct args *args)
{
	struct obj *obj = args->obj;
	int err;

	if (args_device(args) || args_end(args))
		return args->err;
	err = obj->ops->alloc_xrcd(obj->dev, &obj->xrcd);
	return err ? obj_fail(obj, -err, "create: the device has no more") : 0;
}

static int xrcd_destroy(struct obj *obj)
{
	return obj->ops->dealloc_xrcd(obj->xrcd);
}

static const struct command xrcd_commands[] = {
	{ "create", xrcd_create, true }, { NULL, NULL, false }
};

const struct obj_ops xrcd_obj = { "xrcd", plain_entries, xrcd_commands, NULL, xrcd_destroy };

/* Addresses count from 0 unless iova= says otherwise; then windows can be bound to it too. */
static int mr_make(struct args *args, struct obj *pd, struct ibfs_mr_init *init)
{
	struct obj *obj = args->obj;
	int err = charge_take(&obj->contents, ACCOUNT_MEMORY, init->max_pages * sizeof(uint64_t));

	if (!err)
		obj->mem = obj_memory(obj, args->req, init->length, &err);
	if (err)
		return obj_fail(obj, -err, "create: more than RLIMIT_MEMLOCK allows");
	init->mem = obj->mem;
	err = obj->ops->reg_mr(pd->pd, init, &obj->mr);
	if (!err)
		return 0;
	memory_put(obj->mem);
	obj->mem = NULL;
	return obj_fail(obj, -err, "create: %s", err == -EINVAL ?
			"remote_write and remote_atomic need local_write" : strerror(-err));
}

static int mr_create(struct args *args)
{
	struct obj *pd = arg_obj(args, "pd", OBJ_PD, true);
	struct ibfs_mr_init init = {
		.length = arg_size(args, "size", 1ULL << 40, 0),
		.iova = arg_num(args, "iova", UINT64_MAX, 0),
		.access = arg_access(args, "access", IBV_ACCESS_LOCAL_WRITE),
		.max_pages = arg_num(args, "max_pages", 4096, 0),
	};

	if (!args->err && !init.length)
		arg_error(args, EINVAL, "size=BYTES is missing");
	if (args_end(args))
		return args->err;
	return mr_make(args, pd, &init);
}

static int mr_rereg_command(struct args *args)
{
	struct obj *obj = args->obj, *pd = arg_obj(args, "pd", OBJ_PD, false);
	unsigned int access = arg_access(args, "access", UINT32_MAX);
	struct ibfs_mr_init init = { .access = access };
	int flags = (pd ? IBV_REREG_MR_CHANGE_PD : 0) |
		    (access != UINT32_MAX ? IBV_REREG_MR_CHANGE_ACCESS : 0), err;

	if (args_end(args))
		return args->err;
	err = obj->ops->rereg_mr(obj->mr, flags, pd ? pd->pd : NULL, &init);
	return err ? obj_fail(obj, -err, "rereg: %s", err == -EBUSY ? "windows are bound to it" :
			      "expected pd= or access= that it can have") : 0;
}

static void mr_status(struct obj *obj, struct textbuf *out)
{
	struct ibfs_mr_attr attr;

	obj->ops->query_mr(obj->mr, &attr);
	text_printf(out, "size %llu\niova 0x%llx\nlength %llu\nlkey 0x%x\nrkey 0x%x\nwindows %u\n"
		    "valid %d\naccess ", (unsigned long long)obj->mem->size,
		    (unsigned long long)attr.iova, (unsigned long long)attr.length, attr.lkey,
		    attr.rkey, attr.windows, attr.valid);
	access_print(out, attr.access);
}

static int mr_destroy(struct obj *obj)
{
	int err = obj->ops->dereg_mr(obj->mr);

	if (err)
		return err;
	memory_put(obj->mem);
	obj->mem = NULL;
	return 0;
}

static const struct entry mr_entries[] = {
	{ "ctl", KIND_OBJ_FILE, OBJ_CTL },
	{ "status", KIND_OBJ_FILE, OBJ_STATUS },
	{ "data", KIND_OBJ_FILE, OBJ_DATA },
	{ "lkey", KIND_OBJ_FILE, OBJ_LKEY },
	{ "rkey", KIND_OBJ_FILE, OBJ_RKEY },
	{ NULL, 0, 0 }
};

static const struct command mr_commands[] = {
	{ "create", mr_create, true }, { "rereg", mr_rereg_command, false }, { NULL, NULL, false }
};

const struct obj_ops mr_obj = { "mr", mr_entries, mr_commands, mr_status, mr_destroy };

static int mw_create(struct args *args)
{
	struct obj *obj = args->obj, *pd = arg_obj(args, "pd", OBJ_PD, true);
	unsigned int type = arg_num(args, "type", 2, 1);
	int err;

	if (args_end(args))
		return args->err;
	err = obj->ops->alloc_mw(pd->pd, type, &obj->mw);
	return err ? obj_fail(obj, -err, "create: expected type=1 or 2") : 0;
}

static void mw_status(struct obj *obj, struct textbuf *out)
{
	struct ibfs_mw_attr attr;

	obj->ops->query_mw(obj->mw, &attr);
	text_printf(out, "type %u\nrkey 0x%x\nbound %d\n", attr.type, attr.rkey, attr.bound);
	if (!attr.bound)
		return;
	text_printf(out, "addr 0x%llx\nlength %llu\nmr_lkey 0x%x\naccess ",
		    (unsigned long long)attr.addr, (unsigned long long)attr.length, attr.mr_lkey);
	access_print(out, attr.access);
}

static int mw_destroy(struct obj *obj)
{
	return obj->ops->dealloc_mw(obj->mw);
}

static const struct entry mw_entries[] = {
	{ "ctl", KIND_OBJ_FILE, OBJ_CTL },
	{ "status", KIND_OBJ_FILE, OBJ_STATUS },
	{ "rkey", KIND_OBJ_FILE, OBJ_RKEY },
	{ NULL, 0, 0 }
};

static const struct command mw_commands[] = {
	{ "create", mw_create, true }, { NULL, NULL, false }
};

const struct obj_ops mw_obj = { "mw", mw_entries, mw_commands, mw_status, mw_destroy };
