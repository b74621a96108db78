/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 9P messages: 9P2000 (Plan 9's intro(5)) and 9P2000.L (diod's protocol.md, Linux's
 * net/9p). One table says of what each message consists; this codec walks it in
 * both directions and knows no connection and no file. All numbers on the wire
 * are little endian.
 */
#ifndef IBFS_FS_9P_H
#define IBFS_FS_9P_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum p9_type {
	P9_TLERROR = 6, P9_RLERROR,
	P9_TSTATFS = 8, P9_RSTATFS,
	P9_TLOPEN = 12, P9_RLOPEN,
	P9_TLCREATE = 14, P9_RLCREATE,
	P9_TSYMLINK = 16, P9_RSYMLINK,
	P9_TMKNOD = 18, P9_RMKNOD,
	P9_TRENAME = 20, P9_RRENAME,
	P9_TREADLINK = 22, P9_RREADLINK,
	P9_TGETATTR = 24, P9_RGETATTR,
	P9_TSETATTR = 26, P9_RSETATTR,
	P9_TXATTRWALK = 30, P9_RXATTRWALK,
	P9_TXATTRCREATE = 32, P9_RXATTRCREATE,
	P9_TREADDIR = 40, P9_RREADDIR,
	P9_TFSYNC = 50, P9_RFSYNC,
	P9_TLOCK = 52, P9_RLOCK,
	P9_TGETLOCK = 54, P9_RGETLOCK,
	P9_TLINK = 70, P9_RLINK,
	P9_TMKDIR = 72, P9_RMKDIR,
	P9_TRENAMEAT = 74, P9_RRENAMEAT,
	P9_TUNLINKAT = 76, P9_RUNLINKAT,
	P9_TVERSION = 100, P9_RVERSION,
	P9_TAUTH = 102, P9_RAUTH,
	P9_TATTACH = 104, P9_RATTACH,
	P9_TERROR = 106, P9_RERROR,
	P9_TFLUSH = 108, P9_RFLUSH,
	P9_TWALK = 110, P9_RWALK,
	P9_TOPEN = 112, P9_ROPEN,
	P9_TCREATE = 114, P9_RCREATE,
	P9_TREAD = 116, P9_RREAD,
	P9_TWRITE = 118, P9_RWRITE,
	P9_TCLUNK = 120, P9_RCLUNK,
	P9_TREMOVE = 122, P9_RREMOVE,
	P9_TSTAT = 124, P9_RSTAT,
	P9_TWSTAT = 126, P9_RWSTAT,
	P9_TYPES = 128,
};

/* A connection's protocol, as bits: a message may belong to both. */
enum p9_dialect {
	P9_NONE		= 0,		/* before Tversion */
	P9_2000		= 1 << 0,
	P9_DOTL		= 1 << 1,
};

enum {
	P9_HEADER	= 7,		/* size[4] type[1] tag[2] */
	P9_DATA_HEADER	= P9_HEADER + 4,	/* of Rread and Rreaddir: and count[4] */
	P9_IOHDRSZ	= 24,		/* what clients subtract from msize for data */
	P9_MAXWELEM	= 16,
	P9_QID_SIZE	= 13,
	P9_MIN_MSIZE	= 512,
};
#define P9_NOTAG	0xffff
#define P9_NOFID	0xffffffffU
#define P9_NONUNAME	0xffffffffU

enum { P9_QTDIR = 0x80, P9_QTFILE = 0 };

/* Text in a message: len bytes, not terminated; of the message's own memory. */
struct p9_str {
	const char *text;
	uint16_t len;
};

struct p9_qid {
	uint8_t type;
	uint32_t version;
	uint64_t path;
};

/* Every field that any message has; a message uses those that the table says. */
struct p9_msg {
	uint8_t type;
	uint8_t mode;			/* Topen, Tcreate */
	uint8_t lock;			/* lock type; Rlock's status */
	uint16_t tag, oldtag;
	uint16_t num_names, num_qids;
	uint32_t msize, fid, newfid, afid, n_uname;
	uint32_t flags, perm, iounit, count, gid, uid, ecode, valid, proc_id;
	uint32_t major, minor, bsize, fs_type, name_max;
	uint64_t offset, mask, length;
	struct p9_attr {		/* in Rgetattr's order */
		uint64_t nlink, rdev, size, blksize, blocks;
		uint64_t atime[2], mtime[2], ctime[2], btime[2];
		uint64_t gen, data_version;
	} attr;
	uint64_t times[4];		/* Tsetattr: atime, mtime */
	uint64_t space[6];		/* Rstatfs: blocks bfree bavail files ffree fsid */
	struct p9_str version, uname, aname, name, newname;
	struct p9_str names[P9_MAXWELEM];
	struct p9_qid qid, qids[P9_MAXWELEM];
	const void *data;		/* count bytes */
	struct p9_str stat;		/* without its own outer length */
};

/* "Twalk"; NULL: there is no such message. */
const char *p9_name(uint8_t type);
/* Is it a request that this dialect has? */
bool p9_is_request(uint8_t type, enum p9_dialect dialect);

/*
 * A whole message of len bytes (its size field was checked) into *msg, whose
 * strings and data stay in buf. -EPROTO: too short, too long, more than
 * P9_MAXWELEM names, or an unknown type.
 */
int p9_decode(const void *buf, size_t len, struct p9_msg *msg);
/* msg into buf; its length, or 0 if it doesn't fit in room. */
size_t p9_encode(const struct p9_msg *msg, void *buf, size_t room);

void p9_put_u16(uint8_t *at, uint16_t value);
void p9_put_u32(uint8_t *at, uint32_t value);
void p9_put_u64(uint8_t *at, uint64_t value);
void p9_put_qid(uint8_t *at, const struct p9_qid *qid);
uint16_t p9_get_u16(const uint8_t *at);
uint32_t p9_get_u32(const uint8_t *at);
uint64_t p9_get_u64(const uint8_t *at);
/* The header of a message whose whole length is size. */
void p9_put_header(uint8_t *at, uint32_t size, uint8_t type, uint16_t tag);

#endif
