# SPDX-License-Identifier: BSD-2-Clause
# MADs from shared memory, for programs under ibfs-run: the same as from the file.
load helpers

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }
setup() { setup_rings; }

ring() { run -0 timeout 120 "$BUILD/ibfs-run" -m "$MNT" "$BUILD/tests/umad_ring" "$1" "$MNT/rxe0/1/umad"; }
# The rules of the file and of long messages, with a ring beside it.
umad() { run -0 timeout 60 "$BUILD/ibfs-run" -m "$MNT" "$BUILD/tests/umad" "$1" /dev/infiniband/umad0; }
rmpp()
{
	run -0 timeout 120 "$BUILD/ibfs-run" -m "$MNT" "$BUILD/tests/umad_rmpp" "$1" \
		"$MNT/rxe0/1/umad" "$MNT/rxe1/1/umad" "$(cat "$MNT/rxe1/1/lid")"
}
no_rings() { ! grep -q memfd:ibfs-umad "/proc/$IBFS_PID/maps"; }

@test "ring: an answer costs the daemon no request" { ring used; }
@test "ring: memory that can't be written" { ring bad_buffer; }
@test "ring: two threads, one of them at the file itself: each MAD once, in order" { ring compete; }
@test "ring: a fork shares it" { ring fork; }
@test "ring: thousands unread" { ring overflow; }
@test "ring: a descriptor closed by a system call, and used again" { ring raw_close; }
@test "ring: dup, dup2, close_range" { ring dup; }
@test "ring: exec" { ring exec; }
@test "ring: poll ends in time, by signals, by cancellation, by a MAD" { ring poll; }
@test "ring: without one" { ring fallback; }
@test "ring: only its owner opens it" { ring owner; }
@test "ring: a client that writes what it likes into it" { ring hostile; }
@test "ring: opened again and again" { ring reopen; }

@test "ring: a long message between short ones" {
	run -0 timeout 120 "$BUILD/ibfs-run" -m "$MNT" "$BUILD/tests/umad_ring" message \
		"$MNT/rxe0/1/umad" "$MNT/rxe1/1/umad" "$(cat "$MNT/rxe1/1/lid")"
}

@test "ring: nothing stays of a client that is killed" {
	spawn killed ib "$BUILD/tests/umad_ring" killed "$MNT/rxe0/1/umad"
	wait_for file_is "$IBFS_DIR/killed.log" ready
	grep -q memfd:ibfs-umad "/proc/$IBFS_PID/maps"
	reap killed KILL
	wait_for no_rings
	[ -z "$(ls "$MNT/dev/infiniband/ev")" ]
}

@test "ring: registration" { umad ids; umad bad_registration; umad flags; umad overlap; umad release; }
@test "ring: both header layouts" { umad old_layout; umad enable_pkey; umad new_layout; }
@test "ring: writes, timeouts" { umad write; umad duplicate; umad timeout; }
@test "ring: short reads, O_NONBLOCK" { umad read; umad nonblock_later; }
@test "ring: poll and epoll" { umad poll; }
@test "ring: a signal interrupts a read" { umad eintr; }
@test "ring: two threads blocked on one file" { umad two_readers; umad killed_reader; }
@test "ring: a fork that outlives its parent's file" { umad fork; }
@test "ring: 1,000 opens" { umad thousand; }

@test "ring: ENOSPC" { rmpp sizes; rmpp edges; }
@test "ring: ENOSPC, readers that waited" { rmpp blocked; rmpp two_blocked; }
@test "ring: ENOSPC, threads and processes" { rmpp threads; rmpp processes; rmpp shared_file; }

@test "ring: the device is removed under it" {
	spawn gone ib "$BUILD/tests/umad" gone "$MNT/rxe1/1/umad"
	wait_for file_is "$IBFS_DIR/gone.log" ready
	echo remove >"$MNT/rxe1/ctl"
	wait_for is_gone "$(spawned gone)"
	[ "$(cat "$IBFS_DIR/gone.log")" = ready ]
}

@test "ring: nothing stays" {
	wait_for no_rings
}
