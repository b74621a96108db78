/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PORT/peer/: the fabric as directories, each answered by MADs. A place is a
 * node as one reaches it, by cable from a port of a place before it; the same
 * node by another way is another place.
 *
 *	peer.c		places, and the directories
 *	peer_mad.c	what a place is asked, and its answers, kept for a moment
 *	peer_text.c	the files
 *	peer_counter.c	counters/ of a far port
 */
#ifndef IBFS_FS_PEER_H
#define IBFS_FS_PEER_H

#include <uthash.h>

#include "fs/madonce.h"
#include "fs/tree.h"

enum {
	PEER_HOPS = 63,			/* of a directed route, IBA 14.2.1.2 */
	PEER_PLACES = 65536,		/* remembered; the ones that were longest unused go */
};

/* attribute ids, IBA 14.2.5 and 16.1.3 */
enum {
	ATTR_NODE_DESC = 0x10, ATTR_NODE_INFO = 0x11, ATTR_PORT_INFO = 0x15,
	ATTR_PORT_COUNTERS = 0x12, ATTR_PORT_COUNTERS_EXT = 0x1d,
};
enum { METHOD_GET = 1, METHOD_SET = 2, CLASS_PERF = 0x04, CLASS_DIRECTED = 0x81 };
enum { NODE_IS_SWITCH = 2 };		/* NodeInfo:NodeType */

/* By what port of what place one comes to a place; place 0: a port of the device itself. */
struct peer_way {
	uint32_t place;
	uint16_t dev;
	uint8_t port;
};

struct peer_place {
	struct peer_place *prev, *next;	/* by use, the last used first */
	UT_hash_handle by_num, by_key;
	uint32_t num;
	struct peer_way way;
	uint64_t key;			/* way, packed */
	struct peer_place *parent;	/* NULL: way.place is 0 */
	unsigned int children;
	unsigned int depth;		/* cables on the way here */
	uint8_t port;			/* of the device, that MADs leave by */
	uint8_t hops;
	bool reachable;			/* by a directed route */
	bool cable;			/* that is up, as of the last time that it was asked */
	uint8_t route[PEER_HOPS + 1];	/* route[1..hops], as in an SMP */
	uint8_t entry;			/* the cable's port here, if not NodeInfo:LocalPortNum; or 0 */
	uint64_t guid;			/* NodeInfo:NodeGUID as of the last answer; 0: none */
};

struct peer_answer;

/* fs' part of it, fs->peers; made at its first use. */
struct peers {
	struct ibfs *ibfs;
	struct peer_place *by_num, *by_key, *places;
	struct peer_answer *by_question, *answers;
	uint32_t next_num;
};

struct peers *peers_get(struct ibfs *ibfs);		/* NULL: no memory */
/* A place by its number, or NULL: it was forgotten. */
struct peer_place *peer_place(struct ibfs *ibfs, uint32_t num);
/*
 * The place that path, a KIND_PEER, is; NULL and errno: ENOENT (no node can be
 * there, or it is not known yet what the place before it is), ENOMEM.
 */
struct peer_place *peer_place_at(struct ibfs *ibfs, struct path path);

enum {				/* sub of KIND_PEER_TEXT and KIND_PEER_PORT_TEXT */
	PEER_TEXT_DESC, PEER_TEXT_GUID, PEER_TEXT_TYPE, PEER_TEXT_ATTR, PEER_TEXT_STATE,
	PEER_TEXT_LID,
};

/* What one may ask a place: an attribute, with its modifier or PMA's port. */
struct peer_question {
	uint8_t mgmt_class;
	uint16_t attr;
	uint32_t mod;
};

/*
 * The answer's data (64 bytes of SMPs, 192 of PMA's), in *data until the next
 * call. 0; -errno: ETIMEDOUT, EREMOTEIO (a status), EHOSTUNREACH (no LID),
 * ENODEV; or FS_PENDING: req waits and resume(req) is called when it makes sense
 * to ask again. What was answered less than half a second ago, or since the
 * request first asked, is not asked again.
 */
ssize_t peer_ask(struct fs_req *req, struct peer_place *place, struct peer_question question,
		 void (*resume)(struct fs_req *req), const uint8_t **data);
/* The same of what has been answered, however long ago; NULL: it wasn't. */
const uint8_t *peer_known(struct ibfs *ibfs, const struct peer_place *place,
			  struct peer_question question);
/* For resume: the front end asks again. */
void peer_try_again(struct fs_req *req);
/*
 * PortCounters or -Extended set to 0 where data, 192 bytes, selects: result, or
 * -errno; or FS_PENDING: req is answered so when it is done, or resume(req) called
 * when it makes sense to try again.
 */
ssize_t peer_clear(struct fs_req *req, struct peer_place *place, struct peer_question question,
		   const uint8_t *data, ssize_t result, void (*resume)(struct fs_req *req));

/* Nothing more is asked, nobody waits any more. */
void peer_answers_free(struct peers *peers);

/* The content of an open file, as of its last read from 0 on. */
struct peer_text {
	struct textbuf text;
	bool printed;
	off_t off;			/* of the read that waits */
};
/*
 * The read of a text file whose content print() asks for, with this resume: 0,
 * -errno or FS_PENDING. print is called again when that is over.
 */
ssize_t peer_text_read(struct file *file, struct fs_req *req, void *buf, size_t size, off_t off,
		       ssize_t (*print)(struct fs_req *req, struct peer_place *place,
					void (*resume)(struct fs_req *), struct textbuf *out));
void peer_text_release(struct file *file);

#define PEER_NODE_INFO	((struct peer_question){ CLASS_DIRECTED, ATTR_NODE_INFO, 0 })
#define PEER_NODE_DESC	((struct peer_question){ CLASS_DIRECTED, ATTR_NODE_DESC, 0 })
#define PEER_PORT_INFO(port) ((struct peer_question){ CLASS_DIRECTED, ATTR_PORT_INFO, port })

#endif
