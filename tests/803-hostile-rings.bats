# SPDX-License-Identifier: BSD-2-Clause
# Memory that the daemon shares with a client who keeps to no rule: it is read once,
# what was checked is what is done, and nobody else waits.
load helpers

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }
setup() { setup_rings; }

hostile() { "$BUILD/tests/verbs_hostile" "$1"; }

@test "a flush ends, whatever the client goes on producing: send queue" { hostile flush_send; }
@test "a flush ends, whatever the client goes on producing: receive queue" { hostile flush_recv; }

@test "MADs that a client took from its ring come back from nowhere" {
	run -0 timeout 60 "$BUILD/ibfs-run" -m "$MNT" "$BUILD/tests/umad_ring" rewind \
		"$MNT/rxe0/1/umad"
}

@test "keys, queue pairs' numbers and comm IDs can't be guessed" { hostile numbers; }
@test "nor can the first numbers of a daemon" { hostile first; }

# PSNs and transaction IDs of the CM and of rdma_cm among them; unseeded, it gives the same each time.
@test "the daemon draws no number from random(3)" {
	need_tool nm
	nm -D --undefined-only "$BUILD/ibfs" >"$BATS_TEST_TMPDIR/symbols"
	grep -q arc4random "$BATS_TEST_TMPDIR/symbols"
	run ! grep -wE "s?random|s?rand|[dlm]rand48" "$BATS_TEST_TMPDIR/symbols"
}
