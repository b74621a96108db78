# SPDX-License-Identifier: BSD-2-Clause
# The uverbs file: programs of Debian, unmodified, and a client without libibverbs.
load helpers
load pairs

setup_file()
{
	start_ibfs
}

teardown_file() { stop_ibfs; }

@test "uverbs: a client without libibverbs, also with hostile input" {
	need_root
	ctest uverbs_raw "$MNT"
}

@test "uverbs: XRC, changing regions, windows, SRQs, multicast, by commands" {
	need_root
	ctest uverbs_more "$MNT"
}

@test "uverbs: each command, short, long, with bad pointers and handles" {
	need_root
	ctest uverbs_each "$MNT"
}

@test "uverbs: RDMA_VERBS_IOCTL without libibverbs" {
	need_root
	ctest uverbs_ioctl "$MNT"
}

@test "libibverbs uses the ioctl, and write() for doorbells only" {
	need_root; need_unshare; need_tool strace ibv_rc_pingpong
	local port trace=$BATS_TEST_TMPDIR/trace
	port=$(port)
	ib timeout 60 strace -f -e trace=ioctl,write -P /dev/infiniband/uverbs0 -o "$trace" \
		ibv_rc_pingpong -d rxe0 -p "$port" -n 3 >/dev/null 2>&1 3>&- &
	local server=$!
	wait_for listens "$port"
	run -0 ib timeout 60 ibv_rc_pingpong -d rxe1 -p "$port" -n 3 localhost
	wait "$server"
	[ "$(grep -c 'ioctl(.* = 0$' "$trace")" -ge 12 ] || fail "$(cat "$trace")"
	# Their first word is IB_USER_VERBS_CMD_POST_SEND.
	! grep 'write(' "$trace" | grep -v '"\\34\\0\\0\\0' || fail "a command by write()"
}

@test "ibv_devices and ibv_devinfo list the tree's devices" {
	need_root; need_tool ibv_devices; need_unshare
	run -0 ib ibv_devices
	assert_line 'rxe0'
	assert_line 'rxe1'
	run -0 ib ibv_devinfo -v
	assert_line 'state:[[:space:]]*PORT_ACTIVE'
	assert_line 'link_layer:[[:space:]]*InfiniBand'
	refute_line 'Failed'
}

@test "ibv_rc_pingpong" { need_root; need_unshare; pair ibv_rc_pingpong -c -n 100; }
@test "ibv_rc_pingpong with events" { need_root; need_unshare; pair ibv_rc_pingpong -e -n 100; }
@test "ibv_rc_pingpong of 1 MiB" { need_root; need_unshare; pair ibv_rc_pingpong -c -n 5 -s 1048576; }
@test "ibv_rc_pingpong by GID" { need_root; need_unshare; pair ibv_rc_pingpong -g 0 -c -n 50; }
@test "ibv_uc_pingpong" { need_root; need_unshare; pair ibv_uc_pingpong -n 100; }
@test "ibv_ud_pingpong" { need_root; need_unshare; pair ibv_ud_pingpong -n 100; }
@test "ibv_ud_pingpong with events" { need_root; need_unshare; pair ibv_ud_pingpong -e -n 100; }
@test "ibv_srq_pingpong" { need_root; need_unshare; pair ibv_srq_pingpong -n 100; }
@test "ibv_srq_pingpong with events" { need_root; need_unshare; pair ibv_srq_pingpong -e -n 100; }

@test "perftest: send, write, read and atomics" {
	need_root; need_unshare
	pair ib_send_lat -n 50
	pair ib_write_bw -n 20
	pair ib_read_lat -n 20
	pair ib_atomic_lat -n 20
}

@test "a client that is killed leaves nothing behind" {
	need_root; need_unshare; need_tool ibv_rc_pingpong
	"$BUILD/ibfs-run" -m "$MNT" ibv_rc_pingpong -d rxe0 -p 19999 >/dev/null 2>&1 3>&- &
	local pid=$!
	wait_for listens 19999
	kill -9 "$pid"
	wait_for fds_are "$IBFS_FDS"
}
