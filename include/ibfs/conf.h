/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration, ibfs.conf(5): what a file or the defaults say, checked as
 * far as that can be done without a fabric. Strings belong to struct conf.
 */
#ifndef IBFS_CONF_H
#define IBFS_CONF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ibfs;

/* A node that the file itself describes (`switches`, `hcas`). */
struct conf_node {
	const char *where;		/* "file:line", for errors */
	const char *name;		/* its id in the topology */
	const char *desc;		/* NULL: the name */
	bool is_switch;
	unsigned int ports;
	uint64_t guid;			/* 0: the next free one */
};

/* One end of a link: node "name", port n. */
struct conf_end {
	const char *node;
	unsigned int port;
};

struct conf_link {
	const char *where;
	struct conf_end a, b;
	unsigned int width;		/* WIDTH_*, 0: all that both ends have */
	unsigned int speed, speed_ext;	/* SPEED_*, both 0: likewise */
};

struct conf_device {
	const char *where;
	const char *name;		/* in the tree */
	const char *node;		/* id in the topology; verbs: the system's name */
	bool verbs;			/* a device of the system */
};

/* Owner and modes of the device files. */
struct conf_files {
	uid_t uid;
	gid_t gid;
	mode_t umad, issm, uverbs, clone;
};

/* The 9P server. */
struct conf_p9 {
	const char **listen;		/* addresses, as of --9p; checked */
	unsigned int num_listen;
	mode_t mode;			/* of unix sockets */
	uid_t tcp_uid;			/* whom all TCP clients act as */
	gid_t tcp_gid;
	bool remote;			/* TCP not only on the loopback */
	bool read_only;
	unsigned int msize, connections;
	unsigned int fids, tags;	/* of a connection */
	unsigned int memory;		/* MiB that a user, but root, may register over 9P */
};

struct conf {
	bool subnet_manager;		/* subnet = "sm": ports wait in INIT for one */
	bool verbs;			/* all devices of the system are devices */
	bool default_fabric;		/* no topology, nodes or links: fabric_default() */
	const char *topology;		/* path, NULL: none */
	const char *topology_where;
	struct conf_node *nodes;
	struct conf_link *links;
	struct conf_device *devices;
	unsigned int num_nodes, num_links, num_devices;
	bool has_devices;		/* the file has a list of devices, perhaps an empty one */
	struct conf_files files;
	struct conf_p9 p9;
	const char *log;		/* path of a file, "syslog", or NULL: stderr or syslog */
	bool passthrough;		/* files may be mapped by FUSE passthrough */
	bool realtime;			/* the engine may be SCHED_FIFO */
	bool bells;			/* doorbells may be rung by futex */
	unsigned int errors, events;	/* lines that the files of these names keep */
	/* what a user other than root may have; 0: a share of what there is */
	unsigned int user_objects;	/* of each kind of verbs' resources and the like */
	unsigned int user_files;	/* and 9P's fids */
	unsigned int user_memory;	/* MiB */
	unsigned int user_descriptors, user_mappings, user_connections;
	unsigned int reserve;		/* per cent of those three that are root's alone */
	void *priv;
};

/*
 * Read a file; with NULL, only the defaults: a switch and two HCAs, rxe0 and
 * rxe1. NULL on error, with one line ("file:line: what was expected") in *err,
 * which the caller frees.
 */
struct conf *conf_read(const char *file, char **err);
void conf_free(struct conf *conf);

/*
 * Make what the configuration says: nodes, links, the static subnet, devices.
 * ibfs->conf and ibfs->fabric are there. 0, or -errno and *err as above.
 */
int conf_apply(struct ibfs *ibfs, char **err);

#endif
