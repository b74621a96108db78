# SPDX-License-Identifier: BSD-2-Clause
# What a daemon that is killed leaves: errors for those who used its files, no one
# who waits for ever, and a mount point that can be unmounted.
load helpers

setup() { need_tool ibping; [ -w /dev/fuse ] || skip "no /dev/fuse here"; }

teardown()
{
	[ -n "${IBFS_DIR:-}" ] || return 0
	[ -n "${BATS_TEST_COMPLETED:-}" ] || show_logs
	reap_all || true
	! grep -q " $MNT " /proc/self/mounts || umount -l "$MNT"
	rm -rf "$IBFS_DIR"
}

@test "clients of a daemon that is killed get errors, and umount works" {
	start_ibfs
	spawn agent sh -c "exec 3<>$MNT/rxe0/1/umad; echo ready; cat <&3"
	spawn server ib ibping -S
	spawn holder sh -c "exec 3<$MNT/rxe1/1/issm; exec head -1 $MNT/events"
	wait_for file_is "$IBFS_DIR/agent.log" ready
	wait_for file_is "$MNT/rxe1/1/cap_mask" 0x0240486e
	kill -KILL "$IBFS_PID"
	wait_for is_gone "$IBFS_PID"
	run ! cat "$MNT/version"
	run ! ib ibstat
	wait_for is_gone "$(spawned agent)"
	wait_for is_gone "$(spawned holder)"
	wait_for -t 30 is_gone "$(spawned server)"
	unmount
	! grep -q " $MNT " /proc/self/mounts || fail "still mounted"
	[ -z "$(ls "$MNT")" ]
}

@test "a client that leaves its MADs in shared memory gets errors, too" {
	need_root
	need_unshare
	start_ibfs
	# Programs that are sanitized themselves: ours comes before ASan's library.
	export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
	spawn client ib "$BUILD/tests/umad_send" daemon_killed "$MNT/rxe0/1/umad" "$MNT/rxe1/1/umad" 1
	wait_for file_is "$IBFS_DIR/client.log" ready
	kill -KILL "$IBFS_PID"
	wait_for is_gone "$IBFS_PID"
	wait_for -t 30 is_gone "$(spawned client)"
	[ "$(cat "$IBFS_DIR/client.log")" = ready ]
	unmount
}
