/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibfs-run.so's part for uverbs: some commands answer with a new descriptor,
 * which no file system can put into its caller. Their answer is the name of a
 * file in /dev/infiniband/ev; here it is opened, and its descriptor takes the
 * name's place, whether the command came by write() or by ioctl(). A doorbell is
 * left out while the engine looks at the ring by itself. And
 * libibverbs asks netlink for devices before it looks into /sys: the kernel's
 * devices aren't those that the program is to see.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ibfs/uverbs_arms.h"
#include "ibfs/uverbs_bells.h"
#include "run/preload.h"

#define PAGES_SIZE	(UVERBS_BELLS_SIZE + UVERBS_ARMS_SIZE)
#define FDS		1024	/* uverbs files with higher descriptors ring always */
/* In case that the daemon has died, or can serve it in a better way by now. */
#define WRITE_EVERY	256
#define WRITE_SELDOM	4096	/* of those that need not ring */

static bool has_descriptor(uint64_t command)
{
	return command == IB_USER_VERBS_CMD_GET_CONTEXT ||
	       command == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL;
}

/* Where the answer's descriptor is, if this is a command that has one: its address, or 0. */
static uint64_t answer_of(const void *buf, size_t size, uint64_t *command)
{
	struct ib_uverbs_cmd_hdr hdr;
	uint64_t response;

	if (size < sizeof(hdr) + sizeof(response))
		return 0;
	memcpy(&hdr, buf, sizeof(hdr));
	if (!has_descriptor(hdr.command) || hdr.in_words * sizeof(uint32_t) != size || !hdr.out_words)
		return 0;
	memcpy(&response, (const char *)buf + sizeof(hdr), sizeof(response));
	*command = hdr.command;
	return response;
}

bool preload_is_uverbs(int fd)
{
	char link[40], target[256];
	const char *slash;
	ssize_t n;

	if (!preload_in_tree(fd))
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	slash = strrchr(target, '/');
	return slash && !strncmp(slash, "/uverbs", 7);
}

/* By descriptor: the file's first pages, NULL: not looked for, or &none. */
static struct uverbs_bells none;
static struct uverbs_bells *_Atomic pages[FDS];
static _Atomic uint16_t left_out[FDS];

static struct uverbs_bells *find_page(int fd)
{
	struct uverbs_bells *page = MAP_FAILED, *before = NULL;

	if (preload_is_uverbs(fd))
		page = mmap(NULL, PAGES_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page != MAP_FAILED && page->magic != UVERBS_BELLS_MAGIC) {
		munmap(page, PAGES_SIZE);
		page = MAP_FAILED;
	}
	if (page == MAP_FAILED)
		page = &none;
	else
		atomic_store(&page->rings, 1);
	if (atomic_compare_exchange_strong(&pages[fd], &before, page))
		return page;
	if (page != &none)
		munmap(page, PAGES_SIZE);
	return before;
}

void preload_uverbs_close(int fd)
{
	struct uverbs_bells *page = NULL;

	if (fd >= 0 && fd < FDS && pages[fd])
		page = atomic_exchange(&pages[fd], NULL);
	if (page && page != &none)
		munmap(page, PAGES_SIZE);
}

static struct uverbs_bells *page_of(int fd)
{
	struct uverbs_bells *page = pages[fd];

	return page ? page : find_page(fd);
}

/* By the bell of this processor, if a thread of the daemon waits for it. */
static bool ring(struct uverbs_bells *page, uint32_t handle)
{
	atomic_fetch_or(&page->rung[handle / 64], 1ULL << handle % 64);
	atomic_fetch_or(&page->rung_words, 1ULL << handle / 64);
	return bell_ring(&page->words);
}

/* A doorbell that needs no write: the engine looks by itself, or was told so here. */
static bool need_not_write(int fd, const void *buf, size_t size)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_send post;
	} cmd;
	struct uverbs_bells *page;
	uint16_t count;
	uint8_t doorbell;

	if (size != sizeof(cmd) || fd < 0 || fd >= FDS)
		return false;
	memcpy(&cmd, buf, sizeof(cmd));
	if (cmd.hdr.command != IB_USER_VERBS_CMD_POST_SEND || cmd.post.wr_count ||
	    cmd.post.sge_count || cmd.hdr.in_words * sizeof(uint32_t) != size ||
	    cmd.post.qp_handle >= UVERBS_BELLS)
		return false;
	page = page_of(fd);
	/* After what the caller has posted. */
	atomic_thread_fence(memory_order_seq_cst);
	doorbell = page->doorbells[cmd.post.qp_handle];
	count = ++left_out[fd];
	if (doorbell == DOORBELL_ASK ||
	    !(count % (doorbell == DOORBELL_RING ? WRITE_EVERY : WRITE_SELDOM)))
		return false;
	if (doorbell == DOORBELL_QUIET || (doorbell == DOORBELL_SELDOM && count % DOORBELL_EVERY))
		return true;
	return ring(page, cmd.post.qp_handle);
}

/* REQ_NOTIFY_CQ, done by memory. errno may change. */
static bool ask_event(int fd, const struct ib_uverbs_req_notify_cq *req)
{
	struct uverbs_bells *page = fd >= 0 && fd < FDS ? page_of(fd) : &none;

	return page != &none && preload_arm((struct uverbs_arm *)((char *)page + UVERBS_ARMS_OFFSET),
					    req->cq_handle, req->solicited_only);
}

static bool asked_by_write(int fd, const void *buf, size_t size)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_req_notify_cq req;
	} cmd;

	if (size != sizeof(cmd))
		return false;
	memcpy(&cmd, buf, sizeof(cmd));
	return cmd.hdr.command == IB_USER_VERBS_CMD_REQ_NOTIFY_CQ &&
	       cmd.hdr.in_words * sizeof(uint32_t) == size && ask_event(fd, &cmd.req);
}

static int open_event(uint32_t number)
{
	char path[48];

	snprintf(path, sizeof(path), "/dev/infiniband/ev/%u", number);
	return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

/* False: there is no descriptor, and errno says why. */
static bool install(int uverbs, uint64_t command, uint64_t response)
{
	uint32_t *answer = (uint32_t *)(uintptr_t)response;
	int fd = open_event(*answer);

	/* A new file, whatever the descriptor was before. */
	if (command == IB_USER_VERBS_CMD_GET_CONTEXT)
		preload_uverbs_close(uverbs);
	else if (fd >= 0)
		preload_event_opened(fd, uverbs);
	*answer = (uint32_t)fd;
	return fd >= 0;
}

static struct ib_uverbs_attr *find_attr(struct ib_uverbs_ioctl_hdr *hdr, uint16_t id)
{
	for (unsigned int i = 0; i < hdr->num_attrs; i++)
		if (hdr->attrs[i].attr_id == id)
			return &hdr->attrs[i];
	return NULL;
}

static bool invokes_write(const struct ib_uverbs_ioctl_hdr *hdr)
{
	return hdr->object_id == UVERBS_OBJECT_DEVICE && hdr->method_id == UVERBS_METHOD_INVOKE_WRITE;
}

/* So short a request stands in the attribute itself. */
static bool asked_by_ioctl(int fd, struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_req_notify_cq req;
	const struct ib_uverbs_attr *command, *in;

	_Static_assert(sizeof(req) == sizeof(in->data), "it does");
	if (!invokes_write(hdr))
		return false;
	command = find_attr(hdr, UVERBS_ATTR_WRITE_CMD);
	in = find_attr(hdr, UVERBS_ATTR_CORE_IN);
	if (!command || command->data != IB_USER_VERBS_CMD_REQ_NOTIFY_CQ || !in ||
	    in->len != sizeof(req))
		return false;
	memcpy(&req, &in->data, sizeof(req));
	return ask_event(fd, &req);
}

/* A write() command inside an ioctl. */
static bool install_invoked(int fd, struct ib_uverbs_ioctl_hdr *hdr)
{
	const struct ib_uverbs_attr *command = find_attr(hdr, UVERBS_ATTR_WRITE_CMD);
	const struct ib_uverbs_attr *out = find_attr(hdr, UVERBS_ATTR_CORE_OUT);

	return !command || !out || !has_descriptor(command->data) || !preload_is_uverbs(fd) ||
	       install(fd, command->data, out->data);
}

/* An event file made by a method of its own: its number is the attribute's. */
static bool install_attr(int fd, struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_attr *attr = find_attr(hdr, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE);

	if (attr && preload_is_uverbs(fd))
		attr->data_s64 = open_event((uint32_t)attr->data);
	return !attr || attr->data_s64 >= 0;
}

/* After one that succeeded; false: it has failed after all. */
static bool after_ioctl(int fd, struct ib_uverbs_ioctl_hdr *hdr)
{
	if (invokes_write(hdr))
		return install_invoked(fd, hdr);
	if (hdr->object_id == UVERBS_OBJECT_ASYNC_EVENT &&
	    hdr->method_id == UVERBS_METHOD_ASYNC_EVENT_ALLOC)
		return install_attr(fd, hdr);
	return true;
}

/* glibc's declarations have reserved names. NOLINTBEGIN(*-inconsistent-declaration-parameter-name) */
ssize_t write(int fd, const void *buf, size_t size)
{
	uint64_t response, command;
	int saved = errno;
	ssize_t n;

	if (need_not_write(fd, buf, size) || asked_by_write(fd, buf, size)) {
		errno = saved;
		return (ssize_t)size;
	}
	errno = saved;
	if (preload_send(fd, buf, size))
		return (ssize_t)size;
	n = syscall(SYS_write, fd, buf, size);
	if (n < 0 || (size_t)n != size)
		return n;
	response = answer_of(buf, size, &command);
	if (!response || !preload_is_uverbs(fd)) {
		errno = saved;
		return n;
	}
	if (!install(fd, command, response))
		return -1;
	errno = saved;
	return n;
}

int ioctl(int fd, unsigned long request, ...)
{
	int ret, saved = errno;
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request == RDMA_VERBS_IOCTL && asked_by_ioctl(fd, arg)) {
		errno = saved;
		return 0;
	}
	errno = saved;
	ret = (int)syscall(SYS_ioctl, fd, request, arg);
	if (ret || request != RDMA_VERBS_IOCTL)
		return ret;
	if (!after_ioctl(fd, arg))
		return -1;
	errno = saved;
	return 0;
}

int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA && preload_has_tree()) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return (int)syscall(SYS_socket, domain, type, protocol);
}

/* NOLINTEND(*-inconsistent-declaration-parameter-name) */
