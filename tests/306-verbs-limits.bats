# SPDX-License-Identifier: BSD-2-Clause
# Limits of a device's verbs, told and enforced: tests/verbs_limits.c.
load helpers

limits() { "$BUILD/tests/verbs_limits" "$1"; }

@test "as many of each kind as the device says" { limits counts; }
@test "multicast groups and QPs attached" { limits multicast; }
@test "sizes of queues, lists and regions" { limits sizes; }
@test "what is enforced is what is told" { limits reported; }
