/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices of the soft backend: coming and going, attributes, events, counters; switches' port 0. */
#include <infiniband/umad_sm.h>

#include "mad_test.h"

#define CAP_IS_SM	(1U << 1)
#define CAP_IS_CM	(1U << 16)

static void reader_wake(struct textring_reader *reader)
{
	(void)reader;
}

static struct textring_reader reader = { .wake = reader_wake };

/* Is this the next event? "" for none. */
static bool next_event(const char *wanted)
{
	const char *line = textring_next(t.ibfs.events, &reader);

	if (!line)
		line = "";
	if (!strcmp(line, wanted))
		return true;
	printf("event \"%s\" instead of \"%s\"\n", line, wanted);
	return false;
}

static void test_names(void)
{
	static const char *const bad[] = {
		"", ".", "..", ".x", "a/b", "a b", "name-of-20-characters", "tab\t", "\xc3\xa9",
	};
	struct fabric *fabric = t.ibfs.fabric;
	unsigned int i, num;

	CHECK(node_new(fabric, NODE_CA, "n", 1, 0));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(soft_device_add(&t.ibfs, bad[i], "n") == -EINVAL);
	CHECK(soft_device_add(&t.ibfs, "rxe0", "n") == -EEXIST);
	CHECK(soft_device_add(&t.ibfs, "x", "nowhere") == -ENOENT);
	CHECK(soft_device_add(&t.ibfs, "x", "rxe0") == -EBUSY);
	CHECK(!soft_device_add(&t.ibfs, "name-of-19-chars_.0", "n"));
	num = device("name-of-19-chars_.0")->num;
	CHECK(device_get(&t.ibfs, num) == device("name-of-19-chars_.0"));
	device_get(&t.ibfs, num)->ops->remove(device_get(&t.ibfs, num));
	CHECK(!device_get(&t.ibfs, num));
	/* A number is used once, a name again. */
	CHECK(!soft_device_add(&t.ibfs, "name-of-19-chars_.0", "n"));
	CHECK(device("name-of-19-chars_.0")->num == num + 1);
	CHECK(!device_get(&t.ibfs, num));
}

static void test_attributes(void)
{
	struct ibfs_device *dev = device("rxe0");
	struct port *port = port_of("rxe0");
	struct ibv_device_attr_ex attr;
	struct ibv_port_attr pa;
	union ibv_gid gid;
	uint16_t pkey;

	CHECK(!dev->ops->query_device(dev, &attr));
	CHECK(be64toh(attr.orig_attr.node_guid) == port->node->guid);
	CHECK(be64toh(attr.orig_attr.sys_image_guid) == port->node->sysimg_guid);
	CHECK(attr.orig_attr.phys_port_cnt == 1 && attr.phys_port_cnt_ex == 1);
	CHECK(attr.orig_attr.vendor_id == port->node->vendor_id);
	CHECK(!dev->ops->query_port(dev, 1, &pa));
	CHECK(pa.state == IBV_PORT_ACTIVE && pa.lid == port->lid && pa.lid);
	CHECK(pa.phys_state == PHYS_LINKUP && pa.link_layer == IBV_LINK_LAYER_INFINIBAND);
	CHECK(pa.active_width == port->width_active && pa.active_speed);
	CHECK(pa.pkey_tbl_len == port->node->num_pkeys && pa.gid_tbl_len == port->node->num_guids);
	CHECK(dev->ops->query_port(dev, 0, &pa) == -EINVAL);
	CHECK(dev->ops->query_port(dev, 2, &pa) == -EINVAL);
	CHECK(!dev->ops->query_gid(dev, 1, 0, &gid));
	CHECK(be64toh(gid.global.interface_id) == port->guid);
	CHECK(be64toh(gid.global.subnet_prefix) == port->gid_prefix);
	CHECK(!port_set_guid(port, 3, 0x1234));
	CHECK(!dev->ops->query_gid(dev, 1, 3, &gid));
	CHECK(be64toh(gid.global.interface_id) == 0x1234);
	CHECK(!dev->ops->query_gid(dev, 1, 4, &gid));
	CHECK(!gid.global.interface_id && !gid.global.subnet_prefix);
	CHECK(dev->ops->query_gid(dev, 1, pa.gid_tbl_len, &gid) == -EINVAL);
	CHECK(!dev->ops->query_pkey(dev, 1, 0, &pkey) && pkey == 0xffff);
	CHECK(!port_set_pkey(port, 7, 0x8007));
	CHECK(!dev->ops->query_pkey(dev, 1, 7, &pkey) && pkey == 0x8007);
	CHECK(!dev->ops->query_pkey(dev, 1, 8, &pkey) && !pkey);
	CHECK(dev->ops->query_pkey(dev, 1, pa.pkey_tbl_len, &pkey) == -EINVAL);
}

static void test_speeds(void)
{
	static const struct {
		uint8_t speed, ext, verbs;
	} cases[] = {
		{ SPEED_SDR, 0, 1 }, { SPEED_DDR, 0, 2 }, { SPEED_QDR, 0, 4 },
		{ SPEED_QDR, SPEED_FDR, 16 }, { SPEED_QDR, SPEED_EDR, 32 },
		{ SPEED_QDR, SPEED_HDR, 64 }, { SPEED_QDR, SPEED_NDR, 128 },
		{ SPEED_QDR, SPEED_XDR, 128 },
	};
	struct ibfs_device *dev = device("rxe0");
	struct port *port = port_of("rxe0");
	struct ibv_port_attr attr;
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		port->speed_active = cases[i].speed;
		port->speed_ext_active = cases[i].ext;
		CHECK(!dev->ops->query_port(dev, 1, &attr));
		CHECK(attr.active_speed == cases[i].verbs);
	}
}

static void test_modify(void)
{
	struct ibfs_device *dev = device("rxe0");
	struct port *port = port_of("rxe0");
	char desc[64];

	CHECK(!dev->ops->set_node_desc(dev, "short"));
	CHECK(!strcmp(dev->node_desc, "short") && !strcmp(port->node->desc, "short"));
	memset(desc, 'x', sizeof(desc));
	CHECK(!dev->ops->set_node_desc(dev, desc));
	CHECK(strlen(port->node->desc) == 64 && strlen(dev->node_desc) == 64);
	CHECK(!dev->ops->set_sys_image_guid(dev, 77));
	CHECK(port->node->sysimg_guid == 77 && dev->sys_image_guid == 77);
	CHECK(!dev->ops->modify_port(dev, 1, CAP_IS_CM, 0, false, false, -1));
	CHECK(port->cap_mask & CAP_IS_CM);
	CHECK(!dev->ops->modify_port(dev, 1, 0, CAP_IS_CM, false, false, 3));
	CHECK(!(port->cap_mask & CAP_IS_CM) && port->init_type == 3);
	CHECK(dev->ops->modify_port(dev, 1, 0, 0, false, false, 16) == -EINVAL);
	CHECK(dev->ops->modify_port(dev, 2, 0, 0, false, false, -1) == -EINVAL);
	CHECK(!dev->ops->set_issm(dev, 1, true) && port->cap_mask & CAP_IS_SM);
	CHECK(!dev->ops->set_issm(dev, 1, false) && !(port->cap_mask & CAP_IS_SM));
	port->qkey_violations = 5;
	CHECK(!dev->ops->modify_port(dev, 1, 0, 0, true, false, -1));
	CHECK(!port->qkey_violations);
}

/* Clients hear of their port's states and settings, and of no other's. */
static void test_events(void)
{
	struct ibfs_device *dev = device("rxe0");
	struct port *port = port_of("rxe0");

	textring_attach(t.ibfs.events, &reader, false);
	link_set_down(port->link, true);
	CHECK(next_event("device=rxe0 port=1 event=port_err"));
	CHECK(next_event(""));
	link_set_down(port->link, false);
	CHECK(next_event(""));
	CHECK(!port_set_state(port, PORT_ARMED) && next_event(""));
	CHECK(!port_set_state(port, PORT_ACTIVE));
	CHECK(next_event("device=rxe0 port=1 event=port_active") && next_event(""));
	port_event(port, PORT_EV_LID | PORT_EV_SM | PORT_EV_REREGISTER);
	CHECK(next_event("device=rxe0 port=1 event=lid_change"));
	CHECK(next_event("device=rxe0 port=1 event=sm_change"));
	CHECK(next_event("device=rxe0 port=1 event=client_reregister"));
	port_event(port, PORT_EV_PKEY | PORT_EV_GID);
	CHECK(next_event("device=rxe0 port=1 event=pkey_change"));
	CHECK(next_event("device=rxe0 port=1 event=gid_change"));
	port_event(port, PORT_EV_CAPMASK);
	CHECK(next_event(""));
	CHECK(!dev->ops->modify_port(dev, 1, 0, 0, false, true, -1));
	CHECK(port->state == PORT_DOWN && port->phys_state == PHYS_DISABLED);
	CHECK(next_event("device=rxe0 port=1 event=port_err") && next_event(""));
	dev->ops->remove(dev);
	CHECK(next_event("device=rxe0 event=device_fatal") && next_event(""));
	port_event(port, PORT_EV_LID);
	CHECK(next_event(""));
	textring_detach(t.ibfs.events, &reader);
}

static void test_counters(void)
{
	static const struct {
		enum counter which;
		uint64_t max;
	} widths[] = {
		{ CNT_SYMBOL_ERROR, 0xffff }, { CNT_LINK_ERROR_RECOVERY, 0xff },
		{ CNT_LINK_DOWNED, 0xff }, { CNT_PORT_RCV_ERRORS, 0xffff },
		{ CNT_PORT_XMIT_CONSTRAINT_ERRORS, 0xff }, { CNT_LOCAL_LINK_INTEGRITY_ERRORS, 0xf },
		{ CNT_EXCESSIVE_BUFFER_OVERRUN_ERRORS, 0xf }, { CNT_VL15_DROPPED, 0xffff },
		{ CNT_PORT_XMIT_DATA, UINT64_MAX }, { CNT_MULTICAST_RCV_PACKETS, UINT64_MAX },
		{ CNT_PORT_XMIT_WAIT, UINT32_MAX },
	};
	struct ibfs_device *dev = device("rxe0");
	struct port *port = port_of("rxe0");
	uint64_t value;
	unsigned int i;

	for (i = 0; i < CNT_MAX; i++)
		CHECK(counter_names[i] && !dev->ops->query_counter(dev, 1, i, &value) && !value);
	port->cnt.link_downed = 7;
	CHECK(!dev->ops->query_counter(dev, 1, CNT_LINK_DOWNED, &value) && value == 7);
	memset(&port->cnt, 0xff, sizeof(port->cnt));
	for (i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		CHECK(!dev->ops->query_counter(dev, 1, widths[i].which, &value));
		CHECK(value == widths[i].max);
	}
	CHECK(!dev->ops->clear_counter(dev, 1, CNT_LINK_DOWNED));
	CHECK(!port->cnt.link_downed && port->cnt.link_recovers && port->cnt.rcv_errors);
	CHECK(!dev->ops->clear_counter(dev, 1, CNT_PORT_XMIT_WAIT) && !port->cnt.xmit_wait);
	CHECK(dev->ops->query_counter(dev, 0, CNT_LINK_DOWNED, &value) == -EINVAL);
	CHECK(dev->ops->query_counter(dev, 1, CNT_MAX, &value) == -EINVAL);
	CHECK(dev->ops->clear_counter(dev, 2, CNT_LINK_DOWNED) == -EINVAL);
}

/* The node goes: so do the device and its agents. */
static void test_node_removed(void)
{
	struct client client = { 0 };
	struct mad_reg reg = reg_of(1, CLASS_VENDOR, 1);

	CHECK(!client_open(&client, "rxe1", &reg));
	node_remove(fabric_find(t.ibfs.fabric, "rxe1"));
	CHECK(client.gone == 1 && !device("rxe1"));
	client_close(&client);
}

static struct umad_smp node_info_smp(unsigned int hops, uint8_t port)
{
	struct umad_smp smp = {
		.base_version = 1, .mgmt_class = MAD_CLASS_SUBN_DR, .class_version = 1,
		.method = UMAD_METHOD_GET, .tid = htobe64(hops + 1),
		.attr_id = htobe16(UMAD_SM_ATTR_NODE_INFO), .hop_cnt = hops,
		.initial_path = { 0, port }, .dr_slid = 0xffff, .dr_dlid = 0xffff,
	};

	return smp;
}

/* A switch's port 0 asks by directed route and by LID, and is asked. */
static void test_switch(void)
{
	struct node *sw = fabric_find(t.ibfs.fabric, "switch");
	struct client client = { 0 }, hca = { 0 };
	struct mad_reg reg = reg_of(0, MAD_CLASS_SUBN_DR, 1), gmp = reg_of(1, CLASS_VENDOR, 1);
	struct mad_addr to = { .lid = LID_PERMISSIVE };
	struct umad_smp smp;
	struct umad_packet lid_smp = {
		.mad_hdr = hdr_of(MAD_CLASS_SUBN_LID, 1, UMAD_METHOD_GET,
				  UMAD_SM_ATTR_NODE_INFO, 9),
	};
	struct ibv_port_attr attr;
	struct ibfs_device *dev;
	uint64_t guid;
	unsigned int i;

	CHECK(!soft_device_add(&t.ibfs, "switch0", "switch"));
	dev = device("switch0");
	CHECK(dev->node_type == IBV_NODE_SWITCH && dev->first_port == 0 && dev->num_ports == 0);
	CHECK(!dev->ops->query_port(dev, 0, &attr) && attr.lid == sw->ports[0].lid);
	CHECK(dev->ops->query_port(dev, 1, &attr) == -EINVAL);
	CHECK(!client_open(&client, "switch0", &reg));
	for (i = 0; i < 2; i++) {
		smp = node_info_smp(i, port_of("rxe1")->peer->num);
		CHECK(!client_send(&client, &to, &smp, sizeof(smp), 100, 0));
		CHECK(client.received == i + 1);
		if (client.received != i + 1)
			break;
		memcpy(&guid, client.mad + 64 + 12, sizeof(guid));
		CHECK(be64toh(guid) == (i ? port_of("rxe1")->node->guid : sw->guid));
	}
	to = addr_of("rxe1", 0);
	CHECK(!client_send(&client, &to, &lid_smp, sizeof(lid_smp), 100, 0));
	CHECK(client.received == 3 && client.addr.lid == to.lid);
	client_close(&client);
	/* An HCA's request reaches a client at port 0, and its answer the HCA. */
	CHECK(!client_open(&hca, "rxe0", &gmp));
	to = addr_of("switch", 1);
	lid_smp.mad_hdr = hdr_of(CLASS_VENDOR, 1, UMAD_METHOD_GET, 1, 3);
	CHECK(!client_send(&hca, &to, &lid_smp, sizeof(lid_smp), 100, 0));
	CHECK(hca.received == 1 && client_hdr(&hca)->status == htobe16(0x0c));
	client_close(&hca);
}

/* A device of two ports: agents are a port's own, TIDs too. */
static void test_two_ports(void)
{
	struct fabric *fabric = t.ibfs.fabric;
	struct node *node = node_new(fabric, NODE_CA, "dual", 2, 0);
	struct client one = { 0 }, two = { 0 };
	struct mad_reg reg = reg_of(0, MAD_CLASS_SUBN_DR, 1);
	struct mad_addr to = { .lid = LID_PERMISSIVE };
	struct umad_smp smp = node_info_smp(0, 0);
	struct ibfs_device *dev;
	struct ibv_port_attr attr;

	CHECK(node && !soft_device_add(&t.ibfs, "dual0", "dual"));
	dev = device("dual0");
	CHECK(dev->first_port == 1 && dev->num_ports == 2);
	CHECK(!dev->ops->query_port(dev, 2, &attr) && attr.state == IBV_PORT_DOWN);
	reg.methods[0] = 1ULL << UMAD_METHOD_TRAP;
	one.dev = two.dev = dev;
	CHECK(!dev->ops->mad_register(dev, 1, &reg, &client_ops, &one, &one.agent));
	CHECK(!dev->ops->mad_register(dev, 2, &reg, &client_ops, &two, &two.agent));
	CHECK(dev->ops->mad_register(dev, 3, &reg, &client_ops, &two, &two.agent) == -EINVAL);
	CHECK(!client_send(&one, &to, &smp, sizeof(smp), 100, 0));
	CHECK(!client_send(&two, &to, &smp, sizeof(smp), 100, 0));
	CHECK(one.received == 1 && two.received == 1);
	CHECK(client_hdr(&one)->tid != client_hdr(&two)->tid);
	/* NodeInfo:LocalPortNum is the asking port's. */
	CHECK(one.mad[64 + 36] == 1 && two.mad[64 + 36] == 2);
	client_close(&one);
	client_close(&two);
}

static const struct test tests[] = {
	{ "names", test_names },
	{ "attributes", test_attributes },
	{ "speeds", test_speeds },
	{ "modify", test_modify },
	{ "events", test_events },
	{ "counters", test_counters },
	{ "node_removed", test_node_removed },
	{ "switch", test_switch },
	{ "two_ports", test_two_ports },
	{ 0 },
};

int main(int argc, char **argv)
{
	return run_tests(tests, argc, argv);
}
