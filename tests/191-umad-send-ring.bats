# SPDX-License-Identifier: BSD-2-Clause
# MADs left in shared memory by programs under ibfs-run: the same as written to the file.
load helpers

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }
setup() { setup_rings; }

# What umad_send's tests are given.
files() { echo "$MNT/rxe0/1/umad" "$MNT/rxe1/1/umad" "$(cat "$MNT/rxe1/1/lid")"; }
# shellcheck disable=SC2046 # three words
umad_send() { run -0 timeout 120 "$BUILD/ibfs-run" -m "$MNT" "$BUILD/tests/umad_send" "$1" $(files); }
# shellcheck disable=SC2046
spawn_send() { spawn "$1" ib "$BUILD/tests/umad_send" "$1" $(files); }
no_rings() { ! grep -q memfd:ibfs-umad "/proc/$IBFS_PID/maps"; }
# May programs use io_uring here, and does the kernel wait for futexes by it?
need_bells() { need_kernel 6 7; [ "$(cat /proc/sys/kernel/io_uring_disabled)" = 0 ] || skip "io_uring is disabled"; }

@test "send ring: a request costs the daemon none of the file" { need_bells; umad_send used; }
@test "send ring: each error, and duplicates, both ways" { umad_send errors; }
@test "send ring: memory that can't be read, and polls of it" { umad_send addresses; }
@test "send ring: order, and more than it has room for" { umad_send order; }
@test "send ring: threads, some of them at the file itself" { umad_send two_threads; }
@test "send ring: a fork shares it" { umad_send forked; }
@test "send ring: a signal's handler that writes" { umad_send handler; }
@test "send ring: one that shares it is killed anywhere" { umad_send killed; }
@test "send ring: what was left goes out" { umad_send left; }
@test "send ring: what is left by a client with answers to read goes out" { umad_send patient; }
@test "send ring: what was written before a close goes out" { umad_send close; }
@test "send ring: an answer to a file that closes, and that was polled" { umad_send close_polled; }
@test "send ring: a client that writes what it likes into it" { umad_send hostile; }
@test "send ring: many files" { umad_send many; }

@test "send ring: nothing stays of a client that is killed" {
	spawn_send busy
	wait_for file_is "$IBFS_DIR/busy.log" ready
	reap busy KILL
	wait_for no_rings
}

@test "send ring: two clients that never rest, and a third" {
	for name in one two; do
		# shellcheck disable=SC2046
		spawn $name ib "$BUILD/tests/umad_send" busy $(files)
		wait_for file_is "$IBFS_DIR/$name.log" ready
	done
	umad_send order
	reap one
	reap two
}

@test "send ring: the device is removed under it" {
	# shellcheck disable=SC2046
	spawn gone ib "$BUILD/tests/umad_send" gone $(files)
	wait_for file_is "$IBFS_DIR/gone.log" ready
	echo remove >"$MNT/rxe0/ctl"
	wait_for -t 30 is_gone "$(spawned gone)"
	[ "$(cat "$IBFS_DIR/gone.log")" = ready ]
}

@test "send ring: nothing stays" {
	wait_for no_rings
}
