/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of the topology file reader share: the state of one load, the
 * few tokens that the format has, and errors that name a place. Private to
 * topology*.c.
 */
#ifndef IBFS_FABRIC_TOPOLOGY_H
#define IBFS_FABRIC_TOPOLOGY_H

#include "fabric/fabric.h"

#include <sys/types.h>

#define TOPO_PREFIX_MAX	20		/* ibsim's NODEPREFIX */
#define TOPO_ID_MAX	128		/* prefix, '#' and id */
#define TOPO_DEPTH_MAX	9		/* ibsim's MAX_INCLUDE */
#define TOPO_FILES_MAX	4096		/* includes in all: small files can't explode */

struct topo_chunk;
struct topo_verb;

struct topo_place {
	const char *file;
	unsigned int line;
};

/* What a record says of one of its ports. */
struct topo_decl {
	struct topo_place place;	/* line 0: nothing is said */
	const char *remote;		/* the other end's id or alias; NULL: an alias line */
	uint64_t remote_guid;		/* 0: not given */
	uint8_t remote_port;
	bool remote_is_alias;
	bool guid_given;
};

/* A record: by node->index. */
struct topo_node {
	struct topo_place place;
	struct topo_decl *decls;	/* by port number */
};

struct topo_alias {
	struct port *port;
	struct topo_place place;
	const char *name;		/* "prefix@alias" */
	UT_hash_handle hh;
};

/* A port that a console command names: port -1 is the whole node. */
struct topo_name {
	const char *name;		/* expanded */
	bool is_alias;
	int port;
};

/* A console command of ibsim ("do ..."): runs when all links are made. */
struct topo_cmd {
	struct topo_cmd *prev, *next;
	struct topo_place place;
	const struct topo_verb *verb;
	struct topo_name names[2];
	char *args;			/* the rest of the line */
};

struct topo_file {
	struct topo_file *parent;
	struct topo_place place;	/* of the line being read */
	FILE *in;
	dev_t dev;
	ino_t ino;
};

/* Defaults for the guids of one type of node: "caguid=" and the like. */
struct topo_guids {
	uint64_t base, next;
	uint64_t port_guid;		/* of a switch's port 0, for the next one only; 0: as the node */
	bool set;
};

struct topo {
	struct fabric *fabric;
	char **err;
	struct topo_file *file;
	struct topo_chunk *pool;
	unsigned int files;

	struct node *open;		/* whose record is being read */
	struct topo_node *nodes;
	unsigned int size_nodes, first_node, num_nodes;
	struct topo_alias *aliases;
	struct topo_cmd *cmds;

	char prefix[TOPO_PREFIX_MAX + 1];
	struct topo_guids guids[4];	/* by node type */
	uint64_t sysimg_guid;
	uint32_t vendor_id;
	uint16_t device_id;
	bool vendor_given, device_given;
	uint8_t width, speed, speed_ext;
};

/* topology.c: where the reader is; messages; memory that lives as long as the load */
int topo_fail(struct topo *topo, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int topo_fail_at(struct topo *topo, struct topo_place place, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int topo_nomem(struct topo *topo);
void *topo_alloc(struct topo *topo, size_t size);
char *topo_strdup(struct topo *topo, const char *text);
struct topo_decl *topo_decl(struct topo *topo, const struct port *port);

/*
 * topology_lex.c: tokens. All take what they read off *s. Numbers are C's
 * (0x.., 0.., decimal). 0 or -EINVAL with the message made.
 */
char *topo_skip(char *s);
bool topo_take(char **s, const char *text);
int topo_number(struct topo *topo, char **s, const char *what, uint64_t min, uint64_t max,
		uint64_t *val);
int topo_guid(struct topo *topo, char **s, uint64_t *guid);	/* "(hex)" */
int topo_quoted(struct topo *topo, char **s, const char *what, char **val);
int topo_end(struct topo *topo, const char *s);			/* nothing or a comment is left */
/* A name of another node, with this module's prefix: id or "prefix@alias". */
int topo_expand(struct topo *topo, const char *name, const char **full, bool *is_alias);
/* Text from a file, fit to stand in a message: in buf, or a constant. */
const char *topo_show(char buf[48], const char *text);

/* topology_node.c: "Switch", "Ca", ... and what stands before them */
int topo_parse_node(struct topo *topo, char *s, int type);
int topo_parse_guid(struct topo *topo, char *s, int type);
/* topology_port.c: "[1] ..." and "@[1] ..." */
int topo_parse_port(struct topo *topo, char *s);
/* topology_do.c: "do ..." */
int topo_parse_do(struct topo *topo, char *s, int unused);
int topo_run_cmds(struct topo *topo);
/* topology_link.c: when all files are read */
int topo_connect(struct topo *topo);
int topo_check_guids(struct topo *topo);
/* Plug a cable in or say why not; a cable that hangs loose gives way. */
int topo_link_ports(struct topo *topo, struct topo_place place, struct port *a, struct port *b);

/* Masks for what a link's comment ("4xEDR") and the dump call it; topology_speed.c. */
struct speed_name {
	const char *name;
	uint8_t speed, ext;		/* enabled masks */
};
struct width_name {
	unsigned int lanes;
	uint8_t width;
};
const struct speed_name *speed_by_name(const char *name);
const struct width_name *width_by_lanes(unsigned int lanes);
/* Of one active width or speed. */
const char *speed_active_name(uint8_t speed, uint8_t ext);
const char *width_active_name(uint8_t width);
/* Set a port's enabled masks, and what it supports to fit. */
void port_enable(struct port *port, uint8_t width, uint8_t speed, uint8_t ext);

#endif
