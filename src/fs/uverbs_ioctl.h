/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA_VERBS_IOCTL inside: a call has an object, a method and attributes, which
 * stand in the client's memory behind the header. <rdma/rdma_user_ioctl_cmds.h>,
 * <rdma/ib_user_ioctl_cmds.h>; kernel drivers/infiniband/core/uverbs_ioctl.c.
 * Most methods are a write() command in another dress, and are run as it.
 */
#ifndef IBFS_FS_UVERBS_IOCTL_H
#define IBFS_FS_UVERBS_IOCTL_H

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "fs/uverbs.h"

#define UV_CALL_MAX	4096		/* bytes of header and attributes: the kernel's PAGE_SIZE */
#define UV_CALL_ATTRS	((UV_CALL_MAX - sizeof(struct ib_uverbs_ioctl_hdr)) / \
			 sizeof(struct ib_uverbs_attr))

enum uv_attr_type {
	UVA_IN,				/* bytes, in the attribute itself when they are 8 or fewer */
	UVA_OUT,
	UVA_OBJ,			/* a handle of an object that is there */
	UVA_NEW,			/* the answer is a new object's handle */
	UVA_DESTROY,
	UVA_FD,				/* a descriptor of an event file */
	UVA_NEW_FD,			/* the answer is the number of one in dev/infiniband/ev */
};

/* What a method takes as one of its attributes. */
struct uv_attr_spec {
	uint16_t id;
	uint8_t type;
	uint8_t obj;			/* enum uobj_type of a handle; UOBJ_TYPES: no such objects */
	bool mandatory;
	bool grows;			/* a struct that later versions made longer */
	uint16_t min, max;		/* bytes of UVA_IN and UVA_OUT */
};

/* An attribute that a client gave. */
struct uv_attr {
	const struct uv_attr_spec *spec;	/* NULL: it didn't */
	uint16_t index;			/* in the client's array */
	uint16_t len, flags;
	uint64_t data;
	uint64_t fd_id;			/* UVA_FD: the event file's number */
	const uint8_t *in;		/* UVA_IN: len bytes */
	uint8_t *out;			/* UVA_OUT: what goes back; NULL: nothing */
	size_t out_len;
	bool set;			/* UVA_OUT, UVA_NEW, UVA_NEW_FD: there is an answer */
};

struct uv_ioctl_method {
	uint16_t object, id;
	bool no_context;		/* allowed before GET_CONTEXT */
	const struct uv_attr_spec *attrs;
	unsigned int num_attrs;
	/*
	 * Helper: what needs no object, 0 or -errno; req is the command's request,
	 * zeroed. NULL: nothing to do.
	 */
	int (*fill)(struct uv_cmd *cmd, void *req);
	/* The write() command that does it, the bytes of its request and response; 0: none. */
	uint32_t command;
	uint16_t req, resp;
	/* In the loop: instead of a command, or its response into attributes. */
	int (*run)(struct uv_cmd *cmd);
	int (*spread)(struct uv_cmd *cmd, const void *resp);
};
extern const struct uv_ioctl_method uv_ioctl_methods[];
extern const unsigned int uv_ioctl_num_methods;

enum { UV_SPECS_MAX = 18 };

struct uv_call {
	const struct uv_ioctl_method *method;
	uint64_t user;			/* where the client's attributes are */
	unsigned int num;
	struct ib_uverbs_attr attrs[UV_CALL_ATTRS];	/* them */
	struct uv_attr given[UV_SPECS_MAX];		/* by the method's specs */
	uint8_t *area;			/* what UVA_IN attributes point to */
	uint64_t req[32];		/* of the command */
};

/* --- what methods ask of their call --- */

/* The attribute of this number if the client gave it, or NULL. */
struct uv_attr *uv_attr(const struct uv_cmd *cmd, uint16_t id);
/* A number of up to 8 bytes, 0 when it wasn't given. */
uint64_t uv_attr_u64(const struct uv_cmd *cmd, uint16_t id);
/* Flags of 4 or 8 bytes: 0, or -EINVAL for others than `allowed`. */
int uv_attr_flags(const struct uv_cmd *cmd, uint16_t id, uint32_t allowed, uint32_t *flags);
/* A constant: 0, or -EINVAL when it is more than max. */
int uv_attr_const(const struct uv_cmd *cmd, uint16_t id, uint64_t max, uint32_t *value);
/* The answer, cut to the client's room. 0 also when it didn't ask; -ENOMEM. */
int uv_attr_put(struct uv_cmd *cmd, uint16_t id, const void *data, size_t size);
void uv_attr_put_new(struct uv_cmd *cmd, uint16_t id, uint32_t handle);

/* uverbs_dev.c. -EINVAL: no such port. */
int uv_port_answer(struct ibfs_device *dev, uint32_t port,
		   struct ib_uverbs_query_port_resp_ex *resp);

/* uverbs_query.c: methods that ask only */
int uv_ioctl_query_port(struct uv_cmd *cmd);
int uv_ioctl_query_gid_table(struct uv_cmd *cmd);
int uv_ioctl_query_gid_entry(struct uv_cmd *cmd);
int uv_ioctl_info_handles(struct uv_cmd *cmd);
int uv_ioctl_query_mr(struct uv_cmd *cmd);
int uv_ioctl_advise_mr(struct uv_cmd *cmd);

#endif
