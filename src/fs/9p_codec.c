/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of 9P as a table, and what walks it: intro(5) of Plan 9's
 * manual for 9P2000, diod's protocol.md for 9P2000.L. Touches no connection.
 */
#include <errno.h>
#include <string.h>

#include "fs/9p.h"

/* What a field is on the wire. */
enum wire {
	U8, U16, U32, U64,
	U64S,		/* several, count of them */
	STR,		/* len[2] text */
	QID,
	NAMES, QIDS,	/* n[2] and as many */
	DATA,		/* count[4] and as many bytes: p9_msg.count, .data */
	STAT,		/* n[2] and as many bytes */
	U32_IF_ANY,	/* the last field: ~0 where older clients leave it out */
};

enum field {
	END, MSIZE, VERSION, AFID, UNAME, ANAME, N_UNAME, FID, NEWFID, OLDTAG, WNAMES, WQIDS, MODE,
	AQID, IOUNIT, NAME, NEWNAME, PERM, OFFSET, COUNT, BYTES, ENTRY, ERROR, FLAGS, GID, UID,
	MAJOR, MINOR, MASK, VALID, LENGTH, ATTR, SIZE, TIMES, FS_TYPE, BSIZE, SPACE, NAME_MAX,
	LOCK, START, PROC_ID, DATASYNC, FIELDS,
};

#define AT(member) offsetof(struct p9_msg, member)

static const struct {
	uint8_t wire, count;
	uint16_t at;
} fields[FIELDS] = {
	[MSIZE] = { U32, 1, AT(msize) },
	[VERSION] = { STR, 1, AT(version) },
	[AFID] = { U32, 1, AT(afid) },
	[UNAME] = { STR, 1, AT(uname) },
	[ANAME] = { STR, 1, AT(aname) },
	[N_UNAME] = { U32_IF_ANY, 1, AT(n_uname) },
	[FID] = { U32, 1, AT(fid) },
	[NEWFID] = { U32, 1, AT(newfid) },
	[OLDTAG] = { U16, 1, AT(oldtag) },
	[WNAMES] = { NAMES, P9_MAXWELEM, AT(names) },
	[WQIDS] = { QIDS, P9_MAXWELEM, AT(qids) },
	[MODE] = { U8, 1, AT(mode) },
	[AQID] = { QID, 1, AT(qid) },
	[IOUNIT] = { U32, 1, AT(iounit) },
	[NAME] = { STR, 1, AT(name) },
	[NEWNAME] = { STR, 1, AT(newname) },
	[PERM] = { U32, 1, AT(perm) },
	[OFFSET] = { U64, 1, AT(offset) },
	[COUNT] = { U32, 1, AT(count) },
	[BYTES] = { DATA, 1, AT(data) },
	[ENTRY] = { STAT, 1, AT(stat) },
	[ERROR] = { U32, 1, AT(ecode) },
	[FLAGS] = { U32, 1, AT(flags) },
	[GID] = { U32, 1, AT(gid) },
	[UID] = { U32, 1, AT(uid) },
	[MAJOR] = { U32, 1, AT(major) },
	[MINOR] = { U32, 1, AT(minor) },
	[MASK] = { U64, 1, AT(mask) },
	[VALID] = { U32, 1, AT(valid) },
	[LENGTH] = { U64, 1, AT(length) },
	[ATTR] = { U64S, sizeof(struct p9_attr) / 8, AT(attr) },
	[SIZE] = { U64, 1, AT(attr.size) },
	[TIMES] = { U64S, 4, AT(times) },
	[FS_TYPE] = { U32, 1, AT(fs_type) },
	[BSIZE] = { U32, 1, AT(bsize) },
	[SPACE] = { U64S, 6, AT(space) },
	[NAME_MAX] = { U32, 1, AT(name_max) },
	[LOCK] = { U8, 1, AT(lock) },
	[START] = { U64, 1, AT(offset) },
	[PROC_ID] = { U32, 1, AT(proc_id) },
	[DATASYNC] = { U32_IF_ANY, 1, AT(flags) },
};

enum { BOTH = P9_2000 | P9_DOTL };

static const struct {
	const char *name;
	uint8_t dialects;
	uint8_t fields[12];		/* END ends them */
} types[P9_TYPES] = {
	[P9_RLERROR] = { "Rlerror", P9_DOTL, { ERROR } },
	[P9_TSTATFS] = { "Tstatfs", P9_DOTL, { FID } },
	[P9_RSTATFS] = { "Rstatfs", P9_DOTL, { FS_TYPE, BSIZE, SPACE, NAME_MAX } },
	[P9_TLOPEN] = { "Tlopen", P9_DOTL, { FID, FLAGS } },
	[P9_RLOPEN] = { "Rlopen", P9_DOTL, { AQID, IOUNIT } },
	[P9_TLCREATE] = { "Tlcreate", P9_DOTL, { FID, NAME, FLAGS, PERM, GID } },
	[P9_RLCREATE] = { "Rlcreate", P9_DOTL, { AQID, IOUNIT } },
	[P9_TSYMLINK] = { "Tsymlink", P9_DOTL, { FID, NAME, NEWNAME, GID } },
	[P9_RSYMLINK] = { "Rsymlink", P9_DOTL, { AQID } },
	[P9_TMKNOD] = { "Tmknod", P9_DOTL, { FID, NAME, PERM, MAJOR, MINOR, GID } },
	[P9_RMKNOD] = { "Rmknod", P9_DOTL, { AQID } },
	[P9_TRENAME] = { "Trename", P9_DOTL, { FID, NEWFID, NAME } },
	[P9_RRENAME] = { "Rrename", P9_DOTL, { END } },
	[P9_TREADLINK] = { "Treadlink", P9_DOTL, { FID } },
	[P9_RREADLINK] = { "Rreadlink", P9_DOTL, { NAME } },
	[P9_TGETATTR] = { "Tgetattr", P9_DOTL, { FID, MASK } },
	[P9_RGETATTR] = { "Rgetattr", P9_DOTL, { MASK, AQID, PERM, UID, GID, ATTR } },
	[P9_TSETATTR] = { "Tsetattr", P9_DOTL, { FID, VALID, PERM, UID, GID, SIZE, TIMES } },
	[P9_RSETATTR] = { "Rsetattr", P9_DOTL, { END } },
	[P9_TXATTRWALK] = { "Txattrwalk", P9_DOTL, { FID, NEWFID, NAME } },
	[P9_RXATTRWALK] = { "Rxattrwalk", P9_DOTL, { LENGTH } },
	[P9_TXATTRCREATE] = { "Txattrcreate", P9_DOTL, { FID, NAME, LENGTH, FLAGS } },
	[P9_RXATTRCREATE] = { "Rxattrcreate", P9_DOTL, { END } },
	[P9_TREADDIR] = { "Treaddir", P9_DOTL, { FID, OFFSET, COUNT } },
	[P9_RREADDIR] = { "Rreaddir", P9_DOTL, { BYTES } },
	[P9_TFSYNC] = { "Tfsync", P9_DOTL, { FID, DATASYNC } },
	[P9_RFSYNC] = { "Rfsync", P9_DOTL, { END } },
	[P9_TLOCK] = { "Tlock", P9_DOTL, { FID, LOCK, FLAGS, START, LENGTH, PROC_ID, NAME } },
	[P9_RLOCK] = { "Rlock", P9_DOTL, { LOCK } },
	[P9_TGETLOCK] = { "Tgetlock", P9_DOTL, { FID, LOCK, START, LENGTH, PROC_ID, NAME } },
	[P9_RGETLOCK] = { "Rgetlock", P9_DOTL, { LOCK, START, LENGTH, PROC_ID, NAME } },
	[P9_TLINK] = { "Tlink", P9_DOTL, { FID, NEWFID, NAME } },
	[P9_RLINK] = { "Rlink", P9_DOTL, { END } },
	[P9_TMKDIR] = { "Tmkdir", P9_DOTL, { FID, NAME, PERM, GID } },
	[P9_RMKDIR] = { "Rmkdir", P9_DOTL, { AQID } },
	[P9_TRENAMEAT] = { "Trenameat", P9_DOTL, { FID, NAME, NEWFID, NEWNAME } },
	[P9_RRENAMEAT] = { "Rrenameat", P9_DOTL, { END } },
	[P9_TUNLINKAT] = { "Tunlinkat", P9_DOTL, { FID, NAME, FLAGS } },
	[P9_RUNLINKAT] = { "Runlinkat", P9_DOTL, { END } },
	[P9_TVERSION] = { "Tversion", BOTH, { MSIZE, VERSION } },
	[P9_RVERSION] = { "Rversion", BOTH, { MSIZE, VERSION } },
	[P9_TAUTH] = { "Tauth", BOTH, { AFID, UNAME, ANAME, N_UNAME } },
	[P9_RAUTH] = { "Rauth", BOTH, { AQID } },
	[P9_TATTACH] = { "Tattach", BOTH, { FID, AFID, UNAME, ANAME, N_UNAME } },
	[P9_RATTACH] = { "Rattach", BOTH, { AQID } },
	[P9_RERROR] = { "Rerror", P9_2000, { NAME } },
	[P9_TFLUSH] = { "Tflush", BOTH, { OLDTAG } },
	[P9_RFLUSH] = { "Rflush", BOTH, { END } },
	[P9_TWALK] = { "Twalk", BOTH, { FID, NEWFID, WNAMES } },
	[P9_RWALK] = { "Rwalk", BOTH, { WQIDS } },
	[P9_TOPEN] = { "Topen", P9_2000, { FID, MODE } },
	[P9_ROPEN] = { "Ropen", P9_2000, { AQID, IOUNIT } },
	[P9_TCREATE] = { "Tcreate", P9_2000, { FID, NAME, PERM, MODE } },
	[P9_RCREATE] = { "Rcreate", P9_2000, { AQID, IOUNIT } },
	[P9_TREAD] = { "Tread", BOTH, { FID, OFFSET, COUNT } },
	[P9_RREAD] = { "Rread", BOTH, { BYTES } },
	[P9_TWRITE] = { "Twrite", BOTH, { FID, OFFSET, BYTES } },
	[P9_RWRITE] = { "Rwrite", BOTH, { COUNT } },
	[P9_TCLUNK] = { "Tclunk", BOTH, { FID } },
	[P9_RCLUNK] = { "Rclunk", BOTH, { END } },
	[P9_TREMOVE] = { "Tremove", BOTH, { FID } },
	[P9_RREMOVE] = { "Rremove", BOTH, { END } },
	[P9_TSTAT] = { "Tstat", P9_2000, { FID } },
	[P9_RSTAT] = { "Rstat", P9_2000, { ENTRY } },
	[P9_TWSTAT] = { "Twstat", P9_2000, { FID, ENTRY } },
	[P9_RWSTAT] = { "Rwstat", P9_2000, { END } },
};

const char *p9_name(uint8_t type)
{
	return type < P9_TYPES ? types[type].name : NULL;
}

bool p9_is_request(uint8_t type, enum p9_dialect dialect)
{
	return type < P9_TYPES && !(type & 1) && (types[type].dialects & dialect);
}

static uint64_t get(const uint8_t *at, unsigned int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | at[bytes];
	return value;
}

static void put(uint8_t *at, uint64_t value, unsigned int bytes)
{
	for (; bytes--; value >>= 8)
		*at++ = value;
}

void p9_put_u16(uint8_t *at, uint16_t value)
{
	put(at, value, 2);
}

void p9_put_u32(uint8_t *at, uint32_t value)
{
	put(at, value, 4);
}

void p9_put_u64(uint8_t *at, uint64_t value)
{
	put(at, value, 8);
}

uint16_t p9_get_u16(const uint8_t *at)
{
	return get(at, 2);
}

uint32_t p9_get_u32(const uint8_t *at)
{
	return get(at, 4);
}

uint64_t p9_get_u64(const uint8_t *at)
{
	return get(at, 8);
}

void p9_put_qid(uint8_t *at, const struct p9_qid *qid)
{
	at[0] = qid->type;
	put(at + 1, qid->version, 4);
	put(at + 5, qid->path, 8);
}

void p9_put_header(uint8_t *at, uint32_t size, uint8_t type, uint16_t tag)
{
	put(at, size, 4);
	at[4] = type;
	put(at + 5, tag, 2);
}

/* What is left of a message that is read or of room that is written. */
struct cursor {
	uint8_t *at;
	size_t left;
	bool bad;			/* it was not enough */
};

static uint8_t *take(struct cursor *c, size_t len)
{
	uint8_t *at = c->at;

	if (c->bad || c->left < len) {
		c->bad = true;
		return NULL;
	}
	c->at += len;
	c->left -= len;
	return at;
}

static uint64_t take_number(struct cursor *c, unsigned int bytes)
{
	const uint8_t *at = take(c, bytes);

	return at ? get(at, bytes) : 0;
}

static void give_number(struct cursor *c, uint64_t value, unsigned int bytes)
{
	uint8_t *at = take(c, bytes);

	if (at)
		put(at, value, bytes);
}

static struct p9_str take_str(struct cursor *c)
{
	struct p9_str str;

	str.len = take_number(c, 2);
	str.text = (const char *)take(c, str.len);
	if (!str.text)
		str.len = 0;
	return str;
}

static void give_str(struct cursor *c, struct p9_str str)
{
	uint8_t *at;

	give_number(c, str.len, 2);
	at = take(c, str.len);
	if (at && str.len)
		memcpy(at, str.text, str.len);
}

static struct p9_qid take_qid(struct cursor *c)
{
	const uint8_t *at = take(c, P9_QID_SIZE);

	if (!at)
		return (struct p9_qid){ 0 };
	return (struct p9_qid){ at[0], get(at + 1, 4), get(at + 5, 8) };
}

static void give_qid(struct cursor *c, const struct p9_qid *qid)
{
	uint8_t *at = take(c, P9_QID_SIZE);

	if (at)
		p9_put_qid(at, qid);
}

/* The number of what follows, which must not be more than there is place for. */
static uint16_t take_count(struct cursor *c, unsigned int max)
{
	uint16_t n = take_number(c, 2);

	if (n > max)
		c->bad = true;
	return c->bad ? 0 : n;
}

static void decode_field(struct cursor *c, enum field field, struct p9_msg *msg)
{
	void *to = (char *)msg + fields[field].at;
	unsigned int i;

	switch (fields[field].wire) {
	case U8:
		*(uint8_t *)to = take_number(c, 1);
		break;
	case U16:
		*(uint16_t *)to = take_number(c, 2);
		break;
	case U32:
		*(uint32_t *)to = take_number(c, 4);
		break;
	case U32_IF_ANY:
		*(uint32_t *)to = c->left ? take_number(c, 4) : UINT32_MAX;
		break;
	case U64:
	case U64S:
		for (i = 0; i < fields[field].count; i++)
			((uint64_t *)to)[i] = take_number(c, 8);
		break;
	case STR:
	case STAT:
		*(struct p9_str *)to = take_str(c);
		break;
	case QID:
		*(struct p9_qid *)to = take_qid(c);
		break;
	case NAMES:
		msg->num_names = take_count(c, P9_MAXWELEM);
		for (i = 0; i < msg->num_names; i++)
			msg->names[i] = take_str(c);
		break;
	case QIDS:
		msg->num_qids = take_count(c, P9_MAXWELEM);
		for (i = 0; i < msg->num_qids; i++)
			msg->qids[i] = take_qid(c);
		break;
	case DATA:
		msg->count = take_number(c, 4);
		msg->data = take(c, msg->count);
		break;
	}
}

static void encode_field(struct cursor *c, enum field field, const struct p9_msg *msg)
{
	const void *from = (const char *)msg + fields[field].at;
	uint8_t *at;
	unsigned int i;

	switch (fields[field].wire) {
	case U8:
		give_number(c, *(const uint8_t *)from, 1);
		break;
	case U16:
		give_number(c, *(const uint16_t *)from, 2);
		break;
	case U32:
	case U32_IF_ANY:
		give_number(c, *(const uint32_t *)from, 4);
		break;
	case U64:
	case U64S:
		for (i = 0; i < fields[field].count; i++)
			give_number(c, ((const uint64_t *)from)[i], 8);
		break;
	case STR:
	case STAT:
		give_str(c, *(const struct p9_str *)from);
		break;
	case QID:
		give_qid(c, from);
		break;
	case NAMES:
		give_number(c, msg->num_names, 2);
		for (i = 0; i < msg->num_names; i++)
			give_str(c, msg->names[i]);
		break;
	case QIDS:
		give_number(c, msg->num_qids, 2);
		for (i = 0; i < msg->num_qids; i++)
			give_qid(c, &msg->qids[i]);
		break;
	case DATA:
		give_number(c, msg->count, 4);
		at = take(c, msg->count);
		if (at && msg->count)
			memcpy(at, msg->data, msg->count);
		break;
	}
}

int p9_decode(const void *buf, size_t len, struct p9_msg *msg)
{
	struct cursor c = { (uint8_t *)buf, len, false };
	const uint8_t *field;

	take(&c, 4);
	msg->type = take_number(&c, 1);
	msg->tag = take_number(&c, 2);
	if (c.bad || !p9_name(msg->type))
		return -EPROTO;
	for (field = types[msg->type].fields; *field != END; field++)
		decode_field(&c, *field, msg);
	return c.bad || c.left ? -EPROTO : 0;
}

size_t p9_encode(const struct p9_msg *msg, void *buf, size_t room)
{
	struct cursor c = { buf, room, false };
	const uint8_t *field;

	take(&c, P9_HEADER);
	for (field = types[msg->type].fields; *field != END; field++)
		encode_field(&c, *field, msg);
	if (c.bad)
		return 0;
	p9_put_header(buf, room - c.left, msg->type, msg->tag);
	return room - c.left;
}
