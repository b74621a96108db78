# SPDX-License-Identifier: BSD-2-Clause
# The agents that every node has, packet by packet: programs that make a small
# fabric of their own, without a daemon.
load helpers

@test "SMPs: directed routes, every attribute of the SMA, M_Keys" {
	run "$BUILD/tests/sma"
	[ "$status" = 0 ] || fail "$output"
}

@test "traps: what raises them, how often they are sent, until when" {
	run "$BUILD/tests/traps"
	[ "$status" = 0 ] || fail "$output"
}

@test "GMPs: performance counters and samples, congestion control, keys" {
	run "$BUILD/tests/pma"
	[ "$status" = 0 ] || fail "$output"
}

@test "packets and MADs that no sane sender makes" {
	run "$BUILD/tests/mad_fuzz"
	[ "$status" = 0 ] || fail "$output"
}
