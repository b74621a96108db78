# SPDX-License-Identifier: BSD-2-Clause
# rdma-core's ping-pong programs, unmodified, over what they can be told: path
# MTUs, sizes, GIDs, events, users, mount and process namespaces.
load helpers
load pairs

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

each_mtu()	# COMMAND...
{
	local mtu
	for mtu in 256 512 1024 2048 4096; do
		pair "$@" -m $mtu -s 10000 -n 20
	done
}

@test "ibv_rc_pingpong over every path MTU, what arrives compared" { each_mtu ibv_rc_pingpong -c; }
@test "ibv_uc_pingpong over every path MTU, what arrives compared" { each_mtu ibv_uc_pingpong -c; }
@test "ibv_srq_pingpong over every path MTU, what arrives compared" { each_mtu ibv_srq_pingpong -c; }

@test "ibv_rc_pingpong of sizes from 1 byte to 64 MiB, what arrives compared" {
	local size
	for size in 1 2 255 4096 4097 65536 8388608 67108864; do
		pair ibv_rc_pingpong -c -s $size -n 3
	done
}

@test "ibv_uc_pingpong and ibv_srq_pingpong of sizes up to 64 MiB, what arrives compared" {
	local size
	for size in 1 4097 67108864; do
		pair ibv_uc_pingpong -c -s $size -n 3
		pair ibv_srq_pingpong -c -s $size -n 3
	done
}

@test "ibv_rc_pingpong and ibv_uc_pingpong of nothing at all" {
	pair ibv_rc_pingpong -s 0 -n 20
	pair ibv_uc_pingpong -s 0 -n 20
}

@test "ibv_ud_pingpong of sizes up to the greatest MTU, what arrives compared" {
	local size
	for size in 0 1 2048 4096; do
		pair ibv_ud_pingpong -c -s $size -n 20
	done
}

@test "the ping-pongs find each other by GID" {
	pair ibv_rc_pingpong -g 0 -c -n 20
	pair ibv_uc_pingpong -g 0 -n 20
	pair ibv_ud_pingpong -g 0 -n 20
	pair ibv_srq_pingpong -g 0 -n 20
}

@test "the ping-pongs wait for events" {
	pair ibv_rc_pingpong -e -c -n 50
	pair ibv_uc_pingpong -e -n 50
	pair ibv_ud_pingpong -e -n 50
	pair ibv_srq_pingpong -e -n 50
}

@test "ibv_rc_pingpong with on-demand memory, timestamps or the new calls, or says why not" {
	need_root; need_unshare
	pair ibv_rc_pingpong -N -n 20
	run ib timeout 20 ibv_rc_pingpong -d rxe0 -t
	assert_status 1
	assert_line 'completion timestamp'
}

@test "two users ping-pong with one another" {
	local port
	need_root; need_unshare; need_tool setpriv ibv_rc_pingpong
	port=$(port)
	serve "$port" setpriv --reuid=65534 --regid=65534 --clear-groups \
		ibv_rc_pingpong -d rxe0 -p "$port" -c -n 50
	run ib timeout 60 setpriv --reuid=1 --regid=1 --clear-groups \
		ibv_rc_pingpong -d rxe1 -p "$port" -c -n 50 localhost
	served
	assert_status 0
}

@test "two containers, each with processes of its own, ping-pong with one another" {
	local port
	need_root; need_unshare; need_tool ibv_rc_pingpong
	unshare -pf true 2>/dev/null || skip "needs permission for a process namespace"
	port=$(port)
	serve "$port" unshare -pmf --mount-proc ibv_rc_pingpong -d rxe0 -p "$port" -c -n 50
	run ib timeout 60 unshare -pmf --mount-proc \
		ibv_rc_pingpong -d rxe1 -p "$port" -c -n 50 localhost
	served
	assert_status 0
}

# Each lookup of the path makes an inode of its own, and unhashes the one before.
@test "an open device file stays a device while others look it up" {
	need_root; need_unshare; need_tool python3
	run -0 ib python3 -c '
import os, stat
path = "/dev/infiniband/uverbs0"
fd = os.open(path, os.O_RDWR)
os.close(os.open(path, os.O_RDWR))
rdev = os.fstat(fd).st_rdev
assert stat.S_ISCHR(os.fstat(fd).st_mode)
with open("/sys/class/infiniband_verbs/uverbs0/dev") as dev:
    assert dev.read() == "%d:%d\n" % (os.major(rdev), os.minor(rdev))
'
}
