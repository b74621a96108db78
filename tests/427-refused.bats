# SPDX-License-Identifier: BSD-2-Clause
# System calls that the kernel refuses, as in a container: io_uring to the daemon,
# and to its clients what makes them faster. All is as it is elsewhere.
load helpers
load pairs

setup_file()
{
	IBFS_BY=("$BUILD/tests/refuse" io_uring_setup EPERM)
	start_ibfs
}
teardown_file() { stop_ibfs; }
setup()
{
	[ -z "${IBFS_SKIP:-}" ] || skip "$IBFS_SKIP"
	need_root; need_unshare; need_kernel 6 9
	export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
}

# refused_pair CALL ERRNO COMMAND [OPTIONS...]: neither process may do that.
refused_pair()
{
	local by=("$BUILD/tests/refuse" "$1" "$2") port
	shift 2
	port=$(port)
	need_tool "$1"
	serve "$port" "${by[@]}" "$1" -d rxe0 -p "$port" "${@:2}"
	run ib "${by[@]}" timeout 60 "$1" -d rxe1 -p "$port" "${@:2}" localhost
	served
	assert_status 0
}

@test "no io_uring for the daemon: doorbells are rung by commands" {
	run ib timeout 60 "$BUILD/tests/uverbs_bells" unheard
	assert_status 0
	run find "/proc/$IBFS_PID/fd" -lname 'anon_inode:\[io_uring\]'
	[ -z "$output" ]
}

@test "no io_uring for the daemon: MADs are sent by requests" {
	for name in errors addresses order two_threads forked; do
		run -0 timeout 120 "$BUILD/ibfs-run" -m "$MNT" "$BUILD/tests/umad_send" "$name" \
			"$MNT/rxe0/1/umad" "$MNT/rxe1/1/umad" "$(cat "$MNT/rxe1/1/lid")"
	done
	need_tool smpquery
	run -0 ib smpquery -C rxe0 -P 1 nodedesc "$(cat "$MNT/rxe1/1/lid")"
	assert_line 'rxe1'
}

@test "no io_uring for the daemon: messages, writes, events" {
	pair ibv_rc_pingpong -c -n 100
	pair ibv_ud_pingpong -e -n 100
	pair ib_write_bw -F -s 65536 -n 500
	pair ib_send_lat -F -n 500
	pair ib_send_lat -F -e -n 500
}

@test "no futex_waitv for clients: they wait at the file" {
	refused_pair futex_waitv ENOSYS ibv_rc_pingpong -e -c -n 100
	refused_pair futex_waitv EPERM ib_send_lat -e -F -n 300
}
