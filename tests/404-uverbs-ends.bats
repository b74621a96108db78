# SPDX-License-Identifier: BSD-2-Clause
# How it ends, for programs of libibverbs: the device goes, the daemon stops or is
# killed, they fork, run another program, are killed; and a thousand of them.
load helpers

setup()
{
	need_root; need_unshare; need_kernel 6 9
	export ASAN_OPTIONS=verify_asan_link_order=0
}

teardown()
{
	[ -n "${BATS_TEST_COMPLETED:-}" ] || show_logs
	[ -n "${IBFS_PID:-}" ] || return 0
	is_gone "$IBFS_PID" || { stop_ibfs; return; }
	reap_all || true
	! grep -q " $MNT " /proc/self/mounts || umount -l "$MNT"
	not compgen -G "$IBFS_DIR/asan*"
	rm -rf "$IBFS_DIR"
}

ends() { ib timeout 120 "$BUILD/tests/uverbs_ends" "$@"; }
# A program that waits for the end of its device, until it waits.
wait_for_the_end()
{
	spawn lost ib "$BUILD/tests/uverbs_ends" lost
	wait_for file_has "$IBFS_DIR/lost.log" ready
}
lost()
{
	wait_for -t 30 is_gone "$(spawned lost)"
	output=$(cat "$IBFS_DIR/lost.log")
	assert_line '^done$'
	refute_line '\(errno'
}

@test "a device that is removed: its event, EIO, and what was posted fails" {
	start_ibfs
	wait_for_the_end
	echo remove >"$MNT/rxe0/ctl"
	lost
	assert_line '^event: local catastrophic error'
	assert_line '^async: Input/output error'
	assert_line '^channel: Input/output error'
	assert_line '^completion: fatal error'
}

@test "a daemon that stops: the same" {
	start_ibfs
	wait_for_the_end
	kill -TERM "$IBFS_PID"
	lost
	wait_for is_gone "$IBFS_PID"
	assert_line '^event: local catastrophic error'
	assert_line '^completion: fatal error'
	wait_for not is_mounted
}

@test "a daemon that stops waits only a moment for who doesn't listen" {
	start_ibfs
	spawn holder sh -c "exec 3<>$MNT/rxe0/uverbs; echo ready; exec sleep 60"
	wait_for file_has "$IBFS_DIR/holder.log" ready
	kill -TERM "$IBFS_PID"
	wait_for is_gone "$IBFS_PID"
}

@test "a daemon that is killed: errors; and another in its place" {
	start_ibfs
	wait_for_the_end
	kill -KILL "$IBFS_PID"
	lost
	assert_line '^channel: '
	reap_all
	unmount
	rm -rf "$IBFS_DIR"
	start_ibfs
	ends fork
}

@test "pingpong ends when its device goes" {
	need_tool ibv_rc_pingpong
	load pairs
	start_ibfs
	local port
	port=$(port)
	spawn server ib stdbuf -oL ibv_rc_pingpong -e -d rxe0 -p "$port" -n 100000000
	wait_for listens "$port"
	spawn client ib stdbuf -oL ibv_rc_pingpong -e -d rxe1 -p "$port" -n 100000000 localhost
	wait_for file_has "$IBFS_DIR/client.log" 'remote address'
	echo remove >"$MNT/rxe0/ctl"
	wait_for -t 30 is_gone "$(spawned server)"
	# Its peer may have had its answer, and waits for the next message then.
	reap client
}

@test "a child goes on with what its parent opened, or leaves it" {
	start_ibfs
	ends fork
}

@test "another program in the same process: its memory isn't the old one's" {
	start_ibfs
	ends exec
	wait_for fds_are "$IBFS_FDS"
}

@test "clients that are killed in the middle leave nothing behind" {
	start_ibfs
	local n
	for n in $(seq 20); do spawn "spin$n" ib "$BUILD/tests/uverbs_ends" spin; done
	for n in $(seq 20); do wait_for -t 60 file_has "$IBFS_DIR/spin$n.log" spins; done
	for n in $(seq 20); do kill -KILL "$(spawned "spin$n")"; done
	wait_for -t 30 fds_are "$IBFS_FDS"
	ends fork
}

@test "an answer to a page that doesn't come hangs nobody else" {
	start_ibfs
	run timeout 60 "$BUILD/tests/uverbs_dead_page" "$MNT"
	[ "$status" != 77 ] || skip "needs userfaultfd"
	assert_status 0
	wait_for -t 30 fds_are "$IBFS_FDS"
}

# The daemon is started with few descriptors, as many systems have it, and takes what it may.
@test "1,000 processes at once" {
	[ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge 10000 ] || skip "needs 10,000 descriptors"
	[ "$(ulimit -u)" = unlimited ] || [ "$(ulimit -u)" -ge 2000 ] || skip "needs 2,000 processes"
	ulimit -Sn 1024
	start_ibfs
	run ends many 1000
	assert_status 0
	assert_line '^all are there$'
	wait_for -t 30 fds_are "$IBFS_FDS"
}
