# SPDX-License-Identifier: BSD-2-Clause
# A client whose memory never answers: only it waits.
load helpers

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

dead_page()
{
	run timeout 60 "$BUILD/tests/umad_dead_page" "$1" \
		"$MNT/rxe0/1/umad" "$MNT/rxe1/1/umad" "$(cat "$MNT/rxe1/1/lid")"
	[ "$status" != 77 ] || skip "needs userfaultfd"
	assert_status 0
}

@test "dead page: the read goes on when the page comes" { dead_page resolves; }
@test "dead page: a signal interrupts the read" { dead_page signal; }
@test "dead page: others go on, and the client can be killed" { dead_page killed; }

@test "dead page: a writer that hangs keeps no other from writing" { dead_page writer; }

@test "dead page: no helper thread stays" {
	soft_only "its daemon has threads of its own"
	wait_for has_threads "$IBFS_PID" 1
}

@test "dead page: the daemon ends while a client hangs" {
	[[ $BUILD != *sanitize ]] || skip "LeakSanitizer waits for the thread that hangs"
	soft_only "its daemon has threads of its own"
	start_ibfs
	spawn stays "$BUILD/tests/umad_dead_page" stays \
		"$MNT/rxe0/1/umad" "$MNT/rxe1/1/umad" "$(cat "$MNT/rxe1/1/lid")"
	wait_for test -s "$IBFS_DIR/stays.log" || skip "needs userfaultfd"
	file_is "$IBFS_DIR/stays.log" hangs
	has_threads "$IBFS_PID" 2
	kill -TERM "$IBFS_PID"
	wait_for -t 5 is_gone "$IBFS_PID"
	wait_for not is_mounted
	reap stays KILL
	not compgen -G "$IBFS_DIR/asan*"
	rm -rf "$IBFS_DIR"
}
