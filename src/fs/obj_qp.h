/* SPDX-License-Identifier: BSD-2-Clause */
/* Between obj_qp.c (commands of queue pairs) and obj_qp_attr.c (their arguments). */
#ifndef IBFS_FS_OBJ_QP_H
#define IBFS_FS_OBJ_QP_H

#include "fs/obj.h"

/* An argument whose values have names: its number, unset when it isn't there or wrong. */
unsigned int qp_named(struct args *args, const char *key, const char *(*name)(unsigned int),
		      unsigned int count, unsigned int unset);
/* The attributes that are given, on top of those in attr; which they are (IBV_QP_*). */
int qp_attributes(struct args *args, struct ibv_qp_attr *attr);
/* What the transition to attr->qp_state needs and wasn't given: values that suit most; the new mask. */
int qp_defaults(const struct obj *obj, unsigned int type, struct ibv_qp_attr *attr, int mask);
enum ibv_mtu qp_port_mtu(const struct obj *obj, unsigned int port);
/* Datagrams of all kinds: no other end to name. */
bool qp_unconnected(unsigned int type);
const char *qp_mig_name(unsigned int state);

#endif
