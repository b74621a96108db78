/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's one root object, and the few services that every part uses:
 * deferred work, the text of recent errors and the stream of events.
 * Nothing here knows a file, a packet or a device's inside.
 */
#ifndef IBFS_IBFS_H
#define IBFS_IBFS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bells;
struct ev_loop;
struct cm_port;
struct conf;
struct fabric;
struct fs;
struct follow;
struct ibfs_device;
struct ipoib;
struct keeper;
struct loop_lock;
struct offload;
struct poller;
struct priority;
struct rdevs;
struct sa_member;
struct taskq;
struct textring;

#define IBFS_VERSION "0.1"

struct ibfs {
	struct ev_loop *loop;
	bool ended;			/* the loop: loop_end() */
	struct loop_lock *lock;		/* of all that is here; NULL: the loop has one thread */
	struct bells *bells;		/* NULL: none are heard */
	struct keeper *keeper;		/* ends what spins if the daemon dies; NULL: there is none */
	struct conf *conf;
	struct taskq *tasks;
	struct fabric *fabric;		/* soft devices and simulated nodes */
	struct ibfs_device *devices;	/* utlist, in order of their number */
	struct ibfs_device *device_names;	/* uthash */
	struct ibfs_device **device_slots;	/* by number, next_device of them at most */
	unsigned int num_devices, next_device;
	struct rdevs *rdevs;		/* the system's devices, of the verbs backend; NULL: none wanted */
	struct fs *fs;
	struct priority *priority;	/* of the loop's thread; NULL: as it is */
	struct offload *offload;	/* made at its first use */
	/* The loop ended while the thread that began it is stuck: end the program. NULL: wait. */
	void (*leave)(struct ibfs *ibfs);
	struct follow *follow;		/* NULL: no client is followed */
	struct poller *poller;		/* of the soft HCAs' rings, while there are any */
	struct ipoib *ipoibs;		/* IP interfaces, utlist, in order of their number */
	uint32_t next_ipoib;
	struct sa_member *sa_members;	/* of multicast groups, utlist */
	struct cm_port *cm_ports;	/* ports that somebody connects by or listens at, utlist */
	struct textring *errors;	/* why recent requests failed */
	struct textring *events;	/* asynchronous events of all devices */
	bool background;		/* the log goes to syslog */
	struct failure {		/* the last that ibfs_fail() was told of */
		uint64_t count;		/* of all */
		int err;		/* positive */
		char why[512];
	} failed;
};

/*
 * Deferred work. What is called from a packet's arrival must not send the next
 * packet of a conversation itself (the stack would grow with the conversation):
 * it queues a task, which runs from the event loop before it sleeps, and
 * between two requests of a front end. Intrusive; a task may be queued again
 * from its own function. task_cancel() of an idle task does nothing.
 */
struct task {
	struct task *prev, *next;
	void (*fn)(struct task *task);
};

struct taskq *taskq_new(struct ev_loop *loop);
void taskq_free(struct taskq *q);
void task_queue(struct taskq *q, struct task *task);
void task_cancel(struct taskq *q, struct task *task);
/* Run what is queued now (not what gets queued meanwhile); true if more waits. */
bool taskq_run(struct taskq *q);
/* Is this task queued, and no other? */
bool taskq_only(const struct taskq *q, const struct task *task);

/*
 * A ring of recent text lines with one consecutive number each. Readers keep
 * the number of the line that they want next; lines that were overwritten
 * before a slow reader came are skipped.
 */
struct textring_reader {
	struct textring_reader *prev, *next;
	uint64_t seq;			/* of the next line to read */
	void (*wake)(struct textring_reader *reader);
};

struct textring *textring_new(unsigned int lines);
/* From here on many readers are woken by tasks, some at a time; else all at once. */
void textring_wake_by(struct textring *ring, struct taskq *tasks);
void textring_free(struct textring *ring);
void textring_add(struct textring *ring, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void textring_vadd(struct textring *ring, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
/* From now on (or, with backlog, from the oldest kept line). */
void textring_attach(struct textring *ring, struct textring_reader *reader,
		     bool backlog);
void textring_detach(struct textring *ring, struct textring_reader *reader);
/* The number of the line to come. */
uint64_t textring_end(const struct textring *ring);
/* The reader's next line without newline, or NULL; *reader moves on. */
const char *textring_next(struct textring *ring, struct textring_reader *reader);

/*
 * Note why a request failed, in words, for the `errors` file; returns -err so
 * that a caller can write: return ibfs_fail(ibfs, EINVAL, "no port %u", n);
 */
int ibfs_fail(struct ibfs *ibfs, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* A line for the daemon's log (stderr, or syslog when in the background). */
void ibfs_log(struct ibfs *ibfs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
