/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Topology files and the static subnet without a daemon, for tests/03*.bats.
 *
 *	topology load FILE		read it; the error, or what was read in a line
 *	topology dump FILE		read it and write it
 *	topology show FILE		read it and write all that it says of ports
 *	topology routes FILE		static subnet: does each end port reach each other one?
 *	topology fuzz FILE SEED COUNT	read spoilt copies of it
 *	topology default		the fabric without configuration
 *	topology names			write nodes of odd names
 */
#include "fabric/fabric.h"
#include "ibfs/ibfs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct node_ops no_ops;

/* Links with faults have timers. */
static struct fabric *new_fabric(void)
{
	static struct ibfs ibfs;
	struct fabric *fabric;

	ibfs.loop = ev_default_loop(0);
	fabric = fabric_new(&ibfs, &no_ops);
	if (!fabric)
		abort();
	return fabric;
}

/* NULL after the error was printed, which must be one line. */
static struct fabric *load(const char *file)
{
	struct fabric *fabric = new_fabric();
	char *err = NULL;
	int ret;

	ret = topology_load(fabric, file, &err);
	if (!ret)
		return fabric;
	printf("%s\n", err ? err : "no message");
	if (!err || strchr(err, '\n'))
		printf("a message is one line\n");
	free(err);
	fabric_free(fabric);
	return NULL;
}

static int cmd_load(char **argv)
{
	struct fabric *fabric = load(argv[0]);
	unsigned int i, links = 0, up = 0;

	if (!fabric)
		return 1;
	for (i = 0; i < fabric->num_links; i++) {
		links += fabric->links[i] != NULL;
		up += fabric->links[i] && fabric->links[i]->a->phys_state == PHYS_LINKUP;
	}
	printf("%u nodes, %u links, %u up\n", fabric->num_nodes, links, up);
	fabric_free(fabric);
	return 0;
}

static void dump(const struct fabric *fabric)
{
	struct topology_dump at = { 0 };
	struct textbuf out = { 0 };

	while (topology_dump(&at, fabric, &out))
		;
	fwrite(out.data, 1, out.len, stdout);
	text_free(&out);
}

static int cmd_dump(char **argv)
{
	struct fabric *fabric = load(argv[0]);

	if (!fabric)
		return 1;
	dump(fabric);
	fabric_free(fabric);
	return 0;
}

static void show_port(const struct port *port)
{
	struct fault_conf faults = { 0 };

	printf(" %u guid=%" PRIx64 " lid=%u lmc=%u w=%u/%u s=%u/%u e=%u/%u", port->num, port->guid,
	       port->lid, port->lmc, port->width_enabled, port->width_active, port->speed_enabled,
	       port->speed_active, port->speed_ext_enabled, port->speed_ext_active);
	if (port->link) {
		link_get_faults(port->link, &faults);
		printf(" to=%s[%u]%s drop=%g", port->peer->node->id, port->peer->num,
		       port->link->down ? " down" : "", faults.drop);
	}
	printf(" symbol_errors=%u xmit_data=%" PRIu64 "\n", port->cnt.symbol_errors,
	       port->cnt.xmit_data);
}

static int cmd_show(char **argv)
{
	struct fabric *fabric = load(argv[0]);
	unsigned int i, j;

	if (!fabric)
		return 1;
	for (i = 0; i < fabric->num_nodes; i++) {
		const struct node *node = fabric->nodes[i];

		printf("%s type=%d ports=%u guid=%" PRIx64 " sysimg=%" PRIx64
		       " vendor=%x device=%x enhanced=%d desc=%s\n", node->id, node->type,
		       node->num_ports, node->guid, node->sysimg_guid, node->vendor_id,
		       node->device_id, node->sw && node->sw->enhanced_port0, node->desc);
		for (j = node->sw ? 0 : 1; j <= node->num_ports; j++)
			show_port(&node->ports[j]);
	}
	fabric_free(fabric);
	return 0;
}

/* Where a LID's packets end that a switch gets: the end port, or NULL. */
static const struct port *follow(const struct node *node, uint16_t lid)
{
	unsigned int hops;

	for (hops = 0; hops < 64; hops++) {
		uint8_t out = switch_get_lft(node, lid);
		const struct port *port;

		if (!out)
			return &node->ports[0];
		if (out > node->num_ports)
			return NULL;
		port = &node->ports[out];
		if (port->state != PORT_ACTIVE || port->peer->state != PORT_ACTIVE)
			return NULL;
		if (port->peer->node->type != NODE_SWITCH)
			return port->peer;
		node = port->peer->node;
	}
	return NULL;
}

static unsigned int wrong_routes(struct fabric *fabric, const struct port *to, unsigned int *pairs)
{
	unsigned int i, lid, wrong = 0;

	for (i = 0; i < fabric->num_nodes; i++) {
		const struct node *node = fabric->nodes[i];

		if (node->type != NODE_SWITCH)
			continue;
		for (lid = to->lid; lid < to->lid + (1u << to->lmc); lid++) {
			++*pairs;
			if (follow(node, lid) == to)
				continue;
			if (!wrong++)
				printf("from %s to lid %u: not there\n", node->id, lid);
		}
	}
	return wrong;
}

/* All LIDs different, all routes right; each end port hangs on a switch that has the routes. */
static unsigned int check_routes(struct fabric *fabric, unsigned int *ends, unsigned int *pairs)
{
	const struct port **by_lid = calloc(0xc000, sizeof(*by_lid));
	unsigned int i, j, lid, wrong = 0;

	for (i = 0; i < fabric->num_nodes; i++) {
		struct node *node = fabric->nodes[i];

		for (j = node->sw ? 0 : 1; j <= (node->sw ? 0 : node->num_ports); j++) {
			struct port *port = &node->ports[j];

			if (j && !port->link)
				continue;
			++*ends;
			for (lid = port->lid; lid < port->lid + (1u << port->lmc); lid++) {
				if (!lid || lid > 0xbfff || by_lid[lid]) {
					printf("%s[%u] has lid %u\n", node->id, j, lid);
					wrong++;
				} else {
					by_lid[lid] = port;
				}
			}
			wrong += wrong_routes(fabric, port, pairs);
		}
	}
	free(by_lid);
	return wrong;
}

/* Of each switch's routes, how many leave by its busiest and its idlest cable to switches. */
static void show_spread(struct fabric *fabric)
{
	unsigned int i, j, most = 0, least = UINT32_MAX;

	for (i = 0; i < fabric->num_nodes; i++) {
		const struct node *node = fabric->nodes[i];
		unsigned int count[256] = { 0 };

		if (!node->sw)
			continue;
		for (j = 1; j <= node->sw->lft_top; j++)
			count[switch_get_lft(node, j)]++;
		for (j = 1; j <= node->num_ports; j++) {
			if (!node->ports[j].peer || !node->ports[j].peer->node->sw)
				continue;
			most = count[j] > most ? count[j] : most;
			least = count[j] < least ? count[j] : least;
		}
	}
	printf("routes by one cable between switches: %u to %u\n", least, most);
}

static int cmd_routes(char **argv)
{
	struct fabric *fabric = load(argv[0]);
	unsigned int ends = 0, pairs = 0, wrong;
	char *err = NULL;

	if (!fabric)
		return 1;
	if (static_subnet(fabric, &err)) {
		printf("%s\n", err);
		free(err);
		fabric_free(fabric);
		return 1;
	}
	wrong = check_routes(fabric, &ends, &pairs);
	printf("%u end ports, %u routes, %u wrong\n", ends, pairs, wrong);
	show_spread(fabric);
	fabric_free(fabric);
	return wrong != 0;
}

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Change, insert, delete bytes; double or cut pieces. */
static size_t spoil(char *text, size_t len, size_t size, uint64_t *state)
{
	static const char likely[] = "\"[]()#@=+- \t\r\n0x9aLSwitchCaRt";
	unsigned int i, num = 1 + next_random(state) % 8;

	for (i = 0; i < num && len > 2; i++) {
		size_t at = next_random(state) % (len - 1);
		size_t piece = 1 + next_random(state) % (len - at < 80 ? len - at : 80);
		uint64_t what = next_random(state);

		switch (what % 5) {
		case 0:
			text[at] = what >> 8;
			break;
		case 1:
			text[at] = likely[(what >> 8) % (sizeof(likely) - 1)];
			break;
		case 2:
			memmove(text + at, text + at + piece, len - at - piece);
			len -= piece;
			break;
		case 3:
			if (len + piece > size)
				break;
			memmove(text + at + piece, text + at, len - at);
			len += piece;
			break;
		case 4:
			len = at + 1;
			break;
		}
	}
	return len;
}

/* Whatever is in the file, the answer is a fabric or one line of error. */
static int load_text(char *text, size_t len)
{
	FILE *in = fmemopen(text, len, "r");
	struct fabric *fabric = new_fabric();
	char *err = NULL, *err2 = NULL;
	int ret, bad = 0;

	if (!in)
		abort();
	ret = topology_load_stream(fabric, in, "fuzz", &err);
	if (ret && (!err || strchr(err, '\n') || strncmp(err, "fuzz:", 5))) {
		printf("%d: %s\n", ret, err ? err : "no message");
		bad = 1;
	}
	if (!ret && static_subnet(fabric, &err2)) {
		printf("%s\n", err2);
		bad = 1;
	}
	free(err);
	free(err2);
	fabric_free(fabric);
	fclose(in);
	return bad;
}

static int cmd_fuzz(char **argv)
{
	uint64_t state = strtoull(argv[1], NULL, 0);
	unsigned int i, count = strtoul(argv[2], NULL, 0), bad = 0;
	FILE *in = fopen(argv[0], "r");
	size_t len, size = 1 << 20;
	char *text = malloc(size), *copy = malloc(size);

	if (!in || !text || !copy)
		abort();
	len = fread(text, 1, size, in);
	fclose(in);
	for (i = 0; i < count; i++) {
		memcpy(copy, text, len);
		bad += load_text(copy, spoil(copy, len, size, &state));
	}
	printf("%u files, %u bad\n", count, bad);
	free(text);
	free(copy);
	return bad != 0;
}

static int expect(bool ok, const char *what)
{
	if (!ok)
		printf("failed: %s\n", what);
	return !ok;
}

static int cmd_default(char **argv)
{
	struct fabric *f = new_fabric();
	char *err = NULL;
	int bad = 0;

	(void)argv;
	bad += expect(!fabric_default(f), "default fabric");
	bad += expect(f->num_nodes == 3 && f->num_links == 2, "its size");
	bad += expect(fabric_find(f, "rxe1")->ports[1].state == PORT_INIT, "its links");
	bad += expect(!static_subnet(f, &err) && f->static_owned, "static subnet");
	bad += expect(fabric_find(f, "rxe0")->ports[1].lid == 1, "rxe0 has lid 1");
	bad += expect(fabric_find(f, "rxe1")->ports[1].state == PORT_ACTIVE, "rxe1 is ACTIVE");
	fabric_free(f);
	return bad != 0;
}

/* Names that the format has no room for, which fabric/ctl and configurations may give. */
static int cmd_names(char **argv)
{
	static const char *const names[] = { "a\"b", "c@d", "e#f#g", "m#h", "i\nj", "k l", "#n" };
	struct fabric *f = new_fabric();
	struct node *sw = node_new(f, NODE_SWITCH, "s\"w", 36, 0);
	unsigned int i;

	(void)argv;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		link_new(&node_new(f, NODE_CA, names[i], 1, 0)->ports[1], &sw->ports[i + 1]);
	dump(f);
	fabric_free(f);
	return 0;
}

static const struct {
	const char *name;
	int args;
	int (*fn)(char **argv);
} cmds[] = {
	{ "load", 1, cmd_load }, { "dump", 1, cmd_dump }, { "show", 1, cmd_show },
	{ "routes", 1, cmd_routes }, { "fuzz", 3, cmd_fuzz }, { "default", 0, cmd_default },
	{ "names", 0, cmd_names },
};

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++)
		if (argc > 1 && !strcmp(argv[1], cmds[i].name) && argc == 2 + cmds[i].args)
			return cmds[i].fn(argv + 2);
	fprintf(stderr, "usage: topology load|dump|show|routes FILE | fuzz FILE SEED COUNT | "
			"default | names\n");
	return 2;
}
