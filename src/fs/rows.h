/* SPDX-License-Identifier: BSD-2-Clause */
/* What the rows of the tree's table refer to, by the file that has it. */
#ifndef IBFS_FS_ROWS_H
#define IBFS_FS_ROWS_H

#include "fs/tree.h"

/* root.c */
extern const struct entry root_entries[];
extern const struct dir_ops root_dir;
extern const struct file_ops root_text_ops, errors_ops, events_ops;
/* metrics.c */
extern const struct file_ops metrics_ops;

/* dev_text.c */
extern const struct file_ops dev_text_ops, dev_set_ops, port_text_ops;
/* dev_table.c */
extern const struct dir_ops table_dir;
extern const struct dir_ops counters_dir, hw_counters_dir;
extern const struct file_ops gid_ops, pkey_ops, gid_type_ops, gid_ndev_ops, counter_ops;
extern const struct file_ops hw_counter_ops;
/* dev.c */
extern const struct entry dev_entries[], port_entries[], gid_attrs_entries[];
extern const struct entry dev_value_entries[], port_value_entries[];	/* in sys/class, too */
extern const struct dir_ops dev_dir;
int umad_getattr(struct ibfs *ibfs, struct path path, struct stat *st);
int clone_getattr(struct ibfs *ibfs, struct path path, struct stat *st);
int issm_getattr(struct ibfs *ibfs, struct path path, struct stat *st);
/* devctl.c */
extern const struct file_ops dev_ctl_ops, port_ctl_ops, query_ops;
/* madtext.c */
extern const struct entry mads_entries[], mad_entries[];
extern const struct dir_ops mads_dir;
extern const struct file_ops mad_clone_ops, mad_ctl_ops, mad_data_ops, mad_status_ops;
int mad_clone_getattr(struct ibfs *ibfs, struct path path, struct stat *st);
int mad_getattr(struct ibfs *ibfs, struct path path, struct stat *st);
/* peer.c, peer_text.c, peer_counter.c */
extern const struct entry peer_port_entries[];
extern const struct dir_ops peer_dir, peer_ports_dir;
extern const struct file_ops peer_text_ops, peer_port_text_ops, peer_counter_ops;
int peer_getattr(struct ibfs *ibfs, struct path path, struct stat *st);
struct path peer_up(struct ibfs *ibfs, struct path dir);
ssize_t peer_ready(struct fs_req *req, struct path path);
ssize_t peer_ports_ready(struct fs_req *req, struct path path);
void peer_device_gone(const struct ibfs_device *dev);
void peers_exit(struct ibfs *ibfs);
/* ipoibdir.c, ipoib_ctl.c, ipoib_frame.c */
extern const struct entry ipoibs_entries[], ipoib_entries[], sys_net_entries[];
extern const struct dir_ops ipoibs_dir, ipoib_stats_dir, sys_nets_dir, sys_device_dir;
extern const struct file_ops ipoib_clone_ops, ipoib_ctl_ops, ipoib_text_ops, ipoib_frame_ops;
extern const struct file_ops ipoib_table_ops;
extern const struct file_ops ipoib_stat_ops;
int ipoib_getattr(struct ibfs *ibfs, struct path path, struct stat *st);
/* "device=D port=N ipoib=NAME ", how the lines of its events begin; false: it is gone. */
bool ipoib_event_prefix(struct ibfs *ibfs, struct path path, char *prefix, size_t size);
/* A line of `metrics`, of the first interface from *num on; false: there is none. */
struct ipoib_stat_name;
bool ipoib_metric(struct ibfs *ibfs, uint64_t *num, const struct ipoib_stat_name *stat,
		  struct textbuf *out);
/* pcap.c */
extern const struct file_ops pcap_ops;
/* Before the node or the device goes: its captures end. */
void pcap_node_gone(struct ibfs *ibfs, const struct node *node);
void pcap_device_gone(const struct ibfs_device *dev);

/* fabricdir.c, links.c */
extern const struct entry fabric_entries[], switch_entries[], node_entries[];
extern const struct entry node_port_entries[], link_entries[];
extern const struct dir_ops nodes_dir, node_ports_dir, node_counters_dir, links_dir;
extern const struct file_ops topology_ops, fabric_ctl_ops, node_text_ops, node_ctl_ops;
extern const struct file_ops node_lft_ops, node_mft_ops;
extern const struct file_ops node_port_text_ops, node_counter_ops, link_text_ops, link_ctl_ops;

/* objdir.c, obj_files.c */
extern const struct dir_ops objs_dir, obj_dir;
extern const struct file_ops obj_file_ops, obj_clone_ops;
int objs_getattr(struct ibfs *ibfs, struct path path, struct stat *st);
int obj_getattr(struct ibfs *ibfs, struct path path, struct stat *st);
int obj_setattr(struct ibfs *ibfs, struct path path, const struct fs_cred *cred,
		const struct stat *st, unsigned int mask);
int obj_check(struct ibfs *ibfs, struct path path);

unsigned int obj_file_flags(struct path path);	/* FS_*, of a KIND_OBJ_FILE */

/* 9p_ctl.c */
extern const struct entry p9_ctl_entries[];
extern const struct file_ops p9_null_ops, p9_zero_ops;

/* sysclass.c */
extern const struct entry devdir_entries[], devdir_ib_entries[], sys_entries[];
extern const struct entry sys_class_entries[], sys_mad_entries[];
extern const struct entry sys_dev_entries[], sys_device_entries[], sys_port_entries[];
extern const struct entry sys_gid_attrs_entries[], sys_umad_entries[], sys_issm_entries[];
extern const struct dir_ops devdir_ib_dir, sys_ib_dir, sys_mad_dir, sys_ports_dir;
extern const struct file_ops sys_text_ops, sys_device_text_ops, sys_umad_text_ops;
/* ev.c; ids: of what has a file in dev/infiniband/ev */
extern const struct dir_ops ev_dir;
uint32_t ev_id(struct fs *fs);
/* uverbs_class.c, uverbs.c, uverbs_event.c */
extern const struct entry uverbs_class_entries[], sys_uverbs_entries[];
extern const struct dir_ops uverbs_class_dir;
extern const struct file_ops uverbs_ops, uv_events_ops, uverbs_text_ops, uverbs_abi_ops;
int uverbs_getattr(struct ibfs *ibfs, struct path path, struct stat *st);
int uv_events_getattr(struct ibfs *ibfs, struct path path, struct stat *st);
/* Does the device have a uverbs file? */
bool uverbs_has(const struct ibfs_device *dev);
/* uverbsN of dev/infiniband: as dir_ops. */
int uverbs_lookup(struct ibfs *ibfs, const char *name, struct path *child, uint8_t kind);
int uverbs_next(struct ibfs *ibfs, uint64_t *pos, char name[256], struct path *child, uint8_t kind);
int uverbs_device_added(struct ibfs_device *dev);		/* -ENOMEM */
void uverbs_device_gone(struct ibfs_device *dev);
void uverbs_forget(const struct ibfs_device *dev);		/* its number is free again */
/* ucma*.c */
extern const struct entry sys_misc_entries[], sys_ucma_entries[];
extern const struct file_ops ucma_ops, ucma_text_ops;
unsigned int ucma_count(const struct fs *fs);	/* ids that there are */
void ucma_device_added(struct ibfs_device *dev);
void ucma_device_gone(struct ibfs_device *dev);
/* umad_ring.c */
bool umad_ring_exists(struct ibfs *ibfs, uint64_t id);
uint64_t umad_ring_from(struct ibfs *ibfs, uint64_t id);	/* the first from id on; UINT64_MAX */
extern const struct file_ops umad_ring_ops;
int umad_ring_getattr(struct ibfs *ibfs, struct path path, struct stat *st);

#endif
