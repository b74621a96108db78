/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A subnet administrator that answers as a file says, so that refusals can be
 * tested that no real one makes at will. It knows multicast groups only.
 *
 * usage: fake_sa DEVICE RULES
 *
 * RULES is read anew for each question, lines of:
 *  join=STATUS	of joins (0: granted)	create=STATUS	of those that create
 *  get=STATUS	of questions for a group	list=STATUS	for all groups
 *  mtu=1..5	of every group		group=MGID	32 hex digits: one of the list
 * It prints a line for each question: join, create, leave, get, list, and the MGID.
 */
#include <endian.h>
#include <infiniband/umad.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_types.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORD		52
#define STRIDE		56
#define GROUPS		16
#define GET_TABLE	0x12
#define GET_TABLE_RESP	0x92
#define COMP_QKEY	4

struct rules {
	unsigned int join, create, get, list, mtu, num;
	uint8_t groups[GROUPS][16];
};

static void parse_group(struct rules *rules, const char *text)
{
	unsigned int byte;

	for (int i = 0; i < 16 && rules->num < GROUPS; i++) {
		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return;
		rules->groups[rules->num][i] = byte;
	}
	rules->num++;
}

static void read_rules(const char *name, struct rules *rules)
{
	FILE *file = fopen(name, "r");
	char line[128];

	memset(rules, 0, sizeof(*rules));
	rules->mtu = 4;
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		char *value = strchr(line, '=');

		if (!value)
			continue;
		*value++ = '\0';
		if (!strcmp(line, "join"))
			rules->join = strtoul(value, NULL, 0);
		else if (!strcmp(line, "create"))
			rules->create = strtoul(value, NULL, 0);
		else if (!strcmp(line, "get"))
			rules->get = strtoul(value, NULL, 0);
		else if (!strcmp(line, "list"))
			rules->list = strtoul(value, NULL, 0);
		else if (!strcmp(line, "mtu"))
			rules->mtu = strtoul(value, NULL, 0);
		else if (!strcmp(line, "group"))
			parse_group(rules, value);
	}
	fclose(file);
}

static void fill_record(const struct rules *rules, uint8_t *record)
{
	record[36] = 0xc0;		/* MLID */
	record[37] = 0x11;
	record[34] = 0x0b;		/* Q_Key 0x0b1b */
	record[35] = 0x1b;
	record[38] = rules->mtu;
	record[42] = IBV_RATE_10_GBPS;
}

static unsigned int answer_one(const struct rules *rules, struct umad_sa_packet *sa,
			       const char **what)
{
	bool create = be64toh(sa->comp_mask) & COMP_QKEY;

	if (sa->mad_hdr.method == UMAD_METHOD_GET) {
		*what = "get";
		fill_record(rules, sa->data);
		return rules->get;
	}
	if (sa->mad_hdr.method == UMAD_SA_METHOD_DELETE) {
		*what = "leave";
		return 0;
	}
	*what = create ? "create" : "join";
	fill_record(rules, sa->data);
	return create ? rules->create : rules->join;
}

static size_t answer_list(const struct rules *rules, struct umad_sa_packet *sa)
{
	for (unsigned int i = 0; i < rules->num; i++) {
		uint8_t *record = sa->data + (size_t)i * STRIDE;

		memset(record, 0, STRIDE);
		memcpy(record, rules->groups[i], 16);
		fill_record(rules, record);
	}
	sa->attr_offset = htobe16(STRIDE / 8);
	sa->rmpp_hdr.rmpp_version = 1;
	sa->rmpp_hdr.rmpp_type = 1;
	sa->rmpp_hdr.rmpp_rtime_flags = 1;
	return offsetof(struct umad_sa_packet, data) + (size_t)rules->num * STRIDE;
}

static void answer(int fd, int agent, void *umad, const char *file)
{
	struct umad_sa_packet *sa = umad_get_mad(umad);
	size_t len = sizeof(*sa);
	const char *what = "list";
	unsigned int status;
	struct rules rules;

	if (sa->mad_hdr.attr_id != htobe16(UMAD_SA_ATTR_MCMEMBER_REC))
		return;
	read_rules(file, &rules);
	if (sa->mad_hdr.method == GET_TABLE) {
		status = rules.list;
		sa->mad_hdr.method = GET_TABLE_RESP;
		if (!status)
			len = answer_list(&rules, sa);
	} else {
		status = answer_one(&rules, sa, &what);
		sa->mad_hdr.method = sa->mad_hdr.method == UMAD_SA_METHOD_DELETE ?
				     UMAD_SA_METHOD_DELETE_RESP : UMAD_METHOD_GET_RESP;
	}
	printf("%s ", what);
	for (int i = 0; i < 16; i++)
		printf("%02x", sa->data[i]);
	printf(" state=%u\n", sa->data[48] & 15);
	sa->mad_hdr.status = htobe16(status);
	if (umad_send(fd, agent, umad, len, 0, 0))
		perror("fake_sa: umad_send");
}

int main(int argc, char **argv)
{
	long methods[16 / sizeof(long)] = {
		1L << UMAD_METHOD_GET | 1L << UMAD_METHOD_SET | 1L << GET_TABLE |
		1L << UMAD_SA_METHOD_DELETE,
	};
	void *umad = calloc(1, umad_size() + 4096);
	int fd, agent, len;

	if (argc != 3 || !umad)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	fd = umad_open_port(argv[1], 1);
	agent = fd < 0 ? -1 : umad_register(fd, UMAD_CLASS_SUBN_ADM, 2, 1, methods);
	if (agent < 0) {
		fprintf(stderr, "fake_sa: %s: can't register\n", argv[1]);
		return 1;
	}
	printf("ready\n");
	for (;;) {
		len = 256;
		if (umad_recv(fd, umad, &len, -1) >= 0 && !umad_status(umad))
			answer(fd, agent, umad, argv[2]);
	}
}
