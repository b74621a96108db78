/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_modify_qp()'s attributes as arguments of commands, and what they are
 * where they aren't given.
 */
#include <stddef.h>
#include <string.h>

#include "fs/obj_qp.h"

#define TO_INIT	(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define TO_RTR	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RD_DEPTH 16
#define QP1_QKEY 0x80010000U

static const struct {
	const char *key;
	int mask;
	uint16_t offset;
	uint8_t size;
	uint64_t max;
} numbers[] = {
#define NUMBER(key, bit, field, max) { key, bit, offsetof(struct ibv_qp_attr, field), \
				       sizeof(((struct ibv_qp_attr *)0)->field), max }
	NUMBER("port", IBV_QP_PORT, port_num, UINT8_MAX),
	NUMBER("pkey", IBV_QP_PKEY_INDEX, pkey_index, UINT16_MAX),
	NUMBER("qkey", IBV_QP_QKEY, qkey, UINT32_MAX),
	NUMBER("qpn", IBV_QP_DEST_QPN, dest_qp_num, UINT32_MAX),
	NUMBER("rq_psn", IBV_QP_RQ_PSN, rq_psn, UINT32_MAX),
	NUMBER("sq_psn", IBV_QP_SQ_PSN, sq_psn, UINT32_MAX),
	NUMBER("timeout", IBV_QP_TIMEOUT, timeout, UINT8_MAX),
	NUMBER("retry_cnt", IBV_QP_RETRY_CNT, retry_cnt, UINT8_MAX),
	NUMBER("rnr_retry", IBV_QP_RNR_RETRY, rnr_retry, UINT8_MAX),
	NUMBER("min_rnr_timer", IBV_QP_MIN_RNR_TIMER, min_rnr_timer, UINT8_MAX),
	NUMBER("max_rd_atomic", IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, UINT8_MAX),
	NUMBER("max_dest_rd_atomic", IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, UINT8_MAX),
	NUMBER("sqd_event", IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify, 1),
	NUMBER("alt_port", IBV_QP_ALT_PATH, alt_port_num, UINT8_MAX),
	NUMBER("alt_pkey", IBV_QP_ALT_PATH, alt_pkey_index, UINT16_MAX),
	NUMBER("alt_timeout", IBV_QP_ALT_PATH, alt_timeout, UINT8_MAX),
	NUMBER("alt_lid", IBV_QP_ALT_PATH, alt_ah_attr.dlid, UINT16_MAX),
	NUMBER("alt_sl", IBV_QP_ALT_PATH, alt_ah_attr.sl, UINT8_MAX),
#undef NUMBER
};

static void set_number(struct ibv_qp_attr *attr, unsigned int offset, unsigned int size, uint64_t value)
{
	/* Fields are 1, 2 or 4 bytes: little-endian or big, through their own type. */
	void *field = (char *)attr + offset;

	if (size == 1)
		*(uint8_t *)field = value;
	else if (size == 2)
		*(uint16_t *)field = value;
	else
		*(uint32_t *)field = value;
}

unsigned int qp_named(struct args *args, const char *key, const char *(*name)(unsigned int),
		      unsigned int count, unsigned int unset)
{
	const char *text = arg_text(args, key);

	if (!text)
		return unset;
	for (unsigned int i = 0; i < count; i++)
		if (name(i) && !strcmp(name(i), text))
			return i;
	arg_error(args, EINVAL, "%s=%s isn't known", key, text);
	return unset;
}

const char *qp_mig_name(unsigned int state)
{
	static const char *const names[] = { "migrated", "rearm", "armed" };

	return state < 3 ? names[state] : NULL;
}

static const char *mtu_name(unsigned int mtu)
{
	static const char *const names[] = { NULL, "256", "512", "1024", "2048", "4096" };

	return mtu < 6 ? names[mtu] : NULL;
}

int qp_attributes(struct args *args, struct ibv_qp_attr *attr)
{
	const char *const av[] = { "lid", "sl", "path_bits", "static_rate", "gid", "gid_index",
				   "hop_limit", "flow_label", "traffic_class" };
	int mask = 0;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint64_t value = arg_num(args, numbers[i].key, numbers[i].max, UINT64_MAX);

		if (value == UINT64_MAX)
			continue;
		set_number(attr, numbers[i].offset, numbers[i].size, value);
		mask |= numbers[i].mask;
	}
	for (unsigned int i = 1; i < args->line->argc; i++)
		for (size_t j = 0; j < sizeof(av) / sizeof(av[0]); j++)
			if (ctl_value(args->line->argv[i], av[j]))
				mask |= IBV_QP_AV;
	args_av(args, &attr->ah_attr);
	attr->path_mtu = qp_named(args, "mtu", mtu_name, 6, 0);
	if (attr->path_mtu)
		mask |= IBV_QP_PATH_MTU;
	attr->qp_access_flags = arg_access(args, "access", UINT32_MAX);
	if (attr->qp_access_flags != UINT32_MAX)
		mask |= IBV_QP_ACCESS_FLAGS;
	attr->path_mig_state = qp_named(args, "path_mig", qp_mig_name, 3, 3);
	if (attr->path_mig_state != 3)
		mask |= IBV_QP_PATH_MIG_STATE;
	if (mask & IBV_QP_QKEY && attr->qkey >> 31 && !fs_privileged(&args->req->cred))
		arg_error(args, EPERM, "a qkey= with the top bit set is for root");
	attr->cur_qp_state = qp_named(args, "cur_state", qp_state_name, 7, 7);
	if (attr->cur_qp_state != 7)
		mask |= IBV_QP_CUR_STATE;
	return mask;
}

enum ibv_mtu qp_port_mtu(const struct obj *obj, unsigned int port)
{
	struct ibv_port_attr attr;

	return obj->dev->ops->query_port(obj->dev, port ? port : 1, &attr) ? IBV_MTU_256 : attr.active_mtu;
}

bool qp_unconnected(unsigned int type)
{
	return type == IBV_QPT_UD || type <= IBFS_QPT_GSI || type == IBV_QPT_RAW_PACKET;
}

static int init_defaults(unsigned int type, struct ibv_qp_attr *attr, int mask)
{
	const unsigned int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	int add = TO_INIT | (qp_unconnected(type) ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);

	if (!(mask & IBV_QP_PORT))
		attr->port_num = 1;
	if (!(mask & IBV_QP_ACCESS_FLAGS))
		attr->qp_access_flags = all;
	if (type == IBFS_QPT_GSI && !(mask & IBV_QP_QKEY))
		attr->qkey = QP1_QKEY;
	if (type <= IBFS_QPT_GSI)
		add &= ~IBV_QP_PORT;
	return type == IBV_QPT_RAW_PACKET ? IBV_QP_PORT : add;
}

static int rtr_defaults(const struct obj *obj, unsigned int type, struct ibv_qp_attr *attr, int mask)
{
	int add = TO_RTR & ~(IBV_QP_AV | IBV_QP_DEST_QPN);

	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV)
		add |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (!(mask & IBV_QP_PATH_MTU))
		attr->path_mtu = qp_port_mtu(obj, attr->port_num);
	if (!(mask & IBV_QP_MAX_DEST_RD_ATOMIC))
		attr->max_dest_rd_atomic = RD_DEPTH;
	if (!(mask & IBV_QP_MIN_RNR_TIMER))
		attr->min_rnr_timer = 12;
	return add;
}

static int rts_defaults(unsigned int type, struct ibv_qp_attr *attr, int mask)
{
	int add = type == IBV_QPT_RAW_PACKET ? 0 : IBV_QP_SQ_PSN;

	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND)
		add |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC;
	if (type == IBV_QPT_XRC_RECV)
		add |= IBV_QP_TIMEOUT;
	if (!(mask & IBV_QP_TIMEOUT))
		attr->timeout = 14;
	if (!(mask & IBV_QP_RETRY_CNT))
		attr->retry_cnt = 7;
	if (!(mask & IBV_QP_RNR_RETRY))
		attr->rnr_retry = 7;
	if (!(mask & IBV_QP_MAX_QP_RD_ATOMIC))
		attr->max_rd_atomic = RD_DEPTH;
	return add;
}

int qp_defaults(const struct obj *obj, unsigned int type, struct ibv_qp_attr *attr, int mask)
{
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		return mask | init_defaults(type, attr, mask);
	case IBV_QPS_RTR:
		return qp_unconnected(type) ? mask : mask | rtr_defaults(obj, type, attr, mask);
	case IBV_QPS_RTS:
		return mask | rts_defaults(type, attr, mask);
	default:
		return mask;
	}
}
