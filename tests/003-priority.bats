# SPDX-License-Identifier: BSD-2-Clause
# The daemon runs before those who wait for it, where it may, and starves nobody.
load helpers

setup() { need_tool chrt; }
teardown() { stop_ibfs; }

policy_is() { chrt -p "$IBFS_PID" | grep -q "policy: $1"; }

@test "real-time priority ends while a thread is busy, and isn't inherited" {
	run "$BUILD/tests/priority"
	[ "$status" != 77 ] || skip "real-time priority is not permitted here"
	[ "$status" = 0 ]
}

# A client that rings doorbells, and what the daemon is right afterwards.
rung_policy_is() { "$BUILD/tests/verbs_native" "$MNT" && policy_is "$1"; }
quiet_policy_is() { cat "$MNT/version" && policy_is "$1"; }

@test "the daemon has real-time priority while doorbells ring, where it is permitted" {
	chrt -f 1 true 2>/dev/null || skip "real-time priority is not permitted here"
	start_ibfs
	policy_is SCHED_OTHER
	wait_for -t 60 rung_policy_is SCHED_FIFO
	wait_for -t 60 quiet_policy_is SCHED_OTHER
}

@test "realtime = false: it has not" {
	echo 'realtime = false;' >"$BATS_TEST_TMPDIR/conf"
	start_ibfs "$BATS_TEST_TMPDIR/conf"
	rung_policy_is SCHED_OTHER
}
