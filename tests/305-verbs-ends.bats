# SPDX-License-Identifier: BSD-2-Clause
# Queues that break, a device that goes, an engine without memory, memory that is
# shared with a client: tests/verbs_ends.c.
load helpers

ends() { "$BUILD/tests/verbs_ends" "$1"; }

@test "a SRQ with a request that can't be: srq_err" { ends srq_err; }
@test "no room for a receive's completion: cq_err, qp_fatal" { ends recv_overrun; }
@test "fatal_err: the device goes" { ends lost; }
@test "memory that a client shares" { ends aliased; }

@test "general_err: the engine has no memory" {
	! nm "$BUILD/tests/verbs_ends" | grep -qE "__[at]san" || skip "a sanitizer has its own allocator"
	ends no_memory
}
