/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes of MADs as words: their names, the components of SA records, and
 * how an answer is printed, mostly by libibmad's decoders.
 */
#ifndef IBFS_FS_MAD_ATTR_H
#define IBFS_FS_MAD_ATTR_H

#include <infiniband/mad.h>
#include <stdint.h>

#include <ibfs/fs.h>

enum mad_family { MAD_FAMILY_SMP, MAD_FAMILY_PERF, MAD_FAMILY_SA };

/* A component of a SA record: where it is, and its bit of the component mask. */
struct mad_comp {
	const char *name;
	uint16_t offset;		/* bits */
	uint8_t bits;			/* 128: a GID */
	int8_t mask;
};

struct mad_attr {
	const char *name;
	uint8_t family;
	uint16_t id;
	ib_mad_dump_fn *dump;		/* NULL: numbers of width bytes */
	uint8_t width;
	uint8_t skip;			/* bytes of a SA record in front of what dump takes */
	const struct mad_comp *comps;
};

/* NULL: none is known by that name. */
const struct mad_attr *mad_attr_find(enum mad_family family, const char *name);
/* One attribute or record. data: at least 200 bytes, at which decoders may look. */
void mad_attr_print(const struct mad_attr *attr, uint8_t *data, struct textbuf *out);

/* A number of so many bits, whose offset is counted from the first byte's highest bit. */
uint64_t mad_bits_get(const uint8_t *data, unsigned int offset, unsigned int bits);
void mad_bits_set(uint8_t *data, unsigned int offset, unsigned int bits, uint64_t value);

#endif
