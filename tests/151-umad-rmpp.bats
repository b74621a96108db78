# SPDX-License-Identifier: BSD-2-Clause
# Messages that a read has too little room for: ENOSPC, and the buffer filled.
load helpers

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

rmpp()
{
	run -0 timeout 120 "$BUILD/tests/umad_rmpp" "$1" \
		"$MNT/rxe0/1/umad" "$MNT/rxe1/1/umad" "$(cat "$MNT/rxe1/1/lid")"
}

@test "ENOSPC: header and first segment come, the message stays" { rmpp sizes; }
@test "ENOSPC: messages that the kernel cuts into several requests" { rmpp megabytes; }
@test "ENOSPC: messages about as long as one request" { rmpp edges; }
@test "ENOSPC: readv and preadv2" { rmpp vectors; }
@test "ENOSPC: a buffer that can't be written" { rmpp bad_buffer; }
@test "ENOSPC: a reader that waited" { rmpp blocked; }
@test "ENOSPC: two readers that waited" { rmpp two_blocked; }
@test "ENOSPC: four threads" { rmpp threads; }
@test "ENOSPC: two processes" { rmpp processes; }
@test "ENOSPC: two threads on one queue" { rmpp shared_file; }

@test "ENOSPC: no helper thread stays" {
	soft_only "its daemon has threads of its own"
	wait_for has_threads "$IBFS_PID" 1
}

@test "ENOSPC: io_uring gets no data" {
	run timeout 60 "$BUILD/tests/umad_uring" \
		"$MNT/rxe0/1/umad" "$MNT/rxe1/1/umad" "$(cat "$MNT/rxe1/1/lid")"
	[ "$status" != 77 ] || skip "needs io_uring"
	assert_status 0
}
