# SPDX-License-Identifier: BSD-2-Clause
# MADs that programs under ibfs-run write to the file, where no bells are heard.
load helpers

setup_file()
{
	echo 'bells = false;' >"$BATS_FILE_TMPDIR/conf"
	start_ibfs "$BATS_FILE_TMPDIR/conf"
}
teardown_file() { stop_ibfs; }
setup() { setup_rings; }

served() { awk '$1 == "ibfs_requests_total" { print $2 }' "$MNT/metrics"; }
served_beyond() { [ "$(served)" -gt "$1" ]; }
# A client of the tree that never rests, on one processor only.
busy_on() { spawn busy taskset -c "$1" "$BUILD/ibfs-run" -m "$MNT" "$BUILD/tests/umad_ring" busy "$MNT/rxe0/1/umad"; }
# The processors that the daemon may run on, as taskset -c has them.
may_run_on() { awk '/^Cpus_allowed_list/ { print $2 }' "/proc/$IBFS_PID/status"; }
runs_on() { [ "$(may_run_on)" = "$1" ]; }
# The first and the last of this test's.
processors() { taskset -pc $$ | sed 's/.*: //; s/\([0-9]*\).*[-,]/\1 /'; }

@test "the daemon stays on the processor of a client that never rests" {
	local first last all
	read -r first last < <(processors)
	[ -n "$last" ] || skip "needs two processors"
	all=$(may_run_on)
	for cpu in "$first" "$last"; do
		busy_on "$cpu"
		wait_for -t 60 runs_on "$cpu"
		reap busy
		wait_for runs_on "$all"
	done
}

@test "who is followed, and who isn't" {
	run "$BUILD/tests/follow"
	[ "$status" != 77 ] || skip "needs two processors"
	[ "$status" = 0 ] || fail "$output"
}

@test "the daemon leaves no processor that it was bound to" {
	local first last all
	read -r first last < <(processors)
	[ -n "$last" ] || skip "needs two processors"
	all=$(may_run_on)
	taskset -pc "$first" "$IBFS_PID"
	busy_on "$last"
	wait_for file_is "$IBFS_DIR/busy.log" ready
	for _ in 1 2 3; do
		requests=$(served)
		wait_for served_beyond $((requests + 1000))
		runs_on "$first"
	done
	reap busy
	taskset -pc "$all" "$IBFS_PID"
}

@test "no bells: the same errors, order and answers" {
	for name in errors addresses order two_threads forked; do
		run -0 timeout 120 "$BUILD/ibfs-run" -m "$MNT" "$BUILD/tests/umad_send" "$name" \
			"$MNT/rxe0/1/umad" "$MNT/rxe1/1/umad" "$(cat "$MNT/rxe1/1/lid")"
	done
}
