/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/links: a directory for each cable, named NODE:PORT-NODE:PORT. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topology.h"
#include "fs/dev.h"
#include "fs/fabricdir.h"
#include "fs/rows.h"

enum { LINK_ATTR, LINK_STATE, LINK_ENDS, LINK_COUNTERS };

const struct entry link_entries[] = {
	{ "attr", KIND_LINK_TEXT, LINK_ATTR },
	{ "state", KIND_LINK_TEXT, LINK_STATE },
	{ "ends", KIND_LINK_TEXT, LINK_ENDS },
	{ "counters", KIND_LINK_TEXT, LINK_COUNTERS },
	{ "ctl", KIND_LINK_CTL, 0 },
	{ NULL, 0, 0 }
};

static struct link *path_link(struct ibfs *ibfs, struct path path)
{
	return ibfs->fabric->links[path.idx];
}

static bool file_name(char name[256], const struct link *link)
{
	char plain[256];

	return link_name(link, plain, sizeof(plain)) < (int)sizeof(plain) &&
	       name_from_id(name, plain);
}

struct link *link_by_name(struct fabric *fabric, const char *name)
{
	char plain[256];

	return id_from_name(plain, sizeof(plain), name) ? fabric_find_link(fabric, plain) : NULL;
}

static int links_lookup(struct ibfs *ibfs, struct path dir, const char *name, struct path *child)
{
	const struct link *link;
	char canon[256];

	(void)dir;
	link = ibfs->fabric ? link_by_name(ibfs->fabric, name) : NULL;
	/* One name each: a directory of two names would be two directories to the kernel. */
	if (!link || !file_name(canon, link) || strcmp(canon, name) != 0)
		return -ENOENT;
	child->kind = KIND_LINK;
	child->idx = link->index;
	return 0;
}

static int links_next(struct ibfs *ibfs, struct path dir, uint64_t *pos, char name[256],
		      struct path *child)
{
	const struct fabric *fabric = ibfs->fabric;
	const struct link *link;

	(void)dir;
	for (; fabric && *pos < fabric->num_links; ++*pos) {
		link = fabric->links[*pos];
		if (!link || !file_name(name, link))
			continue;
		child->kind = KIND_LINK;
		child->idx = link->index;
		++*pos;
		return 1;
	}
	return 0;
}

const struct dir_ops links_dir = { .lookup = links_lookup, .next = links_next };

/* Up when packets can cross: both ends trained. */
static const char *link_state(const struct link *link)
{
	return !link->down && link->a->phys_state == PHYS_LINKUP ? "up" : "down";
}

static void faults_print(const struct link *link, struct textbuf *out)
{
	struct fault_conf c;

	if (!link->faults) {
		text_printf(out, "faults off\n");
		return;
	}
	link_get_faults(link, &c);
	text_printf(out, "faults drop=%g corrupt=%g duplicate=%g reorder=%g overrun=%g delay=%gs "
		    "jitter=%gs seed=%llu\n", c.drop, c.corrupt, c.duplicate, c.reorder, c.overrun,
		    c.delay, c.jitter, (unsigned long long)c.seed);
}

static void ends_print(const struct link *link, struct textbuf *out)
{
	port_name_print(out, link->a);
	text_printf(out, " ");
	port_name_print(out, link->b);
	text_printf(out, "\n");
}

static void link_attr_print(const struct link *link, struct textbuf *out)
{
	text_printf(out, "state %s\nends ", link_state(link));
	ends_print(link, out);
	text_printf(out, "width %s\nspeed %s\nrate ", width_active_name(link->a->width_active),
		    speed_active_name(link->a->speed_active, link->a->speed_ext_active));
	rate_print(out, link->a->width_active, port_speed_bit(link->a));
	text_printf(out, "mtu %u\n", 128U << link->a->neighbor_mtu);
	faults_print(link, out);
}

/* What both ends count: "NAME A B". */
static void link_counters_print(const struct link *link, struct textbuf *out)
{
	unsigned int i;

	for (i = 0; i < CNT_MAX; i++)
		text_printf(out, "%s %llu %llu\n", counter_names[i],
			    (unsigned long long)port_counter(link->a, i),
			    (unsigned long long)port_counter(link->b, i));
}

static int link_show(struct ibfs *ibfs, struct path path, struct textbuf *out)
{
	const struct link *link = path_link(ibfs, path);

	switch (path.sub) {
	case LINK_ATTR:
		link_attr_print(link, out);
		return 0;
	case LINK_STATE:
		text_printf(out, "%s\n", link_state(link));
		return 0;
	case LINK_ENDS:
		ends_print(link, out);
		return 0;
	case LINK_COUNTERS:
		link_counters_print(link, out);
		return 0;
	default:
		return -ENOENT;
	}
}

const struct file_ops link_text_ops = { .show = link_show };

static int set_down(struct ibfs *ibfs, struct link *link, struct ctl_line *line)
{
	if (line->argc != 1)
		return ibfs_fail(ibfs, EINVAL, "links/ctl: `%s` takes no argument", line->argv[0]);
	link_set_down(link, !strcmp(line->argv[0], "down"));
	fabric_changed(ibfs);
	return 0;
}

static int stall(struct ibfs *ibfs, struct link *link, struct ctl_line *line)
{
	int ret;

	if (line->argc != 1)
		return ibfs_fail(ibfs, EINVAL, "links/ctl: `stall` takes no argument");
	ret = link_stall(link);
	return ret ? ibfs_fail(ibfs, -ret, "links/ctl: stall: the link is down") : 0;
}

static int faults_off(struct ibfs *ibfs, struct link *link, struct ctl_line *line)
{
	static const struct fault_conf perfect;

	if (line->argc != 2 || strcmp(line->argv[1], "off") != 0)
		return ibfs_fail(ibfs, EINVAL, "links/ctl: expected `faults off`");
	return link_set_faults(link, &perfect);
}

static void retrain(struct ibfs *ibfs, struct link *link)
{
	port_retrain(link->a);
	port_retrain(link->b);
	fabric_changed(ibfs);
}

/* "4X": the only width that both ends enable. */
static int set_width(struct ibfs *ibfs, struct link *link, struct ctl_line *line)
{
	static const unsigned int lanes[] = { 1, 4, 8, 12, 2 };	/* by WIDTH_*'s bit */
	char *end = line->argv[line->argc - 1];
	unsigned int i, mask = 0;
	unsigned long n;

	n = strtoul(end, &end, 10);
	for (i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++)
		if (lanes[i] == n)
			mask = 1U << i;
	if (line->argc != 2 || !mask || (strcmp(end, "X") != 0 && strcmp(end, "x") != 0))
		return ibfs_fail(ibfs, EINVAL, "links/ctl: expected `width 1X|2X|4X|8X|12X`");
	if (!(link->a->width_supported & link->b->width_supported & mask))
		return ibfs_fail(ibfs, EINVAL, "links/ctl: the ends do not both support %s",
				 line->argv[1]);
	link->a->width_enabled = link->b->width_enabled = mask;
	retrain(ibfs, link);
	return 0;
}

static bool speed_supported(const struct port *port, const struct speed_name *speed)
{
	if (speed->ext)
		return (speed->ext & ~port->speed_ext_supported) == 0;
	return (speed->speed & ~port->speed_supported) == 0;
}

/* A speed and all below it. */
static int set_speed(struct ibfs *ibfs, struct link *link, struct ctl_line *line)
{
	const struct speed_name *speed = line->argc == 2 ? speed_by_name(line->argv[1]) : NULL;

	if (!speed)
		return ibfs_fail(ibfs, EINVAL,
				 "links/ctl: expected `speed SDR|DDR|QDR|FDR|EDR|HDR|NDR|XDR`");
	if (!speed_supported(link->a, speed) || !speed_supported(link->b, speed))
		return ibfs_fail(ibfs, EINVAL, "links/ctl: the ends do not both support %s",
				 line->argv[1]);
	link->a->speed_enabled = link->b->speed_enabled = speed->speed;
	link->a->speed_ext_enabled = link->b->speed_ext_enabled = speed->ext;
	retrain(ibfs, link);
	return 0;
}

/* "0.01", "1%" */
static int parse_probability(const char *text, double *value)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text)
		return -EINVAL;
	if (!strcmp(end, "%"))
		v /= 100;
	else if (*end)
		return -EINVAL;
	if (!(v >= 0 && v <= 1))
		return -EINVAL;
	*value = v;
	return 0;
}

/* "5ms", "10us", "1s"; a number alone is seconds. */
static int parse_time(const char *text, double *seconds)
{
	static const struct {
		const char *name;
		double factor;
	} units[] = { { "", 1 }, { "s", 1 }, { "ms", 1e-3 }, { "us", 1e-6 }, { "ns", 1e-9 } };
	char *end;
	double v = strtod(text, &end);
	unsigned int i;

	if (end == text || !(v >= 0 && v <= 3600))
		return -EINVAL;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		*seconds = v * units[i].factor;
		return 0;
	}
	return -EINVAL;
}

static int parse_fault(struct ibfs *ibfs, struct fault_conf *conf, const char *arg)
{
	const struct {
		const char *key;
		double *field;
		int (*parse)(const char *text, double *value);
	} words[] = {
		{ "drop", &conf->drop, parse_probability },
		{ "corrupt", &conf->corrupt, parse_probability },
		{ "duplicate", &conf->duplicate, parse_probability },
		{ "reorder", &conf->reorder, parse_probability },
		{ "overrun", &conf->overrun, parse_probability },
		{ "delay", &conf->delay, parse_time },
		{ "jitter", &conf->jitter, parse_time },
	};
	const char *value;
	unsigned int i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		value = ctl_value(arg, words[i].key);
		if (!value)
			continue;
		if (words[i].parse(value, words[i].field))
			return ibfs_fail(ibfs, EINVAL, "links/ctl: \"%s\": expected %s", arg,
					 words[i].parse == parse_time ?
					 "a time (5ms, 10us, 1s)" : "a probability (0 to 1)");
		return 0;
	}
	value = ctl_value(arg, "seed");
	if (value && parse_u64(value, UINT64_MAX, &conf->seed) == 0)
		return 0;
	return ibfs_fail(ibfs, EINVAL, "links/ctl: no command \"%s\"", arg);
}

/* drop= corrupt= ...: what is not named stays. */
static int set_faults(struct ibfs *ibfs, struct link *link, struct ctl_line *line)
{
	struct fault_conf conf = { 0 };
	unsigned int i;
	int ret;

	if (link->faults)
		link_get_faults(link, &conf);
	for (i = 0; i < line->argc; i++) {
		ret = parse_fault(ibfs, &conf, line->argv[i]);
		if (ret)
			return ret;
	}
	return link_set_faults(link, &conf);
}

static const struct {
	const char *name;
	int (*run)(struct ibfs *ibfs, struct link *link, struct ctl_line *line);
} link_verbs[] = {
	{ "down", set_down },
	{ "up", set_down },
	{ "faults", faults_off },
	{ "stall", stall },
	{ "width", set_width },
	{ "speed", set_speed },
};

static int link_command(void *ctx, struct ctl_line *line)
{
	struct file *file = ctx;
	struct link *link = path_link(file->ibfs, file->path);
	unsigned int i;

	if (!link)
		return ibfs_fail(file->ibfs, ENODEV, "the link is gone");
	for (i = 0; i < sizeof(link_verbs) / sizeof(link_verbs[0]); i++)
		if (!strcmp(link_verbs[i].name, line->argv[0]))
			return link_verbs[i].run(file->ibfs, link, line);
	return set_faults(file->ibfs, link, line);
}

static ssize_t link_ctl_store(struct file *file, struct fs_req *req, const char *text, size_t len)
{
	(void)req;
	return ctl_write(file->ibfs, text, len, link_command, file);
}

const struct file_ops link_ctl_ops = { .store = link_ctl_store, .lines = true };
