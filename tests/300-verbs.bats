# SPDX-License-Identifier: BSD-2-Clause
# The verbs engine below the tree: tests/verbs_*.c.
load helpers

verbs() { "$BUILD/tests/verbs_$1" "${@:2}"; }

@test "rc: sends of all sizes" { verbs rc send; }
@test "rc: immediate data with sends and writes" { verbs rc imm; }
@test "rc: RDMA write and read of all sizes" { verbs rc write_read; }
@test "rc: scatter, gather and inline" { verbs rc sge; }
@test "rc: completions in order, unsignaled ones hidden" { verbs rc order; }
@test "rc: acknowledges are coalesced, segments counted" { verbs rc coalescing; }
@test "rc: two QPs of one HCA" { verbs rc loopback; }
@test "cq: solicited, next, missed, at N, moderated" { verbs rc notify; }
@test "cq: resize keeps completions" { verbs rc cq_resize; }
@test "ud: with and without GRH, and the way back" { verbs ud send; }
@test "ud: Q_Keys and P_Keys" { verbs ud keys; }
@test "ud: what can't be sent or received" { verbs ud errors; }
@test "ud: multicast, on one HCA and across a switch" { verbs ud multicast; }
@test "ud: checksums and large sends" { verbs ud offload; }
@test "uc: messages and writes" { verbs ud uc; }
@test "atomics, masked too" { verbs more atomics; }
@test "atomic write" { verbs more atomic_write; }
@test "srq: shared, limit, resize, last request" { verbs more srq; }
@test "xrc: SRQs by number, a shared target" { verbs more xrc; }
@test "mw: type 1" { verbs more mw1; }
@test "mw: type 2, invalidated here and from afar" { verbs more mw2; }
@test "mr: fast registration" { verbs more fast_reg; }
@test "mr: registered anew" { verbs more rereg; }
@test "qp: drained" { verbs more sqd; }
@test "qp: communication established" { verbs more comm_est; }
@test "qp: path migration when a cable is pulled" { verbs more apm; }
@test "memory in another address space" { verbs more remote; }
@test "rings in shared memory" { verbs more ring; }
@test "rings full of anything" { verbs more hostile_ring; }
@test "10,000 QPs" { verbs more many; }
