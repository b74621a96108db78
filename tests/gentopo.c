/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes topology files for tests and benchmarks, in the format that ibsim
 * and ibfs load. Touches nothing but standard output.
 *
 *	gentopo fat2 LEAVES HOSTS_PER_LEAF SPINES [RADIX]
 *	gentopo fat3 PODS [RADIX]	three levels, full bisection
 *	gentopo torus X Y Z HOSTS	a torus of switches, HOSTS on each
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RADIX 64

static const char usage[] =
	"usage: gentopo fat2 LEAVES HOSTS SPINES [RADIX] | fat3 PODS [RADIX] | torus X Y Z HOSTS";

struct node {
	bool is_switch;
	unsigned int ports;
	char desc[32];
	uint64_t guid;
	struct {
		unsigned int node, port;	/* port 0: nothing plugged in */
	} link[MAX_RADIX + 1];
};

struct topo {
	struct node *nodes;
	unsigned int num, size, hosts, switches;
};

static void die(const char *what)
{
	fprintf(stderr, "gentopo: %s\n", what);
	exit(1);
}

static struct node *add(struct topo *t, bool is_switch, unsigned int ports)
{
	struct node *n;

	if (ports > MAX_RADIX)
		die("more than 64 ports");
	if (t->num == t->size) {
		t->size = t->size ? 2 * t->size : 64;
		t->nodes = reallocarray(t->nodes, t->size, sizeof(*t->nodes));
		if (!t->nodes)
			die("out of memory");
	}
	n = &t->nodes[t->num++];
	memset(n, 0, sizeof(*n));
	n->is_switch = is_switch;
	n->ports = ports;
	return n;
}

static void add_host(struct topo *t)
{
	struct node *n = add(t, false, 1);

	n->guid = 0x0002c90300000000 + 0x10 * t->hosts;
	snprintf(n->desc, sizeof(n->desc), "host%05u", t->hosts++);
}

/* Returns the index of the first of num switches. */
static unsigned int add_switches(struct topo *t, unsigned int num, unsigned int radix,
				 const char *kind)
{
	unsigned int i, first = t->num;
	struct node *n;

	for (i = 0; i < num; i++) {
		n = add(t, true, radix);
		n->guid = 0x0008f10500000000 + 0x10 * t->switches++;
		snprintf(n->desc, sizeof(n->desc), "%s%04u", kind, i);
	}
	return first;
}

static void join(struct topo *t, unsigned int a, unsigned int pa, unsigned int b, unsigned int pb)
{
	struct node *na = &t->nodes[a], *nb = &t->nodes[b];

	if (pa < 1 || pb < 1 || pa > na->ports || pb > nb->ports || na->link[pa].port ||
	    nb->link[pb].port)
		die("the parameters need more ports than the radix has");
	na->link[pa].node = b;
	na->link[pa].port = pb;
	nb->link[pb].node = a;
	nb->link[pb].port = pa;
}

static unsigned int free_port(const struct topo *t, unsigned int n)
{
	unsigned int p;

	for (p = 1; p <= t->nodes[n].ports; p++)
		if (!t->nodes[n].link[p].port)
			return p;
	return 0;
}

static void fat2(struct topo *t, unsigned int leaves, unsigned int hosts, unsigned int spines,
		 unsigned int radix)
{
	unsigned int i, j, leaf0, spine0, spine;

	for (i = 0; i < leaves * hosts; i++)
		add_host(t);
	leaf0 = add_switches(t, leaves, radix, "leaf");
	spine0 = add_switches(t, spines, radix, "spine");
	for (i = 0; i < leaves; i++) {
		for (j = 0; j < hosts; j++)
			join(t, i * hosts + j, 1, leaf0 + i, j + 1);
		for (j = 0; hosts + j < radix; j++) {
			spine = spine0 + j % spines;
			if (free_port(t, spine))
				join(t, leaf0 + i, hosts + j + 1, spine, free_port(t, spine));
		}
	}
}

static void fat3_pod(struct topo *t, unsigned int pod, unsigned int half, unsigned int leaf0,
		     unsigned int agg0, unsigned int core0, unsigned int cores)
{
	unsigned int i, j, leaf, agg, core;

	for (i = 0; i < half; i++) {
		leaf = leaf0 + pod * half + i;
		for (j = 0; j < half; j++) {
			join(t, (pod * half + i) * half + j, 1, leaf, j + 1);
			join(t, leaf, half + j + 1, agg0 + pod * half + j, i + 1);
		}
	}
	for (i = 0; i < half; i++) {
		agg = agg0 + pod * half + i;
		for (j = 0; j < half; j++) {
			core = core0 + i * cores + (j + pod * half) % cores;
			join(t, agg, half + j + 1, core, free_port(t, core));
		}
	}
}

static void fat3(struct topo *t, unsigned int pods, unsigned int radix)
{
	unsigned int half = radix / 2, cores = (half * pods + radix - 1) / radix;
	unsigned int i, leaf0, agg0, core0;

	for (i = 0; i < pods * half * half; i++)
		add_host(t);
	leaf0 = add_switches(t, pods * half, radix, "leaf");
	agg0 = add_switches(t, pods * half, radix, "agg");
	core0 = add_switches(t, half * cores, radix, "core");
	for (i = 0; i < pods; i++)
		fat3_pod(t, i, half, leaf0, agg0, core0, cores);
}

/* Ports 1..6 are +x -x +y -y +z -z, hosts come after them. */
static void torus(struct topo *t, const unsigned int size[3], unsigned int hosts)
{
	unsigned int n = size[0] * size[1] * size[2], stride[3] = {size[1] * size[2], size[2], 1};
	unsigned int i, h, dim, pos, next, sw0;

	for (i = 0; i < n * hosts; i++)
		add_host(t);
	sw0 = add_switches(t, n, 6 + hosts, "sw");
	for (i = 0; i < n; i++) {
		for (dim = 0; dim < 3; dim++) {
			pos = i / stride[dim] % size[dim];
			next = i - pos * stride[dim] + (pos + 1) % size[dim] * stride[dim];
			if (size[dim] > 1)
				join(t, sw0 + i, 2 * dim + 1, sw0 + next, 2 * dim + 2);
		}
		for (h = 0; h < hosts; h++)
			join(t, i * hosts + h, 1, sw0 + i, 7 + h);
	}
}

static void print_port(const struct topo *t, const struct node *n, unsigned int p)
{
	const struct node *r = &t->nodes[n->link[p].node];
	char letter = r->is_switch ? 'S' : 'H';

	if (n->is_switch)
		printf("[%u]\t\"%c-%016jx\"[%u]\t\t# \"%s\" lid 0 4xEDR\n", p, letter,
		       (uintmax_t)r->guid, n->link[p].port, r->desc);
	else
		printf("[%u](%jx)\t\"%c-%016jx\"[%u]\t\t# lid 0 lmc 0 \"%s\" lid 0 4xEDR\n", p,
		       (uintmax_t)n->guid + p, letter, (uintmax_t)r->guid, n->link[p].port, r->desc);
}

static void print_node(const struct topo *t, const struct node *n)
{
	unsigned int p;

	printf("\nvendid=0x1405\ndevid=0x%x\nsysimgguid=0x%jx\n", n->is_switch ? 2 : 1,
	       (uintmax_t)n->guid);
	printf("%s=0x%jx\n", n->is_switch ? "switchguid" : "caguid", (uintmax_t)n->guid);
	if (n->is_switch)
		printf("Switch\t%u \"S-%016jx\"\t\t# \"%s\" base port 0 lid 0 lmc 0\n", n->ports,
		       (uintmax_t)n->guid, n->desc);
	else
		printf("Ca\t%u \"H-%016jx\"\t\t# \"%s\"\n", n->ports, (uintmax_t)n->guid, n->desc);
	for (p = 1; p <= n->ports; p++)
		if (n->link[p].port)
			print_port(t, n, p);
}

/* The parameter i, or fallback (0: there is none) where it was left out. */
static unsigned int number(int argc, char **argv, int i, unsigned int fallback)
{
	unsigned long v;
	char *end;

	if (i >= argc && fallback)
		return fallback;
	if (i >= argc)
		die(usage);
	errno = 0;
	v = strtoul(argv[i], &end, 10);
	if (errno || *end || !v || v > 100000)
		die("a parameter is not a number from 1 to 100000");
	return v;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	struct topo t = {0};
	unsigned int i, arg[3];

	arg[0] = number(argc, argv, 2, 0);
	if (!strcmp(kind, "fat3")) {
		fat3(&t, arg[0], number(argc, argv, 3, 36));
	} else if (!strcmp(kind, "fat2")) {
		arg[1] = number(argc, argv, 3, 0);
		arg[2] = number(argc, argv, 4, 0);
		fat2(&t, arg[0], arg[1], arg[2], number(argc, argv, 5, 36));
	} else if (!strcmp(kind, "torus")) {
		arg[1] = number(argc, argv, 3, 0);
		arg[2] = number(argc, argv, 4, 0);
		torus(&t, arg, number(argc, argv, 5, 0));
	} else {
		die(usage);
	}
	for (i = 0; i < t.num; i++)
		print_node(&t, &t.nodes[i]);
	free(t.nodes);
	return 0;
}
