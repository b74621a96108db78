/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the contents of verbs' objects take of the daemon: queues and rings, and
 * memory that is registered. The object's owner pays, whoever fills it, as the owner
 * of a file does in a file system with quotas. Registered memory counts against
 * RLIMIT_MEMLOCK of the process that has it made, in whole pages, as the kernel
 * counts pinned memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <ibfs/conf.h>

#include "fs/client_mem.h"
#include "fs/obj.h"
#include "fs/uverbs.h"

/* Who made it pays for it too, as long as it is the owner: of a TCP client there's more than a uid. */
int obj_pay_begin(struct obj *obj)
{
	const struct fs_cred owner = { .uid = obj->uid };

	charge_end(&obj->contents);
	if (charge_uid(&obj->charge) == obj->uid)
		return charge_beside(&obj->contents, &obj->charge, ACCOUNT_NO_THING);
	return charge_begin(&obj->contents, obj->ibfs->fs->accounts, &owner, ACCOUNT_NO_THING);
}

int obj_pay(struct verbs_client *client, const struct verbs_cost *cost)
{
	struct obj *obj = (struct obj *)client;

	return charge_take_all(&obj->contents, cost->bytes, cost->descriptors, cost->mappings);
}

void obj_refund(struct verbs_client *client, const struct verbs_cost *cost)
{
	struct obj *obj = (struct obj *)client;

	charge_give_all(&obj->contents, cost->bytes, cost->descriptors, cost->mappings);
}

/* --- registered memory --- */

/*
 * Root has CAP_IPC_LOCK: no limit. Over 9P there is no process: the configuration's,
 * which the limit of another user's process doesn't exceed either.
 */
static uint64_t memlock_limit(const struct conf *conf, const struct fs_req *req)
{
	const struct fs_caller *caller = &req->caller;
	uint64_t limit = 0, most = conf ? (uint64_t)conf->p9.memory << 20 : 0;

	if (fs_privileged(&req->cred))
		return ACCOUNT_UNLIMITED;
	if (!caller->pid)
		return most;
	if (client_memlock(caller->pid, &limit))
		return 0;
	return caller->uid == req->cred.uid || limit < most ? limit : most;
}

static uint64_t whole_pages(uint64_t size)
{
	uint64_t in_page = sysconf(_SC_PAGESIZE) - 1;

	return (size + in_page) & ~in_page;
}

static void paid_back(void *charge)
{
	charge_end(charge);
	free(charge);
}

static int charge_memory(struct charge *charge, const struct obj *obj, const struct fs_req *req,
			 uint64_t size)
{
	int err = charge_beside(charge, &obj->contents, ACCOUNT_NO_THING);

	if (!err)
		err = charge_lock(charge, req->caller.pid, memlock_limit(obj->ibfs->conf, req),
				  whole_pages(size));
	if (!err)
		err = charge_take_all(charge, 0, 1, 1);
	if (err)
		charge_end(charge);
	return err;
}

/* It is paid for as long as anybody uses it, be the object gone. */
struct memory *obj_memory(const struct obj *obj, const struct fs_req *req, uint64_t size, int *err)
{
	struct charge *charge = calloc(1, sizeof(*charge));
	struct memory *mem;

	*err = charge ? charge_memory(charge, obj, req, size) : -ENOMEM;
	if (*err) {
		free(charge);
		return NULL;
	}
	mem = memory_own(size);
	if (!mem) {
		*err = -errno;
		paid_back(charge);
		return NULL;
	}
	memory_tell(mem, paid_back, charge);
	return mem;
}

int pinned_show(struct ibfs *ibfs, struct textbuf *out)
{
	accounts_show_locked(ibfs->fs->accounts, out);
	uv_pins_show(ibfs->fs, out);
	return 0;
}
