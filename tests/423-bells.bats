# SPDX-License-Identifier: BSD-2-Clause
# Doorbells by futex: threads that wait on each processor.
load helpers

setup()
{
	export ASAN_OPTIONS=verify_asan_link_order=0
}
teardown() { [ -z "${IBFS_PID:-}" ] || stop_ibfs; }

# bells TEST: a client under ibfs-run.
bells()
{
	run ib timeout 60 "$BUILD/tests/uverbs_bells" "$1"
	[ "$status" != 77 ] || skip "the kernel has no futexes in io_uring for us"
	assert_status 0
}

# daemon [CONF]: a daemon of the test's own.
daemon()
{
	need_root; need_unshare
	echo "${1:-}" >"$BATS_TEST_TMPDIR/conf"
	start_ibfs "$BATS_TEST_TMPDIR/conf"
}

rings() { file_has "$IBFS_DIR/$1.log" rings || is_gone "$(spawned "$1")"; }

@test "bells are heard from every processor, and spoilt, idle and dead ones harm nobody" {
	run "$BUILD/tests/bells"
	[ "$status" != 77 ] || skip "$output"
	echo "$output"
	[ "$status" = 0 ]
}

@test "uverbs: doorbells by bells" {
	daemon
	bells ring
	bells states
}

@test "uverbs: bells without real-time priority, and on one processor" {
	daemon 'realtime = false;'
	bells ring
	stop_ibfs
	need_tool taskset
	daemon
	run taskset -ap 0x1 "$IBFS_PID"
	bells ring
	run -0 ib timeout 60 taskset 0x1 "$BUILD/tests/uverbs_bells" ring
}

@test "uverbs: requests one after another, with a bell for some of them, all arrive" {
	need_tool taskset
	daemon
	bells streaks
	stop_ibfs
	# Nobody polls on one processor.
	run -0 taskset -p 0x1 "$BASHPID"
	daemon
	bells streaks
}

@test "uverbs: without bells all is rung by commands" {
	daemon 'bells = false;'
	bells unheard
}

@test "uverbs: spoilt bells harm nobody else" {
	daemon
	bells spoil
	bells ring
}

@test "uverbs: clients that are killed in the middle of ringing" {
	daemon
	bells ring
	local i
	for i in $(seq 6); do spawn "r$i" ib "$BUILD/tests/uverbs_bells" for_ever; done
	for i in $(seq 6); do wait_for -t 30 rings "r$i"; done
	bells ring
	for i in $(seq 6); do reap "r$i" KILL; done
	bells ring
}

@test "uverbs: bells while a client's page never comes" {
	daemon
	spawn dead ib "$BUILD/tests/uverbs_memory" dead_for_ever
	wait_for -t 30 stuck_or_gone
	file_has "$IBFS_DIR/dead.log" stuck || skip "no FUSE file system can be mounted here"
	bells ring
	reap dead KILL
	bells ring
}
stuck_or_gone() { file_has "$IBFS_DIR/dead.log" stuck || is_gone "$(spawned dead)"; }
