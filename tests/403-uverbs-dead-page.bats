# SPDX-License-Identifier: BSD-2-Clause
# A page of a client that never comes, in which the daemon's first thread sleeps.
load helpers

setup() { start_ibfs; }
teardown() { stop_ibfs; }

# stuck: a process spawned as "dead" has the daemon sleep in its page.
stuck()
{
	need_root; need_unshare
	export ASAN_OPTIONS=verify_asan_link_order=0
	spawn dead ib "$BUILD/tests/uverbs_memory" dead_for_ever
	wait_for -t 30 stuck_or_gone
	file_has "$IBFS_DIR/dead.log" stuck || skip "no FUSE file system can be mounted here"
}
stuck_or_gone() { file_has "$IBFS_DIR/dead.log" stuck || is_gone "$(spawned dead)"; }

@test "a page that never comes: other clients go on, and it ends with its process" {
	stuck
	run -0 ib timeout 60 "$BUILD/tests/uverbs_memory" memfd "$IBFS_PID"
	run -0 ib timeout 60 "$BUILD/tests/uverbs_memory" private "$IBFS_PID"
	reap dead KILL
	wait_for fds_are "$IBFS_FDS"
}

# The kernel lets nobody go who waits for a FUSE server, so the process is gone after that.
@test "a page that never comes: the daemon ends by a signal" {
	stuck
	kill "$IBFS_PID"
	wait_for not is_mounted
	reap dead KILL
	wait_for is_gone "$IBFS_PID"
	wait "$IBFS_PID"		# its status
	run ! compgen -G "$IBFS_DIR/asan*"
	rm -rf --one-file-system "$IBFS_DIR"
	unset IBFS_PID
}
