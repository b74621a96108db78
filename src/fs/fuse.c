/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The FUSE front end, on libfuse's low-level API: kernel requests become
 * fs_*() calls, their results replies. Here is its session with the kernel.
 *
 * While clients keep it busy it reads /dev/fuse again without asking the event
 * loop, up to a budget; deferred work runs between two requests.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <ibfs/conf.h>
#include <ibfs/loop.h>

#include "fs/fuse_front.h"

enum { BUDGET = 64 };		/* requests in one turn of the event loop */

/* What the tree has no use for is not permitted, rather than not implemented. */
static void op_mknod(fuse_req_t fuse, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	(void)parent;
	(void)name;
	(void)mode;
	(void)rdev;
	fuse_reply_err(fuse, EPERM);
}

static void op_unlink(fuse_req_t fuse, fuse_ino_t parent, const char *name)
{
	(void)parent;
	(void)name;
	fuse_reply_err(fuse, EPERM);
}

static void op_symlink(fuse_req_t fuse, const char *link, fuse_ino_t parent, const char *name)
{
	(void)link;
	(void)parent;
	(void)name;
	fuse_reply_err(fuse, EPERM);
}

static void op_rename(fuse_req_t fuse, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
		      const char *newname, unsigned int flags)
{
	(void)parent;
	(void)name;
	(void)newparent;
	(void)newname;
	(void)flags;
	fuse_reply_err(fuse, EPERM);
}

/*
 * What libfuse asks for by itself is not what this file system wants. ASYNC_DIO lets a
 * request come whose caller doesn't wait for it (io_submit), while clients are called
 * back in the belief that they do; splicing small requests costs more than copying
 * them; the others are for pages that are cached, which none of ours are.
 */
static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	(void)userdata;
	conn->want = conn->capable & (FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_PARALLEL_DIROPS);
	/*
	 * RELEASEs are the only background requests. A program with thousands of open
	 * files may end: no more of them than these are ahead of others' requests.
	 */
	conn->max_background = 32;
	conn->congestion_threshold = 32;
}

static const struct fuse_lowlevel_ops front_ops = {
	.init = op_init,
	.lookup = front_lookup,
	.getattr = front_getattr,
	.setattr = front_setattr,
	.mknod = op_mknod,
	.mkdir = front_mkdir,
	.unlink = op_unlink,
	.rmdir = front_rmdir,
	.symlink = op_symlink,
	.rename = op_rename,
	.open = front_open,
	.read = front_read,
	.write = front_write,
	.release = front_release,
	.readdir = front_readdir,
	.ioctl = front_ioctl,
	.poll = front_poll,
};

static ssize_t hook_read(int fd, void *buf, size_t len, void *userdata)
{
	struct fuse_front *front = userdata;
	ssize_t n = read(fd, buf, len);

	if (n > 0 && !front->passthrough.answered)
		passthrough_request(&front->passthrough, buf, n);
	return n;
}

static ssize_t hook_writev(int fd, struct iovec *iov, int count, void *userdata)
{
	struct fuse_front *front = userdata;

	if (!front->passthrough.answered)
		passthrough_reply(&front->passthrough, iov, count);
	return writev(fd, iov, count);
}

static const struct fuse_custom_io front_hooks = {
	.read = hook_read,
	.writev = hook_writev,
};

static void front_io(struct ev_loop *loop, struct ev_io *w, int revents)
{
	struct fuse_front *front = w->data;
	unsigned int i;
	int ret;

	(void)revents;
	for (i = 0; i < BUDGET; i++) {
		ret = fuse_session_receive_buf(front->se, &front->buf);
		if (ret == -EAGAIN)
			return;
		if (ret == -EINTR)
			continue;
		if (ret <= 0) {
			front->unmounted = true;
			ev_io_stop(loop, w);
			loop_end(front->ibfs);
			return;
		}
		fuse_session_process_buf(front->se, &front->buf);
		taskq_run(front->ibfs->tasks);
	}
}

/* The caller's options come last: what contradicts ours wins. */
static struct fuse_session *session_new(struct fuse_front *front, const char *options)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *se = NULL;
	const char *ours;

	ours = geteuid() ? "fsname=ibfs,subtype=ibfs,default_permissions" :
			   "fsname=ibfs,subtype=ibfs,default_permissions,allow_other,nosuid,nodev";
	if (fuse_opt_add_arg(&args, "ibfs") || fuse_opt_add_arg(&args, "-o") ||
	    fuse_opt_add_arg(&args, ours))
		goto out;
	if (options && (fuse_opt_add_arg(&args, "-o") || fuse_opt_add_arg(&args, options)))
		goto out;
	se = fuse_session_new(&args, &front_ops, sizeof(front_ops), front);
out:
	fuse_opt_free_args(&args);
	return se;
}

static void unmounted(struct mountwatch *watch)
{
	struct fuse_front *front =
		(struct fuse_front *)((char *)watch - offsetof(struct fuse_front, mountwatch));

	front->unmounted = true;
	loop_end(front->ibfs);
}

struct fuse_front *fuse_front_start(struct ibfs *ibfs, const char *mountpoint, const char *options)
{
	struct fuse_front *front = calloc(1, sizeof(*front));
	int fd;

	if (!front)
		goto err_memory;
	front->ibfs = ibfs;
	front->data = malloc(FRONT_READ_SIZE);
	if (!front->data)
		goto err_front;
	front->se = session_new(front, options);
	if (!front->se)
		goto err_data;
	if (fuse_session_mount(front->se, mountpoint))
		goto err_session;
	fd = fuse_session_fd(front->se);
	if (fuse_session_custom_io(front->se, &front_hooks, fd) ||
	    fcntl(fd, F_SETFL, O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC)) {
		ibfs_log(ibfs, "cannot mount on %s", mountpoint);
		goto err_mount;
	}
	passthrough_init(&front->passthrough, fd, ibfs->conf->passthrough);
	ev_io_init(&front->io, front_io, fd, EV_READ);
	front->io.data = front;
	front_files_init(front);
	ev_io_start(ibfs->loop, &front->io);
	mountwatch_start(&front->mountwatch, ibfs->loop, mountpoint, unmounted);
	return front;
err_mount:
	fuse_session_unmount(front->se);
err_session:
	fuse_session_destroy(front->se);
err_data:
	free(front->data);
	free(front);
	return NULL;
err_front:
	free(front);
err_memory:
	ibfs_log(ibfs, "cannot mount: %s", strerror(ENOMEM));
	return NULL;
}

/*
 * End the connection, so that libfuse sees an error on its descriptor and
 * doesn't unmount, and complain of, what is no longer mounted: something else
 * takes the descriptor's place.
 */
static void abandon(int fd)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return;
	close(ends[0]);
	dup3(ends[1], fd, O_CLOEXEC);
	close(ends[1]);
}

void fuse_front_stop(struct fuse_front *front)
{
	mountwatch_stop(&front->mountwatch, front->ibfs->loop);
	ev_io_stop(front->ibfs->loop, &front->io);
	front_reqs_cancel(front);
	front_files_free(front);
	front_reqs_free(front);
	/* A file that goes may have had others told of it. */
	ev_idle_stop(front->ibfs->loop, &front->idle);
	passthrough_free(&front->passthrough);
	if (front->unmounted)
		abandon(fuse_session_fd(front->se));
	fuse_session_unmount(front->se);
	fuse_session_destroy(front->se);
	free(front->buf.mem);
	free(front->data);
	free(front);
}
