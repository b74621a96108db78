/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes of MADs as words: SMPs (IBA 14.2), PMA (16.1), SA (15.2). Of
 * libibmad only the decoders are used.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "fs/mad_attr.h"

static const struct mad_comp path_comps[] = {
	{ "dgid", 64, 128, 2 }, { "sgid", 192, 128, 3 }, { "dlid", 320, 16, 4 },
	{ "slid", 336, 16, 5 }, { "hop_limit", 376, 8, 9 }, { "tclass", 384, 8, 10 },
	{ "reversible", 392, 1, 11 }, { "num_path", 393, 7, 12 }, { "pkey", 400, 16, 13 },
	{ "sl", 428, 4, 15 }, { "mtu", 434, 6, 17 }, { "rate", 442, 6, 19 },
	{ "life", 450, 6, 21 }, { NULL, 0, 0, 0 }
};
static const struct mad_comp lid_comps[] = { { "lid", 0, 16, 0 }, { NULL, 0, 0, 0 } };
static const struct mad_comp portinfo_comps[] = {
	{ "lid", 0, 16, 0 }, { "port", 16, 8, 1 }, { NULL, 0, 0, 0 }
};
static const struct mad_comp link_comps[] = {
	{ "from_lid", 0, 16, 0 }, { "from_port", 16, 8, 1 }, { "to_port", 24, 8, 2 },
	{ "to_lid", 32, 16, 3 }, { NULL, 0, 0, 0 }
};
static const struct mad_comp mcmember_comps[] = {
	{ "mgid", 0, 128, 0 }, { "port_gid", 128, 128, 1 }, { "qkey", 256, 32, 2 },
	{ "mlid", 288, 16, 3 }, { "mtu", 306, 6, 5 }, { "tclass", 312, 8, 6 },
	{ "pkey", 320, 16, 7 }, { "rate", 338, 6, 9 }, { "life", 346, 6, 11 },
	{ "sl", 352, 4, 12 }, { "scope", 384, 4, 15 }, { "join_state", 388, 4, 16 },
	{ NULL, 0, 0, 0 }
};

static void dump_desc(char *buf, int size, void *val, int len)
{
	char desc[65] = "";

	(void)len;
	memcpy(desc, val, 64);
	mad_dump_field(IB_NODE_DESC_F, buf, size, desc);
	strncat(buf, "\n", size - strlen(buf) - 1);
}

/* A NodeRecord's NodeInfo and, behind it, description. */
static void dump_node(char *buf, int size, void *val, int len)
{
	size_t used;

	mad_dump_nodeinfo(buf, size, val, len);
	used = strlen(buf);
	dump_desc(buf + used, size - used, (uint8_t *)val + 40, 64);
}

static void dump_sminfo(char *buf, int size, void *val, int len)
{
	mad_dump_fields(buf, size, val, len, IB_SMINFO_GUID_F, IB_SMINFO_STATE_F + 1);
}

static const struct mad_attr attrs[] = {
	{ "NodeDescription", MAD_FAMILY_SMP, 0x10, dump_desc, 0, 0, NULL },
	{ "NodeInfo", MAD_FAMILY_SMP, 0x11, mad_dump_nodeinfo, 0, 0, NULL },
	{ "SwitchInfo", MAD_FAMILY_SMP, 0x12, mad_dump_switchinfo, 0, 0, NULL },
	{ "GUIDInfo", MAD_FAMILY_SMP, 0x14, NULL, 8, 0, NULL },
	{ "PortInfo", MAD_FAMILY_SMP, 0x15, mad_dump_portinfo, 0, 0, NULL },
	{ "PKeyTable", MAD_FAMILY_SMP, 0x16, NULL, 2, 0, NULL },
	{ "SLtoVLMappingTable", MAD_FAMILY_SMP, 0x17, NULL, 1, 0, NULL },
	{ "VLArbitrationTable", MAD_FAMILY_SMP, 0x18, NULL, 2, 0, NULL },
	{ "LinearForwardingTable", MAD_FAMILY_SMP, 0x19, NULL, 1, 0, NULL },
	{ "MulticastForwardingTable", MAD_FAMILY_SMP, 0x1b, NULL, 2, 0, NULL },
	{ "SMInfo", MAD_FAMILY_SMP, 0x20, dump_sminfo, 0, 0, NULL },
	{ "ClassPortInfo", MAD_FAMILY_PERF, 0x01, mad_dump_classportinfo, 0, 0, NULL },
	{ "PortCounters", MAD_FAMILY_PERF, 0x12, mad_dump_perfcounters, 0, 0, NULL },
	{ "PortCountersExtended", MAD_FAMILY_PERF, 0x1d, mad_dump_perfcounters_ext, 0, 0, NULL },
	{ "ClassPortInfo", MAD_FAMILY_SA, 0x01, mad_dump_classportinfo, 0, 0, NULL },
	{ "NodeRecord", MAD_FAMILY_SA, 0x11, dump_node, 0, 4, lid_comps },
	{ "PortInfoRecord", MAD_FAMILY_SA, 0x12, mad_dump_portinfo, 0, 4, portinfo_comps },
	{ "SwitchInfoRecord", MAD_FAMILY_SA, 0x14, mad_dump_switchinfo, 0, 4, lid_comps },
	{ "LinkRecord", MAD_FAMILY_SA, 0x20, NULL, 0, 0, link_comps },
	{ "PathRecord", MAD_FAMILY_SA, 0x35, NULL, 0, 0, path_comps },
	{ "MCMemberRecord", MAD_FAMILY_SA, 0x38, NULL, 0, 0, mcmember_comps },
};

const struct mad_attr *mad_attr_find(enum mad_family family, const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++)
		if (attrs[i].family == family && !strcmp(attrs[i].name, name))
			return &attrs[i];
	return NULL;
}

uint64_t mad_bits_get(const uint8_t *data, unsigned int offset, unsigned int bits)
{
	uint64_t value = 0;

	for (; bits; bits--, offset++)
		value = value << 1 | (data[offset / 8] >> (7 - offset % 8) & 1);
	return value;
}

void mad_bits_set(uint8_t *data, unsigned int offset, unsigned int bits, uint64_t value)
{
	for (; bits; bits--, offset++)
		if (value >> (bits - 1) & 1)
			data[offset / 8] |= 0x80 >> offset % 8;
}

/* A name from afar has no newline or escape sequence of its own. */
static void print_clean(struct textbuf *out, char *text)
{
	char *c;

	for (c = text; *c; c++)
		if (*c != '\n' && !isprint((unsigned char)*c))
			*c = '?';
	text_printf(out, "%s", text);
}

static void print_comps(struct textbuf *out, const struct mad_comp *comp, const uint8_t *rec)
{
	char gid[INET6_ADDRSTRLEN];

	for (; comp && comp->name; comp++) {
		if (comp->bits == 128)
			text_printf(out, "%s %s\n", comp->name,
				    inet_ntop(AF_INET6, rec + comp->offset / 8, gid, sizeof(gid)));
		else
			text_printf(out, "%s %llu\n", comp->name, (unsigned long long)
				    mad_bits_get(rec, comp->offset, comp->bits));
	}
}

void mad_attr_print(const struct mad_attr *attr, uint8_t *data, struct textbuf *out)
{
	char text[8192] = "";
	unsigned int i;

	print_comps(out, attr->comps, data);
	if (attr->dump) {
		attr->dump(text, sizeof(text), data + attr->skip, 64);
		print_clean(out, text);
	}
	for (i = 0; attr->width && i < 64U / attr->width; i++)
		text_printf(out, "%u 0x%0*llx\n", i, 2 * attr->width, (unsigned long long)
			    mad_bits_get(data, 8 * attr->width * i, 8 * attr->width));
}
