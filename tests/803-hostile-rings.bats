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
