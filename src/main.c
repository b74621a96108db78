/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Start and stop. In the background the parent waits until the mount is ready and
 * ends with the child's verdict, so that exit status 0 means that the tree can be
 * used.
 */
#include <errno.h>
#include <ev.h>
#include <fabric/fabric.h>
#include <fcntl.h>
#include <hca/mad.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>
#include <utlist.h>

#include <ibfs/backend.h>
#include <ibfs/bell.h>
#include <ibfs/conf.h>
#include <ibfs/fs.h>
#include <ibfs/ibfs.h>
#include <ibfs/keeper.h>
#include <ibfs/loop.h>
#include <ibfs/priority.h>

#include "options.h"

#define FAREWELL	1.0	/* seconds that clients have to close their files */
#define FAREWELL_LOOK	0.01

/* What runs; stopped in reverse order of this list. */
struct daemon {
	struct ibfs ibfs;
	struct ev_signal term, interrupt;
	struct ev_timer farewell;
	double deadline;		/* 0: it isn't stopping */
	struct ev_check turn;
	struct priority priority;
	struct fuse_front *front;
	struct p9_server *p9;
};

/* The file that the log goes to, or -1: stderr or syslog; -2 on error. */
static int open_log(const struct conf *conf)
{
	int fd;

	if (!conf->log || !strcmp(conf->log, "syslog"))
		return -1;
	fd = open(conf->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0) {
		say("log file %s: %s", conf->log, strerror(errno));
		return -2;
	}
	return fd;
}

static void remove_devices(struct ibfs *ibfs)
{
	struct ibfs_device *dev, *tmp;

	DL_FOREACH_SAFE(ibfs->devices, dev, tmp)
		dev->ops->remove(dev);
}

static void farewell_cb(struct ev_loop *loop, struct ev_timer *w, int revents)
{
	struct daemon *d = w->data;

	(void)revents;
	if (!fs_verbs_in_use(&d->ibfs) || ev_now(loop) >= d->deadline)
		loop_end(&d->ibfs);
}

/*
 * Clients hear that their devices go, and can read that and ask why as long as
 * the files are there; at a second signal they aren't.
 */
static void stop_cb(struct ev_loop *loop, struct ev_signal *w, int revents)
{
	struct daemon *d = w->data;

	(void)revents;
	if (!d->deadline && fs_verbs_in_use(&d->ibfs)) {
		d->deadline = ev_now(loop) + FAREWELL;
		remove_devices(&d->ibfs);
		ev_timer_again(loop, &d->farewell);
	} else {
		loop_end(&d->ibfs);
	}
}

static void watch_signals(struct daemon *d)
{
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	/* What a limit forbids is refused, and ends nothing. */
	signal(SIGXFSZ, SIG_IGN);
	ev_signal_init(&d->term, stop_cb, SIGTERM);
	ev_signal_init(&d->interrupt, stop_cb, SIGINT);
	d->term.data = d->interrupt.data = d->farewell.data = d;
	ev_timer_init(&d->farewell, farewell_cb, 0., FAREWELL_LOOK);
	ev_signal_start(d->ibfs.loop, &d->term);
	ev_signal_start(d->ibfs.loop, &d->interrupt);
}

static void turn_cb(struct ev_loop *loop, struct ev_check *w, int revents)
{
	(void)loop;
	(void)revents;
	priority_check(w->data);
}

static void watch_priority(struct daemon *d)
{
	priority_init(&d->priority, d->ibfs.conf->realtime);
	d->ibfs.priority = &d->priority;
	ev_check_init(&d->turn, turn_cb);
	d->turn.data = &d->priority;
	ev_check_start(d->ibfs.loop, &d->turn);
	ev_unref(d->ibfs.loop);
}

static int start_services(struct ibfs *ibfs)
{
	/*
	 * The kernel gives a signal to one thread, which may be the one that sleeps in a
	 * client's page: whoever runs the loop reads it from a descriptor.
	 */
	ibfs->loop = ev_loop_new(EVFLAG_SIGNALFD);
	if (!ibfs->loop)
		return -ENOMEM;
	ibfs->tasks = taskq_new(ibfs->loop);
	ibfs->errors = textring_new(ibfs->conf->errors);
	ibfs->events = textring_new(ibfs->conf->events);
	ibfs->lock = loop_lock_new(ibfs, bells_catch_up);
	ibfs->bells = bells_new(ibfs);
	if (!ibfs->tasks || !ibfs->errors || !ibfs->events || !ibfs->lock)
		return -ENOMEM;
	textring_wake_by(ibfs->events, ibfs->tasks);
	ibfs->fabric = fabric_new(ibfs, &sim_node_ops);
	if (!ibfs->fabric)
		return -ENOMEM;
	return fs_init(ibfs);
}

static int start(struct daemon *d, const struct options *opts)
{
	struct ibfs *ibfs = &d->ibfs;
	char *err = NULL;
	int ret;

	ret = start_services(ibfs);
	if (ret) {
		say("cannot start: %s", strerror(-ret));
		return ret;
	}
	watch_signals(d);
	ret = conf_apply(ibfs, &err);
	if (ret) {
		say("%s", err ? err : strerror(-ret));
		free(err);
		return ret;
	}
	watch_priority(d);
	if (opts->num_p9 || ibfs->conf->p9.num_listen) {
		d->p9 = p9_start(ibfs, opts->p9, opts->num_p9);
		if (!d->p9)
			return -EIO;
	}
	if (!opts->mountpoint)
		return 0;
	ibfs->keeper = keeper_new(ibfs);
	d->front = fuse_front_start(ibfs, opts->mountpoint, opts->mount);
	return d->front ? 0 : -EIO;
}

static void stop(struct daemon *d)
{
	struct ibfs *ibfs = &d->ibfs;

	if (d->front)
		fuse_front_stop(d->front);
	if (d->p9)
		p9_stop(d->p9);
	remove_devices(ibfs);
	rdevs_stop(ibfs);
	if (ibfs->fabric)
		fabric_free(ibfs->fabric);
	if (ibfs->fs)
		fs_exit(ibfs);
	bells_free(ibfs->bells);
	keeper_free(ibfs->keeper);
	ibfs->keeper = NULL;
	textring_free(ibfs->errors);
	textring_free(ibfs->events);
	taskq_free(ibfs->tasks);
	if (ibfs->loop) {
		ev_signal_stop(ibfs->loop, &d->term);
		ev_signal_stop(ibfs->loop, &d->interrupt);
		ev_timer_stop(ibfs->loop, &d->farewell);
		if (ev_is_active(&d->turn)) {
			ev_ref(ibfs->loop);
			ev_check_stop(ibfs->loop, &d->turn);
		}
		loop_lock_free(ibfs->lock);
		ev_loop_destroy(ibfs->loop);
	}
	conf_free(ibfs->conf);
}

/* Of whichever thread ran the loop last. */
static void leave(struct ibfs *ibfs)
{
	stop((struct daemon *)((char *)ibfs - offsetof(struct daemon, ibfs)));
	exit(EXIT_SUCCESS);
}

/*
 * From here on messages go to the log; until now they went to whoever started
 * the daemon. In the background nothing of the terminal is kept.
 */
static void detach(struct ibfs *ibfs, bool foreground, int log_fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	ibfs->background = log_fd < 0 && (ibfs->conf->log || !foreground);
	if (ibfs->background)
		openlog("ibfs", LOG_PID, LOG_DAEMON);
	if (log_fd >= 0)
		dup2(log_fd, STDERR_FILENO);
	if (null < 0)
		return;
	if (!foreground) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		if (log_fd < 0)
			dup2(null, STDERR_FILENO);
	}
	close(null);
}

/* Tell the waiting parent, if there is one, that the mount can be used. */
static bool tell_ready(int ready)
{
	bool told;

	if (ready < 0)
		return true;
	told = chdir("/") == 0 && write(ready, "", 1) == 1;
	close(ready);
	return told;
}

/* Payload comes and goes in large pieces: memory that was fetched once isn't given back each time. */
static void keep_memory(void)
{
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
	mallopt(M_MMAP_THRESHOLD, 16 << 20);
}

static int run(const struct options *opts, struct conf *conf, int ready)
{
	struct daemon d = { .ibfs = { .conf = conf, .leave = leave } };
	int log_fd = open_log(conf);
	int ret = EXIT_FAILURE;

	keep_memory();
	if (log_fd > -2 && start(&d, opts) == 0) {
		detach(&d.ibfs, opts->foreground, log_fd);
		if (tell_ready(ready)) {
			offload_run_loop(&d.ibfs);
			ret = EXIT_SUCCESS;
		}
	}
	stop(&d);
	if (log_fd >= 0)
		close(log_fd);
	return ret;
}

/* The parent's part: success when the child has mounted, else the child's own status. */
static int wait_until_ready(int ready, pid_t child)
{
	ssize_t got;
	char byte;
	int status;

	do {
		got = read(ready, &byte, 1);
	} while (got < 0 && errno == EINTR);
	close(ready);
	if (got == 1)
		return EXIT_SUCCESS;
	if (waitpid(child, &status, 0) == child && WIFEXITED(status))
		return WEXITSTATUS(status);
	say("the daemon died while it started");
	return EXIT_FAILURE;
}

static int run_in_background(const struct options *opts, struct conf *conf)
{
	int ready[2];
	pid_t child;

	if (pipe2(ready, O_CLOEXEC)) {
		say("cannot start: %s", strerror(errno));
		conf_free(conf);
		return EXIT_FAILURE;
	}
	child = fork();
	if (child == 0) {
		close(ready[0]);
		setsid();
		return run(opts, conf, ready[1]);
	}
	close(ready[1]);
	conf_free(conf);
	if (child < 0) {
		say("cannot start: %s", strerror(errno));
		close(ready[0]);
		return EXIT_FAILURE;
	}
	return wait_until_ready(ready[0], child);
}

static int read_conf_and_run(struct options *opts)
{
	struct conf *conf;
	char *err;

	conf = conf_read(opts->conf, &err);
	if (!conf) {
		say("%s", err ? err : strerror(ENOMEM));
		free(err);
		return EXIT_FAILURE;
	}
	if (!opts->name && !opts->num_p9 && !conf->p9.num_listen) {
		say("no MOUNTPOINT, and no --9p: nothing to do");
		conf_free(conf);
		return EXIT_USAGE;
	}
	if (opts->foreground)
		return run(opts, conf, -1);
	return run_in_background(opts, conf);
}

/* Every client has some of the daemon's descriptors: as many as it may have. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	struct options opts = { 0 };
	int status;

	if (argc == 1 && !strcmp(argv[0], KEEPER_NAME))
		return keeper_main();
	if (options_parse(argc, argv, &opts, &status)) {
		status = EXIT_FAILURE;
		raise_file_limit();
		if (options_check_mountpoint(&opts) == 0)
			status = read_conf_and_run(&opts);
	}
	options_free(&opts);
	return status;
}
