# SPDX-License-Identifier: BSD-2-Clause
# Users whose memory never answers, in as many processes as they like: everybody
# else goes on, and the daemon ends when it is told to.
load helpers
load pairs

setup()
{
	need_root; need_unshare; need_tool setpriv
	export ASAN_OPTIONS=verify_asan_link_order=0
	start_ibfs
	[ -z "${IBFS_SKIP:-}" ] || skip "$IBFS_SKIP"
	chmod 755 "$IBFS_DIR"
}
teardown() { [ -z "${IBFS_PID:-}" ] || stop_ibfs; }

# dead SLEEPERS COMMAND...: until so many of the daemon's threads sleep in the pages of its
# processes, which each post a write into one that never comes.
dead()
{
	spawn dead ib "${@:2}"
	wait_for -t 60 sleepers_or_gone "$1"
	! sleepers "$1" || return 0
	! file_has "$IBFS_DIR/dead.log" ^mount: || skip "no FUSE file system can be mounted here"
	fail "$(cat "$IBFS_DIR/dead.log")"
}
sleepers_or_gone() { sleepers "$1" || is_gone "$(spawned dead)"; }
sleepers() { [ "$(states | grep -c D)" = "$1" ]; }
# Of the daemon's threads: proc_pid_stat(5).
states() { cat "/proc/$IBFS_PID"/task/*/stat | sed 's/.*) \(.\).*/\1/'; }

# users NUMBER private|shared: that many users, with a file of root's, as fusermount3 makes it.
users() { dead "$1" "$BUILD/tests/uverbs_dead_users" "$1" "$2" 20001; }
# processes NUMBER SLEEPERS: of one user, with a file system in a user namespace.
processes()
{
	nobody unshare -Urm true 2>/dev/null || skip "users may make no user namespace here"
	dead "$2" setpriv --reuid 65534 --regid 65534 --clear-groups unshare -Urm \
		"$BUILD/tests/uverbs_dead_users" "$1" private
}
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }

others_go_on()
{
	local i
	for i in 1 2 3 4 5; do
		run -0 timeout 20 cat "$MNT/rxe0/1/state"
		[ "$output" = "4: ACTIVE" ]
	done
	run -0 ib timeout 60 "$BUILD/tests/uverbs_memory" private "$IBFS_PID"
	run -0 ib timeout 60 "$BUILD/tests/uverbs_memory" memfd "$IBFS_PID"
	! command -v ib_send_lat >/dev/null || pair ib_send_lat -F -n 200
}

# While they all are still there: but for the threads in their pages, which the kernel
# wakes for nobody, nothing is left of the daemon.
ends_by_signal()
{
	kill "$IBFS_PID"
	wait_for not is_mounted
	[[ $BUILD == *sanitize* ]] || wait_for only_sleepers	# LeakSanitizer waits for them
	run ! is_gone "$(spawned dead)"
	reap dead KILL
	wait_for is_gone "$IBFS_PID"
	wait "$IBFS_PID"		# its status
	run ! compgen -G "$IBFS_DIR/asan*"
	rm -rf --one-file-system "$IBFS_DIR"
	unset IBFS_PID
}
only_sleepers() { ! states | grep -q '[^DZ]'; }

@test "dead pages: 17 users" {
	users 17 private
	others_go_on
	reap dead KILL
	wait_for sleepers 0
	others_go_on
}

@test "dead pages: 17 users, and the daemon ends by a signal" {
	users 17 private
	ends_by_signal
}

# A thread of the loop's, and as many as a user has.
@test "dead pages: 100 processes of one user" {
	processes 100 65
	others_go_on
	ends_by_signal
}

@test "dead pages: the file is shared, and the daemon doesn't map it" {
	users 17 shared
	others_go_on
	ends_by_signal
}
